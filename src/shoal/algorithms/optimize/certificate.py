"""Certificates: the multipliers that prove a lower bound, and their check without the solver that found them.

A certificate holds multipliers: a dual for each record and the prices of cuts. Any multipliers prove some bound
(`optimize.lower_bounds`). A check prices all groups again, by an enumeration that misses none (`sparse.pricing`), and
compares the bound that the multipliers prove with the one that is claimed. It does not rely on the search, the columns
or the linear programme. O(n log n) time in few columns and O(n) memory if the multipliers are nearly feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shoal.algorithms.optimize.cuts import Cuts
from shoal.algorithms.optimize.sparse.repair import Effort, Repaired, prove_by
from shoal.algorithms.optimize.sparse.table import make_table
from shoal.core.errors import InputError
from shoal.core.measures import sst
from shoal.core.progress import fresh_state
from shoal.core.types import Floats

__all__ = ["BoundCheck", "Certificate", "verify_bound"]


@dataclass(frozen=True)
class Certificate:
    """The proof of a lower bound on the SSE.

    Parameters
    ----------
    k
        The least size of a group.
    duals
        The multiplier of each record.
    cuts
        Inequalities that every partition fulfils, with their multipliers, none negative.
    bound
        The claim: no partition into groups of at least k records has a smaller SSE.
    optimum
        The SSE that was found to be the least by an integer programme over all groups whose reduced cost under
        these multipliers allows them in a better partition; None if that was not finished. `verify_bound` does not
        repeat the integer programme: it checks `bound`.
    """

    k: int
    duals: Floats
    cuts: Cuts
    bound: float
    optimum: float | None = None


@dataclass(frozen=True)
class BoundCheck:
    """The outcome of a check.

    Parameters
    ----------
    valid
        Whether the multipliers prove at least what is claimed.
    claimed, proven
        The bound on the SSE as claimed, and as proven by the check.
    loss
        The proven bound as information loss, 100·SSE/SST.
    tolerance
        The greatest effect of rounding, already subtracted from `proven`.
    visited
        How many partial groups the check looked at.
    reason
        Why it is not valid; empty if it is.
    """

    valid: bool
    claimed: float
    proven: float
    loss: float
    tolerance: float
    visited: int
    reason: str = ""

    def __bool__(self) -> bool:
        return self.valid


def verify_bound(X: ArrayLike, k: int, certificate: Certificate, *, most: int = 2_000_000_000) -> BoundCheck:
    """Check a proven bound independently of the solver.

    Parameters
    ----------
    X
        The records as they were grouped: array ``(n, d)``, standardised if they were.
    k
        The least size of a group.
    certificate
        What `search` with ``bound=True`` returned.
    most
        Give up beyond this number of partial groups of one size, the same share of it for every record.

    Returns
    -------
    check
        True in a condition if the bound holds.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [9.0], [11.0]])
    >>> from shoal.algorithms.optimize.cuts import no_cuts
    >>> claim = Certificate(2, np.ones(4), no_cuts(), bound=3.999)
    >>> verify_bound(X, 2, claim).valid
    True
    >>> verify_bound(X, 2, Certificate(2, np.ones(4) * 1.1, no_cuts(), bound=4.4)).valid
    False
    """
    records = np.ascontiguousarray(X, dtype=np.float64)
    records = records[:, None] if records.ndim == 1 else records
    n = len(records)
    duals = np.ascontiguousarray(certificate.duals, dtype=np.float64)
    cuts = certificate.cuts
    if duals.shape != (n,):
        raise InputError(f"Parameter 'certificate' must have a dual for each of the {n} records, got {len(duals)}.")

    def fail(reason: str) -> BoundCheck:
        return BoundCheck(False, certificate.bound, 0.0, 0.0, 0.0, 0, reason)

    if certificate.k != k:
        return fail(f"the certificate is for k={certificate.k}, not k={k}")
    if not np.isfinite(records).all() or not np.isfinite(duals).all() or not np.isfinite(cuts.price).all():
        return fail("records and multipliers must be finite")
    if wrong := _wrong_cuts(cuts, n):
        return fail(wrong)
    found = _proven(records, k, duals, cuts, most)
    if found is None:
        return fail("too many groups violate the multipliers")
    total = sst(records)
    valid = found.value >= certificate.bound
    return BoundCheck(
        valid,
        certificate.bound,
        found.value,
        100 * found.value / total if total > 0 else 0.0,
        found.tolerance,
        found.visited,
        "" if valid else "the multipliers prove less than is claimed",
    )


def _proven(X: Floats, k: int, duals: Floats, cuts: Cuts, most: int) -> Repaired | None:
    """Return what the multipliers prove, None if too many groups violate them."""
    named = np.zeros(len(X), dtype=np.bool_)
    named[cuts.member] = True
    table = make_table(X, k, 2 * k - 1, fresh_state(), zero=~named & (duals == 0.0))
    if table is None:
        return None
    place = np.empty(len(X), dtype=np.int64)
    place[table.ids] = np.arange(len(table))
    moved = Cuts(cuts.start, place[cuts.member], cuts.part, cuts.whole, cuts.price)
    effort = Effort(fresh_state(), room=max(400, 5_000_000 // len(X)), most=max(1, most // len(X)))
    return prove_by(table, k, duals[table.ids], moved, effort)


def _wrong_cuts(cuts: Cuts, n: int) -> str:
    """Say what is wrong with the cuts: only positive weights of distinct records make inequalities that always hold."""
    if (cuts.price < 0).any():
        return "the price of a cut is negative"
    if (cuts.part < 1).any() or (cuts.whole < 1).any():
        return "the weights of a cut are not positive"
    for records, parts, _ in cuts.each():
        if len(parts) != len(records) or not all(0 <= i < n for i in records):
            return "a cut does not name records of the table"
        if len(set(records)) < len(records):
            return "a cut names a record twice"
    return ""
