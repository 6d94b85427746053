"""From the values of groups to values that can be stored: whole numbers where asked for, of 32 bits where need be.

Where zeros are kept, a value that is not zero is not rounded to zero either, but to the whole number next to it: −1, 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.types import Bools, Floats, Ints
from shoal.tables.columns import Kind

__all__ = ["Rounding", "nearest"]


def nearest(values: Floats, nonzero: Bools) -> Floats:
    """Round to the nearest whole numbers, in some columns only zero itself to zero.

    Examples
    --------
    >>> nearest(np.array([[0.3, 0.3], [-0.2, -0.2], [2.6, 0.0]]), np.array([False, True])).tolist()
    [[0.0, 1.0], [-0.0, -1.0], [3.0, 0.0]]
    """
    whole = np.rint(values)
    return np.where(nonzero & (whole == 0), np.sign(values), whole)


@dataclass(frozen=True)
class Rounding:
    """How the values of groups are stored.

    Parameters
    ----------
    kinds
        What each masked column holds.
    whole
        Whether columns of whole numbers stay whole.
    zeros
        The places of columns whose zeros are kept.
    """

    kinds: tuple[Kind, ...]
    whole: bool = False
    zeros: tuple[int, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether values are stored with fewer digits than they have."""
        return self.whole or any(kind.type == "float32" for kind in self.kinds)

    def only(self, place: int) -> Rounding:
        """Return how the values of one column are stored, if it is grouped on its own."""
        return Rounding((self.kinds[place],), self.whole, (0,) if place in self.zeros else ())

    def apply(self, values: Floats) -> Floats:
        """Return the values of groups, one row a group, as they can be stored."""
        rounded = values.copy()
        whole = np.array([self.whole and kind.whole for kind in self.kinds])
        if whole.any():
            nonzero = np.isin(np.arange(len(whole)), self.zeros)
            rounded[:, whole] = nearest(values[:, whole], nonzero[whole])
        for j, kind in enumerate(self.kinds):
            if kind.type == "float32" and not whole[j]:
                rounded[:, j] = values[:, j].astype(np.float32)
        return rounded

    def new_zeros(self, X: Floats, rounded: Floats) -> Ints:
        """Count, of each column whose zeros are kept, the zeros that stand for other values."""
        places = list(self.zeros)
        new: Ints = np.count_nonzero((rounded[:, places] == 0) & (X[:, places] != 0), axis=0)
        return new
