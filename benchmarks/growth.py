"""How time grows with n, d and k, for every method: CPU seconds, fitted exponents, and a picture.

Run: python benchmarks/growth.py [picture.svg]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from shoal.algorithms.registry import METHODS, Method

BUDGET = 0.5  # seconds: a method's table grows until one run takes longer
SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
LEFT_OUT = ("decomposition", "search")  # they take the time that they are given


def seconds(method: Method, n: int, d: int, k: int) -> float:
    X = np.random.default_rng(0).normal(size=(n, 1 if method.univariate else d))
    options = method.read_options({})
    times = []
    for _ in range(2):
        start = time.process_time()
        method.run(X, k, options, seed=0)
        times.append(time.process_time() - start)
    return min(times)


def exponent(sizes: list[int], times: list[float]) -> float:
    """Fit time ~ size^e to the larger half of the measurements."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def series(method: Method, d: int) -> tuple[list[int], list[float]]:
    seconds(method, 200, d, 5)
    sizes, times = [], []
    for n in SIZES:
        sizes.append(n)
        times.append(max(seconds(method, n, d, 5), 1e-4))
        if times[-1] > BUDGET:
            break
    return sizes, times


def main(picture: str | None) -> None:
    print("CPU seconds on one thread, normal columns, k = 5; exponent e of time ~ n^e from the larger sizes\n")
    print("| method | d | largest n | seconds | e | seconds at k = 20 |\n|---|---|---|---|---|---|")
    curves = {}
    for name, method in METHODS.items():
        if name in LEFT_OUT:
            continue
        for d in (1,) if method.univariate else (2, 10):
            sizes, times = series(method, d)
            curves[f"{name}, d = {d}"] = sizes, times
            other = seconds(method, sizes[-1], d, 20)
            e = exponent(sizes, times) if len(sizes) > 3 else float("nan")
            print(f"| {name} | {d} | {sizes[-1]:,} | {times[-1]:.3f} | {e:.2f} | {other:.3f} |", flush=True)
    if picture:
        draw(curves, picture)


def draw(curves: dict[str, tuple[list[int], list[float]]], picture: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots()
    markers = "osD^vP*Xph8<>"
    for i, (name, (sizes, times)) in enumerate(curves.items()):
        axes.loglog(sizes, times, marker=markers[i // 2 % len(markers)], linestyle="-" if i % 2 else "--", label=name)
    axes.set_xlabel("records")
    axes.set_ylabel("CPU seconds")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(picture)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
