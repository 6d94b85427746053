"""Two-swap: the change of each swap, the paper's figures, and what must never happen."""

import numpy as np
import pytest

import shoal
from shoal.algorithms.two_swap import _apply, _change, _Swaps, improve, start_labels
from shoal.measures import canonical_labels, centroids, group_sizes, information_loss, sse
from shoal.progress import STOP, fresh_state


def random_partition(random, n, k):
    return canonical_labels(random.permutation(np.minimum(np.arange(n) // k, n // k - 1)))


def slow_steepest(X, labels):
    """The paper's Figure 1, every SSE computed afresh."""
    labels, current = labels.copy(), sse(X, labels)
    while True:
        best, swap = current, None
        for i in range(len(X)):
            for j in range(i + 1, len(X)):
                trial = labels.copy()
                trial[i], trial[j] = labels[j], labels[i]
                value = sse(X, trial)
                if value < best - 1e-12:
                    best, swap = value, trial
        if swap is None:
            return labels
        labels, current = swap, best


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_change_of_every_swap_is_the_recomputed_one(offset):
    random = np.random.default_rng(1)
    X = random.normal(size=(14, 3)) + offset
    labels = random_partition(random, 14, 3)
    swaps = _Swaps(X, labels.copy(), centroids(X, labels), group_sizes(labels))
    before = sse(X, labels)
    for i in range(14):
        for j in range(14):
            trial = labels.copy()
            trial[i], trial[j] = labels[j], labels[i]
            assert _change(swaps, i, j) == pytest.approx(sse(X, trial) - before, abs=1e-5 if offset else 1e-10)


def test_centroids_follow_a_swap():
    random = np.random.default_rng(2)
    X, labels = random.normal(size=(12, 2)), random_partition(random, 12, 4)
    swaps = _Swaps(X, labels.copy(), centroids(X, labels), group_sizes(labels))
    j = int(np.flatnonzero(labels != labels[0])[0])
    _apply(swaps, 0, j)
    assert swaps.label[0] == labels[j]
    np.testing.assert_allclose(swaps.centre, centroids(X, swaps.label), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_steepest_takes_the_same_way_as_the_papers_loop(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(22, 2))
    labels = random_partition(random, 22, 3)
    fast = improve(X, labels, state=fresh_state())
    np.testing.assert_array_equal(fast, slow_steepest(X, labels))


@pytest.mark.parametrize("variant", ["steepest", "fast"])
def test_sizes_stay_and_the_loss_falls(variant):
    random = np.random.default_rng(5)
    X = random.normal(size=(300, 4))
    labels = random_partition(random, 300, 7)
    better = improve(X, labels, variant=variant, state=fresh_state())
    np.testing.assert_array_equal(group_sizes(better), group_sizes(labels))
    assert sse(X, better) < 0.7 * sse(X, labels)


@pytest.mark.parametrize("variant", ["steepest", "fast"])
def test_duplicates_and_constant_columns_end(variant):
    X = np.column_stack([np.repeat([0.0, 1.0, 1e9], 6), np.full(18, 3.0)])
    labels = shoal.partition(X, 3, "two-swap", start="mdav", variant=variant)
    assert sse(X, labels) == 0.0


def test_a_stop_returns_the_start():
    random = np.random.default_rng(7)
    X, labels = random.normal(size=(30, 2)), random_partition(random, 30, 3)
    state = fresh_state()
    state[STOP] = 1
    np.testing.assert_array_equal(improve(X, labels, state=state), labels)


@pytest.mark.parametrize(
    ("name", "k", "loss"),
    [
        ("tarragona", 3, 15.00),
        ("tarragona", 5, 20.74),
        ("tarragona", 10, 30.77),
        ("census", 3, 5.25),
        ("census", 5, 8.12),
        ("census", 10, 12.36),
    ],
)
def test_castro_step_3(reference, name, k, loss):
    X = reference(name)
    labels, _ = start_labels(X, k, "best", fresh_state())
    assert information_loss(X, improve(X, labels, state=fresh_state())) == pytest.approx(loss, abs=0.005)
