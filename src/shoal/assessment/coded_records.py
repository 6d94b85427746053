"""Coded records: tables in memory as numbers, with categories as codes, before masking and as released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from shoal.core.errors import InputError
from shoal.core.measures import Scaling, released_loss, scaling
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.kinds.kind import Embedding, rescaled
from shoal.kinds.time_scale import Scale
from shoal.masking.cells import STAY, Own
from shoal.masking.memory import MemoryRecords
from shoal.masking.plan import Plan, code_values, find_scales
from shoal.masking.release import Release
from shoal.masking.request import MaskRequest
from shoal.masking.roles import choose_masked
from shoal.masking.steps import numbers_of, read_part
from shoal.masking.verification import identical_records
from shoal.tables.columns import Name
from shoal.tables.files import open_data
from shoal.tables.formats.frames import open_table
from shoal.tables.reading import ReadingOptions
from shoal.tables.table import Table, stratum_codes

__all__ = ["CodedRecords", "read_original", "read_pair"]


@dataclass(frozen=True)
class CodedRecords:
    """The masked columns of a table as numbers, with categories as codes, and the coordinates of its records."""

    names: tuple[Name, ...]
    X: Floats
    embedding: Embedding
    alike: Ints | None = None  # the same number for records that an outsider cannot distinguish before masking
    lost: Floats | None = None  # values that masking made missing; NaN elsewhere
    scales: Mapping[Name, Scale] = field(default_factory=dict)  # scales of date, time and duration columns
    weights: Floats | None = None  # record weights; None if group means are unweighted
    left_out: float = 0.0  # suppressed records per released record

    @classmethod
    def of(cls, records: MemoryRecords, plan: Plan) -> CodedRecords:
        """Return the original records of a plan."""
        return cls(plan.columns.masked, numbers_of(records.original(), plan.own[0]), plan.embedding)

    def scale_notes(self) -> tuple[str, ...]:
        """Return notes on the units of dates, times and durations."""
        return tuple(
            f"column {name} is counted in {scale.resolution} from its first value, and changes are relative to that "
            "count"
            for name, scale in self.scales.items()
        )

    @cached_property
    def scale(self) -> Scaling:
        """The standardisation of the numeric columns."""
        return scaling(self.X)

    @cached_property
    def coordinates(self) -> Floats:
        """The coordinates of the records."""
        return self.place(self.X)

    @property
    def compared(self) -> Floats:
        """The coordinates by which records are grouped."""
        if not self.embedding.rescalings:
            return self.embedding.compared(self.coordinates)
        U = rescaled(self.X, self.embedding.rescalings)
        return self.embedding.place(U, scaling(U))

    def place(self, Y: Floats) -> Floats:
        """Return the coordinates of other records with the same columns."""
        return self.embedding.apply(Y, self.scale)

    def loss(self, Y: Floats) -> tuple[float, Floats]:
        """Return the loss of released values, in total and per column, with missing cells and suppressed records."""
        lost = None if self.lost is None else self.embedding.lost(self.lost, self.scale)
        return released_loss(self.coordinates, self.place(Y), self.embedding.starts, lost, left_out=self.left_out)


def read_pair(
    before: Table, after: Table, request: MaskRequest, *, by: Sequence[Name] = (), blanked: bool = False
) -> tuple[CodedRecords, Floats]:
    """Return the original records and the released records as numbers; categories have the codes of the original.

    If `blanked`, cells that masking made missing are missing in both. `by` names strata and other unchanged columns
    that an outsider can know.
    """
    records = MemoryRecords(before)
    columns = find_scales(records, choose_masked(request, records.schema))
    arrays, part = read_part(before, 0, columns, "group", STAY, None, request.k)
    X, lost = arrays["X"], None
    if blanked:
        missing = [
            np.ones(after.rows, dtype=np.bool_) if _is_empty(name, after) else after[name].missing(kind)
            for name, kind in columns.kind_of.items()
        ]
        hidden = np.column_stack(missing) & ~np.isnan(X)
        lost, X = np.where(hidden, X, np.nan), np.where(hidden, np.nan, X)
        observed = (
            kind.observe(X, j, columns.masked, kind.values_of(part.observed[j])) for j, kind in enumerate(columns.kinds)
        )
        part = part._replace(observed=tuple(observed))
    codings, (codes,) = code_values(columns, [part])
    released = [
        np.full(after.rows, np.nan)
        if _is_empty(name, after)
        else kind.read_released(name, after.cells_of(name, kind), coding, columns.scales.get(name))
        for (name, kind), coding in zip(columns.kind_of.items(), codings, strict=True)
    ]
    part_codes = Own(np.empty(0, dtype=np.int64), codes)
    alike = identical_records(numbers_of(arrays, part_codes), stratum_codes(before, by))
    embedding = Embedding(codings, columns.importance, tuple(np.flatnonzero(np.isnan(X).all(axis=0)).tolist()))
    X = embedding.continuous(numbers_of({"X": X}, part_codes))
    lost = None if lost is None else numbers_of({"X": lost}, part_codes)
    Y = embedding.continuous(np.column_stack(released))
    return CodedRecords(columns.masked, X, embedding, alike, lost, columns.scales), Y


def _is_empty(name: Name, after: Table) -> bool:
    """Return True if a released column has no value left; its type then does not show its original content."""
    cells = after.keys([name])["0"]
    return cells.null_count() == len(cells)


def read_original(release: Release, original: Any) -> tuple[CodedRecords, Floats]:
    """Return the released records as numbers, before and after masking; refuse a table other than the original."""
    parameters = release.parameters
    column = parameters["weights"] if release.weights is None else None
    numbers = [*release.columns, *([] if column is None else [column])]
    table = open_data(original, numbers=numbers, reading=ReadingOptions.of(parameters))
    if {*numbers, *release.outsider} <= set(table.names) and release.kept.max() < table.rows:
        request = MaskRequest(
            **{name: parameters[name] for name in ("k", "distance", "importance", "missing_codes")},
            columns=release.columns,
            kinds={name: kind for name, kind in (parameters["kinds"] or {}).items() if name in release.columns},
        )
        before = table.take(release.kept).coded(request.codes)
        after = open_table(release.data).coded({name: [code] for name, code in release.codes.items()})
        try:
            pair = read_pair(before, after, request, by=release.beside, blanked=release.blanked > 0)
        except InputError:  # the kind or the categories differ
            pair = None
        if pair is not None:
            numbered, Y = replace(pair[0], left_out=release.left_out / release.records), pair[1]
            if _fits(release, numbered, Y):
                weights = release.weights if column is None else table.take(release.kept)[column].numbers().values
                return replace(numbered, weights=weights), Y
    raise InputError(
        f"{parameter('original')} is not the table this release was made from, with its records in the same order: the "
        f"information loss is not {release.loss:.5g} %. Use that table."
    )


def _fits(release: Release, before: CodedRecords, Y: Floats) -> bool:
    """Return True if the losses match those of the release in every column with unambiguous released values."""
    if not np.array_equal(np.isnan(before.X), np.isnan(Y)):
        return False
    _, losses = before.loss(Y)
    column_losses = [release.column_loss[name] for name in before.names]
    sure = np.array([coding.distinct for coding in before.embedding.codings]) & ~np.isnan(before.X).all(axis=0)
    # Rounded integers and text differ slightly from the numbers whose loss was computed.
    return bool(np.isclose(losses, column_losses, rtol=1e-3, atol=1e-6)[sure].all())
