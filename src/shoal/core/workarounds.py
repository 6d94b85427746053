"""Workarounds: three things that Python and its libraries do not offer.

Each may go once its library can do without it.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["clear_exec_interrupt", "defer_import", "drop_deferred", "uncounted_options"]


def clear_exec_interrupt() -> None:
    """Let the process end with its own exit code after a `KeyboardInterrupt` that was handled.

    CPython exits with SIGINT if a `KeyboardInterrupt` escaped code made by ``exec()``, such as that of dataclasses,
    even when it is handled. Another ``exec()`` clears the flag.
    """
    exec("")  # noqa: S102


@cache
def uncounted_options() -> dict[str, Any]:
    """Return numba's option to leave references uncounted; none if this numba does not know it.

    Counting takes longer than a short kernel that gets a tuple of many arrays. The option ``_nrt`` is private, so that
    numba is asked first whether it accepts it; kernels work without.
    """
    option = {"_nrt": False}
    try:
        core: Any = import_module("numba.core")
        core.registry.cpu_target.options.parse_as_flags(core.compiler.Flags(), option)
    except Exception:  # noqa: BLE001 - whatever way it refuses, kernels work without
        return {}
    return option


def defer_import(name: str) -> None:
    """Let a module be imported when it is first used, by whoever imports it from now on.

    Polars starts threads when it is imported, and a process with threads cannot be forked safely. The process that
    workers are forks of defers it: a fork imports it once it needs it, which it does not for numbers of Parquet files.
    That is 15 MB of each. The standard `importlib.util.LazyLoader` does not serve: it loads the module as soon as
    anybody looks at an attribute, as narwhals does.
    """
    sys.modules[name] = DeferredModule(name)


def drop_deferred(name: str) -> None:
    """Hide a deferred module that has not been used from libraries that look for imported ones, as narwhals does."""
    if isinstance(sys.modules.get(name), DeferredModule):
        del sys.modules[name]


class DeferredModule(ModuleType):
    """A stand-in for a module, which imports it when it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)

    def load(self) -> ModuleType:
        """Import the module; whoever has imported the stand-in has all of it then."""
        drop_deferred(self.__name__)
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        return module
