"""JSON lines, in and out."""

import json
from datetime import date, timedelta

import polars as pl
import pytest
from conftest import command

import shoal
from shoal.core.errors import FileError, InputError
from shoal.tables.files import read_table, write_file

LINES = [{"x": i if i % 2 else i + 0.5, "n": i, "day": f"2020-01-{i + 1:02}", "who": f"p{i}"} for i in range(12)]


def written(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def lines_of(path, records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".ndjson"])
def test_json_lines_are_masked(tmp_path, ending):
    source, target = lines_of(tmp_path / f"in{ending}", LINES), tmp_path / f"out{ending}"
    kinds = {"day": shoal.Date()}
    release = shoal.mask(source, 3, columns=["x", "n", "day"], kinds=kinds, output=target)
    assert release.verified
    released = written(target)
    assert [list(record) for record in released] == [["x", "n", "day"]] * 12
    assert all(type(record["n"]) is int for record in released)
    days = {record["day"] for record in released}
    assert days <= {(date(2020, 1, 1) + timedelta(i)).isoformat() for i in range(12)}
    assert len(days) <= 4


def test_a_key_that_is_absent_is_a_missing_value(tmp_path):
    source = lines_of(tmp_path / "in.jsonl", [*LINES, {"x": None, "n": 1}, {"n": 2}, {"n": 3, "x": None}])
    shoal.mask(source, 3, columns=["x", "n"], missing="group", max_left_out=1, output=tmp_path / "out.jsonl")
    released = written(tmp_path / "out.jsonl")
    assert [record["x"] for record in released[12:]] == [None] * 3
    assert all(record["x"] is not None for record in released[:12])


def test_any_format_becomes_json_lines_and_back(tmp_path):
    frame = pl.DataFrame({"x": [1.5, 2.5, 8.5, 9.5], "n": [1, 2, 3, 4], "who": ["é", "b", None, "d"]})
    for ending in (".csv", ".parquet", ".jsonl"):
        write_file(frame, tmp_path / f"in{ending}")
        for target in (".csv", ".parquet", ".jsonl"):
            out = tmp_path / f"out{target}"
            shoal.mask(tmp_path / f"in{ending}", 2, columns=["x", "n"], keep=["who"], decimals="all", output=out)
            cells = read_table(out).keys(["x", "n"])
            assert cells.rows() == [(2, 2), (2, 2), (9, 4), (9, 4)]
    assert written(tmp_path / "out.jsonl")[0] == {"x": 2.0, "n": 2, "who": "é"}


def test_nested_columns_are_left_out_and_kept_only_by_name(tmp_path):
    source = lines_of(tmp_path / "in.jsonl", [{**record, "visits": [record["n"]]} for record in LINES])
    asked = {"columns": ["x"], "output": tmp_path / "out.jsonl"}
    assert "visits" in shoal.mask(source, 3, **asked).dropped
    shoal.mask(source, 3, keep=["visits"], **asked)
    assert [record["visits"] for record in written(tmp_path / "out.jsonl")] == [[i] for i in range(12)]
    with pytest.raises(InputError, match=r"'visits' must be numeric, but its type is List"):
        shoal.mask(source, 3, columns=["visits"], output=tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "in.jsonl is empty"),
        ("\n \n", "in.jsonl is empty"),
        ("[1, 2]\n", "cannot be read as .jsonl: .*expected to contain JSON object"),
        ('{"x": 1}\n{"x":\n', "cannot be read as .jsonl"),
        ('{\n"x": 1\n}\n', "cannot be read as .jsonl"),
        ('{"x": 1}\n{"x": 18446744073709551615}\n', r"beyond 2\^63 in column 'x'"),
    ],
)
def test_files_that_are_no_json_lines(tmp_path, content, words):
    (tmp_path / "in.jsonl").write_text(content)
    with pytest.raises(FileError, match=words):
        shoal.mask(tmp_path / "in.jsonl", 2, columns=["x"], output=tmp_path / "out.jsonl")


@pytest.mark.parametrize(("cells", "words"), [([b"a", b"b"], "Binary"), ([1.0, float("inf")], "infinite numbers")])
def test_cells_that_json_cannot_store_are_refused(tmp_path, cells, words):
    with pytest.raises(FileError, match=rf"column 'x'.*{words}|{words}.*column 'x'"):
        write_file(pl.DataFrame({"x": cells}), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_the_proposed_command_for_json_lines_runs(tmp_path):
    lines_of(tmp_path / "in.jsonl", LINES)
    shown = command("inspect", "in.jsonl", "-k", 3, cwd=tmp_path)
    assert "-o in-masked.jsonl" in shown.stdout
    done = command("mask", "in.jsonl", "-k", 3, "-o", "out.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
