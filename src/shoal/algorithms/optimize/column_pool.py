"""The column column_pool: groups that the search has seen, for the set-partitioning problem to choose from.

A table of fixed size addressed by a hash of the members (the exclusive or of a random word for each record, Zobrist
1970): a group that is met again costs nothing, and a different group at the same place replaces the old one. O(1) for
each group, and memory that does not grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.optimize.random import Word
from shoal.core.compiler import kernel
from shoal.core.types import Ints

__all__ = ["ColumnPool", "add_column", "columns_in", "new_column_pool"]


class ColumnPool(NamedTuple):
    """Up to `len(size)` groups of up to `members.shape[1]` records."""

    key: Word  # a random word for each record
    hashes: Word  # the hash of the group at each place
    members: NDArray[np.int32]
    size: Ints  # 0 at empty places


def new_column_pool(n: int, largest: int, places: int, seed: int) -> ColumnPool:
    """Return an empty column pool; `places` must be a power of two."""
    key = np.random.SeedSequence((seed, 0x5EED)).generate_state(n, np.uint64).astype(np.uint64)
    return ColumnPool(
        key=key,
        hashes=np.zeros(places, dtype=np.uint64),
        members=np.zeros((places, largest), dtype=np.int32),
        size=np.zeros(places, dtype=np.int64),
    )


@kernel
def add_column(column_pool: ColumnPool, members: Ints, size: int) -> None:
    """Add a group to the column pool."""
    mark = np.uint64(0)
    for i in range(size):
        mark ^= column_pool.key[members[i]]
    place = np.int64(mark & np.uint64(len(column_pool.size) - 1))
    if column_pool.size[place] > 0 and column_pool.hashes[place] == mark:
        return
    column_pool.hashes[place] = mark
    column_pool.size[place] = size
    for i in range(size):
        column_pool.members[place, i] = members[i]


def columns_in(column_pool: ColumnPool) -> list[Ints]:
    """Return the groups kept, each sorted, in an order that depends on the groups only."""
    used = np.flatnonzero(column_pool.size)
    return [np.sort(column_pool.members[place, : column_pool.size[place]].astype(np.int64)) for place in used]
