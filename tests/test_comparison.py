"""Comparison of methods and k: the table, omitted runs, and runs that no other beats."""

import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms import cost
from shoal.algorithms.registry import ALL_METHODS, METHODS, Method, Option, SharedWork, find
from shoal.comparison import compare as comparing
from shoal.comparison.around import compare_around
from shoal.comparison.trials import Comparison, Trial, pareto
from shoal.core.errors import InputError
from shoal.core.measures import standardise
from shoal.core.progress import DONE, STOP, fresh_state
from shoal.demo import firms
from shoal.promises.promise_registry import read_promise


@pytest.fixture(scope="module")
def compared():
    return shoal.compare(firms(400), [3, 5], columns=["sales", "wages", "profit"], time_limit=2)


def test_every_method_of_the_registry_runs_or_is_named(compared):
    ran = {trial.method for trial in compared.trials}
    assert ran | set(compared.left_out) == set(METHODS)
    assert not ran & set(compared.left_out)
    assert {trial.k for trial in compared.trials} == {3, 5}
    assert set(compared.left_out) == {name for name, method in METHODS.items() if method.univariate}


def test_figures_equal_those_of_mask_and_assess(compared):
    table = firms(400)
    for trial in compared.trials:
        # A method with a time limit may give different results.
        if any(option.name == "time_limit" for option in find(trial.method).options):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", shoal.NotKAnonymousWarning)
            release = shoal.mask(table, trial.k, columns=["sales", "wages", "profit"], method=trial.method)
        assert trial.loss == pytest.approx(release.loss)
        assert trial.linked == pytest.approx(shoal.assess(table, release.data).risk.linkage.share, abs=2e-3)
        assert trial.anonymous == (release.labels.ndim == 1)


def test_hand_worked_front():
    def trial(loss, linked, k=3, anonymous=True):
        return Trial("m", k, loss, linked, 0.01, 9, 0.0, anonymous)

    # (1, .3), (2, .1) and (4, .05) are on the front; (2, .2) loses to (2, .1); unprotected runs do not count.
    trials = pareto([trial(1, 0.3), trial(2, 0.2), trial(2, 0.1), trial(4, 0.05), trial(0.1, 0.01, anonymous=False)])
    marked = {(t.loss, t.linked) for t in trials if t.pareto}
    assert marked == {(1, 0.3), (2, 0.1), (4, 0.05)}
    found = Comparison(trials, {}, 9, ["x"], {})
    # Scaled to the front's range: (0, 1), (1/3, 1/5), (1, 0); the middle one is nearest to (0, 0).
    assert (found.choice.loss, found.choice.linked) == (2, 0.1)
    assert [t.loss for t in found.front] == [1, 2, 4]


def test_risk_is_never_less_than_chance():
    """A partition so poor that linkage fails is no safer than its group sizes imply."""
    poor, good = Trial("poor", 3, 9.0, 0.1, 0.33, 9, 0.0, True), Trial("good", 3, 5.0, 0.3, 0.33, 9, 0.0, True)
    assert poor.risk == good.risk == 0.33
    assert [trial.method for trial in pareto([poor, good]) if trial.pareto] == ["good"]


def test_equal_runs_do_not_beat_each_other():
    same = [Trial(name, 3, 1.0, 0.1, 0.3, 9, 0.0, anonymous=True) for name in "ab"]
    assert all(trial.pareto for trial in pareto(same))


def test_prints_and_is_a_table(compared):
    text = str(compared)
    assert "balanced" in text
    assert "left out" in text
    assert compared.table.columns[:3] == ["method", "k", "loss"]
    assert "<table>" in compared._repr_html_()


def test_strata_and_missing_cells():
    table = firms(1500)
    found = shoal.compare(
        table, 3, methods=["mdav", "individual-ranking"], columns=["sales", "research"], by="region", missing="group"
    )
    assert len(found.trials) == 2
    release = shoal.mask(table, 3, method="mdav", columns=["sales", "research"], by="region", missing="group")
    assert found.trials[1].loss == pytest.approx(release.loss)


def test_individual_ranking_masks_within_missing_cells():
    """Records with missing cells form separate groups, and no other cells become missing."""
    table = firms(300)
    with pytest.warns(shoal.NotKAnonymousWarning):
        release = shoal.mask(table, 3, columns=["sales", "research"], method="individual-ranking", missing="group")
    assert release.data["research"].null_count() == table["research"].null_count()
    assert release.data["research"].is_nan().sum() == 0
    assert release.sizes.min() >= 3


def test_omitted_slow_methods_are_reported(monkeypatch):
    monkeypatch.setattr(cost, "PROBE", 100)
    X = np.random.default_rng(0).normal(size=(300, 2))
    found = shoal.compare(X, 3, methods=["mdav", "individual-ranking"], time_limit=1e9)
    assert not found.left_out
    with pytest.raises(InputError, match=r"no method that can run here: mdav: a run would take about"):
        shoal.compare(X, 3, methods=["mdav"], time_limit=1e-12)


@pytest.mark.parametrize(
    ("method", "half", "whole", "expected"),
    [
        # Seconds for 25 and for 50 records, then for blocks of 200 and 100.
        ("mdav", 0.25, 1.0, 16 + 4),
        ("mdav", 0.5, 1.0, 4 + 2),
        ("mdav", 0.01, 1.0, 16 + 4),
        ("mdav", 2.0, 1.0, 4 + 2),
        ("individual-ranking", 0.25, 1.0, 4 + 2),
    ],
)
def test_cost_grows_as_measured_within_what_the_registry_says(monkeypatch, method, half, whole, expected):
    monkeypatch.setattr(cost, "PROBE", 50)
    ticks = iter([0.0, half, 0.0, whole])
    monkeypatch.setattr(cost.time, "perf_counter", lambda: next(ticks))
    Z = standardise(np.random.default_rng(0).normal(size=(200, 2)))
    entry = find(method)
    assert cost.predicted_seconds(entry, [Z, Z[:100]], 3, entry.read_options({})) == pytest.approx(expected)


def test_shared_work_is_done_once(monkeypatch):
    """A method whose work can be shared has it done once for all k; one with a time option gets the limit."""
    built, given = [], []

    def spanning_tree(Z):
        built.append(len(Z))
        return "tree"

    def partition(X, k, *, state, branches, patience):
        given.append((k, branches, patience))
        return np.arange(len(X)) // k % (len(X) // k)

    module = type(sys)("tree_method")
    module.partition, module.spanning_tree = partition, spanning_tree
    monkeypatch.setitem(sys.modules, "shoal.tree_method", module)
    options = (Option("branches", object, None, ""), Option("patience", float, None, ""))
    entry = Method(
        "branch", "", "", "O(n²)", "shoal.tree_method:partition", "variable", options=options, time_option="patience",
        shared=SharedWork("branches", "shoal.tree_method:spanning_tree"),
    )  # fmt: skip
    monkeypatch.setitem(ALL_METHODS, "branch", entry)
    shoal.compare(np.random.default_rng(0).normal(size=(60, 2)), [3, 5], methods=["branch"], time_limit=7)
    assert built == [60]
    assert given == [(3, "tree", 7.0), (5, "tree", 7.0)]


def register(monkeypatch, name, partition, *options, **fields):
    """Add a method to the registry."""
    module = type(sys)(name)
    module.partition = partition
    monkeypatch.setitem(sys.modules, f"shoal.{name}", module)
    entry = Method(name, "", "", "O(n)", f"shoal.{name}:partition", "variable", options=options, **fields)
    monkeypatch.setitem(ALL_METHODS, name, entry)


def in_order(X, k):
    return np.arange(len(X)) // k % (len(X) // k)


def test_strata_share_a_time_limit(monkeypatch):
    """Four strata that take 6 s each, with 10 s for all: the first, which may compile, counts with its share only."""
    clock, given = [0.0], []

    def partition(X, k, *, state, patience):
        given.append(patience)
        clock[0] += 6.0
        return in_order(X, k)

    register(monkeypatch, "timed", partition, Option("patience", float, None, ""), time_option="patience")
    table = pl.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) % 7, "by": list("abcd") * 10})
    monkeypatch.setattr("shoal.blocks.block_groups.time.monotonic", lambda: clock[0])
    shoal.compare(table, 3, methods=["timed"], columns=["x", "y"], by="by", time_limit=10)
    assert given == pytest.approx([2.5, 7.5 / 3, 1.5 / 2, 0.0])


def test_an_omitted_run_beyond_the_time_limit_is_reported(monkeypatch):
    def partition(X, k, *, state):
        while len(X) == 300 and k == 3 and not state[STOP]:
            time.sleep(0.01)
        return in_order(X, k)

    register(monkeypatch, "endless", partition)
    X = np.random.default_rng(0).normal(size=(300, 2))
    found = shoal.compare(X, [3, 5], methods=["mdav", "endless"], time_limit=3)
    assert [(trial.method, trial.k) for trial in found.trials if trial.method == "endless"] == [("endless", 5)]
    assert found.left_out == {"endless": "a run (k = 3) did not finish within 3 s"}
    with pytest.raises(InputError, match=r"no method that can run here: endless: a run \(k = 3\) did not finish"):
        shoal.compare(X, 3, methods=["endless"], time_limit=0.1)


def test_progress_never_goes_back(monkeypatch):
    whole, seen = fresh_state(), []

    def partition(X, k, *, state):
        for done in (20, 0, 60, 30, 500):
            state[DONE] = done
            time.sleep(0.2)
            seen.append(int(whole[DONE]))
        return in_order(X, k)

    register(monkeypatch, "restless", partition)
    monkeypatch.setattr(comparing, "watch", lambda work, *_, **__: work(whole))
    monkeypatch.setattr(comparing, "predicted_seconds", lambda *_, **__: 0.0)
    shoal.compare(np.random.default_rng(0).normal(size=(60, 2)), [3, 5], methods=["restless"])
    assert seen == sorted(seen)
    assert seen[5] >= 60
    assert whole[DONE] == 120


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"k": []}, "at least one group size"),
        ({"k": [1]}, "'k' must be at least 2"),
        ({"k": [3, 5000]}, "must not exceed the number of records"),
        ({"methods": ["mdva"]}, "Did you mean 'mdav'"),
        ({"time_limit": 0}, "'time_limit' must be more than 0"),
        ({"missing": "guess"}, "'missing' must be one of"),
        ({"columns": ["sale"]}, "'sale'"),
    ],
)
def test_wrong_parameters_are_named(keywords, message):
    with pytest.raises(InputError, match=message):
        shoal.compare(firms(50), **{"k": [3], "missing": "group", **keywords})


def test_command_line(tmp_path):
    firms(200).write_csv(tmp_path / "firms.csv")
    words = ["compare", "firms.csv", "-k", "3,4", "-c", "sales", "-c", "wages"]
    done = command(*words, "-m", "mdav", "-m", "centroid", "-o", "table.csv", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert pl.read_csv(tmp_path / "table.csv").height == 4
    assert done.stdout.splitlines()[-1].split() == ["report", "page.html"]
    assert "Comparison of methods" in (tmp_path / "page.html").read_text(encoding="utf-8")
    refused = command(*words, "--report", "page.pdf", cwd=tmp_path)
    assert refused.returncode == 1
    assert "must end in .html" in refused.stderr
    refused = command(*words[:2], "-k", "3;4", cwd=tmp_path)
    assert "separated by commas" in refused.stderr


def test_names_are_public():
    assert shoal.compare is comparing.compare


# --- categories ----------------------------------------------------------------------------------------------------


def people(n=300):
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["clerk", "nurse", "smith"], n, p=[0.5, 0.3, 0.2]),
            "school": rng.choice(["none", "some", "much"], n),
        }
    )


MIXED = {"columns": ["age", "job", "school"], "kinds": {"school": shoal.Ordinal(["none", "some", "much"])}}


def test_categories_are_compared_as_they_are_released():
    found = shoal.compare(people(), [3, 5], methods=["mdav", "path", "individual-ranking", "univariate"], **MIXED)
    assert {(trial.method, trial.k) for trial in found.trials} == {(m, k) for m in ("mdav", "path") for k in (3, 5)}
    assert "the values of 'job' have no order" in found.left_out["individual-ranking"]
    for trial in found.trials:
        release = shoal.mask(people(), trial.k, method=trial.method, **MIXED)
        assert trial.loss == pytest.approx(release.loss)
        linked = shoal.assess(people(), release.data, **MIXED).risk.linkage
        assert (trial.linked, trial.chance) == pytest.approx((linked.share, linked.chance))
    assert found.parameters["kinds"] == {"school": ["none", "some", "much"]}


def test_ordinal_columns_can_be_ranked_one_by_one():
    asked = {"columns": ["age", "school"], "kinds": MIXED["kinds"]}
    (trial,) = shoal.compare(people(), 3, methods=["individual-ranking"], **asked).trials
    with pytest.warns(shoal.NotKAnonymousWarning):
        assert trial.loss == pytest.approx(shoal.mask(people(), 3, method="individual-ranking", **asked).loss)


@pytest.mark.parametrize("further", [{}, {"importance": {"job": 9.0}}, {"distance": ["age", "job"]}])
def test_a_release_is_mapped_at_other_sizes_as_it_was_grouped(further):
    release = shoal.mask(people(), 4, method="mdav", **MIXED, **further)
    found = compare_around(release, people())
    by_k = {trial.k: trial.loss for trial in found.trials}
    assert by_k[4] == pytest.approx(release.loss)
    assert by_k[8] == pytest.approx(shoal.mask(people(), 8, method="mdav", **MIXED, **further).loss)


def test_categories_on_the_command_line(tmp_path):
    people().write_csv(tmp_path / "in.csv")
    words = ["-c", "age", "-c", "job", "-c", "school", "--ordinal", "school=none,some,much"]
    done = command("compare", "in.csv", "-k", "3,6", *words, "-m", "mdav", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    release = shoal.mask(people(), 3, method="mdav", **MIXED)
    assert f"{release.loss:.4f}" in done.stdout


# --- promises --------------------------------------------------------------------------------------------------------


def patients(n=160):
    rng = np.random.default_rng(1)
    age, pay = rng.integers(20, 80, n), rng.lognormal(3, 1, n).round(2)
    ill = np.where(age > 50, rng.choice(["gout", "cold", "none"], n), rng.choice(["flu", "none"], n))
    return pl.DataFrame({"age": age, "pay": pay, "ill": ill, "days": age // 8, "person": np.arange(n) // 2})


KEYS = {"columns": ["age", "pay"], "confidential": "ill"}


@pytest.fixture(scope="module")
def promised():
    return shoal.compare(patients(), [3, 5], **KEYS, diversity=[2, "entropy:2"], closeness=[0.3, 0.5], time_limit=300)


def test_every_promise_is_compared_with_none(promised):
    expected = {"", "diversity 2", "diversity entropy:2", "closeness 0.3", "closeness 0.5"}
    assert {(t.k, t.promise) for t in promised.trials if t.method == "auto"} == {
        (k, promise) for k in (3, 5) for promise in expected
    }
    # Methods made for closeness are tried only with closeness.
    others = {(t.method, t.promise) for t in promised.trials if t.method != "auto"}
    assert others == {(m, f"closeness {t}") for m in ("closeness-first", "k-first") for t in (0.3, 0.5)}
    assert promised.left_out == {}


def test_promises_cost_what_masking_with_them_loses(promised):
    for trial in promised.trials:
        asked = {name: getattr(trial, name) for name in ("diversity", "closeness") if getattr(trial, name)}
        release = shoal.mask(patients(), trial.k, method=trial.method, **KEYS, **asked)
        assert trial.loss == pytest.approx(release.loss)
        assert release.promise == trial.promise


def test_costs_of_promises_follow_from_the_trials(promised):
    losses = {(t.k, t.promise): t.loss for t in promised.trials if t.method == "auto"}
    found = {(price.parameter, price.name, price.k): price for price in promised.prices}
    assert set(found) == {
        *(("diversity", name, k) for name in ("auto", "auto, entropy") for k in (3, 5)),
        *(("closeness", name, k) for name in ("auto", "closeness-first", "k-first") for k in (3, 5)),
    }
    for k in (3, 5):
        price = found["closeness", "auto", k]
        assert price.without == losses[k, ""]
        assert price.losses == ((0.3, losses[k, "closeness 0.3"]), (0.5, losses[k, "closeness 0.5"]))
        assert found["diversity", "auto, entropy", k].losses == ((2.0, losses[k, "diversity entropy:2"]),)
        assert found["closeness", "k-first", k].without is None


def test_only_runs_that_promise_the_same_beat_each_other():
    def trial(loss, linked, closeness=""):
        return Trial("m", 3, loss, linked, 0.01, 9, 0.0, anonymous=True, closeness=closeness)

    trials = pareto([trial(1, 0.1), trial(2, 0.2), trial(5, 0.3, "0.2"), trial(6, 0.3, "0.2")])
    assert [(t.loss, t.pareto) for t in trials] == [(1, True), (2, False), (5, True), (6, False)]
    found = Comparison(trials, {}, 9, ["x"], {})
    assert [t.loss for t in found.choices] == [1, 5]
    assert "no other trial with the same promise has less loss and risk" in str(found)
    assert found.cells()[0][2] == "promise"


def test_omitted_promises_that_cannot_be_kept_are_reported():
    table = patients().with_columns(region=pl.when(pl.col("days") > 6).then(pl.lit("old")).otherwise(pl.lit("young")))
    found = shoal.compare(table, 3, **KEYS, by="region", closeness=[0.01, 0.6], methods="auto")
    assert {t.promise for t in found.trials} == {"", "closeness 0.6"}
    ((what, why),) = found.left_out.items()
    assert what == "auto, k = 3, closeness 0.01"
    assert "so their groups cannot all keep it" in why


def test_units_are_counted_in_trials():
    asked = {"columns": ["age", "pay"], "unit": "person", "small": "error"}
    found = shoal.compare(patients(), [3, 90], methods=["auto", "individual-ranking"], **asked)
    (trial,) = found.trials
    assert trial.loss == pytest.approx(shoal.mask(patients(), 3, method="auto", **asked).loss)
    assert found.left_out["k = 90"].endswith("has only 80 different units (person)")
    assert "cannot count units" in found.left_out["individual-ranking"]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"closeness": [0.2]}, "requires sensitive columns. Name them in 'confidential'"),
        ({"confidential": "ill", "closeness": [0.2, 2]}, "'closeness' must be at least 0 and less than 1, got 2"),
        ({"confidential": "ill", "diversity": {"days": 3}}, "'diversity' names column 'days', which is not"),
        ({"confidential": "age", "columns": ["age", "pay"]}, "'confidential' names column 'age', which is masked"),
    ],
)
def test_wrong_promises_are_named(keywords, message):
    with pytest.raises(InputError, match=message):
        shoal.compare(patients(), 3, **keywords)


@pytest.mark.parametrize("asked", [{"closeness": 0.4, "diversity": "entropy:2"}, {"closeness": {"ill": 0.4}}])
def test_a_release_is_compared_with_other_promises(asked):
    release = shoal.mask(patients(), 4, **KEYS, **asked)
    found = compare_around(release, patients())
    (own,) = [t for t in found.trials if t.k == 4 and t.promise == release.promise]
    assert own.loss == pytest.approx(release.loss)
    by_t = {price.losses for price in found.prices if price.parameter == "closeness"}
    (losses,) = by_t
    assert [t for t, _ in losses] == [0.2, 0.4, 0.6, 0.8]
    assert dict(losses)[0.4] == own.loss
    weaker = shoal.mask(patients(), 4, **KEYS, **{**asked, "closeness": 0.8})
    assert dict(losses)[0.8] == pytest.approx(weaker.loss)
    assert {t.k for t in found.trials} == {2, 3, 4, 5, 8, 10, 15}


def test_a_release_of_units_is_compared_with_other_sizes():
    asked = {"columns": ["age", "pay"], "unit": "person", "identifiers": "person"}
    found = compare_around(shoal.mask(patients(), 3, **asked), patients())
    by_k = {trial.k: trial.loss for trial in found.trials}
    assert by_k[6] == pytest.approx(shoal.mask(patients(), 6, **asked).loss)


def test_pages_draw_what_promises_cost(promised, tmp_path):
    text = promised.report(tmp_path / "compared.html").read_text(encoding="utf-8")
    least = min(t.loss for t in promised.trials if t.closeness == "0.3" and t.k == 3)
    assert "What promises cost" in text
    assert f"at k = 3 loses {least:.3g}" in text
    assert text.count("Information loss by") == 4  # of each figure its label and its title
    release = shoal.mask(patients(), 5, **KEYS, closeness=0.4)
    page = release.report(
        tmp_path / "release.html", original=patients(), comparison=compare_around(release, patients())
    ).read_text(encoding="utf-8")
    assert "What promises cost" in page
    assert "The ring marks auto, closeness 0.4 at k = 5." in page
    plain = shoal.mask(patients(), 3, columns=["age", "pay"])
    page = plain.report(tmp_path / "plain.html", original=patients(), comparison=compare_around(plain, patients()))
    assert "What promises cost" not in page.read_text(encoding="utf-8")


def test_promises_on_the_command_line(tmp_path):
    patients().write_csv(tmp_path / "in.csv")
    done = command(
        "compare", tmp_path / "in.csv", "-k", "3", "-m", "mdav", "-c", "age", "-c", "pay", "--confidential", "ill",
        "--closeness", "0.3,0.5", "--diversity", "2", "--diversity", "ill=entropy:2", "-o", tmp_path / "out.csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(tmp_path / "out.csv", schema_overrides={"closeness": pl.String, "diversity": pl.String})
    asked = set(zip(table["diversity"].fill_null(""), table["closeness"].fill_null(""), strict=True))
    assert asked == {("", ""), ("2", ""), ("ill=entropy:2", ""), ("", "0.3"), ("", "0.5")}
    failed = command("compare", tmp_path / "in.csv", "-k", "3", "--closeness", "0.3")
    assert failed.returncode == 1
    assert "--closeness requires sensitive columns" in failed.stderr
    assert "Name them in --confidential." in failed.stderr


def test_strata_too_small_for_any_k_are_refused_with_remedies(tmp_path):
    pl.DataFrame({"x": range(9), "y": range(9), "town": ["a"] * 8 + ["b"]}).write_csv(tmp_path / "in.csv")
    done = command(
        "compare", "in.csv", "-k", "2,3", "-c", "x", "-c", "y", "--by", "town", "--small", "error", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "join small strata with --small merge, or suppress their records with --small suppress" in done.stderr
    joined = command("compare", "in.csv", "-k", "2,3", "-c", "x", "-c", "y", "--by", "town", cwd=tmp_path)
    assert joined.returncode == 0, joined.stderr


def test_time_for_compiling_does_not_count_as_slow():
    X = np.random.default_rng(0).normal(size=(60, 2))
    release = shoal.mask(X, 4, method="mdav")
    slow = replace(release, timings={"partition": 9.0})
    assert shoal.compare_around(slow, X) is None
    assert shoal.compare_around(replace(slow, timings={"partition": 9.0, "compile": 8.0}), X) is not None


# --- the same figures as mask ----------------------------------------------------------------------------------------

HIERARCHY = {"smith": ["craft", "all"], "clerk": ["office", "all"], "nurse": ["care", "all"], "cook": ["craft", "all"]}
KINDS = {
    "job": shoal.Nominal(),
    "trade": shoal.Hierarchy(HIERARCHY),
    "school": shoal.Ordinal(["none", "some", "much"]),
    "born": shoal.Date(),
    "lat": shoal.Place("lat", "lon"),
    "lon": shoal.Place("lat", "lon"),
}
# Parameters for the values of groups; each of them changes the release.
VALUES = [
    {},
    {"weights": "weight"},
    {"weights": "weight", "integers": "round"},
    {"integers": "round"},
    {"integers": "totals"},
    {"aggregate": "median"},
    {"aggregate": "median", "integers": "round"},
    {"aggregate": "medoid"},
    {"refine": 20},
]
MATTERS = [
    {},
    {"unit": "person"},
    {"confidential": "ill", "diversity": 2},
    {"confidential": "ill", "closeness": 0.5},
    {"by": "town"},
    {"by": "town", "small": "suppress"},
    {"by": "town", "small": "merge"},
    {"zeros": "gain"},
    {"sums": "total = count + bonus"},
    {"importance": {"count": 3.0}},
    {"distance": ["count", "gain"]},
    {"missing_codes": {"gain": [0], "bonus": [8, 7]}, "missing": "group"},
    {"missing_codes": {"count": [39]}, "missing": "drop"},
    {"by": "town", "small": "merge", "missing": "group", "missing_codes": {"bonus": [8]}},
]


def mixed_table(seed, n):
    rng = np.random.default_rng(seed)
    count, bonus = rng.integers(0, 40, n), rng.integers(0, 9, n)
    return pl.DataFrame(
        {
            "count": count,
            "bonus": bonus,
            "total": count + bonus,
            "gain": (rng.lognormal(2, 1, n) * (rng.random(n) < 0.7)).round(2),
            "part": pl.Series(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))).fill_nan(None),
            "single": pl.Series(rng.normal(size=n), dtype=pl.Float32),
            "job": rng.choice(list(HIERARCHY), n),
            "trade": rng.choice(list(HIERARCHY), n),
            "school": rng.choice(["none", "some", "much"], n),
            "born": [f"19{year}-0{month}-11" for year, month in rng.integers([50, 1], [99, 10], (n, 2)).tolist()],
            "weight": rng.uniform(0.5, 30, n).round(2),
            "person": np.arange(n) // 2,
            "lat": rng.uniform(-80, 80, n).round(3),
            "lon": ((359 + rng.normal(size=n)) % 360 - 180).round(3),
            "ill": rng.choice(["flu", "cold", "gout"], n),
            "town": rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1]),
        }
    )


@st.composite
def requests(draw):
    """Draw a table and a request; mask and compare refuse the same requests."""
    kinds = [name for name in KINDS if name != "lon"]
    further = draw(st.lists(st.sampled_from(["part", "single", *kinds]), unique=True, max_size=2))
    further += ["lon"] if "lat" in further else []
    asked = {**draw(st.sampled_from(VALUES)), **draw(st.sampled_from(MATTERS))}
    asked["columns"] = ["count", "bonus", "total", "gain", *further]
    asked["kinds"] = {name: kind for name, kind in KINDS.items() if name in further} or None
    if "missing" not in asked:
        asked["missing"] = draw(st.sampled_from(["group", "drop"])) if "part" in further else "error"
    method = draw(st.sampled_from(["auto", "mdav", "mst-d", "individual-ranking"]))
    return mixed_table(draw(st.integers(0, 10**6)), draw(st.integers(30, 70))), method, asked


def masked(table, k, **asked):
    """Mask a table; None if that is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shoal.mask(table, k, **asked)
        except InputError:
            return None


def check_trial(trial, table, release):
    """Hold a trial against the release of the same request: its loss, and the risk of the values in its table."""
    assert trial.loss == pytest.approx(release.loss, rel=1e-9)
    asked, released = release.parameters, release.data
    sizes = released.group_by([*release.columns, *asked["by"]]).len()["len"].to_numpy()
    assert trial.groups == len(sizes)
    known = released.group_by(release.outsider).len()
    assert trial.chance == pytest.approx(len(known) / len(released), rel=1e-9)
    # Where zeros are kept, and where strata or patterns are joined, an intruder sees more than an assessment knows.
    if asked["zeros"] or asked["small"] == "merge":
        return
    kinds = {name: kind for name, kind in (asked["kinds"] or {}).items() if name in release.columns}
    alike = {"columns": release.columns, "kinds": kinds, "by": asked["by"], "kept": release.kept}
    alike |= {name: asked[name] for name in ("missing_codes", "confidential", "weights", "unit")}
    linked = shoal.assess(table, released, **alike).risk.linkage
    assert trial.linked == pytest.approx(linked.share, rel=1e-9)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_a_comparison_has_the_figures_of_mask(request):
    table, method, asked = request
    releases = {k: masked(table, k, method=method, **asked) for k in (3, 5)}
    promises = {name: [asked[name]] for name in ("diversity", "closeness") if name in asked}
    try:
        found = shoal.compare(table, [3, 5], methods=[method], **{**asked, **promises})
    except InputError:
        assert not any(releases.values())
        return
    wanted = {name: str(asked.get(name, "")) for name in ("diversity", "closeness")}
    trials = {t.k: t for t in found.trials if (t.diversity, t.closeness) == tuple(wanted.values())}
    assert set(trials) == {k for k, release in releases.items() if release is not None}
    for k, trial in trials.items():
        check_trial(trial, table, releases[k])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_a_map_has_the_figures_of_mask(request):
    table, method, asked = request
    release = masked(table, 4, method=method, **asked)
    if release is None:
        return
    for trial in compare_around(release, table).trials:
        promises = {
            name: read_promise(name, text) if (text := getattr(trial, name)) else None
            for name in ("diversity", "closeness")
        }
        check_trial(trial, table, masked(table, trial.k, method=method, **{**asked, **promises}))


@pytest.mark.parametrize("method", ["individual-ranking", "mdav"])
def test_places_are_compared_by_methods_that_can_mask_them(method):
    table = mixed_table(1, 40)
    request = {"columns": ["lat", "lon"], "kinds": {name: KINDS[name] for name in ("lat", "lon")}}
    if masked(table, 3, method=method, **request) is None:
        with pytest.raises(InputError, match="form one value"):
            shoal.compare(table, 3, methods=[method], **request)
    else:
        assert [trial.method for trial in shoal.compare(table, 3, methods=[method], **request).trials] == [method]


def test_weights_and_rounding_on_the_demo_table():
    asked = {"by": "region", "weights": "weight", "missing": "group", "integers": "round", "method": "mdav"}
    release = shoal.mask(firms(), 5, **asked)
    plain = shoal.mask(firms(), 5, by="region", missing="group", method="mdav", columns=release.columns)
    trials = {t.k: t for t in compare_around(release, firms()).trials}
    assert trials[5].loss == release.loss
    assert trials[10].loss == pytest.approx(shoal.mask(firms(), 10, **asked).loss, rel=1e-12)
    assert release.loss > plain.loss  # the means of groups lose least


def test_a_release_in_blocks_is_mapped_in_blocks():
    table = firms(1500).select("sales", "wages")
    release = shoal.mask(table, 5, method="mdav", block=200)
    trials = {t.k: t for t in compare_around(release, table).trials}
    assert trials[10].loss == pytest.approx(shoal.mask(table, 10, method="mdav", block=200).loss, rel=1e-12)


def test_a_vector_of_weights_is_not_ignored_on_the_map():
    table = firms(60).select("sales", "wages")
    release = shoal.mask(table, 5, weights=np.arange(1.0, 61.0))
    with pytest.raises(InputError, match="'weights' was an object"):
        compare_around(release, table)
    vector = np.arange(1.0, 61.0)
    (trial,) = shoal.compare(table, 5, methods=["auto"], weights=vector).trials
    assert trial.loss == pytest.approx(release.loss, rel=1e-12)


def test_a_method_that_cannot_fulfil_the_request_is_left_out_by_name():
    table = firms(60).select("sales", "wages", total=pl.col("sales") + pl.col("wages"))
    found = shoal.compare(table, 3, methods=["mdav", "individual-ranking"], sums="total = sales + wages")
    assert [trial.method for trial in found.trials] == ["mdav"]
    assert "which breaks the rules of 'sums'" in found.left_out["individual-ranking"]


def test_the_default_method_is_the_optimum_of_one_column():
    table = firms(90).select("sales")
    (trial,) = shoal.compare(table, 4, methods=["auto", "univariate"]).trials
    assert (trial.method, trial.loss) == ("univariate", pytest.approx(shoal.mask(table, 4).loss))


def test_values_of_groups_on_the_command_line(tmp_path):
    firms(300).write_csv(tmp_path / "in.csv")
    words = ["-c", "employees", "-c", "sales", "--weights", "weight", "--integers", "round", "--keep-zeros", "sales"]
    done = command("compare", "in.csv", "-k", "3", "-m", "mdav", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = {"columns": ["employees", "sales"], "weights": "weight", "integers": "round", "zeros": "sales"}
    assert f"{shoal.mask(tmp_path / 'in.csv', 3, method='mdav', **asked).loss:.4f}" in done.stdout
    refused = command("compare", "in.csv", "-k", "3", *words, "--aggregate", "median", cwd=tmp_path)
    assert refused.returncode == 1
    assert "--weights requires --aggregate mean" in refused.stderr
