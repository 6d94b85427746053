"""The steps of a masking, as functions that run on one part of the table where its records are stored.

read a part ─► (blocks) ─► deal it out ─► mask a bucket ─► release the part ─► count what was released
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from shoal.core.checks import FARTHEST
from shoal.core.errors import InputError
from shoal.core.measures import bounds, canonical_labels
from shoal.core.messages import listed, parameter, setting
from shoal.core.types import Bools, Floats, Ints, Spelling
from shoal.engines.records import KEPT, Arrays
from shoal.kernels.words import Words
from shoal.kinds.column import Column, Storage, composed_cells
from shoal.kinds.kind import Coding, Kind, Rescalings, rescaled
from shoal.kinds.time_scale import Span
from shoal.masking.cells import Cell, Joined, Moves, Own, PartStatistics
from shoal.masking.confidential import Values, read_values
from shoal.masking.roles import Columns
from shoal.masking.sums import count_broken, whole_total
from shoal.promises.distinct_units import least_units, record_counters
from shoal.tables.columns import Codes, Name, NewColumn, check_released
from shoal.tables.formulas import escape_formulas
from shoal.tables.identifiers import SMALL, identifying_columns
from shoal.tables.number_text import present_cells
from shoal.tables.table import Table, number_rows

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks
    from shoal.masking.cells import Spellings

__all__ = [
    "confidential_codes",
    "deal_to_blocks",
    "deal_to_cells",
    "look",
    "number_of_cells",
    "numbers_of",
    "read_part",
    "records_of_units",
    "release_part",
    "scan_part",
    "scan_storages",
    "unit_words",
    "units_of_part",
]


# Read


def scan_part(table: Table, first: int, scaled: Mapping[Name, Kind], codes: Codes) -> tuple[Arrays, dict[Name, Span]]:
    """Return the time span of each column of dates, times or durations in a part, from which its unit is chosen."""
    coded = table.coded(codes)
    spans = {name: coded.cells_of(name, kind, first)[name][1] for name, kind in scaled.items()}
    return {"X": np.empty((table.rows, 0))}, spans


def scan_storages(
    table: Table, first: int, columns: Columns, names: Sequence[Name]
) -> tuple[Arrays, dict[Name, Storage | None]]:
    """Return the storage of some numeric columns of a part, which includes the number of decimals."""
    coded, kinds = table.coded(columns.codes), columns.kind_of
    storages = {
        name: coded.cells_of(name, kinds[name], first, named=name in columns.given)[name].storage for name in names
    }
    return {"X": np.empty((table.rows, 0))}, storages


def read_part(
    table: Table, first: int, columns: Columns, missing: str, moves: Moves, weights: Floats | None, k: int
) -> tuple[Arrays, PartStatistics]:
    """Read a part; return its arrays, such as the numbers X and the cell of each record, and its statistics.

    Records with missing values are suppressed if `missing` is "drop". Records of small cells are changed by `moves`.
    """
    coded = table.coded(columns.codes)
    read, values = _read_columns(coded, first, columns)
    X = np.column_stack([column.values for column in read])
    limits = bounds(X)
    _check_finite(read, limits, first)
    _check_total_line(read, columns, first)
    total, incomplete, holes = _missing_cells(read)
    spellings = tuple(
        coded[column.name].spellings(holes[:, j]) if total[j] else frozenset[Spelling]()
        for j, column in enumerate(read)
    )
    arrays = {"X": X, **_read_beside(table, first, columns, weights)}
    dropped = incomplete if missing == "drop" else np.zeros(len(X), dtype=np.bool_)
    blank, suppressed = _moved(table, first, columns, X, holes, moves)
    suppressed &= ~dropped
    if moves.blanked:
        arrays["lost"] = np.where(blank, X, np.nan)
        X[blank], holes = np.nan, holes | blank
    if dropped.any() or suppressed.any():
        rows = np.flatnonzero(~(dropped | suppressed))
        table, holes = table.take(rows), holes[rows]
        arrays = {KEPT: rows, **{name: array[rows] for name, array in arrays.items()}}
        X = arrays["X"]
    if moves.blanked or KEPT in arrays:
        limits = bounds(X)
    cell, cells = _cells(table, columns, X, holes, moves)
    if len(cells) > 1:
        arrays["codes"] = cell
    confidential: tuple[Values, ...] = ()
    if columns.confidential:
        arrays["confidential"], confidential = read_values(table, columns.confidential, first)
    return arrays, PartStatistics(
        rows=len(incomplete),
        kept=len(X),
        incomplete=int(incomplete.sum()),
        suppressed=int(suppressed.sum()),
        missing=total,
        present=len(X) - (np.count_nonzero(holes, axis=0) if total.any() else total),
        cells=cells,
        counts=np.bincount(cell, minlength=len(cells)),
        units=None if columns.unit is None else least_units(cell, arrays["unit"], k),
        storages=tuple(column.storage for column in read),
        spellings=spellings,
        limits=limits,
        broken=tuple(
            count_broken(rule, {column.name: column for column in read}, first, rounding)
            for rule, rounding in zip(columns.rules, columns.rounding, strict=True)
        ),
        totals=tuple(map(whole_total, X.T)) if columns.totals else (),
        observed=tuple(
            kind.observe(X, j, columns.masked, listed)
            for j, (kind, listed) in enumerate(zip(columns.kinds, values, strict=True))
        ),
        confidential=confidential,
        identifying=_identifying(coded, columns.modes),
        types=table.text_types(columns.typed),
    )


def _missing_cells(read: Sequence[Column]) -> tuple[Ints, Bools, Bools]:
    """Return the number of missing values per column, and masks of the incomplete records and the missing cells."""
    # Scan columns instead of rows: that is faster, and most columns have no missing values.
    missing = [np.isnan(column.values) for column in read]
    total = np.array([np.count_nonzero(cells) for cells in missing])
    incomplete: Bools = np.logical_or.reduce(missing)
    return total, incomplete, np.column_stack(missing) if total.any() else np.zeros((len(incomplete), len(read)), bool)


def _read_beside(table: Table, first: int, columns: Columns, weights: Floats | None) -> dict[str, Any]:
    """Return the weights and the units of the records, if any."""
    arrays: dict[str, Any] = {}
    if columns.weights is not None or weights is not None:
        arrays["weights"] = _read_weights(table, first, columns.weights, weights)
    if columns.unit is not None:
        arrays["unit"] = unit_words(table, columns.unit, first)
    return arrays


def _check_finite(read: Sequence[Column], limits: Floats, first: int) -> None:
    for column, ends in zip(read, limits.T, strict=True):
        # The bounds of a column without values are infinite too.
        if np.isinf(ends).any() and np.isinf(column.values).any():
            record = int(np.argmax(np.isinf(column.values)))
            raise InputError(
                f"Column {column.name!r} must be finite, but record {first + record + 1} holds "
                f"{column.values[record]}. Correct it, or make it missing and use {setting('missing', 'drop')} or "
                f"{setting('missing', 'group')}."
            )
        if np.isfinite(ends).all() and np.abs(ends).max() > FARTHEST:
            record = int(np.nanargmax(np.abs(column.values)))
            raise InputError(
                f"Column {column.name!r} must be within ±{FARTHEST:g}, but record {first + record + 1} holds "
                f"{column.values[record]}. Correct it, or use a larger unit."
            )


def _check_total_line(read: Sequence[Column], columns: Columns, first: int) -> None:
    """Refuse a table whose last record holds the totals of all records above."""
    names = list[str]()
    for column, numeric in zip(read, (kind.numeric for kind in columns.kinds), strict=True):
        above, last = column.values[:-1], column.values[-1:]
        if not numeric or np.isnan(last).all():
            continue
        if last[0] == 0 or not np.isclose(np.nansum(above), last[0], rtol=1e-9, atol=0):
            return
        if np.count_nonzero(np.nan_to_num(above)) < SMALL:  # the total of so few values may be a coincidence
            return
        names.append(str(column.name))
    if names:
        raise InputError(
            f"Record {first + len(read[0].values)} contains the totals of all records above in {listed(names)}. Remove "
            "this line."
        )


def _identifying(table: Table, names: list[Name]) -> dict[Name, str]:
    """Return the columns that look like identifiers, each with the reason."""
    return identifying_columns(dict(zip(names, table.keys(names).get_columns(), strict=True)))[0] if names else {}


def _read_columns(table: Table, first: int, columns: Columns) -> tuple[list[Column], list[list[Any]]]:
    """Return the masked columns as numbers, and the values of each column's categories by code."""
    pairs = [
        kind.read(name, table.cells_of(name, kind, first, named=name in columns.given), first, columns.scales.get(name))
        for name, kind in columns.kind_of.items()
    ]
    return [column for column, _ in pairs], [values for _, values in pairs]


def _read_weights(table: Table, first: int, name: Name | None, numbers: Floats | None) -> Floats:
    values, subject = numbers, f"{parameter('weights')}"
    if values is None:
        values, subject = table[name].numbers(first).values, f"Weight column {name!r}"
    elif values.shape != (table.rows,):
        raise InputError(f"{subject} must have one number per record ({table.rows}), got shape {values.shape}.")
    bad = ~((values >= 1 / FARTHEST) & (values <= FARTHEST))
    if bad.any():
        record = int(np.argmax(bad))
        rule = f"from {1 / FARTHEST:g} to {FARTHEST:g}" if 0 < values[record] < np.inf else "positive"
        raise InputError(
            f"{subject} must be {rule}, but record {first + record + 1} holds {values[record]}. Correct it, or remove "
            "the record."
        )
    return values


def unit_words(table: Table, name: Name, first: int | None = 0) -> Words:
    """Return a hash of the unit of each record, equal for all spellings of a unit.

    Errors number the records from `first`; if `first` is None, they name no record.
    """
    cells = table.cells([name])["0"]
    if cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Duration):
        raise InputError(
            f"Unit column {name!r} must hold numbers or text, but its type is {cells.dtype}. Use another column."
        )
    text = composed_cells(cells.cast(pl.String).str.strip_chars())
    lacking = present_cells(text).is_null()
    if lacking.any():
        which = "one" if first is None else f"record {first + int(lacking.arg_max() or 0) + 1}"
        raise InputError(
            f"Unit column {name!r} is empty in {which}; every record needs a unit. Fill it in, or remove such records "
            "first."
        )
    # 7, 07 and 7.0 are the same unit.
    words: Words = text.str.replace(r"^\+?0*(\d+)(?:[.,]0*)?$", "$1").hash(seed=0).to_numpy()
    return words


def _cells(
    table: Table, columns: Columns, X: Floats, holes: Bools, moves: Moves | None = None
) -> tuple[Ints, list[Cell]]:
    """Number the cells in order of appearance, with joined strata as one; return each record's cell, and all cells."""
    by, complete, d = columns.by, not holes.any(), len(columns.masked)
    if complete and not by and not columns.zeros:
        return np.zeros(len(X), dtype=np.int64), [Cell((), (False,) * d)] if len(holes) else []
    strata = table.cells(by).get_columns() if by else []
    for name, cells in zip(by, strata, strict=True):
        if cells.dtype.is_nested():
            raise InputError(
                f"Stratum column {name!r} must hold single values, but its type is {cells.dtype}. Use another column."
            )
    misses = [pl.Series(f"misses {j}", column) for j, column in enumerate(holes.T)]
    zeros = [pl.Series(f"is zero in {j}", X[:, j] == 0) for j in columns.zero_places]
    codes, rows = number_rows(pl.DataFrame([*strata, *misses, *zeros]))
    joined = {} if moves is None or moves.joined is None else moves.joined.strata
    first = len(by)
    return codes, [Cell(joined.get(row[:first], row[:first]), row[first : first + d], row[first + d :]) for row in rows]


def _moved(table: Table, first: int, columns: Columns, X: Floats, holes: Bools, moves: Moves) -> tuple[Bools, Bools]:
    """Return masks of the cells that are made missing and of the records that are suppressed."""
    if not moves.patterns:
        return np.zeros_like(holes), np.zeros(len(holes), dtype=np.bool_)
    codes, cells = _cells(table, columns, X, holes)
    patterns = [moves.patterns.get(cell, cell.missing) for cell in cells]
    out = np.array([pattern is None for pattern in patterns], dtype=np.bool_)
    missing = np.array([pattern or cell.missing for pattern, cell in zip(patterns, cells, strict=True)], dtype=np.bool_)
    blank = missing.reshape(-1, holes.shape[1])[codes]
    for code, cell in enumerate(cells):
        rows = np.flatnonzero(codes == code) if (first, cell) in moves.donations else np.empty(0, dtype=np.int64)
        for donation in moves.donations.get((first, cell), ()):
            blank[rows[: donation.records]] = donation.missing
            rows = rows[donation.records :]
    return blank & ~holes, out[codes]


# Deal out


def number_of_cells(arrays: Arrays, own: Own) -> Ints:
    """Return the table-wide number of each record's cell."""
    if "codes" in arrays:
        return own.cells[arrays["codes"]]
    return np.full(len(arrays["X"]), own.cells[0] if len(own.cells) else 0)


def numbers_of(arrays: Arrays, own: Own, name: str = "X") -> Floats:
    """Return the numbers of a part, with table-wide codes for its categories."""
    X = arrays[name]
    if all(codes is None for codes in own.codes):
        return X
    X = X.copy()
    for j, codes in enumerate(own.codes):
        if codes is not None and len(codes):
            present = ~np.isnan(X[:, j])
            X[present, j] = codes[X[present, j].astype(np.int64)]
    return X


def look(part: int, arrays: Arrays, own: Own, rescalings: Rescalings, function: Any, arguments: Sequence[Any]) -> Any:
    """Run a function of `shoal.blocks` on the numbers of a part, converted to their comparison scales."""
    X = rescaled(numbers_of(arrays, own), rescalings)
    return function(own.first, X, number_of_cells(arrays, own), *arguments)


def records_of_units(part: int, arrays: Arrays, own: Own) -> Ints:
    """Return counters of the records per unit in a part."""
    return record_counters(arrays["unit"].reshape(-1))


def units_of_part(part: int, arrays: Arrays, own: Own) -> Words:
    """Return the unit of each record in a part."""
    units: Words = arrays["unit"]
    return units


def deal_to_cells(part: int, arrays: Arrays, own: Own) -> tuple[Ints, Arrays]:
    """Send all records to one bucket, in which every cell is a block."""
    block = number_of_cells(arrays, own)
    return np.zeros(len(block), dtype=np.int64), _sent(arrays, own, numbers_of(arrays, own), block)


def deal_to_blocks(
    part: int, arrays: Arrays, own: Own, blocks: Blocks, rescalings: Rescalings, bucket: Ints, firsts: Ints
) -> tuple[Ints, Arrays]:
    """Send the records of a part to the buckets of their blocks; each bucket numbers its blocks from 0."""
    from shoal.blocks.blocking import assign

    X = numbers_of(arrays, own)
    block = assign(own.first, rescaled(X, rescalings), number_of_cells(arrays, own), blocks)
    target = bucket[block]
    return target, _sent(arrays, own, X, block - firsts[target])


def _sent(arrays: Arrays, own: Own, X: Floats, block: Ints) -> Arrays:
    others = {name: arrays[name] for name in ("weights", "unit") if name in arrays}
    if "lost" in arrays:
        others["lost"] = numbers_of(arrays, own, "lost")
    return {"block": block, "X": X, **others, **confidential_codes(arrays, own.confidential)}


def confidential_codes(arrays: Arrays, numbers: Sequence[Ints]) -> Arrays:
    """Return the table-wide codes of the sensitive columns of a part."""
    if not numbers:
        return {}
    own = arrays["confidential"].reshape(-1, len(numbers))
    return {"confidential": np.column_stack([number[own[:, place]] for place, number in enumerate(numbers)])}


# Release


def release_part(
    table: Table,
    answers: Arrays,
    columns: Columns,
    storages: Sequence[Storage],
    codings: Sequence[Coding],
    spellings: Spellings,
    rounded: bool,
    shuffled: Ints | None,
    escape: bool,
) -> Table:
    """Return a part with its released values; with `shuffled`, reorder the records and renumber the units."""
    if KEPT in answers:
        table = table.take(answers[KEPT])
    table = table.coded(columns.codes)
    new = {
        name: NewColumn(
            np.ascontiguousarray(answers["released"][:, j]),
            storage,
            rounded,
            spellings.missing[name],
            coding.labels,
            columns.scales.get(name),
        )
        for j, (name, storage, coding) in enumerate(zip(columns.masked, storages, codings, strict=True))
    }
    dropped = [name for name in table.names if name not in columns.released]
    released = table.released(new, spellings.strata)
    if spellings.joined is not None and spellings.joined.texts:
        released = released.relabelled(_joined_cells(table, columns.by, spellings.joined))
    released = released.without(dropped)
    # The column order of a part may differ from that of the release.
    check_released(sorted(map(str, released.names)), sorted(map(str, columns.released)))
    if escape:
        released = escape_formulas(released)
    if shuffled is None:
        return released
    released = released.take(shuffled)
    if columns.unit not in columns.released:
        return released
    numbers = canonical_labels(unit_words(released, columns.unit)).astype(np.float64) + 1.0
    return released.released({columns.unit: NewColumn(numbers, Storage("int64", whole=True), True, None, None)})


def _joined_cells(table: Table, by: Sequence[Name], joined: Joined) -> dict[Name, list[str | None]]:
    """Return the released texts of the stratum columns in which strata were joined."""
    codes, strata = number_rows(table.cells(by))
    names = [joined.strata.get(stratum, stratum) for stratum in strata]
    texts = [[None if value is None else str(value) for value in name] for name in names]
    return {
        name: [texts[code][place] for code in codes.tolist()] for place, name in enumerate(by) if name in joined.texts
    }
