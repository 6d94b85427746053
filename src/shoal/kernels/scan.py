"""Sequential scans of the records without a group, for tables that are too small for a tree.

Records are stored in chunks of contiguous columns, in float32 and relative to the centroid. All records are scored by
their distance from a point (`shoal.kernels.float32`), and each chunk stores its minimum and maximum score. Distances
are computed in float64 only for records that the scores do not rule out. Ties go to the lowest record number. Distances
must be below `FLOAT32_LARGEST`.

Scoring all records takes O(n d) time, a removal O(d); memory is O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.distances import NO_RECORD, insert_nearest, squared_distance
from shoal.kernels.float32 import APPROXIMATE, FLOAT32_ROUNDOFF, FLOAT32_SMALLEST, Floats32, to_float32
from shoal.kernels.pool import ROUNDING
from shoal.kernels.vector import greater, lesser

__all__ = ["Scan", "scan_farthest", "scan_nearest", "scan_new", "scan_remove", "scan_score"]

CHUNK = 128  # records per chunk
LANES = CHUNK // 4  # distance between the records of a chunk that are checked together

# Entries of `Scan.margins`: the greatest distance of a record to the origin; the distance from the scored point to the
# origin; twice the greatest rounding error of a score.
NORM, OFFSET, SLACK = range(3)


class Scan(NamedTuple):
    """The records without a group, with buffers for scans."""

    X: Floats
    columns32: Floats32  # (chunks, 1 + d rounded up to a multiple of 4, CHUNK): half the squared norm, then the columns
    ids: Ints  # the record in each slot
    place: Ints  # the slot of each record
    remaining: Ints  # (1,): the number of records
    origin: Floats  # (d,): the origin of the columns
    total: Floats  # (d,): the sum of the remaining records
    margins: Floats  # (3,): NORM, OFFSET and SLACK
    point32: Floats32  # the scored point, relative to the origin
    scores: Floats32  # (chunks, CHUNK)
    lowest: Floats32  # (chunks,)
    highest: Floats32
    lanes: Floats32  # (LANES,): the least or greatest of four scores; the length keeps loops from being unrolled
    lows: Floats32  # (k,): the smallest of the chunks' least scores


def scan_new(X: Floats, k: int, total: Floats | None = None) -> Scan:
    """Prepare a scan of all records; `total` is their sum, if known."""
    n, d = X.shape
    chunks, width = -(-n // CHUNK), -(-d // 4) * 4
    scan = Scan(
        X=X,
        columns32=np.zeros((chunks, 1 + width, CHUNK), dtype=np.float32),
        ids=np.arange(n),
        place=np.arange(n),
        remaining=np.array([n]),
        origin=np.empty(d),
        total=np.zeros(d) if total is None else total,
        margins=np.zeros(3),
        point32=np.zeros(width, dtype=np.float32),
        scores=np.empty((chunks, CHUNK), dtype=np.float32),
        lowest=np.empty(chunks, dtype=np.float32),
        highest=np.empty(chunks, dtype=np.float32),
        lanes=np.empty(LANES, dtype=np.float32),
        lows=np.empty(k, dtype=np.float32),
    )
    _fill(X, total is None, scan.total, scan.origin, scan.columns32, scan.margins)
    return scan


@kernel(counted=False)
def _fill(X: Floats, add_up: bool, total: Floats, origin: Floats, columns32: Floats32, margins: Floats) -> None:
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
            columns32[chunk, 1 + j, slot] = delta
        columns32[chunk, 0, slot] = norm / 2
        square = max(square, norm)
    margins[NORM] = np.sqrt(square) * (1 + ROUNDING)


@kernel(inline=True)
def scan_score(scan: Scan, point: Floats) -> None:
    """Score all records by their distance from a point."""
    margins = scan.margins
    margins[OFFSET] = to_float32(scan.origin, point, scan.point32)
    width = margins[OFFSET] + margins[NORM]
    # The error of a score is at most half of this slack; see `shoal.kernels.float32.score_bound`.
    margins[SLACK] = (len(point) + 8) * FLOAT32_ROUNDOFF * width * width + FLOAT32_SMALLEST
    _score(scan.columns32, scan.remaining[0], scan.point32, scan.scores, scan.lowest, scan.highest)


@kernel(counted=False, inner=True, fastmath=APPROXIMATE)
def _score(
    columns32: Floats32, count: int, point32: Floats32, scores: Floats32, lowest: Floats32, highest: Floats32
) -> None:
    """Write |x|²/2 − x·p for all records, four columns at a time, and the least and greatest score of each chunk."""
    for chunk in range((count + CHUNK - 1) // CHUNK):
        columns, row = columns32[chunk], scores[chunk]
        norms, a, b, c, d = columns[0], columns[1], columns[2], columns[3], columns[4]
        p, q, r, s = point32[0], point32[1], point32[2], point32[3]
        for i in range(CHUNK):
            row[i] = norms[i] - ((a[i] * p + b[i] * q) + (c[i] * r + d[i] * s))
        for j in range(4, len(point32), 4):
            a, b, c, d = columns[j + 1], columns[j + 2], columns[j + 3], columns[j + 4]
            p, q, r, s = point32[j], point32[j + 1], point32[j + 2], point32[j + 3]
            for i in range(CHUNK):
                row[i] -= (a[i] * p + b[i] * q) + (c[i] * r + d[i] * s)
        low, high = row[0], row[0]
        for i in range(min(CHUNK, count - chunk * CHUNK)):
            low, high = lesser(low, row[i]), greater(high, row[i])
        lowest[chunk], highest[chunk] = low, high


@kernel(inline=True)
def scan_farthest(scan: Scan, point: Floats) -> int:
    """Return the record farthest from the scored point."""
    farthest: int = _farthest(
        scan.X, scan.ids, scan.remaining[0], point, scan.margins[SLACK], scan.scores, scan.highest, scan.lanes
    )
    return farthest


@kernel(counted=False, inner=True)
def _farthest(
    X: Floats,
    ids: Ints,
    count: int,
    point: Floats,
    slack: float,
    scores: Floats32,
    highest: Floats32,
    lanes: Floats32,
) -> int:
    chunks = (count + CHUNK - 1) // CHUNK
    high = highest[0]
    for chunk in range(1, chunks):
        high = greater(high, highest[chunk])
    limit = np.float32(high - slack)
    farthest, reach = NO_RECORD, -1.0
    for chunk in range(chunks):
        if highest[chunk] < limit:
            continue
        row = scores[chunk]
        for i in range(len(lanes)):
            lanes[i] = greater(greater(row[i], row[i + LANES]), greater(row[i + 2 * LANES], row[i + 3 * LANES]))
        for lane in range(LANES):
            if lanes[lane] < limit:
                continue
            for i in range(lane, min(CHUNK, count - chunk * CHUNK), LANES):
                if row[i] >= limit:
                    record = ids[chunk * CHUNK + i]
                    distance = squared_distance(X[record], point)
                    if distance > reach or (distance == reach and record < farthest):
                        farthest, reach = record, distance
    return farthest


@kernel(inline=True)
def scan_nearest(scan: Scan, point: Floats, near: Floats, near_ids: Ints) -> None:
    """Find the records nearest to the scored point, as many as `near` holds, in ascending order of distance."""
    limit = _limit(scan.lowest, (scan.remaining[0] + CHUNK - 1) // CHUNK, scan.lows) + scan.margins[SLACK]
    _nearest(
        scan.X,
        scan.ids,
        scan.remaining[0],
        point,
        limit,
        scan.margins,
        scan.scores,
        scan.lowest,
        scan.lanes,
        near,
        near_ids,
    )


@kernel(counted=False, inner=True)
def _limit(lowest: Floats32, chunks: int, lows: Floats32) -> float:
    """Return a score that at least k records do not exceed: the k-th smallest of the chunks' least scores, or inf."""
    last = len(lows) - 1
    for i in range(last + 1):
        lows[i] = np.inf
    for chunk in range(chunks):
        score, t = lowest[chunk], last
        if score < lows[last]:
            while t > 0 and lows[t - 1] > score:
                lows[t] = lows[t - 1]
                t -= 1
            lows[t] = score
    return float(lows[last])


@kernel(counted=False, inner=True)
def _nearest(  # noqa: PLR0913 - a tuple of arrays takes longer to compile
    X: Floats,
    ids: Ints,
    count: int,
    point: Floats,
    limit: float,
    margins: Floats,
    scores: Floats32,
    lowest: Floats32,
    lanes: Floats32,
    near: Floats,
    near_ids: Ints,
) -> None:
    last = len(near) - 1
    for i in range(last + 1):
        near[i] = np.inf
        near_ids[i] = NO_RECORD
    square, slack = margins[OFFSET] * margins[OFFSET], margins[SLACK]
    cut = np.float32(limit)
    for chunk in range((count + CHUNK - 1) // CHUNK):
        if lowest[chunk] > cut:
            continue
        row = scores[chunk]
        for i in range(len(lanes)):
            lanes[i] = lesser(lesser(row[i], row[i + LANES]), lesser(row[i + 2 * LANES], row[i + 3 * LANES]))
        for lane in range(LANES):
            if lanes[lane] > cut:
                continue
            for i in range(lane, min(CHUNK, count - chunk * CHUNK), LANES):
                if row[i] <= cut:
                    record = ids[chunk * CHUNK + i]
                    distance = squared_distance(X[record], point)
                    if distance < near[last] or (distance == near[last] and record < near_ids[last]):
                        insert_nearest(distance, record, near, near_ids)
                        limit = min(limit, (near[last] - square) / 2 + slack)
                        cut = np.float32(limit)


@kernel(inline=True)
def scan_remove(scan: Scan, record: int) -> None:
    """Remove a record and move the last record to its slot."""
    columns32, ids, place, total = scan.columns32, scan.ids, scan.place, scan.total
    scan.remaining[0] -= 1
    slot, last = place[record], scan.remaining[0]
    ids[slot] = ids[last]
    place[ids[last]] = slot
    place[record] = -1
    for j in range(len(total)):
        total[j] -= scan.X[record, j]
    for j in range(len(total) + 1):
        columns32[slot // CHUNK, j, slot % CHUNK] = columns32[last // CHUNK, j, last % CHUNK]
