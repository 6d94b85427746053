"""Models: promises of a group beyond k records."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from shoal.core.types import Floats, Ints
from shoal.models.rules import RuleKind

__all__ = ["ConfidentialColumn", "Model", "is_number"]


class Model:
    """A promise of the values of a confidential column in every group; each has a file in `models/promises`."""

    parameter: ClassVar[str]
    """The parameter that asks for it."""
    kinds: ClassVar[dict[str, RuleKind]]
    """The kinds of rule that it may be."""
    values: float = 0.0
    """How many different values a column must have."""

    def rule(self, ordered: bool) -> tuple[RuleKind, float, float]:
        """Return the kind of the rule, its bound and its factor; `ordered` says that the values have an order."""
        raise NotImplementedError

    @classmethod
    def read(cls, value: Any) -> Model:
        """Return one from what was given: a number, or text as it is written on the command line."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The model as written on the command line."""
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
        """Name the most that may be asked where all records together reach so much, as `text` does."""
        raise NotImplementedError

    def number(self, reached: float) -> float:
        """Return what a group reaches as a release tells it."""
        return reached

    def worst(self, reached: Floats) -> float:
        """Return the worst of what groups reach."""
        return float(reached.max())

    def scaled(self, factor: float) -> Model | None:
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
