"""What publishing returns: the data, the guarantee in words, and what the data holder alone must know."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shoal.core.display import html_table, write_report
from shoal.core.types import Ints
from shoal.privacy.units import Unit
from shoal.tables.columns import Name

__all__ = ["Publication"]


@dataclass(frozen=True)
class Publication:
    """A differentially private release.

    `data`, `guarantee`, `epsilon`, `budgets`, `bounds` and `scales` may be published. `clipped`, `expected_sse`,
    `labels` and `sizes` are computed from the confidential values without noise: they are for the data holder.

    Parameters
    ----------
    data
        The released table: the same kind as given, the protected columns and those kept by name.
    guarantee
        What ε covers, for whom, under which definition, in words.
    definition
        1 or 3: the definition of the paper under which ε holds.
    epsilon, budgets
        The budget, and each column's share of it.
    unit
        Whom the budget covers with all of their records, or None for single records.
    bounds
        The domain of each column.
    scales
        The scale of the Laplace noise on a group of one record, Δ/ε_i for a share ε_i of `record_epsilon`; larger
        groups have it divided by their size.
    clipped
        How many values of each column lay outside its domain.
    expected_sse
        The sum of squared errors to expect in each column, before truncation to the domain: averaging plus noise.
    labels
        The group of each record of the input in each column, ``(n, d)``.
    sizes
        The sizes of the groups of each column.
    ledger_entry
        What was recorded in the ledger, or None.
    parameters
        Everything that decided the result, as plain values.
    notes
        What was done that a reader might not expect, in sentences.
    """

    data: Any = field(repr=False)
    guarantee: str
    definition: Literal[1, 3]
    epsilon: float
    unit: Unit | None
    budgets: Mapping[Name, float]
    bounds: Mapping[Name, tuple[float, float]]
    scales: Mapping[Name, float]
    clipped: Mapping[Name, int]
    expected_sse: Mapping[Name, float]
    labels: Ints = field(repr=False)
    sizes: Mapping[Name, Ints] = field(repr=False)
    ledger_entry: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def columns(self) -> list[Name]:
        """The protected columns."""
        return list(self.budgets)

    @property
    def record_epsilon(self) -> float:
        """The budget of a single record: an m-th of `epsilon` if units have up to m records."""
        return self.epsilon if self.unit is None else self.epsilon / self.unit.contributions

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the summary, each a name and a value."""
        lines = [
            ("epsilon", f"{self.epsilon:g} (Definition {self.definition})"),
            *([] if self.unit is None else [("unit", f"{self.unit}; ε {self.record_epsilon:.6g} for each record")]),
            ("method", str(self.parameters["method"])),
            ("records", f"{len(self.labels):,}"),
        ]
        lines += [(str(name), self._terms(name)) for name in self.columns]
        if self.ledger_entry is not None:
            entry = self.ledger_entry
            lines.append(("ledger", f"{entry['ledger']}: {entry['spent']:g} of {entry['total']:g} spent"))
        lines += [("note", note) for note in self.notes]
        lines.append(("guarantee", self.guarantee))
        lines.append(("NOT FOR RELEASE", "what follows are exact figures of the confidential values"))
        for name in self.columns:
            sizes = self.sizes[name]
            spread = f"{sizes.min():,} to {sizes.max():,}" if sizes.min() < sizes.max() else f"{sizes[0]:,}"
            groups = f"{len(sizes):,} group{'' if len(sizes) == 1 else 's'} of {spread}"
            facts = f"{groups}; {self.clipped[name]:,} values clipped"
            lines.append((str(name), f"{facts}; expected SSE {self.expected_sse[name]:.4g}"))
        return lines

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a report as one HTML file that may go along with the data, and return its path."""
        return write_report("publication:publication_page", path, self)

    def _terms(self, name: Name) -> str:
        """Say what holds for a column; a domain that was read from the data would tell its maximum."""
        if self.parameters["bounds"] == "data":
            return f"ε {self.budgets[name]:.6g}, domain read from the data"
        low, high = self.bounds[name]
        noise = f"noise of scale {self.scales[name]:.4g} / group size"
        return f"ε {self.budgets[name]:.6g}, domain {low:g} to {high:g}, {noise}"

    def __str__(self) -> str:
        lines = []
        for name, value in self.rows():
            first, *rest = textwrap.wrap(value, 100, break_long_words=False) or [""]
            lines.append(f"{name:<17} {first}")
            lines += [f"{'':<17} {line}" for line in rest]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self.rows())
