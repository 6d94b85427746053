"""Requests and messages: a parameter is described once, means one thing, and is named in the words of each reader."""

import inspect
import pickle
import re
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import shoal
from shoal.app.texts import in_labels
from shoal.assessment.assess_request import AssessRequest
from shoal.assessment.measure_registry import MEASURES, Measure
from shoal.cli import app
from shoal.cli.mask_command import mask
from shoal.cli.terminal import flags_of, typed, values_of, with_parameters
from shoal.comparison.compare_request import CompareRequest
from shoal.core.messages import END, START, Message, option, parameter, setting, worded
from shoal.core.parameters import ESSENTIALS, PANELS, described, parameters_of, with_parameters_of
from shoal.demo import firms
from shoal.masking.request import MaskRequest
from shoal.privacy.publish_request import PublishRequest

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))
import reference_pages

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
def test_every_reader_gets_a_message_in_his_words(text, python, command, page):
    error = shoal.InputError(text)
    assert str(error) == python
    flags = flags_of(mask)
    assert error.worded(lambda reference: typed(reference, flags)) == command
    assert error.worded(in_labels) == page


def test_a_refusal_knows_its_parameters():
    with pytest.raises(shoal.InputError) as refused:
        MaskRequest(k=3, small="merge", zeros=["a"])
    assert refused.value.parameters == ("small", "zeros", "small")


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


def test_warnings_and_notes_name_parameters_too(tmp_path):
    table = firms(60).with_columns(last_name=pl.Series([f"Miller{i}" for i in range(60)]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = shoal.mask(table, 5, columns=["employees"])
    message = next(w.message for w in caught if isinstance(w.message, shoal.IdentifierWarning))
    assert "identifiers=['last_name']" in str(message)
    assert "Identifiers: last_name" in message.worded(in_labels)
    note = next(note for note in release.notes if "decimals" in note)
    assert "integers='round' keeps them whole" in note
    assert "Columns of whole numbers: round keeps them whole" in note.worded(in_labels)


def test_methods_that_a_comparison_leaves_out_are_told_in_flags(tmp_path):
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


@dataclass(frozen=True)
class Louder(MaskRequest):
    """A request with one more parameter."""

    volume: int = described(
        3, f"Volume of the release; {parameter('k')} is not changed.", "--volume", panel=ESSENTIALS, typed=int
    )


def test_an_option_is_added_by_its_description():
    made = []
    commands = typer.Typer()

    @commands.command()
    @with_parameters(Louder)
    def loud(**options):
        made.append(Louder(**values_of(Louder, options)))

    shown = CliRunner().invoke(commands, ["--help"], env={"COLUMNS": "200"}).output
    panel = shown.partition(ESSENTIALS)[2].partition("╰")[0]
    assert "--volume" in panel
    assert "Volume of the release; -k is not changed." in panel
    assert CliRunner().invoke(commands, ["-k", "4", "--volume", "11"]).exit_code == 0
    assert (made[0].volume, made[0].k) == (11, 4)

    assert (
        "| `volume` | Volume of the release; `k` is not changed. | `3` | `--volume` |"
        in reference_pages.parameter_page(Louder)
    )

    @with_parameters_of(Louder)
    def function(data, **parameters):
        """Do it.

        Parameters
        ----------
        *parameters*
        """

    assert inspect.signature(function).parameters["volume"].default == 3
    assert "volume\n        Volume of the release; `k` is not changed." in function.__doc__


@dataclass(frozen=True)
class Farthest:
    """A finding of one figure."""

    distance: float
    name: ClassVar[str] = "farthest record"
    means: ClassVar[str] = "How far the farthest record moved."
    limits: ClassVar[str] = "It does not count the others."

    @property
    def figure(self):
        return f"{self.distance:.3f}"


def test_a_risk_measure_is_added_by_its_registration(monkeypatch, tmp_path):
    def farthest(both):
        return Farthest(float(np.abs(both.Y - both.numbers.X).max()))

    monkeypatch.setitem(MEASURES, "farthest", Measure("distance of the farthest record", farthest))
    table = pl.DataFrame({"x": [1.0, 3.0, 7.0, 9.5]})
    masked = pl.DataFrame({"x": [2.0, 2.0, 8.25, 8.25]})
    found = shoal.assess(table, masked, measures="farthest")
    assert found.risk.others == (Farthest(1.25),)
    assert "farthest record" in str(found)
    table.write_csv(tmp_path / "in.csv")
    masked.write_csv(tmp_path / "out.csv")
    arguments = ["assess", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), "--measure", "farthest"]
    assert "farthest record" in CliRunner().invoke(app, arguments).output
    assert "farthest record" not in str(shoal.assess(table, masked))


def test_a_request_is_changed_as_a_whole():
    request = PublishRequest(epsilon=1.0, bounds={"sales": (0, 9)})
    assert replace(request, epsilon=2.0).epsilon == 2.0
    with pytest.raises(shoal.InputError):
        replace(request, epsilon=-1.0)
