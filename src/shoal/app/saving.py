"""Work that is saved and opened again: settings and figures, never a value of the table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import shoal
from shoal.app.plain_settings import from_plain, to_plain
from shoal.app.tab import Tab
from shoal.app.work import Source, Try

__all__ = ["open_work", "save_work"]

FORMAT = 1
ENDING = ".shoal"
# What the page shows of a try: a file may have been changed by anybody.
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
    source = work.source
    if source is None:
        return
    if path.suffix != ENDING:
        tab.refuse(f"Saved work must end in {ENDING}, got “{path.name}”.")
        return

    def write() -> Path:
        content = {
            "shoal work": FORMAT,
            "table": source.name,
            "sha256": _digest(source.path),
            "csv": dict(source.csv),
            "settings": to_plain(work, work.settings),
            "tries": [
                {
                    "number": t.number,
                    "settings": to_plain(work, t.settings),
                    "figures": t.figures,
                    "stopped": t.stopped,
                }
                for t in work.tries
            ],
            "chosen": work.chosen,
        }
        beside = path.with_name(f".{path.name}.part")
        beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return beside.replace(path)

    def saved(path: Path) -> None:
        work.saved, work.unsaved = str(path), False

    tab.run("Saving the work", write, saved)


def open_work(tab: Tab, path: Path) -> None:
    """Open the table of saved work and put its settings and tries back."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["shoal work"] != FORMAT:
            raise KeyError("shoal work")  # noqa: TRY301  (told below as any other file that is none)
        table, digest = Path(content["table"]), content["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        tab.refuse(f"File {path} is no saved work of shoal. Choose one that ends in {ENDING}.")
        return
    source = tab.work.source
    if table.is_absolute() and table.is_file():
        source = Source(table, str(table))
    elif source is None:
        tab.refuse(f"Table {table} of the saved work does not exist. Open it or drag it in, then open the work again.")
        return
    opened = source

    def check() -> None:
        if _digest(opened.path) != digest:
            raise shoal.InputError(
                f"Table {opened.title} is not the one that the work was saved with: its content differs. Open or drag "
                f"in {table.name} as it was, then open the work again."
            )

    def restore() -> None:
        work = tab.work
        try:
            settings = from_plain(tab.work, content["settings"])
            tries = [_read_try(tab, plain) for plain in content["tries"]]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise shoal.InputError(
                f"Saved work {path.name} does not fit table {opened.title}: its settings or figures are not those that "
                "shoal writes. The table is open with the proposed settings."
            ) from None
        work.settings, work.tries, work.chosen = settings, tries, content["chosen"]

    tab.open(opened.path, opened.name if opened.dragged else None, csv=content["csv"], check=check, then=restore)


def _digest(path: Path) -> str:
    if not path.is_file():
        raise shoal.FileError(f"File {path} does not exist. Check the path.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_try(tab: Tab, plain: Mapping[str, Any]) -> Try:
    """Return a try of saved work, or raise if its figures are not those of a try."""
    figures = plain["figures"]
    for name, kind in FIGURES.items():
        _require(isinstance(figures[name], kind))
    _require((figures["diversity"] is None) == (figures["closeness"] is None))
    _require(all(isinstance(warning, str) for warning in figures.get("warnings", [])))
    _require(isinstance(plain["number"], int) and all(isinstance(x, Real) for x in figures["column_loss"].values()))
    return Try(plain["number"], from_plain(tab.work, plain["settings"]), figures, stopped=bool(plain["stopped"]))


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError
