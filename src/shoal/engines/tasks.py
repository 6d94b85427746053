"""What workers do: stage the numbers of a part, look at it, deal it out, mask a bucket, finish a part, count groups.

Plain functions of plain arguments, so that any engine can run them anywhere; files are named by part or bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.algorithms.registry import find
from shoal.blocks.blocking import Blocking, Blocks, InMemory, assign, extent_of, find_blocks
from shoal.blocks.fusing import leaf_sums
from shoal.blocks.quantising import bounds
from shoal.blocks.running import group_blocks
from shoal.core.compiling import kernel
from shoal.core.errors import InputError, VerificationError
from shoal.core.measures import Scaling, group_sizes, squared_errors
from shoal.core.progress import fresh_state
from shoal.core.types import Bools, Floats, Ints
from shoal.engines.request import Job, Request
from shoal.engines.shuffle import Places, Shuffle, put_rows, sort_by_target, write_array
from shoal.masking.aggregation import group_values
from shoal.masking.verification import (
    Words,
    cell_words,
    check_sizes,
    count_unique,
    hash_words,
    number_words,
    row_hashes,
    words_of,
)
from shoal.tables.csv_files import Dialect, csv_text
from shoal.tables.frames import is_whole, round_to
from shoal.tables.metadata import without_metadata
from shoal.tables.sources import Source, column_types, read_schema

__all__ = [
    "Bucket",
    "Kind",
    "Masked",
    "Numbers",
    "Spelling",
    "Staged",
    "begin",
    "bucket_of_words",
    "count_bucket",
    "finish",
    "look",
    "mask_bucket",
    "mask_records",
    "put_back",
    "read_numbers",
    "released_records",
    "spill",
    "spill_for_counting",
    "stage",
    "warm",
]

HIGH = np.uint64(32)  # a hash table looks at the lower half of a hash


class Numbers(NamedTuple):
    """The numbers of a part's records that are released."""

    X: Floats
    codes: Ints | None  # the stratum and missing columns of each record, by number; None if all are alike
    weights: Floats | None

    def roots(self, numbers: Ints) -> Ints:
        """Return the root of each record, from that of each code."""
        if self.codes is None:
            return np.full(len(self.X), numbers[0] if len(numbers) else 0)
        found: Ints = numbers[self.codes]
        return found


class Kind(NamedTuple):
    """What a column holds."""

    type: str  # "integer", "float32" or "float"
    whole: bool  # whether all its numbers are whole, whatever their type


class Staged(NamedTuple):
    """What is known of a part once its numbers are read."""

    kept: int
    coded: bool  # whether records differ in stratum or missing columns
    incomplete: int
    holes: Ints  # missing cells of each column
    cells: list[tuple[tuple[object, ...], tuple[bool, ...]]]  # stratum and missing columns, by code
    counts: Ints  # records of each code
    kinds: tuple[Kind | None, ...]  # of each column; None if all cells are missing
    spellings: tuple[frozenset[str | None], ...]  # of missing cells, by column: text, "NaN", None for null
    limits: Floats  # the least and the greatest value of each column


class Bucket(NamedTuple):
    """What is known of a bucket once it is masked."""

    errors: Floats  # squared, of each standardised column
    totals: Floats
    rounding: Floats  # what rounding to integers added to the errors
    sizes: Ints  # how many groups there are of each size


def begin() -> None:
    """Load what all tasks and kernels need, whatever the table."""
    import pyarrow.parquet  # noqa: F401

    bounds(np.zeros((1, 1)))


def warm(asked: Request, d: int) -> bool:
    """Load all kernels on a small table, and say whether any had to be compiled: that takes memory for good."""
    from numba.core.event import install_recorder

    rows = 8 * asked.k
    job = Job(asked, Source((), (), (), None), Path(), ("",) * d)
    with install_recorder("numba:compile") as recorder:
        # A column of few values leaves leaves of equal records, and leaves below k to fuse.
        X = np.arange(rows * d, dtype=np.float64).reshape(rows, d) ** 2
        X[: rows // 2] = X[0]
        roots = np.zeros(rows, dtype=np.int64)
        blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(2 * asked.k, asked.k, "one"))
        block = assign(0, X, roots, blocks)
        leaf_sums(X, block, blocks.frame, len(blocks.sizes))
        entry = find(asked.method)
        # A user's function is called with the user's records only.
        if not entry.anytime and not entry.own:
            weights = np.ones(rows) if asked.weights else None
            put_rows(
                X,
                np.arange(rows, dtype=np.uint32),
                mask_records(
                    job, block, X, weights, blocks.scale, (Kind("float", whole=False),) * d, (rows, 1)
                ).released,
            )
        words = words_of(X)
        number_words(words)
        bucket_of_words(words, 2)
    return bool(recorder.buffer)


def stage(job: Job, part: int, first: int) -> Staged:
    """Keep the numbers of a part in files."""
    frame = pl.DataFrame(job.source.parts[part].read(job.wanted()))
    numbers, found = read_numbers(job, frame, first)
    for what, array in numbers._asdict().items():
        if array is not None:
            write_array(job.path(part, what), array)
    return found


def _load(job: Job, part: int, coded: bool) -> Numbers:
    return Numbers(
        np.fromfile(job.path(part, "X")).reshape(-1, len(job.columns)),
        np.fromfile(job.path(part, "codes"), dtype=np.int64) if coded else None,
        np.fromfile(job.path(part, "weights")) if job.asked.weights else None,
    )


def read_numbers(job: Job, frame: pl.DataFrame, first: int) -> tuple[Numbers, Staged]:
    """Return the numbers of a part and what is known of it; `first` records come before it."""
    series = [job.source.numbers(frame, name, first) for name in job.columns]
    columns = [s.cast(pl.Float64).fill_null(np.nan).to_numpy() for s in series]
    X, total = np.column_stack(columns), np.array([np.count_nonzero(np.isnan(column)) for column in columns])
    kinds = tuple(_kind(s, column) for s, column in zip(series, columns, strict=True))
    spellings = tuple(
        frozenset(_missing_cells(frame[name], column)) if many else frozenset[str | None]()
        for name, column, many in zip(job.columns, columns, total, strict=True)
    )
    limits = bounds(X)
    for name, column, ends in zip(job.columns, X.T, limits.T, strict=True):
        # Bounds of a column without any value are infinite too.
        if np.isinf(ends).any() and np.isinf(column).any():
            record = int(np.argmax(np.isinf(column)))
            raise InputError(
                f"Column {name!r} must be finite, but record {first + record + 1} holds {column[record]}. "
                "Correct it, or make it missing and choose missing='drop' or 'group'."
            )
    holes: Bools | None = np.isnan(X) if total.any() else None
    incomplete = np.zeros(len(X), dtype=np.bool_) if holes is None else np.asarray(holes.any(axis=1))
    if job.drop and holes is not None:
        frame, X, holes = frame.filter(pl.Series(~incomplete)), X[~incomplete], None
        limits = bounds(X)
    weights: Floats | None = None
    if job.asked.weights:
        weights = job.source.numbers(frame, job.asked.weights, first).cast(pl.Float64).fill_null(np.nan).to_numpy()
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise InputError(f"Column {job.asked.weights!r}, the weights, must be positive in every record.")
    codes, cells = _cells(job, frame, holes)
    counts = np.array([len(X)] if len(X) else [], dtype=np.int64)
    if codes is not None:
        counts = np.bincount(codes, minlength=len(cells))
    return Numbers(X, codes, weights), Staged(
        len(X), codes is not None, int(incomplete.sum()), total, cells, counts, kinds, spellings, limits
    )


def _kind(series: pl.Series, values: Floats) -> Kind | None:
    if np.isnan(values).all():
        return None
    if series.dtype.is_integer():
        return Kind("integer", whole=True)
    return Kind("float32" if series.dtype == pl.Float32 else "float", is_whole(values))


def _missing_cells(cells: pl.Series, values: Floats) -> list[str | None]:
    """Return the different spellings of a column's missing cells."""
    return cells.filter(pl.Series(np.isnan(values))).cast(pl.String).unique().to_list()


def _cells(
    job: Job, frame: pl.DataFrame, holes: Bools | None
) -> tuple[Ints | None, list[tuple[tuple[object, ...], tuple[bool, ...]]]]:
    """Number the combinations of stratum and missing columns in order of appearance."""
    if holes is None:
        nothing = (False,) * len(job.columns)
        if not job.asked.by:
            return None, [((), nothing)] if len(frame) else []
        holes = np.zeros((len(frame), len(nothing)), dtype=np.bool_)
    by = job.asked.by
    keys = pl.DataFrame(
        [frame[name].alias(f"by {i}") for i, name in enumerate(by)]
        + [pl.Series(f"hole {j}", column) for j, column in enumerate(holes.T)]
    )
    unique = keys.unique(maintain_order=True).with_row_index("code")
    codes = keys.join(unique, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["code"].to_numpy()
    cells = [(tuple(row[1 : 1 + len(by)]), tuple(row[1 + len(by) :])) for row in unique.iter_rows()]
    return codes.astype(np.int64), cells


def look(
    job: Job, part: int, numbers: Ints, coded: bool, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Run a function of `shoal.blocks` on the numbers of a part."""
    held = _load(job, part, coded)
    return function(part, held.X, held.roots(numbers), *arguments)


def spill(
    job: Job, part: int, numbers: Ints, coded: bool, blocks: Blocks, bucket: Ints, firsts: Ints, shuffle: Shuffle
) -> Ints:
    """Deal out the records of a part to the buckets of their blocks; a bucket counts its blocks from 0."""
    held = _load(job, part, coded)
    block = assign(part, held.X, held.roots(numbers), blocks)
    target = bucket[block]
    arrays = {"block": block - firsts[target], "X": held.X}
    if held.weights is not None:
        arrays["weights"] = held.weights
    return shuffle.write(part, target, arrays)


class Masked(NamedTuple):
    """A bucket masked."""

    released: Floats  # as the columns will hold it
    labels: Ints  # the group of each record
    known: Bucket


def mask_bucket(
    job: Job,
    places: Places,
    shuffle: Shuffle,
    scale: Scaling,
    kinds: tuple[Kind, ...],
    share: tuple[int, int],
) -> Bucket:
    """Mask the blocks of a bucket and answer the released values to the parts they came from."""
    block, X = shuffle.read(places, "block")[:, 0].astype(np.int64), shuffle.read(places, "X")
    weights = shuffle.read(places, "weights")[:, 0] if job.asked.weights else None
    masked = mask_records(job, block, X, weights, scale, kinds, share)
    shuffle.answer(places, "released", masked.released)
    if "group" in shuffle.shapes:
        sizes = group_sizes(masked.labels)[masked.labels]
        shuffle.answer(places, "group", np.column_stack([masked.labels, sizes]))
    return masked.known


def mask_records(
    job: Job,
    block: Ints,
    X: Floats,
    weights: Floats | None,
    scale: Scaling,
    kinds: tuple[Kind, ...],
    share: tuple[int, int],
) -> Masked:
    """Mask the records of some blocks. `share`: all records, and how many blocks are masked at a time."""
    asked = job.asked
    order, _ = sort_by_target(block, int(block.max(initial=0)) + 1)
    X, weights = np.take(X, order, axis=0), None if weights is None else weights[order]
    Z = scale.apply(X)
    records, parallel = share
    labels = group_blocks(
        Z,
        block[order],
        find(asked.method),
        job.k,
        asked.options,
        records=records,
        seed=asked.seed,
        state=fresh_state(),
        parallel=parallel,
    )
    values = group_values(X, Z, labels, asked.aggregate, weights)
    rounded = values.copy()
    for j, kind in enumerate(kinds):
        if kind.whole and job.whole:
            rounded[:, j] = np.rint(values[:, j])
        elif kind.type == "float32":
            rounded[:, j] = values[:, j].astype(np.float32)
    errors, totals = squared_errors(Z, np.take(scale.apply(rounded), labels, axis=0))
    plain = errors
    if (rounded != values).any():
        plain, _ = squared_errors(Z, np.take(scale.apply(values), labels, axis=0))
    found = np.empty_like(labels)
    found[order] = labels
    known = Bucket(errors, totals, errors - plain, np.bincount(group_sizes(labels)))
    return Masked(np.take(rounded, found, axis=0), found, known)


@dataclass(frozen=True)
class Spelling:
    """How cells are spelled in the release, where records must look alike."""

    missing: Mapping[str, str | None]  # of each masked column: what a missing cell reads
    strata: Mapping[str, Mapping[str | None, str | None]]  # of columns of the strata: cells that are spelled otherwise

    def of_strata(self, frame: pl.DataFrame) -> list[pl.Series]:
        """Return the columns of the strata that change."""
        return [frame[name].replace(dict(changed)) for name, changed in self.strata.items()]


def finish(
    job: Job,
    part: int,
    shuffle: Shuffle,
    kinds: tuple[Kind, ...],
    spelling: Spelling,
    csv: bool,
    before: tuple[int, Ints] | None,
) -> Path:
    """Write a part as it will stand in the output, with the released values in their place.

    `before` is given if labels are asked for: the number of records before the part and, of each of its records in the
    order of the buckets, the groups before.
    """
    import pyarrow as pa

    values = shuffle.answers(part, "released")
    source = job.source
    schema = read_schema(source.parts[part].path)
    # Masked columns are read again only to find out which records were left out.
    table = source.parts[part].read([name for name in source.names if job.drop or name not in job.columns])
    kept = released_records(job, pl.DataFrame(table)) if job.drop else np.arange(len(values))
    if len(kept) < len(table):
        table = table.take(pa.array(kept))
    if before is not None:
        _finish_labels(job, part, shuffle, before, kept)
    released = put_back(job, values, kinds, spelling, column_types(schema))
    released += spelling.of_strata(pl.DataFrame(table.select(list(spelling.strata))))
    if csv:
        frame = pl.DataFrame(table).with_columns(released)
        return _finish_csv(job, part, frame.select(source.names), spelling)
    new = {series.name: series.to_arrow() for series in released}
    columns = [new[name] if name in new else table.column(name) for name in source.names]
    fields = [schema.field(name).with_type(column.type) for name, column in zip(source.names, columns, strict=True)]
    path = job.folder / f"output-{part}.arrow"
    whole = without_metadata(pa.table(columns, schema=pa.schema(fields)))
    with pa.ipc.new_file(str(path), whole.schema) as file:
        file.write_table(whole)
    return path


def _finish_labels(job: Job, part: int, shuffle: Shuffle, before: tuple[int, Ints], kept: Ints) -> None:
    first, groups = before
    group, size = shuffle.answers(part, "group", np.column_stack([groups, np.zeros_like(groups)])).T
    frame = pl.DataFrame({"record": first + kept + 1, "group": group, "size": size})
    frame.write_ipc(job.folder / f"labels-{part}.arrow", compression="uncompressed")


def _finish_csv(job: Job, part: int, frame: pl.DataFrame, spelling: Spelling) -> Path:
    path = job.folder / f"output-{part}.csv"
    dialect = job.source.dialect or Dialect()
    if job.source.dialect is not None:
        frame = frame.with_columns(
            pl.col(name)
            .cast(pl.String)
            .str.replace(".", dialect.decimal, literal=True)
            .fill_null(pl.lit(spelling.missing[name], dtype=pl.String))
            for name in job.columns
        )
    content = csv_text(frame, dialect, header=part == 0)
    # A mark at the start of the file stands once.
    path.write_bytes(content.encode(dialect.encoding if part == 0 else dialect.encoding.removesuffix("-sig")))
    return path


def released_records(job: Job, frame: pl.DataFrame) -> Ints:
    """Return the records of a part that miss no value."""
    columns = [job.source.numbers(frame, name, 0).cast(pl.Float64).fill_null(np.nan) for name in job.columns]
    return np.flatnonzero(~np.isnan(np.column_stack(columns)).any(axis=1))


def put_back(
    job: Job, values: Floats, kinds: tuple[Kind, ...], spelling: Spelling, types: Mapping[str, pl.DataType]
) -> list[pl.Series]:
    """Return the new columns of the records that are released; `types` are the given ones."""
    new = []
    for j, (name, kind) in enumerate(zip(job.columns, kinds, strict=True)):
        series = pl.Series(name, values[:, j])
        if kind.type == "integer" and job.whole:
            given = types[name] if job.source.dialect is None else pl.Int64()
            missing = np.isnan(values[:, j])
            whole = round_to(np.where(missing, 0.0, values[:, j]), str(given).lower())
            series = pl.Series(name, whole).set(pl.Series(missing), None) if missing.any() else pl.Series(name, whole)
        else:
            series = series.cast(pl.Float32) if kind.type == "float32" else series
            series = series if spelling.missing[name] == "NaN" and job.source.dialect is None else series.fill_nan(None)
        new.append(series)
    return new


class Dealt(NamedTuple):
    """What is known of a released part that was dealt out for counting."""

    begins: Ints  # where each bucket begins
    cells: list[Any]  # its strata
    spellings: tuple[frozenset[str | None], ...]  # of missing cells, by masked column


def spill_for_counting(job: Job, part: int, first: int, shuffle: Shuffle) -> Dealt:
    """Deal out the released records of a part by their cells in the masked columns, as they are written."""
    names = job.source.names if "row" in shuffle.shapes else [*job.columns, *job.asked.by]
    frame = pl.DataFrame(job.source.parts[part].read(names))
    series = [job.source.numbers(frame, name, first) for name in job.columns]
    for name, numbers in zip(job.columns, series, strict=True):
        if job.source.dialect is not None:
            _check_spelling(name, frame[name], numbers, job.source.dialect.decimal)
    words = np.column_stack([cell_words(numbers) for numbers in series])
    codes, cells = _cells(job, frame, None)
    arrays: dict[str, Any] = {"words": words}
    if codes is not None:
        arrays["codes"] = codes
    if "row" in shuffle.shapes:
        arrays["row"] = row_hashes(frame)
    spellings = tuple(
        frozenset(frame[name].filter(numbers.is_null()).cast(pl.String).unique())
        for name, numbers in zip(job.columns, series, strict=True)
    )
    return Dealt(shuffle.write(part, bucket_of_words(words, shuffle.targets), arrays), cells, spellings)


def _check_spelling(name: str, cells: pl.Series, numbers: pl.Series, decimal: str) -> None:
    """Refuse text from which more than its number can be read: 1.0 beside 1."""
    spelled = numbers.cast(pl.String).str.replace(".", decimal, literal=True)
    if not (spelled == cells).filter(numbers.is_not_null()).all():
        raise VerificationError(f"Column {name!r} has numbers that are spelled in several ways. Nothing was released.")


def count_bucket(job: Job, places: Places, shuffle: Shuffle, roots: Sequence[Ints]) -> int:
    """Count the groups of a bucket; one below k is an error. `roots`: the stratum of each code, by part.

    Returns
    -------
    int
        The records that are unique over all columns.
    """
    words = shuffle.read(places, "words")
    if job.asked.by:
        before = np.cumsum([0, *(len(part) for part in roots)])[:-1]
        codes = shuffle.read(places, "codes")[:, 0]
        strata = np.concatenate(roots)[codes + before[places.origins()]]
        words = np.column_stack([words, strata.astype(np.uint64)])
    check_sizes(group_sizes(number_words(words)), job.k)
    return count_unique(shuffle.read(places, "row")[:, 0]) if "row" in shuffle.shapes else 0


@kernel
def bucket_of_words(words: Words, targets: int) -> Ints:
    """Send equal records to the same bucket; where they go does not matter otherwise."""
    found = np.empty(len(words), dtype=np.int64)
    for i in range(len(words)):
        found[i] = np.int64(hash_words(words[i]) >> HIGH) % targets
    return found
