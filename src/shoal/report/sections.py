"""Sections of a report, each made from one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.assessment.assessment import FREQUENCIES, frequency_rows, percent, plain
from shoal.assessment.frequencies import TableChange
from shoal.assessment.regressions import Coefficient
from shoal.assessment.risk import Risk
from shoal.assessment.utility import Utility
from shoal.comparison.trials import Comparison, Price, Trial
from shoal.core.display import for_people
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints
from shoal.kinds.kind import Embedding
from shoal.promises.dominance import is_published
from shoal.report.figures import (
    Figure,
    bars,
    category_shares,
    correlations,
    distribution,
    group_sizes_chart,
    price_curves,
    risk_utility_map,
)
from shoal.report.protection import protected_bins, protected_values
from shoal.report.withheld_figures import WITHHELD, lost_share
from shoal.tables.columns import Name

__all__ = [
    "APPROXIMATE",
    "PageTable",
    "Section",
    "columns",
    "columns_tables",
    "details",
    "frequencies",
    "groups",
    "losses",
    "losses_table",
    "moved",
    "prices",
    "regressions",
    "relations",
    "risk_utility",
    "risks",
    "trials_table",
]

# Greatest numbers of figures and rows, because readers ignore more; the page states how many are omitted.
SHOWN_COLUMNS = 24
SHOWN_PAIRS = 15
SHOWN_GROUPS = 10
# The mean and standard deviation of fewer values would almost reveal the values.
FEWEST = 10
ONCE = " Every record counts once here, regardless of its weight."
OTHERS_ONCE = " All figures except mean and standard deviation count every record once."
APPROXIMATE = (
    "Anyone who knows a person's group knows the person's values approximately. Extremes are softened, not removed: a "
    "group of very large records is still a group of very large records."
)


@dataclass(frozen=True)
class PageTable:
    """A table of text. If `numeric`, all columns except the first are aligned as numbers; `note` precedes the table."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: bool = True
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page, with its heading."""

    title: str  # heading
    text: Sequence[str]  # paragraphs
    # Figures, tables and code blocks that follow the text.
    figures: Sequence[Figure] = ()
    tables: Sequence[PageTable] = ()
    code: Sequence[tuple[str, str]] = ()  # blocks of text to copy: heading and text


def groups(sizes: Ints, k: int) -> Section:
    """Return the section with the sizes of the groups."""
    mean = float(sizes.mean())
    text = (
        f"Each bar counts the groups of one size. No group has fewer than {k} records; the mean is {mean:.1f}. Groups "
        "larger than necessary protect more and lose more."
    )
    return Section("Groups", [text], [group_sizes_chart(sizes, k)])


def columns(X: Floats, Y: Floats, embedding: Embedding, utility: Utility, k: int) -> Section:
    """Return the section that shows every column before and after masking, drawn from protected counts."""
    order = sorted(range(len(utility.columns)), key=lambda j: -utility.columns[j].loss)[:SHOWN_COLUMNS]
    figures = []
    for j in sorted(order):
        column, coding = utility.columns[j], embedding.codings[j]
        if not is_published(column.loss):
            continue
        if not coding.numeric:
            shares = protected_values(X[:, j], Y[:, j], coding.values, k)
            if shares is not None:
                figures.append(category_shares(str(column.name), shares, column.values))
            continue
        bins = protected_bins(X[:, j], Y[:, j], k)
        if bins is not None:
            figures.append(distribution(str(column.name), bins, column.values))
    text = [
        (
            "The pale area shows the column before masking, the dark line after. The closer they are, the better the "
            "column is preserved. Skewed columns are drawn on a scale that compresses large values; the outer bars are "
            f"open-ended, and every bar represents at least {k} records."
        )
    ]
    if utility.categories:
        text.append(
            "For categories, the bar shows the share of records before, the dark line the share after; categories that "
            "are rare among the original or the released values are combined."
        )
    if len(utility.columns) > len(order):
        text.append(f"Of {len(utility.columns)} columns, the {len(order)} with the largest loss are drawn.")
    if len(figures) < len(order):
        text.append("Columns with a single value, or too few values to be shown safely, are not drawn." + WITHHELD)
    return Section("Columns before and after", text, figures, columns_tables(utility))


def columns_tables(utility: Utility) -> list[PageTable]:
    """Return the tables with the changes of the numeric and of the categorical columns."""
    tables = [_numbers_table(utility), _categories_table(utility)]
    return [table for table in tables if table.rows]


def _categories_table(utility: Utility) -> PageTable:
    rows = []
    for c in utility.categories:
        enough = c.values >= FEWEST
        shares = [
            f"{100 * share:.1f} %" if enough and not np.isnan(share) else "–" for share in (c.changed, c.variation)
        ]
        rows.append([str(c.name), c.kind, _lost(c.loss) if utility.paired else "–", *shares])
    note = (
        "For columns of categories: the information lost, the share of cells released with another value, and the "
        "least share of cells that would have to change to turn the distribution before into the one after (total "
        "variation, 0 is best)."
    )
    return PageTable(["column", "kind", "lost", "cells changed", "total variation"], rows, note=note)


def _numbers_table(utility: Utility) -> PageTable:
    rows = []
    for column in utility.numbers:
        enough = column.values >= FEWEST
        rows.append(
            [
                str(column.name),
                for_people(column.mean.before) if enough else "–",
                percent(column.mean.change) if enough else "–",
                for_people(column.sd.before) if enough else "–",
                percent(column.sd.change) if enough else "–",
                plain(column.rank_correlation, 3),
                f"{column.kolmogorov_smirnov:.3f}",
                plain(column.wasserstein, 3),
            ]
        )
    head = ["column", "mean", "change", "sd", "change", "rank corr.", "KS", "Wasserstein"]
    weighted = ", both weighted" if utility.weighted else ""
    note = (
        f"Mean and standard deviation (sd) before masking{weighted}, each with its relative change; the rank "
        "correlation of original and masked values (1: the order is kept); the largest difference between the two "
        "cumulative distributions (KS, 0 is best); and the average distance between the two distributions, in standard "
        f"deviations (Wasserstein, 0 is best).{OTHERS_ONCE if utility.weighted else ''}"
    )
    return PageTable(head, rows, note=note)


def losses(utility: Utility) -> Section:
    """Return the section with the loss of each column."""
    public = [column for column in utility.columns if is_published(column.loss)]
    ordered = sorted(public, key=lambda column: -column.loss)[:SHOWN_COLUMNS]
    text = (
        "The share of each column's variance that is lost. A column that is little related to the others loses more, "
        "because records that are similar in most columns need not be similar in that column."
    )
    names = [str(column.name) for column in ordered]
    values = [column.loss for column in ordered]
    alternative = "Information loss of each column in percent: " + ", ".join(
        f"{name} {for_people(value, 3)}" for name, value in zip(names, values, strict=True)
    )
    if len(public) < len(utility.columns):
        text += WITHHELD
    return Section(
        "Loss per column", [text], [bars(names, values, "information lost, %", alternative)] if public else []
    )


def losses_table(losses: Mapping[Name, float]) -> Section:
    """Return the section with the loss of every column in a table."""
    rows = [[str(name), _lost(loss)] for name, loss in losses.items()]
    text = "The share of a column's variance that its masked values no longer show."
    if not all(map(is_published, losses.values())):
        text += WITHHELD
    return Section("Loss of each column", [text], tables=[PageTable(["column", "lost"], rows)])


def relations(utility: Utility) -> Section | None:
    """Return the section with correlations and associations before and after; None if there are none."""
    changes = [*utility.correlation_changes(), *utility.association_changes()]
    if not changes:
        return None
    changes.sort(key=lambda change: -abs(change[2].after - change[2].before))
    pairs = [(f"{first} – {second}", pair) for first, second, pair in changes]
    largest = pairs[:SHOWN_PAIRS]
    text = [
        (
            "Group means usually move correlations away from zero, because differences within groups are lost. The "
            "pairs that changed most come first."
        )
    ]
    if utility.weighted:
        text[0] += ONCE
    if utility.categories:
        text.append(
            "Pairs with a column of categories have an association from 0 to 1: Cramér's V for two columns without an "
            "order, the correlation ratio for one such column with numbers or ranks, otherwise the rank correlation "
            "without its sign."
        )
    if len(pairs) > len(largest):
        rest = abs(pairs[len(largest)][1].after - pairs[len(largest)][1].before)
        text.append(f"{len(pairs) - len(largest)} more pairs changed by at most {rest:.3f} each.")
    measure = "Correlations and associations" if utility.categories else "Correlations"
    alternative = f"{measure} before and after: " + "; ".join(
        f"{name} {pair.before:.2f} to {pair.after:.2f}" for name, pair in largest
    )
    if utility.eigenvalues is not None:
        text.append(": ".join(utility.eigenvalues.rows()[0]).capitalize() + " (0 is best).")
    if utility.propensity is not None:
        text.append(
            "Can a classifier distinguish masked from original records by their values, squares and products? Of 100 "
            f"pairs, it would pick the masked one in {100 * utility.propensity.auc:.0f}; 50 is chance. Its propensity "
            f"score has a mean squared error of {utility.propensity.pmse:.4f} (0 is best, 0.25 worst). Repeated "
            "values, which are visible in any masked table, are not counted here."
        )
    return Section("Relations between columns", text, [correlations(largest, measure.lower(), alternative)])


def risks(risk: Risk) -> Section:
    """Return the section with the measures of risk, their meaning and their limits."""
    rows = [[finding.name, finding.figure, finding.means, finding.limits] for finding in risk]
    return Section(
        "Risk",
        ["No single figure proves that a table is safe. Each of these answers one question and leaves others open."],
        tables=[PageTable(["measure", "result", "what it means", "what it does not mean"], rows, numeric=False)],
    )


def risk_utility(trials: Sequence[Trial], ringed: tuple[str, int] | None) -> Section:
    """Return the section with the risk–utility map."""
    meaning = (
        "Each mark is one choice of method and group size: the further left, the more useful; the lower, the safer. "
        "Risk is the share of records that an intruder with the original values links correctly, or that random choice "
        "within the right group finds, whichever is greater. Filled marks, joined by the dashed line, are not beaten "
        "by any other mark in both."
    )
    if len({trial.promise for trial in trials}) > 1:
        meaning += " Runs are compared only with runs that have the same promise about confidential columns."
    text = [meaning]
    if ringed is not None:
        text.append(f"The ring marks {ringed[0]} at k = {ringed[1]}.")
    if len(trials) == 1:
        text = ["The mark is this release. To compare other methods and group sizes, run shoal compare."]
    # Runs that do not protect whole records would squeeze all others into a corner of the map.
    public = [trial for trial in trials if is_published(trial.loss)]
    drawn = [trial for trial in public if trial.anonymous] or public
    if len(public) < len(trials):
        text[-1] += WITHHELD
    absent = dict.fromkeys(trial.method for trial in trials if not trial.anonymous and trial not in drawn)
    for method in absent:
        linked = [100 * trial.linked for trial in trials if trial.method == method]
        between = f"{min(linked):.0f} to {max(linked):.0f}" if len(linked) > 1 else f"{linked[0]:.0f}"
        text.append(f"Not drawn: {method}, which is not k-anonymous; {between} % of its records are linked correctly.")
    alternative = "Risk–utility map: " + "; ".join(
        f"{t.name} k={t.k}: loss {t.loss:.2f} %, risk {100 * t.risk:.1f} %" for t in drawn
    )
    return Section("Risk and utility", text, [risk_utility_map(drawn, ringed, alternative)] if drawn else [])


def prices(priced: Sequence[Price]) -> Section | None:
    """Return the section with the costs of promises; None if no promise was tried with several values."""
    if not priced:
        return None
    axes = {
        "diversity": "l: the promised diversity   (right is safer)",
        "closeness": "t: the greatest distance from the table   (left is safer)",
    }
    text = [
        (
            "A promise about a confidential column costs information: groups must be larger, or contain less similar "
            "records. The lines show the loss with each promise; the loss without it is dotted."
        )
    ]
    figures = []
    for parameter, label in axes.items():
        curve = [price for price in priced if price.parameter == parameter]
        if curve:
            description = "; ".join(map(_price_text, curve))
            text.append(f"{parameter.capitalize()}: {description}.")
            figures.append(price_curves(curve, label, f"Information loss by {parameter}: {description}"))
    return Section("What promises cost", text, figures)


def _price_text(price: Price) -> str:
    """Describe the cost of a promise for a method."""
    sign = "l" if price.parameter == "diversity" else "t"
    losses = [f"{for_people(loss, 3)} % at {sign} = {value:g}" for value, loss in price.losses]
    without = [] if price.without is None else [f"{for_people(price.without, 3)} % without"]
    return f"{price.name} at k = {price.k} loses {', '.join([*losses, *without])}"


def moved(Z: Floats, W: Floats, labels: Ints) -> Section:
    """Return the section with the groups that moved farthest, without distances, which would reveal values."""
    squares = np.nansum(np.square(W - Z), axis=1)
    sizes = group_sizes(labels)
    sums = np.bincount(labels, squares)
    # List the groups by number, not by distance; distances that differ only by rounding count as equal.
    order = np.sort(np.argsort(-np.round(sums / sizes, 9), kind="stable")[:SHOWN_GROUPS])
    rows = [[f"{int(group)}", f"{int(sizes[group])}"] for group in order]
    text = (
        "Records without close neighbours must move farthest to be protected. These are the groups whose records moved "
        "most, by their number in the labels file. The distances are withheld: for a small group they would reveal the "
        "values."
    )
    table = PageTable(["group", "records"], rows)
    return Section("Records that moved farthest", [text], tables=[table])


def trials_table(comparison: Comparison) -> Section:
    """Return the section with all runs of a comparison and the left-out methods."""
    head, *rows = comparison.cells()
    text = [
        (
            "Loss is the share of the variance that is lost; linked is the share of records whose nearest original is "
            "their own; chance is the share that random choice within groups would give. Runs marked Pareto are not "
            "beaten by any run with the same promise in both loss and linkage; balanced is the one among them nearest "
            "to no loss and no risk."
        )
    ]
    text += [f"Left out: {method}: {why}." for method, why in comparison.left_out.items()]
    return Section("All runs", text, tables=[PageTable(head, rows)])


def details(listings: Sequence[tuple[str, str]], commands: Sequence[tuple[str, str]]) -> Section:
    """Return the section with everything needed to repeat a run."""
    text = ["With the original table, these lines reproduce the masked table."] if commands else []
    return Section("How it was done, and how to repeat it", text, code=[*commands, *listings])


def _lost(loss: float) -> str:
    """Return a published loss as text."""
    return f"{for_people(loss, 3)} %" if is_published(loss) else lost_share(loss)


def regressions(coefficients: Sequence[Coefficient]) -> Section | None:
    """Return the section with the coefficients of the masked table, compared with those of the original."""
    if not coefficients:
        return None
    text = (
        "The value fitted to the masked table; whether it is within the 95 % interval of the fit to the original; and "
        "the overlap of the two intervals (100 %: they are equal)."
    )
    head = ["coefficient", "masked", "within 95 %", "overlap"]
    tables = []
    for model in dict.fromkeys(c.model for c in coefficients):
        of_model = [c for c in coefficients if c.model == model]
        rows = [[c.name, for_people(c.value.after), "yes" if c.inside else "no", _overlap(c)] for c in of_model]
        tables.append(PageTable(head, rows, note=model))
    return Section("Regression", [text], tables=tables)


def _overlap(coefficient: Coefficient) -> str:
    return "–" if np.isnan(coefficient.overlap) else f"{100 * coefficient.overlap:.0f} %"


def frequencies(tables: Sequence[TableChange]) -> Section | None:
    """Return the section with the changes of the chosen frequency tables, without any count."""
    if not tables:
        return None
    text = (
        "The number of cells of a table, the number of cells that became empty by masking, the least share of records "
        "that would have to move to turn the table before into the one after (total variation), and the Hellinger "
        "distance (0 is best, 1 worst). Columns with many numbers are divided into classes by the deciles of the "
        "original."
    )
    return Section("Frequency tables", [text], tables=[PageTable(FREQUENCIES, frequency_rows(tables))])
