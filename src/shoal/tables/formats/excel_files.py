"""Excel files through polars, fastexcel and XlsxWriter (the ``excel`` extra): the values of the first sheet."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.errors import FileError
from shoal.tables.columns import named_cells
from shoal.tables.formats.arrow_files import naming_file
from shoal.tables.formats.frame_columns import as_doubles
from shoal.tables.outputs import hidden_folder
from shoal.tables.table import check_names

__all__ = ["EXCEL", "read_excel", "write_excel"]

EXCEL = (".xlsx",)
ROWS, LENGTH = 1_048_575, 32_767  # records of a sheet and characters of a cell, at most


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise FileError("Excel files need the extra 'excel': pip install 'shoal[excel]'.") from None


def read_excel(path: Path) -> pl.DataFrame:
    """Read the first sheet; its first row that is not empty names the columns."""
    library = _library("fastexcel")
    # It tells of columns without any value, which are none of the user's worries.
    logging.getLogger("fastexcel").setLevel(logging.ERROR)
    with naming_file(path):
        sheets = library.read_excel(path)
        head = sheets.load_sheet(0, header_row=None, n_rows=1, dtypes="string").to_polars()
        _check_names(head.row(0) if len(head) else (), f"File {path} has")
        try:
            # All rows say what a column holds: text below numbers would be lost.
            frame = pl.read_excel(path, engine="calamine", infer_schema_length=None)
        except pl.exceptions.NoDataError:
            first, *others = sheets.sheet_names
            hint = f", and only that is read, not {', '.join(map(repr, others))}. Put the table first" if others else ""
            raise FileError(f"File {path} has no records in its first sheet, {first!r}{hint}.") from None
        except pl.exceptions.InvalidOperationError as error:
            # Polars takes columns of whole numbers for integers, which the largest are not.
            reason = str(error).splitlines()[0]
            raise FileError(f"File {path} holds numbers beyond 2^63: {reason}. Count them in a larger unit.") from None
    check_names([name for name in head.row(0) if name is not None])
    for place, name in enumerate(frame.columns, 1):
        if name.startswith("__UNNAMED__"):
            raise FileError(
                f"File {path} must name all columns in the first row of its first sheet, but number {place} has no "
                "name. Name it, or remove what is above the table."
            )
    return frame


def _check_names(names: Sequence[str | None], where: str) -> None:
    """Refuse names that polars takes for patterns when it reads a sheet."""
    for name in names:
        if name is not None and (name == "*" or (name.startswith("^") and name.endswith("$"))):
            raise FileError(
                f"{where} column {name!r}, which polars reads as a pattern in Excel files. Rename it, or use CSV or "
                "Parquet."
            )


def write_excel(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as the only sheet of a file, numbers to 16 digits; the same table makes the same file."""
    library = _library("xlsxwriter")
    if len(frame) > ROWS:
        raise FileError(f"Excel holds at most {ROWS:,} records in a sheet, got {len(frame):,}. Use CSV or Parquet.")
    _check_names(frame.columns, "The table has")
    for name, dtype in frame.schema.items():
        if dtype in (pl.Binary, pl.Object) or getattr(dtype, "time_zone", None) or not name:
            what = f"column {name!r}, of type {dtype}" if name else "a column without a name"
            raise FileError(f"Excel cannot hold {what}. Drop or rename it, or use CSV or Parquet.")
    frame = as_doubles(frame, "An Excel file")
    for name, text in named_cells(frame.select(pl.selectors.string())):
        if (text.str.len_chars().max() or 0) > LENGTH:  # type: ignore[operator]
            raise FileError(f"Excel holds at most {LENGTH:,} characters in a cell; column {name!r} has more.")
    for name, numbers in named_cells(frame.select(pl.selectors.float())):
        if numbers.is_infinite().any():
            raise FileError(f"Excel holds no infinite numbers; column {name!r} has some. Use CSV or Parquet.")
    cells = frame.with_columns(pl.selectors.float().fill_nan(None))
    # Packed in memory: on a full disk, a ZipFile that writes to it prints a second traceback when it is collected.
    packed = io.BytesIO()
    failure: OSError | None = None
    with hidden_folder(path) as folder:
        settings = {"strings_to_formulas": False, "strings_to_urls": False, "tmpdir": str(folder)}
        try:
            with library.Workbook(packed, settings) as book:
                book.set_properties({"created": datetime(2000, 1, 1, tzinfo=UTC)})
                cells.write_excel(book, column_formats={pl.selectors.numeric(): "General"}, autofilter=False)
        except library.exceptions.FileCreateError as error:
            failure = OSError(*error.args[0].args)  # without the frames that hold the ZipFile
    if failure is not None:
        raise failure
    path.write_bytes(packed.getbuffer())
