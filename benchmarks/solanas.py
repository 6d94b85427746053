"""Reproduce Tables 3, 4 and 5 of Solanas et al. (2006), and Figures 4 to 8 as numbers and pictures.

Groups are formed by MDAV, as in the paper. The figures use the paper's numbers of records divided by --divide.

Run: python benchmarks/solanas.py [--only tables|figures] [--figures FOLDER] [--divide 1] [--dimensions 2,3,4,5,10]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import polars as pl
from results import table

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
    X = uniform(RECORDS, 2)
    roots = np.zeros(len(X), dtype=np.int64)
    records, extent = InMemory(X, roots), extent_of(X, roots)
    title = f"Table 3: number of blocks, n = {RECORDS:,}, d = 2, k = 3 (in brackets: the paper)"
    with table("table-3", title, "L | univariate {} ({}) | 2^d-tree {} ({})") as add:
        for L, paper in BLOCKS.items():
            counts = [len(find_blocks(records, extent, Blocking(L, 3, split)).sizes) for split in ("univariate", "all")]
            add(L, *zip(counts, paper, strict=True))


def table4(dimensions: list[int]) -> None:
    title = f"Table 4: SSE, n = {RECORDS:,}, k = 3, L = 10000 (in brackets: the paper)"
    head = "d | 2^d-tree {:,.2f} ({:,.2f}) | against the paper, % {:+.1f} | 2^d-tree, s {:.1f} | "
    head += "univariate {:,.2f} ({:,.2f}) | univariate, s {:.1f} | one column at a time {:,.2f}"
    with table("table-4", title, head) as add:
        for d in dimensions:
            X = uniform(RECORDS, d)
            tree, seconds = sse(X, 3, 10_000, "all")
            intervals, longer = sse(X, 3, 10_000, "univariate")
            one, _ = sse(X, 3, 10_000, "one")
            change = 100 * (tree / TREE[d] - 1)
            add(d, [tree, TREE[d]], change, seconds, [intervals, INTERVALS[d]], longer, one)


def table5() -> None:
    folder = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
    path = folder / "eia.csv"
    if not path.exists():
        print("\nTable 5 is omitted: set SHOAL_DATA to the folder that holds eia.csv.")
        return
    X = pl.read_csv(path).drop(NOT_NUMBERS).to_numpy().astype(np.float64)
    title = f"Table 5: SSE, EIA ({X.shape[0]} records, d = {X.shape[1]}; in brackets: the paper)"
    head = "L | k | sorted by RESREVENUE {:.2f} ({}) | univariate {:.2f} | 2^d-tree {:.2f} ({}) | "
    head += "one column at a time {:.2f} | default split {:.2f} | without blocks {:.2f}"
    with table("table-5", title, head) as add:
        for (L, k), paper in EIA.items():
            intervals, tree, one, default = (sse(X, k, L, split)[0] for split in ("univariate", "all", "one", None))
            runs = shoal.mask(X, k, method="mdav", block=L, split="sorted", block_by=1).loss / 100 * X.size
            whole = shoal.mask(X, k, method="mdav", block=0).loss / 100 * X.size
            add(L, k, [runs, paper[0]], intervals, [tree, paper[1]], one, default, whole)


def skew(n: int) -> None:
    """Print the leaves of a skewed table, split by the paper's rule and one column at a time."""
    d, L = 10, 10_000
    title = f"Skewed records: log-normal, n = {n:,}, d = {d}, k = 3, L = {L}, in memory"
    head = "split | leaves {:,} | median size {:,.0f} | leaves below k {:,} | blocks {:,} | rounds | time, s {:.1f}"
    X, roots = np.random.default_rng(0).lognormal(0, 1, (n, d)), np.zeros(n, dtype=np.int64)
    with table("skewed", title, head) as add:
        for split in ("all", "one"):
            start = time.perf_counter()
            blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(L, 3, split))
            seconds, leaves = time.perf_counter() - start, blocks.stages[-1].tree.sizes
            below, rounds = (leaves < 3).sum(), blocks.facts["rounds"]
            add(split, len(leaves), np.median(leaves), below, len(blocks.sizes), rounds, seconds)


def figure4(divide: int) -> dict[tuple[int, str], int]:
    """Print the number of non-empty blocks by L."""
    X = uniform(RECORDS // divide, 2)
    roots = np.zeros(len(X), dtype=np.int64)
    records, extent = InMemory(X, roots), extent_of(X, roots)
    found = {
        (L, split): len(find_blocks(records, extent, Blocking(L // divide, 3, split)).sizes)
        for L in SIZES
        for split in BLOCKINGS
    }
    title = f"Figure 4: number of useful blocks, n = {len(X):,}, d = 2, k = 3"
    with table("figure-4", title, "L | univariate | 2^d-tree") as add:
        for L in SIZES:
            add(L // divide, found[L, "univariate"], found[L, "all"])
    return found


def figures567(divide: int) -> dict[tuple[int, int, str], float]:
    """Print the SSE by L and number of records: Figure 5 by L, Figure 6 the tree and Figure 7 intervals by records."""
    found = {}
    head = " | ".join(["records {:,}", *(f"L = {L} {{:.3f}} / {{:.3f}}" for L in SIZES)])
    with table("figures-5-to-7", "Figures 5 to 7: SSE, d = 2, k = 3, univariate / 2^d-tree", head) as add:
        for n in COUNTS:
            X = uniform(n // divide, 2)
            for L in SIZES:
                for split in BLOCKINGS:
                    found[n, L, split] = sse(X, 3, L, split)[0]
            add(len(X), *([found[n, L, split] for split in BLOCKINGS] for L in SIZES))
    return found


def figure8(divide: int) -> dict[tuple[int, str], float]:
    """Print the SSE by dimension."""
    n = COUNTS[0] // 2 // divide
    found = {}
    title = f"Figure 8: SSE, n = {n:,}, k = 3, L = {SIZES[-1]}"
    with table("figure-8", title, "d | univariate {:,.2f} | 2^d-tree {:,.2f}") as add:
        for d in range(2, 11):
            X = uniform(n, d)
            for split in BLOCKINGS:
                found[d, split] = sse(X, 3, SIZES[-1], split)[0]
            add(d, *(found[d, split] for split in BLOCKINGS))
    return found


def figures(folder: Path | None, divide: int) -> None:
    """Print the figures, and draw them if a folder is set."""
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
    parser.add_argument("--figures", type=Path, help="folder for pictures of the figures")
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
