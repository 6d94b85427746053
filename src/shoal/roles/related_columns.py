"""Roles that follow from other columns: units of a panel, strata, and functions of other columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.core.messages import count_holders
from shoal.kinds.kind_registry import CATEGORIES, NUMBERS
from shoal.roles.column_proposal import ProposedColumn
from shoal.roles.evidence import Evidence
from shoal.roles.functions import find_functions
from shoal.roles.recognition import counts_units, is_stratum, names_id
from shoal.tables.columns import Name
from shoal.tables.number_text import present_cells
from shoal.tables.table_view import sizes_of

__all__ = ["fewest", "unit_column", "with_panel_unit", "with_some_key", "with_strata", "without_functions"]

MOST_PERIODS = 200  # maximum number of values in a column of periods
ROOM = 10  # minimum number of groups in a proposed stratum, because small strata lose much information
GLANCE = 100  # number of cells that show the text length of a column


def with_panel_unit(columns: Sequence[ProposedColumn], evidence: Evidence) -> list[ProposedColumn]:
    """Turn a key into the unit of a panel if each value occurs once per period and no column is a unit yet."""
    if any(column.role == "unit" for column in columns):
        return list(columns)
    periods = [c.name for c in columns if evidence.words.has("periods", c.name) and 1 < c.distinct <= MOST_PERIODS]
    for place, column in enumerate(columns):
        cells = evidence.cells[column.name]
        if column.role == "key" and column.name not in periods and (cells.text or cells.whole):
            for period in periods:
                if counts_units(evidence.series[column.name], evidence.series[period]):
                    reason = f"each value occurs once per {period}: a unit of a panel"
                    return [*columns[:place], replace(column, role="unit", reason=reason), *columns[place + 1 :]]
    return list(columns)


def with_some_key(columns: Sequence[ProposedColumn]) -> list[ProposedColumn]:
    """Turn sensitive amounts into keys if a table has no keys, because exact amounts would single out every record."""
    if any(column.role == "key" for column in columns):
        return list(columns)
    return [
        replace(column, role="key", reason=f"{column.reason}; masked, because the table has no other key")
        if column.role == "confidential" and column.kind in NUMBERS
        else column
        for column in columns
    ]


def without_functions(
    columns: Sequence[ProposedColumn], evidence: Evidence, maskable: Collection[Name]
) -> list[ProposedColumn]:
    """Drop columns that are functions of other columns, because such columns would reveal masked values."""
    released = {c.name: c for c in columns if c.name in maskable or c.role in ("confidential", "stratum")}
    functions = find_functions({name: evidence.series[name] for name in released})
    derived: dict[Name, str] = {}
    for name in sorted(released, key=lambda name: _plainness(released[name], evidence), reverse=True):
        if twins := [twin for twin in functions.twins.get(name, ()) if twin not in derived]:
            source = min(twins, key=lambda twin: _plainness(released[twin], evidence))
            derived[name] = f"equivalent to {source}, so it reveals {source}"
    for name, sources in functions.sources.items():
        left = [source for source in sources if source not in derived]
        if name not in derived and released[name].role != "stratum" and left:
            derived[name] = f"a function of {left[0]}, so it reveals part of {left[0]}"
    return [
        replace(column, role="derived", reason=derived[column.name]) if column.name in derived else column
        for column in columns
    ]


def _plainness(column: ProposedColumn, evidence: Evidence) -> tuple[Any, ...]:
    """Return a sort key that places the plainest of equivalent columns first."""
    cells = evidence.cells[column.name]
    length = np.mean([len(str(value)) for value in cells.values.head(GLANCE)])
    return column.role == "key", not cells.text, not cells.whole, length > 5, list(evidence.series).index(column.name)


def with_strata(columns: Sequence[ProposedColumn], series: Mapping[Name, pl.Series], k: int) -> list[ProposedColumn]:
    """Use categories such as regions as strata, as long as every stratum has room for several groups."""
    chosen: list[pl.Series] = []
    proposed, unit = list[ProposedColumn](), unit_column(columns, series)
    for column in columns:
        suits = column.role == "key" and column.kind in CATEGORIES and is_stratum(column.name)
        if suits and fewest([*chosen, series[column.name]], None if unit is None else series[unit]) >= ROOM * k:
            chosen.append(series[column.name])
            least = count_holders(ROOM * k, unit)
            why = f"the name indicates regions, sectors or periods; every stratum has at least {least}"
            proposed.append(replace(column, role="stratum", reason=why))
        else:
            proposed.append(column)
    return proposed


def unit_column(columns: Sequence[ProposedColumn], series: Mapping[Name, pl.Series]) -> Name | None:
    """Return the unit column, or an ID column with repeated values; skip columns with missing values."""
    units = [column.name for column in columns if column.role == "unit"]
    units += [
        c.name for c in columns if c.role == "identifier" and names_id(c.name) and c.distinct < len(series[c.name])
    ]
    missing = {column.name: column.missing for column in columns}  # in all records; `series` may be a sample
    whole = (name for name in units if not missing[name])
    return next((name for name in whole if not present_cells(series[name].cast(pl.String)).null_count()), None)


def fewest(columns: Sequence[pl.Series], unit: pl.Series | None) -> int:
    """Return the smallest number of records, or of distinct units, that share a combination of values."""
    if unit is None:
        return int(sizes_of(columns).min())  # type: ignore[arg-type]
    frame = pl.DataFrame([column.alias(str(place)) for place, column in enumerate([*columns, unit])])
    *values, last = frame.columns
    units = frame.group_by(values).agg(pl.col(last).n_unique()) if values else frame.select(pl.col(last).n_unique())
    return int(units[last].min())  # type: ignore[arg-type]
