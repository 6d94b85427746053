"""Strata with fewer than k records or units, and rare patterns of missing cells: left out, or joined to others.

A stratum below k is joined to the nearest of those that share most of the first columns of `by`, the smallest first. A
rare pattern within a stratum is joined to another, or to some records of another; all of them then miss what either
misses. What makes fewer cells missing is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter, ne
from typing import Any, NamedTuple

import numpy as np

from shoal.core.measures import Scaling
from shoal.core.messages import agreeing, count, holders, listed, setting
from shoal.core.types import Floats, Ints
from shoal.engines.records import Arrays, Records
from shoal.kinds.kind import Embedding
from shoal.kinds.nominal import Nominal
from shoal.masking.cells import (
    Cell,
    Donation,
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
from shoal.tables.number_text import Dialect

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
    joined = [join_patterns(holder_set, request.k, whole=columns.unit is not None) for holder_set in patterns]
    becomes = [joined[groups[i]].becomes[cell.missing] for i, cell in zip(where.tolist(), cells, strict=True)]
    blanked = int(sizes @ [sum(new) - sum(cell.missing) for new, cell in zip(becomes, cells, strict=True)])
    donations, donated = _donations(parts, roots, cells, [joined[groups[i]] for i in where.tolist()], becomes)
    blanked += donated
    numbered = [
        pair
        for part, numbers in zip(parts, roots, strict=True)
        for pair in zip(part.cells, numbers.tolist(), strict=True)
    ]
    differ = zip(*(map(ne, *pair) for pair in zip(names, strata, strict=True)), strict=True)
    return Moves(
        {cell: becomes[number] for cell, number in numbered},
        donations,
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


class JoinedPatterns(NamedTuple):
    """What becomes of the patterns of missing values of a stratum."""

    becomes: dict[Pattern, Pattern]  # by pattern: what its records miss then
    donations: dict[Pattern, list[Donation]]  # by pattern: records that miss something else

    def blanked(self, patterns: Mapping[Pattern, Held]) -> int:
        """Return the number of cells that are made missing."""
        joined = sum(held.records * (sum(self.becomes[p]) - sum(p)) for p, held in patterns.items())
        return joined + sum(
            made.records * (sum(made.missing) - sum(self.becomes[p]))
            for p, sent in self.donations.items()
            for made in sent
        )


def join_patterns(patterns: Mapping[Pattern, Held], k: int, *, whole: bool = False) -> JoinedPatterns:
    """Return the pattern that the records of each get, such that every one has k records, or units.

    The rarest is joined to all records of another pattern, or to as many of them as it needs if that pattern keeps k;
    `whole` allows only the former. The fewest cells are made missing; of several patterns the rarer is chosen.

    Examples
    --------
    >>> a, b, both, none = (True, False), (False, True), (True, True), (False, False)
    >>> sizes = {none: "abcdefghi", a: "jk", both: "lmno", b: "pqr"}
    >>> held = {pattern: Held(len(holders), frozenset(holders)) for pattern, holders in sizes.items()}
    >>> join_patterns(held, 3, whole=True).becomes[a]
    (True, True)
    >>> join_patterns(held, 3).donations
    {(False, False): [Donation(records=1, missing=(True, False))]}
    """
    ways = [_join_patterns(patterns, k, whole=True), *([] if whole else [_join_patterns(patterns, k, whole=False)])]
    return min(ways, key=lambda joined: joined.blanked(patterns))


def _join_patterns(patterns: Mapping[Pattern, Held], k: int, *, whole: bool) -> JoinedPatterns:
    """Join the rarest pattern to the one that costs least, until all have k; cheap steps may cost most in the end."""
    remaining, becomes = dict(patterns), {pattern: pattern for pattern in patterns}
    donations: dict[Pattern, list[Donation]] = {}
    untouched = set() if whole else set(patterns)  # patterns whose records are those of the table

    def size(pattern: Pattern) -> int:
        return len(remaining[pattern].holders) if whole else remaining[pattern].records

    while len(remaining) > 1 and size(rare := min(remaining, key=size)) < k:
        options = [
            _option(remaining, rare, partner, records)
            for partner in remaining
            if partner != rare
            for records in _donors(remaining[rare], remaining[partner], k, whole=partner not in untouched)
        ]
        best = min(options, key=lambda option: (option.cost, remaining[option.partner].records))
        donors, changed = remaining.pop(best.partner), {rare}
        if best.records < donors.records:
            remaining[best.partner] = donors._replace(records=donors.records - best.records)
            donors = Held(best.records, frozenset())  # no holders are counted where records are donated
            donations.setdefault(best.partner, []).append(Donation(best.records, best.union))
        else:
            changed.add(best.partner)
        becomes = {pattern: best.union if now in changed else now for pattern, now in becomes.items()}
        donations = {
            source: [made._replace(missing=best.union) if made.missing in changed else made for made in sent]
            for source, sent in donations.items()
        }
        untouched -= {*changed, best.union}
        remaining[best.union] = remaining.pop(rare).plus(donors).plus(remaining.get(best.union, NOBODY))
    return JoinedPatterns(becomes, donations)


class _Option(NamedTuple):
    """A way to join a rare pattern."""

    cost: int  # cells that are made missing
    partner: Pattern
    records: int  # of the partner
    union: Pattern


def _option(remaining: Mapping[Pattern, Held], rare: Pattern, partner: Pattern, records: int) -> _Option:
    union = tuple(a or b for a, b in zip(rare, partner, strict=True))
    cost = remaining[rare].records * (sum(union) - sum(rare)) + records * (sum(union) - sum(partner))
    return _Option(cost, partner, records, union)


def _donors(rare: Held, partner: Held, k: int, *, whole: bool) -> list[int]:
    """Return how many records of a partner may join a rare pattern: all, or those that it needs if k stay."""
    needed = k - rare.records
    return [partner.records] if whole or partner.records - needed < k else [partner.records, needed]


def _donations(
    parts: Sequence[PartStatistics],
    roots: Sequence[Ints],
    cells: Sequence[Cell],
    joined: Sequence[JoinedPatterns],
    becomes: Sequence[Pattern],
) -> tuple[dict[tuple[int, Cell], list[Donation]], int]:
    """Return which records of each part miss more columns, the first ones of their cell, and how many cells that makes.

    `joined` and `becomes` are those of each cell. Cells give in the order in which the table spells them first, so that
    its division into parts decides nothing.
    """
    left = {(id(patterns), missing): list(made) for patterns in joined for missing, made in patterns.donations.items()}
    donations: dict[tuple[int, Cell], list[Donation]] = {}
    blanked, order = 0, {cell: i for i, cell in enumerate(number_cells([part.cells for part in parts])[1])}
    firsts = accumulate((part.rows for part in parts), initial=0)
    held = [
        (order[cell], first, cell, number, records)
        for first, part, numbers in zip(firsts, parts, roots, strict=False)
        for cell, number, records in zip(part.cells, numbers.tolist(), part.counts.tolist(), strict=True)
    ]
    for _, first, cell, number, records in sorted(held, key=itemgetter(0, 1)):
        missing, available = cells[number].missing, records
        waiting = left.get((id(joined[number]), missing), [])
        while available and waiting:
            take = min(available, waiting[0].records)
            donations.setdefault((first, cell), []).append(Donation(take, waiting[0].missing))
            blanked += take * (sum(waiting[0].missing) - sum(becomes[number]))
            available -= take
            waiting[0] = waiting[0]._replace(records=waiting[0].records - take)
            if not waiting[0].records:
                waiting.pop(0)
    return donations, blanked


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


def _notes(columns: Columns, groups: Sequence[int], joined: Sequence[JoinedPatterns], blanked: int) -> list[str]:
    """Say what was joined."""
    notes, counted = [], holders(columns.unit)
    sizes = [size for size in Counter(groups).values() if size > 1]
    if sizes:
        notes.append(
            f"{sum(sizes):,} strata of {listed(columns.by)} were joined into {len(sizes):,} of at least k {counted} "
            f"({setting('small', 'merge')})"
        )
    if blanked:
        notes.append(
            f"{count(blanked, 'cell')} {agreeing(blanked, 'was', 'were')} made missing, so that at least k {counted} "
            f"of a stratum miss the same columns ({setting('small', 'merge')}); each counts in the loss with all its "
            "squared deviation"
        )
    return notes
