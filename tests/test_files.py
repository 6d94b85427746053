"""Files in and out: dialects, formats, and no lost, changed or half-written data."""

import csv
import pickle
import re
import shlex
import time
from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command
from pyarrow import feather, parquet

import shoal
from shoal.core.errors import FileError, InputError
from shoal.demo import firms
from shoal.tables.addresses import find_places
from shoal.tables.files import FORMATS, Format, read_table, write_file
from shoal.tables.formats.csv_files import write_csv
from shoal.tables.formats.frames import open_table
from shoal.tables.number_text import Dialect
from shoal.tables.outputs import written_beside
from shoal.tables.reading import ReadingOptions

ROWS = 'id,v,w,note\n007,1.50,10,a\n008,2.50,20,NA\n009,9.50,30,"x, y"\n010,8.50,40,\n'
EXACT = {"integers": "float", "decimals": "all"}  # means with all their digits
UNCHANGED = {"rest": "keep", **EXACT}  # columns that are not masked are written back


def masked_lines(tmp_path, content, name="in.csv", encoding="utf-8", **keywords):
    path = tmp_path / name
    path.write_bytes(content.encode(encoding))
    release = shoal.mask(path, 2, output=tmp_path / "out.csv", **keywords)
    return (tmp_path / "out.csv").read_bytes().decode(encoding).splitlines(), release


def test_unmasked_columns_are_written_back_unchanged(tmp_path):
    lines, _ = masked_lines(tmp_path, ROWS, columns=["v"], keep=["id"], **UNCHANGED)
    assert lines == ["id,v,w,note", "007,2.0,10,a", "008,2.0,20,NA", '009,9.0,30,"x, y"', "010,9.0,40,"]


def test_codes_with_leading_zeros_are_not_numbers_unless_named(tmp_path):
    lines, release = masked_lines(tmp_path, ROWS)
    assert release.columns == ["v", "w", "note"]
    assert list(release.dropped) == ["id"]
    assert lines[0] == "v,w,note"
    _, release = masked_lines(tmp_path, ROWS.replace("id,", "code,"))
    assert release.kinds["code"] == "nominal"
    _, release = masked_lines(tmp_path, ROWS, columns=["id"])
    assert release.columns == ["id"]


@pytest.mark.parametrize(("delimiter", "decimal"), [(",", "."), (";", ","), (";", "."), ("\t", "."), ("|", ",")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_dialects_are_detected_and_kept(tmp_path, delimiter, decimal, encoding, newline):
    cells = [["café", "v"], ["ä", "1.5"], ["é", "2.5"], ["ß", "8.5"], ["ü", "9.0"]]
    content = newline.join(delimiter.join(row).replace(".", decimal) for row in cells) + newline
    masked_lines(tmp_path, content, encoding=encoding, columns=["v"], **UNCHANGED)
    released = (tmp_path / "out.csv").read_bytes().decode(encoding)
    expected = [["café", "v"], ["ä", "2.0"], ["é", "2.0"], ["ß", "8.75"], ["ü", "8.75"]]
    assert released == newline.join(delimiter.join(row).replace(".", decimal) for row in expected) + newline


def test_given_dialect_wins(tmp_path):
    lines, _ = masked_lines(tmp_path, "a;b|v\n1;2|3\n1;2|5\n", delimiter="|", columns=["v"], **UNCHANGED)
    assert lines == ["a;b|v", "1;2|4.0", "1;2|4.0"]


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"encoding": "utf-9"}, InputError, "'encoding' must be a known text encoding, such as 'utf-8', got 'utf-9'"),
        ({"encoding": "rot13"}, InputError, "'encoding' must be a known text encoding, such as 'utf-8', got 'rot13'"),
        ({"encoding": "hex"}, InputError, "'encoding' must be a known text encoding, such as 'utf-8', got 'hex'"),
        ({"encoding": "zlib"}, InputError, "'encoding' must be a known text encoding, such as 'utf-8', got 'zlib'"),
        (
            {"encoding": "undefined"},
            InputError,
            "'encoding' must be a known text encoding, such as 'utf-8', got 'undefined'",
        ),
        ({"encoding": 5}, InputError, "'encoding' must be a known text encoding, such as 'utf-8', got 5"),
        ({"encoding": "utf-16"}, FileError, "is not in encoding 'utf-16': .* Set another encoding"),
        ({"encoding": "ascii"}, FileError, "is not in encoding 'ascii'"),
        ({"decimal": ";"}, InputError, r"'decimal' must be '\.' or ',', got ';'"),
    ],
)
def test_a_wrong_dialect_is_refused(tmp_path, keywords, error, words):
    (tmp_path / "in.csv").write_text("ä,b\n1,2\n", encoding="utf-8")
    with pytest.raises(error, match=words):
        read_table(tmp_path / "in.csv", reading=ReadingOptions(**keywords))


SALES = {
    ".": ["90.000,50", "950,50", "1.234.567", "-1.000"],
    ",": ["90,000.50", "950.50", "1,234,567", "-1,000"],
    " ": ["90 000,50", "950,50", "1\u00a0234\u202f567", "-1 000"],
    "'": ["90'000.50", "950.50", "1'234’567", "-1000"],
}


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize("sign", SALES)
@pytest.mark.usefixtures("one_template")
def test_a_thousands_sign_is_read_once_it_is_named(tmp_path, engine, sign):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    lines = [f"{i};{cell};{cell}" for i, cell in enumerate(SALES[sign] * 2)]
    source.write_text("\n".join(["id;sales;same", *lines]) + "\n", encoding="utf-8")
    asked = {"columns": "sales", "keep": ["id"], "engine": engine, "output": target, **UNCHANGED}
    with pytest.raises(InputError, match=f"'sales' must be numeric, but record 1 holds .*thousands={sign!r}"):
        shoal.mask(source, 2, **asked)
    assert shoal.mask(source, 2, thousands=sign, **asked).loss == 0
    decimal = "," if sign in ". " else "."
    plain = [cell.replace(".", decimal) for cell in ("90000.5", "950.5", "1234567.0", "-1000.0")]
    expected = [f"{i};{new};{old}" for i, (new, old) in enumerate(zip(plain * 2, SALES[sign] * 2, strict=True))]
    assert target.read_text(encoding="utf-8").splitlines() == ["id;sales;same", *expected]


@pytest.mark.parametrize(
    ("cells", "keywords", "words"),
    [
        (["1.000,5", "1.5"], {"thousands": "."}, r"record 2 holds '1\.5'"),
        (["1.000,5", "0.123"], {"thousands": "."}, r"record 2 holds '0\.123'"),
        (["1 000", "1 00"], {"thousands": " "}, "record 2 holds '1 00'"),
        (["$28,000", "$1,500"], {}, r"record 1 holds '\$28,000'. Remove the currency"),
        (["28.000 €", "1.500 €"], {"thousands": "."}, "record 1 holds '28.000 €'. Remove the currency"),
        (["EUR 28", "EUR 15"], {}, "Remove the currency"),
        (["1,5", "2,5"], {"thousands": "x"}, r"'thousands' must be '\.' or ',' or ' ' or .*, got 'x'"),
        (
            ["1,5", "2,5"],
            {"thousands": ",", "decimal": ","},
            "'thousands' must be .* not the decimal sign, got ','",
        ),
    ],
)
def test_text_that_is_not_a_number_with_a_thousands_sign_is_refused(tmp_path, cells, keywords, words):
    with pytest.raises(InputError, match=words):
        masked_lines(tmp_path, "\n".join(["id;v", *(f"{i};{cell}" for i, cell in enumerate(cells)), ""]), columns="v",
                     **keywords)  # fmt: skip


def test_strata_with_and_without_a_thousands_sign_are_one(tmp_path):
    content = "size;v\n1.000;1\n1000;2\n20;5\n20;6\n"
    lines, _ = masked_lines(tmp_path, content, columns="v", by="size", thousands=".", **EXACT)
    assert lines == ["size;v", "1000;1,5", "1000;1,5", "20;5,5", "20;5,5"]


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize("aggregate", ["mean", "median"])
@pytest.mark.usefixtures("one_template")
def test_means_have_no_digits_that_are_noise(tmp_path, engine, aggregate):
    content = "id;v\n1;0,1\n2;0,2\n3;7,1\n4;7,3\n"
    lines, release = masked_lines(
        tmp_path, content, columns="v", keep=["id"], decimals="all", engine=engine, aggregate=aggregate
    )
    assert lines == ["id;v", "1;0,15", "2;0,15", "3;7,2", "4;7,2"]
    assert engine == "local" or release.data["v"].to_list() == [0.15, 0.15, 7.2, 7.2]


def test_missing_cells_keep_their_word(tmp_path):
    content = "v,w\n1,NA\n2,NA\n3,5\n5,7\n"
    lines, _ = masked_lines(tmp_path, content, missing="group", **EXACT)
    assert lines == ["v,w", "1.5,NA", "1.5,NA", "4.0,6.0", "4.0,6.0"]


def test_dropped_records_leave_the_file(tmp_path):
    content = "v,t\n1,a\n,b\n3,c\n"
    lines, release = masked_lines(tmp_path, content, columns=["v"], missing="drop", max_left_out=0.34, **UNCHANGED)
    assert lines == ["v,t", "2.0,a", "2.0,c"]
    assert release.kept.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ("", FileError, "is empty"),
        ("\n\n", FileError, "is empty"),
        ("a,b\n", InputError, "'k' must not exceed the number of records: k=2, but the table has 0 records"),
        ("a,b,a\n1,2,3\n", InputError, "'a' appears more than once"),
        ("a,b\n1,2\n1,2,3\n4,5\n", FileError, "cannot be read as CSV"),
        ("a,b\n1,x\n2,y\n", InputError, "k=2|Did you mean|'c'"),
    ],
)
def test_csv_files_that_cannot_be_masked(tmp_path, content, error, words):
    path = tmp_path / "in.csv"
    path.write_text(content)
    keywords = {"columns": ["c"]} if "x" in content else {}
    with pytest.raises(error, match=words):
        shoal.mask(path, 2, output=tmp_path / "out.csv", **keywords)
    assert [file.name for file in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
def test_arrow_files_keep_types_and_metadata(tmp_path, suffix):
    table = firms(60).drop("research").to_arrow()
    table = table.append_column("day", pa.array(range(60), pa.date32()))
    table = table.replace_schema_metadata({"made by": "nobody"})
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    write_file(table, source)
    release = shoal.mask(source, 3, columns=["sales", "wages"], keep=["day"], rest="keep", output=target)
    back = parquet.read_table(target) if suffix == ".parquet" else feather.read_table(target)
    assert back.drop(["sales", "wages"]).equals(table.drop(["sales", "wages"]))
    assert back.equals(release.data)
    assert pl.from_arrow(back).group_by("sales", "wages").len()["len"].min() >= 3


def test_any_format_to_any_other(tmp_path):
    table = firms(60).drop("research")
    write_file(table, tmp_path / "0.csv")
    names = ["0.csv", "1.parquet", "2.feather", "3.dta", "4.sav", "5.xpt", "6.tsv", "7.xlsx", "8.csv"]
    for here, there in pairwise(names):
        write_file(read_table(tmp_path / here).native, tmp_path / there)
    back = read_table(tmp_path / "8.csv").native
    assert back.columns == table.columns
    assert np.allclose(back["sales"].to_numpy(), table["sales"].to_numpy())
    assert back["sector"].to_list() == table["sector"].to_list()


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta"])
def test_statistical_files_keep_their_labels(tmp_path, suffix):
    import pyreadstat

    frame = pl.DataFrame({"v": [1.0, 2.0, 8.0, 9.0], "sex": [1, 2, 1, 2]})
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    write = pyreadstat.write_dta if suffix == ".dta" else pyreadstat.write_sav
    write(frame, source, column_labels={"v": "A value"}, variable_value_labels={"sex": {1: "m", 2: "f"}})
    shoal.mask(source, 2, columns=["v"], output=target, **UNCHANGED)
    read = pyreadstat.read_dta if suffix == ".dta" else pyreadstat.read_sav
    back, labels = read(target, output_format="polars")
    assert back["v"].to_list() == [1.5, 1.5, 8.5, 8.5]
    assert back["sex"].to_list() == [1, 2, 1, 2]
    assert labels.column_names_to_labels["v"] == "A value"
    assert labels.variable_value_labels["sex"] == {1: "m", 2: "f"}


@pytest.mark.parametrize(
    ("source", "target", "error", "words"),
    [
        ("gone.csv", "out.csv", FileError, "does not exist"),
        ("in.doc", "out.csv", InputError, "must end in one of .csv"),
        ("in.csv", "out.doc", InputError, "must end in .csv"),
        ("in.csv", "no/such/out.csv", FileError, "folder .*such does not exist"),
        ("in.csv", "folder.csv", FileError, "it is a folder"),
        ("in.csv", "in.csv/out.csv", FileError, "does not exist"),
        ("in.csv", "in.csv", InputError, "must not be the input"),
        ("bad.parquet", "out.csv", FileError, "cannot be read as .parquet"),
        ("bad.sav", "out.csv", FileError, "cannot be read as .sav"),
        ("bad.xlsx", "out.csv", FileError, "cannot be read as .xlsx"),
    ],
)
def test_paths_that_cannot_be_used(tmp_path, source, target, error, words):
    (tmp_path / "in.csv").write_text(ROWS)
    (tmp_path / "bad.parquet").write_text("no")
    (tmp_path / "bad.sav").write_text("no")
    (tmp_path / "bad.xlsx").write_text("no")
    (tmp_path / "folder.csv").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=words):
        shoal.mask(tmp_path / source, 2, output=tmp_path / target)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "in.csv").read_text() == ROWS


def test_a_read_only_folder_is_refused_before_work(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_text(ROWS)
    monkeypatch.setattr("shoal.tables.files.os.access", lambda *_: False)
    with pytest.raises(FileError, match="no write permission for folder"):
        shoal.mask(tmp_path / "in.csv", 2, output=tmp_path / "out.csv")


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_a_full_disk_is_not_blamed_on_the_table(suffix, tmp_path, monkeypatch):
    pyreadstat = pytest.importorskip("pyreadstat")

    def full(*_, **__):
        raise pyreadstat.ReadstatError("Unable to write data")

    monkeypatch.setattr(pyreadstat, "write_xport" if suffix == ".xpt" else f"write_{suffix[1:]}", full)
    target = tmp_path / f"out{suffix}"
    with pytest.raises(FileError, match=f"^Output {re.escape(str(target))} cannot be written: the disk may be full.$"):
        shoal.mask(pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]}), 2, output=target)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
def test_interrupted_while_writing_leaves_the_old_file(tmp_path, monkeypatch, problem):
    (tmp_path / "in.csv").write_text(ROWS)
    (tmp_path / "out.csv").write_text("old")

    def half(text, path, dialect):
        path.write_text("half of it")
        raise problem

    monkeypatch.setattr("shoal.tables.files.write_csv", half)
    expected = FileError if isinstance(problem, OSError) else problem
    with pytest.raises(expected):
        shoal.mask(tmp_path / "in.csv", 2, output=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_a_new_file_replaces_the_old_one_whole(tmp_path):
    target = tmp_path / "t.txt"
    target.write_text("old")
    target.chmod(0o640)
    with written_beside(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_an_encoding_that_cannot_hold_the_text_is_refused(tmp_path):
    with pytest.raises(FileError, match="Encoding 'cp1252' cannot write '→'"):
        write_csv(pl.DataFrame({"a": ["→"]}), tmp_path / "x.csv", Dialect(encoding="cp1252"))


@pytest.mark.parametrize(("name", "cells"), [("a;b", [1.5, 2.5]), ("a", ["x|y", "z"]), ("a", ["1,5", None])])
def test_a_file_of_one_column_is_read_equally_with_any_delimiter(tmp_path, name, cells):
    write_csv(pl.DataFrame({name: cells}), tmp_path / "x.csv", Dialect())
    for delimiter in ",;\t|":
        with (tmp_path / "x.csv").open(newline="") as file:
            rows = list(csv.reader(file, delimiter=delimiter))
        assert rows == [[name], *([str(cell) if cell is not None else ""] for cell in cells)]


@pytest.mark.parametrize(("name", "extra"), [("in.sav", "stat"), ("in.xlsx", "excel")])
def test_without_the_extra_the_remedy_is_named(tmp_path, monkeypatch, name, extra):
    import sys

    (tmp_path / name).write_bytes(b"$FL2")
    for library in ("pyreadstat", "fastexcel", "xlsxwriter"):
        monkeypatch.setitem(sys.modules, library, None)
    for work in (read_table, lambda path: write_file(firms(9), path)):
        with pytest.raises(FileError, match=rf"pip install 'shoal\[{extra}\]'"):
            work(tmp_path / name)


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta", ".xpt", ".xlsx"])
def test_decimals_are_numbers_in_files_that_hold_doubles(tmp_path, suffix):
    """As text, closeness of a confidential column would be that of words, and missing cells would be blanks."""
    paid = pl.Series([Decimal(cents) / 100 for cents in (150, 225, 1000, 710, 90, 905)] * 2, dtype=pl.Decimal(12, 2))
    table = pl.DataFrame({"age": [float(n // 2) for n in range(12)], "paid": paid}).with_columns(
        unpaid=pl.when(pl.col("age") > 2).then("paid")
    )
    asked = {"columns": ["age"], "confidential": ["paid"], "closeness": 0.5, "seed": 0}
    release = shoal.mask(table, 3, **asked, rest="keep", output=tmp_path / f"out{suffix}")
    assert release.reached == shoal.mask(table, 3, **asked, rest="keep", output=tmp_path / "out.parquet").reached
    written = pl.from_arrow(pa.table(read_table(tmp_path / f"out{suffix}").native))
    for name in ("paid", "unpaid"):
        assert written[name].cast(pl.Float64).to_list() == table[name].cast(pl.Float64).to_list()
    long = table.with_columns(paid=pl.Series([Decimal("1234567890123456789.01")] * 12, dtype=pl.Decimal(30, 2)))
    with pytest.raises(
        FileError, match=r"cannot store numbers of more than about 15 digits, as in column 'paid' of type Decimal"
    ):
        shoal.mask(long, 3, columns=["age"], keep=["paid"], output=tmp_path / f"long{suffix}")
    assert not (tmp_path / f"long{suffix}").exists()


@pytest.mark.filterwarnings("ignore::shoal.FormulaWarning")
def test_confidential_durations_are_as_close_in_a_file_of_text(tmp_path):
    """As text, -P1D would come after -PT2H, and P10D before P2D."""
    rng = np.random.default_rng(1)
    waits = [timedelta(hours=int(h), seconds=int(s)) for h, s in rng.integers(-300, 300, (60, 2))]
    table = pl.DataFrame(
        {
            "age": [float(n) for n in range(60)],
            "wait": [None, *waits[1:]],
            "seen": pl.Series(waits) + pl.Series([date(2024, 1, 1)]).cast(pl.Datetime),
        }
    ).with_columns(clock=pl.col("seen").dt.time())
    asked = {"columns": ["age"], "confidential": ["wait", "seen", "clock"], "keep": ["wait"]}
    wanted = shoal.mask(table, 5, **asked, output=tmp_path / "out.parquet").reached
    for escape in (False, True):
        release = shoal.mask(table, 5, **asked, output=tmp_path / "out.csv", escape_formulas=escape)
        assert release.reached == wanted
    assert wanted["wait"]["closeness"] > 0.1


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_columns_of_a_csv_file_have_one_type_in_a_parquet_file_by_any_engine(tmp_path, engine, monkeypatch):
    """As text in one part and numbers in another, values would differ, and closeness would treat numbers as words."""
    monkeypatch.setattr("shoal.engines.local.RECORDS", 40)
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "x": rng.integers(0, 99, 120),
            "paid": [None if n % 7 == 0 else str(n) if n < 90 else f"{n}.5" for n in range(120)],  # whole at first
            "note": [f"{n}" if n < 100 else "late" for n in range(120)],  # numbers at first
            "code": [f"{n:03}" for n in range(120)],
            "empty": [None if n < 50 else "NA" for n in range(120)],
            "year": ["1", "2", "1.0"] * 40,
            "level": rng.choice(["1", "2", "3"], 120),
        }
    )
    table.write_csv(tmp_path / "in.csv")
    asked = {
        "columns": ["x", "level"], "kinds": {"level": shoal.Nominal()}, "by": "year", "confidential": ["paid"],
        "closeness": 0.3, "method": "mdav", "keep": ["code", "note"], "rest": "keep", **EXACT,
    }  # fmt: skip
    expected = shoal.mask(tmp_path / "in.csv", 3, **asked, output=tmp_path / "memory.parquet")
    release = shoal.mask(tmp_path / "in.csv", 3, **asked, engine=engine, output=tmp_path / "out.parquet")
    wanted = pl.read_parquet(tmp_path / "memory.parquet")
    assert wanted.select("paid", "note", "code", "empty", "year").dtypes == [pl.Float64, *[pl.String] * 3, pl.Int64]
    found = pl.read_parquet(tmp_path / "out.parquet" if engine == "local" else tmp_path / "out.parquet" / "*.parquet")
    assert found.schema == wanted.schema
    assert found.equals(wanted)
    assert release.reached == expected.reached


def test_units_that_were_times_are_numbers_in_a_file_of_stata(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    given = pl.DataFrame({"unit": [clock(i, 5) for i in range(12)], "x": [float(i) for i in range(12)]})
    pyreadstat.write_dta(given, tmp_path / "in.dta", variable_format={"unit": "%tcHH:MM:SS"})
    shoal.mask(tmp_path / "in.dta", 3, columns=["x"], unit="unit", keep="unit", shuffle=0, output=tmp_path / "out.dta")
    found = pyreadstat.read_dta(tmp_path / "out.dta", output_format="polars")[0]
    assert sorted(found["unit"].to_list()) == list(range(1, 13))


# Excel: the first sheet comes back cell by cell except for masked columns


@pytest.fixture
def sheet():
    days = [date(2020, 2, day) for day in range(1, 9)]
    return pl.DataFrame(
        {
            "code": [f"00{i}" for i in range(8)],
            "income": [1200, 1300, 1500, 1600, 9000, 9200, 9400, 9500],
            "rate": [0.1, 0.25, None, 0.2, 0.9, 0.95, 0.8, 0.85],
            "day": days,
            "when": [datetime.combine(day, clock(12, 30)) for day in days],
            "note": ["=1+1", "http://example.org", None, "ä", "e", "f", "g", "h"],
            "year": [2000 + i for i in range(8)],
            "flag": [i % 2 == 0 for i in range(8)],
        },
        schema_overrides={"when": pl.Datetime("ms")},
    )


def test_excel_files_keep_dates_integers_and_text(tmp_path, sheet):
    write_file(sheet, tmp_path / "in.xlsx")
    assert read_table(tmp_path / "in.xlsx").native.equals(sheet)
    asked = {"keep": ["code"], "rest": "keep"}
    release = shoal.mask(tmp_path / "in.xlsx", 4, columns="income", output=tmp_path / "out.xlsx", **asked)
    back = read_table(tmp_path / "out.xlsx").native
    assert back.drop("income").equals(sheet.drop("income"))
    assert back["income"].to_list() == release.data["income"].to_list() == [1400] * 4 + [9275] * 4
    asked |= {"missing": "drop", "max_left_out": 0.125}
    shoal.mask(tmp_path / "in.xlsx", 4, columns="rate", output=tmp_path / "again.xlsx", **asked)
    back = read_table(tmp_path / "again.xlsx").native
    assert back["rate"].n_unique() == 1
    assert back["code"].to_list() == [f"00{i}" for i in range(8) if i != 2]


def test_the_same_table_makes_the_same_excel_file(tmp_path, sheet):
    for name in ("a.xlsx", "b.xlsx"):
        write_file(sheet, tmp_path / name)
        time.sleep(1.1)  # a file with a time of creation would differ after a second
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


def test_text_far_below_numbers_is_not_lost(tmp_path):
    write_file(pl.DataFrame({"v": [*map(str, range(1500)), "x"]}), tmp_path / "in.xlsx")
    with pytest.raises(InputError, match="'v' must be numeric, but record 1501 holds 'x'"):
        shoal.mask(tmp_path / "in.xlsx", 2, columns="v")


@pytest.mark.parametrize(
    ("first", "names", "error", "words"),
    [
        (
            [],
            ["Cover", "Data"],
            FileError,
            "no records in its first sheet, 'Cover'; other sheets: 'Data'. Select one with 'sheet'",
        ),
        ([], ["Data"], FileError, r"no records in its first sheet, 'Data'\.$"),
        ([["v", "v"], [1, 2]], ["Data"], InputError, "names must be unique, but 'v' appears more than once"),
        ([["Incomes of 2020"], ["v", "w"], [1, 2]], ["Data"], FileError, "name all columns .* column 2 has no name"),
    ],
)
def test_excel_files_that_are_no_tables(tmp_path, first, names, error, words):
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "in.xlsx") as book:
        sheets = [book.add_worksheet(name) for name in names]
        for i, row in enumerate(first):
            sheets[0].write_row(i, 0, row)
    with pytest.raises(error, match=words):
        read_table(tmp_path / "in.xlsx")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pl.DataFrame({"v": np.zeros(1_048_576)}), "at most 1,048,575 records per sheet, got 1,048,576"),
        (pl.DataFrame({"v": ["x" * 32_768]}), "at most 32,767 characters per cell; column 'v' has more"),
    ],
)
def test_cells_that_excel_cannot_store_are_refused(tmp_path, frame, words):
    with pytest.raises(FileError, match=words):
        write_file(frame, tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir())


def test_excel_files_are_masked_in_memory(tmp_path, sheet):
    write_file(sheet, tmp_path / "in.xlsx")
    for source, target in (("in.xlsx", "out.csv"), ("in.csv", "out.xlsx")):
        with pytest.raises(InputError, match=rf"\.xlsx|{target} must end in"):
            shoal.mask(tmp_path / source, 2, engine="local", output=tmp_path / target)


# Statistical packages: unmasked columns come back cell by cell


@pytest.fixture
def spss(tmp_path):
    library = pytest.importorskip("pyreadstat")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(1000, 9000, 40).astype(float),
            "age": rng.integers(18, 90, 40).astype(float),
            "answer": np.tile([1.0, 2.0, 98.0, 99.0], 10),
            "note": np.tile(["a", "b", "x", ""], 10),
        }
    )
    frame.loc[:5, "income"] = [97396.0, 97396.0, 97396.0, 98.0, 99.0, np.nan]
    library.write_sav(
        frame,
        tmp_path / "in.sav",
        missing_ranges={"answer": [98, 99], "income": [{"lo": 98, "hi": 99}], "note": ["x"]},
        variable_value_labels={"income": {97396.0: "CEO of ACME"}, "answer": {98.0: "refused"}},
        column_labels={"income": "yearly income"},
        variable_format={"answer": "F3.0"},
    )
    return tmp_path


def test_spss_user_missing_cells_stay_where_nothing_is_masked(spss):
    import pyreadstat

    asked = {"columns": ["income", "age"], "missing": "group", "rest": "keep"}
    shoal.mask(spss / "in.sav", 3, **asked, output=spss / "out.sav")
    before, known = pyreadstat.read_sav(spss / "in.sav", user_missing=True)
    after, kept = pyreadstat.read_sav(spss / "out.sav", user_missing=True)
    for name in ("answer", "note"):
        pd.testing.assert_series_equal(after[name], before[name])
        assert kept.missing_ranges[name] == known.missing_ranges[name]
    assert kept.original_variable_types["answer"] == "F3.0"
    assert kept.variable_value_labels == {"answer": {98.0: "refused"}}
    assert kept.column_names_to_labels["income"] == "yearly income"
    # In masked columns missing cells have one spelling, and no code of the original is defined.
    assert after["income"].isna().sum() == 3
    assert "income" not in kept.missing_ranges
    assert b"CEO of ACME" not in (spss / "out.sav").read_bytes()


def test_spss_whole_numbers_are_rounded(spss):
    import pyreadstat

    asked = {"columns": ["income", "age"], "missing": "drop", "max_left_out": 0.1, "integers": "round"}
    shoal.mask(spss / "in.sav", 3, **asked, output=spss / "out.sav")
    after, _ = pyreadstat.read_sav(spss / "out.sav")
    assert (after["income"] % 1 == 0).all()
    assert len(after) == 37


@pytest.mark.parametrize(
    ("suffix", "age", "pay", "visit"), [(".sav", "F3.0", "F12.2", "EDATE10"), (".dta", "%8.0f", "%12.2f", "%tdD_m_Y")]
)
def test_masked_columns_keep_formats_that_show_their_values(tmp_path, suffix, age, pay, visit):
    library = pytest.importorskip("pyreadstat")
    write, read = {".sav": (library.write_sav, library.read_sav), ".dta": (library.write_dta, library.read_dta)}[suffix]
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, 40), "D")
    frame = pd.DataFrame({"age": rng.integers(18, 90, 40) * 1.0, "pay": rng.normal(size=40), "visit": days.date})
    formats = {"age": age, "pay": pay, "visit": visit}
    write(frame, tmp_path / f"in{suffix}", variable_format=formats)
    for integers in ("float", "round"):
        out = tmp_path / f"{integers}{suffix}"
        shoal.mask(tmp_path / f"in{suffix}", 3, columns=["age", "pay", "visit"], integers=integers, output=out)
        after, kept = read(out)
        hidden = integers == "float"  # F3.0 would show 58 where 58.3 is released
        assert ((after["age"] % 1).max() > 0) == hidden
        assert (kept.original_variable_types["age"] == age) != hidden
        assert {name: kept.original_variable_types[name] for name in ("pay", "visit")} == {"pay": pay, "visit": visit}


def test_strata_of_spss_are_written_as_they_were_counted(spss):
    import pyreadstat

    release = shoal.mask(spss / "in.sav", 3, columns=["age"], by="answer", output=spss / "out.sav")
    after, _ = pyreadstat.read_sav(spss / "out.sav", user_missing=True)
    assert after.groupby(["answer", "age"], dropna=False).size().min() >= 3
    assert release.records == 40


def test_stata_integers_and_tagged_missing_values_stay(tmp_path):
    library = pytest.importorskip("pyreadstat")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(1000, 9000, 20).astype(np.int32),
            "size": np.arange(20, dtype=np.int16),
            "answer": ["a", "b", *range(18)],
            "share": rng.normal(size=20),
        }
    )
    library.write_dta(frame, tmp_path / "in.dta", missing_user_values={"answer": ["a", "b"]})
    for integers in ("float", "round"):
        out = tmp_path / f"{integers}.dta"
        asked = {"columns": ["income"], "keep": ["size", "answer"], "rest": "keep", "integers": integers}
        shoal.mask(tmp_path / "in.dta", 3, **asked, output=out)
        before, known = library.read_dta(tmp_path / "in.dta", user_missing=True)
        after, kept = library.read_dta(out, user_missing=True)
        for name in ("size", "answer", "share"):
            assert after[name].tolist() == before[name].tolist()
            assert kept.readstat_variable_types[name] == known.readstat_variable_types[name]
        assert kept.missing_user_values == {"answer": ["a", "b"]}
        assert kept.readstat_variable_types["income"] == ("int32" if integers == "round" else "double")


@pytest.mark.parametrize(("suffix", "read"), [(".sav", "sav"), (".zsav", "sav"), (".dta", "dta"), (".xpt", "xport")])
def test_files_contain_no_time_of_writing(tmp_path, suffix, read):
    """The same run makes the same bytes, which a manifest promises."""
    library = pytest.importorskip("pyreadstat")
    write_file(pl.DataFrame({"age": np.arange(12.0), "town": ["a", "b"] * 6}), tmp_path / f"in{suffix}")
    shoal.mask(tmp_path / f"in{suffix}", 3, columns=["age"], output=tmp_path / f"out{suffix}")
    frame, told = getattr(library, f"read_{read}")(tmp_path / f"out{suffix}")
    assert told.creation_time.isoformat() == "2000-01-01T00:00:00"
    assert frame["age"].tolist() == [1.0] * 3 + [4.0] * 3 + [7.0] * 3 + [10.0] * 3


# Numbers that are text


def _numbers(n=40):
    return [str(1000 + 37 * i % 5000) for i in range(n)]


def _with_cell(place, cell):
    cells = _numbers()
    cells[place] = cell
    return cells


AGES = [20 + i * i % 37 for i in range(40)]
SLIPS = [
    (_with_cell(7, "n/a?"), r"record 8 holds 'n/a\?'.*Correct the cell.*'missing_codes'"),
    (_with_cell(7, "12,5x"), "record 8 holds '12,5x'"),
    (_with_cell(39, "Total"), "record 40 holds 'Total'.*remove its line"),
    (_with_cell(3, "0712"), "record 4 holds '0712'"),
    ([f"{1 + i},{100 + 7 * i}" for i in range(40)], "record 1 holds '1,100'.*thousands=','"),
    ([f"{1 + i} {100 + 7 * i}" for i in range(40)], "record 1 holds '1 100'.*thousands=' '"),
    ([f"€ {1 + i}" for i in range(40)], "record 1 holds '€ 1'.*currency"),
    ([f"({1 + i}.5)" for i in range(40)], r"record 1 holds '\(1\.5\)'"),
    ([f"\u2212{1 + i}" for i in range(40)], "record 1 holds '\u22121'"),
    ([f"{50 + i} kg" for i in range(40)], "record 1 holds '50 kg'"),
    (["nobody said"] * 20 + _numbers()[:20], "record 1 holds 'nobody said'"),
]


@pytest.mark.parametrize("engine", ["memory", "local", "dask"])
@pytest.mark.parametrize(("cells", "words"), SLIPS)
@pytest.mark.usefixtures("one_template")
def test_a_number_column_with_a_slip_is_not_released_raw(tmp_path, engine, cells, words):
    if engine == "dask":
        pytest.importorskip("dask.dataframe", reason="the extra shoal[dask] is not installed")
    pl.DataFrame({"age": AGES, "pay": cells}).write_csv(tmp_path / "in.csv")
    asked = {"engine": engine, "output": tmp_path / "out.parquet"}
    with pytest.raises(InputError, match=f"Column 'pay' contains numbers, but {words}.*keep=\\['pay'\\]"):
        shoal.mask(tmp_path / "in.csv", 3, **asked)
    assert not (tmp_path / "out.parquet").exists()
    shoal.mask(tmp_path / "in.csv", 3, keep=["pay"], **asked)
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["age", "pay"]
    shoal.mask(tmp_path / "in.csv", 3, identifiers=["pay"], **asked)
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["age"]
    shoal.mask(tmp_path / "in.csv", 3, columns=["age"], **asked)  # the others are left out on purpose


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.usefixtures("one_template")
def test_the_remedies_mask_the_column(tmp_path, engine):
    asked = {"engine": engine, "output": tmp_path / "out.csv", "missing": "drop"}
    categories = {"kinds": {"pay": shoal.Nominal()}}
    for cells, remedy in (
        (SLIPS[0][0], {"missing_codes": {"pay": ["n/a?"]}}),
        (SLIPS[4][0], {"thousands": ","}),
        (SLIPS[5][0], {"thousands": " "}),
    ):
        pl.DataFrame({"age": AGES, "pay": cells}).write_csv(tmp_path / "in.csv")
        release = shoal.mask(tmp_path / "in.csv", 3, **remedy, **asked)
        assert release.columns == ["age", "pay"]
        assert release.kinds == {}
        assert shoal.mask(tmp_path / "in.csv", 3, **categories, **asked).kinds == {"pay": "nominal"}


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize(
    ("cells", "role"),
    [
        ([f"{97 * i % 1000:04}" for i in range(40)], "all values are different"),  # codes
        ([f"{97 * (i % 13):04}" for i in range(40)], "nominal"),
        ([f"{1 + i % 28}.{1 + i % 12}.{1950 + i}" for i in range(40)], "date"),
        ([f"{'abcd'[i % 4]}{i}" for i in range(40)], "all values are different"),
        (["north", "south", "7", "9"] * 10, "nominal"),
        (["1", "2", "3", "crew"] * 10, "nominal"),  # few values are a code
        ([None] * 40, "all values are missing"),
    ],
)
@pytest.mark.usefixtures("one_template")
def test_text_without_numbers_is_masked_by_its_role_or_left_out(tmp_path, engine, cells, role):
    pl.DataFrame({"age": AGES, "x": cells}, schema_overrides={"x": pl.String}).write_csv(tmp_path / "in.csv")
    release = shoal.mask(tmp_path / "in.csv", 3, engine=engine, output=tmp_path / "out.csv")
    assert release.left == ()
    if release.columns == ["age", "x"]:
        assert release.kinds["x"].startswith(role)
    else:
        assert (release.columns, dict(release.dropped)) == (["age"], {"x": role})


def test_one_slip_in_a_later_part_of_a_file_is_found(tmp_path, one_template, monkeypatch):
    """Parts are checked one by one: text prevails in the first one, numbers in all of them together."""
    monkeypatch.setattr("shoal.engines.local.RECORDS", 1000)
    cells = [*("abcdefghij" * 10), *("x" * 900), *map(str, range(5000))]
    pl.DataFrame({"age": [i % 90 for i in range(6000)], "pay": cells}).write_csv(tmp_path / "in.csv")
    for engine in ("memory", "local"):
        with pytest.raises(InputError, match="Column 'pay' contains numbers, but record 1 holds 'a'"):
            shoal.mask(tmp_path / "in.csv", 3, engine=engine, output=tmp_path / "out.csv")


def test_numbers_after_many_empty_records_are_masked_by_every_engine(tmp_path, one_template):
    cells = [None] * 12_000 + list(range(3000))
    pl.DataFrame({"age": [i % 90 for i in range(15_000)], "pay": cells}).write_csv(tmp_path / "in.csv")
    asked = {"output": tmp_path / "out.csv", "columns": ["age", "pay"], "method": "mdav", "block": 500}
    for engine in ("memory", "local"):
        assert shoal.mask(tmp_path / "in.csv", 3, engine=engine, **asked).columns == ["age", "pay"]


FRAMES = {
    "objects with text": lambda: pd.DataFrame({"age": AGES, "pay": [*map(int, _numbers()[:39]), "n/a?"]}),
    "objects": lambda: pd.DataFrame({"age": AGES, "pay": [*map(int, _numbers()[:39]), None]}, dtype=object).astype(
        {"age": int}
    ),
    "text of pandas": lambda: pd.DataFrame({"age": AGES, "pay": _with_cell(39, "n/a?")}),
    "text of polars": lambda: pl.DataFrame({"age": AGES, "pay": _with_cell(39, "n/a?")}),
    "digits": lambda: pl.DataFrame({"age": AGES, "pay": _numbers()}),
    "text of Arrow": lambda: pa.table({"age": AGES, "pay": _with_cell(39, "n/a?")}),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_numbers_in_a_frame_that_are_text_are_not_released_raw(make):
    with pytest.raises(InputError, match=r"Column 'pay' contains numbers, but (record 40 holds 'n/a\?'|its type is)"):
        shoal.mask(make(), 3)
    assert shoal.mask(make(), 3, keep=["pay"]).columns == ["age"]
    assert shoal.mask(make(), 3, identifiers=["pay"]).left == ()


def test_categories_by_type_are_no_slips():
    codes = pl.Series([str(i % 20) for i in range(39)] + ["n/a?"], dtype=pl.Categorical)
    table = pl.DataFrame({"age": AGES, "code": codes})
    for frame in (table, table.to_pandas()):
        release = shoal.mask(frame, 3)
        assert release.columns == ["age", "code"]
        assert release.kinds == {"code": "nominal"}


def test_a_slip_in_a_sheet_is_not_released_raw(tmp_path):
    write_file(pl.DataFrame({"age": AGES, "pay": _with_cell(39, "n/a?")}), tmp_path / "in.xlsx")
    with pytest.raises(InputError, match=r"Column 'pay' contains numbers, but record 40 holds 'n/a\?'"):
        shoal.mask(tmp_path / "in.xlsx", 3)


@pytest.mark.parametrize("sign", [",", "'"])
def test_the_remedy_is_worded_for_the_command_line(tmp_path, sign):
    cells = [f"{1 + i}{sign}{100 + 7 * i}" for i in range(40)]
    pl.DataFrame({"age": AGES, "it's pay": cells}).write_csv(tmp_path / "in.csv")
    said = command("mask", "in.csv", "-k", 3, "-o", "out.csv", cwd=tmp_path).stderr
    quoted = shlex.quote("it's pay")
    assert f"Use --thousands {shlex.quote(sign)} if" in said
    assert f"use --nominal {quoted}; to drop" in said
    assert f"use --drop {quoted}; to release it unmasked, use --keep {quoted}." in said
    words = ["--thousands", sign, "-o", "out.csv"]
    assert "2: age, it's pay" in command("mask", "in.csv", "-k", 3, *words, cwd=tmp_path).stdout


# Header lines

RECORDS = {
    "a person": [f"{18 + 7 * i % 60},{['State-gov', 'Private'][i % 2]},{77516 + 937 * i},x{i}" for i in range(40)],
    "numbers": [f"{3.5 + i * 37 % 11},{100 + 17 * i % 90}" for i in range(40)],
    "two digits": ["0,1", *(f"{i % 2},{i % 3}" for i in range(40))],
    "a year of birth": [f"name {i},{1950 + 7 * i % 50}" for i in range(40)],
    "dates": [f"p{i},2020-01-{1 + i % 28:02}" for i in range(40)],
    "addresses": [f"x{i},person{i}@example.org" for i in range(40)],
    "categories": [f"{['red', 'green'][i % 2]},{['north', 'south', 'east'][i % 3]},name {i}" for i in range(40)],
    "a missing cell": [",12,x", *(f"{i},{10 + i},y{i}" for i in range(40))],
    "signs between thousands": [f'p{i},"{1 + i},{100 + i}"' for i in range(40)],
    "answers": ["2,3,4,Ann", *(f"{1 + i % 5},{1 + i % 4},{1 + i % 6},p{i}" for i in range(40))],
    "a currency": ['EUR 500,"1,20"', *(f'EUR {720 + i},"{1 + i % 7},{10 + i}"' for i in range(40))],
    "units": ["10 km,x1", *(f"{11 + i} km,x{i + 2}" for i in range(40))],
    "the first answers": ["1,2,3,Ann", *(f"{1 + i % 5},{1 + i % 4},{1 + i % 6},p{i}" for i in range(40))],
}
HEADERS = {
    "words": ["age,sex,town", *(f"{20 + i},{'mf'[i % 2]},t{i % 3}" for i in range(40))],
    "years": ["country,2019,2020", *(f"c{i},{1500 + 37 * i},{1400 + 41 * i}" for i in range(40))],
    "years back": ["2020,2019,name", *(f"{1500 + 37 * i},{1400 + 41 * i},c{i}" for i in range(40))],
    "a year": ["country,2019", *(f"c{i},{i / 7}" for i in range(40))],
    "places": ["0,1,2", *(f"{i},{i % 2},{i / 7}" for i in range(40))],
    "questions": ["id,1,2,3,4", *(f"p{i},{1 + i % 5},{1 + i % 4},2,3" for i in range(40))],
    "dates above numbers": ["id,2020-01-01,2020-02-01", *(f"p{i},{i / 3},{i}" for i in range(40))],
    "a word that is also a value": ["age,other", *(f"{20 + i},{['other', 'none'][i % 2]}" for i in range(40))],
    "no records": ["1,2"],
    "an index": [",0,1", *(f"{i},{i / 7},{i / 3 + 5}" for i in range(40))],
    "years in any order": ["2020,2019,2021", *(f"{i / 7},{i / 3},{i}" for i in range(40))],
    "ticked answers": ["bus,train,x", *(f"{['bus', ''][i % 2]},{['', 'train'][i % 3 > 0]},{i}" for i in range(40))],
    "names of three capitals and a number": [
        "VAR1,INC2019,GDP 2020,ISO3",
        *(f"{i * 7 % 31},{i * 5 % 17},{i / 7},{i % 9}" for i in range(40)),
    ],
    "names with a unit": ["10 km,20 km,2020 EUR", *(f"{i / 7},{i / 3},{i * 11 % 37}" for i in range(40))],
    "a truth value": ["true,x", *(f"{['true', 'false'][i % 2]},{i}" for i in range(40))],
}


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
@pytest.mark.parametrize("lines", RECORDS.values(), ids=RECORDS.keys())
def test_a_file_without_a_header_is_refused(tmp_path, lines, ending):
    path = tmp_path / f"in{ending}"
    if ending == ".csv":
        path.write_text("\n".join(lines) + "\n")
    else:
        xlsxwriter = pytest.importorskip("xlsxwriter")
        with xlsxwriter.Workbook(path, {"strings_to_numbers": True}) as book:
            sheet = book.add_worksheet()
            for place, row in enumerate(csv.reader(lines)):
                sheet.write_row(place, 0, [cell or "none" for cell in row])
    for look in (shoal.inspect, lambda path: shoal.mask(path, 3)):
        with pytest.raises(FileError, match=r"no header line: in line 1, column \d .* Add a first line") as caught:
            look(path)
        assert not any(cell in str(caught.value) for cell in lines[0].split(",") if len(cell) > 3)  # a value


@pytest.mark.parametrize("engine", ["local", "dask"])
@pytest.mark.usefixtures("one_template")
def test_a_file_without_a_header_is_refused_by_every_engine(tmp_path, engine):
    if engine == "dask":
        pytest.importorskip("dask.dataframe", reason="the extra shoal[dask] is not installed")
    (tmp_path / "in.csv").write_text("\n".join(RECORDS["a person"]) + "\n")
    with pytest.raises(FileError, match="no header line"):
        shoal.mask(tmp_path / "in.csv", 3, engine=engine, output=tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("lines", HEADERS.values(), ids=HEADERS.keys())
def test_a_true_header_is_accepted(tmp_path, lines):
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    names = next(csv.reader(lines))
    assert list(shoal.inspect(tmp_path / "in.csv", 3).roles) == names


def test_a_published_file_needs_a_header_too(tmp_path):
    (tmp_path / "in.csv").write_text("\n".join(RECORDS["numbers"]) + "\n")
    with pytest.raises(FileError, match="no header line"):
        shoal.publish(tmp_path / "in.csv", 1.0, bounds=(0, 200))


def test_names_of_a_frame_may_be_numbers_in_the_file_that_is_written(tmp_path):
    table = pl.DataFrame({"3.5": [1.5, 2.5, 7.5, 8.5], "12": [10, 14, 11, 13]})
    shoal.mask(table, 2, columns=["3.5", "12"], output=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("3.5,12\n")


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize("top", [2**63 - 1, 2**63 - 600, -(2**63)])
def test_integers_at_the_end_of_64_bits_are_rounded_in_csv_files(tmp_path, engine, top):
    """The float that is nearest to 2^63 - 1 is 2^63, which no 64-bit integer is."""
    (tmp_path / "in.csv").write_text("x\n" + f"{top}\n" * 6)
    asked = {"columns": ["x"], "integers": "round"}
    shoal.mask(tmp_path / "in.csv", 3, **asked, engine=engine, output=tmp_path / "out.csv")
    values = {int(line) for line in (tmp_path / "out.csv").read_text().splitlines()[1:]}
    assert len(values) == 1
    assert abs(values.pop() - top) <= 1024, "a float has 53 bits"


SECRETS = [
    "postgresql://ann:s3cret@host/db",
    "s3://KEY:s3cret@bucket/x.parquet",
    "mysql+pymysql://ann:s3cret/with@signs@host/db",
    "https://host/x.csv?token=s3cret&page=1",
    "https://host/x.csv?access_token=s3cret",
    "https://host/x.csv?sv=1&sig=s3cret&se=2",
    "https://ann@corp.org:s3cret@host/x.csv",
    "ftp://ann:it's3cret@host/x.csv",
]


@pytest.mark.parametrize("address", SECRETS)
def test_messages_show_no_password_of_an_address(tmp_path, address):
    table = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    for call in (
        lambda: read_table(address),
        lambda: read_table(Path(address)),
        lambda: shoal.inspect(address),
        lambda: shoal.mask(address, 2, engine="local", output=tmp_path / "out.csv"),
        lambda: shoal.mask(table, 2, output=f"{address}/out.csv"),
        lambda: shoal.mask(table, 2, output=tmp_path / "out.csv", labels=f"{address}/labels.csv"),
    ):
        with pytest.raises((FileError, InputError)) as caught:
            call()
        assert "s3cret" not in str(caught.value)
        assert "s3cret" not in str(pickle.loads(pickle.dumps(caught.value)))


def test_a_password_that_a_library_repeats_is_not_shown():
    message = str(InputError("Got 'tcp://u:s3cret@host:1' (invalid address 'u:s3cret@host:1'). Check it."))
    assert message == "Got 'tcp://u:***@host:1' (invalid address 'u:***@host:1'). Check it."
    assert str(FileError("File C:/data/x.csv, ann@host: no.")) == "File C:/data/x.csv, ann@host: no."


def test_the_command_line_shows_no_password(tmp_path):
    done = command("mask", SECRETS[0], "-k", "3", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert "postgresql://ann:***@host/db" in done.stderr


def test_an_address_that_refuses_at_once_is_one_error():
    with pytest.raises(FileError, match=r"Address ftp://ann:\*\*\*@127.0.0.1:1/t.parquet cannot be reached"):
        find_places("ftp://ann:s3cret@127.0.0.1:1/t.parquet", (".parquet",))


@pytest.mark.parametrize("options", [{"shuffle": 1}, {"missing": "drop"}])
@pytest.mark.parametrize("name", ["memory", "t.arrow"])
def test_views_of_arrow_are_text(tmp_path, name, options):
    frame = pl.DataFrame({"x": [1.0, 2.0, None, 9.0, 8.0], "word": list("abcde"), "list": [["a"], [], None, ["b"], []]})
    views = frame.to_arrow(compat_level=pl.CompatLevel.newest())
    assert "string_view" in str(views.schema)
    if name == "memory":
        table = views
    else:
        frame.write_ipc(tmp_path / name)
        table = tmp_path / name
    asked = {"missing": "group", "small": "suppress", "max_left_out": 0.2, **options}
    release = shoal.mask(table, 2, columns=["x"], keep=["word", "list"], **asked)
    expected = frame[release.kept.tolist()]
    assert pl.DataFrame(release.data)["word"].to_list() == expected["word"].to_list()
    assert pl.DataFrame(release.data)["list"].to_list() == expected["list"].to_list()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_feather_of_version_1_is_refused(tmp_path):
    feather.write_feather(pa.table({"x": [1.0, 2.0]}), str(tmp_path / "old.feather"), version=1)
    with pytest.raises(FileError, match=r"old.feather is a Feather file of version 1.*again as version 2"):
        read_table(tmp_path / "old.feather")


@pytest.mark.parametrize("delimiter", ["é", "\0", "ab", "", "\n"])
@pytest.mark.parametrize(
    "call",
    [
        lambda path, sign: shoal.inspect(path, delimiter=sign),
        lambda path, sign: shoal.mask(path, 2, delimiter=sign),
        lambda path, sign: shoal.mask(path, 2, delimiter=sign, engine="local", output=path.with_name("out.csv")),
    ],
    ids=["inspect", "mask", "local"],
)
def test_a_delimiter_is_one_ascii_character(tmp_path, call, delimiter):
    path = tmp_path / "table.csv"
    path.write_text("a;b\n1;2\n3;4\n", encoding="utf-8")
    with pytest.raises(InputError, match="'delimiter' must be one ASCII character"):
        call(path, delimiter)


@pytest.mark.parametrize("name", ["a\ud800", "a\0b"])
def test_names_that_no_file_can_store_are_refused(name):
    frame = pd.DataFrame([[1.0], [2.0], [3.0], [4.0]], columns=pd.Index([name], dtype=object))
    for call in (lambda: shoal.mask(frame, 2), lambda: shoal.publish(frame, 1.0, bounds={name: (0, 5)})):
        with pytest.raises(InputError, match="contains a character that no file can store"):
            call()


@pytest.mark.parametrize("asked", [{"columns": [True]}, {"columns": [1.0]}, {"weights": True}, {"by": [True]},
                                   {"unit": True}, {"confidential": [1.0]}, {"identifiers": [True]}])  # fmt: skip
def test_a_number_of_another_type_names_no_column(asked):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 3)) ** 2 + 1)
    with pytest.raises(InputError, match=r"names column (True|1\.0), which the table does not have"):
        shoal.mask(frame, 3, **{"columns": [0], **asked})
    assert shoal.mask(frame, 3, columns=[np.int64(0)], weights=1).columns == [0]


def test_publish_takes_names_of_any_type():
    frame = pd.DataFrame({("a", 1): [1.0, 2.0, 3.0, 4.0], "b": 1.0, 2: 0.0})
    with pytest.warns(shoal.PrivacyWarning):
        release = shoal.publish(frame, 1.0, bounds={("a", 1): (0, 5)}, method="none", seed=0)
    assert list(release.data.columns) == [("a", 1)]


def test_a_new_format_is_one_entry(tmp_path, monkeypatch):
    """A reader and a writer: masking then reads the format, writes it, and counts what it wrote."""

    def write(table, path):
        table.native.write_ndjson(path)

    lines = Format((".lines",), lambda path, **_: open_table(pl.read_ndjson(path)), write)
    with pytest.raises(InputError, match="must end in one of"):
        read_table(tmp_path / "in.lines")
    monkeypatch.setitem(FORMATS, ".lines", lines)
    pl.DataFrame({"v": [1.0, 2.0, 8.0, 9.0], "note": ["a", "b", None, "d"]}).write_ndjson(tmp_path / "in.lines")
    release = shoal.mask(tmp_path / "in.lines", 2, columns=["v"], output=tmp_path / "out.lines", **UNCHANGED)
    assert release.verified
    assert pl.read_ndjson(tmp_path / "out.lines").rows() == [(1.5, "a"), (1.5, "b"), (8.5, None), (8.5, "d")]
