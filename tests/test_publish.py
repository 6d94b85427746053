"""publish(): budgets, bounds, tables in and out, the guarantee, every refusal and every warning."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.registry import METHODS
from shoal.core.errors import (
    DataBoundsWarning,
    InputError,
    PrivacyWarning,
    PrivateExplorationWarning,
    SeededNoiseWarning,
    UnevenBudgetWarning,
    UnprotectedColumnWarning,
)
from shoal.core.measures import sse
from shoal.privacy.budgets import split_budget
from shoal.privacy.domains import Bounds
from shoal.privacy.exploration import explore
from shoal.privacy.publication_methods import PUBLICATION_METHODS, find_publication_method
from shoal.privacy.record_groups import group_columns

BOUNDS = {"sales": (0.0, 100.0), "wages": (0.0, 300.0)}


@pytest.fixture
def firms():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "name": [f"firm {i}" for i in range(80)],
            "sales": rng.uniform(0, 100, 80),
            "region": ["north", "south"] * 40,
            "wages": rng.integers(0, 300, 80),
        }
    )


def exactly(*arguments, **options):
    """Explore with the confidential values."""
    with pytest.warns(PrivateExplorationWarning, match="reveals something about the data"):
        return explore(*arguments, private=True, **options)


# Budgets


def test_budgets_of_the_paper(firms):
    even = shoal.publish(firms, 2.0, bounds=BOUNDS, budget="even")
    assert even.budgets == {"sales": 1.0, "wages": 1.0}
    by_width = shoal.publish(firms, 2.0, bounds=BOUNDS, budget="sensitivity")
    assert by_width.budgets == {"sales": 0.5, "wages": 1.5}
    assert by_width.scales == {"sales": 200.0, "wages": 200.0}
    given_ = shoal.publish(firms, 2.0, bounds=BOUNDS, budget={"wages": 0.25, "sales": 1.75})
    assert given_.budgets == {"sales": 1.75, "wages": 0.25}
    assert given_.scales == {"sales": 100 / 1.75, "wages": 300 / 0.25}


def test_a_column_in_small_units_has_an_equal_share_by_default():
    people = pl.DataFrame({"age": np.arange(20.0, 60.0), "income": np.linspace(0, 9e6, 40)})
    bounds = {"age": (0, 120), "income": (0, 1e7)}
    release = shoal.publish(people, 1.0, bounds=bounds, method="optimal")
    assert release.budgets == {"age": 0.5, "income": 0.5}
    assert release.scales["age"] == 240.0
    assert release.parameters["budget"] == "even"
    with pytest.warns(UnevenBudgetWarning, match=r"a very small share of epsilon=1: 'age' 1\.2e-05\."):
        by_width = shoal.publish(people, 1.0, bounds=bounds, budget="sensitivity")
    assert by_width.scales["age"] > 1e7
    found = exactly(people, bounds=bounds, epsilon=1.0, methods="optimal")
    assert found.points == exactly(people, bounds=bounds, epsilon=1.0, methods="optimal", budget="even").points
    assert found.points[0].sse == pytest.approx(sum(release.expected_sse.values()))


def test_whole_records_get_the_noise_of_algorithm_1(firms):
    # Δ_D/(|C|ε) with Δ_D = 100 + 300 in every column, whichever way the budget is said to be split.
    for budget in ("even", "sensitivity"):
        release = shoal.publish(firms, 2.0, bounds=BOUNDS, method="mdav", k=8, budget=budget)
        assert release.scales == {"sales": 200.0, "wages": 200.0}
        assert (release.labels[:, 0] == release.labels[:, 1]).all()


def test_disjoint_sets_of_columns_are_algorithm_2():
    X = np.random.default_rng(1).uniform(0, 1, (60, 3))
    bounds = {0: (0, 1), 1: (0, 3), 2: (0, 4)}
    release = shoal.publish(X, 1.0, bounds=bounds, method="mdav", k=5, budget="even", sets=[[0, 2], [1]])
    assert release.budgets == {0: 0.1, 1: 0.5, 2: 0.4}
    assert (release.labels[:, 0] == release.labels[:, 2]).all()
    assert (release.labels[:, 0] != release.labels[:, 1]).any()
    assert release.scales == pytest.approx({0: 10.0, 1: 6.0, 2: 10.0})


def test_insensitive_noise_is_the_baseline_of_the_paper(firms):
    # n/k groups, each with sensitivity Δ/k: scale (n/k)(Δ/k)/ε on a mean of k, here with Δ_i/ε_i = 400.
    release = shoal.publish(firms, 1.0, bounds=BOUNDS, method="insensitive", k=8)
    assert release.scales == {"sales": 10 * 400.0, "wages": 10 * 400.0}


@settings(deadline=None, max_examples=200)
@given(
    epsilon=st.floats(1e-6, 1e6),
    width=st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=6),
    how=st.sampled_from(["even", "sensitivity"]),
)
def test_budgets_sum_to_epsilon_and_never_to_more(epsilon, width, how):
    names = list(range(len(width)))
    shares = split_budget(epsilon, how, names, np.array(width), [[j] for j in names])
    assert math.fsum(shares) <= epsilon
    assert math.fsum(shares) == pytest.approx(epsilon, rel=1e-12)


def test_shares_that_differ_from_epsilon_by_rounding_are_adjusted():
    third = round(1 / 3, 10)
    shares = split_budget(1.0, {0: third, 1: third, 2: third + 3e-10}, [0, 1, 2], np.ones(3), [[0], [1], [2]])
    assert math.fsum(shares) <= 1.0
    assert shares == pytest.approx([1 / 3] * 3, rel=1e-8)


# Groups


@pytest.mark.parametrize("k", [1, 2, 3, 7, 20, 30, 61])
def test_mdav_of_a_column_is_mdav(k):
    rng = np.random.default_rng(k)
    for X in (rng.normal(size=(61, 1)), rng.integers(0, 9, (61, 1)).astype(float)):
        bounds = Bounds(np.array([-9.0]), np.array([9.0]))
        (ours,) = group_columns(find_publication_method("mdav-ir"), X, bounds, np.ones(1), [[0]], k)
        assert sse(X, ours.labels) == pytest.approx(sse(X, METHODS["mdav"].run(X, k).labels))
        assert ours.sizes.min() >= k


@settings(deadline=None, max_examples=100)
@given(data=st.data(), n=st.integers(4, 40), k=st.integers(1, 6))
def test_insensitive_groups_lose_and_gain_one_record_at_most(data, n, k):
    k = min(k, n)
    cells = st.integers(0, 5).map(float)
    X = np.array(data.draw(st.lists(st.tuples(cells, cells), min_size=n, max_size=n)))
    Y = X.copy()
    Y[data.draw(st.integers(0, n - 1))] = data.draw(st.tuples(cells, cells))
    bounds = Bounds(np.zeros(2), np.full(2, 5.0))
    (before,), (after,) = (
        group_columns(find_publication_method("insensitive"), Z, bounds, np.ones(2), [[0, 1]], k) for Z in (X, Y)
    )
    assert before.sizes.tolist() == after.sizes.tolist()  # sizes depend on n and k only
    sums = [np.array([Z[g.labels == c].sum(axis=0) for c in range(g.touched)]) for Z, g in ((X, before), (Y, after))]
    assert (np.abs(sums[0] - sums[1]) <= 5).all()


def test_a_least_group_size_for_the_optimum(firms):
    release = shoal.publish(firms, 1e6, bounds=BOUNDS, method="optimal", k=6)
    assert min(sizes.min() for sizes in release.sizes.values()) >= 6
    assert shoal.publish(firms, 1e6, bounds=BOUNDS, method="optimal").sizes["sales"].min() == 1


# Bounds


def test_values_outside_are_clipped_and_counted(firms):
    release = shoal.publish(firms, 1e9, bounds={"sales": (20, 80), "wages": (0, 300)}, method="none")
    sales = firms["sales"].to_numpy()
    assert release.clipped == {"sales": int(((sales < 20) | (sales > 80)).sum()), "wages": 0}
    assert release.data["sales"].to_numpy() == pytest.approx(np.clip(sales, 20, 80), abs=1e-5)
    assert release.expected_sse["sales"] == pytest.approx(np.square(sales - np.clip(sales, 20, 80)).sum(), rel=1e-6)


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
def test_released_values_lie_in_the_domain(firms, method):
    k = 4 if PUBLICATION_METHODS[method].k == "needed" else None
    release = shoal.publish(firms, 0.01, bounds=BOUNDS, method=method, k=k)
    for name, (low, high) in BOUNDS.items():
        values = release.data[name].to_numpy()
        assert low <= values.min()
        assert values.max() <= high


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
@pytest.mark.parametrize("bounds", [(-1e100, 1e100), (0.0, 1e-100)])
def test_the_farthest_bounds_and_the_smallest_budget_can_be_computed(method, bounds):
    X = np.linspace(*bounds, 20)
    release = shoal.publish(X, 1e-8, bounds={0: bounds}, method=method, k=1 if method == "none" else 10)
    assert np.isfinite([release.scales[0], release.expected_sse[0]]).all()
    assert bounds[0] <= release.data.min() <= release.data.max() <= bounds[1]


def test_values_far_outside_are_clipped_too():
    release = shoal.publish(np.array([1.0, 2.0, 1e308, -1e308]), 1.0, bounds={0: (0, 10)})
    assert release.clipped == {0: 2}
    assert release.expected_sse == {0: math.inf}


@pytest.mark.parametrize(
    "table",
    [
        np.ones((3, 2), dtype=np.float16),
        pl.DataFrame({"0": np.ones(3), "1": np.ones(3)}, schema={"0": pl.Float32, "1": pl.Float32}),
        pd.DataFrame(np.ones((3, 2), dtype=np.float32), columns=["0", "1"]),
        pa.table({"0": pa.array([1.0] * 3, pa.float32()), "1": pa.array([1.0] * 3, pa.float32())}),
    ],
    ids=lambda table: type(table).__module__,
)
def test_bounds_fit_the_type_of_the_column(table):
    first, second = (0, 1) if isinstance(table, np.ndarray) else ("0", "1")
    with pytest.raises(InputError, match=r"'bounds' must fit the type of column '?1'?, which cannot represent"):
        shoal.publish(table, 1.0, bounds={second: (-1e50, 1), first: (0, 100)})


def test_bounds_from_the_data_warn_and_are_the_papers(firms):
    with pytest.warns(DataBoundsWarning, match="reads the domain from the confidential values"):
        release = shoal.publish(firms, 1.0, bounds="data", columns=["sales", "wages"])
    assert release.bounds["sales"] == (0.0, 1.5 * firms["sales"].max())
    assert "NO GUARANTEE HOLDS" in release.guarantee
    assert "1.5" not in str(release)
    assert f"{release.bounds['sales'][1]:g}" not in str(release)


# Tables


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.clone])
def test_the_kind_of_table_is_kept_and_the_rest_dropped(firms, convert):
    given_ = convert(firms)
    release = shoal.publish(given_, 1.0, bounds=BOUNDS)
    assert type(release.data) is type(given_)
    names = release.data.column_names if isinstance(given_, pa.Table) else list(release.data.columns)
    assert names == ["sales", "wages"]
    assert len(release.data) == 80
    assert "columns without protection were dropped: name, region" in release.notes


def test_an_index_of_pandas_is_dropped_too(firms):
    frame = firms.to_pandas().set_index("name")
    release = shoal.publish(frame, 1.0, bounds=BOUNDS)
    assert release.data.index.equals(pd.RangeIndex(80))
    assert sum("the index of the pandas table is not in the release" in note for note in release.public_notes) == 1
    frame.index = pd.RangeIndex(80, name="name")
    release = shoal.publish(frame, 1.0, bounds=BOUNDS)
    assert release.data.index.name is None
    assert not any("index" in note for note in shoal.publish(firms, 1.0, bounds=BOUNDS).notes)


def test_arrays_and_vectors():
    X = np.random.default_rng(0).random((30, 3))
    assert shoal.publish(X, 1.0, bounds={2: (0, 1)}).data.shape == (30, 1)
    assert shoal.publish(X[:, 0], 1.0, bounds={0: (0, 1)}).data.shape == (30,)
    assert shoal.publish(np.arange(10), 1.0, bounds={0: (0, 9)}).data.dtype == np.float64


def test_the_given_table_is_untouched(firms):
    before = firms.clone()
    shoal.publish(firms, 1.0, bounds=BOUNDS)
    assert firms.equals(before)


def test_columns_kept_by_name_warn(firms):
    with pytest.warns(UnprotectedColumnWarning, match="without any protection: region"):
        release = shoal.publish(firms, 1.0, bounds=BOUNDS, method="none", keep="region")
    assert release.data.columns == ["sales", "region", "wages"]
    assert release.data["region"].equals(firms["region"])
    assert "NOT protected at all, released unchanged: 'region'" in release.guarantee


def test_insensitive_rows_do_not_follow_the_input(firms):
    release = shoal.publish(firms, 1e9, bounds=BOUNDS, method="insensitive", k=8)
    order = firms.select(pl.col("sales") / 100 + pl.col("wages") / 300).to_series().arg_sort()
    for rows in order.to_numpy().reshape(10, 8):
        assert len(np.unique(release.labels[rows, 0])) == 1
    means = firms["sales"].to_numpy()[order.to_numpy()].reshape(10, 8).mean(axis=1)
    assert release.data["sales"].to_numpy() == pytest.approx(np.repeat(means, 8), abs=1e-3)
    # The same people in another order give the same table: rows belong to no person.
    shuffled = firms.sample(fraction=1, shuffle=True, seed=1)
    again = shoal.publish(shuffled, 1e9, bounds=BOUNDS, method="insensitive", k=8)
    assert again.data["sales"].to_numpy() == pytest.approx(release.data["sales"].to_numpy(), abs=1e-3)


# The guarantee


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
def test_the_guarantee_states_the_definition_that_holds(firms, method):
    entry = PUBLICATION_METHODS[method]
    release = shoal.publish(firms, 1.0, bounds=BOUNDS, method=method, k=4 if entry.k == "needed" else None)
    assert release.definition == entry.definition == (1 if method in ("none", "insensitive", "insensitive-ir") else 3)
    assert f"Definition {entry.definition}" in release.guarantee
    assert "'sales', 'wages'" in release.guarantee
    assert "e^1 = 2.72" in release.guarantee
    assert ("NOT ε-differentially private as a mechanism from raw table" in release.guarantee) == (
        entry.definition == 3
    )
    printed = " ".join(str(release).split())
    assert release.guarantee in printed
    assert release.guarantee.split(":")[0] in release._repr_html_()


def test_why_definition_1_does_not_hold_for_groups_that_follow_the_data():
    # The worked example of the docs: Dora's 10 becomes 0, and Ada and Ben no longer share a value.
    before = shoal.publish(np.array([0.0, 1.0, 9.0, 10.0]), 1.0, bounds={0: (0, 10)}, method="mdav-ir", k=2)
    after = shoal.publish(np.array([0.0, 1.0, 9.0, 0.0]), 1.0, bounds={0: (0, 10)}, method="mdav-ir", k=2)
    assert before.labels[0] == before.labels[1]
    assert after.labels[0] != after.labels[1]


def test_a_seed_repeats_the_noise_with_a_warning(firms):
    with pytest.warns(SeededNoiseWarning, match="do not release"):
        one = shoal.publish(firms, 1.0, bounds=BOUNDS, seed=3)
    with pytest.warns(SeededNoiseWarning):
        two = shoal.publish(firms, 1.0, bounds=BOUNDS, seed=3)
    assert one.data.equals(two.data)
    assert "NO GUARANTEE HOLDS" in one.guarantee
    assert not shoal.publish(firms, 1.0, bounds=BOUNDS).data.equals(shoal.publish(firms, 1.0, bounds=BOUNDS).data)


def test_all_warnings_are_privacy_warnings():
    for kind in (DataBoundsWarning, SeededNoiseWarning, UnprotectedColumnWarning):
        assert issubclass(kind, PrivacyWarning)
        assert getattr(shoal, kind.__name__) is kind


# Secrets


def test_no_output_contains_a_raw_value(firms):
    secret = pl.DataFrame({"sales": np.linspace(12.3456, 87.6543, 80), "wages": np.linspace(101.77, 298.13, 80)})
    for method in PUBLICATION_METHODS:
        k = 4 if PUBLICATION_METHODS[method].k == "needed" else None
        release = shoal.publish(secret, 1.0, bounds=BOUNDS, method=method, k=k)
        shown = str(release) + repr(release) + release._repr_html_()
        for value in (*secret["sales"], *secret["wages"]):
            assert f"{value:.4f}"[:7] not in shown
            assert value not in release.data["sales"].to_list()


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ({"x": ["secret-cell", "1"]}, "Column 'x' must be numeric"),
        ({"x": [123.25, None]}, "Column 'x' must hold a finite number in every record: missing"),
        ({"x": [123.25, math.inf]}, "finite number in every record"),
        ({"x": [123.25, math.nan]}, "finite number in every record"),
    ],
)
def test_messages_about_cells_do_not_show_them(table, rule):
    with pytest.raises(InputError, match=rule) as caught:
        shoal.publish(pl.DataFrame(table), 1.0, bounds={"x": (0, 200)})
    assert "secret" not in str(caught.value)
    assert "123" not in str(caught.value)


# Refusals


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"epsilon": 0}, "'epsilon' must be a positive number, got 0"),
        ({"epsilon": -1.0}, "'epsilon' must be a positive number, got -1"),
        ({"epsilon": math.inf}, "'epsilon' must be a positive number, got inf"),
        ({"epsilon": "much"}, "'epsilon' must be a positive number, got 'much'"),
        ({"epsilon": True}, "'epsilon' must be a positive number, got True"),
        ({"method": "optimum"}, "'method' must be one of .*, optimal, .* Did you mean 'optimal'"),
        ({"bounds": {"sales": (0, 1)}, "columns": ["sales", "wages"]}, "'bounds' must contain .* 'wages' has none"),
        ({"bounds": {**BOUNDS, "salse": (0, 1)}}, "names column 'salse', which .* Did you mean 'sales'"),
        ({"bounds": {**BOUNDS, "region": (0, 1)}, "columns": ["sales", "wages"]}, "'bounds' names column 'region'"),
        ({"bounds": {**BOUNDS, "sales": (5, 5)}}, "two finite numbers, lower first, for column 'sales'"),
        ({"bounds": {**BOUNDS, "sales": (9, 1)}}, "lower first, for column 'sales', got 9 and 1"),
        ({"bounds": {**BOUNDS, "sales": (0, math.inf)}}, "two finite numbers"),
        ({"bounds": {**BOUNDS, "sales": (-1e308, 1e308)}}, "two finite numbers"),
        ({"bounds": {**BOUNDS, "sales": (0, math.nan)}}, "two finite numbers"),
        (
            {"bounds": {**BOUNDS, "sales": (0, 1e200)}},
            r"between -1e\+100 and 1e\+100 .* column 'sales' got 0 and 1e\+200",
        ),
        ({"bounds": {**BOUNDS, "sales": (-1e101, 1)}}, r"between -1e\+100 and 1e\+100 .* column 'sales' got -1e\+101"),
        ({"bounds": {**BOUNDS, "sales": (0, 1e-300)}}, "at least 1e-100 apart, .* column 'sales' got 0 and 1e-300"),
        ({"epsilon": 1e-310}, "'epsilon' leaves column 'sales' a budget of .*, too small"),
        ({"bounds": {**BOUNDS, "sales": 3}}, r"must be \(lower, upper\) for column 'sales', got 3"),
        ({"bounds": {**BOUNDS, "sales": ("a", "b")}}, r"must be \(lower, upper\) for column 'sales'"),
        ({"bounds": "guess"}, "'bounds' must be a mapping .* or 'data', got 'guess'"),
        ({"bounds": [(0, 1)]}, "'bounds' must be a mapping of columns .* got list"),
        ({"columns": ["sales", "sales"]}, "lists column 'sales' twice"),
        ({"columns": []}, "'columns' must name at least one column"),
        ({"columns": ["profit"], "bounds": {"profit": (0, 1)}}, "names column 'profit', which the table does not have"),
        ({"columns": ["region"], "bounds": {"region": (0, 1)}}, "Column 'region' must be numeric"),
        ({"method": "mdav"}, "Method 'mdav' requires 'k'"),
        ({"method": "mdav-ir"}, "Method 'mdav-ir' requires 'k'"),
        ({"method": "insensitive"}, "Method 'insensitive' requires 'k'"),
        ({"method": "none", "k": 3}, "'k' does not apply to method 'none'"),
        ({"k": 0}, "'k' must be a whole number of at least 1, got 0"),
        ({"k": 2.5}, "'k' must be a whole number of at least 1, got 2.5"),
        ({"k": 81}, "'k' must not exceed the number of records: k=81, but the table has 80"),
        ({"budget": "fair"}, "'budget' must be one of 'sensitivity', 'even' or a mapping .* got 'fair'"),
        ({"budget": {"sales": 1.0}}, "'budget' must set a share for every .* 'wages' has none"),
        ({"budget": {"sales": 0.5, "wages": 0.4}}, "'budget' must sum to epsilon=1, but its shares sum to 0.9"),
        ({"budget": {"sales": 1.5, "wages": -0.5}}, r"budget\['wages'\].* must be a positive number, got -0.5"),
        ({"budget": {"sales": 0.5, "wages": 0.4, "x": 0.1}}, "'budget' names column 'x'"),
        (
            {"method": "optimal", "sets": [["sales"], ["wages"]]},
            "'sets' requires method 'mdav', got method 'optimal'",
        ),
        ({"method": "mdav", "k": 4, "sets": [["sales"]]}, "'sets' must list every published column exactly once"),
        ({"method": "mdav", "k": 4, "sets": [["sales", "wages"], ["sales"]]}, "exactly once"),
        ({"method": "mdav", "k": 4, "sets": [["sales", "wages"], []]}, "in nonempty sets"),
        ({"method": "mdav", "k": 4, "sets": [["sale"], ["wages"]]}, "'sets' names column 'sale'"),
        ({"method": "none", "keep": ["sales"]}, "'columns' and 'keep' both name column 'sales'"),
        ({"method": "none", "keep": ["nowhere"]}, "'keep' names column 'nowhere'"),
        ({"keep": ["region"], "method": "insensitive", "k": 4}, "'keep' cannot be combined with method 'insensitive'"),
        ({"total_budget": 3.0}, "'total_budget' requires a ledger"),
        ({"seed": -1}, "'seed' must be a whole number of at least 0, got -1"),
        ({"seed": 1.5}, "'seed' must be a whole number"),
        (
            {"data": pl.DataFrame({"sales": [], "wages": []}, schema={"sales": pl.Float64, "wages": pl.Float64})},
            "must have at least one record, got none",
        ),
        ({"data": 3}, "'data' must be a pandas, polars or pyarrow table"),
        ({"output": "out.docx"}, "must end in"),
        (
            {"data": np.ones((3, 1)), "bounds": {0: (0, 2)}, "output": "out.csv"},
            "requires named columns, got an array",
        ),
    ],
    ids=str,
)
def test_refusals(firms, change, rule):
    arguments = {"data": firms, "epsilon": 1.0, "bounds": BOUNDS} | change
    with pytest.raises(InputError, match=rule):
        shoal.publish(**arguments)


def test_more_refusals(tmp_path):
    with pytest.raises(InputError, match=r"The table has no numeric column to .*Name the columns in 'columns'"):
        shoal.publish(pl.DataFrame({"x": ["a"]}), 1.0, bounds="data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataBoundsWarning)
        with pytest.raises(InputError, match="bounds='data' cannot read a domain for column 'x'"):
            shoal.publish(pl.DataFrame({"x": [0.0, 0.0]}), 1.0, bounds="data")
        for big in (1e101, 1.5e308):
            with pytest.raises(InputError, match=r"no value beyond -1e\+100 or 1e\+100"):
                shoal.publish(pl.DataFrame({"x": [1.0, big]}), 1.0, bounds="data")
    with pytest.raises(InputError, match="'budget' must leave every column a share"):
        shoal.publish(np.ones((3, 2)), 1e-300, bounds={0: (0, 1e-50), 1: (0, 1e50)}, budget="sensitivity")
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n2\n")
    with pytest.raises(InputError, match="must not be the input"):
        shoal.publish(path, 1.0, bounds={"x": (0, 3)}, output=path)
    assert path.read_text() == "x\n1\n2\n"


# Files


def test_two_dialects_of_the_same_table_are_released_alike(tmp_path):
    table = {"name": ["Ädä", "Ben"], "code": ["007", "008"], "half": ["0,5", "1,5"], "amount": ["1,5", "2,5"]}
    comma = ["name,code,half,amount", "Ädä,007,0.5,1.5", "Ben,008,1.5,2.5", ""]
    other = [
        "\t".join(table),
        "\t".join(cells[0] for cells in table.values()),
        "\t".join(c[1] for c in table.values()),
        "",
    ]
    (tmp_path / "a.csv").write_bytes("\n".join(comma).encode())
    (tmp_path / "b.csv").write_bytes("\r\n".join(other).encode("utf-16"))
    for options, first in [({}, "amount"), ({"keep": ["code", "half"]}, "code,half,amount")]:
        written = []
        for name in ("a", "b"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                options |= {"method": "none", "seed": 1, "output": tmp_path / f"{name}-out.csv"}
                shoal.publish(tmp_path / f"{name}.csv", 1.0, bounds={"amount": (0, 10)}, **options)
            written.append((tmp_path / f"{name}-out.csv").read_bytes())
        assert written[0] == written[1]
        assert written[0].decode("ascii").splitlines()[0] == first
    assert written[0].decode("ascii").splitlines()[1].startswith("007,0.5,")


def test_a_csv_file_loses_its_other_columns(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("name;code;amount\nAda;007;1,5\nBen;008;2,5\n", encoding="cp1252")
    shoal.publish(source, 1.0, bounds={"amount": (0, 10)}, output=tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().splitlines()[0] == "amount"
    shoal.publish(source, 1.0, bounds={"amount": (0, 10)}, output=tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["amount"]


# Exploring


def test_exploring_gives_what_publishing_expects(firms):
    found = exactly(firms, bounds=BOUNDS, epsilon=[0.5, 2.0], k=[4, 10])
    assert len(found.points) == 2 * (2 + 4 * 2)
    for point in found.points:
        release = shoal.publish(firms, point.epsilon, bounds=BOUNDS, method=point.method, k=point.k)
        assert point.sse == pytest.approx(sum(release.expected_sse.values()), rel=1e-12)
    shares = exactly(firms, bounds=BOUNDS, epsilon=2.0, methods="optimal", budget={"sales": 1, "wages": 1})
    even = exactly(firms, bounds=BOUNDS, epsilon=2.0, methods="optimal", budget="even")
    assert shares.points == even.points


def test_an_exploration_prints_and_draws(firms, tmp_path):
    found = exactly(firms, bounds=BOUNDS, epsilon=[1.0], methods=["optimal", "mdav-ir"])
    assert "for the data holder, not for release" in str(found)
    assert str(found).count("*") == 2  # one in the heading, one best k
    for ending in ("png", "svg", "pdf"):
        found.draw(tmp_path / f"picture.{ending}")
        assert (tmp_path / f"picture.{ending}").stat().st_size > 1000
    with pytest.raises(InputError, match="must end in"):
        found.draw(tmp_path / "picture.txt")
    with pytest.raises(InputError, match="must each contain at least one value"):
        explore(firms, bounds=BOUNDS, epsilon=[])
    with pytest.raises(InputError, match="'epsilon' leaves column 'sales' a budget of 5e-301, too small"):
        explore(firms, bounds={**BOUNDS, "sales": (0, 1e100)}, epsilon=1e-300, methods="optimal")


def test_optimal_is_never_worse_than_mdav_of_each_column(firms):
    found = exactly(firms, bounds=BOUNDS, methods=["optimal", "mdav-ir"], budget="even")
    for epsilon in found.epsilons:
        assert found.best("optimal", epsilon).sse <= found.best("mdav-ir", epsilon).sse * (1 + 1e-12)


def test_one_record():
    frame = pd.DataFrame({"x": [3.0]})
    for method in PUBLICATION_METHODS:
        release = shoal.publish(frame, 1e9, bounds={"x": (0, 10)}, method=method, k=1)
        assert release.data["x"].tolist() == pytest.approx([3.0], abs=1e-5)
