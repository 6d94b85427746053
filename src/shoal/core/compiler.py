"""The decorator `kernel`, which compiles all kernels of shoal."""

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
    """Load numba's array functions without scipy's linear algebra, which takes longer to import than numba itself.

    Before the first kernel runs, numba imports scipy.linalg only to check that scipy is installed, which shoal's
    dependencies ensure. A kernel that multiplies matrices imports scipy.linalg when it is compiled and called.
    """
    linalg: Any = import_module("numba.np.linalg")
    check = getattr(linalg, "ensure_blas", None)
    linalg.ensure_blas = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check


def _load_lightly(compiled: Any) -> None:
    """Make a kernel load from the cache without the modules that numba needs only for compiling (0.1 s of imports).

    numba fills its registries of compilable functions before it checks the cache; here the registries are filled only
    if a kernel is not cached. The attributes are private. If a numba version lacks them, kernels load in the usual way.
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
    """Return the numba option that turns off reference counting, or no option if numba does not support it.

    Counting the references in a tuple of many arrays takes longer than a short kernel. The option ``_nrt`` is private,
    so first check whether numba accepts it; kernels work without it.
    """
    option = {"_nrt": False}
    try:
        core: Any = import_module("numba.core")
        core.registry.cpu_target.options.parse_as_flags(core.compiler.Flags(), option)
    except Exception:  # noqa: BLE001 - whichever error numba raises, kernels work without the option
        return {}
    return option


class Kernel(Protocol[P, R_co]):
    """A compiled function with its Python source function."""

    py_func: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function, compiled for the types of the arguments."""


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
    """Compile a function on its first call or load it from the cache. Compiled kernels release the GIL.

    `inline` compiles the kernel into each of its callers. It suits kernels that take a tuple of many arrays, because
    compiling a call with such a tuple takes longer than compiling most kernels. Without `counted`, references to arrays
    are not counted. This suits kernels that allocate nothing and are often called with such a tuple, because counting
    takes longer than a short query; these kernels have no C wrapper and compile twice as fast. An `inner` kernel is
    called only by other kernels and has no Python wrapper. `fastmath` lists the LLVM fast-math flags. With
    `error_model` ``"numpy"``, a division by zero returns infinity without a test.

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
    # Pass every option, because a kernel inherits missing options from the caller that compiles it first.
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
    """Return a kernel cached in shoal's folder, or None if the function cannot be cached or is not part of shoal."""
    folder = cache_folder()
    if folder is None or not is_cached(function.__code__.co_filename):
        return None
    config: Any = numba.config
    # numba reads CACHE_DIR while it decorates; restore it so that kernels of other packages keep their folder.
    with _deciding:
        user_folder, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            compiled = njit(function, cache=True, **options)
        except RuntimeError:  # numba cannot write to the folder
            return None
        finally:
            config.CACHE_DIR = user_folder
    stats = getattr(compiled, "stats", None)  # with NUMBA_DISABLE_JIT, njit returns the plain function
    _load_lightly(compiled)
    # If other settings made numba ignore this folder, the cache in use may be stale.
    return compiled if stats is None or Path(stats.cache_path).is_relative_to(folder) else None
