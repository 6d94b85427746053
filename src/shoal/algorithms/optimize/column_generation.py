"""Column generation: solve the linear relaxation over all groups, and add cuts that close most of its gap.

The master problem (`optimize.master`) is solved over the groups generated so far. Groups of negative reduced cost are
taken from the groups seen by the search, then from a heuristic, and finally from enumeration (`optimize.pricing`).
Enumeration also turns the duals into a proven bound (`optimize.lower_bounds`). When no such group remains, cuts that
the fractional solution violates are added (`optimize.separation`), and the loop continues.

The first columns come from a first-order method over near records (`sparse.near_generation`), whose multipliers also
prove a first bound. Starting from the incumbent alone, the simplex method would take tens of times as long, especially
where groups are large and the master problem is degenerate.

Each round costs one linear programme, O(n² k) for the heuristic, and O(n) per prefix of the enumeration. Memory is
O(n²).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, Decision, no_cuts, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.heuristic_pricing import guess_groups
from shoal.algorithms.optimize.lower_bounds import Bound, lower_bound, sizes_that_matter
from shoal.algorithms.optimize.master import Master, RelaxationSolution
from shoal.algorithms.optimize.pricing import distances, pair_weights
from shoal.algorithms.optimize.separation import violated_cuts
from shoal.algorithms.optimize.sparse.near_generation import NearGeneration
from shoal.algorithms.optimize.sparse.near_table import make_near
from shoal.algorithms.optimize.sparse.repair import Effort
from shoal.core.measures import Partition, partition_of
from shoal.core.progress import STOP, publish
from shoal.core.types import Floats, Ints, State

__all__ = ["ColumnGeneration", "GenerationLimits"]

# Maximum k and maximum number of records for which the simplex method needs no first-order start.
_SMALL, _FEW = 4, 400
# Rounds of guessing and of listing in the first-order method, each with the iterations per round; then the number of
# final iterations.
_GUESSES, _LISTS = (30, 150), (2, 600)
_LAST = 1000
# Maximum k for listing; for a larger k there are too many groups.
_LISTED = 5
# Shares of the first-order multipliers that are tried for the first bound.
_SHARES = (0.5, 0.9, 1.0)
# Columns per record in the first master problem.
_KEEP = 6
# Maximum number of linear programmes for one relaxation; a few dozen are common.
_PRICINGS = 2000


@dataclass(frozen=True)
class GenerationLimits:
    """The limits of column generation."""

    gap: float = 1e-7  # stop when bound and incumbent are this close, relative to the incumbent
    rounds: int = 60  # maximum number of rounds of cuts
    deadline: float = np.inf  # the `time.monotonic` value at which to stop
    # Maximum numbers of groups and of prefixes in one enumeration.
    room: int = 200_000
    max_visits: int = 30_000_000
    exact: bool = True  # if false, price only seen and guessed groups, without enumeration and bound


@dataclass
class ColumnGeneration:
    """The state of column generation for one table; calling `run` again continues from it."""

    X: Floats
    k: int
    partition: Partition  # the best partition so far
    candidates: GroupColumns  # groups that the search has seen
    incumbent: int  # the number of leading candidates that form the initial partition
    state: State
    limits: GenerationLimits
    best: Bound | None = None
    latest: RelaxationSolution | None = None  # the last solution of the master problem

    def __post_init__(self) -> None:
        self.n = len(self.X)
        self.D = distances(self.X)
        self.W = np.empty_like(self.D)
        first = np.arange(self.incumbent)
        self.master = self._over(self.candidates.take(first))
        self.known = set(self.master.columns.keys())
        self.taken = np.zeros(len(self.candidates), dtype=bool)
        self.taken[first] = True
        # Reduced costs below a tiny fraction of one record's share of the SSE are ignored.
        self.noise = 1e-7 * self.upper / self.n

    @property
    def upper(self) -> float:
        """The SSE of the best partition."""
        return self.partition.loss

    @property
    def bound(self) -> float:
        """The best proven bound so far, or 0 if there is none."""
        return self.best.value if self.best else 0.0

    @property
    def value(self) -> float:
        """The objective value of the last solution of the master problem."""
        return self.latest.value if self.latest else np.inf

    def over(self) -> bool:
        """Return True if time is up or a stop was requested."""
        return bool(self.state[STOP]) or time.monotonic() >= self.limits.deadline

    def closed(self) -> bool:
        """Return True if bound and incumbent agree within the gap limit."""
        return self.upper - self.bound <= self.limits.gap * self.upper

    def offer(self, labels: Ints | None) -> None:
        """Store a partition if it loses less than the best partition so far."""
        partition = None if labels is None else partition_of(self.X, labels)
        if partition is not None and partition.loss < self.upper:
            self.partition = partition
            publish(self.state, sse=partition.loss)

    def run(self) -> None:
        """Solve the relaxation, then add cuts and solve again, until the gap is closed or a limit is reached."""
        if self.latest is None:
            self._begin()
        weak = 0
        for turn in range(self.limits.rounds + 1):
            last = self.value
            answer = self.relax(2e-6)
            if answer is None or self.closed():
                return
            weak = weak + 1 if self.value - last < 2e-6 * self.value else 0
            if weak == 4 or turn == self.limits.rounds or not self.separate(answer):
                return

    def separate(self, answer: RelaxationSolution) -> bool:
        """Replace unpriced cuts by new cuts that the solution violates; return True if there are new cuts."""
        master = self.master
        master.drop(np.flatnonzero((answer.cuts.price <= self.noise) & (answer.cuts.decided < 0)))
        x = np.concatenate([answer.x, np.zeros(len(master.columns) - len(answer.x))])
        violated = violated_cuts(master.columns, x, self.n, threshold=0.02, limit=60, each=3, state=self.state)
        existing = set(master.cuts.each())
        violated = Cuts.of([cut for cut in violated.each() if cut not in existing])
        master.cut(violated)
        return len(violated) > 0

    def _over(self, columns: GroupColumns) -> Master:
        """Return the master problem over the given columns."""
        # In units of one record's share of the SSE, the solver's tolerance equals `noise`.
        unit = self.upper / self.n
        return Master(self.n, columns, no_cuts(), self.over, unit=unit, deadline=self.limits.deadline)

    def _begin(self) -> None:
        """Add the columns of a first-order solution of the relaxation, and prove the bound of its multipliers."""
        if self.k <= _SMALL and self.n <= _FEW:
            return
        table = make_near(self.X, self.k, self.state)
        if table is None or len(table) <= self.k or self.over():
            return
        first = NearGeneration(table, self.k, self.partition.labels[table.ids], Effort(self.state))
        first.relax(*_GUESSES, self.over)
        for _ in range(_LISTS[0] if self.limits.exact and self.k <= _LISTED else 0):
            first.solve(_LISTS[1])
            if self.over() or first.repair(1.0) is None:
                break
        first.solve(_LAST)
        duals = np.zeros(self.n)
        duals[table.ids] = first.duals
        groups = np.sort(table.ids[first.columns.member].reshape(-1, self.k), axis=1)
        cheapest = np.sort(np.argsort(first.rest(), kind="stable")[: _KEEP * self.n])
        columns = GroupColumns.of_rows(self.X, groups[cheapest])
        keys = columns.keys()
        fresh = np.array([j for j, key in enumerate(keys) if key not in self.known], dtype=np.int64)
        self.known.update(keys[j] for j in fresh)
        self.master = self._over(self.master.columns.join(columns.take(fresh)))
        # Prove an early bound in case later proofs fail: with a smaller share, fewer groups must be listed.
        floor = np.zeros(self.n)
        floor[table.ids] = table.floor
        for share in _SHARES if self.limits.exact else ():
            if self.over() or self._prove(share * duals + (1 - share) * floor, no_cuts()) is None:
                break

    def decide(self, decisions: Sequence[Decision], penalty: float) -> None:
        """Impose decisions about pairs of records, with a `penalty` for breaking them; discard bound and solution."""
        master = self.master
        if self.latest is not None and len(master.columns) > 4 * _KEEP * self.n:
            self._put_aside(master.keep(self._nearest(self.latest.duals, self.latest.cuts)))
        master.decide(decisions, penalty)
        self.best = self.latest = None

    def _nearest(self, duals: Floats, cuts: Cuts) -> Ints:
        """Return the numbers of the columns with the smallest reduced costs."""
        rest = reduced_costs(self.master.columns, duals, cuts)
        # Keep the initial partition: without a complete partition, the problem may be infeasible.
        rest[: self.incumbent] = -np.inf
        return np.sort(np.argsort(rest, kind="stable")[: _KEEP * self.n])

    def _put_aside(self, columns: GroupColumns) -> None:
        """Move columns removed from the master problem back to the candidates."""
        self.known.difference_update(columns.keys())
        self.candidates = self.candidates.join(columns)
        self.taken = np.concatenate([self.taken, np.zeros(len(columns), dtype=bool)])

    def relax(self, accuracy: float) -> RelaxationSolution | None:
        """Price until value and bound agree to a relative accuracy; return None if time or rounds run out."""
        for _ in range(_PRICINGS):
            answer = self.master.solve()
            if answer is None:
                # If time is up, the last duals may still prove a bound.
                if self.latest is not None and self.limits.exact and not self.state[STOP]:
                    self._prove(self.latest.duals, self.latest.cuts)
                return None
            self.latest = answer
            fresh, short = self._price(answer)
            gap = short
            if fresh <= self.n // 40 and self.limits.exact:
                exact = self._price_exactly(answer)
                if exact is None and not fresh:
                    return None
                if exact is not None:
                    fresh, gap = fresh + exact, self.value - self.bound
                if self.closed():
                    return answer
            if gap <= accuracy * self.value or fresh <= (0 if self.limits.exact else self.n // 40):
                return answer
        return None

    def _price_exactly(self, answer: RelaxationSolution) -> int | None:
        """Prove a bound and add groups that violate the duals; return their number, or None if there are too many."""
        bound = self._prove(answer.duals, answer.cuts)
        if bound is None:
            return None
        rest = reduced_costs(bound.columns, answer.duals, answer.cuts)
        return self._add(bound.columns.take(np.argsort(rest, kind="stable")[:2000]), answer.duals, answer.cuts)

    def _price(self, answer: RelaxationSolution) -> tuple[int, float]:
        """Add seen or guessed columns of negative reduced cost; return their number and the duals' total violation."""
        short = np.zeros(self.n)
        fresh = self._from_seen(answer.duals, answer.cuts, short)
        fresh += self._from_guesses(answer.duals, answer.cuts, short)
        return fresh, float(short.sum())

    def _prove(self, duals: Floats, cuts: Cuts) -> Bound | None:
        bound = lower_bound(
            self.X,
            self.D,
            self.k,
            duals,
            cuts.paying(self.noise),
            room=self.limits.room,
            max_visits=self.limits.max_visits,
            state=self.state,
        )
        if bound is not None and bound.value > self.bound:
            self.best = bound
            if not (cuts.decided >= 0).any():
                publish(self.state, bound=bound.value)
        return bound

    def _from_seen(self, duals: Floats, cuts: Cuts, short: Floats) -> int:
        rest = reduced_costs(self.candidates, duals, cuts)
        rest[self.taken] = 0.0
        order = np.argsort(rest, kind="stable")[: 3 * self.n]
        order = order[rest[order] < -self.noise]
        self.taken[order] = True
        return self._add(self.candidates.take(order), duals, cuts, short)

    def _from_guesses(self, duals: Floats, cuts: Cuts, short: Floats) -> int:
        added = 0
        for size in sizes_that_matter(self.n, self.k, cuts)[:3]:
            pair_weights(self.D, self.X.shape[1], duals, cuts, size, self.W)
            groups = np.unique(np.sort(guess_groups(self.W, size, -size * self.noise, self.state), axis=1), axis=0)
            added += self._add(GroupColumns.of(self.X, groups), duals, cuts, short)
        return added

    def _add(self, columns: GroupColumns, duals: Floats, cuts: Cuts, short: Floats | None = None) -> int:
        """Add the new columns of negative reduced cost and return their number.

        `short` receives the amount by which the dual of each record is too large.
        """
        keys = columns.keys()
        rest = reduced_costs(columns, duals, cuts)
        if short is not None:
            np.maximum.at(short, columns.member, np.repeat(-rest / columns.sizes, columns.sizes))
        fresh = [j for j, key in enumerate(keys) if key not in self.known and rest[j] < -self.noise]
        self.known.update(keys[j] for j in fresh)
        self.master.add(columns.take(np.array(fresh, dtype=np.int64)))
        return len(fresh)
