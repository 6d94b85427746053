"""The record of a run: what went in, what was asked, what came out. Enough to repeat it to the byte and to audit it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import __version__
from shoal.engines.sources import find_paths
from shoal.errors import FileError, InputError, VerificationError
from shoal.measures import group_sizes
from shoal.release import Release
from shoal.tables.files import check_target, sha256, write_file
from shoal.tables.outputs import written_beside, written_path

__all__ = [
    "LIBRARIES",
    "as_json",
    "check_extras",
    "described",
    "plain",
    "relative_to",
    "repeat",
    "versions",
    "write_labels",
    "write_manifest",
]

LIBRARIES = ("numpy", "numba", "polars", "pyarrow", "narwhals")


def write_manifest(
    release: Release, path: Path, *, source: str | os.PathLike[str], output: str | os.PathLike[str]
) -> None:
    """Write the manifest of a release; paths in it are relative to its own folder."""
    content = {
        **described(release),
        "input": {"path": relative_to(source, path), **_digests(source)},
        "output": {"path": relative_to(output, path), "sha256": sha256(written_path(output))},
    }
    with written_beside(path) as temporary:
        temporary.write_text(as_json(content) + "\n", encoding="utf-8")


def _digests(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the SHA-256 of a file; of a folder or a glob, that of the list of its files, and the list."""
    if Path(source).is_file():
        return {"sha256": sha256(source)}
    files = {path.name: sha256(path) for path in find_paths(source)}
    listed = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    return {"sha256": hashlib.sha256(listed.encode()).hexdigest(), "files": files}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide a result."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def described(release: Release) -> dict[str, Any]:
    """Return what a manifest says of a release, but for its files."""
    return {
        "shoal": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "parameters": dict(release.parameters),
        "result": {
            "records": release.records,
            "groups": len(release.sizes),
            "loss": release.loss,
            "bound": release.bound,
            "gap": release.gap,
            "status": release.status,
            "column_loss": {str(name): loss for name, loss in release.column_loss.items()},
            "group_sizes": {str(size): count for size, count in release.size_histogram.items()},
            "facts": dict(release.facts),
            "notes": list(release.notes),
            "verified": True,
        },
        "seconds": {step: round(seconds, 4) for step, seconds in release.timings.items()},
    }


def as_json(content: Mapping[str, Any]) -> str:
    """Write a manifest's content as text."""
    return json.dumps(content, indent=2, ensure_ascii=False, default=plain)


def repeat(path: Path, *, output: str | os.PathLike[str] | None = None, progress: bool = False) -> tuple[Release, Path]:
    """Run a manifest again and check that the masked table has the recorded bytes.

    Returns
    -------
    release, target
        The release and where its table was written.
    """
    from shoal.masking import mask

    content = _read(path)
    source = path.parent / content["input"]["path"]
    try:
        digests = _digests(source)
    except FileError:
        raise FileError(f"Manifest {path} names the input {source}, which is not there. Put the file back.") from None
    if digests["sha256"] != content["input"]["sha256"]:
        other = [
            name for name, digest in digests.get("files", {}).items() if content["input"]["files"].get(name) != digest
        ]
        which = f" ({', '.join(other[:5])})" if other else ""
        raise InputError(
            f"Input {source} is not the recorded one: its SHA-256 differs{which}. Put the recorded file back."
        )
    target = Path(output) if output is not None else path.parent / content["output"]["path"]
    parameters = dict(content["parameters"])
    options = parameters.pop("options")
    if parameters["weights"] == "given as a vector":
        raise InputError(f"Manifest {path} cannot be repeated: the weights were a vector that is not in a file.")
    if options.get("steps", 0) is None or parameters["method"] == "decomposition":
        raise InputError(
            f"Manifest {path} cannot be repeated to the byte: method {parameters['method']!r} was limited by time, and "
            "how far it comes depends on the machine. Give steps in place of a time to make a run repeatable."
        )
    release = mask(source, output=target, progress=progress, **parameters, **options)
    if sha256(target) != content["output"]["sha256"]:
        raise VerificationError(
            f"The repeated table {target} differs from the recorded one. The manifest was made by shoal "
            f"{content['shoal']} with {content['versions']}; this is shoal {__version__}."
        )
    return release, target


def write_labels(release: Release, path: Path) -> None:
    """Write the group of each released record and its size; `record` counts the rows of the given table from 1."""
    columns: dict[str, Any] = {"record": release.kept + 1}
    if release.labels.ndim == 1:
        columns |= {"group": release.labels, "size": group_sizes(release.labels)[release.labels]}
    else:
        for name, labels in zip(release.columns, release.labels.T, strict=True):
            columns |= {f"group_{name}": labels, f"size_{name}": group_sizes(labels)[labels]}
    write_file(pl.DataFrame({name: np.ascontiguousarray(values) for name, values in columns.items()}), path)


def check_extras(
    source: Path, output: Path, *, labels: Path | None, manifest: Path | None, report: Path | None = None
) -> None:
    """Refuse files that cannot be written, or that would overwrite each other, before any work is done."""
    named = [path for path in (source, output, labels, manifest, report) if path is not None]
    for path in named:
        if sum(path.resolve() == other.resolve() for other in named) > 1:
            raise InputError(
                f"File {path} is named twice among input, output, labels, manifest and report. Name another."
            )
    if labels is not None:
        check_target(labels)
    if manifest is not None:
        check_target(manifest, endings=(".json",))
    if report is not None:
        check_target(report, endings=(".html",))


def relative_to(target: str | os.PathLike[str], manifest: Path) -> str:
    """Return a path as it stands in a manifest."""
    return Path(os.path.relpath(target, manifest.parent)).as_posix()


def plain(value: object) -> object:
    """Return a NumPy number as JSON takes it."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a manifest")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        _ = content["input"]["path"], content["input"]["sha256"], content["output"]["path"], content["output"]["sha256"]
        _ = content["parameters"]["options"], content["parameters"]["weights"], content["versions"], content["shoal"]
    except FileNotFoundError:
        raise FileError(f"Manifest {path} is not there. Check the path.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"File {path} is not a manifest of shoal. Make one with shoal mask … --manifest.") from None
    manifest: Mapping[str, Any] = content
    return manifest
