"""The noise of a release: its distribution, its scale, one draw for each group and column, the error it causes.

Tests on OpenDP's draws cannot fix a seed. Each states how often it fails by chance; all together stay below 1e-7.
"""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import shoal
from shoal.core.errors import InputError, SeededNoiseWarning
from shoal.privacy.noise import check_grid, noisy_means


def draws(size, *, count, rng=None, epsilon=0.5, lower=0.0, upper=8.0, touched=1):
    """Return the noise of many groups of one size, untruncated because the values sit far from both ends."""
    values = np.full(size * count, (lower + upper) / 2)
    labels = np.repeat(np.arange(count), size)
    means = noisy_means(
        values, labels, np.full(count, size), lower=lower, upper=upper, epsilon=epsilon, touched=touched, rng=rng
    )
    return means - (lower + upper) / 2


@pytest.mark.parametrize("touched", [1, 3])
@pytest.mark.parametrize("private", [True, False], ids=["opendp", "seeded"])
def test_distribution_is_laplace_with_scale_width_over_size_and_epsilon(private, touched):
    # Scale 8·touched/(400·0.5): the ends of the domain are at least 33 scales away.
    rng = None if private else np.random.default_rng(12)
    noise = draws(400, count=4000, rng=rng, touched=touched)
    scale = touched * 8.0 / (400 * 0.5)
    # Kolmogorov-Smirnov, level 1e-9 for OpenDP's own draws (fails once in 1e9 runs); fixed for the seeded ones.
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > (1e-9 if private else 1e-3)
    # The test has power: twice or half the scale is rejected at that level (it is missed below once in 1e11 runs).
    for wrong in (2 * scale, scale / 2):
        assert stats.kstest(noise, stats.laplace(scale=wrong).cdf).pvalue < 1e-9
    assert abs(noise.mean()) < 6.5 * scale * math.sqrt(2 / len(noise))  # 6.5 standard errors: below 1e-10


def test_groups_of_different_size_share_one_call():
    sizes = np.array([1, 2, 5, 40] * 1500)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    means = noisy_means(np.full(len(labels), 500.0), labels, sizes, lower=0, upper=1000, epsilon=40.0)
    noise = (means - 500.0) * sizes  # each has scale 25 now
    for size in (1, 2, 5, 40):
        assert stats.kstest(noise[sizes == size], stats.laplace(scale=25.0).cdf).pvalue > 1e-9
    assert len(np.unique(noise)) == len(noise)


def test_draws_differ_from_call_to_call():
    assert not (draws(400, count=50) == draws(400, count=50)).any()


def test_a_change_of_one_record_moves_a_sum_by_at_most_the_width():
    # Groups of one record at both ends of the domain: with a huge budget the noise vanishes and the grid is seen.
    means = noisy_means(np.array([0.0, 1.0]), np.arange(2), np.ones(2), lower=0, upper=1, epsilon=1e12)
    assert means == pytest.approx([0, 1], abs=1e-9)


@pytest.mark.parametrize("epsilon", [1 / 3, 2 / 3, 7.7, 0.1, 1e-6, 1e6])
def test_opendp_confirms_the_budget(epsilon, monkeypatch):
    from opendp import measurements

    made = []
    original = measurements.make_laplace

    def recorded(*space, scale):
        made.append((scale, original(*space, scale=scale)))
        return made[-1][1]

    monkeypatch.setattr(measurements, "make_laplace", recorded)
    noisy_means(np.full(10, 0.5), np.repeat([0, 1], 5), np.array([5, 5]), lower=0, upper=1, epsilon=epsilon)
    scale, measurement = made[-1]
    width = 2 ** round(math.log2(scale * epsilon))
    assert measurement.map(width) <= epsilon
    assert scale == pytest.approx(width / epsilon, rel=1e-12)


def test_a_budget_too_small_for_integers_is_refused():
    check_grid(10**9, 1e-3, 1, "sales")
    with pytest.raises(InputError, match="'epsilon' leaves column 'sales' a budget of 1e-15, too small"):
        shoal.publish(pl.DataFrame({"sales": [1.0, 2.0]}), 1e-15, bounds={"sales": (0, 3)})


def test_one_draw_for_each_group_and_column():
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"a": rng.normal(0, 1, 300), "b": rng.normal(5, 2, 300)})
    bounds = {"a": (-50, 50), "b": (-100, 110)}
    for method, k in [("optimal", None), ("mdav-ir", 7), ("mdav", 7), ("none", None)]:
        release = shoal.publish(table, 1000.0, bounds=bounds, method=method, k=k)
        for j, name in enumerate(table.columns):
            values = release.data[name].to_numpy()
            for group in range(release.labels[:, j].max() + 1):
                assert len(np.unique(values[release.labels[:, j] == group])) == 1
            assert len(np.unique(values)) == len(release.sizes[name])
    for name in table.columns:
        noise = release.data[name].to_numpy() - table[name].to_numpy()
        assert len(np.unique(noise)) == 300  # method 'none': a draw of its own for every value


def test_noise_of_two_columns_is_independent():
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"a": rng.random(4000), "b": rng.random(4000)})
    release = shoal.publish(table, 1000.0, bounds={"a": (-9, 10), "b": (-9, 10)}, method="none")
    noise = release.data.to_numpy() - table.to_numpy()
    # 6.5 standard errors of a correlation of independent columns: fails below once in 1e10 runs.
    assert abs(np.corrcoef(noise.T)[0, 1]) < 6.5 / math.sqrt(4000)


@pytest.mark.parametrize(
    ("method", "k"),
    [
        ("optimal", None),
        ("optimal", 9),
        ("mdav-ir", 9),
        ("mdav", 9),
        ("mst-d", 9),
        ("insensitive", 50),
        ("insensitive-ir", 9),
        ("insensitive-ir", None),
        ("none", None),
    ],
)
def test_expected_sse_is_the_mean_of_measured_ones(method, k):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(0, 1, 400), rng.exponential(2, 400)])
    bounds = {0: (-2000.0, 2000.0), 1: (-3000.0, 3000.0)}  # far from the data: nothing is clipped or truncated
    if method == "insensitive-ir":  # with several columns, rows cannot be identified
        X, bounds = X[:, :1], {0: bounds[0]}
    measured = []
    for seed in range(250):
        with pytest.warns(SeededNoiseWarning):
            release = shoal.publish(X, 3000.0, bounds=bounds, method=method, k=k, monotone=False, seed=seed)
        data = release.data
        if method.startswith("insensitive"):
            back = np.empty_like(data)
            back[np.argsort(release.labels[:, 0], kind="stable")] = data
            data = back
        measured.append(np.square(data - X).sum(axis=0))
    expected = np.array(list(release.expected_sse.values()))
    error = np.std(measured, axis=0, ddof=1) / math.sqrt(len(measured))
    # Seeds are fixed: four standard errors hold for these draws and would for all but 1 in 16,000 choices of seeds.
    assert (np.abs(np.mean(measured, axis=0) - expected) < 4 * error).all()
