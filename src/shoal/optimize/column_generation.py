"""Column generation with cuts: the linear relaxation over all groups, its duals, and groups worth choosing from.

J. Castro, C. Gentile and E. Spagnolo-Arrizabalaga, An algorithm for the microaggregation problem using column
generation, Computers & Operations Research 144 (2022); D. Aloise, P. Hansen, C. Rocha and É. Santi, Column generation
bounds for numerical microaggregation, Journal of Global Optimization 60 (2014). The master problem is solved over the
groups known so far; groups of negative reduced cost are looked for among those that the search has seen, then by a
heuristic, then by enumeration (`shoal.optimize.pricing`). When there is none, subset-row cuts that the fractional
solution violates are added (`shoal.optimize.separation`) and it goes on.

Duals are smoothed (Wentges 1997): groups are priced at a mixture of the duals of the best bound and those of the
master, since the latter jump about. Whenever the enumeration is complete, `shoal.optimize.bounds` turns whatever
duals there are into a proven bound.

Each round costs one linear programme of n + cuts rows, O(n² k) for the heuristic and O(n) for each prefix of the
enumeration. Memory O(n²).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from shoal.optimize.bounds import Bound, lower_bound, sizes_that_matter
from shoal.optimize.columns import Columns, Cuts, no_cuts, reduced_costs
from shoal.optimize.dual_ascent import ascend, first_duals
from shoal.optimize.master import Master
from shoal.optimize.pricing import distances, guess_groups, pair_weights
from shoal.optimize.separation import violated_triples
from shoal.progress import STOP, publish
from shoal.types import Floats, Ints, State

__all__ = ["ColumnGeneration", "Limits"]

# Above this size the master problem is so degenerate that column generation stalls, and to price cuts would mean to
# enumerate groups of up to 2k−1 records: the duals are found by ascent instead.
_SMALL = 6
# Ascents, each followed by a proof that teaches the next what it missed.
_CLIMBS = 40
# Rounds of heuristic pricing before groups are recombined: a few bring nearly all the gain.
_GUESSES = 8


@dataclass(frozen=True)
class Limits:
    """How far column generation goes.

    Parameters
    ----------
    gap
        Stop when bound and incumbent are this close, relative to the incumbent.
    rounds
        Rounds of cuts.
    deadline
        The `time.monotonic` at which to stop.
    room, most
        Limits of one enumeration: groups and prefixes.
    """

    gap: float = 1e-7
    rounds: int = 60
    deadline: float = np.inf
    room: int = 200_000
    most: int = 30_000_000


@dataclass
class ColumnGeneration:
    """The state of column generation for one table; `run` may be called again to go on."""

    X: Floats
    k: int
    upper: float
    columns: Columns  # what the search has seen
    incumbent: int  # so many of them, the first, are a partition
    state: State
    limits: Limits
    best: Bound | None = None
    value: float = np.inf

    def __post_init__(self) -> None:
        self.n = len(self.X)
        self.D = distances(self.X)
        self.W = np.empty_like(self.D)
        first = np.arange(self.incumbent)
        self.large = self.k > _SMALL
        self.master = Master(
            self.n, self.columns.take(first), upper=self.upper, method="ipm" if self.large else "simplex"
        )
        self.known = set(self.master.columns.keys())
        self.taken = np.zeros(len(self.columns), dtype=bool)
        self.taken[first] = True
        # Reduced costs matter in relation to the share of one record.
        self.noise = 1e-7 * self.upper / self.n

    @property
    def bound(self) -> float:
        """The best proven bound so far; 0 without one."""
        return self.best.value if self.best else 0.0

    def over(self) -> bool:
        """Whether time is up or a stop was asked for."""
        return bool(self.state[STOP]) or time.monotonic() >= self.limits.deadline

    def closed(self) -> bool:
        """Whether bound and incumbent agree."""
        return self.upper - self.bound <= self.limits.gap * self.upper

    def run(self) -> None:
        """Solve the relaxation, then add cuts and solve again, until the gap is closed or a limit is reached."""
        # A bound early, whatever becomes of the rest, and a centre for the smoothing.
        self._climb(_CLIMBS if self.large else 2)
        if self.large:
            return
        last = -np.inf
        for cut_round in range(self.limits.rounds + 1):
            answer = self.relax(1e-3 if cut_round == 0 else 0.05)
            if answer is None or self.closed():
                return
            x, cuts = answer
            gained = self.value - last
            last = self.value
            if cut_round == self.limits.rounds or gained < 0.002 * (self.upper - self.value):
                break
            self._forget_cuts(cuts)
            triples = self._fresh(
                violated_triples(self.master.columns, x, self.n, least=1e-3, most=self.n // 4, each=4)
            )
            if not len(triples):
                break
            self.master.cut(triples)
        self.relax(1e-3)

    def _climb(self, turns: int) -> None:
        """Ascend in the duals and prove what they are worth; for large groups instead of the master problem."""
        duals = first_duals(self.X, self._incumbent_labels())
        known = np.empty((0, self.k), dtype=np.int64)
        began = time.monotonic()
        for turn in range(turns):
            if self.over() or self.closed():
                return
            # The proof that follows needs time too, and so does column generation where it is worth it.
            if self.large:
                until = time.monotonic() + 0.7 * (self.limits.deadline - time.monotonic())
            else:
                until = began + 0.1 * (turn + 1) * (self.limits.deadline - began)
            duals = ascend(self.X, self.D, self.k, duals, self.upper, known, steps=100, until=until, over=self.over)
            before = self.bound
            bound = self._prove(duals, no_cuts())
            if bound is None or (turn > 2 and self.bound - before < 1e-3 * (self.upper - self.bound)):
                return
            # What the heuristic missed is known from now on.
            known = np.vstack([known, bound.columns.member.reshape(-1, self.k)])[-30 * self.n :]
            if self.best is not None:
                duals = self.best.duals

    def _incumbent_labels(self) -> Ints:
        labels = np.empty(self.n, dtype=np.int64)
        for g in range(self.incumbent):
            labels[self.columns[g]] = g
        return labels

    def relax(self, share: float) -> tuple[Floats, Cuts] | None:
        """Price until value and bound of the relaxation differ by less than a share of the gap; None out of time."""
        mix = 0.5
        while True:
            answer = self.master.solve(self.limits.deadline - time.monotonic())
            if answer is None or self.over():
                return None
            self.value, duals, cuts, x = answer
            if self._from_seen(duals, cuts) >= 50:
                continue
            centre = duals
            if self.best is not None and mix > 0:
                centre = mix * self.best.duals + (1 - mix) * duals
            if self._from_guesses(centre, cuts) >= 20:
                continue
            bound = self._prove(centre, cuts)
            fresh = 0
            if bound is not None:
                rest = reduced_costs(bound.columns, centre, cuts)
                worst = bound.columns.take(np.argsort(rest, kind="stable")[:2000])
                fresh = self._add(worst, duals, cuts)
            close = self.value - self.bound <= max(1e-6 * self.value, share * (self.upper - self.value))
            if close or (not fresh and mix == 0):
                return x, cuts
            if not fresh:
                mix = 0.0

    def relax_seen(self) -> Floats | None:
        """Solve the relaxation over the groups seen, and some guessed; return the duals, None out of time."""
        for guesses in range(_GUESSES + 1):
            answer = self.master.solve(self.limits.deadline - time.monotonic())
            if answer is None:
                return None
            self.value, duals, cuts, _ = answer
            while self._from_seen(duals, cuts):
                answer = self.master.solve(self.limits.deadline - time.monotonic())
                if answer is None:
                    return None
                self.value, duals, cuts, _ = answer
            if guesses == _GUESSES or self._from_guesses(duals, cuts) <= self.n // 20:
                break
        return duals

    def _prove(self, duals: Floats, cuts: Cuts) -> Bound | None:
        active = Cuts(cuts.triple[cuts.price > 0], cuts.price[cuts.price > 0])
        bound = lower_bound(
            self.X,
            self.D,
            self.k,
            duals,
            active,
            room=self.limits.room,
            most=self.limits.most,
            state=self.state,
        )
        if bound is not None and bound.value > self.bound:
            self.best = bound
            publish(self.state, bound=bound.value)
        return bound

    def _from_seen(self, duals: Floats, cuts: Cuts) -> int:
        rest = reduced_costs(self.columns, duals, cuts)
        rest[self.taken] = 0.0
        order = np.argsort(rest, kind="stable")[:1000]
        order = order[rest[order] < -self.noise]
        self.taken[order] = True
        return self._add(self.columns.take(order), duals, cuts)

    def _from_guesses(self, centre: Floats, cuts: Cuts) -> int:
        added = 0
        for size in sizes_that_matter(self.n, self.k, cuts)[:3]:
            pair_weights(self.D, self.X.shape[1], centre, cuts.triple, cuts.price, size, self.W)
            groups = np.unique(np.sort(guess_groups(self.W, size, -size * self.noise), axis=1), axis=0)
            added += self._add(Columns.of(self.X, groups), centre, cuts)
        return added

    def _add(self, columns: Columns, duals: Floats, cuts: Cuts) -> int:
        """Add the columns that are new and have a negative reduced cost to the master."""
        keys = columns.keys()
        rest = reduced_costs(columns, duals, cuts)
        fresh = [j for j, key in enumerate(keys) if key not in self.known and rest[j] < -self.noise]
        self.known.update(keys[j] for j in fresh)
        self.master.add(columns.take(np.array(fresh, dtype=np.int64)))
        return len(fresh)

    def _fresh(self, triples: Ints) -> Ints:
        have = set(map(tuple, self.master.triples.tolist()))
        return np.array([t for t in triples.tolist() if tuple(t) not in have], dtype=np.int64).reshape(-1, 3)

    def _forget_cuts(self, cuts: Cuts) -> None:
        idle = np.flatnonzero(cuts.price <= 1e-9 * self.upper)
        if len(idle):
            self.master.drop_cuts(idle)
