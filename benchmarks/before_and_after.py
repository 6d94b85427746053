"""Compare two versions of shoal: start-up, a small table in a loop, large tables from file to file.

Run: python benchmarks/before_and_after.py OLD/src NEW/src. Runs of the two alternate; the shortest time counts.
Small tables are masked by the default method of each version, the others by MDAV.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from _reference import load
from large import MASK as ON_DISK
from large import generate
from results import table

TITLE = "Two versions side by side"
HEAD = "job | unit | before {:.4g} | after {:.4g} | ratio {:.2f}"
NAMED = [word for name in "abc" for word in ("-c", name)]  # the versions mask different columns by default
MASK = ["-m", "shoal", "mask", "small.csv", "-k", "3", *NAMED, "-o", "out.csv"]
TEN = [word for j in range(10) for word in ("-c", f"c{j}")]
MILLION = ["-m", "shoal", "mask", "million.parquet", "-k", "5", *TEN, "-m", "mdav", "-o", "out.parquet"]
LOOP = """
import time, polars as pl, shoal
table = pl.read_parquet("census.parquet")
asked = {"columns": table.columns, "method": "mdav", "integers": "float"}
shoal.mask(table, 5, **asked)
start = time.perf_counter()
for _ in range(30):
    shoal.mask(table, 5, **asked)
print((time.perf_counter() - start) / 30)
"""


def main(trees: list[str]) -> None:
    """Print one row per measurement: before, after, and their ratio."""
    with tempfile.TemporaryDirectory() as name, table("versions", TITLE, HEAD) as add:

        def show(title: str, unit: str, figures: list[float]) -> None:
            before, after = figures
            add(title, unit, before, after, after / before)

        folder = Path(name)
        rng = np.random.default_rng(0)
        pl.DataFrame(rng.normal(size=(1000, 3)), schema=list("abc")).write_csv(folder / "small.csv")
        million = pl.DataFrame(rng.normal(size=(1_000_000, 10)), schema=[f"c{j}" for j in range(10)])
        million.write_parquet(folder / "million.parquet")
        pl.DataFrame(load("census")).write_parquet(folder / "census.parquet")
        run(trees[0], ["-c", "import numba, polars, pyarrow.parquet, scipy, typer"], folder)  # their bytecode
        show("first mask, empty kernel cache", "s", [run(tree, MASK, folder)[0] for tree in trees])
        for title, arguments, times in (
            ("second mask", MASK, 5),
            ("--help", ["-m", "shoal", "--help"], 5),
            ("1 million × 10, Parquet to Parquet", MILLION, 3),
        ):
            for tree in trees:
                run(tree, arguments, folder)  # compiles the kernels, untimed
            show(title, "s", least([[run(tree, arguments, folder)[0] for tree in trees] for _ in range(times)]))
        show(
            "Census, mask() in a loop",
            "s",
            least([[float(run(t, ["-c", LOOP], folder)[1]) for t in trees] for _ in range(3)]),
        )
        generate(10_000_000, folder / "in.parquet")
        rows = [[on_disk(tree, folder) for tree in trees] for _ in range(6)][1:]
        for place, (title, unit) in enumerate((("time", "s"), ("CPU time", "s"), ("memory of all processes", "MB"))):
            figures = least([[measured[place] for measured in row] for row in rows])
            show(f"10 million × 4 on engine local, {title}", unit, figures)


def on_disk(tree: str, folder: Path) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and the megabytes of all processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, said = run(tree, ["-c", ON_DISK, "1500MB"], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, float(json.loads(said)["peak memory"].split()[0])


def run(tree: str, arguments: list[str], folder: Path) -> tuple[float, str]:
    cache = folder / f"cache-{abs(hash(tree))}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(Path(tree).resolve()), "NUMBA_CACHE_DIR": str(cache)}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")  # bytecode, as in an installation
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, done.stdout


def least(rows: list[list[float]]) -> list[float]:
    return [min(column) for column in zip(*rows, strict=True)]


if __name__ == "__main__":
    main(sys.argv[1:3])
