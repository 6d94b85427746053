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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from shoal.aggregation import Aggregate
from shoal.algorithms.registry import find
from shoal.blocks.blocking import BLOCK, Blocks, choose_blocking, find_blocks
from shoal.engines.memory import available_memory, peak_bytes, read_memory
from shoal.engines.shuffle import Shuffle
from shoal.engines.sources import Source, find_paths, open_source, record_bytes, stored_bytes
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
from shoal.tables.frames import Stratum, check_name
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
        raise InputError(f"Parameter 'engine' must be 'memory' or 'local', got {engine!r}.")
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
            names = _choose(source, columns, by, weights)
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

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Look at all parts: what `shoal.blocks` asks of whoever holds the records."""
        tasks = [(self.job, part, function, arguments) for part in range(len(self.job.source.parts))]
        return self.workers.reduce(look, tasks, combine)

    def release(self, target: Path, limit: int, chosen: bool) -> Release:
        """Do it all."""
        job, workers = self.job, self.workers
        staged, roots = self._stage(job, "input")
        self._check(staged)
        kinds = tuple(_kind([part.kinds[j] for part in staged]) for j in range(len(job.columns)))
        n = sum(part.kept for part in staged)
        d = len(job.columns)
        wish = self.block if self.block is not None else max(BLOCK, 2 * job.k)
        entry = find(job.method)
        rule = choose_blocking(wish, self.split, job.k, d, n, method=job.method, useful=True, able=entry.whole_records)
        if rule is None:
            raise InputError("Parameter 'block' must not be 0 for a table beyond memory: it is masked in blocks.")
        blocks = find_blocks(self, roots, rule)
        starts = np.cumsum([0, *(part.kept for part in staged)])
        found = list(self._mask(blocks, starts, kinds, n))
        back = Shuffle(job.folder, "back", len(found), len(staged))
        with written_beside(target) as temporary:
            self._write(temporary, starts, back, kinds)
            self._verify(temporary, n)
        errors = np.sum([bucket.errors for bucket in found], axis=0)
        totals = np.sum([bucket.totals for bucket in found], axis=0)
        total = float(totals.sum())
        rounding = float(np.sum([bucket.rounding for bucket in found]))
        sizes = np.zeros(max(len(bucket.sizes) for bucket in found), dtype=np.int64)
        for bucket in found:
            sizes[: len(bucket.sizes)] += bucket.sizes
        each = 100 * errors / np.where(totals > 0, totals, np.inf)
        notes = ["all numeric columns were masked, as none were named"] if chosen else []
        incomplete = sum(part.incomplete for part in staged)
        if incomplete:
            how = "left out (missing='drop')" if job.drop else "masked among those that miss the same columns"
            notes.append(f"{incomplete} records with missing values were {how}")
        whole = [name for name, kind in zip(job.columns, kinds, strict=True) if kind == "integer"]
        if whole:
            listed, share = ", ".join(whole), 100 * rounding / total if total > 0 else 0.0
            notes.append(
                f"integer columns were rounded ({listed}), which adds {share:+.5f} % to the loss"
                if job.whole
                else f"integer columns hold decimals now ({listed}); integers='round' keeps them whole"
            )
        peak = max(peak_bytes(), workers.peak)
        facts = {
            **blocks.facts,
            "engine": f"local, {workers.processes} process{'es' if workers.processes > 1 else ''}",
            "peak memory": f"{peak / 1e6:.0f} MB a process",
        }
        return Release(
            data=target,
            labels=np.empty(0, dtype=np.int64),
            sizes=np.repeat(np.arange(len(sizes)), sizes),
            loss=100 * float(errors.sum()) / total if total > 0 else 0.0,
            bound=None,
            status="heuristic",
            column_loss=dict(zip(job.columns, each.tolist(), strict=True)),
            kept=np.empty(0, dtype=np.int64),
            parameters={
                "k": int(job.k),
                "columns": list(job.columns),
                "method": job.method,
                "options": dict(job.options),
                "by": list(job.by),
                "aggregate": job.aggregate,
                "seed": job.seed,
            },
            facts=facts,
            notes=tuple(notes),
            timings={},
        )

    def _stage(self, job: Job, name: str) -> tuple[list[Staged], int]:
        """Stage all parts and number the sets that groups must not leave, in order of appearance."""
        firsts = np.cumsum([0, *(part.rows for part in job.source.parts)])
        tasks = [(job, name, part, int(firsts[part])) for part in range(len(job.source.parts))]
        staged = list(self.workers.map(stage, tasks))
        numbers: dict[object, int] = {}
        for part, found in enumerate(staged):
            roots = [numbers.setdefault(cell, len(numbers)) for cell in found.cells]
            np.save(job.path(name, part, "roots"), np.array(roots, dtype=np.int64))
        return staged, len(numbers)

    def _check(self, staged: list[Staged]) -> None:
        """Apply the policy of missing values, and check k against every set of records."""
        job, k = self.job, self.job.k
        incomplete = sum(part.incomplete for part in staged)
        if incomplete and self.missing == "error":
            counts = np.sum([part.holes for part in staged], axis=0).tolist()
            listed = ", ".join(f"{name!r} ({c})" for name, c in zip(job.columns, counts, strict=True) if c)
            raise InputError(
                f"Values are missing in column {listed}; {incomplete} records are concerned. Choose missing='group' to "
                "mask them among records that miss the same columns, or missing='drop' to leave them out."
            )
        check_k(k, sum(part.kept for part in staged), "the table without records that miss a value" if job.drop else "")
        totals: dict[tuple[tuple[object, ...], tuple[bool, ...]], int] = {}
        strata: dict[tuple[object, ...], int] = {}
        for part in staged:
            for cell, count in zip(part.cells, part.counts.tolist(), strict=True):
                totals[cell] = totals.get(cell, 0) + count
                strata[cell[0]] = strata.get(cell[0], 0) + count
        for key, count in strata.items():
            check_k(k, count, Stratum(key, np.empty(0, dtype=np.int64)).describe(job.by) if job.by else "")
        for (key, pattern), count in totals.items():
            if count < k:
                where = Stratum(key, np.empty(0, dtype=np.int64)).describe(job.by)
                lacking = ", ".join(name for name, hole in zip(job.columns, pattern, strict=True) if hole)
                raise InputError(
                    f"Parameter 'missing' is 'group', but only {count} records of {where} miss "
                    f"{f'exactly: {lacking}' if lacking else 'nothing'}; k={k} are needed. Take missing='drop', a "
                    "smaller k, or mask fewer columns."
                )

    def _mask(self, blocks: Blocks, starts: Ints, kinds: tuple[str, ...], n: int) -> Iterator[Bucket]:
        job = self.job
        rows = min(RECORDS, self.room // (8 * (10 * len(job.columns) + 12)))
        # Buckets are runs of blocks in Morton order.
        bucket = ((np.cumsum(blocks.sizes) - blocks.sizes) // max(rows, 1)).astype(np.int64)
        _, bucket = np.unique(bucket, return_inverse=True)
        parts, buckets = len(starts) - 1, int(bucket.max()) + 1
        shuffle = Shuffle(job.folder, "block", parts, buckets)
        for _ in self.workers.map(
            spill, ((job, part, int(starts[part]), blocks, bucket, shuffle) for part in range(parts))
        ):
            pass
        for path in job.folder.glob("input-*-numbers.npy"):
            path.unlink()
        back = Shuffle(job.folder, "back", buckets, parts)
        share = -(-n // self.workers.processes)
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


def _kind(kinds: Sequence[str]) -> str:
    """Return the kind of a column whose parts may differ, as those of CSV do."""
    return kinds[0] if len(set(kinds)) == 1 else "float"


def _choose(source: Source, wanted: Sequence[str] | None, by: Sequence[str], weights: str | None) -> list[str]:
    names = list(source.names)
    for name in by:
        check_name(name, names, "by")
    if weights is not None:
        check_name(weights, names, "weights")
    if wanted is None:
        numeric = [name for name in source.numeric if name not in {*by, weights}]
        if not numeric:
            raise InputError("Parameter 'columns' is not given and the table has no numeric column to mask.")
        return numeric
    if not wanted:
        raise InputError("Parameter 'columns' must name at least one column, got none.")
    for name in wanted:
        check_name(name, names, "columns")
        if list(wanted).count(name) > 1:
            raise InputError(f"Parameter 'columns' must name each column once, but {name!r} stands twice.")
        if name in by:
            raise InputError(f"Column {name!r} stands in 'columns' and in 'by': it cannot be masked and split by.")
    return list(wanted)


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
