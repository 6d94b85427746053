"""Tables of text, as CSV files hold them: read as numbers, and written back as they were read.

All cells are kept as text beside the parsed numbers, so an identifier 007 stays 007, 1.50 stays 1.50 and a cell NA
stays NA. Where records must look alike, in masked columns and strata, a value has one spelling: 1 beside 1.0, or NA
beside an empty cell, would tell records apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from shoal.core.errors import InputError, VerificationError
from shoal.core.messages import parameter, setting
from shoal.core.types import Bools, Ints, Spelling
from shoal.kernels.words import Words
from shoal.kinds.column import MISSING, Column, composed, composed_cells
from shoal.kinds.date import Date, check_no_dates, read_dates
from shoal.kinds.time_scale import Span, span_of
from shoal.tables.columns import (
    Code,
    Codes,
    Name,
    NewColumn,
    TextNumbers,
    as_number,
    cell_words,
    column_of,
    is_coded,
    mostly_numbers,
    not_numeric,
    number_like,
    only_columns,
    round_to,
    with_cells,
)
from shoal.tables.table import Table

__all__ = [
    "CsvTable",
    "Dialect",
    "coded_text",
    "common_type",
    "is_numeric",
    "number_type",
    "one_spelling",
    "parse_numbers",
    "present_cells",
    "text_numbers",
    "without_words",
]

SIGNS = {".": r"\.", ",": ",", " ": r"[ \u00a0\u202f]", "'": "['’]"}  # between thousands, as patterns
# 007 and 0123 are codes, not numbers.
CODE = r"^[+-]?0\d"
DOTTED_DATE = r"^\d{1,2}\.\d{1,2}\.(?:\d\d|\d{4})$|^\d{4}\.\d{1,2}\.\d{1,2}$"  # no number with two points
PADDED_SHARE = 0.05  # of numbers that begin with 0 where they are codes
SAMPLE = 2000  # cells of a text that are looked at for numbers

Texts = TypeVar("Texts", "pl.Series", "pl.Expr")  # not evaluated: workers import polars only if they need it


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    newline: str = "\n"
    thousands: str | None = None


class CsvTable(Table):
    """A CSV file, or a part of one: its cells as text, and the numbers that they mean."""

    dialect: Dialect

    def __init__(
        self,
        text: pl.DataFrame,  # the cells as they are spelled; null where there is nothing between two delimiters
        dialect: Dialect,
        numbers: Collection[Name] = (),  # columns to read as numbers even if they look like codes (007)
        codes: Codes | None = None,  # cells that mean missing, by column
        texts: Collection[Name] = (),  # columns that stay text whatever they look like: masked dates (20240131)
        parsed: dict[tuple[Name, bool], pl.Series] | None = None,  # by name and whether codes count as numbers
    ) -> None:
        self.text, self.dialect, self._numbers, self.codes, self._texts = text, dialect, numbers, codes or {}, texts
        self._parsed = parsed  # None to keep none of them
        self.names, self.rows = text.columns, len(text)
        self._cells = {column.name: column.alias("") for column in text.get_columns()}

    def _but(self, text: pl.DataFrame, **changed: Any) -> CsvTable:
        """Return a table that is read likewise, with other cells."""
        parsed: dict[Any, pl.Series] | None = None if self._parsed is None else {}
        same: dict[str, Any] = {"numbers": self._numbers, "codes": self.codes, "texts": self._texts, "parsed": parsed}
        return CsvTable(text, **({"dialect": self.dialect} | same | changed))

    @property
    def native(self) -> pl.DataFrame:
        """The table with numbers where all cells of a column are numbers, or would be if they were not missing."""
        return with_cells(self.text, {name: self._as_stored(name) for name in self.names})

    def numeric_names(self) -> list[Name]:
        """Return the columns of which all cells are numbers."""
        return [name for name in self.names if self._meaning(name).dtype.is_numeric()]

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as numbers, codes such as 007 too."""
        numbers = self._numbers_of(name)
        if not numbers.dtype.is_numeric():
            raise not_numbers(name, self._named(name), self.dialect, first)
        return column_of(name, numbers.set(self._coded(name), None))

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return the dates or times that the cells say."""
        cells, formats = read_dates(name, self.categories(name), kind, first)
        return cells, span_of(cells, pl.String, formats)

    def categories(self, name: Name, first: int = 0, *, named: bool = True) -> pl.Series:
        """Return the cells as text; a column of which most values are numbers is no column of categories by itself."""
        cells = self._cells[name]
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
        meanings = [self._meaning(name) for name in names]
        forms = [composed_cells(cells) if cells.dtype == pl.String else cells for cells in meanings]
        return pl.DataFrame([cells.alias(str(place)) for place, cells in enumerate(forms)])

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return the cells as they are spelled."""
        return pl.DataFrame([self._cells[name].alias(str(i)) for i, name in enumerate(names)])

    def counted(self, name: Name) -> pl.Series:
        """Return a column as it is counted: as numbers, or as categories."""
        cells = self._meaning(name)
        return self.categories(name) if cells.dtype == pl.String else cells

    def csv_frame(self) -> pl.DataFrame:
        """Return the cells as they are spelled."""
        return self.text

    def spellings(self, name: Name, missing: Bools) -> frozenset[Spelling]:
        """Return the different texts of missing cells."""
        return frozenset(self._cells[name].filter(pl.Series(missing)).unique())

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return a word for each text or number, once it is sure that no number is spelled in two ways."""
        coded = self._coded(name)
        if category:
            return cell_words(self._cells[name].set(coded, None), category=True)
        cells, numbers = self._cells[name], self._numbers_of(name)
        numbers = numbers.set(coded, None)
        if not numbers.dtype.is_numeric() or not (spelled_numbers(numbers, self.dialect) == cells).drop_nulls().all():
            raise VerificationError(f"Column {name!r} has numbers spelled in several ways. Nothing was released.")
        return cell_words(numbers)

    def take(self, rows: Ints) -> CsvTable:
        """Return some of the records."""
        same = len(rows) == len(self.text) and np.array_equal(rows, np.arange(len(rows)))
        return self if same else self._but(self.text[rows])

    def only(self, names: Sequence[Name]) -> CsvTable:
        """Return some of the columns."""
        return self._but(only_columns(self.text, names), parsed=self._parsed)

    def in_own_dialect(self, delimiter: str = ",") -> CsvTable:
        """Return the table as a CSV file of ours is written, whatever the dialect of the file that it came from."""
        numbers = {name: plain_numbers(self._cells[name], self.dialect) for name in self.numeric_names()}
        return self._but(with_cells(self.text, numbers), dialect=Dialect(delimiter))

    def coded(self, codes: Codes) -> CsvTable:
        """Return the table with codes for missing."""
        return self if codes == self.codes else self._but(self.text, codes=codes)

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> CsvTable:
        """Return the table with new cells in some columns, and one spelling for each value of the strata."""
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
        columns |= {name: self._cells[name].replace(dict(changed)) for name, changed in (strata or {}).items()}
        others = [name for name, column in new.items() if column.categories is not None or column.scale is not None]
        numbers = [name for name in {*self._numbers, *new} if name not in others]
        dates = [name for name, column in new.items() if column.scale is not None]
        return self._but(with_cells(self.text, columns), numbers=numbers, texts=[*self._texts, *dates])

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> CsvTable:
        """Return the table with other text in some columns."""
        new = {name: pl.Series(cells, dtype=pl.String) for name, cells in texts.items()}
        return self._but(with_cells(self.text, new))

    def find_thousands(self, decimal: str | None = None) -> str | None:
        """Return the sign between thousands, if columns of text are numbers with it and no other number is lost by it.

        `decimal` is the decimal sign, if it is known.

        Examples
        --------
        >>> table = CsvTable(pl.DataFrame({"pay": ["90.000,50", "850,25"], "age": ["31", "47"]}), Dialect(";"))
        >>> table.find_thousands()
        '.'
        """
        numeric = self.numeric_names()
        for sign in SIGNS:
            signs = [other for other in ".," if other != sign and decimal in (None, other)]
            for dialect in (replace(self.dialect, thousands=sign, decimal=other) for other in signs):
                pattern = _grouped(sign, dialect.decimal)
                grouped = [
                    name for name, text in self._cells.items() if text.str.strip_chars().str.contains(pattern).any()
                ]
                if any(is_numeric(self._cells[name], dialect) for name in grouped if name not in numeric) and all(
                    is_numeric(self._cells[name], dialect) for name in numeric
                ):
                    return sign
        return None

    def text_types(self, names: Sequence[Name]) -> dict[Name, str | None]:
        """Return what columns are stored as: Int64, Float64 or String; None if all their cells are missing."""
        return {name: number_type(self._named(name), self.dialect, codes=name in self._numbers) for name in names}

    def arrow_part(self, numbers: Sequence[Name], types: Mapping[Name, pl.DataType]) -> Any:
        """Return the cells in Arrow, some columns as numbers, others in the types that all parts have."""
        cells = {name: self._numbers_of(name) for name in numbers}
        cells |= {name: as_type(self._named(name), self.dialect, dtype) for name, dtype in types.items()}
        return with_cells(self.text, cells).to_arrow()

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
        parsed = self._cells[name] if name in self._texts else self._meaning(name)
        if name not in self._numbers or parsed.dtype.is_numeric():
            return parsed
        numbers = self._numbers_of(name)
        return numbers if numbers.dtype.is_numeric() else parsed

    def _meaning(self, name: Name) -> pl.Series:
        """Return a column as it is compared: as numbers, or its cells as they are spelled."""
        parsed = self._parse(name, codes=name in self._numbers)
        return parsed if parsed.dtype.is_numeric() else self._cells[name]

    def _coded(self, name: Name) -> pl.Series:
        """Say which cells are codes for missing."""
        return coded_text(self._cells[name], self.codes.get(name, ()), self.dialect)

    def _named(self, name: Name) -> pl.Series:
        """Return the cells without codes for missing that are words: beside them a column may hold numbers."""
        return without_words(self._cells[name], self.codes.get(name, ()))


def _stored_numbers(column: NewColumn) -> pl.Series:
    """Return new values as they are stored; where integers end at 2^63, the nearest float lies beyond them."""
    missing = pl.Series(np.isnan(column.values))
    values = round_to(np.nan_to_num(column.values), "int64") if column.integers else column.values
    return pl.Series(values).set(missing, None)


def coded_text(text: pl.Series, codes: Sequence[Code], dialect: Dialect) -> pl.Series:
    """Say which cells are codes for missing, as text or as the number that they mean."""
    if not codes:
        return pl.repeat(value=False, n=len(text), dtype=pl.Boolean, eager=True)
    return is_coded(text, codes, plain_numbers(text.str.strip_chars(), dialect).cast(pl.Float64, strict=False))


def without_words(text: pl.Series, codes: Sequence[Code]) -> pl.Series:
    """Return cells with null in the place of codes that are no numbers."""
    words = [composed(code) for code in codes if isinstance(code, str) and as_number(code) is None]
    return text.set(composed_cells(text).str.strip_chars().is_in(words), None) if words else text


def spelled_numbers(numbers: pl.Series, dialect: Dialect) -> pl.Series:
    """Return numbers as they are written."""
    return numbers.cast(pl.String).str.replace(".", dialect.decimal, literal=True)


def one_spelling(text: pl.Series, values: pl.Series | None = None) -> pl.Series:
    """Return the cells with one spelling for each value.

    Of several spellings the shortest is taken, the first of these by the alphabet; missing cells become empty.
    `values` are what the cells mean; without them, all are missing.

    Examples
    --------
    >>> one_spelling(pl.Series(["1.0", "1", "NA", ""]), pl.Series([1.0, 1.0, None, None])).to_list()
    ['1', '1', None, None]
    """
    values = pl.Series([None] * len(text), dtype=pl.Float64) if values is None else values
    cells = pl.DataFrame({"text": text, "value": values})
    spellings = cells.unique().sort(pl.col("text").str.len_bytes(), "text", nulls_last=False)
    chosen = spellings.group_by("value").agg(pl.col("text").first().alias("spelling"), pl.len().alias("many"))
    if (chosen["many"] == 1).all():
        return text
    empty = pl.col("value").is_null() & (pl.col("many") > 1)
    chosen = chosen.with_columns(pl.when(empty).then(None).otherwise("spelling").alias("spelling"))
    spelled = cells.join(chosen, on="value", how="left", nulls_equal=True, maintain_order="left")["spelling"]
    return spelled.alias(text.name)


def parse_numbers(series: pl.Series, dialect: Dialect, *, codes: bool) -> pl.Series:
    """Return the column as Int64 or Float64 where every cell is a number or missing, else as it is."""
    cells = present_cells(series)
    present = cells.len() - cells.null_count()
    if present == 0 or (not codes and cells.str.contains(CODE).any()):
        return series
    cells = plain_numbers(cells, dialect)
    for kind in (pl.Int64, pl.Float64):
        parsed = cells.cast(kind, strict=False)
        if parsed.len() - parsed.null_count() == present:
            return parsed
    return series


def number_type(series: pl.Series, dialect: Dialect, *, codes: bool) -> str | None:
    """Return what a column of text holds: Int64, Float64 or String; None if every cell is missing."""
    parsed = parse_numbers(series, dialect, codes=codes)
    if parsed.dtype == pl.String and present_cells(series).null_count() == len(series):
        return None
    return str(parsed.dtype)


def common_type(types: Iterable[str | None]) -> pl.DataType:
    """Return the type of a column whose parts hold these.

    Examples
    --------
    >>> common_type(["Int64", None, "Float64"]), common_type(["Int64", "String"]), common_type([None])
    (Float64, String, String)
    """
    present = set(types) - {None}
    if not present or "String" in present:
        return pl.String()
    return pl.Int64() if present == {"Int64"} else pl.Float64()


def as_type(series: pl.Series, dialect: Dialect, dtype: pl.DataType) -> pl.Series:
    """Return a column of text as numbers, if that is the type that it has in all parts of the table."""
    return series if dtype == pl.String else plain_numbers(present_cells(series), dialect).cast(dtype)


def present_cells(cells: Texts) -> Texts:
    """Return the cells without spaces around them, null where they are missing."""
    return cells.str.strip_chars().replace(dict.fromkeys(MISSING))


def plain_numbers(cells: pl.Series, dialect: Dialect) -> pl.Series:
    """Return cells with a decimal point and no thousands signs; what is no number in the dialect stays none."""
    if dialect.thousands is not None:
        grouped = cells.str.contains(_grouped(dialect.thousands, dialect.decimal))
        cells = cells.str.replace_all(SIGNS[dialect.thousands], "").zip_with(grouped, cells)
    if dialect.decimal == ",":
        cells = cells.str.replace_all(".", "no point", literal=True).str.replace(",", ".", literal=True)
    return cells


def _grouped(thousands: str, decimal: str) -> str:
    """Return the pattern of numbers with a thousands sign: 1.5 is none, whatever sign the point is."""
    return rf"^[+-]?[1-9]\d{{0,2}}(?:{SIGNS[thousands]}\d{{3}})+(?:{SIGNS[decimal]}\d*)?$"


def is_numeric(cells: pl.Series, dialect: Dialect) -> bool:
    """Say whether every cell that is not missing is a number."""
    return parse_numbers(cells, dialect, codes=False).dtype.is_numeric()


def not_numbers(name: Name, text: pl.Series, dialect: Dialect, first: int) -> InputError:
    """Say which cell of a column is no number, and how it can be read as one."""
    cells = present_cells(text)
    wrong = _not_numbers(cells, dialect)
    record = int(wrong.arg_max() or 0)
    return not_numeric(
        name, f"record {first + record + 1} holds {text[record]!r}", _way_to_read(cells.filter(wrong), dialect)
    )


def text_numbers(text: pl.Series, dialect: Dialect | None, first: int) -> TextNumbers:
    """Look for numbers in a text column, and for the first cell that is not a number.

    Padded codes, such as 007, are no numbers unless few of the cells are padded. `dialect` is None outside CSV files.
    """
    cells = present_cells(text)
    present = cells.drop_nulls()
    sample = present.gather_every(max(1, len(present) // SAMPLE)).unique()
    numbers, values = int((number_like(sample) & ~sample.str.contains(DOTTED_DATE)).sum()), len(sample)
    if not numbers or PADDED_SHARE * numbers <= sample.str.contains(CODE).sum():
        return TextNumbers(0, values)
    wrong = _not_numbers(cells, dialect or Dialect()) | cells.str.contains(CODE).fill_null(value=False)
    if not wrong.any():
        return TextNumbers(numbers, values)
    record = int(wrong.arg_max() or 0)
    remedy = "Correct the cell, or turn the column into numbers."
    if dialect is not None:
        remedy = _way_to_read(cells.filter(wrong), dialect) or (
            f"Correct the cell or remove its line, or name the cell in {parameter('missing_codes')} if it means "
            "missing."
        )
    return TextNumbers(numbers, values, f"record {first + record + 1} holds {text[record]!r}", remedy)


def _not_numbers(cells: pl.Series, dialect: Dialect) -> pl.Series:
    """Return for each cell whether it is neither a number nor missing."""
    return cells.is_not_null() & plain_numbers(cells, dialect).cast(pl.Float64, strict=False).is_null()


def _way_to_read(wrong: pl.Series, dialect: Dialect) -> str:
    """Say how cells can be read as numbers that hold a currency or a sign between thousands; empty if they do not."""
    if wrong.str.contains(r"\p{Sc}|^[A-Z]{3}\s?\d|\d\s?[A-Z]{3}$").any():
        return "Remove the currency from the cells: it is not part of a number."
    for thousands in SIGNS:
        for decimal in {".": ",", ",": "."}.get(thousands, ".,"):
            if wrong.str.contains(_grouped(thousands, decimal)).any():
                also = f", {setting('decimal', decimal)}" * (thousands in " '" and decimal != dialect.decimal)
                return f"Use {setting('thousands', thousands)}{also} if that sign separates thousands."
    return ""
