"""Reproduce Tables 5–11 of Laszlo and Mukherjee (2005), each figure with the paper's in brackets.

Run ``python benchmarks/laszlo_mukherjee.py``; it takes a few minutes. ``--tables 5,6`` prints some of them. The
simulated data are drawn as in Section 4.1 of the paper, with another random generator, so figures on them agree only in
magnitude. Tarragona and Census are read from the folder in ``SHOAL_DATA`` (default ``../shared/data``) and omitted if
they are missing; Creta is not public. Columns of the two files are standardised, simulated ones are not.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from math import factorial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from results import table

import shoal
from shoal.algorithms.mst import _cut, preorder
from shoal.core.measures import canonical_labels, group_sizes, information_loss, sse, sst, standardise
from shoal.core.types import Floats, Ints

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CLUSTERS = 200
METHODS = {"D": "diameter", "C": "centroid", "M": "mst", "M-d": "mst-d", "M-c": "mst-c"}

SIGMA = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
TABLE_5 = {
    ("tarragona", 3): (15.60, 20.74, 17.14, 16.63, 16.69),
    ("tarragona", 4): (19.27, 27.80, 20.92, 19.66, 19.67),
    ("tarragona", 5): (22.67, 32.47, 24.57, 24.50, 24.52),
    ("tarragona", 10): (36.99, 44.90, 38.83, 38.58, 38.65),
    ("census", 3): (5.42, 5.35, 6.51, 6.11, 6.12),
    ("census", 4): (7.22, 7.17, 8.78, 8.24, 8.24),
    ("census", 5): (8.81, 8.69, 10.70, 10.30, 10.33),
    ("census", 10): (14.55, 14.34, 17.58, 17.17, 17.16),
    ("SIM_1", 3): (0.387, 0.366, 0.013, 0.012, 0.012),
    ("SIM_1", 4): (0.560, 0.552, 0.016, 0.015, 0.015),
    ("SIM_1", 5): (0.749, 0.717, 0.018, 0.017, 0.017),
    ("SIM_1", 10): (1.453, 1.430, 0.024, 0.023, 0.023),
}
TABLE_6 = {
    ("tarragona", 3): (10.23, 6.27),
    ("tarragona", 4): (8.75, 8.57),
    ("tarragona", 5): (8.13, 11.10),
    ("tarragona", 10): (9.84, 21.50),
    ("census", 3): (9.42, 6.46),
    ("census", 4): (6.22, 8.38),
    ("census", 5): (10.19, 12.00),
    ("census", 10): (6.02, 20.60),
    ("SIM_1", 3): (13.31, 6.66),
    ("SIM_1", 4): (15.12, 9.19),
    ("SIM_1", 5): (15.24, 11.42),
    ("SIM_1", 10): (15.40, 23.13),
}
TABLE_7 = {
    "D": (0.560, 0.584, 0.781, 1.137, 1.685, 3.243, 5.023, 9.069),
    "C": (0.552, 0.568, 0.762, 1.146, 1.678, 3.265, 5.065, 9.054),
    "M": (0.016, 0.100, 0.390, 0.876, 1.531, 3.418, 5.617, 10.993),
    "M-d": (0.015, 0.093, 0.359, 0.807, 1.418, 3.154, 5.182, 10.077),
    "M-c": (0.015, 0.093, 0.362, 0.811, 1.428, 3.179, 5.223, 10.138),
    "UB": (0.014, 0.085, 0.329, 0.738, 1.290, 2.893, 4.779, 9.532),
}
TABLE_8 = {
    "D": (0.022, 4.195, 3.506, 3.556, 0.020, 3.067, 2.679, 2.575, 0.018),
    "C": (0.022, 4.091, 3.650, 3.536, 0.020, 2.946, 2.636, 2.527, 0.018),
    "M": (0.024, 0.022, 0.022, 0.022, 0.022, 0.021, 0.021, 0.020, 0.020),
    "M-d": (0.021, 0.020, 0.021, 0.021, 0.020, 0.020, 0.019, 0.019, 0.019),
    "M-c": (0.021, 0.020, 0.021, 0.021, 0.020, 0.020, 0.019, 0.019, 0.019),
    "fixed/MST": (1.048, 204.550, 166.952, 168.381, 1.000, 147.300, 138.737, 133.000, 0.947),
}
TABLE_9 = {
    "MST construction": (661, 3793, 7448, 14271, 23631, 33665),
    "descendant counts": (0.02, 0.03, 0.03, 0.05, 0.05, 0.06),
    "cutting, clusters": (7.06, 25.03, 56.13, 102.20, 153.22, 227.16),
    "total": (668, 3819, 7505, 14374, 23785, 33894),
}
TABLE_10 = (123, 129, 130, 165, 157, 207)
TABLE_11 = {
    10: ("2226", "336", "126", "1"),
    15: ("10461451", "981981", "137566", "1"),
    20: ("182285304201", "13519012221", "790940436", "92378"),
    50: ("1.425e43", "4.529e41", "3.429e39", "4.245e29"),
    100: ("7.697e108", "4.425e107", "2.900e104", "2.066e87"),
    200: ("1.163e263", "8.639e263", "3.621e259", "1.094e230"),
}


def simulate(d: int, sigma: float, least: int, most: int, seed: int) -> tuple[Floats, Ints]:
    """Draw `CLUSTERS` Gaussian clusters around uniform centres in [−1, 1]^d; return the records and their cluster."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, (CLUSTERS, d))
    cluster = np.repeat(np.arange(CLUSTERS), rng.integers(least, most + 1, CLUSTERS))
    return centres[cluster] + rng.normal(0, sigma, (len(cluster), d)), cluster


def sim(number: int) -> tuple[Floats, Ints]:
    """Draw SIM_1 … SIM_29."""
    if number <= 8:
        return simulate(10, SIGMA[number - 1], 10, 100, number)
    if number <= 14:
        y = 100 * (number - 8)
        return simulate(10, 0.1, y, y, number)
    if number <= 20:
        return simulate((20, 40, 60, 80, 100, 200)[number - 15], 0.1, 50, 50, number)
    return simulate(10, 0.01, number - 13, number - 13, number)


def losses(X: Floats, k: int, names: tuple[str, ...] = tuple(METHODS)) -> dict[str, float]:
    tree = shoal.spanning_tree(X)
    found = {}
    for name in names:
        options: dict[str, object] = {"tree": tree} if name.startswith("M") else {}
        found[name] = information_loss(X, shoal.partition(X, k, METHODS[name], **options))
    return found


def small_sets() -> dict[str, Floats]:
    sets = {}
    for name in ("tarragona", "census"):
        if (DATA / f"{name}.csv").exists():
            sets[name] = standardise(pl.read_csv(DATA / f"{name}.csv").to_numpy().astype(np.float64))
        else:
            print(f"(omitted: {name}.csv is not in {DATA.name}. Set SHOAL_DATA to its folder.)")
    sets["SIM_1"] = sim(1)[0]
    return sets


def show(number: int, title: str, head: list[str], rows: list[list[Any]]) -> None:
    """Print a table of the paper; cells with two figures show the paper's in brackets."""
    pairs = [any(isinstance(row[i], tuple) for row in rows) for i in range(len(head))]
    columns = [f"{name} {{}} ({{}})" if pair else name for name, pair in zip(head, pairs, strict=True)]
    with table(f"table-{number}", f"Table {number}: {title} (in brackets: the paper)", " | ".join(columns)) as add:
        for row in rows:
            add(*row)


def pair(ours: float, paper: float, digits: int = 3) -> tuple[str, str]:
    return f"{ours:.{digits}f}", f"{paper:.{digits}f}"


def table_5() -> None:
    rows = []
    for name, X in small_sets().items():
        for k in (3, 4, 5, 10):
            digits = 3 if name == "SIM_1" else 2
            found = losses(X, k)
            paper = TABLE_5[name, k]
            rows.append([name, str(k), *(pair(found[m], p, digits) for m, p in zip(METHODS, paper, strict=True))])
    show(5, "information loss in percent", ["data", "k", *METHODS], rows)


def table_6() -> None:
    rows = []
    for name, X in small_sets().items():
        tree = shoal.spanning_tree(X)
        for k in (3, 4, 5, 10):
            sizes = group_sizes(shoal.partition(X, k, "mst", tree=tree))
            oversized = sizes[sizes >= 2 * k]
            share, mean = TABLE_6[name, k]
            rows.append(
                [name, str(k), pair(100 * len(oversized) / len(sizes), share, 2), pair(oversized.mean(), mean, 2)]
            )
    show(6, "oversized groups of M", ["data", "k", "share, %", "mean size"], rows)


def upper_bound(X: Floats, cluster: Ints, k: int) -> float:
    """Group each simulated cluster separately by D and by C, and keep the better partition."""
    return min(
        100
        * sum(sse(X[cluster == c], shoal.partition(X[cluster == c], k, method)) for c in np.unique(cluster))
        / sst(X)
        for method in ("diameter", "centroid")
    )


def table_7() -> None:
    found = []
    for number in range(1, 9):
        X, cluster = sim(number)
        found.append({**losses(X, 4), "UB": upper_bound(X, cluster, 4)})
    rows = [
        [name, *(pair(column[name], p) for column, p in zip(found, paper, strict=True))]
        for name, paper in TABLE_7.items()
    ]
    ratio = [min(c["D"], c["C"]) / min(c["M"], c["M-d"], c["M-c"]) for c in found]
    best = [(min(TABLE_7[m][i] for m in ("D", "C")), min(TABLE_7[m][i] for m in ("M", "M-d", "M-c"))) for i in range(8)]
    rows.append(["fixed/MST (Fig. 3)", *(pair(r, a / b, 2) for r, (a, b) in zip(ratio, best, strict=True))])
    show(7, "information loss in percent by spread of the clusters, k = 4", ["σ", *map(str, SIGMA)], rows)


def table_8() -> None:
    found = []
    for number in range(21, 30):
        column = losses(sim(number)[0], 4)
        column["fixed/MST"] = min(column["D"], column["C"]) / min(column["M-d"], column["M-c"])
        found.append(column)
    rows = [
        [name, *(pair(column[name], p) for column, p in zip(found, paper, strict=True))]
        for name, paper in TABLE_8.items()
    ]
    title = "information loss in percent by records per cluster, k = 4"
    show(8, title, ["records per cluster", *map(str, range(8, 17))], rows)


def timed(X: Floats, k: int) -> dict[str, float]:
    """Measure the phases of method M on one thread, in CPU seconds."""
    start = process_time()
    tree = shoal.spanning_tree(X, threads=1)
    built = process_time()
    preorder(tree.ends)
    counted = process_time()
    labels = _cut(tree.ends, k)
    canonical_labels(labels)
    done = process_time()
    # Cutting repeats the layout of the tree: its time is part of both phases but counts once in the total.
    return {
        "MST construction": built - start,
        "descendant counts": counted - built,
        "cutting, clusters": done - counted - (counted - built),
        "total": done - start - (counted - built),
    }


def best_time(X: Floats, k: int, repetitions: int = 2) -> dict[str, float]:
    return min((timed(X, k) for _ in range(repetitions)), key=lambda phases: phases["total"])


def table_9() -> None:
    found = [best_time(sim(number)[0], 4) for number in range(9, 15)]
    rows = [
        [name, *((f"{column[name]:.3f}", f"{p:g}") for column, p in zip(found, paper, strict=True))]
        for name, paper in TABLE_9.items()
    ]
    title = "CPU seconds of M by number of records, d = 10, k = 4, one thread"
    show(9, title, ["n", *(f"{n},000" for n in range(20, 121, 20))], rows)


def table_10() -> None:
    found = [best_time(sim(number)[0], 4)["total"] for number in range(15, 21)]
    rows = [["total", *((f"{ours:.2f}", str(paper)) for ours, paper in zip(found, TABLE_10, strict=True))]]
    title = "CPU seconds of M by number of columns, n = 10,000, k = 4, one thread"
    show(10, title, ["d", "20", "40", "60", "80", "100", "200"], rows)


@cache
def count_partitions(n: int, k: int, k0: int, m: int = 0) -> int:
    """Count the partitions of n records into groups of k … k0 with at least m groups of k: Appendix A.

    Equations (4) and (5), with G_m(k, n) = n! / ((k!)^m m! (n − mk)!) as defined in the text (the second line of
    equation (6) lacks the m!).
    """
    if k > k0:
        return 1 if n == 0 else 0
    if n < m * k:
        return 0
    ways = factorial(n) // (factorial(k) ** m * factorial(m) * factorial(n - m * k))
    if n == m * k:
        return ways
    return count_partitions(n - m * k, k + 1, k0) * ways + count_partitions(n, k, k0, m + 1)


def table_11() -> None:
    rows = []
    for n, paper in TABLE_11.items():
        cells = []
        for k, printed in zip((3, 4, 5, 10), paper, strict=True):
            count = count_partitions(n, k, 2 * k - 1)
            cells.append((str(count) if count < 10**12 else f"{float(count):.3e}".replace("e+", "e"), printed))
        rows.append([str(n), *cells])
    show(11, "number of partitions into groups of k … 2k−1", ["n", "k=3", "k=4", "k=5", "k=10"], rows)


TABLES = {5: table_5, 6: table_6, 7: table_7, 8: table_8, 9: table_9, 10: table_10, 11: table_11}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(map(str, TABLES)), help="which tables, e.g. 5,6")
    chosen = [int(number) for number in parser.parse_args().tables.split(",")]
    # Compile before timing.
    shoal.spanning_tree(np.random.default_rng(0).random((200, 2)), "boruvka", threads=1)
    timed(np.random.default_rng(0).random((200, 2)), 3)
    for number in chosen:
        TABLES[number]()


if __name__ == "__main__":
    main()
