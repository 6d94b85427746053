"""publish(): from a confidential table to a differentially private one, in one direction.

read → choose columns → clip to public bounds → share the budget → group → rehearse → record the budget → noise → write.
Algorithms 1 and 2 of the paper are the same steps here: columns that are grouped together share their groups. A budget
that is recorded is spent whatever happens, so everything that can fail has been done before, with other numbers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.checks import as_names
from shoal.core.errors import FileError, InputError, SeededNoiseWarning, ShoalError, UnprotectedColumnWarning
from shoal.core.types import Floats, Ints
from shoal.privacy.budgets import Budget, check_epsilon, split_budget
from shoal.privacy.domains import BoundsGiven
from shoal.privacy.groups import Grouping, group_columns
from shoal.privacy.guarantee import guarantee
from shoal.privacy.laplace import check_grid, check_grids, noisy_means
from shoal.privacy.ledger import spend
from shoal.privacy.preparing import Prepared, check_group_size, column_sets, prepare
from shoal.privacy.publication import Publication
from shoal.privacy.publication_methods import find_publication_method
from shoal.privacy.units import budgets_of_records
from shoal.tables.choosing import check_output
from shoal.tables.columns import FLOAT, Name, NewColumn
from shoal.tables.files import folder_beside, write_table
from shoal.tables.table import Table, check_name

__all__ = ["publish"]


def publish(  # noqa: PLR0913 - the parameters of a whole run
    data: Any,
    epsilon: float,
    *,
    bounds: BoundsGiven,
    columns: Sequence[Name] | Name | None = None,
    method: str = "optimal",
    k: int | None = None,
    budget: Budget = "even",
    sets: Sequence[Sequence[Name]] | None = None,
    keep: Sequence[Name] | Name | None = None,
    unit: Name | None = None,
    contributions: int | None = None,
    ledger: str | os.PathLike[str] | None = None,
    total_budget: float | None = None,
    seed: int | None = None,
    output: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Publication:
    """Publish a table with differential privacy: groups' means with Laplace noise, shared by all records of a group.

    Read the `guarantee` of the result before you release it: for ``"optimal"``, ``"mdav-ir"`` and ``"mdav"`` it takes
    the groups as given, for ``"none"`` and ``"insensitive"`` it covers the whole way from raw to released table.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table, a NumPy array, or the path of a file.
    epsilon
        The privacy budget of this release: of a record, or of a unit with all of its records.
    bounds
        The domain of each column, ``{column: (lower, upper)}``, from public knowledge. Values outside are clipped and
        counted. ``"data"`` reads 1.5 times the maximum from the data: for experiments, with a `DataBoundsWarning`.
    columns
        The columns to publish; those that have bounds, if not given. All others are dropped.
    method
        ``"optimal"``, ``"mdav-ir"``, ``"mdav"``, ``"insensitive"`` or ``"none"``.
    k
        The number of records in a group; for ``"optimal"`` the least number, 1 if not given.
    budget
        How columns share epsilon: ``"even"`` (columns that are grouped together share theirs in proportion to the
        width of their domains), ``"sensitivity"`` (all in proportion to the width, which leaves a column in small
        units next to nothing), or a mapping of columns to shares that sum to epsilon.
    sets
        For ``"mdav"``: disjoint sets of columns, each grouped on its own (Algorithm 2); all columns together if not
        given (Algorithm 1).
    keep
        Columns to release unchanged, without any protection, with an `UnprotectedColumnWarning`.
    unit, contributions
        The column that says whose records they are, and the greatest number of records m that one of them can have,
        from public knowledge. Then epsilon covers a unit with all of its records: the noise is that of epsilon / m for
        a record. A table in which somebody has more is refused. The column is not released. Without them a person with
        m records is protected by m times epsilon only.
    ledger, total_budget
        A JSON file in which the budget is recorded before anything is released, and refused when the data set's total
        budget would be exceeded.
    seed
        Draw reproducible noise, for experiments, with a `SeededNoiseWarning`: such a result must not be released.
    output
        Write the released table to this file, as a whole or not at all.
    delimiter, encoding, decimal
        How a CSV file is written; taken from the file itself if not given.
    thousands
        The sign between thousands in a CSV file; none if not given.

    Returns
    -------
    Publication
        The released table, the guarantee in words, budgets, expected errors.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"name": list("abcdef"), "sales": [1.0, 9.0, 2.0, 8.5, 1.5, 9.5]})
    >>> release = publish(firms, epsilon=1e6, bounds={"sales": (0, 10)}, k=3)
    >>> release.data.columns
    ['sales']
    >>> release.data["sales"].round(2).to_list()
    [1.5, 9.0, 1.5, 9.0, 1.5, 9.0]
    """
    chosen = find_publication_method(method)
    epsilon = check_epsilon(epsilon)
    check_output(data, output)
    if ledger is None and total_budget is not None:
        raise InputError("Parameter 'total_budget' goes with a ledger. Name the ledger's file in 'ledger'.")

    csv = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    ready = prepare(data, columns, bounds, unit, contributions, **csv)
    kept = _kept(ready, as_names(keep), chosen.name)
    size = check_group_size(chosen, k, len(ready.X))
    numbers = column_sets(chosen, ready.names, sets)
    rng = _generator(seed)
    shares = split_budget(epsilon, budget, ready.names, ready.bounds.width, numbers)
    budgets = budgets_of_records(shares, ready.unit)
    check_grids(len(ready.X), budgets, ready.names)
    groupings = group_columns(chosen, ready.clipped, ready.bounds, budgets, numbers, size)
    for grouping in groupings:
        for j in grouping.columns:
            check_grid(len(ready.X), float(budgets[j]), grouping.touched, ready.names[j])
    by_column = _by_column(ready, groupings, budgets, shares)
    promise = guarantee(
        chosen,
        epsilon,
        ready.names,
        kept=kept,
        unit=ready.unit,
        data_bounds=ready.bounds.from_data,
        seeded=rng is not None,
    )
    _check_release(ready, kept, output if ledger is not None else None)

    parameters = {
        "epsilon": epsilon,
        "method": method,
        "columns": ready.names,
        "k": None if k is None else size,
        "budget": budget if isinstance(budget, str) else "given",
        "sets": [[ready.names[j] for j in members] for members in numbers],
        "keep": kept,
        "unit": unit,
        "contributions": None if ready.unit is None else ready.unit.contributions,
        "bounds": "data" if ready.bounds.from_data else "given",
        "seed": seed,
    }
    entry = None
    if ledger is not None:
        details = {
            "method": method,
            "definition": chosen.definition,
            "columns": [str(name) for name in ready.names],
            **({} if ready.unit is None else {"unit": str(unit), "contributions": ready.unit.contributions}),
        }
        entry = spend(ledger, epsilon, total_budget, details)

    values = _perturb(ready, groupings, budgets, rng)
    if chosen.name == "insensitive":
        # Along the order of the groups: a row must not tell whose record it was.
        values = values[np.argsort(groupings[0].labels, kind="stable")]
    released = _table(ready, values, kept)
    if output is not None:
        _write(released, output)

    return Publication(
        data=released.native,
        guarantee=promise,
        definition=chosen.definition,
        epsilon=epsilon,
        unit=ready.unit,
        **by_column,
        ledger_entry=entry,
        parameters=parameters,
        notes=tuple(_notes(ready, kept, chosen.name)),
    )


def _generator(seed: object) -> np.random.Generator | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"Parameter 'seed' must be a whole number of at least 0, got {seed!r}.")
    warnings.warn(
        "The noise is drawn from a seed: whoever knows or guesses the seed can take it off, so nothing is guaranteed. "
        "For experiments only; do not release the result.",
        SeededNoiseWarning,
        stacklevel=3,
    )
    return np.random.default_rng(int(seed))


def _kept(ready: Prepared, names: list[Name], method: str) -> list[Name]:
    """Return the columns that are released as they are, with a warning."""
    for name in names:
        check_name(name, ready.table.names, "keep")
        if ready.unit is not None and name == ready.unit.column:
            raise InputError(
                f"Column {name!r} stands in 'unit' and in 'keep': it says whose records they are and is not released."
            )
        if name in ready.names:
            raise InputError(
                f"Column {name!r} stands in 'columns' and in 'keep': it is either protected or kept as it is."
            )
    if not names:
        return []
    if method == "insensitive":
        raise InputError(
            f"Parameter 'keep' does not go with method 'insensitive', got {', '.join(map(str, names))}: its rows "
            "belong to nobody in particular, so no other column can stand beside them."
        )
    warnings.warn(
        f"Columns released as they are, without any protection: {', '.join(map(str, names))}. They can tell who a "
        "record belongs to; epsilon does not cover them.",
        UnprotectedColumnWarning,
        stacklevel=3,
    )
    return names


def _by_column(ready: Prepared, groupings: Sequence[Grouping], budgets: Floats, shares: Floats) -> dict[str, Any]:
    """Return what a publication says of each column: its share of ε, its groups, its noise and the expected SSE."""
    scales, errors = np.empty(len(ready.names)), np.empty(len(ready.names))
    labels, sizes = np.empty(ready.X.shape, dtype=np.int64), {}
    for grouping in groupings:
        averaging = grouping.averaging_error(ready.X, ready.clipped)
        for column, error in zip(grouping.columns, averaging, strict=True):
            scales[column] = grouping.noise_scale(float(ready.bounds.width[column]), float(budgets[column]))
            errors[column] = error + grouping.noise_error(float(scales[column]))
            labels[:, column], sizes[column] = grouping.labels, grouping.sizes
    bounds = np.column_stack([ready.bounds.lower, ready.bounds.upper])

    def named(values: Floats | Ints) -> dict[Name, Any]:
        return dict(zip(ready.names, values.tolist(), strict=True))

    return {
        "budgets": named(shares),
        "bounds": {name: tuple(ends) for name, ends in named(bounds).items()},
        "scales": named(scales),
        "clipped": named(ready.outside),
        "expected_sse": named(errors),
        "labels": labels,
        "sizes": {name: sizes[column] for column, name in enumerate(ready.names)},
    }


def _check_release(ready: Prepared, kept: Sequence[Name], output: str | os.PathLike[str] | None) -> None:
    """Build and write a table like the release, with the farther bound of each column in place of its values."""
    farther = np.where(-ready.bounds.lower > ready.bounds.upper, ready.bounds.lower, ready.bounds.upper)
    with np.errstate(over="ignore"):
        released = _table(ready, np.tile(farther, (len(ready.X), 1)), kept)
    names = _released_names(ready, kept)
    for name, end in zip(ready.names, farther, strict=True):
        if not np.isfinite(released.column(released.names[names.index(name)]).values[0]):
            raise InputError(
                f"Parameter 'bounds' must fit the type of column {name!r}, which has no number as large as {end:g}. "
                "Turn the column into float64, or give closer bounds."
            )
    if output is not None:
        with folder_beside(Path(output)) as folder:
            _write(released, folder / Path(output).name)


def _perturb(
    ready: Prepared, groupings: Sequence[Grouping], budgets: Floats, rng: np.random.Generator | None
) -> Floats:
    """Return the released value of every record."""
    values = np.empty_like(ready.X)
    for grouping in groupings:
        for column in grouping.columns:
            means = noisy_means(
                ready.clipped[:, column],
                grouping.labels,
                grouping.sizes,
                lower=float(ready.bounds.lower[column]),
                upper=float(ready.bounds.upper[column]),
                epsilon=float(budgets[column]),
                touched=grouping.touched,
                rng=rng,
            )
            values[:, column] = means[grouping.labels]
    return values


def _released_names(ready: Prepared, kept: Sequence[Name]) -> list[Name]:
    return [name for name in ready.table.names if name in ready.names or name in kept]


def _table(ready: Prepared, values: Floats, kept: Sequence[Name]) -> Table:
    """Return the table of the released columns, in the order of the input and without metadata of the original.

    Labels of SPSS, Stata and SAS files stay behind: those of a protected column name its original values.
    """
    new = {
        name: NewColumn(np.ascontiguousarray(values[:, j]), ready.table.column(name).kind or FLOAT)
        for j, name in enumerate(ready.names)
    }
    return ready.table.released(new).only(_released_names(ready, kept))


def _write(released: Table, output: str | os.PathLike[str]) -> None:
    try:
        write_table(released, Path(output))
    except ShoalError:
        raise
    except Exception as error:  # whatever the format's library raises: it refuses names, nested cells, mixed types …
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise FileError(
            f"Output {Path(output).name} cannot hold the released table: {reason}. Take another format, or leave out "
            "the column."
        ) from error


def _notes(ready: Prepared, kept: Sequence[Name], method: str) -> list[str]:
    notes = []
    dropped = [str(name) for name in ready.table.names if name not in ready.names and name not in kept]
    if dropped:
        notes.append(f"columns without protection were dropped: {', '.join(dropped)}")
    if kept:
        notes.append(f"released as they are, without protection: {', '.join(map(str, kept))}")
    if ready.bounds.from_data:
        notes.append("bounds were read from the data: for experiments, not for release")
    if method == "insensitive":
        notes.append("rows stand in the order of the groups, not in the order of the input")
    return notes
