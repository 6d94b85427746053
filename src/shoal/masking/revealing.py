"""Find unchanged columns that reveal a masked one: the same values in another spelling, code or unit. O(n d log n)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import polars as pl

from shoal.core.types import Name

__all__ = ["revealing_columns"]


def revealing_columns(originals: pl.DataFrame, unchanged: Sequence[Name], masked: Sequence[Name]) -> dict[Name, Name]:
    """Return each unchanged column whose values correspond one to one to those of a masked column, with that column.

    `originals` holds the unchanged columns, then the masked ones. Columns without equal values always correspond; they
    count only if both sort the records in the same or the opposite order.

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
    """Return True if two ranked columns correspond one to one; columns of few repeats must share an order."""
    if 2 * distinct > len(one):
        return bool((one == two).all() or (one + two == distinct + 1).all())
    return pl.DataFrame([one.alias("one"), two.alias("two")]).n_unique() == distinct
