"""The command line: output, exit codes and files."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from conftest import command, reference_path
from typer.testing import CliRunner

from shoal.cli import app
from shoal.core.errors import FileError, InputError
from shoal.core.progress import SIGNALS, watch
from shoal.demo import firms
from shoal.tables.files import sha256, write_file

SHOAL = [sys.executable, "-m", "shoal"]
EXACT = ("--integers", "float", "--decimals", "all")  # means with all their digits


def spawned(*arguments, cwd=None):
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [*SHOAL, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_file(firms(400), folder / "firms.csv")
    return folder


def smallest_group(path, columns):
    """Count the rarest combination of masked values in a released file, without shoal."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return min(Counter(tuple(row[column] for column in columns) for row in rows).values())


def test_mask_writes_all_outputs(folder):
    out, labels, manifest = folder / "out.csv", folder / "labels.csv", folder / "run.json"
    done = spawned(
        "mask", folder / "firms.csv", "-k", 5, "-c", "sales", "-c", "wages", "--by", "region", "-m", "v-mdav",
        "-O", "gamma=0.2", "-o", out, "--labels", labels, "--manifest", manifest, "-v",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for words in (
        "v-mdav (gamma=0.2)",
        "sales, wages",
        "information loss",
        "every combination of sales, wages within region is shared by at least 5 records",
        str(out),
        "seconds",
    ):
        assert words in done.stdout
    assert done.stderr == ""
    assert smallest_group(out, ["region", "sales", "wages"]) >= 5
    groups = pl.read_csv(labels)
    assert groups.columns == ["record", "group", "size"]
    assert groups["record"].to_list() == list(range(1, 401))
    assert groups["size"].min() >= 5
    assert (
        groups.group_by("group")
        .agg(pl.len().alias("n"), pl.col("size").first())
        .select((pl.col("n") == pl.col("size")).all())
        .item()
    )
    content = json.loads(manifest.read_text())
    assert content["input"] == {"path": "firms.csv", "sha256": sha256(folder / "firms.csv")}
    assert content["output"] == {"path": "out.csv", "sha256": sha256(out)}
    assert content["parameters"]["options"] == {"gamma": 0.2}
    assert sum(int(size) * count for size, count in content["result"]["group_sizes"].items()) == 400
    assert f"{content['result']['loss']:.5f}" in done.stdout


@pytest.mark.parametrize(("k", "loss"), [(3, "5.69219"), (5, "9.08844"), (10, "14.15593")])
def test_census_prints_the_reference_figures(tmp_path, k, loss):
    path = reference_path("census")
    keys = [word for name in pl.read_csv(path, n_rows=0).columns for word in ("-c", name)]
    done = command("mask", path, "-k", k, *keys, "-m", "mdav", *EXACT, "-o", tmp_path / "out.csv")
    assert f"{loss} %" in done.stdout
    with (tmp_path / "out.csv").open(newline="") as file:
        assert min(Counter(map(tuple, csv.reader(file))).values()) == 1  # the header line alone
    columns = pl.read_csv(tmp_path / "out.csv").columns
    assert smallest_group(tmp_path / "out.csv", columns) >= k


def test_a_manifest_repeats_a_run_to_the_byte(folder):
    arguments = ["-k", 4, "--missing", "group", "--weights", "weight", "--integers", "round"]
    first = command("mask", "firms.csv", *arguments, "-o", "a.csv", "--manifest", "a.json", cwd=folder)
    assert first.returncode == 0, first.stderr
    before = (folder / "a.csv").read_bytes()
    (folder / "a.csv").unlink()
    again = command("mask", "--from-manifest", folder / "a.json")
    assert again.returncode == 0, again.stderr
    assert "same bytes" in again.stdout
    assert (folder / "a.csv").read_bytes() == before
    elsewhere = command("mask", "--from-manifest", folder / "a.json", "-o", folder / "b.csv")
    assert elsewhere.returncode == 0
    assert (folder / "b.csv").read_bytes() == before


def test_a_manifest_of_another_file_is_refused(folder, tmp_path):
    write_file(firms(50), tmp_path / "in.csv")
    command("mask", "in.csv", "-k", 3, "-c", "sales", "-o", "out.csv", "--manifest", "run.json", cwd=tmp_path)
    write_file(firms(50, seed=1), tmp_path / "in.csv")
    done = command("mask", "--from-manifest", tmp_path / "run.json")
    assert done.returncode == 1
    assert "is not the recorded one" in done.stderr
    (tmp_path / "in.csv").unlink()
    assert "which does not exist" in command("mask", "--from-manifest", tmp_path / "run.json").stderr
    (tmp_path / "run.json").write_text("{}")
    assert "is not a manifest" in command("mask", "--from-manifest", tmp_path / "run.json").stderr
    assert "does not exist" in command("mask", "--from-manifest", tmp_path / "gone.json").stderr


def test_individual_ranking_warns_and_writes_labels_by_column(folder):
    done = spawned(
        "mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-c", "wages", "-m", "individual-ranking",
        "-o", folder / "ir.csv", "--labels", folder / "ir-labels.csv",
    )  # fmt: skip
    assert done.returncode == 0
    assert "NotKAnonymousWarning" in done.stderr
    assert pl.read_csv(folder / "ir-labels.csv").columns == [
        "record", "group_sales", "size_sales", "group_wages", "size_wages",
    ]  # fmt: skip


REFUSED = {
    "k is 1": (["-k", 1, "-c", "sales"], "-k must be at least 2"),
    "k above n": (["-k", 500, "-c", "sales"], "k=500, but the table has 400 records"),
    "k above a stratum": (
        ["-k", 30, "-c", "sales", "--by", "region", "--small", "error"],
        "the stratum region='Islands'",
    ),
    "no such column": (["-k", 3, "-c", "salse"], "Did you mean 'sales'?"),
    "text": (["-k", 3, "-c", "sector", "-m", "univariate"], "the values of 'sector' have no order"),
    "missing cells": (["-k", 3, "--missing", "error"], "Column 'research' has 31 missing values"),
    "too many left out": (
        ["-k", 3, "--missing", "drop"],
        "31 of 400 records (7.8%) would be suppressed, but --max-left-out is 5%",
    ),
    "no such share": (["-k", 3, "--max-left-out", "120%"], "--max-left-out must be"),
    "columns without a role": (["-k", 3, "-c", "sales", "--rest", "error"], "or use --rest drop to leave them out"),
    "no such rest": (["-k", 3, "-c", "sales", "--rest", "all"], "--rest must be one of"),
    "rest without columns": (["-k", 3, "--rest", "keep"], "--rest keep requires --column"),
    "no such method": (["-k", 3, "-m", "mdva"], "Did you mean 'mdav'"),
    "bad option": (["-k", 3, "-O", "gamma"], "-O must be NAME=VALUE"),
    "wrong option": (["-k", 3, "-m", "mdav", "-O", "gamma=1"], "Method 'mdav' has no option 'gamma'"),
    "no folder": (["-k", 3, "-c", "sales", "-o", "no/such/out.csv"], "does not exist"),
    "labels unwritable": (["-k", 3, "-c", "sales", "--labels", "no/such/l.csv"], "does not exist"),
    "manifest ending": (["-k", 3, "-c", "sales", "--manifest", "run.txt"], "must end in .json"),
    "same file twice": (["-k", 3, "-c", "sales", "--labels", "kept.csv"], "appears more than once among input"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_reason_and_nothing_changed(folder, tmp_path, case):
    arguments, words = REFUSED[case]
    (tmp_path / "kept.csv").write_text("old")
    output = [] if "-o" in arguments else ["-o", "kept.csv"]
    done = command("mask", folder / "firms.csv", *arguments, *output, cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "kept.csv").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["kept.csv"]


@pytest.mark.parametrize(
    "arguments",
    [["mask"], ["mask", "a.csv", "-o", "b.csv"], ["mask", "a.csv", "-k", "x"], ["nonsense"], ["mask", "--no"]],
)
def test_wrong_usage_is_exit_code_2(arguments):
    done = command(*arguments)
    assert done.returncode == 2
    assert "Usage" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("sign", SIGNALS)
def test_an_interrupt_leaves_the_old_file(tmp_path, sign):
    X = np.random.default_rng(0).normal(size=(60_000, 30))
    write_file(pl.DataFrame({f"c{j}": X[:, j] for j in range(30)}), tmp_path / "big.parquet")
    (tmp_path / "out.csv").write_text("old")
    process = subprocess.Popen(
        [*SHOAL, "mask", "big.parquet", "-k", "3", "-m", "centroid", "-o", "out.csv"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(4)
    assert process.poll() is None
    process.send_signal(sign)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + sign
    assert "; nothing was released" in errors
    assert "Traceback" not in errors
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["big.parquet", "out.csv"]


def test_an_interrupt_in_generated_code_ends_like_any_other(tmp_path):
    code = """
import sys, shoal.cli, shoal.masking.mask
def interrupted(*arguments):
    exec("raise KeyboardInterrupt")
shoal.masking.mask.mask_request = interrupted
sys.argv = ["shoal", "mask", "in.csv", "-k", "3", "-o", "out.csv"]
shoal.cli.main()
"""
    (tmp_path / "in.csv").write_text("x\n1\n2\n3\n")
    (tmp_path / "driver.py").write_text(code)
    # As a module, because Python then checks at exit for a pending interrupt.
    driver = [sys.executable, "-m", "driver"]
    done = subprocess.run(driver, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert "nothing was released" in done.stderr


@pytest.mark.parametrize("sign", SIGNALS)
def test_an_interrupt_that_was_dropped_is_answered(tmp_path, monkeypatch, sign):
    """Some places drop exceptions, and an import is often in one of them."""
    import shoal.masking.mask as front

    def dropping(*arguments):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), sign)
            time.sleep(1)
        return asked(*arguments)

    asked = front.mask_request
    monkeypatch.setattr(front, "mask_request", dropping)
    write_file(firms(60), tmp_path / "in.csv")
    (tmp_path / "out.csv").write_text("old")
    done = command("mask", "in.csv", "-k", 3, "-c", "sales", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 128 + sign
    assert "nothing was released" in done.stderr
    assert (tmp_path / "out.csv").read_text() == "old"
    again = command("mask", "in.csv", "-k", 3, "-c", "sales", "-o", "out.csv", cwd=tmp_path)
    assert again.returncode == 128 + sign


def test_an_interrupted_search_releases_its_best(folder, tmp_path):
    search = ["mask", str(folder / "firms.csv"), "-k", "3", "-c", "sales", "-c", "wages", "-m", "search"]
    began = time.monotonic()
    assert spawned(*search, "-O", "steps=10", "-o", tmp_path / "short.csv").returncode == 0
    process = subprocess.Popen(
        [*SHOAL, *search, "--time", "300", "-o", "out.csv"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    # After the duration of the previous run, this one is searching.
    time.sleep(time.monotonic() - began)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "stopped=by hand" in printed
    assert smallest_group(tmp_path / "out.csv", ["sales", "wages"]) >= 3


def test_search_with_a_bound_reports_the_gap(folder, tmp_path):
    done = command(
        "mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-m", "search", "-O", "steps=2000", "--bound",
        "-o", tmp_path / "out.csv", "--manifest", tmp_path / "run.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "run.json").read_text())["result"]
    assert "lower bound" in done.stdout
    assert 0 < result["bound"] <= result["loss"]
    timed = command(
        "mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-m", "search", "--time", 1,
        "-o", tmp_path / "timed.csv", "--manifest", tmp_path / "timed.json",
    )  # fmt: skip
    assert timed.returncode == 0, timed.stderr
    again = command("mask", "--from-manifest", tmp_path / "timed.json")
    assert again.returncode == 1
    assert "had a time limit" in again.stderr


def loaded_by(*arguments):
    """Return the modules that a command has imported."""
    code = "import sys\nfrom shoal.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())


def test_help_methods_and_version_need_no_compiler():
    for arguments in (["--help"], ["mask", "--help"], ["methods"], ["--version"]):
        loaded = loaded_by(*arguments)
        assert not loaded & {"numba", "numpy", "polars", "sklearn", "pandas", "scipy", "pyarrow", "matplotlib"}


@pytest.mark.parametrize(("name", "most"), [("mask", 100), ("publish", 80), ("compare", 70), ("assess", 70)])
def test_the_help_is_short_and_has_one_line_per_option(name, most):
    printed = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "100"})
    assert printed.exit_code == 0
    assert len(printed.output.splitlines()) <= most
    panels = printed.output.partition("─ Options ─")[2]
    rows = [line.strip("│ ") for line in panels.splitlines() if line.startswith("│")]
    assert len(rows) > 15
    wrapped = [row for row in rows if not row.startswith("-")]
    assert len(wrapped) == (name == "assess"), wrapped  # --measure lists the names of all measures


def test_masking_in_memory_imports_what_it_runs(folder, tmp_path):
    loaded = loaded_by("mask", folder / "firms.csv", "-k", 5, "-c", "sales", "-c", "wages", "-o", tmp_path / "out.csv")
    assert "shoal.algorithms.mdav" in loaded
    # scipy itself is a few small modules, which numba imports.
    others = {
        "dask", "distributed", "highspy", "jinja2", "matplotlib", "narwhals", "opendp", "pandas", "scipy.linalg",
        "scipy.sparse", "scipy.spatial", "scipy.stats", "sklearn",
    }  # fmt: skip
    assert not others & loaded
    unused = {
        "assessment.assess_request", "blocks.tree", "cli.compare_command", "comparison.compare_request", "engines.dask",
        "engines.disk_shuffle", "engines.local", "masking.column_patterns", "privacy.publish_request",
        "roles.recognition", "tables.head",
    }  # fmt: skip
    assert not loaded & {f"shoal.{name}" for name in unused}


def test_methods_lists_the_registry():
    from shoal.algorithms.registry import METHODS

    printed = command("methods").stdout
    for name, method in METHODS.items():
        assert name in printed
        assert all(f"-O {option.name}" in printed for option in method.options if option.scalar)


def test_demo_ends_with_its_files(tmp_path):
    done = command("demo", "--out", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path, report = (tmp_path / line.split()[-1] for line in done.stdout.splitlines()[-2:])
    assert done.stdout.splitlines()[-2].startswith("masked table")
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    masked = pl.read_csv(path, null_values=[""])
    assert (
        masked.group_by("region", "employees", "sales", "wages", "assets", "profit", "research").len()["len"].min() >= 5
    )
    again = command("demo", "--out", tmp_path / "demo")
    assert again.returncode == 0


def test_assess_fails_if_k_is_broken(folder, tmp_path):
    masked = tmp_path / "masked.csv"
    assert command("mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-m", "fixed", "-o", masked).returncode == 0
    broken = command("assess", folder / "firms.csv", masked, "-k", 5)
    assert broken.returncode == 1
    assert "smallest group 3" in broken.stdout
    assert len(broken.stderr.splitlines()) == 1
    assert "k = 5 does not hold: 400 of 400 records" in broken.stderr
    for promised in ([], ["-k", 3]):
        kept = command("assess", folder / "firms.csv", masked, *promised)
        assert kept.returncode == 0
        assert kept.stderr == ""


def test_an_option_of_the_method_cannot_be_a_parameter(folder, tmp_path):
    for name, method in product(("k", "output", "labels", "data"), ("mdav", "auto")):
        done = command(
            "mask", folder / "firms.csv", "-k", 5, "-c", "sales", "-m", method, "-O", f"{name}=2",
            "-o", tmp_path / "out.csv",
        )  # fmt: skip
        assert done.returncode == 1
        assert f"Method '{method}' has no option '{name}'" in done.stderr
        assert not list(tmp_path.iterdir())


def test_messages_name_flags_on_the_command_line(tmp_path):
    write_file(firms(60), tmp_path / "firms.csv")
    runs = {
        "--missing group": ["-k", 3, "--missing", "error"],
        "--max-left-out 15%": ["-k", 3, "--missing", "drop"],
        "--by names": ["-k", 3, "-c", "sales", "--by", "regin"],
        "--integers must be one of": ["-k", 3, "-c", "sales", "--integers", "never"],
        "--weights requires --aggregate mean, got --aggregate median": [
            "-k", 3, "-c", "sales", "--weights", "weight", "--aggregate", "median",
        ],
        "--integers round keeps them whole": ["-k", 3, "-c", "employees", "--integers", "float"],
    }  # fmt: skip
    for words, arguments in runs.items():
        done = CliRunner().invoke(
            app, ["mask", str(tmp_path / "firms.csv"), *map(str, arguments), "-o", str(tmp_path / "out.csv")]
        )
        assert words in done.output, done.output
        assert "Parameter" not in done.output


def test_the_command_line_has_an_option_for_every_parameter_of_a_request():
    from shoal.cli.mask_command import mask
    from shoal.cli.terminal import flags_of
    from shoal.masking.request import parameters

    flags = flags_of(mask)
    assert [item.name for item in parameters() if item.name not in flags] == [
        "kinds",  # --nominal, --ordinal, --hierarchy
        "progress",
        "options",  # -O
    ]
    assert (flags["columns"], flags["k"], flags["missing"]) == ("--column", "-k", "--missing")


def test_figures_of_the_summary_are_no_options(tmp_path):
    pl.DataFrame({"x": range(40), "y": [i * 7 % 11 for i in range(40)]}).write_csv(tmp_path / "in.csv")
    done = command("mask", "in.csv", "-k", 3, "--engine", "local", "-o", "out.csv", cwd=tmp_path)
    assert "peak memory=" in done.stdout
    done = command("mask", "in.csv", "-k", 3, "-c", "x", "--importance", "y=2", "-o", "out.csv", cwd=tmp_path)
    assert "names column 'y', which is not masked. Masked columns: x. Name it in --column too." in done.stderr


# --- output to the terminal ------------------------------------------------------------------------------------------

CONTROLS = "\x1b[2J\x07\x9b31m\u202e\u2066"
HOSTILE = f"pay{CONTROLS}"
MARKUP = "[red]age[/red]"
FORGED = "zip\nverified          everything"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return a folder with a table whose names, values and file name contain terminal control sequences."""
    path = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            HOSTILE: rng.normal(size=60).round(3),
            MARKUP: rng.integers(20, 60, 60),
            FORGED: rng.integers(0, 9, 60),
            "town": [f"a{CONTROLS}"] * 30 + [f"b{CONTROLS}"] * 30,
            f"name{CONTROLS}": [f"person {i}" for i in range(60)],
        }
    )
    frame.write_csv(path / "in.csv")
    frame.write_csv(path / f"in{CONTROLS}.csv")
    return path


def check_printed(done, *words):
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert not set(CONTROLS) & set(printed) - set("[2J31m"), printed
    for word in words:
        assert word in printed
    return printed


SHOWN = "pay\\x1b[2J\\x07\\x9b31m\\u202e\\u2066"


@pytest.mark.parametrize(
    "arguments",
    [
        ["mask", "in.csv", "-k", 5, "-c", HOSTILE, "-c", MARKUP, "-c", FORGED, "--by", "town", "-o", "out.csv", "-v"],
        ["inspect", "in.csv"],
        ["compare", "in.csv", "-k", 50, "-c", HOSTILE, "-c", MARKUP, "--by", "town", "--small", "error"],
        ["mask", "in.csv", "-k", 50, "-c", HOSTILE, "-c", MARKUP, "--by", "town", "--small", "error", "-o", "out.csv"],
        ["mask", "in.csv", "-k", 5, "-c", HOSTILE + "x", "-o", "out.csv"],
        ["mask", f"in{CONTROLS}.csv", "-k", 5, "-c", MARKUP, "-o", f"out{CONTROLS}.csv"],
        ["mask", f"gone{CONTROLS}.csv", "-k", 5, "-o", "out.csv"],
        ["publish", "in.csv", "--epsilon", 1, "-c", HOSTILE, "--bounds", f"{HOSTILE}=-3,3", "-o", "out.csv"],
    ],
)
def test_names_values_and_paths_cannot_control_the_terminal(hostile, arguments):
    check_printed(spawned(*arguments, cwd=hostile), "\\x1b[2J\\x07\\x9b31m\\u202e\\u2066")


def test_names_are_printed_as_they_are_written(hostile):
    asked = ["-c", HOSTILE, "-c", MARKUP, "-c", FORGED]
    done = spawned("mask", "in.csv", "-k", 5, *asked, "-o", "out.csv", cwd=hostile)
    assert done.returncode == 0, done.stderr
    check_printed(done, SHOWN, MARKUP, "zip\\nverified")
    assert sum(line.startswith("verified") for line in done.stdout.splitlines()) == 1
    assessed = spawned("assess", "in.csv", "out.csv", "-k", 5, *asked, cwd=hostile)
    assert assessed.returncode == 0, assessed.stderr
    check_printed(assessed, SHOWN, MARKUP, "zip\\nverified")


def test_a_progress_bar_shows_its_title_as_it_is_written(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as the bar can see
    watch(lambda _: time.sleep(1.2), None, title=MARKUP + "\x1b[2J", show=True)
    printed = capsys.readouterr().err
    assert MARKUP in printed
    assert "\x1b[2J" not in printed


def test_an_identifier_is_refused_once_and_kept_by_name(tmp_path):
    firms(60).with_columns(last_name=pl.Series([f"Miller{i}" for i in range(60)])).write_csv(tmp_path / "in.csv")
    arguments = ["mask", "in.csv", "-k", 5, "-c", "sales", "--rest", "keep", "-o", "out.csv"]
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("'last_name' looks like an identifier") == 1
    assert "--drop last_name" in done.stderr
    assert "--keep last_name" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    kept = command(*arguments, "--keep", "last_name", cwd=tmp_path)
    assert kept.returncode == 0, kept.stderr
    assert "last_name" in pl.read_csv(tmp_path / "out.csv").columns
    left_out = command(*arguments[:4], "-c", "sales", "-o", "out.csv", cwd=tmp_path)
    assert left_out.returncode == 0, left_out.stderr
    assert pl.read_csv(tmp_path / "out.csv").columns == ["sales"]


def test_a_formula_is_warned_of_once(tmp_path):
    pl.DataFrame({"x": np.arange(20), "note": ["=1+1", "a"] * 10}).write_csv(tmp_path / "in.csv")
    done = spawned("mask", "in.csv", "-k", 5, "-c", "x", "--keep", "note", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("would run as formulas") == 1


class PanicError(BaseException):
    """As libraries of Rust raise it."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libarrow.so: failed to map segment from shared object"),
        PanicError("could not spawn threads: Resource temporarily unavailable"),
        PanicError("OS can't spawn worker thread: Resource temporarily unavailable (os error 11)"),
        PanicError("PyObject pointer is null"),
    ],
    ids=lambda error: f"{type(error).__name__} {error}"[:40],
)
def test_lack_of_memory_is_reported_in_one_line(folder, tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("shoal.masking.mask.mask_request", fail)
    done = command("mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-o", "out.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("shoal: Memory ran out; nothing was released. Use --engine local with --memory")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_failing_destructors_print_nothing_without_memory(folder, tmp_path, monkeypatch):
    class HalfWritten:
        def __del__(self):
            raise ValueError("it cannot be closed")

    def fail(*_):
        half_written = HalfWritten()  # noqa: F841
        raise MemoryError

    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    monkeypatch.setattr("shoal.masking.mask.mask_request", fail)
    done = command("mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-o", "out.csv", cwd=tmp_path)
    assert done.stderr.startswith("shoal: Memory ran out")
    assert complaints == []


def test_a_refusal_names_a_lack_of_memory_only_if_that_is_the_cause(folder, tmp_path, monkeypatch):
    damaged = FileError("File in.parquet cannot be read as .parquet.")
    damaged.__context__ = OSError("Failed to launch worker thread: Resource temporarily unavailable")
    printed = []
    for error in (damaged, InputError("Column 'worker thread' is empty.")):
        monkeypatch.setattr("shoal.masking.mask.mask_request", Mock(side_effect=error))
        printed.append(command("mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-o", "out.csv", cwd=tmp_path))
    assert printed[0].stderr.startswith("shoal: Memory ran out; nothing was released.")
    assert printed[1].stderr == "shoal: Column 'worker thread' is empty.\n"
    assert [done.returncode for done in printed] == [1, 1]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_rust_prints_no_backtrace_without_memory():
    """While it did, it asked for memory, and waited for itself forever."""
    code = """
import sys
from shoal.cli import main

sys.argv = ["shoal", "--version"]
try:
    main()
except SystemExit:
    import polars as pl

    pl.repeat(0.0, 2**45, eager=True)
"""
    environment = os.environ | {"RUST_BACKTRACE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGABRT
    assert "allocation" in done.stderr
    assert "backtrace:" not in done.stderr


def test_other_errors_stay_errors_of_the_program(folder, tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("shoal.masking.mask.mask_request", fail)
    with pytest.raises(ZeroDivisionError):
        command("mask", folder / "firms.csv", "-k", 3, "-c", "sales", "-o", "out.csv", cwd=tmp_path)
