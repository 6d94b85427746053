"""Projection and path: the optimum for an order against all partitions, and the orders against slow ones."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import shoal
from shoal.algorithms.mst import preorder
from shoal.algorithms.partition import find_groups
from shoal.algorithms.path import _maximum_distance, _nearest_point_next
from shoal.algorithms.record_order import group_in_order
from shoal.algorithms.tour import _improve, _move, _reverse, tour
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, group_sizes, information_loss, sse
from shoal.core.progress import STOP, fresh_state

ORDERS = [("projection", o) for o in ("component", "scores", "column", "best")]
ORDERS += [("path", o) for o in ("tour", "nearest", "maximum", "best")]


def least_sse_of_runs(X, k):
    """Try every way of cutting the rows into runs of at least k."""
    if len(X) < k:
        return 0.0 if len(X) == 0 else np.inf
    whole = sse(X, np.zeros(len(X), dtype=int))
    cuts = range(k, len(X) - k + 1)
    return min([whole] + [sse(X[:c], np.zeros(c, dtype=int)) + least_sse_of_runs(X[c:], k) for c in cuts])


records = st.tuples(st.integers(2, 13), st.integers(1, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.one_of(st.integers(0, 4).map(float), st.floats(-9, 9)))
)


@settings(max_examples=80, deadline=None)
@given(records, st.integers(2, 5), st.randoms(use_true_random=False))
def test_the_grouping_is_the_best_for_the_order(X, k, random):
    if len(X) < k:
        return
    order = list(range(len(X)))
    random.shuffle(order)
    order = np.array(order)
    labels = group_in_order(X, order, k, fresh_state())
    runs = labels[order]
    sizes = group_sizes(labels)
    assert k <= sizes.min()
    assert sizes.max() < 2 * k
    assert (np.diff(runs) != 0).sum() == len(sizes) - 1
    assert sse(X, labels) == pytest.approx(least_sse_of_runs(X[order], k), abs=1e-9)


def test_the_grouping_is_exact_for_a_large_offset_and_a_long_column():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**16, (3000, 3)) * 2.0**-16
    order = np.argsort(X[:, 0], kind="stable")
    near, far = (group_in_order(Y, order, 4, fresh_state()) for Y in (X, X + 1e9))
    assert (near == far).all()
    # The recurrence written with exact prefix sums of whole numbers.
    whole = (X[order] * 2**16).astype(object)
    totals = np.vstack([np.zeros((1, 3), dtype=object), np.cumsum(whole, axis=0)])
    squares = np.concatenate([[0], np.cumsum((whole**2).sum(axis=1))])
    length = [0.0] + [np.inf] * len(X)
    for j in range(4, len(X) + 1):
        for i in range(max(0, j - 7), j - 3):
            arc = float(squares[j] - squares[i]) - float(((totals[j] - totals[i]) ** 2).sum()) / (j - i)
            length[j] = min(length[j], length[i] + arc)
    assert sse(X, near) == pytest.approx(length[-1] / 2**32, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_one_column_is_the_univariate_optimum(n, k, seed):
    if n < k:
        return
    X = np.round(np.random.default_rng(seed).normal(size=n), 1)
    optimum = sse(X[:, None], shoal.partition(X, k, "univariate"))
    for order in ("component", "scores", "column", "best"):
        assert sse(X[:, None], shoal.partition(X, k, "projection", order=order)) == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize(("method", "order"), ORDERS)
def test_edge_cases(method, order):
    rng = np.random.default_rng(0)
    cases = [
        (rng.normal(size=(7, 3)), 7),
        (rng.normal(size=(2, 1)), 2),
        (rng.normal(size=(3, 1)), 2),
        (rng.normal(size=(4, 2)), 2),
        (np.ones((25, 2)), 3),
        (np.repeat(rng.normal(size=(3, 2)), 9, axis=0), 4),
        (rng.normal(size=50), 4),
        (rng.normal(size=(12, 40)), 3),
        (rng.integers(0, 3, (80, 2)).astype(float), 5),
        (1e9 + rng.normal(size=(60, 2)), 3),
        (1e150 * rng.normal(size=(60, 2)), 3),
    ]
    for X, k in cases:
        sizes = group_sizes(shoal.partition(X, k, method, order=order))
        assert k <= sizes.min()
        assert sizes.max() < 2 * k


@pytest.mark.parametrize("method", ["projection", "path"])
def test_the_best_order_is_kept_and_named(method):
    X = np.random.default_rng(3).normal(size=(150, 3)) * [1, 4, 2]
    losses = {o: information_loss(X, shoal.partition(X, 4, method, order=o)) for m, o in ORDERS if m == method}
    assert losses["best"] == min(losses.values())
    assert find_groups(X, 4, method, order="best").facts["order"] in {
        "tour",
        "nearest",
        "maximum",
        "component",
        "column 1",
    }


def test_the_component_finds_the_long_axis():
    t = np.random.default_rng(4).permutation(60.0 * np.arange(60))
    X = np.outer(t, [3.0, -4.0]) + np.random.default_rng(5).normal(size=(60, 2))
    labels = shoal.partition(X, 3, "projection", order="component")
    assert (labels == canonical_labels(shoal.partition(t, 3, "univariate"))).all()


def test_a_chosen_column():
    X = np.random.default_rng(6).normal(size=(40, 3))
    labels = shoal.partition(X, 3, "projection", order="column", column=2)
    assert (np.diff(labels[np.argsort(X[:, 2])]) != 0).sum() == labels.max()
    with pytest.raises(InputError, match="below the number of columns, 3, got 3"):
        shoal.partition(X, 3, "projection", order="column", column=3)


@settings(max_examples=50, deadline=None)
@given(records)
def test_nearest_point_next_against_the_slow_one(X):
    centre = X.mean(axis=0)
    order = _nearest_point_next(X, fresh_state())
    reach = np.square(X - centre).sum(axis=1)
    assert reach[order[0]] == pytest.approx(reach.max())
    left = set(range(len(X))) - {order[0]}
    for a, b in pairwise(order):
        squares = {i: float(np.square(X[a] - X[i]).sum()) for i in left}
        assert squares[b] == pytest.approx(min(squares.values()))
        left.remove(b)
    assert not left


@pytest.mark.parametrize(("n", "k"), [(60, 3), (63, 3), (80, 5), (47, 4)])
def test_maximum_distance_holds_the_groups_of_d(n, k):
    X = np.random.default_rng(n).normal(size=(n, 3))
    order = _maximum_distance(X, k, fresh_state())
    assert sorted(order) == list(range(n))
    gaps = np.square(X[:, None] - X[None]).sum(axis=2)
    assert gaps[order[0], order[-1]] == gaps.max()
    # Here n leaves nothing or a whole group in the middle, so D's groups are runs of the order.
    assert n % (2 * k) == 0 or n % (2 * k) >= k
    by_path, by_d = shoal.partition(X, k, "path", order="maximum"), shoal.partition(X, k, "diameter")
    assert sse(X, by_path) <= sse(X, by_d) + 1e-9


def path_length(X, order):
    return np.linalg.norm(np.diff(X[order], axis=0), axis=1).sum()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 70), st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_tour_is_no_longer_than_the_walk_it_starts_from(n, d, rounded, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X = np.round(X) if rounded else X
    order = tour(X, fresh_state())
    assert sorted(order) == list(range(n))
    tree = shoal.spanning_tree(X)
    # A closed walk around the tree is at most twice its weight; a path is no shorter than the tree.
    assert tree.weight - 1e-9 <= path_length(X, order) <= 2 * tree.weight + 1e-9
    if d == 1:
        assert path_length(X, order) <= 2 * np.ptp(X) + 1e-9


def test_the_tour_is_a_good_one():
    # Beardwood, Halton and Hammersley: the shortest tour of n random records in the unit square is near 0.7124 √n.
    X = np.random.default_rng(8).random((5000, 2))
    walk = preorder(shoal.spanning_tree(X).ends)[0]
    length = path_length(X, tour(X, fresh_state()))
    assert length < 0.8 * path_length(X, walk)
    assert length < 1.12 * 0.7124 * np.sqrt(5000)


def same_circle(a, b):
    a, b = list(a), list(b)
    turns = [b[i:] + b[:i] for i in range(len(b))]
    return a in turns or a[::-1] in turns


@settings(max_examples=150, deadline=None)
@given(st.integers(5, 14), st.data())
def test_moves_of_the_tour_against_lists(n, data):
    at = np.array(data.draw(st.permutations(range(n))))
    step = np.argsort(at)
    old = at.tolist()
    first, last = (data.draw(st.integers(0, n - 1)) for _ in range(2))
    turned = old[first:] + old[:first]
    inside = (last - first) % n + 1
    _reverse(at, step, first, last)
    assert same_circle(at, turned[:inside][::-1] + turned[inside:])
    assert (step == np.argsort(at)).all()

    old = at.tolist()
    size = data.draw(st.integers(1, 3))
    flip = data.draw(st.booleans())
    turned = old[first:] + old[:first]
    segment, rest = turned[:size], turned[size:]
    after = data.draw(st.sampled_from(rest))
    _move(at, step, first, size, after, flip)
    spot = rest.index(after) + 1
    assert same_circle(at, rest[:spot] + (segment[::-1] if flip else segment) + rest[spot:])
    assert (step == np.argsort(at)).all()


@pytest.mark.parametrize(("method", "order"), ORDERS)
def test_a_stop_still_returns_groups(method, order):
    from shoal.algorithms.registry import find

    X = np.random.default_rng(9).normal(size=(700, 2))
    state = fresh_state()
    state[STOP] = 1
    entry = find(method)
    labels = entry.run(X, 3, entry.read_options({"order": order}), state=state).labels
    assert group_sizes(canonical_labels(labels)).min() >= 3


def test_a_stopped_tour_is_complete():
    from shoal.kernels.kdtree import build

    X = np.random.default_rng(10).normal(size=(50, 2))
    tree = build(X)
    state = fresh_state()
    state[STOP] = 1
    near = np.zeros((50, 1), dtype=np.int64)
    assert sorted(_improve(tree, near, np.arange(50), state)) == list(range(50))


def test_a_tour_beats_the_axes_on_reference_data(reference):
    X = reference("census")
    losses = {m: information_loss(X, shoal.partition(X, 3, m)) for m in ("path", "projection", "mdav")}
    assert losses["path"] < losses["mdav"] < losses["projection"]
