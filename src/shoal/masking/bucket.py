"""A bucket of records on its way to its release: grouped, every group given its value, and the loss measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shoal.algorithms.method import Outcome
from shoal.core.measures import centroids, group_errors, group_sizes, squared_errors
from shoal.core.types import Floats, Ints, State
from shoal.engines.records import Arrays
from shoal.kinds.column import is_whole
from shoal.kinds.kind import Coding, Embedding
from shoal.masking.aggregation import group_values
from shoal.masking.contributions import count_dominated
from shoal.masking.groups import BucketPlan, BucketRecords, group_bucket
from shoal.masking.parts import Bucket
from shoal.masking.rounding import Rounding
from shoal.promises.dominance import FEW

__all__ = ["ReleasedValues", "largest_errors", "mask_bucket", "released_values"]


class ReleasedValues(NamedTuple):
    """The values of groups."""

    values: Floats
    rounded: Floats  # as they are released
    row: Ints  # of each record: which of them it has


def mask_bucket(arrays: Arrays, state: State, plan: BucketPlan) -> tuple[Arrays, Bucket]:
    """Mask the blocks of a bucket: group, aggregate, round; what was lost is measured on the released values."""
    records = BucketRecords.read(arrays, plan)
    outcome = group_bucket(records, plan, state)
    released = released_values(
        records.X, records.Z, outcome.labels, plan.request.aggregate, records.weights, plan.embedding.codings,
        plan.rounding, records.block,
    )  # fmt: skip
    sizes = [group_sizes(column) for column in np.atleast_2d(outcome.labels.T)]
    measured = _measure(outcome, records, released, plan, sizes, arrays.get("lost"))
    row, labels = released.row, outcome.labels
    if plan.whole:
        return {"released": np.take(released.rounded, row, axis=0), "group": labels}, measured
    back = np.empty_like(records.order)
    back[records.order] = np.arange(len(back))
    group = labels[back]
    return {"released": np.take(released.rounded, row[back], axis=0), "group": group, "size": sizes[0][group]}, measured


def _measure(
    outcome: Outcome,
    records: BucketRecords,
    released: ReleasedValues,
    plan: BucketPlan,
    sizes: Sequence[Ints],
    lost: Floats | None,
) -> Bucket:
    """Return what is known of the bucket; `lost` are the values of cells that were made missing."""
    placed = np.take(plan.embedding.apply(released.rounded, records.scale), released.row, axis=0)
    errors, totals, added, grouped = _lose(outcome.labels, records, released, placed, plan)
    largest = largest_errors(records.Z, placed, outcome.labels, plan.embedding)
    if lost is not None:
        # A cell that was made missing has lost all that it deviates from the mean, whatever the groups are.
        blanked = plan.embedding.lost(lost, records.scale)
        errors, totals, grouped = errors + blanked, totals + blanked, grouped + blanked
        # Whatever a cell has lost, it is one of so many.
        largest = np.maximum(largest, plan.embedding.lost_cell(lost, records.scale))
        if outcome.bound is not None:
            outcome = replace(outcome, bound=outcome.bound + float(blanked.sum()))
    pairs = list(zip(plan.rounding.storages, released.rounded.T, strict=True))
    return Bucket(
        errors,
        totals,
        added,
        grouped,
        np.bincount(np.concatenate(sizes)),
        replace(outcome, labels=outcome.labels[:0]),
        np.array([storage.whole and not is_whole(column) for storage, column in pairs]),
        plan.rounding.new_zeros(records.X, released.rounded, released.row),
        largest,
        np.array([storage.absent is not None and bool((column == storage.absent).any()) for storage, column in pairs]),
        _count_dominated(outcome.labels, records, released, plan),
        _changes(records, released, plan.embedding),
    )


def _changes(records: BucketRecords, released: ReleasedValues, embedding: Embedding) -> tuple[Ints, ...]:
    """Return what the coding of each column counts; nothing where all columns hold numbers."""
    if embedding.plain:
        return ()
    values = np.take(released.rounded, released.row, axis=0)
    return tuple(coding.measure(records.X, values) for coding in embedding.codings)


def _count_dominated(labels: Ints, records: BucketRecords, released: ReleasedValues, plan: BucketPlan) -> Ints:
    """Count per column the groups that one member dominates, and the groups that have values; 0 where neither is known.

    Only means tell the totals of their groups.
    """
    counts = np.zeros((2, records.X.shape[1]), dtype=np.int64)
    for j in plan.amounts if plan.request.aggregate == "mean" else ():
        counts[:, j] = count_dominated(
            records.X[:, j],
            labels if labels.ndim == 1 else labels[:, j],
            np.take(released.rounded[:, j] - released.values[:, j], released.row),
            records.weights,
            records.units,
        )
    return counts


def _lose(
    labels: Ints, records: BucketRecords, released: ReleasedValues, placed: Floats, plan: BucketPlan
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, of each column: squared errors, their total, what rounding added, and those of the partition itself.

    `placed` are the released values of all records, as they are compared with the original ones.
    """
    request, embedding, Z = plan.request, plan.embedding, records.Z
    errors, totals = squared_errors(Z, placed)
    plain = errors
    if plan.rounding.changes:
        exact = embedding.apply(released.values, records.scale)
        plain = squared_errors(Z, np.take(exact, released.row, axis=0))[0]
    grouped = plain
    if labels.ndim == 1 and (request.aggregate != "mean" or request.weights is not None or not embedding.plain):
        grouped = squared_errors(Z, np.take(centroids(Z, labels), labels, axis=0))[0]
    by_column = embedding.by_column
    return by_column(errors), by_column(totals), by_column(errors - plain), by_column(grouped)


def largest_errors(Z: Floats, released: Floats, labels: Ints, embedding: Embedding) -> Floats:
    """Return the most squared errors of a group of few records: in each column, and in all columns together."""
    starts = embedding.starts
    if labels.ndim == 1:
        errors = np.add.reduceat(group_errors(Z, released, labels, fewer=FEW), starts, axis=1)
        return np.append(errors.max(axis=0, initial=0.0), errors.sum(axis=1).max(initial=0.0))
    parts = zip(np.split(Z, starts[1:], axis=1), np.split(released, starts[1:], axis=1), labels.T, strict=True)
    largest = [group_errors(*part, fewer=FEW).sum(axis=1).max(initial=0.0) for part in parts]
    return np.array([*largest, max(largest)])


def released_values(
    X: Floats,
    Z: Floats,
    labels: Ints,
    aggregate: str,
    weights: Floats | None,
    codings: Sequence[Coding],
    rounding: Rounding,
    block: Ints,
) -> ReleasedValues:
    """Return the values of the groups; a missing cell stays missing."""
    if labels.ndim == 2:
        columns = [
            released_values(
                X[:, [j]], Z[:, [j]], column, aggregate, weights, codings[j : j + 1], rounding.only(j), block
            )
            for j, column in enumerate(np.ascontiguousarray(labels.T))
        ]
        # The groups of columns are not the same: there is one row a record.
        values = np.column_stack([column[row] for column, _, row in columns])
        rounded = np.column_stack([column[row] for _, column, row in columns])
        return ReleasedValues(values, rounded, np.arange(len(X)))
    # All records of a group miss the same cells, so a NaN stays in its own group and column.
    values = group_values(X, Z, labels, aggregate, weights)
    if aggregate != "medoid":
        for j, coding in enumerate(codings):
            values[:, j] = coding.represent(X, j, labels, values[:, j], weights)
    return ReleasedValues(values, rounding.apply(values, X, labels, block), labels)
