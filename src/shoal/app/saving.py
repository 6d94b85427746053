"""Work that is saved and opened again: settings and figures, never a value of the table.

Where settings name values of the table (the order of levels, a hierarchy, codes for missing), the file holds their
place among the sorted values of the column, which says nothing without the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import shoal
from shoal.app.kind_dialogs import values_of
from shoal.app.tab import Tab
from shoal.app.work import Settings, Source, Try

__all__ = ["open_work", "save_work"]

FORMAT = 1
ENDING = ".shoal"


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
            "settings": _with_places(tab, work.settings),
            "tries": [
                {
                    "number": t.number,
                    "settings": _with_places(tab, t.settings),
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
        work.saved = str(path)

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
        tab.refuse(f"Table {table} of the saved work is not there. Open it or drag it in, then open the work again.")
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
        work.settings = _from_places(tab, content["settings"])
        work.tries = [
            Try(t["number"], _from_places(tab, t["settings"]), t["figures"], stopped=t["stopped"])
            for t in content["tries"]
        ]
        work.chosen = content["chosen"]

    tab.open(opened.path, opened.name if opened.dragged else None, csv=content["csv"], check=check, then=restore)


def _digest(path: Path) -> str:
    if not path.is_file():
        raise shoal.FileError(f"File {path} is not there. Check the path.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_places(tab: Tab, settings: Settings) -> dict[str, Any]:
    """Return settings as plain values, with places instead of values of the table."""
    plain = asdict(settings)
    for name in {*settings.kinds, *settings.codes}:
        places = {value: place for place, value in enumerate(values_of(tab, name))}
        # A code may be written otherwise than the cells that it stands for.
        places |= {str(value): place for value, place in list(places.items())}

        def hide(value: Any, known: Mapping[Any, int] = places) -> Any:
            return {"place": known[value]} if value in known else value

        _replace(plain, name, hide)
    return plain


def _from_places(tab: Tab, plain: dict[str, Any]) -> Settings:
    """Return settings with the values of the table in their places."""
    for name in {*plain["kinds"], *plain["codes"]}:
        values = values_of(tab, name)

        def show(value: Any, known: list[Any] = values) -> Any:
            return known[value["place"]] if isinstance(value, dict) else value

        _replace(plain, name, show)
    return Settings(**plain)


def _replace(plain: dict[str, Any], name: Any, change: Callable[[Any], Any]) -> None:
    """Change every value that settings name of a column; a hierarchy is written as a list of ways."""
    kind = plain["kinds"].get(name)
    if isinstance(kind, list):
        plain["kinds"][name] = [change(level) for level in kind]
    elif isinstance(kind, dict):
        ways = kind["ways"]
        if isinstance(ways, dict):
            ways = [[change(value), *map(change, above)] for value, above in ways.items()]
        else:
            ways = {change(value): [change(step) for step in above] for value, *above in ways}
        plain["kinds"][name] = {"ways": ways, "release": kind["release"]}
    if name in plain["codes"]:
        plain["codes"][name] = [change(code) for code in plain["codes"][name]]
