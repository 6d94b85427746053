"""The terminal: options that are typed, made from the parameters of a request, and all that commands print.

A message names a parameter as its flag: ``missing='group'`` is ``--missing group``. Everything is printed here, so that
names, values and paths cannot steer the terminal.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.models import ArgumentInfo, OptionInfo

from shoal.core.errors import InputError
from shoal.core.messages import Reference, summary_lines, visible
from shoal.core.parameters import COLUMNS, PANELS, parameters_of
from shoal.kinds.kind_registry import KINDS, from_options
from shoal.masking.request import MaskRequest

if TYPE_CHECKING:
    from shoal.masking.verdict import Verdict

__all__ = [
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
    "values_of",
    "was_said",
    "with_parameters",
]

Command = TypeVar("Command", bound=Callable[..., None])
Texts = list[str] | None
COLOURS = {"stop": typer.colors.RED, "look": typer.colors.YELLOW, "fine": typer.colors.GREEN}  # of verdicts
NAMED_KINDS = ("nominal", "ordinal", "hierarchy", "date")

_to_stderr: ContextVar[bool] = ContextVar("whether standard output holds a table, and nothing else", default=False)
_warnings: ContextVar[list[str]] = ContextVar("warnings that the command has printed")


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
        explicit = [part for part in declared.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        names = {part.name for part in explicit}
        arguments = [part for part in explicit if not _info(part)]
        made: list[Parameter] = []
        for item in parameters_of(request):
            if item.name == "kinds":
                made += [_keyword(name, None, Texts, info) for name, info in kind_options().items()]
            elif item.metadata["flags"] and item.name not in names:
                default = None if item.default is MISSING or item.metadata["typed"] is list else item.default
                made.append(_keyword(item.name, default, _annotation(item), option(item.name, request)))
        options = sorted([*made, *(part for part in explicit if _info(part))], key=_panel)
        command.__signature__ = declared.replace(parameters=[*arguments, *options])  # type: ignore[attr-defined]
        return command

    return complete


def _info(part: Parameter) -> OptionInfo | None:
    """Return the option that a parameter of a command is; None for an argument."""
    options = (info for info in getattr(part.annotation, "__metadata__", ()) if isinstance(info, OptionInfo))
    return next(options, None)


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
    items = {item.name: item for item in parameters_of(request)}
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
    readers = {"importance": read_importance, "scale": read_scales, "missing_codes": read_codes, **readers}
    values: dict[str, Any] = {}
    for item in parameters_of(request):
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


def read_scales(words: Sequence[str]) -> dict[str, str] | str:
    """Read the scale of all columns, or that of each.

    Examples
    --------
    >>> read_scales(["log"]), read_scales(["sales=log", "wages=rank"])
    ('log', {'sales': 'log', 'wages': 'rank'})
    """
    pairs = [word.rpartition("=") for word in words]
    if len(words) == 1 and not pairs[0][1]:
        return words[0]
    if not all(name and equals for name, equals, _ in pairs):
        raise InputError(f"--scale must read SCALE once, or COLUMN=SCALE for each column, got {' '.join(words)!r}.")
    return {name: scale for name, _, scale in pairs}


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


def flags_of(command: Callable[..., None]) -> dict[str, str]:
    """Return the flag of each option of a command, the long one where there are two, and the name of each argument."""
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
    """Return a parameter as its flag, and a setting as it is typed.

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
    """Print everything to standard error within the block."""
    token = _to_stderr.set(True)
    try:
        yield
    finally:
        _to_stderr.reset(token)


def say(text: str, *, bold: bool = False) -> None:
    """Print text of one or more lines."""
    typer.secho(visible(text, lines=True), bold=bold or None, err=_to_stderr.get())


def say_rows(rows: Iterable[tuple[str, object]]) -> None:
    """Print a summary, one line per row of a name and a value."""
    typer.echo(summary_lines(rows), err=_to_stderr.get())


def say_verdict(verdict: Verdict, row: tuple[str, object]) -> None:
    """Print the first line of a summary in the colour of the verdict."""
    typer.secho(summary_lines([row]), fg=COLOURS[verdict.level], bold=True, err=_to_stderr.get())


def say_pair(name: str, value: object) -> None:
    """Print a line of a summary."""
    say_rows([(name, value)])


def say_refusal(text: str) -> None:
    """Print why a command ends, in one line."""
    typer.secho(f"shoal: {visible(text)}", err=True, fg=typer.colors.RED)


def say_warning(category: type[Warning], text: str) -> None:
    """Print a warning in one line, and remember it."""
    _warnings.get([]).append(_plain(text))
    typer.secho(f"{category.__name__}: {visible(text)}", err=True, fg=typer.colors.YELLOW)


def forget_warnings() -> None:
    """Begin a command: none of its warnings has been printed."""
    _warnings.set([])


def was_said(note: str) -> bool:
    """Return whether a warning that was printed holds the words of a note."""
    return any(_plain(note) in warning for warning in _warnings.get([]))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
