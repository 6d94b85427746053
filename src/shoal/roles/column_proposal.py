"""The proposed role and kind of a column, from its own name and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from shoal.core.messages import count
from shoal.kinds.column import Cells
from shoal.kinds.date import Date, fits
from shoal.kinds.kind_registry import NUMBERS, kind_of_cells
from shoal.roles.evidence import Evidence
from shoal.roles.recognition import is_code, is_weight, repeats_like_unit
from shoal.tables.columns import Name
from shoal.tables.identifiers import SMALL, looks_like_identifier
from shoal.tables.table import stored_indexes

__all__ = ["ProposedColumn", "propose_column", "share_of_zeros", "with_format"]

ZEROS = 0.95  # share of zeros above which nonzero values are outliers


@dataclass(frozen=True)
class ProposedColumn:
    """A column and its proposed role and kind.

    Parameters
    ----------
    name
        The name.
    kind
        ``"float"``, ``"integer"``, ``"boolean"``, ``"nominal"`` (text, or numbers that are codes), ``"ordinal"``,
        ``"date"``, ``"time"`` or ``"duration"``.
    role
        ``"key"`` (masked), ``"stratum"``, ``"identifier"`` (left out), ``"derived"`` (a function of another column,
        left out), ``"confidential"`` (sensitive: unchanged and measured), ``"weight"``, ``"unit"`` (person, household
        or firm) or ``"other"`` (empty or constant).
    reason
        The reason for the role and, if the column is dropped, for dropping it. It quotes no cells except codes for
        missing values.
    distinct
        The number of distinct values.
    missing
        The number of missing values.
    codes
        Probable codes for missing values, with their counts.
    """

    name: Name
    kind: str
    role: str
    reason: str
    distinct: int
    missing: int
    codes: Mapping[int | str, int] = field(default_factory=dict)


def propose_column(name: Name, evidence: Evidence, *, persons: bool) -> ProposedColumn:
    """Propose the kind and role of a column; `persons` is True if the table describes persons, with body weights."""
    cells, codes = evidence.cells[name], evidence.codes[name]
    kind = evidence.table.scale(name) or kind_of_cells(cells)
    code = kind in NUMBERS and is_code(name, cells, evidence.words)
    kind = "nominal" if code else kind
    what = f"a code of {count(cells.distinct, 'number')}" if code else _what(kind, cells)
    role, reason = _role(name, evidence, persons=persons)
    if role in ("key", "confidential"):
        reason = f"{what} {reason}" if role == "key" else f"sensitive: {reason}"
        reason = "; ".join([reason, *_notes(kind, cells, codes)])
    return ProposedColumn(name, kind, role, reason, cells.distinct, cells.records - cells.present, codes)


def _what(kind: str, cells: Cells) -> str:
    """Return a description of the values of a column."""
    values = count(cells.distinct, "value")
    categories = {"ordinal": f"an ordered category of {values}", "nominal": f"a category of {values}"}
    return categories.get(kind, f"a {'number' if kind in NUMBERS else 'truth value' if kind == 'boolean' else kind}")


def _role(name: Name, evidence: Evidence, *, persons: bool) -> tuple[str, str]:  # noqa: PLR0911  (one return per role)
    """Return the role of a column and its reason."""
    cells = evidence.cells[name]
    if not cells.present:
        return "other", "all values are missing"
    if stored_indexes([name]):
        return "identifier", "an index that pandas stored in the file"
    if is_weight(name, cells, persons=persons):
        return "weight", "the name indicates a weight, and all numbers are positive"
    if cells.distinct == 1 and cells.present == cells.records:
        return "other", "the same value in all records"
    identifying = looks_like_identifier(name, cells)
    if identifying is not None:
        return "identifier", identifying
    if repeats_like_unit(name, cells):
        return (
            "unit",
            f"the name indicates an ID, and each occurs in {cells.present / cells.distinct:.1f} records on average",
        )
    if name in evidence.sensitive:
        return "confidential", evidence.sensitive[name]
    return "key", "that others may know"


def _notes(kind: str, cells: Cells, codes: Mapping[int | str, int]) -> list[str]:
    """Return remarks on a released column: possible codes for missing values, zeros and distinct values."""
    listed_codes = ", ".join(f"{code} ({count(times, 'time')})" for code, times in codes.items())
    apart = " far from the rest" if any(isinstance(code, int) for code in codes) else ""
    notes = [f"{listed_codes}{apart}: codes for missing values?"] if listed_codes else []
    if kind in NUMBERS:
        zeros = share_of_zeros(cells)
        notes += [f"{100 * zeros:.1f} % are zero; other values are outliers"] if zeros > ZEROS else []
        different = kind == "integer" and cells.distinct == cells.present > SMALL
        notes += ["all values are different: a measurement, or an identifier?"] if different else []
    return notes


def share_of_zeros(cells: Cells) -> float:
    """Return the share of zeros among numbers."""
    return float((cells.numbers == 0).mean())


def with_format(column: ProposedColumn, cells: pl.Series, kind: Date | None) -> ProposedColumn:
    """Add a remark on the format of dates in text."""
    if column.role != "key" or column.kind not in ("date", "time") or cells.dtype != pl.String:
        return column
    remark = "" if kind is not None else "; written in several formats"
    swapped = (kind.format or "").replace("%d", "%?").replace("%m", "%d").replace("%?", "%m") if kind else ""
    if swapped and swapped != (kind and kind.format) and fits(Date(swapped), cells):
        remark = "; day and month may be swapped"
    return replace(column, reason=column.reason + remark)
