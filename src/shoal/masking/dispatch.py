"""From a request to a release: the engine that holds the records is opened, and the pipeline runs over it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.progress import watch
from shoal.core.types import State
from shoal.masking.memory import MemoryRecords
from shoal.masking.pipeline import mask_records
from shoal.masking.release import Release
from shoal.masking.request import MaskRequest
from shoal.masking.request_rules import check_data
from shoal.tables.files import (
    check_data_set,
    check_output,
    check_target,
    check_text_names,
    is_beyond_memory,
    is_dask,
    is_spark,
    open_data,
    stored_bytes,
)
from shoal.tables.outputs import moved_together

if TYPE_CHECKING:
    from shoal.engines.process_pool import Template

__all__ = ["mask_data"]


def mask_data(data: Any, request: MaskRequest, template: Template | None = None) -> Release:
    """Mask a table. `template`: where worker processes come from, if it has been started already."""
    dask = is_dask(data)
    check_data(request, data, dask=dask, spark=is_spark(data))
    if is_spark(data) or request.engine == "spark":
        from shoal.engines.spark import open_spark

        with moved_together(), open_spark(data, request.output, request.labels, request.master) as records:
            return mask_records(records, request)
    clustered = dask or request.engine == "dask"
    check_output(data, request.output, clustered=clustered)
    if request.output is not None:
        check_text_names(data)
    if request.labels is not None:
        (check_data_set if clustered else check_target)(request.labels)
    wanted = as_names(request.columns)
    with moved_together():
        if clustered:
            from shoal.engines.dask import open_dask

            with open_dask(
                data, request.output, request.scheduler, wanted=wanted, codes=request.codes, csv=request.csv
            ) as records:
                return mask_records(records, request)
        if is_beyond_memory(data, request.engine, request.memory):
            return _mask_files(data, request, template)
        if request.processes is not None:
            raise InputError(
                f"{parameter('processes')} requires {setting('engine', 'local')}, got {request.processes!r} for a "
                f"table that is masked in memory. Leave it out, or use {setting('engine', 'local')}."
            )
        read = partial(open_data, data, numbers=request.numbers, named=True, **request.csv)
        table = watch(lambda _: read(), None, title="read", show=request.progress)
        return mask_records(MemoryRecords(table.coded(request.codes), progress=request.progress), request)


def _mask_files(data: Any, request: MaskRequest, template: Template | None) -> Release:
    from shoal.engines.local import check_files, open_local

    paths, target, limits = check_files(data, request.output, request.labels, request.memory, request.processes)

    def run(state: State) -> Release:
        wanted = as_names(request.columns)
        known = {"wanted": wanted, "codes": request.codes, "csv": request.csv}
        with open_local(paths, target, limits, state, template, **known) as records:  # type: ignore[arg-type]
            return mask_records(records, request)

    steps = max(1, stored_bytes(paths) // 45_000_000)
    return watch(run, steps, title=request.title, show=request.progress)
