"""Hierarchies, whose values form a tree; a group's nearest common ancestor or most frequent value is released."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from shoal.core.errors import FileError, InputError
from shoal.core.types import Floats, Ints, Name
from shoal.kinds.category import (
    Category,
    CategoryCoding,
    as_labels,
    check_number_of_values,
    group_modes,
    indicator_coordinates,
    is_flat_list,
    listed_values,
    order_by,
    sorted_codes,
)
from shoal.kinds.column import composed

__all__ = ["Hierarchy", "HierarchyCoding"]

ROOT = "*"  # the root above all classes of codes
LENGTHS = re.compile(r"\d+(,\d+)*")


@dataclass(frozen=True)
class HierarchyCoding(CategoryCoding):
    """The coding of a hierarchy: its values, followed by its inner nodes if ancestors are released."""

    ancestors: Ints  # (values, depth): the code of each value's ancestor on each level, starting with the value itself
    by_mode: bool = False  # True if the most frequent value is released
    word: ClassVar[str] = "hierarchy"
    ordered: ClassVar[bool] = False

    @property
    def release(self) -> str:
        """The representative of a group: "mode" (the most frequent value) or "ancestor"."""
        return "mode" if self.by_mode else "ancestor"

    @property
    def labels(self) -> tuple[Any, ...]:
        """The released labels by code; all are text if any is text."""
        return as_labels(self.names[: len(self.ancestors)] if self.by_mode else self.names)

    @property
    def lineage(self) -> Ints:
        """The codes of each value and of its ancestors, from the parent to the root."""
        return self.ancestors

    def represent(self, X: Floats, j: int, labels: Ints, means: Floats, weights: Floats | None) -> Floats:
        """Return the code of each group's nearest common ancestor, or each group's most frequent code."""
        return group_modes(X[:, j], labels) if self.by_mode else common_ancestors(X[:, j], labels, self.ancestors)


@dataclass(frozen=True)
class Hierarchy(Category):
    """Values in a tree, such as postal codes in regions.

    Parameters
    ----------
    ways
        The ancestors of each value, from the nearest to the root; or the path of a CSV file without a header that has
        one line per value, from the value to the root. For codes such as ZIP, ICD or NACE, the lengths of the prefixes
        that define wider classes, from the longest to the shortest.
    release
        ``"ancestor"`` releases the nearest common ancestor of a group, ``"mode"`` its most frequent value.

    Examples
    --------
    >>> towns = Hierarchy({"Bath": ["South", "England"], "Bristol": ["South", "England"], "York": ["North", "England"]})
    >>> towns.depth
    3

    The first three characters of a diagnosis identify a disease, the first character a chapter; the root of all
    chapters is ``*``.

    >>> Hierarchy([3, 1]).joined_name("icd", ["I10", "I10.9"]), Hierarchy([3, 1]).joined_name("icd", ["I10", "J45"])
    ('I10', '*')
    """

    ways: Mapping[Any, Sequence[Any]] | Sequence[int] | str | os.PathLike[str]
    release: str = "ancestor"
    word = "hierarchy"
    represented_by = "the common ancestor"
    joins = True
    ordered = False
    depth: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.release not in ("ancestor", "mode"):
            raise InputError(f"Kind Hierarchy must release 'ancestor' or 'mode', got {self.release!r}.")
        if not isinstance(self.ways, (Mapping, str, os.PathLike)):
            lengths = _read_lengths(self.ways)
            object.__setattr__(self, "ways", lengths)
            object.__setattr__(self, "depth", len(lengths) + 2)
            return
        ways = self.ways if isinstance(self.ways, Mapping) else _read_ways(Path(self.ways))
        paths = [(composed(v), tuple(map(composed, listed_values("Hierarchy", above)))) for v, above in ways.items()]
        ways = dict(paths)
        depths = {len(above) for above in ways.values()}
        if len(depths) != 1 or depths == {0}:
            raise InputError(
                "Kind Hierarchy must have the same number of ancestors for every value, at least one; got "
                f"{', '.join(map(str, sorted(depths))) or 'none'}. Repeat a value to fill a missing level."
            )
        if len({above[-1] for above in ways.values()}) != 1:
            raise InputError("Kind Hierarchy must have one root above all values. Add a last level such as 'all'.")
        parents: dict[tuple[int, Any], Any] = {}
        for value, above in paths:
            for level, (low, high) in enumerate(zip((value, *above), above, strict=False)):
                if parents.setdefault((level, low), high) != high:
                    raise InputError(
                        f"Kind Hierarchy has {low!r} below both {parents[level, low]!r} and {high!r}. Use one parent "
                        "per value."
                    )
        object.__setattr__(self, "ways", ways)
        object.__setattr__(self, "depth", depths.pop() + 1)

    @classmethod
    def from_plain(cls, plain: Any) -> Hierarchy | None:
        """Return the kind from a mapping of ways, alone or with `release`."""
        if not isinstance(plain, Mapping):
            return None
        return cls(plain["ways"], plain["release"]) if set(plain) == {"ways", "release"} else cls(plain)

    @classmethod
    def is_plain(cls, plain: Any) -> bool:
        """Return True for a dictionary of ways and `release`."""
        if type(plain) is not dict or set(plain) != {"ways", "release"} or type(plain["release"]) is not str:
            return False
        ways = plain["ways"]
        if type(ways) is list:
            return bool(ways) and all(type(length) is int for length in ways)
        return type(ways) is dict and bool(ways) and all(map(is_flat_list, ways.values()))

    def plain(self) -> dict[str, Any]:
        """Return the ways and `release`."""
        ways: Any = self.ways
        ways = {value: list(above) for value, above in ways.items()} if isinstance(ways, Mapping) else list(ways)
        return {"ways": ways, "release": self.release}

    @classmethod
    def from_option(cls, text: str) -> Hierarchy:
        """Return the kind from the path of a file, or from prefix lengths."""
        return cls([int(length) for length in text.split(",")] if LENGTHS.fullmatch(text) else text)

    def to_option(self, name: Name, file: str | None = None) -> str | None:
        """Return COLUMN=LENGTHS for prefix lengths, or COLUMN=FILE for a tree; None for a tree without a file."""
        ways: Any = self.ways
        if not isinstance(ways, Mapping):
            return f"{name}={','.join(map(str, ways))}"
        return None if file is None else f"{name}={file}"

    def _ways_of(self, values: Sequence[Any]) -> Mapping[str, tuple[Any, ...]]:
        """Return the ancestors of each value, keyed by the value's text."""
        ways: Any = self.ways  # a path only until the kind is constructed
        if isinstance(ways, Mapping):
            return {str(value): above for value, above in ways.items()}
        return _ways_of_prefixes([composed(value) for value in values], ways)

    def in_order(self, name: Name, values: Sequence[Any]) -> list[Any]:
        """Return values in the order of the tree; refuse a value that is not in the tree."""
        ways: Any = self.ways
        return order_by(name, self.word, ways, values) if isinstance(ways, Mapping) else sorted(values, key=str)

    def coding(self, name: Name, values: Sequence[Any], counts: Ints) -> CategoryCoding:
        """Return the coding of the values that occur, with the coordinates of one nominal column per level."""
        check_number_of_values(name, values)
        if not values:
            return HierarchyCoding((), np.empty((0, 1)), np.empty((0, self.depth), dtype=np.int64), by_mode=True)
        ancestors, names = self._nodes(values)
        names = names[: len(values)] if self.release == "mode" else names
        shares, parts = counts / max(1, counts.sum()), []
        for level in range(self.depth):
            belongs = _belonging(ancestors, level, len(names))
            parts.append(indicator_coordinates(belongs, shares @ belongs[: len(values)]))
        return HierarchyCoding(
            tuple(names), np.ascontiguousarray(np.hstack(parts)), ancestors, by_mode=self.release == "mode"
        )

    def _nodes(self, values: Sequence[Any]) -> tuple[Ints, list[Any]]:
        """Return the codes of each value and its ancestors by level, and the names of values and inner nodes."""
        ways = self._ways_of(values)
        spelled = {composed(value): value for value in values}  # an ancestor may have the same name as a value
        levels = [
            [spelled.get(node, node) for node in nodes]
            for nodes in zip(*((composed(value), *ways[composed(str(value))]) for value in values), strict=True)
        ]
        nodes = {(0, value): code for code, value in enumerate(values)}
        for level in range(1, self.depth):
            for node in levels[level]:
                nodes.setdefault((level, node), len(nodes))
        codes = [[nodes[level, node] for level, node in enumerate(path)] for path in zip(*levels, strict=True)]
        return np.array(codes), [node for _, node in nodes]

    def joined_name(self, name: Name, values: Sequence[object]) -> object:
        """Return the nearest common ancestor of joined stratum values."""
        if None in values:
            return super().joined_name(name, values)
        self.in_order(name, values)  # refuses unknown values
        ways = self._ways_of(values)
        levels = zip(*((composed(value), *ways[composed(str(value))]) for value in values), strict=True)
        return next(nodes[0] for nodes in levels if len(set(nodes)) == 1)

    def is_joined_name(self, joined: str, values: Sequence[str]) -> bool:
        """Return True if a name denotes a common ancestor of the values."""
        above = {value: {value, *map(str, path)} for value, path in self._ways_of(values).items()}
        return all(joined in above.get(value, {value}) for value in values)


def _read_lengths(lengths: object) -> tuple[int, ...]:
    """Return the prefix lengths that define classes; refuse anything but a list of decreasing lengths."""
    prefix_lengths = listed_values("Hierarchy", lengths)
    falling = all(type(length) is int and length > 0 for length in prefix_lengths) and list(prefix_lengths) == sorted(
        set(prefix_lengths), reverse=True
    )
    if not prefix_lengths or not falling:
        raise InputError(
            "Kind Hierarchy must list prefix lengths from the longest to the shortest, such as [3, 1]; got "
            f"{list(prefix_lengths)!r}."
        )
    return prefix_lengths


def _ways_of_prefixes(values: Sequence[Any], lengths: Sequence[int]) -> dict[str, tuple[str, ...]]:
    """Return the prefix classes of each code, and the root; a code shorter than a prefix is its own class.

    Numbers with fewer digits are padded, because they have lost leading zeros.

    Examples
    --------
    >>> _ways_of_prefixes([2139, 10115], [3, 1])
    {'2139': ('021', '0', '*'), '10115': ('101', '1', '*')}
    """
    width = max((len(str(value)) for value in values if isinstance(value, int)), default=0)
    texts = {str(value): f"{value:0{width}}" if isinstance(value, int) else str(value) for value in values}
    return {
        value: (*(text[:length].rstrip(".-/ ") or text for length in lengths), ROOT) for value, text in texts.items()
    }


def _read_ways(path: Path) -> dict[str, list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"Hierarchy {path} cannot be read: {error.strerror}.") from None
    delimiter = ";" if text.split("\n", 1)[0].count(";") else ","
    return {row[0]: row[1:] for row in csv.reader(text.splitlines(), delimiter=delimiter) if row}


def common_ancestors(codes: Floats, labels: Ints, ancestors: Ints) -> Floats:
    """Return the nearest common ancestor of the values in each group; NaN if all cells are missing."""
    ordered, starts = sorted_codes(codes, labels)
    missing = np.isnan(ordered[starts[:-1]])
    codes = np.where(np.isnan(ordered), 0, ordered).astype(np.int64)
    ancestor = np.full(len(starts) - 1, np.nan)
    for level in range(ancestors.shape[1] - 1, -1, -1):
        above = ancestors[codes, level]
        alike = np.minimum.reduceat(above, starts[:-1]) == np.maximum.reduceat(above, starts[:-1])
        ancestor = np.where(alike & ~missing, above[starts[:-1]], ancestor)
    return ancestor


def _belonging(ancestors: Ints, level: int, nodes: int) -> Floats:
    """Return an indicator matrix of each node's ancestor on a level; the rows of nodes above the level are 0."""
    codes = np.unique(ancestors[:, level])
    belongs = np.zeros((nodes, len(codes)))
    belongs[np.arange(len(ancestors)), np.searchsorted(codes, ancestors[:, level])] = 1.0
    for below in range(level + 1):
        inner = ancestors[:, below] < nodes
        belongs[ancestors[inner, below]] = belongs[np.flatnonzero(inner)]
    above = np.unique(ancestors[:, level + 1 :])
    above = above[~np.isin(above, ancestors[:, : level + 1])]
    belongs[above[above < nodes]] = 0.0
    return belongs
