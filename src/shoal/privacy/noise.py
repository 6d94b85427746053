"""Noise from OpenDP, drawn in exact integer arithmetic from system randomness.

Sums of groups get discrete Laplace noise, counts discrete Gaussian noise, and scores Gumbel noise; the greatest noisy
score is the choice of the exponential mechanism.

Naive floating-point Laplace noise leaks the value in its low bits (Mironov 2012), and a sum of floats is more sensitive
than in theory. So no float is used before the noise is added. The clipped values become whole numbers on a grid over
the public domain, so that group sums are exact. A change of one record changes a sum by at most the number of grid
steps. OpenDP's discrete Laplace mechanism (exact arithmetic, system randomness) then makes the sums private: one call
with one scale serves groups of every size. Dividing by the size, converting back to units and truncating to the domain
are post-processing.

A column of real numbers has a fine grid, 0 … 2^b (b = 40 if n and ε allow it, never below 20). The noise on a group
mean is therefore Laplace with scale Δ/(size · ε), to a precision of b bits. A column of integers is its own grid.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from shoal.core.errors import InputError, VerificationError
from shoal.core.messages import parameter
from shoal.core.progress import spread
from shoal.core.types import Floats, Ints
from shoal.privacy.budgets import gaussian_scale

__all__ = [
    "check_grid",
    "check_grids",
    "check_library",
    "noisy_counts",
    "noisy_largest",
    "noisy_means",
    "within_budget",
]

FINEST, COARSEST = 40, 20
# Noise beyond this number of scales (probability e⁻⁶⁴) would saturate a 64-bit integer; saturation still keeps ε.
TAIL = 64
# Groups per draw; OpenDP releases the interpreter lock while it draws, so that draws run in parallel.
BATCH = 20_000


def noisy_means(  # noqa: PLR0913 - a column, its groups, its noise
    values: Floats,
    labels: Ints,
    sizes: Ints,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    touched: int = 1,
    integer: bool = False,
    truncate: bool = True,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Return the noisy mean of each group of one column.

    `touched` is the greatest total change of all group sums, in units of Δ, when one record changes. For integers the
    noise is added to exact sums, without a grid. With `rng` the result is reproducible and not private.

    Examples
    --------
    >>> values, labels = np.array([1.0, 3.0, 8.0]), np.array([0, 0, 1])
    >>> means = noisy_means(values, labels, np.array([2, 1]), lower=0, upper=10, epsilon=1e9)
    >>> means.round(3).tolist()
    [2.0, 8.0]
    """
    if not np.isfinite(values).all():
        raise VerificationError("Refusing to publish a non-finite value. Nothing was released.")
    steps = _steps(len(values), epsilon, touched, upper - lower, integer=integer)
    placed = np.rint((values - lower) * (steps / (upper - lower))).astype(np.int64)
    sums = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(sums, labels, np.clip(placed, 0, steps))
    noisy = _draw(sums, touched * steps, epsilon) if rng is None else _draw_again(sums, touched * steps, epsilon, rng)
    means: Floats = lower + noisy / sizes * ((upper - lower) / steps)
    if not np.isfinite(means).all():
        raise VerificationError("Refusing to publish a non-finite mean. Nothing was released.")
    return np.clip(means, lower, upper) if truncate else means


def check_grids(n: int, budgets: Floats, names: Sequence[object]) -> None:
    """Refuse budgets that are too small for any grouping."""
    for name, epsilon in zip(names, budgets.tolist(), strict=True):
        check_grid(n, epsilon, 1, name)


def check_library() -> None:
    """Refuse to publish without OpenDP, which draws the noise."""
    if find_spec("opendp") is None:
        raise InputError("Publishing needs the extra 'publish': pip install 'shoal[publish]'.")


def check_grid(n: int, epsilon: float, touched: int, name: object, width: float | None = None) -> None:
    """Refuse a budget whose noise leaves no room for a grid in 64-bit integers.

    `width` is the width of the domain for a column of integers, and None for other columns.
    """
    if epsilon == 0 or _grid_bits(n, epsilon, touched) < (COARSEST if width is None else math.log2(width)):
        raise InputError(
            f"{parameter('epsilon')} leaves column {name!r} a budget of {epsilon:g}, too small for noise in 64-bit "
            f"integers{'' if width is None else ' over so wide a domain'}. Use a larger epsilon or fewer columns."
        )


def _steps(n: int, epsilon: float, touched: int, width: float, *, integer: bool) -> int:
    return int(width) if integer else 2 ** min(FINEST, _grid_bits(n, epsilon, touched))


def _grid_bits(n: int, epsilon: float, touched: int) -> int:
    # A budget near 0 needs unlimited bits for the noise and leaves none for the grid.
    return math.floor(max(0.0, 62 - math.log2(n + TAIL * touched / epsilon)))


def _draw(sums: Ints, sensitivity: int, epsilon: float) -> Floats:
    """Add OpenDP's discrete Laplace noise, at a scale whose privacy map in OpenDP does not exceed the budget."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    scale = sensitivity / epsilon
    measurement: Any = make_laplace(*space, scale=scale)
    while measurement.map(sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
        measurement = make_laplace(*space, scale=scale)
    # The noise of a sum does not depend on the other sums, so drawing in parts equals drawing at once.
    parts = np.array_split(sums, max(1, -(-len(sums) // BATCH)))
    drawn = spread(lambda part: np.asarray(measurement(part), dtype=np.float64), parts, os.cpu_count() or 1)
    return np.concatenate(list(drawn))


def _draw_again(sums: Ints, sensitivity: int, epsilon: float, rng: np.random.Generator) -> Floats:
    noise: Floats = np.rint(rng.laplace(scale=sensitivity / epsilon, size=len(sums)))
    return sums + noise


def noisy_counts(counts: Ints, sensitivity: float, rho: float, rng: np.random.Generator | None = None) -> Ints:
    """Add noise to counts; the noisy counts spend ρ (zCDP).

    `sensitivity` is the greatest Euclidean distance between the counts of neighbouring tables; ρ is spent on the whole
    vector. With `rng` the result is reproducible and not private.

    Examples
    --------
    >>> noisy_counts(np.array([3, 5]), math.sqrt(2), 1e6).tolist()
    [3, 5]
    """
    scale = gaussian_scale(sensitivity, rho)
    if rng is not None:
        return counts + np.rint(rng.normal(scale=scale, size=len(counts))).astype(np.int64)
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    measurement = within_budget(lambda scale: make_gaussian(*space, scale=scale), sensitivity, rho, scale)
    return np.asarray(measurement(counts), dtype=np.int64)


def within_budget(make: Callable[[float], Any], sensitivity: float, rho: float, scale: float) -> Any:
    """Return OpenDP's measurement at this scale, or at the next larger one whose privacy map allows ρ."""
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement = make(scale)
    while measurement.map(sensitivity) > rho:
        scale = math.nextafter(scale, math.inf)
        measurement = make(scale)
    return measurement


def noisy_largest(scores: Ints, sensitivity: int, rho: float, rng: np.random.Generator | None = None) -> int:
    """Return the index of the greatest noisy score; the choice spends ρ (zCDP).

    Gumbel noise of scale s makes this the exponential mechanism with ε = 2·sensitivity/s. The mechanism is ε²/8-zCDP
    because its range is bounded, so s equals the scale of Gaussian noise for the same ρ.

    `sensitivity` is the greatest change of one score between neighbouring tables. With `rng` the result is reproducible
    and not private.

    Examples
    --------
    >>> noisy_largest(np.array([3, 50, 5]), 1, 1e6)
    1
    """
    scale = gaussian_scale(sensitivity, rho)
    if rng is not None:
        return int(np.argmax(scores + rng.gumbel(scale=scale, size=len(scores))))
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    measure = zero_concentrated_divergence()
    measurement = within_budget(
        lambda scale: make_noisy_max(*space, output_measure=measure, scale=scale), sensitivity, rho, scale
    )
    return int(measurement(scores))
