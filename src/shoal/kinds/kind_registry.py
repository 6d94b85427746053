"""Registry of kinds, which the library, the command line, the page and the docs share.

Modules are imported on first use, so listing kinds imports none of them. A new kind needs a module and an entry here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.core.errors import InputError
from shoal.core.messages import parameter

if TYPE_CHECKING:
    from shoal.core.types import Name
    from shoal.kinds.column import Cells
    from shoal.kinds.kind import Kind

__all__ = [
    "CATEGORIES",
    "KINDS",
    "NUMBERS",
    "TIMES",
    "KindEntry",
    "as_option",
    "from_options",
    "kind_of_cells",
    "read_kind",
    "read_kinds",
    "word_of_plain",
]


@dataclass(frozen=True)
class KindEntry:
    """A kind's entry in the registry."""

    place: str  # its module and class
    flag: str = ""  # its command-line option; empty for a kind without one
    metavar: str = ""
    help: str = ""
    label: str = ""  # label on the page
    suits: tuple[str, ...] = ()  # kinds of cells, as recognised by `shoal.inspect`, for which the page offers it
    dialog: str = ""  # dialog on the page: "levels", "hierarchy", "format" or "pair"; empty for none
    example: str = ""  # example in Python
    recognised: bool = True  # True if the cells of a column alone may reveal the kind

    def load(self) -> type[Kind]:
        """Return the kind's class."""
        module, _, name = self.place.partition(":")
        kind: type[Kind] = getattr(import_module(module), name)
        return kind


# The possible results of `kind_of_cells`.
CATEGORIES = ("nominal", "ordinal", "boolean")
NUMBERS = ("float", "integer")
TIMES = ("date", "time", "duration")
# Scales on which numbers are compared: `shoal.kinds.comparison_scale`.
SCALES = {"linear": "as they are", "log": "by their logarithm", "rank": "by their rank"}

# Kinds are tried from last to first on cells and plain values, because text is nominal only if it is not a date.
KINDS: dict[str, KindEntry] = {
    "number": KindEntry("shoal.kinds.number:Number", label="number", suits=NUMBERS),
    "nominal": KindEntry(
        "shoal.kinds.nominal:Nominal",
        "--nominal",
        "COLUMN",
        "Column of unordered categories or codes. Repeatable.",
        "category",
        (*NUMBERS, *CATEGORIES, *TIMES),
        example="shoal.Nominal()",
    ),
    "ordinal": KindEntry(
        "shoal.kinds.ordinal:Ordinal",
        "--ordinal",
        "COLUMN=LOW,…,HIGH",
        "Column of categories and their order. Repeatable.",
        "ordered category",
        (*NUMBERS, *CATEGORIES),
        "levels",
        "shoal.Ordinal([…])",
        recognised=False,
    ),
    "hierarchy": KindEntry(
        "shoal.kinds.hierarchy:Hierarchy",
        "--hierarchy",
        "COLUMN=FILE",
        "Column and the file of its hierarchy. The CSV file has one line per value, up to the root. For codes such as "
        "ZIP, set the prefix lengths that define wider classes instead (zip=3,1). Repeatable.",
        "hierarchy",
        (*NUMBERS, *CATEGORIES),
        "hierarchy",
        "shoal.Hierarchy(…)",
        recognised=False,
    ),
    "date": KindEntry(
        "shoal.kinds.date:Date",
        "--date",
        "COLUMN[=FORMAT]",
        "Column of dates or times written as text. The format is ISO 8601 or set, such as %d.%m.%Y. Repeatable.",
        "date or time",
        (*CATEGORIES, *TIMES),
        "format",
        "shoal.Date(…)",
    ),
    "place": KindEntry(
        "shoal.kinds.place:Place",
        "--place",
        "LAT,LON",
        "Columns of latitude and longitude. They are in degrees and compared by distance in metres. Repeatable.",
        "place",
        NUMBERS,
        "pair",
        "shoal.Place()",
        recognised=False,
    ),
}


def kind_of_cells(cells: Cells) -> str:
    """Return the kind of a column's cells: float, integer, boolean, nominal, date, time or duration.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal.kinds.column import Cells
    >>> [kind_of_cells(Cells.of(pl.Series(cells))) for cells in ([1.5, 2], [1.0, 2], ["x"], ["2024-02-29"])]
    ['float', 'integer', 'nominal', 'date']
    """
    for entry in reversed(KINDS.values()):
        if entry.recognised and (word := entry.load().recognise(cells)) is not None:
            return word
    raise AssertionError("cells of no other kind are numbers")


def read_kinds(named: Mapping[Any, Any]) -> dict[Name, Kind]:
    """Return the kind of each column, from the parameter `kinds`."""
    return {name: kind for key, plain in named.items() for name, kind in read_kind(key, plain).assigned(key).items()}


def read_kind(name: Name, plain: object) -> Kind:
    """Return a kind from an instance or from plain values, such as "nominal", "date", levels or a mapping of ways.

    Examples
    --------
    >>> read_kind("education", ["none", "primary"])
    Ordinal(levels=('none', 'primary'))
    """
    from shoal.kinds.kind import Kind

    if isinstance(plain, Kind):
        return plain
    for entry in reversed(KINDS.values()):
        kind = entry.load().from_plain(plain)
        if kind is not None:
            return kind
    *examples, last = (entry.example for entry in KINDS.values() if entry.example)
    raise InputError(
        f"{parameter('kinds')} must use {', '.join(examples)} or {last} for column {name!r}, got {plain!r}."
    )


def as_option(name: Name, plain: object, file: str | None = None) -> list[str]:
    """Return the command-line option for the kind of a column; empty if the kind does not fit into an option."""
    kind = read_kind(name, plain)
    text = kind.to_option(name, file)
    return [] if text is None else [KINDS[_word(kind)].flag, text]


def word_of_plain(plain: object) -> str:
    """Return the word for a kind that is described by plain values."""
    return _word(read_kind("", plain))


def _word(kind: Kind) -> str:
    return next(word for word, entry in KINDS.items() if entry.load() is type(kind))


def from_options(options: Mapping[str, Iterable[str] | None]) -> dict[Any, Kind] | None:
    """Return the kinds of columns from command-line options, which are keyed by kind; None without any options."""
    kinds: dict[Any, Kind] = {}
    for word, pairs in options.items():
        entry = KINDS[word]
        for pair in pairs or ():
            name, equals, text = pair.partition("=") if "=" in entry.metavar else (pair, "", "")
            key = entry.load().option_key(name)
            if key in kinds or ("=" in entry.metavar and "[" not in entry.metavar and not equals):
                raise InputError(f"{entry.flag} must read COLUMN=… and name each column once, got {pair!r}.")
            kinds[key] = entry.load().from_option(text)
    return kinds or None
