"""Compare a joint release with releases of single columns: `marginals`, `optimal` and `insensitive` on Census.

Run: python benchmarks/joint.py [draws]

Columns FICA, FEDTAX, INTVAL, POTHVAL, domain 0 to 1.5 times the maximum (as in the paper of Soria-Comas and
Domingo-Ferrer; for a release it would have to be public knowledge), δ = 1e-6. Every figure is a mean over seeded draws
with its standard error. SSE by record compares row by row, where rows are released in the order of the input; SSE by
rank compares the sorted columns, which every release allows. Means and Wasserstein distances are shares of the domain;
errors of correlations are means over the six pairs, with constant columns counted as uncorrelated.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import polars as pl
from results import table
from scipy.stats import spearmanr, wasserstein_distance
from soria_comas import COLUMNS, DATA

import shoal
from shoal.core.types import Floats
from shoal.privacy.publication_methods import find_publication_method

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 2.0, 5.0)
# The group size of `insensitive` is a good one in Figure 3 of the paper, so its choice depends on the data.
METHODS: dict[str, dict[str, Any]] = {
    "optimal": {},
    "insensitive": {"k": 300},
    "insensitive-ir": {},
    "marginals": {"delta": DELTA},
}
HEAD = (
    "method | definition | SSE by record {:.3e} ± {:.0e} | SSE by rank {:.3e} ± {:.0e} | means {:.2%} ± {:.2%} | "
    "Wasserstein {:.2%} ± {:.2%} | correlation {:.3f} ± {:.3f} | rank correlation {:.3f} ± {:.3f}"
)


def measure(X: Floats, Y: Floats, width: Floats, *, rows: bool) -> list[float]:
    """Return the errors of a release, in the order of `HEAD`."""
    pairs = np.triu_indices(X.shape[1], 1)
    distances = [wasserstein_distance(X[:, j], Y[:, j]) / width[j] for j in range(X.shape[1])]
    return [
        float(np.square(X - Y).sum()) if rows else float("nan"),
        float(np.square(np.sort(X, axis=0) - np.sort(Y, axis=0)).sum()),
        float(np.abs((X.mean(axis=0) - Y.mean(axis=0)) / width).mean()),
        float(np.mean(distances)),
        float(np.abs(np.corrcoef(X.T) - np.nan_to_num(np.corrcoef(Y.T)))[pairs].mean()),
        float(np.abs(spearmanr(X).statistic - np.nan_to_num(spearmanr(Y).statistic))[pairs].mean()),
    ]


def means(figures: Floats) -> list[list[float] | None]:
    """Return mean and standard error of each column of an array; None without figures."""
    mean, error = figures.mean(axis=0), figures.std(axis=0, ddof=1) / np.sqrt(len(figures))
    return [None if np.isnan(value) else [value, off] for value, off in zip(mean, error, strict=True)]


def main(draws: int) -> None:
    """Print a table for each ε."""
    frame = pl.read_csv(DATA / "census.csv").select(COLUMNS).cast(pl.Float64)
    X = frame.to_numpy()
    width = 1.5 * X.max(axis=0)
    bounds = {name: (0.0, float(end)) for name, end in zip(COLUMNS, width, strict=True)}
    for epsilon in EPSILONS:
        with table(f"epsilon={epsilon:g}", f"ε = {epsilon:g}: errors of {draws} draws, δ = {DELTA:g}", HEAD) as add:
            for method, options in METHODS.items():
                entry = find_publication_method(method)
                figures = []
                for seed in range(draws):
                    release = shoal.publish(frame, epsilon, bounds=bounds, method=method, seed=seed, **options)
                    figures.append(measure(X, release.data.to_numpy(), width, rows=entry.keeps_rows))
                add(method, entry.definition, *means(np.array(figures)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
