"""Record linkage: the share of records that an intruder with the original values links correctly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.measures import group_sizes, scaling
from shoal.core.types import Bools, Floats, Ints
from shoal.kinds.kind import Embedding
from shoal.masking.group import cells_of as split_cells
from shoal.masking.verification import identical_records

__all__ = ["Linkage", "cells_of", "linkage", "wilson"]

# All records of a table of up to LINKED_RECORDS are linked; of a larger table, a random sample.
LINKED_RECORDS = 20_000
LINKED_SAMPLE = 10_000
FEW = 16  # greatest number of records in a cell that are compared pairwise
WORTH_THREADS = 1000  # number of queries below which starting threads takes longer than answering


@dataclass(frozen=True)
class Linkage:
    """The result of record linkage, in which each released record is linked to the nearest original.

    The intruder knows the unchanged columns, except sensitive ones, and links only records with equal values in them.

    Parameters
    ----------
    share
        The share of records whose nearest original is their own; with m tied originals, a record counts as 1/m.
    chance
        The success rate of a random choice within the right group, which is the mean of 1/size.
    records
        The number of linked records.
    interval
        The 95 % interval of the share if the records are a sample; None if all were linked.
    """

    share: float
    chance: float
    records: int
    interval: tuple[float, float] | None = None

    name: ClassVar[str] = "linked"
    means: ClassVar[str] = (
        "An intruder who has the original values of masked and unchanged columns and links every released record to "
        "the nearest of them is right this often; random choice within a group is right as often as the chance figure "
        "shows."
    )
    limits: ClassVar[str] = (
        "It does not cover an intruder who knows sensitive columns, weights or units, and it does not mean that the "
        "other records cannot be found in another way."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        text = f"{100 * self.share:.1f} % linked correctly, chance {100 * self.chance:.1f} %"
        if self.interval is None:
            return text
        low, high = self.interval
        return f"{text} (sample of {self.records:,}; 95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


def cells_of(X: Floats, strata: Ints) -> list[tuple[Ints, Ints]]:
    """Split the records by stratum and missing columns; return the records and present columns of each part.

    An intruder sees the stratum and the missing columns and links only within a part. Unchanged columns that an
    intruder knows also count as strata.

    Examples
    --------
    >>> [rows.tolist() for rows, _ in cells_of(np.array([[1.0], [np.nan], [2.0]]), np.array([0, 0, 0]))]
    [[0, 2], [1]]
    """
    return split_cells(X, identical_records(list(np.isnan(X).T), strata))


def linkage(
    X: Floats,
    Y: Floats,
    groups: Ints,
    cells: list[tuple[Ints, Ints]],
    embedding: Embedding | None = None,
    *,
    placed: tuple[Floats, Floats] | None = None,
    seed: int = 0,
    sample: int | None = None,
) -> Linkage:
    """Link each released record to the nearest original by Euclidean distance of coordinates, with a kd-tree.

    Records that are identical in Y and share their stratum have the same number in `groups`; `cells` comes from
    `cells_of`. Without an embedding, all columns are numeric; `placed` contains the coordinates of the records before
    and after, if already computed. By default, all records of a table of up to 20,000 are linked; of a larger table, a
    sample of 10,000.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> groups = np.array([0, 0, 1, 1])
    >>> linkage(X, np.array([[0.4], [0.4], [7.0], [7.0]]), groups, cells_of(X, groups)).share
    0.5
    """
    from scipy.spatial import cKDTree

    n = len(X)
    if sample is None:
        sample = n if n <= LINKED_RECORDS else LINKED_SAMPLE
    sampled = np.ones(n, dtype=np.bool_)
    if sample < n:
        sampled[:] = False
        sampled[np.random.default_rng(seed).choice(n, sample, replace=False)] = True
    Z, W = placed or place(X, Y, embedding)
    right = 0.0
    for rows in _by_size([rows for rows, _ in cells if len(rows) <= FEW]):
        right += _linked_among_few(Z, W, rows, sampled)
    for rows, _ in cells:
        if len(rows) <= FEW:
            continue
        linked = rows[sampled[rows]]
        if not len(linked):
            continue
        present = np.flatnonzero(~np.isnan(Z[rows[0]]))
        if not len(present):
            right += len(linked) / len(rows)
            continue
        originals = np.ascontiguousarray(Z[np.ix_(rows, present)])
        tree = cKDTree(originals)
        # All records of a group have the same query, so it is answered once.
        _, first, question = np.unique(groups[linked], return_index=True, return_inverse=True)
        points = W[np.ix_(linked[first], present)]
        workers = -1 if len(points) > WORTH_THREADS else 1
        distance, _ = tree.query(points, workers=workers)
        nearest = tree.query_ball_point(points, distance * (1 + 1e-9) + 1e-12, return_length=True, workers=workers)
        own_distance = np.sqrt(np.square(Z[np.ix_(linked, present)] - W[np.ix_(linked, present)]).sum(axis=1))
        hit = own_distance <= distance[question] * (1 + 1e-9) + 1e-12
        right += float((hit / nearest[question]).sum())
    share = right / sample
    chance = float((1 / group_sizes(groups)[groups[sampled]]).mean())
    return Linkage(share, chance, sample, wilson(share, sample) if sample < n else None)


def _by_size(cells: list[Ints]) -> list[Ints]:
    """Stack cells with the same number of records into one array per size, with one row per cell."""
    sizes = np.array([len(rows) for rows in cells])
    return [np.stack([cells[i] for i in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]


def _linked_among_few(Z: Floats, W: Floats, cells: Ints, sampled: Bools) -> float:
    """Return the number of sampled records in small cells linked to their originals; a tie of m counts as 1/m."""
    cell, column = np.nonzero(sampled[cells])
    records, candidates = cells[cell, column], cells[cell]
    # A column missing in a cell adds no distance.
    squares = np.nan_to_num(np.square(Z[candidates] - W[records][:, None]))
    distances = np.sqrt(squares.sum(axis=2))
    near = distances <= distances.min(axis=1, keepdims=True) * (1 + 1e-9) + 1e-12
    return float((near[np.arange(len(cell)), column] / near.sum(axis=1)).sum())


def place(X: Floats, Y: Floats, embedding: Embedding | None) -> tuple[Floats, Floats]:
    """Return the coordinates of the records before and after masking; without an embedding, all columns are numeric."""
    scale, embedding = scaling(X), embedding or Embedding.of_numbers(X.shape[1])
    return embedding.apply(X, scale), embedding.apply(Y, scale)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share.

    Examples
    --------
    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    z = 1.959963984540054
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
