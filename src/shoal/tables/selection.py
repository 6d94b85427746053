"""Columns by their exact names: polars takes a name such as ``^.*$`` for a pattern, and ``*`` for all columns.

A column is found by its place, and its cells have no name: polars also looks a series up by name in its own methods.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from shoal.core.errors import VerificationError
from shoal.tables.columns import Name

__all__ = ["cells_of", "check_released", "named_cells", "only_columns", "with_cells", "without_columns"]


def cells_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return the cells of a column, as a series without a name."""
    return frame.get_column(name).alias("")


def named_cells(frame: pl.DataFrame) -> list[tuple[str, pl.Series]]:
    """Return the name and the cells of every column."""
    return [(column.name, column.alias("")) for column in frame.get_columns()]


def only_columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return some of the columns, in the order of `names`.

    Examples
    --------
    >>> frame = pl.DataFrame({"^.*$": [1], "*": [2], "other": [3]})
    >>> only_columns(frame, ["^.*$"]).columns, only_columns(frame, ["*"]).columns
    (['^.*$'], ['*'])
    """
    places = {name: place for place, name in enumerate(frame.columns)}
    # Not frame[:, places], which gives a column without a name another one.
    return frame.select(pl.selectors.by_index([places[name] for name in names]))


def without_columns(frame: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    """Return all columns except some."""
    return only_columns(frame, [name for name in frame.columns if name not in names])


def with_cells(frame: pl.DataFrame, cells: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return a frame with other cells in some columns; those that it does not have come last."""
    return frame.with_columns([column.alias(name) for name, column in cells.items()])  # a series is never a pattern


def check_released(names: Sequence[Name], planned: Sequence[Name]) -> None:
    """Refuse a release whose columns are not exactly the planned ones; numbers and their text are the same name."""
    found, wanted = [str(name) for name in names], [str(name) for name in planned]
    if found == wanted:
        return
    extra = [name for name in found if name not in wanted or found.count(name) > 1]
    lost = [name for name in wanted if name not in found]
    wrong = "Columns are in another order than planned"
    if extra:
        wrong = f"Column {extra[0]!r} is in the release but was not planned"
    elif lost:
        wrong = f"Column {lost[0]!r} is not in the release but was planned"
    raise VerificationError(f"{wrong}. Nothing was released.")
