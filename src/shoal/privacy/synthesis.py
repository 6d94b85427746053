"""Records like those of a confidential table, drawn from a model of its noisy marginals: (ε, δ)-differential privacy.

1. The histogram of every column is measured with noise and fitted.
2. Bins are merged into classes that hold about equally many records, few enough for counts of pairs to stand out from
   their noise.
3. A tree of columns that depend on each other is chosen with noise, and its pairs of classes are measured with noise.
4. Records are drawn from the model of the tree; each gets a bin of its class, and a value of its bin.

Steps 1 and 3 look at the table and spend the budget, each knowing what came before; ρ adds up. All else is computed
from what they returned and from public knowledge: the number of records, the bins, the budget.

R. McKenna, G. Miklau and D. Sheldon, Winning the NIST contest (2021), with the histograms of Hay et al. (2010).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.types import Floats, Ints
from shoal.privacy.accounting import gaussian_scale
from shoal.privacy.bins import ColumnBins
from shoal.privacy.dependence_tree import choose_tree, score_pairs
from shoal.privacy.histograms import fit_counts, fit_levels, levels_of
from shoal.privacy.marginals import count, count_pairs, measure, sensitivity
from shoal.privacy.tree_model import fit_pair, spread, tree_model

__all__ = ["Spending", "Synthesis", "bins_of_numbers", "merge_bins", "share", "synthesise"]

# Of the budget: for histograms, for the choice of the tree; the rest is for pairs.
HISTOGRAMS, TREE = 0.5, 0.1
FEWEST, MOST = 2, 16  # classes of a column
COARSEST, FINEST = 2**8, 2**14  # bins of a column of numbers
ROUNDING = 1e-12  # what shares may exceed their sum by, kept as a reserve


@dataclass(frozen=True)
class Spending:
    """How the budget is spent, from public quantities alone.

    Parameters
    ----------
    rho
        The whole budget (zCDP).
    histogram_rho, tree_rho, pair_rho
        What each histogram, the tree and each of its pairs have of it.
    histogram_scales, pair_scale
        The standard deviations of the noise on counts of each column and of pairs.
    classes
        Into how many classes the bins of a column are merged at most.
    """

    rho: float
    histogram_rho: float
    tree_rho: float
    pair_rho: float
    histogram_scales: tuple[float, ...]
    pair_scale: float
    classes: int


@dataclass(frozen=True)
class Synthesis:
    """What was released: the values of the records drawn, column by column, and the pairs of columns in the tree."""

    values: Floats
    tree: tuple[tuple[int, int], ...]


def bins_of_numbers(rho: float, n: int, columns: int, contributions: int) -> int:
    """Return into how many bins a column of numbers is divided: about four for as many records as noise is wide.

    Too many cost little, because counts are fitted as a binary tree; too few blur a column that fills a small part of
    its domain.

    Examples
    --------
    >>> bins_of_numbers(0.02, 1000, 4, 1), bins_of_numbers(0.02, 100_000, 4, 1)
    (256, 8192)
    """
    scale = gaussian_scale(sensitivity(COARSEST.bit_length() - 1, contributions), _histogram_rho(rho, columns))
    return min(FINEST, max(COARSEST, 1 << math.floor(4 * n / scale).bit_length()))


def share(rho: float, n: int, bins: Sequence[ColumnBins], contributions: int) -> Spending:
    """Share a budget among what is measured.

    Examples
    --------
    >>> from shoal.privacy.bins import CategoryBins
    >>> spending = share(0.02, 1000, [CategoryBins(2), CategoryBins(3)], 1)
    >>> 2 * spending.histogram_rho + spending.pair_rho <= 0.02
    True
    """
    columns, rho = len(bins), rho * (1 - ROUNDING)
    tree = TREE if columns > 2 else 0.0
    histogram_rho = _histogram_rho(rho, columns)
    pair_rho = rho * (1 - HISTOGRAMS - tree) / (columns - 1) if columns > 1 else 0.0
    scales = tuple(gaussian_scale(sensitivity(_depth(column), contributions), histogram_rho) for column in bins)
    pair_scale = gaussian_scale(sensitivity(1, contributions), pair_rho) if columns > 1 else 0.0
    # A pair of classes is to hold twice as many records as its noise is wide.
    classes = min(MOST, max(FEWEST, math.isqrt(math.floor(n / (2 * pair_scale))))) if columns > 1 else 1
    return Spending(rho, histogram_rho, rho * tree, pair_rho, scales, pair_scale, classes)


def synthesise(
    values: Floats, bins: Sequence[ColumnBins], spending: Spending, contributions: int, rng: np.random.Generator | None
) -> Synthesis:
    """Draw as many records as there are from a model of the noisy marginals.

    Parameters
    ----------
    values
        The records, ``(n, d)``; categories as codes.
    bins
        The bins of each column.
    spending
        How the budget is spent.
    contributions
        How many records a unit has at most.
    rng
        Draw from this generator instead of OpenDP: reproducible and not private.
    """
    n = len(values)
    codes = np.column_stack([column.encode(values[:, j]) for j, column in enumerate(bins)])
    histograms = [
        _histogram(codes[:, j], column, spending.histogram_rho, contributions, rng) for j, column in enumerate(bins)
    ]
    merged = [merge_bins(h, spending.classes, b.ordered) for h, b in zip(histograms, bins, strict=True)]
    coarse: list[Floats] = [
        np.bincount(labels, weights=h).astype(np.float64) for labels, h in zip(merged, histograms, strict=True)
    ]
    classes = np.column_stack([labels[codes[:, j]] for j, labels in enumerate(merged)])

    scores = score_pairs(classes, coarse, spending.pair_scale)
    tree = choose_tree(scores, len(bins), contributions, spending.tree_rho, rng)
    pairs = {}
    for first, second in tree:
        counts = count_pairs(classes[:, first], classes[:, second], (len(coarse[first]), len(coarse[second])))
        noisy = measure([counts], contributions, spending.pair_rho, rng)[0]
        pairs[first, second] = fit_pair(noisy, coarse[first], coarse[second])

    draws = np.random.default_rng() if rng is None else rng
    drawn = tree_model(coarse, pairs).draw(n, draws)
    released = np.empty(values.shape)
    for j, column in enumerate(bins):
        fine = np.empty(n, dtype=np.int64)
        for label in range(len(coarse[j])):
            members, records = np.nonzero(merged[j] == label)[0], np.nonzero(drawn[:, j] == label)[0]
            fine[records] = members[spread(histograms[j][members], len(records), draws)]
        released[:, j] = column.draw(fine, draws)
    return Synthesis(released, tuple(tree))


def merge_bins(histogram: Floats, classes: int, ordered: bool) -> Ints:
    """Return the class of each bin: neighbours with about equally many records; of categories the rare ones together.

    Examples
    --------
    >>> merge_bins(np.array([1.0, 1.0, 8.0, 0.0, 2.0]), 3, ordered=True).tolist()
    [0, 0, 1, 2, 2]
    >>> merge_bins(np.array([1.0, 1.0, 8.0, 0.0, 2.0]), 3, ordered=False).tolist()
    [2, 2, 0, 2, 1]
    """
    if len(histogram) <= classes:
        return np.arange(len(histogram))
    if ordered:
        middles = np.cumsum(histogram) - histogram / 2
        labels = np.minimum(middles / histogram.sum() * classes, classes - 1).astype(np.int64)
    else:
        labels = np.full(len(histogram), classes - 1)
        largest = np.argsort(-histogram, kind="stable")[: classes - 1]
        labels[largest] = np.arange(len(largest))
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _histogram_rho(rho: float, columns: int) -> float:
    """Return what each histogram has of the budget."""
    return rho * (HISTOGRAMS if columns > 1 else 1.0) / columns


def _depth(column: ColumnBins) -> int:
    """Return how many tables of counts a histogram is measured by."""
    return max(1, (column.size - 1).bit_length()) if column.ordered else 1


def _histogram(
    codes: Ints, column: ColumnBins, rho: float, contributions: int, rng: np.random.Generator | None
) -> Floats:
    counts = count(codes, column.size)
    if column.ordered:
        return fit_levels(measure(levels_of(counts), contributions, rho, rng), column.size, len(codes))
    return fit_counts(measure([counts], contributions, rho, rng)[0], len(codes))
