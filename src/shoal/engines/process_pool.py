"""A pool of worker processes that survives the death of any of them.

A thread drives each process and sends it one task after the other. A process that dies is replaced, and its task is run
again. Tasks write whole files under fixed names, so running a task twice is harmless.

On Linux, workers are forks of a template process. The template is started as a program, imports modules that start no
threads, and loads the kernels. On other systems, each worker is started as a program.
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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, cast

from shoal.core.errors import ShoalError
from shoal.core.memory_limits import peak_bytes
from shoal.core.progress import DONE, STOP
from shoal.engines.worker import fork

if TYPE_CHECKING:
    from shoal.core.types import State

__all__ = ["Template", "Workers", "WorkersError", "start_template", "working_aside"]

TRIES = 3
FORKS = sys.platform == "linux" and Path("/proc/self/task").is_dir()  # a fork requires a count of the threads
DEAD = (OSError, EOFError, pickle.UnpicklingError, ValueError)  # errors when communicating with a dead process
# One thread per process in every library. The memory of freed arrays is kept for the next part, because the system
# takes longer to provide new pages than a task takes to fill them. The memory of larger arrays is returned at once.
ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}


class WorkersError(ShoalError):
    """A task could not be finished because its processes kept dying."""


class Process:
    """A process that runs tasks, one after the other."""

    pid: int

    def __init__(self, tasks: IO[bytes], answers: IO[bytes]) -> None:
        self._tasks, self._answers = tasks, answers

    def ask(self, function: Callable[..., Any], task: Sequence[Any]) -> tuple[bool, Any]:
        """Run a task; return True and its result, or False and the error."""
        self.tell(function, task)
        answer: tuple[bool, Any] = pickle.load(self._answers)  # noqa: S301  (from a process that we started)
        return answer

    def tell(self, function: Callable[..., Any], task: Sequence[Any]) -> None:
        """Start a task without waiting for the answer."""
        pickle.dump((function, tuple(task)), self._tasks, protocol=pickle.HIGHEST_PROTOCOL)
        self._tasks.flush()

    def end(self) -> int:
        """End the process immediately; return the exit code once it is gone."""
        self.kill()
        return self.wait()

    def kill(self) -> None:
        """Ask the system to end the process."""
        raise NotImplementedError

    def wait(self) -> int:
        """Return the exit code once the process is gone."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections of the process."""
        for file in (self._tasks, self._answers):
            with suppress(OSError, ValueError):
                file.close()


class Spawned(Process):
    """A worker process started as a program."""

    def __init__(self, *arguments: str, inherit: Sequence[int] = ()) -> None:
        # Ctrl-C must reach only the caller, which ends the workers.
        self._process = subprocess.Popen(  # noqa: S603  (a module of shoal)
            [sys.executable, "-m", "shoal.engines.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # Windows has no sessions
            pass_fds=inherit,
        )
        self.pid = self._process.pid
        super().__init__(cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout))

    def kill(self) -> None:
        """Ask the system to end the process."""
        self._process.kill()

    def wait(self) -> int:
        """Return the exit code once the process is gone."""
        return self._process.wait()


class Template(Spawned):
    """A process with imported modules and loaded kernels, from which workers are forked."""

    def __init__(self) -> None:
        self._socket, end = socket.socketpair()
        self._lock = threading.Lock()
        self._number = end.fileno()
        with end:
            super().__init__("template", inherit=[end.fileno()])

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in the template and return its result."""
        with self._lock:
            done, value = self.ask(function, arguments)
        if not done:
            raise value
        return value

    def fork(self) -> Process:
        """Return a new worker: a fork, or a separate program if a task has left threads in the template."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(self._socket, [b" "], [theirs.fileno()])
            number = self.run(fork, self._number)
            return Forked(self, ours, number) if number else Spawned()

    def close(self) -> None:
        """End the template. Its workers must have ended before."""
        self.end()
        super().close()
        self._socket.close()


@contextmanager
def start_template() -> Iterator[Template | None]:
    """Start a template if forks are supported. It imports modules in the background."""
    if not FORKS:
        yield None
        return
    template = Template()
    try:
        yield template
    finally:
        template.close()


@contextmanager
def working_aside(find: Callable[[], Callable[[], None]]) -> Iterator[None]:
    """Run a function in a background process for the duration of the block; continue without it if it cannot start.

    The process imports modules while `find` returns the function.
    """
    process = None
    try:
        with suppress(*DEAD):
            process = Spawned()
            process.tell(find(), ())
        yield
    finally:
        if process is not None:
            process.end()
            process.close()


class Forked(Process):
    """A worker process forked from the template."""

    def __init__(self, template: Template, channel: socket.socket, pid: int) -> None:
        super().__init__(channel.makefile("wb"), channel.makefile("rb"))
        self._template, self.pid = template, pid
        self._code: int | None = None  # None while the process runs

    def kill(self) -> None:
        """Ask the system to end the process."""
        # The system may reuse the process number only after the template has waited for the process.
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


class Workers:
    """Processes that run tasks. A task is a module-level function with arguments that can be pickled."""

    def __init__(self, processes: int, state: State, template: Template | None = None) -> None:
        self.processes = processes
        self._state = state
        self._all: list[Process] = []
        self._lock = threading.Lock()
        self._closed = False
        self._first: tuple[Callable[..., bool], Sequence[Any]] | None = None  # run in the template before any fork
        self._template = template or (Template() if FORKS else None)
        self._threads = ThreadPoolExecutor(processes)
        # One entry per thread; None is a process yet to be started.
        self._idle: queue.SimpleQueue[Process | None] = queue.SimpleQueue()
        for _ in range(processes):
            self._idle.put(None if FORKS else self._start())

    def map(self, function: Callable[..., Any], tasks: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """Yield ``function(*task)`` for all tasks, in order; a few tasks run ahead."""
        waiting = iter(tasks)
        running: deque[Future[Any]] = deque()

        def submit(count: int) -> None:
            running.extend(self._threads.submit(self._run, function, task) for task in islice(waiting, count))

        submit(2 * self.processes)
        while running:
            value = self._wait(running.popleft())
            submit(1)
            self._state[DONE] += 1
            yield value

    def prepare(self, function: Callable[..., bool], task: Sequence[Any]) -> None:
        """Run a task once for all future processes; replace processes in which the task returned True."""
        if self._template is None:
            if any(list(self.map(function, [task] * self.processes))):
                self._renew()
            return
        self._first = function, task
        # Run it in a thread, because it may take long and Ctrl-C must work.
        self._wait(self._threads.submit(self._ready))
        self._renew()

    def peaks(self) -> list[int]:
        """Return the peak memory of each process, in bytes."""
        idle = [self._idle.get() for _ in range(self.processes)]
        peaks = []
        for process in (*idle, self._template):
            with suppress(*DEAD):
                peaks += [process.ask(peak_bytes, ())[1]] if process is not None else []
        for process in idle:
            self._idle.put(process)
        return peaks

    def close(self) -> None:
        """End all processes immediately."""
        with self._lock:
            self._closed = True
            for process in self._all:
                process.kill()
        # Wait until the processes are gone, because the caller then removes their files.
        for process in self._all:
            process.wait()
            process.close()
        if self._template is not None:
            self._template.kill()
        self._threads.shutdown(cancel_futures=True)  # no process answers any more
        if self._template is not None:
            self._template.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, future: Future[Any]) -> Any:
        while not self._state[STOP]:
            if wait([future], timeout=0.2).done:
                return future.result()
        raise KeyboardInterrupt

    def _ready(self) -> None:
        """Run the preparation in the template; replace a template that compiled kernels, as it keeps the memory."""
        if self._template is None or self._first is None:
            return
        function, task = self._first
        renewed = False
        for _ in range(TRIES):
            try:
                if not self._template.run(function, *task) or renewed:
                    return
                renewed = True
            except DEAD:  # the template was killed
                pass
            self._template.close()
            if self._closed:
                raise KeyboardInterrupt
            self._template = Template()
        raise WorkersError(f"The template process of the workers died {TRIES} times. Allow more memory.")

    def _renew(self) -> None:
        """Replace all processes, which must be idle."""
        for _ in range(self.processes):
            process = self._idle.get()
            if process is not None:
                process.end()
            self._idle.put(None)

    def _start(self) -> Process:
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            if self._template is None:
                process: Process = Spawned()
            else:
                try:
                    process = self._template.fork()
                except DEAD:  # the template was killed too
                    self._template.close()
                    self._template = Template()
                    self._ready()
                    process = self._template.fork()
            self._all.append(process)
            return process

    def _run(self, function: Callable[..., Any], task: Sequence[Any]) -> Any:
        """Run a task in an idle process; if the process dies, run the task again in another."""
        code = 0
        for _ in range(TRIES):
            process, fit = self._idle.get(), None
            try:
                process = process or self._start()
                done, value = process.ask(function, task)
                fit = process
            except DEAD:
                if self._closed:
                    raise KeyboardInterrupt from None
            finally:
                # A process that did not answer cannot be reused, because half a message may be in transit.
                if fit is None and process is not None:
                    code = process.end()
                self._idle.put(fit)
            if fit is not None:
                if not done:
                    raise value
                return value
        reason = f"Worker processes died {TRIES} times on the same task (last exit code {code})."
        raise WorkersError(f"{reason} Allow more memory, or use fewer processes: processes=1.")
