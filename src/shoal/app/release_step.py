"""Step 5, Release: what is protected and what is not, warnings to tick off, the files, and how to do it again."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from nicegui import ui

import shoal
from shoal.app.parts import Entry, ask_to_replace, button, card, field, heading, hint, text, tick
from shoal.app.tab import Tab
from shoal.app.words import help_of, in_labels, sentence, typed_path
from shoal.app.work import Files, Source, Try

__all__ = ["report_of", "show", "warnings_of"]

FILES = {
    "report": "Report: a page to read, print and publish, without any original value",
    "manifest": "Manifest: the record of the run, to repeat it to the byte and to audit it",
    "labels": "Labels: the group of each record. Keep them to yourself",
}


def show(tab: Tab) -> None:
    """Show the step."""
    heading("Release", "Read what is protected and what is not, tick off the warnings, and write the files.")
    one = tab.work.current
    if one is None or one.release is None:
        with card():
            again = one is not None
            text("p", "The chosen try was opened from a file: run it again first." if again else "There is no try yet.")
            button(
                "Go to Compare" if again else "Go to Protect",
                lambda: tab.go("compare" if again else "protect"),
                kind="main",
            )
        return
    if _outdated(tab, one):
        _refuse_outdated(tab, one)
        return
    with ui.element("div").classes("s-two"):
        with ui.element("div") as first:
            pass
        ready = _files(tab, one, one.release)
        with first:
            _protected(tab, one, one.release, ready)
    _repeat(tab, one, one.release)
    _report(tab, one)


def _outdated(tab: Tab, one: Try) -> list[str]:
    """List what has changed since a try ran; empty if it may be released. Confirmations do not outlive a change."""
    work = tab.work
    source: Any = work.source
    changes = [f"The file {source.title} on disk"] if source.changed else []
    changes += work.settings.changes_since(one.settings)
    if changes:
        work.ticked.pop(one.number, None)
    return changes


def _refuse_outdated(tab: Tab, one: Try) -> None:
    """Say why a try is not released, and offer the ways on."""

    def run() -> None:
        tab.start_try()
        tab.go("compare")

    def take_back() -> None:
        tab.work.take_back(one)
        tab.changed()

    source: Any = tab.work.source
    with card(f"Try {one.number} is out of date"), ui.element("div").props("data-test=outdated"):
        text("p", f"This has changed since try {one.number} ran, so it is not released:")
        with ui.element("ul"):
            for change in _outdated(tab, one):
                text("li", change)
        if source.changed:
            return  # the page offers to read it again
        hint("Run again to release what the form shows now. Confirm the warnings of the new try then.")
        with ui.element("div").classes("s-row").style("margin-top: 12px"):
            button("Run again with the current settings", run, kind="main")
            button(f"Return to the settings of try {one.number}", take_back)


def warnings_of(one: Try) -> list[str]:
    """Return what a steward must have read before a release, the warnings of the release itself first."""
    release = one.release
    if release is None:
        return []
    told = list(map(sentence, release.warnings))
    if release.left:
        named = ", ".join(map(str, release.left))
        several = f"{len(release.left)} columns are" if len(release.left) > 1 else "One column is"
        told.append(f"{several} released as before: {named}.")
    if release.uniques:
        told.append(
            f"{release.uniques:,} of {release.records:,} records are unique over all that is released, the columns "
            "that were left as they are included. Who knows these columns of somebody may find the record."
        )
    told += [sentence(note.worded(in_labels)) for note in release.notes]
    if one.stopped:
        told.append(
            "The search was stopped early: this is the best that had been found by then, verified as any other."
        )
    if not one.repeatable:
        told.append(
            "A second run may give other values: this one had a time limit, was stopped, or is in random order."
        )
    return told


def _protected(tab: Tab, one: Try, release: shoal.Release, ticked: Callable[[], object]) -> None:
    read = tab.work.ticked.setdefault(one.number, set())

    def set_tick(warning: str, on: bool) -> None:
        (read.add if on else read.discard)(warning)
        ticked()

    first, others = list(map(sentence, release.warnings)), warnings_of(one)[len(release.warnings) :]
    with card("Checklist"):
        if first:
            text("h3", "Read this first")
        for warning in first:
            tick(warning, warning in read, partial(set_tick, warning))
        text("h3", "What is protected").style("margin-top: 12px" if first else "")
        text("p", sentence(release.verified)).style("margin: 4px 0").props("data-test=verified")
        hint("Counted again in the masked table itself. It holds for the columns that are named, and for no other.")
        text("h3", "What you should know").style("margin-top: 12px")
        for warning in others:
            tick(warning, warning in read, partial(set_tick, warning))
        if not others:
            hint("There is nothing else to warn of." if first else "There is nothing to warn of.")


def _files(tab: Tab, one: Try, release: shoal.Release) -> Callable[[], object]:
    """Show where files go; return what shows anew whether they may be written."""
    source: Any = tab.work.source
    form = tab.work.files = tab.work.files or _empty_form(one, source)
    with card("Files"):
        with field("Folder"):
            Entry(form.folder, partial(setattr, form, "folder"))
        with field("Name of the masked file"):
            Entry(form.name, partial(setattr, form, "name"))
        for file, words in FILES.items():
            tick(words, form.wanted[file], partial(form.wanted.__setitem__, file))
            if file == "manifest" and source.dragged:
                hint(f"The place of {source.title} is not known: the manifest tells its name and SHA-256.")
        hint(help_of("labels"))
        ready = ui.refreshable(lambda: _ready(tab, one, partial(_start_writing, tab, one, release, form)))
        ready()
        if one.figures.get("written"):
            told = text("p", "Written: " + ", ".join(one.figures["written"]))
            told.props("role=status data-test=written").style("overflow-wrap: anywhere")
    return ready.refresh


def _empty_form(one: Try, source: Source) -> Files:
    """Return the form with its defaults: next to the table, everything except the labels."""
    folder = Path.home() if source.dragged else source.path.parent
    return Files(str(folder), one.file(source).name, {name: name != "labels" for name in FILES})


def _start_writing(tab: Tab, one: Try, release: shoal.Release, form: Files) -> None:
    """Write the files that the form names, after a question if some of them exist."""
    if not _may_write(tab, one):
        return
    files = _targets((typed_path(form.folder) / form.name.strip()).absolute(), release, form.wanted)
    try:
        existing = [path for path in files.values() if path.exists()]
        _check_places(one, tab.work.source, files, replace=existing)
    except (shoal.ShoalError, OSError) as error:
        tab.refuse(error)
        return
    put = partial(_put, tab, one, files, existing)
    if existing:
        ask_to_replace(tab, existing, put)
    else:
        put()


def _put(tab: Tab, one: Try, files: Mapping[str, Path], replace: Sequence[Path]) -> None:
    """Write files in the background; only those of `replace` may exist."""
    work = tab.work

    def done(written: list[Path]) -> None:
        one.figures.update(written=[str(path) for path in written])
        work.unsaved = False

    if _may_write(tab, one):  # again: a question may have stayed open for long
        tab.run("Writing the files", lambda: _write(one, work.source, files, replace=replace), done)


def _may_write(tab: Tab, one: Try) -> bool:
    """Return whether a try of the open table is up to date and its warnings are read; show the step again if not."""
    allowed = tab.work.trial(one.number) is one and not _outdated(tab, one) and not _unread(tab, one)
    if not allowed:
        tab.changed()
    return allowed


def _unread(tab: Tab, one: Try) -> list[str]:
    """Return the warnings that were not ticked off."""
    return [warning for warning in warnings_of(one) if warning not in tab.work.ticked.get(one.number, set())]


def _ready(tab: Tab, one: Try, write: Callable[[], None]) -> None:
    """Show the button that writes, once all warnings were read."""
    left = len(_unread(tab, one))
    made = button("Write the files", write, kind="main")
    if left:
        made.props("disabled")
        hint(f"Tick off the {left} warnings first." if left > 1 else "Tick off the warning first.")


def _targets(target: Path, release: shoal.Release, wanted: Mapping[str, bool]) -> dict[str, Path]:
    """Return where each file goes; all are named after the masked one."""
    stem = target.stem
    endings = {"report": "-report.html", "manifest": "-manifest.json", "labels": "-labels.csv"}
    files = {"masked": target} | {n: target.with_name(stem + end) for n, end in endings.items() if wanted[n]}
    return files | {f"hierarchy {name}": path for name, path in _hierarchies(target, release).items()}


def _hierarchies(target: Path, release: shoal.Release) -> dict[Any, Path]:
    """Return the files of hierarchies: a command names them."""
    kinds = release.parameters["kinds"] or {}
    return {
        name: target.with_name(f"{target.stem}-hierarchy-{place}.csv")
        for place, (name, kind) in enumerate(kinds.items(), start=1)
        if isinstance(kind, dict) and "ways" in kind
    }


def _write(one: Try, source: Any, files: Mapping[str, Path], *, replace: Sequence[Path]) -> list[Path]:
    """Put the files of a try where they belong; a crash leaves the old ones or the new ones."""
    if source.changed:
        raise shoal.InputError(f"Table {source.title} has changed on disk since it was opened. Read it again first.")
    _check_places(one, source, files, replace=replace)
    release: Any = one.release
    _place(one.file(source), files["masked"])
    for name, path in files.items():
        if name == "labels":
            _place(one.labels, path)
        elif name == "report":
            _place(_make_report(one, source, files["masked"]), path)
        elif name.startswith("hierarchy "):
            _write_ways(release.parameters["kinds"], name.partition(" ")[2], path)
    if "manifest" in files:
        told = source.title if source.dragged else None
        release.manifest(files["manifest"], source=source.path, output=files["masked"], name=told)
    return list(files.values())


def _check_places(one: Try, source: Any, files: Mapping[str, Path], *, replace: Sequence[Path]) -> None:
    """Refuse places that files must not have."""
    folder = files["masked"].parent
    if not folder.is_dir():
        raise shoal.FileError(f"Folder {folder} does not exist. Make it first, or name another.")
    for path in files.values():
        if path.exists() and path.samefile(source.path):
            raise shoal.FileError(f"File {path} is the table itself. Name another.")
        if path.exists() and path not in replace:
            raise shoal.FileError(f"File {path} already exists. Name another, or write again to replace it.")
    if files["masked"].suffix != one.file(source).suffix:
        raise shoal.FileError(f"File {files['masked']} must end in {one.file(source).suffix}, as the table does.")


def _place(made: Path, target: Path) -> None:
    beside = target.with_name(f".{target.name}.part")
    try:
        beside.touch(made.stat().st_mode & 0o777)  # labels stay for their owner alone
        shutil.copyfile(made, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _write_ways(kinds: Mapping[Any, Any], name: str, path: Path) -> None:
    ways = next(kind["ways"] for column, kind in kinds.items() if str(column) == name)
    first = [str(cell) for value, above in list(ways.items())[:1] for cell in (value, *above)]
    with path.open("w", encoding="utf-8", newline="") as file:
        delimiter = ";" if any(";" in cell for cell in first) else ","
        csv.writer(file, delimiter=delimiter).writerows([value, *above] for value, above in ways.items())


def _repeat(tab: Tab, one: Try, release: shoal.Release) -> None:
    """Show the same as a command and as Python."""
    source: Any = tab.work.source
    name = source.title if source.dragged else str(source.path)
    folder = Path() if source.dragged else source.path.parent
    target = Path((one.figures.get("written") or [folder / one.file(source).name])[0])
    hierarchies = {column: str(path) for column, path in _hierarchies(target, release).items()}
    with card("Do it again without the page"):
        hint(
            "Both give the same bytes as the masked file."
            if one.repeatable
            else "Both ask for the same, but may give other values."
        )
        if source.dragged:
            hint(f"Write where {source.title} lies: it was dragged in, and its place is not known.")
        for label, code in (
            ("Command", release.command(name, str(target), hierarchies)),
            ("Python", release.call(name, str(target))),
        ):
            with ui.element("div").classes("s-row").style("justify-content: space-between"):
                text("h3", label)
                button("Copy", partial(ui.clipboard.write, code), kind="small", label=f"Copy the {label.lower()}")
            shown = text("pre", code, "s-code").props("tabindex=0 role=region")
            shown.props["aria-label"] = label
            shown.props["data-test"] = label.lower()


def _report(tab: Tab, one: Try) -> None:
    source: Any = tab.work.source
    with card("Report"):
        hint("For readers who do not program, without any original value: it may be published.")
        if (Path(str(one.folder)) / "report.html").exists():
            address = f"/report/{ui.context.client.tab_id}/{one.number}"
            frame = ui.element("iframe").classes("s-report")
            frame.props["src"] = address
            frame.props["title"] = f"Report of try {one.number}"
            link = text("a", "Open the report in a new tab")
            link.props["href"] = address
            link.props("target=_blank").style("color: var(--mark)")
            return
        target = one.file(source)
        button(
            "Make the report",
            lambda: tab.run("Making the report", lambda: _make_report(one, source, target), lambda _: None),
        )


def _make_report(one: Try, source: Source, output: Path) -> Path:
    """Make the report as `shoal mask --report` does, with the same method at other k on its map."""
    release: Any = one.release
    if one.comparison is None:
        one.comparison = shoal.compare_around(release, source.path)
    return Path(
        release.report(
            Path(str(one.folder)) / "report.html", original=source.path, output=output, comparison=one.comparison
        )
    )


def report_of(tab: Tab | None, number: int) -> Response:
    """Return the report of a try to the browser."""
    one = tab.work.trial(number) if tab is not None else None
    path = Path(os.fspath(one.folder or "")) / "report.html" if one is not None else None
    if path is None or not path.is_file():
        return PlainTextResponse("There is no such report: make it in the step Release.", 404)
    return HTMLResponse(path.read_text(encoding="utf-8"))
