"""``shoal methods``: the registry on one screen."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from shoal.algorithms.registry import METHODS

__all__ = ["methods"]


def methods() -> None:
    """List the methods of masking, their options and what they cost."""
    table = Table("method", "columns", "group sizes", "cost", "what it does", box=None, pad_edge=False)
    for method in METHODS.values():
        options = "".join(
            f"\n[dim]-O {option.name}=…  {option.help}"
            f"{'' if option.default is None else f' (default {option.default})'}[/dim]"
            for option in method.options
        )
        table.add_row(
            f"[bold]{method.name}[/bold]",
            "one" if method.univariate else "any",
            method.sizes,
            method.cost,
            f"{method.summary} [dim]({method.paper})[/dim]{options}",
        )
    Console().print(table)
