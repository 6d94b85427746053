"""The dominance rule: it decides which figures on an original may be published with the masked table.

The masked table reveals the mean of each group. A loss, a variance or a correlation before masking is then an equation
for the unknown deviations within groups. If one group makes up most of the figure, and has so few records that two or
three equations determine them, its values can be derived. As for tables of totals, a figure is published only if no
group of fewer than five records makes up more than a quarter of it. The best guess attributes the whole figure to such
a group, and the guessed deviations are then at least twice too large. Other losses are published as one of a few wide
ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

__all__ = [
    "FEW",
    "LIMITS",
    "PERCENT",
    "Limit",
    "is_published",
    "may_be_published",
    "published_loss",
    "withheld_columns",
]

DOMINANT = 0.25
FEW = 5  # records; only groups with fewer records can dominate
PERCENT = 10  # p of the p %-rule: no member may estimate the largest value of its group more closely
LIMITS = (5.0, 50.0, 100.0, inf)  # upper limits of the ranges for withheld losses, in percent


class Limit(float):
    """The upper limit of a withheld loss; the loss is at least the next lower limit in `LIMITS`."""


def is_published(loss: float) -> bool:
    """Return True if a published loss is an exact figure rather than a range."""
    return not isinstance(loss, Limit)


def may_be_published(figure: float, largest: float) -> bool:
    """Return True if a figure may be published; one group of fewer than `FEW` records contributes at most `largest`.

    Examples
    --------
    >>> may_be_published(13.5, 0.7), may_be_published(1.0, 1.0), may_be_published(0.0, 0.0)
    (True, False, False)
    """
    return figure > 0 and largest <= DOMINANT * figure


def published_loss(loss: float, *, precise: bool) -> float:
    """Return a loss in percent as published: rounded to three digits, or the limit of its range.

    Examples
    --------
    >>> published_loss(13.4612, precise=True), published_loss(13.4612, precise=False)
    (13.5, 50.0)
    """
    return float(f"{loss:.3g}") if precise else Limit(next(limit for limit in LIMITS if loss < limit))


def withheld_columns(losses: Mapping[Any, float], largest: Mapping[Any, float], *, total: bool) -> set[Any]:
    """Return the columns whose losses are withheld: dominated columns, and other columns that protect them.

    If the loss of all columns together is published (`total`), it reveals the total loss of the withheld columns.
    Therefore columns are withheld until that total may be published.

    Examples
    --------
    >>> losses, largest = {"a": 2.0, "b": 9.0, "c": 6.0}, {"a": 1.0, "b": 0.5, "c": 1.0}
    >>> sorted(withheld_columns(losses, largest, total=True)), withheld_columns(losses, largest, total=False)
    (['a', 'b'], {'a'})
    """
    withheld = {name for name, loss in losses.items() if not may_be_published(loss, largest[name])}
    candidates = sorted(set(losses) - withheld, key=lambda name: largest[name] - DOMINANT * losses[name])
    while withheld and total and candidates:
        if may_be_published(sum(losses[n] for n in withheld), sum(largest[n] for n in withheld)):
            break
        withheld.add(candidates.pop(0))
    return withheld
