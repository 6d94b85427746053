"""Lists of the nearest records of every record, for methods that use only neighbours and no n×n matrix.

`nearby` sorts records into leaves by halving them at the median of their widest column; every leaf stores its bounding
box. Each record first searches its own leaf, then the leaves whose boxes are not farther than its nearest records so
far. Sorting takes O(n d log n); each record takes O(n d / `LEAF`) for the boxes and O(d) per record of a visited leaf.
Memory is O(n (d + count)). Without a tree of many levels, `nearby` compiles in a fraction of the time and is as fast
for tens of thousands of records.

`nearest` uses scipy's tree, which is faster for more records, and faster still for approximate lists.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import STOP, spread
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import NO_RECORD, insert_nearest, squared_distances

__all__ = ["leaves_of", "list_size", "nearby", "nearest", "neighbour_lists"]

LEAF = 96
SHARE = 2000  # records per task of a thread
# A search uses the 2k nearest records of each record, but at least FEWEST. Beyond MOST, it uses the nearest among every
# second, third, … record, because longer lists take memory and time without improving the results.
FEWEST, MOST = 12, 512


def list_size(n: int, k: int) -> tuple[int, int]:
    """Return the number of neighbours per record for groups of k, and t if only every t-th record is a candidate.

    Examples
    --------
    >>> list_size(5000, 3), list_size(5000, 100), list_size(5000, 1000), list_size(8, 3)
    ((12, 1), (200, 1), (500, 4), (7, 1))
    """
    step = -(-2 * k // MOST)
    return min(-(-n // step) - 1, max(FEWEST, 2 * k // step)), step


def neighbour_lists(X: Floats, k: int, *, state: State, threads: int) -> tuple[Ints, Floats, int]:
    """Return the lists of `nearby` for groups of k, and t if only every t-th record is a candidate."""
    count, step = list_size(len(X), k)
    return *nearby(X, count, state=state, step=step, threads=threads), step


def nearest(X: Floats, count: int, *, step: int = 1, slack: float = 0.0) -> Ints:
    """Return the `count` nearest other records of each record, nearest first, ``(n, count)``.

    With `step`, only every `step`-th record is a candidate. With `slack`, a neighbour may be up to 1 + slack times as
    far as the exact neighbour. On 100,000 normally distributed records with ten columns, a slack of 1 takes a ninth of
    the time and still finds most exact neighbours.

    Examples
    --------
    >>> nearest(np.array([[0.0], [1.0], [5.0]]), 1).ravel().tolist()
    [1, 0, 1]
    """
    from scipy.spatial import cKDTree

    n = len(X)
    count = min(count, -(-n // step) - 1)
    # Remove a common offset, which would reduce the precision of the tree.
    X = X - X[0]
    _, places = cKDTree(X[::step]).query(X, count + 1, eps=slack, workers=-1)
    places = places.reshape(n, count + 1) * step
    # A record is not always first in its own list, because duplicates may precede or displace it.
    foreign = places != np.arange(n)[:, None]
    full = foreign.all(axis=1)
    foreign[full, -1] = False
    return np.ascontiguousarray(places[foreign].reshape(n, count), dtype=np.int64)


def nearby(X: Floats, count: int, *, state: State, step: int = 1, threads: int = 1) -> tuple[Ints, Floats]:
    """Return the `count` nearest other records of each record and their squared distances, nearest first.

    With `step`, only every `step`-th record is a candidate. Ties go to the lowest record number. If there are too few
    candidates or a stop is requested, the missing entries are −1.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> near, squares = nearby(np.array([[0.0], [1.0], [5.0]]), 1, state=fresh_state())
    >>> near.ravel().tolist(), squares.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 16.0])
    """
    n, d = X.shape
    queries = _in_leaves(X, np.arange(n))
    leaves = queries if step == 1 else _in_leaves(X, np.arange(0, n, step))
    starts = queries.starts
    near, squares = np.full((n, count), -1, dtype=np.int64), np.full((n, count), np.inf)

    def run(part: tuple[int, int]) -> None:
        buffers = np.empty(LEAF), np.empty(d), np.empty(count + 1)
        _fill(queries, leaves, *part, *buffers, np.empty(count + 1, dtype=np.int64), near, squares, state)

    parts = list(pairwise(np.unique(np.r_[0 : len(starts) - 1 : SHARE // LEAF, len(starts) - 1]).tolist()))
    if len(parts) == 1:
        run(parts[0])
    else:
        list(spread(run, parts, threads))
    return near, squares


class Leaves(NamedTuple):
    """Records sorted into leaves, with the bounding box of each leaf."""

    columns: Floats  # (d, n)
    order: Ints  # the number of each record
    starts: Ints  # the start of each leaf and the end of the last leaf
    low: Floats  # (d, leaves): bounding boxes
    high: Floats


def _in_leaves(X: Floats, records: Ints) -> Leaves:
    """Sort the given records of X into leaves."""
    order, starts = leaves_of(X[records])
    columns = np.ascontiguousarray(X[records[order]].T)
    low, high = (np.ascontiguousarray(side.reduceat(columns, starts[:-1], axis=1)) for side in (np.minimum, np.maximum))
    return Leaves(columns, records[order], starts, low, high)


def leaves_of(X: Floats) -> tuple[Ints, Ints]:
    """Return the records leaf by leaf, with the start of each leaf and the end of the last leaf.

    Examples
    --------
    >>> leaves_of(np.array([[2.0], [1.0]]))[0].tolist()
    [0, 1]
    """
    waiting, leaves = [np.arange(len(X))], list[Ints]()
    while waiting:
        part = waiting.pop()
        if len(part) <= LEAF:
            leaves.append(part)
            continue
        rows = X[part]
        column = rows[:, int(np.argmax(np.ptp(rows, axis=0)))]
        halves = np.argpartition(column, len(part) // 2)
        waiting += [np.sort(part[halves[len(part) // 2 :]]), np.sort(part[halves[: len(part) // 2]])]
    return np.concatenate(leaves), np.cumsum([0, *map(len, leaves)])


@kernel(counted=False, inner=True)
def _gap(leaves: Leaves, leaf: int, point: Floats) -> float:
    """Return the squared distance from a point to the box of a leaf."""
    gap = 0.0
    for j in range(len(point)):
        delta = max(leaves.low[j, leaf] - point[j], point[j] - leaves.high[j, leaf], 0.0)
        gap += delta * delta
    return gap


@kernel(counted=False)
def _fill(  # noqa: PLR0913 - four are buffers: kernels without counted references cannot allocate memory
    queries: Leaves,
    leaves: Leaves,
    first: int,
    last: int,
    distances: Floats,
    point: Floats,
    best: Floats,
    ids: Ints,
    near: Ints,
    squares: Floats,
    state: State,
) -> None:
    """Write the lists of the queries in the leaves first … last − 1, chosen from the records in `leaves`."""
    starts, many, count = queries.starts, len(leaves.starts) - 1, len(best) - 1
    for home in range(first, last):
        for place in range(starts[home], starts[home + 1]):
            if state[STOP]:
                return
            for t in range(count + 1):
                best[t], ids[t] = np.inf, NO_RECORD
            for j in range(len(point)):
                point[j] = queries.columns[j, place]
            # Visit the home leaf, or a leaf near it, first, then the others in cyclic order.
            for turn in range(many):
                leaf = (home * many // (len(starts) - 1) + turn) % many
                if _gap(leaves, leaf, point) <= best[count]:
                    _look(leaves, leaf, point, distances, best, ids)
            _keep(queries.order[place], best, ids, near, squares)


@kernel(counted=False, inner=True)
def _look(leaves: Leaves, leaf: int, point: Floats, distances: Floats, best: Floats, ids: Ints) -> None:
    """Insert the nearest records of a leaf into the list."""
    last, start = len(best) - 1, leaves.starts[leaf]
    size = leaves.starts[leaf + 1] - start
    squared_distances(leaves.columns, start, size, point, distances)
    for i in range(size):
        record = leaves.order[start + i]
        if distances[i] < best[last] or (distances[i] == best[last] and record < ids[last]):
            insert_nearest(distances[i], record, best, ids)


@kernel(counted=False, inner=True)
def _keep(record: int, best: Floats, ids: Ints, near: Ints, squares: Floats) -> None:
    """Write the list of a record without the record itself, or without the last entry if duplicates displaced it."""
    t = 0
    for i in range(len(ids)):
        if ids[i] not in (record, NO_RECORD) and t < near.shape[1]:
            near[record, t], squares[record, t] = ids[i], best[i]
            t += 1
