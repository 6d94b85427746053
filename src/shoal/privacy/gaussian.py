"""Discrete Gaussian noise on counts, from OpenDP: integers in, integers out, exact arithmetic, system randomness."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.core.types import Ints
from shoal.privacy.accounting import gaussian_scale

__all__ = ["noisy_counts", "within_budget"]


def noisy_counts(counts: Ints, sensitivity: float, rho: float, rng: np.random.Generator | None = None) -> Ints:
    """Return counts with noise that spends ρ (zCDP).

    Parameters
    ----------
    counts
        The counts.
    sensitivity
        How far the vector of counts moves at most between neighbouring tables, in Euclidean distance.
    rho
        The budget of the whole vector.
    rng
        Draw from this generator instead of OpenDP: reproducible and not private.

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
    """Return OpenDP's measurement of that scale, or of the next one for which its own map of the loss allows ρ."""
    from opendp.mod import enable_features

    enable_features("contrib")
    measurement = make(scale)
    while measurement.map(sensitivity) > rho:
        scale = math.nextafter(scale, math.inf)
        measurement = make(scale)
    return measurement
