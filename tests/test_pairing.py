"""assess() with codes for missing values, joined strata and shuffled records: measures and refusals."""

import numpy as np
import polars as pl
import pytest
from conftest import command
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.assessment.record_pairs import are_joined, match_patterns
from shoal.core.errors import InputError
from shoal.demo import firms

NAMES = ["age", "income"]


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    income = rng.integers(1000, 5000, n)
    income[rng.choice(n, n // 6, replace=False)] = -9
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": income,
            "town": rng.choice(["Bath", "Bristol", "York", "Hull"], n, p=[0.5, 0.44, 0.03, 0.03]),
            "id": np.arange(n),
        }
    )


# --- codes for missing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_codes_are_measured_as_missing(tmp_path, suffix):
    table, codes = people(), {"income": [-9]}
    path = tmp_path / f"out{suffix}"
    exact = {"integers": "float", "decimals": "all"}
    release = shoal.mask(table, 5, columns=NAMES, missing_codes=codes, keep="id", output=path, **exact)
    found = shoal.assess(table, path, columns=NAMES, missing_codes=codes, k=5)
    assert found.utility.loss == pytest.approx(release.loss)
    income = found.utility.columns[1]
    known = table.filter(pl.col("income") != -9)["income"]
    assert income.mean == pytest.approx((known.mean(), known.mean()))
    assert income.values == len(known)
    assert found.risk.anonymity.below == 0
    # Without codes, -9 is an ordinary number.
    wrong = shoal.assess(table, path, columns=NAMES).utility.columns[1]
    assert wrong.mean.before == pytest.approx(table["income"].mean())


def test_two_codes_in_a_masked_table_can_be_distinguished():
    before = pl.DataFrame({"x": [1.0, 3.0, -9.0, 99.0, -9.0, 99.0]})
    after = before.with_columns(x=pl.Series([2.0, 2.0, -9.0, 99.0, -9.0, 99.0]))
    found = shoal.assess(before, after, columns="x", missing_codes={"x": [-9, 99]}, k=3)
    assert found.utility.columns[0].mean == (2.0, 2.0)
    assert found.risk.anonymity.k == 2
    assert found.risk.anonymity.below == 6


def test_a_code_that_is_also_the_value_of_a_group_is_a_value_there():
    values = [-10.0, -8.0, 4.0, 6.0, -9.0, -9.0]
    table, codes = pl.DataFrame({"x": values}), {"x": [-9]}
    release = shoal.mask(table, 2, columns="x", method="mdav", missing="group", missing_codes=codes)
    assert any("is also the value of a group" in note for note in release.notes)
    found = shoal.assess(table, release.data, columns="x", missing_codes=codes)
    assert found.utility.loss == pytest.approx(release.loss)
    assert found.utility.columns[0].values == 4
    assert found.notes == ("there is no unchanged column by which the order of the records could be checked",)


def test_codes_name_masked_columns():
    table = people()
    release = shoal.mask(table, 5, columns="age", keep="id")
    with pytest.raises(InputError, match="'missing_codes' names column 'income', which is not masked"):
        shoal.assess(table, release.data, columns="age", missing_codes={"income": -9})


def test_words_that_stand_for_missing_among_numbers(tmp_path):
    table = people().with_columns(income=pl.col("income").cast(pl.String).replace("-9", "?"))
    table.write_csv(tmp_path / "in.csv")
    asked = ["-c", "age", "-c", "income", "--missing-code", "income=?", "-k", 5]
    done = command("mask", "in.csv", *asked, "--missing", "group", "--keep", "id", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = command("assess", "in.csv", "out.csv", *asked, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    loss = float(done.stdout.partition("information loss")[2].split()[0])
    assert f"information loss                 {loss:.4f} %" in told.stdout
    assert "must be numeric" in command("assess", "in.csv", "out.csv", "-c", "income", "-c", "age", cwd=tmp_path).stderr


# --- strata that were joined, cells that were made missing -----------------------------------------------------------


def test_joined_strata_are_counted_as_released():
    table = people()
    release = shoal.mask(table, 8, columns="age", by="town", small="merge", keep="id", rest="keep")
    assert any(" or " in town for town in release.data["town"].unique())
    found = shoal.assess(table, release.data, columns="age", by="town", k=8)
    assert found.utility.loss == pytest.approx(release.loss)
    assert found.risk.anonymity.below == 0
    assert "column town names joined strata in" in found.notes[0]
    assert found.verified == f"every value of age within town is shared by at least {found.risk.anonymity.k} records"
    # Before masking, records were unique in their own strata.
    found = shoal.assess(table, release.data.drop("id", "income"), columns="age", by="town")
    assert found.risk.uniqueness.before == table.select("age", "town").is_unique().sum() / len(table)
    with pytest.raises(InputError, match=r"Column 'town' differs.*if its strata were joined, list it in 'by'"):
        shoal.assess(table, release.data, columns="age")


def test_strata_joined_under_an_ancestor():
    table = people()
    south, north = ["South", "all"], ["North", "all"]
    tree = shoal.Hierarchy({"Bath": south, "Bristol": south, "York": north, "Hull": north})
    asked = {"columns": "age", "by": "town", "kinds": {"town": tree}}
    release = shoal.mask(table, 6, small="merge", keep="id", **asked)
    assert "all" in release.data["town"].to_list()
    assert shoal.assess(table, release.data, **asked).utility.loss == pytest.approx(release.loss)
    for town in ("North", "elsewhere"):
        other = release.data.with_columns(town=pl.col("town").replace("all", town))
        with pytest.raises(InputError, match="Column 'town' differs"):
            shoal.assess(table, other, **asked)


@pytest.mark.parametrize(
    ("old", "new", "joined"),
    [
        ([["a", "b", "c"]], [["a or b", "a or b", "c"]], True),
        ([["a", "b", None]], [["a", "b or missing", "b or missing"]], True),
        ([["a or b", "c", "d"]], [["c or a or b", "c or a or b", "d"]], True),
        ([["a", "a", "b"]], [["a", "a or b", "a or b"]], False),  # a stratum is joined as a whole
        ([["a", "b", "c"]], [["a or c", "b", "a or b"]], False),
        ([["a", "b", "c"]], [["a or b", "a or b", "a or b"]], False),
        ([["x", "x", "y"], ["1", "2", "1"]], [["x", "x", "y"], ["1 or 2", "1 or 2", "1"]], True),
        ([[1, 2, 3]], [["1 or 2", "1 or 2", "3"]], True),
    ],
)
def test_joined_strata_by_hand(old, new, joined):
    frames = (pl.DataFrame({str(i): column for i, column in enumerate(columns)}) for columns in (old, new))
    assert are_joined(*frames, [shoal.Nominal()] * len(old)) == joined


def test_cells_that_were_made_missing_count_as_lost():
    table = pl.DataFrame({"a": [1.0, 2, 9, 10, 4, None, None], "b": [1.0, 2, 8, 9, None, None, 7], "id": range(7)})
    release = shoal.mask(table, 2, columns=["a", "b"], missing="group", small="merge", keep="id", max_left_out=1)
    assert release.blanked
    found = shoal.assess(table, release.data, columns=["a", "b"])
    assert found.utility.loss == pytest.approx(release.loss)
    assert {c.name: c.loss for c in found.utility.columns} == pytest.approx(dict(release.column_loss))
    assert "cells that are missing only in the masked table count in the loss" in found.notes[0]
    assert found.risk.uniqueness.before == 1.0


@pytest.mark.parametrize("lost", ["income", "job"])
def test_a_column_that_is_lost_altogether(lost):
    rows = [{"age": 20 + i * 7 % 50, "income": i * 37 % 101, "job": "cook" if i % 3 else "smith"} for i in range(40)]
    table = pl.DataFrame(rows).with_columns(pl.when(pl.col("income") % 8 == 0).then(None).otherwise(lost).alias(lost))
    asked = {"columns": ["age", lost], "kinds": {"job": shoal.Nominal()} if lost == "job" else None}
    release = shoal.mask(table, 25, missing="group", small="merge", max_left_out=1, **asked)
    assert release.column_loss[lost] == 100
    found = shoal.assess(table, release.data, **asked)
    assert found.utility.loss == pytest.approx(release.loss)
    assert {c.name: c.loss for c in found.utility.columns} == pytest.approx(dict(release.column_loss))
    assert lost in str(found)


# --- shuffled records ------------------------------------------------------------------------------------------------


def test_shuffled_records_are_refused_or_paired_or_measured_without_pairs():
    table = people().select(NAMES)
    release = shoal.mask(table, 5, columns=NAMES, shuffle=3)
    with pytest.raises(InputError, match=r"not nearer to their originals than in random order.*shuffled=True"):
        shoal.assess(table, release.data, columns=NAMES)
    found = shoal.assess(table, release.data, columns=NAMES, kept=release.kept, k=5)
    assert found.utility.loss == pytest.approx(release.loss)
    alone = shoal.assess(table, release.data, columns=NAMES, shuffled=True, k=5)
    assert not alone.paired
    assert (alone.risk.linkage, alone.risk.intervals) == (None, None)
    assert "another order" in alone.notes[0]
    assert alone.risk.anonymity == found.risk.anonymity
    assert alone.risk.uniqueness == found.risk.uniqueness
    for one, two in zip(alone.utility.columns, found.utility.columns, strict=True):
        assert np.isnan([one.loss, one.rank_correlation]).all()
        assert one.mean == pytest.approx(two.mean)
        assert one.sd == pytest.approx(two.sd)
        assert one.wasserstein == pytest.approx(two.wasserstein)
        assert one.quantiles[3] == pytest.approx(two.quantiles[3])
    assert alone.utility.correlation[1] == pytest.approx(found.utility.correlation[1])
    # A caller who declares the order as correct gets the measures.
    assert shoal.assess(table, release.data, columns=NAMES, shuffled=False).utility.loss > 90


def test_shuffled_records_with_codes_categories_strata_and_a_secret():
    table = people(300).with_columns(job=pl.Series(np.random.default_rng(2).choice(["cook", "smith"], 300)))
    asked = {"columns": [*NAMES, "job"], "by": "town", "missing_codes": {"income": [-9]}}
    release = shoal.mask(table, 4, missing="group", small="suppress", shuffle=1, keep="id", **asked)
    whole = table[np.sort(release.kept).tolist()]
    found = shoal.assess(whole, release.data, confidential="id", shuffled=True, model="age ~ income", **asked)
    paired = shoal.assess(table, release.data, confidential="id", kept=release.kept, model="age ~ income", **asked)
    assert found.risk.attributes == paired.risk.attributes
    assert found.risk.uniqueness == paired.risk.uniqueness
    job = found.utility.categories[0]
    assert job.variation == pytest.approx(paired.utility.categories[0].variation)
    assert np.isnan(job.changed)
    for one, two in zip(found.utility.model, paired.utility.model, strict=True):
        assert one.value == pytest.approx(two.value)


@pytest.mark.parametrize("column", ["id", "town"])
def test_an_unmasked_column_reveals_the_order(column):
    table = people().select(*NAMES, column)
    release = shoal.mask(table, 5, columns=NAMES, shuffle=3, keep=column)
    with pytest.raises(InputError, match=f"Column '{column}' differs in record.*shuffled=True"):
        shoal.assess(table, release.data, columns=NAMES)


def test_units_under_new_numbers_are_paired_by_labels():
    table = people().with_columns(unit=pl.col("id") // 3).drop("id")
    release = shoal.mask(table, 4, columns=NAMES, unit="unit", keep="unit", shuffle=5)
    assert release.data["unit"].to_list() != table["unit"][release.kept.tolist()].to_list()
    found = shoal.assess(table, release.data, columns=NAMES, kept=release.kept)
    assert found.utility.loss == pytest.approx(release.loss)
    assert "column unit was recoded consistently in the masked table" in found.notes[0]
    with pytest.raises(InputError, match="differs in record"):
        shoal.assess(table, release.data, columns=NAMES)


def test_a_constant_column_does_not_reveal_the_order():
    table = people().select(NAMES).with_columns(year=pl.lit(2024))
    release = shoal.mask(table, 5, columns=NAMES, shuffle=3)
    with pytest.raises(InputError, match="than in random order"):
        shoal.assess(table, release.data, columns=NAMES)


@settings(max_examples=25, deadline=None)
@given(st.integers(50, 150), st.integers(2, 12), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_masked_records_in_order_are_never_mistaken_for_shuffled(n, k, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(n, d)).round(int(rng.integers(0, 3)))
    released = shoal.mask(X, k, aggregate=str(rng.choice(["mean", "median", "medoid"])))
    if not np.array_equal(released.data, X):
        assert shoal.assess(X, released.data, columns=list(range(d))).utility.loss == pytest.approx(released.loss)


def test_other_missing_cells_are_refused_in_any_order():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    with pytest.raises(InputError, match="other cells are missing"):
        shoal.assess(X, np.array([[1.0, 3.0], [2.0, 3.0]]), columns=[0, 1], shuffled=True)


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=1, max_size=8), st.randoms())
def test_patterns_are_matched(missing, random):
    X = np.where(missing, np.nan, 1.0)
    order = list(range(len(X)))
    random.shuffle(order)
    one, two = match_patterns(X, X[order])
    assert sorted(one) == sorted(two) == sorted(order)
    np.testing.assert_array_equal(X[one], X[order][two])


def test_row_numbers_of_another_table_are_refused():
    table = firms(60)
    release = shoal.mask(table, 3, columns="sales")
    with pytest.raises(InputError, match="'kept' must contain row numbers of 'original', which has 60 records; got 60"):
        shoal.assess(table, release.data, kept=np.arange(60) + 1)


# --- what is said --------------------------------------------------------------------------------------------------


def test_the_recount_names_its_columns_and_what_is_unique():
    table = people()
    release = shoal.mask(table, 5, columns=NAMES, keep="id")
    found = shoal.assess(table, release.data, columns=NAMES, by=[], k=5)
    assert found.uniques == release.uniques == 120
    assert "every combination of age, income is shared by at least 5 records" in str(found)
    assert "120 of 120 records by what an outsider can know" in str(found)
    assert "120 of 120 records by what" in found._repr_html_()


def test_pages_name_measures_that_were_not_computed(tmp_path):
    table = people()
    release = shoal.mask(table, 5, columns=NAMES, shuffle=3, keep="id")
    release.data.write_csv(tmp_path / "out.csv")
    table.write_csv(tmp_path / "in.csv")
    asked = ["assess", "in.csv", "out.csv", "-c", "age", "-c", "income", "-k", 5]
    refused = command(*asked, cwd=tmp_path)
    assert refused.returncode == 1
    assert "or use --shuffled to take only measures that need no order" in refused.stderr
    done = command(*asked, "--shuffled", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "information loss" not in done.stdout.partition("note:")[0]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "of the information" not in page
    assert "nan" not in page.lower().replace("finan", "")
    assert "could link was not measured" in page
    assert "120 of 120 records can be singled out" in page


def test_a_report_is_right_for_shuffled_joined_and_coded_releases(tmp_path):
    table = people(300).with_columns(age=pl.when(pl.col("id") % 100 == 7).then(None).otherwise("age"))
    asked = {"columns": NAMES, "by": "town", "missing_codes": {"income": [-9]}}
    release = shoal.mask(table, 12, missing="group", small="merge", shuffle=1, identifiers="id", **asked)
    assert release.blanked
    page = release.report(tmp_path / "r.html", original=table).read_text(encoding="utf-8")
    found = shoal.assess(table, release.data, kept=release.kept, **asked)
    assert found.utility.loss == pytest.approx(release.loss)
    assert f"{100 * found.risk.uniqueness.before:.1f}\u00a0% of the records were unique" in page
    assert f"{100 * found.risk.linkage.share:.1f}\u00a0%" in page
    known = table.filter(pl.col("income") != -9)["income"]
    assert found.utility.columns[1].mean.before == pytest.approx(known.mean(), rel=0.1)
