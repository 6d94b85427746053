"""Messages of the library in the language of the command line: ``missing='group'`` reads ``--missing group``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from inspect import signature

from typer.models import OptionInfo

__all__ = ["as_typed", "flags_of"]


def flags_of(command: Callable[..., None]) -> dict[str, str]:
    """Return the flag of each option of a command, the long one where there are two."""
    flags = {}
    for name, parameter in signature(command, eval_str=True).parameters.items():
        for told in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(told, OptionInfo):
                written = [part for part in (told.default, *(told.param_decls or ())) if isinstance(part, str)]
                flags[name] = max(written, key=len, default=f"--{name.replace('_', '-')}").partition("/")[0]
    return flags


def as_typed(message: str, flags: Mapping[str, str]) -> str:
    """Name parameters by their flags, and write values as they are typed.

    Examples
    --------
    >>> flags = {"missing": "--missing", "by": "--by", "bound": "--bound"}
    >>> as_typed("Parameter 'by' is wrong. Take missing='group', bound=True or by=['a', 'b c'].", flags)
    "Option --by is wrong. Take --missing group, --bound or --by a --by 'b c'."
    """

    def typed(found: re.Match[str]) -> str:
        flag, value = flags.get(found[1]), found[2]
        if flag is None:
            return found[0]
        if value in ("True", "False"):
            return flag if value == "True" else flag.replace("--", "--no-", 1)
        quoted = re.findall(r"'([^']*)'|\"([^\"]*)\"", value)
        values = [single or double for single, double in quoted] if value[0] in "['\"" else [value]
        return " ".join(f"{flag} {shlex.quote(part)}" for part in values)

    known = "|".join(map(re.escape, flags))
    named = "|".join(re.escape(name) for name in flags if len(name) > 1)  # k=5 is how the field writes it
    message = re.sub(rf"\bParameter '({known})'", lambda found: f"Option {flags[found[1]]}", message)
    message = re.sub(rf"\b(in|with|of|and) '({known})'", lambda found: f"{found[1]} {flags[found[2]]}", message)
    return re.sub(rf"(?<![\w'\"])({named})=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[\w+-]+(?:\.\d+)?)", typed, message)
