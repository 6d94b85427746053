"""Protected figures of original values for a report: counts over wide bins, and nothing about any single record.

The edges of the bins are computed from the released values, which are public. A bin with fewer than k records of either
table is merged with its neighbour. The outer bins are open-ended, so that neither the least nor the greatest original
is visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.types import Floats, Ints

__all__ = ["Bins", "protected_bins", "protected_values"]

BINS = 22
SHOWN_VALUES = 6


@dataclass(frozen=True)
class Bins:
    """Counts of records before and after masking, over common bins."""

    # The inner edges, one fewer than bins: the first bin is below the first edge, and the last bin is above the last
    # edge.
    edges: Floats
    # The number of records in each bin.
    before: Ints
    after: Ints
    # If positive, values are drawn on the scale asinh(value / unit), for skewed columns; if 0, on a linear scale.
    unit: float
    step: float  # the width of a bin on that scale, before merging


def protected_bins(x: Floats, y: Floats, k: int) -> Bins | None:
    """Count originals x and released values y over bins of at least k records each; return None if one bin remains.

    Examples
    --------
    >>> y = np.repeat([0.0, 10.0, 20.0, 30.0], 5)
    >>> bins = protected_bins(y + np.tile([-1.0, 0.0, 0.0, 0.0, 1.0], 4), y, k=5)
    >>> bins.before.tolist()
    [5, 5, 5, 5]
    """
    present = ~np.isnan(x)
    x, y = x[present], y[present]
    if len(y) < 2 * k:
        return None
    low, first, third, high = np.quantile(y, (0.01, 0.25, 0.75, 0.99), method="nearest")
    if low == high:
        return None
    skewed = high - low > 8 * (third - first)
    unit = float(max((third - first) / 2, (high - low) / 1000)) if skewed else 0.0
    ends = np.arcsinh(np.array([low, high]) / unit) if unit else np.array([low, high])
    step = float((ends[1] - ends[0]) / BINS)
    places = np.linspace(ends[0], ends[1], BINS + 1)
    edges: Floats = unit * np.sinh(places) if unit else places
    before, after = _counts(x, edges), _counts(y, edges)
    inner: list[int] = []
    first_bin = 0
    for i in range(1, len(edges) + 1):
        # Keep an edge if there are enough records between the previous edge and this one, and from here to the end.
        span = slice(first_bin, i)
        enough = min(before[span].sum(), after[span].sum()) >= k and min(before[i:].sum(), after[i:].sum()) >= k
        if enough:
            inner.append(i - 1)
            first_bin = i
    if not inner:
        return None
    starts = [0, *(edge + 1 for edge in inner)]
    return Bins(edges[inner], np.add.reduceat(before, starts), np.add.reduceat(after, starts), unit, step)


def protected_values(x: Floats, y: Floats, names: Sequence[object], k: int) -> list[tuple[str, int, int]] | None:
    """Count the most frequent values, and all others together, in original codes x and released codes y.

    Every count is 0 or at least k in both tables. A value that is rarer in one table counts among the others; while the
    others are fewer than k, the rarest remaining value joins them. Return None if no value remains.

    Examples
    --------
    >>> x, y = np.repeat([0.0, 1.0, 2.0], [6, 4, 2]), np.repeat([0.0, 1.0], [6, 6])
    >>> protected_values(x, y, ["clerk", "nurse", "smith"], 4)
    [('clerk', 6, 6), ('others', 6, 6)]
    """
    present = ~np.isnan(x)
    before, after = (np.bincount(v[present].astype(np.int64), minlength=len(names)) for v in (x, y))
    # An inner node of a hierarchy is not an original value, so a count of 0 reveals nothing about anybody.
    enough = (after >= k) & ((before >= k) | (before == 0))
    frequent = [code for code in np.argsort(-after, kind="stable")[:SHOWN_VALUES] if enough[code]]
    n = int(present.sum())
    rest = [n - int(counts[frequent].sum()) for counts in (before, after)]
    while frequent and any(0 < count < k for count in rest):
        last = frequent.pop()
        rest = [rest[0] + int(before[last]), rest[1] + int(after[last])]
    if not frequent:
        return None
    values = [(str(names[code]), int(before[code]), int(after[code])) for code in sorted(frequent)]
    return [*values, ("others", rest[0], rest[1])] if any(rest) else values


def _counts(values: Floats, edges: Floats) -> Ints:
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1).astype(np.int64)
