"""Command ``shoal inspect``: propose a role and a kind for every column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.streams import STREAM, path_or_address, read_stdin
from shoal.cli.terminal import option, say, say_pair, with_parameters
from shoal.tables.reading import ReadingOptions

__all__ = ["inspect"]


@with_parameters(ReadingOptions)
def inspect(
    source: Annotated[Any, typer.Argument(parser=path_or_address, metavar="IN", help="Any input of shoal mask")],
    k: Annotated[int, option("k")] = 5,
    roles: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File for the roles of all columns (TOML), to review and edit"
        ),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of additional words that identify columns by name (TOML)"),
    ] = None,
    **reading: Any,
) -> None:
    """Propose a role and a kind for every column of a table, with reasons and the next command.

    The data steward should review the proposal. No value of an identifier is printed.

    Example: shoal inspect firms.csv -k 5
    """
    from shoal.inspection.inspect import inspect as inspect_table

    data = read_stdin() if str(source) == STREAM else source
    inspection = inspect_table(data, k, words=words, **reading)
    if roles is not None:
        inspection.save(roles, Path(str(source)).name)
    say(str(inspection))
    if roles is not None:
        say_pair("roles file", roles)
