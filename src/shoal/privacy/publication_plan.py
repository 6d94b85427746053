"""Publication plan: the decisions made before a budget is spent, such as the shares of ε and the groups."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.core.checks import as_names
from shoal.core.errors import (
    GroupsAsGivenWarning,
    InputError,
    LargeBudgetWarning,
    SeededNoiseWarning,
    UnevenBudgetWarning,
    UnprotectedColumnWarning,
)
from shoal.core.measures import canonical_labels
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints
from shoal.masking.steps import unit_words
from shoal.privacy.budgets import Budget, split_budget
from shoal.privacy.confidential_table import ConfidentialTable, check_group_size, column_sets
from shoal.privacy.guarantee import guarantee
from shoal.privacy.noise import check_grid, check_grids
from shoal.privacy.privacy_unit import budgets_of_records
from shoal.privacy.publication_methods import GIVEN, MARGINALS, PublicationMethod
from shoal.privacy.publish_request import PublishRequest
from shoal.privacy.randomised_response import truth_probability
from shoal.privacy.record_groups import ColumnGroups, group_columns
from shoal.privacy.synthesis import CountPlan, plan_counts
from shoal.tables.columns import Name
from shoal.tables.table import check_name

__all__ = ["PublicationPlan", "make_plan", "shares_of_columns"]

LARGE = 10.0  # an ε above this is large: e^10 is 22,000
LITTLE = 0.05  # a share below this fraction of an even share of ε is very small
CALLER = 6  # stack frames from a warning here to the caller of publish


@dataclass(frozen=True)
class PublicationPlan:
    """The plan of a publication, with all decisions made before a budget is spent."""

    # The table, the method, the whole budget and the requested group size.
    prepared: ConfidentialTable
    method: PublicationMethod
    epsilon: float
    k: int | None
    shares: Mapping[Name, float]  # each published column's share of ε
    budgets: Floats  # each column's budget per record: numeric columns first, then categorical ones
    groupings: Sequence[ColumnGroups]  # the groups of the numeric columns
    unprotected: list[Name]  # columns that are released unchanged
    # True to truncate released numbers to the domain; True to put the means of sorted groups in ascending order.
    truncate: bool
    monotone: bool
    rng: np.random.Generator | None  # the random generator of an experiment, or None
    counting: CountPlan | None = None  # the plan for measuring counts, if records are drawn from a model

    @property
    def promise(self) -> str:
        """The guarantee of ε in words."""
        return guarantee(
            self.method,
            self.epsilon,
            self.prepared.published,
            unprotected=self.unprotected,
            unit=self.prepared.unit,
            data_bounds=self.prepared.bounds.from_data,
            seeded=self.rng is not None,
            counted=None if self.counting is None else (self.counting.delta, self.counting.spending.rho),
        )

    @property
    def scales(self) -> Floats:
        """The scale of the noise on the sum of a group, per numeric column."""
        scales = np.empty(len(self.prepared.names))
        for grouping in self.groupings:
            for j in grouping.columns:
                scales[j] = grouping.noise_scale(float(self.prepared.bounds.width[j]), float(self.budgets[j]))
        return scales

    @property
    def ordered(self) -> bool:
        """Return True if the groups follow an order of values that was fixed beforehand."""
        return not self.method.keeps_rows and all(len(grouping.columns) == 1 for grouping in self.groupings)


def make_plan(prepared: ConfidentialTable, request: PublishRequest) -> PublicationPlan:
    """Check the request against the table, divide the budget and form the groups."""
    method, epsilon, truncate, monotone = request.entry, request.epsilon, request.truncate, request.monotone
    group_labels = _groups(prepared, method, request.groups)
    unprotected = _unprotected_columns(prepared, as_names(request.keep), method)
    k = check_group_size(method, request.k, len(prepared.X), len(prepared.names))
    sets = column_sets(method, prepared.names, request.sets)
    rng = _generator(request.seed)
    if method is MARGINALS:
        _check_counted(request)
        counting = plan_counts(prepared, epsilon, request.delta)
        _warn(method, epsilon, {})
        return PublicationPlan(
            prepared, method, epsilon, k, {}, np.empty(0), [], unprotected, truncate, monotone, rng, counting
        )
    if request.delta is not None:
        raise InputError(f"{parameter('delta')} requires method 'marginals', got method {method.name!r}.")
    shares = shares_of_columns(epsilon, request.budget, prepared, sets)
    budgets = budgets_of_records(shares, prepared.unit)
    check_grids(len(prepared.X), budgets, prepared.published)
    _check_answers(prepared, budgets)
    groupings = group_columns(method, prepared.clipped, prepared.bounds, budgets, sets, k, group_labels)
    for grouping in groupings:
        for j in grouping.columns:
            width = float(prepared.bounds.width[j]) if prepared.whole[j] else None
            check_grid(len(prepared.X), float(budgets[j]), grouping.touched, prepared.names[j], width)
    named_shares = dict(zip(prepared.published, shares.tolist(), strict=True))
    _warn(method, epsilon, named_shares if isinstance(request.budget, str) else {})
    return PublicationPlan(
        prepared, method, epsilon, k, named_shares, budgets, groupings, unprotected, truncate, monotone, rng
    )


def shares_of_columns(
    epsilon: float, budget: Budget, prepared: ConfidentialTable, sets: Sequence[Sequence[int]]
) -> Floats:
    """Return each published column's share of ε; a categorical column is a set of its own."""
    d, answers = len(prepared.names), len(prepared.answers)
    if answers and budget == "sensitivity":
        raise InputError(
            f"{setting('budget', 'sensitivity')} cannot be combined with categories ({prepared.answers[0].name!r}), "
            f"which have no width. Use {setting('budget', 'even')}, or set the shares."
        )
    width = np.concatenate([prepared.bounds.width, np.ones(answers)])
    return split_budget(epsilon, budget, prepared.published, width, [*sets, *([d + i] for i in range(answers))])


def _warn(method: PublicationMethod, epsilon: float, shares: Mapping[Name, float]) -> None:
    if method.definition == 3:
        warnings.warn(
            f"Method {method.name!r} covers values with the groups taken as given (Definition 3): the release shows "
            "groups that may follow the data, and an attacker who knows the other records can use them to exclude "
            "most possible values, for any epsilon. For differential privacy from raw to released table, use method "
            "'insensitive-ir' or 'none'.",
            GroupsAsGivenWarning,
            stacklevel=CALLER,
        )
    if epsilon > LARGE:
        warnings.warn(
            f"{parameter('epsilon')} is {epsilon:g}: above {LARGE:g}, a factor of e^{epsilon:g} guarantees almost "
            "nothing. Values of 1 or less are usual to protect people.",
            LargeBudgetWarning,
            stacklevel=CALLER,
        )
    little = {name: share for name, share in shares.items() if share < LITTLE * epsilon / len(shares)}
    if little:
        text = ", ".join(f"{name!r} {share:.2g}" for name, share in little.items())
        warnings.warn(
            f"{parameter('budget')} leaves some columns a very small share of epsilon={epsilon:g}: {text}. Their "
            "values will be mostly noise. Shares by domain width depend on the columns' units; use "
            f"{setting('budget', 'even')}, or set the shares.",
            UnevenBudgetWarning,
            stacklevel=CALLER,
        )


def _check_counted(request: PublishRequest) -> None:
    """Refuse parameters that do not apply to records drawn from a model."""
    for name, default in (("budget", "even"), ("truncate", True), ("monotone", True)):
        value = getattr(request, name)
        if value != default:
            raise InputError(
                f"{parameter(name)} cannot be combined with method 'marginals', got {value!r}. This method draws "
                f"records from counts of all columns, within their domains. Leave {parameter(name)} out."
            )


def _groups(prepared: ConfidentialTable, method: PublicationMethod, groups: Any) -> Ints | None:
    """Return the user's groups, from an array or a column of the table."""
    if (groups is None) == (method is GIVEN):
        raise InputError(
            f"{parameter('groups')} sets the groups of method 'given' and is used by no other method, got method "
            f"{method.name!r} {'without' if groups is None else 'with'} groups."
        )
    if groups is None:
        return None
    if isinstance(groups, (str, int)):
        check_name(groups, prepared.table.names, "groups")
        if groups in prepared.published:
            raise InputError(
                f"{parameter('groups')} names column {groups!r}, which is to be published. Use another column."
            )
        values: Any = np.asarray(unit_words(prepared.table, groups))
    else:
        values = np.asarray(groups)
    if values.shape != (len(prepared.X),) or values.dtype.kind not in "iu":
        raise InputError(
            f"{parameter('groups')} must be an array with the number of each record's group, or name a column of such "
            f"numbers, got an array of shape {values.shape} and type {values.dtype}."
        )
    return canonical_labels(np.unique(values, return_inverse=True)[1])


def _check_answers(prepared: ConfidentialTable, budgets: Floats) -> None:
    for answer, epsilon in zip(prepared.answers, budgets[len(prepared.names) :].tolist(), strict=True):
        if truth_probability(len(answer.categories), epsilon) <= 0:
            raise InputError(
                f"{parameter('epsilon')} leaves column {answer.name!r} a budget of {epsilon:g}, which is too small. "
                "Use a larger epsilon or fewer columns."
            )


def _generator(seed: object) -> np.random.Generator | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"{parameter('seed')} must be a whole number of at least 0, got {seed!r}.")
    warnings.warn(
        "The noise is drawn from a seed: anyone who knows or guesses the seed can remove the noise, so no guarantee "
        "holds. For experiments only; do not release the result.",
        SeededNoiseWarning,
        stacklevel=CALLER,
    )
    return np.random.default_rng(int(seed))


def _unprotected_columns(prepared: ConfidentialTable, names: list[Name], method: PublicationMethod) -> list[Name]:
    """Check and return the columns to release unchanged, and warn about them."""
    for name in names:
        check_name(name, prepared.table.names, "keep")
        if prepared.unit is not None and name == prepared.unit.column:
            raise InputError(
                f"{parameter('unit')} and {parameter('keep')} both name column {name!r}: a unit column is not released."
            )
        if name in prepared.published:
            raise InputError(
                f"{parameter('columns')} and {parameter('keep')} both name column {name!r}: it is either protected or "
                "released unchanged."
            )
    if not names:
        return []
    if not method.keeps_rows:
        raise InputError(
            f"{parameter('keep')} cannot be combined with method {method.name!r}, got {', '.join(map(str, names))}: "
            "its rows are synthetic, so no other column fits next to them."
        )
    warnings.warn(
        f"Columns released unchanged, without any protection: {', '.join(map(str, names))}. They can reveal whom a "
        "record belongs to; epsilon does not cover them.",
        UnprotectedColumnWarning,
        stacklevel=CALLER,
    )
    return names
