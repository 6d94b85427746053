"""Files at addresses, such as ``s3://bucket/table.parquet``: found, read and written through fsspec.

What a cluster reads and writes lies where all its workers see it. Plain paths and ``file:`` addresses are files of this
machine, or of a file system that is mounted everywhere; all others are object stores, in which nothing is renamed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from shoal.core.errors import FileError, InputError

__all__ = [
    "Place",
    "as_place",
    "find_places",
    "is_address",
    "join",
    "naming_address",
    "open_place",
    "suffix_of",
    "system_of",
]

Place = Path | str  # a file of this machine, or an address

# A path that went through pathlib has lost one of its slashes; a single letter is a drive of Windows.
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.IGNORECASE | re.DOTALL)
LOCAL = ("file", "local")


def as_place(path: str | os.PathLike[str]) -> Place:
    """Return a path as it is, a ``file:`` address as the path that it names, and any other address as text.

    Examples
    --------
    >>> as_place(Path("s3://bucket/folder/x.parquet")), as_place("file:///data/x.parquet").as_posix()
    ('s3://bucket/folder/x.parquet', '/data/x.parquet')
    """
    text = os.fspath(path)
    address = ADDRESS.fullmatch(text)
    if address is None:
        return Path(text)
    protocol, rest = address[1].lower(), address[2]
    return Path("/" + rest) if protocol in LOCAL else f"{protocol}://{rest}"


def is_address(path: object) -> bool:
    """Say whether a path is an address beyond the files of this machine."""
    return isinstance(path, (str, os.PathLike)) and isinstance(as_place(path), str)


def suffix_of(place: Place) -> str:
    """Return the ending of a name, in small letters."""
    return PurePosixPath(place).suffix.lower()


def join(place: Place, name: str) -> Place:
    """Return the place of a file in a folder."""
    return place / name if isinstance(place, Path) else f"{place.rstrip('/')}/{name}"


def system_of(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there."""
    try:
        fsspec = import_module("fsspec")
        system, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise InputError(
            f"Address {address} cannot be opened: {error}. It comes with pip install 'shoal[dask]'."
        ) from None
    except ValueError as error:
        raise InputError(f"Address {address} cannot be opened: {error}.") from None
    except Exception as error:  # some systems connect at once
        raise _unreachable(address, error) from error
    return system, path


@contextmanager
def naming_address(address: str) -> Iterator[None]:
    """Say which address could not be reached, whatever its file system raises."""
    try:
        yield
    except (FileError, InputError):
        raise
    except Exception as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> FileError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return FileError(f"Address {address} cannot be reached: {reason}.")


def find_places(address: str, endings: tuple[str, ...]) -> list[str]:
    """Return the files of an address, a folder or a glob, in the order of their names."""
    system, path = system_of(address)
    protocol = address.partition("://")[0]
    with naming_address(address):
        if any(sign in path for sign in "*?["):
            paths = [str(name) for name in system.glob(path)]
        elif system.isdir(path):
            paths = [str(name) for name in system.ls(path, detail=False)]
        else:
            paths = [path] if system.exists(path) else []
    # Names that begin so are no part of a table: signs of what writes it, or what was left.
    names = sorted(name for name in paths if not PurePosixPath(name).name.startswith((".", "_")))
    places = [f"{protocol}://{name.lstrip('/')}" for name in names if suffix_of(name) in endings]
    if not places:
        raise FileError(f"Input {address} holds no file that ends in {' or '.join(endings)}. Check the address.")
    return places


@contextmanager
def open_place(place: Place, mode: str = "rb") -> Iterator[Any]:
    """Open a file."""
    if isinstance(place, Path):
        with place.open(mode) as file:
            yield file
        return
    system, path = system_of(place)
    # Columns are read by themselves: what lies around them is not wanted.
    with system.open(path, mode, **({"cache_type": "none"} if mode == "rb" else {})) as file:
        yield file
