"""Spark's tasks: functions of all batches of a partition, which it runs as ``mapInArrow``.

Parts and targets are partitions. A task reads its number from its partition; records are never looked at by the JVM,
which stores and moves them as bytes (`shoal.engines.packets`).
"""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from shoal.core.errors import ShoalError
from shoal.engines.cluster import TARGET, Piece, answered_types, collect_part, merge
from shoal.engines.packets import Packets, fact_packet, pack, packets_of, receive, unpack
from shoal.engines.records import Arrays, Regrouping

__all__ = [
    "FAN",
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
]

FAN = 32  # results that are merged at a time
BATCH = 10_000  # records of a batch that is handed to Spark


def part_number() -> int:
    """Return the number of the partition that is worked on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


# What a partition holds


@dataclass(frozen=True)
class SelectedColumns:
    """Some columns of a frame, which Spark knows by their places and Python by their names."""

    empty: Any  # a table of Arrow with these columns and no record

    def read(self, batches: Iterable[Any]) -> Any:
        """Return all batches of a partition as a table of Arrow."""
        import pyarrow as pa

        pieces = list(batches)
        return pa.Table.from_batches(pieces).rename_columns(self.empty.column_names) if pieces else self.empty


@dataclass(frozen=True)
class HeldPiece:
    """A piece: its facts first, with the type of its records."""

    def read(self, batches: Iterable[Any]) -> Piece:
        """Return the piece of a partition."""
        ((_, facts, kind),), records, _ = receive(batches)
        return Piece(unpack(records.view(kind)), facts)


@dataclass(frozen=True)
class ArrivedRecords:
    """Records that have come to their target."""

    types: Mapping[str, str]

    def read(self, batches: Iterable[Any]) -> Arrays:
        """Return the records of a partition as columns."""
        _, content, targets = receive(batches)
        if targets - {part_number()}:
            raise RuntimeError(f"Spark has brought records of other targets to partition {part_number()}.")
        records = content.view(np.dtype(list(self.types.items())))
        return {name: records[name] for name in records.dtype.names or ()}


@dataclass(frozen=True)
class PartAnswers:
    """Answers of targets that have come back to their part."""

    regrouping: Regrouping

    def read(self, batches: Iterable[Any]) -> Arrays:
        """Return the answers of a partition, in the order of its records."""
        return collect_part(ArrivedRecords(answered_types(self.regrouping)).read(batches), self.regrouping.answered)


# What is done with it


@dataclass(frozen=True)
class Task(ABC):
    """A function of all batches of a partition."""

    function: Callable[..., Any]
    shared: Any  # a broadcast of the arguments: those of each part, and of all
    reader: Any

    modules = 0  # that a worker had imported when it last said that they stay

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Work on a partition; spare the collection of garbage after every task the libraries, which takes longer."""
        yield from self.rows(part_number(), batches)
        if len(sys.modules) > Task.modules:
            Task.modules = len(sys.modules)
            gc.freeze()

    @abstractmethod
    def rows(self, number: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows that a partition becomes."""

    def run(self, number: int, *contents: Any) -> Any:
        """Return what the function makes of a partition."""
        each, shared = self.shared.value
        return self.function(number, *contents, each[number] if number < len(each) else None, shared)


@dataclass(frozen=True)
class PieceTask(Task):
    """Make a piece, facts first, then its records.

    A refusal is a fact: Spark would try a task that fails again, and report it at length.
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
        # Records of no numbers are as good as none: dates that were only looked at.
        if records.dtype.itemsize:
            yield from packets_of(records, np.zeros(len(records), np.int64) if target is None else target)


@dataclass(frozen=True)
class SendTask(Task):
    """Send the records of a piece to their targets; a refusal ends the task, since nobody would hear of it."""

    def rows(self, number: int, batches: Iterable[Any]) -> Packets:
        """Yield packets."""
        arrays = dict(self.run(number, self.reader.read(batches)).arrays)
        target = arrays.pop(TARGET)
        yield from packets_of(pack(arrays), target)


@dataclass(frozen=True)
class MergeTask:
    """Merge facts, in the order of the parts that they are of."""

    combine: Callable[[Any, Any], Any]

    def __call__(self, batches: Iterable[Any]) -> Packets:
        """Yield a packet."""
        facts, number = receive(batches).facts, part_number()
        if facts:
            results = [result for _, result, _ in sorted(facts, key=itemgetter(0))]
            yield fact_packet((number, merge(results, self.combine), None), number // FAN)


@dataclass(frozen=True)
class ColumnTask(Task):
    """Send the columns of a part to where its answers come."""

    def rows(self, number: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield rows of records, numbered."""
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
    """Make a table of the answers to a part, and of its columns if they have come too."""

    empty: Any = None  # a table of Arrow with those columns and no record
    schema: Any = None  # of the table, in Arrow, once it is known

    def rows(self, number: int, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield rows of the table."""
        table = self.run(number, *self._contents(batches))
        yield from table.cast(self.schema).to_batches(max_chunksize=BATCH)

    def of_nothing(self, number: int) -> Any:
        """Return the table of a part without records."""
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
