"""Measure masking on Spark from Parquet files to a Parquet data set, with two executors of one gigabyte each.

Uniform records, 4 columns, k = 3, blocks of 10,000, as in `large.py`. Each run is a separate process with its own local
cluster (`local-cluster[2,1,1024]`: two executors, each a JVM with Python workers). Bytes and tasks come from Spark's
event log. Polars recounts the output in a stream.

Run: python benchmarks/large.py --engine spark [--records 1e6,1e7] [--folder .]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from large import generate, show_steps
from results import table

MASK = """
import json, os, sys
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
from pyspark.sql import SparkSession
import shoal
settings = {
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g", "spark.driver.maxResultSize": "64m", "spark.local.dir": sys.argv[1],
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": "file://" + sys.argv[1],
    "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false",
    "spark.sql.files.maxPartitionBytes": sys.argv[2],
    "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
}
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for name, value in settings.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
session.sparkContext.setLogLevel("ERROR")
release = shoal.mask("in.parquet", 3, output="out.parquet", engine="spark", method="mdav", block=10_000)
print(json.dumps({"loss": release.loss, "steps": dict(release.timings), **release.facts}))
session.stop()
"""
HEAD = (
    "records {:,} | time, s {:.1f} | CPU time, s {:.1f} | CPU time per record, µs {:.2f} | tasks {:,} | "
    "shuffled, MB {:,.1f} | to the driver, MB {:,.1f} | spilled, MB {:,.1f} | read, MB {:,.1f} | loss, % {:.5f}"
)
PROCESSES = ("driver, JVM", "driver, Python", "executors, JVM", "workers, Python")
MEMORY = (
    "records {:,} | JVM of the driver, MB {:,.0f} | Python of the driver, MB {:,.0f} | "
    "JVM of an executor, MB {:,.0f} | Python worker of an executor, MB {:,.0f}"
)
PART = 16 << 20  # bytes of a partition of the input, half a million records


def children(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += children(int(path.parent.name))
    return found


def watch(process: subprocess.Popen[str], peaks: Counter[str], cpu: dict[int, float]) -> None:
    """Record the peak memory of each kind of process, in total and per process, and the CPU seconds of all."""
    while process.poll() is None:
        held: Counter[str] = Counter()
        for pid in children(process.pid):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            size = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
            cpu[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            kind = next((kind for sign, kind in KINDS.items() if sign in command), "driver, Python")
            held[kind] += size
            peaks[f"{kind}, each"] = max(peaks[f"{kind}, each"], size)
        for kind, size in held.items():
            peaks[kind] = max(peaks[kind], size)
        time.sleep(0.5)


KINDS = {
    "pyspark.daemon": "workers, Python",
    "CoarseGrainedExecutorBackend": "executors, JVM",
    "org.apache.spark.deploy.SparkSubmit": "driver, JVM",
}


def moved(folder: Path) -> dict[str, float]:
    """Return the number of tasks and the bytes of shuffles and disks from the event log."""
    total: Counter[str] = Counter()
    for log in (path for path in folder.glob("app-*") if path.is_file()):
        for line in log.open():
            if '"SparkListenerTaskEnd"' not in line:
                continue
            event = json.loads(line)
            metrics = event.get("Task Metrics") or {}
            total["tasks"] += 1
            total["shuffled"] += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
            total["spilled"] += metrics.get("Disk Bytes Spilled", 0)
            total["read"] += metrics.get("Input Metrics", {}).get("Bytes Read", 0)
            total["results"] += metrics.get("Result Size", 0)
    return dict(total)


def run(n: int, folder: Path) -> dict[str, Any]:
    """Mask n records; return the measurements."""
    generate(n, folder / "in.parquet")
    local = folder / "local"
    local.mkdir()
    peaks, cpu, start = Counter[str](), dict[int, float](), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", MASK, str(local), str(PART)], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    watcher = threading.Thread(target=watch, args=(process, peaks, cpu))
    watcher.start()
    answer, _ = process.communicate()
    seconds = time.perf_counter() - start
    watcher.join()
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}")
    released = pl.scan_parquet(str(folder / "out.parquet" / "*.parquet"))
    counts = released.group_by(list("abcd")).len().select(pl.col("len").min(), records=pl.col("len").sum())
    least, records = counts.collect(engine="streaming").row(0)
    if least < 3 or records != n:
        raise SystemExit(f"{records} records in groups of at least {least}")
    found = json.loads(answer.strip().splitlines()[-1])
    return {**found, **moved(local), "seconds": seconds, "cpu": sum(cpu.values()), "peaks": peaks}


def print_table(records: list[int], folder: Path) -> None:
    """Print one row per number of records, the peaks of memory and the seconds of each step."""
    steps, peaks = {}, {}
    with table("spark", "Engine spark: two executors of 1 GB (`local-cluster[2,1,1024]`)", HEAD) as add:
        for n in records:
            with tempfile.TemporaryDirectory(dir=folder) as name:
                outcome = run(n, Path(name))
            sizes = [outcome[each] / 1e6 for each in ("shuffled", "results", "spilled", "read")]
            cpu = outcome["cpu"]
            add(n, outcome["seconds"], cpu, 1e6 * cpu / n, outcome["tasks"], *sizes, outcome["loss"])
            steps[n], peaks[n] = outcome["steps"], outcome["peaks"]
    with table("spark-memory", "Engine spark: largest memory of a process of each kind", MEMORY) as add:
        for n, sizes_of in peaks.items():
            add(n, *(sizes_of[f"{kind}, each"] / 1e6 for kind in PROCESSES))
    show_steps("spark", steps)
