"""Seed 004, Solanas et al. 2006: Tables 3, 4 and 5 beside the paper's, and its Figures 5 to 8.

Run: python benchmarks/solanas.py [--figures FOLDER] [--dimensions 2,3,4,5,10] [--skewed 10000000]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import polars as pl

import shoal
from shoal.blocks.blocking import InMemory, extent_of, find_blocks
from shoal.blocks.rule import Blocking

RECORDS = 2_500_000
SIZES = (500, 1000, 2000, 5000, 10_000)
COUNTS = (500_000, 1_000_000, 1_500_000, 2_000_000)
BLOCKINGS = {"univariate": "univariate", "all": "2^d-tree"}
TREE = {2: 4.55, 3: 593.64, 4: 7953.22, 5: 37269.3, 10: 916119.0}
INTERVALS = {2: 4.9, 3: 1155.54, 4: 21004.5, 5: 99876.3, 10: 1985030.0}
BLOCKS = {500: (5000, 16384), 1000: (2500, 4096), 2000: (1250, 4096), 5000: (500, 1024), 10_000: (250, 1024)}
EIA = {
    (100, 3): (663.435, 456.846),
    (200, 3): (503.281, 464.589),
    (100, 5): (1651.86, 713.095),
    (200, 5): (1179.25, 734.925),
}
NOT_NUMBERS = ["UTILNAME", "STATE", "YEAR", "MONTH"]


def uniform(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-10_000, 10_000, (n, d))


def sse(X: np.ndarray, k: int, L: int, split: str) -> tuple[float, float]:
    """Return the SSE on standardised columns and the seconds."""
    start = time.perf_counter()
    release = shoal.mask(X, k, block=L, split=split)
    return release.loss / 100 * X.size, time.perf_counter() - start


def table3() -> None:
    print(f"Table 3. Number of blocks, n = {RECORDS:,}, d = 2, k = 3 (in brackets: the paper)\n")
    print("| L | univariate | 2^d-tree |\n|---|---|---|")
    X = uniform(RECORDS, 2)
    roots = np.zeros(len(X), dtype=np.int64)
    records, extent = InMemory(X, roots), extent_of(X, roots)
    for L, paper in BLOCKS.items():
        found = [len(find_blocks(records, extent, Blocking(L, 3, split)).sizes) for split in ("univariate", "all")]
        print(f"| {L} | {found[0]} ({paper[0]}) | {found[1]} ({paper[1]}) |", flush=True)


def table4(dimensions: list[int]) -> None:
    print(f"\nTable 4. SSE, n = {RECORDS:,}, k = 3, L = 10000 (in brackets: the paper)\n")
    print("| d | 2^d-tree | to the paper | seconds | univariate | seconds | one column at a time |")
    print("|---|---|---|---|---|---|---|")
    for d in dimensions:
        X = uniform(RECORDS, d)
        tree, seconds = sse(X, 3, 10_000, "all")
        intervals, longer = sse(X, 3, 10_000, "univariate")
        one, _ = sse(X, 3, 10_000, "one")
        print(
            f"| {d} | {tree:,.2f} ({TREE[d]:,.2f}) | {100 * (tree / TREE[d] - 1):+.1f} % | {seconds:.1f} | "
            f"{intervals:,.2f} ({INTERVALS[d]:,.2f}) | {longer:.1f} | {one:,.2f} |",
            flush=True,
        )


def table5() -> None:
    folder = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
    path = folder / "eia.csv"
    if not path.exists():
        print("\nTable 5 needs eia.csv in the folder that SHOAL_DATA names.")
        return
    X = pl.read_csv(path).drop(NOT_NUMBERS).to_numpy().astype(np.float64)
    print(f"\nTable 5. SSE, EIA ({X.shape[0]} records, d = {X.shape[1]}; in brackets: the paper)\n")
    print("| L | k | univariate | 2^d-tree | one column at a time | without blocks |\n|---|---|---|---|---|---|")
    for (L, k), paper in EIA.items():
        intervals, tree, one = (sse(X, k, L, split)[0] for split in ("univariate", "all", "one"))
        whole = shoal.mask(X, k, block=0).loss / 100 * X.size
        print(
            f"| {L} | {k} | {intervals:.2f} ({paper[0]}) | {tree:.2f} ({paper[1]}) | {one:.2f} | {whole:.2f} |",
            flush=True,
        )


def skew(n: int) -> None:
    """Print what the paper's rule leaves of a skewed table, and what splitting one column at a time does."""
    d, L = 10, 10_000
    print(f"\nSkewed records: log-normal, n = {n:,}, d = {d}, k = 3, L = {L}\n")
    print("| split | leaves | median size | below k | blocks | rounds | seconds |\n|---|---|---|---|---|---|---|")
    X, roots = np.random.default_rng(0).lognormal(0, 1, (n, d)), np.zeros(n, dtype=np.int64)
    for split in ("all", "one"):
        start = time.perf_counter()
        found = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(L, 3, split))
        leaves = found.tree.sizes
        print(
            f"| {split} | {len(leaves):,} | {np.median(leaves):,.0f} | {(leaves < 3).sum():,} | {len(found.sizes):,} | "
            f"{found.facts['rounds']} | {time.perf_counter() - start:.1f} |",
            flush=True,
        )


def figures(folder: Path) -> None:
    """Draw Figures 5 (SSE by block size), 6 and 7 (by records) and 8 (by dimension)."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    found = {
        (n, L, split): sse(X, 3, L, split)[0]
        for n in COUNTS
        for X in [uniform(n, 2)]
        for L in SIZES
        for split in BLOCKINGS
    }
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, n in zip(figure.subplots(2, 2).flat, COUNTS, strict=True):
        for (split, name), style in zip(BLOCKINGS.items(), ("o-", "s--"), strict=True):
            axes.plot(SIZES, [found[n, L, split] for L in SIZES], style, label=name)
        axes.set(title=f"{n:,} records, d = 2", xlabel="block size L", ylabel="SSE", ylim=(0, None))
        axes.legend()
    figure.savefig(folder / "figure5.png", dpi=150)
    for number, split in ((6, "all"), (7, "univariate")):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.subplots()
        for L in SIZES:
            axes.plot([n / 1e6 for n in COUNTS], [found[n, L, split] for n in COUNTS], "o-", label=f"L = {L}")
        axes.set(title=f"{BLOCKINGS[split]} blocking, d = 2", xlabel="records (millions)", ylabel="SSE")
        figure.legend(loc="outside right upper")
        figure.savefig(folder / f"figure{number}.png", dpi=150)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for (split, name), style in zip(BLOCKINGS.items(), ("o-", "s--"), strict=True):
        losses = [sse(uniform(COUNTS[0] // 2, d), 3, SIZES[-1], split)[0] for d in range(2, 11)]
        axes.plot(range(2, 11), losses, style, label=name)
    axes.set(title=f"{COUNTS[0] // 2:,} records, L = {SIZES[-1]}", xlabel="d", ylabel="SSE")
    axes.legend()
    figure.savefig(folder / "figure8.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--dimensions", default="2,3,4,5,10")
    parser.add_argument("--skewed", type=int, default=10_000_000)
    given = parser.parse_args()
    table3()
    table5()
    if given.skewed:
        skew(given.skewed)
    table4([int(d) for d in given.dimensions.split(",") if d])
    if given.figures:
        figures(given.figures)


if __name__ == "__main__":
    main()
