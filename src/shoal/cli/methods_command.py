"""Command ``shoal methods``: list the registered methods."""

from __future__ import annotations

from shoal.algorithms.registry import ALL_METHODS

__all__ = ["methods"]


def methods() -> None:
    """List the masking methods, their options and their costs.

    Example: shoal methods
    """
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "description", box=None, pad_edge=False)
    for method in ALL_METHODS.values():
        options = "".join(
            f"\n-O {option.name}=…  {option.help}{'' if option.default is None else f' (default {option.default})'}"
            for option in method.options
            if option.scalar
        )
        facts = ("one column" if method.univariate else "any columns", f"{method.sizes} group sizes", method.cost)
        table.add_row(
            f"[bold]{method.name}[/bold]",
            f"{method.summary}\n[dim]{method.paper}; {', '.join(facts)}[/dim]{options}",
        )
    Console().print(table)
