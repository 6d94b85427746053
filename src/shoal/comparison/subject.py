"""The table that requests are tried on: read once, grouped and measured again for every trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.algorithms.registry import Outcome
from shoal.assessment.linkage import linkage
from shoal.blocks.running import group_cells
from shoal.comparison.trials import Trial
from shoal.core.measures import group_sizes, released_loss
from shoal.core.types import Floats, Ints, State
from shoal.engines.memory import MemoryRecords
from shoal.kernels.words import Words
from shoal.masking.bucket import largest_errors, released_values
from shoal.masking.confidential import Promise, number_values, read_values, worst
from shoal.masking.gathering import Gathered, cells_of
from shoal.masking.grouping import finish_groups, start_method
from shoal.masking.numbers import Numbers
from shoal.masking.reading import unit_words
from shoal.masking.request import MaskRequest
from shoal.masking.roles import choose_masked
from shoal.masking.rounding import Rounding
from shoal.masking.steps import confidential_codes
from shoal.masking.verification import identical_records, verify
from shoal.models.asked import write_asked
from shoal.tables.columns import FLOAT
from shoal.tables.table import Table

__all__ = ["Subject", "read_subject"]


@dataclass(frozen=True)
class Subject:
    """Records that may be released, and all that trials group and measure them by."""

    numbers: Numbers
    cell: Ints  # of each record
    strata: Ints  # of each record
    promise: Promise  # the confidential columns; what is promised of them is asked by a request
    codes: Ints  # of the confidential columns
    units: Words | None

    @cached_property
    def compared(self) -> Floats:
        """Where the records lie when they are compared."""
        return self.numbers.embedding.compared(self.numbers.coordinates)

    @cached_property
    def cells(self) -> list[tuple[Ints, Ints]]:
        """Of each cell: its records, and the columns that they do not miss."""
        return cells_of(self.compared, self.cell)

    @property
    def fewest(self) -> int:
        """The number of records, or of units, of the smallest cell."""
        return min(len(rows) if self.units is None else len(np.unique(self.units[rows])) for rows, _ in self.cells)

    def group(self, request: MaskRequest, state: State, shared: Sequence[Mapping[str, Any]] = ()) -> Ints:
        """Return the groups that a settled request asks for; `shared` is work of each cell that serves many runs."""
        outcome = Outcome(np.zeros(len(self.cell), dtype=np.int64))
        if not request.entry.confidential:
            method = start_method(request, promised=bool(request.models()) or self.units is not None)
            outcome = group_cells(self.compared, self.cells, *method, request.seed, state, shared)
        gathered = Gathered(
            self.numbers.X, self.numbers.coordinates, self.compared, self.numbers.scale, self.cell, self.codes,
            self.units,
        )  # fmt: skip
        promise = self.promise._replace(models=tuple(request.models()))
        embedding = self.numbers.embedding
        return finish_groups(outcome, gathered, request, embedding, promise, block=False, state=state).labels

    def measure(self, request: MaskRequest, labels: Ints, seconds: float) -> Trial:
        """Tell what groups lose and risk; they must be as large as the request says."""
        X, embedding = self.numbers.X, self.numbers.embedding
        stored = Rounding((FLOAT,) * X.shape[1])
        coordinates = self.numbers.coordinates
        values, _, row = released_values(
            X, coordinates, labels, request.aggregate, None, embedding.codings, stored, self.strata
        )
        released = np.take(values, row, axis=0)
        if request.entry.whole_records:
            verify(released, request.k, self.strata)
        groups = identical_records(released, self.strata)
        if models := tuple(request.models()):
            worst(self.codes, groups, self.promise._replace(models=models))
        found = linkage(X, released, groups, self.cells, embedding)
        placed = self.numbers.place(released)
        largest = float(largest_errors(coordinates, placed, labels, embedding)[-1])
        return Trial(
            method=request.entry.name,
            k=request.k,
            loss=released_loss(coordinates, placed)[0],
            linked=found.share,
            chance=found.chance,
            groups=len(group_sizes(groups)),
            seconds=seconds,
            anonymous=request.entry.whole_records or X.shape[1] == 1,
            diversity=write_asked(request.diversity),
            closeness=write_asked(request.closeness),
            group_loss=100 * largest / (float(np.nansum(np.square(coordinates))) or 1.0),
        )


def read_subject(table: Table, request: MaskRequest, numbers: Numbers, cell: Ints, strata: Ints) -> Subject:
    """Read the confidential columns and the units of records whose numbers are read already."""
    chosen = choose_masked(request, MemoryRecords(table).schema)
    own, values = read_values(table, chosen.confidential, 0)
    promise, (places,) = number_values(chosen.confidential, [values], ())
    codes = confidential_codes({"confidential": own}, places).get("confidential", own)
    units = None if chosen.unit is None else unit_words(table, chosen.unit, 0).reshape(-1)
    return Subject(numbers, cell, strata, promise, codes, units)
