"""Files on Dask: data sets that workers write completely or not at all, at paths and at addresses."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command
from pyarrow import parquet

import shoal
from shoal.core.errors import FileError, InputError, VerificationError
from shoal.engines import cluster
from shoal.engines import dask as engine
from shoal.masking import pipeline
from shoal.tables.addresses import one_schema

dask = pytest.importorskip("dask", reason="the extra shoal[dask] is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra shoal[dask] is not installed")
fsspec = pytest.importorskip("fsspec")

ASKED = {"columns": ["a", "b"], "block": 100, "missing": "drop", "keep": ["note"]}
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("one_template")]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a = pd.Series(rng.normal(size=700).round(3))
    a[::50] = np.nan
    return pl.from_pandas(
        pd.DataFrame({"a": a, "b": rng.integers(0, 90, 700), "note": [f"{i:04d}" for i in range(700)]})
    )


@pytest.fixture(scope="module")
def expected(table, tmp_path_factory):
    """The release and its labels as the local engine writes them."""
    folder = tmp_path_factory.mktemp("local")
    table.write_parquet(folder / "in.parquet")
    names = {"output": folder / "out.parquet", "labels": folder / "labels.parquet"}
    release = shoal.mask(folder / "in.parquet", 3, engine="local", processes=1, **names, **ASKED)
    return release, *(pl.read_parquet(path) for path in names.values())


@pytest.fixture
def here():
    """Dask in this thread: an address in memory belongs to one process."""
    with dask.config.set(scheduler="synchronous"):
        yield


def write_parts(table, folder, open_file):
    for number, start in enumerate(range(0, len(table), 250)):
        with open_file(f"{folder}/{number}.parquet", "wb") as file:
            table[start : start + 250].write_parquet(file)


def read_parts(folder):
    system, path = fsspec.core.url_to_fs(str(folder))
    names = sorted(name.rpartition("/")[2] for name in system.find(path))
    assert names.pop(0) == "_SUCCESS"
    assert names == [f"part-{number:05d}.parquet" for number in range(len(names))]
    return pl.concat([pl.from_arrow(parquet.read_table(system.open(f"{path}/{name}"))) for name in names]), len(names)


@pytest.fixture
def in_memory(table, here):
    system = fsspec.filesystem("memory")
    system.store.clear()
    write_parts(table, "/in", system.open)
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def assert_equal_labels(found, labels):
    assert found["record"].to_list() == labels["record"].to_list()
    assert found["size"].to_list() == labels["size"].to_list()
    pairs = set(zip(found["group"].to_list(), labels["group"].to_list(), strict=True))
    assert len(pairs) == found["group"].n_unique() == labels["group"].n_unique()


@pytest.mark.parametrize("data", ["memory://in", "memory://in/*.parquet"])
def test_an_address_is_masked_to_an_address(in_memory, expected, data):
    names = {"output": "memory://folder/out.parquet", "labels": "memory://folder/labels.parquet"}
    release = shoal.mask(data, 3, engine="dask", **names, **ASKED)
    assert release.data == "memory://folder/out.parquet"
    assert release.facts["engine"] == "dask, 3 partitions"
    assert release.loss == pytest.approx(expected[0].loss, rel=1e-12)
    found, files = read_parts(release.data)
    assert files == 3
    assert found.equals(expected[1])
    assert_equal_labels(read_parts(names["labels"])[0], expected[2])
    with pytest.raises(FileError, match="already exists"):
        shoal.mask(data, 3, engine="dask", output=names["output"], **ASKED)


def test_the_command_line_takes_addresses(in_memory, expected):
    arguments = ["-k", "3", "-c", "a", "-c", "b", "--block", "100", "--missing", "drop", "--keep", "note"]
    done = command("mask", "memory://in", *arguments, "--engine", "dask", "-o", "memory://out.parquet")
    assert done.returncode == 0, done.stderr
    assert "memory://out.parquet" in done.stdout
    assert read_parts("memory://out.parquet")[0].equals(expected[1])
    done = command(
        "mask", "memory://in", *arguments, "--engine", "dask", "-o", "memory://x.parquet", "--manifest", "m.json"
    )
    assert done.returncode == 1
    assert "--manifest" in done.stderr
    assert not in_memory.exists("/x.parquet")


@pytest.mark.parametrize("ending", [VerificationError("not k"), KeyboardInterrupt(), OSError("disk")], ids=repr)
def test_written_files_are_removed_if_the_recount_fails(in_memory, tmp_path, monkeypatch, ending):
    there = {}

    def fails(*given, **named):
        there["memory"] = in_memory.find("/out.parquet")
        raise ending

    monkeypatch.setattr(pipeline, "recount", fails)
    for output in ("memory://out.parquet", tmp_path / "out.parquet"):
        with pytest.raises(type(ending)):
            shoal.mask("memory://in", 3, engine="dask", output=output, **ASKED)
    assert [name.rpartition("/")[2] for name in there["memory"]] == []  # of the second run: the first has gone
    assert not in_memory.find("/out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_recount_reads_the_written_files(in_memory, monkeypatch):
    write = engine.write_parts

    def spoiled(*given):
        source = write(*given)
        with in_memory.open("/out.parquet/part-00001.parquet", "rb") as file:
            frame = pl.read_parquet(file.read())
        with in_memory.open("/out.parquet/part-00001.parquet", "wb") as file:
            frame.with_columns(a=pl.int_range(len(frame)).cast(pl.Float64)).write_parquet(file)
        return source

    monkeypatch.setattr(engine, "write_parts", spoiled)
    with pytest.raises(VerificationError, match="fewer than k=3"):
        shoal.mask("memory://in", 3, engine="dask", output="memory://out.parquet", **ASKED)
    assert not in_memory.find("/out.parquet")


def test_a_late_writer_removes_its_file(in_memory):
    from shoal.tables.addresses import abandon, begin, write_part

    begin("memory://late.parquet")
    write_part("memory://late.parquet", 0, pa.table({"a": [1]}))
    abandon("memory://late.parquet")
    with pytest.raises(FileError, match="no longer needed"):
        write_part("memory://late.parquet", 1, pa.table({"a": [1]}))
    assert not in_memory.find("/late.parquet")


def test_a_file_address_is_a_path_and_a_new_data_set_replaces_an_old_one(table, expected, tmp_path, here):
    source, out = tmp_path / "in", tmp_path / "out.parquet"
    source.mkdir()
    write_parts(table, source, fsspec.filesystem("file").open)
    for output in (f"file://{out}", out):
        shoal.mask(f"file://{source}", 3, engine="dask", output=output, **ASKED)
        found, files = read_parts(out)
        assert files == 3
        assert found.equals(expected[1])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out.parquet"]
        assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()
    assert parquet.read_schema(out / "part-00000.parquet").metadata is None
    (out / "mine.txt").write_text("of another program")
    with pytest.raises(FileError, match="a folder of other files"):
        shoal.mask(source, 3, engine="dask", output=out, **ASKED)
    (out / "mine.txt").unlink()
    with pytest.raises(InputError, match="must not be the input"):
        shoal.mask(out / "*.parquet", 3, engine="dask", output=out, **ASKED)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_an_older_table_stays_until_the_new_one_is_complete(table, tmp_path, here, monkeypatch):
    table.write_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    shoal.mask(tmp_path / "in.parquet", 3, engine="dask", output=out, **ASKED)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    real = Path.replace

    def fails(self, target):
        if Path(target) == out and self.is_dir() and not self.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fails)
        with pytest.raises(FileError, match="No space left"):
            shoal.mask(tmp_path / "in.parquet", 5, engine="dask", output=out, **ASKED)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        ("memory://in.csv", {"output": "memory://out.parquet"}, "must be Parquet at an address"),
        ("memory://nothing", {"output": "memory://out.parquet"}, "has no files that end in .parquet"),
        ("memory://in", {"output": "memory://out.csv"}, "must end in .parquet or .pq on a cluster"),
        ("memory://in", {"output": "x.parquet", "labels": "labels.csv"}, "must end in .parquet or .pq on a cluster"),
        ("nosuch://in", {"output": "memory://out.parquet"}, "Protocol not known"),
        ("memory://in", {"output": "x.parquet", "engine": "local"}, "is an address, which only clusters read"),
        ("memory://in", {"output": "memory://x.parquet", "engine": "memory"}, "which only clusters write to"),
    ],
)
def test_options_that_addresses_do_not_support_are_refused(in_memory, tmp_path, monkeypatch, data, more, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, FileError), match=message):
        shoal.mask(data, 3, **{"engine": "dask", **more}, **ASKED)
    assert list(tmp_path.iterdir()) == []
    assert not in_memory.find("/out.parquet")


def test_csv_files_need_a_local_path_for_rewritten_parts(in_memory, table, tmp_path):
    table.write_csv(tmp_path / "in.csv")
    with pytest.raises(InputError, match="Convert them to Parquet first"):
        shoal.mask(tmp_path / "in.csv", 3, engine="dask", output="memory://out.parquet", **ASKED)


def test_an_object_store(table, expected, here, monkeypatch):
    """A server of the protocol of S3 in a thread of this process."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        system = fsspec.filesystem("s3", skip_instance_cache=True)
        system.mkdir("bucket")
        write_parts(table, "bucket/in", system.open)
        shoal.mask("s3://bucket/in", 3, engine="dask", output="s3://bucket/out.parquet", **ASKED)
        assert read_parts("s3://bucket/out.parquet")[0].equals(expected[1])
        with monkeypatch.context() as patched:
            patched.setattr(pipeline, "recount", _refuse)
            with pytest.raises(VerificationError):
                shoal.mask("s3://bucket/in", 3, engine="dask", output="s3://bucket/other.parquet", **ASKED)
        system.invalidate_cache()
        assert not system.find("bucket/other.parquet")
    finally:
        server.stop()
        fsspec.get_filesystem_class("s3").clear_instance_cache()


def _refuse(*_):
    raise VerificationError("fewer than k")


def test_a_frame_that_changes_between_computations_is_detected(table, here):
    seen = []

    def make(start):
        seen.append(start)
        return table[start : start + 350].to_pandas().assign(b=np.random.default_rng(len(seen)).normal(size=350))

    frame = dd.from_map(make, [0, 350], meta=table[:0].to_pandas().assign(b=np.empty(0)))
    with pytest.raises(InputError, match=r"changed when it was computed again .*partition \d.*data = data.persist\(\)"):
        shoal.mask(frame, 3, **ASKED)
    shoal.mask(frame.persist(), 3, **ASKED)


def test_a_file_that_changes_during_the_run_is_detected(table, tmp_path, here, monkeypatch):
    table.write_parquet(tmp_path / "in.parquet")
    group = pipeline._group

    def changing(*given):
        table.with_columns(pl.col("a").reverse()).write_parquet(tmp_path / "in.parquet")
        return group(*given)

    monkeypatch.setattr(pipeline, "_group", changing)
    with pytest.raises(InputError, match="changed when it was computed again"):
        shoal.mask(tmp_path / "in.parquet", 3, engine="dask", output=tmp_path / "out.parquet", **ASKED)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_numbers_stored_as_text_are_refused_in_a_frame(table, here):
    frame = table.select("b").to_pandas().assign(pay=[*map(str, range(699)), "Total"])
    with pytest.raises(InputError, match="'pay' contains numbers, but record 700 holds 'Total'"):
        shoal.mask(dd.from_pandas(frame, npartitions=3), 3)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("index", ["note", ["b", "note"], None])
@pytest.mark.parametrize("missing", ["group", "drop"])
def test_partitions_stay_and_records_are_numbered_through(table, index, missing):
    frame = table.to_pandas()
    frame["row"] = range(len(frame))
    if isinstance(index, list):  # which Dask does not divide
        cut = [frame.iloc[first : first + 175].set_index(index) for first in range(0, 700, 175)]
        parts = dd.from_delayed([dask.delayed(part) for part in cut])
    else:
        parts = dd.from_pandas(frame if index is None else frame.set_index(index), npartitions=4)
    release = shoal.mask(parts, 3, columns=["a"], block=100, missing=missing, keep=["row"])
    found = release.data.compute()
    assert release.data.npartitions == 4
    assert release.data.known_divisions
    assert found.index.equals(pd.RangeIndex(len(found)))
    assert found.index.names == [None]
    expected = frame["row"] if missing == "group" else frame["row"][frame["a"].notna()]
    assert found["row"].tolist() == expected.tolist()
    assert release.data.loc[5:7].compute()["row"].tolist() == expected.iloc[5:8].tolist()
    told = any("index of the pandas table is not in the release" in note for note in release.notes)
    assert told == (index is not None)


@pytest.mark.usefixtures("here")
def test_an_empty_partition_is_numbered_too(table):
    frame = table.to_pandas()
    cut = [frame[:300], frame[:0], frame[300:]]
    parts = dd.from_delayed([dask.delayed(part.set_index("note")) for part in cut])
    found = shoal.mask(parts, 3, columns=["b"], block=100).data
    assert found.npartitions == 3
    assert found.compute().index.equals(pd.RangeIndex(700))


def test_labels_of_a_frame(table, expected, tmp_path, here):
    frame = dd.from_pandas(table.to_pandas(), npartitions=3)
    shoal.mask(frame, 3, labels=tmp_path / "labels.parquet", **ASKED)
    assert_equal_labels(read_parts(tmp_path / "labels.parquet")[0], expected[2])


def test_all_files_have_one_schema():
    null, text = pa.schema([("x", pa.null())]), pa.schema([("x", pa.string())])
    assert one_schema([null, text, null], "Output") == text
    with pytest.raises(InputError, match="different column types in different partitions"):
        one_schema([text, pa.schema([("x", pa.int64())])], "Output out.parquet")


# The shape of graphs


class Counting:
    """A Dask client that counts the requested tasks instead of running them."""

    base, delayed, tasks = dask.base, staticmethod(dask.delayed), 0

    def persist(self, *pieces):
        layers = {}
        for piece in pieces:
            layers |= piece.__dask_graph__().layers  # shared ones have one name
        self.tasks += sum(len(layer) for layer in layers.values())
        return [dask.delayed(None, name=f"held-{piece.key}") for piece in pieces]

    def compute(self, *pieces):
        self.persist(*pieces)
        return [(None, cluster.PartState(1, 1, b""))] * len(pieces)


def count_tasks(parts, monkeypatch):
    """Return the tasks of all that a run asks of the engine, with as many targets as parts."""
    counting = Counting()
    platform = engine.DaskPlatform()
    platform._dask = counting
    table = engine.FrameParts(dd.from_pandas(pd.DataFrame({"x": np.arange(parts)}), parts))
    records = cluster.ClusterRecords(platform, table)
    monkeypatch.setattr(engine.FrameParts, "lengths", lambda *_: [1] * parts)
    monkeypatch.setattr("shoal.engines.dask.client_of", lambda _: "a cluster")
    shapes = {"X": ("float64", 4)}
    how = cluster.Regrouping(
        len, len, parts, shapes, {"released": ("float64", 4), "group": ("int64", 1)}, [None] * parts
    )
    records.keep(len, columns=["x"])
    records.reduce(len, max, own=[None] * parts)
    records.regroup(how)
    monkeypatch.setattr(engine, "release_parts", lambda _, released, *__: (counting.persist(*released), None))
    monkeypatch.setattr(engine, "FrameParts", lambda *_: table)
    records.release(len, layout=cluster.Layout(["x"], [], ["x"], {}), output=None)
    return counting.tasks


def test_the_number_of_tasks_grows_as_the_number_of_partitions(monkeypatch):
    tasks = {}
    for parts in (10, 100, 1000):
        with monkeypatch.context() as patched:
            tasks[parts] = count_tasks(parts, patched)
    assert tasks[10] < 400
    assert tasks[100] < 10.5 * tasks[10]
    assert tasks[1000] < 10.5 * tasks[100]


def test_arguments_of_many_tasks_are_in_the_graph_once(table, here, monkeypatch):
    """A task contains only its own part of the arguments."""
    sizes = {}
    real = dask.delayed

    def spy(function, *given, **named):
        made = real(function, *given, **named)
        if not callable(function):
            sizes[named["name"]] = len(pickle.dumps(function))
        return made

    monkeypatch.setattr(dask, "delayed", spy)
    shoal.mask(dd.from_pandas(table.to_pandas(), npartitions=2), 3, **ASKED)
    few = len(sizes)
    shoal.mask(dd.from_pandas(table.to_pandas(), npartitions=4), 3, **ASKED)
    assert len(sizes) == 2 * few
    assert all(name.startswith("arguments-") for name in sizes)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("index", [None, "record"])
def test_a_frame_is_written_by_the_workers_too(tmp_path, table, expected, index):
    frame = table.to_pandas()
    if index is not None:
        frame.index = pd.Index(np.arange(len(frame)) + 10, name=index)
    names = {"output": tmp_path / "out.parquet", "labels": tmp_path / "labels.parquet"}
    release = shoal.mask(dd.from_pandas(frame, npartitions=3), 3, **names, **ASKED)
    for path, known in zip(names.values(), expected[1:], strict=True):
        assert pl.read_parquet(path / "*.parquet").equals(known)
        assert (path / "_SUCCESS").exists()
    assert release.data == tmp_path / "out.parquet"
    told = any("index of the pandas table is not in the release" in note for note in release.notes)
    assert told == (index is not None)


@pytest.mark.parametrize("scheduler", ["tcp://127.0.0.1:1", "no://address"])
def test_a_scheduler_that_does_not_answer_is_named(tmp_path, scheduler):
    pytest.importorskip("distributed")
    pd.DataFrame({"a": range(6)}).to_parquet(tmp_path / "in.parquet")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(InputError, match=f"'scheduler' must be the address .* got '{scheduler}'"),
    ):
        shoal.mask(
            tmp_path / "in.parquet",
            2,
            columns=["a"],
            engine="dask",
            scheduler=scheduler,
            output=tmp_path / "out.parquet",
        )
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
    assert dd.from_pandas(pd.DataFrame({"a": range(6)}), npartitions=2)["a"].sum().compute() == 15  # not by that client
