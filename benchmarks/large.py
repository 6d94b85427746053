"""Measure masking from file to file against polars, which reads, sorts by one column and writes the same tables.

Uniform records, 4 columns, k = 3, blocks of 10,000, Parquet in and out, two worker processes. Each run is a separate
process; CPU seconds are those of all processes. 100 million records need 3.6 GB, and three times that during the run.

Run: python benchmarks/large.py [--records 1e6,1e7] [--memory 1500MB] [--folder .]; --engine dask uses a cluster of two
workers with this memory (see large_dask.py), --engine spark two executors of 1 GB (large_spark.py)
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from results import table

GROUP = 250_000
HEAD = (
    "records {:,} | time, s {:.1f} | CPU time, s {:.1f} | CPU time per record, µs {:.2f} | per process, MB {:.0f} | "
    "all processes, MB {:.0f} | disk, GB {:.2f} | polars, s {:.1f} | polars CPU time, s {:.1f} | "
    "time / polars {:.1f} | loss, % {:.5f}"
)
MASK = """
import json, sys, shoal
keywords = {"method": "mdav", "block": 10_000, "engine": "local", "processes": 2, "memory": sys.argv[1]}
release = shoal.mask("in.parquet", 3, output="out.parquet", **keywords)
print(json.dumps({"loss": release.loss, "steps": dict(release.timings), **release.facts}))
"""
SORT = """
import json, resource, polars as pl
pl.read_parquet("in.parquet").sort("a").write_parquet("sorted.parquet")
print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))
"""
METHOD = """
import json, time, numpy as np
from shoal.algorithms.registry import find
from shoal.core.progress import fresh_state
blocks = np.random.default_rng(0).uniform(-1.7, 1.7, (40, 2441, 4))
run = lambda X: find("mdav").run(X, 3, {}, seed=0, state=fresh_state())
run(blocks[0])
start = time.process_time()
for X in blocks:
    run(X)
print(json.dumps({"each": (time.process_time() - start) / blocks[:, :, 0].size}))
"""


def generate(n: int, path: Path) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float64()) for name in "abcd"])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n, GROUP):
            m = min(GROUP, n - start)
            columns = [pa.array(rng.uniform(-10_000, 10_000, m)) for _ in schema.names]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=m)


def timed(code: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a program; return its output, seconds, CPU seconds and peak disk use without the input."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", code, *arguments]
    # With bytecode, as in an installation.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=env)
    disk = [0]
    watcher = threading.Thread(target=_watch, args=(process, folder, disk))
    watcher.start()
    answer, _ = process.communicate()
    seconds = time.perf_counter() - start
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(answer), "seconds": seconds, "cpu": cpu, "disk": disk[0]}


def _watch(process: subprocess.Popen[str], folder: Path, disk: list[int]) -> None:
    while process.poll() is None:
        total = 0
        for path in folder.rglob("*"):
            try:
                total += path.stat().st_blocks * 512 if path.name != "in.parquet" else 0
            except FileNotFoundError:
                continue
        disk[0] = max(disk[0], total)
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", default="1e6,1e7")
    parser.add_argument("--memory", help="memory limit (default: 1500MB; per worker of a cluster, 1GB)")
    parser.add_argument("--engine", choices=["local", "dask", "spark"], default="local")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument(
        "--no-polars", action="store_true", help="omit polars, which sorts in memory: too much for 100 million records"
    )
    given = parser.parse_args()
    sizes = [int(float(text)) for text in given.records.split(",")]
    if given.engine == "dask":
        import large_dask

        large_dask.report(sizes, given.memory or "1GB", given.folder)
        return
    if given.engine == "spark":
        import large_spark

        large_spark.print_table(sizes, given.folder)
        return
    given.memory = given.memory or "1500MB"
    each = timed(METHOD, given.folder)["each"]
    print(f"MDAV alone: {1e6 * each:.2f} CPU µs per record in blocks of 2,441")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        generate(20_000, Path(name) / "in.parquet")
        timed(MASK, Path(name), given.memory)  # compiles bytecode and kernels, untimed
    steps = {}
    title = "Engine local, two worker processes: uniform records with 4 columns, mdav, k = 3, blocks of 10,000, Parquet"
    with table("local", title, HEAD) as add:
        for n in sizes:
            with tempfile.TemporaryDirectory(dir=given.folder) as name:
                folder = Path(name)
                generate(n, folder / "in.parquet")
                polars = None if given.no_polars else timed(SORT, folder)
                (folder / "sorted.parquet").unlink(missing_ok=True)
                run = timed(MASK, folder, given.memory)
            together, largest = (float(size.split()[0]) for size in run["peak memory"].split(", "))
            sort = [None, None, None]
            if polars is not None:
                sort = [polars["seconds"], polars["cpu"], run["seconds"] / polars["seconds"]]
            seconds, cpu = run["seconds"], run["cpu"]
            add(n, seconds, cpu, 1e6 * cpu / n, largest, together, run["disk"] / 1e9, *sort, run["loss"])
            steps[n] = run["steps"]
    show_steps("local", steps)


def show_steps(engine: str, steps: dict[int, dict[str, float]]) -> None:
    """Print the seconds of each step, one row per number of records."""
    names = list(next(iter(steps.values())))
    head = "records {:,} | " + " | ".join(f"{name}, s {{:.1f}}" for name in names)
    with table(f"{engine}-steps", f"Engine {engine}: seconds of each step", head) as add:
        for n, seconds in steps.items():
            add(n, *(seconds.get(name, 0.0) for name in names))


if __name__ == "__main__":
    main()
