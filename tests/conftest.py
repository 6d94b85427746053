"""What all tests share: the reference data, where they are at hand."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.core.measures import standardise

ROOT = Path(__file__).resolve().parent.parent
NOT_NUMBERS = {"eia": ["UTILNAME", "STATE", "YEAR", "MONTH"]}


def reference_path(name):
    """Return the path of a reference file, or skip: the files are public but not part of this project."""
    folder = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
    path = folder / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"reference data {name}.csv is not at hand; name its folder in SHOAL_DATA")
    return path


@pytest.fixture(scope="session")
def reference():
    """Return a loader of reference data: name → standardised array."""

    def load(name):
        frame = pl.read_csv(reference_path(name)).drop(NOT_NUMBERS.get(name, []))
        return standardise(frame.to_numpy().astype(np.float64))

    return load
