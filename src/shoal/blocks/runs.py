"""Runs: records in the order of one column are cut every L of them; the last k records of a root stay together.

Solanas et al. 2006, Introduction: sort by a blocking attribute and divide. Records of equal value are cut in the order
of the input. If fewer than k records would be left over, the last run begins earlier: every run has k to L records.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Ints

__all__ = ["beginning_of_runs", "run_of", "runs_of"]


@kernel
def run_of(rank: int, total: int, L: int, k: int) -> int:
    """Return the run that holds the record of a rank, of `total` records of a root."""
    return (total - 1) // L if rank >= total - k else rank // L


@kernel
def runs_of(rank: Ints, total: Ints, L: int, k: int) -> Ints:
    """Return the runs of several records."""
    runs = np.empty(len(rank), dtype=np.int64)
    for i in range(len(rank)):
        runs[i] = run_of(rank[i], total[i], L, k)
    return runs


def beginning_of_runs(total: int, L: int, k: int) -> Ints:
    """Return the rank of the first record of each run.

    Examples
    --------
    >>> beginning_of_runs(21, L=10, k=3).tolist()
    [0, 10, 18]
    """
    begins = np.arange(0, total, L)
    begins[-1] = min(begins[-1], max(0, total - k))
    return begins
