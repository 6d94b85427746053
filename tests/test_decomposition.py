"""Decomposition: its subsets, and that its steps only lose when the paper's do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_search import best_partition

import shoal
from shoal.algorithms.optimize import decomposition as module
from shoal.algorithms.optimize.decomposition import divide
from shoal.algorithms.partition import find_groups
from shoal.core.measures import canonical_labels, group_sizes, information_loss, sse
from shoal.core.progress import STOP, fresh_state


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(1, 60))
def test_subsets_are_as_the_paper_says(data, subsets):
    """Step 4: at most s subsets of whole groups, in order, each closed once it has round(n / s) records."""
    sizes = data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=60))
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    parts = divide(labels, subsets)
    assert len(parts) <= subsets
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert [g for part in parts for g in sorted(set(labels[part].tolist()))] == list(range(len(sizes)))
    least = max(1, int(np.floor(len(labels) / subsets + 0.5)))
    for part in parts[:-1]:
        before = len(part) - sizes[labels[part].max()]
        assert before < least <= len(part)
    # Groups stay together in the last one only if it is short, or there are s subsets already.
    assert len(parts) == subsets or len(parts[-1]) - sizes[-1] < least


def test_a_subset_is_closed_as_soon_as_it_has_enough():
    assert [len(part) for part in divide(np.repeat(np.arange(10), 3), 4)] == [9, 9, 9, 3]
    assert [len(part) for part in divide(np.repeat(np.arange(10), 3), 5)] == [6] * 5
    # round(10 / 4) is 3, not the even number.
    assert [len(part) for part in divide(np.arange(10), 4)] == [3, 3, 3, 1]
    assert [len(part) for part in divide(np.repeat([0, 1, 2], [3, 4, 3]), 2)] == [7, 3]
    # round(12 / 5) is 2: the fifth subset takes what remains.
    assert [len(part) for part in divide(np.repeat(np.arange(6), 2), 5)] == [2, 2, 2, 2, 4]


@pytest.mark.parametrize(("n", "requested", "most"), [(120, 1, 5), (120, 7, 7), (50, 1, 1)])
def test_large_tables_have_more_subsets_than_requested(monkeypatch, n, requested, most):
    monkeypatch.setattr(module, "PROVABLE", 50)
    monkeypatch.setattr(module, "_solve", lambda X, k, *_: canonical_labels(shoal.partition(X, k, "mdav")))
    X = np.random.default_rng(1).normal(size=(n, 2))
    assert find_groups(X, 2, "decomposition", subsets=requested).facts["subsets"] == most


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
    assert outcome.facts["returned"] == "step 7"
    assert information_loss(X, outcome.labels) == pytest.approx(outcome.facts["step 7 loss"])


@pytest.mark.parametrize(("first_swap", "step"), [(True, "step 3"), (False, "step 2")])
def test_the_better_of_the_steps_is_returned(monkeypatch, first_swap, step):
    """Step 5 may be worse than what was divided, and Step 7 need not make up for it."""
    monkeypatch.setattr(module, "_solve", lambda X, *_: np.zeros(len(X), dtype=np.int64))
    X = np.random.default_rng(1).normal(size=(120, 2))
    outcome = find_groups(X, 3, "decomposition", subsets=4, first_swap=first_swap)
    assert outcome.facts["returned"] == step
    assert information_loss(X, outcome.labels) == pytest.approx(outcome.facts[f"{step} loss"])
    assert outcome.facts["step 7 loss"] > outcome.facts[f"{step} loss"]


def test_a_stop_still_returns_whole_groups():
    from shoal.algorithms.registry import find

    X = np.random.default_rng(1).normal(size=(60, 2))
    state = fresh_state()
    state[STOP] = 1
    method = find("decomposition")
    labels = method.run(X, 3, method.read_options({}), state=state).labels
    assert group_sizes(np.asarray(labels)).min() >= 3


def test_a_time_limit_is_for_all_subsets_together(monkeypatch):
    clock, allowed = [0.0], []

    def solve(X, k, state, seconds):
        allowed.append(seconds)
        clock[0] += 2.0
        return canonical_labels(shoal.partition(X, k, "mdav"))

    X = np.random.default_rng(1).normal(size=(120, 2))
    module._compile()
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "_solve", solve)
    labels = shoal.partition(X, 3, "decomposition", subsets=10, time_limit=5.5)
    # One share more than there are subsets left, ten at first; each takes 2 s, and the fourth does not begin.
    assert allowed == pytest.approx([5.5 / 11, 3.5 / 10, 1.5 / 9])
    assert group_sizes(labels).min() >= 3
    allowed.clear()
    shoal.partition(X, 3, "decomposition", subsets=10, subset_limit=7)
    assert allowed == [7] * 10


def test_a_time_limit_never_makes_the_start_worse():
    X = np.random.default_rng(2).normal(size=(300, 3))
    facts = find_groups(X, 5, "decomposition", subsets=3, time_limit=0.2).facts
    assert facts["step 7 loss"] <= facts["step 5 loss"] <= facts["step 3 loss"] <= facts["step 2 loss"]


def test_duplicates():
    X = np.repeat([[0.0, 1.0], [2.0, 2.0], [5.0, 1.0]], 6, axis=0)
    assert sse(X, shoal.partition(X, 3, "decomposition", subsets=2)) == 0.0


# Tables 1, 2 and 4 of the paper, s = 40.
@pytest.mark.parametrize(
    ("name", "k", "first_swap", "step_5", "step_7"),
    [
        ("tarragona", 3, True, 14.96, 14.85),
        ("tarragona", 3, False, 15.15, 14.95),
        ("tarragona", 5, False, 21.81, 21.18),
        ("census", 3, False, 5.56, 5.19),
    ],
)
def test_losses_of_the_paper(reference, name, k, first_swap, step_5, step_7):
    facts = find_groups(reference(name), k, "decomposition", subsets=40, first_swap=first_swap).facts
    assert facts["step 5 loss"] == pytest.approx(step_5, abs=0.0051)
    assert facts["step 7 loss"] == pytest.approx(step_7, abs=0.0051)
