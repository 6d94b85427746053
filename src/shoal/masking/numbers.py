"""The numbers of a table in memory: what methods are compared on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.core.errors import InputError
from shoal.core.measures import released_loss, scaling
from shoal.core.types import Floats, Ints
from shoal.engines.memory import MemoryRecords
from shoal.engines.records import KEPT
from shoal.masking.plan import choose_masked, make_plan
from shoal.masking.release import Release
from shoal.masking.request import CSV, MaskRequest
from shoal.masking.steps import cells_of, number_of_cells, read_part
from shoal.tables.choosing import open_data
from shoal.tables.columns import Name
from shoal.tables.frames import Table, open_table

__all__ = ["Numbers", "read_numbers", "read_original"]


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


def read_numbers(table: Table, *, k: int, columns: Any, by: Any, weights: Any, missing: str) -> tuple[Table, Numbers]:
    """Return the records of a table that would be released, and their numbers."""
    request = MaskRequest(k=k, columns=columns, by=by, weights=weights, missing=missing)
    records = MemoryRecords(table)
    chosen = choose_masked(request, records.schema)
    if chosen.categories:
        raise InputError(
            f"Column {min(map(str, chosen.categories))!r} must be numeric: methods are compared on columns of numbers. "
            "Leave it out of 'columns'."
        )
    parts = records.keep(read_part, chosen, missing, (), request.weight_vector, k, columns=chosen.read())
    plan = make_plan(request, chosen, parts, records.dialect)
    arrays = records.original()
    return (table.take(arrays[KEPT]) if KEPT in arrays else table), Numbers(
        plan.columns.masked, arrays["X"], number_of_cells(arrays, plan.own[0])
    )


def read_original(release: Release, original: Any) -> Floats:
    """Return the numbers of the released records as they were before masking; refuse another table."""
    asked = release.parameters
    table = open_data(original, numbers=release.columns, **{name: asked[name] for name in CSV})
    there = set(release.columns) <= set(table.names) and release.kept.max() < table.rows
    if there:
        before, after = table.take(release.kept), open_table(release.data)
        X, Y = (np.column_stack([t.column(name).values for name in release.columns]) for t in (before, after))
        scale = scaling(X)
        # Rounded integers and text are not the very numbers that the loss was summed from.
        loss = released_loss(scale.apply(X), scale.apply(Y))[0]
        if np.array_equal(np.isnan(X), np.isnan(Y)) and np.isclose(loss, release.loss, rtol=1e-3, atol=1e-6):
            return X
    raise InputError(
        "Parameter 'original' must be the table that was masked, with its records in the same order: the released "
        f"values are not {release.loss:.5g} % of its information away from it. Give that table."
    )
