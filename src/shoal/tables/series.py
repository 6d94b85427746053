"""Columns of polars as numbers and as words, and what is said of those that hold none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats
from shoal.kernels.words import ABSENT, Words, words_of
from shoal.kinds.time_scale import word_of
from shoal.tables.columns import Name

__all__ = [
    "TextNumbers",
    "as_floats",
    "cell_words",
    "check_no_numbers",
    "kind_of",
    "mostly_numbers",
    "no_numbers",
    "not_numeric",
    "not_whole",
    "number_like",
    "whole_numbers",
]

# Also with a currency, a unit, a sign between thousands, a percent sign, or in parentheses, as losses are written.
NUMBER_LIKE = (
    r"^[\s\p{Sc}+\u{2212}(-]*(?:[A-Z]{3}\s?)?\d[\d.,'’\s]*(?:[eE][+-]?\d+)?"
    r"(?:\s?[A-Z]{3}|\s[a-zµ]{1,3})?[\s\p{Sc}%)]*$"
)


class TextNumbers(NamedTuple):
    """Numbers in a text column of a table, or of a part of it.

    Parameters
    ----------
    numbers, values
        The different values that are written like numbers, and all different values, in a sample of the cells.
    cause
        Why the column is text, in words; empty if this part does not show it.
    remedy
        A way to read it as numbers.
    """

    numbers: int
    values: int
    cause: str = ""
    remedy: str = ""


def kind_of(kind: Any) -> str:
    """Return what numbers a type of narwhals or polars holds."""
    if kind.is_integer():
        return "int64" if str(kind).endswith("128") else str(kind).lower()
    return "float32" if str(kind) == "Float32" else "float64"


def as_floats(series: pl.Series) -> Floats:
    """Return numbers as a new array; NaN where they are missing."""
    # Every call of polars takes a while, which counts for small tables.
    series = series if series.dtype == pl.Float64 else series.cast(pl.Float64)
    series = series.fill_null(np.nan) if series.null_count() else series
    return series.to_numpy().copy()


def cell_words(series: pl.Series, *, category: bool = False) -> Words:
    """Return the bits of a numeric column, hashes of the cells of another, with a word of its own for null."""
    timed = word_of(series.dtype) is not None
    series = series.to_physical() if timed else series
    if category and not timed:
        words: Words = series.cast(pl.String).hash(seed=0).to_numpy().copy()
    elif series.dtype.is_integer():
        words = series.fill_null(0).cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64).copy()
    else:
        words = words_of(as_floats(series))
    if series.null_count():
        words[series.is_null().to_numpy()] = ABSENT
    return words


def whole_numbers(name: Name, series: pl.Series, first: int) -> pl.Series:
    """Return floats that are codes as integers: SPSS has no integers, nor has pandas beside missing cells."""
    numbers = series.fill_nan(None)
    whole = numbers.cast(pl.Int64, strict=False)
    wrong = (numbers.is_not_null() & (whole.is_null() | (whole != numbers))).arg_max() if len(series) else None
    if wrong is not None and numbers[wrong] is not None and whole[wrong] != numbers[wrong]:
        raise not_whole(name, first + wrong + 1, numbers[wrong])
    return whole


def not_whole(name: Name, record: int, value: object) -> InputError:
    """Say which number of a column is no code."""
    return InputError(
        f"Column {name!r} must hold whole numbers to be codes, but record {record} holds {value}. Leave it out of "
        f"{parameter('kinds')}."
    )


def not_numeric(name: Name, found: str, way_out: str = "") -> InputError:
    """Say what a column holds that is no number."""
    way_out = way_out or (
        f"Leave the column out, turn it into numbers, or use {setting('kinds', {name: 'Nominal()'})} for categories."
    )
    return InputError(f"Column {name!r} must be numeric, but {found}. {way_out}")


def no_numbers(name: Name, cells: Sequence[object], kind: str, first: int) -> InputError:
    """Name the first cell of a column that is text and no number, or the type of all."""
    texts = ((record, cell) for record, cell in enumerate(cells, first + 1) if isinstance(cell, str))
    wrong = (f"record {record} holds {cell!r}" for record, cell in texts if not _is_number(cell))
    return not_numeric(name, next(wrong, f"its type is {kind}"))


def mostly_numbers(text: pl.Series) -> bool:
    """Say whether most values of a text are written like numbers: such a column has a slip, and is no category."""
    values = text.drop_nulls().unique()
    return 2 * int(number_like(values).sum()) > len(values)


def number_like(cells: pl.Series) -> pl.Series:
    """Return for each cell of a text whether it is written like a number.

    Examples
    --------
    >>> number_like(pl.Series(["1,234", "-7.5 %", "12a"])).to_list()
    [True, True, False]
    """
    return cells.str.contains(NUMBER_LIKE)


def check_no_numbers(name: Name, parts: Sequence[TextNumbers]) -> None:
    """Refuse a text column that consists mostly of numbers and has no role: it would be released unmasked."""
    if 2 * sum(part.numbers for part in parts) <= sum(part.values for part in parts):
        return
    shown = next((part for part in parts if part.cause), TextNumbers(0, 0, "its type is text", "Turn it into numbers."))
    raise InputError(
        f"Column {name!r} holds numbers, but {shown.cause}: it would be released unmasked. {shown.remedy} To drop the "
        f"column, use {setting('identifiers', [name])}; to release it unmasked, use {setting('keep', [name])}."
    )


def _is_number(text: str) -> bool:
    try:
        float(text.strip() or "0")
    except ValueError:
        return False
    return True
