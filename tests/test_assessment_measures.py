"""Measures on request: hand-worked cases, figures of sdcMicro, refusals."""

from importlib import import_module

import numpy as np
import polars as pl
import pytest
import slow
from conftest import ROOT, command
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import shoal
from shoal.assessment import disclosure, eigenvalues, intervals, one_to_one, population, robust, special_uniques
from shoal.assessment.linkage import cells_of
from shoal.assessment.measure_registry import MEASURES
from shoal.assessment.statistics import Pair, order_columns
from shoal.core.errors import InputError
from shoal.demo import firms

KEYS = ["region", "sector"]


@pytest.fixture(scope="module")
def masked():
    table = firms(400).with_columns(household=pl.int_range(400) // 3, people=1.0 + pl.int_range(400) % 7)
    release = shoal.mask(table, 4, columns=["employees", "sales", "profit"], method="mdav", rest="keep")
    return table, release


@pytest.fixture(scope="module")
def everything(masked):
    table, release = masked
    return shoal.assess(
        table, release.data, k=4, measures="all", keys=KEYS, weights="people", unit="household",
        tables=["region", ("region", "sector"), ("sales", "region")],
        model=["profit ~ sales", "profit ~ sales + region"], confidential="sector",
    )  # fmt: skip


# --- record-level intervals ----------------------------------------------------------------------------------------


def test_hand_worked_intervals_of_records():
    # Both released columns are 0 0 10 10: sd 5.7735, so that 1, 5 and 10 % of it are 0.058, 0.289 and 0.577.
    y = np.array([[0.0, 0.0], [0.0, 0.0], [10.0, 10.0], [10.0, 10.0]])
    x = np.array([[0.05, 0.0], [-0.05, 0.3], [10.5, 10.0], [9.5, 12.0]])
    found = intervals.record_intervals(order_columns(x, y), 4)
    # Apart by 0.05 0 | 0.05 0.3 | 0.5 0 | 0.5 2: the first is always within, two more with 10 %.
    assert found.sd == (1 / 4, 1 / 4, 3 / 4)
    # With one value outside: the first three, and all with 10 %.
    assert found.nearly == (3 / 4, 3 / 4, 1.0)
    # A reach of at most 0.4 ranks leaves the released value alone: no record has both values unchanged.
    assert found.rank == (0.0, 0.0, 0.0)


def test_intervals_of_records_by_rank_follow_the_definition():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(120, 2))
    y = shoal.mask(x, 3, method="mdav").data
    ordered = np.sort(y, axis=0)
    for width, share in zip(intervals.WIDTHS, intervals.record_intervals(order_columns(x, y), 120).rank, strict=True):
        inside = np.ones(120, dtype=bool)
        for j in range(2):
            for i in range(120):
                places = np.flatnonzero(ordered[:, j] == y[i, j]).mean()
                near = [v for rank, v in enumerate(ordered[:, j]) if abs(rank - places) <= width / 100 * 120]
                inside[i] &= min(near or [y[i, j]]) <= x[i, j] <= max(near or [y[i, j]])
        assert share == pytest.approx(inside.mean())


def test_missing_cells_do_not_count_in_intervals_of_records():
    x = np.array([[1.0, np.nan], [5.0, 2.0], [9.0, 4.0]])
    assert intervals.record_intervals(order_columns(x, x), 3).sd == (1.0, 1.0, 1.0)
    far = x + np.array([[100.0, 0], [0, 0], [0, 0]])
    assert intervals.record_intervals(order_columns(x, far), 3).nearly[0] == 1.0
    assert intervals.record_intervals(order_columns(x, far), 3).sd[0] == pytest.approx(2 / 3)


# --- robust statistics ---------------------------------------------------------------------------------------------


def test_hand_worked_risk_by_robust_distance(monkeypatch):
    """With a robust variance of 4, the distances of −2 … 2, standardised by √2.5, are 0.63 0.32 0 0.32 0.63."""
    monkeypatch.setattr(robust, "robust_covariance", lambda *_, **__: np.array([[4.0]]))
    x = np.arange(-2.0, 3.0)[:, None]
    found = robust.robust_intervals(x, np.array([[-2.0], [-1.0], [0.0], [2.0], [1.0]]))
    # The first two are as before; so is the third, but its interval is empty; the last two are swapped.
    assert found.share == found.alone == 2 / 5
    assert found.weighted == pytest.approx((0.63 + 0.32) / (0.63 + 0.32 + 0.32 + 0.63), abs=0.01)
    # All unchanged records now have an equal one, so none is unique.
    twice = np.vstack([x, x])
    assert robust.robust_intervals(twice, twice).alone == 0
    assert robust.robust_intervals(twice, twice).share == 8 / 10


def test_outliers_do_not_decide_the_robust_covariance():
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(190, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    table = np.vstack([clean, rng.normal(50, 1, size=(10, 2))])
    found = robust.robust_covariance(table)
    assert found == pytest.approx(np.cov(clean.T), abs=0.3)
    assert np.cov(table.T)[0, 0] > 100
    assert np.array_equal(found, robust.robust_covariance(table))


def test_tables_without_a_robust_covariance_have_an_outcome():
    zeros = np.zeros((20, 2))
    zeros[:4] = np.arange(8.0).reshape(4, 2)  # most records are equal
    empty = np.full((20, 2), np.nan)
    line = np.repeat(np.arange(20.0)[:, None], 2, axis=1)
    for x in (zeros, empty, line, line[:3]):
        assert robust.robust_intervals(x, x).records == 0
        assert "not measured" in robust.robust_intervals(x, x).figure
        found = eigenvalues.eigenvalues(x, x)
        assert found.robust is None
        assert found.change == 0
        assert "cannot be estimated" in found.rows()[1][1]


def test_hand_worked_eigenvalues(monkeypatch):
    x = np.array([[1.0, 10.0], [3.0, 30.0], [7.0, 50.0], [9.0, 70.0]])
    y = np.array([[2.0, 20.0], [2.0, 20.0], [8.0, 60.0], [8.0, 60.0]])
    # The correlation is r = 280/√(40·2000) before and 1 after: eigenvalues 1 ± r become 2 and 0.
    r = 280 / np.sqrt(80_000)
    found = eigenvalues.eigenvalues(x, y)
    assert found.correlation[0] == pytest.approx([1 + r, 1 - r])
    assert found.change == pytest.approx((1 - r) / (1 + r) + 1)
    # Robust covariances diag(4, 1) and diag(2, 1.5): |4 − 2|/4 + |1 − 1.5|/1.
    made = iter([np.diag([1.0, 4.0]), np.diag([2.0, 1.5])])
    monkeypatch.setattr(eigenvalues, "robust_covariance", lambda *_, **__: next(made))
    assert eigenvalues.eigenvalues(x, y).robust_change == pytest.approx(1.0)


# --- risk in the population ----------------------------------------------------------------------------------------


def test_individual_risk_equals_sdcmicro():
    """Keys, weights and figures of sdcMicro's own test of ``indivRisk``."""
    keys = np.array([0, 1, 0, 2, 3, 3, 4, 0])
    weights = np.array([18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0])
    expected = [0.01369863, 0.08579129, 0.01369863, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01369863]
    found = population.individual_risk(keys, weights)
    assert found == pytest.approx(expected, abs=1e-8)
    # By hand: f = 3 of F = 108 is p = 1/36, and p/(f − (1 − p)) = 1/(36·2 + 1); f = 1 of 17 is log(17)/16.
    assert found[0] == pytest.approx(1 / 73)
    assert found[3] == pytest.approx(np.log(17) / 16)
    # f = 2 of 100: p/(1 − p) = 1/49, less its square times log(50).
    assert found[4] == pytest.approx(1 / 49 - np.log(50) / 49**2)
    whole = population.population_risk(keys, np.zeros(8, dtype=np.int64), weights)
    assert whole.expected.before == pytest.approx(sum(expected))
    assert whole.share.before == pytest.approx(sum(expected) / 8)
    # After masking, all eight are equal: p = 8/394, r = p/(7 + p).
    assert whole.highest.after == pytest.approx(8 / 394 / (7 + 8 / 394))


def test_a_census_has_no_weights():
    # Weights of 1 equal no weights: each of f equal records is linked with probability 1/f.
    keys = np.array([0, 1, 1, 2, 2, 2])
    assert population.individual_risk(keys).tolist() == pytest.approx([1, 1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])
    assert population.individual_risk(keys, np.ones(6)) == pytest.approx(population.individual_risk(keys))
    assert population.individual_risk(keys, np.full(6, 0.9)) == pytest.approx(population.individual_risk(keys))
    nearly = population.individual_risk(keys, np.full(6, 1 + 1e-9))
    assert nearly == pytest.approx(population.individual_risk(keys), abs=1e-6)


def test_hand_worked_risk_of_households():
    # Risks 1/2 1/2 1/4 1/4 1/4 1/4 before; households {0, 2}, {1}, {3, 4, 5}.
    keys, households = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 0, 2, 2, 2])
    found = population.population_risk(keys, np.zeros(6, dtype=np.int64), households=households)
    first, third = 1 - (1 / 2) * (3 / 4), 1 - (3 / 4) ** 3
    assert found.household.before == pytest.approx((2 * first + 1 / 2 + 3 * third) / 6)
    # A unique person discloses the household.
    alone = population.population_risk(np.array([0, 1, 1]), np.array([0, 1, 1]), households=np.array([0, 0, 1]))
    assert alone.household.before == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert "no weights" in alone.figure


# --- special uniques -----------------------------------------------------------------------------------------------


def as_codes(*columns):
    return np.column_stack([np.unique(column, return_inverse=True)[1] for column in columns])


def test_special_uniques_equal_sdcmicro():
    """The example of the guide to sdcMicro: residence, gender, education and labour of ten people."""
    residence, gender, education, labour = "uuuuruuuuu", "fffmfmfmff", "sspccceoss", "eenejenjnn"
    codes = as_codes(*map(list, (residence, gender, education, labour)))
    found = special_uniques.minimal_uniques(codes)
    assert found.scores.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    # The fifth: alone in r, (4 − 1)! = 6; and by three pairs, f c, f j and c j, (4 − 2)! = 2 each.
    assert found.counts[4].tolist() == [1, 3, 0, 0]
    # Three records of sdcMicro's test: 0 is unique by a, 1 by b and by c, 2 by a b and by a c: 2 + 2·2 + 2·1 = 8.
    found = special_uniques.minimal_uniques(as_codes([2, 1, 1], [0, 3, 0], [0, 6, 0]))
    assert found.scores.tolist() == [2, 4, 2]
    assert found.contributions.tolist() == [4 / 8, 3 / 8, 3 / 8]


@given(arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(0, 3)))
@settings(max_examples=60, deadline=None)
def test_special_uniques_equal_the_definition(codes):
    found = special_uniques.minimal_uniques(codes)
    expected = np.zeros(codes.shape, dtype=np.int64)
    for record, chosen in slow.minimal_uniques(codes):
        expected[record, len(chosen) - 1] += 1
    assert np.array_equal(found.counts, expected)


def test_hand_worked_probability_of_a_right_match():
    codes = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]])
    # Scores 1 and 2; two unique records, two in a pair; a tenth is sampled: D = 0.2/(0.2 + 2·0.9) = 0.1.
    # q = 1 + 5/20, 2^1.25 = 2.3784, Σ s^−q = 1.42045: 1/(1 + 18/1.42045) and 1/(1 + 18/(2.3784·1.42045)).
    found = special_uniques.special_uniques(codes, codes * 0, ("a", "b", "c"), np.full(4, 10.0))
    assert found.disclosure == pytest.approx((0.15803, 0.0), abs=1e-5)
    assert found.unique == (0.5, 0.0)
    assert found.few == (0.5, 0.0)
    assert found.highest == (2, 0)
    assert found.contributions[1] == (1.0, 0.0)
    assert "b contributes to 100 %" in found.figure


# --- recursive diversity -------------------------------------------------------------------------------------------


def test_hand_worked_recursive_diversity():
    # Counts 3 2 1: 3 < 3·(2 + 1) holds for l = 2, 3 < 3·1 does not for l = 3. Counts 1 1: l = 2.
    groups, codes = np.repeat([0, 1], [6, 2]), np.array([0, 0, 0, 1, 1, 2, 0, 1])
    assert disclosure.attribute("x", codes, groups, numeric=False).recursive_diversity == 2
    # Counts 5 1: 5 < 3·1 does not hold.
    six = np.zeros(6, dtype=np.int64)
    assert disclosure.attribute("x", np.array([0] * 5 + [1]), six, numeric=False).recursive_diversity == 1
    # All different: 1 < 3·1 holds to the end.
    assert disclosure.attribute("x", np.arange(6), six, numeric=False).recursive_diversity == 6


@pytest.mark.parametrize("seed", range(8))
def test_recursive_diversity_follows_the_definition(seed):
    rng = np.random.default_rng(seed)
    groups, codes = np.r_[np.arange(6), rng.integers(0, 6, 94)], rng.zipf(1.5, 100) % 9
    codes = np.unique(codes, return_inverse=True)[1]

    def holds(group, least):
        counts = sorted(np.unique(codes[groups == group], return_counts=True)[1], reverse=True)
        return least <= len(counts) and counts[0] < disclosure.RECURSIVE * sum(counts[least - 1 :])

    expected = min(max([1] + [least for least in range(1, 10) if holds(group, least)]) for group in range(6))
    assert disclosure.attribute("x", codes, groups, numeric=False).recursive_diversity == expected


# --- one-to-one linkage --------------------------------------------------------------------------------------------


def assign(x, y, groups, **keywords):
    cells = cells_of(x, np.zeros(len(x), dtype=np.int64))
    return one_to_one.one_to_one(x, y, groups, cells, **keywords)


def test_hand_worked_one_to_one_linkage():
    x = np.array([[0.0], [1.0], [2.0]])
    # 0.9, 1.1 and 1.2 are all nearest to 1; in order they cost 0.81 + 0.01 + 0.64, which is least: all are right.
    assert assign(x, np.array([[0.9], [1.1], [1.2]]), np.arange(3)).share == 1.0
    # The last two the other way round are swapped.
    assert assign(x, np.array([[0.9], [1.2], [1.1]]), np.arange(3)).share == pytest.approx(1 / 3)
    # Two groups of two, each nearest to its own records: right by half.
    pairs = np.array([[0.0], [1.0], [10.0], [11.0]])
    found = assign(pairs, np.array([[0.5], [0.5], [10.5], [10.5]]), np.array([0, 0, 1, 1]))
    assert (found.share, found.chance, found.interval) == (0.5, 0.5, None)


def test_neighbourhoods_estimate_the_whole_table(monkeypatch):
    x = np.random.default_rng(2).normal(size=(900, 3))
    release = shoal.mask(x, 3, method="mdav")
    whole = assign(x, release.data, release.labels)
    assert whole.records == 900
    monkeypatch.setattr(one_to_one, "ASSIGNED_AT_ONCE", 200)
    for seed in range(3):
        part = assign(x, release.data, release.labels, seed=seed)
        assert part.share == pytest.approx(whole.share, abs=0.03)
        assert part.interval[0] < part.share < part.interval[1]
    assert part.records == one_to_one.NEIGHBOURHOODS * one_to_one.MIDDLE
    assert "estimated from 20 neighbourhoods" in part.figure
    assert part == assign(x, release.data, release.labels, seed=2)


def test_one_to_one_stays_within_strata_and_patterns():
    x = np.array([[0.0, 1.0], [5.0, np.nan], [0.1, 1.1], [6.0, np.nan]])
    cells = cells_of(x, np.array([0, 0, 1, 1]))
    assert one_to_one.one_to_one(x, x[[2, 3, 0, 1]], np.arange(4), cells).share == 1.0
    nothing = np.full((4, 1), np.nan)
    one = np.zeros(4, dtype=np.int64)
    assert one_to_one.one_to_one(nothing, nothing, one, cells_of(nothing, one)).share == 0.25


# --- chosen tables and models --------------------------------------------------------------------------------------


def small(**columns):
    return pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], **columns})


def test_hand_worked_frequency_tables():
    before = small(region=["a", "a", "b", "b"], sex=["f", "m", "f", "m"])
    after = before.with_columns(x=pl.lit(2.5), region=pl.Series(["a", "b", "b", "b"]))
    asked = {"columns": ["x", "region"], "tables": ["region", ("region", "sex")]}
    one, two = shoal.assess(before, after, **asked).utility.tables
    # Half and half becomes ¼ and ¾.
    assert (one.columns, one.cells, one.variation, one.emptied) == (("region",), 2, 0.25, 0)
    assert one.hellinger == pytest.approx(np.sqrt(((0.5**0.5 - 0.5) ** 2 + (0.5**0.5 - 0.75**0.5) ** 2) / 2))
    # af am bf bm, ¼ each, becomes ¼ 0 ¼ ½: a man in a is left nowhere.
    assert (two.cells, two.variation, two.emptied) == (4, 0.25, 1)


def test_many_numbers_are_counted_in_classes():
    before = pl.DataFrame({"x": np.arange(100.0), "left": [None, *range(99)]})
    after = before.with_columns(x=pl.lit(0.0))
    found = shoal.assess(before, after, columns="x", tables=["x", "left"]).utility.tables
    # All of ten classes of ten values fall into the first.
    assert (found[0].classes, found[0].cells, found[0].variation) == (("x",), 10, pytest.approx(0.9))
    assert (found[1].cells, found[1].variation) == (11, 0)  # missing is a class of its own


def test_hand_worked_regression_on_categories():
    # Means 2 and 7, residuals ±1: s² = 4/2, so that the difference of 5 has a standard error of √2.
    before = pl.DataFrame({"y": [1.0, 3.0, 6.0, 8.0], "sex": ["f", "f", "m", "m"]})
    # Means 2.5 and 6.5, residuals ±½: the difference of 4 has √½.
    after = before.with_columns(y=pl.Series([2.0, 3.0, 6.0, 7.0]))
    constant, man = shoal.assess(before, after, columns="y", model="y ~ sex").utility.model
    assert constant.value == pytest.approx((2, 2.5))
    assert (man.name, man.model) == ("sex = m", "y ~ sex")
    assert man.value == pytest.approx((5, 4))
    assert (man.error, man.error_after) == pytest.approx((np.sqrt(2), np.sqrt(0.5)))
    # 5 ± 2.77 and 4 ± 1.39 share 2.61 to 5.39: half of the first, all of the second.
    assert man.overlap == pytest.approx(0.75)
    assert man.inside
    # A category without records has no coefficient.
    gone = after.with_columns(sex=pl.lit("f"))
    lost = shoal.assess(before, gone, columns=["y", "sex"], kinds={"sex": shoal.Nominal()}, model="y ~ sex").utility
    assert np.isnan(lost.model[1].value.after)
    assert np.isnan(lost.model[1].overlap)
    assert not lost.model[1].inside


# --- requests ------------------------------------------------------------------------------------------------------


def test_optional_measures_are_computed_only_on_request(masked):
    table, release = masked
    found = shoal.assess(table, release.data)
    fields = {name.replace("-", "_") for name in MEASURES}
    assert {name for part in (found.risk, found.utility) for name in fields if getattr(part, name, None)} == set()
    assert all(callable(import_module(measure.home).measure) for measure in MEASURES.values())


def test_all_measures_are_reported(everything, tmp_path):
    text = str(everything)
    for words in ("interval disclosure of records", "risk by robust distance", "one-to-one linkage", "special uniques",
                  "risk in the population", "robust eigenvalues", "Frequency tables", "region × sector", "overlap %",
                  "sales (classes) × region", "Regression: profit ~ sales + region", "recursively l ="):  # fmt: skip
        assert words in text, words
    assert everything.risk.special_uniques.columns == tuple(KEYS)
    assert everything.risk.population_risk.household is not None
    # Unmasked keys are unchanged.
    assert everything.risk.population_risk.share.before == everything.risk.population_risk.share.after
    for finding in everything.risk:
        assert finding.means.endswith(".")
        assert "not" in finding.limits
    page = everything.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("one-to-one linkage", "Frequency tables", "Total variation".lower(), "profit ~ sales + region"):
        assert words in page
    assert "<table>" in everything._repr_html_()


def test_the_report_of_a_release_shows_no_optional_measures(masked, tmp_path):
    table, release = masked
    page = release.report(tmp_path / "page.html", original=table).read_text(encoding="utf-8")
    for words in ("one-to-one", "robust", "interval disclosure of records", "eigenvalue", "special uniques"):
        assert words not in page


def test_measures_of_the_masked_columns_by_default(masked):
    table, release = masked
    found = shoal.assess(table, release.data, measures=["special-uniques", "population-risk"]).risk
    assert found.special_uniques.columns == ("employees", "sales", "profit")
    assert found.special_uniques.unique == Pair(found.uniqueness.before, 0.0)
    assert found.population_risk.highest.after == 1 / found.anonymity.k
    assert found.one_to_one is None


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"measures": "eigenvalue"}, "'measures' must be among 'record-intervals'.*Did you mean 'eigenvalues'"),
        ({"weights": "peopel"}, "peopel"),
        ({"unit": "househodl"}, "househodl"),
        ({"keys": "region", "measures": "eigenvalues"}, "'keys' requires one of the measures"),
        ({"keys": [], "measures": "special-uniques"}, "'keys' must name at least one column"),
        ({"keys": "regoin", "measures": "special-uniques"}, "regoin"),
        (
            {"weights": "profit", "measures": "population-risk"},
            "'weights' must be .* positive.*'profit' holds -",
        ),
        ({"measures": "one-to-one", "shuffled": True}, "'one-to-one', which needs the original of every masked record"),
        ({"tables": ["regoin"]}, "regoin"),
        ({"model": "profit ~ region + name"}, "'name', which has 400 different values"),
    ],
)
def test_incompatible_measures_are_refused(masked, keywords, message):
    table, release = masked
    named = table.with_columns(name=pl.int_range(400).cast(pl.String))
    released = release.data.with_columns(name=named["name"])
    with pytest.raises(InputError, match=message):
        shoal.assess(named, released, **keywords)


def test_too_many_keys_are_refused():
    table = pl.DataFrame({f"c{j}": np.arange(30.0) for j in range(14)})
    with pytest.raises(InputError, match=r"at most 12 keys; got 14.*in 'keys'"):
        shoal.assess(table, table * 2.0, columns=table.columns, measures="special-uniques")
    found = shoal.assess(table, table * 2.0, columns=table.columns, measures="special-uniques", keys=["c0", "c1"])
    assert found.risk.special_uniques.few == (1.0, 1.0)


def test_measures_of_numbers_require_numeric_columns():
    table = pl.DataFrame({"job": ["a", "a", "b", "b"], "left": [1, 2, 3, 4]})
    masked = table.with_columns(job=pl.lit("a"))
    asked = {"columns": "job", "kinds": {"job": shoal.Nominal()}}
    with pytest.raises(InputError, match="'eigenvalues', which needs a masked numeric column"):
        shoal.assess(table, masked, **asked, measures="eigenvalues")
    found = shoal.assess(table, masked, **asked, measures="all")
    assert found.risk.record_intervals is None
    assert found.risk.one_to_one.share == 1 / 4
    assert any("record-intervals, robust-intervals, eigenvalues" in note for note in found.notes)


def test_on_the_command_line(masked, tmp_path):
    table, release = masked
    table.write_csv(tmp_path / "in.csv")
    release.data.write_csv(tmp_path / "out.csv")
    words = ["assess", "in.csv", "out.csv", "--measure", "population-risk", "--measure", "eigenvalues", "--key",
             "region", "--key", "sector", "--weights", "people", "--unit", "household", "--table", "region,sector",
             "--model", "profit ~ sales", "--model", "profit ~ region"]  # fmt: skip
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line in ("risk in the population", "households", "robust eigenvalues", "region × sector", "profit ~ region"):
        assert line in done.stdout
    refused = command(*words[:3], "--measure", "suda", cwd=tmp_path)
    assert refused.returncode == 1
    assert "--measure must be among 'record-intervals'" in refused.stderr
    shown = command("assess", "--help").stdout
    for name in MEASURES:
        assert name in shown


def test_every_measure_is_documented():
    page = ROOT / "docs" / "how-to" / "check.md"
    texts = [shoal.assess.__doc__, *([page.read_text(encoding="utf-8")] if page.exists() else [])]
    for text in texts:
        assert [name for name in MEASURES if f"`{name}`" not in text and f'"{name}"' not in text] == []
