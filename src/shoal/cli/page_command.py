"""``shoal app``: the page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.terminal import say

__all__ = ["page"]


def page(
    table: Annotated[Path | None, typer.Argument(metavar="FILE", help="Table to open, as for shoal mask.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Open a page in the browser that does the whole job: from a file to a release, without a command line.

    It is served on this machine only and nothing is sent anywhere. Ctrl-C ends it. Closing the page does so after 10
    minutes.

    Example: shoal app firms.csv
    """
    from shoal.core.errors import InputError
    from shoal.tables.databases import check_no_database

    check_no_database(table, "The page")

    try:
        import nicegui  # noqa: F401  (only to see whether it is there)
    except ImportError:
        raise InputError("The page needs NiceGUI. Install it with: pip install 'shoal[app]'") from None
    from shoal.app.server import serve

    serve(table, browser=not no_browser, tell=say)
