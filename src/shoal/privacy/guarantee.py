"""What ε covers, for whom, under which definition: the words that go with every release."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shoal.privacy.publication_methods import PublicationMethod
from shoal.tables.columns import Name

__all__ = ["guarantee"]

_GIVEN_GROUPS = (
    "This is differential privacy in the sense of Definition 3 of Soria-Comas and Domingo-Ferrer (2018), for the "
    "individuals behind the microaggregated table: with the groups taken as given, replacing one person's values in "
    "{columns} by any others within the bounds changes the probability of any released values by a factor of at most "
    "e^{epsilon} = {factor}. The groups themselves are not covered: they were formed from the confidential values, "
    "and the release shows which records share a value, hence every group and its size. It is therefore NOT "
    "ε-differentially private as a mechanism from raw table to released table (Definition 1); methods 'none' and "
    "'insensitive' are. Records stand in the order of the input."
)
_WHOLE_MECHANISM = (
    "This is ε-differential privacy (Definition 1) of the whole way from raw table to released table: replacing one "
    "record's values in {columns} by any others within the bounds changes the probability of any release by a factor "
    "of at most e^{epsilon} = {factor}. {order}"
)
_ORDER = {
    "none": (
        "Records stand in the order of the input, each with noise of its own; that order must not itself depend on "
        "confidential values (a table sorted by income would tell)."
    ),
    "insensitive": (
        "Records stand in the order of their groups, not in the order of the input: a released row belongs to "
        "nobody in particular, and no other column can be joined to it."
    ),
}
_ASSUMED = (
    "It assumes one record for each person, and that the number of records and the bounds are public knowledge. "
    "Whoever publishes the same people again spends again: budgets add up."
)


def guarantee(
    entry: PublicationMethod,
    epsilon: float,
    columns: Sequence[Name],
    *,
    kept: Sequence[Name] = (),
    data_bounds: bool = False,
    seeded: bool = False,
) -> str:
    """Say in plain words what a release promises and what it does not.

    Examples
    --------
    >>> from shoal.privacy.publication_methods import find_publication_method
    >>> guarantee(find_publication_method("none"), 1.0, ["sales"])
    "This is ε-differential privacy (Definition 1) of the whole way from raw table to released table: ..."
    """
    sentences = []
    if seeded:
        sentences.append(
            "NO GUARANTEE HOLDS: the noise was drawn from a seed, so whoever knows or guesses it can take the noise "
            "off. For experiments only, not for release. Without the seed:"
        )
    if data_bounds:
        sentences.append(
            "NO GUARANTEE HOLDS: the bounds were read from the confidential values (bounds='data'). For experiments "
            "only, not for release. With public bounds:"
        )
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "more than 10^304"
    words = _GIVEN_GROUPS if entry.definition == 3 else _WHOLE_MECHANISM
    named = ", ".join(repr(str(name)) for name in columns)
    sentences.append(
        words.format(columns=named, epsilon=f"{epsilon:g}", factor=factor, order=_ORDER.get(entry.name, ""))
    )
    sentences.append(_ASSUMED)
    if kept:
        sentences.append(
            f"NOT protected at all, released as they are: {', '.join(repr(str(name)) for name in kept)}. They can tell "
            "who a record belongs to."
        )
    return " ".join(sentences)
