"""Parameters of requests: each declaration generates the signature, the command's option and the page's field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from inspect import Parameter, signature
from textwrap import wrap
from types import NoneType
from typing import Any, TypeVar

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
    choices: Mapping[str, str] | Sequence[str] = (),  # the accepted words, each with its text on the page
) -> Any:
    """Describe a parameter of a request: its help, flags, panel, label and types in the manifest."""
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


def described_by(members: Mapping[str, Any]) -> Any:
    """Describe a mapping whose entries are parameters: the attribute `parameter` of each of `members`."""
    return field(default_factory=dict, metadata={"members": members})


def parameters_of(request: type) -> tuple[Field[Any], ...]:
    """Return the parameters of a request: its fields, with a mapping of parameters replaced by its entries."""
    parameters: list[Field[Any]] = []
    for item in fields(request):
        members = item.metadata.get("members")
        parameters += [item] if members is None else [member.parameter for member in members.values()]
    return tuple(parameters)


def shared(request: type, name: str, **changes: Any) -> Any:
    """Describe a parameter as in another request, except for `changes`, which may include `default`.

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
    """Give a function that takes the parameters of a request as keywords their signature and help.

    The help replaces *parameters* in the docstring.
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
    """Replace *parameters* in a function's docstring with the help of the parameters of a request."""

    def complete(function: Function) -> Function:
        lines = []
        for item in parameters_of(request):
            text = help_of(item, lambda reference: f"`{reference.name}`", python=True).replace("``", '"')
            name = "**options" if item.name == "options" else item.name
            lines += [name, *(f"    {line}" for line in wrap(text, 110))]
        function.__doc__ = str(function.__doc__).replace("*parameters*", "\n    ".join(lines))
        return function

    return complete
