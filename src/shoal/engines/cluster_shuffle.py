"""Records as the shuffle of a cluster moves them: columns of numbers, from parts to targets and back.

A cluster moves tables with one row for each record, in any order. Every row therefore names the part and the row that
it came from and is put in order where it arrives, so that the result is that of any other engine.

Cost: a sort of each target and of each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.progress import fresh_state
from shoal.engines.records import Arrays, Regrouping, Shapes

__all__ = [
    "PART",
    "ROW",
    "TARGET",
    "Columns",
    "as_arrays",
    "as_columns",
    "collect_part",
    "column_types",
    "deal_part",
    "gather_target",
]

Columns = Mapping[str, NDArray[Any]]  # one number for each record
TARGET, PART, ROW = "target", "part", "row"  # where a record goes, and where it comes from


def column_types(shapes: Shapes) -> dict[str, str]:
    """Return the columns that arrays of these shapes become, and the type of each.

    Examples
    --------
    >>> column_types({"block": ("int32", 1), "X": ("float64", 2)})
    {'block_0': 'int32', 'X_0': 'float64', 'X_1': 'float64'}
    """
    return {f"{name}_{j}": kind for name, (kind, width) in shapes.items() for j in range(width)}


def as_columns(arrays: Arrays, shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Return arrays as the columns of a table."""
    columns: dict[str, NDArray[Any]] = {}
    for name, (kind, width) in shapes.items():
        array = arrays[name].reshape(-1, width).astype(kind, copy=False)
        columns |= {f"{name}_{j}": np.ascontiguousarray(array[:, j]) for j in range(width)}
    return columns


def as_arrays(columns: Columns, shapes: Shapes, order: Any = slice(None)) -> dict[str, NDArray[Any]]:
    """Return columns as the arrays that they were, in another order if one is given."""
    return {
        name: np.column_stack([columns[f"{name}_{j}"][order] for j in range(width)]).astype(kind, copy=False)
        for name, (kind, width) in shapes.items()
    }


def deal_part(part: int, arrays: Arrays, own: Any, how: Regrouping) -> dict[str, NDArray[Any]]:
    """Return the records of a part as they are moved, each with its target."""
    target, sent = how.deal(part, arrays, own, *how.dealing)
    origin: dict[str, NDArray[Any]] = {
        PART: np.full(len(target), part, dtype=np.int32),
        ROW: np.arange(len(target), dtype=np.int64),
    }
    return {TARGET: target.astype(np.int32), **origin, **as_columns(sent, how.sent)}


def gather_target(columns: Columns, how: Regrouping) -> tuple[dict[str, NDArray[Any]], Any]:
    """Work on the records of a target, in the order of the input; return the answers as columns, and what is known."""
    order = np.lexsort((columns[ROW], columns[PART]))
    answers, known = how.gather(as_arrays(columns, how.sent, order), fresh_state(), *how.gathering)
    origin = {name: columns[name][order] for name in (PART, ROW)}
    return {**origin, **as_columns(answers, how.answered)}, known


def collect_part(columns: Columns, shapes: Shapes) -> dict[str, NDArray[Any]]:
    """Return what all targets answered to a part, in the order of its records."""
    return as_arrays(columns, shapes, np.argsort(columns[ROW], kind="stable"))
