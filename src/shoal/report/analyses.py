"""Sections on analyses that the user chose: regressions and frequency tables, before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.assessment.assessment import FREQUENCIES, frequency_rows
from shoal.assessment.frequencies import TableChange
from shoal.assessment.regressions import Coefficient
from shoal.core.display import for_people
from shoal.report.sections import PageTable, Section

__all__ = ["frequencies", "regressions"]


def regressions(coefficients: Sequence[Coefficient]) -> Section | None:
    """Tell the coefficients that the masked table gives, and whether they could be those of the original."""
    if not coefficients:
        return None
    text = (
        "Fitted to the masked table; whether that lies in the 95 % interval of the fit to the original; and how much "
        "the two intervals share (100 %: they are equal)."
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
    """Tell how far the chosen frequency tables moved; no count is told."""
    if not tables:
        return None
    text = (
        "How many cells a table has, how many of them no masked record is in any more, the least share of records that "
        "would have to move to turn the table before into the one after (total variation), and the Hellinger distance "
        "(0 is best, 1 worst). Columns of many numbers are counted in classes, by the deciles of the original."
    )
    return Section("Frequency tables", [text], tables=[PageTable(FREQUENCIES, frequency_rows(tables))])
