"""Cache of compiled kernels that is never stale.

numba checks only the source file of a compiled kernel for changes. The kernel, however, also contains the kernels that
it calls and the constants that it uses. The name of the cache folder is therefore a digest of all kernel sources and
library versions. After any change, kernels are compiled again into another folder.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import llvmlite
import numba
import numpy as np

__all__ = ["PACKAGE", "cache_folder", "is_cached", "make_folder", "name_folder", "sources", "stop_caching"]

PACKAGE = Path(__file__).parents[1]
MARK = b"shoal.core.compiler"  # every file with kernels imports the decorator
CONSTANTS = ("core/compiler.py", "core/progress.py", "core/types.py")  # files that define constants of kernels
LISTS = ("promises/promise_registry.py",)  # files that choose the kernels to combine
UNCHANGED_SECONDS = 3600  # a folder unchanged for this long is assumed to be unused

_stopped = Event()


def stop_caching() -> None:
    """Compile further kernels for this process only, because the folder name does not cover all their sources."""
    _stopped.set()


def is_cached(source: str) -> bool:
    """Return True if caching is on and a source file belongs to shoal, so its kernels may be cached."""
    return not _stopped.is_set() and Path(source).is_relative_to(PACKAGE)


@cache
def cache_folder() -> Path | None:
    """Return the folder for compiled kernels, or None if no writable folder exists."""
    name = name_folder(PACKAGE)
    if name is None:
        return None
    for place in _places():
        with suppress(OSError):
            return make_folder(place, name)
    return None


def _places() -> Iterator[Path]:
    """Yield candidate folders: the user's setting, the package, the user's cache folder."""
    # Installations that share a location have separate subfolders, so each removes only its own outdated folders.
    name = f"shoal-{_digest(os.fsencode(PACKAGE))}"
    config: Any = numba.config
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR).absolute() / name
    yield PACKAGE / "__pycache__"
    caches = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if Path(caches).is_absolute():
        yield Path(caches) / name
    else:
        with suppress(RuntimeError):  # no home folder
            yield Path.home() / ".cache" / name


def sources(package: Path) -> dict[str, bytes]:
    """Return the sources of compiled kernels: all files with kernels, and files whose constants kernels use."""
    contents = {}
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in (Path(folder, file) for file in sorted(files) if file.endswith(".py")):
            with suppress(OSError):  # an unreadable file, such as an editor's lock, cannot be imported either
                name, content = path.relative_to(package).as_posix(), path.read_bytes()
                if MARK in content or name in (*CONSTANTS, *LISTS):
                    contents[name] = content
    return contents


def name_folder(package: Path) -> str | None:
    """Return a folder name derived from the libraries and the sources; None if there are no sources."""
    versions = [library.__version__.encode() for library in (numba, llvmlite, np)]
    contents = [part for name, content in sources(package).items() for part in (name.encode(), content)]
    return f"kernels-{_digest(*versions)}-{_digest(*contents)}" if contents else None


def make_folder(place: Path, name: str) -> Path:
    """Return the folder `name` in `place`. If it is new, create it and remove the folders of other sources."""
    folder = place / name
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    if new:
        current = name.rpartition("-")[2]  # the same sources with other libraries may belong to another environment
        for sibling in place.glob("kernels-*"):
            if not sibling.name.endswith(current):
                _remove(sibling)
    return folder


def _remove(folder: Path) -> None:
    """Remove a folder of compiled kernels unless it changed recently, because a process may be writing to it."""
    with suppress(OSError):
        changed = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        if time.time() - changed > UNCHANGED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _digest(*parts: bytes) -> str:
    """Return a short digest of the parts and their lengths, so that different splits of the same bytes differ."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()[:12]
