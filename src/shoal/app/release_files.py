"""The files of a release and their paths: masked table, report, manifest, labels and hierarchies."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import shoal
from shoal.app.folder import replacing
from shoal.app.table_file import OpenedFile
from shoal.app.versions import Version, require_unchanged

__all__ = ["check_targets", "hierarchy_files", "make_report", "targets_of", "write_files"]

ENDINGS = {"report": "-report.html", "manifest": "-manifest.json", "labels": "-labels.csv"}


def targets_of(masked: Path, release: shoal.Release, selected: Mapping[str, bool]) -> dict[str, Path]:
    """Return the paths of the files of a release, all named after the masked file."""
    files = {name: masked.with_name(masked.stem + ending) for name, ending in ENDINGS.items() if selected[name]}
    hierarchies = {f"hierarchy {name}": path for name, path in hierarchy_files(masked, release).items()}
    return {"masked": masked, **files, **hierarchies}


def hierarchy_files(masked: Path, release: shoal.Release) -> dict[Any, Path]:
    """Return the paths of the hierarchy files by column, for the command."""
    kinds = release.parameters["kinds"] or {}
    return {
        name: masked.with_name(f"{masked.stem}-hierarchy-{place}.csv")
        for place, (name, kind) in enumerate(kinds.items(), start=1)
        if isinstance(kind, dict) and "ways" in kind
    }


def check_targets(version: Version, table: OpenedFile, files: Mapping[str, Path], *, replace: Sequence[Path]) -> None:
    """Refuse paths that must not be written; only paths in `replace` may exist."""
    masked, ending = files["masked"], version.masked_file(table).suffix
    if not masked.parent.is_dir():
        raise shoal.FileError(f"Folder {masked.parent} does not exist. Create it, or choose another folder.")
    for path in files.values():
        if path.exists() and path.samefile(table.path):
            raise shoal.FileError(f"File {path} is the table itself. Choose another name.")
        if path.exists() and path not in replace:
            raise shoal.FileError(f"File {path} already exists. Choose another name, or write again to replace it.")
    if masked.suffix != ending:
        raise shoal.FileError(f"File {masked} must end in {ending}. Change its name.")


def write_files(
    version: Version, table: OpenedFile, files: Mapping[str, Path], *, replace: Sequence[Path]
) -> list[Path]:
    """Write the files of a version; after a crash, each file is entirely old or entirely new."""
    require_unchanged(table)
    check_targets(version, table, files, replace=replace)
    release: Any = version.release
    _copy(version.masked_file(table), files["masked"])
    for name, path in files.items():
        if name == "labels":
            _copy(version.labels, path)
        elif name == "report":
            _copy(make_report(version, table, files["masked"]), path)
        elif name.startswith("hierarchy "):
            _write_ways(release.parameters["kinds"], name.partition(" ")[2], path)
    if "manifest" in files:
        title = table.title if table.dragged else None
        release.manifest(files["manifest"], source=table.path, output=files["masked"], name=title)
    return list(files.values())


def _copy(original: Path, target: Path) -> None:
    with replacing(target) as part:
        part.touch(original.stat().st_mode & 0o777)  # labels stay readable by their owner only
        shutil.copyfile(original, part)


def _write_ways(kinds: Mapping[Any, Any], name: str, path: Path) -> None:
    ways = next(kind["ways"] for column, kind in kinds.items() if str(column) == name)
    first = [str(cell) for value, above in list(ways.items())[:1] for cell in (value, *above)]
    with path.open("w", encoding="utf-8", newline="") as file:
        delimiter = ";" if any(";" in cell for cell in first) else ","
        csv.writer(file, delimiter=delimiter).writerows([value, *above] for value, above in ways.items())


def make_report(version: Version, table: OpenedFile, output: Path) -> Path:
    """Make the report like `shoal mask --report`, with the same method at other k on the map."""
    release: Any = version.release
    if version.comparison is None:
        version.comparison = shoal.compare_around(release, table.path)
    release.report(version.report, original=table.path, output=output, comparison=version.comparison)
    return version.report
