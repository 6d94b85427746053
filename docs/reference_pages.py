"""Pages of the reference generated from the code: commands, parameters of a masking, methods with their options."""

import re
from functools import partial
from inspect import cleandoc
from typing import Any

import typer

from shoal.algorithms.registry import ALL_METHODS
from shoal.cli import app
from shoal.cli.terminal import flags_of, typed
from shoal.core.parameters import help_of, parameters_of
from shoal.kinds.kind_registry import KINDS
from shoal.masking.request import MaskRequest

__all__ = ["command_page", "commands", "method_page", "parameter_page"]


def commands() -> dict[str, Any]:
    """Return the commands by name in the order of ``shoal --help``, as objects of Click, which typer uses."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(re.sub(r"``([^`]+)``", r"`\1`", text).split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def command_page() -> str:
    """Return the page of all commands: usage, help, example, arguments and options."""
    parts = [
        "# Commands\n",
        """This page is generated from the commands. `shoal COMMAND --help` shows the first sentence of each option.
Exit codes: 0 done, 1 refused, 2 wrong usage, 130 interrupted, 143 ended by SIGTERM.
""",
    ]
    for name, command in commands().items():
        help_text = cleandoc(command.help or "")
        examples = re.findall(r"^Example: (.*)$", help_text, flags=re.MULTILINE)
        purpose = re.sub(r"^Example: .*\n*", "", help_text, flags=re.MULTILINE)
        named = [part for part in command.params if part.param_type_name == "argument"]
        usage = " ".join(["shoal", name, *(str(part.metavar or part.name).upper() for part in named), "[OPTIONS]"])
        parts += [f"## shoal {name} {{#{name}}}\n", purpose.strip() + "\n", f"```text\n{usage}\n```\n"]
        parts.append("For example:\n\n```text\n" + "\n".join(examples) + "\n```\n")
        rows = [(f"`{part.metavar or part.name}`", cell(getattr(part, "help", "") or "")) for part in named]
        texts = whole_help(getattr(command.callback, "request", None), flags_of(command.callback))
        rows += [_option(part, texts) for part in command.params if part.param_type_name == "option"]
        if rows:
            parts.append(table(("argument or option", "meaning"), rows))
    return "\n".join(parts)


def whole_help(request: type | None, flags: dict[str, str]) -> dict[str, str]:
    """Return the help of each option of a parameter or a kind of column, by its name."""
    items = [] if request is None else [item for item in parameters_of(request) if item.metadata["flags"]]
    texts = {item.name: help_of(item, partial(typed, flags=flags)) for item in items}
    return {**texts, **{word: kind.help for word, kind in KINDS.items()}}


def _option(part: Any, texts: dict[str, str]) -> tuple[str, str]:
    flags = ", ".join(f"`{flag}`" for flag in [*part.opts, *part.secondary_opts])
    none = part.default in (None, False, (), []) or callable(part.default) or (part.is_flag and part.default is True)
    text = texts.get(str(part.name), str(part.help)).rstrip(".")
    return flags, cell(f"{text}." if none else f"{text}. Default: `{part.default}`.")


def parameter_page(request: type = MaskRequest) -> str:
    """Return the page of all parameters of a masking, from its request."""
    rows = []
    for item in parameters_of(request):
        flags = ", ".join(f"`{flag}`" for flag in item.metadata["flags"])
        default = "" if item.name in ("k", "options") else f"`{item.default!r}`"
        text = help_of(item, lambda other: f"`{other.name}`", python=True)
        rows.append((f"`{item.name}`", cell(text), default, flags))
    kinds = ", ".join(f"`{entry.flag}`" for entry in KINDS.values() if entry.flag)
    return f"""# Parameters of a masking

The parameters of `shoal.mask`, generated from `shoal.MaskRequest`, which checks them. On the command line, kinds of
columns are {kinds}, codes for missing values are `--missing-code`, and options of a method are `-O NAME=VALUE`; see
[Commands](commands.md#mask).

""" + table(("parameter", "meaning", "default", "command line"), rows)


def method_page() -> str:
    """Return the page of all methods with papers, costs and options, from the registry."""
    parts = [
        "# Methods and options\n",
        """This page is generated from the registry of methods, like `shoal methods` and `shoal.methods()`.
[What each method does](../explanations/methods.md) shows their groups.
""",
    ]
    for method in ALL_METHODS.values():
        columns = "one column" if method.univariate else "any columns"
        parts += [
            f"## {method.name}\n",
            f"{cell(method.summary)}. {method.paper}; {columns}, {method.sizes} group sizes; {method.cost}.\n",
        ]
        if method.options:
            rows = [(f"`{option.name}`", cell(option.help), f"`{option.default!r}`") for option in method.options]
            parts.append(table(("option", "meaning", "default"), rows))
    return "\n".join(parts)
