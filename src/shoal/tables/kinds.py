"""Kinds of columns that hold no numbers: nominal, ordinal and hierarchical values, and dates written as text."""

from __future__ import annotations

import csv
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from shoal.core.errors import FileError, InputError
from shoal.core.messages import parameter
from shoal.tables.unicode_forms import composed

__all__ = ["Category", "Date", "Hierarchy", "Nominal", "Ordinal", "as_plain", "read_kind"]


@dataclass(frozen=True)
class Nominal:
    """Values without an order, such as an occupation, or numbers that are codes. The mode of a group is released.

    Examples
    --------
    >>> import polars as pl
    >>> import shoal
    >>> table = pl.DataFrame({"sex": ["f", "f", "m", "m", "m", "f"]})
    >>> shoal.mask(table, 3, columns=["sex"], kinds={"sex": Nominal()}).data["sex"].to_list()
    ['f', 'f', 'm', 'm', 'm', 'f']
    """

    word = "nominal"


@dataclass(frozen=True)
class Ordinal:
    """Values in an order, from the lowest to the highest. The median of a group is released.

    Examples
    --------
    >>> Ordinal(["none", "primary", "secondary"]).levels
    ('none', 'primary', 'secondary')
    """

    levels: Sequence[Any]
    word = "ordinal"

    def __post_init__(self) -> None:
        levels = _values("Ordinal", self.levels)
        twice = [level for level in levels if levels.count(level) > 1]
        if len(levels) < 2 or twice:
            got = f"{twice[0]!r} twice" if twice else f"{len(levels)}"
            raise InputError(f"Kind Ordinal must have at least 2 different levels, from low to high; got {got}.")
        object.__setattr__(self, "levels", levels)


@dataclass(frozen=True)
class Hierarchy:
    """Values in a tree, such as postal codes in regions.

    Parameters
    ----------
    ways
        Of each value, its ancestors from the nearest to the root; or the path of a CSV file without a header that has
        a line a value, from the value to the root.
    release
        ``"ancestor"`` releases the nearest common ancestor of a group, ``"mode"`` its most frequent value.

    Examples
    --------
    >>> towns = Hierarchy({"Bath": ["South", "England"], "Bristol": ["South", "England"], "York": ["North", "England"]})
    >>> towns.depth
    3
    """

    ways: Mapping[Any, Sequence[Any]] | str | os.PathLike[str]
    release: str = "ancestor"
    word = "hierarchy"
    depth: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.release not in ("ancestor", "mode"):
            raise InputError(f"Kind Hierarchy must release 'ancestor' or 'mode', got {self.release!r}.")
        ways = self.ways if isinstance(self.ways, Mapping) else _read_ways(Path(self.ways))
        paths = [(composed(v), tuple(map(composed, _values("Hierarchy", above)))) for v, above in ways.items()]
        ways = dict(paths)
        depths = {len(above) for above in ways.values()}
        if len(depths) != 1 or depths == {0}:
            raise InputError(
                "Kind Hierarchy must give every value the same number of ancestors, at least one; got "
                f"{', '.join(map(str, sorted(depths))) or 'none'}. Repeat a value on the way up where a level has none."
            )
        if len({above[-1] for above in ways.values()}) != 1:
            raise InputError("Kind Hierarchy must end in one root for all values. Add a last level such as 'all'.")
        parents: dict[tuple[int, Any], Any] = {}
        for value, above in paths:
            for level, (low, high) in enumerate(zip((value, *above), above, strict=False)):
                if parents.setdefault((level, low), high) != high:
                    raise InputError(f"Kind Hierarchy has {low!r} below {parents[level, low]!r} and below {high!r}.")
        object.__setattr__(self, "ways", ways)
        object.__setattr__(self, "depth", depths.pop() + 1)


@dataclass(frozen=True)
class Date:
    """Dates, times of day or both that are written as text, as in CSV files. The mean of a group is released.

    Columns whose type is a date, a time or a duration need no kind.

    Parameters
    ----------
    format
        How cells are written, as ``datetime.strptime`` reads it; ISO 8601 if not given: ``2024-01-31``, with a time
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

    def __post_init__(self) -> None:
        if self.format is None:
            return
        probe = datetime(2003, 11, 22, 15, 44, 55, 666_666)  # noqa: DTZ001  (cells say no time zone)
        try:
            back = datetime.strptime(probe.strftime(self.format), self.format)  # noqa: DTZ007
        except (TypeError, ValueError):
            back = datetime(1, 1, 1)  # noqa: DTZ001
        parts = [probe.hour, probe.minute, probe.second, probe.microsecond]
        clocks = [[*parts[:known], *[0] * (4 - known)] for known in range(5)]
        days = (probe.date(), datetime(1900, 1, 1).date())  # noqa: DTZ001  (what strptime takes for no day)
        clock = [back.hour, back.minute, back.second, back.microsecond]
        if back.date() not in days or clock not in clocks or (back.date() == days[1] and clock == clocks[0]):
            raise InputError(
                "Kind Date must have a format of whole dates, times of day or both, without a time zone, such as "
                f"'%d.%m.%Y' or '%Y-%m-%d %H:%M', got {self.format!r}."
            )
        object.__setattr__(self, "word", "date" if back.date() == days[0] else "time")


Category = Nominal | Ordinal | Hierarchy


def _values(kind: str, values: object) -> tuple[Any, ...]:
    """Return a list of values, or refuse what is none: text would be split into letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"Kind {kind} must have lists of values, got {values!r}.")
    listed = tuple(values)
    for value in listed:
        if not isinstance(value, Hashable):
            raise InputError(f"Kind {kind} must have lists of single values, but one holds {value!r}.")
    return listed


def _read_ways(path: Path) -> dict[str, list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"Hierarchy {path} cannot be read: {error.strerror}.") from None
    delimiter = ";" if text.split("\n", 1)[0].count(";") else ","
    return {row[0]: row[1:] for row in csv.reader(text.splitlines(), delimiter=delimiter) if row}


def read_kind(name: object, given: object) -> Category | Date:
    """Return a kind that was given as one, or as plain values: "nominal", "date", levels, a mapping of ways.

    Examples
    --------
    >>> read_kind("education", ["none", "primary"])
    Ordinal(levels=('none', 'primary'))
    """
    if isinstance(given, (Nominal, Ordinal, Hierarchy, Date)):
        return given
    if given is Date or (isinstance(given, str) and given.partition(" ")[0] == "date"):
        return Date(None if given is Date else str(given).partition(" ")[2] or None)
    if given in ("nominal", Nominal):
        return Nominal()
    if isinstance(given, Mapping):
        return Hierarchy(given["ways"], given["release"]) if set(given) == {"ways", "release"} else Hierarchy(given)
    if isinstance(given, (list, tuple)):
        return Ordinal(given)
    raise InputError(
        f"{parameter('kinds')} must use shoal.Nominal(), shoal.Ordinal([…]), shoal.Hierarchy(…) or shoal.Date(…) for "
        f"column {name!r}, got {given!r}."
    )


def as_plain(kind: Category | Date) -> Any:
    """Return a kind as plain values, as `read_kind` takes it."""
    if isinstance(kind, Date):
        return f"date {kind.format}" if kind.format else "date"
    if isinstance(kind, Ordinal):
        return list(kind.levels)
    if isinstance(kind, Hierarchy):
        ways: Any = kind.ways
        return {"ways": {value: list(above) for value, above in ways.items()}, "release": kind.release}
    return "nominal"
