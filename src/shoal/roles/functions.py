"""Columns that are functions of other columns: copies, other spellings, classes, logarithms.

A column that follows from another tells what the other one tells. Functions are found by content: in all records, equal
values of one column have equal values of the other. A pair counts only if chance would have broken it, so that a column
in which all values differ does not determine everything. Numbers that differ in all records are compared by their order
instead. The cost is one comparison of a few records per pair of columns, of a sample for the pairs that are left, and
of all records for the functions of the sample.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.core.types import Floats, Ints, Name

__all__ = ["Functions", "find_functions"]

SAMPLE = 20_000  # records in which functions are searched
GLANCE = 500  # records that show that most pairs of columns are unrelated
BREAKS = 20  # pairs of records that an unrelated column would be expected to break
VARIED = 0.9  # the share of different values from which numbers are compared by their order


class Functions(NamedTuple):
    """Which columns follow from which."""

    sources: Mapping[Name, tuple[Name, ...]]  # of a column: those that it is a function of
    twins: Mapping[Name, tuple[Name, ...]]  # of a column: those that tell exactly the same


class _Coded(NamedTuple):
    """A column as codes of its values; a missing cell is a value."""

    codes: Ints
    distinct: int
    spread: float  # the chance that two records differ


def find_functions(columns: Mapping[Name, pl.Series]) -> Functions:
    """Return which columns are functions of one other column.

    Examples
    --------
    >>> ages = pl.Series([20, 30, 40, 50] * 20)
    >>> find_functions({"age": ages, "squared": ages**2, "old": ages > 30})
    Functions(sources={'old': ('age', 'squared')}, twins={'age': ('squared',), 'squared': ('age',)})
    """
    records = max(map(len, columns.values()), default=0)
    follows = _follows({name: column.gather_every(max(1, records // SAMPLE)) for name, column in columns.items()})
    if records >= 2 * SAMPLE and follows:
        follows &= _follows({name: columns[name] for name in dict.fromkeys(name for pair in follows for name in pair)})
    twins = {pair for pair in follows if pair[::-1] in follows}
    return Functions(_sources(columns, follows - twins), _sources(columns, twins))


def _follows(columns: Mapping[Name, pl.Series]) -> set[tuple[Name, Name]]:
    """Return the pairs of columns of which the second is a function of the first."""
    coded = {name: coded for name, column in columns.items() if (coded := _code(column)).distinct > 1}
    follows = {
        (source, name)
        for name, column in coded.items()
        for source, other in coded.items()
        if source != name and column.distinct <= other.distinct and _is_function(other, column)
    }
    follows |= {(name, source) for source, name in follows if coded[source].distinct == coded[name].distinct}
    return follows | _in_same_order({name: columns[name] for name in coded}, coded)


def _sources(names: Collection[Name], pairs: Collection[tuple[Name, Name]]) -> dict[Name, tuple[Name, ...]]:
    """Return for the second columns of pairs the first ones, in the order of the table."""
    sources = {name: tuple(source for source in names if (source, name) in pairs) for name in names}
    return {name: firsts for name, firsts in sources.items() if firsts}


def _code(column: pl.Series) -> _Coded:
    """Number the values of a column."""
    if column.dtype == pl.Boolean:
        column = column.cast(pl.UInt8)
    codes = column.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    counts = np.bincount(codes)
    return _Coded(codes, int((counts > 0).sum()), _spread(counts))


def _spread(counts: Ints) -> float:
    """Return the chance that two records differ, from the number of records of each value."""
    return 1 - float(np.square(counts / max(1, counts.sum())).sum())


def _is_function(source: _Coded, column: _Coded) -> bool:
    """Return whether records with equal values in a source have equal values in a column, and not by chance."""
    if (len(source.codes) - source.distinct) * column.spread < BREAKS:
        return False
    if not all(_agrees(source.codes[:end], column.codes[:end]) for end in (GLANCE, len(source.codes))):
        return False
    # Records that miss both cells say nothing of the others.
    some = (source.codes > 0) | (column.codes > 0)
    if some.all():
        return True
    repeats = int(some.sum()) - (source.distinct - 1)
    return repeats * _spread(np.bincount(column.codes[some])) >= BREAKS


def _agrees(source: Ints, column: Ints) -> bool:
    """Return whether one column has a single value for each value of another."""
    value = np.zeros(source.max() + 1, dtype=np.int64)
    value[source] = column
    return bool((value[source] == column).all())


def _in_same_order(columns: Mapping[Name, pl.Series], coded: Mapping[Name, _Coded]) -> set[tuple[Name, Name]]:
    """Return the pairs of columns of numbers that rise and fall together, where nearly all values differ."""
    numbers = {
        name: column.cast(pl.Float64).to_numpy()
        for name, column in columns.items()
        if column.dtype.is_numeric() and coded[name].distinct > max(BREAKS, VARIED * len(column.drop_nulls()))
    }
    return {
        (first, second)
        for first, left in numbers.items()
        for second, right in numbers.items()
        if first != second and _moves_with(left, right)
    }


def _moves_with(left: Floats, right: Floats) -> bool:
    """Return whether two columns miss the same cells, and the others have the same or the reverse order."""
    absent = np.isnan(left)
    for end in (GLANCE, len(left)):
        if (absent[:end] != np.isnan(right[:end])).any():
            return False
        present = ~absent[:end]
        order = np.lexsort((right[:end][present], left[:end][present]))
        steps, moves = np.diff(left[:end][present][order]), np.diff(right[:end][present][order])
        if ((steps == 0) != (moves == 0)).any() or not ((moves >= 0).all() or (moves <= 0).all()):
            return False
    return True
