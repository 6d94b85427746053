"""The minimum spanning tree against slow, obvious ones, on ties, duplicates and odd shapes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

import shoal
from shoal.algorithms.spanning_tree import find_tree
from shoal.core.errors import InputError
from shoal.core.progress import STOP, fresh_state
from shoal.kernels.distances import NO_RECORD
from shoal.kernels.kdtree import LEAF, build, neighbours

ALGORITHMS = ("boruvka", "prim")


def slow_edges(X):
    """Kruskal over all pairs, by (distance, lower, higher record number)."""
    n = len(X)
    pairs = [(float(np.square(X[i] - X[j]).sum()), i, j) for i in range(n) for j in range(i + 1, n)]
    home = list(range(n))
    chosen = []
    for square, i, j in sorted(pairs):
        if home[i] != home[j]:
            old, new = home[j], home[i]
            home = [new if h == old else h for h in home]
            chosen.append((square, i, j))
    return chosen


def slow_prim_weight(X):
    """Prim's method as the paper states it, one distance at a time."""
    left = set(range(1, len(X)))
    reach = {i: np.linalg.norm(X[i] - X[0]) for i in left}
    weight = 0.0
    while left:
        nearest = min(left, key=reach.__getitem__)
        weight += reach[nearest]
        left.remove(nearest)
        for i in left:
            reach[i] = min(reach[i], np.linalg.norm(X[i] - X[nearest]))
    return weight


def check_tree(X, tree):
    n = len(X)
    assert tree.ends.shape == (n - 1, 2)
    assert tree.records == n
    assert (tree.ends[:, 0] < tree.ends[:, 1]).all()
    graph = np.zeros((n, n))
    graph[tree.ends[:, 0], tree.ends[:, 1]] = 1
    assert connected_components(graph, directed=False)[0] == 1
    assert np.allclose(tree.lengths, np.linalg.norm(X[tree.ends[:, 0]] - X[tree.ends[:, 1]], axis=1))
    assert (np.diff(tree.lengths) <= 0).all()


small = st.integers(2, 45).flatmap(
    lambda n: st.integers(1, 4).flatmap(lambda d: arrays(float, (n, d), elements=st.integers(0, 4).map(float)))
)


@settings(max_examples=100, deadline=None)
@given(small)
def test_ties_and_duplicates_give_the_weight_of_slow_prim(X):
    weight = slow_prim_weight(X)
    trees = [shoal.spanning_tree(X, algorithm, threads=1) for algorithm in ALGORITHMS]
    for tree in trees:
        check_tree(X, tree)
        assert tree.weight == pytest.approx(weight)
    assert (trees[0].ends == trees[1].ends).all()


@settings(max_examples=60, deadline=None)
@given(small)
def test_ties_go_to_the_lowest_record_numbers(X):
    X = np.unique(X, axis=0)
    if len(X) < 2:
        return
    expected = sorted(slow_edges(X), key=lambda edge: (-edge[0], edge[1], edge[2]))
    for algorithm in ALGORITHMS:
        tree = shoal.spanning_tree(X, algorithm)
        assert tree.ends.tolist() == [[i, j] for _, i, j in expected]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("n", "d"), [(2, 1), (3, 2), (LEAF, 2), (LEAF + 1, 3), (700, 1), (900, 2), (900, 5), (600, 20), (40, 100)]
)
def test_weight_of_scipy_on_the_full_graph(algorithm, n, d):
    X = np.random.default_rng(n + d).normal(size=(n, d))
    tree = shoal.spanning_tree(X, algorithm)
    check_tree(X, tree)
    assert tree.weight == pytest.approx(minimum_spanning_tree(squareform(pdist(X))).sum(), rel=1e-12)


def clustered(rng, c, y, d, sigma):
    return np.repeat(rng.uniform(-1, 1, (c, d)), y, axis=0) + rng.normal(0, sigma, (c * y, d))


@pytest.mark.parametrize(
    "X",
    [
        clustered(np.random.default_rng(1), 40, 60, 6, 0.02),
        np.random.default_rng(2).lognormal(sigma=3, size=(3000, 3)),
        np.stack(np.meshgrid(np.arange(50.0), np.arange(50.0)), axis=-1).reshape(-1, 2),
        np.round(np.random.default_rng(3).normal(size=(3000, 2)), 1),
        1e9 + np.random.default_rng(4).normal(size=(2000, 3)),
    ],
    ids=["clusters", "skewed", "grid", "duplicates", "offset"],
)
def test_all_algorithms_give_one_tree(X):
    trees = [shoal.spanning_tree(X, "boruvka", threads=t) for t in (1, 2, 5)]
    trees.append(shoal.spanning_tree(X, "prim"))
    for tree in trees:
        assert (tree.ends == trees[0].ends).all()
        assert (tree.lengths == trees[0].lengths).all()


def test_a_large_offset_loses_no_digit():
    # Steps of 2^-20 at 1e9 are exact in float64.
    X = np.random.default_rng(5).integers(0, 2**20, (1500, 2)) * 2.0**-20
    near, far = (shoal.spanning_tree(Y, "boruvka") for Y in (X, X + 1e9))
    assert (near.ends == far.ends).all()
    assert (near.lengths == far.lengths).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e304])
def test_squares_that_leave_the_range_of_numbers(scale):
    X = np.random.default_rng(6).uniform(-1, 1, (300, 2))
    for algorithm in ALGORITHMS:
        tree = shoal.spanning_tree(X * scale, algorithm)
        assert tree.weight == pytest.approx(shoal.spanning_tree(X).weight * scale, rel=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_many_equal_records_are_a_chain(algorithm):
    X = np.tile([[1.0, 2.0]], (50_000, 1))
    X[::2] *= -0.0  # 0.0 and −0.0 are one value
    X[::4] = 0.0
    tree = shoal.spanning_tree(X, algorithm)
    assert tree.weight == pytest.approx(np.sqrt(5))
    assert np.bincount(tree.ends.ravel()).max() <= 3


def test_one_record():
    tree = shoal.spanning_tree([[1.0, 2.0]])
    assert tree.ends.shape == (0, 2)
    assert repr(tree) == "SpanningTree(records=1, weight=0)"


def test_bad_records_are_refused():
    with pytest.raises(InputError, match="finite"):
        shoal.spanning_tree([[1.0], [np.nan]])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_stop_still_returns_a_tree(algorithm):
    X = np.random.default_rng(0).random((500, 2))
    X[::7] = X[0]
    state = fresh_state()
    state[STOP] = 1
    check_tree(X, find_tree(X, algorithm, 1, state))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 300), st.integers(1, 5), st.integers(1, 9), st.booleans(), st.integers(0, 2**32 - 1))
def test_neighbours_against_scipy(n, d, wanted, rounded, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X = np.round(X) if rounded else X
    wanted = min(wanted, n - 1)
    tree = build(X)
    near, places = np.empty((n, wanted)), np.empty((n, wanted), dtype=np.int64)
    neighbours(tree, 0, len(tree.leaves), near, places, fresh_state())
    assert sorted(tree.ids[:n].tolist()) == list(range(n))
    assert (tree.ids[n:] == NO_RECORD).all()
    expected, _ = cKDTree(tree.rows).query(tree.rows, wanted + 1)
    assert np.allclose(np.sqrt(near), expected[:, 1:])
    squares = np.square(tree.rows[:, None] - tree.rows[places]).sum(axis=2)
    assert np.allclose(near, squares)
    assert (places != np.arange(n)[:, None]).all()
