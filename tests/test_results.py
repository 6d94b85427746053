"""The page of figures: current with its records, and written only on request."""

import importlib.util
import json
import re

import pytest
from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("not run from a checkout", allow_module_level=True)

spec = importlib.util.spec_from_file_location("results", BENCHMARKS / "results.py")
results = importlib.util.module_from_spec(spec)
spec.loader.exec_module(results)
RECORDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in results.RECORDS.glob("*.json")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder for records of a script named speed.py."""
    monkeypatch.setattr(results, "RECORDS", tmp_path)
    monkeypatch.setattr(results.sys, "argv", ["/somewhere/benchmarks/speed.py", "--only", ""])
    return tmp_path


def measure(key="mdav", figure=1.25):
    with results.table(key, "A title", "n {:,} | shoal, s {:.2f} ({:.2f}) | note") as add:
        add(1000, [figure, 3.0], None)


def test_the_page_is_current():
    assert results.PAGE.read_text(encoding="utf-8") == results.page(), "run: python benchmarks/results.py"


def test_the_page_is_short_and_has_no_history():
    assert len(results.page().encode()) <= 35 * 1024
    for name, records in RECORDS.items():
        for key, table in records["tables"].items():
            prose = " ".join([records.get("about", ""), *table.get("notes", [])])
            assert not re.search(r"\d{4}-\d\d-\d\d|\bsince\b|\btoday\b", prose), (name, key)
            assert len(table.get("notes", [])) <= 2, (name, key)


def test_every_script_of_the_page_exists():
    page = results.PAGE.read_text(encoding="utf-8")
    assert [
        path for path in set(re.findall(r"\b(?:benchmarks|tests)/[\w/]+\.py", page)) if not (ROOT / path).exists()
    ] == []


def test_every_benchmark_that_prints_tables_has_a_record():
    parts = {"large_dask", "large_spark"}  # large.py runs them
    scripts = {path.stem for path in BENCHMARKS.glob("*.py") if "from results import table" in path.read_text("utf-8")}
    assert {path.stem for path in BENCHMARKS.glob("*.py") if 'print(f"| ' in path.read_text("utf-8")} == set()
    assert scripts - parts == {name for name, each in RECORDS.items() if "benchmarks/" in each.get("script", "")}


def test_every_table_names_its_command_date_and_machine():
    for records in RECORDS.values():
        for table in records["tables"].values():
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["date"])
            assert table["command"]
            assert table["machine"]
            assert table["rows"]


def test_a_trial_run_records_nothing(folder, capsys):
    measure()
    assert capsys.readouterr().out == (
        "\nA title\n\n| n | shoal, s | note |\n|---|---|---|\n| 1,000 | 1.25 (3.00) |  |\n"
    )
    assert list(folder.iterdir()) == []


def test_a_recorded_table_replaces_its_last_record_and_keeps_its_notes(folder, monkeypatch):
    monkeypatch.setattr(results, "RECORDING", True)
    measure()
    measure("large")
    path = folder / "speed.json"
    records = json.loads(path.read_text())
    records["tables"]["mdav"] |= {"notes": ["**Missed**: the goal of 1 s."], "shown": {"n": [1000]}}
    path.write_text(results.dump(records))
    measure(figure=0.5)
    records = json.loads(path.read_text())
    assert records["script"] == "benchmarks/speed.py"
    assert list(records["tables"]) == ["mdav", "large"]
    table = records["tables"]["mdav"]
    assert table["rows"] == [[1000, [0.5, 3.0], None]]
    assert table["columns"][1] == {"name": "shoal", "unit": "s", "format": "{:.2f} ({:.2f})"}
    assert table["command"] == "python benchmarks/speed.py --only ''"
    assert table["notes"] == ["**Missed**: the goal of 1 s."]
    page = results.page()
    assert "| 1,000 | 0.50 (3.00) |  |\n\n- **Missed**: the goal of 1 s.\n" in page


def test_the_page_shows_the_rows_and_tables_that_are_chosen(folder, monkeypatch):
    monkeypatch.setattr(results, "RECORDING", True)
    with results.table("mdav", "A title", "n | s") as add:
        add(1000, 1.5)
        add(2000, 2.5)
    measure("large")
    path = folder / "speed.json"
    records = json.loads(path.read_text())
    records["tables"]["mdav"]["shown"] = {"n": [2000]}
    records["tables"]["large"]["shown"] = False
    path.write_text(results.dump(records))
    page = results.page()
    assert "Only in `results/speed.json`: large." in page
    assert "### A title (1 of 2 rows)" in page
    assert "| 2000 | 2.5 |" in page
    assert "| 1000 | 1.5 |" not in page
    assert page.count("###") == 1


def test_an_incomplete_table_is_not_recorded(folder, monkeypatch):
    monkeypatch.setattr(results, "RECORDING", True)
    with pytest.raises(ValueError, match="zip"), results.table("mdav", "A title", "n") as add:
        add(1, "a cell too many")
    assert list(folder.iterdir()) == []
