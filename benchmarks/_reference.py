"""The reference tables, standardised: looked for in the folder that SHOAL_DATA names, else in ../shared/data."""

import os
import platform
import sys
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from shoal.core.measures import standardise

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> np.ndarray:
    """Return the standardised columns of a reference table, or end the program if it is not at hand."""
    path = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data")) / f"{name}.csv"
    if not path.exists():
        sys.exit(f"{name}.csv is not at hand; name its folder in SHOAL_DATA")
    texts = {"eia": ["UTILNAME", "STATE", "YEAR", "MONTH"], "california": ["ocean_proximity"]}
    frame = pl.read_csv(path).drop(texts.get(name, [])).drop_nulls()
    return standardise(frame.to_numpy().astype(np.float64))


def header() -> str:
    """Return date, machine and command."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    script = Path(sys.argv[0]).name
    return (
        f"{date.today()}, {model}, {os.cpu_count()} cores, Python {platform.python_version()}; "  # noqa: DTZ011
        f"`python benchmarks/{' '.join([script, *sys.argv[1:]])}`"
    )
