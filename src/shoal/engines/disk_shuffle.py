"""Regrouping of records on disk: sources send records to targets, and targets send answers back.

Every kind of array has one file, with one region per source. A source writes its records to its region as one run of
bytes, sorted by target, and returns the start of each target. A target reads one run from each source. It writes its
answers to the same positions of another file, and a source reads its answers as one run. A task opens each file at most
once, for any number of sources and targets, and writing twice is harmless.

Within a target, records are ordered by source and, within a source, by input position.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.types import Ints
from shoal.engines.records import Shapes
from shoal.kernels.counting_sort import put_rows, sort_by_target

__all__ = ["Places", "Shuffle", "write_all"]


class Places(NamedTuple):
    """The positions of a target's records: the first record and the number of records per source."""

    firsts: Ints
    counts: Ints


@dataclass(frozen=True)
class Shuffle:
    """The files of one regrouping, in one folder."""

    folder: Path
    name: str  # prefix of the file names
    starts: Ints  # the first record of each source, and the total number of records
    targets: int
    shapes: Shapes

    def create(self) -> None:
        """Create empty files."""
        for name in ("order", *self.shapes):
            self._path(name).touch()

    def write(self, source: int, target: Ints, arrays: Mapping[str, NDArray[Any]]) -> Ints:
        """Write the records of a source, sorted by target; return the start of each target and the record count."""
        order, begins = sort_by_target(target, self.targets)
        first = [int(self.starts[source])]
        self._write("order", first, [order.astype(np.uint32)])
        for name, array in arrays.items():
            self._write(name, first, [np.take(array, order, axis=0).astype(self.shapes[name][0], copy=False)])
        starts: Ints = begins
        return starts

    def places(self, begins: Sequence[Ints]) -> list[Places]:
        """Return the positions of every target's records, from the results of `write`."""
        table = np.stack(begins)
        firsts, counts = self.starts[:-1, None] + table[:, :-1], np.diff(table, axis=1)
        return [Places(firsts[:, target].copy(), counts[:, target].copy()) for target in range(self.targets)]

    def read(self, places: Places, name: str) -> NDArray[Any]:
        """Return the rows of array `name` for a target's records."""
        kind, width = self.shapes[name]
        rows = np.empty((int(places.counts.sum()), width), dtype=kind)
        self._read(name, places.firsts.tolist(), np.split(rows, np.cumsum(places.counts)[:-1]))
        return rows

    def answer(self, places: Places, name: str, values: NDArray[Any]) -> None:
        """Write one row per record of a target, in the order in which the records were read."""
        kind, width = self.shapes[name]
        values = np.ascontiguousarray(values, dtype=kind).reshape(-1, width)
        self._write(name, places.firsts.tolist(), np.split(values, np.cumsum(places.counts)[:-1]))

    def answers(self, source: int, name: str, plus: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the answers of all targets to a source, in the order of the source's records.

        `plus` contains one row per answer, in target order, which is added to the answer.
        """
        first, last = (int(place) for place in self.starts[source : source + 2])
        kind, width = self.shapes[name]
        answered, order = np.empty((last - first, width), dtype=kind), np.empty(last - first, dtype=np.uint32)
        self._read(name, [first], [answered])
        self._read("order", [first], [order])
        if plus is not None:
            answered += plus
        rows = np.empty_like(answered)
        put_rows(rows, order, answered)
        return rows

    def remove(self, *names: str) -> None:
        """Delete files that are no longer needed."""
        for name in names:
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.name}-{name}"

    def _read(self, name: str, firsts: Sequence[int], pieces: Sequence[NDArray[Any]]) -> None:
        with self._path(name).open("rb", buffering=0) as file:
            for first, piece in zip(firsts, pieces, strict=True):
                if piece.size:
                    file.seek(first * piece.nbytes // len(piece))
                    file.readinto(piece.data.cast("B"))

    def _write(self, name: str, firsts: Sequence[int], pieces: Sequence[NDArray[Any]]) -> None:
        with self._path(name).open("r+b", buffering=0) as file:
            for first, piece in zip(firsts, pieces, strict=True):
                if piece.size:
                    file.seek(first * piece.nbytes // len(piece))
                    write_all(file, piece.data.cast("B"))


def write_all(file: io.FileIO, content: memoryview) -> None:
    """Write the whole content or raise an error."""
    # A disk that fills up accepts part of the content and fails on the next write.
    while content:
        content = content[file.write(content) :]
