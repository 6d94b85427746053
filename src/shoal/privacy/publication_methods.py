"""Publication methods, in one list for the library, the command line and the docs.

Besides the methods listed here, every method of `shoal.methods` can form the groups of a release, under Definition 3.
Method `marginals` is listed separately because it forms no groups and adds no noise to means.
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
    """A publication method: its names, its definition of privacy and its use of groups."""

    # The name that users type, the paper's name, a summary.
    name: str
    paper: str
    summary: str
    # The paper's definition under which ε holds: 1 for the mechanism from raw table to released table, 3 for the
    # individuals behind a microaggregated table whose groups are taken as given.
    definition: Literal[1, 3]
    joint: bool  # True if columns are grouped together (Algorithm 1), False if each is grouped separately (Algorithm 2)
    # ``"needed"``: the user must set k; ``"chosen"``: computed from public figures by default; ``"least"``: a lower
    # limit on the size of groups that the method chooses itself; ``"none"``: no k.
    k: Literal["needed", "chosen", "least", "none"]
    keeps_rows: bool = True  # True if records keep the order of the input; otherwise a row belongs to nobody
    groups: str | None = None  # the method of `shoal.methods` that forms the groups, if any

    @property
    def takes_sizes(self) -> bool:
        """Return True if k is the size of the groups."""
        return self.k in ("needed", "chosen")


_METHODS = (
    PublicationMethod(
        "insensitive-ir",
        "",
        "each column separately in its own order, k records per group; rows are not matched to records",
        1,
        joint=False,
        k="chosen",
        keeps_rows=False,
    ),
    PublicationMethod(
        "insensitive",
        "INS_DP",
        "whole records in a fixed order, k per group; released in that order",
        1,
        joint=True,
        k="needed",
        keeps_rows=False,
    ),
    PublicationMethod("none", "plain Laplace", "no groups: noise on every value", 1, joint=False, k="none"),
    PublicationMethod(
        "optimal",
        "OPT_DP",
        "each column separately, least total loss from averaging and noise",
        3,
        joint=False,
        k="least",
    ),
    PublicationMethod(
        "mdav-ir", "MDAV_IR_DP", "each column separately, groups of k neighbours by MDAV", 3, joint=False, k="needed"
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
    "whole records drawn from a model of noisy counts of columns and pairs; requires δ",
    1,
    joint=True,
    k="none",
    keeps_rows=False,
)
GIVEN = PublicationMethod("given", "Algorithm 1", "the groups set by the user", 3, joint=True, k="none")


def find_publication_method(name: str) -> PublicationMethod:
    """Return the method with this name; refuse an unknown name with a list of methods.

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
