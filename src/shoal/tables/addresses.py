"""Access to files and data sets at addresses, such as ``s3://bucket/table.parquet``, through fsspec.

A cluster reads and writes places that all its workers can reach. Plain paths and ``file:`` addresses refer to this
machine, or to a file system mounted everywhere. All others refer to object stores, where nothing can be renamed.

A data set is a folder of Parquet files, one per part, written by many workers; it is complete or does not exist. On
this machine the folder is written under another name next to its target and moved into place. In an object store the
files are written to the target, along with the marker ``_UNFINISHED``; ``_SUCCESS`` is written last. After each file,
its worker checks the marker. If the marker is gone, the run was abandoned, and the worker removes the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from shoal.core.errors import FileError, InputError

__all__ = [
    "COMPRESSED",
    "OWN",
    "Place",
    "abandon",
    "as_place",
    "begin",
    "cast_part",
    "find_places",
    "finish",
    "is_address",
    "join",
    "naming_address",
    "one_schema",
    "open_place",
    "part_place",
    "suffix_of",
    "system_of",
    "write_part",
]

Place = Path | str  # a file of this machine, or an address

# pathlib drops one of the slashes; a single letter is a Windows drive.
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.IGNORECASE | re.DOTALL)
LOCAL = ("file", "local")
COMPRESSED = (".gz", ".zst")  # appended to the ending of the uncompressed file
SUCCESS, UNFINISHED = "_SUCCESS", "_UNFINISHED"
# Files of a data set written by shoal; a folder without other files may be replaced.
OWN = re.compile(r"part-\d{5,}\.parquet|_SUCCESS|_UNFINISHED")


def as_place(path: str | os.PathLike[str]) -> Place:
    """Return a path or a ``file:`` address as a path, any other address as text.

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
    """Return whether a path is an address rather than a file on this machine."""
    return isinstance(path, (str, os.PathLike)) and isinstance(as_place(path), str)


def suffix_of(place: Place) -> str:
    """Return the ending of a name in lower case; compressed files have an ending of two parts (``.csv.gz``)."""
    endings = [ending.lower() for ending in PurePosixPath(place).suffixes]
    return "".join(endings[-2:] if endings[-1:] and endings[-1] in COMPRESSED else endings[-1:])


def join(place: Place, name: str) -> Place:
    """Return the place of a file in a folder."""
    return place / name if isinstance(place, Path) else f"{place.rstrip('/')}/{name}"


def system_of(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path within it."""
    try:
        fsspec = import_module("fsspec")
        system, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise InputError(f"Address {address} cannot be opened: {error}. Use pip install 'shoal[dask]'.") from None
    except ValueError as error:
        raise InputError(f"Address {address} cannot be opened: {error}.") from None
    except Exception as error:  # some file systems connect immediately
        raise _unreachable(address, error) from error
    return system, path


@contextmanager
def naming_address(address: str) -> Iterator[None]:
    """Turn every file system error into a `FileError` that names the address."""
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
    """Return the file at an address, or the files that are in a folder or match a glob, sorted by name."""
    system, path = system_of(address)
    protocol = address.partition("://")[0]
    with naming_address(address):
        if any(sign in path for sign in "*?["):
            paths = [str(name) for name in system.glob(path)]
        elif system.isdir(path):
            paths = [str(name) for name in system.ls(path, detail=False)]
        else:
            paths = [path] if system.exists(path) else []
    # Names with these prefixes are markers of writers or leftovers, not parts of a table.
    names = sorted(name for name in paths if not PurePosixPath(name).name.startswith((".", "_")))
    places = [f"{protocol}://{name.lstrip('/')}" for name in names if suffix_of(name) in endings]
    if not places:
        raise FileError(f"Input {address} has no files that end in {' or '.join(endings)}. Check the address.")
    return places


@contextmanager
def open_place(place: Place, mode: str = "rb") -> Iterator[Any]:
    """Open a file at a path or an address."""
    if isinstance(place, Path):
        with place.open(mode) as file:
            yield file
        return
    system, path = system_of(place)
    # Columns are read one by one, so caching adjacent bytes would only cost time.
    with system.open(path, mode, **({"cache_type": "none"} if mode == "rb" else {})) as file:
        yield file


# Data sets


def begin(address: str) -> None:
    """Mark a data set as unfinished."""
    with naming_address(address):
        _touch(join(address, UNFINISHED))


def finish(folder: Place) -> None:
    """Mark a data set as complete."""
    if isinstance(folder, Path):
        (folder / SUCCESS).touch()
        return
    with naming_address(folder):
        system, path = system_of(folder)
        _touch(join(folder, SUCCESS))
        system.rm_file(f"{path}/{UNFINISHED}")


def abandon(address: str) -> None:
    """Remove a data set from an object store; workers that find no marker then remove the files they still write."""
    system, path = system_of(address)
    with suppress(Exception):  # the marker may not exist yet
        system.rm_file(f"{path}/{UNFINISHED}")
    with naming_address(address):
        system.invalidate_cache()
        for name in system.find(path):
            system.rm_file(name)
        with suppress(Exception):  # some stores have no folders
            system.rmdir(path)


def part_place(folder: Place, part: int) -> Place:
    """Return the place of a part's file."""
    return join(folder, f"part-{part:05d}.parquet")


def write_part(folder: Place, part: int, table: Any, plain: Sequence[str] = ()) -> None:
    """Write the file of a part; columns in `plain` have few repeated values and are stored without a dictionary."""
    from pyarrow import parquet

    place = part_place(folder, part)
    dictionary = [name for name in table.column_names if name not in plain]
    if isinstance(place, Path):
        with place.open("wb") as file:
            parquet.write_table(table, file, use_dictionary=dictionary, row_group_size=max(1, len(table)))
            file.flush()
            os.fsync(file.fileno())
        return
    with naming_address(place):
        with open_place(place, "wb") as file:
            parquet.write_table(table, file, use_dictionary=dictionary, row_group_size=max(1, len(table)))
        system, path = system_of(place)
        system.invalidate_cache()
        if not system.exists(str(PurePosixPath(path).parent / UNFINISHED)):
            system.rm_file(path)
            raise FileError(f"Output {folder} is no longer needed: its run was abandoned.")


def one_schema(schemas: Iterable[Any], what: str) -> Any:
    """Return the common schema of all parts; a part in which a column is all missing does not determine its type."""
    import pyarrow as pa

    try:
        return pa.unify_schemas(list(dict.fromkeys(schemas)), promote_options="permissive")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"{what} has different column types in different partitions ({reason}). Convert them to one type."
        ) from None


def cast_part(folder: Place, part: int, schema: Any, plain: Sequence[str]) -> None:
    """Rewrite a part with the common types of all parts."""
    from pyarrow import parquet

    with open_place(part_place(folder, part)) as file:
        table = parquet.read_table(file)
    write_part(folder, part, table.cast(schema), plain)


def _touch(place: Place) -> None:
    with open_place(place, "wb") as file:
        file.write(b"")
