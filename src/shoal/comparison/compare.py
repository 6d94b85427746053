"""compare(): every method at several k on one table, what each loses and risks, and what promises cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from shoal.algorithms.cost import PROBE, predicted_seconds
from shoal.algorithms.method import Method, SharedWork
from shoal.algorithms.registry import AUTO, CONFIDENTIAL_METHODS, METHODS, choose
from shoal.blocks.rule import Blocking
from shoal.comparison.compare_request import MASKING, CompareRequest
from shoal.comparison.subject import Subject
from shoal.comparison.trials import VARIED_PROMISES, Comparison, Trial, pareto
from shoal.core.checks import as_names, check_k
from shoal.core.errors import InputError
from shoal.core.messages import count, count_holders, parameter
from shoal.core.parameters import with_parameters_of
from shoal.core.progress import DONE, STOP, watch, within
from shoal.core.types import Floats, State
from shoal.masking.plan import choose_rule
from shoal.masking.request import MaskRequest
from shoal.promises.promise_registry import describe_promises, read_promise, write_promise
from shoal.promises.rule_enforcement import rehearse_rules
from shoal.tables.columns import Name
from shoal.tables.files import open_data

__all__ = ["compare", "compare_request"]

Promise = Mapping[str, Any]  # parameters of a request; none for no promise


@with_parameters_of(CompareRequest)
def compare(data: Any, k: Sequence[int] | int = (3, 5, 10), **parameters: Any) -> Comparison:
    """Try methods at several k on one table, and say which combinations nothing beats.

    Parameters
    ----------
    data
        A table, an array or the path of a file, as `shoal.mask` takes it.
    *parameters*

    Returns
    -------
    Comparison
        Loss, risk, groups and time of each run; it prints itself.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = compare(X, k=[3, 6], methods=["mdav", "centroid"])
    >>> [(trial.method, trial.k) for trial in found.front][-1][1]
    6
    """
    return compare_request(data, CompareRequest(k=k, **parameters))


def compare_request(data: Any, request: CompareRequest) -> Comparison:
    """Compare as a request says."""
    sizes, masking, time_limit = request.sizes, request.masking(), request.time_limit
    promises = _promises(masking, diversity=request.diversity, closeness=request.closeness)
    read = partial(open_data, data, numbers=masking.numbers, named=True, **masking.csv)
    table = watch(lambda _: read(), None, title="read", show=request.progress)
    for size in sizes:
        check_k(size, table.rows)
    subject = Subject.read(table, masking)
    entries = _wanted(request.methods, promises, subject)
    fitting = [size for size in sizes if subject.suits(replace(masking, k=size))]
    chosen, left_out = _affordable(entries, subject, masking, fitting, time_limit)
    left_out |= _too_large(sizes[len(fitting) :], subject, request.unit)
    requests = _requests(masking, chosen, fitting, promises, time_limit)
    if len(promises) > 1 or request.unit is not None:
        rehearse_rules()  # compiling is no part of a run
    trials = watch(
        lambda state: _try_all(subject, requests, time_limit, left_out, state),
        len(requests) * len(subject.cell),
        title="compare",
        show=request.progress,
    )
    if not trials:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise InputError(f"{parameter('methods')} names no method that can run here: {reasons}.")
    names = list(subject.numbers.names)
    recorded = masking.recorded(names)
    told = {
        "k": [int(size) for size in fitting],
        "methods": [entry.name for entry in entries],
        **{name: recorded[name] for name in MASKING if name not in ("confidential", "thousands")},
        "confidential": as_names(request.confidential),
        **{name: [write_promise(promise[name]) for promise in promises if name in promise] for name in VARIED_PROMISES},
        "time_limit": time_limit,
    }
    return Comparison(pareto(trials), left_out, records=len(subject.cell), columns=names, parameters=told)


def _requests(
    request: MaskRequest, methods: Sequence[Method], sizes: Sequence[int], promises: Sequence[Promise], limit: float
) -> list[MaskRequest]:
    """Return what is tried: every method at every size with every promise, and methods made for one only with it."""
    return [
        replace(request, method=entry, options=_options(entry, limit), k=size, **promise)
        for entry, size, promise in product(methods, sizes, promises)
        if not entry.confidential or "closeness" in promise
    ]


def _too_large(sizes: Sequence[int], subject: Subject, unit: Name | None) -> dict[str, str]:
    """Say of group sizes that a cell cannot keep why they are left out."""
    least = count_holders(subject.fewest, unit)
    why = f"a stratum, or records of it that miss the same columns, has only {least}"
    return {f"k = {size}": why for size in sizes}


def _promises(request: MaskRequest, **given: Any) -> list[Promise]:
    """Return what is promised in each trial: nothing, then every promise on its own."""
    promises: list[Promise] = [{}]
    for name, models in given.items():
        for model in models if isinstance(models, (list, tuple)) else [] if models is None else [models]:
            promise = {name: read_promise(name, model)}
            replace(request, **promise).models()  # refused here, before anything runs
            promises += [] if promise in promises else [promise]
    return promises


def _wanted(methods: Any, promises: Sequence[Promise], subject: Subject) -> list[Method]:
    """Return the methods to try, each once."""
    if not isinstance(methods, str) and not callable(methods):
        wanted = list(methods)
    elif methods != "all":
        wanted = [methods]
    elif len(promises) == 1:
        wanted = list(METHODS)
    else:
        made_for = CONFIDENTIAL_METHODS if any("closeness" in promise for promise in promises) else ()
        wanted = [AUTO, *made_for]
    columns = subject.planned.columns
    compared = [*columns.compared(columns.masked), *columns.compared(columns.nominal)]
    return list({entry.name: entry for entry in (choose(method, len(compared)) for method in wanted)}.values())


def _try_all(
    subject: Subject, asked: Sequence[MaskRequest], time_limit: float, left_out: dict[str, str], state: State
) -> list[Trial]:
    """Try requests one after the other; say of those that cannot be kept, or not in time, why they are left out."""
    trials: list[Trial] = []
    shared: dict[SharedWork, list[Mapping[str, Any]]] = {}
    for done, request in enumerate(asked, start=1):
        if state[STOP]:
            break
        entry, given = request.entry, _shared_work(request, subject, shared)
        promised = describe_promises(request.promises)
        keeps = entry.time_option is not None and not promised
        try:
            with within(state, None if keeps else time_limit, len(subject.cell)) as limited:
                attempt = subject.attempt(request, limited, given)
        except InputError as refusal:
            left_out[", ".join(filter(None, [entry.name, f"k = {request.k}", promised]))] = refusal.args[0]
            continue
        if keeps or not limited[STOP]:
            trials.append(attempt.measure())
        else:
            named = f"{entry.name}, {promised}" if promised else entry.name
            left_out[named] = f"a run (k = {request.k}) was not done after {time_limit:g} s"
        state[DONE] = done * len(subject.cell)
    return trials


def _affordable(
    entries: Sequence[Method], subject: Subject, request: MaskRequest, sizes: Sequence[int], time_limit: float
) -> tuple[list[Method], dict[str, str]]:
    """Part the methods that can run here in time from those that cannot, with the reason."""
    columns = subject.planned.columns
    compared, nominal = columns.compared(columns.masked), columns.compared(columns.nominal)
    cells = [subject.compared[np.ix_(rows, present)] for rows, present in subject.cells if len(present)]
    chosen, left_out = [], {}
    for entry in entries:
        if entry.univariate and len(compared) > 1:
            left_out[entry.name] = f"it groups one column, the table has {len(compared)}"
            continue
        if nominal and (entry.univariate or not entry.whole_records):
            left_out[entry.name] = f"it sorts the values of a column, but those of {nominal[0]!r} have no order"
            continue
        if not entry.whole_records and (request.unit is not None or columns.confidential):
            left_out[entry.name] = "it groups every column on its own, and so counts no units and keeps no promise"
            continue
        if entry.confidential:
            chosen.append(entry)
            continue
        try:
            blocks = _blocks(replace(request, method=entry).settled(compared, nominal), subject, cells)
        except InputError as refusal:
            left_out[entry.name] = refusal.args[0]
            continue
        options = entry.read_options({})
        if entry.time_option is not None:
            # It keeps the limit but for what it does in any case, which is nothing to speak of on small tables.
            options[entry.time_option] = 0.0
        seconds = 0.0
        if blocks and not (entry.time_option is not None and (entry.anytime or max(map(len, blocks)) <= PROBE)):
            seconds = predicted_seconds(entry, blocks, sizes[0], options, seed=request.seed)
        if seconds > time_limit:
            left_out[entry.name] = (
                f"a run would take about {seconds:,.0f} s on {count(len(subject.cell), 'record')}, more than "
                f"{time_limit:g} s"
            )
        else:
            chosen.append(entry)
    return chosen, left_out


def _options(entry: Method, time_limit: float) -> dict[str, Any]:
    """Return the method's options, with a time limit where it has one."""
    return entry.read_options({} if entry.time_option is None else {entry.time_option: time_limit})


def _block_rule(request: MaskRequest, subject: Subject) -> Blocking | None:
    return choose_rule(request, subject.records, subject.planned.plan, most=1)


def _blocks(request: MaskRequest, subject: Subject, cells: Sequence[Floats]) -> list[Floats]:
    """Return the cells, in parts as large as blocks where masking cuts them in blocks."""
    rule = _block_rule(request, subject)
    if rule is None:
        return list(cells)
    return [part for cell in cells for part in np.array_split(cell, -(-len(cell) // rule.L))]


def _shared_work(
    request: MaskRequest, subject: Subject, done: dict[SharedWork, list[Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    """Return for each cell the options that hold work which many runs share, done at the first that asks for it."""
    shared = request.entry.shared
    # Where small cells are left out or joined, the records depend on k; blocks share nothing.
    if shared is None or request.small != "error" or _block_rule(request, subject) is not None:
        return []
    if shared not in done:
        work = shared.load()
        done[shared] = [
            {shared.option: work(np.ascontiguousarray(subject.compared[np.ix_(rows, present)]))} if len(present) else {}
            for rows, present in subject.cells
        ]
    return done[shared]
