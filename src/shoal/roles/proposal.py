"""The proposed role and kind of every column of a table, and the parameters of the masking that follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import count, count_holders
from shoal.kinds.category import MOST_VALUES
from shoal.kinds.column import Cells
from shoal.kinds.date import Date, find_format, fits
from shoal.kinds.kind_registry import CATEGORIES, KINDS, NUMBERS, TIMES, kind_of_cells
from shoal.roles.recognition import (
    is_code,
    is_confidential,
    is_of_person,
    is_stratum,
    is_weight,
    missing_codes,
    names_id,
    repeats_like_unit,
)
from shoal.tables.columns import Name, is_coded
from shoal.tables.identifiers import SMALL, looks_like_identifier
from shoal.tables.number_text import mostly_numbers, present_cells
from shoal.tables.table import Table, stored_indexes
from shoal.tables.table_view import View, sizes_of, spread

__all__ = ["Proposal", "ProposedColumn", "propose"]

ROOM = 10  # groups that a proposed stratum has room for: small strata cost much information
ZEROS = 0.95  # the share from which the other values stand out


@dataclass(frozen=True)
class ProposedColumn:
    """A column and its proposed role and kind.

    Parameters
    ----------
    name
        Its name.
    kind
        ``"float"``, ``"integer"``, ``"boolean"``, ``"nominal"`` (text, or numbers that are codes), ``"ordinal"``,
        ``"date"``, ``"time"`` or ``"duration"``.
    role
        ``"key"`` (to be masked), ``"stratum"``, ``"identifier"`` (not to be released), ``"confidential"`` (kept and
        measured), ``"weight"``, ``"unit"`` (whose records they are) or ``"other"``.
    reason
        Why, in words, and why it is dropped if so. It quotes no cell except codes for missing.
    distinct
        The number of different values.
    missing
        The number of missing cells.
    codes
        The cells that seem to be codes for missing, and how often each occurs.
    """

    name: Name
    kind: str
    role: str
    reason: str
    distinct: int
    missing: int
    codes: Mapping[int | str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Proposal:
    """A proposed role and kind for every column, for people to judge.

    Parameters
    ----------
    columns
        The columns, in the order of the table.
    parameters
        The parameters of `shoal.mask` that follow, by name; ``columns`` is empty if no column can be masked.
    dropped
        The columns that are left out of the release, each with its reason: those of parameter ``identifiers``.
    view
        The whole table, its codes for missing taken out of columns of text.
    """

    columns: tuple[ProposedColumn, ...]
    parameters: Mapping[str, Any]
    dropped: Mapping[Name, str]
    view: View

    def named(self, role: str) -> list[Name]:
        """Return the columns of a role."""
        return [column.name for column in self.columns if column.role == role]


@dataclass(frozen=True)
class _Evidence:
    """What is looked at: a table, or a sample of it, and the cells of its columns."""

    table: Table
    series: Mapping[Name, pl.Series]
    cells: Mapping[Name, Cells]
    codes: Mapping[Name, Mapping[int | str, int]]  # codes for missing and how often they occur


def propose(table: Table, k: int, *, most: int | None = None) -> Proposal:
    """Propose a role and a kind for every column of a table, and the masking that follows.

    Parameters
    ----------
    table
        The table.
    k
        The least number of records in a group, and in a stratum that is proposed.
    most
        The number of records by which a larger table is judged, spread over all of it; different and missing values are
        counted in the whole table.

    Examples
    --------
    >>> from shoal.tables.formats.frames import open_table
    >>> people = open_table(pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dan"], "age": [31, 47, 52, 29]}))
    >>> propose(people, 2).dropped
    {'name': 'the name says that it is a name'}
    """
    sample = table if most is None or table.rows <= most else table.take(spread(table.rows, most))
    words = _word_codes(sample)
    evidence = _gather(sample, words)
    persons = any(map(is_of_person, evidence.series))
    columns = [_look(name, evidence, persons=persons) for name in evidence.series]
    dates = _dates(columns, evidence.series)
    columns = [_with_format(column, evidence.series[column.name], dates.get(column.name)) for column in columns]
    columns = _with_strata(columns, evidence.series, k)
    view = View(_with_codes(table, words))
    if sample is not table:
        columns = [_counted(column, view.column(column.name)) for column in columns]
    parameters = _parameters(columns, evidence, dates, k)
    reasons = {
        column.name: _why_dropped(column) for column in columns if column.name in (parameters["identifiers"] or ())
    }
    explained = (_with_reason(column, reasons.get(column.name, "")) for column in columns)
    dropped = {column.name: reasons[column.name] or column.reason for column in columns if column.name in reasons}
    return Proposal(tuple(explained), parameters, dropped, view)


def _word_codes(table: Table) -> dict[Name, dict[int | str, int]]:
    """Return the words that mean missing in columns of text; without them, text may hold numbers."""
    return {
        name: missing_codes(Cells.of(column))
        for name, column in zip(table.names, table.keys(table.names), strict=True)  # as they are spelled
        if column.dtype == pl.String
    }


def _gather(table: Table, words: Mapping[Name, Mapping[int | str, int]]) -> _Evidence:
    """Return the cells of all columns and their codes for missing."""
    series = View(_with_codes(table, words)).columns()
    cells = Cells.of_columns(series)
    codes = {name: {**words.get(name, {}), **missing_codes(present)} for name, present in cells.items()}
    return _Evidence(_with_codes(table, codes), series, cells, codes)


def _with_codes(table: Table, codes: Mapping[Name, Mapping[int | str, int]]) -> Table:
    """Return the table with codes for missing besides those that it has."""
    names = [name for name in table.names if codes.get(name) or name in table.codes]
    return table.coded({name: [*dict.fromkeys((*table.codes.get(name, ()), *codes.get(name, ())))] for name in names})


def _counted(column: ProposedColumn, cells: pl.Series) -> ProposedColumn:
    """Return a column with the counts of the whole table."""
    return replace(column, distinct=cells.drop_nulls().n_unique(), missing=cells.null_count())


def _fewest(columns: Sequence[pl.Series], unit: pl.Series | None) -> int:
    """Return the least number of records, or of different units, that share a combination of values."""
    if unit is not None:
        frame = pl.DataFrame([column.alias(str(place)) for place, column in enumerate([*columns, unit])]).unique()
        columns = frame.get_columns()[:-1]
    return int(sizes_of(columns).min())  # type: ignore[arg-type]


def _look(name: Name, evidence: _Evidence, *, persons: bool) -> ProposedColumn:
    """Propose a kind and a role; `persons` says that the table describes persons, whose bodies have a weight."""
    cells, codes = evidence.cells[name], evidence.codes[name]
    kind = evidence.table.scale(name) or kind_of_cells(cells)
    code = kind == "integer" and is_code(name, cells)
    kind = "nominal" if code else kind
    what = f"a code ({cells.distinct} whole numbers)" if code else _what(kind, cells)
    role, reason = _role(name, cells, persons=persons)
    if role in ("key", "confidential"):
        reason = "; ".join([f"{what} {reason}", *_notes(kind, cells, codes)])
    return ProposedColumn(name, kind, role, reason, cells.distinct, cells.records - cells.present, codes)


def _what(kind: str, cells: Cells) -> str:
    """Say what a column holds."""
    values = count(cells.distinct, "value")
    categories = {"ordinal": f"an ordered category of {values}", "nominal": f"a category of {values}"}
    return categories.get(kind, f"a {'number' if kind in NUMBERS else 'truth value' if kind == 'boolean' else kind}")


def _role(name: Name, cells: Cells, *, persons: bool) -> tuple[str, str]:  # noqa: PLR0911  (one return a role)
    """Return the role of a column, and why."""
    if not cells.present:
        return "other", "no cell is filled"
    if stored_indexes([name]):
        return "identifier", "an index that pandas stored in the file"
    if is_weight(name, cells, persons=persons):
        return "weight", "the name says weight, and all numbers are positive"
    if cells.distinct == 1 and cells.present == cells.records:
        return "other", "the same value in all records"
    identifying = looks_like_identifier(name, cells)
    if identifying is not None:
        return "identifier", identifying
    if repeats_like_unit(name, cells):
        return "unit", f"an id by its name, and each stands in {cells.present / cells.distinct:.1f} records on average"
    if is_confidential(name):
        return "confidential", "whose name speaks of health, belief, politics, crime or sexual life"
    return "key", "that others may know"


def _notes(kind: str, cells: Cells, codes: Mapping[int | str, int]) -> list[str]:
    """Say what else is to be known of a column that is released."""
    listed_codes = ", ".join(f"{code} ({count(times, 'time')})" for code, times in codes.items())
    apart = " far from the rest" if any(isinstance(code, int) for code in codes) else ""
    notes = [f"{listed_codes}{apart}: codes for missing?"] if listed_codes else []
    if kind in NUMBERS:
        zeros = _zeros(cells)
        notes += [f"{100 * zeros:.1f} % are zero, the others stand out"] if zeros > ZEROS else []
        different = kind == "integer" and cells.distinct == cells.present > SMALL
        notes += ["all values are different: a measurement, or an identifier?"] if different else []
    return notes


def _zeros(cells: Cells) -> float:
    """Return the share of zeros among numbers."""
    return float((cells.numbers == 0).mean())


def _with_strata(columns: Sequence[ProposedColumn], series: Mapping[Name, pl.Series], k: int) -> list[ProposedColumn]:
    """Turn keys into strata: categories that divide tables, as long as every stratum has room for several groups."""
    chosen: list[pl.Series] = []
    proposed, unit = list[ProposedColumn](), _unit(columns, series)
    for column in columns:
        suits = column.role == "key" and column.kind in CATEGORIES and is_stratum(column.name)
        if suits and _fewest([*chosen, series[column.name]], None if unit is None else series[unit]) >= ROOM * k:
            chosen.append(series[column.name])
            least = count_holders(ROOM * k, unit)
            why = f"the name is one of regions, sectors or periods; a stratum has at least {least}"
            proposed.append(replace(column, role="stratum", reason=why))
        else:
            proposed.append(column)
    return proposed


def _unit(columns: Sequence[ProposedColumn], series: Mapping[Name, pl.Series]) -> Name | None:
    """Return the column that says whose records they are, if every record has one: a unit, or an id that repeats."""
    units = [column.name for column in columns if column.role == "unit"]
    units += [
        c.name for c in columns if c.role == "identifier" and names_id(c.name) and c.distinct < len(series[c.name])
    ]
    missing = {column.name: column.missing for column in columns}  # in all records, where `series` is a sample
    whole = (name for name in units if not missing[name])
    return next((name for name in whole if not present_cells(series[name].cast(pl.String)).null_count()), None)


def _dates(columns: Sequence[ProposedColumn], series: Mapping[Name, pl.Series]) -> dict[Name, Date]:
    """Return how the keys are written that hold dates or times as text or digits, where one format fits all cells."""
    dates: dict[Name, Date] = {}
    for column in columns:
        cells = series[column.name]
        written = cells.dtype == pl.String or cells.dtype.is_integer()
        if column.role == "key" and column.kind in ("date", "time") and written:
            format_ = find_format(cells.cast(pl.String))
            dates |= {} if format_ is None else {column.name: Date(format_ or None)}
    return dates


def _with_format(column: ProposedColumn, cells: pl.Series, kind: Date | None) -> ProposedColumn:
    """Say what is to be known of the format of dates that are text."""
    if column.role != "key" or column.kind not in ("date", "time") or cells.dtype != pl.String:
        return column
    remark = "" if kind is not None else "; written in several formats"
    swapped = (kind.format or "").replace("%d", "%?").replace("%m", "%d").replace("%?", "%m") if kind else ""
    if swapped and swapped != (kind and kind.format) and fits(Date(swapped), cells):
        remark = "; day and month may be swapped"
    return replace(column, reason=column.reason + remark)


def _maskable(
    columns: Sequence[ProposedColumn], table: Table, coded: Collection[Name], dates: Mapping[Name, Date]
) -> list[Name]:
    """Return the keys that masking can read: numbers, dates and the like, and categories of few values."""

    def readable(column: ProposedColumn) -> bool:
        try:
            if column.kind in NUMBERS:
                table[column.name].numbers()
            elif column.kind in CATEGORIES:
                table[column.name].categories(named=column.name in coded)
            else:
                table[column.name].moments(dates.get(column.name, Date()))
        except InputError:
            return False
        return True

    timed = {*dates, *table.timed_names()}
    return [
        column.name
        for column in columns
        if column.role == "key"
        and (column.kind in NUMBERS or column.name in timed or _is_few(column))
        and readable(column)
    ]


def _is_few(column: ProposedColumn) -> bool:
    """Return whether a column holds categories, no more than can be masked."""
    return column.kind in CATEGORIES and column.distinct <= MOST_VALUES


def _dropped(
    columns: Sequence[ProposedColumn], masked: Collection[Name], unit: Name | None, weights: Name | None
) -> list[Name]:
    """Return the columns to drop: identifiers, and whatever tells of a person and cannot be masked."""
    raw = {
        "identifier": columns,
        "key": [column for column in columns if column.name not in masked],
        "unit": [column for column in columns if column.name != unit],
        "weight": [column for column in columns if column.name != weights],
        "other": [column for column in columns if column.distinct > 1],  # constant in a sample only
    }
    return [column.name for column in columns if column in raw.get(column.role, ())]


def _why_dropped(column: ProposedColumn) -> str:
    """Return why a column is dropped that is not an identifier, and what to do to keep it."""
    if column.role == "identifier":
        return ""
    if column.role == "unit":
        return "some records have no unit; fill them in" if column.missing else "another unit is used"
    if column.role == "weight":
        return "another weight is used"
    if column.kind in CATEGORIES and not _is_few(column):
        return f"more than {MOST_VALUES:,} values cannot be masked; group them into fewer"
    return f"it cannot be masked{'; write all cells alike' if column.kind in TIMES else ''}"


def _with_reason(column: ProposedColumn, why_dropped: str) -> ProposedColumn:
    """Add to the reason why a column is dropped."""
    return replace(column, reason=f"{column.reason}; dropped: {why_dropped}") if why_dropped else column


def _parameters(
    columns: Sequence[ProposedColumn], evidence: _Evidence, dates: Mapping[Name, Date], k: int
) -> dict[str, Any]:
    """Return the parameters of the masking that follow from roles and kinds."""
    series, cells, codes = evidence.series, evidence.cells, evidence.codes
    named = {column.role: [other.name for other in columns if other.role == column.role] for column in columns}
    # Codes may be numbers, or text such as 007 that masking would read as numbers.
    coded = [c.name for c in columns if c.kind == "nominal" and _numbered(series[c.name], cells[c.name])]
    masked, strata = _maskable(columns, evidence.table, coded, dates), named.get("stratum", [])
    unit, weights = _unit(columns, series), next(iter(named.get("weight", [])), None)
    units = None if unit is None else series[unit]
    absent = [series[name].is_null() | is_coded(series[name], list(codes[name])) for name in masked]
    missing = small = "error"
    if any(column.any() for column in absent):
        # Records that miss the same columns are masked among themselves, which takes k of them.
        fewest = _fewest([*(series[name] for name in strata), *absent], units)
        missing, small = "group", "error" if fewest >= k else "suppress"
    together = [entry.load().recognise_together({name: cells[name] for name in masked}) for entry in KINDS.values()]
    kinds = dict.fromkeys(coded, "nominal") | {name: kind.plain() for name, kind in dates.items()}
    kinds |= {name: kind.plain() for kind_of in together for name, kind in kind_of.items()}
    apart = [*(series[name] for name in strata), *(series[name].is_null() for name in masked)]
    numbers = {column.name: cells[column.name] for column in columns if column.kind in NUMBERS}
    zeros = {name: series[name] for name in masked if name in numbers and _zeros(numbers[name]) > ZEROS}
    return {
        "columns": masked,
        "by": strata or None,
        "unit": unit,
        "confidential": named.get("confidential"),
        "weights": weights,
        "missing": missing,
        "small": small,
        "zeros": _kept_zeros(zeros, apart, units, k) or None,
        "missing_codes": {name: list(codes[name]) for name in masked if codes[name]} or None,
        "identifiers": _dropped(columns, masked, unit, weights) or None,
        "kinds": {name: kind for name, kind in kinds.items() if name in masked} or None,
    }


def _numbered(series: pl.Series, cells: Cells) -> bool:
    text = isinstance(series.dtype, (pl.String, pl.Categorical, pl.Enum))
    return len(cells.numbers) > 0 or (text and mostly_numbers(series.cast(pl.String)))


def _kept_zeros(
    zeros: Mapping[Name, pl.Series], apart: Sequence[pl.Series], units: pl.Series | None, k: int
) -> list[Name]:
    """Return the columns whose zeros can be kept: k records are zero in the same of them, and k are not."""
    apart, names = list(apart), []
    for name, cells in zeros.items():
        zero = (cells == 0).fill_null(value=False)
        if len(zero) and _fewest([*apart, zero], units) >= k:
            apart.append(zero)
            names.append(name)
    return names
