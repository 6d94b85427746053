"""A demo table of fictitious firms."""

from __future__ import annotations

import numpy as np
import polars as pl

__all__ = ["firms"]

REGIONS = ("North", "East", "South", "West", "Centre", "Islands")
SECTORS = ("Food", "Textiles", "Machinery", "Chemistry", "Construction", "Retail", "Transport", "Services")


def firms(n: int = 3000, seed: int = 20) -> pl.DataFrame:
    """Generate firms with skewed, correlated money columns, a region, a sector, weights and some missing cells.

    Examples
    --------
    >>> firms(100).columns
    ['region', 'sector', 'weight', 'employees', 'sales', 'wages', 'assets', 'profit', 'research']
    """
    rng = np.random.default_rng(seed)
    region = rng.choice(len(REGIONS), n, p=[0.24, 0.16, 0.2, 0.18, 0.16, 0.06])
    sector = rng.choice(len(SECTORS), n, p=[0.1, 0.06, 0.1, 0.06, 0.16, 0.24, 0.1, 0.18])
    size = rng.normal(0, 1.3, n) + 0.2 * (region == 0) + rng.normal(0, 0.4, len(SECTORS))[sector]
    employees = np.maximum(1, np.exp(2.4 + size)).astype(np.int64)
    sales = employees * np.exp(rng.normal(4.6, 0.5, n) + rng.normal(0, 0.3, len(SECTORS))[sector])
    wages = employees * np.exp(rng.normal(3.4, 0.2, n))
    assets = sales * np.exp(rng.normal(-0.3, 0.8, n))
    profit = sales * rng.normal(0.06, 0.09, n)
    research = np.where(rng.random(n) < 0.35, sales * np.exp(rng.normal(-4, 0.9, n)), 0.0)
    weight = np.clip(60 / employees, 1, 20) * rng.uniform(0.9, 1.1, n)
    missing = rng.random(n) < 0.07
    return pl.DataFrame(
        {
            "region": [REGIONS[i] for i in region],
            "sector": [SECTORS[i] for i in sector],
            "weight": weight.round(2),
            "employees": employees,
            "sales": sales.round(1),
            "wages": wages.round(1),
            "assets": assets.round(1),
            "profit": profit.round(1),
            "research": pl.Series(research.round(1)).set(pl.Series(missing), None),
        }
    )
