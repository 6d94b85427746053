"""Reading and writing of JSON lines through polars, with one object per line and columns as keys."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from shoal.core.errors import FileError
from shoal.tables.columns import named_cells
from shoal.tables.formats.arrow_files import naming_file
from shoal.tables.table import check_names

__all__ = ["JSON_LINES", "read_json_lines", "write_json_lines"]

JSON_LINES = (".jsonl", ".ndjson")


def read_json_lines(path: Path) -> pl.DataFrame:
    """Read a file of JSON lines; an absent key is a missing value."""
    raw = path.read_bytes()
    if not raw.strip():
        raise FileError(f"File {path} is empty: it has no records. Check the path or the export.")
    with naming_file(path):
        # Infer types from all lines, because decimals may follow whole numbers.
        frame = pl.read_ndjson(raw, infer_schema_length=None)
        frame = frame.with_columns(pl.selectors.by_dtype(pl.Null).cast(pl.String))
    check_names(frame.columns)
    for name, dtype in frame.schema.items():
        if dtype == pl.Int128:
            raise FileError(f"File {path} has numbers beyond 2^63 in column {name!r}. Store them as text.")
    return frame


def write_json_lines(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as JSON lines; dates, times and decimals become text, and missing values become null."""
    for name, dtype in frame.schema.items():
        if dtype in (pl.Binary, pl.Object):
            raise FileError(f"JSON cannot hold column {name!r}, of type {dtype}. Drop it, or write Parquet.")
    for name, numbers in named_cells(frame.select(pl.selectors.float())):
        if numbers.is_infinite().any():
            raise FileError(f"JSON cannot store infinite numbers, but column {name!r} has some. Use CSV or Parquet.")
    path.write_text(frame.write_ndjson(), encoding="utf-8", newline="\n")
