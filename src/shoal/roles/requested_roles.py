"""Parameters of a request that follow from its roles."""

from __future__ import annotations

from typing import Any

from shoal.core.errors import InputError
from shoal.core.messages import listed, parameter
from shoal.roles.column_roles import as_parameters
from shoal.roles.roles_file import Roles, read_roles

__all__ = ["AppliedRoles", "apply_roles"]


class AppliedRoles(Roles):
    """Roles that have been copied to the parameters of a request."""


def apply_roles(request: Any) -> None:
    """Set the parameters that follow from the roles of a request; refuse parameters that are already set."""
    if isinstance(request.roles, AppliedRoles):
        return
    columns = read_roles(request.roles)
    joining = vars(request).get("small", "merge") == "merge"
    decided = as_parameters(columns, joining=joining)
    parameters = {name: value for name, value in decided.items() if name in vars(request)}
    for name in parameters:
        if getattr(request, name) is not None:
            raise InputError(
                f"{parameter(name)} cannot be combined with {parameter('roles')}, which gives every column its "
                "role. Change the roles instead."
            )
    if not parameters["columns"]:
        raise InputError(
            f"{parameter('roles')} has no column with role 'key', so nothing is masked. Set this role for a column."
        )
    for role in ("unit", "weight"):
        several = [column for column, entry in columns.items() if entry.role == role]
        if len(several) > 1:
            raise InputError(
                f"{parameter('roles')} has several columns with role {role!r}: {listed(several)}. Choose one of them."
            )
    vars(request).update(parameters, roles=AppliedRoles(columns))
