"""Population risk: the probability that an intruder finds a sample record in the population by its key.

R. Benedetti and L. Franconi (1998), L. Franconi and S. Polettini, Individual risk estimation in μ-Argus (PSD 2004). Let
f sample records with the same key have weights that sum to F. The number of people with this key in the population is
modelled as negative binomial with p = f/F. The risk of each record is the expected inverse of this number,

    r = (p / f) ₂F₁(1, 1; f + 1; 1 − p),

which is (p / (1 − p)) log(1 / p) for f = 1. For f > 2, the risk is computed as p / (f − (1 − p)), as in ``indivRisk``
and ``measure_risk`` of sdcMicro; this value is up to 4 % larger. A missing cell counts as a separate value; it does not
match all others. The computation takes O(n) time once the keys are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.assessment.statistics import Pair
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints
from shoal.masking.verification import identical_records

if TYPE_CHECKING:
    from shoal.assessment.measure_registry import TablePair

__all__ = ["PopulationRisk", "individual_risk", "measure", "population_risk"]


@dataclass(frozen=True)
class PopulationRisk:
    """The risk of being found in the population by the keys, before and after masking.

    Parameters
    ----------
    expected
        The global risk: the expected number of records found, which is the sum of the individual risks.
    share
        The global risk as a share of all records.
    highest
        The highest individual risk.
    household
        The mean risk of a record's household, 1 − Π (1 − r) over its members; None without household data.
    weighted
        True if records have weights; otherwise the table is treated as the population, and the risk is 1/f.
    """

    expected: Pair
    share: Pair
    highest: Pair
    household: Pair | None = None
    weighted: bool = True

    name: ClassVar[str] = "risk in the population"
    means: ClassVar[str] = (
        "An intruder who knows that a person is in the table and links by the keys is right for this many records, if "
        "the weights are the numbers of people that the records represent; a household is found if any member is found."
    )
    limits: ClassVar[str] = (
        "It does not cover an intruder who knows more than the keys, and it is an estimate by a model of the "
        "population, not a count."
    )

    @property
    def figure(self) -> str:
        """The result in words."""

        def text_of(pair: Pair) -> str:
            return f"{100 * pair.before:.2f} % before, {100 * pair.after:.2f} % after"

        text = (
            f"{self.expected.before:,.1f} records expected to be found before, {self.expected.after:,.1f} after "
            f"(on average {text_of(self.share)}; highest {text_of(self.highest)})"
        )
        if self.household is not None:
            text += f"; households {text_of(self.household)}"
        return text if self.weighted else f"{text}; no weights: the table is the population"


def population_risk(
    before: Ints, after: Ints, weights: Floats | None = None, households: Ints | None = None
) -> PopulationRisk:
    """Estimate the risk of all records in both tables.

    `before` and `after` contain the number of each record's key, 0, 1, …, and `households` the number of its household.
    If the weights of a key sum to less than its number of records, these records count as its whole population.

    Examples
    --------
    >>> population_risk(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])).expected
    Pair(before=3.0, after=2.0)
    """
    risks = [individual_risk(keys, weights) for keys in (before, after)]
    together = None if households is None else Pair(*(float(_households(r, households).mean()) for r in risks))
    return PopulationRisk(
        expected=Pair(*(float(r.sum()) for r in risks)),
        share=Pair(*(float(r.mean()) for r in risks)),
        highest=Pair(*(float(r.max()) for r in risks)),
        household=together,
        weighted=weights is not None,
    )


def measure(tables: TablePair) -> PopulationRisk:
    """Measure the risk in the population by the keys."""
    before, after = (identical_records(list(codes.T)) for codes in tables.keys)
    return population_risk(before, after, tables.weights, tables.households)


def individual_risk(keys: Ints, weights: Floats | None = None) -> Floats:
    """Return the individual risk of each record.

    Examples
    --------
    >>> individual_risk(np.array([0, 1, 1]), np.array([17.0, 30.0, 80.0])).round(6).tolist()
    [0.177076, 0.017144, 0.017144]
    """
    from scipy.special import hyp2f1

    sizes = group_sizes(keys)
    if weights is None:
        return 1 / sizes[keys]
    p = np.minimum(1.0, sizes / np.bincount(keys, weights))
    risks: Floats = np.where(sizes > 2, p / (sizes - (1 - p)), p / sizes * hyp2f1(1, 1, sizes + 1, 1 - p))
    return risks[keys]


def _households(risks: Floats, households: Ints) -> Floats:
    """Return the risk of each record's household, 1 − Π (1 − r) over its members."""
    with np.errstate(divide="ignore"):  # for a risk of 1
        safe = np.bincount(households, np.log1p(-risks))
    return -np.expm1(safe)[households]
