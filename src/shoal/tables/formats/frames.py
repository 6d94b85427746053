"""Tables of pandas, polars and pyarrow through narwhals; `open_table` opens these and NumPy arrays.

A table gives columns as float64 vectors (NaN where a cell is missing), its cells as they are written, and a copy of
itself with some columns replaced. Everything else about its cells stays as it was given, and nothing else travels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Bools, Ints, Spelling
from shoal.kernels.words import Words, number_bits
from shoal.kinds.column import Column, word_of
from shoal.kinds.date import Date, check_no_dates, read_dates
from shoal.kinds.time_scale import Span, span_of
from shoal.tables.columns import (
    Name,
    NewColumn,
    TextNumbers,
    as_floats,
    cells_of,
    column_of,
    kind_of,
    mostly_numbers,
    no_numbers,
    not_numeric,
    only_columns,
    round_to,
    whole_numbers,
    without_codes,
)
from shoal.tables.csv_table import text_numbers
from shoal.tables.formats.arrays import ArrayTable
from shoal.tables.formats.frame_columns import (
    arrow_numbers,
    arrow_series,
    is_null,
    is_opaque,
    like_column,
    native_type,
    to_polars,
    without_cells,
    without_views,
)
from shoal.tables.formats.metadata import without_metadata
from shoal.tables.table import NO_INDEX, Table, check_names, named_by_place, stored_indexes

if TYPE_CHECKING:
    import narwhals as nw

    from shoal.tables.formats.stat_files import StatFile

__all__ = ["FrameTable", "open_table"]

MISSING_NAMES = ("nan", "NaT", "<NA>", "None")  # as pandas spells them


def open_table(data: Any) -> Table:
    """Wrap a frame or an array; one that is yet to be computed (polars, DuckDB) is collected as a polars frame.

    Examples
    --------
    >>> open_table(np.zeros((3, 2))).names
    [0, 1]
    """
    if isinstance(data, np.ndarray):
        return ArrayTable(data)
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
        if not isinstance(name, str) and str(name) in MISSING_NAMES:  # it is not even equal to itself
            raise InputError(f"Column number {place} must have a name, but it is called {name}. Rename it.")
    return FrameTable(frame)


class FrameTable(Table):
    """A pandas, polars or pyarrow frame, or one of polars read from a statistical package's file."""

    def __init__(self, frame: nw.DataFrame[Any], stat_file: StatFile | None = None) -> None:
        self._frame, self.stat_file, self.codes = frame, stat_file, {}
        self.names, self.rows = list(frame.columns), len(frame)

    @property
    def native(self) -> Any:
        """The frame as given, with the stored cells of its file in columns that are not masked."""
        frame = self._frame.to_native()
        return frame if self.stat_file is None else self.stat_file.restored(frame)

    @property
    def index_notes(self) -> tuple[str, ...]:  # type: ignore[override]  # most tables have none
        """A note on an index of pandas that does more than number the records from 0."""
        import narwhals as nw

        index = nw.maybe_get_index(self._frame)
        plain = index is None or (
            type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
        )
        return () if plain else (NO_INDEX,)

    def _series(self, name: Name) -> nw.Series[Any]:
        """Return a column without its name, which polars might take for a pattern."""
        return self._frame.get_column(name).alias("")

    def numeric_names(self) -> list[Name]:
        """Return the numeric columns; a pandas index that a file carried along is not one of them."""
        indexes = stored_indexes(self.names)
        return [n for n, kind in self._frame.schema.items() if kind.is_numeric() and n not in indexes]

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as numbers."""
        series = self._series(name)
        if not series.dtype.is_numeric():
            raise no_numbers(name, series.to_list(), str(series.dtype), first)
        kind, codes = kind_of(series.dtype), self.codes.get(name, ())
        plain = None if codes else arrow_numbers(series)
        if plain is not None:
            return Column(name, plain.astype(np.float64, copy=False), kind)
        # Through polars: pyarrow casts no integer beyond 2^53 to a float.
        return column_of(name, without_codes(to_polars(series), codes))

    def timed_names(self) -> list[Name]:
        """Return the columns of dates, times and durations; those of pandas may hold them as objects."""
        schema = self._frame.schema
        return [n for n, kind in schema.items() if word_of(kind) or (is_opaque(kind) and self._timed(n))]

    def _timed(self, name: Name) -> bool:
        column = self._series(name)
        if str(native_type(column)).startswith("date64"):
            return True
        return str(column.dtype) == "Object" and word_of(to_polars(column).dtype) is not None

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return a column of dates, times or durations, or of text that is read as the kind says."""
        column = self._series(name)
        series, stored = without_codes(to_polars(column), self.codes.get(name, ())), native_type(column)
        if series.dtype == pl.String and word_of(column.dtype):
            raise InputError(
                f"Column {name!r} must have a time zone with a name, but its type is {stored}. Convert it to UTC or to "
                "a zone such as 'Asia/Kolkata' first."
            )
        if kind.format is not None and series.dtype.is_integer():  # 20240131
            series = series.cast(pl.String)
        if series.dtype == pl.String and not is_opaque(column.dtype):
            series, formats = read_dates(name, series, kind, first)
            return series, span_of(series, stored, formats)
        if word_of(series.dtype) is None and series.null_count() < len(series):
            raise InputError(
                f"Column {name!r} must hold dates, times, durations or text to be of kind shoal.Date, but its type is "
                f"{stored}. Leave it out of {parameter('kinds')}, or turn it into dates first."
            )
        return series, span_of(series, stored)

    def scale(self, name: Name) -> str | None:
        """Return "ordinal" for a polars Enum and for ordered categories, "nominal" for others; or what labels say."""
        if self.stat_file is not None:
            return self.stat_file.scale(name, self.stored(name))
        if self.levels(name) is not None:
            return "ordinal"
        return "nominal" if str(self._frame.schema[name]) == "Categorical" else None

    def categories(self, name: Name, first: int = 0, *, named: bool = True) -> pl.Series:
        """Return a column of text, of Booleans, of categories or, if they are codes, of whole numbers."""
        return without_codes(self._categories(name, first, named=named), self.codes.get(name, ()))

    def _categories(self, name: Name, first: int = 0, *, named: bool = True) -> pl.Series:
        column = self._series(name)
        series: pl.Series = to_polars(column)
        if str(native_type(column)).startswith(("period", "month_day_nano_interval")):
            way_out = "Turn them into dates or durations first; pandas has .dt.to_timestamp() for that."
            raise not_numeric(name, f"its type is {native_type(column)}", way_out)
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            series = series.cast(pl.String)
        if named and series.dtype.is_float():
            series = whole_numbers(name, series, first)
        kind = series.dtype
        if kind not in (pl.String, pl.Boolean) and not (named and (kind.is_integer() or word_of(kind))):
            raise no_numbers(name, [], str(kind), first)
        if kind == pl.String and not named:
            check_no_dates(name, series, first)
            if mostly_numbers(series):
                raise no_numbers(name, series.to_list(), "text", first)
        return series

    def text_numbers(self, name: Name, first: int = 0) -> TextNumbers | None:
        """Return what numbers a column of text or of objects holds; a category is none by its type."""
        column = self._series(name)
        if str(column.dtype) not in ("String", "Object"):
            return None
        series = to_polars(column)
        if series.dtype.is_numeric():
            return TextNumbers(1, 1, "its type is object", "Turn it into numbers.")
        if str(column.dtype) == "Object":
            series = pl.Series([None if cell is None else str(cell) for cell in column.to_list()], dtype=pl.String)
        return text_numbers(series, None, first) if series.dtype == pl.String else None

    def levels(self, name: Name) -> tuple[Any, ...] | None:
        """Return the values of an Enum of polars or an ordered category of pandas or pyarrow."""
        kind: Any = self._frame.schema[name]
        if str(kind).startswith("Enum"):
            return tuple(kind.categories)
        column = self._series(name).to_native()
        if getattr(getattr(column, "dtype", None), "ordered", False):
            return tuple(column.dtype.categories)
        if getattr(getattr(column, "type", None), "ordered", False):
            return tuple(column.unify_dictionaries().chunk(0).dictionary.to_pylist()) if len(column) else ()
        return None

    def stored(self, name: Name) -> pl.Series:
        """Return a column in polars, as text where it has no type for it."""
        return to_polars(self._series(name))

    def spelled(self, name: Name) -> pl.Series:
        """Return a column with the codes that its file knows as missing, unless it is masked."""
        file = self.stat_file
        return self.stored(name) if file is None or name in file.changed else cells_of(file.raw, name)

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as they are written."""
        if self.stat_file is None:
            return super().cells(names)
        frame = self.native
        return named_by_place(cells_of(frame, name) for name in names)

    def nulls(self, name: Name) -> Bools:
        """Return which cells are null in the library of the frame."""
        return is_null(self._series(name))

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return the bits of a column; null is another cell than NaN."""
        codes = self.codes.get(name, ())
        plain = None if codes or category else arrow_numbers(self._series(name))
        if plain is not None:
            return number_bits(plain)
        return super().words(name, category=category)

    def take(self, rows: Ints) -> FrameTable:
        """Return some of the records."""
        import narwhals as nw

        # Of a table of Arrow without columns, rows that are taken one by one are not counted.
        frame = self._frame[rows.tolist()] if self._frame.columns else self._frame[: len(rows)]
        return FrameTable(nw.maybe_reset_index(frame), self.stat_file and self.stat_file.take(rows))

    def without(self, names: Sequence[Name]) -> Table:
        """Return the frame without some of the columns."""
        if self._frame.implementation.is_pandas():  # which takes a list of names that are truth values for a mask
            return FrameTable(self._frame.drop(list(names)))
        if not names:
            return self
        others = self._columns([name for name in self.names if name not in names])
        return FrameTable(others, self.stat_file and self.stat_file.without(names))

    def only(self, names: Sequence[Name]) -> FrameTable:
        """Return some of the columns, without their labels."""
        return FrameTable(self._columns(names))

    def _columns(self, names: Sequence[Name]) -> nw.DataFrame[Any]:
        import narwhals as nw

        if self._frame.implementation.is_polars():
            return nw.from_native(only_columns(self._frame.to_native(), names), eager_only=True)
        if self._frame.implementation.is_pandas():  # names may be anything
            return nw.from_native(self._frame.to_native()[list(names)], eager_only=True)
        return self._frame.select([nw.col(name) for name in names])

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> FrameTable:
        """Return the frame with new values in some columns, and one spelling for each value of the strata."""
        import narwhals as nw

        cells = {name: self._new(name, column) for name, column in new.items()}
        cells |= {name: self._respelled(name, changed) for name, changed in (strata or {}).items() if changed}
        frame = self._frame.with_columns(*(series.alias(name) for name, series in cells.items()))
        file = self.stat_file and self.stat_file.released(new, strata or ())
        return FrameTable(nw.from_native(without_metadata(frame.to_native()), eager_only=True), file)

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> FrameTable:
        """Return the frame with text in the place of some columns."""
        import narwhals as nw

        backend = self._frame.implementation
        columns = [nw.new_series(name, list(cells), nw.String(), backend=backend) for name, cells in texts.items()]
        file = self.stat_file and self.stat_file.relabelled(texts)
        return FrameTable(self._frame.with_columns(*columns), file)

    def _respelled(self, name: Name, changed: Mapping[Spelling, Spelling]) -> nw.Series[Any]:
        """Return a column of text or categories with other spellings, in its own type."""
        series, levels = self._series(name), self.levels(name)
        if is_opaque(series.dtype):  # cells of several types are compared as they are
            return series
        cells = [changed.get(cell, cell) for cell in to_polars(series).to_list()]
        return like_column(series, cells, None if levels is None or not set(cells) <= {*levels, None} else levels)

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
        if name not in self._frame.columns:
            return released if new.missing == "NaN" else without_cells(released, absent)
        # Missing cells stay as this library has them; but null beside NaN would tell records apart, and a cell that was
        # not missing must not come back.
        series = self._series(name)
        mixed = new.missing is None and (missing & ~is_null(series)).any()
        original = series.fill_nan(None) if mixed else series
        # Integers are missing in one way, and those beyond 2^53 cannot be cast.
        if series.dtype.is_integer() or not np.isnan(as_floats(to_polars(original))[missing]).all():
            return released if new.missing == "NaN" else without_cells(released, absent)
        return original.cast(released.dtype).zip_with(absent, released)

    def _new_series(self, values: NDArray[Any]) -> nw.Series[Any]:
        """Return numbers or truth values as a column."""
        import narwhals as nw

        if not self._frame.implementation.is_pyarrow():
            return nw.new_series("", values, backend=self._frame.implementation)
        import pyarrow as pa

        # As they lie in memory: pyarrow imports pandas to look at an array, which takes longer than to mask a part.
        if values.dtype == np.bool_:
            return arrow_series(pl.Series(values).to_arrow())
        buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return arrow_series(pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers))

    def _new_moments(self, cells: pl.Series, kind: Any) -> nw.Series[Any]:
        """Return dates, times, durations or text in the type of the column that they replace."""
        import narwhals as nw

        if self._frame.implementation.is_polars():
            return nw.from_native(cells.cast(kind), series_only=True)
        import pyarrow as pa

        stored = pa.chunked_array([cells.to_arrow()])
        if self._frame.implementation.is_pyarrow():
            return nw.from_native(stored.cast(kind), series_only=True)
        import pandas as pd

        if isinstance(kind, pd.ArrowDtype):
            values: Any = pd.arrays.ArrowExtensionArray(stored.cast(kind.pyarrow_dtype))
        else:
            timed = word_of(cells.dtype) and str(kind) != "object"
            values = cells.to_pandas().astype(kind).array if timed else pd.array(cells.to_list(), dtype=kind)
        return nw.from_native(pd.Series(values, self.native.index), series_only=True)

    def _nullable(self, name: Name, released: nw.Series[Any]) -> nw.Series[Any]:
        """Return numbers in a nullable type of pandas, if the column has one of the same name."""
        import narwhals as nw

        if not self._frame.implementation.is_pandas() or name not in self._frame.columns:
            return released
        original, numbers = self._series(name).to_native().dtype, released.to_native()
        alike = str(original) != str(numbers.dtype) and str(original).lower() == str(numbers.dtype)
        return nw.from_native(numbers.astype(original), series_only=True) if alike else released

    def _new_category(self, name: Name, new: NewColumn) -> nw.Series[Any]:
        """Return a column of categories in its own type; of text, if that holds numbers and an ancestor is none."""
        import narwhals as nw

        cells, backend = new.cells(), self._frame.implementation
        text = any(isinstance(label, str) for label in new.categories or ())
        if name not in self._frame.columns:
            types = {bool: nw.Boolean(), int: nw.Int64()}
            kind = types.get(type(next(iter(new.categories or ()), None)), nw.String())
            return nw.new_series("", cells, kind, backend=backend)
        series = self._series(name)
        if not new.categories and new.code is not None and series.dtype.is_numeric():
            # Where all cells are missing, no category tells that the code for it is a number.
            cells = [int(float(new.code))] * len(cells)
        if text and (series.dtype.is_numeric() or series.dtype == nw.Boolean()):
            return nw.new_series("", cells, nw.String(), backend=backend)
        record_of = {cell: record for record, cell in enumerate(self._categories(name))}
        if set(cells) <= record_of.keys():
            return series[[record_of[cell] for cell in cells]]
        # A part of a table need not hold the value that stands for a group.
        if not text:
            return nw.new_series("", cells, series.dtype, backend=backend)
        levels = self.levels(name)
        return like_column(series, cells, None if levels is None or not set(cells) <= {*levels, None} else levels)
