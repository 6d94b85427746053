"""What is known of the error before anybody looks at the data: Section 7 of the paper.

All of it follows from n, ε and the width Δ of the domain, which are public. The worst table for averaging has one
group with half of its k records at each end of the domain: its SSE is k (Δ/2)². (Groups of neighbours in a column have
ranges that do not overlap, so that their ranges add up to Δ at most and their SSE, at most size · range²/4 each, is
greatest where one group has all of it.) The noise adds 2n (Δ/(kε))².
"""

from __future__ import annotations

import math

import numpy as np

from shoal.core.types import Floats, Ints

__all__ = ["helpful_k", "worst_case_k", "worst_case_sse"]


def worst_case_sse(n: int, k: int, epsilon: float, width: float, *, neighbours: bool = True) -> float:
    """Return the greatest expected SSE of a column in groups of k (Proposition 8; for k = 1 Proposition 7).

    Parameters
    ----------
    n, k, epsilon, width
        Records, records in a group, the budget of the column for a record, the width of its domain.
    neighbours
        Whether groups hold neighbours of this column; if not, all of them may reach from end to end.

    Examples
    --------
    >>> worst_case_sse(1000, 1, 1.0, 1.0), worst_case_sse(1024, 8, 1.0, 1.0)
    (2000.0, 34.0)
    """
    apart = 0 if k == 1 else k if neighbours else n
    return apart * (width / 2) ** 2 + 2 * n * (width / (k * epsilon)) ** 2


def worst_case_k(n: int, epsilon: float) -> int:
    """Return the k with the least worst-case error: near (16 n/ε²)^(1/3), whatever the domain.

    Examples
    --------
    >>> worst_case_k(1080, 1.0), worst_case_k(1080, 100.0), worst_case_k(10, 0.01)
    (26, 1, 10)
    """
    near = (16 * n) ** (1 / 3) / max(epsilon, 1e-100) ** (2 / 3)
    candidates = [1, n] if near >= n else [1, max(1, math.floor(near)), min(n, math.ceil(near))]
    return min(candidates, key=lambda k: worst_case_sse(n, k, epsilon, 1.0))


def helpful_k(n: int, epsilon: float) -> int:
    """Return the largest k for which averaging lowers the expected error of every table: k³/(k² − 1) < 8n/ε².

    This is inequality (3) before its last simplification; 1 if there is none.

    Examples
    --------
    >>> helpful_k(1000, 1.0), helpful_k(1000, 10.0), helpful_k(1000, 100.0)
    (1000, 79, 1)
    """
    sizes: Ints = np.arange(2, n + 1)
    cubes: Floats = sizes / (1.0 - 1.0 / sizes.astype(np.float64) ** 2)
    helps = sizes[cubes < 8 * n / epsilon**2]
    return int(helps.max()) if len(helps) else 1
