"""mask(): the library's front door.

Importing what masks takes most of a second, and so does starting the processes that mask a table on disk: they are
started first. Nothing else is imported here before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shoal.engines.workers import start_template

if TYPE_CHECKING:
    import numpy as np

    from shoal.masking.release import Release
    from shoal.tables.columns import Name


__all__ = ["mask"]


def mask(
    data: Any,
    k: int,
    *,
    columns: Sequence[Name] | Name | None = None,
    method: str | Callable[..., Any] = "auto",
    by: Sequence[Name] | Name | None = None,
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = None,
    missing: str = "error",
    integers: str = "float",
    aggregate: str = "mean",
    block: int | None = None,
    split: str | None = None,
    engine: str | None = None,
    memory: str | int | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    seed: int | None = 0,
    output: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    progress: bool = False,
    **options: object,
) -> Release:
    """Mask a table: put its records in groups of at least k similar ones and replace their values by the group's.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, a NumPy array, or the path of a file (CSV, Parquet, Arrow, SPSS, Stata,
        SAS); or a Dask DataFrame, which is masked where it lies.
    k
        The least number of records in a group, at least 2.
    columns
        The columns to mask; all numeric ones but those in `by` and `weights` if not given.
    method
        A name listed by `shoal.methods`; ``"auto"`` takes the optimum for one column and MDAV for several. Or a
        function ``f(X, k)`` that returns the group of each record, as `shoal.partition` takes it.
    by
        Columns that split the table into strata: groups never cross them.
    weights
        Weights of the records, as a column's name or a vector: the group's value is then the weighted mean, so that
        weighted totals are kept. k counts records all the same.
    missing
        What to do with records that miss a value in a masked column: ``"error"`` refuses them, ``"group"`` masks
        them among records that miss the same columns, ``"drop"`` leaves them out of the release.
    integers
        ``"float"`` releases means of integer columns as they are, ``"round"`` keeps them integers.
    aggregate
        The value that stands for a group: ``"mean"``, ``"median"`` or ``"medoid"`` (a real record's values).
    block
        Mask the table in blocks of at most this many records; 0 for none. If not given, tables with more than 100,000
        records in a stratum are masked in blocks of 10,000 by methods that take several columns.
    split
        How blocks are cut: ``"all"`` columns at once (a 2^d-tree), ``"one"`` at a time (above 5 columns, if not given),
        or ``"univariate"`` (equal intervals of the first column).
    engine
        ``"memory"``, or ``"local"`` for a table that stays on disk: CSV or Parquet, as a file, a folder or a glob, to
        the file `output`, by processes of this machine. Chosen by the size of the file if not given. ``"dask"`` masks
        CSV or Parquet files to a Parquet file on a Dask cluster.
    memory
        The memory that engine ``"local"`` may take, all its processes together, such as ``"2GB"``; half of what is free
        if not given. The calling process is one of them, with what it held before. The summary tells the peaks.
    processes
        How many worker processes it has; one a processor if not given.
    scheduler
        The address of the cluster for engine ``"dask"``; the current client, or this process, if not given.
    seed
        Decides the result of a random method.
    output
        Write the masked table to this file, as a whole or not at all.
    labels
        Write the group of each record and the size of the group to this file.
    delimiter, encoding, decimal
        How a CSV file is written; taken from the file itself if not given.
    progress
        Show a progress bar on a terminal.
    **options
        Options of the method.

    Returns
    -------
    Release
        The masked table and what a reader must know about it. It has been verified: every combination of released
        values occurs at least k times in its stratum.

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
    with start_template(data, engine, memory) as template:
        from shoal.masking.request import MaskRequest
        from shoal.masking.running import mask_data

        request = MaskRequest(
            k=k,
            columns=columns,
            method=method,
            by=by,
            weights=weights,
            missing=missing,
            integers=integers,
            aggregate=aggregate,
            block=block,
            split=split,
            engine=engine,
            memory=memory,
            processes=processes,
            scheduler=scheduler,
            seed=seed,
            output=output,
            labels=labels,
            delimiter=delimiter,
            encoding=encoding,
            decimal=decimal,
            progress=progress,
            options=options,
        )
        return mask_data(data, request, template)
