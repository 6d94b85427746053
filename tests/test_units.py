"""k persons, not k records: groups hold the records of at least k different units, recounted in what is released."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import command, reference_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.registry import METHODS
from shoal.core.errors import InputError, VerificationError
from shoal.promises.distinct_units import count_units, least_units, record_counters, units_in_cells
from shoal.promises.group_merge import merge_groups

METHODS_OF_RECORDS = [method.name for method in METHODS.values() if method.whole_records]
PERSON = {"unit": "person", "keep": "person"}  # the release shows whose records they are
OPTIONS = {"search": {"steps": 200}, "decomposition": {"subset_limit": 5.0}}


def fewest(table, keys, unit):
    return table.group_by(keys).agg(pl.col(unit).n_unique().alias("units"))["units"].min()


def panel(persons=40, rows=4, seed=0):
    """Several records a person, near each other: groups of records would hold few persons."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(persons), rows)
    return pl.DataFrame(
        {
            "person": person,
            "income": rng.lognormal(3, 1, persons)[person] * rng.uniform(0.99, 1.01, len(person)),
            "age": rng.integers(20, 80, persons)[person] + np.tile(np.arange(rows), persons),
            "region": np.where(person % 2, "north", "south"),
        }
    )


# --- counting ------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=40), st.integers(1, 4))
def test_units_are_counted_as_sets_are(pairs, k):
    labels = np.unique([group for group, _ in pairs], return_inverse=True)[1]
    units = np.array([unit for _, unit in pairs], dtype=np.uint64)
    sets = [set(units[labels == group].tolist()) for group in range(labels.max() + 1)]
    assert count_units(labels, units).tolist() == [len(found) for found in sets]
    assert [found.tolist() for found in least_units(labels, units, k)] == [sorted(found)[:k] for found in sets]
    assert record_counters(units).max() == max(np.unique(units, return_counts=True)[1])


def test_units_of_parts_are_counted_once():
    parts = [[np.array([1, 2], dtype=np.uint64)], [np.array([2, 3], dtype=np.uint64), np.array([9], dtype=np.uint64)]]
    roots = [np.array([1]), np.array([1, 0])]
    assert [len(found) for found in units_in_cells(parts, roots, 2, k=5)] == [1, 3]
    assert [len(found) for found in units_in_cells(parts, roots, 2, k=2)] == [1, 2]


def merge_slowly(Z, labels, units, k):
    """In rounds: groups that lack units find the group with the nearest centroid; pairs merge from the nearest on."""
    groups = [sorted(np.flatnonzero(labels == label)) for label in dict.fromkeys(labels.tolist())]
    while len(groups) > 1:
        short = [i for i, group in enumerate(groups) if len(set(units[group])) < k]
        if not short:
            break
        centre = [Z[group].mean(axis=0) for group in groups]
        pairs = []
        for i in short:
            others = [(float(np.square(centre[i] - centre[j]).sum()), j) for j in range(len(groups)) if j != i]
            distance, nearest = min(others)
            pairs.append((distance, i, nearest))
        taken = set()
        for _, i, j in sorted(pairs):
            if not taken & {i, j}:
                taken |= {i, j}
                groups[j], groups[i] = sorted(groups[i] + groups[j]), []
        groups = sorted(group for group in groups if group)
    return groups


@pytest.mark.parametrize("seed", range(30))
def test_merging_is_what_its_rounds_say(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(6, 60)), int(rng.integers(2, 5))
    Z, units = rng.normal(size=(n, 2)), rng.integers(0, k + 3, n).astype(np.uint64)
    labels = rng.integers(0, max(1, n // 3), n)
    found = merge_groups(
        Z, labels, [(np.arange(n), np.array([0, 1]))], lambda rows, now: count_units(now, units[rows]) >= k
    )
    groups = [np.flatnonzero(found == label).tolist() for label in range(found.max() + 1)]
    assert sorted(groups) == merge_slowly(Z, labels, units, k)


# --- masking -------------------------------------------------------------------------------------------------------


def test_groups_of_records_hold_too_few_persons_and_groups_of_units_do_not():
    table = panel()
    assert fewest(shoal.mask(table, 4, columns=["income", "age"], keep="person").data, ["income", "age"], "person") < 4
    release = shoal.mask(table, 4, columns=["income", "age"], **PERSON)
    assert fewest(release.data, ["income", "age"], "person") >= 4
    assert release.data["person"].to_list() == table["person"].to_list()
    assert release.verified == "every combination of income, age is shared by at least 4 different units (person)"
    assert any("links the records of each person" in note for note in release.notes)


@pytest.mark.parametrize("method", METHODS_OF_RECORDS)
def test_every_method_keeps_units(method):
    keys = ["income"] if METHODS[method].univariate else ["income", "age"]
    table = panel(20)
    release = shoal.mask(table, 3, columns=keys, method=method, **PERSON, by="region", **OPTIONS.get(method, {}))
    assert fewest(release.data, [*keys, "region"], "person") >= 3
    assert release.status != "optimal"


@pytest.mark.parametrize(("persons", "status"), [("abcdef", "optimal"), ("aaadef", "bounded")])
def test_the_optimum_is_one_if_it_holds_enough_units(persons, status):
    table = pl.DataFrame({"person": list(persons), "x": [1.0, 2.0, 3.0, 10.0, 11.0, 12.0], "y": [0.0, 1, 0, 1, 0, 1]})
    asked = {"columns": ["x", "y"], "method": "search", "bound": True, "steps": 50}
    free = shoal.mask(table, 3, **asked)
    release = shoal.mask(table, 3, **PERSON, **asked)
    assert free.status == "optimal"
    assert (release.status, release.bound) == (status, pytest.approx(free.bound))
    assert release.loss >= release.bound - 1e-9


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_table_keeps_units_or_is_refused(data):
    n, k = data.draw(st.integers(4, 40)), data.draw(st.integers(2, 4))
    value = st.one_of(st.none(), st.integers(-3, 3).map(float))
    table = pl.DataFrame(
        {
            "unit": data.draw(st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), min_size=n, max_size=n)),
            "x": data.draw(st.lists(value, min_size=n, max_size=n)),
            "y": data.draw(st.lists(st.sampled_from(["u", "v", "w"]), min_size=n, max_size=n)),
        },
        schema_overrides={"x": pl.Float64},
    )
    small = data.draw(st.sampled_from(["error", "suppress"]))
    asked = {"columns": ["x", "y"], "unit": "unit", "keep": "unit", "missing": "group", "small": small}
    asked["max_left_out"] = 1
    units = table.group_by(pl.col("x").is_null()).agg(pl.col("unit").n_unique().alias("units"))["units"]
    if (units.min() if small == "error" else units.max()) < k:
        with pytest.raises(InputError):
            shoal.mask(table, k, **asked)
        return
    release = shoal.mask(table, k, **asked)
    assert fewest(release.data, ["x", "y"], "unit") >= k
    assert release.data["unit"].to_list() == table["unit"].gather(release.kept).to_list()


def test_a_stratum_with_too_few_units_is_named_or_left_out():
    table = panel(12).with_columns(region=pl.when(pl.col("person") < 2).then(pl.lit("isle")).otherwise("region"))
    with pytest.raises(InputError, match=r"region='isle' has 2 different units \(person\)\."):
        shoal.mask(table, 3, columns=["income"], by="region", small="error", **PERSON)
    release = shoal.mask(table, 3, columns=["income"], by="region", small="suppress", max_left_out=1, **PERSON)
    assert len(release.data) == len(table) - 8
    with pytest.raises(InputError, match=r"the table has 12 different units \(person\)\."):
        shoal.mask(table, 13, columns=["income"], **PERSON)


def test_a_record_without_a_unit_is_named():
    table = panel(6).with_columns(person=pl.when(pl.col("person") == 4).then(None).otherwise("person"))
    with pytest.raises(InputError, match="Unit column 'person' is empty in record 17; every record needs a unit"):
        shoal.mask(table, 2, columns=["income"], **PERSON)


@pytest.mark.parametrize("spelled", [["7", "07", "7.0", "8"], [7.0, 7.0, 7.0, 8.0]])
def test_one_unit_may_be_spelled_in_several_ways(tmp_path, spelled):
    pl.DataFrame({"id": spelled * 3, "x": np.arange(12.0)}).write_csv(tmp_path / "in.csv")
    with pytest.raises(InputError, match=r"the table has 2 different units \(id\)"):
        shoal.mask(tmp_path / "in.csv", 3, columns=["x"], unit="id")


def test_the_recount_does_not_believe_the_grouping(monkeypatch):
    monkeypatch.setattr("shoal.masking.group.keep_promise", lambda *given, **_: given[1])
    with pytest.raises(VerificationError, match="fewer than k=4 units"):
        shoal.mask(panel(), 4, columns=["income", "age"], **PERSON)
    with pytest.raises(VerificationError, match="fewer than k=4 units"):
        shoal.mask(panel(), 4, columns=["income", "age"], unit="person", identifiers="person", shuffle=3)


def test_units_that_are_dropped_are_counted_all_the_same():
    table = panel()
    release = shoal.mask(table, 4, columns=["income", "age"], unit="person", identifiers="person")
    assert "person" not in release.data.columns
    assert fewest(release.data.with_columns(table["person"]), ["income", "age"], "person") >= 4


@pytest.mark.parametrize("dropped", [None, "person"])
def test_units_that_are_left_out_need_the_table_in_memory(tmp_path, dropped):
    panel().write_parquet(tmp_path / "in.parquet")
    with pytest.raises(InputError, match="Parameter 'unit' names column 'person', which is left out"):
        shoal.mask(
            tmp_path / "in.parquet", 3, columns=["income"], unit="person", identifiers=dropped, engine="local",
            output=tmp_path / "out.parquet",
        )  # fmt: skip


def test_a_block_that_could_not_hold_k_units_is_refused():
    with pytest.raises(
        InputError,
        match="Parameter 'block' must be at least 18 records, got 16: every block must hold k=3 units, and one unit",
    ):
        shoal.mask(panel(), 3, columns=["income", "age"], **PERSON, block=16)


def test_blocks_hold_k_units_however_they_are_cut():
    table = panel(500, 6)
    release = shoal.mask(table, 5, columns=["income", "age"], **PERSON, block=60, by="region")
    assert release.facts["blocks"] > 20
    assert fewest(release.data, ["income", "age", "region"], "person") >= 5


# --- what else is released ------------------------------------------------------------------------------------------


def test_shuffled_units_have_new_numbers():
    table = panel().with_columns(person=pl.format("P-{}", pl.col("person") + 500))
    release = shoal.mask(table, 4, columns=["income", "age"], **PERSON, shuffle=1)
    numbers = release.data["person"]
    assert sorted(numbers.unique().to_list()) == list(range(1, 41))
    before = table["person"].gather(release.kept)
    assert pl.DataFrame({"before": before, "after": numbers}).n_unique() == 40
    assert fewest(release.data, ["income", "age"], "person") >= 4
    assert any("is in the release (renumbered)" in note for note in release.notes)


@pytest.mark.parametrize("frame", [pd.DataFrame, np.asarray], ids=["pandas", "array"])
def test_shuffled_units_of_other_tables(frame):
    table = frame(panel().select("person", "income", "age").to_pandas() + 7)
    names = list(range(3)) if frame is np.asarray else ["person", "income", "age"]
    release = shoal.mask(table, 4, columns=names[1:], unit=names[0], keep=names[:1], shuffle=1)
    person = np.asarray(release.data)[:, 0]
    assert sorted(set(person)) == list(range(1, 41))


def test_units_under_their_own_numbers_are_released_only_on_purpose():
    asked = {"columns": ["income"], "unit": "person"}
    for others in ({}, {"identifiers": ["person"]}, {"shuffle": 1}, {"rest": "keep", "identifiers": ["person"]}):
        release = shoal.mask(panel(), 3, **asked, **others)
        assert "person" not in release.data.columns
        assert "person" in release.dropped
    with pytest.raises(
        InputError, match=r"Column 'person' looks like an identifier: it is the unit column with its original values"
    ):
        shoal.mask(panel(), 3, rest="keep", **asked)
    for others in ({"keep": ["person"]}, {"rest": "keep", "shuffle": 1}):
        assert "person" in shoal.mask(panel(), 3, **asked, **others).data.columns


def test_the_command_line_and_the_manifest_know_units(tmp_path):
    panel().write_csv(tmp_path / "in.csv")
    out, manifest = tmp_path / "out.csv", tmp_path / "m.json"
    command(
        "mask", tmp_path / "in.csv", "-k", "4", "-c", "income", "--unit", "person", "--keep", "person", "-o", out,
        "--manifest", manifest,
    )  # fmt: skip
    written = pl.read_csv(out)
    assert fewest(written, ["income"], "person") >= 4
    assert json.loads(manifest.read_text())["parameters"]["unit"] == "person"
    again = tmp_path / "again.csv"
    command("mask", tmp_path / "in.csv", "--from-manifest", manifest, "-o", again)
    assert again.read_bytes() == out.read_bytes()


def test_the_refusal_speaks_the_language_of_the_command_line(tmp_path):
    panel().write_csv(tmp_path / "in.csv")
    asked = ("-k", 4, "-c", "income", "--unit", "person", "--rest", "keep", "-o", "out.csv")
    done = command("mask", "in.csv", *asked, cwd=tmp_path)
    assert done.returncode != 0
    assert "Use --drop person to leave it out, or --keep person to release it on purpose." in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_households_of_the_testdata():
    """The wrongly safe case: groups of k records that hold fewer households."""
    table = pl.read_csv(reference_path("testdata"), null_values="NA", infer_schema_length=None)
    keys = ["urbrur", "roof", "walls", "water", "electcon", "age", "sex"]
    kinds = {name: shoal.Nominal() for name in keys if name != "age"}
    plain = shoal.mask(table, 5, columns=keys, kinds=kinds, keep="ori_hid")
    assert fewest(plain.data, keys, "ori_hid") < 5
    release = shoal.mask(table, 5, columns=keys, kinds=kinds, unit="ori_hid", keep="ori_hid")
    assert fewest(release.data, keys, "ori_hid") >= 5


def test_a_bar_of_the_report_stands_for_k_units(tmp_path):
    table = panel(60)
    release = shoal.mask(table, 3, columns=["income", "age"], **PERSON)
    page = release.report(tmp_path / "r.html", original=table).read_text()
    assert release.unit_records == 4
    assert "every bar represents at least 12 records" in page
    assert "is shared by at least 3 different units (person)" in page
