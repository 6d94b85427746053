"""The server of the page, which serves only this machine and ends some time after the last page is closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import tempfile
import time
import warnings
import webbrowser
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shoal
from shoal.app.folder import Folder, state_folder
from shoal.app.guard import Guard

if TYPE_CHECKING:
    from shoal.app.tab import Tab

__all__ = ["serve"]

CLOSED_SECONDS = 600.0  # time to return to the work after the last page was closed
LOST_SECONDS = 1800.0  # time to return if the page was lost without being closed, for example by a sleeping browser
STORE_SECONDS = 1.0  # time between two checks for changed settings


def serve(
    table: Path | None,
    *,
    browser: bool = True,
    tell: Callable[[str], object] = print,
    wait: float = CLOSED_SECONDS,
) -> None:
    """Serve the page until Ctrl-C, or until `wait` seconds after the last page closes; pass the address to `tell`."""
    folder = Folder(state_folder())
    # Incoming files and the state of the framework are written to this folder only.
    tempfile.tempdir = str(folder.path)
    os.environ["NICEGUI_STORAGE_PATH"] = str(folder.path)
    warnings.simplefilter("ignore", shoal.PrivacyWarning)  # the page shows these warnings as notes of the release
    try:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()  # queue connections, because the address is printed before the server accepts any
            guard = Guard(None, listening.getsockname()[1])
            site = _Site(folder, table, wait)
            _run(guard, site, listening, lambda: _announce(guard.address, browser=browser, tell=tell))
    finally:
        tempfile.tempdir = None
        folder.remove()


def _announce(address: str, *, browser: bool, tell: Callable[[str], object]) -> None:
    tell(
        f"shoal runs at {address}\nThe address works once, on this machine only. shoal ends with Ctrl-C, or "
        f"{CLOSED_SECONDS / 60:.0f} minutes after the page is closed."
    )
    if browser:
        webbrowser.open(address)


def _run(guard: Guard, site: _Site, listening: socket.socket, announce: Callable[[], None]) -> None:
    import uvicorn
    from fastapi import FastAPI
    from nicegui import app, ui

    ui.page("/", title="shoal")(site.page)
    app.get("/report/{tab_id}/{number}", response_model=None)(site.report)
    app.post("/closed")(site.close)
    app.on_connect(site.presence.came)
    app.on_disconnect(site.presence.went)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        announce()
        tasks = [asyncio.create_task(site.presence.end(server)), asyncio.create_task(site.keep_settings())]
        yield
        for task in tasks:
            task.cancel()
        site.stop()

    outer = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    looks = {"title": "shoal", "favicon": "🐟", "tailwind": False, "language": "en-US", "show_welcome_message": False}
    ui.run_with(outer, reconnect_timeout=30.0, binding_refresh_interval=None, **looks)  # type: ignore[arg-type]
    app.config.quasar_config["loadingBar"]["skipHijack"] = True  # an unlabelled bar that flickers with every request
    guard.app = outer
    config = uvicorn.Config(guard, log_level="error", lifespan="on", timeout_graceful_shutdown=1, ws_max_size=1 << 24)
    server = uvicorn.Server(config)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        asyncio.run(server.serve(sockets=[listening]))
    except KeyboardInterrupt:
        pass  # Ctrl-C: the normal end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Site:
    """The pages and reports of the server. Each tab has its own page and its own work."""

    def __init__(self, folder: Folder, table: Path | None, wait: float) -> None:
        self._folder, self._table = folder, table
        self._tabs: dict[str, Tab] = {}
        self.presence = _Presence(wait)

    async def page(self) -> None:
        """Build the page of a tab; a reloaded tab keeps its work."""
        from nicegui import ui

        from shoal.app.layout import build
        from shoal.app.tab import Tab

        client = ui.context.client
        alone = self.presence.pages <= 0
        await client.connected()
        tab = self._tabs.get(str(client.tab_id))
        if tab is None and alone:
            tab = self._take_closed(str(client.tab_id))
        if tab is None:
            tab = self._tabs[str(client.tab_id)] = Tab(self._folder)
            if self._table is not None:
                tab.open(self._table)
        tab.client = client
        if tab.work.dark is None:
            tab.work.dark = False
            with contextlib.suppress(TimeoutError):  # a browser that does not answer gets the light page
                dark = await ui.run_javascript("matchMedia('(prefers-color-scheme: dark)').matches", timeout=10.0)
                tab.work.dark = bool(dark)
        build(tab)

    def _take_closed(self, tab_id: str) -> Tab | None:
        """Move the work of the most recently opened tab to a new page if that tab is closed; otherwise return None."""
        if not self._tabs or self._tabs[next(reversed(self._tabs))].shown:
            return None
        self._tabs[tab_id] = self._tabs.popitem()[1]
        return self._tabs[tab_id]

    def report(self, tab_id: str, number: int) -> Any:
        """Return the report of a version."""
        from fastapi.responses import HTMLResponse, PlainTextResponse

        tab = self._tabs.get(tab_id)
        version = tab.work.version(number) if tab is not None else None
        if version is None or not version.report.is_file():
            return PlainTextResponse("This report does not exist. Make it in the Release step.", 404)
        return HTMLResponse(version.report.read_text(encoding="utf-8"))

    def close(self) -> None:
        """Record that a page was closed or is being reloaded."""
        self.presence.closed = True

    async def keep_settings(self) -> None:
        """Store settings in the state folder soon after they change."""
        from shoal.app.jobs import in_background

        while True:
            await asyncio.sleep(STORE_SECONDS)
            for write in [tab.keep_settings() for tab in self._tabs.values()]:
                if write is not None:
                    await in_background(write)

    def stop(self) -> None:
        """Store the settings and stop the jobs."""
        for tab in self._tabs.values():
            write = tab.keep_settings()
            if write is not None:
                write()
            if tab.work.job is not None:
                tab.work.job.stop()


class _Presence:
    """The number of open pages, and the time when the last page was closed."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self.pages = 0
        self.closed = False
        self._empty_since: float | None = None  # None if a page is open or none has been opened yet

    def came(self) -> None:
        self.pages += 1
        self.closed, self._empty_since = False, None

    def went(self) -> None:
        self.pages -= 1
        if self.pages <= 0:
            self._empty_since = time.monotonic()

    async def end(self, server: Any) -> None:
        """End the server once no page has been open for the waiting time."""
        while not server.should_exit:
            await asyncio.sleep(0.2)
            if self._empty_since is None:
                continue
            if time.monotonic() - self._empty_since > (self._wait if self.closed else LOST_SECONDS):
                server.should_exit = True
