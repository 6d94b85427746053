"""The steps of a masking that run where the records are: plain functions of a part or a bucket.

read a part ─► (blocks) ─► deal it out ─► mask a bucket ─► release the part ─► count what was released
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from shoal.algorithms.registry import Outcome
from shoal.blocks.quantising import bounds
from shoal.blocks.running import group_blocks, group_cells
from shoal.core.errors import InputError
from shoal.core.measures import Scaling, canonical_labels, centroids, group_sizes, scaling, squared_errors
from shoal.core.progress import STOP, fresh_state
from shoal.core.types import Bools, Floats, Ints, State
from shoal.engines.records import KEPT, Arrays, Layout
from shoal.kernels.dealing import put_rows, sort_by_target
from shoal.kernels.words import Words, bucket_of_words, number_words, words_of
from shoal.masking.additivity import Rule, count_broken
from shoal.masking.aggregation import group_category, group_values
from shoal.masking.coding import Coding, Embedding
from shoal.masking.confidential import Chosen, Promise, Values, keep_promise, read_values
from shoal.masking.request import MaskRequest
from shoal.masking.rounding import Rounding
from shoal.masking.totals import whole_total
from shoal.models.units import count_units, least_units, record_counters
from shoal.tables.codes import Code, Codes
from shoal.tables.columns import FLOAT, Column, Kind, Name, NewColumn, Spelling, is_whole
from shoal.tables.csv_files import MISSING
from shoal.tables.frames import Table
from shoal.tables.kinds import Category, Date, Hierarchy, Nominal
from shoal.tables.times import Scale, Span

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks

__all__ = [
    "STAY",
    "Bucket",
    "Cell",
    "Columns",
    "Joined",
    "Moves",
    "Own",
    "Part",
    "Spellings",
    "cells_of",
    "confidential_codes",
    "count_records_of_units",
    "count_values",
    "deal_to_blocks",
    "deal_to_cells",
    "look",
    "look_at_times",
    "mask_bucket",
    "number_of_cells",
    "number_rows",
    "numbers_of",
    "read_part",
    "rehearse",
    "release_part",
    "released_values",
    "unit_words",
    "units_of_part",
]


class Cell(NamedTuple):
    """What the records of a cell have in common."""

    stratum: tuple[object, ...]
    missing: tuple[bool, ...]  # of each masked column
    zero: tuple[bool, ...] = ()  # of each column whose zeros are kept


class Columns(NamedTuple):
    """The columns that are looked at."""

    masked: tuple[Name, ...]
    by: tuple[Name, ...]
    weights: Name | None
    unit: Name | None  # the column that says whose records they are
    kinds: tuple[Category | Date | None, ...]  # of each masked column; None for numbers
    given: frozenset[Name]  # columns whose kind was named by the user
    released: tuple[Name, ...]  # all columns of the release, in order
    importance: tuple[float, ...] | None  # of each masked column, if not all count alike
    codes: Codes  # numbers and texts that stand for missing in masked columns
    scales: Mapping[Name, Scale]  # how dates, times and durations are counted, once all of them were seen
    zeros: tuple[Name, ...] = ()  # masked columns whose zeros are kept
    rules: tuple[Rule, ...] = ()  # sums of masked columns that are kept, in order
    totals: bool = False  # whether columns of whole numbers keep their totals
    confidential: tuple[Chosen, ...] = ()

    def compared(self, names: Sequence[Name]) -> list[Name]:
        """Return those of some masked columns that decide which records are alike."""
        counts = dict(zip(self.masked, self.importance or (1.0,) * len(self.masked), strict=True))
        return [name for name in names if counts[name] > 0]

    def layout(self) -> Layout:
        """Return the columns of the released table."""
        return Layout(
            list(self.released),
            # Categories are released in the type of their column, so that it is read once more.
            [name for name in self.released if name not in self.masked or name in self.categories],
            [name for name, kind in zip(self.masked, self.kinds, strict=True) if kind is None],
        )

    @property
    def nominal(self) -> list[Name]:
        """The masked columns whose values have no order."""
        return [n for n, kind in zip(self.masked, self.kinds, strict=True) if isinstance(kind, (Nominal, Hierarchy))]

    @property
    def timed(self) -> dict[Name, Date]:
        """The masked columns of dates, times and durations."""
        return {name: kind for name, kind in zip(self.masked, self.kinds, strict=True) if isinstance(kind, Date)}

    @property
    def words(self) -> dict[Name, str]:
        """What the masked columns hold that hold no numbers."""
        named = {name: kind.word for name, kind in zip(self.masked, self.kinds, strict=True) if kind is not None}
        return named | {name: scale.word for name, scale in self.scales.items()}

    @property
    def categories(self) -> frozenset[Name]:
        """The masked columns that hold no numbers."""
        return frozenset(name for name, kind in zip(self.masked, self.kinds, strict=True) if kind is not None)

    @property
    def zero_places(self) -> list[int]:
        """The places of the columns whose zeros are kept."""
        return [self.masked.index(name) for name in self.zeros]

    def read(self) -> list[Name]:
        """Return all of them."""
        apart = [name for name in (self.weights, self.unit) if name is not None]
        return list(dict.fromkeys([*self.masked, *self.by, *apart, *(column.name for column in self.confidential)]))


class Part(NamedTuple):
    """What is known of a part once its numbers are read."""

    rows: int
    kept: int  # records that are released
    incomplete: int  # records that miss a value
    suppressed: int  # records of small cells that are left out
    missing: Ints  # missing cells of each column
    present: Ints  # cells of each column that are released and not missing
    cells: list[Cell]  # by code
    counts: Ints  # records of each cell
    units: list[Words] | None  # of each cell: the least of its different units, k at most
    kinds: tuple[Kind | None, ...]  # of each column; None if all its cells are missing
    spellings: tuple[frozenset[Spelling], ...]  # of missing cells, by column
    limits: Floats  # the least and the greatest value of each column
    broken: tuple[tuple[int, int], ...]  # of each rule: the records that break it, and the number of the first
    totals: tuple[int, ...]  # of each column of whole numbers, if they are kept
    values: tuple[list[tuple[Any, int]], ...]  # of each column of categories: by code, with the number of records
    confidential: tuple[Values, ...]


class Own(NamedTuple):
    """What the cells and values of a part are in the whole table."""

    cells: Ints  # the number of each cell
    codes: tuple[Floats | None, ...]  # of each column of categories, the code of each value
    confidential: tuple[Ints, ...] = ()  # likewise of each confidential column


class Joined(NamedTuple):
    """Strata that are joined."""

    strata: Mapping[tuple[object, ...], tuple[object, ...]]  # as the parts spell them, and what they read then
    texts: frozenset[Name]  # columns of the strata in which some of them differ
    spelled: Mapping[Name, Mapping[Spelling, Spelling]]  # cells of the other columns that are spelled otherwise


class Moves(NamedTuple):
    """What becomes of cells with too few records."""

    patterns: Mapping[Cell, tuple[bool, ...] | None]  # the columns that their records miss then; None if left out
    joined: Joined | None = None
    blanked: int = 0  # cells of the table that are made missing
    notes: tuple[str, ...] = ()


STAY = Moves({})


class Bucket(NamedTuple):
    """What is known of a bucket once it is masked."""

    errors: Floats  # squared, of each standardised column
    totals: Floats
    rounding: Floats  # what rounding to integers added to the errors
    grouped: Floats  # errors of the partition itself, whatever is released for a group
    sizes: Ints  # how many groups there are of each size
    outcome: Outcome  # what the method said, without its labels
    decimals: Bools  # whether values that stand for whole numbers are not whole
    new_zeros: Ints  # of each column whose zeros are kept: zeros that stand for other values
    taken: Bools  # whether a released value is the number that stands for missing in the column


@dataclass(frozen=True)
class Spellings:
    """How cells are spelled in the release, where records must look alike."""

    missing: Mapping[Name, Spelling]  # of each masked column: what a missing cell reads
    strata: Mapping[Name, Mapping[Spelling, Spelling]]  # of columns of the strata: cells that are spelled otherwise
    codes: Mapping[Name, Code]  # of masked columns whose missing cells read a code: which
    joined: Joined | None = None

    def without(self, names: Collection[Name]) -> Spellings:
        """Return them with empty missing cells in some columns."""
        codes = {name: code for name, code in self.codes.items() if name not in names}
        return replace(self, missing={n: None if n in names else s for n, s in self.missing.items()}, codes=codes)


def look_at_times(
    table: Table, first: int, timed: Mapping[Name, Date], codes: Codes
) -> tuple[Arrays, dict[Name, Span]]:
    """Look at the dates, times and durations of a part: all parts together say how they are counted."""
    nothing = np.empty((table.rows, 0))
    return {"X": nothing}, {name: table.coded(codes).moments(name, kind, first)[1] for name, kind in timed.items()}


def read_part(
    table: Table, first: int, columns: Columns, missing: str, moves: Moves, weights: Floats | None, k: int
) -> tuple[Arrays, Part]:
    """Read the numbers of a part: X, the cell of each record, its weight and the records that are released.

    Records that miss a value are left out if the policy is to drop them. Those of small cells are moved.
    """
    read, values = _read_columns(table.coded(columns.codes), first, columns)
    X = np.column_stack([column.values for column in read])
    limits = bounds(X)
    for column, ends in zip(read, limits.T, strict=True):
        # Bounds of a column without any value are infinite too.
        if np.isinf(ends).any() and np.isinf(column.values).any():
            record = int(np.argmax(np.isinf(column.values)))
            raise InputError(
                f"Column {column.name!r} must be finite, but record {first + record + 1} holds "
                f"{column.values[record]}. Correct it, or make it missing and choose missing='drop' or 'group'."
            )
    # Column by column: most have no missing cell, and one is looked through faster than a row of all.
    missing_cells = [np.isnan(column.values) for column in read]
    total = np.array([np.count_nonzero(cells) for cells in missing_cells])
    incomplete: Bools = np.logical_or.reduce(missing_cells)
    holes = np.column_stack(missing_cells) if total.any() else np.zeros(X.shape, dtype=np.bool_)
    spellings = tuple(
        table.coded(columns.codes).spellings(column.name, holes[:, j]) if total[j] else frozenset[Spelling]()
        for j, column in enumerate(read)
    )
    broken = tuple(count_broken(rule, {column.name: column for column in read}, first) for rule in columns.rules)
    arrays: dict[str, Any] = {"X": X}
    if columns.weights is not None or weights is not None:
        arrays["weights"] = _read_weights(table, first, columns.weights, weights)
    if columns.unit is not None:
        arrays["unit"] = unit_words(table, columns.unit, first)
    dropped = incomplete if missing == "drop" else np.zeros(len(X), dtype=np.bool_)
    blank, suppressed = _moved(table, columns, X, holes, moves)
    suppressed &= ~dropped
    if moves.blanked:
        arrays["lost"] = np.where(blank, X, np.nan)
        X[blank], holes = np.nan, holes | blank
        limits = bounds(X)
    if dropped.any() or suppressed.any():
        arrays[KEPT] = kept = np.flatnonzero(~(dropped | suppressed))
        table = table.take(kept)
        arrays |= {name: array[kept] for name, array in arrays.items() if name != KEPT}
        X, holes = arrays["X"], holes[kept]
        limits = bounds(X)
    codes, cells = _cells(table, columns, X, holes)
    if moves.joined is not None:
        cells = [cell._replace(stratum=moves.joined.strata.get(cell.stratum, cell.stratum)) for cell in cells]
    counts = np.array([len(X)] if len(X) else [], dtype=np.int64)
    if codes is not None:
        arrays["codes"] = codes
        counts = np.bincount(codes, minlength=len(cells))
    confidential: tuple[Values, ...] = ()
    if columns.confidential:
        arrays["confidential"], confidential = read_values(table, columns.confidential, first)
    cell = np.zeros(len(X), dtype=np.int64) if codes is None else codes
    units = None if columns.unit is None else least_units(cell, arrays["unit"], k)
    kinds = tuple(column.kind for column in read)
    counted = tuple(count_values(X[:, j], found) for j, found in enumerate(values))
    return arrays, Part(
        rows=len(incomplete),
        kept=len(X),
        incomplete=int(incomplete.sum()),
        suppressed=int(suppressed.sum()),
        missing=total,
        present=len(X) - (np.count_nonzero(holes, axis=0) if total.any() else total),
        cells=cells,
        counts=counts,
        units=units,
        kinds=kinds,
        spellings=spellings,
        limits=limits,
        broken=broken,
        totals=tuple(map(whole_total, X.T)) if columns.totals else (),
        values=counted,
        confidential=confidential,
    )


def count_values(codes: Floats, values: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return values with the number of their records."""
    if not len(values):
        return []
    counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(values))
    return list(zip(values, counts.tolist(), strict=True))


def _read_columns(table: Table, first: int, columns: Columns) -> tuple[list[Column], list[list[Any]]]:
    """Return the masked columns as numbers: those of categories as codes, with the values by code."""
    read, values = list[Column](), list[list[Any]]()
    for name, kind in zip(columns.masked, columns.kinds, strict=True):
        if kind is None:
            read.append(table.column(name, first))
            values.append([])
            continue
        if isinstance(kind, Date):
            scale = columns.scales[name]
            read.append(Column(name, scale.numbers(table.moments(name, kind, first)[0]), scale.word))
            values.append([])
            continue
        cells = table.categories(name, given=name in columns.given, first=first)
        codes = (cells.rank("dense") - 1).cast(pl.Float64).fill_null(np.nan).to_numpy()
        read.append(Column(name, codes, "category"))
        values.append(cells.drop_nulls().unique().sort().to_list())
    return read, values


def _read_weights(table: Table, first: int, name: Name | None, given: Floats | None) -> Floats:
    values, what = given, "Parameter 'weights'"
    if values is None:
        values, what = table.column(name, first).values, f"Column {name!r}, the weights,"
    elif values.shape != (table.rows,):
        raise InputError(f"{what} must have one number a record ({table.rows}), got shape {values.shape}.")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        record = int(np.argmax(bad))
        raise InputError(f"{what} must be positive, but record {first + record + 1} holds {values[record]}.")
    return values


def unit_words(table: Table, name: Name, first: int = 0) -> Words:
    """Return a number for each record that is the same for records of a unit, however its cells are spelled."""
    text = table.cells([name])["0"].cast(pl.String).str.strip_chars()
    lacking = text.is_null() | text.is_in(MISSING)
    if lacking.any():
        record = first + int(lacking.arg_max() or 0) + 1
        raise InputError(
            f"Column {name!r} must say of every record whose it is, but record {record} misses it. Fill it in, or "
            "leave such records out before masking."
        )
    # 7, 07 and 7.0 are one unit.
    words: Words = text.str.replace(r"^\+?0*(\d+)(?:[.,]0*)?$", "$1").hash(seed=0).to_numpy()
    return words


def _cells(table: Table, columns: Columns, X: Floats, holes: Bools) -> tuple[Ints | None, list[Cell]]:
    """Number the combinations of stratum, missing and zero columns in order of appearance; None if all are alike."""
    by, complete, d = columns.by, not holes.any(), len(columns.masked)
    if complete and not by and not columns.zeros:
        return None, [Cell((), (False,) * d)] if len(holes) else []
    strata = table.cells(by).get_columns() if by else []
    misses = [pl.Series(f"misses {j}", column) for j, column in enumerate(holes.T)]
    zeros = [pl.Series(f"is zero in {j}", X[:, j] == 0) for j in columns.zero_places]
    codes, rows = number_rows(pl.DataFrame([*strata, *misses, *zeros]))
    first = len(by)
    return codes, [Cell(row[:first], row[first : first + d], row[first + d :]) for row in rows]


def _moved(table: Table, columns: Columns, X: Floats, holes: Bools, moves: Moves) -> tuple[Bools, Bools]:
    """Say which numbers are made missing, and which records are left out."""
    if not moves.patterns:
        return np.zeros_like(holes), np.zeros(len(holes), dtype=np.bool_)
    codes, cells = _cells(table, columns, X, holes)
    codes = np.zeros(len(holes), dtype=np.int64) if codes is None else codes
    found = [moves.patterns.get(cell, cell.missing) for cell in cells]
    out = np.array([pattern is None for pattern in found], dtype=np.bool_)
    wanted = np.array([pattern or cell.missing for pattern, cell in zip(found, cells, strict=True)], dtype=np.bool_)
    return wanted.reshape(-1, holes.shape[1])[codes] & ~holes, out[codes]


def number_rows(keys: pl.DataFrame) -> tuple[Ints, list[tuple[Any, ...]]]:
    """Number equal rows alike, in order of appearance; return the number of each row, and the rows by number."""
    unique = keys.unique(maintain_order=True).with_row_index("code")
    codes = keys.join(unique, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["code"]
    return codes.to_numpy().astype(np.int64), unique.drop("code").rows()


def number_of_cells(arrays: Arrays, own: Own) -> Ints:
    """Return the number of each record's cell in the whole table, from that of each code of the part."""
    if "codes" in arrays:
        return own.cells[arrays["codes"]]
    return np.full(len(arrays["X"]), own.cells[0] if len(own.cells) else 0)


def numbers_of(arrays: Arrays, own: Own, what: str = "X") -> Floats:
    """Return the numbers of a part, with the codes that its categories have in the whole table."""
    X = arrays[what]
    if all(codes is None for codes in own.codes):
        return X
    X = X.copy()
    for j, codes in enumerate(own.codes):
        if codes is not None and len(codes):
            seen = ~np.isnan(X[:, j])
            X[seen, j] = codes[X[seen, j].astype(np.int64)]
    return X


def look(part: int, arrays: Arrays, own: Own, function: Any, arguments: Sequence[Any]) -> Any:
    """Run a function of `shoal.blocks` on the numbers of a part."""
    return function(part, numbers_of(arrays, own), number_of_cells(arrays, own), *arguments)


def count_records_of_units(part: int, arrays: Arrays, own: Own) -> Ints:
    """Return counters of the records of each unit of a part."""
    return record_counters(arrays["unit"].reshape(-1))


def units_of_part(part: int, arrays: Arrays, own: Own) -> Words:
    """Return the unit of each record of a part."""
    units: Words = arrays["unit"]
    return units


def deal_to_cells(part: int, arrays: Arrays, own: Own) -> tuple[Ints, Arrays]:
    """Send all records to one bucket, every cell a block of its own."""
    block = number_of_cells(arrays, own)
    return np.zeros(len(block), dtype=np.int64), _sent(arrays, own, numbers_of(arrays, own), block)


def deal_to_blocks(
    part: int, arrays: Arrays, own: Own, blocks: Blocks, bucket: Ints, firsts: Ints
) -> tuple[Ints, Arrays]:
    """Send the records of a part to the buckets of their blocks; a bucket counts its blocks from 0."""
    from shoal.blocks.blocking import assign

    X = numbers_of(arrays, own)
    block = assign(part, X, number_of_cells(arrays, own), blocks)
    target = bucket[block]
    return target, _sent(arrays, own, X, block - firsts[target])


def _sent(arrays: Arrays, own: Own, X: Floats, block: Ints) -> Arrays:
    more = {name: arrays[name] for name in ("weights", "unit") if name in arrays}
    if "lost" in arrays:
        more["lost"] = numbers_of(arrays, own, "lost")
    return {"block": block, "X": X, **more, **confidential_codes(arrays, own.confidential)}


def confidential_codes(arrays: Arrays, numbers: Sequence[Ints]) -> Arrays:
    """Return the codes of confidential columns in the whole table, from those of the part."""
    if not numbers:
        return {}
    own = arrays["confidential"].reshape(-1, len(numbers))
    return {"confidential": np.column_stack([number[own[:, place]] for place, number in enumerate(numbers)])}


def mask_bucket(  # noqa: PLR0913  (what is known of the whole table, and where this runs)
    arrays: Arrays,
    state: State,
    request: MaskRequest,
    rounding: Rounding,
    embedding: Embedding,
    promise: Promise,
    scale: Scaling | None,
    records: int,
    parallel: int,
    threads: int,
) -> tuple[Arrays, Bucket]:
    """Mask the blocks of a bucket: group, aggregate, round; what was lost is measured on the released values.

    Without a scale, the bucket is the whole table and its blocks are whole cells.
    """
    whole = scale is None
    block = arrays["block"].reshape(-1).astype(np.int64, copy=False)
    # Records of a block lie side by side; whole cells are looked at where they are.
    order = np.arange(len(block)) if whole else sort_by_target(block, int(block.max(initial=0)) + 1)[0]
    X = arrays["X"] if whole else np.take(arrays["X"], order, axis=0)
    weights = arrays["weights"].reshape(-1)[order] if "weights" in arrays else None
    scale = scaling(X) if scale is None else scale
    Z = embedding.apply(X, scale)
    method = request.entry, request.k, request.options
    compared = embedding.compared(Z)
    if request.entry.confidential:
        outcome = Outcome(np.zeros(len(X), dtype=np.int64))
    elif whole:
        outcome = group_cells(compared, cells_of(compared, block), *method, request.seed, state)
    else:
        labels = group_blocks(
            compared, block[order], *method, records=records, seed=request.seed, state=state, workers=threads,
            parallel=parallel,
        )  # fmt: skip
        outcome = Outcome(labels, facts={"stopped": "by hand"} if state[STOP] else {})
    if request.refine:
        outcome = replace(outcome, labels=_refined(X, outcome.labels, block[order], request, embedding, scale, state))
    units = arrays["unit"].reshape(-1)[order] if "unit" in arrays else None
    if promise.models:
        codes = arrays["confidential"].reshape(len(X), -1)[order]
        cells = cells_of(compared, block[order])
        labels = keep_promise(
            compared, outcome.labels, cells, codes, units, promise, request, block=not whole, state=state
        )
        outcome = _regrouped(outcome, labels)
    elif units is not None:
        outcome = _regrouped(outcome, _with_units(outcome.labels, compared, block[order], units, request.k))
    labels = outcome.labels
    values, rounded = released_values(
        X, Z, labels, request.aggregate, weights, embedding.codings, rounding, block[order]
    )
    sizes = [group_sizes(column) for column in np.atleast_2d(labels.T)]
    errors, totals, added, grouped = _lost(Z, labels, values, rounded, request, rounding, embedding, scale)
    if "lost" in arrays:
        # A cell that was made missing has lost all that it deviates from the mean, whatever the groups are.
        blanked = embedding.lost(arrays["lost"], scale)
        errors, totals, grouped = errors + blanked, totals + blanked, grouped + blanked
        if outcome.bound is not None:
            outcome = replace(outcome, bound=outcome.bound + float(blanked.sum()))
    pairs = list(zip(rounding.kinds, rounded.T, strict=True))
    decimals = np.array([kind.whole and not is_whole(column) for kind, column in pairs])
    known = Bucket(
        errors,
        totals,
        added,
        grouped,
        np.bincount(np.concatenate(sizes)),
        replace(outcome, labels=labels[:0]),
        decimals,
        rounding.new_zeros(X, rounded),
        np.array([bool((column == kind.absent).any()) for kind, column in pairs]),
    )
    if whole:
        return {"released": rounded, "group": labels}, known
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    group = labels[back]
    return {"released": np.take(rounded, back, axis=0), "group": group, "size": sizes[0][group]}, known


def _refined(
    X: Floats, labels: Ints, block: Ints, request: MaskRequest, embedding: Embedding, scale: Scaling, state: State
) -> Ints:
    """Move records between the groups of a block, to lower the loss of what is released."""
    from shoal.masking.refining import refined

    cells, steps = cells_of(X, block), request.refine or 0
    return refined(X, labels, cells, request.k, embedding, scale, steps=steps, seed=request.seed, state=state)


def _regrouped(outcome: Outcome, labels: Ints) -> Outcome:
    """Return the outcome with other groups: what was proven of all partitions holds for them as a bound."""
    same = np.array_equal(labels, canonical_labels(outcome.labels))
    return replace(
        outcome, labels=labels, status="bounded" if outcome.status == "optimal" and not same else outcome.status
    )


def _with_units(labels: Ints, Z: Floats, block: Ints, units: Words, k: int) -> Ints:
    """Merge groups until each holds k units."""
    from shoal.models.merging import merge_groups

    def allowed(rows: Ints, labels: Ints) -> Bools:
        enough: Bools = count_units(labels, units[rows]) >= k
        return enough

    return merge_groups(Z, labels, cells_of(Z, block), allowed)


def _lost(
    Z: Floats,
    labels: Ints,
    values: Floats,
    rounded: Floats,
    request: MaskRequest,
    rounding: Rounding,
    embedding: Embedding,
    scale: Scaling,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, of each column: squared errors, their total, what rounding added, and those of the partition itself."""
    errors, totals = squared_errors(Z, embedding.apply(rounded, scale))
    plain = squared_errors(Z, embedding.apply(values, scale))[0] if rounding.changes else errors
    grouped = plain
    if labels.ndim == 1 and (request.aggregate != "mean" or request.weights is not None or not embedding.plain):
        grouped = squared_errors(Z, np.take(centroids(Z, labels), labels, axis=0))[0]
    by_column = embedding.by_column
    return by_column(errors), by_column(totals), by_column(errors - plain), by_column(grouped)


def cells_of(X: Floats, cell: Ints) -> list[tuple[Ints, Ints]]:
    """Return, of each cell, its records and the columns that they do not miss."""
    order, begins = sort_by_target(cell, int(cell.max(initial=0)) + 1)
    rows = np.split(order, begins[1:-1])
    return [(members, np.flatnonzero(~np.isnan(X[members[0]]))) for members in rows if len(members)]


def released_values(
    X: Floats,
    Z: Floats,
    labels: Ints,
    aggregate: str,
    weights: Floats | None,
    codings: Sequence[Coding | None],
    rounding: Rounding,
    block: Ints,
) -> tuple[Floats, Floats]:
    """Return the values of every record's group, and as they are released; a missing cell stays missing."""
    if labels.ndim == 2:
        columns = [
            released_values(
                X[:, [j]], Z[:, [j]], column, aggregate, weights, codings[j : j + 1], rounding.only(j), block
            )
            for j, column in enumerate(np.ascontiguousarray(labels.T))
        ]
        values, rounded = (np.column_stack(found) for found in zip(*columns, strict=True))
        return values, rounded
    # All records of a group miss the same cells, so a NaN stays in its own group and column.
    values = group_values(X, Z, labels, aggregate, weights)
    if aggregate != "medoid":
        for j, coding in enumerate(codings):
            if coding is not None:
                values[:, j] = group_category(X[:, j], labels, coding.release, coding.ancestors)
    return np.take(values, labels, axis=0), np.take(rounding.apply(values, X, labels, block), labels, axis=0)


def release_part(
    table: Table,
    answers: Arrays,
    columns: Columns,
    kinds: Sequence[Kind],
    codings: Sequence[Coding | None],
    spellings: Spellings,
    rounded: bool,
    shuffled: Ints | None,
) -> Table:
    """Return a part with the released values in their place; shuffled, its units are numbered anew."""
    if KEPT in answers:
        table = table.take(answers[KEPT])
    table = table.coded(columns.codes)
    new = {
        name: NewColumn(
            np.ascontiguousarray(answers["released"][:, j]),
            kind,
            rounded,
            spellings.missing[name],
            None if coding is None else coding.labels,
            columns.scales.get(name),
        )
        for j, (name, kind, coding) in enumerate(zip(columns.masked, kinds, codings, strict=True))
    }
    dropped = [name for name in table.names if name not in columns.released]
    released = table.released(new, spellings.strata)
    if spellings.joined is not None and spellings.joined.texts:
        released = released.relabelled(_joined_cells(table, columns.by, spellings.joined))
    released = released.without(dropped)
    if shuffled is None:
        return released
    released = released.take(shuffled)
    if columns.unit not in columns.released:
        return released
    numbers = canonical_labels(unit_words(released, columns.unit)).astype(np.float64) + 1.0
    return released.released({columns.unit: NewColumn(numbers, Kind("int64", whole=True), True, None, None)})


def _joined_cells(table: Table, by: Sequence[Name], joined: Joined) -> dict[Name, list[str | None]]:
    """Return the text of columns of joined strata."""
    codes, strata = number_rows(table.cells(by))
    names = [joined.strata.get(stratum, stratum) for stratum in strata]
    texts = [[None if value is None else str(value) for value in name] for name in names]
    return {
        name: [texts[code][place] for code in codes.tolist()] for place, name in enumerate(by) if name in joined.texts
    }


def rehearse(request: MaskRequest, d: int) -> bool:
    """Load all kernels on a small table, and say whether any had to be compiled: that takes memory for good."""
    from numba.core.event import install_recorder

    from shoal.blocks.blocking import InMemory, assign, extent_of, find_blocks
    from shoal.blocks.fusing import leaf_sums
    from shoal.blocks.rule import Blocking

    rows = 8 * request.k
    with install_recorder("numba:compile") as recorder:
        # A column of few values leaves leaves of equal records, and leaves below k to fuse.
        X = np.arange(rows * d, dtype=np.float64).reshape(rows, d) ** 2
        X[: rows // 2] = X[0]
        roots = np.zeros(rows, dtype=np.int64)
        blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(2 * request.k, request.k, "one"))
        block = assign(0, X, roots, blocks)
        leaf_sums(X, block, blocks.frame, len(blocks.sizes))
        # A user's function is called with the user's records only.
        if not request.entry.anytime and not request.entry.own:
            arrays = {"block": block, "X": X}
            if request.weights is not None:
                arrays["weights"] = np.ones(rows)
            if request.unit is not None:
                arrays["unit"] = np.arange(rows, dtype=np.uint64)
            stored, plain, none = Rounding((FLOAT,) * d), Embedding.of_numbers(d), Promise()
            if request.entry.confidential:
                request = replace(request, method="mdav", options={})
            answers, _ = mask_bucket(arrays, fresh_state(), request, stored, plain, none, blocks.scale, rows, 1, 1)
            put_rows(X, np.arange(rows, dtype=np.uint32), answers["released"])
            put_rows(np.zeros((rows, 1), dtype=np.int64), np.arange(rows, dtype=np.uint32), answers["group"][:, None])
        if request.confidential is not None:
            from shoal.models.keeping import rehearse_rules

            rehearse_rules()
        words = words_of(X)
        number_words(words)
        bucket_of_words(words, 2)
    return bool(recorder.buffer)
