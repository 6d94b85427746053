"""Proposed roles for all columns without a role, used if the user names no columns to mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shoal.core.checks import check_k
from shoal.core.errors import InputError
from shoal.core.messages import clauses, parameter
from shoal.masking.request import MaskRequest
from shoal.masking.sums import read_rule
from shoal.roles.column_proposal import ProposedColumn
from shoal.roles.column_roles import PARAMETERS, ColumnRole, as_parameters, proposed_roles
from shoal.roles.proposal import propose
from shoal.tables.columns import Name
from shoal.tables.head import head_table
from shoal.tables.identifiers import DIFFERENT, FEW
from shoal.tables.number_text import check_no_numbers
from shoal.tables.table import Table, check_name

__all__ = ["PROPOSED", "propose_roles"]

JUDGED = 100_000  # number of records of a large table from which its roles are proposed
SINGLE = ("unit", "weight")


PROPOSED = "no columns to mask were named: every column has a proposed role; shoal inspect explains them"


def propose_roles(
    data: Any, request: MaskRequest, table: Table | None = None
) -> tuple[MaskRequest, dict[Name, ColumnRole]]:
    """Return the request with a role for every column, and these roles; the roles not set by the user are proposed.

    Without `table`, the data is not in memory, and roles are proposed from the first records.
    """
    table = head_table(data, JUDGED, request.reading) if table is None else table
    if table.rows < JUDGED:  # the table has no further records
        check_k(request.k, table.rows)
    table = table.coded(request.codes)
    proposal = propose(table, request.k, most=JUDGED)
    named = _named(request, table)
    for column in proposal.columns:
        if column.name not in named:
            _check_no_slip(table, column, masked=column.name not in proposal.dropped)
    roles = _decided(request, named, proposed_roles(proposal))
    parameters = as_parameters(roles)
    if not parameters["columns"]:
        reasons = clauses([f"{name} ({column.role}: {column.reason})" for name, column in roles.items()])
        raise InputError(f"No column can be masked: {reasons}. Name the columns to mask in {parameter('columns')}.")
    if request.by is not None:
        parameters["by"] = request.by  # the order of these columns decides which small strata are joined
    if request.small == "merge":
        parameters["small"] = proposal.parameters["small"]
    for name in ("kinds", "missing_codes"):
        parameters[name] = {**(parameters[name] or {}), **(getattr(request, name) or {})} or None
    if request.weight_vector is not None:
        parameters["weights"] = request.weights
    return replace(request, **parameters), roles


def _check_no_slip(table: Table, column: ProposedColumn, *, masked: bool) -> None:
    """Refuse a text column that some cells prevent from being numeric; a column with few values may hold codes."""
    different = column.role == "identifier" and column.reason.partition(";")[0] in DIFFERENT
    if column.name in table.numeric_names() or not (different or column.role == "key"):
        return
    numbers = table[column.name].text_numbers()
    if numbers is None or (masked and (column.distinct <= FEW or not numbers.cause)):
        return
    check_no_numbers(column.name, [numbers])


def _named(request: MaskRequest, table: Table) -> dict[Name, str]:
    """Return the roles set by the user or implied by other parameters."""
    named: dict[Name, str] = {}
    for role, name_of_parameter in PARAMETERS.items():
        value = getattr(request, name_of_parameter)
        for name in value if isinstance(value, list) else [value] if isinstance(value, (str, int)) else []:
            check_name(name, table.names, name_of_parameter)
            named[name] = role
    return {**dict.fromkeys(_mentioned(request), "key"), **named}


def _decided(
    request: MaskRequest, named: Mapping[Name, str], proposed: Mapping[Name, ColumnRole]
) -> dict[Name, ColumnRole]:
    """Return the role of every column: the role set by the user, or the proposed role."""
    roles = {}
    for name, column in proposed.items():
        if name in named:
            roles[name] = replace(column, role=named[name])
        elif column.role == "stratum" and request.by is not None:
            roles[name] = replace(column, role="key")
        elif column.role in ("sensitive", *SINGLE) and getattr(request, PARAMETERS[column.role]) is not None:
            roles[name] = replace(column, role="drop", reason=f"another column is the {column.role} column")
        else:
            roles[name] = column
    return roles


def _mentioned(request: MaskRequest) -> set[Name]:
    """Return the columns named by parameters that apply only to masked columns."""
    names = {
        name for parameter_name in ("distance", "zeros", "block_by") for name in getattr(request, parameter_name) or ()
    }
    names |= {*(request.scale if isinstance(request.scale, Mapping) else ())}
    names |= {*(request.importance or {}), *(request.kinds or {}), *request.codes}
    return names | {name for text in request.sums or () for name in read_rule(text).columns}
