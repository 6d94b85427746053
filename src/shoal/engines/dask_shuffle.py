"""Tables moved by Dask's own shuffle, each row to the partition that it names.

On a cluster that is P2P: workers send rows to each other and buffer them on disk, with a task for each partition in and
out and one between them. Dask sends a row to the partition that a hash of its key names; each target therefore gets a
key that Dask's hash sends exactly there.

Cost: tasks in proportion to partitions and targets; each record is hashed, written and read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from shoal.core.types import Ints
from shoal.engines.cluster_shuffle import TARGET

__all__ = ["client_of", "combined", "keys_of", "shuffled"]

FAN_IN = 16  # results that one task combines


def client_of(dask: Any) -> Any:
    """Return the client of the cluster that computes now, None if this process does."""
    owner = getattr(dask.base.get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


@lru_cache(maxsize=8)
def keys_of(targets: int) -> Ints:
    """Return a number for each target that Dask's hash sends to the partition of that number.

    Examples
    --------
    >>> keys_of(3).tolist()
    [3, 0, 1]
    """
    import pandas as pd

    hashed = import_module("dask.dataframe.shuffle").partitioning_index
    tried = 16 * targets
    while True:
        # Dask makes floating-point numbers of all numbers before it hashes them.
        places = hashed(pd.DataFrame({TARGET: np.arange(tried, dtype=np.float64)}), targets)
        found, keys = np.unique(np.asarray(places), return_index=True)
        if len(found) == targets:
            return keys
        tried *= 2


def shuffled(dask: Any, pieces: Sequence[Any], targets: int, types: Mapping[str, str]) -> list[Any]:
    """Return the tables of all targets; `pieces` are delayed tables whose column `TARGET` holds the keys."""
    import pandas as pd

    library = import_module("dask.dataframe")
    empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in types.items()})
    frame = library.from_delayed(list(pieces), meta=empty, verify_meta=False)
    # P2P needs workers; in this process tasks do, which Dask merges in stages.
    method = "tasks" if client_of(dask) is None else "p2p"
    moved = frame.shuffle(TARGET, npartitions=targets, ignore_index=True, shuffle_method=method)
    return list(moved.to_delayed())


def combined(dask: Any, pieces: Sequence[Any], combine: Any) -> Any:
    """Return one delayed result of many, combined in a tree."""
    while len(pieces) > 1:
        pieces = [dask.delayed(_combine)(combine, pieces[i : i + FAN_IN]) for i in range(0, len(pieces), FAN_IN)]
    return pieces[0]


def _combine(combine: Any, results: Sequence[Any]) -> Any:
    total = results[0]
    for result in results[1:]:
        total = combine(total, result)
    return total
