"""Records regrouped on disk: every source writes its records sorted by target; a target reads its slice of each.

The number of files grows with the sources only, whatever the number of targets, and writing a source again does no
harm. Within a target, records come in the order of the sources and, within a source, as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.types import Ints

__all__ = ["Shuffle"]


@dataclass(frozen=True)
class Shuffle:
    """Files of one regrouping in a folder."""

    folder: Path
    name: str
    sources: int
    targets: int

    def write(self, source: int, target: Ints, arrays: Sequence[NDArray[Any]]) -> None:
        """Write the records of a source: the target of each, and arrays with one row a record."""
        order = np.argsort(target, kind="stable")
        np.save(self._path(source, "starts"), np.searchsorted(target[order], np.arange(self.targets + 1)))
        for number, array in enumerate(arrays):
            np.save(self._path(source, number), array[order])

    def read(self, target: int, arrays: int) -> list[NDArray[Any]]:
        """Return so many arrays of a target's records."""
        columns: list[list[NDArray[Any]]] = [[] for _ in range(arrays)]
        for source in range(self.sources):
            first, last = np.load(self._path(source, "starts"))[target : target + 2]
            if first < last:
                for number, column in enumerate(columns):
                    column.append(np.array(np.load(self._path(source, number), mmap_mode="r")[first:last]))
        return [np.concatenate(column) for column in columns]

    def remove(self) -> None:
        """Delete the files."""
        for path in self.folder.glob(f"{self.name}-*"):
            path.unlink()

    def _path(self, source: int, what: object) -> Path:
        return self.folder / f"{self.name}-{source}-{what}.npy"
