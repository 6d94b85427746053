"""Dates, times of day and durations as numbers, counted in steps from an origin that all parts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.types import Floats, Name
from shoal.kinds.column import word_of

__all__ = ["Scale", "Span", "make_scale", "span_of"]

EXACT = 2**53  # all integers up to this one are exact as floats
STEPS = {"days": 86_400, "minutes": 60, "seconds": 1}  # in seconds
PARTS = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}  # steps per second


class Span(NamedTuple):
    """The range of times in one part of a column; `low` and `high` are None if all cells are missing."""

    dtype: Any  # the polars type
    native: Any  # the column's type in its own library
    low: int | None
    high: int | None
    step: int  # the longest step that divides all cells
    midnights: bool  # True if all cells are midnights in their time zone
    formats: frozenset[str]  # the formats of text cells


@dataclass(frozen=True)
class Scale:
    """The scale of a column, with its origin and its step in units of the column's type."""

    dtype: Any  # the polars type
    native: Any  # the column's type in its own library
    origin: int
    step: int
    local: bool = False  # True if calendar days of its time zone are counted instead of elapsed time
    exact: bool = True  # True if all cells are whole steps
    format: str | None = None  # the format of text cells

    @property
    def word(self) -> str:
        """The word for the column's content."""
        return word_of(self.dtype) or "date"

    @property
    def resolution(self) -> str:
        """The unit of a step, in words."""
        return next(name for name, step in _steps(self.dtype).items() if step == self.step)

    def numbers(self, cells: pl.Series) -> Floats:
        """Return cells as numbers, with NaN for missing cells."""
        if cells.null_count() == len(cells):
            return np.full(len(cells), np.nan)
        if word_of(cells.dtype) != self.word:
            raise InputError(
                f"Columns of {self.word}s must be compared with columns of {self.word}s, got {cells.dtype}. Convert "
                "them first."
            )
        cells = cells.cast(self.dtype)
        counts = _counts(cells.dt.replace_time_zone(None) if self.local else cells)
        # Divide before subtracting the origin, so that no difference exceeds 64 bits.
        return (counts // self.step - self.origin // self.step).cast(pl.Float64).fill_null(np.nan).to_numpy().copy()

    def cells(self, numbers: Floats) -> pl.Series:
        """Return numbers as cells: text for a text column, otherwise cells of the column's type."""
        counts = pl.Series(np.rint(numbers)).fill_nan(None).cast(pl.Int64) + self.origin // self.step
        largest = (2**63 - 1) // self.step  # a whole step may precede the earliest moment of a type
        counts = counts.clip(-largest, largest) * self.step
        if self.local:
            return _first_moments(counts.cast(pl.Datetime(self.dtype.time_unit)), self.dtype.time_zone)
        cells = counts.cast(pl.Int32 if self.dtype == pl.Date else pl.Int64).cast(self.dtype)
        return cells if self.format is None else _written(cells, self.format)


def _counts(cells: pl.Series) -> pl.Series:
    return cells.to_physical().cast(pl.Int64)


def _steps(dtype: Any) -> dict[str, int]:
    """Return the steps (days, minutes, …) in units of a type, down to the unit itself."""
    if dtype == pl.Date:
        return {"days": 1}
    second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(dtype, "time_unit", "ns")]
    steps = {name: seconds * second for name, seconds in STEPS.items()}
    return steps | {name: second // part for name, part in PARTS.items() if part <= second}


def _first_moments(days: pl.Series, zone: str) -> pl.Series:
    """Return the first moment of each day in a time zone; some days have no midnight, and some do not exist."""
    shifted = (pl.lit(days) + pl.duration(hours=hours) for hours in (0, 1, 24))
    begins = [shift.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null") for shift in shifted]
    return pl.select(pl.coalesce(begins)).to_series()


def span_of(cells: pl.Series, native: Any, formats: frozenset[str] = frozenset()) -> Span:
    """Return the span of one part of a column.

    Examples
    --------
    >>> from datetime import datetime
    >>> span = span_of(pl.Series([datetime(2024, 1, 1, 10, 30), None]), pl.Datetime("us"))
    >>> span.step, span.low == span.high
    (60000000, True)
    """
    present = cells.drop_nulls()
    if not len(present) or word_of(cells.dtype) is None:
        return Span(cells.dtype, native, None, None, 0, midnights=True, formats=formats)
    counts, steps = _counts(present), _steps(cells.dtype)
    midnights = False
    if getattr(cells.dtype, "time_zone", None) is not None:
        midnights = bool((_counts(present.dt.replace_time_zone(None)) % steps["days"] == 0).all())
    step = next(step for step in steps.values() if (counts % step == 0).all())
    return Span(cells.dtype, native, int(counts.min()), int(counts.max()), step, midnights, formats)  # type: ignore[arg-type]


def make_scale(name: Name, spans: Sequence[Span]) -> Scale:
    """Return the scale of a column from the spans of all its parts.

    The step is the longest of day, minute, … that divides all cells, so that midnights stay midnights. A longer step is
    used if the column spans more steps than a float can count.
    """
    filled = [span for span in spans if span.low is not None]
    typed = filled or spans[:1]
    if not typed:
        raise InputError(
            f"Column {name!r} must contain dates or times, but the table has no records. Leave it out, or use a table "
            "with records."
        )
    types = {str(span.dtype): span for span in typed}
    if len(types) > 1:
        raise InputError(
            f"Column {name!r} must contain cells of one type, got {' and '.join(types)}. Convert it first."
        )
    ((_, first),) = types.items()
    lows, highs = ([getattr(span, end) for span in filled] or [0] for end in ("low", "high"))
    steps = list(_steps(first.dtype).values())
    local = (
        bool(filled) and getattr(first.dtype, "time_zone", None) is not None and all(span.midnights for span in filled)
    )
    finest = steps[0] if local else min((span.step for span in filled), default=steps[0])
    step = min(
        step for step in steps if step >= finest and (step == steps[0] or (max(highs) - min(lows)) // step <= EXACT)
    )
    return Scale(
        first.dtype,
        first.native,
        min(lows) // step * step,
        step,
        local,
        step == finest,
        _format_of(name, frozenset[str]().union(*(span.formats for span in typed))),
    )


def _format_of(name: Name, formats: frozenset[str]) -> str | None:
    """Return the most precise ISO 8601 format of text cells; None for other cells."""
    if len({format_.endswith("Z") for format_ in formats if "%H" in format_}) > 1:
        raise InputError(f"Column {name!r} must end in Z in all cells with a time, or in none. Convert it first.")
    return max(formats, key=lambda format_: (len(format_.replace("%3f", "%")), format_), default=None)


def _written(cells: pl.Series, format_: str) -> pl.Series:
    """Return dates or times as text."""

    def spelled(cell: Any) -> str:
        # strftime has no directive for milliseconds.
        return str(cell.strftime(format_.replace("%3f", cell.strftime("%f")[:3]) if "%3f" in format_ else format_))

    values = cells.drop_nulls().unique()
    return cells.replace_strict(values, pl.Series([spelled(cell) for cell in values], dtype=pl.String), default=None)
