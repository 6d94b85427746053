"""A published table has no metadata of the original, in memory and in files."""

import pickle
import warnings
import zipfile

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import shoal
from shoal.core.errors import UnprotectedColumnWarning

SECRET = "owned by ACME"
BOUNDS = {"x": (0.0, 10.0)}
KINDS = ["low", SECRET, "high"]


def release(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprotectedColumnWarning)
        return shoal.publish(data, 1.0, bounds=BOUNDS, method="none", **options).data


def described_table():
    kind = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0, 2], pa.int8()), pa.array(KINDS))
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "kind": kind, SECRET: [1, 2, 3, 4]})
    described = table.schema.with_metadata({"source": SECRET})
    described = described.set(0, described.field(0).with_metadata({"question": SECRET}))
    return table.cast(described)


def described_frame():
    frame = pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0, 4.0],
            "kind": pd.Categorical(["low", "high"] * 2, categories=KINDS),
            SECRET: [1, 2, 3, 4],
        },
        index=pd.Index([f"{SECRET} {i}" for i in range(4)], name=SECRET),
    )
    frame.attrs["source"] = SECRET
    frame.columns.name = SECRET
    return frame


def written(path):
    """Return the bytes of a file and what its schema says, which Arrow may have encoded."""
    if path.suffix == ".parquet":
        table, schema = parquet.read_table(path), parquet.read_schema(path)
        said = repr(parquet.read_metadata(path).metadata)
    else:
        table, schema, said = feather.read_table(path), feather.read_table(path).schema, ""
    shown = said + schema.to_string(show_field_metadata=True, show_schema_metadata=True, truncate_metadata=False)
    return path.read_bytes().decode("latin-1") + shown + repr(table.column("kind").chunk(0).dictionary.to_pylist())


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("kept", [None, "kind"])
def test_arrow_files_in_and_out(tmp_path, ending, kept):
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    for table in (described_table(), pa.Table.from_pandas(described_frame())):
        (parquet.write_table if ending == "parquet" else feather.write_feather)(table, str(source))
        assert SECRET in written(source)
        data = release(source, keep=kept, output=target)
        read = parquet.read_table(target) if ending == "parquet" else feather.read_table(target)
        for found in (data, read):
            assert found.column_names == ["x", "kind"][: 2 if kept else 1]
            assert not found.schema.metadata
            assert all(field.metadata is None for field in found.schema)
        assert SECRET not in target.read_bytes().decode("latin-1")
        if kept:
            assert SECRET not in written(target)
            assert read["kind"].to_pylist() == ["low", "high"] * 2


def test_a_frame_of_pandas_in_memory():
    data = release(described_frame(), keep="kind")
    assert data.attrs == {}
    assert data.index.equals(pd.RangeIndex(4))
    assert data.index.name is None
    assert data.columns.tolist() == ["x", "kind"]
    assert data.columns.name is None
    assert data["kind"].tolist() == ["low", "high"] * 2
    assert data["kind"].cat.categories.tolist() == ["low", "high"]
    assert SECRET.encode() not in pickle.dumps(data)


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_a_frame_of_pandas_in_a_file(tmp_path, ending):
    target = tmp_path / f"out.{ending}"
    release(described_frame(), keep="kind", output=target)
    assert SECRET.encode() not in target.read_bytes()
    if ending == "csv":
        assert pl.read_csv(target).columns == ["x", "kind"]
    else:
        assert SECRET not in written(target)
        assert "pandas" not in written(target)


def test_columns_of_pandas_that_are_named_by_numbers(tmp_path):
    frame = pd.DataFrame({0: [1.0, 2.0], 7: [1, 2]})
    data = shoal.publish(frame, 1.0, bounds={7: (0, 3)}, output=tmp_path / "o.parquet").data
    assert data.columns.tolist() == [7]
    assert parquet.read_table(tmp_path / "o.parquet").column_names == ["7"]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(KINDS)])
def test_categories_of_polars(tmp_path, kind):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "kind": pl.Series(["low", SECRET, "high"], dtype=kind)})[[0, 2]]
    target = tmp_path / "out.parquet"
    data = release(frame, keep="kind", output=target)
    assert data["kind"].to_list() == ["low", "high"]
    assert data["kind"].dtype == (kind if kind == pl.Categorical else pl.Enum(["low", "high"]))
    assert SECRET not in written(target)


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_labels_of_spss_and_stata_files_stay_behind(tmp_path, ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    getattr(pyreadstat, f"write_{ending}")(
        pd.DataFrame({"x": [1.0, 2.0, 9.0], "kept": [1.0, 2.0, 3.0], "gone": [1.0, 2.0, 3.0]}),
        str(source),
        file_label=SECRET,
        column_labels={"x": SECRET, "kept": "a", "gone": SECRET},
        variable_value_labels={"x": {9: f"CEO, {SECRET}"}, "gone": {1: SECRET}},
    )
    assert SECRET.encode() in source.read_bytes()
    release(source, keep="kept", output=target)
    assert SECRET.encode() not in target.read_bytes()
    frame, found = getattr(pyreadstat, f"read_{ending}")(target)
    assert list(frame.columns) == ["x", "kept"]
    assert found.variable_value_labels == {}


def test_an_excel_file_and_a_bounding_box(tmp_path):
    table = described_table().replace_schema_metadata({"geo": '{"bbox": [1, 2]}', "by": SECRET})
    parquet.write_table(table, tmp_path / "in.parquet")
    for ending in ("xlsx", "parquet", "tsv"):
        target = tmp_path / f"out.{ending}"
        release(tmp_path / "in.parquet", keep="kind", output=target)
        parts = [target.read_bytes()]
        if ending == "xlsx":
            with zipfile.ZipFile(target) as file:
                parts = [file.read(name) for name in file.namelist()]
        for part in parts:
            assert SECRET.encode() not in part
            assert b"bbox" not in part
