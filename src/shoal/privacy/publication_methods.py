"""The methods of publication: the one list that the library, the command line and the docs read.

Beside those listed here every method of `shoal.methods` can make the groups of a release, under Definition 3. Method
`marginals` makes no groups and puts no noise on means: it stands apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.algorithms.registry import METHODS
from shoal.core.errors import InputError, closest
from shoal.core.messages import parameter

__all__ = ["DEFAULT", "GIVEN", "MARGINALS", "PUBLICATION_METHODS", "PublicationMethod", "find_publication_method"]


@dataclass(frozen=True)
class PublicationMethod:
    """A method of publication."""

    # What users type, what the paper calls it, what it does.
    name: str
    paper: str
    summary: str
    # The definition of the paper under which ε holds: 1 for the mechanism from raw table to released table, 3 for the
    # individuals behind a microaggregated table whose groups are taken as given.
    definition: Literal[1, 3]
    joint: bool  # whether columns are grouped together (Algorithm 1) or each on its own (Algorithm 2)
    # ``"needed"``; ``"chosen"`` from public figures if it is not given; ``"least"`` where it limits groups that the
    # method chooses itself; or ``"none"``.
    k: Literal["needed", "chosen", "least", "none"]
    keeps_rows: bool = True  # whether records are released in the order of the input; if not, a row belongs to nobody
    groups: str | None = None  # the method of `shoal.methods` that makes the groups, if it is one of them

    @property
    def takes_sizes(self) -> bool:
        """Return whether k is the size of the groups."""
        return self.k in ("needed", "chosen")


_METHODS = (
    PublicationMethod(
        "insensitive-ir",
        "",
        "each column on its own in its own order, k at a time; released without who is who",
        1,
        joint=False,
        k="chosen",
        keeps_rows=False,
    ),
    PublicationMethod(
        "insensitive",
        "INS_DP",
        "whole records in a fixed order, k at a time; released in that order",
        1,
        joint=True,
        k="needed",
        keeps_rows=False,
    ),
    PublicationMethod("none", "plain Laplace", "no groups: noise on every value", 1, joint=False, k="none"),
    PublicationMethod(
        "optimal",
        "OPT_DP",
        "each column on its own, least loss from averaging and noise together",
        3,
        joint=False,
        k="least",
    ),
    PublicationMethod(
        "mdav-ir", "MDAV_IR_DP", "each column on its own, groups of k neighbours by MDAV", 3, joint=False, k="needed"
    ),
    PublicationMethod(
        "mdav", "MDAV_DP", "whole records, groups of k by MDAV", 3, joint=True, k="needed", groups="mdav"
    ),
)
PUBLICATION_METHODS: dict[str, PublicationMethod] = {method.name: method for method in _METHODS}
DEFAULT = _METHODS[0].name
MARGINALS = PublicationMethod(
    "marginals",
    "",
    "whole records drawn from a model of noisy counts of columns and of pairs; takes δ",
    1,
    joint=True,
    k="none",
    keeps_rows=False,
)
GIVEN = PublicationMethod("given", "Algorithm 1", "the groups that were given", 3, joint=True, k="none")


def find_publication_method(name: str) -> PublicationMethod:
    """Return the method of that name, or say which ones there are.

    Examples
    --------
    >>> find_publication_method("optimal").paper
    'OPT_DP'
    >>> find_publication_method("mst-d").definition
    3
    """
    if name in PUBLICATION_METHODS:
        return PUBLICATION_METHODS[name]
    for entry in (MARGINALS, GIVEN):
        if name == entry.name:
            return entry
    if name in METHODS:
        grouping = METHODS[name]
        each = grouping.univariate or not grouping.whole_records
        groups = grouping.name if grouping.whole_records else "univariate"
        return PublicationMethod(name, "", grouping.summary, 3, joint=not each, k="needed", groups=groups)
    names = ", ".join(PUBLICATION_METHODS)
    raise InputError(
        f"{parameter('method')} must be one of {names}, 'marginals' with delta, 'given' with groups, or one of "
        f"shoal.methods(), got {name!r}.{closest(name, [*PUBLICATION_METHODS, MARGINALS.name, *METHODS])}"
    )
