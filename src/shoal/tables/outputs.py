"""Output files and folders of a run, written next to their targets and moved into place together or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

from shoal.core.errors import FileError
from shoal.core.progress import SIGNALS, check_interrupt
from shoal.tables.addresses import Place, abandon, begin, finish, suffix_of

if os.name == "posix":
    import fcntl

__all__ = [
    "Outputs",
    "folder_beside",
    "hidden_folder",
    "moved_together",
    "naming",
    "noting",
    "remove_leftovers",
    "written_beside",
    "written_path",
]


LOCKS = os.name == "posix"
MARK = "-shoal-"  # part of the names of intermediate files
YOUNG = 60.0  # seconds; a younger leftover may still belong to a run


class Outputs:
    """Output files that are kept next to their targets until all are complete; created by `moved_together`."""

    def __init__(self) -> None:
        self._files: list[tuple[Path, Path]] = []  # targets and their temporary files, in the order of writing
        self._locks: dict[Path, int] = {}  # open handles of locked files, which belong to a running process
        self._private: set[Path] = set()  # targets that only their owner may read
        # Data sets on other file systems: the target, a function that completes it, and a function that cleans up.
        self._others: list[tuple[Place, Callable[[], None], Callable[[], None]]] = []

    def add(self, target: Place, place: Callable[[], None], clean: Callable[[], None]) -> None:
        """Add a data set with its own functions. `place` runs before the files are moved, `clean` runs in any case."""
        self._others.append((target, place, clean))

    def keep_private(self, target: Path) -> None:
        """Make a target readable only by its owner, even if the replaced file had other permissions."""
        self._private.add(target.resolve())

    @contextmanager
    def beside(self, target: Path) -> Iterator[Path]:
        """Yield a temporary file in the target's folder that only its owner may read; remove it if writing fails."""
        with naming(target):
            with _undisturbed():
                remove_leftovers(target.parent)
                prefix = f".{target.stem}{MARK}"
                handle, name = tempfile.mkstemp(prefix=prefix, suffix=suffix_of(target), dir=target.parent)
                file = target, Path(name)
                self._files.append(file)
                if _try_lock(handle):
                    self._locks[file[1]] = handle
                else:
                    os.close(handle)
            try:
                yield file[1]
                with file[1].open("r+b") as done:  # some systems do not flush files opened for reading only
                    os.fsync(done.fileno())
            except BaseException:
                self._files.remove(file)
                self._remove(file[1])
                raise

    def data_set(self, target: Place) -> Place:
        """Return the place for the files of a data set: a folder that only its owner may read, or its address."""
        if isinstance(target, str):
            with _undisturbed():
                self._at_address(target)
            return target
        with naming(target), _undisturbed():
            remove_leftovers(target.parent)
            folder = Path(tempfile.mkdtemp(prefix=f".{target.stem}{MARK}", suffix=target.suffix, dir=target.parent))
            self._files.append((target, folder))
            handle = os.open(folder, os.O_RDONLY) if LOCKS else None
            if handle is not None and _try_lock(handle):
                self._locks[folder] = handle
            elif handle is not None:
                os.close(handle)
        return folder.resolve()  # writers may use another working directory

    def _at_address(self, target: str) -> None:
        """Begin a data set in an object store, where nothing can be renamed. It is completed at the end or removed."""
        unfinished = ExitStack()
        unfinished.callback(abandon, target)

        def place() -> None:
            finish(target)
            unfinished.pop_all()

        self.add(target, place, unfinished.close)
        begin(target)

    def find(self, target: Path) -> Path | None:
        """Return the temporary file of a target, or None."""
        return next((file for other, file in self._files if other.resolve() == target.resolve()), None)

    def move(self) -> None:
        """Move all files into place, the table (the first file) last. If a move fails, all old files stay."""
        check_interrupt()
        with _undisturbed():
            for target, place, _ in self._others:
                place()
                _note([target])
            if self._files:
                self._move_files(self._files[::-1])

    def _move_files(self, files: Sequence[tuple[Path, Path]]) -> None:
        olds: dict[Path, Path] = {}
        for target, file in files:
            with naming(target):
                if file.is_dir():
                    finish(file)
                file.chmod(self._mode(target, file))
        try:
            for target, file in files:
                # The last file replaces the old one in a single step; a folder cannot.
                if file != files[-1][1] or file.is_dir():
                    with naming(target):
                        _keep(target, file.with_name(f"{file.name}.old"), olds, aside=file.is_dir())
            for target, file in files:
                with naming(target):
                    file.replace(target)
        finally:
            # Check the disk for moved files, because a move that reported an error may still have taken place.
            if files[-1][1].exists():
                _restore([target for target, file in files if not file.exists() or not os.path.lexists(target)], olds)
            else:
                _note(target for target, _ in files)
            for old in olds.values():
                _delete(old)

    def _mode(self, target: Path, file: Path) -> int:
        """Return the permissions of an output, taken from the file that it replaces or from the defaults."""
        most = 0o777 if file.is_dir() else 0o666
        if target.resolve() in self._private:
            return most & 0o700
        return target.stat().st_mode & 0o777 if _alike(target, file) else most & ~_umask()

    def discard(self) -> None:
        """Remove the files that were not moved."""
        with _undisturbed():
            for _, file in self._files:
                with suppress(OSError):
                    self._remove(file)
            for _, _, clean in self._others:
                clean()

    def _remove(self, file: Path) -> None:
        if file in self._locks:
            os.close(self._locks.pop(file))
        _delete(file)


_open: ContextVar[Outputs | None] = ContextVar("outputs", default=None)
_placed: ContextVar[list[Place] | None] = ContextVar("placed", default=None)


@contextmanager
def moved_together() -> Iterator[Outputs]:
    """Move all files written in this block into place at its end, or none.

    Nested blocks leave the moves to the outer block. The file that was begun first is moved last. Interrupts are
    delayed until all files are moved.
    """
    outer = _open.get()
    if outer is not None:
        yield outer
        return
    outputs = Outputs()
    token = _open.set(outputs)
    try:
        yield outputs
        outputs.move()
    finally:
        _open.reset(token)
        outputs.discard()


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield a temporary path in the target's folder; move the file into place on success, else remove it."""
    with moved_together() as outputs, outputs.beside(target) as temporary:
        yield temporary


def written_path(target: str | os.PathLike[str]) -> Path:
    """Return the current path of an output: its temporary file until it is moved, then the target."""
    outputs, path = _open.get(), Path(target)
    return path if outputs is None else outputs.find(path) or path


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Yield a folder for intermediate files next to the target; remove the folder in any case."""
    with naming(target), hidden_folder(target) as folder:
        yield folder


@contextmanager
def hidden_folder(target: Path) -> Iterator[Path]:
    """Yield a folder like `folder_beside`, but do not name the target in errors, as it may be an intermediate file."""
    remove_leftovers(target.parent)
    stem = target.stem.partition(MARK)[0].removeprefix(".")
    folder = tempfile.mkdtemp(prefix=f".{stem}{MARK}", dir=target.parent)
    owned = os.open(folder, os.O_RDONLY) if LOCKS else None
    try:
        if owned is not None:
            _try_lock(owned)
        yield Path(folder)
    finally:
        if owned is not None:
            os.close(owned)
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove intermediate files of killed runs, which hold original values and are locked by no process."""
    for path in folder.glob(f".*{MARK}*") if LOCKS else ():
        # New files may not be locked yet; files of other users cannot be removed.
        with suppress(OSError):
            if time.time() - path.lstat().st_ctime < YOUNG or path.is_symlink():
                continue
            handle = os.open(path, os.O_RDONLY)
            try:
                if _try_lock(handle):
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
            finally:
                os.close(handle)


def _try_lock(handle: int) -> bool:
    """Try to lock an open file and return True on success. The lock ends with its process, even if that is killed."""
    if not LOCKS:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another run holds it, or the file system has no locks
        return False
    return True


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Turn system errors into a `FileError` that names the output, or another file that could not be read."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        other = error.filename
        if isinstance(other, (str, os.PathLike)) and MARK not in str(other) and Path(other) != target:
            raise FileError(f"File {other} cannot be read: {error.strerror}.") from None
        raise FileError(f"Output {target} cannot be written: {error.strerror or error}.") from None


@contextmanager
def noting() -> Iterator[list[Place]]:
    """Collect the targets that are written in this block, so that they can be listed after an interrupt."""
    outer = _placed.get()
    placed: list[Place] = [] if outer is None else outer
    token = _placed.set(placed)
    try:
        yield placed
    finally:
        _placed.reset(token)


def _note(targets: Iterable[Place]) -> None:
    placed = _placed.get()
    if placed is not None:
        placed.extend(targets)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay interrupts until the end of this block; only the main thread receives interrupts."""
    handlers = {sign: signal.getsignal(sign) for sign in SIGNALS}
    if threading.current_thread() is not threading.main_thread() or None in handlers.values():
        yield
        return
    caught: list[int] = []

    def wait(sign: int, frame: FrameType | None) -> None:
        caught.append(sign)

    try:
        for sign in handlers:
            signal.signal(sign, wait)
        yield
    finally:
        for sign, handler in handlers.items():
            signal.signal(sign, handler)
        if caught:
            signal.raise_signal(caught[0])


def _keep(target: Path, old: Path, olds: dict[Path, Path], *, aside: bool) -> None:
    """Keep the old file of a target under a second name; move the file there if a folder replaces it."""
    if not os.path.lexists(target):
        return
    olds[target] = old
    if aside:
        target.replace(old)
        return
    try:
        os.link(target, old)
    except OSError:  # not every file system has links
        shutil.copy2(target, old)


def _restore(targets: Sequence[Path], olds: dict[Path, Path]) -> None:
    """Restore the old files of targets; remove targets that had none."""
    for target in targets:
        if target.is_dir() or target not in olds:
            _delete(target)
        if target in olds:
            olds[target].replace(target)


def _delete(path: Path) -> None:
    """Remove a file or a folder if it exists; retry while another process writes to the folder."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for _ in range(5):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.1)


def _alike(target: Path, file: Path) -> bool:
    """Return whether the target exists and is of the same type, file or folder."""
    return target.exists() and target.is_dir() == file.is_dir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
