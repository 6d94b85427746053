"""Dates, times of day and durations, typed or written as text; the mean of a group is released."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any, ClassVar

import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import setting
from shoal.core.types import Floats, Name
from shoal.kinds.column import Cells, Column, word_of
from shoal.kinds.kind import Coding, Kind
from shoal.kinds.time_scale import Scale, Span, make_scale

__all__ = ["PATTERNS", "Date", "check_no_dates", "date_setting", "find_format", "fits", "in_order", "read_dates"]

GLANCE = 50  # cells in a sample that rules out most formats
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:([T ])\d\d:\d\d(?:(:\d\d)(\.\d{1,6})?)?(Z?))?")
ISO_DURATION = (  # the apostrophe keeps spreadsheets from evaluating it
    r"^'?(?<sign>-?)P(?:(?<days>\d+)D)?"
    r"(?:T(?:(?<hours>\d+)H)?(?:(?<minutes>\d+)M)?(?:(?<seconds>\d+)(?:\.(?<fraction>\d{1,9}))?S)?)?$"
)
CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p")
DAYS = (
    *(day.replace("-", sign) for sign in "./-" for day in ("%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%d-%m-%y", "%m-%d-%y")),
    *(f"%d{sign}{month}{sign}{year}" for sign in " -" for month in ("%b", "%B") for year in ("%Y", "%y")),
    "%Y%m%d",
)

_DAY, _MONTH, _YEAR = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])", r"(1[89]|20)\d\d"
_CLOCK = r"([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d([.,]\d+)?)?( ?[AaPp][Mm])?"
_LETTERS = r"[ -][A-Za-z]{3,9}\.?,?[ -]"
_DATE = rf"({_YEAR}[-/.]{_MONTH}[-/.]{_DAY}|({_DAY}[-/.]{_MONTH}|{_MONTH}[-/.]{_DAY})[-/.]({_YEAR}|\d\d)"
_DATE += rf"|{_DAY}{_LETTERS}({_YEAR}|\d\d)|{_YEAR}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))"
PATTERNS = {
    "date": re.compile(rf"{_DATE}([T ]{_CLOCK} ?(Z|UTC|[+-]\d\d:?\d\d)?)?"),
    "time": re.compile(_CLOCK),
    "duration": re.compile(r"P(?=\d|T\d)(\d+(\.\d+)?[YMWD])*(T(\d+(\.\d+)?[HMS])+)?|\d+ days?(,? \d+:\d\d(:\d\d)?)?"),
}


@dataclass(frozen=True)
class Date(Kind):
    """Dates, times of day or both, written as text, as in CSV files. The mean of a group is released.

    Columns with a date, time or duration type need no kind.

    Parameters
    ----------
    format
        The format of cells, in the notation of ``datetime.strptime``; by default ISO 8601: ``2024-01-31``, with a time
        ``2024-01-31T10:00``. Cells are released in the same format.

    Examples
    --------
    >>> import polars as pl
    >>> import shoal
    >>> table = pl.DataFrame({"visit": ["30.01.2024", "31.01.2024", "1.3.2024", "3.3.2024"]})
    >>> shoal.mask(table, 2, columns=["visit"], kinds={"visit": Date("%d.%m.%Y")}).data["visit"].to_list()
    ['30.01.2024', '30.01.2024', '02.03.2024', '02.03.2024']
    """

    format: str | None = None
    word: str = field(init=False, default="date", repr=False)
    holds: ClassVar[str] = "dates or times"
    numeric: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.format is None:
            return
        probe = datetime(2003, 11, 22, 15, 44, 55, 666_666)  # noqa: DTZ001  (cells have no time zone)
        try:
            back = datetime.strptime(probe.strftime(self.format), self.format)  # noqa: DTZ007
        except (TypeError, ValueError):
            back = datetime(1, 1, 1)  # noqa: DTZ001
        parts = [probe.hour, probe.minute, probe.second, probe.microsecond]
        clocks = [[*parts[:length], *[0] * (4 - length)] for length in range(5)]
        days = (probe.date(), datetime(1900, 1, 1).date())  # noqa: DTZ001  (strptime's date for a time without a day)
        clock = [back.hour, back.minute, back.second, back.microsecond]
        if back.date() not in days or clock not in clocks or (back.date() == days[1] and clock == clocks[0]):
            raise InputError(
                "Kind Date must have a format of whole dates, times of day or both, without a time zone, such as "
                f"'%d.%m.%Y' or '%Y-%m-%d %H:%M', got {self.format!r}."
            )
        object.__setattr__(self, "word", "date" if back.date() == days[0] else "time")

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return "date", "time" or "duration", from the type or the spelling of the cells."""
        return word_of(cells.values.dtype) or cells.first_like(PATTERNS)

    @classmethod
    def from_plain(cls, plain: Any) -> Date | None:
        """Return the kind from "date", "date FORMAT" or the class itself."""
        if isinstance(plain, type):
            return cls() if issubclass(plain, cls) else None
        word, _, format_ = str(plain).partition(" ")
        return cls(format_ or None) if isinstance(plain, str) and word == "date" else None

    def plain(self) -> str:
        """Return "date", followed by the format if it is set."""
        return f"date {self.format}" if self.format else "date"

    @classmethod
    def from_option(cls, text: str) -> Date:
        """Return the kind for a format; empty text means ISO 8601."""
        return cls(text or None)

    def to_option(self, name: Name, file: str | None = None) -> str:
        """Return COLUMN or COLUMN=FORMAT."""
        return f"{name}={self.format}" if self.format else str(name)

    def scale(self, name: Name, spans: Sequence[Span]) -> Scale:
        """Return the scale for the dates or times of all parts."""
        return make_scale(name, spans)

    def read(self, name: Name, cells: Mapping[Name, Any], first: int, scale: Scale | None) -> tuple[Column, list[Any]]:
        """Return the dates or times of a part as numbers, on the common scale of all parts or the part's own scale."""
        moments, span = cells[name]
        scale = scale or self.scale(name, [span])
        return Column(name, scale.numbers(moments), scale.word), []

    def read_released(self, name: Name, cells: Mapping[Name, Any], coding: Coding, scale: Scale | None) -> Floats:
        """Return released dates or times as numbers on the scale."""
        return self.read(name, cells, 0, scale)[0].values


def read_dates(name: Name, text: pl.Series, kind: Date, first: int = 0) -> tuple[pl.Series, frozenset[str]]:
    """Return the dates or times in text, and their formats; refuse any other cell.

    Examples
    --------
    >>> cells, formats = read_dates("visit", pl.Series(["2024-01-31", "2024-02-01T10:00", None]), Date())
    >>> cells.dt.hour().to_list(), sorted(formats)
    ([0, 10, None], ['%Y-%m-%d', '%Y-%m-%dT%H:%M'])
    """
    text = text.str.strip_chars()
    moments: dict[str, datetime] = {}
    formats: set[str] = set()
    for cell in text.drop_nulls().unique().to_list():
        moment = _read_cell(kind, cell)
        if moment is None:
            raise _misfit(name, text, kind, first)
        moments[cell] = moment
        formats.add(kind.format or _iso_format(cell))
    formats = formats or {kind.format or "%Y-%m-%d"}
    cells = text.replace_strict(list(moments), pl.Series(list(moments.values()), dtype=pl.Datetime("us")), default=None)
    return cells.dt.time() if kind.word == "time" else cells, frozenset(formats)


def _read_cell(kind: Date, cell: str) -> datetime | None:
    """Return the date or time of a cell; None if it does not match the kind's format."""
    try:
        if kind.format:
            return datetime.strptime(cell, kind.format)  # noqa: DTZ007  (cells have no time zone)
        return datetime.fromisoformat(cell.removesuffix("Z")) if ISO.fullmatch(cell) else None
    except ValueError:
        return None


def _iso_format(cell: str) -> str:
    """Return the format of an ISO 8601 date."""
    sign, seconds, fraction, zone = ISO.fullmatch(cell).groups()  # type: ignore[union-attr]
    if sign is None:
        return "%Y-%m-%d"
    digits = "" if fraction is None else ".%3f" if len(fraction) <= 4 else ".%f"
    return f"%Y-%m-%d{sign}%H:%M{':%S' if seconds else ''}{digits}{zone}"


def _misfit(name: Name, text: pl.Series, kind: Date, first: int) -> InputError:
    """Return the error for the first cell that does not match the kind's format, with a remedy."""
    record = next(i for i, cell in enumerate(text) if cell is not None and _read_cell(kind, cell) is None)
    rule = f"the format {kind.format!r}" if kind.format else "ISO 8601, such as 2024-01-31 or 2024-01-31T10:00"
    fitting_format = find_format(text)
    way_out = "Correct the cell, make it missing, or set a format that fits all cells"
    if fitting_format is not None:
        way_out = f"Set their format with {date_setting(name, fitting_format)}"
    return InputError(
        f"Column {name!r} must contain dates or times in {rule}, but record {first + record + 1} holds "
        f"{text[record]!r}. {way_out}."
    )


def date_setting(name: Name, format_: str) -> str:
    """Return the setting that gives a column the kind Date, as text for a message."""
    return setting("kinds", {name: f"Date({repr(format_) if format_ else ''})"})


def find_format(text: pl.Series) -> str | None:
    """Return the format of all cells, empty for ISO 8601; None if no format fits.

    If days and months cannot be distinguished, the day is assumed to come first.

    Examples
    --------
    >>> find_format(pl.Series(["31.01.2024", "1.2.2024"])), find_format(pl.Series(["2024-01-31"])), find_format(
    ...     pl.Series(["soon"])
    ... )
    ('%d.%m.%Y', '', None)
    """
    cells = text.drop_nulls().str.strip_chars().unique()
    clocks = [clock + zone for clock in CLOCKS for zone in ("", "Z")]
    date_times = [f"{day}{sign}{clock}" for day, sign, clock in product(DAYS, " T", clocks)]
    tried = (Date(format_) for format_ in (None, *DAYS, *CLOCKS, *date_times)) if len(cells) else ()
    glance = cells.head(GLANCE)
    return next((kind.format or "" for kind in tried if fits(kind, glance) and fits(kind, cells)), None)


def fits(kind: Date, text: pl.Series) -> bool:
    """Return True if all cells match a kind's format."""
    return all(_read_cell(kind, cell) is not None for cell in text.drop_nulls().str.strip_chars().unique().to_list())


def check_no_dates(name: Name, text: pl.Series, first: int = 0) -> None:
    """Refuse text without a declared kind that looks like dates, times or durations, as these are not categories."""
    cells = Cells.of(text)
    kind = Date.recognise(cells)
    if kind is None or not cells.present:
        return
    format_ = find_format(cells.values)
    way_out = "Convert them to numbers first"
    if kind != "duration":
        way_out = f"Set their format with {date_setting(name, format_ or '')}"
        way_out += "" if format_ is not None else ", or a format that fits all cells"
    record = int(text.is_not_null().arg_max() or 0)
    raise InputError(
        f"Column {name!r} looks like {kind}s, which are not categories: record {first + record + 1} holds "
        f"{text[record]!r}. {way_out}, or leave the column out."
    )


def in_order(text: pl.Series) -> pl.Series:
    """Return ISO 8601 durations as nanoseconds; return other text unchanged, because dates and times sort correctly.

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
