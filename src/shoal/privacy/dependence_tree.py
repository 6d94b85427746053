"""Tree model of columns, chosen with noise and fitted to noisy counts; each column depends on its parent alone.

R. McKenna, G. Miklau and D. Sheldon, Winning the NIST contest: a scalable and general approach to differentially
private synthetic data (2021), where the method is called MST. It is Kruskal's algorithm for a maximum spanning tree,
except that the exponential mechanism chooses among the pairs that connect two parts of the tree.

The score of a pair is the distance of its counts from the counts expected for independent columns, Σ|count − expected|.
The distance expected from chance and from the noise of the later measurement is subtracted. The expected counts come
from noisy histograms and are rounded. A score is therefore a whole number that changes by at most 2m when the m records
of a unit change. The choice takes O(n d² + d³) time for n records and d columns.

The probability of a record is the probability of its root value, multiplied by the conditional probability of each
other value given the value of the parent column. The model therefore needs only the counts of the pairs along the tree.
These counts are marginals of the model if they agree in shared columns; the fit ensures this by fixing the histograms
of the columns first.

The fit and the draw use only noisy counts and the public n, so they cost no budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shoal.core.types import Floats, Ints
from shoal.privacy.counts import count_pairs
from shoal.privacy.noise import noisy_largest

__all__ = ["TreeModel", "choose_tree", "score_pairs", "spread", "tree_model", "with_sums"]

Pair = tuple[int, int]


def choose_tree(
    scores: dict[Pair, int], columns: int, contributions: int, rho: float, rng: np.random.Generator | None
) -> list[Pair]:
    """Return the pairs of a spanning tree with high scores; all choices together spend ρ.

    `contributions` is the greatest number of records of a unit. With `rng` the result is reproducible and not private.

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
    """Return each pair's distance from the counts expected for independent columns, minus the expected noise.

    `codes` has shape ``(n, d)``; each noisy histogram sums to n; `scale` is the standard deviation of the noise on
    counts of pairs.
    """
    n = len(codes)
    scores = {}
    for first, second in combinations(range(len(histograms)), 2):
        expected = np.rint(np.outer(histograms[first], histograms[second]) / n).astype(np.int64)
        counts = count_pairs(codes[:, first], codes[:, second], expected.shape)
        noise = math.floor(math.sqrt(2 / math.pi) * np.sqrt(scale**2 + expected).sum())
        scores[first, second] = int(np.abs(counts - expected).sum()) - noise
    return scores


ROUNDS, NEAR, TRACE = 500, 1e-6, 1e-6


@dataclass(frozen=True)
class TreeModel:
    """A tree-shaped distribution of coded records: the root's histogram, and pair counts of each parent and child."""

    # The root column, and the expected counts of its codes.
    root: int
    histogram: Floats
    # One entry per other column, after its parent's: parent, child, and the expected counts of their pairs of codes,
    # with the parent's codes along the rows.
    branches: tuple[tuple[int, int, Floats], ...]

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """Return n records in random order, as close to the expected counts as whole numbers allow."""
        codes = np.empty((n, 1 + len(self.branches)), dtype=np.int64)
        codes[:, self.root] = spread(self.histogram, n, rng)
        for parent, child, counts in self.branches:
            for code, row in enumerate(counts):
                records = np.nonzero(codes[:, parent] == code)[0]
                codes[records, child] = spread(row, len(records), rng)
        return codes


def tree_model(histograms: list[Floats], pairs: dict[tuple[int, int], Floats]) -> TreeModel:
    """Return the model for fitted histograms and fitted pair counts; the pairs must form a tree.

    Examples
    --------
    >>> model = tree_model([np.array([1.0, 2.0])] * 2, {(0, 1): np.array([[1.0, 0.0], [0.0, 2.0]])})
    >>> sorted(model.draw(3, np.random.default_rng(0)).tolist())
    [[0, 0], [1, 1], [1, 1]]
    """
    reached, branches = [0], []
    for parent in reached:  # extended during iteration: breadth-first search
        for (first, second), counts in pairs.items():
            if parent in (first, second):
                child = second if parent == first else first
                if child not in reached:
                    reached.append(child)
                    branches.append((parent, child, counts if parent == first else counts.T))
    return TreeModel(0, histograms[0], tuple(branches))


def with_sums(counts: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale the rows and columns of a table of pair counts until they have the given sums.

    Iterative proportional fitting (W. E. Deming and F. F. Stephan, 1940). A small share of the counts of independent
    columns is added first, because a row of zeros cannot be scaled.

    Examples
    --------
    >>> with_sums(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([4.0, 2.0]), np.array([2.0, 4.0])).round(3).tolist()
    [[2.0, 2.0], [0.0, 2.0]]
    """
    fitted: Floats = (1 - TRACE) * counts + TRACE * np.outer(rows, columns) / rows.sum()
    for _ in range(ROUNDS):
        fitted = fitted * _factors(rows, fitted.sum(axis=1))[:, None]
        fitted = fitted * _factors(columns, fitted.sum(axis=0))
        if np.abs(fitted.sum(axis=1) - rows).max() <= NEAR * rows.sum():
            break
    return fitted


def _factors(target: Floats, actual: Floats) -> Floats:
    return np.divide(target, actual, out=np.zeros(len(target)), where=actual > 0)


def spread(expected: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return n codes in random order, in the expected proportions; counts are rounded at random, without bias.

    Examples
    --------
    >>> sorted(spread(np.array([2.0, 0.0, 4.0]), 3, np.random.default_rng(0)).tolist())
    [0, 2, 2]
    """
    total = expected.sum()
    shares = expected / total if total > 0 else np.full(len(expected), 1 / len(expected))
    ends = np.floor(np.cumsum(shares) * n + rng.random())
    ends[-1] = n
    counts = np.diff(np.minimum(ends, n), prepend=0).astype(np.int64)
    return rng.permutation(np.repeat(np.arange(len(expected)), counts))
