"""Parts of a table and their cells: numbered, counted, and refused where they have fewer than k records.

A cell holds the records of a stratum that miss, and are zero in, the same columns.
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
    """What the records of a cell have in common."""

    stratum: tuple[object, ...]
    missing: tuple[bool, ...]  # of each masked column
    zero: tuple[bool, ...] = ()  # of each column whose zeros are kept


class PartStatistics(NamedTuple):
    """What is known of a part once its numbers are read."""

    rows: int
    kept: int  # records that are released
    incomplete: int  # records that miss a value
    suppressed: int  # records of small cells that are left out
    missing: Ints  # missing cells of each column
    present: Ints  # cells of each column that are released and not missing
    cells: list[Cell]  # by code
    counts: Ints  # records of each cell
    units: list[Words] | None  # of each cell: the least of its different units, k at most
    storages: tuple[Storage | None, ...]  # of each column; None if all its cells are missing
    spellings: tuple[frozenset[Spelling], ...]  # of missing cells, by column
    limits: Floats  # the least and the greatest value of each column
    broken: tuple[Broken, ...]  # of each rule
    totals: tuple[int, ...]  # of each column of whole numbers, if they are kept
    observed: tuple[Any, ...]  # of each column: what its kind needs to know of the records that are kept
    confidential: tuple[Values, ...]
    identifying: dict[Name, str]  # masked columns whose cells are released and look like identifiers, and why
    types: dict[Name, str | None]  # of columns of text that may be numbers; None if all their cells are missing


class Own(NamedTuple):
    """What the cells and values of a part are in the whole table."""

    cells: Ints  # the number of each cell
    codes: tuple[Floats | None, ...]  # of each column of categories, the code of each value
    confidential: tuple[Ints, ...] = ()  # likewise of each confidential column
    first: int = 0  # how many released records come before it


class Joined(NamedTuple):
    """Strata that are joined."""

    strata: Mapping[tuple[object, ...], tuple[object, ...]]  # as the parts spell them, and what they read then
    texts: frozenset[Name]  # columns of the strata in which some of them differ
    spelled: Mapping[Name, Mapping[Spelling, Spelling]]  # cells of the other columns that are spelled otherwise


class Donation(NamedTuple):
    """Records of a cell that miss more columns then, so that a rare pattern of missing values has k records."""

    records: int  # the first of the cell, after those of earlier donations
    missing: tuple[bool, ...]  # the columns that they miss then


class Moves(NamedTuple):
    """What becomes of cells with too few records."""

    patterns: Mapping[Cell, tuple[bool, ...] | None]  # the columns that their records miss then; None if left out
    donations: Mapping[tuple[int, Cell], Sequence[Donation]] = {}  # by the first record of a part, and its cell
    joined: Joined | None = None
    blanked: int = 0  # cells of the table that are made missing
    notes: tuple[str, ...] = ()


STAY = Moves({})


@dataclass(frozen=True)
class Spellings:
    """How cells are spelled in the release, where records must look alike."""

    missing: Mapping[Name, Spelling]  # of each masked column: what a missing cell reads
    strata: Mapping[Name, Mapping[Spelling, Spelling]]  # of columns of the strata: cells that are spelled otherwise
    codes: Mapping[Name, Code]  # of masked columns whose missing cells read a code: which
    joined: Joined | None = None

    def without(self, names: Collection[Name]) -> Spellings:
        """Return them with empty missing cells in some columns."""
        codes = {name: code for name, code in self.codes.items() if name not in names}
        return replace(self, missing={n: None if n in names else s for n, s in self.missing.items()}, codes=codes)


def number_cells(parts: Sequence[Sequence[T]]) -> tuple[list[Ints], list[T]]:
    """Number what the parts hold in order of appearance: of each part by code, and all."""
    numbers: dict[T, int] = {}
    roots = [np.array([numbers.setdefault(cell, len(numbers)) for cell in part], dtype=np.int64) for part in parts]
    return roots, list(numbers)


def spell_strata(
    columns: Columns, parts: Sequence[Sequence[Cell]], dialect: Dialect | None
) -> tuple[list[list[Cell]], dict[Name, dict[Spelling, Spelling]]]:
    """Give every value of the strata one spelling in all parts; only text has several."""
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
    """Return the values of a column that are to be spelled otherwise, and how."""
    if dialect is None:
        return one_form(values)
    old = pl.Series(list(values), dtype=pl.String)
    new = one_spelling(old, composed_cells(parse_numbers(old, dialect, codes=False)))
    return {before: after for before, after in zip(old, new, strict=True) if before != after}


def sizes_of(parts: Sequence[PartStatistics], roots: Sequence[Ints], cells: int) -> Ints:
    """Return the number of records of each cell."""
    sizes = np.zeros(cells, dtype=np.int64)
    for part, numbers in zip(parts, roots, strict=True):
        np.add.at(sizes, numbers, part.counts)
    return sizes


def may_be_small(parts: Sequence[PartStatistics], k: int) -> bool:
    """Return whether a stratum, or a pattern of missing values in it, may have fewer than k records or units."""
    return any(
        size < k for part in parts for size in (part.counts.tolist() if part.units is None else map(len, part.units))
    )


def count_cells(request: MaskRequest, parts: Sequence[PartStatistics], roots: Sequence[Ints], cells: int) -> Ints:
    """Return what k is held against: the records of each cell, or its units, k where there are more."""
    units = [part.units for part in parts if part.units is not None]
    if not units:
        return sizes_of(parts, roots, cells)
    return np.array([len(cell_units) for cell_units in units_in_cells(units, roots, cells, request.k)], dtype=np.int64)


def holders_of(
    request: MaskRequest, parts: Sequence[PartStatistics], roots: Sequence[Ints], sizes: Ints
) -> list[frozenset[object]]:
    """Return whom k counts in each cell, as many as k needs: its units, or a holder of its own for every record."""
    units = [part.units for part in parts if part.units is not None]
    if units:
        return [frozenset(cell_units.tolist()) for cell_units in units_in_cells(units, roots, len(sizes), request.k)]
    return [frozenset((cell, i) for i in range(min(size, request.k))) for cell, size in enumerate(sizes.tolist())]


def check_cells(request: MaskRequest, columns: Columns, cells: Sequence[Cell], sizes: Ints) -> None:
    """Check k against every stratum, and against the records of it that miss, or are zero in, the same columns.

    The first of those that fail are listed.
    """
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
            f"{clauses(small)}. Use a smaller k, {joining}or leave their records out with "
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
            f"k={request.k} are needed. Name fewer columns in {parameter('zeros')}, use a smaller k, or leave these "
            f"records out with {setting('small', 'suppress')}."
        )
    if rare:
        raise InputError(
            f"{setting('missing', 'group')} needs k={request.k}, but {clauses(rare)}. Use "
            f"{setting('missing', 'drop')}, a smaller k or fewer columns, make more cells missing with "
            f"{setting('small', 'merge')}, or leave these records out with {setting('small', 'suppress')}."
        )


def _describe_patterns(columns: Columns, cell: Cell, size: int) -> str:
    """Say for a message which columns the records of a cell miss, and in which they are zero."""
    lacking, zero = (
        listed([name for name, holds in zip(names, pattern, strict=True) if holds])
        for names, pattern in ((columns.masked, cell.missing), (columns.zeros, cell.zero))
    )
    misses, are = agreeing(size, "misses", "miss"), agreeing(size, "is", "are")
    phrases = (
        [f"{misses} exactly: {lacking}" if lacking else f"{misses} nothing"] if lacking or not columns.zeros else []
    )
    if columns.zeros:
        phrases.append(
            f"{are} zero in exactly: {zero}" if zero else f"{are} zero in none of: {listed(list(columns.zeros))}"
        )
    return " and ".join(phrases)
