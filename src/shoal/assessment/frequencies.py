"""Frequency tables before and after masking: changes in the counts of single or crossed columns, in O(n + cells)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.assessment.record_pairs import as_text
from shoal.core.types import Ints
from shoal.masking.verification import identical_records
from shoal.tables.columns import Name
from shoal.tables.table import Table, check_name

__all__ = ["TableChange", "table_change"]

FEW_VALUES = 20  # greatest number of distinct numbers that are counted individually; more are counted in classes
CLASSES = 10


@dataclass(frozen=True)
class TableChange:
    """The change of a frequency table.

    Parameters
    ----------
    columns
        The columns of the table.
    cells
        The number of combinations that occur before or after masking.
    variation
        The total variation distance ½ Σ |p − q|: the least share of records that would have to move.
    hellinger
        The Hellinger distance √(½ Σ (√p − √q)²), 0 to 1.
    emptied
        The number of combinations that occur only before masking.
    classes
        The columns counted in classes, by the deciles of the original.
    """

    columns: tuple[Name, ...]
    cells: int
    variation: float
    hellinger: float
    emptied: int
    classes: tuple[Name, ...] = ()


def table_change(before: Table, after: Table, names: Sequence[Name]) -> TableChange:
    """Compare the counts of the value combinations of one or more columns in both tables.

    A column of numbers or times with more than 20 different values in the original is counted in ten classes divided by
    its deciles. Missing cells count as a separate value.
    """
    coded, classes = [], []
    for name in names:
        for table in (before, after):
            check_name(name, table.names, "tables")
        codes, cut = _codes(before.keys([name])["0"], after.keys([name])["0"])
        coded.append(codes)
        classes += [name] if cut else []
    cell = identical_records(coded)
    cells = int(cell.max()) + 1
    old, new = np.bincount(cell[: before.rows], minlength=cells), np.bincount(cell[before.rows :], minlength=cells)
    p, q = old / before.rows, new / after.rows
    return TableChange(
        tuple(names),
        cells,
        variation=float(np.abs(p - q).sum() / 2),
        hellinger=float(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2)),
        emptied=int(((old > 0) & (new == 0)).sum()),
        classes=tuple(classes),
    )


def _codes(before: pl.Series, after: pl.Series) -> tuple[Ints, bool]:
    """Return the concatenated codes of both columns, and True if the codes are classes."""
    if before.dtype.is_temporal() and after.dtype.is_temporal():
        after = after.cast(before.dtype)  # the same unit of time
    if all(cells.dtype.is_numeric() or cells.dtype.is_temporal() for cells in (before, after)):
        x, y = (cells.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy() for cells in (before, after))
        values, present = np.concatenate([x, y]), x[~np.isnan(x)]
        cut = len(np.unique(present)) > FEW_VALUES
        if cut:
            edges = np.unique(np.quantile(present, np.arange(1, CLASSES) / CLASSES))
            values = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))
        return identical_records([values]), cut
    ranks = pl.concat([as_text(before), as_text(after)]).rank("dense").fill_null(0)
    return ranks.to_numpy().astype(np.int64), False
