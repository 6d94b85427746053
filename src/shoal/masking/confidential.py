"""Sensitive columns, which are released unchanged: number their values and check the promises on them.

The values of a column are numbered in order across the whole table; missing cells count as the lowest value. Numbers,
dates, Booleans and ordinal columns have an order; text and nominal columns have none. Closeness compares each
group with the distribution of all released records, across strata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from shoal.core.errors import InputError, VerificationError
from shoal.core.messages import agreeing, count, parameter, setting
from shoal.core.types import Ints
from shoal.kinds.column import composed_cells
from shoal.kinds.date import in_order
from shoal.kinds.kind import Kind
from shoal.kinds.nominal import Nominal
from shoal.promises.closeness import Closeness
from shoal.promises.diversity import Diversity
from shoal.promises.promise import ConfidentialColumn, GroupPromise
from shoal.promises.rules import make_rules, reached_by
from shoal.tables.columns import Name

if TYPE_CHECKING:
    from shoal.kernels.words import Words
    from shoal.promises.promise import Rules
    from shoal.tables.table import Table

__all__ = [
    "Chosen",
    "Promise",
    "Values",
    "count_alike",
    "number_values",
    "reached_by_column",
    "read_values",
    "worst",
]  # fmt: skip

DIGITS = 12  # decimal places of distances and entropies
MOST = 90  # percent; a value that this share of a group has in common is as good as disclosed
# Measured for every sensitive column, with or without a promise on it.
MEASURES: dict[str, GroupPromise] = {
    "diversity": Diversity(2),
    "entropy": Diversity(2, "entropy"),
    "closeness": Closeness(0.0),
}


class Chosen(NamedTuple):
    """A sensitive column: its name, its kind and the order of its values."""

    name: Name
    kind: Kind  # also numeric for date and Boolean columns
    ordered: bool | None = None  # None: decided by its cells


class Values(NamedTuple):
    """The distinct values of a sensitive column in a part of the table, by code."""

    cells: pl.Series  # distinct cells, the missing value first
    counts: Ints
    ordered: bool


class Promise(NamedTuple):
    """The sensitive columns of a table and the promises on their values in every group."""

    columns: tuple[Chosen, ...] = ()
    counts: tuple[Ints, ...] = ()  # records per value in the whole table
    models: tuple[tuple[int, GroupPromise], ...] = ()  # promises, each with the index of its column

    def rules(
        self, codes: Ints, models: Sequence[tuple[int, GroupPromise]], units: Words | None = None, k: int = 0
    ) -> Rules:
        """Return the rules of the promises for records with these codes; `units` add a rule of k distinct units."""
        columns = [
            ConfidentialColumn(np.ascontiguousarray(codes[:, place]), counts, bool(column.ordered))
            for place, (column, counts) in enumerate(zip(self.columns, self.counts, strict=True))
        ]
        if units is not None:
            different, number = np.unique(units, return_inverse=True)
            columns.append(ConfidentialColumn(number.astype(np.int64), np.ones(len(different), dtype=np.int64), False))
            models = [*models, (len(columns) - 1, Diversity(k))]
        return make_rules(columns, models, len(codes))


def read_values(table: Table, columns: Sequence[Chosen], first: int) -> tuple[Ints, tuple[Values, ...]]:
    """Return the code of each record in each sensitive column of a part, and the values by code."""
    codes, values = np.empty((table.rows, len(columns)), dtype=np.int64), []
    for place, (name, kind, known_order) in enumerate(columns):
        cells, ordered = table[name].compared(kind, first)
        if known_order and kind.numeric and cells.dtype == pl.String:
            cells = in_order(cells)  # durations read back from a text file would sort as text
        frame = pl.DataFrame({"cell": cells})
        value_counts = frame.group_by("cell").len().sort("cell", nulls_last=False)
        codes[:, place] = _places(frame, value_counts)
        counts = value_counts["len"].to_numpy().astype(np.int64)
        values.append(Values(value_counts["cell"], counts, ordered if known_order is None else known_order))
    return codes, tuple(values)


def _places(cells: pl.DataFrame, among: pl.DataFrame) -> Ints:
    """Return the row number of each cell in `among`, a table of distinct cells."""
    numbered = among.select("cell").with_row_index("place")
    joined = cells.join(numbered, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return joined["place"].to_numpy().astype(np.int64)


def number_values(
    columns: Sequence[Chosen], parts: Sequence[Sequence[Values]], models: Sequence[tuple[int, GroupPromise]]
) -> tuple[Promise, list[tuple[Ints, ...]]]:
    """Number the values of sensitive columns across all parts; return the promise and the numbers per part."""
    numbered_columns, counts = list[Chosen](), list[Ints]()
    numbers: list[list[Ints]] = [[] for _ in parts]
    for place, (name, kind, _) in enumerate(columns):
        part_values = [part[place] for part in parts]
        table, ordered = _merged(name, part_values)
        ranking = kind.ranking(name, table["cell"])
        table = table if ranking is None else table[ranking]
        for part_numbers, values in zip(numbers, part_values, strict=True):
            part_numbers.append(_places(_as(table["cell"].dtype, values), table))
        # Values without an order are text, even if they look like numbers when read back from a file.
        numbered_columns.append(Chosen(name, Nominal() if kind.numeric and not ordered else kind, ordered))
        counts.append(table["len"].to_numpy().astype(np.int64))
    promise = Promise(tuple(numbered_columns), tuple(counts), tuple(models))
    _check_values(promise)
    return promise, [tuple(part_numbers) for part_numbers in numbers]


def _merged(name: Name, parts: Sequence[Values]) -> tuple[pl.DataFrame, bool]:
    """Return the sorted values of all parts with their counts, and True if the values have an order."""
    present = [values for values in parts if values.cells.null_count() < len(values.cells)] or parts[:1]
    types = {values.cells.dtype for values in present}
    if len(types) > 1 and pl.String in types:
        raise InputError(
            f"Sensitive column {name!r} holds numbers in one part of the table and text in another. Use "
            f"{setting('kinds', {name: 'Nominal()'})}, or correct it."
        )
    dtype = types.pop() if len(types) == 1 else pl.Float64()
    table = pl.concat([_as(dtype, values) for values in parts])
    table = table.group_by("cell").agg(pl.col("len").sum()).sort("cell", nulls_last=False)
    return table, present[0].ordered


def _as(dtype: pl.DataType, values: Values) -> pl.DataFrame:
    """Return the values of a part in the type used for the whole table; all values of the part may be missing."""
    empty = values.cells.null_count() == len(values.cells)
    cells = pl.Series([None] * len(values.cells), dtype=dtype) if empty else values.cells.cast(dtype)
    return pl.DataFrame({"cell": composed_cells(cells), "len": values.counts})


def _check_values(promise: Promise) -> None:
    """Refuse a promise that requires more distinct values than its column has."""
    for place, model in promise.models:
        different = len(promise.counts[place])
        if model.values > different:
            raise InputError(
                f"{parameter(model.parameter)} must not exceed the {count(different, 'different value')} of column "
                f"{promise.columns[place].name!r}, got {model.text}."
            )


def worst(codes: Ints, groups: Ints, promise: Promise) -> list[float]:
    """Return the worst figure of any group per column and measure, and then per promise; refuse broken promises."""
    measures = _measured(promise)
    rules = promise.rules(codes, measures)
    reached = []
    for rule, (place, model) in enumerate(measures):
        lacks, group_measures = reached_by(rules, rule, groups)
        reached.append(model.worst(group_measures))
        few = int((lacks > 0).sum())
        if rule >= len(measures) - len(promise.models) and few:
            raise VerificationError(
                f"{few} of {count(len(lacks), 'group')} of identical records {agreeing(few, 'lacks', 'lack')} "
                f"{model.says} in column {promise.columns[place].name!r}; the worst has "
                f"{model.reached_text(reached[-1])}. Nothing was released."
            )
    return reached


def count_alike(codes: Ints, groups: Ints) -> tuple[int, int]:
    """Count the groups in which all records share one code, and the groups in which at least 90 % do.

    Examples
    --------
    >>> count_alike(np.array([5, *[6] * 9, 7, 7, 7, 8]), np.repeat([0, 1, 2], [10, 2, 2]))
    (1, 2)
    """
    order = np.lexsort((codes, groups))
    group, code = groups[order], codes[order]
    first = np.ones(len(group), dtype=np.bool_)
    first[1:] = (group[1:] != group[:-1]) | (code[1:] != code[:-1])
    starts = np.flatnonzero(first)
    shared = np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(shared, group[starts], np.diff(starts, append=len(group)))
    sizes = np.bincount(groups)
    return int(np.count_nonzero(shared == sizes)), int(np.count_nonzero(100 * shared >= MOST * sizes))


def _measured(promise: Promise) -> list[tuple[int, GroupPromise]]:
    return [*((place, model) for place in range(len(promise.columns)) for model in MEASURES.values()), *promise.models]


def reached_by_column(promise: Promise, reached: Sequence[Sequence[float]]) -> dict[Name, dict[str, float]]:
    """Combine the results of `worst` for several tables into one figure per sensitive column and measure."""
    reached_values: dict[Name, dict[str, float]] = {}
    for (place, model), *values in zip(_measured(promise), *reached, strict=True):
        # Further digits are noise (see `shoal.promises.promise.ROUNDING`). Adding 0.0 turns −0 into 0.
        value = round(model.worst(np.array(values)), DIGITS) + 0.0
        reached_values.setdefault(promise.columns[place].name, {})[model.measured] = model.number(value)
    return reached_values
