"""The file of labels: the group of each released record and its size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from shoal.core.measures import group_sizes
from shoal.core.types import Ints
from shoal.tables.columns import Name

__all__ = ["label_frame"]


def label_frame(records: Ints, labels: Ints, columns: Sequence[Name]) -> pl.DataFrame:
    """Return the labels as a table; `record` counts the rows of the given table from 1.

    Parameters
    ----------
    records
        The row number of each released record in the given table.
    labels
        The group of each record, or of each of its cells.
    columns
        The masked columns.

    Examples
    --------
    >>> label_frame(np.array([0, 2]), np.array([0, 0]), ["sales"]).rows()
    [(1, 0, 2), (3, 0, 2)]
    """
    frame = {"record": records + 1}
    if labels.ndim == 1:
        return pl.DataFrame({**frame, "group": labels, "size": group_sizes(labels)[labels]})
    for name, column in zip(columns, labels.T, strict=True):
        groups = np.ascontiguousarray(column)
        frame |= {f"group_{name}": groups, f"size_{name}": group_sizes(groups)[groups]}
    return pl.DataFrame(frame)
