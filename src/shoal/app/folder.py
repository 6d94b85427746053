"""The state folder: what the page remembers from day to day, and what a session needs while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["Folder", "state_folder"]

MOST_RECENT = 8


def state_folder() -> Path:
    """Return the folder of the page's state, readable by its owner only; made if it is not there."""
    given = os.environ.get("XDG_STATE_HOME")
    folder = (Path(given) if given else Path.home() / ".local" / "state") / "shoal"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


class Folder:
    """The files of a session: masked tables of tries and dragged-in tables. They are removed when it ends.

    Parameters
    ----------
    home
        The state folder.
    """

    def __init__(self, home: Path) -> None:
        self._recent = home / "recent.json"
        self.path = Path(tempfile.mkdtemp(prefix="session-", dir=home))  # of mode 700

    def fresh(self, name: str) -> Path:
        """Return a place for a file of this name that no other file has."""
        return Path(tempfile.mkdtemp(dir=self.path)) / Path(name).name

    def recent(self) -> list[Path]:
        """Return the tables that were opened last and are still there."""
        try:
            listed = [Path(path) for path in json.loads(self._recent.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError):
            return []
        return [path for path in listed if path.exists()]

    def remember(self, path: Path) -> None:
        """Put a table first among the recent ones; its path is stored, nothing else."""
        others = [other for other in self.recent() if other != path]
        with contextlib.suppress(OSError):
            self._recent.touch(mode=0o600)
            self._recent.write_text(json.dumps([str(path), *map(str, others)][:MOST_RECENT]), encoding="utf-8")

    def forget(self) -> None:
        """Forget which tables were opened."""
        self._recent.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the files of the session."""
        shutil.rmtree(self.path, ignore_errors=True)
