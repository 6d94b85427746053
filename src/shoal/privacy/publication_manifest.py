"""The records of a publication: one that may go along with the data, and one for the data holder alone."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shoal.core.version import __version__
from shoal.masking.manifest import LIBRARIES, plain, relative_to
from shoal.privacy.publication import Publication
from shoal.tables.columns import Name
from shoal.tables.files import sha256
from shoal.tables.outputs import written_beside

__all__ = ["write_private_manifest", "write_publication_manifest"]


def write_publication_manifest(publication: Publication, path: Path, *, output: str | os.PathLike[str]) -> None:
    """Write what may be published: the terms of the release, and nothing computed from the data but the release.

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
    """Write what is for the data holder alone.

    These are exact figures of the confidential values and the input's checksum, which lets anyone test a guess of the
    whole input.
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
    """Return what holds for a release that was drawn from a model of counts."""
    pairs = [[str(first), str(second)] for first, second in publication.tree]
    account = {"delta": publication.delta, "rho": publication.rho}
    return account | {"pairs": pairs, "noise_of_counts_of_pairs": publication.pair_scale}


def _unit(publication: Publication) -> dict[str, Any] | None:
    """Return whom ε covers with all of their records, and what is left for each; None for single records."""
    unit = publication.unit
    if unit is None:
        return None
    budgets = {"epsilon": publication.epsilon}
    if publication.delta is None:
        budgets["epsilon_of_a_record"] = publication.record_epsilon
    return {"column": unit.column, "contributions": unit.contributions, **budgets}


def _terms(publication: Publication, name: Name) -> dict[str, Any]:
    """Return what holds for a column; a domain that was read from the data would tell its maximum."""
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
