"""Errors and warnings. Every error message names the parameter, the rule, the value and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from shoal.core.messages import Message, Reference, without_passwords, worded

__all__ = [
    "DataBoundsWarning",
    "FileError",
    "FormulaWarning",
    "GroupsAsGivenWarning",
    "InputError",
    "LargeBudgetWarning",
    "NotKAnonymousWarning",
    "PrivacyWarning",
    "PrivateExplorationWarning",
    "SeededNoiseWarning",
    "ShoalError",
    "UnevenBudgetWarning",
    "UnprotectedColumnWarning",
    "VerificationError",
    "closest",
]


def _as_message(part: object) -> object:
    """Convert text to a message without passwords; text from another process is already a message."""
    if isinstance(part, str) and not isinstance(part, Message):
        return Message(without_passwords(part))
    return part


class _WithMessage:
    """Mixin for errors and warnings whose message refers to parameters and hides passwords."""

    args: tuple[Any, ...]

    def __init__(self, *parts: object) -> None:
        super().__init__(*map(_as_message, parts))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters named in the message, in order; the first is the rejected parameter."""
        parts = self.args[0].parts if self.args and isinstance(self.args[0], Message) else ()
        return tuple(part.name for part in parts if isinstance(part, Reference))

    def worded(self, words: Callable[[Reference], str]) -> str:
        """Return the message with parameter names for the reader (Python, command line or page)."""
        return worded(self.args[0], words) if self.args else str(self)


class ShoalError(_WithMessage, Exception):
    """Base class of all shoal errors."""


class InputError(ShoalError, ValueError):
    """Error for an invalid parameter or column."""


class FileError(ShoalError, OSError):
    """Error for a file that cannot be read or written."""


class VerificationError(ShoalError):
    """Error for a result that failed its final check; nothing was released."""


class PrivacyWarning(_WithMessage, UserWarning):
    """Warning about an option that weakens the protection of the release."""


class NotKAnonymousWarning(PrivacyWarning):
    """Warning that the release is not k-anonymous for whole records."""


class FormulaWarning(_WithMessage, UserWarning):
    """Warning about text in a CSV file that a spreadsheet would run as formulas."""


class DataBoundsWarning(PrivacyWarning):
    """Warning that the bounds of a differentially private release were read from the confidential values."""


class SeededNoiseWarning(PrivacyWarning):
    """Warning that anyone who knows or guesses the seed can reproduce the noise."""


class UnprotectedColumnWarning(PrivacyWarning):
    """Warning that a differentially private release contains unprotected columns."""


class GroupsAsGivenWarning(PrivacyWarning):
    """Warning that ε covers the values given the groups, but not the groups, which were formed from the data."""


class LargeBudgetWarning(PrivacyWarning):
    """Warning that the budget is so large that it guarantees almost nothing."""


class PrivateExplorationWarning(PrivacyWarning):
    """Warning that results computed from confidential values may decide how these values are published."""


class UnevenBudgetWarning(_WithMessage, UserWarning):
    """Warning that a column's share of the budget is so small that the column becomes almost pure noise."""


def closest(name: object, choices: Iterable[object]) -> str:
    """Return a suggestion of the names closest to an unknown name, as text to append to a message.

    Examples
    --------
    >>> closest("incme", ["income", "assets"])
    " Did you mean 'income'?"
    >>> closest("incme", ["INCOME", "Assets"])
    " Did you mean 'INCOME'?"
    """
    texts = [str(choice) for choice in choices]
    lowered = dict.fromkeys(text.lower() for text in texts)
    matches = get_close_matches(str(name).lower(), lowered, n=3, cutoff=0.6)
    near = [text for match in matches for text in texts if text.lower() == match]
    return f" Did you mean {' or '.join(repr(match) for match in near)}?" if near else ""
