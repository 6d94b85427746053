"""Upper bounds on the expected error, from public figures only (Section 7 of the paper).

The limits follow from n, ε and the width Δ of the domain, which are public. In the worst table for averaging, the
largest group has half of its m records at each end of the domain, so its SSE is m (Δ/2)². (Groups of neighbours in a
column have disjoint ranges, which sum to at most Δ. The SSE of a group is at most size · range²/4, so the total is
greatest if the largest group spans the whole domain.) The noise adds 2 (Δ/ε)² Σ 1/size.

Proposition 8 assumes that k divides n, so that all groups have k records. Otherwise, the remainder joins one group,
which then has k + n mod k records, and the error due to averaging may almost double.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.core.types import Floats, Ints

__all__ = ["least_worst_case_sse", "proposition_8", "worst_case_k", "worst_case_sse"]


def worst_case_sse(n: int, k: int, epsilon: float, width: float, *, largest: int | None = None) -> float:
    """Return an upper limit on the expected SSE of a column in groups of at least k records.

    Without `largest`, some table reaches the limit if the largest group has an even number of records. If k divides n,
    this is Proposition 8; for k = 1, Proposition 7.

    `epsilon` is the column's budget per record, and `width` is the width of its domain. `largest` is the greatest
    number of records in groups that may span the whole domain: by default, one group of k records plus the remainder.
    Use n for groups that do not consist of neighbours in this column.

    Examples
    --------
    >>> worst_case_sse(1000, 1, 1.0, 1.0), worst_case_sse(1024, 8, 1.0, 1.0)
    (2000.0, 34.0)
    >>> round(worst_case_sse(1080, 26, 1.0, 1.0), 2), round(proposition_8(1080, 26, 1.0, 1.0), 2)
    (13.13, 9.7)
    """
    rest = k + n % k
    return float(_worst_case(n, np.array([k]), epsilon, width, np.array([largest or rest]))[0])


def least_worst_case_sse(n: int, epsilon: float, width: float) -> float:
    """Return the least `worst_case_sse` over all k, an upper limit also for groups with the least total error.

    Examples
    --------
    >>> least_worst_case_sse(1080, 1.0, 1.0) == worst_case_sse(1080, 27, 1.0, 1.0)
    True
    """
    sizes: Ints = np.arange(1, n + 1)
    return float(_worst_case(n, sizes, epsilon, width, sizes + n % sizes).min())


def _worst_case(n: int, k: Ints, epsilon: float, width: float, largest: Ints) -> Floats:
    """Return the limit for every k; the noise is greatest if as many groups as possible have k records."""
    rest = k + n % k
    averaging = np.where(largest == 1, 0, largest) * (width / 2) ** 2
    error: Floats = averaging + 2 * (width / epsilon) ** 2 * ((n - rest) / k**2 + 1 / rest)
    return error


def proposition_8(n: int, k: int, epsilon: float, width: float) -> float:
    """Return the paper's limit on the expected SSE, assuming that k divides n (Proposition 7 for k = 1).

    Examples
    --------
    >>> proposition_8(1024, 8, 1.0, 1.0)
    34.0
    """
    return (0 if k == 1 else k) * (width / 2) ** 2 + 2 * n * (width / (k * epsilon)) ** 2


def worst_case_k(n: int, epsilon: float) -> int:
    """Return the k with the least error by Proposition 8: about (16 n/ε²)^(1/3), independent of the domain.

    Examples
    --------
    >>> worst_case_k(1080, 1.0), worst_case_k(1080, 100.0), worst_case_k(10, 0.01)
    (26, 1, 10)
    """
    near = (16 * n) ** (1 / 3) / max(epsilon, 1e-100) ** (2 / 3)
    candidates = [1, n] if near >= n else [1, max(1, math.floor(near)), min(n, math.ceil(near))]
    return min(candidates, key=lambda k: proposition_8(n, k, epsilon, 1.0))
