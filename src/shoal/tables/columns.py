"""Columns of a table: selection and replacement by name, numbers and hashes, and codes for missing values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from shoal.core.errors import InputError, VerificationError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Name, Spelling
from shoal.kernels.words import ABSENT, Words, words_of
from shoal.kinds.column import FLOAT, Column, Storage, composed, composed_cells
from shoal.tables.number_text import CODE, Dialect, plain_numbers

if TYPE_CHECKING:
    from shoal.kinds.time_scale import Scale

__all__ = [
    "Code",
    "Codes",
    "Name",
    "NewColumn",
    "Spelling",
    "as_floats",
    "as_number",
    "cell_words",
    "cells_of",
    "check_codes",
    "check_released",
    "coded_text",
    "column_of",
    "is_coded",
    "kind_of",
    "named_cells",
    "not_whole",
    "only_columns",
    "read_codes",
    "round_to",
    "whole_numbers",
    "with_cells",
    "without_codes",
    "without_words",
]

Code = str | int | float
Codes = Mapping[Name, Sequence[Code]]  # per column, in the order of the request


# Columns by their exact names: polars takes a name such as ^.*$ as a pattern, and * as all columns. Columns are
# therefore selected by position, and series have no name, because polars methods also look series up by name.


def cells_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return the cells of a column, as a series without a name."""
    return frame.get_column(name).alias("")


def named_cells(frame: pl.DataFrame) -> list[tuple[str, pl.Series]]:
    """Return the name and the cells of every column."""
    return [(column.name, column.alias("")) for column in frame.get_columns()]


def only_columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return a frame with only the columns `names`, in that order.

    Examples
    --------
    >>> frame = pl.DataFrame({"^.*$": [1], "*": [2], "other": [3]})
    >>> only_columns(frame, ["^.*$"]).columns, only_columns(frame, ["*"]).columns
    (['^.*$'], ['*'])
    """
    places = {name: place for place, name in enumerate(frame.columns)}
    # Avoid frame[:, places], which renames a column without a name.
    return frame.select(pl.selectors.by_index([places[name] for name in names]))


def with_cells(frame: pl.DataFrame, cells: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return a frame with some columns replaced; new columns are added at the end."""
    # polars never takes a series as a pattern.
    return frame.with_columns([column.alias(name) for name, column in cells.items()])


def check_released(names: Sequence[Name], planned: Sequence[Name]) -> None:
    """Refuse a release unless it has exactly the planned columns; a number and its text count as the same name."""
    released, expected = [str(name) for name in names], [str(name) for name in planned]
    if released == expected:
        return
    extra = [name for name in released if name not in expected or released.count(name) > 1]
    lost = [name for name in expected if name not in released]
    wrong = "The columns are not in the planned order"
    if extra:
        wrong = f"Column {extra[0]!r} is in the release but was not planned"
    elif lost:
        wrong = f"Column {lost[0]!r} is not in the release but was planned"
    raise VerificationError(f"{wrong}. Nothing was released.")


# New values


@dataclass(frozen=True)
class NewColumn:
    """The released values of a column."""

    values: Floats  # NaN where the cell is missing
    storage: Storage = FLOAT  # stored type of the column, in all parts of the table
    rounded: bool = False  # True if values are rounded and may be stored as integers
    missing: Spelling = None  # the spelling of missing cells: a code, "NaN", or None
    categories: tuple[Any, ...] | None = None  # cells of the categories, indexed by `values`
    scale: Scale | None = None  # scale on which `values` count dates, times or durations

    @property
    def integers(self) -> bool:
        """True if integers are released."""
        return self.rounded and self.storage.integer

    @property
    def code(self) -> str | None:
        """The code for missing values, if any."""
        return None if self.missing in (None, "NaN") else self.missing

    def filled(self) -> NewColumn:
        """Return a numeric column with its code for missing values, if any, in place of missing cells."""
        if self.code is None or self.categories is not None:
            return self
        return replace(self, values=np.where(np.isnan(self.values), float(self.code), self.values), missing=None)

    def cells(self) -> list[Any]:
        """Return the cells of a column of categories; missing cells become the code for missing values, or None."""
        names = self.categories or ()
        whole = self.code is not None and any(isinstance(name, int) for name in names)
        absent = int(float(str(self.code))) if whole else self.code
        return [absent if np.isnan(code) else names[int(code)] for code in self.values]


def round_to(values: Floats, kind: str) -> np.ndarray[Any, Any]:
    """Round to the nearest numbers that an integer type can hold.

    Examples
    --------
    >>> round_to(np.array([1.5, 2.0**63]), "int64").tolist()
    [2, 9223372036854774784]
    """
    ends = np.iinfo(kind)
    most = float(ends.max)
    # The greatest 64-bit integer lies between two floats.
    most = float(np.nextafter(most, 0)) if int(most) > ends.max else most
    return np.clip(np.rint(values), float(ends.min), most).astype(kind)


# Numbers and words


def kind_of(kind: Any) -> str:
    """Return the NumPy type that holds the numbers of a narwhals or polars type."""
    if kind.is_integer():
        return "int64" if str(kind).endswith("128") else str(kind).lower()
    return "float32" if str(kind) == "Float32" else "float64"


def as_floats(series: pl.Series) -> Floats:
    """Return numbers as a new array, with NaN for missing values."""
    # Each call to polars has a cost that matters for small tables.
    series = series if series.dtype == pl.Float64 else series.cast(pl.Float64)
    series = series.fill_null(np.nan) if series.null_count() else series
    return series.to_numpy().copy()


def column_of(name: Name, cells: pl.Series) -> Column:
    """Return numeric cells as a `Column`."""
    return Column(name, as_floats(cells), kind_of(cells.dtype))


def cell_words(series: pl.Series, *, category: bool = False) -> Words:
    """Return the bits of numeric cells or the hashes of categories; null has a separate word."""
    timed = series.dtype.is_temporal()
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
    """Convert codes stored as floats to integers. SPSS, and pandas with missing cells, store no integers."""
    numbers = series.fill_nan(None)
    whole = numbers.cast(pl.Int64, strict=False)
    wrong = (numbers.is_not_null() & (whole.is_null() | (whole != numbers))).arg_max() if len(series) else None
    if wrong is not None and numbers[wrong] is not None and whole[wrong] != numbers[wrong]:
        raise not_whole(name, first + wrong + 1, numbers[wrong])
    return whole


def check_codes(name: Name, series: pl.Series, first: int) -> None:
    """Refuse codes in an array that exceed 64-bit integers, the type in which codes are released."""
    far = series.cast(pl.Float64).abs() >= 2.0**63
    if far.any():
        record = int(far.arg_max() or 0)
        raise InputError(
            f"Categories in an array must be whole numbers below 2^63, but column {name} holds {series[record]} in "
            f"record {first + record + 1}. Use a frame."
        )


def not_whole(name: Name, record: int, value: object) -> InputError:
    """Return the error for a number that cannot be a code because it is not whole."""
    return InputError(
        f"Column {name!r} must contain whole numbers to be codes, but record {record} holds {value}. Remove the column "
        f"from {parameter('kinds')}."
    )


# Codes for missing values: numbers or texts, such as -9 or "?"


def read_codes(by_column: Mapping[Name, Iterable[Code] | Code] | None) -> dict[Name, tuple[Code, ...]]:
    """Return the codes for missing values per column; refuse codes that are neither finite numbers nor text.

    Examples
    --------
    >>> read_codes({"income": [-9, 99], "job": "?"})
    {'income': (-9, 99), 'job': ('?',)}
    """
    if by_column is not None and not isinstance(by_column, Mapping):
        raise InputError(
            f"{parameter('missing_codes')} must map columns to codes, such as {{'income': [-9]}}; got {by_column!r}."
        )
    read = {}
    for name, entry in (by_column or {}).items():
        codes = tuple(entry) if isinstance(entry, Iterable) and not isinstance(entry, str) else (entry,)
        codes = tuple(getattr(code, "item", lambda code=code: code)() for code in codes)  # NumPy scalars
        for code in codes:
            if isinstance(code, bool) or not isinstance(code, (str, int, float)) or code in ("", math.inf, -math.inf):
                raise _bad(name, code)
            if code != code:  # noqa: PLR0124  (NaN)
                raise _bad(name, code)
        if not codes:
            raise _bad(name, entry)
        read[name] = tuple(dict.fromkeys(code.strip() if isinstance(code, str) else code for code in codes))
    return read


def _bad(name: Name, code: object) -> InputError:
    return InputError(
        f"{parameter('missing_codes')} must list finite numbers or texts for column {name!r}, got {code!r}. Empty "
        "cells and NaN are always missing and need no code."
    )


def as_number(code: Code) -> float | None:
    """Return the number that a code represents, even if the code is text; None if it represents no number.

    Examples
    --------
    >>> as_number("-9"), as_number(-9.0), as_number("009"), as_number("?")
    (-9.0, -9.0, None, None)
    """
    try:
        number = None if isinstance(code, str) and re.match(CODE, code) else float(code)
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def is_coded(cells: pl.Series, codes: Sequence[Code], numbers: pl.Series | None = None) -> pl.Series:
    """Return a mask of the cells that are codes; -9 also matches -9.0 and the text of both.

    `numbers` holds the numbers in text cells; by default, the text is parsed with a decimal point.

    Examples
    --------
    >>> is_coded(pl.Series(["-9.0", " ? ", "009", None]), [-9, "?", 9]).to_list()
    [True, True, False, False]
    """
    if not codes or cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object):  # such cells are never codes
        return pl.repeat(value=False, n=len(cells), eager=True)
    values = [number for number in map(as_number, codes) if number is not None]
    if cells.dtype.is_numeric():
        kind = pl.Float32 if cells.dtype == pl.Float32 else pl.Float64
        return cells.cast(kind).is_in(pl.Series(values, dtype=pl.Float64).cast(kind).implode()).fill_null(value=False)
    text = composed_cells(cells.cast(pl.String)).str.strip_chars()
    if numbers is None:
        numbers = text.cast(pl.Float64, strict=False)
    equal_numbers = numbers.is_in(values) & ~text.str.contains(CODE)
    return (equal_numbers.fill_null(value=False) | text.is_in([composed(str(code)) for code in codes])).fill_null(
        value=False
    )


def without_codes(cells: pl.Series, codes: Sequence[Code]) -> pl.Series:
    """Return cells with null in place of codes."""
    return cells.set(is_coded(cells, codes), None) if codes else cells


def coded_text(text: pl.Series, codes: Sequence[Code], dialect: Dialect) -> pl.Series:
    """Return a mask of the cells that are codes for missing values, compared as text or as numbers."""
    if not codes:
        return pl.repeat(value=False, n=len(text), dtype=pl.Boolean, eager=True)
    return is_coded(text, codes, plain_numbers(text.str.strip_chars(), dialect).cast(pl.Float64, strict=False))


def without_words(text: pl.Series, codes: Sequence[Code]) -> pl.Series:
    """Return cells with null in place of codes that are not numbers."""
    words = [composed(code) for code in codes if isinstance(code, str) and as_number(code) is None]
    return text.set(composed_cells(text).str.strip_chars().is_in(words), None) if words else text
