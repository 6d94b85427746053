"""Requests and messages: a parameter is described once, means one thing, and is named in the words of each reader."""

import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from shoal.app.texts import in_labels
from shoal.assessment.assess_request import AssessRequest
from shoal.cli import app
from shoal.cli.mask_command import mask
from shoal.cli.terminal import flags_of, typed
from shoal.comparison.compare_request import CompareRequest
from shoal.core.messages import END, START, Message, option, parameter, setting, worded
from shoal.core.parameters import PANELS, parameters_of
from shoal.demo import firms
from shoal.masking.request import MaskRequest
from shoal.privacy.publish_request import PublishRequest

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))
import reference_pages

SOURCE, DOCS = Path(shoal.__file__).parent.parent, Path(reference_pages.__file__).parent

REQUESTS = (MaskRequest, CompareRequest, AssessRequest, PublishRequest)


# --- messages --------------------------------------------------------------------------------------------------------

READERS = [
    (f"{parameter('missing')} is wrong.", "Parameter 'missing' is wrong.", "--missing is wrong.",
     "Records with missing values is wrong."),
    (f"Use {setting('missing', 'drop')}.", "Use missing='drop'.", "Use --missing drop.",
     "Use Records with missing values: drop."),
    (f"Use {setting('by', ['a', 'b c'])}.", "Use by=['a', 'b c'].", "Use --by a --by 'b c'.", "Use Strata: a, b c."),
    (f"Use {setting('shuffle', True)}.", "Use shuffle=True.", "Use --shuffle.", "Use Release in random order: yes."),
    (f"Set {setting('kinds', {'zip': 'Nominal()'})}.", "Set kinds={'zip': shoal.Nominal()}.", "Set --nominal zip.",
     "Set zip as Nominal."),
    (f"Set {setting('kinds', {'day': 'Date(' + repr('%d.%m.%Y') + ')'})}.",
     "Set kinds={'day': shoal.Date('%d.%m.%Y')}.", "Set --date day=%d.%m.%Y.", "Set day as Date."),
    (f"{option('gamma')} is wrong.", "Option 'gamma' is wrong.", "-O gamma is wrong.", "“gamma” is wrong."),
    (f"No, {option('bound')} is wrong.", "No, 'bound' is wrong.", "No, --bound is wrong.", "No, “bound” is wrong."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "python", "command", "page"), READERS)
def test_every_interface_names_parameters_in_its_own_way(text, python, command, page):
    error = shoal.InputError(text)
    assert str(error) == python
    flags = flags_of(mask)
    assert error.worded(lambda reference: typed(reference, flags)) == command
    assert error.worded(in_labels) == page


def test_a_refusal_knows_its_parameters():
    with pytest.raises(shoal.InputError) as refused:
        MaskRequest(k=3, weights="w", aggregate="median")
    assert refused.value.parameters == ("weights", "aggregate", "aggregate")


def test_no_message_spells_a_parameter_by_hand():
    for path in Path(shoal.__file__).parent.rglob("*.py"):
        if path.name != "messages.py":
            spelled = re.search(r"(Parameter|Option) ['{-]", path.read_text(encoding="utf-8"))
            assert spelled is None, f"{path}: {spelled}"


def test_a_message_keeps_its_parameters_on_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(shoal.InputError(f"Use {setting('missing', 'drop')}.")))
    assert str(error) == "Use missing='drop'."
    assert error.worded(in_labels) == "Use Records with missing values: drop."
    note = pickle.loads(pickle.dumps(Message(f"left out ({setting('missing', 'drop')})")))
    assert note == "left out (missing='drop')"
    assert worded(note, lambda reference: reference.name) == "left out (missing)"


def test_a_value_cannot_pass_for_a_parameter():
    hostile = f"{START}Parameter{END}{START}x{START}"
    assert str(shoal.InputError(f"{parameter('by')} is {hostile!r}.")) == f"Parameter 'by' is {hostile!r}."
    assert START not in str(shoal.FileError(f"File {hostile} does not exist."))
    error = shoal.InputError(f"{setting('scheduler', object())} is wrong.")  # no literal of Python
    assert error.worded(in_labels).startswith("Scheduler: <object object")


def test_refusals_warnings_and_notes_name_parameters_too(tmp_path):
    table = firms(60).with_columns(last_name=pl.Series([f"Miller{i}" for i in range(60)]))
    with pytest.raises(shoal.InputError) as refused:
        shoal.mask(table, 5, columns=["employees"], rest="keep")
    assert "identifiers=['last_name']" in str(refused.value)
    assert "keep=['last_name']" in str(refused.value)
    assert "Identifiers: last_name" in refused.value.worded(in_labels)
    assert "Kept columns: last_name" in refused.value.worded(in_labels)
    table = table.with_columns(note=pl.Series(["=1", "b"] * 30))
    with pytest.warns(shoal.FormulaWarning) as caught:
        release = shoal.mask(
            table, 5, columns=["employees"], keep=["note"], integers="float", output=tmp_path / "o.csv"
        )
    assert "escape_formulas=True" in str(caught[0].message)
    assert "Escape formulas" in caught[0].message.worded(in_labels)
    note = next(note for note in release.notes if "decimals" in note)
    assert "integers='round' keeps them whole" in note
    assert "Columns of whole numbers: round keeps them whole" in note.worded(in_labels)


def test_methods_omitted_from_a_comparison_are_reported_with_flags(tmp_path):
    firms(60).write_csv(tmp_path / "in.csv")
    arguments = ["compare", str(tmp_path / "in.csv"), "-k", "3", "-c", "sales", "-c", "wages", "--distance", "sales"]
    done = CliRunner().invoke(app, [*arguments, "-m", "mdav", "-m", "individual-ranking"])
    assert "--distance cannot be combined with it" in " ".join(done.output.split())
    assert "'distance'" not in done.output


# --- one word, one meaning -------------------------------------------------------------------------------------------

# Flags of two parameters that mean the same: one or several methods; the labels file, written and read.
SHARED = {"-m": {"method", "methods"}, "--method": {"method", "methods"}, "--labels": {"labels", "kept"}}


def test_a_flag_means_the_same_parameter_in_all_commands():
    meanings, spellings = {}, {}
    for request in REQUESTS:
        for item in parameters_of(request):
            for flag in item.metadata["flags"]:
                meanings.setdefault(flag, set()).add(item.name)
            if item.metadata["flags"]:
                spellings.setdefault(item.name, set()).add(item.metadata["flags"])
    assert {flag: names for flag, names in meanings.items() if len(names) > 1} == SHARED
    assert {name: flags for name, flags in spellings.items() if len(flags) > 1} == {}


@pytest.mark.parametrize("request_type", REQUESTS)
def test_every_parameter_is_described_and_has_a_panel(request_type):
    for item in parameters_of(request_type):
        assert item.metadata["help"].endswith(".")
        assert item.metadata["panel"] in PANELS


@pytest.mark.parametrize(
    ("function", "request_type"),
    [(shoal.publish, PublishRequest), (shoal.assess, AssessRequest), (shoal.compare, CompareRequest)],
)
def test_functions_have_the_parameters_of_their_request(function, request_type):
    parameters = inspect.signature(function).parameters
    for item in parameters_of(request_type):
        assert item.name in parameters
        assert f"\n    {item.name}\n" in function.__doc__
    with pytest.raises(TypeError, match="colums"):
        request_type(colums="a")


def test_a_promise_is_a_parameter_and_an_entry_of_promises():
    request = MaskRequest(k=3, confidential="s", diversity=2)
    assert request == MaskRequest(k=3, confidential="s", promises={"diversity": 2})
    assert (request.diversity, request.closeness) == (shoal.Diversity(2), None)
    assert list(replace(request, closeness=0.2).promises) == ["diversity", "closeness"]
    assert replace(request, diversity=None).promises == {}
    with pytest.raises(shoal.InputError, match=r"'closenes' is not registered\. Did you mean 'closeness'"):
        MaskRequest(k=3, confidential="s", promises={"closenes": 0.2})
    with pytest.raises(AttributeError, match="no parameter 'closenes'"):
        request.closenes  # noqa: B018


def test_requests_refuse_when_they_are_made():
    with pytest.raises(shoal.InputError, match="at least 2"):
        CompareRequest(k=[3, 1])
    with pytest.raises(shoal.InputError, match="Did you mean 'eigenvalues'"):
        AssessRequest(measures="eigenvalue")
    with pytest.raises(shoal.InputError, match="'total_budget' requires a ledger"):
        PublishRequest(epsilon=1.0, bounds={}, total_budget=3.0)
    with pytest.raises(shoal.InputError, match="'epsilon' must be a positive number"):
        PublishRequest(epsilon=0, bounds={})


# --- added at run time -----------------------------------------------------------------------------------------------

# A measure in a file of its own.
A_NEW_MEASURE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from shoal.assessment.measure_registry import MEASURES, Measure

@dataclass(frozen=True)
class Farthest:
    distance: float
    name: ClassVar[str] = "farthest record"
    means: ClassVar[str] = "The farthest record moved so far."
    limits: ClassVar[str] = "It does not count the others."

    @property
    def figure(self):
        return f"moved by {self.distance:.3f}"

def measure(tables):
    return Farthest(float(np.abs(tables.Y - tables.numbers.X).max()))

MEASURES["farthest"] = Measure("distance of the farthest record", __name__, numeric=True, uses=("keys",))
"""
SEEING_A_MEASURE = """
import farthest  # registers itself
import polars as pl
from typer.testing import CliRunner
import reference_pages
import shoal
from shoal.cli import app

table = pl.DataFrame({"x": [1.0, 3.0, 7.0, 9.5]})
masked = pl.DataFrame({"x": [2.0, 2.0, 8.25, 8.25]})
assert shoal.assess(table, masked, measures="farthest").risk.others == (farthest.Farthest(1.25),)
assert shoal.assess(table, masked).risk.others == ()
try:
    shoal.assess(table, masked, measures="farhest")
except shoal.InputError as refusal:
    assert str(refusal).endswith("Did you mean 'farthest'?"), refusal
else:
    raise AssertionError("a measure of another name was not refused")

table.write_csv("in.csv")
masked.write_csv("out.csv")
arguments = ["assess", "in.csv", "out.csv", "--measure", "farthest", "--key", "x", "--report", "page.html"]
done = CliRunner().invoke(app, arguments, catch_exceptions=False).output
assert "farthest record" in done and "moved by 1.250" in done, done
assert "farthest record: The farthest record moved so far. It does not count the others." in done, done
assert "moved by 1.250" in open("page.html", encoding="utf-8").read()
shown = " ".join(CliRunner().invoke(app, ["assess", "--help"], env={"COLUMNS": "2000"}).output.split())
assert "eigenvalues, farthest" in shown, shown
assert "`farthest` (distance of the farthest record)" in reference_pages.command_page()
assert '"farthest" (distance of the farthest record)' in " ".join(shoal.assess.__doc__.split())
print("done")
"""
# An option of `mask`, in the two places that declare it.
A_NEW_FIELD = """
    volume: int | None = described(
        None, f"Volume of the release; {parameter('k')} is not changed.", "--volume",
        panel=OUTPUT, label="Volume", typed=int, stored=(int, NoneType),
    )
"""
SEEING_AN_OPTION = """
import inspect, json
import polars as pl
from typer.testing import CliRunner
import reference_pages
import shoal
from shoal.app.texts import LABELS
from shoal.cli import app

table = pl.DataFrame({"x": [1.0, 3.0, 7.0, 9.0]})
release = shoal.mask(table, 2, columns=["x"], volume=11)
assert release.parameters["volume"] == 11
assert "--volume 11" in release.command("in.csv", "out.csv")
assert "volume=11" in release.call("in.csv", "out.csv")
assert inspect.signature(shoal.mask).parameters["volume"].default is None
assert "Volume of the release; `k` is not changed." in shoal.mask.__doc__
assert LABELS["volume"] == "Volume"

table.write_csv("in.csv")
run = CliRunner()
arguments = ["mask", "in.csv", "-k", "2", "-c", "x", "--volume", "11", "-o", "out.csv", "--manifest", "run.json"]
assert run.invoke(app, arguments, catch_exceptions=False).exit_code == 0
assert json.load(open("run.json"))["parameters"]["volume"] == 11
repeated = run.invoke(app, ["mask", "--from-manifest", "run.json", "-o", "again.csv"], catch_exceptions=False)
assert repeated.exit_code == 0, repeated.output
shown = run.invoke(app, ["mask", "--help"], env={"COLUMNS": "200"}).output
panel = shown.partition("─ Output ─")[2].partition("╰")[0]
assert "--volume" in panel and "Volume of the release; -k is not changed" in panel, shown
text = "Volume of the release; `k` is not changed."
assert f"| `volume` | {text} | `None` | `--volume` |" in reference_pages.parameter_page()
assert f"| `--volume` | {text.replace('`k`', '-k')} |" in reference_pages.command_page()
print("done")
"""


def run_beside(folder, code, source=SOURCE):
    """Run code in a separate process, with the modules in a folder and those of the docs."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, source, DOCS)))},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr


def test_a_risk_measure_is_one_file_and_its_registration(tmp_path):
    (tmp_path / "farthest.py").write_text(A_NEW_MEASURE)
    run_beside(tmp_path, SEEING_A_MEASURE)


def test_an_option_of_mask_is_a_field_and_a_parameter(tmp_path):
    """Both are written into a copy of the package."""
    shutil.copytree(SOURCE / "shoal", tmp_path / "src" / "shoal")
    for name, before, addition in (
        ("request.py", "    progress: bool = described(", A_NEW_FIELD),
        ("mask.py", "    progress: bool = False,", "    volume: int | None = None,\n"),
    ):
        path = tmp_path / "src" / "shoal" / "masking" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, addition + before), encoding="utf-8")
    run_beside(tmp_path, SEEING_AN_OPTION, tmp_path / "src")


def test_a_request_is_changed_as_a_whole():
    request = PublishRequest(epsilon=1.0, bounds={"sales": (0, 9)})
    assert replace(request, epsilon=2.0).epsilon == 2.0
    with pytest.raises(shoal.InputError):
        replace(request, epsilon=-1.0)
