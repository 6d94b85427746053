"""Measure masking on a local Dask cluster, from Parquet files to a data set: two workers with one thread and 1 GB each.

Uniform records, 4 columns, k = 3, MDAV in blocks of 10,000. Client, scheduler and workers are separate processes.
Polars recounts the release in a stream, independently of shoal's recount.

Run: python benchmarks/large.py --engine dask [--records 1e6,1e7] [--memory 1GB] [--folder .]
"""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import parquet
from results import table

HEAD = (
    "records {:,} | time, s {:.1f} | CPU time, s {:.1f} | client, MB {:.0f} | scheduler, MB {:.0f} | "
    "worker, MB {:.0f} | moved, GB {:.2f} | tasks {:,} | rounds | workers lost | loss, % {:.5f}"
)
FILE = 1_000_000  # records per input file, in row groups of GROUP
GROUP = 250_000


def generate(n: int, folder: Path) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number, start in enumerate(range(0, n, FILE)):
        table = pa.table({name: rng.uniform(-10_000, 10_000, min(FILE, n - start)) for name in "abcd"})
        parquet.write_table(table, folder / f"{number:05d}.parquet", row_group_size=GROUP, use_dictionary=False)


def peak() -> float:
    """Return the peak memory of this process in MB; getrusage would include that of its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return float(line.split()[1]) / 1e3
    raise SystemExit("this system does not report the peak memory of a process")


def peak_of(dask_worker: Any) -> tuple[int, float, float, dict[str, float]]:
    """Return process ID, peak memory, CPU seconds and bytes moved by shuffles of a worker."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    moved: dict[str, float] = {}
    for key, value in dask_worker.digests_total.items():
        if isinstance(key, tuple) and key[-1] == "bytes" and any("p2p" in str(part) for part in key):
            name = " ".join(str(part) for part in key[:-1] if "shuffle" not in str(part) or "p2p" in str(part))
            moved[name] = moved.get(name, 0.0) + value
    return os.getpid(), peak(), used.ru_utime + used.ru_stime, moved


def tasks_of(dask_scheduler: Any) -> tuple[float, float, int]:
    """Return peak memory, CPU seconds and the number of received tasks of a scheduler."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    plugin: Any = dask_scheduler.plugins["tasks"]
    return peak(), used.ru_utime + used.ru_stime, plugin.total


def mask(folder: Path, memory: str) -> None:
    """Mask `in` to `out.parquet` in a separate process and print the measurements as JSON."""
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster
    from distributed.diagnostics.plugin import SchedulerPlugin

    import shoal

    class Tasks(SchedulerPlugin):  # type: ignore[misc]
        name, total = "tasks", 0

        def update_graph(self, scheduler: Any, *, tasks: Any, **_: Any) -> None:
            self.total += len(tasks)

    keywords: dict[str, Any] = {"method": "mdav", "block": 10_000, "engine": "dask"}
    with (
        SubprocessCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR,
            worker_kwargs={"memory_limit": memory, "local_directory": str(folder)},
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.wait_for_workers(2)
        workers = set(client.nthreads())
        client.register_plugin(Tasks())
        start, used = time.perf_counter(), time.process_time()
        release = shoal.mask(folder / "in", 3, output=folder / "out.parquet", **keywords)
        found = {
            "seconds": time.perf_counter() - start,
            "client cpu": time.process_time() - used,
            "loss": release.loss,
            "steps": dict(release.timings),
            "scheduler": client.run_on_scheduler(tasks_of),
            "lost": len(workers - set(client.nthreads())),
            "workers": list(client.run(peak_of).values()),
            "client": peak(),
            "facts": {name: str(value) for name, value in release.facts.items()},
        }
    print(json.dumps(found))


def recount(folder: Path) -> tuple[int, int]:
    """Return the number of released records and the size of the smallest group."""
    files = pl.scan_parquet(sorted(str(path) for path in (folder / "out.parquet").glob("part-*.parquet")))
    sizes = files.group_by(list("abcd")).len()
    found = sizes.select(pl.col("len").sum().alias("records"), pl.col("len").min().alias("least"))
    frame = found.collect(engine="streaming")
    return int(frame["records"][0]), int(frame["least"][0])


def run(n: int, memory: str, where: Path) -> dict[str, Any]:
    """Return the measurements of masking n records."""
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name).resolve()
        generate(n, folder / "in")
        command = [sys.executable, str(Path(__file__).resolve()), "--here", str(folder), memory]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        records, least = recount(folder)
        if records != n or least < 3:
            raise SystemExit(f"{records} records, a group of {least}")
        return found


def report(sizes: list[int], memory: str, where: Path) -> None:
    """Print one row per number of records."""
    from large import show_steps

    run(20_000, memory, where)  # compiles the kernels, untimed
    steps = {}
    with table("dask", f"Engine dask: two workers with one thread and {memory} each; memory is the peak", HEAD) as add:
        for n in sizes:
            outcome = run(n, memory, where)
            workers, (most, seconds, tasks) = outcome["workers"], outcome["scheduler"]
            cpu = outcome["client cpu"] + seconds + sum(seconds for _, _, seconds, _ in workers)
            moved = sum(value for *_, by in workers for name, value in by.items() if "comms" in name)
            largest, rounds = max(size for _, size, _, _ in workers), outcome["facts"].get("rounds")
            add(
                *(n, outcome["seconds"], cpu, outcome["client"], most, largest, moved / 1e9, tasks),
                *(rounds, outcome["lost"], outcome["loss"]),
            )
            steps[n] = outcome["steps"]
    show_steps("dask", steps)


if __name__ == "__main__" and sys.argv[1:2] == ["--here"]:
    mask(Path(sys.argv[2]), sys.argv[3])
