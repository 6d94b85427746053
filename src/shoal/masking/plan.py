"""Planning of a masking: apply the policies, check k in every cell and choose the rule for blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms.user_function import check_sendable
from shoal.blocks.rule import AUTOMATIC, Blocking, Extent, choose_blocking
from shoal.core.checks import check_k
from shoal.core.errors import InputError
from shoal.core.messages import agreeing, count, listed, option, parameter, setting
from shoal.core.types import Floats, Ints, Spelling
from shoal.engines.records import Records
from shoal.kinds.column import MISSING, Storage, common_decimals
from shoal.kinds.kind import Coding, Embedding, rescaled
from shoal.kinds.time_scale import Span
from shoal.masking.aggregate import Rounding
from shoal.masking.cells import (
    Cell,
    Moves,
    Own,
    PartStatistics,
    Spellings,
    check_cells,
    count_cells,
    number_cells,
    sizes_of,
    spell_strata,
)
from shoal.masking.confidential import Promise, number_values
from shoal.masking.request import MaskRequest
from shoal.masking.roles import Columns, check_modes, settle
from shoal.masking.steps import scan_part, scan_storages
from shoal.masking.sums import LARGEST, rounding_of
from shoal.tables.columns import Code, Name, as_number, coded_text
from shoal.tables.files import is_csv
from shoal.tables.number_text import Dialect, common_type, number_type

__all__ = [
    "Plan",
    "check_engine",
    "check_records",
    "choose_rule",
    "code_values",
    "find_rounding",
    "find_scales",
    "make_plan",
    "merged_limits",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The plan of a masking: the records, the statistics of the whole table, and all decisions before grouping."""

    records: Records
    request: MaskRequest  # the settled request
    timings: dict[str, float]  # seconds by step
    columns: Columns
    rows: int  # released records
    own: list[Own]  # per part: the table-wide numbers of its cells and values
    sizes: Ints  # records per cell
    strata: Ints  # number of the stratum of each cell
    storages: tuple[Storage, ...]
    spellings: Spellings
    limits: Floats
    present: Ints  # released values per column that are not missing
    embedding: Embedding
    promise: Promise
    rounding: Rounding
    totals: Ints  # original totals of the columns of whole numbers, if totals are kept
    zeros: Ints  # number of zeros per column whose zeros are kept
    notes: tuple[str, ...]
    left_out: int  # suppressed records
    blanked: int  # cells made missing
    moved: bool  # True: records of small cells are suppressed or joined to others
    types: Mapping[Name, Any]  # released types of text columns

    def requesting(self, request: MaskRequest) -> Plan:
        """Return the plan for the same records and a request with another method, k or promises."""
        promise = self.promise._replace(models=tuple(request.models()))
        return replace(self, request=settle(request, self.columns), promise=promise, timings={})

    @property
    def omissions(self) -> float:
        """The number of suppressed records per released record."""
        return self.left_out / self.rows

    @property
    def extent(self) -> Extent:
        """The limits of the columns and the cell sizes, as input for blocking."""
        return Extent(rescaled(self.limits, self.embedding.rescalings), self.sizes)

    @property
    def amounts(self) -> tuple[int, ...]:
        """The indices of the columns of numbers, in which a member can dominate the total of a group."""
        return tuple(j for j, kind in enumerate(self.columns.kinds) if kind.additive)

    @property
    def whole_columns(self) -> list[Name]:
        """The columns of whole numbers."""
        return [name for name, storage in zip(self.columns.masked, self.storages, strict=True) if storage.whole]


def check_records(request: MaskRequest, columns: Columns, parts: Sequence[PartStatistics]) -> None:
    """Apply the missing-value policy and check k against the remaining records."""
    incomplete, missing = sum(part.incomplete for part in parts), np.sum([part.missing for part in parts], axis=0)
    check_k(request.k, sum(part.rows for part in parts))
    if incomplete and request.missing == "error":
        counts = {name: n for name, n in zip(columns.masked, missing.tolist(), strict=True) if n}
        holes = f"Columns {listed([f'{name!r} ({n:,})' for name, n in counts.items()])} have missing values in "
        holes += count(incomplete, "record")
        if len(counts) == 1:
            holes = f"Column {next(iter(counts))!r} has {count(incomplete, 'missing value')}"
        raise InputError(
            f"{holes}. Use {setting('missing', 'group')} to mask these records with others that have the same missing "
            f"columns, or {setting('missing', 'drop')} to suppress them."
        )
    dropped = request.missing == "drop" and incomplete > 0
    rows = sum(part.kept for part in parts)
    if not rows and request.small == "suppress":
        raise InputError(
            f"{setting('small', 'suppress')} would suppress all records: every stratum or missing-value pattern has "
            f"fewer than k={request.k} records. Use a smaller k, or fewer columns in {parameter('by')}."
        )
    check_k(request.k, rows, "the table without records with missing values" if dropped else "")


def make_plan(
    records: Records,
    request: MaskRequest,
    columns: Columns,
    parts: Sequence[PartStatistics],
    moves: Moves,
    timings: dict[str, float],
) -> Plan:
    """Combine the statistics of all parts into a plan; apply the policies and check k in every cell."""
    dialect = records.dialect
    check_records(request, columns, parts)
    incomplete, rows = sum(part.incomplete for part in parts), sum(part.kept for part in parts)
    cells, strata = spell_strata(columns, [part.cells for part in parts], dialect)
    roots, numbered = number_cells(cells)
    codings, codes = code_values(columns, parts)
    promise, numbers = Promise(), list[tuple[Ints, ...]]([()] * len(parts))
    if columns.confidential:
        promise, numbers = number_values(columns.confidential, [part.confidential for part in parts], request.models())
    sizes = sizes_of(parts, roots, len(numbered))
    left_out = sum(part.rows for part in parts) - rows
    _check_left_out(request, left_out, rows, moves.blanked, int(np.sum([part.present for part in parts])))
    check_cells(request, columns, numbered, count_cells(request, parts, roots, len(numbered)))
    spelled = [
        frozenset[Spelling]().union(*spelled_parts)
        for spelled_parts in zip(*(part.spellings for part in parts), strict=True)
    ]
    spellings, coded = _spell_missing(columns, spelled, dialect)
    if dialect is None and request.output is not None and is_csv(request.output):
        _check_words(columns, codings, np.sum([part.missing for part in parts], axis=0))
    limits = merged_limits(parts, codings)
    storages = _merge_storages(columns, parts, coded)
    _check_rules(request, columns, storages, parts)
    filled = [part for part in parts if part.rows]
    reasons = filled[0].identifying if filled else {}
    check_modes({name: why for name, why in reasons.items() if all(name in part.identifying for part in filled)})
    _check_totals(columns, storages, limits, rows)
    places = {name: place for place, name in enumerate(columns.masked)}
    present = np.sum([part.present for part in parts], axis=0)
    notes = _notes(
        request,
        dropped=incomplete if request.missing == "drop" else 0,
        suppressed=sum(part.suppressed for part in parts),
        grouped=int(sizes @ [any(cell.missing) for cell in numbered]),
    )
    zero = np.array([cell.zero for cell in numbered], dtype=np.int64).reshape(len(sizes), len(columns.zeros))
    return Plan(
        records=records,
        request=request,
        timings=timings,
        columns=replace(columns, confidential=promise.columns),
        rows=rows,
        own=[Own(*numbering) for numbering in zip(roots, codes, numbers, _firsts(parts), strict=True)],
        sizes=sizes,
        strata=number_cells([[cell.stratum for cell in numbered]])[0][0],
        storages=storages,
        spellings=Spellings(
            missing=spellings,
            strata=strata if moves.joined is None else moves.joined.spelled,
            codes={name: codes[0] for name, codes in coded.items()},
            joined=moves.joined,
        ),
        limits=limits,
        present=present,
        embedding=Embedding(codings, columns.importance, tuple(np.flatnonzero(present == 0).tolist())),
        promise=promise,
        rounding=Rounding(
            storages=storages,
            whole=request.whole,
            fitted=request.decimals == "fit",
            zeros=tuple(columns.zero_places),
            rules=tuple(rule.renamed(places) for rule in columns.rules),
            totals=columns.totals,
        ),
        totals=np.sum([part.totals for part in parts], axis=0, dtype=np.int64),
        zeros=sizes @ zero,
        notes=(*notes, *moves.notes, *_code_notes(request, coded)),
        left_out=left_out,
        blanked=moves.blanked,
        moved=bool(moves.patterns),
        types=_types(columns, parts, numbered, dialect),
    )


def _check_left_out(request: MaskRequest, left_out: int, rows: int, blanked: int, present: int) -> None:
    """Refuse to suppress more records, or to make more cells missing, than the request accepts."""
    for number, total, noun, done in (
        (left_out, left_out + rows, "record", "suppressed"),
        (blanked, blanked + present, "cell", "made missing"),
    ):
        share = number / max(total, 1)
        if share > request.accepted_share:
            percent = f"{ceil(1000 * share) / 10:g}%"
            raise InputError(
                f"{number:,} of {count(total, noun)} ({percent}) would be {done}, but {parameter('max_left_out')} is "
                f"{100 * request.accepted_share:g}%. Use a smaller k, fewer columns or fewer strata, or accept it with "
                f"{setting('max_left_out', percent)}."
            )


def _types(
    columns: Columns, parts: Sequence[PartStatistics], cells: Sequence[Cell], dialect: Dialect | None
) -> dict[Name, pl.DataType]:
    """Return the released types of text columns; the type of a stratum column follows from its released spellings."""
    if dialect is None:
        return {}
    types = {name: common_type(part.types[name] for part in parts) for name in columns.typed}
    for place, name in enumerate(columns.by):
        if name in types:
            spelled = pl.Series([cell.stratum[place] for cell in cells], dtype=pl.String)
            types[name] = common_type([number_type(spelled, dialect, codes=False)])
    return types


def _firsts(parts: Sequence[PartStatistics]) -> list[int]:
    """Return the number of released records that precede each part."""
    return [0, *accumulate(part.kept for part in parts)][:-1]


def _check_rules(
    request: MaskRequest, columns: Columns, storages: Sequence[Storage], parts: Sequence[PartStatistics]
) -> None:
    """Refuse a sum rule that records break or that rounded whole numbers cannot satisfy."""
    whole_names = {name for name, storage in zip(columns.masked, storages, strict=True) if storage.whole}
    empty = {
        name
        for name, *part_values in zip(columns.masked, *(part.storages for part in parts), strict=True)
        if not any(part_values)
    }
    for rule, *part_values in zip(columns.rules, *(part.broken for part in parts), strict=True):
        broken = sum(part.records for part in part_values)
        if broken:
            first = min((part for part in part_values if part.records), key=lambda part: part.first)
            limit = f"more than the rounding of its columns explains ({first.tolerance:.2g})"
            raise InputError(
                f"{parameter('sums')} contains {rule.text!r}, but {count(broken, 'record')} "
                f"{agreeing(broken, 'breaks', 'break')} it. In record {first.first}"
                f"{agreeing(broken, '', ', the first')}, column {rule.total!r} differs from the sum by "
                f"{first.difference:.6g}, {limit if first.tolerance else 'and whole numbers must agree exactly'}. "
                "Correct the values, make one of them missing, or leave the rule out."
            )
        split = [name for name in rule.columns if name not in whole_names | empty]
        if request.whole and rule.total in whole_names and split:
            raise InputError(
                f"{setting('integers', request.integers)} cannot be combined with the rule {rule.text!r}: column "
                f"{rule.total!r} holds whole numbers and column {split[0]!r} does not, so their sum would not stay "
                f"whole. Use {setting('integers', 'float')}, or leave the rule out."
            )


def _check_totals(columns: Columns, storages: Sequence[Storage], limits: Floats, records: int) -> None:
    """Refuse to keep totals that are too large, or zeros of a column that is a sum of rounded columns."""
    for name, storage, largest in zip(columns.masked, storages, np.abs(limits).max(axis=0).tolist(), strict=True):
        if columns.totals and storage.whole and largest * records >= LARGEST:
            raise InputError(
                f"{setting('integers', 'totals')} is not possible: the values of column {name!r} are too large, up to "
                f"{largest:g}. Use {setting('integers', 'round')}."
            )
    for rule in columns.rules:
        if columns.totals and rule.total in columns.zeros:
            raise InputError(
                f"{parameter('zeros')} names column {rule.total!r}, which {setting('integers', 'totals')} computes as "
                f"the sum of rounded columns ({rule.text}): its zeros cannot be kept. Use "
                f"{setting('integers', 'round')}, or leave it out of {parameter('zeros')}."
            )


def merged_limits(parts: Sequence[PartStatistics], codings: Sequence[Coding]) -> Floats:
    """Return the lowest and the highest value of each column; categories are compared by their codes."""
    low, high = (np.stack([part.limits[row] for part in parts]) for row in (0, 1))
    limits = np.stack([low.min(axis=0), high.max(axis=0)])
    return np.column_stack([coding.limits(limits[:, j]) for j, coding in enumerate(codings)])


def _spell_missing(
    columns: Columns, spelled: Sequence[frozenset[Spelling]], dialect: Dialect | None
) -> tuple[dict[Name, Spelling], dict[Name, list[Code]]]:
    """Return the released spelling of missing cells per masked column, and the codes for missing that occur.

    The released spelling is the shortest spelling of the first named code that occurs. If no code occurs, it is the
    only spelling of missing cells, or an empty cell if there are several.
    """
    missing_spellings: dict[Name, Spelling] = {}
    coded: dict[Name, list[Code]] = {}
    for name, kind, spellings in zip(columns.masked, columns.kinds, spelled, strict=True):
        missing_spellings[name] = next(iter(spellings)) if len(spellings) == 1 else None
        texts = sorted((text for text in spellings if text is not None), key=lambda text: (len(text), text))
        for code in columns.codes.get(name, ()):
            if kind.numeric and dialect is None and as_number(code) is None:
                raise InputError(
                    f"{parameter('missing_codes')} names {code!r} for column {name!r}, which holds numbers."
                )
            cells = pl.Series(texts, dtype=pl.String)
            hits = [str(code)] if dialect is None else cells.filter(coded_text(cells, [code], dialect)).to_list()
            if set(hits) & spellings:
                if not coded.setdefault(name, []):
                    missing_spellings[name] = hits[0]
                coded[name].append(code)
    return missing_spellings, coded


def _check_words(columns: Columns, codings: Sequence[Coding], missing: Ints) -> None:
    """Refuse a column with more than one spelling that means missing in a CSV file."""
    for name, coding, holes in zip(columns.masked, codings, missing.tolist(), strict=True):
        words = [repr(value) for value in coding.values if isinstance(value, str) and value.strip() in MISSING]
        if len(words) + (holes > 0) > 1:
            variants = " and ".join([*words, *(["missing cells"] if holes else [])])
            raise InputError(
                f"Column {name!r} holds {variants}, which mean the same in a CSV file. Write a Parquet file, or use "
                "one spelling."
            )


def _code_notes(request: MaskRequest, coded: Mapping[Name, Sequence[Code]]) -> list[str]:
    """Return notes on the codes that were read as missing and on the codes that never occur."""
    notes = []
    for name, codes in request.codes.items():
        used_codes = coded.get(name, ())
        if used_codes:
            alike = f"; all its missing cells are released as {used_codes[0]}" if request.missing == "group" else ""
            notes.append(f"cells of {name} with {' or '.join(map(str, used_codes))} were read as missing{alike}")
        absent = [str(code) for code in codes if code not in used_codes]
        if absent:
            notes.append(f"missing code {' and '.join(absent)} never occurs in {name}")
    return notes


def code_values(
    columns: Columns, parts: Sequence[PartStatistics]
) -> tuple[tuple[Coding, ...], list[tuple[Floats | None, ...]]]:
    """Return the coding of every column and, for each part, the table-wide codes of its values."""
    pairs = [
        kind.fit(name, columns.masked, [part.observed[j] for part in parts])
        for j, (name, kind) in enumerate(columns.kind_of.items())
    ]
    return tuple(coding for coding, _ in pairs), list(zip(*(codes for _, codes in pairs), strict=True))


def _notes(request: MaskRequest, *, dropped: int, suppressed: int, grouped: int) -> tuple[str, ...]:
    """Return notes on the suppressed records and on the released records with missing values."""
    notes = []
    if suppressed:
        were = agreeing(suppressed, "was", "were")
        notes.append(
            f"{count(suppressed, 'record')} of strata or patterns with fewer than k {were} suppressed "
            f"({setting('small', 'suppress')})"
        )
    if dropped:
        were = agreeing(dropped, "was", "were")
        notes.append(f"{count(dropped, 'record')} with missing values {were} suppressed ({setting('missing', 'drop')})")
    if grouped:
        have = agreeing(grouped, "has missing values and was", "have missing values and were")
        notes.append(f"{count(grouped, 'record')} {have} grouped with others that have the same missing columns")
    return tuple(notes)


def _merge_storages(
    columns: Columns, parts: Sequence[PartStatistics], coded: Mapping[Name, Sequence[Code]]
) -> tuple[Storage, ...]:
    """Return the storage of each column, merged from all parts; the parts of a CSV file may differ in storage."""
    merged = []
    for name, kind, *storages in zip(columns.masked, columns.kinds, *(part.storages for part in parts), strict=True):
        absent = as_number(coded[name][0]) if name in coded and kind.numeric else None
        part_storages = [storage for storage in storages if storage is not None]
        types = {storage.type for storage in part_storages}
        all_whole = bool(part_storages) and all(storage.whole for storage in part_storages)
        decimals = common_decimals(part_storages)
        merged.append(Storage(types.pop() if len(types) == 1 else "float64", all_whole, absent, decimals))
    return tuple(merged)


def check_engine(request: MaskRequest, records: Records, columns: Columns) -> None:
    """Refuse settings that need the whole table in memory if the engine never loads the whole table."""
    if records.whole:
        return
    if not request.entry.whole_records:
        raise InputError(
            f"Method {request.entry.name!r} groups every column on its own, which needs the whole table in memory. Use "
            f"{setting('engine', 'memory')}, or a method that groups whole records."
        )
    if request.unit is not None and request.unit not in columns.released:
        raise InputError(
            f"{parameter('unit')} names column {request.unit!r}, which is left out. Beyond memory the unit column must "
            "stay, because units are counted again in the release. Use "
            f"{setting('keep', [request.unit])} and drop it afterwards, or use {setting('engine', 'memory')}."
        )
    if request.shuffled:
        raise InputError(
            f"{parameter('shuffle')} needs the whole table in memory. Use {setting('engine', 'memory')}, or leave it "
            "out."
        )
    check_sendable(request.entry, request.options)
    if request.weights is not None and not isinstance(request.weights, str):
        raise InputError(f"{parameter('weights')} must name a column for a table beyond memory; got a vector.")


def choose_rule(plan: Plan, most: int) -> Blocking | None:
    """Return the rule that cuts the table into blocks, or None; a table larger than memory always has a rule.

    No unit has more than `most` records.
    """
    request, whole = plan.request, plan.records.whole
    entry, block = request.entry, request.block
    # A lower bound covers all partitions of a stratum, so the method needs all records of the stratum at once.
    useful = entry.whole_records and not entry.univariate and not entry.anytime and not request.options.get("bound")
    if block is None and whole and not (useful and plan.sizes.max(initial=0) > AUTOMATIC):
        return None
    rule = choose_blocking(
        block,
        request.split,
        [plan.columns.masked.index(name) for name in plan.columns.block_by],
        request.k,
        len(plan.columns.masked),
        method=entry.name,
        able=entry.whole_records,
    )
    if rule is not None and rule.measured and (entry.takes("effort") or entry.anytime):
        # Smaller blocks speed up MDAV, but not a search with a fixed time per record.
        rule = replace(rule, split="one")
    if rule is not None and request.options.get("bound"):
        raise InputError(
            f"{option('bound')} of method {entry.name!r} needs all records of a stratum at once, but this table is "
            "masked in blocks. A bound would only cover groups within blocks. Mask the table in memory without "
            f"{parameter('block')}, or leave {option('bound')} out."
        )
    if rule is not None and request.unit is not None:
        # Every block of this size holds at least k units.
        rule = replace(rule, k=(request.k - 1) * most + 1)
        if 2 * rule.k > rule.L:
            raise InputError(
                f"{parameter('block')} must be at least {2 * rule.k} records, got {rule.L}: every block must hold "
                f"k={request.k} units, and one unit (column {request.unit!r}) may have {most} records. Use a larger "
                "block."
            )
    if rule is not None and plan.promise.models:
        from shoal.promises.rules import size_for

        # Every block must keep the promises on its own, so it should hold several groups of the required size.
        needed = size_for([model.rule(ordered=True)[:2] for _, model in plan.promise.models], rule.L, request.k)
        rule = replace(rule, k=max(rule.k, min(rule.L // 2, 10 * ceil(needed))))
    if rule is None and not whole:
        raise InputError(f"{parameter('block')} must not be 0 for a table beyond memory: it is masked in blocks.")
    return rule


def find_scales(records: Records, columns: Columns) -> Columns:
    """Return the columns with the units of dates, times and durations, which are the same in all parts."""
    scaled = columns.scaled
    if not scaled:
        return columns
    spans: list[dict[Name, Span]] = records.keep(scan_part, scaled, columns.codes, columns=list(scaled))
    scales = {name: kind.scale(name, [part[name] for part in spans]) for name, kind in scaled.items()}
    return replace(columns, scales=scales)


def find_rounding(records: Records, columns: Columns) -> Columns:
    """Return the columns with the rounding tolerance of every sum rule, derived from the decimals of its columns."""
    names = list(dict.fromkeys(name for rule in columns.rules for name in rule.columns))
    if not names:
        return columns
    parts: list[dict[Name, Storage | None]] = records.keep(scan_storages, columns, names, columns=names)
    decimals = {name: common_decimals(part[name] for part in parts) for name in names}
    return replace(columns, rounding=tuple(rounding_of(rule, decimals) for rule in columns.rules))
