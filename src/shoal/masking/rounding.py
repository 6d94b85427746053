"""From the values of groups to values that can be stored: whole numbers where asked for, of 32 bits where need be.

Dates, times and durations are counted in whole steps, and always stay so.

Where zeros are kept, a value that is not zero is not rounded to zero either, but to the whole number next to it: −1, 1.
Where sums are kept, totals are added up from what is released. Where totals of columns are kept, groups are rounded up
or down for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.types import Bools, Floats, Ints
from shoal.kinds.column import Storage
from shoal.masking.additivity import Rule, add_up, round_together
from shoal.masking.totals import keep_totals

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
    storages
        How each masked column is stored.
    whole
        Whether columns of whole numbers stay whole.
    zeros
        The places of columns whose zeros are kept.
    rules
        The sums that are kept, in order; their columns are places.
    totals
        Whether whole numbers keep the total of every block.
    """

    storages: tuple[Storage, ...]
    whole: bool = False
    zeros: tuple[int, ...] = ()
    rules: tuple[Rule, ...] = ()
    totals: bool = False

    @property
    def changes(self) -> bool:
        """Whether values are stored with fewer digits than they have."""
        return self.whole or any(storage.type == "float32" or storage.timed for storage in self.storages)

    def only(self, place: int) -> Rounding:
        """Return how the values of one column are stored, if it is grouped on its own."""
        return Rounding((self.storages[place],), self.whole, (0,) if place in self.zeros else (), totals=self.totals)

    def apply(self, values: Floats, X: Floats, labels: Ints, block: Ints) -> Floats:
        """Return the values of groups, one row a group, as they can be stored.

        `X`, `labels` and `block` are the numbers, the group and the block of each record.
        """
        whole = np.array([self.whole and storage.whole for storage in self.storages])
        single = np.array([storage.type == "float32" for storage in self.storages])
        timed = np.array([storage.timed for storage in self.storages])
        nonzero = np.isin(np.arange(len(whole)), self.zeros)
        rounded = values.copy()
        rounded[:, whole] = nearest(values[:, whole], nonzero[whole])
        rounded[:, timed] = np.rint(values[:, timed])
        rounded[:, single & ~whole] = values[:, single & ~whole].astype(np.float32)
        if self.totals:
            for j in np.flatnonzero(whole):
                rounded[:, j] = keep_totals(values[:, j], X[:, j], labels, block, nonzero=bool(nonzero[j]))
        elif self.rules and whole.any():
            # A step must not end at zero where zeros are kept.
            down, up = (np.where(nonzero & (side(values) == 0), rounded, side(values)) for side in (np.floor, np.ceil))
            low, high = (np.where(whole, side, rounded) for side in (down, up))
            rounded = round_together(values, low, high, rounded, self.rules)
        return add_up(rounded, self.rules, single) if self.rules else rounded

    def new_zeros(self, X: Floats, rounded: Floats, row: Ints) -> Ints:
        """Count, of each column whose zeros are kept, the zeros that stand for other values.

        `row` says which row of the rounded values each record of X has.
        """
        places = list(self.zeros)
        new: Ints = np.count_nonzero((rounded[:, places] == 0)[row] & (X[:, places] != 0), axis=0)
        return new
