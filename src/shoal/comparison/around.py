"""Comparison of a release with alternatives: the same method at other k, and with stronger and weaker promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.algorithms.registry import ALL_METHODS
from shoal.assessment.coded_records import read_original
from shoal.comparison.trials import VARIED_PROMISES, Comparison, Trial, as_trial, attempt, fewest, pareto
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.progress import DONE, STOP, watch
from shoal.core.types import State
from shoal.masking.memory import MemoryRecords
from shoal.masking.pipeline import prepare
from shoal.masking.release import Release
from shoal.masking.request import MaskRequest, not_recorded
from shoal.masking.verification import identical_records
from shoal.tables.files import open_data
from shoal.tables.formats.frames import open_table
from shoal.tables.table import stratum_codes

__all__ = ["compare_around"]

# Limits on the run time and the table size for trying a method at other k.
MOST_SECONDS = 5.0
MOST_RECORDS = 50_000
SIZES = (2, 3, 5, 10, 15)
FACTORS = (0.5, 1.5, 2.0, 3.0)  # factors of t, and of l − 1
# Parameters that do not affect the figures.
HERE = {"engine": None, "memory": None, "processes": None, "shuffle": False, "escape_formulas": False}


def compare_around(release: Release, original: Any, *, progress: bool = False) -> Comparison | None:
    """Compare a release with the same method and options at other k and with other promises.

    ``release.report(…, comparison=comparison)`` shows the result as a map of risk and utility, with the cost of
    promises.

    Parameters
    ----------
    release
        The result of `shoal.mask`.
    original
        The original table, or its path.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Comparison or None
        None if the comparison would take too long, if the table is not held in memory, or if the method is a user's
        function, which is called only at the user's request.

    Examples
    --------
    >>> from shoal.masking.mask import mask
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> comparison = compare_around(mask(X, 4, method="mdav"), X)
    >>> sorted(trial.k for trial in comparison.trials)
    [2, 3, 4, 5, 8, 10, 15]
    """
    # Exclude the compilation time, because later runs need no compilation.
    seconds = release.timings["partition"] - release.timings.get("compile", 0.0)
    slow = release.records > MOST_RECORDS or seconds > MOST_SECONDS
    if release.parameters["method"] not in ALL_METHODS or slow or not release.labels.size:
        return None
    request = _request_of(release)
    table = open_data(original, numbers=request.numbers, named=True, reading=request.reading)
    records = MemoryRecords(table.coded(request.codes))
    plan = prepare(records, request)
    smallest_cell = fewest(records, plan)
    requests = [variant for variant in _around(request) if variant.small != "error" or variant.k <= smallest_cell]

    def work(state: State) -> list[Trial]:
        trials = [_own_trial(release, original, request, seconds)]
        for done, variant in enumerate(requests, start=1):
            if state[STOP]:
                break
            try:
                trials.append(attempt(records, plan, variant, state).measure())
            except InputError:
                continue  # the table cannot keep this promise
            state[DONE] = done
        return trials

    trials = watch(work, len(requests), title="compare", show=progress)
    parameters = {**release.parameters, "k": sorted({trial.k for trial in trials})}
    return Comparison(pareto(trials), {}, release.records, release.columns, parameters)


def _request_of(release: Release) -> MaskRequest:
    """Return the request of a release; refuse a release if its parameters included objects."""
    if objects := not_recorded(release.parameters):
        raise InputError(
            f"{parameter(objects[0])} was an object, so the table cannot be masked the same way at other k. Put "
            "weights in a column of the table, or leave the comparison out."
        )
    method = ALL_METHODS[release.parameters["method"]]
    return MaskRequest(**{**release.parameters, **HERE, "method": method})


def _own_trial(release: Release, original: Any, request: MaskRequest, seconds: float) -> Trial:
    """Return the release itself as a trial, with its loss and the risk of its released values."""
    numbers, released = read_original(release, original)
    zero = numbers.X[:, [release.columns.index(name) for name in release.parameters["zeros"]]] == 0
    table, by = open_table(release.data), release.parameters["by"]
    strata, unchanged = (
        stratum_codes(table, names) for names in (by, [name for name in release.beside if name not in by])
    )
    cell = identical_records([*np.isnan(numbers.X).T, *zero.T], strata)
    groups = identical_records(released, strata)
    return as_trial(
        request,
        numbers,
        released,
        groups,
        cell,
        unchanged,
        loss=release.loss,
        group_loss=release.group_loss,
        seconds=seconds,
    )


def _around(request: MaskRequest) -> Iterator[MaskRequest]:
    """Yield variants of the request with one change each: another k, or a stronger, weaker or missing promise."""
    for k in sorted({*SIZES, 2 * request.k} - {request.k}):
        yield replace(request, k=k)
    for promise in VARIED_PROMISES:
        promised = request.promises.get(promise)
        if promised is None:
            continue
        if not request.entry.confidential:
            yield _promising(request, promise, None)
        by_column = isinstance(promised, dict)
        models = promised if by_column else {None: promised}
        for factor in FACTORS:
            scaled = {name: model.scaled(factor) for name, model in models.items()}
            if None not in scaled.values():
                yield _promising(request, promise, scaled if by_column else scaled[None])


def _promising(request: MaskRequest, promise: str, model: Any) -> MaskRequest:
    return replace(request, **{promise: model})
