"""The role of every column: what masking does with it. Roles are proposed, read from a file, or named one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.core.types import Name
from shoal.kinds.kind_registry import NUMBERS, read_kind
from shoal.roles.proposal import Proposal

__all__ = ["PARAMETERS", "ColumnRole", "Roles", "as_parameters", "proposed_roles"]

# The parameter of `shoal.mask` that names the columns of a role.
PARAMETERS = {
    "key": "columns",
    "stratum": "by",
    "sensitive": "confidential",
    "weight": "weights",
    "unit": "unit",
    "keep": "keep",
    "drop": "identifiers",
}


@dataclass(frozen=True)
class ColumnRole:
    """The role of a column.

    Parameters
    ----------
    role
        ``"key"`` (masked), ``"stratum"``, ``"sensitive"`` (released unchanged, measured), ``"weight"``, ``"unit"``,
        ``"keep"`` (released unchanged) or ``"drop"`` (left out).
    kind
        The kind as parameter ``kinds`` takes it; None for that of the column's type.
    missing_codes
        Cells that mean missing.
    reason
        Why the column has this role.
    word
        What the column holds, for readers.
    scale
        The scale on which a key of numbers is compared, as parameter ``scale`` takes it; None for its own.
    """

    role: str
    kind: Any = None
    missing_codes: tuple[Any, ...] = ()
    reason: str = ""
    word: str = ""
    scale: str | None = None


class Roles(dict[Name, ColumnRole]):
    """The role of every column of a table, which the parameters of a request hold too."""


def proposed_roles(proposal: Proposal) -> dict[Name, ColumnRole]:
    """Return the role that is proposed for each column."""
    proposed = proposal.parameters
    named: dict[Name, str] = {}
    for role, parameter in PARAMETERS.items():
        for name in _names(proposed.get(parameter)):
            named.setdefault(name, role)  # a unit is counted and left out
    kinds, codes = proposed.get("kinds") or {}, proposed.get("missing_codes") or {}
    roles = {}
    for column in proposal.columns:
        name = column.name
        # A stratum may become a key; a code that is a number is nominal then.
        kind = "nominal" if named.get(name) == "stratum" and column.kind == "nominal" else kinds.get(name)
        reason = proposal.dropped.get(name, column.reason)
        word = "number" if column.kind in NUMBERS else "nominal" if column.kind in ("boolean", "nominal") else ""
        roles[name] = ColumnRole(named.get(name, "drop"), kind, tuple(codes.get(name, ())), reason, word)
    return roles


def as_parameters(roles: Mapping[Name, ColumnRole]) -> dict[str, Any]:
    """Return the parameters of `shoal.mask` that give columns these roles.

    Examples
    --------
    >>> as_parameters({"age": ColumnRole("key"), "name": ColumnRole("drop")})["identifiers"]
    ['name']
    """
    by_role = {role: [name for name, column in roles.items() if column.role == role] for role in PARAMETERS}
    parameters: dict[str, Any] = {parameter: by_role[role] or None for role, parameter in PARAMETERS.items()}
    parameters |= {"unit": next(iter(by_role["unit"]), None), "weights": next(iter(by_role["weight"]), None)}
    keys = by_role["key"]
    kinds = {name: column.kind for name, column in roles.items() if column.role in ("key", "sensitive") and column.kind}
    # A place needs both of its columns.
    parameters["kinds"] = {
        name: kind for name, kind in kinds.items() if set(read_kind(name, kind).columns) <= {*keys}
    } or None
    codes = {name: list(roles[name].missing_codes) for name in keys if roles[name].missing_codes}
    parameters |= {"columns": keys, "missing_codes": codes or None}
    scales = {name: roles[name].scale for name in keys if roles[name].scale}
    return {**parameters, "scale": scales} if scales else parameters


def _names(value: Any) -> list[Name]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
