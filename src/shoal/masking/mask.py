"""The function `mask`, the main function of the library.

Importing the masking code takes most of a second, and so does starting the processes that mask a table on disk.
Therefore the processes start before this module imports that code. On the first run after an installation, two
processes share the compilation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from shoal.algorithms.registry import AUTO
from shoal.core.parameters import with_help_of
from shoal.engines.process_pool import start_template, working_aside
from shoal.masking.request import MaskRequest
from shoal.promises.promise_registry import PROMISES

if TYPE_CHECKING:
    import numpy as np

    from shoal.engines.process_pool import Template
    from shoal.masking.release import Release
    from shoal.tables.columns import Name

__all__ = ["mask", "mask_request"]


def mask_request(data: Any, request: MaskRequest) -> Release:
    """Mask a table according to a request."""
    is_local = request.engine == "local" or (request.engine is None and request.memory is not None)
    by_processes = is_local and isinstance(data, (str, os.PathLike))
    starting = start_template() if by_processes else nullcontext()
    with starting as template, _compiling(request, template):
        from shoal.masking.pipeline import mask_data

        return mask_data(data, request, template)


def _compiling(request: MaskRequest, template: Template | None) -> AbstractContextManager[None]:
    """Compile the annealing kernels of the default method in another process if no kernel is cached yet."""
    # The template process compiles kernels itself, and importing modules here would delay its start.
    if template is not None or request.method != AUTO or (os.cpu_count() or 1) < 2:
        return nullcontext()
    from shoal.core.kernel_cache import cache_folder

    folder = cache_folder()
    return nullcontext() if folder is None or any(folder.rglob("*.nbi")) else working_aside(_annealing)


def _annealing() -> Callable[[], None]:
    from shoal.algorithms.optimize.exchange import compile_annealing

    return compile_annealing


@with_help_of(MaskRequest)
def mask(
    data: Any,
    k: int,
    *,
    columns: Sequence[Name] | Name | None = None,
    method: str | Callable[..., Any] = "auto",
    kinds: Mapping[Name, Any] | None = None,
    distance: Sequence[Name] | Name | None = None,
    importance: Mapping[Name, float] | None = None,
    scale: Mapping[Name, str] | str | None = None,
    by: Sequence[Name] | Name | None = None,
    identifiers: Sequence[Name] | Name | None = None,
    keep: Sequence[Name] | Name | None = None,
    roles: str | os.PathLike[str] | Mapping[Name, Any] | None = None,
    rest: str = "drop",
    unit: Name | None = None,
    confidential: Sequence[Name] | Name | None = None,
    diversity: Any = None,
    closeness: Any = None,
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = None,
    missing: str = "group",
    missing_codes: Mapping[Name, Any] | None = None,
    small: str = "merge",
    max_left_out: str | float = "5%",
    zeros: Sequence[Name] | Name | None = None,
    sums: Sequence[str] | str | None = None,
    integers: str = "round",
    decimals: str = "fit",
    aggregate: str = "mean",
    refine: int | None = 0,
    block: int | None = None,
    split: str | None = None,
    block_by: Sequence[Name] | Name | None = None,
    engine: str | None = None,
    memory: str | int | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    master: str | None = None,
    shuffle: bool | int | None = False,
    effort: str | None = None,
    seed: int | None = 0,
    output: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    skip_rows: int | None = 0,
    no_header: bool | None = False,
    sheet: str | None = None,
    query: str | None = None,
    escape_formulas: bool | None = False,
    progress: bool = False,
    **options: object,
) -> Release:
    """Mask a table: form groups of at least k similar records and replace their values with the value of the group.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, a NumPy array, or the path of a file (CSV, Parquet, Arrow, Excel, SPSS,
        Stata, SAS). The address of a database (with `query`), a polars LazyFrame or a DuckDB relation is read or
        computed first, and the masked table is a polars DataFrame. A Dask or Spark DataFrame is masked on its
        cluster.
    *parameters*

    Returns
    -------
    Release
        The masked table with its groups, losses, risks and verdict. The release is verified: every combination of
        released values occurs at least k times in its stratum.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"name": list("abcdef"), "sales": [1.0, 9.0, 2.0, 8.5, 1.5, 9.5]})
    >>> release = mask(firms, k=3, columns=["sales"])
    >>> release.data["sales"].to_list()
    [1.5, 9.0, 1.5, 9.0, 1.5, 9.0]
    >>> round(release.loss, 3)
    1.171
    """
    arguments = dict(locals())  # a test checks that names and defaults match the request
    arguments |= {name: options.pop(name) for name in PROMISES if name in options}
    return mask_request(arguments.pop("data"), MaskRequest(**arguments))
