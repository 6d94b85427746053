"""Attribute disclosure: shared values of a sensitive column within groups."""

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

RECURSIVE = 3.0  # c of recursive diversity, as in `shoal.Diversity`


@dataclass(frozen=True)
class Attribute:
    """Attribute disclosure of a sensitive column that was released unchanged.

    Parameters
    ----------
    column
        The sensitive column.
    diversity
        l: the least number of distinct values in a group.
    entropy_diversity
        exp of the least entropy of a group: the number of equally frequent values with the same uncertainty.
    recursive_diversity
        The greatest l for which every group is recursively (3, l)-diverse: its most frequent value has fewer than three
        times as many records as the l-th most frequent and all rarer values together (Machanavajjhala et al. 2007).
    closeness
        t: the greatest distance between a group's distribution and the table's, 0 to 1. Distances between categories
        are all equal; distances between numbers are differences in rank.
    disclosed
        The share of records whose group has a single value.
    groups, homogeneous, concentrated
        The numbers of all groups, of groups in which all records share one value, and of groups in which at least 90 %
        do.
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
        "Anyone who finds a person's group, without knowing the record, learns the value if the whole group shares it; "
        "the more diverse (l) and the closer to the whole table (t near 0) the groups, the less an intruder learns."
    )
    limits: ClassVar[str] = (
        "It does not count disclosure by similar but unequal values, nor facts about the column that are known anyway."
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
    """Measure l-diversity (distinct, entropy, recursive) and t-closeness of a column by group.

    If `numeric`, the codes 0, 1, … follow the order of the values, and distances are differences in rank.

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
    """Return, per group, the greatest l with r₁ < c (r_l + … + r_m) for its descending counts r; at least 1."""
    order = np.lexsort((-counts, group))
    group, counts = group[order], counts[order]
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    before = np.cumsum(counts) - counts
    rest = sizes[group] - (before - before[first][group])
    # The remainder decreases with l, so the values that satisfy the condition come first.
    largest: Ints = np.maximum(1, np.bincount(group, counts[first][group] < c * rest)).astype(np.int64)
    return largest


def _equal_distance(group: Ints, code: Ints, shares: Floats, overall: Floats) -> Floats:
    """Return ½ Σ |p − q| for each group; values absent from a group add their q."""
    present = np.bincount(group, np.abs(shares - overall[code]) - overall[code])
    distances: Floats = (present + overall.sum()) / 2
    return distances


def _ordered_distance(group: Ints, code: Ints, shares: Floats, overall: Floats) -> Floats:
    """Return Σ |P − Q| / (m − 1) for each group, with the cumulative distributions P and Q over m values.

    Between two values of a group, P is constant and Q increases, so each interval needs one crossing and two prefix
    sums. This takes O(records log m) time for all groups, instead of O(groups × m) for the plain sum.
    """
    m = len(overall)
    if m == 1:
        return np.zeros(int(group.max()) + 1)
    Q = np.cumsum(overall)
    prefix = np.r_[0.0, np.cumsum(Q)]
    last = np.r_[group[1:] != group[:-1], True]
    leads = np.r_[True, last[:-1]]
    running = np.cumsum(shares)
    # Subtract the shares of earlier groups.
    P = running - np.r_[0.0, running[last]][np.cumsum(leads) - 1]
    end = np.where(last, m, np.r_[code[1:], m])
    crossing = np.clip(np.searchsorted(Q, P), code, end)
    below = P * (crossing - code) - (prefix[crossing] - prefix[code])
    above = prefix[end] - prefix[crossing] - P * (end - crossing)
    ahead = prefix[code[leads]]
    distances: Floats = (np.bincount(group, below + above) + ahead) / (m - 1)
    return distances
