"""The parts of a joint release: sensitivities by brute force, accounting, slow references, an experiment on ε."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import beta

from shoal.core.errors import InputError
from shoal.privacy import counts as counts_module
from shoal.privacy import dependence_tree, noise
from shoal.privacy.budgets import check_delta, delta_of, gaussian_scale, guess_of, rho_of
from shoal.privacy.counts import count, count_pairs, depth_of, fit_nested, measure, nearest, nest, sensitivity
from shoal.privacy.dependence_tree import choose_tree, score_pairs, tree_model, with_sums
from shoal.privacy.domains import CategoryBins, NumberBins, WholeBins
from shoal.privacy.noise import noisy_counts, noisy_largest
from shoal.privacy.synthesis import bins_of_numbers, merge_bins, share, synthesise

SIZES = (3, 2)


def _neighbours(records: int, contributions: int):
    """All pairs of tables of two columns that differ in the records of one unit: the first m of them."""
    cells = list(product(*(range(size) for size in SIZES)))
    for shared in product(cells, repeat=records - contributions):
        for ours, theirs in combinations(list(product(cells, repeat=contributions)), 2):
            yield np.array([*ours, *shared]), np.array([*theirs, *shared])


@pytest.mark.parametrize("contributions", [1, 2])
def test_no_neighbours_are_farther_apart_than_the_sensitivity_says(contributions):
    farthest = {"column": 0.0, "nested column": 0.0, "nested pairs": 0.0}
    for tables in _neighbours(2, contributions):
        columns = [count(table[:, 0], SIZES[0]) for table in tables]
        nested = [np.concatenate(nest(counts)) for counts in columns]
        pairs = [nest(count_pairs(table[:, 0], table[:, 1], SIZES)) for table in tables]
        flat = [np.concatenate([level.ravel() for level in levels]) for levels in pairs]
        for name, (one, other) in zip(farthest, (columns, nested, flat), strict=True):
            farthest[name] = max(farthest[name], float(np.linalg.norm(one - other)))
    for name, measured in zip(farthest, (1, depth_of(SIZES[:1]), depth_of(SIZES)), strict=True):
        assert farthest[name] <= sensitivity(measured, contributions) <= farthest[name] * (1 + 1e-12), name


@pytest.mark.parametrize("contributions", [1, 2])
def test_no_neighbours_change_a_score_by_more_than_two_for_each_record(contributions):
    noisy = [np.array([0.7, 1.1, 1.2]), np.array([2.6, 0.4])]  # whatever histograms were released before
    changes = [
        abs(score_pairs(one, noisy, 0.5)[0, 1] - score_pairs(other, noisy, 0.5)[0, 1])
        for one, other in _neighbours(3, contributions)
    ]
    assert max(changes) == 2 * contributions


def test_delta_is_the_least_over_all_orders():
    for rho, epsilon in [(0.01, 0.5), (0.1, 1.0), (1.0, 4.0), (0.5, 0.1)]:
        alphas = 1 + np.geomspace(1e-4, 1e4, 400_001)
        logs = (alphas - 1) * (alphas * rho - epsilon) + alphas * np.log1p(-1 / alphas) - np.log(alphas - 1)
        assert delta_of(rho, epsilon) == pytest.approx(math.exp(logs.min()), rel=1e-6)
        # Bun and Steinke's older and weaker bound: δ = e^(−(ε−ρ)²/4ρ)
        assert epsilon < rho or delta_of(rho, epsilon) < math.exp(-((epsilon - rho) ** 2) / (4 * rho))


def test_delta_agrees_with_opendp():
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.domains import atom_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import absolute_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement = make_gaussian(atom_domain(T="i64"), absolute_distance(T="i64"), scale=10.0)  # ρ = 1/200
    profile = make_zCDP_to_approxDP(measurement).map(1)
    for delta in (1e-3, 1e-6, 1e-9):
        assert delta_of(1 / 200, profile.epsilon(delta)) == pytest.approx(delta, rel=1e-9)


def test_rho_is_the_largest_that_the_budget_allows():
    for epsilon, delta in [(0.01, 1e-9), (1.0, 1e-6), (10.0, 1e-12), (300.0, 1e-3)]:
        rho = rho_of(epsilon, delta)
        assert delta_of(rho, epsilon) <= delta < delta_of(rho * 1.0001, epsilon)
    assert gaussian_scale(math.sqrt(2), 0.25) == pytest.approx(2.0)  # ρ = Δ²/2σ² = 2/8


def test_no_guess_is_better_than_the_bound():
    from scipy.stats import norm

    for rho in (1e-4, 0.02, 0.5, 3.0):
        best = norm.cdf(math.sqrt(2 * rho) / 2)  # one Gaussian draw, the neighbours √(2ρ) scales apart
        for epsilon in (0.1, 1.0, 5.0):
            assert best <= guess_of(rho, epsilon) <= 1
    assert guess_of(0.02, 0.1) == pytest.approx(0.55)  # ½ + ½ √(0.02/2)


def test_opendp_confirms_the_spent_budget(monkeypatch):
    spent = []

    def watched(make, distance, rho, scale):
        measurement = allowed(make, distance, rho, scale)
        spent.append((rho, measurement.map(distance)))
        return measurement

    allowed = noise.within_budget
    monkeypatch.setattr(noise, "within_budget", watched)
    noisy_counts(np.zeros(4, dtype=np.int64), sensitivity(3, 2), 0.0123)
    noisy_largest(np.array([1, 2, 3]), 4, 0.0456)
    for asked, mapped in spent:
        assert asked * (1 - 1e-12) < mapped <= asked


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_spent_budgets_add_up_to_the_total(monkeypatch, columns):
    spent = []

    def counts(cells, distance, rho, rng):
        spent.append(rho)
        return noisy_counts(cells, distance, rho, rng)

    def largest(scores, distance, rho, rng):
        spent.append(rho)
        return noisy_largest(scores, distance, rho, rng)

    monkeypatch.setattr(counts_module, "noisy_counts", counts)
    monkeypatch.setattr(dependence_tree, "noisy_largest", largest)
    epsilon, delta = 1.5, 1e-5
    shared = share(rho_of(epsilon, delta), 50, [NumberBins(0.0, 1.0, 256)] * columns, 3)
    values = np.random.default_rng(0).random((50, columns))
    synthesise(values, [NumberBins(0.0, 1.0, 256)] * columns, shared, 3, np.random.default_rng(1))
    total = sum(map(Fraction, spent))
    assert 0.9 * rho_of(epsilon, delta) < total <= Fraction(rho_of(epsilon, delta))
    assert delta_of(float(total), epsilon) <= delta


def test_opendp_draws_match_the_scale():
    draws = noisy_counts(np.full(20_000, 7), math.sqrt(2), 0.01)  # σ = 10
    assert draws.dtype == np.int64
    assert abs(draws.mean() - 7) < 6 * 10 / math.sqrt(20_000)
    assert abs(draws.std() / 10 - 1) < 6 / math.sqrt(2 * 20_000)


def _bounds(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Clopper and Pearson's interval, each end wrong with that probability at most."""
    low = beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
    high = beta.ppf(1 - error, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)


def _worst_excess(columns: int, noise: float, trials: int, error: float = 1e-6) -> float:
    """Return a lower bound of the excess of the worst event over (ε, δ) = (1, 0.05) for two neighbours; > 0 is broken.

    The events are "at most t cells of the release are 0". There are 6 columns + 1 of them, in two directions, with two
    frequencies each: a mechanism that keeps the promise is called broken with probability at most 26 · 2 · 1e-6.
    """
    epsilon, delta = 1.0, 0.05
    bins = [CategoryBins(2)] * columns
    rng = np.random.default_rng(20)
    shared = share(rho_of(epsilon, delta) / noise**2, 6, bins, 1)
    tables = np.zeros((6, columns)), np.eye(6)[:, [0] * columns]  # one record has 1 everywhere
    zeros = [
        np.array([(synthesise(table, bins, shared, 1, rng).values == 0).sum() for _ in range(trials)])
        for table in tables
    ]
    worst = -math.inf
    for first, second in (zeros, zeros[::-1]):
        for most in range(6 * columns + 1):
            low, _ = _bounds(int((first <= most).sum()), trials, error)
            _, high = _bounds(int((second <= most).sum()), trials, error)
            worst = max(worst, low - math.exp(epsilon) * high - delta)
    return worst


@pytest.mark.parametrize(("columns", "trials", "less"), [(1, 4000, 0.5), (2, 600, 0.2)])
def test_an_experiment_finds_no_event_that_breaks_the_promise_and_would_with_less_noise(columns, trials, less):
    assert _worst_excess(columns, 1.0, trials) <= 0
    assert _worst_excess(columns, less, trials) > 0


@pytest.mark.parametrize("shape", [(8,), (4, 4), (2, 8), (8, 2)])
def test_nested_counts_are_fitted_by_least_squares_where_none_is_negative(shape):
    rng = np.random.default_rng(0)
    cells = np.eye(math.prod(shape), dtype=np.int64)
    rows = np.column_stack([np.concatenate([level.ravel() for level in nest(cell.reshape(shape))]) for cell in cells])
    n = 50 * len(cells)
    levels = [table + rng.integers(-3, 4, table.shape) for table in nest(np.full(shape, 50))]
    noisy = np.concatenate([level.ravel() for level in levels])
    # Lagrange: least squares under the condition that the cells sum to n
    ones = np.ones((len(cells), 1))
    expected = np.linalg.solve(np.block([[rows.T @ rows, ones], [ones.T, 0]]), np.append(rows.T @ noisy, n))[:-1]
    np.testing.assert_allclose(fit_nested(levels, shape, n).ravel(), expected)


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (37,), (1, 1), (1, 5), (3, 2), (7, 12)])
def test_fitted_counts_have_all_records_and_none_beyond_the_table(shape):
    rng = np.random.default_rng(1)
    counts = count(rng.integers(0, math.prod(shape), 20), math.prod(shape)).reshape(shape)
    levels = nest(counts)
    np.testing.assert_allclose(fit_nested(levels, shape, 20), counts)
    fitted = fit_nested([level + rng.integers(-30, 30, level.shape) for level in levels], shape, 20)
    assert fitted.shape == shape
    assert fitted.min() >= 0
    assert fitted.sum() == pytest.approx(20)


def test_noise_at_the_far_end_of_a_wide_domain_is_left_out():
    rng = np.random.default_rng(4)
    counts = np.zeros(64, dtype=np.int64)
    counts[:4] = 1000
    beyond = {0.0: 0.0, 20.0: 0.0}
    for scale in beyond:
        for _ in range(20):
            noisy = [
                level + np.rint(rng.normal(scale=20.0, size=level.shape)).astype(np.int64) for level in nest(counts)
            ]
            fitted = fit_nested(noisy, (64,), 4000, scale)
            assert fitted.sum() == pytest.approx(4000)
            beyond[scale] += fitted[4:].sum() / 20
    assert beyond[20.0] < beyond[0.0] / 2
    np.testing.assert_allclose(fit_nested(nest(counts), (64,), 4000, 20.0), counts)


def test_the_nearest_counts_are_the_nearest():
    rng = np.random.default_rng(2)
    noisy = rng.integers(-10, 20, (5, 6)).astype(float)
    totals = np.array([30.0, 1.0, 0.0, 100.0, 7.0])
    for ours, row, total in zip(nearest(noisy, totals), noisy, totals, strict=True):
        slow = minimize(
            lambda x, row=row: np.square(x - row).sum(),
            np.full(6, total / 6),
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda x, total=total: x.sum() - total},
            options={"ftol": 1e-12},
        ).x
        np.testing.assert_allclose(ours, slow, atol=1e-4)


def test_sums_of_rows_and_columns_are_reached_from_any_counts():
    rng = np.random.default_rng(3)
    rows, columns = np.array([10.0, 0.0, 20.0]), np.array([25.0, 5.0])
    for counts in (rng.random((3, 2)), np.zeros((3, 2)), np.array([[0.0, 30.0], [0.0, 0.0], [0.0, 0.0]])):
        fitted = with_sums(counts, rows, columns)
        np.testing.assert_allclose(fitted.sum(axis=1), rows, atol=1e-3)
        np.testing.assert_allclose(fitted.sum(axis=0), columns, atol=1e-3)
        assert fitted.min() >= 0


def test_the_marginals_of_a_tree_model_are_the_fitted_counts():
    rng = np.random.default_rng(4)
    sizes, n = (2, 3, 2, 4), 60
    histograms = [n * rng.dirichlet(np.ones(size)) for size in sizes]
    tree = [(1, 3), (0, 1), (1, 2)]
    pairs = {(a, b): with_sums(rng.random((sizes[a], sizes[b])), histograms[a], histograms[b]) for a, b in tree}
    model = tree_model(histograms, pairs)
    joint = np.zeros(sizes)  # the probability of every possible record, by enumeration
    for record in product(*map(range, sizes)):
        probability = model.histogram[record[model.root]] / n
        for parent, child, counts in model.branches:
            row = counts[record[parent]]
            probability *= row[record[child]] / row.sum() if row.sum() > 0 else 1 / len(row)
        joint[record] = probability
    assert joint.sum() == pytest.approx(1)
    for a, b in tree:
        others = tuple(j for j in range(4) if j not in (a, b))
        np.testing.assert_allclose(n * joint.sum(axis=others), pairs[a, b] if a < b else pairs[a, b].T, atol=1e-3)
    drawn = np.zeros(sizes)
    np.add.at(drawn, tuple(model.draw(50_000, rng).T), 1)
    assert np.abs(drawn / 50_000 - joint).sum() < 0.02


def test_a_large_budget_reproduces_the_chosen_marginals():
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, 300)
    second = (first + rng.integers(0, 2, 300)) % 4
    values = np.column_stack([first, second, 3 - second, rng.integers(0, 3, 300)]).astype(float)
    bins = [CategoryBins(4), WholeBins(0, 3, 256), CategoryBins(4), WholeBins(0, 2, 256)]
    released = synthesise(values, bins, share(1e9, 300, bins, 1), 1, None)
    assert {(1, 2), (0, 1)} <= set(released.tree) or {(1, 2), (0, 2)} <= set(released.tree)
    for a, b in released.tree:
        shape = bins[a].size, bins[b].size
        ours, theirs = (count_pairs(*table[:, [a, b]].astype(int).T, shape) for table in (released.values, values))
        np.testing.assert_array_equal(ours, theirs)


def test_the_tree_has_the_greatest_scores_at_a_large_budget_and_any_at_a_small_one():
    scores = {(0, 1): 9, (0, 2): 8, (0, 3): 7, (1, 2): 6, (1, 3): 5, (2, 3): 30}
    assert choose_tree(scores, 4, 1, 1e6, None) == [(2, 3), (0, 1), (0, 2)]
    rng = np.random.default_rng(6)
    trees = {tuple(sorted(choose_tree(scores, 4, 1, 1e-9, rng))) for _ in range(300)}
    assert len(trees) == 16  # Cayley: all trees of four columns


def test_values_stay_in_their_domain():
    rng = np.random.default_rng(7)
    values = np.column_stack([rng.normal(50, 40, 200), rng.integers(-9, 9, 200), rng.integers(0, 3, 200)])
    bins = [NumberBins(0.0, 100.0, 256), WholeBins(-2.5, 3.7, 256), CategoryBins(5)]
    released = synthesise(values, bins, share(0.05, 200, bins, 1), 1, None).values
    assert released.shape == values.shape
    assert released[:, 0].min() >= 0
    assert released[:, 0].max() <= 100
    assert set(released[:, 1]) <= {-2, -1, 0, 1, 2, 3}
    assert set(released[:, 2]) <= {0, 1, 2, 3, 4}


@settings(deadline=None, max_examples=60)
@given(
    data=st.data(), n=st.integers(1, 40), contributions=st.integers(1, 3), rho=st.sampled_from([1e-9, 0.01, 1.0, 1e6])
)
def test_any_table_gives_as_many_records_of_its_domain(data, n, contributions, rho):
    kinds = st.sampled_from(
        [NumberBins(-1.0, 2.0, 256), WholeBins(0, 1, 256), WholeBins(-3, 900, 256), CategoryBins(9)]
    )
    bins = data.draw(st.lists(kinds, min_size=1, max_size=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = np.column_stack([column.draw(rng.integers(0, column.size, n), rng) for column in bins])
    released = synthesise(values, bins, share(rho, n, bins, contributions), contributions, rng)
    assert released.values.shape == values.shape
    assert len(released.tree) == len(bins) - 1
    for j, column in enumerate(bins):
        again = column.encode(released.values[:, j])
        assert ((again >= 0) & (again < column.size)).all()
        if not isinstance(column, NumberBins):
            np.testing.assert_array_equal(released.values[:, j], np.rint(released.values[:, j]))


def test_whole_numbers_have_a_bin_each_or_share_it_equally():
    few, many = WholeBins(1, 12, 256), WholeBins(0, 999, 256)
    assert few.size == 12
    np.testing.assert_array_equal(few.encode(np.arange(1.0, 13)), np.arange(12))
    assert many.size == 256
    assert set(np.bincount(many.encode(np.arange(1000.0)))) == {3, 4}
    codes = many.encode(np.arange(1000.0))
    np.testing.assert_array_equal(many.encode(many.draw(codes, np.random.default_rng(0))), codes)
    assert WholeBins(0.2, 0.8, 256).size == 0
    assert WholeBins(-1e90, 1e90, 2**14).size == 2**14


def test_the_number_of_bins_follows_public_figures_alone():
    assert bins_of_numbers(1e-9, 100, 3, 1) == 2**8
    assert bins_of_numbers(1.0, 10**9, 3, 1) == 2**14
    some = bins_of_numbers(0.02, 100_000, 4, 1)
    assert some == bins_of_numbers(0.02, 300_000, 4, 3)  # three times the records, three times the noise
    assert some.bit_count() == 1


def test_the_seed_alone_decides():
    values = np.random.default_rng(8).random((100, 3))
    bins = [NumberBins(0.0, 1.0, 256)] * 3
    shared = share(0.1, 100, bins, 1)
    one, two, other = (synthesise(values, bins, shared, 1, np.random.default_rng(seed)).values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()
    assert (synthesise(values, bins, shared, 1, None).values != synthesise(values, bins, shared, 1, None).values).any()


def test_measured_tables_keep_their_shapes():
    tables = [np.arange(3), np.arange(4).reshape(2, 2)]
    for ours, theirs in zip(measure(tables, 1, 1e9, np.random.default_rng(0)), tables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_classes_hold_equally_many_records_and_every_bin_has_one():
    labels = merge_bins(np.full(256, 4.0), 16, ordered=True)
    assert set(np.bincount(labels)) == {16}
    assert (np.diff(labels) >= 0).all()
    for ordered in (True, False):
        for histogram in (np.array([0.0, 0.0, 10.0, 0.0]), np.array([5.0]), np.array([1.0, 9.0])):
            labels = merge_bins(histogram, 3, ordered)
            assert set(labels) == set(range(labels.max() + 1))
            assert labels.max() < 3


@pytest.mark.parametrize("delta", [None, 0, -1e-9, 1.0, 0.01, math.nan, "small", True])
def test_a_delta_that_promises_nothing_is_refused(delta):
    with pytest.raises(InputError, match="'delta'"):
        check_delta(delta, 100)
