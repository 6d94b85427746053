"""Solanas et al. 2006: Tables 3, 4 and 5 beside the paper's, and its Figures 4 to 8 as numbers and drawn.

Groups are MDAV's, as in the paper. The figures take the paper's records divided by --divide.

Run: python benchmarks/solanas.py [--only tables|figures] [--figures FOLDER] [--divide 1] [--dimensions 2,3,4,5,10]
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


def sse(X: np.ndarray, k: int, L: int, split: str | None) -> tuple[float, float]:
    """Return the SSE on standardised columns and the seconds."""
    start = time.perf_counter()
    release = shoal.mask(X, k, method="mdav", block=L, split=split)
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
    print("| L | k | sorted by RESREVENUE | univariate | 2^d-tree | one column at a time | chosen | without blocks |")
    print("|---|---|---|---|---|---|---|---|")
    for (L, k), paper in EIA.items():
        intervals, tree, one, chosen = (sse(X, k, L, split)[0] for split in ("univariate", "all", "one", None))
        runs = shoal.mask(X, k, method="mdav", block=L, split="sorted", block_by=1).loss / 100 * X.size
        whole = shoal.mask(X, k, method="mdav", block=0).loss / 100 * X.size
        print(
            f"| {L} | {k} | {runs:.2f} ({paper[0]}) | {intervals:.2f} | {tree:.2f} ({paper[1]}) | {one:.2f} | "
            f"{chosen:.2f} | {whole:.2f} |",
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
        leaves = found.stages[-1].tree.sizes
        print(
            f"| {split} | {len(leaves):,} | {np.median(leaves):,.0f} | {(leaves < 3).sum():,} | {len(found.sizes):,} | "
            f"{found.facts['rounds']} | {time.perf_counter() - start:.1f} |",
            flush=True,
        )


def figure4(divide: int) -> dict[tuple[int, str], int]:
    """Print the number of blocks that are not empty, by L."""
    X = uniform(RECORDS // divide, 2)
    roots = np.zeros(len(X), dtype=np.int64)
    records, extent = InMemory(X, roots), extent_of(X, roots)
    found = {
        (L, split): len(find_blocks(records, extent, Blocking(L // divide, 3, split)).sizes)
        for L in SIZES
        for split in BLOCKINGS
    }
    print(f"\nFigure 4. Number of useful blocks, n = {len(X):,}, d = 2, k = 3\n")
    print("| L | univariate | 2^d-tree |\n|---|---|---|")
    for L in SIZES:
        print(f"| {L // divide} | {found[L, 'univariate']} | {found[L, 'all']} |", flush=True)
    return found


def figures567(divide: int) -> dict[tuple[int, int, str], float]:
    """Print the SSE by L and number of records: Figure 5 by L, Figure 6 the tree and Figure 7 intervals by records."""
    print("\nFigures 5 to 7. SSE, d = 2, k = 3: univariate / 2^d-tree\n")
    print(f"| records | {' | '.join(f'L = {L}' for L in SIZES)} |\n|---|{'---|' * len(SIZES)}")
    found = {}
    for n in COUNTS:
        X = uniform(n // divide, 2)
        for L in SIZES:
            for split in BLOCKINGS:
                found[n, L, split] = sse(X, 3, L, split)[0]
        cells = [f"{found[n, L, 'univariate']:.3f} / {found[n, L, 'all']:.3f}" for L in SIZES]
        print(f"| {len(X):,} | {' | '.join(cells)} |", flush=True)
    return found


def figure8(divide: int) -> dict[tuple[int, str], float]:
    """Print the SSE by dimension."""
    n = COUNTS[0] // 2 // divide
    print(f"\nFigure 8. SSE, n = {n:,}, k = 3, L = {SIZES[-1]}\n")
    print("| d | univariate | 2^d-tree |\n|---|---|---|")
    found = {}
    for d in range(2, 11):
        X = uniform(n, d)
        for split in BLOCKINGS:
            found[d, split] = sse(X, 3, SIZES[-1], split)[0]
        print(f"| {d} | {found[d, 'univariate']:,.2f} | {found[d, 'all']:,.2f} |", flush=True)
    return found


def figures(folder: Path | None, divide: int) -> None:
    """Print the figures, and draw them if there is a folder for it."""
    blocks, losses, dimensions = figure4(divide), figures567(divide), figure8(divide)
    if folder is None:
        return
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    styles = list(zip(BLOCKINGS.items(), ("o-", "s--"), strict=True))

    def draw(number: int, lines: dict[str, tuple[str, list[float], list[float]]], **said: str) -> None:
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.subplots()
        for name, (style, x, y) in lines.items():
            axes.plot(x, y, style, label=name)
        axes.set(**said)
        axes.legend()
        figure.savefig(folder / f"figure{number}.png", dpi=150)

    sizes, counts = [float(L) for L in SIZES], [n / divide for n in COUNTS]
    by_size = {name: (style, sizes, [float(blocks[L, split]) for L in SIZES]) for (split, name), style in styles}
    draw(4, by_size, xlabel="L", ylabel="useful blocks")
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, n in zip(figure.subplots(2, 2).flat, COUNTS, strict=True):
        for (split, name), style in styles:
            axes.plot(SIZES, [losses[n, L, split] for L in SIZES], style, label=name)
        axes.set(title=f"{n // divide:,} records, d = 2", xlabel="L", ylabel="SSE", ylim=(0, None))
        axes.legend()
    figure.savefig(folder / "figure5.png", dpi=150)
    for number, split in ((6, "all"), (7, "univariate")):
        by_count = {f"L = {L}": ("o-", counts, [losses[n, L, split] for n in COUNTS]) for L in SIZES}
        draw(number, by_count, title=BLOCKINGS[split], xlabel="records", ylabel="SSE")
    places = [float(d) for d in range(2, 11)]
    by_d = {name: (style, places, [dimensions[d, split] for d in range(2, 11)]) for (split, name), style in styles}
    draw(8, by_d, xlabel="d", ylabel="SSE")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["tables", "figures"])
    parser.add_argument("--figures", type=Path, help="a folder to draw them to")
    parser.add_argument("--divide", type=int, default=1)
    parser.add_argument("--dimensions", default="2,3,4,5,10")
    parser.add_argument("--skewed", type=int, default=10_000_000)
    given = parser.parse_args()
    if given.only != "figures":
        table3()
        table5()
        if given.skewed:
            skew(given.skewed)
        table4([int(d) for d in given.dimensions.split(",") if d])
    if given.only != "tables":
        figures(given.figures, given.divide)


if __name__ == "__main__":
    main()
