"""Records that were brought together to be grouped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.measures import Scaling, scaling
from shoal.core.types import Floats, Ints
from shoal.engines.records import Arrays
from shoal.kernels.dealing import sort_by_target
from shoal.kernels.words import Words
from shoal.kinds.coding import Embedding

__all__ = ["Gathered", "cells_of", "gather"]


class Gathered(NamedTuple):
    """Records that are grouped together."""

    X: Floats
    Z: Floats  # X standardised, categories by coordinates
    compared: Floats  # where they lie when they are compared
    scale: Scaling  # of X
    block: Ints  # the block, or the cell, of each record
    codes: Ints  # of confidential columns
    units: Words | None
    weights: Floats | None = None

    @property
    def cells(self) -> list[tuple[Ints, Ints]]:
        """Of each block or cell: its records, and the columns that they do not miss."""
        return cells_of(self.compared, self.block)


def gather(arrays: Arrays, embedding: Embedding, scale: Scaling | None, *, confidential: bool) -> tuple[Ints, Gathered]:
    """Return the records that a bucket was sent, and their order: those of a block lie side by side.

    Without a scale the blocks are whole cells, which are looked at where they are.
    """
    block = arrays["block"].reshape(-1).astype(np.int64, copy=False)
    order = np.arange(len(block)) if scale is None else sort_by_target(block, int(block.max(initial=0)) + 1)[0]
    X = arrays["X"] if scale is None else np.take(arrays["X"], order, axis=0)
    scale = scaling(X) if scale is None else scale
    Z = embedding.apply(X, scale)
    codes = arrays["confidential"].reshape(len(X), -1)[order] if confidential else np.empty((len(X), 0), np.int64)
    units, weights = (arrays[name].reshape(-1)[order] if name in arrays else None for name in ("unit", "weights"))
    return order, Gathered(X, Z, embedding.compared(Z), scale, block[order], codes, units, weights)


def cells_of(X: Floats, cell: Ints) -> list[tuple[Ints, Ints]]:
    """Return, of each cell, its records and the columns that they do not miss."""
    order, begins = sort_by_target(cell, int(cell.max(initial=0)) + 1)
    rows = np.split(order, begins[1:-1])
    return [(members, np.flatnonzero(~np.isnan(X[members[0]]))) for members in rows if len(members)]
