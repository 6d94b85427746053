"""without_metadata(): cells, types and names of a table, and nothing else."""

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shoal.tables.formats.metadata import without_metadata

SECRET = "owned by ACME"


def holds(table, word=SECRET):
    """Return whether a word is anywhere in the written table."""
    written = io.BytesIO()
    if isinstance(table, pa.Table):
        with pa.ipc.new_stream(written, table.schema) as stream:
            stream.write_table(table)
        return word.encode() in written.getvalue()
    return word.encode() in pickle.dumps(table)


# pyarrow


def test_schema_and_field_metadata_go():
    fields = [
        pa.field("a", pa.int64(), nullable=False, metadata={"note": SECRET}),
        pa.field("b", pa.struct([pa.field("c", pa.int8(), metadata={"note": SECRET})])),
        pa.field("d", pa.list_(pa.field("item", pa.int8(), metadata={"note": SECRET}))),
        pa.field("e", pa.large_list(pa.field("item", pa.int8(), metadata={"note": SECRET}))),
        pa.field("f", pa.list_(pa.field("item", pa.int8(), metadata={"note": SECRET}), 2)),
    ]
    rows = [
        {"a": 1, "b": {"c": 2}, "d": [3], "e": [4], "f": [5, 6]},
        {"a": 7, "b": None, "d": None, "e": [], "f": None},
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema(fields, metadata={"source": SECRET}))
    assert holds(table)
    new = without_metadata(table)
    assert not holds(new)
    assert new.to_pylist() == rows
    assert new.schema.equals(table.schema)  # names, types and which columns may be missing
    assert table.schema.metadata is not None


def test_names_of_dropped_columns_go():
    frame = pd.DataFrame({"size": [1], SECRET: [2]})
    table = pa.Table.from_pandas(frame).select(["size"])
    assert holds(table)  # in the description of the pandas frame
    assert not holds(without_metadata(table))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_dictionary_keeps_used_values_in_their_order(ordered):
    kind = pa.dictionary(pa.int8(), pa.large_string(), ordered=ordered)
    levels = pa.array(["low", SECRET, "high"], pa.large_string())
    chunk = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2], pa.int8()), levels, ordered=ordered)
    table = pa.table({"a": pa.chunked_array([chunk, chunk[:1]], kind)})
    assert holds(table)
    new = without_metadata(table)
    assert not holds(new)
    assert new.to_pydict() == {"a": ["high", None, "low", "high", "high"]}
    assert new.schema.field("a").type == kind
    assert new["a"].chunk(0).dictionary.to_pylist() == ["low", "high"]


def test_chunks_with_dictionaries_of_their_own():
    chunks = [pa.array(values, pa.string()).dictionary_encode() for values in (["x", "y"], ["y", "z"], [None])]
    new = without_metadata(pa.table({"a": pa.chunked_array(chunks)}))
    assert new.to_pydict() == {"a": ["x", "y", "y", "z", None]}
    feather.write_feather(new, io.BytesIO())
    parquet.write_table(new, io.BytesIO())


def test_a_dictionary_inside_a_list():
    kind = pa.list_(pa.dictionary(pa.int8(), pa.string()))
    table = pa.table({"a": pa.array([["x"], None, [], [SECRET]], kind)})[:3]
    assert table["a"].combine_chunks().flatten().dictionary.to_pylist() == ["x", SECRET]
    new = without_metadata(table)
    assert new["a"].combine_chunks().flatten().dictionary.to_pylist() == ["x"]
    assert new.to_pydict() == {"a": [["x"], None, []]}


def test_empty_tables_of_arrow():
    schema = pa.schema([pa.field("a", pa.dictionary(pa.int32(), pa.string())), pa.field("b", pa.float64())])
    for table in (schema.empty_table(), pa.table({"a": pa.chunked_array([], schema.field("a").type)}), pa.table({})):
        assert without_metadata(table).equals(table)


# pandas


def test_attributes_flags_and_names_of_the_axes_go():
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="id"))
    frame.columns.name = SECRET
    frame.attrs["source"] = SECRET
    frame.flags.allows_duplicate_labels = False
    new = without_metadata(frame)
    assert not holds(new)
    assert new.attrs == {}
    assert new.flags.allows_duplicate_labels
    assert new.index.equals(pd.RangeIndex(2))
    assert new.index.name is None
    assert new["a"].tolist() == [1, 2]
    assert frame.attrs == {"source": SECRET}
    assert frame.columns.name == SECRET
    assert not frame.flags.allows_duplicate_labels


@pytest.mark.parametrize("ordered", [False, True])
def test_categories_of_pandas_that_no_record_has_go(ordered):
    kind = pd.CategoricalDtype(["low", SECRET, "high"], ordered=ordered)
    frame = pd.DataFrame({"a": pd.Categorical(["high", None, "low"], dtype=kind), "b": [1.0, 2.0, 3.0]})
    new = without_metadata(frame)
    assert new["a"].cat.categories.tolist() == ["low", "high"]
    assert new["a"].cat.ordered == ordered
    assert new["a"].astype(object).equals(frame["a"].astype(object))
    assert frame["a"].dtype == kind


def test_arrow_columns_of_pandas():
    column = pd.arrays.ArrowExtensionArray(pa.array(["x", SECRET]).dictionary_encode())
    frame = pd.DataFrame({"a": column, "b": pd.array([1, 2], dtype="int64[pyarrow]")})[:1]
    new = without_metadata(frame)
    assert new.dtypes.tolist() == frame.dtypes.tolist()
    assert new["a"].tolist() == ["x"]
    assert new["a"].array.__arrow_array__().chunk(0).dictionary.to_pylist() == ["x"]


def test_labels_of_dropped_rows_and_columns():
    kind = pd.CategoricalDtype(["a", "b", SECRET])
    frame = pd.DataFrame(
        np.zeros((3, 3)),
        index=pd.MultiIndex.from_product([["x"], [1, 2, SECRET]], names=["one", "two"]),
        columns=pd.CategoricalIndex(["a", "b", SECRET], dtype=kind),
    ).iloc[:2, :2]
    assert holds(frame)
    new = without_metadata(frame)
    assert not holds(new)
    assert new.index.equals(pd.RangeIndex(2))
    assert new.index.names == [None]
    assert new.columns.tolist() == ["a", "b"]


# polars


def test_categories_of_polars_that_no_record_has_go():
    frame = pl.DataFrame(
        {
            "a": pl.Series(["x", SECRET, None], dtype=pl.Categorical),
            "b": pl.Series(["high", "low", None], dtype=pl.Enum([SECRET, "low", "never", "high"])),
            "c": pl.Series([["low"], [SECRET], None], dtype=pl.List(pl.Enum([SECRET, "low"]))),
            "d": pl.Series([["low"], [SECRET], None], dtype=pl.Array(pl.Enum([SECRET, "low"]), 1)),
            "e": pl.Series([{"f": "low"}, {"f": SECRET}, None], dtype=pl.Struct({"f": pl.Enum([SECRET, "low"])})),
            "g": [1, 2, 3],
        }
    )[[0, 2]]
    new = without_metadata(frame)
    assert new.dtypes == [
        pl.Categorical,
        pl.Enum(["high"]),
        pl.List(pl.Enum(["low"])),
        pl.Array(pl.Enum(["low"]), 1),
        pl.Struct({"f": pl.Enum(["low"])}),
        pl.Int64,
    ]
    assert new.rows() == frame.rows()
    assert not holds(new)
    assert not holds(new.to_arrow())
    assert "never" in frame["b"].dtype.categories


def test_a_frame_without_columns():
    assert without_metadata(pl.DataFrame()).shape == (0, 0)
    assert without_metadata(pd.DataFrame(index=[1, 2])).shape == (2, 0)
