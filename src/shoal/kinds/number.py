"""Numbers, compared by standardised values; the mean, median or medoid of a group is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.core.types import Floats, Name
from shoal.kinds.column import Cells
from shoal.kinds.kind import Coding, Kind

__all__ = ["Number"]


@dataclass(frozen=True)
class Number(Kind):
    """Numbers. The mean, median or medoid of a group is released."""

    compared_on: str = "linear"
    additive = True

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return "integer" or "float"."""
        return "integer" if cells.whole else "float"

    def on_scale(self, scale: str) -> Number:
        """Return the kind with another comparison scale."""
        return replace(self, compared_on=scale)

    def observe(self, X: Floats, j: int, names: Sequence[Name], values: Sequence[Any]) -> Any:
        """Return counts of the values if the comparison scale depends on the values, else an empty tuple."""
        if self.compared_on == "linear":
            return ()
        from shoal.kinds.comparison_scale import CODINGS

        return CODINGS[self.compared_on].observe(X[:, j])

    def fit(self, name: Name, names: Sequence[Name], parts: Sequence[Any]) -> tuple[Coding, list[Floats | None]]:
        """Return the coding for the comparison scale."""
        if self.compared_on == "linear":
            return super().fit(name, names, parts)
        from shoal.kinds.comparison_scale import CODINGS, merge_counts

        return CODINGS[self.compared_on].coding(merge_counts(parts)), [None] * len(parts)
