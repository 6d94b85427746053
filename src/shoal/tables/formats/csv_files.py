"""Reading and writing of CSV files. The dialect is detected, cells stay text, and blank lines are not records."""

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

from shoal.core.errors import FileError, InputError, closest
from shoal.core.messages import parameter, setting
from shoal.core.types import Ints
from shoal.kinds.column import MOST, Cells
from shoal.kinds.date import PATTERNS
from shoal.tables.addresses import COMPRESSED
from shoal.tables.columns import (
    Name,
    NewColumn,
    named_cells,
    only_columns,
    round_to,
    with_cells,
)
from shoal.tables.formats.compressed_files import read_bytes, write_bytes
from shoal.tables.formats.text_cells import TextCells
from shoal.tables.formats.title_lines import count_title_lines, without_lines
from shoal.tables.identifiers import LOOKS
from shoal.tables.number_text import (
    Dialect,
    is_numeric,
    number_like,
    plain_numbers,
    present_cells,
    spelled_numbers,
)
from shoal.tables.reading import AS_DETECTED, TAB, ReadingOptions
from shoal.tables.table import Store, Strata, Table, TextColumn, check_names

__all__ = [
    "TextStore",
    "check_header",
    "csv_text",
    "encode_part",
    "header_text",
    "numbered_names",
    "parse_csv",
    "read_csv",
    "read_head",
    "read_text",
    "write_csv",
]

DELIMITERS = (",", ";", "\t", "|")
HEAD = 1_000_000  # bytes from which the dialect of a file is detected
ROWS = 1000  # records with which the first line is compared
EXPONENT = r"[eE][+-]?\d+$"
YEAR = re.compile(r"(1[89]|20)\d\d")


def read_csv(path: Path, *, numbers: Sequence[str] = (), reading: ReadingOptions = AS_DETECTED) -> Table:
    """Read a CSV file; options that are not set are detected from the file, except the thousands separator.

    Columns in `numbers` are read as numbers even if they look like codes (007).
    """
    raw = read_bytes(path) if path.suffix.lower() in COMPRESSED else path.read_bytes()
    return parse_csv(path, raw, numbers, reading, whole=True)


def parse_csv(
    path: Path, raw: bytes, numbers: Sequence[str], reading: ReadingOptions = AS_DETECTED, *, whole: bool
) -> Table:
    """Parse the bytes of a CSV file; unless they are the `whole` file, parse only complete lines."""
    delimiter, decimal, thousands, no_header = reading.delimiter, reading.decimal, reading.thousands, reading.no_header
    content, encoding = _decode(path, raw, reading.encoding, whole=whole)
    if not content.strip():
        raise FileError(f"File {path} is empty: it has no header line and no records. Check the path or the export.")
    newline = _sniff_newline(content[:100_000])
    if not whole:
        content = content[: content.rfind(newline) + 1] or content
    content = _below_titles(path, content, newline, delimiter, reading.skip_rows or 0, no_header=bool(no_header))
    delimiter = "\t" if delimiter in TAB else delimiter or _sniff_delimiter(content)
    header = next((row for row in _rows(content[:HEAD], delimiter) if row), [])
    if no_header:
        header = numbered_names(len(header))
    check_names(header)
    for name in numbers:
        if name not in header:
            raise InputError(f"File {path} has no column {name!r}.{closest(name, header)}")
    text = read_text(path, content, header, delimiter, no_header=bool(no_header))
    dialect = Dialect(delimiter, encoding, decimal or ("," if thousands == "." else "."), newline, thousands)
    if decimal is None and delimiter != "," and thousands not in (".", ","):
        dialect = replace(dialect, decimal=_sniff_decimal(text, dialect))
    return Table(TextStore(text, dialect, numbers, parsed={}))


def _below_titles(
    path: Path, content: str, newline: str, delimiter: str | None, skipped: int, *, no_header: bool
) -> str:
    """Return the content of a file without the skipped lines; refuse title lines that are not skipped."""
    if skipped:
        below = without_lines(content, skipped, newline)
        if below is None:
            raise FileError(f"File {path} has no records below {setting('skip_rows', skipped)}. Skip fewer lines.")
        return below
    signs = DELIMITERS if delimiter is None else ["\t" if delimiter in TAB else delimiter]
    if not no_header and (titles := count_title_lines(content, newline, signs)):
        raise FileError(
            f"File {path} seems to have its header in line {titles + 1}, below lines of titles. Use "
            f"{setting('skip_rows', titles)}, or remove the lines above the header."
        )
    return content


def numbered_names(count: int) -> list[str]:
    """Return names for the columns of a file without a header."""
    return [f"column_{place}" for place in range(1, count + 1)]


def read_text(path: Path, content: str, header: Sequence[str], delimiter: str, *, no_header: bool = False) -> TextCells:
    """Return the cells of a CSV file as text; an empty cell is null, but a quoted empty cell is not."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    raw = content.encode()
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(raw),
            # Read the header as a record and identify columns by position, because names may be any text or empty.
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
            memory_pool=pa.system_memory_pool(),  # other pools do not return freed memory
        )
    except pa.ArrowInvalid as error:
        # Omit the line itself, which contains values of a record.
        reason = re.sub(r"(got \d+): .*", r"\1", str(error).splitlines()[0])
        raise FileError(
            f"File {path} cannot be read as CSV with delimiter {delimiter!r}: {reason}. Set another delimiter or "
            "repair the lines whose number of fields differs from the header."
        ) from None
    return TextCells(table if no_header else table.slice(1), header)


def read_head(path: Path, reading: ReadingOptions = AS_DETECTED) -> Table:
    """Read the first megabyte of a CSV file, which shows its columns and its dialect."""
    with path.open("rb") as file:
        return parse_csv(path, file.read(HEAD), (), reading, whole=path.stat().st_size <= HEAD)


def encode_part(content: str, dialect: Dialect, *, first: bool) -> bytes:
    """Encode a part of a CSV file; only the first part has a byte order mark."""
    unmarked = {"utf-8-sig": "utf-8", "utf-16": f"utf-16-{sys.byteorder[0]}e"}
    return content.encode(dialect.encoding if first else unmarked.get(dialect.encoding, dialect.encoding))


def csv_text(frame: pl.DataFrame, dialect: Dialect, *, header: bool = True) -> str:
    """Return a frame as CSV text in polars' format, with durations in ISO 8601."""
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise FileError(f"A CSV file cannot hold column {name!r}, of type {dtype}. Drop it, or write Parquet.")
    frame = frame.with_columns(pl.selectors.duration().dt.to_string("iso"))
    quotes: Literal["always", "necessary"] = "necessary"
    if frame.width == 1:
        # A blank line is not a record, so a missing cell is written as a quoted empty cell.
        frame = frame.select(pl.all().cast(pl.String).fill_null(""))
        # A file with one column has no delimiter, so quotes keep readers from detecting one within a cell.
        ((name, cells),) = named_cells(frame)
        ambiguous = any(sign in name for sign in DELIMITERS) or cells.str.contains_any(list(DELIMITERS)).any()
        quotes = "always" if ambiguous else "necessary"
    return frame.write_csv(
        separator=dialect.delimiter, line_terminator=dialect.newline, include_header=header, quote_style=quotes
    )


def header_text(names: Sequence[str], dialect: Dialect, *, quotes: bool) -> bytes:
    """Return the encoded header of a CSV file; `quotes` puts quotes around every name, as in some one-column tables."""
    text = pl.DataFrame(schema=dict.fromkeys(names, pl.String)).write_csv(
        separator=dialect.delimiter, line_terminator=dialect.newline, quote_style="always" if quotes else "necessary"
    )
    return encode_part(text, dialect, first=True)


def write_csv(text: pl.DataFrame, path: Path, dialect: Dialect) -> None:
    """Write a frame to a CSV file in a dialect; compress the file if the path ends in .gz or .zst."""
    content = csv_text(text, dialect)
    try:
        raw = content.encode(dialect.encoding)
    except UnicodeEncodeError as error:
        raise FileError(
            f"Encoding {dialect.encoding!r} cannot write {content[error.start : error.end]!r}. Use "
            f"{setting('encoding', 'utf-8')}."
        ) from None
    if path.suffix.lower() in COMPRESSED:
        write_bytes(path, raw)
    else:
        path.write_bytes(raw)


def _decode(path: Path, raw: bytes, encoding: str | None, *, whole: bool) -> tuple[str, str]:
    """Decode bytes; return the text and the encoding. If not `whole`, the last character may be incomplete."""
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    candidates = [name for mark, name in marks if raw.startswith(mark)] + ["utf-8", "cp1252", "latin-1"]
    if encoding is not None:
        _check_encoding(encoding)
    for candidate in candidates if encoding is None else [encoding]:
        try:
            return codecs.getincrementaldecoder(candidate)().decode(raw, whole), candidate
        except UnicodeError as error:
            reason = f"byte {error.start} does not fit" if isinstance(error, UnicodeDecodeError) else str(error)
    raise FileError(f"File {path} is not in encoding {encoding!r}: {reason}. Set another encoding.")


def _check_encoding(encoding: object) -> None:
    """Refuse anything but a text encoding; Python also has other codecs, such as zlib and rot13."""
    try:
        usable = isinstance(encoding, str) and isinstance("a,1\n".encode(encoding), bytes)
    except (LookupError, ValueError):  # unknown or not a text encoding
        usable = False
    if not usable:
        raise InputError(f"{parameter('encoding')} must be a known text encoding, such as 'utf-8', got {encoding!r}.")


def _rows(content: str, delimiter: str) -> Iterator[list[str]]:
    """Split text into rows of fields; lines may have any ending and any length."""
    before = csv.field_size_limit(max(len(content), csv.field_size_limit()))
    try:
        # Only a text stream with newline="" makes the reader recognise lines that end in CR alone.
        yield from csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
    finally:
        csv.field_size_limit(before)


def _sniff_newline(content: str) -> str:
    """Detect the line ending."""
    return next((end for end in ("\r\n", "\n", "\r") if end in content), "\n")


def _sniff_delimiter(content: str) -> str:
    """Detect the delimiter, which splits the first lines into equally many fields and more than other delimiters."""
    head = "".join(content[:200_000].splitlines(keepends=True)[:20])

    def fields(delimiter: str) -> int:
        counts = [len(row) for row in _rows(head, delimiter) if row]
        return counts[0] if len(set(counts)) == 1 else 0

    best = max(DELIMITERS, key=fields)
    return best if fields(best) > 1 else ","


def _sniff_decimal(text: TextCells, dialect: Dialect) -> str:
    """Return "," if a text column is numeric only with decimal commas (1,5), else "."."""

    def number(name: str, decimal: str) -> bool:
        return is_numeric(text.column(name), replace(dialect, decimal=decimal))

    return "," if any(number(name, ",") and not number(name, ".") for name in text.names) else "."


# Columns of text

# Cells are kept as text along with their numbers, so an identifier 007 stays 007, 1.50 stays 1.50 and NA stays NA. In
# masked columns and strata, where records must be identical, a value has one spelling, because 1 and 1.0, or NA and
# an empty cell, would distinguish records.


class TextStore(Store):
    """The cells of a CSV file, or of a part of one, as text; empty cells are null."""

    column = TextColumn
    dialect: Dialect

    def __init__(
        self,
        text: pl.DataFrame | TextCells,
        dialect: Dialect,
        numbers: Collection[Name] = (),  # columns to read as numbers even if they look like codes (007)
        texts: Collection[Name] = (),  # columns that stay text even if they look like numbers: masked dates (20240131)
        parsed: dict[Any, Any] | None = None,  # parsed cells by column; None to keep nothing
    ) -> None:
        self.text = text if isinstance(text, TextCells) else TextCells(text, text.columns)
        self.dialect, self.numbers, self.texts, self.parsed = dialect, numbers, texts, parsed
        self.names, self.rows = self.text.names, self.text.rows

    @property
    def native(self) -> pl.DataFrame:
        """All cells as a frame."""
        return self.text.frame

    def _but(self, text: pl.DataFrame | TextCells, changed: Collection[Name], **reading: Any) -> TextStore:
        """Return a store with new text and the same reading options; drop the parsed cells of the changed columns."""
        parsed = self.parsed
        if parsed is not None:
            parsed = {key: cells for key, cells in parsed.items() if key[0] not in changed}
        same: dict[str, Any] = {"dialect": self.dialect, "numbers": self.numbers, "texts": self.texts, "parsed": parsed}
        return TextStore(text, **(same | reading))

    def take(self, rows: Ints) -> TextStore:
        """Return the store with only the records at positions `rows`."""
        return self._but(self.text.take(rows), self.names)

    def only(self, names: Sequence[Name]) -> TextStore:
        """Return the store with only the columns `names`."""
        return self._but(only_columns(self.native, names), (), parsed=self.parsed)

    def in_own_dialect(self, delimiter: str, numeric: Sequence[Name]) -> TextStore:
        """Return the store with decimal points and without thousands separators in numeric columns."""
        numbers = {name: plain_numbers(self.text.column(name), self.dialect) for name in numeric}
        return self._but(with_cells(self.native, numbers), self.names, dialect=Dialect(delimiter))

    def released(self, new: Mapping[Name, NewColumn], strata: Strata) -> TextStore:
        """Return the store with new cells in some columns and one spelling per stratum value."""
        columns = {}
        for name, column in new.items():
            if column.categories is not None:
                texts = replace(column, categories=tuple(map(str, column.categories)))
                cells = pl.Series(texts.cells(), dtype=pl.String)
            elif column.scale is not None:
                cells = column.scale.cells(column.values)
            else:
                cells = spelled_numbers(_stored_numbers(column), self.dialect)
            columns[name] = cells.fill_null(pl.lit(column.missing, dtype=pl.String))
        columns |= {name: self.text.column(name).replace(dict(changed)) for name, changed in strata.items()}
        others = [name for name, column in new.items() if column.categories is not None or column.scale is not None]
        numbers = [name for name in {*self.numbers, *new} if name not in others]
        dates = [name for name, column in new.items() if column.scale is not None]
        return self._but(with_cells(self.native, columns), columns, numbers=numbers, texts=[*self.texts, *dates])

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> TextStore:
        """Return the store with some columns replaced by text."""
        new = {name: pl.Series(cells, dtype=pl.String) for name, cells in texts.items()}
        return self._but(with_cells(self.native, new), new)


def _stored_numbers(column: NewColumn) -> pl.Series:
    """Return new values in their stored type; integers are clipped below 2^63, which 64-bit integers cannot hold."""
    missing = pl.Series(np.isnan(column.values))
    values = round_to(np.nan_to_num(column.values), "int64") if column.integers else column.values
    return pl.Series(values).set(missing, None)


# Header lines. A file without a header line would release its first record as column names


def check_header(path: Path, table: Table, skipped: int | None = None) -> None:
    """Refuse a CSV or Excel file whose first line looks like the records below.

    A column name differs from its cells: it is not a number above numbers, a date above dates or an e-mail address
    above such addresses. Names that are numbers are accepted if they number the columns (1, 2, 3) or are years (2019,
    2020). A line of text counts as a record if most of its cells occur again below, each in its column.
    """
    first = table.take(np.arange(min(ROWS, table.rows)))
    names = [str(name).strip() for name in table.names]
    present = first.cells(table.names).select(present_cells(pl.all().cast(pl.String, strict=False)))
    cells = [column.drop_nulls() for column in present.get_columns()]
    like_record = _alike(names, cells) or _numbers(names, cells) or _repeated(names, cells)
    if like_record:
        line = (skipped or 0) + 1
        # The message omits the name, which may be a value of a record.
        raise FileError(
            f"File {path} seems to have no header line: in line {line}, column {like_record[0] + 1} looks like the "
            "cells below it. Add a first line with the names of the columns, or use "
            f"{setting('no_header', True)} to call them column_1, column_2 and so on. If line {line} has the names, "
            "rename those that look like values, such as '2019' to 'y2019'."
        )


def _alike(names: Sequence[str], columns: Sequence[pl.Series]) -> list[int]:
    """Return the columns whose name and cells match the same pattern, such as that of dates or e-mail addresses."""
    patterns = {**PATTERNS, **LOOKS}
    alike = []
    for place, (name, cells) in enumerate(zip(names, columns, strict=True)):
        of_name = {what: pattern for what, pattern in patterns.items() if pattern.fullmatch(name[:200])}
        if of_name and Cells.of(cells).first_like(of_name) is not None:
            alike.append(place)
    return alike


def _numbers(names: Sequence[str], columns: Sequence[pl.Series]) -> list[int]:
    """Return the columns of numbers whose name is a number, unless such names number the columns or are years."""
    numeric = [place for place, like in enumerate(_named_by_numbers(names, columns)) if like]
    alike = [place for place in numeric if _are_numbers(columns[place])]
    if not alike:
        return []
    if _number_columns(names, columns, numeric) or _are_years(names, columns, numeric, alike):
        return []
    return alike


def _named_by_numbers(names: Sequence[str], columns: Sequence[pl.Series]) -> list[bool]:
    """Return, per column, True if its name is a number; GDP 2020 counts only above cells such as EUR 500."""
    words = pl.Series(names, dtype=pl.String)
    lettered = _has_letters(words)
    return [
        bool(like) and (not lettered[place] or MOST * len(columns[place]) <= _has_letters(columns[place]).sum())
        for place, like in enumerate(number_like(words))
    ]


def _has_letters(cells: pl.Series) -> pl.Series:
    """Return a mask of the cells with a letter other than the e of an exponent."""
    return cells.str.replace_all(EXPONENT, "").str.contains(r"\p{L}")


def _are_numbers(cells: pl.Series) -> bool:
    """Return whether most cells are written like numbers."""
    return 0 < MOST * len(cells) <= int(number_like(cells).sum())


def _number_columns(names: Sequence[str], columns: Sequence[pl.Series], numeric: Sequence[int]) -> bool:
    """Return whether the numeric names are numbers of columns, counted from 0 or 1.

    There must be at least three, or all names after an empty name, as pandas writes them. The names are taken as a
    record if each name also occurs among the cells below it.
    """
    numbers = [names[place] for place in numeric]
    if numbers not in [[str(first + i) for i in range(len(numbers))] for first in (0, 1)]:
        return False
    after_index = not names[0] and len(numbers) == len(names) - 1
    return (after_index or len(numbers) >= 3) and not all(names[place] in columns[place] for place in numeric)


def _are_years(
    names: Sequence[str], columns: Sequence[pl.Series], numeric: Sequence[int], alike: Sequence[int]
) -> bool:
    """Return whether all numeric names are different years above cells that are not years.

    A single year may also be a value of the first record, unless it is outside the range of the numbers below it.
    """
    years = [names[place] for place in numeric]
    if not all(map(YEAR.fullmatch, years)) or any(Cells.of(columns[place]).look_like(YEAR) for place in alike):
        return False
    if len(years) > 1:
        return len({*years}) == len(years)
    below = pl.concat([columns[place].cast(pl.Float64, strict=False) for place in alike]).drop_nulls()
    return not (below <= float(years[0])).any() or not (below >= float(years[0])).any()


def _repeated(names: Sequence[str], columns: Sequence[pl.Series]) -> list[int]:
    """Return the columns whose non-numeric name also occurs among their cells, if these are most of the columns.

    Columns with one or two values are not evidence, because a survey may name a column after the ticked answer.
    """
    numeric = _named_by_numbers(names, columns)
    among = [place for place, name in enumerate(names) if not numeric[place] and name in columns[place]]
    varied = any(columns[place].n_unique() > 2 for place in among)
    return among if varied and len(among) > 1 and 2 * len(among) > len(names) else []
