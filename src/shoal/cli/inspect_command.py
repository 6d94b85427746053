"""``shoal inspect``: what the columns of a table seem to be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.terminal import option, say

__all__ = ["inspect"]


def inspect(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Table to look at, as for shoal mask.")],
    k: Annotated[int, option("k")] = 5,
    delimiter: Annotated[str | None, option("delimiter")] = None,
    encoding: Annotated[str | None, option("encoding")] = None,
    decimal: Annotated[str | None, option("decimal")] = None,
    thousands: Annotated[str | None, option("thousands")] = None,
) -> None:
    """Look at a table before it is masked: the role and the kind of each column, why, and the command that follows.

    A proposal for the data steward to judge. No value of an identifier is printed.

    Example: shoal inspect firms.csv -k 5
    """
    from shoal.inspection.inspect import inspect as inspect_table

    inspection = inspect_table(source, k, delimiter=delimiter, encoding=encoding, decimal=decimal, thousands=thousands)
    say(str(inspection))
