"""From the groups of a method to those that are released: refined, and as promises and units want them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shoal.algorithms.registry import Outcome
from shoal.core.measures import Scaling, canonical_labels
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.dealing import sort_by_target
from shoal.kernels.words import Words
from shoal.masking.coding import Embedding
from shoal.masking.confidential import Promise, keep_promise
from shoal.masking.request import MaskRequest
from shoal.models.units import count_units

__all__ = ["Gathered", "cells_of", "finish_groups"]


class Gathered(NamedTuple):
    """Records that are grouped together."""

    X: Floats
    compared: Floats  # where they lie when they are compared
    scale: Scaling  # of X
    block: Ints  # the block, or the cell, of each record
    codes: Ints | None  # of confidential columns, if anything is promised of them
    units: Words | None


def cells_of(X: Floats, cell: Ints) -> list[tuple[Ints, Ints]]:
    """Return, of each cell, its records and the columns that they do not miss."""
    order, begins = sort_by_target(cell, int(cell.max(initial=0)) + 1)
    rows = np.split(order, begins[1:-1])
    return [(members, np.flatnonzero(~np.isnan(X[members[0]]))) for members in rows if len(members)]


def finish_groups(
    outcome: Outcome,
    gathered: Gathered,
    request: MaskRequest,
    embedding: Embedding,
    promise: Promise,
    *,
    block: bool,
    state: State,
) -> Outcome:
    """Return the groups of a method after all else that was asked of them; what was proven of them stays true.

    Parameters
    ----------
    outcome, gathered
        What the method found, and for which records.
    request, embedding, promise
        What was asked, where records lie, and what is promised of confidential columns.
    block
        Whether the records are in blocks, not in whole cells.
    state
        See `shoal.core.progress`.
    """
    if request.refine:
        outcome = replace(outcome, labels=_refined(outcome.labels, gathered, request, embedding, state))
    cells = cells_of(gathered.compared, gathered.block)
    if promise.models and gathered.codes is not None:
        labels = keep_promise(
            gathered.compared, outcome.labels, cells, gathered.codes, gathered.units, promise, request, block=block,
            state=state,
        )  # fmt: skip
        return _regrouped(outcome, labels)
    if gathered.units is not None:
        return _regrouped(outcome, _with_units(outcome.labels, gathered.compared, cells, gathered.units, request.k))
    return outcome


def _refined(labels: Ints, gathered: Gathered, request: MaskRequest, embedding: Embedding, state: State) -> Ints:
    """Move records between the groups of a block, to lower the loss of what is released."""
    from shoal.masking.refining import refined

    X, steps = gathered.X, request.refine or 0
    cells = cells_of(X, gathered.block)
    return refined(X, labels, cells, request.k, embedding, gathered.scale, steps=steps, seed=request.seed, state=state)


def _with_units(labels: Ints, Z: Floats, cells: list[tuple[Ints, Ints]], units: Words, k: int) -> Ints:
    """Merge groups until each holds k units."""
    from shoal.models.merging import merge_groups

    def allowed(rows: Ints, labels: Ints) -> Bools:
        enough: Bools = count_units(labels, units[rows]) >= k
        return enough

    return merge_groups(Z, labels, cells, allowed)


def _regrouped(outcome: Outcome, labels: Ints) -> Outcome:
    """Return the outcome with other groups: what was proven of all partitions holds for them as a bound."""
    same = np.array_equal(labels, canonical_labels(outcome.labels))
    return replace(
        outcome, labels=labels, status="bounded" if outcome.status == "optimal" and not same else outcome.status
    )
