"""The one way to compile a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

import numba
from numba import njit
from numba.extending import intrinsic

from shoal.core.kernel_cache import cache_folder, is_cached
from shoal.core.workarounds import uncounted_options

__all__ = ["intrinsic", "kernel"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
_deciding = threading.Lock()


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


_leave_out_scipy()


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

    Parameters
    ----------
    function
        What to compile: loops over arrays and numbers.
    inline
        The kernel becomes part of its callers' source, and is compiled with each of them. For kernels that take a tuple
        of many arrays: to hand it over costs more to compile than most of them do.
    counted
        Count references to arrays. Kernels that take such a tuple again and again, and ask for no memory, do not:
        counting takes longer than a short query. They have no wrapper for C either, and compile twice as fast.
    inner
        Only kernels call it: no wrapper for Python is compiled.
    fastmath
        The liberties LLVM may take with floating-point numbers, where they are rounded anyhow.
    error_model
        ``"numpy"`` makes a division by zero infinite, without a test for it.

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
        return _cached(function, options) or njit(function, **options)

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
    # If other settings led numba past our folder, its cache may be stale.
    return compiled if stats is None or Path(stats.cache_path).is_relative_to(folder) else None
