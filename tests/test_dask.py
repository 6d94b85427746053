"""The Dask engine: row by row the result of memory, on a cluster of two processes, one of which may die."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.core.errors import InputError, VerificationError

dask = pytest.importorskip("dask", reason="the extra shoal[dask] is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra shoal[dask] is not installed")
distributed = pytest.importorskip("distributed", reason="the extra shoal[dask] is not installed")

COLUMNS = ["a", "b", "c"]
UNCHANGED = {"rest": "keep", "keep": ["record"], "decimals": "all"}  # unmasked columns show the order of records
pytestmark = pytest.mark.filterwarnings("default")  # Dask and its libraries warn about themselves


@pytest.fixture(scope="module")
def client():
    with (
        warnings.catch_warnings(),
        # A cluster drops a worker that is absent this long after its first absence, even if it came back in between.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit="1GB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")
        yield client


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(0, 2, (4000, 3))
    numbers[::2] = numbers[0]
    frame = pd.DataFrame(numbers, columns=COLUMNS)
    return frame.assign(region=rng.choice(["north", "south"], 4000), record=np.arange(4000))


@pytest.mark.parametrize("partitions", [1, 5])
def test_row_by_row_the_same_as_in_memory(client, table, partitions):
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED)
    release = shoal.mask(dd.from_pandas(table, npartitions=partitions), 3, columns=COLUMNS, block=200, **UNCHANGED)
    pd.testing.assert_frame_equal(release.data.compute(), expected.data, check_exact=True, check_dtype=False)
    assert release.loss == pytest.approx(expected.loss, rel=1e-12)
    assert release.size_histogram == expected.size_histogram
    assert release.facts["engine"] == f"dask, {partitions} partitions"
    assert release.facts["workers"] == 2


def test_strata_and_missing_values(client, table):
    table = table.copy()
    table.loc[table.index % 7 == 0, "b"] = np.nan
    for keywords in ({"by": ["region"], "missing": "group"}, {"missing": "drop", "max_left_out": 0.2}):
        expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED, **keywords).data
        found = shoal.mask(
            dd.from_pandas(table, npartitions=3), 3, columns=COLUMNS, block=200, **UNCHANGED, **keywords
        ).data.compute()
        pd.testing.assert_frame_equal(
            found.reset_index(drop=True), expected.reset_index(drop=True), check_exact=True, check_dtype=False
        )


def test_a_new_worker_has_pandas_before_it_runs_a_task():
    """A task once imported pandas while another thread unpickled a table, and saw only half of the module."""
    code = "import sys, shoal.engines.dask; assert 'pandas.core.frame' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_killed_worker_changes_nothing(client, table):
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED).data
    pids = list(client.run(os.getpid).values())

    def kill():
        time.sleep(0.5)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = shoal.mask(dd.from_pandas(table, npartitions=5), 3, columns=COLUMNS, block=200, **UNCHANGED).data.compute()
    killer.join()
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=False)


class Killer(distributed.SchedulerPlugin):
    """Kills a worker as soon as some tasks of a kind are done."""

    def __init__(self, prefix, tasks, processes):
        self.prefix, self.tasks, self.processes, self.killed = prefix, tasks, processes, None

    def transition(self, key, start, finish, *args, worker=None, **kwargs):
        name = key[0] if isinstance(key, tuple) else key
        if self.killed is None and start == "processing" and finish == "memory" and str(name).startswith(self.prefix):
            self.tasks -= 1
            if not self.tasks:
                self.killed = worker
                os.kill(self.processes[worker], signal.SIGKILL)


@pytest.mark.parametrize(("prefix", "tasks"), [("shuffle-transfer", 3), ("shuffle-transfer", 7), ("release_part", 2)])
def test_a_worker_killed_in_the_middle_of_a_shuffle_changes_nothing(client, table, monkeypatch, prefix, tasks):
    from shoal.engines import cluster

    monkeypatch.setattr(cluster, "RECORDS", 900)  # several targets
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED).data
    client.wait_for_workers(2, timeout=120)
    killer = Killer(prefix, tasks, client.run(os.getpid))
    client.cluster.scheduler.add_plugin(killer, name="killer")
    try:
        found = shoal.mask(
            dd.from_pandas(table, npartitions=5), 3, columns=COLUMNS, block=200, **UNCHANGED
        ).data.compute()
    finally:
        client.cluster.scheduler.remove_plugin("killer")
    assert killer.killed is not None
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=False)


def test_nothing_is_released_unverified(client, table, monkeypatch):
    from shoal.engines import cluster

    def spoiled(number, part, *rest):
        return part

    monkeypatch.setattr(cluster, "release_part", spoiled)
    with pytest.raises(VerificationError, match="fewer than k=3"):
        shoal.mask(dd.from_pandas(table, npartitions=2), 3, columns=COLUMNS, block=200, **UNCHANGED)


def test_refusals(client, table):
    data = dd.from_pandas(table, npartitions=2)
    with pytest.raises(InputError, match="names column 'z'"):
        shoal.mask(data, 3, columns=["z"])
    with pytest.raises(InputError, match="'block' must be at least 2k"):
        shoal.mask(data, 3, columns=COLUMNS, block=5)
    with pytest.raises(InputError, match="Columns region, record have no role"):
        shoal.mask(data, 3, columns=COLUMNS, rest="error")
    with pytest.raises(InputError, match="the values of 'region' have no order"):
        shoal.mask(data, 3, columns=["region"], method="univariate")


def test_files_on_a_cluster_by_its_address(client, table, tmp_path):
    table.to_parquet(tmp_path / "in.parquet", row_group_size=900)
    expected = shoal.mask(table, 3, columns=COLUMNS, block=200, **UNCHANGED)
    command = [sys.executable, "-m", "shoal", "mask", "in.parquet", "-k", "3", "-c", "a", "-c", "b", "-c", "c"]
    more = ["--rest", "keep", "--keep", "record", "--decimals", "all"]
    more += ["--block", "200", "--engine", "dask", "--scheduler", client.scheduler.address, "-o", "out.parquet"]
    done = subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out.parquet"), expected.data, check_exact=True, check_dtype=False
    )
    with pytest.raises(InputError, match="must be a path or a Dask DataFrame"):
        shoal.mask(table, 3, columns=COLUMNS, engine="dask")


@pytest.mark.parametrize(("thousands", "before"), [(None, ""), (".", "1.0")])
def test_csv_files_on_dask(client, tmp_path, thousands, before):
    (tmp_path / "in.csv").write_text("a;id\n" + "".join(f"{before}{10 + i % 50},5;{i:04d}\n" for i in range(2000)))
    for engine in ("local", "dask"):
        shoal.mask(
            tmp_path / "in.csv",
            3,
            columns=["a"],
            keep=["id"],
            block=100,
            engine=engine,
            output=tmp_path / f"{engine}.parquet",
            thousands=thousands,
        )
    local, found = (pd.read_parquet(tmp_path / f"{engine}.parquet") for engine in ("local", "dask"))
    pd.testing.assert_frame_equal(found, local, check_exact=True, check_dtype=False)
    assert found["id"].tolist()[:2] == ["0000", "0001"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dask.parquet", "in.csv", "local.parquet"]


def test_a_report_shows_available_figures_of_a_table_on_a_cluster(client, table, tmp_path):
    release = shoal.mask(dd.from_pandas(table, npartitions=2), 3, columns=COLUMNS, block=200, **UNCHANGED)
    page = release.report(tmp_path / "r.html").read_text()
    assert release.verified in page
    assert "stored and read again" not in page
