"""``shoal publish`` and the commands of its docs page."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import conftest
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from shoal.cli import app
from shoal.cli.publish_command import read_bounds_options, read_budget
from shoal.core.errors import InputError, ShoalError

ROOT = Path(__file__).resolve().parent.parent
NAMED = ["--bounds", "sales=0:100", "--bounds", "wages=0:300"]
GIVEN_GROUPS = ["--definition", "microaggregated"]


def invoke(*arguments):
    """Run a command in this process, in the current folder: fast, for the many cases."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = CliRunner().invoke(app, list(arguments))
    if done.exception is not None and not isinstance(done.exception, (ShoalError, SystemExit)):
        raise done.exception
    problem = done.exception if isinstance(done.exception, ShoalError) else done.stderr
    return done.exit_code, done.stdout, re.sub(r"[│\s]+", " ", str(problem)), {w.category.__name__ for w in caught}


def run(*arguments, cwd):
    """Run a command in a separate process."""
    command = [sys.executable, "-c", "from shoal.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    pl.DataFrame(
        {"name": [f"firm {i}" for i in range(50)], "sales": rng.uniform(0, 100, 50), "wages": rng.uniform(0, 300, 50)}
    ).write_csv(tmp_path / "firms.csv")
    return tmp_path


def test_a_release_with_ledger_and_manifest(folder):
    command = ["publish", "firms.csv", "--epsilon", "1", *NAMED, "-o", "out.csv", *GIVEN_GROUPS]
    command += ["--ledger", "L.json", "--dataset", "firms"]
    first = ["--new-ledger", "--total-budget", "1.5", "--manifest", "M.json", "--private-manifest", "P.json"]
    done = run(*command, *first, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert pl.read_csv(folder / "out.csv").shape == (50, 2)
    for words in ("Definition 3", "NOT ε-differentially private", "L.json: 1 of 1.5 spent", "NOT FOR RELEASE"):
        assert words in " ".join(done.stdout.split())
    manifest = json.loads((folder / "M.json").read_text(encoding="utf-8"))
    assert manifest["guarantee"] in " ".join(done.stdout.split())
    assert manifest["columns"]["sales"]["bounds"] == [0, 100]
    # Figures computed from the data are in a separate file.
    assert not {"not_for_release", "input", "dropped"} & set(manifest)
    assert not {"groups", "clipped", "expected_sse"} & set(manifest["columns"]["sales"])
    private = json.loads((folder / "P.json").read_text(encoding="utf-8"))
    assert set(private["columns"]["sales"]) == {"groups", "clipped", "expected_sse"}
    assert private["dropped"] == ["name"]
    assert "for the data holder alone" in private["not_for_release"]
    # No output contains a raw value or a name.
    raw = pl.read_csv(folder / "firms.csv")
    shown = done.stdout + "".join(
        (folder / name).read_text(encoding="utf-8") for name in ("out.csv", "M.json", "P.json", "L.json")
    )
    assert "firm 1" not in shown
    for value in (*raw["sales"], *raw["wages"]):
        assert str(value)[:9] not in shown

    again = conftest.command(*command, cwd=folder)
    assert again.returncode == 1
    assert "1 is spent, so 1 more is refused" in again.stderr
    assert again.stdout == ""


def test_methods_budgets_sets_and_seed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for extra, words in [
        ([*GIVEN_GROUPS, "-m", "mdav", "-k", "5", "--set", "sales", "--set", "wages", "--budget", "even"], "ε 0.5"),
        (["-m", "insensitive", "-k", "5"], "order of the groups"),
        (["-m", "none", "--budget", "sales=0.75,wages=0.25"], "ε 0.75"),
        ([*GIVEN_GROUPS, "-k", "7", "-c", "sales", "-c", "wages"], "(Definition 3)"),
        (["-k", "7", "-c", "sales", "-c", "wages"], "(Definition 1)"),
    ]:
        code, shown, _, warned = invoke("publish", "firms.csv", "-e", "1", *NAMED, "-o", "out.parquet", *extra)
        assert code == 0
        assert words in shown
        assert not warned
    experiment = ["-b", "data", "-c", "sales", "-m", "none", "--keep", "name", "--seed", "1", "-o", "o.csv"]
    code, shown, _, warned = invoke("publish", "firms.csv", "-e", "1", *experiment)
    assert code == 0
    assert warned == {"DataBoundsWarning", "SeededNoiseWarning", "UnprotectedColumnWarning"}
    assert pl.read_csv("o.csv").columns == ["name", "sales"]


def test_columns_share_the_budget_evenly_by_default(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for extra in (["-m", "none"], ["--explore", "-m", "optimal"]):
        shown = []
        for budget in ([], ["--budget", "even"], ["--budget", "sensitivity"]):
            command = ["publish", "firms.csv", "-e", "1", *NAMED, *extra, *budget]
            code, text, _, _ = invoke(*command, *(["-o", "o.csv"] if "none" in extra else []))
            assert code == 0
            shown.append(re.sub("mean .*", "", text))
        assert shown[0] == shown[1] != shown[2]
    assert "ε 0.5, domain 0 to 100" in invoke("publish", "firms.csv", "-e", "1", *NAMED, "-o", "o.csv")[1]


def test_warnings_are_named_on_standard_error(folder):
    done = conftest.command("publish", "firms.csv", "-e", "1", *NAMED, "--seed", "1", "-o", "o.csv", cwd=folder)
    assert done.returncode == 0
    assert "SeededNoiseWarning: The noise is drawn from a seed" in done.stderr


def test_exploring_releases_nothing(folder):
    before = set(folder.iterdir())
    done = conftest.command(
        "publish", "firms.csv", *NAMED, "--explore", "--epsilon", "0.5,1", "-k", "5,10", "-o", "p.png", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert set(folder.iterdir()) - before == {folder / "p.png"}
    lines = done.stdout.splitlines()
    assert sum(line.startswith(("optimal", "none")) for line in lines) == 2
    assert sum(line.startswith(("mdav ", "mdav-ir", "insensitive ", "insensitive-ir")) for line in lines) == 8


def test_exploring_some_methods(folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, shown, _, _ = invoke("publish", "firms.csv", *NAMED, "--explore", "-m", "optimal,mdav-ir", "-k", "5")
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines()[4:]] == ["optimal", "mdav-ir"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["firms.csv", *NAMED, "-o", "o.csv"], 2, "--epsilon"),
        (["firms.csv", *NAMED, "-e", "1"], 2, "set the file of the released table"),
        (["firms.csv", "-e", "1", "-o", "o.csv"], 2, "domain of each column"),
        (["firms.csv", *NAMED, "-e", "one", "-o", "o.csv"], 1, "--epsilon must be a number, got 'one'"),
        (["firms.csv", *NAMED, "-e", "1", "-k", "2.5", "-o", "o.csv"], 1, "-k must be a number, got '2.5'"),
        (
            ["firms.csv", "-b", "sales=0", "-e", "1", "-o", "o.csv"],
            1,
            "must be COLUMN=LOW:HIGH, such as sales=0:1e6, got 'sales=0'",
        ),
        (["nowhere.csv", *NAMED, "-e", "1", "-o", "o.csv"], 1, "does not exist"),
        (["firms.csv", *NAMED, "-e", "1", "-o", "firms.csv"], 1, "appears more than once"),
        (["firms.csv", *NAMED, "-e", "1", "-o", "o.csv", "--ledger", "L.txt"], 1, "must end in .json"),
        (
            ["firms.csv", *NAMED, "-e", "1", "-o", "o.csv", "--ledger", "a.json", "--manifest", "a.json"],
            1,
            "appears more than once among input, output, manifest and ledger",
        ),
        (["firms.csv", *NAMED, "--explore", "-o", "o.csv"], 1, "must end in .png"),
    ],
)
def test_refusals(folder, monkeypatch, arguments, code, words):
    monkeypatch.chdir(folder)
    got, _, problem, _ = invoke("publish", *arguments)
    assert got == code
    assert words in problem
    assert {path.name for path in folder.iterdir()} == {"firms.csv"}


def test_option_texts():
    assert read_bounds_options(["a=b=-1:2"]) == {"a=b": (-1.0, 2.0)}
    assert read_budget("even") == "even"
    for bad in (["x=1:b"], ["x"], ["data", "x=0:1"]):
        with pytest.raises(InputError, match="COLUMN=LOW:HIGH"):
            read_bounds_options(bad)
    with pytest.raises(InputError, match="names column 'x' twice"):
        read_bounds_options(["x=0:1", "x=0:2"])
    with pytest.raises(InputError, match="--budget must be sensitivity, even or"):
        read_budget("x=y")


def test_the_report_of_a_release_holds_nothing_confidential(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = 48.123456
    pl.DataFrame({"sales": [1.5, 2.5, 90.0, secret, 3.25] * 20}).write_csv("in.csv")
    command = ["publish", "in.csv", "-e", "1", "--bounds", "sales=0:100", "-o", "out.csv", *GIVEN_GROUPS]
    code, out, _, _ = invoke(*command, "--report", "out.html", "--private-report", "private.html")
    assert code == 0
    assert "out.html" in out
    page = Path("out.html").read_text(encoding="utf-8")
    for words in ("Publication report", "ε = 1", "Definition 3", "0 to 100", "Terms"):
        assert words in page
    assert str(secret) not in page
    assert "clipped: " not in page
    assert "expected SSE" not in page
    private = Path("private.html").read_text(encoding="utf-8")
    assert "PRIVATE, not for release" in private
    assert "expected SSE" in private
    assert str(secret) not in private
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert invoke("publish", "in.csv", "-e", "1", "--bounds", "sales=0:100", "-o", "o.csv", "--report", "r.txt")[0] == 1
    assert not Path("o.csv").exists()


def test_bounds_beyond_the_limit_spend_nothing(folder):
    ledger = ["--ledger", "L.json", "--total-budget", "3", "--dataset", "firms", "--new-ledger"]
    done = conftest.command(
        "publish", "firms.csv", "-e", "1", "-b", "sales=0:1e200", "-o", "out.csv", *ledger, cwd=folder
    )
    assert done.returncode == 1
    assert "must be between -1e+100 and 1e+100" in done.stderr
    assert {path.name for path in folder.iterdir()} == {"firms.csv"}


def test_without_the_extra_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "opendp", None)
    pl.DataFrame({"sales": [1.0, 2.0, 3.0]}).write_csv("in.csv")
    code, _, problem, _ = invoke("publish", "in.csv", "--epsilon", "1", "--bounds", "sales=0:10", "-o", "out.csv")
    assert code
    assert "pip install 'shoal[publish]'" in problem
    assert not (tmp_path / "out.csv").exists()
