"""The cache of compiled kernels: a folder that is never stale.

numba stamps a compiled kernel with its own source file alone. But it holds what it took from others when it was
compiled: the kernels that it calls, the constants that it names. So the folder is named after all sources that kernels
are made of and the libraries that compile them. Whatever changes, kernels are compiled anew, into another folder.
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
MARK = b"shoal.core.compiler"  # a file with kernels imports the decorator
CONSTANTS = ("core/compiler.py", "core/progress.py", "core/types.py")  # files without kernels whose names kernels use
LISTS = ("promises/promise_registry.py",)  # files that list which kernels are put together
UNCHANGED_SECONDS = 3600  # seconds without a change after which nobody is thought to be compiling into a folder

_stopped = Event()


def stop_caching() -> None:
    """Compile all further kernels for this process only: the folder is not named after all of their sources."""
    _stopped.set()


def is_cached(source: str) -> bool:
    """Return whether a kernel of a source file may be cached: if all that it is made of lies in the package."""
    return not _stopped.is_set() and Path(source).is_relative_to(PACKAGE)


@cache
def cache_folder() -> Path | None:
    """Return the folder for compiled kernels, None if there is none that can be written to."""
    name = name_folder(PACKAGE)
    if name is None:
        return None
    for place in _places():
        with suppress(OSError):
            return make_folder(place, name)
    return None


def _places() -> Iterator[Path]:
    """Yield where the folder may lie: where the user says, inside the package, among the user's caches."""
    # Installations that share a place have their own part of it: a folder that one has outlived is its own.
    name = f"shoal-{_digest(os.fsencode(PACKAGE))}"
    config: Any = numba.config
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR).absolute() / name
    yield PACKAGE / "__pycache__"
    caches = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if Path(caches).is_absolute():
        yield Path(caches) / name
    else:
        with suppress(RuntimeError):  # nobody's home
            yield Path.home() / ".cache" / name


def sources(package: Path) -> dict[str, bytes]:
    """Return the files that compiled kernels are made of: all with kernels, and those whose names kernels use."""
    contents = {}
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in (Path(folder, file) for file in sorted(files) if file.endswith(".py")):
            with suppress(OSError):  # what cannot be read, an editor's lock maybe, cannot be imported
                name, content = path.relative_to(package).as_posix(), path.read_bytes()
                if MARK in content or name in (*CONSTANTS, *LISTS):
                    contents[name] = content
    return contents


def name_folder(package: Path) -> str | None:
    """Name the folder after the libraries and the sources, None if there are no sources to name it after."""
    versions = [library.__version__.encode() for library in (numba, llvmlite, np)]
    contents = [part for name, content in sources(package).items() for part in (name.encode(), content)]
    return f"kernels-{_digest(*versions)}-{_digest(*contents)}" if contents else None


def make_folder(place: Path, name: str) -> Path:
    """Return the folder of that name, made if need be; when it is new, remove those of other sources."""
    folder = place / name
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    if new:
        current = name.rpartition("-")[2]  # other libraries may be those of another environment, for the same sources
        for sibling in place.glob("kernels-*"):
            if not sibling.name.endswith(current):
                _remove(sibling)
    return folder


def _remove(folder: Path) -> None:
    """Remove a folder of compiled kernels, unless a process may be writing to it: it would fail."""
    with suppress(OSError):
        changed = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        if time.time() - changed > UNCHANGED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _digest(*parts: bytes) -> str:
    """Return a short digest of the parts, each with its length, lest one pass for the end of another."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()[:12]
