"""Random numbers for kernels: splitmix64 (Steele, Lea and Flood 2014), with one word of state and no locks.

numba's generator is global to a thread. Here, each task has its own state, so results depend only on the seed and not
on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel

__all__ = ["Word", "below", "seeded", "uniform"]

Word = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


def seeded(*parts: int) -> Word:
    """Return the initial state of the random stream identified by a seed and further numbers.

    Examples
    --------
    >>> bool(seeded(1, 2) == seeded(1, 3))
    False
    """
    return np.random.SeedSequence(parts).generate_state(1, np.uint64).astype(np.uint64)


@kernel
def word(state: Word) -> np.uint64:
    state[0] += _GOLDEN
    z = state[0]
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    mixed: np.uint64 = z ^ (z >> _S31)
    return mixed


@kernel
def uniform(state: Word) -> float:
    """Return a random number in [0, 1)."""
    return np.float64(word(state) >> _S11) * (1.0 / 9007199254740992.0)


@kernel
def below(state: Word, n: int) -> int:
    """Return a random integer from 0 … n−1, with a bias below 2^-53·n due to rounding."""
    return int(uniform(state) * n)
