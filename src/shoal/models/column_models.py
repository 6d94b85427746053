"""Models of confidential columns as parameters: one for all columns or one for each, as objects, numbers or text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PROMISES", "describe_promises", "plain_promise", "read_promise", "write_promise"]

PROMISES = ("diversity", "closeness")  # the parameters that hold them


def read_promise(parameter: str, value: Any) -> Any:
    """Return a model, or a model of each column, from one, a number, text or a mapping.

    Examples
    --------
    >>> read_promise("closeness", "pay=0.2,age=0.3")
    {'pay': Closeness(t=0.2), 'age': Closeness(t=0.3)}
    """
    from shoal.models.model_registry import read_model

    if isinstance(value, str) and "=" in value:
        value = dict(part.rpartition("=")[::2] for part in value.split(","))
    if isinstance(value, Mapping):
        return {name: read_model(parameter, model) for name, model in value.items()}
    return read_model(parameter, value)


def plain_promise(model: Any) -> Any:
    """Return a model as text, as `read_promise` takes it."""
    if isinstance(model, Mapping):
        return {name: of.text for name, of in model.items()}
    return None if model is None else model.text


def write_promise(model: Any) -> str:
    """Return a model, or a model of each column, as it is written on the command line; nothing for None.

    Examples
    --------
    >>> write_promise(read_promise("closeness", "pay=0.2,age=0.3")), write_promise({"pay": "0.2"})
    ('pay=0.2,age=0.3', 'pay=0.2')
    """
    if isinstance(model, Mapping):
        return ",".join(f"{name}={write_promise(of)}" for name, of in model.items())
    return model if isinstance(model, str) else "" if model is None else str(model.text)


def describe_promises(diversity: Any, closeness: Any) -> str:
    """Return what is promised of confidential columns in a few words; nothing if nothing is.

    Examples
    --------
    >>> describe_promises("entropy:3", "0.2")
    'diversity entropy:3 and closeness 0.2'
    """
    promises = zip(PROMISES, map(write_promise, (diversity, closeness)), strict=True)
    return " and ".join(f"{name} {text}" for name, text in promises if text)
