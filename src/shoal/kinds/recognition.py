"""The cells of a column as kinds recognise them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import ceil

import numpy as np
import polars as pl

from shoal.core.types import Floats
from shoal.kinds.storage import Column, is_whole

__all__ = ["MOST", "Cells"]

SAMPLE = 2000  # cells whose spelling is looked at
MOST = 0.9  # the share of cells that must look alike


@dataclass(frozen=True)
class Cells:
    """The cells of a column, those that are missing or blank left out.

    Parameters
    ----------
    values
        Numbers, text, truth values, dates, times or durations.
    records
        The number of records, with those that miss a cell.
    """

    values: pl.Series
    records: int

    @staticmethod
    def of(column: pl.Series | Column) -> Cells:
        """Take the cells of a column."""
        series = pl.Series(column.values) if isinstance(column, Column) else column
        values, kind = series.drop_nulls(), series.dtype
        if kind.is_float():
            values = values.drop_nans()
        elif kind.is_decimal():
            values = values.cast(pl.Float64)
        elif kind in (pl.Categorical, pl.Enum, pl.String):
            values = values.cast(pl.String).str.strip_chars()
            values = values.filter(values != "")
        elif not (kind.is_integer() or kind.is_temporal() or kind == pl.Boolean):
            values = pl.Series([repr(value) for value in values.to_list()], dtype=pl.String)
        return Cells(values, len(series))

    @property
    def present(self) -> int:
        """The number of cells that are there."""
        return len(self.values)

    @property
    def text(self) -> bool:
        """Whether they are text."""
        return self.values.dtype == pl.String

    @cached_property
    def distinct(self) -> int:
        """The number of different values."""
        return self.values.n_unique()

    @cached_property
    def whole(self) -> bool:
        """Whether they are whole numbers."""
        kind = self.values.dtype
        return kind.is_integer() or (kind.is_float() and is_whole(self.values.to_numpy()))

    @cached_property
    def numbers(self) -> Floats:
        """The numbers, none if they are none."""
        numeric = self.values.dtype.is_numeric()
        return self.values.cast(pl.Float64).to_numpy() if numeric else np.empty(0)

    @cached_property
    def spelled(self) -> list[str]:
        """Some of the cells, from all over the column, as text; none if they are neither text nor whole numbers."""
        if not (self.text or self.whole):
            return []
        some = self.values.gather_every(max(1, self.present // SAMPLE))
        if self.text:
            return some.str.slice(0, 200).to_list()
        return [str(int(number)) for number in some.to_list() if np.isfinite(number)]

    def look_like(self, pattern: re.Pattern[str]) -> bool:
        """Say whether most of the cells are spelled like that."""
        unlike = (cell for cell in self.spelled if pattern.fullmatch(cell) is None)
        allowed = len(self.spelled) - ceil(MOST * len(self.spelled))
        return bool(self.spelled) and next(islice(unlike, allowed, None), None) is None
