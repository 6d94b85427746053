"""The whole way of the data, in one direction.

read → choose and encode columns → standardise → partition → aggregate → decode → VERIFY → write. Each step is
another module's job; this one wires them together.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from shoal.algorithms.registry import Outcome, check_options, find
from shoal.blocks.blocking import Blocks, choose_blocking
from shoal.core.checks import check_k
from shoal.core.errors import InputError, NotKAnonymousWarning
from shoal.core.measures import group_sizes, released_loss, scaling
from shoal.core.progress import watch
from shoal.core.types import Ints, State
from shoal.engines.dask import is_dask, mask_dask, mask_paths
from shoal.engines.local import is_beyond_memory, mask_files
from shoal.engines.request import Request
from shoal.engines.workers import Nursery
from shoal.masking.aggregation import AGGREGATES, Aggregate
from shoal.masking.grouping import aggregate_groups, cut_blocks, group_cells, group_in_blocks, live_title
from shoal.masking.manifest import write_labels
from shoal.masking.plan import MISSING, Missing, Plan, check_choice, choose_masked, plan_records
from shoal.masking.release import Release
from shoal.masking.verification import count_unique, recount, row_hashes
from shoal.tables.choosing import as_names, check_output, open_data
from shoal.tables.files import CSV, check_target, write_file
from shoal.tables.frames import Name, open_table
from shoal.tables.outputs import moved_together

__all__ = ["mask_table"]

Integers = Literal["float", "round"]
INTEGERS: tuple[Integers, ...] = ("float", "round")
ENGINES = ("memory", "local", "dask")


def mask_table(
    data: Any,
    k: int,
    *,
    columns: Sequence[Name] | Name | None,
    method: str | Callable[..., Any],
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
    csv: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    _check_places(data, engine=engine, memory=memory, processes=processes, scheduler=scheduler, output=output, csv=csv)
    by_names, wanted = as_names(by), None if columns is None else as_names(columns)
    check_choice("missing", missing, MISSING)
    check_choice("integers", integers, INTEGERS)
    check_choice("aggregate", aggregate, AGGREGATES)
    if weights is not None and aggregate != "mean":
        raise InputError(f"Parameter 'weights' goes with aggregate='mean' only, got aggregate={aggregate!r}.")
    check_output(data, output)
    check_options(method, options)
    asked = Request(k, wanted, method, options, by_names, weights, missing, integers, aggregate, block, split, seed)
    if labels is not None:
        check_target(labels)
        for what, path in (("input", data), ("output", output)):
            if isinstance(path, (str, os.PathLike)) and Path(path).resolve() == Path(labels).resolve():
                raise InputError(f"Parameter 'labels' must not name the {what}, got {labels}. Name another file.")
        if is_dask(data) or engine == "dask":
            raise InputError("Parameter 'labels' does not go with Dask. Take engine='local' or 'memory'.")
    if is_dask(data):
        return mask_dask(data, asked)
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
    if processes is not None:
        raise InputError(
            f"Parameter 'processes' goes with engine='local' only, got {processes!r} for a table that is masked in "
            "memory. Leave it out, or take engine='local'."
        )

    with watchmaker("read"):
        numbers = [*(wanted or ()), *([weights] if isinstance(weights, str) else [])]
        table, source = open_data(data, numbers=numbers, delimiter=delimiter, encoding=encoding, decimal=decimal)

    with watchmaker("encode"):
        names = choose_masked(table, wanted, by_names, weights)
        asked = asked.settled(names)
        entry = find(asked.method)
        method, chosen = entry.name, asked.options
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
        masked = plan.table.replaced(values, whole=whole).bare()
        back = np.column_stack([masked.column(name).values for name in names])
        data_out = masked.native
        rows = plan.kept if len(plan.kept) < table.rows else None
        if source is not None:
            data_out = source.restored(data_out, [*names, *by_names], rows)

    loss, column_loss = released_loss(Z, scale.apply(back))
    notes = list(plan.notes)
    if wanted is None:
        notes.insert(0, "all numeric columns were masked, as none were named")
    notes += asked.notes()
    notes += _integer_notes(plan, whole, loss, released_loss(Z, scale.apply(released))[0])
    if not entry.whole_records and len(names) > 1:
        warning = (
            f"Method {method!r} groups every column on its own: a record's combination of released values may be "
            "unique, so the release is not k-anonymous for whole records. Take a multivariate method for that."
        )
        warnings.warn(warning, NotKAnonymousWarning, stacklevel=3)
        notes.append("NOT k-anonymous for whole records: every column was grouped on its own")

    if output is not None:
        notes += _index_notes(data_out)
    total = float(np.nansum(np.square(Z)))
    release = Release(
        data=data_out,
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
        left=tuple(name for name in plan.table.names if name not in {*names, *by_names}),
        certificate=grouped.certificate,
        _origin=plan,
    )
    recounted = _Recount(names, by_names, k, plan.table.names, whole_records=entry.whole_records)
    with watchmaker("write"), moved_together():
        if output is None:
            recounted(open_table(data_out).keys(plan.table.names))
        else:
            changed, strata = [str(name) for name in names], [str(name) for name in by_names]
            write_file(data_out, output, like=source, changed=changed, strata=strata, rows=rows, check=recounted)
        release = replace(release, uniques=recounted.uniques)
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


@dataclass
class _Recount:
    """Counts the groups of a released table, by its cells alone, and the records that are unique in it."""

    columns: Sequence[Name]
    by: Sequence[Name]
    k: int
    names: Sequence[Name]
    whole_records: bool
    uniques: int = 0

    def __call__(self, released: pl.DataFrame) -> None:
        # By place: names may be of any type, and a file may spell them otherwise.
        released = released.rename(dict(zip(released.columns, map(str, range(released.width)), strict=True)))
        place = {name: str(i) for i, name in enumerate(self.names)}
        masked, strata = [place[name] for name in self.columns], [place[name] for name in self.by]
        recount(released, masked, strata, self.k, whole_records=self.whole_records)
        if not self.whole_records or len({*masked, *strata}) < released.width:
            self.uniques = count_unique(row_hashes(released))


def _check_places(
    data: object,
    *,
    engine: str | None,
    memory: object,
    processes: object,
    scheduler: str | None,
    output: object,
    csv: Mapping[str, str | None],
) -> None:
    """Refuse what says where and how to work if it would not be heeded."""
    if engine is not None:
        check_choice("engine", engine, ENGINES)
    if processes is not None and (isinstance(processes, bool) or not isinstance(processes, int) or processes < 1):
        raise InputError(f"Parameter 'processes' must be a whole number of at least 1, got {processes!r}.")
    for name, value, only in (
        ("memory", memory, ("local", None)),
        ("processes", processes, ("local", None)),
        ("scheduler", scheduler, ("dask",)),
    ):
        if value is not None and (engine not in only or is_dask(data)):
            raise InputError(
                f"Parameter {name!r} goes with engine={only[0]!r} and a path only, got {name}={value!r} with "
                f"{'a Dask DataFrame' if is_dask(data) else f'engine={engine!r}'}. Leave it out."
            )
    if is_dask(data):
        if engine not in (None, "dask"):
            raise InputError(
                f"Parameter 'engine' must be 'dask' for a Dask DataFrame, got {engine!r}. Compute the table first to "
                "mask it in memory."
            )
        if output is not None:
            raise InputError(
                f"Parameter 'output' does not go with a Dask DataFrame, got {output}: the masked table stays on the "
                "cluster. Write it from there: release.data.to_parquet(…)."
            )
    for name, sign in csv.items():
        if sign is not None and not _may_be_csv(data):
            raise InputError(
                f"Parameter {name!r} says how a CSV file is written, got {sign!r} for a table that is none. "
                "Leave it out."
            )


def _may_be_csv(data: object) -> bool:
    """Say whether a table is a CSV file, or a folder or glob, whose files are looked at when they are read."""
    if not isinstance(data, (str, os.PathLike)):
        return False
    return Path(data).suffix.lower() in CSV or not Path(data).is_file()


def _index_notes(table: Any) -> list[str]:
    """Say that the index of pandas stays behind: a file has columns only."""
    index = nw.maybe_get_index(nw.from_native(table, eager_only=True))
    if index is None or type(index).__name__ == "RangeIndex":
        return []
    return ["the index of the pandas table is not in the file; reset_index() makes it a column"]


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
