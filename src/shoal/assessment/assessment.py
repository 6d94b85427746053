"""Assessment: the utility and the risk of a release, in figures and in words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shoal.assessment.frequencies import TableChange
from shoal.assessment.regressions import Coefficient
from shoal.assessment.risk import Risk
from shoal.assessment.utility import LEVELS, Utility
from shoal.core.display import aligned, for_people, html_table, write_report
from shoal.core.messages import count, summary_lines, visible
from shoal.tables.columns import Name

__all__ = ["FREQUENCIES", "Assessment", "frequency_rows", "percent", "plain"]

FREQUENCIES = ["table", "cells", "emptied", "total variation %", "Hellinger"]


@dataclass(frozen=True)
class Assessment:
    """The result of an assessment: the utility and the risk of a release.

    Parameters
    ----------
    records
        The number of records.
    utility
        Statistics before and after masking (`shoal.assessment.utility.Utility`).
    risk
        The success of an intruder (`shoal.assessment.risk.Risk`). Iterate over this object for every measure with its
        meaning and its limits.
    notes
        Further notes for the reader, as sentences.
    by
        The strata.
    """

    records: int
    utility: Utility
    risk: Risk
    notes: tuple[str, ...] = ()
    by: tuple[Name, ...] = ()

    @property
    def singled_out(self) -> int:
        """The number of masked records that are unique by the columns that an outsider can know.

        These are masked columns, strata and unchanged columns, without sensitive columns, weights and units.
        """
        return round(self.risk.uniqueness.after * self.records)

    @property
    def uniques(self) -> int:
        """An alias of `singled_out`."""
        return self.singled_out

    @property
    def verified(self) -> str:
        """The size of the smallest group in the masked table, in words that name the masked columns and the strata."""
        names = [str(column.name) for column in self.utility.columns]
        within = f" within {', '.join(map(str, self.by))}" if self.by else ""
        noun = "value" if len(names) == 1 else "combination"
        alike = self.risk.anonymity.k
        return f"every {noun} of {', '.join(names)}{within} is shared by at least {count(alike, 'record')}"

    @property
    def paired(self) -> bool:
        """Return True if every masked record was compared with its original."""
        return self.risk.linkage is not None

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the title, the header and the rows of each table to print, as text."""
        utility = self.utility
        head = ["column", "loss %", "mean", "change", "sd", "change", "Wasserstein", "KS", "rank corr."]
        columns = [
            [
                str(c.name),
                plain(c.loss, 3),
                for_people(c.mean.before, 5),
                percent(c.mean.change),
                for_people(c.sd.before, 5),
                percent(c.sd.change),
                f"{c.wasserstein:.4f}",
                f"{c.kolmogorov_smirnov:.4f}",
                plain(c.rank_correlation, 4),
            ]
            for c in utility.numbers
        ]
        changed = [
            [str(c.name), c.kind, plain(c.loss, 3), plain(100 * c.changed, 2), f"{100 * c.variation:.2f}"]
            for c in utility.categories
        ]
        levels = [f"{100 * level:g} %" for level in LEVELS]
        quantiles = [[str(c.name), *(percent(pair.change) for pair in c.quantiles)] for c in utility.numbers]
        tables = [
            ("Utility", ["measure", "result"], _overall(utility)),
            ("Columns (mean and sd before, and their relative change)", head, columns),
            ("Relative change of quantiles", ["column", *levels], quantiles),
            ("Categorical columns", ["column", "kind", "loss %", "cells changed %", "total variation %"], changed),
        ]
        tables = [table for table in tables if table[2]]
        tables += [_regression(model, utility.model) for model in dict.fromkeys(c.model for c in utility.model)]
        if utility.tables:
            tables.append(("Frequency tables", FREQUENCIES, frequency_rows(utility.tables)))
        tables.append(("Risk", ["measure", "result"], [[finding.name, finding.figure] for finding in self.risk]))
        return tables

    def _head(self) -> list[tuple[str, str]]:
        """Return the first lines of the summary."""
        alone = f"{self.singled_out:,} of {count(self.records, 'record')} by what an outsider can know"
        return [("counted", self.verified), ("singled out", alone)]

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the assessment as one self-contained HTML page without any value of a single record.

        The page omits quantiles and the original's regression, which almost reveal single values; the printed
        assessment shows them.
        """
        return write_report("pages:assessment_page", path, self)

    def __str__(self) -> str:
        parts = [f"{count(self.records, 'record')}\n{summary_lines(self._head())}"]
        parts += [f"\n{title}\n{aligned([head, *rows], numeric=False)}" for title, head, rows in self.tables()]
        sentences = [f"{finding.name}: {finding.means} {finding.limits}" for finding in self.risk]
        parts.append("\nWhat the measures of risk mean, and do not mean\n" + "\n".join(sentences))
        if self.notes:
            parts.append("\n" + "\n".join(f"note: {visible(note)}" for note in self.notes))
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        from html import escape

        parts = [html_table(self._head())]
        parts += [html_table(rows, head, title) for title, head, rows in self.tables()]
        meanings = "".join(
            f"<li><b>{escape(finding.name)}</b>: {escape(finding.means)} {escape(finding.limits)}</li>"
            for finding in self.risk
        )
        return "".join(parts) + f"<ul>{meanings}</ul>" + "".join(f"<p>{escape(note)}</p>" for note in self.notes)


def _overall(utility: Utility) -> list[list[str]]:
    """Return the rows of measures that cover all columns together."""
    rows = [["information loss", f"{utility.loss:.4f} %"]] if utility.paired else []
    if utility.numbers and utility.paired:
        rows.append(["IL1s", f"{utility.il1s:.4f} %"])
    for measure, changes in (
        ("a correlation", utility.correlation_changes()),
        ("an association", utility.association_changes()),
    ):
        for first, second, pair in changes[:1]:
            rows.append(
                [f"largest change of {measure}", f"{first} and {second}: {pair.before:.3f} to {pair.after:.3f}"]
            )
    if utility.numbers:
        rows.append(["mean change of a covariance", f"{utility.covariance_change:.4f} of the product of the two sd"])
    if utility.eigenvalues is not None:
        rows += utility.eigenvalues.rows()
    if utility.propensity is not None:
        hits = f"{100 * utility.propensity.auc:.0f} of 100 pairs (50 by chance)"
        figure = f"pMSE {utility.propensity.pmse:.4f} of at most 0.25; a classifier is right in {hits}"
        rows.append(["propensity score", figure])
    return rows


def _regression(model: str, coefficients: Sequence[Coefficient]) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [
            c.name,
            for_people(c.value.before, 5),
            for_people(c.error, 3),
            for_people(c.value.after, 5),
            for_people(c.error_after, 3),
            "yes" if c.inside else "no",
            plain(100 * c.overlap, 0),
        ]
        for c in coefficients
        if c.model == model
    ]
    head = ["coefficient", "before", "std. error", "after", "std. error", "within 95 %", "overlap %"]
    return f"Regression: {model}", head, rows


def frequency_rows(tables: Sequence[TableChange]) -> list[list[str]]:
    """Return one row per frequency table."""
    return [
        [
            " × ".join(f"{name} (classes)" if name in t.classes else str(name) for name in t.columns),
            f"{t.cells:,}",
            f"{t.emptied:,}",
            f"{100 * t.variation:.2f}",
            f"{t.hellinger:.4f}",
        ]
        for t in tables
    ]


def percent(change: float) -> str:
    """Return a relative change as text.

    Examples
    --------
    >>> percent(-0.0312)
    '−3.12 %'
    """
    return "–" if np.isnan(change) else f"{100 * change:+.2f} %".replace("-", "−")


def plain(value: float, digits: int) -> str:
    """Return a number as text, or a dash for NaN."""
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
