"""Strata with fewer than k records or units, and rare patterns of missing cells: left out, or joined to others.

A stratum below k is joined to the nearest of those that share most of the first columns of `by`, the smallest first. A
rare pattern within a stratum is joined to another; its records then miss what either misses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from typing import Any, NamedTuple

import numpy as np

from shoal.core.measures import Scaling
from shoal.core.messages import count, holders, listed, setting
from shoal.core.types import Floats, Ints
from shoal.engines.records import Arrays, Records
from shoal.kinds.kind import Embedding
from shoal.kinds.nominal import Nominal
from shoal.masking.cells import (
    Cell,
    Joined,
    Moves,
    Own,
    PartStatistics,
    count_cells,
    holders_of,
    number_cells,
    sizes_of,
    spell_strata,
)
from shoal.masking.plan import check_records, code_values, merged_limits
from shoal.masking.request import MaskRequest
from shoal.masking.roles import Columns
from shoal.masking.steps import number_of_cells, numbers_of
from shoal.tables.csv_table import Dialect

__all__ = ["Held", "cell_sums", "join_patterns", "join_small", "join_strata", "small_cells"]

Stratum = tuple[object, ...]
Pattern = tuple[bool, ...]
DIGITS = 9  # of distances: sums of other parts differ in the last digits, and must not decide


def small_cells(
    request: MaskRequest, columns: Columns, parts: Sequence[PartStatistics], dialect: Dialect | None
) -> frozenset[Cell]:
    """Return the cells with fewer than k records, as the parts spell them."""
    roots, numbered = number_cells(spell_strata(columns, [part.cells for part in parts], dialect)[0])
    sizes = count_cells(request, parts, roots, len(numbered))
    return frozenset(
        cell
        for part, numbers in zip(parts, roots, strict=True)
        for cell, number in zip(part.cells, numbers.tolist(), strict=True)
        if sizes[number] < request.k
    )


@dataclass(frozen=True)
class Sums:
    """Of each cell or stratum, the number and the sum of the coordinates of its records; and the squares of all."""

    counts: Ints
    sums: Floats
    squares: Floats

    def plus(self, other: Sums) -> Sums:
        """Return the sums of both."""
        return Sums(self.counts + other.counts, self.sums + other.sums, self.squares + other.squares)


class Held(NamedTuple):
    """How many records a pattern has, and whom k counts among them."""

    records: int
    holders: frozenset[object]

    def plus(self, other: Held) -> Held:
        """Return both together."""
        return Held(self.records + other.records, self.holders | other.holders)


NOBODY = Held(0, frozenset())


def cell_sums(part: int, arrays: Arrays, own: Own, embedding: Embedding, scale: Scaling, cells: int) -> Sums:
    """Sum the coordinates of the records of each cell of a part."""
    Z = embedding.apply(numbers_of(arrays, own), scale)
    cell, seen = number_of_cells(arrays, own), ~np.isnan(Z)
    Z = np.where(seen, Z, 0.0)
    counts, sums = np.zeros((cells, Z.shape[1]), dtype=np.int64), np.zeros((cells, Z.shape[1]))
    np.add.at(counts, cell, seen)
    np.add.at(sums, cell, Z)
    return Sums(counts, sums, np.square(Z).sum(axis=0))


def join_small(
    records: Records, request: MaskRequest, columns: Columns, parts: Sequence[PartStatistics]
) -> Moves | None:
    """Return how small strata and rare patterns are joined; None if there are none."""
    check_records(request, columns, parts)
    spelled, changed = spell_strata(columns, [part.cells for part in parts], records.dialect)
    roots, cells = number_cells(spelled)
    sizes = sizes_of(parts, roots, len(cells))
    holders = holders_of(request, parts, roots, sizes)
    if all(len(holder_set) >= request.k for holder_set in holders):
        return None
    strata = list(dict.fromkeys(cell.stratum for cell in cells))
    place = {stratum: i for i, stratum in enumerate(strata)}
    where = np.array([place[cell.stratum] for cell in cells])
    together = [frozenset[object]() for _ in strata]
    for i, holder_set in zip(where.tolist(), holders, strict=True):
        together[i] |= holder_set
    groups = join_strata(strata, together, *_coordinates(records, columns, parts, roots, where), request.k)
    names = _names(request, columns, strata, groups)
    patterns: list[dict[Pattern, Held]] = [{} for _ in strata]
    for i, cell, size, holder_set in zip(where.tolist(), cells, sizes.tolist(), holders, strict=True):
        pattern_sizes = patterns[groups[i]]
        pattern_sizes[cell.missing] = pattern_sizes.get(cell.missing, NOBODY).plus(Held(size, holder_set))
    joined = [join_patterns(holder_set, request.k) for holder_set in patterns]
    becomes = [joined[groups[i]][cell.missing] for i, cell in zip(where.tolist(), cells, strict=True)]
    blanked = int(sizes @ [sum(new) - sum(cell.missing) for new, cell in zip(becomes, cells, strict=True)])
    numbered = [
        pair
        for part, numbers in zip(parts, roots, strict=True)
        for pair in zip(part.cells, numbers.tolist(), strict=True)
    ]
    differ = zip(*(map(ne, *pair) for pair in zip(names, strata, strict=True)), strict=True)
    return Moves(
        {cell: becomes[number] for cell, number in numbered},
        Joined(
            {cell.stratum: names[where[number]] for cell, number in numbered},
            frozenset(name for name, holder_set in zip(columns.by, differ, strict=True) if any(holder_set)),
            changed,
        ),
        blanked,
        tuple(_notes(columns, groups, joined, blanked)),
    )


def _coordinates(
    records: Records, columns: Columns, parts: Sequence[PartStatistics], roots: Sequence[Ints], where: Ints
) -> tuple[Ints, Floats]:
    """Return, of each stratum and coordinate, how many records do not miss it, and their sum in standardised columns.

    `roots` are the numbers of the cells of each part, `where` is the stratum of each cell.
    """
    codings, codes = code_values(columns, parts)
    embedding = Embedding(codings)
    own = [Own(*numbering) for numbering in zip(roots, codes, strict=True)]
    scale = _within(merged_limits(parts, codings))
    sums = records.reduce(cell_sums, Sums.plus, embedding, scale, len(where), own=own)
    return _totals(where, sums.counts), _standard(where, sums, embedding)


def _within(limits: Floats) -> Scaling:
    """Return what brings every column between 0 and 1, so that sums of parts cost no digits."""
    low, high = (np.where(np.isfinite(row), row, 0.0) for row in limits)
    reach = high / 2 - low / 2
    return Scaling(low, np.where(reach > 0, reach, 1.0), np.zeros(len(low)), np.ones(len(low)))


def _totals(where: Ints, values: Any) -> Any:
    """Add up what is known of cells, by stratum."""
    totals = np.zeros((int(where.max()) + 1, *values.shape[1:]), dtype=values.dtype)
    np.add.at(totals, where, values)
    return totals


def _standard(where: Ints, sums: Sums, embedding: Embedding) -> Floats:
    """Return the sums of each stratum in standardised columns; categories are standardised already."""
    counts = np.maximum(sums.counts.sum(axis=0), 1)
    mean = sums.sums.sum(axis=0) / counts
    spread = np.sqrt(np.maximum(sums.squares / counts - np.square(mean), 0.0))
    numbers = np.zeros(len(mean), dtype=np.bool_)
    numbers[embedding.starts] = [coding.standardised for coding in embedding.codings]
    centre, factor = np.where(numbers, mean, 0.0), np.where(numbers & (spread > 0), spread, 1.0)
    standard: Floats = (_totals(where, sums.sums) - _totals(where, sums.counts) * centre) / factor
    return standard


def join_strata(
    strata: Sequence[Stratum], holders: Sequence[frozenset[object]], counts: Ints, sums: Floats, k: int
) -> list[int]:
    """Return the stratum that each is joined to, its own number if it is the first of them; each then has k holders.

    Of each coordinate of a stratum, `counts` and `sums` hold the number of records that do not miss it, and their sum.
    Distances are means over the coordinates that both know.

    Examples
    --------
    >>> strata = [("north",), ("south",), ("east",)]
    >>> holders = [frozenset("abcde"), frozenset("f"), frozenset("ghijk")]
    >>> join_strata(strata, holders, np.array([[5], [1], [5]]), np.array([[0.0], [9.0], [50.0]]), 2)
    [0, 1, 1]
    """
    joined_holders, counts, sums = list(holders), counts.copy(), sums.copy()
    sizes = np.array([len(holder_set) for holder_set in joined_holders])
    value_numbers: dict[object, int] = {}
    # The values that a joined stratum has in a column are a set; equal sets have equal numbers.
    values = [[frozenset([value]) for value in stratum] for stratum in strata]
    numbers = np.array(
        [[value_numbers.setdefault(value, len(value_numbers)) for value in row] for row in values], dtype=np.int64
    )
    numbers = numbers.reshape(len(strata), -1)
    alive, target = np.ones(len(strata), dtype=np.bool_), list(range(len(strata)))
    while alive.sum() > 1:
        smallest = int(np.argmin(np.where(alive, sizes, np.iinfo(np.int64).max)))
        if sizes[smallest] >= k:
            break
        shared = np.cumprod(numbers == numbers[smallest], axis=1).sum(axis=1)
        common = (counts > 0) & (counts[smallest] > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.where(common, np.square(sums / counts - sums[smallest] / counts[smallest]), 0.0).sum(axis=1)
            distances = np.where(common.any(axis=1), squares / common.sum(axis=1), np.inf).round(DIGITS)
        candidates = alive & (np.arange(len(strata)) != smallest)
        closest = np.flatnonzero(candidates & (shared == shared[candidates].max()))
        nearest = int(closest[np.argmin(distances[closest])])
        first, second = sorted((smallest, nearest))
        joined_holders[first] |= joined_holders[second]
        sizes[first] = len(joined_holders[first])
        counts[first] += counts[second]
        sums[first] += sums[second]
        values[first] = [a | b for a, b in zip(values[first], values[second], strict=True)]
        numbers[first] = [value_numbers.setdefault(value, len(value_numbers)) for value in values[first]]
        alive[second] = False
        target = [first if i == second else i for i in target]
    return target


def join_patterns(patterns: Mapping[Pattern, Held], k: int) -> dict[Pattern, Pattern]:
    """Return the pattern that the records of each get, such that every one has k records, or units.

    The rarest is joined to the one with which the fewest cells are made missing, of several to the rarer.

    Examples
    --------
    >>> a, b, both, none = (True, False), (False, True), (True, True), (False, False)
    >>> sizes = {none: "abcdefghi", a: "j", both: "klmn", b: "opq"}
    >>> join_patterns({pattern: Held(len(held), frozenset(held)) for pattern, held in sizes.items()}, 3)[a]
    (True, True)
    """
    remaining, becomes = dict(patterns), {pattern: pattern for pattern in patterns}
    while len(remaining) > 1:
        rare = min(remaining, key=lambda pattern: len(remaining[pattern].holders))
        if len(remaining[rare].holders) >= k:
            break
        union = {
            pattern_2: tuple(a or b for a, b in zip(rare, pattern_2, strict=True))
            for pattern_2 in remaining
            if pattern_2 != rare
        }

        def cost(pattern_2: Pattern, rare: Pattern = rare, union: Mapping[Pattern, Pattern] = union) -> int:
            return sum(remaining[part].records * (sum(union[pattern_2]) - sum(part)) for part in (rare, pattern_2))

        partner = min(union, key=lambda pattern_2: (cost(pattern_2), remaining[pattern_2].records))
        new, joined = union[partner], remaining.pop(rare).plus(remaining.pop(partner))
        remaining[new] = remaining.get(new, NOBODY).plus(joined)
        becomes = {pattern: new if now in (rare, partner) else now for pattern, now in becomes.items()}
    return becomes


def _names(request: MaskRequest, columns: Columns, strata: Sequence[Stratum], groups: Sequence[int]) -> list[Stratum]:
    """Return what each stratum reads in the release: the values of all that are joined, or their common ancestor."""
    names: list[Stratum] = list(strata)
    joined: dict[int, list[int]] = {}
    for i, group in enumerate(groups):
        joined.setdefault(group, []).append(i)
    for members in joined.values():
        together = tuple(
            _name(request, column, list(dict.fromkeys(strata[i][place] for i in members)))
            for place, column in enumerate(columns.by)
        )
        for i in members:
            names[i] = together
    return names


def _name(request: MaskRequest, column: object, values: Sequence[object]) -> object:
    kind = (request.kinds or {}).get(column, Nominal())
    return values[0] if len(values) == 1 else kind.joined_name(column, values)


def _notes(
    columns: Columns, groups: Sequence[int], joined: Sequence[Mapping[Pattern, Pattern]], blanked: int
) -> list[str]:
    """Say what was joined."""
    notes, counted = [], holders(columns.unit)
    sizes = [size for size in Counter(groups).values() if size > 1]
    if sizes:
        notes.append(
            f"{sum(sizes):,} strata of {listed(columns.by)} were joined into {len(sizes):,} of at least k {counted} "
            f"({setting('small', 'merge')})"
        )
    rare = [size for patterns in joined for size in Counter(patterns.values()).values() if size > 1]
    if rare:
        notes.append(
            f"{sum(rare):,} patterns of missing values were joined into {len(rare):,} of at least k {counted}, which "
            f"made {count(blanked, 'cell')} missing ({setting('small', 'merge')}); each counts in the loss with all "
            "its squared deviation"
        )
    return notes
