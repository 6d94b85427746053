"""What does not go together in a request, and what does not go with a table: refused by name, before anything runs."""

from __future__ import annotations

import os
from math import inf
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from shoal.algorithms.registry import AUTO, find
from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.memory_limits import read_memory
from shoal.core.phrases import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.algorithms.registry import Method
    from shoal.masking.request import MaskRequest
    from shoal.tables.columns import Name

__all__ = ["check_data", "check_method", "check_together"]

# The engine that a parameter belongs to, and with which engines it may be given: local is also chosen by size.
OF_ENGINES = {"memory": ("local", None), "processes": ("local", None), "scheduler": ("dask",), "master": ("spark",)}


def check_together(request: MaskRequest) -> None:
    """Refuse parameters that do not go together."""
    _check_values(request)
    _check_refine(request)
    _check_effort(request)
    _check_engine(request)
    _check_blocks(request)
    _check_seeds(request)
    _check_comparison(request)


def _check_engine(request: MaskRequest) -> None:
    if request.processes is not None and (
        isinstance(request.processes, bool) or not isinstance(request.processes, int) or request.processes < 1
    ):
        raise InputError(f"Parameter 'processes' must be a whole number of at least 1, got {request.processes!r}.")
    if request.memory is not None:
        read_memory(request.memory)
    for name, engines in OF_ENGINES.items():
        if getattr(request, name) is not None and request.engine not in engines:
            raise _misplaced(request, name, f"engine={request.engine!r}")


def _check_values(request: MaskRequest) -> None:
    for name, given in (("weights", request.weights is not None), ("sums", bool(as_names(request.sums)))):
        if given and request.aggregate != "mean":
            raise InputError(
                f"Parameter {name!r} goes with aggregate='mean' only, got aggregate={request.aggregate!r}."
            )
    if request.integers == "totals" and (request.aggregate != "mean" or request.weights is not None):
        other = f"aggregate={request.aggregate!r}" if request.aggregate != "mean" else "weights"
        raise InputError(
            f"Parameter 'integers' keeps totals of means without weights, got 'totals' with {other}. Take "
            "integers='round', or leave that out."
        )
    if request.escape_formulas and not request.writes_csv:
        raise InputError(
            f"Parameter 'escape_formulas' is about CSV files, but 'output' is {request.output}. Leave it out."
        )
    if request.sums is not None:
        from shoal.masking.additivity import in_order, read_rule

        in_order([read_rule(text) for text in as_names(request.sums)])
    if request.small == "merge" and as_names(request.zeros):
        raise InputError(
            "Parameter 'small' must not be 'merge' where zeros are kept (zeros is given): records that are zero in "
            "different columns are never joined. Take small='suppress'."
        )


def _check_blocks(request: MaskRequest) -> None:
    if request.block_by is None:
        return
    names = as_names(request.block_by)
    if not names:
        raise InputError("Parameter 'block_by' must name at least one masked column, got none. Leave it out for all.")
    if request.block is not None and not request.block:
        raise InputError(
            "Parameter 'block_by' says how blocks are cut, but 'block' is 0: there are none. Leave it out."
        )
    if request.split in ("univariate", "sorted") and len(names) > 1:
        raise InputError(
            f"Parameter 'split' is {request.split!r}, which cuts along one column, but 'block_by' names {len(names)}. "
            "Name one, or take split='all'."
        )


def _check_seeds(request: MaskRequest) -> None:
    given: dict[str, Any] = {
        "seed": request.seed,
        "shuffle": None if isinstance(request.shuffle, bool) else request.shuffle,
    }
    for name, value in given.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if value is not None and (not whole or value < 0):
            raise InputError(f"Parameter {name!r} must be a whole number of at least 0, got {value!r}.")


def _check_comparison(request: MaskRequest) -> None:
    for name, value in (request.importance or {}).items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inf:
            raise InputError(f"Parameter 'importance' must be a positive number for column {name!r}, got {value!r}.")
    if (request.importance or request.distance is not None) and request.options.get("bound"):
        raise InputError(
            "Option 'bound' does not go with 'importance' or 'distance': a bound holds for the loss, in which all "
            "masked columns count alike. Leave it out."
        )


def _check_refine(request: MaskRequest) -> None:
    if isinstance(request.refine, bool) or not isinstance(request.refine, (int, NoneType)) or (request.refine or 0) < 0:
        raise InputError(f"Parameter 'refine' must be a whole number of at least 0, got {request.refine!r}.")
    if (request.refine or 0) >= 2**31:
        raise InputError(f"Parameter 'refine' must be below 2^31 steps per record, got {request.refine}.")
    for name in ("weights", "distance", "importance"):
        if request.refine and getattr(request, name) is not None:
            raise InputError(
                f"Parameter 'refine' lowers the loss, in which all records and columns count alike: it does not go "
                f"with {name!r}. Leave one of them out."
            )
    if request.refine and request.aggregate != "mean":
        raise InputError(f"Parameter 'refine' goes with aggregate='mean' only, got {request.aggregate!r}.")


def _check_effort(request: MaskRequest) -> None:
    if request.effort is not None and find(request.method).anytime:
        raise InputError(
            f"Parameter 'effort' does not go with method {request.title!r}, got effort={request.effort!r}: say how "
            "long it searches by 'time_limit' or 'steps'."
        )
    if request.effort is not None and not request.searches(find(request.method)):
        raise InputError(
            f"Parameter 'effort' goes with method {AUTO!r}, or with 'diversity', 'closeness' or 'unit', got "
            f"effort={request.effort!r} with method {request.title!r} and none of them. Leave it out."
        )


def check_method(request: MaskRequest, entry: Method, columns: Sequence[Name], nominal: Sequence[Name]) -> None:
    """Refuse what does not go with the method, or with the columns that it compares; `nominal` have no order."""
    if not entry.whole_records:
        _check_columnwise(request, f"Method {entry.name!r} groups every column on its own")
    if entry.univariate and len(columns) != 1:
        raise InputError(
            f"Method {entry.name!r} masks one column, got {len(columns)}: {listed(columns)}. Name one "
            "column, or take 'individual-ranking' (each column on its own) or a multivariate method."
        )
    if entry.confidential and request.closeness is None:
        raise InputError(
            f"Method {entry.name!r} groups by a confidential column: give 'confidential' and 'closeness', or take "
            "another method."
        )
    if nominal and (entry.univariate or not entry.whole_records):
        raise InputError(
            f"Method {entry.name!r} sorts the values of a column, but those of {nominal[0]!r} have no order. Take "
            "a method that groups whole records, such as 'mdav'."
        )


def _check_columnwise(request: MaskRequest, told: str) -> None:
    """Refuse what only groups of whole records can do."""
    if request.distance is not None or request.importance:
        raise InputError(f"{told}: 'distance' and 'importance' do not go with it. Leave them out.")
    if request.refine:
        raise InputError(f"{told}, but 'refine' moves whole records. Leave it out.")
    if request.sums:
        raise InputError(
            f"{told}, which breaks sums: 'sums' does not go with it. Leave it out, or take a method that groups whole "
            "records, such as 'mdav'."
        )
    for name in ("unit", "confidential"):
        if getattr(request, name) is not None:
            raise InputError(
                f"{told}: {name!r} does not go with it. Take a method that groups whole records, such as 'mdav'."
            )


def check_data(request: MaskRequest, data: object, *, dask: bool, spark: bool = False) -> None:
    """Refuse what does not go with the table that is given; `dask` and `spark` say that it is a DataFrame of theirs."""
    from shoal.tables.files import may_be_csv

    if dask:
        _check_clustered(request, "dask", "a Dask DataFrame")
    if spark:
        _check_clustered(request, "spark", "a Spark DataFrame")
    if request.labels is not None:
        for what, path in (("input", data), ("output", request.output)):
            if isinstance(path, (str, os.PathLike)) and Path(path).resolve() == Path(request.labels).resolve():
                raise InputError(
                    f"Parameter 'labels' must not name the {what}, got {request.labels}. Name another file."
                )
    for name, value in request.csv.items():
        if value is not None and not may_be_csv(data):
            raise InputError(
                f"Parameter {name!r} says how a CSV file is written, got {value!r} for a table that is none. Leave it "
                "out."
            )


def _check_clustered(request: MaskRequest, engine: str, table: str) -> None:
    for name in OF_ENGINES:
        if getattr(request, name) is not None:
            raise _misplaced(request, name, table)
    if request.engine not in (None, engine):
        raise InputError(
            f"Parameter 'engine' must be {engine!r} for {table}, got {request.engine!r}. Compute the table first to "
            "mask it in memory."
        )


def _misplaced(request: MaskRequest, name: str, got: str) -> InputError:
    return InputError(
        f"Parameter {name!r} goes with engine={OF_ENGINES[name][0]!r} and a path only, got "
        f"{name}={getattr(request, name)!r} with {got}. Leave it out."
    )
