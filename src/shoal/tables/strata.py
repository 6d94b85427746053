"""Strata: the records that share the values of some columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.core.messages import listed
from shoal.core.types import Ints
from shoal.tables.columns import Name
from shoal.tables.table import Table

__all__ = ["Stratum", "codes_of", "describe_stratum", "strata_of"]


@dataclass(frozen=True)
class Stratum:
    """The records that share the values of the ``by`` columns."""

    key: tuple[object, ...]
    rows: Ints

    def describe(self, by: Sequence[Name]) -> str:
        """Name the stratum for a message.

        Examples
        --------
        >>> Stratum(("north",), np.arange(2)).describe(["region"])
        "the stratum region='north'"
        """
        return describe_stratum(by, self.key)


def describe_stratum(by: Sequence[Name], values: Sequence[object]) -> str:
    """Name a stratum for a message."""
    pairs = listed([f"{name}={value!r}" for name, value in zip(by, values, strict=True)])
    return f"the stratum {pairs}" if pairs else "the table"


def strata_of(table: Table, by: Sequence[Name]) -> list[Stratum]:
    """Split the records by the values of some columns; a missing value is a value of its own.

    Examples
    --------
    >>> from shoal.tables.frames import open_table
    >>> [s.rows.tolist() for s in strata_of(open_table(np.array([[1.0], [2.0], [1.0]])), [0])]
    [[0, 2], [1]]
    """
    if not by:
        return [Stratum((), np.arange(table.rows))]
    keys = table.keys(by).with_row_index("row of the table")
    groups = keys.group_by(keys.columns[1:], maintain_order=True).agg(pl.col(keys.columns[0]))
    return [Stratum(tuple(key), np.asarray(rows, dtype=np.int64)) for *key, rows in groups.iter_rows()]


def codes_of(strata: Sequence[Stratum], rows: int) -> Ints:
    """Return the number of each record's stratum."""
    codes = np.empty(rows, dtype=np.int64)
    for code, stratum in enumerate(strata):
        codes[stratum.rows] = code
    return codes
