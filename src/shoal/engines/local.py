"""The embedded engine: a table on disk is masked by a few processes of this machine, within a memory limit.

    stage ─► count (blocks) ─► regroup into buckets ─► mask ─► regroup by input order ─► write ─► VERIFY ─► move

Only numbers of the chosen columns travel. All intermediate files lie in one folder beside the output and go with it;
the output is moved into place after every group has been counted in what was written. Which process does what never
changes the result: blocks come from exact counts, and a method sees the records of a block in the order of the input.

O(n d) disk for each of three regroupings; memory is that of a part or a bucket for each process, whatever n is.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from shoal.aggregation import Aggregate
from shoal.blocks.blocking import Blocks, find_blocks
from shoal.engines.common import (
    buckets_of,
    check_staged,
    choose_columns,
    column_kinds,
    number_roots,
    read_rule,
    summarise,
)
from shoal.engines.memory import available_memory, peak_bytes, read_memory
from shoal.engines.shuffle import Shuffle
from shoal.engines.sources import find_paths, open_source, record_bytes, stored_bytes
from shoal.engines.tasks import (
    Bucket,
    Job,
    Staged,
    count_bucket,
    finish,
    look,
    mask_bucket,
    spill,
    spill_for_counting,
    stage,
)
from shoal.engines.workers import Workers
from shoal.errors import FileError, InputError
from shoal.grouping import check_k
from shoal.progress import watch
from shoal.release import Release
from shoal.tables.files import CSV, PARQUET, written_beside
from shoal.types import Ints, State

__all__ = ["is_beyond_memory", "mask_files"]

RECORDS = 250_000  # of a part and of a bucket, where memory allows
PROCESS = 300_000_000  # bytes that a process takes before it has read anything
LEAST = 100_000_000  # bytes that it needs to work with


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
    k: int,
    *,
    output: str | os.PathLike[str] | None,
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
    memory: str | int | None,
    processes: int | None,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    progress: bool,
) -> Release:
    """Mask a table on disk; the keywords are those of `shoal.mask`, already checked where they are not of a table."""
    if output is None:
        raise InputError("Parameter 'output' must name a file: a table beyond memory is masked from file to file.")
    target = Path(output)
    if target.suffix.lower() not in (*CSV, *PARQUET):
        raise InputError(f"Output {target} must end in {' or '.join((*CSV, *PARQUET))} beyond memory.")
    if weights is not None and not isinstance(weights, str):
        raise InputError("Parameter 'weights' must name a column for a table beyond memory; got a vector.")
    paths = find_paths(data)
    if target.resolve() in [path.resolve() for path in paths]:
        raise InputError(f"Output {output} must not be the input: the original would be lost. Name another file.")
    limit = read_memory(memory) if memory is not None else available_memory() // 2
    processes, room = _shares(limit, processes)
    with _folder_beside(target) as folder:

        def run(state: State) -> Release:
            source = open_source(
                paths,
                folder,
                _part_rows(paths, room),
                delimiter=delimiter,
                encoding=encoding,
                decimal=decimal,
                wanted=columns or (),
            )
            names = choose_columns(source, columns, by, weights)
            check_k(k, source.rows)
            job = Job(
                source=source,
                folder=folder,
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
            with Workers(processes, state) as workers:
                return _Run(job, workers, room, missing, block, split).release(target, limit, columns is None)

        release = watch(run, max(1, stored_bytes(paths) // 10_000_000), title=method, show=progress)
    asked = {"integers": integers, "missing": missing, "block": block, "split": split, "weights": weights}
    csv = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    return replace(release, parameters={**release.parameters, **asked, **csv, "memory": memory, "engine": "local"})


@dataclass(frozen=True)
class _Run:
    """One run, from staged parts to the release."""

    job: Job
    workers: Workers
    room: int
    missing: str
    block: int | None
    split: str | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Look at all parts: what `shoal.blocks` asks of whoever holds the records."""
        tasks = [(self.job, part, function, arguments) for part in range(len(self.job.source.parts))]
        return self.workers.reduce(look, tasks, combine)

    def release(self, target: Path, limit: int, chosen: bool) -> Release:
        """Do it all."""
        job, workers = self.job, self.workers
        with self._timed("read"):
            staged, roots = self._stage(job, "input")
        check_staged(job, staged, self.missing)
        kinds = column_kinds(staged)
        n = sum(part.kept for part in staged)
        rule = read_rule(job, self.block, self.split)
        with self._timed("block"):
            blocks = find_blocks(self, roots, rule)
        starts = np.cumsum([0, *(part.kept for part in staged)])
        with self._timed("mask"):
            found = list(self._mask(blocks, starts, kinds, n))
        back = Shuffle(job.folder, "back", len(found), len(staged))
        with written_beside(target) as temporary:
            with self._timed("write"):
                self._write(temporary, starts, back, kinds)
            with self._timed("verify"):
                self._verify(temporary, n)
        many = workers.processes
        facts = {
            **blocks.facts,
            "engine": f"local, {many} process{'es' if many > 1 else ''}",
            "peak memory": f"{max(peak_bytes(), workers.peak) / 1e6:.0f} MB a process",
        }
        return summarise(job, staged, found, kinds, facts, data=target, chosen=chosen, seconds=self.seconds)

    def _stage(self, job: Job, name: str) -> tuple[list[Staged], int]:
        """Stage all parts and number the sets that groups must not leave, in order of appearance."""
        firsts = np.cumsum([0, *(part.rows for part in job.source.parts)])
        tasks = [(job, name, part, int(firsts[part])) for part in range(len(job.source.parts))]
        staged = list(self.workers.map(stage, tasks))
        roots, many = number_roots(staged)
        for part, codes in enumerate(roots):
            np.save(job.path(name, part, "roots"), codes)
        return staged, many

    def _mask(self, blocks: Blocks, starts: Ints, kinds: tuple[str, ...], n: int) -> Iterator[Bucket]:
        job = self.job
        rows = min(RECORDS, self.room // (8 * (10 * len(job.columns) + 12)))
        bucket = buckets_of(blocks, rows)
        parts, buckets = len(starts) - 1, int(bucket.max()) + 1
        shuffle = Shuffle(job.folder, "block", parts, buckets)
        for _ in self.workers.map(
            spill, ((job, part, int(starts[part]), blocks, bucket, shuffle) for part in range(parts))
        ):
            pass
        for path in job.folder.glob("input-*-numbers.npy"):
            path.unlink()
        back = Shuffle(job.folder, "back", buckets, parts)
        share = n, self.workers.processes
        tasks = ((job, number, shuffle, back, starts[:-1], blocks.scale, kinds, share) for number in range(buckets))
        yield from self.workers.map(mask_bucket, tasks)
        shuffle.remove()

    def _write(self, path: Path, starts: Ints, back: Shuffle, kinds: tuple[str, ...]) -> None:
        """Write the parts to one file, in the order of the input."""
        csv = path.suffix.lower() in CSV
        tasks = ((self.job, part, int(first), back, kinds, csv) for part, first in enumerate(starts[:-1]))
        pieces = self.workers.map(finish, tasks)
        if csv:
            with path.open("wb") as file:
                for piece in pieces:
                    with piece.open("rb") as content:
                        shutil.copyfileobj(content, file, 1 << 20)
                    piece.unlink()
        else:
            from pyarrow import feather
            from pyarrow.parquet import ParquetWriter

            first = next(pieces)
            with ParquetWriter(path, feather.read_table(str(first)).schema) as writer:
                for piece in chain([first], pieces):
                    table = feather.read_table(str(piece))
                    writer.write_table(table, row_group_size=max(1, len(table)))
                    piece.unlink()
        back.remove()

    def _verify(self, path: Path, n: int) -> None:
        """Read the masked columns of what was written and count every group."""
        job = self.job
        dialect = job.source.dialect
        given = {} if dialect is None else {"delimiter": dialect.delimiter, "encoding": dialect.encoding}
        decimal = None if dialect is None else dialect.decimal
        rows = max(part.rows for part in job.source.parts)
        checked = job.folder / "check"
        checked.mkdir()
        source = open_source([path], checked, rows, decimal=decimal, wanted=job.columns, **given)
        if source.rows != n:
            raise FileError(f"Output {path} has {source.rows} records instead of {n}. Nothing was released.")
        written = replace(job, source=source, folder=checked, drop=False, weights=None)
        self._stage(written, "check")
        buckets = -(-n // min(RECORDS, max(1, self.room // (8 * (10 * len(job.columns) + 12)))))
        shuffle = Shuffle(checked, "count", len(source.parts), buckets)
        for _ in self.workers.map(spill_for_counting, ((written, part, shuffle) for part in range(len(source.parts)))):
            pass
        for _ in self.workers.map(count_bucket, ((written, number, shuffle) for number in range(buckets))):
            pass


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


@contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    """Give a folder for intermediate files beside the target; it goes whatever happens."""
    try:
        folder = tempfile.mkdtemp(prefix=f".{target.stem}-", dir=target.parent)
    except OSError as error:
        raise FileError(f"Output {target} cannot be written: {error.strerror}.") from None
    try:
        yield Path(folder)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Output {target} cannot be written: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
