"""The engine for tables on disk, which runs processes on this machine within a memory limit.

Parts are row groups of Parquet files; a CSV file is first rewritten as Parquet. Only the numbers of masked columns are
moved. All intermediate files are in one folder next to the output, which is removed at the end. The assignment of tasks
to processes never changes the result, because counts are exact and a target receives its records in input order.

Disk space: twice the numbers of the masked columns and 8 bytes per record. Memory: one part or one target per process.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import FileError, InputError
from shoal.core.memory_limits import available_memory, peak_bytes, read_memory
from shoal.core.messages import parameter
from shoal.core.progress import Title, fresh_state
from shoal.core.types import Ints, State
from shoal.engines.disk_shuffle import Places, Shuffle, write_all
from shoal.engines.process_pool import Template, Workers
from shoal.engines.records import KEPT, Arrays, Layout, Records, Regrouping, Released, Schema
from shoal.tables.columns import Codes, Name
from shoal.tables.files import CSV, check_target
from shoal.tables.formats.arrow_files import PARQUET
from shoal.tables.formats.csv_files import csv_text, encode_part
from shoal.tables.number_text import Dialect
from shoal.tables.outputs import folder_beside, written_beside, written_path
from shoal.tables.reading import ReadingOptions
from shoal.tables.sources import Source, find_paths, open_source, record_bytes
from shoal.tables.table import Table

__all__ = ["LocalRecords", "check_files", "open_local"]

RECORDS = 250_000  # records per part and per target, if memory allows
COUNTED = 60_000  # records per target that is only counted, so that most of it stays in the processor's cache
MANY = 2_000  # maximum number of counted targets, as each reads from every part; larger tables get larger targets
PROCESS = 330_000_000  # memory of a process in bytes before it reads data: libraries and kernels
LEAST = 60_000_000  # working memory that a process needs, in bytes


Stamp = tuple[int, int, int] | None  # size, time and inode of a file


@dataclass(frozen=True)
class Limits:
    """The limits on memory and processes."""

    memory: int
    processes: int
    room: int  # bytes of working memory per process


def check_files(
    data: str | os.PathLike[str],
    output: str | os.PathLike[str] | None,
    labels: str | os.PathLike[str] | None,
    memory: str | int | None,
    processes: int | None,
) -> tuple[list[Path], Path, Limits]:
    """Return the files to mask, the target and the limits; refuse requests that are impossible from file to file."""
    if output is None:
        raise InputError(f"{parameter('output')} must name a file: a table beyond memory is masked from file to file.")
    target = Path(output)
    if target.suffix.lower() not in (*CSV, *PARQUET):
        endings = " or ".join((*CSV, *PARQUET))
        raise InputError(
            f"Output {target} must end in {endings} for a table on disk. Convert or compress it afterwards."
        )
    paths = find_paths(data)
    if target.resolve() in [path.resolve() for path in paths]:
        raise InputError(f"Output {output} must not be the input: the original would be lost. Use another file.")
    if labels is not None:
        check_target(labels, endings=(*CSV, *PARQUET))
    limit = read_memory(memory) if memory is not None else available_memory() // 2
    return paths, target, Limits(limit, *_shares(limit, processes))


@contextmanager
def open_local(
    paths: Sequence[Path],
    target: Path,
    limits: Limits,
    state: State,
    template: Template | None,
    *,
    numbers: Sequence[str],
    codes: Codes,
    reading: ReadingOptions,
) -> Iterator[LocalRecords]:
    """Open the records of files; at the end, stop the processes and remove the intermediate files."""
    with folder_beside(target) as folder, Workers(limits.processes, state, template) as workers:
        rows = _part_rows(paths, limits.room)
        stamps = {path: _stamp(path) for path in paths}
        source = open_source(
            paths, folder, rows, numbers=numbers, codes=codes, run=workers.map, named=True, reading=reading
        )
        yield LocalRecords(source, folder, workers, limits, stamps)


class LocalRecords(Records):
    """The records of a table on disk, in parts."""

    name = "local"
    whole = False
    threads = 1

    def __init__(
        self, source: Source, folder: Path, workers: Workers, limits: Limits, stamps: Mapping[Path, Stamp] | None = None
    ) -> None:
        self._source, self._folder, self._workers, self._limits = source, folder, workers, limits
        self._stamps = stamps or {}
        self.dialect = source.dialect
        self.parallel = workers.processes
        # Memory and processes determine the number of records per write, and therefore the bytes of the file.
        self.parameters: Mapping[str, Any] = {"engine": "local", "memory": limits.memory, "processes": limits.processes}
        self._stored: list[tuple[int, list[str]]] = []  # per part: number of records, names of the arrays
        self._shuffle: Shuffle | None = None
        self._places: list[Places] = []

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""
        return self._source.names

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return Schema(self._source.names, self._source.numeric, self._source.timed, self._source.levels)

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the number of records per target, so that a few copies fit in memory."""
        rows = max(1, min(RECORDS, self._limits.room // (8 * numbers)))
        return min(rows, max(COUNTED, self._source.rows // MANY)) if counted else rows

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Run a function in the process from which all others are forked."""
        self._workers.prepare(function, arguments)

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Compute the arrays of every part and store them in files."""
        firsts = np.cumsum([0, *(part.rows for part in self._source.parts)])
        tasks = (
            (self._source, part, int(firsts[part]), self._folder, function, arguments, list(columns))
            for part in range(len(self._source.parts))
        )
        pieces = list(self._workers.map(_keep_part, tasks))
        self._stored = [stored for stored, _ in pieces]
        return [facts for _, facts in pieces]

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Run a function on the arrays of every part and combine the results."""
        tasks = ((*stored, function, own[stored[1]], arguments) for stored in self._files())
        return reduce(combine, self._workers.map(_reduce_part, tasks))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in a worker."""
        (result,) = self._workers.map(function, [arguments])
        return result

    def regroup(self, regrouping: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Shuffle the records on disk."""
        starts = np.cumsum([0, *(rows for rows, _ in self._stored)])
        shuffle = Shuffle(self._folder, "deal", starts, regrouping.targets, {**regrouping.sent, **regrouping.answered})
        shuffle.create()
        tasks = (
            (*stored, shuffle, regrouping.deal, regrouping.own[stored[1]], regrouping.dealing)
            for stored in self._files()
        )
        begins = []
        for part, targets in enumerate(self._workers.map(_deal_part, tasks)):
            begins.append(targets)
            for name in self._stored[part][1]:
                if name != KEPT:
                    _path(self._folder, part, name).unlink()
        places = shuffle.places(begins)
        sent, answered = list(regrouping.sent), list(regrouping.answered)
        tasks_of_targets = (
            (shuffle, place, sent, answered, regrouping.gather, regrouping.gathering) for place in places
        )
        facts = list(self._workers.map(_gather_target, tasks_of_targets))
        shuffle.remove(*sent, *(() if answered else ("order",)))
        self._shuffle, self._places = shuffle, places
        return facts

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Write the parts to one file, in input order, and open the file again."""
        if output is None or self._shuffle is None:
            raise InputError(
                f"{parameter('output')} must name a file: a table beyond memory is masked from file to file."
            )
        csv = output.suffix.lower() in CSV
        tasks = (
            (self._source, part, self._folder, KEPT in stored, self._shuffle, function, arguments, layout, csv)
            for part, (_, stored) in enumerate(self._stored)
        )
        with written_beside(output) as temporary:
            pieces = self._workers.map(_release_part, tasks)
            if csv:
                _join_csv(temporary, pieces)
            else:
                # Means of scattered groups rarely repeat within a part, so a dictionary would only cost time.
                _join_parquet(temporary, pieces, layout.read)
            for path, stamp in self._stamps.items():
                if _stamp(path) != stamp:
                    raise FileError(f"File {path} changed during masking. Nothing was released. Run it again.")
            sync = threading.Thread(target=_sync, args=(temporary,), daemon=True)
            sync.start()
        if os.name == "nt":
            sync.join()  # Windows cannot move an open file; elsewhere, the disk writes while groups are counted
        self._shuffle.remove("released")
        return Released(output, self._written(output, layout.numbers))

    def _written(self, output: Path, masked: Sequence[str]) -> LocalRecords:
        dialect = self.dialect or Dialect()
        reading = ReadingOptions(dialect.delimiter, dialect.encoding, dialect.decimal)
        rows = max(part.rows for part in self._source.parts)
        folder = self._folder / "check"
        folder.mkdir()
        paths = [written_path(output)]
        source = open_source(paths, folder, rows, numbers=list(masked), run=self._workers.map, reading=reading)
        return LocalRecords(source, folder, self._workers, self._limits)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Write the labels in input order; groups are numbered across targets."""
        if self._shuffle is None:
            return
        counts = np.stack([place.counts for place in self._places])
        firsts = np.cumsum([0, *(part.rows for part in self._source.parts)])
        tasks = (
            (self._folder, part, KEPT in stored, self._shuffle, int(firsts[part]), np.repeat(groups, counts[:, part]))
            for part, (_, stored) in enumerate(self._stored)
        )
        with written_beside(path) as temporary:
            pieces = self._workers.map(_label_part, tasks)
            if path.suffix.lower() in CSV:
                with temporary.open("wb") as file:
                    for number, piece in enumerate(pieces):
                        pl.read_ipc(piece.read_bytes()).write_csv(file, include_header=number == 0)
                        piece.unlink()
            else:
                _join_parquet(temporary, pieces, [])

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the number of processes and their peak memory."""
        processes, peaks = self._workers.processes, [peak_bytes(), *self._workers.peaks()]
        return {
            **blocks,
            "engine": f"local, {processes} process{'es' if processes > 1 else ''}",
            "peak memory": f"{sum(peaks) / 1e6:.0f} MB in total, {max(peaks) / 1e6:.0f} MB per process",
        }

    def _files(self) -> Iterator[tuple[Path, int, list[str]]]:
        for part, (_, names) in enumerate(self._stored):
            yield self._folder, part, names


def _stamp(path: Path) -> Stamp:
    """Return the size, time and inode of a file, used to detect changes; None if the file does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


# Functions for workers


def _path(folder: Path, part: int, name: str) -> Path:
    return folder / f"part-{part}-{name}.npy"


def _save(path: Path, array: NDArray[Any]) -> None:
    """Save an array in NumPy's format; raise an error if the disk is full."""
    array = np.ascontiguousarray(array)
    with path.open("wb", buffering=0) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        if array.size:
            write_all(file, array.data.cast("B"))


def _load(folder: Path, part: int, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    return {name: np.load(_path(folder, part, name)) for name in names}


def _keep_part(
    source: Source,
    part: int,
    first: int,
    folder: Path,
    function: Callable[..., tuple[Arrays, Any]],
    arguments: Sequence[Any],
    columns: Sequence[str],
) -> tuple[tuple[int, list[str]], Any]:
    arrays, facts = function(source.table(part, columns), first, *arguments)
    for name, array in arrays.items():
        _save(_path(folder, part, name), array)
    rows = next(len(array) for name, array in arrays.items() if name != KEPT)
    return (rows, list(arrays)), facts


def _reduce_part(
    folder: Path, part: int, names: list[str], function: Callable[..., Any], argument: Any, arguments: Sequence[Any]
) -> Any:
    return function(part, _load(folder, part, names), argument, *arguments)


def _deal_part(
    folder: Path,
    part: int,
    names: list[str],
    shuffle: Shuffle,
    deal: Callable[..., tuple[Ints, Arrays]],
    argument: Any,
    arguments: Sequence[Any],
) -> Ints:
    target, arrays = deal(part, _load(folder, part, names), argument, *arguments)
    return shuffle.write(part, target, arrays)


def _gather_target(
    shuffle: Shuffle,
    places: Places,
    sent: list[str],
    answered: list[str],
    gather: Callable[..., tuple[Arrays, Any]],
    arguments: Sequence[Any],
) -> Any:
    answers, facts = gather({name: shuffle.read(places, name) for name in sent}, fresh_state(), *arguments)
    for name in answered:
        shuffle.answer(places, name, answers[name])
    return facts


def _release_part(
    source: Source,
    part: int,
    folder: Path,
    dropped: bool,
    shuffle: Shuffle,
    function: Callable[..., Table],
    arguments: Sequence[Any],
    layout: Layout,
    csv: bool,
) -> Path:
    answers = {"released": shuffle.answers(part, "released"), **_load(folder, part, [KEPT] if dropped else [])}
    table = function(source.table(part, layout.read), answers, *arguments).only(layout.names)
    path = folder / f"output-{part}"
    if csv:
        dialect = table.dialect or Dialect()
        content = csv_text(table.csv_frame(), dialect, header=part == 0)
        path.write_bytes(encode_part(content, dialect, first=part == 0))
        return path
    import pyarrow as pa

    native = table.arrow_part(layout.numbers, layout.types)
    with pa.ipc.new_file(str(path), native.schema) as file:
        file.write_table(native)
    return path


def _label_part(folder: Path, part: int, dropped: bool, shuffle: Shuffle, first: int, groups: Ints) -> Path:
    group, size = shuffle.answers(part, "group", groups[:, None])[:, 0], shuffle.answers(part, "size")[:, 0]
    rows = _load(folder, part, [KEPT])[KEPT] if dropped else np.arange(len(group))
    path = folder / f"labels-{part}"
    pl.DataFrame({"record": first + rows + 1, "group": group, "size": size}).write_ipc(path, compression="uncompressed")
    return path


# Files and limits


def _join_csv(path: Path, pieces: Iterable[Path]) -> None:
    with path.open("wb") as file:
        for piece in pieces:
            with piece.open("rb") as content:
                shutil.copyfileobj(content, file, 1 << 20)
            piece.unlink()


def _join_parquet(path: Path, pieces: Iterable[Path], dictionary: list[str]) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    writer: Any = None
    try:
        for piece in pieces:
            # Read the file instead of mapping it, because Windows cannot remove a mapped file.
            with pa.OSFile(str(piece)) as file:
                table = pa.ipc.open_file(file).read_all()
            piece.unlink()
            writer = writer or ParquetWriter(path, table.schema, use_dictionary=dictionary)
            same = table.schema.equals(writer.schema)
            writer.write_table(table if same else table.cast(writer.schema), row_group_size=max(1, len(table)))
            del table  # free memory before the next table is read
    finally:
        if writer is not None:
            writer.close()


def _sync(path: Path) -> None:
    with suppress(OSError), path.open("r+b") as file:
        os.fsync(file.fileno())


def _shares(limit: int, processes: int | None) -> tuple[int, int]:
    """Return the number of workers and the working memory of each; the caller counts as a process too."""
    workers = processes or os.cpu_count() or 1
    while workers > 1 and limit / (workers + 1) < PROCESS + LEAST:
        workers -= 1
    room = int(limit / (workers + 1)) - PROCESS
    if room < LEAST:
        lowest = 2 * (PROCESS + LEAST) / 1e6
        raise InputError(f"{parameter('memory')} must be at least {lowest:.0f} MB, got {limit / 1e6:.0f} MB.")
    return workers, room


def _part_rows(paths: Sequence[Path], room: int) -> int:
    """Return the number of records per part, so that a few copies of all columns fit in memory."""
    width = max(max(record_bytes(path)) for path in paths[:: -(-len(paths) // 10)])
    return int(min(RECORDS, max(1000, room / (8 * max(width, 8)))))
