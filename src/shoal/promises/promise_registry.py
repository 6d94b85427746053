"""Registry of promises: their parameters, and functions that read and write promises.

Every parameter here is a parameter of `shoal.mask`, its command, manifests and the page. Modules are imported on first
use, so that listing promises costs nothing. A new promise is a file and an entry here; a promise of another package
must be registered before the first table is masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass
from importlib import import_module
from types import NoneType
from typing import TYPE_CHECKING, Any

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.parameters import PROMISES as PANEL
from shoal.core.parameters import described

if TYPE_CHECKING:
    from shoal.promises.promise import GroupPromise

__all__ = [
    "PROMISES",
    "PromiseEntry",
    "describe_promises",
    "plain_promise",
    "promise_parameter",
    "promise_types",
    "read_promise",
    "write_promise",
]


def promise_parameter(
    name: str, text: str, *flags: str, label: str = "", python: str = "", metavar: str | None = None
) -> Any:
    """Return the declaration of a promise's parameter: help, flags, label on the page, help for Python, and metavar."""
    stored = (str, dict, NoneType)
    item = described(None, text, *flags, panel=PANEL, label=label, python=python, metavar=metavar, stored=stored)
    item.name, item.type = name, Any
    return item


@dataclass(frozen=True)
class PromiseEntry:
    """The registry entry of a promise: its class and its parameter."""

    place: str  # module and class, separated by a colon
    parameter: Field[Any]

    def load(self) -> type[GroupPromise]:
        """Return the promise's class."""
        module, _, name = self.place.partition(":")
        promise: type[GroupPromise] = getattr(import_module(module), name)
        return promise


PROMISES: dict[str, PromiseEntry] = {
    "diversity": PromiseEntry(
        "shoal.promises.diversity:Diversity",
        promise_parameter(
            "diversity",
            f"""l-diversity: least number of distinct values per group. It applies to the columns in
            {parameter("confidential")}. Also ``entropy:3`` (an entropy of log 3), ``recursive:3:2`` (l, then c), or
            ``COLUMN=3,COLUMN=entropy:2`` per column.""",
            "--diversity",
            metavar="L",
            label="Diversity (l)",
            python='Also ``shoal.Diversity(3, "entropy")``, or a mapping of columns.',
        ),
    ),
    "closeness": PromiseEntry(
        "shoal.promises.closeness:Closeness",
        promise_parameter(
            "closeness",
            f"""t-closeness: largest distance of a group from the table. This is the earth mover's distance, from 0 to
            1, between the values of a group and those of the whole released table in the columns in
            {parameter("confidential")}; by rank for numbers, dates and ordinal columns, total variation for others.
            Also ``COLUMN=0.2,COLUMN=0.3`` per column.""",
            "--closeness",
            metavar="T",
            label="Closeness (t)",
            python="Also a mapping of columns.",
        ),
    ),
}


def promise_types() -> list[type[GroupPromise]]:
    """Return the classes of all promises."""
    return [entry.load() for entry in PROMISES.values()]


def read_promise(name: str, value: Any) -> Any:
    """Return a promise, or a promise per column, from an instance, a number, text or a mapping.

    Examples
    --------
    >>> read_promise("closeness", "pay=0.2,age=0.3")
    {'pay': Closeness(t=0.2), 'age': Closeness(t=0.3)}
    """
    if isinstance(value, str) and "=" in value:
        value = dict(part.rpartition("=")[::2] for part in value.split(","))
    if isinstance(value, Mapping):
        return {column: _read_one(name, promise) for column, promise in value.items()}
    return _read_one(name, value)


def _read_one(name: str, value: Any) -> GroupPromise:
    """Return the promise of a parameter; refuse a promise that belongs to another parameter."""
    promise_type = PROMISES[name].load()
    other = getattr(value, "parameter", name)
    if other != name:
        raise InputError(f"{parameter(name)} cannot be {value!r}, which is a value of {parameter(other)}.")
    return promise_type.read(value.removeprefix(f"{name}:") if isinstance(value, str) else value)


def plain_promise(promise: Any) -> Any:
    """Return a promise, or a promise per column, as text that `read_promise` accepts."""
    if isinstance(promise, Mapping):
        return {name: one.text for name, one in promise.items()}
    return None if promise is None else promise.text


def write_promise(promise: Any) -> str:
    """Return a promise, or a promise per column, as written on the command line; empty text for None.

    Examples
    --------
    >>> write_promise(read_promise("closeness", "pay=0.2,age=0.3")), write_promise({"pay": "0.2"})
    ('pay=0.2,age=0.3', 'pay=0.2')
    """
    if isinstance(promise, Mapping):
        return ",".join(f"{name}={write_promise(one)}" for name, one in promise.items())
    return promise if isinstance(promise, str) else "" if promise is None else str(promise.text)


def describe_promises(promises: Mapping[str, Any]) -> str:
    """Return the promises on sensitive columns as a short phrase; empty if there are none.

    Examples
    --------
    >>> describe_promises({"diversity": "entropy:3", "closeness": "0.2"})
    'diversity entropy:3 and closeness 0.2'
    """
    texts = {name: write_promise(promise) for name, promise in promises.items()}
    return " and ".join(f"{name} {text}" for name, text in texts.items() if text)
