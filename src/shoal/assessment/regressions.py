"""Regressions before and after masking: one model is fitted to both tables and compared by coefficient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.assessment.record_pairs import as_text
from shoal.assessment.statistics import Pair
from shoal.core.errors import InputError
from shoal.core.messages import count, parameter
from shoal.core.types import Floats
from shoal.tables.columns import Name
from shoal.tables.table import Table, check_name

__all__ = ["Coefficient", "fit_model", "regression"]

MOST_VALUES = 50  # greatest number of values of a categorical column in a model
Z95 = 1.96


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a regression, before and after masking.

    Parameters
    ----------
    name
        The explanatory column, with its value if it is categorical, or ``"(constant)"``.
    value
        The estimates before and after; NaN if the column, or all records with this value, are missing.
    error
        The standard error of the estimate before.
    error_after
        The standard error of the estimate after.
    model
        The model as written by the user.
    """

    name: str
    value: Pair
    error: float
    error_after: float = float("nan")
    model: str = ""

    @property
    def inside(self) -> bool:
        """Return True if the masked estimate is within the 95 % interval of the original estimate."""
        return bool(abs(self.value.after - self.value.before) <= Z95 * self.error)

    @property
    def overlap(self) -> float:
        """The overlap of the two 95 % intervals, as the mean of its share of each: 1 if equal, 0 if disjoint.

        A. F. Karr, C. N. Kohnen, A. Oganian, J. P. Reiter and A. P. Sanil (2006).

        Examples
        --------
        >>> Coefficient("x", Pair(0.0, 1.96), 1.0, 1.0).overlap
        0.5
        """
        halves = Z95 * self.error, Z95 * self.error_after
        ends = [(middle - half, middle + half) for middle, half in zip(self.value, halves, strict=True)]
        if not min(halves) > 0:  # also false for NaN
            return float("nan")
        common = max(0.0, min(end for _, end in ends) - max(start for start, _ in ends))
        return (common / halves[0] + common / halves[1]) / 4


def fit_model(model: str, before: Table, after: Table) -> tuple[Coefficient, ...]:
    """Fit a model such as ``"profit ~ sales + region"`` to both tables; the first category is the reference."""
    target, _, right = (part.strip() for part in model.partition("~"))
    terms = [term.strip() for term in right.split("+")]
    if not target or not all(terms):
        raise InputError(f"{parameter('model')} must have the form 'y ~ a + b', got {model!r}.")
    for name in [target, *terms]:
        check_name(name, before.names, "model")
        check_name(name, after.names, "model")
    names: list[str] = []
    designs: tuple[list[Floats], list[Floats]] = ([], [])
    for term in terms:
        called, *columns = _columns(term, before, after)
        names += called
        for design, column in zip(designs, columns, strict=True):
            design.append(column)
    pairs = [
        (table[target].numbers().values, np.column_stack(design))
        for table, design in zip((before, after), designs, strict=True)
    ]
    complete = ~np.isnan(np.column_stack(pairs[0])).any(axis=1)
    if complete.sum() <= len(names) + 1:
        raise InputError(
            f"{parameter('model')} has {len(names) + 1} coefficients, but only {count(int(complete.sum()), 'record')} "
            "without missing values in its columns. Name fewer columns."
        )
    return tuple(replace(coefficient, model=model) for coefficient in regression(pairs[0], pairs[1], names))


def _columns(name: Name, before: Table, after: Table) -> tuple[list[str], Floats, Floats]:
    """Return a term's columns in both design matrices: its numbers, or indicators of all categories but the first."""
    tables = before, after
    if all(name in table.numeric_names() or name in table.timed_names() for table in tables):
        x, y = (table[name].numbers().values[:, None] for table in tables)
        return [str(name)], x, y
    old, new = (as_text(table.keys([name])["0"]) for table in tables)
    values = [*old.drop_nulls().unique().sort(), *sorted(set(new.drop_nulls()) - set(old.drop_nulls()))]
    if not 2 <= len(values) <= MOST_VALUES:
        raise InputError(
            f"{parameter('model')} names column {name!r}, which has {len(values):,} different values; a categorical "
            f"column in a model must have 2 to {MOST_VALUES}. Leave it out."
        )
    x, y = (
        np.column_stack([(cells == value).cast(pl.Float64).fill_null(np.nan).to_numpy() for value in values[1:]])
        for cells in (old, new)
    )
    return [f"{name} = {value}" for value in values[1:]], x, y


def regression(
    before: tuple[Floats, Floats], after: tuple[Floats, Floats], names: Sequence[str]
) -> tuple[Coefficient, ...]:
    """Regress y on the columns of X by least squares, over the complete records of (y, X), before and after masking.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> constant, slope = regression((x + 1, x[:, None]), (2 * x + 1, x[:, None]), ["x"])
    >>> round(slope.value.before, 6), round(slope.value.after, 6)
    (1.0, 2.0)
    """
    (old, error), (new, error_after) = _least_squares(*before), _least_squares(*after)
    return tuple(
        Coefficient(name, Pair(float(b), float(a)), float(e), float(f))
        for name, b, a, e, f in zip(["(constant)", *names], old, new, error, error_after, strict=True)
    )


def _least_squares(y: Floats, X: Floats) -> tuple[Floats, Floats]:
    design = np.column_stack([np.ones(len(y)), X])
    complete = ~np.isnan(np.column_stack([design, y])).any(axis=1)
    design, y = design[complete], y[complete]
    coefficients, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)  # None is the default of NumPy 2
    residuals = y - design @ coefficients
    freedom = len(y) - rank
    variance = residuals @ residuals / freedom if freedom > 0 else np.nan
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(design.T @ design)))
    gone = ~design.any(axis=0)  # a category without records
    return np.where(gone, np.nan, coefficients), np.where(gone, np.nan, errors)
