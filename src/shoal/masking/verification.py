"""Verification of a release: read the released table again, recount every promise, and refuse a broken promise.

The recount sees what a reader of the release sees: for a file, the cells as written, text as text. Parts of the release
are read where they are stored (`count_part`), records with equal cells are sent to the same bucket
(`deal_for_counting`), and every group is recounted (`count_bucket`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import FileError, VerificationError
from shoal.core.measures import group_sizes
from shoal.core.messages import agreeing, count
from shoal.core.types import Ints, Name, Spelling, State
from shoal.engines.records import Arrays, Records, Regrouping
from shoal.kernels.words import Words, bucket_of_words, number_bits, number_words, words_of
from shoal.masking.aggregate import Bucket, new_zeros
from shoal.masking.cells import number_cells
from shoal.masking.confidential import (
    Promise,
    Values,
    count_alike,
    number_values,
    reached_by_column,
    read_values,
    worst,
)
from shoal.masking.plan import Plan
from shoal.masking.release import GroupCount, UnitCount
from shoal.masking.roles import Columns
from shoal.masking.steps import confidential_codes, unit_words
from shoal.masking.sums import count_broken, whole_total
from shoal.promises.distinct_units import count_units, fingerprints
from shoal.tables.columns import Codes, check_released
from shoal.tables.formulas import formula_columns
from shoal.tables.identifiers import NUMBERED, WholeNumbers, identifying_columns, is_numbering
from shoal.tables.table import Table, number_rows

__all__ = [
    "Recounted",
    "check_sizes",
    "count_bucket",
    "count_part",
    "count_unique",
    "count_units_of_bucket",
    "deal_for_counting",
    "deal_units",
    "identical_records",
    "recount",
    "row_hashes",
    "units_part",
    "verify",
]

WEIGHTS = 1_000_000  # largest number of records for which all weights are counted; larger tables use a sample


def verify(values: Sequence[NDArray[Any]] | NDArray[Any], k: int, strata: NDArray[Any] | None = None) -> None:
    """Count the records with identical values within their stratum, and refuse any count below k.

    The count uses only the released values, not the labels or the group sizes.

    Examples
    --------
    >>> verify(np.array([[1.5], [1.5], [4.0]]), k=2)
    Traceback (most recent call last):
    ...
    shoal.core.errors.VerificationError: 1 of 2 groups of identical records has fewer than k=2 records...
    """
    check_sizes(group_sizes(identical_records(values, strata)), k)


def row_hashes(table: pl.DataFrame) -> Words:
    """Return a hash of each record, equal for equal records."""
    # The codes of categories differ between tables, so their text is hashed.
    hashes: Words = table.with_columns(pl.col(pl.Categorical).cast(pl.String)).hash_rows(seed=0).to_numpy()
    return hashes


def count_unique(hashes: Words) -> int:
    """Count the records with a unique hash.

    Examples
    --------
    >>> count_unique(np.array([7, 3, 7], dtype=np.uint64))
    1
    """
    return int((np.unique(hashes, return_counts=True)[1] == 1).sum())


def check_sizes(counts: Ints, k: int, noun: str = "records") -> None:
    """Refuse any count below k."""
    small = int((counts < k).sum())
    if small:
        raise VerificationError(
            f"{small} of {count(len(counts), 'group')} of identical records {agreeing(small, 'has', 'have')} fewer "
            f"than k={k} {noun}; the smallest has {counts.min()}. Nothing was released."
        )


def identical_records(values: Sequence[NDArray[Any]] | NDArray[Any], strata: NDArray[Any] | None = None) -> Ints:
    """Number the records 0, 1, … so that identical records of a stratum have the same number.

    Examples
    --------
    >>> identical_records(np.array([[1.5], [4.0], [1.5]])).tolist()
    [0, 1, 0]
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        words = words_of(np.ascontiguousarray(values))
    else:
        columns = values.T if isinstance(values, np.ndarray) else values
        words = np.column_stack([_column_words(np.asarray(column)) for column in columns])
    if strata is not None:
        words = np.column_stack([words, _column_words(np.asarray(strata))])
    labels: Ints = number_words(words)
    return labels


def _column_words(column: NDArray[Any]) -> Words:
    return number_bits(column if column.dtype.kind in "fiub" else np.unique(column, return_inverse=True)[1])


class Counted(NamedTuple):
    """The counts and spellings of a released part."""

    rows: int
    strata: list[tuple[object, ...]]  # by code
    spellings: tuple[frozenset[Spelling], ...]  # spellings of missing values per masked column
    zeros: tuple[int, ...]  # per column whose zeros are kept
    broken: tuple[int, ...]  # number of records that break each sum rule
    totals: tuple[int, ...]  # per masked column, if totals of whole numbers are kept
    identifiers: dict[Name, str]  # unchanged columns that look like identifiers, with the reason
    spans: dict[Name, WholeNumbers]  # unchanged columns of distinct whole numbers
    confidential: tuple[Values, ...]
    formulas: list[Name]  # columns of a CSV file with text that a spreadsheet would run
    weights: tuple[Words, Ints]  # hashes of the distinct weights, or of a sample, and the records with each


class CountedGroups(NamedTuple):
    """The counted groups of a bucket."""

    singled_out: int  # records that are unique in the columns that an outsider can know
    groups: int  # groups of identical records
    reached: list[float]  # the worst figures of any group in sensitive columns
    alike: list[tuple[int, int]]  # per sensitive column: groups in which all, or most, records have one value


def count_part(
    table: Table,
    first: int,
    columns: Columns,
    codes: Codes,
    outsider: Sequence[Name],
    unit: Name | Words | None,
    csv: bool,
    sample: int,
) -> tuple[Arrays, Counted]:
    """Read the written cells of a released part; return the arrays for the recount of groups, and the other counts.

    `codes` holds the released codes for missing values. `outsider` holds the columns that an outsider can know, if
    there are more of these than masked columns and strata. `unit` is the unit column, or the unit of each record if
    that column is left out. One in `sample` distinct weights is counted.
    """
    masked, categories, by = columns.masked, columns.categories, columns.by
    table = table.coded(codes)
    words = table.words(masked, categories)
    arrays: dict[str, Any] = {"words": np.column_stack(words)}
    strata: list[tuple[object, ...]] = [()]
    if by:
        arrays["codes"], strata = number_rows(table.cells(by))
    if unit is not None:
        arrays["unit"] = unit if isinstance(unit, np.ndarray) else unit_words(table, unit, first)
    confidential: tuple[Values, ...] = ()
    if columns.confidential:
        arrays["confidential"], confidential = read_values(table, columns.confidential, first)
    if outsider:
        arrays["row"] = row_hashes(table.cells(outsider))
    # The bits of an integer may equal the bits of NaN; the column is then checked unnecessarily.
    missing = [bool(np.isnan(column.view(np.float64)).any()) for column in words]
    spellings = tuple(
        table[name].spellings(table[name].missing(kind)) if missing[j] else frozenset[Spelling]()
        for j, (name, kind) in enumerate(columns.kind_of.items())
    )
    left = [name for name in table.names if name not in {*masked, *by}]
    keys = table.keys(left).get_columns() if left else []  # no call of polars, which would use memory in every worker
    looks, spans = identifying_columns(dict(zip(left, keys, strict=True))) if left else ({}, {})
    numeric = [name for name in masked if name not in categories] if columns.totals else []
    promised = {*columns.zeros, *numeric, *(name for rule in columns.rules for name in rule.columns)}
    numbers = {name: table[name].numbers() for name in promised}
    zeros = tuple(int(np.count_nonzero(numbers[name].values == 0)) for name in columns.zeros)
    broken = tuple(count_broken(rule, numbers).records for rule in columns.rules)
    totals = {name: whole_total(numbers[name].values) for name in numeric}
    kept = tuple(totals.get(name, 0) for name in masked)
    text = [name for name in table.names if name not in masked or name in categories]
    formulas = formula_columns(table, text) if csv else []
    weights = _count_weights(table, columns.weights, sample)
    return arrays, Counted(
        table.rows, strata, spellings, zeros, broken, kept, looks, spans, confidential, formulas, weights
    )


def _count_weights(table: Table, name: Name | None, sample: int) -> tuple[Words, Ints]:
    """Return the hashes of one in `sample` distinct weights of a part, and the number of records with each weight."""
    words = np.empty(0, dtype=np.uint64) if name not in table.names else row_hashes(table.cells([name]))
    different, counts = np.unique(words[words % np.uint64(sample) == 0], return_counts=True)
    return different, counts.astype(np.int64)


def deal_for_counting(part: int, arrays: Arrays, own: tuple[Ints, Sequence[Ints]], targets: int) -> tuple[Ints, Arrays]:
    """Send records with equal cells to the same bucket; `own` numbers the strata and the sensitive values."""
    words = arrays["words"]
    if "codes" in arrays:
        words = np.column_stack([words, own[0][arrays["codes"]].astype(np.uint64)])
    sent = {"words": words}
    sent |= {name: arrays[name] for name in ("row", "unit") if name in arrays}
    return bucket_of_words(words, targets), {**sent, **confidential_codes(arrays, own[1])}


def count_bucket(
    arrays: Arrays, state: State, k: int, columns: int, whole_records: bool, promise: Promise
) -> tuple[Arrays, CountedGroups]:
    """Count the groups of a bucket; refuse a group below k or with a broken promise."""
    count, reached, alike = 0, list[float](), list[tuple[int, int]]()
    words = np.ascontiguousarray(arrays["words"])
    strata = words[:, columns:]
    for released in [words] if whole_records else [np.column_stack([words[:, [j]], strata]) for j in range(columns)]:
        groups = number_words(np.ascontiguousarray(released))
        sizes = group_sizes(groups)
        check_sizes(sizes, k)
        if "unit" in arrays:
            check_sizes(count_units(groups, arrays["unit"].reshape(-1)), k, "units")
        if promise.columns and len(groups):
            codes = arrays["confidential"].reshape(len(groups), -1)
            count, reached = len(sizes), worst(codes, groups, promise)
            alike = [count_alike(column, groups) for column in codes.T]
    singled_out = count_unique(arrays["row"].reshape(-1)) if "row" in arrays else 0
    return {}, CountedGroups(singled_out, count, reached, alike)


def units_part(table: Table, first: int, outsider: Sequence[Name], unit: Name) -> tuple[Arrays, None]:
    """Return, per record of a released part, a hash of the columns that an outsider can know, and the unit."""
    return {"words": row_hashes(table.cells(outsider)), "unit": unit_words(table, unit, first)}, None


def deal_units(part: int, arrays: Arrays, own: None, targets: int) -> tuple[Ints, Arrays]:
    """Send all records of a unit to the same bucket."""
    return bucket_of_words(arrays["unit"].reshape(-1, 1), targets), arrays


def count_units_of_bucket(arrays: Arrays, state: State) -> tuple[Arrays, Words]:
    """Return a fingerprint of each unit of a bucket, equal for units that an outsider cannot distinguish."""
    return {}, fingerprints(arrays["unit"].reshape(-1), arrays["words"].reshape(-1))


class Recounted(NamedTuple):
    """The figures counted in the released table."""

    singled_out: int  # records that are unique in the columns that an outsider can know
    identifiers: dict[Name, str]  # columns that look like identifiers, with the reason
    totals: Ints  # totals of the columns of whole numbers, if kept
    reached: dict[Name, dict[str, float]]  # the worst figures of any group per sensitive column
    formulas: list[Name]  # columns with text that a spreadsheet would run
    homogeneous: dict[Name, GroupCount]  # per sensitive column: groups in which all records have one value
    concentrated: dict[Name, GroupCount]  # per sensitive column: groups in which at least 90 % have one value
    unique_weights: int  # records with a unique weight; an estimate from a sample above a million records
    unique_units: UnitCount | None  # units that are unique by their records taken together; None without a unit column


def recount(released: Records, plan: Plan, buckets: Sequence[Bucket], units: Words | None) -> Recounted:
    """Recount every group from the released table alone; `units` holds the units if the table does not contain them."""
    request, names, columns, by = plan.request, plan.columns.released, plan.columns.masked, plan.columns.by
    check_released(released.names, names)
    # Groups of k ≥ 2 identical records single out nobody in the masked columns and strata.
    sample = -(-plan.rows // WEIGHTS)
    counts_rows = not request.entry.whole_records or len({*columns, *by}) < len(plan.columns.outsider)
    outsider = plan.columns.outsider if counts_rows else ()
    unit = request.unit if request.unit in names or units is None else units
    codes = {name: [code] for name, code in plan.spellings.codes.items()}
    parts: list[Counted] = released.keep(
        count_part, plan.columns, codes, outsider, unit, request.writes_csv, sample, columns=list(names)
    )
    rows = sum(part.rows for part in parts)
    if rows != plan.rows:
        raise FileError(
            f"Output {request.output} has {count(rows, 'record')} instead of {plan.rows}. Nothing was released."
        )
    for name, spellings in zip(columns, zip(*(part.spellings for part in parts), strict=True), strict=True):
        if len(frozenset[Any]().union(*spellings)) > 1:
            raise VerificationError(
                f"Column {name!r} has missing cells with different spellings. Nothing was released."
            )
    _check_kept(plan, parts, buckets)
    target_rows = released.rows_of_a_target(10 * len(columns) + 12 + 4 * len(plan.columns.confidential), counted=True)
    targets = -(-rows // target_rows)
    sent = {"words": ("uint64", len(columns) + bool(by))}
    if counts_rows:
        sent["row"] = ("uint64", 1)
    if unit is not None:
        sent["unit"] = ("uint64", 1)
    promise, numbers = Promise(), list[tuple[Ints, ...]]([()] * len(parts))
    if plan.columns.confidential:
        confidential = [part.confidential for part in parts]
        promise, numbers = number_values(plan.columns.confidential, confidential, plan.promise.models)
        sent["confidential"] = ("int64", len(promise.columns))
    regrouping = Regrouping(
        deal_for_counting,
        count_bucket,
        targets,
        sent,
        {},
        own=list(zip(number_cells([part.strata for part in parts])[0], numbers, strict=True)),
        dealing=(targets,),
        gathering=(request.k, len(columns), request.entry.whole_records, promise),
    )
    identifiers = _named([part for part in parts if part.rows], names)
    counted: list[CountedGroups] = released.regroup(regrouping)
    totals: Ints = np.sum([part.totals for part in parts], axis=0, dtype=np.int64)
    worsts = [bucket.reached for bucket in counted if bucket.reached]
    reached = reached_by_column(promise, worsts) if promise.columns else {}
    formulas = list(dict.fromkeys(name for part in parts for name in part.formulas))
    singled_out = sum(bucket.singled_out for bucket in counted)
    homogeneous, concentrated = (_alike(promise, counted, place) for place in (0, 1))
    weights = _unique_weights(parts, sample)
    unique_units = _unique_units(released, plan) if request.unit in names else None
    return Recounted(
        singled_out, identifiers, totals, reached, formulas, homogeneous, concentrated, weights, unique_units
    )


def _alike(promise: Promise, buckets: Sequence[CountedGroups], place: int) -> dict[Name, GroupCount]:
    """Count, per sensitive column, the groups in which all records (`place` 0) or most (1) have one value."""
    groups = sum(bucket.groups for bucket in buckets)
    counts = zip(*(bucket.alike for bucket in buckets if bucket.groups), strict=True)
    return {
        column.name: GroupCount(sum(pair[place] for pair in pairs), groups)
        for column, pairs in zip(promise.columns, counts, strict=True)
    }


def _unique_weights(parts: Sequence[Counted], sample: int) -> int:
    """Count the records with a unique weight across all parts."""
    words, counts = (np.concatenate(columns) for columns in zip(*(part.weights for part in parts), strict=True))
    different, weight = np.unique(words, return_inverse=True)
    return sample * int(np.count_nonzero(np.bincount(weight, counts, len(different)) == 1))


def _unique_units(released: Records, plan: Plan) -> UnitCount:
    """Count the units that are unique by their records taken together."""
    unit, outsider = plan.request.unit, plan.columns.outsider
    parts = released.keep(units_part, outsider, unit, columns=[*outsider, unit])
    targets = -(-plan.rows // released.rows_of_a_target(4, counted=True))
    sent = {"words": ("uint64", 1), "unit": ("uint64", 1)}
    regrouping = Regrouping(deal_units, count_units_of_bucket, targets, sent, {}, own=parts, dealing=(targets,))
    words: Words = np.concatenate(released.regroup(regrouping))
    return UnitCount(count_unique(words), len(words))


def _check_kept(plan: Plan, parts: Sequence[Counted], buckets: Sequence[Bucket]) -> None:
    """Refuse a release that does not keep zeros or sum rules."""
    zeros = np.sum([part.zeros for part in parts], axis=0)
    for name, zero, expected in zip(plan.columns.zeros, zeros, plan.zeros + new_zeros(buckets), strict=True):
        if zero != expected:
            raise VerificationError(
                f"Column {name!r} has {count(zero, 'zero')} instead of {expected}. Nothing was released."
            )
    for rule, *broken in zip(plan.columns.rules, *(part.broken for part in parts), strict=True):
        if sum(broken):
            raise VerificationError(
                f"Rule {rule.text!r} is broken by {count(sum(broken), 'record')}. Nothing was released."
            )


def _named(parts: Sequence[Counted], names: Sequence[Name]) -> dict[Name, str]:
    """Return the columns that look like identifiers in every part or that number the records across all parts."""
    reasons = {}
    for name in names:
        if all(name in part.identifiers for part in parts):
            reasons[name] = parts[0].identifiers[name]
        elif all(name in part.spans for part in parts) and is_numbering([part.spans[name] for part in parts]):
            reasons[name] = NUMBERED
    return reasons
