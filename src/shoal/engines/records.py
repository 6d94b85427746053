"""What an engine is: records in parts, wherever they lie, and the few things that masking asks of them.

Functions are plain ones at module level with arguments that can be pickled: they travel to where the records are. The
arrays of a part stay there; only what is known of them comes back. No engine computes, chooses or says anything of its
own, so that all give the same results.
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

Arrays = Mapping[str, NDArray[Any]]  # one row a record
Shapes = Mapping[str, tuple[str, int]]  # of each array: the type of a number, and how many there are in a row
KEPT = "kept"  # the array of a part that stays after its records were dealt: the rows that are released, if not all


@dataclass(frozen=True)
class Schema:
    """The columns of a table."""

    names: Sequence[Name]
    numeric: Sequence[Name]
    timed: Sequence[Name] = ()  # columns whose type is a date, a time of day or a duration
    levels: Mapping[Name, tuple[Any, ...]] = field(default_factory=dict)  # values in their order, where a type has one


class Layout(NamedTuple):
    """The columns of a released table."""

    names: list[Name]  # all of them, in order
    read: list[Name]  # those that are taken from the given table
    numbers: list[Name]  # those that are replaced by numbers
    types: Mapping[Name, Any]  # of others, where text is written as something else: what polars calls it


@dataclass(frozen=True)
class Regrouping:
    """Functions that send records to targets, and that work on all records of a target."""

    # deal(part, arrays, own[part], *dealing) returns the target of each record of a part and the arrays to send.
    deal: Callable[..., tuple[Ints, Arrays]]
    # gather(arrays, state, *gathering) gets all records of a target, in the order of the input. It returns arrays to
    # send back, one row per record, and facts of the target.
    gather: Callable[..., tuple[Arrays, Any]]
    targets: int  # number of targets
    sent: Shapes
    answered: Shapes
    own: Sequence[Any]
    dealing: Sequence[Any] = ()
    gathering: Sequence[Any] = ()


class Records(Protocol):
    """A table in parts."""

    name: str  # of the engine
    whole: bool  # whether a method may see all records at once
    parallel: int  # how many targets are worked on at a time, here or elsewhere
    threads: int  # that work on each of them
    parameters: Mapping[str, Any]  # of the engine, that decide the bytes of what is written
    dialect: Dialect | None  # of tables of text

    @property
    def names(self) -> Sequence[Name]:
        """The names of all columns."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return how many records, of so many numbers each, a target should have; fewer if they are only counted."""

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Run a function that loads kernels, and says if any was compiled, where this is best done before the work."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Make arrays of every part by ``function(table, first record, *arguments)``; return what is known of each."""

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Combine ``function(part, arrays, own[part], *arguments)`` of all parts."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, run where kernels are loaded already."""
        return function(*arguments)

    def regroup(self, how: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Bring records together and send answers back; return what is known of each target.

        After Ctrl-C, what an anytime method has reached is taken where that can be had.
        """

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Make the released table of every part by ``function(table, answers, *arguments)``.

        With an output the table is written for it.
        """

    def originals(self, names: Sequence[Name]) -> pl.DataFrame | None:
        """Return the given values of the released records, named by their place; None if they are not in memory."""
        return None

    def labels(self) -> Ints | None:
        """Return the group of each record, numbered as they appear; None if the labels stay where the records are."""
        return None

    def kept(self) -> Ints:
        """Return the row numbers of the given table that are released; empty if they stay where the records are."""
        return np.empty(0, dtype=np.int64)

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Write the group of each released record and its size.

        `groups` are those before each target's, `order` is that of the release if a whole table was shuffled.
        """

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return what a reader of the summary wants to know of blocks and engine."""


class Released(NamedTuple):
    """A released table."""

    native: Any  # as the user knows it
    records: Records  # what was released, to be counted again: read again if it was written
    notes: tuple[str, ...] = ()  # what a reader must know of it
