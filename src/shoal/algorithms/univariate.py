"""The optimum for one column: a shortest path over the sorted values.

S. L. Hansen and S. Mukherjee, A polynomial algorithm for optimal univariate microaggregation, IEEE Transactions
on Knowledge and Data Engineering 15 (2003). Node j of the graph stands for the j smallest values; the arc (i, j),
k ≤ j−i < 2k, is the group of the values i+1 … j and as long as its SSE.

Small k: the plain recurrence, O(kn). Larger k: the arcs satisfy the quadrangle inequality, so the best
predecessor of j never falls as j grows. The k nodes of a block depend on earlier nodes only; their minima are
found by halving, O(n log k) in all. (Arcs up to 3k long stand in a block. They are groups too, only never better,
by the paper's Result 2, and with them the block is a full monotone matrix.)

Every arc is computed from deviations inside a window of a few k values, and path lengths are counted from a
window's own start: no digit is lost to a large offset or to the length of the column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.progress import State
from shoal.types import Floats, Ints

__all__ = ["labels_of_path", "sort_values", "univariate"]

# From this k on, halving beats the plain recurrence (measured).
LARGE_K = 24
# The plain recurrence counts path lengths anew every so many nodes.
REBASE = 512


def univariate(X: Floats, k: int, *, state: State) -> Ints:
    """Group the values of one column with the least possible SSE."""
    values, order = sort_values(X[:, 0])
    path = _plain_path if k < LARGE_K else _halving_path
    labels: Ints = labels_of_path(path(values, k), order)
    return labels


def sort_values(column: Floats) -> tuple[Floats, Ints]:
    """Return the values in ascending order and the records that have them, equal values by record number."""
    order = np.argsort(column)
    values = column[order]
    # numpy's fastest argsort leaves equal values in an order that depends on the machine.
    _settle_ties(values, order)
    return values, order


@njit(cache=True, nogil=True)
def _settle_ties(values: Floats, order: Ints) -> None:
    n = len(values)
    start = 0
    for i in range(1, n + 1):
        if i == n or values[i] != values[start]:
            if i - start > 1:
                order[start:i].sort()
            start = i


@njit(cache=True, nogil=True)
def _plain_path(x: Floats, k: int) -> Ints:
    """Return the predecessor of every node on its shortest path: the recurrence of the paper."""
    n = len(x)
    length = np.full(n + 1, np.inf)
    length[0] = 0.0
    previous = np.zeros(n + 1, dtype=np.int64)
    inverse = 1.0 / np.arange(1, 2 * k + 1)
    for j in range(k, n + 1):
        pivot = x[j - 1]
        total, squares = 0.0, 0.0
        for m in range(2, k):
            delta = x[j - m] - pivot
            total += delta
            squares += delta * delta
        best, chosen = np.inf, 0
        for m in range(k, min(2 * k - 1, j) + 1):
            delta = x[j - m] - pivot
            total += delta
            squares += delta * delta
            candidate = length[j - m] + (squares - total * total * inverse[m - 1])
            if candidate < best:
                best, chosen = candidate, j - m
        length[j] = best
        previous[j] = chosen
        if j % REBASE == 0:
            length[max(0, j - 2 * k) : j + 1] -= best if best < np.inf else 0.0
    return previous


@njit(cache=True, nogil=True)
def _halving_path(x: Floats, k: int) -> Ints:
    """Return the same predecessors, block by block of k nodes, by halving the rows of a monotone matrix."""
    n = len(x)
    length = np.full(n + 1, np.inf)
    length[0] = 0.0
    previous = np.zeros(n + 1, dtype=np.int64)
    total, squares = np.empty(3 * k + 1), np.empty(3 * k + 1)
    stack = np.empty((64, 4), dtype=np.int64)
    for first in range(k, n + 1, k):
        last = min(first + k, n + 1) - 1
        origin = max(0, first - 2 * k + 1)
        _prefix_sums(x, origin, last, total, squares)
        base = length[first - k]
        for i in range(origin, first):
            length[i] -= base
        top = 0
        stack[0] = (first, last, origin, last - k)
        while top >= 0:
            low, high, left, right = stack[top]
            top -= 1
            j = (low + high) // 2
            best, chosen = np.inf, left
            for i in range(left, min(right, j - k) + 1):
                sums = total[j - origin] - total[i - origin]
                arc = squares[j - origin] - squares[i - origin] - sums * sums / (j - i)
                if length[i] + arc < best:
                    best, chosen = length[i] + arc, i
            length[j] = best
            previous[j] = chosen
            if low < j:
                top += 1
                stack[top] = (low, j - 1, left, chosen)
            if j < high:
                top += 1
                stack[top] = (j + 1, high, chosen, right)
    return previous


@njit(cache=True, nogil=True)
def _prefix_sums(x: Floats, origin: int, last: int, total: Floats, squares: Floats) -> None:
    """Sum deviations from the window's middle value, and their squares."""
    pivot = x[(origin + last) // 2]
    total[0] = squares[0] = 0.0
    for i in range(origin, last):
        delta = x[i] - pivot
        total[i - origin + 1] = total[i - origin] + delta
        squares[i - origin + 1] = squares[i - origin] + delta * delta


@njit(cache=True, nogil=True)
def labels_of_path(previous: Ints, order: Ints) -> Ints:
    """Number the groups of the path that ends at the last node, from the last group to the first."""
    labels = np.empty(len(order), dtype=np.int64)
    node = len(order)
    group = 0
    while node > 0:
        for i in range(previous[node], node):
            labels[order[i]] = group
        node = previous[node]
        group += 1
    return labels
