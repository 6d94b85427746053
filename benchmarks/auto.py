"""Measure the gain of `auto` over MDAV and its cost, on the reference tables and on a million records.

The first table compares the loss with MDAV's after some light steps per record (``--steps``), with CPU microseconds per
record; ``--best`` adds effort="best". ``--million`` masks a large table of 5 columns with `shoal.mask`.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _reference import load
from results import table

import shoal
from shoal.algorithms.optimize.exchange import anneal_by_exchange
from shoal.core.measures import sse
from shoal.core.progress import fresh_state


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a function, its CPU seconds and its elapsed seconds."""
    cpu, clock = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - clock


def reference(names: list[str], sizes: list[int], steps: list[int], seeds: int, best: bool) -> None:
    """Print the rows of the reference tables."""
    efforts = [*(f"{count} steps" for count in steps), *(["best"] if best else [])]
    head = "table | k | MDAV, µs {:.0f}" + "".join(
        f" | {each}: loss, % {{:+.1f}} | {each}, µs {{:.0f}}" for each in efforts
    )
    title = f"Change of loss against MDAV (mean of {seeds} seeds) and CPU µs per record, by steps per record"
    with table("reference", title, head) as add:
        for name in names:
            X = load(name)
            for k in sizes:
                add(name, k, *row(X, k, steps, seeds, best))


def row(X: np.ndarray, k: int, steps: list[int], seeds: int, best: bool) -> list[float]:
    """Return the figures for a table and k: µs of MDAV, then the change of loss and µs of each effort."""
    centred, n = np.ascontiguousarray(X - X.mean(axis=0)), len(X)
    shoal.partition(X[: 4 * k], k, effort="best" if best else "good")  # compiles
    start, cpu, _ = timed(lambda: shoal.partition(X, k, "mdav"))
    base, figures = sse(X, start), [1e6 * cpu / n]
    for count in steps:
        runs = [
            timed(lambda c=count, s=seed: anneal_by_exchange(centred, k, start, c, s, fresh_state(), 1))
            for seed in range(seeds)
        ]
        change = np.mean([100 * (sse(X, labels) / base - 1) for labels, _, _ in runs])
        figures += [float(change), 1e6 * float(np.mean([cpu for _, cpu, _ in runs])) / n]
    if best:
        labels, cpu, _ = timed(lambda: shoal.partition(X, k, effort="best", threads=1))
        figures += [100 * (sse(X, labels) / base - 1), 1e6 * cpu / n]
    return figures


def million(n: int) -> None:
    """Print the rows of the large table."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    title = f"shoal.mask of {n:,} normal records with 5 columns, k = 5"
    head = "method | effort | loss, % {:.4f} | CPU time, s {:.1f} | time, s {:.1f}"
    with table("large", title, head) as add:
        for method, effort in (("mdav", None), ("auto", "fast"), ("auto", "good")):
            shoal.mask(X[:2000], 5, method=method, effort=effort, block=500)
            release, cpu, clock = timed(lambda m=method, e=effort: shoal.mask(X, 5, method=m, effort=e))
            add(method, effort, release.loss, cpu, clock)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="census,tarragona,eia,california")
    parser.add_argument("-k", default="3,5,10")
    parser.add_argument("--steps", default="1,5,20,100")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--best", action="store_true", help="also effort='best'")
    parser.add_argument(
        "--million", type=int, default=0, metavar="N", help="number of records of a table of 5 columns to mask as well"
    )
    arguments = parser.parse_args()
    sizes, steps = ([int(part) for part in text.split(",")] for text in (arguments.k, arguments.steps))
    if names := [name for name in arguments.only.split(",") if name]:
        reference(names, sizes, steps, arguments.seeds, arguments.best)
    if arguments.million:
        million(arguments.million)


if __name__ == "__main__":
    main()
