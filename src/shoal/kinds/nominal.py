"""Nominal columns, whose values have no order; the most frequent value of a group is released."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from shoal.core.types import Floats, Ints, Name
from shoal.kinds.category import Category, CategoryCoding, check_number_of_values, group_modes, indicator_coordinates
from shoal.kinds.column import Cells

__all__ = ["Nominal", "NominalCoding"]

BOOLEAN = re.compile(r"true|false", re.IGNORECASE)


@dataclass(frozen=True)
class NominalCoding(CategoryCoding):
    """The coding of a nominal column."""

    word: ClassVar[str] = "nominal"
    ordered: ClassVar[bool] = False

    @property
    def release(self) -> str:
        """The representative of a group: "mode", the most frequent value."""
        return "mode"

    def represent(self, X: Floats, j: int, labels: Ints, means: Floats, weights: Floats | None) -> Floats:
        """Return the most frequent code of each group."""
        return group_modes(X[:, j], labels)


@dataclass(frozen=True)
class Nominal(Category):
    """Values without an order, such as occupations, or numeric codes. The most frequent value of a group is released.

    Examples
    --------
    >>> import polars as pl
    >>> import shoal
    >>> table = pl.DataFrame({"sex": ["f", "f", "m", "m", "m", "f"]})
    >>> shoal.mask(table, 3, columns=["sex"], kinds={"sex": Nominal()}).data["sex"].to_list()
    ['f', 'f', 'm', 'm', 'm', 'f']
    """

    word = "nominal"
    represented_by = "the most frequent value"
    ordered = False
    released_cells = True

    @classmethod
    def recognise(cls, cells: Cells) -> str | None:
        """Return "boolean" for truth values, "nominal" for other text."""
        if cells.values.dtype == pl.Boolean or cells.look_like(BOOLEAN):
            return "boolean"
        return "nominal" if cells.text else None

    @classmethod
    def from_plain(cls, plain: Any) -> Nominal | None:
        """Return the kind from "nominal" or the class itself."""
        return cls() if isinstance(plain, (str, type)) and plain in (cls, cls.word) else None

    def coding(self, name: Name, values: Sequence[Any], counts: Ints) -> NominalCoding:
        """Return the coding of the values that occur; `counts` holds the number of records with each value.

        Examples
        --------
        >>> coding = Nominal().coding("sex", ["f", "m"], np.array([2, 2]))
        >>> round(float(np.square(coding.coordinates[0] - coding.coordinates[1]).sum()), 6)
        4.0
        """
        check_number_of_values(name, values)
        if not values:
            return NominalCoding((), np.empty((0, 1)))
        return NominalCoding(tuple(values), indicator_coordinates(np.eye(len(values)), counts / max(1, counts.sum())))
