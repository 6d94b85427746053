"""Kinds of columns that need more than a word: the order of levels, a hierarchy, how dates are written."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

import shoal
from shoal.app.parts import Entry, button, dialog_over, dropped, field, hint, text
from shoal.app.tab import Tab
from shoal.app.words import typed_path

__all__ = ["current_kind", "edit_kind", "kinds_for"]

MOST_LEVELS = 100
MOST_OF_HIERARCHY = 20_000_000  # bytes of a file
WORDS = {"number": "number", "nominal": "category", "ordinal": "ordered category", "hierarchy": "hierarchy"}


def kinds_for(column: Any) -> dict[str, str]:
    """Return the kinds that a column may have, and how they read."""
    if column.kind in ("float", "integer"):
        return {name: WORDS[name] for name in ("number", "nominal", "ordinal", "hierarchy")}
    if column.kind in ("nominal", "ordinal", "boolean"):
        return {name: WORDS[name] for name in ("nominal", "ordinal", "hierarchy")} | {"date": "date or time"}
    return {"given": column.kind, "nominal": WORDS["nominal"], "date": "date or time"}


def current_kind(tab: Tab, column: Any) -> str:
    """Return the kind that a column has now."""
    kind = tab.work.settings.kinds.get(column.name)
    if kind is None:
        plain = {"float": "number", "integer": "number", "boolean": "nominal"}.get(column.kind, column.kind)
        return plain if plain in kinds_for(column) else "given"
    if isinstance(kind, str):
        return "date" if kind.startswith("date") else "nominal"
    return "ordinal" if isinstance(kind, list) else "hierarchy"


def edit_kind(tab: Tab, column: Any, kind: str) -> None:
    """Open the dialog of a kind; the column keeps its kind if it is left."""
    values = tab.work.values_of(column.name)
    if kind == "ordinal" and not tab.work.values:
        tab.refuse("Values are hidden, and their order cannot be chosen. Show them in the step Table first.")
        return
    if kind == "ordinal" and len(values) > MOST_LEVELS:
        tab.refuse(f"Column “{column.name}” has {len(values):,} values: too many to put in order by hand.")
        return
    with dialog_over(tab, afterwards=tab.changed) as dialog:  # the choice shows the kind that was taken
        {"ordinal": _levels, "hierarchy": _hierarchy, "date": _date}[kind](tab, column.name, values, dialog)


def _set(tab: Tab, name: Any, kind: Any, dialog: ui.dialog) -> None:
    """Take a kind, or say what is wrong with it."""
    try:
        shoal.MaskRequest(k=2, kinds={name: kind})
    except shoal.ShoalError as error:
        tab.refuse(error)
    else:
        tab.work.settings.kinds[name] = kind
    dialog.close()


def _levels(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    given = tab.work.settings.kinds.get(name)
    levels = list(given) if isinstance(given, list) else list(values)
    text("h2", f"Order of {name}")
    hint("From the lowest to the highest. Drag a level, or move it with the arrows.")

    def move(row: ui.row, by: int) -> None:
        place = list(column).index(row) + by
        if 0 <= place < len(levels):
            row.move(target_index=place)
            # In the browser a row that is moved loses the focus.
            ui.run_javascript(f"setTimeout(() => getHtmlElement({arrows[row, by].id}).focus())")

    # The rows themselves are moved, by the arrows here and by the mouse in the browser: what is clicked stays there.
    level_of: dict[ui.element, Any] = {}
    arrows: dict[tuple[ui.element, int], ui.element] = {}
    with ui.element("div").style("max-height: 50vh; overflow: auto; width: 100%"):
        with ui.column().classes("s-list").style("gap: 4px; width: 100%") as column:
            for level in levels:
                with ui.row().style(
                    "width: 100%; border: 1px solid var(--line); border-radius: 6px; padding: 3px 8px"
                ) as row:
                    text("span", str(level)).style("flex: 1; cursor: grab")
                    for arrow, by, way in (("↑", -1, "up"), ("↓", 1, "down")):
                        told = f"Move {level} {way} the list"
                        arrows[row, by] = button(arrow, partial(move, row, by), kind="small", label=told)
                level_of[row] = level
        column.make_sortable()
    with ui.element("div").classes("s-row"):
        button("Take this order", lambda: _set(tab, name, [level_of[row] for row in column], dialog), kind="main")
        button("Cancel", dialog.close)


def _hierarchy(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    text("h2", f"Hierarchy of {name}")

    def read(path: Path) -> None:
        try:
            found = shoal.Hierarchy(path)
        except shoal.ShoalError as error:
            tab.refuse(error)
            dialog.close()
            return
        listed: Any = found.ways
        _set(tab, name, {"ways": {v: list(a) for v, a in listed.items()}, "release": "ancestor"}, dialog)

    async def take(event: Any) -> None:
        place = tab.folder.fresh(event.file.name)
        await event.file.save(place)
        read(place)

    with field("A CSV file with a line a value, from the value to the root"):
        path = Entry("", lambda _: None).style("width: 100%")
    with ui.element("div").classes("s-row"):
        button("Take this file", lambda: read(typed_path(path.value)), kind="main")
        dropped(take, MOST_OF_HIERARCHY)
    if len(values) <= MOST_LEVELS and tab.work.values:
        _joining(tab, name, values, dialog)
    elif not tab.work.values:
        hint("Values are hidden: show them in the step Table to join them here.")
    button("Cancel", dialog.close)


def _joining(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    """Let values be joined to groups, by name."""
    given = tab.work.settings.kinds.get(name)
    ways = given["ways"] if isinstance(given, dict) else {}
    text("h3", "Or join values")
    hint("Name the group that each value belongs to. Values with the same name are joined; all groups meet at “all”.")
    entries = {}
    with ui.element("div").style("max-height: 36vh; overflow: auto; width: 100%"):
        for value in values:
            with ui.element("div").style("display: flex; gap: 8px; margin-bottom: 4px; align-items: center"):
                text("span", str(value)).style("flex: 1")
                above = (ways.get(value) or [""])[0]
                entries[value] = Entry(above, lambda _: None, label=f"Group of {value}")

    def join() -> None:
        made = {value: [entry.value.strip() or str(value), "all"] for value, entry in entries.items()}
        _set(tab, name, {"ways": made, "release": "ancestor"}, dialog)

    button("Take these groups", join, kind="main")


def _date(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    given = tab.work.settings.kinds.get(name)
    format_ = given.partition(" ")[2] if isinstance(given, str) and given.startswith("date") else ""
    text("h2", f"Dates of {name}")
    with field("How they are written", "Such as %d.%m.%Y for 31.12.2024; empty for 2024-12-31."):
        entry = Entry(format_, lambda _: None)
    with ui.element("div").classes("s-row"):
        button("Take it", lambda: _set(tab, name, f"date {entry.value}".strip(), dialog), kind="main")
        button("Cancel", dialog.close)
