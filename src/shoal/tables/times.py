"""Dates, times of day and durations as numbers and back: counted in steps from an origin that all parts share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import setting
from shoal.core.types import Floats
from shoal.tables.columns import TIMED, Name
from shoal.tables.kinds import Date
from shoal.tables.looks import Cells, kind_of_cells

__all__ = [
    "Scale",
    "Span",
    "check_no_dates",
    "find_format",
    "fits",
    "in_order",
    "make_scale",
    "read_dates",
    "span_of",
    "word_of",
]

EXACT = 2**53  # every integer up to here is a float
STEPS = {"days": 86_400, "minutes": 60, "seconds": 1}  # in seconds
PARTS = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}  # of a second
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:([T ])\d\d:\d\d(?:(:\d\d)(\.\d{1,6})?)?(Z?))?")
ISO_DURATION = (  # an apostrophe keeps spreadsheets from running it
    r"^'?(?<sign>-?)P(?:(?<days>\d+)D)?"
    r"(?:T(?:(?<hours>\d+)H)?(?:(?<minutes>\d+)M)?(?:(?<seconds>\d+)(?:\.(?<fraction>\d{1,9}))?S)?)?$"
)
CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p")
DAYS = (
    *(day.replace("-", sign) for sign in "./-" for day in ("%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%d-%m-%y", "%m-%d-%y")),
    *(f"%d{sign}{month}{sign}{year}" for sign in " -" for month in ("%b", "%B") for year in ("%Y", "%y")),
    "%Y%m%d",
)


def word_of(kind: Any) -> str | None:
    """Return "date", "time" or "duration" for a type of polars or narwhals, None for any other.

    Examples
    --------
    >>> word_of(pl.Datetime("ms", "UTC")), word_of(pl.Time()), word_of(pl.Int64())
    ('date', 'time', None)
    """
    return TIMED.get(kind.base_type().__name__)


class Span(NamedTuple):
    """What a part says of a column; the counts are None if all its cells are missing."""

    dtype: Any  # of polars
    native: Any  # the type of the column in its own library
    low: int | None
    high: int | None
    step: int  # the longest that all cells are whole multiples of
    midnights: bool  # whether all cells are midnights of their time zone
    formats: frozenset[str]  # in which text is written


@dataclass(frozen=True)
class Scale:
    """How a column is counted: in steps from an origin, both in units of its type.

    Parameters
    ----------
    dtype
        The type of polars that its cells have.
    native
        The type of the column in its own library.
    origin, step
        Where counting begins, and what is counted.
    local
        Whether the days of the calendar of its time zone are counted, and not the time between moments.
    exact
        Whether all cells are whole steps.
    format
        How its text is written; None if it is no text.
    """

    dtype: Any
    native: Any
    origin: int
    step: int
    local: bool = False
    exact: bool = True
    format: str | None = None

    @property
    def word(self) -> str:
        """What the column holds."""
        return word_of(self.dtype) or "date"

    @property
    def resolution(self) -> str:
        """The unit that is counted, in words."""
        return next(name for name, step in _steps(self.dtype).items() if step == self.step)

    def numbers(self, cells: pl.Series) -> Floats:
        """Return cells as numbers; NaN where they are missing."""
        if cells.null_count() == len(cells):
            return np.full(len(cells), np.nan)
        if word_of(cells.dtype) != self.word:
            raise InputError(f"Columns of {self.word}s must be compared with such columns, got {cells.dtype}.")
        cells = cells.cast(self.dtype)
        counts = _counts(cells.dt.replace_time_zone(None) if self.local else cells)
        # Divided before the origin is taken away: no difference is beyond 64 bits.
        return (counts // self.step - self.origin // self.step).cast(pl.Float64).fill_null(np.nan).to_numpy().copy()

    def cells(self, numbers: Floats) -> pl.Series:
        """Return numbers as cells: text if the column is text, else of its type."""
        counts = pl.Series(np.rint(numbers)).fill_nan(None).cast(pl.Int64) + self.origin // self.step
        most = (2**63 - 1) // self.step  # a whole step may lie beyond the first moment of a type
        counts = counts.clip(-most, most) * self.step
        if self.local:
            return _first_moments(counts.cast(pl.Datetime(self.dtype.time_unit)), self.dtype.time_zone)
        cells = counts.cast(pl.Int32 if self.dtype == pl.Date else pl.Int64).cast(self.dtype)
        return cells if self.format is None else _written(cells, self.format)


def _counts(cells: pl.Series) -> pl.Series:
    return cells.to_physical().cast(pl.Int64)


def _steps(dtype: Any) -> dict[str, int]:
    """Return days, minutes, … in units of a type, down to the unit itself."""
    if dtype == pl.Date:
        return {"days": 1}
    second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(dtype, "time_unit", "ns")]
    steps = {name: seconds * second for name, seconds in STEPS.items()}
    return steps | {name: second // part for name, part in PARTS.items() if part <= second}


def _first_moments(days: pl.Series, zone: str) -> pl.Series:
    """Return when days begin in a time zone: some have no midnight, and some are left out of the calendar."""
    shifted = (pl.lit(days) + pl.duration(hours=hours) for hours in (0, 1, 24))
    begins = [shift.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null") for shift in shifted]
    return pl.select(pl.coalesce(begins)).to_series()


def span_of(cells: pl.Series, native: Any, formats: frozenset[str] = frozenset()) -> Span:
    """Say what a part of a column holds.

    Examples
    --------
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
    """Return how a column is counted, from what all its parts say.

    The step is the longest of day, minute, … that all cells are whole multiples of: midnights stay midnights. It is
    longer where the column spans more steps than a float can count.
    """
    seen = [span for span in spans if span.low is not None]
    known = seen or spans[:1]
    if not known:
        raise InputError(f"Column {name!r} must hold dates or times, but the table has no records.")
    types = {str(span.dtype): span for span in known}
    if len(types) > 1:
        raise InputError(f"Column {name!r} must hold cells of one type, got {' and '.join(types)}. Convert it first.")
    ((_, first),) = types.items()
    lows, highs = ([getattr(span, end) for span in seen] or [0] for end in ("low", "high"))
    steps = list(_steps(first.dtype).values())
    local = bool(seen) and getattr(first.dtype, "time_zone", None) is not None and all(span.midnights for span in seen)
    found = steps[0] if local else min((span.step for span in seen), default=steps[0])
    step = min(
        step for step in steps if step >= found and (step == steps[0] or (max(highs) - min(lows)) // step <= EXACT)
    )
    return Scale(
        first.dtype,
        first.native,
        min(lows) // step * step,
        step,
        local,
        step == found,
        _format_of(name, frozenset[str]().union(*(span.formats for span in known))),
    )


# Text


def read_dates(name: Name, text: pl.Series, kind: Date, first: int = 0) -> tuple[pl.Series, frozenset[str]]:
    """Return the dates or times that text says, and the formats in which it is written; refuse any other cell.

    Examples
    --------
    >>> cells, formats = read_dates("visit", pl.Series(["2024-01-31", "2024-02-01T10:00", None]), Date())
    >>> cells.dt.hour().to_list(), sorted(formats)
    ([0, 10, None], ['%Y-%m-%d', '%Y-%m-%dT%H:%M'])
    """
    text = text.str.strip_chars()
    found: dict[str, datetime] = {}
    formats: set[str] = set()
    for cell in text.drop_nulls().unique().to_list():
        moment = _read_cell(kind, cell)
        if moment is None:
            raise _misfit(name, text, kind, first)
        found[cell] = moment
        formats.add(kind.format or _iso_format(cell))
    formats = formats or {kind.format or "%Y-%m-%d"}
    cells = text.replace_strict(list(found), pl.Series(list(found.values()), dtype=pl.Datetime("us")), default=None)
    return cells.dt.time() if kind.word == "time" else cells, frozenset(formats)


def _read_cell(kind: Date, cell: str) -> datetime | None:
    """Return what a cell says, None if it is not written as the kind says."""
    try:
        if kind.format:
            return datetime.strptime(cell, kind.format)  # noqa: DTZ007  (cells say no time zone)
        return datetime.fromisoformat(cell.removesuffix("Z")) if ISO.fullmatch(cell) else None
    except ValueError:
        return None


def _iso_format(cell: str) -> str:
    """Return how a date of ISO 8601 is written."""
    sign, seconds, fraction, zone = ISO.fullmatch(cell).groups()  # type: ignore[union-attr]
    if sign is None:
        return "%Y-%m-%d"
    digits = "" if fraction is None else ".%3f" if len(fraction) <= 4 else ".%f"
    return f"%Y-%m-%d{sign}%H:%M{':%S' if seconds else ''}{digits}{zone}"


def _misfit(name: Name, text: pl.Series, kind: Date, first: int) -> InputError:
    """Say which is the first cell that is not written as the kind says, and how it can be read."""
    record = next(i for i, cell in enumerate(text) if cell is not None and _read_cell(kind, cell) is None)
    rule = f"the format {kind.format!r}" if kind.format else "ISO 8601, such as 2024-01-31 or 2024-01-31T10:00"
    other = find_format(text)
    way_out = "Correct the cell, make it missing, or set a format that fits all cells"
    if other is not None:
        way_out = f"Set their format with {date_setting(name, other)}"
    return InputError(
        f"Column {name!r} must hold dates or times in {rule}, but record {first + record + 1} holds {text[record]!r}. "
        f"{way_out}."
    )


def date_setting(name: Name, format_: str) -> str:
    """Refer, in a message, to the setting that makes a column one of dates."""
    return setting("kinds", {name: f"Date({repr(format_) if format_ else ''})"})


def find_format(text: pl.Series) -> str | None:
    """Return the format in which all cells are written, empty for ISO 8601; None if there is none.

    Where days and months cannot be told apart, the day is taken to be first.

    Examples
    --------
    >>> find_format(pl.Series(["31.01.2024", "1.2.2024"])), find_format(pl.Series(["2024-01-31"])), find_format(
    ...     pl.Series(["soon"])
    ... )
    ('%d.%m.%Y', '', None)
    """
    cells = text.drop_nulls().str.strip_chars().unique()
    clocks = [clock + zone for clock in CLOCKS for zone in ("", "Z")]
    both = [f"{day}{sign}{clock}" for day, sign, clock in product(DAYS, " T", clocks)]
    tried = (Date(), *(Date(format_) for format_ in (*DAYS, *CLOCKS, *both))) if len(cells) else ()
    return next((kind.format or "" for kind in tried if fits(kind, cells)), None)


def fits(kind: Date, text: pl.Series) -> bool:
    """Say whether all cells are written as a kind says."""
    return all(_read_cell(kind, cell) is not None for cell in text.drop_nulls().str.strip_chars().unique().to_list())


def check_no_dates(name: Name, text: pl.Series, first: int = 0) -> None:
    """Refuse text that looks like dates, times or durations and is not called so: it is no category."""
    cells = Cells.of(text)
    kind = kind_of_cells(cells)
    if kind not in TIMED.values() or not cells.present:
        return
    format_ = find_format(cells.values)
    way_out = "Turn them into numbers first"
    if kind != "duration":
        way_out = f"Set their format with {date_setting(name, format_ or '')}"
        way_out += "" if format_ is not None else ", or a format that fits all cells"
    record = int(text.is_not_null().arg_max() or 0)
    raise InputError(
        f"Column {name!r} looks like {kind}s, which are no categories: record {first + record + 1} holds "
        f"{text[record]!r}. {way_out}, or leave the column out."
    )


def _format_of(name: Name, found: frozenset[str]) -> str | None:
    """Return the format of all cells, None if they are no text: of several of ISO 8601 the most precise."""
    if len({format_.endswith("Z") for format_ in found if "%H" in format_}) > 1:
        raise InputError(f"Column {name!r} must end in Z in all cells with a time, or in none. Convert it first.")
    return max(found, key=lambda format_: (len(format_.replace("%3f", "%")), format_), default=None)


def _written(cells: pl.Series, format_: str) -> pl.Series:
    """Return dates or times as text."""

    def spelled(cell: Any) -> str:
        # Python knows no milliseconds.
        return str(cell.strftime(format_.replace("%3f", cell.strftime("%f")[:3]) if "%3f" in format_ else format_))

    values = cells.drop_nulls().unique()
    return cells.replace_strict(values, pl.Series([spelled(cell) for cell in values], dtype=pl.String), default=None)


def in_order(text: pl.Series) -> pl.Series:
    """Return durations that are written in ISO 8601 as nanoseconds; other text, of dates say, has their order already.

    Examples
    --------
    >>> in_order(pl.Series(["PT20H", "-P1DT4H0.5S", None])).to_list()
    [72000000000000, -100800500000000, None]
    >>> in_order(pl.Series(["2020-01-30", "2020-02-01"])).to_list()
    ['2020-01-30', '2020-02-01']
    """
    parts = text.str.extract_groups(ISO_DURATION).struct.unnest()
    if parts["sign"].null_count() > text.null_count() or not len(text):
        return text
    fraction = pl.col("fraction").str.pad_end(9, "0")
    units = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
    seconds = pl.sum_horizontal(pl.col(name).cast(pl.Int64).fill_null(0) * unit for name, unit in units.items())
    total = seconds * 10**9 + fraction.cast(pl.Int64).fill_null(0)
    sign = pl.when(pl.col("sign") == "-").then(-1).when(pl.col("sign").is_not_null()).then(1)
    return parts.select(sign * total).to_series()
