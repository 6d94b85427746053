"""Compare the speed of `shoal.spanning_tree` with other programs for the same tree, one thread each.

Run: python benchmarks/spanning_tree.py. The peers (quitefastmst, genieclust, mlpack, hdbscan, fast_hdbscan) are
imported in this Python or in that of ``--peers``: a separate virtual environment keeps their licences and requirements
out of the project. Missing programs are reported. Every program runs in a separate process; the time is the shortest
CPU time of ``--repeat`` runs after one on a small input, which compiles or loads code. The total length of every tree
is compared with shoal's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from results import table

THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Pairs (program, data) too slow to repeat, which run once.
ONCE = {("hdbscan", "clusters"), ("fast_hdbscan", "clusters"), ("fast_hdbscan", "uniform"), ("mlpack", "clusters")}
# hdbscan takes minutes on a million records.
LEFT_OUT = {("hdbscan", "uniform")}


def clusters() -> Any:
    """Draw SIM_14 of Laszlo and Mukherjee (2005): 200 Gaussian clusters of 600 records, σ = 0.1, d = 10."""
    rng = np.random.default_rng(14)
    return np.repeat(rng.uniform(-1, 1, (200, 10)), 600, axis=0) + rng.normal(0, 0.1, (120_000, 10))


def uniform() -> Any:
    return np.random.default_rng(2).random((1_000_000, 2))


DATA = {"clusters": clusters, "uniform": uniform}
TITLES = {
    "clusters": "200 Gaussian clusters, σ = 0.1, d = 10, n = 120,000",
    "uniform": "uniform, d = 2, n = 1,000,000",
}


def by_shoal(X: Any) -> float:
    import shoal

    return shoal.spanning_tree(X, threads=1).weight


def by_quitefastmst(X: Any) -> float:
    return float(import_module("quitefastmst").mst_euclid(X)[0].sum())


def by_genieclust(X: Any) -> float:
    # genieclust now uses the tree of quitefastmst, so a whole fit is timed, as users run it.
    fitted = import_module("genieclust").Genie(n_clusters=2, M=1).fit(X)
    return float(np.sum(getattr(fitted, "_tree_d_", np.nan)))


def by_mlpack(X: Any) -> float:
    return float(import_module("mlpack").emst(input_=X)["output"][:, 2].sum())


def by_hdbscan(X: Any) -> float:
    boruvka = import_module("hdbscan._hdbscan_boruvka").KDTreeBoruvkaAlgorithm
    tree = import_module("sklearn.neighbors").KDTree(X, leaf_size=40)
    # With one neighbour, mutual reachability equals distance.
    return float(boruvka(tree, 0, leaf_size=13, approx_min_span_tree=False, n_jobs=1).spanning_tree()[:, 2].sum())


def by_fast_hdbscan(X: Any) -> float:
    compute = import_module("fast_hdbscan.hdbscan").compute_minimum_spanning_tree
    return float(compute(X, min_samples=1)[0][:, 2].sum())


PROGRAMS = {
    "shoal": by_shoal,
    "quitefastmst": by_quitefastmst,
    "genieclust": by_genieclust,
    "mlpack": by_mlpack,
    "hdbscan": by_hdbscan,
    "fast_hdbscan": by_fast_hdbscan,
}


def worker(program: str, path: str, repeat: int) -> None:
    """Print the shortest CPU time and the total length."""
    function = PROGRAMS[program]
    X = np.load(path)
    function(np.ascontiguousarray(X[: 50 * 32 : 2]))
    if program == "shoal":
        import shoal

        shoal.spanning_tree(X[:1000], "boruvka", threads=1)
    times = []
    for _ in range(repeat):
        start = process_time()
        weight = function(X)
        times.append(process_time() - start)
    print(min(times), weight)


def run(python: str, program: str, path: str, repeat: int) -> tuple[float, float] | str:
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    command = [python, __file__, "--worker", program, path, str(repeat)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    seconds, weight = map(float, done.stdout.split()[-2:])
    return seconds, weight


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default=sys.executable, help="Python interpreter with the other programs")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="programs to run, separated by commas")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        program, path, repeat = arguments.worker
        worker(program, path, int(repeat))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, draw in DATA.items():
            path = str(Path(folder) / f"{name}.npy")
            np.save(path, draw())
            compare(name, path, arguments.peers, arguments.programs.split(","), arguments.repeat)
    whole_method(arguments.repeat)


def whole_method(repeat: int) -> None:
    """Print the cost of method mst-d beyond its tree."""
    import shoal

    X = clusters()
    shoal.partition(X[:3000], 4, "mst-d", spanning="boruvka")
    trees, rests = [], []
    for _ in range(repeat):
        start = process_time()
        tree = shoal.spanning_tree(X, threads=1)
        built = process_time()
        shoal.partition(X, 4, "mst-d", tree=tree)
        trees.append(built - start)
        rests.append(process_time() - built)
    whole = min(trees) + min(rests)
    head = "method | CPU time, s {:.2f} | CPU time / that of its tree {:.2f}"
    with table("whole", f"mst-d, {TITLES['clusters']}, k = 4", head) as add:
        add("mst-d", whole, whole / min(trees))


def compare(name: str, path: str, peers: str, programs: list[str], repeat: int) -> None:
    results: dict[str, tuple[float, float]] = {}
    skipped = []
    for program in programs:
        if (program, name) in LEFT_OUT:
            skipped.append(f"{program}: left out, it takes minutes")
            continue
        times = 1 if (program, name) in ONCE else repeat
        result = run(sys.executable if program == "shoal" else peers, program, path, times)
        if isinstance(result, str):
            skipped.append(f"{program}: {result}")
        else:
            results[program] = result
    base = results.get("quitefastmst", (np.nan, np.nan))[0]
    head = "program | CPU time, s {:.2f} | CPU time / that of quitefastmst {:.2f} | total length {:.6f}"
    with table(name, f"{TITLES[name]}, one thread", head) as add:
        for program, (seconds, weight) in sorted(results.items(), key=lambda item: item[1]):
            add(program, seconds, seconds / base, weight)
    for line in skipped:
        print(f"(skipped {line})")


if __name__ == "__main__":
    main()
