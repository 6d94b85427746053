"""The methods of publication: the one list that the library, the command line and the docs read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.core.errors import InputError, closest

__all__ = ["PUBLICATION_METHODS", "PublicationMethod", "find_publication_method"]


@dataclass(frozen=True)
class PublicationMethod:
    """A method of publication.

    Parameters
    ----------
    name, paper, summary
        What users type, what the paper calls it, what it does.
    definition
        The definition of the paper under which ε holds: 1 for the mechanism from raw table to released table, 3 for the
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


_METHODS = (
    PublicationMethod(
        "optimal",
        "OPT_DP",
        "each column on its own, least loss from averaging and noise together",
        3,
        False,
        "optional",
    ),
    PublicationMethod(
        "mdav-ir", "MDAV_IR_DP", "each column on its own, groups of k neighbours by MDAV", 3, False, "needed"
    ),
    PublicationMethod("mdav", "MDAV_DP", "whole records, groups of k by MDAV", 3, True, "needed"),
    PublicationMethod(
        "insensitive",
        "INS_DP",
        "whole records in a fixed order, k at a time; released in that order",
        1,
        True,
        "needed",
    ),
    PublicationMethod("none", "plain Laplace", "no groups: noise on every value", 1, False, "none"),
)
PUBLICATION_METHODS: dict[str, PublicationMethod] = {method.name: method for method in _METHODS}


def find_publication_method(name: str) -> PublicationMethod:
    """Return the method of that name, or say which ones there are.

    Examples
    --------
    >>> find_publication_method("optimal").paper
    'OPT_DP'
    """
    if name not in PUBLICATION_METHODS:
        known = ", ".join(PUBLICATION_METHODS)
        raise InputError(
            f"Parameter 'method' must be one of {known}, got {name!r}.{closest(name, PUBLICATION_METHODS)}"
        )
    return PUBLICATION_METHODS[name]
