"""Runs that end between any two steps, on every engine: files, messages, leftovers, processes."""

import contextlib
import os
import signal
import site
import stat
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import command

from shoal.algorithms.registry import METHODS
from shoal.core import progress
from shoal.core.progress import SIGNALS, STOP, fresh_state, watch
from shoal.kernels import group_growth
from shoal.masking import pipeline
from shoal.tables import outputs

ENGINES = ("memory", "local", "dask")
# Steps of a run, in order; the run is ended before each of them, and after the last.
STEPS = [
    (pipeline, "choose_masked"),
    (pipeline, "check_engine"),
    (pipeline, "find_scales"),
    (pipeline, "_read"),
    (pipeline, "make_plan"),
    (pipeline, "choose_rule"),
    (pipeline, "_group"),
    (pipeline, "_without_ambiguous_codes"),
    (pipeline, "recount"),
    (pipeline, "summarise"),
    (outputs.Outputs, "move"),
    (import_module("shoal.cli.mask_command"), "print_release"),
]
FILES = {"-o": "out.parquet", "--manifest": "run.json"}
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]


def arguments(engine):
    named = [word for pair in FILES.items() for word in pair]
    return ["mask", "in.parquet", "-k", "4", "-c", "x", "-c", "y", "--engine", engine, *named]


@pytest.fixture
def folder(tmp_path):
    frame = pl.DataFrame({"x": [i * 37 % 101 for i in range(120)], "y": [i * 13 % 47 for i in range(120)]})
    frame.write_parquet(tmp_path / "in.parquet", row_group_size=40)
    for name in FILES.values():
        (tmp_path / name).write_text("old")
    return tmp_path


def kill_before(module, name, sign, set_attribute=setattr):
    """Send this process a signal before a step is done."""
    real = getattr(module, name)

    def killed(*given, **named):
        os.kill(os.getpid(), sign)
        # Python answers in its main thread, soon: a step in another one must not be faster.
        time.sleep(0.02)
        return real(*given, **named)

    set_attribute(module, name, killed)


def are_new(folder):
    files = [folder / name for name in FILES.values()]
    return {file.is_dir() or file.read_bytes() != b"old" for file in files}  # on Dask the table is a folder


def hidden(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("one_template")
@pytest.mark.parametrize("step", range(len(STEPS)), ids=[name for _, name in STEPS])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_signal_between_two_steps_leaves_old_files_and_nothing_else(folder, monkeypatch, engine, step):
    sign = SIGNALS[(step + ENGINES.index(engine)) % len(SIGNALS)]
    kill_before(*STEPS[step], sign, monkeypatch.setattr)
    done = command(*arguments(engine), cwd=folder)
    placed = step == len(STEPS) - 1
    assert done.returncode == 128 + sign, done.stderr
    assert are_new(folder) == {placed}
    assert ("nothing was released" in done.stderr) != placed
    assert ("complete and in place: " in done.stderr) == placed
    assert hidden(folder) == []
    assert "Traceback" not in done.stderr


def run_and_die(folder, engine, step):
    """Run the command in a process that kills itself; it never returns."""
    os.environ["SHOAL_FAULT"] = folder.name
    kill_before(*STEPS[step], signal.SIGKILL)
    return command(*arguments(engine), cwd=folder).stderr


def marked(folder):
    """Return the processes that a run has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"SHOAL_FAULT={folder.name}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("step", range(len(STEPS)), ids=[name for _, name in STEPS])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_run_leaves_old_files_and_leftovers_that_the_next_removes(folder, monkeypatch, template, engine, step):
    if template is None:
        pytest.skip("there are no forks here")
    template.run(site.addsitedir, str(Path(__file__).parent))
    process = template.fork()
    with pytest.raises((EOFError, OSError)):
        process.ask(run_and_die, (folder, engine, step))
    assert process.wait() == -signal.SIGKILL
    process.close()
    name, placed = STEPS[step][1], step == len(STEPS) - 1
    assert are_new(folder) == {placed}
    for path in hidden(folder):
        assert outputs.MARK in path.name
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    if (name in ("_group", "_without_ambiguous_codes") and engine != "memory") or name in ("recount", "move"):
        assert hidden(folder), "there are files by then"
    until = time.monotonic() + 20
    while marked(folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert marked(folder) == [], "workers end with the process that started them"
    monkeypatch.setattr(outputs, "YOUNG", 0.0)
    # Only Dask replaces a folder that it wrote.
    done = command(*arguments(engine if placed else "memory"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert are_new(folder) == {True}
    assert hidden(folder) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_releases_the_groups_of_a_search_and_sigterm_nothing(folder, monkeypatch, sign):
    group = pipeline._group

    def interrupted(*given):
        threading.Timer(0.3, os.kill, (os.getpid(), sign)).start()
        return group(*given)

    monkeypatch.setattr(pipeline, "_group", interrupted)
    done = command(*arguments("memory"), "-m", "search", "--time", "60", cwd=folder)
    assert done.returncode == (0 if sign == signal.SIGINT else 143), done.stderr
    assert are_new(folder) == {sign == signal.SIGINT}
    assert ("shoal: ended by SIGTERM; nothing was released" in done.stderr) == (sign == signal.SIGTERM)
    assert hidden(folder) == []


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupt_at_the_start_of_work_leaves_no_thread(monkeypatch, keep, before):
    """A run that was interrupted within `Thread.start` once went on, and left its files."""
    started, ended = threading.Event(), threading.Event()
    start = threading.Thread.start

    def interrupted_start(thread):
        if before and thread.name.startswith("shoal"):
            raise KeyboardInterrupt
        start(thread)

    def interrupted_wait(*_, **__):
        monkeypatch.undo()
        assert started.wait(5)
        raise KeyboardInterrupt

    def work(state):
        started.set()
        while not state[STOP]:
            time.sleep(0.001)
        time.sleep(0.1)
        ended.set()
        return "so far"

    monkeypatch.setattr(threading.Thread, "start", interrupted_start)
    monkeypatch.setattr(progress, "wait", interrupted_wait)
    if keep and not before:
        assert watch(work, None, keep=keep) == "so far"
    else:
        with pytest.raises(KeyboardInterrupt):
            watch(work, None, keep=keep)
    assert ended.is_set() != before


def test_a_second_interrupt_ends_work_that_ignores_the_first():
    """The interpreter once waited for the thread of the work until it had ended by itself."""
    code = """
import time
from shoal.core.progress import watch

def work(state):
    print("begun", flush=True)
    time.sleep(60)

watch(work, None)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"begun\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None, "the first waits for the work"
        try:
            for _ in range(5):  # a signal that arrives before the last was handled is lost
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(2)
                    break
            assert process.poll() not in (None, 0)
        finally:
            process.kill()


def test_a_second_interrupt_lets_work_remove_its_files():
    code = """
import time
from shoal.core.progress import STOP, watch

def work(state):
    print("begun", flush=True)
    while not state[STOP]:
        time.sleep(0.01)
    time.sleep(0.8)
    print("removed", flush=True)

watch(work, None)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"begun\n"
        time.sleep(0.3)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        assert process.stdout.read() == b"removed\n"


@pytest.mark.parametrize("method", list(METHODS))
def test_a_method_stopped_before_its_start_writes_within_its_array(method, monkeypatch):
    """Records that were left over were once added to groups that did not exist, beyond the end of an array."""

    def guarded(X, place, groups, labels):
        assert groups > 0
        leftovers(X, place, groups, labels)

    leftovers = group_growth.place_leftovers
    for module in ("centroid", "v_mdav", "diameter"):
        monkeypatch.setattr(f"shoal.algorithms.{module}.place_leftovers", guarded)
    X = np.random.default_rng(0).normal(size=(40, 1 if METHODS[method].univariate else 3))
    state = fresh_state()
    state[STOP] = 1
    entry = METHODS[method]
    labels = entry.run(X, 3, entry.read_options({}), seed=0, state=state).labels
    assert labels.min() >= 0
    assert labels.max() < len(X)
