"""A worker process: reads tasks from its input, answers each on its output, and ends when the input does.

A process of its own rather than a fork of the caller: nothing of the caller's program is run again or copied, and it
may be killed at any time. A template is one that can be forked, which takes no time once it has imported everything.
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

_output = 1  # where answers go


def serve() -> None:
    """Answer tasks until there are no more."""
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
    """Start a process that serves the socket that came through another; return its number.

    None is started and 0 returned where there are other threads: a fork has their locks, but nobody to release them.
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
    drop_deferred("polars")
    serve()
    os._exit(0)


def defer_import(name: str) -> None:
    """Let a module be imported when it is first used, by whoever imports it from now on.

    Polars starts threads when it is imported, and a process with threads cannot be forked safely. The process that
    workers are forks of defers it: a fork imports it once it needs it, which it does not for numbers of Parquet files.
    That is 15 MB of each. The standard `importlib.util.LazyLoader` does not serve: it loads the module as soon as
    anybody looks at an attribute, as narwhals does.
    """
    sys.modules[name] = DeferredModule(name)


def drop_deferred(name: str) -> None:
    """Hide a deferred module that has not been used from libraries that look for imported ones, as narwhals does."""
    if isinstance(sys.modules.get(name), DeferredModule):
        del sys.modules[name]


class DeferredModule(ModuleType):
    """A stand-in for a module, which imports it when it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)

    def load(self) -> ModuleType:
        """Import the module; whoever has imported the stand-in has all of it then."""
        drop_deferred(self.__name__)
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        return module


def _begin() -> None:
    """Load what all tasks need, whatever the table."""
    import narwhals._arrow.dataframe  # noqa: F401
    import numpy as np
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    import shoal.engines.local
    import shoal.kinds.number  # noqa: F401
    from shoal.blocks.quantisation import bounds

    bounds(np.zeros((1, 1)))


if __name__ == "__main__":
    # Under its own name too, for tasks of this module.
    sys.modules["shoal.engines.worker"] = sys.modules["__main__"]
    # What a library prints must not get between the answers.
    _output = os.dup(1)
    os.dup2(2, 1)
    if sys.argv[1:] == ["template"]:
        defer_import("polars")
    # Before anything is asked: whoever started this process is busy importing too.
    _begin()
    serve()
