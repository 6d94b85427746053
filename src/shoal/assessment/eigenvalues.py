"""Change of a table's eigenvalues, which are the variances along its principal directions.

The measures are those of ``dUtility`` in sdcMicro, methods "eigen" and "robeigen" (Templ and Meindl 2008). They take
O(n d² + d³) time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.assessment.robust import ROBUST_RECORDS, complete_pairs, robust_covariance
from shoal.assessment.statistics import correlation
from shoal.core.types import Floats

if TYPE_CHECKING:
    from shoal.assessment.measure_registry import TablePair

__all__ = ["Eigenvalues", "eigenvalues", "measure"]

VANISHING = 1e-9  # share of the largest eigenvalue below which a direction has no variance


@dataclass(frozen=True)
class Eigenvalues:
    """The eigenvalues before and after masking, in descending order.

    Parameters
    ----------
    correlation
        Eigenvalues of the correlation matrix.
    robust
        Eigenvalues of the robust covariance of standardised columns; None if it cannot be estimated.
    sampled
        True if the robust covariance was estimated from a sample.
    """

    correlation: tuple[Floats, Floats]
    robust: tuple[Floats, Floats] | None
    sampled: bool = False

    @property
    def change(self) -> float:
        """The summed relative change Σ |before − after| / before for the correlation matrix."""
        return _change(*self.correlation)

    @property
    def robust_change(self) -> float:
        """The summed relative change for the robust covariance; NaN if it cannot be estimated."""
        return float("nan") if self.robust is None else _change(*self.robust)

    def rows(self) -> list[list[str]]:
        """Return the rows to print."""
        sample = f" (sample of {ROBUST_RECORDS:,} records)" if self.sampled else ""
        robust = "cannot be estimated" if self.robust is None else f"{self.robust_change:.4f}{sample}"
        label = "summed relative change of"
        return [[f"{label} eigenvalues", f"{self.change:.4f}"], [f"{label} robust eigenvalues", robust]]


def eigenvalues(X: Floats, Y: Floats, *, seed: int = 0) -> Eigenvalues:
    """Return the eigenvalues of the correlation and of the robust covariance, over records without missing values.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> eigenvalues(X, np.array([[0.0, 0.0], [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]])).change
    2.0
    """
    P, Q = complete_pairs(X, Y)
    matrices = correlation(P), correlation(Q)
    robust = robust_covariance(P, seed=seed), robust_covariance(Q, seed=seed)
    robust_values = None if robust[0] is None or robust[1] is None else (_values(robust[0]), _values(robust[1]))
    return Eigenvalues((_values(matrices[0]), _values(matrices[1])), robust_values, len(P) > ROBUST_RECORDS)


def measure(tables: TablePair) -> Eigenvalues:
    """Measure the change of the eigenvalues."""
    return eigenvalues(*tables.columns, seed=tables.seed)


def _values(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.eigvalsh(matrix)[::-1], dtype=np.float64)


def _change(before: Floats, after: Floats) -> float:
    """Return Σ |before − after| / before over the directions that had variance before masking."""
    varying = before > VANISHING * before.max(initial=0.0)
    return float((np.abs(before - after)[varying] / before[varying]).sum())
