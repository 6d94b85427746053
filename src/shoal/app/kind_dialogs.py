"""Kinds of columns that need more than a word: the order of levels, a hierarchy, how dates are written."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

import shoal
from shoal.app.parts import Entry, Select, button, dialog_over, dropped, field, hint, text
from shoal.app.tab import Tab
from shoal.app.words import typed_path
from shoal.kinds.kind_registry import KINDS, word_of_plain

__all__ = ["current_kind", "edit_kind", "kinds_for", "without_kind"]

MOST_LEVELS = 100
MOST_OF_HIERARCHY = 20_000_000  # bytes of a file


def kinds_for(column: Any) -> dict[str, str]:
    """Return the kinds that a column may have, and how they read."""
    kinds = {word: entry.label for word, entry in KINDS.items() if column.kind in entry.suits}
    return {"given": column.kind} | kinds if column.kind in KINDS["date"].suits and "ordinal" not in kinds else kinds


def current_kind(tab: Tab, column: Any) -> str:
    """Return the kind that a column has now."""
    kind = tab.work.settings.kinds.get(column.name)
    if kind is None:
        plain = {"float": "number", "integer": "number", "boolean": "nominal"}.get(column.kind, column.kind)
        return plain if plain in kinds_for(column) else "given"
    # A tree may be large, and saved work writes it in another form.
    return "hierarchy" if isinstance(kind, dict) and "ways" in kind else word_of_plain(kind)


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
        DIALOGS[KINDS[kind].dialog](tab, column.name, values, dialog)


def without_kind(kinds: dict[Any, Any], name: Any) -> None:
    """Take the kind of a column away, and of all that are one value with it."""
    kind = kinds.pop(name, None)
    together = isinstance(kind, dict) and "ways" not in kind
    for other in [other for other, same in kinds.items() if together and same == kind]:
        del kinds[other]


def _set(tab: Tab, name: Any, kind: Any, dialog: ui.dialog) -> None:
    """Take a kind, or say what is wrong with it."""
    try:
        request: Any = shoal.MaskRequest(k=2, kinds={name: kind})
    except shoal.ShoalError as error:
        tab.refuse(error)
    else:
        tab.work.settings.kinds |= request.plain_kinds()
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


def _pair(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    """Ask which columns of numbers are the latitude and the longitude."""
    text("h2", f"Place of {name}")
    hint("Latitudes and longitudes in degrees. Both columns get the kind, and distances are metres.")
    names = {str(other): other for other in tab.work.settings.roles}
    chosen = {"latitude": str(name), "longitude": str(name)}

    def choose(which: str, other: str) -> None:
        chosen[which] = other

    for which in chosen:
        label = f"Column of {which}s"
        with field(label):
            Select({other: other for other in names}, str(name), partial(choose, which), label=label)

    def take() -> None:
        _set(tab, (names[chosen["latitude"]], names[chosen["longitude"]]), "place", dialog)

    with ui.element("div").classes("s-row"):
        button("Take these columns", take, kind="main")
        button("Cancel", dialog.close)


DIALOGS = {"levels": _levels, "hierarchy": _hierarchy, "format": _date, "pair": _pair}
