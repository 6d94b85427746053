"""The ledger: what is spent adds up, is recorded first, and survives concurrent and killed processes."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import shoal
from shoal.core.errors import FileError, InputError, ShoalError
from shoal.privacy.ledger import BudgetExceededError, _check_one_name, spend, spent

TABLE = pl.DataFrame({"x": [1.0, 2.0, 3.0]})
BOUNDS = {"x": (0.0, 5.0)}
FIRST = {"dataset": "ours", "new_ledger": True}


def test_budgets_add_up_as_typed_and_are_refused_beyond_the_total(tmp_path):
    path = tmp_path / "L.json"
    for number in range(1, 11):
        kept = {"ledger": path, "total_budget": 1.0, "dataset": "ours", "new_ledger": number == 1}
        entry = shoal.publish(TABLE, 0.1, bounds=BOUNDS, **kept).ledger_entry
        assert entry["number"] == number
    assert entry["spent"] == spent(path) == 1.0  # ten times 0.1, without a rounding error
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError, match=r"allows epsilon=1 in total; 1 is spent, so 1e-09 more is refused"):
        shoal.publish(TABLE, 1e-9, bounds=BOUNDS, ledger=path, dataset="ours")
    assert path.read_bytes() == before


def test_an_entry_describes_the_release_without_values(tmp_path):
    path = tmp_path / "L.json"
    release = shoal.publish(TABLE, 1.0, bounds=BOUNDS, method="none", ledger=path, total_budget=3, **FIRST)
    content = json.loads(path.read_text())
    assert content["total_budget"] == 3.0
    (entry,) = content["entries"]
    assert {"number", "time", "epsilon", "method", "definition", "columns"} == set(entry)
    assert (entry["method"], entry["definition"], entry["columns"]) == ("none", 1, ["x"])
    assert "L.json: 1 of 3 spent" in str(release)


def test_the_budget_is_recorded_before_the_noise_is_drawn(tmp_path, monkeypatch):
    from shoal.privacy import noisy_release

    def fail(*_, **__):
        raise RuntimeError("power cut")

    monkeypatch.setattr(noisy_release, "noisy_means", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        shoal.publish(TABLE, 1.0, bounds=BOUNDS, ledger=tmp_path / "L.json", total_budget=3, **FIRST)
    assert spent(tmp_path / "L.json") == 1.0


def test_a_refused_budget_writes_no_table(tmp_path):
    files = {"ledger": tmp_path / "L.json", "output": tmp_path / "o.csv"}
    with pytest.raises(BudgetExceededError):
        shoal.publish(TABLE, 2.0, bounds=BOUNDS, total_budget=1, **files, **FIRST)
    assert not (tmp_path / "o.csv").exists()
    assert not (tmp_path / "L.json").exists()


SPENDER = """
import sys
from shoal.core.errors import InputError
from shoal.privacy.ledger import BudgetExceededError, spend
done = 0
for turn in range(15):
    try:
        try:
            if turn:
                raise InputError
            spend(sys.argv[1], 0.1, 5.0, {}, new=True)  # the first of all starts the ledger
        except InputError:
            spend(sys.argv[1], 0.1, 5.0, {})
        done += 1
    except BudgetExceededError:
        pass
print(done)
"""


def test_concurrent_processes_spend_no_more_than_the_total(tmp_path):
    path = tmp_path / "L.json"
    running = [
        subprocess.Popen([sys.executable, "-c", SPENDER, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    spent_by = [int(process.communicate(timeout=120)[0]) for process in running]
    content = json.loads(path.read_text())
    assert sum(spent_by) == len(content["entries"]) == 50  # 75 were asked for
    assert [entry["number"] for entry in content["entries"]] == list(range(1, 51))
    assert spent(path) == 5.0


HOLDER = """
import sys, time
from pathlib import Path
from shoal.privacy.ledger import _locked
with _locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_leaves_no_lock(tmp_path):
    path = tmp_path / "L.json"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    waiter = subprocess.Popen([sys.executable, "-c", SPENDER, str(path)], stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        waiter.communicate(timeout=3)
    holder.kill()
    holder.communicate()
    assert waiter.communicate(timeout=60)[0] == "15\n"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": "shoal budget ledger 1"}', '{"format": 1, "total_budget": 2, "entries": []}'],
)
def test_a_file_that_is_not_a_ledger_is_not_changed(tmp_path, text):
    path = tmp_path / "L.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a shoal budget ledger"):
        spend(path, 1.0, 3.0, {})
    assert path.read_text() == text


def test_refusals(tmp_path):
    with pytest.raises(InputError, match=r"needs the total budget of the data set\. Set 'total_budget'"):
        spend(tmp_path / "L.json", 1.0, None, {}, new=True)
    spend(tmp_path / "L.json", 1.0, 3.0, {}, new=True)
    with pytest.raises(InputError, match=r"must equal the total recorded in ledger .*, 3, got 5"):
        spend(tmp_path / "L.json", 1.0, 5.0, {})
    with pytest.raises(InputError, match="'total_budget' must be a positive number"):
        spend(tmp_path / "L.json", 1.0, -1.0, {})
    with pytest.raises(InputError, match=r"must end in \.json"):
        spend(tmp_path / "L.txt", 1.0, 3.0, {})
    with pytest.raises(FileError):
        spend(tmp_path / "nowhere" / "L.json", 1.0, 3.0, {})
    (tmp_path / "folder.json").mkdir()
    with pytest.raises((FileError, InputError)):
        spend(tmp_path / "folder.json", 1.0, 3.0, {})


# Other names of a ledger


@pytest.mark.parametrize("new", [False, True])
def test_processes_that_spend_through_a_symbolic_link_share_the_total(tmp_path, new):
    path, link = tmp_path / "L.json", tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to(path)
    if not new:
        spend(path, 0.1, 5.0, {}, new=True)
    running = [
        subprocess.Popen([sys.executable, "-c", SPENDER, str(name)], stdout=subprocess.PIPE, text=True)
        for name in (path, link, path, link)
    ]
    done = sum(int(process.communicate(timeout=120)[0]) for process in running)
    assert done == (50 if new else 49)  # 60 were asked for
    assert len(json.loads(path.read_text())["entries"]) == 50
    assert link.is_symlink()
    assert spent(link) == spent(path) == 5.0


def test_a_ledger_with_two_hard_links_is_refused_under_both_names(tmp_path):
    path, other = tmp_path / "L.json", tmp_path / "other.json"
    spend(path, 1.0, 3.0, {}, new=True)
    other.hardlink_to(path)
    before = path.read_bytes()
    for name in (path, other):
        with pytest.raises(InputError, match=rf"Ledger .*{name.name} must have one name, but it has 2 .* symbolic"):
            shoal.publish(TABLE, 1.0, bounds=BOUNDS, ledger=name, dataset="ours")
    assert path.read_bytes() == other.read_bytes() == before
    other.unlink()
    other.symlink_to(path)
    assert spend(other, 1.0, None, {})["spent"] == 2.0


def test_a_link_that_leads_nowhere_is_refused(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    with pytest.raises(FileError, match=r"Ledger .*a\.json cannot be read"):
        spend(tmp_path / "a.json", 1.0, 3.0, {})


def test_a_ledger_that_cannot_be_read_is_refused(tmp_path):
    """An unreadable ledger is not treated as missing: that would start a new one."""
    (tmp_path / "L.json").mkdir()
    with pytest.raises(FileError, match=r"^Ledger .*L\.json cannot be read: Is a directory\.$"):
        spent(tmp_path / "L.json")
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"^Ledger .*L\.json cannot be read: Not a directory\.$"):
        _check_one_name(tmp_path / "file" / "L.json")


def test_a_ledger_that_cannot_be_locked_is_refused_and_not_written(tmp_path):
    path = tmp_path / f"{'L' * 248}.json"  # a name that is just not too long, but that of its lock is
    with pytest.raises(
        FileError, match=r"^Ledger .*L\.json cannot be locked: File name too long \(.*\.json\.lock\)\.$"
    ):
        spend(path, 1.0, 3.0, {}, new=True)
    assert list(tmp_path.iterdir()) == []


# All refusals come before any budget is spent

NESTED = pl.DataFrame({"x": [1.0, 2.0], "parts": [[1], [2]], "name of the firm": ["ž", "ß"]})


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"bounds": {"x": (0, 1e200)}}, r"'bounds' must be between -1e\+100 and 1e\+100"),
        ({"bounds": {"x": (0, 1e-300)}}, "at least 1e-100 apart"),
        ({"bounds": {"x": (0, float("nan"))}}, "two finite numbers"),
        ({"epsilon": 1e-300}, "too small"),
        ({"data": NESTED.cast({"x": pl.Float32}), "bounds": {"x": (0, 1e50)}}, "must fit the type of column 'x'"),
        ({"keep": "nowhere"}, "'keep' names column 'nowhere'"),
        ({"keep": "parts", "output": "o.csv"}, "A CSV file cannot hold column 'parts', of type List"),
        ({"keep": "name of the firm", "output": "o.xpt"}, "A .xpt file cannot store this table: .* space"),
        ({"output": "nowhere/o.csv"}, "folder nowhere does not exist"),
        ({"output": "folder.csv"}, "it is a folder"),
        ({"output": "o.docx"}, "must end in"),
        ({"seed": -1}, "'seed' must be"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::shoal.core.errors.UnprotectedColumnWarning")
def test_a_refusal_spends_nothing(tmp_path, monkeypatch, options, rule):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    before = set(tmp_path.iterdir())
    arguments = {"data": NESTED, "epsilon": 1.0, "bounds": BOUNDS, "method": "none", **FIRST}
    arguments |= {"ledger": "L.json", "total_budget": 3.0} | options
    with pytest.raises(ShoalError, match=rule):
        shoal.publish(**arguments)
    assert set(tmp_path.iterdir()) == before


def test_a_writer_that_fails_spends_nothing(tmp_path, monkeypatch):
    from shoal.tables import files

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_csv", fail)
    before = set(tmp_path.iterdir())
    targets = {"ledger": tmp_path / "L.json", "output": tmp_path / "o.csv"}
    with pytest.raises(FileError, match="No space left on device"):
        shoal.publish(TABLE, 1.0, bounds=BOUNDS, total_budget=3, **targets, **FIRST)
    assert set(tmp_path.iterdir()) == before


def test_a_rehearsal_leaves_no_file_and_shows_no_value(tmp_path, monkeypatch):
    from shoal.privacy import noisy_release

    written = []
    write = noisy_release.write_table
    monkeypatch.setattr(
        noisy_release, "write_table", lambda table, path: (written.append(table.native), write(table, path))
    )
    files = {"ledger": tmp_path / "L.json", "output": tmp_path / "o.csv"}
    shoal.publish(TABLE, 1.0, bounds=BOUNDS, total_budget=3, **files, **FIRST)
    assert written[0]["x"].to_list() == [5.0] * 3  # the upper bound
    assert {path.name for path in tmp_path.iterdir()} == {"o.csv", "L.json", ".L.json.lock"}


# One data set, one definition, started on purpose


def test_a_missing_ledger_is_not_created_again(tmp_path):
    path = tmp_path / "L.json"
    of = {"bounds": BOUNDS, "ledger": path, "dataset": "ours"}
    with pytest.raises(
        InputError, match=r"L\.json does not exist\. .* For the first release, use new_ledger=True and set"
    ):
        shoal.publish(TABLE, 1.0, total_budget=3, **of)
    shoal.publish(TABLE, 1.0, total_budget=3, new_ledger=True, **of)
    with pytest.raises(InputError, match="already exists, so new_ledger=True is refused"):
        shoal.publish(TABLE, 1.0, total_budget=3, new_ledger=True, **of)
    path.unlink()
    with pytest.raises(InputError, match="restore it: a new ledger would not contain the budget spent so far"):
        shoal.publish(TABLE, 1.0, total_budget=3, **of)
    assert not path.exists()


def test_a_ledger_belongs_to_one_data_set(tmp_path):
    path = tmp_path / "L.json"
    wide = TABLE.with_columns(y=pl.lit(1.0))
    shoal.publish(wide, 1.0, bounds=BOUNDS, ledger=path, total_budget=3, **FIRST)
    content = json.loads(path.read_text())
    assert (content["dataset"], content["schema"]) == ("ours", ["x", "y"])  # names, and nothing derived from values
    before = path.read_bytes()
    for table, options, rule in [
        (TABLE, {"dataset": "theirs"}, "records the budget of data set 'ours', got 'theirs' in 'dataset'"),
        (
            TABLE.rename({"x": "z"}),
            {"dataset": "ours", "bounds": {"z": (0, 5)}},
            "with columns x, y; 'z' is not one of them",
        ),
        (TABLE, {}, "'ledger' requires 'dataset'"),
        (TABLE, {"dataset": " "}, "'ledger' requires 'dataset'"),
    ]:
        with pytest.raises(InputError, match=rule):
            shoal.publish(table, 1.0, **({"bounds": BOUNDS, "ledger": path} | options))
    assert path.read_bytes() == before
    for name, value in [("dataset", "ours"), ("total_budget", 3.0), ("new_ledger", True)]:
        with pytest.raises(InputError, match=f"'{name}' requires a ledger"):
            shoal.publish(TABLE, 1.0, bounds=BOUNDS, **{name: value})
    # Other values of the same people are the same data set, and one with fewer columns too.
    shoal.publish(TABLE * 2, 1.0, bounds=BOUNDS, ledger=path, dataset="ours")
    assert spent(path) == 2.0


@pytest.mark.parametrize("first", ["none", "optimal"])
def test_budgets_of_two_definitions_are_not_added(tmp_path, first):
    path, second = tmp_path / "L.json", {"none": "optimal", "optimal": "none"}[first]
    shoal.publish(TABLE, 1.0, bounds=BOUNDS, method=first, ledger=path, total_budget=3, **FIRST)
    before = path.read_bytes()
    numbers = {"none": 1, "optimal": 3}
    rule = f"under Definition {numbers[first]}, and one under Definition {numbers[second]} cannot be added"
    with pytest.raises(InputError, match=rule):
        shoal.publish(TABLE, 1.0, bounds=BOUNDS, method=second, ledger=path, dataset="ours")
    assert path.read_bytes() == before


ENTRY = '{"number": 1, "time": "t", "epsilon": 1.0}'


@pytest.mark.parametrize(
    ("total", "entries"),
    [
        ("Infinity", ""),
        ("NaN", ""),
        ("1e999", ""),
        ("-1", ""),
        ("true", ""),
        ('"3"', ""),
        ("3", "1"),
        ("3", '{"number": 1}'),
        ("3", '{"number": 2, "epsilon": 1.0}'),
        ("3", '{"number": 1, "epsilon": -1.0}'),
        ("3", '{"number": 1, "epsilon": "1"}'),
        ("3", '{"number": 1, "epsilon": Infinity}'),
        ("3", f"{ENTRY}, {ENTRY}"),
        ("1" + "0" * 400, ""),
        ("3", '{"number": 1, "epsilon": 1' + "0" * 400 + "}"),
        ("3", '{"number": 1, "epsilon": 1.0, "unit": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        ("3", '{"number": 1, "epsilon": 1.0, "epsilon": 0.1}'),
        ('3, "total_budget": 30', ""),
        ('3, "schema": 5', ""),
        ('3, "schema": "xy"', ""),
        ('3, "schema": [["x"]]', ""),
        ('3, "schema": ["\\ud800"]', ""),
        ("3", '{"number": 1, "epsilon": 1.0, "time": "\\ud800"}'),
    ],
    ids=range(23),
)
def test_a_damaged_ledger_is_refused_with_a_message_and_not_changed(tmp_path, total, entries):
    path = tmp_path / "L.json"
    path.write_text(f'{{"format": "shoal budget ledger 1", "total_budget": {total}, "entries": [{entries}]}}')
    before = path.read_bytes()
    with pytest.raises(InputError, match="is not a shoal budget ledger, or it is damaged"):
        spend(path, 1.0, None, {})
    assert path.read_bytes() == before


def test_a_ledger_that_may_not_be_written_is_refused_before_anything_is_drawn(tmp_path, monkeypatch):
    path = tmp_path / "L.json"
    spend(path, 1.0, 3.0, {}, new=True)
    monkeypatch.setattr("os.access", lambda path, _: Path(path).is_dir())  # the tests may run as root
    with pytest.raises(FileError, match="cannot be written: it is read-only for you"):
        spend(path, 1.0, None, {})
    assert spent(path) == 1.0


def test_the_folder_of_a_ledger_is_flushed_too(tmp_path, monkeypatch):
    import os

    flushed = []
    flush = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (flushed.append(os.fstat(handle).st_ino), flush(handle)))
    spend(tmp_path / "L.json", 1.0, 3.0, {}, new=True)
    assert flushed[-1] == tmp_path.stat().st_ino
    assert (tmp_path / "L.json").stat().st_ino in flushed
