"""Columns of a release: the values that are put in the place of the given ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.types import Floats, Name, Spelling
from shoal.kinds.storage import FLOAT, Storage

if TYPE_CHECKING:
    from shoal.kinds.time_scale import Scale

__all__ = ["Name", "NewColumn", "Spelling", "round_to"]


@dataclass(frozen=True)
class NewColumn:
    """The values that are released in a column's place.

    Parameters
    ----------
    values
        The new values; NaN where the cell is missing.
    storage
        How the column was stored, in all parts of the table.
    rounded
        Whether the values have been rounded, to be stored as integers if the column did.
    missing
        How missing cells are spelled: a code for missing, "NaN", or None.
    categories
        Of a column of categories: what the values, which are codes, stand for.
    scale
        Of a column of dates, times or durations: how the values count them.
    """

    values: Floats
    storage: Storage = FLOAT
    rounded: bool = False
    missing: Spelling = None
    categories: tuple[Any, ...] | None = None
    scale: Scale | None = None

    @property
    def integers(self) -> bool:
        """Whether integers are released."""
        return self.rounded and self.storage.integer

    @property
    def code(self) -> str | None:
        """The code that stands in missing cells, if there is one."""
        return None if self.missing in (None, "NaN") else self.missing

    def filled(self) -> NewColumn:
        """Return a column of numbers with the code for missing in its missing cells."""
        if self.code is None or self.categories is not None:
            return self
        return replace(self, values=np.where(np.isnan(self.values), float(self.code), self.values), missing=None)

    def cells(self) -> list[Any]:
        """Return the cells of a column of categories; where they are missing, the code for it or None."""
        names = self.categories or ()
        whole = self.code is not None and any(isinstance(name, int) for name in names)
        absent = int(float(str(self.code))) if whole else self.code
        return [absent if np.isnan(code) else names[int(code)] for code in self.values]


def round_to(values: Floats, kind: str) -> np.ndarray[Any, Any]:
    """Round to the nearest numbers that an integer type can hold.

    Examples
    --------
    >>> round_to(np.array([1.5, 2.0**63]), "int64").tolist()
    [2, 9223372036854774784]
    """
    ends = np.iinfo(kind)
    most = float(ends.max)
    # The greatest 64-bit integer lies between two floats.
    most = float(np.nextafter(most, 0)) if int(most) > ends.max else most
    return np.clip(np.rint(values), float(ends.min), most).astype(kind)
