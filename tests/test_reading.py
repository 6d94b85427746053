"""How often files are read and columns parsed."""

import sys

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given

import shoal
from shoal.cli import main
from shoal.demo import firms
from shoal.kinds.column import MISSING
from shoal.tables import number_text
from shoal.tables.files import TableFile, open_data
from shoal.tables.formats import csv_files
from shoal.tables.number_text import CODE, Dialect, parse_numbers, plain_numbers, present_cells


@pytest.fixture
def counts(monkeypatch):
    """Count the CSV files that are read, and how often a column is parsed."""
    counts = {"read": 0, "parsed": 0}

    def counting(name, function):
        def counted(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        return counted

    monkeypatch.setattr(csv_files, "parse_csv", counting("read", csv_files.parse_csv))
    monkeypatch.setattr(number_text, "parse_numbers", counting("parsed", number_text.parse_numbers))
    return counts


def test_a_run_with_report_and_manifest_reads_the_table_once_and_the_release_once(tmp_path, monkeypatch, counts):
    table = firms(300)
    table.write_csv(tmp_path / "firms.csv")
    monkeypatch.chdir(tmp_path)
    arguments = "firms.csv -k 5 -c sales -c wages -c assets --by region -m mdav -o out.csv --drop sector --drop weight"
    arguments += " --drop employees --drop profit --drop research --report r.html --manifest m.json"
    monkeypatch.setattr(sys, "argv", ["shoal", "mask", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert (tmp_path / "r.html").stat().st_size > 0
    assert counts["read"] == 2
    # Each column once when it is read, and the four released ones when they are returned and when they are verified.
    assert counts["parsed"] <= table.width + 3 * 4


def test_columns_are_parsed_again_where_cells_or_codes_change(tmp_path, counts):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,x\n2,7\n-9,8\n", encoding="utf-8")
    table = open_data(path)
    assert table.numeric_names() == ["a"]
    assert table.coded({}) is table
    assert table.numeric_names() == table.only(["a"]).numeric_names() == ["a"]
    assert counts["parsed"] == 2
    assert table.coded({"b": ["x"]}).numeric_names() == ["a", "b"]
    assert table.take([1, 2]).numeric_names() == ["a", "b"]
    assert table.take([0, 1, 2]) is table
    assert table.coded({"a": [-9]})["a"].numbers().values.tolist()[:2] == [1.0, 2.0]
    assert table["a"].numbers().values.tolist() == [1.0, 2.0, -9.0]


def test_a_file_that_is_read_once_gives_the_same_release_and_report(tmp_path):
    path = tmp_path / "firms.csv"
    firms(200).write_csv(path)
    once = TableFile(path)
    releases = [shoal.mask(data, 5, columns=["sales", "wages"], by="region") for data in (path, once)]
    assert releases[0].data.equals(releases[1].data)
    path.unlink()  # it is not read again
    assert releases[1].report(tmp_path / "report.html", original=once).stat().st_size > 0
    assert isinstance(releases[0].data, pl.DataFrame)


# Numbers in text are parsed by a short way where cells are spelled plainly


def numbers_cell_by_cell(cells, dialect, *, codes):
    """Return a column as numbers if every cell is one or is missing, the slow way."""
    text = present_cells(cells)
    if text.null_count() == len(text) or (not codes and text.str.contains(CODE).any()):
        return cells
    for kind in (pl.Int64, pl.Float64):
        numbers = plain_numbers(text, dialect).cast(kind, strict=False)
        if numbers.null_count() == text.null_count():
            return numbers
    return cells


CELL = (
    st.sampled_from(["1", "-2", "+3", "007", " 4", "5 ", "1.5", "1,5", "1.500", "2e3", "inf", "x", "", *MISSING])
    | st.none()
)


@given(
    cells=st.lists(CELL | st.sampled_from(["1", "2.5"]), max_size=6),
    first=st.integers(0, 2),
    decimal=st.sampled_from(".,"),
    thousands=st.sampled_from([None, "'", " "]),
    codes=st.booleans(),
)
def test_numbers_are_parsed_alike_however_they_are_spelled(cells, first, decimal, thousands, codes):
    dialect = Dialect(decimal=decimal, thousands=thousands)
    text = pl.Series(["1"] * (first * number_text.GLANCE) + cells, dtype=pl.String)
    expected = numbers_cell_by_cell(text, dialect, codes=codes)
    assert parse_numbers(text, dialect, codes=codes).equals(expected, check_dtypes=True)


def test_a_csv_file_is_the_same_table_in_arrow_and_as_a_frame(tmp_path):
    (tmp_path / "in.csv").write_text('^.*$,,a\n1,,"x, y"\n2,"",z\n3,5,\n')
    table = open_data(tmp_path / "in.csv", named=False)
    columns = {name: table[name].written.to_list() for name in table.names}
    assert columns == {"^.*$": ["1", "2", "3"], "": [None, "", "5"], "a": ["x, y", "z", None]}
    assert table.take([2, 0]).store.native.rows() == [("3", "5", None), ("1", None, "x, y")]
    assert {name: table.store.native.get_column(name).to_list() for name in table.names} == columns
    assert {name: table[name].written.to_list() for name in table.names} == columns
