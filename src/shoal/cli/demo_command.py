"""Command ``shoal demo``: mask generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the files; created if it does not exist")
    ] = Path("demo"),
) -> None:
    """Generate a table of 3,000 fictitious firms, mask it, and list the files.

    Example: shoal demo --out demo
    """
    from shoal.cli.mask_command import print_release
    from shoal.cli.terminal import say
    from shoal.comparison.around import compare_around
    from shoal.core.errors import FileError
    from shoal.demo import firms
    from shoal.masking.manifest import write_manifest
    from shoal.masking.mask import mask
    from shoal.tables.files import write_file
    from shoal.tables.outputs import moved_together

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Folder {out} cannot be created: {error.strerror}.") from None
    original, masked, report = out / "firms.csv", out / "firms-masked.csv", out / "firms-report.html"
    write_file(firms(), original)
    command = f"shoal mask {original} -k 5 -o {masked} --report {report}"
    say(f"$ {command}", bold=True)
    with moved_together():
        release = mask(
            original,
            5,
            output=masked,
            labels=out / "firms-labels.csv",
            progress=True,
        )
        write_manifest(release, out / "firms-manifest.json", source=original, output=masked)
        release.report(report, original=original, output=masked, comparison=compare_around(release, original))
    places = {"original": original, "masked table": masked, "report": report}
    print_release(release, {name: str(path) for name, path in places.items()}, verbose=False)
