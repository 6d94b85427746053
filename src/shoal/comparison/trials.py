"""Trials of requests on one table, compared by loss, risk and time, with the Pareto front and the cost of promises."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.assessment.coded_records import CodedRecords
from shoal.assessment.linkage import linkage
from shoal.core.display import aligned, html_table, write_report
from shoal.core.measures import group_sizes
from shoal.core.messages import visible
from shoal.core.types import Floats, Ints, State
from shoal.masking.confidential import worst
from shoal.masking.group import cells_of
from shoal.masking.memory import MemoryRecords
from shoal.masking.pipeline import Groups, group, prepare
from shoal.masking.plan import Plan
from shoal.masking.request import MaskRequest
from shoal.masking.steps import confidential_codes, number_of_cells
from shoal.masking.summary import losses
from shoal.masking.verification import check_sizes, identical_records
from shoal.promises.dominance import is_published, may_be_published, published_loss
from shoal.promises.promise_registry import describe_promises, read_promise, write_promise
from shoal.tables.columns import Name
from shoal.tables.table import number_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "VARIED_PROMISES",
    "Attempt",
    "Comparison",
    "Price",
    "Trial",
    "as_trial",
    "attempt",
    "fewest",
    "pareto",
    "serves",
]

VARIED_PROMISES = ("diversity", "closeness")  # promises that vary between trials


@dataclass(frozen=True)
class Trial:
    """A trial of one method at one k, with or without promises on sensitive columns."""

    method: str
    k: int
    loss: float  # information loss 100·SSE/SST of the released values
    # The share of records that are nearest to their own original in the columns that an outsider can know
    # (`assessment.linkage`).
    linked: float
    chance: float  # the share linked by random choice within groups
    groups: int  # groups of identical records
    seconds: float  # time of the partition
    anonymous: bool  # True if whole records are k-anonymous
    diversity: str = ""  # the diversity promised for every group, as on the command line; empty without one
    closeness: str = ""  # the closeness promised for every group, as on the command line; empty without one
    pareto: bool = False  # True if no other k-anonymous trial with the same promise has less loss and risk
    group_loss: float = 0.0  # the part of the loss due to one group of fewer than five records

    @property
    def promise(self) -> str:
        """The promises on sensitive columns as a phrase; empty without promises."""
        return describe_promises({name: getattr(self, name) for name in VARIED_PROMISES})

    @property
    def name(self) -> str:
        """The method and its promises."""
        return f"{self.method}, {self.promise}" if self.promise else self.method

    @property
    def risk(self) -> float:
        """The greater of `linked` and `chance`.

        A poor partition moves records so far that linkage fails more often than chance; an intruder who finds the right
        group in another way still succeeds with probability `chance`.
        """
        return max(self.linked, self.chance)


class Price(NamedTuple):
    """The cost of a promise for one method at one k."""

    parameter: str  # "diversity" or "closeness"
    name: str  # the method, its other promises, and the promise's kind and columns (unless it covers all)
    k: int
    without: float | None  # the loss without the promise; None if not tried
    losses: tuple[tuple[float, float], ...]  # pairs of l or t and the loss, in ascending order


class Attempt(NamedTuple):
    """A request tried on records in memory, with its groups and released values."""

    records: MemoryRecords
    groups: Groups

    def measure(self) -> Trial:
        """Measure the loss and risk of the groups, and verify that the groups have the requested size."""
        plan, arrays, released = self.groups.plan, self.records.original(), self.records.answers()["released"]
        request, cell = plan.request, number_of_cells(arrays, plan.own[0])
        identical = identical_records(released, plan.strata[cell])
        if request.entry.whole_records:
            check_sizes(group_sizes(identical), request.k)
        if plan.promise.models:
            codes = confidential_codes(arrays, plan.own[0].confidential)["confidential"]
            worst(codes, identical, plan.promise)
        columns = plan.columns
        unchanged_names = [name for name in columns.outsider if name not in (*columns.masked, *columns.by)]
        unchanged = (
            number_rows(self.records.originals(unchanged_names))[0]
            if unchanged_names
            else np.zeros(len(cell), dtype=np.int64)
        )
        total = losses(self.groups.buckets, plan.omissions)
        # Compilation happens once per installation and is not part of the run time.
        seconds = plan.timings["partition"] - plan.timings.get("compile", 0.0)
        return as_trial(
            request, CodedRecords.of(self.records, plan), released, identical, cell, unchanged,
            loss=total.loss, group_loss=total.group_loss, seconds=seconds,
        )  # fmt: skip


def attempt(
    records: MemoryRecords, plan: Plan, request: MaskRequest, state: State, shared: Sequence[Mapping[str, Any]] = ()
) -> Attempt:
    """Group planned records with another method, k or promise; `shared` holds options per cell that runs share."""
    records = records.watched(state)
    if serves(records, plan, request):
        plan = replace(plan.requesting(request), records=records)
    else:
        plan = prepare(records, request)
    return Attempt(records, group(plan, shared))


def serves(records: MemoryRecords, plan: Plan, request: MaskRequest) -> bool:
    """Return True if a plan also suits a request with another k, because neither moves records of small cells."""
    return request.small == "error" or (not plan.moved and fewest(records, plan) >= request.k)


def fewest(records: MemoryRecords, plan: Plan) -> int:
    """Return the number of records or units in the smallest cell."""
    arrays = records.original()
    if "unit" not in arrays:
        return int(plan.sizes.min())
    cell = number_of_cells(arrays, plan.own[0])
    return min(len(np.unique(arrays["unit"][cell == number])) for number in np.unique(cell))


def as_trial(
    request: MaskRequest,
    before: CodedRecords,
    released: Floats,
    groups: Ints,
    cell: Ints,
    unchanged: Ints,
    *,
    loss: float,
    group_loss: float,
    seconds: float,
) -> Trial:
    """Return a trial with the risk of its released values.

    Records have the same number in `groups` if they are identical, in `cell` if they share their stratum and their
    missing columns, and in `unchanged` if they are equal in all other columns that an outsider can know.
    """
    placed = before.coordinates, before.place(released)
    known_groups, known_cell = (identical_records([codes, unchanged]) for codes in (groups, cell))
    linked = linkage(before.X, released, known_groups, cells_of(before.X, known_cell), placed=placed)
    return Trial(
        method=request.entry.name,
        k=request.k,
        loss=loss,
        linked=linked.share,
        chance=linked.chance,
        groups=len(group_sizes(groups)),
        seconds=seconds,
        anonymous=request.entry.whole_records or before.X.shape[1] == 1,
        diversity=write_promise(request.promises.get("diversity")),
        closeness=write_promise(request.promises.get("closeness")),
        group_loss=group_loss,
    )


@dataclass(frozen=True)
class Comparison:
    """The losses and risks of methods at several k on one table."""

    trials: tuple[Trial, ...]  # in order of k, then loss
    left_out: Mapping[str, str]  # methods that did not run, each with the reason
    records: int
    columns: list[Name]  # the masked columns
    parameters: Mapping[str, Any] = field(repr=False)  # all parameters that determined the result, as plain values

    @property
    def front(self) -> list[Trial]:
        """The Pareto-optimal trials in loss and `Trial.risk`, from the most useful to the safest."""
        return sorted((trial for trial in self.trials if trial.pareto), key=lambda trial: trial.loss)

    @property
    def choice(self) -> Trial:
        """The front's trial nearest to its least loss and least risk, each relative to the range of the front.

        This trial has no promises unless all trials have some, because a formula cannot decide on promises.
        """
        return self.choices[0]

    @property
    def choices(self) -> list[Trial]:
        """The balanced trial for each promise, as in `choice`; the trial without promises comes first."""
        promises = sorted({trial.promise for trial in self.trials}, key=lambda promise: (promise != "", promise))
        return [_balanced([trial for trial in self.trials if trial.promise == promise]) for promise in promises]

    @property
    def prices(self) -> list[Price]:
        """The costs of promises per method and k, where a promise was tried with several values."""
        published = [trial for trial in self.trials if is_published(trial.loss)]
        return [price for parameter in VARIED_PROMISES for price in _prices(published, parameter)]

    @property
    def table(self) -> pl.DataFrame:
        """The trials as a polars frame."""
        import polars as pl

        return pl.DataFrame([vars(trial) for trial in self.trials])

    def published(self) -> Comparison:
        """Return the comparison with losses that are safe to publish with the masked table."""
        losses = [published_loss(t.loss, precise=may_be_published(t.loss, t.group_loss)) for t in self.trials]
        return replace(self, trials=tuple(map(lambda t, loss: replace(t, loss=loss), self.trials, losses)))

    def cells(self) -> list[list[str]]:
        """Return the cells of the table as text, the header first."""
        promised, choices = any(t.promise for t in self.trials), self.choices
        promise_cells = ["promise"] if promised else []
        rows = [
            [
                "method",
                "k",
                *promise_cells,
                "loss %",
                "linked %",
                "chance %",
                "groups",
                "seconds",
                "k-anonymous",
                "mark",
            ]
        ]
        for t in self.trials:
            mark = ("balanced" if t in choices else "Pareto") if t.pareto else ""
            promise_cells = [t.promise or "none"] if promised else []
            figures = [f"{t.loss:.4f}", f"{100 * t.linked:.2f}", f"{100 * t.chance:.2f}", f"{t.groups}"]
            rows.append(
                [t.method, str(t.k), *promise_cells, *figures, f"{t.seconds:.3f}", "yes" if t.anonymous else "NO", mark]
            )
        return rows

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison as one self-contained HTML page."""
        return write_report("pages:comparison_page", path, self)

    def __str__(self) -> str:
        lines = [aligned(self.cells())]
        lines += [visible(f"left out          {method}: {why}") for method, why in self.left_out.items()]
        same = " with the same promise" if len(self.choices) > 1 else ""
        balanced = "; ".join(f"{trial.name}, k = {trial.k}" for trial in self.choices)
        lines.append(f"Pareto            no other trial{same} has less loss and risk; balanced: {visible(balanced)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        head, *rows = self.cells()
        absent = "".join(f"<p>left out: {escape(method)}: {escape(why)}</p>" for method, why in self.left_out.items())
        return html_table(rows, head) + absent


def pareto(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Mark the Pareto-optimal k-anonymous trials, and sort all trials by k, then loss.

    Trials compete only with trials that have the same promises on sensitive columns.

    Examples
    --------
    >>> def trial(loss, linked):
    ...     return Trial("mdav", 3, loss, linked, 0.1, 10, 0.0, anonymous=True)
    >>> [t.pareto for t in pareto([trial(1.0, 0.3), trial(2.0, 0.3), trial(3.0, 0.1)])]
    [True, False, True]
    """

    def beaten(trial: Trial) -> bool:
        return any(
            other.loss <= trial.loss
            and other.risk <= trial.risk
            and (other.loss, other.risk) != (trial.loss, trial.risk)
            for other in trials
            if other.anonymous and other.promise == trial.promise
        )

    marked = [replace(trial, pareto=trial.anonymous and not beaten(trial)) for trial in trials]
    return tuple(sorted(marked, key=lambda trial: (trial.k, trial.loss)))


def _balanced(trials: Sequence[Trial]) -> Trial:
    """Return the front's trial nearest to its least loss and least risk, each relative to the range of the front."""
    front = [trial for trial in trials if trial.pareto] or list(trials)
    losses, risks = [trial.loss for trial in front], [trial.risk for trial in front]

    def distance(trial: Trial) -> float:
        x = (trial.loss - min(losses)) / ((max(losses) - min(losses)) or 1.0)
        y = (trial.risk - min(risks)) / ((max(risks) - min(risks)) or 1.0)
        return x * x + y * y

    return min(front, key=distance)


def _prices(trials: Sequence[Trial], parameter: str) -> list[Price]:
    """Return the cost of a promise for each method and k, separately for each combination of other promises."""
    curves: dict[tuple[str, int, str], dict[float, float]] = {}
    without: dict[tuple[str, int], float] = {}
    for trial in trials:
        rest = replace(trial, diversity="") if parameter == "diversity" else replace(trial, closeness="")
        if rest.promise == trial.promise:
            without[rest.name, trial.k] = trial.loss
            continue
        model = read_promise(parameter, getattr(trial, parameter))
        among = set(model.values()) if isinstance(model, Mapping) else {model}
        # Promises that differ only in l or t belong to one curve.
        if len(among) == 1:
            one = among.pop()
            about = [str(column) for column in model] if isinstance(model, Mapping) else []
            kind = " ".join([*one.text.split(":")[:-1][:1], *about])
            line = rest.name, trial.k, kind and f", {kind}"
            curves.setdefault(line, {})[one.rule(ordered=True)[1]] = trial.loss
    return [
        Price(parameter, name + kind, k, without.get((name, k)), tuple(sorted(losses.items())))
        for (name, k, kind), losses in curves.items()
        if len(losses) + ((name, k) in without) > 1
    ]
