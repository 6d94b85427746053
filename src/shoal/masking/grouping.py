"""The records of a plan put in groups, every set on its own, whole or in blocks, and the values of the groups."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from shoal.algorithms.registry import Method, Outcome
from shoal.blocks.blocking import Blocking, Blocks, InMemory, assign, extent_of, find_blocks
from shoal.blocks.running import group_blocks, share_options
from shoal.core.measures import canonical_labels
from shoal.core.memory import peak_memory
from shoal.core.progress import STOP, observe
from shoal.core.types import Floats, Ints, State
from shoal.masking.aggregation import Aggregate, group_values
from shoal.masking.plan import Plan

__all__ = ["aggregate_groups", "cut_blocks", "group_cells", "group_in_blocks", "live_title"]


def group_cells(
    Z: Floats,
    plan: Plan,
    entry: Method,
    k: int,
    options: Mapping[str, Any],
    seed: int | None,
    state: State,
    shared: Sequence[Mapping[str, Any]] = (),
) -> Outcome:
    """Partition every cell and number the groups through; `shared` are options of each cell that serve many runs."""
    labels = np.zeros(len(Z) if entry.whole_records else Z.shape, dtype=np.int64)
    outcomes: list[Outcome] = []
    offset = 0
    limit, seconds, records_left = entry.time_option, entry.seconds(options), len(Z)
    for (rows, present), given in zip(plan.cells, shared or repeat({}), strict=False):
        if not len(present):
            outcome = Outcome(np.zeros(len(rows), dtype=np.int64))
        else:
            records = np.ascontiguousarray(Z[np.ix_(rows, present)])
            allowed = share_options(entry, options, len(rows) / len(Z))
            began = time.monotonic()
            if limit is not None and seconds is not None:
                # Of what earlier cells have left, which may be less or more than their shares.
                allowed[limit] = max(seconds, 0.0) * len(rows) / records_left
            outcome = entry.run(records, k, {**allowed, **given}, seed=seed, state=state)
            if limit is not None and seconds is not None:
                taken = time.monotonic() - began
                # The first run may have had to compile its kernels, which is no part of the time.
                seconds -= taken if outcomes else min(taken, allowed[limit])
        records_left -= len(rows)
        if entry.whole_records:
            labels[rows] = outcome.labels + offset
        else:
            # Cells that are missing share a group of their own, else they would blank the mean of another.
            labels[rows] = offset + int(outcome.labels.max()) + 1
            if len(present):
                labels[np.ix_(rows, present)] = outcome.labels + offset
        offset += int(outcome.labels.max()) + 2
        outcomes.append(outcome)
    merged = _merged(outcomes)
    facts = {**merged.facts, "stopped": "by hand"} if state[STOP] else merged.facts
    return replace(merged, labels=canonical_labels(labels), facts=facts)


def live_title(title: str, Z: Floats) -> Callable[[State], str]:
    """Return what tells of a running search: loss, bound, gap, steps a second."""
    total, began = float(np.nansum(np.square(Z))) or 1.0, time.monotonic()

    def line(state: State) -> str:
        steps, sse, bound = observe(state)
        if sse is None:
            return title
        parts = [f"{title}: loss {100 * sse / total:.5f} %"]
        if bound is not None:
            parts.append(f"bound {100 * bound / total:.5f} %, gap {100 * (sse - bound) / sse if sse else 0.0:.3f} %")
        return ", ".join([*parts, f"{steps / (time.monotonic() - began):,.0f} steps/s"])

    return line


def cut_blocks(plan: Plan, rule: Blocking) -> tuple[Blocks, Ints]:
    """Cut every cell into blocks; return them and the block of each record."""
    roots = np.empty(len(plan.X), dtype=np.int64)
    for number, (rows, _) in enumerate(plan.cells):
        roots[rows] = number
    blocks = find_blocks(InMemory(plan.X, roots), extent_of(plan.X, roots), rule)
    return blocks, assign(0, plan.X, roots, blocks)


def group_in_blocks(
    Z: Floats,
    blocks: Blocks,
    block_of: Ints,
    entry: Method,
    k: int,
    options: Mapping[str, Any],
    seed: int | None,
    state: State,
) -> Outcome:
    """Partition every block; what is proven of a block says nothing of the table."""
    workers = os.cpu_count() or 1
    labels = group_blocks(Z, block_of, entry, k, options, records=len(Z), seed=seed, state=state, workers=workers)
    facts = {**blocks.facts, "engine": "memory", "peak memory": peak_memory()}
    if state[STOP]:
        facts["stopped"] = "by hand"
    return Outcome(canonical_labels(labels), facts=facts)


def _merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Tell of all cells together what was found of each; the labels are the caller's to set."""
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
    )


def aggregate_groups(Z: Floats, plan: Plan, labels: Ints, how: Aggregate) -> Floats:
    """Return the released values of every record; a missing cell stays missing."""
    if labels.ndim == 2:
        released = [
            aggregate_groups(Z[:, [j]], replace(plan, X=plan.X[:, [j]]), labels[:, j], how)
            for j in range(labels.shape[1])
        ]
        return np.column_stack(released)
    # All records of a group miss the same cells, so a NaN stays in its own group and column.
    return np.take(group_values(plan.X, Z, labels, how, plan.weights), labels, axis=0)
