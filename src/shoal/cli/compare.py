"""``shoal compare``: methods and k side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import KIND_OPTIONS, option, read_codes, read_importance, read_kinds
from shoal.cli.printing import say, say_pair
from shoal.core.errors import InputError

__all__ = ["compare", "read_promises", "read_sizes"]

PROMISE = "Promises about the confidential columns to try, each on its own and beside none; repeat, or separate:"


def compare(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Table to mask, as for shoal mask.")],
    k: Annotated[str, typer.Option("-k", help="Group sizes to try, e.g. 3,5,10.")] = "3,5,10",
    columns: Annotated[list[str] | None, option("columns")] = None,
    nominal: Annotated[list[str] | None, KIND_OPTIONS["nominal"]] = None,
    ordinal: Annotated[list[str] | None, KIND_OPTIONS["ordinal"]] = None,
    hierarchy: Annotated[list[str] | None, KIND_OPTIONS["hierarchy"]] = None,
    date: Annotated[list[str] | None, KIND_OPTIONS["date"]] = None,
    methods: Annotated[
        list[str] | None, typer.Option("-m", "--method", help="Method to try; repeat. All if not given.")
    ] = None,
    distance: Annotated[list[str] | None, option("distance")] = None,
    importance: Annotated[list[str] | None, option("importance")] = None,
    by: Annotated[list[str] | None, option("by")] = None,
    weights: Annotated[str | None, option("weights")] = None,
    unit: Annotated[str | None, option("unit")] = None,
    confidential: Annotated[list[str] | None, option("confidential")] = None,
    diversity: Annotated[
        list[str] | None, typer.Option(help=f"{PROMISE} e.g. 2,3,5 or entropy:3; as for shoal mask.")
    ] = None,
    closeness: Annotated[list[str] | None, typer.Option(help=f"{PROMISE} e.g. 0.1,0.2,0.3; as for shoal mask.")] = None,
    missing: Annotated[str, option("missing")] = "error",
    missing_codes: Annotated[list[str] | None, option("missing_codes")] = None,
    small: Annotated[str, option("small")] = "error",
    zeros: Annotated[list[str] | None, option("zeros")] = None,
    sums: Annotated[list[str] | None, option("sums")] = None,
    integers: Annotated[str, option("integers")] = "float",
    aggregate: Annotated[str, option("aggregate")] = "mean",
    refine: Annotated[int, option("refine")] = 0,
    seed: Annotated[int, option("seed")] = 0,
    time_limit: Annotated[float, typer.Option(help="Seconds a run may take; slower methods are left out.")] = 10.0,
    thousands: Annotated[str | None, option("thousands")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the table here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page to read and print here (HTML).")] = None,
) -> None:
    """Compare methods, group sizes and promises on one table: loss, risk, groups, time, and which ones nothing beats.

    Example: shoal compare firms.csv -k 3,5,10 --by region --report comparison.html

    Example: shoal compare firms.csv -k 5 -c sales --confidential profit --closeness 0.1,0.2 -m mdav -m auto
    """
    from shoal.comparison.compare import compare as compare_methods
    from shoal.tables.files import check_targets, write_file

    check_targets(source, output=output, report=report)
    found = compare_methods(
        source,
        read_sizes(k),
        methods=methods or "all",
        columns=columns or None,
        kinds=read_kinds(nominal, ordinal, hierarchy, date),
        distance=distance or None,
        importance=read_importance(importance or []) or None,
        by=by or None,
        weights=weights,
        unit=unit,
        confidential=confidential or None,
        diversity=read_promises(diversity or []),
        closeness=read_promises(closeness or []),
        missing=missing,
        missing_codes=read_codes(missing_codes or []) or None,
        small=small,
        zeros=zeros or None,
        sums=sums or None,
        integers=integers,
        aggregate=aggregate,
        refine=refine,
        seed=seed,
        time_limit=time_limit,
        thousands=thousands,
        progress=True,
    )
    say(str(found))
    if output is not None:
        write_file(found.table, output)
        say_pair("table", output)
    if report is not None:
        found.report(report)
        say_pair("report", report)


def read_sizes(text: str) -> list[int]:
    """Read group sizes separated by commas.

    Examples
    --------
    >>> read_sizes("3, 5,10")
    [3, 5, 10]
    """
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(
            f"Option -k must be whole numbers separated by commas, such as 3,5,10; got {text!r}."
        ) from None


def read_promises(texts: Sequence[str]) -> list[str]:
    """Read promises separated by commas; what is said of single columns is one promise.

    Examples
    --------
    >>> read_promises(["0.1, 0.2", "pay=0.2,age=0.3"])
    ['0.1', '0.2', 'pay=0.2,age=0.3']
    """
    parts = [[text] if "=" in text else text.split(",") for text in texts]
    return [part.strip() for listed in parts for part in listed if part.strip()]
