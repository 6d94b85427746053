"""The guarantee of a release in words: the records that ε covers, the definition of privacy and the remaining risk."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shoal.privacy.budgets import guess_of
from shoal.privacy.privacy_unit import Unit
from shoal.privacy.publication_methods import PublicationMethod
from shoal.tables.columns import Name

__all__ = ["factor", "guarantee", "learnt"]

_GIVEN_GROUPS = (
    "This is differential privacy in the sense of Definition 3 of Soria-Comas and Domingo-Ferrer (2018), for the "
    "individuals behind the microaggregated table: with the groups taken as given, replacing {values} in {columns} by "
    "any others within the bounds changes the probability of any released values by a factor of at most e^{epsilon} = "
    "{factor}. The groups themselves are not covered: {formed}the release shows which records share a value, hence "
    "every group and its size. It is therefore NOT ε-differentially private as a mechanism from raw table to released "
    "table (Definition 1); methods 'none', 'insensitive' and 'insensitive-ir' are. Records are in the order of the "
    "input."
)
_FORMED = "they were formed from the confidential values, and "
_WHOLE_MECHANISM = (
    "This is ε-differential privacy (Definition 1) from raw table to released table: replacing {values} in {columns} "
    "by any others within the bounds changes the probability of any release by a factor of at most e^{epsilon} = "
    "{factor}. {order}"
)
_COUNTED = (
    "This is (ε, δ)-differential privacy (Definition 1, except for δ) from raw table to released table: replacing "
    "{values} in {columns} by any others in the domain raises the probability p of any set of releases to at most "
    "e^{epsilon} · p + δ = {factor} · p + {delta}. It is accounted in zCDP, with ρ = {rho}. The released records were "
    "drawn from a model of noisy counts: none of them belongs to anybody, and there are as many as in the table."
)
_ORDER = {
    "none": (
        "Records are in the order of the input, each with independent noise; that order must not itself depend on "
        "confidential values (the order of a table sorted by income reveals incomes)."
    ),
    "insensitive": (
        "Records are in the order of their groups, not in the order of the input: a released row belongs to nobody in "
        "particular, and no other column can be joined to it."
    ),
    "insensitive-ir": (
        "Every column has an order of its own, not the order of the input: a released row belongs to nobody in "
        "particular, its cells do not belong together, and relations between columns cannot be seen."
    ),
}
_ONE_RECORD = (
    "It assumes one record per person: no unit column was set, so a person with m records is protected by {m_times} "
    "only."
)
_UNIT = (
    "The records of one {unit} share ε: the noise is {noise}. It assumes as public knowledge, not read from the table, "
    "that no {unit} has more than {m} records; in the table none has. Column {unit} is not released{order}."
)
_TIED = ", but if the order of the input keeps the records of one {unit} together, so does the release"
_ASSUMED = (
    "It also assumes that the number of records and the bounds are public knowledge. Publishing the same people again "
    "spends budget again: budgets add up."
)
_LEARNT_OF_GROUPS = (
    "An attacker who knows all other records can try every possible value of the missing one, form the groups again "
    "and exclude each value that yields other groups than those released. ε does not limit this: it may leave a small "
    "part of the domain, or only the true value. Use such a method only if the groups of the records, and all "
    "conclusions from them, may become public."
)
_LEARNT_FROM_COUNTS = (
    "An attacker who knows all other records and has two equally likely guesses of the missing one is right with a "
    "probability of at most {guess} after seeing the release; 0.5 would be a coin toss. No value is excluded. Facts "
    "that are true of everybody can be learnt about each person: no method prevents that."
)
_LEARNT_WITHIN_EPSILON = (
    "An attacker who knows all other records, and considers one value of the missing record x times as likely as "
    "another before seeing the release, may consider it at most {factor} · x times as likely afterwards. This holds "
    "for any two values. Facts that are true of everybody can be learnt about each person: no method prevents that."
)


def factor(epsilon: float) -> str:
    """Return e^ε as text.

    Examples
    --------
    >>> factor(1.0), factor(1000.0)
    ('2.72', 'more than 10^304')
    """
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "more than 10^304"


def learnt(entry: PublicationMethod, epsilon: float, rho: float | None = None) -> str:
    """Describe what an attacker who knows all other records can learn about one record."""
    if rho is not None:
        return _LEARNT_FROM_COUNTS.format(guess=f"{math.ceil(100 * guess_of(rho, epsilon)) / 100:g}")
    return _LEARNT_OF_GROUPS if entry.definition == 3 else _LEARNT_WITHIN_EPSILON.format(factor=factor(epsilon))


def guarantee(
    entry: PublicationMethod,
    epsilon: float,
    columns: Sequence[Name],
    *,
    unprotected: Sequence[Name] = (),
    unit: Unit | None = None,
    data_bounds: bool = False,
    seeded: bool = False,
    counted: tuple[float, float] | None = None,
) -> str:
    """Return the guarantee of a release and its limits in plain words; `counted` is (δ, ρ) if the release has a δ.

    Examples
    --------
    >>> from shoal.privacy.publication_methods import find_publication_method
    >>> guarantee(find_publication_method("none"), 1.0, ["sales"])
    "This is ε-differential privacy (Definition 1) from raw table to released table: ..."
    """
    sentences = []
    if seeded:
        sentences.append(
            "NO GUARANTEE HOLDS: the noise was drawn from a seed, so anyone who knows or guesses it can remove the "
            "noise. For experiments only, not for release. Without the seed:"
        )
    if data_bounds:
        sentences.append(
            "NO GUARANTEE HOLDS: the bounds were read from the confidential values (bounds='data'). For experiments "
            "only, not for release. With public bounds:"
        )
    words = _GIVEN_GROUPS if entry.definition == 3 else _WHOLE_MECHANISM if counted is None else _COUNTED
    delta, rho = (0.0, None) if counted is None else counted
    terms = {
        "columns": ", ".join(repr(str(name)) for name in columns),
        "epsilon": f"{epsilon:g}",
        "factor": factor(epsilon),
        "delta": f"{delta:g}",
        "rho": "0" if rho is None else f"{rho:.4g}",
        "formed": "" if entry.name == "given" else _FORMED,
    }
    values = "one person's values" if entry.definition == 3 else "one record's values"
    if unit is not None:
        values = f"the values of all records of one {str(unit.column)!r} (at most {unit.contributions})"
    sentences.append(words.format(**terms, values=values, order=_ORDER.get(entry.name, "")))
    sentences.append(learnt(entry, epsilon, rho))
    if unit is None:
        sentences.append(_ONE_RECORD.format(m_times="m·ε" if counted is None else "m²·ρ"))
    else:
        sentences.append(_shared(entry, epsilon, unit, counted=counted is not None))
    sentences.append(_ASSUMED)
    if unprotected:
        sentences.append(
            f"NOT protected at all, released unchanged: {', '.join(repr(str(name)) for name in unprotected)}. They can "
            "reveal whom a record belongs to."
        )
    return " ".join(sentences)


def _shared(entry: PublicationMethod, epsilon: float, unit: Unit, *, counted: bool) -> str:
    """Describe how the records of a unit share its budget."""
    name, m = repr(str(unit.column)), unit.contributions
    noise = f"{m} times that of single records" if counted else f"that of ε/{m} = {epsilon / m:.6g} for each record"
    order = _TIED.format(unit=name) if entry.keeps_rows else ""
    return _UNIT.format(unit=name, m=m, noise=noise, order=order)
