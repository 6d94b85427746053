"""What is to be masked: columns chosen, policies applied, k checked against every set of records."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, TypeVar

import numpy as np
import polars as pl

from shoal.algorithms.own import check_sendable
from shoal.blocks.rule import BLOCK, Blocking, Extent, choose_blocking
from shoal.core.checks import as_names, check_k
from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints
from shoal.engines.records import Records, Schema
from shoal.masking.additivity import Rule, in_order, read_rule
from shoal.masking.coding import Coding, Embedding, make_coding, order_values
from shoal.masking.confidential import Chosen, Promise, number_values
from shoal.masking.request import MaskRequest
from shoal.masking.rounding import Rounding
from shoal.masking.steps import STAY, Cell, Columns, Moves, Own, Part, Spellings, look_at_times
from shoal.masking.totals import LARGEST
from shoal.models.keeping import size_for
from shoal.models.units import units_in_cells
from shoal.tables.choosing import choose_columns
from shoal.tables.codes import Code, as_number
from shoal.tables.columns import Kind, Name, Spelling
from shoal.tables.csv_files import Dialect, coded_text, one_spelling, parse_numbers
from shoal.tables.frames import check_name, describe_stratum
from shoal.tables.kinds import Category, Date, Hierarchy, Nominal, Ordinal
from shoal.tables.times import Span, make_scale

T = TypeVar("T", bound=Hashable)

__all__ = [
    "Plan",
    "check_engine",
    "check_records",
    "choose_masked",
    "choose_rule",
    "code_values",
    "find_scales",
    "make_plan",
    "merged_limits",
    "number_cells",
    "sizes_of",
    "small_cells",
    "spell_strata",
]

MOST_LISTED = 100  # strata that a message names


@dataclass(frozen=True)
class Plan:
    """What all parts together hold, and what will be done with it."""

    columns: Columns
    rows: int  # records that are released
    own: list[Own]  # of each part: what its cells and values are in the whole table
    sizes: Ints  # the records of each cell
    kinds: tuple[Kind, ...]
    spellings: Spellings
    limits: Floats
    present: Ints  # cells of each column that are not missing
    embedding: Embedding
    promise: Promise
    rounding: Rounding
    totals: Ints  # of each column of whole numbers, if they are kept
    zeros: Ints  # how many there are in each column whose zeros are kept
    notes: tuple[str, ...]
    blanked: bool  # whether numbers are made missing

    @property
    def extent(self) -> Extent:
        """What blocks are cut from."""
        return Extent(self.limits, self.sizes)

    @property
    def whole_columns(self) -> list[Name]:
        """The columns of whole numbers."""
        return [name for name, kind in zip(self.columns.masked, self.kinds, strict=True) if kind.whole]


def choose_masked(request: MaskRequest, schema: Schema) -> Columns:
    """Return the columns to mask and those that are looked at besides."""
    names, by = list(schema.names), as_names(request.by)
    weights = request.weights if isinstance(request.weights, (str, int)) else None
    for name in by:
        check_name(name, names, "by")
    if weights is not None:
        check_name(weights, names, "weights")
    if request.unit is not None:
        check_name(request.unit, names, "unit")
    kinds, dropped = dict(request.kinds or {}), as_names(request.identifiers)
    numbers = [name for name in names if name in schema.numeric or isinstance(kinds.get(name), Date)]
    wanted = None if request.columns is None else as_names(request.columns)
    chosen = choose_columns(
        names,
        numbers,
        wanted,
        apart=[*by, weights, request.unit, *dropped, *as_names(request.keep), *as_names(request.confidential)],
    )
    for name in chosen:
        if name in by:
            raise InputError(f"Column {name!r} stands in 'columns' and in 'by': it cannot be masked and split by.")
    if request.unit is not None and request.unit in (*chosen, *by, weights):
        raise InputError(f"Parameter 'unit' names column {request.unit!r}, which is masked, a stratum or the weight.")
    _check_roles(request, schema, chosen, [*by, weights])
    return Columns(
        tuple(chosen),
        tuple(by),
        weights,
        request.unit,
        tuple(_kind_of(name, kinds, schema) for name in chosen),
        frozenset(kinds),
        tuple(name for name in names if name not in dropped),
        _importance(request, chosen),
        request.codes,
        {},
        _zeros(request, chosen, schema),
        _rules(request, chosen, schema),
        request.integers == "totals",
        _confidential(request, names, [*chosen, *by, weights, request.unit, *dropped], schema),
    )


def _confidential(
    request: MaskRequest, names: Sequence[Name], others: Sequence[Name], schema: Schema
) -> tuple[Chosen, ...]:
    """Return the confidential columns; refuse one that is named for something else too."""
    given, chosen = request.kinds or {}, list[Chosen]()
    for name in as_names(request.confidential):
        check_name(name, names, "confidential")
        if name in others or name in [column.name for column in chosen]:
            raise InputError(
                f"Parameter 'confidential' names column {name!r}, which is masked, a stratum, the weight, the unit, "
                "dropped, or named twice. A confidential column is released as it is: name it once."
            )
        levels = schema.levels.get(name, ())
        chosen.append(Chosen(name, given.get(name, Ordinal(levels) if len(levels) > 1 else None)))
    if request.confidential is not None and not chosen:
        raise InputError("Parameter 'confidential' must name at least one column, got none.")
    return tuple(chosen)


def _rules(request: MaskRequest, masked: list[Name], schema: Schema) -> tuple[Rule, ...]:
    """Return the sums that are kept; refuse one with a column that is not masked or holds no numbers."""
    spelled = {str(name): name for name in schema.names}  # the columns of an array are called 0, 1, …
    rules = [read_rule(text) for text in as_names(request.sums)]
    for rule in rules:
        for name in rule.columns:
            check_name(name, list(spelled), "sums")
        outside = [name for name in rule.columns if spelled[name] not in masked]
        if outside:
            all_of_them = len(outside) == len(rule.columns)
            way = "Leave the rule out: it holds as before" if all_of_them else "Name it in 'columns' too"
            raise InputError(
                f"Parameter 'sums' says {rule.text!r}, but column {outside[0]!r} is not masked"
                f"{', nor is any other of it' if all_of_them else ''}. {way}."
            )
        for name in rule.columns:
            kind = _kind_of(spelled[name], request.kinds or {}, schema)
            if kind is not None:
                held = "dates or times" if isinstance(kind, Date) else "categories"
                raise InputError(
                    f"Parameter 'sums' says {rule.text!r}, but column {name!r} holds {held}. Leave the rule out."
                )
    return in_order([rule.renamed(spelled) for rule in rules])


def _zeros(request: MaskRequest, masked: list[Name], schema: Schema) -> tuple[Name, ...]:
    """Return the columns whose zeros are kept; refuse one that is not masked or holds no numbers."""
    zeros = as_names(request.zeros)
    for name in zeros:
        check_name(name, list(schema.names), "zeros")
        if name not in masked:
            raise InputError(f"Parameter 'zeros' names column {name!r}, which is not masked. Name it in 'columns' too.")
        kind = _kind_of(name, request.kinds or {}, schema)
        if kind is not None:
            held = "dates or times" if isinstance(kind, Date) else "categories"
            raise InputError(
                f"Parameter 'zeros' must name columns of numbers, but column {name!r} holds {held}. Leave it out."
            )
        if zeros.count(name) > 1:
            raise InputError(f"Parameter 'zeros' names column {name!r} twice. Name it once.")
    return tuple(zeros)


def _importance(request: MaskRequest, masked: list[Name]) -> tuple[float, ...] | None:
    """Return how much each masked column counts; None if all do alike."""
    if request.distance is None and request.importance is None:
        return None
    given, decide = (
        dict(request.importance or {}),
        as_names(request.distance) if request.distance is not None else masked,
    )
    for parameter, listed in (("distance", decide), ("importance", list(given))):
        for name in listed:
            if name not in masked:
                raise InputError(
                    f"Parameter {parameter!r} names column {name!r}, which is not masked. Masked are "
                    f"{', '.join(map(str, masked))}; name it in 'columns' too."
                )
    if not decide:
        raise InputError("Parameter 'distance' must name at least one masked column, got none.")
    return tuple(float(given.get(name, 1.0)) if name in decide else 0.0 for name in masked)


def _check_roles(request: MaskRequest, schema: Schema, masked: list[Name], apart: list[Name]) -> None:
    """Refuse columns that are named for two things at once."""
    names = list(schema.names)
    dropped, kept = as_names(request.identifiers), as_names(request.keep)
    for parameter, listed in (("identifiers", dropped), ("keep", kept)):
        for name in listed:
            check_name(name, names, parameter)
            if name in (*masked, *apart):
                raise InputError(
                    f"Parameter {parameter!r} names column {name!r}, which is masked, a stratum or the weight. Name it "
                    "once."
                )
    if both := [name for name in dropped if name in kept]:
        raise InputError(f"Column {both[0]!r} stands in 'identifiers' and in 'keep'. Name it in one of them.")
    for name in request.codes:
        check_name(name, names, "missing_codes")
        if name not in masked:
            raise InputError(
                f"Parameter 'missing_codes' names column {name!r}, which is not masked: its codes are kept as they "
                "are. Leave it out, or mask the column."
            )
        if name in schema.timed:
            raise InputError(
                f"Parameter 'missing_codes' names column {name!r}, which holds dates, times or durations by its type "
                "and no codes. Make the cells missing that stand for nothing."
            )
    for name in request.kinds or {}:
        check_name(name, names, "kinds")
        of_stratum = (
            name in as_names(request.by)
            and request.small == "merge"
            and isinstance((request.kinds or {})[name], Hierarchy)
        )
        if name not in (*masked, *as_names(request.confidential)) and not of_stratum:
            raise InputError(
                f"Parameter 'kinds' names column {name!r}, which is not masked. Name it in 'columns' too. (A "
                "stratum may have a hierarchy if small strata are joined: small='merge'.)"
            )


def _kind_of(name: Name, given: Mapping[Name, Category | Date], schema: Schema) -> Category | Date | None:
    """Return the kind of a column that holds no numbers; None for one of numbers."""
    if name in schema.timed:
        if given.get(name, Date()) != Date():
            raise InputError(
                f"Column {name!r} holds dates, times or durations by its type, so that its kind is shoal.Date() and no "
                f"format is to be named; got {given[name]!r}. Leave it out of 'kinds'."
            )
        return Date()
    if name in given:
        return given[name]
    if name in schema.numeric:
        return None
    levels = schema.levels.get(name, ())
    return Ordinal(levels) if len(levels) > 1 else Nominal()


def find_scales(records: Records, columns: Columns) -> Columns:
    """Find out how dates, times and durations are counted, the same in all parts."""
    timed = columns.timed
    if not timed:
        return columns
    spans: list[dict[Name, Span]] = records.keep(look_at_times, timed, columns.codes, columns=list(timed))
    scales = {name: make_scale(name, [part[name] for part in spans]) for name in timed}
    return columns._replace(scales=scales)


def check_records(request: MaskRequest, columns: Columns, parts: Sequence[Part]) -> None:
    """Apply the missing-value policy, and check k against the records that it leaves."""
    incomplete, missing = sum(part.incomplete for part in parts), np.sum([part.missing for part in parts], axis=0)
    check_k(request.k, sum(part.rows for part in parts))
    if incomplete and request.missing == "error":
        listed = ", ".join(f"{name!r} ({n})" for name, n in zip(columns.masked, missing.tolist(), strict=True) if n)
        raise InputError(
            f"Values are missing in column {listed}; {incomplete} records are concerned. Choose missing='group' to "
            "mask them among records that miss the same columns, or missing='drop' to leave them out."
        )
    dropped = request.missing == "drop" and incomplete > 0
    kept = sum(part.kept for part in parts)
    if not kept and request.small == "suppress":
        raise InputError(
            f"Parameter 'small' is 'suppress', but every stratum or pattern has fewer than k={request.k} records: "
            "nothing would be left. Take a smaller k, or fewer columns in 'by'."
        )
    check_k(request.k, kept, "the table without records that miss a value" if dropped else "")


def make_plan(
    request: MaskRequest, columns: Columns, parts: Sequence[Part], dialect: Dialect | None, moves: Moves = STAY
) -> Plan:
    """Apply the missing-value policy to what is known of all parts, and check k against every set of records."""
    check_records(request, columns, parts)
    incomplete, kept = sum(part.incomplete for part in parts), sum(part.kept for part in parts)
    cells, strata = spell_strata(columns, [part.cells for part in parts], dialect)
    roots, numbered = number_cells(cells)
    codings, codes = code_values(columns, parts)
    promise, numbers = number_values(columns.confidential, [part.confidential for part in parts], request.models())
    sizes = sizes_of(parts, roots, len(numbered))
    _check_cells(request, columns, numbered, _counted(request, parts, roots, len(numbered)))
    spelled = [frozenset[Spelling]().union(*found) for found in zip(*(part.spellings for part in parts), strict=True)]
    spellings, coded = _spell_missing(columns, spelled, dialect)
    limits = merged_limits(parts, codings)
    kinds = _merge_kinds(columns, parts, coded)
    _check_rules(request, columns, kinds, parts)
    _check_totals(columns, kinds, limits, kept)
    places = {name: place for place, name in enumerate(columns.masked)}
    present = np.sum([part.present for part in parts], axis=0)
    return Plan(
        columns._replace(confidential=promise.columns),
        kept,
        [Own(*found) for found in zip(roots, codes, numbers, strict=True)],
        sizes,
        kinds,
        Spellings(
            spellings,
            strata if moves.joined is None else moves.joined.spelled,
            {name: found[0] for name, found in coded.items()},
            moves.joined,
        ),
        limits,
        present,
        Embedding(codings, columns.importance, tuple(np.flatnonzero(present == 0).tolist())),
        promise,
        Rounding(
            kinds,
            request.whole,
            tuple(columns.zero_places),
            tuple(rule.renamed(places) for rule in columns.rules),
            columns.totals,
        ),
        np.sum([part.totals for part in parts], axis=0, dtype=np.int64),
        sizes @ np.array([cell.zero for cell in numbered], dtype=np.int64).reshape(len(sizes), len(columns.zeros)),
        (
            *_notes(request, incomplete, sum(part.suppressed for part in parts)),
            *moves.notes,
            *_code_notes(request, coded),
        ),
        moves.blanked > 0,
    )


def _check_rules(request: MaskRequest, columns: Columns, kinds: Sequence[Kind], parts: Sequence[Part]) -> None:
    """Refuse a rule that records break, or that whole numbers could not obey."""
    whole = {name for name, kind in zip(columns.masked, kinds, strict=True) if kind.whole}
    empty = {
        name for name, *found in zip(columns.masked, *(part.kinds for part in parts), strict=True) if not any(found)
    }
    for rule, *found in zip(columns.rules, *(part.broken for part in parts), strict=True):
        count = sum(broken for broken, _ in found)
        if count:
            first = min(record for broken, record in found if broken)
            raise InputError(
                f"Parameter 'sums' says {rule.text!r}, but {count} record{' breaks' if count == 1 else 's break'} it, "
                f"{'' if count == 1 else 'the first of them '}record {first}. Correct the values, make one of them "
                "missing, or leave the rule out."
            )
        split = [name for name in rule.columns if name not in whole | empty]
        if request.whole and rule.total in whole and split:
            raise InputError(
                f"Parameter 'integers' is {request.integers!r}, but in the rule {rule.text!r} column {rule.total!r} "
                f"holds whole numbers and column {split[0]!r} does not: their sum would not stay whole. Take "
                "integers='float', or leave the rule out."
            )


def _check_totals(columns: Columns, kinds: Sequence[Kind], limits: Floats, records: int) -> None:
    """Refuse to keep totals that are too large, or zeros of a column that is added up from rounded ones."""
    for name, kind, most in zip(columns.masked, kinds, np.abs(limits).max(axis=0).tolist(), strict=True):
        if columns.totals and kind.whole and most * records >= LARGEST:
            raise InputError(
                f"Parameter 'integers' is 'totals', but the values of column {name!r} are too large, up to {most:g}. "
                "Take integers='round'."
            )
    for rule in columns.rules:
        if columns.totals and rule.total in columns.zeros:
            raise InputError(
                f"Parameter 'zeros' names column {rule.total!r}, which integers='totals' adds up from rounded parts "
                f"({rule.text}): its zeros cannot be kept. Take integers='round', or leave it out of 'zeros'."
            )


def merged_limits(parts: Sequence[Part], codings: Sequence[Coding | None]) -> Floats:
    """Return the least and the greatest value of each column; of categories, of their codes."""
    low, high = (np.stack([part.limits[row] for part in parts]) for row in (0, 1))
    limits = np.stack([low.min(axis=0), high.max(axis=0)])
    for j, coding in enumerate(codings):
        if coding is not None:
            limits[:, j] = 0, max(0, len(coding.values) - 1)
    return limits


def _spell_missing(
    columns: Columns, spelled: Sequence[frozenset[Spelling]], dialect: Dialect | None
) -> tuple[dict[Name, Spelling], dict[Name, list[Code]]]:
    """Choose what missing cells read in each masked column; return it, and the codes for missing that occur.

    It is the code that was named first of those that occur, by its shortest spelling; without one, the only spelling
    that there is, else an empty cell.
    """
    chosen: dict[Name, Spelling] = {}
    coded: dict[Name, list[Code]] = {}
    for name, kind, found in zip(columns.masked, columns.kinds, spelled, strict=True):
        chosen[name] = next(iter(found)) if len(found) == 1 else None
        texts = sorted((text for text in found if text is not None), key=lambda text: (len(text), text))
        for code in columns.codes.get(name, ()):
            if kind is None and dialect is None and as_number(code) is None:
                raise InputError(f"Parameter 'missing_codes' names {code!r} for column {name!r}, which holds numbers.")
            cells = pl.Series(texts, dtype=pl.String)
            hits = [str(code)] if dialect is None else cells.filter(coded_text(cells, [code], dialect)).to_list()
            if set(hits) & found:
                if not coded.setdefault(name, []):
                    chosen[name] = hits[0]
                coded[name].append(code)
    return chosen, coded


def _code_notes(request: MaskRequest, coded: Mapping[Name, Sequence[Code]]) -> list[str]:
    """Say which codes were taken for missing, and which never occur."""
    notes = []
    for name, codes in request.codes.items():
        found = coded.get(name, ())
        if found:
            alike = f"; all its missing cells are released as {found[0]}" if request.missing == "group" else ""
            notes.append(f"cells of {name} that read {' or '.join(map(str, found))} were taken for missing{alike}")
        absent = [str(code) for code in codes if code not in found]
        if absent:
            notes.append(f"missing code {' and '.join(absent)} never occurs in {name}")
    return notes


def code_values(
    columns: Columns, parts: Sequence[Part]
) -> tuple[tuple[Coding | None, ...], list[tuple[Floats | None, ...]]]:
    """Number the values of every column of categories through all parts; return codings, and codes by part."""
    codings: list[Coding | None] = []
    codes: list[list[Floats | None]] = [[] for _ in parts]
    for j, (name, kind) in enumerate(zip(columns.masked, columns.kinds, strict=True)):
        if kind is None or isinstance(kind, Date):
            codings.append(None)
            for own in codes:
                own.append(None)
            continue
        found: dict[Any, int] = {}
        for part in parts:
            for value, count in part.values[j]:
                found[value] = found.get(value, 0) + count
        values = order_values(name, kind, found)
        codings.append(make_coding(name, kind, values, np.array([found[value] for value in values], dtype=np.int64)))
        place = {value: code for code, value in enumerate(values)}
        for own, part in zip(codes, parts, strict=True):
            own.append(np.array([place[value] for value, _ in part.values[j]], dtype=np.float64))
    return tuple(codings), [tuple(own) for own in codes]


def _notes(request: MaskRequest, incomplete: int, suppressed: int) -> tuple[str, ...]:
    notes = []
    if suppressed:
        notes.append(f"{suppressed} records of strata or patterns with fewer than k were left out (small='suppress')")
    if request.columns is None:
        notes.append("all numeric columns were masked, as none were named")
    if incomplete and request.missing == "drop":
        notes.append(f"{incomplete} records with missing values were left out (missing='drop')")
    elif incomplete:
        notes.append(f"{incomplete} records were masked among those that miss the same columns")
    return tuple(notes)


def _merge_kinds(columns: Columns, parts: Sequence[Part], coded: Mapping[Name, Sequence[Code]]) -> tuple[Kind, ...]:
    """Return the kind of each column; the parts of a CSV file may differ in it."""
    merged = []
    for name, category, *found in zip(columns.masked, columns.kinds, *(part.kinds for part in parts), strict=True):
        absent = as_number(coded[name][0]) if name in coded and category is None else None
        kinds = [kind for kind in found if kind is not None]
        types = {kind.type for kind in kinds}
        merged.append(
            Kind(
                types.pop() if len(types) == 1 else "float64", bool(kinds) and all(kind.whole for kind in kinds), absent
            )
        )
    return tuple(merged)


def number_cells(parts: Sequence[Sequence[T]]) -> tuple[list[Ints], list[T]]:
    """Number what the parts hold in order of appearance: of each part by code, and all."""
    numbers: dict[T, int] = {}
    roots = [np.array([numbers.setdefault(cell, len(numbers)) for cell in part], dtype=np.int64) for part in parts]
    return roots, list(numbers)


def spell_strata(
    columns: Columns, parts: Sequence[Sequence[Cell]], dialect: Dialect | None
) -> tuple[list[list[Cell]], dict[Name, dict[Spelling, Spelling]]]:
    """Give every value of the strata one spelling in all parts; only text has several."""
    if dialect is None or not columns.by:
        return [list(cells) for cells in parts], {name: {} for name in columns.by}
    changed: list[dict[Spelling, Spelling]] = []
    for place in range(len(columns.by)):
        text = list(dict.fromkeys(cell.stratum[place] for cells in parts for cell in cells))
        old = pl.Series(text, dtype=pl.String)
        new = one_spelling(old, parse_numbers(old, dialect, codes=False))
        changed.append({before: after for before, after in zip(old, new, strict=True) if before != after})
    spelled = [
        [
            cell._replace(stratum=tuple(to.get(text, text) for text, to in zip(cell.stratum, changed, strict=True)))  # type: ignore[call-overload]
            for cell in cells
        ]
        for cells in parts
    ]
    return spelled, dict(zip(columns.by, changed, strict=True))


def small_cells(
    request: MaskRequest, columns: Columns, parts: Sequence[Part], dialect: Dialect | None
) -> frozenset[Cell]:
    """Return the cells with fewer than k records, as the parts spell them."""
    roots, numbered = number_cells(spell_strata(columns, [part.cells for part in parts], dialect)[0])
    sizes = _counted(request, parts, roots, len(numbered))
    return frozenset(
        cell
        for part, numbers in zip(parts, roots, strict=True)
        for cell, number in zip(part.cells, numbers.tolist(), strict=True)
        if sizes[number] < request.k
    )


def sizes_of(parts: Sequence[Part], roots: Sequence[Ints], cells: int) -> Ints:
    """Return the number of records of each cell."""
    sizes = np.zeros(cells, dtype=np.int64)
    for part, numbers in zip(parts, roots, strict=True):
        np.add.at(sizes, numbers, part.counts)
    return sizes


def _counted(request: MaskRequest, parts: Sequence[Part], roots: Sequence[Ints], cells: int) -> Ints:
    """Return what k is held against: the records of each cell, or its units, k where there are more."""
    units = [part.units for part in parts if part.units is not None]
    return units_in_cells(units, roots, cells, request.k) if units else sizes_of(parts, roots, cells)


def _check_cells(request: MaskRequest, columns: Columns, cells: Sequence[Cell], sizes: Ints) -> None:
    """Check k against every stratum, and against the records of it that miss, or are zero in, the same columns.

    All that fail are listed.
    """
    counted = "records" if columns.unit is None else f"different {columns.unit}"
    # Units of several strata may be the same, so that joined strata need not have as many as they have together.
    strata_joined, cells_joined = (
        ("join small strata (small='merge'), ", "make more cells missing (small='merge'), ")
        if columns.unit is None
        else ("join small strata before masking, ", "")
    )
    strata: dict[tuple[object, ...], int] = {}
    for cell, size in zip(cells, sizes.tolist(), strict=True):
        strata[cell.stratum] = strata.get(cell.stratum, 0) + size
    small = [
        f"{describe_stratum(columns.by, stratum)} has {size} {counted if size != 1 else counted.removesuffix('s')}"
        for stratum, size in strata.items()
        if size < request.k
    ]
    if small and not columns.by and columns.unit is not None:
        raise InputError(
            f"Parameter 'k' must not exceed the number of {counted}: k={request.k}, but {_listed(small)}. Take a "
            "smaller k."
        )
    if small and columns.by:
        raise InputError(
            f"Parameter 'k' must not exceed the number of {counted} of a stratum: k={request.k}, but {_listed(small)}. "
            f"Take a smaller k, {strata_joined}or leave their records out: small='suppress'."
        )
    rare = [
        f"only {size} {counted} of {describe_stratum(columns.by, cell.stratum)} {_describe_patterns(columns, cell)}"
        for cell, size in zip(cells, sizes.tolist(), strict=True)
        if size < request.k
    ]
    if rare and columns.zeros:
        raise InputError(
            f"Parameter 'zeros' keeps records apart that are zero in different columns, but {_listed(rare)}; "
            f"k={request.k} are needed. Name fewer columns in 'zeros', take a smaller k, or leave these records out: "
            "small='suppress'."
        )
    if rare:
        raise InputError(
            f"Parameter 'missing' is 'group', but {_listed(rare)}; k={request.k} are needed. Take missing='drop', a "
            f"smaller k, fewer columns, {cells_joined}or leave these records out: small='suppress'."
        )


def _describe_patterns(columns: Columns, cell: Cell) -> str:
    """Say for a message which columns the records of a cell miss, and in which they are zero."""
    lacking, zero = (
        ", ".join(str(name) for name, found in zip(names, pattern, strict=True) if found)
        for names, pattern in ((columns.masked, cell.missing), (columns.zeros, cell.zero))
    )
    told = [f"miss exactly: {lacking}" if lacking else "miss nothing"] if lacking or not columns.zeros else []
    if columns.zeros:
        told.append(f"are zero in exactly: {zero}" if zero else f"are zero in none of: {_names(columns.zeros)}")
    return " and ".join(told)


def _names(names: Sequence[Name]) -> str:
    return ", ".join(map(str, names))


def _listed(found: Sequence[str]) -> str:
    """List what was found, the first hundred of very many."""
    more = f", and {len(found) - MOST_LISTED:,} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more


def check_engine(request: MaskRequest, records: Records) -> None:
    """Refuse what can only be done with all records at once, if they never are in one place."""
    if records.whole:
        return
    if not request.entry.whole_records:
        raise InputError(
            f"Method {request.entry.name!r} groups every column on its own, which needs the whole table in memory. "
            "Take engine='memory', or a method that groups whole records."
        )
    if request.unit is not None and request.unit in as_names(request.identifiers):
        raise InputError(
            f"Parameter 'unit' names column {request.unit!r}, which is dropped: units are counted again in the "
            "release, so beyond memory it must stay in. Take engine='memory', or drop it afterwards."
        )
    if request.shuffled:
        raise InputError("Parameter 'shuffle' needs the whole table in memory. Take engine='memory', or leave it out.")
    check_sendable(request.entry, request.options)
    if request.weights is not None and not isinstance(request.weights, str):
        raise InputError("Parameter 'weights' must name a column for a table beyond memory; got a vector.")


def choose_rule(request: MaskRequest, records: Records, plan: Plan, most: int) -> Blocking | None:
    """Return how the table is cut in blocks, None if it is not; one that is never whole always is.

    No unit has more than `most` records.
    """
    entry, block = request.entry, request.block
    if not records.whole and block is None:
        block = max(BLOCK, 2 * request.k)
    rule = choose_blocking(
        block,
        request.split,
        request.k,
        len(plan.columns.masked),
        int(plan.sizes.max(initial=0)),
        method=entry.name,
        useful=entry.whole_records and not entry.univariate and not entry.anytime,
        able=entry.whole_records,
    )
    if rule is not None and request.unit is not None:
        # However its records are cut, a block of so many holds k units.
        rule = replace(rule, k=(request.k - 1) * most + 1)
        if 2 * rule.k > rule.L:
            raise InputError(
                f"Parameter 'block' must be at least {2 * rule.k} records, got {rule.L}: a single {request.unit} may "
                f"have {most} records, and every block must hold k={request.k} of them. Take a larger block."
            )
    if rule is not None and plan.promise.models:
        # A block must keep the models by itself: it should hold several groups of the size that they need.
        needed = size_for([model.rule(ordered=True) for _, model in plan.promise.models], rule.L, request.k)
        rule = replace(rule, k=max(rule.k, min(rule.L // 2, 10 * ceil(needed))))
    if rule is None and not records.whole:
        raise InputError("Parameter 'block' must not be 0 for a table beyond memory: it is masked in blocks.")
    return rule
