"""Options of commands, made from the parameters of a request: flags and help are written there, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import Field
from functools import wraps
from inspect import Parameter, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from shoal.core.errors import InputError
from shoal.kinds.registry import KINDS, from_options
from shoal.masking.request import parameters

__all__ = [
    "MISSING_CODE",
    "ImportanceOption",
    "option",
    "read_codes",
    "read_importance",
    "with_kinds",
    "with_parameters",
]

Command = TypeVar("Command", bound=Callable[..., None])
ITEMS = {item.name: item for item in parameters()}


ImportanceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--importance",
        metavar="COLUMN=NUMBER",
        help="How much a column counts when records are compared; repeat.",
    ),
]


def read_importance(pairs: Sequence[str]) -> dict[str, float] | None:
    """Read how much columns count.

    Examples
    --------
    >>> read_importance(["age=2", "pay=0.5"])
    {'age': 2.0, 'pay': 0.5}
    """
    try:
        return {name: float(number) for name, _, number in (pair.rpartition("=") for pair in pairs)} or None
    except ValueError:
        raise InputError(f"Option --importance must read COLUMN=NUMBER, got {' '.join(pairs)!r}.") from None


def with_kinds(command: Command) -> Command:
    """Give a command an option per kind of columns in place of its parameter `kinds`, which gets what they name."""
    own = signature(command, eval_str=True)
    flags = {word: entry for word, entry in KINDS.items() if entry.flag}
    made = [
        Parameter(
            word,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[list[str] | None, typer.Option(entry.flag, metavar=entry.metavar, help=entry.help)],
        )
        for word, entry in flags.items()
    ]

    @wraps(command)
    def run(*arguments: Any, **named: Any) -> None:
        kinds = from_options({word: named.pop(word, None) for word in flags})
        command(*arguments, kinds=kinds, **named)

    parameters = [[part] if name != "kinds" else made for name, part in own.parameters.items()]
    run.__signature__ = own.replace(parameters=list(chain(*parameters)))  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]  # typer reads the signature


def option(name: str) -> Any:
    """Return the option that asks for a parameter of a masking."""
    item = ITEMS[name]
    return typer.Option(*item.metadata["flags"], help=_help(item))


MISSING_CODE = typer.Option(
    "--missing-code",
    metavar="COLUMN=CODE,…",
    help="Numbers or texts that stand for missing in a masked column, such as income=-9,99; repeat.",
)


def read_codes(pairs: Sequence[str]) -> dict[str, list[str]] | None:
    """Read codes for missing.

    Examples
    --------
    >>> read_codes(["income=-9,99", "job=?", "income=-8"])
    {'income': ['-9', '99', '-8'], 'job': ['?']}
    """
    codes: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, listed = pair.partition("=")
        if not equals or not all(code.strip() for code in listed.split(",")):
            raise InputError(f"Option --missing-code must read COLUMN=CODE or COLUMN=CODE,CODE; got {pair!r}.")
        codes.setdefault(name, []).extend(listed.split(","))
    return codes or None


def with_parameters(command: Command) -> Command:
    """Give a command an option for every parameter of a masking that has flags; they reach it as keywords."""
    own = signature(command, eval_str=True)
    first, *others = [part for part in own.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
    made = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=item.default,
            annotation=Annotated[_type(item), option(name)],
        )
        for name, item in ITEMS.items()
        if item.metadata["flags"]
    ]
    command.__signature__ = own.replace(parameters=[first, *others[:1], *made, *others[1:]])  # type: ignore[attr-defined]
    return command


def _type(item: Field[Any]) -> Any:
    """Return the type of an option."""
    if item.metadata["stored"][:1] == (list,):
        return list[str] | None
    if item.metadata["stored"][:1] == (bool,):
        return bool
    written = str(item.type)
    return (Path if "PathLike" in written else int if written.startswith("int") else str) | None


def _help(item: Field[Any]) -> str:
    """Return the help in the words of the command line."""
    text = item.metadata["help"] + (" Repeat for several." if item.metadata["stored"][:1] == (list,) else "")
    text = text.replace("``", "").replace("`shoal.methods`", "shoal methods")
    return re.sub(r"`(\w+)`", lambda found: ITEMS[found[1]].metadata["flags"][-1], text)
