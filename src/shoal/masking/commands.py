"""What was asked, as a command and as a call that ask for it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from numbers import Number
from typing import Any

from shoal.masking.request import parameters

__all__ = ["as_call", "as_command", "can_be_written"]

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
    for item in parameters():
        value = asked.get(item.name, item.default)
        if item.name == "options":
            for name, part in value.items():
                words += ["-O", f"{name}={part}"] if part is not None and can_be_written(part) else []
        elif item.name == "kinds":
            for name, kind in (value or {}).items():
                words += _kind(name, kind, (hierarchies or {}).get(name))
        elif item.metadata["stored"] and value != item.default:
            if value is True:
                words.append(item.metadata["flags"][0])
                continue
            if isinstance(value, dict):
                words += _pairs(item.name, value)
                continue
            for part in value if isinstance(value, list) else [value]:
                words += [item.metadata["flags"][0], str(part)]
    return shlex.join([*words, "-o", output])


def _pairs(name: str, value: Mapping[Any, Any]) -> list[str]:
    """Return the options that say something of each column; models are told in one."""
    pairs = [f"{column}={_listed(part)}" for column, part in value.items()]
    if name not in PAIRS:
        return [f"--{name}", ",".join(pairs)]
    return [word for pair in pairs for word in (PAIRS[name], pair)]


def _listed(part: Any) -> str:
    return ",".join(map(str, part)) if isinstance(part, (list, tuple)) else str(part)


def _kind(name: object, kind: Any, file: str | None) -> list[str]:
    """Return the option of a column that holds no numbers; none for a hierarchy without a file."""
    if isinstance(kind, str):
        word, blank, format_ = kind.partition(" ")
        return [f"--{word}", f"{name}={format_}" if blank else str(name)]
    if isinstance(kind, list):
        return ["--ordinal", f"{name}={_listed(kind)}"]
    return [] if file is None else ["--hierarchy", f"{name}={file}"]


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
    given = {item.name: asked.get(item.name) for item in parameters() if item.name != "options"} | asked["options"]
    given["output"] = output
    told = {name: value for name, value in given.items() if value not in (None, []) and can_be_written(value)}
    arguments = ",\n    ".join(f"{name}={value!r}" for name, value in told.items())
    return f"import shoal\n\nshoal.mask(\n    {'data' if source is None else repr(source)},\n    {arguments},\n)"


def can_be_written(value: object) -> bool:
    """Whether a command can hold it: an option may also be an object, such as a spanning tree built before."""
    return value is None or isinstance(value, (str, Number, list, tuple, dict))
