"""A prover for tables of any size, which returns a lower bound and a certificate of this bound.

`bound_from` serves every method that needs a bound. It immediately proves a first bound from the distances to the
nearest neighbours. The linear relaxation, and then cuts, raise this bound. The best bound is stored after each round,
so the proof can stop at any time. Without a time limit, only the number of rounds is limited, so the result is the same
on every machine and for any number of threads. Memory is O(n (d + k)).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shoal.algorithms.optimize.certificate import Certificate
from shoal.algorithms.optimize.cuts import Cuts, no_cuts
from shoal.algorithms.optimize.proof import ProofResult
from shoal.algorithms.optimize.relaxation_rounding import round_generation
from shoal.algorithms.optimize.set_partitioning import Regions, recombine_regions
from shoal.algorithms.optimize.sparse.near_generation import NearGeneration
from shoal.algorithms.optimize.sparse.near_table import NearTable, make_near
from shoal.algorithms.optimize.sparse.repair import Effort
from shoal.core.measures import Partition, partition_of
from shoal.core.progress import STOP, publish, within
from shoal.core.types import Floats, Ints, State

__all__ = ["Rounds", "bound_from"]

# A gap of at most this share of the partition's SSE counts as closed.
_EQUAL = 1e-9
# A check proves slightly less than the repaired multipliers because of rounding; this factor includes some margin.
_ROUNDINGS = 4.0
# Shares of the multipliers to combine with feasible duals; for k up to _FEW_RECORDS, the last share is tried first.
_MIXES = (0.5, 0.8, 0.9, 0.95, 1.0)
_FEW_RECORDS = 5
# Rounds end when each of _IDLE consecutive rounds raises the bound by at most the share _LITTLE.
_LITTLE, _IDLE = 5e-5, 2
# With a time limit, cuts get _LONGER times as many rounds, and the partition is improved in at most _TURNS turns.
_LONGER, _TURNS = 3, 40
# The smallest violation of a cut worth adding.
_LEAST = 0.02
_REGIONS = Regions(records=600, choices=6, nodes=5, seconds=3.0)


@dataclass(frozen=True)
class Rounds:
    """The maximum numbers of rounds and steps of the prover."""

    # Maximum number of rounds of each kind.
    guesses: int = 30
    exact: int = 4
    cuts: int = 8
    # Maximum number of attempts to improve the partition by recombining groups (`optimize.set_partitioning`).
    turns: int = 2
    # Number of first-order steps in a round of each kind.
    steps: int = 150
    exact_steps: int = 600
    cut_steps: int = 400


def bound_from(
    X: Floats,
    k: int,
    labels: Ints,
    *,
    state: State,
    seconds: float | None = None,
    rounds: Rounds | None = None,
    threads: int = 1,
    table: NearTable | None = None,
) -> ProofResult:
    """Prove a lower bound on the SSE of every partition, and use the proof to improve the given partition.

    The bound is compared with the partition `labels` but does not rely on it. If a stop is requested or `seconds` have
    passed, return the best bound so far, labels that lose no more than `labels`, and a certificate
    (`shoal.verify_bound`). The result does not depend on the number of threads. `table` is the table that `make_near`
    returned, if available.
    """
    rounds, partition = rounds or Rounds(), partition_of(X, labels)
    with within(state, seconds, 0) as limited:
        run = _Proof(X, k, partition, Effort(limited, threads=threads), seconds)
        if partition.loss > 0.0 and run.begin(table):
            run.relax(rounds)
            run.cut(rounds)
            run.improve(rounds)
    bound = min(run.bound, run.upper)
    if run.upper - bound <= _EQUAL * run.upper:
        return ProofResult(run.partition.labels, bound, "optimal", run.certificate(), run.facts())
    rounded = run.rounded(state) if rounds.turns else None
    return ProofResult(run.partition.labels, bound, "bounded", run.certificate(), run.facts(), rounded)


class _Proof:
    """The state of a proof: the best bound so far, and the multipliers and groups needed to raise it."""

    def __init__(self, X: Floats, k: int, partition: Partition, effort: Effort, seconds: float | None) -> None:
        self.X, self.k, self.partition, self.effort = X, k, partition, effort
        self.began, self.seconds = time.monotonic(), seconds
        self.duals, self.cuts, self.bound = np.zeros(len(X)), no_cuts(), 0.0
        # For small k, listing is fast, so start with the full multipliers; for large k, start with a small share.
        self.mix = len(_MIXES) - 1 if k <= _FEW_RECORDS else 0

    @property
    def upper(self) -> float:
        """The SSE of the best partition."""
        return self.partition.loss

    def over(self, ahead: float = 0.0) -> bool:
        """Return True if a stop is requested, at most `ahead` seconds remain, or the gap is closed."""
        done = self.upper - self.bound <= _EQUAL * self.upper
        late = self.seconds is not None and time.monotonic() + ahead >= self.began + self.seconds
        return bool(self.effort.state[STOP]) or late or done

    def begin(self, table: NearTable | None) -> bool:
        """Build the tree and prove a bound from the distances to neighbours; return True if the proof can continue."""
        table = table or make_near(self.X, self.k, self.effort.state)
        if table is None:
            return False
        self.table = table
        self._keep(table.floor, no_cuts())
        return not self.over() and len(table) > self.k

    def _keep(self, duals: Floats, cuts: Cuts) -> None:
        """Store feasible multipliers if they prove more than the stored multipliers."""
        value = float(duals.sum() - cuts.worth.sum())
        # Subtract the rounding error that a check allows for; it grows with the absolute values of all terms.
        sizes = 2 * self.k - 1 if len(cuts) else self.k
        roundings = _ROUNDINGS * (self.X.shape[1] + sizes * sizes + 16) * 2.0**-52
        claim = value - roundings * float(np.abs(duals).sum() + cuts.worth.sum())
        if claim > self.bound:
            self.bound, self.cuts = claim, cuts
            self.duals = np.zeros(len(self.X))
            self.duals[self.table.ids] = duals
            publish(self.effort.state, bound=min(claim, self.upper))

    def _repair(self) -> bool:
        """Prove a bound with the largest possible share of the multipliers; return True on success.

        A share is possible if all groups that violate it can be listed.
        """
        tried = len(_MIXES)
        while self.mix >= 0 and not self.over():
            proven = self.generation.repair(_MIXES[self.mix])
            if proven is None:
                tried = self.mix
                self.mix -= 1
                continue
            self._keep(proven[0].duals, proven[1])
            if self.mix + 1 >= tried:
                return True
            self.mix += 1
        return False

    def relax(self, rounds: Rounds) -> None:
        """Solve the linear relaxation: guess groups while many are found, then list all missing groups."""
        generation = NearGeneration(self.table, self.k, self.partition.labels[self.table.ids], self.effort)
        self.generation = generation
        generation.relax(rounds.guesses, rounds.steps, self.over)
        self._rounds(rounds.exact, lambda: generation.solve(rounds.exact_steps))

    def cut(self, rounds: Rounds) -> None:
        """Add cuts while they raise the bound."""
        if not hasattr(self, "generation"):
            return
        generation = self.generation

        def tighten() -> None:
            generation.cut(_LEAST)
            generation.solve(rounds.cut_steps)
            if self._repair():
                generation.solve(rounds.cut_steps)

        longer = 1 if self.seconds is None else _LONGER
        self._rounds(longer * rounds.cuts, tighten, longer * _IDLE)

    def improve(self, rounds: Rounds) -> None:
        """Recombine the generated groups into better partitions, while that reduces the SSE."""
        if not self._whole():
            return
        generation, ids = self.generation, self.table.ids
        until = None if self.seconds is None else self.began + self.seconds
        for turn in range(rounds.turns if self.seconds is None else _TURNS):
            if self.over():
                return
            labels = np.empty(len(self.X), dtype=np.int64)
            labels[ids] = recombine_regions(
                self.table.rows, self.partition.labels[ids], generation.columns, generation.rest(), _REGIONS, (9, turn),
                until=until, state=self.effort.state,
            )  # fmt: skip
            partition = partition_of(self.X, labels)
            if partition.loss >= self.upper * (1 - 1e-6):
                return
            self.partition = partition
            publish(self.effort.state, sse=partition.loss)

    def _whole(self) -> bool:
        """Return True if groups were generated and the table contains all records, without leaving out copies."""
        return hasattr(self, "generation") and len(self.generation) > 0 and len(self.table) == len(self.X)

    def rounded(self, state: State) -> Ints | None:
        """Return a partition near the fractional solution, or None if rounding fails."""
        return round_generation(self.generation, len(self.X), state) if hasattr(self, "generation") else None

    def _rounds(self, count: int, work: Callable[[], None], patience: int = _IDLE) -> None:
        """Alternate work and proof until `patience` consecutive rounds add little or time is too short for a round."""
        idle, took = 0, 0.0
        for _ in range(count):
            before, began = self.bound, time.monotonic()
            if self.over(took):
                return
            work()
            if self.over() or not self._repair():
                return
            self.generation.prune()
            idle = idle + 1 if self.bound - before <= _LITTLE * self.bound else 0
            if idle == patience:
                return
            took = time.monotonic() - began

    def certificate(self) -> Certificate:
        """Return the certificate of the best bound, with the multipliers in the order of the given records."""
        cuts = self.cuts
        if len(cuts):
            member = self.table.ids[cuts.member]
            cuts = replace(cuts, member=member)
        return Certificate(self.k, self.duals, cuts, self.bound)

    def facts(self) -> dict[str, object]:
        return {"cuts": len(self.cuts)} if len(self.cuts) else {}
