"""Records as bytes: many of them in a cell of a table that Spark stores and moves.

A row of Spark costs far more than its bytes, so that a row holds some hundred records, one after the other as they lie
in memory, and never more than one target's. Each row names the target that it is sent to.

Cost: a sort by target and one copy of the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.types import Ints
from shoal.kernels.dealing import sort_by_target

__all__ = ["KNOWN", "ROWS", "Rows", "cells_of", "pack", "row_of", "rows_of", "unpack"]

ROWS = "target int, source int, data binary"  # of all tables that the engine makes
Rows = Iterator[Any]  # batches of them
KNOWN = -1  # the source of a row that holds no records, but what is known of them
CELL = 4096  # bytes of a cell, about; Spark handles 10,000 of them at a time
BATCH = 512  # cells


def pack(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.void]:
    """Return arrays with a row for each record as one array of records."""
    kind = np.dtype([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
    records = np.empty(len(next(iter(arrays.values()))), dtype=kind)
    for name, array in arrays.items():
        records[name] = array
    return records


def unpack(records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Return the arrays that were packed."""
    return {name: np.ascontiguousarray(records[name]) for name in records.dtype.names or ()}


def rows_of(records: NDArray[np.void], target: Ints, targets: int, source: int | None) -> Rows:
    """Yield batches of rows that hold records on their way to targets, from a source or, if None, as answers to one."""
    import pyarrow as pa

    begins, size = np.array([0, len(records)]), records.dtype.itemsize
    if targets > 1:
        order, begins = sort_by_target(target, targets)
        records, target = records[order], target[order]
    place = np.arange(len(records)) - np.repeat(begins[:-1], np.diff(begins))
    cuts = np.append(np.flatnonzero(place % max(1, CELL // size) == 0), len(records))
    for first in range(0, len(cuts) - 1, BATCH):
        bounds = cuts[first : first + BATCH + 1]
        offsets = ((bounds - bounds[0]) * size).astype(np.int32)
        content = records[bounds[0] : bounds[-1]].view(np.uint8)
        data = pa.Array.from_buffers(
            pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        )
        to = target[bounds[:-1]].astype(np.int32)
        origin = to if source is None else np.full(len(to), source, dtype=np.int32)
        yield pa.RecordBatch.from_arrays([pa.array(to), pa.array(origin), data], ["target", "source", "data"])


def row_of(content: bytes, *, source: int = KNOWN, target: int = 0) -> Any:
    """Return a batch of one row that holds what is known of records."""
    import pyarrow as pa

    columns = [pa.array([target], pa.int32()), pa.array([source], pa.int32()), pa.array([content], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["target", "source", "data"])


def cells_of(batches: Iterable[Any]) -> tuple[dict[int, bytes], NDArray[np.uint8], set[int]]:
    """Return what rows hold: what is known by source, the bytes of all records, and the targets of the rows.

    Sources below 0 are known ones; where results are merged, they are -1 - part.
    """
    known: dict[int, bytes] = {}
    pieces: list[NDArray[np.uint8]] = []
    targets: set[int] = set()
    for batch in batches:
        data, source = batch.column("data"), batch.column("source").to_numpy()
        targets.update(np.unique(batch.column("target").to_numpy()).tolist())
        for row in np.flatnonzero(source < 0).tolist():
            known[int(source[row])] = data[row].as_py()
        offsets = np.frombuffer(data.buffers()[1], dtype=np.int32)[data.offset : data.offset + len(data) + 1]
        content = np.frombuffer(data.buffers()[2] or b"", dtype=np.uint8)
        if (source < 0).any():
            held = np.flatnonzero(source >= 0).tolist()
            pieces += [content[offsets[row] : offsets[row + 1]] for row in held]
        else:
            pieces.append(content[offsets[0] : offsets[-1]])
    return known, np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8), targets
