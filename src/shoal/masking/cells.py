"""The cells of a table: number and count them, and refuse cells with fewer than k records.

A cell holds the records of a stratum that have missing values in the same columns, and kept zeros in the same columns.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import agreeing, clauses, count_holders, holders, listed, parameter, setting
from shoal.core.types import Floats, Ints, Spelling
from shoal.kernels.words import Words
from shoal.kinds.column import Storage, composed_cells, one_form
from shoal.masking.confidential import Values
from shoal.masking.request import MaskRequest
from shoal.masking.roles import Columns
from shoal.masking.sums import Broken
from shoal.promises.distinct_units import units_in_cells
from shoal.tables.columns import Code, Name
from shoal.tables.number_text import Dialect, one_spelling, parse_numbers
from shoal.tables.table import describe_stratum

__all__ = [
    "STAY",
    "Cell",
    "Donation",
    "Joined",
    "Moves",
    "Own",
    "PartStatistics",
    "Spellings",
    "check_cells",
    "count_cells",
    "holders_of",
    "may_be_small",
    "number_cells",
    "sizes_of",
    "spell_strata",
]

T = TypeVar("T", bound=Hashable)


class Cell(NamedTuple):
    """The stratum, the missing columns and the zero columns shared by the records of a cell."""

    stratum: tuple[object, ...]
    missing: tuple[bool, ...]  # per masked column
    zero: tuple[bool, ...] = ()  # per column whose zeros are kept


class PartStatistics(NamedTuple):
    """The counts, limits and spellings of a part of the table."""

    rows: int
    kept: int  # released records
    incomplete: int  # records with a missing value
    suppressed: int  # suppressed records of small cells
    missing: Ints  # missing values per column
    present: Ints  # released values per column that are not missing
    cells: list[Cell]  # by code
    counts: Ints  # records per cell
    units: list[Words] | None  # per cell: its k lowest distinct unit hashes, or all if there are fewer
    storages: tuple[Storage | None, ...]  # per column; None if all its values are missing
    spellings: tuple[frozenset[Spelling], ...]  # spellings of missing values per column
    limits: Floats  # lowest and highest value per column
    broken: tuple[Broken, ...]  # per sum rule
    totals: tuple[int, ...]  # per masked column, if totals of whole numbers are kept
    observed: tuple[Any, ...]  # per column: statistics of the released records that its kind needs
    confidential: tuple[Values, ...]
    identifying: dict[Name, str]  # identifier-like masked columns that release original cells, with the reason
    types: dict[Name, str | None]  # types of text columns that may hold numbers; None if all values are missing


class Own(NamedTuple):
    """The table-wide numbers of the cells and values of a part."""

    cells: Ints  # number of each cell
    codes: tuple[Floats | None, ...]  # per column of categories: the code of each value
    confidential: tuple[Ints, ...] = ()  # per sensitive column: the number of each value
    first: int = 0  # number of released records before the part


class Joined(NamedTuple):
    """The joined strata and their released texts."""

    strata: Mapping[tuple[object, ...], tuple[object, ...]]  # original spelling of each stratum → released text
    texts: frozenset[Name]  # stratum columns in which joined strata differ
    spelled: Mapping[Name, Mapping[Spelling, Spelling]]  # per stratum column: original → released spelling


class Donation(NamedTuple):
    """Records of a cell that lose further values to bring a rare missing-value pattern to k records."""

    records: int  # number of records, counted after the records of earlier donations
    missing: tuple[bool, ...]  # new missing-value pattern of these records


class Moves(NamedTuple):
    """The changes to small cells: their records are suppressed, joined or given another missing-value pattern."""

    patterns: Mapping[Cell, tuple[bool, ...] | None]  # new pattern of each cell; None if suppressed
    donations: Mapping[tuple[int, Cell], Sequence[Donation]] = {}  # keyed by the first record of the part and the cell
    joined: Joined | None = None
    blanked: int = 0  # values of the table that are made missing
    notes: tuple[str, ...] = ()


STAY = Moves({})


@dataclass(frozen=True)
class Spellings:
    """The released spellings of missing values and strata, the same for all records."""

    missing: Mapping[Name, Spelling]  # per masked column: spelling of a missing value
    strata: Mapping[Name, Mapping[Spelling, Spelling]]  # per stratum column: original → released spelling
    codes: Mapping[Name, Code]  # code released for missing values, per masked column with such a code
    joined: Joined | None = None

    def without(self, names: Collection[Name]) -> Spellings:
        """Return the spellings with empty cells for the missing values of some columns."""
        codes = {name: code for name, code in self.codes.items() if name not in names}
        return replace(self, missing={n: None if n in names else s for n, s in self.missing.items()}, codes=codes)


def number_cells(parts: Sequence[Sequence[T]]) -> tuple[list[Ints], list[T]]:
    """Number the distinct items of all parts in order of appearance; return the numbers per part, and the items."""
    numbers: dict[T, int] = {}
    roots = [np.array([numbers.setdefault(cell, len(numbers)) for cell in part], dtype=np.int64) for part in parts]
    return roots, list(numbers)


def spell_strata(
    columns: Columns, parts: Sequence[Sequence[Cell]], dialect: Dialect | None
) -> tuple[list[list[Cell]], dict[Name, dict[Spelling, Spelling]]]:
    """Return the cells with a single spelling per stratum value, and the changed spellings per stratum column."""
    changed = [
        _other_spellings({cell.stratum[place]: None for cells in parts for cell in cells}, dialect)
        for place in range(len(columns.by))
    ]
    spelled = [
        [
            cell._replace(stratum=tuple(to.get(text, text) for text, to in zip(cell.stratum, changed, strict=True)))  # type: ignore[call-overload]
            for cell in cells
        ]
        for cells in parts
    ]
    return spelled, dict(zip(columns.by, changed, strict=True))


def _other_spellings(values: Collection[object], dialect: Dialect | None) -> dict[Spelling, Spelling]:
    """Return the new spelling of each stratum value that changes, keyed by the original spelling."""
    if dialect is None:
        return one_form(values)
    old = pl.Series(list(values), dtype=pl.String)
    new = one_spelling(old, composed_cells(parse_numbers(old, dialect, codes=False)))
    return {before: after for before, after in zip(old, new, strict=True) if before != after}


def sizes_of(parts: Sequence[PartStatistics], roots: Sequence[Ints], cells: int) -> Ints:
    """Return the number of records in each cell."""
    sizes = np.zeros(cells, dtype=np.int64)
    for part, numbers in zip(parts, roots, strict=True):
        np.add.at(sizes, numbers, part.counts)
    return sizes


def may_be_small(parts: Sequence[PartStatistics], k: int) -> bool:
    """Return True if a stratum or one of its missing-value patterns may have fewer than k records or units."""
    return any(
        size < k for part in parts for size in (part.counts.tolist() if part.units is None else map(len, part.units))
    )


def count_cells(request: MaskRequest, parts: Sequence[PartStatistics], roots: Sequence[Ints], cells: int) -> Ints:
    """Return the number of records per cell or, with a unit column, the number of units, counted up to k."""
    units = [part.units for part in parts if part.units is not None]
    if not units:
        return sizes_of(parts, roots, cells)
    return np.array([len(cell_units) for cell_units in units_in_cells(units, roots, cells, request.k)], dtype=np.int64)


def holders_of(
    request: MaskRequest, parts: Sequence[PartStatistics], roots: Sequence[Ints], sizes: Ints
) -> list[frozenset[object]]:
    """Return up to k holders in each cell, as counted by k: its units, or one holder per record."""
    units = [part.units for part in parts if part.units is not None]
    if units:
        return [frozenset(cell_units.tolist()) for cell_units in units_in_cells(units, roots, len(sizes), request.k)]
    return [frozenset((cell, i) for i in range(min(size, request.k))) for cell, size in enumerate(sizes.tolist())]


def check_cells(request: MaskRequest, columns: Columns, cells: Sequence[Cell], sizes: Ints) -> None:
    """Refuse strata and cells with fewer than k records or units; the message lists examples."""
    unit = columns.unit
    strata: dict[tuple[object, ...], int] = {}
    for cell, size in zip(cells, sizes.tolist(), strict=True):
        strata[cell.stratum] = strata.get(cell.stratum, 0) + size
    small = [
        f"{describe_stratum(columns.by, stratum)} has {count_holders(size, unit)}"
        for stratum, size in strata.items()
        if size < request.k
    ]
    if small and not columns.by and unit is not None:
        raise InputError(
            f"{parameter('k')} must not exceed the number of {holders(unit)}: k={request.k}, but {clauses(small)}. Use "
            "a smaller k."
        )
    if small and columns.by:
        joining = "" if columns.zeros else f"join small strata with {setting('small', 'merge')}, "
        raise InputError(
            f"{parameter('k')} must not exceed the number of {holders(unit)} of a stratum: k={request.k}, but "
            f"{clauses(small)}. Use a smaller k, {joining}or suppress their records with "
            f"{setting('small', 'suppress')}."
        )
    rare = [
        f"only {count_holders(size, unit)} of {describe_stratum(columns.by, cell.stratum)} "
        f"{_describe_patterns(columns, cell, size)}"
        for cell, size in zip(cells, sizes.tolist(), strict=True)
        if size < request.k
    ]
    if rare and columns.zeros:
        raise InputError(
            f"{parameter('zeros')} separates records that are zero in different columns, but {clauses(rare)}; "
            f"k={request.k} are needed. Name fewer columns in {parameter('zeros')}, use a smaller k, or suppress "
            f"these records with {setting('small', 'suppress')}."
        )
    if rare:
        raise InputError(
            f"{setting('missing', 'group')} needs k={request.k}, but {clauses(rare)}. Use "
            f"{setting('missing', 'drop')}, a smaller k or fewer columns, make more cells missing with "
            f"{setting('small', 'merge')}, or suppress these records with {setting('small', 'suppress')}."
        )


def _describe_patterns(columns: Columns, cell: Cell, size: int) -> str:
    """Return a phrase that lists the missing and the zero columns of a cell's records."""
    lacking, zero = (
        listed([name for name, holds in zip(names, pattern, strict=True) if holds])
        for names, pattern in ((columns.masked, cell.missing), (columns.zeros, cell.zero))
    )
    have, are = agreeing(size, "has", "have"), agreeing(size, "is", "are")
    phrases = []
    if lacking:
        phrases.append(f"{have} missing values in exactly: {lacking}")
    elif not columns.zeros:
        phrases.append(f"{have} no missing values")
    if columns.zeros:
        phrases.append(
            f"{are} zero in exactly: {zero}" if zero else f"{are} zero in none of: {listed(list(columns.zeros))}"
        )
    return " and ".join(phrases)
