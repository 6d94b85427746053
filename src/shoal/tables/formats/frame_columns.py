"""Conversion of narwhals columns to polars and Arrow, and creation of columns in the type of an existing column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import FileError
from shoal.core.types import Bools
from shoal.tables.columns import named_cells, with_cells

if TYPE_CHECKING:
    import narwhals as nw

__all__ = [
    "arrow_numbers",
    "arrow_series",
    "as_doubles",
    "as_polars",
    "from_arrow",
    "is_null",
    "is_opaque",
    "levels_of",
    "like_column",
    "native_type",
    "to_polars",
    "without_cells",
    "without_views",
]

EXACT = 2**53  # every integer up to this one is exact as a double
# Names of numeric Arrow types.
PLAIN = {"float", "double", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def as_polars(frame: Any) -> pl.DataFrame:
    """Return a frame of any library as a polars frame."""
    if isinstance(frame, pl.DataFrame):
        return frame
    import narwhals as nw

    wrapped = nw.from_native(frame, eager_only=True)
    return _named(wrapped.to_polars(), wrapped.columns)


def without_views(table: Any) -> Any:
    """Return a pyarrow table with views as plain text and bytes, because pyarrow cannot select records of views."""
    import pyarrow as pa

    schema = pa.schema([field.with_type(_without_views(field.type)) for field in table.schema], table.schema.metadata)
    return table if schema.equals(table.schema) else table.cast(schema)


def _without_views(dtype: Any) -> Any:
    """Return the plain type for a view type, also within lists; return other types unchanged."""
    import pyarrow as pa

    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        item = dtype.value_field.with_type(_without_views(dtype.value_type))
        return pa.list_(item) if pa.types.is_list(dtype) else pa.large_list(item)
    return {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(dtype), dtype)


def from_arrow(table: Any) -> pl.DataFrame:
    """Return a pyarrow table or batch as a polars frame with the same names."""
    return _named(pl.DataFrame(table), table.schema.names)


def as_doubles(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """Prepare a table for a format that stores all numbers as doubles; refuse numbers that would change."""
    for name, cells in named_cells(frame.select(pl.selectors.integer())):
        least, most = cells.min(), cells.max()
        if most is not None and (most > EXACT or least < -EXACT):  # type: ignore[operator]
            raise FileError(
                f"{what} cannot store whole numbers above 2^53, as in column {name!r}. Drop the column, convert it to "
                "text, or use CSV or Parquet."
            )
    decimals = named_cells(frame.select(pl.selectors.decimal()))
    doubles = {name: cells.cast(pl.Float64) for name, cells in decimals}
    for name, cells in decimals:
        if not doubles[name].cast(cells.dtype, strict=False).equals(cells):
            raise FileError(
                f"{what} cannot store numbers of more than about 15 digits, as in column {name!r} of type "
                f"{cells.dtype}. Drop the column, convert it to text, or use CSV or Parquet."
            )
    return with_cells(frame, doubles)


def _named(frame: pl.DataFrame, names: Sequence[object]) -> pl.DataFrame:
    # Polars calls an unnamed Arrow column column_0. Column names in pandas may be numbers.
    frame.columns = [str(name) for name in names]
    return frame


def to_polars(series: nw.Series[Any]) -> pl.Series:
    """Return a column as a polars series without a name; cells become text if polars has no type for them."""
    try:
        return series.to_polars().alias("")
    # The cells are objects of several types, or their type belongs to another library.
    except (TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError):
        return pl.Series([None if value is None else repr(value) for value in series.to_list()], dtype=pl.String)


def arrow_numbers(series: nw.Series[Any]) -> NDArray[Any] | None:
    """Return a numeric pyarrow column without missing values as an array, else None; no other library is imported."""
    column = series.to_native()
    if not series.implementation.is_pyarrow() or str(column.type) not in PLAIN or column.null_count:
        return None
    return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks] or [np.empty(0)])


def arrow_series(array: Any) -> nw.Series[Any]:
    """Return a pyarrow array as a column without a name."""
    import narwhals as nw
    import pyarrow as pa

    column: nw.Series[Any] = nw.from_native(pa.chunked_array([array]), series_only=True)
    return column


def is_null(series: nw.Series[Any]) -> Bools:
    """Return a mask of the null cells, without using pyarrow, which would import pandas."""
    return series.is_null().to_polars().to_numpy()


def without_cells(series: nw.Series[Any], absent: nw.Series[Any]) -> nw.Series[Any]:
    """Return a column with null in some cells."""
    import narwhals as nw

    if series.implementation.is_pyarrow():
        return arrow_series(to_polars(series).set(to_polars(absent), None).to_arrow())
    frame = series.alias("cells").to_frame().with_columns(absent.alias("absent"))
    return frame.select(nw.when(~nw.col("absent")).then(nw.col("cells")))["cells"]


def like_column(series: nw.Series[Any], cells: Sequence[str | None]) -> nw.Series[Any]:
    """Return texts in the type of a column; categories stay ordered only if the column's levels include all texts."""
    import narwhals as nw

    native: Any = series.to_native()
    levels = levels_of(series)
    levels = levels if levels is not None and set(cells) <= {*levels, None} else None
    column: Any = nw.new_series(series.name, cells, nw.String(), backend=series.implementation)
    if isinstance(series.dtype, nw.Categorical) and levels is None:
        column = column.cast(series.dtype)
    column = column.to_native()
    if series.implementation.is_pyarrow():
        import pyarrow as pa

        if levels is not None:
            place = {level: code for code, level in enumerate(levels)}
            codes = pa.array([None if cell is None else place[cell] for cell in cells], native.type.index_type)
            values = pa.array(levels, native.type.value_type)
            column = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, values, ordered=True)])
        column = column.cast(native.type)
    elif levels is not None:
        column = column.astype(native.dtype) if series.implementation.is_pandas() else column.cast(native.dtype)
    elif series.implementation.is_pandas() and not isinstance(series.dtype, nw.Categorical):
        column = column.astype(native.dtype)  # pandas has several text types
    result: nw.Series[Any] = nw.from_native(column, series_only=True).alias(series.name)
    return result


def native_type(series: nw.Series[Any]) -> Any:
    """Return the type of a column in its own library."""
    column = series.to_native()
    return column.type if hasattr(column, "type") else column.dtype


def levels_of(series: nw.Series[Any]) -> tuple[Any, ...] | None:
    """Return the levels of a polars Enum or an ordered categorical of pandas or pyarrow, else None."""
    kind: Any = series.dtype
    if str(kind).startswith("Enum"):
        return tuple(kind.categories)
    column = series.to_native()
    if getattr(getattr(column, "dtype", None), "ordered", False):
        return tuple(column.dtype.categories)
    if getattr(getattr(column, "type", None), "ordered", False):
        return tuple(column.unify_dictionaries().chunk(0).dictionary.to_pylist()) if len(column) else ()
    return None


def is_opaque(kind: Any) -> bool:
    """Return whether narwhals has no type for the cells of a column."""
    return str(kind) in ("Object", "Unknown")
