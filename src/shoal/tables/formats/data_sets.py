"""A Parquet data set: a folder of files, one for each part, written by many and whole or not there at all.

A folder of this machine is written under another name beside its target and moved into place. In an object store
nothing is renamed: the files are written to the target itself, beside the sign ``_UNFINISHED``, and ``_SUCCESS`` is
written last. Whoever writes a file there looks afterwards whether that sign is still there: if it is gone, the run was
given up, and the file goes too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from shoal.core.errors import FileError, InputError
from shoal.tables.addresses import Place, join, naming_address, open_place, system_of

__all__ = [
    "OWN",
    "abandon",
    "begin",
    "cast_part",
    "finish",
    "one_schema",
    "part_place",
    "write_part",
]

SUCCESS, UNFINISHED = "_SUCCESS", "_UNFINISHED"
# What a data set of ours consists of: a folder of nothing else may be replaced by a new one.
OWN = re.compile(r"part-\d{5,}\.parquet|_SUCCESS|_UNFINISHED")


def begin(address: str) -> None:
    """Put up the sign of a data set that is being written."""
    with naming_address(address):
        _touch(join(address, UNFINISHED))


def finish(folder: Place) -> None:
    """Say that a data set is whole."""
    if isinstance(folder, Path):
        (folder / SUCCESS).touch()
        return
    with naming_address(folder):
        system, path = system_of(folder)
        _touch(join(folder, SUCCESS))
        system.rm_file(f"{path}/{UNFINISHED}")


def abandon(address: str) -> None:
    """Remove a data set from an object store; who still writes finds the sign gone, and removes that file."""
    system, path = system_of(address)
    with suppress(Exception):  # it may not have come so far
        system.rm_file(f"{path}/{UNFINISHED}")
    with naming_address(address):
        system.invalidate_cache()
        for name in system.find(path):
            system.rm_file(name)
        with suppress(Exception):  # stores without folders have none to remove
            system.rmdir(path)


def part_place(folder: Place, part: int) -> Place:
    """Return the file of a part."""
    return join(folder, f"part-{part:05d}.parquet")


def write_part(folder: Place, part: int, table: Any, plain: Sequence[str] = ()) -> None:
    """Write the file of a part; columns of `plain` hardly repeat their values, and get no dictionary."""
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
    """Return the columns of all parts together: the type of those in which any cell is not missing."""
    import pyarrow as pa

    try:
        return pa.unify_schemas(list(dict.fromkeys(schemas)), promote_options="permissive")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"{what} has other types in one partition than in another ({reason}). Give them one type."
        ) from None


def cast_part(folder: Place, part: int, schema: Any, plain: Sequence[str]) -> None:
    """Write a part again, with the types that all parts have together."""
    from pyarrow import parquet

    with open_place(part_place(folder, part)) as file:
        table = parquet.read_table(file)
    write_part(folder, part, table.cast(schema), plain)


def _touch(place: Place) -> None:
    with open_place(place, "wb") as file:
        file.write(b"")
