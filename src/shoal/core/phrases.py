"""Words of messages: counts with their nouns, short lists of names, and text that a terminal cannot obey."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

__all__ = ["agreeing", "clauses", "count", "count_holders", "holders", "listed", "visible"]

MOST_LISTED = 5  # names in a message; a longer list is cut
LONGEST = 100  # characters of a name in a list
CLAUSE = 7 * LONGEST  # characters of a clause, which may list names itself

# Control characters (C0, DEL, C1), line and paragraph separators, marks of writing direction, and lone surrogates.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Show characters that steer a terminal as escapes; `lines` keeps line feeds.

    Examples
    --------
    >>> visible("pay\x1b[2J")
    'pay\\x1b[2J'
    """

    def escaped(hidden: re.Match[str]) -> str:
        return hidden[0] if lines and hidden[0] == "\n" else repr(hidden[0])[1:-1]

    return _HIDDEN.sub(escaped, text)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> count(1, "group"), count(1200, "group"), count(2, "stratum", "strata")
    ('1 group', '1,200 groups', '2 strata')
    """
    return f"{number:,} {agreeing(number, noun, plural)}"


def agreeing(number: int, one: str, many: str | None = None) -> str:
    """Return the word that agrees with a number.

    Examples
    --------
    >>> agreeing(1, "column"), agreeing(2, "column"), agreeing(2, "is", "are")
    ('column', 'columns', 'are')
    """
    return one if number == 1 else many or f"{one}s"


def count_holders(number: int, unit: object = None) -> str:
    """Write a number of records, or of units where there is a unit column: what k counts.

    Examples
    --------
    >>> count_holders(1), count_holders(5, "person")
    ('1 record', '5 different units (person)')
    """
    return count(number, "record") if unit is None else f"{count(number, 'different unit')} ({unit})"


def holders(unit: object = None) -> str:
    """Name what k counts: records, or the units of a column."""
    return "records" if unit is None else f"different units ({unit})"


def listed(names: Collection[object], limit: int = MOST_LISTED, longest: int = LONGEST) -> str:
    """List names for a message: the first of many, each cut where it is very long.

    Examples
    --------
    >>> listed(["age", "pay"]), listed(range(9), limit=2)
    ('age, pay', '0, 1 and 7 others')
    """
    texts = [text if len(text) <= longest else f"{text[:longest]}…" for text in map(str, islice(names, limit))]
    rest = len(names) - len(texts)
    return ", ".join(texts) + (f" and {count(rest, 'other')}" if rest else "")


def clauses(texts: Collection[str]) -> str:
    """List clauses for a message, the first of many."""
    return listed(texts, longest=CLAUSE)
