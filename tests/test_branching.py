"""Branching: cases cover all partitions, no case cuts off its best one, and the optimum is proven without a solver."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from test_bounds import LIMITS, all_groups, random_cuts
from test_search import best_partition

import shoal
from shoal.algorithms.optimize import branch_and_bound, proof
from shoal.algorithms.optimize.branch_and_bound import branch
from shoal.algorithms.optimize.certificate import Case, Certificate
from shoal.algorithms.optimize.column_generation import ColumnGeneration, GenerationLimits
from shoal.algorithms.optimize.cuts import Cuts, no_cuts, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.lower_bounds import lower_bound
from shoal.algorithms.optimize.master import Master
from shoal.algorithms.optimize.pricing import distances, enumerate_groups
from shoal.algorithms.optimize.relaxation_rounding import round_groups
from shoal.algorithms.partition import find_groups
from shoal.core.measures import partition_of, sse
from shoal.core.progress import STOP, fresh_state


def partitions(n, k):
    """All partitions into groups of at least k records, as labels."""

    def extend(labels, sizes):
        if len(labels) == n:
            if min(sizes) >= k:
                yield np.array(labels)
            return
        for g in range(len(sizes) + 1):
            more = [*sizes, 0] if g == len(sizes) else sizes
            yield from extend([*labels, g], [size + (h == g) for h, size in enumerate(more)])

    yield from extend([], [])


@pytest.mark.parametrize("seed", range(4))
def test_multipliers_of_decisions_prove_a_bound_for_their_case_and_no_group_is_missed(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(9, 2)) + 1e9 * (seed == 3)
    decisions = [(0, 1, 1), (2, 5, 0), (3, 7, int(seed % 2))]
    rows = Cuts.deciding(decisions).priced(random.normal(0, 0.8, 3))
    cuts = random_cuts(random, 9, 6).priced(random.uniform(0, 0.3, 6)).join(rows)
    duals = random.normal(0.4, 0.2, 9)
    D = distances(X)
    for size in (3, 4, 5):
        every = all_groups(X, size)
        wanted = np.flatnonzero(reduced_costs(every, duals, cuts) <= 0.1)
        found = enumerate_groups(D, 2, duals, cuts, size, 0.1, **LIMITS, state=fresh_state())
        assert {every[j].tobytes() for j in wanted} <= {group.tobytes() for group in found.groups}
    bound = lower_bound(X, D, 3, duals, cuts, **LIMITS, state=fresh_state())
    inside = [p for p in partitions(9, 3) if all((p[i] == p[j]) == decided for i, j, decided in decisions)]
    assert bound.value <= min(sse(X, labels) for labels in inside)
    by_hand = (
        sum(duals) - float(cuts.worth[:6].sum()) - sum(p for p, d in zip(rows.price, rows.decided, strict=True) if d)
    )
    assert bound.value <= by_hand + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_master_problem_keeps_to_decisions_and_forgets_columns_and_cuts(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(9, 2))
    columns = all_groups(X, 3).join(all_groups(X, 4))
    master = Master(9, columns, no_cuts(), lambda: False, unit=1.0, deadline=np.inf)

    def expected(decisions):
        inside = np.array([[i in master.columns[j] for j in range(len(master.columns))] for i in range(9)], dtype=float)
        both = [inside[i] * inside[j] for i, j, _ in decisions]
        right = [*np.ones(9), *(decided for _, _, decided in decisions)]
        return linprog(master.columns.cost, A_eq=np.vstack([inside, *both]), b_eq=right).fun

    pairs = random.choice(9, (2, 2), replace=False)
    for decisions in ([(*pairs[0], 1)], [(*pairs[0], 0), (*pairs[1], 1)], [], [(*pairs[1], 0)]):
        master.cut(random_cuts(random, 9, 3))
        master.solve()
        master.drop(np.flatnonzero(master.cuts.decided < 0))
        master.decide(decisions, penalty=100.0)
        found = master.solve()
        assert not master.broken
        assert found.value == pytest.approx(expected(decisions))
        assert found.duals.sum() - found.cuts.worth.sum() == pytest.approx(found.value)
        assert reduced_costs(master.columns, found.duals, found.cuts).min() >= -1e-6
        trial = master.trial((0, 8, 1), 10**6)
        assert trial >= found.value - 1e-9
        assert master.solve().value == pytest.approx(found.value)
        # A solution does not change without the columns that it does not need.
        near = np.argsort(reduced_costs(master.columns, found.duals, found.cuts), kind="stable")[:-10]
        others = master.keep(np.sort(near))
        assert len(others) == 10
        assert master.solve().value == pytest.approx(found.value)


def unfinished(proof, eager):
    """Skip the integer programme."""
    return False


def rounding(generation):
    """Return an improvement that rounds the solution of a case: its groups without fractions."""

    def improve(x, eager):
        generation.offer(
            round_groups(generation.X, generation.k, generation.master.columns, x, state=generation.state, threads=1)
        )

    return improve


def start(X, k, labels):
    """Return a column generation with one partition and its solved relaxation, without cuts."""
    own, partition = groups_in(labels), partition_of(X, labels)
    generation = ColumnGeneration(
        X, k, partition, GroupColumns.of(X, own), len(own), fresh_state(), GenerationLimits(rounds=0)
    )
    generation.run()
    return generation


@pytest.mark.parametrize(("n", "k", "seed"), [(8, 2, 0), (9, 2, 1), (10, 3, 2), (11, 3, 3), (10, 4, 4), (11, 5, 5)])
@pytest.mark.parametrize("rounds", [0, 4])
def test_branching_proves_the_optimum_of_tiny_tables(monkeypatch, n, k, seed, rounds):
    monkeypatch.setattr(branch_and_bound, "_ROUNDS", rounds)
    X = np.random.default_rng(seed).normal(size=(n, 2)).round(1)
    generation = start(X, k, shoal.partition(X, k))
    improve = rounding(generation)
    result = branch(generation, generation.best, finish=unfinished, improve=improve, until=np.inf, limit=500)
    optimum = best_partition(X, k)
    assert result.closed
    assert sse(X, generation.partition.labels) == pytest.approx(optimum)
    cases = tuple(Case(one.decisions, one.proof.duals, one.proof.cuts) for one in result.every)
    claim = Certificate(k, generation.best.duals, no_cuts(), optimum * (1 - 1e-6), cases=cases)
    check = shoal.verify_bound(X, k, claim)
    assert check.valid
    assert check.proven <= optimum


@pytest.fixture
def no_rounds(monkeypatch):
    """No cuts, which would close the gaps of small tables alone."""
    monkeypatch.setattr(branch_and_bound, "_ROUNDS", 0)


@pytest.fixture
def divided(no_rounds):
    """A table whose relaxation leaves a gap, and its certificate by cases."""
    X = np.random.default_rng(5).normal(size=(60, 2))
    labels = shoal.partition(X, 2)
    generation = start(X, 2, labels)
    root = generation.best
    improve = rounding(generation)
    result = branch(generation, root, finish=unfinished, improve=improve, until=np.inf, limit=500)
    cases = tuple(Case(one.decisions, one.proof.duals, one.proof.cuts) for one in result.every)
    assert len(cases) > 2
    bound = sse(X, generation.partition.labels) * (1 - 1e-6)
    return X, root, Certificate(2, root.duals, root.cuts, bound, cases=cases)


def test_cases_prove_more_than_the_relaxation(divided):
    X, root, certificate = divided
    assert root.value < certificate.bound
    assert shoal.verify_bound(X, 2, certificate)
    assert not shoal.verify_bound(X, 2, replace(certificate, cases=()))


def test_altered_cases_are_rejected(divided):
    X, _, certificate = divided
    cases = certificate.cases
    for left in range(len(cases)):
        few = replace(certificate, cases=cases[:left] + cases[left + 1 :])
        assert "cover" in shoal.verify_bound(X, 2, few).reason
    at = next(c for c, case in enumerate(cases) if (case.cuts.decided >= 0).any())
    for altered, reason in [
        (np.where(cases[at].cuts.decided >= 0, 1 - cases[at].cuts.decided, -1), "a decision that it does not make"),
        (np.where(cases[at].cuts.decided >= 0, 2, -1), "a decision that it does not make"),
    ]:
        wrong = replace(cases[at], cuts=replace(cases[at].cuts, decided=altered))
        changed = replace(certificate, cases=(*cases[:at], wrong, *cases[at + 1 :]))
        assert reason in shoal.verify_bound(X, 2, changed).reason
    three = Cuts.of([((0, 1, 2), (1, 1, 1), 2)]).priced(np.array([-0.1]))
    wrong = replace(cases[at], cuts=replace(three, decided=np.array([1])))
    changed = replace(certificate, cases=(*cases[:at], wrong, *cases[at + 1 :]))
    assert "a decision that it does not make" in shoal.verify_bound(X, 2, changed).reason
    same = replace(cases[at], decisions=((3, 3, 1),))
    assert "cover" in shoal.verify_bound(X, 2, replace(certificate, cases=(same, same))).reason


def test_branching_is_bounded_and_can_be_stopped(no_rounds):
    X = np.random.default_rng(5).normal(size=(60, 2))
    labels = shoal.partition(X, 2)
    bounds = []
    for most in (1, 2, 4, 8):
        generation = start(X, 2, labels)
        improve = rounding(generation)
        result = branch(generation, generation.best, finish=unfinished, improve=improve, until=np.inf, limit=most)
        assert len(result.every) <= most
        bounds.append(min(one.proof.value for one in result.every))
    assert all(a <= b for a, b in pairwise(bounds))
    assert bounds[0] < bounds[-1]
    generation = start(X, 2, labels)
    generation.state[STOP] = 1
    improve = rounding(generation)
    result = branch(generation, generation.best, finish=unfinished, improve=improve, until=np.inf, limit=8)
    assert [one.decisions for one in result.every] == [()]
    assert not result.closed


def test_groups_that_keep_to_decisions():
    every = GroupColumns.of(np.zeros((4, 1)), [np.array(group) for group in ([0, 1], [0, 2], [2, 3], [0, 1, 2, 3])])
    assert proof._keeping(every, [(0, 1, 1)]).tolist() == [True, False, True, True]
    assert proof._keeping(every, [(0, 1, 1), (1, 3, 0)]).tolist() == [True, False, True, False]


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize("seed", range(3))
def test_search_ends_in_cases_with_the_optimum(monkeypatch, no_rounds, few, seed):
    monkeypatch.setattr(proof, "_FEW", few)
    monkeypatch.setattr(proof, "_prove_optimal", lambda *_: (False, 0))
    monkeypatch.setattr(ColumnGeneration, "run", lambda self: self.relax(1e-9))
    X = np.random.default_rng(seed).normal(size=(10, 2)).round(1)
    outcome = find_groups(X, 3, "search", steps=10, seed=0, bound=True)
    optimum = best_partition(X, 3)
    assert outcome.status == "optimal"
    assert sse(X, outcome.labels) == pytest.approx(optimum)
    assert optimum * (1 - 1e-6) <= outcome.bound <= sse(X, outcome.labels)
    check = shoal.verify_bound(X, 3, outcome.certificate)
    assert check.valid
    assert check.proven <= optimum
    assert few or check.proven >= optimum * (1 - 1e-6)
