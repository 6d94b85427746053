"""Integers, categories, values that are not truncated, and estimates with error bars.

Tests on OpenDP's or the system's draws cannot fix a seed. Each says how often it fails by chance.
"""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_publish_cli import invoke

import shoal
from shoal.core.errors import InputError, SeededNoiseWarning
from shoal.privacy.noise import noisy_means
from shoal.privacy.noisy_release import in_ascending_order
from shoal.privacy.publication_methods import PUBLICATION_METHODS
from shoal.privacy.randomised_response import WORDS, _truth_words, estimate_shares, randomise

PEOPLE = pl.DataFrame(
    {
        "age": np.random.default_rng(0).integers(18, 90, 300),
        "income": np.random.default_rng(1).uniform(0, 1e3, 300),
        "smokes": np.arange(300) % 3 == 0,
        "region": ["north", "south", "east"] * 100,
    }
)
BOUNDS = {"age": (0, 120), "income": (0, 1e3)}


def seeded(*arguments, **options):
    with pytest.warns(SeededNoiseWarning):
        return shoal.publish(*arguments, **options)


# Integers


@pytest.mark.parametrize("convert", [pl.DataFrame.clone, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
@pytest.mark.parametrize("method", PUBLICATION_METHODS)
def test_integers_stay_integers(convert, method):
    k = 5 if PUBLICATION_METHODS[method].k == "needed" else None
    release = shoal.publish(convert(PEOPLE), 1.0, bounds=BOUNDS, integer_columns="age", method=method, k=k)
    frame = pl.DataFrame(release.data) if not isinstance(release.data, pa.Table) else pl.from_arrow(release.data)
    assert frame["age"].dtype == pl.Int64
    assert frame["age"].is_between(0, 120).all()
    assert frame["income"].dtype == pl.Float64
    assert release.parameters["integer_columns"] == ["age"]


def test_integers_in_a_file(tmp_path):
    PEOPLE.write_csv(tmp_path / "in.csv")
    shoal.publish(
        tmp_path / "in.csv", 1.0, bounds=BOUNDS, integer_columns="age", truncate=False, output=tmp_path / "o.csv"
    )
    assert pl.read_csv(tmp_path / "o.csv").schema["age"] == pl.Int64
    assert shoal.publish(np.arange(9), 1.0, bounds={0: (0, 9)}, integer_columns=0).data.dtype == np.int64


def test_the_noise_of_integers_is_discrete_laplace():
    # Groups of one record with a domain of width 4 at ε = 2: noise is a whole number with scale 2.
    n = 20_000
    means = noisy_means(
        np.full(n, 2.0), np.arange(n), np.ones(n), lower=0, upper=4, epsilon=2.0, integer=True, truncate=False
    )
    noise = means - 2.0
    assert (noise == np.rint(noise)).all()
    p = math.exp(-0.5)
    expected = np.array([(1 - p) / (1 + p) * p ** abs(z) for z in range(-6, 7)])
    seen = np.array([(noise == z).sum() for z in range(-6, 7)])
    rest = n - seen.sum(), n * (1 - expected.sum())
    # χ² with 13 degrees of freedom, level 1e-9: fails once in 1e9 runs.
    assert stats.chisquare([*seen, rest[0]], [*(n * expected), rest[1]]).pvalue > 1e-9


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (
            {"bounds": {"age": (0, 99.5)}, "integer_columns": "age"},
            "'bounds' must be whole numbers for integer column 'age'",
        ),
        ({"bounds": {"age": (0, 9)}, "integer_columns": "agee"}, "'integer_columns' names column 'agee'"),
        ({"bounds": {"age": (0, 1e15)}, "integer_columns": "age", "epsilon": 1e-3}, "over so wide a domain"),
        ({"bounds": {"age": (0, 9)}, "categories": {"region": ["a"]}}, "at least two different categories"),
        ({"bounds": {"age": (0, 9)}, "categories": {"region": ["a", "a"]}}, "at least two different categories"),
        ({"bounds": {"age": (0, 9)}, "categories": {"region": "north"}}, "at least two different categories"),
        ({"bounds": {"age": (0, 9)}, "categories": {"where": ["a", "b"]}}, "names column 'where'"),
        ({"bounds": {"age": (0, 9)}, "categories": {"region": ["a", "b"]}, "budget": "sensitivity"}, "have no width"),
        ({"bounds": {}, "categories": {"region": ["a", "b"]}, "epsilon": 1e-18}, "too small"),
    ],
    ids=str,
)
def test_refusals(options, rule):
    with pytest.raises(InputError, match=rule):
        shoal.publish(**({"data": PEOPLE, "epsilon": 1.0} | options))


# Categories


@settings(deadline=None)
@given(categories=st.integers(2, 1000), epsilon=st.floats(1e-9, 60))
def test_true_answers_are_no_more_frequent_than_epsilon_allows(categories, epsilon):
    words = Fraction(_truth_words(categories, epsilon), WORDS)
    factor = 1 + words * categories / (1 - words)
    assert float(factor) <= math.exp(epsilon) * (1 + 1e-15)
    if 1e-6 < epsilon < 25:
        assert math.log(factor) == pytest.approx(epsilon, rel=1e-6)


def test_answers_have_the_probabilities_that_they_should():
    n, c, epsilon = 30_000, 3, 1.2
    told = randomise(np.zeros(n, dtype=np.int64), c, epsilon)
    other = 1 / (math.exp(epsilon) + c - 1)
    expected = n * np.array([1 - 2 * other, other, other])
    assert stats.chisquare(np.bincount(told), expected).pvalue > 1e-9  # fails once in 1e9 runs


def test_no_answer_distinguishes_neighbours_by_more_than_epsilon():
    n = 20_000
    ratios = []
    for epsilon in (1.0, 1.5):
        counts = [np.bincount(randomise(np.full(n, code), 4, epsilon, np.random.default_rng(7)))[0] for code in (0, 1)]
        ratios.append((math.log(counts[0] / counts[1]), math.sqrt(1 / counts[0] + 1 / counts[1])))
    assert ratios[0][0] <= 1.0 + 5 * ratios[0][1]  # fixed draws; for others it fails once in three million
    assert ratios[1][0] > 1.0 + 5 * ratios[1][1]  # the test has power


@pytest.mark.parametrize("convert", [pl.DataFrame.clone, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
@pytest.mark.parametrize("method", ["insensitive-ir", "none", "optimal"])
def test_categories_are_released(convert, method):
    categories = {"smokes": [False, True], "region": ["north", "south", "west"]}
    release = shoal.publish(convert(PEOPLE), 2.0, bounds={"age": (0, 120)}, categories=categories, method=method)
    frame = pl.DataFrame(release.data) if not isinstance(release.data, pa.Table) else pl.from_arrow(release.data)
    assert frame.columns == ["age", "smokes", "region"]
    assert set(frame["region"]) == {"north", "south", "west"}
    assert set(frame["smokes"]) == {False, True}
    assert release.budgets == pytest.approx({"age": 2 / 3, "smokes": 2 / 3, "region": 2 / 3})
    assert release.clipped["region"] == 100  # east is none of them and counts as the last
    assert "region" in release.guarantee
    assert "reported deliberately with probability" in str(release)


def test_categories_alone_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("in.csv")
    command = ["publish", "in.csv", "-e", "1", "--categories", "smokes=true,false", "-m", "none", "-o", "o.csv"]
    code, shown, _, _ = invoke(*command, "--manifest", "M.json", "--report", "R.html")
    assert code == 0
    assert "share of true" in shown
    assert pl.read_csv("o.csv").columns == ["smokes"]
    assert invoke(*command, "--categories", "region")[0] == 1
    assert invoke(*command, "--categories", "smokes=a,b")[0] == 1


def test_a_record_keeps_its_place_only_where_rows_do():
    table = pl.DataFrame({"x": np.arange(500.0), "high": np.arange(500) >= 250})
    options = {"bounds": {"x": (0, 500)}, "categories": {"high": [False, True]}, "budget": {"x": 1.0, "high": 50.0}}
    kept = shoal.publish(table, 51.0, method="none", **options).data["high"]
    assert (kept == table["high"]).all()
    moved = shoal.publish(table, 51.0, **options).data["high"]
    assert moved.sum() == 250
    assert not (moved == table["high"]).all()


# Truncation, order


def test_values_that_are_not_truncated_have_the_right_mean():
    table = pl.DataFrame({"x": np.random.default_rng(0).exponential(1.0, 2000)})
    bounds = {"x": (0, 100)}
    cut = seeded(table, 1.0, bounds=bounds, method="none", seed=1)
    whole = seeded(table, 1.0, bounds=bounds, method="none", seed=1, truncate=False)
    assert cut.data["x"].mean() > 20 * table["x"].mean()
    assert whole.data["x"].min() < 0
    assert whole.data["x"].max() > 100
    for release in (cut, whole):
        estimate = release.estimates["x"].mean
        assert estimate.error == pytest.approx(100 * math.sqrt(2 * 2000) / 2000)
        assert abs(estimate.value - table["x"].mean()) < 4 * estimate.error
    assert whole.data["x"].mean() == pytest.approx(whole.estimates["x"].mean.value)
    assert "values may be outside their domain because they were not truncated" in whole.notes


def test_narrow_types_are_widened_or_refused():
    frame = pd.DataFrame({"x": np.ones(30, dtype=np.float32)})
    assert shoal.publish(frame, 1e-6, bounds={"x": (0, 1e37)}, truncate=False).data["x"].dtype == np.float64
    with pytest.raises(InputError, match="must fit the type of column"):
        shoal.publish(np.ones(30, dtype=np.float16), 1e-3, bounds={0: (0, 100)}, truncate=False)


def test_order_brings_every_draw_nearer_to_the_truth():
    table = pl.DataFrame({"x": np.random.default_rng(0).exponential(10.0, 300)})
    options = {"bounds": {"x": (0, 100)}, "k": 10, "truncate": False}
    ordered = np.sort(table["x"])
    nearer = []
    for seed in range(20):
        raw, ascending = (
            seeded(table, 1.0, seed=seed, monotone=m, **options).data["x"].to_numpy() for m in (False, True)
        )
        assert (np.diff(ascending) >= 0).all()
        assert ascending.mean() == pytest.approx(raw.mean())
        errors = [np.square(values - ordered).sum() for values in (raw, ascending)]
        assert errors[1] <= errors[0]
        nearer.append(errors[1] / errors[0])
    assert np.mean(nearer) < 0.7


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.data())
def test_ascending_order_is_the_nearest(means, data):
    sizes = np.array(data.draw(st.lists(st.integers(1, 9), min_size=len(means), max_size=len(means))))
    found = in_ascending_order(np.array(means), sizes)
    assert (np.diff(found) >= 0).all()
    other = np.sort(np.array(data.draw(st.lists(st.floats(-100, 100), min_size=len(means), max_size=len(means)))))
    assert (sizes * (found - means) ** 2).sum() <= (sizes * (other - means) ** 2).sum() * (1 + 1e-9) + 1e-9


# Estimates


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
def test_error_bars_are_those_of_many_draws(method):
    k = 20 if PUBLICATION_METHODS[method].takes_sizes else None
    table = pl.DataFrame({"x": np.random.default_rng(0).exponential(10.0, 300)})
    found = []
    for seed in range(150):
        release = seeded(table, 1.0, bounds={"x": (0, 100)}, method=method, k=k, seed=seed)
        found.append([figure.value for _, figure in release.estimates["x"].rows()])
    errors = np.array([figure.error for _, figure in release.estimates["x"].rows()])
    assert len(errors) == (4 if method.startswith("insensitive") else 1)
    # Fixed seeds. A standard deviation of 150 draws of Laplace noise is off by 13 %: five standard errors.
    assert np.std(found, axis=0) == pytest.approx(errors, rel=0.65)
    assert abs(np.mean(found, axis=0)[0] - table["x"].mean()) < 5 * errors[0] / math.sqrt(150)
    if len(errors) > 1:
        ranks = np.sort(table["x"])
        for share, estimate in zip((0.25, 0.5, 0.75), np.mean(found, axis=0)[1:], strict=True):
            group = (math.ceil(share * 300) - 1) // 20
            assert abs(estimate - ranks[20 * group : 20 * group + 20].mean()) < 5 * errors[1] / math.sqrt(150)


def test_error_bars_need_no_data():
    tables = [pl.DataFrame({"x": np.random.default_rng(seed).uniform(0, 100, 90)}) for seed in (0, 1)]
    errors = [
        [figure.error for _, figure in shoal.publish(t, 1.0, bounds={"x": (0, 100)}).estimates["x"].rows()]
        for t in tables
    ]
    assert errors[0] == errors[1]


def test_shares_are_estimated_without_bias():
    rng, truth = np.random.default_rng(3), np.repeat([0, 1, 2], [600, 300, 100])
    found = np.array([estimate_shares(randomise(truth, 3, 1.0, rng), 3, 1.0)[0] for _ in range(300)])
    _, error = estimate_shares(truth, 3, 1.0)
    assert np.abs(found.mean(axis=0) - [0.6, 0.3, 0.1]).max() < 5 * error / math.sqrt(300)
    assert (found.std(axis=0) <= 1.25 * error).all()
