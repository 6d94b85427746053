"""A kind of column, the coding of its values, and where records lie when they are compared. Every kind is a file.

A column of numbers is one standardised coordinate. A nominal column is one coordinate per value, scaled so that the
column has unit variance: two unequal values are at squared distance 2/Gini, and the sum of squares of a group of s
records with value counts h is (s − Σh²/s)/Gini. An ordinal column is its standardised mid-ranks. A hierarchy is one
nominal column per level. So all methods for numbers work on categories (the embedding of Domingo-Ferrer and Torra 2005
made Euclidean).
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
    """How the numbers of a column become coordinates, and what represents a group; here, of a column of numbers."""

    word: ClassVar[str] = "number"
    numeric: ClassVar[bool] = True  # whether its numbers are values, not codes of values
    standardised: ClassVar[bool] = True  # whether its one coordinate is the standardised number
    ordered: ClassVar[bool] = True
    rescales: ClassVar[bool] = False  # whether its numbers are compared on another scale

    @property
    def release(self) -> str:
        """What represents a group, as `shoal.masking.group` names it."""
        return "mean"

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return 1

    @property
    def values(self) -> tuple[Any, ...]:
        """The values by code; none of numbers."""
        return ()

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """What codes read in a release; None if the numbers are no codes."""
        return None

    @property
    def distinct(self) -> bool:
        """Whether the text of a released cell tells which value it is."""
        return True

    def limits(self, ends: Floats) -> Floats:
        """Return the least and the greatest number, from those of all parts."""
        return ends

    def place(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return the coordinates of column j of the records X; Z are the same records standardised."""
        return Z[:, [j]]

    def rescale(self, x: Floats) -> Floats:
        """Return numbers on the scale on which they are compared; it increases with them."""
        return x

    def represent(self, X: Floats, j: int, labels: Ints, means: Floats, weights: Floats | None) -> Floats:
        """Return the number of each group in column j; `means` are the aggregates of numbers."""
        return means

    def continuous(self, x: Floats) -> Floats:
        """Return numbers whose means and differences mean something, if those of the table may not."""
        return x

    def measure(self, X: Floats, released: Floats) -> Ints:
        """Return counts of what masking changed, in a unit of the kind; those of all records are their sum."""
        return np.empty(0, dtype=np.int64)

    def note(self, names: Sequence[Name], counts: Ints) -> str | None:
        """Return what such counts show, for the summary; None if there is nothing to report."""
        return None

    def ranks(self, x: Floats) -> Floats:
        """Return numbers whose order and distances are those of the values; codes if they have no order."""
        return x

    def codes(self, name: Name, cells: pl.Series) -> Floats:
        """Return the codes of released cells, if the numbers are codes."""
        raise NotImplementedError

    def variables(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return what a group's cost is summed over: coordinates, or codes if the values have no order."""
        return self.place(X, j, Z)

    def squares(self) -> Floats:
        """Return the squared distances of the values, by code."""
        raise NotImplementedError

    @property
    def lineage(self) -> Ints:
        """The codes of each value, its parent, …, the root, where ancestors are released; else of the value alone."""
        raise NotImplementedError


PLAIN = Coding()
Rescalings = tuple[tuple[int, Coding], ...]  # columns that are compared on another scale, by their place


def rescaled(X: Floats, rescalings: Rescalings) -> Floats:
    """Return records with the numbers of some columns on the scales on which they are compared."""
    if not rescalings:
        return X
    X = X.copy()
    for j, coding in rescalings:
        X[:, j] = coding.rescale(X[:, j])
    return X


class Kind:
    """What a column holds, and all that depends on it. The methods here are those of a column of numbers.

    A table with the column is read in parts. `read` returns the numbers of a part and what they stand for, `observe`
    sums up the records of it that are released, `fit` turns the sums of all parts into the `Coding` of the column.
    A kind never sees a table: `Table.cells_of` hands it numbers, categories or moments with their span, by column.
    """

    word: str = "number"  # its name in a summary, a manifest and `shoal.kinds.kind_registry`
    holds: ClassVar[str] = "numbers"  # for messages
    represented_by: ClassVar[str] = ""  # what is released for a group; empty for the aggregate that was chosen
    numeric: ClassVar[bool] = True  # whether the cells are stored, counted and read back as numbers
    additive: ClassVar[bool] = False  # whether they can be summed: sums, zeros, totals, dominance
    ordered: ClassVar[bool] = True  # whether the values have an order
    scaled: ClassVar[bool] = False  # whether it counts moments, by a scale that all parts share
    joins: ClassVar[bool] = False  # whether it names strata that are joined
    compared_on: str = "linear"  # the scale on which its numbers are compared
    released_cells: ClassVar[bool] = False  # whether a group is represented by a cell of the table

    @property
    def columns(self) -> tuple[Name, ...]:
        """All columns of a value, if it has several."""
        return ()

    # Recognising and naming

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return what `shoal.inspect` calls such cells; None if they are not of this kind."""
        return None

    @classmethod
    def recognise_together(cls, cells: Mapping[Name, Cells]) -> dict[Name, Kind]:
        """Return the kinds of those of some columns that are one value together."""
        return {}

    @classmethod
    def from_plain(cls, plain: Any) -> Kind | None:
        """Return a kind from what `plain` returns, or from a short form of it; None if that is another kind."""
        return None

    def plain(self) -> Any:
        """Return the kind as values that JSON can hold."""
        return self.word

    @classmethod
    def is_plain(cls, plain: Any) -> bool:
        """Return whether a value has the form that `plain` returns, before it is read: it must not be a path."""
        return type(plain) is str

    @classmethod
    def option_key(cls, name: str) -> Any:
        """Return the key of `kinds` from what precedes = on the command line."""
        return name

    @classmethod
    def from_option(cls, text: str) -> Kind:
        """Return a kind from what follows COLUMN= on the command line."""
        return cls()

    def to_option(self, name: Name, file: str | None = None) -> str | None:
        """Return the option value that `from_option` reads, with the column; None if no command can hold the kind."""
        return str(name)

    def assigned(self, key: Any) -> Mapping[Name, Kind]:
        """Return the kind of each column, from one entry of the parameter `kinds`."""
        return {key: self}

    def on_scale(self, scale: str) -> Kind | None:
        """Return the kind whose numbers are compared on a scale; None if its cells have no scale but one."""
        return None

    # Reading

    def scale(self, name: Name, spans: Sequence[Span]) -> Scale:
        """Return how the cells of all parts are counted, if the kind is `scaled`."""
        raise NotImplementedError

    def read(self, name: Name, cells: Mapping[Name, Any], first: int, scale: Scale | None) -> tuple[Column, list[Any]]:
        """Return a column of a part, after the `first` records, as numbers, and the values if these are codes."""
        return cells[name], []

    def read_released(self, name: Name, cells: Mapping[Name, Any], coding: Coding, scale: Scale | None) -> Floats:
        """Return a released column as the numbers of a coding."""
        values: Floats = cells[name].values
        return values

    def compared(self, name: Name, cells: pl.Series) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column as they are compared, and whether they have an order."""
        return sorted_cells(name, cells), True

    # All parts together

    def observe(self, X: Floats, j: int, names: Sequence[Name], values: Sequence[Any]) -> Any:
        """Return what `fit` needs to know of the released records of a part; X has the columns `names`."""
        return ()

    def values_of(self, observed: Any) -> Sequence[Any]:
        """Return the values by code, from what was observed."""
        return ()

    def fit(self, name: Name, names: Sequence[Name], parts: Sequence[Any]) -> tuple[Coding, list[Floats | None]]:
        """Return the coding of the column, and the code of each value of each part, if the numbers are codes."""
        return PLAIN, [None] * len(parts)

    def ranking(self, name: Name, cells: pl.Series) -> list[int] | None:
        """Return the places of sorted cells in the order of the values, a missing one first; None if it is theirs."""
        return None

    # Strata

    def joined_name(self, name: Name, values: Sequence[object]) -> object:
        """Return the name of several values of a stratum that are joined."""
        return " or ".join("missing" if value is None else str(value) for value in values)

    def is_joined_name(self, joined: str, values: Sequence[str]) -> bool:
        """Return whether a name is that of joined values."""
        return set(joined.split(" or ")) == {part for value in values for part in value.split(" or ")}


def sorted_cells(name: Name, cells: pl.Series) -> pl.Series:
    """Return the cells of a sensitive column of an ordered type, such that equal values are equal cells."""
    if isinstance(cells.dtype, (pl.Date, pl.Datetime)):
        cells = cells.cast(pl.Datetime("us"))
    if cells.dtype.is_temporal():
        return cells.to_physical()
    if not (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
        raise InputError(
            f"Column {name!r} is confidential and must hold numbers, text, Booleans or dates, but its type is "
            f"{cells.dtype}. Turn it into one of them first."
        )
    # One zero, and one way to be missing.
    return cells.cast(pl.Float64).fill_nan(None) + 0.0 if not cells.dtype.is_integer() else cells


@dataclass(frozen=True)
class Embedding:
    """Where records lie: the coding of each column, and how much each counts."""

    codings: tuple[Coding, ...]
    importance: tuple[float, ...] | None = None  # of each column, 0 if it does not decide who is alike
    gone: tuple[int, ...] = ()  # columns that all records miss now

    @classmethod
    def of_numbers(cls, columns: int) -> Embedding:
        """Return that of a table of numbers."""
        return cls((PLAIN,) * columns)

    @cached_property
    def numbers(self) -> Ints:
        """The columns of numbers."""
        return np.array([j for j, coding in enumerate(self.codings) if coding.numeric], dtype=np.int64)

    @cached_property
    def without_order(self) -> list[bool]:
        """Of each column, whether its values have no order."""
        return [not coding.ordered for coding in self.codings]

    @cached_property
    def plain(self) -> bool:
        """Whether the coordinates are the standardised columns."""
        return all(coding.standardised for coding in self.codings)

    @cached_property
    def starts(self) -> Ints:
        """The first coordinate of each column."""
        return np.concatenate([[0], np.cumsum([coding.width for coding in self.codings])[:-1]]).astype(np.int64)

    @cached_property
    def rescalings(self) -> Rescalings:
        """The columns that are compared on another scale than they are measured on, with their codings."""
        return tuple((j, coding) for j, coding in enumerate(self.codings) if coding.rescales)

    def apply(self, X: Floats, scale: Scaling) -> Floats:
        """Return the coordinates of records; those of a missing cell are missing."""
        Z = scale.apply(X)
        if self.plain:
            return Z
        return np.ascontiguousarray(np.hstack([coding.place(X, j, Z) for j, coding in enumerate(self.codings)]))

    def continuous(self, X: Floats) -> Floats:
        """Return numbers whose means and differences mean something in every column."""
        if self.plain:
            return X
        return np.column_stack([coding.continuous(X[:, j]) for j, coding in enumerate(self.codings)])

    def place(self, X: Floats, scale: Scaling) -> Floats:
        """Return the coordinates by which records are grouped; X are numbers on the scales of comparison."""
        return self.compared(self.apply(X, scale))

    def compared(self, Z: Floats) -> Floats:
        """Return the coordinates by which records are grouped."""
        if self.importance is None:
            return Z
        factors = np.sqrt(np.repeat(self.importance, np.diff(np.append(self.starts, Z.shape[1]))))
        return np.ascontiguousarray(Z[:, factors > 0] * factors[factors > 0])

    def lost(self, values: Floats, scale: Scaling) -> Floats:
        """Return, of each column, the squared deviation from the mean of values that were made missing."""
        squares = self.by_column(np.nansum(np.square(self.apply(values, scale)), axis=0))
        for j in self.gone:
            # No mean is left to deviate from; a standardised column has as large a sum of squares as it has values.
            squares[j] = np.count_nonzero(~np.isnan(values[:, j]))
        return squares

    def lost_cell(self, values: Floats, scale: Scaling) -> Floats:
        """Return, of each column and of all, the largest squared deviation of one value that was made missing."""
        squares = np.nan_to_num(np.square(self.apply(values, scale)))
        largest = np.add.reduceat(squares, self.starts, axis=1).max(axis=0, initial=0.0)
        largest[list(self.gone)] = 1.0
        return np.append(largest, largest.max())

    def by_column(self, sums: Floats) -> Floats:
        """Add up what is known of coordinates, in one or several rows, by column."""
        return sums if self.plain else np.add.reduceat(sums, self.starts, axis=-1)
