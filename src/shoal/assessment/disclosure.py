"""Attribute disclosure: what the records of a group share of a confidential column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.measures import group_sizes
from shoal.core.messages import count
from shoal.core.types import Bools, Floats, Ints
from shoal.masking.confidential import count_alike
from shoal.tables.columns import Name

__all__ = ["RECURSIVE", "Attribute", "attribute"]

RECURSIVE = 3.0  # c of recursive diversity, as `shoal.Diversity` has it


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
    recursive_diversity
        The greatest l for which every group is recursively (3, l)-diverse: its most frequent value has fewer than three
        times the records of the l-th most frequent one and all rarer ones together (Machanavajjhala et al. 2007).
    closeness
        t: the greatest distance between a group's distribution and the table's, 0 to 1. Equal distances between
        categories, distances in rank between numbers.
    disclosed
        The share of records whose group has one value only.
    groups, homogeneous, concentrated
        The number of groups, and of those in which all records, or at least 90 % of them, share one value.
    """

    column: Name
    diversity: int
    entropy_diversity: float
    recursive_diversity: int
    closeness: float
    disclosed: float
    groups: int
    homogeneous: int
    concentrated: int

    means: ClassVar[str] = (
        "Whoever finds someone's group, without knowing the record, learns the value if all of the group share it; the "
        "more diverse (l) and the closer to the whole table (t near 0) the groups, the less they learn."
    )
    limits: ClassVar[str] = (
        "It does not count what values that are alike but not equal give away, nor what is known of the column anyway."
    )

    @property
    def name(self) -> str:
        """The name of the measure."""
        return f"sensitive: {self.column}"

    @property
    def figure(self) -> str:
        """The result in words."""
        return (
            f"all records share one value in {self.homogeneous:,} of {count(self.groups, 'group')}, at least 90 % in "
            f"{self.concentrated:,}; l = {self.diversity} (by entropy {self.entropy_diversity:.2f}), "
            f"t = {self.closeness:.3f}; recursively l = {self.recursive_diversity} with c = {RECURSIVE:g}; "
            f"{100 * self.disclosed:.1f} % of records in groups that share one value"
        )


def attribute(name: Name, codes: Ints, groups: Ints, *, numeric: bool) -> Attribute:
    """Measure l-diversity (distinct, entropy, recursive) and t-closeness of a column over the groups.

    The codes 0, 1, … are in order of size if `numeric`: distances are then in rank.

    Examples
    --------
    >>> found = attribute("illness", np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), numeric=False)
    >>> found.diversity, found.closeness, found.disclosed, found.homogeneous, found.groups
    (1, 0.25, 0.5, 1, 2)
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
    homogeneous, concentrated = count_alike(codes, groups)
    entropy = np.bincount(group, -shares * np.log(shares))
    overall = np.bincount(codes) / len(codes)
    distance = _ordered_distance if numeric else _equal_distance
    return Attribute(
        column=name,
        diversity=int(distinct.min()),
        entropy_diversity=float(np.exp(max(0.0, entropy.min()))),
        recursive_diversity=int(_recursive(group, counts, sizes, RECURSIVE).min()),
        closeness=float(distance(group, code, shares, overall).max()),
        disclosed=float(sizes[distinct == 1].sum() / len(codes)),
        groups=len(sizes),
        homogeneous=homogeneous,
        concentrated=concentrated,
    )


def _recursive(group: Ints, counts: Ints, sizes: Ints, c: float) -> Ints:
    """Return the greatest l of each group with r₁ < c (r_l + … + r_m), r its counts in descending order; at least 1."""
    order = np.lexsort((-counts, group))
    group, counts = group[order], counts[order]
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    before = np.cumsum(counts) - counts
    rest = sizes[group] - (before - before[first][group])
    # What is left shrinks with l, so those that hold come first.
    largest: Ints = np.maximum(1, np.bincount(group, counts[first][group] < c * rest)).astype(np.int64)
    return largest


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
