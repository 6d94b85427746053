"""Method projection: order the records along one axis, then find the optimal groups for that order.

J. Domingo-Ferrer and J. M. Mateo-Sanz, Practical data-oriented microaggregation for statistical disclosure control,
IEEE Transactions on Knowledge and Data Engineering 14 (2002), propose the axes. The groups are optimal for the
order, as in S. L. Hansen and S. Mukherjee (2003), with the SSE summed over all columns.
O(n log n + n d² + k n d) per axis.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.algorithms.record_order import best_of_orders
from shoal.algorithms.registry import Outcome
from shoal.core.errors import InputError
from shoal.core.measures import standardise
from shoal.core.messages import option
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.sort import sort_values

__all__ = ["projection"]


def projection(X: Floats, k: int, *, state: State, order: str = "best", column: int = 0) -> Outcome:
    """Group the records in the order of an axis, or in the best of several orders."""
    if column >= X.shape[1]:
        raise InputError(
            f"{option('column')} of method 'projection' must be below the number of columns, {X.shape[1]}, got "
            f"{column}."
        )
    name, labels = best_of_orders(X, k, _orders(X, order, column, state), state)
    return Outcome(labels, facts={"order": name})


def _orders(X: Floats, order: str, column: int, state: State) -> Iterator[tuple[str, Ints]]:
    if order in {"component", "best"}:
        yield "component", sort_values(_first_component(X))[1]
    if order in {"scores", "best"} and not (order == "best" and state[STOP]):
        yield "scores", sort_values(standardise(X).sum(axis=1))[1]
    for j in range(X.shape[1]):
        if (order == "column" and j == column) or (order == "best" and not state[STOP]):
            yield f"column {j}", sort_values(np.ascontiguousarray(X[:, j]))[1]


def _first_component(X: Floats) -> Floats:
    """Project the records onto the direction of largest variance."""
    deviations = X / 2 - X[0] / 2
    deviations /= np.abs(deviations).max() or 1.0
    deviations -= deviations.mean(axis=0)
    axis = np.linalg.eigh(deviations.T @ deviations)[1][:, -1]
    # The sign of an eigenvector is arbitrary: make its largest component positive.
    values: Floats = deviations @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    return values
