"""Where records lie when they are compared: the coordinates of every column.

A column of numbers is one standardised coordinate. A nominal column is one coordinate per value, scaled so that the
column has unit variance: two unequal values are at squared distance 2/Gini, and the sum of squares of a group of s
records with value counts h is (s − Σh²/s)/Gini. An ordinal column is its standardised mid-ranks. A hierarchy is one
nominal column per level. So all methods for numbers work on categories (the embedding of Domingo-Ferrer and Torra 2005
made Euclidean).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.core.measures import Scaling
from shoal.core.types import Floats, Ints, Name

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PLAIN", "Coding", "Embedding"]


@dataclass(frozen=True)
class Coding:
    """How the numbers of a column become coordinates, and what represents a group; here, of a column of numbers."""

    word: ClassVar[str] = "number"
    numeric: ClassVar[bool] = True  # whether its numbers are values, not codes of values
    standardised: ClassVar[bool] = True  # whether its one coordinate is the standardised number
    ordered: ClassVar[bool] = True

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
        """Return the coordinates by which records of these values are grouped."""
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
        """Add up what is known of coordinates, by column."""
        return sums if self.plain else np.add.reduceat(sums, self.starts)
