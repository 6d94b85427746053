"""A try: mask the table as the settings ask, and measure what it costs and protects."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import shoal
from shoal.app.work import Settings, Try, Work

__all__ = ["measure", "preview", "run_try"]

SAMPLE = 1000  # records of a preview
MOST_MEASURED = 200_000  # records that are measured beside their originals


def run_try(work: Work, number: int, settings: Settings, folder: Path) -> Try:
    """Mask the table, and measure the release."""
    source: Any = work.source
    one = Try(number, settings, folder=folder)
    settings.request()  # refused before anything is read, if it does not go together
    started = time.perf_counter()
    output, labels = one.file(source), one.labels
    one.release = shoal.mask(source.path, **settings.parameters(), **source.csv, output=output, labels=labels)
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
        "groups": len(release.sizes),
        "loss": release.loss,
        "column_loss": {str(name): loss for name, loss in release.column_loss.items()},
        "uniques": release.uniques,
        "linked": None,
        "diversity": min((found["diversity"] for found in reached), default=None),
        "closeness": max((found["closeness"] for found in reached), default=None),
        "seconds": seconds,
        "verified": release.verified,
    }


def measure(work: Work, one: Try) -> None:
    """Measure a release beside the original, if both are in memory and not too large."""
    release, view = one.release, work.inspection.view if work.inspection is not None else None
    source: Any = work.source
    on_disk = release is None or isinstance(release.data, (str, Path)) or not release.labels.size
    if release is None or view is None or on_disk or source.part or release.records > MOST_MEASURED:
        return
    asked = release.parameters
    one.assessment = shoal.assess(
        view.frame,
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
    linkage = one.assessment.risk.linkage
    one.figures["linked"] = None if linkage is None else max(linkage.share, linkage.chance)


def preview(work: Work, settings: Settings) -> tuple[float, int] | None:
    """Return the loss on a sample and the number of its records; None if the sample cannot say."""
    view = work.inspection.view if work.inspection is not None else None
    if view is None or view.records < 2:
        return None
    asked = settings.parameters() | {"shuffle": False}
    if not any(asked.get(name) for name in ("unit", "diversity", "closeness")):
        asked = {n: v for n, v in asked.items() if n not in (*settings.asked.get("options", {}), "effort", "refine")}
        asked["method"] = "mdav"
    if asked.get("small", "error") == "error":
        asked["small"] = "suppress"
    try:
        release = shoal.mask(view.sample(SAMPLE), **asked)
    except shoal.ShoalError:
        return None
    return release.loss, release.records
