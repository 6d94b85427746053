"""The files of a run: all are new or all are old, whatever fails and whenever it is interrupted."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from conftest import command

import shoal
from shoal.core.errors import FileError
from shoal.core.progress import SIGNALS, watch
from shoal.demo import firms
from shoal.tables import outputs
from shoal.tables.files import sha256, write_file
from shoal.tables.outputs import moved_together, noting, written_beside, written_path

NAMES = {"-o": "out.csv", "--labels": "labels.csv", "--manifest": "run.json", "--report": "report.html"}


def mask_arguments(engine):
    named = [word for pair in NAMES.items() for word in pair]
    return ["mask", "firms.csv", "-k", "5", "-c", "sales", "--engine", engine, *named]


def fill(folder):
    """A folder with the input and an older file of every name."""
    write_file(firms(60), folder / "firms.csv")
    for name in NAMES.values():
        (folder / name).write_text("old")


def is_new(folder):
    return {name: (folder / name).read_text() != "old" for name in NAMES.values()}


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path)
    return tmp_path


# Named steps of a run, in order; afterwards the table is in place.
MOMENTS = [
    ("shoal.tables.outputs", "_keep", 1, "before", False),
    ("shoal.masking.memory", "write_table", 1, "after", False),
    ("shoal.masking.memory", "read_back", 1, "after", False),
    ("shoal.masking.memory", "write_file", 1, "before", False),
    ("shoal.masking.memory", "write_file", 1, "after", False),
    ("shoal.masking.manifest", "sha256", 1, "before", False),
    ("shoal.masking.manifest", "sha256", 2, "after", False),
    ("shoal.masking.manifest", "write_manifest", 1, "after", False),
    ("shoal.report.pages", "release_page", 1, "before", False),
    ("shoal.report.pages", "write_page", 1, "before", False),
    ("shoal.report.pages", "write_page", 1, "after", False),
    *((("pathlib", "replace", number, "before", False)) for number in (1, 2, 3, 4)),
    *((("pathlib", "replace", number, "after", number == 4)) for number in (1, 2, 3, 4)),
    ("shoal.cli.mask_command", "print_release", 1, "before", True),
    ("shoal.cli.mask_command", "print_release", 1, "after", True),
]


@pytest.mark.parametrize(("module", "name", "number", "after", "placed"), MOMENTS)
def test_an_interrupt_lists_the_written_files(folder, monkeypatch, module, name, number, after, placed):
    """The command is interrupted before or after the n-th call of a function."""
    owner = Path if name == "replace" else import_module(module)
    real, calls = getattr(owner, name), count(1)

    def interrupted(*given, **named):
        call = next(calls)
        done = None if call == number and after == "before" else real(*given, **named)
        if call == number:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(owner, name, interrupted)
    done = command(*mask_arguments("memory"), cwd=folder)
    assert done.returncode == 130, done.stderr
    assert set(is_new(folder).values()) == {placed}
    assert ("nothing was released" in done.stderr) == (not placed)
    assert all((name in done.stderr) == placed for name in NAMES.values())
    assert sorted(file.name for file in folder.iterdir()) == sorted(["firms.csv", *NAMES.values()])


@pytest.mark.usefixtures("one_template")
def test_an_interrupt_of_the_local_engine_leaves_the_old_files(folder, monkeypatch):
    """Its work runs in a thread: an interrupt at the very end used to leave the table in place."""

    def late(*given, **named):
        watch(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.masking.pipeline.watch", late)
    done = command(*mask_arguments("local"), cwd=folder)
    assert done.returncode == 130, done.stderr
    assert "nothing was released" in done.stderr
    assert set(is_new(folder).values()) == {False}
    assert sorted(file.name for file in folder.iterdir()) == sorted(["firms.csv", *NAMES.values()])


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_labels_that_cannot_be_written_leave_the_old_table(folder, monkeypatch, engine):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.masking.memory.write_file", full)
    monkeypatch.setattr("shoal.engines.local.pl.read_ipc", full)
    with pytest.raises((FileError, OSError), match="No space left"):
        shoal.mask(
            folder / "firms.csv",
            5,
            columns="sales",
            engine=engine,
            output=folder / "out.csv",
            labels=folder / "labels.csv",
        )
    assert set(is_new(folder).values()) == {False}
    assert sorted(file.name for file in folder.iterdir()) == sorted(["firms.csv", *NAMES.values()])


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_a_target_that_cannot_be_replaced_leaves_all_the_others(folder, monkeypatch, engine):
    """The table comes last: if it cannot be moved, what was moved before is put back."""
    real = Path.replace

    def refuse(self, target):
        if Path(target).name == "out.csv":
            raise PermissionError(13, "Permission denied")
        return real(self, target)

    (folder / "labels.csv").unlink()
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(FileError, match=r"out\.csv cannot be written: Permission denied"):
        shoal.mask(
            folder / "firms.csv",
            5,
            columns="sales",
            engine=engine,
            output=folder / "out.csv",
            labels=folder / "labels.csv",
        )
    assert sorted(file.name for file in folder.iterdir()) == ["firms.csv", "out.csv", "report.html", "run.json"]
    assert (folder / "out.csv").read_text() == "old"


@pytest.mark.parametrize("links", [True, False])
def test_files_are_put_back_with_and_without_links(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr("shoal.tables.outputs.os.link", lambda *_: (_ for _ in ()).throw(OSError(95, "no links")))
    first, second, third = (tmp_path / name for name in "abc")
    first.write_text("old a")
    third.write_text("old c")

    def write_all():
        with moved_together():
            for path in (first, second, third):
                with written_beside(path) as temporary:
                    temporary.write_text("new")
            assert not second.exists()
            assert written_path(third).read_text() == "new"
            first.unlink(missing_ok=True)
            first.mkdir()

    with pytest.raises(FileError, match="a cannot be written"):
        write_all()
    assert third.read_text() == "old c"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]


def test_the_first_file_is_moved_last_and_noted(tmp_path, monkeypatch):
    moved = []
    real = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: (moved.append(target.name), real(self, target))[1])
    with noting() as placed, moved_together():
        for name in ("table", "labels", "manifest"):
            with written_beside(tmp_path / name) as temporary:
                temporary.write_text(name)
                assert temporary.stat().st_mode & 0o077 == 0
    assert moved == ["manifest", "labels", "table"]
    assert [path.name for path in placed] == moved
    assert written_path(tmp_path / "table") == tmp_path / "table"


def test_one_that_fails_alone_is_left_out(tmp_path):
    def half():
        with written_beside(tmp_path / "half") as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with moved_together():
        with written_beside(tmp_path / "whole") as temporary:
            temporary.write_text("whole")
        with pytest.raises(RuntimeError):
            half()
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


@pytest.mark.parametrize("sign", SIGNALS)
def test_a_signal_waits_until_all_files_are_moved(tmp_path, monkeypatch, sign):
    def interrupt(*_):
        raise KeyboardInterrupt

    real = Path.replace
    before = signal.signal(sign, interrupt)

    def write_both():
        with moved_together():
            for name in "ab":
                with written_beside(tmp_path / name) as temporary:
                    temporary.write_text(name)
            monkeypatch.setattr(
                Path, "replace", lambda self, target: (os.kill(os.getpid(), sign), real(self, target))[1]
            )

    try:
        with pytest.raises(KeyboardInterrupt):
            write_both()
        assert signal.getsignal(sign) is interrupt
    finally:
        signal.signal(sign, before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_manifest_and_report_know_the_bytes_of_the_table(folder, engine):
    done = command(*mask_arguments(engine), cwd=folder)
    assert done.returncode == 0, done.stderr
    digest = sha256(folder / "out.csv")
    assert json.loads((folder / "run.json").read_text())["output"]["sha256"] == digest
    assert digest in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="locks of files are those of POSIX")
def test_leftovers_of_a_killed_run_are_removed_by_the_next(tmp_path, monkeypatch):
    """Intermediate files contain original values; those of an active run stay."""
    import shoal.tables.outputs as module

    waiting = """
import pathlib, time
from shoal.tables.outputs import folder_beside, written_beside
with folder_beside(pathlib.Path("x.csv")) as folder, written_beside(pathlib.Path("y.csv")) as file:
    (folder / "raw").write_text("secret")
    file.write_text("secret")
    print("ready", flush=True)
    time.sleep(60)
"""

    def end(process):
        process.kill()
        process.wait()
        process.stdout.close()

    alive, dead = (
        subprocess.Popen([sys.executable, "-c", waiting], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    for process in (alive, dead):
        assert process.stdout.readline() == "ready\n"
    held = {path.name for path in tmp_path.iterdir()}
    assert len(held) == 4
    end(dead)
    (tmp_path / ".mine-shoal").write_text("not ours")
    with written_beside(tmp_path / "new.csv") as temporary:
        temporary.write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {*held, ".mine-shoal", "new.csv"}, "these are young"
    monkeypatch.setattr(module, "YOUNG", 0.0)
    with written_beside(tmp_path / "new.csv") as temporary:
        temporary.write_text("new")
    left = {path.name for path in tmp_path.iterdir()} & held
    end(alive)
    assert len(left) == 2
    module.remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".mine-shoal", "new.csv"}


@pytest.mark.parametrize("fails", [False, True])
def test_a_data_set_that_others_wrote_is_placed_with_the_files_or_removed(tmp_path, fails):
    done = []

    def write():
        with noting() as placed, moved_together() as outputs:
            outputs.add(tmp_path / "set", lambda: done.append("placed"), lambda: done.append("removed"))
            with written_beside(tmp_path / "labels") as temporary:
                temporary.write_text("new")
            if fails:
                raise KeyboardInterrupt
        return placed

    if fails:
        with pytest.raises(KeyboardInterrupt):
            write()
    else:
        assert write() == [tmp_path / "set", tmp_path / "labels"]
    assert done == (["removed"] if fails else ["placed", "removed"])
    assert (tmp_path / "labels").exists() != fails


@pytest.fixture
def no_system_folder(tmp_path, monkeypatch):
    """The system's temporary folder is missing, so writing there fails."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))


@pytest.mark.usefixtures("no_system_folder")
def test_excel_sheets_wait_in_a_hidden_folder_next_to_the_output(tmp_path, monkeypatch):
    from xlsxwriter.packager import Packager

    seen, write = [], Packager._create_package

    def watched(self):
        names = write(self)
        folder = Path(self.tmpdir)
        seen.append((folder.parent, folder.name, stat.S_IMODE(folder.stat().st_mode), len(list(folder.iterdir()))))
        return names

    monkeypatch.setattr(Packager, "_create_package", watched)
    write_file(firms(60), tmp_path / "out.xlsx")
    ((parent, name, mode, files),) = seen
    assert (parent, mode) == (tmp_path, 0o700)
    assert name.startswith(".out-shoal-")
    assert files
    assert [path.name for path in tmp_path.iterdir()] == ["out.xlsx"]


@pytest.mark.skipif(os.name != "posix", reason="limits are those of POSIX")
@pytest.mark.parametrize("most", [0, 2000])
def test_a_full_disk_is_one_line_and_leaves_nothing_of_an_excel_output(tmp_path, most):
    """A limit on the size of files fails like a full disk."""
    limited = f"""
import resource, sys
from shoal.cli import main
from shoal.tables import files
write = files.write_excel
def write_little(*given):
    resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    write(*given)
files.write_excel = write_little
sys.argv[0] = "shoal"
main()
"""
    write_file(firms(60), tmp_path / "in.csv")
    arguments = ["mask", "in.csv", "-k", "5", "-c", "sales", "-o", "out.xlsx"]
    done = subprocess.run(
        [sys.executable, "-c", limited, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "shoal: Output out.xlsx cannot be written: File too large.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.skipif(os.name != "posix", reason="locks of files are those of POSIX")
def test_a_killed_run_leaves_no_excel_sheet_that_the_next_does_not_remove(tmp_path, monkeypatch):
    killed = """
import os, pathlib, signal, sys
from xlsxwriter.packager import Packager
from shoal.demo import firms
from shoal.tables.files import write_file
write = Packager._create_package
Packager._create_package = lambda self: (write(self), os.kill(os.getpid(), signal.SIGKILL))
write_file(firms(60), pathlib.Path(sys.argv[1]))
"""
    system, folder = tmp_path / "system", tmp_path / "outputs"
    system.mkdir()
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(system)}
    arguments = [sys.executable, "-c", killed, str(folder / "out.xlsx")]
    done = subprocess.run(arguments, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list(system.iterdir())
    assert len(list(folder.iterdir())) == 2, "the output, and the folder of its parts"
    monkeypatch.setattr(outputs, "YOUNG", 0.0)
    write_file(firms(60), folder / "other.csv")
    assert [path.name for path in folder.iterdir()] == ["other.csv"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.filterwarnings("default")  # Dask and its libraries warn about themselves
@pytest.mark.parametrize("engine", ["memory", "local", "dask"])
@pytest.mark.parametrize("old", [False, True])
def test_only_their_owner_reads_labels(tmp_path, engine, old):
    """They undo a shuffle, and tie released records to the original ones."""
    ending = ".parquet" if engine == "dask" else ".csv"
    source, output, labels = (tmp_path / f"{name}{ending}" for name in ("in", "out", "labels"))
    write_file(firms(60), source)
    for _ in range(1 + old):
        if labels.exists():
            labels.chmod(0o777)
        shoal.mask(source, 5, columns=["sales"], engine=engine, output=output, labels=labels)
    assert stat.S_IMODE(labels.stat().st_mode) == (0o700 if labels.is_dir() else 0o600)
    assert stat.S_IMODE(output.stat().st_mode) & 0o044, "the masked table is for others"
