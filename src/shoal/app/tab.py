"""A tab of the browser: its work, what runs for it in the background, and how its page is shown anew."""

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
from shoal.app.opening import identified, open_source
from shoal.app.plain_settings import from_plain, to_plain
from shoal.app.trying import run_try
from shoal.app.words import in_labels
from shoal.app.work import Settings, Source, Try, Work

__all__ = ["Tab"]

MOST_EARLIER = 5  # tables that are kept in memory with their tries
BUSY = "Something is running already. Wait for its end, or stop it."


class Tab:
    """What a tab knows and does. It outlives its page, which a reload builds anew.

    Parameters
    ----------
    folder
        Where files of the session are.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.work = Work()
        self.earlier: list[Work] = []  # with other tables: opening one by mistake loses nothing
        self.version = 0  # the page is shown anew when it grows
        self.layer: Any = None  # where the page, if there is one, has its dialogs
        self.client: Client | None = None  # the browser's end of the page

    @property
    def shown(self) -> bool:
        """Whether a page shows the tab now."""
        return self.client is not None and self.client.has_socket_connection

    def changed(self) -> None:
        """Have the page shown anew."""
        self.version += 1

    def go(self, step: str) -> None:
        """Open a step."""
        if self.work.step != step:
            self.work.step = step
            self.changed()

    def back_to(self, earlier: Work) -> None:
        """Go on with an earlier table and its tries."""
        if self.work.busy:
            self.refuse(BUSY)
            return
        self._leave()
        self.earlier = [work for work in self.earlier if work is not earlier]
        earlier.step, earlier.dark, earlier.values = self.work.step, self.work.dark, self.work.values
        self.work = earlier
        self.changed()

    def _leave(self) -> None:
        if self.work.begun_with:
            self.earlier = [*self.earlier, self.work][-MOST_EARLIER:]

    def refuse(self, error: Exception | str) -> None:
        """Show what went wrong, in the words of the page."""
        self.work.error = error.worded(in_labels) if isinstance(error, shoal.ShoalError) else str(error)
        self.changed()

    def run(self, title: str, function: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run a function in the background, one at a time; `done` gets what it returns, unless it was stopped."""
        if self.work.busy:
            self.refuse(BUSY)
            return
        work = self.work  # which is another one when a table has been opened
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
                what = f"{error.filename}: " if error.filename else ""
                self.work.error = f"{what}{error.strerror or error}. Name another place, or see that it can be used."
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
        csv: Mapping[str, str] | None = None,
        check: Callable[[], None] | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Open a table; `name` if it was dragged in, `csv` as the user said it is written; `check` may refuse it."""
        path = path.expanduser().absolute()
        source = Source(path, name or str(path), csv=csv or {})
        earlier: dict[str, Any] = {}  # what an earlier session kept of this table

        def opened(found: tuple[Source, shoal.Inspection]) -> None:
            self._leave()
            self.work = self.work.begun(*found)
            if name is None:
                self.folder.remember(path)
            if then is not None:
                then()
            elif earlier:
                self._restore(earlier["settings"])

        def look() -> tuple[Source, shoal.Inspection]:
            if check is not None:
                check()
            marked = identified(source)
            if csv is None:
                earlier.update(self.folder.kept(marked.key))
                marked = replace(marked, csv=earlier.get("csv", {}))
            return open_source(marked, self.folder.fresh("part.csv"))

        self.run(f"Opening {source.title}", look, opened)

    def _restore(self, plain: dict[str, Any]) -> None:
        """Put settings of an earlier session back, unless they do not fit: the proposed ones stay then."""
        with contextlib.suppress(ValueError):
            self.work.settings = from_plain(self.work, plain)
            self.work.kept, self.work.restored = self.work.settings.copy(), True

    def propose_again(self) -> None:
        """Take the proposed settings instead of restored ones."""
        if self.work.inspection is not None:
            self.work.settings = Settings.proposed(self.work.inspection)
        self.work.restored = False
        self.changed()

    def keep_settings(self) -> Callable[[], None] | None:
        """Return what writes the settings to the state folder, or None if they have not changed."""
        changed = [work for work in (self.work, *self.earlier) if work.source and work.settings != work.kept]
        if not changed:
            return None
        for work in changed:
            work.kept = work.settings.copy()  # now: in the background it may change while it is read

        def write() -> None:
            for work in changed:
                if work.source is not None and work.kept is not None:
                    content = {"csv": dict(work.source.csv), "settings": to_plain(work, work.kept)}
                    self.folder.keep(work.source.key, content)

        return write

    @property
    def unsaved(self) -> bool:
        """Whether something would be lost if the tab were closed for good."""
        return any(work.unsaved or work.busy for work in (self.work, *self.earlier))

    def read_again(self) -> None:
        """Open the table again after it changed on disk; settings stay if it still has the same columns."""
        source, settings = self.work.source, self.work.settings
        if source is None:
            return

        def keep() -> None:
            if self.work.settings.roles.keys() == settings.roles.keys():
                self.work.settings = settings.copy()

        self.open(source.path, source.name if source.dragged else None, csv=source.csv, then=keep)

    def start_try(self, replaced: Try | None = None) -> None:
        """Mask the table with the settings of the form, or run a try again that was opened without its result."""
        work = self.work
        if replaced is not None:
            work.choose(replaced)
        asked = (work.settings if replaced is None else replaced.settings).copy()
        number = replaced.number if replaced is not None else 1 + max((one.number for one in work.tries), default=0)
        place = self.folder.fresh("x").parent

        def done(one: Try) -> None:
            one.stopped = work.job is not None and work.job.stopped
            work.tries = sorted([*(old for old in work.tries if old.number != number), one], key=lambda o: o.number)
            work.beside = work.chosen if work.chosen != number else work.beside
            work.chosen = number
            work.ticked.pop(number, None)  # read of another result
            work.unsaved = True

        try:
            asked.request()
        except shoal.ShoalError as error:
            self.refuse(error)
            return
        self.run(f"Try {number}", lambda: run_try(work, number, asked, place), done)
