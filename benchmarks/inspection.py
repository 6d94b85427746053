"""Measure the proposal of roles: time and memory of `shoal.inspect` for a table of 20 columns, as a frame and as files.

Run: python benchmarks/inspection.py [RECORDS]. Each table is inspected in a separate process. Its peak includes the
libraries and the table; the goal is 5 s and 1 GB for a million records.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from results import table

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
