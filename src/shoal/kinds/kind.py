"""What a kind of column knows; every kind is a class of its own, in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from shoal.core.errors import InputError
from shoal.core.types import Floats, Name
from shoal.kinds.coding import PLAIN, Coding
from shoal.kinds.column import Column

if TYPE_CHECKING:
    from shoal.kinds.column import Cells
    from shoal.kinds.time_scale import Scale, Span

__all__ = ["Kind", "sorted_cells"]


class Kind:
    """What a column holds, and all that depends on it. The methods here are those of a column of numbers.

    A table with the column is read in parts. `read` returns the numbers of a part and what they stand for, `observe`
    sums up the records of it that are released, `fit` turns the sums of all parts into the `Coding` of the column.
    A kind never sees a table: `Table.cells_of` hands it numbers, categories or moments with their span, by column.
    """

    word: str = "number"  # its name in a summary, a manifest and `shoal.kinds.registry`
    holds: ClassVar[str] = "numbers"  # for messages
    represented_by: ClassVar[str] = ""  # what is released for a group; empty for the aggregate that was chosen
    numeric: ClassVar[bool] = True  # whether the cells are stored, counted and read back as numbers
    additive: ClassVar[bool] = False  # whether they can be summed: sums, zeros, totals, dominance
    ordered: ClassVar[bool] = True  # whether the values have an order
    scaled: ClassVar[bool] = False  # whether it counts moments, by a scale that all parts share
    joins: ClassVar[bool] = False  # whether it names strata that are joined
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
