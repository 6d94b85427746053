"""Records on a cluster: the code that the Dask and Spark platforms share.

A platform offers two operations. `Platform.map_parts` runs a function on every part, on the worker that holds the part.
`Platform.shuffle` sends records to targets, runs a function on every target, and sends the answers back. This module
provides everything else: the functions, the order of the records, and the refusal of a part that has changed.

A cluster moves tables with one row per record, in any order. Every row therefore carries its part and row number. Rows
are sorted on arrival, so the result equals that of any other engine. If a cluster computes a part again and the digest
of the part differs, nothing is released.

Cost: one sort per target and one per part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.core.errors import InputError
from shoal.core.progress import Title, fresh_state
from shoal.core.types import Ints
from shoal.engines.records import KEPT, Arrays, Layout, Records, Regrouping, Released, Schema, Shapes
from shoal.tables.addresses import as_place
from shoal.tables.columns import Name
from shoal.tables.formats.frames import open_table
from shoal.tables.number_text import Dialect
from shoal.tables.sources import FilePart, open_part
from shoal.tables.table import Table

__all__ = [
    "RECORDS",
    "TARGET",
    "ClusterRecords",
    "ClusterTable",
    "Piece",
    "Platform",
    "SharedArguments",
    "Step",
    "UntouchedColumns",
    "answered_types",
    "collect_part",
    "merge",
    "sent_types",
]

RECORDS = 250_000  # records per target, and per part of a file
COPIES = 3  # copies of a target that must fit in a worker's memory
GROUP = "group"  # the answer with the group numbers of a target
TARGET, PART, ROW = "target", "part", "row"  # the destination and the origin of a record


class SharedArguments:
    """Arguments that many tasks share and that are sent to the cluster once."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments


class Step(NamedTuple):
    """A function to run on every part, called as ``function(number, *contents, each[number], shared)``."""

    function: Callable[..., Any]
    shared: SharedArguments
    each: Sequence[Any] = ()


class Piece(NamedTuple):
    """The outcome of a function on a part: arrays that stay on the cluster, and results for the caller."""

    arrays: Arrays
    facts: Any = None


class PartState(NamedTuple):
    """A fingerprint of a part, used to detect changes when the part is computed again."""

    rows: int
    records: int  # number of released records
    digest: bytes  # digest of the arrays made of the part


class UntouchedColumns(NamedTuple):
    """Columns to release unchanged. Their parts are checked again before the release."""

    table: Any  # the platform's table
    read: Sequence[str]
    stay: Sequence[str]
    check: Step


class ClusterTable(Protocol):
    """A table whose parts are on a cluster."""

    dialect: Dialect | None  # for text tables
    changed: str  # the error message if a recomputed part has changed

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the release."""

    def schema(self) -> Schema:
        """Return the schema of the table."""

    def lengths(self, columns: Sequence[str]) -> list[int]:
        """Return the number of records in each part."""

    def some(self, columns: Sequence[str]) -> Any:
        """Return the parts with selected columns, as input for the platform's functions."""


class Platform(Protocol):
    """A cluster that runs functions on parts and brings records together."""

    name: str
    parallel: int  # targets processed at the same time
    room: int  # bytes of memory per target; 0 if unknown

    def map_parts(self, step: Step, parts: Any) -> Any:
        """Run a function on parts and return the pieces."""

    def facts(self, pieces: Any, replaced: Any = None) -> tuple[Any, list[Any]]:
        """Compute pieces, which replace others on the cluster; return the pieces and the results of each."""

    def merged(self, pieces: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """Merge the results of all pieces in a tree on the cluster, and return the merged result."""

    def shuffle(
        self, pieces: Any, assign: Step, gather: Step, regrouping: Regrouping, parts: int
    ) -> tuple[Any, list[Any]]:
        """Send records to targets and answers back to the parts; return the answers and the results of each target."""

    def join(self, answers: Any, make: Step, columns: UntouchedColumns | None = None) -> Any:
        """Return one table per part, made of the part's answers and unchanged columns."""

    def publish(self, tables: Any, schema: Schema) -> tuple[Any, ClusterTable]:
        """Keep tables on the cluster; return them as the user's type and as a table to read again."""

    def write(self, tables: Any, path: Path, plain: Sequence[str], *, private: bool = False) -> Any:
        """Write tables on the workers and return their location. Values of `plain` columns rarely repeat."""

    def written(self, place: Any) -> ClusterTable:
        """Open written tables to read them again."""

    def summary(self, parts: int) -> Mapping[str, object]:
        """Return the platform's entries for the summary."""


class ClusterRecords(Records):
    """The records of a table on a cluster. The parts and the order of the records do not change."""

    whole = False
    threads = 1

    def __init__(
        self,
        platform: Platform,
        table: ClusterTable,
        parameters: Mapping[str, Any] | None = None,
        firsts: Sequence[int] | None = None,  # the number of the first record in each part, if known
    ) -> None:
        self.name, self.parallel, self.dialect = platform.name, platform.parallel, table.dialect
        self.parameters: Mapping[str, Any] = parameters or {}
        self._platform, self._table = platform, table
        self._firsts = firsts
        self._reading: Reading | None = None
        self._states: list[PartState] = []
        self._arrays: Any = None
        self._answers: Any = None

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""
        return self._table.names

    @cached_property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self._table.schema()

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the number of records per target, so that a few copies fit in the memory of a worker thread."""
        room = self._platform.room
        return max(1, min(RECORDS, room // (COPIES * 8 * numbers))) if room else RECORDS

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Do nothing, because workers load kernels on demand."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Compute the arrays of every part and keep them on the cluster."""
        names = [str(name) for name in columns]
        if self._firsts is None:
            self._firsts = np.cumsum([0, *self._table.lengths(names)]).tolist()
        self._reading = Reading(function, arguments, names, self.dialect, self._table.changed)
        pieces = self._platform.map_parts(
            Step(read_part, SharedArguments(self._reading), self._firsts), self._table.some(names)
        )
        self._arrays, facts = self._platform.facts(pieces, self._arrays)
        results = _unrefused([result for result, _ in facts])
        self._states = [state for _, state in facts]
        self._firsts = np.cumsum([0, *(state.rows for state in self._states)]).tolist()
        return results

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Run a function on all parts and merge the results on the cluster."""
        shared = SharedArguments(function, arguments, self._table.changed)
        looked = self._platform.map_parts(Step(look, shared, self._with_states(own)), self._arrays)
        return _unrefused([self._platform.merged(looked, combine)])[0]

    def regroup(self, regrouping: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Shuffle the records to their targets, and the answers back to the parts."""
        if GROUP in regrouping.answered:  # groups are numbered across targets
            regrouping = replace(regrouping, answered={**regrouping.answered, TARGET: ("int32", 1)})
        assign = Step(
            assign_records,
            SharedArguments(replace(regrouping, own=()), self._table.changed),
            self._with_states(regrouping.own),
        )
        gather = Step(gather_records, SharedArguments(replace(regrouping, own=())))
        self._answers, facts = self._platform.shuffle(self._arrays, assign, gather, regrouping, len(self._states))
        self._arrays = None  # allow the platform to free the arrays
        return _unrefused(facts)

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Combine the released values with the parts; keep the result on the cluster or write it there."""
        stay, numbers = ([str(name) for name in names] for names in (layout.read, layout.numbers))
        read = list(dict.fromkeys([*self._reading.columns, *stay])) if self._reading else stay
        check = Step(check_part, SharedArguments(self._reading, stay), self._with_states(self._firsts or []))
        make = Step(release_part, SharedArguments(function, arguments, layout, self.dialect), self._states)
        tables = self._platform.join(self._answers, make, UntouchedColumns(self._table, read, stay, check))
        if output is None:
            native, released = self._platform.publish(tables, self.schema)
        else:
            native, released = as_place(output), self._platform.written(self._platform.write(tables, output, numbers))
        firsts = np.cumsum([0, *(state.records for state in self._states)]).tolist()
        return Released(native, ClusterRecords(self._platform, released, firsts=firsts), self._table.notes)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Write the labels on the workers, in input order."""
        step = Step(label_part, SharedArguments(groups), self._with_states(self._firsts or []))
        self._platform.write(self._platform.join(self._answers, step), path, [], private=True)

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the summary entries for the blocks and the cluster."""
        return {**blocks, **self._platform.summary(len(self._states))}

    def _with_states(self, each: Sequence[Any]) -> list[tuple[PartState, Any]]:
        return list(zip(self._states, each, strict=False))


def _unrefused(results: list[Any]) -> list[Any]:
    """Raise the first refusal in record order, regardless of which task ended first."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def merge(results: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Combine results in order; return the first refusal if there is one."""
    total, *rest = results
    for result in rest:
        if isinstance(total, Exception):
            break
        total = result if isinstance(result, Exception) else combine(total, result)
    return total


# Functions for workers


@dataclass(frozen=True)
class Reading:
    """A function that computes the arrays of a part, and its arguments."""

    function: Callable[..., tuple[Arrays, Any]]
    arguments: Sequence[Any]
    columns: Sequence[str]
    dialect: Dialect | None
    changed: str

    def apply(self, native: Any, first: int) -> tuple[Arrays, Any]:
        """Return the arrays and the result that the function computes from a part."""
        return self.function(_open(native, self.columns, self.dialect), first, *self.arguments)


def read_part(number: int, part: Any, first: int | None, shared: SharedArguments) -> Piece:
    """Compute the arrays of a part."""
    (reading,) = shared.arguments
    try:
        native = _read(part, reading.columns)
        arrays, result = reading.apply(native, first or 0)
    except Exception as error:  # noqa: BLE001 - the caller raises the first refusal of all parts
        return Piece({}, (error, None))
    rows = len(native)
    records = next((len(array) for name, array in arrays.items() if name != KEPT), rows)
    return Piece(dict(arrays), (result, PartState(rows, records, _digest(arrays))))


def look(number: int, piece: Piece, each: tuple[PartState, Any], shared: SharedArguments) -> Piece:
    """Run a function on the arrays of a part."""
    function, arguments, changed = shared.arguments
    state, argument = each
    return Piece({}, function(number, _unchanged(number, piece, state, changed), argument, *arguments))


def assign_records(number: int, piece: Piece, each: tuple[PartState, Any], shared: SharedArguments) -> Piece:
    """Return the records of a part for the shuffle, each with its target and its row in the input."""
    regrouping, changed = shared.arguments
    state, argument = each
    arrays = _unchanged(number, piece, state, changed)
    target, sent = regrouping.deal(number, arrays, argument, *regrouping.dealing)
    columns = {
        TARGET: target.astype(np.int32),
        PART: np.full(len(target), number, dtype=np.int32),
        ROW: arrays[KEPT].astype(np.int64) if KEPT in arrays else np.arange(len(target), dtype=np.int64),
    }
    return Piece({**columns, **as_columns(sent, regrouping.sent)})


def gather_records(number: int, columns: Arrays, each: None, shared: SharedArguments) -> Piece:
    """Process the records of a target, in input order, and return answers for their parts."""
    (regrouping,) = shared.arguments
    order = np.lexsort((columns[ROW], columns[PART]))
    answers, result = regrouping.gather(
        as_arrays(columns, regrouping.sent, order), fresh_state(), *regrouping.gathering
    )
    if not regrouping.answered:
        return Piece({}, result)
    answers = as_columns({**answers, TARGET: np.full(len(order), number)}, regrouping.answered)
    return Piece({TARGET: columns[PART][order], ROW: columns[ROW][order], **answers}, result)


def collect_part(columns: Arrays, shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Return the answers of all targets to a part with their row numbers, in record order."""
    order = np.argsort(columns[ROW], kind="stable")
    return {ROW: columns[ROW][order], **as_arrays(columns, shapes, order)}


def check_part(number: int, part: Any, each: tuple[PartState, int], shared: SharedArguments) -> Any:
    """Return the columns that a part releases unchanged, or all columns of a frame; refuse a changed part."""
    reading, columns = shared.arguments
    state, first = each
    native = _read(part, list(dict.fromkeys([*columns, *reading.columns])))
    if _digest(reading.apply(native, first)[0]) != state.digest:
        raise InputError(reading.changed.format(part=number))
    return native if hasattr(native, "iloc") else native.select(columns)


def release_part(number: int, native: Any, answers: Arrays, state: PartState | None, shared: SharedArguments) -> Any:
    """Return a part with the released values."""
    function, arguments, layout, dialect = shared.arguments
    _check_whole(number, answers, state)
    if hasattr(native, "iloc"):
        table = open_table(native)
    elif native.num_columns:
        table = _open(native, layout.read, dialect)
    else:  # without columns, only the answers show the number of records
        import pyarrow as pa

        native = pa.table({ROW: answers[ROW]}).select([])
        table = open_table(native)
    values = {name: array for name, array in answers.items() if name != ROW}
    if len(answers[ROW]) < len(native):
        values[KEPT] = answers[ROW]
    released = function(table, values, *arguments)
    if hasattr(native, "iloc"):
        return released.native
    return released.only(layout.names).arrow_part(layout.numbers, layout.types)


def label_part(number: int, answers: Arrays, each: tuple[PartState, int] | None, shared: SharedArguments) -> Any:
    """Return the group and group size of each released record in a part. Groups are numbered across targets."""
    import pyarrow as pa

    (before,) = shared.arguments
    state, first = each or (None, 0)
    _check_whole(number, answers, state)
    target, group, size = (answers[name].reshape(-1) for name in (TARGET, GROUP, "size"))
    return pa.table({"record": first + answers[ROW] + 1, "group": group + before[target], "size": size})


def _read(part: Any, columns: Sequence[str]) -> Any:
    """Return a part that is in memory, or read selected columns of a part of a file."""
    return part.read(list(columns)) if isinstance(part, FilePart) else part


def _open(native: Any, columns: Sequence[str], dialect: Dialect | None) -> Table:
    """Open selected columns of a part as a table."""
    selected = native[list(columns)] if hasattr(native, "iloc") else native.select(list(columns))
    return open_part(selected, dialect)


def _digest(arrays: Arrays) -> bytes:
    """Return a digest of the arrays of a part."""
    digest = blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.digest()


def _unchanged(number: int, piece: Piece, state: PartState, changed: str) -> Arrays:
    """Return the arrays of a part; refuse arrays that the cluster recomputed from different records."""
    if piece.facts[1] != state:
        raise InputError(changed.format(part=number))
    return piece.arrays


def _check_whole(number: int, answers: Arrays, state: PartState | None) -> None:
    rows = answers[ROW]
    if state is not None and (len(rows) != state.records or (np.diff(rows) <= 0).any()):
        raise RuntimeError(f"The shuffle lost or duplicated records of partition {number}.")


# Records as columns


def sent_types(regrouping: Regrouping) -> dict[str, str]:
    """Return the column types of the records sent to targets, keyed by column name."""
    return {PART: "int32", ROW: "int64", **column_types(regrouping.sent)}


def answered_types(regrouping: Regrouping) -> dict[str, str]:
    """Return the column types of the answers sent to parts, keyed by column name."""
    return {ROW: "int64", **column_types(regrouping.answered)}


def column_types(shapes: Shapes) -> dict[str, str]:
    """Return the column types for arrays of these shapes, keyed by column name.

    Examples
    --------
    >>> column_types({"block": ("int32", 1), "X": ("float64", 2)})
    {'block_0': 'int32', 'X_0': 'float64', 'X_1': 'float64'}
    """
    return {f"{name}_{j}": kind for name, (kind, width) in shapes.items() for j in range(width)}


def as_columns(arrays: Arrays, shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Convert arrays to the columns of a table."""
    columns: dict[str, NDArray[Any]] = {}
    for name, (kind, width) in shapes.items():
        array = arrays[name].reshape(-1, width).astype(kind, copy=False)
        columns |= {f"{name}_{j}": np.ascontiguousarray(array[:, j]) for j in range(width)}
    return columns


def as_arrays(columns: Arrays, shapes: Shapes, order: Any = slice(None)) -> dict[str, NDArray[Any]]:
    """Convert columns back to arrays, in another order if requested."""
    return {
        name: np.column_stack([columns[f"{name}_{j}"][order] for j in range(width)]).astype(kind, copy=False)
        for name, (kind, width) in shapes.items()
    }
