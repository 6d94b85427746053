"""Individual ranking: group every column separately.

D. Defays and P. Nanopoulos, Panels of enterprises and confidentiality: the small aggregates method (1993). Both the
loss and the protection are small: each record keeps its own combination of group values, so whole records are not
k-anonymous. O(d n log n).
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.fixed import fixed
from shoal.algorithms.univariate import univariate
from shoal.core.types import Floats, Ints, State

__all__ = ["individual_ranking"]


def individual_ranking(X: Floats, k: int, *, state: State, ranking: str) -> Ints:
    """Group each column by method `univariate` or `fixed`; return labels of shape ``(n, d)``."""
    group = {"univariate": univariate, "fixed": fixed}[ranking]
    return np.column_stack([group(np.ascontiguousarray(X[:, [j]]), k, state=state) for j in range(X.shape[1])])
