"""Errors and warnings of shoal: every refusal names what, the rule, the value and the way out."""

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
    """Return a text as a message; one that comes from another process is a message already."""
    if isinstance(part, str) and not isinstance(part, Message):
        return Message(without_passwords(part))
    return part


class _WithMessage:
    """An error or a warning whose message refers to parameters, and shows no password of an address."""

    args: tuple[Any, ...]

    def __init__(self, *parts: object) -> None:
        super().__init__(*map(_as_message, parts))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that the message refers to, in order: the first is the refused one."""
        parts = self.args[0].parts if self.args and isinstance(self.args[0], Message) else ()
        return tuple(part.name for part in parts if isinstance(part, Reference))

    def worded(self, words: Callable[[Reference], str]) -> str:
        """Return the message with every parameter in the words of a reader."""
        return worded(self.args[0], words) if self.args else str(self)


class ShoalError(_WithMessage, Exception):
    """Base of everything that shoal refuses to do."""


class InputError(ShoalError, ValueError):
    """A parameter or a column does not fit its rule."""


class FileError(ShoalError, OSError):
    """A file cannot be read or written as asked."""


class VerificationError(ShoalError):
    """A result failed its last check; nothing was released."""


class PrivacyWarning(_WithMessage, UserWarning):
    """An option weakens what the release promises."""


class NotKAnonymousWarning(PrivacyWarning):
    """The release is not k-anonymous for whole records."""


class FormulaWarning(_WithMessage, UserWarning):
    """A CSV file holds text that a spreadsheet would run as formulas."""


class DataBoundsWarning(PrivacyWarning):
    """The bounds of a differentially private release were read from the confidential values."""


class SeededNoiseWarning(PrivacyWarning):
    """The noise can be drawn again by whoever knows or guesses the seed."""


class UnprotectedColumnWarning(PrivacyWarning):
    """A differentially private release carries columns that are not protected."""


class GroupsAsGivenWarning(PrivacyWarning):
    """Epsilon covers values with the groups as given, and the release shows groups that follow the data."""


class LargeBudgetWarning(PrivacyWarning):
    """The budget is so large that it promises next to nothing."""


class PrivateExplorationWarning(PrivacyWarning):
    """What was computed from the confidential values is about to decide how they are published."""


class UnevenBudgetWarning(_WithMessage, UserWarning):
    """A column gets so little of the budget that noise is all that is left of it."""


def closest(name: object, choices: Iterable[object]) -> str:
    """Hint at the names nearest to a wrong one, ready to append to a message.

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
