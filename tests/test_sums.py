"""Sum rules in releases, and whole numbers that satisfy them."""

import json
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import command
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError, VerificationError
from shoal.masking import verification
from shoal.masking.sums import add_up, in_order, keep_total, read_rule, round_together


def firms(n=120, *, whole=False, seed=0):
    rng = np.random.default_rng(seed)
    wages, capital, tax = (rng.lognormal(3, 1, n) for _ in range(3))
    if whole:
        wages, capital, tax = (np.floor(column).astype(np.int64) for column in (wages, capital, tax))
    total = wages + capital
    return pl.DataFrame(
        {"wages": wages, "capital": capital, "total": total, "tax": tax, "net income": total - tax}
    ).with_columns(region=pl.Series(["n", "s"] * (n // 2)), weight=pl.Series(rng.uniform(1, 3, n)))


RULES = ["`net income` = total - tax", "total = wages + capital"]
COLUMNS = ["wages", "capital", "total", "tax", "net income"]


def assert_rules_hold(data):
    assert (data["total"] == data["wages"] + data["capital"]).all()
    assert (data["net income"] == data["total"] - data["tax"]).all()


# Rules


@pytest.mark.parametrize(
    ("text", "columns", "signs"),
    [
        ("total = wages + capital", ["total", "wages", "capital"], [1, 1]),
        ("profit=income-cost", ["profit", "income", "cost"], [1, -1]),
        ("`net income` = \"a-b\" - 'c + d' + e", ["net income", "a-b", "c + d", "e"], [1, -1, 1]),
        ("x = - y + 2001", ["x", "y", "2001"], [-1, 1]),
        ("a = b", ["a", "b"], [1]),
    ],
)
def test_rules_are_read(text, columns, signs):
    rule = read_rule(text)
    assert rule.columns == columns
    assert [sign for sign, _ in rule.parts] == signs


@pytest.mark.parametrize(
    "text", ["", "total", "total =", "a = b c", "a + b = c", "a = b +", "a = b = c", "= a", "a = `b", 5]
)
def test_text_that_is_not_a_rule_is_refused(text):
    with pytest.raises(InputError, match="must contain rules such as 'total = wages"):
        shoal.mask(firms(), k=3, columns=COLUMNS, sums=[text])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"sums": "total = wages + wages"}, "names column 'wages' twice in 'total = wages + wages'"),
        (
            {"sums": "total = wage + capital"},
            "Parameter 'sums' names column 'wage', which the table does not have. Did",
        ),
        ({"sums": RULES[1], "columns": ["total", "tax"]}, "column 'wages' is not masked. Name it in 'columns' too."),
        (
            {"sums": RULES[1], "columns": ["tax"]},
            "nor is any other column of the rule. Leave the rule out: unchanged columns keep it.",
        ),
        ({"sums": ["total = wages + capital", "total = tax + `net income`"]}, "two rules for column 'total'"),
        ({"sums": ["total = wages + capital", "wages = total - capital"]}, "are circular"),
        ({"sums": "tax = wages + region", "columns": [*COLUMNS, "region"]}, "column 'region' holds categories"),
        ({"sums": RULES, "aggregate": "median"}, "'sums' requires aggregate='mean', got aggregate='median'"),
        ({"sums": RULES, "aggregate": "medoid"}, "'sums' requires aggregate='mean', got aggregate='medoid'"),
        (
            {"sums": RULES, "method": "individual-ranking"},
            "groups every column on its own, which breaks the rules of 'sums'",
        ),
    ],
)
def test_refused_by_name(asked, message):
    with pytest.raises(InputError, match=re.escape(message)):
        shoal.mask(firms(), **{"k": 3, "columns": COLUMNS, **asked})


def test_records_that_break_a_rule_are_counted():
    frame = firms(whole=True)
    wrong = frame.with_columns(total=pl.col("total") + pl.Series([int(i in (16, 40)) for i in range(120)]))
    with pytest.raises(InputError) as refused:
        shoal.mask(wrong, k=3, columns=COLUMNS, sums=RULES[1])
    assert str(refused.value) == (
        "Parameter 'sums' contains 'total = wages + capital', but 2 records break it. In record 17, the first, column "
        "'total' differs from the sum by 1, and whole numbers must agree exactly. Correct the values, make one of them "
        "missing, or leave the rule out."
    )


def test_rounding_of_floats_breaks_no_rule_but_one_of_many_does():
    huge = pl.DataFrame({"t": [10**15 + 1, 10**15, 5, 5], "a": [10**15, 10**15, 5, 5], "b": [0, 0, 0, 0]})
    message = r"but 1 record breaks it\. In record 1, column 't' differs from the sum by 1, and whole numbers"
    with pytest.raises(InputError, match=message):
        shoal.mask(huge, k=2, columns=["t", "a", "b"], sums="t = a + b")
    decimal = pl.DataFrame({"t": [0.3, 0.7, 0.3, 0.6], "a": [0.1, 0.1, 0.1, 0.2], "b": [0.2, 0.6, 0.2, 0.4]})
    assert shoal.mask(decimal, k=2, columns=["t", "a", "b"], sums="t = a + b").records == 4
    single = firms().select("wages", "capital", "total").cast(pl.Float32)
    release = shoal.mask(single, k=3, columns=COLUMNS[:3], sums=RULES[1])
    assert release.data["total"].dtype == pl.Float32
    assert (release.data["total"] == release.data["wages"] + release.data["capital"]).all()


def cents(n=200, seed=3):
    """Totals in cents, rounded on their own: many differ by a cent from the sum of their rounded parts."""
    wages, capital = np.random.default_rng(seed).lognormal(3, 1, (2, n))
    return pl.DataFrame({"wages": wages.round(2), "capital": capital.round(2), "total": (wages + capital).round(2)})


CENTS = {"k": 3, "columns": COLUMNS[:3], "sums": RULES[1]}


@pytest.mark.parametrize("file", [False, True])
def test_totals_may_differ_from_the_sum_by_rounding(tmp_path, file):
    frame = cents()
    off = (frame["total"] - frame["wages"] - frame["capital"]).abs().round(6)
    assert (off == 0.01).any()
    asked = CENTS
    if file:
        frame.write_parquet(tmp_path / "in.parquet", row_group_size=60)
        asked = {**CENTS, "engine": "local", "block": 60, "output": tmp_path / "out.parquet"}
    release = shoal.mask(tmp_path / "in.parquet" if file else frame, **asked)
    data = pl.read_parquet(tmp_path / "out.parquet") if file else release.data
    assert (data["total"] == data["wages"] + data["capital"]).all()


@pytest.mark.parametrize(("off", "refused"), [(0.01, False), (0.02, True), (-0.02, True), (1, True)])
def test_no_more_than_rounding_of_every_column_is_accepted(off, refused):
    frame = cents()
    wrong = frame.with_columns(
        total=(pl.col("wages") + pl.col("capital") + pl.Series([off * (i == 16) for i in range(200)])).round(2)
    )
    if not refused:
        assert shoal.mask(wrong, **CENTS).records == 200
        return
    with pytest.raises(InputError) as refusal:
        shoal.mask(wrong, **CENTS)
    assert str(refusal.value) == (
        "Parameter 'sums' contains 'total = wages + capital', but 1 record breaks it. In record 17, column 'total' "
        f"differs from the sum by {abs(off):g}, more than the rounding of its columns explains (0.015). Correct the "
        "values, make one of them missing, or leave the rule out."
    )


def test_whole_columns_are_exact_and_columns_with_all_digits_explain_nothing():
    frame = cents().with_columns(capital=pl.Series(range(200)))
    total = frame["wages"] + frame["capital"]
    for off, refused in ((0.01, False), (0.02, True), (1.0, True)):
        wrong = frame.with_columns(total=(total + off * (pl.Series(range(200)) == 5)).round(2))
        if refused:
            with pytest.raises(InputError, match=r"more than the rounding of its columns explains \(0\.01\)"):
                shoal.mask(wrong, **CENTS)
        else:
            assert shoal.mask(wrong, **CENTS, integers="float").records == 200
    digits = firms(200).select(COLUMNS[:3])
    wrong = digits.with_columns(total=pl.col("total") + 1e-6 * (pl.Series(range(200)) == 5))
    with pytest.raises(
        InputError, match=r"differs from the sum by 1e-06, more than the rounding of its columns explains \(8"
    ):
        shoal.mask(wrong, **CENTS)


@given(
    parts=st.lists(st.tuples(*[st.integers(-(10**6), 10**6)] * 3), min_size=4, max_size=12),
    decimals=st.integers(1, 4),
)
@settings(deadline=None, max_examples=25)
def test_numbers_rounded_to_any_decimals_break_no_rule(parts, decimals):
    exact = np.array(parts) / 7777.0
    columns = {name: column.round(decimals) for name, column in zip("abc", exact.T, strict=True)}
    frame = pl.DataFrame({**columns, "t": (exact[:, 0] - exact[:, 1] + exact[:, 2]).round(decimals)})
    # The last record gives every column its decimals: whole columns are exact.
    frame = pl.concat([frame, pl.DataFrame({name: [10.0**-decimals] for name in "abct"})])
    shoal.mask(frame, 2, columns=list("abct"), sums="t = a - b + c", method="mdav")


# Releases


@pytest.mark.parametrize("asked", [{}, {"by": "region"}, {"weights": "weight"}, {"method": "v-mdav"}, {"block": 40}])
@pytest.mark.parametrize("integers", ["float", "round"])
@pytest.mark.parametrize("whole", [False, True])
def test_sums_hold_in_the_release(asked, integers, whole):
    frame = firms(whole=whole)
    release = shoal.mask(frame, k=3, columns=COLUMNS, sums=RULES, integers=integers, **asked)
    assert_rules_hold(release.data)
    for rule in RULES:
        assert f"the sum {rule} holds in the release: every record was checked" in release.notes
    if whole and integers == "round":
        assert all(release.data[name].dtype == pl.Int64 for name in COLUMNS)
    plain = shoal.mask(frame, k=3, columns=COLUMNS, integers=integers, decimals="all", **asked)  # as sums have them
    np.testing.assert_array_equal(release.labels, plain.labels)
    for name in COLUMNS:
        bound = 2.0 if whole and integers == "round" else 1e-9
        assert (release.data[name] - plain.data[name]).abs().max() <= bound


def test_controlled_rounding_by_hand():
    # Parts 0.4, 0.4, 0.4 of 1.2: rounded one by one they make 0. One of them goes up.
    values = np.array([[1.2, 0.4, 0.4, 0.4]])
    rule = read_rule("0 = 1 + 2 + 3").renamed({str(i): i for i in range(4)})
    rounded = add_up(
        round_together(values, np.floor(values), np.ceil(values), np.rint(values), [rule]), [rule], values[0] < 0
    )
    assert rounded.tolist() == [[1.0, 1.0, 0.0, 0.0]]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(-40, 40)), min_size=1, max_size=6),
    st.integers(2, 7),
)
def test_controlled_rounding_of_one_rule_is_the_best(parts, size):
    """No other way of rounding every part up or down changes parts and total less."""
    means = [Fraction(value, size) for _, value in parts]
    signs = [sign for sign, _ in parts]
    total = sum(sign * mean for sign, mean in zip(signs, means, strict=True))
    names = {str(i): i for i in range(len(parts) + 1)}
    text = "0 =" + "".join(f" {'+' if sign > 0 else '-'} {i}" for i, sign in enumerate(signs, start=1))
    rule = read_rule(text).renamed(names)
    values = np.array([[float(mean) for mean in (total, *means)]])
    found = round_together(values, np.floor(values), np.ceil(values), np.rint(values), [rule])[0, 1:]

    def moved(whole):
        sums = sum(sign * value for sign, value in zip(signs, whole, strict=True))
        return sum((value - mean) ** 2 for value, mean in zip(whole, means, strict=True)) + (sums - total) ** 2

    best = min(moved(whole) for whole in product(*({mean.__floor__(), mean.__ceil__()} for mean in means)))
    assert float(moved([int(value) for value in found])) == pytest.approx(float(best), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(-30, 30)] * 3, st.booleans()), min_size=6, max_size=40),
    st.sampled_from(["float", "round"]),
)
def test_chains_hold_whatever_the_numbers(rows, integers):
    frame = pl.DataFrame(
        {
            "wages": [row[0] for row in rows],
            "capital": [row[1] for row in rows],
            "total": [row[0] + row[1] for row in rows],
            "tax": [row[2] for row in rows],
            "net income": [row[0] + row[1] - row[2] for row in rows],
        }
    ).with_columns(tax=pl.when(pl.Series([row[3] for row in rows])).then(None).otherwise("tax"))
    # Digits of the rule's columns are kept, so those of the columns alone are too.
    asked = {"columns": frame.columns, "missing": "group", "small": "suppress", "max_left_out": 1, "method": "mdav"}
    asked["decimals"] = "all"
    release = shoal.mask(frame, k=2, sums=RULES, integers=integers, **asked)
    assert (release.data["total"] - release.data["wages"] - release.data["capital"]).abs().max() <= 1e-12
    present = release.data.filter(pl.col("tax").is_not_null() & pl.col("tax").is_not_nan())
    off = (present["net income"] - present["total"] + present["tax"]).abs().max()
    assert off is None or off <= 1e-12
    missing = np.array([row[3] for row in rows])[release.kept]
    assert release.data["net income"].is_null().sum() == 0
    # Where the tax is missing, the total of the rule is an independent number, rounded like any other.
    alone = shoal.mask(frame, k=2, integers=integers, **asked)
    assert release.data["net income"].filter(missing).to_list() == alone.data["net income"].filter(missing).to_list()


def test_a_total_that_is_missing_stays_missing():
    frame = firms(60, whole=True).with_columns(total=pl.when(pl.int_range(60) % 3 > 0).then("total"))
    release = shoal.mask(frame, k=3, columns=COLUMNS[:3], sums=RULES[1], missing="group", integers="round")
    assert release.data["total"].is_null().to_list() == frame["total"].is_null().to_list()


def test_whole_totals_of_decimal_parts_are_refused_when_rounded():
    frame = pl.DataFrame({"a": [0.5, 1.5, 2.5, 3.5], "b": [0.5, 1.5, 0.5, 0.5], "t": [1, 3, 3, 4]})
    with pytest.raises(InputError, match="column 't' holds whole numbers and column 'a' does not"):
        shoal.mask(frame, k=2, columns=["a", "b", "t"], sums="t = a + b", integers="round")
    assert shoal.mask(frame, k=2, columns=["a", "b", "t"], sums="t = a + b", integers="float").records == 4


def test_sums_with_zeros():
    frame = firms(whole=True).with_columns(capital=pl.when(pl.int_range(120) % 2 == 0).then(0).otherwise("capital"))
    frame = frame.with_columns(total=pl.col("wages") + pl.col("capital"))
    release = shoal.mask(frame, k=3, columns=COLUMNS[:3], sums=RULES[1], zeros="capital", integers="round")
    assert ((release.data["capital"] == 0) == (frame["capital"] == 0)).all()
    assert (release.data["total"] == release.data["wages"] + release.data["capital"]).all()


def test_columns_of_an_array_are_named_by_their_numbers():
    parts = np.random.default_rng(0).normal(size=(40, 2))
    release = shoal.mask(np.column_stack([parts, parts.sum(axis=1)]), k=4, sums="2 = 0 + 1")
    np.testing.assert_array_equal(release.data[:, 2], release.data[:, 0] + release.data[:, 1])


def test_nothing_is_released_that_breaks_a_rule(monkeypatch, tmp_path):
    count = verification.count_part

    def break_it(*arguments):
        arrays, counted = count(*arguments)
        return arrays, counted._replace(broken=(3,))

    monkeypatch.setattr(verification, "count_part", break_it)
    with pytest.raises(VerificationError, match="Rule 'total = wages \\+ capital' is broken by 3 records"):
        shoal.mask(firms(), k=3, columns=COLUMNS, sums=RULES[1], output=tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_rule_is_checked_as_it_was_written(monkeypatch):
    """If totals are not recomputed from rounded parts, the sum rule is broken."""
    monkeypatch.setattr("shoal.masking.aggregate.add_up", lambda *given: given[0])
    monkeypatch.setattr("shoal.masking.aggregate.round_together", lambda *given: given[3])
    with pytest.raises(VerificationError, match="is broken by"):
        shoal.mask(firms(whole=True), k=3, columns=COLUMNS, sums=RULES, integers="round")


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_the_command_line_and_the_manifest(tmp_path, ending):
    frame = firms()
    if ending == "xlsx":
        pytest.importorskip("fastexcel")
        frame.write_excel(tmp_path / "in.xlsx")
    else:
        getattr(frame, f"write_{ending}")(tmp_path / f"in.{ending}")
    done = command(
        "mask", f"in.{ending}", "-k", 3, *(word for name in COLUMNS for word in ("-c", name)), "--sum", RULES[0],
        "--sum", RULES[1], "-o", f"out.{ending}", "--manifest", "run.json", "--report", "page.html", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"the sum {RULES[1]} holds in the release" in done.stdout
    assert json.loads((tmp_path / "run.json").read_text())["parameters"]["sums"] == RULES
    page = (tmp_path / "page.html").read_text()
    assert "the sum total = wages + capital holds in the release" in page
    assert "--sum" in page
    if ending != "xlsx":
        assert_rules_hold(getattr(pl, f"read_{ending}")(tmp_path / f"out.{ending}"))
        assert "same bytes" in command("mask", "--from-manifest", "run.json", cwd=tmp_path).stdout


def test_rules_of_other_kinds_of_tables():
    frame = pd.DataFrame(firms(whole=True).to_dict(as_series=False))
    release = shoal.mask(frame, k=3, columns=COLUMNS, sums=RULES, integers="round")
    assert_rules_hold(release.data)
    assert [rule.total for rule in in_order([read_rule(text) for text in RULES])] == ["total", "net income"]


# Totals of columns


def test_totals_by_hand():
    # Six records add up to 3; 5 + 5 + 4 records to 6, which none of 0, 4, 5, 9, 10 is: 5 is nearest, at the least cost.
    assert keep_total(np.array([0.5, 0.5]), np.array([3, 3]), np.zeros(2), np.ones(2), 3).tolist() in ([0, 1], [1, 0])
    three = np.array([0.4, 0.4, 0.5]), np.array([5, 5, 4]), np.zeros(3), np.ones(3)
    assert keep_total(*three, 6).tolist() == [1, 0, 0]
    # Both up would be 14, and no number may leave its range.
    assert keep_total(np.array([1.5]), np.array([2]), np.array([1]), np.array([2]), 9).tolist() == [2]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.integers(-4, 4), min_size=2, max_size=5), min_size=1, max_size=5))
def test_totals_are_nearest_at_the_least_cost(groups):
    means, sizes = np.array([np.mean(group) for group in groups]), np.array([len(group) for group in groups])
    low, high = (np.array([end(group) for group in groups]) for end in (min, max))
    total = sum(map(sum, groups))

    def quality(values):
        return abs(total - int(sizes @ values)), float(sizes @ np.square(values - means))

    found = keep_total(means, sizes, low, high, total)
    assert ((low <= found) & (found <= high)).all()
    ways = product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))
    off, cost = min((off, round(cost, 9)) for off, cost in map(quality, map(np.array, ways)))
    assert quality(found)[0] == off
    assert quality(found)[1] == pytest.approx(cost, abs=1e-6)


def test_totals_of_many_groups_are_exact():
    rng = np.random.default_rng(0)
    for sizes in (rng.integers(3, 6, 50_000), np.array([100] * 99 + [137]), np.array([3, 5000, 7, 4] * 9)):
        means = np.rint(rng.normal(50, 20, len(sizes)) * sizes) / sizes
        total = int(np.rint(sizes @ means))
        near = np.floor(means).astype(np.int64) - 60, np.ceil(means).astype(np.int64) + 60
        found = keep_total(means, sizes, *near, total)
        assert sizes @ found == total
    # Values far from the nearest numbers are approached first.
    found = keep_total(np.zeros(9000), np.full(9000, 4), np.zeros(9000), np.full(9000, 9), 4 * 50_000)
    assert 4 * found.sum() == 4 * 50_000


@pytest.mark.parametrize("asked", [{}, {"by": "region"}, {"block": 40}, {"method": "individual-ranking"}])
@pytest.mark.filterwarnings("ignore::shoal.NotKAnonymousWarning")
def test_the_note_shows_remaining_differences_of_totals(asked):
    frame = firms(122, whole=True)
    release = shoal.mask(frame, k=3, columns=COLUMNS, integers="totals", **asked)
    note = next(note for note in release.notes if note.startswith("totals of integer columns, counted again: "))
    for name in COLUMNS:
        off = release.data[name].sum() - frame[name].sum()
        assert f"{name} {f'off by {off:+d}' if off else 'exact'}" in note
        assert release.data[name].dtype == pl.Int64
        assert ((release.data[name] - frame[name].mean()).abs().max()) <= (frame[name] - frame[name].mean()).abs().max()
    rounded = shoal.mask(frame, k=3, columns=COLUMNS, integers="round", **asked)
    assert sum(abs(release.data[name].sum() - frame[name].sum()) for name in COLUMNS) < sum(
        abs(rounded.data[name].sum() - frame[name].sum()) for name in COLUMNS
    )


def test_strata_keep_totals_of_their_own():
    frame = firms(122, whole=True)
    release = shoal.mask(frame, k=3, columns=["wages"], by="region", integers="totals", method="mdav")
    for region in "ns":  # 61 records are 19 groups of 3 and one of 4
        before, after = (table.filter(region=region)["wages"].sum() for table in (frame, release.data))
        assert before == after


def test_totals_with_sums():
    frame = firms(122, whole=True)
    release = shoal.mask(frame, k=3, columns=COLUMNS, sums=RULES, integers="totals")
    assert_rules_hold(release.data)
    off = {name: release.data[name].sum() - frame[name].sum() for name in COLUMNS}
    assert off["total"] == off["wages"] + off["capital"]
    assert off["wages"] == off["capital"] == off["tax"] == 0


def test_totals_with_zeros_and_missing_cells():
    frame = firms(120, whole=True).with_columns(
        tax=pl.when(pl.int_range(120) % 4 > 0).then(pl.col("tax") % 3),
        capital=pl.when(pl.int_range(120) % 3 == 0).then(0).otherwise(pl.col("capital") % 2 + 1),
    )
    release = shoal.mask(
        frame, k=3, columns=["capital", "tax"], zeros=["capital", "tax"], missing="group", integers="totals"
    )
    for name in ("capital", "tax"):
        assert ((release.data[name] == 0) == (frame[name] == 0)).all()
        assert release.data[name].is_null().to_list() == frame[name].is_null().to_list()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"weights": "weight"},
            "integers='totals' requires means without weights, got 'weights'",
        ),
        ({"aggregate": "median"}, "got aggregate='median'. Use integers='round'"),
        (
            {"sums": RULES, "zeros": "total"},
            "'zeros' names column 'total', which integers='totals' computes as the sum of rounded columns",
        ),
    ],
)
def test_totals_are_refused_by_name(asked, message):
    with pytest.raises(InputError, match=re.escape(message)):
        shoal.mask(firms(whole=True), k=3, columns=COLUMNS, integers="totals", **asked)


def test_totals_too_large_are_refused():
    frame = pl.DataFrame({"a": [1e140, 2e140, 3e140, 4e140], "b": [1, 2, 3, 4]})
    with pytest.raises(InputError, match="the values of column 'a' are too large, up to 4e"):
        shoal.mask(frame, k=2, columns=["a", "b"], integers="totals")


def test_totals_on_the_command_line(tmp_path):
    firms(122, whole=True).write_csv(tmp_path / "in.csv")
    done = command(
        "mask", "in.csv", "-k", 3, "-c", "wages", "-c", "tax", "--integers", "totals", "-o", "out.csv",
        "--manifest", "run.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "totals of integer columns, counted again: wages exact, tax exact" in done.stdout
    assert pl.read_csv(tmp_path / "out.csv")["wages"].sum() == pl.read_csv(tmp_path / "in.csv")["wages"].sum()
    assert "same bytes" in command("mask", "--from-manifest", "run.json", cwd=tmp_path).stdout
