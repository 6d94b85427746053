"""Decomposition: its subsets, and that its steps only lose when the paper's do."""

import numpy as np
import pytest
from test_search import best_partition

import shoal
from shoal.algorithms.optimize import decomposition as module
from shoal.algorithms.optimize.decomposition import divide
from shoal.algorithms.partition import find_groups
from shoal.core.measures import canonical_labels, group_sizes, sse
from shoal.core.progress import STOP, fresh_state


@pytest.mark.parametrize("subsets", [1, 2, 7, 40, 1000])
def test_subsets_hold_whole_groups_and_every_record_once(subsets):
    labels = shoal.partition(np.random.default_rng(0).normal(size=(200, 2)), 3)
    parts = divide(labels, subsets)
    assert len(parts) <= subsets
    assert sorted(np.concatenate(parts).tolist()) == list(range(200))
    assert sum(len(set(labels[part])) for part in parts) == len(set(labels))
    assert all(len(part) >= round(200 / subsets) for part in parts[:-1])


def test_one_subset_of_a_tiny_table_is_its_optimum():
    X = np.random.default_rng(5).normal(size=(10, 2))
    labels = shoal.partition(X, 3, "decomposition", subsets=1)
    assert sse(X, labels) == pytest.approx(best_partition(X, 3))


@pytest.mark.parametrize("first_swap", [True, False])
def test_every_step_is_reported_and_the_last_is_the_result(first_swap):
    X = np.random.default_rng(1).normal(size=(120, 2))
    outcome = find_groups(X, 3, "decomposition", subsets=4, first_swap=first_swap, time_limit=20)
    assert group_sizes(outcome.labels).min() >= 3
    assert ("step 3 loss" in outcome.facts) == first_swap
    assert outcome.facts["step 7 loss"] <= outcome.facts["step 5 loss"] <= outcome.facts["step 2 loss"]
    assert sse(X, outcome.labels) < 0.97 * sse(X, shoal.partition(X, 3, "mdav"))


def test_a_stop_still_returns_whole_groups():
    from shoal.algorithms.registry import find

    X = np.random.default_rng(1).normal(size=(60, 2))
    state = fresh_state()
    state[STOP] = 1
    method = find("decomposition")
    labels = method.run(X, 3, method.read_options({}), state=state).labels
    assert group_sizes(np.asarray(labels)).min() >= 3


def test_a_time_limit_is_for_all_subsets_together(monkeypatch):
    clock, given = [0.0], []

    def solve(X, k, state, seconds):
        given.append(seconds)
        clock[0] += 2.0
        return canonical_labels(shoal.partition(X, k, "mdav"))

    X = np.random.default_rng(1).normal(size=(120, 2))
    module._compile(3)
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "_solve", solve)
    labels = shoal.partition(X, 3, "decomposition", subsets=10, time_limit=5.5)
    # One share more than there are subsets left, for Step 7; each takes 2 s, and the fourth does not begin.
    assert given == pytest.approx([5.5 / 11, 3.5 / 10, 1.5 / 9])
    assert group_sizes(labels).min() >= 3
    given.clear()
    shoal.partition(X, 3, "decomposition", subsets=10, subset_limit=7)
    assert given == [7] * 10


def test_a_time_limit_never_makes_the_start_worse():
    X = np.random.default_rng(2).normal(size=(300, 3))
    facts = find_groups(X, 5, "decomposition", subsets=3, time_limit=0.2).facts
    assert facts["step 7 loss"] <= facts["step 5 loss"] <= facts["step 3 loss"] <= facts["step 2 loss"]


def test_duplicates():
    X = np.repeat([[0.0, 1.0], [2.0, 2.0], [5.0, 1.0]], 6, axis=0)
    assert sse(X, shoal.partition(X, 3, "decomposition", subsets=2)) == 0.0
