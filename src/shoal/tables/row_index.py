"""The index of a pandas table: it names records, is never counted, and so never leaves."""

from __future__ import annotations

from typing import Any

from shoal.tables.columns import Name

__all__ = ["NO_INDEX", "is_plain", "is_stored_index"]

NO_INDEX = (
    "the index of the pandas table is not in the release: records are numbered from 0; reset_index() makes the index a "
    "column"
)


def is_plain(index: Any) -> bool:
    """Return whether an index only numbers the records from 0, under no name."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None


def is_stored_index(name: Name) -> bool:
    """Return whether a column is an index without a name, as pandas and Dask store it in a file.

    Examples
    --------
    >>> [is_stored_index(name) for name in ("__index_level_0__", "__null_dask_index__", "index")]
    [True, True, False]
    """
    return str(name).startswith("__index_level_") or name == "__null_dask_index__"
