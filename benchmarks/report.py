"""How long the report of a large table takes, and how large it is.

Run: python benchmarks/report.py [RECORDS]. The table is masked first, in strata of about 1,000 records; only the report
and `shoal.assess` are timed, after a small report that loads what they need. CPU seconds tell more than seconds beside
other work.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

import shoal
from shoal.demo import firms

COLUMNS = ["employees", "sales", "wages", "assets", "profit", "research"]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds and CPU seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def main(records: int, folder: Path) -> None:
    table = firms(records).fill_null(0.0).with_columns(block=pl.int_range(records) * 1000 // records)
    by = "block" if records > 20_000 else None
    path, made = folder / "report.html", []
    masked, _ = timed(lambda: made.append(shoal.mask(table, 5, columns=COLUMNS, by=by, method="mdav")))
    report = timed(lambda: made[0].report(path, original=table))
    assessed = timed(lambda: shoal.assess(table, made[0].data, columns=COLUMNS, by=by, k=5))
    times = " | ".join(f"{seconds:.1f} | {cpu:.1f}" for seconds, cpu in (report, assessed))
    print(f"| {records:,} | {len(COLUMNS)} | {masked:.1f} | {times} | {path.stat().st_size / 1e6:.2f} |", flush=True)


if __name__ == "__main__":
    print("| records | columns | masking, s | report, s | report, CPU s | assess, s | assess, CPU s | report, MB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        small = firms(500).fill_null(0.0)
        shoal.mask(small, 5, columns=COLUMNS, method="mdav").report(Path(place) / "small.html", original=small)
        for count in [int(sys.argv[1])] if len(sys.argv) > 1 else (3_000, 100_000, 1_000_000):
            main(count, Path(place))
