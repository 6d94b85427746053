"""Step 4, Compare: versions as cards and on a risk-utility map, and two versions side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from nicegui import ui

from shoal.app.charts import correlations, distribution, risk_utility_map
from shoal.app.saved_work import ENDING, save_work
from shoal.app.tab import Tab
from shoal.app.texts import duration, sentence, typed_path
from shoal.app.versions import Version
from shoal.app.widgets import (
    Entry,
    Select,
    ask_to_replace,
    button,
    card,
    chart,
    field,
    heading,
    hint,
    plain_table,
    row,
    text,
)

__all__ = ["show"]


def show(tab: Tab) -> None:
    """Show the Compare step."""
    heading(
        "Compare",
        "Every version is kept. Choose one to release, with little information loss and few records that could be "
        "linked.",
    )
    work = tab.work
    if not work.versions:
        with card():
            text("p", "There is no version yet." if not work.busy else "The first version is being made.")
            button("Go to Protect", lambda: tab.go("protect"), kind="main")
        return
    _map(tab)
    text("h2", "Versions").style("margin-top: 4px")
    with ui.element("div").classes("s-versions"):
        for version in work.versions:
            _card(tab, version)
    ui.element("div").style("height: 14px")
    _side_by_side(tab)
    _save(tab)


def _map(tab: Tab) -> None:
    work = tab.work
    with card("Risk and utility"):
        element = chart(
            risk_utility_map(work.versions, work.chosen, dark=bool(work.dark)),
            "Map of versions by information loss and linked records; the cards below show the same figures",
            "height: 236px",
        )
        element.on_point_click(lambda event: _choose(tab, int(event.value[2])))
        unknown = any(version.figures["linked"] is None for version in work.versions)
        hollow = " The risk of a hollow point was not measured; it is at least the value shown." if unknown else ""
        hint(f"Lower and further left is better. Click a point to choose its version.{hollow}")


def _choose(tab: Tab, number: int) -> None:
    version = tab.work.version(number)
    if version is not None:
        tab.work.choose(version)
    tab.changed()


def _card(tab: Tab, version: Version) -> None:
    figures, number, chosen = version.figures, version.number, version.number == tab.work.chosen
    article = ui.element("article").classes("s-version" + (" chosen" if chosen else ""))
    article.props["aria-label"] = version.title + (", chosen" if chosen else "")
    article.props["data-test"] = f"version-{number}"
    with article:
        text("h3", version.title)
        if "verdict" in figures:  # work saved by older releases of shoal has no verdict
            text("p", figures["verdict"], "s-note").props("data-test=verdict")
        for warning in figures.get("warnings", []):  # also missing in such work
            text("p", sentence(warning), "s-note").props("data-test=warning")
        with ui.element("dl"):
            for name, value in _lines(version):
                text("dt", name)
                text("dd", value)
        with ui.element("div").style("display: flex; gap: 6px; flex-wrap: wrap"):
            if version.release is None:
                run = partial(tab.start_version, version)
                button("Run again", run, kind="small", label=f"Run version {number} again")
            elif not chosen:
                button("Choose", lambda: _choose(tab, number), kind="small", label=f"Choose version {number}")
            else:
                button("Release it", lambda: tab.go("release"), kind="small main", label=f"Release version {number}")
            label = f"Restore the settings of version {number}"
            button("Restore these settings", lambda: _restore(tab, version), kind="small", label=label)


def _lines(version: Version) -> list[tuple[str, str]]:
    """Return the labels and figures of a card."""
    figures = version.figures
    linked = figures["linked"]
    lines = [
        ("Information loss", f"{figures['loss']:.3f} %"),
        ("Linked", "not measured" if linked is None else f"{100 * linked:.2f} %"),
        ("Singled out", f"{figures['uniques']:,} of {figures['records']:,}"),
        ("Groups", f"{figures['groups']:,}"),
    ]
    if figures["diversity"] is not None:
        lines.append(("Values in every group (l)", f"at least {figures['diversity']:.0f}"))
        lines.append(("Distance from the table (t)", f"at most {figures['closeness']:.3f}"))
    return [*lines, ("Time", duration(figures["seconds"]) + (", stopped early" if version.stopped else ""))]


def _restore(tab: Tab, version: Version) -> None:
    """Copy the settings of a version to the form, to undo or redo changes."""
    tab.work.restore(version)
    tab.go("protect")


def _side_by_side(tab: Tab) -> None:
    work = tab.work
    first, second = work.current, work.version(work.compared)
    if first is None or first.release is None:
        return
    with card("Before and after"):
        if isinstance(first.release.data, (str, Path)):
            hint("There are no charts: this table was masked from file to file and is not in memory.")
            return
        shown = [version for version in (first, second) if version is not None and version.release is not None]
        candidates = [v for v in work.versions if v.number != first.number and v.release is not None]
        options = {"": "nothing"} | {str(version.number): version.title for version in candidates}
        names = {str(name): name for name in first.release.columns}
        column = next(iter(names))
        drawing = ui.refreshable(lambda name: _distribution(tab, shown, name))
        with row():
            with field("Column"):
                Select({name: name for name in names}, column, lambda name: drawing.refresh(names[name]))
            with field(f"Compare version {first.number} with"):
                compared = str(work.compared) if len(shown) > 1 and str(work.compared) in options else ""
                Select(options, compared, lambda number: tab.change(compared=int(number) if number else None))
        _losses(shown)
        drawing(names[column])
        _correlations(tab, shown)


def _losses(versions: list[Version]) -> None:
    """Show the information loss per column of the compared versions."""
    names = dict.fromkeys(name for version in versions for name in version.figures["column_loss"])
    rows = []
    for name in names:
        losses = [version.figures["column_loss"].get(name) for version in versions]
        rows.append([name, *("–" if loss is None else f"{loss:.3f} %" for loss in losses)])
    head = ["Column", *(f"Version {version.number}" for version in versions)]
    with ui.element("details").classes("s-more"):
        text("summary", "Information loss per column")
        plain_table(head, rows, numbers=range(1, len(head)))


def _distribution(tab: Tab, versions: list[Version], name: Any) -> None:
    if tab.work.view is None:
        return
    if not tab.work.values:
        hint("Values are hidden. Show them in the Table step.")
        return
    releases = {version.number: version.release for version in versions}
    after = {
        f"version {number}": _column(release.data, name)
        for number, release in releases.items()
        if release is not None and name in release.columns
    }
    options = distribution(tab.work.view.column(name), after, dark=bool(tab.work.dark))
    chart(options, f"Distribution of {name} before and after", "height: 280px")


def _column(data: Any, name: Any) -> pl.Series:
    """Return a column of a released table."""
    column = data[name]
    return column if isinstance(column, pl.Series) else pl.Series(column.to_pylist())


def _correlations(tab: Tab, versions: list[Version]) -> None:
    changes = {v.number: v.assessment.utility.correlation_changes() for v in versions if v.assessment is not None}
    if not any(changes.values()):
        return
    text("h3", "Correlations before and after").style("margin-top: 10px")
    hint("Each point is a pair of numeric columns. Pairs on the line have not changed.")
    with ui.element("div").classes("s-two"):
        for number, pairs in changes.items():
            if pairs:
                points = [(f"{left} and {right}", pair.before, pair.after) for left, right, pair in pairs]
                with ui.element("div"):
                    text("p", f"Version {number}", "s-label")
                    options = correlations(points, dark=bool(tab.work.dark))
                    label = f"Correlations before and after version {number}"
                    chart(options, label, "height: 380px; max-width: 440px")


def _save(tab: Tab) -> None:
    table = tab.work.table
    with card("Save the work"):
        if not tab.work.save_as:
            tab.work.save_as = str(table.folder / f"{Path(table.title).stem}{ENDING}")
        with field(
            "File",
            "Contains the settings and figures of all versions, and no values of the table except codes for missing "
            "values. Open it again in the Table step.",
        ):
            Entry(tab.work.save_as, partial(setattr, tab.work, "save_as")).style("width: 100%")
        button("Save", lambda: _save_as(tab, typed_path(tab.work.save_as).absolute()))
        if tab.work.saved:
            text("p", f"Saved: {tab.work.saved}").props("role=status data-test=saved")


def _save_as(tab: Tab, path: Path) -> None:
    """Save the work; ask before replacing any file except the last saved file."""
    if path.exists() and str(path) != tab.work.saved:
        ask_to_replace(tab, [path], partial(save_work, tab, path))
    else:
        save_work(tab, path)
