"""Numbers in text: their spelling, their parsing, and remedies for text that is almost a number.

A number may have several spellings: 1, 1.0 and 1,0. Padded digits, such as 007, are codes rather than numbers, unless
the user declares them as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Name
from shoal.kinds.column import MISSING

__all__ = [
    "CODE",
    "SIGNS",
    "Dialect",
    "TextNumbers",
    "as_type",
    "check_no_numbers",
    "common_type",
    "find_thousands",
    "is_numeric",
    "mostly_numbers",
    "no_numbers",
    "not_numbers",
    "not_numeric",
    "number_like",
    "number_type",
    "one_spelling",
    "parse_numbers",
    "plain_numbers",
    "present_cells",
    "spelled_numbers",
    "text_numbers",
]

SIGNS = {".": r"\.", ",": ",", " ": r"[ \u00a0\u202f]", "'": "['’]"}  # thousands separators as patterns
# 007 and 0123 are codes, not numbers.
CODE = r"^\s*[+-]?0\d"
DOTTED_DATE = r"^\d{1,2}\.\d{1,2}\.(?:\d\d|\d{4})$|^\d{4}\.\d{1,2}\.\d{1,2}$"  # a date, not a number with two points
# Numbers may have a currency, unit, thousands separator or percent sign, or parentheses if they are negative.
NUMBER_LIKE = (
    r"^[\s\p{Sc}+\u{2212}(-]*(?:[A-Z]{3}\s?)?\d[\d.,'’\s]*(?:[eE][+-]?\d+)?"
    r"(?:\s?[A-Z]{3}|\s[a-zµ]{1,3})?[\s\p{Sc}%)]*$"
)
PADDED_SHARE = 0.05  # minimum share of numbers with a leading 0 in a column of codes
GLANCE = 1000  # first cells, which suffice to rule out most text columns
SAMPLE = 2000  # cells of a text column that are searched for numbers

Texts = TypeVar("Texts", "pl.Series", "pl.Expr")  # names in quotes, as workers import polars only if they need it


@dataclass(frozen=True)
class Dialect:
    """Dialect of a CSV file: delimiter, encoding, number format and line ending."""

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    newline: str = "\n"
    thousands: str | None = None


class TextNumbers(NamedTuple):
    """Counts of numbers in a text column of a table or of a part, and the reason why the column is text."""

    numbers: int  # distinct values written like numbers, in a sample of the cells
    values: int  # all distinct values of the sample
    cause: str = ""  # the reason why the column is text; empty if this part has none
    remedy: str = ""  # a way to read the column as numbers


# Reading and writing


def parse_numbers(series: pl.Series, dialect: Dialect, *, codes: bool) -> pl.Series:
    """Return a text column as Int64 or Float64 if every cell is a number or missing, else unchanged."""
    if not _may_be_numbers(series, dialect):
        return series
    plain = _plainly_spelled(series, dialect)
    if plain is not None:
        return plain if codes or not series.str.contains(CODE).any() else series
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


def _may_be_numbers(series: pl.Series, dialect: Dialect) -> bool:
    """Return whether all of the first cells are numbers or missing, so the column may be numeric."""
    return not _not_numbers(present_cells(series.head(GLANCE)), dialect).any()


def _plainly_spelled(series: pl.Series, dialect: Dialect) -> pl.Series | None:
    """Return the numbers of a column without spaces or words for missing values; None for other columns."""
    absent = series.null_count()
    for kind in (pl.Int64, pl.Float64) if dialect.decimal == "." else (pl.Int64,):
        parsed = series.cast(kind, strict=False)
        if absent == parsed.null_count() < len(series):
            return None if kind == pl.Float64 and parsed.is_nan().any() else parsed
    return None


def parse_columns(texts: Sequence[pl.Series], dialect: Dialect) -> list[tuple[pl.Series, bool]]:
    """Parse each column with `parse_numbers`, reading codes as numbers; also return True if the column has codes."""
    parsed = [parse_numbers(text, dialect, codes=True) for text in texts]
    return [
        (cells, cells.dtype.is_numeric() and bool(text.str.contains(CODE).any()))
        for cells, text in zip(parsed, texts, strict=True)
    ]


def number_type(series: pl.Series, dialect: Dialect, *, codes: bool) -> str | None:
    """Return the type of the values in a text column: Int64, Float64 or String; None if every cell is missing."""
    parsed = parse_numbers(series, dialect, codes=codes)
    if parsed.dtype == pl.String and present_cells(series).null_count() == len(series):
        return None
    return str(parsed.dtype)


def common_type(types: Iterable[str | None]) -> pl.DataType:
    """Return the common type of a column whose parts have these types.

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
    """Return a text column in its common type: unchanged for String, else as numbers."""
    return series if dtype == pl.String else plain_numbers(present_cells(series), dialect).cast(dtype)


def is_numeric(cells: pl.Series, dialect: Dialect) -> bool:
    """Return whether all non-missing cells are numbers."""
    return parse_numbers(cells, dialect, codes=False).dtype.is_numeric()


def present_cells(cells: Texts) -> Texts:
    """Return the cells without surrounding spaces, with null for missing values."""
    return cells.str.strip_chars().replace(dict.fromkeys(MISSING))


def plain_numbers(cells: pl.Series, dialect: Dialect) -> pl.Series:
    """Return text with a decimal point and no thousands separators in numbers; other text stays non-numeric."""
    if dialect.thousands is not None:
        grouped = cells.str.contains(_grouped(dialect.thousands, dialect.decimal))
        cells = cells.str.replace_all(SIGNS[dialect.thousands], "").zip_with(grouped, cells)
    if dialect.decimal == ",":
        cells = cells.str.replace_all(".", "no point", literal=True).str.replace(",", ".", literal=True)
    return cells


def _grouped(thousands: str, decimal: str) -> str:
    """Return the pattern of numbers with a thousands separator; 1.5 never matches."""
    return rf"^[+-]?[1-9]\d{{0,2}}(?:{SIGNS[thousands]}\d{{3}})+(?:{SIGNS[decimal]}\d*)?$"


def find_thousands(
    texts: Sequence[pl.Series],
    dialect: Dialect,
    decimal: str | None = None,
    *,
    suits: Callable[[Dialect], bool] | None = None,
) -> str | None:
    """Return the thousands separator with which a text column is numeric and no numeric column is lost; else None.

    `decimal` is the decimal sign, if known. `suits` returns whether numeric columns stay numeric in another dialect.

    Examples
    --------
    >>> find_thousands([pl.Series(["90.000,50", "850,25"])], Dialect(";"))
    '.'
    """
    for sign in SIGNS:
        for point in (point for point in ".," if point != sign and decimal in (None, point)):
            other, pattern = replace(dialect, thousands=sign, decimal=point), _grouped(sign, point)
            likely = (text for text in texts if _may_be_numbers(text, other))
            grouped = (text for text in likely if text.str.strip_chars().str.contains(pattern).any())
            if any(is_numeric(text, other) for text in grouped) and (suits is None or suits(other)):
                return sign
    return None


def spelled_numbers(numbers: pl.Series, dialect: Dialect) -> pl.Series:
    """Return numbers as text in the dialect."""
    return numbers.cast(pl.String).str.replace(".", dialect.decimal, literal=True)


def one_spelling(text: pl.Series, values: pl.Series | None = None) -> pl.Series:
    """Return the cells with one spelling for each value.

    The shortest of several spellings is used; ties are resolved alphabetically. Missing cells with several spellings
    become null. `values` are the values of the cells; by default, all are missing.

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


# Text that is not a number, or should be one


def number_like(cells: pl.Series) -> pl.Series:
    """Return a mask of the text cells that are written like numbers.

    Examples
    --------
    >>> number_like(pl.Series(["1,234", "-7.5 %", "12a"])).to_list()
    [True, True, False]
    """
    return cells.str.contains(NUMBER_LIKE)


def mostly_numbers(text: pl.Series) -> bool:
    """Return whether most distinct values of a text column are written like numbers, so it is not categorical."""
    values = text.drop_nulls().unique()
    return 2 * int(number_like(values).sum()) > len(values)


def text_numbers(text: pl.Series, dialect: Dialect | None, first: int) -> TextNumbers:
    """Count the numbers in a text column, and find the first cell that is not a number.

    Padded codes, such as 007, are not numbers unless few of the cells are padded. `dialect` is None except for CSV
    files.
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
    remedy = "Correct the cell, or convert the column to numbers."
    if dialect is not None:
        remedy = _way_to_read(cells.filter(wrong), dialect) or (
            f"Correct the cell or remove its line, or add its value to {parameter('missing_codes')} if that means "
            "missing."
        )
    return TextNumbers(numbers, values, f"record {first + record + 1} holds {text[record]!r}", remedy)


def check_no_numbers(name: Name, parts: Sequence[TextNumbers]) -> None:
    """Refuse a text column that consists mostly of numbers and has no role."""
    if 2 * sum(part.numbers for part in parts) <= sum(part.values for part in parts):
        return
    unexplained = TextNumbers(0, 0, "its type is text", "Convert it to numbers.")
    example = next((part for part in parts if part.cause), unexplained)
    raise InputError(
        f"Column {name!r} contains numbers, but {example.cause}. {example.remedy} To mask it as categories, use "
        f"{setting('kinds', {name: 'Nominal()'})}; to drop the column, use {setting('identifiers', [name])}; to "
        f"release it unmasked, use {setting('keep', [name])}."
    )


def not_numeric(name: Name, content: str, remedy: str = "") -> InputError:
    """Return the error for a column that must be numeric but has other content."""
    remedy = remedy or (
        f"Leave the column out, convert it to numbers, or use {setting('kinds', {name: 'Nominal()'})} for categories."
    )
    return InputError(f"Column {name!r} must be numeric, but {content}. {remedy}")


def not_numbers(name: Name, text: pl.Series, dialect: Dialect, first: int) -> InputError:
    """Return the error for the first non-numeric cell of a column, with a remedy."""
    cells = present_cells(text)
    wrong = _not_numbers(cells, dialect)
    record = int(wrong.arg_max() or 0)
    return not_numeric(
        name, f"record {first + record + 1} holds {text[record]!r}", _way_to_read(cells.filter(wrong), dialect)
    )


def no_numbers(name: Name, cells: Sequence[object], kind: str, first: int) -> InputError:
    """Return the error for the first text cell that is not a number, or for the type of the column."""
    texts = ((record, cell) for record, cell in enumerate(cells, first + 1) if isinstance(cell, str))
    wrong = (f"record {record} holds {cell!r}" for record, cell in texts if not _is_number(cell))
    return not_numeric(name, next(wrong, f"its type is {kind}"))


def _is_number(text: str) -> bool:
    try:
        float(text.strip() or "0")
    except ValueError:
        return False
    return True


def _not_numbers(cells: pl.Series, dialect: Dialect) -> pl.Series:
    """Return a mask of the cells that are neither numbers nor missing."""
    return cells.is_not_null() & plain_numbers(cells, dialect).cast(pl.Float64, strict=False).is_null()


def _way_to_read(wrong: pl.Series, dialect: Dialect) -> str:
    """Return advice for cells with a currency symbol or thousands separator; empty text if no cell has either."""
    if wrong.str.contains(r"\p{Sc}|^[A-Z]{3}\s?\d|\d\s?[A-Z]{3}$").any():
        return "Remove the currency from the cells: it is not part of a number."
    for thousands in SIGNS:
        for decimal in {".": ",", ",": "."}.get(thousands, ".,"):
            if wrong.str.contains(_grouped(thousands, decimal)).any():
                point = f", {setting('decimal', decimal)}" * (thousands in " '" and decimal != dialect.decimal)
                return f"Use {setting('thousands', thousands)}{point} if that sign separates thousands."
    return ""
