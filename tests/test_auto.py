"""The default method: never worse than MDAV, equal results everywhere, and the promises of its parts."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.algorithms import auto as module
from shoal.algorithms.initial_partition import split_large
from shoal.algorithms.optimize import exchange as exchange_module
from shoal.algorithms.optimize.certificate import Certificates
from shoal.algorithms.optimize.exchange import exchange, moving_groups
from shoal.algorithms.optimize.random import below, seeded, uniform
from shoal.algorithms.optimize.search import _Search
from shoal.algorithms.partition import find_groups
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, group_sizes, sse, standardise
from shoal.core.progress import STOP, fresh_state
from shoal.kernels.neighbours import list_size, nearby, nearest


@pytest.mark.parametrize(("name", "k", "share"), [("census", 3, 0.87), ("tarragona", 5, 0.93), ("eia", 5, 0.46)])
def test_losses_of_the_reference_tables(reference, name, k, share):
    X = reference(name)
    assert sse(X, shoal.partition(X, k)) < share * sse(X, shoal.partition(X, k, "mdav"))


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((40, 3)),
        np.random.default_rng(0).integers(0, 2, (60, 2)).astype(float),
        np.random.default_rng(0).normal(size=(15, 2)),
        np.random.default_rng(0).normal(size=(60, 2)) + 1e9,
        np.column_stack([np.random.default_rng(0).normal(size=50), np.ones(50)]),
        np.exp(8 * np.random.default_rng(0).normal(size=(80, 2))),
    ],
    ids=["equal", "few values", "few records", "offset", "constant column", "outliers"],
)
def test_never_worse_than_mdav_and_sizes_hold(X, k):
    labels = shoal.partition(X, k)
    assert group_sizes(labels).min() >= k
    assert group_sizes(labels).max() < 2 * k or len(X) < 2 * k
    assert sse(X, labels) <= sse(X, shoal.partition(X, k, "mdav"))


def test_threads_regions_and_the_seed(monkeypatch):
    X = np.random.default_rng(0).normal(size=(900, 2))
    np.testing.assert_array_equal(shoal.partition(X, 3), shoal.partition(X, 3, seed=0))
    assert (shoal.partition(X, 3) != shoal.partition(X, 3, seed=1)).any()
    for part in (module, exchange_module):
        monkeypatch.setattr(part, "REGION", 200)
    one, four = (shoal.partition(X, 3, threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one, four)
    assert sse(X, one) < 0.9 * sse(X, shoal.partition(X, 3, "mdav"))


def test_effort():
    # Over several tables: on a single one, fewer steps may happen to gain more.
    tables = [np.random.default_rng(seed).normal(size=(300, 2 + seed % 2)) for seed in range(6)]
    asked = [{"effort": effort} for effort in ("best", "good", "fast")]
    losses = [sum(sse(X, shoal.partition(X, 3, **how)) for X in tables) for how in (*asked, {"method": "mdav"})]
    assert losses == sorted(set(losses))
    X = tables[0]
    release = shoal.mask(X, 3, effort="fast")
    assert "start=mdav, effort=fast, steps per record=5" in str(release)
    assert "effort=fast" in str(shoal.mask(X, 3, effort="fast", block=100))
    with pytest.raises(InputError, match="'effort' requires method 'auto'"):
        shoal.mask(X, 3, method="mdav", effort="fast")
    assert shoal.mask(X[:, :1], 3, effort="best").parameters["method"] == "univariate"


def test_one_column_of_a_cell_is_grouped_optimally():
    X = np.random.default_rng(0).normal(size=(50, 1))
    labels = module.auto(X, 3, state=fresh_state()).labels
    assert sse(X, labels) == sse(X, shoal.partition(X, 3, "univariate"))


def test_exchange_counts_its_changes():
    X = np.random.default_rng(1).normal(size=(200, 3))
    k, labels = 4, shoal.partition(X, 4, "mdav")
    near, squares = nearby(X, 12, state=fresh_state())
    partition = moving_groups(X, labels, k)
    change = exchange(X, k, near, squares[:, 2].copy(), partition, 20_000, (0.0, 0.5), fresh_state(), seeded(0))
    found = canonical_labels(partition.label)
    assert sse(X, found) == pytest.approx(sse(X, labels) + change)
    used = np.flatnonzero(partition.size)
    assert group_sizes(found).min() >= k
    assert group_sizes(found).max() < 3 * k
    for row in used:
        members = partition.members[row, : partition.size[row]]
        assert set(members) == set(np.flatnonzero(partition.label == row))
        np.testing.assert_allclose(partition.sums[row], X[members].sum(axis=0), atol=1e-9)
    assert sorted(partition.free[: partition.free_count[0]]) == sorted(set(range(len(partition.size))) - set(used))


def test_precompiled_kernels_are_the_ones_that_run():
    exchange_module.compile_annealing()
    shoal.partition(np.random.default_rng(0).normal(size=(40, 2)), 3)
    assert len(exchange.signatures) == 1


def test_nearby_against_all_distances():
    random = np.random.default_rng(0)
    for n, d, values in ((5, 2, 3), (300, 3, 4), (400, 2, 10**6)):
        X = random.integers(0, values, (n, d)).astype(float)
        squares = ((X[:, None] - X) ** 2).sum(axis=2)
        np.fill_diagonal(squares, np.inf)
        near, found = nearby(X, 4, state=fresh_state(), threads=2)
        expected = np.argsort(squares, axis=1, kind="stable")[:, :4]
        np.testing.assert_array_equal(near, expected)
        np.testing.assert_array_equal(found, np.take_along_axis(squares, expected, axis=1))


@pytest.mark.parametrize("step", [2, 7, 60])
def test_nearby_among_every_step_th_record(step):
    random = np.random.default_rng(0)
    for n, values in ((300, 4), (400, 10**6)):
        X = random.integers(0, values, (n, 3)).astype(float)
        squares = ((X[:, None] - X) ** 2).sum(axis=2)
        np.fill_diagonal(squares, np.inf)
        squares[:, np.arange(n) % step > 0] = np.inf
        expected = np.argsort(squares, axis=1, kind="stable")[:, :4]
        near, found = nearby(X, 4, state=fresh_state(), step=step, threads=2)
        np.testing.assert_array_equal(near, expected)
        np.testing.assert_array_equal(found, np.take_along_axis(squares, expected, axis=1))
        distances = np.take_along_axis(squares, nearest(X, 4, step=step), axis=1)
        np.testing.assert_array_equal(distances, found)


@pytest.mark.parametrize(("n", "k"), [(10, 5), (5000, 3), (5000, 256), (5000, 257), (5000, 2500), (10**6, 10**5)])
def test_lists_of_neighbours_do_not_grow_with_k(n, k):
    count, step = list_size(n, k)
    assert 1 <= count <= 512
    # The list reaches as far as that of the 2k nearest.
    assert min(n, 2 * k) - 2 * step < count * step
    assert step == 1 or 2 * k > 512


def test_a_partition_needs_no_memory_that_grows_with_k():
    n = 3000
    used = []
    for k in (10, 1500):
        labels = np.minimum(np.arange(n) // k, n // k - 1)
        used.append(sum(array.nbytes for array in moving_groups(np.zeros((n, 2)), labels, k)))
    assert used[1] < 2 * used[0]


class Stopping:
    """State of a kernel that requests a stop at a given check and counts the checks."""

    def __init__(self, at):
        self.at, self.looks = at, 0

    def __getitem__(self, place):
        assert place == STOP
        self.looks += 1
        return int(self.looks >= self.at)


@pytest.fixture
def interpreted(monkeypatch):
    """Run the kernels of light steps as plain Python, which can be watched."""
    for name, kernel in list(vars(exchange_module).items()):
        if kernel not in (below, uniform) and hasattr(kernel, "py_func"):
            monkeypatch.setattr(exchange_module, name, kernel.py_func)
    return exchange_module


def light_steps(k, seed=1):
    X = np.random.default_rng(seed).normal(size=(6 * k, 2))
    near, squares = nearby(X, 2 * k, state=fresh_state())
    return X, near, squares[:, 0].copy(), moving_groups(X, shoal.partition(X, k, "mdav"), k)


def test_light_steps_check_for_a_stop_at_every_step(interpreted):
    X, near, scale, partition = light_steps(20)
    state = Stopping(at=6)
    before = partition.label.copy()
    interpreted.exchange(X, 20, near, scale, partition, 1000, (0.0, 1.0), state, seeded(0))
    assert state.looks == 6
    assert np.count_nonzero(partition.label != before) <= 2 * 5


def test_dissolving_a_group_checks_for_a_stop_at_every_record(interpreted):
    X, near, _, partition = light_steps(20)
    state = Stopping(at=4)
    change, done = interpreted._dissolve(X, partition, near, 20, 0, 0, 0.0, np.inf, state)
    assert (state.looks, done, change) == (4, 3, np.inf)


def test_a_stop_ends_all_rounds(monkeypatch):
    monkeypatch.setattr(exchange_module, "REGION", 100)
    rounds, split = [], exchange_module.split_groups

    def stopped(X, labels, most, random):
        rounds.append(len(X))
        state[STOP] = 1
        return split(X, labels, most, random)

    monkeypatch.setattr(exchange_module, "split_groups", stopped)
    state = fresh_state()
    X = np.random.default_rng(0).normal(size=(600, 2)) ** 5
    labels = shoal.partition(X, 5, "mdav")
    np.testing.assert_array_equal(exchange_module.anneal_by_exchange(X, 5, labels, 20, 0, state, 1), labels)
    assert len(rounds) == 1


EFFORT = {"auto": {"effort": "best"}, "search": {"steps": 1000}}


@pytest.mark.parametrize("method", EFFORT)
def test_nothing_is_searched_where_nothing_is_lost(monkeypatch, method):
    def unexpected(*_, **__):
        raise AssertionError

    shoal.partition(np.random.default_rng(0).normal(size=(40, 2)), 3, method, **EFFORT[method])
    monkeypatch.setattr(exchange_module, "neighbour_lists", unexpected)
    monkeypatch.setattr(_Search, "anneal", unexpected)
    X = np.repeat([[0.1, 3.0], [0.7, 1.0]], 6, axis=0)
    assert sse(X, shoal.partition(X, 3, method, **EFFORT[method])) == 0.0


def test_large_groups_are_searched_as_well_as_small_ones():
    """Lists of neighbours that are cut reach as far as before: two groups of 600 meet in the middle of the table."""
    X = np.random.default_rng(1).random((1200, 2))
    halves = [sse(X, (X[:, j] > np.median(X[:, j])).astype(int)) for j in range(2)]
    for method, options in (("auto", {}), ("search", {"steps": 20 * 1200})):
        assert sse(X, shoal.partition(X, 600, method, **options)) < 1.01 * min(halves)
    assert sse(X, shoal.partition(X, 600, "mdav")) > 1.05 * min(halves)


def test_search_starts_from_labels():
    X = np.random.default_rng(0).normal(size=(120, 2))
    start = shoal.partition(X, 3, effort="best")
    np.testing.assert_array_equal(find_groups(X, 3, "search", start=start, steps=0).labels, start)
    one = np.zeros(120, dtype=int)
    assert sse(X, find_groups(X, 3, "search", start=one, steps=0).labels) == sse(X, split_large(X, one, 3))
    for wrong in (start[:-1], start.astype(float), np.arange(120)):
        with pytest.raises(InputError, match=r"Option 'start' of method 'search'.* must"):
            shoal.partition(X, 3, "search", start=wrong, steps=0)


def test_the_shortest_search_improves_on_mdav():
    X = np.random.default_rng(0).normal(size=(500, 3))
    labels = shoal.partition(X, 3, "search", time_limit=0.001, seed=0)
    assert sse(X, labels) < 0.97 * sse(X, shoal.partition(X, 3, "mdav"))


def test_proving_a_bound_does_not_change_the_groups():
    X = np.random.default_rng(0).normal(size=(150, 2)) + 1e3
    alone, proven = shoal.mask(X, 3), shoal.mask(X, 3, bound=True)
    np.testing.assert_array_equal(alone.labels, proven.labels)
    assert alone.bound is None
    assert 0.8 * proven.loss < proven.bound <= proven.loss
    check = shoal.verify_bound(standardise(X), 3, proven.certificate)
    assert check.valid
    assert check.loss == pytest.approx(proven.bound, rel=1e-6)
    assert shoal.mask(X[:5], 3, bound=True).status == "optimal"
    strata = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "by": [i % 2 for i in range(150)]})
    parts = shoal.mask(strata, 3, columns=["a", "b"], by="by", bound=True)
    assert proven.bound < parts.bound <= parts.loss
    with pytest.raises(InputError, match="Option 'bound' of method 'auto' requires several columns"):
        shoal.mask(X[:, 0], 3, bound=True)


def test_strata_have_certificates_that_can_be_checked():
    random = np.random.default_rng(3)
    X = random.normal(size=(95, 2))
    frame = pl.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "c": random.normal(size=95), "by": np.repeat([0, 1, 2], [50, 40, 5])}
    )
    frame = frame.with_columns(c=pl.when(pl.int_range(95) % 50 < 25).then("c"))
    release = shoal.mask(frame, 3, columns=["a", "b", "c"], by="by", missing="group", small="merge", bound=True)
    Z = standardise(frame.select("a", "b", "c").to_numpy())
    proof = release.certificate
    check = shoal.verify_bound(Z, 3, proof)
    assert check.valid, check.reason
    assert check.loss == pytest.approx(release.bound, rel=1e-9)
    assert min(len(stratum.rows) for stratum in proof.strata) < 6 < 3 * len(proof.strata)
    first, *others = proof.strata
    moved = [first._replace(rows=others[0].rows), *others]
    twice = [first._replace(columns=np.r_[first.columns, first.columns]), *others]
    claimed = [first._replace(certificate=replace(first.certificate, bound=1.01 * first.certificate.bound)), *others]
    few = [
        s._replace(certificate=replace(s.certificate, bound=1.01 * s.certificate.bound)) if len(s.rows) < 6 else s
        for s in proof.strata
    ]
    for wrong, reason in (
        (others, "not every record is in one stratum"),
        (moved, "not every record is in one stratum"),
        (twice, "names a column twice"),
        (claimed, "stratum 0: the multipliers prove less"),
        (few, "the multipliers prove less"),
    ):
        check = shoal.verify_bound(Z, 3, Certificates(tuple(wrong)))
        assert not check
        assert reason in check.reason


def test_a_stop_before_the_end_of_mdav_returns_groups(monkeypatch):
    """A comparison stops methods when its time is up; groups must still have at least k records."""
    monkeypatch.setattr(module, "REGION", 100)
    state = fresh_state()
    state[STOP] = 1
    labels = module.auto(np.random.default_rng(0).normal(size=(300, 2)), 5, state=state).labels
    assert group_sizes(labels).min() >= 5
