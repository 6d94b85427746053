"""Proof of a lower bound, and of optimality if the gap is small enough to list all relevant groups.

Column generation with cuts yields multipliers and a bound (`optimize.column_generation`). Let π, μ be repaired
multipliers, for which no reduced cost is negative, and let B = Σ π_i − Σ_R μ_R ⌊p(R)/q⌋ be the bound that they prove.
Every partition satisfies all cuts, so its SSE is at least B plus the sum of the reduced costs of its groups. If its SSE
is at most B + reach, each of its groups has a reduced cost of at most the reach.

Suppose that all such groups of k … 2k−1 records can be listed, and the best choice among them has an SSE of at most
B + reach. Then this choice is optimal, even if the initial partition was poor. The reach grows step by step until such
a choice exists or the reach covers the gap to the best partition. HiGHS solves the integer programmes to a gap of 0
with tolerances of 1e-9 (per unit of the mean squared error).

The better the known partition is, the fewer groups must be listed. Each solution of the relaxation, for the table and
for the cases (`optimize.branch_and_bound`), therefore serves to improve the partition. The caller rounds and anneals
the solution; the result is then combined with the best partition so far (`optimize.relaxation_rounding`).
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

# Maximum number of records for a proof: two n×n arrays of float64 then take 400 MB.
PROVABLE = 5000
# Maximum number of rounds of cuts before the seen groups are recombined.
_RECOMBINE = 20
# Maximum number of columns in an integer programme; larger programmes do not finish.
_LISTED = 400_000
# Maximum number of cases in branching, without and with a time limit.
_CASES, _MANY_CASES = 60, 5000
# Limits of an integer programme that closes a case: columns per record, and branch-and-bound nodes.
_FEW, _NODES = 2, 3
# Limits of regrouping where partition and relaxation differ: records (unlimited in a thorough search), and nodes.
_NEAR, _NODES_NEAR = 150, 20
# Maximum number of prefixes to visit when listing the groups of a case.
_PREFIXES = 1_000_000
# An optimum is correct only within the solver's tolerances, so the claimed bound is reduced by this relative amount.
_TRUST = 1e-8

Polish = Callable[[GroupColumns, Floats], Ints | None]


@dataclass(frozen=True)
class Incumbent:
    """A table with k, its best partition so far and the progress state."""

    X: Floats
    k: int
    partition: Partition
    state: State


@dataclass(frozen=True)
class ProofResult:
    """The result of a proof, with the fields of `shoal.algorithms.registry.Outcome`.

    `rounded` is a partition near the relaxation's solution, from which the search may continue.
    """

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
    """Recombine the seen groups, guided by the linear relaxation, and return the best partition found, if any.

    Without a time limit, the integer programme has a node limit, which makes results reproducible.
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
    """Return the `time.monotonic` value at which the given share of the remaining time has passed."""
    return None if until is None else time.monotonic() + share * (until - time.monotonic())


def _choose(
    generation: ColumnGeneration, columns: GroupColumns, cuts: Cuts, until: float | None, nodes: int | None
) -> bool:
    """Store the best partition made of `columns` and the current groups; return True if it is proven optimal."""
    seconds = None if until is None else max(0.1, until - time.monotonic())
    paying = cuts.paying(generation.noise)
    labels, state = generation.partition.labels, generation.state
    choice = improve(generation.X, labels, columns, cuts=paying, time_limit=seconds, nodes=nodes, state=state)
    generation.offer(choice.labels)
    return choice.proven


def prove(incumbent: Incumbent, candidates: list[Ints], until: float | None, polish: Polish) -> ProofResult:
    """Prove a lower bound on the SSE, improve the partition along the way, and prove the partition optimal if possible.

    `candidates` are groups that the search has seen. The proof ends at the `time.monotonic` value `until`; if `until`
    is None, only the limits of the phases apply. `polish` receives groups and their values in a solution of the
    relaxation; it returns a partition near that solution, or None.
    """
    now, later = time.monotonic(), _after(0.6, until)
    deadline = np.inf if later is None else later
    labels = incumbent.partition.labels
    nothing = Certificate(incumbent.k, np.zeros(len(labels)), no_cuts(), 0.0, optimum=None)
    if incumbent.partition.loss == 0.0:
        return ProofResult(labels, 0.0, "optimal", nothing)
    # A prefix costs about a nanosecond per record, so this limit keeps each enumeration below a tenth of the time.
    max_visits = int(np.clip(1e8 * min(deadline - now, 1e4) / len(labels), 100_000, 30_000_000))
    generation = _generation(incumbent, candidates, GenerationLimits(deadline=deadline, max_visits=max_visits))
    generation.run()
    best = generation.best
    if best is None:
        # No bound was proven in time, but the generated columns may contain a better partition.
        nodes = 1 if until is None else None
        _choose(generation, generation.master.columns, no_cuts(), until, nodes)
        return ProofResult(generation.partition.labels, 0.0, "bounded", nothing)

    def near(x: Floats, eager: bool) -> None:
        _near(generation, x, polish, until, eager=eager)

    if generation.latest is not None and not generation.closed():
        near(generation.latest.x, True)
    optimal, group_count = generation.closed(), 0
    solved = not optimal  # False if the multipliers alone close the gap: their own bound is then claimed
    if not optimal and not incumbent.state[STOP]:
        optimal, group_count = _prove_optimal(generation, best, _after(0.1, until))
    branches = Branches((Branch((), best),), closed=False)
    if not optimal and not incumbent.state[STOP]:
        end, cases = (np.inf, _CASES) if until is None else (until, _MANY_CASES)

        def finish(proof: Bound, eager: bool) -> bool:
            return _finish(generation, proof, until, eager=eager)

        branches = branch(generation, best, finish=finish, improve=near, until=end, limit=cases)
        # The multipliers of a case that an integer programme closed do not prove its optimum.
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
    """Return the bound to claim, reduced by a rounding margin so that a later check does not prove less."""
    return proof.value - 1e-12 * float(np.abs(proof.duals).sum() + proof.cuts.magnitude)


def _prove_optimal(generation: ColumnGeneration, best: Bound, until: float | None) -> tuple[bool, int]:
    """Solve the integer programme over all groups with a reduced cost within reach, and extend the reach step by step.

    A partition with an SSE of at most B + reach consists only of such groups. If the best partition found has such an
    SSE, it is optimal, however poor the incumbent was. Return True if optimality is proven, and the number of listed
    groups.
    """
    rest = np.sort(reduced_costs(generation.master.columns, best.duals, best.cuts))
    reach = float(rest[min(2 * generation.n, len(rest)) - 1])
    group_count = 0
    while not generation.state[STOP]:
        gap = _reach(generation, best)
        reach = min(reach, gap)
        columns, complete = _within(generation, best, reach, _LISTED, generation.limits.max_visits)
        seconds = np.inf if until is None else until - time.monotonic()
        # The solver rarely checks the clock, so start only integer programmes that can finish in time.
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
    """Close a case with an integer programme if only a few groups could belong to a better partition.

    A thorough search (`eager`) also tries smaller reaches; these close the case only if they yield a partition that is
    good enough. Return True if the case contains no better partition.
    """
    gap = _reach(generation, proof)
    for share in (1.0, 0.5, 0.25, 0.1) if eager else (1.0,):
        columns, complete = _within(generation, proof, share * gap, _FEW * generation.n, _PREFIXES)
        if complete:
            # Selecting the columns enforces the decisions; constraints could make the best partition infeasible.
            columns = columns.take(np.flatnonzero(_keeping(columns, proof.cuts.decisions())))
            cuts = proof.cuts.take(np.flatnonzero(proof.cuts.decided < 0))
            proven = _choose(generation, columns, cuts, until, _NODES)
            return proven and generation.upper - proof.value <= share * gap
    return False


def _near(generation: ColumnGeneration, x: Floats, polish: Polish, until: float | None, *, eager: bool) -> None:
    """Search for better partitions near a solution of the relaxation, and store the best one."""
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
    """Return a mask of the groups that respect every decision to join or separate two records."""
    keeping = np.ones(len(columns), dtype=bool)
    for i, j, together in decisions if len(columns) else ():
        with_i, with_j = (np.logical_or.reduceat(columns.member == at, columns.start[:-1]) for at in (i, j))
        keeping &= with_i == with_j if together else ~(with_i & with_j)
    return keeping


def _reach(generation: ColumnGeneration, best: Bound) -> float:
    """Return the largest reduced cost that a group in a better partition can have, with a margin for rounding."""
    return (generation.upper - best.value) * (1 + 1e-9) + 1e-9 * generation.upper


def _within(
    generation: ColumnGeneration, best: Bound, reach: float, room: int, max_visits: int
) -> tuple[GroupColumns, bool]:
    """List the groups of k … 2k−1 records with a reduced cost within reach.

    Return True with a complete list. If there are too many groups, return only the generated groups, and False.
    """
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
