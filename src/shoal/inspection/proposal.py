"""inspect(): what every column of a table seems to be, why, and the masking that follows from it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.display import aligned, html_table
from shoal.core.errors import InputError
from shoal.core.messages import count, count_holders, visible
from shoal.inspection.column_roles import (
    is_code,
    is_confidential,
    is_of_person,
    is_stratum,
    is_weight,
    missing_codes,
    names_id,
    repeats_like_unit,
)
from shoal.kinds.category import MOST_VALUES
from shoal.kinds.column import Cells
from shoal.kinds.date import Date, find_format, fits
from shoal.kinds.kind_registry import CATEGORIES, KINDS, NUMBERS, TIMES, kind_of_cells
from shoal.masking.manifest import as_call, as_command
from shoal.masking.request import MaskRequest
from shoal.masking.request_rules import check_data
from shoal.table_view import View, sizes_of, spread
from shoal.tables.columns import Name, is_coded, mostly_numbers
from shoal.tables.csv_table import present_cells
from shoal.tables.files import open_data, writable_endings
from shoal.tables.identifiers import SMALL, looks_like_identifier
from shoal.tables.table import Table, stored_indexes

__all__ = ["InspectedColumn", "Inspection", "inspect"]

ZEROS = 0.95  # the share from which the other values stand out


@dataclass(frozen=True)
class InspectedColumn:
    """What a column seems to be.

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
        Why, in words, and why it cannot be masked if so. No cell is quoted but codes for missing.
    distinct
        The number of different values.
    missing
        The number of missing cells.
    """

    name: Name
    kind: str
    role: str
    reason: str
    distinct: int
    missing: int


@dataclass(frozen=True)
class Inspection:
    """What the columns of a table seem to be: a proposal for people to judge.

    Parameters
    ----------
    columns
        The columns, in the order of the table.
    records
        The number of records.
    uniques
        The records that no other equals in all keys, in the table as it is.
    uniques_in_strata
        Likewise, in all keys and strata.
    command
        The ``shoal mask`` that follows, as a command for a file and as a call for a table; empty if there is nothing
        to mask.
    asked
        The same as parameters of `shoal.mask`.
    view
        The table as it was looked at: its first rows, and how many records are alike in columns of your choice
        (``view.alike(["age", "sex"])``).
    """

    columns: tuple[InspectedColumn, ...]
    records: int
    uniques: int
    uniques_in_strata: int
    command: str
    asked: Mapping[str, Any] = field(default_factory=dict, repr=False)
    view: View | None = field(default=None, repr=False, compare=False)

    @property
    def roles(self) -> dict[Name, str]:
        """The role of each column."""
        return {column.name: column.role for column in self.columns}

    @property
    def kinds(self) -> dict[Name, str]:
        """The kind of each column."""
        return {column.name: column.kind for column in self.columns}

    def named(self, role: str) -> list[Name]:
        """Return the columns of a role."""
        return [column.name for column in self.columns if column.role == role]

    def cells(self) -> list[list[str]]:
        """Return the columns as text, the head first."""
        rows = [[str(c.name), c.role, c.kind, f"{c.distinct:,}", f"{c.missing:,}", c.reason] for c in self.columns]
        return [["column", "role", "kind", "values", "missing", "why"], *rows]

    def rows(self) -> list[tuple[str, str]]:
        """Return the summary, a name and a value a line."""
        unique = f"{self.uniques:,} of {self.records:,} over the keys"
        if self.named("stratum"):
            unique += f", {self.uniques_in_strata:,} over keys and strata"
        lines = [("unique records", unique)]
        identifiers = self.asked.get("identifiers")
        if identifiers:
            lines.append(("not to be released", f"{len(identifiers)}: {', '.join(map(str, identifiers))}"))
        return lines if self.command else [*lines, ("to mask", "nothing: no key can be masked")]

    def __str__(self) -> str:
        summary = "\n".join(f"{name:<18} {visible(value)}" for name, value in self.rows())
        return "\n\n".join(
            filter(None, [aligned(self.cells(), numeric=False), summary, visible(self.command, lines=True)])
        )

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return f"{html_table(rows, head)}{html_table(self.rows())}<pre>{escape(self.command)}</pre>"


def inspect(
    data: Any,
    k: int = 5,
    *,
    most: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Inspection:
    """Look at a table before it is masked: propose a role and a kind for every column, with the reason.

    Parameters
    ----------
    data
        A table, an array or the path of a file, as `shoal.mask` takes it.
    k
        The least number of records in a group, and in a stratum that is proposed.
    most
        Judge a table with more records by this many of them, spread over all of it; different values, missing cells and
        unique records are counted in all the same.
    delimiter, encoding, decimal, thousands
        How a CSV file is written; found out if not given.

    Returns
    -------
    Inspection
        Roles, kinds and reasons, the records that are unique, and the masking that follows; it prints itself.

    Examples
    --------
    >>> people = pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dan"], "age": [31, 47, 52, 29]})
    >>> inspect(people, k=2).roles
    {'name': 'identifier', 'age': 'key'}
    """
    request = MaskRequest(k=k, delimiter=delimiter, encoding=encoding, decimal=decimal, thousands=thousands)
    check_data(request, data, dask=False)
    whole = open_data(data, numbers=(), named=True, **request.csv)
    table = whole if most is None or whole.rows <= most else whole.take(spread(whole.rows, most))
    if thousands is None and (sign := table.find_thousands(decimal)):
        return inspect(data, k, most=most, delimiter=delimiter, encoding=encoding, decimal=decimal, thousands=sign)
    words = {
        name: missing_codes(Cells.of(column))
        for name, column in zip(table.names, table.keys(table.names), strict=True)  # as they are spelled
        if column.dtype == pl.String
    }
    # Without words for missing, text may hold numbers.
    word_codes = {name: list(counts) for name, counts in words.items()}
    series = View(table.coded(word_codes)).columns()
    cells = Cells.of_columns(series)
    codes = {name: words.get(name, {}) | missing_codes(present) for name, present in cells.items()}
    persons = any(map(is_of_person, series))
    columns = [_look(name, cells[name], codes[name], table.scale(name), persons=persons) for name in series]
    dates = _dates(columns, series)
    columns = [_with_format(column, series[column.name], dates.get(column.name)) for column in columns]
    inspection = Inspection(tuple(_with_strata(columns, series, k)), whole.rows, 0, 0, "")
    inspection = _counted(inspection, View(whole.coded(word_codes)), sampled=table is not whole)
    coded = table.coded({name: list(counts) for name, counts in codes.items() if counts})
    parameters = _parameters(inspection, coded, series, cells, codes, dates, request)
    return replace(
        inspection,
        columns=tuple(_with_drop(column, parameters) for column in inspection.columns),
        command=_command(parameters, data) if parameters["columns"] else "",
        asked=parameters,
    )


def _counted(inspection: Inspection, view: View, *, sampled: bool) -> Inspection:
    """Add what is counted in all records."""
    columns = inspection.columns
    if sampled:
        cells = view.columns()
        columns = tuple(
            replace(c, distinct=cells[c.name].drop_nulls().n_unique(), missing=cells[c.name].null_count())
            for c in columns
        )
    keys, strata = inspection.named("key"), inspection.named("stratum")
    return replace(
        inspection,
        columns=columns,
        uniques=view.alike(keys).get(1, 0),
        uniques_in_strata=view.alike([*keys, *strata]).get(1, 0),
        view=view,
    )


def _fewest(columns: Sequence[pl.Series], unit: pl.Series | None) -> int:
    """Return the least number of records, or of different units, that share a combination of values."""
    if unit is not None:
        frame = pl.DataFrame([column.alias(str(place)) for place, column in enumerate([*columns, unit])]).unique()
        columns = frame.get_columns()[:-1]
    return int(sizes_of(columns).min())  # type: ignore[arg-type]


def _look(
    name: Name, cells: Cells, codes: Mapping[int | str, int], scale: str | None, *, persons: bool
) -> InspectedColumn:
    """Propose a kind and a role; `persons` says that the table describes persons, whose bodies have a weight."""
    kind = scale or kind_of_cells(cells)
    code = kind == "integer" and is_code(name, cells)
    kind = "nominal" if code else kind
    what = f"a code ({cells.distinct} whole numbers)" if code else _what(kind, cells)
    role, reason = _role(name, cells, persons=persons)
    if role in ("key", "confidential"):
        reason = "; ".join([f"{what} {reason}", *_notes(kind, cells, codes)])
    return InspectedColumn(name, kind, role, reason, cells.distinct, cells.records - cells.present)


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


def _with_strata(columns: Sequence[InspectedColumn], series: Mapping[Name, pl.Series], k: int) -> list[InspectedColumn]:
    """Turn keys into strata: categories that divide tables, as long as every stratum has at least k records."""
    chosen: list[pl.Series] = []
    proposed, unit = list[InspectedColumn](), _unit(columns, series)
    for column in columns:
        suits = column.role == "key" and column.kind in CATEGORIES and is_stratum(column.name)
        if suits and _fewest([*chosen, series[column.name]], None if unit is None else series[unit]) >= k:
            chosen.append(series[column.name])
            why = f"the name is one of regions, sectors or periods; a stratum has at least {count_holders(k, unit)}"
            proposed.append(replace(column, role="stratum", reason=why))
        else:
            proposed.append(column)
    return proposed


def _unit(columns: Sequence[InspectedColumn], series: Mapping[Name, pl.Series]) -> Name | None:
    """Return the column that says whose records they are, if every record has one: a unit, or an id that repeats."""
    units = [column.name for column in columns if column.role == "unit"]
    units += [
        c.name for c in columns if c.role == "identifier" and names_id(c.name) and c.distinct < len(series[c.name])
    ]
    missing = {column.name: column.missing for column in columns}  # in all records, where `series` is a sample
    whole = (name for name in units if not missing[name])
    return next((name for name in whole if not present_cells(series[name].cast(pl.String)).null_count()), None)


def _dates(columns: Sequence[InspectedColumn], series: Mapping[Name, pl.Series]) -> dict[Name, Date]:
    """Return how the keys are written that hold dates or times as text or digits, where one format fits all cells."""
    dates: dict[Name, Date] = {}
    for column in columns:
        cells = series[column.name]
        written = cells.dtype == pl.String or cells.dtype.is_integer()
        if column.role == "key" and column.kind in ("date", "time") and written:
            format_ = find_format(cells.cast(pl.String))
            dates |= {} if format_ is None else {column.name: Date(format_ or None)}
    return dates


def _with_format(column: InspectedColumn, cells: pl.Series, kind: Date | None) -> InspectedColumn:
    """Say what is to be known of the format of dates that are text."""
    if column.role != "key" or column.kind not in ("date", "time") or cells.dtype != pl.String:
        return column
    remark = "" if kind is not None else "; written in several formats"
    swapped = (kind.format or "").replace("%d", "%?").replace("%m", "%d").replace("%?", "%m") if kind else ""
    if swapped and swapped != (kind and kind.format) and fits(Date(swapped), cells):
        remark = "; day and month may be swapped"
    return replace(column, reason=column.reason + remark)


def _maskable(
    columns: Sequence[InspectedColumn], table: Table, coded: Collection[Name], dates: Mapping[Name, Date]
) -> list[Name]:
    """Return the keys that masking can read: numbers, dates and the like, and categories of few values."""

    def readable(column: InspectedColumn) -> bool:
        try:
            if column.kind in NUMBERS:
                table.column(column.name)
            elif column.kind in CATEGORIES:
                table.categories(column.name, named=column.name in coded)
            else:
                table.moments(column.name, dates.get(column.name, Date()))
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


def _is_few(column: InspectedColumn) -> bool:
    """Return whether a column holds categories, no more than can be masked."""
    return column.kind in CATEGORIES and column.distinct <= MOST_VALUES


def _dropped(
    columns: Sequence[InspectedColumn], masked: Collection[Name], unit: Name | None, weights: Name | None
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


def _with_drop(column: InspectedColumn, parameters: Mapping[str, Any]) -> InspectedColumn:
    """Add to the reason why a column is dropped that is not an identifier, and what to do to keep it."""
    if column.role == "identifier" or column.name not in (parameters["identifiers"] or []):
        return column
    if column.role == "unit":
        why = "dropped: some records have no unit; fill them in" if column.missing else "dropped: another unit is used"
    elif column.role == "weight":
        why = "dropped: another weight is used"
    elif column.kind in CATEGORIES and not _is_few(column):
        why = f"dropped: more than {MOST_VALUES:,} values cannot be masked; group them into fewer"
    elif column.kind in TIMES:
        why = "dropped: it cannot be masked; write all cells alike"
    else:
        why = "dropped: it cannot be masked"
    return replace(column, reason=f"{column.reason}; {why}")


def _parameters(
    inspection: Inspection,
    table: Table,
    series: Mapping[Name, pl.Series],
    cells: Mapping[Name, Cells],
    codes: Mapping[Name, Mapping[int | str, int]],
    dates: Mapping[Name, Date],
    request: MaskRequest,
) -> dict[str, Any]:
    """Return the masking that follows, as `MaskRequest.recorded` tells it."""
    # Codes may be numbers, or text such as 007 that masking would read as numbers.
    coded = [c.name for c in inspection.columns if c.kind == "nominal" and _numbered(series[c.name], cells[c.name])]
    masked, strata = _maskable(inspection.columns, table, coded, dates), inspection.named("stratum")
    unit, weights = _unit(inspection.columns, series), next(iter(inspection.named("weight")), None)
    absent = [series[name].is_null() | is_coded(series[name], list(codes[name])) for name in masked]
    missing = small = "error"
    if any(column.any() for column in absent):
        # Records that miss the same columns are masked among themselves, which takes k of them.
        fewest = _fewest([*(series[name] for name in strata), *absent], None if unit is None else series[unit])
        missing, small = "group", "error" if fewest >= request.k else "suppress"
    together = [entry.load().recognise_together({name: cells[name] for name in masked}) for entry in KINDS.values()]
    kinds = dict.fromkeys(coded, "nominal") | {name: kind.plain() for name, kind in dates.items()}
    kinds |= {name: kind.plain() for kind_of in together for name, kind in kind_of.items()}
    return {
        "k": request.k,
        "columns": masked,
        "by": strata or None,
        "unit": unit,
        "confidential": inspection.named("confidential") or None,
        "weights": weights,
        "missing": missing,
        "small": small,
        "zeros": _kept_zeros(inspection, masked, series, cells, request.k) or None,
        "missing_codes": {name: list(codes[name]) for name in masked if codes[name]} or None,
        "identifiers": _dropped(inspection.columns, masked, unit, weights) or None,
        "kinds": {name: kind for name, kind in kinds.items() if name in masked} or None,
        **request.csv,
        "options": {},
    }


def _numbered(series: pl.Series, cells: Cells) -> bool:
    return len(cells.numbers) > 0 or (series.dtype == pl.String and mostly_numbers(series))


def _kept_zeros(
    inspection: Inspection,
    masked: Sequence[Name],
    series: Mapping[Name, pl.Series],
    cells: Mapping[Name, Cells],
    k: int,
) -> list[Name]:
    """Return the keys whose zeros can be kept: k records are zero in the same columns, and k are not."""
    kinds = inspection.kinds
    apart = [*(series[name] for name in inspection.named("stratum")), *(series[name].is_null() for name in masked)]
    unit = _unit(inspection.columns, series)
    units = None if unit is None else series[unit]
    names = []
    for name in masked:
        if kinds[name] in NUMBERS and _zeros(cells[name]) > ZEROS:
            zero = (series[name] == 0).fill_null(value=False)
            if len(zero) and _fewest([*apart, zero], units) >= k:
                apart.append(zero)
                names.append(name)
    return names


def _command(parameters: Mapping[str, Any], data: Any) -> str:
    """Return the command that masks a file, or the call that masks a table."""
    if not isinstance(data, (str, os.PathLike)):
        return as_call(
            {**parameters, "missing": None if parameters["missing"] == "error" else parameters["missing"]}, None
        )
    source = Path(data)
    ending = source.suffix if source.suffix.lower() in writable_endings() else ".csv"
    return as_command(parameters, str(source), str(source.with_name(f"{source.stem}-masked{ending}")))
