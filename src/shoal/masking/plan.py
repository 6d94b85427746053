"""What is to be masked: columns, missing values and weights dealt with, k checked against every set of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from shoal.core.checks import check_k
from shoal.core.errors import InputError
from shoal.core.types import Bools, Floats, Ints
from shoal.tables.choosing import choose_columns
from shoal.tables.frames import Column, Name, Table, check_name, strata_of

__all__ = ["MISSING", "Missing", "Plan", "check_choice", "choose_masked", "plan_records"]

Missing = Literal["error", "group", "drop"]
MISSING: tuple[Missing, ...] = ("error", "group", "drop")


@dataclass(frozen=True)
class Plan:
    """What is to be masked: the records that stay, their numbers, and the sets that groups must not leave."""

    table: Table
    kept: Ints
    X: Floats
    cells: tuple[tuple[Ints, Ints], ...]  # (rows, columns present): a stratum, split by what its records miss
    weights: Floats | None
    integer_columns: tuple[Name, ...]
    notes: tuple[str, ...]


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a word that is not one of those a parameter may be."""
    if value not in choices:
        raise InputError(f"Parameter {name!r} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def choose_masked(table: Table, wanted: list[Name] | None, by: list[Name], weights: object) -> list[Name]:
    """Return the columns to mask."""
    for name in by:
        check_name(name, table.names, "by")
        if name in (wanted or ()):
            raise InputError(f"Column {name!r} stands in 'columns' and in 'by': it cannot be masked and split by.")
    return choose_columns(table, wanted, apart=[*by, *([weights] if isinstance(weights, (str, int)) else [])])


def plan_records(table: Table, names: list[Name], by: list[Name], weights: Any, missing: Missing, k: int) -> Plan:
    """Read the numbers, apply the missing-value policy and check k against every set of records."""
    columns = [table.column(name) for name in names]
    for column in columns:
        _check_finite(column)
    X = np.column_stack([column.values for column in columns])
    integer_columns = tuple(column.name for column in columns if column.integer)
    weight = _read_weights(table, weights)
    holes = np.isnan(X)
    incomplete: Bools = np.asarray(holes.any(axis=1))
    kept = np.arange(table.rows)
    notes: list[str] = []
    if incomplete.any():
        if missing == "error":
            raise _missing_error(names, holes)
        if missing == "drop":
            kept = np.flatnonzero(~incomplete)
            notes.append(f"{int(incomplete.sum())} records with missing values were left out (missing='drop')")
            table, X, holes = table.take(kept), X[kept], holes[kept]
            weight = None if weight is None else weight[kept]
        else:
            notes.append(f"{int(incomplete.sum())} records were masked among those that miss the same columns")
    check_k(k, len(X), "the table without records that miss a value" if len(kept) < len(incomplete) else "")

    cells = []
    for stratum in strata_of(table, by):
        check_k(k, len(stratum.rows), stratum.describe(by) if by else "")
        for pattern, rows in _patterns(holes, stratum.rows):
            if len(rows) < k:
                lacking = ", ".join(str(name) for name, hole in zip(names, pattern, strict=True) if hole)
                raise InputError(
                    f"Parameter 'missing' is 'group', but only {len(rows)} records of {stratum.describe(by)} miss "
                    f"{f'exactly: {lacking}' if lacking else 'nothing'}; k={k} are needed. Take missing='drop', a "
                    "smaller k, or mask fewer columns."
                )
            cells.append((rows, np.flatnonzero(~pattern)))
    return Plan(table, kept, X, tuple(cells), weight, integer_columns, tuple(notes))


def _patterns(holes: Bools, rows: Ints) -> Iterator[tuple[Bools, Ints]]:
    """Split records by the columns that they miss."""
    if not holes[rows].any():
        yield np.zeros(holes.shape[1], dtype=np.bool_), rows
        return
    patterns, inverse = np.unique(holes[rows], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        yield pattern, rows[inverse.ravel() == number]


def _check_finite(column: Column) -> None:
    infinite = np.isinf(column.values)
    if infinite.any():
        record = int(np.argmax(infinite))
        raise InputError(
            f"Column {column.name!r} must be finite, but record {record + 1} holds {column.values[record]}. "
            "Correct it, or make it missing and choose missing='drop' or 'group'."
        )


def _missing_error(names: list[Name], holes: Bools) -> InputError:
    counts = {name: int(count) for name, count in zip(names, holes.sum(axis=0), strict=True) if count}
    listed = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
    return InputError(
        f"Values are missing in column {listed}; {int(holes.any(axis=1).sum())} records are concerned. Choose "
        "missing='group' to mask them among records that miss the same columns, or missing='drop' to leave them out."
    )


def _read_weights(table: Table, weights: Any) -> Floats | None:
    if weights is None:
        return None
    if isinstance(weights, (str, int)):
        check_name(weights, table.names, "weights")
        values, what = table.column(weights).values, f"Column {weights!r}, the weights,"
    else:
        values, what = np.asarray(weights, dtype=np.float64), "Parameter 'weights'"
        if values.shape != (table.rows,):
            raise InputError(f"{what} must have one number a record ({table.rows}), got shape {values.shape}.")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        record = int(np.argmax(bad))
        raise InputError(f"{what} must be positive, but record {record + 1} holds {values[record]}.")
    return values
