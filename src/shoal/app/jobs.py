"""Background jobs, which report progress, can be stopped and never block the page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import shoal

__all__ = ["Job", "in_background"]


@dataclass
class Job:
    """A running or finished job, with the title that the page shows."""

    title: str
    progress: shoal.Progress | None = None
    stopped: bool = False
    running: bool = True
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    def stop(self) -> None:
        """Stop the job. A search keeps its best result so far; other work leaves nothing."""
        self.stopped = True
        self._stop.set()

    def _watch(self, progress: shoal.Progress) -> bool:
        self.progress = progress
        if self._stop.is_set():
            self._stop.clear()  # stop only once, like Ctrl-C, because the best result so far must still be verified
            return True
        return False

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run the work in a thread; return its result, or None if it was stopped without a result."""

        def watched() -> Any:
            with shoal.watching(self._watch):
                try:
                    return work()
                except KeyboardInterrupt:
                    return None

        try:
            return await in_background(watched)
        finally:
            self.running = False

    @property
    def share(self) -> float | None:
        """The completed share of the work; None if it is unknown."""
        progress = self.progress
        return min(1.0, progress.done / progress.total) if progress is not None and progress.total else None


async def in_background(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a daemon thread, which does not delay the end of the program."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(set_: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_(value)

    def run() -> None:
        try:
            result = work(*arguments)
        except BaseException as error:  # noqa: BLE001  (re-raised where the result is awaited)
            raised: Any = error if isinstance(error, Exception) else RuntimeError(repr(error))
            _call(loop, settle, future.set_exception, raised)
        else:
            _call(loop, settle, future.set_result, result)

    threading.Thread(target=run, name="shoal-page", daemon=True).start()
    return await future


def _call(loop: asyncio.AbstractEventLoop, *arguments: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(*arguments)
