"""Reproduce Tables 1 and 2 of Hansen and Mukherjee (2003): the SSE ratio of fixed-size to optimal univariate groups.

The paper states n = 1,000, but its figures fit n = 500: the last table shows χ² over the means of Table 2 for both.

Run: python benchmarks/hansen_mukherjee.py [runs]
"""

from __future__ import annotations

import sys

import numpy as np
from results import table

from shoal.algorithms.fixed import fixed
from shoal.algorithms.univariate import univariate
from shoal.core.measures import sse
from shoal.core.progress import fresh_state
from shoal.core.types import Floats

N = 500
PAPER_N, PAPER_RUNS = 1000, 500  # as printed
TABLE_1 = {
    "uniform": (1.7964, 0.18447, 1.3605, 2.4208),
    "normal": (1.1533, 0.22668, 1.0072, 3.5602),
    "exponential": (1.1514, 0.39815, 1.0003, 5.0515),
}
TABLE_2 = {  # mean and maximum for each k
    "normal": (
        (1.3177, 7.0436),
        (1.1537, 2.6761),
        (1.0850, 1.7621),
        (1.0542, 1.4708),
        (1.0441, 1.3747),
        (1.0338, 1.2883),
        (1.0254, 1.1786),
    ),
    "uniform": (
        (2.2530, 3.4144),
        (1.7867, 2.3866),
        (1.5358, 1.8760),
        (1.4136, 1.8215),
        (1.3415, 1.6334),
        (1.3001, 1.5869),
        (1.2723, 1.6431),
    ),
}
GROUP_SIZES = (2, 3, 4, 5, 6, 7, 8)


def column(kind: str, rng: np.random.Generator, n: int) -> Floats:
    if kind == "uniform":
        return rng.uniform(0, 1000, (n, 1))
    return rng.normal(500, 150, (n, 1)) if kind == "normal" else rng.exponential(500, (n, 1))


def ratios(kind: str, k: int, runs: int, n: int = N) -> Floats:
    rng = np.random.default_rng([k, len(kind)])
    found = np.empty(runs)
    for run in range(runs):
        X = column(kind, rng, n)
        costs = [sse(X, method(X, k, state=fresh_state())) for method in (fixed, univariate)]
        found[run] = costs[0] / costs[1]
    return found


def misfit(kind: str, runs: int, n: int) -> float:
    """Return χ² of the paper's means in Table 2, one per k; both sides are means of random runs."""
    total = 0.0
    for k, (mean, _) in zip(GROUP_SIZES, TABLE_2[kind], strict=True):
        r = ratios(kind, k, runs, n)
        total += float((r.mean() - mean) ** 2 / (r.var(ddof=1) * (1 / runs + 1 / PAPER_RUNS)))
    return total


def main(runs: int = 500) -> None:
    circumstances = f"n = {N}, {runs} runs (in brackets: the paper)"
    title = f"Table 1: SSE ratio fixed / optimal, k = 3, {circumstances}"
    with table("table-1", title, head("distribution", "mean", "std. dev.", "minimum", "maximum")) as add:
        for kind, paper in TABLE_1.items():
            r = ratios(kind, 3, runs)
            add(kind, *zip((r.mean(), r.std(ddof=1), r.min(), r.max()), paper, strict=True))
    names = ("normal mean", "normal maximum", "uniform mean", "uniform maximum")
    with table("table-2", f"Table 2: SSE ratio by group size, {circumstances}", head("k", *names)) as add:
        for i, k in enumerate(GROUP_SIZES):
            cells = []
            for kind, paper_rows in TABLE_2.items():
                r = ratios(kind, k, runs)
                cells += list(zip((r.mean(), r.max()), paper_rows[i], strict=True))
            add(k, *cells)
    title = f"χ² of the {len(GROUP_SIZES)} means of Table 2 (a good fit gives about {len(GROUP_SIZES)})"
    with table("fit", title, "n | normal {:.0f} | uniform {:.0f}") as add:
        for n in (N, PAPER_N):
            add(n, *(misfit(kind, runs, n) for kind in TABLE_2))


def head(first: str, *names: str) -> str:
    """Return a head with columns for ratios, with the paper's in brackets."""
    return " | ".join([first, *(f"{name} {{:.4f}} ({{:.4f}})" for name in names)])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
