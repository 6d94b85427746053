"""Confidential columns: diversity and closeness are kept by every method, in every kind of table, and recounted."""

import json
import re
from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
import slow
from conftest import command, reference_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.registry import CONFIDENTIAL_METHODS, METHODS
from shoal.core.errors import InputError, VerificationError
from shoal.core.measures import standardise
from shoal.promises.promise import ConfidentialColumn

METHODS_OF_RECORDS = [method.name for method in METHODS.values() if method.whole_records]
OPTIONS = {"search": {"steps": 200}, "decomposition": {"subset_limit": 5.0}}


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    age, pay = rng.integers(20, 80, n), rng.lognormal(3, 1, n).round(2)
    return pl.DataFrame(
        {
            "age": age,
            "pay": pay,
            "ill": np.where(rng.random(n) < 0.3, np.where(age > 50, "gout", "flu"), rng.choice(["cold", "none"], n)),
            "days": rng.integers(0, 9, n) + (pay > 30),
            "region": rng.choice(["north", "south"], n),
        }
    )


def worst(table, keys, name, ordered):
    """Return the fewest values, the least l by entropy and the greatest t, without the code of shoal."""
    values = sorted(table[name].unique().to_list(), key=lambda value: (value is not None, value))
    whole = np.array([table[name].eq_missing(value).sum() for value in values]) / len(table)
    found = []
    for _, group in table.group_by(keys):
        p = np.array([group[name].eq_missing(value).sum() for value in values]) / len(group)
        t = np.abs(np.cumsum(p - whole)).sum() / max(1, len(values) - 1) if ordered else np.abs(p - whole).sum() / 2
        found.append(((p > 0).sum(), np.exp(-sum(x * np.log(x) for x in p if x > 0)), t))
    return min(f[0] for f in found), min(f[1] for f in found), max(f[2] for f in found)


# --- promises are kept -----------------------------------------------------------------------------------------------


def test_a_column_that_is_only_named_is_measured():
    table = people()
    release = shoal.mask(table, 3, columns=["age", "pay"], confidential=["ill", "days"])
    assert release.data["ill"].to_list() == table["ill"].to_list()
    for name, ordered in (("ill", False), ("days", True)):
        l, entropy, t = worst(release.data, ["age", "pay"], name, ordered)
        assert release.reached[name] == pytest.approx({"diversity": l, "entropy": entropy, "closeness": t})
    assert re.search(r"sensitive +ill: all records share one value in \d+ of \d+ groups, .*; l ≥ 1", str(release))
    assert "asked" not in release.verified


@pytest.mark.parametrize("asked", [{}, {"by": "town"}, {"diversity": {"days": 2}}, {"block": 40}], ids=str)
def test_groups_that_share_one_value_are_counted_and_reported_first(asked):
    table = people().with_columns(town=pl.int_range(pl.len()) % 2, same=pl.lit("all"))
    release = shoal.mask(table, 3, columns=["age", "pay"], confidential=["ill", "days", "same"], **asked)
    keys = ["age", "pay", *(["town"] if "by" in asked else [])]
    groups = release.data.group_by(keys).agg(pl.col("ill", "days", "same").n_unique())
    wanted = {name: (int((groups[name] == 1).sum()), len(groups)) for name in ("ill", "days", "same")}
    assert release.homogeneous == wanted
    assert wanted["ill"][0] > 0
    assert wanted["same"] == (len(groups), len(groups))
    assert ("diversity" in asked) <= (wanted["days"][0] == 0)
    (reason,) = (reason for reason in release.verdict.reasons if (reason.level, reason.name) == ("stop", "sensitive"))
    assert (wanted["days"][0] > 0) == (", days in" in reason.sentence)
    assert f"disclosed: same in {len(groups)} of {len(groups)} groups, " in reason.sentence
    assert f", ill in {wanted['ill'][0]} of {len(groups)} groups" in reason.sentence
    assert reason.figure == len(groups)
    assert ("stop", reason.sentence) in release.rows()


def test_groups_with_equal_released_values_are_one_group():
    """Two groups with equal values, each with one illness: an intruder who finds them learns neither."""
    table = pl.DataFrame({"x": [1.0, 1.0, 1.0, 1.0, 8.0, 9.0], "ill": ["a", "a", "b", "b", "c", "c"]})
    release = shoal.mask(table, 2, columns=["x"], confidential="ill", method="fixed")
    assert release.groups == 3
    assert release.homogeneous == {"ill": (1, 2)}


def test_without_a_confidential_column_nothing_is_counted():
    release = shoal.mask(people(), 3, columns=["age", "pay"])
    assert release.homogeneous == {}
    assert "share one" not in str(release)


@pytest.mark.parametrize("method", METHODS_OF_RECORDS)
def test_every_method_keeps_models(method):
    table = people(90)
    keys = ["pay"] if METHODS[method].univariate else ["age", "pay"]
    release = shoal.mask(
        table, 3, columns=keys, method=method, confidential=["ill", "days"], diversity={"ill": 2},
        closeness={"days": 0.25}, **OPTIONS.get(method, {}),
    )  # fmt: skip
    assert worst(release.data, keys, "ill", ordered=False)[0] >= 2
    assert worst(release.data, keys, "days", ordered=True)[2] <= 0.25
    assert release.data.group_by(keys).len()["len"].min() >= 3
    assert "(requested: diversity 2)" in release.verified
    assert "(requested: closeness 0.25)" in release.verified


@pytest.mark.parametrize("method", CONFIDENTIAL_METHODS)
def test_published_methods_keep_closeness_and_all_other_promises(method):
    table = people(150)
    asked = {"columns": ["age", "pay"], "confidential": ["days", "ill"], "by": "region", "method": method}
    release = shoal.mask(table, 3, closeness={"days": 0.2}, diversity={"ill": 2}, **asked)
    keys = ["age", "pay", "region"]
    assert worst(release.data, keys, "days", ordered=True)[2] <= 0.2
    assert worst(release.data, keys, "ill", ordered=False)[0] >= 2
    assert release.parameters["method"] == method
    with pytest.raises(InputError, match="groups by a sensitive column and requires 'confidential' and 'closeness'"):
        shoal.mask(table, 3, **asked)
    with pytest.raises(InputError, match=r"which only shoal\.mask provides"):
        shoal.partition(table.select("age", "pay").to_numpy(), 3, method=method)
    assert method in str(shoal.methods())


@pytest.mark.parametrize(
    "asked",
    [
        {"diversity": 3},
        {"diversity": "entropy:2.5"},
        {"diversity": shoal.Diversity(2, "recursive", 2.0)},
        {"closeness": 0.15},
        {"closeness": shoal.Closeness(0.3), "diversity": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("more", [{}, {"by": "region"}, {"unit": "person"}, {"aggregate": "medoid"}, {"refine": 20}])
def test_every_model_is_kept_within_strata_with_units_and_after_refining(asked, more):
    table = people(240).with_columns(person=pl.int_range(240) // 2)
    release = shoal.mask(table, 3, columns=["age", "pay"], confidential="days", identifiers=["person"], **asked, **more)
    keys = ["age", "pay", *([more["by"]] if "by" in more else [])]
    l, entropy, t = worst(release.data, keys, "days", ordered=True)
    reached = dict(release.reached["days"])
    ratio = reached.pop("recursive", 0.0)
    assert reached == pytest.approx({"diversity": l, "entropy": entropy, "closeness": t})
    model = asked.get("diversity")
    assert l >= 3 or model != 3
    assert entropy >= 2.5 - 1e-9 or model != "entropy:2.5"
    assert t <= {0.15: 0.15}.get(asked.get("closeness"), 0.3 if "closeness" in asked else 1.0) + 1e-12
    assert ratio < 2.0
    if "unit" in more:
        persons = table["person"].gather(release.kept)
        grouped = release.data.with_columns(person=persons).group_by(keys).agg(pl.col("person").n_unique())
        assert grouped["person"].min() >= 3


@pytest.mark.parametrize(
    "more", [{"shuffle": 3}, {"missing": "drop"}, {"missing": "group"}, {"small": "merge", "by": "town"}]
)
def test_the_distribution_is_that_of_what_is_released(more):
    """Records that are dropped do not count; joined strata, random order and missing cells change nothing."""
    table = people(300).with_columns(
        age=pl.when(pl.int_range(300) % 3 == 0).then(None).otherwise(pl.col("age")),
        town=pl.when(pl.int_range(300) < 2).then(pl.lit("small")).otherwise(pl.col("region")),
    )
    more = {"missing": "group", "max_left_out": 1, **more}
    release = shoal.mask(table, 3, columns=["age", "pay"], confidential="days", closeness=0.25, **more)
    keys = ["age", "pay", *([more["by"]] if "by" in more else [])]
    assert tuple(release.reached["days"].values()) == pytest.approx(worst(release.data, keys, "days", ordered=True))
    assert release.reached["days"]["closeness"] <= 0.25


def test_spaces_make_no_other_value():
    table = people(60).with_columns(
        ill=pl.when(pl.int_range(60) % 2 == 0).then(pl.lit("flu ")).otherwise(pl.lit("flu"))
    )
    with pytest.raises(InputError, match="must not exceed the 1 different value of"):
        shoal.mask(table, 3, columns=["age", "pay"], confidential="ill", diversity=2)


def test_text_that_looks_like_numbers_stays_text_in_a_file(tmp_path):
    table = people(60).with_columns(ill=pl.Series(["1", "1.0", "2"] * 20))
    asked = {"columns": ["age", "pay"], "confidential": "ill", "diversity": 3, "output": tmp_path / "out.csv"}
    assert shoal.mask(table, 3, **asked).reached["ill"]["diversity"] == 3


def test_a_missing_value_is_one_of_its_own_and_the_lowest():
    table = people().with_columns(days=pl.when(pl.col("days") > 6).then(None).otherwise(pl.col("days")))
    release = shoal.mask(table, 3, columns=["age", "pay"], confidential="days", closeness=0.2)
    assert worst(release.data, ["age", "pay"], "days", ordered=True) == pytest.approx(
        tuple(release.reached["days"].values())
    )


@pytest.mark.parametrize(
    ("cells", "kinds", "ordered"),
    [
        (lambda n, rng: rng.integers(0, 5, n), {}, True),
        (lambda n, rng: rng.integers(0, 5, n) / 4 - 0.5, {}, True),
        (lambda n, rng: rng.random(n) < 0.5, {}, True),
        (lambda n, rng: [date(2020, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 5, n)], {}, True),
        (lambda n, rng: [f"{day}.10.2020" for day in rng.integers(8, 13, n)], {"x": shoal.Date("%d.%m.%Y")}, True),
        (lambda n, rng: rng.choice(["a", "b", "c"], n), {}, False),
        (lambda n, rng: rng.choice(["a", "b", "c"], n), {"x": shoal.Ordinal(["c", "a", "b"])}, True),
        (lambda n, rng: rng.integers(0, 5, n), {"x": shoal.Nominal()}, False),
        (lambda n, rng: pl.Series(rng.choice(["low", "high"], n), dtype=pl.Enum(["low", "high"])), {}, True),
        (lambda n, rng: pl.Series(rng.choice(["low", "high", "no"], n), dtype=pl.Categorical), {}, False),
        (lambda n, rng: rng.choice(["01", "1", "2"], n), {}, False),
    ],
    ids=[
        "whole",
        "decimal",
        "truth",
        "date",
        "written date",
        "text",
        "ordinal",
        "codes",
        "levels",
        "category",
        "zeros before",
    ],
)
@pytest.mark.parametrize("ending", [None, ".csv", ".parquet"])
def test_values_of_any_kind_are_coded_in_their_order(cells, kinds, ordered, ending, tmp_path):
    rng = np.random.default_rng(0)
    table = people(80).with_columns(pl.Series("x", cells(80, rng)))
    output = None if ending is None else tmp_path / f"out{ending}"
    release = shoal.mask(
        table, 3, columns=["age", "pay"], confidential="x", kinds=kinds or None, closeness=0.3, output=output
    )
    shown = table.with_columns(release.data["age"] if ending is None else _read(output)["age"],
                               release.data["pay"] if ending is None else _read(output)["pay"])  # fmt: skip
    if isinstance(kinds.get("x"), shoal.Ordinal):
        shown = shown.with_columns(pl.col("x").replace_strict({"c": 0, "a": 1, "b": 2}))
    if isinstance(kinds.get("x"), shoal.Date):
        shown = shown.with_columns(pl.col("x").str.strptime(pl.Date, "%d.%m.%Y"))
    if isinstance(table["x"].dtype, pl.Enum):
        shown = shown.with_columns(pl.col("x").to_physical())
    elif isinstance(table["x"].dtype, pl.Categorical):
        shown = shown.with_columns(pl.col("x").cast(pl.String))
    assert tuple(release.reached["x"].values()) == pytest.approx(worst(shown, ["age", "pay"], "x", ordered))


def _read(path):
    return pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)


def most_to_rest(table, keys, name, l):
    """Return the greatest r_1 / (r_l + … + r_m) of all groups, from their counts alone."""
    counts = [sorted(group[name].value_counts()["count"], reverse=True) for _, group in table.group_by(keys)]
    return max(found[0] / rest if (rest := sum(found[l - 1 :])) else np.inf for found in counts)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_table_keeps_models_by_any_method_or_is_refused(data):
    """The release keeps its promises, or the refusal names a value that can be kept."""
    n = data.draw(st.integers(4, 30))
    table = pl.DataFrame(
        {
            "x": data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=n, max_size=n)),
            "y": data.draw(st.lists(st.one_of(st.none(), st.floats(-5, 5)), min_size=n, max_size=n)),
            "c": data.draw(st.lists(st.sampled_from(["p", "q", "r", None]), min_size=n, max_size=n)),
            "unit": data.draw(st.lists(st.integers(0, 12), min_size=n, max_size=n)),
        },
        schema={"x": pl.Float64, "y": pl.Float64, "c": pl.String, "unit": pl.Int64},
    )
    method = data.draw(st.sampled_from([*METHODS_OF_RECORDS, *CONFIDENTIAL_METHODS]))
    keys = ["x"] if method in METHODS and METHODS[method].univariate else ["x", "y"]
    diversity = data.draw(st.sampled_from([2, 3, "entropy:1.5", "entropy:2.5", "recursive:2:2"]))
    t, unit = data.draw(st.sampled_from([0.2, 0.5, 0.9])), data.draw(st.sampled_from([None, "unit"]))
    asked = {
        "columns": keys,
        "confidential": "c",
        "missing": "group",
        "small": "suppress",
        "unit": unit,
        "max_left_out": 1,
    }
    asked |= {"keep": ["unit"], "method": method, **OPTIONS.get(method, {})}
    try:
        release = shoal.mask(table, 2, **asked, diversity=diversity, closeness=t)
    except InputError as error:
        assert "Parameter" in str(error)  # noqa: PT017
        return
    l, entropy, apart = worst(release.data, keys, "c", ordered=False)
    kind, _, least = str(diversity).rpartition(":")
    assert l >= float(least) or kind
    assert entropy >= float(least) - 1e-9 or kind != "entropy"
    assert kind != "recursive:2" or most_to_rest(release.data, keys, "c", 2) < 2
    assert apart <= t + 1e-12
    assert release.data.group_by(keys).agg(pl.len(), pl.col("unit").n_unique())["unit" if unit else "len"].min() >= 2
    reached = [release.reached["c"][name] for name in ("diversity", "entropy", "closeness")]
    assert reached == pytest.approx([l, entropy, apart])


def test_the_optimum_is_a_bound_once_models_change_it():
    table = people(40).select("age", "ill")
    asked = {"columns": ["age"], "method": "search", "steps": 500, "bound": True, "confidential": "ill"}
    free, kept = shoal.mask(table, 3, **asked), shoal.mask(table, 3, **asked, diversity=3)
    assert kept.loss > free.loss
    assert kept.status == "bounded"
    assert kept.bound <= kept.loss


def test_auto_proves_its_bound_whatever_is_promised():
    asked = {"columns": ["age", "pay"], "confidential": "ill", "bound": True}
    free, kept = shoal.mask(people(40), 3, **asked), shoal.mask(people(40), 3, **asked, diversity=3)
    assert 0 < kept.bound == free.bound <= free.loss < kept.loss


# --- the bound -------------------------------------------------------------------------------------------------------


def related(n=120, seed=0):
    """People whose days depend on their age, so that closeness costs something."""
    table = people(n, seed).with_columns(days=pl.col("age") // 10, weight=pl.lit(2.0) + pl.col("age") % 3)
    return table.with_columns(gaps=pl.when(pl.col("pay") > 20).then(pl.col("pay")))


def test_closeness_comes_with_a_lower_bound(tmp_path):
    asked = {"columns": ["age", "pay"], "confidential": "days"}
    release = shoal.mask(related(), 3, **asked, closeness=0.05)
    assert 10 < release.bound < release.loss
    assert release.status == "bounded"
    assert release.gap == pytest.approx(1 - release.bound / release.loss)
    assert f"lower bound       {release.bound:.5f} % (bounded, gap {100 * release.gap:.3f} %)" in str(release)
    page = release.report(tmp_path / "r.html", original=related()).read_text().replace("\xa0", " ")
    told = float(re.search(r"Any groups with the promises made here are proven to lose at least ([\d.]+) %", page)[1])
    assert release.bound - 0.1 < told <= release.bound
    for other in ({"closeness": 0.9}, {"diversity": 2}, {}, {"closeness": 0.35, "block": 60}):
        free = shoal.mask(related(), 3, **asked, **other)
        assert (free.bound, free.gap, free.status) == (None, None, "heuristic")


@pytest.mark.parametrize(
    "more",
    [
        {"by": "region"},
        {"weights": "weight"},
        {"columns": ["age", "gaps"], "missing": "group"},
        {"columns": ["age", "gaps"], "missing": "drop", "max_left_out": 1},
        {"columns": ["age", "gaps"], "missing": "group", "by": "region", "small": "merge", "k": 30, "max_left_out": 1},
        {"columns": ["age", "pay", "region"]},
        {"columns": ["age", "ill"], "aggregate": "medoid"},
        {"importance": {"pay": 4.0}},
        {"distance": ["pay"]},
        {"aggregate": "median", "integers": "round"},
        {"unit": "weight", "diversity": 2},
        {"method": "closeness-first"},
    ],
    ids=str,
)
def test_no_release_is_below_its_bound(more):
    asked = {"k": 3, "columns": ["age", "pay"], "confidential": "days", "closeness": 0.15, **more}
    release = shoal.mask(related(), **asked)
    assert 0 < release.bound <= min(release.loss, release.partition_loss)
    assert release.status == "bounded"


@pytest.mark.parametrize("t", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_a_release_is_below_the_optimum(seed, t):
    table = related(9, seed).select("age", "pay", "days")
    release = shoal.mask(table, 2, columns=["age", "pay"], confidential="days", closeness=t)
    column = ConfidentialColumn(*np.unique(table["days"], return_inverse=True, return_counts=True)[1:], ordered=True)
    Z = standardise(table.select("age", "pay").to_numpy().astype(np.float64))
    least = 100 * slow.least_sse(Z, [column], [(0, shoal.Closeness(t))], 2) / np.square(Z).sum()
    assert (release.bound or 0.0) <= least <= release.loss + 1e-9


def test_the_greater_of_two_bounds_is_reported_with_its_certificate():
    asked = {"columns": ["age", "pay"], "method": "search", "steps": 500, "bound": True, "confidential": "days"}
    free = shoal.mask(related(40), 8, **asked)
    close, far = (shoal.mask(related(40), 8, **asked, closeness=t) for t in (0.05, 0.35))
    assert close.bound > free.bound == far.bound
    assert (close.certificate, far.certificate is None) == (None, False)
    assert close.status == far.status == "bounded"
    assert far.loss > free.loss


def test_an_optimum_that_keeps_closeness_stays_one():
    asked = {"columns": ["age"], "method": "search", "steps": 500, "bound": True, "confidential": "ill"}
    free, kept = shoal.mask(people(40), 3, **asked), shoal.mask(people(40), 3, **asked, closeness=0.95)
    assert free.status == kept.status == "optimal"
    assert free.bound == kept.bound


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"diversity": 3, "confidential": None}, "requires sensitive columns. Name them in 'confidential'"),
        ({"closeness": 0.2, "confidential": None}, "requires sensitive columns. Name them in 'confidential'"),
        ({"confidential": "il"}, r"'confidential' names column 'il', which the table does not have.* 'ill'"),
        ({"confidential": "age"}, "'confidential' names column 'age', which is masked"),
        ({"confidential": "region", "by": "region"}, "a stratum"),
        ({"confidential": "ill", "identifiers": "ill"}, "the unit, left out, or named twice"),
        ({"confidential": ["ill", "ill"]}, "named twice"),
        ({"confidential": "days", "unit": "days"}, "the unit"),
        ({"confidential": []}, "must name at least one column"),
        ({"diversity": 5}, "must not exceed the 4 different values of column 'ill', got 5"),
        ({"diversity": {"days": 2}}, "'diversity' names column 'days', which is not a sensitive column"),
        ({"diversity": "much"}, "must read like 3, entropy:3 or recursive:3:2"),
        ({"closeness": "much"}, "must be at least 0 and less than 1"),
        ({"closeness": 1.5}, "must be at least 0 and less than 1"),
        ({"method": "individual-ranking"}, "'confidential' requires groups of whole records"),
        ({"diversity": "entropy:4"}, "all 120 records of the table together have an entropy of log 3"),
        ({"closeness": 0.01, "by": "region"}, "records of a stratum"),
        ({"closeness": 0.05, "block": 20}, "of a block together .* larger block"),
    ],
)
def test_refusals_name_possible_values(asked, told):
    with pytest.raises(InputError, match=told):
        shoal.mask(people(), 3, **{"columns": ["age", "pay"], "confidential": "ill", **asked})


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"closeness": 0.001}, r"closeness (0\.\d+) can be kept"),
        ({"diversity": "entropy:4"}, r"diversity (entropy:[\d.]+) can be kept"),
        ({"diversity": 4}, r"diversity (\d) can be kept"),
        ({"diversity": "recursive:2:0.5"}, r"diversity (recursive:2:[\d.]+) can be kept"),
    ],
)
def test_values_that_a_refusal_names_are_possible(asked, told):
    """The least t and the largest l over all strata, one of which lacks a value."""
    table = people(90).filter((pl.col("region") == "north") | (pl.col("ill") != "cold"))
    given = {"columns": ["age", "pay"], "confidential": "ill", "by": "region"}
    (parameter,) = asked
    with pytest.raises(InputError, match=told) as refusal:
        shoal.mask(table, 3, **given, **asked)
    possible = re.search(told, str(refusal.value))[1]
    release = shoal.mask(table, 3, **given, **{parameter: possible})
    if parameter == "closeness":
        assert release.reached["ill"]["closeness"] <= float(possible)
        with pytest.raises(InputError, match=told):
            shoal.mask(table, 3, **given, closeness=float(possible) - 0.0002)


def test_parts_of_a_table_that_disagree_are_refused_by_name(tmp_path):
    (tmp_path / "in").mkdir()
    people(60).rename({"days": "c"}).write_csv(tmp_path / "in" / "1.csv")
    people(60).rename({"days": "x", "ill": "c"}).rename({"x": "ill"}).select(
        "age", "pay", pl.col("ill").cast(pl.String), "c", "region"
    ).write_csv(tmp_path / "in" / "2.csv")
    asked = {"columns": ["age", "pay"], "confidential": "c", "engine": "local", "output": tmp_path / "out.csv"}
    with pytest.raises(InputError, match="Sensitive column 'c' holds numbers in one part"):
        shoal.mask(tmp_path / "in", 3, **asked)
    release = shoal.mask(tmp_path / "in", 3, **asked, kinds={"c": shoal.Nominal()}, diversity=2)
    assert release.reached["c"]["diversity"] >= 2


def test_groups_that_break_a_model_are_never_released(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.masking.group.keep_promise", lambda *given, **_: given[1])
    output = tmp_path / "out.csv"
    with pytest.raises(VerificationError, match="groups of identical records lack at least 3 different values"):
        shoal.mask(people(), 3, columns=["age", "pay"], confidential="ill", diversity=3, output=output)
    assert not output.exists()


# --- everywhere ------------------------------------------------------------------------------------------------------


def test_on_the_command_line_and_again_from_the_manifest(tmp_path):
    people(200).write_csv(tmp_path / "in.csv")
    manifest, out = tmp_path / "run.json", tmp_path / "out.csv"
    asked = ["-k", "3", "-c", "age", "-c", "pay", "--confidential", "ill", "--confidential", "days"]
    promise = ["--diversity", "ill=2,days=entropy:2", "--closeness", "days=0.2"]
    done = command("mask", tmp_path / "in.csv", *asked, *promise, "-o", out, "--manifest", manifest,
                   "--report", tmp_path / "report.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ill has l ≥ 2" in done.stdout
    content = json.loads(manifest.read_text())
    assert content["parameters"]["diversity"] == {"ill": "2", "days": "entropy:2"}
    assert content["parameters"]["closeness"] == {"days": "0.2"}
    assert content["result"]["reached"]["days"]["closeness"] <= 0.2
    assert (content["result"]["status"] == "bounded") == (content["result"]["bound"] is not None)
    assert "(requested: diversity entropy:2, closeness 0.2)" in (tmp_path / "report.html").read_text()
    again = command("mask", "--from-manifest", manifest, "-o", tmp_path / "again.csv", tmp_path / "in.csv")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.csv").read_bytes() == out.read_bytes()


def test_the_printed_command_repeats_the_request():
    from shoal.masking.manifest import as_command

    release = shoal.mask(people(), 3, columns=["age"], confidential=["ill"], diversity={"ill": "entropy:2"},
                         closeness=0.4)  # fmt: skip
    told = as_command(release.parameters, "in.csv", "out.csv")
    assert "--confidential ill --diversity ill=entropy:2 --closeness 0.4" in told


def test_frames_of_pandas_keep_models_too():
    table = people().to_pandas()
    table["ill"] = pd.Categorical(table["ill"])
    release = shoal.mask(table, 3, columns=["age", "pay"], confidential="ill", diversity=3)
    assert release.data.groupby(["age", "pay"])["ill"].nunique().min() >= 3


def test_inspecting_proposes_confidential_columns():
    found = shoal.inspect(people(300), 5)
    if found.named("confidential"):
        assert f"confidential={found.named('confidential')!r}" in found.command


def test_the_released_table_of_a_reference_file_is_close(tmp_path):
    table = pl.read_csv(reference_path("census"))
    release = shoal.mask(table, 2, columns=["TAXINC", "POTHVAL"], confidential="FEDTAX", closeness=0.13)
    assert release.loss < 43
    assert worst(release.data, ["TAXINC", "POTHVAL"], "FEDTAX", ordered=True)[2] <= 0.13
