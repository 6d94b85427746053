"""assess(): put a masked table beside its original and measure what was lost and what is still at risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from shoal.assessment.assess_request import AssessRequest
from shoal.assessment.assessment import Assessment
from shoal.assessment.disclosure import attribute
from shoal.assessment.frequencies import table_change
from shoal.assessment.intervals import intervals
from shoal.assessment.linkage import cells_of, linkage
from shoal.assessment.measure_registry import ALL, MEASURES, choose_measures
from shoal.assessment.optional_measures import TablePair, take_measures
from shoal.assessment.ordered import order_columns
from shoal.assessment.record_pairs import check_cells, check_nearness, check_order, match_patterns
from shoal.assessment.regressions import fit_model
from shoal.assessment.risk import Risk, anonymity, uniqueness
from shoal.assessment.utility import utility
from shoal.core.checks import as_names
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.parameters import with_parameters_of
from shoal.core.types import Floats, Ints
from shoal.kinds.kind_registry import read_kinds
from shoal.masking.numbers import Numbers, read_pair
from shoal.masking.request import MaskRequest
from shoal.masking.verification import count_unique, identical_records, row_hashes
from shoal.tables.columns import Name
from shoal.tables.files import open_data
from shoal.tables.table import Table, check_name, number_rows, stratum_codes

__all__ = ["assess", "assess_arrays", "assess_request", "secret_codes"]

UNPAIRED = (
    "the masked records are in another order: what needs each of them beside its original was not measured "
    "(information loss, IL1s, rank correlation, cells changed, record linkage, interval disclosure)"
)


@with_parameters_of(AssessRequest)
def assess(original: Any, masked: Any, **parameters: Any) -> Assessment:
    """Measure how useful and how safe a masked table is, beside its original.

    Parameters
    ----------
    original, masked
        The same records in the same order: tables, arrays or paths of files.
    *parameters*

    Returns
    -------
    Assessment
        Utility and risk; it prints itself.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"name": list("abcd"), "sales": [1.0, 3.0, 7.0, 9.0]})
    >>> masked = firms.with_columns(sales=pl.Series([2.0, 2.0, 8.0, 8.0]))
    >>> found = assess(firms, masked)
    >>> found.utility.loss, found.risk.anonymity.k
    (10.0, 2)
    """
    return assess_request(original, masked, AssessRequest(**parameters))


def assess_request(original: Any, masked: Any, request: AssessRequest) -> Assessment:
    """Assess a masked table as a request says."""
    codes, strata_names, secrets = request.codes, as_names(request.by), as_names(request.confidential)
    shuffled, seed = request.shuffled, request.seed
    before, after = (open_data(data, numbers=request.names, thousands=request.thousands) for data in (original, masked))
    before = _beside(before, after, request.kept).coded(codes)
    kinds = read_kinds(request.kinds or {})
    columns = None if request.columns is None else request.names
    names = _chosen(before, after.coded(codes), columns, kinds, strata_names)
    _check_apart(before, after, names, by=strata_names, confidential=secrets)
    sure, notes = (True, [UNPAIRED]) if shuffled else check_order(before, after, names, strata_names, kinds)
    kinds = {name: kind for name, kind in kinds.items() if name not in strata_names}
    masking = MaskRequest(k=2, columns=names, kinds=kinds, missing_codes=codes)
    numbers, Y = _read(before, after, masking, strata_names, blanked=not shuffled)
    notes += [*numbers.scale_notes(), *_blank_notes(numbers)]
    if shuffled:
        one, two = match_patterns(numbers.X, Y)
        numbers, Y = replace(numbers, X=numbers.X[one]), Y[two]
    check_cells(numbers.X, Y, names)
    if not sure:
        notes = ["no column was left as it is, so that the order of the records could not be checked", *notes]
        if shuffled is None:
            check_nearness(numbers, Y)
    chosen = choose_measures(
        request.measures, paired=not shuffled, numeric=len(numbers.embedding.numbers) > 0,
        keys=request.keys, weights=request.weights, unit=request.unit,
    )  # fmt: skip
    notes += _left_out(request.measures, chosen)
    strata = stratum_codes(after, strata_names)
    # Cells as they are written: two codes for missing can be told apart.
    groups = number_rows(after.cells([*names, *strata_names]))[0]
    found = assess_arrays(
        numbers,
        Y,
        strata,
        groups=groups,
        k=request.k,
        confidential=[(name, *secret_codes(after, name)) for name in secrets],
        paired=not shuffled,
        seed=seed,
    )
    coded = after.coded(codes)
    risk: dict[str, Any] = {}
    more: dict[str, Any] = {
        "model": tuple(fitted for text in as_names(request.model) for fitted in fit_model(text, before, coded)),
        "tables": tuple(table_change(before, coded, as_names(crossed)) for crossed in as_names(request.tables)),
    }
    if chosen:
        known = [*names, *strata_names] if request.keys is None else as_names(request.keys)
        people = _people(before, request.weights, request.unit)
        both = TablePair(numbers, Y, strata, groups, tuple(known), _keys(known, before, coded), *people, seed)
        risk, eigenvalues = take_measures(chosen, both)
        more |= eigenvalues
    return replace(
        found,
        utility=replace(found.utility, **more),
        risk=replace(found.risk, **risk),
        notes=tuple(notes),
        by=tuple(strata_names),
        uniques=count_unique(row_hashes(after.cells(after.names))),
    )


def assess_arrays(
    before: Numbers,
    Y: Floats,
    strata: Ints,
    *,
    groups: Ints | None = None,
    k: int | None = None,
    confidential: Sequence[tuple[Name, Ints, bool]] = (),
    paired: bool = True,
    seed: int = 0,
) -> Assessment:
    """Do what `assess` does on prepared arrays.

    Parameters
    ----------
    before, Y
        The records before and after, as `read_pair` returns them.
    strata
        The released stratum of each record.
    groups
        The number of each released record, the same for identical ones of a stratum; by Y if not given.
    k
        The k that was promised.
    confidential
        Of each column its name, its codes and whether codes have an order.
    paired
        Whether the rows of `before` and Y are the same records.
    seed
        Decides samples.
    """
    X, embedding = before.X, before.embedding
    groups = identical_records(Y, strata) if groups is None else groups
    alike = identical_records(X, strata) if before.alike is None else before.alike
    placed = before.coordinates, before.place(Y)
    ordered = order_columns(X[:, embedding.numbers], Y[:, embedding.numbers])
    measured = utility(
        X, Y, list(before.names), embedding, placed=placed, ordered=ordered, weights=before.weights, seed=seed
    )
    if before.lost is not None:
        measured = measured.with_losses(*before.loss(Y))
    risk = Risk(
        anonymity=anonymity(groups, k),
        uniqueness=uniqueness(alike, groups),
        linkage=linkage(X, Y, groups, cells_of(X, strata), embedding, placed=placed, seed=seed) if paired else None,
        intervals=intervals(ordered) if paired and ordered else None,
        attributes=tuple(attribute(name, codes, groups, numeric=order) for name, codes, order in confidential),
    )
    return Assessment(len(X), measured if paired else measured.without_pairs(), risk)


def _beside(before: Table, after: Table, kept: Sequence[int] | Ints | None) -> Table:
    """Return the records of the original that the masked table holds."""
    if kept is not None:
        rows = np.asarray(kept, dtype=np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < before.rows:
            wrong = rows[(rows < 0) | (rows >= before.rows)][0]
            raise InputError(
                f"{parameter('kept')} must list row numbers of {parameter('original')}, which has {before.rows} "
                f"records; got {wrong}."
            )
        before = before.take(rows)
    if before.rows != after.rows:
        raise InputError(
            f"{parameter('masked')} must hold the records of {parameter('original')} one by one: it has {after.rows}, "
            f"the original {before.rows}. If records were left out, name the remaining ones in {parameter('kept')}."
        )
    if not before.rows:
        raise InputError(f"{parameter('original')} must have records, got none.")
    return before


def _check_apart(before: Table, after: Table, masked: Sequence[Name], **named: list[Name]) -> None:
    """Refuse columns that are in one table only, or masked, where they must not be."""
    for role, known in named.items():
        for name in known:
            check_name(name, before.names, role)
            check_name(name, after.names, role)
            if name in masked:
                raise InputError(f"{parameter(role)} names column {name!r}, which was masked. Name unmasked columns.")


def _read(
    before: Table, after: Table, request: MaskRequest, by: list[Name], *, blanked: bool
) -> tuple[Numbers, Floats]:
    """Return the numbers of both tables.

    Missing cells are empty in a masked column whose code for them is also the value of a group: there, it is a value.
    """
    read = partial(read_pair, request=request, by=by, blanked=blanked)
    numbers, Y = read(before, after.coded(request.codes))
    given = np.isnan(numbers.X if numbers.lost is None else np.fmax(numbers.X, numbers.lost)).sum(axis=0)
    more = np.isnan(Y).sum(axis=0) > given
    values = [name for name, found in zip(numbers.names, more, strict=True) if found and name in request.codes]
    if not values:
        return numbers, Y
    codes = {name: listed for name, listed in request.codes.items() if name not in values}
    try:
        other = read(before, after.coded(codes))
    except InputError:  # a word among numbers
        return numbers, Y
    return other if np.array_equal(np.isnan(other[1]).sum(axis=0)[more], given[more]) else (numbers, Y)


def _blank_notes(numbers: Numbers) -> list[str]:
    """Say which cells masking made missing."""
    lost = [] if numbers.lost is None else (~np.isnan(numbers.lost)).sum(axis=0).tolist()
    told = [f"{name} ({count:,})" for name, count in zip(numbers.names, lost, strict=False) if count]
    cells = (
        "cells that are missing in the masked table only count in the loss with all their squared deviation, and in no"
    )
    return [f"{cells} other measure: {', '.join(told)}"] if told else []


def _chosen(
    before: Table, after: Table, wanted: list[Name] | None, kinds: Mapping[Name, Any], apart: list[Name]
) -> list[Name]:
    """Return the masked columns: those named, else the numeric ones that differ and those whose kind is named."""
    if wanted is not None:
        if not wanted:
            raise InputError(f"{parameter('columns')} must name at least one column, got none.")
        for name in wanted:
            check_name(name, before.names, "columns")
            check_name(name, after.names, "columns")
        return wanted
    for name in kinds:
        check_name(name, before.names, "kinds")
        check_name(name, after.names, "kinds")
    numeric = [name for name in before.numeric_names() if name in after.numeric_names() and name not in apart]
    differ = [
        name
        for name in numeric
        if name not in kinds
        and not np.array_equal(before.column(name).values, after.column(name).values, equal_nan=True)
    ]
    differ += [name for name in kinds if name not in apart]
    if not differ:
        raise InputError(
            f"{parameter('columns')} is not given and no numeric column differs between {parameter('original')} and "
            f"{parameter('masked')}. Name the masked columns, or check that the two files are not the same."
        )
    return differ


def secret_codes(table: Table, name: Name) -> tuple[Ints, bool]:
    """Return the values of a column as codes 0, 1, …, and whether their order means something."""
    values = table.keys([name])["0"]
    codes = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return codes - codes.min(), values.dtype.is_numeric()


def _left_out(measures: Sequence[str] | str | None, chosen: Sequence[str]) -> list[str]:
    """Say which of all measures the tables do not allow."""
    left = [name for name in MEASURES if name not in chosen] if ALL in as_names(measures) else []
    return [f"not measured, for want of pairs of records or of numbers: {', '.join(left)}"] if left else []


def _keys(names: Sequence[Name], before: Table, after: Table) -> tuple[Ints, Ints]:
    """Return the codes of the keys in both tables."""
    if not names:
        raise InputError(f"{parameter('keys')} must name at least one column, got none.")
    for name in names:
        check_name(name, before.names, "keys")
        check_name(name, after.names, "keys")
    one, two = (np.column_stack([secret_codes(table, name)[0] for name in names]) for table in (before, after))
    return one, two


def _people(before: Table, weights: Name | None, unit: Name | None) -> tuple[Floats | None, Ints | None]:
    """Return how many people each record stands for, and the number of its unit; None where nothing tells."""
    for role, name in (("weights", weights), ("unit", unit)):
        if name is not None:
            check_name(name, before.names, role)
    found = None if weights is None else before.column(weights).values
    wrong = np.empty(0) if found is None else found[~(found > 0) | np.isinf(found)]
    if len(wrong):
        raise InputError(
            f"{parameter('weights')} must be a column of positive numbers, but {weights!r} holds {wrong[0]:g}. Use "
            "weights that sum to the population."
        )
    return found, None if unit is None else secret_codes(before, unit)[0]
