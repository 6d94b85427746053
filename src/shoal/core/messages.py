"""Messages that refer to parameters, which Python, the command line and the page name in their own words.

`parameter`, `setting` and `option` stand in an f-string like any other text. They leave marks that `Message` reads, so
that nobody has to recognise a parameter by its spelling.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

__all__ = ["Message", "Reference", "option", "parameter", "setting", "worded"]

START, BETWEEN, END = "\ufff9", "\ufffa", "\ufffb"  # the signs of Unicode for annotations within a text


class Reference(NamedTuple):
    """A parameter, or an option of a method, that a message refers to; with a value it is a setting."""

    noun: str
    name: str
    literal: str

    @property
    def value(self) -> Any:
        """The value of a setting, as text if it is an object; None for a parameter."""
        try:
            return literal_eval(self.literal) if self.literal else None
        except (SyntaxError, ValueError):
            return self.literal

    def in_python(self) -> str:
        """Return the reference as Python writes it."""
        if not self.literal:
            return repr(self.name)
        if self.name == "kinds" and isinstance(self.value, dict):  # {column: call}
            calls = [f"{column!r}: shoal.{call}" for column, call in self.value.items()]
            return f"kinds={{{', '.join(calls)}}}"
        return f"{self.name}={self.literal}"


def parameter(name: str) -> str:
    """Refer to a parameter in a message.

    Examples
    --------
    >>> print(Message(f"{parameter('k')} must be at least 2, and {parameter('by')} is given."))
    Parameter 'k' must be at least 2, and 'by' is given.
    """
    return f"{START}Parameter{BETWEEN}{name}{BETWEEN}{END}"


def setting(name: str, value: object) -> str:
    """Refer to a parameter with a value: a word, a number, a list of columns; kinds as ``{column: call}``.

    Examples
    --------
    >>> print(Message(f"Use {setting('missing', 'drop')} or {setting('kinds', {'zip': 'Nominal()'})}."))
    Use missing='drop' or kinds={'zip': shoal.Nominal()}.
    """
    return f"{START}Parameter{BETWEEN}{name}{BETWEEN}{value!r}{END}"


def option(name: str) -> str:
    """Refer to an option of a method.

    Examples
    --------
    >>> print(Message(f"{option('bound')} needs all records at once."))
    Option 'bound' needs all records at once.
    """
    return f"{START}Option{BETWEEN}{name}{BETWEEN}{END}"


class Message(str):  # noqa: SLOT000 - pickled with its parts
    """Text as Python shows it, and the parameters that it refers to.

    Examples
    --------
    >>> message = Message(f"Use {setting('missing', 'drop')}.")
    >>> message.worded(lambda reference: f"--{reference.name} {reference.value}")
    'Use --missing drop.'
    """

    parts: tuple[str | Reference, ...]

    def __new__(cls, text: str) -> Self:
        """Read the marks of the references in a text."""
        if isinstance(text, cls):
            return text
        parts = tuple(_read(text))
        written = ""
        for part in parts:
            if isinstance(part, str):
                written += part
            else:
                first = not part.literal and (not written or written.endswith((". ", ": ")))
                written += f"{part.noun} {part.in_python()}" if first else part.in_python()
        message = super().__new__(cls, written)
        message.parts = parts
        return message

    def worded(self, words: Callable[[Reference], str]) -> str:
        """Return the text with every reference in the words of a reader."""
        return "".join(part if isinstance(part, str) else words(part) for part in self.parts)


def worded(text: str, words: Callable[[Reference], str]) -> str:
    """Return a text with every reference in the words of a reader; a plain text is returned as is."""
    return text.worded(words) if isinstance(text, Message) else text


def _read(text: str) -> Iterator[str | Reference]:
    """Split a text at its references; marks that hold none are dropped."""
    plain, *marked = text.split(START)
    yield plain
    for part in marked:
        inside, _, plain = part.partition(END)
        fields = inside.split(BETWEEN)
        if len(fields) == len(Reference._fields):
            yield Reference(*fields)
        yield plain
