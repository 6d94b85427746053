"""Reading and writing of an Excel sheet through polars, fastexcel and XlsxWriter (the ``excel`` extra)."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.errors import FileError, InputError, closest
from shoal.core.messages import Message, parameter
from shoal.tables.columns import named_cells
from shoal.tables.formats.arrow_files import naming_file
from shoal.tables.formats.csv_files import numbered_names
from shoal.tables.formats.frame_columns import as_doubles
from shoal.tables.outputs import hidden_folder
from shoal.tables.table import check_names

__all__ = ["EXCEL", "read_excel", "write_excel"]

EXCEL = (".xlsx",)
ROWS, LENGTH = 1_048_575, 32_767  # records per sheet and characters per cell, at most


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise FileError("Excel files need the extra 'excel': pip install 'shoal[excel]'.") from None


def read_excel(
    path: Path, skipped: int = 0, *, no_header: bool = False, sheet: str | None = None
) -> tuple[pl.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """Return a sheet, by default the first, and all sheet names; add a note if the first of several is read by default.

    The first non-empty row after the skipped rows contains the column names.
    """
    library = _library("fastexcel")
    # Silence fastexcel's harmless warnings about empty columns.
    logging.getLogger("fastexcel").setLevel(logging.ERROR)
    with naming_file(path):
        sheets = library.read_excel(path)
        first, *others = sheets.sheet_names
        if sheet is not None and sheet not in sheets.sheet_names:
            raise InputError(
                f"File {path} has no sheet {sheet!r}.{closest(sheet, sheets.sheet_names)} Its sheets are "
                f"{', '.join(map(repr, sheets.sheet_names))}."
            )
        head = sheets.load_sheet(
            sheet or 0, header_row=None, skip_rows=skipped or None, n_rows=1, dtypes="string"
        ).to_polars()
        names = head.row(0) if len(head) and not no_header else ()
        _check_names(names, f"File {path} has")
        try:
            # Infer types from all rows, because text below numbers would otherwise be lost.
            rows = {("skip_rows" if no_header else "header_row"): skipped} if skipped else {}
            frame = pl.read_excel(
                path,
                sheet_name=sheet or first,
                engine="calamine",
                infer_schema_length=None,
                has_header=not no_header,
                read_options=rows,
            )
        except pl.exceptions.NoDataError:
            where = f"its first sheet, {first!r}" if sheet is None else f"sheet {sheet!r}"
            hint = f"; other sheets: {', '.join(map(repr, others))}. Select one with {parameter('sheet')}"
            raise FileError(
                f"File {path} has no records in {where}{hint if others and sheet is None else ''}."
            ) from None
        except pl.exceptions.InvalidOperationError as error:
            # Polars infers integers for columns of whole numbers, even if some exceed 64 bits.
            reason = str(error).splitlines()[0]
            raise FileError(f"File {path} has numbers beyond 2^63: {reason}. Use a larger unit.") from None
    if no_header:
        frame.columns = numbered_names(frame.width)
    check_names([name for name in names if name is not None])
    for place, name in enumerate(frame.columns, 1):
        if name.startswith("__UNNAMED__"):
            raise FileError(
                f"File {path} must name all columns in the first row of its sheet, but column {place} has no "
                f"name. Add one, or skip the rows above the table with {parameter('skip_rows')}."
            )
    several = f"the file has {len(others) + 1} sheets, and only the first was read; {parameter('sheet')} names another"
    return frame, (first, *others), (Message(several),) if others and sheet is None else ()


def _check_names(names: Sequence[str | None], where: str) -> None:
    """Refuse names that polars takes as patterns when it reads a sheet."""
    for name in names:
        if name is not None and (name == "*" or (name.startswith("^") and name.endswith("$"))):
            raise FileError(
                f"{where} column {name!r}, which polars reads as a pattern in Excel files. Rename it, or use CSV or "
                "Parquet."
            )


def write_excel(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as the only sheet of a file, with numbers to 16 digits; equal tables give equal files."""
    library = _library("xlsxwriter")
    if len(frame) > ROWS:
        raise FileError(f"Excel allows at most {ROWS:,} records per sheet, got {len(frame):,}. Use CSV or Parquet.")
    _check_names(frame.columns, "The table has")
    for name, dtype in frame.schema.items():
        if dtype in (pl.Binary, pl.Object) or getattr(dtype, "time_zone", None) or not name:
            column = f"column {name!r}, of type {dtype}" if name else "a column without a name"
            raise FileError(f"Excel cannot store {column}. Drop or rename it, or use CSV or Parquet.")
    frame = as_doubles(frame, "An Excel file")
    for name, text in named_cells(frame.select(pl.selectors.string())):
        if (text.str.len_chars().max() or 0) > LENGTH:  # type: ignore[operator]
            raise FileError(
                f"Excel allows at most {LENGTH:,} characters per cell; column {name!r} has more. Use CSV or Parquet."
            )
    for name, numbers in named_cells(frame.select(pl.selectors.float())):
        if numbers.is_infinite().any():
            raise FileError(f"Excel cannot store infinite numbers, but column {name!r} has some. Use CSV or Parquet.")
    cells = frame.with_columns(pl.selectors.float().fill_nan(None))
    # Pack in memory: a ZipFile that fails on a full disk prints a second traceback when it is garbage-collected.
    packed = io.BytesIO()
    failure: OSError | None = None
    with hidden_folder(path) as folder:
        settings = {"strings_to_formulas": False, "strings_to_urls": False, "tmpdir": str(folder)}
        try:
            with library.Workbook(packed, settings) as book:
                book.set_properties({"created": datetime(2000, 1, 1, tzinfo=UTC)})
                cells.write_excel(book, column_formats={pl.selectors.numeric(): "General"}, autofilter=False)
        except library.exceptions.FileCreateError as error:
            failure = OSError(*error.args[0].args)  # without the stack frames that hold the ZipFile
    if failure is not None:
        raise failure
    path.write_bytes(packed.getbuffer())
