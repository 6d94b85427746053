"""Records that were brought together to be grouped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.measures import Scaling
from shoal.core.types import Floats, Ints
from shoal.kernels.dealing import sort_by_target
from shoal.kernels.words import Words

__all__ = ["Gathered", "cells_of"]


class Gathered(NamedTuple):
    """Records that are grouped together."""

    X: Floats
    compared: Floats  # where they lie when they are compared
    scale: Scaling  # of X
    block: Ints  # the block, or the cell, of each record
    codes: Ints  # of confidential columns
    units: Words | None

    @property
    def cells(self) -> list[tuple[Ints, Ints]]:
        """Of each block or cell: its records, and the columns that they do not miss."""
        return cells_of(self.compared, self.block)


def cells_of(X: Floats, cell: Ints) -> list[tuple[Ints, Ints]]:
    """Return, of each cell, its records and the columns that they do not miss."""
    order, begins = sort_by_target(cell, int(cell.max(initial=0)) + 1)
    rows = np.split(order, begins[1:-1])
    return [(members, np.flatnonzero(~np.isnan(X[members[0]]))) for members in rows if len(members)]
