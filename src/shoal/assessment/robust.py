"""Robust statistics of a numeric table: a covariance that resists outliers, and risk by robust distance.

M. Templ and B. Meindl, Robust statistics meets SDC: new disclosure risk measures for continuous microdata masking (PSD
2008). A record far from the bulk of the table is found more easily, so a wider interval around it counts as too close.
The covariance is scikit-learn's minimum covariance determinant (Rousseeuw and Van Driessen 1999), on at most 10,000
records. Its starts are random, so results agree only approximately with ``robustbase::covMcd`` of R.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.core.measures import group_sizes
from shoal.core.types import Floats
from shoal.masking.verification import identical_records

if TYPE_CHECKING:
    from shoal.assessment.measure_registry import TablePair

__all__ = ["ROBUST_RECORDS", "RobustIntervals", "complete_pairs", "measure", "robust_covariance", "robust_intervals"]

ROBUST_RECORDS = 10_000
WIDTH = 0.01 * 0.05  # standard deviations per unit of robust distance, the defaults of ``dRiskRMD``
ALONE = 0.05  # a released record without another one within this distance is isolated


@dataclass(frozen=True)
class RobustIntervals:
    """The result of measuring risk by robust distance.

    Parameters
    ----------
    share
        The share of records with a released number too close to its original (RMDID1).
    alone
        The share of records that are, in addition, isolated among the released records (RMDID2).
    weighted
        The share of the summed robust distances that belongs to the records counted in `share`. It is larger than
        `share` if mainly outliers are at risk.
    records
        The number of measured records, which have no missing values.
    """

    share: float
    alone: float
    weighted: float
    records: int

    name: ClassVar[str] = "risk by robust distance"
    means: ClassVar[str] = (
        "This share of records has a released number within 0.0005 standard deviations of the original per unit of the "
        "record's robust distance from the middle of the table; isolated records have no other released record within "
        "0.05 standard deviations."
    )
    limits: ClassVar[str] = (
        "It does not mean that an intruder can link them: microaggregated records are never isolated, but a record "
        "near its group's mean is counted as close."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        if not self.records:
            return "not measured: at least half of the complete records are equal in a column, or there are too few"
        weighted = f"{100 * self.weighted:.1f} % weighted by distance"
        return f"{100 * self.share:.1f} % too close ({weighted}), {100 * self.alone:.1f} % also isolated"


def robust_intervals(X: Floats, Y: Floats, *, seed: int = 0) -> RobustIntervals:
    """Measure risk by robust distance, as in ``dRiskRMD`` of sdcMicro.

    x and y are both tables, each standardised by its own means and standard deviations. With the robust covariance C of
    x, a record has the distance δ = √(xᵀC⁻¹x); it is too close if |xⱼ − yⱼ| < 0.01·0.05·δ in some column j. It is
    isolated if every other y is farther than 0.05. Constant columns do not count. The measure takes O(n log n) time.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> robust_intervals(x, x).share
    1.0
    """
    P, Q = complete_pairs(X, Y)
    spread = robust_covariance(P, seed=seed)
    if spread is None:
        return RobustIntervals(float("nan"), float("nan"), float("nan"), 0)
    distance = np.sqrt(np.einsum("ij,jk,ik->i", P, np.linalg.inv(spread), P))
    close = (np.abs(P - Q) < WIDTH * distance[:, None]).any(axis=1)
    total = float(distance.sum()) or 1.0
    return RobustIntervals(
        share=float(close.mean()),
        alone=float((close & (_nearest(Q) > ALONE)).mean()),
        weighted=float(distance[close].sum() / total),
        records=len(P),
    )


def measure(tables: TablePair) -> RobustIntervals:
    """Measure risk by robust distance."""
    return robust_intervals(*tables.columns, seed=tables.seed)


def _nearest(Q: Floats) -> Floats:
    """Return each record's distance to the nearest other record; treat equal records separately for speed."""
    from scipy.spatial import cKDTree

    alike = identical_records(Q)
    first = np.unique(alike, return_index=True)[1]
    distance: Floats = cKDTree(Q[first]).query(Q[first], k=2)[0][:, 1]
    return np.where(group_sizes(alike) > 1, 0.0, distance)[alike]


def complete_pairs(X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Return the complete records of both tables, each table standardised (n − 1) and without constant columns."""
    present = ~np.isnan(X).all(axis=0)
    complete = ~np.isnan(X[:, present]).any(axis=1)
    if complete.sum() < 2:
        return np.empty((0, 0)), np.empty((0, 0))
    tables = [table[complete][:, present] for table in (X, Y)]
    tables = [table - table.mean(axis=0) for table in tables]
    spreads = [table.std(axis=0, ddof=1) for table in tables]
    varied = (np.ptp(tables[0], axis=0) > 0) & (np.ptp(tables[1], axis=0) > 0)
    P, Q = (table[:, varied] / sd[varied] for table, sd in zip(tables, spreads, strict=True))
    return P, Q


def robust_covariance(Z: Floats, *, seed: int = 0) -> Floats | None:
    """Return the robust covariance of standardised records; None if it is singular or there are too few records.

    Examples
    --------
    >>> z = np.r_[np.linspace(-1, 1, 99), 1e6]
    >>> bool(robust_covariance(z[:, None])[0, 0] < 1)
    True
    """
    from sklearn.covariance import MinCovDet

    n, d = Z.shape
    if not d or n < 2 * (d + 1):
        return None
    if n > ROBUST_RECORDS:
        Z = Z[np.random.default_rng(seed).choice(n, ROBUST_RECORDS, replace=False)]
    with warnings.catch_warnings():
        # The estimator warns about a singular matrix, which is checked below.
        warnings.simplefilter("ignore")
        try:
            covariance: Floats = MinCovDet(random_state=seed).fit(Z).covariance_
        except ValueError:  # more than half of the records are equal
            return None
    values = np.linalg.eigvalsh(covariance) if np.isfinite(covariance).all() else np.zeros(1)
    return covariance if values[0] > 1e-10 * max(1.0, values[-1]) else None
