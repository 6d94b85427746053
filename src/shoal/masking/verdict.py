"""The verdict on a release: stop, look or fine, with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shoal.core.display import html_table
from shoal.core.messages import Message, agreeing, count, parameter, setting, summary_lines
from shoal.promises.dominance import PERCENT

if TYPE_CHECKING:
    from shoal.core.types import Name
    from shoal.masking.release import GroupCount, Release

__all__ = ["Reason", "Verdict", "judge"]

LOSS = 50.0  # percent; above it most of the information is lost
LEFT_OUT = 0.05  # largest share of suppressed records
FEWEST = 3  # smallest usual k: each member of a group of two can work out the other's value
NEARLY_UNIQUE = 0.5  # largest share of records with a unique weight
LISTED = 8  # columns listed in a reason
ADVICE = {
    "stop": "do not release this table before each reason is resolved",
    "look": "read the reasons before you release this table",
    "fine": "no check found a reason against releasing this table",
}

Level = Literal["stop", "look", "fine"]


@dataclass(frozen=True)
class Reason:
    """A reason not to release a table.

    Parameters
    ----------
    level
        ``"stop"`` or ``"look"``.
    name
        The name of the check.
    sentence
        The problem with the released table.
    figure
        The size of the problem: a number of records, columns, groups or units, the loss in percent, or k.
    """

    level: Level
    name: str
    sentence: Message
    figure: float


@dataclass(frozen=True)
class Verdict:
    """The verdict on a release, with the reasons against it.

    Parameters
    ----------
    reasons
        The reasons against the release, the ``"stop"`` reasons first.
    """

    reasons: tuple[Reason, ...] = ()

    @property
    def level(self) -> Level:
        """The most severe level among the reasons, or ``"fine"`` if there are no reasons."""
        return self.reasons[0].level if self.reasons else "fine"

    @property
    def advice(self) -> str:
        """The recommended action, as a sentence."""
        return ADVICE[self.level]

    @property
    def text(self) -> str:
        """The level and the advice."""
        return f"{self.level.upper()}: {self.advice}"

    def rows(self) -> list[tuple[str, str]]:
        """Return the verdict and its reasons as summary lines, each a pair of a name and a text."""
        return [("verdict", self.text), *((reason.level, reason.sentence) for reason in self.reasons)]

    def __str__(self) -> str:
        return summary_lines(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def judge(release: Release) -> Verdict:
    """Return the verdict on a release."""
    checks: dict[Level, Sequence[Callable[[Release], Iterator[tuple[str, str, float]]]]] = {
        "stop": (_identifiers, _not_anonymous, _singled_out, _homogeneous, _lost, _left_out),
        "look": (_small_k, _order, _weights, _revealing, _dominated, _concentrated, _units),
    }
    return Verdict(
        tuple(
            Reason(level, name, Message(sentence), figure)
            for level, of_level in checks.items()
            for check in of_level
            for name, sentence, figure in check(release)
        )
    )


def _identifiers(release: Release) -> Iterator[tuple[str, str, float]]:
    for name, reason in release.identifying.items():
        yield "identifier", f"column {name} looks like an identifier and is in the release: {reason}", 1


def _not_anonymous(release: Release) -> Iterator[tuple[str, str, float]]:
    if not release.anonymous:
        sentence = (
            "NOT k-anonymous for whole records: each column was grouped separately, so a record's combination of "
            "values may be unique"
        )
        yield "k-anonymity", sentence, len(release.columns)


def _singled_out(release: Release) -> Iterator[tuple[str, str, float]]:
    if alone := release.singled_out:
        records = f"{alone:,} of {count(release.records, 'record')} {agreeing(alone, 'is', 'are')}"
        yield "singled out", f"{records} unique in the columns that an outsider can know: {release.known}", alone


def _homogeneous(release: Release) -> Iterator[tuple[str, str, float]]:
    if columns := _columns_with(release.homogeneous):
        sentence = (
            f"all records of a group share one sensitive value, which is thereby disclosed: {columns}; use "
            f"{setting('diversity', 2)} for two values in every group, or leave columns out with "
            f"{parameter('identifiers')}"
        )
        yield "sensitive", sentence, _groups(release.homogeneous)


def _lost(release: Release) -> Iterator[tuple[str, str, float]]:
    if release.loss > LOSS:
        sentence = "more than half of the information (the variance between records) is lost"
        yield "information loss", sentence, release.loss


def _left_out(release: Release) -> Iterator[tuple[str, str, float]]:
    everyone = release.records + release.left_out
    if release.left_out > LEFT_OUT * everyone:
        share = f"{100 * release.left_out / everyone:.1f} %"
        sentence = f"{release.left_out:,} of {everyone:,} records ({share}) were suppressed"
        yield "suppressed", sentence, release.left_out


def _small_k(release: Release) -> Iterator[tuple[str, str, float]]:
    if release.k < FEWEST:
        member = "record" if release.parameters["unit"] is None else release.parameters["unit"]
        sentence = (
            f"k is {release.k}, below the usual minimum of 3: in a group of two, each {member} may reveal the other"
        )
        yield "small k", sentence, release.k


def _order(release: Release) -> Iterator[tuple[str, str, float]]:
    if not release.shuffled:
        sentence = (
            "the records are in the order of the original, which may reveal some of them; use "
            f"{setting('shuffle', True)}"
        )
        yield "record order", sentence, release.records


def _weights(release: Release) -> Iterator[tuple[str, str, float]]:
    if release.unique_weights > NEARLY_UNIQUE * release.records:
        share = f"{100 * min(1.0, release.unique_weights / release.records):.0f} %"
        name = release.parameters["weights"]
        sentence = f"{share} of the records have a unique weight, which marks them: {name}"
        yield "weights", sentence, release.unique_weights


def _revealing(release: Release) -> Iterator[tuple[str, str, float]]:
    for name, masked in release.revealing.items():
        pair = f"unchanged column {name} reveals masked column {masked}"
        yield "revealing", f"{pair}: their original values correspond one to one", 1


def _dominated(release: Release) -> Iterator[tuple[str, str, float]]:
    if columns := _columns_with(release.dominated):
        unit, weighted = release.parameters["unit"], release.parameters["weights"] is not None
        member, value = ("record", "value") if unit is None else (unit, "total")
        sentence = (
            f"one {member} dominates its group, so another member can estimate its {'weighted ' * weighted}{value} "
            f"to within {PERCENT} % (p %-rule): {columns}"
        )
        yield "dominated", sentence, _groups(release.dominated)


def _concentrated(release: Release) -> Iterator[tuple[str, str, float]]:
    only_most = {
        name: groups._replace(groups=groups.groups - release.homogeneous[name].groups)
        for name, groups in release.concentrated.items()
    }
    if columns := _columns_with(only_most):
        sentence = f"at least 90 %, but not all, of the records of a group share one sensitive value: {columns}"
        yield "sensitive", sentence, _groups(only_most)


def _units(release: Release) -> Iterator[tuple[str, str, float]]:
    if release.unique_units is not None and release.unique_units.units:
        alone, of = release.unique_units
        units = f"{alone:,} of {of:,} units ({release.parameters['unit']}) {agreeing(alone, 'is', 'are')}"
        yield "units", f"{units} unique by their records taken together", alone


def _groups(counts: Mapping[Name, GroupCount]) -> int:
    return max(groups for groups, _ in counts.values())


def _columns_with(counts: Mapping[Name, GroupCount]) -> str:
    """Return the columns with such groups as text, most groups first; empty if there are none."""
    present = sorted((item for item in counts.items() if item[1].groups), key=lambda item: -item[1].groups)
    texts = [f"{name} in {groups:,} of {of:,} groups" for name, (groups, of) in present[:LISTED]]
    rest = len(present) - LISTED
    return ", ".join([*texts, *([f"and {count(rest, 'more column')}"] if rest > 0 else [])])
