"""Shared fixtures: reference data (if available), worker processes, the command line."""

import io
import os
import signal
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from templates import open_template, sharing

from shoal.core.measures import standardise
from shoal.core.progress import SIGNALS

ROOT = Path(__file__).resolve().parent.parent
collect_ignore = ["mutate.py"]  # run by `make mutants`, which needs other libraries
# Tests that share a server and a browser, a cluster, or a comparison of all methods run in one process.
TOGETHER = ("test_app.py", "test_comparison.py", "test_dask.py", "test_spark.py")
NOT_NUMBERS = {"eia": ["UTILNAME", "STATE", "YEAR", "MONTH"]}

# Facts about the table of a release, equal on every engine.
FIGURES = (
    "notes", "verified", "left", "status", "reached", "outsider", "singled_out", "unique_units", "unique_weights",
    "identifying", "left_out", "homogeneous", "concentrated", "dominated",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute tests one by one, but files of `TOGETHER` as a whole and first, as they take long."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::")[0]
            return path if path.endswith(TOGETHER) else nodeid

    return Scheduling(config, log)


def reference_path(name):
    """Return the path of a reference file, or skip: the files are public but not part of this project."""
    folder = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
    path = folder / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"reference data {name}.csv is not at hand; name its folder in SHOAL_DATA")
    return path


@pytest.fixture(scope="session")
def reference():
    """Return a loader of reference data: name → standardised array."""

    def load(name):
        frame = pl.read_csv(reference_path(name)).drop(NOT_NUMBERS.get(name, []))
        return standardise(frame.to_numpy().astype(np.float64))

    return load


@pytest.fixture(scope="session")
def template():
    """Return the process from which workers of the local engine are forked; None without forks."""
    with open_template() as process:
        yield process


@pytest.fixture
def one_template(template):
    """Make all runs fork their workers from one process."""
    with sharing(template):
        yield


def _bytes_stream():
    """Return a text stream that also accepts bytes, like that of a terminal."""
    return io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)


def command(*arguments, cwd="."):
    """Run a shoal command like ``python -m shoal``, but in this process, which has imported everything already.

    For what a command does and says; a signal, an import or the end of a process needs a process.
    """
    from shoal.cli import main

    argv = ["shoal", *map(str, arguments)]
    code, handlers = 0, {number: signal.getsignal(number) for number in SIGNALS}
    with (
        chdir(cwd), redirect_stdout(_bytes_stream()) as out, redirect_stderr(io.StringIO()) as err,
        patch.object(sys, "argv", argv), patch.dict(os.environ, COLUMNS="200", NO_COLOR="1"),
        patch.object(sys, "unraisablehook", sys.unraisablehook),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)  # as in Python, except for code that a script itself calls
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return CompletedProcess(argv, code, out.buffer.getvalue().decode(), err.getvalue())
