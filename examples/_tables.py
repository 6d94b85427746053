"""Reference tables of the papers, or generated substitutes if they are not available."""

import os
from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["reference"]

FOLDER = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
STAND_INS = {"tarragona": (200, 13), "census": (400, 13), "eia": (800, 11)}
NAMES = {"census": ["FICA", "FEDTAX", "INTVAL", "POTHVAL"]}


def reference(name: str) -> pl.DataFrame:
    """Return the numbers of a reference table, or of a smaller generated one if it is not in the folder SHOAL_DATA."""
    path = FOLDER / f"{name}.csv"
    if path.exists():
        table = pl.read_csv(path)
        print(f"{name}: the reference table, {table.height:,} records")
        return table.select(column for column in table.columns if table[column].dtype.is_numeric()).drop(
            "YEAR", "MONTH", strict=False
        )
    n, d = STAND_INS[name]
    rng = np.random.default_rng(0)
    size = rng.normal(0, 1, (n, 1))
    values = np.exp(5 + 0.8 * size + rng.normal(0, 0.5, (n, d))).round(1)
    names = [*NAMES.get(name, []), *(f"column {j}" for j in range(d))][:d]
    print(f"{name}: not available (SHOAL_DATA); a generated table of {n:,} records replaces it, so figures differ")
    return pl.DataFrame(values, schema=names)
