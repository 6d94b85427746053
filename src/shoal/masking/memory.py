"""The engine for tables in memory: one part, one target, threads of this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.core.measures import canonical_labels
from shoal.core.memory_limits import peak_memory
from shoal.core.progress import Title, watch
from shoal.core.types import Ints, State
from shoal.engines.records import KEPT, Arrays, Layout, Regrouping, Released, Schema
from shoal.tables.columns import Name
from shoal.tables.files import read_back, write_file, write_table
from shoal.tables.outputs import written_path
from shoal.tables.table import Table, label_frame

__all__ = ["MemoryRecords"]


class MemoryRecords:
    """The records of a table in memory."""

    name = "memory"
    whole = True

    def __init__(self, table: Table, *, progress: bool = False) -> None:
        self._table, self._progress = table, progress
        self.state: State | None = None  # progress state of a caller that shows progress itself
        self._arrays: Arrays = {}
        self._answers: Arrays = {}
        self.parameters: Mapping[str, Any] = {}
        self.names: Sequence[Name] = table.names
        self.dialect = table.dialect
        self.parallel = self.threads = os.cpu_count() or 1

    def watched(self, state: State) -> MemoryRecords:
        """Return the same records, with progress reported to a caller's state."""
        records = copy(self)
        records.state = state
        return records

    @cached_property
    def schema(self) -> Schema:
        """The names and types of the columns."""
        table = self._table
        return Schema(table.names, table.numeric_names(), table.timed_names(), table.ordered_levels())

    def rows_of_a_target(self, numbers: int, *, counted: bool = False) -> int:
        """Return the number of all records, because there is only one target."""
        return max(1, self._table.rows)

    def prepare(self, function: Callable[..., bool], *arguments: Any) -> None:
        """Do nothing, because kernels are loaded when needed."""

    def keep(self, function: Callable[..., tuple[Arrays, Any]], *arguments: Any, columns: Sequence[Name]) -> list[Any]:
        """Store the arrays that the function computes from the table; return its other result."""
        self._arrays, answer = function(self._table, 0, *arguments)
        return [answer]

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any, own: Sequence[Any]
    ) -> Any:
        """Run the function on all records."""
        return function(0, self._arrays, own[0], *arguments)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run the function in this process."""
        return function(*arguments)

    def regroup(self, how: Regrouping, *, title: Title = "", anytime: bool = False) -> list[Any]:
        """Process all records as one target, and store the answer for each record."""
        targets, sent = how.deal(0, self._arrays, how.own[0], *how.dealing)

        def gather(state: State) -> tuple[Arrays, Any]:
            return how.gather(sent, state, *how.gathering)

        if self.state is not None:
            answers, outcome = gather(self.state)
        else:
            answers, outcome = watch(gather, len(targets), title=title, show=self._progress, keep=anytime)
        self._answers = {name: array for name, array in self._arrays.items() if name == KEPT} | dict(answers)
        return [outcome]

    def release(self, function: Callable[..., Table], *arguments: Any, layout: Layout, output: Path | None) -> Released:
        """Build the released table; if there is an output file, write the table and read it back."""
        table = function(self._table, self._answers, *arguments)
        if output is None:
            return Released(table.native, MemoryRecords(table), self._table.notes)
        write_table(table, output)
        again = MemoryRecords(read_back(written_path(output), table))
        return Released(table.native, again, self._table.notes)

    def labels(self) -> Ints:
        """Return the group of each record, or of each cell if the columns were grouped separately."""
        return canonical_labels(self._answers["group"])

    def kept(self) -> Ints:
        """Return the row numbers of the released records in the original table."""
        return self._answers.get(KEPT, np.arange(self._table.rows))

    def originals(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return the original values of the released records."""
        return self._table.keys(names)[self.kept()]

    def original(self) -> Arrays:
        """Return the arrays of the original table."""
        return self._arrays

    def answers(self) -> Arrays:
        """Return the released numbers and the group of each record, after masking."""
        return self._answers

    def write_labels(self, path: Path, columns: Sequence[Name], groups: Ints, order: Ints | None) -> None:
        """Write the labels in the order of the release."""
        labels = label_frame(self.kept(), self.labels(), columns)
        write_file(labels if order is None else labels[order], path)

    def facts(self, blocks: Mapping[str, object]) -> Mapping[str, object]:
        """Return the facts of a run in blocks, including its peak memory; empty without blocks."""
        return {**blocks, "engine": self.name, "peak memory": peak_memory()} if blocks else {}
