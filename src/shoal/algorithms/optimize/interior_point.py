"""An interior-point method for the master problem: duals from the middle of the optimal ones, to any accuracy.

    min c·x  subject to  A x = b, x ≥ 0,

whose dual is max b·π subject to Aᵀπ + z = c, z ≥ 0. Mehrotra's predictor–corrector steps (S. Mehrotra, On the
implementation of a primal-dual interior point method, SIAM Journal on Optimization 2, 1992), started from scratch each
time and stopped early: J. Gondzio, P. González-Brevis and P. Munari (New developments in the primal-dual column
generation technique, European Journal of Operational Research 224, 2013) show that duals well inside the optimal face
need far fewer rounds of pricing than the corners that a simplex method gives, most of all where groups are large and
the master problem is degenerate.

A step forms A D Aᵀ, O(Σ s²) for columns of s entries, and factors it, O(n³/3) for n rows; some twenty steps. Memory
O(n²).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints

__all__ = ["CentralPoint", "central_point"]

_STEPS = 100


class CentralPoint(NamedTuple):
    """A point near the central path.

    Parameters
    ----------
    x
        The primal solution.
    duals
        The multiplier of each row.
    value
        The dual objective b·π.
    gap
        The relative distance of the two objectives.
    """

    x: Floats
    duals: Floats
    value: float
    gap: float


@kernel
def _normal(start: Ints, row: Ints, entry: Floats, weight: Floats, out: Floats) -> None:
    """Write A D Aᵀ, lower triangle."""
    out[:] = 0.0
    for c in range(len(weight)):
        w = weight[c]
        for a in range(start[c], start[c + 1]):
            for b in range(start[c], start[c + 1]):
                if row[b] <= row[a]:
                    out[row[a], row[b]] += w * entry[a] * entry[b]


@kernel
def _times(start: Ints, row: Ints, entry: Floats, x: Floats, out: Floats) -> None:
    """Write A x."""
    out[:] = 0.0
    for c in range(len(x)):
        for a in range(start[c], start[c + 1]):
            out[row[a]] += entry[a] * x[c]


@kernel
def _back(start: Ints, row: Ints, entry: Floats, y: Floats, out: Floats) -> None:
    """Write Aᵀ y."""
    for c in range(len(out)):
        total = 0.0
        for a in range(start[c], start[c + 1]):
            total += entry[a] * y[row[a]]
        out[c] = total


def _longest(v: Floats, dv: Floats) -> float:
    """Return the longest step, at most 1, that keeps v + step·dv ≥ 0."""
    down = dv < 0
    return min(1.0, float((-v[down] / dv[down]).min())) if down.any() else 1.0


def central_point(
    start: Ints, row: Ints, entry: Floats, cost: Floats, right: Floats, *, tolerance: float, over: Callable[[], bool]
) -> CentralPoint | None:
    """Return a centred solution whose relative gap is at most the tolerance; None if stopped or the arithmetic fails.

    Parameters
    ----------
    start, row, entry
        The matrix by columns: column j has ``entry[a]`` in ``row[a]`` for a in ``range(start[j], start[j + 1])``.
    cost, right
        c and b.
    tolerance
        The relative distance of primal and dual objective to reach, with as small infeasibilities.
    over
        Whether to stop at once.

    Examples
    --------
    >>> found = central_point(
    ...     np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1]), np.ones(4), np.array([1.0, 2.0, 2.0]), np.ones(2),
    ...     tolerance=1e-8, over=lambda: False,
    ... )
    >>> found.x.round(6).tolist(), round(found.value, 6)
    ([1.0, 0.0, 0.0], 1.0)
    """
    # A second thread would only spin: the matrices are small. And the result must not depend on how many there are.
    with threadpool_limits(1, user_api="blas"), np.errstate(all="raise", under="ignore"):
        try:
            return _Path(start, row, entry, cost, right).follow(tolerance, over)
        except (LinAlgError, FloatingPointError):
            return None


class _Path:
    """The central path of one problem, and how far it has been followed."""

    def __init__(self, start: Ints, row: Ints, entry: Floats, cost: Floats, right: Floats) -> None:
        self.start, self.row, self.entry, self.b = start, row, entry, right
        self.unit = float(np.abs(cost).mean()) or 1.0
        self.c = cost / self.unit
        self.normal = np.empty((len(right), len(right)))
        # Mehrotra's start: least-squares points, moved inside.
        self._factor(np.ones(len(cost)))
        x = self._back(self._solve(right))
        self.y = self._solve(self._times(self.c))
        z = self.c - self._back(self.y)
        x += max(0.0, -1.5 * float(x.min())) + 1e-9
        z += max(0.0, -1.5 * float(z.min())) + 1e-9
        both = float(x @ z)
        self.x, self.z = x + 0.5 * both / float(z.sum()), z + 0.5 * both / float(x.sum())

    def _times(self, x: Floats) -> Floats:
        out = np.empty(len(self.b))
        _times(self.start, self.row, self.entry, x, out)
        return out

    def _back(self, y: Floats) -> Floats:
        out = np.empty(len(self.c))
        _back(self.start, self.row, self.entry, y, out)
        return out

    def _factor(self, weight: Floats) -> None:
        _normal(self.start, self.row, self.entry, weight, self.normal)
        # Rows that depend on one another leave the matrix singular: a ridge far below the weights that matter.
        diagonal = np.einsum("ii->i", self.normal)
        diagonal += 1e-12 * diagonal + 1e-14 * float(diagonal.max())
        self.factor = cho_factor(self.normal, lower=True, check_finite=False)

    def _solve(self, right: Floats) -> Floats:
        found: Floats = cho_solve(self.factor, right, check_finite=False)
        return found

    def follow(self, tolerance: float, over: Callable[[], bool]) -> CentralPoint | None:
        """Step until the two objectives are as close as asked."""
        for _ in range(_STEPS):
            short, off = self.b - self._times(self.x), self.c - self._back(self.y) - self.z
            primal, dual = float(self.c @ self.x), float(self.b @ self.y)
            gap = abs(primal - dual) / (1e-12 + abs(dual))
            if max(gap, float(np.abs(short).max()), float(np.abs(off).max())) <= tolerance:
                return CentralPoint(self.x, self.y * self.unit, dual * self.unit, gap)
            if over():
                return None
            self._step(short, off)
        return None

    def _step(self, short: Floats, off: Floats) -> None:
        x, z = self.x, self.z
        weight = x / z
        self._factor(weight)

        def direction(target: Floats) -> tuple[Floats, Floats, Floats]:
            # x dz + z dx = target;  A dx = short;  Aᵀ dy + dz = off.
            dy = self._solve(short + self._times(weight * off - target / z))
            dz = off - self._back(dy)
            return (target - x * dz) / z, dy, dz

        now = float(x @ z) / len(x)
        dx, dy, dz = direction(-x * z)
        reached = float((x + _longest(x, dx) * dx) @ (z + _longest(z, dz) * dz)) / len(x)
        dx, dy, dz = direction((reached / now) ** 3 * now - x * z - dx * dz)
        along, across = 0.995 * _longest(x, dx), 0.995 * _longest(z, dz)
        self.x, self.y, self.z = x + along * dx, self.y + across * dy, z + across * dz
