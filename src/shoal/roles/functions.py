"""Detection of columns that are functions of other columns: copies, other spellings, classes or logarithms.

A function of a column reveals the column's values. Functions are detected by content: records with equal values in one
column have equal values in the other. A pair counts only if unrelated columns would probably break this rule, so a
column of distinct values does not determine all others. Distinct numbers are compared by their order instead. Each pair
of columns is first compared in a few records. The remaining pairs are compared in a sample, and then in all records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.core.types import Floats, Ints, Name

__all__ = ["Functions", "find_functions"]

SAMPLE = 20_000  # records of the sample
GLANCE = 500  # number of records that show that most pairs of columns are unrelated
BREAKS = 20  # expected number of record pairs that an unrelated column breaks
VARIED = 0.9  # share of distinct values above which numbers are compared by their order


class Functions(NamedTuple):
    """Dependencies between columns."""

    sources: Mapping[Name, tuple[Name, ...]]  # per column, the columns that determine it
    twins: Mapping[Name, tuple[Name, ...]]  # per column, the columns that are equivalent to it


class _Coded(NamedTuple):
    """A column as codes of its values; a missing value has its own code."""

    codes: Ints
    distinct: int
    spread: float  # the probability that two records differ


def find_functions(columns: Mapping[Name, pl.Series]) -> Functions:
    """Return the columns that are functions of one other column.

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
    """Return the pairs of columns whose second column is a function of the first."""
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
    """Map the second column of each pair to all first columns paired with it, in table order."""
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
    """Return the probability that two records differ, from the number of records per value."""
    return 1 - float(np.square(counts / max(1, counts.sum())).sum())


def _is_function(source: _Coded, column: _Coded) -> bool:
    """Return True if a source determines a column and chance is not a plausible cause."""
    if (len(source.codes) - source.distinct) * column.spread < BREAKS:
        return False
    if not all(_agrees(source.codes[:end], column.codes[:end]) for end in (GLANCE, len(source.codes))):
        return False
    # Records in which both cells are missing are not evidence for the other records.
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
    """Return the pairs of numeric columns that have mostly distinct values in the same or the reverse order."""
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
    """Return True if two columns have missing values in the same records, and values in the same or reverse order."""
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
