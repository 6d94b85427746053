"""NumPy arrays as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from shoal.core.checks import EXACT, plain_array
from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Ints
from shoal.kinds.column import Storage
from shoal.tables.columns import Name, NewColumn, round_to
from shoal.tables.table import Store, Strata

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["ArrayStore"]


class ArrayStore(Store):
    """A NumPy array with one record per row; columns are named by their position in the original array."""

    holds_text = False

    def __init__(self, array: np.ndarray[Any, Any], names: Sequence[Name] | None = None) -> None:
        array = plain_array(array)
        if array.ndim not in (1, 2) or array.dtype.kind not in "iuf":
            raise InputError(
                f"{parameter('data')} must be a numeric array with one record per row, got shape {array.shape} of type "
                f"{array.dtype}."
            )
        if array.dtype.itemsize > 8:
            raise InputError(
                f"{parameter('data')} must be an array of numbers of at most 64 bits, got type {array.dtype}. Use "
                "data.astype(numpy.float64)."
            )
        self.native, self._columns = array, array[:, None] if array.ndim == 1 else array
        self.names, self.rows = list(range(self._columns.shape[1]) if names is None else names), len(array)

    def _vector(self, name: Name) -> np.ndarray[Any, Any]:
        return self._columns[:, self.names.index(name)]

    def series(self, name: Name) -> nw.Series[Any]:
        """Return a column as a polars series."""
        import narwhals as nw

        cells = np.ascontiguousarray(self._vector(name))
        return nw.from_native(
            pl.Series(cells.astype(np.float64) if cells.dtype == np.float16 else cells), series_only=True
        )

    def take(self, rows: Ints) -> ArrayStore:
        """Return the store with only the records at positions `rows`."""
        return ArrayStore(self.native[rows], self.names)

    def only(self, names: Sequence[Name]) -> ArrayStore:
        """Return the store with only the columns `names`, which keep their names."""
        places = [self.names.index(name) for name in names]
        return ArrayStore(self.native if self.native.ndim == 1 else self.native[:, places], names)

    def released(self, new: Mapping[Name, NewColumn], strata: Strata) -> ArrayStore:
        """Return the store with new values in some columns; integers become floats unless the values are rounded."""
        kind = self.native.dtype
        new = {name: _codes_as_numbers(column).filled() for name, column in new.items()}
        whole = all(column.integers and not np.isnan(column.values).any() for column in new.values())
        floats = kind.kind in "iu" and not whole
        if floats:
            self._check_others(new)
        array = self._columns.astype(np.float64 if floats else kind, copy=True)
        for name, column in new.items():
            array[:, self.names.index(name)] = (
                round_to(column.values, str(kind)) if array.dtype.kind in "iu" else column.values
            )
        return ArrayStore(array.reshape(self.native.shape), self.names)

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> ArrayStore:
        """Refuse text, which an array of numbers cannot store."""
        raise InputError(
            f"{parameter('small')} is 'merge', but joined strata of column {next(iter(texts))} would be text, which an "
            "array of numbers cannot store. Use a frame."
        )

    def _check_others(self, masked: Collection[Name]) -> None:
        """Refuse unmasked columns with integers that would change if stored as floats."""
        for name in self.names:
            column = self._vector(name)
            wide = (column > EXACT) | (column < -EXACT)
            if name not in masked and wide.any():
                record = int(np.argmax(wide))
                raise InputError(
                    f"Column {name} must contain integers up to 2^53 if means are released in an array of integers, "
                    f"but record {record + 1} holds {column[record]}. Use {setting('integers', 'round')}, or a frame, "
                    "which has a type per column."
                )


def _codes_as_numbers(column: NewColumn) -> NewColumn:
    """Return a column of numeric categories as a column of numbers."""
    if column.categories is None:
        return column
    values = np.array([np.nan if cell is None else cell for cell in column.cells()], dtype=np.float64)
    return replace(column, values=values, storage=Storage("int64", whole=True), rounded=True, categories=None)
