"""Masking parameters that follow from proposed roles and kinds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from shoal.core.errors import InputError
from shoal.kinds.category import MOST_VALUES
from shoal.kinds.column import Cells
from shoal.kinds.date import Date, find_format
from shoal.kinds.kind_registry import CATEGORIES, KINDS, NUMBERS, TIMES
from shoal.roles.code_trees import prefix_hierarchy
from shoal.roles.column_proposal import ZEROS, ProposedColumn, share_of_zeros
from shoal.roles.evidence import Evidence
from shoal.roles.related_columns import fewest, unit_column
from shoal.tables.columns import Name, is_coded
from shoal.tables.number_text import mostly_numbers

__all__ = ["find_dates", "mask_parameters", "maskable_columns", "why_dropped"]


def mask_parameters(
    columns: Sequence[ProposedColumn],
    evidence: Evidence,
    maskable: Collection[Name],
    dates: Mapping[Name, Date],
    k: int,
) -> dict[str, Any]:
    """Return the masking parameters that follow from roles and kinds."""
    series, cells, codes = evidence.series, evidence.cells, evidence.codes
    named = {column.role: [other.name for other in columns if other.role == column.role] for column in columns}
    coded = _coded_names(columns, evidence)
    masked, strata = [name for name in maskable if name in named.get("key", [])], named.get("stratum", [])
    unit, weights = unit_column(columns, series), next(iter(named.get("weight", [])), None)
    units = None if unit is None else series[unit]
    # If k counts units, rare patterns of missing values are joined as a whole, which costs more than suppression.
    absent = [series[name].is_null() | is_coded(series[name], list(codes[name])) for name in masked]
    rare = units is not None and fewest([*(series[name] for name in strata), *absent], units) < k
    together = [entry.load().recognise_together({name: cells[name] for name in masked}) for entry in KINDS.values()]
    kinds = dict.fromkeys(coded, "nominal") | {name: kind.plain() for name, kind in dates.items()}
    kinds |= {name: kind.plain() for kind_of in together for name, kind in kind_of.items()}
    kinds |= _hierarchies(columns, evidence, masked)
    apart = [*(series[name] for name in strata), *(series[name].is_null() for name in masked)]
    numbers = {column.name: cells[column.name] for column in columns if column.kind in NUMBERS}
    zeros = {name: series[name] for name in masked if name in numbers and share_of_zeros(numbers[name]) > ZEROS}
    return {
        "columns": masked,
        "by": strata or None,
        "unit": unit,
        "confidential": named.get("confidential"),
        "weights": weights,
        "small": "suppress" if rare else "merge",
        "zeros": _kept_zeros(zeros, apart, units, k) or None,
        "missing_codes": {name: list(codes[name]) for name in masked if codes[name]} or None,
        "identifiers": [column.name for column in columns if _is_dropped(column, masked, weights)] or None,
        "kinds": {name: kind for name, kind in kinds.items() if name in masked} or None,
    }


def find_dates(columns: Sequence[ProposedColumn], series: Mapping[Name, pl.Series]) -> dict[Name, Date]:
    """Return the formats of keys whose dates or times are text or digits, if one format fits all cells of the key."""
    dates: dict[Name, Date] = {}
    for column in columns:
        cells = series[column.name]
        written = cells.dtype == pl.String or cells.dtype.is_integer()
        if column.role == "key" and column.kind in ("date", "time") and written:
            format_ = find_format(cells.cast(pl.String))
            dates |= {} if format_ is None else {column.name: Date(format_ or None)}
    return dates


def maskable_columns(columns: Sequence[ProposedColumn], evidence: Evidence, dates: Mapping[Name, Date]) -> list[Name]:
    """Return the keys that can be masked: numbers, dates and times, and categories with few values."""
    table, coded = evidence.table, _coded_names(columns, evidence)

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


def _coded_names(columns: Sequence[ProposedColumn], evidence: Evidence) -> list[Name]:
    """Return the categories that masking would read as numbers: codes, including text such as 007."""
    return [
        column.name
        for column in columns
        if column.kind == "nominal" and _numbered(evidence.series[column.name], evidence.cells[column.name])
    ]


def _hierarchies(columns: Sequence[ProposedColumn], evidence: Evidence, masked: Collection[Name]) -> dict[Name, Any]:
    """Return, as plain values, the hierarchies of masked codes whose prefixes denote wider classes."""
    trees = dict[Name, Any]()
    for column in columns:
        name = column.name
        if name in masked and column.kind == "nominal" and evidence.words.has("trees", name):
            values = evidence.table[name].categories(named=True).drop_nulls().unique().to_list()
            tree = prefix_hierarchy(values)
            trees |= {} if tree is None else {name: tree.plain()}
    return trees


def _is_few(column: ProposedColumn) -> bool:
    """Return whether a column is categorical and has few enough values to mask."""
    return column.kind in CATEGORIES and column.distinct <= MOST_VALUES


def _is_dropped(column: ProposedColumn, masked: Collection[Name], weights: Name | None) -> bool:
    """Return True for columns to leave out: identifiers, and columns that need not be released unchanged."""
    released = {
        "key": column.name in masked,
        "stratum": True,
        "confidential": True,
        "weight": column.name == weights,
    }
    return not released.get(column.role, False)


def why_dropped(column: ProposedColumn, parameters: Mapping[str, Any]) -> str:
    """Return the reason for dropping a column that is not an identifier, with a remedy."""
    if column.role in ("identifier", "derived", "other"):
        return ""
    if column.role == "unit":
        unused = "some records have no unit; add the missing units" if column.missing else "another unit is used"
        return "it identifies the units" if column.name == parameters["unit"] else unused
    if column.role == "weight":
        return "another weight is used"
    if column.kind in CATEGORIES and not _is_few(column):
        return f"more than {MOST_VALUES:,} values cannot be masked; merge them into fewer"
    wrong = "it cannot be masked" if column.role == "key" else "the values differ in some records"
    return f"{wrong}; write all cells in one format" if column.kind in TIMES else wrong


def _numbered(series: pl.Series, cells: Cells) -> bool:
    text = isinstance(series.dtype, (pl.String, pl.Categorical, pl.Enum))
    return len(cells.numbers) > 0 or (text and mostly_numbers(series.cast(pl.String)))


def _kept_zeros(
    zeros: Mapping[Name, pl.Series], apart: Sequence[pl.Series], units: pl.Series | None, k: int
) -> list[Name]:
    """Return the columns whose zeros can be kept because every pattern of zeros has at least k records or units."""
    apart, names = list(apart), []
    for name, cells in zeros.items():
        zero = (cells == 0).fill_null(value=False)
        if len(zero) and fewest([*apart, zero], units) >= k:
            apart.append(zero)
            names.append(name)
    return names
