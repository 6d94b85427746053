"""The layout of the page: five steps, open at any time, and messages about the table and the background job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nicegui import ui

from shoal.app import compare_step, protect_step, release_step, roles_step, table_step
from shoal.app.jobs import Job
from shoal.app.tab import Tab
from shoal.app.texts import duration
from shoal.app.widgets import banner, button, text
from shoal.app.work import Work

__all__ = ["STEPS", "build"]

STEPS: dict[str, tuple[str, Callable[[Tab], None]]] = {
    "table": ("Table", table_step.show),
    "roles": ("Roles", roles_step.show),
    "protect": ("Protect", protect_step.show),
    "compare": ("Compare", compare_step.show),
    "release": ("Release", release_step.show),
}
# The server ends some time after its last page is closed; a reload also closes a page but opens another.
CLOSED = 'addEventListener("pagehide", () => navigator.sendBeacon("/closed"))'
LEAVING = 'addEventListener("beforeunload", (event) => { if (window.unsaved) event.preventDefault() })'
# Keep the focus and unfinished text while a step is rebuilt.
KEEP_FOCUS = """(() => {
    const name = (e) => e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText;
    const before = document.activeElement, called = name(before);
    const typed = before.matches("input[type=text], input[type=number]");
    setTimeout(() => {
        if (document.activeElement !== document.body) return;
        const inputs = [...document.querySelectorAll("main :is(button, select, input)")];
        const now = inputs.find((e) => name(e) === called);
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
        mode.value = not tab.work.dark
        tab.change(dark=mode.value)

    content = ui.refreshable(lambda: _content(tab))
    with ui.element("header").classes("s-top"), ui.element("div").classes("s-top-in"):
        text("span", "shoal", "s-brand")
        with ui.element("nav").classes("s-steps").props('aria-label="Steps"'):
            steps = {name: _step(tab, name, place) for place, name in enumerate(STEPS, start=1)}
        button("Light or dark", switch, kind="small")
    with ui.element("main").classes("s-main") as main:
        content()
    tab.layer = ui.element("div")
    ui.skip_link("Skip to content", target=main)
    state: dict[str, object] = {"revision": tab.revision, "step": tab.work.step, "unsaved": False}
    _mark(steps, tab.work.step)

    def follow() -> None:
        if state["unsaved"] != tab.unsaved:
            state["unsaved"] = tab.unsaved
            ui.run_javascript(f"window.unsaved = {'true' if tab.unsaved else 'false'}")
        if state["revision"] == tab.revision:
            return
        _mark(steps, tab.work.step)
        ui.run_javascript(KEEP_FOCUS if state["step"] == tab.work.step else "scrollTo(0, 0)")
        state.update(revision=tab.revision, step=tab.work.step)
        content.refresh()

    ui.timer(0.1, follow)


def _step(tab: Tab, name: str, place: int) -> ui.element:
    element = text("button", f"{place} {STEPS[name][0]}", "s-step").props("type=button")
    element.on("click", lambda: tab.go(name), args=[])
    return element


def _mark(steps: dict[str, ui.element], current: str) -> None:
    for name, element in steps.items():
        if name == current:
            element.props("aria-current=step")
        else:
            element.props(remove="aria-current")


def _content(tab: Tab) -> None:
    work = tab.work
    _state(work)
    if work.error:
        banner(work.error, {"Close this message": lambda: tab.change(error="")}, test="error", alert=True)
    if work.job is not None and work.busy:
        _job(work.job)
    elif work.table.changed:
        message = (
            f"Table {work.table.title} has changed on disk since it was opened. Read it again before you continue."
        )
        banner(message, {"Read it again": tab.read_again}, test="changed", alert=True)
    if work.restored:
        ways = {"Keep them": lambda: tab.change(restored=False), "Use the proposed settings": tab.propose_again}
        banner("The settings of this table were restored from your last session.", ways, test="restored")
    if work.inspection is None and work.step != "table":
        text("h1", STEPS[work.step][0])
        text("p", "Choose a table first. All other steps need it.", "s-lead")
        button("Choose a table", lambda: tab.go("table"), kind="main")
        return
    STEPS[work.step][1](tab)


def _state(work: Work) -> None:
    """Show the open table and the chosen version."""
    if work.inspection is None:
        return
    records, columns = work.inspection.records, len(work.columns)
    words = f"{work.table.title}: {records:,} record{'s' * (records != 1)}, {columns} column{'s' * (columns != 1)}"
    if work.table.partial:
        words += " in the part shown"
    if work.current is not None:
        words += f" · {work.current.title}, information loss {work.current.figures['loss']:.2f} %"
    text("p", words, "s-hint").style("margin: 8px 0 0").props("data-test=state")


def _job(job: Job) -> None:
    """Show a job with its progress, the time left and a Stop button."""
    with ui.element("div").classes("s-job").props("role=status data-test=job"):
        title = text("span", f"{job.title} …")
        bar = ui.element("progress").props('aria-label="Progress"')
        stop = button("Stop", job.stop, label="Stop; a search keeps its best result so far")

    def follow() -> None:
        progress = job.progress
        if job.stopped:
            stop.props("disabled")
            title.text = "Stopping …"
        if progress is None or job.stopped or not job.running:
            return
        words = [f"{job.title}: {progress.title}" if progress.title else job.title]
        if progress.left is not None:
            words.append(f"about {duration(progress.left)} left")
        title.text = ", ".join(words)
        if job.share is not None:
            bar.props(f"max=100 value={100 * job.share:.0f}")

    ui.timer(0.3, follow)
