"""Numbers: compared by standardised values; the mean, the median or the medoid of a group is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from shoal.core.types import Name
from shoal.kinds.kind import Kind, sorted_cells
from shoal.kinds.nominal import Nominal
from shoal.kinds.recognition import Cells

if TYPE_CHECKING:
    from shoal.tables.table import Table

__all__ = ["Number"]


@dataclass(frozen=True)
class Number(Kind):
    """Numbers. The mean of a group is released, or its median or medoid."""

    additive = True

    def compared(self, table: Table, name: Name, first: int) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column as they are compared: text, which has no order, as nominal values."""
        cells = table.keys([name])["0"]
        if isinstance(cells.dtype, (pl.String, pl.Categorical, pl.Enum)):
            return Nominal().compared(table, name, first)
        return sorted_cells(name, cells), True

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return "integer" or "float"."""
        return "integer" if cells.whole else "float"
