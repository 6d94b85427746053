"""Random columns of all kinds: ordinary ones, and those that break programs."""

import datetime as dt
import string
from decimal import Decimal

import numpy as np
import pyarrow as pa

__all__ = ["draw_column", "draw_names", "some"]

NAMES = ["a", "b", "income", "age", "region", "person", "note", "Größe", "x y", "1", "count", "sum", "日本", "k", "x=y"]
ODD_NAMES = ["", "  ", 'a"b', "a,b", "a;b", "new\nline", "é" * 40, "__index_level_0__", "NaN", "-", "=1+1"]
BIG = 2**53


def some(rng, values):
    """Return a random element of some values."""
    return values[int(rng.integers(len(values)))]


def _floats(rng, n):
    scale = 10.0 ** float(rng.integers(-3, 7))
    return pa.array(rng.choice([0.0, 1e9, -5.0]) + scale * rng.normal(size=n))


def _money(rng, n):
    return pa.array(np.round(rng.lognormal(8, 2, n), 2))


def _few(rng, n):
    return pa.array(rng.integers(0, some(rng, [1, 2, 5]), n).astype(float))


def _zeros(rng, n):
    return pa.array(np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(size=n).round(1)))


def _huge(rng, n):
    return pa.array(rng.choice([1.7e308, -1.7e308, 1e300, 5e-324, 0.0, 1.0], n))


def _not_finite(rng, n):
    return pa.array(rng.choice([np.nan, np.inf, -np.inf, 1.0, 2.0, -0.0], n))


def _float32(rng, n):
    return pa.array(rng.normal(size=n).astype(np.float32))


def _integers(rng, n):
    kind = some(rng, ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
    info = np.iinfo(kind)
    wide = rng.random() < 0.3
    low, high = (int(info.min), int(info.max)) if wide else (0, 100)
    return pa.array(rng.integers(low, high, n, dtype=kind, endpoint=True))


def _big_integers(rng, n):
    near = some(rng, [BIG, 2**62, -(2**62)])
    return pa.array((near + rng.integers(0, 1000, n)).astype(np.int64))


def _decimals(rng, n):
    return pa.array([Decimal(int(v)) / 100 for v in rng.integers(0, 10**6, n)], pa.decimal128(12, 2))


def _booleans(rng, n):
    return pa.array(rng.random(n) < 0.4)


def _words(rng, n):
    return pa.array(rng.choice(["north", "south", "a or b", "", "NA", "né", "=1+1", "1", "1.0", "01"], n).tolist())


def _names(rng, n):
    return pa.array([f"person {i}" for i in rng.permutation(n)], pa.string())


def _long_text(rng, n):
    letters = string.ascii_letters + ' ,;"\n\t'
    lengths = rng.integers(0, some(rng, [5, 60]), n)
    return pa.array(["".join(rng.choice(list(letters), size)) for size in lengths], pa.string())


def _categories(rng, n):
    codes = pa.array(rng.integers(0, 3, n).astype(np.int8))
    return pa.DictionaryArray.from_arrays(codes, pa.array(["low", "middle", "high"]), ordered=bool(rng.random() < 0.5))


def _dates(rng, n):
    days = [dt.date(1900, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 60_000, n)]
    return pa.array(days, pa.date32())


def _datetimes(rng, n):
    unit, zone = some(rng, ["s", "ms", "us", "ns"]), some(rng, [None, "UTC", "Europe/Paris"])
    return pa.array(rng.integers(0, 10**9, n), pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit, tz=zone))


def _times(rng, n):
    return pa.array(rng.integers(0, 86_399 * 10**6, n), pa.time64("us"))


def _durations(rng, n):
    return pa.array(rng.integers(-(10**6), 10**6, n), pa.duration(some(rng, ["s", "ms", "us"])))


def _date_text(rng, n):
    return pa.array([f"{d:02d}.{m:02d}.20{y:02d}" for d, m, y in rng.integers(1, 13, (n, 3))], pa.string())


def _lists(rng, n):
    return pa.array([[int(v)] for v in rng.integers(0, 3, n)], pa.list_(pa.int64()))


def _records(rng, n):
    return pa.array([{"u": int(v)} for v in rng.integers(0, 3, n)], pa.struct([("u", pa.int64())]))


def _bytes(rng, n):
    return pa.array([bytes([int(v)]) for v in rng.integers(0, 255, n)], pa.binary())


def _nothing(rng, n):
    return pa.nulls(n, some(rng, [pa.null(), pa.float64(), pa.string()]))


def _persons(rng, n):
    return pa.array(rng.integers(0, max(1, n // 3), n))


KINDS = {
    function.__name__[1:]: function
    for function in (
        _floats, _money, _few, _zeros, _huge, _not_finite, _float32, _integers, _big_integers, _decimals, _booleans,
        _words, _names, _long_text, _categories, _dates, _datetimes, _times, _durations, _date_text, _lists, _records,
        _bytes, _nothing, _persons,
    )
}  # fmt: skip
ORDINARY = ("floats", "money", "integers", "few", "words", "persons")


def draw_column(rng, n):
    """Return the kind of a column and its cells, some of them missing."""
    kind = some(rng, ORDINARY) if rng.random() < 0.65 else some(rng, list(KINDS))
    cells = KINDS[kind](rng, n)
    if n and rng.random() < 0.2:
        absent = rng.random(n) < some(rng, [0.05, 0.5])
        cells = pa.compute.if_else(pa.array(absent), pa.scalar(None, cells.type), cells)
    return kind, cells


def draw_names(rng, count, *, plain):
    """Return the names of columns: mostly ordinary and different; `plain` ones are those that all formats allow."""
    pool = [*NAMES, *ODD_NAMES] if rng.random() < 0.15 else NAMES
    pool = [name for name in NAMES if name.isascii() and name.isalpha()] if plain else pool
    names = [str(name) for name in rng.permutation(pool)[:count]]
    if len(names) > 1 and not plain and rng.random() < 0.03:
        names[-1] = names[0]
    return names
