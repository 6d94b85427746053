"""``shoal publish``: differentially private publication."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import option
from shoal.cli.printing import say, say_pair
from shoal.core.errors import GroupsAsGivenWarning, InputError
from shoal.privacy.publication_methods import DEFAULT, PUBLICATION_METHODS, find_publication_method

if TYPE_CHECKING:
    from shoal.privacy.exploration import Exploration

__all__ = ["publish", "read_bounds_options", "read_budget", "read_categories"]


Text = str | None
Texts = list[str] | None
File = Path | None
DEFINITIONS = {"standard": 1, "microaggregated": 3}

Source = Annotated[Path, typer.Argument(metavar="IN", help="Table to publish: CSV, Parquet, Arrow, SPSS, …")]
Epsilon = Annotated[
    Text, typer.Option("-e", "--epsilon", help="Privacy budget of this release; with --explore a list: 0.5,1,2.")
]
Delta = Annotated[
    float | None,
    typer.Option(help="Method marginals: what a probability may grow by beside the factor e^epsilon; e.g. 1e-9."),
]
Bounds = Annotated[
    Texts,
    typer.Option(
        "-b",
        "--bounds",
        metavar="COLUMN=LOW:HIGH",
        help="Domain of a column, from public knowledge; repeat. 'data' reads it from the data: experiments only.",
    ),
]
Categories = Annotated[
    Texts,
    typer.Option(
        "--categories",
        metavar="COLUMN=A,B,…",
        help="Column of categories (by randomised response; marginals: with all others), and all there can be, from "
        "public knowledge (other cells count as the last); repeat.",
    ),
]
Integers = Annotated[Texts, typer.Option("--integer", help="Column that is released as integers; repeat.")]
Output = Annotated[File, typer.Option("-o", "--output", help="The released table; with --explore the picture.")]
Columns = Annotated[
    Texts,
    typer.Option("-c", "--column", help="Column to publish; repeat. Those with bounds or categories if not given."),
]
Definition = Annotated[
    str,
    typer.Option(
        help="What epsilon covers: standard, the whole way from raw to released table (Definition 1); or "
        "microaggregated, values with the groups as given (Definition 3), which are visible and follow the data."
    ),
]
Method = Annotated[
    Text,
    typer.Option(
        "-m",
        "--method",
        help=f"One of: {', '.join(PUBLICATION_METHODS)}, marginals (with --delta), given, or one of shoal methods; "
        f"{DEFAULT} if not given (microaggregated: optimal). With --explore a list.",
    ),
]
GroupSize = Annotated[
    Text, typer.Option("-k", help="Records in a group (optimal: at least); with --explore a list: 5,10,50.")
]
Labels = Annotated[Text, typer.Option(help="Method given: the column that says which group a record is in.")]
Shares = Annotated[
    str, typer.Option(help="How columns share epsilon: even, sensitivity (by width of domain), or COLUMN=SHARE,…")
]
Sets = Annotated[
    Texts, typer.Option("--set", metavar="COLUMN,COLUMN", help="Method mdav: columns to group together; repeat.")
]
Keep = Annotated[Texts, typer.Option(help="Column to release as it is, WITHOUT any protection; repeat.")]
Truncate = Annotated[
    bool, typer.Option(help="Bring released values into the domain, which pulls their mean towards its middle.")
]
Monotone = Annotated[
    bool, typer.Option(help="Bring noisy means of sorted groups into ascending order, which lowers their error.")
]
Unit = Annotated[
    Text, typer.Option(help="Column that says whose records they are: epsilon then covers all records of a person.")
]
Contributions = Annotated[
    int | None, typer.Option(help="With --unit: the greatest number of records one can have, from public knowledge.")
]
Ledger = Annotated[File, typer.Option(help="JSON file of the data set's spent budgets; checked and written first.")]
DataSet = Annotated[Text, typer.Option(help="Name of the data set that the ledger is kept for.")]
TotalBudget = Annotated[float | None, typer.Option(help="Total budget of the data set, for a new ledger.")]
TotalDelta = Annotated[float | None, typer.Option(help="Total of delta, for a new ledger of releases that have one.")]
NewLedger = Annotated[bool, typer.Option("--new-ledger", help="Start a ledger: this is the data set's first release.")]
Explore = Annotated[
    bool, typer.Option("--explore", help="Release nothing: expected error of every method by k and epsilon.")
]
Private = Annotated[
    bool,
    typer.Option("--private", help="With --explore: look at the confidential values. Keep what is printed inside."),
]
Manifest = Annotated[File, typer.Option(help="Also write the terms of the release here (JSON); may be published.")]
PrivateManifest = Annotated[File, typer.Option(help="Also write exact figures here (JSON), for the data holder alone.")]
Report = Annotated[File, typer.Option(help="Also write a report of the release here (HTML); may be published.")]
PrivateReport = Annotated[
    File, typer.Option(help="Also write one with exact figures (HTML), for the data holder alone.")
]
Seed = Annotated[
    int | None, typer.Option(help="Reproducible noise, for experiments: such a table must not be released.")
]


def publish(
    source: Source,
    epsilon: Epsilon = None,
    delta: Delta = None,
    bounds: Bounds = None,
    output: Output = None,
    columns: Columns = None,
    definition: Definition = "standard",
    method: Method = None,
    k: GroupSize = None,
    labels: Labels = None,
    categories: Categories = None,
    integers: Integers = None,
    truncate: Truncate = True,
    monotone: Monotone = True,
    budget: Shares = "even",
    sets: Sets = None,
    keep: Keep = None,
    unit: Unit = None,
    contributions: Contributions = None,
    ledger: Ledger = None,
    dataset: DataSet = None,
    total_budget: TotalBudget = None,
    total_delta: TotalDelta = None,
    new_ledger: NewLedger = False,
    explore: Explore = False,
    private: Private = False,
    manifest: Manifest = None,
    private_manifest: PrivateManifest = None,
    report: Report = None,
    private_report: PrivateReport = None,
    seed: Seed = None,
    delimiter: Annotated[str | None, option("delimiter")] = None,
    encoding: Annotated[str | None, option("encoding")] = None,
    decimal: Annotated[str | None, option("decimal")] = None,
    thousands: Annotated[str | None, option("thousands")] = None,
) -> None:
    """Publish a table with differential privacy: means of groups with noise, or records drawn from noisy counts.

    What epsilon covers: methods 'insensitive-ir' (the default), 'insensitive' and 'none' are epsilon-differentially
    private from raw table to released table (Definition 1); 'marginals' is so but for a tiny delta, and
    releases columns that belong together. All others protect the values of individuals with the
    groups taken as given (Definition 3 of Soria-Comas and Domingo-Ferrer): the groups are visible in the release, and
    whoever knows the other records can learn from them more than epsilon says. Such a method must be asked for with
    --definition microaggregated. The summary says it in full; columns that are not named are dropped.
    Each person is taken to have one record; with --unit and --contributions epsilon covers all records of a person.

    Example: shoal publish firms.csv --epsilon 1 --bounds sales=0:1e6 --bounds wages=0:1e5 -o released.csv

    Example: shoal publish people.csv -e 1 --delta 1e-6 -m marginals -b age=0:120 --categories sex=f,m -o drawn.csv

    Example: shoal publish firms.csv --bounds sales=0:1e6 --explore -o error.png
    """
    if not bounds and not categories:
        raise typer.BadParameter("say the domain of each column, e.g. --bounds sales=0:1e6", param_hint="--bounds")
    common: dict[str, Any] = {
        "bounds": read_bounds_options(bounds or []),
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
        if delta is not None:
            raise InputError("Option --delta goes with a release by method marginals, which --explore has no error of.")
        _explore(source, epsilon, k, method, output, common | {"private": private})
        return
    if private:
        raise InputError("Option --private goes with --explore: a release has --private-manifest and --private-report.")
    if epsilon is None:
        raise typer.BadParameter("say the privacy budget, e.g. --epsilon 1", param_hint="--epsilon")
    if output is None:
        raise typer.BadParameter("say where the released table goes, e.g. -o released.csv", param_hint="-o")
    common |= {
        "method": _method(method, definition),
        "delta": delta,
        "k": None if k is None else _number(k, "-k", int),
        "labels": labels,
        "categories": read_categories(categories or []),
        "integers": integers or None,
        "truncate": truncate,
        "monotone": monotone,
        "keep": keep or None,
        "ledger": ledger,
        "dataset": dataset,
        "total_budget": total_budget,
        "total_delta": total_delta,
        "new_ledger": new_ledger,
        "seed": seed,
        "output": output,
    }
    files = {"manifest": manifest, "private_manifest": private_manifest}
    pages = {"report": report, "private_report": private_report}
    _publish(source, _number(epsilon, "--epsilon", float), common, files | pages)


def _method(method: str | None, definition: str) -> str:
    """Return the method that was asked for, if it is one of the definition that was."""
    if definition not in DEFINITIONS:
        raise InputError(f"Option --definition must be standard or microaggregated, got {definition!r}.")
    chosen = find_publication_method(method or (DEFAULT if definition == "standard" else "optimal"))
    if chosen.definition == 3 and definition == "standard":
        raise InputError(
            f"Method {chosen.name!r} covers values with the groups taken as given (Definition 3): the release shows "
            "groups that follow the data, and whoever knows the other records can learn from them more than epsilon "
            "says. Say --definition microaggregated if that may be, or take -m insensitive-ir."
        )
    if chosen.definition == 1 and definition == "microaggregated":
        raise InputError(
            f"Method {chosen.name!r} does not take the groups as given: it is covered by the standard definition. "
            "Leave --definition out."
        )
    return chosen.name


def _publish(source: Path, epsilon: float, options: dict[str, Any], files: dict[str, Path | None]) -> None:
    from shoal.privacy.publication_manifest import write_private_manifest, write_publication_manifest
    from shoal.privacy.publishing import publish as publish_table
    from shoal.tables.files import check_targets

    output = options["output"]
    check_targets(source, output=output, **files, ledger=options["ledger"])
    with warnings.catch_warnings():
        # It was asked for by --definition microaggregated, and the summary says it in full.
        warnings.simplefilter("ignore", GroupsAsGivenWarning)
        publication = publish_table(source, epsilon, **options)
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


def read_categories(given: list[str]) -> dict[str, list[str]] | None:
    """Read COLUMN=A,B options; None if there are none.

    Examples
    --------
    >>> read_categories(["sex=f,m"])
    {'sex': ['f', 'm']}
    """
    categories: dict[str, list[str]] = {}
    for text in given:
        name, equals, listed = text.partition("=")
        if not equals:
            raise InputError(f"Option --categories must read COLUMN=A,B,…, got {text!r}; for example sex=f,m.")
        if name in categories:
            raise InputError(f"Option --categories names column {name!r} twice.")
        categories[name] = listed.split(",")
    return categories or None


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
    from shoal.privacy.exploration import EPSILONS, PICTURES
    from shoal.privacy.exploration import explore as look
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
    say(str(found))
    if picture is not None:
        found.draw(picture)
        say("")
        say_pair("picture", picture)


def _number(text: str, name: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"Option {name} must be a number, got {text!r}.") from None
