"""A worker process, which reads tasks from its input, writes results to its output, and ends when the input ends.

A worker is a separate program instead of a fork of the caller, so no part of the caller's program is run again or
copied. It can be killed at any time. A template is a worker that can be forked, which is fast once all modules are
imported.
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
    """Fork a process that serves the socket received through another socket; return the process number.

    Return 0 without a fork if there are other threads, because a fork copies their locks but not the threads.
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

    Polars starts threads on import, and a process with threads cannot be forked safely. The template therefore defers
    the import, and a fork imports polars on demand. Tasks on numbers of Parquet files do not need polars, which saves
    15 MB per process. The standard `importlib.util.LazyLoader` is unsuitable, because it loads the module at the first
    access to an attribute, and narwhals accesses attributes.
    """

    def __getattr__(self, name: str) -> Any:
        self.drop(self.__name__)
        module = import_module(self.__name__)
        vars(self).update(vars(module))  # for code that has imported the placeholder
        return getattr(module, name)

    @staticmethod
    def drop(name: str) -> None:
        """Hide an unused placeholder from libraries that inspect imported modules, such as narwhals."""
        if isinstance(sys.modules.get(name), DeferredModule):
            del sys.modules[name]


def _begin() -> None:
    """Load the modules and kernels that all tasks need."""
    import narwhals._arrow.dataframe  # noqa: F401
    import numpy as np
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    import shoal.engines.local
    import shoal.kinds.number  # noqa: F401
    from shoal.core.measures import bounds

    bounds(np.zeros((1, 1)))


if __name__ == "__main__":
    # Register the module under its own name too, for tasks defined in it.
    sys.modules["shoal.engines.worker"] = sys.modules["__main__"]
    # Output of libraries must not mix with the answers.
    _output = os.dup(1)
    os.dup2(2, 1)
    if sys.argv[1:] == ["template"]:
        sys.modules["polars"] = DeferredModule("polars")
    # Load modules before the first task, while the parent process is still importing.
    _begin()
    serve()
