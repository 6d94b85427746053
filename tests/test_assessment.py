"""Utility and risk: hand-worked cases, other programs' figures, and what is refused."""

import numpy as np
import polars as pl
import pytest
import scipy.stats
from conftest import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.assessment import disclosure, intervals, linkage, propensity, risk, statistics, utility
from shoal.assessment.statistics import RankedColumn, order_columns
from shoal.core.errors import InputError
from shoal.core.measures import standardise
from shoal.demo import firms

# Four records, two groups of two, worked by hand below.
X = np.array([[1.0, 10.0], [3.0, 30.0], [7.0, 50.0], [9.0, 70.0]])
Y = np.array([[2.0, 20.0], [2.0, 20.0], [8.0, 60.0], [8.0, 60.0]])


@pytest.fixture(scope="module")
def masked():
    table = firms(2000)
    release = shoal.mask(
        table, 5, by="region", missing="group", columns=["employees", "sales", "profit", "research"], rest="keep"
    )
    return table, release


@pytest.fixture(scope="module")
def assessment(masked):
    table, release = masked
    return shoal.assess(table, release.data, k=5, by="region", confidential=["sector", "wages"])


# --- utility by hand -----------------------------------------------------------------------------------------------


def test_hand_worked_utility():
    found = utility.utility(X, Y, ["a", "b"])
    a, b = found.columns
    # Column a: SST 16+4+4+16 = 40, SSE 4·1; column b: SST 900+100+100+900, SSE 4·100.
    assert (a.loss, b.loss) == pytest.approx((10.0, 20.0))
    assert found.loss == pytest.approx(15.0)
    assert a.mean == (5.0, 5.0)
    assert a.sd == pytest.approx((np.sqrt(40 / 3), np.sqrt(36 / 3)))
    assert a.sd.change == pytest.approx(np.sqrt(0.9) - 1)
    # The sorted values move by 1 each; at 1 half of the released values are missing, so F differs by 1/4.
    assert a.wasserstein == pytest.approx(1 / np.sqrt(40 / 3))
    assert a.kolmogorov_smirnov == 0.25
    # Ranks 1 2 3 4 beside 1.5 1.5 3.5 3.5: Σ dd' = 4, Σ d² = 5, Σ d'² = 4.
    assert a.rank_correlation == pytest.approx(4 / np.sqrt(20))
    # Medians: between 3 and 7, and between 2 and 8.
    assert a.quantiles[3] == (5.0, 5.0)
    # |x − y| = 1 of √2·√(40/3) and 10 of √2·√(2000/3).
    assert found.il1s == pytest.approx(100 * (1 / np.sqrt(80 / 3) + 10 / np.sqrt(4000 / 3)) / 2)
    # Σ dₐd_b before: 4·30 + 2·10 + 2·10 + 4·30 = 280; after 4·(3·20) = 240.
    assert found.covariance[0][0, 1] == pytest.approx(280 / 3)
    assert found.covariance[1][0, 1] == pytest.approx(240 / 3)
    assert found.correlation[0][0, 1] == pytest.approx(280 / np.sqrt(40 * 2000))
    assert found.correlation[1][0, 1] == pytest.approx(1.0)
    # Variances 40/3 to 36/3 and 2000/3 to 1600/3, the covariance 280/3 to 240/3, in products of √(40/3) and √(2000/3).
    assert found.covariance_change == pytest.approx((4 / 40 + 400 / 2000 + 40 / np.sqrt(40 * 2000)) / 3)
    left, right, pair = found.largest_correlation_change()
    assert (left, right) == ("a", "b")
    assert pair.after == pytest.approx(1.0)


def test_nothing_changed_is_no_loss():
    found = utility.utility(X, X, ["a", "b"])
    assert found.loss == 0
    assert found.il1s == 0
    assert found.propensity.pmse == pytest.approx(0, abs=1e-12)
    assert found.propensity.auc == pytest.approx(0.5)
    assert [c.rank_correlation for c in found.columns] == pytest.approx([1, 1])


def test_constant_and_empty_columns_have_an_outcome():
    x = np.column_stack([np.full(4, 1e9), np.full(4, np.nan), X[:, 0]])
    y = np.column_stack([np.full(4, 1e9), np.full(4, np.nan), Y[:, 0]])
    found = utility.utility(x, y, ["constant", "empty", "a"])
    constant, empty, a = found.columns
    assert constant.loss == constant.wasserstein == constant.kolmogorov_smirnov == 0
    assert np.isnan(constant.rank_correlation)
    assert np.isnan(empty.mean.before)
    assert a.loss == pytest.approx(10)
    assert np.isnan(found.correlation[0][0, 2])
    assert np.isnan(found.covariance[0][1, 2])
    assert found.propensity is None
    assert found.largest_correlation_change() is None
    assert intervals.intervals(order_columns(x, y)).sd[0] == pytest.approx(4 / 8)


# --- utility against other programs --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_column_measures_equal_scipy(seed):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(size=101).round(1)
    y = np.repeat(np.sort(x)[::3], 3)[:101][np.argsort(np.argsort(x))]
    found = utility.column_change("x", RankedColumn(x, y), 0.0)
    assert found.wasserstein * x.std(ddof=1) == pytest.approx(scipy.stats.wasserstein_distance(x, y))
    assert found.kolmogorov_smirnov == pytest.approx(scipy.stats.ks_2samp(x, y).statistic)
    assert found.rank_correlation == pytest.approx(scipy.stats.spearmanr(x, y).statistic)


def test_matrices_equal_pandas_with_missing_cells():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 4)) @ rng.normal(size=(4, 4)) + 1e6
    x[rng.random(x.shape) < 0.2] = np.nan
    frame = pd.DataFrame(x)
    np.testing.assert_allclose(statistics.covariance(x), frame.cov().to_numpy(), rtol=1e-7)
    np.testing.assert_allclose(statistics.correlation(x), frame.corr().to_numpy(), rtol=1e-7)


def test_propensity_equals_a_plain_minimisation():
    """The same penalised likelihood, minimised by scipy from its formula."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    Z = standardise(rng.normal(size=(60, 2)))
    W = 0.6 * Z
    found = propensity.propensity(Z, W)
    features = [np.column_stack([A, A[:, 0] ** 2, A[:, 0] * A[:, 1], A[:, 1] ** 2]) for A in (Z, W)]
    F = standardise(np.vstack(features))
    released = np.repeat([-1.0, 1.0], 60)

    def objective(w):
        return np.logaddexp(0, -released * (F @ w[1:] + w[0])).sum() + w[1:] @ w[1:] / 2

    w = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-8}).x
    score = 1 / (1 + np.exp(-(F @ w[1:] + w[0])))
    assert found.pmse == pytest.approx(np.mean((score - 0.5) ** 2), rel=1e-4)
    from sklearn.metrics import roc_auc_score

    assert found.auc == pytest.approx(roc_auc_score(released, score), abs=1e-3)
    assert found.auc > 0.6


def test_regression_equals_scipy(masked):
    table, release = masked
    found = shoal.assess(table, release.data, by="region", model="profit ~ sales").utility.model
    old = scipy.stats.linregress(table["sales"], table["profit"])
    new = scipy.stats.linregress(release.data["sales"], release.data["profit"])
    constant, slope = found
    assert slope.value == pytest.approx((old.slope, new.slope))
    assert slope.error == pytest.approx(old.stderr)
    assert constant.value == pytest.approx((old.intercept, new.intercept))
    assert constant.error == pytest.approx(old.intercept_stderr)
    assert slope.inside == (abs(new.slope - old.slope) <= 1.96 * old.stderr)


# --- risk by hand --------------------------------------------------------------------------------------------------


def test_hand_worked_linkage():
    groups, strata = np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64)
    x = np.array([[0.0], [1.0], [5.0], [9.0]])
    # 0.4 is nearest to 0: one of two records is right. 7 is as near to 5 as to 9: each right half of the time.
    found = linkage.linkage(x, np.array([[0.4], [0.4], [7.0], [7.0]]), groups, linkage.cells_of(x, strata))
    assert found.share == 0.5
    assert found.chance == 0.5
    assert found.interval is None
    # 6.4 is nearest to 5, which is not in its group: no record of that group is linked.
    found = linkage.linkage(x, np.array([[0.4], [0.4], [2.6], [2.6]]), groups, linkage.cells_of(x, strata))
    assert found.share == pytest.approx(0.25)
    # Released unchanged, every record is linked.
    assert linkage.linkage(x, x, np.arange(4), linkage.cells_of(x, strata)).share == 1.0


def test_linkage_stays_within_strata_and_patterns():
    x = np.array([[0.0, 1.0], [1.0, np.nan], [0.1, 1.1], [1.0, np.nan]])
    strata = np.array([0, 0, 1, 1])
    cells = linkage.cells_of(x, strata)
    assert [(rows.tolist(), present.tolist()) for rows, present in cells] == [
        ([0], [0, 1]),
        ([1], [0]),
        ([2], [0, 1]),
        ([3], [0]),
    ]
    assert linkage.linkage(x, x, np.arange(4), cells).share == 1.0
    # Records without any value can only be guessed.
    nothing = np.full((4, 1), np.nan)
    one = np.zeros(4, dtype=np.int64)
    assert linkage.linkage(nothing, nothing, one, linkage.cells_of(nothing, one)).share == 0.25


def test_linkage_equals_all_distances(masked):
    table, release = masked
    x = standardise(table.select("sales", "profit").to_numpy())
    y = np.column_stack([release.data["sales"].to_numpy(), release.data["profit"].to_numpy()])
    scale = shoal.core.measures.scaling(table.select("sales", "profit").to_numpy())
    w = scale.apply(y)
    distances = ((w[:, None] - x[None]) ** 2).sum(axis=2)
    ties = distances <= distances.min(axis=1, keepdims=True) * (1 + 1e-9)
    expected = (np.diag(ties) / ties.sum(axis=1)).mean()
    raw = table.select("sales", "profit").to_numpy()
    groups, strata = release.labels, np.zeros(2000, dtype=np.int64)
    assert linkage.linkage(raw, y, groups, linkage.cells_of(raw, strata)).share == pytest.approx(expected)


def linked_one_by_one(x, y, strata, records):
    """Link records to the originals of their stratum with the same missing columns, by all distances."""
    right = 0.0
    for i in records:
        alike = [j for j in range(len(x)) if strata[j] == strata[i] and (np.isnan(x[j]) == np.isnan(x[i])).all()]
        distances = np.array([np.nansum((y[i] - x[j]) ** 2) for j in alike])
        near = distances <= distances.min() * (1 + 1e-9) + 1e-12
        right += near[alike.index(i)] / near.sum()
    return right / len(records)


@pytest.mark.parametrize("sample", [None, 60])
def test_linkage_within_cells_of_any_size(sample):
    """Records that unchanged columns distinguish are linked among few others, or among none."""
    rng = np.random.default_rng(3)
    sizes = [*[1] * 9, 2, 2, 3, 7, 15, 16, 17, 18, 60]
    strata = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    x = standardise(rng.integers(0, 5, (len(strata), 2)).astype(float))
    x[rng.random(len(x)) < 0.2, 1] = np.nan
    y = np.where(rng.random(len(x)) < 0.5, 0.0, 0.7)[:, None] * x
    cells, groups = linkage.cells_of(x, strata), np.arange(len(x))
    found = linkage.linkage(x, y, groups, cells, placed=(x, y), sample=sample, seed=5)
    records = range(len(x)) if sample is None else np.random.default_rng(5).choice(len(x), sample, replace=False)
    assert found.share == pytest.approx(linked_one_by_one(x, y, strata, list(records)), rel=1e-12)
    assert 0.2 < found.share < 0.9


def test_only_columns_known_to_outsiders_are_linked_and_counted():
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"x": rng.normal(size=90), "y": rng.normal(size=90), "town": rng.integers(0, 4, 90), "z": rng.permutation(90)}
    )
    asked = {"columns": ["x", "y"], "missing": "group", "small": "error", "integers": "float"}
    release = shoal.mask(table, 5, keep=["town", "z"], **asked)
    alone = shoal.assess(table[:, :2], release.data[:, :2], columns=["x", "y"], shuffled=False).risk
    by_town = shoal.assess(table[:, :3], release.data[:, :3], columns=["x", "y"], by="town").risk
    assert alone.uniqueness.after == 0
    assert alone.linkage.share < by_town.linkage.share < 1
    for role in ("confidential", "weights", "unit"):
        known = table.with_columns(z=pl.col("z") + 1) if role == "weights" else table
        masked = release.data.with_columns(known["z"])
        risk = shoal.assess(known, masked, columns=["x", "y"], **{role: "z"}).risk
        assert risk.linkage == by_town.linkage, role
        assert risk.uniqueness == by_town.uniqueness, role
    everything = shoal.assess(table, release.data, columns=["x", "y"])
    assert everything.risk.linkage.share == everything.risk.linkage.chance == everything.risk.uniqueness.after == 1
    assert everything.singled_out == release.singled_out == 90
    # Outsiders do not know the new numbers and cannot look them up.
    renumbered = release.data.with_columns(town=pl.col("town").replace_strict({0: 7, 1: 5, 2: 6, 3: 9})).drop("z")
    assert shoal.assess(table, renumbered, columns=["x", "y"]).risk.linkage == alone.linkage


def test_a_release_its_report_and_an_assessment_have_the_same_figures(tmp_path):
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "x": rng.integers(0, 9, 80), "y": rng.integers(0, 9, 80), "town": rng.integers(0, 3, 80),
            "ill": rng.choice(["flu", "gout"], 80, p=[0.9, 0.1]), "home": np.r_[np.arange(60), np.arange(20)],
            "w": rng.uniform(1, 2, 80),
        }
    )  # fmt: skip
    roles = {"confidential": ["ill"], "unit": "home", "weights": "w"}
    release = shoal.mask(
        table, 3, columns=["x", "y"], keep=["town", "home"], missing="group", small="error", integers="float", **roles
    )
    found = shoal.assess(table, release.data, columns=["x", "y"], **roles)
    assert 0 < found.singled_out == release.singled_out < 80
    assert (found.risk.units.units, found.risk.units.of) == release.unique_units
    assert 0 < found.risk.units.units < found.risk.units.of == 60
    (ill,) = found.risk.attributes
    assert (ill.homogeneous, ill.groups) == release.homogeneous["ill"]
    assert (ill.concentrated, ill.groups) == release.concentrated["ill"]
    text, page = str(found), release.report(tmp_path / "page.html", original=table).read_text("utf-8")
    page = page.replace("\u00a0", " ")
    for figure in (found.risk.uniqueness.figure, found.risk.linkage.figure, found.risk.units.figure):
        assert figure in text
        assert figure in page
    assert found.risk.units.figure in str(release)
    assert shoal.assess(table, release.data.drop("home"), columns=["x", "y"], **roles).risk.units is None


def test_a_sample_brackets_the_whole():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    release = shoal.mask(x, 4)
    whole = linkage.linkage(x, release.data, release.labels, linkage.cells_of(x, np.zeros(2000, dtype=np.int64)))
    part = linkage.linkage(
        x, release.data, release.labels, linkage.cells_of(x, np.zeros(2000, dtype=np.int64)), sample=500, seed=1
    )
    low, high = part.interval
    assert low < whole.share < high
    assert part.records == 500
    assert "sample of 500" in part.figure


def test_wilson_equals_scipy():
    expected = scipy.stats.binomtest(30, 120).proportion_ci(method="wilson")
    assert linkage.wilson(0.25, 120) == pytest.approx((expected.low, expected.high))


def test_hand_worked_intervals():
    # sd (n − 1) of 0 10 … 90 is 30.28, and every value is 5 from the mean of its pair: more than 10 % of it.
    x = np.arange(10, dtype=float)[:, None] * 10
    y = np.repeat([5.0, 25.0, 45.0, 65.0, 85.0], 2)[:, None]
    found = intervals.intervals(order_columns(x, y))
    assert found.sd == (0.0, 0.0, 0.0)
    # 10 % of 10 records is one place: rank 0.5 ± 1 reaches places 0 and 1, the released value itself, 5 off.
    assert found.rank == (0.0, 0.0, 0.0)
    # Near by: 1 and 2 around 1.5 with a far third; sd is 28.58, 1 % of it 0.29, 5 % of it 1.43.
    near = np.array([[1.0], [2.0], [51.0]])
    found = intervals.intervals(order_columns(near, np.array([[1.5], [1.5], [51.0]])))
    assert found.sd == pytest.approx((1 / 3, 1.0, 1.0))


def test_intervals_by_rank_follow_the_definition():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 1))
    y = shoal.mask(x, 3).data
    ordered = np.sort(y[:, 0])
    for width, share in zip(intervals.WIDTHS, intervals.intervals(order_columns(x, y)).rank, strict=True):
        reach, inside = width / 100 * 200, 0
        for value, released in zip(x[:, 0], y[:, 0], strict=True):
            places = np.flatnonzero(ordered == released).mean()
            reachable = [v for i, v in enumerate(ordered) if abs(i - places) <= reach] or [released]
            inside += min(reachable) <= value <= max(reachable)
        assert share == pytest.approx(inside / 200)


def test_hand_worked_attribute_disclosure():
    groups = np.array([0, 0, 1, 1, 1, 1])
    illness = np.array([0, 0, 0, 1, 1, 2])
    found = disclosure.attribute("illness", illness, groups, numeric=False)
    assert found.diversity == 1
    assert found.entropy_diversity == pytest.approx(1.0)
    assert found.disclosed == pytest.approx(2 / 6)
    # All: ½ ⅓ ⅙; group 0: 1 0 0, so ½(½ + ⅓ + ⅙) = ½; group 1: ¼ ½ ¼ is ¼ off.
    assert found.closeness == pytest.approx(0.5)
    # In order: cumulative ½ ⅚ 1 beside 1 1 1 is (½ + ⅙)/2 = ⅓; beside ¼ ¾ 1 is (¼ + 1/12)/2 = ⅙.
    assert disclosure.attribute("grade", illness, groups, numeric=True).closeness == pytest.approx(1 / 3)
    # Group 1 alone has entropy ¼ln4 + ½ln2 + ¼ln4 = 1.5 ln2.
    alone = disclosure.attribute("illness", np.array([0, 1, 1, 2]), np.zeros(4, dtype=np.int64), numeric=False)
    assert alone.entropy_diversity == pytest.approx(2**1.5)
    assert alone.closeness == pytest.approx(0.0)
    assert disclosure.attribute("x", np.zeros(4, dtype=np.int64), np.array([0, 0, 1, 1]), numeric=True).closeness == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_ordered_closeness_equals_the_plain_sum(seed):
    rng = np.random.default_rng(seed)
    groups = np.r_[np.arange(12), rng.integers(0, 12, 88)]
    codes = np.unique(rng.integers(0, 40, 100), return_inverse=True)[1]
    m = codes.max() + 1
    everybody = np.cumsum(np.bincount(codes, minlength=m) / 100)
    expected = max(
        np.abs(np.cumsum(np.bincount(codes[groups == g], minlength=m) / (groups == g).sum()) - everybody).sum()
        / (m - 1)
        for g in range(12)
    )
    assert disclosure.attribute("x", codes, groups, numeric=True).closeness == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore")
def test_attribute_disclosure_equals_pycanon():
    """pycanon pins its libraries to single versions, so it is no dependency; this runs where it is installed."""
    anonymity = pytest.importorskip("pycanon.anonymity")
    known = ["sales", "profit"]
    table = firms(120)
    masked = shoal.mask(table, 5, columns=known).data
    found = shoal.assess(table, masked, confidential=["sector", "wages"]).risk
    frame = masked.to_pandas()
    sector, wages = found.attributes
    assert anonymity.k_anonymity(frame, known) == found.anonymity.k
    assert anonymity.l_diversity(frame, known, ["sector"]) == sector.diversity
    assert anonymity.entropy_l_diversity(frame, known, ["sector"]) == int(sector.entropy_diversity)
    assert anonymity.t_closeness(frame, known, ["sector"]) == pytest.approx(sector.closeness)
    assert anonymity.t_closeness(frame, known, ["wages"]) == pytest.approx(wages.closeness)


def test_uniqueness_and_recount(masked, assessment):
    table, release = masked
    assert assessment.risk.anonymity.k == release.sizes.min()
    assert assessment.risk.anonymity.below == 0
    known = [name for name in table.columns if name not in ("sector", "wages")]  # outsiders know no sensitive column
    for data, share in ((table, assessment.risk.uniqueness.before), (release.data, assessment.risk.uniqueness.after)):
        assert share == data.select(known).is_unique().sum() / 2000
    assert assessment.singled_out == assessment.uniques == release.data.select(known).is_unique().sum() > 0
    found = shoal.assess(table, release.data.drop("sector", "wages", "assets", "weight"), by="region")
    assert found.singled_out == 0 < found.risk.uniqueness.before
    promised = shoal.assess(table, release.data, k=7, by="region").risk.anonymity
    assert promised.below == release.sizes[release.sizes < 7].sum()
    assert "below k = 7" in promised.figure


# --- the public function -------------------------------------------------------------------------------------------


def test_assess_agrees_with_the_release(masked, assessment):
    _, release = masked
    assert assessment.utility.loss == pytest.approx(release.loss)
    assert {c.name: c.loss for c in assessment.utility.columns} == pytest.approx(dict(release.column_loss))
    text = str(assessment)
    for word in ("information loss", "rank corr.", "singled out", "linked", "sensitive: sector", "does not"):
        assert word in text
    assert "<table>" in assessment._repr_html_()


def test_every_measure_of_risk_explains_itself(assessment):
    for finding in assessment.risk:
        assert finding.means.endswith(".")
        assert "not" in finding.limits
        assert finding.figure


def test_arrays_and_single_columns():
    found = shoal.assess(X[:, 0], Y[:, 0])
    assert found.utility.loss == pytest.approx(10)
    assert found.utility.largest_correlation_change() is None
    assert "there is no unchanged column by which the order of the records could be checked" in found.notes[0]


def test_records_left_out_are_matched_by_number():
    table = firms(300)
    release = shoal.mask(table, 3, columns=["sales", "research"], missing="drop", rest="keep", max_left_out=1)
    with pytest.raises(InputError, match=r"it has \d+, the original 300.*remaining ones in 'kept'"):
        shoal.assess(table, release.data)
    found = shoal.assess(table, release.data, kept=release.kept)
    assert found.utility.loss == pytest.approx(release.loss)


def test_other_order_is_refused(masked):
    table, release = masked
    with pytest.raises(InputError, match=r"Column 'region' differs in record \d+.*same order"):
        shoal.assess(table, release.data.reverse())


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"columns": []}, "at least one column"),
        ({"columns": "sale"}, "'sale'"),
        ({"by": "nowhere"}, "'nowhere'"),
        ({"confidential": "sales"}, "'confidential' names column 'sales', which was masked"),
        ({"model": "profit"}, "must have the form 'y ~ a \\+ b'"),
        ({"model": "profit ~ salse"}, "salse"),
        ({"columns": ["sales"]}, "list it in 'columns'"),
    ],
)
def test_wrong_parameters_are_named(masked, keywords, message):
    table, release = masked
    with pytest.raises(InputError, match=message):
        shoal.assess(table, release.data, **keywords)


def test_same_tables_and_bad_cells_are_refused():
    table = firms(50)
    with pytest.raises(InputError, match="no numeric column differs"):
        shoal.assess(table, table)
    with pytest.raises(InputError, match="must have records"):
        shoal.assess(table.head(0), table.head(0))
    hole = X.copy()
    hole[2, 1] = np.nan
    with pytest.raises(InputError, match=r"Column 1 must have the same missing cells.*record 3"):
        shoal.assess(hole, Y)
    hole[2, 1] = np.inf
    with pytest.raises(InputError, match="Column 1 must be finite"):
        shoal.assess(hole, Y)
    with pytest.raises(InputError, match="has 3 coefficients, but only 3 records"):
        shoal.assess(table.head(3), table.head(3), columns=["sales"], model="sales ~ wages + assets")


def test_command_line(tmp_path):
    table = firms(200)
    table.write_csv(tmp_path / "firms.csv")
    release = shoal.mask(table, 4, columns=["sales", "research"], missing="drop", rest="keep", max_left_out=1)
    release.data.write_csv(tmp_path / "masked.csv")
    pl.DataFrame({"record": release.kept + 1}).write_csv(tmp_path / "labels.csv")
    words = ["assess", "firms.csv", "masked.csv", "-k", "4", "--labels", "labels.csv"]
    done = command(*words, "--confidential", "sector", "--model", "sales ~ wages", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"information loss                 {release.loss:.4f} %" in done.stdout
    assert "sensitive: sector" in done.stdout
    refused = command(*words[:3], cwd=tmp_path)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "must contain exactly the records of" in refused.stderr


# --- categories ----------------------------------------------------------------------------------------------------

TOWNS = {"Bath": ["South", "all"], "Bristol": ["South", "all"], "York": ["North", "all"]}


def test_hand_worked_linkage_of_categories():
    """Squared distances: 2/Gini = 2/(1 − 3/9) = 3 between unequal jobs, 1/(2/3) = 1.5 for a year of age."""
    table = pl.DataFrame({"job": ["a", "a", "b", "b", "c", "c"], "age": [0.0, 1, 0, 1, 2, 2]})
    masked = pl.DataFrame({"job": ["a", "a", "a", "a", "c", "c"], "age": [0.5, 0.5, 0.5, 0.5, 2.0, 2.0]})
    found = shoal.assess(table, masked, columns=["job", "age"], kinds={"job": shoal.Nominal()})
    # (a, 0.5) is as near to both records of job a, which are right half of the time; those of job b are never.
    # The two of job c are equal: each is right half of the time.
    assert found.risk.linkage.share == pytest.approx(2 / 6)
    assert found.risk.linkage.chance == pytest.approx((4 / 4 + 2 / 2) / 6)
    assert found.risk.anonymity.k == 2
    assert found.risk.uniqueness == risk.Uniqueness(4 / 6, 0.0)
    job, age = found.utility.columns
    assert (job.name, job.kind, job.changed, job.variation, job.values) == ("job", "nominal", 2 / 6, 2 / 6, 6)
    # SST of a standardised column is 6; two jobs changed, at 3 each; of age four cells at (1/2)²·1.5.
    assert (job.loss, age.loss) == pytest.approx((100 * 6 / 6, 100 * 4 * 0.25 * 1.5 / 6))
    assert found.utility.loss == pytest.approx((job.loss + age.loss) / 2)
    # Numbers keep their own measures; the correlation ratio of age by job: sums 1, 1, 4 of 2 each, mean 1, SST 4.
    assert [column.name for column in found.utility.numbers] == ["age"]
    assert found.utility.association_changes() == [("job", "age", pytest.approx((np.sqrt(3 / 4), 1.0)))]
    assert found.utility.largest_correlation_change() is None


def test_a_released_ancestor_has_its_place():
    table = pl.DataFrame({"town": ["Bath", "Bristol", "York", "York"], "left": [1, 1, 1, 1]})
    masked = table.with_columns(town=pl.Series(["South", "South", "York", "York"]))
    found = shoal.assess(table, masked, columns="town", kinds={"town": shoal.Hierarchy(TOWNS)})
    # South is as near to Bath as to Bristol, and farther from York; the two of York tie.
    assert found.risk.linkage.share == pytest.approx(0.5)
    assert found.risk.intervals is None
    assert found.utility.categories[0].variation == 0.5
    assert "interval disclosure" not in str(found)
    with pytest.raises(InputError, match=r"Column 'town' holds 'South' in the masked table.*hierarchy"):
        shoal.assess(table, masked, columns="town")


@pytest.mark.parametrize("seed", range(3))
def test_association_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, 200)
    b = (a + rng.integers(0, 3, 200)) % 6
    z = a + rng.normal(size=200)
    counts = np.zeros((4, 6), dtype=int)
    np.add.at(counts, (a, b), 1)
    measured = statistics.association(a * 1.0, b * 1.0, x_nominal=True, y_nominal=True)
    assert measured == pytest.approx(scipy.stats.contingency.association(counts, method="cramer"))
    ratio = sum((a == i).sum() * (z[a == i].mean() - z.mean()) ** 2 for i in range(4)) / ((z - z.mean()) ** 2).sum()
    for x, y, nominal in ((a * 1.0, z, (True, False)), (z, a * 1.0, (False, True))):
        assert statistics.association(x, y, x_nominal=nominal[0], y_nominal=nominal[1]) == pytest.approx(np.sqrt(ratio))
    ranks = statistics.association(a * 1.0, -z, x_nominal=False, y_nominal=False)
    assert ranks == pytest.approx(abs(scipy.stats.pearsonr(a, z)[0]))
    assert np.isnan(statistics.association(np.zeros(9), np.arange(9.0), x_nominal=True, y_nominal=False))


KINDS = {"o": shoal.Ordinal(["low", "mid", "high"]), "t": shoal.Hierarchy(TOWNS), "c": shoal.Nominal()}


@given(st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_loss_and_recount_are_those_of_the_release_for_all_kinds(data):
    n = data.draw(st.integers(8, 40))  # at least k records have a missing value, and at least k have none
    values = {
        "x": st.floats(-1e6, 1e6),
        "n": st.sampled_from(["a", "b", "ccc", None]),
        "o": st.sampled_from(["low", "mid", "high"]),
        "t": st.sampled_from(sorted(TOWNS)),
        "b": st.booleans(),
        "c": st.integers(1, 4),
    }
    names = data.draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=4, unique=True))
    table = pl.DataFrame({name: data.draw(st.lists(values[name], min_size=n, max_size=n)) for name in names})
    table = table.with_columns(pl.col("n").cast(pl.String) if "n" in names else pl.lit(0).alias("left"))
    kinds = {name: KINDS[name] for name in names if name in KINDS}
    asked = {"columns": names, "kinds": kinds}
    release = shoal.mask(
        table, data.draw(st.integers(2, 4)), **asked, missing="group", small="suppress", max_left_out=1
    )
    found = shoal.assess(table, release.data, **asked, kept=release.kept, k=release.k)
    assert found.utility.loss == pytest.approx(release.loss, abs=1e-9)
    assert {c.name: c.loss for c in found.utility.columns} == pytest.approx(dict(release.column_loss), abs=1e-9)
    assert found.risk.anonymity.below == 0
    assert 0 <= found.risk.linkage.share <= 1


def test_tables_of_several_libraries_and_files_mean_the_same(tmp_path):
    """Codes are integers in a frame and text in a file; Booleans are written in small letters."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"code": rng.integers(1, 4, 60), "flag": rng.choice([True, False], 60), "x": rng.normal(size=60).round(3)}
    )
    asked = {"columns": ["code", "flag", "x"], "kinds": {"code": shoal.Nominal()}}
    release = shoal.mask(table, 3, **asked, method="mdav")
    table.write_csv(tmp_path / "in.csv")
    release.data.write_csv(tmp_path / "out.csv")
    table.write_parquet(tmp_path / "in.parquet")
    expected = str(shoal.assess(table, release.data, **asked, k=3))
    for before in (table.to_pandas(), table.to_arrow(), tmp_path / "in.csv", tmp_path / "in.parquet"):
        for after in (release.data.to_pandas(), tmp_path / "out.csv"):
            assert str(shoal.assess(before, after, **asked, k=3)) == expected


def test_kinds_without_columns_are_masked_columns():
    table = firms(200).with_columns(sector=pl.col("sector").cast(pl.String))
    release = shoal.mask(table, 4, columns=["sales", "sector"], rest="keep")
    found = shoal.assess(table, release.data, kinds={"sector": shoal.Nominal()})
    assert [c.name for c in found.utility.columns] == ["sales", "sector"]
    assert found.utility.loss == pytest.approx(release.loss)
    for kinds, words in (({"sectr": shoal.Nominal()}, "Did you mean 'sector'"), ({"sector": 3}, "must use shoal.Nomi")):
        with pytest.raises(InputError, match=words):
            shoal.assess(table, release.data, kinds=kinds)


def test_categories_on_the_command_line(tmp_path):
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "age": rng.integers(18, 80, 150),
            "school": rng.choice(["none", "some", "much"], 150),
            "code": rng.integers(1, 5, 150),
            "town": rng.choice(sorted(TOWNS), 150),
        }
    )
    table.write_csv(tmp_path / "in.csv")
    (tmp_path / "towns.csv").write_text("\n".join(",".join([town, *above]) for town, above in TOWNS.items()))
    words = ["-c", "age", "-c", "school", "-c", "code", "-c", "town", "--ordinal", "school=none,some,much",
             "--nominal", "code", "--hierarchy", "town=towns.csv", "-k", 5]  # fmt: skip
    assert command("mask", "in.csv", *words, "-o", "out.csv", cwd=tmp_path).returncode == 0
    done = command("assess", "in.csv", "out.csv", *words, "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line in ("cells changed %", "school  ordinal", "town    hierarchy", "largest change of an association"):
        assert line in done.stdout, done.stdout
    assert "smallest group 5" in done.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "total variation" in page
    assert not any(town in page for town in TOWNS)
    refused = command("assess", "in.csv", "out.csv", "--ordinal", "school", cwd=tmp_path)
    assert "--ordinal must read COLUMN=" in refused.stderr


@pytest.mark.parametrize("value", [1e200, -np.inf])
def test_values_too_large_to_be_squared_are_refused_by_name(value):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.normal(size=40), "n": rng.normal(size=40)})
    spoiled = frame.with_columns(x=pl.Series([*frame["x"][:7], value, *frame["x"][8:]]))
    with pytest.raises(InputError, match=r"Column 'x' must be within .* record 8 of 'masked' holds"):
        shoal.assess(frame, spoiled)
    with pytest.raises(InputError, match=r"Column 'x' must be (within|finite).* record 8 holds"):
        shoal.assess(spoiled, frame)
