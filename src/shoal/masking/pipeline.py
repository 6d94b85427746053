"""The whole way of the data, in one direction, over the records of any engine.

plan → read → block → group, aggregate → decode → write → VERIFY what was written → release. Each step is a function of
`shoal.masking.steps` that runs where the records are; this module wires them together and never asks where that is.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.checks import as_names
from shoal.core.errors import FileError, FormulaWarning, IdentifierWarning, NotKAnonymousWarning, VerificationError
from shoal.core.progress import Title, observe
from shoal.core.types import Ints, State
from shoal.engines.records import Records, Regrouping
from shoal.kernels.words import Words
from shoal.masking.cells import number_cells, small_cells
from shoal.masking.confidential import number_values, told
from shoal.masking.counting import Counted, count_bucket, count_part, deal_for_counting
from shoal.masking.joining import join_small
from shoal.masking.parts import STAY, Bucket, Columns, Moves, Part
from shoal.masking.plan import Plan, check_engine, choose_rule, make_plan
from shoal.masking.reading import read_part
from shoal.masking.rehearsing import rehearse
from shoal.masking.release import Release
from shoal.masking.request import MaskRequest
from shoal.masking.roles import choose_masked, find_scales
from shoal.masking.steps import (
    deal_to_blocks,
    deal_to_cells,
    look,
    mask_bucket,
    records_of_units,
    release_part,
    units_of_part,
)
from shoal.tables.columns import Name
from shoal.tables.formulas import FORMULAS
from shoal.tables.outputs import moved_together

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks
    from shoal.blocks.rule import Blocking

__all__ = ["mask_records"]


def mask_records(records: Records, request: MaskRequest) -> Release:
    """Mask the records of an engine."""
    seconds = _Seconds()
    columns = choose_masked(request, records.schema)
    request = request.settled(columns.compared(columns.masked), columns.compared(columns.nominal))
    check_engine(request, records)
    with seconds("prepare"):
        records.prepare(rehearse, request, len(columns.masked))
    with seconds("read"):
        columns = find_scales(records, columns)
        parts, moves = _read(records, request, columns)
        plan = make_plan(request, columns, parts, records.dialect, moves)
    with seconds("block"):
        most = _most_records(records, request, plan)
        rule = choose_rule(request, records, plan, most)
        blocks = None if rule is None else _divide(records, plan, rule)
    with seconds("partition"):
        buckets = _group(records, request, plan, blocks)
        plan = _without_taken(plan, buckets)
    with seconds("write"), moved_together():
        output = None if request.output is None else Path(request.output)
        shuffled = _random_order(request, plan.rows) if request.shuffled else None
        released = records.release(
            release_part, columns, plan.kinds, plan.embedding.codings, plan.spellings, request.whole, shuffled,
            bool(request.escape_formulas),
            layout=columns.layout(), output=output,
        )  # fmt: skip
        with seconds("verify"):
            uniques, named, totals, reached, formulas = _recount(
                released.records, columns.released, request, plan, buckets, _units(records, request, plan, shuffled)
            )
        if request.labels is not None:
            groups = np.array([int(bucket.sizes.sum()) for bucket in buckets])
            records.write_labels(Path(request.labels), columns.masked, np.cumsum(groups) - groups, shuffled)
    release = _summarise(records, request, plan, blocks, buckets)
    changed = {*columns.masked, *columns.by, *([request.unit] if request.shuffled else [])}
    left = tuple(name for name in columns.released if name not in changed)
    notes = (
        *release.notes,
        *_total_notes(plan, totals),
        *_identifier_notes(request, _with_unit(request, columns, named)),
        *_formula_notes(request, formulas),
        *released.notes,
    )
    if shuffled is not None:
        release = replace(release, labels=release.labels[shuffled], kept=release.kept[shuffled])
    return replace(
        release,
        data=released.native,
        left=left,
        uniques=uniques,
        reached=reached,
        unit_records=most,
        notes=notes,
        timings=seconds.steps,
    )


def _most_records(records: Records, request: MaskRequest, plan: Plan) -> int:
    """Return a number of records that no unit exceeds."""
    if request.unit is None:
        return 1
    return int(records.reduce(records_of_units, operator.add, own=plan.own).max())


def _read(records: Records, request: MaskRequest, columns: Columns) -> tuple[list[Part], Moves]:
    """Read the numbers of all parts; once more if records of small cells are to be left out or joined to others."""

    def read(moves: Moves) -> list[Part]:
        return records.keep(
            read_part, columns, request.missing, moves, request.weight_vector, request.k, columns=columns.read()
        )

    parts, moves = read(STAY), STAY
    if request.small == "suppress":
        moves = Moves(dict.fromkeys(small_cells(request, columns, parts, records.dialect)))
    elif request.small == "merge":
        moves = join_small(records, request, columns, parts) or STAY
    return (read(moves) if moves.patterns else parts), moves


def _units(records: Records, request: MaskRequest, plan: Plan, shuffled: Ints | None) -> Words | None:
    """Return the unit of every released record, if the release does not say it."""
    if request.unit is None or request.unit in plan.columns.released:
        return None
    units: Words = records.reduce(units_of_part, np.append, own=plan.own)
    return units if shuffled is None else units[shuffled]


def _random_order(request: MaskRequest, rows: int) -> Ints:
    """Return a random order of the records, by the randomness of the system if there is no seed."""
    return np.random.default_rng(None if request.shuffle is True else request.shuffle).permutation(rows)


@dataclass
class _Seconds:
    """Seconds by step."""

    steps: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.steps[step] = time.perf_counter() - start


@dataclass(frozen=True)
class _Numbers:
    """What blocks are cut from: the numbers of all records and the cells they belong to."""

    records: Records
    plan: Plan

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Combine ``function(part, X, roots, *arguments)`` of all parts."""
        return self.records.reduce(look, combine, function, arguments, own=self.plan.own)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function where kernels are loaded."""
        return self.records.call(function, *arguments)


def _divide(records: Records, plan: Plan, rule: Blocking) -> Blocks:
    from shoal.blocks.blocking import find_blocks

    return find_blocks(_Numbers(records, plan), plan.extent, rule)


def _group(records: Records, request: MaskRequest, plan: Plan, blocks: Blocks | None) -> list[Bucket]:
    """Bring the records of every block, or every cell, together and mask them."""
    d = len(plan.columns.masked)
    deal: Any = deal_to_cells
    dealing: tuple[Any, ...] = ()
    targets = 1
    if blocks is not None:
        bucket, firsts = _buckets(blocks, records.rows_of_a_target(10 * d + 12 + 4 * len(plan.columns.confidential)))
        deal, dealing, targets = deal_to_blocks, (blocks, bucket, firsts), len(firsts)
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
    scale = None if blocks is None else blocks.scale
    how = Regrouping(
        deal,
        mask_bucket,
        targets,
        sent,
        answered,
        own=plan.own,
        dealing=dealing,
        gathering=(
            request,
            plan.rounding,
            plan.embedding,
            plan.promise,
            scale,
            plan.rows,
            records.parallel,
            records.threads,
        ),
    )
    anytime = request.entry.anytime
    alone = anytime and blocks is None and len(plan.sizes) == 1
    found: list[Bucket] = records.regroup(
        how, title=_live_title(request.entry.name, plan) if alone else request.entry.name, anytime=anytime
    )
    return found


def _without_taken(plan: Plan, buckets: Sequence[Bucket]) -> Plan:
    """Leave missing cells empty where the code for them is also the value of a group."""
    taken = np.any([bucket.taken for bucket in buckets], axis=0)
    names = [name for name, found in zip(plan.columns.masked, taken, strict=True) if found]
    notes = [f"missing cells of {n} are empty: {plan.spellings.codes[n]} is also the value of a group" for n in names]
    return replace(plan, spellings=plan.spellings.without(names), notes=(*plan.notes, *notes))


def _buckets(blocks: Blocks, rows: int) -> tuple[Ints, Ints]:
    """Return the bucket of each block, runs of blocks in Morton order of about `rows` records, and each one's first."""
    before = np.cumsum(blocks.sizes) - blocks.sizes
    _, firsts, buckets = np.unique(before // max(rows, 1), return_index=True, return_inverse=True)
    return buckets, firsts


def _live_title(name: str, plan: Plan) -> Title:
    """Return what tells of a running search: loss, bound, gap, steps a second."""
    # A standardised column has as large a sum of squares as it has cells.
    varied = plan.limits[0] < plan.limits[1]
    total, began = float(plan.present[varied].sum()) or 1.0, time.monotonic()

    def line(state: State) -> str:
        steps, sse, bound = observe(state)
        if sse is None:
            return name
        parts = [f"{name}: loss {100 * sse / total:.5f} %"]
        if bound is not None:
            parts.append(f"bound {100 * bound / total:.5f} %, gap {100 * (sse - bound) / sse if sse else 0.0:.3f} %")
        return ", ".join([*parts, f"{steps / (time.monotonic() - began):,.0f} steps/s"])

    return line


def _recount(
    released: Records,
    names: Sequence[Name],
    request: MaskRequest,
    plan: Plan,
    buckets: Sequence[Bucket],
    units: Words | None,
) -> tuple[int, dict[Name, str], Ints, dict[Name, dict[str, float]], list[Name]]:
    """Count every group again, in what was released and nothing else but units that are not in it.

    Return the records that are unique in it, the columns that look like identifiers, totals that are kept, and what
    groups reach in confidential columns; and columns with text that a spreadsheet would run as formulas.
    """
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
        raise FileError(f"Output {request.output} has {found} records instead of {plan.rows}. Nothing was released.")
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
    named = {
        name: reason for name, reason in parts[0].identifiers.items() if all(name in part.identifiers for part in parts)
    }
    found_in = released.regroup(how)
    totals: Ints = np.sum([part.totals for part in parts], axis=0, dtype=np.int64)
    reached = told(promise, [worst for _, worst in found_in if worst])
    formulas = list(dict.fromkeys(name for part in parts for name in part.formulas))
    return sum(uniques for uniques, _ in found_in), named, totals, reached, formulas


def _check_kept(plan: Plan, parts: Sequence[Counted], buckets: Sequence[Bucket]) -> None:
    """Refuse a release in which zeros are not kept, or sums are broken."""
    zeros = np.sum([part.zeros for part in parts], axis=0)
    for name, count, known in zip(plan.columns.zeros, zeros, plan.zeros + _new_zeros(buckets), strict=True):
        if count != known:
            raise VerificationError(f"Column {name!r} has {count} zeros instead of {known}. Nothing was released.")
    for rule, *broken in zip(plan.columns.rules, *(part.broken for part in parts), strict=True):
        if sum(broken):
            raise VerificationError(f"Rule {rule.text!r} is broken by {sum(broken)} records. Nothing was released.")


def _total_notes(plan: Plan, totals: Ints) -> list[str]:
    """Say how far the released totals of columns of whole numbers are from those of the given table."""
    off = dict(zip(plan.columns.masked, (totals - plan.totals).tolist(), strict=True)) if plan.columns.totals else {}
    kept = [f"{name} {f'off by {off[name]:+d}' if off[name] else 'exactly'}" for name in plan.whole_columns if off]
    return [f"totals of integer columns, counted again: {', '.join(kept)}"] if kept else []


def _new_zeros(buckets: Sequence[Bucket]) -> Ints:
    """Count, of each column whose zeros are kept, the zeros that stand for other values."""
    new: Ints = np.sum([bucket.new_zeros for bucket in buckets], axis=0, dtype=np.int64)
    return new


def _with_unit(request: MaskRequest, columns: Columns, named: Mapping[Name, str]) -> dict[Name, str]:
    """Return the columns that look like identifiers, among them the units unless they are numbered anew."""
    others = {name: reason for name, reason in named.items() if name != request.unit}
    if request.unit not in columns.released or request.shuffled:
        return others
    return {request.unit: "it says whose records they are, under the numbers of the original", **others}


def _identifier_notes(request: MaskRequest, named: Mapping[Name, str]) -> list[str]:
    """Warn of columns that look like identifiers and are not kept on purpose."""
    meant = as_names(request.keep)
    notes = []
    for name, reason in named.items():
        if name not in meant:
            notes.append(f"column {name} looks like an identifier and is in the release: {reason}")
            warning = (
                f"Column {name!r} looks like an identifier and is in the release: {reason}. Drop it with "
                f"identifiers=[{name!r}], or say keep=[{name!r}] if that is meant."
            )
            warnings.warn(warning, IdentifierWarning, stacklevel=5)
    return notes


def _formula_notes(request: MaskRequest, names: Sequence[Name]) -> list[str]:
    """Say that formulas were escaped, or warn of those that were not."""
    if request.escape_formulas:
        return [f"an apostrophe stands before cells of text that begin with {FORMULAS} and are no numbers"]
    if not names:
        return []
    held = f"{', '.join(map(str, names))} hold cells that a spreadsheet would run as formulas ({FORMULAS})"
    warning = f"Columns {held}. Take escape_formulas=True to put an apostrophe before them."
    warnings.warn(warning, FormulaWarning, stacklevel=5)
    return [f"columns {held}: take escape_formulas=True to put an apostrophe before them"]


def _summarise(
    records: Records, request: MaskRequest, plan: Plan, blocks: Blocks | None, buckets: Sequence[Bucket]
) -> Release:
    """Return the release, but for its data: losses and sizes summed over the buckets."""
    errors, totals = (np.sum([getattr(bucket, name) for bucket in buckets], axis=0) for name in ("errors", "totals"))
    largest = np.max([bucket.largest for bucket in buckets], axis=0)
    total = float(totals.sum())
    percent = 100 / total if total > 0 else 0.0
    counts = np.zeros(max(len(bucket.sizes) for bucket in buckets), dtype=np.int64)
    for bucket in buckets:
        counts[: len(bucket.sizes)] += bucket.sizes
    outcome = buckets[0].outcome
    labels, columns = records.labels(), plan.columns.masked
    return Release(
        data=None,
        labels=np.empty(0, dtype=np.int64) if labels is None else labels,
        # There may be very many groups; 2 bytes each are enough but for a group beyond all measure.
        sizes=np.repeat(np.arange(len(counts), dtype=np.int16 if len(counts) < 1 << 15 else np.int64), counts),
        loss=percent * float(errors.sum()),
        bound=None if outcome.bound is None else percent * outcome.bound,
        # What is optimal is the partition, not the values that stand for its groups where they are no means.
        status="bounded" if outcome.status == "optimal" and not plan.embedding.plain else outcome.status,
        partition_loss=percent * float(np.sum([bucket.grouped for bucket in buckets])),
        kinds=plan.columns.words,
        column_loss=dict(zip(columns, (100 * errors / np.where(totals > 0, totals, np.inf)).tolist(), strict=True)),
        group_loss=percent * float(largest[-1]),
        column_group_loss=dict(
            zip(columns, (100 * largest[:-1] / np.where(totals > 0, totals, np.inf)).tolist(), strict=True)
        ),
        kept=records.kept(),
        parameters=request.recorded(columns, **records.parameters),
        facts={**outcome.facts, **records.facts({} if blocks is None else blocks.facts)},
        notes=_notes(request, plan, percent, buckets),
        timings={},
        certificate=outcome.certificate,
        codes=dict(plan.spellings.codes),
        blanked=plan.blanked,
    )


def _notes(request: MaskRequest, plan: Plan, percent: float, buckets: Sequence[Bucket]) -> tuple[str, ...]:
    notes = [*plan.notes, *request.notes()]
    if request.weights is not None:
        by = request.weights if request.weight_vector is None else "the vector that was given"
        notes.append(f"means of groups are weighted by {by}; loss, k and categories count every record once")
    if request.shuffled:
        notes.append("the records are in random order")
    if request.unit in plan.columns.released:
        anew = " under new numbers" if request.shuffled else ""
        notes.append(
            f"column {request.unit} is in the release{anew} and ties the records of each {request.unit} together: "
            "every one of them is shared, all of them together may not be"
        )
    if plan.columns.zeros:
        notes.append(f"zeros were kept ({', '.join(map(str, plan.columns.zeros))}): a record that is zero stayed zero")
        notes += [
            f"in column {name}, 0 also stands for {count} records that are not zero, but whose values have it as "
            f"{request.aggregate}"
            for name, count in zip(plan.columns.zeros, _new_zeros(buckets), strict=True)
            if count
        ]
    partly = ", but for those that miss a part of it" if request.missing == "group" else ""
    notes += [
        f"the sum {rule.text} holds in the release: every record was checked{partly}" for rule in plan.columns.rules
    ]
    decimals = np.any([bucket.decimals for bucket in buckets], axis=0)
    changed = [name for name, found in zip(plan.columns.masked, decimals, strict=True) if found]
    if request.whole and plan.whole_columns:
        rounding = percent * float(np.sum([bucket.rounding for bucket in buckets]))
        listed = ", ".join(map(str, plan.whole_columns))
        notes.append(f"integer columns were rounded ({listed}), which adds {rounding:+.5f} % to the loss")
    elif listed := ", ".join(str(name) for name in plan.whole_columns if name in changed):
        notes.append(f"integer columns hold decimals now ({listed}); integers='round' keeps them whole")
    for name, scale in plan.columns.scales.items():
        finer = "" if scale.exact else ": it spans more time than finer digits can be kept for"
        notes.append(f"column {name} is released in whole {scale.resolution}{finer}")
    if not request.entry.whole_records and len(plan.columns.masked) > 1:
        warning = (
            f"Method {request.entry.name!r} groups every column on its own: a record's combination of released values "
            "may be unique, so the release is not k-anonymous for whole records. Take a multivariate method for that."
        )
        warnings.warn(warning, NotKAnonymousWarning, stacklevel=5)
        notes.append("NOT k-anonymous for whole records: every column was grouped on its own")
    return tuple(notes)
