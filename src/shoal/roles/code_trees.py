"""Hierarchies of codes whose prefixes denote wider classes, such as ZIP, ICD, NACE and ISCO codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.kinds.hierarchy import Hierarchy

__all__ = ["prefix_hierarchy"]

FEW = 10  # number of distinct codes up to which no classes are needed
LONGEST = 12  # maximum length of a code in characters
JOINED = 0.6  # maximum ratio of the number of classes in a level to the number in the level below


def prefix_hierarchy(values: Sequence[Any]) -> Hierarchy | None:
    """Return a hierarchy of codes by their prefixes; None if the codes are few or have no classes.

    A level is included if it joins enough classes of the level below. Its prefixes are the shortest that distinguish
    its classes. Codes may be shorter than a prefix.

    Examples
    --------
    >>> prefix_hierarchy([f"{place}{house:03}" for place in (10, 11, 12, 20, 21, 31) for house in range(5)])
    Hierarchy(ways=(2, 1), release='ancestor', depth=4)
    """
    width = max((len(str(value)) for value in values), default=0)
    if len(values) <= FEW or width > LONGEST:
        return None
    texts = [f"{value:0{width}}" if isinstance(value, int) else str(value) for value in values]
    shortest = {len({text[:length].rstrip(".-/ ") for text in texts}): length for length in range(width, 0, -1)}
    lengths, below = list[int](), len(set(texts))
    for classes, length in shortest.items():
        if 1 < classes <= JOINED * below:
            lengths.append(length)
            below = classes
    return Hierarchy(lengths) if lengths else None
