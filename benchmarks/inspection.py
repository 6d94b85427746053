"""Measure the proposal of roles: time and memory of `shoal.inspect`, and what proposed roles add to a masking.

Run: python benchmarks/inspection.py [RECORDS]. A table of 20 columns is inspected as a frame and as files, each in a
process of its own. The peak includes the libraries and the table; the goal is 5 s and 1 GB for a million records.

Then tables are masked with proposed roles and with the same roles from a file, alternately: the demo with the default
method, Adult with a fast one, next to which a proposal costs more. The goal is a ratio of at most 1.2 of the
CPU times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from results import table

import shoal
from shoal.demo import firms

ADULT = Path(os.environ.get("SHOAL_DATA", "../shared/data")) / "adult.csv"
FAST = "mst"
PAIRS = 3  # of maskings, to take the median of
RATIO_HEAD = "table | method | records {:,} | roles given, CPU s {:.2f} | roles proposed, CPU s {:.2f} | ratio {:.2f}"
HEAD = "table | inspect, s {:.1f} | CPU time, s {:.1f} | peak memory, GB {:.2f}"
PROGRAM = """
import json, resource, sys, time
import polars as pl
import shoal
shoal.inspect(pl.DataFrame({"a": [1, 2, 3] * 20, "b": ["x", "y", "z"] * 20}))  # loads the libraries
path = sys.argv[1]
data = path if path.endswith(".csv") else pl.read_parquet(path) if sys.argv[2] == "frame" else path
start, cpu = time.perf_counter(), time.process_time()
shoal.inspect(data)
times = [time.perf_counter() - start, time.process_time() - cpu]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([*times, peak]))
"""


def people(n: int) -> pl.DataFrame:
    """Return a table of persons in households with columns of every role."""
    rng = np.random.default_rng(0)
    household = np.sort(rng.integers(0, n // 3, n))
    age, occupation = rng.integers(0, 95, n), rng.choice(rng.choice(9999, 400, replace=False), n)
    income = rng.lognormal(10, 0.8, n).round(2)
    letters = np.array(list("ABCDEFGHIJKLM"))
    return pl.DataFrame(
        {
            "household_id": household,
            "name": pl.Series(rng.integers(0, n // 2, n)).cast(pl.String).str.zfill(7),
            "age": age,
            "age_class": age // 10,
            "sex": rng.choice(["f", "m"], n),
            "region": rng.integers(1, 17, n),
            "zip": rng.integers(10_000, 10_800, n),
            "born": pl.Series(rng.integers(0, 20_000, n)).cast(pl.Date).cast(pl.String),
            "education": rng.choice(["none", "primary", "secondary", "tertiary"], n),
            "occupation": occupation,
            "occupation_group": occupation // 1000,
            "industry": letters[rng.integers(0, 13, n)],
            "hours": rng.integers(0, 80, n),
            "rooms": rng.integers(1, 9, n),
            "income": income,
            "log_income": np.log(income),
            "debt": np.where(rng.random(n) < 0.6, 0, rng.lognormal(9, 1, n).round()),
            "diagnosis": np.char.add(letters[rng.integers(0, 13, n)], rng.integers(10, 99, n).astype(str)),
            "visits": rng.poisson(3, n),
            "weight": rng.lognormal(6, 0.5, n).round(2),
        }
    )


def compare_roles(data: Any, method: str, roles: Path) -> tuple[int, float, float, float]:
    """Mask a table with roles from a file and with proposed ones, alternately; return records, CPU times and ratio."""
    shoal.inspect(data, 5).save(roles)
    times: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(PAIRS + 1):
        for proposed in (False, True):
            start = time.process_time()
            release = shoal.mask(data, 5, method=method, roles=None if proposed else roles)
            if pair:  # the first loads kernels
                times[proposed].append(time.process_time() - start)
    ratio = median(new / old for new, old in zip(times[True], times[False], strict=True))
    return release.records, median(times[False]), median(times[True]), ratio


if __name__ == "__main__":
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as place, table("inspection", f"inspect, {records:,} × 20", HEAD) as add:
        frame = people(records)
        csv, parquet = Path(place) / "people.csv", Path(place) / "people.parquet"
        frame.write_csv(csv)
        frame.write_parquet(parquet)
        for name, path in (("frame", parquet), ("Parquet file", parquet), ("CSV file", csv)):
            words = [sys.executable, "-c", PROGRAM, str(path), name]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            add(name, *json.loads(done.stdout.splitlines()[-1]))
    title = "masking with proposed roles next to given ones, k = 5"
    with tempfile.TemporaryDirectory() as place, table("proposed roles", title, RATIO_HEAD) as add:
        tables = {
            "demo": (firms(), "auto"),
            "adult, CSV file": (ADULT, FAST),
        }
        for name, (data, method) in tables.items():
            if not isinstance(data, Path) or data.exists():
                add(name, method, *compare_roles(data, method, Path(place) / "roles.toml"))
