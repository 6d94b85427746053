"""What workers do: stage the numbers of a part, look at it, regroup it, mask a bucket, finish a part, count groups.

Plain functions of plain arguments, so that any engine can run them anywhere; files are named by part or bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit

from shoal.aggregation import Aggregate, group_values
from shoal.algorithms.registry import find
from shoal.blocks.blocking import Blocks, assign
from shoal.blocks.running import group_blocks
from shoal.engines.shuffle import Shuffle
from shoal.engines.sources import Source
from shoal.errors import InputError
from shoal.measures import Scaling, group_sizes
from shoal.progress import fresh_state
from shoal.tables.csv_files import CsvFile
from shoal.types import Floats, Ints
from shoal.verification import verify

__all__ = [
    "Bucket",
    "Job",
    "Staged",
    "bucket_of_values",
    "count_bucket",
    "finish",
    "look",
    "mask_bucket",
    "mask_records",
    "put_back",
    "read_numbers",
    "spill",
    "spill_for_counting",
    "stage",
]


@dataclass(frozen=True)
class Job:
    """All that a task must know of the run."""

    source: Source
    folder: Path
    columns: tuple[str, ...]
    by: tuple[str, ...]
    weights: str | None
    drop: bool
    whole: bool
    k: int
    method: str
    options: Mapping[str, Any]
    aggregate: Aggregate
    seed: int | None

    def wanted(self) -> list[str]:
        """Return the columns that are looked at."""
        return list(dict.fromkeys([*self.columns, *self.by, *([self.weights] if self.weights else [])]))

    def path(self, stage: str, part: int, what: str) -> Path:
        """Return where an array of a part is kept."""
        return self.folder / f"{stage}-{part}-{what}.npy"

    def load(self, stage: str, part: int) -> tuple[Floats, Ints]:
        """Return the numbers of a part and the root of each record."""
        codes = np.load(self.path(stage, part, "codes"))
        return np.load(self.path(stage, part, "numbers")), np.load(self.path(stage, part, "roots"))[codes]


class Staged(NamedTuple):
    """What is known of a part once its numbers are staged."""

    kept: int
    incomplete: int
    holes: Ints  # missing cells of each column
    cells: list[tuple[tuple[object, ...], tuple[bool, ...]]]  # stratum and missing columns, by code
    counts: Ints  # records of each code
    kinds: tuple[str, ...]  # "integer", "float32" or "float" of each column


class Bucket(NamedTuple):
    """What is known of a bucket once it is masked."""

    errors: Floats  # squared, of each standardised column
    totals: Floats
    rounding: Floats  # what rounding to integers added to the errors
    sizes: Ints  # how many groups there are of each size


def stage(job: Job, stage: str, part: int, first: int) -> Staged:
    """Write the numbers of a part and the code of each record's stratum and missing columns."""
    frame = pl.DataFrame(job.source.parts[part].read(job.wanted()))
    X, codes, weights, found = read_numbers(job, frame, first)
    np.save(job.path(stage, part, "numbers"), X)
    np.save(job.path(stage, part, "codes"), codes)
    if weights is not None:
        np.save(job.path(stage, part, "weights"), weights)
    return found


def read_numbers(job: Job, frame: pl.DataFrame, first: int) -> tuple[Floats, Ints, Floats | None, Staged]:
    """Return numbers, codes and weights of a part, and what is known of it; `first` records come before it."""
    series = [job.source.numbers(frame, name, first) for name in job.columns]
    kinds = tuple(
        "integer" if s.dtype.is_integer() else "float32" if s.dtype == pl.Float32 else "float" for s in series
    )
    X = np.column_stack([s.cast(pl.Float64).fill_null(np.nan).to_numpy() for s in series])
    for name, column in zip(job.columns, X.T, strict=True):
        if np.isinf(column).any():
            record = int(np.argmax(np.isinf(column)))
            raise InputError(
                f"Column {name!r} must be finite, but record {first + record + 1} holds {column[record]}. "
                "Correct it, or make it missing and choose missing='drop' or 'group'."
            )
    holes = np.isnan(X)
    incomplete = holes.any(axis=1)
    total, count = holes.sum(axis=0), int(incomplete.sum())
    if job.drop:
        frame, X, holes = frame.filter(pl.Series(~incomplete)), X[~incomplete], holes[~incomplete]
    keys = pl.DataFrame(
        [frame[name].alias(f"by {i}") for i, name in enumerate(job.by)]
        + [pl.Series(f"hole {j}", holes[:, j]) for j in range(X.shape[1])]
    )
    unique = keys.unique(maintain_order=True).with_row_index("code")
    codes = keys.join(unique, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["code"].to_numpy()
    codes = codes.astype(np.int64)
    weights: Floats | None = None
    if job.weights:
        weights = job.source.numbers(frame, job.weights, first).cast(pl.Float64).fill_null(np.nan).to_numpy()
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise InputError(f"Column {job.weights!r}, the weights, must be positive in every record.")
    many = len(job.by)
    cells = [(tuple(row[1 : 1 + many]), tuple(row[1 + many :])) for row in unique.iter_rows()]
    staged = Staged(len(X), count, total, cells, np.bincount(codes, minlength=len(cells)), kinds)
    return X, codes, weights, staged


def look(job: Job, part: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Run a function of `shoal.blocks` on the numbers of a part."""
    return function(part, *job.load("input", part), *arguments)


def spill(job: Job, part: int, first: int, blocks: Blocks, bucket: Ints, shuffle: Shuffle) -> None:
    """Write the records of a part for the buckets of their blocks: number, block, values, weight."""
    X, roots = job.load("input", part)
    block = assign(part, X, roots, blocks)
    arrays = [first + np.arange(len(X)), block, X]
    if job.weights:
        arrays.append(np.load(job.path("input", part, "weights")))
    shuffle.write(part, bucket[block], arrays)


def mask_bucket(
    job: Job,
    number: int,
    shuffle: Shuffle,
    back: Shuffle,
    starts: Ints,
    scale: Scaling,
    kinds: tuple[str, ...],
    share: tuple[int, int],
) -> Bucket:
    """Mask the blocks of a bucket and write the released values for the parts they came from."""
    rows, block, X, *rest = shuffle.read(number, 4 if job.weights else 3)
    released, found = mask_records(job, block, X, rest[0] if rest else None, scale, kinds, share)
    back.write(number, np.searchsorted(starts, rows, side="right") - 1, [rows, released])
    return found


def mask_records(
    job: Job,
    block: Ints,
    X: Floats,
    weights: Floats | None,
    scale: Scaling,
    kinds: tuple[str, ...],
    share: tuple[int, int],
) -> tuple[Floats, Bucket]:
    """Mask the records of some blocks; return the released values, as their columns will hold them, and the loss.

    `share`: all records, and how many blocks are masked at a time.
    """
    Z = scale.apply(X)
    entry = find(job.method)
    records, parallel = share
    labels = group_blocks(
        Z, block, entry, job.k, job.options, records=records, seed=job.seed, state=fresh_state(), parallel=parallel
    )
    values = group_values(X, Z, labels, job.aggregate, weights)[labels]
    released = values.copy()
    for j, kind in enumerate(kinds):
        if kind == "integer" and job.whole:
            released[:, j] = np.rint(values[:, j])
        elif kind == "float32":
            released[:, j] = values[:, j].astype(np.float32)
    errors = np.nansum(np.square(scale.apply(released) - Z), axis=0)
    plain = np.nansum(np.square(scale.apply(values) - Z), axis=0)
    return released, Bucket(errors, np.nansum(np.square(Z), axis=0), errors - plain, np.bincount(group_sizes(labels)))


def finish(job: Job, part: int, first: int, back: Shuffle, kinds: tuple[str, ...], csv: bool) -> Path:
    """Write a part as it will stand in the output, with the released values in their place."""
    rows, released = back.read(part, 2)
    values = np.empty_like(released)
    values[rows - first] = released
    table = job.source.parts[part].read()
    given, frame = put_back(job, pl.DataFrame(table), values, kinds)
    if csv:
        path = job.folder / f"output-{part}.csv"
        dialect = job.source.dialect
        if dialect is not None:
            frame = CsvFile(frame, given, dialect).like(frame, job.columns, None)
        separator, newline = (dialect.delimiter, dialect.newline) if dialect else (",", "\n")
        content = frame.write_csv(separator=separator, line_terminator=newline, include_header=part == 0)
        # A mark at the start of the file stands once.
        encoding = dialect.encoding if dialect else "utf-8"
        path.write_bytes(content.encode(encoding if part == 0 else encoding.removesuffix("-sig")))
        return path
    from pyarrow import feather

    path = job.folder / f"output-{part}.arrow"
    feather.write_feather(_like(table, frame, job), str(path), compression="uncompressed")
    return path


def put_back(
    job: Job, frame: pl.DataFrame, values: Floats, kinds: tuple[str, ...]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the records of a part that are released, as given and with the released values."""
    if job.drop:
        columns = [job.source.numbers(frame, name, 0).cast(pl.Float64).fill_null(np.nan) for name in job.columns]
        frame = frame.filter(pl.Series(~np.isnan(np.column_stack(columns)).any(axis=1)))
    new = []
    for j, (name, kind) in enumerate(zip(job.columns, kinds, strict=True)):
        series = pl.Series(name, values[:, j]).fill_nan(None)
        if kind == "integer" and job.whole:
            series = series.cast(pl.Int64)
            if job.source.dialect is None:
                series = series.cast(frame[name].dtype)
        elif kind == "float32":
            series = series.cast(pl.Float32)
        if job.source.dialect is None:
            # Missing cells are the given ones, NaN or null.
            kept = frame[name].cast(series.dtype)
            series = pl.select(pl.when(series.is_null()).then(kept).otherwise(series).alias(name)).to_series()
        new.append(series)
    return frame, frame.with_columns(new)


def _like(table: Any, frame: pl.DataFrame, job: Job) -> Any:
    """Return the given Arrow table with new columns; its other columns and its metadata stay as they are."""
    if job.drop or job.source.dialect is not None:
        return frame.to_arrow()
    for name in job.columns:
        column = frame[name].to_arrow()
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at).with_type(column.type), column)
    return table


def spill_for_counting(job: Job, part: int, shuffle: Shuffle) -> None:
    """Write the released records of a part for the buckets of their values."""
    X, roots = job.load("check", part)
    shuffle.write(part, bucket_of_values(X, roots, shuffle.targets), [X, roots])


def count_bucket(job: Job, number: int, shuffle: Shuffle) -> None:
    """Count the groups of a bucket; one below k is an error."""
    X, roots = shuffle.read(number, 2)
    if len(X):
        verify(X, job.k, roots)


@njit(cache=True, nogil=True)
def bucket_of_values(X: Floats, roots: Ints, targets: int) -> Ints:
    """Send equal records to the same bucket; where they go does not matter otherwise."""
    found = np.empty(len(X), dtype=np.int64)
    word = np.empty(1)
    bits = word.view(np.uint64)
    for i in range(len(X)):
        key = np.uint64(roots[i])
        for j in range(X.shape[1]):
            # Adding 0 makes −0 equal 0; a missing value is one value.
            word[0] = np.nan if np.isnan(X[i, j]) else X[i, j] + 0.0
            key = (key ^ bits[0]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        found[i] = np.int64(key >> np.uint64(2)) % targets
    return found
