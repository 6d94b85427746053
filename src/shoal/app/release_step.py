"""Step 5, Release: the protection, warnings to confirm, files to write, and commands that repeat the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from nicegui import ui

import shoal
from shoal.app.release_files import check_targets, hierarchy_files, make_report, targets_of, write_files
from shoal.app.tab import Tab
from shoal.app.texts import help_of, in_labels, sentence, typed_path
from shoal.app.versions import Version
from shoal.app.widgets import Entry, ask_to_replace, button, card, field, heading, hint, row, text, tick
from shoal.app.work import ReleaseForm

__all__ = ["show", "warnings_of"]

FILES = {
    "report": "Report: a page to read, print and publish, without original values",
    "manifest": "Manifest: a record of the run, to audit it and to repeat it byte for byte",
    "labels": "Labels: the group of each record. Keep this file private",
}


def show(tab: Tab) -> None:
    """Show the Release step."""
    heading("Release", "Check what is protected and what is not, confirm the warnings, and write the files.")
    version = tab.work.current
    if version is None:
        _elsewhere(tab, "There is no version yet.", "protect")
    elif version.release is None:
        _elsewhere(tab, "The chosen version is from saved work. Run it again first.", "compare")
    elif _changes(tab, version):
        _refuse_outdated(tab, version)
    else:
        with ui.element("div").classes("s-two"):
            checklist = ui.element("div")
            ready = _files(tab, version, version.release)
            with checklist:
                _checklist(tab, version, version.release, ready)
        _repeat(tab, version, version.release)
        _report(tab, version)


def _elsewhere(tab: Tab, message: str, step: str) -> None:
    with card():
        text("p", message)
        button(f"Go to {step.capitalize()}", lambda: tab.go(step), kind="main")


def _changes(tab: Tab, version: Version) -> list[str]:
    """List the changes since a version was made. After a change, its warnings must be confirmed again."""
    work = tab.work
    changes = [f"File {work.table.title} on disk"] if work.table.changed else []
    changes += work.settings.changes_since(version.settings)
    if changes:
        work.confirmed.pop(version.number, None)
    return changes


def _refuse_outdated(tab: Tab, version: Version) -> None:
    """Show the changes that prevent a release, and buttons to resolve them."""

    def run() -> None:
        tab.start_version()
        tab.go("compare")

    def restore() -> None:
        tab.work.restore(version)
        tab.changed()

    with card(f"Version {version.number} is out of date"), ui.element("div").props("data-test=outdated"):
        text("p", f"Version {version.number} cannot be released, because this has changed since it was made:")
        with ui.element("ul"):
            for change in _changes(tab, version):
                text("li", change)
        if tab.work.table.changed:
            return  # the page offers to read the table again
        hint("Run it again to use the current settings, then confirm the warnings of the new version.")
        with row().style("margin-top: 12px"):
            button("Run again with the current settings", run, kind="main")
            button(f"Restore the settings of version {version.number}", restore)


def warnings_of(version: Version) -> list[str]:
    """Return the warnings to confirm before a release, with the reasons for its verdict first."""
    release = version.release
    if release is None:
        return []
    warnings = [sentence(reason.sentence.worded(in_labels)) for reason in release.verdict.reasons]
    if release.left:
        warnings.append(f"Unchanged columns: {', '.join(map(str, release.left))}.")
    warnings += [sentence(note.worded(in_labels)) for note in release.notes]
    if version.stopped:
        warnings.append("The search was stopped early. This is its best result up to then, verified like any other.")
    if not version.repeatable:
        warnings.append(
            "A second run may give different values: this one had a time limit, was stopped, or is in random order."
        )
    return warnings


def _checklist(tab: Tab, version: Version, release: shoal.Release, changed: Callable[[], object]) -> None:
    confirmed = tab.work.confirmed.setdefault(version.number, set())

    def confirm(warning: str, on: bool) -> None:
        (confirmed.add if on else confirmed.discard)(warning)
        changed()

    warnings = warnings_of(version)
    reasons = len(release.verdict.reasons)
    first, others = warnings[:reasons], warnings[reasons:]
    with card("Checklist"):
        text("h3", release.verdict.text).props("data-test=verdict")
        for warning in first:
            tick(warning, warning in confirmed, partial(confirm, warning))
        text("h3", "What is protected").style("margin-top: 12px")
        text("p", sentence(release.verified)).style("margin: 4px 0").props("data-test=verified")
        hint("Counted again in the masked table itself. It applies only to the columns named here.")
        text("h3", "What you should know").style("margin-top: 12px")
        for warning in others:
            tick(warning, warning in confirmed, partial(confirm, warning))
        if not others:
            hint("There are no other warnings." if first else "There are no warnings.")


def _files(tab: Tab, version: Version, release: shoal.Release) -> Callable[[], object]:
    """Show the form for the files; return a function that updates the button of the form."""
    table = tab.work.table
    if tab.work.form is None:
        name = version.masked_file(table).name
        tab.work.form = ReleaseForm(str(table.folder), name, {file: file != "labels" for file in FILES})
    form = tab.work.form
    with card("Files"):
        with field("Folder"):
            Entry(form.folder, partial(setattr, form, "folder"))
        with field("Name of the masked file"):
            Entry(form.name, partial(setattr, form, "name"))
        for file, words in FILES.items():
            tick(words, form.selected[file], partial(form.selected.__setitem__, file))
            if file == "manifest" and table.dragged:
                hint(f"The folder of {table.title} is unknown, so the manifest records its name and SHA-256.")
        hint(help_of("labels"))
        ready = ui.refreshable(lambda: _ready(tab, version, partial(_start_writing, tab, version, release, form)))
        ready()
        if version.figures.get("written"):
            paths = text("p", "Written: " + ", ".join(version.figures["written"]))
            paths.props("role=status data-test=written").style("overflow-wrap: anywhere")
    return ready.refresh


def _ready(tab: Tab, version: Version, write: Callable[[], None]) -> None:
    """Show the button that writes the files; enable it once all warnings are confirmed."""
    unread = len(_unread(tab, version))
    element = button("Write the files", write, kind="main")
    if unread:
        element.props("disabled")
        hint(f"Confirm the {unread} warnings first." if unread > 1 else "Confirm the warning first.")


def _unread(tab: Tab, version: Version) -> list[str]:
    """Return the unconfirmed warnings."""
    confirmed = tab.work.confirmed.get(version.number, set())
    return [warning for warning in warnings_of(version) if warning not in confirmed]


def _may_write(tab: Tab, version: Version) -> bool:
    """Return whether a version is up to date and its warnings are confirmed; if not, rebuild the page."""
    allowed = tab.work.version(version.number) is version and not _changes(tab, version) and not _unread(tab, version)
    if not allowed:
        tab.changed()
    return allowed


def _start_writing(tab: Tab, version: Version, release: shoal.Release, form: ReleaseForm) -> None:
    """Write the files that the form selects; ask first if any of the files exists."""
    if not _may_write(tab, version):
        return
    files = targets_of((typed_path(form.folder) / form.name.strip()).absolute(), release, form.selected)
    try:
        existing = [path for path in files.values() if path.exists()]
        check_targets(version, tab.work.table, files, replace=existing)
    except (shoal.ShoalError, OSError) as error:
        tab.refuse(error)
        return
    write = partial(_write, tab, version, files, existing)
    if existing:
        ask_to_replace(tab, existing, write)
    else:
        write()


def _write(tab: Tab, version: Version, files: Mapping[str, Path], replace: Sequence[Path]) -> None:
    """Write files in the background; only paths in `replace` may exist."""
    work = tab.work

    def done(paths: list[Path]) -> None:
        version.figures.update(written=[str(path) for path in paths])
        work.unsaved = False

    if _may_write(tab, version):  # checked again: the question may have been open for a while
        tab.run("Writing the files", lambda: write_files(version, work.table, files, replace=replace), done)


def _repeat(tab: Tab, version: Version, release: shoal.Release) -> None:
    """Show the command and the Python call that repeat the run."""
    table = tab.work.table
    source, folder = (table.title, Path()) if table.dragged else (str(table.path), table.folder)
    target = Path((version.figures.get("written") or [folder / version.masked_file(table).name])[0])
    hierarchies = {column: str(path) for column, path in hierarchy_files(target, release).items()}
    code = {
        "Command": release.command(source, str(target), hierarchies),
        "Python": release.call(source, str(target)),
    }
    with card("Repeat without the page"):
        same = (
            "reproduce the masked file byte for byte"
            if version.repeatable
            else "repeat the run, but may give different values"
        )
        hint(f"Both {same}.")
        if table.dragged:
            hint(f"The table was dragged in, so run this in the folder of {table.title}.")
        for label, lines in code.items():
            with row().style("justify-content: space-between"):
                text("h3", label)
                button("Copy", partial(ui.clipboard.write, lines), kind="small", label=f"Copy the {label.lower()}")
            element = text("pre", lines, "s-code").props("tabindex=0 role=region")
            element.props["aria-label"] = label
            element.props["data-test"] = label.lower()


def _report(tab: Tab, version: Version) -> None:
    table = tab.work.table
    with card("Report"):
        hint("For readers who do not program. It contains no original values and may be published.")
        if not version.report.exists():
            make = partial(make_report, version, table, version.masked_file(table))
            button("Make the report", lambda: tab.run("Making the report", make))
            return
        address = f"/report/{ui.context.client.tab_id}/{version.number}"
        frame = ui.element("iframe").classes("s-report")
        frame.props["src"] = address
        frame.props["title"] = f"Report of version {version.number}"
        link = text("a", "Open the report in a new tab").props("target=_blank").style("color: var(--mark)")
        link.props["href"] = address
