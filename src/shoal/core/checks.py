"""Checks of tables, arrays and parameters: finite records, a valid k, a valid choice."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from shoal.core.errors import InputError
from shoal.core.messages import count, parameter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from shoal.core.types import Floats

EXACT = 2**53  # all integers up to this number are exact as floats
FARTHEST = 1e150  # the sum of squares of larger numbers overflows

__all__ = [
    "EXACT",
    "FARTHEST",
    "as_names",
    "as_records",
    "check_choice",
    "check_k",
    "check_size",
    "plain_array",
    "read_share",
]


def as_names(names: Any) -> list[Any]:
    """Return names as a list; accept a single name.

    Examples
    --------
    >>> as_names("sales")
    ['sales']
    """
    if names is None:
        return []
    return [names] if isinstance(names, (str, Integral)) else list(names)


def plain_array(array: Any) -> Any:
    """Convert an instance of an array subclass, such as `numpy.matrix`, to a plain array; masked cells become NaN.

    Examples
    --------
    >>> import numpy as np
    >>> plain_array(np.ma.masked_array([1, 2], mask=[False, True])).tolist()
    [1.0, nan]
    """
    import numpy as np

    if not isinstance(array, np.ma.MaskedArray) or array.dtype.kind not in "iuf" or not np.ma.is_masked(array):
        return np.asarray(array)
    if array.dtype.kind in "iu":
        if array.max() > EXACT or array.min() < -EXACT:
            raise InputError(
                "A masked array of integers is converted to floats, which are exact for whole numbers up to 2^53 only; "
                f"it holds {array.max() if array.max() > EXACT else array.min()}. Use a frame instead."
            )
        array = array.astype(np.float64)
    return array.filled(np.nan)


def as_records(X: ArrayLike) -> Floats:
    """Return the records as a contiguous ``(n, d)`` array of finite float64; reject anything else.

    Examples
    --------
    >>> as_records([1, 2]).shape
    (2, 1)
    """
    import numpy as np  # not at the top: the command line uses the other checks and starts faster without numpy

    try:
        array = np.ascontiguousarray(plain_array(X) if isinstance(X, np.ndarray) else X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{parameter('X')} must be an array of numbers. Encode or leave out text columns.") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"{parameter('X')} must have records in rows and at least one column, got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(
            f"{parameter('X')} must be finite, got {array[row, column]} in record {row}, column {column}. Leave out "
            "such records, or use shoal.mask(..., missing=...)."
        )
    return array


def check_k(k: object, n: int, where: str = "") -> int:
    """Return k if it is a valid minimum group size for n records; otherwise reject it.

    Examples
    --------
    >>> check_k(3, 10)
    3
    """
    k = check_size(k)
    if n < k:
        raise InputError(
            f"{parameter('k')} must not exceed the number of records: k={k}, but {where or 'the table'} has "
            f"{count(n, 'record')}. Use a smaller k" + (", or join small strata before masking." if where else ".")
        )
    return k


def check_size(k: object) -> int:
    """Return k if it is a whole number of at least 2; otherwise reject it."""
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise InputError(f"{parameter('k')} must be a whole number of at least 2, got {k!r}.")
    if k < 2:
        raise InputError(f"{parameter('k')} must be at least 2, got {k}: a group of one record protects nobody.")
    return int(k)


def read_share(name: str, value: object) -> float:
    """Return a share as a number from 0 to 1; accept percentages such as ``"5%"``.

    Examples
    --------
    >>> read_share("max_left_out", "5%"), read_share("max_left_out", 0.5)
    (0.05, 0.5)
    """
    try:
        percent = isinstance(value, str) and value.rstrip().endswith("%")
        share = float(str(value).rstrip().rstrip("%")) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise InputError(f"{parameter(name)} must be a share from 0% to 100%, such as '5%', got {value!r}.")
    return share


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Reject a value that is not one of a parameter's choices."""
    if value not in choices:
        raise InputError(f"{parameter(name)} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
