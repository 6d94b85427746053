"""Figures withheld from a public page because one small group dominates them (`shoal.promises.dominance`).

The decision is made once per column, by its loss. Sums of absolute deviations are spread over more groups than sums of
squares, and cross products of two columns are bounded by the squares of both. Therefore, if no group dominates the loss
of a column, none dominates the other figures shown about the column. For weighted standard deviations, the weighted
loss decides, because a heavy weight can make one group dominate them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np

from shoal.assessment.assessment import Assessment
from shoal.assessment.coded_records import CodedRecords
from shoal.assessment.statistics import Pair
from shoal.assessment.utility import CategoryChange, ColumnChange
from shoal.core.measures import squared_errors
from shoal.core.types import Floats, Ints
from shoal.masking.aggregate import largest_errors
from shoal.masking.release import Release
from shoal.promises.dominance import LIMITS, is_published, may_be_published
from shoal.tables.columns import Name

__all__ = ["IN_HOUSE", "WITHHELD", "as_published", "dominated_spreads", "lost_share", "published_result"]

WITHHELD = (
    " Figures of which one small group makes up more than a quarter are withheld: together with the masked table they "
    "would reveal the values of that group."
)
IN_HOUSE = (
    "this page is for holders of the original: its figures are exact, and together with the masked table they can "
    "reveal the values of small groups; publish the report of the masking instead"
)


def lost_share(loss: float) -> str:
    """Return the share of lost information as text, for a published loss."""
    if is_published(loss):
        return f"{loss:.1f} %"
    lower = max((limit for limit in LIMITS if limit < loss), default=0.0)
    if loss == inf:
        return f"more than {lower:.0f} %"
    return f"{lower:.0f} to {loss:.0f} %" if lower else f"under {loss:.0f} %"


def dominated_spreads(before: CodedRecords, Y: Floats, labels: Ints) -> set[Name]:
    """Return the columns whose weighted standard deviation is withheld because one small group dominates its change."""
    if before.weights is None:
        return set()
    roots = np.sqrt(before.weights / before.weights.max())[:, None]
    Z, W = before.coordinates * roots, before.place(Y) * roots
    errors = before.embedding.by_column(squared_errors(Z, W)[0])
    largest = largest_errors(Z, W, labels, before.embedding)
    pairs = zip(before.names, errors.tolist(), largest[:-1].tolist(), strict=True)
    return {name for name, error, group_error in pairs if not may_be_published(error, group_error)}


def as_published(assessment: Assessment, losses: Mapping[Name, float], spreads: Collection[Name] = ()) -> Assessment:
    """Return an assessment without withheld figures, according to the published losses of the columns.

    `spreads` are the columns whose standard deviation is also withheld.
    """
    utility = assessment.utility
    hidden = np.array([not is_published(losses[column.name]) for column in utility.columns])
    numbers = np.array([isinstance(column, ColumnChange) for column in utility.columns])
    public = replace(
        utility,
        columns=tuple(_column(column, losses[column.name], spreads) for column in utility.columns),
        correlation=(_without(utility.correlation[0], hidden[numbers]), utility.correlation[1]),
        association=(_without(utility.association[0], hidden), utility.association[1]),
        propensity=None if hidden.any() else utility.propensity,
    )
    return replace(
        assessment, utility=public, risk=replace(assessment.risk, intervals=None) if hidden.any() else assessment.risk
    )


def _column(
    column: ColumnChange | CategoryChange, loss: float, spreads: Collection[Name]
) -> ColumnChange | CategoryChange:
    if isinstance(column, ColumnChange) and column.name in spreads:
        column = replace(column, sd=Pair(nan, column.sd.after))
    if is_published(loss):
        return replace(column, loss=loss)
    if isinstance(column, CategoryChange):
        return replace(column, loss=loss, changed=nan, variation=nan)
    mean, sd = Pair(nan, column.mean.after), Pair(nan, column.sd.after)
    return replace(column, loss=loss, mean=mean, sd=sd, quantiles=(), wasserstein=nan)


def _without(before: Any, hidden: Any) -> Any:
    return np.where(hidden[:, None] | hidden[None, :], nan, before)


def published_result(result: Mapping[str, Any], release: Release, published: Release) -> dict[str, Any]:
    """Return the result of a manifest as shown on a page, with null for withheld figures."""

    def if_published(loss: float) -> float | None:
        return loss if is_published(loss) else None

    return {
        **result,
        "loss": if_published(published.loss),
        "partition_loss": if_published(published.partition_loss),
        "gap": release.gap if is_published(published.loss) else None,
        "verdict": {
            "level": release.verdict.level,
            "reasons": [
                {**vars(reason), "figure": if_published(reason.figure)} for reason in published.verdict.reasons
            ],
        },
        "column_loss": {str(name): if_published(loss) for name, loss in published.column_loss.items()},
    }
