"""The steps of a masking that run where the records are: plain functions of a part.

read a part ─► (blocks) ─► deal it out ─► mask a bucket ─► release the part ─► count what was released
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.measures import canonical_labels
from shoal.core.types import Floats, Ints
from shoal.engines.records import KEPT, Arrays
from shoal.kernels.words import Words
from shoal.kinds.coding import Coding
from shoal.kinds.storage import Storage
from shoal.masking.cells import Joined, Own, Spellings
from shoal.masking.reading import number_rows, unit_words
from shoal.masking.roles import Columns
from shoal.models.distinct_units import record_counters
from shoal.tables.columns import Name, NewColumn
from shoal.tables.formulas import escape_formulas
from shoal.tables.selection import check_released
from shoal.tables.table import Table

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks

__all__ = [
    "confidential_codes",
    "deal_to_blocks",
    "deal_to_cells",
    "look",
    "number_of_cells",
    "numbers_of",
    "records_of_units",
    "release_part",
    "units_of_part",
]


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
    return function(own.first, numbers_of(arrays, own), number_of_cells(arrays, own), *arguments)


def records_of_units(part: int, arrays: Arrays, own: Own) -> Ints:
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
    block = assign(own.first, X, number_of_cells(arrays, own), blocks)
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
    """Return a part with the released values in their place; shuffled, its units are numbered anew."""
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
    # A part may hold its columns in another order than the whole release.
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
    """Return the text of columns of joined strata."""
    codes, strata = number_rows(table.cells(by))
    names = [joined.strata.get(stratum, stratum) for stratum in strata]
    texts = [[None if value is None else str(value) for value in name] for name in names]
    return {
        name: [texts[code][place] for code in codes.tolist()] for place, name in enumerate(by) if name in joined.texts
    }
