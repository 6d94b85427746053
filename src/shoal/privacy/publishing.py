"""publish(): from a confidential table to a differentially private one, in one direction.

read → choose columns → clip to public bounds → share the budget → group → rehearse → record the budget → noise → write.
Algorithms 1 and 2 of the paper are the same steps here: columns that are grouped together share their groups. A budget
that is recorded is spent whatever happens, so everything that can fail has been done before, with other numbers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.privacy.budgets import Budget, check_epsilon
from shoal.privacy.domains import BoundsGiven
from shoal.privacy.joint import Counting
from shoal.privacy.laplace import check_library
from shoal.privacy.ledger import spend
from shoal.privacy.planning import Plan, make_plan
from shoal.privacy.preparing import prepare
from shoal.privacy.publication import Publication
from shoal.privacy.publication_methods import DEFAULT, find_publication_method
from shoal.privacy.randomised_response import truth_probability
from shoal.privacy.releasing import build_table, draw_noise, rehearse, write_release
from shoal.tables.choosing import check_output
from shoal.tables.columns import Name
from shoal.tables.frames import index_notes

__all__ = ["publish"]


def publish(  # noqa: PLR0913 - the parameters of a whole run
    data: Any,
    epsilon: float,
    *,
    delta: float | None = None,
    bounds: BoundsGiven,
    columns: Sequence[Name] | Name | None = None,
    method: str = DEFAULT,
    k: int | None = None,
    labels: Any = None,
    categories: Mapping[Name, Sequence[Any]] | None = None,
    integers: Sequence[Name] | Name | None = None,
    truncate: bool = True,
    monotone: bool = True,
    budget: Budget = "even",
    sets: Sequence[Sequence[Name]] | None = None,
    keep: Sequence[Name] | Name | None = None,
    unit: Name | None = None,
    contributions: int | None = None,
    ledger: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    total_budget: float | None = None,
    total_delta: float | None = None,
    new_ledger: bool = False,
    seed: int | None = None,
    output: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Publication:
    """Publish a table with differential privacy: groups' means with Laplace noise, shared by all records of a group.

    Read the `guarantee` of the result before you release it. ``"insensitive-ir"``, ``"insensitive"`` and ``"none"`` are
    ε-differentially private from raw to released table (Definition 1). All other methods take the groups as given
    (Definition 3), and warn with a `GroupsAsGivenWarning`.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, a NumPy array, or the path of a file.
    epsilon
        The privacy budget of this release: of a record, or of a unit with all of its records. Above 10 it warns with a
        `LargeBudgetWarning`.
    delta
        For ``"marginals"``: δ of (ε, δ)-differential privacy, what may be added to a probability beside the factor e^ε.
        Well below 1/n; for example 1e-9.
    bounds
        The domain of each column, ``{column: (lower, upper)}``, from public knowledge. Values outside are clipped and
        counted. ``"data"`` reads 1.5 times the maximum from the data: for experiments, with a `DataBoundsWarning`.
    columns
        The columns to publish; those that have bounds or categories, if not given. All others are dropped.
    method
        ``"insensitive-ir"``, each column on its own in groups of neighbours, rows without order; ``"insensitive"``, the
        same for one column, and for several whole records in a fixed order, with much more noise; ``"none"``, noise on
        every value; ``"marginals"``, whole records drawn from a model of noisy counts, with `delta`. Under
        Definition 3 ``"optimal"``, ``"mdav-ir"``, ``"mdav"``, any name of `shoal.methods`, or ``"given"`` with
        `labels`.
    k
        The number of records in a group; for ``"optimal"`` the least number. If it is not given, ``"insensitive-ir"``
        computes it from the number of records and epsilon (Proposition 8 of the paper).
    labels
        The groups of method ``"given"``: a number for each record, or the column that holds it.
    categories
        Columns of categories or truth values to publish by randomised response (``"marginals"``: with all others), and
        the categories that there can be, from public knowledge: ``{"sex": ["f", "m"], "smokes": [False, True]}``. Any
        other cell, and a missing one, counts as the last.
    integers
        Columns that are released as integers; their bounds are integers too.
    truncate
        Whether released values are brought into the domain. Without it they can lie outside, but their mean is not
        pulled towards the middle.
    monotone
        Whether noisy means of sorted groups (``"insensitive-ir"``, and ``"insensitive"`` for one column) are brought
        into ascending order, which lowers their error and costs no budget.
    budget
        How columns share epsilon: ``"even"`` (columns that are grouped together share theirs in proportion to the
        width of their domains), ``"sensitivity"`` (all in proportion to the width, which leaves a column in small
        units next to nothing), or a mapping of columns to shares that sum to epsilon.
    sets
        For ``"mdav"``: disjoint sets of columns, each grouped on its own (Algorithm 2); all columns together if not
        given (Algorithm 1).
    keep
        Columns to release unchanged, without any protection, with an `UnprotectedColumnWarning`.
    unit, contributions
        The column that says whose records they are, and the greatest number of records m that one of them can have,
        from public knowledge. Then epsilon covers a unit with all of its records: the noise is that of epsilon / m for
        a record. A table in which somebody has more is refused. The column is not released. Without them a person with
        m records is protected by m times epsilon only.
    ledger, dataset, total_budget, total_delta, new_ledger
        A JSON file in which the budget is recorded before anything is released, and refused when the total budget of
        the data set of that name would be exceeded. The first release says ``new_ledger=True`` and the total.
    seed
        Draw reproducible noise, for experiments, with a `SeededNoiseWarning`: such a result must not be released.
    output
        Write the released table to this file, as a whole or not at all.
    delimiter, encoding, decimal
        How the CSV file of the data is written; taken from the file itself if not given. The release is written with
        commas, points and UTF-8, whatever they are.
    thousands
        The sign between thousands in a CSV file; none if not given.

    Returns
    -------
    Publication
        The released table, the guarantee in words, budgets, expected errors.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"name": list("abcdef"), "sales": [1.0, 9.0, 2.0, 8.5, 1.5, 9.5]})
    >>> release = publish(firms, epsilon=10, bounds={"sales": (0, 10)}, k=3)
    >>> release.data.columns
    ['sales']
    >>> release.definition, release.estimates["sales"].mean.error.__round__(2)
    (1, 0.33)
    """
    check_library()
    chosen = find_publication_method(method)
    epsilon = check_epsilon(epsilon)
    check_output(data, output)
    _check_ledger(ledger, dataset, total_budget, total_delta, new_ledger=new_ledger)
    csv: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    ready = prepare(data, columns, bounds, unit, contributions, categories=categories, integers=integers, **csv)
    asked: dict[str, Any] = {
        "delta": delta,
        "k": k,
        "labels": labels,
        "budget": budget,
        "sets": sets,
        "keep": keep,
        "truncate": truncate,
        "monotone": monotone,
    }
    plan = make_plan(ready, chosen, epsilon, **asked, seed=seed)
    facts = _facts(plan)
    rehearse(plan, output if ledger is not None else None)
    entry = None
    if ledger is not None:
        deltas = {"delta": delta, "total_delta": total_delta}
        entry = spend(ledger, epsilon, total_budget, _details(plan, dataset), **deltas, new=new_ledger)

    noisy = draw_noise(plan)
    released = build_table(plan, noisy.values, noisy.told)
    if output is not None:
        write_release(released, output)
    said = {"budget": budget if isinstance(budget, str) else "given", "seed": seed}
    return Publication(
        data=released.native,
        ledger_entry=entry,
        estimates=noisy.estimates,
        tree=noisy.tree,
        parameters=_parameters(plan, said),
        **facts,
    )


def _check_ledger(
    ledger: str | os.PathLike[str] | None,
    dataset: str | None,
    total_budget: float | None,
    total_delta: float | None,
    *,
    new_ledger: bool,
) -> None:
    if ledger is None:
        given = {"total_budget": total_budget, "total_delta": total_delta, "dataset": dataset}
        for name, value in (given | {"new_ledger": new_ledger or None}).items():
            if value is not None:
                raise InputError(
                    f"{parameter(name)} requires a ledger. Name the ledger's file in {parameter('ledger')}."
                )
    elif not isinstance(dataset, str) or not dataset.strip():
        raise InputError(
            f"{parameter('ledger')} requires {parameter('dataset')}, the name of the data set whose budget it keeps, "
            f"so that it is not mistaken for the ledger of another, got {dataset!r}."
        )


def _details(plan: Plan, dataset: str | None) -> dict[str, Any]:
    """Return what the ledger records of a release: nothing that depends on a value."""
    unit = plan.ready.unit
    return {
        "dataset": dataset,
        "schema": [str(name) for name in plan.ready.table.names],
        "method": plan.method.name,
        "definition": plan.method.definition,
        "columns": [str(name) for name in plan.ready.published],
        **({} if unit is None else {"unit": str(unit.column), "contributions": unit.contributions}),
    }


def _parameters(plan: Plan, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that decided the result, as plain values."""
    ready = plan.ready
    return {
        "epsilon": plan.epsilon,
        **({} if plan.counting is None else {"delta": plan.counting.delta}),
        "method": plan.method.name,
        "columns": ready.published,
        "k": plan.k,
        "budget": said["budget"],
        "sets": [[ready.names[j] for j in grouping.columns] for grouping in plan.groupings],
        "keep": plan.kept,
        "integers": [name for name, whole in zip(ready.names, ready.whole, strict=True) if whole],
        "truncate": plan.truncate,
        "monotone": plan.ordered and plan.monotone,
        "unit": None if ready.unit is None else ready.unit.column,
        "contributions": None if ready.unit is None else ready.unit.contributions,
        "bounds": "data" if ready.bounds.from_data else "given",
        "seed": said["seed"],
    }


def _facts(plan: Plan) -> dict[str, Any]:
    """Return what a publication says of itself and of each column: promise, domains, and what was done."""
    ready = plan.ready
    ends = zip(ready.bounds.lower.tolist(), ready.bounds.upper.tolist(), strict=True)
    answers = {answer.name: answer.outside for answer in ready.answers}
    return {
        "guarantee": plan.promise,
        "definition": plan.method.definition,
        "epsilon": plan.epsilon,
        "unit": ready.unit,
        "records": len(ready.X),
        "budgets": plan.shares,
        "bounds": dict(zip(ready.names, ends, strict=True)),
        "categories": {answer.name: answer.categories for answer in ready.answers},
        "clipped": dict(zip(ready.names, ready.outside.tolist(), strict=True)) | answers,
        "public_notes": tuple(_notes(plan)),
        "dropped": tuple(
            str(name) for name in ready.table.names if name not in ready.published and name not in plan.kept
        ),
        **(_of_groups(plan) if plan.counting is None else _of_counts(plan, plan.counting)),
    }


def _of_groups(plan: Plan) -> dict[str, Any]:
    """Return the noise of each column, its groups and the expected SSE."""
    ready = plan.ready
    errors, labels, sizes = np.empty(len(ready.names)), np.empty(ready.X.shape, dtype=np.int64), {}
    for grouping in plan.groupings:
        averaging = grouping.averaging_error(ready.X, ready.clipped)
        for j, error in zip(grouping.columns, averaging, strict=True):
            errors[j] = error + grouping.noise_error(float(plan.scales[j]))
            labels[:, j], sizes[j] = grouping.labels, grouping.sizes
    answers = zip(ready.answers, plan.budgets[len(ready.names) :].tolist(), strict=True)
    return {
        "scales": dict(zip(ready.names, plan.scales.tolist(), strict=True)),
        "truth": {answer.name: truth_probability(len(answer.categories), budget) for answer, budget in answers},
        "expected_sse": dict(zip(ready.names, errors.tolist(), strict=True)),
        "labels": labels,
        "sizes": {name: sizes[column] for column, name in enumerate(ready.names)},
    }


def _of_counts(plan: Plan, counting: Counting) -> dict[str, Any]:
    """Return the noise on the counts of each column and of pairs; there are no groups."""
    spending = counting.spending
    return {
        "scales": dict(zip(plan.ready.published, spending.histogram_scales, strict=True)),
        "truth": {},
        "expected_sse": {},
        "labels": np.empty((len(plan.ready.X), 0), dtype=np.int64),
        "sizes": {},
        "delta": counting.delta,
        "rho": spending.rho,
        "pair_scale": spending.pair_scale,
    }


def _notes(plan: Plan) -> list[str]:
    notes = []
    if plan.kept:
        notes.append(f"released as they are, without protection: {', '.join(map(str, plan.kept))}")
    notes += index_notes(plan.ready.table)
    if plan.ready.bounds.from_data:
        notes.append("bounds were read from the data: for experiments, not for release")
    if plan.counting is not None:
        notes.append("records were drawn from a model: a row belongs to nobody, and sums of columns are not kept")
    elif not plan.method.keeps_rows:
        notes.append(
            "rows stand in the order of the groups, not in the order of the input"
            if len(plan.groupings) + len(plan.ready.answers) == 1
            else "every column stands in an order of its own: cells of a row do not belong together"
        )
    if not plan.truncate:
        notes.append("values may lie outside their domain: they were not truncated")
    return notes
