"""Reading and writing of Parquet and Arrow files; a library's error on a damaged file becomes a `FileError`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from shoal.core.errors import FileError, ShoalError
from shoal.tables.addresses import Place, open_place, suffix_of
from shoal.tables.formats.frame_columns import as_polars
from shoal.tables.formats.metadata import without_metadata
from shoal.tables.table import check_names

__all__ = [
    "ARROW",
    "PARQUET",
    "describe_parquet",
    "first_record_bytes",
    "naming_file",
    "open_parquet",
    "read_arrow",
    "read_batches",
    "read_parquet",
    "validated",
    "write_arrow",
]

PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
FEATHER_1 = b"FEA1"


@contextmanager
def naming_file(path: Place) -> Iterator[None]:
    """Turn every error of a reader into a `FileError` that names the file; the block must contain only the reading."""
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(" .:")
        if isinstance(error, MemoryError):
            raise FileError(
                f"File {path} cannot be read: it needs more memory than is available ({reason}). Use a machine with "
                "more memory; if the file is damaged, restore a copy."
            ) from error
        if isinstance(error, OSError) and error.strerror:
            raise FileError(f"File {path} cannot be read: {error.strerror.rstrip('.')}.") from error
        raise FileError(
            f"File {path} cannot be read as {suffix_of(path)}: {reason}. If it is damaged, restore a copy or export it "
            "again."
        ) from error


def validated(table: Any) -> Any:
    """Return an Arrow table or batch after validating all cells, because other libraries crash on invalid cells."""
    table.validate(full=True)
    _check_metadata(table.schema)
    return table


def _check_metadata(fields: Iterable[Any]) -> None:
    """Refuse metadata that is not text, as polars panics on it."""
    for field in fields:
        for part in chain.from_iterable((field.metadata or {}).items()):
            part.decode()
        _check_metadata(field.type.field(place) for place in range(field.type.num_fields))


@contextmanager
def open_parquet(path: Place, **options: Any) -> Iterator[Any]:
    """Open a Parquet file for reading, for the duration of the block."""
    from pyarrow.parquet import ParquetFile

    with naming_file(path):
        if isinstance(path, Path):
            with ParquetFile(path, **options) as file:
                _check_metadata(file.schema_arrow)
                yield file
        else:
            with open_place(path) as opened, ParquetFile(opened, **options) as file:
                _check_metadata(file.schema_arrow)
                yield file


def read_parquet(path: Path) -> Any:
    """Read a Parquet file."""
    with open_parquet(path) as file:
        return validated(file.read())


def read_batches(path: Path, group: int, rows: int) -> Iterator[Any]:
    """Read a row group of a Parquet file in batches."""
    with open_parquet(path, buffer_size=1 << 20) as file:
        yield from map(validated, file.iter_batches(batch_size=rows, row_groups=[group], use_threads=False))


def first_record_bytes(path: Path, places: int) -> list[float]:
    """Estimate the memory of a Parquet record in bytes from the first records of several row groups."""
    sizes: list[float] = []
    with open_parquet(path) as file:
        groups = range(file.metadata.num_row_groups)
        for group in groups[:: -(-max(1, len(groups)) // places)]:
            batch = next(file.iter_batches(batch_size=1000, row_groups=[group], use_threads=False), None)
            sizes += [] if batch is None else [float(batch.nbytes / max(1, len(batch)))]
    return sizes or [0.0]


def describe_parquet(path: Place) -> tuple[Any, list[tuple[int, int]]]:
    """Return the schema of a Parquet file, and the numbers of records and bytes in each row group."""
    with open_parquet(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    check_names(schema.names)
    return schema, [(group.num_rows, group.total_byte_size) for group in groups]


def read_arrow(path: Path) -> Any:
    """Read an Arrow file."""
    from pyarrow import feather

    with naming_file(path):
        with path.open("rb") as file:
            if file.read(4) == FEATHER_1:  # pyarrow crashes on a damaged file before it can be validated
                raise FileError(
                    f"File {path} is a Feather file of version 1, which cannot be validated. Write it again as "
                    "version 2, the default of pyarrow and pandas."
                )
        return validated(feather.read_table(path))


def write_arrow(frame: Any, path: Path) -> None:
    """Write a frame as Parquet or Arrow, depending on the ending of the path."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = frame if isinstance(frame, pa.Table) else without_metadata(as_polars(frame).to_arrow())
    if path.suffix.lower() in PARQUET:
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
