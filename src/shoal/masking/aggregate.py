"""The values of groups (mean, median or medoid), their rounding, and the information loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.algorithms.registry import Outcome
from shoal.core.checks import EXACT
from shoal.core.measures import centroids, group_errors, group_sizes, split_largest, squared_errors
from shoal.core.types import Bools, Floats, Ints, State
from shoal.engines.records import Arrays
from shoal.kernels.words import Words
from shoal.kinds.column import Storage, is_whole
from shoal.kinds.kind import Embedding, rescaled
from shoal.masking.group import BucketPlan, BucketRecords, group_bucket
from shoal.masking.sums import Rule, add_up, keep_totals, round_together
from shoal.promises.dominance import FEW, PERCENT

__all__ = [
    "Bucket",
    "ReleasedValues",
    "Rounding",
    "aggregate",
    "count_dominated",
    "group_values",
    "largest_errors",
    "mask_bucket",
    "nearest",
    "new_zeros",
    "to_15_digits",
]

TENS = np.array([float(10**i) for i in range(23)])
BOUNDS = np.array([float(f"1e{i}") for i in range(-7, 15)])
# The last digits of a sum depend on the order of its terms, which differs by engine; the tolerance ignores them.
BELOW = PERCENT / 100 * (1 - 1e-9)


class Bucket(NamedTuple):
    """The errors, group sizes and counts of a masked bucket."""

    errors: Floats  # squared errors per standardised column
    totals: Floats
    rounding: Floats  # errors added by rounding
    grouped: Floats  # errors of the group centroids, whatever value is released
    sizes: Ints  # number of groups of each size
    outcome: Outcome  # outcome of the method, without its labels
    decimals: Bools  # True for columns of whole numbers with a released value that is not whole
    new_zeros: Ints  # per column with kept zeros: nonzero records that are released as zero
    largest: Floats  # largest error of a group of few records, per column and in total
    taken: Bools  # True for columns with a released value equal to the code for missing
    dominated: Ints  # per column: the groups dominated by one member, and the groups with values
    changes: tuple[Ints, ...] = ()  # per column: the changes counted by its coding
    rescaled: Floats = np.empty((2, 0))  # errors and totals of rescaled columns, on the comparison scale


class ReleasedValues(NamedTuple):
    """The values of the groups, exact and rounded."""

    values: Floats
    rounded: Floats  # the released values
    row: Ints  # per record: the row of its group in the values


@dataclass(frozen=True)
class Rounding:
    """The rounding of group values, column by column."""

    storages: tuple[Storage, ...]  # per masked column
    whole: bool = False  # True: columns of whole numbers stay whole
    fitted: bool = False  # True: other numbers get at most one decimal more than their column has
    zeros: tuple[int, ...] = ()  # indices of the columns whose zeros are kept
    rules: tuple[Rule, ...] = ()  # sum rules, in order; columns by index
    totals: bool = False  # True: whole numbers keep the total of every block

    @cached_property
    def timed(self) -> Bools:
        """True for each column of dates, times of day or durations."""
        return np.array([storage.timed for storage in self.storages])

    @property
    def changes(self) -> bool:
        """True if released values have fewer digits than computed values."""
        return (
            self.whole
            or any(places is not None for places in self.decimals)
            or bool(self.timed.any())
            or any(storage.type == "float32" for storage in self.storages)
        )

    @cached_property
    def decimals(self) -> tuple[int | None, ...]:
        """The number of released decimals per column; None for all digits, as sum rules need."""
        summed = {place for rule in self.rules for place in rule.columns}
        return tuple(
            storage.decimals + 1
            if self.fitted and storage.decimals is not None and j not in summed and not (self.whole and storage.whole)
            else None
            for j, storage in enumerate(self.storages)
        )

    def only(self, place: int) -> Rounding:
        """Return the rounding of a single column that is grouped on its own."""
        zeros = (0,) if place in self.zeros else ()
        return Rounding((self.storages[place],), self.whole, self.fitted, zeros, totals=self.totals)

    def apply(self, values: Floats, X: Floats, labels: Ints, block: Ints) -> Floats:
        """Round the values of the groups, one row per group.

        `X`, `labels` and `block` are the numbers, the group and the block of each record.
        """
        whole = np.array([self.whole and storage.whole for storage in self.storages])
        single = np.array([storage.type == "float32" for storage in self.storages])
        nonzero = np.isin(np.arange(len(whole)), self.zeros)
        rounded = values.copy()
        rounded[:, whole] = nearest(values[:, whole], nonzero[whole])
        for place, decimals in enumerate(self.decimals):
            if decimals is not None:
                power = 10.0**decimals
                scaled = values[:, [place]] * power
                fitted = nearest(scaled, nonzero[[place]]) / power
                # Floats above EXACT have no such decimals, and the division would add noise.
                rounded[:, place] = np.where(np.abs(scaled) < EXACT, fitted, values[:, [place]])[:, 0]
        rounded[:, self.timed] = np.rint(values[:, self.timed])
        rounded[:, single & ~whole] = rounded[:, single & ~whole].astype(np.float32)
        if self.totals:
            for j in np.flatnonzero(whole):
                rounded[:, j] = keep_totals(values[:, j], X[:, j], labels, block, nonzero=bool(nonzero[j]))
        elif self.rules and whole.any():
            # Where zeros are kept, other values must not be rounded to zero.
            down, up = (np.where(nonzero & (side(values) == 0), rounded, side(values)) for side in (np.floor, np.ceil))
            low, high = (np.where(whole, side, rounded) for side in (down, up))
            rounded = round_together(values, low, high, rounded, self.rules)
        return add_up(rounded, self.rules, single) if self.rules else rounded

    def new_zeros(self, X: Floats, rounded: Floats, row: Ints) -> Ints:
        """Count, per column with kept zeros, the nonzero records that are released as zero.

        `row` holds each record's row in the rounded values.
        """
        places = list(self.zeros)
        new: Ints = np.count_nonzero((rounded[:, places] == 0)[row] & (X[:, places] != 0), axis=0)
        return new


def mask_bucket(arrays: Arrays, state: State, plan: BucketPlan) -> tuple[Arrays, Bucket]:
    """Mask the blocks of a bucket: group and aggregate their records, and measure the loss of the released values."""
    records = BucketRecords.read(arrays, plan)
    outcome = group_bucket(records, plan, state)
    released = aggregate(records, outcome.labels, plan)
    sizes = [group_sizes(column) for column in np.atleast_2d(outcome.labels.T)]
    measured = _measure(outcome, records, released, plan, sizes, arrays.get("lost"))
    row, labels = released.row, outcome.labels
    if plan.whole:
        return {"released": np.take(released.rounded, row, axis=0), "group": labels}, measured
    back = np.empty_like(records.order)
    back[records.order] = np.arange(len(back))
    group = labels[back]
    return {"released": np.take(released.rounded, row[back], axis=0), "group": group, "size": sizes[0][group]}, measured


def aggregate(records: BucketRecords, labels: Ints, plan: BucketPlan) -> ReleasedValues:
    """Return the values of the groups; a missing cell stays missing."""
    X, how = records.X, plan.request.aggregate
    if labels.ndim == 2:
        columns = [
            aggregate(records._replace(X=X[:, [j]], Z=records.Z[:, [j]]), column, plan.only(j))
            for j, column in enumerate(np.ascontiguousarray(labels.T))
        ]
        # The groups differ by column, so every record has its own row of values.
        values = np.column_stack([column.values[column.row] for column in columns])
        rounded = np.column_stack([column.rounded[column.row] for column in columns])
        return ReleasedValues(values, rounded, np.arange(len(X)))
    # All records of a group have missing values in the same columns, so a NaN affects only its group and column.
    values = group_values(X, records.Z, labels, how, records.weights)
    if how != "medoid":
        for j, coding in enumerate(plan.embedding.codings):
            values[:, j] = coding.represent(X, j, labels, values[:, j], records.weights)
    return ReleasedValues(values, plan.rounding.apply(values, X, labels, records.block), labels)


def group_values(X: Floats, Z: Floats, labels: Ints, how: str = "mean", weights: Floats | None = None) -> Floats:
    """Return the values of each group, one row per group, in the units of X.

    `Z` holds the same records, standardised; the medoid is the record nearest to the centroid of its group in `Z`.
    Only the mean uses the weights.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [9.0]])
    >>> group_values(X, X, np.zeros(3, dtype=np.int64), "median").tolist()
    [[2.0]]
    """
    if how == "mean":
        return to_15_digits(centroids(X, labels, weights))
    starts = np.concatenate([[0], np.cumsum(group_sizes(labels))])
    if how == "medoid":
        distance = np.nansum(np.square(Z - centroids(Z, labels)[labels]), axis=1)
        # Ties go to the lowest record number (lexsort is stable). Rounding ignores differences in the last digits.
        medoids: Floats = X[np.lexsort((distance.round(12), labels))[starts[:-1]]]
        return medoids
    values = np.empty((len(starts) - 1, X.shape[1]))
    low = (starts[:-1] + starts[1:] - 1) // 2
    high = (starts[:-1] + starts[1:]) // 2
    for j, column in enumerate(X.T):
        ordered = column[np.lexsort((column, labels))]
        values[:, j] = ordered[low] + (ordered[high] - ordered[low]) / 2
    return to_15_digits(values)


def _measure(
    outcome: Outcome,
    records: BucketRecords,
    released: ReleasedValues,
    plan: BucketPlan,
    sizes: Sequence[Ints],
    lost: Floats | None,
) -> Bucket:
    """Measure a bucket; `lost` holds the original values of the cells that were made missing."""
    placed = np.take(plan.embedding.apply(released.rounded, records.scale), released.row, axis=0)
    errors, totals, added, grouped = _lose(outcome.labels, records, released, placed, plan)
    largest = largest_errors(records.Z, placed, outcome.labels, plan.embedding)
    if lost is not None:
        # A cell made missing loses its whole squared deviation from the mean, in any partition.
        blanked = plan.embedding.lost(lost, records.scale)
        errors, totals, grouped = errors + blanked, totals + blanked, grouped + blanked
        largest = np.maximum(largest, plan.embedding.lost_cell(lost, records.scale))
        if outcome.bound is not None:
            outcome = replace(outcome, bound=outcome.bound + float(blanked.sum()))
    pairs = list(zip(plan.rounding.storages, released.rounded.T, strict=True))
    taken = [storage.absent is not None and bool((column == storage.absent).any()) for storage, column in pairs]
    return Bucket(
        errors=errors,
        totals=totals,
        rounding=added,
        grouped=grouped,
        sizes=np.bincount(np.concatenate(sizes)),
        outcome=replace(outcome, labels=outcome.labels[:0]),
        decimals=np.array([storage.whole and not is_whole(column) for storage, column in pairs]),
        new_zeros=plan.rounding.new_zeros(records.X, released.rounded, released.row),
        largest=largest,
        taken=np.array(taken),
        dominated=_count_dominated(outcome.labels, records, released, plan),
        changes=_changes(records, released, plan.embedding),
        rescaled=_lose_on_scales(records, released, plan.embedding, lost),
    )


def _lose_on_scales(
    records: BucketRecords, released: ReleasedValues, embedding: Embedding, lost: Floats | None
) -> Floats:
    """Return the squared errors and totals of the rescaled columns, on the comparison scale."""
    places = [j for j, _ in embedding.rescalings]
    if not places:
        return np.empty((2, 0))
    scale = records.compared_scale
    before, after = (
        embedding.apply(rescaled(X, embedding.rescalings), scale)[:, embedding.starts[places]]
        for X in (records.X, np.take(released.rounded, released.row, axis=0))
    )
    errors = np.stack(squared_errors(np.ascontiguousarray(before), np.ascontiguousarray(after)))
    if lost is not None:
        errors += embedding.lost(rescaled(lost, embedding.rescalings), scale)[places]
    return errors


def _changes(records: BucketRecords, released: ReleasedValues, embedding: Embedding) -> tuple[Ints, ...]:
    """Return the changes counted by the coding of each column; an empty tuple if all columns hold numbers."""
    if embedding.plain:
        return ()
    values = np.take(released.rounded, released.row, axis=0)
    return tuple(coding.measure(records.X, values) for coding in embedding.codings)


def _count_dominated(labels: Ints, records: BucketRecords, released: ReleasedValues, plan: BucketPlan) -> Ints:
    """Count, per column, the groups that one member dominates and the groups that have values.

    Both counts are 0 unless means are released, because only means reveal totals.
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
) -> tuple[Floats, ...]:
    """Return four sums per column: squared errors, total squares, errors added by rounding, and partition errors.

    `placed` holds the released values of all records, embedded like `Z`.
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
    return tuple(embedding.by_column(np.stack([errors, totals, errors - plain, grouped])))


def largest_errors(Z: Floats, released: Floats, labels: Ints, embedding: Embedding) -> Floats:
    """Return the largest sum of squared errors of any group with few records, per column and in total."""
    starts = embedding.starts
    if labels.ndim == 1:
        errors = np.add.reduceat(group_errors(Z, released, labels, fewer=FEW), starts, axis=1)
        return np.append(errors.max(axis=0, initial=0.0), errors.sum(axis=1).max(initial=0.0))
    parts = zip(np.split(Z, starts[1:], axis=1), np.split(released, starts[1:], axis=1), labels.T, strict=True)
    largest = [group_errors(*part, fewer=FEW).sum(axis=1).max(initial=0.0) for part in parts]
    return np.array([*largest, max(largest)])


def to_15_digits(values: Floats) -> Floats:
    """Round to 15 significant digits; further digits of a computed value are noise.

    Different numbers of 15 digits have different floats, so the text of a result has at most 15 digits. Floats from
    10^15 on are nearly whole and stay unchanged.

    Examples
    --------
    >>> to_15_digits(np.array([0.039999999999999994, 1 / 3, 4e-20 / 3, 2.0**60])).tolist()
    [0.04, 0.333333333333333, 1.33333333333333e-20, 1.152921504606847e+18]
    """
    size = np.abs(values)
    rounded = values.copy()
    # Within these bounds, the digits as a whole number and the power of ten are exact: only the quotient is rounded.
    exact = (size >= 1e-8) & (size < 1e15)
    power = TENS[22 - np.searchsorted(BOUNDS, size[exact], side="right")]
    rounded[exact] = np.rint(values[exact] * power) / power
    tiny = size < 1e-8
    rounded[tiny] = [float(f"{value:.15g}") for value in values[tiny]]
    return rounded


def nearest(values: Floats, nonzero: Bools) -> Floats:
    """Round to the nearest whole numbers; in the `nonzero` columns only zero itself becomes zero.

    Examples
    --------
    >>> nearest(np.array([[0.3, 0.3], [-0.2, -0.2], [2.6, 0.0]]), np.array([False, True])).tolist()
    [[0.0, 1.0], [-0.0, -1.0], [3.0, 0.0]]
    """
    rounded = np.rint(values)
    return np.where(nonzero & (rounded == 0), np.sign(values), rounded)


def count_dominated(
    values: Floats, labels: Ints, rounding: Floats, weights: Floats | None = None, units: Words | None = None
) -> tuple[int, int]:
    """Count the groups of a column that one member dominates, and the groups that have values.

    Missing cells are NaN; a group has either only missing cells or none. `rounding` is the difference between the
    released value of each record's group and the group's exact mean. With units, the members of a group are its units,
    not its records.

    Examples
    --------
    >>> count_dominated(np.array([1.0, 2.0, 900.0, 5.0, 6.0, 7.0]), np.array([0, 0, 0, 1, 1, 1]), np.zeros(6))
    (1, 2)
    """
    amounts, moved = (values, rounding) if weights is None else (values * weights, rounding * weights)
    present = ~np.isnan(values)
    if not present.all():
        amounts, moved, labels = amounts[present], moved[present], labels[present]
        units = None if units is None else units[present]
    if not len(labels):
        return 0, 0
    groups = int(labels.max()) + 1
    # The error of a group total that is derived from the released value.
    error = np.bincount(labels, moved, minlength=groups)
    if units is not None:
        amounts, labels = _by_unit(amounts, labels, units)
    # Members of opposite sign may cancel out, which an outsider who estimates a member cannot know.
    negative = amounts < 0
    if negative.any():
        error = np.where(np.bincount(labels[negative], minlength=groups) > 0, np.abs(error), error)
    largest, second, rest = np.full(groups, -1.0), np.zeros(groups), np.zeros(groups)
    split_largest(np.abs(amounts), labels, largest, second, rest)
    dominated = (largest > 0) & (np.abs(rest + error) < BELOW * largest)
    return int(dominated.sum()), int((largest >= 0).sum())


def _by_unit(amounts: Floats, labels: Ints, units: Words) -> tuple[Floats, Ints]:
    """Return the sum of the amounts per unit and group, and the group of each sum."""
    order = np.lexsort((units, labels))
    label, unit = labels[order], units[order]
    first = np.flatnonzero(np.r_[True, (label[1:] != label[:-1]) | (unit[1:] != unit[:-1])])
    return np.add.reduceat(amounts[order], first), label[first]


def new_zeros(buckets: Sequence[Bucket]) -> Ints:
    """Count, per column with kept zeros, the nonzero records that are released as zero."""
    new: Ints = np.sum([bucket.new_zeros for bucket in buckets], axis=0, dtype=np.int64)
    return new
