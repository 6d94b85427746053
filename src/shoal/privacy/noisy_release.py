"""Execution of a publication plan: draw the noise, arrange the rows, build the released table and write its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shoal.core.errors import FileError, InputError, ShoalError, VerificationError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.kinds.column import CATEGORY, FLOAT, Storage
from shoal.privacy.confidential_table import ConfidentialTable
from shoal.privacy.estimates import Estimate, Estimates, estimate_column
from shoal.privacy.noise import TAIL, noisy_means
from shoal.privacy.publication_plan import PublicationPlan
from shoal.privacy.randomised_response import estimate_shares, randomise
from shoal.privacy.synthesis import CountPlan, synthesise
from shoal.tables.addresses import suffix_of
from shoal.tables.columns import Name, NewColumn, check_released
from shoal.tables.files import read_back, write_table
from shoal.tables.outputs import folder_beside, moved_together, written_path
from shoal.tables.table import Table

__all__ = ["NoisyColumns", "build_table", "draw_noise", "rehearse", "write_release"]

INTEGER = Storage("int64", whole=True)


@dataclass(frozen=True)
class NoisyColumns:
    """The noisy values and codes of a release, in the order of release, and estimates with error bars."""

    values: Floats
    answer_codes: list[Ints]
    estimates: Mapping[Name, Estimates]
    tree: tuple[tuple[Name, Name], ...] = ()


def draw_noise(plan: PublicationPlan) -> NoisyColumns:
    """Draw all noise for a release; later steps do not depend on the confidential values."""
    prepared = plan.prepared
    if plan.counting is not None:
        return _synthetic_records(prepared, plan.counting, plan.rng)
    values, estimates = np.empty_like(prepared.X), {}
    for grouping in plan.groupings:
        for j in grouping.columns:
            means = noisy_means(
                prepared.clipped[:, j],
                grouping.labels,
                grouping.sizes,
                lower=float(prepared.bounds.lower[j]),
                upper=float(prepared.bounds.upper[j]),
                epsilon=float(plan.budgets[j]),
                touched=grouping.touched,
                integer=prepared.whole[j],
                truncate=False,
                rng=plan.rng,
            )
            estimates[prepared.names[j]] = estimate_column(
                means, grouping.sizes, float(plan.scales[j]), ordered=plan.ordered
            )
            if plan.ordered and plan.monotone:
                means = in_ascending_order(means, grouping.sizes)
            values[:, j] = means[grouping.labels]
    codes = []
    for answer, epsilon in zip(prepared.answers, plan.budgets[len(prepared.names) :].tolist(), strict=True):
        codes.append(randomise(answer.codes, len(answer.categories), epsilon, plan.rng))
        shares, error = estimate_shares(codes[-1], len(answer.categories), epsilon)
        by_category = {
            name: Estimate(share, error) for name, share in zip(answer.categories, shares.tolist(), strict=True)
        }
        estimates[answer.name] = Estimates(shares=by_category)
    if plan.truncate:
        values = prepared.bounds.clip(values)
    values = np.where(prepared.whole, np.rint(values), values)
    _check_finite(values)
    return NoisyColumns(*_arranged(plan, values, codes), estimates)


def _synthetic_records(
    prepared: ConfidentialTable, counting: CountPlan, rng: np.random.Generator | None
) -> NoisyColumns:
    """Measure counts with noise and draw records from their model; (ε, δ) covers the result."""
    records = np.column_stack([prepared.clipped, *(answer.codes for answer in prepared.answers)])
    synthesis = synthesise(records, counting.bins, counting.spending, prepared.contributions, rng)
    names, answers = prepared.published, synthesis.values[:, len(prepared.names) :]
    values = synthesis.values[:, : len(prepared.names)]
    _check_finite(values)
    tree = tuple((names[first], names[second]) for first, second in synthesis.tree)
    return NoisyColumns(values, [codes.astype(np.int64) for codes in answers.T], {}, tree)


def _check_finite(values: Floats) -> None:
    if not np.isfinite(values).all():
        raise VerificationError("Refusing to release a non-finite value. Nothing was released.")


def in_ascending_order(means: Floats, sizes: Ints) -> Floats:
    """Return the ascending means nearest to the noisy means, by isotonic regression.

    M. Hay, V. Rastogi, G. Miklau and D. Suciu, Boosting the accuracy of differentially private histograms through
    consistency (2010). The true means of sorted groups ascend, and ascending vectors form a convex set. The point of
    this set nearest to the noisy means is never farther from the true means than the noisy means are. The mean of the
    column is preserved.

    Examples
    --------
    >>> in_ascending_order(np.array([1.0, 5.0, 3.0]), np.array([2, 2, 2])).tolist()
    [1.0, 4.0, 4.0]
    """
    from scipy.optimize import isotonic_regression

    ascending: Floats = isotonic_regression(means, weights=sizes).x
    return ascending


def _arranged(plan: PublicationPlan, values: Floats, answer_codes: list[Ints]) -> tuple[Floats, list[Ints]]:
    """Arrange the released values in the order of release; only some methods keep the order of the input."""
    if plan.method.keeps_rows:
        return values, answer_codes
    # Rows follow the order of the groups, so that a row does not reveal whose record it was.
    values = values.copy()
    for grouping in plan.groupings:
        order = np.argsort(grouping.labels, kind="stable")
        values[:, grouping.columns] = values[order][:, grouping.columns]
    # Columns with separate orders are shuffled, so that their cells do not appear to belong together.
    if len(plan.groupings) + len(answer_codes) > 1:
        rng = plan.rng or np.random.default_rng()
        for grouping in plan.groupings:
            values[:, grouping.columns] = values[rng.permutation(len(values))][:, grouping.columns]
        answer_codes = [rng.permutation(codes) for codes in answer_codes]
    return values, answer_codes


def build_table(plan: PublicationPlan, values: Floats, answer_codes: list[Ints]) -> Table:
    """Build the table of released columns, in the column order of the input and without the original metadata.

    Labels of SPSS, Stata and SAS files are dropped, because the labels of a protected column name its original values.
    A CSV file is written in shoal's dialect, not in the dialect of the confidential file.
    """
    prepared = plan.prepared
    table = prepared.table.in_own_dialect()
    new = {
        name: NewColumn(np.ascontiguousarray(values[:, j]), _storage(plan, j), rounded=prepared.whole[j])
        for j, name in enumerate(prepared.names)
    }
    for answer, codes in zip(prepared.answers, answer_codes, strict=True):
        new[answer.name] = NewColumn(codes.astype(np.float64), CATEGORY, categories=answer.categories)
    released = table.released(new).only(released_names(plan))
    check_released(released.names, released_names(plan))
    return released


def _storage(plan: PublicationPlan, j: int) -> Storage:
    """Return the storage type of a column; without truncation, a narrow type might not hold the values."""
    if plan.prepared.whole[j]:
        return INTEGER
    return (plan.prepared.table[plan.prepared.names[j]].numbers().storage or FLOAT) if plan.truncate else FLOAT


def released_names(plan: PublicationPlan) -> list[Name]:
    """Return the names of the released columns in the order of the input."""
    return [name for name in plan.prepared.table.names if name in plan.prepared.published or name in plan.unprotected]


def rehearse(plan: PublicationPlan, output: str | os.PathLike[str] | None) -> None:
    """Build a dummy release of each column's most extreme possible value; write it to a temporary folder."""
    prepared = plan.prepared
    farther = np.where(-prepared.bounds.lower > prepared.bounds.upper, prepared.bounds.lower, prepared.bounds.upper)
    if not plan.truncate:
        farther = farther + np.sign(farther) * TAIL * plan.scales
    answer_codes = [np.zeros(len(prepared.X), dtype=np.int64) for _ in prepared.answers]
    with np.errstate(over="ignore"):
        released = build_table(plan, np.tile(farther, (len(prepared.X), 1)), answer_codes)
    names = released_names(plan)
    for name, end in zip(prepared.names, farther, strict=True):
        value = released[released.names[names.index(name)]].numbers().values[0]
        if not abs(value - end) <= 1e-2 * abs(end) + 0.5:
            raise InputError(
                f"{parameter('bounds')} must fit the type of column {name!r}, which cannot represent {end:g}. "
                "Convert the column to float64, or use narrower bounds."
            )
    if output is not None:
        with folder_beside(Path(output)) as folder:
            write_release(released, folder / Path(output).name)


def write_release(released: Table, output: str | os.PathLike[str]) -> None:
    """Write the released table completely or not at all, and check the columns of the written file."""
    if suffix_of(Path(output)).startswith(".tsv"):
        released = released.in_own_dialect("\t")
    try:
        with moved_together():
            write_table(released, Path(output))
            check_released(read_back(written_path(output), released).names, released.names)
    except ShoalError:
        raise
    except Exception as error:  # libraries raise various errors for unsupported names, nested cells or mixed types
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise FileError(
            f"Output {Path(output).name} cannot hold the released table: {reason}. Use another format, or leave out "
            "the column."
        ) from error
