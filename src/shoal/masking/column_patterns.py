"""Expansion of column lists and name patterns, such as ``a,b`` and ``q_*``, to the matching columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.messages import listed, parameter
from shoal.masking.request import NAMING, SIGNS
from shoal.roles.roles_file import check_columns
from shoal.tables.columns import Name
from shoal.tables.head import column_names

__all__ = ["expand_patterns", "matching"]

AnyRequest = TypeVar("AnyRequest", bound=Any)  # a masking request or an assessment request


def expand_patterns(request: AnyRequest, data: Any) -> AnyRequest:
    """Return the request with every list and pattern of names replaced by the matching columns of the table.

    A roles file must list all columns of the table and no others.
    """
    if request.roles is not None:
        check_columns(request.roles, column_names(data, request.reading))
    values = {role: getattr(request, role, None) for role in (*NAMING, "keys")}
    entries = {role: as_names(names) for role, names in values.items() if names is not None}
    if not any(isinstance(name, str) and not SIGNS.isdisjoint(name) for names in entries.values() for name in names):
        return request
    names = column_names(data, request.reading)
    expanded: dict[str, Any] = {role: matching(role, named, names) for role, named in entries.items()}
    return replace(request, **expanded)


def matching(role: str, entries: Sequence[Name], names: Sequence[Name]) -> list[Name]:
    """Return the columns that the entries of a parameter match; an exact column name matches only that column.

    Examples
    --------
    >>> matching("columns", ["age,sex", "q_*"], ["age", "sex", "q_1", "q_2"])
    ['age', 'sex', 'q_1', 'q_2']
    """
    columns: list[Name] = []
    for entry in entries:
        if entry in names or not isinstance(entry, str) or SIGNS.isdisjoint(entry):
            columns.append(entry)
            continue
        for part in map(str.strip, entry.split(",")):
            hits = [part] if part in names else [n for n in names if isinstance(n, str) and fnmatchcase(n, part)]
            if not hits:
                raise InputError(
                    f"{parameter(role)} names {part!r}, which matches no column. Columns of the table: "
                    f"{listed(names, 12)}."
                )
            columns += hits
    return list(dict.fromkeys(columns))
