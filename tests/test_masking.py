"""mask(): every kind of table, strata, missing values, weights, integers, aggregates, and every refusal."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import shoal
from shoal.algorithms.registry import METHODS
from shoal.assessment.coded_records import read_original
from shoal.core.errors import InputError, NotKAnonymousWarning
from shoal.demo import firms
from shoal.tables.formats.frames import open_table

MONEY = ["sales", "wages", "assets"]
EXACT = {"integers": "float", "decimals": "all"}  # means as they are


@pytest.fixture(scope="module")
def table():
    return firms(300)


def counts(frame, columns):
    return frame.group_by(columns).len()["len"]


def quick(name):
    return {"steps": 2000} if "steps" in {option.name for option in METHODS[name].options} else {}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_masks(table, name):
    method = METHODS[name]
    columns = MONEY[:1] if method.univariate else MONEY
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if not method.whole_records else "error", NotKAnonymousWarning)
        release = shoal.mask(table, 4, columns=columns, method=name, rest="keep", **EXACT, **quick(name))
    if method.whole_records:
        assert counts(release.data, columns).min() >= 4
        assert len(release.sizes) == release.labels.max() + 1
    for column in columns:
        assert counts(release.data, [column]).min() >= 4
        assert release.data[column].mean() == pytest.approx(table[column].mean())
    rest = [column for column in table.columns if column not in columns]
    assert_frame_equal(release.data.select(rest), table.select(rest))
    assert 0 < release.loss < 100
    assert release.loss == pytest.approx(np.mean(list(release.column_loss.values())))


@given(
    n=st.integers(4, 60),
    k=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    name=st.sampled_from([name for name, method in METHODS.items() if method.whole_records and not method.univariate]),
    integers=st.sampled_from(["float", "round"]),
    aggregate=st.sampled_from(["mean", "median", "medoid"]),
)
@settings(max_examples=60, deadline=None)
def test_every_release_is_k_anonymous(n, k, seed, name, integers, aggregate):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": rng.integers(0, 9, n), "b": rng.normal(size=n), "c": rng.integers(0, 2, n)})
    keywords = {"method": name, "integers": integers, "aggregate": aggregate, "columns": ["a", "b"], **quick(name)}
    keywords["keep"] = "c"
    release = shoal.mask(frame, k, **keywords)
    assert counts(release.data, ["a", "b"]).min() >= k
    assert release.data["c"].equals(frame["c"])
    assert release.data["a"].dtype == (pl.Int64 if integers == "round" else pl.Float64)
    again = shoal.mask(frame, k, **keywords)
    assert again.data.equals(release.data)
    assert np.array_equal(again.labels, release.labels)


INDEXES = {
    "text": pd.Index([f"person {i}" for i in range(12)]),
    "named": pd.RangeIndex(12, name="salary of ACME"),
    "shifted": pd.RangeIndex(5, 17),
    "backwards": pd.RangeIndex(11, -1, -1),
    "dates": pd.date_range("2024-01-01", periods=12, name="birthday"),
    "several levels": pd.MultiIndex.from_product([["x", "y"], range(6)], names=["firm", "person"]),
    "categories": pd.CategoricalIndex(list("abcdefabcdef")),
    "twice the same": pd.Index([7] * 12),
}
NO_INDEX = "the index of the pandas table is not in the release: records are numbered from 0"


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
@pytest.mark.parametrize("asked", [{}, {"missing": "drop"}, {"shuffle": 1}, {"by": "part", "small": "suppress"}])
def test_no_index_of_pandas_leaves(index, asked):
    numbers = np.arange(12.0)
    if "missing" in asked:
        numbers[3] = np.nan
    frame = pd.DataFrame({"x": numbers, "part": list("aaaaaabbbbbc"), "row": range(12)}, index=index)
    release = shoal.mask(frame, 3, columns="x", keep="row", max_left_out=1, **asked)
    assert release.data.index.equals(pd.RangeIndex(release.records))
    assert release.data.index.names == [None]
    assert release.data["row"].tolist() == release.kept.tolist()
    assert sum(NO_INDEX in note for note in release.notes) == 1
    assert frame.index is index or frame.index.equals(index)


def test_a_plain_index_of_pandas_is_not_mentioned():
    release = shoal.mask(pd.DataFrame({"x": np.arange(6.0)}), 3, columns="x")
    assert release.data.index.equals(pd.RangeIndex(6))
    assert not any("index" in note for note in release.notes)


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_an_index_that_dask_stored_stays_behind(tmp_path, engine):
    table = pl.DataFrame({"__null_dask_index__": [f"P{i}" for i in range(40)], "x": [i * 7.5 % 31 for i in range(40)]})
    table.write_parquet(tmp_path / "in.parquet")
    release = shoal.mask(tmp_path / "in.parquet", 4, columns=["x"], engine=engine, output=tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["x"]
    assert any(note.startswith(NO_INDEX) for note in release.notes)


def test_sorting_by_the_index_does_not_undo_a_shuffle():
    frame = pd.DataFrame({"x": np.arange(60.0), "row": range(60)})
    released = shoal.mask(frame, 3, columns="x", keep="row", shuffle=1).data
    assert released.sort_index()["row"].tolist() == released["row"].tolist() != list(range(60))


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.usefixtures("one_template")
def test_an_index_that_a_parquet_file_stores_stays_behind(tmp_path, engine):
    frame = pd.DataFrame({"x": np.arange(12.0)}, index=np.arange(12) * 7)
    frame.to_parquet(tmp_path / "in.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "in.parquet").names
    names = {"columns": "x", "output": tmp_path / "out.parquet", "engine": engine}
    release = shoal.mask(tmp_path / "in.parquet", 3, **names)
    assert pq.read_schema(tmp_path / "out.parquet").names == ["x"]
    assert pd.read_parquet(tmp_path / "out.parquet").index.equals(pd.RangeIndex(12))
    assert sum(NO_INDEX in note for note in release.notes) == 1
    assert release.left == ()
    release = shoal.mask(tmp_path / "in.parquet", 3, **names, keep="__index_level_0__")
    assert pq.read_schema(tmp_path / "out.parquet").names == ["x", "__index_level_0__"]
    assert not any("index of the pandas table" in note for note in release.notes)


def test_the_same_kind_of_table_comes_back(table):
    expected = shoal.mask(table, 3, columns=MONEY, rest="keep").data
    frame = table.to_pandas().set_index(pd.Index(range(1000, 700, -1), name="number"))
    frame["kind"] = pd.Categorical(frame["sector"])
    masked = shoal.mask(frame, 3, columns=MONEY, rest="keep").data
    assert isinstance(masked, pd.DataFrame)
    assert masked.index.equals(pd.RangeIndex(300))
    assert masked.drop(columns=MONEY).equals(frame.drop(columns=MONEY).reset_index(drop=True))
    assert np.array_equal(masked[MONEY].to_numpy(), expected.select(MONEY).to_numpy())
    masked = shoal.mask(table.to_arrow(), 3, columns=MONEY, rest="keep").data
    assert isinstance(masked, pa.Table)
    assert pl.from_arrow(masked).equals(expected)
    array = table.select(MONEY).to_numpy()
    masked = shoal.mask(array, 3).data
    assert isinstance(masked, np.ndarray)
    assert np.array_equal(masked, expected.select(MONEY).to_numpy())


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("missing", [0, 1])
def test_numbers_of_pyarrow_are_those_of_polars(kind, missing):
    """Columns without missing values are read without polars, with identical bits."""
    ends = np.finfo(kind) if "float" in kind else np.iinfo(kind)
    more = [-0.0, np.nan, 0.1] if "float" in kind else [2**53 + 1] if "64" in kind else []
    given = pa.array(np.array([ends.min, 0, 7, *more, ends.max], dtype=kind))
    column = pa.chunked_array([given[1:], given[:2], given[:0], pa.nulls(missing, given.type)])
    mine, reference = open_table(pa.table({"x": column})), open_table(pl.DataFrame({"x": pl.from_arrow(column)}))
    found, expected = mine["x"].numbers(), reference["x"].numbers()
    assert found.type == expected.type == kind
    assert np.array_equal(found.values, expected.values, equal_nan=True)
    assert np.array_equal(mine["x"].words(), reference["x"].words())


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
def test_a_table_that_is_yet_to_be_computed_comes_back_as_a_polars_frame(table, kind):
    days = table.with_columns(day=pl.date(2020, 1, 1))
    data = days.lazy() if kind == "polars" else pytest.importorskip("duckdb").from_arrow(days.to_arrow())
    release = shoal.mask(data, 3, columns=MONEY, rest="keep")
    assert_frame_equal(release.data, shoal.mask(days, 3, columns=MONEY, rest="keep").data)


def test_the_given_table_is_not_changed(table):
    frame, array = table.to_pandas(), table.select(MONEY).to_numpy().copy()
    before, copy = frame.copy(), array.copy()
    shoal.mask(frame, 3, columns=MONEY)
    shoal.mask(array, 3)
    assert frame.equals(before)
    assert np.array_equal(array, copy)


def test_arrays_of_one_column_and_of_integers():
    vector = np.arange(10)
    assert shoal.mask(vector, 5).data.tolist() == [2.0] * 5 + [7.0] * 5
    assert shoal.mask(vector, 5, integers="round").data.dtype == vector.dtype
    square = np.random.default_rng(0).normal(size=(9, 3))
    masked = shoal.mask(square, 3, columns=[0, 2], rest="keep").data
    assert np.array_equal(masked[:, 1], square[:, 1])


def test_pandas_columns_may_be_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 2)))
    assert shoal.mask(frame, 4, columns=[1], rest="keep").data[0].equals(frame[0])


@pytest.mark.parametrize(("weights", "by"), [("w", "w"), ([1.0, 3.0] * 3, "the weight vector")])
def test_a_release_says_that_its_means_are_weighted(weights, by, tmp_path):
    table = pl.DataFrame({"x": [0.0, 1.0, 5.0, 6.0, 9.0, 9.5], "w": [1.0, 3.0] * 3})
    release = shoal.mask(table, 2, columns=["x"], weights=weights)
    assert release.data["x"][0] == 0.75
    assert f"group means are weighted by {by}; loss, k and categories count every record once" in release.notes
    release.report(tmp_path / "r.html", original=table)
    assert "replaced by the weighted mean of its group" in (tmp_path / "r.html").read_text()


def test_without_columns_every_column_has_a_reported_proposed_role(table):
    release = shoal.mask(table.drop("research"), 3, by="region", weights="weight")
    assert release.columns == ["sector", "employees", "sales", "wages", "assets", "profit"]
    assert release.left == ("weight",)
    assert "no columns to mask were named: every column has a proposed role" in str(release)
    assert counts(release.data, ["region", *release.columns]).min() >= 3


def test_all_columns_of_an_array_are_masked():
    array = np.random.default_rng(0).normal(size=(40, 3))
    release = shoal.mask(array, 4)
    assert release.columns == [0, 1, 2]
    assert counts(pl.DataFrame(release.data), ["column_0", "column_1", "column_2"]).min() >= 4


def test_columns_without_a_role_are_left_out_kept_or_refused(table):
    asked = {"columns": MONEY, "by": "region", "weights": "weight", "confidential": "sector", "keep": "profit"}
    release = shoal.mask(table, 3, small="suppress", **asked)
    roleless = ["employees", "research"]
    assert release.data.columns == [name for name in table.columns if name not in roleless]
    assert sorted(release.dropped) == roleless
    kept = shoal.mask(table, 3, small="suppress", rest="keep", **asked)
    assert kept.data.columns == table.columns
    assert not kept.dropped
    assert kept.data.select(roleless).equals(table.select(roleless))
    assert kept.data.drop(roleless).equals(release.data)
    with pytest.raises(InputError, match=r"Columns .*employees.*research.* have no role\. Name each in 'columns'"):
        shoal.mask(table, 3, rest="error", **asked)
    assert shoal.mask(table, 3, rest="error", identifiers=roleless, **asked).data.columns == release.data.columns
    for rest in ("keep", "error"):
        with pytest.raises(InputError, match=f"rest='{rest}' requires 'columns'"):
            shoal.mask(table, 3, rest=rest)


def test_records_that_are_left_out_have_lost_everything():
    frame = pl.DataFrame({"a": [1.0, 2.0, 9.0, 10.0, None], "b": [3.0, 4.0, 5.0, 6.0, 7.0]})
    asked = {"columns": ["a", "b"], **EXACT}
    all_records = shoal.mask(frame[:4], 2, **asked)
    release = shoal.mask(frame, 2, missing="drop", max_left_out="20%", **asked)
    assert (release.left_out, release.records) == (1, 4)
    # Four records lost as much as before, the fifth 100 %.
    assert release.loss == pytest.approx((4 * all_records.loss + 100) / 5)
    assert "4 of 5 (1 suppressed) in 2 groups of 2 (k = 2)" in str(release)
    with pytest.raises(InputError, match=r"1 of 5 records \(20%\) would be suppressed, but 'max_left_out' is 19%"):
        shoal.mask(frame, 2, missing="drop", max_left_out="19%", **asked)


@pytest.mark.parametrize("asked", [{"missing": "drop"}, {"by": "town", "small": "suppress"}], ids=str)
def test_a_report_counts_records_that_are_left_out(tmp_path, asked):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": 1.0, "job": ["cook", "smith"] * 30})
    frame = frame.with_columns(
        b=pl.when(pl.int_range(60) % 7 > 0).then("b"), town=pl.Series(["Bath"] * 50 + ["York"] * 8 + ["Ulm"] * 2)
    )
    release = shoal.mask(frame, 3, columns=["a", "b", "c", "job"], max_left_out=1, **asked)
    assert release.left_out > 0
    numbered, Y = read_original(release, frame)
    loss, losses = numbered.loss(Y)
    assert loss == pytest.approx(release.loss)
    assert dict(zip(numbered.names, losses.tolist(), strict=True)) == pytest.approx(release.column_loss)
    assessed = shoal.assess(frame, release.data, kept=release.kept, columns=release.columns).utility
    assert assessed.loss == pytest.approx(release.loss)
    assert {column.name: column.loss for column in assessed.columns} == pytest.approx(release.column_loss)
    release.report(tmp_path / "r.html", original=frame)
    with pytest.raises(InputError, match="is not the table this release was made from"):
        release.report(tmp_path / "r.html", original=frame.with_columns(pl.col("a") + pl.col("a") ** 2))


def test_groups_stay_in_their_stratum(table):
    release = shoal.mask(table, 3, columns=MONEY, by=["region", "sector"][:1])
    assert counts(release.data, ["region", *MONEY]).min() >= 3
    for label in range(release.labels.max() + 1):
        assert table["region"].to_numpy()[release.labels == label].tolist().count(None) == 0
        assert len(set(table["region"].to_numpy()[release.labels == label])) == 1
    # Standardised together, masked apart: the same as masking each stratum of the standardised table.
    assert release.loss > shoal.mask(table, 3, columns=MONEY).loss


def test_a_missing_stratum_is_a_stratum():
    frame = pl.DataFrame({"v": np.arange(8.0), "s": ["a"] * 4 + [None] * 4})
    assert shoal.mask(frame, 4, columns="v", by="s").sizes.tolist() == [4, 4]


def test_missing_values_are_grouped_by_default_and_refused_on_request(table):
    asked = {"columns": ["sales", "research"]}
    grouped = shoal.mask(table, 3, **asked, missing="group").data
    assert shoal.mask(table, 3, **asked).data.equals(grouped)
    assert grouped["research"].null_count() == table["research"].null_count() > 0
    with pytest.raises(InputError, match=r"Column 'research' has \d+ missing values.*missing='group'.*missing='drop'"):
        shoal.mask(table, 3, missing="error", **asked)


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, lambda frame: frame])
def test_missing_group_masks_within_the_pattern(table, convert):
    release = shoal.mask(convert(table), 3, columns=["sales", "research"], missing="group", **EXACT)
    masked = pl.DataFrame(release.data) if not isinstance(release.data, pa.Table) else pl.from_arrow(release.data)
    masked = masked.with_columns(pl.col("research").fill_nan(None))
    assert masked["research"].is_null().equals(table["research"].is_null())
    assert counts(masked, ["sales", "research"]).min() >= 3
    assert masked["research"].mean() == pytest.approx(table["research"].mean())


def test_missing_group_refuses_a_rare_pattern():
    frame = pl.DataFrame({"a": [1.0, 2, 3, None, 5], "b": [1.0, 2, 3, 4, 5]})
    with pytest.raises(InputError, match="needs k=2, but only 1 record of the table has missing values in exactly: a"):
        shoal.mask(frame, 2, columns=["a", "b"], missing="group", small="error")


def test_a_record_without_any_value_needs_company_too():
    frame = pl.DataFrame({"a": [1.0, 2, None, None]})
    assert shoal.mask(frame, 2, columns="a", integers="float").data["a"].to_list() == [1.5, 1.5, None, None]


def test_missing_drop_leaves_records_out(table):
    release = shoal.mask(table, 3, columns=["sales", "research"], missing="drop", rest="keep", max_left_out=1)
    full = table.filter(pl.col("research").is_not_null())
    assert release.data["region"].equals(full["region"])
    assert np.array_equal(release.kept, np.flatnonzero(table["research"].is_not_null().to_numpy()))
    assert len(release.labels) == len(full)
    assert "were suppressed" in str(release)


@pytest.mark.parametrize(
    ("policies", "notes"),
    [
        ({"missing": "group", "small": "suppress"}, ["1 record", "4 records have missing values"]),
        ({"missing": "group", "small": "merge"}, ["1 cell was made missing", "6 records have missing values"]),
        ({"missing": "drop"}, ["5 records with missing values were suppressed"]),
        ({"missing": "drop", "small": "suppress"}, ["5 records with missing values were suppressed"]),
    ],
    ids=str,
)
def test_notes_count_the_records_that_are_released(policies, notes):
    frame = pl.DataFrame({"a": [1, 2, 3, 4, *[None] * 4, 5, 6], "b": [1, 2, 3, 4, 5, 6, 7, 8, None, 9]})
    policies = {"columns": ["a", "b"], "max_left_out": 1, **policies}
    release = shoal.mask(frame, 2, **policies)
    counted = [note for note in release.notes if note[0].isdigit()]
    assert all(any(words in note for note in counted) for words in notes)
    incomplete = release.data.filter(pl.any_horizontal(pl.all().is_null())).height
    numbers = [int(note.split()[0]) for note in counted if "have missing values" in note]
    assert numbers == [incomplete] * (incomplete > 0)
    assert "records have missing values" not in str(shoal.mask(frame.drop_nulls(), 2, **policies))


def test_notes_never_count_more_records_than_are_released():
    """Hundreds of records have a missing value, and nearly all of them are suppressed."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(600, 12))
    table[rng.random(table.shape) < 0.5] = np.nan
    frame = pl.DataFrame(table).fill_nan(None)
    release = shoal.mask(frame, 2, columns=frame.columns, missing="group", small="suppress", max_left_out=1)
    incomplete = release.data.filter(pl.any_horizontal(pl.all().is_null())).height
    assert 0 < incomplete < 100
    assert f"{incomplete} records have missing values" in str(release)
    assert f"{600 - release.records} records of strata or patterns" in str(release)


def test_nan_is_missing_too():
    frame = pl.DataFrame({"a": [1.0, float("nan"), 3.0, 4.0]})
    with pytest.raises(InputError, match=r"Column 'a' has 1 missing value"):
        shoal.mask(frame, 2, columns="a", missing="error")
    assert len(shoal.mask(frame, 2, columns="a", missing="drop", max_left_out=1).data) == 3


def test_weights_keep_weighted_totals(table):
    release = shoal.mask(table, 5, columns=MONEY, weights="weight", **EXACT)
    vector = shoal.mask(table, 5, columns=MONEY, weights=table["weight"].to_numpy(), rest="keep", **EXACT)
    for column in MONEY:
        before = (table[column] * table["weight"]).sum()
        assert (release.data[column] * table["weight"]).sum() == pytest.approx(before)
        assert vector.data[column].equals(release.data[column])
    assert release.sizes.min() >= 5
    assert release.data["weight"].equals(table["weight"])


def test_rounding_reports_what_it_adds():
    frame = pl.DataFrame({"a": [1, 2, 4, 7, 8, 8]})
    plain, whole = (shoal.mask(frame, 3, columns="a", **rounding) for rounding in (EXACT, {"integers": "round"}))
    assert plain.data["a"].to_list() == pytest.approx([7 / 3] * 3 + [23 / 3] * 3)
    assert whole.data["a"].to_list() == [2] * 3 + [8] * 3
    added = whole.loss - plain.loss
    assert added > 0
    assert f"{added:+.5f} %" in str(whole)


def test_medoids_are_records(table):
    masked = shoal.mask(table, 4, columns=MONEY, aggregate="medoid").data
    originals = set(table.select(MONEY).rows())
    assert set(masked.select(MONEY).rows()) <= originals


def test_float32_stays_float32():
    frame = pl.DataFrame({"a": np.arange(10, dtype=np.float32) / 3})
    masked = shoal.mask(frame, 5, columns="a").data
    assert masked["a"].dtype == pl.Float32
    assert masked["a"].n_unique() == 2


def test_constant_columns_and_equal_records_lose_nothing():
    frame = pl.DataFrame({"a": [3.5] * 6, "b": [0.1] * 6})
    release = shoal.mask(frame, 3, columns=["a", "b"])
    assert release.data.equals(frame)
    assert release.loss == 0.0
    mixed = shoal.mask(frame.with_columns(c=pl.Series(np.arange(6.0))), 3, columns=["a", "b", "c"])
    assert mixed.data["a"].equals(frame["a"])
    assert mixed.loss > 0


def test_more_columns_than_records():
    frame = pl.DataFrame(np.random.default_rng(0).normal(size=(5, 30)))
    assert shoal.mask(frame, 2, columns=frame.columns).sizes.sum() == 5


def test_values_near_1e9_are_masked_like_values_near_0():
    values = np.random.default_rng(1).integers(0, 1000, (60, 2)).astype(float)
    near, far = shoal.mask(values, 3), shoal.mask(values + 1e9, 3)
    assert np.array_equal(near.labels, far.labels)
    assert near.loss == pytest.approx(far.loss, rel=1e-9)


def test_individual_ranking_warns_by_name(table):
    with pytest.warns(NotKAnonymousWarning, match="not k-anonymous for whole records"):
        release = shoal.mask(table, 3, columns=MONEY, method="individual-ranking")
    assert release.labels.shape == (300, 3)
    assert "NOT k-anonymous" in str(release).splitlines()[1]
    assert "NOT k-anonymous" not in " ".join(release.notes), "once is enough"
    groups = sum(len(np.unique(labels)) for labels in release.labels.T)
    assert f"300 in {groups} groups of 3 to 5 across 3 columns" in str(release)


def test_one_column_is_k_anonymous_whatever_the_method(table):
    release = shoal.mask(table, 3, columns=["sales"], method="individual-ranking")
    assert "NOT k-anonymous" not in str(release)


def test_a_release_prints_itself(table):
    release = shoal.mask(table, 3, columns=MONEY, method="v-mdav", by="region")
    text = str(release)
    for words in ("300 in", "v-mdav (gamma=", "sales, wages, assets", "region", f"{release.loss:.5f} %", "at least 3"):
        assert words in text
    assert "<table>" in release._repr_html_()
    assert release.bound is None
    assert release.gap is None
    assert sum(size * count for size, count in release.size_histogram.items()) == 300


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 1}, "'k' must be at least 2, got 1"),
        ({"k": "5"}, "'k' must be a whole number"),
        ({"k": True}, "'k' must be a whole number"),
        ({"k": 301}, "k=301, but the table has 300 records"),
        ({"k": 40, "by": "region", "small": "error"}, "k=40, but the stratum region='Islands' has"),
        ({"columns": ["salse"]}, "'salse', which the table does not have. Did you mean 'sales'?"),
        ({"columns": []}, "at least one column"),
        ({"columns": ["sales", "sales"]}, "'columns' lists column 'sales' twice"),
        ({"columns": ["sector"], "method": "univariate"}, "the values of 'sector' have no order"),
        ({"by": "regio"}, "Did you mean 'region'"),
        ({"by": "sales"}, "'columns' and 'by' both name column"),
        ({"weights": "weigth"}, "Did you mean 'weight'"),
        ({"weights": [1.0]}, "one number per record (300)"),
        ({"weights": [0.0] * 300}, "must be positive, but record 1 holds 0.0"),
        ({"weights": "weight", "aggregate": "median"}, "'weights' requires aggregate='mean'"),
        ({"missing": "ignore"}, "'missing' must be one of 'group', 'drop', 'error', got 'ignore'"),
        ({"integers": "keep"}, "'integers' must be one of"),
        ({"aggregate": "mode"}, "'aggregate' must be one of"),
        ({"method": "univariate"}, "masks one column, got 3"),
        ({"method": "mdavv"}, "Did you mean 'mdav'"),
        ({"columns": ["SALES"]}, "Did you mean 'sales'"),
        ({"method": "mdav", "gamma": 3}, "Method 'mdav' has no option 'gamma'"),
        ({"gamma": 3}, "Method 'auto' has no option 'gamma'"),
    ],
)
def test_refusals_name_what_is_wrong(table, change, words):
    arguments = {"k": 3, "columns": MONEY} | change
    with pytest.raises(InputError) as caught:
        shoal.mask(table, arguments.pop("k"), **arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pl.DataFrame({"a": [1.0, float("inf"), 2.0]}), "Column 'a' must be finite, but record 2 holds inf"),
        (pl.DataFrame({"name": ["x", "y", "z"]}), "No column can be masked: name (drop: "),
        (pl.DataFrame({"a": []}, schema={"a": pl.Float64}), "the table has 0 records"),
        ([[1.0, 2.0]], "must be a pandas, polars or pyarrow table"),
        (np.array([["a"]]), "must be a numeric array"),
        (np.zeros((2, 2, 2)), "one record per row"),
        (pd.DataFrame([[1.0, 2.0]] * 4, columns=["a", "a"]), "'a' appears more than once"),
        (pa.table([[1.0, 2.0], [1.0, 2.0]], names=["a", "a"]), "'a' appears more than once"),
    ],
)
def test_tables_that_cannot_be_masked(data, words):
    with pytest.raises(InputError) as caught:
        shoal.mask(data, 2)
    assert words in str(caught.value)


def test_an_array_has_no_names_to_write(tmp_path):
    with pytest.raises(InputError, match="'output' requires named columns"):
        shoal.mask(np.arange(8.0), 2, output=tmp_path / "out.csv")


def test_a_text_cell_among_numbers_is_named():
    frame = pl.DataFrame({"a": ["1", "2.5", "n/a?", "4"]})
    with pytest.raises(InputError, match=r"Column 'a' must be numeric, but record 3 holds 'n/a\?'"):
        shoal.mask(frame, 2, columns="a")


def test_a_partition_that_breaks_its_promise_is_never_released(table, monkeypatch):
    from shoal.algorithms import mdav as module

    monkeypatch.setattr(module, "mdav", lambda X, *_, **__: np.arange(len(X)))
    with pytest.raises(shoal.VerificationError, match="Nothing was released"):
        shoal.mask(table, 3, method="mdav", columns=MONEY)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [({"aggregate": "medoid"}, False), ({"aggregate": "median"}, False), ({"integers": "float"}, True)],
)
def test_decimals_are_reported_if_there_are_any(keywords, told):
    table = pl.DataFrame({"n": [1, 2, 5, 10, 11, 14], "m": [3, 6, 9, 12, 15, 18], "x": [0.5] * 6})
    release = shoal.mask(table, 3, columns=["n", "m", "x"], **keywords)
    notes = [note for note in release.notes if "integer columns now hold decimals" in note]
    assert [bool((release.data[name] % 1 > 0).any()) for name in "nm"] == [told, False]
    assert notes == (["integer columns now hold decimals (n); integers='round' keeps them whole"] if told else [])


@pytest.mark.parametrize("work", ["mask", "compare"])
def test_reading_is_shown_while_it_lasts(table, tmp_path, monkeypatch, work):
    from concurrent.futures import wait
    from importlib import import_module
    from threading import Event

    from shoal.core import progress

    module = import_module({"mask": "shoal.masking.pipeline", "compare": "shoal.comparison.compare"}[work])
    read, seen, shown = module.open_data, [], Event()

    def follow(work, state, total, title):
        seen.append((title, total))
        shown.set()
        wait([work])

    def slow(*arguments, **keywords):
        assert shown.wait(60)
        return read(*arguments, **keywords)

    monkeypatch.setattr(module, "open_data", slow)
    monkeypatch.setattr(progress, "_follow", follow)
    table.write_csv(tmp_path / "in.csv")
    asked = {"methods": "mdav"} if work == "compare" else {}
    getattr(shoal, work)(tmp_path / "in.csv", 5, columns=MONEY, progress=True, **asked)
    assert seen[0] == ("read", None)


@given(st.lists(st.floats(allow_infinity=False, allow_nan=True), min_size=1))
def test_released_values_are_rounded_as_text_is(values):
    """The fast rounding agrees with the obvious one except for ties, and nearly whole numbers do not change."""
    from shoal.masking.aggregate import to_15_digits

    found = to_15_digits(np.array(values)).tolist()
    for value, rounded in zip(values, found, strict=True):
        if not abs(value) < 1e15:
            assert rounded == value or np.isnan(value)
            continue
        assert rounded == float(f"{rounded:.15g}")
        # Half a unit of the 15th digit, and the rounding of the float itself.
        unit = 10.0 ** (int(f"{value:.14e}".partition("e")[2]) - 14)
        assert abs(rounded - value) <= unit / 2 + np.spacing(abs(value))


def test_nullable_types_of_pandas_stay():
    table = pd.DataFrame({"i": pd.array([1, 2, 4, 8, 9, 7], "Int16"), "f": pd.array([1.5, 2, 3, 4, 5, 6], "Float64")})
    for frame in (table, table.assign(i=table["i"].where(table.index > 0))):
        asked = {"integers": "round", "missing": "group", "small": "suppress", "max_left_out": 1}
        found = shoal.mask(frame, 2, columns=["i", "f"], **asked).data
        assert found.dtypes.to_dict() == frame.dtypes.to_dict()


def test_a_sum_that_cannot_be_checked_is_not_reported_as_checked():
    table = pl.DataFrame({"a": [1, 2, 3, 4, 5, 6], "b": [-9] * 6, "t": [5, 6, 7, 8, 9, 10]})
    asked = {"columns": ["a", "b", "t"], "sums": "t = a + b", "missing_codes": {"b": [-9]}, "missing": "group"}
    assert "except those with missing values in it" in str(shoal.mask(table, 3, **asked))
    complete = table.with_columns(b=4, c=pl.Series([None] * 3 + [1] * 3))
    release = shoal.mask(complete, 3, columns=["a", "b", "t", "c"], sums="t = a + b", missing="group")
    assert "the sum t = a + b holds in the release: every record was checked" in release.notes


def test_a_release_without_records_is_refused_with_a_message():
    table = pl.DataFrame({"x": [1.0, 2, 3, 4], "by": list("abcd"), "p": [1, 1, 2, 2]})
    with pytest.raises(
        InputError,
        match="would suppress all records: every stratum or missing-value pattern has fewer than k=2 records",
    ):
        shoal.mask(table, 2, columns=["x"], by="by", small="suppress")
    with pytest.raises(InputError, match=r"the table has 2 different units \(p\)\. Use a smaller k\.$"):
        shoal.mask(table, 3, columns=["x"], unit="p")


def test_equal_medoids_go_to_the_first_record_on_every_engine(tmp_path):
    pl.DataFrame({"age": [44, 27, 31, 60, 52]}).write_csv(tmp_path / "in.csv")
    asked = {"columns": "age", "aggregate": "medoid"}
    expected = shoal.mask(tmp_path / "in.csv", 2, **asked).data["age"].to_list()
    shoal.mask(tmp_path / "in.csv", 2, engine="local", output=tmp_path / "out.csv", **asked)
    assert pl.read_csv(tmp_path / "out.csv")["age"].to_list() == expected


def test_column_0_of_an_array_is_a_name_too():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match="'distance' cannot be combined with it"):
        shoal.mask(X, 4, method="individual-ranking", distance=0)
    with pytest.raises(InputError, match="'bound' cannot be combined with 'importance' or 'distance'"):
        shoal.mask(X, 4, distance=0, bound=True)


# --- words of messages -----------------------------------------------------------------------------------------------

WIDE = [f"a rather long name of column {i}" for i in range(200)]


def wide_table(share):
    """Return a wide table in which hardly any two records are missing, or zero, in the same columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, len(WIDE)))
    hidden = rng.random(X.shape) < share
    return pl.DataFrame({name: X[:, j] for j, name in enumerate(WIDE)}), hidden


def missing_patterns():
    table, hidden = wide_table(0.3)
    return pl.DataFrame([pl.Series(n, np.where(hidden[:, j], np.nan, table[n])) for j, n in enumerate(WIDE)]).fill_nan(
        None
    )


def zero_patterns():
    table, hidden = wide_table(0.3)
    return pl.DataFrame([pl.Series(n, np.where(hidden[:, j], 0.0, table[n])) for j, n in enumerate(WIDE)])


def long_strata():
    return wide_table(0.0)[0].with_columns(town=pl.Series([f"town {i} " * 500 for i in range(300)]))


@pytest.mark.parametrize(
    ("table", "asked", "named"),
    [
        (missing_patterns, {"columns": WIDE, "missing": "error"}, " and 195 others have missing values in 300 records"),
        (
            missing_patterns,
            {"columns": WIDE, "small": "error"},
            "only 1 record of the table has missing values in exactly: ",
        ),
        (zero_patterns, {"columns": WIDE, "zeros": WIDE}, "only 1 record of the table is zero in exactly: "),
        (long_strata, {"by": "town", "columns": WIDE, "small": "error"}, " has 1 record, the stratum town='town 1 "),
        (long_strata, {"by": WIDE[:199], "columns": WIDE[199:], "small": "error"}, " and 194 others has 1 record"),
        (long_strata, {"method": "univariate", "columns": WIDE}, "masks one column, got 200: "),
        (long_strata, {"columns": WIDE[:199], "distance": WIDE}, " and 194 others. Name it in 'columns' too"),
        (long_strata, {"columns": ["salse"]}, " and 189 others"),
        (
            long_strata,
            {"sums": [f"`{a}` = `{b}`" for a, b in zip(WIDE, [*WIDE[1:], WIDE[0]], strict=True)]},
            "are circular",
        ),
    ],
)  # fmt: skip
def test_a_message_about_a_wide_table_is_short(table, asked, named):
    with pytest.raises(InputError) as refused:
        shoal.mask(table(), 5, **asked)
    assert named in str(refused.value)
    assert len(str(refused.value)) < 4000


def test_messages_use_the_singular_for_one():
    table = pl.DataFrame({"x": [1, 2, 3], "id": [1, 1, 2], "y": [5, None, 7]})
    release = shoal.mask(table, 3, columns=["x"], keep=["id"])
    assert "records           3 in 1 group of 3 (k = 3)" in str(release)
    with pytest.raises(InputError, match=r"Column 'y' has 1 missing value\."):
        shoal.mask(table, 2, columns=["y"], missing="error")
    with pytest.raises(InputError, match=r"k=3, but the table has 2 different units \(id\)\."):
        shoal.mask(table, 3, columns=["x"], unit="id")
    town = table.with_columns(town=pl.Series(["a", "a", "b"]))
    with pytest.raises(InputError, match="the stratum town='b' has 1 record\\."):
        shoal.mask(town, 2, columns=["x"], by="town", small="error")
    with pytest.raises(InputError, match=r"the stratum town='b' has 1 different unit \(id\)"):
        shoal.mask(town, 2, columns=["x"], by="town", unit="id", small="error")
    left = shoal.mask(town, 2, columns=["x"], by="town", small="suppress", max_left_out=1, keep=["id"])
    assert "1 record of strata or patterns with fewer than k was suppressed (small='suppress')" in left.notes


def test_units_are_named_by_their_column():
    table = pl.DataFrame({"x": np.arange(12), "id": np.arange(12) // 2})
    release = shoal.mask(table, 3, columns=["x"], unit="id", identifiers="id")
    assert release.verified == "every value of x is shared by at least 3 different units (id)"


def test_masked_cells_of_an_array_are_missing():
    X = np.random.default_rng(1).normal(size=(30, 2))
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[4:12, 1] = True
    masked = np.ma.masked_array(X, mask=hidden)
    with pytest.raises(InputError, match=r"Column 1 has \d+ missing values"):
        shoal.mask(masked, 3, missing="error")
    release = shoal.mask(masked, 3, missing="group")
    expected = shoal.mask(np.where(hidden, np.nan, X), 3, missing="group")
    assert np.array_equal(release.data, expected.data, equal_nan=True)
    assert not isinstance(release.data, np.ma.MaskedArray)
    whole = shoal.mask(np.ma.masked_array((100 * X).astype(int), mask=hidden), 3, missing="drop", max_left_out=1)
    assert whole.records == 22
    with pytest.raises(InputError, match=r"whole numbers up to 2\^53 only; it holds 4611686018427387904"):
        shoal.mask(np.ma.masked_array([2**62, 2, 3, 4], mask=[0, 0, 0, 1]), 2)
    with pytest.raises(InputError, match="'weights' must be positive, but record 2 holds nan"):
        shoal.mask(X, 3, weights=np.ma.masked_array(np.ones(30), mask=np.arange(30) == 1))
    with pytest.raises(InputError, match="'X' must be finite"):
        shoal.partition(masked, 3)
    release = shoal.mask(X, 3)
    with pytest.raises(InputError, match="must have the same missing cells"):
        shoal.assess(masked, release.data)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_arrays_of_other_classes_are_masked_or_refused():
    X = np.random.default_rng(1).normal(size=(30, 2))
    release = shoal.mask(np.matrix(X), 3)
    assert type(release.data) is np.ndarray
    assert np.array_equal(release.data, shoal.mask(X, 3).data)
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(InputError, match=r"'data' must be .* at most 64 bits, got type float.*Use data.astype"):
            shoal.mask(X.astype(np.longdouble), 3)


def test_columns_of_pandas_may_have_names_that_are_numbers(tmp_path):
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 3)), columns=[2, "2", ("a", 1)])
    assert list(shoal.mask(table, 3, identifiers=[2]).data.columns) == ["2", ("a", 1)]
    assert list(shoal.mask(table, 3, identifiers=["2"]).data.columns) == [2, ("a", 1)]
    with pytest.raises(InputError, match=r"'output' requires column names that are text, got 2\. Rename"):
        shoal.mask(table, 3, output=tmp_path / "out.csv")
    for names, words in (
        ([1, True], "must be unique, but '1', 'True' appear more than once"),
        ([1.0, 1], "must be unique"),
        ([np.nan, "x"], "Column number 1 must have a name, got nan"),
        (["x", None], "Column number 2 must have a name"),
    ):
        strange = pd.DataFrame(np.ones((6, 2)), columns=pd.Index(names, dtype=object))
        with pytest.raises(InputError, match=words):
            shoal.mask(strange, 2)


@pytest.mark.filterwarnings("ignore:.*complex")
def test_a_column_of_complex_numbers_stays_as_it_is():
    table = pd.DataFrame({"x": np.arange(6.0), "z": np.arange(6) * 1j})
    assert shoal.mask(table, 3, columns=["x"], keep="z").data["z"].equals(table["z"])


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, lambda frame: frame])
def test_a_last_line_of_totals_is_refused(convert):
    """A line of totals was masked as a record: its group showed four firms with a fifth of all sales."""
    table = firms(200).select("region", "employees", "sales", "research")
    sums = table.select(pl.lit("Total").alias("region"), pl.exclude("region").sum())
    message = "Record 201 contains the totals of all records above in {}. Remove this line."
    for columns, named in ((["employees", "sales"], "employees, sales"), (["sales", "research"], "sales, research")):
        with pytest.raises(InputError, match=re.escape(message.format(named))):
            shoal.mask(convert(pl.concat([table, sums])), 5, columns=columns, by="region")
    for last in (table.head(1), sums.with_columns(sales=pl.col("sales") + 1)):  # a record, whatever one of its sums
        assert shoal.mask(convert(pl.concat([table, last])), 5, columns=["employees", "sales"]).records == 201
    few = pl.DataFrame({"sales": [0.0] * 40 + [3.0, 5.0, 8.0]})
    assert shoal.mask(convert(few), 3, columns="sales").records == 43
