"""The recount: what was released is read again, and nothing leaves that does not hold there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.core.errors import FileError, VerificationError
from shoal.core.messages import count
from shoal.core.types import Ints
from shoal.engines.records import Records, Regrouping
from shoal.kernels.words import Words
from shoal.masking.cells import number_cells
from shoal.masking.confidential import Promise, number_values, told
from shoal.masking.counting import Counted, CountedGroups, count_bucket, count_part, deal_for_counting
from shoal.masking.parts import Bucket, new_zeros
from shoal.masking.plan import Plan
from shoal.masking.release import GroupCount
from shoal.masking.request import MaskRequest
from shoal.tables.columns import Name
from shoal.tables.looks import NUMBERED, is_numbering
from shoal.tables.selection import check_released

__all__ = ["Recounted", "recount"]


class Recounted(NamedTuple):
    """What was found in the release."""

    uniques: int  # records that are unique in it
    identifiers: dict[Name, str]  # columns that look like identifiers, and why
    totals: Ints  # of columns of whole numbers, if they are kept
    reached: dict[Name, dict[str, float]]  # what groups reach in confidential columns
    formulas: list[Name]  # columns with text that a spreadsheet would run
    homogeneous: dict[Name, GroupCount]  # per confidential column: groups whose records all have one value


def recount(
    released: Records,
    names: Sequence[Name],
    request: MaskRequest,
    plan: Plan,
    buckets: Sequence[Bucket],
    units: Words | None,
) -> Recounted:
    """Count every group again, in what was released and nothing else but units that are not in it."""
    check_released(released.names, names)
    columns, by = plan.columns.masked, plan.columns.by
    others = not request.entry.whole_records or len({*columns, *by}) < len(names)
    read = list(names) if others else [*columns, *by]
    unit = request.unit if request.unit in names or units is None else units
    codes = {name: [code] for name, code in plan.spellings.codes.items()}
    parts: list[Counted] = released.keep(
        count_part, plan.columns, codes, others, unit, request.writes_csv, columns=read
    )
    found = sum(part.rows for part in parts)
    if found != plan.rows:
        raise FileError(
            f"Output {request.output} has {count(found, 'record')} instead of {plan.rows}. Nothing was released."
        )
    for name, spellings in zip(columns, zip(*(part.spellings for part in parts), strict=True), strict=True):
        if len(frozenset[Any]().union(*spellings)) > 1:
            raise VerificationError(
                f"Column {name!r} has missing cells that are spelled in several ways. Nothing was released."
            )
    _check_kept(plan, parts, buckets)
    rows = released.rows_of_a_target(10 * len(columns) + 12 + 4 * len(plan.columns.confidential), counted=True)
    targets = -(-found // rows)
    sent = {"words": ("uint64", len(columns) + bool(by))}
    if others:
        sent["row"] = ("uint64", 1)
    if unit is not None:
        sent["unit"] = ("uint64", 1)
    confidential = [part.confidential for part in parts]
    promise, numbers = number_values(plan.columns.confidential, confidential, plan.promise.models)
    if promise.columns:
        sent["confidential"] = ("int64", len(promise.columns))
    how = Regrouping(
        deal_for_counting,
        count_bucket,
        targets,
        sent,
        {},
        own=list(zip(number_cells([part.strata for part in parts])[0], numbers, strict=True)),
        dealing=(targets,),
        gathering=(request.k, len(columns), request.entry.whole_records, promise),
    )
    named = _named([part for part in parts if part.rows], names)
    found_in: list[CountedGroups] = released.regroup(how)
    totals: Ints = np.sum([part.totals for part in parts], axis=0, dtype=np.int64)
    reached = told(promise, [bucket.reached for bucket in found_in if bucket.reached])
    formulas = list(dict.fromkeys(name for part in parts for name in part.formulas))
    uniques = sum(bucket.uniques for bucket in found_in)
    return Recounted(uniques, named, totals, reached, formulas, _homogeneous(promise, found_in))


def _homogeneous(promise: Promise, buckets: Sequence[CountedGroups]) -> dict[Name, GroupCount]:
    """Add up the groups whose records all have one value."""
    groups = sum(bucket.groups for bucket in buckets)
    counts = zip(*(bucket.homogeneous for bucket in buckets if bucket.groups), strict=True)
    return {column.name: GroupCount(sum(count), groups) for column, count in zip(promise.columns, counts, strict=True)}


def _check_kept(plan: Plan, parts: Sequence[Counted], buckets: Sequence[Bucket]) -> None:
    """Refuse a release in which zeros are not kept, or sums are broken."""
    zeros = np.sum([part.zeros for part in parts], axis=0)
    for name, zero, known in zip(plan.columns.zeros, zeros, plan.zeros + new_zeros(buckets), strict=True):
        if zero != known:
            raise VerificationError(
                f"Column {name!r} has {count(zero, 'zero')} instead of {known}. Nothing was released."
            )
    for rule, *broken in zip(plan.columns.rules, *(part.broken for part in parts), strict=True):
        if sum(broken):
            raise VerificationError(
                f"Rule {rule.text!r} is broken by {count(sum(broken), 'record')}. Nothing was released."
            )


def _named(parts: Sequence[Counted], names: Sequence[Name]) -> dict[Name, str]:
    """Return the columns that look like identifiers: in every part, or as numberings that parts may divide anyhow."""
    named = {}
    for name in names:
        if all(name in part.identifiers for part in parts):
            named[name] = parts[0].identifiers[name]
        elif all(name in part.spans for part in parts) and is_numbering([part.spans[name] for part in parts]):
            named[name] = NUMBERED
    return named
