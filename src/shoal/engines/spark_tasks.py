"""Spark tasks: functions that process all batches of a partition, run by ``mapInArrow``.

Parts and targets are partitions. A task takes its number from its partition. The JVM does not interpret records; it
stores and moves them as packets of bytes. A Spark row costs far more than its bytes, so a packet holds several hundred
records of one target, laid out as in memory.

Cost: one sort by target and one copy of the bytes.
"""

from __future__ import annotations

import gc
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import ShoalError
from shoal.core.types import Ints
from shoal.engines.cluster import TARGET, Piece, answered_types, collect_part, merge
from shoal.engines.records import Arrays, Regrouping
from shoal.kernels.counting_sort import sort_by_target

__all__ = [
    "FAN",
    "PACKETS",
    "ArrivedRecords",
    "ColumnTask",
    "HeldPiece",
    "MergeTask",
    "PartAnswers",
    "PieceTask",
    "SelectedColumns",
    "SendTask",
    "TableTask",
    "Task",
    "pack",
    "packets_of",
    "unpack",
]

FAN = 32  # results merged in one task
BATCH = 10_000  # records per batch for Spark
PACKETS = "target int, facts boolean, data binary"  # the schema of all tables that the engine moves
PACKET_BYTES = 4096  # approximate size of a packet; Spark processes 10,000 packets at a time
PACKET_BATCH = 512  # packets per batch
Packets = Iterator[Any]  # batches of packets


def part_number() -> int:
    """Return the number of the current partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


# Packets


class Received(NamedTuple):
    """The contents of received packets."""

    facts: list[Any]
    records: NDArray[np.uint8]  # the bytes of all records
    targets: set[int]  # the targets of the packets


def pack(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.void]:
    """Pack arrays with one row per record into one array of records."""
    kind = np.dtype([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
    records = np.empty(len(next(iter(arrays.values()))), dtype=kind)
    for name, array in arrays.items():
        records[name] = array
    return records


def unpack(records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Unpack the arrays from an array of records."""
    return {name: np.ascontiguousarray(records[name]) for name in records.dtype.names or ()}


def packets_of(records: NDArray[np.void], target: Ints) -> Packets:
    """Yield records in batches of packets; each packet has one target."""
    import pyarrow as pa

    size, target = records.dtype.itemsize, target.astype(np.int64, copy=False)
    order, begins = sort_by_target(target, int(target.max(initial=-1)) + 1)
    records, target = records[order], target[order]
    place = np.arange(len(records)) - np.repeat(begins[:-1], np.diff(begins))
    cuts = np.append(np.flatnonzero(place % max(1, PACKET_BYTES // size) == 0), len(records))
    for first in range(0, len(cuts) - 1, PACKET_BATCH):
        bounds = cuts[first : first + PACKET_BATCH + 1]
        offsets = ((bounds - bounds[0]) * size).astype(np.int32)
        content = records[bounds[0] : bounds[-1]].view(np.uint8)
        data = pa.Array.from_buffers(
            pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        )
        to = target[bounds[:-1]].astype(np.int32)
        columns = [pa.array(to), pa.array(np.zeros(len(to), dtype=bool)), data]
        yield pa.RecordBatch.from_arrays(columns, ["target", "facts", "data"])


def fact_packet(facts: Any, target: int = 0) -> Any:
    """Return a batch with one packet of results."""
    import pyarrow as pa

    columns = [pa.array([target], pa.int32()), pa.array([True]), pa.array([pickle.dumps(facts)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["target", "facts", "data"])


def receive(batches: Iterable[Any]) -> Received:
    """Return the contents of packets, in order of arrival."""
    facts: list[Any] = []
    pieces: list[NDArray[np.uint8]] = []
    targets: set[int] = set()
    for batch in batches:
        data, factual = batch.column("data"), batch.column("facts").to_numpy(zero_copy_only=False)
        targets.update(np.unique(batch.column("target").to_numpy()).tolist())
        facts += [pickle.loads(data[row].as_py()) for row in np.flatnonzero(factual).tolist()]  # noqa: S301  (our own)
        offsets = np.frombuffer(data.buffers()[1], dtype=np.int32)[data.offset : data.offset + len(data) + 1]
        content = np.frombuffer(data.buffers()[2] or b"", dtype=np.uint8)
        if factual.any():
            pieces += [content[offsets[row] : offsets[row + 1]] for row in np.flatnonzero(~factual).tolist()]
        else:
            pieces.append(content[offsets[0] : offsets[-1]])
    return Received(facts, np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8), targets)


# Contents of partitions


@dataclass(frozen=True)
class SelectedColumns:
    """Selected columns of a frame, which Spark identifies by position and Python by name."""

    empty: Any  # an Arrow table with these columns and no records

    def read(self, batches: Iterable[Any]) -> Any:
        """Return all batches of a partition as an Arrow table."""
        import pyarrow as pa

        pieces = list(batches)
        return pa.Table.from_batches(pieces).rename_columns(self.empty.column_names) if pieces else self.empty


@dataclass(frozen=True)
class HeldPiece:
    """A piece on the executors: first its results and the type of its records, then the records."""

    def read(self, batches: Iterable[Any]) -> Piece:
        """Return the piece of a partition."""
        ((_, facts, kind),), records, _ = receive(batches)
        return Piece(unpack(records.view(kind)), facts)


@dataclass(frozen=True)
class ArrivedRecords:
    """Records that have arrived at their target."""

    types: Mapping[str, str]

    def read(self, batches: Iterable[Any]) -> Arrays:
        """Return the records of a partition as columns."""
        _, content, targets = receive(batches)
        if targets - {part_number()}:
            raise RuntimeError(f"Spark sent records of other targets to partition {part_number()}.")
        records = content.view(np.dtype(list(self.types.items())))
        return {name: records[name] for name in records.dtype.names or ()}


@dataclass(frozen=True)
class PartAnswers:
    """Answers that targets have sent back to a part."""

    regrouping: Regrouping

    def read(self, batches: Iterable[Any]) -> Arrays:
        """Return the answers of a partition, in the order of its records."""
        return collect_part(ArrivedRecords(answered_types(self.regrouping)).read(batches), self.regrouping.answered)


# Tasks


@dataclass(frozen=True)
class Task(ABC):
    """A function that processes all batches of a partition."""

    function: Callable[..., Any]
    shared: Any  # a broadcast of the arguments per part and the arguments for all parts
    reader: Any

    modules = 0  # number of imported modules at the last `gc.freeze`

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Process a partition; exempt imported libraries from garbage collection, which is slower than a task."""
        yield from self.rows(part_number(), batches)
        if len(sys.modules) > Task.modules:
            Task.modules = len(sys.modules)
            gc.freeze()

    @abstractmethod
    def rows(self, number: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the result rows of a partition."""

    def run(self, number: int, *contents: Any) -> Any:
        """Run the function on a partition."""
        each, shared = self.shared.value
        return self.function(number, *contents, each[number] if number < len(each) else None, shared)


@dataclass(frozen=True)
class PieceTask(Task):
    """A task that computes a piece and yields its results first, then its records.

    A refusal is returned as a result, because Spark would retry a failed task and print long traces.
    """

    def rows(self, number: int, batches: Iterable[Any]) -> Packets:
        """Yield packets."""
        try:
            piece = self.run(number, self.reader.read(batches))
        except ShoalError as error:
            piece = Piece({}, error)
        arrays = dict(piece.arrays)
        target = arrays.pop(TARGET, None)
        records = pack(arrays) if arrays else np.empty(0, dtype=[("X", np.float64)])
        yield fact_packet((number, piece.facts, records.dtype), number // FAN)
        # Records without numbers need not be sent, because their dates were only inspected.
        if records.dtype.itemsize:
            yield from packets_of(records, np.zeros(len(records), np.int64) if target is None else target)


@dataclass(frozen=True)
class SendTask(Task):
    """A task that sends the records of a piece to their targets. It returns no results, so a refusal makes it fail."""

    def rows(self, number: int, batches: Iterable[Any]) -> Packets:
        """Yield packets."""
        arrays = dict(self.run(number, self.reader.read(batches)).arrays)
        target = arrays.pop(TARGET)
        yield from packets_of(pack(arrays), target)


@dataclass(frozen=True)
class MergeTask:
    """A task that merges results in the order of their parts."""

    combine: Callable[[Any, Any], Any]

    def __call__(self, batches: Iterable[Any]) -> Packets:
        """Yield a packet."""
        facts, number = receive(batches).facts, part_number()
        if facts:
            results = [result for _, result, _ in sorted(facts, key=itemgetter(0))]
            yield fact_packet((number, merge(results, self.combine), None), number // FAN)


@dataclass(frozen=True)
class ColumnTask(Task):
    """A task that sends the columns of a part to the partition of the part's answers."""

    def rows(self, number: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the records as numbered rows."""
        import pyarrow as pa

        table = self.run(number, self.reader.read(batches))
        if not table.num_columns:
            return
        names = [f"c{i}" for i in range(table.num_columns)]
        first = 0
        for batch in table.rename_columns(names).to_batches(max_chunksize=BATCH):
            target = pa.array(np.full(len(batch), number, dtype=np.int32))
            rows = pa.array(np.arange(first, first + len(batch)))
            columns = [target, rows, pa.nulls(len(batch), pa.binary()), *batch.columns]
            yield pa.RecordBatch.from_arrays(columns, ["target", "row", "data", *names])
            first += len(batch)


@dataclass(frozen=True)
class TableTask(Task):
    """A task that makes the table of a part from its answers and, if present, its columns."""

    empty: Any = None  # an Arrow table with those columns and no records
    schema: Any = None  # Arrow schema of the table, once known

    def rows(self, number: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield rows of the table."""
        table = self.run(number, *self._contents(batches))
        yield from table.cast(self.schema).to_batches(max_chunksize=BATCH)

    def of_nothing(self, number: int) -> Any:
        """Return the table of a part with zero records."""
        return self.run(number, *self._contents([]))

    def _contents(self, batches: Iterable[Any]) -> list[Any]:
        import pyarrow as pa

        if self.empty is None:
            return [self.reader.read(batches)]
        rows, packets, table = [], [], self.empty
        for batch in batches:
            data = batch.column("data")
            rows.append(batch.filter(data.is_null()).drop_columns(["target", "facts", "data"]))
            packets.append(batch.filter(data.is_valid()).select(["target", "facts", "data"]))
        if sum(map(len, rows)):
            joined = pa.Table.from_batches(rows).sort_by("row")
            table = joined.drop_columns(["row"]).rename_columns(table.column_names)
        return [table, self.reader.read(packets)]
