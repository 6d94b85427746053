"""Checks that every masked record is paired with its original, and pairing of shuffled records.

Unmasked columns, including joined strata, show the order. Without such columns, masked records must be nearer to their
originals than in random order. For unrelated records, the covariance of values before and after is 0 up to √(Σx²Σy²/(n
− 1)), where x and y are the deviations from the means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from shoal.assessment.coded_records import CodedRecords
from shoal.core.checks import FARTHEST
from shoal.core.errors import InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints
from shoal.kinds.column import composed_cells
from shoal.kinds.kind import Kind
from shoal.kinds.nominal import Nominal
from shoal.tables.columns import Name
from shoal.tables.table import Table

__all__ = ["are_joined", "as_text", "check_cells", "check_nearness", "check_order", "is_unchanged", "match_patterns"]

FEWEST = 50  # records needed to distinguish an order from a random one
DEVIATIONS = 3  # standard deviations beyond which nearness is no coincidence
WAYS_OUT = (
    f"If they were shuffled, list the original record of each one in {parameter('kept')}, or use "
    f"{setting('shuffled', True)} to take only measures that need no order"
)


def check_order(
    before: Table, after: Table, masked: Sequence[Name], by: Sequence[Name], kinds: Mapping[Name, Kind]
) -> tuple[bool, list[str]]:
    """Refuse masked records that unmasked columns show to be in another order than the originals.

    Strata (`by`) may have been joined, and units may be renumbered. Return True if the order is certain, and notes.
    """
    untouched = [name for name in before.names if name in after.names and name not in masked]
    old, new = before.keys(untouched), after.keys(untouched)
    joined, notes = None, []
    for i, name in enumerate(untouched):
        differs = _differ(old[str(i)], new[str(i)])
        if not differs.any():
            continue
        if joined is None:
            joined = bool(by) and are_joined(
                before.keys(by), after.keys(by), [kinds.get(name, Nominal()) for name in by]
            )
        if name in by and joined:
            notes.append(f"column {name} names joined strata in {int(differs.sum()):,} records of the masked table")
        elif _are_renamed(old[str(i)], new[str(i)]):
            notes.append(f"column {name} was recoded consistently in the masked table")
        else:
            raise InputError(
                f"Column {name!r} differs in record {int(differs.arg_true()[0]) + 1}. If it was masked, list it in "
                f"{parameter('columns')}; if its strata were joined, list it in {parameter('by')}; otherwise the "
                f"records of {parameter('original')} and {parameter('masked')} are not in the same order, as required. "
                f"{WAYS_OUT}."
            )
    return bool(untouched) and len(old.unique()) > 1, notes


def is_unchanged(before: Table, after: Table, name: Name) -> bool:
    """Return True if all cells of a column are the same in both tables."""
    return not _differ(before.keys([name])["0"], after.keys([name])["0"]).any()


def _are_renamed(old: pl.Series, new: pl.Series) -> bool:
    """Return True if every value was consistently replaced by another one, such as units by new numbers."""
    pairs = pl.DataFrame({"old": old, "new": new})
    values = pairs["old"].n_unique()
    return 1 < values < len(pairs) and pairs.n_unique() == values == pairs["new"].n_unique()


def _differ(before: pl.Series, after: pl.Series) -> pl.Series:
    """Return a mask of the differing cells; equal numbers may have different types."""
    if before.dtype.is_numeric() and after.dtype.is_numeric():
        return before.cast(pl.Float64).ne_missing(after.cast(pl.Float64))
    return as_text(before).ne_missing(as_text(after))


def as_text(cells: pl.Series) -> pl.Series:
    """Return cells of any type as text in one Unicode form."""
    # polars cannot cast durations to text
    return composed_cells((cells.to_physical() if cells.dtype == pl.Duration else cells).cast(pl.String))


def are_joined(old: pl.DataFrame, new: pl.DataFrame, kinds: Sequence[Kind]) -> bool:
    """Return True if strata were joined, each as a whole and under a name that covers all joined strata.

    `old` and `new` are the strata before and after; `kinds` contains the kind of each column, because a hierarchy names
    joined values by an ancestor.

    Examples
    --------
    >>> old = pl.DataFrame({"0": ["a", "a", "b", "c"]})
    >>> joined = (["a", "a", "b or c", "b or c"], list("aabb"))
    >>> [are_joined(old, pl.DataFrame({"0": new}), [Nominal()]) for new in joined]
    [True, False]
    """
    pairs = pl.DataFrame(
        [
            as_text(frame[name]).fill_null("missing").alias(f"{when} {name}")
            for when, frame in (("old", old), ("new", new))
            for name in frame.columns
        ]
    ).unique()
    if pairs.select(f"old {name}" for name in old.columns).is_duplicated().any():
        return False
    return all(
        kind.is_joined_name(together, values)
        for name, kind in zip(old.columns, kinds, strict=True)
        for together, values in pairs.group_by(f"new {name}").agg(pl.col(f"old {name}").unique()).iter_rows()
    )


def check_cells(X: Floats, Y: Floats, names: Sequence[Name]) -> None:
    """Refuse values too large to be squared, and cells that have a value only in the masked table."""
    for j, name in enumerate(names):
        for table, values in (("original", X[:, j]), ("masked", Y[:, j])):
            far = np.abs(values) > FARTHEST
            if far.any():
                record = int(np.argmax(far))
                raise InputError(
                    f"Column {name!r} must be within ±{FARTHEST:g}, but record {record + 1} of {table!r} holds "
                    f"{values[record]}. Correct it first."
                )
        differs = np.isnan(X[:, j]) != np.isnan(Y[:, j])
        if differs.any():
            raise InputError(
                f"Column {name!r} must have the same missing cells in {parameter('original')} and "
                f"{parameter('masked')}, but record {int(np.argmax(differs)) + 1} has a value in the masked table "
                f"only. If a value means missing, set it in {parameter('missing_codes')}; otherwise leave such records "
                "out of both tables."
            )


def match_patterns(X: Floats, Y: Floats) -> tuple[Ints, Ints]:
    """Return an order of each table such that corresponding records miss the same columns; refuse if none exists.

    Examples
    --------
    >>> X, Y = np.array([[1.0], [np.nan], [3.0]]), np.array([[2.0], [2.0], [np.nan]])
    >>> [order.tolist() for order in match_patterns(X, Y)]
    [[0, 2, 1], [0, 1, 2]]
    """
    one, two = (np.lexsort(np.isnan(values).T) for values in (X, Y))
    if not np.array_equal(np.isnan(X)[one], np.isnan(Y)[two]):
        raise InputError(
            f"{parameter('masked')} must contain the records of {parameter('original')} in any order, but other cells "
            f"are missing in it. If a value means missing, set it in {parameter('missing_codes')}; if cells were made "
            f"missing ({setting('small', 'merge')}), list the original record of each one in {parameter('kept')}."
        )
    return one, two


def check_nearness(before: CodedRecords, Y: Floats) -> None:
    """Refuse masked records that are not nearer to their originals than in random order."""
    if len(Y) < FEWEST:
        return
    Z, W = (values - np.nanmean(values, axis=0) for values in map(_seen, (before.coordinates, before.place(Y))))
    together = np.nansum(Z * W)
    accident = np.sqrt(np.sum(np.nansum(np.square(Z), axis=0) * np.nansum(np.square(W), axis=0)) / (len(Y) - 1))
    if accident > 0 and together <= DEVIATIONS * accident:
        raise InputError(
            f"{parameter('masked')} must contain the records in the order of {parameter('original')}, but they are not "
            f"nearer to their originals than in random order. {WAYS_OUT}, or {setting('shuffled', False)} if the order "
            "is right."
        )


def _seen(values: Floats) -> Floats:
    """Return the columns of coordinates with a value in at least one record."""
    return values[:, ~np.isnan(values).all(axis=0)]
