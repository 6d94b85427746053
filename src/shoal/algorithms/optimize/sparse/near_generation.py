"""Column generation for tables of any size, over groups of near records.

`sparse.first_order` solves the master problem over the current groups. Groups of negative reduced cost are first
guessed from the neighbours of each record (`optimize.heuristic_pricing`). Later they are all listed (`sparse.repair`),
and each complete list proves a bound. Finally, cuts that the fractional solution violates are added
(`optimize.separation`). Memory is O(n), for a few dozen groups per record.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.optimize.cuts import Cuts, cut_entries, no_cuts, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.heuristic_pricing import guess_near
from shoal.algorithms.optimize.separation import violated_cuts
from shoal.algorithms.optimize.sparse.first_order import Iterate, Programme, solve, start_point
from shoal.algorithms.optimize.sparse.near_table import NearTable
from shoal.algorithms.optimize.sparse.repair import Effort, FeasibleDuals, repair
from shoal.core.measures import canonical_labels, centroids
from shoal.core.progress import spread
from shoal.core.types import Floats, Ints

__all__ = ["NearGeneration", "first_duals"]

# Number of records for which one thread guesses groups in one call.
_CHUNK = 8192
# Guessing ends after a round that finds fewer new groups per record than this.
_FEW = 0.02
# Maximum number of groups per record in the master problem.
_KEEP = 40
# Maximum increase of a dual in a repair, as a share of its scale: without cuts, and with cuts.
_OVER, _OVER_CUT = 0.01, 0.003


def first_duals(X: Floats, labels: Ints) -> Floats:
    """Distribute the SSE of each group over its records, half equally and half by squared distance to the centroid.

    Examples
    --------
    >>> first_duals(np.array([[0.0], [2.0], [4.0]]), np.zeros(3, dtype=np.int64)).round(6).tolist()
    [3.333333, 1.333333, 3.333333]
    """
    error = np.square(X - centroids(X, labels)[labels]).sum(axis=1)
    even = (np.bincount(labels, error) / np.bincount(labels))[labels]
    shared: Floats = 0.5 * error + 0.5 * even
    return shared


class NearGeneration:
    """A master problem over near records, with its groups and latest multipliers; records are positions of the table.

    `labels` is a partition of the positions, which sets the scales of the duals; `effort` limits each listing.
    """

    def __init__(self, table: NearTable, k: int, labels: Ints, effort: Effort) -> None:
        self.table, self.k, self.effort = table, k, effort
        n = len(table)
        self.duals = np.where(table.fixed, 0.0, first_duals(table.rows, canonical_labels(labels)))
        self.scale = self._scales()
        self.cuts = no_cuts()
        self.omega = 1.0
        # A group is identified by the sum of the random words of its records.
        self._word = np.random.default_rng(5).integers(0, 2**63, n, dtype=np.uint64)
        self.columns = GroupColumns.of_rows(table.rows, np.empty((0, k), dtype=np.int64))
        self.x = np.empty(0)
        self._keys = np.empty(0, dtype=np.uint64)
        for share in (0.0, 0.7, 1.0):
            self.guess(share * self.duals, np.inf)

    def _scales(self) -> Floats:
        """Return the scale of each dual: the average first guess at and around its record, at least the floor."""
        table = self.table
        around = self.duals[table.near[:, : self.k]].mean(axis=1)
        scale = np.maximum(0.5 * self.duals + 0.5 * around, table.floor)
        scale = np.maximum(scale, 1e-6 * scale.mean())
        return np.where(table.fixed, 0.0, scale)

    def __len__(self) -> int:
        return len(self.columns)

    def relax(self, rounds: int, steps: int, over: Callable[[], bool]) -> None:
        """Alternate between solving the master problem and guessing groups, until a round finds few new groups."""
        for _ in range(rounds):
            self.solve(steps)
            if over() or self.guess(self.duals, -1e-6) < _FEW * len(self.table):
                return

    def guess(self, duals: Floats, below: float) -> int:
        """Guess a group for every record, and add the groups that `add` accepts; return the number of new groups."""
        n, state = len(self.table), self.effort.state

        def part(a: int) -> Ints:
            end = min(a + _CHUNK, n)
            return guess_near(self.table.rows, self.table.near, duals, self.k, a, end, state)

        groups = np.concatenate(list(spread(part, range(0, n, _CHUNK), self.effort.threads)))
        return self.add(GroupColumns.of_rows(self.table.rows, np.sort(groups, axis=1)), duals, below)

    def add(self, groups: GroupColumns, duals: Floats, below: float) -> int:
        """Add new groups whose reduced cost is below `below` times the sum of their scales; return the number added."""
        if not len(groups):
            return 0
        at = groups.start[:-1]
        rest = groups.cost - np.add.reduceat(duals[groups.member], at)
        if np.isfinite(below):
            rest = rest - below * np.add.reduceat(self.scale[groups.member], at)
        return self._add(groups, rest < 0 if np.isfinite(below) else np.ones(len(groups), dtype=np.bool_))

    def _add(self, groups: GroupColumns, allowed: NDArray[np.bool_]) -> int:
        keys = np.add.reduceat(self._word[groups.member], groups.start[:-1])
        _, first = np.unique(keys, return_index=True)
        is_new = np.zeros(len(groups), dtype=np.bool_)
        is_new[first] = True
        added = np.flatnonzero(is_new & allowed & ~np.isin(keys, self._keys))
        self.columns = self.columns.join(groups.take(added))
        self.x = np.concatenate([self.x, np.zeros(len(added))])
        self._keys = np.concatenate([self._keys, keys[added]])
        return len(added)

    def _take(self, which: Ints) -> None:
        self.columns, self.x, self._keys = self.columns.take(which), self.x[which], self._keys[which]

    def prune(self) -> None:
        """Keep the groups in use and the groups with the smallest reduced costs."""
        room = _KEEP * len(self.table)
        if len(self) > room:
            rest = np.where(self.x > 0.0, -np.inf, self.rest() / self._weights())
            self._take(np.sort(np.argpartition(rest, room)[:room]))

    def rest(self) -> Floats:
        """Return the reduced costs of all groups of the master problem."""
        return reduced_costs(self.columns, self.duals, self.cuts)

    def _weights(self) -> Floats:
        weights = np.add.reduceat(self.scale[self.columns.member], self.columns.start[:-1]) / self.columns.sizes
        return np.maximum(weights, 1e-300)

    def solve(self, steps: int) -> None:
        """Run first-order steps towards the optimum of the master problem."""
        n, columns, cuts = len(self.table), self.columns, self.cuts
        # Sort the groups by their first records: the duals that they need are then in the processor's cache.
        self._take(np.argsort(columns.member[columns.start[:-1]], kind="stable"))
        columns = self.columns
        column, cut, times = cut_entries(columns, n, cuts)
        entry = np.zeros(len(columns) + 1, dtype=np.int64)
        np.cumsum(np.bincount(column, minlength=len(columns)), out=entry[1:])
        cut_scale = cuts.price
        if len(cuts):
            cut_scale = np.add.reduceat(self.scale[cuts.member], cuts.start[:-1]) / np.diff(cuts.start)
        programme = Programme(
            columns.start, columns.member.astype(np.int32), columns.cost, self._weights(), self.scale, entry, cut,
            times.astype(np.float64), cuts.right_sides.astype(np.float64), cut_scale,
        )  # fmt: skip
        point = start_point(programme, self.x, self.duals, cuts.price)
        to, mean, anchor = (Iterate(*(np.zeros_like(part) for part in point)) for _ in range(3))
        self.omega, self.error = solve(programme, point, to, mean, anchor, steps, self.omega, self.effort.state)
        self.x, self.duals = point.x, point.duals
        self.cuts = cuts.priced(np.where(point.prices > 1e-9 * cut_scale, point.prices, 0.0))

    def repair(self, mix: float) -> tuple[FeasibleDuals, Cuts] | None:
        """Prove a bound and add the listed groups that are missing; return the bound and its cuts.

        The share `mix` of the multipliers is combined with the feasible duals `NearTable.floor`. With a smaller share,
        fewer groups violate the multipliers, so listing takes less time. Return None if there are too many groups.
        """
        share = _OVER_CUT if len(self.cuts) else _OVER
        duals, cuts = mix * self.duals + (1.0 - mix) * self.table.floor, self.cuts.priced(mix * self.cuts.price)
        cuts = cuts.take(np.flatnonzero(cuts.price > 0.0))
        proven = repair(self.table, self.k, duals, cuts, share * self.scale, self.effort)
        if proven is None:
            return None
        if len(proven.groups):
            self._add(proven.groups, proven.rest < 0.0)
        return proven, cuts

    def cut(self, threshold: float) -> int:
        """Drop unpriced cuts, and add cuts that the fractional solution violates; return the number of new cuts."""
        n = len(self.table)
        self.cuts = self.cuts.take(np.flatnonzero(self.cuts.price > 0.0))
        violated = violated_cuts(
            self.columns, self.x, n, threshold=threshold, limit=n // 3, each=3, state=self.effort.state
        )
        if not len(violated):
            return 0
        free = np.add.reduceat(self.table.fixed[violated.member], violated.start[:-1]) == 0
        added = np.flatnonzero(free & ~np.isin(self._cut_keys(violated), self._cut_keys(self.cuts)))
        self.cuts = self.cuts.join(violated.take(added))
        return len(added)

    def _cut_keys(self, cuts: Cuts) -> NDArray[np.uint64]:
        """Return a number for each cut that identifies its records and weights."""
        if not len(cuts):
            return np.empty(0, dtype=np.uint64)
        words = self._word[cuts.member] * cuts.part.astype(np.uint64)
        return np.add.reduceat(words, cuts.start[:-1]) + cuts.denominator.astype(np.uint64)
