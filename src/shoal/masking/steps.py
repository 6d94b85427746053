"""The steps of a masking that run where the records are: plain functions of a part or a bucket.

read a part ─► (blocks) ─► deal it out ─► mask a bucket ─► release the part ─► count what was released
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.auto import facts_of
from shoal.algorithms.registry import AUTO, Outcome
from shoal.blocks.running import group_blocks, group_cells
from shoal.core.measures import Scaling, canonical_labels, centroids, group_sizes, scaling, squared_errors
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.engines.records import KEPT, Arrays
from shoal.kernels.dealing import sort_by_target
from shoal.kernels.words import Words
from shoal.masking.aggregation import group_category, group_values
from shoal.masking.coding import Coding, Embedding
from shoal.masking.confidential import Promise, least_error
from shoal.masking.gathering import Gathered, cells_of
from shoal.masking.grouping import finish_groups, start_method, with_bound
from shoal.masking.parts import Bucket, Columns, Joined, Own, Spellings
from shoal.masking.reading import number_rows, unit_words
from shoal.masking.request import MaskRequest
from shoal.masking.rounding import Rounding
from shoal.models.units import record_counters
from shoal.tables.columns import Kind, Name, NewColumn, is_whole
from shoal.tables.table import Table

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks

__all__ = [
    "confidential_codes",
    "deal_to_blocks",
    "deal_to_cells",
    "look",
    "mask_bucket",
    "number_of_cells",
    "numbers_of",
    "records_of_units",
    "release_part",
    "released_values",
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
    return function(part, numbers_of(arrays, own), number_of_cells(arrays, own), *arguments)


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
    method = start_method(request, promised=bool(promise.models) or "unit" in arrays, whole=whole)
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
        told = facts_of(request.options["effort"]) if request.entry.name == AUTO else {}
        outcome = Outcome(labels, facts={**told, **({"stopped": "by hand"} if state[STOP] else {})})
    units = arrays["unit"].reshape(-1)[order] if "unit" in arrays else None
    codes = arrays["confidential"].reshape(len(X), -1)[order] if promise.columns else np.empty((len(X), 0), np.int64)
    gathered = Gathered(X, compared, scale, block[order], codes, units)
    outcome = finish_groups(
        outcome, gathered, request, embedding, promise, block=not whole, state=state, threads=threads
    )
    if whole and promise.models:
        outcome = with_bound(outcome, least_error(Z, codes, promise))
    labels = outcome.labels
    values, rounded, row = released_values(
        X, Z, labels, request.aggregate, weights, embedding.codings, rounding, block[order]
    )
    sizes = [group_sizes(column) for column in np.atleast_2d(labels.T)]
    errors, totals, added, grouped = _lost(Z, labels, values, rounded, row, request, rounding, embedding, scale)
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
        rounding.new_zeros(X, rounded, row),
        np.array([kind.absent is not None and bool((column == kind.absent).any()) for kind, column in pairs]),
    )
    if whole:
        return {"released": np.take(rounded, row, axis=0), "group": labels}, known
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    group = labels[back]
    return {"released": np.take(rounded, row[back], axis=0), "group": group, "size": sizes[0][group]}, known


def _lost(
    Z: Floats,
    labels: Ints,
    values: Floats,
    rounded: Floats,
    row: Ints,
    request: MaskRequest,
    rounding: Rounding,
    embedding: Embedding,
    scale: Scaling,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, of each column: squared errors, their total, what rounding added, and those of the partition itself."""
    errors, totals = squared_errors(Z, np.take(embedding.apply(rounded, scale), row, axis=0))
    plain = errors
    if rounding.changes:
        plain = squared_errors(Z, np.take(embedding.apply(values, scale), row, axis=0))[0]
    grouped = plain
    if labels.ndim == 1 and (request.aggregate != "mean" or request.weights is not None or not embedding.plain):
        grouped = squared_errors(Z, np.take(centroids(Z, labels), labels, axis=0))[0]
    by_column = embedding.by_column
    return by_column(errors), by_column(totals), by_column(errors - plain), by_column(grouped)


def released_values(
    X: Floats,
    Z: Floats,
    labels: Ints,
    aggregate: str,
    weights: Floats | None,
    codings: Sequence[Coding | None],
    rounding: Rounding,
    block: Ints,
) -> tuple[Floats, Floats, Ints]:
    """Return the values of the groups, the same as they are released, and which row of them each record has.

    A missing cell stays missing.
    """
    if labels.ndim == 2:
        columns = [
            released_values(
                X[:, [j]], Z[:, [j]], column, aggregate, weights, codings[j : j + 1], rounding.only(j), block
            )
            for j, column in enumerate(np.ascontiguousarray(labels.T))
        ]
        # The groups of columns are not the same: there is one row a record.
        values = np.column_stack([column[row] for column, _, row in columns])
        rounded = np.column_stack([column[row] for _, column, row in columns])
        return values, rounded, np.arange(len(X))
    # All records of a group miss the same cells, so a NaN stays in its own group and column.
    values = group_values(X, Z, labels, aggregate, weights)
    if aggregate != "medoid":
        for j, coding in enumerate(codings):
            if coding is not None:
                values[:, j] = group_category(X[:, j], labels, coding.release, coding.ancestors)
    return values, rounding.apply(values, X, labels, block), labels


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
