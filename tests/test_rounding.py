"""Rounding: the groups kept from a fractional solution, and the gain of a search."""

import numpy as np
import pytest
from test_bounds import all_groups
from test_search import best_partition

from shoal.algorithms.optimize import proof, relaxation_rounding
from shoal.algorithms.optimize import search as search_module
from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.relaxation_rounding import KEPT, improve_near, round_groups, round_relaxation
from shoal.algorithms.partition import find_groups
from shoal.core.measures import canonical_labels, group_sizes, sse
from shoal.core.progress import STOP, fresh_state


def plainly_kept(groups, x):
    """The groups near one that share no record with another of them."""
    near = [set(group.tolist()) for group, value in zip(groups, x, strict=True) if value > KEPT]
    return [group for group in near if not any(group & other for other in near if other is not group)]


@pytest.mark.parametrize("seed", range(40))
def test_groups_near_one_are_kept_and_the_rest_is_grouped(monkeypatch, seed):
    monkeypatch.setattr(relaxation_rounding, "ENOUGH", 0.0)
    random = np.random.default_rng(seed)
    n, k = int(random.integers(8, 40)), int(random.integers(2, 4))
    X = random.normal(size=(n, 2))
    order = random.permutation(n)
    # Disjoint groups, which leave few or no records, and overlapping ones.
    apart = [np.sort(order[i : i + k]) for i in range(0, n - k + 1, k)]
    groups = apart + [np.sort(random.choice(n, k, replace=False)) for _ in range(int(random.integers(0, 4)))]
    x = np.where(random.uniform(size=len(groups)) < 0.8, 1.0, random.uniform(size=len(groups)))
    labels = round_groups(X, k, GroupColumns.of(X, groups), x, state=fresh_state(), threads=1)
    found = [set(group.tolist()) for group in groups_in(labels)]
    expected = plainly_kept(groups, x)
    gone = [group for group in expected if group not in found]
    assert group_sizes(labels).min() >= k
    # One group may be dissolved if fewer than k records remain; an empty rest has no group either.
    left = n - sum(map(len, expected))
    assert len(gone) <= (left < k)


def test_a_solution_far_from_integers_is_not_rounded():
    X = np.arange(12.0)[:, None]
    halves = GroupColumns.of_rows(X, np.arange(12).reshape(4, 3))
    assert round_groups(X, 3, halves, np.full(4, 0.5), state=fresh_state(), threads=1) is None
    assert round_groups(X, 3, halves, np.array([0.9, 0.5, 0.5, 0.5]), state=fresh_state(), threads=1) is not None


def test_the_relaxation_rounds_to_one_partition_with_any_number_of_threads():
    X = np.random.default_rng(1).uniform(size=(900, 3))
    start = find_groups(X, 3, "mdav").labels
    one, two = (round_relaxation(X, 3, start, state=fresh_state(), seconds=None, threads=t) for t in (1, 2))
    assert (one == two).all()
    assert group_sizes(one).min() >= 3
    assert sse(X, one) < sse(X, start)


def test_copies_and_a_stop_give_no_solution():
    X = np.random.default_rng(1).uniform(size=(300, 2))
    copies = np.vstack([X, *[X[:5]] * 9])
    state = fresh_state()
    assert round_relaxation(copies, 3, np.arange(len(copies)) // 3, state=state, seconds=None, threads=1) is None
    state[STOP] = 1
    assert round_relaxation(X, 3, np.arange(300) // 3, state=state, seconds=None, threads=1) is None


@pytest.mark.parametrize("bound", [False, True])
def test_a_search_gains_by_it(monkeypatch, bound):
    monkeypatch.setattr(search_module, "REGION", 1000)
    X = np.random.default_rng(2).uniform(size=(2400, 4))
    options = {"steps": 60 * len(X), "seed": 0, "bound": bound, "threads": 1}
    with_it = find_groups(X, 3, "search", **options)
    again = find_groups(X, 3, "search", **{**options, "threads": 2})
    monkeypatch.setattr(search_module, "round_relaxation", lambda *_, **__: None)
    monkeypatch.setattr("shoal.algorithms.optimize.sparse.prover.round_generation", lambda *_, **__: None)
    without = find_groups(X, 3, "search", **options)
    assert (with_it.labels == again.labels).all()
    assert with_it.facts["steps"] == without.facts["steps"] <= options["steps"]
    assert sse(X, with_it.labels) < 0.99 * sse(X, without.labels)


@pytest.mark.parametrize("seed", range(5))
def test_a_proof_gains_by_it(monkeypatch, seed):
    X = np.random.default_rng(seed).normal(size=(300, 3))
    options = {"steps": 600, "seed": seed, "bound": True}
    # Integer programmes would find the optimum of so small a table whatever they start from.
    monkeypatch.setattr(proof, "_prove_optimal", lambda *_: (False, 0))
    monkeypatch.setattr(proof, "_CASES", 1)
    with_it = find_groups(X, 3, "search", **options)
    monkeypatch.setattr(search_module, "round_groups", lambda *_, **__: None)
    monkeypatch.setattr(proof, "improve_near", lambda *_, **__: None)
    without = find_groups(X, 3, "search", **options)
    assert with_it.facts["steps"] <= options["steps"]
    assert with_it.bound == pytest.approx(without.bound, rel=1e-4)
    assert sse(X, with_it.labels) < sse(X, without.labels)


@pytest.mark.parametrize("seed", range(20))
def test_differences_of_partition_and_relaxation_are_solved_again(seed):
    random = np.random.default_rng(seed)
    n, k = int(random.integers(6, 10)), int(random.integers(2, 4))
    X = np.vstack([random.normal(size=(n, 2)), 100 + random.normal(size=(k, 2))])
    rest = np.concatenate([np.arange(n) % (n // k), np.full(k, n // k)])
    far = np.arange(n, n + k)
    every = all_groups(X, k)
    for size in range(k + 1, 2 * k):
        every = every.join(all_groups(X, size))
    x = np.array([float(np.array_equal(group, far)) for group in map(every.__getitem__, range(len(every)))])
    limits = {"nodes": 1000, "time_limit": None, "state": fresh_state()}
    found = improve_near(X, rest, every, x, largest=n, **limits)
    # The common group is kept, and the records of all others are grouped optimally.
    labels = rest if found is None else found
    assert (np.diff(labels[far]) == 0).all()
    assert not np.isin(labels[:n], labels[far]).any()
    assert sse(X[:n], canonical_labels(labels[:n])) == pytest.approx(best_partition(X[:n], k))
    assert improve_near(X, rest, every, x, largest=n - 1, **limits) is None
    assert improve_near(X, labels, every, x, largest=n, **limits) is None
