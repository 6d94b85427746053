"""C, centroid-based fixed size: gather k records around the one farthest from the centroid of what is left.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2. A nearest-record query for each record:
O(d n²) time at worst, near O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.gather import Lot, gather, lot_new, place_leftovers
from shoal.kernels.pool import Pool, pool_farthest_from_centroid, pool_new, pool_tidy, pool_untidy

__all__ = ["centroid"]


def centroid(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by method C; ties go to the lowest record number."""
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    group, lot = 0, lot_new(X.shape[1], k)
    while pool.left[0] >= k and not state[STOP]:
        group = _centroid(X, pool, lot, group, labels, state)
        pool_tidy(pool)
    place_leftovers(X, pool.place, group, labels)
    return labels


@kernel(counted=False)
def _centroid(X: Floats, pool: Pool, lot: Lot, group: int, labels: Ints, state: State) -> int:
    """Form groups until all is done or the pool is to be tidied; return the number of the next group."""
    k = len(lot.members)
    while pool.left[0] >= k and not state[STOP]:
        farthest = pool_farthest_from_centroid(pool)
        gather(X, pool, lot, farthest, group, labels)
        group += 1
        state[DONE] += k
        if pool_untidy(pool):
            break
    return group
