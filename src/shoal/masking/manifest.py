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

from shoal.core.version import __version__
from shoal.masking.release import Release
from shoal.tables.files import sha256
from shoal.tables.outputs import written_beside, written_path
from shoal.tables.sources import find_paths

__all__ = [
    "LIBRARIES",
    "as_json",
    "described",
    "digests",
    "files_of",
    "plain",
    "relative_to",
    "versions",
    "write_manifest",
]

LIBRARIES = ("numpy", "numba", "polars", "pyarrow", "narwhals")


def write_manifest(
    release: Release,
    path: Path,
    *,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    name: str | None = None,
) -> None:
    """Write the manifest of a release; paths in it are relative to its folder, `name` stands for the source."""
    content = {
        **described(release),
        "input": {"path": name or relative_to(source, path), **digests(source)},
        "output": {"path": relative_to(output, path), "sha256": sha256(written_path(output))},
    }
    with written_beside(path) as temporary:
        temporary.write_text(as_json(content) + "\n", encoding="utf-8")


def digests(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the SHA-256 of a file; of a folder or a glob, that of the list of its files, and the list."""
    if Path(source).is_file():
        return {"sha256": sha256(source)}
    files = {path.name: sha256(path) for path in files_of(source)}
    listed = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    return {"sha256": hashlib.sha256(listed.encode()).hexdigest(), "files": files}


def files_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path, a folder or a glob names."""
    return [Path(source)] if Path(source).is_file() else find_paths(source)


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
            "groups": release.groups,
            "loss": release.loss,
            "partition_loss": release.partition_loss,
            "bound": release.bound,
            "gap": release.gap,
            "status": release.status,
            "column_loss": {str(name): loss for name, loss in release.column_loss.items()},
            "group_sizes": {str(size): count for size, count in release.size_histogram.items()},
            "reached": {str(name): dict(found) for name, found in release.reached.items()},
            "homogeneous": {str(name): count._asdict() for name, count in release.homogeneous.items()},
            "dominated": {str(name): count._asdict() for name, count in release.dominated.items()},
            "facts": dict(release.facts),
            "warnings": list(release.warnings),
            "notes": list(release.notes),
            "verified": True,
        },
        "seconds": {step: round(seconds, 4) for step, seconds in release.timings.items()},
    }


def as_json(content: Mapping[str, Any]) -> str:
    """Write a manifest's content as text."""
    return json.dumps(content, indent=2, ensure_ascii=False, default=plain)


def relative_to(target: str | os.PathLike[str], manifest: Path) -> str:
    """Return a path as it stands in a manifest."""
    return Path(os.path.relpath(target, manifest.parent)).as_posix()


def plain(value: object) -> object:
    """Return a NumPy number as JSON takes it."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a manifest")
