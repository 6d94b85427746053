"""Comparison of methods at several k on one table, by loss and risk, with the cost of promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from shoal.algorithms.cost import PROBE, predicted_seconds
from shoal.algorithms.registry import AUTO, CONFIDENTIAL_METHODS, METHODS, Method, SharedWork, choose
from shoal.assessment.coded_records import CodedRecords
from shoal.comparison.compare_request import MASKING, CompareRequest
from shoal.comparison.trials import VARIED_PROMISES, Comparison, Trial, attempt, fewest, pareto, serves
from shoal.core.checks import as_names, check_k
from shoal.core.errors import InputError
from shoal.core.messages import count, count_holders, parameter
from shoal.core.parameters import with_parameters_of
from shoal.core.progress import DONE, STOP, watch, within
from shoal.core.types import Floats, State
from shoal.masking.column_patterns import expand_patterns
from shoal.masking.group import cells_of
from shoal.masking.memory import MemoryRecords
from shoal.masking.pipeline import decide_roles, prepare
from shoal.masking.plan import Plan, choose_rule
from shoal.masking.request import MaskRequest
from shoal.masking.request_rules import check_promises
from shoal.masking.roles import settle
from shoal.masking.steps import number_of_cells
from shoal.promises.promise_registry import describe_promises, read_promise, write_promise
from shoal.promises.rule_enforcement import rehearse_rules
from shoal.tables.columns import Name
from shoal.tables.files import check_reading, named_source, open_data

__all__ = ["compare", "compare_request"]

Promise = Mapping[str, Any]  # parameters of a request; empty for no promise


@with_parameters_of(CompareRequest)
def compare(data: Any, k: Sequence[int] | int = (3, 5, 10), **parameters: Any) -> Comparison:
    """Try methods at several k on one table and find the combinations that no other beats.

    Parameters
    ----------
    data
        A table, an array or the path of a file, as for `shoal.mask`.
    *parameters*

    Returns
    -------
    Comparison
        Loss, risk, groups and time of each run; its text is a table.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> comparison = compare(X, k=[3, 6], methods=["mdav", "centroid"])
    >>> [(trial.method, trial.k) for trial in comparison.front][-1][1]
    6
    """
    return compare_request(data, CompareRequest(k=k, **parameters))


def compare_request(data: Any, request: CompareRequest) -> Comparison:
    """Run a comparison as specified by a request."""
    data = named_source(data)
    sizes, masking, time_limit = request.sizes, request.masking(), request.time_limit
    if masking.takes_names:
        masking = expand_patterns(masking, data)
    promises = _promises(masking, diversity=request.diversity, closeness=request.closeness)
    read = partial(open_data, data, numbers=masking.numbers, named=True, reading=masking.reading)
    check_reading(data, masking.reading)
    table = watch(lambda _: read(), None, title="read", show=request.progress)
    for size in sizes:
        check_k(size, table.rows)
    masking, _ = decide_roles(data, masking, table)
    records = MemoryRecords(table.coded(masking.codes))
    plan = prepare(records, masking)
    entries = _methods(request.methods, promises, plan)
    smallest_cell = fewest(records, plan)
    fitting = [size for size in sizes if masking.small != "error" or size <= smallest_cell]
    cells = _cells(records, plan)
    methods, left_out = _affordable(entries, cells, plan, masking, fitting, time_limit)
    left_out |= _too_large(sizes[len(fitting) :], smallest_cell, request.unit)
    requests = _requests(masking, methods, fitting, promises, time_limit)
    if len(promises) > 1 or request.unit is not None:
        rehearse_rules()  # compile before the timed runs
    trials = watch(
        lambda state: _try_all(records, plan, cells, requests, time_limit, left_out, state),
        len(requests) * plan.rows,
        title="compare",
        show=request.progress,
    )
    if not trials:
        reasons = "; ".join(f"{name}: {why.rstrip('.')}" for name, why in left_out.items())
        raise InputError(
            f"{parameter('methods')} contains no method that can run here: {reasons}. Use other methods or a longer "
            "time limit."
        )
    names = list(plan.columns.masked)
    recorded = masking.recorded(names)
    parameters = {
        "k": [int(size) for size in fitting],
        "methods": [entry.name for entry in entries],
        **{name: recorded[name] for name in MASKING if name not in ("confidential", "roles", "reading")},
        "confidential": as_names(masking.confidential),
        **{name: [write_promise(promise[name]) for promise in promises if name in promise] for name in VARIED_PROMISES},
        "time_limit": time_limit,
    }
    return Comparison(pareto(trials), left_out, records=plan.rows, columns=names, parameters=parameters)


def _requests(
    request: MaskRequest, methods: Sequence[Method], sizes: Sequence[int], promises: Sequence[Promise], limit: float
) -> list[MaskRequest]:
    """Return a request for every method, size and promise; try methods made for a promise only with that promise."""
    return [
        replace(request, method=entry, options=_options(entry, limit), k=size, **promise)
        for entry, size, promise in product(methods, sizes, promises)
        if not entry.confidential or "closeness" in promise
    ]


def _too_large(sizes: Sequence[int], smallest_cell: int, unit: Name | None) -> dict[str, str]:
    """Return the reason for leaving out each group size that exceeds the smallest cell."""
    why = f"a stratum, or its records with the same missing columns, has only {count_holders(smallest_cell, unit)}"
    return {f"k = {size}": why for size in sizes}


def _cells(records: MemoryRecords, plan: Plan) -> list[Floats]:
    """Return the grouping coordinates of the records in each cell, without the columns that are missing there."""
    Z = CodedRecords.of(records, plan).compared
    cells = cells_of(Z, number_of_cells(records.original(), plan.own[0]))
    return [np.ascontiguousarray(Z[np.ix_(rows, present)]) for rows, present in cells]


def _promises(request: MaskRequest, **models_by_promise: Any) -> list[Promise]:
    """Return the promises of the trials: none, then each promise separately."""
    promises: list[Promise] = [{}]
    for name, models in models_by_promise.items():
        for model in models if isinstance(models, (list, tuple)) else [] if models is None else [models]:
            promise = {name: read_promise(name, model)}
            promised = replace(request, **promise)  # refuse an invalid promise before anything runs
            check_promises(promised)
            promised.models()
            promises += [] if promise in promises else [promise]
    return promises


def _methods(methods: Any, promises: Sequence[Promise], plan: Plan) -> list[Method]:
    """Return the methods to try, without duplicates."""
    if not isinstance(methods, str) and not callable(methods):
        entries = list(methods)
    elif methods != "all":
        entries = [methods]
    elif len(promises) == 1:
        entries = list(METHODS)
    else:
        made_for = CONFIDENTIAL_METHODS if any("closeness" in promise for promise in promises) else ()
        entries = [AUTO, *made_for]
    columns = plan.columns
    compared = [*columns.compared(columns.masked), *columns.compared(columns.nominal)]
    return list({entry.name: entry for entry in (choose(method, len(compared)) for method in entries)}.values())


def _try_all(
    records: MemoryRecords,
    plan: Plan,
    cells: Sequence[Floats],
    requests: Sequence[MaskRequest],
    time_limit: float,
    left_out: dict[str, str],
    state: State,
) -> list[Trial]:
    """Try all requests in sequence; record the reason for each one that cannot be met or does not finish in time."""
    trials: list[Trial] = []
    shared: dict[SharedWork, list[Mapping[str, Any]]] = {}
    for done, request in enumerate(requests, start=1):
        if state[STOP]:
            break
        entry, options = request.entry, list[Mapping[str, Any]]()
        if serves(records, plan, request):  # otherwise the records depend on k
            options = _shared_work(request, plan, cells, shared)
        promised = describe_promises(request.promises)
        keeps = entry.time_option is not None and not promised
        try:
            with within(state, None if keeps else time_limit, plan.rows) as limited:
                run = attempt(records, plan, request, limited, options)
        except InputError as refusal:
            left_out[", ".join(filter(None, [entry.name, f"k = {request.k}", promised]))] = refusal.args[0]
            continue
        if keeps or not limited[STOP]:
            trials.append(run.measure())
        else:
            title = f"{entry.name}, {promised}" if promised else entry.name
            left_out[title] = f"a run (k = {request.k}) did not finish within {time_limit:g} s"
        state[DONE] = done * plan.rows
    return trials


def _affordable(
    entries: Sequence[Method],
    cells: Sequence[Floats],
    plan: Plan,
    request: MaskRequest,
    sizes: Sequence[int],
    time_limit: float,
) -> tuple[list[Method], dict[str, str]]:
    """Return the methods that can run here in time, and the reason for leaving out each of the others."""
    columns = plan.columns
    compared, nominal = columns.compared(columns.masked), columns.compared(columns.nominal)
    affordable, left_out = [], {}
    for entry in entries:
        if entry.univariate and len(compared) > 1:
            left_out[entry.name] = f"it groups one column, the table has {len(compared)}"
            continue
        if nominal and (entry.univariate or not entry.whole_records):
            left_out[entry.name] = f"it sorts the values of a column, but the values of {nominal[0]!r} have no order"
            continue
        if not entry.whole_records and (request.unit is not None or columns.confidential):
            left_out[entry.name] = "it groups every column separately, so it cannot count units or keep promises"
            continue
        if entry.confidential:
            affordable.append(entry)
            continue
        try:
            blocks = _blocks(settle(replace(request, method=entry), columns), plan, cells)
        except InputError as refusal:
            left_out[entry.name] = refusal.args[0]
            continue
        options = entry.read_options({})
        if entry.time_option is not None:
            # The method keeps the limit except for a fixed amount of work, which is negligible on small tables.
            options[entry.time_option] = 0.0
        seconds = 0.0
        if blocks and not (entry.time_option is not None and (entry.anytime or max(map(len, blocks)) <= PROBE)):
            seconds = predicted_seconds(entry, blocks, sizes[0], options, seed=request.seed)
        if seconds > time_limit:
            left_out[entry.name] = (
                f"a run would take about {seconds:,.0f} s on {count(plan.rows, 'record')}, more than {time_limit:g} s"
            )
        else:
            affordable.append(entry)
    return affordable, left_out


def _options(entry: Method, time_limit: float) -> dict[str, Any]:
    """Return the method's options, with the time limit if it accepts one."""
    return entry.read_options({} if entry.time_option is None else {entry.time_option: time_limit})


def _blocks(request: MaskRequest, plan: Plan, cells: Sequence[Floats]) -> list[Floats]:
    """Return the cells that have values, split into parts of block size if masking splits them into blocks."""
    rule = choose_rule(replace(plan, request=request), most=1)
    cells = [cell for cell in cells if cell.shape[1]]
    if rule is None:
        return cells
    return [part for cell in cells for part in np.array_split(cell, -(-len(cell) // rule.L))]


def _shared_work(
    request: MaskRequest, plan: Plan, cells: Sequence[Floats], done: dict[SharedWork, list[Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    """Return, per cell, the options that hold work shared by several runs; the first run does this work."""
    shared = request.entry.shared
    if shared is None or choose_rule(replace(plan, request=request), most=1) is not None:  # blocks share nothing
        return []
    if shared not in done:
        work = shared.load()
        done[shared] = [{shared.option: work(cell)} if cell.shape[1] else {} for cell in cells]
    return done[shared]
