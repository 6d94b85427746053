"""assess(): put a masked table beside its original and measure what was lost and what is still at risk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.assessment.risk import Risk, anonymity, attribute, cells_of, intervals, linkage, uniqueness
from shoal.assessment.utility import LEVELS, Coefficient, Utility, regression, utility
from shoal.core.checks import as_names
from shoal.core.display import aligned, for_people, html_table, write_report
from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints
from shoal.masking.coding import Embedding
from shoal.masking.numbers import read_pair
from shoal.masking.request import MaskRequest
from shoal.masking.verification import identical_records
from shoal.tables.choosing import open_data
from shoal.tables.columns import Name
from shoal.tables.frames import Table, check_name, codes_of, strata_of

__all__ = ["Assessment", "assess", "assess_arrays", "percent", "plain"]


@dataclass(frozen=True)
class Assessment:
    """How useful and how safe a release is.

    Parameters
    ----------
    records
        The number of records.
    utility
        What is left of the statistics (`shoal.assessment.utility.Utility`).
    risk
        What an intruder could find out (`shoal.assessment.risk.Risk`); iterate over it to read every measure with
        what it means and what it does not mean.
    notes
        What a reader must know, in sentences.
    """

    records: int
    utility: Utility
    risk: Risk
    notes: tuple[str, ...] = ()

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return what is printed: tables of text, each a title, a head and rows."""
        found = self.utility
        head = ["column", "loss %", "mean", "change", "sd", "change", "Wasserstein", "KS", "rank corr."]
        columns = [
            [
                str(c.name),
                f"{c.loss:.3f}",
                for_people(c.mean.before, 5),
                percent(c.mean.change),
                for_people(c.sd.before, 5),
                percent(c.sd.change),
                f"{c.wasserstein:.4f}",
                f"{c.kolmogorov_smirnov:.4f}",
                plain(c.rank_correlation, 4),
            ]
            for c in found.numbers
        ]
        changed = [
            [str(c.name), c.kind, f"{c.loss:.3f}", f"{100 * c.changed:.2f}", f"{100 * c.variation:.2f}"]
            for c in found.categories
        ]
        levels = [f"{100 * level:g} %" for level in LEVELS]
        quantiles = [[str(c.name), *(percent(pair.change) for pair in c.quantiles)] for c in found.numbers]
        tables = [
            ("Utility", ["measure", "result"], _overall(found)),
            ("Columns (mean and sd before, and their relative change)", head, columns),
            ("Relative change of quantiles", ["column", *levels], quantiles),
            ("Columns of categories", ["column", "kind", "loss %", "cells changed %", "total variation %"], changed),
        ]
        tables = [table for table in tables if table[2]]
        if found.model:
            model = [
                [
                    c.name,
                    for_people(c.value.before, 5),
                    for_people(c.error, 3),
                    for_people(c.value.after, 5),
                    "yes" if c.inside else "no",
                ]
                for c in found.model
            ]
            tables.append(("Regression", ["coefficient", "before", "std. error", "after", "within 95 %"], model))
        tables.append(("Risk", ["measure", "result"], [[finding.name, finding.figure] for finding in self.risk]))
        return tables

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the assessment as one self-contained HTML page that holds no value of a single record.

        Quantiles and the regression of the original, which come close to that, are printed only.
        """
        return write_report("pages:assessment_page", path, self)

    def __str__(self) -> str:
        parts = [f"{self.records:,} records"]
        parts += [f"\n{title}\n{aligned([head, *rows], numeric=False)}" for title, head, rows in self.tables()]
        sentences = [f"{finding.name}: {finding.means} {finding.limits}" for finding in self.risk]
        parts.append("\nWhat the measures of risk mean, and do not mean\n" + "\n".join(sentences))
        if self.notes:
            parts.append("\n" + "\n".join(f"note: {note}" for note in self.notes))
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        from html import escape

        parts = [html_table(rows, head, title) for title, head, rows in self.tables()]
        meanings = "".join(
            f"<li><b>{escape(finding.name)}</b>: {escape(finding.means)} {escape(finding.limits)}</li>"
            for finding in self.risk
        )
        return "".join(parts) + f"<ul>{meanings}</ul>" + "".join(f"<p>{escape(note)}</p>" for note in self.notes)


def _overall(found: Utility) -> list[list[str]]:
    """Return the measures that are about all columns together."""
    rows = [["information loss", f"{found.loss:.4f} %"]]
    if found.numbers:
        rows.append(["IL1s", f"{found.il1s:.4f} %"])
    for what, changes in (
        ("a correlation", found.correlation_changes()),
        ("an association", found.association_changes()),
    ):
        for left, right, pair in changes[:1]:
            rows.append([f"largest change of {what}", f"{left} and {right}: {pair.before:.3f} to {pair.after:.3f}"])
    if found.numbers:
        rows.append(["mean change of a covariance", f"{found.covariance_change:.4f} of the product of the two sd"])
    if found.propensity is not None:
        right = f"{100 * found.propensity.auc:.0f} of 100 pairs (50 by chance)"
        figure = f"pMSE {found.propensity.pmse:.4f} of at most 0.25; a classifier is right in {right}"
        rows.append(["propensity score", figure])
    return rows


def assess(  # noqa: PLR0913  (what is known of two tables)
    original: Any,
    masked: Any,
    *,
    columns: Sequence[Name] | Name | None = None,
    kinds: Mapping[Name, Any] | None = None,
    k: int | None = None,
    by: Sequence[Name] | Name | None = None,
    confidential: Sequence[Name] | Name | None = None,
    model: str | None = None,
    kept: Sequence[int] | Ints | None = None,
    seed: int = 0,
    thousands: str | None = None,
) -> Assessment:
    """Measure how useful and how safe a masked table is, beside its original.

    Parameters
    ----------
    original, masked
        The same records in the same order: tables, arrays or paths of files.
    columns
        The masked columns; by default the numeric ones that differ, and those in `kinds`.
    kinds
        What columns hold that are no numbers, or numbers that are codes, as `shoal.mask` takes it.
    k
        The k that was promised, to be held against the recount.
    by
        Columns that an intruder knows and that were released as they are, such as the strata of the masking.
    confidential
        Columns that were released as they are and that nobody should learn of a person.
    model
        A regression to fit before and after, such as ``"profit ~ sales + wages"``.
    kept
        The row numbers of the original that the masked table holds (`Release.kept`), if records were left out.
    seed
        Decides the samples that large tables are measured by.
    thousands
        The sign between thousands in CSV files; none if not given.

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
    csv = {"thousands": thousands}
    before, after = (open_data(data, numbers=as_names(columns), **csv) for data in (original, masked))
    if kept is not None:
        before = before.take(np.asarray(kept, dtype=np.int64))
    if before.rows != after.rows:
        raise InputError(
            f"Parameter 'masked' must hold the records of 'original' one by one: it has {after.rows}, the original "
            f"{before.rows}. If records were left out, give their row numbers as kept=release.kept (--labels)."
        )
    if not before.rows:
        raise InputError("Parameter 'original' must have records, got none.")
    strata_names, secrets = as_names(by), as_names(confidential)
    names = _chosen(before, after, None if columns is None else as_names(columns), kinds or {}, strata_names)
    for parameter, known in (("by", strata_names), ("confidential", secrets)):
        for name in known:
            check_name(name, before.names, parameter)
            check_name(name, after.names, parameter)
            if name in names:
                raise InputError(
                    f"Column {name!r} stands in {parameter!r}, but it was masked. Name columns released as they are."
                )
    notes = _check_same_records(before, after, names)
    numbers, Y = read_pair(before, after, MaskRequest(k=2, columns=names, kinds=kinds))
    _check_cells(numbers.X, Y, names)
    notes += numbers.scale_notes()
    found = assess_arrays(
        numbers.X,
        Y,
        names,
        codes_of(strata_of(after, strata_names), after.rows),
        embedding=numbers.embedding,
        k=k,
        confidential=[(name, *_codes(after, name)) for name in secrets],
        seed=seed,
    )
    coefficients = _fit(model, before, after) if model is not None else ()
    return replace(found, utility=replace(found.utility, model=coefficients), notes=notes)


def assess_arrays(
    X: Floats,
    Y: Floats,
    names: list[Name],
    strata: Ints,
    *,
    embedding: Embedding | None = None,
    k: int | None = None,
    confidential: Sequence[tuple[Name, Ints, bool]] = (),
    seed: int = 0,
) -> Assessment:
    """Do what `assess` does on prepared arrays; a confidential column is (name, codes, whether codes have order)."""
    embedding = embedding or Embedding.of_numbers(X.shape[1])
    groups, numbers = identical_records(Y, strata), embedding.numbers
    risk = Risk(
        anonymity=anonymity(groups, k),
        uniqueness=uniqueness(X, groups, strata),
        linkage=linkage(X, Y, groups, cells_of(X, strata), embedding, seed=seed),
        intervals=intervals(X[:, numbers], Y[:, numbers]) if len(numbers) else None,
        attributes=tuple(attribute(name, codes, groups, numeric=order) for name, codes, order in confidential),
    )
    return Assessment(len(X), utility(X, Y, names, embedding, seed=seed), risk)


def _chosen(
    before: Table, after: Table, wanted: list[Name] | None, kinds: Mapping[Name, Any], apart: list[Name]
) -> list[Name]:
    """Return the masked columns: those named, else the numeric ones that differ and those whose kind is named."""
    if wanted is not None:
        if not wanted:
            raise InputError("Parameter 'columns' must name at least one column, got none.")
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
    differ += list(kinds)
    if not differ:
        raise InputError(
            "Parameter 'columns' is not given and no numeric column differs between 'original' and 'masked'. Name the "
            "masked columns, or check that the two files are not the same."
        )
    return differ


def _check_same_records(before: Table, after: Table, masked: list[Name]) -> tuple[str, ...]:
    """Refuse records in another order, as far as columns that were not masked can tell."""
    untouched = [name for name in before.names if name in after.names and name not in masked]
    if not untouched:
        return ("no column was left as it is, so that the order of the records could not be checked",)
    old, new = before.keys(untouched), after.keys(untouched)
    for i, name in enumerate(untouched):
        # polars writes no durations.
        cells = (
            frame[str(i)].to_physical() if frame[str(i)].dtype == pl.Duration else frame[str(i)] for frame in (old, new)
        )
        left, right = (series.cast(pl.String) for series in cells)
        differs = left.ne_missing(right)
        if old[str(i)].dtype.is_numeric() and new[str(i)].dtype.is_numeric():
            differs = old[str(i)].cast(pl.Float64).ne_missing(new[str(i)].cast(pl.Float64))
        if differs.any():
            record = int(differs.arg_true()[0]) + 1
            raise InputError(
                f"Column {name!r} differs in record {record}: if it was masked, name it in 'columns'; if not, the "
                "records are not in the same order in 'original' and 'masked', and must be."
            )
    return ()


def _check_cells(X: Floats, Y: Floats, names: list[Name]) -> None:
    for j, name in enumerate(names):
        if np.isinf(X[:, j]).any() or np.isinf(Y[:, j]).any():
            raise InputError(f"Column {name!r} must be finite, but holds an infinite value. Correct it first.")
        differs = np.isnan(X[:, j]) != np.isnan(Y[:, j])
        if differs.any():
            raise InputError(
                f"Column {name!r} must miss the same cells in 'original' and 'masked', but record "
                f"{int(np.argmax(differs)) + 1} has a value in one of them only. Leave such records out of both."
            )


def _codes(table: Table, name: Name) -> tuple[Ints, bool]:
    """Return the values of a column as codes 0, 1, …, and whether their order means something."""
    values = table.keys([name])["0"]
    codes = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return codes - codes.min(), values.dtype.is_numeric()


def _fit(model: str, before: Table, after: Table) -> tuple[Coefficient, ...]:
    target, _, right = (part.strip() for part in model.partition("~"))
    terms = [term.strip() for term in right.split("+")]
    if not target or not all(terms):
        raise InputError(f"Parameter 'model' must read 'y ~ a + b', got {model!r}.")
    for name in [target, *terms]:
        check_name(name, before.names, "model")
        check_name(name, after.names, "model")
    pairs = [
        (table.column(target).values, np.column_stack([table.column(name).values for name in terms]))
        for table in (before, after)
    ]
    complete = ~np.isnan(np.column_stack(pairs[0])).any(axis=1)
    if complete.sum() <= len(terms) + 1:
        raise InputError(
            f"Parameter 'model' has {len(terms) + 1} coefficients, but only {int(complete.sum())} records are complete "
            "in its columns. Name fewer columns."
        )
    return regression(pairs[0], pairs[1], terms)


def percent(change: float) -> str:
    """Write a relative change.

    Examples
    --------
    >>> percent(-0.0312)
    '−3.12 %'
    """
    return "–" if np.isnan(change) else f"{100 * change:+.2f} %".replace("-", "−")


def plain(value: float, digits: int) -> str:
    """Write a number, or a dash where there is none."""
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
