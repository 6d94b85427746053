"""Numbers: compared by standardised values; the mean, the median or the medoid of a group is released."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from shoal.core.errors import InputError
from shoal.core.types import Name
from shoal.kinds.kind import Kind
from shoal.kinds.recognition import Cells

__all__ = ["Number", "sorted_cells"]


@dataclass(frozen=True)
class Number(Kind):
    """Numbers. The mean of a group is released, or its median or medoid."""

    additive = True

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return "integer" or "float"."""
        return "integer" if cells.whole else "float"


def sorted_cells(name: Name, cells: pl.Series) -> pl.Series:
    """Return the cells of a sensitive column of an ordered type, such that equal values are equal cells."""
    if isinstance(cells.dtype, (pl.Date, pl.Datetime)):
        cells = cells.cast(pl.Datetime("us"))
    if cells.dtype.is_temporal():
        return cells.to_physical()
    if not (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
        raise InputError(
            f"Column {name!r} is confidential and must hold numbers, text, Booleans or dates, but its type is "
            f"{cells.dtype}. Turn it into one of them first."
        )
    # One zero, and one way to be missing.
    return cells.cast(pl.Float64).fill_nan(None) + 0.0 if not cells.dtype.is_integer() else cells
