"""Report pages: their contents, and their output as HTML.

A page is a title, a few key figures, a summary in words and sections of text, figures and tables. `sections` makes the
sections from results, so that a page for another kind of release only needs another list of sections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from shoal.algorithms.registry import ALL_METHODS
from shoal.assessment.assessment import Assessment
from shoal.assessment.coded_records import read_original
from shoal.assessment.measurement import assess_arrays, secret_codes
from shoal.assessment.risk import Risk, UnitUniqueness
from shoal.comparison.trials import Comparison, Trial
from shoal.core.display import for_people
from shoal.core.messages import agreeing, count, holders
from shoal.core.version import __version__
from shoal.masking.manifest import as_call, as_command, as_json, described, versions
from shoal.masking.release import Release
from shoal.masking.request import not_recorded
from shoal.masking.verdict import Verdict
from shoal.report import sections
from shoal.report.sections import Section
from shoal.report.sentences import (
    AVERAGES,
    kept_share,
    listed,
    loss_text,
    percent,
    procedure_text,
    relations_changed,
    risk_text,
    safety_text,
    singled_out_text,
    unavoidable,
    unprotected,
    usefulness_text,
)
from shoal.report.withheld_figures import IN_HOUSE, as_published, dominated_spreads, published_result
from shoal.tables.databases import is_database
from shoal.tables.files import check_target, sha256
from shoal.tables.formats.frames import open_table
from shoal.tables.outputs import written_beside, written_path
from shoal.tables.table import stratum_codes

__all__ = ["Page", "assessment_page", "comparison_page", "release_page", "write_page"]

SHARE = "share each combination of the masked columns"
ALIKE = f"records {SHARE}"
SINGLED_OUT = "records singled out by what an outsider can know"
NOT_ALIKE = ("none", "of the whole records is guaranteed to look like another")


@dataclass(frozen=True)
class Page:
    """A report page: title, key figures, summary and sections."""

    # The title, and a line that names the table.
    title: str
    subtitle: str
    tiles: Sequence[tuple[str, str]]  # key figures with their labels
    # Paragraphs that summarise the page, each with a heading and its text.
    summary: Sequence[tuple[str, str]]
    sections: Sequence[Section]  # the details
    notes: Sequence[str] = ()  # further notes for the reader
    verdict: Verdict | None = None  # the verdict on a release


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page as one HTML file, completely or not at all."""
    from jinja2 import Environment, StrictUndefined

    target = Path(path)
    check_target(target, endings=(".html",))
    text = files("shoal.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A non-breaking space keeps a number and its unit on one line.
        finalize=lambda value: value.replace(" %", "\u00a0%") if type(value) is str else value,
    )
    date = datetime.now(UTC).strftime("%d %B %Y")
    html = environment.from_string(text).render(page=page, version=__version__, made=date)
    with written_beside(target) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return target


def release_page(
    release: Release,
    *,
    original: Any = None,
    output: str | os.PathLike[str] | None = None,
    comparison: Comparison | None = None,
) -> Page:
    """Return the report page for a masked table."""
    source = original if isinstance(original, (str, os.PathLike)) and not is_database(original) else None
    measured = original is not None and release.labels.size
    published = release.published()
    figures = _measured(release, published, original, comparison) if measured else _unmeasured(published)
    return Page(
        title="Masking report",
        subtitle=_subtitle(release, output),
        tiles=figures.tiles,
        summary=[
            ("What was done.", procedure_text(release)),
            ("How safe is it?", figures.safe),
            ("How useful is it?", figures.useful + unavoidable(published)),
            unprotected(release),
        ],
        sections=[*figures.sections, _details(release, published, source, output)],
        notes=(*release.notes, *figures.notes),
        verdict=release.verdict,
    )


class _Figures(NamedTuple):
    """The figures and sentences for the page of a release, with or without access to its original."""

    tiles: list[tuple[str, str]]
    safe: str
    useful: str
    sections: list[Section]
    notes: tuple[str, ...] = ()


def _measured(release: Release, published: Release, original: Any, comparison: Comparison | None) -> _Figures:
    """Measure a release against its original; return no original value and no figure dominated by one group."""
    before, Y = read_original(release, original)
    X, embedding = before.X, before.embedding
    table = open_table(release.data)
    strata, known = (stratum_codes(table, names) for names in (release.parameters["by"] or (), release.beside))
    confidential = [(name, *secret_codes(table, name)) for name in release.reached]
    assessment = assess_arrays(before, Y, strata, known=known, k=release.k, confidential=confidential)
    # The release's own recount knows the order of all kinds of values.
    attributes = [replace(a, closeness=release.reached[a.column]["closeness"]) for a in assessment.risk.attributes]
    units = release.unique_units and UnitUniqueness(*release.unique_units, release.parameters["unit"])
    assessment = replace(assessment, risk=replace(assessment.risk, attributes=tuple(attributes), units=units))
    assessment = as_published(assessment, published.column_loss, dominated_spreads(before, Y, release.labels))
    parts = [
        sections.groups(release.sizes, release.k),
        # A bin of this many records includes records of at least k units.
        sections.columns(X, Y, embedding, assessment.utility, release.k * release.unit_records),
        # Cells that were made missing also count as losses, but cannot be drawn before and after.
        sections.losses_table(published.column_loss)
        if release.blanked or release.left_out
        else sections.losses(assessment.utility),
        sections.relations(assessment.utility),
        sections.risks(assessment.risk),
        *(_comparison_sections(release, comparison.published()) if comparison else ()),
        sections.moved(before.coordinates, before.place(Y), release.labels) if release.labels.ndim == 1 else None,
    ]
    return _Figures(
        _tiles(published, assessment),
        safety_text(release, assessment),
        usefulness_text(published.loss, published.column_loss, assessment.utility),
        [part for part in parts if part is not None],
        before.scale_notes(),
    )


def _comparison_sections(release: Release, comparison: Comparison) -> list[Section | None]:
    """Return the sections that show a release among runs with the same promise, and the cost of other promises."""
    alike = [trial for trial in comparison.trials if trial.promise == release.promise]
    mark = next(((t.name, t.k) for t in alike if (t.method, t.k) == (release.parameters["method"], release.k)), None)
    return [sections.risk_utility(alike or comparison.trials, mark), sections.prices(comparison.prices)]


def _unmeasured(release: Release) -> _Figures:
    """Return the figures of a release without access to its original."""
    safe = (
        f"Recounted in the released table: {release.verified}. "
        + (
            ""
            if release.anonymous
            else "A record's combination of values may be unique: the table is NOT k-anonymous. "
        )
        + "The share of records that an intruder with the original values could link was not measured, because the "
        "original was not available when this page was written; shoal assess measures it."
    )
    useful = loss_text(release.loss, release.column_loss) + AVERAGES
    tiles = [
        _smallest_group_tile(release, release.k),
        (f"{release.singled_out:,}", SINGLED_OUT),
        (kept_share(release.loss), "of the information kept"),
        (f"{release.groups:,}", "groups"),
        _masked_tile(release),
    ]
    parts = [sections.groups(release.sizes, release.k), sections.losses_table(release.column_loss)]
    return _Figures(tiles, safe, useful, parts)


def assessment_page(assessment: Assessment) -> Page:
    """Return the report page for an assessment, without any value of a single record."""
    risk, utility = assessment.risk, assessment.utility
    names, counted = [column.name for column in utility.columns], risk.anonymity
    are = agreeing(counted.below, "is", "are")
    below = f"{counted.below:,} of {count(assessment.records, 'record')} {are}"
    broken = f"{below} in groups of fewer than the promised {counted.asked}"
    parts = [
        Section("Columns before and after", [], tables=sections.columns_tables(utility)),
        sections.losses(utility) if assessment.paired else None,
        sections.relations(utility),
        sections.regressions(utility.model),
        sections.frequencies(utility.tables),
        sections.risks(risk),
    ]
    losses = {column.name: column.loss for column in utility.columns}
    return Page(
        title="Assessment of a masked table",
        subtitle=f"{count(assessment.records, 'record')}, {listed(names)}",
        tiles=[
            (f"≥ {counted.k}", ALIKE),
            (f"{assessment.singled_out:,}", SINGLED_OUT),
            *([(kept_share(utility.loss), "of the information kept")] if assessment.paired else []),
            *_linked(risk),
        ],
        summary=[
            ("How safe is it?", f"Recounted in the masked table: {assessment.verified}; {risk_text(risk)}"),
            (
                "How useful is it?",
                usefulness_text(utility.loss, losses, utility) if assessment.paired else relations_changed(utility),
            ),
            (
                "What does it not protect?",
                f"{singled_out_text(assessment.singled_out, assessment.records)}{sections.APPROXIMATE}",
            ),
        ],
        sections=[part for part in parts if part is not None],
        notes=(IN_HOUSE, *assessment.notes, *([broken] if counted.below else [])),
    )


def comparison_page(comparison: Comparison) -> Page:
    """Return the report page for a comparison."""
    choice = comparison.choice
    sizes = ", ".join(map(str, comparison.parameters["k"]))
    methods = len({trial.method for trial in comparison.trials})
    most_useful: dict[int, Trial] = {}
    for trial in comparison.front:
        if trial.promise == choice.promise:
            most_useful.setdefault(trial.k, trial)
    best = "; ".join(f"{t.name} at k = {k} ({for_people(t.loss, 3)} % lost)" for k, t in sorted(most_useful.items()))
    promised = len(comparison.choices) > 1
    same, promise = (" with the same promise", ", and which promise,") if promised else ("", "")
    summary = [
        (
            f"{'One method' if methods == 1 else f'{methods} methods'} of masking {agreeing(methods, 'was', 'were')} "
            f"tried on {comparison.records:,} records and {count(len(comparison.columns), 'column')}, with groups of "
            f"at least {sizes} records. Larger groups are safer and lose more."
            + (" So do stronger promises about confidential columns." if promised else "")
        ),
        f"{len(comparison.front)} of {count(len(comparison.trials), 'run')} "
        f"{agreeing(len(comparison.front), 'is', 'are')} not beaten by any other{same} in both loss and risk. Of "
        f"these, the most useful for their group size {agreeing(len(most_useful), 'is', 'are')} {best}."
        if comparison.front
        else "None of the runs is k-anonymous for whole records.",
        (
            f"Among them, {choice.name} at k = {choice.k} is the balanced choice: it is nearest to no loss and no "
            f"risk, each relative to its range here. It loses {for_people(choice.loss, 3)} % of the information, and "
            "an intruder who links by the original values, or guesses within the right group, is right for "
            f"{percent(choice.risk)} of the records. Which k{promise} is right is for people to decide: it depends on "
            "who gets the data and what they may know."
        ),
    ]
    repeat = {"shoal": __version__, "versions": versions(), "parameters": dict(comparison.parameters)}
    parts = [
        sections.risk_utility(comparison.trials, (choice.name, choice.k)),
        sections.prices(comparison.prices),
        sections.trials_table(comparison),
        sections.details([("Parameters and versions", _compact(as_json(repeat)))], []),
    ]
    return Page(
        title="Comparison of methods",
        subtitle=f"{comparison.records:,} records; columns {', '.join(map(str, comparison.columns))}",
        tiles=[
            (f"k = {choice.k}", f"with {choice.name} is the balanced choice"),
            (f"{choice.loss:.1f} %", "of the information lost by it"),
            (percent(choice.risk), "risk of being linked by an intruder with the originals"),
            (f"{len(comparison.trials)}", f"{agreeing(len(comparison.trials), 'run')} compared"),
        ],
        summary=list(zip(("What was done.", "What came out?", "What to choose?"), summary, strict=True)),
        sections=[part for part in parts if part is not None],
        notes=(IN_HOUSE,),
    )


def _subtitle(release: Release, output: str | os.PathLike[str] | None) -> str:
    table = f"{Path(output).name}: " if output is not None else ""
    return f"{table}{count(release.records, 'record')}, {listed(release.columns)}"


def _tiles(release: Release, assessment: Assessment) -> list[tuple[str, str]]:
    return [
        _smallest_group_tile(release, assessment.risk.anonymity.k),
        (f"{release.singled_out:,}", SINGLED_OUT),
        (kept_share(release.loss), "of the information kept"),
        *_linked(assessment.risk),
        _masked_tile(release),
    ]


def _linked(risk: Risk) -> list[tuple[str, str]]:
    """Return the tile of linked records, if linkage was measured."""
    label = "linked by an intruder with the originals"
    return [] if risk.linkage is None else [(percent(risk.linkage.share), label)]


def _smallest_group_tile(release: Release, records: int) -> tuple[str, str]:
    """Return the tile of the smallest group, in records or units."""
    unit = release.parameters["unit"]
    if not release.anonymous:
        return NOT_ALIKE
    return (f"≥ {records}", ALIKE) if unit is None else (f"≥ {release.k}", f"{holders(unit)} {SHARE}")


def _masked_tile(release: Release) -> tuple[str, str]:
    return f"{len(release.columns)}", f"{agreeing(len(release.columns), 'column')} masked"


def _details(release: Release, published: Release, source: Any, output: Any) -> Section:
    # The page may be published, so it shows neither the database nor the query.
    release, published = (replace(r, parameters={**r.parameters, "query": None}) for r in (release, published))
    manifest = described(published)
    manifest = _rounded({**manifest, "result": published_result(manifest["result"], release, published)})
    commands = []
    if output is not None:
        manifest["output"] = {"path": Path(output).name, "sha256": sha256(written_path(output))}
    # No command can contain weights that are not a column, labels, a function or a random order.
    repeatable = (
        not not_recorded(release.parameters)
        and release.parameters["method"] in ALL_METHODS
        and release.parameters["shuffle"] in (None, False)
    )
    if repeatable and "hierarchy" not in release.kinds.values() and source is not None and output is not None:
        commands.append(("On the command line", as_command(release.parameters, Path(source).name, Path(output).name)))
    if repeatable:
        commands.append(("In Python", as_call(release.parameters, Path(source).name if source is not None else None)))
    return sections.details([("Parameters, versions and results", _compact(as_json(manifest)))], commands)


def _rounded(value: Any) -> Any:
    """Round all figures to three digits, because more digits would only help to solve for original values."""
    if isinstance(value, float):
        return float(f"{value:.3g}")
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    return value


def _compact(text: str) -> str:
    """Return JSON text with each list of plain values on one line."""
    return re.sub(r"\[[^\[\]{}]*\]", lambda match: re.sub(r"\s*\n\s*", " ", match[0]), text)
