"""View of an unmasked table: its first rows, the cells of its columns, and counts of equal records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from shoal.core.types import Ints
from shoal.kinds.column import composed_cells
from shoal.tables.columns import Name
from shoal.tables.table import Table

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """View of a table, whose columns are prepared for counting on first use and then kept.

    Parameters
    ----------
    table
        The table, with its codes for missing values.
    """

    table: Table
    _columns: dict[Name, pl.Series] = field(default_factory=dict, init=False)

    @property
    def names(self) -> list[Name]:
        """The names of the columns."""
        return list(self.table.names)

    @property
    def records(self) -> int:
        """The number of records."""
        return self.table.rows

    @property
    def memory(self) -> int:
        """The size in bytes of the columns prepared for counting, excluding the text of a CSV file."""
        return sum(int(column.estimated_size()) for column in self.columns().values())

    @property
    def format(self) -> Mapping[str, str | None]:
        """The dialect of a CSV file as parameters of `shoal.mask`; empty for other tables."""
        dialect = self.table.dialect
        if dialect is None:
            return {}
        return {name: getattr(dialect, name) for name in ("delimiter", "encoding", "decimal", "thousands")}

    @property
    def sheets(self) -> tuple[str, ...]:
        """The sheet names of the Excel file that the table was read from; empty for other tables."""
        return self.table.store.sheets

    @property
    def frame(self) -> Any:
        """The table in a form that `shoal.mask` accepts."""
        return self.table.native

    def sample(self, records: int) -> Any:
        """Return a sample of at most `records` records, evenly spaced over the table."""
        if self.records <= records:
            return self.frame
        return self.table.take(spread(self.records, records)).native

    def head(self, records: int = 20) -> list[list[str]]:
        """Return the cells of the first records as text."""
        first = self.table.take(np.arange(min(records, self.records)))
        cells = first.cells(self.names)
        return [["" if cell is None else str(cell) for cell in row] for row in cells.rows()]

    def column(self, name: Name) -> pl.Series:
        """Return the cells of a column for counting, with null for NaN and codes for missing values."""
        if name not in self._columns:
            self._columns[name] = composed_cells(_plain(self.table[name].counted))
        return self._columns[name]

    def columns(self) -> dict[Name, pl.Series]:
        """Return the cells of all columns for counting, by name."""
        return {name: self.column(name) for name in self.names}

    def alike(self, names: Sequence[Name]) -> dict[int, int]:
        """Return, for each group size, the number of value combinations that exactly this many records share.

        Examples
        --------
        >>> from shoal.tables.formats.frames import open_table
        >>> people = open_table(pl.DataFrame({"age": [30, 30, 30, 41], "sex": ["f", "f", "m", "m"]}))
        >>> View(people).alike(["age", "sex"])
        {1: 2, 2: 1}
        """
        counts = sizes_of([self.column(name) for name in names]).value_counts(name="times").sort(by="size")
        return dict(counts.rows())


def spread(rows: int, sample_size: int) -> Ints:
    """Return the row numbers of a sample that is evenly spaced over a table."""
    return np.linspace(0, rows - 1, sample_size).astype(np.int64)


def sizes_of(columns: Sequence[pl.Series]) -> pl.Series:
    """Return the number of records with each combination of values."""
    if not columns:
        return pl.Series("size", [], dtype=pl.UInt32)
    frame = pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])
    # Grouping 64-bit hashes takes a fraction of the memory of grouping the rows themselves.
    return frame.hash_rows().alias("row").value_counts(name="size")["size"]


def _plain(series: pl.Series) -> pl.Series:
    """Return a column with cells that can be counted. NaN becomes null; nested and binary cells become text."""
    kind = series.dtype
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        return pl.Series([None if cell is None else repr(cell) for cell in series.to_list()], dtype=pl.String)
    return series.fill_nan(None) if kind.is_float() else series
