"""Progress, interrupts and threads of long computations.

A kernel shares one array with its caller: ``state[DONE]`` counts finished records, and a nonzero ``state[STOP]``
requests an early return. A search also publishes its steps, best SSE and proven bound in this array (`publish`,
`observe`). The work runs in a thread so that Ctrl-C takes effect at once; kernels release the GIL.
"""

from __future__ import annotations

import contextvars
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from shoal.core.messages import visible

if TYPE_CHECKING:
    from shoal.core.types import State

__all__ = [
    "DONE",
    "SIGNALS",
    "STOP",
    "Observation",
    "Progress",
    "SearchTitle",
    "Terminated",
    "Title",
    "cancelled_by",
    "check_interrupt",
    "forget_interrupts",
    "fresh_state",
    "interrupt",
    "observe",
    "publish",
    "spread",
    "watch",
    "watching",
    "within",
]

DONE, STOP, _STEPS, _SSE, _BOUND = range(5)
# Signals that request the end of a run; not every system has SIGHUP (terminal closed).
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
CLEANING_SECONDS = 2.0  # grace period after a second interrupt
T = TypeVar("T")
Item = TypeVar("Item")

_caught: list[int] = []  # signals raised as interrupts; libraries may have dropped the exception


class Progress(NamedTuple):
    """The progress of a long computation.

    Parameters
    ----------
    title
        The current step; for a search also its loss and bound.
    done, total
        Finished and total amount of work; `total` is None for work that is not counted.
    seconds
        Seconds since the step began.
    """

    title: str
    done: int
    total: int | None
    seconds: float

    @property
    def left(self) -> float | None:
        """Estimated remaining seconds at the current speed; None if unknown."""
        if not self.total or not self.done:
            return None
        return self.seconds * max(0, self.total - self.done) / self.done


Watcher = Callable[[Progress], object]
_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("watcher", default=None)
_state: contextvars.ContextVar[State | None] = contextvars.ContextVar("state of the running work", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Report the progress of the work in the block to a function, which can stop the work.

    Parameters
    ----------
    watcher
        A function that gets a `Progress` several times a second, in the thread that requested the work. If it returns
        True, the work is interrupted as by Ctrl-C: a search ends with its best result so far, and other work raises
        ``KeyboardInterrupt``. The default method counts as a search unless the table is masked in blocks.

    Examples
    --------
    >>> import shoal
    >>> import numpy as np
    >>> reports = []
    >>> with watching(reports.append):
    ...     release = shoal.mask(np.arange(12.0), k=3)
    >>> all(progress.done <= progress.total for progress in reports if progress.total)
    True
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def cancelled_by(cancel: Callable[[], object]) -> Iterator[None]:
    """Call `cancel` from another thread if watched work is interrupted within the block.

    This stops calls that do not check ``state[STOP]`` themselves.

    Examples
    --------
    >>> import threading
    >>> cancelled = threading.Event()
    >>> def work(state):
    ...     with cancelled_by(cancelled.set):
    ...         state[STOP] = 1
    ...         return cancelled.wait(10)
    >>> watch(work, None)
    True
    """
    state, ended = _state.get(), threading.Event()

    def look() -> None:
        while state is not None and not ended.wait(0.1):
            if state[STOP]:
                with suppress(Exception):  # not every library can cancel a call
                    cancel()
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def watched() -> bool:
    """Return True if a watcher is set."""
    return _watcher.get() is not None


class Terminated(KeyboardInterrupt):
    """Interrupt by a signal other than Ctrl-C; a search then ends without releasing its result."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def interrupt(number: int, _: object = None) -> None:
    """Raise an interrupt for a signal; record the signal, because Python and libraries may drop the exception."""
    _caught.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def forget_interrupts() -> None:
    """Clear the record of handled interrupts."""
    _caught.clear()


def check_interrupt() -> None:
    """Raise a recorded interrupt again if its exception was dropped."""
    if _caught:
        number = _caught[-1]
        forget_interrupts()
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def fresh_state() -> State:
    """Return a new array for a kernel and its caller to share."""
    import numpy as np

    return np.zeros(5, dtype=np.int64)


class Observation(NamedTuple):
    """The progress of a search: steps, smallest SSE and proven lower bound (None if not available yet)."""

    steps: int
    sse: float | None
    bound: float | None


def publish(state: State, *, steps: int | None = None, sse: float | None = None, bound: float | None = None) -> None:
    """Publish the progress of a search to its caller.

    Examples
    --------
    >>> state = fresh_state()
    >>> publish(state, steps=100, sse=2.5)
    >>> observe(state)
    Observation(steps=100, sse=2.5, bound=None)
    """
    if steps is not None:
        state[_STEPS] = steps
    # Store 0 as −0.0, whose bits are not all 0, to distinguish a published 0 from no value.
    for place, value in ((_SSE, sse), (_BOUND, bound)):
        if value is not None:
            state[place : place + 1].view("float64")[0] = value or -0.0


def observe(state: State) -> Observation:
    """Return the progress that a search has published."""
    values = [
        float(state[place : place + 1].view("float64")[0]) + 0.0 if state[place] else None for place in (_SSE, _BOUND)
    ]
    return Observation(int(state[_STEPS]), *values)


class SearchTitle(NamedTuple):
    """The title of a running search, with its published loss and bound."""

    method: str
    total: float  # the sum of squares at 100 % loss

    def text(self, state: State, seconds: float) -> str:
        """Return the progress line of a search after `seconds`.

        Examples
        --------
        >>> state = fresh_state()
        >>> publish(state, steps=100, sse=2.5, bound=2.0)
        >>> SearchTitle("search", 10.0).text(state, 4.0)
        'search: loss 25.00000 %, bound 20.00000 %, gap 20.000 %, 25 steps/s'
        """
        steps, sse, bound = observe(state)
        if sse is None:
            return self.method
        parts = [f"{self.method}: loss {100 * sse / self.total:.5f} %"]
        if bound is not None:
            gap = 100 * (sse - bound) / sse if sse else 0.0
            parts.append(f"bound {100 * bound / self.total:.5f} %, gap {gap:.3f} %")
        return ", ".join([*parts, f"{steps / seconds:,.0f} steps/s"])


Title = str | SearchTitle


def watch(
    work: Callable[[State], T],
    total: int | None,
    *,
    title: Title = "",
    show: bool = False,
    keep: bool = False,
) -> T:
    """Run ``work(state)`` in a thread that Ctrl-C can stop, and report its progress.

    The work returns early once ``state[STOP]`` is set. `total` is the final value of ``state[DONE]``, or None for
    work that is not counted. With `show`, longer work draws a progress bar on standard error if that is a terminal.
    With `keep`, Ctrl-C makes the function return the early result of the work; other signals still raise.

    Examples
    --------
    >>> watch(lambda state: int(state[DONE]) + 1, total=1)
    1
    """
    state = fresh_state()
    future: Future[T] = Future()
    context = contextvars.copy_context()  # the caller's context, which includes its open outputs

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            context.run(_state.set, state)
            future.set_result(context.run(work, state))
        except BaseException as error:  # noqa: BLE001  (handed to the caller's thread below)
            future.set_exception(error)

    # Avoid an executor, because the interpreter waits for its threads at exit, even after a second Ctrl-C.
    thread = threading.Thread(target=run, name="shoal", daemon=True)
    try:
        thread.start()
        if (watcher := _watcher.get()) is not None:
            _tell(watcher, future, state, total, title)
        elif not _ended(future, 0.5):
            _follow(future, state, total, title) if show else _wait(future)
    except KeyboardInterrupt as error:
        forget_interrupts()
        state[STOP] = 1
        if future.cancel():  # interrupted before the work began
            raise
        try:
            _wait(future)
        except KeyboardInterrupt:  # interrupted work removes its files; after this grace period it is abandoned
            _ended(future, CLEANING_SECONDS)
            raise
        if not keep or isinstance(error, Terminated):
            raise
    thread.join()
    return future.result()


@contextmanager
def within(state: State, seconds: float | None, total: int) -> Iterator[State]:
    """Yield a state for a part of the work, with an optional time limit.

    The part stops after `seconds` (None: no limit) or when `state` is stopped. The values that it
    publishes are copied to `state`. Its count, up to `total`, is added to the count of `state`, which never decreases.

    Examples
    --------
    >>> whole = fresh_state()
    >>> with within(whole, 60.0, total=10) as part:
    ...     part[DONE] = 7
    >>> int(whole[DONE]), int(part[STOP])
    (7, 0)
    """
    part, before = fresh_state(), int(state[DONE])
    until = None if seconds is None else time.monotonic() + seconds
    ended = threading.Event()

    def pass_on() -> None:
        if state[STOP] or (until is not None and time.monotonic() >= until):
            part[STOP] = 1
        state[DONE] = max(int(state[DONE]), before + min(int(part[DONE]), total))
        if part[_STEPS:].any():
            state[_STEPS:] = part[_STEPS:]

    def follow() -> None:
        while not ended.wait(0.05):
            pass_on()

    pass_on()
    thread = threading.Thread(target=follow, name="shoal-within", daemon=True)
    thread.start()
    try:
        yield part
    finally:
        ended.set()
        thread.join()
        pass_on()


def _ended(work: Future[Any], seconds: float) -> bool:
    """Wait up to `seconds`; return True if the work has ended."""
    return bool(wait([work], timeout=seconds).done)


def _wait(work: Future[Any]) -> None:
    # On some platforms, waiting without a timeout cannot be interrupted.
    while not _ended(work, 0.2):
        check_interrupt()


def _tell(watcher: Watcher, work: Future[Any], state: State, total: int | None, title: Title) -> None:
    """Report progress to a watcher until the work ends; raise an interrupt if the watcher returns True."""
    began = time.monotonic()
    while not _ended(work, 0.1):
        check_interrupt()
        seconds = time.monotonic() - began
        if watcher(Progress(_text(title, state, seconds), int(state[DONE]), total, seconds)) is True:
            raise KeyboardInterrupt


def _follow(work: Future[Any], state: State, total: int | None, title: Title) -> None:
    """Draw a progress bar until the work ends; without a terminal, only wait, because rich is slow to import."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (terminal or os.environ.get("FORCE_COLOR")):
        _wait(work)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    began, console = time.monotonic(), Console(stderr=True)
    counted = () if total is None else ("{task.percentage:>3.0f} %", TimeRemainingColumn())
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *counted)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        while not _ended(work, 0.2):
            check_interrupt()
            text = _text(title, state, time.monotonic() - began)
            bar.update(task, completed=int(state[DONE]), description=visible(text))


def _text(title: Title, state: State, seconds: float) -> str:
    return title if isinstance(title, str) else title.text(state, seconds)


def spread(work: Callable[[Item], T], items: Iterable[Item], threads: int) -> Iterator[T]:
    """Yield the result of `work` for each item, in order, for any number of threads.

    Examples
    --------
    >>> list(spread(abs, [-1, 2, -3], threads=2))
    [1, 2, 3]
    """
    if threads == 1:  # passing a small item to a thread takes as long as the work on it
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as executor:
        yield from executor.map(work, items)
