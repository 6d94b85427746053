"""The division of a privacy budget among the published columns.

What is spent on disjoint columns adds up (sequential composition), so the shares sum to ε; what is spent on disjoint
groups of records does not (parallel composition), so every group of a column has the column's whole share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats
from shoal.tables.columns import Name
from shoal.tables.table import check_name

__all__ = ["BUDGETS", "Budget", "check_epsilon", "split_budget"]

Budget = Literal["sensitivity", "even"] | Mapping[Any, float]
BUDGETS: tuple[str, ...] = ("sensitivity", "even")


def check_epsilon(epsilon: object, name: str = "epsilon") -> float:
    """Return a budget as a float, or refuse it.

    Examples
    --------
    >>> check_epsilon(2)
    2.0
    """
    try:
        value = float(epsilon)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(epsilon, bool) or not (math.isfinite(value) and value > 0):
        raise InputError(f"{parameter(name)} must be a positive number, got {epsilon!r}; for example 1.0.")
    return value


def split_budget(
    epsilon: float, rule: Budget, names: Sequence[Name], width: Floats, sets: Sequence[Sequence[int]]
) -> Floats:
    """Share ε among columns; the shares sum to ε and never to more.

    Parameters
    ----------
    epsilon
        The whole budget.
    rule
        ``"sensitivity"``: in proportion to the width of the domain (ε_i = ε Δ_i / ΣΔ), so that all columns get noise
        of one scale. ``"even"``: the same for every set of columns that is grouped together, and within a set in
        proportion to the width, which is the paper's noise for whole records. Or the share of each column.
    names, width
        The columns and the widths of their domains.
    sets
        The column numbers of each set that is grouped together.

    Examples
    --------
    >>> split_budget(1.0, "sensitivity", ["a", "b"], np.array([1.0, 3.0]), [[0], [1]]).tolist()
    [0.25, 0.75]
    >>> split_budget(1.0, "even", ["a", "b"], np.array([1.0, 3.0]), [[0], [1]]).tolist()
    [0.5, 0.5]
    """
    if isinstance(rule, Mapping):
        shares = _user_shares(epsilon, rule, names)
    elif rule == "sensitivity":
        shares = epsilon * (width / width.sum())
    elif rule == "even":
        shares = np.empty(len(names))
        for columns in sets:
            shares[list(columns)] = epsilon / len(sets) * (width[list(columns)] / width[list(columns)].sum())
    else:
        raise InputError(
            f"{parameter('budget')} must be one of {', '.join(map(repr, BUDGETS))} or a mapping of columns to shares "
            f"of epsilon, got {rule!r}."
        )
    largest = int(np.argmax(shares))
    while math.fsum(shares) > epsilon:  # rounding must not spend more than was granted
        shares[largest] = np.nextafter(shares[largest], 0)
    if not (shares > 0).all():
        name = names[int(np.argmin(shares))]
        raise InputError(
            f"{parameter('budget')} must leave every column a share of epsilon, but that of {name!r} vanishes next to "
            f"the others. Use {setting('budget', 'even')}, or set the shares."
        )
    return shares


def _user_shares(epsilon: float, shares: Mapping[Any, float], names: Sequence[Name]) -> Floats:
    for name in shares:
        check_name(name, names, "budget")
    for name in names:
        if name not in shares:
            raise InputError(f"{parameter('budget')} must name a share for every published column; {name!r} has none.")
    values = np.array([check_epsilon(shares[name], f"budget[{name!r}]") for name in names])
    total = math.fsum(values)
    if not math.isclose(total, epsilon, rel_tol=1e-9):
        raise InputError(f"{parameter('budget')} must sum to epsilon={epsilon:g}, but its shares sum to {total:g}.")
    return values * (epsilon / total)
