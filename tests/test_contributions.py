"""Groups dominated by one member: counts equal a slow reference, and the warning comes first."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
import slow
from conftest import command
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.masking.aggregate import count_dominated
from shoal.masking.release import GroupCount
from shoal.report.pages import release_page

GIANT = 1e6


def small_firms_and_a_giant():
    return pl.DataFrame({"sales": np.r_[np.random.default_rng(0).uniform(1, 50, 49), GIANT]})


def reference(frame, release, name, weights=None, units=None):
    """Count from the original table, the groups and the released table alone."""
    kept = frame[release.kept.tolist()]
    ones = np.ones(len(kept))
    labels = release.labels if release.labels.ndim == 1 else release.labels[:, release.columns.index(name)]
    return slow.dominated(
        kept[name].cast(pl.Float64).fill_null(np.nan).to_numpy(),
        labels.tolist(),
        release.data[name].cast(pl.Float64).fill_null(np.nan).to_numpy(),
        ones if weights is None else kept[weights].to_numpy(),
        range(len(kept)) if units is None else kept[units].to_list(),
    )


def dominance(release):
    """Return the reason that groups are dominated; None if none is."""
    return next((reason for reason in release.verdict.reasons if reason.name == "dominated"), None)


def test_the_mean_of_a_group_discloses_a_dominant_record():
    frame = small_firms_and_a_giant()
    release = shoal.mask(frame, 5)
    group = release.labels == release.labels[-1]
    assert abs(release.data["sales"][-1] * group.sum() / GIANT - 1) < 0.001, "the attack"
    assert release.dominated == {"sales": GroupCount(1, 10)}
    reason = dominance(release)
    assert "sales in 1 of 10 groups" in reason.sentence
    assert reason.figure == 1
    assert ("look", reason.sentence) in release.rows()


def test_a_heavy_weight_discloses_its_record():
    frame = small_firms_and_a_giant()[:49].with_columns(w=pl.Series([1e6, *[1.0] * 48]))
    assert shoal.mask(frame, 5, columns=["sales"]).dominated == {"sales": GroupCount(0, 9)}
    release = shoal.mask(frame, 5, columns=["sales"], weights="w")
    assert release.data["sales"][0] == pytest.approx(frame["sales"][0], rel=1e-3), "the attack"
    assert release.dominated == {"sales": GroupCount(1, 9)}
    assert "its weighted value to within 10 %" in dominance(release).sentence


@pytest.mark.parametrize(
    ("values", "dominated"),
    [
        ([100.0, 20.0, 9.99], 1),
        ([100.0, 20.0, 10.0], 0),  # exactly 10 %
        ([1.0, 0.3, *[0.01] * 10], 0),  # exactly 10 %, whatever the order of the sum
        ([*[0.01] * 10, 0.3, 1.0], 0),
        ([0.0, 0.0, 0.0], 0),
        ([0.0, 0.0, 7.0], 1),
        ([7.0, 7.0, 7.0], 0),
        ([7.0, 7.0], 1),  # of two, each knows the other
        ([1e9 + 1, 1e9, 1e8 - 1], 1),
        ([1e9, 1e9, 1e8], 0),
        ([1e-300, 1e-300, 0.0], 1),
        ([7.0, 7.0, np.nan], 1),
        ([-100.0, 20.0, 9.99], 1),
        ([-100.0, -20.0, -10.0], 0),
        ([100.0, 50.0, -50.0, 60.0], 0),  # 50 and −50 cancel out, which only their sum would show
        ([-1e9, 1e9, -1e7], 1),
    ],
)
def test_groups_by_hand(values, dominated):
    rows = np.array([*values, *values[::-1], np.nan, np.nan])
    labels = np.repeat([0, 1, 2], [len(values), len(values), 2])
    assert count_dominated(rows, labels, np.zeros(len(rows))) == (2 * dominated, 2)


def test_one_negative_value_in_a_column_hides_no_dominant_record():
    frame = small_firms_and_a_giant()
    frame = frame.with_columns(sales=pl.Series([-0.1, *frame["sales"][1:]]))
    release = shoal.mask(frame, 5)
    group = release.labels == release.labels[-1]
    assert abs(release.data["sales"][-1] * group.sum() / GIANT - 1) < 0.001, "the attack"
    assert release.dominated["sales"].groups == 1
    assert "sales in 1 of 9 groups" in dominance(release).sentence
    assert reference(frame, release, "sales") == release.dominated["sales"]


def test_rounding_hides_what_small_numbers_would_show():
    """One of five has a child: 0.2 discloses it, 0 does not; a rounded dominant value stays dominant."""
    frame = pl.DataFrame({"children": [0, 0, 0, 0, 1], "sales": [10**6, 0, 0, 0, 1]})
    for integers, children in (("float", 1), ("round", 0), ("totals", 0)):
        release = shoal.mask(frame, 5, integers=integers)
        assert release.dominated == {"children": (children, 1), "sales": (1, 1)}, release.data
        assert {name: reference(frame, release, name) for name in frame.columns} == release.dominated


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_the_reference_counts_as_many(data):
    seed, k = data.draw(st.integers(0, 10**6)), data.draw(st.integers(2, 4))
    rng = np.random.default_rng(seed)
    n = data.draw(st.integers(4 * k, 60))
    offset = data.draw(st.sampled_from([0.0, 1e9]))
    x = np.exp(rng.normal(0, data.draw(st.sampled_from([0.1, 1.5, 4.0])), n)) + offset
    y = np.where(rng.random(n) < 0.3, 0.0, rng.integers(0, 1000, n))
    frame = pl.DataFrame({"x": x, "y": y, "minus": rng.normal(size=n), "w": np.exp(rng.normal(0, 3, n)),
                          "unit": rng.integers(0, n, n), "by": rng.integers(0, 2, n)})  # fmt: skip
    holes = data.draw(st.booleans())
    if holes:
        frame = frame.with_columns(pl.when(pl.Series(rng.random(n) < 0.2)).then(None).otherwise("x").alias("x"))
    asked = {
        "weights": data.draw(st.sampled_from([None, "w"])),
        "unit": data.draw(st.sampled_from([None, "unit"])),
        "zeros": data.draw(st.sampled_from([None, "y"])),
        "integers": data.draw(st.sampled_from(["float", "round"])),
        "by": data.draw(st.sampled_from([None, "by"])),
        "shuffle": data.draw(st.sampled_from([False, 1])),
        "method": data.draw(st.sampled_from(["mdav", "v-mdav"])),
    }
    names = ["x", "y", "minus"]
    try:
        release = shoal.mask(frame, k, columns=names, missing="group", small="suppress", **asked)
    except shoal.InputError:  # too few records of a stratum or pattern remain
        return
    counts = {name: reference(frame, release, name, asked["weights"], asked["unit"]) for name in names}
    assert release.dominated == {name: count for name, count in counts.items() if count[1]}


@pytest.mark.parametrize("missing", ["group", "drop"])
def test_columns_grouped_separately_are_counted_separately(missing):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"x": np.r_[rng.uniform(0, 9, 59), 1e4], "y": rng.uniform(1, 2, 60)})
    frame = frame.with_columns(pl.when(pl.int_range(60) % 9 == 0).then(None).otherwise("x").alias("x"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.NotKAnonymousWarning)
        release = shoal.mask(
            frame, 3, columns=["x", "y"], method="individual-ranking", missing=missing, max_left_out=1, decimals="all"
        )
    assert release.dominated == {name: reference(frame, release, name) for name in ("x", "y")}
    assert release.dominated["x"].groups > 0
    assert release.dominated["y"].groups == 0
    assert release.verdict.reasons[0].sentence.startswith("NOT k-anonymous for whole records")
    assert "x in " in dominance(release).sentence
    levels = ["stop"] * (3 if missing == "drop" else 2)  # about one in ten records has a missing value
    assert [name for name, _ in release.rows()][:6] == ["verdict", *levels, "look", "look", "records"][:6]


@pytest.mark.parametrize(
    ("frame", "asked"),
    [
        (pl.DataFrame({"x": ["a", "b", "a", "b"]}), {"columns": ["x"]}),
        (pl.DataFrame({"x": pl.Series(["2020-01-01", "2020-01-02", "2020-05-01", "2020-09-01"]).str.to_date()}),
         {"columns": ["x"]}),
        (pl.DataFrame({"x": [1.0, 5.0, 7.0, 900.0]}), {"aggregate": "median", "k": 4}),
        (pl.DataFrame({"x": [1.0, 5.0, 7.0, 900.0]}), {"aggregate": "medoid", "k": 4}),
    ],
    ids=["text", "dates", "median", "medoid"],
)  # fmt: skip
def test_the_rule_is_not_applied_where_it_is_not_defined(frame, asked):
    release = shoal.mask(frame, **{"k": 2, **asked})
    assert release.dominated == {}
    assert dominance(release) is None


def test_units_are_members_not_their_records():
    """The second unit has two records: their sum is what it subtracts."""
    frame = pl.DataFrame({"x": [100.0, 45.0, 45.0, 6.0, 6.0], "unit": [0, 1, 1, 2, 3]})
    exact = {"columns": ["x"], "integers": "float", "decimals": "all"}
    plain = shoal.mask(frame, 4, **exact)
    assert plain.dominated == {"x": GroupCount(0, 1)}
    release = shoal.mask(frame.with_columns(x=pl.Series([100.0, 45.0, 45.0, 5.0, 4.0])), 4, unit="unit", **exact)
    assert release.dominated == {"x": GroupCount(1, 1)}
    assert "one unit dominates its group, so another member can estimate its total" in dominance(release).sentence


def test_cells_made_missing_count_for_no_group():
    frame = pl.DataFrame({"x": [1000.0, 1.0, 1.0, 2.0, 2.0, 3.0], "y": [None, 1.0, 2.0, 3.0, 4.0, 5.0]})
    release = shoal.mask(frame, 4, columns=["x", "y"], small="merge", method="mdav", max_left_out=1)
    assert release.data["y"].null_count() == 6
    assert release.dominated == {"x": reference(frame, release, "x")}
    assert release.dominated["x"].groups == 1


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_it_is_written_first_wherever_a_release_is_described(tmp_path, engine):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"sales": np.exp(rng.normal(0, 4, 400)), "ill": rng.integers(0, 2, 400)})
    frame.write_parquet(tmp_path / "in.parquet")
    paths = [tmp_path / name for name in ("in.parquet", "out.parquet", "run.json", "page.html")]
    done = command(
        "mask", str(paths[0]), "-k", "3", "-c", "sales", "--confidential", "ill", "-m", "mdav", "--engine", engine,
        "-o", str(paths[1]), "--manifest", str(paths[2]), "--report", str(paths[3]),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["verdict", "stop", "look", "look", "records"]
    assert lines[0].startswith("verdict           STOP: ")
    assert "share one sensitive value" in lines[1]
    assert ": ill in " in lines[1]
    assert "sales in " in lines[3]
    result = json.loads(paths[2].read_text("utf-8"))["result"]
    assert result["verdict"]["level"] == "stop"
    reasons = result["verdict"]["reasons"]
    assert [reason["level"] for reason in reasons] == ["stop", "look", "look"]
    assert [reason["figure"] for reason in reasons][::2] == [
        result["homogeneous"]["ill"]["groups"],
        result["dominated"]["sales"]["groups"],
    ]
    for reason, line in zip(reasons, lines[1:4], strict=True):  # a command names parameters by their flags
        assert reason["sentence"].split(";")[0] in line
    assert 0 < result["dominated"]["sales"]["groups"] < result["dominated"]["sales"]["of"] == result["groups"]
    text = paths[3].read_text("utf-8")
    assert text.index("share one sensitive value") < text.index('<ul class="tiles">')
    assert text.index("dominates its group") < text.index('<ul class="tiles">')


def test_many_columns_are_not_all_listed():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({f"column {j}": np.exp(rng.normal(0, 4, 20)) for j in range(30)})
    sentence = dominance(shoal.mask(frame, 2)).sentence
    assert sentence.count("column ") == 8
    assert sentence.endswith("and 22 more columns")


def test_a_page_begins_with_the_verdict(tmp_path):
    frame = pl.DataFrame({"x": np.linspace(1, 2, 60)})
    release = shoal.mask(frame, 5)
    assert release_page(release, original=frame).verdict == release.verdict
    for asked, level in (({"shuffle": 1}, "fine"), ({}, "look")):
        release = shoal.mask(frame, 5, **asked)
        text = release.report(tmp_path / "page.html").read_text("utf-8")
        assert release.verdict.level == level
        assert f'<section class="verdict {level}"' in text
        assert text.index(release.verdict.advice) < text.index('<ul class="tiles">')
