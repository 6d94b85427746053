"""Names for the kinds of array that everything here is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "State"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
State = Ints  # what a kernel shares with its caller, see shoal.core.progress
