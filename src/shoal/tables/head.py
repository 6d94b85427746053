"""Reading of the first records of a table that is not held in memory."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.tables.addresses import as_place, is_address
from shoal.tables.columns import Name
from shoal.tables.files import CSV, DatabaseTable, StandardInput, is_dask, is_spark, open_data
from shoal.tables.formats.arrow_files import PARQUET, open_parquet, validated
from shoal.tables.formats.csv_files import check_header, read_head
from shoal.tables.formats.frames import open_table
from shoal.tables.reading import AS_DETECTED, ReadingOptions
from shoal.tables.sources import find_paths
from shoal.tables.table import Table

__all__ = ["column_names", "head_table"]


def column_names(data: Any, reading: ReadingOptions = AS_DETECTED) -> list[Name]:
    """Return the column names of a table; of a large file, only the head is read."""
    if is_dask(data) or is_spark(data):
        return list(data.columns)
    is_path = isinstance(data, (str, os.PathLike)) and not isinstance(data, (StandardInput, DatabaseTable))
    is_whole = is_path and Path(data).is_file() and Path(data).suffix.lower() not in (*CSV, *PARQUET)
    return open_data(data, reading=reading).names if is_whole or not is_path else _head_of_files(data, 1, reading).names


def head_table(data: Any, rows: int, reading: ReadingOptions = AS_DETECTED) -> Table:
    """Return the first `rows` records of a Parquet file or a Dask or Spark DataFrame, or a megabyte of a CSV file."""
    if is_dask(data):
        return open_table(data.head(rows, npartitions=-1))
    if is_spark(data):
        return open_table(_head_of_spark(data, rows))
    return _head_of_files(data, rows, reading)


def _head_of_spark(data: Any, rows: int) -> Any:
    """Return the first rows of a Spark DataFrame in order; a limit alone does not preserve the order."""
    from pyspark.sql import functions

    place = functions.monotonically_increasing_id().alias("shoal place")
    table = data.select("*", place).limit(rows).sort("shoal place").toArrow()
    return table.select(range(len(data.columns)))


def _head_of_files(data: str | os.PathLike[str], rows: int, reading: ReadingOptions) -> Table:
    if is_address(data):
        raise InputError(
            f"{parameter('columns')} is required for address {as_place(data)}: roles are proposed only for tables and "
            "local files."
        )
    first = find_paths(data)[0]
    if first.suffix.lower() in CSV:
        table = read_head(first, reading)
        check_header(first, table)
        return table
    import pyarrow as pa

    with open_parquet(first) as file:
        batches = [validated(batch) for batch in islice(file.iter_batches(batch_size=rows), 1)]
        return open_table(pa.Table.from_batches(batches, file.schema_arrow))
