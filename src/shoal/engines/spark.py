"""The Spark platform, which masks a Spark DataFrame, or files that the executors read and write.

Each partition is a part. Python processes whole partitions, exchanged as Arrow (`shoal.engines.spark_tasks`). Spark
keeps the arrays on the executors' disks, shuffles records to targets and back, and recomputes the data of a lost
executor. The driver receives counts, merged in a tree, and the sample for the choice of blocks.

Cost: four passes over the input, to count, read, check and send the records, and a few passes over its numbers. One
shuffle sends the masked columns, one returns them together with the unchanged columns, and one serves the recount.
"""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.engines.cluster import ClusterRecords, Step, UntouchedColumns, merge, sent_types
from shoal.engines.records import Regrouping, Schema
from shoal.engines.spark_sessions import (
    Output,
    address,
    executor_python,
    open_session,
    spark_refusals,
)
from shoal.engines.spark_tasks import (
    FAN,
    PACKETS,
    ArrivedRecords,
    ColumnTask,
    HeldPiece,
    MergeTask,
    PartAnswers,
    PieceTask,
    SelectedColumns,
    SendTask,
    TableTask,
    Task,
)
from shoal.tables.addresses import as_place
from shoal.tables.files import CSV, is_spark
from shoal.tables.formats.arrow_files import PARQUET
from shoal.tables.formats.frames import open_table
from shoal.tables.number_text import Dialect
from shoal.tables.sources import find_paths
from shoal.tables.table import check_names

__all__ = ["SparkFrame", "SparkPlatform", "open_spark"]

CANNOT = f"{parameter('data')} cannot be computed by Spark"
JOINED = (("target", "int"), ("row", "bigint"), ("data", "binary"))  # followed by the unchanged columns


@contextmanager
def open_spark(
    data: Any, output: str | os.PathLike[str] | None, labels: str | os.PathLike[str] | None, master: str | None
) -> Iterator[ClusterRecords]:
    """Open the records of a Spark DataFrame, or of Parquet files that the executors can read."""
    for path in (output, labels):
        if path is not None and Path(path).suffix.lower() not in PARQUET:
            raise InputError(
                f"Output {path} must end in {' or '.join(PARQUET)} for {setting('engine', 'spark')}: the executors "
                f"write a folder of Parquet files. Use {setting('engine', 'local')} to write CSV."
            )
    if not is_spark(data) and output is None:
        raise InputError(f"{parameter('output')} must name a folder of Parquet files: Spark masks files to files.")
    opened = nullcontext(data.sparkSession) if is_spark(data) else open_session(master)
    with opened as session, executor_python(session):
        tag = f"shoal-{uuid.uuid4().hex}"
        session.addTag(tag)
        frame = data if is_spark(data) else _read(session, data)
        platform, table = SparkPlatform(session), SparkFrame(frame)
        try:
            if table.is_reordered:
                table.placed = platform.hold(table.placed)
            yield ClusterRecords(platform, table, {} if is_spark(data) else {"engine": "spark"})
        except BaseException:
            session.interruptTag(tag)  # stop jobs whose result nobody needs
            platform.discard()
            raise
        finally:
            session.removeTag(tag)
            platform.close()


def _read(session: Any, data: Any) -> Any:
    """Read Parquet files; a folder may be partitioned by the names of its subfolders."""
    if not isinstance(data, (str, os.PathLike)):
        raise InputError(
            f"{parameter('data')} must be a path or a Spark DataFrame for {setting('engine', 'spark')}; got another "
            "table."
        )
    place = address(data)
    paths = [place]
    if place.startswith("file://") and not Path(data).is_dir():
        paths = [address(path) for path in find_paths(data)]
    if Path(paths[0]).suffix.lower() in CSV:
        raise InputError(
            f"File {data} must be Parquet for {setting('engine', 'spark')}. Use {setting('engine', 'local')} for CSV "
            "files, or read them by Spark and mask the DataFrame."
        )
    with spark_refusals(f"File {data} cannot be read by Spark"):
        return session.read.parquet(*paths)


class SparkFrame:
    """A Spark DataFrame whose partitions are the parts."""

    dialect: Dialect | None = None
    notes: tuple[str, ...] = ()
    changed = (
        f"{parameter('data')} changes when Spark computes it again: the records of partition {{part}} have "
        "changed since they were read. Nothing was released. Persist it first (data = data.persist()), or write it "
        "and mask the files."
    )

    def __init__(self, frame: Any) -> None:
        self.frame, self.names = frame, [str(name) for name in frame.columns]
        check_names(self.names)
        with spark_refusals(f"{parameter('data')} has columns that Spark cannot transfer: cast or drop them"):
            self._empty = frame.limit(0).toArrow()
        # Rename columns by position, because names may contain dots or differ only in case.
        self.placed = frame.toDF(*(f"c{i}" for i in range(len(self.names))))

    @property
    def is_reordered(self) -> bool:
        """True if a shuffle changes the order of the records at every computation."""
        plan = getattr(self.frame, "_jdf", None)
        fixed = plan is not None and "Exchange" not in plan.queryExecution().executedPlan().toString()
        return not fixed and not self.frame.is_cached

    def schema(self) -> Schema:
        """Return the schema of the table."""
        table = open_table(self._empty)
        return Schema(tuple(table.names), tuple(table.numeric_names()), tuple(table.timed_names()))

    def lengths(self, columns: Sequence[str]) -> list[int]:
        """Return the number of records in each partition, without empty partitions at the end."""
        part = import_module("pyspark.sql.functions").spark_partition_id().alias("part")
        with spark_refusals(CANNOT):
            counts = dict(map(tuple, self.placed.select(part).groupBy("part").count().collect()))
        return [counts.get(place, 0) for place in range(max(counts, default=-1) + 1)]

    def some(self, columns: Sequence[str]) -> SparkParts:
        """Return the partitions with selected columns."""
        places = [self.names.index(name) for name in columns]
        return SparkParts(self.placed.select(*(f"c{i}" for i in places)), SelectedColumns(self._empty.select(places)))


class SparkParts(NamedTuple):
    """A Spark frame and the Python reader of its partitions."""

    frame: Any
    reader: Any
    partitions: int = 0  # number of partitions, once known
    task: Task | None = None  # the task that makes the partitions


@dataclass(frozen=True)
class Plain:
    """A value sent with every task, for sessions without broadcast variables."""

    value: Any


class SparkPlatform:
    """The Spark platform of one run."""

    name = "spark"
    parallel = 1
    room = 0

    def __init__(self, session: Any) -> None:
        self._session = session
        self._held: list[Any] = []  # tables that the executors keep for this run
        self._result: Any = None

    def hold(self, frame: Any) -> Any:
        """Keep a table on the executors' disks, so that their memory stays free for work."""
        self._held.append(frame.persist(import_module("pyspark").StorageLevel.DISK_ONLY))
        return frame

    def discard(self) -> None:
        """Free a result that is not released."""
        if self._result is not None:
            self._result.unpersist()

    def close(self) -> None:
        """Free the tables of this run; Spark recomputes lost parts of a released result."""
        for frame in self._held:
            frame.unpersist()

    def map_parts(self, step: Step, parts: SparkParts) -> SparkParts:
        """Run a function on parts and return the pieces."""
        task = PieceTask(step.function, self._share(step), parts.reader)
        return SparkParts(parts.frame.mapInArrow(task, PACKETS), HeldPiece(), parts.partitions, task)

    def facts(self, pieces: SparkParts, replaced: SparkParts | None = None) -> tuple[SparkParts, list[Any]]:
        """Compute pieces, which replace others on the executors' disks; return the pieces and the results of each."""
        if replaced is not None:
            replaced.frame.unpersist()
        frame = self.hold(pieces.frame)
        facts = self._facts(frame)
        if not facts and pieces.task is not None:  # a table without partitions is empty
            facts = [pieces.task.run(0, pieces.task.reader.read([])).facts]
        return pieces._replace(frame=frame, partitions=len(facts)), facts

    def _facts(self, frame: Any) -> list[Any]:
        with spark_refusals(CANNOT):
            rows = frame.where("facts").select("data").collect()
        return [value for _, value, _ in sorted((pickle.loads(row[0]) for row in rows), key=itemgetter(0))]  # noqa: S301

    def merged(self, pieces: SparkParts, combine: Callable[[Any, Any], Any]) -> Any:
        """Return the merged result of all pieces; the executors merge results until few are left."""
        task, frame, count = MergeTask(combine), pieces.frame, pieces.partitions
        while count > FAN:
            count = -(-count // FAN)
            frame = frame.repartitionById(count, "target").mapInArrow(task, PACKETS)
        return merge(self._facts(frame), combine)

    def shuffle(
        self, pieces: SparkParts, assign: Step, gather: Step, regrouping: Regrouping, parts: int
    ) -> tuple[SparkParts, list[Any]]:
        """Send records to targets; the answers stay there until they are joined to their parts."""
        send = SendTask(assign.function, self._share(assign), pieces.reader)
        moved = pieces.frame.mapInArrow(send, PACKETS).repartitionById(regrouping.targets, "target")
        task = PieceTask(gather.function, self._share(gather), ArrivedRecords(sent_types(regrouping)))
        frame = self.hold(moved.mapInArrow(task, PACKETS))
        facts = self._facts(frame)
        return SparkParts(frame.where("not facts"), PartAnswers(regrouping), parts), facts

    def join(self, answers: SparkParts, make: Step, columns: UntouchedColumns | None = None) -> Any:
        """Bring the answers to their parts, together with the unchanged columns."""
        frame, task = answers.frame, TableTask(make.function, self._share(make), answers.reader)
        types: Mapping[str, Any] = {}
        if columns is not None:
            table, check = columns.table, columns.check
            parts, stay = table.some(columns.read), table.some(columns.stay)
            fields = [(f"c{place}", field.dataType) for place, field in enumerate(stay.frame.schema.fields)]
            send = ColumnTask(check.function, self._share(check), parts.reader)
            sent = parts.frame.mapInArrow(send, _struct([*JOINED, *fields]))
            frame = sent.unionByName(frame, allowMissingColumns=True)
            task = replace(task, empty=stay.reader.empty)
            types = {field.name: field.dataType for field in table.frame.schema.fields}
        moved = frame.repartitionById(answers.partitions, "target")
        return moved.mapInArrow(*self._with_schema(task, types, answers.partitions))

    def _with_schema(self, task: TableTask, types: Mapping[str, Any], parts: int) -> tuple[TableTask, Any]:
        """Find a table's schema by a run on zero records; columns of unchanged Arrow type keep their Spark type."""
        empty = task.of_nothing(parts)
        before = {} if task.empty is None else {field.name: field.type for field in task.empty.schema}
        schema = _struct(
            [
                (field.name, types[field.name] if before.get(field.name) == result.type else field.dataType)
                for field, result in zip(self._session.createDataFrame(empty).schema, empty.schema, strict=True)
            ]
        )
        arrow = self._session.createDataFrame([], schema).limit(0).toArrow().schema
        return replace(task, schema=arrow), schema

    def publish(self, tables: Any, schema: Schema) -> tuple[Any, SparkFrame]:
        """Keep tables in Spark; return them as a Spark DataFrame and as a table to read again."""
        self._result = tables.persist(import_module("pyspark").StorageLevel.MEMORY_AND_DISK)
        return tables, SparkFrame(tables)

    def write(self, tables: Any, path: Path, plain: Sequence[str], *, private: bool = False) -> str:
        """Write tables on the executors, next to their target; return their location."""
        output = Output(self._session, address(path), private=private)
        with output.written() as temporary, spark_refusals(f"Output {as_place(path)} cannot be written"):
            tables.write.parquet(temporary)
        return temporary

    def written(self, place: str) -> SparkFrame:
        """Open written tables to read them again."""
        return SparkFrame(self._session.read.parquet(place))

    def summary(self, parts: int) -> Mapping[str, object]:
        """Return the number of partitions."""
        return {"engine": f"spark, {parts} partitions"}

    def _share(self, step: Step) -> Any:
        """Send arguments to every executor once."""
        value = step.each, step.shared
        try:
            return self._session.sparkContext.broadcast(value)
        except import_module("pyspark.errors").PySparkException:  # Spark Connect
            return Plain(value)


def _struct(fields: Sequence[tuple[str, Any]]) -> Any:
    """Return a Spark schema without metadata, which may reveal values."""
    types = import_module("pyspark.sql.types")
    plain = {"int": types.IntegerType(), "bigint": types.LongType(), "binary": types.BinaryType()}
    columns = [types.StructField(name, plain[kind] if isinstance(kind, str) else kind) for name, kind in fields]
    return types.StructType.fromJson(_without_metadata(types.StructType(columns).jsonValue()))


def _without_metadata(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: {} if name == "metadata" else _without_metadata(inner) for name, inner in value.items()}
    return [_without_metadata(inner) for inner in value] if isinstance(value, list) else value
