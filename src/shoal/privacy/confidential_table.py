"""Preparation shared by publishing and exploring: read the table, choose and check its columns, clip the values.

Error messages of this module may name columns. They contain no value, no record number and no count of cells, because a
message must not depend on single values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.kinds.column import composed, composed_cells
from shoal.privacy.domains import Bounds, BoundsGiven, read_bounds
from shoal.privacy.privacy_unit import Unit, check_unit, read_unit
from shoal.privacy.publication_methods import PublicationMethod
from shoal.tables.columns import Name
from shoal.tables.databases import check_no_database
from shoal.tables.files import open_data
from shoal.tables.reading import AS_DETECTED, ReadingOptions
from shoal.tables.table import Table, check_name, choose_columns

__all__ = ["Answers", "ConfidentialTable", "check_group_size", "column_sets", "prepare"]


@dataclass(frozen=True)
class Answers:
    """A categorical column: its categories, the code of each record, and the number of cells outside the categories.

    Cells outside the categories count as the last category.
    """

    name: Name
    categories: tuple[Any, ...]
    codes: Ints
    outside: int


@dataclass(frozen=True)
class ConfidentialTable:
    """A confidential table ready for grouping: its published columns, original and clipped, and its privacy unit."""

    table: Table  # the input table
    # Numeric columns: values, domains, clipped values, and the number of values outside the domain.
    names: list[Name]
    X: Floats
    bounds: Bounds
    clipped: Floats
    outside: Ints
    whole: list[bool]  # True for integer columns
    answers: list[Answers]  # categorical columns
    unit: Unit | None  # the unit whose records ε protects together

    @property
    def contributions(self) -> int:
        """The greatest number of records that share one budget."""
        return 1 if self.unit is None else self.unit.contributions

    @property
    def published(self) -> list[Name]:
        """All columns published with differential privacy."""
        return [*self.names, *(answer.name for answer in self.answers)]


def prepare(
    data: Any,
    columns: Sequence[Name] | Name | None,
    bounds: BoundsGiven,
    unit: Name | None,
    contributions: int | None,
    *,
    categories: Mapping[Name, Sequence[Any]] | None = None,
    integer_columns: Sequence[Name] | Name | None = None,
    reading: ReadingOptions = AS_DETECTED,
) -> ConfidentialTable:
    """Read and check the table and the request; by default, publish the columns that have bounds or categories."""
    check_no_database(data, "Publishing")
    protected = read_unit(unit, contributions)
    answered = dict(categories or {})
    published = None if columns is None else as_names(columns)
    if published is None and isinstance(bounds, Mapping):
        published = [*bounds, *answered]
    numeric = [name for name in published or () if name not in answered]
    table = open_data(data, numbers=numeric, named=True, reading=reading)
    names = choose_columns(table.names, table.numeric_names(), published, apart=as_names(unit), to="publish")
    if not table.rows:
        raise InputError(f"{parameter('data')} must have at least one record, got none.")
    if protected is not None:
        check_unit(protected, table, names)
    if published is None:
        names += [name for name in answered if name not in names]
    for name in answered:
        check_name(name, [name for name in names if name in table.names], "categories")
    numbers = [name for name in names if name not in answered]
    X = np.column_stack([_numbers(table, name) for name in numbers]) if numbers else np.empty((table.rows, 0))
    whole = _whole(as_names(integer_columns), numbers)
    domains = read_bounds(bounds, numbers, X)
    for j, name in enumerate(numbers):
        if whole[j] and not (domains.lower[j].is_integer() and domains.upper[j].is_integer()):
            raise InputError(f"{parameter('bounds')} must be whole numbers for integer column {name!r}.")
    X = np.where(whole, np.rint(X), X)
    answers = [_answers(table, name, answered[name]) for name in names if name in answered]
    return ConfidentialTable(table, numbers, X, domains, domains.clip(X), domains.outside(X), whole, answers, protected)


def _whole(integers: Sequence[Name], numbers: Sequence[Name]) -> list[bool]:
    for name in integers:
        check_name(name, numbers, "integer_columns")
    return [name in integers for name in numbers]


def _answers(table: Table, name: Name, categories: Sequence[Any]) -> Answers:
    """Return a column as codes of the public categories, without revealing which categories occur."""
    categories_listed = tuple(categories) if not isinstance(categories, str) else ()
    words = [_word(category) for category in categories_listed]
    if len(words) < 2 or len(set(words)) < len(words):
        raise InputError(
            f"{parameter('categories')} must list at least two different categories for column {name!r}, from public "
            f"knowledge and not from the data, got {categories!r}."
        )
    try:
        cells = composed_cells(table[name].categories().cast(pl.String)).to_list()
    except InputError:  # the original message names the invalid cell
        raise InputError(f"Categorical column {name!r} must contain text, truth values or whole numbers.") from None
    places = {word: code for code, word in enumerate(words)}
    codes = np.array([places.get(cell, len(words) - 1) for cell in cells], dtype=np.int64)
    return Answers(name, categories_listed, codes, sum(cell not in places for cell in cells))


def _word(category: object) -> str:
    word: str = composed(str(category).lower() if isinstance(category, (bool, np.bool_)) else str(category))
    return word


def column_sets(
    entry: PublicationMethod, names: Sequence[Name], sets: Sequence[Sequence[Name]] | None
) -> list[list[int]]:
    """Return the column numbers of each set of jointly grouped columns."""
    if sets is None:
        return [list(range(len(names)))] if entry.joint else [[j] for j in range(len(names))]
    if entry.name != "mdav":
        raise InputError(
            f"{parameter('sets')} requires method 'mdav', got method {entry.name!r}, which groups "
            f"{'whole records' if entry.joint else 'each column on its own'}."
        )
    named_sets = [as_names(members) for members in sets]
    flat = [name for members in named_sets for name in members]
    for name in flat:
        check_name(name, names, "sets")
    if sorted(map(str, flat)) != sorted(map(str, names)) or not all(named_sets):
        raise InputError(f"{parameter('sets')} must list every published column exactly once, in nonempty sets.")
    return [[list(names).index(name) for name in members] for members in named_sets]


def check_group_size(entry: PublicationMethod, k: object, n: int, columns: int = 2) -> int | None:
    """Check and return the group size; return None if k is not set and the method does not require it."""
    if k is None:
        if entry.k == "needed" and not (entry.name == "insensitive" and columns <= 1):
            raise InputError(
                f"Method {entry.name!r} requires {parameter('k')}, the number of records in a group. Explore the "
                "expected error first, or use method 'insensitive-ir', which computes one from public figures."
            )
        return None
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"{parameter('k')} must be a whole number of at least 1, got {k!r}.")
    if entry.k == "none" and k != 1:
        raise InputError(
            f"{parameter('k')} does not apply to method {entry.name!r}, which forms no groups, got {k}. Leave it out."
        )
    if k > n:
        raise InputError(
            f"{parameter('k')} must not exceed the number of records: k={k}, but the table has {n}. Use a smaller k."
        )
    return int(k)


def _numbers(table: Table, name: Name) -> Floats:
    if name not in table.numeric_names():
        raise InputError(
            f"Column {name!r} must be numeric to be published with noise. Leave it out, or convert it to numbers."
        )
    values = table[name].numbers().values
    if not np.isfinite(values).all():
        # Do not state how many cells or which ones: the message must not depend on the values of single records.
        raise InputError(
            f"Column {name!r} must hold a finite number in every record: missing and infinite cells cannot be "
            "published. Fill them in by a rule that uses each record alone, or leave out these records if their number "
            "may become public."
        )
    return values
