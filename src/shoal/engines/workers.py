"""A pool of worker processes that outlives the death of any of them.

Each process is driven by a thread that sends it one task after the other. A process that dies is replaced and its task
is run again; tasks write whole files under fixed names, so that running one twice does no harm.

On Linux, workers are forks of a template: one process that is started as a program, imports everything and loads the
kernels, and does nothing else, so that there is one thread to fork. Elsewhere each worker is a program of its own.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from shoal.core.errors import ShoalError
from shoal.core.memory import peak_bytes
from shoal.core.progress import DONE, STOP
from shoal.engines.worker import fork

if TYPE_CHECKING:
    from shoal.core.types import State

__all__ = ["Template", "Workers", "WorkersError", "start_template"]

TRIES = 3
FORKS = sys.platform == "linux"
DEAD = (OSError, EOFError, pickle.UnpicklingError, ValueError)  # what talking to a dead process raises
# One thread a process, in every library. Arrays of a part are kept for the next one when they are freed: the system
# takes longer to hand out new pages than a task to fill them. Larger ones go back at once.
ENVIRONMENT = {
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


class Spawned:
    """A worker process that was started as a program."""

    def __init__(self, *, inherit: Sequence[int] = ()) -> None:
        # A session of its own: Ctrl-C reaches the caller, which ends the workers.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shoal.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
            pass_fds=inherit,
        )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, function: Callable[..., Any], task: Sequence[Any]) -> tuple[bool, Any]:
        """Run a task; return whether it was done, and its result or the error."""
        if self._process.stdin is None or self._process.stdout is None:
            raise EOFError
        return _ask(self._process.stdin, self._process.stdout, function, task)

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()

    def wait(self) -> int:
        """Return the exit code once the process is gone."""
        return self._process.wait()

    def close(self) -> None:
        """Close what connects the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()


class Template:
    """A process that has imported everything and loaded the kernels once; workers are forks of it."""

    def __init__(self) -> None:
        self._socket, end = socket.socketpair()
        self._lock = threading.Lock()
        self._number = end.fileno()
        with end:
            self.process = Spawned(inherit=[end.fileno()])

    def ask(self, function: Callable[..., Any], task: Sequence[Any]) -> tuple[bool, Any]:
        """Run a task; return whether it was done, and its result or the error."""
        with self._lock:
            return self.process.ask(function, task)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns in the process that is forked."""
        done, value = self.ask(function, arguments)
        if not done:
            raise value
        return value

    def fork(self) -> Forked:
        """Return a new worker."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._socket, [b" "], [theirs.fileno()])
                self.run(fork, self._number)
            return Forked(self, ours)
        except DEAD:
            ours.close()
            raise

    def close(self) -> None:
        """End it; its workers have ended before."""
        self.process.kill()
        self.process.wait()
        self.process.close()
        self._socket.close()


@contextmanager
def start_template(data: object, engine: str | None, memory: object) -> Iterator[Template | None]:
    """Start a template if a table will be masked by processes for certain; it imports what they need meanwhile."""
    asked = engine == "local" or (engine is None and memory is not None)
    if not (FORKS and asked and isinstance(data, (str, os.PathLike))):
        yield None
        return
    template = Template()
    try:
        yield template
    finally:
        template.close()


class Forked:
    """A worker process that is a fork of another."""

    def __init__(self, template: Template, channel: socket.socket) -> None:
        self._template, self._socket = template, channel
        self._tasks, self._answers = channel.makefile("wb"), channel.makefile("rb")
        self._code: int | None = None  # once it has ended
        # A fork returns in both processes.
        self.pid: int = pickle.load(self._answers)[1]  # noqa: S301  (from a process that we started)

    def ask(self, function: Callable[..., Any], task: Sequence[Any]) -> tuple[bool, Any]:
        """Run a task; return whether it was done, and its result or the error."""
        return _ask(self._tasks, self._answers, function, task)

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        # Its number may be another's once the template has waited for it, but not before.
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return the exit code once the process is gone."""
        if self._code is None:
            try:
                self._code = os.waitstatus_to_exitcode(self._template.run(os.waitpid, self.pid, 0)[1])
            except DEAD:
                self._code = -signal.SIGKILL
        return self._code

    def close(self) -> None:
        """Close what connects the process."""
        for file in (self._tasks, self._answers, self._socket):
            with suppress(OSError, ValueError):
                file.close()


class Workers:
    """Processes that run tasks: functions at module level with arguments that can be pickled."""

    def __init__(self, processes: int, state: State, template: Template | None = None) -> None:
        self._state = state
        self._all: list[Spawned | Forked] = []
        self._lock = threading.Lock()
        self._closed = False
        self._first: tuple[Callable[..., bool], Sequence[Any]] | None = None  # what a template does before it is forked
        self._template = template or (Template() if FORKS else None)
        self.processes = processes
        # None is a process that is still to be started.
        self._idle: queue.SimpleQueue[Spawned | Forked | None] = queue.SimpleQueue()
        for _ in range(processes):
            self._idle.put(None if FORKS else self._start())

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
        """Run a task once for all processes to come; what returned True is replaced by a fresh process."""
        if self._template is None:
            if any(list(self.map(function, [task] * self.processes))):
                self._renew()
            return
        self._first = function, task
        # Apart, because it may take long and Ctrl-C must be answered.
        box: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        threading.Thread(target=_answer, args=(box, self._ready), daemon=True).start()
        done, value = self._wait(box)
        if not done:
            raise value
        self._renew()

    def peaks(self) -> list[int]:
        """Return the most memory that each process has held, in bytes."""
        idle = [self._idle.get() for _ in range(self.processes)]
        found = []
        for process in (*idle, self._template):
            with suppress(*DEAD):
                found += [process.ask(peak_bytes, ())[1]] if process is not None else []
        for process in idle:
            self._idle.put(process)
        return found

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
            process.close()
        if self._template is not None:
            self._template.close()

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

    def _ready(self) -> None:
        """Let the template do what comes first. One that had to compile holds memory for good: another takes over."""
        if self._template is None or self._first is None:
            return
        function, task = self._first
        renewed = False
        for _ in range(TRIES):
            try:
                if not self._template.run(function, *task) or renewed:
                    return
                renewed = True
            except DEAD:  # killed
                pass
            self._template.close()
            if self._closed:
                raise KeyboardInterrupt
            self._template = Template()
        raise WorkersError(f"The process that workers are forks of died {TRIES} times. Give it more memory.")

    def _renew(self) -> None:
        """Replace all processes; they are idle."""
        for _ in range(self.processes):
            process = self._idle.get()
            if process is not None:
                process.kill()
                process.wait()
            self._idle.put(None)

    def _start(self) -> Spawned | Forked:
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            process: Spawned | Forked
            if self._template is None:
                process = Spawned()
            else:
                try:
                    process = self._template.fork()
                except DEAD:  # killed too
                    self._template.close()
                    self._template = Template()
                    self._ready()
                    process = self._template.fork()
            self._all.append(process)
            return process

    def _run(
        self, function: Callable[..., Any], task: tuple[Any, ...], box: queue.SimpleQueue[tuple[bool, Any]]
    ) -> None:
        code = 0
        for _ in range(TRIES):
            process = self._idle.get()
            try:
                process = process or self._start()
                answer = process.ask(function, task)
            except DEAD:
                if self._closed:
                    return
                self._idle.put(None)
                if process is not None:
                    process.kill()
                    code = process.wait()
                continue
            except KeyboardInterrupt:
                return
            except Exception as error:  # noqa: BLE001  (raised again in the caller's thread)
                # Half a message may be on its way: the process is of no use any more.
                if process is not None:
                    process.kill()
                    process.wait()
                self._idle.put(None)
                box.put((False, error))
                return
            self._idle.put(process)
            box.put(answer)
            return
        reason = f"Worker processes died {TRIES} times on one task (last exit code {code})."
        box.put((False, WorkersError(f"{reason} Give them more memory, or run fewer: processes=1.")))


def _ask(tasks: IO[bytes], answers: IO[bytes], function: Callable[..., Any], task: Sequence[Any]) -> tuple[bool, Any]:
    pickle.dump((function, tuple(task)), tasks, protocol=pickle.HIGHEST_PROTOCOL)
    tasks.flush()
    answer: tuple[bool, Any] = pickle.load(answers)  # noqa: S301  (from a process that we started)
    return answer


def _answer(box: queue.SimpleQueue[tuple[bool, Any]], function: Callable[[], Any]) -> None:
    try:
        box.put((True, function()))
    except Exception as error:  # noqa: BLE001  (raised again in the caller's thread)
        box.put((False, error))
