"""The methods of publication: the one list that the library, the command line and the docs read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.core.errors import InputError, closest

__all__ = ["WAYS", "Way", "find_way"]


@dataclass(frozen=True)
class Way:
    """A method of publication.

    Parameters
    ----------
    name, paper, summary
        What users type, what the paper calls it, what it does.
    definition
        The definition of the paper under which ε holds: 1 for the way from raw table to released table, 3 for the
        individuals behind a microaggregated table whose groups are taken as given.
    joint
        Whether columns are grouped together (Algorithm 1) or each on its own (Algorithm 2).
    k
        ``"needed"``, ``"optional"`` or ``"none"``.
    """

    name: str
    paper: str
    summary: str
    definition: Literal[1, 3]
    joint: bool
    k: Literal["needed", "optional", "none"]


_WAYS = (
    Way(
        "optimal",
        "OPT_DP",
        "each column on its own, least loss from averaging and noise together",
        3,
        False,
        "optional",
    ),
    Way("mdav-ir", "MDAV_IR_DP", "each column on its own, groups of k neighbours by MDAV", 3, False, "needed"),
    Way("mdav", "MDAV_DP", "whole records, groups of k by MDAV", 3, True, "needed"),
    Way(
        "insensitive",
        "INS_DP",
        "whole records in a fixed order, k at a time; released in that order",
        1,
        True,
        "needed",
    ),
    Way("none", "plain Laplace", "no groups: noise on every value", 1, False, "none"),
)
WAYS: dict[str, Way] = {way.name: way for way in _WAYS}


def find_way(name: str) -> Way:
    """Return the method of that name, or say which ones there are.

    Examples
    --------
    >>> find_way("optimal").paper
    'OPT_DP'
    """
    if name not in WAYS:
        raise InputError(f"Parameter 'method' must be one of {', '.join(WAYS)}, got {name!r}.{closest(name, WAYS)}")
    return WAYS[name]
