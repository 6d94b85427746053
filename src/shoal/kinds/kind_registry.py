"""The registry of kinds: the one list that the library, the command line, the page and the docs read.

Modules are imported on first use, so that looking at the list costs nothing. A new kind is a file and an entry here.
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
    """A kind as a list shows it."""

    place: str  # its module and class
    flag: str = ""  # its option on the command line; none for a kind that is not named
    metavar: str = ""
    help: str = ""
    label: str = ""  # on the page
    suits: tuple[str, ...] = ()  # the kinds of cells, as `shoal.inspect` recognises them, for which the page offers it
    dialog: str = ""  # of the page: "levels", "hierarchy", "format" or "pair"; empty for none
    example: str = ""  # in Python
    recognised: bool = True  # whether the cells of a column alone may show that it is of this kind

    def load(self) -> type[Kind]:
        """Return the class."""
        module, _, name = self.place.partition(":")
        kind: type[Kind] = getattr(import_module(module), name)
        return kind


# What `kind_of_cells` returns.
CATEGORIES = ("nominal", "ordinal", "boolean")
NUMBERS = ("float", "integer")
TIMES = ("date", "time", "duration")
# Scales on which numbers are compared: `shoal.kinds.comparison_scale`.
SCALES = {"linear": "as they are", "log": "by their logarithm", "rank": "by their rank"}

# Cells and plain values are tried from the last to the first: text is nominal only if it is no date.
KINDS: dict[str, KindEntry] = {
    "number": KindEntry("shoal.kinds.number:Number", label="number", suits=NUMBERS),
    "nominal": KindEntry(
        "shoal.kinds.nominal:Nominal",
        "--nominal",
        "COLUMN",
        "Column of categories without an order, or of codes; repeat.",
        "category",
        (*NUMBERS, *CATEGORIES, *TIMES),
        example="shoal.Nominal()",
    ),
    "ordinal": KindEntry(
        "shoal.kinds.ordinal:Ordinal",
        "--ordinal",
        "COLUMN=LOW,…,HIGH",
        "Column of categories and their order; repeat.",
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
        "Column and the CSV file with one line per value, to the root; or, of codes such as ZIP, the numbers of first "
        "signs that name wider classes (zip=3,1); repeat.",
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
        "Column of dates or times written as text, in ISO 8601 or in a format such as %d.%m.%Y; repeat.",
        "date or time",
        (*CATEGORIES, *TIMES),
        "format",
        "shoal.Date(…)",
    ),
    "place": KindEntry(
        "shoal.kinds.place:Place",
        "--place",
        "LAT,LON",
        "Columns of latitudes and longitudes in degrees that are places: distances are metres; repeat.",
        "place",
        NUMBERS,
        "pair",
        "shoal.Place()",
        recognised=False,
    ),
}


def kind_of_cells(cells: Cells) -> str:
    """Return what a column holds: float, integer, boolean, nominal, date, time or duration.

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
    raise AssertionError("every cell that is nothing else is a number")


def read_kinds(named: Mapping[Any, Any]) -> dict[Name, Kind]:
    """Return the kind of each column, from the parameter `kinds`."""
    return {name: kind for key, plain in named.items() for name, kind in read_kind(key, plain).assigned(key).items()}


def read_kind(name: Name, plain: object) -> Kind:
    """Return a kind that was given as one, or as plain values: "nominal", "date", levels, a mapping of ways.

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
    """Return the option of the command line that names the kind of a column; none if no command can hold it."""
    kind = read_kind(name, plain)
    text = kind.to_option(name, file)
    return [] if text is None else [KINDS[_word(kind)].flag, text]


def word_of_plain(plain: object) -> str:
    """Return the word of a kind that is given as plain values."""
    return _word(read_kind("", plain))


def _word(kind: Kind) -> str:
    return next(word for word, entry in KINDS.items() if entry.load() is type(kind))


def from_options(options: Mapping[str, Iterable[str] | None]) -> dict[Any, Kind] | None:
    """Return the kinds of columns that options of the command line name, by kind; None if they name none."""
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
