"""The verdict: every reason is given where it is true of the released table, and nowhere else."""

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import command

import shoal
from shoal.masking.release import GroupCount, UnitCount
from shoal.masking.revealing import revealing_columns
from shoal.masking.verdict import ADVICE, Reason, Verdict
from shoal.report.withheld_figures import published_result

N = 60
ASKED = {
    "k": 3, "columns": ["x", "y"], "missing": "group", "small": "error", "integers": "float", "decimals": "all",
    "rest": "keep", "max_left_out": 1, "shuffle": 1,
}  # fmt: skip


def table(**columns):
    """Return a table that is fine once x and y are masked: even values, no two far from each other."""
    rng = np.random.default_rng(0)
    plain = {"x": rng.permutation(N) + 1000.0, "y": rng.permutation(N) + 1000.5}
    return pl.DataFrame({**plain, **columns})


def masked(frame, **asked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.PrivacyWarning)
        return shoal.mask(frame, **{**ASKED, **asked})


def reasons(release):
    return {(reason.level, reason.name): reason for reason in release.verdict.reasons}


def test_a_release_without_reasons_is_fine():
    release = masked(table())
    assert release.verdict == Verdict(())
    assert release.verdict.level == "fine"
    assert release.rows()[0] == ("verdict", f"FINE: {ADVICE['fine']}")
    assert release.rows()[1][0] == "records"


def is_identifier(release):
    (name,) = release.identifying
    assert release.data[name].is_unique().all()
    return f"column {name} looks like an identifier and is in the release: ", 1


def is_not_anonymous(release):
    assert release.data.select("x", "y").is_unique().any()
    return "NOT k-anonymous for whole records", 2


def is_singled_out(release):
    alone = int(release.data.select(release.outsider).is_unique().sum())
    return (
        f"{alone} of {N} records {'is' if alone == 1 else 'are'} unique in the columns that an outsider can know: ",
        alone,
    )


def is_homogeneous(release):
    groups = release.data.group_by("x", "y").agg(pl.col("ill").n_unique())
    alike = int((groups["ill"] == 1).sum())
    remedy = "use diversity=2 for two values in every group, or leave columns out with 'identifiers'"
    return f"disclosed: ill in {alike} of {len(groups)} groups; {remedy}", alike


def is_lost(release):
    # The means of groups keep their part of the variance.
    kept = [(release.data[name].var() / masked_in_order[name].var()) for name in ("x", "y")]
    assert 100 * (1 - np.mean(kept)) > 50
    return "more than half of the information", pytest.approx(100 * (1 - np.mean(kept)))


def is_left_out(release):
    gone = N - len(release.data)
    return f"{gone} of {N} records ({100 * gone / N:.1f} %) were suppressed", gone


def is_small(release):
    return "k is 2, below the usual minimum of 3", 2


def is_ordered(release):
    groups = masked_in_order.select("x", "y").with_columns(label=pl.Series(release.labels)).group_by("label").mean()
    for name in ("x", "y"):  # the values of each record are in its row
        means = dict(groups.select("label", name).iter_rows())
        assert release.data[name].to_list() == pytest.approx([means[label] for label in release.labels.tolist()])
    return "the records are in the order of the original", N


def has_unique_weights(release):
    alone = int(release.data["w"].is_unique().sum())
    return f"{100 * alone / N:.0f} % of the records have a unique weight", alone


def is_revealing(release):
    assert release.data.select("code", "z").n_unique() > 1
    return "unchanged column code reveals masked column x: their original values correspond one to one", 1


def is_dominated(release):
    return f"x in {release.dominated['x'].groups} of {release.groups} groups", release.dominated["x"].groups


def is_concentrated(release):
    groups = release.data.group_by("x", "y").agg(pl.len(), pl.col("ill").unique_counts().max().alias("top"))
    most = int(((groups["top"] < groups["len"]) & (10 * groups["top"] >= 9 * groups["len"])).sum())
    return f"ill in {most} of {len(groups)} groups", most


def has_unique_units(release):
    units = release.data.group_by("person").agg(pl.struct("x", "y").sort()).get_column("x").to_list()
    alone = sum(units.count(unit) == 1 for unit in units)
    are = "is" if alone == 1 else "are"
    return f"{alone} of {len(units)} units (person) {are} unique by their records taken together", alone


masked_in_order = table()
CODES = [f"c{i % 12}" for i in range(N)]
TWELVE = {"x": np.arange(N) % 12 + 1000.0}
ILL = {"ill": ["flu", "gout"] * (N // 2)}
ONE_ILL = {"ill": ["flu"] * 3 + ["flu", "gout"] * ((N - 4) // 2) + ["gout"]}
SENSITIVE = {"confidential": ["ill"], "diversity": 2}
TENS = {"k": 10, "columns": ["x"], "method": "fixed", "confidential": ["ill"], "shuffle": 1}
SORTED = {"x": np.arange(N) + 1000.0, "y": np.zeros(N)}
PERSONS = {"person": np.repeat(np.arange(N // 2), 2)}
CASES = {
    ("stop", "identifier"): (
        (table(mail=[f"p{i}@example.org" for i in range(N)]), {"keep": ["mail"]}, is_identifier),
        (table(mail=["-"] * N), {"keep": ["mail"]}),
    ),
    ("stop", "k-anonymity"): (
        (table(), {"method": "individual-ranking"}, is_not_anonymous),
        (table(), {"method": "individual-ranking", "columns": ["x"], "identifiers": ["y"]}),
    ),
    ("stop", "singled out"): (
        (table(z=["rare", *["often"] * (N - 1)]), {"keep": ["z"]}, is_singled_out),
        (table(z=["rare", *["often"] * (N - 1)]), {"confidential": ["z"]}),
    ),
    ("stop", "sensitive"): (
        (table(ill=["flu"] * (N - 10) + ["gout"] * 10), {"confidential": ["ill"]}, is_homogeneous),
        (table(**ILL), SENSITIVE),
    ),
    ("stop", "information loss"): ((table(), {"k": 30}, is_lost), (table(), {"k": 3})),
    ("stop", "suppressed"): (
        (table(x=[None] * 4 + list(range(N - 4))), {"missing": "drop"}, is_left_out),
        (table(x=[None] * 3 + list(range(N - 3))), {"missing": "drop"}),
    ),
    ("look", "small k"): ((table(), {"k": 2}, is_small), (table(), {"k": 3})),
    ("look", "record order"): ((masked_in_order, {"shuffle": None}, is_ordered), (masked_in_order, {"shuffle": 0})),
    ("look", "weights"): (
        (table(w=[1.5] * 29 + [2.0 + i / 100 for i in range(31)]), {"weights": "w"}, has_unique_weights),
        (table(w=[1.5] * 30 + [2.0 + i / 100 for i in range(30)]), {"weights": "w"}),
    ),
    ("look", "revealing"): (
        (table(**TWELVE, code=CODES, z=["-"] * N), {"keep": ["code", "z"]}, is_revealing),
        (table(**TWELVE, code=[*CODES[1:], "c0"], z=["-"] * N), {"keep": ["code", "z"], "columns": ["y"], "by": "x"}),
    ),
    ("look", "dominated"): (
        (table(x=[1e6, *range(N - 1)]), {}, is_dominated),
        (table(x=[1e6, *range(N - 1)]), {"aggregate": "median"}),
    ),
    ("look", "sensitive"): (
        (table(**SORTED, ill=(["flu"] * 9 + ["gout"]) * 6), TENS, is_concentrated),
        (table(**SORTED, ill=(["flu"] * 8 + ["gout"] * 2) * 6), TENS),
    ),
    ("look", "units"): (
        (table(**PERSONS), {"unit": "person"}, has_unique_units),
        (table(**PERSONS), {"unit": "person", "identifiers": ["person"]}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_reason_is_given_where_it_is_true_of_the_release(case):
    (frame, asked, truth), _ = CASES[case]
    release = masked(frame, **asked)
    words, figure = truth(release)
    reason = reasons(release)[case]
    assert words in reason.sentence
    assert reason.figure == figure
    assert reason.figure > 0
    assert (reason.level, reason.sentence) in release.rows()
    assert release.verdict.level == ("stop" if case[0] == "stop" else release.verdict.reasons[0].level)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_no_reason_is_given_where_it_is_false(case):
    _, (frame, asked) = CASES[case]
    assert case not in reasons(masked(frame, **asked))


def test_the_strictest_reason_decides_and_comes_first():
    release = masked(table(z=range(N)), k=2, keep=["z"], shuffle=None)
    levels = [reason.level for reason in release.verdict.reasons]
    assert levels == sorted(levels, reverse=True)
    assert set(levels) == {"stop", "look"}
    assert release.verdict.level == "stop"
    assert str(release).startswith(str(release.verdict))
    assert str(release.verdict).startswith("verdict           STOP: do not release")
    assert "<th style='text-align:left'>stop</th>" in release.verdict._repr_html_()
    look = replace(release, singled_out=0, identifying={})
    assert look.verdict.level == "look"
    assert str(look).startswith("verdict           LOOK: ")


def test_limits_are_those_of_the_documentation():
    release = masked(table())

    def names(**figures):
        changed = replace(release, **figures)
        return [reason.name for reason in changed.verdict.reasons]

    assert names(loss=50.0) == []
    assert names(loss=50.1) == ["information loss"]
    assert names(left_out=3) == []  # 3 of 63
    assert names(left_out=4) == ["suppressed"]  # 4 of 64
    assert names(unique_weights=30, parameters={**release.parameters, "weights": "w"}) == []
    assert names(unique_weights=31, parameters={**release.parameters, "weights": "w"}) == ["weights"]
    assert names(unique_units=UnitCount(0, 9), parameters={**release.parameters, "unit": "u"}) == []
    assert names(unique_units=UnitCount(1, 9), parameters={**release.parameters, "unit": "u"}) == ["units"]
    ill = {"homogeneous": {"ill": GroupCount(2, 9)}, "concentrated": {"ill": GroupCount(2, 9)}}
    assert names(**ill) == ["sensitive"]
    assert names(**{**ill, "concentrated": {"ill": GroupCount(3, 9)}}) == ["sensitive", "sensitive"]


def test_reasons_are_plain_values():
    reason = reasons(masked(table(), k=2))["look", "small k"]
    assert reason == Reason("look", "small k", reason.sentence, 2)
    assert isinstance(reason.sentence, str)


def test_the_verdict_does_not_disclose_a_withheld_loss():
    frame = table(x=[1e9, 1.0, *[0.0] * (N - 2)], y=[1e9, 1.0, *[0.0] * (N - 2)])
    release = masked(frame, k=4)
    assert release.loss > 50
    published = release.published()
    result = published_result({}, release, published)
    (figure,) = (reason["figure"] for reason in result["verdict"]["reasons"] if reason["name"] == "information loss")
    assert result["loss"] is None
    assert figure is None


def test_the_command_begins_with_the_verdict(tmp_path):
    table().write_csv(tmp_path / "in.csv")
    for options, level in ((["--shuffle"], "FINE"), ([], "LOOK"), (["-m", "individual-ranking"], "STOP")):
        done = command("mask", "in.csv", "-k", 3, "-c", "x", "-c", "y", "-o", f"{level}.csv", *options, cwd=tmp_path)
        assert done.returncode == 0
        assert done.stdout.startswith(f"verdict           {level}: {ADVICE[level.lower()]}\n")
    assert "may reveal some of them; use --shuffle\n" in done.stdout


@pytest.mark.parametrize(
    ("unchanged", "masked_values", "reveals"),
    [
        (["a", "b"] * 4, [1.5, 7.0] * 4, True),
        (["a", "b"] * 4, [1.5, 7.0] * 3 + [1.5, 1.5], False),
        (["a", "b", "a", "a"] * 2, [1.5, 7.0] * 4, False),
        ([5] * 8, [1.5] * 8, False),  # there is nothing to reveal
        ([None, 2] * 4, [1.5, 7.0] * 4, True),
        (list(range(8)), [2.0 * i for i in range(8)], True),  # another unit
        (list(range(8)), [-2.0 * i for i in range(8)], True),
        (list(range(8)), [3.0, 1.0, 2.0, 8.0, 5.0, 6.0, 7.0, 4.0], False),  # all differ, and no more
    ],
)
def test_a_column_reveals_another_if_equivalent(unchanged, masked_values, reveals):
    originals = pl.DataFrame({"0": ["-"] * 8, "1": unchanged, "2": [0.5] * 8, "3": masked_values})
    assert revealing_columns(originals, ["z", "code"], ["y", "x"]) == ({"code": "x"} if reveals else {})


def test_the_remedy_for_shared_sensitive_values_resolves_the_reason(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"age": rng.integers(20, 80, 90), "religion": rng.choice(["a", "b", "c"], 90, p=[0.8, 0.1, 0.1])}
    )
    frame.write_csv(tmp_path / "in.csv")
    words = ["mask", tmp_path / "in.csv", "-k", 3, "-o", tmp_path / "out.csv"]
    first = command(*words).stdout
    assert "share one sensitive value, which is thereby disclosed: religion in" in first
    assert "; use --diversity 2 for two values in every group, or leave columns out with --drop\n" in first
    second = command(*words, "--diversity", 2)
    assert second.returncode == 0
    assert "thereby disclosed" not in second.stdout
