"""Dialogs for column kinds: the order of levels, a hierarchy, a date format, and the columns of a place."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

import shoal
from shoal.app.tab import Tab
from shoal.app.texts import typed_path
from shoal.app.widgets import Entry, Select, actions, button, dialog_over, field, hint, row, text, upload
from shoal.kinds.kind_registry import KINDS, word_of_plain

__all__ = ["current_kind", "edit_kind", "kinds_for", "without_kind"]

MOST_LEVELS = 100
MOST_OF_HIERARCHY = 20_000_000  # maximum size of a hierarchy file in bytes
TITLES = {"levels": "Order of", "hierarchy": "Hierarchy of", "format": "Date format of", "pair": "Place of"}


def kinds_for(column: Any) -> dict[str, str]:
    """Return the possible kinds of a column, with their labels."""
    kinds = {word: entry.label for word, entry in KINDS.items() if column.kind in entry.suits}
    return {"given": column.kind} | kinds if column.kind in KINDS["date"].suits and "ordinal" not in kinds else kinds


def current_kind(tab: Tab, column: Any) -> str:
    """Return the current kind of a column."""
    kind = tab.work.settings.kinds.get(column.name)
    if kind is None:
        plain = {"float": "number", "integer": "number", "boolean": "nominal"}.get(column.kind, column.kind)
        return plain if plain in kinds_for(column) else "given"
    # Do not build the tree: it may be large, and saved work stores it in another form.
    return "hierarchy" if isinstance(kind, dict) and "ways" in kind else word_of_plain(kind)


def edit_kind(tab: Tab, column: Any, kind: str) -> None:
    """Open the dialog of a kind. If the dialog is cancelled, the column keeps its kind."""
    values, dialog_name = tab.work.values_of(column.name), KINDS[kind].dialog
    if kind == "ordinal" and not tab.work.values:
        tab.refuse("Values are hidden, so they cannot be ordered. Show them in the Table step first.")
        return
    if kind == "ordinal" and len(values) > MOST_LEVELS:
        tab.refuse(f"Column “{column.name}” has {len(values):,} values; at most {MOST_LEVELS} can be ordered by hand.")
        return
    title = f"{TITLES[dialog_name]} {column.name}"
    with dialog_over(tab, title, closed=tab.changed) as dialog:  # the form then shows the new kind
        DIALOGS[dialog_name](tab, column.name, values, dialog)


def without_kind(kinds: dict[Any, Any], name: Any) -> None:
    """Remove the kind of a column, and of the columns combined with it."""
    kind = kinds.pop(name, None)
    if isinstance(kind, dict) and "ways" not in kind:
        for partner in [partner for partner, same in kinds.items() if same == kind]:
            del kinds[partner]


def _set(tab: Tab, name: Any, kind: Any, dialog: ui.dialog) -> None:
    """Set a kind, or show the error if the kind is refused."""
    try:
        request: Any = shoal.MaskRequest(k=2, kinds={name: kind})
    except shoal.ShoalError as error:
        tab.refuse(error)
    else:
        tab.work.settings.kinds |= request.plain_kinds()
    dialog.close()


def _levels(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    kind = tab.work.settings.kinds.get(name)
    levels = list(kind) if isinstance(kind, list) else list(values)
    hint("Sort the levels from lowest to highest: drag them or use the arrows.")

    def move(item: ui.row, by: int) -> None:
        place = list(column).index(item) + by
        if 0 <= place < len(levels):
            item.move(target_index=place)
            # A moved row loses the focus in the browser.
            ui.run_javascript(f"setTimeout(() => getHtmlElement({arrows[item, by].id}).focus())")

    # The arrows and the mouse move the existing rows instead of rebuilding the list, so the focus stays in its row.
    level_of: dict[ui.element, Any] = {}
    arrows: dict[tuple[ui.element, int], ui.element] = {}
    with ui.element("div").style("max-height: 50vh; overflow: auto; width: 100%"):
        with ui.column().classes("s-list").style("gap: 4px; width: 100%") as column:
            for level in levels:
                with ui.row().style(
                    "width: 100%; border: 1px solid var(--line); border-radius: 6px; padding: 3px 8px"
                ) as item:
                    text("span", str(level)).style("flex: 1; cursor: grab")
                    for arrow, by, direction in (("↑", -1, "up"), ("↓", 1, "down")):
                        label = f"Move {level} {direction} the list"
                        arrows[item, by] = button(arrow, partial(move, item, by), kind="small", label=label)
                level_of[item] = level
        column.make_sortable()
    actions(dialog, "Use this order", lambda: _set(tab, name, [level_of[item] for item in column], dialog))


def _hierarchy(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    def read(path: Path) -> None:
        try:
            ways: Any = shoal.Hierarchy(path).ways
        except shoal.ShoalError as error:
            tab.refuse(error)
            dialog.close()
            return
        _set(tab, name, {"ways": {v: list(above) for v, above in ways.items()}, "release": "ancestor"}, dialog)

    async def receive(event: Any) -> None:
        path = tab.folder.fresh(event.file.name)
        await event.file.save(path)
        read(path)

    with field("Path of a CSV file with one line per value, from the value to the root"):
        entry = Entry("").style("width: 100%")
    with row():
        button("Use this file", lambda: read(typed_path(entry.value)), kind="main")
        upload(receive, MOST_OF_HIERARCHY)
    if not tab.work.values:
        hint("Values are hidden. Show them in the Table step to group them here.")
    if tab.work.values and len(values) <= MOST_LEVELS:
        _value_groups(tab, name, values, dialog)
    else:
        button("Cancel", dialog.close)


def _value_groups(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    """Show an entry for the group name of each value."""
    kind = tab.work.settings.kinds.get(name)
    ways = kind["ways"] if isinstance(kind, dict) and isinstance(kind["ways"], dict) else {}
    text("h3", "Or group the values")
    hint("Enter a group name for each value. Values with the same group name are merged; “all” contains all groups.")
    entries = {}
    with ui.element("div").style("max-height: 36vh; overflow: auto; width: 100%"):
        for value in values:
            with ui.element("div").style("display: flex; gap: 8px; margin-bottom: 4px; align-items: center"):
                text("span", str(value)).style("flex: 1")
                entries[value] = Entry((ways.get(value) or [""])[0], label=f"Group of {value}")

    def join() -> None:
        groups = {value: [entry.value.strip() or str(value), "all"] for value, entry in entries.items()}
        _set(tab, name, {"ways": groups, "release": "ancestor"}, dialog)

    actions(dialog, "Use these groups", join)


def _date(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    kind = tab.work.settings.kinds.get(name)
    format_ = kind.partition(" ")[2] if isinstance(kind, str) and kind.startswith("date") else ""
    with field("Date format", "For example %d.%m.%Y for 31.12.2024. Leave it empty for 2024-12-31."):
        entry = Entry(format_)
    actions(dialog, "Use this format", lambda: _set(tab, name, f"date {entry.value}".strip(), dialog))


def _place(tab: Tab, name: Any, values: list[Any], dialog: ui.dialog) -> None:
    """Show selections of the latitude and longitude columns."""
    hint("Latitude and longitude are in degrees, distances in metres. Both columns get this kind.")
    names = {str(column): column for column in tab.work.settings.roles}
    chosen = {"latitude": str(name), "longitude": str(name)}
    for coordinate in chosen:
        label = f"{coordinate.capitalize()} column"
        with field(label):
            Select({n: n for n in names}, str(name), partial(chosen.__setitem__, coordinate), label=label)

    def use() -> None:
        _set(tab, (names[chosen["latitude"]], names[chosen["longitude"]]), "place", dialog)

    actions(dialog, "Use these columns", use)


DIALOGS = {"levels": _levels, "hierarchy": _hierarchy, "format": _date, "pair": _place}
