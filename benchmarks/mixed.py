"""Numbers and categories together: adult.csv, eight keys, k-anonymous over all of them.

Run ``python benchmarks/mixed.py``; it takes a few minutes. The file is read from the folder that ``SHOAL_DATA`` names
(default ``../shared/data``). Losses are in percent of the variance in the embedding that shoal uses: of the groups
themselves, and of what is released (mean, median of the ordinal column, mode of the nominal ones).
"""

from __future__ import annotations

import os
from pathlib import Path
from time import process_time

import polars as pl

import shoal

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
KEYS = ["age", "hours-per-week", "education-num", "marital-status", "occupation", "race", "sex", "native-country"]


def main() -> None:
    table = pl.read_csv(DATA / "adult.csv").select(KEYS)
    kinds = {"education-num": shoal.Ordinal(sorted(table["education-num"].unique()))}
    print("| k | method | groups | released | CPU s | smallest group, recounted |")
    print("|---|---|---|---|---|---|")
    for k in (3, 5, 10):
        for method in ("mdav", "path"):
            start = process_time()
            release = shoal.mask(table, k, columns=KEYS, kinds=kinds, method=method)
            seconds = process_time() - start
            fewest = release.data.group_by(KEYS).len()["len"].min()
            losses = f"{release.partition_loss:.2f} | {release.loss:.2f}"
            print(f"| {k} | {method} | {losses} | {seconds:.1f} | {fewest} |", flush=True)


if __name__ == "__main__":
    main()
