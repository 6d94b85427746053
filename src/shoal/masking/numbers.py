"""The numbers of a table in memory: what methods are compared on, and what a report measures against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.core.types import Floats, Ints
from shoal.engines.memory import MemoryRecords
from shoal.engines.records import KEPT, Arrays
from shoal.masking.plan import Plan, choose_masked, make_plan
from shoal.masking.request import MaskRequest
from shoal.masking.steps import cells_of, number_of_cells, read_part
from shoal.tables.columns import Name
from shoal.tables.frames import Table

__all__ = ["Numbers", "numbers_of", "read_numbers"]


@dataclass(frozen=True)
class Numbers:
    """The masked columns as numbers, and the cell of each record: its stratum and the columns that it misses."""

    names: tuple[Name, ...]
    X: Floats
    cell: Ints

    @cached_property
    def cells(self) -> list[tuple[Ints, Ints]]:
        """Of each cell, its records and the columns that they do not miss."""
        return cells_of(self.X, self.cell)


def numbers_of(arrays: Arrays, plan: Plan) -> Numbers:
    """Return the numbers that were kept of a table in memory."""
    return Numbers(plan.columns.masked, arrays["X"], number_of_cells(arrays, plan.roots[0]))


def read_numbers(table: Table, *, k: int, columns: Any, by: Any, weights: Any, missing: str) -> tuple[Table, Numbers]:
    """Return the records of a table that would be released, and their numbers."""
    request = MaskRequest(k=k, columns=columns, by=by, weights=weights, missing=missing)
    records = MemoryRecords(table)
    chosen = choose_masked(request, records.schema)
    parts = records.keep(read_part, chosen, missing, request.weight_vector, columns=chosen.read())
    plan = make_plan(request, chosen, parts, records.dialect)
    arrays = records.original()
    return (table.take(arrays[KEPT]) if KEPT in arrays else table), numbers_of(arrays, plan)
