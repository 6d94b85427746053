"""How much a release lost: the same statistics before and after, column by column and between columns.

Arrays in, small results out: X holds the records as they were, Y the same records as released, NaN where a cell is
missing (in both). Nothing here validates.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.core.measures import released_loss, scaling, standardise
from shoal.core.types import Floats
from shoal.tables.columns import Name

__all__ = [
    "LEVELS",
    "Coefficient",
    "ColumnChange",
    "Pair",
    "Propensity",
    "Utility",
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
        Mean distance of a value from its original, in √2 standard deviations, in percent.
    columns
        Each column.
    covariance, correlation
        The matrices before and after.
    propensity
        The classifier's result; None if no record is complete.
    model
        The coefficients of the user's regression; empty if none was named.
    """

    loss: float
    il1s: float
    columns: tuple[ColumnChange, ...]
    covariance: tuple[Floats, Floats]
    correlation: tuple[Floats, Floats]
    propensity: Propensity | None
    model: tuple[Coefficient, ...] = ()

    @property
    def covariance_change(self) -> float:
        """The mean absolute change of a variance or covariance, in products of the standard deviations before."""
        before, after = self.covariance
        sd = np.sqrt(np.diag(before))
        above = np.triu(np.ones(before.shape, dtype=np.bool_)) & np.isfinite(after - before) & (np.outer(sd, sd) > 0)
        return float((np.abs(after - before)[above] / np.outer(sd, sd)[above]).mean()) if above.any() else 0.0

    def largest_correlation_change(self) -> tuple[Name, Name, Pair] | None:
        """Return the two columns whose correlation changed most, or None where there is no correlation."""
        before, after = self.correlation
        above = np.triu(np.isfinite(after - before), 1)
        if not above.any():
            return None
        i, j = np.unravel_index(np.argmax(np.where(above, np.abs(after - before), -1.0)), above.shape)
        return self.columns[i].name, self.columns[j].name, Pair(float(before[i, j]), float(after[i, j]))


def utility(X: Floats, Y: Floats, names: list[Name], *, seed: int = 0) -> Utility:
    """Measure everything but the user's model.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [7.0], [9.0]])
    >>> found = utility(X, np.array([[2.0], [2.0], [8.0], [8.0]]), ["sales"])
    >>> found.loss, found.columns[0].mean
    (10.0, Pair(before=5.0, after=5.0))
    """
    scale = scaling(X)
    Z, W = scale.apply(X), scale.apply(Y)
    loss, losses = released_loss(Z, W)
    return Utility(
        loss=loss,
        il1s=il1s(X, Y),
        columns=tuple(column_change(name, X[:, j], Y[:, j], float(losses[j])) for j, name in enumerate(names)),
        covariance=(covariance(X), covariance(Y)),
        correlation=(correlation(X), correlation(Y)),
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
