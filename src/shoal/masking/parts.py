"""What is known of a table on its way: its columns, parts, cells and buckets, and how cells are spelled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from shoal.algorithms.method import Outcome
from shoal.core.types import Bools, Floats, Ints, Spelling
from shoal.engines.records import Layout
from shoal.kernels.words import Words
from shoal.kinds.column import Storage
from shoal.kinds.kind import Kind
from shoal.kinds.time_scale import Scale
from shoal.masking.additivity import Rule
from shoal.masking.confidential import Chosen, Values
from shoal.tables.columns import Code, Codes, Name, TextNumbers

__all__ = ["STAY", "Bucket", "Cell", "Columns", "Joined", "Moves", "Own", "Part", "Spellings", "new_zeros"]


class Cell(NamedTuple):
    """What the records of a cell have in common."""

    stratum: tuple[object, ...]
    missing: tuple[bool, ...]  # of each masked column
    zero: tuple[bool, ...] = ()  # of each column whose zeros are kept


class Columns(NamedTuple):
    """The columns that are looked at."""

    masked: tuple[Name, ...]
    by: tuple[Name, ...]
    weights: Name | None
    unit: Name | None  # the column that says whose records they are
    kinds: tuple[Kind, ...]  # of each masked column
    given: frozenset[Name]  # columns whose kind was named by the user
    released: tuple[Name, ...]  # all columns of the release, in order
    importance: tuple[float, ...] | None  # of each masked column, if not all count alike
    codes: Codes  # numbers and texts that stand for missing in masked columns
    scales: Mapping[Name, Scale]  # how dates, times and durations are counted, once all of them were seen
    zeros: tuple[Name, ...] = ()  # masked columns whose zeros are kept
    rules: tuple[Rule, ...] = ()  # sums of masked columns that are kept, in order
    totals: bool = False  # whether columns of whole numbers keep their totals
    confidential: tuple[Chosen, ...] = ()
    block_by: tuple[Name, ...] = ()  # masked columns that blocks are cut along; none for all
    typed: tuple[Name, ...] = ()  # columns of text that are released as numbers, if all their cells are
    texts: tuple[Name, ...] = ()  # other columns without a role, which must not hold numbers

    @property
    def kind_of(self) -> dict[Name, Kind]:
        """The kind of each masked column."""
        return dict(zip(self.masked, self.kinds, strict=True))

    def compared(self, names: Sequence[Name]) -> list[Name]:
        """Return those of some masked columns that decide which records are alike."""
        counts = dict(zip(self.masked, self.importance or (1.0,) * len(self.masked), strict=True))
        return [name for name in names if counts[name] > 0]

    def layout(self, types: Mapping[Name, Any]) -> Layout:
        """Return the columns of the released table, some with the types that they have in all parts."""
        return Layout(
            list(self.released),
            # Categories are released in the type of their column, so that it is read once more.
            [name for name in self.released if name not in self.masked or name in self.categories],
            [name for name, kind in self.kind_of.items() if kind.numeric],
            types,
        )

    @property
    def nominal(self) -> list[Name]:
        """The masked columns whose values have no order."""
        return [name for name, kind in self.kind_of.items() if not kind.ordered]

    @property
    def with_own_cells(self) -> tuple[Name, ...]:
        """The columns that are released with cells of the table: those that are not masked, and categories."""
        kinds = self.kind_of
        return tuple(name for name in self.released if name not in kinds or kinds[name].released_cells)

    @property
    def scaled(self) -> dict[Name, Kind]:
        """The masked columns that are counted on a scale that all parts share."""
        return {name: kind for name, kind in self.kind_of.items() if kind.scaled}

    @property
    def words(self) -> dict[Name, str]:
        """The kinds of the masked columns that are not plain numbers."""
        named = {name: kind.word for name, kind in self.kind_of.items() if not kind.additive}
        return named | {name: scale.word for name, scale in self.scales.items()}

    @property
    def categories(self) -> frozenset[Name]:
        """The masked columns that hold no numbers."""
        return frozenset(name for name, kind in self.kind_of.items() if not kind.numeric)

    @property
    def zero_places(self) -> list[int]:
        """The places of the columns whose zeros are kept."""
        return [self.masked.index(name) for name in self.zeros]

    def read(self) -> list[Name]:
        """Return all of them."""
        apart = [name for name in (self.weights, self.unit) if name is not None]
        confidential = (column.name for column in self.confidential)
        return list(dict.fromkeys([*self.masked, *self.by, *apart, *confidential, *self.typed, *self.texts]))


class Part(NamedTuple):
    """What is known of a part once its numbers are read."""

    rows: int
    kept: int  # records that are released
    incomplete: int  # records that miss a value
    suppressed: int  # records of small cells that are left out
    missing: Ints  # missing cells of each column
    present: Ints  # cells of each column that are released and not missing
    cells: list[Cell]  # by code
    counts: Ints  # records of each cell
    units: list[Words] | None  # of each cell: the least of its different units, k at most
    storages: tuple[Storage | None, ...]  # of each column; None if all its cells are missing
    spellings: tuple[frozenset[Spelling], ...]  # of missing cells, by column
    limits: Floats  # the least and the greatest value of each column
    broken: tuple[tuple[int, int], ...]  # of each rule: the records that break it, and the number of the first
    totals: tuple[int, ...]  # of each column of whole numbers, if they are kept
    observed: tuple[Any, ...]  # of each column: what its kind needs to know of the records that are kept
    confidential: tuple[Values, ...]
    types: dict[Name, str | None]  # of columns of text that may be numbers; None if all their cells are missing
    texts: dict[Name, TextNumbers]  # of columns of text without a role


class Own(NamedTuple):
    """What the cells and values of a part are in the whole table."""

    cells: Ints  # the number of each cell
    codes: tuple[Floats | None, ...]  # of each column of categories, the code of each value
    confidential: tuple[Ints, ...] = ()  # likewise of each confidential column
    first: int = 0  # how many released records come before it


class Joined(NamedTuple):
    """Strata that are joined."""

    strata: Mapping[tuple[object, ...], tuple[object, ...]]  # as the parts spell them, and what they read then
    texts: frozenset[Name]  # columns of the strata in which some of them differ
    spelled: Mapping[Name, Mapping[Spelling, Spelling]]  # cells of the other columns that are spelled otherwise


class Moves(NamedTuple):
    """What becomes of cells with too few records."""

    patterns: Mapping[Cell, tuple[bool, ...] | None]  # the columns that their records miss then; None if left out
    joined: Joined | None = None
    blanked: int = 0  # cells of the table that are made missing
    notes: tuple[str, ...] = ()


STAY = Moves({})


class Bucket(NamedTuple):
    """What is known of a bucket once it is masked."""

    errors: Floats  # squared, of each standardised column
    totals: Floats
    rounding: Floats  # what rounding to integers added to the errors
    grouped: Floats  # errors of the partition itself, whatever is released for a group
    sizes: Ints  # how many groups there are of each size
    outcome: Outcome  # what the method said, without its labels
    decimals: Bools  # whether values that stand for whole numbers are not whole
    new_zeros: Ints  # of each column whose zeros are kept: zeros that stand for other values
    largest: Floats  # errors of the group of few records that has most: in each column, and in all together
    taken: Bools  # whether a released value is the number that stands for missing in the column
    dominated: Ints  # per column: the groups that one member dominates, and the groups that have values
    changes: tuple[Ints, ...] = ()  # of each column, as its coding counts them


def new_zeros(buckets: Sequence[Bucket]) -> Ints:
    """Count, of each column whose zeros are kept, the zeros that stand for other values."""
    new: Ints = np.sum([bucket.new_zeros for bucket in buckets], axis=0, dtype=np.int64)
    return new


@dataclass(frozen=True)
class Spellings:
    """How cells are spelled in the release, where records must look alike."""

    missing: Mapping[Name, Spelling]  # of each masked column: what a missing cell reads
    strata: Mapping[Name, Mapping[Spelling, Spelling]]  # of columns of the strata: cells that are spelled otherwise
    codes: Mapping[Name, Code]  # of masked columns whose missing cells read a code: which
    joined: Joined | None = None

    def without(self, names: Collection[Name]) -> Spellings:
        """Return them with empty missing cells in some columns."""
        codes = {name: code for name, code in self.codes.items() if name not in names}
        return replace(self, missing={n: None if n in names else s for n, s in self.missing.items()}, codes=codes)
