"""The embedded engine: row by row the result of memory, whatever the files, processes, deaths and limits."""

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal
from pyarrow import parquet
from typer.testing import CliRunner

import shoal
from shoal.algorithms.optimize.exchange import compile_annealing
from shoal.cli import app
from shoal.core import kernel_cache
from shoal.core.errors import FileError, InputError, VerificationError
from shoal.core.measures import canonical_labels
from shoal.core.memory_limits import read_memory
from shoal.core.progress import fresh_state
from shoal.demo import firms
from shoal.engines import local, process_pool
from shoal.engines.disk_shuffle import Shuffle
from shoal.engines.process_pool import Workers, WorkersError
from shoal.tables import files
from shoal.tables.files import is_beyond_memory, write_file

COLUMNS = ["a", "b", "c"]
UNCHANGED = {"rest": "keep", "keep": ["name"], "integers": "float", "decimals": "all"}  # the rest, and all digits
runner = CliRunner()


def skewed(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.lognormal(0, 2, (n, 3))
    numbers[::2] = numbers[0]
    frame = pl.DataFrame({name: numbers[:, j] for j, name in enumerate(COLUMNS)})
    return frame.with_columns(
        name=pl.Series([f"record {i}" for i in range(n)]),
        region=pl.Series(rng.choice(["north", "south"], n)),
        weight=pl.Series(rng.uniform(1, 2, n)),
    )


@pytest.fixture
def table():
    return skewed()


def masked(path, out, **keywords):
    """Mask from file to file in small parts."""
    asked = {"columns": COLUMNS, "block": 200, "engine": "local", "output": out, **UNCHANGED}
    return shoal.mask(path, 3, **{**asked, **keywords})


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, one_template):
    monkeypatch.setattr(local, "RECORDS", 1500)


@pytest.fixture(params=["forked", "spawned"])
def kind(request, monkeypatch):
    """Start method of workers; all systems except Linux spawn them."""
    if request.param == "forked" and not process_pool.FORKS:
        pytest.skip("no forks")
    monkeypatch.setattr(process_pool, "FORKS", request.param == "forked")


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("groups", [700, 5000])
def test_row_by_row_the_same_as_in_memory(table, tmp_path, processes, groups):
    table.write_parquet(tmp_path / "in.parquet", row_group_size=groups)
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED)
    release = masked(tmp_path / "in.parquet", tmp_path / "out.parquet", processes=processes)
    assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), expected.data, check_exact=True)
    assert release.loss == pytest.approx(expected.loss, rel=1e-12)
    assert release.column_loss == pytest.approx(expected.column_loss, rel=1e-12)
    assert release.size_histogram == expected.size_histogram
    same = ("blocks", "fused", "oversized", "rounds", "split")
    assert {name: release.facts[name] for name in same} == {name: expected.facts[name] for name in same}
    assert release.records == len(table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_records_are_left_out_of_a_table_that_is_masked_whole(tmp_path):
    pl.DataFrame({"a": [None, 0, 0, None, 7, 7, 10]}).write_parquet(tmp_path / "in.parquet", row_group_size=3)
    asked = {"columns": ["a"], "missing": "drop", "max_left_out": 0.3}
    shoal.mask(tmp_path / "in.parquet", 2, **asked, engine="local", output=tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["a"].to_list() == [0, 0, 8, 8, 8]


def test_a_folder_and_a_glob_are_one_table(table, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for i, part in enumerate(table.iter_slices(1700)):
        part.write_parquet(folder / f"part{i}.parquet")
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED).data
    for name, data in (("folder", folder), ("glob", folder / "part*.parquet")):
        masked(data, tmp_path / f"{name}.parquet")
        assert_frame_equal(pl.read_parquet(tmp_path / f"{name}.parquet"), expected, check_exact=True)


def test_strata_weights_missing_values_and_medians(table, tmp_path):
    table = table.with_columns(b=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("b")))
    table.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    for keywords in (
        {"by": ["region"], "missing": "group"},
        {"missing": "drop", "weights": "weight"},
        {"missing": "group", "aggregate": "median"},
    ):
        keywords |= {"max_left_out": 0.15, **UNCHANGED}
        expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **keywords)
        release = masked(tmp_path / "in.parquet", tmp_path / "out.parquet", **keywords)
        assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), expected.data, check_exact=True)
        assert release.loss == pytest.approx(expected.loss, rel=1e-12)


def test_types_are_kept(tmp_path):
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "a": rng.integers(0, 1000, 3000).astype(np.int16),
            "b": rng.normal(size=3000).astype(np.float32),
            "c": rng.normal(size=3000),
        }
    )
    table.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    for integers in ("float", "round"):
        expected = shoal.mask(table, 3, columns=COLUMNS, block=200, integers=integers)
        release = masked(
            tmp_path / "in.parquet", tmp_path / "out.parquet", keep=None, decimals="fit", integers=integers
        )
        assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), expected.data, check_exact=True)
        assert release.notes == expected.notes


@pytest.mark.usefixtures("kind")
def test_csv_is_the_same_to_the_byte(tmp_path):
    table = (
        firms(4000)
        .drop("research")
        .with_columns(code=pl.Series([f"{i:05d}" for i in range(4000)]), note=pl.lit('a "b", c'))
    )
    write_file(table, tmp_path / "in.csv")
    columns = ["sales", "assets", "employees"]
    for integers in ("float", "round"):
        keywords = {"columns": columns, "block": 200, "keep": ["code"], "rest": "keep", "integers": integers}
        shoal.mask(tmp_path / "in.csv", 3, output=tmp_path / "memory.csv", **keywords)
        shoal.mask(tmp_path / "in.csv", 3, output=tmp_path / "local.csv", engine="local", **keywords)
        assert (tmp_path / "local.csv").read_bytes() == (tmp_path / "memory.csv").read_bytes()


def test_csv_to_parquet(tmp_path):
    (tmp_path / "in.csv").write_text("a;id\n" + "".join(f"{i % 50},5;{i:04d}\n" for i in range(2000)))
    asked = {"columns": ["a"], "keep": ["id"], "block": 100}
    shoal.mask(tmp_path / "in.csv", 3, **asked, engine="local", output=tmp_path / "out.parquet")
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert out["id"].to_list()[:2] == ["0000", "0001"]
    assert out["a"].dtype == pl.Float64
    assert out["a"].mean() == pytest.approx(25.0)


def kill_workers(pids, delays):
    """Kill a worker process some time after its start, whatever it is doing; once per delay."""

    def alive():
        return [process for process in pids["workers"] if process.pid not in pids["killed"]]

    pids["killed"] = set()
    for delay in delays:
        while not alive() and not pids["stop"]:
            time.sleep(0.01)
        time.sleep(delay)
        for process in alive()[:1]:
            process.kill()
            pids["killed"].add(process.pid)


@pytest.mark.usefixtures("kind")
def test_a_killed_worker_is_replaced(table, tmp_path, monkeypatch):
    table.write_parquet(tmp_path / "in.parquet", row_group_size=500)
    pids = {"workers": [], "stop": False}
    start = Workers._start

    def seen(self):
        process = start(self)
        pids["workers"].append(process)
        return process

    monkeypatch.setattr(Workers, "_start", seen)
    killer = threading.Thread(target=kill_workers, args=(pids, (0.1, 0.7)))
    killer.start()
    masked(tmp_path / "in.parquet", tmp_path / "out.parquet", processes=2)
    pids["stop"] = True
    killer.join()
    assert pids["killed"]
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED)
    assert_frame_equal(pl.read_parquet(tmp_path / "out.parquet"), expected.data, check_exact=True)


@pytest.mark.usefixtures("kind")
def test_workers_that_keep_dying_are_an_error():
    with Workers(1, fresh_state()) as pool, pytest.raises(WorkersError, match=r"died 3 times .* exit code 7"):
        list(pool.map(exec, [("import os; os._exit(7)",)]))


@pytest.mark.usefixtures("kind")
def test_background_work_ends_with_the_block(tmp_path, monkeypatch):
    started, spawned = [], process_pool.Spawned
    monkeypatch.setattr(process_pool, "Spawned", lambda: started.append(spawned()) or started[-1])
    found = tmp_path / "found"
    with process_pool.working_aside(lambda: partial(os.mkfifo, found)):
        while not found.exists():
            time.sleep(0.01)
    with process_pool.working_aside(lambda: partial(time.sleep, 600)):
        pass
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
    assert len(started) == 2


def test_background_work_that_cannot_start_is_skipped(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with process_pool.working_aside(lambda: partial(time.sleep, 600)):
        pass


@pytest.mark.parametrize(
    ("method", "compiled", "expected"), [("auto", False, 1), ("auto", True, 0), ("mdav", False, 0)]
)
def test_a_first_run_compiles_in_two_processes(tmp_path, monkeypatch, method, compiled, expected):
    asked, front = [], import_module("shoal.masking.mask")
    monkeypatch.setattr(front, "start_template", lambda *_: nullcontext())  # there is none for a table in memory
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(front, "working_aside", lambda find: asked.append(find) or nullcontext())
    (tmp_path / "a folder that numba makes").mkdir()
    if compiled:
        (tmp_path / "a folder that numba makes" / "kernel.nbi").touch()
    shoal.mask(np.arange(12.0).reshape(6, 2), 3, method=method)
    assert [find() for find in asked] == [compile_annealing] * expected


def test_errors_of_a_worker_arrive():
    with Workers(1, fresh_state()) as pool:
        with pytest.raises(InputError, match="'memory' must be a size"):
            list(pool.map(read_memory, [("much",)]))
        assert list(pool.map(read_memory, [("1KB",), ("2KB",)])) == [1000, 2000]


@pytest.mark.usefixtures("kind")
def test_a_task_that_cannot_be_sent_raises_an_error():
    with Workers(1, fresh_state()) as pool:
        with pytest.raises((pickle.PicklingError, AttributeError)):
            list(pool.map(len, [(lambda: None,)]))
        assert list(pool.map(abs, [(-2,)])) == [2]


@pytest.mark.skipif(sys.platform != "linux", reason="no forks")
def test_a_number_that_may_be_another_process_is_not_killed(monkeypatch):
    with Workers(1, fresh_state()) as pool:
        (gone,) = pool.map(os.getpid, [()])
        pool._renew()
        killed, kill = [], os.kill
        monkeypatch.setattr(os, "kill", lambda pid, sign: (killed.append(pid), kill(pid, sign)))
    assert killed
    assert gone not in killed


@pytest.mark.skipif(sys.platform != "linux", reason="no forks")
def test_a_nursery_that_is_killed_at_work_is_replaced(tmp_path):
    with Workers(1, fresh_state()) as pool:
        mark = str(tmp_path / "died")
        die_once = f"import os\nif not os.path.exists({mark!r}): os.mkdir({mark!r}); os._exit(1)"
        pool.prepare(exec, (die_once,))
        assert list(pool.map(abs, [(-2,)])) == [2]
        with pytest.raises(WorkersError, match="died 3 times"):
            pool.prepare(exec, ("import os; os._exit(1)",))


@pytest.mark.skipif(sys.platform != "linux", reason="no forks")
def test_a_killed_template_is_replaced():
    with Workers(1, fresh_state()) as pool:
        pool.prepare(bool, (0,))
        first = list(pool.map(os.getpid, [()]))
        pool._template.kill()
        assert list(pool.map(os.getpid, [()])) == first
        with pytest.raises(WorkersError, match="died 3 times"):
            list(pool.map(exec, [("import os; os._exit(1)",)]))
        assert list(pool.map(os.getpid, [()])) != first


@pytest.mark.skipif(sys.platform != "linux", reason="no forks")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_forked_processes_have_one_thread(table, tmp_path, monkeypatch, ending):
    """A fork has the locks of other threads, but not the threads that would release them."""
    threads, parents = [], []
    fork = process_pool.Template.fork

    def seen(self):
        names = self.run(os.listdir, "/proc/self/task")
        threads.append([self.run(Path(f"/proc/self/task/{name}/comm").read_text) for name in names])
        process = fork(self)
        parents.append(process.ask(os.getppid, ())[1] == self.pid)
        return process

    monkeypatch.setattr(process_pool.Template, "fork", seen)
    write_file(table, tmp_path / f"in.{ending}")
    masked(tmp_path / f"in.{ending}", tmp_path / f"out.{ending}", processes=2)
    assert [len(names) for names in threads] == [1] * len(threads), threads
    assert parents == [True] * len(threads)
    assert threads


@pytest.mark.skipif(sys.platform != "linux", reason="no forks")
@pytest.mark.skipif("COVERAGE_PROCESS_CONFIG" in os.environ, reason="coverage looks into all modules")
@pytest.mark.parametrize(
    ("asked", "loaded"), [({}, []), ({"by": "region"}, ["polars"]), ({"missing": "group"}, ["polars"])]
)
def test_workers_import_what_a_table_needs(table, tmp_path, monkeypatch, asked, loaded):
    """Each library that workers import takes memory in every worker."""
    found, peaks = [], Workers.peaks

    def seen(self):
        process = self._idle.get()
        found.append(process.ask(eval, ("sorted({'polars', 'pandas'} & {*__import__('sys').modules})",))[1])
        self._idle.put(process)
        return peaks(self)

    monkeypatch.setattr(Workers, "peaks", seen)
    every_third = pl.int_range(pl.len()) % 3 == 0 if "missing" in asked else pl.lit(value=False)
    numbers = [pl.col("a", "b"), pl.when(~every_third).then(pl.col("c").round().cast(pl.Int32))]
    table.select(*numbers, *([asked["by"]] if "by" in asked else [])).write_parquet(tmp_path / "in.parquet")
    masked(tmp_path / "in.parquet", tmp_path / "out.parquet", processes=1, keep=None, **asked)
    assert found == [loaded]


START_A_THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.skipif(sys.platform != "linux", reason="no forks")
@pytest.mark.parametrize("code", [START_A_THREAD, "import polars; polars.DataFrame()", "import polars.selectors"])
def test_processes_with_threads_are_not_forked(code):
    with Workers(2, fresh_state()) as pool:
        (parent,) = pool.map(os.getppid, [()])
        assert parent == pool._template.pid
        pool.prepare(exec, (code,))
        (parent,) = pool.map(os.getppid, [()])
        assert parent == os.getpid()


def test_nothing_is_released_unverified(table, tmp_path, monkeypatch):
    table.write_parquet(tmp_path / "in.parquet")
    (tmp_path / "out.parquet").write_text("old")
    join = local._join_parquet

    def spoiled(path, *rest):
        join(path, *rest)
        out = pl.read_parquet(path)
        out[0, "a"] = -1.0
        out.write_parquet(path)

    monkeypatch.setattr(local, "_join_parquet", spoiled)
    with pytest.raises(VerificationError, match="fewer than k=3"):
        masked(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupt_leaves_the_old_file(tmp_path):
    skewed(200_000).write_parquet(tmp_path / "in.parquet", row_group_size=20_000)
    (tmp_path / "out.parquet").write_text("old")
    command = [sys.executable, "-m", "shoal", "mask", "in.parquet", "-k", "3", "-c", "a", "-c", "b", "-c", "c"]
    process = subprocess.Popen(
        [*command, "--engine", "local", "-o", "out.parquet"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.poll() is None and not list(tmp_path.glob(".out-*/*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted; nothing was released" in errors
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


@pytest.mark.parametrize("missing", ["drop", "group"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_are_those_of_memory_except_for_their_numbers(table, tmp_path, missing, ending):
    table = table.with_columns(b=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("b")))
    table.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    labels = tmp_path / f"labels.{ending}"
    asked = {"missing": missing, "max_left_out": 0.15}
    expected = shoal.mask(
        table, 3, columns=COLUMNS, block=200, **UNCHANGED, **asked, labels=tmp_path / "memory.parquet"
    )
    masked(tmp_path / "in.parquet", tmp_path / "out.parquet", **asked, labels=labels)
    found = pl.read_csv(labels) if ending == "csv" else pl.read_parquet(labels)
    written = pl.read_parquet(tmp_path / "memory.parquet")
    assert found["record"].to_list() == written["record"].to_list() == (expected.kept + 1).tolist()
    assert found["size"].to_list() == written["size"].to_list()
    assert canonical_labels(found["group"].to_numpy()).tolist() == expected.labels.tolist()
    assert found["group"].n_unique() == found["group"].max() + 1 == len(expected.sizes)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("fails", [False, True])
def test_no_file_is_open_or_mapped_when_it_is_removed(table, tmp_path, monkeypatch, fails):
    """Windows would refuse it, and the intermediate files would stay."""
    table.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    removed, held, unlink, rmtree = [], [], Path.unlink, shutil.rmtree

    def look(path):
        removed.append(path)
        names = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
        names += [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        held.extend(name for name in names if name.startswith(str(path)))

    monkeypatch.setattr(Path, "unlink", lambda path, **keywords: (look(path), unlink(path, **keywords))[1])
    monkeypatch.setattr(shutil, "rmtree", lambda path, **keywords: (look(path), rmtree(path, **keywords))[1])
    if fails:
        monkeypatch.setattr(parquet.ParquetWriter, "write_table", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        masked(tmp_path / "in.parquet", tmp_path / "out.parquet", labels=tmp_path / "labels.csv")
    assert removed
    assert not held


def test_a_folder_has_a_manifest_that_is_repeated_and_a_report(table, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for i, part in enumerate(table.iter_slices(3500)):
        part.write_parquet(folder / f"part{i}.parquet")
    shown = runner.invoke(
        app,
        ["mask", str(folder), "-k", "3", "-c", "a", "-c", "b", "--block", "200", "-o", str(tmp_path / "out.parquet"),
         "--labels", str(tmp_path / "labels.parquet"), "--manifest", str(tmp_path / "run.json"),
         "--report", str(tmp_path / "report.html")],
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert pl.read_parquet(tmp_path / "labels.parquet").height == len(table)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "6,000 records were put" in page
    assert "was not measured, because the original was not available" in page
    assert "--block 200" in page
    content = json.loads((tmp_path / "run.json").read_text())
    assert list(content["input"]["files"]) == ["part0.parquet", "part1.parquet"]
    again = ["mask", "--from-manifest", str(tmp_path / "run.json"), "-o", str(tmp_path / "again.parquet")]
    shown = runner.invoke(app, again)
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "out.parquet").read_bytes()
    table[:10].write_parquet(folder / "part1.parquet")
    shown = runner.invoke(app, again)
    assert shown.exit_code != 0
    assert "part1.parquet" in str(shown.exception) + shown.output


FULL_DISK = """
import resource, signal, sys, shoal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file too large is an error of the call, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
asked = {"columns": ["a", "b", "c"], "rest": "keep", "keep": ["name", "note"], "decimals": "all"}
shoal.mask("in.parquet", 3, **asked, block=200, engine="local", output="out.parquet")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
@pytest.mark.parametrize("size", [60_000, 400_000])
def test_a_full_disk_leaves_the_old_file(table, tmp_path, size):
    """No file may grow beyond a size: first those of a worker meet it, then the output that the caller writes."""
    wide = table.with_columns(note=pl.col("name").repeat_by(6).list.join("-"))
    wide.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    (tmp_path / "out.parquet").write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(size)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "FileError: Output out.parquet cannot be written: " in done.stderr
    assert "File too large" in done.stderr
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_the_memory_limit_is_kept_by_all_processes_together(tmp_path):
    """A table of 1.2 GB in memory, masked by a worker and its parent within 800 MB, kernels compiled or not."""
    n, limit = 250_000, 800_000_000
    long = pa.array([f"{i}".ljust(1200, "x") for i in range(9)])
    rng = np.random.default_rng(0)
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64()), *((f"text{j}", pa.string()) for j in range(4))])
    with parquet.ParquetWriter(tmp_path / "in.parquet", schema) as writer:
        for _ in range(20):
            m = n // 20
            texts = [long.take(rng.integers(0, 9, m)) for _ in range(4)]
            writer.write_table(pa.table([rng.normal(size=m), rng.normal(size=m), *texts], schema=schema))
    code = (
        "import shoal, json\n"
        f"r = shoal.mask('in.parquet', 50, columns=['a', 'b'], method='mdav', output='out.parquet', memory={limit})\n"
        "print(json.dumps(r.facts))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    assert facts["engine"] == "local, 1 process"
    together = re.fullmatch(r"(\d+) MB in total, (\d+) MB per process", facts["peak memory"])
    assert int(together[2]) * 1e6 <= int(together[1]) * 1e6 <= limit
    assert parquet.read_metadata(tmp_path / "out.parquet").num_rows == n


@pytest.mark.usefixtures("kind")
def test_processes_that_compiled_are_replaced():
    with Workers(1, fresh_state()) as pool:
        origin = os.getpid if pool._template is None else os.getppid
        first = list(pool.map(origin, [()]))
        pool.prepare(bool, (0,))
        assert list(pool.map(origin, [()])) == first
        pool.prepare(bool, (1,))
        assert list(pool.map(origin, [()])) != first


def test_the_engine_is_chosen_by_size(table, tmp_path, monkeypatch):
    table.write_parquet(tmp_path / "in.parquet")
    assert not is_beyond_memory(tmp_path / "in.parquet", None, None)
    assert not is_beyond_memory(table, None, None)
    assert is_beyond_memory(tmp_path, None, None)
    assert is_beyond_memory(tmp_path / "in.parquet", None, "2GB")
    monkeypatch.setattr(files, "available_memory", lambda: 1000)
    assert is_beyond_memory(tmp_path / "in.parquet", None, None)
    assert not is_beyond_memory(tmp_path / "in.parquet", "memory", None)


def test_records_are_regrouped_in_order_and_answers_come_back(tmp_path):
    shuffle = Shuffle(tmp_path, "test", np.array([0, 3, 3, 5]), 3, {"x": ("int64", 1), "back": ("float64", 2)})
    shuffle.create()
    sources = [([1, 0, 1], [10, 11, 12]), ([], []), ([1, 1], [13, 14])]
    for _ in range(2):  # a task may run twice
        begins = [
            shuffle.write(source, np.array(target, dtype=np.int64), {"x": np.array(x, dtype=np.int64)})
            for source, (target, x) in enumerate(sources)
        ]
    places = shuffle.places(begins)
    assert [shuffle.read(place, "x")[:, 0].tolist() for place in places] == [[11], [10, 12, 13, 14], []]
    assert places[1].counts.tolist() == [2, 0, 2]
    for place in places:
        x = shuffle.read(place, "x")
        shuffle.answer(place, "back", np.hstack([x, -x]))
    assert [shuffle.answers(source, "back")[:, 1].tolist() for source in range(3)] == [
        [-10, -11, -12],
        [],
        [-13, -14],
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test-back", "test-order", "test-x"]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"k": 10**9}, "'k' must not exceed the number of records"),
        ({"block": 5}, "'block' must be at least 2k"),
        ({"block": 0}, "'block' must not be 0"),
        ({"memory": "much"}, "'memory' must be a size"),
        ({"memory": "1MB"}, "'memory' must be at least"),
        ({"engine": "cloud"}, "'engine' must be"),
        ({"columns": ["z"]}, "names column 'z'"),
        ({"columns": ["name"], "method": "univariate"}, "the values of 'name' have no order"),
        ({"columns": ["hole"], "missing": "error"}, "Column 'hole' has 1 missing value"),
        ({"columns": ["infinite"]}, "'infinite' must be finite, but record 6 holds inf"),
        ({"by": ["name"], "small": "error"}, "the stratum name='record 0' has 1 record"),
        ({"rest": "error"}, "Columns name, region, weight, hole, infinite have no role"),
        (
            {"columns": ["hole", "a"], "missing": "drop", "max_left_out": 0},
            r"1 of 100 records \(1%\) would be suppressed",
        ),
        ({"max_left_out": "2"}, "'max_left_out' must be"),
        ({"output": None}, "'output' must name a file"),
        ({"output": "out.sav"}, "for a table on disk"),
        ({"weights": [1.0]}, "'weights' must name a column"),
        ({"labels": "out.parquet"}, "'labels' must not name the output"),
        ({"labels": "labels.html"}, "must end in"),
        ({"method": "individual-ranking"}, "'individual-ranking' groups every column on its own, which needs"),
    ],
)
def test_refusals(tmp_path, keywords, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = skewed(100).with_columns(hole=pl.col("a"), infinite=pl.col("a"))
    table[5, "hole"], table[5, "infinite"] = None, np.inf
    table.write_parquet("in.parquet")
    given = {"k": 3, "columns": COLUMNS, "engine": "local", "output": "out.parquet", **keywords}
    with pytest.raises(InputError, match=message):
        shoal.mask("in.parquet", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_no_files_are_an_error(tmp_path):
    with pytest.raises(FileError, match="has no files that end in"):
        masked(tmp_path, tmp_path / "out.parquet")


def test_a_file_that_is_not_parquet(tmp_path):
    (tmp_path / "in.parquet").write_text("no")
    with pytest.raises(FileError, match=r"cannot be read as \.parquet"):
        masked(tmp_path / "in.parquet", tmp_path / "out.parquet")


def test_available_memory_is_that_of_the_container(tmp_path, monkeypatch):
    from shoal.core import memory_limits

    free = memory_limits.available_memory()
    monkeypatch.setattr(memory_limits, "CONTROL_GROUPS", tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory_limits.available_memory() > 0.5 * free
    (tmp_path / "memory.max").write_text("5000000\n")
    assert memory_limits.available_memory() == 4_999_000
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("3000000\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("4000000\n")
    assert memory_limits.available_memory() == 0


def test_long_records_anywhere_in_a_file_are_counted(tmp_path):
    from shoal.tables.sources import record_bytes

    n = 40_000
    note = pl.Series(["z" * (2000 if 15_000 <= i < 30_000 else 1) for i in range(n)]) + pl.Series(map(str, range(n)))
    table = pl.DataFrame({"x": np.arange(n) * 1.0, "note": note})
    table.write_parquet(tmp_path / "in.parquet", row_group_size=5_000)
    table.write_csv(tmp_path / "in.csv")
    for name in ("in.parquet", "in.csv"):
        found = record_bytes(tmp_path / name)
        assert max(found) >= 2000
        assert min(found) < 200


def test_a_file_that_changes_during_the_run_is_not_released(table, tmp_path, monkeypatch):
    table.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    real = local._join_parquet

    def replaced(path, *arguments):
        real(path, *arguments)
        table.reverse().write_parquet(tmp_path / "in.parquet")

    monkeypatch.setattr(local, "_join_parquet", replaced)
    with pytest.raises(FileError, match="changed during masking"):
        masked(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_engine_depends_on_the_memory_of_masking(tmp_path, monkeypatch, ending):
    """5 million × 20 held 7.4 GB in memory where the rule foresaw 1.6: nine times its numbers, not twice."""
    from shoal.tables import files

    frame = pl.DataFrame(np.random.default_rng(0).normal(size=(2000, 20)).round(6))
    path = tmp_path / f"in.{ending}"
    frame.write_parquet(path) if ending == "parquet" else frame.write_csv(path)
    size = 8 * frame.height * frame.width
    for memory, beyond in ((12 * size, True), (60 * size, False)):
        monkeypatch.setattr(files, "available_memory", lambda memory=memory: memory)
        assert files.is_beyond_memory(path, None, None) is beyond
