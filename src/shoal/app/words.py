"""Words of the page: help texts of the registry and the request, as people read them who do not program."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import shoal

__all__ = [
    "choices_of",
    "default_of",
    "for_people",
    "help_of",
    "long",
    "method_help",
    "methods",
    "options_of",
    "sentence",
    "typed_path",
]

_ITEMS = {item.name: item for item in fields(shoal.MaskRequest)}
# What parameters are called on the page.
LABELS = {
    "k": "Group size k",
    "columns": "Keys",
    "by": "Strata",
    "identifiers": "Identifiers",
    "unit": "Unit",
    "weights": "Weight",
    "zeros": "Columns whose zeros are kept",
    "sums": "Sums that are kept",
    "integers": "Columns of whole numbers",
    "aggregate": "Value that stands for a group",
    "missing": "Records with missing values",
    "small": "Strata and patterns below k",
    "refine": "Last pass: steps a record",
    "shuffle": "Release in random order",
    "seed": "Seed of chance",
    "effort": "Effort of the search",
    "diversity": "Diversity (l)",
    "closeness": "Closeness (t)",
    "method": "Method",
}
# What the words of choices say; the help of a parameter explains them.
CHOICES = {
    "missing": {"error": "refuse them", "group": "mask them among their like", "drop": "leave them out"},
    "small": {"error": "refuse them", "suppress": "leave their records out", "merge": "join them to others"},
    "integers": {"float": "may get decimals", "round": "stay whole", "totals": "stay whole, totals are kept"},
}

# What help texts say to those who write Python.
OF_PYTHON = (
    r"; in Python (“[^”]*”|[^.;]*)| or \(in Python\) [^:.;,]*| In Python [^.]*\.| a mapping, or|, such as “\{[^”]*\}”"
)


def for_people(text: str) -> str:
    """Return a help text, or a refusal, in the words of the page.

    Examples
    --------
    >>> for_people("Parameter 'unit' must be ``x``; see `small`. Take method='mdav'.")
    'Unit must be “x”; see Strata and patterns below k. Take Method: mdav.'
    """
    text = re.sub(r"``([^`]*)``", r"“\1”", text)
    text = re.sub(r"\bParameter '(\w+)'", lambda found: LABELS.get(found[1], f"“{found[1]}”"), text)
    text = re.sub(r"`(\w+)`", lambda found: LABELS.get(found[1], found[1]), text)
    text = re.sub(r"`([^`]*)`", r"\1", text)
    return re.sub(
        r"\b(\w+)='([^']*)'", lambda found: f"{LABELS[found[1]]}: {found[2]}" if found[1] in LABELS else found[0], text
    )


def help_of(parameter: str) -> str:
    """Return the help of a parameter of a masking, without what it says to those who write Python.

    Examples
    --------
    >>> help_of("importance")
    'How much columns count when records are compared; 1 where not given.'
    """
    told = for_people(_ITEMS[parameter].metadata["help"])
    return re.sub(OF_PYTHON, "", told)


def choices_of(parameter: str) -> dict[str, str]:
    """Return the words that a parameter may be, and how they read."""
    said = CHOICES.get(parameter, {})
    return {word: f"{word}: {said[word]}" if word in said else word for word in _ITEMS[parameter].metadata["choices"]}


def default_of(parameter: str) -> Any:
    """Return the default of a parameter."""
    return _ITEMS[parameter].default


def methods() -> list[str]:
    """Return the methods, the default first."""
    default = default_of("method")
    return [default, *(name for name in shoal.methods().names if name != default)]


def options_of(method: str) -> list[Any]:
    """Return the options of a method that can be typed, but for those that are parameters of every masking."""
    found = next((entry for entry in shoal.methods() if entry.name == method), None)
    return [] if found is None else [o for o in found.options if o.scalar and o.name not in _ITEMS]


def method_help(method: str) -> str:
    """Say what a method does."""
    found = next((entry for entry in shoal.methods() if entry.name == method), None)
    if found is None:
        return help_of("method").split(". ")[0] + "."
    return f"{found.summary[0].upper()}{found.summary[1:]}. {found.paper}; cost {found.cost}."


def sentence(note: str) -> str:
    """Return a note or a warning of a release as a sentence.

    Examples
    --------
    >>> sentence("the records are in random order")
    'The records are in random order.'
    """
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def typed_path(written: str) -> Path:
    """Return the path that somebody typed, or pasted with blanks or quotes around it.

    Examples
    --------
    >>> typed_path(' "/data/my firms.csv" ').as_posix()
    '/data/my firms.csv'
    """
    return Path(written.strip().strip("\"'")).expanduser()


def long(seconds: float) -> str:
    """Say how long something takes.

    Examples
    --------
    >>> long(0.4), long(42.3), long(600)
    ('0.4 s', '42 s', '10 min')
    """
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
