"""Special uniques (SUDA2): records that are unique by few of the columns that an intruder may know.

A. M. Manning, D. J. Haglin and J. A. Keane, A recursive search algorithm for statistical disclosure assessment (2008);
M. J. Elliot, A. M. Manning and R. W. Ford, A computational algorithm for handling the special uniques problem (2002). A
minimal sample unique (MSU) of a record is a minimal set of columns by which the record is unique: no proper subset
suffices. An MSU of m out of d columns scores (d − m)!, and the score of a record is the sum over its MSUs, as in
``suda2`` of sdcMicro.

All sets of columns are examined, each as a refinement of the set without its last column. Records that are already
unique are left out, as in SUDA2, because they are unique by every larger set and equal to no other record. Of several
records that are equal in all columns, only two are needed. The search takes O(n 2ᵈ) time in the worst case (12 s for
100,000 records and 12 columns). It needs 2ᵈ bits of memory for each record that is unique by all columns, and none if
there is no such record, as in a k-anonymous table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.assessment.statistics import Pair
from shoal.core.errors import InputError
from shoal.core.measures import group_sizes
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.masking.verification import identical_records
from shoal.tables.columns import Name

if TYPE_CHECKING:
    from shoal.assessment.measure_registry import TablePair

__all__ = ["MOST_COLUMNS", "MinimalUniques", "SpecialUniques", "measure", "minimal_uniques", "special_uniques"]

MOST_COLUMNS = 12  # the limit corresponds to 4,095 sets of columns
Bits = NDArray[np.uint8]


class MinimalUniques(NamedTuple):
    """The minimal sample uniques of a table.

    Parameters
    ----------
    counts
        ``(records, columns)``: the number of each record's MSUs with 1, 2, … columns.
    scores
        The score of each record.
    contributions
        The share of all scores to which each column contributes; 0 without uniques.
    """

    counts: Ints
    scores: Floats
    contributions: Floats


@dataclass(frozen=True)
class SpecialUniques:
    """Statistics of the records that are unique by some of the keys, before and after masking.

    Parameters
    ----------
    columns
        The keys.
    unique
        The share of records that are unique by some or all of the keys.
    few
        The share of records that are unique by one or two keys.
    mean, highest
        Mean and highest score of a record.
    contributions
        For each key, the share of all scores to which it contributes.
    disclosure
        The highest probability that a match with a unique record is right (DIS-SUDA); None without weights.
    """

    columns: tuple[Name, ...]
    unique: Pair
    few: Pair
    mean: Pair
    highest: Pair
    contributions: tuple[Pair, ...]
    disclosure: Pair | None = None

    name: ClassVar[str] = "special uniques"
    means: ClassVar[str] = (
        "This share of records differs from all others in some of the keys; the fewer keys needed, the likelier they "
        "are also unique in the population, and the higher their score."
    )
    limits: ClassVar[str] = (
        "It does not mean that anyone knows these keys, nor does it cover columns that are not among them; scores "
        "compare records of one table, not tables with other keys."
    )

    @property
    def figure(self) -> str:
        """The result in words."""

        def text_of(pair: Pair) -> str:
            return f"{100 * pair.before:.1f} % before, {100 * pair.after:.1f} % after"

        parts = [f"unique by {self._keys}: {text_of(self.unique)}"]
        if len(self.columns) > 2:
            parts.append(f"by one or two of them: {text_of(self.few)}")
        parts.append(f"highest score {self.highest.before:,.0f} before, {self.highest.after:,.0f} after")
        leading = max(range(len(self.columns)), key=lambda j: self.contributions[j])
        if self.contributions[leading].before > 0:
            share = 100 * self.contributions[leading].before
            parts.append(f"{self.columns[leading]} contributes to {share:.0f} % of the scores before")
        if self.disclosure is not None:
            parts.append(f"highest probability of a right match (DIS-SUDA): {text_of(self.disclosure)}")
        return "; ".join(parts)

    @property
    def _keys(self) -> str:
        return str(self.columns[0]) if len(self.columns) == 1 else f"some of {len(self.columns)} keys"


def special_uniques(
    before: Ints, after: Ints, columns: tuple[Name, ...], weights: Floats | None = None
) -> SpecialUniques:
    """Find the minimal sample uniques of both tables.

    `before` and `after` contain the codes of the keys, at most `MOST_COLUMNS`. The sampling fraction is the number of
    records divided by the sum of the weights.
    """
    uniques = [minimal_uniques(codes) for codes in (before, after)]
    right = None
    if weights is not None:
        fraction = min(1.0, len(before) / float(weights.sum()))
        right = Pair(
            *(float(_disclosure(f, codes, fraction).max()) for f, codes in zip(uniques, (before, after), strict=True))
        )
    return SpecialUniques(
        columns,
        unique=Pair(*(float((f.scores > 0).mean()) for f in uniques)),
        few=Pair(*(float((f.counts[:, :2] > 0).any(axis=1).mean()) for f in uniques)),
        mean=Pair(*(float(f.scores.mean()) for f in uniques)),
        highest=Pair(*(float(f.scores.max()) for f in uniques)),
        contributions=tuple(Pair(*map(float, pair)) for pair in zip(*(f.contributions for f in uniques), strict=True)),
        disclosure=right,
    )


def measure(tables: TablePair) -> SpecialUniques:
    """Measure the special uniques of the keys."""
    if len(tables.names) > MOST_COLUMNS:
        raise InputError(
            f"{parameter('measures')} includes 'special-uniques', which examines all sets of at most {MOST_COLUMNS} "
            f"keys; got {len(tables.names)}. List those that an intruder is likeliest to know in {parameter('keys')}."
        )
    return special_uniques(*tables.keys, tables.names, tables.weights)


def minimal_uniques(codes: Ints) -> MinimalUniques:
    """Find all minimal sample uniques of codes with shape ``(records, columns)``.

    Examples
    --------
    >>> codes = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]])
    >>> minimal_uniques(codes).scores.tolist()
    [1.0, 2.0, 0.0, 0.0]
    """
    n, d = codes.shape
    counts, contributions = np.zeros((n, d), dtype=np.int64), np.zeros(d)
    single, sets = _unique_sets(codes)
    for columns, unique in sets.items():
        size = len(columns)
        minimal = unique.copy()
        for fewer in combinations(columns, size - 1) if size > 1 else ():
            minimal &= ~sets[fewer]
        rows = np.unpackbits(minimal, count=len(single)).astype(np.bool_)
        counts[single[rows], size - 1] += 1
        contributions[list(columns)] += factorial(d - size) * int(rows.sum())
    scores: Floats = counts @ np.array([float(factorial(d - size)) for size in range(1, d + 1)])
    return MinimalUniques(counts, scores, contributions / (scores.sum() or 1.0))


def _unique_sets(codes: Ints) -> tuple[Ints, dict[tuple[int, ...], Bits]]:
    """Return the records that are unique by all columns and, per set of columns, a bit mask of those unique by it."""
    rows = identical_records(list(codes.T))
    single = np.flatnonzero(group_sizes(rows)[rows] == 1)
    sets: dict[tuple[int, ...], Bits] = {}
    if not len(single):
        return single, sets
    first = np.unique(rows, return_index=True)[1]
    repeats = np.setdiff1d(np.arange(len(rows)), first)
    second = repeats[np.unique(rows[repeats], return_index=True)[1]]
    sample = np.union1d(first, second)
    position = np.searchsorted(sample, single)
    columns = [np.unique(column, return_inverse=True)[1] for column in codes[sample].T]

    def search(subset: tuple[int, ...], records: Ints, groups: Ints) -> None:
        for c in range(subset[-1] + 1 if subset else 0, len(columns)):
            alike, finer = _refine(records, groups, columns[c])
            unique = np.ones(len(sample), dtype=np.bool_)
            unique[alike] = False
            sets[*subset, c] = np.packbits(unique[position])
            search((*subset, c), alike, finer)

    search((), np.arange(len(sample)), np.zeros(len(sample), dtype=np.int64))
    return single, sets


def _refine(records: Ints, groups: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Divide groups by the values of one more column; return the records that equal another one, and their groups."""
    values = int(column.max(initial=0)) + 1
    keys = groups * values + column[records]
    if (int(groups.max(initial=0)) + 1) * values > 4 * len(keys):
        keys = np.unique(keys, return_inverse=True)[1]
    counts = np.bincount(keys)
    stay = counts[keys] > 1
    return records[stay], (np.cumsum(counts > 1) - 1)[keys[stay]]


def _disclosure(uniques: MinimalUniques, codes: Ints, fraction: float) -> Floats:
    """Return, per record, the probability that a match is correct (DIS-SUDA as in ``suda2`` of sdcMicro).

    C. J. Skinner and M. J. Elliot (2002): with u unique records and p records in pairs, a match in the whole table is
    correct with probability D = uφ / (uφ + p(1 − φ)), where φ is the sampling fraction. This probability is distributed
    over the records by their scores s as 1 / (1 + u(1/D − 1) / (s^q Σ s^−q)), q = 1 + (8 − d)/20.
    """
    scores, unique = uniques.scores, uniques.scores > 0
    sizes = group_sizes(identical_records(list(codes.T)))
    u, pairs = int((sizes == 1).sum()), 2 * int((sizes == 2).sum())
    result = np.zeros(len(scores))
    if not u:
        return result
    overall = u * fraction / (u * fraction + pairs * (1 - fraction))
    q = 1 + (8 - codes.shape[1]) / 20
    powers = scores[unique] ** q
    result[unique] = 1 / (1 + u * (1 / overall - 1) / (powers * (1 / powers).sum()))
    return result
