"""The summary of a masking as a `Release`: losses and group sizes over all buckets, and notes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.core.errors import FormulaWarning, NotKAnonymousWarning
from shoal.core.messages import Message, agreeing, count, listed, setting
from shoal.core.types import Floats, Ints
from shoal.engines.records import Released
from shoal.masking.aggregate import Bucket, new_zeros
from shoal.masking.plan import Plan
from shoal.masking.release import GroupCount, Release
from shoal.masking.request import MaskRequest
from shoal.masking.revealing import revealing_columns
from shoal.masking.roles import Columns, identifiers_of
from shoal.tables.columns import Name
from shoal.tables.formulas import FORMULAS, formula_names
from shoal.tables.table import NO_INDEX, stored_indexes

if TYPE_CHECKING:
    from shoal.blocks.blocking import Blocks
    from shoal.masking.verification import Recounted

__all__ = ["losses", "summarise"]


class Losses(NamedTuple):
    """The squared errors over all buckets, and the information loss in percent."""

    errors: Floats  # per column
    totals: Floats
    grouped: Floats  # errors of the partition itself
    left_out: float  # errors due to suppressed records
    largest: Floats  # largest error of a group of few records, per column and in total

    @property
    def percent(self) -> float:
        """The factor from squared errors to the loss in percent."""
        total = float(self.totals.sum())
        return 100 / total if total > 0 else 0.0

    @property
    def loss(self) -> float:
        """The information loss."""
        return self.percent * float(self.errors.sum())

    @property
    def group_loss(self) -> float:
        """The largest contribution to the loss by a single group of few records."""
        return self.percent * float(self.largest[-1])


def losses(buckets: Sequence[Bucket], left_out: float = 0.0) -> Losses:
    """Add up the squared errors of all buckets.

    `left_out` is the number of suppressed records per released record. Each counts as an average record that
    loses all its information.
    """
    errors, totals, grouped = (
        np.sum([getattr(bucket, name) for bucket in buckets], axis=0) for name in ("errors", "totals", "grouped")
    )
    lost = left_out * totals
    largest = np.max([bucket.largest for bucket in buckets], axis=0)
    return Losses(errors + lost, totals + lost, grouped + lost, float(lost.sum()), largest)


def summarise(
    plan: Plan,
    blocks: Blocks | None,
    buckets: Sequence[Bucket],
    written: Released,
    recounted: Recounted,
    shuffled: Ints | None,
    most: int,
) -> Release:
    """Build the release from the buckets and from the recount of the written table.

    No unit has more than `most` records; `shuffled` is the random order of the records, if any.
    """
    records, request = plan.records, plan.request
    order = slice(None) if shuffled is None else shuffled
    kept, vector = records.kept()[order], request.weight_vector
    changed = {*plan.columns.masked, *plan.columns.by, *([request.unit] if request.shuffled else [])}
    left = tuple(name for name in plan.columns.released if name not in changed)
    lost = losses(buckets, plan.omissions)
    notes = (
        *_notes(request, plan, lost.percent, buckets),
        *_total_notes(plan, recounted.totals),
        *_formula_notes(request, recounted.formulas, plan.columns.released),
        *written.notes,
        *_stored_index_notes(request, plan.columns, records.names),
    )
    errors, totals, largest, percent = lost.errors, lost.totals, lost.largest, lost.percent
    counts = np.zeros(max(len(bucket.sizes) for bucket in buckets), dtype=np.int64)
    for bucket in buckets:
        counts[: len(bucket.sizes)] += bucket.sizes
    outcome = buckets[0].outcome
    labels, columns = records.labels(), plan.columns.masked
    dominated = np.sum([bucket.dominated for bucket in buckets], axis=0)
    return Release(
        data=written.native,
        labels=np.empty(0, dtype=np.int64) if labels is None else labels[order],
        size_histogram={int(size): int(counts[size]) for size in np.flatnonzero(counts)},
        loss=lost.loss,
        bound=None if outcome.bound is None else percent * (outcome.bound + lost.left_out),
        # An optimal partition does not imply optimal released values unless they are means.
        status="bounded" if outcome.status == "optimal" and not plan.embedding.plain else outcome.status,
        partition_loss=percent * float(lost.grouped.sum()),
        scale_loss=_scale_loss(plan, buckets),
        kinds=plan.columns.words,
        column_loss=dict(zip(columns, (100 * errors / np.where(totals > 0, totals, np.inf)).tolist(), strict=True)),
        group_loss=lost.group_loss,
        column_group_loss=dict(
            zip(columns, (100 * largest[:-1] / np.where(totals > 0, totals, np.inf)).tolist(), strict=True)
        ),
        kept=kept,
        parameters=request.recorded(columns, **records.parameters),
        facts={**outcome.facts, **records.facts({} if blocks is None else blocks.facts)},
        notes=tuple(map(Message, notes)),
        timings=plan.timings,
        left=left,
        outsider=plan.columns.outsider,
        singled_out=recounted.singled_out,
        unique_units=recounted.unique_units,
        unique_weights=recounted.unique_weights,
        identifying=identifiers_of(request, plan.columns, recounted.identifiers),
        revealing=_revealing(plan, left),
        reached=recounted.reached,
        homogeneous=recounted.homogeneous,
        concentrated=recounted.concentrated,
        unit_records=most,
        weights=None if vector is None else vector[kept],
        certificate=outcome.certificate,
        codes=dict(plan.spellings.codes),
        dropped={name: "" for name in records.names if name not in plan.columns.released},
        joined=() if plan.spellings.joined is None else tuple(plan.spellings.joined.texts),
        left_out=plan.left_out,
        blanked=plan.blanked,
        dominated={
            n: GroupCount(*counts) for n, counts in zip(columns, dominated.T.tolist(), strict=True) if counts[1]
        },
    )


def _scale_loss(plan: Plan, buckets: Sequence[Bucket]) -> dict[Name, float]:
    """Return the loss of each rescaled column, on its comparison scale."""
    errors, totals = np.sum([bucket.rescaled for bucket in buckets], axis=0)
    errors, totals = errors + plan.omissions * totals, (1 + plan.omissions) * totals
    each = 100 * errors / np.where(totals > 0, totals, np.inf)
    names = [plan.columns.masked[j] for j, _ in plan.embedding.rescalings]
    return dict(zip(names, each.tolist(), strict=True))


def _notes(request: MaskRequest, plan: Plan, percent: float, buckets: Sequence[Bucket]) -> tuple[str, ...]:
    notes = [*plan.notes, *request.notes()]
    if request.weights is not None:
        by = request.weights if request.weight_vector is None else "the weight vector"
        notes.append(f"group means are weighted by {by}; loss, k and categories count every record once")
    if scales := plan.columns.scales_of_comparison:
        named = listed([f"{name} ({scale})" for name, scale in scales.items()])
        notes.append(
            f"columns compared on another scale: {named}; released values and the information loss are in the units of "
            "the columns"
        )
    if request.shuffled:
        notes.append("the records are in random order")
    if request.unit in plan.columns.released:
        renumbered = " (renumbered)" if request.shuffled else ""
        notes.append(
            f"column {request.unit} is in the release{renumbered} and links the records of each {request.unit}: each "
            "record is shared, but all of them together may be unique"
        )
    if plan.columns.zeros:
        notes.append(f"zeros were kept ({listed(plan.columns.zeros)}): every original zero is released as zero")
        notes += [
            f"in column {name}, {count(new, 'record')} that {agreeing(new, 'is', 'are')} not zero "
            f"{agreeing(new, 'is', 'are')} also released as 0, the {request.aggregate} of the group"
            for name, new in zip(plan.columns.zeros, new_zeros(buckets).tolist(), strict=True)
            if new
        ]
    incomplete = {
        name for name, present in zip(plan.columns.masked, plan.present.tolist(), strict=True) if present < plan.rows
    }
    notes += [
        f"the sum {rule.text} holds in the release: every record was checked"
        + ", except those with missing values in it" * any(name in incomplete for name in rule.columns)
        for rule in plan.columns.rules
    ]
    decimals = np.any([bucket.decimals for bucket in buckets], axis=0)
    changed = [name for name, has_decimals in zip(plan.columns.masked, decimals, strict=True) if has_decimals]
    if request.whole and plan.whole_columns:
        rounding = percent * float(np.sum([bucket.rounding for bucket in buckets]))
        notes.append(
            f"integer columns were rounded ({listed(plan.whole_columns)}), which changes the loss by {rounding:+.5f} %"
        )
    elif decimal := [name for name in plan.whole_columns if name in changed]:
        notes.append(
            f"integer columns now hold decimals ({listed(decimal)}); {setting('integers', 'round')} keeps them whole"
        )
    changes = [np.sum(counts, axis=0) for counts in zip(*(bucket.changes for bucket in buckets), strict=True)]
    pairs = zip(plan.embedding.codings, changes, strict=False)  # `changes` is empty if all columns hold numbers
    notes += [note for coding, counts in pairs if (note := coding.note(plan.columns.masked, counts)) is not None]
    for name, scale in plan.columns.scales.items():
        finer = "" if scale.exact else ": its time span is too long for a finer unit"
        notes.append(f"column {name} is released in whole {scale.resolution}{finer}")
    if not request.entry.whole_records and len(plan.columns.masked) > 1:
        warning = (
            f"Method {request.entry.name!r} groups every column on its own: a record's combination of released values "
            "may be unique, so the release is not k-anonymous for whole records. Use a multivariate method."
        )
        warnings.warn(warning, NotKAnonymousWarning, stacklevel=5)
    return tuple(notes)


def _revealing(plan: Plan, left: Sequence[Name]) -> dict[Name, Name]:
    """Return the unchanged columns that reveal a masked column; empty if the table is not in memory."""
    # The unit column identifies its units, so it may correspond to any column that is constant per unit.
    unchanged = [name for name in left if name != plan.request.unit]
    originals = plan.records.originals([*unchanged, *plan.columns.masked]) if unchanged else None
    return {} if originals is None else revealing_columns(originals, unchanged, plan.columns.masked)


def _total_notes(plan: Plan, totals: Ints) -> list[str]:
    """Return a note on the differences between the released and the original totals of columns of whole numbers."""
    off = dict(zip(plan.columns.masked, (totals - plan.totals).tolist(), strict=True)) if plan.columns.totals else {}
    deviations = [f"{name} {f'off by {off[name]:+d}' if off[name] else 'exact'}" for name in plan.whole_columns if off]
    return [f"totals of integer columns, counted again: {', '.join(deviations)}"] if deviations else []


def _formula_notes(request: MaskRequest, names: Sequence[Name], released: Sequence[Name]) -> list[str]:
    """Return a note on escaped formulas, or warn about formulas in the columns `names` and in released column names."""
    if request.escape_formulas:
        return [
            f"text cells and column names that begin with {FORMULAS} and are not numbers now begin with an apostrophe"
        ]
    headers = formula_names(released) if request.writes_csv else []
    notes = []
    for places, noun, hold in (
        (names, "column", ("holds cells", "hold cells")),
        (headers, "column name", ("is text", "are text")),
    ):
        if places:
            subject = f"{agreeing(len(places), noun)} {listed(places)} {agreeing(len(places), *hold)}"
            note = f"{subject} that a spreadsheet would run as formulas ({FORMULAS})"
            remedy = f"{setting('escape_formulas', True)} to put an apostrophe before them"
            warnings.warn(f"{note[0].upper()}{note[1:]}. Use {remedy}.", FormulaWarning, stacklevel=6)
            notes.append(f"{note}: use {remedy}")
    return notes


def _stored_index_notes(request: MaskRequest, columns: Columns, names: Sequence[Name]) -> list[str]:
    """Return a note if the file has an index column that is not in the release."""
    meant = {*columns.released, *(request.identifiers or ())}
    return [NO_INDEX] if any(name not in meant for name in stored_indexes(names)) else []
