"""Joining or suppression of strata and missing-value patterns with fewer than k records or units.

Small strata are joined smallest first, each to the nearest stratum among those that agree with it in the most leading
columns of `by`. A rare pattern within a stratum is joined to another pattern, or to some records of that pattern. The
joined records then have missing values in the columns of both patterns. The way that makes fewer cells missing is used.
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
DIGITS = 9  # decimal places of distances; further digits depend on the division into parts


def small_cells(
    request: MaskRequest, columns: Columns, parts: Sequence[PartStatistics], dialect: Dialect | None
) -> frozenset[Cell]:
    """Return the cells with fewer than k records or units, as spelled in the parts."""
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
    """The counts and sums of the coordinates per cell or stratum, and the sums of squares of all records."""

    counts: Ints
    sums: Floats
    squares: Floats

    def plus(self, other: Sums) -> Sums:
        """Return the combined sums."""
        return Sums(self.counts + other.counts, self.sums + other.sums, self.squares + other.squares)


class Held(NamedTuple):
    """The records of a missing-value pattern: their number, and the holders that k counts among them."""

    records: int
    holders: frozenset[object]

    def plus(self, other: Held) -> Held:
        """Return the combined records and holders."""
        return Held(self.records + other.records, self.holders | other.holders)


NOBODY = Held(0, frozenset())


def cell_sums(part: int, arrays: Arrays, own: Own, embedding: Embedding, scale: Scaling, cells: int) -> Sums:
    """Sum the coordinates of the records in each cell of a part."""
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
    """Return the moves that join small strata and rare patterns; None if no move is needed."""
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
    """Return the counts and the standardised sums of present values, per stratum and coordinate.

    `roots` holds the numbers of the cells of each part, `where` the stratum of each cell.
    """
    codings, codes = code_values(columns, parts)
    embedding = Embedding(codings)
    own = [Own(*numbering) for numbering in zip(roots, codes, strict=True)]
    scale = _within(merged_limits(parts, codings))
    sums = records.reduce(cell_sums, Sums.plus, embedding, scale, len(where), own=own)
    return _totals(where, sums.counts), _standard(where, sums, embedding)


def _within(limits: Floats) -> Scaling:
    """Return a scaling of every column to the interval from 0 to 2, so that sums over parts lose no digits."""
    low, high = (np.where(np.isfinite(row), row, 0.0) for row in limits)
    reach = high / 2 - low / 2
    return Scaling(low, np.where(reach > 0, reach, 1.0), np.zeros(len(low)), np.ones(len(low)))


def _totals(where: Ints, values: Any) -> Any:
    """Add up the values of cells per stratum."""
    totals = np.zeros((int(where.max()) + 1, *values.shape[1:]), dtype=values.dtype)
    np.add.at(totals, where, values)
    return totals


def _standard(where: Ints, sums: Sums, embedding: Embedding) -> Floats:
    """Return the sums of the standardised columns per stratum; categories are already standardised."""
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
    """Join strata until each has k holders; return, per stratum, the index of the first stratum joined with it.

    `counts` and `sums` hold the number and the sum of the present values per stratum and coordinate. Distances are
    mean squares over the coordinates that have values in both strata.

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
    # The values of a joined stratum in a column form a set; equal sets have equal numbers.
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
    """The joined missing-value patterns of a stratum."""

    becomes: dict[Pattern, Pattern]  # per pattern: the new pattern of its records
    donations: dict[Pattern, list[Donation]]  # per pattern, the records that get another pattern

    def blanked(self, patterns: Mapping[Pattern, Held]) -> int:
        """Return the number of cells made missing."""
        joined = sum(held.records * (sum(self.becomes[p]) - sum(p)) for p, held in patterns.items())
        return joined + sum(
            made.records * (sum(made.missing) - sum(self.becomes[p]))
            for p, sent in self.donations.items()
            for made in sent
        )


def join_patterns(patterns: Mapping[Pattern, Held], k: int, *, whole: bool = False) -> JoinedPatterns:
    """Join missing-value patterns until every pattern has k records or units.

    The rarest pattern is joined to all records of another pattern, or only to as many as it needs if k of them remain.
    `whole` allows only the former. Each join makes as few cells missing as possible; ties go to the rarer pattern.

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
    """Join the rarest pattern to the cheapest other pattern until all have k; this greedy order may not be optimal."""
    remaining, becomes = dict(patterns), {pattern: pattern for pattern in patterns}
    donations: dict[Pattern, list[Donation]] = {}
    untouched = set() if whole else set(patterns)  # patterns that hold only their original records

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
            donors = Held(best.records, frozenset())  # donations count records, not holders
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
    """A candidate join of a rare pattern with a partner pattern."""

    cost: int  # cells made missing
    partner: Pattern
    records: int  # records taken from the partner
    union: Pattern


def _option(remaining: Mapping[Pattern, Held], rare: Pattern, partner: Pattern, records: int) -> _Option:
    union = tuple(a or b for a, b in zip(rare, partner, strict=True))
    cost = remaining[rare].records * (sum(union) - sum(rare)) + records * (sum(union) - sum(partner))
    return _Option(cost, partner, records, union)


def _donors(rare: Held, partner: Held, k: int, *, whole: bool) -> list[int]:
    """Return the possible numbers of records that join a rare pattern: all, or only those needed if k remain."""
    needed = k - rare.records
    return [partner.records] if whole or partner.records - needed < k else [partner.records, needed]


def _donations(
    parts: Sequence[PartStatistics],
    roots: Sequence[Ints],
    cells: Sequence[Cell],
    joined: Sequence[JoinedPatterns],
    becomes: Sequence[Pattern],
) -> tuple[dict[tuple[int, Cell], list[Donation]], int]:
    """Return the donations per part and cell, and the number of cells made missing.

    A cell donates its first records. `joined` and `becomes` hold one entry per cell. Cells donate in their order of
    appearance in the table, so that the result does not depend on the division into parts.
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
    """Return the released values of each stratum: the values of all joined strata, or their common ancestor."""
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
    """Return notes on joined strata and on cells made missing."""
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
            f"of a stratum have the same missing columns ({setting('small', 'merge')}); each adds its squared "
            "deviation from the mean to the loss"
        )
    return notes
