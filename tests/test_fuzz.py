"""Random tables of all kinds, masked in random ways: released and recounted, or refused with a message."""

import csv
import io
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.cases import Case
from fuzz.damage import DEFECTS as DAMAGE_DEFECTS
from fuzz.damage import FORMS, form_of, run_in_processes
from fuzz.inputs import KINDS, run_input
from fuzz.memory import DEFECTS as MEMORY_DEFECTS
from fuzz.memory import run_limited
from fuzz.recount import BrokenError, check_release
from fuzz.running import DEFECTS, run_cases

import shoal
from shoal.core.errors import FileError, InputError
from shoal.tables.files import read_table

pytestmark = pytest.mark.usefixtures("one_template")
BATCH = 50


@pytest.mark.parametrize("first", range(0, 500, BATCH))
def test_random_tables_are_released_as_promised_or_refused_with_a_message(first):
    found = list(run_cases(first, BATCH))
    defects = [f"{kind} {number}: {said}" for number, kind, said in found if kind in DEFECTS]
    assert not defects, "\n\n".join(defects)
    assert sum(kind == "released" for _, kind, _ in found) >= BATCH // 5


def test_the_recount_of_the_fuzzer_detects_broken_releases():
    table = pl.DataFrame({"x": np.arange(12.0), "note": list("abcdefghijkl")})
    case = Case(0, table.to_arrow(), {"x": "few", "note": "words"}, "polars", {"k": 3, "columns": ["x"]})
    release = shoal.mask(table, **case.asked)
    check_release(case, release, release.data)
    with pytest.raises(BrokenError, match="shared by 1 instead of 3"):
        check_release(case, release, release.data.with_columns(x=table["x"]))
    with pytest.raises(BrokenError, match="11 records were written"):
        check_release(case, release, release.data.head(11))
    with pytest.raises(BrokenError, match="column 'note' is released, but was not named"):
        check_release(case, release, release.data.with_columns(table["note"]))
    with pytest.raises(BrokenError, match=r"\['note'\] was kept, but only set\(\) was named"):
        check_release(case, shoal.mask(table, **case.asked, keep="note"), table)
    with pytest.raises(BrokenError, match="column 'note' was to be masked"):
        check_release(replace(case, asked={"k": 3, "columns": ["x", "note"]}), release, release.data)
    missing = replace(case, table=table.with_columns(pl.col("x").replace(11.0, None)).to_arrow())
    release = shoal.mask(pl.from_arrow(missing.table), **case.asked, missing="drop", max_left_out=0.1)
    check_release(missing, release, release.data)
    with pytest.raises(BrokenError, match="1 records are left out, the release says 0"):
        check_release(missing, replace(release, left_out=0), release.data)
    release.parameters["max_left_out"] = "5%"
    with pytest.raises(BrokenError, match="1 of 12 records are left out, more than 5%"):
        check_release(missing, release, release.data)


def test_the_recount_of_the_fuzzer_counts_units_that_are_not_released():
    table = pl.DataFrame({"x": np.arange(12.0), "who": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]})
    case = Case(
        0, table.to_arrow(), {"x": "few", "who": "persons"}, "polars", {"k": 2, "columns": ["x"], "unit": "who"}
    )
    release = shoal.mask(table, **case.asked)
    check_release(case, release, release.data)
    groups = pl.Series("x", [0.0] * 3 + [1.0] * 9)
    with pytest.raises(BrokenError, match="shared by 1 instead of 2"):
        check_release(case, release, release.data.with_columns(groups))


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("engine", ["memory", "local"])
def test_csv_files_keep_their_encoding_and_line_ending(tmp_path, end, encoding, engine):
    lines = ["größe;x", *(f"ä{i % 3};{i},5" for i in range(40))]
    (tmp_path / "in.csv").write_bytes((end.join(lines) + end).encode(encoding))
    out = tmp_path / "out.csv"
    shoal.mask(tmp_path / "in.csv", 4, columns=["x"], rest="keep", integers="float", engine=engine, output=out)
    text = out.read_bytes().decode(encoding)
    assert "\ufeff" not in text
    assert text.count(end) == 41
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))
    assert [row[0] for row in rows] == [line.split(";")[0] for line in lines]
    assert all("," in row[1] for row in rows[1:])


def test_a_long_field_does_not_end_the_reading(tmp_path):
    (tmp_path / "in.csv").write_text("note,x\n" + "".join(f"{'z' * 150_000},{i}\n" for i in range(6)))
    assert shoal.mask(tmp_path / "in.csv", 3, columns=["x"], keep="note").records == 6


def test_integers_beyond_doubles_keep_their_missing_cells():
    big = pa.array([2**62 + i if i % 3 else None for i in range(12)], pa.uint64())
    release = shoal.mask(pa.table({"id": big, "x": np.arange(12.0)}), 3, columns=["id"], missing="group")
    assert release.data["id"].null_count == 4


def test_text_that_means_missing_in_csv_is_refused_beside_missing_cells(tmp_path):
    table = pd.DataFrame({"x": ["", None, "north", "south"] * 4})
    with pytest.raises(InputError, match="Column 'x' holds '' and missing cells, which mean the same in a CSV file"):
        shoal.mask(table, 2, columns=["x"], missing="group", output=tmp_path / "out.csv")
    shoal.mask(table, 2, columns=["x"], missing="group", output=tmp_path / "out.parquet")


@pytest.mark.parametrize("value", [1e200, -1e300])
def test_values_whose_squares_are_infinite_are_refused(value):
    x = np.arange(10.0)
    x[3] = value
    with pytest.raises(InputError, match="must be within ±1e\\+150, but record 4"):
        shoal.mask(pl.DataFrame({"x": x}), 3, columns=["x"])
    with pytest.raises(InputError, match="Weight column 'w' must be from 1e-150 to 1e\\+150"):
        shoal.mask(pl.DataFrame({"x": np.arange(10.0), "w": np.abs(x) + 1}), 3, columns=["x"], weights="w")


def test_a_confidential_na_means_the_same_in_every_format(tmp_path):
    words = ["NA", "", "north", "south"] * 10
    (tmp_path / "in.csv").write_text("x,word\n" + "".join(f"{i},{word}\n" for i, word in enumerate(words)))
    asked = {"columns": ["x"], "confidential": "word", "closeness": 0.3}
    reached = [shoal.mask(tmp_path / "in.csv", 4, output=tmp_path / f"out{end}", **asked).reached["word"]
               for end in (".csv", ".parquet")]  # fmt: skip
    assert reached[0] == reached[1]
    assert reached[0]["diversity"] <= 3


def test_a_column_of_categories_without_any_value_is_masked():
    table = pl.DataFrame({"x": np.arange(6.0), "word": pl.Series([None] * 6, dtype=pl.String)})
    release = shoal.mask(table, 3, columns=["x", "word"], missing="group")
    assert release.data["word"].null_count() == 6


def test_cells_that_a_format_cannot_store_are_refused_by_column(tmp_path):
    table = pl.DataFrame({"x": np.arange(6.0), "bad": [[1]] * 6, "inf": [np.inf] * 6, "a b": [1] * 6})
    for end, left, said in (
        (".csv", ["x", "bad"], "cannot hold column 'bad'"),
        (".xlsx", ["x", "inf"], "column 'inf' has some"),
        (".sav", ["x", "a b"], "cannot store this table.*'a b'"),
    ):
        with pytest.raises(FileError, match=said):
            shoal.mask(table.select(left), 3, columns=["x"], rest="keep", output=tmp_path / f"out{end}")
    for unsuitable, noun in (({"unit": "bad"}, "Unit c"), ({"confidential": "bad"}, "C"), ({"by": "bad"}, "Stratum c")):
        with pytest.raises(InputError, match=rf"^{noun}olumn 'bad'.* type is List"):
            shoal.mask(table, 3, columns=["x"], **unsuitable)
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_tables_are_refused(tmp_path):
    twice = pa.table([pa.array([1.0] * 6)] * 2, names=["x", "x"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="'x'"):
        shoal.mask(tmp_path / "twice.parquet", 3)
    for end in (".parquet", ".feather"):
        (tmp_path / f"broken{end}").write_bytes(b"PAR1 nothing")
        with pytest.raises(FileError, match="cannot be read as"):
            shoal.mask(tmp_path / f"broken{end}", 3)
    (tmp_path / "x.csv").write_text("x\n1\n2\n3\n")
    with pytest.raises(InputError, match="Parameter 'delimiter' must be one ASCII character"):
        shoal.mask(tmp_path / "x.csv", 3, delimiter=";;")


@pytest.mark.filterwarnings("default")  # Dask and its libraries warn about themselves
@pytest.mark.parametrize("engine", ["memory", "local", "dask"])
def test_a_column_without_a_name_is_masked_on_every_engine(tmp_path, engine):
    (tmp_path / "in.csv").write_text(",x\n" + "".join(f"{i % 4},{i}\n" for i in range(40)))
    out = tmp_path / "out.parquet"
    shoal.mask(tmp_path / "in.csv", 3, columns=["", "x"], engine=engine, output=out)
    assert pq.read_schema(out / "part-00000.parquet" if engine == "dask" else out).names == ["", "x"]


@pytest.mark.filterwarnings("default")
def test_types_that_dask_cannot_store_or_compute_are_refused():
    dd = pytest.importorskip("dask.dataframe")
    twice = pd.DataFrame(np.arange(12.0).reshape(6, 2), columns=["x", "x"])
    with pytest.raises(InputError, match="'x' appears more than once"):
        shoal.mask(dd.from_pandas(twice, npartitions=2), 3)
    letters = pd.DataFrame({"x": np.arange(6.0), "raw": [b"a"] * 5 + [b"\xa3"]})
    with pytest.raises(InputError, match=r"'data' cannot be computed by Dask \(UnicodeDecodeError"):
        shoal.mask(dd.from_pandas(letters, npartitions=2), 3, columns=["x"], keep=["raw"])


def test_a_unit_that_is_a_duration_is_refused():
    table = pl.DataFrame({"x": np.arange(6.0), "span": np.arange(6).astype("timedelta64[ms]")})
    with pytest.raises(InputError, match="Unit column 'span' must hold numbers or text, but its type is Duration"):
        shoal.mask(table, 2, columns=["x"], unit="span")


@pytest.mark.parametrize("dropped", [0, 1, 2])
def test_an_array_without_some_columns_is_counted_by_the_right_ones(dropped):
    X = np.random.default_rng(0).normal(size=(60, 3))
    masked = [column for column in range(3) if column != dropped]
    release = shoal.mask(X, 3, columns=masked[1:], identifiers=dropped, rest="keep", method="mdav")
    assert release.left == (masked[0],)
    assert release.data[:, 0] == pytest.approx(X[:, masked[0]])
    assert np.unique(release.data[:, 1], return_counts=True)[1].min() >= 3


@pytest.mark.parametrize("seed", [-1, "now", 1.5, True])
def test_a_seed_is_a_number_from_0_on(seed):
    for name in ("seed", "shuffle") if seed is not True else ("seed",):
        with pytest.raises(InputError, match=f"'{name}' must be a whole number of at least 0, got {seed!r}"):
            shoal.mask(np.arange(9.0), 3, **{name: seed})


def test_cells_that_excel_cannot_store_are_refused_by_column(tmp_path):
    times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 6), "1d", time_zone="UTC", eager=True)
    for bad in (pl.Series("raw", [b"a"] * 6), times.alias("when"), pl.Series("", [1] * 6)):
        with pytest.raises(FileError, match=f"Excel cannot store .*{bad.name or 'without a name'}"):
            shoal.mask(pl.DataFrame({"x": np.arange(6.0)}).with_columns(bad), 3, columns=["x"], rest="keep",
                       output=tmp_path / "out.xlsx")  # fmt: skip


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_invalid_tables_are_refused_on_disk_too(tmp_path, engine):
    asked = {"engine": engine, "output": tmp_path / "out.parquet"}
    pq.write_table(pa.table([pa.array([1.0] * 6)] * 2, names=["x", "x"]), tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="'x' appears more than once"):
        shoal.mask(tmp_path / "twice.parquet", 3, **asked)
    (tmp_path / "none.csv").write_text("x,day\n")
    with pytest.raises(InputError, match="no records"):
        shoal.mask(tmp_path / "none.csv", 3, columns=["day"], kinds={"day": shoal.Date()}, **asked)


def test_categories_of_an_array_beyond_integers_are_refused():
    X = np.array([2**63 + 2**40, 1, 2, 3, 4, 5], dtype=np.uint64)
    with pytest.raises(InputError, match=r"whole numbers below 2\^63, but column 0 holds 9223"):
        shoal.mask(X, 3, columns=[0], kinds={0: shoal.Nominal()})


@pytest.mark.parametrize("ending", ["dta", "sav", "xlsx"])
def test_integers_that_a_format_would_round_are_refused(tmp_path, ending):
    table = pl.DataFrame({"x": np.arange(6.0), "id": [2**60 + i for i in range(6)]})
    with pytest.raises(FileError, match=r"cannot store whole numbers above 2\^53, as in column 'id'"):
        shoal.mask(table, 3, columns=["x"], keep=["id"], output=tmp_path / f"out.{ending}")
    smaller = table.with_columns(id=2**53 - pl.Series(range(6)))
    shoal.mask(smaller, 3, columns=["x"], keep=["id"], output=tmp_path / f"out.{ending}")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_damaged_files_are_read_or_refused_by_name():
    """In separate processes: such a file once crashed the process that read it."""
    found = list(run_in_processes(0, 10 * len(FORMS)))
    defects = [f"{kind} {number}: {said}" for number, kind, said in found if kind in DAMAGE_DEFECTS]
    assert not defects, "\n\n".join(defects)
    assert len(found) == 10 * len(FORMS)
    refused = {form_of(number) for number, kind, _ in found if kind == "refused"}
    assert refused == set(range(len(FORMS))), "of every format and engine some are refused"


@pytest.mark.parametrize("number", [279, 837, 1281])
def test_damaged_files_that_once_crashed_are_refused(number):
    """Metadata that are not text, and SPSS files whose value labels belong to no column."""
    assert [kind for _, kind, _ in run_in_processes(number, 1)] == ["refused"]


def test_cells_of_an_arrow_file_are_validated_before_they_are_used(tmp_path):
    """Offsets beyond the text, and categories beyond the list of them, are read out of bounds by other libraries."""
    words = pa.array(["north", "south"] * 6)
    offsets = np.frombuffer(words.buffers()[1], dtype=np.int32).copy()
    offsets[5] = 2**30
    text = pa.StringArray.from_buffers(12, pa.py_buffer(offsets), words.buffers()[2])
    codes = pa.array([0, 1, 9_999_999] * 4, pa.int32())
    unsafe = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    for name, cells in (("text", text), ("categories", unsafe)):
        path = tmp_path / f"{name}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("word", cells.type)])) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays([cells], ["word"]))
        with pytest.raises(FileError, match=rf"File .*{name}.arrow cannot be read as .arrow: .* restore a copy"):
            read_table(path)


def test_odd_inputs_are_used_or_refused_with_a_message():
    found = [(number, *run_input(number)) for number in range(20 * len(KINDS))]
    defects = [f"{kind} {number}: {said}" for number, kind, said in found if kind in ("raw", "unclear")]
    assert not defects, "\n\n".join(defects)
    assert {said.partition(":")[0] for _, kind, said in found if kind == "refused"} == {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("number", [282, 600, 606, 1667, 2039])
def test_odd_inputs_that_once_raised_other_exceptions_are_used_or_refused(number):
    assert run_input(number)[0] in ("used", "refused")


LIMITED = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits addresses")


@LIMITED
def test_runs_that_lack_memory_release_as_promised_or_leave_everything_as_it_was():
    results = [(number, *run_limited(number)) for number in range(4, 12)]
    assert not [f"{kind} {number}: {message}" for number, kind, message in results if kind in MEMORY_DEFECTS]
    kinds = {kind for _, kind, _ in results}
    assert "released" in kinds
    assert kinds & {"refused", "ended"}, "some runs lack memory"


@LIMITED
@pytest.mark.parametrize("number", [1, 13, 65, 168])
def test_runs_that_once_misreported_a_lack_of_memory_do_not(number):
    """They named a damaged file or a missing extra, or printed a traceback."""
    kind, message = run_limited(number)
    assert kind not in MEMORY_DEFECTS, message
