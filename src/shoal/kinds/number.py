"""Numbers: compared by standardised values; the mean, median or medoid of a group is released."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.kinds.column import Cells
from shoal.kinds.kind import Kind

__all__ = ["Number"]


@dataclass(frozen=True)
class Number(Kind):
    """Numbers. The mean, median or medoid of a group is released."""

    additive = True

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return "integer" or "float"."""
        return "integer" if cells.whole else "float"
