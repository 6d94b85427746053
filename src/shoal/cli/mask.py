"""``shoal mask``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.algorithms.registry import AUTO, METHODS, check_options
from shoal.core.errors import InputError

if TYPE_CHECKING:
    from shoal.masking.release import Release

__all__ = ["mask", "print_release", "read_pairs"]

# What may be given with --from-manifest: a manifest decides parameters, never places.
BESIDE_MANIFEST = frozenset(
    ("source", "output", "labels", "manifest", "report", "engine", "scheduler", "from_manifest", "verbose")
)


def mask(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="IN", help="Table to mask: CSV, Parquet, Arrow, SPSS, Stata or SAS; a folder or glob of files."
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", help="The least number of records in a group.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where the masked table goes.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option("-c", "--column", help="Column to mask; repeat. All numeric ones if not given.")
    ] = None,
    method: Annotated[str, typer.Option("-m", "--method", help=f"One of: {', '.join([AUTO, *METHODS])}.")] = AUTO,
    option: Annotated[
        list[str] | None, typer.Option("-O", "--option", metavar="NAME=VALUE", help="Option of the method; repeat.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--time", help="Seconds for methods search and decomposition.")
    ] = None,
    bound: Annotated[bool, typer.Option("--bound", help="Also prove how far from the optimum it can be.")] = False,
    by: Annotated[list[str] | None, typer.Option("--by", help="Column that splits into strata; repeat.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of record weights: keeps weighted totals.")] = None,
    missing: Annotated[str, typer.Option(help="Records with missing values: error, group or drop.")] = "error",
    integers: Annotated[str, typer.Option(help="Means of integer columns: float or round.")] = "float",
    aggregate: Annotated[str, typer.Option(help="A group's value: mean, median or medoid.")] = "mean",
    block: Annotated[
        int | None,
        typer.Option(help="Mask in blocks of at most so many records; 10000 above 100000 records if not given."),
    ] = None,
    no_block: Annotated[bool, typer.Option("--no-block", help="Never mask in blocks.")] = False,
    split: Annotated[str | None, typer.Option(help="How blocks are cut: all, one or univariate.")] = None,
    engine: Annotated[str | None, typer.Option(help="memory, local (a table that stays on disk) or dask.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory that engine local may use in all, such as 2GB.")] = None,
    processes: Annotated[int | None, typer.Option(help="Worker processes of engine local.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of the cluster for engine dask.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the result of a random method.")] = 0,
    labels: Annotated[Path | None, typer.Option(help="Also write group and group size of each record here.")] = None,
    manifest: Annotated[Path | None, typer.Option(help="Also write what was done here (JSON), to repeat it.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page to read and print here (HTML).")] = None,
    from_manifest: Annotated[
        Path | None,
        typer.Option(
            help="Repeat the run of this manifest and check that the bytes are the same. Files outside its folder must "
            "be named: IN, -o."
        ),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="CSV delimiter; found out if not given. 'tab' works.")] = None,
    encoding: Annotated[str | None, typer.Option(help="CSV encoding; found out if not given.")] = None,
    decimal: Annotated[str | None, typer.Option(help="CSV decimal sign; found out if not given.")] = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show the time of each step.")] = False,
) -> None:
    """Mask a table: groups of at least k similar records share their values.

    Example: shoal mask firms.csv -k 5 -c sales -c assets --by region -o masked.csv

    With -m search --time 60, Ctrl-C ends the search and releases the best so far, verified.
    """
    recorded, parameters = None, dict[str, Any]()
    if from_manifest is not None:
        from shoal.masking.manifest import read_manifest

        _refuse_beside_manifest(context)
        recorded = read_manifest(from_manifest)
        parameters = recorded.parameters(engine=engine, scheduler=scheduler)
        source, output = recorded.source(source), recorded.target(output)
    else:
        if source is None:
            raise typer.BadParameter("the table to mask is missing", param_hint="IN")
        if k is None:
            raise typer.BadParameter("say how many records a group must have, e.g. -k 5", param_hint="-k")
        if output is None:
            raise typer.BadParameter("say where the masked table goes, e.g. -o masked.csv", param_hint="-o")
        options = _options(option or [], seconds, bound=bound)
        check_options(method, options)  # before they stand among the parameters, whose names they must not have
        parameters = {
            "k": k,
            "columns": columns or None,
            "method": method,
            "by": by or None,
            "weights": weights,
            "missing": missing,
            "integers": integers,
            "aggregate": aggregate,
            "block": 0 if no_block else block,
            "split": split,
            "engine": engine,
            "memory": memory,
            "processes": processes,
            "scheduler": scheduler,
            "seed": seed,
            "delimiter": "\t" if delimiter in ("tab", "\\t") else delimiter,
            "encoding": encoding,
            "decimal": decimal,
            **options,
        }

    from shoal.masking.manifest import check_extras, write_manifest
    from shoal.masking.mask import mask as mask_table
    from shoal.tables.outputs import moved_together

    check_extras(source, output, labels=labels, manifest=manifest, report=report)
    with moved_together():
        release = mask_table(source, output=output, labels=labels, progress=True, **parameters)
        if recorded is not None:
            recorded.check(output)
        if manifest is not None:
            write_manifest(release, manifest, source=source, output=output)
        if report is not None:
            release.report(report, source=source, output=output)
    print_release(release, verbose=verbose)
    if recorded is not None:
        typer.echo(f"{'same bytes':<17} the masked table is the recorded one: {output}")
    else:
        typer.echo(f"{'masked table':<17} {output}")
    for name, path in (("labels", labels), ("manifest", manifest), ("report", report)):
        if path is not None:
            typer.echo(f"{name:<17} {path}")


def _refuse_beside_manifest(context: typer.Context) -> None:
    """Refuse options that the manifest decides."""
    for parameter in context.command.params:
        where = context.get_parameter_source(str(parameter.name))
        if parameter.name not in BESIDE_MANIFEST and where is not None and where.name == "COMMANDLINE":
            raise InputError(
                f"Option {parameter.opts[0]} does not go with --from-manifest: the manifest decides it. Leave it out."
            )


def _options(pairs: list[str], seconds: float | None, *, bound: bool) -> dict[str, object]:
    options = read_pairs(pairs)
    if seconds is not None:
        options["time_limit"] = seconds
    if bound:
        options["bound"] = True
    return options


def read_pairs(pairs: list[str]) -> dict[str, object]:
    """Read NAME=VALUE options.

    Examples
    --------
    >>> read_pairs(["gamma=0.2"])
    {'gamma': '0.2'}
    """
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"Option must read NAME=VALUE, got {pair!r}; for example -O gamma=0.2.")
    return {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs)}


def print_release(release: Release, *, verbose: bool) -> None:
    """Print the summary, and with verbose the seconds of each step."""
    typer.echo(str(release))
    if verbose:
        steps = ", ".join(f"{step} {seconds:.3f}" for step, seconds in release.timings.items())
        typer.echo(f"{'seconds':<17} {steps}")
