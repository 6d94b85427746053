"""Command ``shoal publish``: publish a table with differential privacy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.terminal import option, say, say_pair, values_of, with_parameters
from shoal.core.errors import GroupsAsGivenWarning, InputError
from shoal.core.parameters import ESSENTIALS, OUTPUT
from shoal.privacy.publication_methods import DEFAULT, PUBLICATION_METHODS, find_publication_method
from shoal.privacy.publish_request import PublishRequest
from shoal.tables.reading import ReadingOptions

if TYPE_CHECKING:
    from shoal.privacy.exploration import Exploration

__all__ = ["publish", "read_bounds_options", "read_budget", "read_categories"]


DEFINITIONS = {"standard": 1, "microaggregated": 3}
File = Path | None


@with_parameters(PublishRequest)
def publish(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Table to publish: CSV, Parquet, Arrow, SPSS, …")],
    definition: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="Scope of epsilon, see above",
            rich_help_panel=ESSENTIALS,
        ),
    ] = "standard",
    method: Annotated[str | None, option("method", PublishRequest)] = None,
    explore: Annotated[
        bool,
        typer.Option(
            "--explore",
            help="Show the expected errors without a release (-o: image file)",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="With --explore: use confidential values; never publish output",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    manifest: Annotated[
        File,
        typer.Option(
            metavar="FILE", help="File for the terms of the release (JSON); may be published", rich_help_panel=OUTPUT
        ),
    ] = None,
    private_manifest: Annotated[
        File,
        typer.Option(
            metavar="FILE", help="File for exact figures (JSON); for the data holder only", rich_help_panel=OUTPUT
        ),
    ] = None,
    report: Annotated[
        File,
        typer.Option(metavar="FILE", help="File for a report (HTML); may be published", rich_help_panel=OUTPUT),
    ] = None,
    private_report: Annotated[
        File,
        typer.Option(
            metavar="FILE",
            help="File for an exact report (HTML); for the data holder only",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    **options: Any,
) -> None:
    """Publish a table with differential privacy: noisy group means, or records drawn from noisy counts.

    Scope of epsilon: methods insensitive-ir (the default), insensitive and none are epsilon-
    differentially private from raw table to released table (Definition 1); so is marginals, except
    for a tiny delta, and it releases columns that belong together. All other methods protect the
    values of individuals with the groups taken as given (Definition 3 of Soria-Comas and
    Domingo-Ferrer): the groups are visible in the release, and an attacker who knows the other
    records can learn more from them than epsilon suggests. Such methods require
    --definition microaggregated. The summary states the guarantee in full.

    Columns that are not named are left out. Each person is assumed to have one record; with --unit
    and --contributions, epsilon covers all records of a person. With --explore, -k and --epsilon
    may be lists, such as 0.5,1,2.

    Example: shoal publish firms.csv -e 1 -b sales=0:1e6 -b wages=0:1e5 -o released.csv

    Example: shoal publish people.csv -e 1 --delta 1e-6 -m marginals -b age=0:120 -o drawn.csv

    Example: shoal publish firms.csv --bounds sales=0:1e6 --explore -o error.png
    """
    if not options["bounds"] and not options["categories"]:
        raise typer.BadParameter("set the domain of each column, e.g. --bounds sales=0:1e6", param_hint="--bounds")
    values = values_of(PublishRequest, options, **READERS)
    values["bounds"] = values["bounds"] or {}
    epsilon, k, output = values.pop("epsilon"), values.pop("k"), values["output"]
    if explore:
        if values["delta"] is not None:
            raise InputError("--delta requires -m marginals and cannot be combined with --explore. Leave it out.")
        names = ("bounds", "columns", "budget", "sets", "unit", "contributions", *ReadingOptions().plain())
        _explore(source, epsilon, k, method, output, {name: values[name] for name in names} | {"private": private})
        return
    if private:
        raise InputError("--private requires --explore: for a release, use --private-manifest or --private-report.")
    if epsilon is None:
        raise typer.BadParameter("set the privacy budget, e.g. --epsilon 1", param_hint="--epsilon")
    if output is None:
        raise typer.BadParameter("set the file of the released table, e.g. -o released.csv", param_hint="-o")
    values["method"] = _method(method, definition)
    values["epsilon"] = _number(epsilon, "--epsilon", float)
    values["k"] = None if k is None else _number(k, "-k", int)
    files = {"manifest": manifest, "private_manifest": private_manifest}
    _publish(source, values, files | {"report": report, "private_report": private_report})


def _method(method: str | None, definition: str) -> str:
    """Return the name of the requested method; refuse a method that the requested definition does not cover."""
    if definition not in DEFINITIONS:
        raise InputError(f"--definition must be standard or microaggregated, got {definition!r}.")
    entry = find_publication_method(method or (DEFAULT if definition == "standard" else "optimal"))
    if entry.definition == 3 and definition == "standard":
        raise InputError(
            f"Method {entry.name!r} covers values with the groups taken as given (Definition 3): the release shows "
            "groups that follow the data, and an attacker who knows the other records can learn more from them than "
            "epsilon suggests. Use --definition microaggregated to accept that, or -m insensitive-ir."
        )
    if entry.definition == 1 and definition == "microaggregated":
        raise InputError(
            f"Method {entry.name!r} does not rely on given groups and is covered by the standard definition. Leave "
            "--definition out."
        )
    return entry.name


def _publish(source: Path, values: dict[str, Any], files: dict[str, Path | None]) -> None:
    from shoal.privacy.mechanism import publish_request
    from shoal.privacy.publication import write_private_manifest, write_publication_manifest
    from shoal.tables.files import check_targets

    output = values["output"]
    check_targets(source, output=output, **files, ledger=values["ledger"])
    with warnings.catch_warnings():
        # The user accepts this with --definition microaggregated, and the summary states it in full.
        warnings.simplefilter("ignore", GroupsAsGivenWarning)
        publication = publish_request(source, PublishRequest(**values))
    say(str(publication))
    say_pair("released table", output)
    if (path := files["manifest"]) is not None:
        write_publication_manifest(publication, path, output=output)
        say_pair("manifest", path)
    if (path := files["private_manifest"]) is not None:
        write_private_manifest(publication, path, source=source, output=output)
        say_pair("private manifest", path)
    for name, secret in (("report", False), ("private_report", True)):
        if (path := files[name]) is not None:
            publication.report(path, private=secret)
            say_pair(name.replace("_", " "), path)


def read_categories(texts: list[str]) -> dict[str, list[str]]:
    """Parse COLUMN=A,B options.

    Examples
    --------
    >>> read_categories(["sex=f,m"])
    {'sex': ['f', 'm']}
    """
    categories: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--categories must be COLUMN=A,B,…, such as sex=f,m, got {text!r}.")
        if name in categories:
            raise InputError(f"--categories names column {name!r} twice. Name it once.")
        categories[name] = values.split(",")
    return categories


def read_bounds_options(texts: list[str]) -> dict[str, tuple[float, float]] | str:
    """Parse COLUMN=LOW:HIGH options.

    Examples
    --------
    >>> read_bounds_options(["sales=0:1e6", "profit=-5:5"])
    {'sales': (0.0, 1000000.0), 'profit': (-5.0, 5.0)}
    """
    if texts == ["data"]:
        return "data"
    bounds: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, ends = text.rpartition("=")
        low, colon, high = ends.partition(":")
        try:
            pair = float(low), float(high)
        except ValueError:
            colon = ""
        if not (equals and colon):
            raise InputError(f"--bounds must be COLUMN=LOW:HIGH, such as sales=0:1e6, got {text!r}.")
        if name in bounds:
            raise InputError(f"--bounds names column {name!r} twice. Name it once.")
        bounds[name] = pair
    return bounds


def read_budget(text: str) -> dict[str, float] | str:
    """Parse the value of --budget: a word, or a share per column.

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
            f"--budget must be sensitivity, even or COLUMN=SHARE,…, such as sales=0.25,wages=0.75, got {text!r}."
        ) from None


READERS: dict[str, Callable[[Any], Any]] = {
    "bounds": read_bounds_options,
    "categories": read_categories,
    "budget": read_budget,
    "sets": lambda texts: [text.split(",") for text in texts],
}


def _explore(
    source: Path,
    epsilon: str | None,
    k: str | None,
    method: str | None,
    picture: Path | None,
    common: dict[str, Any],
) -> None:
    from shoal.privacy.exploration import EPSILONS, PICTURES
    from shoal.privacy.exploration import explore as look
    from shoal.tables.files import check_target

    if picture is not None:
        check_target(picture, endings=PICTURES)
    exploration: Exploration = look(
        source,
        epsilon=EPSILONS if epsilon is None else [_number(part, "--epsilon", float) for part in epsilon.split(",")],
        k=None if k is None else [_number(part, "-k", int) for part in k.split(",")],
        methods=tuple(PUBLICATION_METHODS) if method is None else method.split(","),
        **common,
    )
    say(str(exploration))
    if picture is not None:
        exploration.draw(picture)
        say("")
        say_pair("picture", picture)


def _number(text: str, name: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name} must be a number, got {text!r}.") from None
