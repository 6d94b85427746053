"""``shoal assess``: how useful and how safe a masked file is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.assessment.measures import ALL, MEASURES
from shoal.cli.options import KIND_OPTIONS, option, read_codes, read_kinds
from shoal.cli.printing import say, say_pair
from shoal.core.wording import agreeing, count

__all__ = ["assess"]


def _measures() -> str:
    listed = "; ".join(f"{name}: {measure.help}" for name, measure in MEASURES.items())
    return f"More to measure, which takes longer; repeat, or {ALL}. {listed}."


def _users(parameter: str) -> str:
    return " or ".join(f"--measure {name}" for name, measure in MEASURES.items() if parameter in measure.uses)


def assess(
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The table before masking.")],
    masked: Annotated[Path, typer.Argument(metavar="MASKED", help="The same records, in the same order, masked.")],
    columns: Annotated[
        list[str] | None, typer.Option("-c", "--column", help="Masked column; repeat. Those that differ if not given.")
    ] = None,
    nominal: Annotated[list[str] | None, KIND_OPTIONS["nominal"]] = None,
    ordinal: Annotated[list[str] | None, KIND_OPTIONS["ordinal"]] = None,
    hierarchy: Annotated[list[str] | None, KIND_OPTIONS["hierarchy"]] = None,
    date: Annotated[list[str] | None, KIND_OPTIONS["date"]] = None,
    missing_codes: Annotated[list[str] | None, option("missing_codes")] = None,
    k: Annotated[int | None, typer.Option("-k", help="The k that was promised, to hold against the recount.")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Column of the strata; repeat.")] = None,
    confidential: Annotated[
        list[str] | None,
        typer.Option("--confidential", help="Unmasked column that nobody should learn of a person; repeat."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Regression to fit before and after, e.g. 'profit ~ sales + wages'; repeat."),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table", metavar="COLUMN,…", help="Frequency table to count before and after, e.g. region,sex; repeat."
        ),
    ] = None,
    measures: Annotated[list[str] | None, typer.Option("--measure", metavar="NAME", help=_measures())] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", help=f"Column that an outsider may know, for {_users('keys')}; repeat."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help=f"Column of sampling weights of the original, for {_users('weights')}.")
    ] = None,
    household: Annotated[
        str | None, typer.Option(help=f"Column that numbers households, for {_users('household')}.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="The labels file of the masking, if it left out records of the original or shuffled them."),
    ] = None,
    shuffled: Annotated[
        bool | None,
        typer.Option(
            "--shuffled/--no-shuffled",
            help="The masked records are in another order, and no labels tell it: measure what needs no pairs of "
            "records. If not given, an order that seems random is refused.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the samples that large tables are measured by.")] = 0,
    report: Annotated[Path | None, typer.Option(help="Also write a page to read and print here (HTML).")] = None,
    thousands: Annotated[str | None, option("thousands")] = None,
) -> None:
    """Measure what masking lost and what is still at risk. For the data steward: it prints statistics of the original.

    The page of --report holds no value of a single record. With -k, the exit code is 1 if a group has fewer records.

    Example: shoal assess firms.csv masked.csv -k 5 --by region --confidential sector
    """
    from shoal.assessment.assess import assess as assess_tables
    from shoal.core.errors import VerificationError
    from shoal.tables.files import check_targets, read_table

    check_targets(original, report=report)
    kept = None
    if labels is not None:
        kept = read_table(labels).column("record").values.astype(int) - 1
    found = assess_tables(
        original,
        masked,
        columns=columns or None,
        kinds=read_kinds(nominal, ordinal, hierarchy, date),
        missing_codes=read_codes(missing_codes or []) or None,
        k=k,
        by=by or None,
        confidential=confidential or None,
        model=model or None,
        tables=[crossed.split(",") for crossed in tables or []],
        measures=measures or None,
        keys=keys or None,
        weights=weights,
        household=household,
        kept=kept,
        shuffled=shuffled,
        seed=seed,
        thousands=thousands,
    )
    say(str(found))
    if report is not None:
        found.report(report)
        say("")
        say_pair("report", report)
    counted = found.risk.anonymity
    if counted.below:
        few = f"{counted.below:,} of {count(found.records, 'record')} {agreeing(counted.below, 'is', 'are')}"
        raise VerificationError(f"k = {k} is broken: {few} in groups of fewer, the smallest of {counted.k}.")
