"""small="merge": strata below k are joined to the nearest, rare patterns of missing cells to others."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError
from shoal.core.measures import standardise
from shoal.engines.records import Schema
from shoal.masking.cells import STAY, Donation
from shoal.masking.request import MaskRequest
from shoal.masking.roles import choose_masked
from shoal.masking.small_strata import Held, join_patterns, join_small, join_strata
from shoal.masking.steps import read_part
from shoal.tables.files import open_data

EXACT = {"integers": "float", "decimals": "all"}  # means as they are
NONE, A, B, BOTH = (False, False), (True, False), (False, True), (True, True)


def holders(sizes):
    """Return a different unit for every record."""
    return [frozenset((place, i) for i in range(size)) for place, size in enumerate(sizes)]


def held_patterns(sizes):
    together = zip(sizes, sizes.values(), holders(sizes.values()), strict=True)
    return {pattern: Held(size, held) for pattern, size, held in together}


def patterns(sizes, k, *, whole=True):
    return join_patterns(held_patterns(sizes), k, whole=whole)


def joined(strata, sizes, means, k):
    sizes = np.array(sizes)
    means = np.array(means, dtype=float).reshape(len(strata), -1)
    counts = np.repeat(sizes[:, None], means.shape[1], axis=1)
    return join_strata(strata, holders(sizes), counts, means * counts, k)


def least(table, names):
    return int(table.group_by(names).len()["len"].min())


# Who is joined


def test_the_nearest_centroid_is_joined():
    assert joined([("a",), ("b",), ("c",)], [5, 2, 5], [0, 8, 10], 3) == [0, 1, 1]
    assert joined([("a",), ("b",), ("c",)], [5, 2, 5], [0, 2, 10], 3) == [0, 0, 2]
    assert joined([("a",), ("b",), ("c",)], [5, 2, 5], [0, 5, 10], 3) == [0, 0, 2]  # a tie goes to the first


def test_the_longest_common_prefix_wins_over_the_distance():
    strata = [("north", "a"), ("south", "a"), ("north", "b")]
    assert joined(strata, [2, 9, 9], [0, 0, 50], 3) == [0, 1, 0]


def test_the_smallest_is_joined_first_and_until_all_have_k():
    # one (1) goes to few (3), which makes 4; both go on to mid.
    assert joined([("mid",), ("few",), ("one",)], [9, 3, 1], [0, 5, 6], 5) == [0, 0, 0]
    assert joined([("mid",), ("few",), ("one",)], [9, 3, 1], [0, 5, 6], 4) == [0, 1, 1]


def test_unknown_coordinates_are_left_out():
    counts = np.array([[5, 5], [2, 0], [5, 5]])
    sums = np.array([[0.0, 0.0], [16.0, 0.0], [50.0, -500.0]])
    assert join_strata([("a",), ("b",), ("c",)], holders([5, 2, 5]), counts, sums, 3) == [0, 1, 1]


def test_rare_patterns_take_the_union_that_costs_least():
    assert patterns({NONE: 9, A: 1, B: 3, BOTH: 4}, 3).becomes == {NONE: NONE, A: BOTH, B: B, BOTH: BOTH}
    assert patterns({NONE: 9, A: 2, B: 2}, 3).becomes == {NONE: NONE, A: BOTH, B: BOTH}  # 4 cells, not 18
    assert patterns({NONE: 3, A: 1}, 3).becomes == {NONE: A, A: A}
    assert patterns({NONE: 3, A: 3}, 3).becomes == {NONE: NONE, A: A}
    # A and B make BOTH, which is there already.
    assert set(patterns({A: 1, B: 1, BOTH: 2}, 4).becomes.values()) == {BOTH}


def test_rare_patterns_take_as_many_records_as_they_need():
    assert patterns({NONE: 9, A: 2}, 3, whole=False) == ({NONE: NONE, A: A}, {NONE: [Donation(1, A)]})
    # Nobody donates where fewer than k would stay, or where it costs nothing to join all.
    assert patterns({NONE: 3, A: 1}, 3, whole=False) == ({NONE: A, A: A}, {})
    assert patterns({A: 1, BOTH: 9}, 3, whole=False) == ({A: BOTH, BOTH: BOTH}, {})


def test_the_cheapest_first_step_may_have_the_highest_total_cost():
    # BOTH would take 2 records of A for 2 cells, then all of B for 3; joining B alone costs 3.
    sizes = {B: 3, A: 10, BOTH: 2}
    assert patterns(sizes, 4, whole=False).blanked(held_patterns(sizes)) == 3


def after_joining(sizes, joined):
    """Return the patterns of all records, one by one, before and after: the first ones of a pattern are donated."""
    moved = []
    for pattern, size in sizes.items():
        after = [made.missing for made in joined.donations.get(pattern, []) for _ in range(made.records)]
        assert len(after) <= size
        moved += [(pattern, now) for now in after + [joined.becomes[pattern]] * (size - len(after))]
    return moved


@settings(max_examples=400, deadline=None)
@given(data=st.data(), columns=st.integers(1, 3), k=st.integers(2, 6))
def test_all_patterns_have_k_records_and_donations_blank_no_more_than_whole_joins(data, columns, k):
    all_patterns = list(product((False, True), repeat=columns))
    chosen = data.draw(st.lists(st.sampled_from(all_patterns), unique=True, min_size=1))
    sizes = {pattern: data.draw(st.integers(1, 12)) for pattern in chosen}
    if sum(sizes.values()) < k:
        sizes[chosen[0]] += k
    blanked = []
    for whole in (True, False):
        joined = patterns(sizes, k, whole=whole)
        moved = after_joining(sizes, joined)
        assert min(Counter(after for _, after in moved).values()) >= k
        assert all(now or not before for pair in moved for before, now in zip(*pair, strict=True))
        if min(sizes.values()) >= k:
            assert all(before == after for before, after in moved)
        blanked.append(sum(sum(after) - sum(before) for before, after in moved))
        assert joined.blanked(held_patterns(sizes)) == blanked[-1]
    assert blanked[1] <= blanked[0]


def test_units_of_joined_strata_and_patterns_are_counted_once():
    ones = np.ones((3, 1), dtype=np.int64)
    strata, sums = [("a",), ("b",), ("c",)], np.array([[0.0], [1.0], [9.0]])
    same = [frozenset("pq"), frozenset("pq"), frozenset("rst")]
    assert join_strata(strata, same, ones, sums, 3) == [0, 0, 0]  # a and b hold the same two
    assert join_strata(strata, [frozenset("pqt"), frozenset("qr"), frozenset("s")], ones, sums, 3) == [0, 1, 1]
    held = {NONE: Held(4, frozenset("pqrs")), A: Held(5, frozenset("pq")), B: Held(2, frozenset("pq"))}
    assert set(join_patterns(held, 3, whole=True).becomes.values()) == {BOTH}


# What is released


def towns():
    return pl.DataFrame(
        {
            "land": ["n"] * 8 + ["s"] * 5,
            "town": [1] * 4 + [2] * 2 + [3] * 2 + [4] * 5,
            "x": [10.0, 11, 12, 13, 50, 51, 48, 49, 50, 50, 51, 52, 53],
        }
    )


def test_joined_strata_by_hand():
    release = shoal.mask(towns(), 3, columns=["x"], by=["land", "town"], **EXACT)
    assert release.data["land"].to_list() == towns()["land"].to_list()
    assert release.data["town"].to_list() == ["1"] * 4 + ["2 or 3"] * 4 + ["4"] * 5
    assert release.data["x"].to_list() == [11.5] * 4 + [49.5] * 4 + [51.2] * 5
    assert "2 strata of land, town were joined into 1 of at least k records (small='merge')" in release.notes
    assert release.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 5


def test_all_of_a_land_is_joined_before_another_land():
    release = shoal.mask(towns()[:-3], 3, columns=["x"], by=["town", "land"], small="merge")
    assert release.data.unique(["town", "land"], maintain_order=True).select("town", "land").rows() == [
        ("1", "n"),
        ("2 or 3 or 4", "n or s"),
    ]


def test_nothing_changes_where_all_have_k():
    plain = shoal.mask(towns(), 2, columns=["x"], by=["land", "town"])
    release = shoal.mask(towns(), 2, columns=["x"], by=["land", "town"], small="merge")
    assert release.data.equals(plain.data)
    assert release.data["town"].dtype == pl.Int64


def test_a_hierarchy_gives_the_common_ancestor():
    tree = shoal.Hierarchy({1: ["far", "all"], 2: ["near", "all"], 3: ["near", "all"], 4: ["far", "all"]})
    release = shoal.mask(towns(), 3, columns=["x"], by=["land", "town"], small="merge", kinds={"town": tree})
    assert release.data["town"].to_list() == ["1"] * 4 + ["near"] * 4 + ["4"] * 5
    few = shoal.Hierarchy({1: ["all"], 2: ["all"]})
    with pytest.raises(InputError, match="Column 'town' holds 3, which its kind hierarchy does not list"):
        shoal.mask(towns(), 3, columns=["x"], by=["land", "town"], small="merge", kinds={"town": few})
    with pytest.raises(InputError, match="A stratum may have a hierarchy if small strata are joined"):
        shoal.mask(towns(), 2, columns=["x"], by=["land", "town"], small="error", kinds={"town": tree})


@pytest.mark.parametrize("native", [lambda f: f.to_pandas(), lambda f: f.to_arrow()], ids=["pandas", "pyarrow"])
def test_frames_of_other_libraries(native):
    release = shoal.mask(native(towns()), 3, columns=["x"], by=["land", "town"], small="merge")
    expected = shoal.mask(towns(), 3, columns=["x"], by=["land", "town"], small="merge")
    assert pl.DataFrame(release.data).rows() == expected.data.rows()


def test_categories_are_compared_in_their_coordinates():
    table = pl.DataFrame({"by": list("aaabbccc"), "job": ["cook"] * 3 + ["smith"] * 2 + ["smith"] * 3})
    assert shoal.mask(table, 3, columns=["job"], by="by", small="merge").data["by"].to_list()[3:] == ["b or c"] * 5


def test_missing_strata_and_spellings_of_csv_files(tmp_path):
    (tmp_path / "in.csv").write_text("by,x,id\n1,1,007\n1.0,2,008\n1,3,1.50\nNA,9,x\n,9,y\n2,8,z\n")
    asked = {"columns": ["x"], "by": "by", "keep": "id", "small": "merge", **EXACT}
    shoal.mask(tmp_path / "in.csv", 3, output=tmp_path / "out.csv", **asked)
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "by,x,id", "1,2.0,007", "1,2.0,008", "1,2.0,1.50", *(f"missing or 2,8.66666666666667,{i}" for i in "xyz"),
    ]  # fmt: skip


def test_an_array_has_no_place_for_text():
    with pytest.raises(InputError, match="an array of numbers cannot store"):
        shoal.mask(towns().select("town", "x").to_numpy(), 3, columns=[1], by=[0], small="merge")


def test_units_of_joined_strata_are_counted():
    table = pl.DataFrame(
        {
            "town": ["a"] * 4 + ["b"] * 4 + ["c"] * 4,
            "person": [1, 1, 2, 2, 1, 2, 1, 2, 3, 4, 5, 6],
            "x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 50.0, 51.0, 52.0, 53.0],
        }
    )
    asked = {"columns": ["x"], "by": "town", "unit": "person", "keep": ["person"]}
    with pytest.raises(InputError, match=r"town='a' has 2 different units \(person\).*small='merge'"):
        shoal.mask(table, 3, small="error", **asked)
    release = shoal.mask(table, 3, small="merge", **asked)
    assert release.data["town"].to_list() == ["a or b or c"] * 12  # a and b are the same two persons
    counted = release.data.group_by("town", "x").agg(pl.col("person").n_unique())
    assert counted["person"].min() >= 3
    assert any("joined into 1 of at least k different units (person)" in note for note in release.notes)
    with pytest.raises(InputError, match="'k' must not exceed the number of different units"):
        shoal.mask(table, 7, small="merge", **asked)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), k=st.integers(2, 4))
def test_every_stratum_and_combination_has_k_units(data, k):
    table = data.draw(tables())
    table = table.with_columns(
        who=pl.Series(data.draw(st.lists(st.integers(0, 9), min_size=len(table), max_size=len(table))))
    )
    asked = {"columns": ["x", "y"], "by": ["land", "town"], "missing": "group", "unit": "who", "keep": ["who", "left"]}
    if table["who"].n_unique() < k:
        with pytest.raises(InputError, match="'k' must not exceed"):
            shoal.mask(table, k, small="merge", max_left_out=1, **asked)
        return
    found = shoal.mask(table, k, small="merge", max_left_out=1, **asked).data
    for names in (["land", "town"], ["land", "town", "x", "y"]):
        assert found.group_by(names).agg(pl.col("who").n_unique())["who"].min() >= k
    assert found["left"].equals(table["left"])


@pytest.mark.parametrize("suffix", ["sav", "dta"])
def test_statistical_packages(tmp_path, suffix):
    library = pytest.importorskip("pyreadstat")
    labels = {"variable_value_labels": {"town": {1: "Bath", 2: "York"}}}
    getattr(library, f"write_{suffix}")(towns(), tmp_path / f"in.{suffix}", **labels)
    out = tmp_path / f"out.{suffix}"
    shoal.mask(tmp_path / f"in.{suffix}", 3, columns=["x"], by=["land", "town"], small="merge", output=out)
    after, known = getattr(library, f"read_{suffix}")(out, output_format="polars")
    assert least(after, ["land", "town", "x"]) >= 3
    assert [word.replace(".0", "") for word in after["town"]] == ["1"] * 4 + ["2 or 3"] * 4 + ["4"] * 5
    assert known.variable_value_labels == {}


# Patterns


def test_rare_patterns_by_hand():
    table = pl.DataFrame({"a": [1.0, 2, 3, None, 9, 20], "b": [1.0, 2, 3, 4, None, None]})
    release = shoal.mask(table, 3, columns=["a", "b"], missing="group", small="merge", max_left_out=1)
    # One record misses a, two miss b: together they miss both, three cells more.
    assert release.data["a"].to_list() == [2.0] * 3 + [None] * 3
    assert release.data["b"].to_list() == [2.0] * 3 + [None] * 3
    joined = (
        "3 cells were made missing, so that at least k records of a stratum have the same missing columns "
        "(small='merge')"
    )
    assert any(note.startswith(joined) for note in release.notes)
    # Standardised by what is left, mean 2 and variance 2/3: 2 + 2 within the group, and what was lost.
    lost = (7**2 + 18**2 + 2**2) / (2 / 3)
    assert release.loss == pytest.approx(100 * (6 + lost) / (6 + lost))
    assert release.blanked == 3
    assert release.left_out == 0


def test_only_the_first_records_that_a_rare_pattern_needs_lose_a_cell():
    table = pl.DataFrame({"a": [1.0, 2, None, 4, 5, 6, 7, 8], "b": np.arange(8.0)})
    asked = {"columns": ["a", "b"], "missing": "group", "small": "merge"}
    release = shoal.mask(table, 3, max_left_out="14%", **asked)
    assert release.data["a"].is_null().to_list() == [True] * 3 + [False] * 5
    assert not release.data["b"].is_null().any()
    assert release.blanked == 2
    with pytest.raises(InputError, match=r"2 of 15 cells \(13.4%\) would be made missing, but 'max_left_out' is 13%"):
        shoal.mask(table, 3, max_left_out=0.13, **asked)


def test_the_loss_of_cells_that_were_made_missing():
    table = pl.DataFrame({"a": [1.0, 2, 9, 10, 4, None, None], "b": [1.0, 2, 8, 9, None, None, 7]})
    asked = {"columns": ["a", "b"], "missing": "group", "small": "merge", "max_left_out": 1}
    release = shoal.mask(table, 2, **asked, **EXACT)
    assert release.data["a"].null_count() == release.data["b"].null_count() == 3
    kept = np.column_stack([[1.0, 2, 9, 10], [1.0, 2, 8, 9]])
    after = np.column_stack([[1.5, 1.5, 9.5, 9.5], [1.5, 1.5, 8.5, 8.5]])
    mean, spread = kept.mean(axis=0), kept.std(axis=0)
    blanked = ((4 - mean[0]) / spread[0]) ** 2 + ((7 - mean[1]) / spread[1]) ** 2
    errors = np.square((kept - after) / spread).sum() + blanked
    assert release.loss == pytest.approx(100 * errors / (np.square(standardise(kept)).sum() + blanked))


def test_a_bound_counts_lost_cells_too():
    table = pl.DataFrame({"a": [1.0, 2, 9, 10, 4, None, None], "b": [1.0, 2, 8, 9, None, None, 7]})
    asked = {"columns": ["a", "b"], "missing": "group", "small": "merge", "method": "search", "steps": 50}
    release = shoal.mask(table, 2, max_left_out=1, **asked)
    assert release.bound is None or release.bound <= release.loss * (1 + 1e-9)


@pytest.mark.parametrize("nan", [True, False])
def test_cells_made_missing_are_spelled_like_the_others(nan):
    hole = float("nan") if nan else None
    table = pl.DataFrame({"a": [1.0, 2, 3, hole, 9], "b": [1.0, 2, 3, 4, hole]}, strict=False)
    asked = {"columns": ["a", "b"], "missing": "group", "small": "merge", "max_left_out": 1}
    release = shoal.mask(table, 2, **asked).data
    assert [str(cell) for cell in release["a"].to_list()[3:]] == ["nan" if nan else "None"] * 2
    coded = table.fill_nan(None).fill_null(-9)
    release = shoal.mask(coded, 2, **asked, missing_codes={"a": -9, "b": -9}).data
    assert release["a"].to_list()[3:] == release["b"].to_list()[3:] == [-9, -9]


def test_dropped_records_count_for_no_stratum():
    table = towns().with_columns(pl.when(pl.col("town") == 2).then(None).otherwise("x").alias("x"))
    asked = {"columns": ["x"], "by": ["land", "town"], "small": "merge"}
    release = shoal.mask(table, 3, missing="drop", max_left_out="20%", **asked)
    assert release.data["town"].to_list() == ["1 or 3"] * 6 + ["4"] * 5
    assert release.left_out == 2
    with pytest.raises(InputError, match=r"Column 'x' has \d+ missing value"):
        shoal.mask(table, 3, missing="error", **asked)


# Command line, manifest, report


def test_the_command_its_manifest_and_its_report(tmp_path):
    table = towns().with_columns(y=pl.Series([None, 2.0, None, *range(10)], strict=False))
    table.write_csv(tmp_path / "in.csv")
    done = command(
        "mask", "in.csv", "-k", 3, "-c", "x", "-c", "y", "--by", "land", "--by", "town", "--missing", "group",
        "--small", "merge", "--max-left-out", "100%", "-o", "out.csv",
        "--manifest", "run.json", "--report", "r.html", "--labels", "l.csv",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "were joined into" in done.stdout
    assert "--small merge" in done.stdout
    written = pl.read_csv(tmp_path / "out.csv")
    assert least(written, ["land", "town", "x", "y"]) >= 3
    assert pl.read_csv(tmp_path / "l.csv")["size"].min() >= 3
    assert json.loads((tmp_path / "run.json").read_text())["parameters"]["small"] == "merge"
    again = command("mask", "--from-manifest", "run.json", "-o", "again.csv", cwd=tmp_path)
    assert "same bytes" in again.stdout, again.stderr
    refused = command(
        "mask", "in.csv", "-k", 3, "-c", "x", "--by", "town", "--small", "error", "-o", "o.csv", cwd=tmp_path
    )
    assert "--small merge" in refused.stderr


def test_a_report_measures_joined_strata_and_lost_cells(tmp_path):
    tree = shoal.Hierarchy({1: ["far", "all"], 2: ["near", "all"], 3: ["near", "all"], 4: ["far", "all"]})
    jobs = [None, "cook", "cook", "smith", "cook", "smith", None, "clerk", "clerk", "smith", "cook", None, "cook"]
    table = towns().with_columns(job=pl.Series(jobs))
    asked = {"columns": ["x", "job"], "by": ["land", "town"], "missing": "group", "small": "merge", "max_left_out": 1}
    release = shoal.mask(table, 3, kinds={"town": tree}, **asked)
    assert release.blanked
    release.report(tmp_path / "r.html", original=table)
    assert "were joined into" in (tmp_path / "r.html").read_text()


def test_a_report_refuses_another_table():
    table = pl.DataFrame({"a": [1.0, 2, 9, 10, 4, None, None], "b": [1.0, 2, 8, 9, None, None, 7]})
    release = shoal.mask(table, 2, columns=["a", "b"], missing="group", small="merge", max_left_out=1)
    with pytest.raises(InputError, match="is not the table this release was made from"):
        release.report("never.html", original=table.with_columns(pl.col("a") * pl.col("b")))


# Properties


@st.composite
def tables(draw):
    n = draw(st.integers(8, 45))
    cells = st.one_of(st.none(), st.integers(-3, 3).map(float)) if draw(st.booleans()) else st.integers(0, 9).map(float)

    def column(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    return pl.DataFrame(
        {
            "land": column(st.sampled_from(["n", "s"])),
            "town": column(st.integers(1, 4)),
            "x": pl.Series(column(cells), dtype=pl.Float64),
            "y": pl.Series(column(cells), dtype=pl.Float64),
            "left": np.arange(n) % 5,
        }
    )


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables(), k=st.integers(2, 6), missing=st.sampled_from(["group", "drop"]))
def test_every_stratum_and_combination_has_k(table, k, missing):
    try:
        asked = {"columns": ["x", "y"], "by": ["land", "town"], "keep": "left", "max_left_out": 1}
        release = shoal.mask(table, k, missing=missing, small="merge", **asked)
    except InputError as refused:
        assert missing == "drop"
        assert "'k'" in str(refused)  # noqa: PT017
        return
    found = release.data
    assert least(found, ["land", "town"]) >= k
    assert least(found, ["land", "town", "x", "y"]) >= k
    kept = table[release.kept]
    assert found["left"].equals(kept["left"])
    for name in ("x", "y"):
        assert (found[name].is_null() | kept[name].is_not_null()).all()  # no cell is invented
    for name in ("land", "town"):
        own = [str(before) in str(after).split(" or ") for before, after in zip(kept[name], found[name], strict=True)]
        assert all(own)
    assert release.loss >= 0
    assert release.sizes.min() >= k
    assert release.sizes.sum() == len(found)


def test_engines_agree(tmp_path, one_template):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "town": rng.integers(0, 40, 200),
            "x": rng.normal(size=200).round(2) + 1e9,
            "y": np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200)),
            "job": rng.choice(["cook", "smith"], 200),
        }
    )
    frame.to_csv(tmp_path / "in.csv", index=False)
    frame.to_parquet(tmp_path / "in.parquet", index=False, row_group_size=70)
    asked = {"columns": ["x", "y", "job"], "by": "town", "missing": "group", "small": "merge", "block": 60}
    asked["max_left_out"] = 1
    for ending in ("csv", "parquet"):
        written = []
        for engine in ("memory", "local"):
            out = tmp_path / f"{engine}.{ending}"
            release = shoal.mask(tmp_path / f"in.{ending}", 4, engine=engine, output=out, **asked)
            read = pl.read_csv if ending == "csv" else pl.read_parquet
            written.append((read(out), release.notes, round(release.loss, 9)))
        assert written[0][0].equals(written[1][0])
        assert written[0][1:] == written[1][1:]
        assert least(written[0][0].fill_nan(None), ["town", "x", "y", "job"]) >= 4


@pytest.mark.parametrize("offset", [0, 1_000_000])
@pytest.mark.parametrize("engine", ["memory", "local"])
def test_a_lost_column_counts_as_lost_in_any_position(tmp_path, engine, offset):
    rows = [{"age": 20 + i * 7 % 50, "income": None if i % 8 == 0 else offset + i * 37 % 101} for i in range(40)]
    pl.DataFrame(rows).with_row_index("who").write_csv(tmp_path / "in.csv")
    # Records of a unit stay together, so patterns are joined as a whole.
    asked = {"columns": ["age", "income"], "unit": "who", "keep": "who", "output": tmp_path / "out.csv"}
    release = shoal.mask(tmp_path / "in.csv", 8, engine=engine, small="merge", max_left_out=1, **asked)
    assert release.column_loss["income"] == 100
    ages = pl.read_csv(tmp_path / "in.csv")["age"], pl.read_csv(tmp_path / "out.csv")["age"]
    lost = float(((ages[0] - ages[1]) ** 2).sum()) / float(((ages[0] - ages[0].mean()) ** 2).sum())
    assert release.loss == pytest.approx(100 * (40 * lost + 35) / 75)
    release.report(tmp_path / "page.html", original=tmp_path / "in.csv")


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.usefixtures("one_template")
def test_a_column_that_joining_leaves_empty_is_one_of_numbers(tmp_path, engine):
    (tmp_path / "in.csv").write_text("x,y\n1,5\n2,NA\n")
    asked = {"missing": "group", "small": "merge", "max_left_out": 1, "integers": "float", "engine": engine}
    asked["output"] = tmp_path / "out.parquet"
    shoal.mask(tmp_path / "in.csv", 2, columns=["x", "y"], **asked)
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found["x"].to_list() == [1.5, 1.5]
    assert found["y"].to_list() == [None, None]
    assert found["y"].dtype == pl.Float64


# Divisions into parts


@dataclass
class Parts:
    """Return the parts of a table, read one by one as in every engine."""

    tables: list[pl.DataFrame]
    columns: Any
    arrays: tuple[Any, ...] = ()
    dialect: Any = None

    def read(self, moves, k):
        firsts = accumulate(map(len, self.tables), initial=0)
        pairs = [
            read_part(open_data(table), first, self.columns, "group", moves, None, k)
            for table, first in zip(self.tables, firsts, strict=False)
        ]
        self.arrays = tuple(arrays for arrays, _ in pairs)
        return [part for _, part in pairs]

    def reduce(self, function, combine, *arguments, own):
        done = [function(i, *pair, *arguments) for i, pair in enumerate(zip(self.arrays, own, strict=True))]
        return reduce(combine, done)


def blank_cells(table, cuts, k):
    """Divide a table at some records and join small sets of records; return the missing cells and the strata."""
    request = MaskRequest(k=k, columns=["x", "y"], by=["land", "town"])
    columns = choose_masked(request, Schema(table.columns, ["town", "x", "y", "left"]))
    ends = sorted({0, len(table), *cuts})
    records = Parts([table[start:end] for start, end in pairwise(ends)], columns)
    moves = join_small(records, request, columns, records.read(STAY, k)) or STAY
    parts = records.read(moves, k)
    missing = np.isnan(np.vstack([arrays["X"] for arrays in records.arrays]))
    codes = [arrays.get("codes", np.zeros(len(arrays["X"]), dtype=int)) for arrays in records.arrays]
    cells = [part.cells[code] for part, own in zip(parts, codes, strict=True) for code in own.tolist()]
    return missing, cells, moves.blanked


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), k=st.integers(2, 5))
def test_any_division_into_parts_blanks_the_same_cells(data, k):
    table = data.draw(tables())
    before = table.select(pl.col("x", "y").is_null()).to_numpy()
    missing, cells, blanked = blank_cells(table, [], k)
    assert min(Counter(cells).values()) >= k
    assert (missing >= before).all()
    assert missing.sum() - before.sum() == blanked
    cuts = data.draw(st.lists(st.integers(0, len(table)), max_size=4))
    again, same_cells, same_number = blank_cells(table, cuts, k)
    assert again.tolist() == missing.tolist()
    assert same_cells == cells
    assert same_number == blanked


def test_joined_strata_donate_in_the_same_order_from_any_part():
    # Towns 1 and 2 are joined; both hold complete records, which the part boundary deals out.
    table = pl.DataFrame(
        {
            "land": ["n"] * 8,
            "town": [1, 2, 1, 2, 1, 2, 1, 1],
            "x": [1.0, 2, 3, 4, 5, 6, 7, None],
            "y": np.arange(8.0),
            "left": 0,
        }
    )
    whole = blank_cells(table, [], 4)[0]
    assert whole[:, 0].sum() == 4
    for cut in range(1, 8):
        assert blank_cells(table, [cut], 4)[0].tolist() == whole.tolist(), cut
