"""The result of a publication: data, guarantee in words, private figures for the data holder, and two manifests."""

from __future__ import annotations

import json
import os
import platform
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from shoal.core.display import html_table, write_report
from shoal.core.messages import count, visible
from shoal.core.types import Ints
from shoal.core.version import __version__
from shoal.masking.manifest import LIBRARIES, plain, relative_to
from shoal.privacy.estimates import Estimates
from shoal.privacy.privacy_unit import Unit
from shoal.tables.columns import Name
from shoal.tables.files import sha256
from shoal.tables.outputs import written_beside

__all__ = ["PRIVATE", "Publication", "write_private_manifest", "write_publication_manifest"]

PRIVATE = ("clipped", "expected_sse", "labels", "sizes", "dropped")
NOT_FOR_RELEASE, EXACT = "NOT FOR RELEASE", "the lines below are exact figures of the confidential values"


@dataclass(frozen=True, repr=False)
class Publication:
    """A differentially private release.

    `data`, `guarantee`, `epsilon`, `delta`, `budgets`, `bounds`, `scales`, `truth`, `estimates` and `tree` may be
    published. The attributes listed in `PRIVATE` are computed from the confidential table without noise and are for the
    data holder alone.

    Parameters
    ----------
    data
        The released table, of the same type as the input: the protected columns and the columns of `keep`.
    guarantee
        The guarantee of ε in words: the protected unit and the definition.
    definition
        1 or 3: the definition of the paper under which ε holds.
    epsilon, budgets
        The budget and each column's share of it.
    unit
        The unit whose records the budget covers together; None for single records.
    records
        The number of records, which counts as public.
    bounds
        The domain of each numeric column.
    scales
        The scale of the Laplace noise on a group of one record, Δ/ε_i for a share ε_i of `record_epsilon`; larger
        groups have this scale divided by their size.
    categories, truth
        The categories of each categorical column, and the probability that a record deliberately reports its own.
    estimates
        Means, quantiles and shares with their standard errors due to noise, computed from released figures and scales.
    clipped
        Private. The number of values of each column outside its domain.
    expected_sse
        Private. The expected sum of squared errors of each numeric column, from averaging and noise. Truncation to the
        domain and ascending order can only lower it.
    labels
        Private. The group of each input record in each numeric column, ``(n, d)``.
    sizes
        Private. The sizes of the groups of each column.
    dropped
        Private. The columns that were not released.
    ledger_entry
        The ledger's record of this release, or None.
    parameters
        All parameters that determined the result, as plain values.
    public_notes
        Notes on processing steps that a reader might not expect.
    delta, rho
        For method ``"marginals"``: δ of the guarantee, and the zCDP budget that (ε, δ) allows. The columns then have no
        shares of ε, and `scales` holds the standard deviations of the noise on the counts of each column.
    tree, pair_scale
        The pairs of columns whose counts were measured, and the greatest standard deviation of their noise.
    """

    data: Any
    guarantee: str
    definition: Literal[1, 3]
    epsilon: float
    unit: Unit | None
    records: int
    budgets: Mapping[Name, float]
    bounds: Mapping[Name, tuple[float, float]]
    scales: Mapping[Name, float]
    categories: Mapping[Name, tuple[Any, ...]]
    truth: Mapping[Name, float]
    estimates: Mapping[Name, Estimates]
    clipped: Mapping[Name, int]
    expected_sse: Mapping[Name, float]
    labels: Ints
    sizes: Mapping[Name, Ints]
    dropped: tuple[str, ...]
    ledger_entry: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    public_notes: tuple[str, ...]
    delta: float | None = None
    rho: float | None = None
    tree: tuple[tuple[Name, Name], ...] = ()
    pair_scale: float | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the data holder: unexpected processing steps, and the names of dropped columns."""
        dropped = f"columns without protection were dropped: {', '.join(self.dropped)}"
        return (*([dropped] if self.dropped else []), *self.public_notes)

    @property
    def columns(self) -> list[Name]:
        """The protected columns."""
        return list(self.parameters["columns"])

    @property
    def record_epsilon(self) -> float:
        """The budget of a single record: `epsilon`/m for units of up to m records; `epsilon` if there is a δ."""
        return self.epsilon if self.unit is None or self.delta is not None else self.epsilon / self.unit.contributions

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the summary as names and values; private lines come last and are marked."""
        return [*self.public_rows(), (NOT_FOR_RELEASE, EXACT), *self.private_rows()]

    def public_rows(self) -> list[tuple[str, str]]:
        """Return the lines of the summary that may be published."""
        delta = "" if self.delta is None else f", delta {self.delta:g}"
        each = f"; ε {self.record_epsilon:.6g} for each record" if self.delta is None else ""
        lines = [
            ("epsilon", f"{self.epsilon:g}{delta} (Definition {self.definition})"),
            *([] if self.unit is None else [("unit", f"{self.unit}{each}")]),
            ("method", str(self.parameters["method"])),
            ("records", f"{self.records:,}"),
        ]
        lines += [(str(name), self._terms(name)) for name in self.columns]
        if self.tree:
            pairs = ", ".join(f"{first}–{second}" for first, second in self.tree)
            lines.append(("pairs", f"{pairs}; counts with noise of standard deviation {self.pair_scale:.4g} at most"))
        if self.parameters["bounds"] != "data":
            for name, estimates in self.estimates.items():
                lines.append((str(name), "; ".join(f"{statistic} {figure}" for statistic, figure in estimates.rows())))
        if self.ledger_entry is not None:
            entry = self.ledger_entry
            deltas = f"; delta {entry['spent_delta']:g} of {entry['total_delta']:g}" if self.delta is not None else ""
            lines.append(("ledger", f"{entry['ledger']}: {entry['spent']:g} of {entry['total']:g} spent{deltas}"))
        lines += [("note", note) for note in self.public_notes]
        return [*lines, ("guarantee", self.guarantee)]

    def private_rows(self) -> list[tuple[str, str]]:
        """Return the lines of the summary for the data holder alone."""
        lines = []
        for name in self.columns:
            facts = [f"{count(self.clipped[name], 'value')} outside"]
            if name in self.sizes:
                sizes = self.sizes[name]
                spread = f"{sizes.min():,} to {sizes.max():,}" if sizes.min() < sizes.max() else f"{sizes[0]:,}"
                facts = [f"{count(len(sizes), 'group')} of {spread}", *facts]
                facts.append(f"expected SSE {self.expected_sse[name]:.4g}")
            lines.append((f"private: {name}", "; ".join(facts)))
        return [*lines, *([("private: note", self.notes[0])] if self.dropped else [])]

    def report(self, path: str | os.PathLike[str], *, private: bool = False) -> Path:
        """Write a report as one HTML file and return its path.

        The report may be published with the data, unless `private` adds exact figures of the confidential values.
        """
        return write_report("publication_page:publication_page", path, self, private=private)

    def _terms(self, name: Name) -> str:
        """Describe the terms of a column; withhold a domain read from the data, because it would reveal the maximum."""
        categories = ", ".join(map(str, self.categories.get(name, ())))
        if self.delta is not None:
            low, high = self.bounds.get(name, (0.0, 0.0))
            domain = "domain read from the data" if self.parameters["bounds"] == "data" else f"{low:g} to {high:g}"
            noise = f"counts with noise of standard deviation {self.scales[name]:.4g}"
            return f"{f'one of {categories}' if categories else domain}, {noise}"
        share = f"ε {self.budgets[name]:.6g}"
        if categories:
            return f"{share}, one of {categories}; reported deliberately with probability {self.truth[name]:.4g}"
        if self.parameters["bounds"] == "data":
            return f"{share}, domain read from the data"
        low, high = self.bounds[name]
        return f"{share}, domain {low:g} to {high:g}, noise of scale {self.scales[name]:.4g} / group size"

    def __repr__(self) -> str:
        terms = f"epsilon={self.epsilon:g}, definition={self.definition}, method={self.parameters['method']!r}"
        text = f"{terms}, columns={self.columns!r}, records={self.records}"
        return f"Publication({text}; private: {', '.join(PRIVATE)})"

    def __str__(self) -> str:
        lines = []
        for name, value in self.rows():
            first, *rest = textwrap.wrap(visible(value), 100, break_long_words=False) or [""]
            lines.append(f"{name:<17} {first}")
            lines += [f"{'':<17} {line}" for line in rest]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def write_publication_manifest(publication: Publication, path: Path, *, output: str | os.PathLike[str]) -> None:
    """Write the publishable manifest: the terms of the release, without any figure of the confidential values.

    Paths are relative to the manifest's own folder.
    """
    content = {
        "shoal": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in (*LIBRARIES, "opendp")},
        },
        "output": {"path": relative_to(output, path), "sha256": sha256(output)},
        "guarantee": publication.guarantee,
        "definition": publication.definition,
        **({} if publication.delta is None else _counted(publication)),
        "unit": _unit(publication),
        "parameters": dict(publication.parameters),
        "columns": {str(name): _terms(publication, name) for name in publication.columns},
        "ledger_entry": publication.ledger_entry,
        "notes": list(publication.public_notes),
    }
    _write(content, path)


def write_private_manifest(
    publication: Publication, path: Path, *, source: str | os.PathLike[str], output: str | os.PathLike[str]
) -> None:
    """Write the manifest for the data holder alone.

    The manifest contains exact figures of the confidential values and the input's checksum, with which anyone can test
    a guess of the whole input.
    """
    content = {
        "not_for_release": "exact figures of the confidential values, for the data holder alone",
        "input": {"path": relative_to(source, path), "sha256": sha256(source)},
        "output": {"path": relative_to(output, path), "sha256": sha256(output)},
        "dropped": list(publication.dropped),
        "columns": {
            str(name): {
                "clipped": publication.clipped[name],
                **(
                    {"groups": len(publication.sizes[name]), "expected_sse": publication.expected_sse[name]}
                    if name in publication.sizes
                    else {}
                ),
            }
            for name in publication.columns
        },
    }
    _write(content, path)


def _write(content: Mapping[str, Any], path: Path) -> None:
    with written_beside(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False, default=plain) + "\n", encoding="utf-8")


def _counted(publication: Publication) -> dict[str, Any]:
    """Return the terms of a release drawn from a model of counts."""
    pairs = [[str(first), str(second)] for first, second in publication.tree]
    account = {"delta": publication.delta, "rho": publication.rho}
    return account | {"pairs": pairs, "noise_of_counts_of_pairs": publication.pair_scale}


def _unit(publication: Publication) -> dict[str, Any] | None:
    """Return the unit that ε covers and the budget per record; None for single records."""
    unit = publication.unit
    if unit is None:
        return None
    budgets = {"epsilon": publication.epsilon}
    if publication.delta is None:
        budgets["epsilon_of_a_record"] = publication.record_epsilon
    return {"column": unit.column, "contributions": unit.contributions, **budgets}


def _terms(publication: Publication, name: Name) -> dict[str, Any]:
    """Return the terms of a column; a domain read from the data is withheld, because it would reveal the maximum."""
    if publication.delta is not None:
        counted: dict[str, Any] = {"noise_of_counts": publication.scales[name]}
        if name in publication.categories:
            return counted | {"categories": list(publication.categories[name])}
        public = publication.parameters["bounds"] != "data"
        return counted | ({"bounds": publication.bounds[name]} if public else {})
    terms: dict[str, Any] = {"epsilon": publication.budgets[name]}
    if name in publication.categories:
        terms |= {"categories": list(publication.categories[name]), "told_on_purpose": publication.truth[name]}
    elif publication.parameters["bounds"] != "data":
        terms |= {"bounds": publication.bounds[name], "noise_scale_over_size": publication.scales[name]}
    if publication.parameters["bounds"] != "data":
        rows = publication.estimates[name].rows()
        terms["estimates"] = {statistic: {"value": figure.value, "error": figure.error} for statistic, figure in rows}
    return terms
