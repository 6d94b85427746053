"""The proposed role and kind of a column by its own name and cells."""

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

ZEROS = 0.95  # the share from which the other values stand out


@dataclass(frozen=True)
class ProposedColumn:
    """A column and its proposed role and kind.

    Parameters
    ----------
    name
        Its name.
    kind
        ``"float"``, ``"integer"``, ``"boolean"``, ``"nominal"`` (text, or numbers that are codes), ``"ordinal"``,
        ``"date"``, ``"time"`` or ``"duration"``.
    role
        ``"key"`` (to be masked), ``"stratum"``, ``"identifier"`` (not to be released), ``"derived"`` (a function of
        another column, not to be released), ``"confidential"`` (sensitive: kept and measured), ``"weight"``, ``"unit"``
        (whose records they are) or ``"other"`` (empty, or the same in all records).
    reason
        Why, in words, and why it is dropped if so. It quotes no cell except codes for missing.
    distinct
        The number of different values.
    missing
        The number of missing cells.
    codes
        The cells that seem to be codes for missing, and how often each occurs.
    """

    name: Name
    kind: str
    role: str
    reason: str
    distinct: int
    missing: int
    codes: Mapping[int | str, int] = field(default_factory=dict)


def propose_column(name: Name, evidence: Evidence, *, persons: bool) -> ProposedColumn:
    """Propose a kind and a role; `persons` says that the table describes persons, whose bodies have a weight."""
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
    """Say what a column holds."""
    values = count(cells.distinct, "value")
    categories = {"ordinal": f"an ordered category of {values}", "nominal": f"a category of {values}"}
    return categories.get(kind, f"a {'number' if kind in NUMBERS else 'truth value' if kind == 'boolean' else kind}")


def _role(name: Name, evidence: Evidence, *, persons: bool) -> tuple[str, str]:  # noqa: PLR0911  (one return a role)
    """Return the role of a column, and why."""
    cells = evidence.cells[name]
    if not cells.present:
        return "other", "no cell is filled"
    if stored_indexes([name]):
        return "identifier", "an index that pandas stored in the file"
    if is_weight(name, cells, persons=persons):
        return "weight", "the name says weight, and all numbers are positive"
    if cells.distinct == 1 and cells.present == cells.records:
        return "other", "the same value in all records"
    identifying = looks_like_identifier(name, cells)
    if identifying is not None:
        return "identifier", identifying
    if repeats_like_unit(name, cells):
        return "unit", f"an id by its name, and each occurs in {cells.present / cells.distinct:.1f} records on average"
    if name in evidence.sensitive:
        return "confidential", evidence.sensitive[name]
    return "key", "that others may know"


def _notes(kind: str, cells: Cells, codes: Mapping[int | str, int]) -> list[str]:
    """Say what else is to be known of a column that is released."""
    listed_codes = ", ".join(f"{code} ({count(times, 'time')})" for code, times in codes.items())
    apart = " far from the rest" if any(isinstance(code, int) for code in codes) else ""
    notes = [f"{listed_codes}{apart}: codes for missing?"] if listed_codes else []
    if kind in NUMBERS:
        zeros = share_of_zeros(cells)
        notes += [f"{100 * zeros:.1f} % are zero, the others stand out"] if zeros > ZEROS else []
        different = kind == "integer" and cells.distinct == cells.present > SMALL
        notes += ["all values are different: a measurement, or an identifier?"] if different else []
    return notes


def share_of_zeros(cells: Cells) -> float:
    """Return the share of zeros among numbers."""
    return float((cells.numbers == 0).mean())


def with_format(column: ProposedColumn, cells: pl.Series, kind: Date | None) -> ProposedColumn:
    """Say what is to be known of the format of dates that are text."""
    if column.role != "key" or column.kind not in ("date", "time") or cells.dtype != pl.String:
        return column
    remark = "" if kind is not None else "; written in several formats"
    swapped = (kind.format or "").replace("%d", "%?").replace("%m", "%d").replace("%?", "%m") if kind else ""
    if swapped and swapped != (kind and kind.format) and fits(Date(swapped), cells):
        remark = "; day and month may be swapped"
    return replace(column, reason=column.reason + remark)
