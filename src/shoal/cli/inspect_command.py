"""``shoal inspect``: what the columns of a table seem to be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.streams import STREAM, read_source, read_stdin
from shoal.cli.terminal import option, say, say_pair, with_parameters
from shoal.tables.reading import ReadingOptions

__all__ = ["inspect"]


@with_parameters(ReadingOptions)
def inspect(
    source: Annotated[
        Any, typer.Argument(parser=read_source, metavar="IN", help="Table to look at, as for shoal mask.")
    ],
    k: Annotated[int, option("k")] = 5,
    roles: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the roles of all columns to this file (TOML), to review and edit."),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="File of more words by which columns are recognised, such as sensitive ones (TOML)."),
    ] = None,
    **reading: Any,
) -> None:
    """Look at a table before it is masked: the role and the kind of each column, why, and the command that follows.

    A proposal for the data steward to judge. No value of an identifier is printed.

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
