"""The rule that divides a table into blocks. The kernels of blocks are loaded once there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints

__all__ = ["AUTOMATIC", "BLOCK", "SPLITS", "Blocking", "Extent", "Split", "choose_blocking"]

Split = Literal["all", "one", "univariate", "sorted"]
SPLITS: tuple[Split, ...] = ("all", "one", "univariate", "sorted")
ALONG_ONE: tuple[Split, ...] = ("univariate", "sorted")  # along a single column
BLOCK = 10_000  # records of a block, if blocking is chosen automatically
AUTOMATIC = 100_000  # a stratum with more records than this is masked in blocks, unless the user decides
MOST_SPLIT_TOGETHER = 5  # with more columns, 2^d children are too small: one column is split at a time


@dataclass(frozen=True)
class Blocking:
    """The division of a table into blocks of k to about L records, splitting all columns at once or one at a time."""

    L: int
    k: int
    split: Split
    by: tuple[int, ...] = ()  # the columns that blocks are cut along; all of them if empty
    measured: bool = False  # whether a sample of the records may say otherwise of the split

    def turns(self, d: int) -> list[Ints | None]:
        """Return the columns of each stage: those that were chosen, then the others for records that they leave alike.

        Examples
        --------
        >>> [columns.tolist() for columns in Blocking(10, 2, "all", by=(2,)).turns(3)]
        [[2], [0, 1]]
        """
        by = np.array(self.by or ((0,) if self.split in ALONG_ONE else ()), dtype=np.int64)
        rest = np.setdiff1d(np.arange(d), by)
        if self.split == "sorted":
            return [by]
        if not len(rest) or not len(by):
            return [by if len(by) else None]
        # Intervals of a column may be of any size: records are alike only if they are in all columns.
        return [np.append(by, rest)] if self.split == "univariate" else [by, rest]


def choose_blocking(
    block: object,
    split: str | None,
    by: Sequence[int],
    k: int,
    d: int,
    *,
    method: str,
    able: bool,
) -> Blocking | None:
    """Return the blocks of the user's choice, of 10,000 records by default.

    A `block` of None means the default, False and 0 mean none. A `split` of None chooses by the number of
    columns, which a sample may overrule. `by` are the places of the columns that blocks are cut along; none for all.
    `d` columns are masked by a method that must be `able` to run in blocks.

    Examples
    --------
    >>> choose_blocking(None, None, (), 3, 2, method="mdav", able=True)
    Blocking(L=10000, k=3, split='all', by=(), measured=True)
    """
    if split is not None and split not in SPLITS:
        raise InputError(f"{parameter('split')} must be one of {', '.join(map(repr, SPLITS))}, got {split!r}.")
    if block is None:
        L = max(BLOCK, 2 * k)
    elif isinstance(block, (int, np.integer)) and not block:
        return None
    elif isinstance(block, bool) or not isinstance(block, (int, np.integer)):
        raise InputError(f"{parameter('block')} must be a number of records, or 0 for none, got {block!r}.")
    else:
        L = min(int(block), 2**62)  # no table is larger
    if L < 2 * k:  # noqa: SIM300  (L is the block size, not a constant)
        raise InputError(
            f"{parameter('block')} must be at least 2k = {2 * k} records, got {L}: a smaller block leaves no choice of "
            "groups. Use a larger block."
        )
    if not able:
        raise InputError(
            f"{parameter('block')} cannot be combined with method {method!r}: it needs whole columns. Leave it out."
        )
    along = len(by) or d
    resolved_split: Split = split or ("all" if along <= MOST_SPLIT_TOGETHER else "one")
    from shoal.blocks.tree import CODE_BITS

    if resolved_split == "all" and along > CODE_BITS:
        raise InputError(
            f"{parameter('split')} may be 'all' for up to {CODE_BITS} columns, got {along}. Use "
            f"{setting('split', 'one')}."
        )
    return Blocking(L, k, resolved_split, tuple(by), measured=split is None)


class Extent(NamedTuple):
    """The extent of the records before they are counted."""

    limits: Floats  # (2, d): the least and the greatest value of each column
    sizes: Ints  # the number of records of each root, a set of records that blocks must not cross; at least k
