"""A worker process that reads tasks from its input, answers each on its output, and ends with the input.

It is a separate process instead of a fork of the caller: no part of the caller's program is run again or copied, and it
can be killed at any time. A template is a worker that can be forked, which is fast once all modules are imported.
"""

from __future__ import annotations

import os
import pickle
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["fork", "serve"]

_output = 1  # file descriptor for answers


def serve() -> None:
    """Answer tasks until the input ends."""
    answers = os.fdopen(_output, "wb", closefd=False)
    tasks = sys.stdin.buffer
    while True:
        try:
            function, arguments = pickle.load(tasks)  # noqa: S301  (from the process that started this one)
        except (EOFError, OSError, pickle.UnpicklingError):  # the caller is gone
            return
        try:
            answer = True, function(*arguments)
        except Exception as error:  # noqa: BLE001  (raised again in the caller's process)
            answer = False, error
        try:
            pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()
        except OSError:  # the caller is gone
            os._exit(1)


def fork(template: int) -> int:
    """Start a process that serves the socket received through another; return its number.

    Return 0 without a fork if there are other threads: a fork has their locks, but no thread to release them.
    """
    import socket

    with socket.socket(fileno=os.dup(template)) as channel:
        _, (end,), _, _ = socket.recv_fds(channel, 1, 1)
    with socket.socket(fileno=end):
        if len(list(Path("/proc/self/task").iterdir())) > 1:
            return 0
        number = os.fork()
        if number:
            return number
        os.dup2(end, 0)
        os.dup2(end, _output)
    DeferredModule.drop("polars")
    serve()
    os._exit(0)


class DeferredModule(ModuleType):
    """A placeholder in `sys.modules` that imports the module on first use.

    Polars starts threads on import, and a process with threads cannot be forked safely. The template defers it: a fork
    imports it on demand, which numbers of Parquet files do not require. That saves 15 MB per process. The standard
    `importlib.util.LazyLoader` is unsuitable: it loads the module at the first access to an attribute, as narwhals
    does.
    """

    def __getattr__(self, name: str) -> Any:
        self.drop(self.__name__)
        module = import_module(self.__name__)
        vars(self).update(vars(module))  # for code that has imported the placeholder
        return getattr(module, name)

    @staticmethod
    def drop(name: str) -> None:
        """Hide an unused placeholder from libraries that inspect imported modules, as narwhals does."""
        if isinstance(sys.modules.get(name), DeferredModule):
            del sys.modules[name]


def _begin() -> None:
    """Load what all tasks need, whatever the table."""
    import narwhals._arrow.dataframe  # noqa: F401
    import numpy as np
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    import shoal.engines.local
    import shoal.kinds.number  # noqa: F401
    from shoal.core.measures import bounds

    bounds(np.zeros((1, 1)))


if __name__ == "__main__":
    # Also under its own name, for tasks of this module.
    sys.modules["shoal.engines.worker"] = sys.modules["__main__"]
    # Output of libraries must not mix with the answers.
    _output = os.dup(1)
    os.dup2(2, 1)
    if sys.argv[1:] == ["template"]:
        sys.modules["polars"] = DeferredModule("polars")
    # Load before the first task, while the parent process is importing too.
    _begin()
    serve()
