"""Packets: records as bytes, many of them in a row of a table that Spark stores and moves.

A row of Spark costs far more than its bytes, so that a packet holds some hundred records, one after the other as they
lie in memory, and never more than one target's. Each names the target that it is sent to.

Cost: a sort by target and one copy of the bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.types import Ints
from shoal.kernels.counting_sort import sort_by_target

__all__ = ["PACKETS", "Packets", "Received", "fact_packet", "pack", "packets_of", "receive", "unpack"]

PACKETS = "target int, facts boolean, data binary"  # the schema of all tables that the engine moves
Packets = Iterator[Any]  # batches of them
BYTES = 4096  # of a packet, about; Spark handles 10,000 of them at a time
BATCH = 512  # packets


class Received(NamedTuple):
    """The content of packets."""

    facts: list[Any]
    records: NDArray[np.uint8]  # the bytes of all records
    targets: set[int]  # of the packets


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


def packets_of(records: NDArray[np.void], target: Ints) -> Packets:
    """Yield batches of packets that hold records on their way to targets."""
    import pyarrow as pa

    size, target = records.dtype.itemsize, target.astype(np.int64, copy=False)
    order, begins = sort_by_target(target, int(target.max(initial=-1)) + 1)
    records, target = records[order], target[order]
    place = np.arange(len(records)) - np.repeat(begins[:-1], np.diff(begins))
    cuts = np.append(np.flatnonzero(place % max(1, BYTES // size) == 0), len(records))
    for first in range(0, len(cuts) - 1, BATCH):
        bounds = cuts[first : first + BATCH + 1]
        offsets = ((bounds - bounds[0]) * size).astype(np.int32)
        content = records[bounds[0] : bounds[-1]].view(np.uint8)
        data = pa.Array.from_buffers(
            pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        )
        to = target[bounds[:-1]].astype(np.int32)
        columns = [pa.array(to), pa.array(np.zeros(len(to), dtype=bool)), data]
        yield pa.RecordBatch.from_arrays(columns, ["target", "facts", "data"])


def fact_packet(facts: Any, target: int = 0) -> Any:
    """Return a batch of one packet that holds facts."""
    import pyarrow as pa

    columns = [pa.array([target], pa.int32()), pa.array([True]), pa.array([pickle.dumps(facts)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["target", "facts", "data"])


def receive(batches: Iterable[Any]) -> Received:
    """Return the content of packets, in the order in which they come."""
    facts: list[Any] = []
    pieces: list[NDArray[np.uint8]] = []
    targets: set[int] = set()
    for batch in batches:
        data, factual = batch.column("data"), batch.column("facts").to_numpy(zero_copy_only=False)
        targets.update(np.unique(batch.column("target").to_numpy()).tolist())
        facts += [pickle.loads(data[row].as_py()) for row in np.flatnonzero(factual).tolist()]  # noqa: S301  (our own)
        offsets = np.frombuffer(data.buffers()[1], dtype=np.int32)[data.offset : data.offset + len(data) + 1]
        content = np.frombuffer(data.buffers()[2] or b"", dtype=np.uint8)
        if factual.any():
            pieces += [content[offsets[row] : offsets[row + 1]] for row in np.flatnonzero(~factual).tolist()]
        else:
            pieces.append(content[offsets[0] : offsets[-1]])
    return Received(facts, np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8), targets)
