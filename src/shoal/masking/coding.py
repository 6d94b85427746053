"""Where records lie when they are compared: numbers standardised, categories by coordinates of their values.

A nominal column is one coordinate a value, scaled so that the column has unit variance: two unequal values are at
squared distance 2/Gini, and the sum of squares of a group of s records with value counts h is (s − Σh²/s)/Gini. An
ordinal column is its standardised mid-ranks. A hierarchy is one nominal column a level. So all methods for numbers work
on categories (the embedding of Domingo-Ferrer and Torra 2005 made Euclidean).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.core.errors import InputError, closest
from shoal.core.measures import Scaling
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints
from shoal.tables.columns import Name
from shoal.tables.kinds import Category, Hierarchy, Nominal, Ordinal
from shoal.tables.unicode_forms import composed

__all__ = ["MOST_VALUES", "Coding", "Embedding", "make_coding", "order_values"]

MOST_VALUES = 1000  # of a nominal column: each is a coordinate


@dataclass(frozen=True)
class Coding:
    """The values of a column of categories.

    Parameters
    ----------
    values
        By code; the values of a hierarchy are followed by its inner nodes.
    coordinates
        ``(values, width)``: where each lies.
    release
        What stands for a group: ``"mode"``, ``"median"`` or ``"ancestor"``.
    ancestors
        Of a hierarchy, ``(values, depth)``: the code of each value's ancestor on each level, itself first.
    """

    values: tuple[Any, ...]
    coordinates: Floats
    release: str
    ancestors: Ints | None = None

    @property
    def kind(self) -> str:
        """Nominal, ordinal or hierarchy."""
        return "hierarchy" if self.ancestors is not None else "ordinal" if self.ordered else "nominal"

    @property
    def labels(self) -> tuple[Any, ...]:
        """What codes read in a release: all of them text where some are."""
        inner = self.ancestors is not None and self.release != "ancestor"
        names = self.values[: len(self.ancestors)] if inner and self.ancestors is not None else self.values
        return tuple(map(str, names)) if any(isinstance(name, str) for name in names) else names

    @property
    def ordered(self) -> bool:
        """Whether the values have an order."""
        return self.release == "median"


def order_values(name: Name, kind: Category, values: Collection[Any]) -> list[Any]:
    """Return the values that occur in the order of their kind; refuse one that it does not know.

    Examples
    --------
    >>> order_values("size", Ordinal(["small", "large"]), ["large", "small"])
    ['small', 'large']
    """
    if isinstance(kind, Nominal):
        return sorted(values)
    given: Any = kind.levels if isinstance(kind, Ordinal) else kind.ways
    known = [composed(str(value)) for value in given]  # cells of a CSV file are text, levels may be numbers
    for value in values:
        if composed(str(value)) not in known:
            raise InputError(
                f"Column {name!r} holds {value!r}, which its kind {kind.word} does not name.{closest(value, known)} "
                f"Name all values in {parameter('kinds')}."
            )
    order = {value: place for place, value in enumerate(known)}
    return sorted(values, key=lambda value: order[composed(str(value))])


def make_coding(name: Name, kind: Category, values: Sequence[Any], counts: Ints) -> Coding:
    """Lay out the values of a column that occur, with the number of their records.

    Parameters
    ----------
    name
        The column, for messages.
    kind
        What the values are.
    values, counts
        In the order of `order_values`.

    Examples
    --------
    >>> from shoal.tables.kinds import Nominal
    >>> coding = make_coding("sex", Nominal(), ["f", "m"], np.array([2, 2]))
    >>> round(float(np.square(coding.coordinates[0] - coding.coordinates[1]).sum()), 6)
    4.0
    """
    shares = counts / max(1, counts.sum())
    if isinstance(kind, Ordinal):
        middles = np.cumsum(shares) - shares / 2
        middles -= shares @ middles
        spread = np.sqrt(shares @ np.square(middles))
        return Coding(tuple(values), (middles / (spread if spread > 0 else 1.0))[:, None], "median")
    if len(values) > MOST_VALUES:
        raise InputError(
            f"Column {name!r} has {len(values):,} different values, more than the {MOST_VALUES:,} that a column of "
            f"categories may have. Leave it out, drop it with {setting('identifiers', [name])}, or group its values "
            "first."
        )
    if not values:
        return Coding((), np.empty((0, 1)), "mode")
    if not isinstance(kind, Hierarchy):
        return Coding(tuple(values), _nominal(np.eye(len(values)), shares), "mode")
    given: Any = kind.ways
    ways = {str(value): above for value, above in given.items()}
    spelled = {composed(value): value for value in values}  # an ancestor may be called as a value is
    levels = [
        [spelled.get(node, node) for node in nodes]
        for nodes in zip(*((composed(value), *ways[composed(str(value))]) for value in values), strict=True)
    ]
    nodes = {(0, value): code for code, value in enumerate(values)}
    for level in range(1, kind.depth):
        for node in levels[level]:
            nodes.setdefault((level, node), len(nodes))
    ancestors = np.array([[nodes[level, node] for level, node in enumerate(way)] for way in zip(*levels, strict=True)])
    first = len(values) if kind.release == "mode" else len(nodes)
    parts = []
    for level in range(kind.depth):
        codes = np.unique(ancestors[:, level])
        belongs = np.zeros((first, len(codes)))
        belongs[np.arange(len(values)), np.searchsorted(codes, ancestors[:, level])] = 1.0
        for below in range(level + 1):
            inner = ancestors[:, below] < first
            belongs[ancestors[inner, below]] = belongs[np.flatnonzero(inner)]
        above = np.unique(ancestors[:, level + 1 :])
        above = above[~np.isin(above, ancestors[:, : level + 1])]
        belongs[above[above < first]] = 0.0  # a node above this level says nothing of it
        parts.append(_nominal(belongs, shares @ belongs[: len(values)]))
    labels = [node for _, node in nodes][:first]
    return Coding(tuple(labels), np.ascontiguousarray(np.hstack(parts)), kind.release, ancestors)


def _nominal(belongs: Floats, shares: Floats) -> Floats:
    """Return centred coordinates of unit variance, one a value."""
    gini = 1.0 - float(np.square(shares).sum())
    return (belongs - shares) / np.sqrt(gini) if gini > 1e-12 else np.zeros_like(belongs)


@dataclass(frozen=True)
class Embedding:
    """Where records lie: the coding of each column, None for one of numbers; and how much each counts."""

    codings: tuple[Coding | None, ...]
    importance: tuple[float, ...] | None = None  # of each column, 0 if it does not decide who is alike
    gone: tuple[int, ...] = ()  # columns that all records miss now

    @classmethod
    def of_numbers(cls, columns: int) -> Embedding:
        """Return that of a table of numbers."""
        return cls((None,) * columns)

    @cached_property
    def numbers(self) -> Ints:
        """The columns of numbers."""
        return np.array([j for j, coding in enumerate(self.codings) if coding is None], dtype=np.int64)

    @cached_property
    def without_order(self) -> list[bool]:
        """Of each column, whether its values have no order."""
        return [coding is not None and not coding.ordered for coding in self.codings]

    @cached_property
    def plain(self) -> bool:
        """Whether all columns hold numbers."""
        return all(coding is None for coding in self.codings)

    @cached_property
    def starts(self) -> Ints:
        """The first coordinate of each column."""
        widths = [1 if coding is None else coding.coordinates.shape[1] for coding in self.codings]
        return np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int64)

    def apply(self, X: Floats, scale: Scaling) -> Floats:
        """Return the coordinates of records; those of a missing cell are missing."""
        Z = scale.apply(X)
        if self.plain:
            return Z
        parts = []
        for j, coding in enumerate(self.codings):
            if coding is None:
                parts.append(Z[:, [j]])
                continue
            missing = np.isnan(X[:, j])
            place = np.full((len(X), coding.coordinates.shape[1]), np.nan)
            place[~missing] = coding.coordinates[X[~missing, j].astype(np.int64)]
            parts.append(place)
        return np.ascontiguousarray(np.hstack(parts))

    def place(self, X: Floats, scale: Scaling) -> Floats:
        """Return the coordinates by which records of these values are grouped."""
        return self.compared(self.apply(X, scale))

    def compared(self, Z: Floats) -> Floats:
        """Return the coordinates by which records are grouped."""
        if self.importance is None:
            return Z
        factors = np.sqrt(np.repeat(self.importance, np.diff(np.append(self.starts, Z.shape[1]))))
        return np.ascontiguousarray(Z[:, factors > 0] * factors[factors > 0])

    def lost(self, values: Floats, scale: Scaling) -> Floats:
        """Return, of each column, the squared deviation from the mean of values that were made missing."""
        squares = self.by_column(np.nansum(np.square(self.apply(values, scale)), axis=0))
        for j in self.gone:
            # No mean is left to deviate from; a standardised column has as large a sum of squares as it has values.
            squares[j] = np.count_nonzero(~np.isnan(values[:, j]))
        return squares

    def lost_cell(self, values: Floats, scale: Scaling) -> Floats:
        """Return, of each column and of all, the largest squared deviation of one value that was made missing."""
        squares = np.nan_to_num(np.square(self.apply(values, scale)))
        largest = np.add.reduceat(squares, self.starts, axis=1).max(axis=0, initial=0.0)
        largest[list(self.gone)] = 1.0
        return np.append(largest, largest.max())

    def by_column(self, sums: Floats) -> Floats:
        """Add up what is known of coordinates, by column."""
        return sums if self.plain else np.add.reduceat(sums, self.starts)
