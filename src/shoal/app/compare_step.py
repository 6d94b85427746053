"""Step 4, Compare: every try as a card and as a point on the map of risk and utility; two of them side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from nicegui import ui

from shoal.app.charts import correlations, distribution, risk_utility_map
from shoal.app.parts import Entry, Select, ask_to_replace, button, card, field, heading, hint, plain_table, text
from shoal.app.saving import save_work
from shoal.app.tab import Tab
from shoal.app.words import long, sentence, typed_path
from shoal.app.work import Try

__all__ = ["show"]


def show(tab: Tab) -> None:
    """Show the step."""
    heading(
        "Compare",
        "Every try is kept. Choose the one to release: little information loss, and few records that could be linked.",
    )
    work = tab.work
    if not work.tries:
        with card():
            text("p", "There is no try yet." if not work.busy else "The first try is running.")
            button("Go to Protect", lambda: tab.go("protect"), kind="main")
        return
    with card("Risk and utility"):
        chart = ui.echart(risk_utility_map(work.tries, work.chosen, dark=bool(work.dark)), renderer="svg")
        chart.style("height: 236px; width: 100%")
        chart.props["role"] = "img"
        chart.props["aria-label"] = "Map of tries by information loss and linked records; the cards below say the same"
        chart.on_point_click(lambda event: _choose(tab, int(event.value[2])))
        unknown = any(one.figures["linked"] is None for one in work.tries)
        hollow = " Of a hollow one the risk was not measured: it is at least that high." if unknown else ""
        hint(f"Lower and further left is better. Click a point to choose its try.{hollow}")
    text("h2", "Tries").style("margin-top: 4px")
    with ui.element("div").classes("s-tries"):
        for one in work.tries:
            _card(tab, one)
    ui.element("div").style("height: 14px")
    _side_by_side(tab)
    _save(tab)


def _choose(tab: Tab, number: int) -> None:
    one = tab.work.trial(number)
    if one is not None:
        tab.work.choose(one)
    tab.changed()


def _card(tab: Tab, one: Try) -> None:
    found, chosen = one.figures, one.number == tab.work.chosen
    article = ui.element("article").classes("s-try" + (" chosen" if chosen else ""))
    article.props["aria-label"] = one.title + (", chosen" if chosen else "")
    article.props["data-test"] = f"try-{one.number}"
    with article:
        text("h3", one.title)
        for warning in found.get("warnings", []):  # work that an earlier version saved has none
            text("p", sentence(warning), "s-note").props("data-test=warning")
        lines = [
            ("Information loss", f"{found['loss']:.3f} %"),
            (
                "Could be linked",
                "not measured" if found["linked"] is None else f"{100 * found['linked']:.2f} %",
            ),
            ("Unique in the release", f"{found['uniques']:,} of {found['records']:,}"),
            ("Groups", f"{found['groups']:,}"),
        ]
        if found["diversity"] is not None:
            lines.append(("Values in every group (l)", f"at least {found['diversity']:.0f}"))
            lines.append(("Distance from the table (t)", f"at most {found['closeness']:.3f}"))
        lines.append(("Time", long(found["seconds"]) + (", stopped early" if one.stopped else "")))
        with ui.element("dl"):
            for name, value in lines:
                text("dt", name)
                text("dd", value)
        with ui.element("div").style("display: flex; gap: 6px; flex-wrap: wrap"):
            if one.release is None:
                button(
                    "Run again",
                    lambda: tab.start_try(one),
                    kind="small",
                    label=f"Run try {one.number} again",
                )
            elif not chosen:
                button("Choose", lambda: _choose(tab, one.number), kind="small", label=f"Choose try {one.number}")
            else:
                button("Release it", lambda: tab.go("release"), kind="small main", label=f"Release try {one.number}")
            button(
                "Back to these settings",
                lambda: _back(tab, one),
                kind="small",
                label=f"Back to the settings of try {one.number}",
            )


def _back(tab: Tab, one: Try) -> None:
    """Take the settings of a try again: undo and redo."""
    tab.work.take_back(one)
    tab.go("protect")


def _side_by_side(tab: Tab) -> None:
    work = tab.work
    first, second = work.current, work.trial(work.beside)
    if first is None or first.release is None:
        return
    if isinstance(first.release.data, (str, Path)):
        with card("Before and after"):
            hint("This table was masked from file to file. It is not drawn here: it is not read into memory.")
        return
    others = {"": "nothing"} | {
        str(one.number): one.title for one in work.tries if one.number != first.number and one.release is not None
    }
    with card("Before and after"):
        state = {"column": first.release.columns[0]}

        def put_beside(number: str) -> None:
            work.beside = int(number) if number else None
            tab.changed()

        with ui.element("div").classes("s-row"):
            with field("Column"):
                names = {str(name): name for name in first.release.columns}
                Select({name: name for name in names}, str(state["column"]), lambda name: _draw(names[name]))
            with field(f"Beside try {first.number}"):
                beside = str(work.beside) if second is not None and str(work.beside) in others else ""
                Select(others, beside, put_beside)
        chosen = [one for one in (first, second) if one is not None and one.release is not None]
        _figures(chosen)
        drawing = ui.refreshable(lambda name: _distribution(tab, chosen, name))
        drawing(state["column"])

        def _draw(name: Any) -> None:
            drawing.refresh(name)

        _correlations(tab, chosen)


def _figures(chosen: list[Try]) -> None:
    """Show the loss of each column in the tries that are side by side."""
    names = list(dict.fromkeys(name for one in chosen for name in one.figures["column_loss"]))
    rows = []
    for name in names:
        losses = [one.figures["column_loss"].get(name) for one in chosen]
        rows.append([name, *("–" if loss is None else f"{loss:.3f} %" for loss in losses)])
    head = ["Information loss of", *(f"Try {one.number}" for one in chosen)]
    with ui.element("details").classes("s-more"):
        text("summary", "Information loss, column by column")
        plain_table(head, rows, numbers=range(1, len(head)))


def _distribution(tab: Tab, chosen: list[Try], name: Any) -> None:
    view = tab.work.inspection.view if tab.work.inspection is not None else None
    if view is None:
        return
    if not tab.work.values:
        hint("Values are hidden: the step Table says so.")
        return
    afters = []
    for one in chosen:
        release: Any = one.release
        if name in release.columns:
            afters.append((f"try {one.number}", _column(release.data, name)))
    chart = ui.echart(distribution(view.column(name), afters, dark=bool(tab.work.dark)), renderer="svg")
    chart.style("height: 280px; width: 100%")
    chart.props["role"] = "img"
    chart.props["aria-label"] = f"Distribution of {name} before and after"


def _column(data: Any, name: Any) -> pl.Series:
    """Return a column of a released table."""
    column = data[name]
    return column if isinstance(column, pl.Series) else pl.Series(column.to_pylist())


def _correlations(tab: Tab, chosen: list[Try]) -> None:
    measured = [one for one in chosen if one.assessment is not None]
    found = [(one, one.assessment.utility.correlation_changes()) for one in measured]
    found = [(one, changes) for one, changes in found if changes]
    if not found:
        return
    text("h3", "Correlations before and after").style("margin-top: 10px")
    hint("Each point is a pair of columns of numbers; on the line, nothing has changed.")
    with ui.element("div").classes("s-two"):
        for one, changes in found:
            pairs = [(f"{left} and {right}", pair.before, pair.after) for left, right, pair in changes]
            with ui.element("div"):
                text("p", f"Try {one.number}", "s-label")
                chart = ui.echart(correlations(pairs, dark=bool(tab.work.dark)), renderer="svg")
                chart.style("height: 380px; width: 100%; max-width: 440px")
                chart.props["role"] = "img"
                chart.props["aria-label"] = f"Correlations before and after try {one.number}"


def _save(tab: Tab) -> None:
    source = tab.work.source
    if source is None:
        return
    with card("Save the work"):
        if not tab.work.save_as:
            folder = Path.home() if source.dragged else source.path.parent
            tab.work.save_as = str(folder / f"{Path(source.title).stem}.shoal")
        with field(
            "File",
            "Settings and figures of all tries; of the table no value but words that stand for missing. Open it "
            "again in the step Table.",
        ):
            Entry(tab.work.save_as, partial(setattr, tab.work, "save_as")).style("width: 100%")
        button("Save", lambda: _save_as(tab, typed_path(tab.work.save_as).absolute()))
        if tab.work.saved:
            text("p", f"Saved: {tab.work.saved}").props("role=status data-test=saved")


def _save_as(tab: Tab, path: Path) -> None:
    """Save the work; ask before a file is replaced that this work was not saved to."""
    if path.exists() and str(path) != tab.work.saved:
        ask_to_replace(tab, [path], partial(save_work, tab, path))
    else:
        save_work(tab, path)
