"""inspect(), which proposes roles and kinds for a table and the command that masks it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from shoal.core.display import aligned, html_table
from shoal.core.messages import visible
from shoal.core.parameters import with_parameters_of
from shoal.core.types import Name
from shoal.masking.manifest import as_call, as_command
from shoal.masking.request import MaskRequest
from shoal.masking.request_rules import check_data
from shoal.roles.column_proposal import ProposedColumn
from shoal.roles.column_roles import proposed_roles
from shoal.roles.proposal import propose
from shoal.roles.roles_file import Roles
from shoal.tables.addresses import suffix_of
from shoal.tables.files import DatabaseTable, StandardInput, named_source, open_data, writable_endings
from shoal.tables.reading import ReadingOptions
from shoal.tables.table import Table
from shoal.tables.table_view import View

__all__ = ["Inspection", "inspect"]


@dataclass(frozen=True)
class Inspection:
    """The proposed role and kind of every column of a table, for review.

    Parameters
    ----------
    columns
        The columns, in the order of the table.
    records
        The number of records.
    uniques
        The number of records with a unique combination of keys, in the unmasked table.
    uniques_in_strata
        The number of records with a unique combination of keys and strata.
    command
        The proposed masking: a ``shoal mask`` command for a file, a Python call for a table; empty if there is nothing
        to mask.
    asked
        The proposed parameters of `shoal.mask`.
    column_roles
        The role of each column in the form of a roles file (`save`).
    view
        The inspected table. It shows the first rows and counts the combinations of selected columns by their size in
        records (``view.alike(["age", "sex"])``).
    """

    columns: tuple[ProposedColumn, ...]
    records: int
    uniques: int
    uniques_in_strata: int
    command: str
    asked: Mapping[str, Any] = field(default_factory=dict, repr=False)
    column_roles: Roles = field(default_factory=Roles, repr=False)
    view: View | None = field(default=None, repr=False, compare=False)

    @property
    def roles(self) -> dict[Name, str]:
        """The role of each column."""
        return {column.name: column.role for column in self.columns}

    @property
    def kinds(self) -> dict[Name, str]:
        """The kind of each column."""
        return {column.name: column.kind for column in self.columns}

    def save(self, path: str | os.PathLike[str], source: str = "the table") -> Path:
        """Write a roles file to review and edit; pass it to `shoal.mask` as parameter ``roles``."""
        return self.column_roles.save(path, source)

    def named(self, role: str) -> list[Name]:
        """Return the columns with this role."""
        return [column.name for column in self.columns if column.role == role]

    def cells(self) -> list[list[str]]:
        """Return the rows of the printed table as text, header first."""
        rows = [[str(c.name), c.role, c.kind, f"{c.distinct:,}", f"{c.missing:,}", c.reason] for c in self.columns]
        return [["column", "role", "kind", "values", "missing", "why"], *rows]

    def rows(self) -> list[tuple[str, str]]:
        """Return the summary as pairs of a name and a value."""
        unique = f"{self.uniques:,} of {self.records:,} over the keys"
        if self.named("stratum"):
            unique += f", {self.uniques_in_strata:,} over keys and strata"
        lines = [("unique records", unique)]
        identifiers = self.asked.get("identifiers")
        if identifiers:
            lines.append(("left out", f"{len(identifiers)}: {', '.join(map(str, identifiers))}"))
        return lines if self.command else [*lines, ("to mask", "nothing: no key can be masked")]

    def __str__(self) -> str:
        summary = "\n".join(f"{name:<18} {visible(value)}" for name, value in self.rows())
        return "\n\n".join(
            filter(None, [aligned(self.cells(), numeric=False), summary, visible(self.command, lines=True)])
        )

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return f"{html_table(rows, head)}{html_table(self.rows())}<pre>{escape(self.command)}</pre>"


@with_parameters_of(ReadingOptions)
def inspect(
    data: Any, k: int = 5, *, most: int | None = None, words: str | os.PathLike[str] | None = None, **reading: Any
) -> Inspection:
    """Propose a role and a kind for every column of a table, with reasons, before masking.

    Parameters
    ----------
    data
        A table, an array or the path of a file, as in `shoal.mask`.
    k
        The minimum number of records in a group and in a proposed stratum.
    most
        The number of records, spread over the table, from which roles are proposed (default: all). Distinct values,
        missing values and unique records are counted in the whole table.
    words
        A TOML file with additional words that identify sensitive topics, codes and other columns.
    *parameters*

    Returns
    -------
    Inspection
        Roles, kinds and reasons, the number of unique records, and the proposed masking. It prints as a table.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dan"], "age": [31, 47, 52, 29]})
    >>> inspect(people, k=2).roles
    {'name': 'identifier', 'age': 'key'}
    """
    request = MaskRequest(k=k, **reading)
    data = named_source(data)
    check_data(request, data, dask=False)
    table, options = _open(data, request.reading)
    proposal = propose(table, k, most=most, words=words)
    parameters = {"k": k, **proposal.parameters, **options.plain(), "options": {}}
    keys, strata = proposal.named("key"), proposal.named("stratum")
    return Inspection(
        proposal.columns,
        table.rows,
        uniques=proposal.view.alike(keys).get(1, 0),
        uniques_in_strata=proposal.view.alike([*keys, *strata]).get(1, 0),
        command=_command(parameters, data) if parameters["columns"] else "",
        asked=parameters,
        column_roles=Roles(proposed_roles(proposal)),
        view=proposal.view,
    )


def _open(data: Any, options: ReadingOptions) -> tuple[Table, ReadingOptions]:
    """Return the table and its reading options, with the thousands separator detected in its numbers."""
    table = open_data(data, numbers=(), named=True, reading=options)
    if options.thousands is None and (sign := table.find_thousands(options.decimal)):
        return _open(data, replace(options, thousands=sign))
    return table, options


def _command(parameters: Mapping[str, Any], data: Any) -> str:
    """Return the command that masks a file, or the call that masks a table."""
    if not isinstance(data, (str, os.PathLike)):
        return as_call(parameters, None)
    if isinstance(data, DatabaseTable):
        return as_command(parameters, str(data), "masked.parquet")
    source = Path(data)
    if isinstance(data, StandardInput):
        return as_command(parameters, str(source), str(source))
    ending = source.name[len(source.name) - len(suffix_of(source)) :]
    target = f"{source.name.removesuffix(ending)}-masked{ending if ending.lower() in writable_endings() else '.csv'}"
    return as_command(parameters, str(source), str(source.with_name(target)))
