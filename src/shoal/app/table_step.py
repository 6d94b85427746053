"""Step 1, Table: choose a file, view its content and correct its reading options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from shoal.app.guard import MOST_UPLOADED
from shoal.app.saved_work import ENDING, open_work
from shoal.app.tab import Tab
from shoal.app.table_file import OpenedFile
from shoal.app.texts import LABELS, help_of, typed_path
from shoal.app.widgets import (
    VALUE,
    Entry,
    Select,
    button,
    card,
    dialog_over,
    fact,
    field,
    heading,
    hint,
    list_row,
    plain_table,
    row,
    text,
    tick,
    upload,
)

__all__ = ["show"]

LAYOUT = ("skip_rows", "no_header")
CSV = ("delimiter", "encoding", "decimal", "thousands", *LAYOUT)
OPTIONS = {
    ".csv": CSV,
    ".tsv": CSV,
    ".txt": CSV,
    ".xlsx": ("sheet", *LAYOUT),
}  # reading options, keyed by file extension


def show(tab: Tab) -> None:
    """Show the Table step."""
    heading("Table", "Choose the table to protect. It stays on this machine: nothing is sent anywhere.")
    if tab.refused is not None and not tab.work.busy and tab.refused.suffix in OPTIONS and tab.refused.path.is_file():
        with card(f"Read {tab.refused.title} with other options"):
            _options(tab, tab.refused, tab.refused.csv)
    if tab.work.view is not None:
        _summary(tab)
        _reading(tab)
    with ui.element("div").classes("s-two"):
        _by_path(tab)
        _by_dragging(tab)
    if tab.earlier:
        _earlier(tab)


def _earlier(tab: Tab) -> None:
    """Show the tables that were opened earlier in the tab, with their versions."""
    with card("Earlier in this tab"), ui.element("ul").classes("s-list"):
        for work in tab.earlier:
            title = work.table.title
            versions = {0: "no version yet", 1: "one version"}.get(len(work.versions), f"{len(work.versions)} versions")
            back = partial(tab.back_to, work)
            list_row(f"{title}: {versions}", "Go back", back, f"Go back to {title} and its versions")


def _by_path(tab: Tab) -> None:
    with card("Open another table" if tab.work.inspection is not None else "Open a table"):
        with field("Path of the file", "CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS."):
            path = Entry("").style("width: 100%")
        path.on("keydown.enter", lambda event: tab.open(typed_path(event.args)), js_handler=VALUE)
        with row():
            button("Open", lambda: tab.open(typed_path(path.value)) if path.value else None, kind="main")
            button("Browse …", lambda: _browse(tab))
            button("Open saved work …", lambda: _browse(tab, saved=True))
        recent = tab.folder.recent()
        if recent:
            text("h3", "Recent").style("margin: 14px 0 4px")
            with ui.element("ul").classes("s-list").props('aria-label="Recent tables"'):
                for place in recent:
                    list_row(str(place), "Open", partial(tab.open, place), f"Open {place.name}")
            button("Forget tables and settings", lambda: _forget(tab), kind="small")


def _forget(tab: Tab) -> None:
    tab.folder.forget()
    tab.changed()


def _by_dragging(tab: Tab) -> None:
    async def receive(event: Any) -> None:
        name = Path(event.file.name).name
        path = tab.folder.fresh(name)
        path.touch(mode=0o600)
        await event.file.save(path)
        tab.open(path, name)

    def too_large() -> None:
        tab.refuse(f"Files of at most {MOST_UPLOADED / 1e9:.0f} GB can be dragged in. Open a larger one by its path.")

    with card("Or drag a file in"):
        upload(receive, MOST_UPLOADED, too_large)
        hint("It is copied to a folder that only you can read. The copy is removed when shoal ends.")


def _summary(tab: Tab) -> None:
    work = tab.work
    table, view = work.table, work.view
    inspection: Any = work.inspection
    with card(table.title):
        size = table.path.stat().st_size if table.path.is_file() else 0
        with ui.element("div").classes("s-facts"):
            fact(f"{inspection.records:,}", "records in the part shown" if table.partial else "records")
            fact(f"{len(work.columns)}", "columns")
            fact(f"{size / 1e6:,.1f} MB", f"file, {view.memory / 1e6:,.1f} MB in memory")
            fact(f"{sum(column.missing for column in work.columns):,}", "missing values")
        if table.partial:
            text(
                "p", "This table is large: only its first part is shown and counted, but all of it is masked.", "s-note"
            )
        with row().style("margin-top: 12px"):
            button("Next: Roles", lambda: tab.go("roles"), kind="main")
    with card("First records"):
        tick("Show values of the table", work.values, lambda on: tab.change(values=on))
        if work.values:
            plain_table(view.names, view.head(12))
        else:
            hint("Values are hidden. Counts are still shown.")


def _reading(tab: Tab) -> None:
    """Show the reading options of the file, and let the user correct them."""
    work = tab.work
    with card("Reading options"):
        if work.table.suffix in OPTIONS:
            detected = {name: {"\t": "tab"}.get(value or "", value or "") for name, value in work.view.format.items()}
            _options(tab, work.table, {**work.table.csv, **detected}, work.view.sheets)
            hint("Detected in the file. Correct wrong options and read the file again; roles are then proposed again.")
        codes = {name: codes for name, codes in work.settings.codes.items() if codes}
        words = "; ".join(f"{name}: {', '.join(map(str, codes))}" for name, codes in codes.items())
        with field("Codes for missing", f"{help_of('missing_codes')} For example: income: -9, 99; job: ?"):
            Entry(words, lambda value: _set_codes(tab, value)).style("width: 100%")


def _options(tab: Tab, table: OpenedFile, values: Mapping[str, Any], sheets: Sequence[str] = ()) -> None:
    """Show the reading options of a file, and a button that reads the file again."""
    changes: dict[str, Any] = {}

    def put(name: str, value: Any) -> None:
        # An invalid number of lines is refused when the file is read.
        changes[name] = int(value) if name == "skip_rows" and str(value).isdecimal() else value

    with row().style("align-items: flex-start"):
        for name in OPTIONS[table.suffix]:
            if name == "no_header":
                tick(LABELS[name], bool(values.get(name)), partial(put, name))
                continue
            with field(LABELS[name], help_of(name)) as element:
                element.style("flex: 1 1 200px")
                if name == "sheet" and sheets:
                    Select({sheet: sheet for sheet in sheets}, values.get(name) or sheets[0], partial(put, name))
                else:
                    Entry(str(values.get(name) or ""), partial(put, name))

    def read_again() -> None:
        options = {**table.csv, **changes}
        tab.reopen({name: value for name, value in options.items() if value not in ("", 0, False)}, table=table)

    button("Read again", read_again, label=f"Read {table.title} again")


def _set_codes(tab: Tab, words: str) -> None:
    codes: dict[Any, list[Any]] = {}
    names = {str(name): name for name in tab.work.settings.roles}
    for part in filter(None, (part.strip() for part in words.split(";"))):
        name, _, listed = part.rpartition(":")
        if name.strip() not in names or not listed.strip():
            tab.refuse(f"Codes must have the form “column: code, code” with a column of the table, got “{part}”.")
            return
        codes[names[name.strip()]] = [code.strip() for code in listed.split(",") if code.strip()]
    tab.work.settings.codes = codes


def _browse(tab: Tab, *, saved: bool = False) -> None:
    """Open a dialog to choose a file on this machine."""
    table = tab.work.table
    state = {"folder": table.path.parent if tab.work.inspection is not None and not table.dragged else Path.cwd()}
    with dialog_over(tab, "Open saved work" if saved else "Open a table") as dialog:

        @ui.refreshable
        def listing() -> None:
            folder = state["folder"]
            text("p", str(folder), "s-hint")
            with ui.element("ul").classes("s-list").style("width: 100%; max-height: 50vh; overflow: auto"):
                for path in _entries(folder, saved=saved):
                    directory = path.is_dir()
                    name = "Up one folder" if path == folder.parent else f"{path.name}/" if directory else path.name
                    action = "Enter" if directory else "Open"
                    list_row(name, action, partial(choose, path), f"{action} {name}")

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
    """Return the parent folder, the subfolders and the files that can be opened."""
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".") and os.access(path, os.R_OK)]
    except OSError:
        paths = []
    files = [path for path in paths if path.is_file() and (path.suffix == ENDING or not saved)]
    folders = [path for path in paths if path.is_dir()]
    return [folder.parent, *sorted(folders), *sorted(files)]
