"""The engine of Spark: a Spark DataFrame in, one out, or files that the executors read and write.

Partitions are the parts. Python works on whole partitions that come and go as Arrow (`shoal.engines.spark_tasks`);
Spark keeps the arrays on the disks of the executors, moves records to targets and back by its shuffle, and computes
anew what a lost executor held. The driver sees counts, merged in a tree, and the sample by which blocks are chosen.

Cost: four passes over the given table (counted, read, checked and sent, and a few looks at its numbers), one shuffle of
the masked columns there and one back, together with the columns that stay as they are, and one of the recount.
"""

from __future__ import annotations

import operator
import os
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.errors import InputError, ShoalError
from shoal.core.messages import parameter, setting
from shoal.core.progress import Title
from shoal.core.types import Ints
from shoal.engines.packing import KNOWN, ROWS
from shoal.engines.records import Arrays, Layout, Regrouping, Released, Schema, Shapes
from shoal.engines.spark_sessions import Output, address, open_session, running_python, telling
from shoal.engines.spark_tasks import (
    FAN,
    Columns,
    Deal,
    Gather,
    Groups,
    Keep,
    Label,
    Look,
    Merge,
    Part,
    Release,
    shapes_of_answers,
)
from shoal.tables.choosing import is_spark
from shoal.tables.columns import Name
from shoal.tables.csv_cells import Dialect
from shoal.tables.files import CSV, PARQUET
from shoal.tables.frames import open_table
from shoal.tables.sources import find_paths
from shoal.tables.table import Table, check_unique

__all__ = ["SparkRecords", "open_spark"]

RECORDS = 250_000  # of a target
CANNOT = f"{parameter('data')} cannot be computed by Spark"


@contextmanager
def open_spark(
    data: Any, output: str | os.PathLike[str] | None, labels: str | os.PathLike[str] | None, master: str | None
) -> Iterator[SparkRecords]:
    """Give the records of a Spark DataFrame, or of Parquet files that the executors can read."""
    for path in (output, labels):
        if path is not None and Path(path).suffix.lower() not in PARQUET:
            raise InputError(
                f"Output {path} must end in {' or '.join(PARQUET)} for {setting('engine', 'spark')}: the executors "
                f"write a folder of Parquet files. Use {setting('engine', 'local')} to write CSV."
            )
    if not is_spark(data) and output is None:
        raise InputError(f"{parameter('output')} must name a folder of Parquet files: Spark masks from files to files.")
    opened = nullcontext(data.sparkSession) if is_spark(data) else open_session(master)
    with opened as session, running_python(session):
        tag = f"shoal-{uuid.uuid4().hex}"
        session.addTag(tag)
        frame = data if is_spark(data) else _read(session, data)
        records = SparkRecords(session, frame, output, parameters={} if is_spark(data) else {"engine": "spark"})
        try:
            records.settle()
            yield records
        except BaseException:
            session.interruptTag(tag)  # what runs for a result that nobody waits for
            records.discard()
            raise
        finally:
            session.removeTag(tag)
            records.close()


def _read(session: Any, data: Any) -> Any:
    """Read Parquet files; a folder may be in partitions by the names of its folders."""
    if not isinstance(data, (str, os.PathLike)):
        raise InputError(
            f"{parameter('data')} must be a path or a Spark DataFrame for {setting('engine', 'spark')}; got another "
            "table."
        )
    named = address(data)
    paths = [named]
    if named.startswith("file://") and not Path(data).is_dir():
        paths = [address(path) for path in find_paths(data)]
    if Path(paths[0]).suffix.lower() in CSV:
        raise InputError(
            f"File {data} must be Parquet for {setting('engine', 'spark')}. Use {setting('engine', 'local')} for CSV "
            "files, or read them by Spark and mask the DataFrame."
        )
    with telling(f"File {data} cannot be read by Spark"):
        return session.read.parquet(*paths)


@dataclass(frozen=True)
class _Plain:
    """A value that goes with every task, where Spark has no broadcast."""

    value: Any


class SparkRecords:
    """A Spark DataFrame; its partitions and the order of its records stay as they are."""

    name = "spark"
    whole = False
    threads = 1
    parallel = 1
    dialect: Dialect | None = None

    def __init__(
        self,
        session: Any,
        frame: Any,
        output: str | os.PathLike[str] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._session, self._frame, self._output = session, frame, output
        self.parameters: Mapping[str, Any] = parameters or {}
        self._names = [str(name) for name in frame.columns]
        check_unique(self._names)
        with telling(f"{parameter('data')} has columns that Spark cannot hand over: cast or drop them"):
            self._empty = frame.limit(0).toArrow()
        # By their places: names may hold dots, or differ by their case only.
        self._placed = frame.toDF(*(f"c{i}" for i in range(len(self._names))))
        self._held: list[Any] = []  # what the executors keep for this run
        self._parts: list[Part] = []
        self._firsts: list[int] | None = None
        self._digested: list[str] = []
        self._kept: Any = None
        self._answers: Any = None
        self._result: Any = None
        self._answered: Shapes = {}

    def settle(self) -> None:
        """Keep a table whose records come from a shuffle: in another order whenever it is computed again."""
        plan = getattr(self._frame, "_jdf", None)
        fixed = plan is not None and "Exchange" not in plan.queryExecution().executedPlan().toString()
        if not fixed and not self._frame.is_cached:
            self._placed = self._persisted(self._placed)

    def discard(self) -> None:
        """Let the executors forget a result that is not released."""
        if self._result is not None:
            self._result.unpersist()

    def close(self) -> None:
        """Let the executors forget what they kept; of a result that is lost they compute it again."""
        for frame in self._held:
            frame.unpersist()

    def _persisted(self, frame: Any) -> Any:
        """Keep a table on the disks of the executors: their memory is for work."""
        self._held.append(frame.persist(import_module("pyspark").StorageLevel.DISK_ONLY))
        return frame

    def _share(self, value: Any) -> Any:
        """Send a value to every executor once."""
        try:
            return self._session.sparkContext.broadcast(value)
        except import_module("pyspark.errors").PySparkException:  # Spark Connect
            return _Plain(value)

    def _select(self, names: Sequence[Name]) -> tuple[Any, Columns]:
        places = [self._names.index(str(name)) for name in names]
        return self._placed.select(*(f"c{i}" for i in places)), Columns(self._empty.select(places))

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""
        return self._names

    @property
    def schema(self) -> Schema:
        """The columns."""
        table = open_table(self._empty)
        return Schema(tuple(table.names), tuple(table.numeric_names()), tuple(table.timed_names()))

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the records of a target."""
        return RECORDS

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Do nothing: workers load kernels as they need them."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Make arrays of every partition, kept on the disks of the executors."""
        if self._firsts is None:
            self._firsts = self._count()
        if self._kept is not None:
            self._kept.unpersist()
        frame, read = self._select(columns)
        shared = self._share((function, self._firsts, arguments))
        self._kept = self._persisted(frame.mapInArrow(Keep(shared, read), ROWS))
        found = sorted(self._known(self._kept), key=operator.itemgetter(0))
        if not found:  # a table without partitions has no records either
            _, known = function(open_table(read.empty), 0, *arguments)
            found = [(0, known, Part(0, b""), None)]
        self._parts = [seen for _, _, seen, _ in found]
        self._digested = [str(name) for name in columns]
        return _checked([known for _, known, _, _ in found])

    def _count(self) -> list[int]:
        """Return how many records there are before each partition."""
        functions = import_module("pyspark.sql.functions")
        part = functions.spark_partition_id().alias("part")
        with telling(CANNOT):
            counts = dict(map(tuple, self._placed.select(part).groupBy("part").count().collect()))
        rows = [counts.get(place, 0) for place in range(max(counts, default=-1) + 1)]
        return [0, *np.cumsum(rows, dtype=np.int64).tolist()]

    def _known(self, frame: Any) -> list[Any]:
        """Return what tasks say that they know, and nothing of their records."""
        with telling(CANNOT):
            rows = frame.where(f"source = {KNOWN}").select("data").collect()
        return [pickle.loads(row[0]) for row in rows]  # noqa: S301  (our own)

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Look at all partitions; results are merged where they are until few are left."""
        shared = self._share((function, list(own), arguments, self._parts))
        merge, results, left = Merge(combine), self._kept.mapInArrow(Look(shared), ROWS), len(self._parts)
        while left > FAN:
            left = -(-left // FAN)
            results = results.repartition(left, "key").mapInArrow(merge, ROWS)
        with telling(CANNOT):
            rows = results.select("source", "data").collect()
        found = [pickle.loads(data) for _, data in sorted(map(tuple, rows), reverse=True)]  # noqa: S301  (our own)
        return _checked([merge.merged(found)])[0]

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function here."""
        return function(*arguments)

    def regroup(self, how: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Shuffle the records to their targets; the answers stay there until they are released."""
        shared = self._share((how, self._parts))
        dealt = self._kept.mapInArrow(Deal(shared), ROWS).repartition(how.targets, "key")
        self._answers = self._persisted(dealt.mapInArrow(Gather(shared), ROWS))
        self._answered = shapes_of_answers(how)
        known = sorted(self._known(self._answers), key=operator.itemgetter(0))
        return _checked([found for _, found in known])

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Bring the columns that stay together with the answers; the result stays with Spark, or is written by it."""
        shared = self._share((function, arguments, self._parts, self._answered))
        digested = self._digested
        read = [*digested, *(name for name in layout.read if name not in digested)]
        frame, columns = self._select(read)
        sent = [read.index(str(name)) for name in layout.read]
        given = Columns(columns.empty.select(sent))
        task = self._with_schema(Release(shared, given, layout, None))
        types = [frame.schema.fields[place].dataType for place in sent]
        labelled = frame.mapInArrow(
            Label(self._share(self._parts), columns, len(digested), sent),
            _struct(
                [("key", "int"), ("row", "bigint"), ("data", "binary"), *((f"c{i}", t) for i, t in enumerate(types))]
            ),
        )
        together = labelled.unionByName(self._answers_by("key", "data"), allowMissingColumns=True)
        made = together.repartition(len(self._parts), "key").mapInArrow(task[0], task[1])
        if output is None or self._output is None:
            made = made.persist(import_module("pyspark").StorageLevel.MEMORY_AND_DISK)
            self._result = made
            return Released(made, self._again(made))
        return Released(output, self._again(self._session.read.parquet(self._written(made, self._output))))

    def _written(self, frame: Any, path: str | os.PathLike[str], *, private: bool = False) -> str:
        """Let the executors write a table beside its target; return where."""
        output = Output(self._session, address(path), private=private)
        with output.written() as temporary, telling(f"Output {path} cannot be written"):
            frame.write.parquet(temporary)
        return temporary

    def _again(self, frame: Any) -> SparkRecords:
        """Return the records of what was released; what is kept of them goes with the others."""
        records = SparkRecords(self._session, frame)
        records._held = self._held
        records._firsts = []
        return records

    def _answers_by(self, *names: str) -> Any:
        return self._answers.where(f"source <> {KNOWN}").select(*names)

    def _with_schema(self, task: Release) -> tuple[Release, Any]:
        """Find out the columns of the release on no records; those of the types that they had keep Spark's."""
        made = task.released(task.read.empty, b"", len(self._parts))
        found = self._session.createDataFrame(made).schema
        before = {field.name: field.dataType for field in self._frame.schema.fields}
        same = [n in task.read.empty.schema.names and task.read.empty.schema.field(n).type == made.schema.field(n).type
                for n in made.schema.names]  # fmt: skip
        schema = _struct(
            [(f.name, before[f.name] if kept else f.dataType) for f, kept in zip(found, same, strict=True)]
        )
        arrow = self._session.createDataFrame([], schema).limit(0).toArrow().schema
        return Release(task.shared, task.read, task.layout, arrow), schema

    def labels(self) -> None:
        """Return nothing: labels stay with Spark."""

    def kept(self) -> Ints:
        """Return nothing: what is kept is known to the partitions."""
        return np.empty(0, dtype=np.int64)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Let the executors write the labels, in the order of the input."""
        shared = self._share((self._firsts, groups, self._answered))
        rows = self._answers_by("key", "source", "data").repartition(len(self._parts), "key")
        labels = rows.mapInArrow(Groups(shared), "record bigint, group bigint, size bigint")
        self._written(labels, path, private=True)

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the number of partitions."""
        return {**blocks, "engine": f"spark, {len(self._parts)} partitions"}


def _checked(found: list[Any]) -> list[Any]:
    """Raise the first refusal, of the first records that were refused, whichever task was the first to end."""
    for known in found:
        if isinstance(known, ShoalError):
            raise known
    return found


def _struct(fields: Sequence[tuple[str, Any]]) -> Any:
    """Return a schema of Spark without what the fields of another may tell of their values."""
    types = import_module("pyspark.sql.types")
    plain = {"int": types.IntegerType(), "bigint": types.LongType(), "binary": types.BinaryType()}
    made = [types.StructField(name, plain[kind] if isinstance(kind, str) else kind) for name, kind in fields]
    return types.StructType.fromJson(_without_metadata(types.StructType(made).jsonValue()))


def _without_metadata(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: {} if name == "metadata" else _without_metadata(inner) for name, inner in value.items()}
    return [_without_metadata(inner) for inner in value] if isinstance(value, list) else value
