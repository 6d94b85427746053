"""Aliases for common types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "Name", "Spelling", "State"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
State = Ints  # the array that a kernel shares with its caller, see shoal.core.progress

Name = Any  # a column's name: a string in most frames, a number in arrays, anything hashable in pandas
Spelling = str | None  # the text of a missing value, such as "NaN"; None for null and for an empty cell
