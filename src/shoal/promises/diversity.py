"""l-diversity: groups with at least l well-represented values (Machanavajjhala et al. 2007). O(s) per group of s."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, exp, floor, inf
from typing import Any, ClassVar

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.promises.promise import ROUNDING, GroupPromise, RuleKind, Rules, is_number, run_end

__all__ = ["Diversity"]

ROOM = 1.7  # factor on the least size; groups of exactly that size leave the search no choice


@kernel(counted=False)
def _count(codes: Ints, size: int) -> int:
    count = 1
    for j in range(1, size):
        if codes[j] != codes[j - 1]:
            count += 1
    return count


@kernel(counted=False)
def _distinct(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    count = float(_count(codes, size))
    return count, max(0.0, 1.0 - count / rules.bounds[rule])


@kernel(counted=False)
def _entropy(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    entropy, begin = 0.0, 0
    while begin < size:
        end = run_end(codes, begin, size)
        share = (end - begin) / size
        entropy -= share * np.log(share)
        begin = end
    lacking = np.log(rules.bounds[rule]) - entropy
    return entropy, lacking if lacking > ROUNDING else 0.0


@kernel(counted=False)
def _recursive(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    """Return r_1 / (r_l + … + r_m) for descending counts r, infinite with fewer than l values, and the shortfall."""
    bound, factor = rules.bounds[rule], rules.factors[rule]
    ratio = _ratio(codes, size, int(bound))
    if ratio < factor:
        return ratio, 0.0
    # If the ratio is infinite because the group has too few values, the shortfall counts the values it lacks.
    return ratio, 1.0 + bound - _count(codes, size) if ratio == np.inf else 1.0 - factor / (ratio + 1.0)


@kernel(counted=False)
def _ratio(codes: Ints, size: int, rare: int) -> float:
    """Return the ratio; visit values by descending frequency (ties: lowest first), without extra memory."""
    largest, frequent, before, place = 0, 0, size + 1, -1
    for value in range(rare):
        count, position, begin = 0, -1, 0
        while begin < size:
            end = run_end(codes, begin, size)
            later = end - begin < before or (end - begin == before and begin > place)
            if later and end - begin > count:
                count, position = end - begin, begin
            begin = end
        if position < 0:
            return np.inf
        if value == 0:
            largest = count
        if value < rare - 1:
            frequent += count
        before, place = count, position
    return largest / (size - frequent)


def _size(bound: float, n: int, k: int) -> float:
    return ROOM * max(k, bound)


@dataclass(frozen=True)
class Diversity(GroupPromise):
    """l-diversity: every group contains at least l well-represented values (Machanavajjhala et al. 2007).

    Parameters
    ----------
    least
        l, at least 2.
    kind
        ``"distinct"``: l different values; ``"entropy"``: an entropy of at least log l; ``"recursive"``: the most
        frequent value has fewer than `c` times as many records as the l-th most frequent and all rarer values together.
    c
        The factor c of recursive diversity.

    Examples
    --------
    >>> Diversity(3, "entropy")
    Diversity(least=3, kind='entropy', c=3.0)
    """

    least: float
    kind: str = "distinct"
    c: float = 3.0
    parameter: ClassVar = "diversity"
    kinds: ClassVar = {
        "distinct": RuleKind(_distinct, _size),
        "entropy": RuleKind(_entropy, _size),
        "recursive": RuleKind(_recursive, _size),
    }

    def __post_init__(self) -> None:
        if self.kind not in self.kinds:
            raise InputError(
                f"{parameter('diversity')} must have one of the kinds {', '.join(map(repr, self.kinds))}, got "
                f"{self.kind!r}."
            )
        if not is_number(self.least, 1, inf) or not (self.kind == "entropy" or float(self.least).is_integer()):
            raise InputError(f"{parameter('diversity')} must be a whole number of at least 2, got {self.least!r}.")
        if not is_number(self.c, 0, inf):
            raise InputError(f"{parameter('diversity')} must have a positive factor c, got {self.c!r}.")

    @classmethod
    def read(cls, value: Any) -> Diversity:
        """Return the promise from an instance, a number or text.

        Examples
        --------
        >>> Diversity.read("recursive:3:2")
        Diversity(least=3.0, kind='recursive', c=2.0)
        """
        if isinstance(value, Diversity):
            return value
        if not isinstance(value, str):
            return cls(value)
        kind, *numbers = value.split(":") if ":" in value else ("distinct", value)
        try:
            minimum, *c = map(float, numbers)
        except ValueError:
            minimum, c = 0.0, [0.0, 0.0]
        if len(c) > (kind == "recursive"):
            raise InputError(
                f"{parameter('diversity')} must read like 3, entropy:3 or recursive:3:2 (l, then c), got {value!r}."
            )
        return cls(minimum, kind, *c)

    @property
    def values(self) -> float:  # type: ignore[override]
        """The number of different values that a column must have."""
        return self.least

    @property
    def text(self) -> str:
        """The promise as written on the command line."""
        if self.kind == "distinct":
            return f"{self.least:g}"
        return f"{self.kind}:{self.least:g}" + (f":{self.c:g}" if self.kind == "recursive" else "")

    @property
    def says(self) -> str:
        """The promise in words."""
        if self.kind == "distinct":
            return f"at least {self.least:g} different values"
        if self.kind == "entropy":
            return f"an entropy of at least log {self.least:g}"
        return f"recursive ({self.c:g}, {self.least:g})-diversity"

    def rule(self, ordered: bool) -> tuple[RuleKind, float, float]:
        """Return the kind of the rule, l and c."""
        return self.kinds[self.kind], float(self.least), float(self.c)

    @property
    def measured(self) -> str:
        """The name of the group measure."""
        return "diversity" if self.kind == "distinct" else self.kind

    def reached_text(self, reached: float) -> str:
        """Return the measure of a group in words."""
        if self.kind == "distinct":
            return f"{reached:.0f} different values"
        return f"an entropy of log {exp(reached):.4g}" if self.kind == "entropy" else f"a ratio of {reached:.4g}"

    def possible(self, reached: float) -> str:
        """Return the largest l, or the smallest c, that the groups of a table with this measure can keep."""
        if self.kind == "recursive" and reached < inf:
            return f"diversity recursive:{self.least:g}:{ceil(1e4 * reached + 0.5) / 1e4:g}"
        minimum = floor(1e4 * exp(reached) + 1e-6) / 1e4 if self.kind == "entropy" else reached
        return f"diversity {replace(self, least=minimum).text}" if 1 < minimum < inf else "a smaller l"

    def number(self, reached: float) -> float:
        """Return the measure of a group as shown in a release; an entropy is shown as its l."""
        return exp(reached) if self.kind == "entropy" else reached

    def worst(self, reached: Floats) -> float:
        """Return the worst measure: the least number of values or entropy, or the greatest ratio."""
        return float(reached.max() if self.kind == "recursive" else reached.min())

    def scaled(self, factor: float) -> Diversity | None:
        """Return a promise with a scaled l; None if l does not change."""
        minimum = max(2, round(1 + factor * (self.least - 1)))
        return replace(self, least=minimum) if minimum != self.least else None
