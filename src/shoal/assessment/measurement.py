"""Assessment of a masked table: compare it with its original and measure its utility and risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from shoal.assessment.assess_request import AssessRequest
from shoal.assessment.assessment import Assessment
from shoal.assessment.coded_records import CodedRecords, read_pair
from shoal.assessment.disclosure import attribute
from shoal.assessment.frequencies import table_change
from shoal.assessment.intervals import intervals
from shoal.assessment.linkage import cells_of, linkage
from shoal.assessment.measure_registry import ALL, MEASURES, TablePair, choose_measures, take_measures
from shoal.assessment.record_pairs import check_cells, check_nearness, check_order, is_unchanged, match_patterns
from shoal.assessment.regressions import fit_model
from shoal.assessment.risk import Risk, UnitUniqueness, anonymity, uniqueness
from shoal.assessment.statistics import order_columns
from shoal.assessment.utility import utility
from shoal.core.checks import as_names
from shoal.core.errors import InputError, closest
from shoal.core.messages import listed, parameter
from shoal.core.parameters import with_parameters_of
from shoal.core.types import Floats, Ints
from shoal.kinds.kind_registry import read_kinds
from shoal.masking.column_patterns import expand_patterns
from shoal.masking.request import MaskRequest
from shoal.masking.steps import unit_words
from shoal.masking.verification import count_unique, identical_records, row_hashes
from shoal.promises.distinct_units import fingerprints
from shoal.tables.columns import Name
from shoal.tables.files import open_data
from shoal.tables.table import Table, check_name, number_rows, stratum_codes

__all__ = ["assess", "assess_arrays", "assess_request", "secret_codes"]

UNPAIRED = (
    "the masked records are in another order: measures that need each record with its original were omitted "
    "(information loss, IL1s, rank correlation, cells changed, record linkage, interval disclosure)"
)


@with_parameters_of(AssessRequest)
def assess(original: Any, masked: Any, **parameters: Any) -> Assessment:
    """Measure the utility and the risk of a masked table, compared with its original.

    Parameters
    ----------
    original, masked
        Tables, arrays or paths of files with the same records in the same order.
    *parameters*

    Returns
    -------
    Assessment
        Utility and risk; its text is a report.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"name": list("abcd"), "sales": [1.0, 3.0, 7.0, 9.0]})
    >>> masked = firms.with_columns(sales=pl.Series([2.0, 2.0, 8.0, 8.0]))
    >>> assessment = assess(firms, masked)
    >>> assessment.utility.loss, assessment.risk.anonymity.k
    (10.0, 2)
    """
    return assess_request(original, masked, AssessRequest(**parameters))


def _read_tables(original: Any, masked: Any, request: AssessRequest) -> tuple[Table, Table]:
    """Read both tables; only the original may have lines above its header, other sheets or a query."""
    before = open_data(original, numbers=request.names, reading=request.reading)
    plain = replace(request.reading, skip_rows=0, no_header=False, sheet=None, query=None)
    after = open_data(masked, numbers=request.names, reading=plain)
    _check_released(request.roles, after.names)
    return before, after


def _check_released(roles: Any, names: Sequence[Name]) -> None:
    """Refuse a masked table that lacks a column released by its roles."""
    for name, column in (roles or {}).items():
        if column.role in ("key", "stratum", "sensitive") and name not in names:
            raise InputError(
                f"{parameter('masked')} has no column {name!r}, whose role is {column.role!r} in {parameter('roles')}."
                f"{closest(name, names)} Assess a table that was masked with these roles."
            )


def assess_request(original: Any, masked: Any, request: AssessRequest) -> Assessment:
    """Assess a masked table as specified by a request."""
    request = expand_patterns(request, original)
    codes, strata_names, secrets = request.codes, as_names(request.by), as_names(request.confidential)
    shuffled, seed = request.shuffled, request.seed
    before, after = _read_tables(original, masked, request)
    original_records = before.rows
    before = _paired_original(before, after, request.kept).coded(codes)
    kinds = {name: kind for name, kind in read_kinds(request.kinds or {}).items() if name not in secrets}
    columns = None if request.columns is None else request.names
    names = _masked_columns(before, after.coded(codes), columns, kinds, strata_names)
    _check_unmasked(before, after, names, by=strata_names, confidential=secrets)
    sure, notes = (True, [UNPAIRED]) if shuffled else check_order(before, after, names, strata_names, kinds)
    kinds = {name: kind for name, kind in kinds.items() if name not in strata_names}
    masking = MaskRequest(k=2, columns=names, kinds=kinds, missing_codes=codes)
    for role, name in (("weights", request.weights), ("unit", request.unit)):
        if name is not None:
            check_name(name, before.names, role)
    unknown = {*names, *strata_names, *secrets, request.weights, request.unit}
    unchanged = [name for name in before.names if name in after.names and name not in unknown]
    if not shuffled:
        unchanged = [name for name in unchanged if is_unchanged(before, after, name)]
    numbers, Y = _read(before, after, masking, [*strata_names, *unchanged], blanked=not shuffled)
    notes += [*numbers.scale_notes(), *_blank_notes(numbers)]
    if left_out := original_records - before.rows:
        numbers = replace(numbers, left_out=left_out / max(before.rows, 1))
        notes.append(_suppressed_note(left_out / original_records))
    if shuffled:
        one, two = match_patterns(numbers.X, Y)
        numbers, Y = replace(numbers, X=numbers.X[one]), Y[two]
    check_cells(numbers.X, Y, names)
    if not sure:
        notes = ["there is no unchanged column by which the order of the records could be checked", *notes]
        if shuffled is None:
            check_nearness(numbers, Y)
    measures = choose_measures(
        request.measures, paired=not shuffled, numeric=len(numbers.embedding.numbers) > 0, keys=request.keys
    )
    notes += [*_unmeasured_notes(request.measures, measures), *_dropped_notes(request.roles, after.names)]
    strata = stratum_codes(after, strata_names)
    # Compare cells as written, because an outsider can distinguish two codes for missing values.
    groups = number_rows(after.cells([*names, *strata_names]))[0]
    known = number_rows(after.cells([*strata_names, *unchanged]))[0] if unchanged else strata
    assessment = assess_arrays(
        numbers,
        Y,
        strata,
        groups=groups,
        known=known,
        k=request.k,
        confidential=[(name, *secret_codes(after, name)) for name in secrets],
        paired=not shuffled,
        seed=seed,
    )
    coded = after.coded(codes)
    risk: dict[str, Any] = {"units": _units(after, request.unit, [*names, *strata_names, *unchanged])}
    on_request: dict[str, Any] = {
        "model": tuple(fitted for text in as_names(request.model) for fitted in fit_model(text, before, coded)),
        "tables": tuple(table_change(before, coded, as_names(crossed)) for crossed in as_names(request.tables)),
    }
    if measures:
        keys = [*names, *strata_names] if request.keys is None else as_names(request.keys)
        people = _people(before, request.weights, request.unit)
        tables = TablePair(numbers, Y, strata, groups, tuple(keys), _key_codes(keys, before, coded), *people, seed)
        risks, eigenvalues = take_measures(measures, tables)
        risk |= risks
        on_request |= eigenvalues
    return replace(
        assessment,
        utility=replace(assessment.utility, **on_request),
        risk=replace(assessment.risk, **risk),
        notes=tuple(notes),
        by=tuple(strata_names),
    )


def assess_arrays(
    before: CodedRecords,
    Y: Floats,
    strata: Ints,
    *,
    groups: Ints | None = None,
    known: Ints | None = None,
    k: int | None = None,
    confidential: Sequence[tuple[Name, Ints, bool]] = (),
    paired: bool = True,
    seed: int = 0,
) -> Assessment:
    """Assess original and released records that were read into arrays.

    `before` and Y are the records as returned by `read_pair`; if `paired`, their rows correspond. Identical released
    records of a stratum have the same number in `groups`, which is derived from Y by default. Records with equal strata
    and equal unchanged columns have the same number in `known`, by default the number of their stratum. `confidential`
    contains the name and the codes of each sensitive column, and True if the codes have an order. The seed determines
    samples.
    """
    X, embedding = before.X, before.embedding
    groups = identical_records(Y, strata) if groups is None else groups
    known = strata if known is None else known
    known_groups = identical_records([groups, known])
    alike = identical_records(X, known) if before.alike is None else before.alike
    placed = before.coordinates, before.place(Y)
    ordered = order_columns(X[:, embedding.numbers], Y[:, embedding.numbers])
    measured = utility(
        X, Y, list(before.names), embedding, placed=placed, ordered=ordered, weights=before.weights, seed=seed
    )
    if before.lost is not None or before.left_out:
        measured = measured.with_losses(*before.loss(Y))
    risk = Risk(
        anonymity=anonymity(groups, k),
        uniqueness=uniqueness(alike, known_groups),
        linkage=linkage(X, Y, known_groups, cells_of(X, known), embedding, placed=placed, seed=seed)
        if paired
        else None,
        intervals=intervals(ordered) if paired and ordered else None,
        attributes=tuple(attribute(name, codes, groups, numeric=order) for name, codes, order in confidential),
    )
    return Assessment(len(X), measured if paired else measured.without_pairs(), risk)


def _paired_original(before: Table, after: Table, row_numbers: Sequence[int] | Ints | None) -> Table:
    """Return the original records that the masked table contains."""
    if row_numbers is not None:
        rows = np.asarray(row_numbers, dtype=np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < before.rows:
            wrong = rows[(rows < 0) | (rows >= before.rows)][0]
            raise InputError(
                f"{parameter('kept')} must contain row numbers of {parameter('original')}, which has {before.rows} "
                f"records; got {wrong}."
            )
        before = before.take(rows)
    if before.rows != after.rows:
        raise InputError(
            f"{parameter('masked')} must contain exactly the records of {parameter('original')}: it has {after.rows}, "
            f"the original {before.rows}. If records were left out, list the remaining ones in {parameter('kept')}."
        )
    if not before.rows:
        raise InputError(f"{parameter('original')} must have records, got none.")
    return before


def _check_unmasked(before: Table, after: Table, masked: Sequence[Name], **roles: list[Name]) -> None:
    """Refuse columns missing from either table, and masked columns where unmasked ones are required."""
    for role, columns in roles.items():
        for name in columns:
            check_name(name, before.names, role)
            check_name(name, after.names, role)
            if name in masked:
                raise InputError(f"{parameter(role)} names column {name!r}, which was masked. Use unmasked columns.")


def _read(
    before: Table, after: Table, request: MaskRequest, by: list[Name], *, blanked: bool
) -> tuple[CodedRecords, Floats]:
    """Return both tables as numbers.

    If a masked column's code for missing values is also the value of a group, only its empty cells count as missing.
    """
    read = partial(read_pair, request=request, by=by, blanked=blanked)
    numbers, Y = read(before, after.coded(request.codes))
    missing = np.isnan(numbers.X if numbers.lost is None else np.fmax(numbers.X, numbers.lost)).sum(axis=0)
    emptied = np.isnan(Y).sum(axis=0) > missing
    values = [name for name, empty in zip(numbers.names, emptied, strict=True) if empty and name in request.codes]
    if not values:
        return numbers, Y
    codes = {name: column_codes for name, column_codes in request.codes.items() if name not in values}
    try:
        reread = read(before, after.coded(codes))
    except InputError:  # a non-numeric word among numbers
        return numbers, Y
    same = np.array_equal(np.isnan(reread[1]).sum(axis=0)[emptied], missing[emptied])
    return reread if same else (numbers, Y)


def _blank_notes(numbers: CodedRecords) -> list[str]:
    """Return a note on the cells that masking made missing."""
    lost = [] if numbers.lost is None else (~np.isnan(numbers.lost)).sum(axis=0).tolist()
    counts = [f"{name} ({count:,})" for name, count in zip(numbers.names, lost, strict=False) if count]
    cells = (
        "cells that are missing only in the masked table count in the loss with their full squared deviation, and in no"
    )
    return [f"{cells} other measure: {', '.join(counts)}"] if counts else []


def _masked_columns(
    before: Table, after: Table, columns: list[Name] | None, kinds: Mapping[Name, Any], strata_names: list[Name]
) -> list[Name]:
    """Return the masked columns: by default, numeric columns that differ and columns with a user-set kind."""
    if columns is not None:
        if not columns:
            raise InputError(f"{parameter('columns')} must name at least one column, got none.")
        for name in columns:
            check_name(name, before.names, "columns")
            check_name(name, after.names, "columns")
        return columns
    for name in kinds:
        check_name(name, before.names, "kinds")
        check_name(name, after.names, "kinds")
    numeric = [name for name in before.numeric_names() if name in after.numeric_names() and name not in strata_names]
    differ = [
        name
        for name in numeric
        if name not in kinds
        and not np.array_equal(before[name].numbers().values, after[name].numbers().values, equal_nan=True)
    ]
    differ += [name for name in kinds if name not in strata_names]
    if not differ:
        raise InputError(
            f"{parameter('columns')} is not set, and no numeric column differs between {parameter('original')} and "
            f"{parameter('masked')}. Set the masked columns, or check that the two files are not the same."
        )
    return differ


def secret_codes(table: Table, name: Name) -> tuple[Ints, bool]:
    """Return the values of a column as codes 0, 1, …, and True if their order is meaningful."""
    values = table.keys([name])["0"]
    codes = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return codes - codes.min(), values.dtype.is_numeric()


def _unmeasured_notes(request: Sequence[str] | str | None, measures: Sequence[str]) -> list[str]:
    """Return a note on the measures that the tables do not allow, if all were requested."""
    omitted = [name for name in MEASURES if name not in measures] if ALL in as_names(request) else []
    return [f"not measured without paired records or numbers: {', '.join(omitted)}"] if omitted else []


def _suppressed_note(share: float) -> str:
    return f"{100 * share:.3g} % of the records were suppressed; each counts in the loss with all of its information"


def _dropped_notes(roles: Any, names: Sequence[Name]) -> list[str]:
    """Return a note on the columns of the masked table whose role is drop."""
    present = [name for name, column in (roles or {}).items() if column.role == "drop" and name in names]
    return [f"the masked table holds columns whose role is drop: {listed(present)}"] if present else []


def _units(after: Table, unit: Name | None, outsider: Sequence[Name]) -> UnitUniqueness | None:
    """Count the units of the masked table that are unique by all their records together; None without a unit."""
    if unit is None or unit not in after.names:
        return None
    words = fingerprints(unit_words(after, unit), row_hashes(after.cells(outsider)))
    return UnitUniqueness(count_unique(words), len(words), unit)


def _key_codes(names: Sequence[Name], before: Table, after: Table) -> tuple[Ints, Ints]:
    """Return the codes of the keys in both tables."""
    if not names:
        raise InputError(f"{parameter('keys')} must name at least one column, got none.")
    for name in names:
        check_name(name, before.names, "keys")
        check_name(name, after.names, "keys")
    one, two = (np.column_stack([secret_codes(table, name)[0] for name in names]) for table in (before, after))
    return one, two


def _people(before: Table, weights: Name | None, unit: Name | None) -> tuple[Floats | None, Ints | None]:
    """Return the number of people per record, and the number of each record's unit; None without such columns."""
    people = None if weights is None else before[weights].numbers().values
    wrong = np.empty(0) if people is None else people[~(people > 0) | np.isinf(people)]
    if len(wrong):
        raise InputError(
            f"{parameter('weights')} must be a column of positive numbers, but {weights!r} holds {wrong[0]:g}. Use "
            "weights that sum to the population."
        )
    return people, None if unit is None else secret_codes(before, unit)[0]
