"""The engine of Dask: a Dask DataFrame in, a Dask DataFrame out, on whatever cluster its client is connected to.

Partitions are the parts. Everything is a graph of delayed functions: arrays stay on the workers, counts are merged
pairwise there, and Dask runs again what a lost worker held.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.errors import InputError, ShoalError
from shoal.core.progress import Title, fresh_state
from shoal.core.types import Ints
from shoal.engines.records import KEPT, Arrays, Layout, Regrouping, Released, Schema, Shapes
from shoal.kernels.dealing import sort_by_target
from shoal.tables.choosing import is_dask
from shoal.tables.codes import Codes
from shoal.tables.columns import Name
from shoal.tables.csv_cells import Dialect
from shoal.tables.csv_files import CsvTable
from shoal.tables.files import CSV, PARQUET, folder_beside, written_beside
from shoal.tables.frames import open_table
from shoal.tables.metadata import without_metadata
from shoal.tables.native import as_polars
from shoal.tables.sources import find_paths, open_source, read_schema
from shoal.tables.table import Table, check_unique

__all__ = ["DaskRecords", "open_dask"]

RECORDS = 250_000  # of a target


def _library() -> tuple[Any, Any]:
    """Import Dask, of which only a part is typed."""
    return import_module("dask"), import_module("dask.dataframe")


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
        yield DaskRecords(data)
        return
    if not isinstance(data, (str, os.PathLike)):
        raise InputError("Parameter 'data' must be a path or a Dask DataFrame for engine='dask'; got another table.")
    if output is None or Path(output).suffix.lower() not in PARQUET:
        raise InputError(f"Output {output} must be a file that ends in {' or '.join(PARQUET)} for engine='dask'.")
    paths = [path.resolve() for path in find_paths(data)]
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise InputError("Parameter 'engine' may be 'dask' once Dask is there: pip install 'shoal[dask]'.") from None
    target = Path(output).resolve()
    with distributed.Client(scheduler) if scheduler else nullcontext(), folder_beside(target) as folder:
        dialect, numeric = None, None
        timed: list[str] | None = None
        if paths[0].suffix.lower() in CSV:
            source = open_source(paths, folder, RECORDS, wanted=wanted, codes=codes, **csv)  # type: ignore[arg-type]
            paths = list(dict.fromkeys(part.path for part in source.parts))
            dialect, numeric, timed = source.dialect, source.numeric, []
            if not paths:
                raise InputError(f"File {data} has no records. Mask a table with at least k.")
        else:
            read_schema(paths[0])
        frame = _library()[1].read_parquet([str(path) for path in paths], index=False, split_row_groups=True)
        yield DaskRecords(frame, dialect, numeric, timed, parameters={"engine": "dask"})


class DaskRecords:
    """A Dask DataFrame; the index, the partitions and the order of the records stay as they are."""

    name = "dask"
    whole = False
    threads = 1
    parallel = 1

    def __init__(
        self,
        frame: Any,
        dialect: Dialect | None = None,
        numeric: Sequence[str] | None = None,
        timed: Sequence[str] | None = None,
        parts: Sequence[Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._dask, self._library = _library()
        self.dialect = dialect
        self.parameters: Mapping[str, Any] = parameters or {}
        check_unique([str(name) for name in frame.columns])
        empty = as_polars(frame._meta)  # noqa: SLF001  (Dask's own description of the columns)
        named = [name for name, kind in empty.schema.items() if kind.is_numeric()] if numeric is None else numeric
        self._parts = list(self._computed(frame) if parts is None else parts)
        timed = self._timed_names(frame._meta) if timed is None else timed  # noqa: SLF001
        levels = self._levels(frame._meta)  # noqa: SLF001
        self._schema = Schema(tuple(map(str, frame.columns)), tuple(named), tuple(timed), levels)
        self._arrays: list[Any] = []
        self._answers: list[Any] = []
        self._alive: list[Any] = []  # what workers hold as long as it is referred to

    def _computed(self, frame: Any) -> Sequence[Any]:
        """Return the partitions, computed; what cannot be is refused in words."""
        try:
            parts: Sequence[Any] = self._dask.persist(*frame.to_delayed())
            self._dask.compute(*[self._dask.delayed(len)(part) for part in parts])
        except Exception as error:  # whatever the graph that was given does
            said = str(error).strip().splitlines() or [""]
            raise InputError(
                f"Parameter 'data' cannot be computed by Dask ({type(error).__name__}: {said[0]}). Try data.compute()."
            ) from error
        return parts

    def _timed_names(self, empty: Any) -> list[str]:
        """Return the columns of dates, times and durations; objects are looked at where they are."""
        objects = [name for name, kind in empty.dtypes.items() if str(kind) == "object"]
        seen = [self._dask.delayed(_timed)(part[objects]) for part in self._parts] if objects else []
        return list(dict.fromkeys([*_timed(empty), *(name for part in self._dask.compute(*seen) for name in part)]))

    def _levels(self, empty: Any) -> dict[str, tuple[Any, ...]]:
        """Return the values of ordered categories: of those that Dask does not know, as a partition lists them."""
        ordered = [name for name, kind in empty.dtypes.items() if getattr(kind, "ordered", False)]
        return self._dask.compute(self._dask.delayed(_levels_of)(self._parts[0], ordered))[0] if ordered else {}

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._schema

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the records of a target."""
        return RECORDS

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Do nothing: workers load kernels as they need them."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Make arrays of every partition, kept on the workers."""
        delayed = self._dask.delayed
        firsts = np.cumsum([0, *self._dask.compute(*[delayed(len)(part) for part in self._parts])])
        made = self._dask.persist(
            *[
                delayed(_keep)(part, int(first), self.dialect, function, arguments, list(columns))
                for part, first in zip(self._parts, firsts, strict=False)
            ]
        )
        self._alive.append(made)
        self._arrays = [delayed(_first)(pair) for pair in made]
        found = list(self._dask.compute(*[delayed(_second)(pair) for pair in made]))
        for known in found:
            # Of several refusals the one of the first records, whichever partition was looked at first.
            if isinstance(known, ShoalError):
                raise known
        return found

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Look at all partitions and merge the results pairwise."""
        delayed = self._dask.delayed
        held = [
            delayed(function)(part, arrays, its, *arguments)
            for part, (arrays, its) in enumerate(zip(self._arrays, own, strict=True))
        ]
        while len(held) > 1:
            odd = held[-1:] if len(held) % 2 else []
            held = [delayed(combine)(a, b) for a, b in zip(held[0::2], held[1::2], strict=False)] + odd
        return self._dask.compute(held[0])[0]

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function here."""
        return function(*arguments)

    def regroup(self, how: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Deal the records of every partition out to targets, and their answers back."""
        delayed = self._dask.delayed
        dealt = [
            delayed(_deal, nout=how.targets)(part, arrays, its, how.deal, how.dealing, how.targets)
            for part, (arrays, its) in enumerate(zip(self._arrays, how.own, strict=True))
        ]
        made = self._dask.persist(
            *[
                delayed(_gather)([part[target] for part in dealt], how.gather, how.gathering)
                for target in range(how.targets)
            ]
        )
        self._alive.append(made)
        answers = [delayed(_first)(pair) for pair in made]
        self._answers = [
            delayed(_collect)(part, arrays, answers, dict(how.answered)) for part, arrays in enumerate(self._arrays)
        ]
        return list(self._dask.compute(*[delayed(_second)(pair) for pair in made]))

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Put the released values in the partitions, which stay on the cluster or are written by the caller."""
        delayed = self._dask.delayed
        parts = self._dask.persist(
            *[
                delayed(_release)(part, self.dialect, answers, function, arguments, layout)
                for part, answers in zip(self._parts, self._answers, strict=True)
            ]
        )
        parts = self._with_levels(parts)
        self._alive.append(parts)
        meta = self._dask.compute(delayed(_head)(parts[0]))[0]
        frame = self._library.from_delayed(list(parts), meta=meta, verify_meta=False)
        if output is not None:
            with written_beside(output) as temporary:
                # Not from the frame: Dask turns objects, such as times of day, into text there.
                _write(parts, self._dask.compute(*[delayed(_schema)(part) for part in parts]), temporary)
        return Released(frame if output is None else output, DaskRecords(frame, None, (), (), parts))

    def _with_levels(self, parts: Sequence[Any]) -> Sequence[Any]:
        """Give ordered categories the same values in all partitions, those that some record has, to be joined again."""
        if not self._schema.levels:
            return parts
        delayed, levels = self._dask.delayed, self._schema.levels
        used = self._dask.compute(*[delayed(_levels_of)(part, list(levels)) for part in parts])
        kept = {
            name: [level for level in values if any(level in found.get(name, ()) for found in used)]
            for name, values in levels.items()
        }
        persisted: Sequence[Any] = self._dask.persist(*[delayed(_set_levels)(part, kept) for part in parts])
        return persisted

    def labels(self) -> None:
        """Return nothing: labels stay on the cluster."""

    def kept(self) -> Ints:
        """Return nothing: what is kept is known to the partitions."""
        return np.empty(0, dtype=np.int64)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Refuse: a request for labels does not come so far."""
        raise InputError("Parameter 'labels' does not go with Dask. Take engine='local' or 'memory'.")

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the number of partitions."""
        return {**blocks, "engine": f"dask, {len(self._parts)} partitions"}


# What workers do


def _table(part: Any, dialect: Dialect | None) -> Table:
    return open_table(part) if dialect is None else CsvTable(as_polars(part), dialect)


def _timed(part: Any) -> list[Name]:
    return open_table(part).timed_names()


def _keep(
    part: Any,
    first: int,
    dialect: Dialect | None,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    columns: list[str],
) -> Any:
    try:
        return function(_table(part[columns], dialect), first, *arguments)
    except ShoalError as error:
        return {}, error


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _deal(
    part: int,
    arrays: Arrays,
    own: Any,
    deal: Callable[..., tuple[Ints, Arrays]],
    arguments: Sequence[Any],
    targets: int,
) -> tuple[Any, ...]:
    """Return, for every target, the records that it gets of a partition."""
    target, sent = deal(part, arrays, own, *arguments)
    order, begins = sort_by_target(target, targets)
    return tuple(
        (part, rows, {name: array[rows] for name, array in sent.items()}) for rows in np.split(order, begins[1:-1])
    )


def _gather(
    pieces: Sequence[tuple[int, Ints, Arrays]], gather: Callable[..., tuple[Arrays, Any]], arguments: Sequence[Any]
) -> tuple[Mapping[int, tuple[Ints, Arrays]], Any]:
    """Work on the records of a target; return the answers by partition."""
    arrays = {name: np.concatenate([sent[name] for _, _, sent in pieces]) for name in pieces[0][2]}
    answers, known = gather(arrays, fresh_state(), *arguments)
    ends = np.cumsum([0, *(len(rows) for _, rows, _ in pieces)])
    back = {
        part: (rows, {name: array[ends[i] : ends[i + 1]] for name, array in answers.items()})
        for i, (part, rows, _) in enumerate(pieces)
        if len(rows)
    }
    return back, known


def _collect(part: int, arrays: Arrays, answers: Sequence[Mapping[int, tuple[Ints, Arrays]]], shapes: Shapes) -> Arrays:
    """Return what all targets answered to a partition, in the order of its records."""
    held = [found[part] for found in answers if part in found]
    rows = np.concatenate([rows for rows, _ in held]) if held else np.empty(0, dtype=np.int64)
    collected: dict[str, Any] = {KEPT: arrays[KEPT]} if KEPT in arrays else {}
    for name, (kind, width) in shapes.items():
        values = np.concatenate([answer[name] for _, answer in held]) if held else np.empty((0, width), kind)
        collected[name] = np.empty_like(values)
        collected[name][rows] = values
    return collected


def _release(
    part: Any,
    dialect: Dialect | None,
    answers: Arrays,
    function: Callable[..., Table],
    arguments: Sequence[Any],
    layout: Layout,
) -> Any:
    table = function(_table(part, dialect), answers, *arguments)
    if not isinstance(table, CsvTable):
        return table.native
    kept = part.iloc[answers[KEPT]] if KEPT in answers else part
    frame = table.with_numbers(layout.numbers)
    columns = {s.name: (s.fill_null(np.nan) if s.dtype.is_float() else s).to_numpy() for s in frame}
    return without_metadata(kept.assign(**columns)[layout.names])


def _levels_of(part: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the values of ordered categories."""
    return {
        name: tuple(part[name].dtype.categories)
        for name in names
        if name in part and getattr(part[name].dtype, "ordered", False)
    }


def _set_levels(part: Any, levels: Mapping[str, Sequence[Any]]) -> Any:
    ordered = [name for name in levels if name in part and getattr(part[name].dtype, "ordered", False)]
    return part.assign(**{name: part[name].cat.set_categories(levels[name], ordered=True) for name in ordered})


def _head(part: Any) -> Any:
    return part.iloc[:0]


def _as_arrow(part: Any) -> Any:
    import pyarrow as pa

    return without_metadata(pa.Table.from_pandas(part, preserve_index=False))


def _schema(part: Any) -> Any:
    return _as_arrow(part).schema


def _write(parts: Sequence[Any], schemas: Sequence[Any], path: Path) -> None:
    """Write all parts; a column has the type of the first part in which any of its cells is not missing."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    fields = (
        next((f for f in found if not pa.types.is_null(f.type)), found[0]) for found in zip(*schemas, strict=True)
    )
    schema = pa.schema(list(fields))
    with ParquetWriter(path, schema) as writer:
        for part in parts:
            writer.write_table(_as_arrow(part.compute()).cast(schema))
