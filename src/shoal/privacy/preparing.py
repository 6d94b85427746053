"""The steps that publishing and exploring share: read the table, choose columns, check, clip.

Messages here name columns and record numbers, never a value of a published column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints
from shoal.privacy.domains import Bounds, BoundsGiven, read_bounds
from shoal.privacy.publication_methods import PublicationMethod
from shoal.privacy.units import Unit, check_unit, read_unit
from shoal.tables.choosing import choose_columns, open_data
from shoal.tables.columns import Name
from shoal.tables.table import Table, check_name

__all__ = ["Prepared", "check_group_size", "column_sets", "prepare"]


@dataclass(frozen=True)
class Prepared:
    """A table ready to be grouped: the chosen columns, as they are and clipped to their domains; whom ε protects."""

    table: Table
    names: list[Name]
    X: Floats
    bounds: Bounds
    clipped: Floats
    outside: Ints
    unit: Unit | None


def prepare(
    data: Any,
    columns: Sequence[Name] | Name | None,
    bounds: BoundsGiven,
    unit: Name | None,
    contributions: int | None,
    **csv: str | None,
) -> Prepared:
    """Read and check everything; the columns are those that have bounds, if none are named."""
    protected = read_unit(unit, contributions)
    wanted = None if columns is None else as_names(columns)
    if wanted is None and isinstance(bounds, Mapping):
        wanted = list(bounds)
    table = open_data(data, numbers=wanted or (), **csv)
    names = choose_columns(table.names, table.numeric_names(), wanted, apart=as_names(unit), to="publish")
    if not table.rows:
        raise InputError("Parameter 'data' has no records: there is nothing to publish.")
    if protected is not None:
        check_unit(protected, table, names)
    X = np.column_stack([_numbers(table, name) for name in names])
    found = read_bounds(bounds, names, X)
    return Prepared(table, names, X, found, found.clip(X), found.outside(X), protected)


def column_sets(
    entry: PublicationMethod, names: Sequence[Name], sets: Sequence[Sequence[Name]] | None
) -> list[list[int]]:
    """Return the column numbers of each set of columns that is grouped together."""
    if sets is None:
        return [list(range(len(names)))] if entry.joint else [[j] for j in range(len(names))]
    if entry.name != "mdav":
        raise InputError(
            f"Parameter 'sets' goes with method 'mdav' only, got method {entry.name!r}, which groups "
            f"{'whole records' if entry.joint else 'each column on its own'}."
        )
    listed = [as_names(members) for members in sets]
    flat = [name for members in listed for name in members]
    for name in flat:
        check_name(name, names, "sets")
    if sorted(map(str, flat)) != sorted(map(str, names)) or not all(listed):
        raise InputError("Parameter 'sets' must hold every published column exactly once, in sets that are not empty.")
    return [[list(names).index(name) for name in members] for members in listed]


def check_group_size(entry: PublicationMethod, k: object, n: int) -> int:
    """Return the least group size of a method, or refuse it."""
    if k is None:
        if entry.k == "needed":
            raise InputError(
                f"Parameter 'k' is needed by method {entry.name!r}: the number of records in a group. "
                "Explore the expected error first, or take method 'optimal', which chooses sizes itself."
            )
        return 1
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"Parameter 'k' must be a whole number of at least 1, got {k!r}.")
    if entry.k == "none" and k != 1:
        raise InputError(f"Parameter 'k' has no meaning for method {entry.name!r}, which makes no groups, got {k}.")
    if k > n:
        raise InputError(
            f"Parameter 'k' must not exceed the number of records: k={k}, but the table has {n}. Take a smaller k."
        )
    return int(k)


def _numbers(table: Table, name: Name) -> Floats:
    if name not in table.numeric_names():
        raise InputError(
            f"Column {name!r} must be numeric to be published with noise. Leave it out, or turn it into numbers."
        )
    values = table.column(name).values
    bad = ~np.isfinite(values)
    if bad.any():
        raise InputError(
            f"Column {name!r} must hold a finite number in every record, but {int(bad.sum())} do not, the first being "
            f"record {int(np.argmax(bad)) + 1}. Fill them in or leave those records out."
        )
    return values
