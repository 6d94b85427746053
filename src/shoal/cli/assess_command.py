"""Command ``shoal assess``: measure the utility and the risk of a masked file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.assessment.assess_request import AssessRequest
from shoal.cli.streams import path_or_address
from shoal.cli.terminal import say, say_pair, values_of, with_parameters
from shoal.core.messages import agreeing, count
from shoal.core.parameters import OUTPUT

__all__ = ["assess"]


@with_parameters(AssessRequest)
def assess(
    original: Annotated[
        Any, typer.Argument(parser=path_or_address, metavar="ORIGINAL", help="The table before masking.")
    ],
    masked: Annotated[Path, typer.Argument(metavar="MASKED", help="The masked table, records in the same order.")],
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for a report (HTML)", rich_help_panel=OUTPUT)
    ] = None,
    **options: Any,
) -> None:
    """Measure the utility and the remaining risk of a masked table.

    For the data steward: it prints statistics of the original table.
    The report holds no value of a single record. With -k, exit code 1 means a group below k.

    Example: shoal assess firms.csv masked.csv -k 5 --by region --confidential sector
    """
    from shoal.assessment.measurement import assess_request
    from shoal.core.errors import VerificationError
    from shoal.tables.files import check_targets

    check_targets(original, report=report)
    request = AssessRequest(**values_of(AssessRequest, options, tables=_read_tables, kept=_read_labels))
    assessment = assess_request(original, masked, request)
    say(str(assessment))
    if report is not None:
        assessment.report(report)
        say("")
        say_pair("report", report)
    counted = assessment.risk.anonymity
    if counted.below:
        few = f"{counted.below:,} of {count(assessment.records, 'record')} {agreeing(counted.below, 'is', 'are')}"
        raise VerificationError(
            f"k = {request.k} does not hold: {few} in smaller groups; the smallest has {count(counted.k, 'record')}."
        )


def _read_tables(texts: list[str]) -> list[list[str]]:
    """Parse frequency tables; each table is a list of columns separated by commas."""
    return [text.split(",") for text in texts]


def _read_labels(path: str) -> Any:
    """Return the row numbers in a labels file, counted from 0."""
    from shoal.tables.files import read_table

    return read_table(Path(path))["record"].numbers().values.astype(int) - 1
