"""Expected error of every method by k and ε, from closed forms; no noise is drawn and nothing is released.

By default, the figures are upper limits on the error of any table of n records within the bounds, computed from public
figures alone (`worst_case`). On request, they are computed from the confidential values. The expected SSE of a column
is then the SSE of its groups plus Σ size · 2(Δ/(size · ε_i))² (Proposition 5), before truncation to the domain. A k
chosen from confidential figures depends on the data, and ε does not cover the choice. One partition serves all ε,
except for ``"optimal"``, whose groups depend on ε.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.checks import as_names
from shoal.core.errors import InputError, PrivateExplorationWarning
from shoal.core.messages import count, parameter
from shoal.core.types import Floats
from shoal.privacy.budgets import Budget, check_epsilon, split_budget
from shoal.privacy.confidential_table import ConfidentialTable, check_group_size, column_sets, prepare
from shoal.privacy.domains import BoundsGiven
from shoal.privacy.noise import check_grids
from shoal.privacy.privacy_unit import Unit, budgets_of_records
from shoal.privacy.publication_methods import (
    GIVEN,
    MARGINALS,
    PUBLICATION_METHODS,
    PublicationMethod,
    find_publication_method,
)
from shoal.privacy.record_groups import ColumnGroups, group_columns
from shoal.privacy.worst_case import least_worst_case_sse, worst_case_sse
from shoal.tables.columns import Name
from shoal.tables.files import check_reading, check_target
from shoal.tables.outputs import written_beside
from shoal.tables.reading import ReadingOptions

__all__ = ["EPSILONS", "PICTURES", "Exploration", "Point", "explore"]

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
PICTURES = (".png", ".svg", ".pdf")
# Colours that remain distinguishable to colour-blind readers and in black-and-white print.
COLOURS = {
    "insensitive-ir": "#D55E00",
    "insensitive": "#CC79A7",
    "none": "#555555",
    "optimal": "#0072B2",
    "mdav-ir": "#E69F00",
    "mdav": "#009E73",
}
OTHER_COLOUR = "#56B4E9"
# Methods of `shoal.methods` that group a single column into runs of its sorted values.
RUNS = ("mdav", "fixed", "univariate")


@dataclass(frozen=True)
class Point:
    """The expected SSE of a method over all columns, at one k (None for a method without k) and one ε."""

    method: str
    k: int | None
    epsilon: float
    sse: float


@dataclass(frozen=True)
class Exploration:
    """Expected errors by method, k and ε, for the worst possible table or, if `private`, for the confidential one."""

    points: tuple[Point, ...]
    records: int
    columns: tuple[Name, ...]
    unit: Unit | None = None
    private: bool = False

    @property
    def origin(self) -> str:
        """A phrase that states the source of the figures and who may read them."""
        if self.private:
            return "computed from the confidential values: for the data holder, not for release"
        return "in the worst case, from public figures alone: number of records, bounds and epsilon"

    @property
    def epsilons(self) -> list[float]:
        """The explored budgets in ascending order."""
        return sorted({point.epsilon for point in self.points})

    def best(self, method: str, epsilon: float) -> Point:
        """Return the point of a method with the least expected SSE at one ε."""
        return min((p for p in self.points if p.method == method and p.epsilon == epsilon), key=lambda p: p.sse)

    def __str__(self) -> str:
        epsilons = self.epsilons
        sse = {(point.method, point.k, point.epsilon): point.sse for point in self.points}
        lines = ["expected SSE by method, k and ε (* the method's best k)", self.origin, ""]
        if self.unit is not None:
            lines += [f"ε covers all records of a unit ({self.unit}) together", ""]
        lines.append(f"{'method':<14} {'k':>6} " + " ".join(f"{f'ε = {epsilon:g}':>12}" for epsilon in epsilons))
        for method, k in dict.fromkeys((point.method, point.k) for point in self.points):
            errors = []
            for epsilon in epsilons:
                several = sum(p.method == method and p.epsilon == epsilon for p in self.points) > 1
                star = "*" if several and self.best(method, epsilon).k == k else " "
                errors.append(f"{sse[method, k, epsilon]:>11.4g}{star}")
            lines.append(f"{method:<14} {'' if k is None else k:>6} " + " ".join(errors))
        return "\n".join(lines)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Plot the expected SSE against k, with one panel per ε, and write the plot to a picture file."""
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
        scope = f"{count(self.records, 'record')}{unit}, {count(len(self.columns), 'column')}"
        figure.suptitle(f"{scope}: {'for the data holder, not for release' if self.private else 'worst case'}")
        with written_beside(target) as temporary:
            figure.savefig(temporary, dpi=150)

    def _line(self, axis: Any, method: str, epsilon: float) -> None:
        points = [p for p in self.points if p.method == method and p.epsilon == epsilon]
        if len(points) == 1 and points[0].k is None:
            axis.axhline(points[0].sse, color=COLOURS.get(method, OTHER_COLOUR), linestyle="--", label=method)
        else:
            colour = COLOURS.get(method, OTHER_COLOUR)
            axis.plot([p.k for p in points], [p.sse for p in points], color=colour, marker=".", label=method)


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
    private: bool = False,
    unit: Name | None = None,
    contributions: int | None = None,
    **reading: Any,
) -> Exploration:
    """Compute the expected SSE of methods by k and ε, by default for the worst case from public figures.

    Parameters
    ----------
    data, bounds, columns, budget, sets, unit, contributions, **reading
        As in `shoal.publish`, including its options for files. The shares of a budget mapping are relative: they need
        not sum to ε.
    epsilon
        The budgets to explore.
    k
        The group sizes to explore, for methods that need one; by default, about a dozen sizes from 2 to n/2.
    methods
        The methods to explore.
    private
        Use the confidential values and emit a `PrivateExplorationWarning`. The figures are then exact and for the data
        holder alone, and ε does not cover a k chosen from them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = explore(rng.random((200, 1)), bounds={0: (0, 1)}, epsilon=1.0, k=[5, 20], methods=["insensitive-ir"])
    >>> result.best("insensitive-ir", 1.0)
    Point(method='insensitive-ir', k=20, epsilon=1.0, sse=6.0)
    """
    entries = [find_publication_method(name) for name in as_names(methods)]
    epsilons = sorted({check_epsilon(value) for value in np.atleast_1d(np.asarray(epsilon, dtype=object))})
    if MARGINALS in entries:
        raise InputError(
            f"{parameter('methods')} cannot include 'marginals': its records are synthetic, so they have no expected "
            "squared error. The noise on its counts follows from public figures; a release lists it in 'scales'."
        )
    if not entries or not epsilons:
        raise InputError(f"{parameter('methods')} and {parameter('epsilon')} must each contain at least one value.")
    options = ReadingOptions(**reading)
    check_reading(data, options)
    prepared = prepare(data, columns, bounds, unit, contributions, reading=options)
    if private:
        warnings.warn(
            "These figures are computed from the confidential values: do not publish them. Epsilon does not cover "
            "choices based on them: a k chosen from the data reveals something about the data.",
            PrivateExplorationWarning,
            stacklevel=2,
        )
    n = len(prepared.X)
    sizes = _some_sizes(n) if k is None else sorted(set(np.atleast_1d(np.asarray(k)).tolist()))
    points = []
    for entry in entries:
        numbers = column_sets(entry, prepared.names, sets if entry.name == "mdav" else None)
        budgets = {value: _shares(value, budget, prepared, numbers) for value in epsilons}
        for shares in budgets.values():
            check_grids(n, shares, prepared.names)
        for size in sizes if entry.takes_sizes else [None]:
            check_group_size(entry, size, n)
            errors = _exact if private else _worst_case
            points += [Point(entry.name, size, *pair) for pair in errors(prepared, entry, budgets, numbers, size)]
    return Exploration(tuple(points), n, tuple(prepared.names), prepared.unit, private)


def _worst_case(
    prepared: ConfidentialTable,
    entry: PublicationMethod,
    budgets: Mapping[float, Floats],
    sets: Sequence[Sequence[int]],
    size: int | None,
) -> Iterator[tuple[float, float]]:
    """Yield each ε with an upper limit on the expected SSE of any table within the bounds."""
    n = len(prepared.X)
    for epsilon, shares in budgets.items():
        total = 0.0
        for columns in sets:
            for j in columns:
                budget, width = float(shares[j]), float(prepared.bounds.width[j])
                if entry.name == "optimal":  # the groups of `optimal` are at least as good as those of any k
                    total += least_worst_case_sse(n, budget, width)
                    continue
                k = size or 1
                if entry.name == "insensitive" and len(columns) > 1:
                    budget /= n // k  # changing one record can change all groups
                total += worst_case_sse(n, k, budget, width, largest=_largest(entry, n, size, len(columns)))
        yield epsilon, total


def _largest(entry: PublicationMethod, n: int, size: int | None, columns: int) -> int:
    """Return the greatest total number of records in groups that may span the whole domain of a column."""
    k = size or 1
    if k == 1 and entry != GIVEN:
        return 1
    if columns > 1 or entry == GIVEN or entry.groups not in (None, *RUNS):
        return n
    return min(n, 2 * k - 1) if entry.groups == "univariate" else k + n % k


def _exact(
    prepared: ConfidentialTable,
    entry: PublicationMethod,
    budgets: Mapping[float, Floats],
    sets: Sequence[Sequence[int]],
    size: int | None,
) -> Iterator[tuple[float, float]]:
    """Yield each ε with the expected SSE of this table."""
    groupings: list[ColumnGroups] = []
    averaging = 0.0
    for epsilon, shares in budgets.items():
        if entry.name == "optimal" or not groupings:
            groupings = group_columns(entry, prepared.clipped, prepared.bounds, shares, sets, size)
            averaging = sum(
                float(grouping.averaging_error(prepared.X, prepared.clipped).sum()) for grouping in groupings
            )
        yield epsilon, averaging + _noise(groupings, prepared.bounds.width, shares)


def _shares(epsilon: float, budget: Budget, prepared: ConfidentialTable, numbers: Sequence[Sequence[int]]) -> Floats:
    """Return each column's share of ε per record."""
    if not isinstance(budget, str):
        total = sum(check_epsilon(share, f"budget[{name!r}]") for name, share in budget.items())
        budget = {name: float(share) * epsilon / total for name, share in budget.items()}
    return budgets_of_records(
        split_budget(epsilon, budget, prepared.names, prepared.bounds.width, numbers), prepared.unit
    )


def _noise(groupings: Sequence[ColumnGroups], width: Floats, budgets: Floats) -> float:
    return sum(
        grouping.noise_error(grouping.noise_scale(float(width[j]), float(budgets[j])))
        for grouping in groupings
        for j in grouping.columns
    )


def _some_sizes(n: int) -> list[int]:
    """Return about a dozen sizes from 2 to n/2, evenly spaced on a logarithmic scale."""
    return np.unique(np.rint(np.geomspace(2, max(2, n // 2), 12)).astype(np.int64)).tolist() if n > 1 else [1]
