"""A pool of worker processes that outlives the death of any of them.

Each process is driven by a thread that sends it one task after the other. A process that dies is replaced and its task
is run again; tasks write whole files under fixed names, so that running one twice does no harm.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from shoal.errors import ShoalError
from shoal.progress import DONE, STOP
from shoal.types import State

__all__ = ["Workers", "WorkersError"]

TRIES = 3
# One thread a process, in every library. Arrays of a part are kept for the next one when they are freed: the system
# takes longer to hand out new pages than a task to fill them. Larger ones go back at once.
QUIET = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}


class WorkersError(ShoalError):
    """A task could not be finished because its processes kept dying."""


class Workers:
    """Processes that run tasks: functions at module level with arguments that can be pickled."""

    def __init__(self, processes: int, state: State) -> None:
        self._state = state
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._all: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closed = False
        self.processes = processes
        self._peaks: dict[int, int] = {}  # bytes, by process
        for _ in range(processes):
            self._idle.put(self._start())

    def map(self, function: Callable[..., Any], tasks: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """Yield ``function(*task)`` of all tasks, in their order; a few run ahead of what was asked for."""
        results: list[queue.SimpleQueue[tuple[bool, Any]]] = []
        waiting = iter(tasks)
        ahead = 2 * self.processes

        def submit() -> None:
            for task in waiting:
                box: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
                results.append(box)
                threading.Thread(target=self._run, args=(function, tuple(task), box), daemon=True).start()
                return

        for _ in range(ahead):
            submit()
        at = 0
        while at < len(results):
            done, value = self._wait(results[at])
            results[at] = queue.SimpleQueue()
            at += 1
            submit()
            if not done:
                raise value
            self._state[DONE] += 1
            yield value

    def prepare(self, function: Callable[..., bool], task: Sequence[Any]) -> None:
        """Run a task in every process; those that return True are replaced by fresh ones."""
        spoiled = list(self.map(function, [task] * self.processes))
        for _ in spoiled if any(spoiled) else ():
            process = self._idle.get()
            process.kill()
            process.wait()
            self._idle.put(self._start())
        self._peaks.clear()

    @property
    def peaks(self) -> list[int]:
        """The most memory that each process has held, in bytes, greatest first."""
        return sorted(self._peaks.values(), reverse=True)[: self.processes]

    def reduce(
        self, function: Callable[..., Any], tasks: Iterable[Sequence[Any]], combine: Callable[[Any, Any], Any]
    ) -> Any:
        """Combine the results of all tasks."""
        results = self.map(function, tasks)
        total = next(results)
        for result in results:
            total = combine(total, result)
        return total

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        with self._lock:
            self._closed = True
            for process in self._all:
                process.kill()
        # Gone for good before anybody removes the files that they were writing.
        for process in self._all:
            process.wait()
        for process in self._all:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError, ValueError):
                    if pipe is not None:
                        pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, box: queue.SimpleQueue[tuple[bool, Any]]) -> tuple[bool, Any]:
        while True:
            if self._state[STOP]:
                raise KeyboardInterrupt
            try:
                return box.get(timeout=0.2)
            except queue.Empty:
                continue

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            # A session of its own: Ctrl-C reaches the caller, which ends the workers.
            process = subprocess.Popen(
                [sys.executable, "-m", "shoal.engines.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **QUIET},
                start_new_session=True,
            )
            self._all.append(process)
            return process

    def _run(
        self, function: Callable[..., Any], task: tuple[Any, ...], box: queue.SimpleQueue[tuple[bool, Any]]
    ) -> None:
        for attempt in range(1, TRIES + 1):
            process = self._idle.get()
            try:
                done, value, peak = _ask(process, function, task)
            except (OSError, EOFError, pickle.UnpicklingError, ValueError):
                if self._closed:
                    return
                process.kill()
                process.wait()
                self._idle.put(self._start())
                if attempt == TRIES:
                    reason = f"Worker processes died {TRIES} times on one task (last exit code {process.returncode})."
                    box.put((False, WorkersError(f"{reason} Give them more memory, or run fewer: processes=1.")))
                continue
            self._peaks[process.pid] = peak
            self._idle.put(process)
            box.put((done, value))
            return


def _ask(
    process: subprocess.Popen[bytes], function: Callable[..., Any], task: tuple[Any, ...]
) -> tuple[bool, Any, int]:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    pickle.dump((function, task), process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()
    answer: tuple[bool, Any, int] = pickle.load(process.stdout)  # noqa: S301  (from a process that we started)
    return answer
