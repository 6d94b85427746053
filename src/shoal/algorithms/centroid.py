"""Method C (centroid-based, fixed size): grow each group of k from the record farthest from the pool's centroid.

A group repeatedly takes the record nearest to its own centroid until it has k records. When fewer than k records remain
in the pool, they join the groups with the nearest centroids.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2. One nearest-record query per record:
O(d n²) time at worst, near O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.group_growth import GroupBuffers, gather, new_group_buffers, place_leftovers
from shoal.kernels.pool import Pool, pool_needs_refresh, pool_new, pool_refresh
from shoal.kernels.pool_queries import pool_farthest_from_centroid

__all__ = ["centroid"]


def centroid(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by method C; ties go to the lowest record number."""
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    group, buffers = 0, new_group_buffers(X.shape[1], k)
    while pool.remaining[0] >= k and not state[STOP]:
        group = _centroid(X, pool, buffers, group, labels, state)
        pool_refresh(pool)
    if not state[STOP]:  # a stopped run may have no group for the leftovers
        place_leftovers(X, pool.place, group, labels)
    return labels


@kernel(counted=False)
def _centroid(X: Floats, pool: Pool, buffers: GroupBuffers, group: int, labels: Ints, state: State) -> int:
    """Form groups until the pool is too small or needs a refresh; return the number of the next group."""
    k = len(buffers.members)
    while pool.remaining[0] >= k and not state[STOP]:
        farthest = pool_farthest_from_centroid(pool)
        gather(X, pool, buffers, farthest, group, labels)
        group += 1
        state[DONE] += k
        if pool_needs_refresh(pool):
            break
    return group
