"""Measure the cost of borders: the loss in blocks of 10,000 records against the loss of the whole table.

The pass over the borders is an experiment and not part of shoal. It dissolves every group with a record that has one
of its k − 1 nearest neighbours in another block, and regroups all their records by the same method. No engine beyond
memory could do that, so the gain is an upper limit. "Improving" keeps those groups and improves them with `auto`.

Run: python benchmarks/borders.py [--records 100000] [--methods mdav,auto] [--columns 2,3,5,8] [--sizes 3,5,10]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from results import table
from scipy.spatial import cKDTree

import shoal
from shoal.algorithms.optimize.exchange import anneal_by_exchange
from shoal.blocks.blocking import InMemory, assign, extent_of, find_blocks
from shoal.blocks.rule import choose_blocking
from shoal.core.measures import canonical_labels, sse, standardise
from shoal.core.progress import fresh_state

BLOCK = 10_000
STEPS = 20  # per record, as effort="good"
HEAD = (
    "method | shape | d | k | blocks | whole table, % {:.4f} | in blocks, % {:.4f} | cost, % {:+.2f} | "
    "records at borders, % {:.0f} | regrouping gains, % {:.2f} | improving gains, % {:.2f} | "
    "whole table, s {:.1f} | in blocks, s {:.1f} | regrouping, s {:.1f}"
)


def clustered(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Return records around 200 centres, some clusters ten times as wide as others."""
    centres, widths = rng.normal(0, 1, (200, d)), rng.uniform(0.02, 0.2, 200)
    cluster = rng.integers(0, 200, n)
    return centres[cluster] + rng.normal(0, 1, (n, d)) * widths[cluster, None]


SHAPES: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "uniform": lambda rng, n, d: rng.uniform(-1, 1, (n, d)),
    "normal": lambda rng, n, d: rng.normal(0, 1, (n, d)),
    "log-normal": lambda rng, n, d: rng.lognormal(0, 1, (n, d)),
    "clusters": clustered,
}


def blocks_of(X: np.ndarray, k: int) -> np.ndarray:
    roots = np.zeros(len(X), dtype=np.int64)
    rule = choose_blocking(BLOCK, None, (), k, X.shape[1], method="mdav", able=True)
    assert rule is not None
    return assign(0, X, roots, find_blocks(InMemory(X, roots), extent_of(X, roots), rule))


def at_border(Z: np.ndarray, block: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return a mask of the records in groups with a nearest neighbour in another block."""
    near = cKDTree(Z).query(Z, k=k)[1]
    outside = (block[near] != block[:, None]).any(axis=1)
    groups = np.zeros(labels.max() + 1, dtype=bool)
    groups[labels[outside]] = True
    return groups[labels]


def measure(X: np.ndarray, k: int, method: str) -> list[float]:
    """Return the figures for a table, a k and a method, in the order of `HEAD`."""
    Z, block = standardise(X), blocks_of(X, k)
    began = time.process_time()
    whole = shoal.mask(X, k, method=method, block=0).loss
    middle = time.process_time()
    release = shoal.mask(X, k, method=method, block=BLOCK)
    seconds, labels = time.process_time() - middle, np.asarray(release.labels)
    border = at_border(Z, block, labels, k)
    own = np.ascontiguousarray(Z[border])
    before, total = sse(own, canonical_labels(labels[border])), release.loss / 100 * Z.size
    began_pass = time.process_time()
    regrouped = sse(own, shoal.partition(own, k, method)) if len(own) >= 2 * k else before
    passed = time.process_time() - began_pass
    improved = sse(own, anneal_by_exchange(own, k, canonical_labels(labels[border]), STEPS, 0, fresh_state(), 2))
    gains = [100 * (before - min(before, after)) / total for after in (regrouped, improved)]
    cost = 100 * (release.loss / whole - 1)
    return [
        *(len(np.unique(block)), whole, release.loss, cost, 100 * border.mean(), *gains),
        *(middle - began, seconds, passed),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--methods", default="mdav,auto")
    parser.add_argument("--columns", default="2,3,5,8")
    parser.add_argument("--sizes", default="3,5,10")
    given = parser.parse_args()
    columns, sizes = ([int(part) for part in text.split(",")] for text in (given.columns, given.sizes))
    methods = given.methods.split(",")
    title = f"{' and '.join(methods)}: {given.records:,} records, blocks of {BLOCK:,}; times are CPU seconds"
    with table("-".join(methods), title, HEAD) as add:
        for method in methods:
            for name, make in SHAPES.items():
                for d in columns:
                    X = make(np.random.default_rng(0), given.records, d)
                    for k in sizes:
                        add(method, name, d, k, *measure(X, k, method))


if __name__ == "__main__":
    main()
