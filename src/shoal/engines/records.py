"""The interface of engines: records in parts, wherever they are, and the few operations that masking needs.

Functions are defined at module level, with arguments that can be pickled: they are sent to the records. The arrays of a
part stay there; only facts about them are returned. No engine computes, decides or reports anything itself, so that all
give the same results.
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
Shapes = Mapping[str, tuple[str, int]]  # for each array: the type of its numbers, and their number per row
KEPT = "kept"  # the array of a part that stays after the shuffle: the released rows, if not all


@dataclass(frozen=True)
class Schema:
    """The columns of a table."""

    names: Sequence[Name]
    numeric: Sequence[Name]
    timed: Sequence[Name] = ()  # dates, times of day and durations
    levels: Mapping[Name, tuple[Any, ...]] = field(default_factory=dict)  # values in order, for ordered types


class Layout(NamedTuple):
    """The columns of a released table."""

    names: list[Name]  # all of them, in order
    read: list[Name]  # unchanged from the input
    numbers: list[Name]  # replaced by numbers
    types: Mapping[Name, Any]  # for columns whose text is written as another type: the polars type


@dataclass(frozen=True)
class Regrouping:
    """Functions that send records to targets and process all records of a target."""

    # deal(part, arrays, own[part], *dealing) returns the target of each record of a part and the arrays to send.
    deal: Callable[..., tuple[Ints, Arrays]]
    # gather(arrays, state, *gathering) receives all records of a target in input order. It returns arrays to
    # send back, one row per record, and facts of the target.
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
    whole: bool  # true if a method may see all records at once
    parallel: int  # number of targets processed at the same time, on all machines
    threads: int  # threads per target
    parameters: Mapping[str, Any]  # parameters of the engine that determine the bytes of the output
    dialect: Dialect | None  # for text tables

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the best number of records per target, for `numbers` numbers each; fewer if they are only counted."""

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Run a function that loads kernels before the work, where useful; it returns True if it compiled any."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Make arrays of every part by ``function(table, first record, *arguments)``; return the facts of each part."""

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Combine ``function(part, arrays, own[part], *arguments)`` of all parts."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, run in a process with loaded kernels."""
        return function(*arguments)

    def regroup(self, regrouping: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Bring records together and send answers back; return the facts of each target.

        After Ctrl-C, use the current result of an anytime method if it is available.
        """

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Make the released table of every part by ``function(table, answers, *arguments)``.

        With an output, the table is written there.
        """

    def originals(self, names: Sequence[Name]) -> pl.DataFrame | None:
        """Return the input values of the released records, columns named by position; None if not in memory."""
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
        """Return facts about blocks and engine for the summary."""


class Released(NamedTuple):
    """A released table."""

    native: Any  # in the user's type
    records: Records  # the released records for the recount: read again if they were written
    notes: tuple[str, ...] = ()  # notes for the reader
