"""The whole way of the data, in one direction.

read → choose and encode columns → standardise → partition → aggregate → decode → VERIFY → write. Each step is
another module's job; this one wires them together.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shoal.aggregation import AGGREGATES, Aggregate
from shoal.algorithms.registry import Outcome, find
from shoal.blocks.blocking import Blocks, choose_blocking
from shoal.engines.dask import is_dask, mask_dask, mask_paths
from shoal.engines.local import is_beyond_memory, mask_files
from shoal.engines.request import Request
from shoal.engines.workers import Nursery
from shoal.errors import InputError, NotKAnonymousWarning
from shoal.grouping import check_k
from shoal.manifest import write_labels
from shoal.measures import group_sizes, released_loss, scaling
from shoal.partitioning import aggregate_groups, cut_blocks, group_cells, group_in_blocks, live_title
from shoal.planning import MISSING, Missing, Plan, check_choice, choose_masked, plan_records
from shoal.progress import watch
from shoal.release import Release
from shoal.tables.choosing import as_names, check_output, open_data
from shoal.tables.files import check_target, write_file
from shoal.tables.frames import Name, Table, codes_of, strata_of
from shoal.tables.outputs import moved_together
from shoal.types import Floats, Ints, State
from shoal.verification import verify

__all__ = ["mask_table"]

Integers = Literal["float", "round"]
INTEGERS: tuple[Integers, ...] = ("float", "round")


def mask_table(
    data: Any,
    k: int,
    *,
    columns: Sequence[Name] | Name | None,
    method: str,
    by: Sequence[Name] | Name | None,
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None,
    missing: Missing,
    integers: Integers,
    aggregate: Aggregate,
    block: int | None,
    split: str | None,
    engine: str | None,
    memory: str | int | None,
    processes: int | None,
    scheduler: str | None,
    seed: int | None,
    output: str | os.PathLike[str] | None,
    labels: str | os.PathLike[str] | None,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    progress: bool,
    nursery: Nursery | None,
    options: Mapping[str, object],
) -> Release:
    """Mask a table; see `shoal.mask`. `nursery`: where worker processes come from, if it has been started already."""
    watchmaker = _Stopwatch()
    entry = find(method)
    chosen = entry.read_options(dict(options))
    check_choice("missing", missing, MISSING)
    check_choice("integers", integers, INTEGERS)
    check_choice("aggregate", aggregate, AGGREGATES)
    if weights is not None and aggregate != "mean":
        raise InputError(f"Parameter 'weights' goes with aggregate='mean' only, got aggregate={aggregate!r}.")
    check_output(data, output)
    by_names, wanted = as_names(by), None if columns is None else as_names(columns)

    asked = Request(k, wanted, method, chosen, by_names, weights, missing, integers, aggregate, block, split, seed)
    if labels is not None:
        check_target(labels)
        for what, path in (("input", data), ("output", output)):
            if isinstance(path, (str, os.PathLike)) and Path(path).resolve() == Path(labels).resolve():
                raise InputError(f"Parameter 'labels' must not name the {what}, got {labels}. Name another file.")
        if is_dask(data) or engine == "dask":
            raise InputError("Parameter 'labels' does not go with Dask. Take engine='local' or 'memory'.")
    if is_dask(data):
        return mask_dask(data, asked)
    csv: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    if engine == "dask":
        return mask_paths(data, asked, output=output, scheduler=scheduler, **csv)
    if is_beyond_memory(data, engine, memory):
        return mask_files(
            data,
            asked,
            output=output,
            labels=labels,
            memory=memory,
            processes=processes,
            progress=progress,
            nursery=nursery,
            **csv,
        )

    with watchmaker("read"):
        numbers = [*(wanted or ()), *([weights] if isinstance(weights, str) else [])]
        table, source = open_data(data, numbers=numbers, delimiter=delimiter, encoding=encoding, decimal=decimal)

    with watchmaker("encode"):
        names = choose_masked(table, wanted, by_names, weights)
        if entry.univariate and len(names) != 1:
            raise InputError(
                f"Method {method!r} masks one column, got {len(names)}: {', '.join(map(str, names))}. Name one column, "
                "or take 'individual-ranking' (each column on its own) or a multivariate method."
            )
        check_k(k, table.rows)
        plan = plan_records(table, names, by_names, weights, missing, k)

    rule = choose_blocking(
        block,
        split,
        k,
        len(names),
        max(len(rows) for rows, _ in plan.cells),
        method=method,
        useful=entry.whole_records and not entry.univariate and not entry.anytime,
        able=entry.whole_records,
    )
    blocks: Blocks | None = None
    if rule is not None:
        with watchmaker("block"):
            blocks, block_of = cut_blocks(plan, rule)

    with watchmaker("standardise"):
        scale = scaling(plan.X) if blocks is None else blocks.scale
        Z = scale.apply(plan.X)

    def group(state: State) -> Outcome:
        if blocks is None:
            return group_cells(Z, plan, entry, k, chosen, seed, state)
        return group_in_blocks(Z, blocks, block_of, entry, k, chosen, seed, state)

    with watchmaker("partition"):
        grouped = watch(
            group,
            len(Z),
            title=live_title(method, Z) if entry.anytime and blocks is None and len(plan.cells) == 1 else method,
            show=progress,
            keep=entry.anytime,
        )

    with watchmaker("aggregate"):
        released = aggregate_groups(Z, plan, grouped.labels, aggregate)

    with watchmaker("decode"):
        whole = integers == "round"
        values = {name: released[:, j] for j, name in enumerate(names)}
        masked = plan.table.replaced(values, whole=whole)

    with watchmaker("verify"):
        back = np.column_stack([masked.column(name).values for name in names])
        _verify(masked, back, by_names, k, whole_records=entry.whole_records)

    loss, column_loss = released_loss(Z, scale.apply(back))
    notes = list(plan.notes)
    if wanted is None:
        notes.insert(0, "all numeric columns were masked, as none were named")
    notes += _integer_notes(plan, whole, loss, released_loss(Z, scale.apply(released))[0])
    if not entry.whole_records and len(names) > 1:
        warning = (
            f"Method {method!r} groups every column on its own: a record's combination of released values may be "
            "unique, so the release is not k-anonymous for whole records. Take a multivariate method for that."
        )
        warnings.warn(warning, NotKAnonymousWarning, stacklevel=3)
        notes.append("NOT k-anonymous for whole records: every column was grouped on its own")

    total = float(np.nansum(np.square(Z)))
    release = Release(
        data=masked.native,
        labels=grouped.labels,
        sizes=_sizes(grouped.labels),
        loss=loss,
        bound=None if grouped.bound is None else (100 * grouped.bound / total if total > 0 else 0.0),
        status=grouped.status,
        column_loss=dict(zip(names, column_loss.tolist(), strict=True)),
        kept=plan.kept,
        parameters={**asked.parameters(names), **csv},
        facts=grouped.facts,
        notes=tuple(notes),
        timings=watchmaker.seconds,
        certificate=grouped.certificate,
        _origin=plan,
    )
    with watchmaker("write"), moved_together():
        if output is not None:
            rows = plan.kept if len(plan.kept) < table.rows else None
            write_file(masked.native, output, like=source, changed=[str(name) for name in names], rows=rows)
        if labels is not None:
            write_labels(release, Path(labels))
    return release


@dataclass
class _Stopwatch:
    """Seconds by step."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start


def _verify(masked: Table, values: Floats, by: list[Name], k: int, *, whole_records: bool) -> None:
    strata = codes_of(strata_of(masked, by), masked.rows)
    for released in [values] if whole_records else [values[:, [j]] for j in range(values.shape[1])]:
        verify(released, k, strata)


def _sizes(labels: Ints) -> Ints:
    if labels.ndim == 2:
        return np.concatenate([group_sizes(column) for column in labels.T])
    return group_sizes(labels)


def _integer_notes(plan: Plan, whole: bool, loss: float, unrounded: float) -> list[str]:
    if not plan.integer_columns:
        return []
    names = ", ".join(map(str, plan.integer_columns))
    if whole:
        return [f"integer columns were rounded ({names}), which adds {loss - unrounded:+.5f} % to the loss"]
    return [f"integer columns hold decimals now ({names}); integers='round' keeps them whole"]
