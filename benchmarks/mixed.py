"""Compare masking of numbers and categories with MDAV-generic: adult.csv with eight keys, k-anonymous over all of them.

Run ``python benchmarks/mixed.py [K …]``; it takes about ten minutes. The file is read from the folder in ``SHOAL_DATA``
(default ``../shared/data``). Losses are in percent. *Groups* and *released* use the embedding of shoal, for the groups
and for the released values (mean, median of the ordinal column, mode of the nominal ones). *Generic* is the loss of the
released values in the distance of MDAV-generic, implemented here as in the paper (J. Domingo-Ferrer and V. Torra 2005):
the sum of squares of numbers in standard deviations, of rank differences of ordinal values as a share of the largest,
and of 0 or 1 for nominal values. *As generic* are shoal's methods with the column weights of that distance.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from results import table

import shoal
from shoal.assessment.coded_records import CodedRecords
from shoal.core.measures import centroids, released_loss, standardise
from shoal.core.types import Floats, Ints
from shoal.kinds.category import group_medians, group_modes
from shoal.masking.memory import MemoryRecords
from shoal.masking.pipeline import prepare
from shoal.masking.request import MaskRequest
from shoal.tables.formats.frames import open_table

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
KEYS = ["age", "hours-per-week", "education-num", "marital-status", "occupation", "race", "sex", "native-country"]
NUMBERS, ORDINAL, NOMINAL = [0, 1], [2], [3, 4, 5, 6, 7]
EXACT = {"integers": "float", "decimals": "all"}
RUNS: list[dict[str, Any]] = [
    {"method": "mdav"},
    {"method": "mdav", "importance": "as generic"},
    {"method": "mdav", "refine": 50},
    {"method": "path"},
    {"method": "path", "importance": "as generic"},
    {"method": "path", "refine": 50},
    {"method": "path", "refine": 300},
    {"method": "search", "time_limit": 20},
]


def own_values(X: Floats) -> Floats:
    """Return records in the coordinates of MDAV-generic; codes of nominal columns stay codes."""
    values = X.copy()
    values[:, NUMBERS] = standardise(X[:, NUMBERS])
    values[:, ORDINAL] = X[:, ORDINAL] / X[:, ORDINAL].max(axis=0)
    return values


def importance_of(V: Floats) -> dict[str, float]:
    """Return the variance of each column in the generic distance: half the Gini index for nominal values."""
    variance = V.var(axis=0)
    for j in NOMINAL:
        variance[j] = (1 - np.square(np.bincount(V[:, j].astype(np.int64)) / len(V)).sum()) / 2
    return dict(zip(KEYS, variance.tolist(), strict=True))


def squares(V: Floats, point: Floats) -> Floats:
    """Return the squared distances to a point, or to the points of each record."""
    point = np.broadcast_to(point, V.shape)
    ordered = NUMBERS + ORDINAL
    found: Floats = np.square(V[:, ordered] - point[:, ordered]).sum(axis=1)
    return found + (V[:, NOMINAL] != point[:, NOMINAL]).sum(axis=1)


def average(V: Floats, labels: Ints) -> Floats:
    """Return mean, median or mode of each group."""
    centres = centroids(V, labels)
    for j in ORDINAL + NOMINAL:
        centres[:, j] = (group_medians if j in ORDINAL else group_modes)(V[:, j], labels)
    return centres


def middle(V: Floats) -> Floats:
    """Return the average record of a table: `average` for a single group, by counting."""
    point = V.mean(axis=0)
    for j in ORDINAL:
        point[j] = np.partition(V[:, j], (len(V) - 1) // 2)[(len(V) - 1) // 2]
    for j in NOMINAL:
        point[j] = np.bincount(V[:, j].astype(np.int64)).argmax()
    return point


def mdav_generic(V: Floats, k: int) -> Ints:
    """Group around the record farthest from the average one and the one farthest from it until few remain."""
    labels = np.zeros(len(V), dtype=np.int64)
    left, groups = np.arange(len(V)), 0

    def gather(distance: Floats) -> None:
        nonlocal left, groups
        bound = np.partition(distance, k - 1)[k - 1]
        near = np.flatnonzero(distance < bound)
        near = np.r_[near, np.flatnonzero(distance == bound)[: k - len(near)]]
        labels[left[near]] = groups
        left, groups = np.delete(left, near), groups + 1

    while len(left) >= 2 * k:
        both = len(left) >= 3 * k
        first = V[left[np.argmax(squares(V[left], middle(V[left])))]]
        distance = squares(V[left], first)
        second = V[left[np.argmax(distance)]]
        gather(distance)
        if both:
            gather(squares(V[left], second))
    labels[left] = groups
    return labels


def losses(numbers: CodedRecords, V: Floats, labels: Ints) -> list[float]:
    """Return the three losses of a partition."""
    X, Z = numbers.X, numbers.coordinates
    groups = released_loss(Z, centroids(Z, labels)[labels])[0]
    released = numbers.place(average(X, labels)[labels])
    own = squares(V, average(V, labels)[labels]).sum() / squares(V, middle(V)).sum()
    return [groups, released_loss(Z, released)[0], 100 * own]


def main(sizes: list[int]) -> None:
    frame = pl.read_csv(DATA / "adult.csv").select(KEYS)
    kinds = {"education-num": shoal.Ordinal(sorted(frame["education-num"].unique()))}
    records = MemoryRecords(open_table(frame))
    numbers = CodedRecords.of(records, prepare(records, MaskRequest(k=2, columns=KEYS, kinds=kinds)))
    V = own_values(numbers.X)
    title = "Adult, 8 keys: loss of the groups, of what is released, and in the distance of MDAV-generic"
    head = (
        "k | method | groups, % {:.2f} | released, % {:.2f} | generic, % {:.2f} | CPU time, s {:.1f} | smallest group"
    )
    with table("adult", title, head) as add:
        for k in sizes:
            start = process_time()
            labels = mdav_generic(V, k)
            seconds = process_time() - start
            add(k, "MDAV-generic", *losses(numbers, V, labels), seconds, np.bincount(labels).min())
            for options in RUNS:
                start = process_time()
                importance = {"importance": importance_of(V)} if "importance" in options else {}
                release = shoal.mask(frame, k, columns=KEYS, kinds=kinds, **EXACT, **options | importance)
                seconds = process_time() - start
                fewest = release.data.group_by(KEYS).len()["len"].min()
                name = ", ".join(f"{key}={part}" if isinstance(part, int) else part for key, part in options.items())
                add(k, name, *losses(numbers, V, release.labels), seconds, fewest)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [3, 5, 10])
