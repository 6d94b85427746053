"""Records without a group, in a kd-tree or scanned: every answer equals a full scan, including ties."""

import numpy as np
import plain
import polars as pl
import pytest
import slow
from conftest import reference_path

import shoal
from shoal.algorithms import mdav as mdav_module
from shoal.core.measures import canonical_labels, standardise
from shoal.core.progress import fresh_state
from shoal.kernels import prediction
from shoal.kernels.pool import BUILT, HALVINGS, LEAF, LEVELS, pool_centroid, pool_new, pool_refresh, pool_remove
from shoal.kernels.pool_queries import pool_farthest, pool_farthest_from_centroid, pool_nearest
from shoal.kernels.scan import CHUNK, scan_farthest, scan_nearest, scan_new, scan_remove, scan_score

TABLES = {
    "smooth": lambda rng, n: rng.normal(size=(n, 3)),
    "grid with ties": lambda rng, n: rng.integers(-4, 5, (n, 2)).astype(float),
    "one column": lambda rng, n: rng.integers(0, 50, (n, 1)).astype(float),
    "all equal": lambda _, n: np.full((n, 2), 7.5),
    "many columns": lambda rng, n: rng.normal(size=(n, 20)),
    "near 1e9": lambda rng, n: 1e9 + rng.integers(0, 30, (n, 3)).astype(float),
    "outliers": lambda rng, n: rng.standard_cauchy((n, 2)),
    "outliers in many columns": lambda rng, n: rng.standard_cauchy((n, 5)) ** 3,
    "ties in many columns": lambda rng, n: rng.integers(0, 3, (n, 6)) / 3,
    "hardly different": lambda rng, n: 1 + 1e-9 * rng.integers(0, 9, (n, 4)),
    "beyond float32": lambda rng, n: 1e30 * rng.normal(size=(n, 4)),
    "below float32": lambda rng, n: 1e-30 * rng.normal(size=(n, 4)),
    "all scales": lambda rng, n: 10.0 ** rng.uniform(-40, 14, (n, 5)),
}


@pytest.mark.parametrize("kind", TABLES)
def test_queries_while_records_leave(kind):
    rng = np.random.default_rng(0)
    n = 5 * LEAF + 17
    X = TABLES[kind](rng, n)
    pool = pool_new(X)
    left = set(range(n))
    near, near_ids = np.empty(4), np.empty(4, dtype=np.int64)
    for record in rng.permutation(n)[: n - 4].tolist():
        for point in (X[record], X[rng.integers(n)] + rng.normal(size=X.shape[1])):
            pool_nearest(pool, point, near, near_ids)
            assert near_ids.tolist() == slow.nearest(X, left, point, 4)
            assert near.tolist() == [slow.distance(X[i], point) for i in near_ids]
            assert pool_farthest(pool, point) == slow.farthest(X, left, point)
        centre = pool_centroid(pool)
        assert centre == pytest.approx(X[sorted(left)].mean(axis=0), rel=1e-9, abs=1e-9 * (1 + abs(X).max()))
        assert pool_farthest_from_centroid(pool) == slow.farthest(X, left, centre)
        pool_remove(pool, record)
        left.remove(record)
        assert pool.remaining[0] == len(left)


@pytest.mark.parametrize("kind", TABLES)
def test_queries_in_a_tree_of_several_levels(kind):
    rng = np.random.default_rng(1)
    n = (LEAF << HALVINGS) + 100
    X = TABLES[kind](rng, n)
    pool = pool_new(X)
    assert pool.counts[LEVELS] == 2
    left = set(range(n))
    near, near_ids = np.empty(3), np.empty(3, dtype=np.int64)
    for turn, record in enumerate(rng.permutation(n)[: n - 3].tolist()):
        if turn % 60 == 0:
            for point in (X[record], X[rng.integers(n)] * 1.5):
                pool_nearest(pool, point, near, near_ids)
                assert near_ids.tolist() == slow.nearest(X, left, point, 3)
                assert pool_farthest(pool, point) == slow.farthest(X, left, point)
            assert pool_farthest_from_centroid(pool) == slow.farthest(X, left, pool_centroid(pool))
        pool_remove(pool, record)
        pool_refresh(pool)
        left.remove(record)
    assert pool.counts[BUILT] < n


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "beyond float32"])
def test_scans_while_records_leave(kind):
    rng = np.random.default_rng(2)
    n = 3 * CHUNK + 17
    X = TABLES[kind](rng, n)
    scan = scan_new(X, 4)
    left = set(range(n))
    near, near_ids = np.empty(4), np.empty(4, dtype=np.int64)
    for record in rng.permutation(n)[: n - 4].tolist():
        for point in (X[record], X[rng.integers(n)] + rng.normal(size=X.shape[1])):
            scan_score(scan, point)
            scan_nearest(scan, point, near, near_ids)
            assert near_ids.tolist() == slow.nearest(X, left, point, 4)
            assert near.tolist() == [slow.distance(X[i], point) for i in near_ids]
            assert scan_farthest(scan, point) == slow.farthest(X, left, point)
        scan_remove(scan, record)
        left.remove(record)
        assert set(np.flatnonzero(scan.place >= 0).tolist()) == left
        assert scan.total == pytest.approx(X[sorted(left)].sum(axis=0), rel=1e-9, abs=1e-9 * n * (1 + abs(X).max()))


@pytest.mark.parametrize("name", ["mdav", "centroid"])
def test_methods_over_several_leaves_follow_their_papers(name):
    X = np.random.default_rng(1).integers(-6, 7, (4 * LEAF + 3, 2)).astype(float)
    for k in (2, 5):
        assert np.array_equal(shoal.partition(X, k, name), canonical_labels(getattr(slow, name)(X.tolist(), k)))


@pytest.mark.parametrize("few", [0, 100, mdav_module.FEW])
@pytest.mark.parametrize("d", [1, 2, 5, 8, 12])
def test_mdav_equals_the_plain_loop_at_size(monkeypatch, d, few):
    # With a tree to the end, with a scan of the rest, and as it is.
    monkeypatch.setattr(mdav_module, "FEW", few)
    rng = np.random.default_rng(d)
    for X in (
        rng.normal(size=(6000, d)),
        rng.integers(0, 12, (6000, d)).astype(float),
        rng.lognormal(0, 2, (6000, d)) + 1e9,
    ):
        assert np.array_equal(shoal.partition(X, 4, "mdav"), canonical_labels(plain.mdav(X, 4)))


@pytest.mark.parametrize(
    ("X", "k"),
    [
        (np.full((1000, 2), 1.23456789e33), 3),  # the centroid is rounded by more than float32 can square
        (1e40 * np.random.default_rng(0).normal(size=(6, 2)), 3),
        (1e22 * np.random.default_rng(1).normal(size=(590, 4)), 295),
        (1e-161 * np.random.default_rng(2).normal(size=(5000, 2)), 3),  # squares nearly underflow
    ],
)
def test_mdav_of_numbers_on_the_edge_equals_the_plain_loop(monkeypatch, X, k):
    for few in (1, mdav_module.FEW):
        monkeypatch.setattr(mdav_module, "FEW", few)
        assert np.array_equal(shoal.partition(X, k, "mdav"), canonical_labels(plain.mdav(X, k)))


@pytest.mark.parametrize("k", [3, 10])
def test_mdav_of_a_table_full_of_ties_equals_the_plain_loop(k):
    """Coordinates in hundredths of a degree, values that stop at 500,001; both loops get the same z-scores.

    The last digit of a z-score decides between records that are equally far in the table: MDAV of z-scores with n − 1
    in the place of n is another partition, by any program.
    """
    names = ["longitude", "latitude", "median_house_value"]
    X = pl.read_csv(reference_path("california"), columns=names).select(names).to_numpy().astype(np.float64)
    expected = canonical_labels(plain.mdav(standardise(X), k))
    assert np.array_equal(shoal.mask(X, k=k, method="mdav").labels, expected)


@pytest.mark.parametrize("threads", [2, 9])
@pytest.mark.parametrize("d", [2, 6, 10])
def test_threads_do_not_change_the_groups_of_mdav(monkeypatch, d, threads):
    monkeypatch.setattr(mdav_module, "MANY", 0)
    monkeypatch.setattr(mdav_module, "WIDE", 0)
    monkeypatch.setattr(mdav_module, "FEW", 20)
    rng = np.random.default_rng(d)
    for X in (
        rng.normal(size=(8000, d)),
        rng.integers(0, 9, (8000, d)).astype(float),
        np.repeat(rng.lognormal(0, 2, (2000, d)), 4, axis=0),
    ):
        for k in (3, 10):
            labels = shoal.partition(X, k, "mdav", threads=threads)
            assert np.array_equal(labels, shoal.partition(X, k, "mdav", threads=1))


def test_most_predictions_are_used():
    X = np.random.default_rng(0).normal(size=(8000, 10))
    pool = pool_new(X)
    labels, state = np.zeros(len(X), dtype=np.int64), fresh_state()
    near, near_ids = np.empty(5), np.empty(5, dtype=np.int64)
    with prediction.Predictor(X, pool, 5, 2) as predictor:
        predictor.predict()
        assert predictor.predictions.counts[prediction.ROWS] == prediction.LEAST
        mdav_module._by_tree(X, pool, predictor.predictions, 10, near, near_ids, 0, labels, state)
        assert predictor.predictions.counts[prediction.USED] > prediction.LEAST / 2
