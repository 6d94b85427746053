"""The interface of engines: records in parts, and the operations on them that masking needs.

Functions are sent to the records, so they are defined at module level and take arguments that can be pickled. The
arrays of a part stay with the records; only small results are returned. No engine computes, decides or reports anything
itself, so all engines give the same release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.progress import Title
from shoal.core.types import Ints
from shoal.tables.columns import Name
from shoal.tables.number_text import Dialect
from shoal.tables.table import Table

__all__ = ["KEPT", "Arrays", "Layout", "Records", "Regrouping", "Released", "Schema", "Shapes"]

Arrays = Mapping[str, NDArray[Any]]  # one row per record
Shapes = Mapping[str, tuple[str, int]]  # per array, the type of its numbers and their number per row
KEPT = "kept"  # the array that stays with its part after the shuffle: the released rows, unless all rows are released


@dataclass(frozen=True)
class Schema:
    """The names and types of the columns of a table."""

    names: Sequence[Name]
    numeric: Sequence[Name]
    timed: Sequence[Name] = ()  # dates, times of day and durations
    levels: Mapping[Name, tuple[Any, ...]] = field(default_factory=dict)  # values in order, for ordered types


class Layout(NamedTuple):
    """The columns of a released table."""

    names: list[Name]  # all columns, in order
    read: list[Name]  # columns released unchanged
    numbers: list[Name]  # columns replaced by numbers
    types: Mapping[Name, Any]  # the polars types of columns whose text is written as another type


@dataclass(frozen=True)
class Regrouping:
    """Functions that send records to targets and process all records of a target."""

    # deal(part, arrays, own[part], *dealing) returns the target of each record of a part and the arrays to send.
    deal: Callable[..., tuple[Ints, Arrays]]
    # gather(arrays, state, *gathering) receives all records of a target in input order. It returns arrays to
    # send back, one row per record, and the result of the target.
    gather: Callable[..., tuple[Arrays, Any]]
    targets: int
    sent: Shapes
    answered: Shapes
    own: Sequence[Any]
    dealing: Sequence[Any] = ()
    gathering: Sequence[Any] = ()


class Records(Protocol):
    """A table in parts, held by an engine."""

    name: str  # name of the engine
    whole: bool  # True if a method may process all records at once
    parallel: int  # number of targets processed at the same time, on all machines
    threads: int  # threads per target
    parameters: Mapping[str, Any]  # parameters of the engine that determine the bytes of the output
    dialect: Dialect | None  # for text tables

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""

    @property
    def schema(self) -> Schema:
        """The schema of the table."""

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the best number of records of `numbers` numbers per target; fewer if the records are only counted."""

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Load kernels before the work, where useful, with a function that returns True if it compiled any."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Compute arrays of every part by ``function(table, first record, *arguments)``; return the result per part."""

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Combine the results of ``function(part, arrays, own[part], *arguments)`` for all parts."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, run in a process with loaded kernels."""
        return function(*arguments)

    def regroup(self, regrouping: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Send records to targets and answers back to the parts; return the result of each target.

        After Ctrl-C, use the current result of an anytime method if it is available.
        """

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Make the released table of every part by ``function(table, answers, *arguments)``.

        If `output` is set, write the table there.
        """

    def originals(self, names: Sequence[Name]) -> pl.DataFrame | None:
        """Return the input values of the released records, with columns named by position; None if not in memory."""
        return None

    def labels(self) -> Ints | None:
        """Return the group of each record, in order of appearance; None if the labels stay with the records."""
        return None

    def kept(self) -> Ints:
        """Return the row numbers of the released records in the input; empty if they stay with the records."""
        return np.empty(0, dtype=np.int64)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Write the group of each released record and its size.

        `groups` has the number of groups before each target; `order` is the order of the release if a whole table was
        shuffled.
        """

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the summary entries for the blocks and the engine."""


class Released(NamedTuple):
    """A released table."""

    native: Any  # in the user's type
    records: Records  # the released records for the recount: read again if they were written
    notes: tuple[str, ...] = ()  # notes for the reader
