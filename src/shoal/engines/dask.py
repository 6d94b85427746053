"""The Dask engine: a Dask DataFrame in, a Dask DataFrame out, on whatever cluster its client is connected to.

The same tasks as those of the embedded engine, as a graph of delayed functions: partitions are the parts. What all
tasks need (the tree, the scaling) travels as an argument of each; counts are merged pairwise on the workers, so that
the caller sees one result. Dask runs again what a lost worker held. The masked partitions are kept on the cluster, and
every group has been counted in them before they are handed out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.aggregation import Aggregate
from shoal.blocks.blocking import Blocks, assign, find_blocks
from shoal.engines.common import (
    buckets_of,
    check_staged,
    choose_columns,
    column_kinds,
    number_roots,
    read_rule,
    summarise,
)
from shoal.engines.sources import Source, find_paths
from shoal.engines.tasks import Bucket, Job, Staged, bucket_of_values, mask_records, put_back, read_numbers
from shoal.errors import InputError
from shoal.grouping import check_k
from shoal.measures import Scaling
from shoal.release import Release
from shoal.tables.files import PARQUET, written_beside
from shoal.types import Floats, Ints
from shoal.verification import verify

__all__ = ["is_dask", "mask_dask", "mask_paths"]

RECORDS = 250_000  # of a bucket
Numbers = tuple[Floats, Ints, Floats | None]  # values, codes, weights


def is_dask(data: object) -> bool:
    """Say whether a table is a Dask DataFrame, without importing Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(data, "to_delayed")


def _library() -> tuple[Any, Any]:
    """Import Dask, of which only a part is typed."""
    return import_module("dask"), import_module("dask.dataframe")


def mask_dask(
    data: Any,
    k: int,
    *,
    columns: Sequence[str] | None,
    method: str,
    options: Mapping[str, Any],
    by: Sequence[str],
    weights: object,
    missing: str,
    integers: str,
    aggregate: Aggregate,
    block: int | None,
    split: str | None,
    seed: int | None,
) -> Release:
    """Mask a Dask DataFrame; the index, the partitions and the order of the records stay as they are."""
    dask, dd = _library()
    if weights is not None and not isinstance(weights, str):
        raise InputError("Parameter 'weights' must name a column of a Dask DataFrame; got a vector.")
    empty = pl.from_pandas(data._meta)  # noqa: SLF001  (Dask's own description of the columns)
    numeric = tuple(name for name, kind in empty.schema.items() if kind.is_numeric())
    source = Source((), tuple(map(str, data.columns)), numeric, None)
    names = choose_columns(source, columns, by, weights)
    job = Job(
        source=source,
        folder=Path(),
        columns=tuple(names),
        by=tuple(by),
        weights=weights,
        drop=missing == "drop",
        whole=integers == "round",
        k=k,
        method=method,
        options=options,
        aggregate=aggregate,
        seed=seed,
    )
    parts = dask.persist(*data.to_delayed())
    run = _Run(job, parts)
    staged, roots = run.stage()
    check_k(k, sum(part.kept for part in staged))
    check_staged(job, staged, missing)
    kinds = column_kinds(staged)
    rule = read_rule(job, block, split)
    blocks = find_blocks(run, roots, rule)
    bucket = buckets_of(blocks, RECORDS)
    many = int(bucket.max()) + 1
    n = sum(part.kept for part in staged)
    delayed = dask.delayed
    pieces = [
        delayed(_split, nout=many)(part, *held, blocks, bucket, many)
        for part, held in enumerate(zip(run.numbers, run.roots, strict=True))
    ]
    masked = [
        delayed(_mask, nout=2)(job, [piece[number] for piece in pieces], blocks.scale, kinds, (n, 1))
        for number in range(many)
    ]
    masked = list(dask.persist(*[delayed(tuple)(bucket) for bucket in masked]))
    released = [delayed(_finish)(job, part, at, [found[0] for found in masked], kinds) for at, part in enumerate(parts)]
    released = list(dask.persist(*released))
    run.verify(released, max(1, -(-n // RECORDS)))
    found: list[Bucket] = list(dask.compute(*[bucket[1] for bucket in masked]))
    facts = {**blocks.facts, "engine": f"dask, {len(parts)} partitions"}
    meta = dask.compute(delayed(_head)(released[0]))[0]
    frame = dd.from_delayed(released, meta=meta, verify_meta=False)
    release = summarise(job, staged, found, kinds, facts, data=frame, chosen=columns is None, seconds={})
    asked = {"integers": integers, "missing": missing, "block": block, "split": split, "weights": weights}
    release.parameters.update(asked)  # type: ignore[attr-defined]
    return release


def mask_paths(
    data: object, k: int, *, output: str | os.PathLike[str] | None, scheduler: str | None, **keywords: Any
) -> Release:
    """Mask Parquet files that the workers of a cluster can read; the caller writes the output, part by part."""
    if not isinstance(data, (str, os.PathLike)):
        raise InputError("Parameter 'data' must be a path or a Dask DataFrame for engine='dask'; got another table.")
    if output is None or Path(output).suffix.lower() not in PARQUET:
        raise InputError(f"Output {output} must be a file that ends in {' or '.join(PARQUET)} for engine='dask'.")
    paths = [str(path.resolve()) for path in find_paths(data)]
    if Path(paths[0]).suffix.lower() not in PARQUET:
        raise InputError(f"Input {data} must be Parquet for engine='dask'. Convert it first, or take engine='local'.")
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise InputError("Parameter 'engine' may be 'dask' once Dask is there: pip install 'shoal[dask]'.") from None
    with distributed.Client(scheduler) if scheduler else nullcontext():
        release = mask_dask(_library()[1].read_parquet(paths, index=False), k, **keywords)
        with written_beside(Path(output)) as temporary:
            _write(release.data, temporary)
    return replace(release, data=Path(output))


def _write(frame: Any, path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    writer: Any = None
    try:
        for part in frame.to_delayed():
            table = pa.Table.from_pandas(part.compute(), preserve_index=False)
            writer = writer or ParquetWriter(path, table.schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


class _Run:
    """The staged partitions of a run."""

    def __init__(self, job: Job, parts: Sequence[Any]) -> None:
        self._dask = dask = _library()[0]
        self.job = job
        staged = dask.persist(*[dask.delayed(_stage)(job, part) for part in parts])
        self.numbers = [part[0] for part in staged]
        self._known = [part[1] for part in staged]
        self.roots: list[Ints] = []

    def stage(self) -> tuple[list[Staged], int]:
        """Read the numbers of all partitions."""
        staged: list[Staged] = list(self._dask.compute(*self._known))
        self.roots, many = number_roots(staged)
        return staged, many

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Look at all partitions and merge the results pairwise."""
        delayed = self._dask.delayed
        held = [
            delayed(_look)(part, numbers, roots, function, arguments)
            for part, (numbers, roots) in enumerate(zip(self.numbers, self.roots, strict=True))
        ]
        while len(held) > 1:
            odd = held[-1:] if len(held) % 2 else []
            held = [delayed(combine)(a, b) for a, b in zip(held[0::2], held[1::2], strict=False)] + odd
        return self._dask.compute(held[0])[0]

    def verify(self, released: Sequence[Any], buckets: int) -> None:
        """Count every group in the partitions that are about to be handed out."""
        delayed = self._dask.delayed
        written = _Run(replace(self.job, drop=False, weights=None), released)
        written.stage()
        pieces = [
            delayed(_split_values, nout=buckets)(numbers, roots, buckets)
            for numbers, roots in zip(written.numbers, written.roots, strict=True)
        ]
        counted = [delayed(_verify)([piece[b] for piece in pieces], self.job.k) for b in range(buckets)]
        self._dask.compute(*counted)


def _stage(job: Job, part: Any) -> tuple[Numbers, Staged]:
    frame = pl.from_pandas(part[job.wanted()])
    X, codes, weights, staged = read_numbers(job, frame, 0)
    return (X, codes, weights), staged


def _look(part: int, numbers: Numbers, roots: Ints, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(part, numbers[0], roots[numbers[1]], *arguments)


def _split(part: int, numbers: Numbers, roots: Ints, blocks: Blocks, bucket: Ints, many: int) -> tuple[Any, ...]:
    """Return, for every bucket, the records that it gets of a partition."""
    X, codes, weights = numbers
    block = assign(part, X, roots[codes], blocks)
    target = bucket[block]
    found = []
    for number in range(many):
        rows = np.flatnonzero(target == number)
        place = np.column_stack([np.full(len(rows), part), rows])
        found.append((place, block[rows], X[rows], None if weights is None else weights[rows]))
    return tuple(found)


def _mask(
    job: Job, pieces: Sequence[tuple[Any, ...]], scale: Scaling, kinds: tuple[str, ...], share: tuple[int, int]
) -> tuple[Mapping[int, tuple[Ints, Floats]], Bucket]:
    """Mask a bucket; return the released values by partition."""
    place, block, X = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    weights = None if pieces[0][3] is None else np.concatenate([piece[3] for piece in pieces])
    released, found = mask_records(job, block, X, weights, scale, kinds, share)
    back = {
        int(part): (place[place[:, 0] == part, 1], released[place[:, 0] == part]) for part in np.unique(place[:, 0])
    }
    return back, found


def _finish(
    job: Job, part: Any, at: int, buckets: Sequence[Mapping[int, tuple[Ints, Floats]]], kinds: tuple[str, ...]
) -> Any:
    """Return a partition with the released values in their place."""
    held = [bucket[at] for bucket in buckets if at in bucket]
    values = np.empty((sum(len(rows) for rows, _ in held), len(job.columns)))
    for rows, released in held:
        values[rows] = released
    if job.drop:
        part = part[part[list(job.columns)].notna().all(axis=1)]
    frame = pl.from_pandas(part[list(job.columns)])
    _, new = put_back(replace(job, drop=False), frame, values, kinds)
    return part.assign(
        **{
            name: new[name].fill_null(np.nan).to_numpy() if new[name].dtype.is_float() else new[name].to_numpy()
            for name in job.columns
        }
    )


def _head(part: Any) -> Any:
    return part.iloc[:0]


def _split_values(numbers: Numbers, roots: Ints, many: int) -> tuple[Any, ...]:
    X, codes, _ = numbers
    target = bucket_of_values(X, roots[codes], many)
    return tuple((X[target == number], roots[codes[target == number]]) for number in range(many))


def _verify(pieces: Sequence[tuple[Floats, Ints]], k: int) -> None:
    X, roots = (np.concatenate([piece[i] for piece in pieces]) for i in range(2))
    if len(X):
        verify(X, k, roots)
