"""Checks of a request before a run: its parameters, their combinations and the type of the table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import inf
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from shoal.algorithms.registry import AUTO
from shoal.core.errors import InputError, closest
from shoal.core.memory_limits import read_memory
from shoal.core.messages import listed, option, parameter, setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.algorithms.registry import Method
    from shoal.masking.request import MaskRequest
    from shoal.tables.columns import Name

__all__ = ["check_data", "check_method", "check_promises", "check_together"]

# The engines that support each parameter. None is included where the file size may select the local engine.
OF_ENGINES = {"memory": ("local", None), "processes": ("local", None), "scheduler": ("dask",), "master": ("spark",)}


def check_together(request: MaskRequest) -> None:
    """Refuse parameters that cannot be combined."""
    _check_values(request)
    _check_refine(request)
    _check_effort(request)
    _check_engine(request)
    _check_blocks(request)
    _check_seeds(request)
    _check_comparison(request)


def check_promises(request: MaskRequest) -> None:
    """Refuse promises without sensitive columns."""
    if request.promises and request.confidential is None:
        raise InputError(
            f"{parameter(next(iter(request.promises)))} requires sensitive columns. Name them in "
            f"{parameter('confidential')}."
        )


def _check_engine(request: MaskRequest) -> None:
    if request.processes is not None and (
        isinstance(request.processes, bool) or not isinstance(request.processes, int) or request.processes < 1
    ):
        raise InputError(f"{parameter('processes')} must be a whole number of at least 1, got {request.processes!r}.")
    if request.memory is not None:
        read_memory(request.memory)
    for name, engines in OF_ENGINES.items():
        if getattr(request, name) is not None and request.engine not in engines:
            raise _misplaced(request, name, setting("engine", request.engine))


def _check_values(request: MaskRequest) -> None:
    for name, is_set in (("weights", request.weights is not None), ("sums", bool(request.sums))):
        if is_set and request.aggregate != "mean":
            raise InputError(
                f"{parameter(name)} requires {setting('aggregate', 'mean')}, got "
                f"{setting('aggregate', request.aggregate)}."
            )
    if request.columns is None and request.rest != "drop":
        raise InputError(
            f"{setting('rest', request.rest)} requires {parameter('columns')}; without it, every column has a proposed "
            f"role. Name the columns to mask, or the columns to release unchanged in {parameter('keep')}."
        )
    if request.integers == "totals" and (request.aggregate != "mean" or request.weights is not None):
        other = setting("aggregate", request.aggregate) if request.aggregate != "mean" else parameter("weights")
        raise InputError(
            f"{setting('integers', 'totals')} requires means without weights, got {other}. Use "
            f"{setting('integers', 'round')}, or leave that out."
        )
    if request.escape_formulas and not request.writes_csv:
        raise InputError(
            f"{parameter('escape_formulas')} requires a CSV file, but {parameter('output')} is {request.output}. Leave "
            "it out."
        )
    if request.sums is not None:
        from shoal.masking.sums import in_order, read_rule

        in_order([read_rule(text) for text in request.sums])


def _check_blocks(request: MaskRequest) -> None:
    if request.block_by is None:
        return
    names = request.block_by
    if not names:
        raise InputError(
            f"{parameter('block_by')} must name at least one masked column, got none. Leave it out to use all columns."
        )
    if request.block is not None and not request.block:
        raise InputError(
            f"{parameter('block_by')} requires blocks, but {parameter('block')} is 0. Leave one of them out."
        )
    if request.split in ("univariate", "sorted") and len(names) > 1:
        raise InputError(
            f"{setting('split', request.split)} cuts along one column, but {parameter('block_by')} names {len(names)}. "
            f"Name one, or use {setting('split', 'all')}."
        )


def _check_seeds(request: MaskRequest) -> None:
    seeds: dict[str, Any] = {
        "seed": request.seed,
        "shuffle": None if isinstance(request.shuffle, bool) else request.shuffle,
    }
    for name, value in seeds.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if value is not None and (not whole or value < 0):
            raise InputError(f"{parameter(name)} must be a whole number of at least 0, got {value!r}.")


def _check_comparison(request: MaskRequest) -> None:
    for name, value in (request.importance or {}).items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inf:
            raise InputError(f"{parameter('importance')} must be a positive number for column {name!r}, got {value!r}.")
    _check_scale(request)
    if (request.importance or request.distance is not None) and request.options.get("bound"):
        raise InputError(
            f"{option('bound')} cannot be combined with {parameter('importance')} or {parameter('distance')}: it "
            "bounds the loss, which weights all masked columns equally. Leave it out."
        )


def _check_scale(request: MaskRequest) -> None:
    from shoal.kinds.kind_registry import SCALES

    by_column = request.scale if isinstance(request.scale, Mapping) else {None: request.scale}
    for name, scale in by_column.items():
        if name is None and scale is None:
            continue
        if not isinstance(scale, str) or scale not in SCALES:
            of = "" if name is None else f" for column {name!r}"
            raise InputError(
                f"{parameter('scale')} must be one of {', '.join(map(repr, SCALES))}{of}, got {scale!r}."
                f"{closest(str(scale), SCALES)}"
            )
    if request.rescales and request.options.get("bound"):
        raise InputError(
            f"{option('bound')} cannot be combined with {parameter('scale')}: it bounds the loss in the units of the "
            "columns, but groups are formed on another scale. Leave one of them out."
        )
    if request.rescales and request.refine:
        raise InputError(
            f"{parameter('refine')} lowers the loss in the units of the columns, which would undo "
            f"{parameter('scale')}. Leave one of them out."
        )


def _check_refine(request: MaskRequest) -> None:
    if isinstance(request.refine, bool) or not isinstance(request.refine, (int, NoneType)) or (request.refine or 0) < 0:
        raise InputError(f"{parameter('refine')} must be a whole number of at least 0, got {request.refine!r}.")
    if (request.refine or 0) >= 2**31:
        raise InputError(f"{parameter('refine')} must be below 2^31 steps per record, got {request.refine}.")
    for name in ("weights", "distance", "importance"):
        if request.refine and getattr(request, name) is not None:
            raise InputError(
                f"{parameter('refine')} cannot be combined with {parameter(name)}: it lowers the loss, which weights "
                "all records and columns equally. Leave one of them out."
            )
    if request.refine and request.aggregate != "mean":
        raise InputError(
            f"{parameter('refine')} requires {setting('aggregate', 'mean')}, got "
            f"{setting('aggregate', request.aggregate)}."
        )


def _check_effort(request: MaskRequest) -> None:
    if request.effort is not None and request.entry.anytime:
        raise InputError(
            f"{parameter('effort')} cannot be combined with method {request.title!r}, got "
            f"{setting('effort', request.effort)}. Limit its search with {option('time_limit')} or {option('steps')}."
        )
    if request.effort is not None and not request.searches(request.entry):
        raise InputError(
            f"{parameter('effort')} requires method {AUTO!r}, {parameter('diversity')}, {parameter('closeness')} or "
            f"{parameter('unit')}, got {setting('effort', request.effort)} with method {request.title!r} and none of "
            "them. Leave it out."
        )


def check_method(request: MaskRequest, entry: Method, columns: Sequence[Name], nominal: Sequence[Name]) -> None:
    """Refuse a request that its method or its compared columns do not support; `nominal` columns have no order."""
    if not entry.whole_records:
        _check_columnwise(request, f"Method {entry.name!r} groups every column on its own")
    if entry.univariate and len(columns) != 1:
        raise InputError(
            f"Method {entry.name!r} masks one column, got {len(columns)}: {listed(columns)}. Name one column, or use "
            "'individual-ranking' (each column on its own) or a multivariate method."
        )
    if entry.confidential and "closeness" not in request.promises:
        raise InputError(
            f"Method {entry.name!r} groups by a sensitive column and requires {parameter('confidential')} and "
            f"{parameter('closeness')}. Set them, or use another method."
        )
    if nominal and (entry.univariate or not entry.whole_records):
        raise InputError(
            f"Method {entry.name!r} sorts the values of a column, but the values of {nominal[0]!r} have no order. Use "
            "a method that groups whole records, such as 'mdav'."
        )


def _check_columnwise(request: MaskRequest, fact: str) -> None:
    """Refuse parameters that require groups of whole records."""
    for name, value in (("distance", request.distance), ("importance", request.importance or None)):
        if value is not None:
            raise InputError(f"{fact}: {parameter(name)} cannot be combined with it. Leave it out.")
    if request.refine:
        raise InputError(f"{fact}, but {parameter('refine')} moves whole records. Leave it out.")
    if request.sums:
        raise InputError(
            f"{fact}, which breaks the rules of {parameter('sums')}. Leave it out, or use a method that groups whole "
            "records, such as 'mdav'."
        )
    for name in ("unit", "confidential"):
        if getattr(request, name) is not None:
            raise InputError(
                f"{fact}, but {parameter(name)} requires groups of whole records. Use a method such as 'mdav'."
            )


def check_data(request: MaskRequest, data: object, *, dask: bool, spark: bool = False) -> None:
    """Refuse a request that the type of its table does not support; `dask` and `spark` mark their DataFrames."""
    from shoal.tables.files import check_reading, is_database

    if dask:
        _check_clustered(request, "dask", "a Dask DataFrame")
    if spark:
        _check_clustered(request, "spark", "a Spark DataFrame")
    if request.labels is not None:
        for noun, path in (("input", data), ("output", request.output)):
            if isinstance(path, (str, os.PathLike)) and Path(path).resolve() == Path(request.labels).resolve():
                raise InputError(
                    f"{parameter('labels')} must not name the {noun}, got {request.labels}. Use another file."
                )
    if is_database(data):
        _check_in_memory(request)
    check_reading(data, request.reading)


def _check_in_memory(request: MaskRequest) -> None:
    """Refuse every engine except `memory` for a database."""
    for name in ("engine", *OF_ENGINES):
        value = getattr(request, name)
        if value not in (None, "memory"):
            raise InputError(
                f"{setting(name, value)} cannot be combined with a database, whose table is masked in memory. Leave it "
                "out, or export a larger table to a Parquet file first."
            )


def check_lines(request: MaskRequest) -> None:
    """Refuse files without a header, or with lines above the header, for engines that read files in parts."""
    for name in ("skip_rows", "no_header"):
        if value := getattr(request.reading, name):
            raise InputError(
                f"{setting(name, value)} requires {setting('engine', 'memory')}. For a table beyond memory, put the "
                "names of the columns in the first line of each file."
            )


def _check_clustered(request: MaskRequest, engine: str, table: str) -> None:
    for name in OF_ENGINES:
        if getattr(request, name) is not None:
            raise _misplaced(request, name, table)
    if request.engine not in (None, engine):
        raise InputError(
            f"{parameter('engine')} must be {engine!r} for {table}, got {request.engine!r}. Compute the table first to "
            "mask it in memory."
        )


def _misplaced(request: MaskRequest, name: str, got: str) -> InputError:
    return InputError(
        f"{parameter(name)} requires {setting('engine', OF_ENGINES[name][0])} and a path, got "
        f"{setting(name, getattr(request, name))} with {got}. Leave it out."
    )
