"""The proposed role and kind of every column of a table, and the resulting masking."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from shoal.roles.column_proposal import ProposedColumn, propose_column, with_format
from shoal.roles.evidence import find_text_codes, gather, with_codes
from shoal.roles.mask_parameters import find_dates, mask_parameters, maskable_columns, why_dropped
from shoal.roles.recognition import is_of_person
from shoal.roles.related_columns import with_panel_unit, with_some_key, with_strata, without_functions
from shoal.roles.word_lists import read_words
from shoal.tables.columns import Name
from shoal.tables.table import Table
from shoal.tables.table_view import View, spread

__all__ = ["Proposal", "propose"]


@dataclass(frozen=True)
class Proposal:
    """A proposed role and kind for every column, for review.

    Parameters
    ----------
    columns
        The columns, in the order of the table.
    parameters
        The resulting parameters of `shoal.mask`; ``columns`` is empty if no column can be masked.
    dropped
        The columns of parameter ``identifiers``, which are left out of the release, with their reasons.
    view
        The whole table, in which text codes for missing values are read as missing values.
    """

    columns: tuple[ProposedColumn, ...]
    parameters: Mapping[str, Any]
    dropped: Mapping[Name, str]
    view: View

    def named(self, role: str) -> list[Name]:
        """Return the columns with this role."""
        return [column.name for column in self.columns if column.role == role]


def propose(table: Table, k: int, *, most: int | None = None, words: str | os.PathLike[str] | None = None) -> Proposal:
    """Propose a role and a kind for every column of a table, and the resulting masking.

    Parameters
    ----------
    table
        The table.
    k
        The minimum number of records in a group and in a proposed stratum.
    most
        The number of records, spread over the table, from which roles are proposed. Distinct and missing values are
        counted in the whole table.
    words
        A file with additional words that identify columns, in the form of ``words.toml``.

    Examples
    --------
    >>> from shoal.tables.formats.frames import open_table
    >>> people = open_table(pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dan"], "age": [31, 47, 52, 29]}))
    >>> propose(people, 2).dropped
    {'name': 'the column name suggests a name'}
    """
    sample = table if most is None or table.rows <= most else table.take(spread(table.rows, most))
    text_codes = find_text_codes(sample)
    text_words = {name: list(counts) for name, counts in text_codes.items() if counts}
    view = View(with_codes(table, text_words))
    seen = view if sample is table else View(with_codes(sample, text_words))
    evidence = gather(seen, text_codes, read_words(words))
    persons = any(map(is_of_person, evidence.series))
    columns = [propose_column(name, evidence, persons=persons) for name in evidence.series]
    columns = with_panel_unit(columns, evidence)
    dates = find_dates(columns, evidence.series)
    columns = [with_format(column, evidence.series[column.name], dates.get(column.name)) for column in columns]
    columns = with_some_key(columns)
    columns = with_strata(columns, evidence.series, k)
    if sample is not table:
        columns = [_counted(column, view.column(column.name)) for column in columns]
    maskable = maskable_columns(columns, evidence, dates)
    columns = without_functions(columns, evidence, maskable)
    parameters = mask_parameters(columns, evidence, maskable, dates, k)
    left_out = [column for column in columns if column.name in (parameters["identifiers"] or ())]
    reasons = {column.name: why_dropped(column, parameters) for column in left_out}
    explained = (_with_reason(column, reasons.get(column.name, "")) for column in columns)
    dropped = {column.name: reasons[column.name] or column.reason for column in left_out}
    return Proposal(tuple(explained), parameters, dropped, view)


def _counted(column: ProposedColumn, cells: pl.Series) -> ProposedColumn:
    """Return a column with the counts of the whole table."""
    return replace(column, distinct=cells.drop_nulls().n_unique(), missing=cells.null_count())


def _with_reason(column: ProposedColumn, cause: str) -> ProposedColumn:
    """Add the cause of dropping a column to its reason."""
    return replace(column, reason=f"{column.reason}; dropped: {cause}") if cause else column
