"""The roles file (TOML): the role, kind and codes for missing values of every column, to review and edit.

[columns."age"]  # a number that others may know
role = "key"
kind = "number"
missing = [-9]
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from shoal.core.errors import FileError, InputError, closest
from shoal.core.messages import parameter
from shoal.core.types import Name
from shoal.kinds.hierarchy import Hierarchy
from shoal.kinds.kind_registry import SCALES, read_kind
from shoal.roles.column_roles import PARAMETERS, ColumnRole, as_parameters, as_roles
from shoal.tables.files import check_target
from shoal.tables.outputs import written_beside

__all__ = ["Roles", "check_columns", "read_roles", "write_roles"]

HEADER = """\
# The role of every column of {source}. Review and edit it, then mask with --roles.
#   key        masked: an outsider may know it
#   stratum    divides the table: groups never cross strata
#   sensitive  released unchanged; the release shows how diverse it is in each group
#   weight     record weight, released unchanged
#   unit       person, household or firm; k counts units, and the column is left out
#   keep       released unchanged
#   drop       left out
# Each column may also have kind = "number", "nominal", "date", "date %d.%m.%Y", or the ordered categories in a list;
# hierarchy = "zip.csv" (one line per value, up to the root); missing = [-9, "?"] (codes for missing values);
# and scale = "log" or "rank" (the scale on which a numeric key is compared).
"""
ENTRIES = ("role", "kind", "hierarchy", "missing", "scale")


class Roles(dict[Name, ColumnRole]):
    """The role of every column of a table, in the form of a roles file.

    Examples
    --------
    >>> roles = Roles.read({"age": "key", "name": "drop"})
    >>> roles.parameters()["columns"], roles.parameters()["identifiers"]
    (['age'], ['name'])
    """

    @classmethod
    def read(cls, roles: str | os.PathLike[str] | Mapping[Name, Any], names: Sequence[Name] | None = None) -> Self:
        """Read a roles file or a mapping of columns to roles. If `names` is set, exactly these columns need a role."""
        columns = cls(read_roles(roles))
        if names is not None:
            check_columns(columns, names)
        return columns

    @classmethod
    def of(cls, parameters: Mapping[str, Any], proposed: Mapping[Name, ColumnRole]) -> Self:
        """Return the roles according to parameters of `shoal.mask`, with the reasons of `proposed` roles."""
        return cls(as_roles(parameters, proposed))

    def parameters(self) -> dict[str, Any]:
        """Return the roles as parameters of `shoal.mask`."""
        return as_parameters(self)

    def save(self, path: str | os.PathLike[str], source: str = "the table") -> Path:
        """Write a roles file to review and edit; `source` is the table name in the first line of the file."""
        check_target(path, endings=(".toml",))
        write_roles(self, path, source)
        return Path(path)


def write_roles(roles: Mapping[Name, ColumnRole], path: str | os.PathLike[str], source: str) -> None:
    """Write the roles of columns to a file; `source` is the table name in the first line of the file."""
    blocks = [HEADER.format(source=_comment(source))]
    for name, column in roles.items():
        lines = [f"[columns.{_quoted(str(name))}]  # {_comment(column.reason)}", f"role = {_quoted(column.role)}"]
        kind = column.kind or column.word
        lines += [f"kind = {_value(kind)}"] if kind else []
        lines += [f"missing = {_value(list(column.missing_codes))}"] if column.missing_codes else []
        lines += [f"scale = {_quoted(column.scale)}"] if column.scale else []
        blocks.append("\n".join(lines) + "\n")
    with written_beside(Path(path)) as temporary:
        temporary.write_text("\n".join(blocks), encoding="utf-8")


def read_roles(roles: str | os.PathLike[str] | Mapping[Name, Any]) -> dict[Name, ColumnRole]:
    """Return the role of each column from a roles file, or from a mapping of columns to entries or roles.

    Examples
    --------
    >>> read_roles({"age": {"role": "key", "missing": [-9]}, "name": "drop"})["age"].missing_codes
    (-9,)
    """
    if isinstance(roles, Mapping):
        return {name: _column(name, entry, Path()) for name, entry in roles.items()}
    path = Path(roles)
    try:
        with path.open("rb") as file:
            columns = tomllib.load(file).get("columns")
    except OSError as error:
        raise FileError(
            f"Roles file {str(path)!r} cannot be read: {error.strerror}. Check the path and its permissions."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"Roles file {path} is not valid TOML: {str(error).rstrip('.')}. Correct it.") from None
    if not isinstance(columns, dict) or not columns:
        raise FileError(
            f'Roles file {path} has no columns. Add an entry such as [columns."age"] for each column, or create '
            "the file with shoal inspect."
        )
    return {name: _column(name, entry, path.parent) for name, entry in columns.items()}


def check_columns(roles: Mapping[Name, ColumnRole], names: Sequence[Name]) -> None:
    """Refuse roles for columns that the table does not have, and table columns without a role."""
    for name in roles:
        if name not in names:
            raise InputError(
                f"{parameter('roles')} has column {name!r}, which the table does not have.{closest(name, names)} "
                "Remove its entry."
            )
    for name in names:
        if name not in roles:
            raise InputError(
                f"{parameter('roles')} has no entry for column {name!r} of the table. Add one, for example with "
                'role = "drop".'
            )


def _column(name: Name, entry: Any, folder: Path) -> ColumnRole:
    """Return the role of a column from its entry."""
    if isinstance(entry, ColumnRole):
        return entry
    if isinstance(entry, str):
        entry = {"role": entry}
    if not isinstance(entry, Mapping) or "role" not in entry:
        raise InputError(f"{parameter('roles')} must give a role for column {name!r}, one of {', '.join(PARAMETERS)}.")
    for key in entry:
        if key not in ENTRIES:
            raise InputError(
                f"{parameter('roles')} has an unknown entry {key!r} for column {name!r}.{closest(key, ENTRIES)} Use "
                f"{', '.join(ENTRIES)}."
            )
    role, missing = entry["role"], entry.get("missing", ())
    if not isinstance(role, str) or role not in PARAMETERS:
        raise InputError(
            f"{parameter('roles')} has role {role!r} for column {name!r}.{closest(str(role), [*PARAMETERS])} Use one "
            f"of {', '.join(PARAMETERS)}."
        )
    kind = None if entry.get("kind") == "number" else entry.get("kind")
    if "hierarchy" in entry:
        kind = Hierarchy(folder / str(entry["hierarchy"])).plain()
    elif kind is not None:
        read_kind(name, kind)
    codes = tuple(missing) if isinstance(missing, (list, tuple)) else (missing,)
    if codes and role != "key":
        raise InputError(
            f"{parameter('roles')} has missing codes for column {name!r}, whose role is {role!r}: only key columns "
            "can have them. Remove them."
        )
    return ColumnRole(role, kind, codes, scale=_scale(name, role, entry.get("scale")))


def _scale(name: Name, role: str, scale: Any) -> str | None:
    """Return the scale on which a key is compared; refuse a scale for other roles."""
    if scale is not None and (role != "key" or scale not in SCALES):
        raise InputError(
            f"{parameter('roles')} has scale {scale!r} for column {name!r} with role {role!r}: only keys have a scale, "
            f"one of {', '.join(map(repr, SCALES))}. Correct the entry."
        )
    return None if scale is None else str(scale)


def _value(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_quoted(str(key))} = {_value(part)}' for key, part in value.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """Return text in quotes. JSON escapes the same characters as TOML, except the control character DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)
