"""The table that requests are tried on: each trial groups and aggregates it as `shoal.mask` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from shoal.assessment.linkage import linkage
from shoal.comparison.trials import Trial
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints, State
from shoal.masking.confidential import worst
from shoal.masking.group import cells_of
from shoal.masking.memory import MemoryRecords
from shoal.masking.numbers import Numbers
from shoal.masking.pipeline import Groups, Prepared, Seconds, group, prepare
from shoal.masking.request import MaskRequest
from shoal.masking.steps import confidential_codes, number_of_cells, numbers_of
from shoal.masking.summary import losses
from shoal.masking.verification import check_sizes, identical_records
from shoal.models.column_models import write_promise
from shoal.tables.table import Table

__all__ = ["Attempt", "Subject", "as_trial"]


@dataclass(frozen=True)
class Subject:
    """A table and what a request makes of it: the records that are released, where they lie, and their cells."""

    table: Table
    records: MemoryRecords
    planned: Prepared

    @classmethod
    def read(cls, table: Table, request: MaskRequest) -> Subject:
        """Read a table as a request asks."""
        records = MemoryRecords(table.coded(request.codes))
        return cls(table, records, prepare(records, request, Seconds()))

    def attempt(self, request: MaskRequest, state: State, shared: Sequence[Mapping[str, Any]] = ()) -> Attempt:
        """Group the table by another method, k or promise; `shared` holds options per cell that serve many runs."""
        # What is left out or joined where a cell is too small depends on k.
        subject = self if request.small == "error" else Subject.read(self.table, request)
        records, seconds = subject.records.watched(state), Seconds()
        prepared = replace(subject.planned.requesting(request), records=records)
        groups = group(prepared, seconds, shared)
        # Compiling happens once per installation and is not the time of a run.
        taken = seconds.steps["partition"] - seconds.steps.get("compile", 0.0)
        return Attempt(subject, groups, records.answers()["released"], taken)

    def suits(self, request: MaskRequest) -> bool:
        """Whether every cell is large enough, or is made so."""
        return request.small != "error" or request.k <= self.fewest

    @cached_property
    def cell(self) -> Ints:
        """The cell of each record."""
        return number_of_cells(self.records.original(), self.planned.plan.own[0])

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of the records, and where they lie."""
        columns, plan = self.planned.columns, self.planned.plan
        return Numbers(columns.masked, numbers_of(self.records.original(), plan.own[0]), plan.embedding)

    @cached_property
    def compared(self) -> Floats:
        """Where the records lie when they are compared."""
        return self.numbers.embedding.compared(self.numbers.coordinates)

    @cached_property
    def cells(self) -> list[tuple[Ints, Ints]]:
        """Of each cell: its records, and the columns that they do not miss."""
        return cells_of(self.compared, self.cell)

    @cached_property
    def fewest(self) -> int:
        """The number of records, or of units, of the smallest cell."""
        units = self.records.original().get("unit")
        return min(len(rows) if units is None else len(np.unique(units[rows])) for rows, _ in self.cells)


@dataclass(frozen=True)
class Attempt:
    """A request that was tried: the groups of the records and the values that would be released."""

    subject: Subject
    groups: Groups
    released: Floats
    seconds: float  # of the partition

    def measure(self) -> Trial:
        """Measure what the groups lose and risk; they must be as large as the request says."""
        subject, prepared = self.subject, self.groups.prepared
        request, plan = prepared.request, prepared.plan
        groups = identical_records(self.released, plan.strata[subject.cell])
        if request.entry.whole_records:
            check_sizes(group_sizes(groups), request.k)
        if plan.promise.models:
            codes = confidential_codes(subject.records.original(), plan.own[0].confidential)["confidential"]
            worst(codes, groups, plan.promise)
        total = losses(self.groups.buckets)
        return as_trial(
            request, subject.numbers, self.released, groups, subject.cell,
            loss=total.loss, group_loss=total.group_loss, seconds=self.seconds,
        )  # fmt: skip


def as_trial(
    request: MaskRequest,
    numbers: Numbers,
    released: Floats,
    groups: Ints,
    cell: Ints,
    *,
    loss: float,
    group_loss: float,
    seconds: float,
) -> Trial:
    """Return a trial, with the risk of the released values.

    Parameters
    ----------
    request
        The settled request.
    numbers, released
        The records before and after.
    groups, cell
        The group of identical records, and the cell, of each record.
    loss, group_loss, seconds
        As `Trial` has them.
    """
    placed = numbers.coordinates, numbers.place(released)
    linked = linkage(numbers.X, released, groups, cells_of(numbers.X, cell), placed=placed)
    return Trial(
        method=request.entry.name,
        k=request.k,
        loss=loss,
        linked=linked.share,
        chance=linked.chance,
        groups=len(group_sizes(groups)),
        seconds=seconds,
        anonymous=request.entry.whole_records or numbers.X.shape[1] == 1,
        diversity=write_promise(request.diversity),
        closeness=write_promise(request.closeness),
        group_loss=group_loss,
    )
