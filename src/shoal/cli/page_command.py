"""Command ``shoal app``: open the page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.terminal import say

__all__ = ["page"]


def page(
    table: Annotated[Path | None, typer.Argument(metavar="FILE", help="Table to open, as for shoal mask.")] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser")
    ] = False,
) -> None:
    """Open a page in the browser that leads from a file to a release.

    The page is served on this machine only, and nothing is sent anywhere.
    Ctrl-C stops it; it also stops 10 minutes after the page is closed.

    Example: shoal app firms.csv
    """
    from shoal.core.errors import InputError
    from shoal.tables.databases import check_no_database

    check_no_database(table, "The page")

    try:
        import nicegui  # noqa: F401  (checks that it is installed)
    except ImportError:
        raise InputError("The page needs NiceGUI. Install it with: pip install 'shoal[app]'") from None
    from shoal.app.server import serve

    serve(table, browser=not no_browser, tell=say)
