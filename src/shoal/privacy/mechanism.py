"""Publication of a confidential table with differential privacy, in a fixed sequence of steps.

read → choose columns → clip to public bounds → divide the budget → group → rehearse → record the budget → noise →
write. Algorithms 1 and 2 of the paper use the same steps here; columns that are grouped together share their groups. A
recorded budget counts as spent even if a later step fails, so every step that can fail is rehearsed beforehand with
dummy values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.core.parameters import with_parameters_of
from shoal.privacy.confidential_table import prepare
from shoal.privacy.ledger import spend
from shoal.privacy.noise import check_library
from shoal.privacy.noisy_release import build_table, draw_noise, rehearse, write_release
from shoal.privacy.publication import Publication
from shoal.privacy.publication_plan import PublicationPlan, make_plan
from shoal.privacy.publish_request import PublishRequest
from shoal.privacy.randomised_response import truth_probability
from shoal.privacy.synthesis import CountPlan
from shoal.tables.files import check_output, check_reading

__all__ = ["publish", "publish_request"]


@with_parameters_of(PublishRequest)
def publish(data: Any, epsilon: float, **parameters: Any) -> Publication:
    """Publish a table with differential privacy; by default, all records of a group share its noisy mean (Laplace).

    Read the `guarantee` of the result before you release it. ``"insensitive-ir"``, ``"insensitive"`` and ``"none"`` are
    ε-differentially private from raw to released table (Definition 1). All other methods take the groups as given
    (Definition 3) and emit a `GroupsAsGivenWarning`.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, a NumPy array, or the path of a file.
    *parameters*

    Returns
    -------
    Publication
        The released table, the guarantee in words, budgets and expected errors.

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
    return publish_request(data, PublishRequest(epsilon=epsilon, **parameters))


def publish_request(data: Any, request: PublishRequest) -> Publication:
    """Publish a table as specified by a request."""
    check_library()
    check_output(data, request.output)
    check_reading(data, request.reading)
    plan = _plan(data, request)
    facts = _facts(plan)
    rehearse(plan, request.output if request.ledger is not None else None)
    entry = None
    if request.ledger is not None:
        deltas = {"delta": request.delta, "total_delta": request.total_delta}
        details = _details(plan, request.dataset)
        entry = spend(request.ledger, request.epsilon, request.total_budget, details, **deltas, new=request.new_ledger)
    noisy = draw_noise(plan)
    released = build_table(plan, noisy.values, noisy.answer_codes)
    if request.output is not None:
        write_release(released, request.output)
    budget = request.budget if isinstance(request.budget, str) else "given"
    return Publication(
        data=released.native,
        ledger_entry=entry,
        estimates=noisy.estimates,
        tree=noisy.tree,
        parameters=_parameters(plan, budget, request.seed),
        **facts,
    )


def _plan(data: Any, request: PublishRequest) -> PublicationPlan:
    """Read the table and form the groups."""
    prepared = prepare(
        data,
        request.columns,
        request.bounds,
        request.unit,
        request.contributions,
        categories=request.categories,
        integer_columns=request.integer_columns,
        reading=request.reading,
    )
    return make_plan(prepared, request)


def _details(plan: PublicationPlan, dataset: str | None) -> dict[str, Any]:
    """Return the details of a release for the ledger; they do not depend on any value of the table."""
    unit = plan.prepared.unit
    return {
        "dataset": dataset,
        "schema": [str(name) for name in plan.prepared.table.names],
        "method": plan.method.name,
        "definition": plan.method.definition,
        "columns": [str(name) for name in plan.prepared.published],
        **({} if unit is None else {"unit": str(unit.column), "contributions": unit.contributions}),
    }


def _parameters(plan: PublicationPlan, budget: str, seed: int | None) -> dict[str, Any]:
    """Return all parameters that determined the result, as plain values."""
    prepared = plan.prepared
    return {
        "epsilon": plan.epsilon,
        **({} if plan.counting is None else {"delta": plan.counting.delta}),
        "method": plan.method.name,
        "columns": prepared.published,
        "k": plan.k,
        "budget": budget,
        "sets": [[prepared.names[j] for j in grouping.columns] for grouping in plan.groupings],
        "keep": plan.unprotected,
        "integer_columns": [name for name, whole in zip(prepared.names, prepared.whole, strict=True) if whole],
        "truncate": plan.truncate,
        "monotone": plan.ordered and plan.monotone,
        "unit": None if prepared.unit is None else prepared.unit.column,
        "contributions": None if prepared.unit is None else prepared.unit.contributions,
        "bounds": "data" if prepared.bounds.from_data else "given",
        "seed": seed,
    }


def _facts(plan: PublicationPlan) -> dict[str, Any]:
    """Return the attributes of a publication and of its columns, such as guarantee, domains and processing steps."""
    prepared = plan.prepared
    ends = zip(prepared.bounds.lower.tolist(), prepared.bounds.upper.tolist(), strict=True)
    answers = {answer.name: answer.outside for answer in prepared.answers}
    return {
        "guarantee": plan.promise,
        "definition": plan.method.definition,
        "epsilon": plan.epsilon,
        "unit": prepared.unit,
        "records": len(prepared.X),
        "budgets": plan.shares,
        "bounds": dict(zip(prepared.names, ends, strict=True)),
        "categories": {answer.name: answer.categories for answer in prepared.answers},
        "clipped": dict(zip(prepared.names, prepared.outside.tolist(), strict=True)) | answers,
        "public_notes": tuple(_notes(plan)),
        "dropped": tuple(
            str(name)
            for name in prepared.table.names
            if name not in prepared.published and name not in plan.unprotected
        ),
        **(_of_groups(plan) if plan.counting is None else _of_counts(plan, plan.counting)),
    }


def _of_groups(plan: PublicationPlan) -> dict[str, Any]:
    """Return the noise scale, the groups and the expected SSE of each column."""
    prepared = plan.prepared
    errors, labels, sizes = np.empty(len(prepared.names)), np.empty(prepared.X.shape, dtype=np.int64), {}
    for grouping in plan.groupings:
        averaging = grouping.averaging_error(prepared.X, prepared.clipped)
        for j, error in zip(grouping.columns, averaging, strict=True):
            errors[j] = error + grouping.noise_error(float(plan.scales[j]))
            labels[:, j], sizes[j] = grouping.labels, grouping.sizes
    answers = zip(prepared.answers, plan.budgets[len(prepared.names) :].tolist(), strict=True)
    return {
        "scales": dict(zip(prepared.names, plan.scales.tolist(), strict=True)),
        "truth": {answer.name: truth_probability(len(answer.categories), budget) for answer, budget in answers},
        "expected_sse": dict(zip(prepared.names, errors.tolist(), strict=True)),
        "labels": labels,
        "sizes": {name: sizes[column] for column, name in enumerate(prepared.names)},
    }


def _of_counts(plan: PublicationPlan, counting: CountPlan) -> dict[str, Any]:
    """Return the noise on the counts of columns and pairs; this method forms no groups."""
    spending = counting.spending
    return {
        "scales": dict(zip(plan.prepared.published, spending.histogram_scales, strict=True)),
        "truth": {},
        "expected_sse": {},
        "labels": np.empty((len(plan.prepared.X), 0), dtype=np.int64),
        "sizes": {},
        "delta": counting.delta,
        "rho": spending.rho,
        "pair_scale": spending.pair_scale,
    }


def _notes(plan: PublicationPlan) -> list[str]:
    notes = []
    if plan.unprotected:
        notes.append(f"released unchanged, without protection: {', '.join(map(str, plan.unprotected))}")
    notes += plan.prepared.table.index_notes
    if plan.prepared.bounds.from_data:
        notes.append("bounds were read from the data: for experiments only, not for release")
    if plan.counting is not None:
        notes.append("records were drawn from a model: a row belongs to nobody, and sums of columns are not kept")
    elif not plan.method.keeps_rows:
        notes.append(
            "rows are in the order of the groups, not in the order of the input"
            if len(plan.groupings) + len(plan.prepared.answers) == 1
            else "every column has an order of its own: the cells of a row do not belong together"
        )
    if not plan.truncate:
        notes.append("values may be outside their domain because they were not truncated")
    return notes
