"""What was asked, as a command and as a call that ask for it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from shoal.algorithms.registry import ALL_METHODS
from shoal.kinds.registry import as_option
from shoal.masking.request import not_recorded, parameters

__all__ = ["as_call", "as_command"]

PAIRS = {"importance": "--importance", "missing_codes": "--missing-code"}  # what is given by column


def as_command(asked: Mapping[str, Any], source: str, output: str, hierarchies: Mapping[Any, str] | None = None) -> str:
    """Return the command line that asks for a masking; `asked` as `MaskRequest.recorded` tells it.

    `hierarchies` names the files of columns whose values are in a tree: no command can hold the tree itself.

    Examples
    --------
    >>> as_command({"k": 5, "columns": ["sales"], "method": "v-mdav", "options": {"gamma": 0.2}}, "in.csv", "out.csv")
    'shoal mask in.csv -k 5 -c sales -m v-mdav -O gamma=0.2 -o out.csv'
    """
    words = ["shoal", "mask", source]
    told, options = _chosen(asked)
    flags = {item.name: item.metadata["flags"] for item in parameters() if item.metadata["stored"]}
    for name, value in told.items():
        if name == "kinds":
            for column, kind in value.items():
                words += as_option(column, kind, (hierarchies or {}).get(column))
        elif name not in flags:
            continue
        elif value is True:
            words.append(flags[name][0])
        elif isinstance(value, dict):
            words += _pairs(name, value)
        else:
            for part in value if isinstance(value, list) else [value]:
                words += [flags[name][0], str(part)]
    for name, value in options.items():
        words += ["-O", f"{name}={value}"]
    return shlex.join([*words, "-o", output])


def _chosen(asked: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the options of the method that are not at their defaults, but for objects."""
    objects = not_recorded(asked)
    told = {
        item.name: asked[item.name]
        for item in parameters()
        if item.name not in ("options", *objects) and asked.get(item.name, item.default) not in (item.default, None, [])
    }
    entry = ALL_METHODS.get(asked.get("method", ""))
    defaults = {option.name: option.default for option in entry.options} if entry is not None else {}
    unsaid = (*told, *objects)
    options = {
        name: value
        for name, value in asked["options"].items()
        if name not in unsaid and value not in (None, defaults.get(name))
    }
    return told, options


def _pairs(name: str, value: Mapping[Any, Any]) -> list[str]:
    """Return the options that say something of each column; models are told in one."""
    pairs = [f"{column}={_listed(part)}" for column, part in value.items()]
    if name not in PAIRS:
        return [f"--{name}", ",".join(pairs)]
    return [word for pair in pairs for word in (PAIRS[name], pair)]


def _listed(part: Any) -> str:
    return ",".join(map(str, part)) if isinstance(part, (list, tuple)) else str(part)


def as_call(asked: Mapping[str, Any], source: str | None, output: str | None = None) -> str:
    """Return the call of `shoal.mask` that asks for a masking; of a table that has a path, or of `data`.

    Examples
    --------
    >>> print(as_call({"k": 5, "columns": ["sales"], "options": {}}, "in.csv"))
    import shoal
    <BLANKLINE>
    shoal.mask(
        'in.csv',
        k=5,
        columns=['sales'],
    )
    """
    told, options = _chosen(asked)
    told |= options | ({} if output is None else {"output": output})
    arguments = ",\n    ".join(f"{name}={value!r}" for name, value in told.items())
    return f"import shoal\n\nshoal.mask(\n    {'data' if source is None else repr(source)},\n    {arguments},\n)"
