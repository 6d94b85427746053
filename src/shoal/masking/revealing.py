"""Detection of unchanged columns that repeat a masked column in another spelling, code or unit. O(n d log n)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import polars as pl

from shoal.core.types import Name

__all__ = ["revealing_columns"]


def revealing_columns(originals: pl.DataFrame, unchanged: Sequence[Name], masked: Sequence[Name]) -> dict[Name, Name]:
    """Map each unchanged column to a masked column whose values correspond to its values one to one.

    `originals` holds the unchanged columns, then the masked columns. Any two columns without repeated values correspond
    one to one. Columns with few repeats therefore count only if they sort the records in the same or the reverse order.

    Examples
    --------
    >>> originals = pl.DataFrame({"0": ["BSc", "PhD", "BSc", "PhD"], "1": [1.5, 2.5, 9.0, 4.0], "2": [13, 16, 13, 16]})
    >>> revealing_columns(originals, ["degree", "pay"], ["years"])
    {'degree': 'years'}
    """
    columns = [column.rank("dense").fill_null(0) for column in originals.get_columns()]
    distinct = [column.n_unique() for column in columns]
    pairs = product(range(len(unchanged)), range(len(unchanged), len(columns)))
    return {
        unchanged[i]: masked[j - len(unchanged)]
        for i, j in pairs
        if 1 < distinct[i] == distinct[j] and _correspond(columns[i], columns[j], distinct[i])
    }


def _correspond(one: pl.Series, two: pl.Series, distinct: int) -> bool:
    """Return True if two ranked columns correspond one to one; with few repeats, their order must match too."""
    if 2 * distinct > len(one):
        return bool((one == two).all() or (one + two == distinct + 1).all())
    return pl.DataFrame([one.alias("one"), two.alias("two")]).n_unique() == distinct
