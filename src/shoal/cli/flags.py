"""Parameters as they are typed on the command line: ``missing='group'`` is ``--missing group``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from typer.models import ArgumentInfo, OptionInfo

from shoal.core.messages import Reference

__all__ = ["flags_of", "typed"]

KINDS = ("nominal", "ordinal", "hierarchy", "date")


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
        return f"{', '.join(f'--{kind}' for kind in KINDS[:-1])} or --{KINDS[-1]}"
    parts = []
    for column, call in calls.items():
        kind, _, text = call.removesuffix(")").partition("(")
        setting = f"{column}={text[1:-1]}" if text else str(column)
        parts.append(f"--{kind.lower()} {shlex.quote(setting)}")
    return " ".join(parts)
