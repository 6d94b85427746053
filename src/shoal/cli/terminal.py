"""Command-line options built from the parameters of a request, and printing for all commands.

Messages name parameters as flags: ``missing='group'`` becomes ``--missing group``. All output is printed here, so that
names, values and paths cannot send control characters to the terminal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.models import ArgumentInfo, OptionInfo

from shoal.core.errors import InputError
from shoal.core.messages import Message, Reference, summary_lines, visible
from shoal.core.parameters import COLUMNS, PANELS, help_of, parameters_of
from shoal.kinds.kind_registry import KINDS, from_options
from shoal.masking.request import MaskRequest

if TYPE_CHECKING:
    from shoal.masking.verdict import Verdict

__all__ = [
    "first_sentence",
    "flags_of",
    "forget_warnings",
    "kind_options",
    "option",
    "read_codes",
    "read_importance",
    "read_scales",
    "say",
    "say_pair",
    "say_refusal",
    "say_rows",
    "say_verdict",
    "say_warning",
    "speaking_to_stderr",
    "typed",
    "typed_rows",
    "typed_text",
    "values_of",
    "was_said",
    "with_parameters",
]

Command = TypeVar("Command", bound=Callable[..., None])
Texts = list[str] | None
COLOURS = {"stop": typer.colors.RED, "look": typer.colors.YELLOW, "fine": typer.colors.GREEN}  # by level of the verdict
METAVARS = {list: "COLUMN,…", Path: "FILE", int: "N", float: "NUMBER", str: "WORD"}  # by option type
NAMED_KINDS = ("nominal", "ordinal", "hierarchy", "date")

_to_stderr: ContextVar[bool] = ContextVar("True if standard output holds a table only", default=False)
_warnings: ContextVar[list[str]] = ContextVar("the warnings printed by the command")


def kind_options() -> dict[str, OptionInfo]:
    """Return the command-line options of the parameter `kinds`, one for each kind that has a flag."""
    return {
        word: typer.Option(kind.flag, metavar=kind.metavar, help=first_sentence(kind.help), rich_help_panel=COLUMNS)
        for word, kind in KINDS.items()
        if kind.flag
    }


def with_parameters(request: type, *, required: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add an option to a command for every request parameter that has flags and that the command does not declare.

    The command receives the values as keyword arguments. The help marks the `required` options.
    """

    def complete(command: Command) -> Command:
        declared = signature(command, eval_str=True)
        explicit = [part for part in declared.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        names = {part.name for part in explicit}
        arguments = [part for part in explicit if not _info(part)]
        made: list[Parameter] = []
        for item in parameters_of(request):
            if item.name == "kinds":
                made += [_keyword(name, None, Texts, info) for name, info in kind_options().items()]
            elif item.metadata["flags"] and item.name not in names:
                default = None if item.default is MISSING or item.metadata["typed"] is list else item.default
                info = option(item.name, request, required=item.name in required)
                made.append(_keyword(item.name, default, _annotation(item), info))
        options = sorted([*made, *(part for part in explicit if _info(part))], key=_panel)
        command.__signature__ = declared.replace(parameters=[*arguments, *options])  # type: ignore[attr-defined]
        command.request = request  # type: ignore[attr-defined]  # the reference pages show its full help texts
        return command

    return complete


def _info(part: Parameter) -> OptionInfo | None:
    """Return the option of a command's parameter; None for an argument."""
    options = (info for info in getattr(part.annotation, "__metadata__", ()) if isinstance(info, OptionInfo))
    return next(options, None)


def _panel(part: Parameter) -> int:
    """Return the position of an option's panel in the help."""
    info = _info(part)
    return PANELS.index(info.rich_help_panel) if info and info.rich_help_panel in PANELS else len(PANELS)


def _keyword(name: str, default: Any, annotation: Any, info: Any) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[annotation, info])


def _annotation(item: Field[Any]) -> Any:
    """Return the type annotation of an option."""
    kind = item.metadata["typed"]
    if kind is bool and item.default is not None:
        return bool
    return Texts if kind is list else kind | None


def option(name: str, request: type = MaskRequest, *, required: bool = False) -> Any:
    """Return the command-line option of a request parameter; its help names other parameters by their flags."""
    items = {item.name: item for item in parameters_of(request)}
    flags = {name: item.metadata["flags"][-1] for name, item in items.items() if item.metadata["flags"]}
    item = items[name]
    text = first_sentence(help_of(item, partial(typed, flags=flags)).replace("``", ""))
    return typer.Option(
        *item.metadata["flags"],
        metavar=item.metadata["metavar"] or "|".join(item.metadata["choices"]) or METAVARS.get(item.metadata["typed"]),
        help=f"{text} (required)" if required else text,
        rich_help_panel=item.metadata["panel"],
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text without its full stop, to keep an option on one line.

    Examples
    --------
    >>> first_sentence("Roles file, such as roles.toml. It holds roles.")
    'Roles file, such as roles.toml'
    """
    return text.partition(". ")[0].removesuffix(".")


def values_of(request: type, options: Mapping[str, Any], **readers: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the values of a request from the options of a command; `readers` parse the texts of some parameters."""
    readers = {"importance": read_importance, "scale": read_scales, "missing_codes": read_codes, **readers}
    values: dict[str, Any] = {}
    for item in parameters_of(request):
        if item.name == "kinds":
            named = {word: options[word] for word in KINDS if options.get(word)}
            values["kinds"] = from_options(named) if named else None
        elif item.name in options:
            value = options[item.name]
            value = None if value == [] else value
            values[item.name] = value if value is None or item.name not in readers else readers[item.name](value)
    return values


def read_importance(pairs: Sequence[str]) -> dict[str, float]:
    """Parse the importance of columns.

    Examples
    --------
    >>> read_importance(["age=2", "pay=0.5"])
    {'age': 2.0, 'pay': 0.5}
    """
    try:
        return {name: float(number) for name, _, number in (pair.rpartition("=") for pair in pairs)}
    except ValueError:
        raise InputError(f"--importance must be COLUMN=NUMBER, got {' '.join(pairs)!r}.") from None


def read_scales(words: Sequence[str]) -> dict[str, str] | str:
    """Parse one scale for all columns, or a scale per column.

    Examples
    --------
    >>> read_scales(["log"]), read_scales(["sales=log", "wages=rank"])
    ('log', {'sales': 'log', 'wages': 'rank'})
    """
    pairs = [word.rpartition("=") for word in words]
    if len(words) == 1 and not pairs[0][1]:
        return words[0]
    if not all(name and equals for name, equals, _ in pairs):
        raise InputError(f"--scale must be SCALE once, or COLUMN=SCALE per column, got {' '.join(words)!r}.")
    return {name: scale for name, _, scale in pairs}


def read_codes(pairs: Sequence[str]) -> dict[str, list[str]]:
    """Parse codes for missing values.

    Examples
    --------
    >>> read_codes(["income=-9,99", "job=?", "income=-8"])
    {'income': ['-9', '99', '-8'], 'job': ['?']}
    """
    codes: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, texts = pair.partition("=")
        if not equals or not all(code.strip() for code in texts.split(",")):
            raise InputError(f"--missing-code must be COLUMN=CODE or COLUMN=CODE,CODE, got {pair!r}.")
        codes.setdefault(name, []).extend(texts.split(","))
    return codes


def flags_of(command: Callable[..., None]) -> dict[str, str]:
    """Return the longest flag of each option of a command, and the name of each argument."""
    flags = {"data": "IN"}
    for name, parameter in signature(command, eval_str=True).parameters.items():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                spellings = [part for part in (info.default, *(info.param_decls or ())) if isinstance(part, str)]
                flags[name] = max(spellings, key=len, default=f"--{name.replace('_', '-')}").partition("/")[0]
            elif isinstance(info, ArgumentInfo) and info.metavar:
                flags[name] = info.metavar
    return flags


def typed(reference: Reference, flags: Mapping[str, str]) -> str:
    """Return a parameter as its flag, or a setting as an option with its value.

    Examples
    --------
    >>> flags = {"by": "--by", "bound": "--bound"}
    >>> typed(Reference("Parameter", "by", ""), flags), typed(Reference("Option", "gamma", ""), flags)
    ('--by', '-O gamma')
    >>> typed(Reference("Parameter", "by", "['a', 'b c']"), flags)
    "--by a --by 'b c'"
    >>> typed(Reference("Parameter", "kinds", '''{'visit': "Date('%d.%m.%Y')"}'''), flags)
    '--date visit=%d.%m.%Y'
    """
    if reference.name == "kinds":
        return _typed_kinds(reference.value if isinstance(reference.value, dict) else {})
    flag = flags.get(reference.name)
    if flag is None:
        return f"-O {reference.name}" if reference.noun == "Option" else reference.in_python()
    if not reference.literal:
        return flag
    value = reference.value
    if value is None:
        return f"no {flag}"
    if isinstance(value, bool):
        return flag if value else flag.replace("--", "--no-", 1)
    values = value if isinstance(value, list) else [value]
    return " ".join(f"{flag} {shlex.quote(str(part))}" for part in values)


def typed_text(text: str, flags: Mapping[str, str]) -> str:
    """Return a message with every parameter written as its flag; plain text is returned unchanged."""
    parts = text.parts if isinstance(text, Message) else [text]
    return "".join(part if isinstance(part, str) else typed(part, flags) for part in parts)


def typed_rows(rows: Iterable[tuple[str, str]], flags: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the rows of a summary with every parameter written as its flag."""
    return [(name, typed_text(text, flags)) for name, text in rows]


def _typed_kinds(calls: Mapping[Any, str]) -> str:
    if not calls:
        return f"{', '.join(f'--{kind}' for kind in NAMED_KINDS[:-1])} or --{NAMED_KINDS[-1]}"
    parts = []
    for column, call in calls.items():
        kind, _, text = call.removesuffix(")").partition("(")
        setting = f"{column}={text[1:-1]}" if text else str(column)
        parts.append(f"--{kind.lower()} {shlex.quote(setting)}")
    return " ".join(parts)


# Printing


@contextmanager
def speaking_to_stderr() -> Iterator[None]:
    """Print all output of the block to standard error."""
    token = _to_stderr.set(True)
    try:
        yield
    finally:
        _to_stderr.reset(token)


def say(text: str, *, bold: bool = False) -> None:
    """Print text with one or more lines."""
    typer.secho(visible(text, lines=True), bold=bold or None, err=_to_stderr.get())


def say_rows(rows: Iterable[tuple[str, object]]) -> None:
    """Print a summary, one line per pair of a name and a value."""
    typer.echo(summary_lines(rows), err=_to_stderr.get())


def say_verdict(verdict: Verdict, row: tuple[str, object]) -> None:
    """Print the first row of a summary in the colour of the verdict."""
    typer.secho(summary_lines([row]), fg=COLOURS[verdict.level], bold=True, err=_to_stderr.get())


def say_pair(name: str, value: object) -> None:
    """Print a name and a value as a summary line."""
    say_rows([(name, value)])


def say_refusal(text: str) -> None:
    """Print the reason for ending a command, on one line."""
    typer.secho(f"shoal: {visible(text)}", err=True, fg=typer.colors.RED)


def say_warning(category: type[Warning], text: str) -> None:
    """Print a warning on one line and record it."""
    _warnings.get([]).append(_plain(text))
    typer.secho(f"{category.__name__}: {visible(text)}", err=True, fg=typer.colors.YELLOW)


def forget_warnings() -> None:
    """Clear the record of printed warnings, before a command starts."""
    _warnings.set([])


def was_said(note: str) -> bool:
    """Return True if a printed warning contains the words of a note."""
    return any(_plain(note) in warning for warning in _warnings.get([]))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
