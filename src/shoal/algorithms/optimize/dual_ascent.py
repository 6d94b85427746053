"""Dual ascent: a first set of duals, and with it a first bound, before any linear programme is solved.

For duals π let f_i be the largest (Σ_G π − c_G)/k over the groups G of k records that hold i: a violation, or slack
if negative. π − f is feasible, since Σ_{i∈G} f_i ≥ Σ_G π − c_G for every G, so by `optimize.lower_bounds`
g(π) = Σ π_i − Σ f_i is a lower bound on the SSE. It is concave, each f_i being a maximum of linear functions, and its
maximum is the value of the linear relaxation. With G_i the group that attains f_i, s_j = 1 − |{i : j ∈ G_i}|/k is a
supergradient. Steps are Polyak's (1969), θ (U − g)/|s|² with U the incumbent's SSE; θ shrinks when they fail.
Groups are found by the heuristic of `optimize.pricing` from each record, so that g is an
estimate here; the bound is proven afterwards. O(n² k) for each step, O(n²) memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from shoal.algorithms.optimize.cuts import no_cuts
from shoal.algorithms.optimize.pricing import guess_groups, pair_weights
from shoal.core.compiling import kernel
from shoal.core.measures import centroids
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["ascend", "first_duals"]

# Rounds of groups remembered, and cheap steps between two rounds.
_MEMORY, _CHEAP = 30, 50


def first_duals(X: Floats, labels: Ints) -> Floats:
    """Share the SSE of each group among its records, half evenly and half by distance from the centroid.

    Examples
    --------
    >>> first_duals(np.array([[0.0], [2.0], [4.0]]), np.zeros(3, dtype=np.int64)).round(6).tolist()
    [3.333333, 1.333333, 3.333333]
    """
    error = np.square(X - centroids(X, labels)[labels]).sum(axis=1)
    even = (np.bincount(labels, error) / np.bincount(labels))[labels]
    shared: Floats = 0.5 * error + 0.5 * even
    return shared


@kernel
def _costs(D: Floats, sets: Ints, cost: Floats) -> None:
    k = sets.shape[1]
    for c in range(len(sets)):
        total = 0.0
        for a in range(k):
            for b in range(a):
                total += D[sets[c, a], sets[c, b]]
        cost[c] = total / k


@kernel
def _estimate(duals: Floats, sets: Ints, cost: Floats, short: Floats, slope: Floats) -> float:
    """Write f and the supergradient for the groups given, which hold every record, and return g."""
    n, k = len(duals), sets.shape[1]
    worst = np.full(n, -1)
    for i in range(n):
        short[i], slope[i] = -np.inf, 1.0
    for c in range(len(sets)):
        total = -cost[c]
        for a in range(k):
            total += duals[sets[c, a]]
        total /= k
        for a in range(k):
            i = sets[c, a]
            if total > short[i]:
                short[i] = total
                worst[i] = c
    value = 0.0
    for i in range(n):
        value += duals[i] - short[i]
        for a in range(k):
            slope[sets[worst[i], a]] -= 1.0 / k
    return value


def _ascend_on(sets: Ints, cost: Floats, duals: Floats, upper: float, step: float) -> Floats:
    """Take steps that judge by some groups alone; return the best duals met."""
    short, slope = np.empty(len(duals)), np.empty(len(duals))
    value = top = _estimate(duals, sets, cost, short, slope)
    best = duals
    for _ in range(_CHEAP):
        norm = float(slope @ slope)
        if norm == 0.0:
            break
        duals = duals + step * max(upper - value, 1e-6 * upper) / norm * slope
        value = _estimate(duals, sets, cost, short, slope)
        if value > top:
            top, best = value, duals
        else:
            step *= 0.9
    return best


def ascend(  # noqa: PLR0913 - six describe the table, four the work
    X: Floats,
    D: Floats,
    k: int,
    start: Floats,
    upper: float,
    known: Ints,
    *,
    steps: int,
    until: float,
    over: Callable[[], bool],
    state: State,
) -> Floats:
    """Return duals that are feasible as far as the heuristic can see, after some steps or until the time is up.

    Parameters
    ----------
    X, D, k
        Records, all their squared distances, the size of the groups.
    start
        Duals to start from.
    upper
        The SSE of a partition.
    known
        Groups ``(m, k)`` that must not be violated, beside those that the heuristic finds.
    steps, until
        The steps to take, and the `time.monotonic` at which to stop earlier.
    over
        Whether to stop at once.
    state
        Shared progress; a stop is obeyed within a step.
    """
    n, d = X.shape
    W, short, slope = np.empty_like(D), np.empty(n), np.empty(n)
    none = no_cuts()
    # The groups met are remembered: steps that judge by them alone are cheap.
    first = len(known)
    memory, cost = np.empty((first + _MEMORY * n, k), dtype=np.int64), np.empty(first + _MEMORY * n)
    memory[:first] = known
    _costs(D, memory[:first], cost[:first])
    duals, best, best_value = start.copy(), start - upper / n, -np.inf
    theta = 1.0
    for turn in range(steps):
        if over() or time.monotonic() >= until:
            break
        pair_weights(D, d, duals, none, k, W)
        place = first + turn % _MEMORY * n
        guessed = guess_groups(W, k, np.inf, state)
        if state[STOP]:
            break
        memory[place : place + n] = guessed
        _costs(D, memory[place : place + n], cost[place : place + n])
        held = first + min(turn + 1, _MEMORY) * n
        value = _estimate(duals, memory[:held], cost[:held], short, slope)
        if value > best_value:
            best_value, best = value, duals - short
        else:
            theta = max(0.95 * theta, 0.02)
        centre = _ascend_on(memory[:held], cost[:held], duals, upper, theta)
        # Half way back: what the memory does not know yet is likely to be violated far out.
        duals = 0.5 * centre + 0.5 * best
    feasible: Floats = best
    return feasible
