"""Command ``shoal mask``: mask a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.streams import STREAM, check_streams, path_or_address, read_stdin, written_to_stdout
from shoal.cli.terminal import flags_of, say_rows, say_verdict, typed_rows, values_of, was_said, with_parameters
from shoal.core.errors import InputError
from shoal.core.messages import without_passwords
from shoal.core.parameters import LARGE, METHOD, OUTPUT
from shoal.masking.request import MaskRequest, parameters
from shoal.tables.addresses import as_place

if TYPE_CHECKING:
    from shoal.masking.manifest import Recorded
    from shoal.masking.release import Release
    from shoal.tables.files import TableFile

__all__ = ["mask", "print_release", "read_pairs"]

# Options allowed with --from-manifest: a manifest sets parameters, never files or clusters.
WITH_MANIFEST = {item.name for item in parameters() if not item.metadata["stored"] and item.name != "roles"} | {
    "source", "query", "engine", "manifest", "report", "from_manifest", "verbose",
}  # fmt: skip


@with_parameters(MaskRequest, required=("k", "output"))
def mask(
    context: typer.Context,
    source: Annotated[
        Any,
        typer.Argument(
            parser=path_or_address,
            metavar="IN",
            help="File, folder, glob or database address; - for CSV from standard input",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-O", "--option", metavar="NAME=VALUE", help="Option of the method; repeatable", rich_help_panel=METHOD
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="SECONDS",
            help="Time limit for methods search and decomposition",
            rich_help_panel=METHOD,
        ),
    ] = None,
    bound: Annotated[
        bool,
        typer.Option("--bound", help="Also prove a lower bound on the loss", rich_help_panel=METHOD),
    ] = False,
    no_block: Annotated[bool, typer.Option("--no-block", help="Never mask in blocks", rich_help_panel=LARGE)] = False,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File for the manifest (JSON), which repeats the run", rich_help_panel=OUTPUT
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for a report (HTML)", rich_help_panel=OUTPUT)
    ] = None,
    from_manifest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Manifest of a run to repeat, with the same bytes", rich_help_panel=OUTPUT),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the time of each step", rich_help_panel=OUTPUT)
    ] = False,
    **values: Any,
) -> None:
    """Mask a table: groups of at least k similar records share their values.

    Example: shoal mask firms.csv -k 5 -c sales,assets --by region -o masked.csv

    Example: shoal mask sqlite:///people.db --query people -k 5 --drop name -o masked.csv

    Example: shoal mask big.parquet -k 5 --memory 2GB -o masked.parquet --manifest run.json

    Ctrl-C during -m search releases the best result so far, verified; SIGTERM releases nothing.
    With --from-manifest, name files outside its folder (IN, -o) and a database (IN, --query).
    """
    recorded = None
    if STREAM in (str(source), str(values["output"])):
        check_streams(source, values, manifest=manifest, report=report, from_manifest=from_manifest)
    if from_manifest is not None:
        recorded = _read_recorded(context, from_manifest)
        names = ("engine", "scheduler", "master", "output", "labels", "query")
        request = recorded.request(**{name: values[name] for name in names})
        source = recorded.source(source, values["query"])
    else:
        source = _check_required(source, values)
        values = values_of(MaskRequest, values)
        if no_block:
            values["block"] = 0
        options = _options(option or [], time_limit, bound=bound)
        if str(values["output"]) == STREAM:
            with written_to_stdout() as values["output"]:
                release = _run(source, MaskRequest(**values, options=options, progress=True), None, None, None)
                print_release(release, _shown(labels=values["labels"]), verbose=verbose)
            return
        request = MaskRequest(**values, options=options, progress=True)
    release = _run(source, request, recorded, manifest, report)
    done = "masked table" if recorded is None else "same bytes"
    prefix = "" if recorded is None else "the masked table is the recorded one: "
    written = {done: request.output, "labels": request.labels, "manifest": manifest, "report": report}
    shown = _shown(**written)
    if done in shown:
        shown[done] = prefix + shown[done]
    print_release(release, shown, verbose=verbose)


def _shown(**files: Any) -> dict[str, str]:
    """Return the paths of files as printed, without passwords."""
    return {name: without_passwords(str(as_place(path))) for name, path in files.items() if path is not None}


def _run(
    source: Path | TableFile,
    request: MaskRequest,
    recorded: Recorded | None,
    manifest: Path | None,
    report: Path | None,
) -> Release:
    """Mask the table and write all requested files, which are moved into place together."""
    from shoal.masking.mask import mask_request
    from shoal.tables.files import check_targets
    from shoal.tables.outputs import moved_together

    output: Any = request.output
    labels: Any = request.labels
    spark = request.engine == "spark"
    if spark:
        if manifest is not None:
            raise InputError(
                "--manifest cannot be combined with engine 'spark': a manifest is repeated to the byte, but the bytes "
                "of the files depend on the cluster. Leave it out."
            )
        output = labels = None  # Spark checks its targets itself
    check_targets(source, request.engine == "dask", output=output, labels=labels, manifest=manifest, report=report)
    with moved_together():
        original: Any = read_stdin() if str(source) == STREAM else source if spark else _read_once(source)
        release = mask_request(original, request)
        if recorded is not None:
            recorded.check(output)
        if manifest is not None:
            from shoal.masking.manifest import write_manifest

            write_manifest(release, manifest, source=source, output=output)
        if report is not None and spark:
            release.report(report)
        elif report is not None:
            from shoal.comparison.around import compare_around

            comparison = compare_around(release, original, progress=True)
            release.report(report, original=original, output=output, comparison=comparison)
    return release


def _read_once(source: Path | TableFile) -> TableFile:
    """Return the source as a table that is read only once."""
    from shoal.tables.files import TableFile

    return source if isinstance(source, TableFile) else TableFile(source)


def _check_required(source: Any, values: dict[str, Any]) -> Any:
    """Return the source; raise a usage error if the source, -k or -o is missing."""
    if source is None:
        raise typer.BadParameter("set the table to mask, e.g. firms.csv", param_hint="IN")
    if values["k"] is None:
        raise typer.BadParameter("set the smallest group size, e.g. -k 5", param_hint="-k")
    if values["output"] is None:
        raise typer.BadParameter("set the file for the masked table, e.g. -o masked.csv", param_hint="-o")
    return source


def _read_recorded(context: typer.Context, manifest: Path) -> Recorded:
    """Read a manifest; refuse options that the manifest sets."""
    from shoal.masking.manifest import read_manifest

    for parameter in context.command.params:
        origin = context.get_parameter_source(str(parameter.name))
        if parameter.name not in WITH_MANIFEST and origin is not None and origin.name == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} cannot be combined with --from-manifest: the manifest decides it. Leave it out."
            )
    return read_manifest(manifest)


def _options(pairs: list[str], seconds: float | None, *, bound: bool) -> dict[str, object]:
    options = read_pairs(pairs)
    if seconds is not None:
        options["time_limit"] = seconds
    if bound:
        options["bound"] = True
    return options


def read_pairs(pairs: list[str]) -> dict[str, object]:
    """Parse NAME=VALUE options.

    Examples
    --------
    >>> read_pairs(["gamma=0.2"])
    {'gamma': '0.2'}
    """
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"-O must be NAME=VALUE, such as gamma=0.2, got {pair!r}.")
    return {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs)}


def print_release(release: Release, places: Mapping[str, str], *, verbose: bool) -> None:
    """Print the summary and the paths of the files, without notes already printed as warnings.

    With `verbose`, also print the seconds per step.
    """
    rows = typed_rows(release.rows(), flags_of(mask))
    rows = [(name, text) for name, text in rows if name != "note" or not was_said(text)]
    if verbose:
        rows.append(("seconds", ", ".join(f"{step} {seconds:.3f}" for step, seconds in release.timings.items())))
    say_verdict(release.verdict, rows[0])
    say_rows([*rows[1:], *places.items()])
