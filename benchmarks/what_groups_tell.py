"""Measure what groups disclose: the share of a column's domain that an attacker excludes for one record.

Run: python benchmarks/what_groups_tell.py [records]

The attacker knows all records except one, the method, ε and the bounds, and sees the released table: records that share
a value are a group. The attacker tries every possible value of the missing record, forms the groups again, and excludes
each value that gives other groups than the released ones. The noise plays no part, so ε does not limit this disclosure.
Methods of Definition 1 are attacked too: their rows do not show who shares a group, or no records share one.

Census is read from the folder in SHOAL_DATA (default: ../shared/data); without it, a generated column of incomes is
attacked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from shoal.core.measures import canonical_labels
from shoal.core.types import Floats, Ints
from shoal.privacy.domains import Bounds
from shoal.privacy.publication_methods import find_publication_method
from shoal.privacy.record_groups import group_columns

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
COLUMNS = ["FICA", "FEDTAX", "INTVAL", "POTHVAL"]
GRID = 200  # tested values of the domain


def seen_groups(method: str, upper: float, epsilon: float, k: int | None) -> Callable[[Floats], Ints]:
    """Return the groups that a release of a column with domain 0 … upper reveals: records that share a value."""
    entry = find_publication_method(method)
    bounds = Bounds(np.zeros(1), np.array([upper]))

    def groups(column: Floats) -> Ints:
        (found,) = group_columns(entry, column[:, None], bounds, np.array([epsilon]), [[0]], k)
        # Rows without a record show only group sizes, which depend only on n and k.
        return canonical_labels(found.labels) if entry.keeps_rows else np.sort(found.sizes)

    return groups


def excluded(column: Floats, record: int, upper: float, groups: Callable[[Floats], Ints], grid: int = GRID) -> float:
    """Return the share of the domain that the groups exclude for a record if all others are known."""
    seen = groups(column)
    tried, possible = column.copy(), 0
    for value in np.linspace(0.0, upper, grid):
        tried[record] = value
        possible += np.array_equal(groups(tried), seen)
    return 1 - possible / grid


def main() -> None:
    from results import table  # tests import this file from elsewhere

    rng = np.random.default_rng(2018)
    if (DATA / "census.csv").exists():
        frame = pl.read_csv(DATA / "census.csv").select(COLUMNS)
        columns = {name: frame[name].to_numpy().astype(np.float64) for name in COLUMNS}
    else:
        columns = {"generated incomes": np.exp(rng.normal(8.0, 1.0, 1080))}
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    title = f"Median share of the domain that is excluded (quartiles), over {records} records per column"
    head = " | ".join(["method | ε {:g}", *(f"{name}, % {{:.0f}} ({{:.0f}}–{{:.0f}})" for name in columns)])
    with table("excluded", title, head) as add:
        for method, k in [("optimal", None), ("mdav-ir", 20), ("insensitive-ir", 20), ("none", None)]:
            for epsilon in (1.0, 0.25):  # the second is the share of one of four columns
                cells = []
                for column in columns.values():
                    upper = 1.5 * column.max()
                    groups = seen_groups(method, upper, epsilon, k)
                    chosen = rng.choice(len(column), records, replace=False)
                    shares = [excluded(column, int(record), upper, groups) for record in chosen]
                    cells.append(100 * np.quantile(shares, [0.5, 0.25, 0.75]))
                add(method + ("" if k is None else f", k = {k}"), epsilon, *(cell.tolist() for cell in cells))


if __name__ == "__main__":
    main()
