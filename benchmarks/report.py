"""How long the report of a large table takes, and how large it is.

Run: python benchmarks/report.py [RECORDS]. The table is masked first, in strata of about 1,000 records; only the report
is timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import shoal
from shoal.demo import firms

COLUMNS = ["employees", "sales", "wages", "assets", "profit", "research"]


def main(records: int) -> None:
    table = firms(records).fill_null(0.0).with_columns(block=pl.int_range(records) * 1000 // records)
    start = time.perf_counter()
    release = shoal.mask(table, 5, columns=COLUMNS, by="block" if records > 20_000 else None)
    masked = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        path = release.report(Path(folder) / "report.html", original=table)
        seconds = time.perf_counter() - start
        size = path.stat().st_size
    print(f"| {records:,} | {len(COLUMNS)} | {masked:.1f} | {seconds:.1f} | {size / 1e6:.2f} |")


if __name__ == "__main__":
    print("| records | columns | masking, s | report, s | report, MB |")
    print("|---|---|---|---|---|")
    for count in [int(sys.argv[1])] if len(sys.argv) > 1 else (3_000, 100_000, 1_000_000):
        main(count)
