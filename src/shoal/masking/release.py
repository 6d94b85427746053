"""The release: the masked table with its groups, losses, risks and verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from shoal.core.display import html_table, write_report
from shoal.core.messages import Message, agreeing, count, count_holders, listed, summary_lines
from shoal.core.types import Floats, Ints
from shoal.masking.verdict import Verdict, judge
from shoal.promises.dominance import may_be_published, published_loss, withheld_columns
from shoal.promises.promise_registry import PROMISES, describe_promises
from shoal.tables.columns import Name

if TYPE_CHECKING:
    from shoal.comparison.trials import Comparison

__all__ = ["GroupCount", "Release", "UnitCount"]

MEASURED = ("diversity", "entropy", "recursive", "closeness")  # measures with a fixed position in the summary


class GroupCount(NamedTuple):
    """A number of groups, and the number of groups examined."""

    groups: int
    of: int


class UnitCount(NamedTuple):
    """A number of units (persons, households, firms), and the number of all units."""

    units: int
    of: int


@dataclass(frozen=True)
class Release:
    """A verified release: the masked table with its groups, losses, risks and parameters.

    Parameters
    ----------
    data
        The masked table, of the same type as the input but without a pandas index. The released records are in their
        original order unless shuffled. If the table stayed on disk, its path.
    labels
        The group of each record of `data`; ``(n, d)`` if every column was grouped on its own; empty if the table
        stayed on disk.
    size_histogram
        The number of groups of each size.
    loss
        Information loss 100·SSE/SST on the standardised columns, from the released values. A cell made missing loses
        its whole squared deviation from the mean.
    bound
        A certified lower bound on the loss of any partition into groups that keep the promises, or None.
    status
        ``"optimal"``, ``"bounded"`` or ``"heuristic"``.
    column_loss
        The loss of each masked column alone.
    kept
        The row numbers of the released records in the original table; empty if the table stayed on disk.
    parameters
        All parameters that decide the result, as plain values.
    facts
        Choices made by the method.
    notes
        Unexpected actions of the masking, as sentences.
    timings
        Seconds per step.
    partition_loss
        The loss of the partition itself, as if the centroid of each group were released.
    scale_loss
        The loss of each column that was compared on another scale (`scale`), measured on that scale: 100·SSE/SST of its
        logarithms or ranks. `loss` and `column_loss` are in the units of the columns.
    kinds
        The kinds of the masked columns without numbers: nominal, ordinal, hierarchy, date, time, duration.
    dropped
        The columns of the original table that are left out, each with the reason.
    left
        The unchanged columns: neither masked nor strata.
    outsider
        The columns that an outsider can know: masked columns, strata and unchanged columns, without sensitive columns,
        the weight column and the unit column.
    singled_out
        The number of records that are unique in the columns that an outsider can know (`outsider`), counted in the
        released table.
    unique_units
        The number of units whose records, taken together, are unique in the same columns. None if the release has no
        unit column, because only that column links the records of a unit.
    unique_weights
        The number of records with a unique weight, if the weight column is released; for tables with more than a
        million records, an estimate from a sample of the weights.
    identifying
        The released columns that look like identifiers, including those in ``keep``, each with the reason.
    revealing
        The unchanged columns that reveal a masked column, each with that column: their original values correspond one
        to one, and values repeat or have the same or the opposite order. Checked only for tables in memory.
    unit_records
        An upper bound on the records of a unit; 1 without units.
    reached
        Per sensitive column the worst figures of any group: the least number of values (``"diversity"``), the least l
        by entropy (``"entropy"``), the greatest distance from the table (``"closeness"``) and, if requested, the
        greatest ratio of recursive diversity (``"recursive"``).
    homogeneous, concentrated
        Per sensitive column, the groups of identical released records that share one value there: all records of the
        group, or at least 90 % of them. An outsider who finds a person's group learns that value. A missing value
        counts as a value.
    dominated
        Per masked column of numbers, the groups in which another member can estimate the largest value to within 10 %
        (p %-rule). In absolute values, all members except the two largest add up to less than 10 % of the largest.
        Members are records, or units if there are any, with their weighted values. Only released means reveal group
        totals, so nothing is counted for medians and medoids.
    certificate
        The data for an independent check of the bound (`shoal.verify_bound`), or None.
    group_loss, column_group_loss
        The largest share of the loss due to a single group of fewer than five records, in total and per column. It
        decides which losses are published (`published`).
    codes
        Per masked column, the released code for missing values, if it is one of the named codes.
    joined
        The stratum columns in which small strata were joined.
    left_out
        The number of suppressed records; each counts in the loss as an average record that lost everything.
    blanked
        The number of cells made missing (``small="merge"``).
    weights
        The weight of each record of `data`, if weights were passed as a vector; else None.
    """

    data: Any = field(repr=False)
    labels: Ints = field(repr=False)
    size_histogram: Mapping[int, int]
    loss: float
    bound: float | None
    status: Literal["optimal", "bounded", "heuristic"]
    column_loss: Mapping[Name, float]
    kept: Ints = field(repr=False)
    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    notes: tuple[Message, ...]
    timings: Mapping[str, float]
    partition_loss: float = 0.0
    scale_loss: Mapping[Name, float] = field(default_factory=dict)
    kinds: Mapping[Name, str] = field(default_factory=dict)
    dropped: Mapping[Name, str] = field(default_factory=dict)
    left: tuple[Name, ...] = ()
    outsider: tuple[Name, ...] = ()
    singled_out: int = 0
    unique_units: UnitCount | None = None
    unique_weights: int = 0
    identifying: Mapping[Name, str] = field(default_factory=dict)
    revealing: Mapping[Name, Name] = field(default_factory=dict)
    unit_records: int = 1
    reached: Mapping[Name, Mapping[str, float]] = field(default_factory=dict)
    homogeneous: Mapping[Name, GroupCount] = field(default_factory=dict)
    concentrated: Mapping[Name, GroupCount] = field(default_factory=dict)
    dominated: Mapping[Name, GroupCount] = field(default_factory=dict)
    certificate: Any = field(default=None, repr=False)
    group_loss: float = 0.0
    column_group_loss: Mapping[Name, float] = field(default_factory=dict)
    codes: Mapping[Name, Any] = field(default_factory=dict)
    joined: tuple[Name, ...] = ()
    left_out: int = 0
    blanked: int = 0
    weights: Floats | None = field(default=None, repr=False)

    @property
    def gap(self) -> float | None:
        """The largest possible excess of the loss over the optimum, as a share of the loss; None without a bound."""
        if self.bound is None:
            return None
        return max(0.0, self.loss - self.bound) / self.loss if self.loss > 0 else 0.0

    def published(self) -> Release:
        """Return the release with losses that are safe to publish with its table (`shoal.promises.dominance`)."""
        precise = may_be_published(self.loss, self.group_loss)
        withheld = withheld_columns(self.column_loss, self.column_group_loss, total=precise)
        return replace(
            self,
            loss=published_loss(self.loss, precise=precise),
            partition_loss=published_loss(self.partition_loss, precise=precise),
            scale_loss={},
            bound=floor(10 * self.bound) / 10 if precise and self.bound is not None else None,
            column_loss={
                name: published_loss(loss, precise=name not in withheld) for name, loss in self.column_loss.items()
            },
        )

    @property
    def anonymous(self) -> bool:
        """True if whole records are k-anonymous, not only the values of each column."""
        return self.labels.ndim < 2 or len(self.columns) == 1

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the release: its level (``"stop"``, ``"look"`` or ``"fine"``) and the reasons."""
        return judge(self)

    @property
    def uniques(self) -> int:
        """The number of unique records; an alias of `singled_out`."""
        return self.singled_out

    @property
    def shuffled(self) -> bool:
        """True if the records are in random order."""
        return self.parameters["shuffle"] is not None and self.parameters["shuffle"] is not False

    @property
    def known(self) -> str:
        """The columns that an outsider can know, as a phrase."""
        return f"the masked columns{' and ' * bool(self.beside)}{listed(self.beside)}"

    @property
    def beside(self) -> list[Name]:
        """The unmasked columns that an outsider can know: strata and unchanged columns."""
        return [name for name in self.outsider if name not in self.columns]

    @property
    def verified(self) -> str:
        """The verified guarantee of the released table, as text; it covers only the columns that it names."""
        names = ", ".join(map(str, self.columns))
        within = f" within {', '.join(map(str, self.parameters['by']))}" if self.parameters["by"] else ""
        what = f"each value of {names}" if self.labels.ndim == 2 else f"every combination of {names}"
        if len(self.columns) == 1:
            what = f"every value of {names}"
        unit = self.parameters.get("unit")
        sharing = count_holders(self.k, unit)
        return "; ".join([f"{what}{within} is shared by at least {sharing}", *self._promised()])

    def _promised(self) -> list[str]:
        """Return a clause for each sensitive column with promises: the reached figures and the requested promises."""
        return [
            f"{name} has {_reached(measures)} in every group (requested: {', '.join(promises)})"
            for name, measures in self.reached.items()
            if (promises := self._promises(name))
        ]

    def _promises(self, name: Name) -> list[str]:
        """Return the promises on a sensitive column as text."""
        values = {parameter: self.parameters.get(parameter) for parameter in PROMISES}
        promises = {key: value.get(name) if isinstance(value, Mapping) else value for key, value in values.items()}
        return [f"{parameter} {value}" for parameter, value in promises.items() if value is not None]

    @property
    def promise(self) -> str:
        """The promises on sensitive columns as a short phrase; empty without promises."""
        return describe_promises({name: self.parameters.get(name) for name in PROMISES})

    @property
    def k(self) -> int:
        """The requested smallest group size k."""
        return int(self.parameters["k"])

    @property
    def records(self) -> int:
        """The number of released records."""
        return len(self.kept) or sum(size * count for size, count in self.size_histogram.items())

    @property
    def groups(self) -> int:
        """The number of groups."""
        return sum(self.size_histogram.values())

    @property
    def sizes(self) -> Ints:
        """The number of records in each group, in ascending order."""
        return np.repeat(list(self.size_histogram), list(self.size_histogram.values()))

    @property
    def columns(self) -> list[Name]:
        """The masked columns."""
        return list(self.column_loss)

    def rows(self) -> list[tuple[str, str]]:
        """Return the summary as pairs of a name and a text, one per line."""
        smallest, largest = min(self.size_histogram), max(self.size_histogram)
        spread = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
        names = ", ".join(f"{name} ({self.kinds[name]})" if name in self.kinds else str(name) for name in self.columns)
        chosen = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        each = f" across {len(self.columns)} columns" if not self.anonymous else ""
        kept = f"{self.records:,}"
        if self.left_out:
            kept = f"{self.records:,} of {self.records + self.left_out:,} ({self.left_out:,} suppressed)"
        lines = [
            *self.verdict.rows(),
            ("records", f"{kept} in {count(self.groups, 'group')} of {spread}{each} (k = {self.k})"),
            ("method", self.parameters["method"] + (f" ({chosen})" if chosen else "")),
            ("columns", f"{len(self.columns)}: {names}"),
        ]
        if self.parameters["by"]:
            lines.append(("strata", ", ".join(map(str, self.parameters["by"]))))
        own = f" (with group centroids {self.partition_loss:.5f} %)" if self.kinds else ""
        lines.append(("information loss", f"{self.loss:.5f} %{own}"))
        if self.scale_loss:
            losses = [f"{name} {loss:.5f} %" for name, loss in self.scale_loss.items()]
            lines.append(("loss on scale", ", ".join(losses)))
        if self.bound is not None and self.gap is not None:
            lines.append(("lower bound", f"{self.bound:.5f} % ({self.status}, gap {100 * self.gap:.3f} %)"))
        lines.append(("verified", self.verified))
        if self.left:
            lines.append(("unchanged columns", ", ".join(map(str, self.left))))
        if self.dropped:
            columns = [f"{name} ({reason})" if reason else str(name) for name, reason in self.dropped.items()]
            lines.append(("left out", f"{len(columns)}: {', '.join(columns)}"))
        return [*lines, *self.risks(), *(("note", note) for note in self.notes)]

    def risks(self) -> list[tuple[str, str]]:
        """Return the risk figures (singled out, sensitive, units) as pairs of a name and a text."""
        lines = [("singled out", f"{self.singled_out:,} of {count(self.records, 'record')} by {self.known}")]
        for name, measures in self.reached.items():
            (alike, of), (most, _) = self.homogeneous[name], self.concentrated[name]
            shared = f"all records share one value in {alike:,} of {count(of, 'group')}, at least 90 % in {most:,}"
            lines.append(("sensitive", f"{name}: {shared}; {_reached(measures)} in every group"))
        if self.unique_units is not None:
            alone, of = self.unique_units
            units = f"{alone:,} of {of:,} ({self.parameters['unit']})"
            lines.append(("units", f"{units} {agreeing(alone, 'is', 'are')} unique by their records taken together"))
        return lines

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        original: Any = None,
        output: str | os.PathLike[str] | None = None,
        comparison: Comparison | None = None,
    ) -> Path:
        """Write an HTML report on the safety, utility and method of the release; the report may be published.

        Parameters
        ----------
        path
            The HTML file. It needs no other file and no network.
        original
            The original table or its path, against which the release is measured. The report contains none of its
            values. Without `original`, or for a table that stayed on disk or on a cluster, it has fewer figures.
        output
            The file of the masked table, for the command that repeats the masking.
        comparison
            The result of `shoal.compare_around` or `shoal.compare`, for a map of risk and utility.

        Returns
        -------
        Path
            The path of the report.
        """
        return write_report("pages:release_page", path, self, original=original, output=output, comparison=comparison)

    def manifest(
        self,
        path: str | os.PathLike[str],
        *,
        source: str | os.PathLike[str],
        output: str | os.PathLike[str],
        name: str | None = None,
    ) -> Path:
        """Write the manifest of the run, from which ``shoal mask --from-manifest`` repeats the run byte for byte.

        Parameters
        ----------
        path
            The JSON file.
        source, output
            The original file and the masked file.
        name
            A name for the original file, to keep its path out of the manifest. ``shoal mask --from-manifest`` then
            expects the file next to the manifest or as ``IN``, and checks its SHA-256.

        Returns
        -------
        Path
            The path of the manifest.
        """
        from shoal.masking.manifest import write_manifest

        write_manifest(self, Path(path), source=source, output=output, name=name)
        return Path(path)

    def command(self, source: str, output: str, hierarchies: Mapping[Name, str] | None = None) -> str:
        """Return the command that repeats the masking; `hierarchies` maps columns to the files of their hierarchies."""
        from shoal.masking.manifest import as_command

        return as_command(self.parameters, source, output, hierarchies)

    def call(self, source: str, output: str) -> str:
        """Return the Python call that repeats the masking."""
        from shoal.masking.manifest import as_call

        return as_call(self.parameters, source, output)

    @property
    def repeatable(self) -> bool:
        """True if the command and the call reproduce the same bytes.

        They may not after a time limit, a stop or a shuffle without a seed, or if a parameter is an object.
        """
        from shoal.algorithms.registry import ALL_METHODS
        from shoal.masking.request import not_recorded

        if not_recorded(self.parameters):
            return False
        entry = ALL_METHODS.get(self.parameters["method"])
        timed = entry is None or not entry.repeatable(self.parameters["options"])
        return not timed and "stopped" not in self.facts and self.parameters["shuffle"] is not True

    def __str__(self) -> str:
        return summary_lines(self.rows())

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def _reached(measures: Mapping[str, float]) -> str:
    """Return the worst figures of any group in a sensitive column, as text."""
    ratio = f", ratio at most {measures['recursive']:.3g}" if "recursive" in measures else ""
    other = "".join(f", {name} {value:.4g}" for name, value in measures.items() if name not in MEASURED)
    entropy = f"by entropy {measures['entropy']:.2f}{ratio}"
    return f"l ≥ {measures['diversity']:.0f}, {entropy}, t ≤ {measures['closeness']:.4f}{other}"
