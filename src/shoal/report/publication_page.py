"""Report page for a differentially private release.

Nothing on the public page is computed from the confidential values, because the terms are public and the statistics
describe the released table, which is already noisy. The private page adds figures for the data holder alone.
"""

from __future__ import annotations

import numpy as np

from shoal.core.display import for_people
from shoal.core.messages import agreeing, count
from shoal.core.version import __version__
from shoal.masking.manifest import as_json, versions
from shoal.privacy.publication import Publication
from shoal.report import sections
from shoal.report.pages import Page
from shoal.report.sections import PageTable, Section
from shoal.tables.columns import Name
from shoal.tables.formats.frames import open_table

__all__ = ["publication_page"]

DONE_TO_NUMBERS = {
    "none": "and random noise was added to every one of them",
    "insensitive": "averaged in groups along an order fixed beforehand, and random noise was added to every average",
    "insensitive-ir": "averaged in groups of neighbours, each column separately, and random noise was added to every "
    "average",
}
SHARED = "averaged in groups that were formed from the values, and random noise was added to every average"


def publication_page(publication: Publication, *, private: bool = False) -> Page:
    """Return the report page for a publication."""
    columns = publication.columns
    names = ", ".join(map(str, columns))
    method = str(publication.parameters["method"])
    end_to_end = publication.definition == 1
    budget_of = "privacy budget of this release"
    if publication.unit is not None:
        budget_of = f"privacy budget of all records of a unit ({publication.unit})"
    repeat = {"shoal": __version__, "versions": versions(), "parameters": dict(publication.parameters)}
    return Page(
        title="Publication report" + (" — PRIVATE, not for release" if private else ""),
        subtitle=f"{count(publication.records, 'record')}; {agreeing(len(columns), 'column')} {names}",
        tiles=[
            (f"ε = {publication.epsilon:g}", budget_of),
            *([] if publication.delta is None else [(f"δ = {publication.delta:g}", "in addition to the factor e^ε")]),
            (
                f"Definition {publication.definition}",
                "raw to released table" if end_to_end else "with the groups taken as given",
            ),
            (method, "method"),
            (f"{len(columns)}", f"{agreeing(len(columns), 'column')} published"),
        ],
        summary=[
            ("What was done.", _done(publication, method)),
            ("What is guaranteed?", publication.guarantee),
            ("How large is the noise?", _noise(publication, method)),
        ],
        sections=[
            _terms(publication),
            _released(publication),
            *([_private(publication)] if private else []),
            sections.details([("Parameters and versions", as_json(repeat))], []),
        ],
        notes=publication.notes if private else publication.public_notes,
    )


def _done(publication: Publication, method: str) -> str:
    numbers = [str(name) for name in publication.columns if name in publication.bounds]
    answers = [str(name) for name in publication.columns if name in publication.categories]
    sentences = []
    if publication.delta is not None:
        return (
            f"In {', '.join(map(str, publication.columns))}, the values of {publication.records:,} records were "
            "clipped to a domain fixed beforehand and counted; random noise was added to every count, and as many new "
            "records were drawn from a model of the noisy counts. All other columns were left out."
        )
    if numbers:
        treatment = DONE_TO_NUMBERS.get(method, SHARED)
        sentences.append(
            f"In {', '.join(numbers)}, the values of {publication.records:,} records were clipped to a domain fixed "
            f"beforehand{',' if treatment.startswith('averaged') else ''} {treatment}."
        )
    if answers:
        sentences.append(
            f"In {', '.join(answers)}, every record reports its own category or, with some probability, a random one."
        )
    return " ".join([*sentences, "All other columns were left out, unless the notes name them."])


def _noise(publication: Publication, method: str) -> str:
    if publication.delta is not None:
        pairs = [f"{first} and {second}" for first, second in publication.tree]
        widest = f", and for a pair of ranges at most {for_people(publication.pair_scale or 0.0)}" if pairs else ""
        related = f" Columns are related only through the counted pairs: {', '.join(pairs)}." if pairs else ""
        return (
            f"The count of a range of values contains Gaussian noise with the standard deviation below{widest}: groups "
            f"of fewer records may consist of noise alone.{related} A single row means nothing."
        )
    if not publication.bounds:
        return (
            "The table below shows how likely a record deliberately reports its own category; a single answer means "
            "little."
        )
    whose = "Every value" if method == "none" else "A group's average"
    size = "" if method == "none" else " divided by the number of records in the group"
    cut = (
        "Values were then truncated to the domain, which biases their mean towards its middle: do not compute means "
        "from them, but use the estimates below, which were computed before."
        if publication.parameters["truncate"]
        else "Values were not truncated to the domain, so that noise averages out in their mean."
    )
    return f"{whose} contains Laplace noise whose scale is the figure below{size}. {cut} A single value means little."


def _terms(publication: Publication) -> Section:
    secret = publication.parameters["bounds"] == "data"

    def row(name: Name) -> list[str]:
        if publication.delta is not None:
            return [str(name), *_counted(publication, name)]
        budget = for_people(publication.budgets[name])
        if name in publication.categories:
            truth = f"probability of deliberately reporting the own category: {for_people(publication.truth[name])}"
            return [str(name), budget, ", ".join(map(str, publication.categories[name])), truth]
        if secret:
            return [str(name), budget, "read from the data", "not shown"]
        low, high = publication.bounds[name]
        return [
            str(name),
            budget,
            f"{for_people(low, 6)} to {for_people(high, 6)}",
            for_people(publication.scales[name]),
        ]

    head = ["column", "share of ε", "domain", "noise scale × group size"]
    if publication.delta is not None:
        head = ["column", "domain", "standard deviation of the noise on a count"]
    covered = "" if publication.definition == 1 else ", with the groups taken as given"
    if publication.delta is not None:
        covered = " and δ"
    text = [
        f"The columns share the budget: ε{covered} covers all of them together, as stated above. The domain is public "
        "knowledge that was fixed before the data were seen."
        if not secret
        else "The domains were read from the data: this release is an experiment and must not be published."
    ]
    if publication.unit is not None and publication.delta is None:
        text.append(
            f"The records of a unit share ε ({publication.unit}): the noise corresponds to ε = "
            f"{for_people(publication.record_epsilon)} per record."
        )
    return Section("Terms", text, tables=[PageTable(head, [row(name) for name in publication.columns])])


def _counted(publication: Publication, name: Name) -> list[str]:
    """Return the domain of a column and the noise on its counts, as text."""
    noise = for_people(publication.scales[name])
    if name in publication.categories:
        return [", ".join(map(str, publication.categories[name])), noise]
    if publication.parameters["bounds"] == "data":
        return ["read from the data", noise]
    low, high = publication.bounds[name]
    return [f"{for_people(low, 6)} to {for_people(high, 6)}", noise]


def _released(publication: Publication) -> Section:
    table = open_table(publication.data)
    places = {name: name for name in table.names}
    if isinstance(publication.data, np.ndarray):  # the columns of a released array are renumbered
        unprotected = publication.parameters["keep"]
        places = {name: place for place, name in enumerate(sorted([*publication.columns, *unprotected]))}
    rows, estimates = [], []
    for name in publication.columns:
        if name in publication.bounds:
            values = table[places[name]].numbers().values
            figures = [values.mean(), values.std(), *np.quantile(values, [0.25, 0.5, 0.75])]
            rows.append([str(name), *(for_people(figure, 5) for figure in figures)])
        if name in publication.estimates:
            estimates += [
                [str(name), statistic, str(figure)] for statistic, figure in publication.estimates[name].rows()
            ]
    head = ["column", "mean", "standard deviation", "lower quartile", "median", "upper quartile"]
    tables = [PageTable(head, rows)] if rows else []
    text = ["These are statistics of the released, noisy table: anyone who has it can compute them."] if rows else []
    if estimates and publication.parameters["bounds"] != "data":
        tables.append(PageTable(["column", "estimate", "value ± standard error of the noise"], estimates))
        text.append(
            "Estimates are computed from the noisy sums before truncation to the domain; their errors are due to the "
            "noise alone and do not reflect values that were outside the domain."
        )
    return Section("The released values", text, tables=tables)


def _private(publication: Publication) -> Section:
    rows = [[name.removeprefix("private: "), value] for name, value in publication.private_rows()]
    text = ["Exact figures of the confidential values: this page is for the data holder alone."]
    return Section("Not for release", text, tables=[PageTable(["column", "figures"], rows)])
