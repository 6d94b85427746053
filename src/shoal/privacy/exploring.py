"""Choosing k and ε: the error to expect from every method, from closed forms, with no noise drawn and nothing released.

The expected SSE of a column is the SSE of its groups plus Σ size · 2(Δ/(size · ε_i))² (Proposition 5), before
truncation to the domain. One partition serves all ε, except for ``"optimal"``, whose groups depend on ε.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.types import Floats
from shoal.privacy.budgets import Budget, check_epsilon, split_budget
from shoal.privacy.domains import BoundsGiven
from shoal.privacy.groups import Grouping, group_columns
from shoal.privacy.laplace import check_grids
from shoal.privacy.preparing import Prepared, check_group_size, column_sets, prepare
from shoal.privacy.publication_methods import PUBLICATION_METHODS, find_publication_method
from shoal.privacy.units import Unit, budgets_of_records
from shoal.tables.columns import Name
from shoal.tables.files import check_target, written_beside

__all__ = ["EPSILONS", "PICTURES", "Exploration", "Point", "explore"]

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
PICTURES = (".png", ".svg", ".pdf")
# Methods in colours that remain apart for colour-blind readers and in print.
COLOURS = {"optimal": "#0072B2", "mdav-ir": "#E69F00", "mdav": "#009E73", "insensitive": "#CC79A7", "none": "#555555"}


@dataclass(frozen=True)
class Point:
    """What a method is expected to do: its k (None where it takes none) and the expected SSE of all columns."""

    method: str
    k: int | None
    epsilon: float
    sse: float


@dataclass(frozen=True)
class Exploration:
    """The expected errors, for the data holder: they are exact figures of the confidential values."""

    points: tuple[Point, ...]
    records: int
    columns: tuple[Name, ...]
    unit: Unit | None = None

    @property
    def epsilons(self) -> list[float]:
        """The budgets that were looked at."""
        return sorted({point.epsilon for point in self.points})

    def best(self, method: str, epsilon: float) -> Point:
        """Return the k that a method does best with."""
        return min((p for p in self.points if p.method == method and p.epsilon == epsilon), key=lambda p: p.sse)

    def __str__(self) -> str:
        epsilons = self.epsilons
        sse = {(point.method, point.k, point.epsilon): point.sse for point in self.points}
        lines = ["expected SSE by method, k and ε (* the method's best k) — computed from the confidential values:"]
        lines += ["for the data holder, not for release", ""]
        if self.unit is not None:
            lines += [f"ε covers all records of a unit ({self.unit}) together", ""]
        lines.append(f"{'method':<12} {'k':>6} " + " ".join(f"{f'ε = {epsilon:g}':>12}" for epsilon in epsilons))
        for method, k in dict.fromkeys((point.method, point.k) for point in self.points):
            errors = []
            for epsilon in epsilons:
                several = sum(p.method == method and p.epsilon == epsilon for p in self.points) > 1
                star = "*" if several and self.best(method, epsilon).k == k else " "
                errors.append(f"{sse[method, k, epsilon]:>11.4g}{star}")
            lines.append(f"{method:<12} {'' if k is None else k:>6} " + " ".join(errors))
        return "\n".join(lines)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw expected SSE against k, one panel for each ε, as a picture file."""
        from matplotlib.figure import Figure

        target = Path(path)
        check_target(target, endings=PICTURES)
        epsilons = self.epsilons
        across = min(3, len(epsilons))
        down = -(-len(epsilons) // across)
        figure = Figure(figsize=(4.6 * across, 3.6 * down), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axis, epsilon in zip(axes, epsilons, strict=False):
            for method in dict.fromkeys(point.method for point in self.points):
                self._line(axis, method, epsilon)
            axis.set(xscale="log", yscale="log", title=f"ε = {epsilon:g}", xlabel="k", ylabel="expected SSE")
            axis.grid(visible=True, which="major", alpha=0.3)
            ticks = sorted({point.k for point in self.points if point.k is not None})
            ticks = ticks[:: max(1, len(ticks) // 6)]
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
        for axis in axes[len(epsilons) :]:
            axis.set_visible(False)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        unit = "" if self.unit is None else f" ({self.unit})"
        told = f"{self.records:,} records{unit}, {len(self.columns)} columns"
        figure.suptitle(f"{told}: for the data holder, not for release")
        with written_beside(target) as temporary:
            figure.savefig(temporary, dpi=150)

    def _line(self, axis: Any, method: str, epsilon: float) -> None:
        points = [p for p in self.points if p.method == method and p.epsilon == epsilon]
        if len(points) == 1 and points[0].k is None:
            axis.axhline(points[0].sse, color=COLOURS[method], linestyle="--", label=method)
        else:
            axis.plot([p.k for p in points], [p.sse for p in points], color=COLOURS[method], marker=".", label=method)


def explore(  # noqa: PLR0913 - the parameters of a whole run
    data: Any,
    *,
    bounds: BoundsGiven,
    columns: Sequence[Name] | Name | None = None,
    epsilon: Sequence[float] | float = EPSILONS,
    k: Sequence[int] | int | None = None,
    methods: Sequence[str] | str = tuple(PUBLICATION_METHODS),
    budget: Budget = "even",
    sets: Sequence[Sequence[Name]] | None = None,
    unit: Name | None = None,
    contributions: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Exploration:
    """Compute the expected SSE of methods over k and ε.

    Parameters
    ----------
    data, bounds, columns, budget, sets, unit, contributions, delimiter, encoding, decimal, thousands
        As for `shoal.publish`; shares of a given budget count in proportion to their sum.
    epsilon
        The budgets to look at.
    k
        The group sizes to look at, for methods that need one; a dozen from 2 to n/2 if not given.
    methods
        The methods to look at.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = explore(rng.random((200, 1)), bounds={0: (0, 1)}, epsilon=1.0, k=[5, 20], methods=["mdav-ir"])
    >>> found.best("mdav-ir", 1.0).k
    20
    """
    chosen = [find_publication_method(name) for name in as_names(methods)]
    epsilons = sorted({check_epsilon(value) for value in np.atleast_1d(np.asarray(epsilon, dtype=object))})
    if not chosen or not epsilons:
        raise InputError("Parameters 'methods' and 'epsilon' must each name at least one value to look at.")
    csv = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    ready = prepare(data, columns, bounds, unit, contributions, **csv)
    n = len(ready.X)
    wanted = _some_sizes(n) if k is None else sorted(set(np.atleast_1d(np.asarray(k)).tolist()))
    points = []
    for entry in chosen:
        numbers = column_sets(entry, ready.names, sets if entry.name == "mdav" else None)
        budgets = {value: _shares(value, budget, ready, numbers) for value in epsilons}
        for shares in budgets.values():
            check_grids(n, shares, ready.names)
        for size in wanted if entry.k == "needed" else [None]:
            least = check_group_size(entry, size, n)
            groupings: list[Grouping] = []
            for value in epsilons:
                if entry.name == "optimal" or not groupings:
                    groupings = group_columns(entry, ready.clipped, ready.bounds, budgets[value], numbers, least)
                    averaging = sum(
                        float(grouping.averaging_error(ready.X, ready.clipped).sum()) for grouping in groupings
                    )
                noise = _noise(groupings, ready.bounds.width, budgets[value])
                points.append(Point(entry.name, size, value, averaging + noise))
    return Exploration(tuple(points), n, tuple(ready.names), ready.unit)


def _shares(epsilon: float, budget: Budget, ready: Prepared, numbers: Sequence[Sequence[int]]) -> Floats:
    """Return what each column has of ε for a record."""
    if not isinstance(budget, str):
        total = sum(check_epsilon(share, f"budget[{name!r}]") for name, share in budget.items())
        budget = {name: float(share) * epsilon / total for name, share in budget.items()}
    return budgets_of_records(split_budget(epsilon, budget, ready.names, ready.bounds.width, numbers), ready.unit)


def _noise(groupings: Sequence[Grouping], width: Floats, budgets: Floats) -> float:
    return sum(
        grouping.noise_error(grouping.noise_scale(float(width[j]), float(budgets[j])))
        for grouping in groupings
        for j in grouping.columns
    )


def _some_sizes(n: int) -> list[int]:
    """Return about a dozen sizes from 2 to n/2, evenly spaced on a log scale."""
    return np.unique(np.rint(np.geomspace(2, max(2, n // 2), 12)).astype(np.int64)).tolist() if n > 1 else [1]
