"""Saved work: a file of settings and figures, without values of the table except codes for missing values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import shoal
from shoal.app.folder import replacing
from shoal.app.settings import from_plain, to_plain
from shoal.app.tab import Tab
from shoal.app.table_file import OpenedFile
from shoal.app.versions import Version
from shoal.app.work import Work

__all__ = ["ENDING", "open_work", "save_work"]

FORMAT = 1
ENDING = ".shoal"
# The figures of a card and their types, which are checked because a file may have been edited.
FIGURES: dict[str, Any] = {
    "method": str,
    "k": int,
    "records": int,
    "groups": int,
    "loss": Real,
    "column_loss": dict,
    "uniques": int,
    "linked": Real | None,
    "diversity": Real | None,
    "closeness": Real | None,
    "seconds": Real,
    "verified": str,
}


def save_work(tab: Tab, path: Path) -> None:
    """Write the work of a tab to a file."""
    work = tab.work
    if path.suffix != ENDING:
        tab.refuse(f"The name of saved work must end in {ENDING}, got “{path.name}”.")
        return

    def write() -> Path:
        with replacing(path) as part:
            part.write_text(json.dumps(_plain(work), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    def saved(path: Path) -> None:
        work.saved, work.unsaved = str(path), False

    tab.run("Saving the work", write, saved)


def _plain(work: Work) -> dict[str, Any]:
    return {
        "shoal work": FORMAT,
        "table": work.table.name,
        "sha256": _digest(work.table.path),
        "csv": dict(work.table.csv),
        "settings": to_plain(work, work.settings),
        "tries": [  # the name of versions in this file format
            {
                "number": version.number,
                "settings": to_plain(work, version.settings),
                "figures": version.figures,
                "stopped": version.stopped,
            }
            for version in work.versions
        ],
        "chosen": work.chosen,
    }


def open_work(tab: Tab, path: Path) -> None:
    """Open the table of saved work and restore its settings and versions."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["shoal work"] != FORMAT:
            raise KeyError("shoal work")  # noqa: TRY301  (refused below like any other file that is not saved work)
        original, digest = Path(content["table"]), content["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        tab.refuse(f"File {path} was not saved by shoal. Choose a {ENDING} file.")
        return
    table = tab.work.table
    if original.is_absolute() and original.is_file():
        table = OpenedFile(original, str(original))
    elif tab.work.inspection is None:
        tab.refuse(
            f"Table {original} of the saved work does not exist. Open or drag in a copy, then open the work again."
        )
        return

    def check() -> None:
        if _digest(table.path) != digest:
            raise shoal.InputError(
                f"Table {table.title} is not the table of the saved work: its content differs. Open or drag in "
                f"{original.name} with its former content, then open the work again."
            )

    def restore() -> None:
        work = tab.work
        try:
            settings = from_plain(work, content["settings"])
            versions = [_read_version(work, plain) for plain in content["tries"]]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise shoal.InputError(
                f"Saved work {path.name} does not fit table {table.title}: its settings or figures are invalid. The "
                "table is open with the proposed settings."
            ) from None
        work.settings, work.versions, work.chosen = settings, versions, content["chosen"]

    tab.open(table.path, table.name if table.dragged else None, csv=content["csv"], check=check, then=restore)


def _digest(path: Path) -> str:
    if not path.is_file():
        raise shoal.FileError(f"File {path} does not exist. Check the path.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_version(work: Work, plain: Mapping[str, Any]) -> Version:
    """Return a version of saved work; raise an error if its figures are invalid."""
    figures = plain["figures"]
    for name, kind in FIGURES.items():
        _require(isinstance(figures[name], kind))
    _require((figures["diversity"] is None) == (figures["closeness"] is None))
    _require(all(isinstance(line, str) for line in [figures.get("verdict", ""), *figures.get("warnings", [])]))
    _require(isinstance(plain["number"], int) and all(isinstance(x, Real) for x in figures["column_loss"].values()))
    return Version(plain["number"], from_plain(work, plain["settings"]), figures, stopped=bool(plain["stopped"]))


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError
