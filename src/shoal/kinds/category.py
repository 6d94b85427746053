"""Common base of nominal, ordinal and hierarchical columns, whose numbers are codes of values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from shoal.core.errors import InputError, closest
from shoal.core.measures import group_sizes
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints, Name
from shoal.kinds.column import CATEGORY, MISSING, Column, composed, composed_cells, one_form
from shoal.kinds.kind import Coding, Kind

if TYPE_CHECKING:
    from shoal.kinds.time_scale import Scale

__all__ = [
    "MOST_VALUES",
    "Category",
    "CategoryCoding",
    "as_labels",
    "check_number_of_values",
    "group_medians",
    "group_modes",
    "indicator_coordinates",
    "is_flat_list",
    "listed_values",
    "order_by",
    "sorted_codes",
]  # fmt: skip

MOST_VALUES = 1000  # values of a nominal column, at most; each value is a coordinate


@dataclass(frozen=True)
class CategoryCoding(Coding):
    """The coding of a column of categories."""

    names: tuple[Any, ...]  # the values by code; for a hierarchy, followed by its inner nodes
    coordinates: Floats  # (values, width): the coordinates of each value
    numeric: ClassVar[bool] = False
    standardised: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return int(self.coordinates.shape[1])

    @property
    def values(self) -> tuple[Any, ...]:
        """The values by code."""
        return self.names

    @property
    def labels(self) -> tuple[Any, ...]:
        """The released labels by code; all are text if any is text."""
        return as_labels(self.names)

    @property
    def distinct(self) -> bool:
        """True if the text of a released cell identifies its value."""
        return len(set(map(str, self.names))) == len(self.names)

    def limits(self, ends: Floats) -> Floats:
        """Return the smallest and the largest code."""
        return np.array([0, max(0, len(self.names) - 1)], dtype=np.float64)

    def place(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return the coordinates of the values."""
        present = ~np.isnan(X[:, j])
        places = np.full((len(X), self.width), np.nan)
        places[present] = self.coordinates[X[present, j].astype(np.int64)]
        return places

    def variables(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return the codes, or the coordinates of ordered values."""
        return self.place(X, j, Z) if self.ordered else X[:, [j]]

    def squares(self) -> Floats:
        """Return the squared distances between values, by code."""
        lengths = np.square(self.coordinates).sum(axis=1)
        squares = np.maximum(lengths[:, None] + lengths - 2 * self.coordinates @ self.coordinates.T, 0.0)
        np.fill_diagonal(squares, 0.0)
        distances: Floats = squares
        return distances

    @property
    def lineage(self) -> Ints:
        """The code of each value; categories without a hierarchy have no ancestors."""
        return np.arange(len(self.names), dtype=np.int64)[:, None]

    def codes(self, name: Name, cells: pl.Series) -> Floats:
        """Return the codes of released cells; text that names several nodes of a hierarchy means the lowest node."""
        # Compare values as text, because codes are numbers in a frame and text in a CSV file.
        by_text: dict[str, float] = {}
        for code, value in enumerate(self.names):
            by_text.setdefault(composed(str(value).lower() if isinstance(value, bool) else str(value)), float(code))
        texts = composed_cells(cells.cast(pl.String))
        for text in texts.drop_nulls().unique().sort():
            if text not in by_text:
                raise InputError(
                    f"Column {name!r} holds {text!r} in the masked table, but not in the "
                    f"original.{closest(text, by_text)} If it represents several values, set their hierarchy in "
                    "'kinds'."
                )
        codes = texts.replace_strict(by_text, default=None, return_dtype=pl.Float64)
        return codes.fill_null(np.nan).to_numpy().copy()


class Category(Kind):
    """Base class of kinds whose values are not numbers, or are numbers used as codes."""

    holds = "categories"
    numeric = False

    def in_order(self, name: Name, values: Sequence[Any]) -> list[Any]:
        """Return values in the order of their codes; refuse a value unknown to the kind."""
        return sorted(values)

    def coding(self, name: Name, values: Sequence[Any], counts: Ints) -> CategoryCoding:
        """Return the coding of the values that occur, in the order of `in_order`; `counts` are records per value."""
        raise NotImplementedError

    def read(self, name: Name, cells: Mapping[Name, Any], first: int, scale: Scale | None) -> tuple[Column, list[Any]]:
        """Return the codes of a part, and the values in the part by code."""
        values: pl.Series = cells[name]
        codes = (values.rank("dense") - 1).cast(pl.Float64).fill_null(np.nan).to_numpy()
        return Column(name, codes, CATEGORY.type), values.drop_nulls().unique().sort().to_list()

    def read_released(self, name: Name, cells: Mapping[Name, Any], coding: Coding, scale: Scale | None) -> Floats:
        """Return the codes of released cells."""
        return coding.codes(name, cells[name])

    def compared(self, name: Name, cells: pl.Series) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column without surrounding spaces; NA is missing in every format."""
        if cells.dtype == pl.String:
            cells = cells.str.strip_chars()
            cells = cells.set(cells.is_in(MISSING), None)
        return cells, False

    def observe(self, X: Floats, j: int, names: Sequence[Name], values: Sequence[Any]) -> list[tuple[Any, int]]:
        """Return each value with its number of records."""
        if not len(values):
            return []
        codes = X[:, j]
        counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(values))
        return list(zip(values, counts.tolist(), strict=True))

    def values_of(self, observed: Any) -> Sequence[Any]:
        """Return the values by code, from the result of `observe`."""
        return [value for value, _ in observed]

    def fit(self, name: Name, names: Sequence[Name], parts: Sequence[Any]) -> tuple[Coding, list[Floats | None]]:
        """Return the coding of the values of all parts, in one Unicode form, and the codes of each part's values."""
        spelled = one_form(value for part in parts for value, _ in part)
        counts: dict[Any, int] = {}
        for part in parts:
            for value, records in part:
                form = spelled.get(value, value)
                counts[form] = counts.get(form, 0) + records
        values = self.in_order(name, list(counts))
        coding = self.coding(name, values, np.array([counts[value] for value in values], dtype=np.int64))
        code = {value: float(place) for place, value in enumerate(values)}
        return coding, [
            np.array([code[spelled.get(value, value)] for value, _ in part], dtype=np.float64) for part in parts
        ]


def as_labels(names: Sequence[Any]) -> tuple[Any, ...]:
    """Return the released labels of values; all are text if any is text."""
    return tuple(map(str, names)) if any(isinstance(name, str) for name in names) else tuple(names)


def check_number_of_values(name: Name, values: Sequence[Any]) -> None:
    """Refuse a column with too many values."""
    if len(values) > MOST_VALUES:
        raise InputError(
            f"Column {name!r} has {len(values):,} different values, more than the {MOST_VALUES:,} allowed in a column "
            f"of categories. Leave it out, drop it with {setting('identifiers', [name])}, or group its values first."
        )


def indicator_coordinates(belongs: Floats, shares: Floats) -> Floats:
    """Return centred coordinates of unit variance, one per value."""
    gini = 1.0 - float(np.square(shares).sum())
    return (belongs - shares) / np.sqrt(gini) if gini > 1e-12 else np.zeros_like(belongs)


def order_by(name: Name, word: str, named: Iterable[Any], values: Sequence[Any]) -> list[Any]:
    """Return values in the order in which a kind lists them; refuse a value that the kind does not list."""
    texts = [composed(str(value)) for value in named]  # CSV cells are text, levels may be numbers
    for value in values:
        if composed(str(value)) not in texts:
            raise InputError(
                f"Column {name!r} holds {value!r}, which its kind {word} does not list.{closest(value, texts)} List "
                f"all values in {parameter('kinds')}."
            )
    order = {value: place for place, value in enumerate(texts)}
    return sorted(values, key=lambda value: order[composed(str(value))])


def listed_values(kind: str, values: object) -> tuple[Any, ...]:
    """Return values as a tuple; refuse anything but a list, because text would be split into letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"Kind {kind} must have lists of values, got {values!r}.")
    result = tuple(values)
    for value in result:
        if not isinstance(value, Hashable):
            raise InputError(f"Kind {kind} must have lists of single values, but one holds {value!r}.")
    return result


def is_flat_list(plain: object) -> bool:
    """Return True for a list of single values, as decoded from JSON."""
    return type(plain) is list and not any(type(value) in (list, dict) for value in plain)


def sorted_codes(codes: Floats, labels: Ints) -> tuple[Floats, Ints]:
    """Return the codes sorted within groups, and the start of each group followed by the end of the last group."""
    return codes[np.lexsort((codes, labels))], np.concatenate([[0], np.cumsum(group_sizes(labels))])


def group_modes(codes: Floats, labels: Ints) -> Floats:
    """Return the most frequent code of each group (ties: the lowest); NaN if all cells are missing.

    Examples
    --------
    >>> group_modes(np.array([0.0, 2.0, 2.0, 1.0]), np.array([0, 0, 0, 1])).tolist()
    [2.0, 1.0]
    """
    order = np.lexsort((codes, labels))
    ordered, starts = sorted_codes(codes, labels)
    low, high = ordered[starts[:-1]], ordered[starts[1:] - 1]
    # Find runs of equal codes within groups; choose the longest run per group, or the first of equally long runs.
    begins = np.flatnonzero(np.r_[True, (np.diff(ordered) != 0) | (np.diff(labels[order]) != 0)])
    lengths = np.diff(np.r_[begins, len(ordered)])
    group = labels[order][begins]
    best = np.lexsort((-lengths, group))[np.searchsorted(np.sort(group), np.arange(len(low)))]
    modes: Floats = np.where(np.isnan(high), np.nan, ordered[begins[best]])
    return modes


def group_medians(codes: Floats, labels: Ints) -> Floats:
    """Return the median code of each group (the lower of two middle codes)."""
    ordered, starts = sorted_codes(codes, labels)
    medians: Floats = ordered[(starts[:-1] + starts[1:] - 1) // 2]
    return medians
