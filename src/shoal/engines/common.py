"""What all engines do beside moving records: choose columns, apply policies, number roots, sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.algorithms.registry import find
from shoal.blocks.blocking import BLOCK, Blocking, Blocks, choose_blocking
from shoal.engines.sources import Source
from shoal.engines.tasks import Bucket, Job, Staged
from shoal.errors import InputError
from shoal.grouping import check_k
from shoal.release import Release
from shoal.tables.frames import Stratum, check_name
from shoal.types import Ints

__all__ = [
    "buckets_of",
    "check_staged",
    "choose_columns",
    "column_kinds",
    "number_roots",
    "read_rule",
    "summarise",
]


def choose_columns(source: Source, wanted: Sequence[str] | None, by: Sequence[str], weights: str | None) -> list[str]:
    """Return the columns to mask."""
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


def check_staged(job: Job, staged: Sequence[Staged], missing: str) -> None:
    """Apply the policy of missing values, and check k against every set of records."""
    k = job.k
    incomplete = sum(part.incomplete for part in staged)
    if incomplete and missing == "error":
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
        check_k(k, count, Stratum(key, np.empty(0, dtype=np.int64)).describe(job.by) if job.by else "")
    for (key, pattern), count in totals.items():
        if count < k:
            where = Stratum(key, np.empty(0, dtype=np.int64)).describe(job.by)
            lacking = ", ".join(name for name, hole in zip(job.columns, pattern, strict=True) if hole)
            raise InputError(
                f"Parameter 'missing' is 'group', but only {count} records of {where} miss "
                f"{f'exactly: {lacking}' if lacking else 'nothing'}; k={k} are needed. Take missing='drop', a "
                "smaller k, or mask fewer columns."
            )


def number_roots(staged: Sequence[Staged]) -> tuple[list[Ints], int]:
    """Number the sets that groups must not leave, in order of appearance: of each part by code, and how many."""
    numbers: dict[object, int] = {}
    roots = [
        np.array([numbers.setdefault(cell, len(numbers)) for cell in found.cells], dtype=np.int64) for found in staged
    ]
    return roots, len(numbers)


def column_kinds(staged: Sequence[Staged]) -> tuple[str, ...]:
    """Return the kind of each column; the parts of a CSV file may differ in it."""
    found = [
        {kind for kind, part in zip(kinds, staged, strict=True) if part.kept}
        for kinds in zip(*(part.kinds for part in staged), strict=True)
    ]
    return tuple(next(iter(kinds)) if len(kinds) == 1 else "float" for kinds in found)


def read_rule(job: Job, block: int | None, split: str | None) -> Blocking:
    """Return how the table is cut: always in blocks."""
    wish = block if block is not None else max(BLOCK, 2 * job.k)
    able = find(job.method).whole_records
    rule = choose_blocking(wish, split, job.k, len(job.columns), 0, method=job.method, useful=True, able=able)
    if rule is None:
        raise InputError("Parameter 'block' must not be 0 for a table beyond memory: it is masked in blocks.")
    return rule


def buckets_of(blocks: Blocks, rows: int) -> Ints:
    """Return the bucket of each block: runs of blocks in Morton order of about `rows` records."""
    before = np.cumsum(blocks.sizes) - blocks.sizes
    buckets: Ints = np.unique(before // max(rows, 1), return_inverse=True)[1]
    return buckets


def summarise(
    job: Job,
    staged: Sequence[Staged],
    found: Sequence[Bucket],
    kinds: tuple[str, ...],
    facts: Mapping[str, object],
    *,
    data: Any,
    chosen: bool,
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
    notes = ["all numeric columns were masked, as none were named"] if chosen else []
    incomplete = sum(part.incomplete for part in staged)
    if incomplete:
        how = "left out (missing='drop')" if job.drop else "masked among those that miss the same columns"
        notes.append(f"{incomplete} records with missing values were {how}")
    whole = [name for name, kind in zip(job.columns, kinds, strict=True) if kind == "integer"]
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
        sizes=np.repeat(np.arange(len(sizes)), sizes),
        loss=100 * float(errors.sum()) / total if total > 0 else 0.0,
        bound=None,
        status="heuristic",
        column_loss=dict(zip(job.columns, each.tolist(), strict=True)),
        kept=np.empty(0, dtype=np.int64),
        parameters={
            "k": int(job.k),
            "columns": list(job.columns),
            "method": job.method,
            "options": dict(job.options),
            "by": list(job.by),
            "aggregate": job.aggregate,
            "seed": job.seed,
        },
        facts=facts,
        notes=tuple(notes),
        timings=seconds,
    )
