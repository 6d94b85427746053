"""The lower bound for t-closeness: no allowed partition is below it, whatever planes it rests on."""

from itertools import product

import numpy as np
import polars as pl
import pytest
import slow
from conftest import reference_path
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.measures import sse, standardise
from shoal.core.progress import fresh_state
from shoal.promises import closeness_bound as module
from shoal.promises.closeness import Closeness
from shoal.promises.closeness_bound import Planes, closeness_bound, proven
from shoal.promises.diversity import Diversity
from shoal.promises.promise import ConfidentialColumn
from shoal.promises.rule_enforcement import Search, keep_rules
from shoal.promises.rules import broken, make_rules

EDGES = [0.0, 0.01, 0.1, 0.2, 0.3, 0.5, 0.8, 0.999]


def column(values, ordered=True):
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ConfidentialColumn(codes.astype(np.int64), counts, ordered)


def tiny(seed):
    """A table of few records: ties, duplicates, constant keys, columns with and without an order, one or two models."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    values = rng.integers(0, int(rng.integers(1, n + 2)), n)
    Z = rng.normal(size=(n, d)) + rng.choice([0.0, 1.0, 3.0]) * values[:, None] * rng.choice([-1.0, 0.0, 1.0], d)
    if seed % 5 == 0:
        Z = Z.round()
    if seed % 7 == 0:
        Z[:, 0] = 1.0
    if seed % 3 == 0:
        Z[: n // 2] = Z[0]
    columns = [column(values, ordered=bool(rng.random() < 0.6)), column(rng.integers(0, 3, n), ordered=False)]
    models = [(0, Closeness(float(rng.choice(EDGES))))]
    if seed % 4 == 0:
        models += [(1, Closeness(float(rng.choice(EDGES)))), (0, Diversity(2))]
    return standardise(Z), columns, models, int(rng.integers(1, 3))


def searched(Z, rules, seed):
    """Return the lowest loss found for groups of at least two that keep the rules."""
    whole = [(np.arange(len(Z)), np.arange(Z.shape[1]))]
    labels = keep_rules(Z, shoal.partition(Z, 2), whole, 2, rules, Search(seed, 1.0, fresh_state()))
    assert not broken(rules, np.arange(len(Z)), labels).any()
    return labels


# --- by hand ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("t", "least"), [(0.0, 4.0), (0.25, 3.0), (0.5, 0.0), (0.9, 0.0)])
def test_a_key_that_is_the_confidential_value_by_hand(t, least, ordered):
    """Two values at −1 and 1, two records each: a group with a share p of ones has the mean 2p − 1 and is |p − ½| away.

    So no mean exceeds 2t and, of SSE = 4 − Σ s z̄², at least 4 − 4 (2t)² is left; with t = 0.5 groups can be pure.
    """
    Z = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    rules = make_rules([column(Z[:, 0], ordered)], [(0, Closeness(t))], 4)
    found = closeness_bound(Z, rules)
    assert found <= least
    assert found == pytest.approx(least, abs=0.02)


def test_planes_by_hand():
    """One key x and one witness, k = 1 and q = −2: y is the greater of (x − τ)² over τ = φ ± t."""
    planes = Planes(np.zeros(1), np.ones(1), np.zeros((1, 1)), np.full((1, 1), -2.0), np.zeros((1, 1)))
    X, Phi = np.array([[-1.0], [1.0]]), np.array([[-0.5], [0.5]])
    assert proven(planes, X, Phi, np.array([0.0])) == pytest.approx(2 * (1 - 0.5**2))
    assert proven(planes, X, Phi, np.array([0.1])) == pytest.approx(2 * (1 - 0.6**2))


def test_planes_that_bend_below_zero_prove_nothing():
    planes = Planes(np.zeros(1), np.ones(1), np.full((1, 1), 4.0), np.zeros((1, 1)), np.zeros((1, 1)))
    assert not proven(planes, np.ones((2, 1)), np.array([[-0.5], [0.5]]), np.array([0.1])) > 0


# --- no partition is below it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_no_partition_of_a_tiny_table_is_below_the_bound(first):
    positive = 0
    for seed in range(first, first + 30):
        Z, columns, models, k = tiny(seed)
        bound = closeness_bound(Z, make_rules(columns, models, len(Z)))
        assert 0 <= bound <= slow.least_sse(Z, columns, models, k), seed
        positive += bound > 0.01 * np.square(Z).sum()
    assert positive >= 5


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_any_planes_prove_what_is_true(seed, data):
    Z, columns, models, k = tiny(seed)
    number = st.floats(-3, 3)
    r, d = data.draw(st.integers(1, 2)), Z.shape[1]
    draw = lambda *shape: np.array(data.draw(st.lists(number, min_size=(m := int(np.prod(shape))), max_size=m)))  # noqa: E731
    planes = Planes(draw(r), np.abs(draw(d)) + 0.5, *(draw(d, r).reshape(d, r) for _ in range(3)))
    Phi = []
    for _ in range(r):
        steps = draw(len(columns[0].counts)) / 3
        phi = np.cumsum(steps) / max(1, len(steps) - 1) if columns[0].ordered else steps / 2
        Phi.append((phi - phi @ columns[0].counts / len(Z))[columns[0].codes])
    t = np.full(r, models[0][1].t + 1e-9)
    assert proven(planes, Z, np.column_stack(Phi), t) <= slow.least_sse(Z, columns, models, k)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(10, 60), st.sampled_from(EDGES[1:]), st.booleans())
def test_no_search_is_below_the_bound(seed, n, t, ordered):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, n)
    Z = standardise(rng.normal(size=(n, 3)) + values[:, None] * rng.choice([0.0, 0.5, 1.0], 3))
    rules = make_rules([column(values, ordered)], [(0, Closeness(t))], n)
    assert closeness_bound(Z, rules) <= sse(Z, searched(Z, rules, seed))


@pytest.mark.parametrize("ordered", [True, False])
def test_large_tables_with_many_keys_are_proven_from_a_sample(ordered, monkeypatch):
    """More records than the sample holds, more keys than directions, more values than bins, and a huge record."""
    monkeypatch.setattr(module, "SAMPLE", 100)
    monkeypatch.setattr(module, "DIRECTIONS", 3)
    monkeypatch.setattr(module, "BINS", 4)
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=300)
    Z = 0.5 * rng.normal(size=(300, 5)) + np.outer(hidden, rng.normal(size=5))
    Z[0] = 20.0
    Z, values = standardise(Z), hidden if ordered else np.floor(2 * hidden)
    rules = make_rules([column(values, ordered)], [(0, Closeness(0.1))], 300)
    labels = searched(Z, rules, 0)
    assert labels.max() > 0
    assert 0.02 * np.square(Z).sum() < closeness_bound(Z, rules) < sse(Z, labels)


@pytest.mark.parametrize(
    ("name", "t", "least", "loss"),
    [("FEDTAX", 0.05, 50, 54.5), ("FEDTAX", 0.13, 37, 40.8), ("FEDTAX", 0.25, 12, 15.6), ("FICA", 0.05, 23, 29.3)],
)
def test_the_bound_of_the_census_is_near_the_least_losses_seen(name, t, least, loss):
    table = pl.read_csv(reference_path("census"))
    Z = standardise(table.select("TAXINC", "POTHVAL").to_numpy().astype(np.float64))
    found = closeness_bound(Z, make_rules([column(table[name])], [(0, Closeness(t))], len(Z)))
    assert least < 100 * found / np.square(Z).sum() < loss


# --- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Z", "values"),
    [
        (np.zeros((4, 2)), [0, 1, 2, 3]),
        (np.arange(8.0).reshape(4, 2), [1, 1, 1, 1]),
        (np.empty((4, 0)), [0, 1, 2, 3]),
        (np.full((4, 1), np.nan), [0, 1, 2, 3]),
        (np.ones((1, 1)), [0]),
    ],
    ids=["constant keys", "one value", "no keys", "all missing", "one record"],
)
def test_where_nothing_can_be_proven_the_bound_is_zero(Z, values):
    assert closeness_bound(Z, make_rules([column(values)], [(0, Closeness(0.0))], len(Z))) == 0


def test_diversity_proves_nothing():
    Z = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    assert closeness_bound(Z, make_rules([column(Z[:, 0])], [(0, Diversity(2))], 4)) == 0


def test_keys_with_missing_cells_are_left_out():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 5, 50)
    Z = standardise(rng.normal(size=(50, 2)) + values[:, None])
    rules = make_rules([column(values)], [(0, Closeness(0.05))], 50)
    gaps = np.column_stack([Z, np.where(np.arange(50) < 20, np.nan, 1.0)])
    assert closeness_bound(gaps, rules) == closeness_bound(Z, rules) > 0


def test_a_relation_that_turns_needs_a_witness_that_turns():
    values = np.arange(60)
    Z = standardise(np.abs(values - 29.5)[:, None])
    rules = make_rules([column(values)], [(0, Closeness(0.02))], 60)
    assert closeness_bound(Z, rules) > 0.7 * np.square(Z).sum()


def test_two_columns_prove_more_than_either():
    rng = np.random.default_rng(2)
    one, two = rng.integers(0, 9, (2, 300))
    Z = standardise(np.column_stack([one, two]) + 0.3 * rng.normal(size=(300, 2)))
    columns, models = [column(one), column(two, ordered=False)], [(0, Closeness(0.05)), (1, Closeness(0.1))]
    both = closeness_bound(Z, make_rules(columns, models, 300))
    assert both > 1.2 * max(closeness_bound(Z, make_rules(columns, [model], 300)) for model in models)


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_offset_of_keys_does_not_matter(shift):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 5, 40)
    Z = standardise(rng.normal(size=(40, 2)) + values[:, None])
    rules = make_rules([column(values)], [(0, Closeness(0.1))], 40)
    assert closeness_bound(Z + shift, rules) == pytest.approx(closeness_bound(Z, rules), rel=0.01)


# --- kernels ---------------------------------------------------------------------------------------------------------


def random_planes(rng, d, r):
    return Planes(rng.normal(size=r), 4 + rng.random(d), *(rng.normal(size=(d, r)) for _ in range(3)))


def plane(planes, u, w, z, phi):
    """ℓ_{u,w}(z, φ) as it is defined."""
    a = (planes.curve + 1) * u + planes.lean @ w
    b = planes.offset + u @ planes.tilt - (u * u) @ planes.bend
    return u @ u + a @ (z - u) + b @ (phi - w)


@pytest.mark.parametrize(("d", "r"), [(1, 1), (3, 1), (2, 2), (4, 3)])
def test_heights_are_the_suprema_of_all_planes(d, r):
    rng = np.random.default_rng(d)
    planes, t = random_planes(rng, d, r), rng.random(r)
    X, Phi = rng.normal(size=(20, d)), rng.uniform(-0.5, 0.5, (20, r))
    y, sizes, reached = module._heights(planes, X, Phi, module._corners(t))
    for i in range(20):
        found = []
        for w in product(*zip(-t, t, strict=True)):
            tau = Phi[i] - w
            v = (planes.curve + 1) * X[i] + planes.tilt @ tau - planes.lean @ w
            found.append(plane(planes, v / (2 * (planes.curve + planes.bend @ tau)), np.array(w), X[i], Phi[i]))
        assert y[i] == pytest.approx(max(found))
        assert reached[i] == np.argmax(found)
        assert sizes[i] >= abs(y[i])
        for _ in range(100):
            assert plane(planes, 2 * rng.normal(size=d), rng.uniform(-t, t), X[i], Phi[i]) <= y[i] + 1e-12


@pytest.mark.parametrize(("d", "r"), [(1, 1), (2, 3)])
def test_slopes_are_those_of_small_steps(d, r):
    rng = np.random.default_rng(d)
    planes, corners, weights = random_planes(rng, d, r), module._corners(rng.random(r)), rng.random(30)
    X, Phi = rng.normal(size=(30, d)), rng.uniform(-0.5, 0.5, (30, r))

    def total(planes):
        return weights @ module._heights(planes, X, Phi, corners)[0]

    slopes = module._slopes(planes, X, Phi, corners, module._heights(planes, X, Phi, corners)[2], weights)
    for name, slope in slopes._asdict().items():
        for place in np.ndindex(slope.shape):
            step = np.zeros(slope.shape)
            step[place] = 1e-6
            ahead, behind = (planes._replace(**{name: getattr(planes, name) + sign * step}) for sign in (1, -1))
            assert slope[place] == pytest.approx((total(ahead) - total(behind)) / 2e-6, rel=1e-4, abs=1e-6)
