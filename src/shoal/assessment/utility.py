"""Utility of a release: statistics of single columns and of relations between columns, before and after masking.

Functions take arrays and return small results. X contains the original records and Y the same records as released, both
with NaN for missing cells. The functions do not validate their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.assessment.eigenvalues import Eigenvalues
from shoal.assessment.frequencies import TableChange
from shoal.assessment.linkage import place
from shoal.assessment.propensity import Propensity, propensity
from shoal.assessment.regressions import Coefficient
from shoal.assessment.statistics import (
    Pair,
    RankedColumn,
    association,
    il1s,
    kolmogorov_smirnov,
    mean,
    order_columns,
    rank_correlation,
    relations,
    spread,
    wasserstein,
)
from shoal.core.measures import released_loss
from shoal.core.types import Floats
from shoal.kinds.kind import Embedding
from shoal.tables.columns import Name

__all__ = ["LEVELS", "CategoryChange", "ColumnChange", "Utility", "category_change", "column_change", "utility"]

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class ColumnChange:
    """The change of one numeric column.

    Parameters
    ----------
    name
        The column.
    loss
        The information loss of the column, 100·SSE/SST.
    mean, sd
        Mean and standard deviation (n − 1); weighted if the release is weighted.
    quantiles
        Quantiles at `LEVELS`.
    wasserstein
        The mean distance between the distributions before and after, in standard deviations of the original.
    kolmogorov_smirnov
        The largest difference between the two cumulative distributions, 0 to 1.
    rank_correlation
        Spearman's correlation of the values before and after; NaN for a constant column.
    values
        The number of non-missing cells.
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
    """The change of one categorical column.

    Parameters
    ----------
    name
        The column.
    kind
        ``"nominal"``, ``"ordinal"`` or ``"hierarchy"``.
    loss
        The information loss of the column, 100·SSE/SST of the coordinates.
    changed
        The share of cells released with another value.
    variation
        The total variation distance between the two distributions, 0 to 1: the least share of cells that would have to
        change to turn one into the other.
    values
        The number of non-missing cells.
    """

    name: Name
    kind: str
    loss: float
    changed: float
    variation: float
    values: int = 0


@dataclass(frozen=True)
class Utility:
    """The utility of a release: statistics before and after masking.

    Parameters
    ----------
    loss
        The information loss of all columns, 100·SSE/SST.
    il1s
        The mean distance of numbers from their originals, in √2 standard deviations, in percent.
    columns
        The changes of single columns.
    covariance, correlation
        The covariance and correlation matrices of the numeric columns, before and after.
    association
        The matrices of `association` between columns, before and after; NaN for two numeric columns.
    propensity
        The classifier's result; None if fewer than two records are complete.
    model
        The coefficients of the user's regressions; may be empty.
    tables
        The user's frequency tables; may be empty.
    eigenvalues
        The eigenvalues of the numeric columns; None unless requested.
    weighted
        True if means and standard deviations are weighted; all other figures count every record once.
    """

    loss: float
    il1s: float
    columns: tuple[ColumnChange | CategoryChange, ...]
    covariance: tuple[Floats, Floats]
    correlation: tuple[Floats, Floats]
    association: tuple[Floats, Floats]
    propensity: Propensity | None
    model: tuple[Coefficient, ...] = ()
    tables: tuple[TableChange, ...] = ()
    eigenvalues: Eigenvalues | None = None
    weighted: bool = False

    @property
    def paired(self) -> bool:
        """Return True if every record was compared with its original."""
        return not np.isnan(self.loss)

    def with_losses(self, loss: float, losses: Sequence[float] | Floats) -> Utility:
        """Return a copy with these information losses, in total and per column."""
        columns = (replace(column, loss=float(lost)) for column, lost in zip(self.columns, losses, strict=True))
        return replace(self, loss=loss, columns=tuple(columns))

    def without_pairs(self) -> Utility:
        """Return a copy with NaN for figures that need every record paired with its original."""
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
        """The numeric columns."""
        return [column for column in self.columns if isinstance(column, ColumnChange)]

    @property
    def categories(self) -> list[CategoryChange]:
        """The categorical columns."""
        return [column for column in self.columns if isinstance(column, CategoryChange)]

    @property
    def covariance_change(self) -> float:
        """The mean absolute change of variances and covariances, relative to the original standard deviations."""
        before, after = self.covariance
        sd = np.sqrt(np.diag(before))
        above = np.triu(np.ones(before.shape, dtype=np.bool_)) & np.isfinite(after - before) & (np.outer(sd, sd) > 0)
        return float((np.abs(after - before)[above] / np.outer(sd, sd)[above]).mean()) if above.any() else 0.0

    def correlation_changes(self) -> list[tuple[Name, Name, Pair]]:
        """Return all pairs of numeric columns with a correlation, in descending order of change."""
        return _changes([column.name for column in self.numbers], *self.correlation)

    def association_changes(self) -> list[tuple[Name, Name, Pair]]:
        """Return all pairs with a categorical column and an association, in descending order of change."""
        return _changes([column.name for column in self.columns], *self.association)

    def largest_correlation_change(self) -> tuple[Name, Name, Pair] | None:
        """Return the two columns with the largest change of correlation; None if there are no correlations."""
        return next(iter(self.correlation_changes()), None)


def _changes(names: list[Name], before: Floats, after: Floats) -> list[tuple[Name, Name, Pair]]:
    first, second = np.nonzero(np.triu(np.isfinite(after - before), 1))
    changes = [
        (names[i], names[j], Pair(float(before[i, j]), float(after[i, j]))) for i, j in zip(first, second, strict=True)
    ]
    return sorted(changes, key=lambda entry: -abs(entry[2].after - entry[2].before))


def utility(
    X: Floats,
    Y: Floats,
    names: list[Name],
    embedding: Embedding | None = None,
    *,
    placed: tuple[Floats, Floats] | None = None,
    ordered: Sequence[RankedColumn] | None = None,
    weights: Floats | None = None,
    seed: int = 0,
) -> Utility:
    """Compute all measures of utility except those taken on request.

    Without an embedding, all columns are numeric. `placed` and `ordered` are the coordinates of the records and the
    sorted numeric columns, if already computed. Weights affect means and standard deviations; the seed determines
    samples.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [7.0], [9.0]])
    >>> result = utility(X, np.array([[2.0], [2.0], [8.0], [8.0]]), ["sales"])
    >>> result.loss, result.columns[0].mean
    (10.0, Pair(before=5.0, after=5.0))
    """
    embedding = embedding or Embedding.of_numbers(X.shape[1])
    Z, W = placed or place(X, Y, embedding)
    loss, losses = released_loss(Z, W, embedding.starts)
    P, Q = X[:, embedding.numbers], Y[:, embedding.numbers]
    ordered = order_columns(P, Q) if ordered is None else ordered
    numbers = iter(ordered)
    columns = [
        column_change(name, next(numbers), float(losses[j]), weights)
        if coding.numeric
        else category_change(name, coding.word, X[:, j], Y[:, j], float(losses[j]))
        for j, (name, coding) in enumerate(zip(names, embedding.codings, strict=True))
    ]
    before, after = relations(P), relations(Q)
    return Utility(
        loss=loss,
        il1s=il1s(ordered),
        columns=tuple(columns),
        covariance=(before[0], after[0]),
        correlation=(before[1], after[1]),
        association=(_associations(X, embedding), _associations(Y, embedding)),
        propensity=propensity(Z, W, seed=seed),
        weighted=weights is not None,
    )


def column_change(name: Name, column: RankedColumn, loss: float, weights: Floats | None = None) -> ColumnChange:
    """Compare a numeric column before and after masking, without missing cells; weights affect only `mean` and `sd`."""
    x, y = column.x, column.y
    if not len(x):
        nothing = Pair(float("nan"), float("nan"))
        return ColumnChange(name, loss, nothing, nothing, (nothing,) * len(LEVELS), 0.0, 0.0, float("nan"))
    quantiles = (np.quantile(cells.values, LEVELS).tolist() for cells in (column.before, column.after))
    shares = None if weights is None else weights[column.records]
    return ColumnChange(
        name=name,
        loss=loss,
        mean=Pair(mean(x, shares), mean(y, shares)),
        sd=Pair(spread(x, shares), spread(y, shares)),
        quantiles=tuple(Pair(*pair) for pair in zip(*quantiles, strict=True)),
        wasserstein=wasserstein(column) / (spread(x) or 1.0),
        kolmogorov_smirnov=kolmogorov_smirnov(column),
        rank_correlation=rank_correlation(column),
        values=len(x),
    )


def category_change(name: Name, kind: str, x: Floats, y: Floats, loss: float) -> CategoryChange:
    """Compare a categorical column before and after masking; missing cells do not count.

    Examples
    --------
    >>> change = category_change("job", "nominal", np.array([0.0, 0, 1, 1, 2]), np.array([0.0, 1, 1, 1, 1]), 0.0)
    >>> change.changed, round(change.variation, 6)
    (0.4, 0.4)
    """
    present = ~np.isnan(x)
    before, after = x[present].astype(np.int64), y[present].astype(np.int64)
    n, values = max(1, len(before)), int(max(before.max(initial=0), after.max(initial=0))) + 1
    moved = np.abs(np.bincount(before, minlength=values) - np.bincount(after, minlength=values)).sum() / 2
    return CategoryChange(name, kind, loss, float((before != after).sum() / n), float(moved / n), len(before))


def _associations(X: Floats, embedding: Embedding) -> Floats:
    """Return the association of each pair with at least one categorical column; NaN for other pairs."""
    d = X.shape[1]
    associations = np.full((d, d), np.nan)
    nominal = embedding.without_order
    columns = [coding.ranks(X[:, j]) for j, coding in enumerate(embedding.codings)]
    for i in range(d):
        for j in range(i + 1, d):
            if not (embedding.codings[i].numeric and embedding.codings[j].numeric):
                associations[i, j] = association(columns[i], columns[j], x_nominal=nominal[i], y_nominal=nominal[j])
    return associations
