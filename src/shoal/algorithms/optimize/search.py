"""Search for the smallest information loss within a time limit, with a proven bound on request.

The search starts from MDAV and anneals by large-neighbourhood search (`optimize.large_neighbourhood`). It then solves a
set-partitioning problem over the seen groups (`optimize.set_partitioning`). On request, column generation with cuts
proves a bound (`optimize.proof`). The cost of a step does not depend on n. Memory is O(n (d + k)), or O(n²) for a proof
of up to `PAIRED` records; for larger tables, near records prove the bound (`sparse.prover`).

Tables of more than `REGION` records are searched in regions, on all cores, from the rounded solution of the linear
relaxation (`optimize.relaxation_rounding`). The result depends only on the seed and the number of steps; with a time
limit, the number of steps depends on the speed of the machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from shoal.algorithms.initial_partition import initial_labels, mdav_start, split_large
from shoal.algorithms.optimize.certificate import few_records
from shoal.algorithms.optimize.exchange import anneal_by_exchange
from shoal.algorithms.optimize.group_columns import ColumnPool, GroupColumns, columns_in, new_column_pool
from shoal.algorithms.optimize.large_neighbourhood import anneal, groups_of
from shoal.algorithms.optimize.proof import Incumbent, ProofResult, prove, recombine
from shoal.algorithms.optimize.random import seeded
from shoal.algorithms.optimize.regions import split_groups
from shoal.algorithms.optimize.relaxation_rounding import round_groups, round_relaxation
from shoal.algorithms.optimize.set_partitioning import Regions, recombine_regions
from shoal.algorithms.optimize.sparse.near_table import NearTable, make_near
from shoal.algorithms.optimize.sparse.prover import Rounds, bound_from
from shoal.algorithms.registry import SEARCH_SECONDS, Outcome
from shoal.core.measures import canonical_labels, number_through, partition_of
from shoal.core.progress import DONE, STOP, fresh_state, publish, within
from shoal.core.types import Floats, Ints, State
from shoal.kernels.neighbours import list_size, nearest

__all__ = ["Budget", "search"]

REGION = 5000
PATCHED = 1024  # maximum k for full steps, which store all pairs of two groups; a larger k uses light steps only
POOLED = 1 << 26  # maximum number of group members stored for recombination
RECOMBINED = Regions(records=120, choices=20, nodes=1)  # limits of recombination without a time limit
QUICK = 4  # maximum k for which groups are recombined within any time limit
STEPS_TO_RECOMBINE = 50  # minimum number of steps per record for recombination; fewer steps see too few groups
# Maximum number of records for proofs that store all pairs (64 MB). For more records, near records prove more in the
# same time (eia, 4092 records: a gap of 0.5 % instead of 5 % after a minute).
PAIRED = 2000
# Maximum number of records and maximum k for proofs over all pairs without a time limit: their linear programmes finish
# within seconds. Otherwise near records are used (60 records with k = 7: the same bound in 9 s instead of minutes).
PAIRED_BY_STEPS = (400, 5)
# A rounded solution of the linear relaxation is a better start than any annealed partition. It is annealed for most of
# the time or steps, from the temperature WARM instead of a hot one. BEFORE is the share of the time or steps used
# before the relaxation, and PROVEN the share used until the bound is proven (small tables, large tables). Without a
# proof, rounding pays off for k up to ROUNDED and at least SECONDS_TO_ROUND seconds per record. It uses at most half of
# this time.
BEFORE, PROVEN, WARM = 0.1, (0.85, 0.75), 0.3
ROUNDED, SECONDS_TO_ROUND = 5, 4e-4
# A proof over all pairs yields many such solutions, one for each set of cuts and decisions. Each is annealed from the
# low temperature COOL, for STEPS_TO_POLISH steps per record. Without a time limit, the search before the proof uses the
# share POLISHED of the steps. For large groups the solutions are too fractional, so the search before the proof gets
# the larger share ALONE of the time.
COOL, STEPS_TO_POLISH, POLISHED, ALONE = 0.05, 20, 0.75, 0.25


@dataclass
class Budget:
    """The time and the number of steps that a phase of the search may use.

    Examples
    --------
    >>> budget = Budget(None, 400)
    >>> budget.used(100)
    0.25
    """

    # The limits of the phase; None means no limit.
    seconds: float | None
    steps: int | None

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    def used(self, steps: int) -> float:
        """Return the used share of the time or of the steps, whichever is larger."""
        share = steps / self.steps if self.steps else float(self.steps == 0)
        return share if self.seconds is None else max(share, (time.monotonic() - self.began) / max(self.seconds, 1e-9))


def search(
    X: Floats,
    k: int,
    *,
    state: State,
    seed: int | None,
    time_limit: float | None,
    steps: int | None,
    bound: bool,
    threads: int | None,
    start: object = None,
) -> Outcome:
    """Group the records with the smallest loss found within the limits; the registry describes the options."""
    n = len(X)
    if time_limit is None and steps is None:
        time_limit = SEARCH_SECONDS
    chosen_seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    large = not _paired(n, k, time_limit) if bound else n > REGION and k <= ROUNDED
    _compile(bound=bound, large=large)
    # Each phase checks the clock between its steps; a phase that takes too long is stopped.
    with within(state, time_limit, n) as limited:
        initial = None if start is None else split_large(X, initial_labels(start, n, k, "search"), k)
        run = _Search(X, k, limited, chosen_seed, threads or os.cpu_count() or 1, initial)
        if steps != 0:
            run.improve_start()
        return run.with_bound(time_limit, steps) if bound else run.without_bound(time_limit, steps)


def _paired(n: int, k: int, time_limit: float | None) -> bool:
    """Return True if the proof uses all pairs of records instead of near records only."""
    if time_limit is None:
        return n <= PAIRED_BY_STEPS[0] and k <= PAIRED_BY_STEPS[1]
    return n <= PAIRED


@cache
def _compile(*, bound: bool, large: bool) -> None:
    """Search a tiny table to compile the kernels outside the time limit."""
    # For large tables, the tiny table must have a fractional relaxation, which compiles the kernels of cuts too.
    n, k = (60, 3) if large else (12, 2)
    tiny = _Search(np.random.default_rng(0).normal(size=(n, 2)), k, fresh_state(), 0, 1)
    if bound and large:
        bound_from(tiny.X, k, tiny.best.labels, state=fresh_state(), rounds=Rounds(2, 1, 2, 1, 60, 60, 60))
    elif large:
        round_relaxation(tiny.X, k, tiny.best.labels, state=fresh_state(), seconds=None, threads=1)
    if bound and not large:
        tiny.with_bound(None, 8)
    else:
        tiny.without_bound(None, 8)


class _Search:
    """The state of one search: the best partition so far, the seen groups and the progress."""

    def __init__(self, X: Floats, k: int, state: State, seed: int, threads: int, start: Ints | None = None) -> None:
        self.X, self.k, self.state, self.seed, self.threads = X, k, state, seed, threads
        self.n = len(X)
        self.began = time.monotonic()
        self.steps = 0
        self.round = 0
        # The initial partition takes little time and must be complete, so it ignores stop requests.
        self.best = partition_of(X, mdav_start(X, k, seed, fresh_state()) if start is None else start)
        self.scale = self.best.loss / self.n
        self.alone = self.n <= REGION
        self.near = np.zeros((self.n, 0), dtype=np.int64)
        if self.n >= 2 * k and k <= PATCHED:
            # Large tables use approximate lists so that the search begins within seconds.
            count, step = list_size(self.n, k)
            self.near = nearest(X, count, step=step, slack=0.0 if self.alone else 1.0)
        # The size of the column pool: one or two steps per record fill it. It is 0 where set partitioning is hopeless.
        places = 1 << max(10, min(17, int(np.ceil(np.log2(128 * self.n))))) if self.alone and k <= PATCHED else 0
        while places * (2 * k - 1) > POOLED:
            places //= 2
        self.column_pool: ColumnPool = new_column_pool(self.n if self.alone else 1, 2 * k - 1, places, seed)
        publish(state, steps=0, sse=self.best.loss)

    def improve_start(self) -> None:
        """Run one light step per record; on small tables, ignore the time limit and stop requests."""
        if self.n >= 2 * self.k:
            self._take_light_steps(1, self.seed, fresh_state() if self.alone else self.state)

    def _take_light_steps(self, steps: float, seed: int, state: State) -> None:
        """Run `steps` light steps per record from the best partition, and keep the result if it is better."""
        X = self.X - self.X.mean(axis=0)
        self._take(anneal_by_exchange(X, self.k, self.best.labels, steps, seed, state, self.threads))

    def without_bound(self, time_limit: float | None, steps: int | None) -> Outcome:
        """Anneal, recombine the seen groups, then anneal the result at a lower temperature."""
        if self.n < 2 * self.k:
            proof = few_records(self.X, self.k)
            return Outcome(
                self.best.labels, status="optimal", bound=proof.bound, facts=self._facts(), certificate=proof
            )
        if not self.best.loss:  # the loss is already 0
            return Outcome(self.best.labels, facts=self._facts())
        seconds = None if time_limit is None else time_limit - (time.monotonic() - self.began)
        if self._roundable(seconds, steps):
            return self._by_rounding(seconds, steps)
        recombining = self.alone and self._recombinable(seconds, steps)
        share = 0.5 if recombining else 1.0
        self.anneal(self._part(seconds, steps, share), 1.5, 0.0, share)
        if recombining and self.steps and not self.state[STOP]:
            if time_limit is None:
                self._recombine_regions()
            else:
                until, polish = self.began + 0.95 * time_limit, partial(self._polish, total_steps=steps)
                self._take(recombine(self._incumbent(), columns_in(self.column_pool), until, polish))
            # Anneal the result at a lower temperature, for the remaining time or steps.
            end = None if time_limit is None else self.began + time_limit
            self.anneal(self._rest(end, steps), 0.1, 0.95, 1.0)
        return Outcome(self.best.labels, facts=self._facts())

    def _recombinable(self, seconds: float | None, steps: int | None) -> bool:
        """Return True if the limits leave time to recombine groups, which takes longer for large groups or tables."""
        if self.k > PATCHED:
            return False
        if seconds is None:
            return (steps or 0) >= STEPS_TO_RECOMBINE * self.n
        return self.k <= QUICK or (self.n <= 2000 and seconds >= 30)

    def _roundable(self, seconds: float | None, steps: int | None) -> bool:
        """Return True if the table is large and the limits leave time to solve its linear relaxation."""
        if self.alone or self.k > ROUNDED:
            return False
        return (steps or 0) >= STEPS_TO_RECOMBINE * self.n if seconds is None else seconds >= SECONDS_TO_ROUND * self.n

    def _by_rounding(self, seconds: float | None, steps: int | None) -> Outcome:
        """Anneal briefly, solve the linear relaxation, then anneal its rounded solution."""
        until = None if seconds is None else time.monotonic() + seconds
        self.anneal(self._part(seconds, steps, BEFORE), 1.5, 0.0, BEFORE)
        rounded = round_relaxation(
            self.X, self.k, self.best.labels, state=self.state, seconds=seconds and seconds / 2, threads=self.threads
        )
        self._go_on(rounded, until, steps)
        return Outcome(self.best.labels, facts=self._facts())

    def _go_on(self, rounded: Ints | None, until: float | None, steps: int | None) -> None:
        """Anneal a rounded solution (warm) or the best partition (hot) for the remaining time or steps."""
        self.anneal(self._rest(until, steps), 1.5 if rounded is None else WARM, 0.8, 1.0, rounded)

    def _recombine_regions(self) -> None:
        """Recombine the seen groups within small regions, in two passes with different borders and no time limit."""
        candidates = GroupColumns.of(self.X, columns_in(self.column_pool))
        for turn in range(2):
            self._take(
                recombine_regions(
                    self.X,
                    self.best.labels,
                    candidates,
                    candidates.cost / candidates.sizes,
                    RECOMBINED,
                    (self.seed, turn),
                    state=self.state,
                )
            )

    def with_bound(self, time_limit: float | None, steps: int | None) -> Outcome:
        """Anneal for part of the time, then prove a bound and improve the partition along the way."""
        if self.n < 2 * self.k:
            return self.without_bound(time_limit, steps)
        # The sums of the distances to near records prove a first bound immediately.
        paired = _paired(self.n, self.k, time_limit)
        table = None if paired else make_near(self.X, self.k, self.state)
        if table is not None:
            publish(self.state, bound=float(table.floor.sum()) * (1 - 1e-12))
        seconds = None if time_limit is None else time_limit - (time.monotonic() - self.began)
        until = None if time_limit is None else self.began + time_limit
        result = self._prove_pairs(seconds, until, steps) if paired else self._prove_near(seconds, until, steps, table)
        self.state[DONE] = self.n
        return Outcome(
            self.best.labels,
            bound=min(result.bound or 0.0, self.best.loss),
            status=result.status,
            facts={**self._facts(), **result.facts},
            certificate=result.certificate,
        )

    def _prove_pairs(self, seconds: float | None, until: float | None, steps: int | None) -> ProofResult:
        """Prove a bound over all pairs of records, and use the proof to improve the partition."""
        share = BEFORE if self.k <= ROUNDED else ALONE
        self.anneal(
            Budget(seconds and share * seconds, None if steps is None else int(POLISHED * steps)), 1.5, 0.0, share
        )
        polish = partial(self._polish, total_steps=steps)
        result = prove(self._incumbent(), columns_in(self.column_pool), until, polish)
        self._take(result.labels)
        if result.status != "optimal" and until is not None:
            # If the proof gave up early, anneal its result for the remaining time.
            self.anneal(self._rest(until, steps), 0.1, 1.0, 1.0)
        return result

    def _prove_near(
        self, seconds: float | None, until: float | None, steps: int | None, table: NearTable | None
    ) -> ProofResult:
        """Prove a bound from near records, then anneal the rounded solution of the relaxation."""
        self.anneal(self._part(seconds, steps, BEFORE), 1.5, 0.0, BEFORE)
        share = PROVEN[0] if self.alone else PROVEN[1]
        result = bound_from(
            self.X, self.k, self.best.labels, state=self.state, seconds=seconds and seconds * (share - BEFORE),
            threads=self.threads, table=table,
        )  # fmt: skip
        self._take(result.labels)
        if result.status != "optimal":
            self._go_on(result.rounded, until, steps)
        return result

    def _polish(self, columns: GroupColumns, x: Floats, total_steps: int | None) -> Ints | None:
        """Round a solution of the relaxation, then anneal it briefly from a low temperature.

        The whole search takes at most `total_steps` steps.
        """
        rounded = round_groups(self.X, self.k, columns, x, state=self.state, threads=self.threads)
        if rounded is None:
            return None
        self._take(rounded)
        remaining = self._rest(None, total_steps).steps
        polish_steps = STEPS_TO_POLISH * self.n
        self.anneal(
            Budget(None, polish_steps if remaining is None else min(polish_steps, remaining)),
            COOL,
            BEFORE,
            BEFORE,
            rounded,
        )
        return self.best.labels

    @staticmethod
    def _part(seconds: float | None, steps: int | None, share: float) -> Budget:
        """Return a budget with a share of the seconds and of the steps; the first limit reached ends the phase."""
        return Budget(None if seconds is None else seconds * share, None if steps is None else int(steps * share))

    def _rest(self, until: float | None, steps: int | None) -> Budget:
        """Return a budget with the remaining time and the remaining steps of the whole search."""
        seconds = None if until is None else max(0.0, until - time.monotonic())
        return Budget(seconds, None if steps is None else max(0, steps - self.steps))

    def _incumbent(self) -> Incumbent:
        return Incumbent(self.X, self.k, self.best, self.state)

    def _take(self, labels: Ints | None) -> None:
        if labels is None:
            return
        partition = partition_of(self.X, labels)
        if partition.loss < self.best.loss:
            self.best = partition
            publish(self.state, sse=partition.loss)

    def _facts(self) -> dict[str, object]:
        return {"seed": self.seed, "steps": self.steps}

    def anneal(self, budget: Budget, hot: float, done_from: float, done_to: float, start: Ints | None = None) -> None:
        """Anneal from `start` (default: the best partition), cooling to 0 by the time 95 % of the budget is used."""
        begin = self.best if start is None else partition_of(self.X, start)
        if self.k > PATCHED:
            self._exchange(budget, done_from, done_to)
            return
        labels, value = begin.labels, begin.loss
        best, best_loss = self.best.labels, self.best.loss
        first = self.steps
        size = max(64, (budget.steps or 40_000) // (400 if self.alone else 40))
        runner = self._alone(labels) if self.alone else self._regions
        while not self.state[STOP]:
            used = budget.used(self.steps - first)
            if used >= 1.0:
                break
            began = time.monotonic()
            temperature = self.scale * hot * max(0.0, 1.0 - used / 0.95) ** 2
            steps = size if budget.steps is None else min(size, budget.steps - (self.steps - first))
            labels, change = runner(labels, steps, temperature)
            value += change
            self.steps += steps
            self.round += 1
            if value < best_loss:
                best, best_loss = labels.copy(), value
            if budget.steps is None:
                # Each round takes about 0.02 s (alone) or 1 s (in regions): the search stays close to its time limit.
                aim = min(0.02 if self.alone else 1.0, (budget.seconds or 1.0) / 20)
                size = int(np.clip(size * aim / max(time.monotonic() - began, 1e-4), size / 4, size * 4)) + 1
            self.state[DONE] = int(self.n * (done_from + (done_to - done_from) * min(used, 1.0)))
            publish(self.state, steps=self.steps, sse=best_loss)
        # Recompute the loss, because the sum of the changes has accumulated a rounding error per step.
        self.best = partition_of(self.X, best)

    def _exchange(self, budget: Budget, done_from: float, done_to: float) -> None:
        """Run light steps in rounds, with a fixed number of steps per record in each round."""
        first = self.steps
        while not self.state[STOP]:
            used = budget.used(self.steps - first)
            if used >= 1.0:
                break
            polish_steps = STEPS_TO_POLISH * self.n
            steps = polish_steps if budget.steps is None else min(polish_steps, budget.steps - (self.steps - first))
            seed = int(np.random.SeedSequence((self.seed, self.round)).generate_state(1)[0])
            self._take_light_steps(steps / self.n, seed, self.state)
            self.steps += steps
            self.round += 1
            self.state[DONE] = int(self.n * (done_from + (done_to - done_from) * used))
            publish(self.state, steps=self.steps, sse=self.best.loss)

    def _alone(self, labels: Ints) -> Callable[[Ints, int, float], tuple[Ints, float]]:
        groups = groups_of(labels, self.k)
        rng = seeded(self.seed, self.round)

        def run(_: Ints, steps: int, temperature: float) -> tuple[Ints, float]:
            change = anneal(self.X, self.k, self.near, groups, self.column_pool, steps, temperature, self.state, rng)
            return groups.label, change

        return run

    def _regions(self, labels: Ints, steps: int, temperature: float) -> tuple[Ints, float]:
        labels = canonical_labels(labels)
        parts = split_groups(self.X, labels, REGION, np.random.default_rng((self.seed, self.round)))
        each, extra = divmod(steps, len(parts))

        def run(number: int) -> tuple[Ints, float]:
            part = parts[number]
            place = np.full(self.n, -1, dtype=np.int64)
            place[part] = np.arange(len(part))
            groups = groups_of(canonical_labels(labels[part]), self.k)
            near = place[self.near[part]]
            rng = seeded(self.seed, self.round, number)
            X, part_steps = np.ascontiguousarray(self.X[part]), each + (number < extra)
            return groups.label, anneal(
                X, self.k, near, groups, self.column_pool, part_steps, temperature, self.state, rng
            )

        with ThreadPoolExecutor(self.threads) as workers:
            results = list(workers.map(run, range(len(parts))))
        joined = number_through(self.n, parts, (part_labels for part_labels, _ in results))
        return joined, float(sum(change for _, change in results))
