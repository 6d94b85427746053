"""Pages of the reference that are made from the code: commands, parameters of a masking, methods with their options."""

import re
from inspect import cleandoc
from typing import Any

import typer

from shoal.algorithms.registry import ALL_METHODS
from shoal.cli import app
from shoal.core.parameters import help_of, parameters_of
from shoal.kinds.kind_registry import KINDS
from shoal.masking.request import MaskRequest

__all__ = ["command_page", "commands", "method_page", "parameter_page"]


def commands() -> dict[str, Any]:
    """Return the commands by name, in the order of ``shoal --help``: those of Click, which typer carries or imports."""
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
        """Made from the commands themselves: `shoal COMMAND --help` says the same. Exit codes: 0 done, 1 refused in
words, 2 wrong usage, 130 interrupted, 143 ended by SIGTERM.
""",
    ]
    for name, command in commands().items():
        help_text = cleandoc(command.help or "")
        examples = re.findall(r"^Example: (.*)$", help_text, flags=re.MULTILINE)
        told = re.sub(r"^Example: .*\n*", "", help_text, flags=re.MULTILINE)
        named = [part for part in command.params if part.param_type_name == "argument"]
        usage = " ".join(["shoal", name, *(str(part.metavar or part.name).upper() for part in named), "[OPTIONS]"])
        parts += [f"## shoal {name} {{#{name}}}\n", told.strip() + "\n", f"```text\n{usage}\n```\n"]
        parts.append("For example:\n\n```text\n" + "\n".join(examples) + "\n```\n")
        rows = [(f"`{part.metavar or part.name}`", cell(getattr(part, "help", "") or "")) for part in named]
        rows += [_option(part) for part in command.params if part.param_type_name == "option"]
        if rows:
            parts.append(table(("argument or option", "what it says"), rows))
    return "\n".join(parts)


def _option(part: Any) -> tuple[str, str]:
    flags = ", ".join(f"`{flag}`" for flag in [*part.opts, *part.secondary_opts])
    given = part.default
    default = "" if given in (None, False, (), []) or callable(given) else f" Default: `{given}`."
    return flags, cell(str(part.help)) + ("" if part.is_flag and given is True else default)


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

All that can be asked of `shoal.mask`, from `shoal.MaskRequest`, which checks it. On the command line, kinds of columns
are {kinds}; codes for missing are `--missing-code`, and options of a method `-O NAME=VALUE`:
[Commands](commands.md#mask).

""" + table(("parameter", "what it says", "default", "command line"), rows)


def method_page() -> str:
    """Return the page of all methods with papers, costs and options, from the registry."""
    parts = [
        "# Methods and options\n",
        """Made from the registry, as `shoal methods` and `shoal.methods()` are.
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
            parts.append(table(("option", "what it says", "default"), rows))
    return "\n".join(parts)
