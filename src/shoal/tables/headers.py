"""Header lines: a file without one would release its first record as the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from shoal.core.errors import FileError
from shoal.kinds.column import MOST, Cells
from shoal.kinds.date import PATTERNS
from shoal.tables.columns import number_like
from shoal.tables.csv_table import present_cells
from shoal.tables.identifiers import LOOKS
from shoal.tables.table import Table

__all__ = ["check_header"]

ROWS = 1000  # records that the first line is compared with
EXPONENT = r"[eE][+-]?\d+$"
YEAR = re.compile(r"(1[89]|20)\d\d")


def check_header(path: Path, table: Table) -> None:
    """Refuse a CSV or Excel file whose first line looks like the records below.

    A name of a column does not look like its cells: it is no number above numbers, no date above dates, no e-mail
    address above such addresses. Names that are numbers are accepted if they number the columns (1, 2, 3) or are years
    (2019, 2020). A line of text is a record if most of its cells occur again below, each in its column.
    """
    first = table.take(np.arange(min(ROWS, table.rows)))
    names = [str(name).strip() for name in table.names]
    cells = [present_cells(column.cast(pl.String, strict=False)).drop_nulls() for column in first.cells(table.names)]
    like_record = _alike(names, cells) or _numbers(names, cells) or _repeated(names, cells)
    if like_record:
        # Without the name itself, which may be a value of a record.
        raise FileError(
            f"File {path} seems to have no header line: in line 1, column {like_record[0] + 1} looks like the cells "
            "below it. Add a first line with the names of the columns. If line 1 has the names, change those that look "
            "like values, such as '2019' to 'y2019'."
        )


def _alike(names: Sequence[str], columns: Sequence[pl.Series]) -> list[int]:
    """Return the columns whose name is a date, an address or the like, as their cells are."""
    patterns = [*PATTERNS.values(), *LOOKS.values()]
    return [
        place
        for place, (name, cells) in enumerate(zip(names, columns, strict=True))
        if any(pattern.fullmatch(name[:200]) and Cells.of(cells).look_like(pattern) for pattern in patterns)
    ]


def _numbers(names: Sequence[str], columns: Sequence[pl.Series]) -> list[int]:
    """Return the columns of numbers whose name is a number, unless such names form a series."""
    numeric = [place for place, like in enumerate(_named_by_numbers(names, columns)) if like]
    alike = [place for place in numeric if _are_numbers(columns[place])]
    if not alike:
        return []
    if _number_columns(names, columns, numeric) or _are_years(names, columns, numeric, alike):
        return []
    return alike


def _named_by_numbers(names: Sequence[str], columns: Sequence[pl.Series]) -> list[bool]:
    """Return for each column whether its name is a number; GDP 2020 is one only above cells such as EUR 500."""
    words = pl.Series(names, dtype=pl.String)
    lettered = _has_letters(words)
    return [
        bool(like) and (not lettered[place] or MOST * len(columns[place]) <= _has_letters(columns[place]).sum())
        for place, like in enumerate(number_like(words))
    ]


def _has_letters(cells: pl.Series) -> pl.Series:
    """Return for each cell whether it holds a letter that is not the e of an exponent."""
    return cells.str.replace_all(EXPONENT, "").str.contains(r"\p{L}")


def _are_numbers(cells: pl.Series) -> bool:
    """Return whether most cells are written like numbers."""
    return 0 < MOST * len(cells) <= int(number_like(cells).sum())


def _number_columns(names: Sequence[str], columns: Sequence[pl.Series], numeric: Sequence[int]) -> bool:
    """Return whether names count from 0 or 1: three or more, or all that follow an empty name, as pandas writes them.

    They are a record if each of them is also among the cells below it.
    """
    numbers = [names[place] for place in numeric]
    if numbers not in [[str(first + i) for i in range(len(numbers))] for first in (0, 1)]:
        return False
    after_index = not names[0] and len(numbers) == len(names) - 1
    return (after_index or len(numbers) >= 3) and not all(names[place] in columns[place] for place in numeric)


def _are_years(
    names: Sequence[str], columns: Sequence[pl.Series], numeric: Sequence[int], alike: Sequence[int]
) -> bool:
    """Return whether all numbers among the names are different years above cells that are none.

    A single year may also be a number of the first record, unless it lies outside the numbers below it.
    """
    years = [names[place] for place in numeric]
    if not all(map(YEAR.fullmatch, years)) or any(Cells.of(columns[place]).look_like(YEAR) for place in alike):
        return False
    if len(years) > 1:
        return len({*years}) == len(years)
    below = pl.concat([columns[place].cast(pl.Float64, strict=False) for place in alike]).drop_nulls()
    return not (below <= float(years[0])).any() or not (below >= float(years[0])).any()


def _repeated(names: Sequence[str], columns: Sequence[pl.Series]) -> list[int]:
    """Return the columns whose name is also one of their cells, if most are such and none of them is a number.

    Columns of one or two values do not tell: those of a survey may be called by the answer that was ticked.
    """
    numeric = _named_by_numbers(names, columns)
    among = [place for place, name in enumerate(names) if not numeric[place] and name in columns[place]]
    varied = any(columns[place].n_unique() > 2 for place in among)
    return among if varied and len(among) > 1 and 2 * len(among) > len(names) else []
