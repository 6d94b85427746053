"""How safe a release is: what an intruder with the original values, or with the released file alone, could find out.

Arrays in, small results out; nothing here validates. Every result says in a sentence what it means and in another
what it does not mean, because a figure of risk is easily taken for a promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.measures import group_sizes, scaling
from shoal.core.types import Bools, Floats, Ints
from shoal.masking.coding import Embedding
from shoal.masking.gathering import cells_of as split_cells
from shoal.masking.verification import identical_records
from shoal.tables.columns import Name

__all__ = [
    "Anonymity",
    "Attribute",
    "Intervals",
    "Linkage",
    "Risk",
    "Uniqueness",
    "anonymity",
    "attribute",
    "cells_of",
    "intervals",
    "linkage",
    "uniqueness",
    "wilson",
]

# Up to so many records are linked each one; of a larger table, a random sample.
LINKED_RECORDS = 20_000
LINKED_SAMPLE = 10_000
WIDTHS = (1, 5, 10)


@dataclass(frozen=True)
class Anonymity:
    """The groups of identical records, counted again on the released file.

    Parameters
    ----------
    k
        The records of the smallest group.
    groups
        The number of groups.
    mean_size
        The mean number of records in a group.
    asked
        The k that was promised, or None.
    below
        The records in groups smaller than that.
    """

    k: int
    groups: int
    mean_size: float
    asked: int | None = None
    below: int = 0

    name: ClassVar[str] = "k-anonymity, recounted"
    means: ClassVar[str] = (
        "Whoever looks for a person by the masked columns finds at least this many records that look exactly alike."
    )
    limits: ClassVar[str] = (
        "It does not protect columns that were not masked, nor a value that all records of a group share."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        text = f"smallest group {self.k}; {self.groups:,} groups of {self.mean_size:.1f} records on average"
        return f"{text}; {self.below:,} records in groups below k = {self.asked}" if self.below else text


@dataclass(frozen=True)
class Linkage:
    """Record linkage by distance: each released record is linked to the nearest original.

    Parameters
    ----------
    share
        The share of records whose nearest original is their own; an original that ties with others counts by its part.
    chance
        What blind choice within the right group would give, the mean of 1/size.
    records
        How many records were linked.
    interval
        The 95 % interval of the share if they are a sample; None if they are all.
    """

    share: float
    chance: float
    records: int
    interval: tuple[float, float] | None = None

    name: ClassVar[str] = "record linkage by distance"
    means: ClassVar[str] = (
        "Someone who holds the original values and links every released record to the nearest of them is right this "
        "often; blind choice within a group is right as often as its chance says."
    )
    limits: ClassVar[str] = (
        "It does not cover an intruder who knows more than the masked columns, and it does not say that the others "
        "cannot be found in another way."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        text = f"{100 * self.share:.1f} % linked rightly, chance {100 * self.chance:.1f} %"
        if self.interval is None:
            return text
        low, high = self.interval
        return f"{text} (sample of {self.records:,}; 95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


@dataclass(frozen=True)
class Intervals:
    """Interval disclosure: how often the original lies close around the released value.

    Parameters
    ----------
    widths
        Half-widths in percent: of the standard deviation, and of the number of records.
    sd
        For each width, the share of values within so many percent of a standard deviation of the released value.
    rank
        For each width, the share of values within so many percent of the records above and below it in rank.
    """

    widths: tuple[int, ...]
    sd: tuple[float, ...]
    rank: tuple[float, ...]

    name: ClassVar[str] = "interval disclosure"
    means: ClassVar[str] = (
        "Someone who takes a released value for the true one, give or take this much, is right this often."
    )
    limits: ClassVar[str] = (
        "It does not say whose value it is, and they cannot tell for which records they are right. A useful release "
        "has high figures here: they measure closeness, not identity."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        by_sd = ", ".join(f"±{w} %: {100 * share:.0f} %" for w, share in zip(self.widths, self.sd, strict=True))
        by_rank = ", ".join(f"±{w} %: {100 * share:.0f} %" for w, share in zip(self.widths, self.rank, strict=True))
        return f"by standard deviation {by_sd}; by rank {by_rank}"


@dataclass(frozen=True)
class Attribute:
    """Attribute disclosure of a confidential column that was released as it is.

    Parameters
    ----------
    column
        The confidential column.
    diversity
        l: the least number of distinct values in a group.
    entropy_diversity
        exp of the least entropy of a group: the number of equally frequent values that would be as uncertain.
    closeness
        t: the greatest distance between a group's distribution and the table's, 0 to 1. Equal distances between
        categories, distances in rank between numbers.
    disclosed
        The share of records whose group has one value only.
    """

    column: Name
    diversity: int
    entropy_diversity: float
    closeness: float
    disclosed: float

    means: ClassVar[str] = (
        "Whoever finds someone's group, without knowing the record, learns the value if all of the group share it; the "
        "more diverse (l) and the closer to the whole table (t near 0) the groups, the less they learn."
    )
    limits: ClassVar[str] = (
        "It does not count what values that are alike but not equal give away, nor what is known of the column anyway."
    )

    @property
    def name(self) -> str:
        """What was measured."""
        return f"attribute disclosure of {self.column}"

    @property
    def figure(self) -> str:
        """The result in words."""
        return (
            f"l = {self.diversity} (by entropy {self.entropy_diversity:.2f}), t = {self.closeness:.3f}; "
            f"{100 * self.disclosed:.1f} % of records in groups that share one value"
        )


@dataclass(frozen=True)
class Uniqueness:
    """Records that no other equals in the masked columns (and strata).

    Parameters
    ----------
    before, after
        The share of unique records in each table.
    """

    before: float
    after: float

    name: ClassVar[str] = "unique records"
    means: ClassVar[str] = "So many records could be told from all others by the masked columns, before and after."
    limits: ClassVar[str] = "It does not count records that other, unmasked columns make unique."

    @property
    def figure(self) -> str:
        """The result in words."""
        return f"{100 * self.before:.1f} % before, {100 * self.after:.1f} % after"


Finding = Anonymity | Linkage | Intervals | Attribute | Uniqueness


@dataclass(frozen=True)
class Risk:
    """All that was measured about safety; iterate to read each with its sentences."""

    anonymity: Anonymity
    uniqueness: Uniqueness
    linkage: Linkage | None  # None where records are not beside their originals
    intervals: Intervals | None  # so too, and of numbers only
    attributes: tuple[Attribute, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        findings = (self.anonymity, self.uniqueness, self.linkage, self.intervals, *self.attributes)
        return (finding for finding in findings if finding is not None)


def anonymity(groups: Ints, asked: int | None = None) -> Anonymity:
    """Describe the groups of identical released records.

    Examples
    --------
    >>> anonymity(np.array([0, 0, 0, 1, 1]), asked=3).figure
    'smallest group 2; 2 groups of 2.5 records on average; 2 records in groups below k = 3'
    """
    sizes = group_sizes(groups)
    below = int(sizes[sizes < asked].sum()) if asked is not None else 0
    return Anonymity(int(sizes.min()), len(sizes), float(sizes.mean()), asked, below)


def uniqueness(before: Ints, after: Ints) -> Uniqueness:
    """Count the records that no other equals; those that are identical share a number.

    Examples
    --------
    >>> uniqueness(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])).figure
    '50.0 % before, 0.0 % after'
    """
    return Uniqueness(_unique(before), _unique(after))


def cells_of(X: Floats, strata: Ints) -> list[tuple[Ints, Ints]]:
    """Split the records by stratum and by the columns they miss: (records, columns present) of each part.

    An intruder sees both, and links within them.

    Examples
    --------
    >>> [rows.tolist() for rows, _ in cells_of(np.array([[1.0], [np.nan], [2.0]]), np.array([0, 0, 0]))]
    [[0, 2], [1]]
    """
    return split_cells(X, identical_records(list(np.isnan(X).T), strata))


def linkage(
    X: Floats,
    Y: Floats,
    groups: Ints,
    cells: list[tuple[Ints, Ints]],
    embedding: Embedding | None = None,
    *,
    seed: int = 0,
    sample: int | None = None,
) -> Linkage:
    """Link released records to the nearest original (Euclidean distance where masking compares them, by kd-tree).

    Parameters
    ----------
    X, Y
        The records before and after.
    groups
        Records that are identical in Y (and share their stratum) have the same number.
    cells
        Where records are linked, as `cells_of` gives them.
    embedding
        What the columns hold, from the records before; numbers if not given.
    seed
        Decides the sample.
    sample
        How many records to link; by default all of a table of up to 20,000, and 10,000 of a larger one.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> groups = np.array([0, 0, 1, 1])
    >>> linkage(X, np.array([[0.4], [0.4], [7.0], [7.0]]), groups, cells_of(X, groups)).share
    0.5
    """
    from scipy.spatial import cKDTree

    n = len(X)
    if sample is None:
        sample = n if n <= LINKED_RECORDS else LINKED_SAMPLE
    chosen = np.ones(n, dtype=np.bool_)
    if sample < n:
        chosen[:] = False
        chosen[np.random.default_rng(seed).choice(n, sample, replace=False)] = True
    scale = scaling(X)
    embedding = embedding or Embedding.of_numbers(X.shape[1])
    Z, W = embedding.apply(X, scale), embedding.apply(Y, scale)
    right = 0.0
    for rows, _ in cells:
        asked = rows[chosen[rows]]
        if not len(asked):
            continue
        present = np.flatnonzero(~np.isnan(Z[rows[0]]))
        if not len(present):
            right += len(asked) / len(rows)
            continue
        originals = np.ascontiguousarray(Z[np.ix_(rows, present)])
        tree = cKDTree(originals)
        # Records of a group ask the same question: it is asked once.
        _, first, question = np.unique(groups[asked], return_index=True, return_inverse=True)
        points = W[np.ix_(asked[first], present)]
        distance, _ = tree.query(points, workers=-1)
        nearest = tree.query_ball_point(points, distance * (1 + 1e-9) + 1e-12, return_length=True, workers=-1)
        own = np.sqrt(np.square(Z[np.ix_(asked, present)] - W[np.ix_(asked, present)]).sum(axis=1))
        hit = own <= distance[question] * (1 + 1e-9) + 1e-12
        right += float((hit / nearest[question]).sum())
    share = right / sample
    chance = float((1 / group_sizes(groups)[groups[chosen]]).mean())
    return Linkage(share, chance, sample, wilson(share, sample) if sample < n else None)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    Examples
    --------
    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    z = 1.959963984540054
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def intervals(X: Floats, Y: Floats) -> Intervals:
    """Count the originals that lie close around their released value, by standard deviation and by rank.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> intervals(X, X).sd
    (1.0, 1.0, 1.0)
    """
    sd, rank = np.zeros(len(WIDTHS)), np.zeros(len(WIDTHS))
    cells = 0
    for x, y in zip(X.T, Y.T, strict=True):
        seen = ~np.isnan(x)
        before, after = x[seen], y[seen]
        if not len(before):
            continue
        cells += len(before)
        unit = np.std(before - before[0], ddof=1) if len(before) > 1 else 0.0
        ordered = np.sort(after)
        # The rank of a released value is the middle of its ties.
        place = (np.searchsorted(ordered, after) + np.searchsorted(ordered, after, side="right") - 1) / 2
        for i, width in enumerate(WIDTHS):
            sd[i] += (np.abs(before - after) <= width / 100 * unit).sum()
            reach = width / 100 * len(after)
            low = np.maximum(np.ceil(place - reach), 0).astype(np.int64)
            high = np.minimum(np.floor(place + reach), len(after) - 1).astype(np.int64)
            # A reach below one rank leaves the released value alone.
            rank[i] += ((before >= ordered[np.minimum(low, high)]) & (before <= ordered[np.maximum(low, high)])).sum()
    cells = max(cells, 1)
    return Intervals(WIDTHS, tuple((sd / cells).tolist()), tuple((rank / cells).tolist()))


def attribute(name: Name, codes: Ints, groups: Ints, *, numeric: bool) -> Attribute:
    """Measure l-diversity, entropy l-diversity and t-closeness of a column over the groups.

    Parameters
    ----------
    name
        The column.
    codes
        Codes 0, 1, … of its values, in order of size if `numeric`.
    groups
        The group of each record, 0, 1, …
    numeric
        Whether values have an order, so that distances are in rank.

    Examples
    --------
    >>> attribute("illness", np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), numeric=False).figure
    'l = 1 (by entropy 1.00), t = 0.250; 50.0 % of records in groups that share one value'
    """
    order = np.lexsort((codes, groups))
    group, code = groups[order], codes[order]
    starts: Bools = np.r_[True, (group[1:] != group[:-1]) | (code[1:] != code[:-1])]
    first = np.flatnonzero(starts)
    counts = np.diff(np.r_[first, len(code)])
    group, code = group[first], code[first]
    sizes = group_sizes(groups)
    shares = counts / sizes[group]
    distinct = group_sizes(group)
    entropy = np.bincount(group, -shares * np.log(shares))
    overall = np.bincount(codes) / len(codes)
    distance = _ordered_distance if numeric else _equal_distance
    return Attribute(
        column=name,
        diversity=int(distinct.min()),
        entropy_diversity=float(np.exp(max(0.0, entropy.min()))),
        closeness=float(distance(group, code, shares, overall).max()),
        disclosed=float(sizes[distinct == 1].sum() / len(codes)),
    )


def _equal_distance(group: Ints, code: Ints, shares: Floats, overall: Floats) -> Floats:
    """Return ½ Σ |p − q| of each group; values that a group lacks add their q."""
    present = np.bincount(group, np.abs(shares - overall[code]) - overall[code])
    distances: Floats = (present + overall.sum()) / 2
    return distances


def _ordered_distance(group: Ints, code: Ints, shares: Floats, overall: Floats) -> Floats:
    """Return Σ |P − Q| / (m − 1) of each group, P and Q the cumulative distributions over m values.

    P is constant between two values of the group and Q grows, so each stretch is one crossing and two prefix sums:
    O(records log m) for all groups, where the plain sum would take groups × m.
    """
    m = len(overall)
    if m == 1:
        return np.zeros(int(group.max()) + 1)
    Q = np.cumsum(overall)
    prefix = np.r_[0.0, np.cumsum(Q)]
    last = np.r_[group[1:] != group[:-1], True]
    leads = np.r_[True, last[:-1]]
    running = np.cumsum(shares)
    # What the groups before have added is taken off again.
    P = running - np.r_[0.0, running[last]][np.cumsum(leads) - 1]
    end = np.where(last, m, np.r_[code[1:], m])
    crossing = np.clip(np.searchsorted(Q, P), code, end)
    below = P * (crossing - code) - (prefix[crossing] - prefix[code])
    above = prefix[end] - prefix[crossing] - P * (end - crossing)
    ahead = prefix[code[leads]]
    distances: Floats = (np.bincount(group, below + above) + ahead) / (m - 1)
    return distances


def _unique(groups: Ints) -> float:
    return float((group_sizes(groups) == 1).sum() / len(groups))
