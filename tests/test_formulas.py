"""Text that a spreadsheet would run: warnings and escapes on every engine that writes CSV; read errors."""

import csv

import polars as pl
import pyarrow.parquet as pq
import pytest
from conftest import command

import shoal
from shoal.core.errors import FileError, InputError

pytestmark = pytest.mark.usefixtures("one_template")

NOTES = ["=HYPERLINK(1)", "@SUM(A1)", "+cmd|x", "-2+3", "-5", "+3,5", "- 1 %", "plain", None, "-1e-3", "'=1", "\tx"]
RUN = {"=HYPERLINK(1)", "@SUM(A1)", "+cmd|x", "-2+3", "\tx"}


@pytest.fixture
def table(tmp_path):
    frame = pl.DataFrame({"x": [-float(i) for i in range(12)], "note": NOTES, "job": ["=a", "b"] * 6})
    frame.write_csv(tmp_path / "in.csv")
    return frame


def written(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_formulas_are_warned_of_and_escaped(tmp_path, table, engine):
    out = tmp_path / "out.csv"
    asked = {"columns": ["x", "job"], "engine": engine, "output": out, "keep": "note"}
    with pytest.warns(shoal.FormulaWarning, match=r"Columns note, job hold cells .* Use escape_formulas=True"):
        release = shoal.mask(tmp_path / "in.csv", 3, **asked)
    assert any("would run as formulas" in note for note in release.notes)
    assert [row["note"] for row in written(out)] == [note or "" for note in NOTES]
    release = shoal.mask(tmp_path / "in.csv", 3, **asked, escape_formulas=True)
    assert [row["note"] for row in written(out)] == [f"'{n}" if n in RUN else n or "" for n in NOTES]
    assert {row["job"] for row in written(out)} <= {"'=a", "b"}
    assert all(float(row["x"]) <= 0 for row in written(out))
    assert any("now begin with an apostrophe" in note for note in release.notes)


def test_frames_and_other_formats(tmp_path, table):
    shoal.mask(table, 3, columns=["x"], rest="keep", output=tmp_path / "out.csv", escape_formulas=True)
    assert {row["note"] for row in written(tmp_path / "out.csv")} >= {f"'{note}" for note in RUN}
    shoal.mask(table, 3, columns=["x"], output=tmp_path / "out.parquet")  # no warning: Parquet files run no formulas
    for output in (tmp_path / "out.parquet", None):
        with pytest.raises(InputError, match="'escape_formulas' requires a CSV file"):
            shoal.mask(table, 3, columns=["x"], output=output, escape_formulas=True)


ODD_NAMES = ["=cmd|'/c calc'!A1", "@x", "-5", "plain", "+a,b"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("engine", ["memory", "local"])
def test_formulas_in_the_header_are_warned_of_and_escaped(tmp_path, engine, encoding, monkeypatch):
    monkeypatch.setattr("shoal.tables.formulas.CHUNK", 7)
    names = ["x", *ODD_NAMES]
    frame = pl.DataFrame({name: [f"{i % 3}" if name == "x" else "abc"[i % 3] for i in range(12)] for name in names})
    (tmp_path / "in.csv").write_bytes(frame.write_csv().encode(encoding))
    out, plain = tmp_path / "out.csv", tmp_path / "plain.csv"
    asked = {"columns": ["x"], "rest": "keep", "engine": engine}
    with pytest.warns(shoal.FormulaWarning, match=r"names =cmd.*, @x, \+a,b are text .* Use escape_formulas=True"):
        release = shoal.mask(tmp_path / "in.csv", 3, **asked, output=plain)
    assert any("column names =cmd" in note for note in release.notes)
    shoal.mask(tmp_path / "in.csv", 3, **asked, output=out, escape_formulas=True)
    rows = [list(csv.reader(path.read_text(encoding=encoding).splitlines())) for path in (plain, out)]
    assert rows[0][0] == names
    assert rows[1][0] == ["x", "'=cmd|'/c calc'!A1", "'@x", "-5", "plain", "'+a,b"]
    assert rows[0][1:] == rows[1][1:], "records stay as they are"


@pytest.mark.parametrize("cells", [["a", "b"], ["a;b", "a;c"]])
def test_the_header_of_one_column_is_escaped(tmp_path, cells):
    table = pl.DataFrame({"=x": cells * 6})
    shoal.mask(table, 3, columns=["=x"], output=tmp_path / "out.csv", escape_formulas=True)
    assert next(csv.reader((tmp_path / "out.csv").read_text().splitlines())) == ["'=x"]


def test_names_that_an_apostrophe_makes_equal_are_refused(tmp_path):
    table = pl.DataFrame({"x": range(6), "=a": range(6), "'=a": range(6)})
    with pytest.raises(InputError, match="must be unique"):
        shoal.mask(table, 3, columns=["x"], rest="keep", output=tmp_path / "out.csv", escape_formulas=True)
    assert not list(tmp_path.iterdir())


def test_formulas_on_the_command_line(tmp_path, table):
    asked = ["mask", "in.csv", "-k", "3", "-c", "x", "--keep", "note", "-o", "out.csv"]
    done = command(*asked, cwd=tmp_path)
    assert done.returncode == 0
    assert "Use --escape-formulas to put an apostrophe before them" in done.stderr
    done = command(*asked, "--escape-formulas", "--manifest", "m.json", cwd=tmp_path)
    assert (done.returncode, "formulas" in done.stderr) == (0, False)
    first = (tmp_path / "out.csv").read_bytes()
    done = command("mask", "--from-manifest", "m.json", "-o", "out.csv", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out.csv").read_bytes()) == (0, first), done.stderr


def test_an_input_that_cannot_be_read_is_not_called_an_output(tmp_path):
    path = tmp_path / "in.parquet"
    pl.DataFrame({"x": [float(i * 7919 % 1000) for i in range(5000)]}).write_parquet(path, compression="zstd")
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    raw = bytearray(path.read_bytes())
    raw[start + 30 : start + 400] = bytes(370)
    path.write_bytes(raw)
    for engine in ("memory", "local", None):
        with pytest.raises(FileError, match=r"File .*in\.parquet cannot be read"):
            shoal.mask(path, 3, engine=engine, output=tmp_path / "out.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]
