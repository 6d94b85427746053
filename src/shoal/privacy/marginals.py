"""Marginals: how many records have each value of a column, or each pair of values of two, measured with noise.

Neighbouring tables have the same number of records and differ in those of one unit, at most m of them (m = 1: in one
record). In a table of counts each of the m leaves a cell and enters another, at worst all the same two cells: the
counts move by at most m·√2 in Euclidean distance, and by 2m summed up. L tables of counts together, each with every
record once, move by at most m·√(2L).
"""

from __future__ import annotations

import math

import numpy as np

from shoal.core.types import Ints
from shoal.privacy.noise import noisy_counts

__all__ = ["count", "count_pairs", "measure", "sensitivity"]


def sensitivity(tables: int, contributions: int) -> float:
    """Return how far that many tables of counts move at most, in Euclidean distance, rounded up.

    Examples
    --------
    >>> sensitivity(2, 3) == math.nextafter(6, math.inf)
    True
    """
    return math.nextafter(contributions * math.sqrt(2 * tables), math.inf)


def count(codes: Ints, size: int) -> Ints:
    """Return how many records have each code of one column."""
    return np.bincount(codes, minlength=size).astype(np.int64)


def count_pairs(first: Ints, second: Ints, sizes: tuple[int, int]) -> Ints:
    """Return how many records have each pair of codes of two columns, the first along the rows.

    Examples
    --------
    >>> count_pairs(np.array([0, 1, 1]), np.array([2, 0, 0]), (2, 3)).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    return count(first * sizes[1] + second, sizes[0] * sizes[1]).reshape(sizes)


def measure(tables: list[Ints], contributions: int, rho: float, rng: np.random.Generator | None) -> list[Ints]:
    """Return tables of counts of the same records with noise that spends ρ for all of them together.

    Examples
    --------
    >>> measure([np.array([3, 1]), np.array([[2, 2]])], 1, 1e9, None)
    [array([3, 1]), array([[2, 2]])]
    """
    cells = np.concatenate([table.ravel() for table in tables])
    noisy = noisy_counts(cells, sensitivity(len(tables), contributions), rho, rng)
    ends = np.cumsum([table.size for table in tables])[:-1]
    return [part.reshape(table.shape) for part, table in zip(np.split(noisy, ends), tables, strict=True)]
