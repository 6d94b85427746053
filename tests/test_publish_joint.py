"""Joint releases: promise, ledger, files, refusals, and no messages that depend on values."""

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.core.errors import InputError, PrivacyWarning
from shoal.privacy import noise
from shoal.privacy.budgets import delta_of, rho_of
from shoal.privacy.exploration import explore
from shoal.privacy.ledger import BudgetExceededError, spend
from shoal.privacy.publication import write_private_manifest, write_publication_manifest

DOMAIN = {
    "bounds": {"income": (0, 200), "age": (0, 120)},
    "categories": {"sex": ["f", "m"], "smokes": [False, True]},
    "integer_columns": "age",
    "method": "marginals",
}


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    sex = rng.choice(["f", "m"], n)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "income": np.where(sex == "f", age * 1.2, age) + rng.normal(0, 5, n),
            "age": age,
            "sex": sex,
            "smokes": rng.random(n) < 0.3,
        }
    )


def test_numbers_integers_and_categories_come_out_of_their_domains():
    table = people()
    release = shoal.publish(table, 1.0, delta=1e-6, **DOMAIN)
    assert release.data.columns == ["income", "age", "sex", "smokes"]
    assert release.data.height == table.height
    assert release.data["age"].dtype == pl.Int64
    assert release.data["age"].is_between(0, 120).all()
    assert release.data["income"].is_between(0, 200).all()
    assert set(release.data["sex"]) <= {"f", "m"}
    assert release.data["smokes"].dtype == pl.Boolean
    assert len(release.tree) == 3
    assert delta_of(release.rho, 1.0) <= 1e-6


@pytest.mark.parametrize("kind", ["pandas", "arrow", "numpy"])
def test_other_tables(kind):
    table = people(100)
    data = {"pandas": table.to_pandas, "arrow": table.to_arrow, "numpy": lambda: table["age"].to_numpy()}[kind]()
    domain = DOMAIN if kind != "numpy" else {"bounds": {0: (0, 120)}, "method": "marginals"}
    release = shoal.publish(data, 2.0, delta=1e-6, **domain)
    assert type(release.data) is type(data)
    assert len(release.data) == 100


def test_a_large_budget_keeps_dependences():
    table = people(4000)
    with pytest.warns(shoal.LargeBudgetWarning):
        release = shoal.publish(table, 1e4, delta=1e-9, **DOMAIN)
    for name in ("income", "age"):
        assert release.data[name].mean() == pytest.approx(table[name].mean(), rel=0.01)
    assert release.data["sex"].value_counts().sort("sex").equals(table["sex"].value_counts().sort("sex"))
    correlation = [np.corrcoef(frame["income"], frame["age"])[0, 1] for frame in (table, release.data)]
    assert correlation[1] == pytest.approx(correlation[0], abs=0.03)


def test_promises_in_messages():
    release = shoal.publish(people(), 1.0, delta=1e-6, **DOMAIN)
    assert release.definition == 1
    words = release.guarantee
    for part in (
        "(ε, δ)-differential privacy (Definition 1, except for δ)",
        "at most e^1 · p + δ = 2.72 · p + 1e-06",
        "ρ = 0.02436",
        "right with a probability of at most 0.56",
        "none of them belongs to anybody",
        "protected by m²·ρ only",
        "number of records and the bounds are public",
    ):
        assert part in words
    assert "NO GUARANTEE" not in words
    shown = str(release)
    assert "epsilon           1, delta 1e-06 (Definition 1)" in shown
    public, private = shown.split("NOT FOR RELEASE")
    assert "name" not in public.split("guarantee")[0]
    assert "dropped: name" in private


def test_a_seed_repeats_and_promises_nothing():
    with pytest.warns(shoal.SeededNoiseWarning):
        one, two = (shoal.publish(people(), 1.0, delta=1e-6, **DOMAIN, seed=3) for _ in range(2))
    assert one.data.equals(two.data)
    assert one.guarantee.startswith("NO GUARANTEE HOLDS: the noise was drawn from a seed")
    free = [shoal.publish(people(), 1.0, delta=1e-6, **DOMAIN).data for _ in range(2)]
    assert not free[0].equals(free[1])


def test_records_of_a_unit_are_covered_together():
    table = people().with_columns(home=pl.int_range(600) // 3)
    alone = shoal.publish(table, 1.0, delta=1e-6, **DOMAIN)
    together = shoal.publish(table, 1.0, delta=1e-6, **DOMAIN, unit="home", contributions=3)
    assert together.scales["sex"] == pytest.approx(3 * alone.scales["sex"])
    assert together.rho == alone.rho
    assert together.record_epsilon == 1.0
    assert "home" not in together.data.columns
    assert "all records of one 'home' (at most 3)" in together.guarantee
    assert "the noise is 3 times that of single records" in together.guarantee
    with pytest.raises(InputError, match="no home exceeds"):
        shoal.publish(table, 1.0, delta=1e-6, **DOMAIN, unit="home", contributions=2)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"delta": None}, "Method 'marginals' requires 'delta'"),
        ({"delta": 0.01}, "'delta' must be a number above 0 and below 1/n"),
        ({"method": "none"}, "'delta' requires method 'marginals'"),
        ({"k": 5}, "'k' does not apply to method 'marginals'"),
        ({"budget": "sensitivity"}, "'budget' cannot be combined with method 'marginals'"),
        ({"budget": {"age": 1.0}}, "'budget' cannot be combined with method 'marginals'"),
        ({"truncate": False}, "'truncate' cannot be combined with method 'marginals'"),
        ({"monotone": False}, "'monotone' cannot be combined with method 'marginals'"),
        ({"sets": [["age"], ["income"]]}, "'sets' requires method 'mdav'"),
        ({"groups": "name"}, "'groups' sets the groups of method 'given'"),
        ({"keep": "name"}, "'keep' cannot be combined with method 'marginals'"),
        ({"epsilon": 1e-15, "delta": 1e-300}, "leave too small a budget for counts"),
        ({"total_delta": 1e-6}, "'total_delta' requires a ledger"),
        ({"bounds": {"income": (0, 200), "age": (0.5, 0.9)}}, "must be whole numbers for integer column"),
    ],
)
def test_refusals(options, rule):
    asked = {"epsilon": 1.0, "delta": 1e-6, **DOMAIN, **options}
    with pytest.raises(InputError, match=rule):
        shoal.publish(people(), **asked)


def test_refusals_disclose_no_values():
    told = set()
    for where in (3, 77):
        table = people().with_columns(income=pl.when(pl.int_range(600) < where).then(None).otherwise(pl.col("income")))
        with pytest.raises(InputError, match="must hold a finite number") as refused:
            shoal.publish(table, 1.0, delta=1e-6, **DOMAIN)
        told.add(str(refused.value))
    assert len(told) == 1


def test_cells_outside_the_domain_change_no_public_word():
    strange = people().with_columns(sex=pl.lit("x"), income=pl.lit(1e9))
    shown = [
        [row for row in shoal.publish(table, 1.0, delta=1e-6, **DOMAIN).public_rows() if row[0] != "pairs"]
        for table in (people(), strange)
    ]
    assert shown[0] == shown[1]


def test_failed_runs_release_nothing(monkeypatch, tmp_path):
    """Missing noise, or more loss than OpenDP grants, ends in an error and never in a table."""

    def broken(make, distance, rho, scale):
        raise RuntimeError("no randomness")

    monkeypatch.setattr(noise, "within_budget", broken)
    with pytest.raises(RuntimeError):
        shoal.publish(people(), 1.0, delta=1e-6, **DOMAIN, output=tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


def test_the_ledger_adds_up_epsilon_and_delta(tmp_path):
    path = tmp_path / "L.json"
    asked = {**DOMAIN, "ledger": path, "dataset": "people"}
    totals = {"total_budget": 3.0, "total_delta": 2e-6, "new_ledger": True}
    first = shoal.publish(people(), 1.0, delta=1e-6, **asked, **totals)
    assert first.ledger_entry["delta"] == 1e-6
    assert "L.json: 1 of 3 spent; delta 1e-06 of 2e-06" in str(first)
    shoal.publish(people(), 1.0, bounds={"age": (0, 120)}, method="none", ledger=path, dataset="people")
    shoal.publish(people(), 0.5, delta=1e-6, **asked)
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError, match=r"allows delta=2e-06 in total; 0\.000002 is spent"):
        shoal.publish(people(), 0.1, delta=1e-9, **asked)
    with pytest.raises(BudgetExceededError, match=r"allows epsilon=3 in total; 2\.5 is spent"):
        shoal.publish(people(), 1.0, bounds={"age": (0, 120)}, method="none", ledger=path, dataset="people")
    with pytest.raises(InputError, match=r"'total_delta' must equal the total recorded in ledger .*, 2e-06, got 1e-05"):
        shoal.publish(people(), 0.1, delta=1e-9, **asked, total_delta=1e-5)
    assert path.read_bytes() == before
    assert [entry.get("delta") for entry in json.loads(before)["entries"]] == [1e-6, None, 1e-6]
    warnings.simplefilter("ignore", PrivacyWarning)
    with pytest.raises(InputError, match="under Definition 1, and one under Definition 3"):
        shoal.publish(people(), 0.1, bounds={"age": (0, 120)}, method="optimal", ledger=path, dataset="people")


def test_a_ledger_without_a_total_of_delta_has_none_to_spend(tmp_path):
    path = tmp_path / "L.json"
    spend(path, 1.0, 5.0, {}, new=True)
    with pytest.raises(BudgetExceededError, match="was created without a total of delta"):
        spend(path, 1.0, None, {}, delta=1e-9)
    content = json.loads(path.read_text())
    content["entries"][0]["delta"] = -1.0
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="damaged"):
        spend(path, 1.0, None, {})


def test_manifests_and_reports(tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "o.csv"
    people().write_csv(source)
    domain = DOMAIN | {"categories": {"sex": ["f", "m"], "smokes": ["true", "false"]}}
    release = shoal.publish(source, 1.0, delta=1e-6, **domain, output=output)
    write_publication_manifest(release, tmp_path / "m.json", output=output)
    write_private_manifest(release, tmp_path / "p.json", source=source, output=output)
    public = json.loads((tmp_path / "m.json").read_text())
    assert (public["delta"], public["rho"]) == (1e-6, release.rho)
    assert public["parameters"]["delta"] == 1e-6
    assert len(public["pairs"]) == 3
    assert public["columns"]["sex"] == {"noise_of_counts": release.scales["sex"], "categories": ["f", "m"]}
    assert "clipped" not in json.dumps(public)
    assert "name" not in public["columns"]
    assert json.loads((tmp_path / "p.json").read_text())["columns"]["age"] == {"clipped": 0}
    page = release.report(tmp_path / "r.html").read_text(encoding="utf-8")
    for part in ("δ = 1e-06", "drawn from a model of the noisy counts", "may consist of noise alone"):
        assert part in page
    alone = shoal.publish(people(), 1.0, delta=1e-6, bounds={"age": (0, 120)}, method="marginals")
    assert "pair" not in alone.report(tmp_path / "alone.html").read_text(encoding="utf-8").split("</style>")[1]
    for false in ("averaged in groups", "Laplace", "expected SSE", "private:", "person 1"):
        assert false not in page


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().write_csv("in.csv")
    command = ["publish", "in.csv", "-e", "1", "-m", "marginals", "-b", "income=0:200", "-b", "age=0:120"]
    command += ["--integer-column", "age", "--categories", "sex=f,m", "-o", "o.csv"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert not Path("o.csv").exists()
    ledger = [
        "--ledger",
        "L.json",
        "--dataset",
        "people",
        "--new-ledger",
        "--total-budget",
        "2",
        "--total-delta",
        "1e-5",
    ]
    done = CliRunner().invoke(app, [*command, "--delta", "1e-6", *ledger, "--manifest", "m.json", "--report", "r.html"])
    assert done.exit_code == 0, done.output
    released = pl.read_csv("o.csv")
    assert released.columns == ["income", "age", "sex"]
    assert released["age"].dtype == pl.Int64
    assert set(released["sex"]) <= {"f", "m"}
    assert json.loads(Path("L.json").read_text())["total_delta"] == 1e-5
    for extra in (["--definition", "microaggregated"], ["--explore"]):
        assert CliRunner().invoke(app, [*command, "--delta", "1e-6", *extra]).exit_code != 0


def test_there_is_no_squared_error_to_explore():
    with pytest.raises(InputError, match="cannot include 'marginals'"):
        explore(people(), bounds={"age": (0, 120)}, methods=["marginals"])


def test_the_docs_name_it_and_the_guess_they_print_is_right():
    page = " ".join((ROOT / "docs" / "differential-privacy.md").read_text(encoding="utf-8").split())
    assert "`marginals`" in page
    release = shoal.publish(people(), 1.0, delta=1e-6, **DOMAIN)
    assert "at most 0.56" in release.guarantee
    assert "0.56" in page
    assert release.rho == pytest.approx(rho_of(1.0, 1e-6))
