"""A browser tab: its work, its background job and the rebuilding of its page."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nicegui import Client, background_tasks

import shoal
from shoal.app.folder import Folder
from shoal.app.jobs import Job
from shoal.app.settings import Settings, from_plain, to_plain
from shoal.app.table_file import OpenedFile, identified, inspect_table
from shoal.app.texts import in_labels
from shoal.app.versions import Version, make_version
from shoal.app.work import Work

__all__ = ["Tab"]

MOST_EARLIER = 5  # earlier tables kept in memory with their versions
BUSY = "Another job is running. Wait until it ends, or stop it."


class Tab:
    """The state of a browser tab, kept across reloads of its page; `folder` has the files of the session."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.work = Work()
        self.earlier: list[Work] = []  # work on other tables, so that opening a table by mistake loses nothing
        self.refused: OpenedFile | None = (
            None  # a table that could not be read, possibly because reading options are missing
        )
        self.revision = 0  # the page is rebuilt when this number increases
        self.layer: Any = None  # the element of the page that contains its dialogs
        self.client: Client | None = None  # the connection to the browser

    @property
    def shown(self) -> bool:
        """True if a browser shows the page of the tab."""
        return self.client is not None and self.client.has_socket_connection

    @property
    def unsaved(self) -> bool:
        """True if closing the tab for good would lose versions or a running job."""
        return any(work.unsaved or work.busy for work in (self.work, *self.earlier))

    def changed(self) -> None:
        """Request a rebuild of the page."""
        self.revision += 1

    def change(self, **values: Any) -> None:
        """Change attributes of the work and request a rebuild of the page."""
        for name, value in values.items():
            setattr(self.work, name, value)
        self.changed()

    def go(self, step: str) -> None:
        """Open a step."""
        if self.work.step != step:
            self.change(step=step)

    def refuse(self, error: Exception | str) -> None:
        """Show an error with the labels of the page."""
        self.change(error=error.worded(in_labels) if isinstance(error, shoal.ShoalError) else str(error))

    def run(self, title: str, function: Callable[[], Any], done: Callable[[Any], None] = lambda _: None) -> None:
        """Run a function as the background job; call `done` with its result, unless it was stopped without a result."""
        if self.work.busy:
            self.refuse(BUSY)
            return
        work = self.work  # used below, because opening a table replaces self.work
        job = work.job = Job(title)
        work.error = ""

        async def go() -> None:
            try:
                result = await job.run(function)
                if result is not None:
                    done(result)
                elif job.stopped:
                    self.work.error = "Stopped before there was a result, so nothing was kept."
            except shoal.ShoalError as error:
                self.work.error = error.worded(in_labels)
            except OSError as error:
                place = f"{error.filename}: " if error.filename else ""
                self.work.error = (
                    f"{place}{error.strerror or error}. Use another path, or check that this one is accessible."
                )
            except Exception as error:
                self.work.error = f"Unexpected error: {type(error).__name__}: {error}"
                raise
            finally:
                work.job = None
                self.changed()

        background_tasks.create(go(), name=title)
        self.changed()

    def open(
        self,
        path: Path,
        name: str | None = None,
        *,
        csv: Mapping[str, Any] | None = None,
        check: Callable[[], None] | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Open a table. `name` names a dragged-in file, `csv` has reading options, and `check` may refuse the file."""
        path = path.expanduser().absolute()
        table = OpenedFile(path, name or str(path), csv=csv or {})
        stored: dict[str, Any] = {}  # content of the state folder for this table, from an earlier session

        self.refused = table  # until it has been read

        def inspect() -> tuple[OpenedFile, shoal.Inspection]:
            if check is not None:
                check()
            marked = identified(table)
            if csv is None:
                stored.update(self.folder.stored(marked.key))
                marked = replace(marked, csv=stored.get("csv", {}))
            return inspect_table(marked, self.folder.fresh("part.csv"))

        def opened(inspected: tuple[OpenedFile, shoal.Inspection]) -> None:
            self.refused = None
            self._leave()
            self.work = self.work.with_table(*inspected)
            if name is None:
                self.folder.remember(path)
            if then is not None:
                then()
            elif stored:
                self._restore(stored["settings"])

        self.run(f"Opening {table.title}", inspect, opened)

    def reopen(
        self, csv: Mapping[str, Any], then: Callable[[], None] | None = None, *, table: OpenedFile | None = None
    ) -> None:
        """Open a table again with other reading options; by default, open the current table."""
        table = table or self.work.table
        self.open(table.path, table.name if table.dragged else None, csv=csv, then=then)

    def read_again(self) -> None:
        """Open the table again after it changed on disk; keep the settings if it has the same columns."""
        settings = self.work.settings

        def keep() -> None:
            if self.work.settings.roles.keys() == settings.roles.keys():
                self.work.settings = settings.copy()

        self.reopen(self.work.table.csv, keep)

    def back_to(self, earlier: Work) -> None:
        """Return to an earlier table and its versions."""
        if self.work.busy:
            self.refuse(BUSY)
            return
        self._leave()
        self.earlier = [work for work in self.earlier if work is not earlier]
        earlier.step, earlier.dark, earlier.values = self.work.step, self.work.dark, self.work.values
        self.work = earlier
        self.changed()

    def _leave(self) -> None:
        if self.work.touched:
            self.earlier = [*self.earlier, self.work][-MOST_EARLIER:]

    def _restore(self, plain: dict[str, Any]) -> None:
        """Restore settings of an earlier session if they fit the table."""
        with contextlib.suppress(ValueError):
            self.work.settings = from_plain(self.work, plain)
            self.work.stored, self.work.restored = self.work.settings.copy(), True

    def propose_again(self) -> None:
        """Replace restored settings with the proposed ones."""
        if self.work.inspection is not None:
            self.work.settings = Settings.proposed(self.work.inspection)
        self.change(restored=False)

    def keep_settings(self) -> Callable[[], None] | None:
        """Return a function that stores changed settings in the state folder; None if nothing has changed."""
        changed = [
            work for work in (self.work, *self.earlier) if work.inspection is not None and work.settings != work.stored
        ]
        if not changed:
            return None
        for work in changed:
            work.stored = work.settings.copy()  # copied now, because settings may change while a thread writes them

        def write() -> None:
            for work in changed:
                if work.stored is not None:
                    content = {"csv": dict(work.table.csv), "settings": to_plain(work, work.stored)}
                    self.folder.store(work.table.key, content)

        return write

    def start_version(self, rerun: Version | None = None) -> None:
        """Mask the table with the settings of the form, or rerun a version of saved work."""
        work = self.work
        if rerun is not None:
            work.choose(rerun)
        settings = (work.settings if rerun is None else rerun.settings).copy()
        number = rerun.number if rerun is not None else 1 + max((old.number for old in work.versions), default=0)
        place = self.folder.fresh("x").parent

        def done(version: Version) -> None:
            version.stopped = work.job is not None and work.job.stopped
            others = [old for old in work.versions if old.number != number]
            work.versions = sorted([*others, version], key=lambda any_version: any_version.number)
            work.compared = work.chosen if work.chosen != number else work.compared
            work.chosen = number
            work.confirmed.pop(number, None)  # the confirmations were for another result
            work.unsaved = True

        try:
            settings.request()
        except shoal.ShoalError as error:
            self.refuse(error)
            return
        self.run(f"Version {number}", lambda: make_version(work, number, settings, place), done)
