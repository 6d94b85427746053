"""Messages: references to parameters, counts with nouns, short lists, and text that is safe to display.

Python, the command line and the page use different names for parameters. `parameter`, `setting` and `option` put marks
into ordinary f-strings. `Message` reads the marks, so parameters need not be recognised by their spelling.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, Self

__all__ = [
    "Message",
    "Reference",
    "agreeing",
    "clauses",
    "count",
    "count_holders",
    "holders",
    "listed",
    "option",
    "parameter",
    "setting",
    "summary_lines",
    "visible",
    "without_passwords",
    "worded",
]

START, BETWEEN, END = "\ufff9", "\ufffa", "\ufffb"  # Unicode's interlinear annotation characters
MOST_LISTED = 5  # maximum number of names shown in a message
LONGEST = 100  # maximum number of characters shown of a name in a list
CLAUSE = 7 * LONGEST  # the same for a clause, which may itself contain a list of names

# Control characters (C0, DEL, C1), line and paragraph separators, marks of writing direction, and lone surrogates.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# postgresql://user:password@host, also with the single slash that pathlib leaves, and …?password=…
# A user name may contain @; a password may contain quotes.
PASSWORD = re.compile(r"\b[a-z][a-z0-9+.-]+:/{1,2}[^\s:/'\"]*:([^\s\"]*)@", re.IGNORECASE)
PASSWORD_OPTION = re.compile(
    r"([?&;][\w.-]*(?:password|passwd|pwd|secret|token|key|sig|signature|credential)=)[^\s&;'\"]+", re.IGNORECASE
)


class Reference(NamedTuple):
    """A reference in a message to a parameter or a method's option; with a value, it is a setting."""

    noun: str
    name: str
    literal: str

    @property
    def value(self) -> Any:
        """The value of a setting, or its text if the value is not a literal; None for a parameter."""
        try:
            return literal_eval(self.literal) if self.literal else None
        except (SyntaxError, ValueError):
            return self.literal

    def in_python(self) -> str:
        """Return the reference in Python syntax."""
        if not self.literal:
            return repr(self.name)
        if self.name == "kinds" and isinstance(self.value, dict):  # {column: call}
            calls = [f"{column!r}: shoal.{call}" for column, call in self.value.items()]
            return f"kinds={{{', '.join(calls)}}}"
        return f"{self.name}={self.literal}"


def parameter(name: str) -> str:
    """Return a reference to a parameter, for use in a message.

    Examples
    --------
    >>> print(Message(f"{parameter('k')} must be at least 2, and {parameter('by')} is given."))
    Parameter 'k' must be at least 2, and 'by' is given.
    """
    return f"{START}Parameter{BETWEEN}{name}{BETWEEN}{END}"


def setting(name: str, value: object) -> str:
    """Return a reference to a parameter with a value, such as a word, a number or a list of columns.

    The value of kinds has the form ``{column: call}``.

    Examples
    --------
    >>> print(Message(f"Use {setting('missing', 'drop')} or {setting('kinds', {'zip': 'Nominal()'})}."))
    Use missing='drop' or kinds={'zip': shoal.Nominal()}.
    """
    return f"{START}Parameter{BETWEEN}{name}{BETWEEN}{value!r}{END}"


def option(name: str) -> str:
    """Return a reference to an option of a method, for use in a message.

    Examples
    --------
    >>> print(Message(f"{option('bound')} needs all records at once."))
    Option 'bound' needs all records at once.
    """
    return f"{START}Option{BETWEEN}{name}{BETWEEN}{END}"


class Message(str):  # noqa: SLOT000 - pickled with its parts
    """The text of a message as shown in Python, with references to parameters.

    Examples
    --------
    >>> message = Message(f"Use {setting('missing', 'drop')}.")
    >>> message.worded(lambda reference: f"--{reference.name} {reference.value}")
    'Use --missing drop.'
    """

    parts: tuple[str | Reference, ...]

    def __new__(cls, text: str) -> Self:
        """Parse the marks of the references in a text."""
        if isinstance(text, cls):
            return text
        parts = tuple(_read(text))
        rendered = ""
        for part in parts:
            if isinstance(part, str):
                rendered += part
            else:
                first = not part.literal and (not rendered or rendered.endswith((". ", ": ")))
                rendered += f"{part.noun} {part.in_python()}" if first else part.in_python()
        message = super().__new__(cls, rendered)
        message.parts = parts
        return message

    def worded(self, words: Callable[[Reference], str]) -> str:
        """Return the text with every reference in the reader's words."""
        return "".join(part if isinstance(part, str) else words(part) for part in self.parts)


def worded(text: str, words: Callable[[Reference], str]) -> str:
    """Return a text with every reference in the reader's words; plain text is returned unchanged."""
    return text.worded(words) if isinstance(text, Message) else text


def summary_lines(rows: Iterable[tuple[str, object]]) -> str:
    """Return a summary as text, one line per name and value."""
    return "\n".join(f"{name:<17} {visible(str(value))}" for name, value in rows)


def _read(text: str) -> Iterator[str | Reference]:
    """Split a text at its references; drop incomplete marks."""
    plain, *marked = text.split(START)
    yield plain
    for part in marked:
        inside, _, plain = part.partition(END)
        fields = inside.split(BETWEEN)
        if len(fields) == len(Reference._fields):
            yield Reference(*fields)
        yield plain


def visible(text: str, *, lines: bool = False) -> str:
    r"""Escape terminal control characters; `lines` keeps line feeds.

    Examples
    --------
    >>> visible("pay\x1b[2J")
    'pay\\x1b[2J'
    """

    def escaped(hidden: re.Match[str]) -> str:
        return hidden[0] if lines and hidden[0] == "\n" else repr(hidden[0])[1:-1]

    return _HIDDEN.sub(escaped, text)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "group"), count(1200, "group"), count(2, "stratum", "strata")
    ('1 group', '1,200 groups', '2 strata')
    """
    return f"{number:,} {agreeing(number, noun, plural)}"


def agreeing(number: int, one: str, many: str | None = None) -> str:
    """Return the form of a word that agrees with a number.

    Examples
    --------
    >>> agreeing(1, "column"), agreeing(2, "column"), agreeing(2, "is", "are")
    ('column', 'columns', 'are')
    """
    return one if number == 1 else many or f"{one}s"


def count_holders(number: int, unit: object = None) -> str:
    """Return the count that k limits as text: records, or units if there is a unit column.

    Examples
    --------
    >>> count_holders(1), count_holders(5, "person")
    ('1 record', '5 different units (person)')
    """
    return count(number, "record") if unit is None else f"{count(number, 'different unit')} ({unit})"


def holders(unit: object = None) -> str:
    """Return the plural noun for the count that k limits: records, or units if there is a unit column."""
    return "records" if unit is None else f"different units ({unit})"


def listed(names: Collection[object], limit: int = MOST_LISTED, longest: int = LONGEST) -> str:
    """List names for a message; show only the first few and cut long names.

    Examples
    --------
    >>> listed(["age", "pay"]), listed(range(9), limit=2)
    ('age, pay', '0, 1 and 7 others')
    """
    texts = [text if len(text) <= longest else f"{text[:longest]}…" for text in map(str, islice(names, limit))]
    rest = len(names) - len(texts)
    return ", ".join(texts) + (f" and {count(rest, 'other')}" if rest else "")


def clauses(texts: Collection[str]) -> str:
    """List clauses for a message; show only the first few."""
    return listed(texts, longest=CLAUSE)


def without_passwords(text: str) -> str:
    """Return the text with passwords in addresses replaced by ***.

    Examples
    --------
    >>> without_passwords("Input postgresql://ann:s3cret@host/db is an address.")
    'Input postgresql://ann:***@host/db is an address.'
    """
    for password in PASSWORD.findall(text):
        text = text.replace(f":{password}@", ":***@")  # libraries repeat the password without the scheme
    return PASSWORD_OPTION.sub(r"\1***", text)
