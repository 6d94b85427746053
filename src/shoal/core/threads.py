"""Work that is spread over threads: kernels release the interpreter, so that they run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["spread"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def spread(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Yield what a function returns for each item, in their order, whatever the number of threads.

    Examples
    --------
    >>> list(spread(abs, [-1, 2, -3], threads=2))
    [1, 2, 3]
    """
    if threads == 1:  # handing over a small item takes as long as the work itself
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as executor:
        yield from executor.map(work, items)
