"""The masking pipeline for all engines, in three stages: prepare → group → release.

`prepare` reads and plans, `group` forms the groups and computes their values, and `release` writes the masked table and
verifies it. Each step is a function of `shoal.masking.steps` that runs where the records are stored. This module
connects the steps and does not depend on the engine.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.registry import AUTO
from shoal.core.errors import InputError
from shoal.core.messages import Message, parameter, setting
from shoal.core.progress import SearchTitle, watch, watched
from shoal.core.types import Ints, State
from shoal.engines.records import Records, Regrouping
from shoal.kernels.words import Words
from shoal.kinds.kind import Rescalings
from shoal.masking.aggregate import Bucket, mask_bucket
from shoal.masking.cells import STAY, Moves, PartStatistics, may_be_small
from shoal.masking.group import BucketPlan
from shoal.masking.memory import MemoryRecords
from shoal.masking.plan import Plan, check_engine, choose_rule, find_rounding, find_scales, make_plan
from shoal.masking.release import Release
from shoal.masking.request import MaskRequest
from shoal.masking.request_rules import check_data, check_lines, check_promises
from shoal.masking.roles import Columns, check_identifiers, choose_masked, settle
from shoal.masking.small_strata import join_small, small_cells
from shoal.masking.steps import (
    deal_to_blocks,
    deal_to_cells,
    look,
    read_part,
    records_of_units,
    release_part,
    units_of_part,
)
from shoal.masking.summary import summarise
from shoal.masking.verification import recount
from shoal.masking.warm_up import warm_up
from shoal.tables.columns import Name
from shoal.tables.files import (
    check_data_set,
    check_output,
    check_target,
    check_text_names,
    is_beyond_memory,
    is_dask,
    is_spark,
    named_source,
    open_data,
    stored_bytes,
)
from shoal.tables.formulas import escape_header
from shoal.tables.outputs import moved_together, written_path

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks
    from shoal.blocks.rule import Blocking
    from shoal.core.measures import Scaling
    from shoal.engines.process_pool import Template
    from shoal.roles.column_roles import ColumnRole
    from shoal.tables.table import Table

__all__ = ["Groups", "decide_roles", "group", "mask_data", "mask_records", "prepare", "release"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """The groups of a plan with their values, before the release."""

    plan: Plan
    most: int  # upper bound on the records of a unit
    blocks: Blocks | None  # the blocks in which records were grouped, if any
    buckets: list[Bucket]


def mask_data(data: Any, request: MaskRequest, template: Template | None = None) -> Release:
    """Mask a table; `template` is the process from which workers are forked, if it has already started."""
    data = named_source(data)
    dask, spark = is_dask(data), is_spark(data)
    check_data(request, data, dask=dask, spark=spark)
    if request.takes_names:
        from shoal.masking.column_patterns import expand_patterns

        request = expand_patterns(request, data)
    if dask or spark or request.engine not in (None, "memory"):
        check_lines(request)
    if spark or request.engine == "spark":
        from shoal.engines.spark import open_spark

        request, proposed = decide_roles(data, request)
        with moved_together(), open_spark(data, request.output, request.labels, request.master) as records:
            return mask_records(records, request, proposed)
    clustered = dask or request.engine == "dask"
    check_output(data, request.output, clustered=clustered)
    if request.output is not None:
        check_text_names(data)
    if request.labels is not None:
        (check_data_set if clustered else check_target)(request.labels)
    with moved_together():
        if clustered:
            from shoal.engines.dask import open_dask

            request, proposed = decide_roles(data, request)
            columns = request.columns or []
            with open_dask(
                data, request.output, request.scheduler, numbers=columns, codes=request.codes, reading=request.reading
            ) as records:
                return mask_records(records, request, proposed)
        if is_beyond_memory(data, request.engine, request.memory):
            return _mask_files(data, request, template)
        if request.processes is not None:
            raise InputError(
                f"{parameter('processes')} requires {setting('engine', 'local')}, got {request.processes!r} for a "
                f"table that is masked in memory. Leave it out, or use {setting('engine', 'local')}."
            )
        read = partial(open_data, data, numbers=request.numbers, named=True, reading=request.reading)
        table = watch(lambda _: read(), None, title="read", show=request.progress)
        request, proposed = decide_roles(data, request, table)
        return mask_records(MemoryRecords(table.coded(request.codes), progress=request.progress), request, proposed)


def decide_roles(
    data: Any, request: MaskRequest, table: Table | None = None
) -> tuple[MaskRequest, Mapping[Name, ColumnRole] | None]:
    """Return the request with a role for every column, and these roles, or None if no roles are proposed.

    Roles are proposed if the user names no columns to mask, except for an array, which holds only numbers. Without
    `table`, they are proposed from the first records of the data.
    """
    if request.columns is not None or isinstance(data, np.ndarray):
        check_promises(request)
        return request, None
    from shoal.masking.proposed_roles import propose_roles

    return propose_roles(data, request, table)


def _mask_files(data: Any, request: MaskRequest, template: Template | None) -> Release:
    from shoal.engines.local import check_files, open_local

    check_lines(request)
    paths, target, limits = check_files(data, request.output, request.labels, request.memory, request.processes)
    decided, proposed = decide_roles(data, request)

    def run(state: State) -> Release:
        numbers = decided.columns or []
        with open_local(
            paths, target, limits, state, template, numbers=numbers, codes=decided.codes, reading=decided.reading
        ) as records:
            return mask_records(records, decided, proposed)

    steps = max(1, stored_bytes(paths) // 45_000_000)
    return watch(run, steps, title=request.title, show=request.progress)


def mask_records(records: Records, request: MaskRequest, proposed: Mapping[Name, ColumnRole] | None = None) -> Release:
    """Mask the records of an engine; `proposed` holds the roles of all columns if shoal proposed them."""
    released = release(group(prepare(records, request)))
    if not proposed:
        return released
    from shoal.masking.proposed_roles import PROPOSED

    reasons = {name: proposed[name].reason if name in proposed else why for name, why in released.dropped.items()}
    return replace(released, dropped=reasons, notes=(Message(PROPOSED), *released.notes))


def prepare(records: Records, request: MaskRequest) -> Plan:
    """Read the records of an engine and plan the request; refuse a request that the table cannot satisfy."""
    timings: dict[str, float] = {}
    columns = choose_masked(request, records.schema)
    if records.dialect is not None and not (records.whole or request.writes_csv):
        columns = replace(columns, typed=columns.with_own_cells)
    request = settle(request, columns)
    check_engine(request, records, columns)
    with timed(timings, "prepare"):
        records.prepare(warm_up, request, len(columns.masked))
    with timed(timings, "read"):
        columns = find_rounding(records, find_scales(records, columns))
        parts, moves = _read(records, request, columns)
        return make_plan(records, request, columns, parts, moves, timings)


def group(plan: Plan, shared: Sequence[Mapping[str, Any]] = ()) -> Groups:
    """Group records and compute the values of the groups; `shared` holds options per cell that several runs reuse."""
    with timed(plan.timings, "block"):
        most = _most_records(plan)
        rule = choose_rule(plan, most)
        blocks = None if rule is None else _divide(plan, rule)
    with timed(plan.timings, "partition"), compiling(plan.timings):
        buckets = _group(plan, blocks, shared)
    return Groups(plan=_without_ambiguous_codes(plan, buckets), most=most, blocks=blocks, buckets=buckets)


def release(groups: Groups) -> Release:
    """Write the released table, verify it, and return the release."""
    plan, buckets = groups.plan, groups.buckets
    records, request, columns = plan.records, plan.request, plan.columns
    shuffled = _random_order(request, plan.rows) if request.shuffled else None
    with timed(plan.timings, "write"), moved_together() as outputs:
        output = None if request.output is None else Path(request.output)
        written = records.release(
            release_part, columns, plan.storages, plan.embedding.codings, plan.spellings, request.whole, shuffled,
            bool(request.escape_formulas),
            layout=columns.layout(plan.types), output=output,
        )  # fmt: skip
        with timed(plan.timings, "verify"):
            recounted = recount(written.records, plan, buckets, _units(plan, shuffled))
            check_identifiers(request, plan.columns, recounted.identifiers)
        if request.escape_formulas and output is not None and written.records.dialect is not None:
            escape_header(written_path(output), columns.released, written.records.dialect)
        if request.labels is not None:
            sizes = np.array([int(bucket.sizes.sum()) for bucket in buckets])
            outputs.keep_private(Path(request.labels))  # labels link released records to the original ones
            records.write_labels(Path(request.labels), columns.masked, np.cumsum(sizes) - sizes, shuffled)
    return summarise(plan, groups.blocks, buckets, written, recounted, shuffled, groups.most)


@contextmanager
def timed(timings: dict[str, float], step: str) -> Iterator[None]:
    """Record the duration of a step in seconds."""
    start = time.perf_counter()
    yield
    timings[step] = time.perf_counter() - start


@contextmanager
def compiling(timings: dict[str, float]) -> Iterator[None]:
    """Record the seconds spent on compiling kernels in this process, if any."""
    from numba.core.event import install_timer

    with install_timer("numba:compile", lambda seconds: timings.update(compile=seconds)):
        yield


def _most_records(plan: Plan) -> int:
    """Return an upper bound on the number of records of a unit."""
    if plan.request.unit is None:
        return 1
    return int(plan.records.reduce(records_of_units, operator.add, own=plan.own).max())


def _read(records: Records, request: MaskRequest, columns: Columns) -> tuple[list[PartStatistics], Moves]:
    """Read all parts; read them again if records of small cells are suppressed or joined to others."""

    def read(moves: Moves) -> list[PartStatistics]:
        return records.keep(
            read_part, columns, request.missing, moves, request.weight_vector, request.k, columns=columns.read()
        )

    parts, moves = read(STAY), STAY
    if request.small == "suppress":
        moves = Moves(dict.fromkeys(small_cells(request, columns, parts, records.dialect)))
    # With kept zeros, records that are zero in different columns must not be joined.
    elif request.small == "merge" and not columns.zeros and may_be_small(parts, request.k):
        moves = join_small(records, request, columns, parts) or STAY
    return (read(moves) if moves.patterns else parts), moves


def _units(plan: Plan, shuffled: Ints | None) -> Words | None:
    """Return the unit of every released record, unless the release contains the unit column."""
    if plan.request.unit is None or plan.request.unit in plan.columns.released:
        return None
    units: Words = plan.records.reduce(units_of_part, np.append, own=plan.own)
    return units if shuffled is None else units[shuffled]


def _random_order(request: MaskRequest, rows: int) -> Ints:
    """Return a random order of the records; without a seed, the operating system provides the randomness."""
    return np.random.default_rng(None if request.shuffle is True else request.shuffle).permutation(rows)


@dataclass(frozen=True)
class _Numbers:
    """The input of blocking: the numbers of all records on their comparison scales, and the cells of the records."""

    plan: Plan
    rescalings: Rescalings = ()

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Combine the results of ``function(first record, X, roots, *arguments)`` over all parts."""
        return self.plan.records.reduce(look, combine, self.rescalings, function, arguments, own=self.plan.own)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in a process that has loaded the kernels."""
        return self.plan.records.call(function, *arguments)


def _divide(plan: Plan, rule: Blocking) -> Blocks:
    from shoal.blocks.blocking import find_blocks
    from shoal.blocks.split_choice import choose_split

    numbers = _Numbers(plan, plan.embedding.rescalings)
    if rule.measured:
        rule = replace(rule, split=choose_split(numbers, plan.extent, rule, plan.embedding.place))
    return find_blocks(numbers, plan.extent, rule)


def _scale(plan: Plan, blocks: Blocks) -> Scaling:
    """Return the scaling of the columns in their own units; the blocks were cut on the comparison scales."""
    from shoal.blocks.blocking import find_scaling

    return find_scaling(_Numbers(plan), plan.limits) if plan.embedding.rescalings else blocks.scale


def _group(plan: Plan, blocks: Blocks | None, shared: Sequence[Mapping[str, Any]]) -> list[Bucket]:
    """Gather the records of every block or cell and mask them."""
    records, request, d = plan.records, plan.request, len(plan.columns.masked)
    deal: Any = deal_to_cells
    dealing: tuple[Any, ...] = ()
    targets = 1
    if blocks is not None:
        rescalings = plan.embedding.rescalings
        width = 10 * d + 12 + 4 * len(plan.columns.confidential) + (2 * d if rescalings else 0)
        bucket, firsts = _buckets(blocks, records.rows_of_a_target(width))
        deal, dealing, targets = deal_to_blocks, (blocks, rescalings, bucket, firsts), len(firsts)
    sent = {"block": ("int32", 1), "X": ("float64", d)}
    if request.weights is not None:
        sent["weights"] = ("float64", 1)
    if request.unit is not None:
        sent["unit"] = ("uint64", 1)
    if plan.blanked:
        sent["lost"] = ("float64", d)
    if plan.columns.confidential:
        sent["confidential"] = ("int64", len(plan.columns.confidential))
    answered = {"released": ("float64", d)}
    if request.labels is not None or records.whole:
        answered |= {"group": ("int64", 1), "size": ("int64", 1)}
    bucket_plan = BucketPlan(
        request=request,
        rounding=plan.rounding,
        embedding=plan.embedding,
        promise=plan.promise,
        whole=blocks is None,
        scale=None if blocks is None else _scale(plan, blocks),
        compared_scale=None if blocks is None else blocks.scale,
        records=plan.rows,
        parallel=records.parallel,
        threads=records.threads,
        amounts=plan.amounts,
        shared=shared,
    )
    regrouping = Regrouping(
        deal=deal,
        gather=mask_bucket,
        targets=targets,
        sent=sent,
        answered=answered,
        own=plan.own,
        dealing=dealing,
        gathering=(bucket_plan,),
    )
    # If a caller such as the page watches the run, a stop keeps the result so far. Otherwise Ctrl-C aborts the default
    # method.
    anytime = request.entry.anytime or (request.entry.name == AUTO and blocks is None and watched())
    alone = request.entry.anytime and blocks is None and len(plan.sizes) == 1
    title = _search_title(request.entry.name, plan) if alone else request.entry.name
    buckets: list[Bucket] = records.regroup(regrouping, title=title, anytime=anytime)
    return buckets


def _without_ambiguous_codes(plan: Plan, buckets: Sequence[Bucket]) -> Plan:
    """Return the plan with missing cells left empty in columns whose code for missing is also the value of a group."""
    is_taken = np.any([bucket.taken for bucket in buckets], axis=0)
    names = [name for name, ambiguous in zip(plan.columns.masked, is_taken, strict=True) if ambiguous]
    notes = [f"missing cells of {n} are empty: {plan.spellings.codes[n]} is also the value of a group" for n in names]
    return replace(plan, spellings=plan.spellings.without(names), notes=(*plan.notes, *notes))


def _buckets(blocks: Blocks, rows: int) -> tuple[Ints, Ints]:
    """Return the bucket of each block and the first block of each bucket.

    A bucket holds consecutive blocks in Morton order with about `rows` records.
    """
    before = np.cumsum(blocks.sizes) - blocks.sizes
    _, firsts, buckets = np.unique(before // max(rows, 1), return_index=True, return_inverse=True)
    return buckets, firsts


def _search_title(name: str, plan: Plan) -> SearchTitle:
    # The sum of squares of a standardised column equals its number of values.
    varied = plan.limits[0] < plan.limits[1]
    return SearchTitle(name, float(plan.present[varied].sum()) or 1.0)
