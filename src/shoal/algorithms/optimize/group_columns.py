"""Columns of the linear programme, one per group: two arrays hold the members of all groups, a third holds the SSEs.

The column pool holds the groups that a search has seen, as candidates for the set-partitioning problem. It is a
fixed-size table addressed by a hash of the members, the exclusive or of one random word per record (Zobrist 1970). A
repeated group is not stored again; a different group at the same position replaces the old group. Adding a group takes
time in proportion to its size, and memory is constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.optimize.random import Word
from shoal.core.compiler import kernel
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["ColumnPool", "GroupColumns", "add_column", "columns_in", "groups_in", "new_column_pool", "places_of"]


def groups_in(labels: Ints) -> list[Ints]:
    """Return the records of each group, in ascending order.

    Examples
    --------
    >>> [group.tolist() for group in groups_in(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(group_sizes(labels))[:-1])


def places_of(start: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Return the new starts of the selected parts ``start[j]:start[j + 1]``, and the positions of their elements.

    Examples
    --------
    >>> [indices.tolist() for indices in places_of(np.array([0, 2, 5, 6]), np.array([1, 2]))]
    [[0, 3, 4], [2, 3, 4, 5]]
    """
    sizes = np.diff(start)[which]
    starts = np.zeros(len(which) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts, np.repeat(start[which] - starts[:-1], sizes) + np.arange(starts[-1])


@dataclass(frozen=True)
class GroupColumns:
    """A list of groups with their SSEs; column j holds the records ``member[start[j]:start[j + 1]]``, in order.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [9.0], [9.0]])
    >>> GroupColumns.of(X, [np.array([0, 1]), np.array([2, 3])]).cost.tolist()
    [2.0, 0.0]
    """

    start: Ints
    member: Ints
    cost: Floats

    @classmethod
    def of(cls, X: Floats, groups: Iterable[Ints]) -> GroupColumns:
        """Collect groups (sorted arrays of records) and compute their SSEs from pair distances."""
        collected = list(groups)
        start = np.zeros(len(collected) + 1, dtype=np.int64)
        np.cumsum([len(group) for group in collected], out=start[1:])
        member = np.concatenate(collected) if collected else np.empty(0, dtype=np.int64)
        return cls(start, member, _costs(X, start, member))

    @classmethod
    def of_rows(cls, X: Floats, groups: Ints) -> GroupColumns:
        """Collect groups of equal size, one per row, and compute their SSEs.

        Examples
        --------
        >>> GroupColumns.of_rows(np.array([[0.0], [2.0], [9.0], [9.0]]), np.array([[0, 1], [2, 3]])).cost.tolist()
        [2.0, 0.0]
        """
        start = np.arange(len(groups) + 1) * groups.shape[1]
        member = np.ascontiguousarray(groups).reshape(-1)
        return cls(start, member, _costs(X, start, member))

    def __len__(self) -> int:
        return len(self.cost)

    def __getitem__(self, j: int | np.integer[Any]) -> Ints:
        return self.member[self.start[j] : self.start[j + 1]]

    @property
    def sizes(self) -> Ints:
        """The number of records in each group."""
        return np.diff(self.start)

    @property
    def owner(self) -> Ints:
        """The group number of each entry of `member`."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def take(self, which: Ints) -> GroupColumns:
        """Return the columns with the given numbers."""
        start, at = places_of(self.start, which)
        return GroupColumns(start, self.member[at], self.cost[which])

    def join(self, following: GroupColumns) -> GroupColumns:
        """Return these columns followed by the columns `following`."""
        return GroupColumns(
            np.concatenate([self.start, following.start[1:] + self.start[-1]]),
            np.concatenate([self.member, following.member]),
            np.concatenate([self.cost, following.cost]),
        )

    def keys(self) -> list[bytes]:
        """Return a hashable key for each column."""
        return [self[j].tobytes() for j in range(len(self))]


@kernel
def _costs(X: Floats, start: Ints, member: Ints) -> Floats:
    d = X.shape[1]
    out = np.empty(len(start) - 1)
    for c in range(len(out)):
        total = 0.0
        for a in range(start[c], start[c + 1]):
            for b in range(start[c], a):
                for t in range(d):
                    delta = X[member[a], t] - X[member[b], t]
                    total += delta * delta
        out[c] = total / (start[c + 1] - start[c])
    return out


class ColumnPool(NamedTuple):
    """A pool of up to `len(size)` groups of up to `members.shape[1]` records."""

    key: Word  # a random word per record
    hashes: Word  # the hash of the group at each position
    members: NDArray[np.int32]
    size: Ints  # the size of the group at each position, 0 if it is empty


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
    """Return the stored groups in the order of their hash positions, each with its records sorted."""
    used = np.flatnonzero(column_pool.size)
    return [np.sort(column_pool.members[place, : column_pool.size[place]].astype(np.int64)) for place in used]
