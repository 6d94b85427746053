"""Privacy budgets: division of ε into shares, and conversion of (ε, δ) to a zCDP budget ρ.

Budgets spent on disjoint columns add up (sequential composition), so the shares sum to ε. Budgets spent on disjoint
groups of records do not add up (parallel composition), so every group of a column has the column's whole share.

A mechanism is ρ-zCDP (zero-concentrated differential privacy; M. Bun and T. Steinke, 2016) if its Rényi divergence of
every order α > 1 between neighbouring tables is at most ρα. Then

- mechanisms that run in sequence, each of which may use earlier results, are together (ρ₁ + ρ₂ + …)-zCDP;
- Gaussian noise of standard deviation σ on a vector that changes by at most Δ (Euclidean) is Δ²/(2σ²)-zCDP;
- the mechanism is (ε, δ)-differentially private for every ε, with
  δ = inf_{α>1} e^((α−1)(αρ−ε)) (1−1/α)^α / (α−1)
  (C. Canonne, G. Kamath and T. Steinke, The discrete Gaussian for differential privacy, 2020, Proposition 12).

The last bound holds for each α separately, so an α that is not optimal errs on the safe side.
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

__all__ = [
    "BUDGETS",
    "Budget",
    "check_delta",
    "check_epsilon",
    "delta_of",
    "gaussian_scale",
    "guess_of",
    "rho_of",
    "split_budget",
]

Budget = Literal["sensitivity", "even"] | Mapping[Any, float]
BUDGETS: tuple[str, ...] = ("sensitivity", "even")


def check_epsilon(epsilon: object, name: str = "epsilon") -> float:
    """Return a budget as a float; refuse an invalid budget.

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
    """Divide ε among columns; the shares never sum to more than ε.

    Rule ``"sensitivity"`` divides in proportion to the width of the domain (ε_i = ε Δ_i / ΣΔ), so that all columns get
    noise of the same scale. ``"even"`` gives every set of jointly grouped columns the same share and divides this share
    within the set in proportion to the width. For whole records, this yields the noise of the paper. A mapping sets the
    share of each column.

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
    while math.fsum(shares) > epsilon:  # rounding errors must not raise the sum above epsilon
        shares[largest] = np.nextafter(shares[largest], 0)
    if not (shares > 0).all():
        name = names[int(np.argmin(shares))]
        raise InputError(
            f"{parameter('budget')} must leave every column a share of epsilon, but the share of {name!r} rounds to 0 "
            f"next to the others. Use {setting('budget', 'even')}, or set the shares."
        )
    return shares


def _user_shares(epsilon: float, shares: Mapping[Any, float], names: Sequence[Name]) -> Floats:
    for name in shares:
        check_name(name, names, "budget")
    for name in names:
        if name not in shares:
            raise InputError(f"{parameter('budget')} must set a share for every published column; {name!r} has none.")
    values = np.array([check_epsilon(shares[name], f"budget[{name!r}]") for name in names])
    total = math.fsum(values)
    if not math.isclose(total, epsilon, rel_tol=1e-9):
        raise InputError(f"{parameter('budget')} must sum to epsilon={epsilon:g}, but its shares sum to {total:g}.")
    return values * (epsilon / total)


ROUNDING = 1e-9  # reserve for the rounding error of float64 in δ


def check_delta(delta: object, n: int) -> float:
    """Return δ as a float; refuse an invalid δ. Publishing one random record in the clear has δ = 1/n.

    Examples
    --------
    >>> check_delta(1e-6, 1000)
    1e-06
    """
    rule = (
        f"a number above 0 and below 1/n = {1 / n:.3g}, because publishing one whole record at random has δ = 1/n; for "
        "example 1e-9"
    )
    if delta is None:
        raise InputError(f"Method 'marginals' requires {parameter('delta')}: {rule}.")
    try:
        value = float(delta)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(delta, bool) or not 0 < value < 1 / n:
        raise InputError(f"{parameter('delta')} must be {rule}, got {delta!r}.")
    return value


def delta_of(rho: float, epsilon: float) -> float:
    """Return a δ for which ρ-zCDP implies (ε, δ)-differential privacy.

    Examples
    --------
    >>> 0 < delta_of(0.1, 2.0) < math.exp(-((2.0 - 0.1) ** 2) / 0.4)
    True
    """
    low, high = 1.0, (epsilon + 1) / (2 * rho) + 2
    # The logarithm of the bound is convex in α, so its slope changes sign once. Bisect to the precision of float64.
    while low < (alpha := (low + high) / 2) < high:
        slope = (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)
        low, high = (alpha, high) if slope < 0 else (low, alpha)
    alpha = high
    exponent = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    return math.exp(min(exponent, 0.0))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ for which ρ-zCDP implies (ε, δ)-differential privacy, rounded down.

    Examples
    --------
    >>> rho = rho_of(1.0, 1e-6)
    >>> delta_of(rho, 1.0) <= 1e-6 < delta_of(1.001 * rho, 1.0)
    True
    """
    low, high = 0.0, epsilon + 1
    while low < (rho := (low + high) / 2) < high:
        low, high = (rho, high) if delta_of(rho, epsilon) * (1 + ROUNDING) <= delta else (low, rho)
    return low


def guess_of(rho: float, epsilon: float) -> float:
    """Return the greatest probability of a correct guess between two equally likely values of a record.

    An attacker who knows all other records and sees a ρ-zCDP release can distinguish two neighbouring tables with an
    advantage of at most √(ρ/2) (Pinsker's inequality). The advantage is also limited by ε and δ.

    Examples
    --------
    >>> round(guess_of(0.02, 1.0), 2)
    0.55
    """
    delta = delta_of(rho, epsilon)
    allowed = (math.expm1(min(epsilon, 700.0)) + 2 * delta) / (math.exp(min(epsilon, 700.0)) + 1)
    return (1 + min(math.sqrt(rho / 2), allowed, 1.0)) / 2


def gaussian_scale(sensitivity: float, rho: float) -> float:
    """Return the standard deviation of Gaussian noise that spends ρ.

    Examples
    --------
    >>> gaussian_scale(2.0, 0.5)
    2.0
    """
    return sensitivity / math.sqrt(2 * rho)
