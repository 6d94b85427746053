"""Compare two shuffles of a table on disk: that of engine local, and polars' `sink_parquet(PartitionBy(…))`.

The records of a Parquet file of n × 4 numbers are grouped by target and processed in input order; the answers are
written to another Parquet file in that order. shoal uses the worker processes and shuffle files of `shoal.engines`. The
alternative lets polars write a file per target, processes these files in a standard process pool, and lets polars merge
the answers by a sort. Both use two processes, or two threads of polars.

Each shuffle is a separate program; the programs alternate, and figures are medians. Memory is the peak of all processes
together (PSS: a page shared by n processes counts 1/n in each), sampled 20 times per second. Outputs must be equal.

Run: python benchmarks/partition_by.py [5e6] [--runs 3] [--record]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WAYS = ("local", "polars")
PART, TARGET = 250_000, 60_000  # records, as in the engine
PROCESSES = 2
NAMES = list("abcd")


def generate(n: int, path: Path) -> None:
    """Write records and their targets, one row group per part."""
    import numpy as np
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    schema = pa.schema([("target", pa.int32()), *((name, pa.float64()) for name in NAMES)])
    with ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, n, PART):
            rows = min(PART, n - first)
            target = rng.integers(0, targets(n), rows, dtype=np.int32)
            columns = [pa.array(target), *(pa.array(rng.normal(size=rows)) for _ in NAMES)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=rows)


def targets(n: int) -> int:
    return max(2, -(-n // TARGET))


def import_engine() -> None:
    """Import the modules that workers of the engine need in a run."""
    import_module("shoal.engines.local")
    time.sleep(0.1)  # makes the other worker take the other task


def answer(X: Any) -> Any:
    """Process a target: return means of five consecutive records, which depend on the order."""
    import numpy as np

    starts = np.arange(0, len(X), 5)
    sizes = np.diff(np.append(starts, len(X)))[:, None]
    return np.repeat(np.add.reduceat(X, starts, axis=0) / sizes, sizes[:, 0], axis=0)


# The shuffle of the engine


def local(folder: Path, n: int) -> dict[str, float]:
    import numpy as np
    from pyarrow.parquet import ParquetFile

    from shoal.core.progress import fresh_state
    from shoal.engines.disk_shuffle import Shuffle
    from shoal.engines.local import _join_parquet
    from shoal.engines.process_pool import Workers

    groups = ParquetFile(folder / "in.parquet").metadata
    parts = range(groups.num_row_groups)
    starts = np.cumsum([0, *(groups.row_group(part).num_rows for part in parts)])
    shapes = {"X": ("float64", 4), "answer": ("float64", 4)}
    watch, shuffle = Watch(), Shuffle(folder, "deal", starts, targets(n), shapes)
    with Workers(PROCESSES, fresh_state()) as workers:
        list(workers.map(import_engine, [()] * PROCESSES))
        watch.lap("start")
        shuffle.create()
        places = shuffle.places(list(workers.map(send_part, ((shuffle, part) for part in parts))))
        watch.lap("partition")
        list(workers.map(answer_places, ((shuffle, place) for place in places)))
        watch.lap("targets")
        _join_parquet(folder / "local.parquet", workers.map(write_part, ((shuffle, part) for part in parts)), [])
        watch.lap("merge")
    return watch.seconds


def send_part(shuffle: Any, part: int) -> Any:
    import numpy as np
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(shuffle.folder / "in.parquet").read_row_group(part)
    X = np.column_stack([table.column(name).to_numpy() for name in NAMES])
    return shuffle.write(part, table.column("target").to_numpy().astype(np.int64), {"X": X})


def answer_places(shuffle: Any, places: Any) -> None:
    shuffle.answer(places, "answer", answer(shuffle.read(places, "X")))


def write_part(shuffle: Any, part: int) -> Path:
    import pyarrow as pa

    X, path = shuffle.answers(part, "answer"), shuffle.folder / f"output-{part}"
    table = pa.table({name: X[:, j] for j, name in enumerate(NAMES)})
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)
    return Path(path)


# The shuffle of polars


def polars(folder: Path, n: int) -> dict[str, float]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import polars as pl

    watch = Watch()
    given, answers = folder / "given", folder / "answers"
    answers.mkdir()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["shoal.engines.local"])
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as executor:
        for future in [executor.submit(import_engine) for _ in range(PROCESSES)]:
            future.result()
        watch.lap("start")
        table = pl.scan_parquet(folder / "in.parquet", row_index_name="record")
        table.sink_parquet(
            pl.PartitionBy(
                given, key="target", include_key=False, file_path_provider=place_of, approximate_bytes_per_file=None
            ),
            mkdir=True,
            compression="uncompressed",
            statistics=False,
        )
        watch.lap("partition")
        files = sorted(given.iterdir())
        list(executor.map(answer_file, files, [answers / file.name for file in files]))
        watch.lap("targets")
        merged = pl.scan_parquet(answers / "*.parquet").sort("record").drop("record")
        merged.sink_parquet(folder / "polars.parquet", row_group_size=PART)
        watch.lap("merge")
    return watch.seconds


def place_of(given: Any) -> str:
    return f"{given.partition_keys.item()}-{given.index_in_partition}.parquet"


def answer_file(source: Path, output: Path) -> None:
    import polars as pl

    # Records of a target arrive in any order.
    table = pl.read_parquet(source, memory_map=False).sort("record")
    X = answer(table.select(NAMES).to_numpy())
    released = pl.DataFrame(X, schema=NAMES).insert_column(0, table["record"])
    released.write_parquet(output, compression="uncompressed", statistics=False)


# Measuring


class Watch:
    """Timer of the steps of a shuffle."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def lap(self, step: str) -> None:
        """End a step and store its seconds."""
        now = time.perf_counter()
        self.seconds[step], self._began = now - self._began, now


def measure(way: str, folder: Path, n: int) -> dict[str, float]:
    """Run a shuffle as a program; return the seconds of its steps and its peak memory in MB."""
    from workers import _descendants, _pss

    from shoal.engines.process_pool import ENVIRONMENT

    threads = ENVIRONMENT if way == "local" else {"POLARS_MAX_THREADS": str(PROCESSES)}
    environment = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path[1:]])}
    code = f"import json, pathlib, partition_by as b; print(json.dumps(b.{way}(pathlib.Path({str(folder)!r}), {n})))"
    command = [sys.executable, "-c", code]
    peak = 0.0
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            held = 0.0
            for pid in tree(process.pid, _descendants):
                try:
                    held += _pss(pid)
                except (OSError, StopIteration):  # the process has just ended
                    continue
            peak = max(peak, held)
            time.sleep(0.05)
        said = json.loads(process.stdout.read().splitlines()[-1]) if process.stdout and not process.returncode else None
    if said is None:
        raise SystemExit(f"{way} failed")
    return {**said, "total": sum(said.values()), "peak": peak}


def tree(pid: int, descendants: Callable[[int], Sequence[int]]) -> list[int]:
    try:
        return [pid, *descendants(pid)]
    except OSError:
        return [pid]


def main() -> None:
    from polars import read_parquet
    from polars.testing import assert_frame_equal
    from results import table  # takes --record from the command line

    parser = argparse.ArgumentParser()
    parser.add_argument("records", type=float, nargs="?", default=5e6)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    n = int(options.records)
    figures: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        generate(n, Path(name) / "in.parquet")
        for _ in range(options.runs):
            folders = {}
            for way in WAYS:
                folders[way] = Path(tempfile.mkdtemp(dir=name))
                (folders[way] / "in.parquet").hardlink_to(Path(name) / "in.parquet")
                for step, value in measure(way, folders[way], n).items():
                    figures[way].setdefault(step, []).append(value)
            released = [read_parquet(folders[way] / f"{way}.parquet") for way in WAYS]
            assert_frame_equal(*released, check_exact=True)
            for folder in folders.values():
                shutil.rmtree(folder)
    medians = {way: {step: statistics.median(each) for step, each in steps.items()} for way, steps in figures.items()}
    head = "shuffle | start, s {:.2f} | partition, s {:.2f} | targets, s {:.2f} | merge, s {:.2f} | total, s {:.2f} | "
    head += "ratio {:.2f} | peak, MB {:.0f} | peak ratio {:.2f}"
    title = f"Shuffle of {n:,} × 4 to {targets(n)} targets and back, medians of {options.runs} runs"
    with table("shuffle", title, head) as add:
        for way in WAYS:
            ratios = [medians[way][what] / medians["local"][what] for what in ("total", "peak")]
            steps = [medians[way][step] for step in ("start", "partition", "targets", "merge", "total")]
            add(way, *steps, ratios[0], medians[way]["peak"], ratios[1])


if __name__ == "__main__":
    main()
