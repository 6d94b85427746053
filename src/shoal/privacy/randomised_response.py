"""Randomised response (S. L. Warner 1965): each record reports its true category or a random one.

Every record reports its true category with probability t; otherwise, it reports any of the c categories with equal
probability. For any true category, a record reports a given category with a probability of at least (1 − t)/c and at
most t + (1 − t)/c. For two tables that differ in one record, the probability of a release therefore differs by a factor
of at most 1 + t c/(1 − t). t is chosen so that this factor is at most e^ε, which is ε-differential privacy (Definition
1) for each record.

Exactness: t is an integer divided by 2^64, computed from a lower bound on e^ε in rational arithmetic and rounded down.
Random 64-bit words come from the system's source of randomness, and words that would make some categories more likely
are drawn again. No draw uses a logarithm or a float.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.core.types import Floats, Ints

__all__ = ["estimate_shares", "randomise", "truth_probability"]

WORDS = 2**64
LARGEST = 40.0  # largest effective budget: beyond it, only one record in 2^57 does not report the truth


def truth_probability(categories: int, epsilon: float) -> float:
    """Return the probability that a record deliberately reports its own category; it may also do so by chance.

    Examples
    --------
    >>> round(truth_probability(2, 1.0), 4)  # reports the truth with probability 0.4621 + 0.5379/2 = e/(1 + e)
    0.4621
    """
    return _truth_words(categories, epsilon) / WORDS


def randomise(codes: Ints, categories: int, epsilon: float, rng: np.random.Generator | None = None) -> Ints:
    """Return the reported category of each record.

    The number of categories is public knowledge. With `rng` the result is reproducible and not private.

    Examples
    --------
    >>> randomise(np.array([0, 1, 1, 0]), 2, epsilon=50.0).tolist()
    [0, 1, 1, 0]
    """
    n = len(codes)
    honest = _words(n, rng) < np.uint64(_truth_words(categories, epsilon))
    return np.where(honest, codes, _uniform(n, categories, rng))


def estimate_shares(answers: Ints, categories: int, epsilon: float) -> tuple[Floats, float]:
    """Return an unbiased estimate of the share of each category, and a bound on its standard error.

    Examples
    --------
    >>> shares, error = estimate_shares(np.array([0, 1, 1, 0]), 2, epsilon=50.0)
    >>> shares.round(6).tolist(), error < 1e-6
    ([0.5, 0.5], True)
    """
    t = truth_probability(categories, epsilon)
    shares = np.bincount(answers, minlength=categories) / len(answers)
    # The count of a reported category has variance p(1 − p) per record, where p is one of the two probabilities.
    low, high = (1 - t) / categories, t + (1 - t) / categories
    error = math.sqrt(max(low * (1 - low), high * (1 - high)) / len(answers)) / t
    return (shares - low) / t, error


def _truth_words(categories: int, epsilon: float) -> int:
    """Return t · 2^64, the greatest integer w with 1 + w c/(2^64 − w) ≤ e^ε."""
    # The error of math.exp is less than one unit in the last place.
    grown = Fraction(math.nextafter(math.exp(min(epsilon, LARGEST)), 0.0)) - 1
    return max(0, math.floor(grown * WORDS / (grown + categories)))


def _words(n: int, rng: np.random.Generator | None) -> NDArray[np.uint64]:
    if rng is None:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return rng.integers(0, WORDS, size=n, dtype=np.uint64, endpoint=False)


def _uniform(n: int, categories: int, rng: np.random.Generator | None) -> Ints:
    """Return a uniformly random number below `categories` for each record."""
    words = _words(n, rng).copy()
    limit = np.uint64(WORDS - 1 - WORDS % categories)
    while (again := words > limit).any():
        words[again] = _words(int(again.sum()), rng)
    return (words % np.uint64(categories)).astype(np.int64)
