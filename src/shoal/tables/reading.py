"""Options for reading a CSV file, an Excel file or a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import NoneType
from typing import Any, Self

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.parameters import CSV, ESSENTIALS, described

__all__ = ["AS_DETECTED", "TAB", "ReadingOptions"]

TAB = ("tab", "\\t")  # spellings of the tab on the command line


@dataclass(frozen=True)
class ReadingOptions:
    """The options for reading a table, which all commands share. An invalid option raises an `InputError`.

    Examples
    --------
    >>> ReadingOptions(delimiter="tab", skip_rows=3).skip_rows
    3
    """

    delimiter: str | None = described(
        None, "Delimiter of a CSV file, or ``tab`` (default: detected).", "--delimiter",
        panel=CSV, label="Delimiter", metavar="SIGN",
    )  # fmt: skip
    encoding: str | None = described(
        None, "Encoding of a CSV file (default: detected).", "--encoding",
        panel=CSV, label="Encoding", metavar="NAME",
    )  # fmt: skip
    decimal: str | None = described(
        None, "Decimal sign of a CSV file (default: detected).", "--decimal",
        panel=CSV, label="Decimal sign", metavar="SIGN",
    )  # fmt: skip
    thousands: str | None = described(
        None,
        "Thousands separator of a CSV file (default: none). For example the point in 90.000,50.",
        "--thousands",
        panel=CSV,
        label="Thousands separator",
        metavar="SIGN",
    )
    skip_rows: int | None = described(
        0,
        "Lines to skip above the header (CSV, Excel).",
        "--skip-rows",
        panel=CSV,
        label="Lines above the header",
        typed=int,
        stored=(int, NoneType),
    )
    no_header: bool | None = described(
        False,
        "First line is a record (CSV, Excel). Columns are then called column_1, column_2, ….",
        "--no-header",
        panel=CSV,
        label="No header",
        typed=bool,
        stored=(bool, NoneType),
    )
    sheet: str | None = described(
        None, "Sheet of an Excel file (default: the first).", "--sheet", panel=CSV, label="Sheet", metavar="NAME"
    )
    query: str | None = described(
        None,
        """Query or table of a database. The input is then the address of the database, such as
        ``sqlite:///people.db`` or ``postgresql://ann@host/register``.""",
        "--query",
        metavar="SQL",
        panel=ESSENTIALS,
        label="Query",
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
            raise InputError(f"{parameter('skip_rows')} must be a number of lines, 0 or more, got {lines!r}.")

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
        """Return the options as a dictionary keyed by name."""
        return asdict(self)


AS_DETECTED = ReadingOptions()
