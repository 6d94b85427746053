"""Measure the growth of time with n, d and k for every method: CPU seconds of one thread, exponents, and a picture.

Normal columns; k = 5 and 4 columns by default. A table grows until a run takes longer than `BUDGET`. `search` is
omitted because it uses all of its time limit.

Run: python benchmarks/growth.py [docs/growth.svg]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from results import table

from shoal.algorithms.registry import METHODS, Method

BUDGET = 1.5  # seconds
RECORDS = tuple(500 * 2**i for i in range(12))
COLUMNS = (1, 2, 4, 8, 16, 32)
GROUPS = (3, 5, 10, 20, 50, 100)
Curve = tuple[list[int], list[float]]


def seconds(method: Method, n: int, d: int, k: int) -> float:
    """Return the CPU time of a run, the shorter of two, as the first may compile."""
    X = np.random.default_rng(0).normal(size=(n, 1 if method.univariate else d))
    options = method.read_options({"threads": 1} if any(o.name == "threads" for o in method.options) else {})
    times: list[float] = []
    while len(times) < 2 and sum(times) < 20:
        start = time.process_time()
        method.run(X, k, options, seed=0)
        times.append(time.process_time() - start)
    return max(min(times), 1e-5)


def curve(sizes: Sequence[int], run: Callable[[int], float]) -> Curve:
    """Measure growing tables until a run exceeds the budget."""
    found: list[float] = []
    for size in sizes:
        if found and found[-1] > BUDGET:
            break
        found.append(run(size))
    return list(sizes[: len(found)]), found


def exponent(measured: Curve) -> float | None:
    """Return the exponent e of time ~ size^e, fitted to the larger half of the measurements."""
    sizes, times = measured
    half = len(sizes) // 2
    if len(sizes) - half < 2:
        return None
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def main(picture: str | None) -> None:
    curves: dict[str, tuple[Curve, Curve, Curve]] = {}
    title = "CPU seconds of one thread, normal columns, k = 5, d = 4; exponents e of time ~ n^e, d^e, k^e"
    head = "method | largest n {:,} | its time, s {:.2f} | n^e {:.1f} | n for d and k {:,} | d^e {:.1f} | k^e {:.1f}"
    with table("growth", title, head) as add:
        for name, method in METHODS.items():
            if name == "search":
                continue
            seconds(method, 200, 4, 5)
            by_n = curve(RECORDS, lambda n, method=method: seconds(method, n, 4, 5))  # type: ignore[misc]
            # Enough records to show the growth, and few enough for the widest table.
            n = max((n for n, t in zip(*by_n, strict=True) if t < BUDGET / 10), default=RECORDS[0])
            by_d = curve(COLUMNS, lambda d, method=method, n=n: seconds(method, n, d, 5))  # type: ignore[misc]
            by_k = curve(GROUPS, lambda k, method=method, n=n: seconds(method, n, 4, k))  # type: ignore[misc]
            if method.univariate:
                by_d = ([], [])
            curves[name] = by_n, by_d, by_k
            add(name, by_n[0][-1], by_n[1][-1], exponent(by_n), n, exponent(by_d), exponent(by_k))
    if picture:
        draw(curves, picture)


def draw(curves: dict[str, tuple[Curve, Curve, Curve]], picture: str) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "growth", "font.size": 9}):
        figure = Figure(figsize=(11, 4.6), layout="constrained")
        panels = figure.subplots(1, 3, width_ratios=(1.6, 1, 1))
        titles = ("records (4 columns, k = 5)", "columns (k = 5)", "k (4 columns)")
        for i, (name, measured) in enumerate(curves.items()):
            for panel, title, (sizes, times) in zip(panels, titles, measured, strict=True):
                panel.loglog(sizes, times, marker="osD^vP*Xph8<>"[i % 13], markersize=4, color=f"C{i % 10}",
                             linestyle="-" if i < 10 else "--", label=name)  # fmt: skip
                panel.set_xlabel(title)
                panel.grid(visible=True, which="major", alpha=0.3)
        panels[0].set_ylabel("CPU seconds of one thread")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", frameon=False)
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
