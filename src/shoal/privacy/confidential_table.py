"""The steps that publishing and exploring share: read the table, choose columns, check, clip.

Messages here name columns. They never depend on single values: neither a value nor a count nor a record number is told.
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
from shoal.tables.files import open_data
from shoal.tables.reading import AS_DETECTED, ReadingOptions
from shoal.tables.table import Table, check_name, choose_columns

__all__ = ["Answers", "ConfidentialTable", "check_group_size", "column_sets", "prepare"]


@dataclass(frozen=True)
class Answers:
    """A column of categories: what they are, which one each record has, and how many had none and count as the last."""

    name: Name
    categories: tuple[Any, ...]
    codes: Ints
    outside: int


@dataclass(frozen=True)
class ConfidentialTable:
    """A table ready to be grouped: the chosen columns, as they are and clipped to their domains; whom ε protects."""

    table: Table  # the table as it was given
    # The columns of numbers: values, domains, values within them, how many were not.
    names: list[Name]
    X: Floats
    bounds: Bounds
    clipped: Floats
    outside: Ints
    whole: list[bool]  # which of them are integers
    answers: list[Answers]  # the columns of categories
    unit: Unit | None  # whom ε protects with all of their records

    @property
    def contributions(self) -> int:
        """The greatest number of records that share a budget."""
        return 1 if self.unit is None else self.unit.contributions

    @property
    def published(self) -> list[Name]:
        """All columns that are published with noise."""
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
    """Read and check everything; the columns are those that have bounds or categories, if none are named."""
    protected = read_unit(unit, contributions)
    answered = dict(categories or {})
    published = None if columns is None else as_names(columns)
    if published is None and isinstance(bounds, Mapping):
        published = [*bounds, *answered]
    numeric = [name for name in published or () if name not in answered]
    table = open_data(data, numbers=numeric, named=True, reading=reading)
    names = choose_columns(table.names, table.numeric_names(), published, apart=as_names(unit), to="publish")
    if not table.rows:
        raise InputError(f"{parameter('data')} has no records: there is nothing to publish.")
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
            raise InputError(
                f"{parameter('bounds')} must give whole numbers for column {name!r}, which holds integers."
            )
    X = np.where(whole, np.rint(X), X)
    answers = [_answers(table, name, answered[name]) for name in names if name in answered]
    return ConfidentialTable(table, numbers, X, domains, domains.clip(X), domains.outside(X), whole, answers, protected)


def _whole(integers: Sequence[Name], numbers: Sequence[Name]) -> list[bool]:
    for name in integers:
        check_name(name, numbers, "integer_columns")
    return [name in integers for name in numbers]


def _answers(table: Table, name: Name, categories: Sequence[Any]) -> Answers:
    """Return a column as codes of the categories that are public knowledge; which ones occur is not revealed."""
    categories_listed = tuple(categories) if not isinstance(categories, str) else ()
    words = [_word(category) for category in categories_listed]
    if len(words) < 2 or len(set(words)) < len(words):
        raise InputError(
            f"{parameter('categories')} must list at least two different categories for column {name!r}, from public "
            f"knowledge and not from the data, got {categories!r}."
        )
    try:
        cells = composed_cells(table[name].categories().cast(pl.String)).to_list()
    except InputError:  # which names the cell that is none
        raise InputError(f"Column {name!r} must hold text, truth values or whole numbers to be categories.") from None
    places = {word: code for code, word in enumerate(words)}
    codes = np.array([places.get(cell, len(words) - 1) for cell in cells], dtype=np.int64)
    return Answers(name, categories_listed, codes, sum(cell not in places for cell in cells))


def _word(category: object) -> str:
    word: str = composed(str(category).lower() if isinstance(category, (bool, np.bool_)) else str(category))
    return word


def column_sets(
    entry: PublicationMethod, names: Sequence[Name], sets: Sequence[Sequence[Name]] | None
) -> list[list[int]]:
    """Return the column numbers of each set of columns that is grouped together."""
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
        raise InputError(
            f"{parameter('sets')} must hold every published column exactly once, in sets that are not empty."
        )
    return [[list(names).index(name) for name in members] for members in named_sets]


def check_group_size(entry: PublicationMethod, k: object, n: int, columns: int = 2) -> int | None:
    """Return the group size that a method is given, or refuse it; None if it has its own rule."""
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
            f"{parameter('k')} has no meaning for method {entry.name!r}, which makes no groups, got {k}. Leave it out."
        )
    if k > n:
        raise InputError(
            f"{parameter('k')} must not exceed the number of records: k={k}, but the table has {n}. Use a smaller k."
        )
    return int(k)


def _numbers(table: Table, name: Name) -> Floats:
    if name not in table.numeric_names():
        raise InputError(
            f"Column {name!r} must be numeric to be published with noise. Leave it out, or turn it into numbers."
        )
    values = table[name].numbers().values
    if not np.isfinite(values).all():
        # Neither how many nor where: what is said must not depend on the values of single records.
        raise InputError(
            f"Column {name!r} must hold a finite number in every record: missing and infinite cells cannot be "
            "published. Fill them in by a rule that looks at each record by itself, or leave such records out if their "
            "number may be known."
        )
    return values
