"""Certificates of lower bounds, and a check of certificates that does not use the solver.

A certificate holds multipliers: one dual per record and one price per cut. Any multipliers prove some bound
(`optimize.lower_bounds`). A check prices all groups again by a complete enumeration (`sparse.near_pricing`), and
compares the bound that the multipliers prove with the claimed bound. The check relies on neither the search nor the
columns nor the linear programme. If the multipliers are nearly feasible, it takes O(n log n) time in few columns, and
O(n) memory.

After branching (`optimize.branch_and_bound`), a certificate holds multipliers for each of several cases, and the check
enumerates groups over all pairs of records (`optimize.pricing`). It then also verifies that the cases cover all
partitions; the proven bound is the smallest bound of any case. Some best partition has only groups of k … 2k−1 records
and belongs to one of the cases, so these sizes suffice in every case. Fewer than 2k records form one group, which needs
no multipliers.

Each stratum has its own certificate (`Certificates`). Groups do not cross strata, so the bounds add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.algorithms.optimize.cuts import Cuts, Decision, no_cuts
from shoal.algorithms.optimize.lower_bounds import Bound, lower_bound
from shoal.algorithms.optimize.pricing import distances
from shoal.algorithms.optimize.sparse.near_table import make_table
from shoal.algorithms.optimize.sparse.repair import Effort, FeasibleDuals, prove_by
from shoal.core.errors import InputError
from shoal.core.measures import sst
from shoal.core.messages import parameter
from shoal.core.progress import fresh_state
from shoal.core.types import Floats, Ints

__all__ = ["BoundCheck", "Case", "Certificate", "Certificates", "StratumCertificate", "few_records", "verify_bound"]


@dataclass(frozen=True)
class Case:
    """Decisions about pairs of records, and multipliers that prove the bound for all partitions that satisfy them."""

    decisions: tuple[Decision, ...]  # two records and 1 (together) or 0 (separate), in the order of branching
    # The multipliers of the records, and of the cuts and decisions.
    duals: Floats
    cuts: Cuts


@dataclass(frozen=True)
class Certificate:
    """A proof of a lower bound on the SSE.

    Parameters
    ----------
    k
        The minimum size of a group.
    duals
        The multiplier of each record.
    cuts
        Inequalities that every partition satisfies, with their non-negative multipliers.
    bound
        The claimed bound: no partition into groups of at least k records has a smaller SSE.
    optimum
        The smallest SSE, found by an integer programme over all groups whose reduced costs allow them in a better
        partition. None if the programme did not finish. `verify_bound` checks only `bound` and does not repeat the
        programme.
    cases
        Cases that cover all partitions, each with multipliers that prove `bound`. Empty if `duals` and `cuts` prove
        `bound` alone.
    """

    k: int
    duals: Floats
    cuts: Cuts
    bound: float
    optimum: float | None = None
    cases: tuple[Case, ...] = ()


def few_records(X: Floats, k: int) -> Certificate:
    """Return the certificate for fewer than 2k records, which form one group whose SSE is the optimum.

    Examples
    --------
    >>> few_records(np.array([[0.0], [1.0], [2.0]]), 2).optimum
    2.0
    """
    value = sst(X)
    # The margin for rounding is ten times the margin that a check subtracts.
    return Certificate(k, np.zeros(len(X)), no_cuts(), value * (1 - 1e-11), value)


class StratumCertificate(NamedTuple):
    """The records and columns of one stratum, and the certificate of its bound."""

    rows: Ints  # the record numbers
    columns: Ints  # the columns without missing values in these records
    certificate: Certificate  # the proof for these records and columns


@dataclass(frozen=True)
class Certificates:
    """A proof of a lower bound on the SSE of groups within strata, with one certificate per stratum.

    Parameters
    ----------
    strata
        The certificates of all strata. Every record belongs to exactly one stratum.
    """

    strata: tuple[StratumCertificate, ...]

    @property
    def bound(self) -> float:
        """The claimed bound: no partition with groups inside the strata has a smaller SSE."""
        return float(sum(stratum.certificate.bound for stratum in self.strata))


@dataclass(frozen=True)
class BoundCheck:
    """The result of checking a bound.

    Parameters
    ----------
    valid
        True if the multipliers prove at least the claimed bound.
    claimed, proven
        The claimed bound on the SSE, and the bound that the check proves.
    loss
        The proven bound as an information loss, 100·SSE/SST.
    tolerance
        The maximum rounding error, already subtracted from `proven`.
    visited
        The number of partial groups that the check visited.
    reason
        The reason why the bound is not valid; empty if it is valid.
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


def verify_bound(
    X: ArrayLike, k: int, certificate: Certificate | Certificates, *, most: int = 2_000_000_000
) -> BoundCheck:
    """Check the bound of a certificate independently of the solver.

    Parameters
    ----------
    X
        The grouped records: an array ``(n, d)``, standardised if the method received standardised records.
    k
        The minimum size of a group.
    certificate
        The certificate from `auto` or `search` with ``bound=True``: `Release.certificate`.
    most
        Maximum number of partial groups to visit for each group size, shared equally among the records. Beyond it, the
        check gives up.

    Returns
    -------
    check
        The result of the check, which is true in a boolean context if the bound holds.

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
    if isinstance(certificate, Certificates):
        return _check_strata(records, k, certificate, most)
    n = len(records)
    cases = certificate.cases or (Case((), certificate.duals, certificate.cuts),)
    for case in cases:
        if np.shape(case.duals) != (n,):
            raise InputError(
                f"{parameter('certificate')} must have one dual for each of the {n} records, got {len(case.duals)}."
            )
    if reason := _wrong(records, k, certificate.k, cases):
        return BoundCheck(False, certificate.bound, 0.0, 0.0, 0.0, 0, reason)
    total = sst(records)
    if n < 2 * k:
        return _compared(certificate.bound, total * (1 - 1e-12), total, total * 1e-12, 0)
    proven, tolerance, visited = np.inf, 0.0, 0
    for case in cases:
        proof = _proven(records, k, case, most)
        if proof is None:
            reason = "too many groups violate the multipliers"
            return BoundCheck(False, certificate.bound, 0.0, 0.0, 0.0, visited, reason)
        proven, visited = min(proven, proof.value), visited + proof.visited
        tolerance = max(tolerance, proof.tolerance)
    return _compared(certificate.bound, proven, total, tolerance, visited)


def _compared(claimed: float, proven: float, total: float, tolerance: float, visited: int) -> BoundCheck:
    """Return the result of comparing a proven bound with the claim."""
    valid = proven >= claimed
    reason = "" if valid else "the multipliers prove less than the claim"
    return BoundCheck(valid, claimed, proven, 100 * proven / total if total > 0 else 0.0, tolerance, visited, reason)


def _check_strata(records: Floats, k: int, certificates: Certificates, max_visits: int) -> BoundCheck:
    """Check every stratum and add up the bounds.

    Every record must be in exactly one stratum, and no stratum may list a column twice.
    """
    n, strata = len(records), certificates.strata
    rows = np.concatenate([stratum.rows for stratum in strata]) if strata else np.empty(0, dtype=np.int64)
    if not np.array_equal(np.sort(rows), np.arange(n)):
        return BoundCheck(False, certificates.bound, 0.0, 0.0, 0.0, 0, "not every record is in one stratum")
    proven, tolerance, visited = 0.0, 0.0, 0
    for number, stratum in enumerate(strata):
        columns = np.sort(stratum.columns)
        if not np.array_equal(columns, np.intersect1d(columns, np.arange(records.shape[1]))):
            reason = f"stratum {number} names a column twice or one that does not exist"
            return BoundCheck(False, certificates.bound, 0.0, 0.0, 0.0, visited, reason)
        check = verify_bound(records[np.ix_(stratum.rows, stratum.columns)], k, stratum.certificate, most=max_visits)
        if not check:
            return replace(check, claimed=certificates.bound, reason=f"stratum {number}: {check.reason}")
        proven, tolerance = proven + check.proven, tolerance + check.tolerance
        visited += check.visited
    present = np.isfinite(records)
    total = sum(
        sst(column[finite][:, None]) for column, finite in zip(records.T, present.T, strict=True) if finite.any()
    )
    return _compared(certificates.bound, proven, total, tolerance, visited)


def _wrong(records: Floats, k: int, claimed: int, cases: tuple[Case, ...]) -> str:
    """Return the reason why the cases cannot prove the claim, or an empty string if their bounds may prove it."""
    if claimed != k:
        return f"the certificate is for k={claimed}, not k={k}"
    finite = all(np.isfinite(case.duals).all() and np.isfinite(case.cuts.price).all() for case in cases)
    if not finite or not np.isfinite(records).all():
        return "records and multipliers must be finite"
    if not _cover([case.decisions for case in cases]):
        return "the cases do not cover all partitions"
    for case in cases:
        decided = np.flatnonzero(case.cuts.decided >= 0)
        if not set(case.cuts.take(decided).decisions()) <= set(case.decisions):
            return "a case has a multiplier for a decision that it does not make"
        if wrong := _wrong_cuts(case.cuts, decided, len(records)):
            return wrong
    return ""


def _cover(paths: list[tuple[Decision, ...]]) -> bool:
    """Return True if every partition satisfies all decisions of at least one path.

    Each decided pair must occur in both cases, together and separate.

    Examples
    --------
    >>> _cover([((0, 1, 1),), ((0, 1, 0), (2, 3, 1)), ((0, 1, 0), (2, 3, 0))])
    True
    >>> _cover([((0, 1, 1),), ((0, 1, 0), (2, 3, 1))])
    False
    """
    if not paths or not all(paths):
        return bool(paths)
    pair = paths[0][0][:2]
    if pair[0] == pair[1] or any(path[0][:2] != pair for path in paths):
        return False
    return all(_cover([path[1:] for path in paths if path[0][2] == decided]) for decided in (0, 1))


def _proven(X: Floats, k: int, case: Case, max_visits: int) -> Bound | FeasibleDuals | None:
    """Return the bound that the multipliers of a case prove, or None if too many groups violate them."""
    duals, cuts = np.ascontiguousarray(case.duals, dtype=np.float64), case.cuts
    if case.decisions:
        return lower_bound(X, distances(X), k, duals, cuts, room=5_000_000, max_visits=max_visits, state=fresh_state())
    in_cuts = np.zeros(len(X), dtype=np.bool_)
    in_cuts[cuts.member] = True
    table = make_table(X, k, 2 * k - 1, fresh_state(), zero=~in_cuts & (duals == 0.0))
    if table is None:
        return None
    place = np.empty(len(X), dtype=np.int64)
    place[table.ids] = np.arange(len(table))
    effort = Effort(fresh_state(), room=max(400, 5_000_000 // len(X)), max_visits=max(1, max_visits // len(X)))
    return prove_by(table, k, duals[table.ids], replace(cuts, member=place[cuts.member]), effort)


def _wrong_cuts(cuts: Cuts, decided: Ints, n: int) -> str:
    """Return the defect of the cuts, or an empty string; positive weights on distinct records give a valid cut."""
    if (np.delete(cuts.price, decided) < 0).any():
        return "the price of a cut is negative"
    if (cuts.part < 1).any() or (cuts.denominator < 1).any():
        return "the weights of a cut are not positive"
    for records, parts, _ in cuts.each():
        if len(parts) != len(records) or not all(0 <= i < n for i in records):
            return "a cut does not name records of the table"
        if len(set(records)) < len(records):
            return "a cut names a record twice"
    return ""
