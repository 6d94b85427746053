"""Display of results: text tables for terminals, HTML tables for notebooks, and report pages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from decimal import Decimal
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.core.messages import visible

__all__ = ["aligned", "for_people", "html_table", "write_report"]


def aligned(rows: Sequence[Sequence[str]], *, numeric: bool = True) -> str:
    """Align columns of text: the first to the left, the others to the right if `numeric` is true, else to the left.

    Examples
    --------
    >>> print(aligned([["k", "loss"], ["10", "9.1"]]))
    k   loss
    10   9.1
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def placed(i: int, cell: str) -> str:
        return cell.rjust(widths[i]) if numeric and i else cell.ljust(widths[i])

    return "\n".join("  ".join(placed(i, cell) for i, cell in enumerate(row)).rstrip() for row in rows)


def for_people(value: float, digits: int = 4) -> str:
    """Format a number for people with `digits` significant digits; NaN becomes a dash.

    Examples
    --------
    >>> for_people(79216.43), for_people(-0.000123456), for_people(2.5e-9), for_people(float("nan"))
    ('79,220', '−0.0001235', '2.5e-09', '–')
    """
    if value != value:  # noqa: PLR0124  (NaN)
        return "–"
    size = abs(value)
    text = f"{size:.{digits}g}"
    plain = text if 0 < size < 1e-4 or size >= 1e15 else f"{Decimal(text):,f}"
    return f"−{plain}" if value < 0 else plain


def html_table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), caption: str = "") -> str:
    """Return an HTML table for a notebook; without a head, the first cell of each row is its heading.

    Examples
    --------
    >>> html_table([["records", "9"]])
    "<table><tr><th style='text-align:left'>records</th><td style='text-align:left'>9</td></tr></table>"
    """
    style = " style='text-align:left'"

    def cell(text: str, *, heading: bool) -> str:
        kind = "th" if heading else "td"
        return f"<{kind}{style}>{escape(text)}</{kind}>"

    lines = [[cell(text, heading=True) for text in head]] if head else []
    lines += [[cell(text, heading=not head and i == 0) for i, text in enumerate(row)] for row in rows]
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<table>{title}{body}</table>"


def write_report(page: str, path: str | os.PathLike[str], result: object, **keywords: object) -> Path:
    """Write the report page of a result; `page` is ``"module:function"`` within `shoal.report`.

    The report layer is above the results, so results import report pages by name, as they import methods.
    """
    module, _, name = page.partition(":")
    pages: Any = import_module("shoal.report.pages")
    document = getattr(import_module(f"shoal.report.{module}"), name)(result, **keywords)
    target: Path = pages.write_page(document, path)
    return target
