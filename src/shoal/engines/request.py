"""What a user asks of a masking, and what a task must know to do its share of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

from shoal.algorithms.registry import AUTO, Method, choose, find
from shoal.core.errors import InputError
from shoal.masking.aggregation import Aggregate
from shoal.tables.frames import Name
from shoal.tables.sources import Source

__all__ = ["Job", "Request"]


@dataclass(frozen=True)
class Request:
    """The keywords of `shoal.mask` that decide the result; those that are not of a table have been checked."""

    k: int
    columns: list[Name] | None
    method: str | Callable[..., Any] | Method
    options: Mapping[str, Any]
    by: list[Name]
    weights: Any
    missing: str
    integers: str
    aggregate: Aggregate
    block: int | None
    split: str | None
    seed: int | None

    @property
    def title(self) -> str:
        """The name of the method."""
        return AUTO if self.method == AUTO else find(self.method).name

    @property
    def own(self) -> bool:
        """Whether the method is a user's function."""
        return self.method != AUTO and find(self.method).own

    def settled(self, columns: Sequence[Name]) -> Request:
        """Return the request with the method that masks these columns, and all its options."""
        entry = choose(self.method, len(columns))
        if entry.univariate and len(columns) != 1:
            raise InputError(
                f"Method {entry.name!r} masks one column, got {len(columns)}: {', '.join(map(str, columns))}. Name one "
                "column, or take 'individual-ranking' (each column on its own) or a multivariate method."
            )
        return replace(self, method=entry, options=entry.read_options(self.options))

    def notes(self) -> list[str]:
        """Return what a reader of the release must know about the request."""
        told = f"method {self.title} is a function of the user: shoal alone cannot repeat this run"
        return [told] if self.own else []

    def _plain(self, value: object) -> object:
        """Return an option as a release tells it; that of a user's function may be anything, the data included."""
        plain = not self.own or isinstance(value, (str, int, float, NoneType))
        return value if plain else f"given as {type(value).__name__}"

    def parameters(self, columns: Sequence[Name]) -> dict[str, Any]:
        """Return what a release says it was asked for, as plain values."""
        return {
            **self.__dict__,
            "k": int(self.k),
            "method": self.title,
            "columns": list(columns),
            "options": {name: self._plain(value) for name, value in self.options.items()},
            "weights": self.weights if isinstance(self.weights, (str, int, NoneType)) else "given as a vector",
            "block": None if self.block is None else int(self.block),
        }


@dataclass(frozen=True)
class Job:
    """A request, the table it is about and the columns that are masked."""

    asked: Request
    source: Source
    folder: Path
    columns: tuple[str, ...]

    @property
    def k(self) -> int:
        """The least number of records in a group."""
        return self.asked.k

    @property
    def drop(self) -> bool:
        """Whether records that miss a value are left out."""
        return self.asked.missing == "drop"

    @property
    def whole(self) -> bool:
        """Whether means of integer columns are rounded."""
        return self.asked.integers == "round"

    def wanted(self) -> list[str]:
        """Return the columns that are looked at."""
        weights = [self.asked.weights] if self.asked.weights else []
        return list(dict.fromkeys([*self.columns, *self.asked.by, *weights]))

    def path(self, part: int, what: str) -> Path:
        """Return where an array of a part is kept."""
        return self.folder / f"part-{part}-{what}"
