"""The page of a differentially private release.

Nothing on it is computed from the confidential values: the terms are public, and the statistics are those of the
released table itself, which is noisy already.
"""

from __future__ import annotations

import numpy as np

from shoal.core.display import for_people
from shoal.core.version import __version__
from shoal.masking.manifest import as_json, versions
from shoal.privacy.publication import Publication
from shoal.report import sections
from shoal.report.pages import Page
from shoal.report.sections import Section, Table
from shoal.tables.columns import Name
from shoal.tables.frames import open_table

__all__ = ["publication_page"]


def publication_page(publication: Publication) -> Page:
    """Make the page of a publication."""
    columns = publication.columns
    names = ", ".join(map(str, columns))
    method = publication.parameters["method"]
    whole = publication.definition == 1
    done = (
        f"In {names}, the values of {len(publication.labels):,} records were clipped to a domain fixed beforehand, "
        "averaged in groups, and random noise was added to every average. All other columns were left out, unless the "
        "notes name them."
    )
    noise = (
        "A group's average carries Laplace noise whose scale is the figure below divided by the number of records in "
        "the group. Statistics over many groups are close to the truth; a single value is not."
    )
    budget_of = "privacy budget of this release"
    if publication.unit is not None:
        budget_of = f"privacy budget of all records of a unit ({publication.unit})"
    repeat = {"shoal": __version__, "versions": versions(), "parameters": dict(publication.parameters)}
    return Page(
        title="Publication report",
        subtitle=f"{len(publication.labels):,} records; columns {names}",
        tiles=[
            (f"ε = {publication.epsilon:g}", budget_of),
            (f"Definition {publication.definition}", "raw to released table" if whole else "with the groups as given"),
            (str(method), "method"),
            (f"{len(columns)}", f"column{'s' * (len(columns) != 1)} published"),
        ],
        summary=[
            ("What was done.", done),
            ("What is guaranteed?", publication.guarantee),
            ("How large is the noise?", noise),
        ],
        sections=[
            _terms(publication),
            _released(publication),
            sections.details([("Parameters and versions", as_json(repeat))], []),
        ],
        notes=publication.notes,
    )


def _terms(publication: Publication) -> Section:
    secret = publication.parameters["bounds"] == "data"

    def row(name: Name) -> list[str]:
        budget = for_people(publication.budgets[name])
        if secret:
            return [str(name), budget, "read from the data", "not told"]
        low, high = publication.bounds[name]
        return [
            str(name),
            budget,
            f"{for_people(low, 6)} to {for_people(high, 6)}",
            for_people(publication.scales[name]),
        ]

    head = ["column", "share of ε", "domain", "noise scale × group size"]
    text = [
        "The budget is shared by the columns: whoever combines them all learns no more than ε allows. The domain is "
        "public knowledge that was fixed before the data were seen."
        if not secret
        else "The domains were read from the data: this release is an experiment and must not be published."
    ]
    if publication.unit is not None:
        text.append(
            f"The records of a unit share ε ({publication.unit}): the noise is that of "
            f"{for_people(publication.record_epsilon)} for each record."
        )
    return Section("Terms", text, tables=[Table(head, [row(name) for name in publication.columns])])


def _released(publication: Publication) -> Section:
    table = open_table(publication.data)
    rows = []
    for name in publication.columns:
        values = table.column(name).values
        figures = [values.mean(), values.std(), *np.quantile(values, [0.25, 0.5, 0.75])]
        rows.append([str(name), *(for_people(figure, 5) for figure in figures)])
    head = ["column", "mean", "standard deviation", "lower quartile", "median", "upper quartile"]
    text = ["These are statistics of the released, noisy table: anybody who holds it can compute them."]
    return Section("The released values", text, tables=[Table(head, rows)])
