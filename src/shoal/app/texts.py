"""Labels and help texts of the page, taken from the request and the method registry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import shoal

if TYPE_CHECKING:
    from shoal.core.messages import Reference

__all__ = [
    "LABELS",
    "PROMISES",
    "choices_of",
    "default_of",
    "duration",
    "help_of",
    "in_labels",
    "method_help",
    "methods",
    "options_of",
    "sentence",
    "typed_path",
]

_ITEMS = {item.name: item for item in shoal.MaskRequest.parameters()}
LABELS: dict[str, str] = {name: item.metadata["label"] for name, item in _ITEMS.items() if item.metadata["label"]}
PROMISES = tuple(
    name for name, item in _ITEMS.items() if item.metadata["panel"] == "Promises" and name != "confidential"
)


def in_labels(reference: Reference) -> str:
    """Return the label of a parameter, followed by the value if it is a setting.

    Examples
    --------
    >>> try:
    ...     shoal.MaskRequest(k=3, weights="w", aggregate="median")
    ... except shoal.InputError as error:
    ...     print(error.worded(in_labels))
    Weight requires Value of a group: mean, got Value of a group: median.
    """
    label = LABELS.get(reference.name, f"“{reference.name}”")
    value = reference.value
    if value is None:
        return label
    if isinstance(value, dict):  # kinds
        return " and ".join(f"{column} as {call.partition('(')[0]}" for column, call in value.items())
    if isinstance(value, bool):
        return f"{label}: {'yes' if value else 'no'}"
    return f"{label}: {', '.join(map(str, value)) if isinstance(value, list) else value}"


def help_of(name: str) -> str:
    """Return the help text of a parameter, with labels and quotes instead of code.

    Examples
    --------
    >>> help_of("importance")
    'Importance of columns in similarity (default: 1).'
    """
    literals = _ITEMS[name].metadata["help"].worded(in_labels).split("``")
    return "".join(f"“{text}”" if place % 2 else text for place, text in enumerate(literals))


def choices_of(name: str) -> dict[str, str]:
    """Return the choices of a parameter, with their descriptions."""
    choices = _ITEMS[name].metadata["choices"]
    return {word: f"{word}: {meaning}" if meaning else word for word, meaning in choices.items()}


def default_of(parameter: str) -> Any:
    """Return the default of a parameter."""
    return _ITEMS[parameter].default


def methods() -> list[str]:
    """Return the names of all methods, the default first."""
    default = default_of("method")
    return [default, *(name for name in shoal.methods().names if name != default)]


def _method(name: str) -> Any:
    """Return a method of the registry; None if the name is unknown, as in an edited file."""
    return next((entry for entry in shoal.methods() if entry.name == name), None)


def options_of(method: str) -> list[Any]:
    """Return the scalar options of a method, except those that are parameters of `shoal.mask`."""
    entry = _method(method)
    return [] if entry is None else [o for o in entry.options if o.scalar and o.name not in _ITEMS]


def method_help(method: str) -> str:
    """Return the summary, the paper and the cost of a method."""
    entry = _method(method)
    if entry is None:
        return help_of("method").split(". ")[0] + "."
    return f"{entry.summary[0].upper()}{entry.summary[1:]}. {entry.paper}; cost {entry.cost}."


def sentence(note: str) -> str:
    """Return a note or a warning of a release as a sentence.

    Examples
    --------
    >>> sentence("the records are in random order")
    'The records are in random order.'
    """
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def typed_path(words: str) -> Path:
    """Return the path for typed or pasted text, without surrounding blanks and quotes.

    Examples
    --------
    >>> typed_path(' "/data/my firms.csv" ').as_posix()
    '/data/my firms.csv'
    """
    return Path(words.strip().strip("\"'")).expanduser()


def duration(seconds: float) -> str:
    """Return a duration as readable text.

    Examples
    --------
    >>> duration(0.4), duration(42.3), duration(600)
    ('0.4 s', '42 s', '10 min')
    """
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
