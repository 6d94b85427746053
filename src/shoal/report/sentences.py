"""Sentences of a report page on the processing, safety and usefulness of a release, and on the remaining risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.assessment.assessment import Assessment
from shoal.assessment.risk import Risk
from shoal.assessment.utility import Utility
from shoal.core.messages import agreeing, count
from shoal.kinds.kind_registry import KINDS, TIMES
from shoal.masking.release import Release
from shoal.promises.dominance import is_published
from shoal.report import sections
from shoal.report.withheld_figures import lost_share
from shoal.tables.columns import Name

__all__ = [
    "AVERAGES",
    "either",
    "kept_share",
    "listed",
    "loss_text",
    "other_changes_text",
    "percent",
    "procedure_text",
    "relations_changed",
    "representative_text",
    "risk_text",
    "safety_text",
    "singled_out_text",
    "together",
    "unavoidable",
    "unprotected",
    "usefulness_text",
]

AVERAGES = "Averages over many records stay close to the originals; single records do not."


def kept_share(loss: float) -> str:
    """Return the share of kept information as text, for a published loss."""
    if is_published(loss):
        return f"{max(0.0, 100 - loss):.1f} %"
    return f"over {100 - loss:.0f} %" if loss < 100 else "under 50 %" if loss == 100 else "0.0 %"


def unavoidable(release: Release) -> str:
    """Describe the loss that is proven to be unavoidable for any groups, rounded down."""
    bound = release.bound or 0.0
    return f" Any groups with the promises made here are proven to lose at least {bound:.1f} %." if bound else ""


def unprotected(release: Release) -> tuple[str, str]:
    """Describe the values and records that the release does not protect."""
    are = agreeing(len(release.left), "is", "are")
    text = f"{together(release.left)} {are} released unchanged. " if release.left else "No other column is released. "
    text += singled_out_text(release.singled_out, release.records, release.known)
    alike = [name for name, reached in release.reached.items() if reached["diversity"] < 2]
    if alike:
        same = either(list(map(str, alike)))
        text += (
            f"There are groups whose records all have the same {same}: placing a person in such a group reveals it. "
        )
    if not release.shuffled:
        text += (
            "The records are in the order of the original: anyone who knows a record's position there finds it, and if "
            "they were sorted, neighbours reveal more about a value than its group does; --shuffle releases them in "
            "random order. "
        )
    return ("What does it not protect?", text + sections.APPROXIMATE)


KNOWN = "the masked columns, strata and unchanged columns"


def singled_out_text(number: int, records: int, known: str = KNOWN) -> str:
    """Describe the number of records that an outsider can single out."""
    end = ": anyone who knows all of that about a person finds the record. " if number else ". "
    return f"By what an outsider can know ({known}), {number:,} of {count(records, 'record')} can be singled out{end}"


def procedure_text(release: Release) -> str:
    """Describe the processing of the table."""
    by = release.parameters["by"]
    within = f", within each {together(by)}," if by else ""
    aggregate = representative_text(release)
    if release.labels.ndim == 2:
        return (
            f"In {together(release.columns)}, values were put{within} in groups of at least {release.k} similar "
            f"ones, separately for each column, and replaced by {aggregate} of their group."
        )
    return (
        f"{release.records:,} records were put{within} in {count(release.groups, 'group')} of at least {release.k} "
        f"similar ones. In {together(release.columns)}, every value was replaced by {aggregate} of its group. "
        + other_changes_text(release)
    )


def other_changes_text(release: Release) -> str:
    """Describe the other processing steps."""
    dropped = list(release.dropped)
    text = f"{together(dropped)} {agreeing(len(dropped), 'was', 'were')} left out. " if dropped else ""
    rearranged = release.joined or release.parameters["shuffle"] not in (None, False) or len(release.kept) == 0
    if rearranged or release.left_out or release.blanked or release.codes:
        return text + "The notes below list the other changes to the table."
    return text + "Nothing else in the table was changed."


def representative_text(release: Release) -> str:
    """Describe the representative of a group, by the kinds of its columns."""
    weighted = "weighted " if release.parameters["weights"] is not None else ""
    aggregate, kinds = f"{weighted}{release.parameters['aggregate']}", set(release.kinds.values())
    if not kinds or aggregate == "medoid":
        return f"the {aggregate}"
    words = {name: entry.load().represented_by for name, entry in KINDS.items()}
    words |= dict.fromkeys(TIMES, "")
    words = {name: text or f"the {aggregate}" for name, text in words.items()}
    representatives = [f"{word} ({kind})" for kind, word in words.items() if kind in kinds]
    return either(
        [*([f"the {aggregate} (numbers)"] if len(release.kinds) < len(release.columns) else []), *representatives]
    )


def safety_text(release: Release, assessment: Assessment) -> str:
    """Describe the recount and the success of an intruder."""
    risk = assessment.risk
    if not release.anonymous:
        return (
            f"Each released value is shared by at least {release.k} records, but a record's combination of values may "
            f"be unique: the table is NOT k-anonymous for whole records; {risk_text(risk)}"
        )
    return f"Recounted in the released table: {release.verified}; {risk_text(risk)}"


def risk_text(risk: Risk) -> str:
    """Describe the share of records that were unique, and the share that an intruder could link."""
    text = f"before, {percent(risk.uniqueness.before)} of the records were unique by what an outsider can know."
    if risk.linkage is None:
        return f"{text} The share of them that an intruder with the original values could link was not measured."
    return (
        f"{text} An intruder who already has these original values and links each released record to the nearest of "
        f"them would be right for {percent(risk.linkage.share)} of the records; a guess within the right group is "
        f"right for {percent(risk.linkage.chance)}."
    )


def usefulness_text(loss: float, losses: Mapping[Name, float], utility: Utility) -> str:
    """Describe the loss, and the columns with the largest loss."""
    text = loss_text(loss, losses)
    if loss > 100:
        text += (
            "That is more than 100 % because a group's value can be farther from its records than the overall mean. "
        )
    return text + relations_changed(utility)


def loss_text(loss: float, losses: Mapping[Name, float]) -> str:
    """Describe published losses, in total and for the column that loses most."""
    share = f"{kept_share(loss)} of the information (the variance between records)"
    text = f"{share} is kept, {lost_share(loss)} is lost. "
    worst = max(losses, key=lambda name: losses[name])
    if len(losses) > 1 and is_published(losses[worst]):
        text += f"The column {worst} loses most ({lost_share(losses[worst])}). "
    return text


def relations_changed(utility: Utility) -> str:
    """Describe the change of relations between columns."""
    text = ""
    for measure, changes in (
        ("correlation", utility.correlation_changes()),
        ("association", utility.association_changes()),
    ):
        for first, second, pair in changes[:1]:
            text += (
                f"The {measure} that changed most is that of {first} and {second}, from {pair.before:.2f} to "
                f"{pair.after:.2f}. "
            )
    return text + AVERAGES


def percent(share: float) -> str:
    """Return a share as text in percent."""
    return f"{100 * share:.1f} %" if 0 < share < 1 else f"{100 * share:.0f} %"


def listed(names: Sequence[object]) -> str:
    """Return names as text; of more than eight, list eight and count the rest."""
    text = ", ".join(map(str, names[:8]))
    return text if len(names) <= 8 else f"{text} and {count(len(names) - 8, 'more column')}"


def either(texts: Sequence[str]) -> str:
    """Join texts with "or"."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def together(names: Sequence[object]) -> str:
    """Join names with "and"; for more than eight, return only their number."""
    if len(names) > 8:
        return f"{len(names)} columns"
    texts = [str(name) for name in names]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
