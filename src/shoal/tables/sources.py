"""Tables on disk, read in parts of bounded size: Parquet by row groups, CSV as text in chunks.

A table may be a single file, a folder of files, or all files that match a glob.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, starmap
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from shoal.core.errors import FileError, InputError
from shoal.core.messages import setting
from shoal.kinds.column import word_of
from shoal.tables.addresses import Place, as_place, is_address, suffix_of
from shoal.tables.columns import Codes, Name, named_cells, without_words
from shoal.tables.files import COMPRESSED_CSV, CSV
from shoal.tables.formats.arrow_files import (
    PARQUET,
    describe_parquet,
    first_record_bytes,
    open_parquet,
    read_batches,
    validated,
)
from shoal.tables.formats.csv_files import TextStore, check_header, read_head
from shoal.tables.formats.frame_columns import from_arrow
from shoal.tables.formats.frames import open_table
from shoal.tables.number_text import Dialect, number_type
from shoal.tables.reading import AS_DETECTED, ReadingOptions
from shoal.tables.table import Table, stored_indexes

PLACES = 8  # positions in a file at which the size of a record is estimated
Run = Callable[[Callable[..., Any], Iterable[Sequence[Any]]], Iterable[Any]]

__all__ = [
    "FilePart",
    "Source",
    "check_same_columns",
    "column_types",
    "find_paths",
    "open_part",
    "open_source",
    "parquet_source",
    "parts_of",
    "record_bytes",
]


@dataclass(frozen=True)
class FilePart:
    """Row groups of a Parquet file that are read together."""

    path: Place
    groups: tuple[int, ...]
    rows: int

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return the records of the part, with all or some columns, as an Arrow table."""
        with open_parquet(self.path) as file:
            return validated(file.read_row_groups(list(self.groups), columns=columns, use_threads=False))

    def head(self, rows: int) -> pl.DataFrame:
        """Return the first records of the part, at most `rows`."""
        with open_parquet(self.path) as file:
            batches = file.iter_batches(batch_size=rows, row_groups=[self.groups[0]], use_threads=False)
            return from_arrow(validated(next(batches)))


@dataclass(frozen=True)
class Source:
    """A table in parts. Columns of CSV files are text, which the dialect interprets."""

    parts: tuple[FilePart, ...]
    names: tuple[str, ...]
    numeric: tuple[str, ...]
    dialect: Dialect | None
    timed: tuple[str, ...] = ()
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # ordered values, for columns of ordered type

    @property
    def rows(self) -> int:
        """The number of records."""
        return sum(part.rows for part in self.parts)

    def table(self, part: int, columns: Sequence[str] | None = None) -> Table:
        """Return a part of the table, with all or some of its columns."""
        table = self.parts[part].read(None if columns is None else list(columns))
        return open_part(table, self.dialect)


def open_part(part: Any, dialect: Dialect | None) -> Table:
    """Open a part of a table; a part of a CSV file is Arrow text, which the dialect interprets."""
    return open_table(part) if dialect is None else Table(TextStore(from_arrow(part), dialect))


def find_paths(data: str | os.PathLike[str]) -> list[Path]:
    """Return the file at a path, or the files that are in a folder or match a glob, sorted by name."""
    text = os.fspath(data)
    path = Path(text)
    if is_address(data):
        raise InputError(
            f"Input {as_place(data)} is an address, which only clusters read. Use {setting('engine', 'dask')}."
        )
    if path.is_dir():
        # Skip hidden files, which killed runs may have left.
        visible = (file for file in path.iterdir() if not file.name.startswith("."))
        paths = sorted(file for file in visible if file.suffix.lower() in (*CSV, *PARQUET))
    elif glob.has_magic(text) and not path.exists():
        paths = sorted(Path(name) for name in glob.glob(text, recursive=True))  # noqa: PTH207  (absolute patterns too)
    else:
        paths = [path]
    if not paths:
        raise FileError(f"Input {data} has no files that end in {', '.join((*CSV, *PARQUET))}. Check the path.")
    for file in paths:
        if not file.is_file():
            raise FileError(f"File {file} does not exist. Check the path.")
        if suffix_of(file) in COMPRESSED_CSV:
            raise InputError(
                f"File {file} is compressed and cannot be masked beyond memory. Decompress it, convert it to Parquet "
                f"or use {setting('engine', 'memory')}."
            )
        if file.suffix.lower() not in (*CSV, *PARQUET):
            raise InputError(
                "A table that is masked on disk must be in files that end in one of "
                f"{', '.join((*CSV, *PARQUET))}; got {file}. Convert it to Parquet first."
            )
    if len({file.suffix.lower() in CSV for file in paths}) > 1:
        raise InputError(f"Input {data} mixes CSV and Parquet files. Pass files of one format.")
    return paths


def record_bytes(path: Path) -> list[float]:
    """Estimate the memory of a record in bytes at several positions in the file, as record lengths may vary.

    Parquet files may be compressed, so the estimates use sample records in addition to the file's metadata.
    """
    if path.suffix.lower() in CSV:
        size = path.stat().st_size
        with path.open("rb") as file:
            return [_line_bytes(file, start) for start in range(0, max(1, size), -(-max(1, size) // PLACES))]
    _, groups = describe_parquet(path)
    return [*(size / max(1, records) for records, size in groups), *first_record_bytes(path, PLACES)]


def _line_bytes(file: BinaryIO, start: int) -> float:
    """Estimate the memory of a line in bytes from the lines after a position in the file."""
    file.seek(start)
    head = file.read(500_000)
    return 4 * len(head) / max(1, head.count(b"\n"))


def open_source(
    paths: Sequence[Path],
    folder: Path,
    rows: int,
    *,
    numbers: Sequence[str] = (),
    codes: Codes | None = None,
    run: Run = starmap,
    named: bool = False,
    reading: ReadingOptions = AS_DETECTED,
) -> Source:
    """Return the table in parts of about `rows` records; rewritten parts are stored in the folder.

    `run` applies a function to many arguments, possibly in other processes, because rewriting takes extra memory.
    `reading` describes the format of CSV files, and `codes` lists their codes for missing values. CSV files without a
    header line are refused if their columns must be `named`, as in a release.
    """
    if paths[0].suffix.lower() in CSV:
        first = read_head(paths[0], reading)
        if named:
            check_header(paths[0], first)
        dialect, header = first.dialect or Dialect(), [str(name) for name in first.names]
        written = replace(reading, delimiter=dialect.delimiter, encoding=dialect.encoding)
        for path in paths[1:]:
            if read_head(path, written).names != header:
                raise InputError(f"File {path} has other columns than {paths[0]}. Mask files of one kind together.")
        tasks = [(path, header, dialect, folder / f"{i}.parquet", rows) for i, path in enumerate(paths)]
        parts = tuple(chain.from_iterable(run(restage_csv, tasks)))
        names = tuple(header)
        return Source(parts, names, _numeric_names(parts, names, dialect, numbers, codes or {}), dialect)
    schema = describe_parquet(paths[0])[0]
    check_same_columns(paths, (describe_parquet(path)[0] for path in paths[1:]), schema)
    return parquet_source(_parquet_parts(paths, folder, rows, run), schema, starmap)


def _numeric_names(
    parts: Sequence[FilePart], names: Sequence[str], dialect: Dialect, numbers: Sequence[str], codes: Codes
) -> tuple[str, ...]:
    """Return the numeric columns, judged by the first records or, if all are missing, by the first part with values."""
    types: dict[str, str | None] = dict.fromkeys(names)

    def look(frame: pl.DataFrame) -> None:
        for name, text in named_cells(frame):
            types[name] = number_type(without_words(text, codes.get(name, ())), dialect, codes=name in numbers)

    if parts:
        look(parts[0].head(10_000))
    for part in parts:
        if empty := [name for name, kind in types.items() if kind is None]:
            look(from_arrow(part.read(empty)))
    return tuple(name for name, kind in types.items() if kind not in (None, "String"))


def check_same_columns(paths: Sequence[Place], schemas: Iterable[Any], schema: Any) -> None:
    """Refuse files whose columns differ from those of the first file; `schemas` are the schemas of the later files."""
    for path, other in zip(paths[1:], schemas, strict=True):
        if not other.equals(schema):
            raise InputError(f"File {path} has other columns than {paths[0]}. Mask the files separately.")


def parquet_source(parts: tuple[FilePart, ...], schema: Any, run: Run) -> Source:
    """Return the table that consists of parts of Parquet files; `run` reads their ordered categories, if any."""
    kinds = column_types(schema)
    indexes = stored_indexes(schema.names)
    numeric = tuple(name for name, kind in kinds.items() if kind.is_numeric() and name not in indexes)
    timed = tuple(name for name, kind in kinds.items() if word_of(kind))
    ordered = [column.name for column in schema if getattr(column.type, "ordered", False)]
    levels: dict[str, dict[Any, None]] = {name: {} for name in ordered}
    for part_values in run(part_levels, [(part, ordered) for part in parts]) if ordered else ():
        for name, values in part_values.items():
            levels[name] |= dict.fromkeys(values)
    by_column = {name: tuple(values) for name, values in levels.items() if values}
    return Source(parts, tuple(schema.names), numeric, None, timed, by_column)


def part_levels(part: FilePart, ordered: Sequence[str]) -> dict[Name, tuple[Any, ...]]:
    """Return the levels of ordered categories in the order in which the part stores them."""
    return open_table(part.read(ordered)).ordered_levels()


def parts_of(path: Place, groups: Sequence[tuple[int, int]], rows: int, size: int) -> Iterator[FilePart]:
    """Combine row groups into parts of at most `rows` records and `size` bytes; a row group is never divided.

    Examples
    --------
    >>> [part.groups for part in parts_of(Path("x.parquet"), [(40, 9), (60, 9), (50, 9), (500, 9), (1, 9)], 100, 1000)]
    [(0, 1), (2,), (3,), (4,)]
    """
    part_groups: list[int] = []
    records = stored = 0
    for group, (count, weight) in enumerate(groups):
        if part_groups and (records + count > rows or stored + weight > size):
            yield FilePart(path, tuple(part_groups), records)
            part_groups, records, stored = [], 0, 0
        part_groups.append(group)
        records, stored = records + count, stored + weight
    if records:
        yield FilePart(path, tuple(part_groups), records)


def column_types(schema: Any) -> pl.Schema:
    """Return the types of the columns of an Arrow schema."""
    import pyarrow as pa

    # Avoid schema.empty_table(), which imports pandas. That takes as long as all other imports together.
    return from_arrow(pa.Table.from_batches([], schema=schema.remove_metadata())).schema


def _parquet_parts(paths: Sequence[Path], folder: Path, rows: int, run: Run) -> tuple[FilePart, ...]:
    parts: list[FilePart] = []
    tasks: list[tuple[Path, int, Path, int]] = []
    places: list[int] = []
    for path in paths:
        groups: list[int] = []
        total = 0
        for group, (count, _) in enumerate(describe_parquet(path)[1]):
            if groups and total + count > rows:
                parts.append(FilePart(path, tuple(groups), total))
                groups, total = [], 0
            if count > 2 * rows:
                # A row group too large for the memory limit is streamed once into smaller row groups.
                places.append(len(parts))
                tasks.append((path, group, folder / f"{len(tasks)}.parquet", rows))
                continue
            groups.append(group)
            total += count
        if total:
            parts.append(FilePart(path, tuple(groups), total))
    for place, smaller in reversed(list(zip(places, run(restage_group, tasks), strict=True))):
        parts[place:place] = smaller
    return tuple(parts)


def restage_group(path: Path, group: int, target: Path, rows: int) -> list[FilePart]:
    """Divide a row group of a Parquet file into smaller row groups in a new file."""
    return _restage(read_batches(path, group, rows), target, rows)


def restage_csv(path: Path, header: list[str], dialect: Dialect, target: Path, rows: int) -> list[FilePart]:
    """Convert a CSV file to a Parquet file with all columns as text."""
    import pyarrow as pa
    from pyarrow import csv

    text = dict.fromkeys(header, pa.string())
    try:
        with csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, encoding=dialect.encoding, block_size=4_000_000),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=text, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        ) as reader:
            return _restage(reader, target, rows)
    except pa.ArrowInvalid as error:
        raise FileError(
            f"File {path} cannot be read as CSV with delimiter {dialect.delimiter!r} and encoding "
            f"{dialect.encoding!r}: {str(error).splitlines()[0]} Set another delimiter or encoding, or repair the line."
        ) from None


def _restage(batches: Iterable[Any], path: Path, rows: int) -> list[FilePart]:
    """Write a stream of batches to one Parquet file, in row groups of about `rows` records."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    parts: list[FilePart] = []
    waiting: list[Any] = []
    writer: Any = None
    try:
        for batch in batches:
            waiting.append(batch)
            writer = writer or ParquetWriter(path, batch.schema, compression="lz4")
            if sum(len(b) for b in waiting) >= rows:
                parts.append(_flush(writer, pa.Table.from_batches(waiting), path, len(parts)))
                waiting = []
        if waiting and sum(len(b) for b in waiting):
            parts.append(_flush(writer, pa.Table.from_batches(waiting), path, len(parts)))
    finally:
        if writer is not None:
            writer.close()
    return parts


def _flush(writer: Any, table: Any, path: Path, group: int) -> FilePart:
    writer.write_table(table, row_group_size=len(table))
    return FilePart(path, (group,), len(table))
