"""Statements about a release are true of the released file, recounted here independently."""

import csv
import io
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import command, reference_path

import shoal
from shoal.core.errors import InputError

ENGINES = ("memory", "local")
pytestmark = pytest.mark.usefixtures("one_template")


def least(path, names):
    """Return the least number of lines of a CSV file that agree in the text of some columns."""
    lines = list(csv.DictReader(io.StringIO(Path(path).read_text())))
    return min(Counter(tuple(line[name] for name in names) for line in lines).values())


def numbers(n, seed=0):
    return [f"{value:.3f}" for value in np.random.default_rng(seed).normal(size=n)]


def write_lines(path, header, columns):
    path.write_text("\n".join([header, *(",".join(row) for row in zip(*columns, strict=True))]) + "\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_cells_have_one_spelling(tmp_path, engine):
    x = numbers(40)
    x[:8] = ["NA", "", "null", ".", "NaN", '""', " NA", "N/A"]
    write_lines(tmp_path / "in.csv", "x,y", [x, numbers(40, 1)])
    out = tmp_path / "out.csv"
    shoal.mask(tmp_path / "in.csv", 4, columns=["x", "y"], missing="group", engine=engine, output=out)
    assert least(out, ["x", "y"]) >= 4
    assert {line.split(",")[0] for line in out.read_text().splitlines()[1:9]} == {""}


@pytest.mark.parametrize("engine", ENGINES)
def test_one_word_for_missing_stays_that_word(tmp_path, engine):
    x = numbers(40)
    x[3:9] = ["NA"] * 6
    write_lines(tmp_path / "in.csv", "x,y", [x, numbers(40, 1)])
    shoal.mask(tmp_path / "in.csv", 4, columns=["x", "y"], missing="group", engine=engine, output=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[4].startswith("NA,")


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_strata_have_one_spelling(tmp_path, engine):
    strata = ["1", "1.0", "1.00", "2", "NA", "", "NA", "2.0"] * 5
    write_lines(tmp_path / "in.csv", "r,x,note", [strata, numbers(40), ["kept 1.0"] * 40])
    out = tmp_path / "out.csv"
    release = shoal.mask(tmp_path / "in.csv", 5, columns=["x"], by="r", keep="note", engine=engine, output=out)
    assert least(out, ["r", "x"]) >= 5
    assert Counter(line["r"] for line in csv.DictReader(io.StringIO(out.read_text()))) == {"1": 15, "2": 10, "": 15}
    assert "kept 1.0" in out.read_text()
    assert "within r" in release.verified


@pytest.mark.parametrize("engine", ENGINES)
def test_blank_lines_are_no_records(tmp_path, engine):
    lines = ["x,y", *(f"{a},{b}" for a, b in zip(numbers(9), numbers(9, 1), strict=True))]
    (tmp_path / "in.csv").write_text("\n\n".join(lines) + "\n\n\n")
    asked = {"columns": ["x", "y"], "missing": "group", "output": tmp_path / "out.csv"}
    release = shoal.mask(tmp_path / "in.csv", 3, engine=engine, **asked)
    assert release.records == 9
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 10


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_cells_of_the_only_column_are_not_lost(tmp_path, engine):
    (tmp_path / "in.csv").write_text('x\n1\n""\n2\nNA\n3\n4\n""\n5\n')
    asked = {"columns": "x", "missing": "group"}
    shoal.mask(tmp_path / "in.csv", 3, engine=engine, output=tmp_path / "out.csv", **asked)
    again = shoal.mask(tmp_path / "out.csv", 3, **asked, output=tmp_path / "again.csv")
    assert again.records == 8


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_null_and_nan_become_one(tmp_path, engine, suffix):
    x = np.random.default_rng(0).normal(size=40)
    table = pl.DataFrame({"x": x, "y": x**2}).with_row_index("row")
    odd = pl.col("row") % 2 == 0
    absent = pl.when(odd).then(None).otherwise(np.nan)
    table = table.with_columns(x=pl.when(pl.col("row") < 8).then(absent).otherwise("x")).drop("row")
    table.write_parquet(tmp_path / "in.parquet")
    out = tmp_path / f"out{suffix}"
    shoal.mask(tmp_path / "in.parquet", 4, columns=["x", "y"], missing="group", engine=engine, output=out)
    if suffix == ".csv":
        assert least(out, ["x", "y"]) >= 4
    else:
        assert pl.read_parquet(out).group_by("x", "y").len()["len"].min() >= 4
    in_memory = shoal.mask(table, 4, columns=["x", "y"], missing="group").data
    assert in_memory.group_by("x", "y").len()["len"].min() >= 4


def test_a_folder_is_read_without_hidden_leftovers(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    table = pl.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)})
    table.write_parquet(folder / "a.parquet")
    table.write_parquet(folder / ".a-leftover.parquet")
    release = shoal.mask(folder, 3, columns=["x", "y"], output=tmp_path / "out.parquet")
    assert release.records == 20


def test_a_release_that_its_file_would_break_is_refused(tmp_path, monkeypatch):
    # Every error of writing is detected in the file.
    from shoal.tables.formats.text_cells import TextCells
    from shoal.tables.table import Table

    real = Table.released

    def broken(self, *arguments):
        table = real(self, *arguments)
        cells = table.store.native.with_columns(pl.Series("x", [f"{i}.0" for i in range(20)]))
        table.store.text = TextCells(cells, cells.columns)
        return table

    monkeypatch.setattr(Table, "released", broken)
    write_lines(tmp_path / "in.csv", "x,y", [numbers(20), numbers(20, 1)])
    with pytest.raises(shoal.VerificationError, match="fewer than k=3"):
        shoal.mask(tmp_path / "in.csv", 3, columns=["x", "y"], output=tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


# What is said


@pytest.mark.parametrize("engine", ENGINES)
def test_the_promise_names_columns_and_counts_what_is_unique(tmp_path, engine):
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"name": [f"person {i // 2}" for i in range(60)], "sales": rng.normal(size=60), "wages": rng.normal(size=60)}
    )
    table.write_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    asked = {"columns": ["sales", "wages"], "keep": "name", "engine": engine, "output": out}
    release = shoal.mask(tmp_path / "in.parquet", 5, **asked)
    expected = pl.read_parquet(out)
    assert release.uniques == expected.filter(expected.is_unique()).height > 0
    assert release.left == ("name",)
    assert release.verified == "every combination of sales, wages is shared by at least 5 records"
    assert "every released record" not in str(release)
    assert re.search(r"unchanged columns\s+name", str(release))
    assert f"{release.singled_out} of 60 records by the masked columns and name" in str(release)
    page = release.report(tmp_path / "r.html", original=tmp_path / "in.parquet").read_text()
    assert "sales, wages" in page
    assert "name is released unchanged" in page
    assert f"{release.singled_out} of 60 records can be singled out" in page
    assert "records look exactly alike<" not in page


def test_a_table_of_masked_columns_alone_has_no_unique_record():
    release = shoal.mask(np.random.default_rng(0).normal(size=(50, 3)), 3)
    assert (release.uniques, release.left) == (0, ())


def test_one_column_is_promised_as_one():
    release = shoal.mask(pl.DataFrame({"x": np.arange(10.0)}), 3, columns="x")
    assert release.verified == "every value of x is shared by at least 3 records"


def test_columns_masked_separately_are_counted_separately():
    table = pl.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), schema=list("abcd"))
    with pytest.warns(shoal.NotKAnonymousWarning):
        release = shoal.mask(table, 3, columns=table.columns, method="individual-ranking")
    assert release.uniques == release.data.filter(release.data.is_unique()).height > 0
    assert release.verified.startswith("each value of a, b, c, d is shared")


def test_adult_is_not_called_safe_where_columns_that_outsiders_know_are_kept(tmp_path):
    path = reference_path("adult")
    numeric = [name for name, dtype in pl.read_csv(path).schema.items() if dtype.is_numeric()]
    release = shoal.mask(path, 5, columns=numeric, rest="keep", output=tmp_path / "out.csv")
    written = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert release.uniques == written.filter(written.is_unique()).height > 10_000
    assert "native-country" in release.left
    assert f"{release.singled_out:,} of 30,162" in str(release)


# Choice of the method, and refusals of parameters that would be ignored


def test_one_column_takes_the_optimum(tmp_path):
    x = np.random.default_rng(0).lognormal(size=200)
    release = shoal.mask(pl.DataFrame({"x": x}), 5, columns="x")
    assert release.parameters["method"] == "univariate"
    assert release.loss == shoal.mask(pl.DataFrame({"x": x}), 5, columns="x", method="univariate").loss
    two = pl.DataFrame({"x": x, "y": x[::-1]})
    assert shoal.mask(two, 5, columns=["x", "y"]).parameters["method"] == "auto"
    assert np.array_equal(shoal.partition(x, 5), shoal.partition(x, 5, method="univariate"))
    pl.DataFrame({"x": x}).write_csv(tmp_path / "in.csv")
    done = command("mask", "in.csv", "-k", "5", "-c", "x", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"method\s+univariate", done.stdout)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"processes": -7}, "'processes' must be a whole number of at least 1, got -7"),
        ({"processes": 2}, "'processes' requires engine='local'"),
        ({"scheduler": "tcp://here"}, "'scheduler' requires engine='dask'"),
        ({"engine": "memory", "memory": "2GB"}, "'memory' requires engine='local'"),
        ({"engine": "local", "scheduler": "tcp://here"}, "'scheduler' requires engine='dask'"),
        ({"engine": "nonsense"}, "'engine' must be one of"),
        ({"engine": "local", "method": "univariate"}, "Method 'univariate' masks one column, got 2: x, y"),
        ({"method": "univariate"}, "Method 'univariate' masks one column, got 2: x, y"),
        ({"delimiter": ";"}, "'delimiter' requires a CSV file, got ';'"),
    ],
)
def test_no_parameter_is_ignored(tmp_path, keywords, message):
    pl.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)}).write_parquet(tmp_path / "in.parquet")
    with pytest.raises(InputError, match=re.escape(message)):
        shoal.mask(tmp_path / "in.parquet", 3, columns=["x", "y"], output=tmp_path / "out.parquet", **keywords)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"engine": "nonsense"}, "'engine' must be one of"),
        ({"engine": "memory"}, "'engine' must be 'dask' for a Dask DataFrame"),
        ({"output": "x.csv"}, "Output x.csv must"),
        ({"memory": "2GB"}, "'memory' requires engine='local'"),
        ({"method": "univariate"}, "Method 'univariate' masks one column, got 2: x, y"),
        ({"decimal": ","}, "'decimal' requires a CSV file"),
    ],
)
def test_no_parameter_is_ignored_on_dask(keywords, message):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)}), npartitions=2)
    with pytest.raises(InputError, match=re.escape(message)):
        shoal.mask(frame, 3, columns=["x", "y"], **keywords)


# Integers


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_every_frame_is_written_to_every_format(tmp_path, kind, suffix):
    out = tmp_path / f"x{suffix}"
    table = kind({"id": list("abcdef"), "x": [1.0, 9.0, 2.0, 8.5, 1.5, 9.5]})
    release = shoal.mask(table, 3, columns="x", keep="id", output=out)
    assert release.records == 6
    frame = pl.read_csv(out) if suffix == ".csv" else pl.DataFrame(pa.ipc.open_file(out).read_all()) \
        if suffix == ".feather" else pl.read_parquet(out)  # fmt: skip
    assert frame.rows() == [("a", 1.5), ("b", 9.0), ("c", 1.5), ("d", 9.0), ("e", 1.5), ("f", 9.0)]


def test_a_dropped_index_of_pandas_is_reported(tmp_path):
    frame = pd.DataFrame({"x": np.arange(6.0)}, index=list("abcdef"))
    release = shoal.mask(frame, 3, columns="x", output=tmp_path / "x.parquet")
    assert any("index of the pandas table is not in the release" in note for note in release.notes)
    assert pq.read_table(tmp_path / "x.parquet").column_names == ["x"]
    assert release.data.index.equals(pd.RangeIndex(6))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("integers", ["float", "round"])
def test_integers_beyond_floats(tmp_path, engine, integers):
    ends = np.iinfo(np.int64)
    x = np.array([ends.max, ends.max, ends.max - 1, ends.min, ends.min, ends.min + 1, 2**53 + 1, 2**53 + 1, 2**53 + 3])
    ids = np.array([2**64 - 1 - i for i in range(9)], dtype=np.uint64)
    table = pa.table({"id": ids, "x": x})
    pq.write_table(table, tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    asked = {"columns": ["x"], "keep": "id", "integers": integers}
    shoal.mask(tmp_path / "in.parquet", 3, engine=engine, output=out, **asked)
    released = pq.read_table(out)
    assert released["id"].equals(table["id"])
    found = released["x"].to_pylist()
    assert [value > 2**62 for value in found] == [True] * 3 + [False] * 6
    assert [value < -(2**62) for value in found] == [False] * 3 + [True] * 3 + [False] * 3
    in_memory = shoal.mask(table, 3, **asked).data
    assert in_memory["x"].to_pylist() == found


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_large_unsigned_integers_are_rounded_to_themselves(make):
    x = np.array([2**64 - 1] * 3 + [2**63 + 5] * 3, dtype=np.uint64)
    released = shoal.mask(make({"x": x}), 3, columns="x", integers="round").data["x"].to_numpy()
    assert released.dtype == np.uint64
    assert all(abs(int(a) - int(b)) <= 2048 for a, b in zip(released, x, strict=True))


def test_an_array_of_integers_keeps_its_identifiers():
    array = np.column_stack([2**53 + 1 + np.arange(6), np.arange(6)])
    with pytest.raises(InputError, match=r"Column 0 must contain integers up to 2\^53.*integers='round'"):
        shoal.mask(array, 3, columns=[1], keep=[0], integers="float")
    released = shoal.mask(array, 3, columns=[1], keep=[0], integers="round").data
    assert np.array_equal(released[:, 0], array[:, 0])


@pytest.mark.parametrize("engine", ENGINES)
def test_whole_numbers_stored_as_decimals_are_rounded(tmp_path, engine):
    x, y = [f"{i % 7}.0" for i in range(20)], [f"{i % 5}" for i in range(20)]
    x[3] = ""
    write_lines(tmp_path / "in.csv", "x,y,z", [x, y, numbers(20)])
    out = tmp_path / "out.csv"
    asked = {"columns": ["x", "y", "z"], "missing": "drop", "integers": "round"}
    release = shoal.mask(tmp_path / "in.csv", 3, engine=engine, output=out, **asked)
    written = pl.read_csv(out)
    assert ((written["x"] % 1 == 0) & (written["y"] % 1 == 0)).all()
    assert not (written["z"] % 1 == 0).any()
    assert any("integer columns were rounded (x, y)" in note for note in release.notes)


# Metadata


@pytest.mark.parametrize("engine", ENGINES)
def test_metadata_of_the_original_stay_behind(tmp_path, engine):
    secret = b"ACME Ltd"
    region = pa.array(["north", "south"] * 10 + ["ACME Ltd"], type=pa.string()).dictionary_encode()
    fields = [
        pa.field("x", pa.float64(), metadata={b"largest": secret}),
        pa.field("region", region.type, metadata={b"of": secret}),
    ]
    schema = pa.schema(fields, metadata={b"geo": b'{"bbox": [1, 2]}', b"pandas": b"{}", b"by": secret})
    x = [*map(float, range(20)), None]
    pq.write_table(pa.table([x, region], schema=schema), tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    shoal.mask(tmp_path / "in.parquet", 3, columns=["x"], keep="region", missing="drop", engine=engine, output=out)
    assert secret not in out.read_bytes()
    assert not {b"geo", b"pandas", b"by"} & set(pq.read_metadata(out).metadata)
    assert pq.read_table(out)["region"].to_pylist() == ["north", "south"] * 10


def test_attributes_of_pandas_stay_behind():
    frame = pd.DataFrame({"x": np.arange(6.0), "r": pd.Categorical(["a"] * 5 + ["b"], categories=["a", "b", "secret"])})
    frame.attrs["largest"] = 5.0
    frame.loc[5, "x"] = np.nan
    released = shoal.mask(frame, 3, columns="x", keep="r", missing="drop", max_left_out=1).data
    assert released.attrs == {}
    assert list(released["r"].cat.categories) == ["a"]
    assert frame.attrs == {"largest": 5.0}
