"""Two-swap: the change of each swap, the paper's figures, and invariants."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.partition import find_groups
from shoal.algorithms.two_swap import _apply, _change, _Swaps, _update_partners, improve, lists_of, start_labels
from shoal.core.measures import canonical_labels, centroids, group_sizes, information_loss, sse
from shoal.core.progress import STOP, fresh_state


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
    _apply(swaps, lists_of(X, labels), 0, j)
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


@pytest.mark.parametrize("variant", ["steepest", "fast"])
def test_a_large_group_does_not_hide_the_gains_of_small_ones(variant):
    X = np.array([1e12, 2e12, 3e12, 0, 10, 0, 10, 0, 10])[:, None]
    better = improve(X, np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), variant=variant, state=fresh_state())
    assert better[[3, 5, 7]].tolist() == [better[3]] * 3
    assert better[[4, 6, 8]].tolist() == [better[4]] * 3


def test_a_centroid_forgets_the_values_that_have_left():
    X = np.array([1e17, 1e17, 1.0, 2.0, 3.0, 1e17])[:, None]
    labels = np.array([0, 0, 0, 1, 1, 1])
    swaps = _Swaps(X, labels.copy(), centroids(X, labels), group_sizes(labels))
    _apply(swaps, lists_of(X, labels), 2, 5)
    assert swaps.centre.ravel().tolist() == [1e17, 2.0]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(6, 30), st.integers(1, 3), st.sampled_from([0.0, 1.0, 1e9, 1e16]), st.integers(1, 5), st.integers(0, 99)
)
@pytest.mark.parametrize("variant", ["steepest", "fast"])
def test_a_second_run_improves_nothing(variant, n, d, offset, values, seed):
    """Whatever the offset, and with values that differ by a few units in the last place."""
    random = np.random.default_rng(seed)
    X = offset + random.integers(0, values + 1, size=(n, d)) / 3
    better = improve(X, random_partition(random, n, 3), variant=variant, state=fresh_state())
    np.testing.assert_array_equal(improve(X, better, variant=variant, state=fresh_state()), better)


@pytest.mark.parametrize("method", ["two-swap", "decomposition"])
def test_a_stratum_with_tiny_spread_ends(tmp_path, method):
    """In a separate process: this used to run forever."""
    rows = ["r,x", "A,0", "A,0", "A,1e18", "B,58", "B,42", "B,35", "B,92", "B,37", "B,27"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "shoal", "mask", "t.csv", "-k", "3", "--by", "r", "-m", method, "-o", "o.csv"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)


@pytest.mark.parametrize("variant", ["steepest", "fast"])
def test_it_starts_from_labels_of_the_user(variant):
    random = np.random.default_rng(8)
    X = random.normal(size=(60, 2))
    start = random_partition(random, 60, 4)
    outcome = find_groups(X, 3, "two-swap", start=(7 + 3 * start).tolist(), variant=variant)
    np.testing.assert_array_equal(
        outcome.labels, canonical_labels(improve(X, start, variant=variant, state=fresh_state()))
    )
    assert outcome.facts["start"] == "labels given"
    assert shoal.mask(X, k=3, method="two-swap", start=start, variant=variant).sizes.min() >= 4


@pytest.mark.parametrize(
    ("start", "rule"),
    [
        ([0, 0, 0, 1, 1], "each of the 6 records"),
        ([[0, 0, 0, 1, 1, 1]], "each of the 6 records"),
        ([[0, 0], [0]], "one per record"),
        ([0, 0, 0, 0, 1, 1], "groups of at least k=3 records, got 2 in the group of record 4"),
        ([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "integers"),
        ("ward", "or one label per record"),
    ],
)
def test_labels_that_are_no_start_are_refused(start, rule):
    with pytest.raises(shoal.InputError, match=r"Option 'start'") as refused:
        shoal.partition(np.arange(6.0), 3, "two-swap", start=start)
    assert rule in str(refused.value)


def test_a_stop_returns_the_start():
    random = np.random.default_rng(7)
    X, labels = random.normal(size=(30, 2)), random_partition(random, 30, 3)
    state = fresh_state()
    state[STOP] = 1
    np.testing.assert_array_equal(improve(X, labels, state=state), labels)


def test_a_stop_ends_the_search_for_partners():
    random = np.random.default_rng(0)
    X, labels, state = random.normal(size=(30, 2)), random_partition(random, 30, 15), fresh_state()
    swaps = _Swaps(X, labels, centroids(X, labels), group_sizes(labels))
    gain, partner = np.zeros(30), np.full(30, -1)
    state[STOP] = 1
    _update_partners(swaps, lists_of(X, labels), np.ones(30, dtype=np.bool_), gain, partner, state)
    assert (partner == -1).all()
    state[STOP] = 0
    _update_partners(swaps, lists_of(X, labels), np.ones(30, dtype=np.bool_), gain, partner, state)
    assert (partner >= 0).any()


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
