"""Cells of text that a spreadsheet would run as formulas when it opens a CSV file, and how they are kept from it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from shoal.core.types import Bools
from shoal.tables.columns import Name
from shoal.tables.table import Table

__all__ = ["FORMULAS", "escape_formulas", "formula_columns"]

FORMULAS = "=, +, -, @"  # what they begin with
BEGIN = r"^[=@\t\r+-]"
NUMBER = r"^[+-]\s?[\d.,'\s]*\d[\d.,'\s]*(?:[eE][+-]?\d+)?\s?%?$"


def formula_columns(table: Table, names: Sequence[Name]) -> list[Name]:
    """Return those of some columns that hold formulas."""
    return [name for name in names if _formulas(_text(table, name)).any()]


def escape_formulas(table: Table) -> Table:
    """Return a table with an apostrophe before every cell of text that would be run."""
    texts = {name: _text(table, name) for name in table.names}
    found = {name: where for name, text in texts.items() if (where := _formulas(text)).any()}
    escaped = {
        name: [f"'{cell}" if here else cell for cell, here in zip(texts[name].to_list(), where, strict=True)]
        for name, where in found.items()
    }
    return table.relabelled(escaped) if escaped else table


def _text(table: Table, name: Name) -> pl.Series:
    cells = table.cells([name])["0"]
    return cells.cast(pl.String) if cells.dtype in (pl.String, pl.Categorical, pl.Enum) else cells.clear()


def _formulas(text: pl.Series) -> Bools:
    """Say which cells are formulas: numbers with a sign are none."""
    if text.dtype != pl.String:
        return pl.Series([], dtype=pl.Boolean).to_numpy()
    found = text.str.contains(BEGIN).fill_null(value=False)
    if found.any():
        found &= ~text.str.contains(NUMBER).fill_null(value=False)
    return found.to_numpy()
