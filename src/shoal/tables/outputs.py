"""The files of a run: written beside their targets and moved into place together, or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

from shoal.core.errors import FileError
from shoal.core.progress import SIGNALS, check_interrupt

if os.name == "posix":
    import fcntl

__all__ = [
    "Outputs",
    "folder_beside",
    "moved_together",
    "naming",
    "noting",
    "remove_leftovers",
    "written_beside",
    "written_path",
]


LOCKS = os.name == "posix"
MARK = "-shoal-"  # in the names of intermediate files
YOUNG = 60.0  # seconds


class Outputs:
    """Files that wait beside their targets until all of them are whole; `moved_together` makes them."""

    def __init__(self) -> None:
        self._files: list[tuple[Path, Path]] = []  # targets, and what was written for them, in the order of writing
        self._locks: dict[Path, int] = {}  # as long as one is held, its file has an owner
        self._others: list[
            tuple[Path, Callable[[], None], Callable[[], None]]
        ] = []  # data sets that others have written

    def add(self, target: Path, place: Callable[[], None], remove: Callable[[], None]) -> None:
        """Put a data set into place before the files are, by its own means; it is removed at the end if it was not."""
        self._others.append((target, place, remove))

    @contextmanager
    def beside(self, target: Path) -> Iterator[Path]:
        """Give a temporary path in the target's folder, for its owner alone; it goes if writing fails."""
        with naming(target):
            with _undisturbed():
                remove_leftovers(target.parent)
                prefix = f".{target.stem}{MARK}"
                handle, name = tempfile.mkstemp(prefix=prefix, suffix=target.suffix, dir=target.parent)
                file = target, Path(name)
                self._files.append(file)
                if _try_lock(handle):
                    self._locks[file[1]] = handle
                else:
                    os.close(handle)
            try:
                yield file[1]
                with file[1].open("r+b") as done:  # not every system flushes what is open for reading only
                    os.fsync(done.fileno())
            except BaseException:
                self._files.remove(file)
                self._remove(file[1])
                raise

    def find(self, target: Path) -> Path | None:
        """Return what was written for a target, if it waits here."""
        return next((file for other, file in self._files if other.resolve() == target.resolve()), None)

    def move(self) -> None:
        """Move all files into place, the first one last: it is the table. If that fails, all old files stay."""
        files = self._files[::-1]
        if not files and not self._others:
            return
        check_interrupt()
        with _undisturbed():
            for target, place, _ in self._others:
                place()
                _note([target])
        if not files:
            return
        olds: dict[Path, Path] = {}
        with _undisturbed():
            for target, file in files:
                with naming(target):
                    file.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
            try:
                for target, file in files[:-1]:
                    with naming(target):
                        _keep(target, file.with_name(f"{file.name}.old"), olds)
                for target, file in files:
                    with naming(target):
                        file.replace(target)
            finally:
                # Whether a file was moved is read from the disk: what failed may have been done all the same.
                if files[-1][1].exists():
                    _restore([target for target, file in files if not file.exists()], olds)
                else:
                    _note(target for target, _ in files)
                for old in olds.values():
                    old.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove what was not moved."""
        with _undisturbed():
            for _, file in self._files:
                with suppress(OSError):
                    self._remove(file)
            for _, _, remove in self._others:
                remove()

    def _remove(self, file: Path) -> None:
        if file in self._locks:
            os.close(self._locks.pop(file))
        file.unlink(missing_ok=True)


_open: ContextVar[Outputs | None] = ContextVar("outputs", default=None)
_placed: ContextVar[list[Path] | None] = ContextVar("placed", default=None)


@contextmanager
def moved_together() -> Iterator[Outputs]:
    """Move what is written in this block into place at its end, all or nothing; in another such block, at its end.

    The file that was begun first is moved last. Interrupts wait while files are moved: they find all of them in place,
    or none.
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
    """Give a temporary path in the target's folder; move it into place if all went well, else remove it."""
    with moved_together() as outputs, outputs.beside(target) as temporary:
        yield temporary


def written_path(target: str | os.PathLike[str]) -> Path:
    """Return where the bytes of an output are: beside its target as long as it waits for others."""
    outputs, path = _open.get(), Path(target)
    return path if outputs is None else outputs.find(path) or path


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Give a folder for intermediate files beside the target; it goes whatever happens."""
    with naming(target):
        remove_leftovers(target.parent)
        folder = tempfile.mkdtemp(prefix=f".{target.stem}{MARK}", dir=target.parent)
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
    """Remove intermediate files of runs that were killed: they hold original values, and nobody has them open."""
    for path in folder.glob(f".*{MARK}*") if LOCKS else ():
        # What was just made may not be locked yet; what belongs to another user is not ours to remove.
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
    """Lock what is open, unless somebody has; the lock goes with its owner, however that ends."""
    if not LOCKS:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another run has it, or the file system knows no locks
        return False
    return True


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Name the output that could not be written, or a file that could not be read meanwhile."""
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
def noting() -> Iterator[list[Path]]:
    """Note which targets get a new file in this block, to be able to say after an interrupt what is there."""
    outer = _placed.get()
    placed: list[Path] = [] if outer is None else outer
    token = _placed.set(placed)
    try:
        yield placed
    finally:
        _placed.reset(token)


def _note(targets: Iterable[Path]) -> None:
    placed = _placed.get()
    if placed is not None:
        placed.extend(targets)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let interrupts wait for the end of this block; they reach the main thread only."""
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


def _keep(target: Path, old: Path, olds: dict[Path, Path]) -> None:
    """Give the file that is at a target now a second name."""
    if not os.path.lexists(target):
        return
    olds[target] = old
    try:
        os.link(target, old)
    except OSError:  # not every file system has links
        shutil.copy2(target, old)


def _restore(targets: Sequence[Path], olds: dict[Path, Path]) -> None:
    """Put back what was at targets before, be it nothing."""
    for target in targets:
        if target in olds:
            olds[target].replace(target)
        else:
            target.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
