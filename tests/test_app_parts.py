"""Parts of the page without a browser: progress of long work, the view of a table, settings, the state folder."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import command

import shoal
from shoal.algorithms import auto
from shoal.app.charts import risk_utility_map
from shoal.app.folder import Folder, state_folder
from shoal.app.release_files import write_files
from shoal.app.release_step import warnings_of
from shoal.app.roles_file_card import save_roles, use_roles
from shoal.app.settings import Settings, from_plain, to_plain
from shoal.app.table_file import OpenedFile, identified, inspect_table
from shoal.app.texts import help_of, in_labels, methods, options_of
from shoal.app.versions import Version, make_version, preview
from shoal.app.work import Work
from shoal.core.progress import STOP, watch
from shoal.demo import firms
from shoal.masking.manifest import read_manifest


@pytest.fixture
def work(tmp_path):
    firms(400).write_csv(tmp_path / "firms.csv")
    source = OpenedFile(tmp_path / "firms.csv", str(tmp_path / "firms.csv"))
    return Work().with_table(*inspect_table(identified(source), tmp_path / "part.csv"))


def test_a_watcher_can_stop_a_search_and_keep_the_best_groups():
    X = np.random.default_rng(0).normal(size=(300, 2))
    told = []

    def watcher(progress):
        told.append(progress)
        return len(told) == 3

    with shoal.watching(watcher):
        release = shoal.mask(X, 3, method="search", time_limit=60)
    assert "search" in told[2].title
    assert release.timings["partition"] < 50
    assert not release.repeatable


@pytest.mark.parametrize("done", [0, 1])
def test_a_watcher_can_stop_the_default_method_and_keep_its_groups(done, monkeypatch):
    """At its beginning, while MDAV groups the records, or while its groups are improved."""
    monkeypatch.setattr(auto, "REGION", 100)
    X = np.random.default_rng(0).normal(size=(40_000, 6))
    stopped = []

    def watcher(progress):
        stopped.append(progress.title == "auto" and progress.done >= done * len(X) // 3)
        return stopped[-1]

    with shoal.watching(watcher):
        release = shoal.mask(X, 5, block=0)
    assert any(stopped)
    assert release.facts["stopped"] == "by hand"
    assert not release.repeatable
    assert release.sizes.min() >= 5
    assert release.sizes.max() < 10


def test_a_watcher_can_interrupt_work_without_intermediate_results():
    def work(state):
        while not state[STOP]:
            time.sleep(0.01)
        return "a part"

    with shoal.watching(lambda _: True), pytest.raises(KeyboardInterrupt):
        watch(work, 10)
    with shoal.watching(lambda _: True):
        assert watch(work, 10, keep=True) == "a part"


def test_the_remaining_time_follows_from_the_completed_work():
    assert shoal.Progress("", 25, 100, 2.0).left == 6.0
    assert shoal.Progress("", 0, 100, 2.0).left is None
    assert shoal.Progress("", 3, None, 2.0).left is None


def test_a_table_judged_by_a_part_is_counted_as_a_whole():
    table = pl.concat([firms(600), firms(600)])
    whole, part = shoal.inspect(table), shoal.inspect(table, most=300)
    assert [(c.name, c.distinct, c.missing) for c in part.columns] == [
        (c.name, c.distinct, c.missing) for c in whole.columns
    ]
    assert (part.records, part.uniques) == (1200, 0)
    assert part.view.alike(["region"]) == dict.fromkeys(sorted(table["region"].value_counts()["count"]), 1)


def test_a_large_file_is_shown_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.app.table_file.MOST_BYTES", 1000)
    monkeypatch.setattr("shoal.app.table_file.HEAD", 50)
    firms(400).write_csv(tmp_path / "firms.csv")
    firms(400).write_parquet(tmp_path / "firms.parquet")
    for name in ("firms.csv", "firms.parquet"):
        table, found = inspect_table(OpenedFile(tmp_path / name, name), tmp_path / "part.csv")
        assert table.partial
        assert found.records == 50
        work = Work().with_table(table, found)
        one = make_version(work, 1, work.settings, tmp_path)
        assert (one.release.records, one.release.parameters["engine"]) == (400, "local")  # from file to file
        assert "--engine local" in one.release.command("in", "out")
        point = risk_utility_map([one], 1, dark=False)["series"][0]["data"][0]
        # A risk that was not measured is not drawn as zero.
        assert (point["value"][1], point["symbol"]) == (round(100 * len(one.release.sizes) / 400, 4), "emptyCircle")
    assert not (tmp_path / "part.csv").exists()


def test_a_large_damaged_parquet_file_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.app.table_file.MOST_BYTES", 10)
    (tmp_path / "in.parquet").write_bytes(b"PAR1 nothing at all PAR1")
    with pytest.raises(shoal.FileError, match=r"File .*in\.parquet cannot be read: .* restore a copy\."):
        inspect_table(OpenedFile(tmp_path / "in.parquet", "in.parquet"), tmp_path / "scratch")


def test_proposed_roles_can_be_masked_and_the_command_gives_the_same_bytes(work, tmp_path):
    one = make_version(work, 1, work.settings, tmp_path)
    assert one.release.parameters["columns"] == work.settings.named("key")
    assert one.figures["linked"] > 0
    call = one.release.call(str(work.table.path), str(tmp_path / "again.csv"))
    exec(call, {})
    assert (tmp_path / "again.csv").read_bytes() == one.masked_file(work.table).read_bytes()
    found = preview(work, work.settings)
    assert 0 < found.loss < 100
    assert found.linked > 0
    assert (found.records <= 400, found.method) == (True, "auto")


def test_settings_describe_changes_of_a_masking(work):
    before, now = work.settings, work.settings.copy()
    now.asked["options"] = {}
    now.importance["sales"] = 1.0
    assert now.changes_since(before) == []
    now.asked |= {"k": 9, "seed": 4, "zeros": ["research"]}
    now.roles["sales"] = "identifier"
    assert now.changes_since(before) == [
        "Role of sales: Identifier: left out (was Key: masked)",
        f"Group size k: 9 (was {before.asked['k']})",
        "Columns whose zeros are kept",
        "Random seed: 4 (was default)",
    ]
    assert all(label.partition(":")[0] for label in before.changes_since(now))
    for name in ("kinds", "codes"):
        other = before.copy()
        getattr(other, name)["employees"] = {"kinds": "nominal", "codes": ["-1"]}[name]
        assert other.changes_since(before)


def test_a_chosen_version_restores_its_settings_unless_the_form_has_new_ones(work):
    old, new = work.settings.copy(), work.settings.copy()
    new.asked["k"] = 9
    work.versions = [Version(1, old), Version(2, new)]
    work.settings, work.chosen = new.copy(), 2
    work.choose(work.versions[0])
    assert (work.settings, work.chosen, work.compared) == (old, 1, 2)
    work.settings.asked["k"] = 7  # not tried yet
    work.choose(work.versions[1])
    assert (work.settings.asked["k"], work.chosen) == (7, 2)


def test_a_file_that_changed_since_it_was_opened_is_not_masked(work, tmp_path):
    assert not work.table.changed
    firms(401).write_csv(work.table.path)
    assert work.table.changed
    with pytest.raises(shoal.InputError, match=r"firms\.csv has changed on disk"):
        make_version(work, 1, work.settings, tmp_path)
    work.table.path.unlink()
    assert work.table.changed


def test_only_confirmed_files_are_replaced(work, tmp_path):
    one = make_version(work, 1, work.settings, tmp_path)
    output = tmp_path / "out.csv"
    output.write_text("precious")
    with pytest.raises(shoal.FileError, match=r"out\.csv already exists"):
        write_files(one, work.table, {"masked": output}, replace=[tmp_path / "other.csv"])
    assert output.read_text() == "precious"
    assert write_files(one, work.table, {"masked": output}, replace=[output]) == [output]
    assert output.read_bytes() == one.masked_file(work.table).read_bytes()
    same = tmp_path / "same.csv"
    same.hardlink_to(work.table.path)
    with pytest.raises(shoal.FileError, match=r"same\.csv is the table itself"):
        write_files(one, work.table, {"masked": same}, replace=[same])


def test_incompatible_settings_are_refused_with_a_message(work):
    settings = work.settings.copy()
    for name in settings.roles:
        settings.roles[name] = "other"
    with pytest.raises(shoal.InputError, match="nothing to mask"):
        settings.request()
    settings = work.settings.copy()
    settings.roles |= {"sales": "weight", "weight": "weight"}
    with pytest.raises(shoal.InputError, match="one column, got weight, sales"):
        settings.request()


def test_an_identifying_unit_is_left_out_but_counted():
    table = pl.DataFrame({"person_id": np.repeat(np.arange(40), 2), "age": np.arange(80) % 30})
    settings = Settings.proposed(shoal.inspect(table))
    settings.roles["person_id"] = "unit left out"
    asked = settings.parameters()
    assert (asked["unit"], asked["identifiers"]) == ("person_id", ["person_id"])
    assert "person_id" not in shoal.mask(table, **asked).data.columns


def test_columns_that_cannot_be_masked_are_proposed_to_be_left_out():
    n = 1200
    table = pl.DataFrame(
        {
            "age": np.arange(n) % 70,
            "place": [f"place {max(0, i - 100)}" for i in range(n)],
            "born": [f"{1 + i % 28:02}.01.1980" if i % 2 else "1980-01-01" for i in range(n)],
            "household_id": [None, *(i // 3 for i in range(1, n))],
        }
    )
    found = shoal.inspect(table)
    settings = Settings.proposed(found)
    assert settings.roles == {"age": "key", **dict.fromkeys(["place", "born", "household_id"], "identifier")}
    assert settings.parameters()["identifiers"] == found.asked["identifiers"]
    assert shoal.mask(table, **settings.parameters()).data.columns == ["age"]


def test_help_and_choices_come_from_the_request_and_the_registry():
    assert help_of("k") == "Smallest group size, at least 2."
    assert methods() == shoal.methods().names
    assert {option.name for option in options_of("search")} >= {"time_limit", "bound"}
    assert "effort" not in {option.name for option in options_of("auto")}  # it is one choice, not two
    assert not any("Python" in help_of(item.name) for item in shoal.MaskRequest.parameters())


def test_the_state_folder_is_private_and_remembers_paths_only(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = Folder(state_folder())
    for n in range(12):
        (tmp_path / f"{n}.csv").touch()
        folder.remember(tmp_path / f"{n}.csv")
    assert folder.recent()[0] == tmp_path / "11.csv"
    assert len(folder.recent()) == 8
    assert (tmp_path / "shoal").stat().st_mode & 0o777 == 0o700
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.fresh("a.csv") != folder.fresh("a.csv")
    folder.remove()
    folder.forget()
    assert not list((tmp_path / "shoal").iterdir())


def test_sessions_that_were_killed_are_removed_and_running_ones_stay(tmp_path):
    program = "import sys; from pathlib import Path; from shoal.app.folder import Folder; "
    program += "f = Folder(Path(sys.argv[1])); f.fresh('a.csv').touch(); print(f.path, flush=True); sys.stdin.read()"
    owner = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    theirs = Path(owner.stdout.readline().strip())
    first = Folder(tmp_path)
    assert theirs.is_dir()
    owner.kill()
    owner.communicate()
    assert list(theirs.rglob("a.csv"))
    second = Folder(tmp_path)
    assert not theirs.exists()
    assert first.path.is_dir()
    for folder in (first, second):
        folder.remove()


def test_the_address_can_be_opened_as_soon_as_it_is_printed(tmp_path):
    pytest.importorskip("nicegui")
    program = """
import os, re, signal, socket
from shoal.app.server import serve


def tell(words):
    port = int(re.search(r":(\\d+)/", words)[1])
    socket.create_connection(("127.0.0.1", port)).close()
    print("connected", flush=True)
    os.kill(os.getpid(), signal.SIGINT)


serve(None, browser=False, tell=tell)
"""
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert "connected" in run.stdout


def test_settings_are_kept_for_the_next_session_alone_without_values(work, tmp_path):
    home = tmp_path / "state"
    home.mkdir()
    folder = Folder(home)
    work.settings.kinds["region"] = work.values_of("region")[::-1]
    work.settings.codes["sales"] = [str(work.values_of("sales")[0])]
    folder.store("key", {"csv": {}, "settings": to_plain(work, work.settings)})
    assert folder.stored("key") == {}  # tabs of a session have separate work
    written = home / "settings-key.json"
    assert written.stat().st_mode & 0o777 == 0o600
    assert not any(
        value in written.read_text() for value in (*work.values_of("region"), work.settings.codes["sales"][0])
    )
    later = Folder(home)
    assert from_plain(work, later.stored("key")["settings"]) == work.settings
    written.write_text("{}")
    assert later.stored("key") == {}
    for number in range(40):
        later.store(f"{number}", {})
    assert len(list(home.glob("settings-*"))) == 30
    later.forget()
    for one in (folder, later):
        one.remove()
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["roles"].pop("sales"),
        lambda plain: plain["roles"].update(sales="<b>"),
        lambda plain: plain["asked"].update(k="2 onload=x"),
        lambda plain: plain["asked"].update(other=1),
        lambda plain: plain["kinds"].update(region=[{"place": 99}]),
        lambda plain: plain.update(more=1),
        lambda plain: plain.pop("kinds"),
    ],
)
def test_settings_that_do_not_fit_the_table_are_refused(work, change):
    plain = to_plain(work, work.settings)
    assert from_plain(work, to_plain(work, work.settings)) == work.settings
    change(plain)
    with pytest.raises(ValueError, match=r"."):
        from_plain(work, plain)


def test_a_command_and_a_call_have_only_chosen_settings(tmp_path):
    table = pl.DataFrame({"a": np.arange(12.0), "b": np.arange(12.0)[::-1]})
    plain = shoal.mask(table, 3)
    assert plain.command("in.csv", "out.csv") == "shoal mask in.csv -k 3 -c a -c b -o out.csv"
    assert "seed" not in plain.call("in.csv", "out.csv")
    chosen = shoal.mask(table, 3, seed=4, effort="fast", method="auto", bound=True)
    assert chosen.command("i", "o") == "shoal mask i -k 3 -c a -c b --effort fast --seed 4 -O bound=True -o o"
    given = shoal.mask(
        table, 3, method="search", steps=24, start=np.arange(12) // 3
    )  # no command can contain these labels
    assert given.command("i", "o") == "shoal mask i -k 3 -c a -c b -m search -O steps=24 -o o"
    assert "start" not in given.call("i", "o")
    weighed = shoal.mask(table, 3, weights=np.arange(1.0, 13.0))
    assert "weights" not in weighed.command("i", "o") + weighed.call("i", "o")
    assert not given.repeatable
    assert not weighed.repeatable
    table.write_csv(tmp_path / "in.csv")
    given = shoal.mask(
        tmp_path / "in.csv", 3, method="search", steps=24, start=np.arange(12) // 3, output=tmp_path / "o.csv"
    )
    given.manifest(tmp_path / "run.json", source=tmp_path / "in.csv", output=tmp_path / "o.csv")
    with pytest.raises(shoal.InputError, match="'start' was an object, which a manifest cannot hold"):
        read_manifest(tmp_path / "run.json")


def test_a_command_names_the_file_of_a_hierarchy():
    table = pl.DataFrame({"town": ["Bath", "York"] * 4})
    towns = shoal.Hierarchy({"Bath": ["South", "all"], "York": ["North", "all"]})
    release = shoal.mask(table, 4, columns=["town"], kinds={"town": towns}, method="mdav")
    assert "--hierarchy town=towns.csv" in release.command("in.csv", "out.csv", {"town": "towns.csv"})
    assert release.repeatable


def test_warnings_of_unprotected_columns_come_first(work, tmp_path):
    """On the card of a version, and among the warnings that are ticked off."""
    work.settings.roles |= {"region": "confidential", "profit": "other"}
    work.settings.asked |= {"k": 3, "method": "mdav", "missing": "drop", "max_left_out": "10%"}
    one = make_version(work, 1, work.settings, tmp_path)
    reasons = one.release.verdict.reasons
    assert one.figures["verdict"].startswith("STOP: ")
    assert one.figures["warnings"] == [
        reason.sentence.worded(in_labels) for reason in reasons if reason.level == "stop"
    ]
    read = dict(zip([reason.name for reason in reasons], warnings_of(one), strict=False))
    assert read["sensitive"].startswith("All records of a group share one sensitive value")
    assert ": region in " in read["sensitive"]
    assert read["dominated"].startswith("One record dominates its group")


@pytest.mark.parametrize(
    "change", [{"warnings": 5}, {"warnings": [5]}, {"verdict": 5}, {"diversity": 2.0, "closeness": None}, {"loss": "0"}]
)
def test_saved_figures_that_shoal_does_not_write_are_refused(work, tmp_path, change):
    from shoal.app.saved_work import _read_version

    work.settings.asked |= {"k": 3, "method": "mdav", "missing": "drop", "max_left_out": "10%"}
    figures = make_version(work, 1, work.settings, tmp_path).figures
    plain = {"number": 1, "settings": to_plain(work, work.settings), "figures": figures, "stopped": False}
    assert _read_version(work, plain).figures == figures
    with pytest.raises((TypeError, ValueError)):
        _read_version(work, {**plain, "figures": figures | change})


def changed_roles(work):
    """Change the form as a user could, in all that a roles file holds."""
    settings = work.settings
    settings.roles |= {"sales": "identifier", "wages": "other", "sector": "stratum", "region": "key"}
    settings.kinds["region"] = work.values_of("region")
    regions = work.values_of("sector")
    settings.kinds["sector"] = {"ways": {name: ["any"] for name in regions}, "release": "ancestor"}
    settings.codes["employees"] = [work.values_of("employees")[0]]
    settings.asked = {"k": 5, "method": "mdav"}


@pytest.mark.parametrize("proposed", [True, False])
def test_saved_roles_mask_as_the_page_does(work, tmp_path, proposed):
    if not proposed:
        changed_roles(work)
    text = save_roles(work, tmp_path / "firms.roles.toml")
    assert f"--roles {tmp_path / 'firms.roles.toml'}" in text
    assert " -c " not in text
    done = command(*shlex.split(text)[1:])
    assert done.returncode == 0, done.stderr
    one = make_version(work, 1, work.settings, tmp_path)
    assert Path(shlex.split(text)[-1]).read_bytes() == one.masked_file(work.table).read_bytes()


def test_roles_alone_need_no_more_than_k(work, tmp_path):
    """The command names no other setting if the form holds none."""
    work.settings.asked = {"k": 5}
    path = tmp_path / "firms.roles.toml"
    text = save_roles(work, path)
    assert shlex.split(text)[:7] == ["shoal", "mask", str(work.table.path), "-k", "5", "--roles", str(path)]
    assert shlex.split(text)[7] == "-o"


def test_roles_that_are_saved_and_used_give_the_same_form(work, tmp_path):
    changed_roles(work)
    before = work.settings.copy()
    save_roles(work, tmp_path / "roles.toml")
    work.settings = Settings.proposed(work.inspection)
    work.settings.asked |= {"k": 5, "method": "mdav"}
    use_roles(work, tmp_path / "roles.toml")
    assert work.settings.parameters() == before.parameters()
    assert work.settings.changes_since(before) == []


def test_roles_of_inspect_mask_on_the_page_as_on_the_command_line(work, tmp_path):
    path = work.inspection.save(tmp_path / "roles.toml", "firms.csv")
    path.write_text(path.read_text().replace('[columns."profit"]', '[columns."profit"]\nmissing = [-9]'))
    work.settings.asked |= {"k": 7, "method": "mdav"}
    use_roles(work, path)
    one = make_version(work, 1, work.settings, tmp_path)
    output = tmp_path / "out.csv"
    done = command("mask", work.table.path, "-k", 7, "-m", "mdav", "--roles", path, "-o", output)
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == one.masked_file(work.table).read_bytes()
    assert work.settings.codes == {"profit": [-9]}


def test_roles_of_a_file_replace_proposals_for_other_columns(work):
    roles, settings = work.inspection.column_roles, work.settings
    settings.asked = {"k": 3, "zeros": ["research"], "small": "suppress", "seed": 3}
    settings.importance["sales"] = 4.0
    used = settings.with_roles(roles, {"zeros": ["research"], "small": "merge"})
    assert (used.asked, used.importance) == ({"k": 3, "small": "suppress", "seed": 3}, {})
    assert settings.with_roles(roles, {}).asked == settings.asked


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"sales"', '"saless"', r"has column 'saless', which the table does not have.*'sales'"),
        ('role = "key"', 'role = "kee"', "has role 'kee' for column"),
        ('[columns."sales"]', '[columns."sales"]\nmising = 1', "has an unknown entry 'mising' for column 'sales'"),
        ('role = "key"', 'role = "drop"', "has no column with role 'key'"),
        ("[columns", "[[columns", "is not valid TOML"),
    ],
)
def test_roles_that_do_not_fit_the_table_change_nothing(work, tmp_path, old, new, words):
    path = work.inspection.save(tmp_path / "roles.toml")
    path.write_text(path.read_text().replace(old, new))
    before = work.settings.copy()
    with pytest.raises(shoal.ShoalError, match=words):
        use_roles(work, path)
    assert work.settings == before


def test_a_unit_that_stays_in_the_release_is_in_no_roles_file(work, tmp_path):
    work.settings.roles["sector"] = "unit"
    with pytest.raises(shoal.InputError, match="leaves the unit column out, but 'keep' names 'sector'"):
        save_roles(work, tmp_path / "roles.toml")
    work.settings.roles["sector"] = "unit left out"
    with pytest.raises(shoal.InputError, match=r"roles\.txt must end in \.toml"):
        save_roles(work, tmp_path / "roles.txt")
    save_roles(work, tmp_path / "roles.toml")
    assert shoal.Roles.read(tmp_path / "roles.toml")["sector"].role == "unit"


@pytest.mark.parametrize(
    ("name", "suffix", "ending"),
    [
        ("a.csv.gz", ".csv", ".csv"),
        ("A.XLSX", ".xlsx", ".xlsx"),
        ("a.sas7bdat", ".sas7bdat", ".csv"),
        ("a", "", ".csv"),
    ],
)
def test_files_made_from_a_table_have_an_ending_that_can_be_written(tmp_path, name, suffix, ending):
    table = OpenedFile(tmp_path / name, str(tmp_path / name))
    assert (table.suffix, table.ending) == (suffix, ending)


def test_the_sheets_of_an_excel_file_are_seen(tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra shoal[excel] is not installed")
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        for name in ("Adults", "Children"):
            sheet = book.add_worksheet(name)
            for place, row in enumerate([["age"], *([i % 9] for i in range(40))]):
                sheet.write_row(place, 0, row)
    path = tmp_path / "book.xlsx"
    table = OpenedFile(path, str(path), csv={"sheet": "Children"})
    assert inspect_table(table, tmp_path / "part")[1].view.sheets == ("Adults", "Children")
    firms(40).write_csv(tmp_path / "firms.csv")
    assert shoal.inspect(tmp_path / "firms.csv").view.sheets == ()
