"""Step 5, Release: what is protected and what is not, warnings to tick off, the files, and how to do it again."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from nicegui import ui

import shoal
from shoal.app.parts import Entry, button, card, field, heading, hint, text, tick
from shoal.app.tab import Tab
from shoal.app.words import for_people, help_of, typed_path
from shoal.app.work import Source, Try

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
    with ui.element("div").classes("s-two"):
        with ui.element("div") as first:
            pass
        ready = _files(tab, one, one.release)
        with first:
            _protected(tab, one, one.release, ready)
    _repeat(tab, one, one.release)
    _report(tab, one)


def warnings_of(one: Try) -> list[str]:
    """Return what a steward must have read before a release."""
    release = one.release
    if release is None:
        return []
    told = []
    if release.left:
        named = ", ".join(map(str, release.left))
        several = f"{len(release.left)} columns are" if len(release.left) > 1 else "One column is"
        told.append(f"{several} released as before: {named}.")
    if release.uniques:
        told.append(
            f"{release.uniques:,} of {release.records:,} records are unique over all that is released, the columns "
            "that were left as they are included. Who knows these columns of somebody may find the record."
        )
    told += [_sentence(for_people(note)) for note in release.notes]
    if one.stopped:
        told.append(
            "The search was stopped early: this is the best that had been found by then, verified as any other."
        )
    if not one.repeatable:
        told.append(
            "A second run may give other values: this one had a time limit, was stopped, or is in random order."
        )
    return told


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def _protected(tab: Tab, one: Try, release: shoal.Release, ticked: Callable[[], object]) -> None:
    read = tab.work.ticked.setdefault(one.number, set())

    def set_tick(warning: str, on: bool) -> None:
        (read.add if on else read.discard)(warning)
        ticked()

    with card("Checklist"):
        text("h3", "What is protected")
        text("p", _sentence(release.verified)).style("margin: 4px 0").props("data-test=verified")
        hint("Counted again in the masked table itself. It holds for the columns that are named, and for no other.")
        text("h3", "What you should know").style("margin-top: 12px")
        for warning in warnings_of(one):
            tick(warning, warning in read, partial(set_tick, warning))
        if not warnings_of(one):
            hint("There is nothing to warn of.")


def _files(tab: Tab, one: Try, release: shoal.Release) -> Callable[[], object]:
    """Show where files go; return what shows anew whether they may be written."""
    source: Any = tab.work.source
    wanted = {name: name != "labels" for name in FILES}
    state = {"replace": False}

    def write() -> None:
        files = _targets(typed_path(place.value) / name.value.strip(), release, wanted)
        tab.run(
            "Writing the files",
            lambda: _write(one, source, files, replace=state["replace"]),
            lambda written: one.figures.update(written=[str(path) for path in written]),
        )

    with card("Files"):
        with field("Folder"):
            place = Entry(str(Path.home() if source.dragged else source.path.parent), lambda _: None)
        with field("Name of the masked file"):
            name = Entry(one.file(source).name, lambda _: None)
        for file, words in FILES.items():
            tick(words, wanted[file], partial(wanted.__setitem__, file))
            if file == "manifest" and source.dragged:
                hint(f"The place of {source.title} is not known: the manifest tells its name and SHA-256.")
        hint(help_of("labels"))
        tick("Replace files that are there", state["replace"], partial(state.__setitem__, "replace"))
        ready = ui.refreshable(lambda: _ready(tab, one, write))
        ready()
        if one.figures.get("written"):
            told = text("p", "Written: " + ", ".join(one.figures["written"]))
            told.props("role=status data-test=written").style("overflow-wrap: anywhere")
    return ready.refresh


def _ready(tab: Tab, one: Try, write: Callable[[], None]) -> None:
    """Show the button that writes, once all warnings were read."""
    left = len([warning for warning in warnings_of(one) if warning not in tab.work.ticked.get(one.number, set())])
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
        if isinstance(kind, dict)
    }


def _write(one: Try, source: Source, files: Mapping[str, Path], *, replace: bool) -> list[Path]:
    """Put the files of a try where they belong; a crash leaves the old ones or the new ones."""
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


def _check_places(one: Try, source: Source, files: Mapping[str, Path], *, replace: bool) -> None:
    """Refuse places that files must not have."""
    folder = files["masked"].parent
    if not folder.is_dir():
        raise shoal.FileError(f"Folder {folder} is not there. Make it first, or name another.")
    for path in files.values():
        if path == source.path:
            raise shoal.FileError(f"File {path} is the table itself. Name another.")
        if path.exists() and not replace:
            raise shoal.FileError(
                f"File {path} is there already. Name another, or tick “Replace files that are there”."
            )
    if files["masked"].suffix != one.file(source).suffix:
        raise shoal.FileError(f"File {files['masked']} must end in {one.file(source).suffix}, as the table does.")


def _place(made: Path, target: Path) -> None:
    beside = target.with_name(f".{target.name}.part")
    try:
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
