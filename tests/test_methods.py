"""Every method of the registry: against its slow reference, the papers' figures, and what holds for any input."""

import numpy as np
import pytest
import slow
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import shoal
from shoal.algorithms.registry import METHODS, Option
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, group_sizes, information_loss, sse

SLOW = {"mdav": slow.mdav, "diameter": slow.diameter, "centroid": slow.centroid}
RECORDWISE = [name for name, method in METHODS.items() if method.whole_records]


def quick(name):
    """Keep a method that takes a budget short."""
    options = {option.name for option in METHODS[name].options}
    return {"steps": 2000} if "steps" in options else {}


@st.composite
def tables(draw):
    """Small tables: smooth numbers, or few integers so that ties and duplicates abound, near 0 or near 1e9."""
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    cells = draw(st.sampled_from([st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)]))
    shift = draw(st.sampled_from([0.0, 1e9]))
    return draw(arrays(np.float64, (n, d), elements=cells)) + shift, draw(st.integers(2, n))


@pytest.mark.parametrize("name", SLOW)
@given(case=tables())
@settings(max_examples=60, deadline=None)
def test_fixed_size_methods_follow_their_papers(name, case):
    X, k = case
    X = np.round(X) - np.round(X).mean().round()  # sums of integers are exact, so ties are true ties
    assert np.array_equal(shoal.partition(X, k, name), canonical_labels(SLOW[name](X, k)))


@given(case=tables(), gamma=st.sampled_from([0.0, 0.5, 1.0, 1.5]))
@settings(max_examples=60, deadline=None)
def test_v_mdav_follows_its_paper(case, gamma):
    X, k = case
    X = np.round(X) - np.round(X).mean().round()
    assert np.array_equal(shoal.partition(X, k, "v-mdav", gamma=gamma), canonical_labels(slow.v_mdav(X, k, gamma)))


@pytest.mark.parametrize("name", SLOW)
def test_slow_references_agree_on_longer_smooth_tables(name):
    X = np.random.default_rng(8).normal(size=(120, 3))
    for k in (2, 5, 11):
        assert np.array_equal(shoal.partition(X, k, name), canonical_labels(SLOW[name](X, k)))


@pytest.mark.parametrize("name", RECORDWISE)
@given(case=tables())
@settings(max_examples=25, deadline=None)
def test_any_table_is_partitioned(name, case):
    X, k = case
    method = METHODS[name]
    if method.univariate:
        X = np.ascontiguousarray(X[:, :1])
    labels = shoal.partition(X, k, name, seed=3, **quick(name))
    sizes = group_sizes(labels)
    assert labels.shape == (len(X),)
    assert sizes.sum() == len(X)
    assert sizes.min() >= k
    if method.below_2k:
        assert sizes.max() < 2 * k
    assert np.array_equal(labels, canonical_labels(labels))
    assert np.array_equal(labels, shoal.partition(X, k, name, seed=3, **quick(name)))


@pytest.mark.parametrize("name", RECORDWISE)
def test_extremes_of_n_and_k(name):
    column = METHODS[name].univariate
    for X in (np.zeros((7, 2)), np.arange(14.0).reshape(7, 2), np.eye(7)):
        data = np.ascontiguousarray(X[:, :1]) if column else X
        assert shoal.partition(data, 7, name, **quick(name)).tolist() == [0] * 7
        assert group_sizes(shoal.partition(data, 4, name, **quick(name))).tolist() == [7]


def test_individual_ranking_groups_every_column():
    X = np.random.default_rng(1).normal(size=(50, 3))
    for ranking in ("univariate", "fixed"):
        labels = shoal.partition(X, 4, "individual-ranking", ranking=ranking)
        assert labels.shape == X.shape
        for j in range(3):
            assert np.array_equal(labels[:, j], shoal.partition(X[:, j], 4, ranking))


def test_v_mdav_keeps_the_best_gamma():
    from shoal.algorithms.v_mdav import GAMMAS

    X = np.random.default_rng(2).normal(size=(200, 2))
    losses = [sse(X, shoal.partition(X, 3, "v-mdav", gamma=gamma)) for gamma in GAMMAS]
    assert sse(X, shoal.partition(X, 3, "v-mdav")) == min(losses)


MDAV = {
    "tarragona": (16.93259, 22.46186, 33.19288),
    "census": (5.69219, 9.08844, 14.15593),
    "eia": (0.48294, 1.66668, 3.83967),
}


@pytest.mark.parametrize("data", MDAV)
def test_mdav_figures(reference, data):
    Z = reference(data)
    losses = [information_loss(Z, shoal.partition(Z, k, "mdav")) for k in (3, 5, 10)]
    assert np.round(losses, 5).tolist() == list(MDAV[data])


TABLE_5 = {
    ("tarragona", "diameter"): (15.60, 22.67, 36.99),
    ("tarragona", "centroid"): (15.62, 22.61, 37.10),
    ("census", "diameter"): (5.42, 8.81, 14.55),
    ("census", "centroid"): (5.35, 8.69, 14.34),
}


@pytest.mark.parametrize(("data", "name"), TABLE_5)
def test_seed_003_table_5(reference, data, name):
    Z = reference(data)
    losses = [information_loss(Z, shoal.partition(Z, k, name)) for k in (3, 5, 10)]
    assert np.round(losses, 2).tolist() == list(TABLE_5[data, name])


def test_seed_001_v_mdav_figures(reference):
    tarragona, census = reference("tarragona"), reference("census")
    assert round(information_loss(tarragona, shoal.partition(tarragona, 3, "v-mdav")), 2) == 15.85
    losses = [information_loss(census, shoal.partition(census, k, "v-mdav")) for k in (3, 5, 10)]
    assert np.round(losses, 2).tolist() == [5.66, 8.98, 14.04]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"method": "mdva"}, "Did you mean 'mdav'"),
        ({"method": "v-mdav", "gama": 1}, "Did you mean 'gamma'"),
        ({"method": "v-mdav", "gamma": -1}, "'gamma' of method 'v-mdav' must be at least 0, got -1"),
        ({"method": "v-mdav", "gamma": "much"}, "must be of type float, got 'much'"),
        ({"method": "individual-ranking", "ranking": "best"}, "must be one of univariate, fixed, got 'best'"),
        ({"method": "centroid", "gamma": 1}, "it has none"),
        ({"method": "univariate"}, "groups one column, got 2"),
        ({"k": 1}, "'k' must be at least 2, got 1"),
        ({"k": 9}, "k=9, but the table has 8 records"),
        ({"k": 2.5}, "'k' must be a whole number of at least 2, got 2.5"),
        ({"X": [["a", "b"]]}, "must be an array of numbers"),
        ({"X": [[1.0, np.nan], [1, 2]]}, "got nan in record 0, column 1"),
        ({"X": np.zeros((3, 0))}, "at least one column"),
    ],
)
def test_partition_refuses_by_name(call, words):
    arguments = {"X": np.arange(16.0).reshape(8, 2), "k": 2} | call
    with pytest.raises(InputError) as caught:
        shoal.partition(arguments.pop("X"), arguments.pop("k"), **arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["mdav", "v-mdav", "diameter", "centroid", "mst-d", "two-swap", "search"])
def test_numbers_whose_squares_are_not_finite(name):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    options = {"steps": 50} if name == "search" else {}
    great = shoal.partition(np.ldexp(X, 1023), 3, name, seed=0, **options)
    assert np.array_equal(great, shoal.partition(X, 3, name, seed=0, **options))


def test_an_option_may_be_an_array():
    option = Option("start", object, None, "labels to start from")
    labels = np.array([0, 1, 0])
    assert option.read(labels, "any") is labels
    assert option.read(None, "any") is None


def test_registry_is_complete():
    for method in shoal.methods():
        named = [method.time_option, method.steps_option, method.shared and method.shared.option]
        assert {name for name in named if name} <= {option.name for option in method.options}
        assert method.shared is None or callable(method.shared.load())
        assert method.growth == (2 if "n²" in method.cost else 1)  # the words and the number agree
        assert callable(method.load())
        assert method.summary
        assert method.paper
        assert method.cost.startswith("O(")
        assert all(option.help for option in method.options)
    assert all(name in repr(shoal.methods()) for name in METHODS)
