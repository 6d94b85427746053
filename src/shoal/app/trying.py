"""A try: mask the table as the settings ask, and measure what it costs and protects."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import shoal
from shoal.app.words import options_of
from shoal.app.work import Settings, Try, Work

__all__ = ["Preview", "measure", "preview", "run_try"]

SAMPLE = 1000  # records of a preview
MOST_MEASURED = 200_000  # records that are measured beside their originals


def run_try(work: Work, number: int, settings: Settings, folder: Path) -> Try:
    """Mask the table, and measure the release."""
    source: Any = work.source
    if source.changed:
        raise shoal.InputError(f"Table {source.title} has changed on disk since it was opened. Read it again first.")
    one = Try(number, settings, folder=folder)
    settings.request()  # refused before anything is read, if it does not go together
    started = time.perf_counter()
    output, labels = one.file(source), one.labels
    engine = "local" if source.part else None  # large tables are masked from file to file
    asked = settings.parameters() | dict(source.csv)
    one.release = shoal.mask(source.path, **asked, engine=engine, output=output, labels=labels)
    one.figures = figures_of(one.release, time.perf_counter() - started)
    measure(work, one)
    return one


def figures_of(release: shoal.Release, seconds: float) -> dict[str, Any]:
    """Return what is shown on the card of a try, as plain values."""
    asked, reached = release.parameters, release.reached.values()
    return {
        "method": asked["method"],
        "k": release.k,
        "records": release.records,
        "groups": release.groups,
        "loss": release.loss,
        "column_loss": {str(name): loss for name, loss in release.column_loss.items()},
        "uniques": release.uniques,
        "linked": None,
        "diversity": min((found["diversity"] for found in reached), default=None),
        "closeness": max((found["closeness"] for found in reached), default=None),
        "seconds": seconds,
        "verified": release.verified,
        "warnings": list(release.warnings),
    }


def measure(work: Work, one: Try) -> None:
    """Measure a release beside the original, if both are in memory and not too large."""
    release, view = one.release, work.inspection.view if work.inspection is not None else None
    source: Any = work.source
    on_disk = release is None or isinstance(release.data, (str, Path)) or not release.labels.size
    if release is None or view is None or on_disk or source.part or release.records > MOST_MEASURED:
        return
    one.assessment = _assess(view.frame, release)
    one.figures["linked"] = _linked(one.assessment)


def _assess(original: Any, release: shoal.Release) -> Any:
    asked = release.parameters
    return shoal.assess(
        original,
        release.data,
        columns=release.columns,
        kinds={name: kind for name, kind in (asked["kinds"] or {}).items() if name in release.columns},
        missing_codes=asked["missing_codes"],
        k=release.k,
        by=asked["by"],
        confidential=asked["confidential"],
        kept=release.kept,
        shuffled=False,
    )


def _linked(found: Any) -> float | None:
    """Return the share of records that an intruder links, or that chance does, whichever is more."""
    linkage = found.risk.linkage
    return None if linkage is None else max(linkage.share, linkage.chance)


class Preview(NamedTuple):
    """What a sample says of settings: its loss, the share of records that could be linked, how it was masked."""

    loss: float
    linked: float | None
    records: int
    method: str


def preview(work: Work, settings: Settings) -> Preview | None:
    """Mask a sample; None if it cannot say what the settings cost."""
    view = work.inspection.view if work.inspection is not None else None
    if view is None or view.records < 2:
        return None
    asked = settings.parameters() | {"shuffle": False}
    options = settings.asked.get("options", {})
    limited = "time_limit" in {option.name for option in options_of(asked.get("method", "auto"))}
    if limited or options.get("bound") or asked.get("effort") == "best":  # it would not be quick
        asked = {n: v for n, v in asked.items() if n not in options} | {"method": "mdav", "effort": None}
    if asked.get("small", "error") == "error":
        asked["small"] = "suppress"
    sample = view.sample(SAMPLE)
    try:
        release = shoal.mask(sample, **asked)
        linked = _linked(_assess(sample, release))
    except shoal.ShoalError:
        return None
    return Preview(release.loss, linked, release.records, release.parameters["method"])
