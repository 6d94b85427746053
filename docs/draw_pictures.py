"""Draw the pictures of the site and the README: ``python docs/draw_pictures.py [FOLDER]`` (default: docs/pictures).

Each run writes the same bytes: seeds are fixed, searches are limited by steps, and the files contain no time.
"""

import io
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import shoal
from shoal.demo import firms

FOLDER = Path(__file__).resolve().parent / "pictures"
POINT, LINE, CENTRE, NOISE = "#1f6f8b", "#9cc5d3", "#d1495b", "#e08e45"
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "shoal", "path.simplify": False, "font.family": "sans-serif",
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
}  # fmt: skip


def clusters(n: int, seed: int = 11) -> np.ndarray:
    """Return standardised points in the plane: three clusters, part of a ring and some outliers."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.5, 4.0]])
    dense = centres[rng.integers(3, size=n * 6 // 10)] + rng.normal(0, 0.7, (n * 6 // 10, 2))
    angle = rng.uniform(0.2, 2.2, n * 3 // 10)
    ring = np.column_stack([6 * np.cos(angle), 6 * np.sin(angle)]) + rng.normal(0, 0.25, (len(angle), 2))
    apart = rng.uniform(-2, 7, (n - len(dense) - len(ring), 2))
    X = np.vstack([dense, ring, apart])
    return (X - X.mean(axis=0)) / X.std(axis=0)


def loss(X: np.ndarray, released: np.ndarray) -> float:
    """Return the information loss of released values in percent."""
    return 100 * float(((X - released) ** 2).sum() / (X**2).sum())


def tie(axes: Axes, X: np.ndarray, released: np.ndarray, size: float = 3) -> None:
    """Draw every record, its released value, and a line between them."""
    gap = np.full(len(X), np.nan)
    ends = [np.column_stack([X[:, j], released[:, j], gap]).ravel() for j in range(2)]
    axes.plot(*ends, color=LINE, linewidth=0.8, zorder=1)
    axes.plot(*X.T, ".", color=POINT, markersize=size, zorder=2)
    axes.plot(*np.unique(released, axis=0).T, "o", color=CENTRE, markersize=size, markeredgewidth=0, zorder=3)


def bare(axes: Axes, title: str = "") -> None:
    """Hide the axes: the columns are standardised, and only distances matter."""
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=9, loc="left")


def save(figure: Figure, path: Path) -> None:
    """Write a picture without the time, and with only visible digits."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    path.write_text(re.sub(r"(\d+\.\d\d)\d+", r"\1", written.getvalue()), encoding="utf-8")


def draw_groups(folder: Path) -> None:
    """Draw the releases of 200 points by MDAV, a spanning tree, a search and differential privacy, k = 5."""
    X, k = clusters(200), 5
    figure = Figure(figsize=(7, 6.6), layout="constrained")
    panels = figure.subplots(2, 2)
    how = {"mdav": ("MDAV", {}), "mst": ("spanning tree", {}), "search": ("search", {"steps": 400_000})}
    for axes, (method, (title, options)) in zip(panels.flat, how.items(), strict=False):
        labels = shoal.partition(X, k, method=method, **options)
        released = np.array([X[labels == group].mean(axis=0) for group in range(labels.max() + 1)])[labels]
        tie(axes, X, released)
        bare(axes, f"{title}: {labels.max() + 1} groups, loss {loss(X, released):.2f} %")
    axes, bounds = panels[1, 1], dict.fromkeys((0, 1), (-2.35, 2.35))
    noisy = shoal.publish(X, 1.0, delta=1e-6, bounds=bounds, method="marginals", seed=1).data
    axes.plot(*X.T, ".", color=POINT, markersize=3)
    axes.plot(*np.asarray(noisy).T, "x", color=NOISE, markersize=3)
    bare(axes, "differential privacy, ε = 1: nobody's records")
    for axes in panels.flat:
        axes.set(xlim=(-2.35, 2.35), ylim=(-2.35, 2.35))
    save(figure, folder / "groups.svg")


def draw_methods(folder: Path) -> None:
    """Draw each method's groups of the same 60 points, k = 4; univariate methods group one column."""
    X, k = clusters(60, seed=5), 4
    for method in shoal.methods():
        figure = Figure(figsize=(2.4, 2.1), layout="constrained")
        axes = figure.subplots()
        if method.univariate:
            column = np.sort(X[:, 0])
            labels = shoal.partition(column, k, method=method.name)
            height = 0.15 * (labels % 2 == 0)
            released = np.array([column[labels == group].mean() for group in range(labels.max() + 1)])[labels]
            tie(axes, np.column_stack([column, np.zeros(len(column))]), np.column_stack([released, 1 + height]))
            axes.set_axis_off()
            percent = loss(column - column.mean(), released - column.mean())
        else:
            given = {"steps": 100_000} if method.name == "search" else {}
            if method.confidential:
                table = pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "secret": X[:, 0] * 10})
                given |= {"confidential": ["secret"], "closeness": 0.2}
                released = shoal.mask(table, k, columns=["x", "y"], method=method.name, **given).data
                released = released.select("x", "y").to_numpy()
            else:
                released = shoal.mask(X, k, method=method.name, **given).data
            tie(axes, X, released)
            axes.set_aspect("equal")
            axes.set_axis_off()
            percent = loss(X, released)
        axes.set_title(f"loss {percent:.1f} %", fontsize=8, loc="left")
        save(figure, folder / f"method-{method.name}.svg")


def draw_money(folder: Path) -> None:
    """Draw the distribution of a skewed column before and after masking, for several k."""
    table = firms(3000)
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    edges = np.linspace(1, 6, 41)
    for axes, k in zip(figure.subplots(1, 3, sharey=True), (5, 25, 100), strict=True):
        release = shoal.mask(table, k, columns=["sales", "wages", "assets"], method="mdav")
        for frame, colour, label in ((table, LINE, "before"), (release.data, CENTRE, "after")):
            counts, _ = np.histogram(np.log10(frame["sales"]), edges)
            axes.stairs(counts, edges, fill=label == "before", color=colour, label=label)
        before, after = (float(frame["sales"].to_numpy().max()) for frame in (table, release.data))
        axes.set_title(f"k = {k}: loss {release.loss:.1f} %", fontsize=9, loc="left")
        axes.set_xlabel(f"sales; the largest: {before / 1000:.0f}k → {after / 1000:.0f}k", fontsize=8)
        axes.set_xticks(range(1, 7), ["10", "100", "1k", "10k", "100k", "1m"])
        axes.legend(fontsize=8)
    save(figure, folder / "money.svg")


def draw_map(folder: Path) -> None:
    """Draw the map of risk and utility: methods and k on the demo table."""
    table = firms(600)
    methods = ["mdav", "v-mdav", "mst-d", "path", "auto"]
    found = shoal.compare(table, [3, 5, 10, 20], columns=["sales", "wages", "assets"], methods=methods)
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for method in methods:
        runs = sorted((trial for trial in found.trials if trial.method == method), key=lambda trial: trial.k)
        axes.plot([run.loss for run in runs], [100 * run.risk for run in runs], "o-", markersize=4, label=method)
    for run in runs:
        axes.annotate(f"k = {run.k}", (run.loss, 100 * run.risk), textcoords="offset points", xytext=(4, 6))
    axes.set(xlabel="information loss, %", ylabel="records at risk of linkage, %", ylim=(0, None))
    axes.legend(title="method")
    save(figure, folder / "map.svg")


DRAWINGS: tuple[Callable[[Path], None], ...] = (draw_groups, draw_methods, draw_money, draw_map)

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    target.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", shoal.PrivacyWarning)
    with mpl.rc_context(STYLE):
        for draw in DRAWINGS:
            draw(target)
