r"""A first-order method for the master problem: primal-dual steps with restarts, in O(entries) time and memory each.

The problem is to choose x ≥ 0 with the smallest Σ c_G x_G that covers every record once and satisfies
Σ_G ⌊p(G∩R)/q⌋ x_G ≤ ⌊p(R)/q⌋ for every cut R. The steps are those of A. Chambolle and T. Pock (2011) with diagonal
scaling. The adaptive step size, the restarts from averages and the primal weight are those of PDLP (D. Applegate,
M. Díaz, O. Hinder, H. Lu, M. Lubin, B. O'Donoghue and W. Schudy 2021). With primal weight ω and step size η, a step is

    x ← [x − η/(ω S_G) (c_G − Σ_{i∈G} π_i + Σ_R μ_R ⌊p(G∩R)/q⌋)]⁺,    π ← π + η ω s_i (1 − coverage of 2x_new − x_old),

and similarly for the prices μ ≥ 0. The scale s_i is about the size of the dual of record i, and S_G is the mean of s
over G. A record far from all others, whose dual is a million times the usual, therefore takes proportionally larger
steps. A record with s_i = 0 keeps its dual.

The multipliers are nearly optimal but not feasible. `sparse.repair` makes them feasible, and its proof does not rely on
this module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Iterate", "Programme", "solve", "start_point"]

# Number of steps between two checks of the error.
_LOOK = 40
# Restart criteria: two shares of the error at the last restart, and the steps since then as a share of all steps.
_ENOUGH, _PROGRESS, _LONG = 0.2, 0.8, 0.36


class Programme(NamedTuple):
    """The linear programme over the current groups."""

    start: Ints  # the records of group j are member[start[j]:start[j + 1]]
    member: NDArray[np.int32]
    cost: Floats
    weight: Floats  # the scale S of each group
    scale: Floats  # the scale s of each record
    entry: Ints  # the cuts of group j are cut[entry[j]:entry[j + 1]], with coefficients `times`
    cut: Ints
    times: Floats
    limits: Floats  # the right side of each cut
    cut_scale: Floats  # the scale s of each cut


class Iterate(NamedTuple):
    """A primal and a dual solution, both possibly infeasible."""

    x: Floats
    duals: Floats
    prices: Floats
    covered: Floats  # the number of times that x covers each record
    used: Floats  # the left side of each cut


def start_point(programme: Programme, x: Floats, duals: Floats, prices: Floats) -> Iterate:
    """Return the starting point with the given group values, duals and prices."""
    point = Iterate(x.copy(), duals.copy(), prices.copy(), np.zeros(len(duals)), np.zeros(len(prices)))
    _cover(programme, point)
    return point


@kernel
def _cover(p: Programme, point: Iterate) -> None:
    """Compute how often x covers each record, and the left side of each cut."""
    for j in range(len(p.cost)):
        if point.x[j] > 0.0:
            for a in range(p.start[j], p.start[j + 1]):
                point.covered[p.member[a]] += point.x[j]
            for a in range(p.entry[j], p.entry[j + 1]):
                point.used[p.cut[a]] += p.times[a] * point.x[j]


@kernel(inline=True)
def _rest(p: Programme, point: Iterate, j: int) -> float:
    """Return the reduced cost of a group."""
    rest: float = p.cost[j]
    for a in range(p.start[j], p.start[j + 1]):
        rest -= point.duals[p.member[a]]
    for a in range(p.entry[j], p.entry[j + 1]):
        rest += p.times[a] * point.prices[p.cut[a]]
    return rest


@kernel(counted=False, inner=True)
def _primal_step(p: Programme, point: Iterate, to: Iterate, step: float) -> float:
    """Write the next x to `to`; return the squared length of the step."""
    for i in range(len(to.covered)):
        to.covered[i] = 0.0
    for c in range(len(to.used)):
        to.used[c] = 0.0
    moved = 0.0
    for j in range(len(p.cost)):
        value = point.x[j] - step / p.weight[j] * _rest(p, point, j)
        if value > 0.0:
            for a in range(p.start[j], p.start[j + 1]):
                to.covered[p.member[a]] += value
            for a in range(p.entry[j], p.entry[j + 1]):
                to.used[p.cut[a]] += p.times[a] * value
        else:
            value = 0.0
        to.x[j] = value
        value -= point.x[j]
        moved += p.weight[j] * value * value
    return moved


@kernel(counted=False, inner=True)
def _dual_step(p: Programme, point: Iterate, to: Iterate, step: float) -> tuple[float, float]:
    """Write the next multipliers to `to`; return the squared length of the step and its product with the step in x."""
    moved, cross = 0.0, 0.0
    for i in range(len(point.duals)):
        to.duals[i] = point.duals[i]
        if p.scale[i] > 0.0:
            change = step * p.scale[i] * (1.0 - (2.0 * to.covered[i] - point.covered[i]))
            to.duals[i] += change
            moved += change * change / p.scale[i]
            cross += change * (to.covered[i] - point.covered[i])
    for c in range(len(point.prices)):
        price = point.prices[c] + step * p.cut_scale[c] * (2.0 * to.used[c] - point.used[c] - p.limits[c])
        to.prices[c] = max(price, 0.0)
        change = to.prices[c] - point.prices[c]
        moved += change * change / p.cut_scale[c]
        cross -= change * (to.used[c] - point.used[c])
    return moved, cross


@kernel(counted=False, inner=True)
def _error(p: Programme, point: Iterate) -> float:
    """Return the error of a point: its primal and dual infeasibilities and its gap, relative to the sum of s."""
    primal, dual, size, gap = 0.0, 0.0, 0.0, 0.0
    for i in range(len(point.duals)):
        miss = 1.0 - point.covered[i]
        primal += p.scale[i] * miss * miss
        size += p.scale[i]
        gap -= point.duals[i]
    for c in range(len(point.prices)):
        miss = max(point.used[c] - p.limits[c], 0.0)
        primal += p.cut_scale[c] * miss * miss
        gap += p.limits[c] * point.prices[c]
    for j in range(len(p.cost)):
        miss = min(_rest(p, point, j), 0.0)
        dual += miss * miss / p.weight[j]
        gap += p.cost[j] * point.x[j]
    return float(np.sqrt(primal / size) + np.sqrt(dual / size) + abs(gap) / size)


@kernel(counted=False, inner=True)
def _add(total: Iterate, share: float, point: Iterate) -> None:
    """Add `share` times a point to a sum of points."""
    for j in range(len(point.x)):
        total.x[j] += share * point.x[j]
    for i in range(len(point.duals)):
        total.duals[i] += share * point.duals[i]
        total.covered[i] += share * point.covered[i]
    for c in range(len(point.prices)):
        total.prices[c] += share * point.prices[c]
        total.used[c] += share * point.used[c]


@kernel(counted=False, inner=True)
def _set(to: Iterate, share: float, point: Iterate) -> None:
    """Set a point to `share` times another point."""
    for j in range(len(point.x)):
        to.x[j] = share * point.x[j]
    for i in range(len(point.duals)):
        to.duals[i], to.covered[i] = share * point.duals[i], share * point.covered[i]
    for c in range(len(point.prices)):
        to.prices[c], to.used[c] = share * point.prices[c], share * point.used[c]


@kernel(counted=False, inner=True)
def _primal_weight(p: Programme, point: Iterate, anchor: Iterate, omega: float) -> float:
    """Return the new primal weight: the geometric mean of `omega` and the ratio of dual to primal distances moved."""
    primal, dual = 0.0, 0.0
    for j in range(len(point.x)):
        primal += p.weight[j] * (point.x[j] - anchor.x[j]) ** 2
    for i in range(len(point.duals)):
        if p.scale[i] > 0.0:
            dual += (point.duals[i] - anchor.duals[i]) ** 2 / p.scale[i]
    for c in range(len(point.prices)):
        dual += (point.prices[c] - anchor.prices[c]) ** 2 / p.cut_scale[c]
    if primal < 1e-20 or dual < 1e-20:
        return omega
    return float(np.sqrt(np.sqrt(dual / primal) * omega))


@kernel
def solve(
    p: Programme, point: Iterate, to: Iterate, mean: Iterate, anchor: Iterate, steps: int, omega: float, state: State
) -> tuple[float, float]:
    """Run steps from a point, which is updated in place; return the new primal weight and the remaining error.

    `to`, `mean` and `anchor` are scratch points, which must be zero.
    """
    _set(anchor, 1.0, point)
    error = last = _error(p, point)
    eta, weights, count, length = 0.2, 0.0, 0, 0
    while count < steps and not state[STOP]:
        count += 1
        primal = _primal_step(p, point, to, eta / omega)
        dual, cross = _dual_step(p, point, to, eta * omega)
        limit = np.inf if cross == 0.0 else (omega * primal + dual / omega) / (2.0 * abs(cross))
        tried = eta
        eta = min((1.0 - (count + 1.0) ** -0.3) * limit, (1.0 + (count + 1.0) ** -0.6) * eta)
        if tried <= limit:
            _set(point, 1.0, to)
            _add(mean, tried, to)
            weights += tried
            length += 1
        if weights == 0.0 or (length % _LOOK != 0 and count < steps):
            continue
        _set(to, 1.0 / weights, mean)
        current, averaged = _error(p, point), _error(p, to)
        now = min(current, averaged)
        due = now <= _ENOUGH * error or (now <= _PROGRESS * error and now > last) or length >= _LONG * count
        last = now
        if due or count >= steps:
            if averaged < current:
                _set(point, 1.0, to)
            omega = _primal_weight(p, point, anchor, omega)
            _set(anchor, 1.0, point)
            _set(mean, 0.0, point)
            weights, length, error = 0.0, 0, now
    return omega, error
