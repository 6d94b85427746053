"""The engine of Dask: a Dask DataFrame in, a Dask DataFrame out, or files to files, on whatever cluster there is.

Partitions are the parts. Arrays of numbers stay on the workers, which spill them; records are brought together by
Dask's own shuffle, counts are merged in a tree, and workers write what is released. The number of tasks grows as the
number of partitions, and only what is known of parts and targets comes to the caller. Dask runs again what a lost
worker held: a part that is then not what it was is found out, and nothing is released.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.progress import Title
from shoal.core.types import Ints
from shoal.engines.cluster_shuffle import PART, ROW, TARGET, collect_part, column_types, deal_part, gather_target
from shoal.engines.dask_output import label_parts, release_parts, written_parts
from shoal.engines.dask_parts import FileParts, FrameParts, open_part, read_files, read_part, refusing
from shoal.engines.dask_shuffle import client_of, combined, keys_of, shuffled
from shoal.engines.records import KEPT, Arrays, Layout, Regrouping, Released, Schema
from shoal.tables.addresses import Place, as_place, find_places, suffix_of
from shoal.tables.choosing import is_dask
from shoal.tables.codes import Codes
from shoal.tables.columns import Name
from shoal.tables.csv_cells import Dialect
from shoal.tables.csv_files import CsvTable
from shoal.tables.files import CSV, PARQUET, check_data_set, folder_beside
from shoal.tables.frames import open_table
from shoal.tables.sources import find_paths, open_source, read_schema
from shoal.tables.table import Table

with suppress(ImportError):  # without Dask, `_connected` tells what to install
    # When a worker is sent its first task, not within one: Python gives a thread half of a library that another thread
    # is importing by one of its parts, as unpickling does.
    import pandas as pd

__all__ = ["DaskRecords", "open_dask"]

RECORDS = 250_000  # of a target, and of a part of a file
COPIES = 3  # of what a target needs that must fit in the memory of a worker


@contextmanager
def open_dask(
    data: Any,
    output: str | os.PathLike[str] | None,
    scheduler: str | None,
    *,
    wanted: Sequence[str],
    codes: Codes,
    csv: Mapping[str, str | None],
) -> Iterator[DaskRecords]:
    """Give the records of a Dask DataFrame, or of files that the workers of a cluster can read.

    CSV files are rewritten as Parquet first, in a folder beside the output that the workers must be able to read.
    """
    if is_dask(data):
        yield DaskRecords(FrameParts(data))
        return
    if not isinstance(data, (str, os.PathLike)):
        raise InputError(
            f"{parameter('data')} must be a path or a Dask DataFrame for {setting('engine', 'dask')}; got another "
            "table."
        )
    if output is None:
        raise InputError(
            f"{parameter('output')} must name a Parquet data set for {setting('engine', 'dask')}, got none."
        )
    check_data_set(output)
    target, places = as_place(output), _find(data)
    _check_apart(target, places)
    beside = folder_beside(target.resolve()) if isinstance(target, Path) else nullcontext()
    with _connected(scheduler), beside as folder:
        if suffix_of(places[0]) in CSV:
            if folder is None:
                raise InputError(
                    f"Output {target} is an address: CSV files are rewritten as Parquet next to the output, which must "
                    "be a path then. Convert them to Parquet first, or use a path."
                )
            source = open_source(places, folder, RECORDS, wanted=wanted, codes=codes, named=True, **csv)  # type: ignore[arg-type]
            if not source.parts:
                raise InputError(f"File {data} has no records. Mask a table with at least k.")
        else:
            if isinstance(places[0], Path):
                read_schema(places[0])
            source = read_files(places, RECORDS)
        yield DaskRecords(FileParts(source), {"engine": "dask"})


def _connected(scheduler: str | None) -> AbstractContextManager[Any]:
    """Connect to a scheduler, if one is named."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise InputError(f"{setting('engine', 'dask')} requires Dask: pip install 'shoal[dask]'.") from None
    if scheduler is None:
        return nullcontext()
    try:
        # One that cannot connect must not become Dask's default: whatever is computed later would wait for it.
        distributed.Client(scheduler, set_as_default=False).close()
    except (OSError, ValueError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"{parameter('scheduler')} must be the address of a Dask scheduler that answers, got {scheduler!r} "
            f"({said[0].rstrip('.')}). Check the address, or leave it out to mask on this machine."
        ) from None
    client: AbstractContextManager[Any] = distributed.Client(scheduler)
    return client


def _find(data: str | os.PathLike[str]) -> list[Any]:
    """Return the files of a path or an address."""
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
    """Refuse an output whose old files are the input."""
    for place in places:
        inside = (
            target.resolve() in (place, *place.parents)
            if isinstance(target, Path) and isinstance(place, Path)
            else (str(place).startswith(f"{target}/"))
        )
        if inside:
            raise InputError(f"Output {target} must not be the input: the original would be lost. Use another file.")


class Shared:
    """Arguments of many tasks, which go to the cluster once."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments


class DaskRecords:
    """Parts on a cluster; the partitions and the order of the records stay as they are."""

    name = "dask"
    whole = False
    threads = 1

    def __init__(self, given: FrameParts | FileParts, parameters: Mapping[str, Any] | None = None) -> None:
        self._dask, self._given = import_module("dask"), given
        self.dialect = given.dialect
        self.parameters: Mapping[str, Any] = parameters or {}
        self._workers, threads, self._room = _workers(self._dask)
        self.parallel = max(1, threads)
        self._schema: Schema | None = None
        self._firsts: list[int] = []  # the number of the first record of each part
        self._arrays: list[Any] = []
        self._kept: list[Any] = []  # of each part: which of its records are released
        self._answers: list[Any] = []
        self._reading: Shared | None = None  # how arrays are made of a part
        self._digests: list[bytes] = []  # of those arrays

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""
        return self._given.names

    @property
    def schema(self) -> Schema:
        """The columns."""
        if self._schema is None:
            self._schema = self._given.schema()
        return self._schema

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the records of a target: a few copies must fit in the memory of a thread of a worker."""
        return max(1, min(RECORDS, self._room // (COPIES * 8 * numbers))) if self._room else RECORDS

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Do nothing: workers load kernels as they need them."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Make arrays of every part, which stay on the workers."""
        names = [str(name) for name in columns]
        if not self._firsts:
            self._firsts = np.cumsum([0, *self._given.lengths(names)]).tolist()
        self._reading = Shared(function, arguments, names)
        how = self._share(self._reading)
        made = [
            self._delayed(_keep, nout=3)(part, first, self.dialect, how)
            for part, first in zip(self._given.some(names), self._firsts, strict=False)
        ]
        # One of the three may go before the others.
        held = list(self._dask.persist(*(piece[place] for place in range(3) for piece in made)))
        self._arrays, self._kept, known = held[: len(made)], held[len(made) : 2 * len(made)], held[2 * len(made) :]
        with refusing():
            found = self._dask.compute(*known)
        for said, _ in found:
            # Of several refusals the one of the first records, whichever partition was looked at first.
            if isinstance(said, Exception):
                raise said
        self._digests = [digest for _, digest in found]
        return [said for said, _ in found]

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Look at all parts and merge the results in a tree."""
        how = self._share(Shared(function, arguments))
        looked = [
            self._delayed(_look)(part, arrays, its, how)
            for part, (arrays, its) in enumerate(zip(self._arrays, own, strict=True))
        ]
        return self._dask.compute(combined(self._dask, looked, combine))[0]

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function here."""
        return function(*arguments)

    def regroup(self, how: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Shuffle the records to their targets, and answers back to the parts."""
        parts = len(self._arrays)
        back = dict(how.answered)
        if "group" in back:
            back[TARGET] = ("int32", 1)  # groups are numbered from target to target
        common = self._share(Shared(replace(how, own=()), back, keys_of(how.targets), keys_of(parts)))
        origin = {TARGET: "int64", PART: "int32", ROW: "int64"}
        dealt = [
            self._delayed(_deal)(part, arrays, its, common)
            for part, (arrays, its) in enumerate(zip(self._arrays, how.own, strict=True))
        ]
        moved = shuffled(self._dask, dealt, how.targets, origin | column_types(how.sent))
        gathered = [self._delayed(_gather)(target, table, common) for target, table in enumerate(moved)]
        # Each with a graph of its own from here on, or the second shuffle would be built from as many copies of it.
        gathered = list(self._dask.persist(*gathered))
        known = [self._delayed(_item)(pair, 1) for pair in gathered]
        self._answers = []
        if back:
            answers = [self._delayed(_item)(pair, 0) for pair in gathered]
            returned = shuffled(self._dask, answers, parts, {TARGET: "int64", ROW: "int64"} | column_types(back))
            collected = [self._delayed(_collect)(part, table, common) for part, table in enumerate(returned)]
            both = self._dask.persist(*collected, *known)
            self._answers, known = list(both[:parts]), list(both[parts:])
        # Workers let go of arrays that were dealt, and of answers that were sent back.
        self._arrays, gathered = [], []
        return list(self._dask.compute(*known))

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Put the released values in the parts, which stay on the cluster or are written by the workers."""
        how = self._share(Shared(function, arguments, layout, self._reading, self.dialect, self._given.again))
        checks = zip(self._firsts, self._digests, strict=False)
        released = [
            self._delayed(_release)(part, number, check, answers, kept, how)
            for number, (part, check, answers, kept) in enumerate(
                zip(self._given.parts, checks, self._answers, self._kept, strict=True)
            )
        ]
        if output is not None:
            place = as_place(output)
            source = written_parts(self._dask, released, place, layout)
            return Released(place, DaskRecords(FileParts(source)), self._given.notes)
        frame, parts = release_parts(self._dask, released, self.schema.levels)
        return Released(frame, DaskRecords(FrameParts(frame, parts)), self._given.notes)

    def labels(self) -> None:
        """Return nothing: labels stay on the cluster."""

    def kept(self) -> Ints:
        """Return nothing: what is kept is known to the parts."""
        return np.empty(0, dtype=np.int64)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Let the workers write a data set of labels, a file for each part."""
        numbered = zip(self._firsts, self._answers, self._kept, strict=False)
        label_parts(self._dask, list(numbered), self._share(Shared(groups)), as_place(path))

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the number of partitions and of workers."""
        workers = {"workers": self._workers} if self._workers else {}
        return {**blocks, "engine": f"dask, {len(self._given.parts)} partitions", **workers}

    def _delayed(self, function: Callable[..., Any], nout: int | None = None) -> Any:
        return self._dask.delayed(function, pure=False, nout=nout)

    def _share(self, values: Shared) -> Any:
        """Return arguments as a task of its own, which all others depend on."""
        return self._dask.delayed(values, name=f"arguments-{uuid.uuid4().hex}", traverse=False)


def _workers(dask: Any) -> tuple[int, int, int]:
    """Return the number of workers, of all their threads, and the least memory of a thread; zeros if not known."""
    client = client_of(dask)
    if client is None:
        return 0, 0, 0
    threads = client.nthreads().values()
    shown = client.scheduler_info()["workers"].values()  # some of them, on large clusters
    rooms = [int(one["memory_limit"]) // one["nthreads"] for one in shown if one["memory_limit"]]
    return len(threads), sum(threads), min(rooms, default=0)


# What workers do


def _keep(part: Any, first: int, dialect: Dialect | None, how: Shared) -> tuple[Any, Any, Any]:
    function, arguments, columns = how.arguments
    try:
        arrays, known = function(open_part(read_part(part, columns), columns, dialect), first, *arguments)
    except Exception as error:  # noqa: BLE001 - the caller raises it; what the given graph does is told otherwise
        return {}, None, (error, b"")
    return {n: array for n, array in arrays.items() if n != KEPT}, arrays.get(KEPT), (known, _digest(arrays))


def _digest(arrays: Arrays) -> bytes:
    """Return what tells whether the arrays of a part are the same."""
    found = blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.data if array.size else b"")
    return found.digest()


def _look(part: int, arrays: Arrays, own: Any, how: Shared) -> Any:
    function, arguments = how.arguments
    return function(part, arrays, own, *arguments)


def _item(pair: Sequence[Any], place: int) -> Any:
    return pair[place]


def _deal(part: int, arrays: Arrays, own: Any, common: Shared) -> Any:
    """Return the records of a part as a table, each with the key of its target."""
    how, _, keys, _ = common.arguments
    columns = deal_part(part, arrays, own, how)
    columns[TARGET] = keys[columns[TARGET]]
    return pd.DataFrame(columns)


def _gather(target: int, table: Any, common: Shared) -> tuple[Any, Any]:
    """Work on the records of a target; return answers with the keys of the parts they go to, and what is known."""
    how, back, keys, keys_of_parts = common.arguments
    columns = {str(name): table[name].to_numpy() for name in table.columns}
    _check_place(columns[TARGET], keys[target])
    answers, known = gather_target(columns, how)
    if not back:
        return None, known
    answers[TARGET] = keys_of_parts[answers.pop(PART)]
    if TARGET in back:
        answers |= {name: np.full(len(table), target, "int32") for name in column_types({TARGET: back[TARGET]})}
    return pd.DataFrame(answers), known


def _collect(part: int, table: Any, common: Shared) -> Arrays:
    """Return the answers to a part, in the order of its records."""
    _, back, _, keys = common.arguments
    columns = {str(name): table[name].to_numpy() for name in table.columns}
    _check_place(columns[TARGET], keys[part])
    if not np.array_equal(np.sort(columns[ROW]), np.arange(len(table))):
        raise RuntimeError(f"The shuffle has lost or doubled records of partition {part}.")
    return collect_part(columns, back)


def _check_place(found: Ints, key: int) -> None:
    if (found != key).any():
        raise RuntimeError("The shuffle has sent records to another partition than that of their key.")


def _release(part: Any, number: int, check: tuple[int, bytes], answers: Arrays, kept: Ints | None, how: Shared) -> Any:
    """Return a part with the released values, unless it is not the part that was masked."""
    function, arguments, layout, reading, dialect, again = how.arguments
    first, digest = check
    read, given, columns = reading.arguments
    native = read_part(part, list(dict.fromkeys([*layout.read, *columns])))
    if _digest(read(open_part(native, columns, dialect), first, *given)[0]) != digest:
        raise InputError(
            f"{parameter('data')} gave other records when it was computed again (partition {number}). Nothing was "
            f"released. {again}"
        )
    if kept is not None:
        answers = {**answers, KEPT: kept}
    if native is part:
        return function(open_table(part), answers, *arguments).native
    table = function(open_part(native, layout.read, dialect), answers, *arguments).only(layout.names)
    return table.with_numbers(layout.numbers, layout.types).to_arrow() if isinstance(table, CsvTable) else table.native
