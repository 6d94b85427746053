"""What was asked, as a command and as a call that ask for it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import Field
from typing import Any

from shoal.algorithms.registry import ALL_METHODS
from shoal.kinds.kind_registry import as_option
from shoal.masking.request import not_recorded, parameters

__all__ = ["as_call", "as_command"]


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
    items = {item.name: item for item in parameters() if item.metadata["stored"] and item.metadata["flags"]}
    for name, value in told.items():
        if name == "kinds":
            for column, kind in value.items():
                words += as_option(column, kind, (hierarchies or {}).get(column))
        elif name in items:
            words += _option(items[name], value)
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


def _option(item: Field[Any], value: Any) -> list[str]:
    """Return the option of a parameter, repeated for each of its values; those of a promise are written in one."""
    flag = item.metadata["flags"][0]
    if value is True:
        return [flag]
    if isinstance(value, dict):
        value = [f"{column}={_listed(part)}" for column, part in value.items()]
        value = value if item.metadata["typed"] is list else ",".join(value)
    return [word for part in (value if isinstance(value, list) else [value]) for word in (flag, str(part))]


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
