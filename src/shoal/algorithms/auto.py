"""Auto: the optimum for one column; for several MDAV, then a fixed number of annealing steps a record.

The steps (`optimize.exchange`) are those of `effort`: 5 a record if it is ``fast``, 20 if ``good``; ``best`` goes on
with 100 steps of `search` a record and set partitioning. There is no clock: the seed alone decides the result, whatever
the machine and the number of threads. What is returned never loses more than MDAV does.

A step a record is a number of moves that grows with k up to 10, as there is more to choose from in larger groups, and
falls beyond: it costs O(d min(k, 10)²) time. Memory is O(n (d + min(k, 256))). Tables beyond `REGION` records are
searched in regions, on all cores, whose borders change from round to round. Where few records have most of the loss, as
in tables with outliers, the last steps are theirs.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shoal.algorithms.method import EFFORTS, Outcome
from shoal.algorithms.optimize.exchange import exchange, new_partition
from shoal.algorithms.optimize.initial_partition import mdav_start, split_large
from shoal.algorithms.optimize.neighbours import list_size
from shoal.algorithms.optimize.random import seeded
from shoal.algorithms.optimize.regions import split_groups
from shoal.core.measures import canonical_labels, centroids, group_sizes, number_through, sse
from shoal.core.progress import DONE, STOP, fresh_state, spread, watched, within
from shoal.core.types import Floats, Ints, State
from shoal.kernels.nearby import leaves_of, nearby

__all__ = ["auto", "compile_annealing", "exchanged", "facts_of"]

REGION = 10_000
ROUNDS = 10  # of a table in regions
MOVES = 5.0  # times k: the moves of one step
WIDE = 10  # groups of more records take longer a move, and get the fewer
# Where this part of the records, the groups that lose most, has this share of the loss, so many rounds with this share
# of the steps are theirs alone, from the temperature at this share of the cooling.
COSTLY, UNEVEN, AGAIN, AGAIN_SHARE, WARM = 0.2, 0.9, 4, 0.4, 0.5


def auto(
    X: Floats,
    k: int,
    *,
    state: State,
    seed: int | None = 0,
    effort: str | None = None,
    bound: bool = False,
    threads: int | None = None,
) -> Outcome:
    """Group the records; see the options in the registry."""
    n, d = X.shape
    effort, seed, threads = effort or "good", seed or 0, threads or os.cpu_count() or 1
    if d == 1:
        from shoal.algorithms.univariate import univariate

        return Outcome(univariate(X, k, state=state), facts=facts_of(effort))
    if n < 2 * k:
        state[DONE] += n
        one = Outcome(np.zeros(n, dtype=np.int64), facts=facts_of(effort))
        if not bound:
            return one
        from shoal.algorithms.optimize.certificate import few_records

        proof = few_records(X, k)
        return replace(one, bound=proof.bound, status="optimal", certificate=proof)
    # A common offset would cost the sums of groups their digits.
    X = np.ascontiguousarray(X - X.mean(axis=0))
    if n <= REGION:
        start = mdav_start(X, k, seed, fresh_state())
    else:
        with within(state, None, n // 4) as part:
            start = mdav_start(X, k, seed, part)
        if state[STOP]:
            # The rest is one group. Whoever watches wants to see it grouped; nobody else looks at it.
            return Outcome(split_large(X, start, k) if watched() else start, facts=facts_of(effort))
    steps = EFFORTS[effort] if effort != "best" else EFFORTS["good"]
    labels = exchanged(X, k, start, steps, seed, state, threads)
    if effort == "best" and not state[STOP]:
        from shoal.algorithms.optimize.search import search

        steps = EFFORTS[effort] * n
        outcome = search(
            X, k, state=state, seed=seed, time_limit=None, steps=steps, bound=False, threads=threads, start=labels
        )
        labels = outcome.labels
    if bound:
        return _with_bound(X, k, labels, effort, state, threads)
    return Outcome(labels, facts=facts_of(effort))


def _with_bound(X: Floats, k: int, labels: Ints, effort: str, state: State, threads: int) -> Outcome:
    """Prove a bound, by a fixed number of rounds; what is learnt on the way does not change the groups."""
    from shoal.algorithms.optimize.sparse.prover import Rounds, bound_from

    proven = bound_from(X, k, labels, state=state, rounds=Rounds(turns=0), threads=threads)
    facts = {**facts_of(effort), **proven.facts}
    return Outcome(labels, bound=proven.bound, status=proven.status, facts=facts, certificate=proven.certificate)


def facts_of(effort: str | None) -> dict[str, object]:
    """Return what a reader of the summary wants to know.

    Examples
    --------
    >>> facts_of(None)
    {'start': 'mdav', 'effort': 'good', 'steps a record': 20}
    """
    effort = effort or "good"
    return {"start": "mdav", "effort": effort, "steps a record": EFFORTS[effort]}


def compile_annealing() -> None:
    """Compile the kernel that is run last and takes longest to compile, as `exchanged` calls it."""
    X, near = np.zeros((2, 2)), np.array([[1], [0]])
    partition = new_partition(X, np.zeros(2, dtype=np.int64), 2)
    exchange(X, 2, near, np.zeros(2), partition, 0, (0.0, 1.0), fresh_state(), seeded(0, 0, 0))


def exchanged(X: Floats, k: int, labels: Ints, steps: float, seed: int, state: State, threads: int) -> Ints:
    """Return groups 0, 1, … of k to 2k−1 records after annealing, or the given ones if they lose less."""
    n = len(X)
    counted = n if n <= REGION else 3 * n // 4  # what the start leaves to count
    if not sse(X, canonical_labels(labels)):  # nothing to gain
        state[DONE] += counted
        return labels
    order, start = leaves_of(X)[0], labels
    X, labels = X[order], labels[order]
    count, step = list_size(n, k)
    near, squares = nearby(X, count, state=state, step=step, threads=threads)
    # A record that joins its neighbours costs about half their squared distance.
    scale = np.ascontiguousarray(squares[:, : (k - 1) // step].mean(axis=1) / 2)
    annealed = canonical_labels(labels)
    again = AGAIN if _costliest(X, annealed)[1] >= UNEVEN else 0
    rounds = 1 if n <= REGION else ROUNDS
    moves = MOVES * k * min(1.0, (WIDE / k) ** 2) * steps * n
    annealing = _Annealing(X, k, near, scale, seed, state, threads)
    for turn in range(rounds):
        if state[STOP]:
            break
        share = (1.0 - (AGAIN_SHARE if again else 0.0)) / rounds
        cooling = turn / rounds, (turn + 1) / rounds
        annealed = annealing.run(annealed, np.arange(n), share * moves, cooling, turn)
        state[DONE] += counted // rounds
    for turn in range(again):
        if state[STOP]:
            break
        annealed = split_large(X, annealed, k)
        rows = _costliest(X, annealed)[0]
        tried = annealing.run(annealed, rows, AGAIN_SHARE / again * moves, (WARM, 1.0), rounds + turn)
        annealed = tried if sse(X, tried) < sse(X, annealed) else annealed
    annealed = split_large(X, annealed, k)
    if sse(X, annealed) >= sse(X, labels):
        return start
    back = np.empty(n, dtype=np.int64)
    back[order] = annealed
    return canonical_labels(back)


def _costliest(X: Floats, labels: Ints) -> tuple[Ints, float]:
    """Return the records of the groups that lose most, about a fifth of all, and their share of the loss."""
    errors = np.square(X - centroids(X, labels)[labels]).sum(axis=1)
    sizes = group_sizes(labels)
    order = np.argsort(-np.bincount(labels, errors) / sizes, kind="stable")
    costly = np.zeros(len(sizes), dtype=np.bool_)
    # Two at least: a group alone has nothing to exchange.
    costly[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), COSTLY * len(X))))]] = True
    rows = np.flatnonzero(costly[labels])
    return rows, float(errors[rows].sum() / max(errors.sum(), np.finfo(float).tiny))


class _Annealing(NamedTuple):
    """Records in an order that keeps neighbours together, their nearest, the temperature of each, and how to run."""

    X: Floats
    k: int
    near: Ints
    scale: Floats
    seed: int
    state: State
    threads: int

    def run(self, labels: Ints, rows: Ints, moves: float, cooling: tuple[float, float], turn: int) -> Ints:
        """Return the groups 0, 1, … after so many moves of some records, all those of some groups, in regions."""
        X, k, n = self.X, self.k, len(self.X)
        numbered = canonical_labels(labels[rows])
        regions = [
            rows[part] for part in split_groups(X[rows], numbered, REGION, np.random.default_rng((self.seed, turn)))
        ]

        def anneal(number: int) -> Ints:
            part = regions[number]
            records, lists, heat = X, self.near, self.scale
            if len(part) < n:
                place = np.full(n, -1, dtype=np.int64)
                place[part] = np.arange(len(part))
                records, lists, heat = np.ascontiguousarray(X[part]), place[self.near[part]], self.scale[part]
            partition = new_partition(records, canonical_labels(labels[part]), k)
            steps, word = int(moves * len(part) / len(rows)), seeded(self.seed, turn, number)
            exchange(records, k, lists, heat, partition, steps, cooling, self.state, word)
            return canonical_labels(partition.label)

        changed = number_through(n, regions, list(spread(anneal, range(len(regions)), self.threads)))
        result = labels.copy()
        result[rows] = changed[rows] + n
        return canonical_labels(result)
