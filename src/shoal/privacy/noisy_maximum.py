"""The choice of the greatest score with noise, from OpenDP: the exponential mechanism as a noisy maximum."""

from __future__ import annotations

import numpy as np

from shoal.core.types import Ints
from shoal.privacy.accounting import gaussian_scale
from shoal.privacy.gaussian import within_budget

__all__ = ["noisy_largest"]


def noisy_largest(scores: Ints, sensitivity: int, rho: float, rng: np.random.Generator | None = None) -> int:
    """Return the number of a score that is likely to be the greatest; the choice spends ρ (zCDP).

    Gumbel noise of scale s makes it the exponential mechanism with ε = 2·sensitivity/s, which is ε²/8-zCDP (its range
    is bounded): the scale is that of Gaussian noise for the same ρ.

    Parameters
    ----------
    scores
        The scores, whole numbers.
    sensitivity
        How far any one of them moves at most between neighbouring tables.
    rho
        The budget of the choice.
    rng
        Draw from this generator instead of OpenDP: reproducible and not private.

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
