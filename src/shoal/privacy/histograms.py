"""The histogram of one column, fitted to noisy counts: no count below 0, all of them n together.

A column of numbers is measured as a binary tree of counts: its two halves, its four quarters, and so on down to the
bins. What the levels say of each node is averaged from the bins upwards, then n is given out from the root downwards
(M. Hay, V. Rastogi, G. Miklau and D. Suciu, Boosting the accuracy of differentially private histograms through
consistency, 2010). This leaves far less noise in ranges of many bins than the bins by themselves would have, so that a
domain which is much too wide costs little. Categories have no order: their counts are measured once, and brought to the
nearest histogram.

All of this is computed from noisy counts and the public n: it costs no budget.
"""

from __future__ import annotations

import numpy as np

from shoal.core.types import Floats, Ints

__all__ = ["fit_counts", "fit_levels", "levels_of"]


def levels_of(counts: Ints) -> list[Ints]:
    """Return the counts of 2, 4, 8, … equal ranges of bins, down to the bins, filled up to a power of 2.

    Examples
    --------
    >>> [level.tolist() for level in levels_of(np.array([1, 2, 3]))]
    [[3, 3], [1, 2, 3, 0]]
    """
    depth = max(1, int(len(counts) - 1).bit_length())
    padded = np.zeros(2**depth, dtype=np.int64)
    padded[: len(counts)] = counts
    return [padded.reshape(2**level, -1).sum(axis=1) for level in range(1, depth + 1)]


def fit_levels(levels: list[Ints], size: int, n: int) -> Floats:
    """Return the histogram of `size` bins with n records that the noisy levels of a binary tree speak for.

    Examples
    --------
    >>> fit_levels([np.array([4, 2]), np.array([1, 3, 3, -1])], 3, 6).tolist()
    [1.0, 3.0, 2.0]
    """
    # Upwards: a node has been measured itself, and as the sum of its children; the better one counts for more.
    upward: list[Floats] = [levels[-1].astype(np.float64)]
    variance = 1.0
    for level in levels[-2::-1]:
        weight = 2 * variance / (1 + 2 * variance)
        upward.append(weight * level + (1 - weight) * upward[-1].reshape(-1, 2).sum(axis=1))
        variance = weight
    # Downwards: children share what their parent has; a range beyond the last bin gets nothing.
    counts = np.array([float(n)])
    for averaged in upward[::-1]:
        pairs = averaged.reshape(-1, 2)
        left = np.clip((counts + pairs[:, 0] - pairs[:, 1]) / 2, 0, counts)
        middle = (2 * np.arange(len(counts)) + 1) * (2 ** len(levels) // len(averaged))
        left = np.where(middle < size, left, counts)
        counts = np.column_stack([left, counts - left]).ravel()
    return counts[:size]


def fit_counts(noisy: Ints, n: int) -> Floats:
    """Return the nearest counts (least squares) that are not below 0 and sum to n.

    Examples
    --------
    >>> fit_counts(np.array([5, 2, -3]), 6).tolist()
    [4.5, 1.5, 0.0]
    """
    falling = np.sort(noisy)[::-1].astype(np.float64)
    shifts = (np.cumsum(falling) - n) / np.arange(1, len(noisy) + 1)
    shift = shifts[np.nonzero(falling > shifts)[0][-1]]
    fitted: Floats = np.maximum(noisy - shift, 0.0)
    return fitted
