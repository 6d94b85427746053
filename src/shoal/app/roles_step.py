"""Step 2, Roles: what every column is for and what it holds; how many records stand out, live."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from nicegui import ui

from shoal.app.jobs import in_background
from shoal.app.kind_dialogs import current_kind, edit_kind, kinds_for, without_kind
from shoal.app.parts import Entry, Select, button, card, fact, heading, hint, text
from shoal.app.tab import Tab
from shoal.app.words import help_of
from shoal.app.work import ROLES
from shoal.kinds.kind_registry import KINDS

__all__ = ["show"]

BARS = 12
UNTOUCHED = "In the release as it was: nothing is promised of it."
ROWS = 50  # columns of the table on one sheet
STEPS = (
    (1, 1, "unique"),
    (2, 2, "shared by 2"),
    (3, 4, "by 3 or 4"),
    (5, 9, "by 5 to 9"),
    (10, 10**12, "by 10 or more"),
)


def show(tab: Tab) -> None:
    """Show the step."""
    heading(
        "Roles",
        "Say what each column is for. Keys are what an outsider may know of somebody: they are masked. "
        "The figures follow every choice.",
    )
    with card("How many records stand out"):
        counts = ui.refreshable(_counts)
        counts(tab, tab.work.uniques() if tab.work.inspection is not None else ({}, 0))

    asked = 0

    async def recount() -> None:
        nonlocal asked
        asked += 1
        own = asked
        found = await in_background(tab.work.uniques)
        # What was chosen last is shown, whichever count is done last.
        if own == asked:
            counts.refresh(tab, found)

    with card("Columns"):
        _grid(tab, recount)
    with card("What roles, kinds and importance mean"), ui.element("dl"):
        told = {label: help_of(name) if name else UNTOUCHED for label, name in ROLES.values()}
        told |= {"Kind": f"{help_of('kinds').partition(':')[0]}.", "Importance": help_of("importance")}
        for label, words in told.items():
            text("dt", label).style("font-weight: 600")
            text("dd", words).style("margin: 0 0 8px; color: var(--soft); font-size: 13px")


def _counts(tab: Tab, found: tuple[dict[int, int], int]) -> None:
    """Show how many records share their combination of keys and strata, by how many."""
    alike, records = found
    keys = tab.work.settings.named("key", "stratum")
    if not keys:
        hint("No key is chosen.")
        return
    unique = alike.get(1, 0)
    with ui.element("div").classes("s-facts").props("aria-live=polite data-test=counts"):
        over = "one key or stratum" if len(keys) == 1 else f"{len(keys)} keys and strata"
        share = f" ({100 * unique / records:.1f} %)" if records else ""
        fact(f"{unique:,}", f"of {records:,} records are unique over {over}{share}")
        fact(f"{sum(alike.values()):,}", "different combinations")
        rarest = min((size for size in alike if size > 1), default=None)
        fact(
            "–" if rarest is None else f"{alike[rarest]:,}",
            "no combination is shared"
            if rarest is None
            else f"combination{'s' * (alike[rarest] != 1)} of {rarest} records each",
        )
    total = max(records, 1)
    with ui.element("div").style("display: flex; gap: 16px; flex-wrap: wrap; margin-top: 8px; font-size: 13px"):
        for low, high, words in STEPS:
            of = sum(size * times for size, times in alike.items() if low <= size <= high)
            text("span", f"{words}: {100 * of / total:.1f} % of records").style("color: var(--soft)")


def _grid(tab: Tab, recount: Any) -> None:
    found = tab.work.inspection
    if found is None:
        return
    sheet = {"first": 0}

    @ui.refreshable
    def rows() -> None:
        first = sheet["first"]
        scroll = ui.element("div").classes("s-scroll s-grid").style("max-height: none")
        with scroll, ui.element("table").classes("s-table").props('aria-label="Columns and their roles"'):
            with ui.element("thead"), ui.element("tr"):
                for head in ("Column", "Role", "Kind", "Importance", "Values", "Missing", "Spread", "Why"):
                    text("th", head, "n" if head in ("Values", "Missing") else "").props("scope=col")
            with ui.element("tbody"):
                for column in found.columns[first : first + ROWS]:
                    _row(tab, column, recount)
        if len(found.columns) > ROWS:
            with ui.element("div").classes("s-row").style("margin-top: 8px"):
                last = min(first + ROWS, len(found.columns))
                text("span", f"Columns {first + 1} to {last} of {len(found.columns)}")
                button("Before", lambda: turn(-ROWS), kind="small")
                button("Next", lambda: turn(ROWS), kind="small")

    def turn(by: int) -> None:
        sheet["first"] = max(0, min(sheet["first"] + by, len(found.columns) - 1)) // ROWS * ROWS
        rows.refresh()

    rows()


def _row(tab: Tab, column: Any, recount: Any) -> None:
    settings, name = tab.work.settings, column.name

    async def set_role(role: str) -> None:
        settings.roles[name] = role
        await recount()

    def set_importance(written: str) -> None:
        try:
            number = float(written or 1)
        except ValueError:
            number = 0.0
        if number <= 0:
            tab.refuse(f"Importance of column “{name}” must be a positive number, got “{written}”.")
            return
        settings.importance[name] = number

    with ui.element("tr"):
        text("th", str(name)).props("scope=row").style("position: static; background: none")
        with ui.element("td"):
            Select(
                {r: label for r, (label, _) in ROLES.items()}, settings.roles[name], set_role, label=f"Role of {name}"
            )
        with ui.element("td"), ui.element("div").style("display: flex; gap: 6px; align-items: center"):
            kind = current_kind(tab, column)

            def set_kind(chosen: str) -> None:
                if chosen == "given" or not KINDS[chosen].dialog:
                    without_kind(settings.kinds, name)
                    by_itself = chosen == "nominal" and column.kind in ("nominal", "boolean", "ordinal")
                    if chosen not in ("given", "number") and not by_itself:
                        settings.kinds[name] = chosen
                    tab.changed()
                else:
                    edit_kind(tab, column, chosen)

            Select(kinds_for(column), kind, set_kind, label=f"Kind of {name}")
            if name in settings.kinds and KINDS[kind].dialog:
                button("Edit", lambda: edit_kind(tab, column, kind), kind="small", label=f"Edit the kind of {name}")
        with ui.element("td"):
            Entry(f"{settings.importance.get(name, 1):g}", set_importance, label=f"Importance of {name}")
        text("td", f"{column.distinct:,}", "n")
        text("td", f"{column.missing:,}", "n")
        with ui.element("td"):
            _bars(tab, name)
        text("td", column.reason, "wrap")


def _bars(tab: Tab, name: Any) -> None:
    """Draw a small histogram: of numbers by value, of categories the most frequent ones."""
    view = tab.work.inspection.view if tab.work.inspection is not None else None
    if view is None:
        return
    heights = histogram(view.column(name))
    top = max(heights, default=0) or 1
    bars = "".join(f'<i style="height:{max(4, round(100 * height / top))}%"></i>' for height in heights)
    ui.html(f'<span class="s-bars" aria-hidden="true">{bars}</span>', sanitize=False)


def histogram(cells: pl.Series) -> list[int]:
    """Count the cells of a column for a small picture.

    Examples
    --------
    >>> histogram(pl.Series(["a", "b", "a"]))
    [2, 1]
    """
    present = cells.drop_nulls()
    if present.dtype.is_numeric() and present.n_unique() > BARS:
        values = present.to_numpy()
        # A few values far away would push all others into one bar.
        clipped = np.clip(values, *np.quantile(values, [0.01, 0.99]))
        return [int(count) for count in np.histogram(clipped, bins=BARS)[0]]
    counts = present.value_counts(sort=True)["count"].to_list()
    return [int(count) for count in counts[:BARS]]
