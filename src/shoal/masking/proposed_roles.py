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
from shoal.masking.request_rules import check_promises
from shoal.masking.sums import read_rule
from shoal.roles.column_proposal import ProposedColumn
from shoal.roles.column_roles import PARAMETERS, ColumnRole, as_parameters, proposed_roles
from shoal.roles.proposal import propose
from shoal.tables.columns import Name
from shoal.tables.identifiers import DIFFERENT, FEW
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
    proposed = request.columns is None and not isinstance(data, np.ndarray)
    if not proposed:
        check_promises(request)
    return proposed


def decide_roles(table: Table, request: MaskRequest) -> Decision:
    """Return the request with a role for every column: what the user decided, and what is proposed for the others."""
    if table.rows < JUDGED:  # these are all records
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
        parameters["by"] = request.by  # its order decides which small strata are joined
    if request.small == "merge":
        parameters["small"] = proposal.parameters["small"]
    for name in ("kinds", "missing_codes"):
        parameters[name] = {**(parameters[name] or {}), **(getattr(request, name) or {})} or None
    if request.weight_vector is not None:
        parameters["weights"] = request.weights
    return Decision(replace(request, **parameters), roles)


def _check_no_slip(table: Table, column: ProposedColumn, *, masked: bool) -> None:
    """Refuse a column of numbers that is text, maybe because of some of its cells; few values are a code."""
    different = column.role == "identifier" and column.reason.partition(";")[0] in DIFFERENT
    if column.name in table.numeric_names() or not (different or column.role == "key"):
        return
    numbers = table[column.name].text_numbers()
    if numbers is None or (masked and (column.distinct <= FEW or not numbers.cause)):
        return
    check_no_numbers(column.name, [numbers])


def _named(request: MaskRequest, table: Table) -> dict[Name, str]:
    """Return the roles that the user named, or implied by other parameters."""
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
    """Return the roles that the user named, and the proposed ones of other columns."""
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
    """Return the columns that parameters name which are about masked columns."""
    names = {
        name for parameter_name in ("distance", "zeros", "block_by") for name in getattr(request, parameter_name) or ()
    }
    names |= {*(request.importance or {}), *(request.kinds or {}), *request.codes}
    return names | {name for text in request.sums or () for name in read_rule(text).columns}
