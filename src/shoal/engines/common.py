"""What all engines do beside moving records: choose columns, apply policies, number roots, sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms.own import check_sendable
from shoal.algorithms.registry import find
from shoal.blocks.blocking import BLOCK, Blocking, Blocks, Extent, choose_blocking
from shoal.core.checks import check_k
from shoal.core.errors import InputError
from shoal.core.types import Ints
from shoal.engines.request import Job, Request
from shoal.engines.tasks import Bucket, Kind, Spelling, Staged
from shoal.masking.release import Release
from shoal.tables.csv_files import one_spelling, parse_numbers
from shoal.tables.frames import Stratum, check_name
from shoal.tables.sources import Source

__all__ = [
    "buckets_of",
    "check_staged",
    "column_kinds",
    "extent_of_parts",
    "number_cells",
    "number_roots",
    "one_cell_each",
    "plan_job",
    "read_rule",
    "summarise",
]


def plan_job(asked: Request, source: Source, folder: Path = Path()) -> Job:
    """Return the job of a request and a table: the columns to mask are chosen and checked."""
    if asked.weights is not None and not isinstance(asked.weights, str):
        raise InputError("Parameter 'weights' must name a column for a table beyond memory; got a vector.")
    columns = tuple(_choose_columns(source, asked.columns, asked.by, asked.weights))
    asked = asked.settled(columns)
    check_sendable(find(asked.method), asked.options)
    return Job(asked, source, folder, columns)


def _choose_columns(source: Source, wanted: Sequence[str] | None, by: Sequence[str], weights: str | None) -> list[str]:
    names = list(source.names)
    for name in by:
        check_name(name, names, "by")
    if weights is not None:
        check_name(weights, names, "weights")
    if wanted is None:
        numeric = [name for name in source.numeric if name not in {*by, weights}]
        if not numeric:
            raise InputError("Parameter 'columns' is not given and the table has no numeric column to mask.")
        return numeric
    if not wanted:
        raise InputError("Parameter 'columns' must name at least one column, got none.")
    for name in wanted:
        check_name(name, names, "columns")
        if list(wanted).count(name) > 1:
            raise InputError(f"Parameter 'columns' must name each column once, but {name!r} stands twice.")
        if name in by:
            raise InputError(f"Column {name!r} stands in 'columns' and in 'by': it cannot be masked and split by.")
    return list(wanted)


def check_staged(job: Job, staged: Sequence[Staged]) -> None:
    """Apply the policy of missing values, and check k against every set of records."""
    k, by = job.k, job.asked.by
    incomplete = sum(part.incomplete for part in staged)
    if incomplete and job.asked.missing == "error":
        counts = np.sum([part.holes for part in staged], axis=0).tolist()
        listed = ", ".join(f"{name!r} ({c})" for name, c in zip(job.columns, counts, strict=True) if c)
        raise InputError(
            f"Values are missing in column {listed}; {incomplete} records are concerned. Choose missing='group' to "
            "mask them among records that miss the same columns, or missing='drop' to leave them out."
        )
    check_k(k, sum(part.kept for part in staged), "the table without records that miss a value" if job.drop else "")
    totals: dict[tuple[tuple[object, ...], tuple[bool, ...]], int] = {}
    strata: dict[tuple[object, ...], int] = {}
    for part in staged:
        for cell, count in zip(part.cells, part.counts.tolist(), strict=True):
            totals[cell] = totals.get(cell, 0) + count
            strata[cell[0]] = strata.get(cell[0], 0) + count
    for key, count in strata.items():
        check_k(k, count, Stratum(key, np.empty(0, dtype=np.int64)).describe(by) if by else "")
    for (key, pattern), count in totals.items():
        if count < k:
            where = Stratum(key, np.empty(0, dtype=np.int64)).describe(by)
            lacking = ", ".join(name for name, hole in zip(job.columns, pattern, strict=True) if hole)
            raise InputError(
                f"Parameter 'missing' is 'group', but only {count} records of {where} miss "
                f"{f'exactly: {lacking}' if lacking else 'nothing'}; k={k} are needed. Take missing='drop', a "
                "smaller k, or mask fewer columns."
            )


def number_roots(staged: Sequence[Staged]) -> tuple[list[Ints], int]:
    """Number the sets that groups must not leave, in order of appearance: of each part by code, and how many."""
    return number_cells([part.cells for part in staged])


def number_cells(cells: Sequence[Sequence[object]]) -> tuple[list[Ints], int]:
    """Number what the parts hold in order of appearance: of each part by code, and how many."""
    numbers: dict[object, int] = {}
    roots = [np.array([numbers.setdefault(cell, len(numbers)) for cell in part], dtype=np.int64) for part in cells]
    return roots, len(numbers)


def one_cell_each(job: Job, staged: Sequence[Staged]) -> tuple[list[Staged], Spelling]:
    """Give values of the strata, and missing cells of the masked columns, one spelling each in all parts."""
    missing = [set[str | None]().union(*columns) for columns in zip(*(part.spellings for part in staged), strict=True)]
    spelled = {name: next(iter(s)) if len(s) == 1 else None for name, s in zip(job.columns, missing, strict=True)}
    dialect = job.source.dialect
    if dialect is None or not job.asked.by:
        return list(staged), Spelling(spelled, {})
    respelled: list[dict[object, object]] = []
    for place in range(len(job.asked.by)):
        cells = pl.Series(list(dict.fromkeys(key[place] for part in staged for key, _ in part.cells)), dtype=pl.String)
        new = one_spelling(cells, parse_numbers(cells, dialect.decimal, codes=False))
        respelled.append({old: to for old, to in zip(cells, new, strict=True) if old != to})
    joined = [
        part._replace(
            cells=[
                (tuple(to.get(cell, cell) for cell, to in zip(key, respelled, strict=True)), pattern)
                for key, pattern in part.cells
            ]
        )
        for part in staged
    ]
    strata: dict[str, Any] = {name: to for name, to in zip(job.asked.by, respelled, strict=True) if to}
    return joined, Spelling(spelled, strata)


def extent_of_parts(staged: Sequence[Staged], roots: Sequence[Ints], many: int) -> Extent:
    """Return the bounds of all parts and the records of each of `many` roots."""
    low, high = (np.stack([part.limits[row] for part in staged]) for row in (0, 1))
    sizes = np.zeros(many, dtype=np.int64)
    for part, numbers in zip(staged, roots, strict=True):
        np.add.at(sizes, numbers, part.counts)
    return Extent(np.stack([low.min(axis=0), high.max(axis=0)]), sizes)


def column_kinds(staged: Sequence[Staged]) -> tuple[Kind, ...]:
    """Return the kind of each column; the parts of a CSV file may differ in it."""
    found = [
        [kind for kind, part in zip(kinds, staged, strict=True) if kind is not None and part.kept]
        for kinds in zip(*(part.kinds for part in staged), strict=True)
    ]
    return tuple(
        Kind(
            kinds[0].type if len({kind.type for kind in kinds}) == 1 else "float",
            whole=bool(kinds) and all(kind.whole for kind in kinds),
        )
        for kinds in found
    )


def read_rule(job: Job) -> Blocking:
    """Return how the table is cut: always in blocks."""
    asked = job.asked
    wish = asked.block if asked.block is not None else max(BLOCK, 2 * job.k)
    able = find(asked.method).whole_records
    if not able:
        raise InputError(
            f"Method {asked.title!r} groups every column on its own, which needs the whole table in memory. Take "
            "engine='memory', or a method that groups whole records."
        )
    rule = choose_blocking(wish, asked.split, job.k, len(job.columns), 0, method=asked.title, useful=True, able=able)
    if rule is None:
        raise InputError("Parameter 'block' must not be 0 for a table beyond memory: it is masked in blocks.")
    return rule


def buckets_of(blocks: Blocks, rows: int) -> tuple[Ints, Ints]:
    """Return the bucket of each block, runs of blocks in Morton order of about `rows` records, and each one's first."""
    before = np.cumsum(blocks.sizes) - blocks.sizes
    _, firsts, buckets = np.unique(before // max(rows, 1), return_index=True, return_inverse=True)
    return buckets, firsts


def summarise(
    job: Job,
    staged: Sequence[Staged],
    found: Sequence[Bucket],
    kinds: tuple[Kind, ...],
    facts: Mapping[str, object],
    uniques: int,
    *,
    data: Any,
    seconds: Mapping[str, float],
) -> Release:
    """Return the release: losses and sizes summed over the buckets."""
    errors = np.sum([bucket.errors for bucket in found], axis=0)
    totals = np.sum([bucket.totals for bucket in found], axis=0)
    total = float(totals.sum())
    rounding = float(np.sum([bucket.rounding for bucket in found]))
    sizes = np.zeros(max(len(bucket.sizes) for bucket in found), dtype=np.int64)
    for bucket in found:
        sizes[: len(bucket.sizes)] += bucket.sizes
    each = 100 * errors / np.where(totals > 0, totals, np.inf)
    notes = ["all numeric columns were masked, as none were named"] if job.asked.columns is None else []
    notes += job.asked.notes()
    incomplete = sum(part.incomplete for part in staged)
    if incomplete:
        how = "left out (missing='drop')" if job.drop else "masked among those that miss the same columns"
        notes.append(f"{incomplete} records with missing values were {how}")
    whole = [name for name, kind in zip(job.columns, kinds, strict=True) if kind.whole]
    if whole:
        listed, share = ", ".join(whole), 100 * rounding / total if total > 0 else 0.0
        notes.append(
            f"integer columns were rounded ({listed}), which adds {share:+.5f} % to the loss"
            if job.whole
            else f"integer columns hold decimals now ({listed}); integers='round' keeps them whole"
        )
    return Release(
        data=data,
        labels=np.empty(0, dtype=np.int64),
        # There may be very many groups; 2 bytes each are enough but for a group beyond all measure.
        sizes=np.repeat(np.arange(len(sizes), dtype=np.int16 if len(sizes) < 1 << 15 else np.int64), sizes),
        loss=100 * float(errors.sum()) / total if total > 0 else 0.0,
        bound=None,
        status="heuristic",
        column_loss=dict(zip(job.columns, each.tolist(), strict=True)),
        kept=np.empty(0, dtype=np.int64),
        parameters=job.asked.parameters(list(job.columns)),
        facts=facts,
        notes=tuple(notes),
        timings=seconds,
        left=tuple(name for name in job.source.names if name not in {*job.columns, *job.asked.by}),
        uniques=uniques,
    )
