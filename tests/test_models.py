"""Rules for groups, l-diversity and t-closeness: measured, searched for, and kept in the release."""

import os
import subprocess
import sys
from itertools import combinations
from math import exp, inf, log
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import slow
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.optimize.random import seeded
from shoal.algorithms.registry import EFFORTS
from shoal.assessment.disclosure import attribute
from shoal.core.compiler import kernel
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, sse
from shoal.core.progress import STOP, fresh_state
from shoal.kernels.neighbours import nearest
from shoal.promises import rule_enforcement
from shoal.promises.closeness import Closeness, least_size, with_masses
from shoal.promises.closeness_first import closeness_first
from shoal.promises.constrained_search import anneal_with_rules
from shoal.promises.diversity import Diversity
from shoal.promises.k_first import k_first
from shoal.promises.promise import ConfidentialColumn
from shoal.promises.rule_enforcement import Search, keep_rules, rehearse_rules, repair
from shoal.promises.rules import broken, changed, group_shortfall, make_rules, reached_by

MODELS = [
    Diversity(2), Diversity(3), Diversity(2, "entropy"), Diversity(2.5, "entropy"), Diversity(2, "recursive", 2.0),
    Diversity(3, "recursive"), Closeness(0.05), Closeness(0.2), Closeness(0.4),
]  # fmt: skip


def column(values, ordered=True):
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ConfidentialColumn(codes.astype(np.int64), counts, ordered)


def reached(values, groups, model, ordered=True):
    rules = make_rules([column(values, ordered)], [(0, model)], len(values))
    return reached_by(rules, 0, np.asarray(groups))[1]


def whole(Z):
    return [(np.arange(len(Z)), np.arange(Z.shape[1]))]


def random_table(n, values, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    drawn = rng.integers(0, values, n) + (Z[:, 0] > 0.5)
    return np.ascontiguousarray((Z - Z.mean(axis=0)) / Z.std(axis=0)), drawn


# --- what a group reaches --------------------------------------------------------------------------------------------


def test_the_ordered_distance_is_that_of_the_paper():
    """Li, Li and Venkatasubramanian 2007, Section 5: incomes 3k to 11k, groups {3k, 4k, 5k} and {6k, 8k, 11k}."""
    incomes = np.array([3, 4, 5, 6, 11, 8, 7, 9, 10])
    found = reached(incomes, [0, 0, 0, 1, 1, 1, 2, 2, 2], Closeness(0.2))
    assert found[0] == pytest.approx(0.375)
    assert found[1] == pytest.approx(0.167, abs=5e-4)


def test_the_distance_of_values_without_an_order_is_the_total_variation():
    illness = np.array(["flu", "flu", "cold", "gout"])
    assert reached(illness, [0, 0, 1, 1], Closeness(0.2), ordered=False) == pytest.approx([0.5, 0.5])
    assert reached(illness, [0, 0, 0, 0], Closeness(0.2), ordered=False) == pytest.approx([0.0])


def test_diversity_by_hand():
    values, groups = np.array([0, 0, 1, 2, 0, 0, 0, 1]), np.repeat([0, 1], 4)
    assert reached(values, groups, Diversity(3)).tolist() == [3, 2]
    half = -(0.5 * log(0.5) + 2 * 0.25 * log(0.25))
    quarter = -(0.75 * log(0.75) + 0.25 * log(0.25))
    assert reached(values, groups, Diversity(3, "entropy")) == pytest.approx([half, quarter])
    # Counts 2, 1, 1: 2 / (1 + 1) for l = 2, 2 / 1 for l = 3. Counts 3, 1: 3 / 1, and no third value.
    assert reached(values, groups, Diversity(2, "recursive")).tolist() == [1, 3]
    assert reached(values, groups, Diversity(3, "recursive")).tolist() == [2, inf]
    rules = make_rules([column(values)], [(0, Diversity(2, "recursive", 3.0))], 8)
    assert broken(rules, np.arange(8), groups).tolist() == [False, True]  # fewer than c times, not as many


def test_one_value_is_at_no_distance():
    assert reached(np.zeros(4), [0, 0, 1, 1], Closeness(0.1)).tolist() == [0, 0]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40),
    st.sampled_from(MODELS),
    st.booleans(),
)
def test_rules_are_those_of_dense_histograms(pairs, model, ordered):
    values = np.array([value for value, _ in pairs])
    groups = canonical_labels(np.array([group for _, group in pairs]))
    found = column(values, ordered)
    rules = make_rules([found], [(0, model)], len(values))
    lacks, seen = reached_by(rules, 0, groups)
    assert reached_by(with_masses(rules), 0, groups)[1] == pytest.approx(seen, abs=1e-12)
    for group in range(groups.max() + 1):
        histogram = np.bincount(found.codes[groups == group], minlength=len(found.counts))
        value, allowed = slow.model(histogram, found.counts, model, ordered)
        assert seen[group] == pytest.approx(value, abs=1e-9)
        assert (lacks[group] == 0) == allowed


@kernel
def after_a_swap(rules, members, size, out, into, reached, codes):
    return changed(rules, 0, members, size, out, into, reached, codes)


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=200), st.data())
def test_a_swap_changes_the_distance_like_a_new_measurement(values, data):
    """Beside the table of quantiles and without it; codes repeat, and a member may go out at either end."""
    found = column(np.array(values))
    rules = make_rules([found], [(0, Closeness(0.1))], len(values))
    rows = data.draw(st.lists(st.sampled_from(range(len(values))), unique=True, min_size=1, max_size=len(values) - 1))
    out = data.draw(st.sampled_from(rows))
    into = data.draw(st.sampled_from(sorted(set(range(len(values))) - set(rows))))
    members = np.sort([int(found.codes[row]) << 32 | row for row in rows])
    swapped = [into if row == out else row for row in rows]
    for own in (rules, with_masses(rules)):
        before, after = (
            group_shortfall(own, 0, np.array(some), np.zeros(len(rows), dtype=np.int64), 1) for some in (rows, swapped)
        )
        pair = (int(found.codes[row]) << 32 | row for row in (out, into))
        told = after_a_swap(own, members, len(rows), *pair, before[1][0], np.empty(len(rows) + 1, dtype=np.int64))
        assert told == pytest.approx((after[1][0], after[0][0]), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=60), st.booleans())
def test_the_assessment_agrees(pairs, ordered):
    values = np.array([value for value, _ in pairs])
    groups = canonical_labels(np.array([group for _, group in pairs]))
    told = attribute("x", column(values).codes, groups, numeric=ordered)
    assert reached(values, groups, Diversity(2)).min() == told.diversity
    assert exp(reached(values, groups, Diversity(2, "entropy")).min()) == pytest.approx(told.entropy_diversity)
    assert reached(values, groups, Closeness(0.1), ordered).max() == pytest.approx(told.closeness, abs=1e-9)


def test_pycanon_agrees():
    anonymity = pytest.importorskip("pycanon.anonymity")
    import pandas as pd

    for seed in range(5):
        rng = np.random.default_rng(seed)
        key, other, values = rng.integers(0, 3, 200), rng.integers(0, 2, 200), rng.integers(0, 9, 200)
        frame = pd.DataFrame({"key": key, "other": other, "value": values})
        keys, groups = ["key", "other"], canonical_labels(2 * key + other)
        assert reached(values, groups, Diversity(2)).min() == anonymity.l_diversity(frame, keys, ["value"])
        entropy = int(exp(reached(values, groups, Diversity(2, "entropy")).min()))
        assert entropy == anonymity.entropy_l_diversity(frame, keys, ["value"])
        t = reached(values, groups, Closeness(0.1)).max()
        assert t == pytest.approx(anonymity.t_closeness(frame, keys, ["value"]), abs=1e-9)
        named = frame.assign(value=frame["value"].map("v{}".format))
        t = reached(values, groups, Closeness(0.1), ordered=False).max()
        assert t == pytest.approx(anonymity.t_closeness(named, keys, ["value"]), abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Diversity(1), lambda: Diversity(2.5), lambda: Diversity(3, "distinctive"), lambda: Diversity(True),
        lambda: Diversity(3, "recursive", 0), lambda: Diversity(inf), lambda: Closeness(1.0), lambda: Closeness(-0.1),
        lambda: Closeness(float("nan")), lambda: Closeness("much"), lambda: Diversity("many"),
        lambda: Diversity.read("many"), lambda: Diversity.read("entropy:3:2"), lambda: Diversity.read("entropy:"),
        lambda: Diversity.read("recursive:3:2:1"), lambda: Closeness.read("much"), lambda: Closeness.read(None),
    ],
)  # fmt: skip
def test_invalid_models_are_refused(make):
    with pytest.raises(InputError, match=r"Parameter '(diversity|closeness)' must"):
        make()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_models_are_read_as_they_are_written(model):
    assert type(model).read(model.text) == type(model).read(model) == model


A_NEW_PROMISE = """
from pathlib import Path
import share  # registers its parameter
import numpy as np
import polars as pl
from typer.testing import CliRunner
import shoal
from shoal.algorithms.optimize.random import seeded
from shoal.app.texts import LABELS, PROMISES, in_labels
from shoal.cli import app
from shoal.core.progress import fresh_state
from shoal.masking import group
from shoal.masking.manifest import read_manifest
from shoal.promises.constrained_search import anneal_with_rules
from shoal.promises.promise import ConfidentialColumn
from shoal.promises.rules import broken, make_rules, reached_by
import reference_pages

# The search keeps it.
request = shoal.MaskRequest(k=3, columns=["x"], confidential="s", share="0.5")
assert request.share == share.Share(0.5)
rng = np.random.default_rng(0)
Z, values = rng.normal(size=(24, 2)), np.arange(24) // 12
rules = make_rules([ConfidentialColumn(values, np.bincount(values), False)], request.models(), 24)
start = np.arange(24) // 6
assert reached_by(rules, 0, np.array([0] * 8 + [1] * 16))[1].tolist() == [1.0, 0.75]
near = np.argsort(np.square(Z[:, None] - Z).sum(axis=2), axis=1)[:, 1:6]
annealed = anneal_with_rules(Z, 3, start, near, rules, 2000, 2.0, fresh_state(), seeded(0))
assert broken(rules, np.arange(24), start).sum() == 4
assert not broken(rules, np.arange(24), annealed.label).any()

# Python: every group keeps it, and the release says so.
table = pl.DataFrame({"x": np.arange(24.0), "s": ["a"] * 12 + ["b"] * 12})
release = shoal.mask(table, 3, columns=["x"], confidential="s", share=0.5)
largest = release.data.group_by("x", "s").len().join(release.data.group_by("x").len(name="of"), on="x")
assert (largest["len"] <= 0.5 * largest["of"]).all()
assert release.reached["s"]["share"] == 0.5
assert release.parameters["share"] == "0.5"
assert release.promise == "share 0.5"
assert "share 0.5 in every group (requested: share 0.5)" in release.verified
assert "--share 0.5" in release.command("in.csv", "out.csv")
assert "share='0.5'" in release.call("in.csv", "out.csv")
assert release.report("report.html", original=table).exists()

# The command line, its help, and the manifest.
table.write_csv("in.csv")
run = CliRunner()
arguments = ["mask", "in.csv", "-k", "3", "-c", "x", "--confidential", "s", "--share", "0.5", "-o", "out.csv"]
done = run.invoke(app, [*arguments, "--manifest", "m.json"], catch_exceptions=False)
assert "requested: share 0.5" in " ".join(done.output.split()), done.output
assert read_manifest(Path("m.json")).content["parameters"]["share"] == "0.5"
assert run.invoke(app, ["mask", "--from-manifest", "m.json", "-o", "again.csv"], catch_exceptions=False).exit_code == 0
shown = run.invoke(app, ["mask", "--help"], env={"COLUMNS": "200"}).output
assert "--share" in shown.partition("Promises")[2].partition("╰")[0]
assert "The greatest share of one value of a column in --confidential in every group" in shown

# The reference and the page.
assert "| `share` | The greatest share" in reference_pages.parameter_page()
assert LABELS["share"] == "Largest share" and PROMISES == ("diversity", "closeness", "share")

# Refusals: of a value, of what no groups can keep, and of groups that break it.
def refused(error, **parameters):
    try:
        shoal.mask(table, 3, columns=["x"], **parameters)
    except error as refusal:
        return refusal
    raise AssertionError(parameters)

wrong = refused(shoal.InputError, confidential="s", share=2)
assert str(wrong) == "Parameter 'share' must be a number between 0 and 1, got 2.0."
assert wrong.worded(in_labels) == "Largest share must be a number between 0 and 1, got 2.0."
assert "requires sensitive columns" in str(refused(shoal.InputError, share=0.5))
assert "share 0.5001 can be kept" in str(refused(shoal.InputError, confidential="s", share=0.4))
group.keep_promise = lambda records, labels, *_, **__: labels
broken_release = refused(shoal.VerificationError, confidential="s", share=0.5)
assert "lack no value with a share above 0.5 in column 's'" in str(broken_release)
print("done")
"""


def test_a_promise_with_its_own_parameter_is_one_file_and_its_registration(tmp_path):
    """Add the example of the docs; the kernels that keep promises are compiled with it, without the cache."""
    docs = Path(__file__).parent.parent / "docs"
    if not docs.exists():
        pytest.skip("not run from a checkout")
    example = (docs / "dev" / "promise.md").read_text(encoding="utf-8").partition("```python\n")[2]
    (tmp_path / "share.py").write_text(example.partition("```")[0])
    source = str(Path(shoal.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", A_NEW_PROMISE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source, str(docs)])},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr


# --- the search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_annealing_keeps_its_sums_sizes_and_shortfalls(model):
    Z, values = random_table(90, 6, 1)
    confidential = column(values)
    rules = make_rules([confidential, column(values % 3, ordered=False)], [(0, model), (1, Diversity(2))], 90)
    rules = with_masses(rules)
    start = np.arange(90) // 6
    found = anneal_with_rules(Z, 4, start, nearest(Z, 10), rules, 20_000, 2.0, fresh_state(), seeded(0))
    assert (found.label != start).any()
    assert found.size.tolist() == np.bincount(found.label).tolist()
    assert found.size.min() >= 4
    for group, size in enumerate(found.size):
        members = np.flatnonzero(found.label == group)
        assert found.sums[group] == pytest.approx(Z[members].sum(axis=0), abs=1e-9)
        assert found.squares[group] == pytest.approx(np.square(Z[members].sum(axis=0)).sum(), abs=1e-8)
        for rule in (0, 1):
            listed = [divmod(member, 1 << 32) for member in found.members[rule, group, :size].tolist()]
            assert listed == sorted(zip(rules.codes[rule, members].tolist(), members.tolist(), strict=True))
            assert found.lacks[rule, group] == reached_by(rules, rule, found.label)[0][group]
            assert found.reached[rule, group] == pytest.approx(
                reached_by(rules, rule, found.label)[1][group], abs=1e-12
            )


def partitions(records, k):
    """All partitions of some records into groups of at least k."""
    if not records:
        yield []
        return
    first, rest = records[0], records[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in combinations(rest, size):
            left = [record for record in rest if record not in others]
            if not left or len(left) >= k:
                for found in partitions(left, k):
                    yield [(first, *others), *found]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_tiny_tables_are_between_the_optimum_and_merged_groups(model, seed):
    Z, values = random_table(9, 4, seed)
    rules = make_rules([column(values, ordered=seed < 2)], [(0, model)], 9)
    allowed = [
        sse(Z, labels)
        for groups in partitions(list(range(9)), 2)
        if not broken(rules, np.arange(9), labels := slow.as_labels(groups, 9)).any()
    ]
    base = shoal.partition(Z, 2)
    labels = keep_rules(Z, base, whole(Z), 2, rules, Search(0, 1.0, fresh_state()))
    if not allowed:  # not even the whole table
        assert labels.max() == 0
        return
    assert np.bincount(labels).min() >= 2
    assert not broken(rules, np.arange(9), labels).any()
    assert min(allowed) - 1e-9 <= sse(Z, labels) <= sse(Z, repair(Z, base, rules)) + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 60), st.sampled_from(MODELS), st.sampled_from(MODELS), st.integers(2, 4))
def test_rules_are_kept_whenever_the_whole_table_keeps_them(seed, n, one, two, k):
    Z, values = random_table(n, 5, seed)
    rules = make_rules([column(values), column(values % 3, ordered=False)], [(0, one), (1, two)], n)
    labels = keep_rules(Z, shoal.partition(Z, k), whole(Z), k, rules, Search(1, 1.0, fresh_state()))
    assert np.bincount(labels).min() >= k
    possible = not broken(rules, np.arange(n), np.zeros(n, dtype=np.int64)).any()
    assert broken(rules, np.arange(n), labels).any() != possible


def test_groups_of_a_method_stay_if_they_keep_the_rules():
    Z, values = random_table(60, 3, 0)
    base = shoal.partition(Z, 5)
    rules = make_rules([column(values)], [(0, Closeness(0.9))], 60)
    assert keep_rules(Z, base, whole(Z), 5, rules, Search(0, 1.0, fresh_state())).tolist() == base.tolist()


def test_the_seed_decides_and_the_search_loses_less_than_merging():
    Z, values = random_table(400, 8, 3)
    rules = make_rules([column(values)], [(0, Closeness(0.1))], 400)
    base = shoal.partition(Z, 3)
    first, again, other = (
        keep_rules(Z, base, whole(Z), 3, rules, Search(seed, 1.0, fresh_state())) for seed in (5, 5, 6)
    )
    assert first.tolist() == again.tolist() != other.tolist()
    assert sse(Z, first) < 0.8 * sse(Z, repair(Z, base, rules))


def test_effort_decides_how_many_steps_are_taken(monkeypatch):
    taken = []

    def counted(Z, k, labels, near, rules, steps, *others):
        taken.append(steps)
        return anneal_with_rules(Z, k, labels, near, rules, min(steps, 100), *others)

    monkeypatch.setattr(rule_enforcement, "anneal_with_rules", counted)
    table = pl.DataFrame({"x": np.arange(60.0), "y": np.arange(60.0) ** 2, "s": np.arange(60) // 6})
    for effort in ("fast", None, "best"):
        shoal.mask(table, 3, columns=["x", "y"], confidential="s", diversity=2, effort=effort)
    fast, good, best = np.reshape(taken, (3, -1))
    assert (4 * fast == good).all()
    assert (5 * good == best).all()
    with pytest.raises(InputError, match=r"'effort' requires method 'auto'.* got effort='best'"):
        shoal.mask(table, 3, columns=["x", "y"], method="mdav", effort="best")
    with pytest.raises(InputError, match="'effort' must be one of"):
        shoal.mask(table, 3, columns=["x", "y"], unit="s", effort="much")


def test_search_takes_models_into_its_own_search(monkeypatch):
    """Its steps are those of `effort`, a record; seconds are used up by one long run after short ones."""
    taken = []

    def counted(Z, k, labels, near, rules, steps, *others):
        taken.append(steps)
        return anneal_with_rules(Z, k, labels, near, rules, min(steps, 20_000), *others)

    monkeypatch.setattr(rule_enforcement, "anneal_with_rules", counted)
    monkeypatch.setattr("shoal.algorithms.optimize.search.search", lambda *_, **__: pytest.fail("searched without"))
    table = pl.DataFrame({"x": np.arange(60.0), "y": np.arange(60.0) ** 2, "s": np.arange(60) // 6})
    asked = {"columns": ["x", "y"], "confidential": "s", "diversity": 2}
    good = shoal.mask(table, 3, **asked)
    searched = shoal.mask(table, 3, **asked, method="search", steps=60 * EFFORTS["good"])
    assert taken[: len(taken) // 2] == taken[len(taken) // 2 :]
    assert searched.loss == good.loss
    taken.clear()
    timed = shoal.mask(table, 3, **asked, method="search", time_limit=2.0)
    assert taken[-1] > 10 * max(taken[:-1])
    assert timed.data.group_by("x", "y").agg(pl.col("s").n_unique())["s"].min() >= 2
    with pytest.raises(InputError, match=r"'effort' cannot be combined with method 'search'.* 'time_limit' or 'steps'"):
        shoal.mask(table, 3, **asked, method="search", effort="best")


def test_search_improves_groups_that_keep_the_rules_already():
    table = pl.DataFrame({"x": np.arange(40.0) % 7, "y": np.arange(40.0) ** 2, "s": np.arange(40)})
    asked = {"columns": ["x", "y"], "method": "search", "steps": 400}
    free = shoal.mask(table, 3, **asked, confidential="s", keep="s")
    kept = shoal.mask(table, 3, **asked, confidential="s", keep="s", diversity=2)
    assert kept.loss == free.loss < shoal.mask(table, 3, columns=["x", "y"], method="mdav").loss


@pytest.mark.parametrize("cells", [1, 3])
def test_threads_share_the_work_and_change_nothing(cells):
    Z, values = random_table(300, 6, 5)
    rules = make_rules([column(values)], [(0, Closeness(0.2))], 300)
    parts = [(rows, np.arange(2)) for rows in np.array_split(np.arange(300), cells)]
    base = np.arange(300) // 3
    one, two = (
        keep_rules(Z, base, parts, 3, rules, Search(0, 0.1, fresh_state()), threads=threads) for threads in (1, 2)
    )
    assert one.tolist() == two.tolist()


def test_a_large_table_is_searched_from_a_path():
    Z, values = random_table(3000, 9, 4)
    rules = make_rules([column(values, ordered=False)], [(0, Diversity(5))], 3000)
    base = shoal.partition(Z, 3, method="path")
    labels = keep_rules(Z, base, whole(Z), 3, rules, Search(0, 1.0, fresh_state()))
    assert not broken(rules, np.arange(3000), labels).any()
    assert np.bincount(labels).min() >= 3
    assert sse(Z, labels) < sse(Z, repair(Z, base, rules))


def test_a_large_table_that_keeps_the_rules_only_as_one_group_stays_one(monkeypatch):
    monkeypatch.setattr(rule_enforcement, "SMALL", 10)
    monkeypatch.setattr(rule_enforcement, "LITTLE", inf)  # the search starts with the merged groups
    Z, values = random_table(60, 3, 0)
    values[:2] = 7, 8
    rules = make_rules([column(values)], [(0, Closeness(0.0))], 60)
    labels = keep_rules(Z, shoal.partition(Z, 3), whole(Z), 3, rules, Search(0, 1.0, fresh_state()))
    assert labels.tolist() == [0] * 60


def test_a_search_that_is_stopped_ends_after_its_short_runs_and_keeps_the_rules(monkeypatch):
    taken = []

    def stopped(Z, k, labels, near, rules, steps, heat, state, word):
        found = anneal_with_rules(Z, k, labels, near, rules, 100, heat, state, word)
        taken.append(steps)
        state[STOP] = 1
        return found

    monkeypatch.setattr(rule_enforcement, "anneal_with_rules", stopped)
    Z, values = random_table(200, 5, 1)
    rules = make_rules([column(values)], [(0, Closeness(0.1))], 200)
    labels = keep_rules(Z, shoal.partition(Z, 3), whole(Z), 3, rules, Search(0, 1.0, fresh_state()))
    assert set(taken) == {int(rule_enforcement.SHORT * 400_000)}
    assert not broken(rules, np.arange(200), labels).any()


def test_a_rehearsal_goes_all_the_way_to_the_search(monkeypatch):
    """Or a kernel is compiled in the middle of a run whose time is measured."""
    searched = []
    monkeypatch.setattr(
        rule_enforcement, "anneal_with_rules", lambda *given: (searched.append(given[5]), anneal_with_rules(*given))[1]
    )
    rehearse_rules()
    assert searched
    assert all(steps > 0 for steps in searched)


def test_records_without_any_column_are_merged_until_they_keep_the_rules():
    Z, values = np.empty((8, 0)), np.array([0, 0, 1, 1, 0, 0, 1, 1])
    rules = make_rules([column(values)], [(0, Diversity(2))], 8)
    labels = keep_rules(Z, np.arange(8) // 2, whole(Z), 2, rules, Search(0, 1.0, fresh_state()))
    assert not broken(rules, np.arange(8), labels).any()


# --- the algorithms of Soria-Comas et al. ----------------------------------------------------------------------------


def test_the_least_size_is_that_of_the_paper():
    assert [least_size(1080, 2, t) for t in (0.05, 0.13, 0.25)] == [10, 4, 2]
    assert least_size(1080, 7, 0.25) == 7


@given(st.integers(0, 10**6), st.integers(6, 80), st.sampled_from([0.05, 0.13, 0.25, 0.5]))
@settings(max_examples=30, deadline=None)
def test_closeness_first_keeps_t_where_no_value_repeats(seed, n, t):
    Z, _ = random_table(n, 3, seed)
    values = np.random.default_rng(seed).permutation(n)
    labels = closeness_first(Z, values, 2, t, state=fresh_state())
    sizes = np.bincount(labels)
    assert sizes.min() >= least_size(n, 2, t) > 1
    assert sizes.max() <= sizes.min() + 1
    if n % least_size(n, 2, t) == 0:
        assert reached(values, labels, Closeness(t)).max() <= t + 1e-12
    runs = values // (n // sizes.min()) if n % sizes.min() == 0 else None
    if runs is not None:
        assert all(sorted(runs[labels == group]) == list(range(sizes.min())) for group in range(labels.max() + 1))


@given(st.integers(0, 10**6), st.integers(6, 60), st.sampled_from(MODELS))
@settings(max_examples=30, deadline=None)
def test_k_first_keeps_any_rule_that_can_be_kept(seed, n, model):
    Z, values = random_table(n, 4, seed)
    rules = make_rules([column(values)], [(0, model)], n)
    labels = k_first(Z, 3, rules, state=fresh_state())
    assert np.bincount(labels).min() >= 3
    possible = not broken(rules, np.arange(n), np.zeros(n, dtype=np.int64)).any()
    assert broken(rules, np.arange(n), labels).any() != possible


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("t", [0.05, 0.13, 0.25])
def test_closeness_first_is_the_paper_step_by_step(t, seed):
    n = 20 + 7 * seed
    Z, values = random_table(n, 6, seed)
    Z = np.ascontiguousarray(Z.round(0 if seed % 2 else 8))  # with ties and without
    found = closeness_first(Z, values, 2, t, state=fresh_state())
    assert found.tolist() == slow.closeness_first(Z, values, 2, t).tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_k_first_is_the_paper_step_by_step(model, seed):
    Z, values = random_table(25 + seed, 5, seed)
    rules = make_rules([column(values)], [(0, model)], len(Z))

    def lacking(members):
        own = rules._replace(codes=np.ascontiguousarray(rules.codes[:, members]))
        return reached_by(own, 0, np.zeros(len(members), dtype=np.int64))[0][0]

    found = k_first(Z, 3, rules, state=fresh_state())
    merged = slow.merge_worst(Z, slow.k_first(Z, 3, lacking), lacking)
    assert found.tolist() == canonical_labels(merged).tolist()


def test_k_first_is_mdav_where_nothing_must_be_swapped():
    Z, values = random_table(40, 4, 2)
    rules = make_rules([column(values)], [(0, Closeness(0.99))], 40)
    labels = k_first(Z, 3, rules, state=fresh_state())
    assert np.bincount(labels).min() == 3
    assert canonical_labels(labels)[0] == 0
