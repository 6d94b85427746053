"""Parameters of requests: each declaration generates the signature, the command's option and the page's field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, replace
from inspect import Parameter, signature
from textwrap import wrap
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from shoal.core.messages import Message, Reference

__all__ = [
    "COLUMNS",
    "CSV",
    "ESSENTIALS",
    "LARGE",
    "METHOD",
    "MISSING_VALUES",
    "OUTPUT",
    "PANELS",
    "PROMISES",
    "Request",
    "described",
    "described_by",
    "help_of",
    "parameters_of",
    "shared",
    "with_help_of",
    "with_parameters_of",
]

Function = TypeVar("Function", bound=Callable[..., Any])

# The panels of a command's help, in order.
ESSENTIALS = "Essentials"
COLUMNS = "Columns and roles"
MISSING_VALUES = "Missing values"
PROMISES = "Promises"
METHOD = "Method"
OUTPUT = "Output"
LARGE = "Large tables"
CSV = "CSV"
PANELS = (ESSENTIALS, COLUMNS, MISSING_VALUES, PROMISES, METHOD, OUTPUT, LARGE, CSV)

TEXT = (str, NoneType)


def described(
    default: Any,
    text: str,
    *flags: str,
    panel: str = OUTPUT,
    label: str = "",  # on the page
    python: str = "",  # addition to the help in Python
    typed: type = str,  # the type of the command-line option; a list if the option can be repeated
    metavar: str | None = None,
    stored: tuple[type, ...] = TEXT,  # accepted types in a manifest; empty if manifests omit the parameter
    choices: Mapping[str, str] | Sequence[str] = (),  # the accepted values, each with its text on the page
) -> Any:
    """Return a field that describes a parameter: its help, flags, panel, label and types in the manifest."""
    metadata = {
        "help": Message(" ".join(text.split())),
        "python": " ".join(python.split()),
        "flags": flags,
        "panel": panel,
        "label": label,
        "typed": typed,
        "metavar": metavar,
        "stored": stored,
        "choices": choices if isinstance(choices, Mapping) else dict.fromkeys(choices, ""),
    }
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def described_by(members: Mapping[str, Any] | type) -> Any:
    """Return a field that describes an object whose parts are parameters.

    `members` are the fields of a dataclass, or the entries of a mapping, each with an attribute `parameter`.
    """
    return field(default_factory=members if isinstance(members, type) else dict, metadata={"members": members})


def parameters_of(request: type) -> tuple[Field[Any], ...]:
    """Return the parameters of a request, including those that one field holds together."""
    parameters: list[Field[Any]] = []
    for item in fields(request):
        parameters += [item] if "members" not in item.metadata else _members(item)
    return tuple(parameters)


def _members(item: Field[Any]) -> list[Field[Any]]:
    """Return the parameters that a field holds."""
    members = item.metadata["members"]
    return [*fields(members)] if isinstance(members, type) else [member.parameter for member in members.values()]


class _RequestType(type):
    """Metaclass that creates a request from parameters, including those that one field holds together."""

    def __call__(cls, *positional: Any, **values: Any) -> Any:
        for item in fields(cls):  # type: ignore[arg-type]
            if "members" in item.metadata:
                parts = {part.name: values.pop(part.name) for part in _members(item) if part.name in values}
                values[item.name] = _joined(item, values.get(item.name), parts)
        return super().__call__(*positional, **values)


def _joined(item: Field[Any], before: Any, parts: Mapping[str, Any]) -> Any:
    """Return the object of a field with some parts replaced; parts that are None are omitted from a mapping."""
    members = item.metadata["members"]
    if isinstance(members, type):
        return replace(members() if before is None else before, **parts)
    return {name: part for name, part in {**(before or {}), **parts}.items() if part is not None}


class Request(metaclass=_RequestType):
    """Base class of requests, which set and read parameters by name even if one field holds several of them."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a parameter from the field that holds it, or None if a mapping does not contain it."""
            for item in fields(self):
                if "members" in item.metadata and name in {part.name for part in _members(item)}:
                    held = vars(self)[item.name]
                    return held.get(name) if isinstance(held, Mapping) else getattr(held, name)
            raise AttributeError(f"{type(self).__name__} has no parameter {name!r}.")


def shared(request: type, name: str, **changes: Any) -> Any:
    """Return the field of a parameter of another request with `changes`, which may include `default`.

    Examples
    --------
    >>> from shoal.masking.request import MaskRequest
    >>> shared(MaskRequest, "by").metadata["flags"]
    ('--by',)
    """
    item = next(item for item in parameters_of(request) if item.name == name)
    default = changes.pop("default", item.default)
    if "help" in changes:
        changes["help"] = Message(" ".join(changes["help"].split()))
    return field(default=default, metadata={**item.metadata, **changes})


def help_of(item: Field[Any], words: Callable[[Reference], str], *, python: bool = False) -> str:
    """Return the help of a parameter in the reader's words; `python` adds the text for Python users."""
    addition = item.metadata["python"] if python else ""
    return f"{item.metadata['help'].worded(words)} {addition}".strip()


def with_parameters_of(request: type) -> Callable[[Function], Function]:
    """Return a decorator that adds a request's parameters to the signature and docstring of a function.

    The function takes the parameters as keywords. Their help replaces *parameters* in the docstring.
    """

    def complete(function: Function) -> Function:
        items = [item for item in parameters_of(request) if item.name != "options"]
        declared = signature(function)
        leading = [part for part in declared.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        leading_names = {part.name for part in leading}
        keywords = [
            Parameter(
                item.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if item.default is MISSING else item.default,
                annotation=item.type,
            )
            for item in items
            if item.name not in leading_names
        ]
        function.__signature__ = declared.replace(parameters=[*leading, *keywords])  # type: ignore[attr-defined]
        return with_help_of(request)(function)

    return complete


def with_help_of(request: type) -> Callable[[Function], Function]:
    """Return a decorator that replaces *parameters* in a docstring with the help of a request's parameters."""

    def complete(function: Function) -> Function:
        lines = []
        for item in parameters_of(request):
            text = help_of(item, lambda reference: f"`{reference.name}`", python=True).replace("``", '"')
            name = "**options" if item.name == "options" else item.name
            lines += [name, *(f"    {line}" for line in wrap(text, 110))]
        function.__doc__ = str(function.__doc__).replace("*parameters*", "\n    ".join(lines))
        return function

    return complete
