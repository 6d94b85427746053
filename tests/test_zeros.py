"""Preserved zeros: zeros stay zero, among records that are zero in the same columns."""

import json
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import command, reference_path
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, VerificationError
from shoal.masking import verification
from shoal.masking.aggregate import nearest

FIRMS = pl.DataFrame(
    {
        "sales": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        "profit": [0.0, 5.0, 0.0, 7.0, -0.0, 6.0, 0.0, 8.0],
        "region": list("nnnnssss"),
    }
)


def patterns(frame, zeros):
    """Return the zero columns of each record, from the numbers alone."""
    return [tuple(value == 0 for value in row) for row in frame.select(zeros).rows()]


def test_zeros_stay_zero_in_groups_of_zeros():
    release = shoal.mask(FIRMS, k=2, columns=["sales", "profit"], zeros="profit")
    # Zeros: sales 1, 3, 5, 7; others: sales 2, 4, 6, 8.
    assert release.data["sales"].to_list() == [2.0, 3.0, 2.0, 3.0, 6.0, 7.0, 6.0, 7.0]
    assert release.data["profit"].to_list() == [0.0, 6.0, 0.0, 6.0, 0.0, 7.0, 0.0, 7.0]
    assert "zeros were kept (profit): every original zero is released as zero" in release.notes
    without = shoal.mask(FIRMS, k=4, method="mdav", columns=["sales", "profit"])
    assert (without.data["profit"] != 0).all()


def test_zeros_within_strata_and_missing_columns():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "a": rng.integers(0, 2, 400) * rng.normal(size=400),
            "b": rng.integers(0, 2, 400) * rng.lognormal(size=400),
            "c": [None if i % 5 == 0 else float(i % 4) for i in range(400)],
            "region": [f"r{i % 2}" for i in range(400)],
        }
    )
    release = shoal.mask(frame, k=4, columns=["a", "b", "c"], by="region", zeros=["a", "c"], missing="group")
    assert patterns(release.data, ["a", "c"]) == patterns(frame, ["a", "c"])
    alike = {}
    for label, pattern, region in zip(release.labels, patterns(frame, ["a", "c"]), frame["region"], strict=True):
        alike.setdefault(int(label), set()).add((pattern, region))
    assert all(len(found) == 1 for found in alike.values())
    assert release.sizes.min() >= 4


@pytest.mark.parametrize("method", ["mdav", "individual-ranking", "v-mdav"])
@pytest.mark.parametrize("aggregate", ["mean", "median", "medoid"])
@pytest.mark.filterwarnings("ignore::shoal.NotKAnonymousWarning")
def test_every_method_and_aggregate_keeps_zeros(method, aggregate):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"a": rng.lognormal(size=60) * (np.arange(60) % 3 > 0), "b": rng.normal(size=60)})
    release = shoal.mask(frame, k=3, columns=["a", "b"], zeros="a", method=method, aggregate=aggregate)
    assert patterns(release.data, ["a"]) == patterns(frame, ["a"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=6, max_size=40),
    st.sampled_from(["float", "round"]),
    st.integers(2, 3),
)
def test_new_zeros_appear_only_if_reported(rows, integers, k):
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    if max(Counter(patterns(frame, ["a", "b"])).values()) < k:
        return  # nothing would be left
    asked = {"columns": ["a", "b"], "zeros": ["a", "b"], "small": "suppress", "max_left_out": 1}
    release = shoal.mask(frame, k=k, integers=integers, method="mdav", **asked)
    before = frame[release.kept.tolist()]
    said = 0
    for note in release.notes:
        if found := re.search(r"in column (\w+), (\d+) records? that (?:is|are) not zero", note):
            new = (release.data[found[1]] == 0) & (before[found[1]] != 0)
            assert new.sum() == int(found[2])
            said += int(found[2])
    kept = [(was == 0, now == 0) for name in "ab" for was, now in zip(before[name], release.data[name], strict=True)]
    assert all(now for was, now in kept if was)
    assert sum(now and not was for was, now in kept) == said


def test_a_mean_of_zero_is_reported():
    frame = pl.DataFrame({"a": [0, 0, -1, 1], "b": [1.0, 2.0, 3.0, 4.0]})
    release = shoal.mask(frame, k=2, columns=["a", "b"], zeros="a", integers="round")
    assert release.data["a"].to_list() == [0, 0, 0, 0]
    assert "in column a, 2 records that are not zero are also released as 0, the mean of the group" in release.notes


def test_whole_numbers_that_are_not_zero_are_not_rounded_to_zero():
    frame = pl.DataFrame({"a": [0, 0, 0, 1, 1, -2, 5, 5, -9], "b": [1.0, 1, 1, 9, 9, 9, 30, 30, 30]})
    release = shoal.mask(frame, k=3, columns=["a", "b"], zeros="a", integers="round", distance="b")
    assert release.data["a"].to_list() == [0, 0, 0] + [0] * 3 + [1] * 3  # means 0 and 1/3
    assert shoal.mask(frame, k=3, columns=["a", "b"], integers="round", distance="b").data["a"].to_list() == [0] * 9
    assert nearest(np.array([[0.5, -0.5, 1.5]]), np.array([True, True, True])).tolist() == [[1.0, -1.0, 2.0]]


def test_few_records_of_a_pattern_are_listed_or_left_out():
    frame = pl.DataFrame(
        {"a": [0, 0, 0, 1, 2, 3, 4], "b": [0, 1, 2, 1, 2, 3, 0], "c": [1.5, 2, 3, 4, 5, 6, None], "d": list("xxxxxxx")}
    )
    with pytest.raises(InputError) as refused:
        shoal.mask(frame, k=3, columns=["a", "b", "c"], zeros=["a", "b"], missing="group")
    assert str(refused.value) == (
        "Parameter 'zeros' separates records that are zero in different columns, but only 1 record of the table is "
        "zero in exactly: a, b, only 2 records of the table are zero in exactly: a, only 1 record of the table has "
        "missing values in exactly: c and is zero in exactly: b; k=3 are needed. Name fewer columns in 'zeros', use a "
        "smaller k, or suppress these records with small='suppress'."
    )
    asked = {"columns": ["a", "b", "c"], "zeros": ["a", "b"], "missing": "group", "small": "suppress"}
    release = shoal.mask(frame, k=3, max_left_out=1, **asked)
    assert release.kept.tolist() == [3, 4, 5]
    with pytest.raises(InputError, match="only 1 record of the table is zero in none of: a"):
        shoal.mask(frame[:4], k=2, columns=["a", "b"], zeros="a")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"zeros": "sale"}, "Parameter 'zeros' names column 'sale', which the table does not have. Did you mean"),
        ({"zeros": "sales", "columns": ["profit"]}, "names column 'sales', which is not masked. Name it in 'columns'"),
        ({"zeros": "region", "columns": ["sales", "region"]}, "column 'region' holds categories"),
        ({"zeros": ["sales", "sales"]}, "names column 'sales' twice"),
    ],
)
def test_refused_by_name(asked, message):
    with pytest.raises(InputError, match=re.escape(message)):
        shoal.mask(FIRMS, **{"k": 2, "columns": ["sales", "profit"], **asked})


def test_nothing_is_released_with_other_zeros(monkeypatch, tmp_path):
    count = verification.count_part

    def lose_a_zero(*arguments):
        arrays, counted = count(*arguments)
        return arrays, counted._replace(zeros=tuple(zeros - 1 for zeros in counted.zeros))

    monkeypatch.setattr(verification, "count_part", lose_a_zero)
    with pytest.raises(VerificationError, match="Column 'profit' has 3 zeros instead of 4"):
        shoal.mask(FIRMS, k=2, columns=["sales", "profit"], zeros="profit", output=tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_the_command_line_the_manifest_and_the_report(tmp_path):
    FIRMS.write_csv(tmp_path / "in.csv")
    done = command(
        "mask", "in.csv", "-k", 2, "-c", "sales", "-c", "profit", "--keep-zeros", "profit", "-o", "out.csv",
        "--manifest", "run.json", "--report", "page.html", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "zeros were kept (profit)" in done.stdout
    assert json.loads((tmp_path / "run.json").read_text())["parameters"]["zeros"] == ["profit"]
    page = (tmp_path / "page.html").read_text()
    assert "zeros were kept (profit)" in page
    assert "--keep-zeros profit" in page
    assert "same bytes" in command("mask", "--from-manifest", "run.json", cwd=tmp_path).stdout
    refused = command("mask", "in.csv", "-k", 2, "-c", "sales", "--keep-zeros", "profit", "-o", "no.csv", cwd=tmp_path)
    assert refused.returncode != 0
    assert "--keep-zeros names column 'profit', which is not masked" in refused.stderr


def test_inspect_proposes_to_keep_zeros(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 400),
            "gains": np.where(np.arange(400) % 50 < 2, rng.lognormal(8, 1, 400), 0.0),
            "rare": np.where(np.arange(400) % 200 < 1, 7.25, 0.0),
        }
    )
    frame.to_csv(tmp_path / "in.csv", index=False)
    found = shoal.inspect(tmp_path / "in.csv", k=5)
    words = found.command.split()
    assert ["--keep-zeros", "gains"] in [list(pair) for pair in pairwise(words)]
    assert "rare" not in words[words.index("--keep-zeros") + 1]  # two records cannot form a group of k
    assert command(*words[1:]).returncode == 0
    assert "zeros=['gains']" in shoal.inspect(frame, k=5).command


def test_adult_keeps_its_zeros(tmp_path):
    adult = pl.read_csv(reference_path("adult"))
    name = next(column for column in adult.columns if "loss" in column)
    release = shoal.mask(adult, k=5, columns=[next(c for c in adult.columns if "age" in c), name], zeros=name)
    assert patterns(release.data, [name]) == patterns(adult, [name])
