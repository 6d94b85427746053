"""The optimal partition of one column, found as a shortest path over the sorted values.

S. L. Hansen and S. Mukherjee, A polynomial algorithm for optimal univariate microaggregation, IEEE Transactions
on Knowledge and Data Engineering 15 (2003). Node j of the graph represents the j smallest values. The arc (i, j),
with k ≤ j−i < 2k, represents the group of the values i+1 … j; its length is the SSE of this group.

For small k, the plain recurrence takes O(kn) time. For larger k, the arcs satisfy the quadrangle inequality, so the
best predecessor of j never decreases as j grows. The nodes are processed in batches of k that depend only on earlier
nodes, and halving finds the best predecessors in O(n log k) time in total.

Every arc is computed from deviations inside a window of a few k values, and path lengths are relative to the start of
the window. Neither a large offset nor a long column therefore reduces precision.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints, State
from shoal.kernels.sort import sort_values

__all__ = ["labels_of_path", "univariate"]

# Halving is faster than the plain recurrence from this k on (measured).
LARGE_K = 16


def univariate(X: Floats, k: int, *, state: State) -> Ints:
    """Group the values of one column so that the SSE is as small as possible."""
    values, order = sort_values(X[:, 0])
    previous = np.empty(len(values) + 1, dtype=np.int64)
    (_plain_path if k < LARGE_K else _halving_path)(values, k, previous)
    return labels_of_path(previous, order)


def labels_of_path(previous: Ints, order: Ints) -> Ints:
    """Return the group of each record on the path with the given predecessors."""
    # Allocate with numpy, which requests huge pages from the system; numba does not. This also applies to `previous`.
    labels = np.empty(len(order), dtype=np.int64)
    _walk(previous, order, labels)
    return labels


@kernel
def _plain_path(x: Floats, k: int, previous: Ints) -> None:
    """Write the predecessor of every node on its shortest path, by the paper's recurrence in windows."""
    n = len(x)
    width = max(32, 6 * k)
    length = _lengths(k)
    inverse = 1.0 / np.arange(1, 2 * k)
    total, squares, reduced = np.empty(width + 2 * k), np.empty(width + 2 * k), np.empty(width + 2 * k)
    for first in range(k, n + 1, width):
        last = min(first + width, n + 1) - 1
        origin = _open_window(x, k, first, last, length, total, squares, reduced)
        for j in range(first, last + 1):
            end = total[j - origin]
            best, size = np.inf, k
            for m in range(k, min(2 * k - 1, j) + 1):
                sums = end - total[j - m - origin]
                candidate = reduced[j - m - origin] - sums * sums * inverse[m - 1]
                # Conditional expressions avoid a branch that the processor would mispredict half of the time.
                better = candidate < best
                best = candidate if better else best
                size = m if better else size
            reduced[j - origin] = best
            previous[j] = j - size
        _close_window(k, last, origin, length, squares, reduced)


@kernel
def _halving_path(x: Floats, k: int, previous: Ints) -> None:
    """Write the same predecessors as `_plain_path`, in batches of k nodes, by halving the rows of a monotone matrix."""
    n = len(x)
    length = _lengths(k)
    inverse = 1.0 / np.arange(1, 2 * k)
    total, squares, reduced = np.empty(3 * k), np.empty(3 * k), np.empty(3 * k)
    stack = np.empty((64, 4), dtype=np.int64)
    for first in range(k, n + 1, k):
        last = min(first + k, n + 1) - 1
        origin = _open_window(x, k, first, last, length, total, squares, reduced)
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = first, last, origin, last - k
        top = 0
        while top >= 0:
            low, high, floor, ceiling = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
            top -= 1
            j = (low + high) // 2
            end = total[j - origin]
            best, predecessor = np.inf, j - k
            for i in range(max(floor, j - 2 * k + 1), min(ceiling, j - k) + 1):
                sums = end - total[i - origin]
                candidate = reduced[i - origin] - sums * sums * inverse[j - i - 1]
                better = candidate < best
                best = candidate if better else best
                predecessor = i if better else predecessor
            reduced[j - origin] = best
            previous[j] = predecessor
            if low < j:
                top += 1
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low, j - 1, floor, predecessor
            if j < high:
                top += 1
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = j + 1, high, predecessor, ceiling
        _close_window(k, last, origin, length, squares, reduced)


@kernel
def _lengths(k: int) -> Floats:
    """Return an array for the path lengths of the last 2k + 1 nodes; node i has the position i mod (2k + 1).

    The lengths of the first k nodes are final: node 0 has length 0, and no path has fewer than k values.
    """
    length = np.full(2 * k + 1, np.inf)
    length[0] = 0.0
    return length


@kernel
def _open_window(
    x: Floats, k: int, first: int, last: int, length: Floats, total: Floats, squares: Floats, reduced: Floats
) -> int:
    """Prepare a window for the nodes first … last, and return its first node.

    The sums are of deviations from the window's middle value; lengths are relative to a node of the window. Let
    ``reduced = length − squares``. A path whose last arc is the group i+1 … j has the length ``reduced[i] − sums²/(j −
    i)`` plus the squares up to j, which all candidates share.
    """
    origin = max(0, first - 2 * k + 1)
    pivot = x[(origin + last) // 2]
    base = length[(first - k) % len(length)]
    total[0] = squares[0] = 0.0
    for i in range(origin, last):
        delta = x[i] - pivot
        total[i - origin + 1] = total[i - origin] + delta
        squares[i - origin + 1] = squares[i - origin] + delta * delta
    for i in range(origin, first):
        reduced[i - origin] = length[i % len(length)] - base - squares[i - origin]
    return origin


@kernel
def _close_window(k: int, last: int, origin: int, length: Floats, squares: Floats, reduced: Floats) -> None:
    """Write the path lengths that the next window needs, relative to this window's base node."""
    for j in range(max(origin, last - 2 * k), last + 1):
        length[j % len(length)] = reduced[j - origin] + squares[j - origin]


@kernel
def _walk(previous: Ints, order: Ints, labels: Ints) -> None:
    """Follow the path back from the last node and write the group of each record to `labels`."""
    node = len(order)
    group = 0
    while node > 0:
        for i in range(previous[node], node):
            labels[order[i]] = group
        node = previous[node]
        group += 1
