"""CSV files: dialect sniffed, numbers recognised, and everything that is not masked written back as it was read.

All cells are kept as text beside the parsed numbers, so an identifier 007 stays 007, 1.50 stays 1.50 and a cell NA
stays NA. Where records must look alike, in masked columns and strata, a value has one spelling: 1 beside 1.0, or NA
beside an empty cell, would tell records apart. Blank lines are no records.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from shoal.core.errors import FileError, InputError, VerificationError, closest
from shoal.core.messages import parameter, setting
from shoal.core.types import Bools, Ints
from shoal.core.unicode_forms import composed_cells
from shoal.kernels.words import Words
from shoal.kinds.date import Date, check_no_dates, read_dates
from shoal.kinds.storage import MISSING, Column
from shoal.kinds.time_scale import Span, span_of
from shoal.tables.codes import Codes
from shoal.tables.columns import Name, NewColumn, Spelling, round_to
from shoal.tables.csv_cells import (
    SIGNS,
    Dialect,
    as_type,
    coded_text,
    is_numeric,
    not_numbers,
    number_type,
    parse_numbers,
    plain_numbers,
    spelled_numbers,
    text_numbers,
    without_words,
)
from shoal.tables.selection import cells_of, named_cells, only_columns, with_cells, without_columns
from shoal.tables.series import TextNumbers, as_floats, cell_words, kind_of, mostly_numbers
from shoal.tables.table import Table, check_names

__all__ = [
    "CsvTable",
    "csv_text",
    "encode_part",
    "header_text",
    "read_csv",
    "read_head",
    "read_text",
    "write_csv",
]

DELIMITERS = (",", ";", "\t", "|")
HEAD = 1_000_000  # bytes that are looked at to find out how a file is written
TAB = ("tab", "\\t")  # as users write it


class CsvTable(Table):
    """A CSV file, or a part of one: its cells as text, and the numbers that they mean.

    Parameters
    ----------
    text
        The cells as they are spelled; null where there is nothing between two delimiters.
    dialect
        How the file is written.
    numbers
        Columns to read as numbers even if they look like codes (007).
    codes
        Cells that stand for missing, by column.
    texts
        Columns that stay text whatever they look like: masked dates (20240131).
    parsed
        Columns that were read as numbers, by name and whether codes count as numbers; None to keep none of them.
    """

    dialect: Dialect

    def __init__(
        self,
        text: pl.DataFrame,
        dialect: Dialect,
        numbers: Collection[Name] = (),
        codes: Codes | None = None,
        texts: Collection[Name] = (),
        parsed: dict[tuple[Name, bool], pl.Series] | None = None,
    ) -> None:
        self.text, self.dialect, self._numbers, self._codes, self._texts = text, dialect, numbers, codes or {}, texts
        self._parsed = parsed

    def _but(self, text: pl.DataFrame, **other: Any) -> CsvTable:
        """Return a table of the same kind with other cells."""
        same: dict[str, Any] = {
            "dialect": self.dialect,
            "numbers": self._numbers,
            "codes": self._codes,
            "texts": self._texts,
            "parsed": None if self._parsed is None else {},
        }
        return CsvTable(text, **(same | other))

    @property
    def native(self) -> pl.DataFrame:
        """The table with numbers where all cells of a column are numbers, or would be if they were not missing."""
        return with_cells(self.text, {name: self._as_stored(name) for name in self.names})

    @property
    def names(self) -> list[Name]:
        """The names of all columns."""
        return self.text.columns

    @property
    def rows(self) -> int:
        """The number of records."""
        return len(self.text)

    def numeric_names(self) -> list[Name]:
        """Return the columns of which all cells are numbers."""
        return [name for name in self.names if self._meaning(name).dtype.is_numeric()]

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as numbers, codes such as 007 too."""
        numbers = self._numbers_of(name)
        if not numbers.dtype.is_numeric():
            raise not_numbers(name, self._named(name), self.dialect, first)
        return Column(name, as_floats(numbers.set(self._coded(name), None)), kind_of(numbers.dtype))

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return the dates or times that the cells say."""
        cells, formats = read_dates(name, self.categories(name), kind, first)
        return cells, span_of(cells, pl.String, formats)

    def categories(self, name: Name, first: int = 0, *, named: bool = True) -> pl.Series:
        """Return the cells as text; a column of which most values are numbers is no column of categories by itself."""
        cells = self._cells(name)
        text = cells.set(cells.str.strip_chars().is_in(MISSING), None).set(self._coded(name), None)
        if not named:
            check_no_dates(name, text, first)
            if mostly_numbers(text):
                raise not_numbers(name, cells, self.dialect, first)
        return text

    def text_numbers(self, name: Name, first: int = 0) -> TextNumbers:
        """Return what numbers a column holds that is text."""
        return text_numbers(self._named(name), self.dialect, first)

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return what the cells mean."""
        return pl.DataFrame([composed_cells(self._meaning(name)).alias(str(i)) for i, name in enumerate(names)])

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return the cells as they are spelled."""
        return pl.DataFrame([self._cells(name).alias(str(i)) for i, name in enumerate(names)])

    def spellings(self, name: Name, missing: Bools) -> frozenset[Spelling]:
        """Return the different texts of missing cells."""
        return frozenset(self._cells(name).filter(pl.Series(missing)).unique())

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return a word for each text or number, once it is sure that no number is spelled in two ways."""
        coded = self._coded(name)
        if category:
            return cell_words(self._cells(name).set(coded, None), category=True)
        cells, numbers = self._cells(name), self._numbers_of(name)
        numbers = numbers.set(coded, None)
        if not numbers.dtype.is_numeric() or not (spelled_numbers(numbers, self.dialect) == cells).drop_nulls().all():
            raise VerificationError(f"Column {name!r} has numbers spelled in several ways. Nothing was released.")
        return cell_words(numbers)

    def take(self, rows: Ints) -> CsvTable:
        """Return some of the records."""
        same = len(rows) == len(self.text) and np.array_equal(rows, np.arange(len(rows)))
        return self if same else self._but(self.text[rows])

    def without(self, names: Sequence[Name]) -> CsvTable:
        """Return the table without some of the columns."""
        return self._but(without_columns(self.text, names), parsed=self._parsed)

    def only(self, names: Sequence[Name]) -> CsvTable:
        """Return some of the columns."""
        return self._but(only_columns(self.text, names), parsed=self._parsed)

    def in_own_dialect(self, delimiter: str = ",") -> CsvTable:
        """Return the table as a CSV file of ours is written, whatever the dialect of the file that it came from."""
        numbers = {name: plain_numbers(self._cells(name), self.dialect) for name in self.numeric_names()}
        return self._but(with_cells(self.text, numbers), dialect=Dialect(delimiter))

    def coded(self, codes: Codes) -> CsvTable:
        """Return the table with codes for missing."""
        return self if codes == self._codes else self._but(self.text, codes=codes)

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> CsvTable:
        """Return the table with new cells in some columns, and one spelling for each value of the strata."""
        columns = {}
        for name, column in new.items():
            if column.categories is not None:
                cells = pl.Series(column.cells(), dtype=pl.String)
            elif column.scale is not None:
                cells = column.scale.cells(column.values)
            else:
                cells = spelled_numbers(_stored_numbers(column), self.dialect)
            columns[name] = cells.fill_null(pl.lit(column.missing, dtype=pl.String))
        columns |= {name: self._cells(name).replace(dict(changed)) for name, changed in (strata or {}).items()}
        others = [name for name, column in new.items() if column.categories is not None or column.scale is not None]
        numbers = [name for name in {*self._numbers, *new} if name not in others]
        dates = [name for name, column in new.items() if column.scale is not None]
        return self._but(with_cells(self.text, columns), numbers=numbers, texts=[*self._texts, *dates])

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> CsvTable:
        """Return the table with other text in some columns."""
        new = {name: pl.Series(cells, dtype=pl.String) for name, cells in texts.items()}
        return self._but(with_cells(self.text, new))

    def number_type(self, name: Name) -> str | None:
        """Return what a column is stored as: Int64, Float64 or String; None if all its cells are missing."""
        return number_type(self._named(name), self.dialect, codes=name in self._numbers)

    def with_numbers(self, names: Sequence[Name], types: Mapping[Name, pl.DataType]) -> pl.DataFrame:
        """Return the cells, those of some columns as numbers, of others in the types that all parts have."""
        numbers = {name: self._numbers_of(name) for name in names}
        others = {name: as_type(self._named(name), self.dialect, dtype) for name, dtype in types.items()}
        return with_cells(self.text, numbers | others)

    def _cells(self, name: Name) -> pl.Series:
        """Return the cells of a column as they are spelled."""
        return cells_of(self.text, name)

    def _parse(self, name: Name, *, codes: bool) -> pl.Series:
        """Return a column as numbers if all its cells are numbers, else as text."""
        if self._parsed is None:
            return parse_numbers(self._named(name), self.dialect, codes=codes)
        if (name, codes) not in self._parsed:
            parsed = self._parsed[name, codes] = parse_numbers(self._named(name), self.dialect, codes=codes)
            if parsed.dtype.is_numeric() != codes:  # counting codes as numbers makes no difference
                self._parsed[name, not codes] = parsed
        return self._parsed[name, codes]

    def _numbers_of(self, name: Name) -> pl.Series:
        numbers = self._parse(name, codes=True)
        missing = numbers.dtype == pl.String and numbers.str.strip_chars().fill_null("").is_in(MISSING).all()
        return pl.Series([None] * len(numbers), dtype=pl.Float64) if missing else numbers

    def _as_stored(self, name: Name) -> pl.Series:
        parsed = self._cells(name) if name in self._texts else self._meaning(name)
        if name not in self._numbers or parsed.dtype.is_numeric():
            return parsed
        numbers = self._numbers_of(name)
        return numbers if numbers.dtype.is_numeric() else parsed

    def _meaning(self, name: Name) -> pl.Series:
        """Return a column as it is compared: as numbers, or its cells as they are spelled."""
        parsed = self._parse(name, codes=name in self._numbers)
        return parsed if parsed.dtype.is_numeric() else self._cells(name)

    def _coded(self, name: Name) -> pl.Series:
        """Say which cells are codes for missing."""
        return coded_text(self._cells(name), self._codes.get(name, ()), self.dialect)

    def _named(self, name: Name) -> pl.Series:
        """Return the cells without codes for missing that are words: beside them a column may hold numbers."""
        return without_words(self._cells(name), self._codes.get(name, ()))


def _stored_numbers(column: NewColumn) -> pl.Series:
    """Return new values as they are stored; where integers end at 2^63, the nearest float lies beyond them."""
    missing = pl.Series(np.isnan(column.values))
    values = round_to(np.nan_to_num(column.values), "int64") if column.integers else column.values
    return pl.Series(values).set(missing, None)


def read_csv(
    path: Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    numbers: Sequence[str] = (),
) -> CsvTable:
    """Read a CSV file with a header line.

    Parameters
    ----------
    path
        The file.
    delimiter, encoding, decimal
        Taken from the file itself where not given.
    thousands
        The sign between thousands; none if not given.
    numbers
        Columns to read as numbers even if they look like codes (007).
    """
    return _parse(path, path.read_bytes(), numbers, delimiter, encoding, decimal, thousands)


def _parse(
    path: Path,
    raw: bytes,
    numbers: Sequence[str],
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> CsvTable:
    """Read the bytes of a CSV file, or those of its whole lines if they are only its head."""
    signs = delimiter is None or delimiter in TAB or (len(delimiter) == 1 and delimiter.isascii())
    if not signs or delimiter in ('"', "\r", "\n", "\0"):
        raise InputError(
            f"{parameter('delimiter')} must be one ASCII character, such as ';', or 'tab', got {delimiter!r}."
        )
    if decimal not in (None, ".", ","):
        raise InputError(f"{parameter('decimal')} must be '.' or ',', got {decimal!r}.")
    if thousands is not None and (thousands not in SIGNS or thousands == decimal):
        listed = " or ".join(repr(sign) for sign in SIGNS if sign != decimal)
        raise InputError(f"{parameter('thousands')} must be {listed}, and not the decimal sign, got {thousands!r}.")
    content, encoding = _decode(path, raw, encoding)
    if not content.strip():
        raise FileError(f"File {path} is empty: it has no header line and no records. Check the path or the export.")
    newline = _sniff_newline(content[:100_000])
    if len(raw) < path.stat().st_size:
        content = content[: content.rfind(newline) + 1] or content
    delimiter = "\t" if delimiter in TAB else delimiter or _sniff_delimiter(content)
    header = next((row for row in _rows(content[:HEAD], delimiter) if row), [])
    check_names(header)
    for name in numbers:
        if name not in header:
            raise InputError(f"File {path} has no column {name!r}.{closest(name, header)}")
    text = read_text(path, content, header, delimiter)
    dialect = Dialect(delimiter, encoding, decimal or ("," if thousands == "." else "."), newline, thousands)
    if decimal is None and delimiter != "," and thousands not in (".", ","):
        dialect = replace(dialect, decimal=_sniff_decimal(text, dialect))
    return CsvTable(text, dialect, numbers, parsed={})


def read_text(path: Path, content: str, header: Sequence[str], delimiter: str) -> pl.DataFrame:
    """Return the cells of a CSV file as they are spelled; an empty cell is null, a quoted empty one is not."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    raw = content.encode()
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(raw),
            # The header is read as a record: columns of any name, and of none, are found by their place.
            read_options=arrow_csv.ReadOptions(
                column_names=[str(place) for place in range(len(header))], block_size=min(max(len(raw), 1), 1 << 30)
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={str(place): pa.string() for place in range(len(header))},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        # Without the line itself, which is made of values.
        reason = re.sub(r"(got \d+): .*", r"\1", str(error).splitlines()[0])
        raise FileError(
            f"File {path} cannot be read as CSV with delimiter {delimiter!r}: {reason}. Set another delimiter or "
            "repair the lines that have another number of fields than the header."
        ) from None
    text = pl.DataFrame(table.slice(1))
    text.columns = list(header)
    return text


def read_head(path: Path, **csv: str | None) -> CsvTable:
    """Read the first megabyte of a CSV file: its columns, and how it is written."""
    with path.open("rb") as file:
        return _parse(path, file.read(HEAD), (), **csv)


def encode_part(content: str, dialect: Dialect, *, first: bool) -> bytes:
    """Return a part of a CSV file in its encoding; the mark at the start of a file stands once."""
    unmarked = {"utf-8-sig": "utf-8", "utf-16": f"utf-16-{sys.byteorder[0]}e"}
    return content.encode(dialect.encoding if first else unmarked.get(dialect.encoding, dialect.encoding))


def csv_text(frame: pl.DataFrame, dialect: Dialect, *, header: bool = True) -> str:
    """Return a frame as CSV, every cell as polars prints it; durations in ISO 8601."""
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise FileError(f"A CSV file cannot hold column {name!r}, of type {dtype}. Drop it, or write Parquet.")
    frame = frame.with_columns(pl.selectors.duration().dt.to_string("iso"))
    quotes: Literal["always", "necessary"] = "necessary"
    if frame.width == 1:
        # A blank line is no record: a cell that is missing must be seen.
        frame = frame.select(pl.all().cast(pl.String).fill_null(""))
        # Nothing in the file says what its delimiter is: no reader must take a sign within a cell for one.
        ((name, cells),) = named_cells(frame)
        seen = any(sign in name for sign in DELIMITERS) or cells.str.contains_any(list(DELIMITERS)).any()
        quotes = "always" if seen else "necessary"
    return frame.write_csv(
        separator=dialect.delimiter, line_terminator=dialect.newline, include_header=header, quote_style=quotes
    )


def header_text(names: Sequence[str], dialect: Dialect, *, quotes: bool) -> bytes:
    """Return the header of a CSV file in its encoding; in a table of one column, every cell may be in quotes."""
    text = pl.DataFrame(schema=dict.fromkeys(names, pl.String)).write_csv(
        separator=dialect.delimiter, line_terminator=dialect.newline, quote_style="always" if quotes else "necessary"
    )
    return encode_part(text, dialect, first=True)


def write_csv(text: pl.DataFrame, path: Path, dialect: Dialect) -> None:
    """Write a frame, every cell as polars prints it, in the given dialect."""
    content = csv_text(text, dialect)
    try:
        path.write_bytes(content.encode(dialect.encoding))
    except UnicodeEncodeError as error:
        raise FileError(
            f"Encoding {dialect.encoding!r} cannot write {content[error.start : error.end]!r}. Use "
            f"{setting('encoding', 'utf-8')}."
        ) from None


def _decode(path: Path, raw: bytes, encoding: str | None) -> tuple[str, str]:
    """Return bytes as text, and their encoding; of the head of a file the last sign may be cut off."""
    whole = len(raw) >= path.stat().st_size
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    found = [name for mark, name in marks if raw.startswith(mark)] + ["utf-8", "cp1252", "latin-1"]
    if encoding is not None:
        _check_encoding(encoding)
    for candidate in found if encoding is None else [encoding]:
        try:
            return codecs.getincrementaldecoder(candidate)().decode(raw, whole), candidate
        except UnicodeError as error:
            reason = f"byte {error.start} does not fit" if isinstance(error, UnicodeDecodeError) else str(error)
    raise FileError(f"File {path} is not in encoding {encoding!r}: {reason}. Set another encoding.")


def _check_encoding(encoding: object) -> None:
    """Refuse what is not an encoding of text: Python also has codecs that pack bytes (zlib) or turn letters (rot13)."""
    try:
        usable = isinstance(encoding, str) and isinstance("a,1\n".encode(encoding), bytes)
    except (LookupError, ValueError):  # not known, not of text, or of no text at all
        usable = False
    if not usable:
        raise InputError(
            f"{parameter('encoding')} must be a known encoding, got {encoding!r}. Use one of text, such as 'utf-8'."
        )


def _rows(content: str, delimiter: str) -> Iterator[list[str]]:
    """Split text into rows of fields, whatever ends its lines and however long they are."""
    before = csv.field_size_limit(max(len(content), csv.field_size_limit()))
    try:
        # Lines may end in CR alone, which only this way of splitting them knows.
        yield from csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
    finally:
        csv.field_size_limit(before)


def _sniff_newline(content: str) -> str:
    """Find out what ends the lines."""
    return next((end for end in ("\r\n", "\n", "\r") if end in content), "\n")


def _sniff_delimiter(content: str) -> str:
    """Choose the delimiter that splits the first lines into the most fields, as many in each line."""
    head = "".join(content[:200_000].splitlines(keepends=True)[:20])

    def fields(delimiter: str) -> int:
        counts = [len(row) for row in _rows(head, delimiter) if row]
        return counts[0] if len(set(counts)) == 1 else 0

    best = max(DELIMITERS, key=fields)
    return best if fields(best) > 1 else ","


def _sniff_decimal(text: pl.DataFrame, dialect: Dialect) -> str:
    """Say whether the file writes 1,5 for one and a half."""

    def number(name: str, decimal: str) -> bool:
        return is_numeric(cells_of(text, name), replace(dialect, decimal=decimal))

    return "," if any(number(name, ",") and not number(name, ".") for name in text.columns) else "."
