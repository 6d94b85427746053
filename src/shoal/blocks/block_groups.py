"""Functions that run a method on every block or cell and number all groups consecutively."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from shoal.algorithms.registry import Method, Outcome
from shoal.core.measures import canonical_labels, number_through
from shoal.core.progress import STOP, spread
from shoal.core.types import Floats, Ints, State

__all__ = ["group_blocks", "group_cells", "share_options"]


def share_options(entry: Method, options: Mapping[str, Any], share: float, parallel: int = 1) -> dict[str, Any]:
    """Return the options for a part of the records, with its share of the time limit or of the steps.

    Parts that are searched in parallel each get the time of all these parts. Steps are divided among all parts, so the
    result does not depend on `parallel`.

    Examples
    --------
    >>> from shoal.algorithms.registry import find
    >>> share_options(find("search"), {"time_limit": 60.0, "steps": None}, 0.5)
    {'time_limit': 30.0, 'steps': None}
    """
    shared = dict(options)
    if entry.time_option is not None and (seconds := entry.seconds(options)) is not None:
        shared[entry.time_option] = seconds * share * parallel
    if entry.steps_option is not None and (steps := entry.steps(options)) is not None:
        shared[entry.steps_option] = max(1, int(steps * share))
    return shared


def group_blocks(  # noqa: PLR0913 - five parameters describe the task, five the run
    Z: Floats,
    block: Ints,
    entry: Method,
    k: int,
    options: Mapping[str, Any],
    *,
    records: int,
    seed: int | None,
    state: State,
    workers: int = 1,
    parallel: int | None = None,
) -> Ints:
    """Group the records of each block separately by a method; return the group of each record.

    All records of a block have missing values (NaN) in the same columns. The seed is the same in every block. The time
    limit or the number of steps is for `records` records, and each block gets its share. The number of worker threads
    does not change the groups. `parallel` is the number of blocks searched at the same time on all machines (default:
    `workers`).
    """
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(block[order]) > 0, True])

    def run(members: Ints) -> Ints:
        missing = np.isnan(Z[members[0]])
        if state[STOP] or missing.all():
            return np.zeros(len(members), dtype=np.int64)
        share = share_options(entry, options, len(members) / records, parallel or workers)
        X = np.take(Z, members, axis=0)
        if missing.any():
            X = np.ascontiguousarray(X[:, ~missing])
        labels: Ints = entry.run(X, k, share, seed=seed, state=state).labels
        return labels

    members = [order[a:b] for a, b in pairwise(starts)]
    return number_through(len(Z), members, spread(run, members, workers))


def group_cells(
    Z: Floats,
    cells: Sequence[tuple[Ints, Ints]],
    entry: Method,
    k: int,
    options: Mapping[str, Any],
    seed: int | None,
    state: State,
    shared: Sequence[Mapping[str, Any]] = (),
) -> Outcome:
    """Group the records of every cell separately by a method; number the groups of all cells consecutively.

    A cell is a pair: the records, and the columns in which they have values. `shared` holds options for each cell that
    several runs reuse.
    """
    labels = np.zeros(len(Z) if entry.whole_records else Z.shape, dtype=np.int64)
    outcomes: list[Outcome] = []
    offset = 0
    limit, records_left = entry.time_option, len(Z)
    seconds = None if limit is None else entry.seconds(options)
    for (rows, present), cell_options in zip(cells, shared or repeat({}), strict=False):
        if not len(present):
            outcome = Outcome(np.zeros(len(rows), dtype=np.int64))
        else:
            records = np.ascontiguousarray(Z[np.ix_(rows, present)])
            allowed = share_options(entry, options, len(rows) / len(Z))
            began = time.monotonic()
            if limit is not None and seconds is not None:
                # Share the time that earlier cells have left, which may differ from the plan.
                allowed[limit] = max(seconds, 0.0) * len(rows) / records_left
            outcome = entry.run(records, k, {**allowed, **cell_options}, seed=seed, state=state)
            if limit is not None and seconds is not None:
                elapsed = time.monotonic() - began
                # The first run may compile kernels, and compile time must not count.
                seconds -= elapsed if outcomes else min(elapsed, allowed[limit])
        records_left -= len(rows)
        if entry.whole_records:
            labels[rows] = outcome.labels + offset
        else:
            # Missing values form their own group; otherwise they would make the mean of another group missing.
            labels[rows] = offset + int(outcome.labels.max()) + 1
            if len(present):
                labels[np.ix_(rows, present)] = outcome.labels + offset
        offset += int(outcome.labels.max()) + 2
        outcomes.append(outcome)
    merged = _merged(outcomes, cells)
    facts = {**merged.facts, "stopped": "by hand"} if state[STOP] else merged.facts
    return replace(merged, labels=canonical_labels(labels), facts=facts)


def _merged(outcomes: Sequence[Outcome], cells: Sequence[tuple[Ints, Ints]]) -> Outcome:
    """Combine the outcomes of all cells; the caller sets the labels."""
    if len(outcomes) == 1:
        return outcomes[0]
    bounds = [outcome.bound for outcome in outcomes if outcome.bound is not None]
    proven = len(bounds) == len(outcomes)
    statuses = {outcome.status for outcome in outcomes}
    facts: dict[str, object] = {}
    for name in dict.fromkeys(name for outcome in outcomes for name in outcome.facts):
        values = dict.fromkeys(outcome.facts[name] for outcome in outcomes if name in outcome.facts)
        facts[name] = next(iter(values)) if len(values) == 1 else "/".join(map(str, values))
    return Outcome(
        outcomes[0].labels,
        bound=sum(bounds) if proven else None,
        status=("optimal" if statuses == {"optimal"} else "bounded") if proven else "heuristic",
        facts=facts,
        certificate=_certificates(outcomes, cells) if proven else None,
    )


def _certificates(outcomes: Sequence[Outcome], cells: Sequence[tuple[Ints, Ints]]) -> object:
    """Return the certificates of all cells, or None if one is missing."""
    if any(outcome.certificate is None for outcome in outcomes):
        return None
    from shoal.algorithms.optimize.certificate import Certificates, StratumCertificate

    pairs = zip(cells, outcomes, strict=True)
    return Certificates(
        tuple(StratumCertificate(rows, columns, outcome.certificate) for (rows, columns), outcome in pairs)
    )
