"""The rule for dividing a table into blocks. Kernels are loaded only if blocks are used."""

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
ALONG_ONE: tuple[Split, ...] = ("univariate", "sorted")  # splits along a single column
BLOCK = 10_000  # default number of records in a block
AUTOMATIC = 100_000  # strata with more records than this are masked in blocks by default
MOST_SPLIT_TOGETHER = 5  # with more columns, 2^d children are too small, so columns are split one at a time


@dataclass(frozen=True)
class Blocking:
    """A rule that divides a table into blocks of k to about L records by splits along its columns."""

    L: int
    k: int
    split: Split
    by: tuple[int, ...] = ()  # the columns to split along; empty for all columns
    measured: bool = False  # true if a sample of the records may change the split

    def turns(self, d: int) -> list[Ints | None]:
        """Return the columns of each stage: the selected columns first, then the others to divide equal records.

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
        # Intervals of one column may be large. Include all columns, so that only fully equal records count as equal.
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
    """Return the rule for the user's choice of blocks (default: 10,000 records per block), or None for no blocks.

    If `block` is None, the default size applies; False and 0 mean no blocks. If `split` is None, the number of columns
    decides, and a sample may overrule the decision. `by` holds the indices of the columns to split along; empty means
    all columns. `d` is the number of columns to mask; `able` is true if the method can run in blocks.

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
            f"{parameter('block')} must be at least 2k = {2 * k} records, got {L}: smaller blocks leave no choice of "
            "groups. Use a larger block."
        )
    if not able:
        raise InputError(
            f"{parameter('block')} cannot be combined with method {method!r}: it needs whole columns. Omit it."
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
    """The column bounds and the root sizes of a table, known before blocks are formed."""

    limits: Floats  # (2, d): the minimum and the maximum of each column
    sizes: Ints  # the number of records (at least k) in each root, a set of records that no block crosses
