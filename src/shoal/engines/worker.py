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
    DeferredModule.drop("polars")
    serve()
    os._exit(0)


class DeferredModule(ModuleType):
    """A stand-in in `sys.modules`, which imports the module when it is first used.

    Polars starts threads when it is imported, and a process with threads cannot be forked safely. The template defers
    it: a fork imports it once it needs it, which it does not for numbers of Parquet files. That is 15 MB of each. The
    standard `importlib.util.LazyLoader` does not serve: it loads the module as soon as anybody looks at an attribute,
    as narwhals does.
    """

    def __getattr__(self, name: str) -> Any:
        self.drop(self.__name__)
        module = import_module(self.__name__)
        vars(self).update(vars(module))  # for whoever has imported the stand-in
        return getattr(module, name)

    @staticmethod
    def drop(name: str) -> None:
        """Hide a stand-in that was not used from libraries that look for imported modules, as narwhals does."""
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
    # Under its own name too, for tasks of this module.
    sys.modules["shoal.engines.worker"] = sys.modules["__main__"]
    # What a library prints must not get between the answers.
    _output = os.dup(1)
    os.dup2(2, 1)
    if sys.argv[1:] == ["template"]:
        sys.modules["polars"] = DeferredModule("polars")
    # Before anything is asked: whoever started this process is busy importing too.
    _begin()
    serve()
