"""Evidence for roles: the cells of all columns, codes for missing values, and topics of names and cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from shoal.kinds.column import Cells
from shoal.roles.recognition import holds_diagnoses, missing_codes
from shoal.roles.word_lists import WordLists
from shoal.tables.columns import Name
from shoal.tables.table import Table
from shoal.tables.table_view import View

__all__ = ["Evidence", "find_text_codes", "gather", "with_codes"]

MOST_READ = 200  # maximum number of distinct texts of a column that are searched for a topic


@dataclass(frozen=True)
class Evidence:
    """The evidence for roles: a table or a sample of it, and the cells of its columns."""

    table: Table
    series: Mapping[Name, pl.Series]
    cells: Mapping[Name, Cells]
    codes: Mapping[Name, Mapping[int | str, int]]  # codes for missing values, with their counts
    words: WordLists
    sensitive: Mapping[Name, str]  # reasons from column names or cells


def find_text_codes(table: Table) -> dict[Name, dict[int | str, int]]:
    """Return the words that mean missing in text columns, with their counts."""
    return {
        name: missing_codes(Cells.of(column))
        for name, column in zip(table.names, table.keys(table.names), strict=True)  # as spelled
        if column.dtype == pl.String
    }


def with_codes(table: Table, codes: Mapping[Name, Iterable[int | str]]) -> Table:
    """Return a table with additional codes for missing values."""
    names = {*table.codes, *codes}
    return table.coded({name: [*table.codes.get(name, ()), *codes.get(name, ())] for name in names})


def gather(view: View, text_codes: Mapping[Name, Mapping[int | str, int]], words: WordLists) -> Evidence:
    """Return the evidence of all columns of a table."""
    series = view.columns()
    cells = Cells.of_columns(series)
    codes = {name: {**text_codes.get(name, {}), **missing_codes(present)} for name, present in cells.items()}
    coded = with_codes(view.table, {name: counts for name, counts in codes.items() if counts})
    by_name = {name: f"the name suggests {topic}" for name, topic in words.sensitive_topics(series).items()}
    by_cells = {name: reason for name, present in cells.items() if (reason := _sensitive_cells(name, present, words))}
    return Evidence(coded, series, cells, codes, words, by_cells | by_name)


def _sensitive_cells(name: Name, cells: Cells, words: WordLists) -> str | None:
    """Return the reason why the cells of a text column are sensitive; None if they are not sensitive."""
    if holds_diagnoses(cells) and not words.has("codes", name):
        return "the values look like ICD diagnosis codes"
    if not cells.text or cells.distinct > MOST_READ:
        return None
    topic = words.topic_of_cells(cells.values.unique().sort())
    return f"the values suggest {topic}" if topic else None
