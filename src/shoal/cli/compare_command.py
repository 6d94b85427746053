"""Command ``shoal compare``: compare methods, group sizes and promises on one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.mask_command import mask
from shoal.cli.streams import path_or_address
from shoal.cli.terminal import flags_of, option, say, say_pair, typed_text, values_of, with_parameters
from shoal.comparison.compare_request import CompareRequest
from shoal.core.errors import InputError
from shoal.core.parameters import OUTPUT

__all__ = ["compare", "read_promises", "read_sizes"]


@with_parameters(CompareRequest)
def compare(
    source: Annotated[Any, typer.Argument(parser=path_or_address, metavar="IN", help="Any input of shoal mask")],
    k: Annotated[str, option("k", CompareRequest)] = "3,5,10",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File for the comparison table", rich_help_panel=OUTPUT),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for a report (HTML)", rich_help_panel=OUTPUT)
    ] = None,
    **options: Any,
) -> None:
    """Compare methods, group sizes and promises on one table by loss, risk, groups and time.

    Example: shoal compare firms.csv -k 3,5,10 --by region --report comparison.html

    Example: shoal compare firms.csv -k 5 -c sales --confidential profit --closeness 0.1,0.2
    """
    from shoal.comparison.compare import compare_request
    from shoal.tables.files import check_targets, write_file

    check_targets(source, output=output, report=report)
    values = values_of(CompareRequest, options, diversity=read_promises, closeness=read_promises)
    values["methods"] = values["methods"] or "all"
    comparison = compare_request(source, CompareRequest(**values | {"k": read_sizes(k), "progress": True}))
    flags = flags_of(mask) | flags_of(compare)
    reasons = {name: typed_text(why, flags) for name, why in comparison.left_out.items()}
    say(str(replace(comparison, left_out=reasons)))
    if output is not None:
        write_file(comparison.table, output)
        say_pair("table", output)
    if report is not None:
        comparison.report(report)
        say_pair("report", report)


def read_sizes(text: str) -> list[int]:
    """Parse group sizes separated by commas.

    Examples
    --------
    >>> read_sizes("3, 5,10")
    [3, 5, 10]
    """
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"-k must be whole numbers separated by commas, such as 3,5,10, got {text!r}.") from None


def read_promises(texts: Sequence[str]) -> list[str]:
    """Parse promises separated by commas; a list of COLUMN=VALUE pairs is one promise.

    Examples
    --------
    >>> read_promises(["0.1, 0.2", "pay=0.2,age=0.3"])
    ['0.1', '0.2', 'pay=0.2,age=0.3']
    """
    parts = [[text] if "=" in text else text.split(",") for text in texts]
    return [part.strip() for listed in parts for part in listed if part.strip()]
