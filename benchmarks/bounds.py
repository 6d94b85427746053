"""Measure proven lower bounds for tables of 4,000 to 1,000,000 records.

Steps per table: the linear relaxation alone from MDAV's groups (CPU seconds until its bound is proven, gap to the best
groups), then `search` with `bound` for some seconds (loss, gap, cuts, CPU seconds), and the check of the certificate.
All steps use one thread. `--only eia:3,uniform-20000x2:3` selects rows, `--seconds 0` omits the search,
`--seeds 10` gives the mean of ten searches with the smallest and the largest gap.
"""

import argparse
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _reference import ROOT, load
from results import table

import shoal
from shoal.algorithms.optimize.sparse.prover import Rounds, bound_from
from shoal.algorithms.partition import find_groups
from shoal.core.measures import sse, sst, standardise
from shoal.core.progress import fresh_state

CASES = (
    "eia:3", "california:3", "california:5", "uniform-20000x2:3", "uniform-20000x4:3", "uniform-20000x8:3",
    "uniform-100000x2:3", "lognormal-100000x4:3", "uniform-1000000x2:3",
)  # fmt: skip
HEAD = (
    "table | k | MDAV, s {:.1f} | relaxation, s {:.1f} | its bound, % {:.5f} | its gap, % {:.2f} | loss, % {:.5f} | "
    "bound, % {:.5f} | gap, % {:.2f} | smallest and largest gap, % {:.2f}–{:.2f} | cuts {:.0f} | CPU time, s {:.1f} | "
    "check, s {:.1f} | memory, GB {:.2f}"
)
# Larger tables get fewer rounds of relaxation and no cuts.
HUGE = 500_000


def read(name: str) -> np.ndarray:
    """Return a reference table without incomplete records, or a generated one, named shape-recordsxcolumns."""
    if name == "california":
        return standardise(california())
    if "-" not in name:
        return load(name)
    kind, _, shape = name.partition("-")
    random = np.random.default_rng(1)
    size = tuple(map(int, shape.split("x")))
    return standardise(random.uniform(size=size) if kind == "uniform" else np.exp(random.normal(size=size)))


def california() -> np.ndarray:
    """Return the nine numeric columns of the complete records."""
    folder = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
    return pl.read_csv(folder / "california.csv").drop("ocean_proximity").drop_nulls().to_numpy().astype(np.float64)


def row(case: str, seconds: float, seeds: int) -> list[Any]:
    """Return the figures for a table and k, in the order of `HEAD`."""
    name, _, size = case.partition(":")
    X, k = read(name), int(size)
    huge = len(X) > HUGE
    began = time.process_time()
    start = find_groups(X, k, "mdav").labels
    mdav = time.process_time() - began
    began = time.process_time()
    rounds = (
        Rounds(guesses=8, exact=1, cuts=0, turns=0, steps=100, exact_steps=200) if huge else Rounds(cuts=0, turns=0)
    )
    relaxed = bound_from(X, k, start, state=fresh_state(), rounds=rounds)
    cells: list[Any] = [name, k, mdav, time.process_time() - began]
    total, found = sst(X), [relaxed]
    if seconds and not huge:
        began = time.process_time()
        options = {"time_limit": seconds, "bound": True, "threads": 1}
        found = [find_groups(X, k, "search", seed=seed, **options) for seed in range(seeds)]
    uppers = [sse(X, proof.labels) for proof in found]
    bounds = [proof.bound for proof in found]
    gaps = [100 * (1 - bound / upper) for bound, upper in zip(bounds, uppers, strict=True)]
    cells += [100 * relaxed.bound / total, 100 * (1 - relaxed.bound / np.mean(uppers))]
    cells += [100 * np.mean(uppers) / total, 100 * np.mean(bounds) / total]
    cells += [np.mean(gaps), [min(gaps), max(gaps)], np.mean([proof.facts.get("cuts", 0) for proof in found])]
    cells += [(time.process_time() - began) / len(found)]
    began = time.process_time()
    check = shoal.verify_bound(X, k, found[0].certificate)
    cells += [time.process_time() - began if check else f"no: {check.reason}"]
    return [*cells, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(CASES), help="rows, such as eia:3,uniform-20000x2:3")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of search and proof; 0 omits them")
    parser.add_argument("--seeds", type=int, default=1, help="searches of each table")
    arguments = parser.parse_args()
    warm = np.random.default_rng(0).normal(size=(2001, 2))
    outcome = find_groups(warm, 3, "search", time_limit=3.0, seed=0, bound=True)
    shoal.verify_bound(warm, 3, outcome.certificate)
    title = (
        f"Linear relaxation, then `search` with a bound for {arguments.seconds:g} s, mean of {arguments.seeds} seeds"
    )
    with table("bounds", title, HEAD) as add:
        for case in filter(None, arguments.only.split(",")):
            add(*row(case, arguments.seconds, arguments.seeds))


if __name__ == "__main__":
    main()
