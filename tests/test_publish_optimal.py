"""The fast path of Algorithm 3 against the recurrence it replaces and against all partitions in exact arithmetic."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from numba import njit

from shoal.algorithms.registry import METHODS
from shoal.core.measures import sse
from shoal.privacy.optimal import laplace_noise, optimal_for_noise


@njit
def paper_recurrence(x, noise, k):
    """Algorithm 3 as printed: Θ(n²), SSE by Proposition 6, lengths in float64. Returns predecessors."""
    n = len(x)
    length = np.full(n + 1, np.inf)
    length[0] = 0.0
    previous = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        total, mean, sse = 0.0, 0.0, 0.0
        for j in range(i + 1, n + 1):
            # Sums of deviations from the first value of the group: the paper's sums, without losing an offset.
            total += x[j - 1] - x[i]
            new = total / (j - i)
            if j > i + 1:
                sse += (j - i - 1) * (mean - new) ** 2 + (x[j - 1] - x[i] - new) ** 2
            mean = new
            if j - i >= k and length[i] + sse + noise[j - i] < length[j]:
                length[j] = length[i] + sse + noise[j - i]
                previous[j] = i
    return previous


def cuts_of(previous):
    cuts, node = [], len(previous) - 1
    while node > 0:
        cuts.append(node)
        node = previous[node]
    return [0, *cuts[::-1]]


def cuts_of_labels(x, labels):
    """Return where groups begin in the sorted column; groups must be runs of it."""
    order = np.lexsort((np.arange(len(x)), x))
    marks = np.flatnonzero(np.diff(labels[order])) + 1
    assert len(marks) == labels.max()
    return [0, *marks.tolist(), len(x)]


def exact_cost(x, cuts, noise):
    """Return the cost of a partition of sorted values without any rounding."""
    values = [Fraction(float(v)) for v in x]
    cost = Fraction(0)
    for i, j in pairwise(cuts):
        group = values[i:j]
        mean = sum(group) / (j - i)
        cost += sum((v - mean) ** 2 for v in group) + Fraction(float(noise[j - i]))
    return cost


def close(cost, least):
    return abs(cost - least) <= Fraction(1, 10**13) * least


COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, max(2, n // 3), n).astype(float),
    "duplicates": lambda rng, n: np.repeat(rng.normal(size=2), n)[:n],
    "near 1e9": lambda rng, n: 1e9 + rng.normal(size=n),
    "skewed": lambda rng, n: np.exp(rng.normal(0, 4, n)),
    "two ends": lambda rng, n: np.where(rng.random(n) < 0.5, 1e9, 0.0) + rng.normal(0, 1e-3, n),
    "constant": lambda _, n: np.full(n, 7.25),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_equals_the_recurrence_of_the_paper(kind):
    rng = np.random.default_rng(5)
    for _ in range(400):
        n = int(rng.integers(1, 90))
        x = COLUMNS[kind](rng, n)
        k = int(rng.choice([1, 1, 1, 2, 3, 5]))
        if n < k:
            continue
        epsilon = 10.0 ** rng.uniform(-6, 6)
        noise = laplace_noise(n, (np.ptp(x) or 1.0) * rng.choice([1.0, 1.5, 20.0]) / epsilon)
        labels = optimal_for_noise(x, noise, k)
        assert np.bincount(labels).min() >= k
        cuts, ordered = cuts_of_labels(x, labels), np.sort(x)
        expected = cuts_of(paper_recurrence(ordered, noise, k))
        if cuts != expected:
            # Both are optimal (a tie), or the recurrence in float64 took a partition that is no better.
            ours, theirs = exact_cost(ordered, cuts, noise), exact_cost(ordered, expected, noise)
            assert ours <= theirs or close(ours, theirs)


@pytest.mark.parametrize("kind", COLUMNS)
def test_equals_all_partitions_in_exact_arithmetic(kind):
    rng = np.random.default_rng(8)
    for _ in range(20):
        n = int(rng.integers(1, 9))
        x = COLUMNS[kind](rng, n)
        k = int(rng.integers(1, min(n, 3) + 1))
        noise = laplace_noise(n, (np.ptp(x) or 1.0) / 10.0 ** rng.uniform(-3, 6))
        ordered = np.sort(x)
        least = min(
            exact_cost(ordered, cuts, noise)
            for cuts in ([0, *np.flatnonzero(marks) + 1, n] for marks in product((0, 1), repeat=n - 1))
            if min(np.diff(cuts)) >= k
        )
        assert close(exact_cost(ordered, cuts_of_labels(x, optimal_for_noise(x, noise, k)), noise), least)


def test_long_columns_equal_the_recurrence():
    rng = np.random.default_rng(3)
    for x, scale in [
        (rng.normal(size=3000), 10.0),
        (1e9 + rng.exponential(size=3000), 0.01),
        (rng.integers(0, 40, 3000).astype(float), 1.0),
    ]:
        noise = laplace_noise(len(x), scale)
        ordered = np.sort(x)
        ours = exact_cost(ordered, cuts_of_labels(x, optimal_for_noise(x, noise)), noise)
        theirs = exact_cost(ordered, cuts_of(paper_recurrence(ordered, noise, 1)), noise)
        assert close(ours, theirs) or ours < theirs


def test_without_noise_it_is_optimal_univariate_microaggregation():
    rng = np.random.default_rng(4)
    for k in (2, 3, 7):
        X = rng.normal(size=(500, 1))
        ours = optimal_for_noise(X[:, 0], np.zeros(501), k)
        best = METHODS["univariate"].run(X, k).labels
        assert sse(X, ours) == pytest.approx(sse(X, best), rel=1e-12)


def test_limits_of_epsilon():
    x = np.array([3.0, 1.0, 2.0, 5.0])
    assert optimal_for_noise(x, laplace_noise(4, 1e9)).max() == 0
    assert sorted(optimal_for_noise(x, laplace_noise(4, 1e-9))) == [0, 1, 2, 3]


def test_noise_of_another_mechanism():
    # Its variance falls with the cube of the size: size × variance is still convex.
    n = 40
    x = np.random.default_rng(6).normal(size=n)
    noise = np.zeros(n + 1)
    noise[1:] = 3.0 / np.arange(1, n + 1) ** 2
    labels = optimal_for_noise(x, noise)
    ordered = np.sort(x)
    ours = exact_cost(ordered, cuts_of_labels(x, labels), noise)
    assert close(ours, exact_cost(ordered, cuts_of(paper_recurrence(ordered, noise, 1)), noise))
