"""Column roles, which determine how masking treats each column: proposed, read from a file, or set one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Name
from shoal.kinds.kind import Kind
from shoal.kinds.kind_registry import NUMBERS, read_kind
from shoal.roles.proposal import Proposal

__all__ = ["PARAMETERS", "ColumnRole", "as_parameters", "as_roles", "proposed_roles"]

# The parameter of `shoal.mask` for the columns of each role.
PARAMETERS = {
    "key": "columns",
    "stratum": "by",
    "sensitive": "confidential",
    "weight": "weights",
    "unit": "unit",
    "keep": "keep",
    "drop": "identifiers",
}
MEASURED = ("key", "sensitive")  # roles whose columns need a kind


@dataclass(frozen=True)
class ColumnRole:
    """The role of a column.

    Parameters
    ----------
    role
        ``"key"`` (masked), ``"stratum"``, ``"sensitive"`` (released unchanged, measured), ``"weight"``, ``"unit"``,
        ``"keep"`` (released unchanged) or ``"drop"`` (left out).
    kind
        The kind, in the form of parameter ``kinds``; None for the default kind of the column's type.
    missing_codes
        The codes for missing values.
    reason
        The reason for the role.
    word
        The kind of the column as one word, for readers.
    scale
        The scale on which a numeric key is compared, in the form of parameter ``scale``; None for linear.
    """

    role: str
    kind: Any = None
    missing_codes: tuple[Any, ...] = ()
    reason: str = ""
    word: str = ""
    scale: str | None = None


def proposed_roles(proposal: Proposal) -> dict[Name, ColumnRole]:
    """Return the proposed role of each column."""
    proposed = proposal.parameters
    named = _roles_by_name(proposed)
    kinds, codes = proposed.get("kinds") or {}, proposed.get("missing_codes") or {}
    roles = {}
    for column in proposal.columns:
        name = column.name
        # A stratum may later become a key, and its numeric codes must then be nominal.
        kind = "nominal" if named.get(name) == "stratum" and column.kind == "nominal" else kinds.get(name)
        reason = proposal.dropped.get(name, column.reason)
        word = "number" if column.kind in NUMBERS else "nominal" if column.kind in ("boolean", "nominal") else ""
        roles[name] = ColumnRole(named.get(name, "drop"), kind, tuple(codes.get(name, ())), reason, word)
    return roles


def as_roles(parameters: Mapping[str, Any], proposed: Mapping[Name, ColumnRole]) -> dict[Name, ColumnRole]:
    """Return the column roles that parameters of `shoal.mask` imply.

    Roles that equal the proposed ones keep their reasons.

    Examples
    --------
    >>> as_roles({"columns": ["age"]}, {"age": ColumnRole("drop"), "name": ColumnRole("drop", reason="a name")})["name"]
    ColumnRole(role='drop', kind=None, missing_codes=(), reason='a name', word='', scale=None)
    """
    named = _roles_by_name(parameters)
    kinds, all_codes = parameters.get("kinds") or {}, parameters.get("missing_codes") or {}
    if kept := [name for name in _names(parameters.get("keep")) if named[name] == "unit"]:
        raise InputError(
            f"A roles file leaves the unit column out, but {parameter('keep')} names {kept[0]!r}. Remove it from "
            f"{parameter('keep')}, or name the columns one by one."
        )
    roles = {}
    for name, before in proposed.items():
        role, codes = named.get(name, "drop"), tuple(all_codes.get(name, ()))
        as_proposed = role == before.role
        kind = kinds.get(name, before.kind if as_proposed and role not in MEASURED else None)
        reason = before.reason if as_proposed else "as chosen"
        word = before.word if as_proposed and kind == before.kind else ""
        roles[name] = ColumnRole(role, kind, codes, reason, word)
    return roles


def as_parameters(roles: Mapping[Name, ColumnRole], *, joining: bool = True) -> dict[str, Any]:
    """Return the parameters of `shoal.mask` for these roles.

    Hierarchies of strata are included only if small strata are joined (`joining`).

    Examples
    --------
    >>> as_parameters({"age": ColumnRole("key"), "name": ColumnRole("drop")})["identifiers"]
    ['name']
    """
    by_role = {role: [name for name, column in roles.items() if column.role == role] for role in PARAMETERS}
    parameters: dict[str, Any] = {parameter: by_role[role] or None for role, parameter in PARAMETERS.items()}
    parameters |= {"unit": next(iter(by_role["unit"]), None), "weights": next(iter(by_role["weight"]), None)}
    keys = by_role["key"]
    kinds = {name: read_kind(name, column.kind) for name, column in roles.items() if column.kind}
    kinds = {name: kind for name, kind in kinds.items() if _is_used(roles[name].role, kind, joining=joining)}
    # A place needs both of its columns.
    parameters["kinds"] = {name: roles[name].kind for name, kind in kinds.items() if {*kind.columns} <= {*keys}} or None
    codes = {name: list(roles[name].missing_codes) for name in keys if roles[name].missing_codes}
    parameters |= {"columns": keys, "missing_codes": codes or None}
    scales = {name: roles[name].scale for name in keys if roles[name].scale}
    return {**parameters, "scale": scales} if scales else parameters


def _is_used(role: str, kind: Kind, *, joining: bool) -> bool:
    """Return whether masking uses the kind of a column with this role."""
    return role in MEASURED or (role == "stratum" and kind.joins and joining)


def _roles_by_name(parameters: Mapping[str, Any]) -> dict[Name, str]:
    """Return the role of each column that the parameters name; a left-out unit column has role unit."""
    roles: dict[Name, str] = {}
    for role, name_of_parameter in PARAMETERS.items():
        for name in _names(parameters.get(name_of_parameter)):
            roles.setdefault(name, role)
    return roles


def _names(value: Any) -> list[Name]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
