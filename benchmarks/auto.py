"""What `auto` gains over MDAV and what it costs: the reference tables, and a million records, as Markdown.

Loss against MDAV after some light steps a record (``--steps``), and the CPU microseconds a record of each, MDAV's own
beside them; with ``--best`` effort="best". ``--million`` masks a million records of 5 columns as `shoal.mask` does.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _reference import header, load

import shoal
from shoal.algorithms.auto import exchanged
from shoal.core.measures import sse
from shoal.core.progress import fresh_state


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a function returns, its CPU seconds and those of the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - clock


def reference(names: list[str], sizes: list[int], steps: list[int], seeds: int, best: bool) -> None:
    """Print the rows of the reference tables."""
    heads = [*(f"{count} steps: loss %, µs" for count in steps), *(["best: loss %, µs"] if best else [])]
    print("| table | k | MDAV µs | " + " | ".join(heads) + " |")
    print("|---" * (3 + len(heads)) + "|", flush=True)
    for name in names:
        X = load(name)
        centred, n = np.ascontiguousarray(X - X.mean(axis=0)), len(X)
        for k in sizes:
            shoal.partition(X[: 4 * k], k, effort="best" if best else "good")  # compiles
            start, cpu, _ = timed(lambda X=X, k=k: shoal.partition(X, k, "mdav"))
            base, cells = sse(X, start), [name, str(k), f"{1e6 * cpu / n:.0f}"]
            for count in steps:
                runs = [
                    timed(lambda c=count, s=seed: exchanged(centred, k, start, c, s, fresh_state(), 1))  # noqa: B023
                    for seed in range(seeds)
                ]
                change = np.mean([100 * (sse(X, labels) / base - 1) for labels, _, _ in runs])
                cells.append(f"{change:+.1f}, {1e6 * np.mean([cpu for _, cpu, _ in runs]) / n:.0f}")
            if best:
                labels, cpu, _ = timed(lambda X=X, k=k: shoal.partition(X, k, effort="best", threads=1))
                cells.append(f"{100 * (sse(X, labels) / base - 1):+.1f}, {1e6 * cpu / n:.0f}")
            print("| " + " | ".join(cells) + " |", flush=True)


def million(n: int) -> None:
    """Print the rows of the large table."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    print("\n| method | effort | loss % | CPU s | s |\n|---|---|---|---|---|", flush=True)
    for method, effort in (("mdav", None), ("auto", "fast"), ("auto", "good")):
        shoal.mask(X[:2000], 5, method=method, effort=effort, block=500)
        release, cpu, clock = timed(lambda m=method, e=effort: shoal.mask(X, 5, method=m, effort=e))
        print(f"| {method} | {effort or ''} | {release.loss:.4f} | {cpu:.1f} | {clock:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="census,tarragona,eia,california")
    parser.add_argument("-k", default="3,5,10")
    parser.add_argument("--steps", default="1,5,20,100")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--best", action="store_true", help="also effort='best'")
    parser.add_argument("--million", type=int, default=0, metavar="N", help="mask so many records of 5 columns too")
    arguments = parser.parse_args()
    print(header(), end="\n\n")
    reference(
        [name for name in arguments.only.split(",") if name],
        [int(k) for k in arguments.k.split(",")],
        [int(count) for count in arguments.steps.split(",")],
        arguments.seeds,
        arguments.best,
    )
    if arguments.million:
        million(arguments.million)


if __name__ == "__main__":
    main()
