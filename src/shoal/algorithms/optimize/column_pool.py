"""The column pool: groups that the search has seen, for the set-partitioning problem to choose from.

A table of fixed size addressed by a hash of the members (the exclusive or of one random word a record, Zobrist
1970): a group that comes again costs nothing, another one at the same place replaces what was there. O(1) a
group, and memory that does not grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.optimize.random import Word
from shoal.core.compiling import kernel
from shoal.core.types import Ints

__all__ = ["ColumnPool", "pool_groups", "pool_keep", "pool_open"]


class ColumnPool(NamedTuple):
    """Up to `len(size)` groups of up to `members.shape[1]` records."""

    key: Word  # one random word a record
    seen: Word  # the hash of the group at each place
    members: NDArray[np.int32]
    size: Ints  # 0 where there is none


def pool_open(n: int, most: int, places: int, seed: int) -> ColumnPool:
    """Return an empty pool; `places` must be a power of two."""
    key = np.random.SeedSequence((seed, 0x5EED)).generate_state(n, np.uint64).astype(np.uint64)
    return ColumnPool(
        key,
        np.zeros(places, dtype=np.uint64),
        np.zeros((places, most), dtype=np.int32),
        np.zeros(places, dtype=np.int64),
    )


@kernel
def pool_keep(pool: ColumnPool, members: Ints, size: int) -> None:
    """Remember a group."""
    mark = np.uint64(0)
    for i in range(size):
        mark ^= pool.key[members[i]]
    place = np.int64(mark & np.uint64(len(pool.size) - 1))
    if pool.size[place] > 0 and pool.seen[place] == mark:
        return
    pool.seen[place] = mark
    pool.size[place] = size
    for i in range(size):
        pool.members[place, i] = members[i]


def pool_groups(pool: ColumnPool) -> list[Ints]:
    """Return the groups kept, each sorted, in an order that depends on the groups only."""
    used = np.flatnonzero(pool.size)
    return [np.sort(pool.members[place, : pool.size[place]].astype(np.int64)) for place in used]
