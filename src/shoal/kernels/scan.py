"""The records that are still without a group, looked at one after the other: for tables too small for a tree.

Records lie in chunks, each column of a chunk contiguous, in float32 and from the centroid. With x and p counted from
there, |x − p|² = |p|² + 2 (|x|²/2 − x·p): the scores in brackets cost a few vector instructions for eight records, and
so do the least and the greatest of a chunk. What they leave in doubt is computed in float64, in the same order of
columns as everywhere else. Ties go to the lowest record number. Distances must be below `_pool.GREAT`.

A look at all records costs O(n d), a removal O(d); memory is O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.pool import (
    LOOSE,
    NOBODY,
    ROUNDING,
    TINY,
    UNIT,
    Singles,
    insert,
    look_from,
    squared_distance,
)
from shoal.kernels.vector import greater, lesser

__all__ = ["Scan", "scan_farthest", "scan_look", "scan_nearest", "scan_new", "scan_remove"]

CHUNK = 128
LANES = CHUNK // 4  # records of a chunk with such a distance are looked at together
NORM, OFFSET, SLACK = range(3)


class Scan(NamedTuple):
    """Records without a group."""

    X: Floats
    quick: Singles  # (chunks, 1 + d or up to three more, CHUNK): half the squared norm, then the columns
    ids: Ints  # the record in each slot
    place: Ints  # the slot of each record
    left: Ints  # how many there are, in one cell
    origin: Floats  # (d,): where the columns are counted from
    total: Floats  # (d,): sum of the records left
    known: Floats  # greatest distance to the origin (NORM), and of the last look its point's (OFFSET) and its SLACK
    single: Singles  # the point that was looked from, from the origin
    scores: Singles  # (chunks, CHUNK)
    least: Singles  # (chunks,)
    greatest: Singles
    lanes: Singles  # (LANES,): the ends of four scores each; loops over it must not be unrolled to be vectors
    lows: Singles  # (k,): the least of the least


def scan_new(X: Floats, k: int, total: Floats | None = None) -> Scan:
    """Put all records where they can be looked at; `total` is their sum, if it is known."""
    n, d = X.shape
    chunks, width = -(-n // CHUNK), -(-d // 4) * 4
    scan = Scan(
        X,
        np.zeros((chunks, 1 + width, CHUNK), dtype=np.float32),
        np.arange(n),
        np.arange(n),
        np.array([n]),
        np.empty(d),
        np.zeros(d) if total is None else total,
        np.zeros(3),
        np.zeros(width, dtype=np.float32),
        np.empty((chunks, CHUNK), dtype=np.float32),
        np.empty(chunks, dtype=np.float32),
        np.empty(chunks, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.empty(k, dtype=np.float32),
    )
    _fill(X, total is None, scan.total, scan.origin, scan.quick, scan.known)
    return scan


@kernel(counted=False)
def _fill(X: Floats, add_up: bool, total: Floats, origin: Floats, quick: Singles, known: Floats) -> None:
    n, d = X.shape
    if add_up:
        for i in range(n):
            for j in range(d):
                total[j] += X[i, j]
    for j in range(d):
        origin[j] = total[j] / n
    square = 0.0
    for i in range(n):
        chunk, slot = i // CHUNK, i % CHUNK
        norm = 0.0
        for j in range(d):
            delta = X[i, j] - origin[j]
            norm += delta * delta
            quick[chunk, 1 + j, slot] = delta
        quick[chunk, 0, slot] = norm / 2
        square = max(square, norm)
    known[NORM] = np.sqrt(square) * (1 + ROUNDING)


@kernel(inline=True)
def scan_look(scan: Scan, point: Floats) -> None:
    """Score all records from a point."""
    known = scan.known
    known[OFFSET] = look_from(scan.origin, point, scan.single)
    width = known[OFFSET] + known[NORM]
    # Each score is off by half of this at most: see `_pool._quick_bound`.
    known[SLACK] = (len(point) + 8) * UNIT * width * width + TINY
    _score(scan.quick, scan.left[0], scan.single, scan.scores, scan.least, scan.greatest)


@kernel(counted=False, inner=True, fastmath=LOOSE)
def _score(quick: Singles, left: int, single: Singles, scores: Singles, least: Singles, greatest: Singles) -> None:
    """Write |x|²/2 − x·p for all slots, four columns at a time, and the ends of each chunk."""
    for chunk in range((left + CHUNK - 1) // CHUNK):
        columns, row = quick[chunk], scores[chunk]
        norms, a, b, c, d = columns[0], columns[1], columns[2], columns[3], columns[4]
        p, q, r, s = single[0], single[1], single[2], single[3]
        for i in range(CHUNK):
            row[i] = norms[i] - ((a[i] * p + b[i] * q) + (c[i] * r + d[i] * s))
        for j in range(4, len(single), 4):
            a, b, c, d = columns[j + 1], columns[j + 2], columns[j + 3], columns[j + 4]
            p, q, r, s = single[j], single[j + 1], single[j + 2], single[j + 3]
            for i in range(CHUNK):
                row[i] -= (a[i] * p + b[i] * q) + (c[i] * r + d[i] * s)
        low, high = row[0], row[0]
        for i in range(min(CHUNK, left - chunk * CHUNK)):
            low, high = lesser(low, row[i]), greater(high, row[i])
        least[chunk], greatest[chunk] = low, high


@kernel(inline=True)
def scan_farthest(scan: Scan, point: Floats) -> int:
    """Return the record farthest from the point that was looked from."""
    farthest: int = _farthest(
        scan.X, scan.ids, scan.left[0], point, scan.known[SLACK], scan.scores, scan.greatest, scan.lanes
    )
    return farthest


@kernel(counted=False, inner=True)
def _farthest(
    X: Floats,
    ids: Ints,
    left: int,
    point: Floats,
    slack: float,
    scores: Singles,
    greatest: Singles,
    lanes: Singles,
) -> int:
    chunks = (left + CHUNK - 1) // CHUNK
    high = greatest[0]
    for chunk in range(1, chunks):
        high = greater(high, greatest[chunk])
    limit = np.float32(high - slack)
    farthest, reach = NOBODY, -1.0
    for chunk in range(chunks):
        if greatest[chunk] < limit:
            continue
        row = scores[chunk]
        for i in range(len(lanes)):
            lanes[i] = greater(greater(row[i], row[i + LANES]), greater(row[i + 2 * LANES], row[i + 3 * LANES]))
        for lane in range(LANES):
            if lanes[lane] < limit:
                continue
            for i in range(lane, min(CHUNK, left - chunk * CHUNK), LANES):
                if row[i] >= limit:
                    record = ids[chunk * CHUNK + i]
                    distance = squared_distance(X[record], point)
                    if distance > reach or (distance == reach and record < farthest):
                        farthest, reach = record, distance
    return farthest


@kernel(inline=True)
def scan_nearest(scan: Scan, point: Floats, near: Floats, near_ids: Ints) -> None:
    """Find the records nearest to the point that was looked from, as many as `near` holds, ascending."""
    limit = _limit(scan.least, (scan.left[0] + CHUNK - 1) // CHUNK, scan.lows) + scan.known[SLACK]
    _nearest(
        scan.X, scan.ids, scan.left[0], point, limit, scan.known, scan.scores, scan.least, scan.lanes, near, near_ids
    )


@kernel(counted=False, inner=True)
def _limit(least: Singles, chunks: int, lows: Singles) -> float:
    """Return a score that k records do not exceed: the k-th of the chunks' least ones, inf if there are fewer."""
    last = len(lows) - 1
    for i in range(last + 1):
        lows[i] = np.inf
    for chunk in range(chunks):
        score, t = least[chunk], last
        if score < lows[last]:
            while t > 0 and lows[t - 1] > score:
                lows[t] = lows[t - 1]
                t -= 1
            lows[t] = score
    return float(lows[last])


@kernel(counted=False, inner=True)
def _nearest(
    X: Floats,
    ids: Ints,
    left: int,
    point: Floats,
    limit: float,
    known: Floats,
    scores: Singles,
    least: Singles,
    lanes: Singles,
    near: Floats,
    near_ids: Ints,
) -> None:
    last = len(near) - 1
    for i in range(last + 1):
        near[i] = np.inf
        near_ids[i] = NOBODY
    square, slack = known[OFFSET] * known[OFFSET], known[SLACK]
    cut = np.float32(limit)
    for chunk in range((left + CHUNK - 1) // CHUNK):
        if least[chunk] > cut:
            continue
        row = scores[chunk]
        for i in range(len(lanes)):
            lanes[i] = lesser(lesser(row[i], row[i + LANES]), lesser(row[i + 2 * LANES], row[i + 3 * LANES]))
        for lane in range(LANES):
            if lanes[lane] > cut:
                continue
            for i in range(lane, min(CHUNK, left - chunk * CHUNK), LANES):
                if row[i] <= cut:
                    record = ids[chunk * CHUNK + i]
                    distance = squared_distance(X[record], point)
                    if distance < near[last] or (distance == near[last] and record < near_ids[last]):
                        insert(distance, record, near, near_ids)
                        limit = min(limit, (near[last] - square) / 2 + slack)
                        cut = np.float32(limit)


@kernel(inline=True)
def scan_remove(scan: Scan, record: int) -> None:
    """Remove a record; the last one takes its place."""
    quick, ids, place, total = scan.quick, scan.ids, scan.place, scan.total
    scan.left[0] -= 1
    here, last = place[record], scan.left[0]
    ids[here] = ids[last]
    place[ids[last]] = here
    place[record] = -1
    for j in range(len(total)):
        total[j] -= scan.X[record, j]
    for j in range(len(total) + 1):
        quick[here // CHUNK, j, here % CHUNK] = quick[last // CHUNK, j, last % CHUNK]
