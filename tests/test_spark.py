"""The Spark engine: row by row the result of memory, on a cluster of two executors, one of which may die.

A run takes seconds here, whatever its size: the contract of the engines is tested on a choice of its cases.
"""

import datetime as dt
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from conftest import FIGURES

import shoal
from shoal.core.errors import InputError, VerificationError
from shoal.core.memory_limits import peak_bytes
from shoal.engines import cluster, spark_tasks
from shoal.engines.spark_tasks import pack, packets_of, unpack

sql = pytest.importorskip("pyspark.sql", reason="the extra shoal[spark] is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java, on which Spark runs", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")
MASTER = "local-cluster[2,1,1024]"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
COLUMNS = ["a", "b", "c"]
PARTS = (10, 100, 1000) if "SHOAL_ENGINES" in os.environ else (3, 12)  # a thousand take minutes
# Unmasked columns stay and show the order of records.
ASKED = {"k": 3, "columns": COLUMNS, "block": 200, "rest": "keep", "keep": ["record"], "decimals": "all"}


@pytest.fixture(scope="module")
def spark():
    """Start a session whose driver receives at most 4 MB: counts, and the sample that chooses blocks."""
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.maxResultSize": "4m",
            "spark.sql.session.timeZone": "Europe/Madrid",
            "spark.executorEnv.PYTHONPATH": str(Path(shoal.__file__).parents[1]),
            # Nothing here runs long enough for Java's second compiler to pay.
            "spark.driver.extraJavaOptions": QUICK,
            "spark.executor.extraJavaOptions": QUICK,
        }
        builder = sql.SparkSession.builder.master(MASTER)
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(0, 2, (1200, 3))
    numbers[::2] = numbers[0]
    regions = rng.choice(["north", "south"], 1200)
    return pa.table({**dict(zip(COLUMNS, numbers.T, strict=True)), "region": regions, "record": np.arange(1200)})


def in_parts(spark, table, parts, change=None):
    """Return a frame with the rows of a table in partitions, one of them empty; `change` is done to each by Spark."""
    cuts = [0, *np.linspace(0, len(table), parts).astype(int)] if parts > 1 else [0, len(table)]  # the first is empty
    schema = spark.createDataFrame(table.slice(0, 0)).schema

    def rows(batches):
        for batch in batches:
            for part in batch.column(0).to_pylist():
                found = table.slice(cuts[part], cuts[part + 1] - cuts[part])
                yield from (found if change is None else change(found)).to_batches()

    return spark.range(0, parts, 1, parts).mapInArrow(rows, schema)


def assert_same(release, expected, found=None):
    """Compare with what was masked in memory: values and their order, losses, notes and what was recounted."""
    found = pl.from_arrow(release.data.toArrow()) if found is None else found
    wanted = pl.from_arrow(expected.data)
    assert found.columns == wanted.columns
    for name in wanted.columns:
        left, right = (frame[name].fill_nan(None) if frame[name].dtype.is_float() else frame[name]
                       for frame in (wanted, found))  # fmt: skip
        assert left.to_list() == right.to_list(), name
    assert release.loss == pytest.approx(expected.loss, rel=1e-12)
    assert release.size_histogram == expected.size_histogram
    for attribute in (*FIGURES, "dropped", "left_out", "blanked"):
        assert getattr(release, attribute) == getattr(expected, attribute), attribute


# Records as bytes


def test_arrays_of_any_shape_are_packed_and_unpacked():
    rng = np.random.default_rng(0)
    units = rng.integers(0, 2**63, 7000, np.uint64)
    arrays = {"X": rng.normal(size=(7000, 3)), "codes": np.arange(7000), "unit": units}
    target = rng.integers(0, 5, 7000)
    batches = list(packets_of(pack(arrays), target))
    found = {t: [] for t in range(6)}
    for batch in batches:
        for to, facts, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            assert not facts
            found[to].append(data)
    for t, cells in found.items():
        records = unpack(np.frombuffer(b"".join(cells), dtype=pack(arrays).dtype))
        for name, array in arrays.items():
            np.testing.assert_array_equal(records[name], array[target == t])


def test_records_of_another_target_are_refused():
    batches = packets_of(pack({"row": np.arange(3)}), np.array([0, 1, 0]))
    with pytest.raises(RuntimeError, match="records of other targets to partition 0"):
        spark_tasks.ArrivedRecords({"row": "int64"}).read(batches)


@pytest.mark.parametrize("targets", [1, 7, 300])
def test_every_row_comes_to_the_target_that_it_names(spark, targets):
    """Also if adaptive execution changes small or empty partitions."""
    moved = pa.table({"target": pa.array(np.tile(np.arange(targets), 5), pa.int32())})
    placed = spark.createDataFrame(moved).repartitionById(targets, "target")
    places = placed.selectExpr("target", "spark_partition_id() as place").toArrow()
    assert places["place"].to_pylist() == places["target"].to_pylist()
    assert len(places) == 5 * targets
    assert placed.rdd.getNumPartitions() == targets


# The same as in memory


def test_row_by_row_the_same_as_in_memory(spark, table):
    expected = shoal.mask(table, **ASKED)
    release = shoal.mask(in_parts(spark, table, 5), **ASKED)
    assert_same(release, expected)
    assert release.facts["engine"] == "spark, 5 partitions"
    assert release.data.is_cached
    assert release.data.rdd.getNumPartitions() == 5


def test_columns_are_found_by_their_exact_names(spark, table):
    names = ["^.*$", "*", "^r.*$", "region", "a.b"]
    asked = {"k": 3, "columns": names[:2], "by": ["region"], "identifiers": ["^r.*$"], "block": 200}
    asked |= {"rest": "keep", "keep": ["a.b"]}
    renamed = table.rename_columns(names)
    release = shoal.mask(in_parts(spark, renamed, 3), **asked)
    assert release.data.columns == ["^.*$", "*", "region", "a.b"]
    assert_same(release, shoal.mask(renamed, **asked))


def test_a_text_in_two_unicode_forms_is_one(spark, table):
    names = pa.array(["Jos\u00e9", "Jose\u0301", "Ann", "Ulm"] * 300)
    table = table.append_column("name", names)
    roles = (
        {"by": "name"},
        {"columns": ["a", "name"], "kinds": {"name": "nominal"}},
        {"unit": "name", "k": 2, "keep": ["record", "name"]},
    )
    for asked in ({**ASKED, **role, "block": 1300} for role in roles):
        release = shoal.mask(in_parts(spark, table, 3), **asked)
        assert_same(release, shoal.mask(table, **asked))
        if "unit" not in asked:
            assert "Jose\u0301" not in pl.from_arrow(release.data.toArrow())["name"]


@pytest.fixture(scope="module")
def many(table):
    """Return a table with the shapes of the contract: missing cells, codes, sums, units, strata of few records."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "name": [f"record {i}" for i in range(160)],
            "a": [None if i % 8 < 2 else float(x) for i, x in enumerate(rng.lognormal(size=160).round(3))],
            "b": pl.Series(rng.normal(size=160), dtype=pl.Float32),
            "count": rng.integers(0, 50, 160),
            "few": rng.integers(-1, 3, 160),
            "weight": rng.uniform(1, 3, 160),
            "region": ["north", "south"] * 80,
        }
    )
    return frame.with_columns(both=pl.col("count") + pl.col("few")).to_arrow().cast(
        pa.schema([("name", pa.string()), ("a", pa.float64()), ("b", pa.float32()), ("count", pa.int64()),
                   ("few", pa.int64()), ("weight", pa.float64()), ("region", pa.string()), ("both", pa.int64())])
    )  # fmt: skip


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": ["a", "b"], "missing": "drop", "max_left_out": "30%", "by": "region", "weights": "weight",
         "identifiers": "name", "rest": "keep"},
        {"columns": ["a", "few", "region"], "zeros": ["a", "few"], "small": "suppress", "max_left_out": 1},
        {"columns": ["a", "b"], "confidential": "region", "diversity": 2, "unit": "count", "keep": "count",
         "block": 160},
        {"columns": ["count", "few", "both"], "sums": "both = count + few", "integers": "totals", "by": "region"},
    ],
    ids=str,
)  # fmt: skip
def test_policies_are_the_same(spark, many, asked):
    asked = {"k": 3, "block": 40, "missing": "group", **asked}
    assert_same(shoal.mask(in_parts(spark, many, 4), **asked), shoal.mask(many, **asked))


@pytest.mark.parametrize(
    "asked",
    [
        {"k": 200},
        {"missing": "error"},
        {"missing": "drop"},
        {"rest": "error"},
        {"rest": "keep"},
        {"columns": None, "rest": "keep"},
        {"columns": ["aa"]},
        {"columns": ["count", "few", "both"], "sums": "count = both + few"},
    ],
    ids=str,
)
def test_refusals_have_the_same_messages_as_in_memory(spark, many, asked):
    asked = {"k": 3, "columns": ["a", "b"], "block": 40, "missing": "group", **asked}
    with pytest.raises(InputError) as memory:
        shoal.mask(many, **asked)
    with pytest.raises(InputError, match=f"^{re.escape(str(memory.value))}$"):
        shoal.mask(in_parts(spark, many, 4), **asked)


def test_numbers_that_are_text_are_refused_as_in_memory(spark, many):
    slips = many.select(["b"]).append_column("pay", pa.array([*map(str, range(len(many) - 1)), "Total"]))
    with pytest.raises(InputError, match=f"'pay' contains numbers, but record {len(many)} holds 'Total'") as memory:
        shoal.mask(slips, 3)
    with pytest.raises(InputError, match=f"^{re.escape(str(memory.value))}$"):
        shoal.mask(in_parts(spark, slips, 4), 3)


def test_every_type_of_column(spark):
    """Masked: integers, floats, decimals, Booleans, text, dates, times; left alone: nested columns, bytes."""
    rng, n = np.random.default_rng(0), 300
    moments = [dt.datetime(2024, 3, 30, tzinfo=dt.UTC) + dt.timedelta(minutes=17 * i) for i in range(n)]
    given = spark.createDataFrame(
        pa.table(
            {
                "tiny": pa.array(rng.integers(-5, 5, n), pa.int8()),
                "price": pa.array([Decimal(int(x)) / 100 for x in rng.integers(0, 9999, n)], pa.decimal128(10, 2)),
                "sure": pa.array(rng.random(n) < 0.5),
                "day": pa.array([m.date() for m in moments]),
                "at": pa.array(moments, pa.timestamp("us", "UTC")),
                "a.b": pa.array(rng.normal(size=n), pa.float32()),
                "nested": pa.array([{"x": [i], "y": str(i)} for i in range(n)]),
                "bytes": pa.array([bytes([i % 256]) for i in range(n)]),
            }
        )
    ).coalesce(1)
    asked = {"k": 3, "columns": ["tiny", "price", "sure", "day", "at", "a.b"], "block": 100, "missing": "group"}
    asked |= {"rest": "keep", "keep": ["nested", "bytes"]}
    release = shoal.mask(given, **asked)
    assert_same(release, shoal.mask(given.toArrow(), **asked))
    assert release.data.schema["nested"].dataType == given.schema["nested"].dataType
    assert release.data.schema["at"].dataType == given.schema["at"].dataType


def test_schema_metadata_of_the_original_is_dropped(spark, table):
    data = spark.createDataFrame(table).coalesce(2)
    data = data.withMetadata("a", {"comment": "of ACME"}).withMetadata("region", {"comment": "of ACME"})
    assert "ACME" in data.schema.json()
    assert "ACME" not in shoal.mask(data, **ASKED).data.schema.json()


def test_a_table_that_comes_from_a_shuffle_is_kept_in_one_order(spark, table):
    data = spark.createDataFrame(table).repartition(3, "record")
    release = shoal.mask(data, **ASKED)
    assert release.data.count() == 1200
    assert not data.is_cached
    values = pl.from_arrow(release.data.toArrow()).sort("record")
    assert values["region"].to_list() == table["region"].to_pylist()


# No wrong table is released


def test_a_table_that_changes_when_recomputed_is_detected(spark, table):
    def change(found):
        return found.set_column(0, "a", pa.array(np.random.default_rng().normal(size=len(found))))

    with pytest.raises(InputError, match=r"changes when Spark computes it again.*data = data\.persist\(\)"):
        shoal.mask(in_parts(spark, table, 2, change), **ASKED)
    kept = in_parts(spark, table, 2, change).persist()
    assert shoal.mask(kept, **ASKED).data.count() == 1200
    kept.unpersist()


release_part = cluster.release_part


def spoiled(*given):
    """Return a part with the given values."""
    made = release_part(*given)
    return made.set_column(0, "a", pa.array(np.arange(len(made), dtype=np.float64)))


def test_a_violation_removes_the_written_files(spark, table, tmp_path, monkeypatch):
    (tmp_path / "out.parquet").mkdir()
    (tmp_path / "out.parquet" / "old").touch()
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors cannot import this file
    monkeypatch.setattr(cluster, "release_part", spoiled)
    with pytest.raises(VerificationError, match="fewer than k=3"):
        shoal.mask(in_parts(spark, table, 3), **ASKED, output=tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.rglob("*")] == ["out.parquet", "old"]


def test_a_killed_executor_changes_nothing(spark, table, monkeypatch):
    expected = shoal.mask(table, **ASKED)
    killed = []
    regroup = cluster.ClusterRecords.regroup

    def kill():
        found = subprocess.run(["pgrep", "-f", "ExecutorBackend"], capture_output=True, text=True, check=True)
        ours = [int(pid) for pid in found.stdout.split() if is_ours(int(pid))]
        killed.append(ours[0])
        os.kill(ours[0], signal.SIGKILL)

    def is_ours(pid):
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return False

    def interrupted(records, how, **named):
        if not killed:
            threading.Timer(0.3, kill).start()
        return regroup(records, how, **named)

    monkeypatch.setattr(cluster.ClusterRecords, "regroup", interrupted)
    release = shoal.mask(in_parts(spark, table, 5), **ASKED)
    assert_same(release, expected)
    assert killed


# Files


def test_executors_write_a_data_set_in_the_order_of_the_input(spark, table, tmp_path):
    target, labels = tmp_path / "out.parquet", tmp_path / "labels.parquet"
    target.mkdir()
    (target / "old").touch()
    asked = {**ASKED, "missing": "drop", "max_left_out": 0.2}
    holed = [None if i % 9 == 0 else x for i, x in enumerate(table["a"].to_pylist())]
    table = table.set_column(0, "a", pa.array(holed))
    expected = shoal.mask(table, **asked)
    release = shoal.mask(in_parts(spark, table, 5), **asked, output=target, labels=labels)
    assert release.data == target
    assert (target / "_SUCCESS").exists()
    assert not (target / "old").exists()
    assert_same(release, expected, pl.read_parquet(sorted(target.glob("*.parquet"))))
    told = pl.read_parquet(sorted(labels.glob("*.parquet")))
    assert (told["record"] - 1).to_list() == expected.kept.tolist()
    sizes = told.group_by("group").agg(pl.len(), pl.col("size").first())
    assert (sizes["len"] == sizes["size"]).all()
    values = pl.read_parquet(sorted(target.glob("*.parquet"))).with_columns(told["group"])
    assert values.group_by("group").agg(pl.n_unique("a")).get_column("a").max() == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.parquet", "out.parquet"]
    assert labels.stat().st_mode & 0o777 == 0o700, "labels tie released records to the original ones"


def test_the_command_line_starts_and_ends_a_session(table, tmp_path):
    pl.from_arrow(table).write_parquet(tmp_path / "in.parquet")
    command = [sys.executable, "-m", "shoal", "mask", "in.parquet", "-k", "3", "-c", "a", "-c", "b", "-c", "c"]
    more = ["--rest", "keep", "--keep", "record", "--decimals", "all"]
    more += ["--block", "200", "--engine", "spark", "--master", "local[1]", "-o", "out.parquet"]
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": QUICK}
    done = subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = pl.read_parquet(sorted((tmp_path / "out.parquet").glob("*.parquet")))
    assert found.to_dict(as_series=False) == pl.from_arrow(shoal.mask(table, **ASKED).data).to_dict(as_series=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_options_that_spark_does_not_support_are_refused(spark, table, tmp_path):
    data = spark.createDataFrame(table)
    pl.from_arrow(table).write_csv(tmp_path / "in.csv")
    for asked, words in (
        ({"data": data, "output": tmp_path / "out.csv"}, "must end in .parquet or .pq for engine='spark'"),
        ({"data": data, "master": "yarn"}, "'master' requires engine='spark' and a path"),
        ({"data": data, "engine": "local"}, "'engine' must be 'spark' for a Spark DataFrame"),
        ({"data": data, "shuffle": True}, "'shuffle' needs the whole table in memory"),
        ({"data": table, "engine": "spark", "output": tmp_path / "o.parquet"}, "must be a path or a Spark DataFrame"),
        ({"data": tmp_path / "in.csv", "engine": "spark", "output": tmp_path / "o.parquet"}, "must be Parquet"),
        ({"data": tmp_path / "in.parquet", "engine": "spark", "output": tmp_path / "o.parquet"}, "does not exist"),
        ({"data": tmp_path / "in.csv", "master": "yarn", "output": tmp_path / "o.csv"}, "'master' requires"),
        (
            {"data": tmp_path / "in.csv", "engine": "spark", "master": "yarn", "output": tmp_path / "o.parquet"},
            "a Spark session is active",
        ),
        ({"data": data.selectExpr("*", "interval '1' year as y")}, "'data' has columns that Spark cannot transfer"),
    ):
        with pytest.raises((InputError, OSError), match=re.escape(words)):
            shoal.mask(asked.pop("data"), **{**ASKED, **asked})


# What it costs


def test_tasks_grow_as_the_partitions_and_the_driver_does_not(spark):
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=4_000) for name in COLUMNS})
    tasks, peaks = [], []
    for parts in PARTS:
        spark.sparkContext.setJobGroup(f"{parts} partitions", "counted")
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that of this run, not of the tests before
        shoal.mask(in_parts(spark, table, parts), k=3, columns=COLUMNS, method="mdav", block=2000)
        tasks.append(tasks_of(spark.sparkContext.statusTracker(), f"{parts} partitions"))
        peaks.append(peak_bytes() / 1e6)
    for (few, before), (many, after) in pairwise(zip(PARTS, tasks, strict=True)):
        assert after < 1.15 * many / few * before, tasks
    assert peaks[-1] < peaks[0] + 30, peaks  # MB; Spark gives it 4 MB of results at most


def tasks_of(tracker, group):
    """Return the tasks of all jobs of a group, however many were skipped."""
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    return sum(info.numTasks for stage in stages if (info := tracker.getStageInfo(stage)) is not None)


# The Python of the executors


@pytest.mark.parametrize("named", [False, True])
def test_executors_on_this_machine_run_this_python_unless_another_is_named(tmp_path, named):
    """A user's session runs the python3 on the path, which may be another Python without shoal."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    program = """
import sys
import polars as pl
from pyspark.sql import SparkSession
import shoal
pl.DataFrame({"x": [float(i * 7 % 40) for i in range(40)]}).write_parquet("in.parquet")
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
release = shoal.mask(session.read.parquet("in.parquet"), 4, columns=["x"])
print("masked", release.data.count(), session.sparkContext.pythonExec)
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    if named:
        environment["PYSPARK_PYTHON"] = str(other)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ("masked 40 python3\n" in done.stdout) != named, done.stderr[-2000:]
