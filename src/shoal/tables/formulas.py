"""Detection and escaping of cells and column names in CSV files that a spreadsheet would run as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from shoal.core.errors import VerificationError
from shoal.core.types import Bools
from shoal.tables.columns import Name
from shoal.tables.formats.csv_files import header_text
from shoal.tables.number_text import Dialect
from shoal.tables.table import Table, check_names

__all__ = ["FORMULAS", "escape_formulas", "escape_header", "escaped_name", "formula_columns", "formula_names"]

FORMULAS = "=, +, -, @"  # first characters of formulas, for messages
BEGIN = r"^[=@\t\r+-]"
CHUNK = 1 << 20  # bytes moved at a time
NUMBER = r"^[+-]\s?[\d.,'\s]*\d[\d.,'\s]*(?:[eE][+-]?\d+)?\s?%?$"


def formula_columns(table: Table, names: Sequence[Name]) -> list[Name]:
    """Return the columns among `names` that contain formulas."""
    return [name for name, text in _texts(table, names).items() if _formulas(text).any()]


def escape_formulas(table: Table) -> Table:
    """Return a table with an apostrophe before every text cell that is a formula."""
    escaped = {}
    for name, text in _texts(table, table.names).items():
        formulas = _formulas(text)
        if formulas.any():
            pairs = zip(text.to_list(), formulas, strict=True)
            escaped[name] = [f"'{cell}" if formula else cell for cell, formula in pairs]
    return table.relabelled(escaped) if escaped else table


def formula_names(names: Sequence[Name]) -> list[Name]:
    """Return the column names that are formulas.

    Examples
    --------
    >>> formula_names(["income", "=1+1", "-5"])
    ['=1+1']
    """
    formulas = _formulas(pl.Series([str(name) for name in names], dtype=pl.String))
    return [name for name, formula in zip(names, formulas, strict=True) if formula]


def escaped_name(name: Name) -> str:
    """Return the spelling of a column name in the header of an escaped CSV file.

    Examples
    --------
    >>> escaped_name("=1+1"), escaped_name("income")
    ("'=1+1", 'income')
    """
    return f"'{name}" if formula_names([name]) else str(name)


def escape_header(path: Path, names: Sequence[Name], dialect: Dialect) -> None:
    """Put an apostrophe before every column name of a CSV file that is a formula; keep the records."""
    escaped = [escaped_name(name) for name in names]
    if escaped == list(names):
        return
    check_names(escaped)
    with path.open("r+b") as file:
        for quotes in (False, True):
            old, new = (header_text(header, dialect, quotes=quotes) for header in (names, escaped))
            file.seek(0)
            if file.read(len(old)) == old:
                break
        else:
            raise VerificationError(f"The header of output {path} is not the planned one. Nothing was released.")
        # Move chunks, the last one first, to make room for the longer header in the same, locked file.
        for start in reversed(range(len(old), file.seek(0, 2), CHUNK)):
            file.seek(start)
            moved = file.read(CHUNK)
            file.seek(start + len(new) - len(old))
            file.write(moved)
        file.seek(0)
        file.write(new)


def _texts(table: Table, names: Sequence[Name]) -> dict[Name, pl.Series]:
    """Return the columns among `names` that are text."""
    columns = zip(names, table.cells(names).get_columns(), strict=True)
    return {
        name: cells.cast(pl.String) for name, cells in columns if cells.dtype in (pl.String, pl.Categorical, pl.Enum)
    }


def _formulas(text: pl.Series) -> Bools:
    """Return a mask of the cells that are formulas; signed numbers are not."""
    formulas = text.str.contains(BEGIN).fill_null(value=False)
    if formulas.any():
        formulas &= ~text.str.contains(NUMBER).fill_null(value=False)
    return formulas.to_numpy()
