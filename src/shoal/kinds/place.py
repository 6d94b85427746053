"""Places, each of which is a latitude and a longitude as one value; the centroid of a group is released.

Places are compared as points on a sphere, by the length of the straight line between them. Distances in metres are
therefore valid everywhere, including at the poles and across the antimeridian. The straight line is shorter than the
distance over ground by a share of θ²/24, which is 0.1 % for 1,000 km. A map, whose two columns could be compared
separately, has no such distances, because it is cut at its edges and its scale depends on the latitude.

The sphere is rotated so that its axes point north, east and up at the mean of all places. The north axis is the
coordinate of the latitude column; the east and up axes are the coordinates of the longitude column. Both columns thus
have the same unit and, together, the variance of two numeric columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.core.errors import InputError
from shoal.core.measures import centroids
from shoal.core.types import Floats, Ints, Name
from shoal.kinds.column import Column
from shoal.kinds.kind import Coding, Kind

if TYPE_CHECKING:
    from shoal.kinds.column import Cells
    from shoal.kinds.time_scale import Scale

__all__ = ["Place", "PlaceCoding", "distances"]

RADIUS = 6_371_008.8  # the mean radius of the earth in metres
DECIMALS = 7  # of released degrees; the last one is about a centimetre
ENDS = (90.0, 180.0)  # greatest latitude and longitude
# Coordinates are counted in STEPS² steps, because sums of whole numbers do not depend on how the table is divided.
STEPS = 2**30
LEAST = 1e-14  # variance below which places count as identical, despite rounding errors: about a metre
FEWEST = 20  # records needed to report displacements
PER_DECADE = 100  # bins per power of ten of displacements, each 2.3 % wide, from a millimetre
BINS = 11 * PER_DECADE
NAMES = (("lat", "latitude"), ("lon", "lng", "long", "longitude"))  # column names of places, for `shoal.inspect`


@dataclass(frozen=True)
class Place(Kind):
    """Places given as latitude and longitude in degrees. The centroid of a group is released.

    Distances are in metres. The kind applies to both columns together.

    Parameters
    ----------
    latitude, longitude
        The two columns; optional if `kinds` names both.

    Examples
    --------
    >>> import polars as pl
    >>> import shoal
    >>> table = pl.DataFrame({"lat": [-18.1, -18.1, 51.4, 51.4], "lon": [179.9, -179.9, -2.3, -2.5]})
    >>> release = shoal.mask(table, 2, columns=["lat", "lon"], kinds={("lat", "lon"): shoal.Place()})
    >>> release.data["lon"].to_list()
    [180.0, 180.0, -2.4, -2.4]
    """

    latitude: Name = None
    longitude: Name = None
    word = "place"
    holds = "places"
    represented_by = "the centroid"

    @property
    def columns(self) -> tuple[Name, ...]:
        """The latitude and longitude columns."""
        return (self.latitude, self.longitude)

    @classmethod
    def recognise_together(cls, cells: Mapping[Name, Cells]) -> dict[Name, Kind]:
        """Return the kind of two columns of degrees that are named latitude and longitude, if the pair is unique."""
        pair = [
            [name for name, column in cells.items() if str(name).lower() in names and _are_degrees(column, end)]
            for names, end in zip(NAMES, ENDS, strict=True)
        ]
        if [len(names) for names in pair] != [1, 1]:
            return {}
        place = cls(pair[0][0], pair[1][0])
        return dict.fromkeys(place.columns, place)

    @classmethod
    def from_plain(cls, plain: Any) -> Place | None:
        """Return the kind from a mapping that names both columns, or from the class itself."""
        if isinstance(plain, (str, type)):
            return cls() if plain in (cls, cls.word) else None
        return cls(**plain) if isinstance(plain, Mapping) and set(plain) == {"latitude", "longitude"} else None

    @classmethod
    def is_plain(cls, plain: Any) -> bool:
        """Return True for a mapping that names both columns."""
        names = ("latitude", "longitude")
        return type(plain) is dict and set(plain) == {*names} and all(type(plain[name]) in (str, int) for name in names)

    def plain(self) -> dict[str, Any]:
        """Return a mapping that names both columns."""
        return {"latitude": self.latitude, "longitude": self.longitude}

    @classmethod
    def option_key(cls, name: str) -> Any:
        """Return both columns from comma-separated text."""
        return tuple(name.split(","))

    def to_option(self, name: Name, file: str | None = None) -> str | None:
        """Return LAT,LON for the latitude column; None for the longitude column."""
        return f"{self.latitude},{self.longitude}" if name == self.latitude else None

    def assigned(self, key: Any) -> Mapping[Name, Kind]:
        """Return the kind of both columns."""
        if isinstance(key, tuple) and len(key) == 2 and key[0] != key[1] and self.columns in ((None, None), key):
            return dict.fromkeys(key, Place(*key))
        if None not in self.columns and key in self.columns:
            return {key: self}
        raise InputError(
            "Kind Place must name a column of latitudes and another of longitudes, such as "
            f"{{('lat', 'lon'): shoal.Place()}} (--place lat,lon), got {key!r}."
        )

    def read(self, name: Name, cells: Mapping[Name, Any], first: int, scale: Scale | None) -> tuple[Column, list[Any]]:
        """Return the degrees of a part; refuse a place with only one of its two cells."""
        degrees = [cells[column].values for column in self.columns]
        half = np.isnan(degrees[0]) != np.isnan(degrees[1])
        if half.any():
            raise InputError(
                f"Columns {self.latitude!r} and {self.longitude!r} are places, but record {first + half.argmax() + 1} "
                "has only one of them. Fill in the other, or make both missing."
            )
        axis = self.columns.index(name)
        far = np.abs(degrees[axis]) > ENDS[axis]
        if far.any():
            raise InputError(
                f"Column {name!r} must contain {('latitudes', 'longitudes')[axis]} within ±{ENDS[axis]:g} degrees, but "
                f"record {first + far.argmax() + 1} holds {degrees[axis][far.argmax()]:g}. Correct it, or check the "
                "order of both columns."
            )
        return Column(name, degrees[axis], self.word), []

    def observe(self, X: Floats, j: int, names: Sequence[Name], values: Sequence[Any]) -> tuple[int, ...]:
        """Return the number of places and the sums of their coordinates, in whole steps."""
        points = unit_vectors(X[:, self._pair(names)])
        points = points[~np.isnan(points[:, 0])] * STEPS
        coarse = np.rint(points)
        fine = np.rint((points - coarse) * STEPS)
        sums = zip(coarse.sum(axis=0, dtype=np.int64).tolist(), fine.sum(axis=0, dtype=np.int64).tolist(), strict=True)
        return (len(points), *(low + high * STEPS for high, low in sums))

    def fit(self, name: Name, names: Sequence[Name], parts: Sequence[Any]) -> tuple[Coding, list[Floats | None]]:
        """Return the coding of a column, with the mean of all places, the axes at the mean, and the spread."""
        n, *sums = (sum(counts) for counts in zip(*parts, strict=True))
        whole = STEPS**2 * max(n, 1)
        mean = np.array([total / whole for total in sums])
        # Use whole numbers, because all digits of the mean matter for places that are close together.
        variance = (whole**2 - sum(total**2 for total in sums)) / whole**2 if n else 0.0
        spread = np.sqrt(variance / 2) if variance > LEAST else 1.0
        axes = frame_at(mean)
        axis = self.columns.index(name)
        coding = PlaceCoding(self._pair(names), axis, mean, axes[1:] if axis else axes[:1], float(spread))
        return coding, [None] * len(parts)

    def _pair(self, names: Sequence[Name]) -> list[int]:
        return [list(names).index(name) for name in self.columns]


@dataclass(frozen=True, eq=False)
class PlaceCoding(Coding):
    """The coding of one column of a place."""

    pair: list[int]  # the indices of the latitude and longitude columns
    axis: int  # 0 for the latitude column, 1 for the longitude column
    mean: Floats  # the mean of all places, as points on the unit sphere
    axes: Floats  # the axes of the coordinates
    spread: float  # the unit of the coordinates
    standardised: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return len(self.axes)

    def place(self, X: Floats, j: int, Z: Floats) -> Floats:
        """Return the coordinates of places."""
        coordinates: Floats = (unit_vectors(X[:, self.pair]) - self.mean) @ self.axes.T / self.spread
        return coordinates

    def represent(self, X: Floats, j: int, labels: Ints, means: Floats, weights: Floats | None) -> Floats:
        """Return the latitude or the longitude of the centroid of each group."""
        x, y, z = centroids(unit_vectors(X[:, self.pair]), labels, weights).T
        angle = np.arctan2(y, x) if self.axis else np.arctan2(z, np.hypot(x, y))
        degrees = np.degrees(angle).round(DECIMALS) + 0.0
        return np.where(degrees == -ENDS[1], ENDS[1], degrees)

    def continuous(self, x: Floats) -> Floats:
        """Return longitudes within half a turn of the mean, continuing across the antimeridian."""
        if not self.axis:
            return x
        middle = float(np.degrees(np.arctan2(self.mean[1], self.mean[0])))
        return middle + (x - middle + ENDS[1]) % (2 * ENDS[1]) - ENDS[1]

    def measure(self, X: Floats, released: Floats) -> Ints:
        """Return a histogram of displacements on a logarithmic scale, only for the latitude column."""
        if self.axis:
            return super().measure(X, released)
        metres = distances(X[:, self.pair], released[:, self.pair])
        metres = metres[~np.isnan(metres)]
        bins = np.floor(PER_DECADE * np.log10(np.maximum(1000 * metres, 1))).astype(np.int64)
        return np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)

    def note(self, names: Sequence[Name], counts: Ints) -> str | None:
        """Return a note on the median and 95 % quantile of displacements, which are withheld for few records."""
        if self.axis:
            return None
        latitude, longitude = (names[place] for place in self.pair)
        if counts.sum() < FEWEST:
            return f"places of {latitude}, {longitude} are too few to report their displacement"
        median, upper = (_quantile(counts, share) for share in (0.5, 0.95))
        return f"places of {latitude}, {longitude} were displaced by {median} (median); 95 % by at most {upper}"


def unit_vectors(degrees: Floats) -> Floats:
    """Return latitudes and longitudes as points on the unit sphere.

    Examples
    --------
    >>> unit_vectors(np.array([[0.0, 0.0], [90.0, 7.0]])).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    latitude, longitude = np.radians(degrees).T
    around = np.cos(latitude)
    return np.column_stack([around * np.cos(longitude), around * np.sin(longitude), np.sin(latitude)])


def frame_at(mean: Floats) -> Floats:
    """Return the axes north, east and up at a point, one per row; the sphere's centre has the axes of 0° N, 0° E."""
    length, around = float(np.linalg.norm(mean)), float(np.hypot(*mean[:2]))
    up = mean / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    # At a pole, north and east are arbitrary.
    east = np.array([-mean[1], mean[0], 0.0]) / around if around > 1e-12 else np.array([0.0, 1.0, 0.0])
    if length <= 1e-6:
        east = np.array([0.0, 1.0, 0.0])
    return np.vstack([np.cross(up, east), east, up])


def distances(starts: Floats, ends: Floats) -> Floats:
    """Return the distances over ground, in metres, between places given in degrees.

    Examples
    --------
    >>> distances(np.array([[0.0, 179.5]]), np.array([[0.0, -179.5]])).round().tolist()
    [111195.0]
    """
    chords = np.linalg.norm(unit_vectors(starts) - unit_vectors(ends), axis=1)
    metres: Floats = 2 * RADIUS * np.arcsin(np.minimum(chords / 2, 1.0))
    return metres


def _quantile(counts: Ints, share: float) -> str:
    """Return a quantile of displacements as text, with two digits: the upper bound of its bin."""
    place = int(np.searchsorted(np.cumsum(counts), share * counts.sum()))
    metres = float(f"{10 ** ((place + 1) / PER_DECADE) / 1000:.2g}")
    if metres < 0.01:
        return "less than 1 cm"
    return f"{metres / 1000:,g} km" if metres >= 10_000 else f"{metres:,g} m"


def _are_degrees(cells: Cells, end: float) -> bool:
    numbers = cells.numbers
    return len(numbers) > 0 and bool((np.abs(numbers) <= end).all())
