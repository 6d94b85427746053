"""Versions: maskings of the table with the settings of the form, with their information loss and risk."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import shoal
from shoal.app.settings import Settings
from shoal.app.table_file import OpenedFile
from shoal.app.texts import in_labels, options_of

if TYPE_CHECKING:
    from shoal.app.work import Work

__all__ = ["Preview", "Version", "make_version", "preview"]

SAMPLE = 1000  # records of a preview
MOST_MEASURED = 200_000  # records of the largest release that is compared with the original
CHANGED = "Table {} has changed on disk since it was opened. Read it again first."


@dataclass
class Version:
    """A masking of the table: settings, figures of the card and results. Saved work has no results until a rerun."""

    number: int  # from 1
    settings: Settings
    figures: dict[str, Any] = field(default_factory=dict)
    release: shoal.Release | None = field(default=None, repr=False)
    assessment: Any = field(default=None, repr=False)
    comparison: Any = field(default=None, repr=False)  # the method at other k, for the map of the report
    folder: Path | None = None  # the folder of the masked table and the labels
    stopped: bool = False  # True if the user stopped the search; the release is its best result

    @property
    def title(self) -> str:
        """The number, method and k."""
        return f"Version {self.number}: {self.figures['method']}, k = {self.figures['k']}"

    def path(self, name: str) -> Path:
        """Return the path of a file of the version."""
        return Path(str(self.folder)) / name

    def masked_file(self, table: OpenedFile) -> Path:
        """Return the path of the masked table, in the format of the original if shoal can write it."""
        name = Path(table.title.removesuffix(".gz").removesuffix(".zst"))
        return self.path(f"{name.stem}-masked{table.ending}")

    @property
    def labels(self) -> Path:
        """The path of the labels."""
        return self.path("labels.csv")

    @property
    def report(self) -> Path:
        """The path of the report, once it is made."""
        return self.path("report.html")

    @property
    def repeatable(self) -> bool:
        """True if the command reproduces the masked table byte for byte."""
        return self.release is not None and self.release.repeatable and not self.stopped


def make_version(work: Work, number: int, settings: Settings, folder: Path) -> Version:
    """Mask the table and measure the release."""
    table = work.table
    require_unchanged(table)
    settings.request()  # refuse invalid combinations before anything is read
    version = Version(number, settings, folder=folder)
    started = time.perf_counter()
    version.release = shoal.mask(
        table.path,
        **settings.parameters() | dict(table.csv),
        engine="local" if table.partial else None,  # large tables are masked file to file
        output=version.masked_file(table),
        labels=version.labels,
    )
    version.figures = figures_of(version.release, time.perf_counter() - started)
    _measure(work, version, version.release)
    return version


def require_unchanged(table: OpenedFile) -> None:
    """Refuse a table that has changed on disk."""
    if table.changed:
        raise shoal.InputError(CHANGED.format(table.title))


def figures_of(release: shoal.Release, seconds: float) -> dict[str, Any]:
    """Return the figures of a card, as plain values."""
    reached = release.reached.values()
    return {
        "method": release.parameters["method"],
        "k": release.k,
        "records": release.records,
        "groups": release.groups,
        "loss": release.loss,
        "column_loss": {str(name): loss for name, loss in release.column_loss.items()},
        "uniques": release.singled_out,
        "linked": None,
        "diversity": min((promise["diversity"] for promise in reached), default=None),
        "closeness": max((promise["closeness"] for promise in reached), default=None),
        "seconds": seconds,
        "verified": release.verified,
        "verdict": release.verdict.text,
        "warnings": _stops(release),
    }


def _stops(release: shoal.Release) -> list[str]:
    """Return the reasons not to release a table, with the labels of the page."""
    return [reason.sentence.worded(in_labels) for reason in release.verdict.reasons if reason.level == "stop"]


def _measure(work: Work, version: Version, release: shoal.Release) -> None:
    """Compare a release with the original if both are in memory and not too large."""
    on_disk = isinstance(release.data, (str, Path)) or not release.labels.size
    if work.view is None or on_disk or work.table.partial or release.records > MOST_MEASURED:
        return
    version.assessment = _assess(work.view.frame, release)
    version.figures["linked"] = _linked(version.assessment)


def _assess(original: Any, release: shoal.Release) -> Any:
    parameters = release.parameters
    return shoal.assess(
        original,
        release.data,
        columns=release.columns,
        kinds={name: kind for name, kind in (parameters["kinds"] or {}).items() if name in release.columns},
        missing_codes=parameters["missing_codes"],
        k=release.k,
        by=parameters["by"],
        confidential=parameters["confidential"],
        weights=parameters["weights"],
        unit=parameters["unit"],
        kept=release.kept,
        shuffled=False,
    )


def _linked(assessment: Any) -> float | None:
    """Return the share of linked records; None if it was not measured."""
    linkage = assessment.risk.linkage
    return None if linkage is None else linkage.share


class Preview(NamedTuple):
    """Figures of a masked sample: information loss, share of linked records, number of records and method."""

    loss: float
    linked: float | None
    records: int
    method: str


def preview(work: Work, settings: Settings) -> Preview | None:
    """Return the figures of a masked sample; None if a sample cannot show the cost of the settings."""
    if work.view is None or work.view.records < 2:
        return None
    parameters = settings.parameters() | {"shuffle": False}
    options = settings.asked.get("options", {})
    limited = "time_limit" in {option.name for option in options_of(parameters.get("method", "auto"))}
    if (
        limited or options.get("bound") or parameters.get("effort") == "best"
    ):  # searches that are too slow for a preview
        parameters = {n: v for n, v in parameters.items() if n not in options} | {"method": "mdav", "effort": None}
    if parameters.get("small", "error") == "error":
        parameters["small"] = "suppress"
    sample = work.view.sample(SAMPLE)
    try:
        release = shoal.mask(sample, **parameters)
        linked = _linked(_assess(sample, release))
    except shoal.ShoalError:
        return None
    return Preview(release.loss, linked, release.records, release.parameters["method"])
