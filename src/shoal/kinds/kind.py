"""Base classes for kinds of columns and for the coding of their values, and the coordinates of records.

A column of numbers is one standardised coordinate. A nominal column is one coordinate per value, scaled so that the
column has unit variance: two different values have the squared distance 2/Gini, and the sum of squares of a group of s
records with value counts h is (s − Σh²/s)/Gini. An ordinal column is its standardised mid-ranks. A hierarchy is one
nominal column per level. All methods for numbers therefore also work for categories. The coordinates are a Euclidean
version of the embedding of Domingo-Ferrer and Torra (2005).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.measures import Scaling
from shoal.core.types import Floats, Ints, Name
from shoal.kinds.column import Cells, Column

if TYPE_CHECKING:
    from shoal.kinds.time_scale import Scale, Span

__all__ = ["PLAIN", "Coding", "Embedding", "Kind", "Rescalings", "rescaled", "sorted_cells"]


@dataclass(frozen=True)
class Coding:
    """The coding of a column: coordinates and representatives of groups. The base class implements numbers."""

    word: ClassVar[str] = "number"
    numeric: ClassVar[bool] = True  # True if its numbers are values, False if they are codes
    standardised: ClassVar[bool] = True  # True if its only coordinate is the standardised number
    ordered: ClassVar[bool] = True
    rescales: ClassVar[bool] = False  # True if its numbers are compared on another scale

    @property
    def release(self) -> str:
        """The name of the group's representative in `shoal.masking.group`."""
        return "mean"

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return 1

    @property
    def values(self) -> tuple[Any, ...]:
        """The values by code; empty for numbers."""
        return ()

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The released labels by code; None if the numbers are not codes."""
        return None

    @property
    def distinct(self) -> bool:
        """True if the text of a released cell identifies its value."""
        return True

    def limits(self, ends: Floats) -> Floats:
        """Return the smallest and the largest number; `ends` are the smallest and the largest of all parts."""
        return ends

    def place(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return the coordinates of records X in column j; Z contains the same records, standardised."""
        return Z[:, [j]]

    def rescale(self, x: Floats) -> Floats:
        """Return numbers on their comparison scale, which is an increasing function of the numbers."""
        return x

    def represent(self, X: Floats, j: int, labels: Ints, means: Floats, weights: Floats | None) -> Floats:
        """Return each group's representative in column j as a number; `means` holds the aggregates of numbers."""
        return means

    def continuous(self, x: Floats) -> Floats:
        """Return numbers with meaningful means and differences, for kinds whose stored numbers lack them."""
        return x

    def measure(self, X: Floats, released: Floats) -> Ints:
        """Return counts of changes made by masking, in bins of the kind; the counts of parts can be added up."""
        return np.empty(0, dtype=np.int64)

    def note(self, names: Sequence[Name], counts: Ints) -> str | None:
        """Return a note for the summary on the counts of `measure`; None if there is nothing to report."""
        return None

    def ranks(self, x: Floats) -> Floats:
        """Return numbers with the order and distances of the values, or codes if the values have no order."""
        return x

    def codes(self, name: Name, cells: pl.Series) -> Floats:
        """Return the codes of released cells, if the numbers are codes."""
        raise NotImplementedError

    def variables(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return the columns over which a group's cost is summed: coordinates, or codes for values without an order."""
        return self.place(X, j, Z)

    def squares(self) -> Floats:
        """Return the squared distances between values, by code."""
        raise NotImplementedError

    @property
    def lineage(self) -> Ints:
        """The codes of each value and, if ancestors are released, of its ancestors up to the root."""
        raise NotImplementedError


PLAIN = Coding()
Rescalings = tuple[tuple[int, Coding], ...]  # indices and codings of columns with another comparison scale


def rescaled(X: Floats, rescalings: Rescalings) -> Floats:
    """Return records with the numbers of some columns on their comparison scales."""
    if not rescalings:
        return X
    X = X.copy()
    for j, coding in rescalings:
        X[:, j] = coding.rescale(X[:, j])
    return X


class Kind:
    """The kind of a column, which reads, compares, aggregates and writes cells. The base class is for numbers.

    A table is read in parts. `read` returns the numbers of a part and the values that they code. `observe` summarises
    the released records of the part. `fit` combines the summaries of all parts into the `Coding` of the column.
    A kind never accesses a table; `Table.cells_of` provides numbers, categories or times with their span, by column.
    """

    word: str = "number"  # its name in summaries, manifests and `shoal.kinds.kind_registry`
    holds: ClassVar[str] = "numbers"  # the content of cells, for messages
    represented_by: ClassVar[str] = ""  # the representative of a group; empty for the requested aggregate
    numeric: ClassVar[bool] = True  # True if cells are stored, computed and read back as numbers
    additive: ClassVar[bool] = False  # True if values can be summed: sums, zeros, totals, dominance
    ordered: ClassVar[bool] = True  # True if the values have an order
    scaled: ClassVar[bool] = False  # True if cells are counted on a scale common to all parts
    joins: ClassVar[bool] = False  # True if the kind names joined strata
    compared_on: str = "linear"  # the scale on which its numbers are compared
    released_cells: ClassVar[bool] = False  # True if the representative of a group is a cell of the table

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns of a value that has several columns; empty otherwise."""
        return ()

    # Recognising and naming

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return the name that `shoal.inspect` gives to such cells; None if they are not of this kind."""
        return None

    @classmethod
    def recognise_together(cls, cells: Mapping[Name, Cells]) -> dict[Name, Kind]:
        """Return the kinds of columns that together form one value."""
        return {}

    @classmethod
    def from_plain(cls, plain: Any) -> Kind | None:
        """Return a kind from the result of `plain` or from a short form; None if the value describes another kind."""
        return None

    def plain(self) -> Any:
        """Return the kind as JSON-compatible values."""
        return self.word

    @classmethod
    def is_plain(cls, plain: Any) -> bool:
        """Return True if an unread value has the form of `plain`; paths do not have this form."""
        return type(plain) is str

    @classmethod
    def option_key(cls, name: str) -> Any:
        """Return the key in `kinds` for the text before = on the command line."""
        return name

    @classmethod
    def from_option(cls, text: str) -> Kind:
        """Return a kind from the text after COLUMN= on the command line."""
        return cls()

    def to_option(self, name: Name, file: str | None = None) -> str | None:
        """Return the value of the command-line option, with the column; None if the kind fits no option."""
        return str(name)

    def assigned(self, key: Any) -> Mapping[Name, Kind]:
        """Return the kind of each column from one entry of the parameter `kinds`."""
        return {key: self}

    def on_scale(self, scale: str) -> Kind | None:
        """Return the kind with another comparison scale; None if the kind has only one scale."""
        return None

    # Reading

    def scale(self, name: Name, spans: Sequence[Span]) -> Scale:
        """Return the scale for the cells of all parts, if the kind is `scaled`."""
        raise NotImplementedError

    def read(self, name: Name, cells: Mapping[Name, Any], first: int, scale: Scale | None) -> tuple[Column, list[Any]]:
        """Return a column of a part as numbers, and the values if these are codes; `first` records precede the part."""
        return cells[name], []

    def read_released(self, name: Name, cells: Mapping[Name, Any], coding: Coding, scale: Scale | None) -> Floats:
        """Return a released column as numbers of a coding."""
        values: Floats = cells[name].values
        return values

    def compared(self, name: Name, cells: pl.Series) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column in a comparable form, and True if they have an order."""
        return sorted_cells(name, cells), True

    # All parts together

    def observe(self, X: Floats, j: int, names: Sequence[Name], values: Sequence[Any]) -> Any:
        """Return a summary of the released records of a part for `fit`; X has the columns `names`."""
        return ()

    def values_of(self, observed: Any) -> Sequence[Any]:
        """Return the values by code, from the result of `observe`."""
        return ()

    def fit(self, name: Name, names: Sequence[Name], parts: Sequence[Any]) -> tuple[Coding, list[Floats | None]]:
        """Return the coding of the column, and the codes of each part's values if the numbers are codes."""
        return PLAIN, [None] * len(parts)

    def ranking(self, name: Name, cells: pl.Series) -> list[int] | None:
        """Return positions that reorder sorted cells by the order of the values, missing first; None for no change."""
        return None

    # Strata

    def joined_name(self, name: Name, values: Sequence[object]) -> object:
        """Return the name of joined stratum values."""
        return " or ".join("missing" if value is None else str(value) for value in values)

    def is_joined_name(self, joined: str, values: Sequence[str]) -> bool:
        """Return True if a name denotes the joined values."""
        return set(joined.split(" or ")) == {part for value in values for part in value.split(" or ")}


def sorted_cells(name: Name, cells: pl.Series) -> pl.Series:
    """Return the cells of an ordered sensitive column such that equal values have equal cells."""
    if isinstance(cells.dtype, (pl.Date, pl.Datetime)):
        cells = cells.cast(pl.Datetime("us"))
    if cells.dtype.is_temporal():
        return cells.to_physical()
    if not (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
        raise InputError(
            f"Column {name!r} is confidential and must contain numbers, text, Booleans or dates, but its type is "
            f"{cells.dtype}. Convert it to one of them first."
        )
    # Use one zero and one missing value.
    return cells.cast(pl.Float64).fill_nan(None) + 0.0 if not cells.dtype.is_integer() else cells


@dataclass(frozen=True)
class Embedding:
    """The embedding of records as coordinates, defined by the coding and the importance of each column."""

    codings: tuple[Coding, ...]
    importance: tuple[float, ...] | None = None  # per column; 0 for a column that is not used for grouping
    gone: tuple[int, ...] = ()  # columns that are now missing in all records

    @classmethod
    def of_numbers(cls, columns: int) -> Embedding:
        """Return the embedding of a table of numbers."""
        return cls((PLAIN,) * columns)

    @cached_property
    def numbers(self) -> Ints:
        """The indices of the numeric columns."""
        return np.array([j for j, coding in enumerate(self.codings) if coding.numeric], dtype=np.int64)

    @cached_property
    def without_order(self) -> list[bool]:
        """For each column, True if its values have no order."""
        return [not coding.ordered for coding in self.codings]

    @cached_property
    def plain(self) -> bool:
        """True if the coordinates are the standardised columns."""
        return all(coding.standardised for coding in self.codings)

    @cached_property
    def starts(self) -> Ints:
        """The index of each column's first coordinate."""
        return np.concatenate([[0], np.cumsum([coding.width for coding in self.codings])[:-1]]).astype(np.int64)

    @cached_property
    def rescalings(self) -> Rescalings:
        """The indices and codings of the columns that have a separate comparison scale."""
        return tuple((j, coding) for j, coding in enumerate(self.codings) if coding.rescales)

    def apply(self, X: Floats, scale: Scaling) -> Floats:
        """Return the coordinates of records; missing cells have missing coordinates."""
        Z = scale.apply(X)
        if self.plain:
            return Z
        return np.ascontiguousarray(np.hstack([coding.place(X, j, Z) for j, coding in enumerate(self.codings)]))

    def continuous(self, X: Floats) -> Floats:
        """Return numbers with meaningful means and differences in every column."""
        if self.plain:
            return X
        return np.column_stack([coding.continuous(X[:, j]) for j, coding in enumerate(self.codings)])

    def place(self, X: Floats, scale: Scaling) -> Floats:
        """Return the coordinates by which records are grouped; X contains numbers on their comparison scales."""
        return self.compared(self.apply(X, scale))

    def compared(self, Z: Floats) -> Floats:
        """Return the coordinates for grouping, with each column scaled by its importance."""
        if self.importance is None:
            return Z
        factors = np.sqrt(np.repeat(self.importance, np.diff(np.append(self.starts, Z.shape[1]))))
        return np.ascontiguousarray(Z[:, factors > 0] * factors[factors > 0])

    def lost(self, values: Floats, scale: Scaling) -> Floats:
        """Return, per column, the sum of squared deviations from the mean of the values that were made missing."""
        squares = self.by_column(np.nansum(np.square(self.apply(values, scale)), axis=0))
        for j in self.gone:
            # No mean remains to deviate from; the sum of squares of a standardised column equals its number of values.
            squares[j] = np.count_nonzero(~np.isnan(values[:, j]))
        return squares

    def lost_cell(self, values: Floats, scale: Scaling) -> Floats:
        """Return, per column and overall, the largest squared deviation of one value that was made missing."""
        squares = np.nan_to_num(np.square(self.apply(values, scale)))
        largest = np.add.reduceat(squares, self.starts, axis=1).max(axis=0, initial=0.0)
        largest[list(self.gone)] = 1.0
        return np.append(largest, largest.max())

    def by_column(self, sums: Floats) -> Floats:
        """Return sums per column from sums per coordinate, in one or several rows."""
        return sums if self.plain else np.add.reduceat(sums, self.starts, axis=-1)
