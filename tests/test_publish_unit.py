"""publish(unit=…, contributions=m): ε covers a person with all of their records.

Tests on OpenDP's draws cannot fix a seed. Each states how often it fails by chance; all together stay below 1e-8.
"""

import json
import math
import re
from fractions import Fraction

import conftest
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_publish_cli import run

import shoal
from shoal.core.errors import DataBoundsWarning, InputError, PrivateExplorationWarning, SeededNoiseWarning
from shoal.privacy.exploration import explore
from shoal.privacy.ledger import spent
from shoal.privacy.noise import noisy_means
from shoal.privacy.privacy_unit import Unit, budgets_of_records
from shoal.privacy.publication_methods import PUBLICATION_METHODS

BOUNDS = {"sales": (0.0, 100.0), "wages": (0.0, 300.0)}
SIZES = {"mdav-ir": 4, "mdav": 4, "insensitive": 4}  # k, for the methods that need one


def panel(persons=20, records=4, seed=0):
    """Return a shuffled table with the same number of records per person."""
    rng = np.random.default_rng(seed)
    n = persons * records
    table = {"person": np.repeat(np.arange(persons), records), "sales": rng.uniform(0, 100, n)}
    return pl.DataFrame({**table, "wages": rng.uniform(0, 300, n)}).sample(fraction=1, shuffle=True, seed=seed)


def seeded(table, epsilon, **options):
    with pytest.warns(SeededNoiseWarning):
        return shoal.publish(table, epsilon, bounds=BOUNDS, seed=1, **options)


# The noise


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
@pytest.mark.parametrize("budget", ["even", "sensitivity", {"sales": 0.5, "wages": 1.5}], ids=str)
def test_a_unit_gets_the_noise_of_an_mth_of_epsilon_for_each_record(method, budget):
    table, how = panel(), {"method": method, "k": SIZES.get(method)}
    of_units = seeded(table, 2.0, budget=budget, unit="person", contributions=4, **how)
    fourth = {name: share / 4 for name, share in budget.items()} if isinstance(budget, dict) else budget
    of_records = seeded(table, 0.5, budget=fourth, **how)
    assert of_units.data.equals(of_records.data)
    assert of_units.scales == of_records.scales
    assert of_units.expected_sse == of_records.expected_sse
    assert (of_units.labels == of_records.labels).all()
    # Statements about ε refer to the unit.
    assert of_units.epsilon == math.fsum(of_units.budgets.values()) == 2.0
    assert of_units.budgets == {name: 4 * share for name, share in of_records.budgets.items()}
    assert of_units.record_epsilon == of_records.epsilon == of_records.record_epsilon == 0.5


@given(budget=st.floats(1e-300, 1e300), m=st.integers(1, 10**9))
def test_the_records_of_a_unit_never_spend_more_than_its_budget(budget, m):
    (share,) = budgets_of_records(np.array([budget]), Unit("person", m)).tolist()
    assert m * Fraction(share) <= Fraction(budget) < m * Fraction(math.nextafter(share, math.inf))


def test_budgets_per_record_are_rounded_down():
    # 1/5 as it is usually rounded spends more than 1 five times.
    assert 5 * Fraction(1.0 / 5) > 1
    assert budgets_of_records(np.array([1.0]), Unit("person", 5))[0] < 1.0 / 5


def loss(release, sums, other):
    """Return the logarithm of the largest factor by which the probability of a release can change: Laplace on sums."""
    changes = (abs(sums[name] - other[name]).sum() / release.scales[name] for name in release.columns)
    return math.fsum(changes)


def sums_of_groups(table, labels):
    return {name: np.bincount(labels[:, j], table[name].to_numpy()) for j, name in enumerate(["x", "y"])}


@settings(deadline=None, max_examples=150)
@given(data=st.data(), method=st.sampled_from(list(PUBLICATION_METHODS)), n=st.integers(4, 16))
def test_no_change_of_a_units_values_loses_more_than_epsilon(data, method, n):
    persons = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    x, y = st.integers(0, 5).map(float), st.integers(-3, 20).map(float)
    rows = data.draw(st.lists(st.tuples(x, y), min_size=n, max_size=n))
    whose = persons == data.draw(st.sampled_from(persons.tolist()))
    others = [data.draw(st.tuples(x, y)) if changes else row for row, changes in zip(rows, whose, strict=True)]
    m = int(np.bincount(persons).max())
    one, two = (
        pl.DataFrame(table, schema=["x", "y"], orient="row").with_columns(p=persons) for table in (rows, others)
    )
    options = {"bounds": {"x": (0, 5), "y": (-3, 20)}, "unit": "p", "contributions": m, "method": method}
    before, after = (shoal.publish(t, 1.5, k=SIZES.get(method), **options) for t in (one, two))
    groups = after.labels if before.definition == 1 else before.labels  # Definition 3: the groups as given
    lost = loss(before, sums_of_groups(one, before.labels), sums_of_groups(two, groups))
    assert lost <= 1.5 * (1 + 1e-12)


@pytest.mark.parametrize("method", ["mdav", "mdav-ir", "insensitive"])
def test_records_in_one_group_need_all_of_the_noise(method):
    # One group of all: the three records of person 0 go from the lower to the upper end of both domains.
    one = pl.DataFrame({"p": [0, 0, 0, 1, 1, 2], "x": np.zeros(6), "y": np.zeros(6)})
    two = one.with_columns(x=np.array([5.0] * 3 + [0.0] * 3), y=np.array([9.0] * 3 + [0.0] * 3))
    bounds = {"x": (0, 5), "y": (0, 9)}
    release = shoal.publish(one, 0.7, bounds=bounds, method=method, k=6, unit="p", contributions=3)
    assert loss(release, *(sums_of_groups(table, release.labels) for table in (one, two))) == pytest.approx(0.7)
    alone = shoal.publish(one, 0.7, bounds=bounds, method=method, k=6)
    assert loss(alone, *(sums_of_groups(table, alone.labels) for table in (one, two))) == pytest.approx(3 * 0.7)


def log_ratio(high, low):
    """Return the logarithm of a ratio of two counts and its standard error."""
    return math.log(high.sum() / low.sum()), math.sqrt(1 / high.sum() + 1 / low.sum())


def test_disclosure_of_a_person_is_bounded_by_epsilon():
    # Each person has three records, all at one end of the domain. Event: all three are released as the upper end.
    persons, seen = 12_000, {}
    for options in ({"unit": "person", "contributions": 3}, {}):
        counts = []
        for value in (10.0, 0.0):
            table = pl.DataFrame({"person": np.repeat(np.arange(persons), 3), "x": np.full(3 * persons, value)})
            release = shoal.publish(table, 1.0, bounds={"x": (0, 10)}, method="none", **options)
            counts.append((release.data["x"].to_numpy().reshape(-1, 3) == 10.0).all(axis=1))
        seen[bool(options)] = log_ratio(*counts)
    # The bound e^ε is met: 6.5 standard errors, fails below once in 1e9 runs.
    ratio, error = seen[True]
    assert abs(ratio - 1.0) < 6.5 * error
    # The test has power: without a unit the same person is protected by 3ε only (missed below once in 1e9 runs).
    ratio, error = seen[False]
    assert ratio - 3 * error > 1.0


@pytest.mark.parametrize("spread", [(0, 0, 0), (0, 0, 1), (0, 1, 2)], ids=str)
def test_with_given_groups_it_does_not_matter_how_a_persons_records_are_spread(spread):
    # Three groups with another record each. Event: every group with a record of the person is at least as high as its
    # mean if that person's values are at the upper end.
    persons = 12_000
    labels = (np.array([*spread, 0, 1, 2]) + 3 * np.arange(persons)[:, None]).ravel()
    sizes = np.bincount(labels)
    (epsilon,) = budgets_of_records(np.array([1.0]), Unit("person", 3))
    high = np.bincount(spread, minlength=3) * 8.0 / sizes[:3]
    counts = []
    for value in (8.0, 0.0):
        values = np.tile([value, value, value, 0.0, 0.0, 0.0], persons)
        means = noisy_means(values, labels, sizes, lower=0, upper=8, epsilon=float(epsilon)).reshape(-1, 3)
        counts.append((means >= high)[:, high > 0].all(axis=1))
    ratio, error = log_ratio(*counts)
    assert abs(ratio - 1.0) < 6.5 * error  # fails below once in 1e9 runs


# The refusal


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
def test_more_records_than_declared_are_refused_and_nothing_is_spent(method, tmp_path):
    options = {"bounds": BOUNDS, "method": method, "k": SIZES.get(method), "unit": "person"}
    files = {"ledger": tmp_path / "L.json", "total_budget": 3, "output": tmp_path / "o.csv"}
    files |= {"dataset": "panel", "new_ledger": True}
    with pytest.raises(InputError, match=r"no person exceeds, but one has more than 3\. Nothing was released or spent"):
        shoal.publish(panel(), 1.0, contributions=3, **options, **files)
    assert not list(tmp_path.iterdir())
    assert shoal.publish(panel(), 1.0, contributions=4, **options, **files).unit == Unit("person", 4)


def test_the_refusal_discloses_neither_the_unit_nor_its_records():
    said = set()
    for records, seed in [(4, 0), (4, 1), (7, 0)]:
        table = panel(records=records, seed=seed).with_columns(pl.col("person") + 1000 * seed)
        with pytest.raises(InputError) as caught:
            shoal.publish(table, 1.0, bounds=BOUNDS, unit="person", contributions=3)
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_unit_may_be_spelled_in_several_ways():
    table = pl.DataFrame({"p": ["7", "07", "7.0", " 7", "8"], "x": np.arange(5.0)})
    with pytest.raises(InputError, match="more than 3"):
        shoal.publish(table, 1.0, bounds={"x": (0, 5)}, unit="p", contributions=3)
    shoal.publish(table, 1.0, bounds={"x": (0, 5)}, unit="p", contributions=4)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"contributions": None}, "'unit' requires 'contributions', .* would reveal something about the table"),
        ({"unit": None}, "'contributions' requires a unit column, got 4"),
        ({"contributions": 0}, "'contributions' must be a whole number of at least 1, got 0"),
        ({"contributions": 2.5}, "'contributions' must be a whole number of at least 1, got 2.5"),
        ({"contributions": True}, "'contributions' must be a whole number of at least 1, got True"),
        ({"contributions": 10**12}, "'epsilon' leaves column 'sales' a budget of 5e-13, too small"),
        ({"contributions": 10**400}, "'epsilon' leaves column 'sales' a budget of 0, too small"),
        ({"unit": "persn"}, "'unit' names column 'persn', which .* Did you mean 'person'"),
        ({"unit": "sales"}, "'unit' names column 'sales', which is to be published"),
        ({"bounds": {**BOUNDS, "person": (0, 9)}}, "'unit' names column 'person', which is to be published"),
        ({"keep": ["person"]}, "'unit' and 'keep' both name column 'person'"),
        ({"data": panel().with_columns(person=None)}, "Unit column 'person' is empty in one"),
    ],
    ids=str,
)
def test_refusals(change, rule):
    arguments = {"data": panel(), "epsilon": 1.0, "bounds": BOUNDS, "unit": "person", "contributions": 4} | change
    with pytest.raises(InputError, match=rule):
        shoal.publish(**arguments)


# Released tables and messages


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.clone])
def test_the_column_of_the_units_is_not_released(convert):
    release = shoal.publish(convert(panel()), 1.0, bounds=BOUNDS, unit="person", contributions=4)
    assert list(release.data.column_names if isinstance(release.data, pa.Table) else release.data.columns) == [*BOUNDS]
    assert "columns without protection were dropped: person" in release.notes


def test_units_of_arrays_and_of_all_numeric_columns():
    X = panel().to_numpy()
    assert shoal.publish(X, 1.0, bounds={1: (0, 100)}, unit=0, contributions=4).data.shape == (80, 1)
    with pytest.warns(DataBoundsWarning):
        release = shoal.publish(panel(), 1.0, bounds="data", unit="person", contributions=np.int64(4))
    assert release.columns == ["sales", "wages"]
    assert release.unit == Unit("person", 4)
    frame = pd.DataFrame({"x": [3.0]}, index=pd.Index(["Ada"], name="person"))
    with pytest.raises(InputError, match="names column 'person', which the table does not have"):
        shoal.publish(frame, 1.0, bounds={"x": (0, 10)}, unit="person", contributions=1)


@pytest.mark.parametrize("method", PUBLICATION_METHODS)
def test_the_guarantee_names_the_unit_and_what_it_shares(method):
    options = {"bounds": BOUNDS, "method": method, "k": SIZES.get(method)}
    release = shoal.publish(panel(), 1.0, unit="person", contributions=4, **options)
    for words in (
        f"Definition {PUBLICATION_METHODS[method].definition}",
        "replacing the values of all records of one 'person' (at most 4) in 'sales', 'wages' by any others",
        "a factor of at most e^1 = 2.72",
        "the noise is that of ε/4 = 0.25 for each record",
        "It assumes as public knowledge, not read from the table, that no 'person' has more than 4 records",
        "Column 'person' is not released",
    ):
        assert words in release.guarantee
    assert "one record per person" not in release.guarantee
    # Adjacent rows of one person can be recognised, except where rows belong to no person.
    assert ("keeps the records of one 'person' together, so does" in release.guarantee) == (
        not method.startswith("insensitive")
    )
    assert "person, at most 4 records each; ε 0.25 for each record" in " ".join(str(release).split())
    plain = shoal.publish(panel(), 1.0, **options)
    assert "no unit column was set, so a person with m records is protected by m·ε only" in plain.guarantee
    assert (plain.unit, plain.parameters["unit"], plain.parameters["contributions"]) == (None, None, None)
    assert "ε/" not in plain.guarantee


def test_the_ledger_adds_up_budgets_of_the_same_unit_only(tmp_path):
    units, records = tmp_path / "units.json", tmp_path / "records.json"
    by_person = {"bounds": BOUNDS, "unit": "person", "dataset": "panel"}
    shoal.publish(panel(), 1.0, contributions=4, ledger=units, total_budget=3, new_ledger=True, **by_person)
    entry = shoal.publish(panel(records=2), 0.5, contributions=2, ledger=units, **by_person).ledger_entry
    assert (entry["epsilon"], entry["unit"], entry["contributions"]) == (0.5, "person", 2)
    assert entry["spent"] == spent(units) == 1.5  # of a person, whatever number of records they share it with
    shoal.publish(panel(), 1.0, bounds=BOUNDS, ledger=records, dataset="panel", total_budget=3, new_ledger=True)
    firms = panel().rename({"person": "firm"})
    for table, options, ledger, whom in [
        (panel(), {}, units, "of 'person' with all of its records, so a budget of single records cannot"),
        (panel(), {"unit": "person"}, records, "of single records, so a budget of 'person' with all of its records"),
        (firms, {"unit": "firm"}, units, "of 'person' with all of its records, so a budget of 'firm' with all of"),
    ]:
        before = ledger.read_bytes()
        of_units = {**options, "contributions": 4} if options else {}
        with pytest.raises(InputError, match=re.escape(whom)):
            shoal.publish(table, 0.1, bounds=BOUNDS, ledger=ledger, dataset="panel", **of_units)
        assert ledger.read_bytes() == before


def test_exploring_gives_what_publishing_expects():
    table, by_person = panel(), {"unit": "person", "contributions": 4}
    with pytest.warns(PrivateExplorationWarning):
        found = explore(table, bounds=BOUNDS, epsilon=[0.5, 2.0], k=[4, 10], private=True, **by_person)
    for point in found.points:
        release = shoal.publish(table, point.epsilon, bounds=BOUNDS, method=point.method, k=point.k, **by_person)
        assert point.sse == pytest.approx(sum(release.expected_sse.values()), rel=1e-12)
    assert "ε covers all records of a unit (person, at most 4 records each) together" in str(found)
    with pytest.raises(InputError, match="one has more than 3"):
        explore(table, bounds=BOUNDS, unit="person", contributions=3)


def test_households_of_a_survey():
    source = conftest.reference_path("testdata")
    bounds = {"income": (0, 1e8), "expend": (0, 1e8)}
    release = shoal.publish(source, 1.0, bounds=bounds, unit="ori_hid", contributions=12)
    assert release.data.columns == ["expend", "income"]
    assert release.scales == pytest.approx({"income": 2.4e9, "expend": 2.4e9})
    with pytest.raises(InputError, match="no ori_hid exceeds, but one has more than 11"):
        shoal.publish(source, 1.0, bounds=bounds, unit="ori_hid", contributions=11)


# The command


def test_the_command_names_the_unit_everywhere(tmp_path):
    panel().with_columns(pl.format("person {}", "person").alias("person")).write_csv(tmp_path / "panel.csv")
    command = ["publish", "panel.csv", "-e", "1", "-b", "sales=0:100", "-o", "out.csv", "--unit", "person"]
    files = ["--ledger", "L.json", "--dataset", "panel", "--new-ledger", "--total-budget", "3"]
    files += ["--manifest", "M.json", "--report", "R.html"]
    refused = conftest.command(*command, *files, cwd=tmp_path)
    assert refused.returncode == 1
    assert "--unit requires --contributions" in " ".join(refused.stderr.split())
    refused = conftest.command(*command, "--contributions", "3", *files, cwd=tmp_path)
    assert refused.returncode == 1
    assert "one has more than 3" in " ".join(refused.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["panel.csv"]

    done = run(*command, "--contributions", "4", *files, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(done.stdout.split())
    assert "unit person, at most 4 records each; ε 0.25 for each record" in shown
    assert "noise of scale 400 / group size" in shown
    assert pl.read_csv(tmp_path / "out.csv").columns == ["sales"]
    manifest = json.loads((tmp_path / "M.json").read_text(encoding="utf-8"))
    assert manifest["unit"] == {
        "column": "person",
        "contributions": 4,
        "epsilon": 1.0,
        "epsilon_of_a_record": 0.25,
    }
    assert (manifest["parameters"]["unit"], manifest["parameters"]["contributions"]) == ("person", 4)
    assert manifest["columns"]["sales"]["noise_scale_over_size"] == 400
    assert manifest["guarantee"] in shown
    (entry,) = json.loads((tmp_path / "L.json").read_text(encoding="utf-8"))["entries"]
    assert (entry["epsilon"], entry["unit"], entry["contributions"]) == (1.0, "person", 4)
    page = (tmp_path / "R.html").read_text(encoding="utf-8")
    assert "all records of a unit (person, at most 4 records each)" in page
    assert "the noise corresponds to ε = 0.25 per record" in page
    for name in ("out.csv", "M.json", "L.json", "R.html"):
        assert "person 7" not in (tmp_path / name).read_text(encoding="utf-8")


def test_the_command_explores(tmp_path):
    panel().write_csv(tmp_path / "panel.csv")
    command = ["publish", "panel.csv", "--explore", "-b", "sales=0:100", "-m", "none", "-e", "1"]
    done = conftest.command(*command, "--unit", "person", "--contributions", "4", "-o", "p.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "person, at most 4 records each" in done.stdout
    assert f"{80 * 2 * 400.0**2:.4g}" in done.stdout
