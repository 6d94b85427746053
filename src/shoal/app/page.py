"""The page: five steps, each open at any time, and what runs in the background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nicegui import ui

from shoal.app import compare_step, protect_step, release_step, roles_step, table_step
from shoal.app.parts import button, text
from shoal.app.tab import Tab
from shoal.app.words import long
from shoal.app.work import Source

__all__ = ["STEPS", "build"]

STEPS: dict[str, tuple[str, Callable[[Tab], None]]] = {
    "table": ("Table", table_step.show),
    "roles": ("Roles", roles_step.show),
    "protect": ("Protect", protect_step.show),
    "compare": ("Compare", compare_step.show),
    "release": ("Release", release_step.show),
}
# The server ends when its last page is closed; a reload is told apart by the page that follows.
CLOSED = 'addEventListener("pagehide", () => navigator.sendBeacon("/closed"))'
LEAVING = 'addEventListener("beforeunload", (event) => { if (window.unsaved) event.preventDefault() })'
# What had the focus has it again when the step is shown anew, and what was typed into it is not lost.
KEEP_FOCUS = """(() => {
    const name = (e) => e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText;
    const before = document.activeElement, called = name(before);
    const typed = before.matches("input[type=text], input[type=number]");
    setTimeout(() => {
        if (document.activeElement !== document.body) return;
        const found = [...document.querySelectorAll("main :is(button, select, input)")];
        const now = found.find((e) => name(e) === called);
        now?.focus();
        if (now && typed && now.value !== before.value) {
            now.value = before.value;
            now.dispatchEvent(new Event("change"));
        }
    }, 200);
})()"""


def build(tab: Tab) -> None:
    """Build the page of a tab."""
    ui.add_css(Path(__file__).with_name("style.css"))
    ui.run_javascript(f"{CLOSED}; {LEAVING}")
    mode = ui.dark_mode(tab.work.dark)

    def switch() -> None:
        mode.value = tab.work.dark = not tab.work.dark
        tab.changed()

    content = ui.refreshable(lambda: _content(tab))
    with ui.element("header").classes("s-top"), ui.element("div").classes("s-top-in"):
        text("span", "shoal", "s-brand")
        with ui.element("nav").classes("s-steps").props('aria-label="Steps"'):
            steps = {name: _step(tab, name, place) for place, name in enumerate(STEPS, start=1)}
        button("Light or dark", switch, kind="small")
    with ui.element("main").classes("s-main") as main:
        content()
    tab.layer = ui.element("div")
    ui.skip_link("Skip to the step", target=main)
    shown: dict[str, object] = {"version": tab.version, "step": tab.work.step, "unsaved": False}
    _mark(steps, tab.work.step)

    def follow() -> None:
        if shown["unsaved"] != tab.unsaved:
            shown["unsaved"] = tab.unsaved
            ui.run_javascript(f"window.unsaved = {'true' if tab.unsaved else 'false'}")
        if shown["version"] == tab.version:
            return
        _mark(steps, tab.work.step)
        ui.run_javascript(KEEP_FOCUS if shown["step"] == tab.work.step else "scrollTo(0, 0)")
        shown.update(version=tab.version, step=tab.work.step)
        content.refresh()

    ui.timer(0.1, follow)


def _step(tab: Tab, name: str, place: int) -> ui.element:
    made = text("button", f"{place} {STEPS[name][0]}", "s-step").props("type=button")
    made.on("click", lambda: tab.go(name), args=[])
    return made


def _mark(steps: dict[str, ui.element], current: str) -> None:
    for name, made in steps.items():
        if name == current:
            made.props("aria-current=step")
        else:
            made.props(remove="aria-current")


def _content(tab: Tab) -> None:
    work = tab.work
    _state(tab)
    if work.error:
        with ui.element("div").classes("s-alert").props("role=alert"):
            text("div", work.error).style("flex: 1; overflow-wrap: anywhere")
            button("Close", lambda: _forgive(tab), kind="small", label="Close this message")
    if work.busy:
        _job(tab)
    elif work.source is not None and work.source.changed:
        _changed_on_disk(tab, work.source)
    if work.restored:
        _restored(tab)
    if work.inspection is None and work.step != "table":
        text("h1", STEPS[work.step][0])
        text("p", "Choose a table first: everything else follows from it.", "s-lead")
        button("Choose a table", lambda: tab.go("table"), kind="main")
        return
    STEPS[work.step][1](tab)


def _restored(tab: Tab) -> None:
    """Tell that the settings are those of an earlier session, with a way back to the proposed ones."""
    with ui.element("div").classes("s-note").props("role=status data-test=restored") as note:
        note.style("display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center")
        text("span", "The settings of this table are those of your last session.")
        button("Keep them", lambda: _keep(tab), kind="small")
        button("Use the proposed settings", tab.propose_again, kind="small")


def _keep(tab: Tab) -> None:
    tab.work.restored = False
    tab.changed()


def _changed_on_disk(tab: Tab, source: Source) -> None:
    """Offer to read a table again that is no longer the one that was opened."""
    with ui.element("div").classes("s-alert").props("role=alert data-test=changed"):
        message = f"Table {source.title} has changed on disk since it was opened. Read it again before you go on."
        text("div", message).style("flex: 1; overflow-wrap: anywhere")
        button("Read it again", tab.read_again, kind="small")


def _forgive(tab: Tab) -> None:
    tab.work.error = ""
    tab.changed()


def _state(tab: Tab) -> None:
    """Say which table is open, and which try is chosen."""
    work = tab.work
    if work.source is None or work.inspection is None:
        return
    records, columns = work.inspection.records, len(work.inspection.columns)
    told = f"{work.source.title}: {records:,} record{'s' * (records != 1)}, {columns} column{'s' * (columns != 1)}"
    if work.source.part:
        told += " in the part that is shown"
    if work.current is not None:
        told += f" · {work.current.title}, information loss {work.current.figures['loss']:.2f} %"
    text("p", told, "s-hint").style("margin: 8px 0 0").props("data-test=state")


def _job(tab: Tab) -> None:
    """Show what runs, how long it takes, and a way to stop it."""
    job = tab.work.job
    if job is None:
        return
    with ui.element("div").classes("s-job").props("role=status data-test=job"):
        told = text("span", f"{job.title} …")
        bar = ui.element("progress").props('aria-label="How much is done"')
        stop = button("Stop", job.stop, label="Stop; what was found so far is kept")

    def follow() -> None:
        progress = job.progress
        if job.stopped:
            stop.props("disabled")
            told.text = "Stopping …"
        if progress is None or job.stopped or not job.running:
            return
        words = [f"{job.title}: {progress.title}" if progress.title else job.title]
        if progress.left is not None:
            words.append(f"about {long(progress.left)} left")
        told.text = ", ".join(words)
        if job.share is not None:
            bar.props(f"max=100 value={100 * job.share:.0f}")

    ui.timer(0.3, follow)
