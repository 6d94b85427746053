"""Step 2, Roles: the role, kind, importance and scale of each column, and the number of unique records."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from nicegui import ui

from shoal.app import roles_file_card
from shoal.app.jobs import in_background
from shoal.app.kind_dialogs import current_kind, edit_kind, kinds_for, without_kind
from shoal.app.settings import ROLES
from shoal.app.tab import Tab
from shoal.app.texts import LABELS, help_of
from shoal.app.widgets import Entry, Select, button, card, fact, heading, hint, row, text
from shoal.kinds.kind_registry import KINDS, SCALES

__all__ = ["show"]

BARS = 12
ROWS = 50  # table columns per sheet
SIZES = (
    (1, 1, "unique"),
    (2, 2, "shared by 2"),
    (3, 4, "shared by 3 or 4"),
    (5, 9, "shared by 5 to 9"),
    (10, 10**12, "shared by 10 or more"),
)


def show(tab: Tab) -> None:
    """Show the Roles step."""
    heading(
        "Roles",
        "Choose a role for each column. Keys are masked: an outsider may know their values. "
        "The figures update with every choice.",
    )
    with card("Unique records"):
        counts = ui.refreshable(_counts)
        counts(tab, *tab.work.combination_sizes())
    latest = 0

    async def recount() -> None:
        nonlocal latest
        latest += 1
        number = latest
        sizes, records = await in_background(tab.work.combination_sizes)
        if number == latest:  # an earlier count may finish later
            counts.refresh(tab, sizes, records)

    with card("Columns"):
        _grid(tab, recount)
    roles_file_card.show(tab)
    with card("Roles, kinds, importance and scale"), ui.element("dl"):
        meanings = {label: help_of(name) for label, name in ROLES.values()}
        meanings |= {"Kind": f"{help_of('kinds').partition(':')[0]}.", "Importance": help_of("importance")}
        meanings |= {LABELS["scale"]: help_of("scale")}
        for label, words in meanings.items():
            text("dt", label).style("font-weight: 600")
            text("dd", words).style("margin: 0 0 8px; color: var(--soft); font-size: 13px")


def _counts(tab: Tab, sizes: dict[int, int], records: int) -> None:
    """Show the uniqueness of the records; `sizes` has the number of combinations of keys and strata per size."""
    keys = tab.work.settings.named("key", "stratum")
    if not keys:
        hint("No key is chosen.")
        return
    unique = sizes.get(1, 0)
    with ui.element("div").classes("s-facts").props("aria-live=polite data-test=counts"):
        over = "one key or stratum" if len(keys) == 1 else f"{len(keys)} keys and strata"
        share = f" ({100 * unique / records:.1f} %)" if records else ""
        fact(f"{unique:,}", f"of {records:,} records are unique over {over}{share}")
        fact(f"{sum(sizes.values()):,}", "distinct combinations")
        rarest = min((size for size in sizes if size > 1), default=None)
        if rarest is None:
            fact("–", "no combination is shared")
        else:
            fact(f"{sizes[rarest]:,}", f"combination{'s' * (sizes[rarest] != 1)} of {rarest} records each")
    with ui.element("div").style("display: flex; gap: 16px; flex-wrap: wrap; margin-top: 8px; font-size: 13px"):
        for low, high, words in SIZES:
            share_of_size = sum(size * number for size, number in sizes.items() if low <= size <= high)
            percent = 100 * share_of_size / max(records, 1)
            text("span", f"{words}: {percent:.1f} %").style("color: var(--soft)")


def _grid(tab: Tab, recount: Any) -> None:
    columns = tab.work.columns
    state = {"first": 0}

    @ui.refreshable
    def sheet() -> None:
        first = state["first"]
        scroll = ui.element("div").classes("s-scroll s-grid").style("max-height: none")
        with scroll, ui.element("table").classes("s-table").props('aria-label="Columns and their roles"'):
            with ui.element("thead"), ui.element("tr"):
                for head in ("Column", "Role", "Kind", "Importance", "Scale", "Values", "Missing", "Spread", "Reason"):
                    text("th", head, "n" if head in ("Values", "Missing") else "").props("scope=col")
            with ui.element("tbody"):
                for column in columns[first : first + ROWS]:
                    _row(tab, column, recount)
        if len(columns) > ROWS:
            with row().style("margin-top: 8px"):
                text("span", f"Columns {first + 1} to {min(first + ROWS, len(columns))} of {len(columns)}")
                button("Previous", lambda: turn(-ROWS), kind="small")
                button("Next", lambda: turn(ROWS), kind="small")

    def turn(by: int) -> None:
        state["first"] = max(0, min(state["first"] + by, len(columns) - 1)) // ROWS * ROWS
        sheet.refresh()

    sheet()


def _row(tab: Tab, column: Any, recount: Any) -> None:
    settings, name = tab.work.settings, column.name

    async def set_role(role: str) -> None:
        settings.roles[name] = role
        await recount()

    def set_importance(words: str) -> None:
        try:
            number = float(words or 1)
        except ValueError:
            number = 0.0
        if number <= 0:
            tab.refuse(f"Importance of column “{name}” must be a positive number, got “{words}”.")
            return
        settings.importance[name] = number

    def set_scale(scale: str) -> None:
        settings.scales.pop(name, None)
        settings.scales |= {} if scale == "linear" else {name: scale}

    with ui.element("tr"):
        text("th", str(name)).props("scope=row").style("position: static; background: none")
        with ui.element("td"):
            labels = {role: label for role, (label, _) in ROLES.items()}
            Select(labels, settings.roles[name], set_role, label=f"Role of {name}")
        with ui.element("td"), ui.element("div").style("display: flex; gap: 6px; align-items: center"):
            _kind(tab, column)
        with ui.element("td"):
            Entry(f"{settings.importance.get(name, 1):g}", set_importance, label=f"Importance of {name}")
        with ui.element("td"):
            if current_kind(tab, column) == "number":
                scale = settings.scales.get(name, "linear")
                Select({word: word for word in SCALES}, scale, set_scale, label=f"Scale of {name}")
        text("td", f"{column.distinct:,}", "n")
        text("td", f"{column.missing:,}", "n")
        with ui.element("td"):
            _bars(tab, name)
        text("td", column.reason, "wrap")


def _kind(tab: Tab, column: Any) -> None:
    """Show the kind of a column as a selection."""
    kinds, name, kind = tab.work.settings.kinds, column.name, current_kind(tab, column)

    def set_kind(chosen: str) -> None:
        if chosen != "given" and KINDS[chosen].dialog:
            edit_kind(tab, column, chosen)
            return
        without_kind(kinds, name)
        implied = chosen == "nominal" and column.kind in ("nominal", "boolean", "ordinal")
        if chosen not in ("given", "number") and not implied:
            kinds[name] = chosen
        tab.changed()

    Select(kinds_for(column), kind, set_kind, label=f"Kind of {name}")
    if name in kinds and KINDS[kind].dialog:
        button("Edit", lambda: edit_kind(tab, column, kind), kind="small", label=f"Edit the kind of {name}")


def _bars(tab: Tab, name: Any) -> None:
    """Draw a small histogram of the numbers or the most frequent categories of a column."""
    if tab.work.view is None:
        return
    heights = histogram(tab.work.view.column(name))
    top = max(heights, default=0) or 1
    bars = "".join(f'<i style="height:{max(4, round(100 * height / top))}%"></i>' for height in heights)
    ui.html(f'<span class="s-bars" aria-hidden="true">{bars}</span>', sanitize=False)


def histogram(cells: pl.Series) -> list[int]:
    """Return the counts of a small histogram: per interval of numbers, or per frequent value.

    Examples
    --------
    >>> histogram(pl.Series(["a", "b", "a"]))
    [2, 1]
    """
    present = cells.drop_nulls()
    if present.dtype.is_numeric() and present.n_unique() > BARS:
        values = present.to_numpy()
        # A few outliers would push all other values into one bar.
        clipped = np.clip(values, *np.quantile(values, [0.01, 0.99]))
        return [int(count) for count in np.histogram(clipped, bins=BARS)[0]]
    counts = present.value_counts(sort=True)["count"].to_list()
    return [int(count) for count in counts[:BARS]]
