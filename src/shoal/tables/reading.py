"""How a file is read that does not say so itself: a CSV file, or an Excel file that is not a plain table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import NoneType
from typing import Any, Self

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.parameters import CSV, described

__all__ = ["AS_DETECTED", "LAYOUT", "TAB", "ReadingOptions"]

LAYOUT = ("skip_rows", "no_header", "sheet")  # options of CSV and Excel files; the others are of CSV files alone
TAB = ("tab", "\\t")  # as users write it


@dataclass(frozen=True)
class ReadingOptions:
    """The options of all commands that read a file; refused when they are made if one breaks its rule.

    Examples
    --------
    >>> ReadingOptions(delimiter="tab", skip_rows=3).skip_rows
    3
    """

    delimiter: str | None = described(
        None, "The delimiter of a CSV file, or ``tab``; detected by default.", "--delimiter",
        panel=CSV, label="Delimiter",
    )  # fmt: skip
    encoding: str | None = described(
        None, "The encoding of a CSV file; detected by default.", "--encoding", panel=CSV, label="Encoding"
    )
    decimal: str | None = described(
        None, "The decimal sign of a CSV file; detected by default.", "--decimal", panel=CSV, label="Decimal sign"
    )
    thousands: str | None = described(
        None,
        "The thousands separator of a CSV file, such as the point in 90.000,50; none by default.",
        "--thousands",
        panel=CSV,
        label="Thousands separator",
    )
    skip_rows: int | None = described(
        0,
        "Lines above the header of a CSV file or an Excel sheet, such as titles, that are skipped.",
        "--skip-rows",
        panel=CSV,
        label="Lines above the header",
        typed=int,
        stored=(int, NoneType),
    )
    no_header: bool | None = described(
        False,
        "The first line of a CSV file or an Excel sheet is a record: columns are called column_1, column_2, ….",
        "--no-header",
        panel=CSV,
        label="No header",
        typed=bool,
        stored=(bool, NoneType),
    )
    sheet: str | None = described(
        None, "The sheet of an Excel file; the first by default.", "--sheet", panel=CSV, label="Sheet"
    )

    def __post_init__(self) -> None:
        sign, decimal, lines = self.delimiter, self.decimal, self.skip_rows
        one = sign is None or sign in TAB or (len(sign) == 1 and sign.isascii())
        if not one or sign in ('"', "\r", "\n", "\0"):
            raise InputError(
                f"{parameter('delimiter')} must be one ASCII character, such as ';', or 'tab', got {sign!r}."
            )
        if decimal not in (None, ".", ","):
            raise InputError(f"{parameter('decimal')} must be '.' or ',', got {decimal!r}.")
        if self.thousands is not None:
            self._check_thousands(self.thousands)
        if lines is not None and (not isinstance(lines, int) or lines < 0):
            raise InputError(f"{parameter('skip_rows')} must be a number of lines from 0, got {lines!r}.")

    def _check_thousands(self, sign: str) -> None:
        from shoal.tables.number_text import SIGNS

        if sign not in SIGNS or sign == self.decimal:
            listed = " or ".join(repr(other) for other in SIGNS if other != self.decimal)
            raise InputError(f"{parameter('thousands')} must be {listed}, and not the decimal sign, got {sign!r}.")

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the options among the parameters of a run."""
        return cls(**{item.name: parameters[item.name] for item in fields(cls) if item.name in parameters})

    def plain(self) -> dict[str, Any]:
        """Return the options by their names."""
        return asdict(self)


AS_DETECTED = ReadingOptions()
