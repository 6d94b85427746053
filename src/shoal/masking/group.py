"""Grouping of the records of a bucket: the method, the refinement of its groups, and the enforcement of promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.algorithms.auto import facts_of
from shoal.algorithms.registry import AUTO, EFFORTS, Method, Outcome, find
from shoal.blocks.block_groups import group_blocks, group_cells
from shoal.core.errors import InputError
from shoal.core.measures import Scaling, canonical_labels, number_through, scaling
from shoal.core.messages import parameter
from shoal.core.progress import STOP, spread
from shoal.core.types import Floats, Ints, State
from shoal.engines.records import Arrays
from shoal.kernels.counting_sort import sort_by_target
from shoal.kernels.words import Words
from shoal.kinds.column import FLOAT
from shoal.kinds.kind import Embedding, rescaled
from shoal.masking.confidential import Promise
from shoal.masking.request import MaskRequest
from shoal.promises.closeness import Closeness
from shoal.promises.promise import GroupPromise
from shoal.promises.rules import reached_by
from shoal.tables.columns import Name

if TYPE_CHECKING:
    from shoal.algorithms.refinement import Variables
    from shoal.masking.aggregate import Rounding
    from shoal.promises.promise import Rules
    from shoal.promises.rule_enforcement import Search

__all__ = ["BucketPlan", "BucketRecords", "cells_of", "group_bucket", "keep_promise", "variables_of"]


class BucketPlan(NamedTuple):
    """The parts of the plan that every bucket needs, and the resources for masking a bucket."""

    request: MaskRequest
    rounding: Rounding
    embedding: Embedding
    promise: Promise
    whole: bool  # True: one bucket, whose blocks are whole cells
    scale: Scaling | None = None  # None: computed from the only bucket
    compared_scale: Scaling | None = None  # scaling of the numbers on their comparison scales; None as for `scale`
    records: int = 0
    parallel: int = 1  # number of buckets masked at the same time
    threads: int = 1  # number of threads for the blocks of a bucket
    amounts: tuple[int, ...] = ()  # indices of the columns of numbers
    shared: Sequence[Mapping[str, Any]] = ()  # method options per cell that several runs reuse

    @classmethod
    def of_numbers(cls, request: MaskRequest, d: int, scale: Scaling | None, *, whole: bool) -> BucketPlan:
        """Return the plan for columns of numbers without promises or rounding."""
        from shoal.masking.aggregate import Rounding

        rounding = Rounding(storages=(FLOAT,) * d)
        return cls(request, rounding, Embedding.of_numbers(d), Promise(), whole=whole, scale=scale)

    def only(self, place: int) -> BucketPlan:
        """Return the plan for one column that is grouped on its own."""
        embedding = replace(self.embedding, codings=self.embedding.codings[place : place + 1])
        return self._replace(embedding=embedding, rounding=self.rounding.only(place))


class BucketRecords(NamedTuple):
    """The records of a bucket, sorted by block."""

    X: Floats
    Z: Floats  # standardised X, with coordinates for categories
    compared: Floats  # coordinates in which the method compares records
    scale: Scaling  # scaling of X
    compared_scale: Scaling  # scaling of X on the comparison scales
    block: Ints  # block or cell of each record
    order: Ints  # index of each record in the arrays received by the bucket
    codes: Ints  # codes of the sensitive columns
    units: Words | None
    weights: Floats | None = None

    @classmethod
    def read(cls, arrays: Arrays, plan: BucketPlan) -> BucketRecords:
        """Read the records from the arrays received by a bucket; sort them unless the blocks are whole cells."""
        block = arrays["block"].reshape(-1).astype(np.int64, copy=False)
        order = np.arange(len(block)) if plan.whole else sort_by_target(block, int(block.max(initial=0)) + 1)[0]
        X = arrays["X"] if plan.whole else np.take(arrays["X"], order, axis=0)
        scale = scaling(X) if plan.scale is None else plan.scale
        Z = plan.embedding.apply(X, scale)
        compared, compared_scale = plan.embedding.compared(Z), scale
        if rescalings := plan.embedding.rescalings:
            U = rescaled(X, rescalings)
            compared_scale = scaling(U) if plan.compared_scale is None else plan.compared_scale
            compared = plan.embedding.place(U, compared_scale)
        confidential = bool(plan.promise.columns)
        codes = arrays["confidential"].reshape(len(X), -1)[order] if confidential else np.empty((len(X), 0), np.int64)
        units, weights = (arrays[name].reshape(-1)[order] if name in arrays else None for name in ("unit", "weights"))
        return cls(X, Z, compared, scale, compared_scale, block[order], order, codes, units, weights)

    @property
    def cells(self) -> list[tuple[Ints, Ints]]:
        """The records of each block or cell, and the columns in which they have values."""
        return cells_of(self.compared, self.block)


def cells_of(X: Floats, cell: Ints) -> list[tuple[Ints, Ints]]:
    """Return the records of each cell and the columns in which they have values."""
    order, begins = sort_by_target(cell, int(cell.max(initial=0)) + 1)
    rows = np.split(order, begins[1:-1])
    return [(members, np.flatnonzero(~np.isnan(X[members[0]]))) for members in rows if len(members)]


def group_bucket(records: BucketRecords, plan: BucketPlan, state: State) -> Outcome:
    """Group the records of a bucket: run the method, refine its groups, and enforce the promises and k units."""
    request, promise = plan.request, plan.promise
    promised = bool(promise.models) or records.units is not None
    outcome = _run_method(records, plan, _first_method(request, promised=promised, whole=plan.whole), state)
    if request.refine:
        outcome = replace(outcome, labels=_refined(outcome.labels, records, plan, state))
    if promised:
        outcome = _regrouped(outcome, keep_promise(records, outcome.labels, plan, state))
    if plan.whole and promise.models:
        return _with_bound(outcome, least_error(records.Z, records.codes, promise))
    return outcome


def _first_method(request: MaskRequest, *, promised: bool, whole: bool) -> tuple[Method, int, Mapping[str, Any]]:
    """Return the first method to run, its k and its options.

    With promises or units, `auto` starts from MDAV and leaves the search to the promises. On a table without blocks,
    `search` does the same. A search that must prove a bound runs first, with half of its time limit.
    """
    entry, options = request.entry, request.options
    if not promised or not (entry.name == AUTO or (entry.anytime and whole)):
        return entry, request.k, options
    if not options.get("bound"):
        return find("mdav"), request.k, find("mdav").read_options({})
    return entry, request.k, half_time(entry, options)


def _run_method(
    records: BucketRecords, plan: BucketPlan, method: tuple[Method, int, Mapping[str, Any]], state: State
) -> Outcome:
    """Return the groups of the method; methods based on closeness form their groups later and return one group here."""
    request = plan.request
    if request.entry.confidential:
        return Outcome(np.zeros(len(records.X), dtype=np.int64))
    if plan.whole:
        return group_cells(records.compared, records.cells, *method, request.seed, state, plan.shared)
    labels = group_blocks(
        records.compared, records.block, *method, records=plan.records, seed=request.seed, state=state,
        workers=plan.threads, parallel=plan.parallel,
    )  # fmt: skip
    facts = facts_of(request.options["effort"]) if request.entry.name == AUTO else {}
    return Outcome(labels, facts={**facts, **({"stopped": "by hand"} if state[STOP] else {})})


def _refined(labels: Ints, records: BucketRecords, plan: BucketPlan, state: State) -> Ints:
    """Move records between the groups of a block or cell to lower the loss of the released values."""
    from shoal.algorithms.refinement import refine

    request, variables = plan.request, variables_of(records.X, plan.embedding, records.scale)

    def moved(rows: Ints, _: Ints) -> Ints:
        columns, coordinates = (np.flatnonzero(~np.isnan(array[rows[0]])) for array in (variables.values, records.Z))
        before = canonical_labels(labels[rows])
        if not len(columns):
            return before
        present = variables._replace(
            release=variables.release[columns],
            values=np.ascontiguousarray(variables.values[np.ix_(rows, columns)]),
            table=variables.table[columns],
        )
        Z = np.ascontiguousarray(records.Z[np.ix_(rows, coordinates)])
        return refine(Z, before, request.k, present, steps=request.refine or 0, seed=request.seed, state=state)

    cells = cells_of(records.X, records.block)
    return number_through(len(records.X), (rows for rows, _ in cells), starmap(moved, cells))


def _regrouped(outcome: Outcome, labels: Ints) -> Outcome:
    """Return the outcome with other groups; the bound stays valid, because it is proven for all partitions."""
    same = np.array_equal(labels, canonical_labels(outcome.labels))
    return replace(
        outcome, labels=labels, status="bounded" if outcome.status == "optimal" and not same else outcome.status
    )


def _with_bound(outcome: Outcome, bound: float) -> Outcome:
    """Return the outcome with the bound for groups that keep the promises, if that bound is higher."""
    if outcome.status == "optimal" or bound <= (outcome.bound or 0.0):
        return outcome
    return replace(outcome, bound=bound, status="bounded", certificate=None)


def variables_of(X: Floats, embedding: Embedding, scale: Scaling) -> Variables:
    """Return the input of refinement: the released statistic, the values and the distances of each variable."""
    from shoal.algorithms.refinement import ANCESTOR, MEAN, MEDIAN, MODE, Variables

    releases = {"mean": MEAN, "median": MEDIAN, "mode": MODE, "ancestor": ANCESTOR}
    Z, codings = scale.apply(X), embedding.codings
    parts = [coding.variables(X, j, Z) for j, coding in enumerate(codings)]
    widths = [part.shape[1] for part in parts]
    unordered = [(coding.squares(), coding.lineage) for coding in codings if not coding.ordered]
    most = max([len(near) for near, _ in unordered], default=1)
    depth = max([lineage.shape[1] for _, lineage in unordered], default=1)
    squares, ancestors = np.zeros((len(unordered), most, most)), np.zeros((len(unordered), most, depth), dtype=np.int64)
    for t, (near, lineage) in enumerate(unordered):
        squares[t, : len(near), : len(near)] = near
        ancestors[t, : len(lineage), : lineage.shape[1]] = lineage
        ancestors[t, : len(lineage), lineage.shape[1] :] = lineage[:, -1:]
    without_order = np.array(embedding.without_order, dtype=np.int64)
    table = np.where(without_order, np.cumsum(without_order) - 1, 0)
    release = np.array([releases[coding.release] for coding in codings], dtype=np.int64)
    values = np.ascontiguousarray(np.hstack(parts))
    return Variables(np.repeat(release, widths), values, np.repeat(table, widths), squares, ancestors)


def keep_promise(records: BucketRecords, labels: Ints, plan: BucketPlan, state: State) -> Ints:
    """Return groups that keep the promises; refuse a promise that a cell breaks as a whole."""
    from shoal.promises.rule_enforcement import Search, keep_rules, repair, rules_of

    request, promise, Z, cells = plan.request, plan.promise, records.compared, records.cells
    rules = promise.rules(records.codes, promise.models, records.units, request.k)
    _check_promise(rules, [rows for rows, _ in cells], plan)
    if not request.entry.confidential:
        search = Search(request.seed, request.steps, state)
        if request.entry.name == AUTO or (request.entry.anytime and plan.whole):
            search = _search_by(request, search, len(Z))
        return keep_rules(Z, labels, cells, request.k, rules, search, threads=plan.threads)

    def grouped(cell: tuple[Ints, Ints]) -> Ints:
        rows, present = cell
        members, cell_rules = np.ascontiguousarray(Z[np.ix_(rows, present)]), rules_of(rules, rows)
        return repair(members, _group_for_closeness(members, cell_rules, plan, state), cell_rules)

    return number_through(len(Z), (rows for rows, _ in cells), spread(grouped, cells, plan.threads))


def _check_promise(rules: Rules, cells: Sequence[Ints], plan: BucketPlan) -> None:
    """Refuse a promise that a cell breaks as a whole, because its groups cannot all keep that promise."""
    cell = np.empty(sum(map(len, cells)), dtype=np.int64)
    for number, rows in enumerate(cells):
        cell[rows] = number
    for rule, (place, model) in enumerate(plan.promise.models):
        lacks, reached = reached_by(rules, rule, cell)
        if (lacks > 0).any():
            worst = model.worst(reached)
            records = len(cells[int(np.flatnonzero(reached == worst)[0])])
            name = plan.promise.columns[place].name
            raise _impossible(name, model, records, worst, len(cells), block=not plan.whole)


def half_time(entry: Method, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a method with half of its time limit, if it has one."""
    seconds = entry.seconds(options)
    return options if seconds is None or entry.time_option is None else {**options, entry.time_option: seconds / 2}


def _search_by(request: MaskRequest, search: Search, n: int) -> Search:
    """Return a search for n records with the steps or the time limit of the method."""
    entry, options = request.entry, half_time(request.entry, request.options)

    def improve(records: Floats) -> Ints:
        return entry.run(records, request.k, options, seed=request.seed, state=search.state).labels

    if request.options.get("bound"):  # the method has searched already
        seconds = entry.seconds(options)
    else:
        search, seconds = search._replace(improve=improve), entry.seconds(request.options)
    steps = entry.steps(options)
    # The search counts its steps relative to the steps per record at the default effort.
    return search._replace(steps=search.steps if steps is None else steps / n / EFFORTS["good"], seconds=seconds)


def _group_for_closeness(records: Floats, rules: Rules, plan: BucketPlan, state: State) -> Ints:
    """Group the records of a cell with an algorithm of Soria-Comas et al."""
    from shoal.promises.closeness_first import closeness_first
    from shoal.promises.k_first import k_first

    request = plan.request
    if request.entry.name == "k-first":
        return k_first(records, request.k, rules, state=state)
    first = next(rule for rule, (_, model) in enumerate(plan.promise.models) if isinstance(model, Closeness))
    return closeness_first(records, rules.codes[first], request.k, float(rules.bounds[first]), state=state)


def least_error(Z: Floats, codes: Ints, promise: Promise) -> float:
    """Return a lower bound on the SSE of any partition that satisfies closeness; 0 if no bound is proven."""
    if not any(isinstance(model, Closeness) for _, model in promise.models):
        return 0.0
    from shoal.promises.closeness_bound import closeness_bound

    return closeness_bound(Z, promise.rules(codes, promise.models))


def _impossible(
    name: Name, model: GroupPromise, records: int, reached: float, cells: int, *, block: bool
) -> InputError:
    place, feasible = "of a stratum with the same missing columns", model.possible(reached)
    remedy = f"Join small strata, or use a weaker promise: {feasible} can be kept."
    if block:
        place = "of a block"
        remedy = "Use a larger block, or 0 for none, join small strata, or use a weaker promise."
    elif cells == 1:
        place, remedy = "of the table", f"Use a weaker promise: {feasible} can be kept."
    return InputError(
        f"{parameter(model.parameter)} requires {model.says} in column {name!r}, but all {records} records {place} "
        f"together have {model.reached_text(reached)}, so their groups cannot all keep it. {remedy}"
    )
