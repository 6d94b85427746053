"""A worker process: reads tasks from its input, answers each on its output, and ends when the input does.

A process of its own rather than a fork: nothing of the caller's program is run again or copied, and it may be killed
at any time.
"""

from __future__ import annotations

import os
import pickle
import sys

from shoal.engines.memory import peak_bytes

__all__ = ["serve"]


def serve() -> None:
    """Answer tasks until there are no more."""
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks = sys.stdin.buffer
    while True:
        try:
            function, arguments = pickle.load(tasks)  # noqa: S301  (from the process that started this one)
        except EOFError:
            return
        try:
            answer = True, function(*arguments), peak_bytes()
        except Exception as error:  # noqa: BLE001  (raised again in the caller's process)
            answer = False, error, peak_bytes()
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    serve()
