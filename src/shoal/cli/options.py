"""Options of commands, made from the parameters of a request, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar

import typer
from typer.models import OptionInfo

from shoal.cli.flags import typed
from shoal.core.errors import InputError
from shoal.core.parameters import COLUMNS, PANELS
from shoal.kinds.kind_registry import KINDS, from_options
from shoal.masking.request import MaskRequest

__all__ = ["kind_options", "option", "read_codes", "read_importance", "values_of", "with_parameters"]

Command = TypeVar("Command", bound=Callable[..., None])
Texts = list[str] | None


def kind_options() -> dict[str, OptionInfo]:
    """Return the options of the parameter `kinds`: one for each kind of column that is named."""
    return {
        word: typer.Option(kind.flag, metavar=kind.metavar, help=kind.help, rich_help_panel=COLUMNS)
        for word, kind in KINDS.items()
        if kind.flag
    }


def with_parameters(request: type) -> Callable[[Command], Command]:
    """Give a command an option for every parameter of a request that has flags, unless it has one already.

    The values reach it as keywords.
    """

    def complete(command: Command) -> Command:
        declared = signature(command, eval_str=True)
        written = [part for part in declared.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        names = {part.name for part in written}
        arguments = [part for part in written if not _info(part)]
        made: list[Parameter] = []
        for item in fields(request):
            if item.name == "kinds":
                made += [_keyword(name, None, Texts, info) for name, info in kind_options().items()]
            elif item.metadata["flags"] and item.name not in names:
                default = None if item.default is MISSING or item.metadata["typed"] is list else item.default
                made.append(_keyword(item.name, default, _annotation(item), option(item.name, request)))
        options = sorted([*made, *(part for part in written if _info(part))], key=_panel)
        command.__signature__ = declared.replace(parameters=[*arguments, *options])  # type: ignore[attr-defined]
        return command

    return complete


def _info(part: Parameter) -> OptionInfo | None:
    """Return the option that a parameter of a command is; None for an argument."""
    found = (info for info in getattr(part.annotation, "__metadata__", ()) if isinstance(info, OptionInfo))
    return next(found, None)


def _panel(part: Parameter) -> int:
    """Return the place of an option's panel in the help."""
    info = _info(part)
    return PANELS.index(info.rich_help_panel) if info and info.rich_help_panel in PANELS else len(PANELS)


def _keyword(name: str, default: Any, annotation: Any, info: Any) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[annotation, info])


def _annotation(item: Field[Any]) -> Any:
    """Return the type of an option."""
    kind = item.metadata["typed"]
    if kind is bool and item.default is not None:
        return bool
    return Texts if kind is list else kind | None


def option(name: str, request: type = MaskRequest) -> Any:
    """Return the option of a parameter of a request; its help names others by their flags."""
    items = {item.name: item for item in fields(request)}
    flags = {name: item.metadata["flags"][-1] for name, item in items.items() if item.metadata["flags"]}
    item = items[name]
    text = item.metadata["help"].worded(lambda other: typed(other, flags)).replace("``", "")
    return typer.Option(
        *item.metadata["flags"],
        metavar=item.metadata["metavar"],
        help=text + (" Repeat for several." if item.metadata["typed"] is list else ""),
        rich_help_panel=item.metadata["panel"],
    )


def values_of(request: type, options: Mapping[str, Any], **readers: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the values of a request from the options of a command; `readers` read what is not typed as it is."""
    readers = {"importance": read_importance, "missing_codes": read_codes, **readers}
    values: dict[str, Any] = {}
    for item in fields(request):
        if item.name == "kinds":
            values["kinds"] = from_options({word: options[word] for word in kind_options()})
        elif item.name in options:
            value = options[item.name]
            value = None if value == [] else value
            values[item.name] = value if value is None or item.name not in readers else readers[item.name](value)
    return values


def read_importance(pairs: Sequence[str]) -> dict[str, float]:
    """Read how much columns count.

    Examples
    --------
    >>> read_importance(["age=2", "pay=0.5"])
    {'age': 2.0, 'pay': 0.5}
    """
    try:
        return {name: float(number) for name, _, number in (pair.rpartition("=") for pair in pairs)}
    except ValueError:
        raise InputError(f"--importance must read COLUMN=NUMBER, got {' '.join(pairs)!r}.") from None


def read_codes(pairs: Sequence[str]) -> dict[str, list[str]]:
    """Read codes for missing.

    Examples
    --------
    >>> read_codes(["income=-9,99", "job=?", "income=-8"])
    {'income': ['-9', '99', '-8'], 'job': ['?']}
    """
    codes: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, texts = pair.partition("=")
        if not equals or not all(code.strip() for code in texts.split(",")):
            raise InputError(f"--missing-code must read COLUMN=CODE or COLUMN=CODE,CODE; got {pair!r}.")
        codes.setdefault(name, []).extend(texts.split(","))
    return codes
