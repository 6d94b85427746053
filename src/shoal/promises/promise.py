"""A promise of groups beyond k records, and its rule as arrays for kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["ROUNDING", "ConfidentialColumn", "GroupPromise", "RuleKind", "Rules", "is_number", "run_end"]

ROUNDING = 1e-12  # of distances and entropies


class Rules(NamedTuple):
    """Rules that groups must keep, as arrays; values of column c are numbered 0 … m−1 in their order."""

    kinds: Ints  # numbers of `shoal.promises.rules.KINDS`
    bounds: Floats  # such as l or t
    factors: Floats  # c of recursive diversity
    codes: Ints  # (rules, n): the code of each record
    first: Ints  # (rules + 1,): where the values of each rule begin in the next four
    shares: Floats  # of each value in the whole table
    below: Floats  # of this value and those before it
    guide: Ints  # for value i of m: the first value with at least the share i / m below, where a level is looked for
    areas: Floats  # sums of `below` before this value; one more for each rule
    masses: Floats  # (rules, sizes, levels): what closeness knows of small groups, where it was asked for


class RuleKind(NamedTuple):
    """A kind of rule."""

    # (rules, rule, codes, size) → what a group reaches, and how far it is from being allowed, 0 if it is; the codes of
    # its members are sorted.
    measure: Any
    # (bound, n, k) → how large groups of n records should be to keep it.
    size: Callable[[float, int, int], float]
    # (rules, rule, members, size, out, into, reached) → the same after one member is swapped for another, where that
    # can be told faster; members are sorted, with the code above the lowest 32 bits.
    swapped: Any = None


class GroupPromise:
    """A promise of the values of a confidential column in every group.

    Each has a file in `shoal.promises`, and its parameter an entry in `shoal.promises.promise_registry`.
    """

    parameter: ClassVar[str]
    """The name of its parameter."""
    kinds: ClassVar[dict[str, RuleKind]]
    """The kinds of rule that it may be."""
    values: float = 0.0
    """The number of different values that a column must have."""

    def rule(self, ordered: bool) -> tuple[RuleKind, float, float]:
        """Return the kind of the rule, its bound and its factor; `ordered` says that the values have an order."""
        raise NotImplementedError

    @classmethod
    def read(cls, value: Any) -> GroupPromise:
        """Return one from a value of its parameter: a number, or text as written on the command line."""
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
        """The name of what groups reach."""
        return self.parameter

    def reached_text(self, reached: float) -> str:
        """Say what a group reaches."""
        raise NotImplementedError

    def possible(self, reached: float) -> str:
        """Name the strongest promise that can be kept where all records together reach so much, as `text` does."""
        raise NotImplementedError

    def number(self, reached: float) -> float:
        """Return what a group reaches as a release shows it."""
        return reached

    def worst(self, reached: Floats) -> float:
        """Return the worst of what groups reach."""
        return float(reached.max())

    def scaled(self, factor: float) -> GroupPromise | None:
        """Return a stronger or weaker promise of the same kind; None if there is none."""
        return None


@dataclass(frozen=True)
class ConfidentialColumn:
    """A confidential column through the whole table."""

    codes: Ints  # of each record, in the order of the values
    counts: Ints  # of each value
    ordered: bool


def is_number(value: Any, above: float, below: float) -> bool:
    """Say whether something is a number between two others."""
    return not isinstance(value, bool) and isinstance(value, Real) and above < float(value) < below


@kernel(counted=False)
def run_end(codes: Ints, begin: int, size: int) -> int:
    """Return where the members with the same code end."""
    end = begin + 1
    while end < size and codes[end] == codes[begin]:
        end += 1
    return end
