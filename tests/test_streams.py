"""Standard input and output instead of files."""

import io
import subprocess
import sys
from dataclasses import replace

import polars as pl
import pytest
from conftest import command

from shoal.tables.files import FORMATS

TABLE = "age;pay\n" + "".join(f"{20 + i * 7 % 60};{2000 + i * i % 997}.5\n" for i in range(90))


def shoal(*arguments):
    """Run a command as a process; return its exit code, standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *map(str, arguments)], input=TABLE.encode(), capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.fixture
def standard_input(monkeypatch):
    """Replace standard input for the commands of this process."""

    def give(raw):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    give(TABLE.encode())
    return give


def test_a_pipe_contains_only_the_masked_table(tmp_path):
    code, out, err = shoal("mask", "-", "-k", 5, "-c", "age", "-c", "pay", "-o", "-", "--labels", tmp_path / "l.csv")
    assert code == 0, err
    assert "every combination" in err
    assert str(tmp_path / "l.csv") in err
    (tmp_path / "in.csv").write_text(TABLE)
    command("mask", tmp_path / "in.csv", "-k", 5, "-c", "age", "-c", "pay", "-o", tmp_path / "out.csv")
    assert out == (tmp_path / "out.csv").read_bytes()


def test_standard_input_is_inspected_and_the_proposed_command_runs():
    code, out, err = shoal("inspect", "-", "-k", 5)
    assert code == 0, err
    line = next(line for line in out.decode().splitlines() if line.startswith("shoal mask - "))
    assert line.endswith("-o -")
    code, out, err = shoal(*line.split()[1:])
    assert code == 0, err
    assert pl.read_csv(out, separator=";").shape == (90, 2)


@pytest.mark.parametrize("raw", [b"", b"1;2\n2;3\n3;4\n5;6\n"])
def test_standard_input_that_is_not_a_table_is_refused(standard_input, raw):
    standard_input(raw)
    done = command("mask", "-", "-k", 2, "-o", "-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("shoal: File <stdin> ")


def test_nothing_is_written_if_the_recount_fails(standard_input, monkeypatch):
    wrong = replace(FORMATS[".csv"], write=lambda _, path: path.write_text(TABLE))
    monkeypatch.setitem(FORMATS, ".csv", wrong)
    done = command("mask", "-", "-k", 5, "-c", "age", "-c", "pay", "-o", "-")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Nothing was released" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "-", "--manifest", "m.json"], "--manifest cannot be combined with -"),
        (["-o", "out.csv", "--report", "r.html"], "--report cannot be combined with -"),
        (["-o", "-", "--engine", "local"], "is masked in memory"),
        (["-o", "out.csv", "--memory", "1GB"], "is masked in memory"),
    ],
)
def test_options_that_streams_do_not_support_are_refused(standard_input, options, words):
    done = command("mask", "-", "-k", 5, "-c", "age", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
