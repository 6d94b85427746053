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

from shoal.blocks.blocking import Blocks, assign, find_blocks
from shoal.core.checks import check_k
from shoal.core.errors import InputError
from shoal.core.measures import Scaling, group_sizes
from shoal.core.types import Floats, Ints
from shoal.engines.common import (
    buckets_of,
    check_staged,
    column_kinds,
    extent_of_parts,
    number_roots,
    one_cell_each,
    plan_job,
    read_rule,
    summarise,
)
from shoal.engines.request import Job, Request
from shoal.engines.shuffle import sort_by_target
from shoal.engines.tasks import (
    Bucket,
    Kind,
    Numbers,
    Spelling,
    Staged,
    bucket_of_words,
    mask_records,
    put_back,
    read_numbers,
)
from shoal.masking.release import Release
from shoal.masking.verification import Words, check_sizes, count_unique, number_words, row_hashes, words_of
from shoal.tables.files import CSV, PARQUET, folder_beside, written_beside
from shoal.tables.metadata import without_metadata
from shoal.tables.sources import Source, find_paths, open_source

__all__ = ["is_dask", "mask_dask", "mask_paths"]

RECORDS = 250_000  # of a bucket


def is_dask(data: object) -> bool:
    """Say whether a table is a Dask DataFrame, without importing Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(data, "to_delayed")


def _library() -> tuple[Any, Any]:
    """Import Dask, of which only a part is typed."""
    return import_module("dask"), import_module("dask.dataframe")


def mask_dask(data: Any, asked: Request, source: Source | None = None) -> Release:
    """Mask a Dask DataFrame; the index, the partitions and the order of the records stay as they are.

    `source` says what its columns are if the table itself does not: text from a CSV file.
    """
    dask, dd = _library()
    if source is None:
        empty = pl.from_pandas(data._meta)  # noqa: SLF001  (Dask's own description of the columns)
        numeric = tuple(name for name, kind in empty.schema.items() if kind.is_numeric())
        source = Source((), tuple(map(str, data.columns)), numeric, None)
    job = plan_job(asked, replace(source, parts=()))
    rule = read_rule(job)
    parts = dask.persist(*data.to_delayed())
    run = _Run(job, parts)
    staged, many, spelling = run.stage()
    check_k(job.k, sum(part.kept for part in staged))
    check_staged(job, staged)
    kinds = column_kinds(staged)
    blocks = find_blocks(run, extent_of_parts(staged, run.roots, many), rule)
    bucket, firsts = buckets_of(blocks, RECORDS)
    n = sum(part.kept for part in staged)
    delayed = dask.delayed
    pieces = [
        delayed(_split, nout=len(firsts))(part, *held, blocks, bucket, firsts)
        for part, held in enumerate(zip(run.numbers, run.roots, strict=True))
    ]
    masked = [
        delayed(_mask, nout=2)(job, [piece[number] for piece in pieces], blocks.scale, kinds, (n, 1))
        for number in range(len(firsts))
    ]
    masked = list(dask.persist(*[delayed(tuple)(bucket) for bucket in masked]))
    released = [
        delayed(_finish)(job, part, at, [found[0] for found in masked], kinds, spelling)
        for at, part in enumerate(parts)
    ]
    released = list(dask.persist(*released))
    uniques = run.verify(released, max(1, -(-n // RECORDS)))
    found: list[Bucket] = list(dask.compute(*[bucket[1] for bucket in masked]))
    facts = {**blocks.facts, "engine": f"dask, {len(parts)} partitions"}
    meta = dask.compute(delayed(_head)(released[0]))[0]
    frame = dd.from_delayed(released, meta=meta, verify_meta=False)
    return summarise(job, staged, found, kinds, facts, uniques, data=frame, seconds={})


def mask_paths(
    data: object,
    asked: Request,
    *,
    output: str | os.PathLike[str] | None,
    scheduler: str | None,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
) -> Release:
    """Mask files that the workers of a cluster can read; the caller writes the output, part by part.

    CSV files are rewritten as Parquet first, in a folder beside the output that the workers must be able to read.
    """
    if not isinstance(data, (str, os.PathLike)):
        raise InputError("Parameter 'data' must be a path or a Dask DataFrame for engine='dask'; got another table.")
    if output is None or Path(output).suffix.lower() not in PARQUET:
        raise InputError(f"Output {output} must be a file that ends in {' or '.join(PARQUET)} for engine='dask'.")
    paths = [path.resolve() for path in find_paths(data)]
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise InputError("Parameter 'engine' may be 'dask' once Dask is there: pip install 'shoal[dask]'.") from None
    target = Path(output).resolve()
    given: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    with distributed.Client(scheduler) if scheduler else nullcontext(), folder_beside(target) as folder:
        source = None
        if paths[0].suffix.lower() in CSV:
            source = open_source(paths, folder, RECORDS, wanted=asked.columns or (), **given)
            paths = list(dict.fromkeys(part.path for part in source.parts))
        frame = _library()[1].read_parquet([str(path) for path in paths], index=False, split_row_groups=True)
        release = mask_dask(frame, asked, source)
        with written_beside(target) as temporary:
            _write(release.data, temporary)
    return replace(release, data=Path(output), parameters={**release.parameters, **given, "engine": "dask"})


def _write(frame: Any, path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    writer: Any = None
    try:
        for part in frame.to_delayed():
            table = without_metadata(pa.Table.from_pandas(part.compute(), preserve_index=False))
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

    def stage(self) -> tuple[list[Staged], int, Spelling]:
        """Read the numbers of all partitions."""
        staged, spelling = one_cell_each(self.job, list(self._dask.compute(*self._known)))
        self.roots, many = number_roots(staged)
        return staged, many, spelling

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

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function here."""
        return function(*arguments)

    def verify(self, released: Sequence[Any], buckets: int) -> int:
        """Count every group in the partitions that are about to be handed out; return the records that are unique."""
        delayed = self._dask.delayed
        asked = replace(self.job.asked, missing="group", weights=None)
        source = replace(self.job.source, dialect=None)  # the released columns hold numbers, whatever was given
        written = _Run(replace(self.job, asked=asked, source=source), released)
        written.stage()
        pieces = [
            delayed(_split_values, nout=buckets)(part, numbers, roots, buckets)
            for part, numbers, roots in zip(released, written.numbers, written.roots, strict=True)
        ]
        counted = [delayed(_verify)([piece[b] for piece in pieces], self.job.k) for b in range(buckets)]
        return sum(self._dask.compute(*counted))


def _stage(job: Job, part: Any) -> tuple[Numbers, Staged]:
    return read_numbers(job, pl.from_pandas(part[job.wanted()]), 0)


def _look(part: int, numbers: Numbers, roots: Ints, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(part, numbers.X, numbers.roots(roots), *arguments)


def _split(part: int, numbers: Numbers, roots: Ints, blocks: Blocks, bucket: Ints, firsts: Ints) -> tuple[Any, ...]:
    """Return, for every bucket, the records that it gets of a partition."""
    X, weights = numbers.X, numbers.weights
    block = assign(part, X, numbers.roots(roots), blocks)
    order, begins = sort_by_target(bucket[block], len(firsts))
    found = []
    for number, rows in enumerate(np.split(order, begins[1:-1])):
        weight = None if weights is None else weights[rows]
        found.append((part, rows, block[rows] - firsts[number], X[rows], weight))
    return tuple(found)


def _mask(
    job: Job, pieces: Sequence[tuple[Any, ...]], scale: Scaling, kinds: tuple[Kind, ...], share: tuple[int, int]
) -> tuple[Mapping[int, tuple[Ints, Floats]], Bucket]:
    """Mask a bucket; return the released values by partition."""
    block, X = (np.concatenate([piece[i] for piece in pieces]) for i in (2, 3))
    weights = None if pieces[0][4] is None else np.concatenate([piece[4] for piece in pieces])
    masked = mask_records(job, block, X, weights, scale, kinds, share)
    ends = np.cumsum([len(piece[1]) for piece in pieces])[:-1]
    back = zip(pieces, np.split(masked.released, ends), strict=True)
    return {piece[0]: (piece[1], released) for piece, released in back if len(released)}, masked.known


def _finish(
    job: Job,
    part: Any,
    at: int,
    buckets: Sequence[Mapping[int, tuple[Ints, Floats]]],
    kinds: tuple[Kind, ...],
    spelling: Spelling,
) -> Any:
    """Return a partition with the released values in their place."""
    held = [bucket[at] for bucket in buckets if at in bucket]
    values = np.empty((sum(len(rows) for rows, _ in held), len(job.columns)))
    for rows, released in held:
        values[rows] = released
    if job.drop:
        part = part[part[list(job.columns)].notna().all(axis=1)]
    frame = pl.from_pandas(part[job.wanted()])
    new = [*put_back(job, values, kinds, spelling, frame.schema), *spelling.of_strata(frame)]
    columns = {s.name: (s.fill_null(np.nan) if s.dtype.is_float() else s).to_numpy() for s in new}
    return without_metadata(part.assign(**columns))


def _head(part: Any) -> Any:
    return part.iloc[:0]


def _split_values(part: Any, numbers: Numbers, roots: Ints, many: int) -> tuple[Any, ...]:
    words = np.column_stack([words_of(numbers.X), numbers.roots(roots).astype(np.uint64)])
    hashes = row_hashes(pl.from_pandas(part))
    order, begins = sort_by_target(bucket_of_words(words, many), many)
    return tuple((words[rows], hashes[rows]) for rows in np.split(order, begins[1:-1]))


def _verify(pieces: Sequence[tuple[Words, Words]], k: int) -> int:
    check_sizes(group_sizes(number_words(np.concatenate([words for words, _ in pieces]))), k)
    return count_unique(np.concatenate([hashes for _, hashes in pieces]))
