"""Counts of codes in single columns, column pairs and nested ranges, measured with noise and fitted to the public n.

Neighbouring tables have the same number of records and differ in at most m records, all of one unit (in a single record
if m = 1). In a table of counts, each of the m records leaves one cell and enters another. In the worst case, all m
records share the same two cells, and the counts change by m·√2 in Euclidean distance, and by 2m in sum. L tables of
counts of the same records change by at most m·√(2L) in Euclidean distance.

A table of counts is measured at several levels: its halves along every axis, its quarters, and so on down to the cells.
The measurements of each range are averaged from the cells upwards. Then n is distributed from the whole table
downwards, so that the parts of a range are as near as possible to their noisy counts (M. Hay, V. Rastogi, G. Miklau and
D. Suciu, Boosting the accuracy of differentially private histograms through consistency, 2010; extended here to two
axes and to counts of at least 0). Large ranges then have far less noise than the sums of their cells. A domain that is
much too wide therefore costs little, and the dependence between columns is not lost.

The fit uses only noisy counts and the public n, so it costs no budget.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.types import Bools, Floats, Ints
from shoal.privacy.noise import noisy_counts

__all__ = ["count", "count_pairs", "depth_of", "fit_nested", "measure", "nearest", "nest", "sensitivity"]


def sensitivity(tables: int, contributions: int) -> float:
    """Return the greatest Euclidean distance by which `tables` tables of counts can change, rounded up.

    Examples
    --------
    >>> sensitivity(2, 3) == math.nextafter(6, math.inf)
    True
    """
    return math.nextafter(contributions * math.sqrt(2 * tables), math.inf)


def count(codes: Ints, size: int) -> Ints:
    """Count the records with each code of one column."""
    return np.bincount(codes, minlength=size).astype(np.int64)


def count_pairs(first: Ints, second: Ints, sizes: tuple[int, int]) -> Ints:
    """Count the records with each pair of codes of two columns, with the first column along the rows.

    Examples
    --------
    >>> count_pairs(np.array([0, 1, 1]), np.array([2, 0, 0]), (2, 3)).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    return count(first * sizes[1] + second, sizes[0] * sizes[1]).reshape(sizes)


def measure(tables: list[Ints], contributions: int, rho: float, rng: np.random.Generator | None) -> list[Ints]:
    """Add noise to several tables of counts of the same records; together the tables spend ρ.

    Examples
    --------
    >>> measure([np.array([3, 1]), np.array([[2, 2]])], 1, 1e9, None)
    [array([3, 1]), array([[2, 2]])]
    """
    cells = np.concatenate([table.ravel() for table in tables])
    noisy = noisy_counts(cells, sensitivity(len(tables), contributions), rho, rng)
    ends = np.cumsum([table.size for table in tables])[:-1]
    return [part.reshape(table.shape) for part, table in zip(np.split(noisy, ends), tables, strict=True)]


EMPTY, SMALL = 1.5, 0.25  # a part below 1.5 standard deviations and 25 % of its range may be noise alone
NEVER = -1e18  # less than any noisy count, so that the nearest valid count is 0

Shape = tuple[int, ...]


def depth_of(shape: Shape) -> int:
    """Return the number of levels at which a table of this shape is measured.

    Examples
    --------
    >>> depth_of((256,)), depth_of((2, 5))
    (8, 3)
    """
    return max(1, *((size - 1).bit_length() for size in shape))


def nest(counts: Ints) -> list[Ints]:
    """Return the counts of all ranges by level, from halves to cells; axes are padded to a power of 2.

    Examples
    --------
    >>> [level.tolist() for level in nest(np.array([1, 2, 3]))]
    [[3, 3], [1, 2, 3, 0]]
    >>> [level.tolist() for level in nest(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]))]
    [[[3, 7], [11, 15]], [[1, 2, 3, 4], [5, 6, 7, 8]]]
    """
    shapes = _shapes(counts.shape)
    full = np.pad(counts, [(0, end - size) for end, size in zip(shapes[-1], counts.shape, strict=True)])
    return [_parts(full, shape).sum(axis=1).reshape(shape) for shape in shapes[1:]]


def fit_nested(levels: list[Ints], shape: Shape, n: int, scale: float = 0.0) -> Floats:
    """Return the table of counts with sum n that best fits the noisy counts of nested ranges.

    `levels` is a result of `nest` with noise added. `scale` is the standard deviation of the noise; if it is positive,
    small parts of ranges that may be noise alone become 0.

    Examples
    --------
    >>> fit_nested([np.array([4, 2]), np.array([1, 3, 3, -1])], (3,), 6).tolist()
    [1.0, 3.0, 2.0]
    """
    # Upwards: average each range's own measurement with the sum of its parts, weighted by their precision.
    averaged: list[Floats] = [levels[-1].astype(np.float64)]
    variances = [1.0]
    for level in levels[-2::-1]:
        parts = _parts(averaged[-1], level.shape)
        weight = parts.shape[1] * variances[-1] / (1 + parts.shape[1] * variances[-1])
        averaged.append(weight * level + (1 - weight) * parts.sum(axis=1).reshape(level.shape))
        variances.append(weight)
    # Downwards: divide each range's count among its parts; parts outside the table receive 0.
    fitted = np.full((1,) * len(shape), float(n))
    for counts, variance in zip(averaged[::-1], variances[::-1], strict=True):
        noisy = np.where(_within(counts.shape, shape), counts, NEVER)
        shared = nearest(_parts(noisy, fitted.shape), fitted.ravel())
        fitted = _whole(_without_noise(shared, scale * math.sqrt(variance)), fitted.shape, counts.shape)
    return fitted[tuple(slice(size) for size in shape)]


def _without_noise(shared: Floats, scale: float) -> Floats:
    """Move the counts of small parts that may be noise alone to the other parts of their range.

    If a domain is much too wide, most ranges are empty. The few records that noise would place at the far end then
    cause more error than the loss of all small parts.
    """
    small = (shared < EMPTY * scale) & (shared < SMALL * shared.sum(axis=1, keepdims=True))
    remaining = np.where(small, 0.0, shared)
    totals = remaining.sum(axis=1, keepdims=True)
    factors = np.divide(shared.sum(axis=1, keepdims=True), totals, out=np.ones_like(totals), where=totals > 0)
    result: Floats = remaining * factors
    return result


def nearest(noisy: Floats, totals: Floats) -> Floats:
    """Return, per row, the nearest nonnegative counts (least squares) that sum to the row's total.

    Examples
    --------
    >>> nearest(np.array([[5.0, 2.0, -3.0]]), np.array([6.0])).tolist()
    [[4.5, 1.5, 0.0]]
    """
    falling = -np.sort(-noisy, axis=1)
    shifts = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, noisy.shape[1] + 1)
    last = np.maximum((falling > shifts).sum(axis=1) - 1, 0)
    fitted: Floats = np.maximum(noisy - shifts[np.arange(len(noisy)), last][:, None], 0.0)
    return fitted


def _shapes(shape: Shape) -> list[Shape]:
    """Return the shape of every level, from one range to the cells."""
    depths = [(size - 1).bit_length() for size in shape]
    return [tuple(2 ** min(level, depth) for depth in depths) for level in range(depth_of(shape) + 1)]


def _parts(table: NDArray[Any], ranges: Shape) -> NDArray[Any]:
    """Return the parts of every range, one row per range."""
    sizes = [size for ends in zip(ranges, _ratios(table.shape, ranges), strict=True) for size in ends]
    axes = [*range(0, len(sizes), 2), *range(1, len(sizes), 2)]
    return table.reshape(sizes).transpose(axes).reshape(math.prod(ranges), -1)


def _whole(parts: Floats, ranges: Shape, shape: Shape) -> Floats:
    """Return the table assembled from its parts, which are given as one row per range."""
    axes = [axis for pair in zip(range(len(shape)), range(len(shape), 2 * len(shape)), strict=True) for axis in pair]
    return parts.reshape(*ranges, *_ratios(shape, ranges)).transpose(axes).reshape(shape)


def _ratios(shape: Shape, ranges: Shape) -> list[int]:
    return [size // parts for size, parts in zip(shape, ranges, strict=True)]


def _within(level: Shape, shape: Shape) -> Bools:
    """Return a mask of the ranges of a level that contain cells of the table."""
    ends = _shapes(shape)[-1]
    inside = [np.arange(parts) * (end // parts) < size for parts, end, size in zip(level, ends, shape, strict=True)]
    within: Bools = np.logical_and.reduce(np.meshgrid(*inside, indexing="ij"))
    return within
