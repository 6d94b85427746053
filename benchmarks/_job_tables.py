"""Tables of the jobs: public ones from packages and from the folder in SHOAL_DATA, and generated ones."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.demo import firms

__all__ = ["Absent", "Maker", "firm_table", "generated", "package", "patients", "persons", "reference"]

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DISEASES = ("A09.0", "C50.1", "C50.9", "E10.5", "E11.2", "E11.9", "I10.0", "I21.0", "I21.4", "J18.1", "J44.0", "K35.2")
TOWNS = {10115: (52.53, 13.38), 20095: (53.55, 10.00), 50667: (50.94, 6.96), 80331: (48.14, 11.57)}
FIRST = ("Ada", "Bo", "Cem", "Dora", "Emil", "Fatma", "Gert", "Hana", "Ivo", "Jana", "Kurt", "Lena")
LAST = ("Adler", "Brandt", "Cordes", "Dietz", "Ebert", "Franke", "Gruber", "Hartwig", "Imhof", "Jost", "Kessler")

Maker = Callable[[], pl.DataFrame]


class Absent(Exception):  # noqa: N818  (it ends a job, not the run)
    """Data or packages that are not at hand."""


def reference(name: str) -> Maker:
    """Return the maker of a table in the folder of reference data."""

    def make() -> pl.DataFrame:
        path = DATA / f"{name}.csv"
        if not path.exists():
            raise Absent(f"{path.name} is not in the folder of reference data; name it in SHOAL_DATA")
        return pl.read_csv(path, infer_schema_length=None)

    return make


def package(module: str, read: Callable[[Any], Any]) -> Maker:
    """Return the maker of a table in a package; `read` gets its module and returns a frame of pandas."""

    def make() -> pl.DataFrame:
        try:
            frame = read(importlib.import_module(module))
        except ImportError as error:
            raise Absent(f"package {module.partition('.')[0]} is not installed: pip install .[bench]") from error
        return pl.read_csv(frame.to_csv(index=False).encode(), infer_schema_length=None)

    return make


def generated(make: Callable[[int], pl.DataFrame], records: int) -> Maker:
    """Return the maker of a generated table of so many records."""
    return lambda: make(records)


@cache
def firm_table(n: int) -> pl.DataFrame:
    """Return firms with a number, a name and a value added that is the sum of wages and profit."""
    table = firms(n).with_columns(value_added=(pl.col("wages") + pl.col("profit")).round(1))
    number = pl.int_range(700_000, 700_000 + n).alias("tax_number")
    name = pl.Series("company", [f"{LAST[i % 11]} & {LAST[i % 7]} {i} GmbH" for i in range(n)])
    return table.select(number, name, *table.columns)


@cache
def patients(n: int) -> pl.DataFrame:
    """Return stays in a hospital: names, numbers, dates, places, codes of diseases, costs and notes."""
    rng = np.random.default_rng(7)
    age, zips = np.clip(rng.normal(52, 20, n), 0, 97).astype(int), rng.choice(list(TOWNS), n)
    icd = rng.choice(DISEASES, n, p=np.arange(1, 13) / 78)
    admitted = np.datetime64("2024-01-01") + rng.integers(0, 366, n)
    days = 1 + rng.poisson(4, n)
    places = np.array([TOWNS[code] for code in zips]) + rng.normal(0, 0.02, (n, 2))
    return pl.DataFrame(
        {
            "insurance_no": [f"{chr(65 + i % 26)}{i * 7919 % 10**9:09d}" for i in rng.permutation(n) + 1],
            "first_name": rng.choice(FIRST, n),
            "surname": rng.choice(LAST, n),
            "birth_date": pl.Series(admitted - age * 365 - rng.integers(0, 365, n)).cast(pl.Date),
            "sex": rng.choice(["f", "m"], n),
            "zip": zips,
            "latitude": places[:, 0].round(5),
            "longitude": places[:, 1].round(5),
            "admitted": pl.Series(admitted).cast(pl.Date),
            "days": days,
            "ward": rng.choice(["surgery", "medicine", "children", "eyes"], n, p=[0.3, 0.5, 0.15, 0.05]),
            "icd": icd,
            "age": age,
            "cost": (days * rng.lognormal(6, 0.4, n)).round(2),
            "note": [f"Patient {i}: sent by Dr {LAST[i % 11]}, call back {i * 37 % 9973}." for i in range(n)],
        }
    )


@cache
def persons(n: int) -> pl.DataFrame:
    """Return persons of households with weights, classes of education and an income that is -9 where unknown."""
    rng = np.random.default_rng(11)
    household = np.sort(rng.integers(10_000, 10_000 + n // 3, n))
    region = np.array(["North", "East", "South", "West", "Isles"])[(household * 7) % 100 // 24]
    education = rng.choice(4, n, p=[0.15, 0.35, 0.3, 0.2])
    income = rng.lognormal(9.6 + 0.25 * education, 0.5).round(-2).astype(int)
    return pl.DataFrame(
        {
            "person": np.arange(1, n + 1),
            "household": household,
            "region": region,
            "age": np.clip(rng.normal(44, 21, n), 0, 96).astype(int),
            "sex": rng.choice(["female", "male"], n),
            "education": np.array(["none", "primary", "secondary", "tertiary"])[education],
            "rooms": np.random.default_rng(3).integers(1, 8, household.max() + 1)[household],
            "hours": np.where(rng.random(n) < 0.4, 0, np.clip(rng.normal(37, 9, n), 2, 80)).astype(int),
            "income": np.where(rng.random(n) < 0.1, -9, income),
            "religion": rng.choice(["a", "b", "c", "none"], n, p=[0.5, 0.2, 0.05, 0.25]),
            "weight": np.random.default_rng(5).lognormal(6, 0.4, household.max() + 1)[household].round(2),
        }
    )
