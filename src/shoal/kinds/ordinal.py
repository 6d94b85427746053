"""Ordinal columns, whose values are ordered; the median of a group is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints, Name
from shoal.kinds.category import Category, CategoryCoding, group_medians, is_flat_list, listed_values, order_by

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Ordinal", "OrdinalCoding"]


@dataclass(frozen=True)
class OrdinalCoding(CategoryCoding):
    """The coding of an ordinal column, from the lowest value to the highest."""

    word: ClassVar[str] = "ordinal"

    @property
    def release(self) -> str:
        """The representative of a group: the median."""
        return "median"

    def represent(self, X: Floats, j: int, labels: Ints, means: Floats, weights: Floats | None) -> Floats:
        """Return the median code of each group."""
        return group_medians(X[:, j], labels)

    def ranks(self, x: Floats) -> Floats:
        """Return the standardised mid-ranks of codes."""
        return np.where(np.isnan(x), np.nan, self.coordinates[np.nan_to_num(x).astype(np.int64), 0])


@dataclass(frozen=True)
class Ordinal(Category):
    """Ordered values, from the lowest to the highest. The median of a group is released.

    Examples
    --------
    >>> Ordinal(["none", "primary", "secondary"]).levels
    ('none', 'primary', 'secondary')
    """

    levels: Sequence[Any]
    word = "ordinal"
    represented_by = "the median"
    released_cells = True

    def __post_init__(self) -> None:
        levels = listed_values("Ordinal", self.levels)
        twice = [level for level in levels if levels.count(level) > 1]
        if len(levels) < 2 or twice:
            got = f"{twice[0]!r} twice" if twice else f"{len(levels)}"
            raise InputError(f"Kind Ordinal must have at least 2 different levels, from low to high; got {got}.")
        object.__setattr__(self, "levels", levels)

    @classmethod
    def from_plain(cls, plain: Any) -> Ordinal | None:
        """Return the kind from a list of levels."""
        return cls(plain) if isinstance(plain, (list, tuple)) else None

    @classmethod
    def is_plain(cls, plain: Any) -> bool:
        """Return True for a list of levels."""
        return is_flat_list(plain)

    def plain(self) -> list[Any]:
        """Return the levels."""
        return list(self.levels)

    @classmethod
    def from_option(cls, text: str) -> Ordinal:
        """Return the kind from comma-separated levels."""
        return cls(text.split(","))

    def to_option(self, name: Name, file: str | None = None) -> str:
        """Return COLUMN=LOW,…,HIGH."""
        return f"{name}={','.join(map(str, self.levels))}"

    def in_order(self, name: Name, values: Sequence[Any]) -> list[Any]:
        """Return values in the order of the levels; refuse a value that is not a level.

        Examples
        --------
        >>> Ordinal(["small", "large"]).in_order("size", ["large", "small"])
        ['small', 'large']
        """
        return order_by(name, self.word, self.levels, values)

    def coding(self, name: Name, values: Sequence[Any], counts: Ints) -> OrdinalCoding:
        """Return the coding of the values that occur; `counts` holds the number of records with each value."""
        shares = counts / max(1, counts.sum())
        middles = np.cumsum(shares) - shares / 2
        middles -= shares @ middles
        spread = np.sqrt(shares @ np.square(middles))
        return OrdinalCoding(tuple(values), (middles / (spread if spread > 0 else 1.0))[:, None])

    def ranking(self, name: Name, cells: pl.Series) -> list[int]:
        """Return the positions that put cells in the order of the levels, missing cells first."""
        order = {value: code for code, value in enumerate(self.in_order(name, cells.drop_nulls().to_list()))}
        places: list[int] = np.argsort([order.get(cell, -1) for cell in cells], kind="stable").tolist()
        return places

    def compared(self, name: Name, cells: pl.Series) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column unchanged, because levels are matched exactly."""
        return cells, True
