"""Options of commands, made from the parameters of a request: flags and help are written there, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import Field
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from shoal.core.errors import InputError
from shoal.masking.request import parameters

__all__ = [
    "MISSING_CODE",
    "DateOption",
    "HierarchyOption",
    "ImportanceOption",
    "NominalOption",
    "OrdinalOption",
    "option",
    "read_codes",
    "read_importance",
    "read_kinds",
    "with_parameters",
]

Command = TypeVar("Command", bound=Callable[..., None])
ITEMS = {item.name: item for item in parameters()}


NominalOption = Annotated[
    list[str] | None,
    typer.Option("--nominal", help="Column of categories without an order, or of codes; repeat."),
]
OrdinalOption = Annotated[
    list[str] | None,
    typer.Option("--ordinal", metavar="COLUMN=LOW,…,HIGH", help="Column of categories and their order; repeat."),
]
HierarchyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--hierarchy", metavar="COLUMN=FILE", help="Column and the CSV file with a line a value, to the root; repeat."
    ),
]
DateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--date",
        metavar="COLUMN[=FORMAT]",
        help="Column of dates or times written as text, in ISO 8601 or in a format such as %d.%m.%Y; repeat.",
    ),
]
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


def read_kinds(
    nominal: list[str] | None, ordinal: list[str] | None, hierarchy: list[str] | None, date: list[str] | None
) -> dict[str, Any] | None:
    """Return the kinds of columns that options name; None if they name none."""
    from shoal.tables.kinds import Date, Hierarchy, Nominal, Ordinal

    kinds: dict[str, Any] = {name: Nominal() for name in nominal or []}
    for pairs, flag, make in (
        (ordinal, "--ordinal", lambda text: Ordinal(text.split(","))),
        (hierarchy, "--hierarchy", Hierarchy),
        (date, "--date", lambda text: Date(text or None)),
    ):
        for pair in pairs or []:
            name, equals, text = pair.partition("=")
            if (not equals and flag != "--date") or name in kinds:
                raise InputError(f"Option {flag} must read COLUMN=… and name each column once, got {pair!r}.")
            kinds[name] = make(text)
    return kinds or None


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
