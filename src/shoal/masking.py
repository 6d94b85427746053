"""mask(): the whole way of the data, in one direction.

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
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shoal.aggregation import AGGREGATES, Aggregate, group_values
from shoal.algorithms.registry import Method, Outcome, find
from shoal.blocks.blocking import Blocking, Blocks, InMemory, assign, choose_blocking, extent_of, find_blocks
from shoal.blocks.running import group_blocks, share_options
from shoal.engines.dask import is_dask, mask_dask, mask_paths
from shoal.engines.local import is_beyond_memory, mask_files
from shoal.engines.memory import peak_memory
from shoal.engines.request import Request
from shoal.errors import InputError, NotKAnonymousWarning
from shoal.grouping import check_k
from shoal.manifest import write_labels
from shoal.measures import canonical_labels, group_sizes, released_loss, scaling
from shoal.progress import STOP, observe, watch
from shoal.release import Release
from shoal.tables.choosing import as_names, check_output, choose_columns, open_data
from shoal.tables.files import check_target, write_file
from shoal.tables.frames import Column, Name, Table, check_name, codes_of, strata_of
from shoal.types import Bools, Floats, Ints, State
from shoal.verification import verify

__all__ = [
    "Plan",
    "aggregate_groups",
    "check_choice",
    "choose_masked",
    "group_cells",
    "mask",
    "plan_records",
]

Missing = Literal["error", "group", "drop"]
MISSING: tuple[Missing, ...] = ("error", "group", "drop")
Integers = Literal["float", "round"]
INTEGERS: tuple[Integers, ...] = ("float", "round")


def mask(
    data: Any,
    k: int,
    *,
    columns: Sequence[Name] | Name | None = None,
    method: str = "mdav",
    by: Sequence[Name] | Name | None = None,
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = None,
    missing: Missing = "error",
    integers: Integers = "float",
    aggregate: Aggregate = "mean",
    block: int | None = None,
    split: str | None = None,
    engine: str | None = None,
    memory: str | int | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    seed: int | None = 0,
    output: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    progress: bool = False,
    **options: object,
) -> Release:
    """Mask a table: put its records in groups of at least k similar ones and replace their values by the group's.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, a NumPy array, or the path of a file (CSV, Parquet, Arrow, SPSS, Stata,
        SAS); or a Dask DataFrame, which is masked where it lies.
    k
        The least number of records in a group, at least 2.
    columns
        The columns to mask; all numeric ones but those in `by` and `weights` if not given.
    method
        A name listed by `shoal.methods`.
    by
        Columns that split the table into strata: groups never cross them.
    weights
        Weights of the records, as a column's name or a vector: the group's value is then the weighted mean, so that
        weighted totals are kept. k counts records all the same.
    missing
        What to do with records that miss a value in a masked column: ``"error"`` refuses them, ``"group"`` masks
        them among records that miss the same columns, ``"drop"`` leaves them out of the release.
    integers
        ``"float"`` releases means of integer columns as they are, ``"round"`` keeps them integers.
    aggregate
        The value that stands for a group: ``"mean"``, ``"median"`` or ``"medoid"`` (a real record's values).
    block
        Mask the table in blocks of at most this many records; 0 for none. If not given, tables with more than 100,000
        records in a stratum are masked in blocks of 10,000 by methods that take several columns.
    split
        How blocks are cut: ``"all"`` columns at once (a 2^d-tree), ``"one"`` at a time (above 5 columns, if not given),
        or ``"univariate"`` (equal intervals of the first column).
    engine
        ``"memory"``, or ``"local"`` for a table that stays on disk: CSV or Parquet, as a file, a folder or a glob, to
        the file `output`, by processes of this machine. Chosen by the size of the file if not given. ``"dask"`` masks
        CSV or Parquet files to a Parquet file on a Dask cluster.
    memory
        The memory that engine ``"local"`` may take, all its processes together, such as ``"2GB"``; half of what is free
        if not given. The calling process is one of them, with what it held before. The summary tells the peaks.
    processes
        How many worker processes it has; one a processor if not given.
    scheduler
        The address of the cluster for engine ``"dask"``; the current client, or this process, if not given.
    seed
        Decides the result of a random method.
    output
        Write the masked table to this file, as a whole or not at all.
    labels
        Write the group of each record and the size of the group to this file.
    delimiter, encoding, decimal
        How a CSV file is written; taken from the file itself if not given.
    progress
        Show a progress bar on a terminal.
    **options
        Options of the method.

    Returns
    -------
    Release
        The masked table and what a reader must know about it. It has been verified: every combination of released
        values occurs at least k times in its stratum.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"name": list("abcdef"), "sales": [1.0, 9.0, 2.0, 8.5, 1.5, 9.5]})
    >>> release = mask(firms, k=3, columns=["sales"])
    >>> release.data["sales"].to_list()
    [1.5, 9.0, 1.5, 9.0, 1.5, 9.0]
    >>> round(release.loss, 3)
    1.171
    """
    watchmaker = _Stopwatch()
    entry = find(method)
    chosen = entry.read_options(options)
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
        if is_dask(data) or engine == "dask":
            raise InputError("Parameter 'labels' does not go with Dask. Take engine='local' or 'memory'.")
    if is_dask(data):
        return mask_dask(data, asked)
    csv: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    if engine == "dask":
        return mask_paths(data, asked, output=output, scheduler=scheduler, **csv)
    if is_beyond_memory(data, engine, memory):
        return mask_files(
            data, asked, output=output, labels=labels, memory=memory, processes=processes, progress=progress, **csv
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
            blocks, block_of = _block(plan, rule)

    with watchmaker("standardise"):
        scale = scaling(plan.X) if blocks is None else blocks.scale
        Z = scale.apply(plan.X)

    def group(state: State) -> Outcome:
        if blocks is None:
            return group_cells(Z, plan, entry, k, chosen, seed, state)
        return _group_blocks(Z, blocks, block_of, entry, k, chosen, seed, state)

    with watchmaker("partition"):
        grouped = watch(
            group,
            len(Z),
            title=_live(method, Z) if entry.anytime and blocks is None and len(plan.cells) == 1 else method,
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
        warnings.warn(warning, NotKAnonymousWarning, stacklevel=2)
        notes.append("NOT k-anonymous for whole records: every column was grouped on its own")

    with watchmaker("write"):
        if output is not None:
            rows = plan.kept if len(plan.kept) < table.rows else None
            write_file(masked.native, output, like=source, changed=[str(name) for name in names], rows=rows)

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
        parameters={
            "k": int(k),
            "columns": names,
            "method": method,
            "options": chosen,
            "by": by_names,
            "weights": weights if isinstance(weights, (str, int)) or weights is None else "given as a vector",
            "missing": missing,
            "integers": integers,
            "aggregate": aggregate,
            "block": None if block is None else int(block),
            "split": split,
            "seed": seed,
            "delimiter": delimiter,
            "encoding": encoding,
            "decimal": decimal,
        },
        facts=grouped.facts,
        notes=tuple(notes),
        timings=watchmaker.seconds,
        certificate=grouped.certificate,
        _origin=plan,
    )
    if labels is not None:
        write_labels(release, Path(labels))
    return release


@dataclass(frozen=True)
class Plan:
    """What is to be masked: the records that stay, their numbers, and the sets that groups must not leave."""

    table: Table
    kept: Ints
    X: Floats
    cells: tuple[tuple[Ints, Ints], ...]  # (rows, columns present): a stratum, split by what its records miss
    weights: Floats | None
    integer_columns: tuple[Name, ...]
    notes: tuple[str, ...]


@dataclass
class _Stopwatch:
    """Seconds by step."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a word that is not one of those a parameter may be."""
    if value not in choices:
        raise InputError(f"Parameter {name!r} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def choose_masked(table: Table, wanted: list[Name] | None, by: list[Name], weights: object) -> list[Name]:
    """Return the columns to mask."""
    for name in by:
        check_name(name, table.names, "by")
        if name in (wanted or ()):
            raise InputError(f"Column {name!r} stands in 'columns' and in 'by': it cannot be masked and split by.")
    return choose_columns(table, wanted, apart=[*by, *([weights] if isinstance(weights, (str, int)) else [])])


def plan_records(table: Table, names: list[Name], by: list[Name], weights: Any, missing: Missing, k: int) -> Plan:
    """Read the numbers, apply the missing-value policy and check k against every set of records."""
    columns = [table.column(name) for name in names]
    for column in columns:
        _check_finite(column)
    X = np.column_stack([column.values for column in columns])
    integer_columns = tuple(column.name for column in columns if column.integer)
    weight = _read_weights(table, weights)
    holes = np.isnan(X)
    incomplete: Bools = np.asarray(holes.any(axis=1))
    kept = np.arange(table.rows)
    notes: list[str] = []
    if incomplete.any():
        if missing == "error":
            raise _missing_error(names, holes)
        if missing == "drop":
            kept = np.flatnonzero(~incomplete)
            notes.append(f"{int(incomplete.sum())} records with missing values were left out (missing='drop')")
            table, X, holes = table.take(kept), X[kept], holes[kept]
            weight = None if weight is None else weight[kept]
        else:
            notes.append(f"{int(incomplete.sum())} records were masked among those that miss the same columns")
    check_k(k, len(X), "the table without records that miss a value" if len(kept) < len(incomplete) else "")

    cells = []
    for stratum in strata_of(table, by):
        check_k(k, len(stratum.rows), stratum.describe(by) if by else "")
        for pattern, rows in _patterns(holes, stratum.rows):
            if len(rows) < k:
                lacking = ", ".join(str(name) for name, hole in zip(names, pattern, strict=True) if hole)
                raise InputError(
                    f"Parameter 'missing' is 'group', but only {len(rows)} records of {stratum.describe(by)} miss "
                    f"{f'exactly: {lacking}' if lacking else 'nothing'}; k={k} are needed. Take missing='drop', a "
                    "smaller k, or mask fewer columns."
                )
            cells.append((rows, np.flatnonzero(~pattern)))
    return Plan(table, kept, X, tuple(cells), weight, integer_columns, tuple(notes))


def _patterns(holes: Bools, rows: Ints) -> Iterator[tuple[Bools, Ints]]:
    """Split records by the columns that they miss."""
    if not holes[rows].any():
        yield np.zeros(holes.shape[1], dtype=np.bool_), rows
        return
    patterns, inverse = np.unique(holes[rows], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        yield pattern, rows[inverse.ravel() == number]


def _check_finite(column: Column) -> None:
    infinite = np.isinf(column.values)
    if infinite.any():
        record = int(np.argmax(infinite))
        raise InputError(
            f"Column {column.name!r} must be finite, but record {record + 1} holds {column.values[record]}. "
            "Correct it, or make it missing and choose missing='drop' or 'group'."
        )


def _missing_error(names: list[Name], holes: Bools) -> InputError:
    counts = {name: int(count) for name, count in zip(names, holes.sum(axis=0), strict=True) if count}
    listed = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
    return InputError(
        f"Values are missing in column {listed}; {int(holes.any(axis=1).sum())} records are concerned. Choose "
        "missing='group' to mask them among records that miss the same columns, or missing='drop' to leave them out."
    )


def _read_weights(table: Table, weights: Any) -> Floats | None:
    if weights is None:
        return None
    if isinstance(weights, (str, int)):
        check_name(weights, table.names, "weights")
        values, what = table.column(weights).values, f"Column {weights!r}, the weights,"
    else:
        values, what = np.asarray(weights, dtype=np.float64), "Parameter 'weights'"
        if values.shape != (table.rows,):
            raise InputError(f"{what} must have one number a record ({table.rows}), got shape {values.shape}.")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        record = int(np.argmax(bad))
        raise InputError(f"{what} must be positive, but record {record + 1} holds {values[record]}.")
    return values


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
    outcomes = []
    offset = 0
    for (rows, present), given in zip(plan.cells, shared or repeat({}), strict=False):
        if not len(present):
            outcome = Outcome(np.zeros(len(rows), dtype=np.int64))
        else:
            records = np.ascontiguousarray(Z[np.ix_(rows, present)])
            allowed = share_options(entry, options, len(rows) / len(Z))
            outcome = entry.run(records, k, {**allowed, **given}, seed=seed, state=state)
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


def _live(title: str, Z: Floats) -> Callable[[State], str]:
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


def _block(plan: Plan, rule: Blocking) -> tuple[Blocks, Ints]:
    """Cut every cell into blocks; return them and the block of each record."""
    roots = np.empty(len(plan.X), dtype=np.int64)
    for number, (rows, _) in enumerate(plan.cells):
        roots[rows] = number
    blocks = find_blocks(InMemory(plan.X, roots), extent_of(plan.X, roots), rule)
    return blocks, assign(0, plan.X, roots, blocks)


def _group_blocks(
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
    return group_values(plan.X, Z, labels, how, plan.weights)[labels]


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
