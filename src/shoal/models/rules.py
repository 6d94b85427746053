"""Rules: what a group must keep, as arrays for kernels, and what a kind of rule consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["ROUNDING", "RuleKind", "Rules", "run_end"]

ROUNDING = 1e-12  # of distances and entropies


class Rules(NamedTuple):
    """Rules that groups must keep, as arrays; values of column c are numbered 0 … m−1 in their order."""

    kinds: Ints  # numbers of `shoal.models.model_registry.KINDS`
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


@kernel(counted=False)
def run_end(codes: Ints, begin: int, size: int) -> int:
    """Return where the members with the same code end."""
    end = begin + 1
    while end < size and codes[end] == codes[begin]:
        end += 1
    return end
