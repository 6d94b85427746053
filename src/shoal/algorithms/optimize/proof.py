"""Proof: from a partition to a bound, and to the optimum if the gap is small enough to list all groups that matter.

Column generation with cuts yields multipliers and a bound (`optimize.column_generation`). Let π, μ be repaired, so that
no reduced cost is negative, and B = Σ π_i − Σ_R μ_R ⌊p(R)/q⌋ the bound they prove. A partition satisfies every cut, so
its SSE is at least B plus the sum of the reduced costs of its groups: if it is at most B + reach, each of its groups
has a reduced cost within reach. So if all groups of k … 2k−1 records within reach can be listed, and the best choice
among them has an SSE of at most B + reach, that choice is the optimum, even without a good partition to start from. The
reach grows step by step until it finds one or covers the distance to the best partition. HiGHS solves the integer
programmes to a gap of 0 and its tolerances of 1e-9 (per unit of the mean squared error).

The number of groups that matter depends on the best partition. Every solution of the relaxation therefore improves it,
for the table and for the cases (`optimize.branch_and_bound`): the caller rounds and anneals the solution, then the
result is combined with the best partition so far (`optimize.relaxation_rounding`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from shoal.algorithms.optimize.branch_and_bound import Branch, Branches, branch
from shoal.algorithms.optimize.certificate import Case, Certificate
from shoal.algorithms.optimize.column_generation import ColumnGeneration, GenerationLimits
from shoal.algorithms.optimize.cuts import Cuts, Decision, no_cuts, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.lower_bounds import Bound
from shoal.algorithms.optimize.pricing import enumerate_groups
from shoal.algorithms.optimize.relaxation_rounding import improve_near
from shoal.algorithms.optimize.set_partitioning import improve
from shoal.core.measures import Partition
from shoal.core.progress import STOP, publish
from shoal.core.types import Bools, Floats, Ints, State

__all__ = ["PROVABLE", "Incumbent", "ProofResult", "prove", "recombine"]

# Two n×n arrays of float64: 400 MB.
PROVABLE = 5000
# Rounds of cuts before the seen groups are recombined.
_RECOMBINE = 20
# Integer programmes with more columns than this do not finish.
_LISTED = 400_000
# Maximum number of cases in branching: without a time limit, and with one.
_CASES, _MANY_CASES = 60, 5000
# Limits of an integer programme that closes a case: columns per record, and nodes.
_FEW, _NODES = 2, 3
# Maximum number of records to regroup where partition and relaxation differ (a thorough search has no limit).
_NEAR, _NODES_NEAR = 150, 20
# Maximum number of prefixes to enumerate for the list of a case.
_PREFIXES = 1_000_000
# An optimum is correct to the solver's tolerances: the claim is reduced by this relative amount.
_TRUST = 1e-8

Polish = Callable[[GroupColumns, Floats], Ints | None]


@dataclass(frozen=True)
class Incumbent:
    """A table and the best partition so far."""

    X: Floats
    k: int
    partition: Partition
    state: State


@dataclass(frozen=True)
class ProofResult:
    """The result of `prove`; see `shoal.algorithms.registry.Outcome`. `rounded` is a partition to continue from."""

    labels: Ints
    bound: float | None
    status: Literal["optimal", "bounded", "heuristic"]
    certificate: Certificate | None
    facts: dict[str, object] = field(default_factory=dict)
    rounded: Ints | None = None


def _generation(incumbent: Incumbent, candidates: list[Ints], limits: GenerationLimits) -> ColumnGeneration:
    partition = incumbent.partition
    columns = GroupColumns.of(incumbent.X, groups_in(partition.labels) + candidates)
    return ColumnGeneration(incumbent.X, incumbent.k, partition, columns, len(partition.sizes), incumbent.state, limits)


def recombine(incumbent: Incumbent, candidates: list[Ints], until: float | None, polish: Polish) -> Ints | None:
    """Return the best partition that the seen groups allow, or a better one near the relaxation's solution.

    Without a time limit the integer programme has a limit on nodes, so that results are reproducible.
    """
    if incumbent.partition.loss == 0.0:
        return None
    later = _after(0.7, until)
    deadline = np.inf if later is None else later
    generation = _generation(incumbent, candidates, GenerationLimits(deadline=deadline, rounds=_RECOMBINE, exact=False))
    generation.run()
    latest = generation.latest
    if latest is None:
        return None
    columns = generation.master.columns
    _near(generation, latest.x, polish, until, eager=True)
    rest = reduced_costs(columns, latest.duals, latest.cuts)
    near = np.argsort(rest, kind="stable")[: 2 * generation.n]
    nodes = 1 if until is None else None
    _choose(generation, columns.take(np.sort(near)), latest.cuts, until, nodes)
    return generation.partition.labels


def _after(share: float, until: float | None) -> float | None:
    """Return the `time.monotonic` at which a share of the remaining time is over."""
    return None if until is None else time.monotonic() + share * (until - time.monotonic())


def _choose(
    generation: ColumnGeneration, columns: GroupColumns, cuts: Cuts, until: float | None, nodes: int | None
) -> bool:
    """Offer the best choice among these columns and the groups of the best partition; return whether it is proven."""
    seconds = None if until is None else max(0.1, until - time.monotonic())
    paying = cuts.paying(generation.noise)
    labels, state = generation.partition.labels, generation.state
    choice = improve(generation.X, labels, columns, cuts=paying, time_limit=seconds, nodes=nodes, state=state)
    generation.offer(choice.labels)
    return choice.proven


def prove(incumbent: Incumbent, candidates: list[Ints], until: float | None, polish: Polish) -> ProofResult:
    """Prove a lower bound on the SSE, improve the partition along the way, and prove it optimal if possible.

    `candidates` are groups that the search has seen. The proof ends at the `time.monotonic` `until`; with None, at the
    limits of each part. `polish` receives groups and their values in a solution of the relaxation; it returns a
    partition near that solution, or None.
    """
    now, later = time.monotonic(), _after(0.6, until)
    deadline = np.inf if later is None else later
    labels = incumbent.partition.labels
    nothing = Certificate(incumbent.k, np.zeros(len(labels)), no_cuts(), 0.0, optimum=None)
    if incumbent.partition.loss == 0.0:
        return ProofResult(labels, 0.0, "optimal", nothing)
    # A prefix costs about a nanosecond per record: no enumeration should take more than a tenth of the time.
    max_visits = int(np.clip(1e8 * min(deadline - now, 1e4) / len(labels), 100_000, 30_000_000))
    generation = _generation(incumbent, candidates, GenerationLimits(deadline=deadline, max_visits=max_visits))
    generation.run()
    best = generation.best
    if best is None:
        # Time is up before any bound: the generated columns may still contain a better partition.
        nodes = 1 if until is None else None
        _choose(generation, generation.master.columns, no_cuts(), until, nodes)
        return ProofResult(generation.partition.labels, 0.0, "bounded", nothing)

    def near(x: Floats, eager: bool) -> None:
        _near(generation, x, polish, until, eager=eager)

    if generation.latest is not None and not generation.closed():
        near(generation.latest.x, True)
    optimal, group_count = generation.closed(), 0
    solved = not optimal  # multipliers that close the gap prove exactly their bound
    if not optimal and not incumbent.state[STOP]:
        optimal, group_count = _prove_optimal(generation, best, _after(0.1, until))
    branches = Branches((Branch((), best),), closed=False)
    if not optimal and not incumbent.state[STOP]:
        end, cases = (np.inf, _CASES) if until is None else (until, _MANY_CASES)

        def finish(proof: Bound, eager: bool) -> bool:
            return _finish(generation, proof, until, eager=eager)

        branches = branch(generation, best, finish=finish, improve=near, until=end, limit=cases)
        # Bounds of cases that an integer programme closed are not proven by their multipliers.
        optimal = branches.closed and branches.solved > 0
    claim = min(_claim(one.proof) for one in branches.every)
    upper = generation.upper
    bound = min(upper, max(claim, upper * (1 - _TRUST)) if optimal and solved else claim)
    publish(incumbent.state, bound=bound)
    if len(branches.every) == 1:
        best = branches.every[0].proof
    proofs = [Case(one.decisions, one.proof.duals, one.proof.cuts) for one in branches.every[1:] and branches.every]
    certificate = Certificate(incumbent.k, best.duals, best.cuts, claim, upper if optimal else None, tuple(proofs))
    facts: dict[str, object] = {
        "cuts": len(best.cuts),
        "columns": len(generation.master.columns),
        "listed": group_count,
        "cases": len(branches.every),
    }
    status: Literal["optimal", "bounded"] = "optimal" if optimal or branches.closed else "bounded"
    return ProofResult(generation.partition.labels, bound, status, certificate, facts)


def _claim(proof: Bound) -> float:
    """Return the bound to claim: repaired duals are rounded, and a later check must not prove less."""
    return proof.value - 1e-12 * float(np.abs(proof.duals).sum() + proof.cuts.magnitude)


def _prove_optimal(generation: ColumnGeneration, best: Bound, until: float | None) -> tuple[bool, int]:
    """Solve the integer programme over all groups with a reduced cost within reach, and extend the reach step by step.

    A partition with an SSE of at most B + reach has only such groups, so the best one found is the optimum, however far
    away the incumbent was. Returns whether the best partition is proven optimal, and the number of groups listed.
    """
    rest = np.sort(reduced_costs(generation.master.columns, best.duals, best.cuts))
    reach = float(rest[min(2 * generation.n, len(rest)) - 1])
    group_count = 0
    while not generation.state[STOP]:
        gap = _reach(generation, best)
        reach = min(reach, gap)
        columns, complete = _within(generation, best, reach, _LISTED, generation.limits.max_visits)
        seconds = np.inf if until is None else until - time.monotonic()
        # The solver rarely checks the clock: start only integer programmes that fit the time.
        if len(columns) > (40 * generation.n if until is None else 2000 * seconds):
            break
        group_count = len(columns)
        nodes = 500 if until is None else None
        if not _choose(generation, columns, best.cuts, _after(0.6, until), nodes):
            break
        if complete and generation.upper - best.value <= reach:
            return True, group_count
        if reach >= gap:
            break
        reach *= 1.5
    return False, group_count


def _finish(generation: ColumnGeneration, proof: Bound, until: float | None, *, eager: bool) -> bool:
    """Close a case by an integer programme if few groups are within reach of a better partition.

    A thorough search (`eager`) also tries a smaller reach, which may find a better partition but cannot close the case.
    Returns whether this case has no better partition.
    """
    gap = _reach(generation, proof)
    for share in (1.0, 0.5, 0.25, 0.1) if eager else (1.0,):
        columns, complete = _within(generation, proof, share * gap, _FEW * generation.n, _PREFIXES)
        if complete:
            # The choice of columns enforces the decisions, so that the best partition remains feasible.
            columns = columns.take(np.flatnonzero(_keeping(columns, proof.cuts.decisions())))
            cuts = proof.cuts.take(np.flatnonzero(proof.cuts.decided < 0))
            proven = _choose(generation, columns, cuts, until, _NODES)
            return proven and generation.upper - proof.value <= share * gap
    return False


def _near(generation: ColumnGeneration, x: Floats, polish: Polish, until: float | None, *, eager: bool) -> None:
    """Offer partitions near a solution of the relaxation."""
    columns = generation.master.columns
    generation.offer(polish(columns, x))
    near = improve_near(
        generation.X,
        generation.partition.labels,
        columns,
        x,
        largest=generation.n if eager else _NEAR,
        nodes=_NODES_NEAR,
        time_limit=None if until is None else max(0.1, 0.1 * (until - time.monotonic())),
        state=generation.state,
    )
    generation.offer(near)


def _keeping(columns: GroupColumns, decisions: list[Decision]) -> Bools:
    """Select the groups that hold both or neither of two joined records, and not both of two separated ones."""
    keeping = np.ones(len(columns), dtype=bool)
    for i, j, together in decisions if len(columns) else ():
        with_i, with_j = (np.logical_or.reduceat(columns.member == at, columns.start[:-1]) for at in (i, j))
        keeping &= with_i == with_j if together else ~(with_i & with_j)
    return keeping


def _reach(generation: ColumnGeneration, best: Bound) -> float:
    """Return the largest reduced cost of a group in a better partition; rounding must not exclude a group."""
    return (generation.upper - best.value) * (1 + 1e-9) + 1e-9 * generation.upper


def _within(
    generation: ColumnGeneration, best: Bound, reach: float, room: int, max_visits: int
) -> tuple[GroupColumns, bool]:
    """List every group of k … 2k−1 records with a reduced cost within reach; if too many, only the generated ones."""
    n, d = generation.X.shape
    groups: GroupColumns | None = None
    for size in range(generation.k, min(2 * generation.k - 1, n) + 1):
        enumerated = enumerate_groups(
            generation.D,
            d,
            best.duals,
            best.cuts,
            size,
            reach,
            room=room,
            max_visits=max_visits,
            state=generation.state,
            work=generation.W,
        )
        if not enumerated.complete:
            rest = reduced_costs(generation.master.columns, best.duals, best.cuts)
            return generation.master.columns.take(np.flatnonzero(rest <= reach)), False
        columns = GroupColumns.of(generation.X, enumerated.groups)
        columns = columns.take(np.flatnonzero(reduced_costs(columns, best.duals, best.cuts) <= reach))
        groups = columns if groups is None else groups.join(columns)
    return groups if groups is not None else generation.master.columns, True
