"""The last check before anything is released: every group counted again, from the released values alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import VerificationError
from shoal.measures import group_sizes
from shoal.types import Ints

__all__ = ["identical_records", "verify"]


def verify(values: Sequence[NDArray[Any]] | NDArray[Any], k: int, strata: NDArray[Any] | None = None) -> None:
    """Count the records that share all their values, within their stratum, and refuse any count below k.

    Nothing but the values is believed: no labels, no sizes.

    Parameters
    ----------
    values
        The released columns: a sequence of vectors, or an array ``(n, d)``.
    k
        The least count.
    strata
        The stratum of each record, if any.

    Examples
    --------
    >>> verify(np.array([[1.5], [1.5], [4.0]]), k=2)
    Traceback (most recent call last):
    ...
    shoal.errors.VerificationError: 1 of 2 groups of identical records has fewer than k=2 records...
    """
    counts = group_sizes(identical_records(values, strata))
    small = int((counts < k).sum())
    if small:
        raise VerificationError(
            f"{small} of {len(counts)} groups of identical records ha{'s' if small == 1 else 've'} fewer than "
            f"k={k} records; the smallest has {counts.min()}. Nothing was released."
        )


def identical_records(values: Sequence[NDArray[Any]] | NDArray[Any], strata: NDArray[Any] | None = None) -> Ints:
    """Number the records 0, 1, … so that those that share all their values, within their stratum, share the number.

    Examples
    --------
    >>> identical_records(np.array([[1.5], [4.0], [1.5]])).tolist()
    [0, 1, 0]
    """
    import polars as pl

    columns = list(values.T) if isinstance(values, np.ndarray) else list(values)
    if strata is not None:
        columns.append(strata)
    frame = pl.DataFrame({str(i): np.ascontiguousarray(column) for i, column in enumerate(columns)})
    groups = frame.with_row_index("record").group_by(frame.columns, maintain_order=True).agg("record")["record"]
    labels = np.empty(len(frame), dtype=np.int64)
    labels[groups.explode().to_numpy()] = np.repeat(np.arange(len(groups)), groups.list.len().to_numpy())
    return labels
