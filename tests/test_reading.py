"""How often files are read and columns parsed."""

import sys

import polars as pl
import pytest

import shoal
from shoal.cli import main
from shoal.demo import firms
from shoal.tables import number_text
from shoal.tables.files import TableFile, open_data
from shoal.tables.formats import csv_files


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
