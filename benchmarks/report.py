"""Measure the time and size of the report of a large table.

Run: python benchmarks/report.py [RECORDS]. The table is masked first, in strata of about 1,000 records; only the report
and `shoal.assess` are timed, after a small report that loads the libraries.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from results import table

import shoal
from shoal.demo import firms

HEAD = (
    "records {:,} | columns | masking, s {:.1f} | report, s {:.1f} | CPU time of the report, s {:.1f} | "
    "assess, s {:.1f} | CPU time of assess, s {:.1f} | size of the report, MB {:.2f}"
)
COLUMNS = ["employees", "sales", "wages", "assets", "profit", "research"]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the elapsed and CPU seconds of a function."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def measure(records: int, folder: Path) -> list[float]:
    """Return the figures for a table, in the order of `HEAD`."""
    frame = firms(records).fill_null(0.0).with_columns(block=pl.int_range(records) * 1000 // records)
    by = "block" if records > 20_000 else None
    path, made = folder / "report.html", []
    masked, _ = timed(lambda: made.append(shoal.mask(frame, 5, columns=COLUMNS, by=by, method="mdav")))
    report = timed(lambda: made[0].report(path, original=frame))
    assessed = timed(lambda: shoal.assess(frame, made[0].data, columns=COLUMNS, by=by, k=5))
    return [records, len(COLUMNS), masked, *report, *assessed, path.stat().st_size / 1e6]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, table("report", "Report and assessment of a release", HEAD) as add:
        small = firms(500).fill_null(0.0)
        shoal.mask(small, 5, columns=COLUMNS, method="mdav").report(Path(place) / "small.html", original=small)
        for count in [int(sys.argv[1])] if len(sys.argv) > 1 else (3_000, 100_000, 1_000_000):
            add(*measure(count, Path(place)))
