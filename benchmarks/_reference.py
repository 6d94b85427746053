"""The reference tables, standardised, from the folder in SHOAL_DATA, by default ../shared/data."""

import os
import sys
from pathlib import Path

import numpy as np
import polars as pl

from shoal.core.measures import standardise

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> np.ndarray:
    """Return the standardised columns of a reference table, or end the program if its file is missing."""
    path = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data")) / f"{name}.csv"
    if not path.exists():
        sys.exit(f"{name}.csv is missing. Set SHOAL_DATA to the folder that holds it.")
    texts = {"eia": ["UTILNAME", "STATE", "YEAR", "MONTH"], "california": ["ocean_proximity"]}
    frame = pl.read_csv(path).drop(texts.get(name, [])).drop_nulls()
    return standardise(frame.to_numpy().astype(np.float64))
