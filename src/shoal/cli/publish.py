"""``shoal publish``: differentially private publication."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import option
from shoal.core.errors import InputError
from shoal.privacy.publication_methods import PUBLICATION_METHODS

if TYPE_CHECKING:
    from shoal.privacy.exploring import Exploration

__all__ = ["publish", "read_bounds_options", "read_budget"]


def publish(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Table to publish: CSV, Parquet, Arrow, SPSS, …")],
    epsilon: Annotated[
        str | None,
        typer.Option("-e", "--epsilon", help="Privacy budget of this release; with --explore a list: 0.5,1,2."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "-b",
            "--bounds",
            metavar="COLUMN=LOW:HIGH",
            help="Domain of a column, from public knowledge; repeat. 'data' reads it from the data: experiments only.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where the released table goes; with --explore the picture.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("-c", "--column", help="Column to publish; repeat. Those with bounds if not given."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            help=f"One of: {', '.join(PUBLICATION_METHODS)}; optimal if not given. With --explore a list, or all.",
        ),
    ] = None,
    k: Annotated[
        str | None, typer.Option("-k", help="Records in a group (optimal: at least); with --explore a list: 5,10,50.")
    ] = None,
    budget: Annotated[
        str,
        typer.Option(help="How columns share epsilon: even, sensitivity (by width of domain), or COLUMN=SHARE,…"),
    ] = "even",
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COLUMN,COLUMN", help="Method mdav: columns to group together; repeat."),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column to release as it is, WITHOUT any protection; repeat.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column that says whose records they are: epsilon then covers all records of a person."),
    ] = None,
    contributions: Annotated[
        int | None,
        typer.Option(help="With --unit: the greatest number of records one can have, from public knowledge."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="JSON file of the data set's spent budgets; checked and written first.")
    ] = None,
    total_budget: Annotated[float | None, typer.Option(help="Total budget of the data set, for a new ledger.")] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Release nothing: expected error of every method by k and epsilon.")
    ] = False,
    manifest: Annotated[Path | None, typer.Option(help="Also write what was done here (JSON).")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report of the release here (HTML).")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Reproducible noise, for experiments: such a table must not be released.")
    ] = None,
    delimiter: Annotated[str | None, option("delimiter")] = None,
    encoding: Annotated[str | None, option("encoding")] = None,
    decimal: Annotated[str | None, option("decimal")] = None,
    thousands: Annotated[str | None, option("thousands")] = None,
) -> None:
    """Publish a table with differential privacy: means of groups with Laplace noise.

    What epsilon covers: methods 'none' and 'insensitive' are epsilon-differentially private from raw table to released
    table (Definition 1). Methods 'optimal', 'mdav-ir' and 'mdav' protect the values of individuals with the groups
    taken as given (Definition 3 of Soria-Comas and Domingo-Ferrer); the groups are visible in the release and are
    formed from the confidential values. The summary says it in full; columns that are not named are dropped.
    Each person is taken to have one record; with --unit and --contributions epsilon covers all records of a person.

    Example: shoal publish firms.csv --epsilon 1 --bounds sales=0:1e6 --bounds wages=0:1e5 -o released.csv
    """
    if not bounds:
        raise typer.BadParameter("say the domain of each column, e.g. --bounds sales=0:1e6", param_hint="--bounds")
    common: dict[str, Any] = {
        "bounds": read_bounds_options(bounds),
        "columns": columns or None,
        "budget": read_budget(budget),
        "sets": [members.split(",") for members in sets] if sets else None,
        "unit": unit,
        "contributions": contributions,
        "delimiter": delimiter,
        "encoding": encoding,
        "decimal": decimal,
        "thousands": thousands,
    }
    if explore:
        _explore(source, epsilon, k, method, output, common)
        return
    if epsilon is None:
        raise typer.BadParameter("say the privacy budget, e.g. --epsilon 1", param_hint="--epsilon")
    if output is None:
        raise typer.BadParameter("say where the released table goes, e.g. -o released.csv", param_hint="-o")

    from shoal.privacy.publication_manifest import write_publication_manifest
    from shoal.privacy.publishing import publish as publish_table
    from shoal.tables.files import check_targets

    check_targets(source, output=output, manifest=manifest, report=report, ledger=ledger)
    publication = publish_table(
        source,
        _number(epsilon, "--epsilon", float),
        method=method or "optimal",
        k=None if k is None else _number(k, "-k", int),
        keep=keep or None,
        ledger=ledger,
        total_budget=total_budget,
        seed=seed,
        output=output,
        **common,
    )
    typer.echo(str(publication))
    typer.echo(f"{'released table':<17} {output}")
    if manifest is not None:
        write_publication_manifest(publication, manifest, source=source, output=output)
        typer.echo(f"{'manifest':<17} {manifest}")
    if report is not None:
        publication.report(report)
        typer.echo(f"{'report':<17} {report}")


def read_bounds_options(given: list[str]) -> dict[str, tuple[float, float]] | str:
    """Read COLUMN=LOW:HIGH options.

    Examples
    --------
    >>> read_bounds_options(["sales=0:1e6", "profit=-5:5"])
    {'sales': (0.0, 1000000.0), 'profit': (-5.0, 5.0)}
    """
    if given == ["data"]:
        return "data"
    bounds: dict[str, tuple[float, float]] = {}
    for text in given:
        name, equals, ends = text.rpartition("=")
        low, colon, high = ends.partition(":")
        try:
            pair = float(low), float(high)
        except ValueError:
            colon = ""
        if not (equals and colon):
            raise InputError(f"Option --bounds must read COLUMN=LOW:HIGH, got {text!r}; for example sales=0:1e6.")
        if name in bounds:
            raise InputError(f"Option --bounds names column {name!r} twice.")
        bounds[name] = pair
    return bounds


def read_budget(text: str) -> dict[str, float] | str:
    """Read the word or the shares of --budget.

    Examples
    --------
    >>> read_budget("sales=0.25,wages=0.75")
    {'sales': 0.25, 'wages': 0.75}
    """
    if "=" not in text:
        return text
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    try:
        return {name: float(share) for name, _, share in pairs}
    except ValueError:
        raise InputError(
            f"Option --budget must be sensitivity, even or COLUMN=SHARE,…, got {text!r}; for example "
            "sales=0.25,wages=0.75."
        ) from None


def _explore(
    source: Path,
    epsilon: str | None,
    k: str | None,
    method: str | None,
    picture: Path | None,
    common: dict[str, Any],
) -> None:
    from shoal.privacy.exploring import EPSILONS, PICTURES
    from shoal.privacy.exploring import explore as look
    from shoal.tables.files import check_target

    if picture is not None:
        check_target(picture, endings=PICTURES)
    found: Exploration = look(
        source,
        epsilon=EPSILONS if epsilon is None else [_number(part, "--epsilon", float) for part in epsilon.split(",")],
        k=None if k is None else [_number(part, "-k", int) for part in k.split(",")],
        methods=tuple(PUBLICATION_METHODS) if method is None else method.split(","),
        **common,
    )
    typer.echo(str(found))
    if picture is not None:
        found.draw(picture)
        typer.echo(f"\n{'picture':<17} {picture}")


def _number(text: str, name: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"Option {name} must be a number, got {text!r}.") from None
