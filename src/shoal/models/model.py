"""What may be asked of a group beyond k records, and its rules as kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np

from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints
from shoal.models.rules import DISTINCT, ENTROPY, NOMINAL, ORDERED, RECURSIVE, Rules

__all__ = ["Closeness", "Confidential", "Diversity", "Model", "make_rules"]


class Model(Protocol):
    """What the values of a confidential column must be like in every group."""

    def rule(self, ordered: bool) -> tuple[int, float, float]:
        """Return the kind of the rule, its bound and its factor; `ordered` says that the values have an order."""

    @property
    def parameter(self) -> str:
        """The parameter that asks for it."""

    @property
    def text(self) -> str:
        """How it is written on the command line."""

    @property
    def says(self) -> str:
        """What it promises, in words."""

    def worst(self, found: Floats) -> float:
        """Return the worst of what groups reach."""

    def told(self, reached: float) -> str:
        """Say what a group reaches."""


@dataclass(frozen=True)
class Diversity:
    """l-diversity: every group holds at least l well-represented values (Machanavajjhala et al. 2007).

    Parameters
    ----------
    least
        l, at least 2.
    kind
        ``"distinct"``: l different values; ``"entropy"``: an entropy of at least log l; ``"recursive"``: the most
        frequent value has fewer than `c` times the records of the l-th most frequent one and all rarer ones together.
    c
        The factor of recursive diversity.

    Examples
    --------
    >>> Diversity(3, "entropy")
    Diversity(least=3, kind='entropy', c=3.0)
    """

    least: float
    kind: str = "distinct"
    c: float = 3.0
    kinds: ClassVar = {"distinct": DISTINCT, "entropy": ENTROPY, "recursive": RECURSIVE}
    parameter: ClassVar = "diversity"

    def __post_init__(self) -> None:
        if self.kind not in self.kinds:
            raise InputError(
                f"Parameter 'diversity' must be of kind {', '.join(map(repr, self.kinds))}, got {self.kind!r}."
            )
        if not _is_number(self.least, 1, inf) or not (self.kind == "entropy" or float(self.least).is_integer()):
            raise InputError(f"Parameter 'diversity' must be a whole number of at least 2, got {self.least!r}.")
        if not _is_number(self.c, 0, inf):
            raise InputError(f"Parameter 'diversity' must have a positive factor c, got {self.c!r}.")

    @classmethod
    def read(cls, given: object) -> Diversity:
        """Return one that is given as such, as a number, or as text.

        Examples
        --------
        >>> Diversity.read("recursive:3:2")
        Diversity(least=3.0, kind='recursive', c=2.0)
        """
        if isinstance(given, Diversity):
            return given
        if not isinstance(given, str):
            return cls(given)  # type: ignore[arg-type]
        kind, *numbers = given.split(":") if ":" in given else ("distinct", given)
        try:
            least, *c = map(float, numbers)
        except ValueError:
            least, c = 0.0, [0.0, 0.0]
        if len(c) > (kind == "recursive"):
            raise InputError(
                f"Parameter 'diversity' must read like 3, entropy:3 or recursive:3:2 (l, then c), got {given!r}."
            )
        return cls(least, kind, *c)

    @property
    def text(self) -> str:
        """How it is written on the command line."""
        if self.kind == "distinct":
            return f"{self.least:g}"
        return f"{self.kind}:{self.least:g}" + (f":{self.c:g}" if self.kind == "recursive" else "")

    @property
    def says(self) -> str:
        """What it promises, in words."""
        if self.kind == "distinct":
            return f"at least {self.least:g} different values"
        if self.kind == "entropy":
            return f"an entropy of at least log {self.least:g}"
        return f"recursive ({self.c:g}, {self.least:g})-diversity"

    def rule(self, ordered: bool) -> tuple[int, float, float]:
        """Return the kind of the rule, l and c."""
        return self.kinds[self.kind], float(self.least), float(self.c)

    def worst(self, found: Floats) -> float:
        """Return the least number of values or entropy, or the greatest ratio."""
        return float(found.max() if self.kind == "recursive" else found.min())

    def told(self, reached: float) -> str:
        """Say what a group reaches."""
        if self.kind == "distinct":
            return f"{reached:.0f} different values"
        return f"an entropy of log {exp(reached):.4g}" if self.kind == "entropy" else f"a ratio of {reached:.4g}"


@dataclass(frozen=True)
class Closeness:
    """t-closeness: the values of every group are distributed as in the whole table, up to a distance of t.

    The distance is the earth mover's: of values with an order Σ_i |Σ_{j≤i} (p_j − q_j)| / (m−1) over the m values, of
    others the total variation (Li, Li and Venkatasubramanian 2007).

    Examples
    --------
    >>> Closeness(0.2)
    Closeness(t=0.2)
    """

    t: float
    parameter: ClassVar = "closeness"

    def __post_init__(self) -> None:
        if self.t != 0 and not _is_number(self.t, 0, 1):
            raise InputError(f"Parameter 'closeness' must be a number from 0 to below 1, got {self.t!r}.")

    @classmethod
    def read(cls, given: object) -> Closeness:
        """Return one that is given as such, as a number, or as text.

        Examples
        --------
        >>> Closeness.read("0.2")
        Closeness(t=0.2)
        """
        if isinstance(given, str):
            try:
                return cls(float(given))
            except ValueError:
                raise InputError(f"Parameter 'closeness' must be a number from 0 to below 1, got {given!r}.") from None
        return given if isinstance(given, Closeness) else cls(given)  # type: ignore[arg-type]

    @property
    def text(self) -> str:
        """How it is written on the command line."""
        return f"{self.t!r}"

    @property
    def says(self) -> str:
        """What it promises, in words."""
        return f"a distribution at most {self.t:g} from that of the table"

    def rule(self, ordered: bool) -> tuple[int, float, float]:
        """Return the kind of the rule and t."""
        return (ORDERED if ordered else NOMINAL), float(self.t), 0.0

    def worst(self, found: Floats) -> float:
        """Return the greatest distance."""
        return float(found.max())

    def told(self, reached: float) -> str:
        """Say what a group reaches."""
        return f"a distance of {reached:.4g}"


def _is_number(given: Any, above: float, below: float) -> bool:
    return not isinstance(given, bool) and isinstance(given, Real) and above < float(given) < below


@dataclass(frozen=True)
class Confidential:
    """A confidential column through the whole table."""

    codes: Ints  # of each record, in the order of the values
    counts: Ints  # of each value
    ordered: bool


def make_rules(columns: Sequence[Confidential], models: Sequence[tuple[int, Model]], n: int) -> Rules:
    """Return rules for kernels.

    Parameters
    ----------
    columns
        The confidential columns.
    models
        Models, each with the number of its column.
    n
        How many records there are.

    Examples
    --------
    >>> column = Confidential(np.array([0, 1, 1]), np.array([1, 2]), ordered=True)
    >>> make_rules([column], [(0, Closeness(0.2))], 3).shares.round(3).tolist()
    [0.333, 0.667]
    """
    kinds = [model.rule(columns[place].ordered) for place, model in models]
    shares: list[Floats] = [columns[place].counts / columns[place].counts.sum() for place, _ in models]
    below = [np.minimum(np.cumsum(share), 1.0) for share in shares]
    for level in below:
        level[-1:] = 1.0
    guides = [np.searchsorted(level, np.arange(len(level)) / len(level)) for level in below]
    codes = [columns[place].codes for place, _ in models]
    return Rules(
        np.array([kind for kind, _, _ in kinds], dtype=np.int64),
        np.array([bound for _, bound, _ in kinds]),
        np.array([factor for _, _, factor in kinds]),
        np.ascontiguousarray(np.stack(codes), dtype=np.int64) if codes else np.empty((0, n), dtype=np.int64),
        np.cumsum([0, *map(len, shares)]),
        np.concatenate([*shares, np.empty(0)]),
        np.concatenate([*below, np.empty(0)]),
        np.concatenate([*guides, np.empty(0, dtype=np.int64)]).astype(np.int64),
        np.concatenate([*(np.r_[0.0, np.cumsum(level)] for level in below), np.empty(0)]),
        np.empty((len(models), 0, 0)),
    )
