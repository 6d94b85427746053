"""Lists and patterns of column names: ``a,b`` and ``q_*`` stand for the columns that they match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.messages import listed, parameter
from shoal.masking.request import MaskRequest
from shoal.roles.roles_file import check_columns, read_roles
from shoal.tables.columns import Name
from shoal.tables.head import column_names

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["expand_patterns", "match_names", "matching"]

Request = TypeVar("Request", bound="DataclassInstance")

NAMING = ("columns", "by", "identifiers", "keep", "confidential", "distance", "zeros", "block_by")
SIGNS = ",*?["


def expand_patterns(request: MaskRequest, data: Any) -> MaskRequest:
    """Return the request with the columns of the table that its lists and patterns of names match.

    Roles of columns that the table does not have are refused, and columns without a role.
    """
    if request.roles is not None:
        check_columns(read_roles(request.roles), column_names(data, **request.csv))
        return request
    return match_names(request, NAMING, data, **request.csv)


def match_names(request: Request, roles: Sequence[str], data: Any, **csv: Any) -> Request:
    """Return a request whose parameters of these names list the columns of the table that they match."""
    entries = {role: as_names(names) for role in roles if (names := getattr(request, role)) is not None}
    if not any(map(_is_pattern, (name for names in entries.values() for name in names))):
        return request
    names = column_names(data, **csv)
    expanded: dict[str, Any] = {role: matching(role, named, names) for role, named in entries.items()}
    return replace(request, **expanded)


def matching(role: str, entries: Sequence[Name], names: Sequence[Name]) -> list[Name]:
    """Return the columns that entries of a parameter match; a name that a column has stands for itself.

    Examples
    --------
    >>> matching("columns", ["age,sex", "q_*"], ["age", "sex", "q_1", "q_2"])
    ['age', 'sex', 'q_1', 'q_2']
    """
    columns: list[Name] = []
    for entry in entries:
        if entry in names or not _is_pattern(entry):
            columns.append(entry)
            continue
        for part in map(str.strip, str(entry).split(",")):
            hits = [part] if part in names else [n for n in names if isinstance(n, str) and fnmatchcase(n, part)]
            if not hits:
                raise InputError(
                    f"{parameter(role)} names {part!r}, which matches no column. The columns of the table are: "
                    f"{listed(names, 12)}."
                )
            columns += hits
    return list(dict.fromkeys(columns))


def _is_pattern(name: Name) -> bool:
    return isinstance(name, str) and any(sign in name for sign in SIGNS)
