"""Partition of one column with the least total loss from averaging and noise.

Algorithm 3 of J. Soria-Comas and J. Domingo-Ferrer, Differentially private data publishing via optimal univariate
microaggregation and record perturbation (2018). Node j of a graph represents the j smallest values, and the arc (i, j)
represents the group of the values i+1 … j. The length of an arc is the SSE of its group plus the group's share of the
noise, size × variance. Groups have no maximum size, so there are n²/2 arcs and the paper's algorithm takes Θ(n²) time.

Both parts of the length satisfy the quadrangle inequality; the noise does if size × variance is convex in the size, as
2(Δ/ε)²/size is. Once a later predecessor is better for some node, it therefore remains better for all later nodes. A
queue holds the predecessors in the order in which they become best (Galil and Giancarlo 1989). Newton's method, started
at the last such node, and then bisection find the node from which one predecessor is better than another. This takes
O(n log n) time at worst, a few comparisons per node in practice, and O(n) memory.

Exactness: the SSE is the sum of squares, which no partition changes, minus the sum of sum²/size over all groups. Sums
and path lengths are kept in double-double arithmetic (32 digits). A comparison is made in float64 first, with a bound
on its rounding error, and repeated in double-double if the bound leaves the result open. A large offset or a long
column therefore costs no digits. Double-double arithmetic is from T. J. Dekker, A floating-point technique for
extending the available precision (1971).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from shoal.algorithms.univariate import labels_of_path
from shoal.core.compiler import intrinsic, kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.sort import sort_values

__all__ = ["exact_quotient", "exact_square", "exact_sum", "laplace_noise", "optimal_for_noise"]

# Columns of the kernel's table: sum of the values so far and length of the shortest path, as high and low parts.
SUM, SUM_LOW, PATH, PATH_LOW = 0, 1, 2, 3
# Bound on the rounding error of a float64 comparison, relative to the sum of its terms: eight operations, doubled.
TRUST = 16 * 2.0**-53
# Newton steps before bisection takes over.
NEWTON_STEPS = 4


def optimal_for_noise(column: Floats, noise: Floats, k: int = 1) -> Ints:
    """Group the values of one column to minimise the sum of SSE and noise.

    ``noise[m]`` is the noise error of a group of m records, m × variance. The array has length ``n + 1`` and is convex
    in m. k is the minimum group size.

    Examples
    --------
    >>> column = np.array([1.0, 9.0, 1.2, 9.3])
    >>> optimal_for_noise(column, laplace_noise(4, 0.3)).tolist()
    [1, 0, 1, 0]
    >>> optimal_for_noise(column, laplace_noise(4, 100.0)).tolist()
    [0, 0, 0, 0]
    """
    values, order = sort_values(column)
    nodes = len(values) + 1
    # numpy allocates arrays on huge pages and numba does not, so the kernel takes a tenth of the time (measured).
    table, queues = np.empty((nodes, 4)), np.empty((2, nodes), dtype=np.int64)
    previous = np.empty(nodes, dtype=np.int64)
    _shortest_path(values, noise, k, table, queues, previous)
    labels: Ints = labels_of_path(previous, order)
    return labels


def laplace_noise(n: int, scale: float) -> Floats:
    """Return size × variance for sizes 0 … n and noise of scale ``scale / size``, with 0 for size 0.

    Examples
    --------
    >>> laplace_noise(3, 3.0).tolist()
    [0.0, 18.0, 9.0, 6.0]
    """
    noise = np.arange(n + 1, dtype=np.float64)
    np.divide(2 * scale * scale, noise[1:], out=noise[1:])
    return noise


# Group sizes are never 0, so divisions need no check; inlining halves the run time (measured).
@kernel(error_model="numpy")
def _shortest_path(x: Floats, noise: Floats, k: int, table: Floats, queues: Ints, previous: Ints) -> None:
    """Compute the predecessor of every node on its shortest path."""
    n = len(x)
    _sums(x, table)
    # Current and future predecessors, and the first node for which each is best.
    queue, since = queues[0], queues[1]
    head, tail, near = 0, -1, n
    for j in range(k, n + 1):
        i = j - k
        if i == 0 or i >= k:
            after = j
            while tail >= head:
                after = max(since[tail], j)
                if _gain(table, noise, i, queue[tail], after) <= 0.0:
                    break
                tail -= 1
            near = j if tail < head else _first_better(table, noise, i, queue[tail], after, near)
            if near <= n:
                tail += 1
                queue[tail], since[tail] = i, near
        while head < tail and since[head + 1] <= j:
            head += 1
        best = queue[head]
        previous[j] = best
        high, low = _length(table, noise, best, j)
        table[j, PATH] = high + low
        table[j, PATH_LOW] = low - (table[j, PATH] - high)


@kernel(error_model="numpy")
def _sums(x: Floats, table: Floats) -> None:
    """Compute the cumulative sums of deviations from the middle value; path lengths are filled in later."""
    n = len(x)
    table[0] = 0.0
    high, low = 0.0, 0.0
    pivot = x[n // 2]
    for i in range(n):
        deviation, rest = exact_sum(x[i], -pivot)
        total, low_part = exact_sum(high, deviation)
        rest += low_part + low
        high = total + rest
        low = rest - (high - total)
        table[i + 1, SUM], table[i + 1, SUM_LOW] = high, low


@kernel(inline=True, error_model="numpy")
def _gain(table: Floats, noise: Floats, late: int, early: int, j: int) -> float:
    """Return the reduction in the length of the path to j by the later predecessor; its sign is exact."""
    ahead = (table[late, PATH] - table[early, PATH]) + (table[late, PATH_LOW] - table[early, PATH_LOW])
    sum_late = (table[j, SUM] - table[late, SUM]) + (table[j, SUM_LOW] - table[late, SUM_LOW])
    sum_early = (table[j, SUM] - table[early, SUM]) + (table[j, SUM_LOW] - table[early, SUM_LOW])
    square_late, square_early = sum_late * sum_late / (j - late), sum_early * sum_early / (j - early)
    louder = noise[j - late] - noise[j - early]
    gain = (square_late - square_early) - (ahead + louder)
    if abs(gain) > TRUST * (square_late + square_early + abs(ahead) + abs(louder)):
        return float(gain)
    return _exact_gain(table, noise, late, early, j)


@kernel(error_model="numpy")
def _exact_gain(table: Floats, noise: Floats, late: int, early: int, j: int) -> float:
    high, low = _length(table, noise, early, j)
    less, rest = _length(table, noise, late, j)
    difference, low_part = exact_sum(high, -less)
    return float(difference + (low_part + (low - rest)))


@kernel(inline=True, error_model="numpy")
def _length(table: Floats, noise: Floats, i: int, j: int) -> tuple[float, float]:
    """Return the length of the path to j through i, without the sum of squares common to all paths."""
    size = float(j - i)
    total, total_rest = exact_sum(table[j, SUM], -table[i, SUM])
    total_rest += table[j, SUM_LOW] - table[i, SUM_LOW]
    square, square_rest = exact_square(total)
    square_rest += 2.0 * total * total_rest
    share, share_rest = exact_quotient(square, size)
    before, before_rest = exact_sum(table[i, PATH], noise[j - i])
    length, length_rest = exact_sum(before, -share)
    return length, length_rest + ((before_rest + table[i, PATH_LOW]) - (share_rest + square_rest) / size)


@kernel(inline=True, error_model="numpy")
def _first_better(table: Floats, noise: Floats, late: int, early: int, after: int, near: int) -> int:
    """Return the first node after `after` for which the later predecessor is better; n + 1 if there is none."""
    n = len(table) - 1
    low, high = after, n + 1
    j = min(max(near, after + 1), n)
    turn = 0
    while high - low > 1:
        gain, before = _gain(table, noise, late, early, j), _gain(table, noise, late, early, j - 1)
        if before > 0.0:
            high = j - 1
        elif gain > 0.0:
            return j
        else:
            low = j
        turn += 1
        slope = gain - before
        if turn < NEWTON_STEPS and slope > 0.0:
            stride = min(max(gain / slope, float(-n)), float(n))
            j = min(max(j - int(np.floor(stride)), low + 1), high, n)
        else:
            j = (low + high + 1) // 2
    return high


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Multiply and add with a single rounding."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


# numba's type annotations confuse an intrinsic with its typing function.
_fma: Any = intrinsic(_fused)


@kernel(error_model="numpy")
def exact_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel(error_model="numpy")
def exact_square(a: float) -> tuple[float, float]:
    """Return a² and its rounding error."""
    square = a * a
    return square, _fma(a, a, -square)


@kernel(error_model="numpy")
def exact_quotient(a: float, b: float) -> tuple[float, float]:
    """Return a / b and the remainder of the division."""
    quotient = a / b
    return quotient, _fma(-quotient, b, a)
