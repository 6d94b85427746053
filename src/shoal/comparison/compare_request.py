"""Parameters of a comparison: the parameters of a masking, and the methods, sizes and promises to try."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from shoal.core.checks import check_size
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.parameters import ESSENTIALS, METHOD, Request, described, described_by, shared
from shoal.masking.request import MaskRequest
from shoal.tables.reading import ReadingOptions

if TYPE_CHECKING:
    import numpy as np

    from shoal.tables.columns import Name

__all__ = ["MASKING", "CompareRequest"]


@dataclass(frozen=True, kw_only=True)
class CompareRequest(Request):
    """A request to compare methods, group sizes and promises; its construction fails if a parameter is invalid.

    Examples
    --------
    >>> CompareRequest(k=[5, 3, 5]).sizes
    [3, 5]
    """

    k: Sequence[int] | int = shared(
        MaskRequest, "k", default=(3, 5, 10), help="Group sizes to try.", typed=str, metavar="N,…"
    )
    methods: Sequence[str | Callable[..., Any]] | str | Callable[..., Any] = described(
        "all",
        """Methods to try, or ``all``. With promises, ``all`` means the default method and the promise's own methods:
        for any method, the same search finds groups that keep the promise.""",
        "-m",
        "--method",
        panel=ESSENTIALS,
        python="Names listed by `shoal.methods`, or functions as for `shoal.partition`.",
        typed=list,
        metavar="NAME,…",
    )
    columns: Sequence[Name] | Name | None = shared(MaskRequest, "columns")
    roles: str | os.PathLike[str] | Mapping[Name, Any] | None = shared(MaskRequest, "roles")
    kinds: Mapping[Name, Any] | None = shared(MaskRequest, "kinds")
    distance: Sequence[Name] | Name | None = shared(MaskRequest, "distance")
    importance: Mapping[Name, float] | None = shared(MaskRequest, "importance")
    scale: Mapping[Name, str] | str | None = shared(MaskRequest, "scale")
    by: Sequence[Name] | Name | None = shared(MaskRequest, "by")
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = shared(MaskRequest, "weights")
    unit: Name | None = shared(MaskRequest, "unit")
    confidential: Sequence[Name] | Name | None = shared(MaskRequest, "confidential")
    diversity: Any = shared(
        MaskRequest,
        "diversity",
        help="""l-diversity to try, such as 2,3,5 or entropy:3. The forms are those of a masking. Each is tried
        separately and compared with no promise.""",
        typed=list,
        metavar="L,…",
    )
    closeness: Any = shared(
        MaskRequest,
        "closeness",
        help="""t-closeness to try, such as 0.1,0.2,0.3. The forms are those of a masking. Each is tried separately and
        compared with no promise.""",
        typed=list,
        metavar="T,…",
    )
    missing: str = shared(MaskRequest, "missing")
    missing_codes: Mapping[Name, Any] | None = shared(MaskRequest, "missing_codes")
    small: str = shared(MaskRequest, "small")
    max_left_out: str | float = shared(MaskRequest, "max_left_out")
    zeros: Sequence[Name] | Name | None = shared(MaskRequest, "zeros")
    sums: Sequence[str] | str | None = shared(MaskRequest, "sums")
    integers: str = shared(MaskRequest, "integers")
    decimals: str = shared(MaskRequest, "decimals")
    aggregate: str = shared(MaskRequest, "aggregate")
    refine: int | None = shared(MaskRequest, "refine")
    seed: int | None = shared(MaskRequest, "seed")
    time_limit: float = described(
        10.0,
        """Time limit per run. It covers all strata together. A method that is expected to take longer on this machine,
        or does, is left out and listed; a method with intermediate results is stopped and its result kept.""",
        "--time",
        panel=METHOD,
        typed=float,
        metavar="SECONDS",
    )
    reading: ReadingOptions = described_by(ReadingOptions)
    progress: bool = shared(MaskRequest, "progress")

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InputError(
                f"{parameter('k')} must contain at least one group size, got none; for example k=[3, 5, 10]."
            )
        for size in self.sizes:
            check_size(size)
        if not self.time_limit > 0:
            raise InputError(f"{parameter('time_limit')} must be more than 0 seconds, got {self.time_limit!r}.")

    @property
    def sizes(self) -> list[int]:
        """The group sizes, without duplicates, in ascending order."""
        return sorted(set(self.k) if isinstance(self.k, Iterable) else {self.k})

    def masking(self) -> MaskRequest:
        """Return the masking request common to all runs, with the smallest size and without promises."""
        return MaskRequest(k=self.sizes[0], **{name: getattr(self, name) for name in MASKING})


# The parameters common to all runs.
MASKING = tuple(
    item.name
    for item in fields(CompareRequest)
    if item.name not in ("k", "methods", "diversity", "closeness", "time_limit", "progress")
)
