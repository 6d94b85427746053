"""A lower bound on the SSE of every partition whose groups satisfy t-closeness, for any number and sizes of groups.

**Witnesses.** Let φ be a function of the sensitive value with Σ_v q_v φ(v) = 0, where q is the distribution in the
table. If the values v = 0 … m−1 have an order and |φ(v+1) − φ(v)| ≤ 1/(m−1), then the mean of φ in a group of
distribution p is Σ_v (p_v − q_v) φ(v) = −Σ_i (φ(i+1) − φ(i)) Σ_{j≤i} (p_j − q_j), summed by parts. In absolute value,
it is at most the earth mover's distance (Kantorovich and Rubinstein 1958). If the values have no order and φ spans at
most 1, it is at most the total variation. So in a group that keeps the rules, the means φ̄ of witnesses φ = (φ_1, …,
φ_r) are in the box |φ̄_l| ≤ t_l.

**Planes.** For u in the space of the keys and w in the box, let a(u, w) and b(u) be any vectors, a affine in w, and

    ℓ_{u,w}(z, φ) = |u|² + a(u, w)·(z − u) + b(u)·(φ − w),        y_i = sup of ℓ_{u,w}(z_i, φ_i) over all u and w.

ℓ_{u,w} is affine in (z, φ) and has the value |u|² at (u, w). If a group G of s records has the means z̄, and φ̄ in the
box, then Σ_{i∈G} y_i ≥ Σ_{i∈G} ℓ_{z̄,φ̄}(z_i, φ_i) = s ℓ_{z̄,φ̄}(z̄, φ̄) = s |z̄|². Summed over all groups, for any a
and b,

    SSE = Σ_i |z_i|² − Σ_G s |z̄_G|² ≥ Σ_i (|z_i|² − y_i).

**The choice.** a_j = (k_j + 1) u_j + p_j·w and b = c + Σ_j (u_j q_j − u_j² h_j), with vectors p_j, q_j, h_j and c. For
τ = φ_i − w, v_j = (k_j + 1) z_ij + q_j·τ − p_j·w and K_j = k_j + h_j·τ,

    ℓ_{u,w}(z_i, φ_i) = Σ_j (v_j u_j − K_j u_j² + z_ij p_j·w) + c·τ.

It is affine in w, hence greatest in a corner of the box; and if K_j > 0, the best u_j is v_j / 2K_j. So y_i is the
greatest of Σ_j (v_j² / 4K_j + z_ij p_j·w) + c·τ over the 2^r corners w. With k = 1 and all other parameters 0, y_i =
|z_i|², which proves 0. As a supremum of functions linear in the parameters, Σ y_i is convex in them; a truncated Newton
method makes it small, on a sample of a large table. The bound is valid for any sample and wherever the method stops. It
also remains valid if keys are left out: the SSE is at least that of the keys along some orthonormal directions. Two
witnesses per column are tried, one for each of the two directions of the keys that vary most with the values: they rise
at the greatest allowed rate where the records above have larger keys along the direction, and fall elsewhere.

**Rounding.** t is widened by 1e-9, far more than the rounding of a mean of φ and the tolerance of the recount. For
every record, 1e-12 of the absolute terms of y_i and |z_i|² is subtracted: they have fewer than 100 roundings, each
1e-16 of some of these terms, and a key along another direction has about d.

Cost: O(n d) to choose witnesses and directions, O(n 2^r) to prove, some hundred times that for the sample; r ≤ 3.
"""

from __future__ import annotations

from itertools import product
from math import fsum
from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.promises.closeness import Closeness
from shoal.promises.promise import Rules
from shoal.promises.rules import KINDS

__all__ = ["Planes", "closeness_bound", "proven"]

WITNESSES, OF_A_COLUMN = 3, 2  # maximum number of witnesses, in total and per column
DIRECTIONS = 8  # maximum number of directions of the keys
BINS = 256  # intervals of values, in each of which a witness only rises or only falls
SAMPLE, STEPS = 1500, 200  # maximum records for choosing the parameters, and evaluations of Σ y
LEAST_CURVE, LARGEST = 0.1, 1e6  # lower limit of all K, upper limit of the other parameters
WIDENED, ROUNDING = 1e-9, 1e-12
ORDERED, NOMINAL = (KINDS.index(Closeness.kinds[order]) for order in ("ordered", "nominal"))


class Planes(NamedTuple):
    """The parameters of a and b for d keys and r witnesses."""

    offset: Floats  # (r,): c
    curve: Floats  # (d,): k
    bend: Floats  # (d, r): h
    tilt: Floats  # (d, r): q
    lean: Floats  # (d, r): p


class _Sums(NamedTuple):
    """Sums of the keys per value of a column."""

    ordered: bool
    place: Ints  # the bin of each value, or of each step between neighbouring values
    sums: Floats  # (bins, d): covariances of the keys with membership in the bin, or in the bins above


def closeness_bound(Z: Floats, rules: Rules) -> float:
    """Return a lower bound on the SSE of every partition whose groups keep the rules; 0 if nothing is proven.

    Z holds the whole table; columns with missing cells (NaN) are not used. Rules of diversity are not used.

    Examples
    --------
    The keys are the sensitive values themselves, which all groups must contain in equal shares:

    >>> from shoal.promises.promise import ConfidentialColumn
    >>> from shoal.promises.rules import make_rules
    >>> column = ConfidentialColumn(np.array([0, 0, 1, 1]), np.array([2, 2]), ordered=True)
    >>> Z = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> round(closeness_bound(Z, make_rules([column], [(0, Closeness(0.0))], 4)), 6)
    4.0
    """
    Z = Z[:, ~np.isnan(Z).any(axis=0)]
    Z = Z - Z.mean(axis=0)
    bounded = [rule for rule, kind in enumerate(rules.kinds) if kind in (ORDERED, NOMINAL) and _values(rules, rule) > 1]
    if not bounded or not Z.any():
        return 0.0
    sums = [_sums_of(Z, rules, rule) for rule in bounded]
    candidates: list[tuple[float, Floats]] = []
    for rule, rule_sums in zip(bounded, sums, strict=True):
        shares, t = rules.shares[rules.first[rule] : rules.first[rule + 1]], float(rules.bounds[rule]) + WIDENED
        candidates += [(t, (phi - phi @ shares)[rules.codes[rule]]) for phi in _witnesses(rule_sums)]
    # A witness proves more if its covariance with the keys is larger and its t is smaller.
    candidates.sort(key=lambda pair: float(np.linalg.norm(pair[1] @ Z)) / pair[0], reverse=True)
    limits, Phi = zip(*candidates[:WITNESSES], strict=True)
    best = _best(np.ascontiguousarray(Z @ _directions(sums)), np.column_stack(Phi), np.array(limits))
    return max(0.0, best - ROUNDING * float(np.square(Z).sum()))


def _values(rules: Rules, rule: int) -> int:
    return int(rules.first[rule + 1] - rules.first[rule])


def _sums_of(Z: Floats, rules: Rules, rule: int) -> _Sums:
    """Return the covariances of the keys with every bin of values or, in an ordered column, with the bins above."""
    m, codes = _values(rules, rule), rules.codes[rule]
    ordered = bool(rules.kinds[rule] == ORDERED)
    steps = m - 1 if ordered else m
    bins = min(steps, BINS)
    # A value of an ordered column is above as many bins as start below it.
    level = (codes - 1) * bins // steps + 1 if ordered else codes * bins // steps
    sums = np.stack([np.bincount(level, key, bins + ordered) for key in Z.T], axis=1) / len(Z)
    return _Sums(ordered, np.arange(steps) * bins // steps, sums[:0:-1].cumsum(axis=0)[::-1] if ordered else sums)


def _witnesses(sums: _Sums) -> list[Floats]:
    """Return uncentred witnesses, as arrays by value, whose covariance with the keys is large."""
    witnesses: list[Floats] = []
    for direction in np.linalg.eigh(sums.sums.T @ sums.sums)[1].T[::-1][:OF_A_COLUMN]:
        rises = (sums.sums @ direction > 0)[sums.place]
        phi = rises.astype(np.float64)
        if sums.ordered:
            phi = np.concatenate([[0.0], np.cumsum(2.0 * rises - 1.0)]) / len(rises)
        if not any(np.ptp(phi - witness) == 0 or np.ptp(phi + witness) == 0 for witness in witnesses):
            witnesses.append(phi)
    return witnesses


def _directions(sums: list[_Sums]) -> Floats:
    """Return orthonormal directions: the keys or, if d is large, the directions that vary most with the values."""
    d = sums[0].sums.shape[1]
    if d <= DIRECTIONS:
        return np.eye(d)
    directions: Floats = np.linalg.eigh(sum(one.sums.T @ one.sums for one in sums))[1][:, -DIRECTIONS:]
    return directions


def _best(X: Floats, Phi: Floats, t: Floats) -> float:
    """Return the best bound proven with the first witness, the first two, and so on."""
    n, d = X.shape
    drawn, weights = np.arange(n), np.full(n, 1 / n)
    if n > SAMPLE:
        # Few records may have most of the variance, so half of the sample is drawn in proportion to the squares.
        squares = np.square(X).sum(axis=1)
        share = 0.5 / n + 0.5 * squares / squares.sum()
        drawn = np.random.default_rng(0).choice(n, SAMPLE, p=share / share.sum())
        weights = 1 / (n * SAMPLE * share[drawn])
    bound, form = 0.0, np.ones(d)
    for count in range(1, len(t) + 1):
        tilt = -0.1 * np.sign(Phi[:, count - 1] @ X)
        form = np.concatenate([form, np.zeros(1 + 2 * d), tilt, np.zeros(d)])
        used, limits = np.ascontiguousarray(Phi[:, :count]), t[:count]
        ends = used.min(axis=0) - limits, used.max(axis=0) + limits
        form = _fitted(form, X[drawn], used[drawn], limits, weights, ends)
        bound = max(bound, proven(_planes(form, d, *ends), X, used, limits))
    return bound


def _planes(form: Floats, d: int, low: Floats, high: Floats) -> Planes:
    """Unpack planes from one array: the least K of each key; then, per witness, c, two changes of K, q and p."""
    witnesses = form[d:].reshape(-1, 1 + 4 * d)
    up, down, tilt, lean = witnesses[:, 1:].reshape(-1, 4, d).transpose(1, 2, 0)
    curve = form[:d] - (up * low).sum(axis=1) + (down * high).sum(axis=1)
    return Planes(*map(np.ascontiguousarray, (witnesses[:, 0], curve, up - down, tilt, lean)))


def _fitted(start: Floats, X: Floats, Phi: Floats, t: Floats, weights: Floats, ends: tuple[Floats, Floats]) -> Floats:
    """Return the planes with the smallest weighted sum of y, in the form that `_planes` unpacks."""
    from scipy.optimize import minimize

    d, corners = X.shape[1], _corners(t)

    def mean(form: Floats) -> tuple[float, Floats]:
        planes = _planes(form, d, *ends)
        y, _, reached = _heights(planes, X, Phi, corners)
        offset, curve, bend, tilt, lean = _slopes(planes, X, Phi, corners, reached, weights)
        up, down = bend - np.outer(curve, ends[0]), np.outer(curve, ends[1]) - bend
        return float((weights * y).sum()), np.concatenate([curve, np.vstack([offset, up, down, tilt, lean]).T.ravel()])

    free, positive = (-LARGEST, LARGEST), (0.0, LARGEST)
    bounds = [(LEAST_CURVE, LARGEST)] * d + ([free] + [positive] * (2 * d) + [free] * (2 * d)) * len(t)
    options = {"maxfun": STEPS, "scale": 1 + np.abs(start), "offset": start}
    solution: Floats = minimize(mean, start, jac=True, method="TNC", bounds=bounds, options=options).x
    return solution


def proven(planes: Planes, X: Floats, Phi: Floats, t: Floats) -> float:
    """Return the lower bound that the planes prove; at most 0 if they prove nothing.

    Any parameters are valid planes; if some K is not positive, they prove nothing. X holds the keys along orthonormal
    directions, Phi the value of each witness for each record, and t its greatest allowed mean in a group.

    Examples
    --------
    >>> planes = Planes(np.zeros(1), np.ones(1), np.zeros((1, 1)), np.full((1, 1), -2.0), np.zeros((1, 1)))
    >>> X = np.array([[-1.0], [1.0]])
    >>> round(proven(planes, X, X / 2, np.array([0.0])), 6)
    1.5
    """
    squares = np.square(X).sum(axis=1)
    y, sizes, _ = _heights(planes, X, Phi, _corners(t))
    return fsum((squares - y - ROUNDING * (squares + sizes)).tolist())


def _corners(t: Floats) -> Floats:
    """Return the corners of the box |w| ≤ t."""
    return np.array(list(product(*zip(-t, t, strict=True))))


@kernel(counted=False, error_model="numpy")
def _height(planes: Planes, x: Floats, tau: Floats, w: Floats) -> tuple[float, float]:
    """Return y at a corner, and the size of its terms, in which the terms of v² / 4K grow with the terms of K."""
    y, size = 0.0, 0.0
    for l in range(len(w)):
        y += planes.offset[l] * tau[l]
        size += abs(planes.offset[l] * tau[l])
    for j in range(len(x)):
        v, K = (planes.curve[j] + 1) * x[j], planes.curve[j]
        of_v, of_K = abs(v), abs(K)
        for l in range(len(w)):
            tilt, lean, bend = planes.tilt[j, l] * tau[l], planes.lean[j, l] * w[l], planes.bend[j, l] * tau[l]
            v += tilt - lean
            K += bend
            y += x[j] * lean
            of_v += abs(tilt) + abs(lean)
            of_K += abs(bend)
            size += abs(x[j] * lean)
        if K <= 0:
            return np.inf, np.inf
        inverse = 1 / K
        y += v * v * inverse / 4
        size += of_v * of_v * inverse / 4 * (1 + of_K * inverse)
    return y, size


@kernel
def _heights(planes: Planes, X: Floats, Phi: Floats, corners: Floats) -> tuple[Floats, Floats, Ints]:
    """Return y of each record, the size of its terms, and the corner at which y is attained."""
    n, r = Phi.shape
    y, sizes, reached = np.full(n, -np.inf), np.zeros(n), np.zeros(n, dtype=np.int64)
    tau = np.empty(r)
    for i in range(n):
        for corner in range(len(corners)):
            for l in range(r):
                tau[l] = Phi[i, l] - corners[corner, l]
            height, size = _height(planes, X[i], tau, corners[corner])
            sizes[i] = max(sizes[i], size)
            if height > y[i]:
                y[i], reached[i] = height, corner
    return y, sizes, reached


@kernel
def _slopes(planes: Planes, X: Floats, Phi: Floats, corners: Floats, reached: Ints, weights: Floats) -> Planes:
    """Return the derivatives of the weighted sum of y with respect to all parameters."""
    d, r = planes.tilt.shape
    slopes = Planes(np.zeros(r), np.zeros(d), np.zeros((d, r)), np.zeros((d, r)), np.zeros((d, r)))
    tau = np.empty(r)
    for i in range(len(X)):
        w, weight = corners[reached[i]], weights[i]
        for l in range(r):
            tau[l] = Phi[i, l] - w[l]
            slopes.offset[l] += weight * tau[l]
        for j in range(d):
            v, K = (planes.curve[j] + 1) * X[i, j], planes.curve[j]
            for l in range(r):
                v += planes.tilt[j, l] * tau[l] - planes.lean[j, l] * w[l]
                K += planes.bend[j, l] * tau[l]
            u = v / (2 * K)
            slopes.curve[j] += weight * u * (X[i, j] - u)
            for l in range(r):
                slopes.bend[j, l] -= weight * u * u * tau[l]
                slopes.tilt[j, l] += weight * u * tau[l]
                slopes.lean[j, l] += weight * (X[i, j] - u) * w[l]
    return slopes
