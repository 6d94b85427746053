"""User functions as methods: ``f(X, k)`` receives a C-contiguous float64 array and k, and returns labels.

The labels are checked: one integer label per record, and at least k records in every group.
"""

from __future__ import annotations

import inspect
import pickle
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

import numpy as np

from shoal.algorithms.registry import Growth, Method, Option
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels
from shoal.core.messages import parameter
from shoal.core.progress import DONE
from shoal.core.types import Floats, Ints, State

__all__ = ["UserFunction", "check_sendable", "user_method"]

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def user_method(function: Callable[..., Any]) -> Method:
    """Return a registry entry for a function; its options are the named parameters after the first two.

    Examples
    --------
    >>> def halves(X, k, column=0):
    ...     return (X[:, column] > np.median(X[:, column])).astype(int)
    >>> entry = user_method(halves)
    >>> entry.name, [option.name for option in entry.options]
    ('shoal.algorithms.user_function.halves', ['column'])
    """
    source = function if hasattr(function, "__name__") else type(function)
    # The module name prevents conflicts with names in the registry.
    name = f"{getattr(source, '__module__', None) or '__main__'}.{source.__name__}"
    parameters = _parameters(function, name)
    return Method(
        name=name,
        summary="a user's function",
        paper="",
        cost="unknown",
        function=UserFunction(name, function),
        sizes="variable",
        below_2k=False,
        options=tuple(Option(p.name, object, p.default, "") for p in parameters if p.name != "seed"),
        random=any(p.name == "seed" for p in parameters),
        growth=Growth.CUBIC,
    )


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """Return the parameters that can be passed by name, except the first two: the records and k."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # compiled functions may have no signature
        return []
    first = [p for p in parameters if p.kind in POSITIONAL][:2]
    if len(first) < 2 and not any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        raise InputError(
            f"{parameter('method')} must be a function of the records and k, f(X, k), but {name!r} has the parameters "
            f"({', '.join(map(str, parameters))})."
        )
    return [p for p in parameters if p.kind in NAMED and p not in first]


class UserFunction:
    """A wrapper that calls a user's function for one set of records at a time and checks its labels.

    The function is sent to other processes as bytes, which are unpickled at the first call. A failed import is
    therefore reported like any other error of the run.
    """

    def __init__(self, name: str, function: Callable[..., Any] | bytes) -> None:
        self.name = name
        self._function = function
        self._lock = threading.Lock()  # blocks are grouped in several threads, but the function may not be thread-safe

    def __call__(self, X: Floats, k: int, *, state: State, **options: object) -> Ints:
        """Call the function on a copy of the records and return its labels after the checks."""
        with self._lock:
            function = self._load()
            try:
                # Pass a copy, because the function may modify the array.
                answer = function(np.array(X, dtype=np.float64, order="C"), k, **options)
            except Exception as error:
                raise InputError(f"Method {self.name!r} failed: {type(error).__name__}: {error}") from error
        labels = self._checked(answer, len(X), k)
        state[DONE] += len(X)
        return labels

    def _checked(self, answer: object, n: int, k: int) -> Ints:
        try:
            labels = np.asarray(answer)
        except (TypeError, ValueError):  # rows of different lengths
            raise self._error(f"one label for each of the {n} records", f"a {type(answer).__name__}") from None
        if labels.shape != (n,):
            got = "None" if answer is None else f"a {type(answer).__name__} of shape {labels.shape}"
            raise self._error(f"one label for each of the {n} records, an array of shape ({n},)", got)
        if labels.dtype.kind not in "iu":
            raise self._error("integer labels", f"labels of type {labels.dtype}")
        groups, sizes = np.unique(labels, return_counts=True)
        if sizes.min() < k:
            smallest = int(np.argmin(sizes))
            raise self._error(
                f"groups of at least k={k} records",
                f"{int((sizes < k).sum())} smaller groups; group {groups[smallest]} has {sizes[smallest]}",
            )
        return canonical_labels(labels)

    def _error(self, rule: str, got: str) -> InputError:
        return InputError(f"Method {self.name!r} must return {rule}, got {got}. Nothing was released.")

    def _load(self) -> Callable[..., Any]:
        if isinstance(self._function, bytes):
            try:
                self._function = pickle.loads(self._function)  # noqa: S301  (from the process that sent the task)
            except Exception as error:
                raise InputError(
                    f"Method {self.name!r} cannot be called in another process: {error}. Put it in a module that all "
                    "processes can import, or mask the table in memory."
                ) from error
        return cast("Callable[..., Any]", self._function)

    def __reduce__(self) -> tuple[type[UserFunction], tuple[str, bytes]]:
        if isinstance(self._function, bytes):
            return UserFunction, (self.name, self._function)
        try:
            return UserFunction, (self.name, _pickler().dumps(self._function))
        except Exception as error:
            raise InputError(
                f"Method {self.name!r} cannot be sent to other processes: {error}. Put it in a module, with everything "
                "it needs, or mask the table in memory."
            ) from error


def check_sendable(entry: Method, options: Mapping[str, Any]) -> None:
    """Reject a method or options that cannot be sent to other processes."""
    try:
        pickle.dumps((entry, options))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"Options of method {entry.name!r} cannot be sent to other processes: {error}. Omit options that cannot be "
            "pickled, or mask the table in memory."
        ) from error


def _pickler() -> Any:
    """Return cloudpickle, which also handles functions from notebooks, if it is installed; otherwise pickle."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return pickle
