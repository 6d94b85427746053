"""A worker process: reads tasks from its input, answers each on its output, and ends when the input does.

A process of its own rather than a fork of the caller: nothing of the caller's program is run again or copied, and it
may be killed at any time. A worker can be asked to fork itself, which takes no time once it has imported everything.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings

__all__ = ["fork", "serve"]

_output = 1  # where answers go


def serve() -> None:
    """Answer tasks until there are no more."""
    global _output  # noqa: PLW0603  (a fork redirects it)
    # What a library prints must not get between the answers.
    _output = os.dup(1)
    os.dup2(2, 1)
    answers = os.fdopen(_output, "wb")
    # Before anything is asked: whoever started this process is busy importing too.
    _begin()
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


def _begin() -> None:
    """Load what all tasks need, whatever the table."""
    import numpy as np
    import pyarrow.parquet  # noqa: F401

    import shoal.engines.local  # noqa: F401
    from shoal.blocks.quantising import bounds

    bounds(np.zeros((1, 1)))


def fork(template: int) -> int:
    """Become two processes: the new one serves the socket that came through another; return its number, in both."""
    import socket

    with socket.socket(fileno=os.dup(template)) as channel:
        _, (end,), _, _ = socket.recv_fds(channel, 1, 1)
    with warnings.catch_warnings():
        # Python warns of other threads. They belong to allocators and to what cleans up after polars; forks need none.
        warnings.simplefilter("ignore", DeprecationWarning)
        number = os.fork()
    if not number:
        os.dup2(end, 0)
        os.dup2(end, _output)
    os.close(end)
    return number or os.getpid()


if __name__ == "__main__":
    # Under its own name too, for tasks of this module.
    sys.modules["shoal.engines.worker"] = sys.modules["__main__"]
    serve()
