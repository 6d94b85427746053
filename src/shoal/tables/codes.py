"""Codes for missing: numbers or texts, such as -9 or "?", that stand in a column where nothing is known."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.unicode_forms import composed, composed_cells
from shoal.tables.columns import Name

__all__ = ["Code", "Codes", "as_number", "is_coded", "read_codes", "without_codes"]

Code = str | int | float
Codes = Mapping[Name, Sequence[Code]]  # of each column, in the order in which they were named
# 007 and 0123 are codes, not numbers.
PADDED = re.compile(r"[+-]?0\d")


def read_codes(given: Mapping[Name, Iterable[Code] | Code] | None) -> dict[Name, tuple[Code, ...]]:
    """Return the codes of each column; refuse what is neither a number nor a text.

    Examples
    --------
    >>> read_codes({"income": [-9, 99], "job": "?"})
    {'income': (-9, 99), 'job': ('?',)}
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f"{parameter('missing_codes')} must give the codes of each column, such as {{'income': [-9]}}; got "
            f"{given!r}."
        )
    read = {}
    for name, listed in (given or {}).items():
        codes = tuple(listed) if isinstance(listed, Iterable) and not isinstance(listed, str) else (listed,)
        codes = tuple(getattr(code, "item", lambda code=code: code)() for code in codes)  # numbers of NumPy
        for code in codes:
            if isinstance(code, bool) or not isinstance(code, (str, int, float)) or code in ("", math.inf, -math.inf):
                raise _bad(name, code)
            if code != code:  # noqa: PLR0124  (NaN)
                raise _bad(name, code)
        if not codes:
            raise _bad(name, listed)
        read[name] = tuple(dict.fromkeys(code.strip() if isinstance(code, str) else code for code in codes))
    return read


def _bad(name: Name, code: object) -> InputError:
    return InputError(
        f"{parameter('missing_codes')} must list finite numbers or texts for column {name!r}, got {code!r}. Cells that "
        "are empty or NaN are missing anyway."
    )


def as_number(code: Code) -> float | None:
    """Return the number that a code is, also as text; None if it is none.

    Examples
    --------
    >>> as_number("-9"), as_number(-9.0), as_number("009"), as_number("?")
    (-9.0, -9.0, None, None)
    """
    try:
        number = None if isinstance(code, str) and PADDED.match(code) else float(code)
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def is_coded(cells: pl.Series, codes: Sequence[Code], numbers: pl.Series | None = None) -> pl.Series:
    """Say which cells are codes: -9 is also -9.0, in text as well.

    Parameters
    ----------
    cells
        Numbers or text.
    codes
        The codes of the column.
    numbers
        Of text, the numbers that it means; by a decimal point if not given.

    Examples
    --------
    >>> is_coded(pl.Series(["-9.0", " ? ", "009", None]), [-9, "?", 9]).to_list()
    [True, True, False, False]
    """
    if not codes or cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object):  # such cells are no codes
        return pl.repeat(value=False, n=len(cells), eager=True)
    values = [number for number in map(as_number, codes) if number is not None]
    if cells.dtype.is_numeric():
        kind = pl.Float32 if cells.dtype == pl.Float32 else pl.Float64
        return cells.cast(kind).is_in(pl.Series(values, dtype=pl.Float64).cast(kind).implode()).fill_null(value=False)
    text = composed_cells(cells.cast(pl.String)).str.strip_chars()
    if numbers is None:
        numbers = text.cast(pl.Float64, strict=False)
    alike = numbers.is_in(values) & ~text.str.contains(f"^{PADDED.pattern}")
    return (alike.fill_null(value=False) | text.is_in([composed(str(code)) for code in codes])).fill_null(value=False)


def without_codes(cells: pl.Series, codes: Sequence[Code]) -> pl.Series:
    """Return cells with null in the place of codes."""
    return cells.set(is_coded(cells, codes), None) if codes else cells
