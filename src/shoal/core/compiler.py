"""The one way to compile a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

import numba
from numba import njit
from numba.extending import intrinsic

from shoal.core.kernel_cache import cache_folder, is_cached

__all__ = ["intrinsic", "kernel", "uncounted_options"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
_deciding = threading.Lock()


@cache
def _leave_out_scipy() -> None:
    """Load numba's functions of arrays without scipy's linear algebra, which takes longer to import than numba itself.

    numba imports it, before the first kernel runs, to see whether it is there. It is: shoal needs scipy. A kernel
    that multiplies matrices imports it when it is compiled, and when it is called.
    """
    linalg: Any = import_module("numba.np.linalg")
    check = getattr(linalg, "ensure_blas", None)
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check


def _load_lightly(compiled: Any) -> None:
    """Let a kernel be loaded from the cache without all that numba needs to compile one, which takes 0.1 s to import.

    numba fills its registries of compilable functions before it looks into the cache; a kernel that is not there fills
    them when it is compiled. The attributes are private: a numba that has others loads kernels in its own way.
    """
    cache: Any = getattr(compiled, "_cache", None)
    runtime = getattr(import_module("numba.core.runtime"), "rtsys", None)
    if runtime is None or not hasattr(cache, "_load_overload"):
        _leave_out_scipy()
        return

    def load_overload(signature: Any, target: Any) -> Any:
        runtime.initialize(target)
        with cache._guard_against_spurious_io_errors():  # noqa: SLF001
            if (loaded := cache._load_overload(signature, target)) is not None:  # noqa: SLF001
                return loaded
        _leave_out_scipy()
        return None

    cache.load_overload = load_overload


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


class Kernel(Protocol[P, R_co]):
    """A compiled function, and the one that it was made from."""

    py_func: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run it, compiled for the types of the arguments."""


@overload
def kernel(function: Callable[P, R_co], /) -> Kernel[P, R_co]: ...


@overload
def kernel(
    *,
    inline: bool = ...,
    counted: bool = ...,
    inner: bool = ...,
    fastmath: Collection[str] = ...,
    error_model: Literal["python", "numpy"] = ...,
) -> Callable[[Callable[P, R_co]], Kernel[P, R_co]]: ...


def kernel(
    function: Any = None,
    /,
    *,
    inline: bool = False,
    counted: bool = True,
    inner: bool = False,
    fastmath: Collection[str] = (),
    error_model: Literal["python", "numpy"] = "python",
) -> Any:
    """Compile a function when it is first called, or take it from the cache. It runs without the GIL.

    `inline` makes it part of its callers' source, compiled with each of them: for kernels that take a tuple of many
    arrays, where a call costs more to compile than most of them do. Without `counted` no references to arrays are
    counted: for kernels that take such a tuple again and again and allocate nothing, since counting takes longer than
    a short query; they have no wrapper for C and compile twice as fast. An `inner` kernel is called by kernels only and
    has no wrapper for Python. `fastmath` lists the liberties LLVM may take with numbers that are rounded anyway.
    `error_model` ``"numpy"`` makes a division by zero infinite, without a test for it.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def total(values):
    ...     result = 0.0
    ...     for value in values:
    ...         result += value
    ...     return result
    >>> total(np.array([1.0, 2.5]))
    3.5
    """
    # Always given: otherwise a kernel would have them from the caller that happens to compile it first.
    options: dict[str, Any] = {"nogil": True, "error_model": error_model, "fastmath": set(fastmath) or False}
    if inline:
        options["inline"] = "always"
    if not counted:
        options |= {"no_cfunc_wrapper": True, **uncounted_options()}
    if inner:
        options["no_cpython_wrapper"] = True

    def compiling(function: Any) -> Any:
        if (cached := _cached(function, options)) is not None:
            return cached
        _leave_out_scipy()
        return njit(function, **options)

    return compiling(function) if function else compiling


def _cached(function: Any, options: dict[str, Any]) -> Any:
    """Return the kernel with a cache in our folder, None if it can have none or is not made of our sources."""
    folder = cache_folder()
    if folder is None or not is_cached(function.__code__.co_filename):
        return None
    config: Any = numba.config
    # numba reads its setting while it decorates; the kernels of others stay where they are.
    with _deciding:
        theirs, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            compiled = njit(function, cache=True, **options)
        except RuntimeError:  # numba found no place for it
            return None
        finally:
            config.CACHE_DIR = theirs
    stats = getattr(compiled, "stats", None)  # NUMBA_DISABLE_JIT leaves functions as they are
    _load_lightly(compiled)
    # If other settings led numba past our folder, its cache may be stale.
    return compiled if stats is None or Path(stats.cache_path).is_relative_to(folder) else None
