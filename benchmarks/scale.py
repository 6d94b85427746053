"""Measure the effect of comparison scales on the quantiles of heavy-tailed columns.

Run: python benchmarks/scale.py. The figures are in docs/how-to/scale.md: log-normal firms, 60 % of them without
research, and EIA from the folder in SHOAL_DATA. The relative change of a quantile is shown for the column where it is
largest. Records are linked by their numbers and by their logarithms, as an intruder may use any scale.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
from results import table

import shoal
from shoal.kinds.kind_registry import SCALES

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
MOVES = " | ".join(f"quantile {share:g}, % {{:.0f}}" for share in SHARES)
LINKED = "linked, % {:.1f} | linked by logarithms, % {:.1f}"
HEAD = f"table | records {{:,}} | columns | scale | loss, % {{:.2f}} | {MOVES} | {LINKED}"
FIRST, LAST = "RESREVENUE", "TOTSALES"  # the columns of EIA


def log_normal(records: int = 5000) -> pl.DataFrame:
    """Return log-normal firms."""
    rng = np.random.default_rng(0)
    size, *noise = rng.normal(size=(4, records))
    research = np.where(rng.random(records) < 0.6, 0.0, np.exp(2 + 1.5 * size + noise[2]))
    columns = {
        "sales": np.exp(5 + 2 * size),
        "wages": np.exp(4 + 1.8 * size + 0.5 * noise[0]),
        "assets": np.exp(6 + 2 * size + noise[1]),
        "research": research,
    }
    return pl.DataFrame({name: values.round(1) for name, values in columns.items()})


def largest_move(original: pl.DataFrame, masked: pl.DataFrame, share: float) -> float:
    """Return the largest relative change of a quantile that is not zero, in percent."""
    pairs = [(masked[name].quantile(share), original[name].quantile(share)) for name in original.columns]
    return max(100 * abs(after / before - 1) for after, before in pairs if after is not None and before)


def linked_share(original: pl.DataFrame, masked: pl.DataFrame) -> float:
    """Return the share of linked records, in percent."""
    return 100 * shoal.assess(original, masked, columns=original.columns).risk.linkage.share


def logarithms(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the signed logarithms of all columns."""
    return frame.select(pl.all().sign() * pl.all().abs().log1p())


if __name__ == "__main__":
    tables = {"log-normal": log_normal(), "EIA": pl.read_csv(DATA / "eia.csv")[:, FIRST:LAST]}
    with table("scale", "Quantiles of heavy tails by scale of comparison (MDAV, k = 5)", HEAD) as add:
        for name, frame in tables.items():
            for scale in SCALES:
                release = shoal.mask(frame, 5, columns=frame.columns, scale=scale, method="mdav")
                moves = [largest_move(frame, release.data, share) for share in SHARES]
                risks = linked_share(frame, release.data), linked_share(logarithms(frame), logarithms(release.data))
                add(name, frame.height, frame.width, scale, release.loss, *moves, *risks)
