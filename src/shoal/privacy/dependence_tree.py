"""The tree of columns that depend on each other most, chosen with noise.

R. McKenna, G. Miklau and D. Sheldon, Winning the NIST contest: a scalable and general approach to differentially
private synthetic data (2021), called MST there: a maximum spanning tree by Kruskal's rounds, each of which chooses, by
the exponential mechanism, one of the pairs that connect two parts of the tree.

The score of a pair is how far its counts are from those of independent columns, Σ|count − expected|, less what the
noise of the measurement to come and chance would make of it. The expected counts come from noisy histograms and are
rounded, so a score is a whole number that moves by at most 2m when the m records of a unit change. O(n d² + d³) for n
records and d columns.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from shoal.core.types import Floats, Ints
from shoal.privacy.marginals import count_pairs
from shoal.privacy.noisy_maximum import noisy_largest

__all__ = ["choose_tree", "score_pairs"]

Pair = tuple[int, int]


def choose_tree(
    scores: dict[Pair, int], columns: int, contributions: int, rho: float, rng: np.random.Generator | None
) -> list[Pair]:
    """Return the pairs of a spanning tree with great scores; all choices together spend ρ.

    Parameters
    ----------
    scores
        The score of each pair of columns.
    columns
        The number of columns.
    contributions
        How many records of a unit can change.
    rho
        The budget of the whole tree.
    rng
        Draw from this generator instead of OpenDP: reproducible and not private.

    Examples
    --------
    >>> choose_tree({(0, 1): 5, (0, 2): 90, (1, 2): 70}, 3, 1, 1e6, None)
    [(0, 2), (1, 2)]
    """
    part = list(range(columns))
    tree: list[Pair] = []
    while len(tree) < columns - 1:
        open_pairs = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
        place = 0
        if len(open_pairs) > 1:
            values = np.array([scores[pair] for pair in open_pairs], dtype=np.int64)
            place = noisy_largest(values, 2 * contributions, rho / (columns - 1), rng)
        first, second = open_pairs[place]
        tree.append((first, second))
        part = [part[first] if label == part[second] else label for label in part]
    return tree


def score_pairs(codes: Ints, histograms: list[Floats], scale: float) -> dict[Pair, int]:
    """Return how far the counts of each pair of columns are from those of independent columns.

    Parameters
    ----------
    codes
        The codes of the records, ``(n, d)``.
    histograms
        The noisy histogram of each column, n records in each.
    scale
        The standard deviation of the noise that the counts of a pair are measured with.
    """
    n = len(codes)
    scores = {}
    for first, second in combinations(range(len(histograms)), 2):
        expected = np.rint(np.outer(histograms[first], histograms[second]) / n).astype(np.int64)
        counts = count_pairs(codes[:, first], codes[:, second], expected.shape)
        noise = math.floor(math.sqrt(2 / math.pi) * np.sqrt(scale**2 + expected).sum())
        scores[first, second] = int(np.abs(counts - expected).sum()) - noise
    return scores
