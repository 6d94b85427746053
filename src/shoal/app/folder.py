"""The state folder: recent tables, their settings, and the temporary files of running sessions."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOCKS = os.name == "posix"
if LOCKS:
    import fcntl

__all__ = ["Folder", "replacing", "state_folder"]

MOST_RECENT = 8
MOST_STORED = 30  # tables whose settings are stored
SESSION = "session-"


def state_folder() -> Path:
    """Return the state folder, which only its owner can access; create the folder if it does not exist."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "shoal"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path next to a file, and replace the file with it at the end of the block."""
    part = target.with_name(f".{target.name}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class Folder:
    """The files of a session in the state folder: masked and dragged-in tables, removed when the session ends.

    A killed session cannot remove its files, so the next session removes them. A running session locks its folder, and
    the system releases the lock in any case when the process ends.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._recent = home, home / "recent.json"
        with _alone(home):  # no other session sees the folder before it is locked
            remove_leftovers(home)
            self.path = Path(tempfile.mkdtemp(prefix=SESSION, dir=home))  # with mode 700
            self._handle = _lock(self.path)

    def fresh(self, name: str) -> Path:
        """Return a path with this file name in a new folder."""
        return Path(tempfile.mkdtemp(dir=self.path)) / Path(name).name

    def recent(self) -> list[Path]:
        """Return the recently opened tables that still exist."""
        try:
            paths = [Path(path) for path in json.loads(self._recent.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError):
            return []
        return [path for path in paths if path.exists()]

    def remember(self, path: Path) -> None:
        """Add a table to the front of the list of recent tables; store only its path."""
        paths = [path, *(recent for recent in self.recent() if recent != path)]
        with contextlib.suppress(OSError):
            self._recent.touch(mode=0o600)
            self._recent.write_text(json.dumps(list(map(str, paths[:MOST_RECENT]))), encoding="utf-8")

    def forget(self) -> None:
        """Delete the list of recent tables and all stored settings."""
        for path in (self._recent, *self._home.glob("settings-*.json")):
            path.unlink(missing_ok=True)

    def store(self, key: str, content: dict[str, Any]) -> None:
        """Store the settings of a table for the next session, readable by their owner only."""
        with contextlib.suppress(OSError, TypeError):  # optional: the work continues without stored settings
            words = json.dumps({"session": self.path.name, **content}, ensure_ascii=False)
            handle, part = tempfile.mkstemp(dir=self.path)  # with mode 600
            os.close(handle)
            Path(part).write_text(words, encoding="utf-8")
            Path(part).replace(self._settings(key))
            by_age = sorted(self._home.glob("settings-*.json"), key=lambda path: path.stat().st_mtime_ns)
            for path in by_age[:-MOST_STORED]:
                path.unlink(missing_ok=True)

    def stored(self, key: str) -> dict[str, Any]:
        """Return the settings of a table from an earlier session. Settings of this session belong to other tabs."""
        try:
            content = json.loads(self._settings(key).read_text(encoding="utf-8"))
            own_session = content["session"] == self.path.name
        except (OSError, ValueError, TypeError, KeyError):
            return {}
        return {} if own_session or not {"csv", "settings"} <= content.keys() else content

    def _settings(self, key: str) -> Path:
        return self._home / f"settings-{key}.json"

    def remove(self) -> None:
        """Remove the files of the session."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._handle is not None:
            os.close(self._handle)


def remove_leftovers(home: Path) -> None:
    """Remove the files of killed sessions, which contain original values and are not locked."""
    for path in home.glob(f"{SESSION}*"):
        handle = _lock(path)
        if handle is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let only one process at a time create and remove sessions."""
    handle = _lock(home, wait=True)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(folder: Path, *, wait: bool = False) -> int | None:
    """Lock a folder until the returned handle is closed or the process ends; return None if locking fails."""
    if not LOCKS:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another session has the lock, or the file system does not support locks
        os.close(handle)
        return None
    return handle
