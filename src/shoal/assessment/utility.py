"""How much a release lost: the same statistics before and after, column by column and between columns.

Arrays in, small results out: X holds the records as they were, Y the same records as released, NaN where a cell is
missing (in both). Nothing here validates.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shoal.core.measures import released_loss, scaling, standardise
from shoal.core.types import Floats
from shoal.masking.coding import Coding, Embedding
from shoal.tables.columns import Name

__all__ = [
    "LEVELS",
    "CategoryChange",
    "Coefficient",
    "ColumnChange",
    "Pair",
    "Propensity",
    "Utility",
    "association",
    "category_change",
    "column_change",
    "correlation",
    "covariance",
    "il1s",
    "kolmogorov_smirnov",
    "propensity",
    "rank_correlation",
    "regression",
    "utility",
    "wasserstein",
]

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# The classifier of `propensity` sees at most so many records of each table, and products of so many columns.
PROPENSITY_RECORDS = 20_000
PROPENSITY_PRODUCTS = 20


class Pair(NamedTuple):
    """A statistic before and after."""

    before: float
    after: float

    @property
    def change(self) -> float:
        """The relative change; NaN where the statistic was 0.

        Examples
        --------
        >>> Pair(4.0, 3.0).change
        -0.25
        """
        return (self.after - self.before) / abs(self.before) if self.before else float("nan")


@dataclass(frozen=True)
class ColumnChange:
    """What became of one column.

    Parameters
    ----------
    name
        The column.
    loss
        Its information loss, 100·SSE/SST.
    mean, sd
        Mean and standard deviation (n − 1).
    quantiles
        At each of `LEVELS`.
    wasserstein
        The mean distance that the distribution moved, in standard deviations of the original.
    kolmogorov_smirnov
        The largest difference of the two cumulative distributions, 0 to 1.
    rank_correlation
        Spearman's correlation of the values before and after; NaN for a constant column.
    values
        How many cells are not missing.
    """

    name: Name
    loss: float
    mean: Pair
    sd: Pair
    quantiles: tuple[Pair, ...]
    wasserstein: float
    kolmogorov_smirnov: float
    rank_correlation: float
    values: int = 0


@dataclass(frozen=True)
class CategoryChange:
    """What became of one column of categories.

    Parameters
    ----------
    name
        The column.
    kind
        ``"nominal"``, ``"ordinal"`` or ``"hierarchy"``.
    loss
        Its information loss, 100·SSE/SST where masking compares records.
    changed
        The share of cells that are released with another value.
    variation
        The total variation distance of the two distributions, 0 to 1: the least share of cells that would have to
        change to turn one into the other.
    values
        How many cells are not missing.
    """

    name: Name
    kind: str
    loss: float
    changed: float
    variation: float
    values: int = 0


@dataclass(frozen=True)
class Propensity:
    """Whether a classifier can tell released records from original ones.

    Parameters
    ----------
    pmse
        Mean squared distance of the fitted propensities from ½: 0 if it cannot, ¼ if it always can.
    auc
        How often it would rank a released record above an original one: 0.5 by chance, 1 always.
    records
        How many records of each table it saw.
    """

    pmse: float
    auc: float
    records: int


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of the user's regression, fitted before and after.

    Parameters
    ----------
    name
        The explaining column, or ``"(constant)"``.
    value
        The estimate.
    error
        The standard error of the estimate before.
    """

    name: str
    value: Pair
    error: float

    @property
    def inside(self) -> bool:
        """Whether the estimate after lies in the 95 % interval of the estimate before."""
        return bool(abs(self.value.after - self.value.before) <= 1.96 * self.error)


@dataclass(frozen=True)
class Utility:
    """What is left of the statistics.

    Parameters
    ----------
    loss
        Information loss of all columns, 100·SSE/SST.
    il1s
        Mean distance of a number from its original, in √2 standard deviations, in percent.
    columns
        Each column.
    covariance, correlation
        The matrices of the columns of numbers, before and after.
    association
        The matrices of all columns (`association`), before and after; NaN for two columns of numbers.
    propensity
        The classifier's result; None if no record is complete.
    model
        The coefficients of the user's regression; empty if none was named.
    """

    loss: float
    il1s: float
    columns: tuple[ColumnChange | CategoryChange, ...]
    covariance: tuple[Floats, Floats]
    correlation: tuple[Floats, Floats]
    association: tuple[Floats, Floats]
    propensity: Propensity | None
    model: tuple[Coefficient, ...] = ()

    @property
    def paired(self) -> bool:
        """Whether every record was measured beside its original."""
        return not np.isnan(self.loss)

    def with_losses(self, loss: float, losses: Sequence[float] | Floats) -> Utility:
        """Return the same with the information loss of all columns and of each."""
        columns = (replace(column, loss=float(lost)) for column, lost in zip(self.columns, losses, strict=True))
        return replace(self, loss=loss, columns=tuple(columns))

    def without_pairs(self) -> Utility:
        """Return the same without what needs every record beside its original: NaN stands there."""
        nan = float("nan")
        columns = (
            replace(column, loss=nan, rank_correlation=nan)
            if isinstance(column, ColumnChange)
            else replace(column, loss=nan, changed=nan)
            for column in self.columns
        )
        return replace(self, loss=nan, il1s=nan, columns=tuple(columns))

    @property
    def numbers(self) -> list[ColumnChange]:
        """The columns of numbers."""
        return [column for column in self.columns if isinstance(column, ColumnChange)]

    @property
    def categories(self) -> list[CategoryChange]:
        """The columns of categories."""
        return [column for column in self.columns if isinstance(column, CategoryChange)]

    @property
    def covariance_change(self) -> float:
        """The mean absolute change of a variance or covariance, in products of the standard deviations before."""
        before, after = self.covariance
        sd = np.sqrt(np.diag(before))
        above = np.triu(np.ones(before.shape, dtype=np.bool_)) & np.isfinite(after - before) & (np.outer(sd, sd) > 0)
        return float((np.abs(after - before)[above] / np.outer(sd, sd)[above]).mean()) if above.any() else 0.0

    def correlation_changes(self) -> list[tuple[Name, Name, Pair]]:
        """Return all pairs of columns of numbers that have a correlation, the one that changed most first."""
        return _changes([column.name for column in self.numbers], *self.correlation)

    def association_changes(self) -> list[tuple[Name, Name, Pair]]:
        """Return all pairs with a column of categories that have an association, the one that changed most first."""
        return _changes([column.name for column in self.columns], *self.association)

    def largest_correlation_change(self) -> tuple[Name, Name, Pair] | None:
        """Return the two columns whose correlation changed most, or None where there is no correlation."""
        return next(iter(self.correlation_changes()), None)


def _changes(names: list[Name], before: Floats, after: Floats) -> list[tuple[Name, Name, Pair]]:
    left, right = np.nonzero(np.triu(np.isfinite(after - before), 1))
    found = [
        (names[i], names[j], Pair(float(before[i, j]), float(after[i, j]))) for i, j in zip(left, right, strict=True)
    ]
    return sorted(found, key=lambda entry: -abs(entry[2].after - entry[2].before))


def utility(X: Floats, Y: Floats, names: list[Name], embedding: Embedding | None = None, *, seed: int = 0) -> Utility:
    """Measure everything but the user's model; without an embedding, all columns hold numbers.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [7.0], [9.0]])
    >>> found = utility(X, np.array([[2.0], [2.0], [8.0], [8.0]]), ["sales"])
    >>> found.loss, found.columns[0].mean
    (10.0, Pair(before=5.0, after=5.0))
    """
    scale = scaling(X)
    embedding = embedding or Embedding.of_numbers(X.shape[1])
    Z, W = embedding.apply(X, scale), embedding.apply(Y, scale)
    loss, losses = released_loss(Z, W, embedding.starts)
    columns = [
        column_change(name, X[:, j], Y[:, j], float(losses[j]))
        if coding is None
        else category_change(name, coding.kind, X[:, j], Y[:, j], float(losses[j]))
        for j, (name, coding) in enumerate(zip(names, embedding.codings, strict=True))
    ]
    P, Q = X[:, embedding.numbers], Y[:, embedding.numbers]
    return Utility(
        loss=loss,
        il1s=il1s(P, Q),
        columns=tuple(columns),
        covariance=(covariance(P), covariance(Q)),
        correlation=(correlation(P), correlation(Q)),
        association=(_associations(X, embedding), _associations(Y, embedding)),
        propensity=propensity(Z, W, seed=seed),
    )


def column_change(name: Name, x: Floats, y: Floats, loss: float) -> ColumnChange:
    """Compare one column with itself; missing cells do not count."""
    seen = ~np.isnan(x)
    x, y = x[seen], y[seen]
    if not len(x):
        nothing = Pair(float("nan"), float("nan"))
        return ColumnChange(name, loss, nothing, nothing, (nothing,) * len(LEVELS), 0.0, 0.0, float("nan"))
    quantiles = zip(np.quantile(x, LEVELS).tolist(), np.quantile(y, LEVELS).tolist(), strict=True)
    sd = Pair(_sd(x), _sd(y))
    return ColumnChange(
        name=name,
        loss=loss,
        mean=Pair(float(x.mean()), float(y.mean())),
        sd=sd,
        quantiles=tuple(Pair(*pair) for pair in quantiles),
        wasserstein=wasserstein(x, y) / (sd.before or 1.0),
        kolmogorov_smirnov=kolmogorov_smirnov(x, y),
        rank_correlation=rank_correlation(x, y),
        values=len(x),
    )


def category_change(name: Name, kind: str, x: Floats, y: Floats, loss: float) -> CategoryChange:
    """Compare one column of codes with itself; missing cells do not count.

    Examples
    --------
    >>> found = category_change("job", "nominal", np.array([0.0, 0, 1, 1, 2]), np.array([0.0, 1, 1, 1, 1]), 0.0)
    >>> found.changed, round(found.variation, 6)
    (0.4, 0.4)
    """
    seen = ~np.isnan(x)
    before, after = x[seen].astype(np.int64), y[seen].astype(np.int64)
    n, values = max(1, len(before)), int(max(before.max(initial=0), after.max(initial=0))) + 1
    moved = np.abs(np.bincount(before, minlength=values) - np.bincount(after, minlength=values)).sum() / 2
    return CategoryChange(name, kind, loss, float((before != after).sum() / n), float(moved / n), len(before))


def association(x: Floats, y: Floats, *, x_nominal: bool, y_nominal: bool) -> float:
    """Return how far one column tells the other, 0 to 1, over the records that have both; NaN if one is constant.

    Of two columns of values without an order this is Cramér's V; of one such column and one of numbers or ranks the
    correlation ratio; of two columns with an order the absolute correlation. O(n + number of pairs of values).

    Examples
    --------
    >>> sex, job = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 2, 2])
    >>> round(association(sex, job, x_nominal=True, y_nominal=True), 6)
    1.0
    """
    seen = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[seen], y[seen]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return float("nan")
    if not x_nominal and not y_nominal:
        return abs(float(correlation(np.column_stack([x, y]))[0, 1]))
    if x_nominal and y_nominal:
        rows, columns = int(x.max()) + 1, int(y.max()) + 1
        counts = np.bincount((x * columns + y).astype(np.int64), minlength=rows * columns).reshape(rows, columns)
        left, right = counts.sum(axis=1), counts.sum(axis=0)
        share = (np.square(counts) / np.maximum(np.outer(left, right), 1)).sum() - 1
        return float(np.sqrt(max(0.0, share) / (min((left > 0).sum(), (right > 0).sum()) - 1)))
    codes, values = (x, y) if x_nominal else (y, x)
    group, z = codes.astype(np.int64), standardise(values[:, None])[:, 0]
    between = np.square(np.bincount(group, z)) / np.maximum(np.bincount(group), 1)
    return float(np.sqrt(min(1.0, between.sum() / np.square(z).sum())))


def _associations(X: Floats, embedding: Embedding) -> Floats:
    """Return the association of every two columns of which one holds categories; NaN for the others."""
    d = X.shape[1]
    found = np.full((d, d), np.nan)
    nominal = embedding.without_order
    columns = [_ranks(X[:, j], coding) for j, coding in enumerate(embedding.codings)]
    for i in range(d):
        for j in range(i + 1, d):
            if embedding.codings[i] is not None or embedding.codings[j] is not None:
                found[i, j] = association(columns[i], columns[j], x_nominal=nominal[i], y_nominal=nominal[j])
    return found


def _ranks(x: Floats, coding: Coding | None) -> Floats:
    """Return the ranks of ordinal values, any others as they are."""
    if coding is None or not coding.ordered:
        return x
    return np.where(np.isnan(x), np.nan, coding.coordinates[np.nan_to_num(x).astype(np.int64), 0])


def il1s(X: Floats, Y: Floats) -> float:
    """Return 100 times the mean of |x − y| / (√2 S), S the standard deviation (n − 1) of the column before.

    J. M. Mateo-Sanz, F. Sebé and J. Domingo-Ferrer (2004) scale so that the figure does not depend on a column's
    unit or on values near zero. Constant columns do not count.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> round(il1s(X, np.array([[1.0], [1.0]])), 6)
    50.0
    """
    shares = []
    for x, y in zip(X.T, Y.T, strict=True):
        seen = ~np.isnan(x)
        sd = _sd(x[seen])
        if sd > 0:
            shares.append(np.abs(x[seen] - y[seen]) / (np.sqrt(2) * sd))
    return 100 * float(np.concatenate(shares).mean()) if shares else 0.0


def wasserstein(x: Floats, y: Floats) -> float:
    """Return the mean distance between the sorted values: the first Wasserstein distance of two equal counts.

    Examples
    --------
    >>> wasserstein(np.array([1.0, 5.0]), np.array([4.0, 1.0]))
    0.5
    """
    return float(np.abs(np.sort(x) - np.sort(y)).mean())


def kolmogorov_smirnov(x: Floats, y: Floats) -> float:
    """Return the largest difference of the two cumulative distributions.

    Examples
    --------
    >>> kolmogorov_smirnov(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.5, 1.5, 3.5, 3.5]))
    0.25
    """
    x, y = np.sort(x), np.sort(y)
    both = np.concatenate([x, y])
    steps = np.searchsorted(x, both, side="right") - np.searchsorted(y, both, side="right")
    return float(np.abs(steps).max() / len(x))


def rank_correlation(x: Floats, y: Floats) -> float:
    """Return Spearman's rank correlation; NaN where a column is constant.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0]))
    1.0
    """
    from scipy.stats import rankdata

    a, b = rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2
    length = np.sqrt((a @ a) * (b @ b))
    return float(min(1.0, a @ b / length)) if length > 0 else float("nan")


def covariance(X: Floats) -> Floats:
    """Return the covariances (n − 1) over the records that have both cells.

    Examples
    --------
    >>> covariance(np.array([[1.0, 2.0], [3.0, 6.0], [8.0, np.nan]])).round(6).tolist()
    [[13.0, 4.0], [4.0, 8.0]]
    """
    scale = scaling(X)
    n, products, _ = _together(scale.apply(X))
    unit = 2 * scale.reach * scale.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = products / (n - 1) * np.outer(unit, unit)
    return np.where(n > 1, found, np.nan)


def correlation(X: Floats) -> Floats:
    """Return the correlations over the records that have both cells; NaN where a column is constant.

    Examples
    --------
    >>> correlation(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    n, products, own = _together(scaling(X).apply(X))
    with np.errstate(invalid="ignore", divide="ignore"):
        # Rounding leaves about 1e-16 n of a column that is constant where the other is seen.
        length = np.sqrt(np.where(own > 1e-12 * n, own * own.T, np.nan))
        found: Floats = np.clip(products / length, -1.0, 1.0)
    return found


def propensity(Z: Floats, W: Floats, *, seed: int = 0) -> Propensity | None:
    """Fit a logistic regression that guesses which table a record is from, and return how well it does.

    The propensity-score measure of Woo, Reiter, Oganian and Karr (2009). The classifier sees the standardised columns,
    their squares and their products: group means keep every mean, so a linear one would be blind by construction.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    complete = np.flatnonzero(~np.isnan(Z).any(axis=1))
    if len(complete) < 2:
        return None
    if len(complete) > PROPENSITY_RECORDS:
        complete = np.random.default_rng(seed).choice(complete, PROPENSITY_RECORDS, replace=False)
    features = standardise(np.vstack([_features(Z[complete]), _features(W[complete])]))
    released = np.repeat([0, 1], len(complete))
    classifier = LogisticRegression(solver="newton-cholesky", max_iter=200)
    with warnings.catch_warnings():
        # Where nothing tells the tables apart there is nothing to descend to, and the solver says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(features, released)
    score = classifier.predict_proba(features)[:, 1]
    return Propensity(float(np.square(score - 0.5).mean()), _auc(score), len(complete))


def regression(
    before: tuple[Floats, Floats], after: tuple[Floats, Floats], names: list[str]
) -> tuple[Coefficient, ...]:
    """Fit y on the columns of X by least squares, (y, X) before and (y, X) after, over the complete records.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> constant, slope = regression((x + 1, x[:, None]), (2 * x + 1, x[:, None]), ["x"])
    >>> round(slope.value.before, 6), round(slope.value.after, 6)
    (1.0, 2.0)
    """
    (old, error), (new, _) = _least_squares(*before), _least_squares(*after)
    return tuple(
        Coefficient(name, Pair(float(b), float(a)), float(e))
        for name, b, a, e in zip(["(constant)", *names], old, new, error, strict=True)
    )


def _least_squares(y: Floats, X: Floats) -> tuple[Floats, Floats]:
    design = np.column_stack([np.ones(len(y)), X])
    complete = ~np.isnan(np.column_stack([design, y])).any(axis=1)
    design, y = design[complete], y[complete]
    coefficients, _, rank, _ = np.linalg.lstsq(design, y)
    residuals = y - design @ coefficients
    freedom = len(y) - rank
    variance = residuals @ residuals / freedom if freedom > 0 else np.nan
    return coefficients, np.sqrt(variance * np.diag(np.linalg.pinv(design.T @ design)))


def _together(Z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return for columns i and j, over the records that have both: their number, Σ dᵢdⱼ and Σ dᵢ² of the deviations."""
    seen, cells = (~np.isnan(Z)).astype(np.float64), np.nan_to_num(Z)
    n, sums = seen.T @ seen, cells.T @ seen
    with np.errstate(invalid="ignore", divide="ignore"):
        return n, cells.T @ cells - sums * sums.T / n, np.square(cells).T @ seen - np.square(sums) / n


def _features(Z: Floats) -> Floats:
    """Return the columns, their squares and, unless there are very many, their products."""
    d = Z.shape[1]
    left, right = np.triu_indices(d) if d <= PROPENSITY_PRODUCTS else (np.arange(d), np.arange(d))
    return np.column_stack([Z, Z[:, left] * Z[:, right]])


def _auc(score: Floats) -> float:
    """Return how often a score of the second half exceeds one of the first half; a tie counts half."""
    from scipy.stats import rankdata

    n = len(score) // 2
    return float((rankdata(score)[n:].sum() - n * (n + 1) / 2) / n**2)


def _sd(x: Floats) -> float:
    # Deviations from a value of the column: equal values have exactly 0, whatever their size.
    return float(np.std(x - x[0], ddof=1)) if len(x) > 1 else 0.0
