"""Roles where the user named no columns to mask: proposed for every column whose role the user did not decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.core.checks import check_k
from shoal.core.errors import InputError
from shoal.core.messages import clauses, parameter, setting
from shoal.masking.request import MaskRequest
from shoal.masking.sums import read_rule
from shoal.roles.column_roles import PARAMETERS, ColumnRole, as_parameters, proposed_roles
from shoal.roles.proposal import propose
from shoal.tables.columns import Name
from shoal.tables.number_text import check_no_numbers
from shoal.tables.table import Table, check_name

__all__ = ["JUDGED", "PROPOSED", "Decision", "decide_roles", "needs_roles"]

JUDGED = 100_000  # records of a large table by which roles are judged
SINGLE = ("unit", "weight")


PROPOSED = "no columns were named to be masked: every column has a proposed role, which shoal inspect explains"


class Decision(NamedTuple):
    """A request with roles, and the roles of all columns where they were proposed."""

    request: MaskRequest
    roles: Mapping[Name, ColumnRole] | None = None


def needs_roles(data: Any, request: MaskRequest) -> bool:
    """Return whether roles must be proposed: no columns were named, and the table is no array, which is all numbers."""
    if request.columns is None and request.rest != "drop":
        raise InputError(
            f"{setting('rest', request.rest)} requires {parameter('columns')}: without it, every column has a proposed "
            f"role. Name the columns to mask, or name those to release unchanged in {parameter('keep')}."
        )
    return request.columns is None and not isinstance(data, np.ndarray)


def decide_roles(table: Table, request: MaskRequest) -> Decision:
    """Return the request with a role for every column: what the user decided, and what is proposed for the others."""
    if table.rows < JUDGED:  # these are all records
        check_k(request.k, table.rows)
    proposal = propose(table, request.k, most=JUDGED)
    roles = _decided(request, table, proposed_roles(proposal))
    unreadable = {
        column.name for column in proposal.columns if column.role == "key" and column.name in proposal.dropped
    }
    for name in unreadable.difference(request.identifiers or (), table.numeric_names()):
        if roles[name].role == "drop" and (numbers := table[name].text_numbers()) is not None:
            check_no_numbers(name, [numbers])
    parameters = as_parameters(roles)
    if not parameters["columns"]:
        reasons = clauses([f"{name} ({column.role}: {column.reason})" for name, column in roles.items()])
        raise InputError(f"No column can be masked: {reasons}. Name the columns to mask in {parameter('columns')}.")
    for name in ("kinds", "missing_codes"):
        parameters[name] = {**(parameters[name] or {}), **(getattr(request, name) or {})} or None
    if request.weight_vector is not None:
        parameters["weights"] = request.weights
    return Decision(replace(request, **parameters), roles)


def _decided(request: MaskRequest, table: Table, proposed: Mapping[Name, ColumnRole]) -> dict[Name, ColumnRole]:
    """Return the roles that the user decided, and the proposed ones of other columns."""
    decided: dict[Name, str] = {}
    for role, name_of_parameter in PARAMETERS.items():
        value = getattr(request, name_of_parameter)
        for name in value if isinstance(value, list) else [value] if isinstance(value, (str, int)) else []:
            check_name(name, table.names, name_of_parameter)
            decided[name] = role
    for name in _mentioned(request):
        decided.setdefault(name, "key")
    roles = {}
    for name, column in proposed.items():
        if name in decided:
            roles[name] = replace(column, role=decided[name])
        elif column.role == "stratum" and request.by is not None:
            roles[name] = replace(column, role="key")
        elif column.role in ("sensitive", *SINGLE) and getattr(request, PARAMETERS[column.role]) is not None:
            roles[name] = replace(column, role="drop", reason=f"another column is the {column.role} column")
        else:
            roles[name] = column
    return roles


def _mentioned(request: MaskRequest) -> set[Name]:
    """Return the columns that parameters name which are about masked columns."""
    names = {
        name for parameter_name in ("distance", "zeros", "block_by") for name in getattr(request, parameter_name) or ()
    }
    names |= {*(request.importance or {}), *(request.kinds or {}), *request.codes}
    return names | {name for text in request.sums or () for name in read_rule(text).columns}
