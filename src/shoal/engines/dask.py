"""The Dask platform, which masks a Dask DataFrame or files on any Dask cluster.

Each partition is a part. Arrays of numbers stay on the workers, which spill them to disk. Dask's shuffle brings records
together, counts are merged in a tree, and workers write the release. The number of tasks grows linearly with the number
of partitions. The caller receives only the results of parts and targets.

On a cluster, the shuffle is P2P: workers send rows to each other and buffer them on disk. It takes one task per input
partition, one per output partition, and one in between. Dask chooses the partition of a row by a hash of the row's key.
Each target therefore has a key that this hash maps to the target.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Ints
from shoal.engines.cluster import (
    RECORDS,
    TARGET,
    ClusterRecords,
    Piece,
    SharedArguments,
    Step,
    UntouchedColumns,
    answered_types,
    collect_part,
    merge,
    sent_types,
)
from shoal.engines.dask_tables import FileParts, FrameParts, dask_refusals, read_files, release_parts, write_parts
from shoal.engines.records import Arrays, Regrouping, Schema
from shoal.tables.addresses import Place, as_place, find_places, suffix_of
from shoal.tables.columns import Codes
from shoal.tables.files import CSV, check_data_set, is_dask
from shoal.tables.formats.arrow_files import PARQUET, describe_parquet
from shoal.tables.outputs import folder_beside
from shoal.tables.reading import ReadingOptions
from shoal.tables.sources import Source, find_paths, open_source

with suppress(ImportError):  # without Dask, `_connected` explains how to install it
    # Import when a worker receives its first task, not within a task. Unpickling imports part of a library, and would
    # find the library half-initialised while another thread imports it.
    import pandas as pd

__all__ = ["DaskPlatform", "open_dask"]

FAN = 16  # results merged in one task


@contextmanager
def open_dask(
    data: Any,
    output: str | os.PathLike[str] | None,
    scheduler: str | None,
    *,
    numbers: Sequence[str],
    codes: Codes,
    reading: ReadingOptions,
) -> Iterator[ClusterRecords]:
    """Open the records of a Dask DataFrame, or of files that the workers of a cluster can read.

    CSV files are first rewritten as Parquet in a folder next to the output, and the workers must be able to read it.
    """
    if is_dask(data):
        yield ClusterRecords(DaskPlatform(), FrameParts(data))
        return
    if not isinstance(data, (str, os.PathLike)):
        raise InputError(
            f"{parameter('data')} must be a path or a Dask DataFrame for {setting('engine', 'dask')}; got another "
            "table."
        )
    if output is None:
        raise InputError(
            f"{parameter('output')} must name a Parquet data set for {setting('engine', 'dask')}, got nothing."
        )
    check_data_set(output)
    target, places = as_place(output), _find(data)
    _check_apart(target, places)
    temporary = folder_beside(target.resolve()) if isinstance(target, Path) else nullcontext()
    with _connected(scheduler), temporary as folder:
        if suffix_of(places[0]) in CSV:
            if folder is None:
                raise InputError(
                    f"Output {target} is an address, but CSV files are rewritten as Parquet next to the output, "
                    "which must be a path. Convert them to Parquet first, or use a path."
                )
            source = open_source(places, folder, RECORDS, numbers=numbers, codes=codes, named=True, reading=reading)
            if not source.parts:
                raise InputError(f"File {data} has no records. Mask a table with at least k records.")
        else:
            if isinstance(places[0], Path):
                describe_parquet(places[0])
            source = read_files(places, RECORDS)
        yield ClusterRecords(DaskPlatform(), FileParts(source), {"engine": "dask"})


def _connected(scheduler: str | None) -> AbstractContextManager[Any]:
    """Connect to a scheduler if its address is set."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise InputError(f"{setting('engine', 'dask')} requires Dask: pip install 'shoal[dask]'.") from None
    if scheduler is None:
        return nullcontext()
    try:
        # A client that fails to connect must not become Dask's default: later computations would wait for it.
        distributed.Client(scheduler, set_as_default=False).close()
    except (OSError, ValueError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"{parameter('scheduler')} must be the address of a running Dask scheduler, got {scheduler!r} "
            f"({lines[0].rstrip('.')}). Check the address, or omit it to mask on this machine."
        ) from None
    client: AbstractContextManager[Any] = distributed.Client(scheduler)
    return client


def _find(data: str | os.PathLike[str]) -> list[Any]:
    """Return the files at a path or an address."""
    place = as_place(data)
    if isinstance(place, Path):
        return [path.resolve() for path in find_paths(place)]
    if suffix_of(place) not in ("", *PARQUET):
        raise InputError(
            f"Input {place} must be Parquet at an address: a file that ends in {' or '.join(PARQUET)}, a folder or a "
            "glob of such files. Convert it first, or copy it to a path."
        )
    return find_places(place, PARQUET)


def _check_apart(target: Place, places: Sequence[Place]) -> None:
    """Refuse an output that would overwrite the input."""
    for place in places:
        inside = (
            target.resolve() in (place, *place.parents)
            if isinstance(target, Path) and isinstance(place, Path)
            else (str(place).startswith(f"{target}/"))
        )
        if inside:
            raise InputError(f"Output {target} must not be the input: the original would be lost. Use another file.")


class DaskPlatform:
    """The Dask platform on the current cluster, or in this process if there is no cluster."""

    name = "dask"

    def __init__(self) -> None:
        self._dask = import_module("dask")
        self._workers, threads, self.room = _workers(self._dask)
        self.parallel = max(1, threads)

    def map_parts(self, step: Step, parts: Sequence[Any]) -> list[Any]:
        """Run a function on parts and return the pieces."""
        shared = self._share(step.shared)
        return [
            self._delayed(step.function)(number, part, argument, shared)
            for number, (part, argument) in enumerate(zip(parts, step.each, strict=False))
        ]

    def facts(self, pieces: Sequence[Any], replaced: list[Any] | None = None) -> tuple[list[Any], list[Any]]:
        """Compute pieces, which replace others on the workers; return the pieces and the results of each."""
        if replaced is not None:
            replaced.clear()
        persisted = list(self._dask.persist(*pieces))
        with dask_refusals():
            return persisted, list(self._dask.compute(*[piece[1] for piece in persisted]))

    def merged(self, pieces: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Merge the results of all pieces in a tree, and return the merged result."""
        results = [piece[1] for piece in pieces]
        while len(results) > 1:
            results = [self._delayed(merge)(results[i : i + FAN], combine) for i in range(0, len(results), FAN)]
        return self._dask.compute(*results)[0]

    def shuffle(
        self, pieces: Sequence[Any], assign: Step, gather: Step, regrouping: Regrouping, parts: int
    ) -> tuple[list[Any], list[Any]]:
        """Send records to targets and answers back to the parts."""
        to_targets, to_parts = keys_of(regrouping.targets), keys_of(parts)
        to_send = self._share(SharedArguments(assign._replace(each=()), to_targets))
        dealt = [
            self._delayed(_assign)(number, piece, argument, to_send)
            for number, (piece, argument) in enumerate(zip(pieces, assign.each, strict=True))
        ]
        to_gather = self._share(SharedArguments(gather, to_targets, to_parts))
        moved = enumerate(self._moved(dealt, regrouping.targets, sent_types(regrouping)))
        # Cut the graph here; otherwise the second shuffle would contain a copy of the graph per target.
        gathered = self._dask.persist(*[self._delayed(_gather)(target, table, to_gather) for target, table in moved])
        collected: list[Any] = []
        if regrouping.answered:
            answers = [piece[0] for piece in gathered]
            shapes = self._share(SharedArguments(regrouping.answered, to_parts))
            returned = enumerate(self._moved(answers, parts, answered_types(regrouping)))
            collected = [self._delayed(_collect)(part, table, shapes) for part, table in returned]
        persisted = self._dask.persist(*collected, *[piece[1] for piece in gathered])
        return list(persisted[: len(collected)]), list(self._dask.compute(*persisted[len(collected) :]))

    def _moved(self, pieces: Sequence[Any], targets: int, types: Mapping[str, str]) -> list[Any]:
        """Return the tables of all targets; `pieces` are delayed tables whose column `TARGET` holds the keys."""
        library = import_module("dask.dataframe")
        empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in {TARGET: "int64", **types}.items()})
        frame = library.from_delayed(list(pieces), meta=empty, verify_meta=False)
        # P2P needs workers; without them, use Dask's task-based shuffle.
        method = "tasks" if client_of(self._dask) is None else "p2p"
        moved = frame.shuffle(TARGET, npartitions=targets, ignore_index=True, shuffle_method=method)
        return list(moved.to_delayed())

    def join(self, answers: Sequence[Any], make: Step, columns: UntouchedColumns | None = None) -> list[Any]:
        """Return one table per part, made of the part's answers and unchanged columns."""
        if columns is None:
            return self.map_parts(make, answers)
        checked, shared = self.map_parts(columns.check, columns.table.parts), self._share(make.shared)
        return [
            self._delayed(make.function)(number, part, answer, argument, shared)
            for number, (part, answer, argument) in enumerate(zip(checked, answers, make.each, strict=True))
        ]

    def publish(self, tables: Sequence[Any], schema: Schema) -> tuple[Any, FrameParts]:
        """Keep tables on the cluster; return them as a Dask DataFrame and as a table to read again."""
        frame, parts = release_parts(self._dask, tables, schema.levels)
        return frame, FrameParts(frame, parts)

    def write(self, tables: Sequence[Any], path: Path, plain: Sequence[str], *, private: bool = False) -> Source:
        """Write a data set on the workers, one file per part."""
        return write_parts(self._dask, tables, as_place(path), plain)

    def written(self, place: Source) -> FileParts:
        """Open written tables to read them again."""
        return FileParts(place)

    def summary(self, parts: int) -> Mapping[str, object]:
        """Return the numbers of partitions and workers."""
        workers = {"workers": self._workers} if self._workers else {}
        return {"engine": f"dask, {parts} partitions", **workers}

    def _delayed(self, function: Callable[..., Any]) -> Any:
        return self._dask.delayed(function, pure=False)

    def _share(self, values: SharedArguments) -> Any:
        """Wrap arguments in a separate task on which all other tasks depend."""
        return self._dask.delayed(values, name=f"arguments-{uuid.uuid4().hex}", traverse=False)


def client_of(dask: Any) -> Any:
    """Return the client of the current cluster, or None if there is no cluster."""
    scheduler = getattr(dask.base.get_scheduler(), "__self__", None)
    return scheduler if hasattr(scheduler, "scheduler_info") else None


def _workers(dask: Any) -> tuple[int, int, int]:
    """Return the numbers of workers and threads, and the least memory per thread; zeros if unknown."""
    client = client_of(dask)
    if client is None:
        return 0, 0, 0
    threads = client.nthreads().values()
    infos = client.scheduler_info()["workers"].values()  # only some of the workers on large clusters
    rooms = [int(info["memory_limit"]) // info["nthreads"] for info in infos if info["memory_limit"]]
    return len(threads), sum(threads), min(rooms, default=0)


@lru_cache(maxsize=8)
def keys_of(targets: int) -> Ints:
    """Return, for each target, a number that Dask's hash maps to the partition of the target.

    Examples
    --------
    >>> keys_of(3).tolist()
    [3, 0, 1]
    """
    hashed = import_module("dask.dataframe.shuffle").partitioning_index
    key_count = 16 * targets
    while True:
        # Dask converts all numbers to floating point before it hashes them.
        places = hashed(pd.DataFrame({TARGET: np.arange(key_count, dtype=np.float64)}), targets)
        reached, keys = np.unique(np.asarray(places), return_index=True)
        if len(reached) == targets:
            return keys
        key_count *= 2


# Functions for workers


def _assign(number: int, piece: Piece, argument: Any, shared: SharedArguments) -> Any:
    """Return the records of a part as a table with the key of each record's target."""
    step, keys = shared.arguments
    columns = dict(step.function(number, piece, argument, step.shared).arrays)
    columns[TARGET] = keys[columns[TARGET]]
    return pd.DataFrame(columns)


def _gather(number: int, table: Any, shared: SharedArguments) -> Piece:
    """Process the records of a target; return answers with the keys of their parts."""
    step, keys, keys_of_parts = shared.arguments
    piece = step.function(number, _columns(table, keys[number]), None, step.shared)
    if not piece.arrays:
        return Piece({}, piece.facts)
    columns = dict(piece.arrays)
    columns[TARGET] = keys_of_parts[columns[TARGET]]
    return Piece(pd.DataFrame(columns), piece.facts)


def _collect(number: int, table: Any, shared: SharedArguments) -> Arrays:
    """Return the answers to a part, in the order of its records."""
    shapes, keys = shared.arguments
    return collect_part(_columns(table, keys[number]), shapes)


def _columns(table: Any, key: int) -> dict[str, Any]:
    """Return the columns of a table after a shuffle; check that the table reached its target."""
    columns = {str(name): table[name].to_numpy() for name in table.columns}
    if (columns[TARGET] != key).any():
        raise RuntimeError("The shuffle sent records to the wrong partition.")
    return columns
