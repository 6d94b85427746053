"""Synthetic records with (ε, δ)-differential privacy, drawn from a model of noisy marginals.

1. The histogram of every column is measured with noise and fitted.
2. Bins are merged into classes of about equally many records, few enough for the counts of pairs to exceed their noise.
3. A tree of dependent columns is chosen with noise (using fewer classes), and its pairs of classes are measured with
   noise.
4. Records are drawn from the model of the tree; each gets a bin from its class and a value from its bin.

Steps 1 and 3 read the table and spend the budget; each may use earlier results, and their ρ add up. The other steps use
only these results and public knowledge: the number of records, the bins, the budget.

R. McKenna, G. Miklau and D. Sheldon, Winning the NIST contest (2021), with the nested counts of Hay et al. (2010).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.privacy.budgets import check_delta, gaussian_scale, rho_of
from shoal.privacy.confidential_table import ConfidentialTable
from shoal.privacy.counts import count, count_pairs, depth_of, fit_nested, measure, nearest, nest, sensitivity
from shoal.privacy.dependence_tree import choose_tree, score_pairs, spread, tree_model, with_sums
from shoal.privacy.domains import CategoryBins, ColumnBins, NumberBins, WholeBins

__all__ = [
    "CountBudget",
    "CountPlan",
    "Synthesis",
    "bins_of_numbers",
    "merge_bins",
    "plan_counts",
    "share",
    "synthesise",
]

# Shares of the budget for histograms and for the choice of the tree; the rest is for pairs.
HISTOGRAMS, TREE = 0.5, 0.1
FEWEST, MOST = 4, 32  # least and greatest number of classes per column
SCORED = 6  # classes per column for choosing the tree: few, because histogram errors look like dependence
CHANCE = 4  # effect of chance on the count of a pair of classes, in records, in addition to noise
COARSEST, FINEST = 2**8, 2**14  # bins of a numeric column
ROUNDING = 1e-12  # reserve for rounding errors in sums of shares
WIDEST = 2.0**40  # limit on the standard deviation of noise on 64-bit counts


@dataclass(frozen=True)
class CountBudget:
    """The budgets of all count measurements, computed from public quantities alone."""

    rho: float  # the whole budget (zCDP)
    # The budgets of each histogram, of the tree and of each of its pairs.
    histogram_rho: float
    tree_rho: float
    pair_rho: float
    # The standard deviations of the noise on the counts of each column and of pairs.
    histogram_scales: tuple[float, ...]
    pair_scale: float
    classes: int  # the greatest number of classes per column


@dataclass(frozen=True)
class Synthesis:
    """The synthetic records: their values by column, and the pairs of columns in the tree."""

    values: Floats
    tree: tuple[tuple[int, int], ...]


def bins_of_numbers(rho: float, n: int, columns: int, contributions: int) -> int:
    """Return the number of bins of a numeric column: about 4n divided by the noise scale, as a power of 2.

    Too many bins cost little, because counts are fitted as a binary tree; too few blur a column that fills a small part
    of its domain.

    Examples
    --------
    >>> bins_of_numbers(0.02, 1000, 4, 1), bins_of_numbers(0.02, 100_000, 4, 1)
    (256, 8192)
    """
    scale = gaussian_scale(sensitivity(COARSEST.bit_length() - 1, contributions), _histogram_rho(rho, columns))
    return min(FINEST, max(COARSEST, 1 << math.floor(4 * n / scale).bit_length()))


def share(rho: float, n: int, bins: Sequence[ColumnBins], contributions: int) -> CountBudget:
    """Divide a budget among the measurements.

    Examples
    --------
    >>> from shoal.privacy.domains import CategoryBins
    >>> spending = share(0.02, 1000, [CategoryBins(2), CategoryBins(3)], 1)
    >>> 2 * spending.histogram_rho + spending.pair_rho <= 0.02
    True
    """
    columns, rho = len(bins), rho * (1 - ROUNDING)
    tree = TREE if columns > 2 else 0.0
    histogram_rho = _histogram_rho(rho, columns)
    pair_rho = rho * (1 - HISTOGRAMS - tree) / max(1, columns - 1)
    scales = tuple(gaussian_scale(sensitivity(_depth(column), contributions), histogram_rho) for column in bins)
    if columns == 1:
        return CountBudget(rho, histogram_rho, 0.0, 0.0, scales, 0.0, 1)
    # Choose the number of classes so that a pair of classes contains about as many records as the noise on its count.
    once = gaussian_scale(sensitivity(1, contributions), pair_rho)
    classes = 2 ** round(math.log2(min(MOST, max(FEWEST, math.sqrt(n / (once + CHANCE))))))
    pair_scale = gaussian_scale(sensitivity(depth_of((classes, classes)), contributions), pair_rho)
    return CountBudget(rho, histogram_rho, rho * tree, pair_rho, scales, pair_scale, classes)


def synthesise(
    values: Floats,
    bins: Sequence[ColumnBins],
    spending: CountBudget,
    contributions: int,
    rng: np.random.Generator | None,
) -> Synthesis:
    """Draw n synthetic records from a model of the noisy marginals of n confidential records.

    `values` has shape ``(n, d)``, with categories as codes; `contributions` is the greatest number of records of a
    unit. With `rng` the result is reproducible and not private.
    """
    n = len(values)
    codes = np.column_stack([column.encode(values[:, j]) for j, column in enumerate(bins)])
    histograms = [
        _histogram(codes[:, j], column, spending.histogram_rho, contributions, rng) for j, column in enumerate(bins)
    ]
    few = [_Classes(h, b, min(SCORED, spending.classes)) for h, b in zip(histograms, bins, strict=True)]
    scores = score_pairs(_classified(codes, few), [column.histogram for column in few], spending.pair_scale)
    tree = choose_tree(scores, len(bins), contributions, spending.tree_rho, rng)

    classes = [_Classes(h, b, spending.classes) for h, b in zip(histograms, bins, strict=True)]
    merged, coarse = _classified(codes, classes), [column.histogram for column in classes]
    pairs = {}
    for first, second in tree:
        counts = count_pairs(merged[:, first], merged[:, second], (len(coarse[first]), len(coarse[second])))
        fitted = fit_nested(measure(nest(counts), contributions, spending.pair_rho, rng), counts.shape, n)
        pairs[first, second] = with_sums(fitted, coarse[first], coarse[second])

    draws = np.random.default_rng() if rng is None else rng
    drawn = tree_model(coarse, pairs).draw(n, draws)
    released = [
        b.draw(column.bins_of(drawn[:, j], draws), draws)
        for j, (b, column) in enumerate(zip(bins, classes, strict=True))
    ]
    return Synthesis(np.column_stack(released), tuple(tree))


class _Classes:
    """The classes into which the bins of a column are merged, with their counts."""

    def __init__(self, histogram: Floats, bins: ColumnBins, limit: int) -> None:
        self.counts = histogram
        self.labels = merge_bins(histogram, limit, bins.ordered)
        self.histogram: Floats = np.bincount(self.labels, weights=histogram).astype(np.float64)

    def bins_of(self, drawn: Ints, rng: np.random.Generator) -> Ints:
        """Return a bin for each record, drawn from its class in proportion to the bins' noisy counts."""
        fine = np.empty(len(drawn), dtype=np.int64)
        for label in range(len(self.histogram)):
            members, records = np.nonzero(self.labels == label)[0], np.nonzero(drawn == label)[0]
            fine[records] = members[spread(self.counts[members], len(records), rng)]
        return fine


def _classified(codes: Ints, classes: Sequence[_Classes]) -> Ints:
    """Return the class of each record in each column."""
    return np.column_stack([column.labels[codes[:, j]] for j, column in enumerate(classes)])


def merge_bins(histogram: Floats, classes: int, ordered: bool) -> Ints:
    """Merge bins into classes and return the class of each bin.

    Ordered bins are merged with their neighbours into classes of about equally many records; rare categories share a
    class.

    Examples
    --------
    >>> merge_bins(np.array([1.0, 1.0, 8.0, 0.0, 2.0]), 3, ordered=True).tolist()
    [0, 0, 1, 2, 2]
    >>> merge_bins(np.array([1.0, 1.0, 8.0, 0.0, 2.0]), 3, ordered=False).tolist()
    [2, 2, 0, 2, 1]
    """
    bins = np.arange(len(histogram))
    if not ordered:  # most frequent first, so that columns have similar classes
        labels = np.empty_like(bins)
        labels[np.argsort(-histogram, kind="stable")] = np.minimum(bins, classes - 1)
        return labels
    if len(bins) <= classes:
        return bins
    middles = np.cumsum(histogram) - histogram / 2
    labels = np.minimum(middles / histogram.sum() * classes, classes - 1).astype(np.int64)
    return np.unique(labels, return_inverse=True)[1]


def _histogram_rho(rho: float, columns: int) -> float:
    """Return the budget of each histogram."""
    return rho * (HISTOGRAMS if columns > 1 else 1.0) / columns


def _depth(column: ColumnBins) -> int:
    """Return the number of tables of counts that measure a histogram."""
    return depth_of((column.size,)) if column.ordered else 1


def _histogram(
    codes: Ints, column: ColumnBins, rho: float, contributions: int, rng: np.random.Generator | None
) -> Floats:
    counts = count(codes, column.size)
    if column.ordered:
        scale = gaussian_scale(sensitivity(_depth(column), contributions), rho)
        return fit_nested(measure(nest(counts), contributions, rho, rng), counts.shape, len(codes), scale)
    noisy = measure([counts], contributions, rho, rng)[0].astype(np.float64)
    fitted: Floats = nearest(noisy[None], np.array([float(len(codes))]))[0]
    return fitted


@dataclass(frozen=True)
class CountPlan:
    """A plan for measuring the counts of a joint release, made from public figures alone."""

    delta: float  # δ of the guarantee
    bins: tuple[ColumnBins, ...]  # the bins of each column
    spending: CountBudget  # the division of the budget


def plan_counts(prepared: ConfidentialTable, epsilon: float, delta: float | None) -> CountPlan:
    """Plan the measurement of column and pair counts for a budget (ε, δ)."""
    n, columns = len(prepared.X), len(prepared.published)
    delta = check_delta(delta, n)
    rho = rho_of(epsilon, delta)
    bins: list[ColumnBins] = []
    if rho > 0:
        limit = bins_of_numbers(rho, n, columns, prepared.contributions)
        for lower, upper, integer in zip(prepared.bounds.lower, prepared.bounds.upper, prepared.whole, strict=True):
            ends = float(lower), float(upper)
            bins.append(WholeBins(*ends, limit) if integer else NumberBins(*ends, limit))
        bins += [CategoryBins(len(answer.categories)) for answer in prepared.answers]
        spending = share(rho, n, bins, prepared.contributions)
    if rho <= 0 or max(*spending.histogram_scales, spending.pair_scale) > WIDEST:
        raise InputError(
            f"{parameter('epsilon')} and {parameter('delta')} leave too small a budget for counts, got {epsilon:g} and "
            f"{delta:g}. Use larger values or fewer columns."
        )
    return CountPlan(delta, tuple(bins), spending)
