"""Step 1, Table: choose a file, see what it holds and how it was read."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.app.guard import MOST_UPLOADED
from shoal.app.parts import (
    Entry,
    button,
    card,
    dialog_over,
    dropped,
    fact,
    field,
    heading,
    hint,
    plain_table,
    text,
    tick,
)
from shoal.app.saving import open_work
from shoal.app.tab import Tab
from shoal.app.words import help_of, typed_path

__all__ = ["show"]

FORMAT = {"delimiter": "Delimiter", "encoding": "Encoding", "decimal": "Decimal sign", "thousands": "Thousands sign"}


def show(tab: Tab) -> None:
    """Show the step."""
    heading("Table", "Choose the table to protect. It stays on this machine: nothing is sent anywhere.")
    if tab.work.inspection is not None:
        _summary(tab)
    with ui.element("div").classes("s-two"):
        _by_path(tab)
        _by_dragging(tab)
    if tab.earlier:
        _earlier(tab)


def _earlier(tab: Tab) -> None:
    """Show the tables that were open before, whose tries are still there."""
    with card("Earlier in this tab"), ui.element("ul").classes("s-list"):
        for work in tab.earlier:
            title = work.source.title if work.source is not None else ""
            with ui.element("li"):
                tries = {0: "no try yet", 1: "one try"}.get(len(work.tries), f"{len(work.tries)} tries")
                text("span", f"{title}: {tries}").style("flex: 1")
                button("Back to it", partial(tab.back_to, work), kind="small", label=f"Back to {title} and its tries")


def _by_path(tab: Tab) -> None:
    with card("Open another table" if tab.work.inspection is not None else "Open a table"):
        with field("Path of the file", "CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS."):
            path = Entry("", lambda _: None).style("width: 100%")
        path.on(
            "keydown.enter", lambda event: tab.open(typed_path(event.args)), js_handler="(e) => emit(e.target.value)"
        )
        with ui.element("div").classes("s-row"):
            button("Open", lambda: tab.open(typed_path(path.value)) if path.value else None, kind="main")
            button("Browse …", lambda: _browse(tab))
            button("Open saved work …", lambda: _browse(tab, saved=True))
        recent = tab.folder.recent()
        if recent:
            text("h3", "Recent").style("margin: 14px 0 4px")
            with ui.element("ul").classes("s-list").props('aria-label="Recent tables"'):
                for place in recent:
                    with ui.element("li"):
                        text("span", str(place)).style("flex: 1; overflow-wrap: anywhere; font-size: 13px")
                        button("Open", partial(tab.open, place), kind="small", label=f"Open {place.name}")
            button("Forget these", lambda: _forget(tab), kind="small")


def _forget(tab: Tab) -> None:
    tab.folder.forget()
    tab.changed()


def _by_dragging(tab: Tab) -> None:
    async def take(event: Any) -> None:
        name = Path(event.file.name).name
        place = tab.folder.fresh(name)
        place.touch(mode=0o600)
        await event.file.save(place)
        tab.open(place, name)

    def too_large() -> None:
        tab.refuse(f"A dragged-in file may have {MOST_UPLOADED / 1e9:.0f} GB at most. Open a larger one by its path.")

    with card("Or drag a file in"):
        dropped(take, MOST_UPLOADED, too_large)
        hint("It is copied to a folder that only you can read and removed when the page is closed.")


def _summary(tab: Tab) -> None:
    work = tab.work
    found, source = work.inspection, work.source
    if found is None or source is None or found.view is None:
        return
    with card(source.title):
        size = source.path.stat().st_size if source.path.is_file() else 0
        with ui.element("div").classes("s-facts"):
            fact(f"{found.records:,}", "records in the part that is shown" if source.part else "records")
            fact(f"{len(found.columns)}", "columns")
            fact(f"{size / 1e6:,.1f} MB", f"file, {found.view.memory / 1e6:,.1f} MB in memory")
            fact(f"{sum(column.missing for column in found.columns):,}", "missing cells")
        if source.part:
            text("p", "This table is large: its first part is shown and counted. It is masked as a whole.", "s-note")
        with ui.element("div").classes("s-row").style("margin-top: 12px"):
            button("Next: Roles", lambda: tab.go("roles"), kind="main")
    with card("First records"):
        tick("Show values of the table", work.values, lambda shown: _show_values(tab, shown=shown))
        if work.values:
            plain_table(found.view.names, found.view.head(12))
        else:
            hint("Values are hidden. Counts are shown all the same.")
    _reading(tab)


def _show_values(tab: Tab, *, shown: bool) -> None:
    tab.work.values = shown
    tab.changed()


def _reading(tab: Tab) -> None:
    """Show how the file was read, with a way to correct it."""
    work = tab.work
    found, source = work.inspection, work.source
    if found is None or source is None or found.view is None:
        return
    told = found.view.format
    with card("How it was read"):
        if told:
            given = {name: {"\t": "tab"}.get(value or "", value or "") for name, value in told.items()}
            with ui.element("div").classes("s-row"):
                entries = {}
                for name, label in FORMAT.items():
                    with field(label, help_of(name)) as made:
                        made.style("flex: 1 1 200px")
                        entries[name] = Entry(given[name], lambda _: None)

            def again() -> None:
                csv = dict(source.csv)
                csv |= {n: e.value for n, e in entries.items() if e.value and e.value != given[n]}
                tab.open(source.path, source.name if source.dragged else None, csv=csv)

            button("Read again", again)
            hint("Found out from the file. Correct what is wrong and read it again; roles are proposed anew.")
        codes = {name: listed for name, listed in work.settings.codes.items() if listed}
        words = "; ".join(f"{name}: {', '.join(map(str, listed))}" for name, listed in codes.items())
        with field("Codes for missing", f"{help_of('missing_codes')} Write them as income: -9, 99; job: ?"):
            Entry(words, lambda value: _set_codes(tab, value)).style("width: 100%")


def _set_codes(tab: Tab, written: str) -> None:
    codes: dict[Any, list[Any]] = {}
    names = {str(name): name for name in tab.work.settings.roles}
    for part in filter(None, (part.strip() for part in written.split(";"))):
        name, _, listed = part.rpartition(":")
        if name.strip() not in names or not listed.strip():
            tab.refuse(f"Codes must read “column: code, code”, with a column of the table; got “{part}”.")
            return
        codes[names[name.strip()]] = [code.strip() for code in listed.split(",") if code.strip()]
    tab.work.settings.codes = codes


def _browse(tab: Tab, *, saved: bool = False) -> None:
    """Let the user choose a file of this machine."""
    source = tab.work.source
    state = {"folder": source.path.parent if source is not None and not source.dragged else Path.cwd()}
    with dialog_over(tab) as dialog:
        text("h2", "Open saved work" if saved else "Open a table")

        @ui.refreshable
        def listing() -> None:
            folder = state["folder"]
            text("p", str(folder), "s-hint")
            with ui.element("ul").classes("s-list").style("width: 100%; max-height: 50vh; overflow: auto"):
                for path in _entries(folder, saved=saved):
                    with ui.element("li"):
                        up = path == folder.parent
                        name = "Up one folder" if up else f"{path.name}/" if path.is_dir() else path.name
                        text("span", name).style("flex: 1")
                        word = "Enter" if path.is_dir() else "Open"
                        button(word, partial(choose, path), kind="small", label=f"{word} {name}")

        def choose(path: Path) -> None:
            if path.is_dir():
                state["folder"] = path
                listing.refresh()
            else:
                dialog.close()
                open_work(tab, path) if saved else tab.open(path)

        listing()
        button("Cancel", dialog.close)


def _entries(folder: Path, *, saved: bool) -> list[Path]:
    """Return what can be chosen in a folder: the folder above, folders, files."""
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".") and os.access(path, os.R_OK)]
    except OSError:
        found = []
    files = [path for path in found if path.is_file() and (path.suffix == ".shoal" or not saved)]
    folders = [path for path in found if path.is_dir()]
    return [folder.parent, *sorted(folders), *sorted(files)]
