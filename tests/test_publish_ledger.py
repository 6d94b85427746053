"""The ledger: what is spent adds up, is recorded first, and survives concurrent and killed processes."""

import json
import subprocess
import sys

import polars as pl
import pytest

import shoal
from shoal.core.errors import FileError, InputError, ShoalError
from shoal.privacy.ledger import BudgetExceededError, spend, spent

TABLE = pl.DataFrame({"x": [1.0, 2.0, 3.0]})
BOUNDS = {"x": (0.0, 5.0)}


def test_budgets_add_up_as_typed_and_are_refused_beyond_the_total(tmp_path):
    path = tmp_path / "L.json"
    for number in range(1, 11):
        entry = shoal.publish(TABLE, 0.1, bounds=BOUNDS, ledger=path, total_budget=1.0).ledger_entry
        assert entry["number"] == number
    assert entry["spent"] == spent(path) == 1.0  # ten times 0.1, without a rounding error
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError, match=r"allows epsilon=1 in total; 1 is spent, so 1e-09 more is refused"):
        shoal.publish(TABLE, 1e-9, bounds=BOUNDS, ledger=path)
    assert path.read_bytes() == before


def test_an_entry_says_what_was_released_and_no_value(tmp_path):
    path = tmp_path / "L.json"
    release = shoal.publish(TABLE, 1.0, bounds=BOUNDS, method="none", ledger=path, total_budget=3)
    content = json.loads(path.read_text())
    assert content["total_budget"] == 3.0
    (entry,) = content["entries"]
    assert {"number", "time", "epsilon", "method", "definition", "columns"} == set(entry)
    assert (entry["method"], entry["definition"], entry["columns"]) == ("none", 1, ["x"])
    assert "L.json: 1 of 3 spent" in str(release)


def test_the_budget_is_recorded_before_the_noise_is_drawn(tmp_path, monkeypatch):
    from shoal.privacy import publishing

    def fail(*_, **__):
        raise RuntimeError("power cut")

    monkeypatch.setattr(publishing, "noisy_means", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        shoal.publish(TABLE, 1.0, bounds=BOUNDS, ledger=tmp_path / "L.json", total_budget=3)
    assert spent(tmp_path / "L.json") == 1.0


def test_a_refused_budget_writes_no_table(tmp_path):
    with pytest.raises(BudgetExceededError):
        shoal.publish(TABLE, 2.0, bounds=BOUNDS, ledger=tmp_path / "L.json", total_budget=1, output=tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()
    assert not (tmp_path / "L.json").exists()


SPENDER = """
import sys
from shoal.privacy.ledger import BudgetExceededError, spend
done = 0
for _ in range(15):
    try:
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
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path, text):
    path = tmp_path / "L.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a budget ledger of shoal"):
        spend(path, 1.0, 3.0, {})
    assert path.read_text() == text


def test_refusals(tmp_path):
    with pytest.raises(InputError, match=r"needs the total budget of the data set\. Name 'total_budget'"):
        spend(tmp_path / "L.json", 1.0, None, {})
    spend(tmp_path / "L.json", 1.0, 3.0, {})
    with pytest.raises(InputError, match=r"must be the one that ledger .* records, 3, got 5"):
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
        spend(path, 0.1, 5.0, {})
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
    spend(path, 1.0, 3.0, {})
    other.hardlink_to(path)
    before = path.read_bytes()
    for name in (path, other):
        with pytest.raises(InputError, match=rf"Ledger .*{name.name} must have one name, but it has 2 .* symbolic"):
            shoal.publish(TABLE, 1.0, bounds=BOUNDS, ledger=name)
    assert path.read_bytes() == other.read_bytes() == before
    other.unlink()
    other.symlink_to(path)
    assert spend(other, 1.0, None, {})["spent"] == 2.0


def test_a_link_that_leads_nowhere_is_refused(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    with pytest.raises(FileError, match=r"Ledger .*a\.json cannot be read"):
        spend(tmp_path / "a.json", 1.0, 3.0, {})


# Whatever can be refused is refused before anything is spent

NESTED = pl.DataFrame({"x": [1.0, 2.0], "parts": [[1], [2]], "name of the firm": ["ž", "ß"]})


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"bounds": {"x": (0, 1e200)}}, r"'bounds' must lie between -1e\+100 and 1e\+100"),
        ({"bounds": {"x": (0, 1e-300)}}, "at least 1e-100 apart"),
        ({"bounds": {"x": (0, float("nan"))}}, "two finite numbers"),
        ({"epsilon": 1e-300}, "too small"),
        ({"data": NESTED.cast({"x": pl.Float32}), "bounds": {"x": (0, 1e50)}}, "must fit the type of column 'x'"),
        ({"keep": "nowhere"}, "'keep' names column 'nowhere'"),
        ({"keep": "parts", "output": "o.csv"}, "A CSV file cannot hold column 'parts', of type List"),
        ({"keep": "name of the firm", "output": "o.xpt"}, "A file .xpt cannot hold this table: .* space"),
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
    arguments = {"data": NESTED, "epsilon": 1.0, "bounds": BOUNDS, "ledger": "L.json", "total_budget": 3.0} | options
    with pytest.raises(ShoalError, match=rule):
        shoal.publish(**arguments)
    assert set(tmp_path.iterdir()) == before


def test_a_writer_that_fails_spends_nothing(tmp_path, monkeypatch):
    from shoal.tables import files

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_csv", fail)
    before = set(tmp_path.iterdir())
    with pytest.raises(FileError, match="No space left on device"):
        shoal.publish(TABLE, 1.0, bounds=BOUNDS, ledger=tmp_path / "L.json", total_budget=3, output=tmp_path / "o.csv")
    assert set(tmp_path.iterdir()) == before


def test_a_rehearsal_leaves_no_file_and_shows_no_value(tmp_path, monkeypatch):
    from shoal.privacy import publishing

    written = []
    write = publishing.write_table
    monkeypatch.setattr(
        publishing, "write_table", lambda table, path: (written.append(table.native), write(table, path))
    )
    shoal.publish(TABLE, 1.0, bounds=BOUNDS, ledger=tmp_path / "L.json", total_budget=3, output=tmp_path / "o.csv")
    assert written[0]["x"].to_list() == [5.0] * 3  # the upper bound
    assert {path.name for path in tmp_path.iterdir()} == {"o.csv", "L.json", ".L.json.lock"}
