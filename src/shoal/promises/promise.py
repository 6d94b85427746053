"""The interface of promises on groups, and their rules as arrays for kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["ROUNDING", "ConfidentialColumn", "GroupPromise", "RuleKind", "Rules", "is_number", "run_end"]

ROUNDING = 1e-12  # tolerance of distances and entropies


class Rules(NamedTuple):
    """Rules that groups must keep, as arrays; the values of a column are numbered 0 … m−1 in order."""

    kinds: Ints  # indices of `shoal.promises.rules.KINDS`
    bounds: Floats  # for example l or t
    factors: Floats  # c of recursive diversity
    codes: Ints  # (rules, n): the code of each record
    first: Ints  # (rules + 1,): the start of each rule's values in the next four arrays
    shares: Floats  # share of each value in the whole table
    below: Floats  # share of this value and all lower values
    guide: Ints  # entry i of m: first value with `below` ≥ i / m, where a search for a level starts
    areas: Floats  # sums of `below` over lower values; one more entry per rule
    masses: Floats  # (rules, sizes, levels): the table that speeds up closeness for small groups; may be empty


class RuleKind(NamedTuple):
    """A kind of rule and its kernels."""

    # (rules, rule, codes, size) → the measure of a group with these sorted codes, and its shortfall (0 if it keeps the
    # rule).
    measure: Any
    # (bound, n, k) → the size that groups of n records should have to keep the rule.
    size: Callable[[float, int, int], float]
    # (rules, rule, members, size, out, into, reached) → the same after `into` replaces `out`; None without a fast
    # way. Members are sorted integers with the code above the lowest 32 bits, which hold the record.
    swapped: Any = None


class GroupPromise:
    """A promise on the values of a sensitive column in every group.

    Each promise has a file in `shoal.promises` and an entry in `shoal.promises.promise_registry`.
    """

    parameter: ClassVar[str]
    """The name of its parameter."""
    kinds: ClassVar[dict[str, RuleKind]]
    """The possible kinds of its rule."""
    values: float = 0.0
    """The number of different values that a column must have."""

    def rule(self, ordered: bool) -> tuple[RuleKind, float, float]:
        """Return the kind of the rule, its bound and its factor; `ordered` is True for values with an order."""
        raise NotImplementedError

    @classmethod
    def read(cls, value: Any) -> GroupPromise:
        """Return the promise from a value of its parameter: a number, or text as written on the command line."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The promise as written on the command line."""
        raise NotImplementedError

    @property
    def says(self) -> str:
        """The promise in words."""
        raise NotImplementedError

    @property
    def measured(self) -> str:
        """The name of the group measure."""
        return self.parameter

    def reached_text(self, reached: float) -> str:
        """Return the measure of a group in words."""
        raise NotImplementedError

    def possible(self, reached: float) -> str:
        """Return the strongest promise, as text, that the groups of a table with this measure can keep."""
        raise NotImplementedError

    def number(self, reached: float) -> float:
        """Return the measure of a group as shown in a release."""
        return reached

    def worst(self, reached: Floats) -> float:
        """Return the worst measure of any group."""
        return float(reached.max())

    def scaled(self, factor: float) -> GroupPromise | None:
        """Return a stronger or weaker promise of the same kind; None if there is none."""
        return None


@dataclass(frozen=True)
class ConfidentialColumn:
    """A sensitive column of the whole table."""

    codes: Ints  # code of each record, in the order of the values
    counts: Ints  # number of records with each value
    ordered: bool


def is_number(value: Any, above: float, below: float) -> bool:
    """Return True if a value is a number strictly between two limits."""
    return not isinstance(value, bool) and isinstance(value, Real) and above < float(value) < below


@kernel(counted=False)
def run_end(codes: Ints, begin: int, size: int) -> int:
    """Return the end of the run of members with the same code."""
    end = begin + 1
    while end < size and codes[end] == codes[begin]:
        end += 1
    return end
