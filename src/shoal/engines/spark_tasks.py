"""What Spark's executors do: functions of all batches of a partition, which it runs as ``mapInArrow``.

Parts and targets are partitions. A task knows its own by the number of its partition; records are never looked at by
the JVM, which stores and moves them as bytes (`shoal.engines.packing`).
"""

from __future__ import annotations

import gc
import hashlib
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.core.errors import InputError, ShoalError
from shoal.core.messages import parameter
from shoal.core.types import Ints
from shoal.engines.cluster_shuffle import (
    PART,
    ROW,
    TARGET,
    collect_part,
    column_types,
    deal_part,
    gather_target,
)
from shoal.engines.packing import KNOWN, Rows, cells_of, key_of, pack, row_of, rows_of, unpack
from shoal.engines.records import KEPT, Layout, Regrouping, Shapes
from shoal.tables.frames import open_table
from shoal.tables.native import from_arrow

__all__ = [
    "FAN",
    "Columns",
    "Deal",
    "Gather",
    "Groups",
    "Keep",
    "Label",
    "Look",
    "Merge",
    "Part",
    "Release",
    "shapes_of_answers",
]

GROUP = "group"  # the answer that numbers the groups of a target
FAN = 32  # results that are merged at a time
BATCH = 10_000  # records of a batch that is handed to Spark

CHANGED = (
    f"{parameter('data')} gives other records when Spark computes it again: those of partition {{part}} have changed "
    "since they were read. Nothing was released. Persist it first (data = data.persist()), or write it and mask the "
    "files."
)


class Part(NamedTuple):
    """What tells whether a part is still the same when it is computed again."""

    rows: int
    digest: bytes  # of the columns that were read, in their order


@dataclass(frozen=True)
class Columns:
    """Some columns of a frame, which Spark knows by their places and Python by their names."""

    empty: Any  # a table of Arrow with these columns and no record

    def table(self, batches: Iterable[Any]) -> Any:
        """Return all batches of a partition as a table of Arrow."""
        import pyarrow as pa

        found = list(batches)
        if not found:
            return self.empty
        return pa.Table.from_batches(found).rename_columns(self.empty.column_names)


def part_number() -> int:
    """Return the number of the partition that is worked on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _digest(table: Any) -> bytes:
    """Return what differs for other cells, or the same ones in another order."""
    if not table.num_columns:
        return b""
    return hashlib.blake2b(from_arrow(table).hash_rows(seed=0).to_numpy().tobytes(), digest_size=16).digest()


def _attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a result, or the refusal: Spark would try a task that fails again, and tell of it at length."""
    try:
        return function(*arguments)
    except ShoalError as error:
        return error


class Task(ABC):
    """A function of all batches of a partition."""

    modules = 0  # that a worker had imported when it last said that they stay

    def __call__(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition; spare the collection of garbage after every task the libraries, which takes longer."""
        yield from self.rows(batches)
        if len(sys.modules) > Task.modules:
            Task.modules = len(sys.modules)
            gc.freeze()

    @abstractmethod
    def rows(self, batches: Iterable[Any]) -> Rows:
        """Give the rows of a partition."""


@dataclass(frozen=True)
class Keep(Task):
    """Make arrays of a part: a row of what is known, of its type and of the part, then the records."""

    shared: Any  # function, first records, arguments
    columns: Columns

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        function, firsts, arguments = self.shared.value
        part, table = part_number(), self.columns.table(batches)
        found = _attempt(function, open_table(table), firsts[part] if part < len(firsts) else 0, *arguments)
        arrays, known = ({}, found) if isinstance(found, ShoalError) else found
        records = pack(arrays) if arrays else np.empty(0, dtype=[("X", np.float64)])
        seen = Part(table.num_rows, _digest(table))
        yield row_of(pickle.dumps((part, known, seen, records.dtype)))
        # Records of no numbers are as good as none: dates that were only looked at.
        if records.dtype.itemsize:
            yield from rows_of(records, np.zeros(len(records), dtype=np.int64), 1, part)


def _kept(batches: Iterable[Any], expected: Sequence[Part]) -> tuple[int, dict[str, Any]]:
    """Return the arrays of a part; refuse one that is no longer the same after Spark has lost and computed it again."""
    known, content, _ = cells_of(batches)
    part, _, seen, kind = pickle.loads(known[KNOWN])  # noqa: S301  (our own)
    del known
    if expected[part] != seen:
        raise InputError(CHANGED.format(part=part))
    return part, unpack(content.view(kind))


@dataclass(frozen=True)
class Look(Task):
    """Run a function on the arrays of a part."""

    shared: Any  # function, own, arguments, parts

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        function, own, arguments, parts = self.shared.value
        part, arrays = _kept(batches, parts)
        result = _attempt(function, part, arrays, own[part], *arguments)
        yield row_of(pickle.dumps(result), source=-1 - part, target=part // FAN)


@dataclass(frozen=True)
class Merge(Task):
    """Combine results, in the order of the parts that they are of."""

    combine: Any

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        found, _, _ = cells_of(batches)
        if found:
            place = part_number()
            result = self.merged([pickle.loads(found[source]) for source in sorted(found, reverse=True)])  # noqa: S301
            yield row_of(pickle.dumps(result), source=-1 - place, target=place // FAN)

    def merged(self, results: Sequence[Any]) -> Any:
        """Combine some results; a refusal among them is the result."""
        total, *others = results
        for other in others:
            if isinstance(total, ShoalError):
                break
            total = other if isinstance(other, ShoalError) else self.combine(total, other)
        return total


@dataclass(frozen=True)
class Deal(Task):
    """Send the records of a part to their targets."""

    shared: Any  # a regrouping, parts

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        how, parts = self.shared.value
        part, arrays = _kept(batches, parts)
        columns = deal_part(part, arrays, how.own[part], how)
        if KEPT in arrays:  # a record is known by its row in the given table, also if others are left out
            columns[ROW] = arrays[KEPT]
        target = columns.pop(TARGET).astype(np.int64)
        yield from rows_of(pack(columns), target, how.targets, part)


@dataclass(frozen=True)
class Gather(Task):
    """Work on the records of a target: a row of what is known, then the answers."""

    shared: Any  # a regrouping, parts

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        how, parts = self.shared.value
        target = part_number()
        _, content, keys = cells_of(batches)
        if keys - set(key_of(target).tolist()):
            raise RuntimeError(f"Spark has brought records of other targets to partition {target}.")
        records = content.view(np.dtype([(PART, "int32"), (ROW, "int64"), *column_types(how.sent).items()]))
        found = _attempt(gather_target, {name: records[name] for name in records.dtype.names or ()}, how)
        answers, known = ({}, found) if isinstance(found, ShoalError) else found
        yield row_of(pickle.dumps((target, known)))
        if answers and how.answered:
            part = answers.pop(PART).astype(np.int64)
            if GROUP in how.answered:
                answers[f"{TARGET}_0"] = np.full(len(part), target, dtype=np.int32)
            yield from rows_of(pack(answers), part, len(parts), None)


def shapes_of_answers(how: Regrouping) -> Shapes:
    """Return the shapes of what comes back: with groups, also the target that has numbered them."""
    return {**how.answered, **({TARGET: ("int32", 1)} if GROUP in how.answered else {})}


@dataclass(frozen=True)
class Label(Task):
    """Send the untouched columns of a part to where its answers come, if it still is the same."""

    shared: Any  # parts
    columns: Columns  # all that are read, those of the digest first
    digested: int
    sent: Sequence[int]  # the places of those that are sent

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        import pyarrow as pa

        part, table = part_number(), self.columns.table(batches)
        parts = self.shared.value
        seen = Part(table.num_rows, _digest(table.select(range(self.digested))))
        if part >= len(parts) or parts[part] != seen:
            raise InputError(CHANGED.format(part=part))
        if not self.sent:
            return
        sent = table.select(list(self.sent)).rename_columns([f"c{i}" for i in range(len(self.sent))])
        key = pa.array(np.full(len(sent), key_of(part)[0], dtype=np.int32))
        first = 0
        for batch in sent.to_batches(max_chunksize=BATCH):
            rows = pa.array(np.arange(first, first + len(batch)))
            empty = pa.nulls(len(batch), pa.binary())
            yield pa.RecordBatch.from_arrays(
                [key[: len(batch)], rows, empty, *batch.columns], ["key", "row", "data", *sent.column_names]
            )
            first += len(batch)


@dataclass(frozen=True)
class Release(Task):
    """Make the released table of a part, of its untouched columns and of its answers."""

    shared: Any  # function, arguments, parts, the shapes of answers
    read: Columns
    layout: Layout
    schema: Any  # of the released table, in Arrow; None to find it out

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        import pyarrow as pa

        held, pieces = [], []
        for batch in batches:
            given = batch.column("data").is_null()
            answered = batch.column("data").drop_null()
            if len(answered) < len(batch):
                held.append(batch.filter(given).drop_columns(["key", "data"]))
            pieces += answered.to_pylist()
        table = self.read.empty
        if held:
            found = pa.Table.from_batches(held).sort_by("row")
            table = found.drop_columns(["row"]).rename_columns(table.column_names)
        yield from self.released(table, b"".join(pieces), part_number()).to_batches(max_chunksize=BATCH)

    def released(self, table: Any, content: bytes, part: int) -> Any:
        """Return the released table of a part."""
        import pyarrow as pa

        function, arguments, parts, answered = self.shared.value
        rows, answers = answers_of(content, answered)
        if not table.num_columns:  # then only the answers say how many records there are
            table = pa.table({ROW: rows}).select([])
        elif part < len(parts) and len(rows) < parts[part].rows:
            answers[KEPT] = rows
        found = function(open_table(table), answers, *arguments).only(self.layout.names).native
        return found if self.schema is None else found.cast(self.schema)


def answers_of(content: bytes, answered: Shapes) -> tuple[Ints, dict[str, Any]]:
    """Return the rows of a part that have an answer, in their order, and the answers."""
    records = np.frombuffer(content, dtype=np.dtype([(ROW, "int64"), *column_types(answered).items()]))
    columns = {name: records[name] for name in records.dtype.names or ()}
    return np.sort(columns[ROW]), collect_part(columns, answered)


@dataclass(frozen=True)
class Groups(Task):
    """Tell the group of each released record of a part; groups count from target to target."""

    shared: Any  # first records, groups before each target, the shapes of answers

    def rows(self, batches: Iterable[Any]) -> Rows:
        """Work on a partition."""
        import pyarrow as pa

        firsts, before, answered = self.shared.value
        _, content, _ = cells_of(batches)
        rows, answers = answers_of(content.tobytes(), answered)
        group = before[answers[TARGET][:, 0]] + answers["group"][:, 0]
        columns = {"record": firsts[part_number()] + rows + 1, "group": group, "size": answers["size"][:, 0]}
        yield from pa.table(columns).to_batches(max_chunksize=BATCH)
