"""Tables of pandas, polars and pyarrow, accessed through narwhals; `open_table` also opens NumPy arrays.

A store returns columns, and copies of itself with some columns replaced. All other cells keep their values and types;
metadata is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Ints, Spelling
from shoal.kinds.column import word_of
from shoal.tables.columns import Name, NewColumn, as_floats, only_columns, round_to
from shoal.tables.formats.arrays import ArrayStore
from shoal.tables.formats.frame_columns import (
    arrow_series,
    is_null,
    is_opaque,
    like_column,
    to_polars,
    without_cells,
    without_views,
)
from shoal.tables.formats.metadata import without_metadata
from shoal.tables.table import NO_INDEX, Store, Strata, Table, TableColumn, check_names

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["FrameStore", "open_table"]

MISSING_NAMES = ("nan", "NaT", "<NA>", "None")  # pandas' spellings of missing names


def open_table(data: Any) -> Table:
    """Open a frame or an array as a table; lazy frames (polars, DuckDB) are collected as polars frames.

    Examples
    --------
    >>> open_table(np.zeros((3, 2))).names
    [0, 1]
    """
    if isinstance(data, np.ndarray):
        return Table(ArrayStore(data))
    library = type(data).__module__.partition(".")[0]
    if library == "polars" and hasattr(data, "collect"):
        data = data.collect()
    elif library in ("duckdb", "_duckdb") and hasattr(data, "pl"):
        data = data.pl()
    elif library == "pyarrow" and hasattr(data, "schema"):
        data = without_views(data)
    import narwhals as nw

    try:
        frame = nw.from_native(data, eager_only=True)
        names = list(frame.columns)
    except TypeError:
        raise InputError(
            f"{parameter('data')} must be a pandas, polars or pyarrow table, a DuckDB relation, a NumPy array or the "
            f"path of a file, got {type(data).__module__}.{type(data).__qualname__}."
        ) from None
    except nw.exceptions.DuplicateError:
        names = list(getattr(data, "column_names", getattr(data, "columns", [])))
        check_names(names)
        raise InputError(f"Column names must be unique, got {names}. Rename the columns before masking.") from None
    check_names(names)
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str) and str(name) in MISSING_NAMES:  # a missing name does not equal itself
            raise InputError(f"Column number {place} must have a name, got {name}. Rename it.")
    return Table(FrameStore(frame))


def _index_notes(frame: nw.DataFrame[Any]) -> tuple[str, ...]:
    """Return a note on a pandas index, unless the index only numbers the records from 0."""
    import narwhals as nw

    index: Any = nw.maybe_get_index(frame)
    plain = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
    return () if index is None or plain else (NO_INDEX,)


class FrameStore(Store):
    """The cells of a pandas, polars or pyarrow frame."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self.frame, self.native, self.index_notes = frame, frame.to_native(), _index_notes(frame)
        self.names, self.rows = list(frame.columns), len(frame)

    def _but(self, frame: nw.DataFrame[Any]) -> FrameStore:
        """Return a store for another frame with all other attributes of this store."""
        return FrameStore(frame)

    def series(self, name: Name) -> nw.Series[Any]:
        """Return a column without its name."""
        return self.frame.get_column(name).alias("")

    def take(self, rows: Ints) -> FrameStore:
        """Return the store with only the records at positions `rows`."""
        import narwhals as nw

        # An Arrow table without columns loses its number of rows when rows are selected by index.
        frame = self.frame[np.asarray(rows).tolist()] if self.frame.columns else self.frame[: len(rows)]
        return self._but(nw.maybe_reset_index(frame))

    def only(self, names: Sequence[Name]) -> FrameStore:
        """Return the store with only the columns `names`."""
        import narwhals as nw

        frame: Any = self.frame.to_native()
        if self.frame.implementation.is_polars():
            frame = only_columns(frame, names)
        elif self.frame.implementation.is_pandas():  # names may be of any type, even bool
            frame = frame.iloc[:, [self.names.index(name) for name in names]]
        else:
            frame = frame.select(list(names))
        return self._but(nw.from_native(frame, eager_only=True))

    def released(self, new: Mapping[Name, NewColumn], strata: Strata) -> FrameStore:
        """Return the store with new values in some columns and one spelling per stratum value."""
        import narwhals as nw

        cells = {name: self._new(name, column) for name, column in new.items()}
        cells |= {name: self._respelled(name, changed) for name, changed in strata.items() if changed}
        frame = self.frame.with_columns(*(series.alias(name) for name, series in cells.items()))
        return self._but(nw.from_native(without_metadata(frame.to_native()), eager_only=True))

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> FrameStore:
        """Return the store with some columns replaced by text."""
        import narwhals as nw

        backend = self.frame.implementation
        columns = [nw.new_series(name, list(cells), nw.String(), backend=backend) for name, cells in texts.items()]
        return self._but(self.frame.with_columns(*columns))

    def _respelled(self, name: Name, changed: Mapping[Spelling, Spelling]) -> nw.Series[Any]:
        """Return a column of text or categories with new spellings, in the column's own type."""
        series = self.series(name)
        if is_opaque(series.dtype):  # cells of mixed types keep their spelling
            return series
        return like_column(series, [changed.get(cell, cell) for cell in to_polars(series).to_list()])

    def _new(self, name: Name, new: NewColumn) -> nw.Series[Any]:
        if new.categories is not None:
            return self._new_category(name, new)
        if new.scale is not None:
            cells = new.scale.cells(new.values)
            return self._new_moments(cells if new.code is None else cells.fill_null(new.code), new.scale.native)
        new = new.filled()
        missing = np.isnan(new.values)
        stored = new.storage.type if new.integers or new.storage.type == "float32" else "float64"
        values: Any = np.where(missing, 0.0, new.values) if "int" in stored else new.values
        values = round_to(values, stored) if "int" in stored else values.astype(stored, copy=False)
        released = self._new_series(values)
        if not missing.any():
            return self._nullable(name, released)
        absent = self._new_series(missing)
        if name not in self.frame.columns:
            return released if new.missing == "NaN" else without_cells(released, absent)
        # Missing cells keep their spelling in this library, but a mixture of null and NaN would distinguish records,
        # and an original value must not reappear.
        series = self.series(name)
        mixed = new.missing is None and (missing & ~is_null(series)).any()
        original = series.fill_nan(None) if mixed else series
        # Integer columns have only one missing value, and integers beyond 2^53 cannot be cast.
        if series.dtype.is_integer() or not np.isnan(as_floats(to_polars(original))[missing]).all():
            return released if new.missing == "NaN" else without_cells(released, absent)
        return original.cast(released.dtype).zip_with(absent, released)

    def _new_series(self, values: NDArray[Any]) -> nw.Series[Any]:
        """Return numbers or Booleans as a column."""
        import narwhals as nw

        if not self.frame.implementation.is_pyarrow():
            return nw.new_series("", values, backend=self.frame.implementation)
        import pyarrow as pa

        # Use buffers, because pyarrow imports pandas to convert an array, which takes longer than masking a part.
        if values.dtype == np.bool_:
            return arrow_series(pl.Series(values).to_arrow())
        buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return arrow_series(pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers))

    def _new_moments(self, cells: pl.Series, kind: Any) -> nw.Series[Any]:
        """Return dates, times, durations or text in the type of the replaced column."""
        import narwhals as nw

        if self.frame.implementation.is_polars():
            return nw.from_native(cells.cast(kind), series_only=True)
        import pyarrow as pa

        stored = pa.chunked_array([cells.to_arrow()])
        if self.frame.implementation.is_pyarrow():
            return nw.from_native(stored.cast(kind), series_only=True)
        import pandas as pd

        if isinstance(kind, pd.ArrowDtype):
            values: Any = pd.arrays.ArrowExtensionArray(stored.cast(kind.pyarrow_dtype))
        else:
            timed = word_of(cells.dtype) and str(kind) != "object"
            values = cells.to_pandas().astype(kind).array if timed else pd.array(cells.to_list(), dtype=kind)
        return nw.from_native(pd.Series(values, self.native.index), series_only=True)

    def _nullable(self, name: Name, released: nw.Series[Any]) -> nw.Series[Any]:
        """Return numbers in the column's nullable pandas type, if that type matches the numbers (Int64 for int64)."""
        import narwhals as nw

        if not self.frame.implementation.is_pandas() or name not in self.frame.columns:
            return released
        original, numbers = self.series(name).to_native().dtype, released.to_native()
        nullable = str(original) != str(numbers.dtype) and str(original).lower() == str(numbers.dtype)
        return nw.from_native(numbers.astype(original), series_only=True) if nullable else released

    def _new_category(self, name: Name, new: NewColumn) -> nw.Series[Any]:
        """Return a column of categories in its original type, or as text if an ancestor does not fit a numeric type."""
        import narwhals as nw

        cells, backend = new.cells(), self.frame.implementation
        text = any(isinstance(label, str) for label in new.categories or ())
        if name not in self.frame.columns:
            types = {bool: nw.Boolean(), int: nw.Int64()}
            kind = types.get(type(next(iter(new.categories or ()), None)), nw.String())
            return nw.new_series("", cells, kind, backend=backend)
        series = self.series(name)
        if not new.categories and new.code is not None and series.dtype.is_numeric():
            # If all cells are missing, no category shows that the code is a number.
            cells = [int(float(new.code))] * len(cells)
        if text and (series.dtype.is_numeric() or series.dtype == nw.Boolean()):
            return nw.new_series("", cells, nw.String(), backend=backend)
        record_of = {cell: record for record, cell in enumerate(TableColumn(self, name, ()).categories())}
        if set(cells) <= record_of.keys():
            return series[[record_of[cell] for cell in cells]]
        # A part of a table may lack the released value of a group.
        if not text:
            return nw.new_series("", cells, series.dtype, backend=backend)
        return like_column(series, cells)
