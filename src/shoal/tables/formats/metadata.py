"""Removal of metadata from frames.

Metadata reveals parts of a confidential table: a description, names of dropped columns, categories of records that are
not released. Only the cells, their types and the column names stay. Lists of categories (pandas categoricals, Arrow
dictionaries, polars Enums) keep only the categories that occur in a record, in the old order. This includes Enums and
ordered categoricals. Their list is part of a declared type, but it often comes from the data, and files store it all.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from shoal.tables.columns import named_cells, with_cells

__all__ = ["without_metadata"]


def without_metadata(frame: Any) -> Any:
    """Return a copy of a pandas, polars or pyarrow table without any metadata of the original.

    A pandas frame gets a new index, as the old one may identify records.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"size": [1, 2]}, metadata={"source": "survey of ACME"})
    >>> print(without_metadata(table).schema.metadata)
    None
    """
    if hasattr(frame, "column_names"):
        return _arrow(frame)
    if isinstance(frame, pl.DataFrame):
        return with_cells(frame, {name: _polars_column(cells) for name, cells in named_cells(frame)})
    return _pandas(frame)


# polars


def _polars_column(series: pl.Series) -> pl.Series:
    if series.dtype == pl.Categorical:
        # Before polars 1.32, a column stored its own list of categories, which a conversion to text drops.
        return series.cast(pl.String).cast(series.dtype)
    kind = _polars_type(series.dtype, series)
    if kind == series.dtype:
        return series
    # polars cannot cast every nested type.
    return series.cast(kind) if isinstance(kind, pl.Enum) else pl.Series(series.to_list(), dtype=kind)


def _polars_type(kind: pl.DataType, values: pl.Series) -> pl.DataType:
    """Return a type with each of its Enums reduced to the categories in use."""
    if isinstance(kind, pl.Enum):
        used = set(values.unique().to_list())
        return pl.Enum([category for category in kind.categories if category in used])
    if isinstance(kind, pl.List):
        return pl.List(_polars_type(kind.inner, values.explode()))  # type: ignore[arg-type]
    if isinstance(kind, pl.Array):
        return pl.Array(_polars_type(kind.inner, values.explode()), kind.size)  # type: ignore[arg-type]
    if isinstance(kind, pl.Struct):
        return pl.Struct({f.name: _polars_type(f.dtype, values.struct.field(f.name)) for f in kind.fields})  # type: ignore[arg-type]
    return kind


# pyarrow


def _arrow(table: Any) -> Any:
    import pyarrow as pa

    columns = [_arrow_column(column) for column in table.columns]
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(table.schema, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def _arrow_column(column: Any) -> Any:
    """Return a chunked array whose dictionaries have only used values and whose inner fields have no metadata."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)
        codes = pc.unique(whole.indices.drop_null())
        codes = codes.take(pc.array_sort_indices(codes))
        indices = pc.index_in(whole.indices, codes).cast(kind.index_type)
        values = whole.dictionary.take(codes)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)])
    if _has_dictionary(kind):
        return pa.chunked_array([pa.array(column.to_pylist(), _arrow_type(kind))])
    return column.cast(_arrow_type(kind)) if pa.types.is_nested(kind) else column


def _has_dictionary(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_dictionary(kind) or any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def _arrow_type(kind: Any) -> Any:
    """Return a type without metadata of its inner fields."""
    import pyarrow as pa

    inner = [kind.field(i) for i in range(kind.num_fields)]
    plain = [pa.field(field.name, _arrow_type(field.type), field.nullable) for field in inner]
    if pa.types.is_struct(kind):
        return pa.struct(plain)
    if pa.types.is_list(kind):
        return pa.list_(*plain)
    if pa.types.is_large_list(kind):
        return pa.large_list(*plain)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(*plain, kind.list_size)
    return kind


# pandas


def _pandas(frame: Any) -> Any:
    import pandas as pd

    new = frame.copy(deep=False)
    new.attrs = {}
    new.flags.allows_duplicate_labels = True
    new.index = pd.RangeIndex(len(frame))
    new.columns = _used_labels(frame.columns).set_names([None] * frame.columns.nlevels)
    for i, kind in enumerate(frame.dtypes):
        column = frame.iloc[:, i]
        if isinstance(kind, pd.CategoricalDtype):
            new.isetitem(i, column.array.remove_unused_categories())
        elif isinstance(kind, pd.ArrowDtype):
            new.isetitem(i, pd.arrays.ArrowExtensionArray(_arrow_column(column.array.__arrow_array__())))
    return new


def _used_labels(labels: Any) -> Any:
    """Return column names without unused levels, which may name dropped columns."""
    import pandas as pd

    if isinstance(labels, pd.MultiIndex):
        return labels.remove_unused_levels()
    return labels.remove_unused_categories() if isinstance(labels, pd.CategoricalIndex) else labels
