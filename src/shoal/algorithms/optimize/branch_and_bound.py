"""Branch and bound: close the gap that cuts leave, by cases in which a pair of records is together or separate.

The branching rule is that of D. M. Ryan and B. A. Foster (Computer Scheduling of Public Transport, 1981). In a
fractional solution of a set-partitioning problem, some pair of records is together with a value between 0 and 1. The
pair is together in one case and separate in the other. A decision is an equation Σ_{G ∋ i,j} x_G = 1 or 0 with a
multiplier of any sign. It adds a term to the weight of the pair (i, j), so pricing, bound and certificate need no
change (`optimize.pricing`).

If all groups that a better partition may contain can be listed, an integer programme over these groups closes the case
(`optimize.proof`). The case with the smallest bound is processed next, so the proven bound for the table, which is the
smallest bound of all cases, rises steadily. Strong branching chooses the pair: several pairs are tried for a few
simplex iterations, and the pair whose two cases raise the bound most is used (T. Achterberg, T. Koch and A. Martin,
Operations Research Letters 33, 2005).

Each case costs several linear programmes and enumerations; the number of cases may grow exponentially.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.algorithms.optimize.column_generation import ColumnGeneration
from shoal.algorithms.optimize.cuts import Decision
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.lower_bounds import Bound
from shoal.algorithms.optimize.master import RelaxationSolution
from shoal.core.progress import publish
from shoal.core.types import Floats

__all__ = ["Branch", "Branches", "branch"]

# The number of pairs to try, and the simplex iterations per case of a pair.
_TRIED, _STEPS = 8, 80
# Maximum number of rounds of cuts in a case, and the share of the gap that a round must close for another round.
_ROUNDS, _SHARE = 4, 0.03
# Penalties for breaking a decision, in multiples of the gap: the first penalty that enforces all decisions is used.
_PRICES = (10.0, 100.0, 1e4, 1e6)
# Number of steps between thorough searches for better partitions, which also run at steps 1, 2, 4, 8, ….
_OFTEN = 4
# A value this close to 0 or 1 counts as an integer.
_INTEGER = 1e-5


@dataclass(frozen=True)
class Branch:
    """A case of branching: its decisions in order, and the best bound proven for it or for an enclosing case."""

    decisions: tuple[Decision, ...]
    proof: Bound


@dataclass(frozen=True)
class Branches:
    """The branches of a finished or interrupted search, which together cover all partitions."""

    every: tuple[Branch, ...]
    closed: bool  # true if every branch is proven to contain no improvement
    solved: int = 0  # number of branches that an integer programme closed; their stored bounds prove less


Finish = Callable[[Bound, bool], bool]
Improve = Callable[[Floats, bool], None]


def branch(
    generation: ColumnGeneration,
    root: Bound,
    *,
    finish: Finish,
    improve: Improve,
    until: float,
    limit: int,
) -> Branches:
    """Divide all partitions into cases until all cases are closed, time is up or there are `limit` cases.

    `generation` must have been run and have proven the bound `root`; it holds the best partition. The search ends at
    the `time.monotonic` value `until`. `finish` receives the bound proven in a case and the flag for a thorough search;
    it returns True if the case contains no better partition. `improve` receives the solution of a case and a flag for a
    thorough search. Each decision makes solutions less fractional, so better partitions appear along the way.
    """
    tree = _Tree(generation, finish, improve, until)
    tree.push(Branch((), root))
    while tree.open and len(tree) < limit and not generation.over():
        tree.step()
    open_branches = (*tree.stuck, *tree.waiting())
    return Branches((*tree.closed, *tree.solved, *open_branches), not open_branches, len(tree.solved))


class _Tree:
    """The search tree: closed branches, and open branches with the smallest bound first."""

    def __init__(self, generation: ColumnGeneration, finish: Finish, improve: Improve, until: float) -> None:
        self.generation, self.finish, self.improve = generation, finish, improve
        self.master = generation.master
        generation.limits = replace(generation.limits, deadline=until)
        self.master.deadline = until
        self.open: list[tuple[float, int, Branch]] = []
        self.closed: list[Branch] = []
        self.solved: list[Branch] = []
        self.stuck: list[Branch] = []  # branches that can be neither closed nor divided
        self.count, self.steps = 0, 0

    def __len__(self) -> int:
        return len(self.open) + len(self.closed) + len(self.solved) + len(self.stuck)

    def waiting(self) -> list[Branch]:
        """Return the open branches, smallest bound first."""
        return [branch for _, _, branch in sorted(self.open, key=lambda entry: entry[:2])]

    def push(self, branch: Branch) -> None:
        """Add an open branch."""
        self.count += 1
        heapq.heappush(self.open, (branch.proof.value, self.count, branch))

    def step(self) -> None:
        """Process the branch with the smallest bound: improve the bound, then close or divide it."""
        branch = heapq.heappop(self.open)[2]
        generation = self.generation
        answer = self._solve(branch)
        if generation.best is not None and generation.best.value > branch.proof.value:
            branch = Branch(branch.decisions, generation.best)
        generation.best = branch.proof
        self.steps += 1
        eager = self.steps & (self.steps - 1) == 0  # at the 1st, 2nd, 4th, 8th … step
        if answer is not None and not generation.over():
            self.improve(answer.x, eager or self.steps % _OFTEN == 0)
        if generation.closed():
            self.closed.append(branch)
            return
        if not generation.over() and self.finish(branch.proof, eager):
            self.solved.append(branch)
            return
        pair = self._choose(answer) if answer is not None else None
        if pair is not None:
            for decided in (0, 1):
                self.push(Branch((*branch.decisions, (*pair, decided)), branch.proof))
        elif generation.over():
            self.push(branch)
        else:
            self.stuck.append(branch)
        publish(
            generation.state, bound=min(one.proof.value for one in (*self.solved, *self.stuck, *self.waiting()[:1]))
        )

    def _solve(self, branch: Branch) -> RelaxationSolution | None:
        """Solve the relaxation of a case, with several rounds of cuts."""
        generation, master = self.generation, self.master
        gap = generation.upper - branch.proof.value
        accuracy = 0.01 * gap / generation.upper
        answer = None
        for price in _PRICES:
            generation.decide(branch.decisions, price * gap)
            answer = generation.relax(accuracy)
            if answer is None or generation.closed() or not master.broken:
                break
        for _ in range(_ROUNDS):
            if answer is None or generation.closed() or _integral(answer.x):
                break
            last = generation.value
            if not generation.separate(answer):
                break
            answer = generation.relax(accuracy)
            if generation.value - last < _SHARE * (generation.upper - last):
                break
        if answer is not None and _integral(answer.x):
            # Nothing remains to branch on, so the bound must reach the value.
            answer = generation.relax(0.0)
        return answer

    def _choose(self, answer: RelaxationSolution) -> tuple[int, int] | None:
        """Return the pair whose two cases raise the bound most, or None if no pair is fractional."""
        generation = self.generation
        pairs = fractional_pairs(self.master.columns, answer.x, generation.D, _TRIED)
        # Solve again, because the trials start from the basis of this solution.
        answer = self.master.solve() or answer
        gap = generation.upper - answer.value
        best, pair = -1.0, None
        for i, j in pairs:
            if generation.over():
                break
            separate, together = (
                max(1e-6 * gap, min(gap, self.master.trial((i, j, side), _STEPS) - answer.value)) for side in (0, 1)
            )
            if separate * together > best:
                best, pair = separate * together, (i, j)
        return pair


def _integral(x: Floats) -> bool:
    return bool((np.minimum(x, np.abs(1.0 - x)) < _INTEGER).all())


def fractional_pairs(columns: GroupColumns, x: Floats, D: Floats, count: int) -> Sequence[tuple[int, int]]:
    """Return pairs of records that are together with a value between 0 and 1, most promising first.

    Half of the pairs have a value near ½ and a large distance; the other half have the values closest to ½. Of several
    pairs in the same groups, only one is returned.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> columns = GroupColumns.of(X, [np.array([0, 1]), np.array([1, 2])])
    >>> fractional_pairs(columns, np.array([0.5, 1.0]), (X - X.T) ** 2, 9)
    [(0, 1)]
    """
    shares: dict[tuple[int, int], float] = {}
    holders: dict[tuple[int, int], list[int]] = {}
    for c in np.flatnonzero((x > _INTEGER) & (x < 1 - _INTEGER)):
        group = columns[c].tolist()
        for a, i in enumerate(group):
            for j in group[a + 1 :]:
                shares[i, j] = shares.get((i, j), 0.0) + float(x[c])
                holders.setdefault((i, j), []).append(int(c))
    different: dict[tuple[int, ...], tuple[int, int]] = {}
    for pair, numbers in holders.items():
        if _INTEGER < shares[pair] < 1 - _INTEGER:
            different.setdefault(tuple(numbers), pair)
    pairs = list(different.values())
    middle = {pair: min(shares[pair], 1 - shares[pair]) for pair in pairs}
    first = sorted(pairs, key=lambda pair: (-middle[pair] * D[pair], pair))[: count // 2]
    second = sorted(pairs, key=lambda pair: (-round(middle[pair], 6), -D[pair], pair))[: count - len(first)]
    return list(dict.fromkeys(first + second))
