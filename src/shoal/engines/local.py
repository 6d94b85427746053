"""The embedded engine: a table on disk is masked by a few processes of this machine, within a memory limit.

    stage ─► count (blocks) ─► deal out to buckets ─► mask ─► bring back to the input's order ─► write ─► VERIFY ─► move

Only numbers of the chosen columns travel. All intermediate files lie in one folder beside the output and go with it;
the output is moved into place after every group has been counted in what was written. Which process does what never
changes the result: blocks come from exact counts, and a method sees the records of a block in the order of the input.

Disk: twice the numbers of the chosen columns and 8 bytes a record. Memory: a part or a bucket for each process.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.blocks.blocking import Blocks, find_blocks
from shoal.core.checks import check_k
from shoal.core.errors import FileError, InputError, VerificationError
from shoal.core.memory import available_memory, peak_bytes, read_memory
from shoal.core.progress import watch
from shoal.core.types import Ints, State
from shoal.engines.common import (
    buckets_of,
    check_staged,
    column_kinds,
    extent_of_parts,
    number_cells,
    number_roots,
    one_cell_each,
    plan_job,
    read_rule,
    summarise,
)
from shoal.engines.request import Job, Request
from shoal.engines.shuffle import Places, Shuffle
from shoal.engines.tasks import (
    Bucket,
    Kind,
    Numbers,
    Spelling,
    count_bucket,
    finish,
    look,
    mask_bucket,
    spill,
    spill_for_counting,
    stage,
    warm,
)
from shoal.engines.workers import Nursery, Workers
from shoal.masking.release import Release
from shoal.tables.files import CSV, PARQUET, check_target
from shoal.tables.outputs import Outputs, folder_beside, moved_together
from shoal.tables.sources import find_paths, open_source, record_bytes, stored_bytes

__all__ = ["is_beyond_memory", "mask_files"]

RECORDS = 250_000  # of a part and of a bucket, where memory allows
COUNTED = 60_000  # of a bucket that is counted: most of it stays in the processor's cache
MANY = 2_000  # buckets, above which they grow instead: each reads from every part
PROCESS = 330_000_000  # bytes that a process takes before it has read anything, libraries and kernels
LEAST = 60_000_000  # bytes that it needs to work with


def is_beyond_memory(data: object, engine: str | None, memory: object) -> bool:
    """Say whether a table is to be masked from file to file.

    The rule: whenever it is asked for (engine="local", a memory limit), for a folder or a glob, and for a CSV or
    Parquet file that would take more than half of the memory at hand.
    """
    if engine not in (None, "memory", "local"):
        raise InputError(f"Parameter 'engine' must be 'memory', 'local' or 'dask', got {engine!r}.")
    asked = engine == "local" or (memory is not None and engine is None)
    if not isinstance(data, (str, os.PathLike)):
        if asked:
            raise InputError("Parameter 'data' must be a path for engine='local' or a memory limit; got a table.")
        return False
    if asked or engine == "memory":
        return asked
    file = Path(data)
    if file.is_file():
        return file.suffix.lower() in (*CSV, *PARQUET) and stored_bytes([file]) > available_memory() / 2
    return file.is_dir() or any(sign in str(file) for sign in "*?[")


def mask_files(
    data: str | os.PathLike[str],
    asked: Request,
    *,
    output: str | os.PathLike[str] | None,
    labels: str | os.PathLike[str] | None,
    memory: str | int | None,
    processes: int | None,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    progress: bool,
    nursery: Nursery | None = None,
) -> Release:
    """Mask a table on disk; see `shoal.mask`. `nursery`: where worker processes come from, if it is there already."""
    if output is None:
        raise InputError("Parameter 'output' must name a file: a table beyond memory is masked from file to file.")
    target = Path(output)
    if target.suffix.lower() not in (*CSV, *PARQUET):
        raise InputError(f"Output {target} must end in {' or '.join((*CSV, *PARQUET))} beyond memory.")
    paths = find_paths(data)
    if target.resolve() in [path.resolve() for path in paths]:
        raise InputError(f"Output {output} must not be the input: the original would be lost. Name another file.")
    if labels is not None:
        check_target(labels, endings=(*CSV, *PARQUET))
    limit = read_memory(memory) if memory is not None else available_memory() // 2
    processes, room = _shares(limit, processes)
    with moved_together() as outputs, folder_beside(target) as folder:

        def run(state: State) -> Release:
            with Workers(processes, state, nursery) as workers:
                source = open_source(
                    paths,
                    folder,
                    _part_rows(paths, room),
                    delimiter=delimiter,
                    encoding=encoding,
                    decimal=decimal,
                    wanted=asked.columns or (),
                    run=workers.map,
                )
                job = plan_job(asked, source, folder)
                check_k(job.k, source.rows)
                where = None if labels is None else Path(labels)
                return _Run(job, workers, room, where, outputs).release(target)

        release = watch(run, max(1, stored_bytes(paths) // 10_000_000), title=asked.title, show=progress)
    # Memory and processes decide how many records are written at a time, and so the bytes of the file.
    engine = {"engine": "local", "memory": limit, "processes": processes}
    csv = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    return replace(release, parameters={**release.parameters, **engine, **csv})


@dataclass(frozen=True)
class _Run:
    """One run, from parts of a table to the release."""

    job: Job
    workers: Workers
    room: int
    labels: Path | None
    outputs: Outputs
    roots: list[Ints] = field(default_factory=list)  # of each part: the root of each code
    coded: list[bool] = field(default_factory=list)  # and whether its records have codes
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Look at all parts: what `shoal.blocks` asks of whoever holds the records."""
        tasks = ((*held, function, arguments) for held in self._held())
        return self.workers.reduce(look, tasks, combine)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in a worker."""
        (result,) = self.workers.map(function, [arguments])
        return result

    def release(self, target: Path) -> Release:
        """Do it all."""
        job, workers = self.job, self.workers
        rule = read_rule(job)
        with self._timed("prepare"):
            workers.prepare(warm, (job.asked, len(job.columns)))
        with self._timed("read"):
            staged, spelling = one_cell_each(job, list(workers.map(stage, self._parts(job))))
        check_staged(job, staged)
        kinds = column_kinds(staged)
        roots, many = number_roots(staged)
        self.roots.extend(roots)
        self.coded.extend(part.coded for part in staged)
        with self._timed("block"):
            blocks = find_blocks(self, extent_of_parts(staged, roots, many), rule)
        starts = np.cumsum([0, *(part.kept for part in staged)])
        with self._timed("regroup"):
            shuffle, places = self._regroup(blocks, starts)
        with self._timed("mask"):
            share = int(starts[-1]), workers.processes
            tasks = ((job, place, shuffle, blocks.scale, kinds, share) for place in places)
            found: list[Bucket] = list(workers.map(mask_bucket, tasks))
            shuffle.remove(*(what for what in shuffle.shapes if what not in ("released", "group")))
        with self.outputs.beside(target) as temporary:
            with self._timed("write"):
                self._write(temporary, shuffle, kinds, spelling, self._groups_before(places, found))
            # The disk writes while groups are counted.
            threading.Thread(target=_sync, args=(temporary,), daemon=True).start()
            with self._timed("verify"):
                uniques = self._verify(temporary, int(starts[-1]))
            if self.labels is not None:
                self._write_labels(self.labels, len(staged))
        processes, peaks = workers.processes, [peak_bytes(), *workers.peaks()]
        facts = {
            **blocks.facts,
            "engine": f"local, {processes} process{'es' if processes > 1 else ''}",
            "peak memory": f"{sum(peaks) / 1e6:.0f} MB in all, {max(peaks) / 1e6:.0f} MB a process",
        }
        return summarise(job, staged, found, kinds, facts, uniques, data=target, seconds=self.seconds)

    def _parts(self, job: Job) -> Iterator[tuple[Job, int, int]]:
        """Yield the number of each part and that of its first record."""
        first = 0
        for part, held in enumerate(job.source.parts):
            yield job, part, first
            first += held.rows

    def _held(self) -> Iterator[tuple[Job, int, Ints, bool]]:
        for part, (numbers, coded) in enumerate(zip(self.roots, self.coded, strict=True)):
            yield self.job, part, numbers, coded

    def _rows(self) -> int:
        """Return the records of a bucket: a few copies of them must fit."""
        return max(1, min(RECORDS, self.room // (8 * (10 * len(self.job.columns) + 12))))

    def _regroup(self, blocks: Blocks, starts: Ints) -> tuple[Shuffle, list[Places]]:
        """Deal out all records to buckets of about the same size."""
        job, d = self.job, len(self.job.columns)
        bucket, firsts = buckets_of(blocks, self._rows())
        shapes = {"block": ("int32", 1), "X": ("float64", d), "released": ("float64", d)}
        if job.asked.weights:
            shapes["weights"] = ("float64", 1)
        if self.labels is not None:
            shapes["group"] = ("int64", 2)
        shuffle = Shuffle(job.folder, "block", starts, len(firsts), shapes)
        shuffle.create()
        begins = []
        for part, found in enumerate(
            self.workers.map(spill, ((*held, blocks, bucket, firsts, shuffle) for held in self._held()))
        ):
            begins.append(found)
            for what in Numbers._fields:
                job.path(part, what).unlink(missing_ok=True)
        return shuffle, shuffle.places(begins)

    def _groups_before(self, places: Sequence[Places], found: Sequence[Bucket]) -> Iterator[tuple[int, Ints] | None]:
        """Yield, of each part, its first record and how many groups come before those of each record's bucket."""
        groups = np.array([bucket.sizes.sum() for bucket in found])
        counts = np.stack([place.counts for place in places])
        for part, (_, _, first) in enumerate(self._parts(self.job)):
            yield None if self.labels is None else (first, np.repeat(np.cumsum(groups) - groups, counts[:, part]))

    def _write(
        self,
        path: Path,
        shuffle: Shuffle,
        kinds: tuple[Kind, ...],
        spelling: Spelling,
        before: Iterator[tuple[int, Ints] | None],
    ) -> None:
        """Write the parts to one file, in the order of the input."""
        job = self.job
        csv = path.suffix.lower() in CSV
        tasks = ((job, part, shuffle, kinds, spelling, csv, groups) for part, groups in enumerate(before))
        pieces = self.workers.map(finish, tasks)
        if csv:
            with path.open("wb") as file:
                for piece in pieces:
                    with piece.open("rb") as content:
                        shutil.copyfileobj(content, file, 1 << 20)
                    piece.unlink()
        else:
            # Means of scattered groups hardly repeat within a part: a dictionary of them would only take time.
            self._write_parquet(path, pieces, [name for name in job.source.names if name not in job.columns])
        shuffle.remove("order", "released", *({"group"} & set(shuffle.shapes)))

    def _write_parquet(self, path: Path, pieces: Iterator[Path], dictionary: list[str]) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        writer: Any = None
        try:
            for piece in pieces:
                with pa.memory_map(str(piece)) as file:
                    table = pa.ipc.open_file(file).read_all()
                    writer = writer or ParquetWriter(path, table.schema, use_dictionary=dictionary)
                    writer.write_table(table, row_group_size=max(1, len(table)))
                piece.unlink()
        finally:
            if writer is not None:
                writer.close()

    def _write_labels(self, path: Path, parts: int) -> None:
        """Write the group of each record and its size, in the order of the input; groups count from block to block."""
        pieces = (self.job.folder / f"labels-{part}.arrow" for part in range(parts))
        with self.outputs.beside(path) as temporary:
            if path.suffix.lower() in CSV:
                with temporary.open("wb") as file:
                    for number, piece in enumerate(pieces):
                        pl.read_ipc(piece).write_csv(file, include_header=number == 0)
            else:
                self._write_parquet(temporary, pieces, [])

    def _verify(self, path: Path, n: int) -> int:
        """Read what was written and count every group; return the records that are unique over all columns."""
        dialect = self.job.source.dialect
        given = {} if dialect is None else {"delimiter": dialect.delimiter, "encoding": dialect.encoding}
        decimal = None if dialect is None else dialect.decimal
        most = max(part.rows for part in self.job.source.parts)
        folder = self.job.folder / "check"
        folder.mkdir()
        source = open_source(
            [path], folder, most, decimal=decimal, wanted=self.job.columns, run=self.workers.map, **given
        )
        if source.rows != n:
            raise FileError(f"Output {path} has {source.rows} records instead of {n}. Nothing was released.")
        job = replace(self.job, source=source, folder=folder)
        starts = np.cumsum([0, *(part.rows for part in source.parts)])
        shapes = {"words": ("uint64", len(job.columns))}
        if job.asked.by:
            shapes["codes"] = ("int64", 1)
        if set(job.source.names) != {*job.columns, *job.asked.by}:
            shapes["row"] = ("uint64", 1)
        rows = min(self._rows(), max(COUNTED, n // MANY))
        shuffle = Shuffle(folder, "count", starts, -(-n // rows), shapes)
        shuffle.create()
        dealt = list(self.workers.map(spill_for_counting, ((*part, shuffle) for part in self._parts(job))))
        for name, spellings in zip(job.columns, zip(*(part.spellings for part in dealt), strict=True), strict=True):
            if len(frozenset[Any]().union(*spellings)) > 1:
                raise VerificationError(
                    f"Column {name!r} has missing cells that are spelled in several ways. Nothing was released."
                )
        strata, _ = number_cells([part.cells for part in dealt])
        places = shuffle.places([part.begins for part in dealt])
        return sum(self.workers.map(count_bucket, ((job, place, shuffle, strata) for place in places)))


def _sync(path: Path) -> None:
    with suppress(OSError), path.open("rb") as file:
        os.fsync(file.fileno())


def _shares(limit: int, processes: int | None) -> tuple[int, int]:
    """Return how many workers there are and the bytes that each may work with; the caller is a process too."""
    most = processes or os.cpu_count() or 1
    while most > 1 and limit / (most + 1) < PROCESS + LEAST:
        most -= 1
    room = int(limit / (most + 1)) - PROCESS
    if room < LEAST:
        least = 2 * (PROCESS + LEAST) / 1e6
        raise InputError(f"Parameter 'memory' must be at least {least:.0f} MB, got {limit / 1e6:.0f} MB.")
    return most, room


def _part_rows(paths: Sequence[Path], room: int) -> int:
    """Return the records of a part: a few copies of all its columns must fit."""
    width = max(record_bytes(path) for path in paths[:10])
    return int(min(RECORDS, max(1000, room / (8 * max(width, 8)))))
