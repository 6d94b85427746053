"""Whether a table is divided into blocks, and how. The kernels of blocks are loaded once there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints

__all__ = ["AUTOMATIC", "BLOCK", "SPLITS", "Blocking", "Extent", "Split", "choose_blocking"]

Split = Literal["all", "one", "univariate"]
SPLITS: tuple[Split, ...] = ("all", "one", "univariate")
BLOCK = 10_000  # records of a block, if blocking is chosen automatically
AUTOMATIC = 100_000  # a stratum with more records than this is masked in blocks, unless the user decides
MOST_SPLIT_TOGETHER = 5  # with more columns, 2^d children are too small: one column is split at a time


@dataclass(frozen=True)
class Blocking:
    """How a table is divided: into blocks of k to L records, splitting all columns at once or one at a time."""

    L: int
    k: int
    split: Split


def choose_blocking(
    block: object, split: str | None, k: int, d: int, records: int, *, method: str, useful: bool, able: bool
) -> Blocking | None:
    """Read the user's choice, or apply the rule: blocks of 10,000 records if a stratum has more than 100,000.

    Parameters
    ----------
    block
        A number of records; None leaves the choice to the rule, False and 0 mean never.
    split
        How nodes are split; None chooses by the number of columns.
    k, d, records
        The least group size, the masked columns and the records of the largest stratum.
    method, useful, able
        The method's name, whether the rule applies to it, and whether it can run in blocks at all.

    Examples
    --------
    >>> choose_blocking(None, None, 3, 2, 200_000, method="mdav", useful=True, able=True)
    Blocking(L=10000, k=3, split='all')
    """
    if split is not None and split not in SPLITS:
        raise InputError(f"Parameter 'split' must be one of {', '.join(map(repr, SPLITS))}, got {split!r}.")
    if block is None:
        if not useful or records <= AUTOMATIC:
            return None
        L = max(BLOCK, 2 * k)
    elif isinstance(block, (int, np.integer)) and not block:
        return None
    elif isinstance(block, bool) or not isinstance(block, (int, np.integer)):
        raise InputError(f"Parameter 'block' must be a number of records, or 0 for none, got {block!r}.")
    else:
        L = int(block)
    if L < 2 * k:  # noqa: SIM300  (L is the block size, not a constant)
        raise InputError(
            f"Parameter 'block' must be at least 2k = {2 * k} records, got {L}: a smaller block leaves no choice of "
            "groups. Take a larger block."
        )
    if not able:
        raise InputError(f"Parameter 'block' does not go with method {method!r}: it needs whole columns. Leave it out.")
    chosen: Split = split or ("all" if d <= MOST_SPLIT_TOGETHER else "one")
    from shoal.blocks.tree import CODE_BITS

    if chosen == "all" and d > CODE_BITS:
        raise InputError(f"Parameter 'split' may be 'all' for up to {CODE_BITS} columns, got {d}. Take split='one'.")
    return Blocking(L, k, chosen)


class Extent(NamedTuple):
    """What is known about the records before they are counted."""

    limits: Floats  # (2, d): the least and the greatest value of each column
    sizes: Ints  # the number of records of each root, a set of records that blocks must not cross; at least k
