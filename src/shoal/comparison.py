"""compare(): every method at several k on one table, what each loses and risks, and which ones nothing beats."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.cost import PROBE, predicted_seconds
from shoal.algorithms.registry import METHODS, Method, SharedWork, find
from shoal.assessment.risk import linkage
from shoal.blocks.running import group_cells
from shoal.core.checks import as_names, check_k
from shoal.core.display import aligned, html_table, write_report
from shoal.core.errors import InputError
from shoal.core.measures import group_sizes, released_loss
from shoal.core.progress import DONE, STOP, fresh_state, watch, within
from shoal.core.types import Floats, Ints, State
from shoal.masking.numbers import Numbers, read_numbers, read_original
from shoal.masking.refining import refined
from shoal.masking.request import MaskRequest
from shoal.masking.rounding import Rounding
from shoal.masking.steps import cells_of, released_values
from shoal.masking.verification import identical_records, verify
from shoal.tables.choosing import open_data
from shoal.tables.columns import FLOAT, Name
from shoal.tables.frames import codes_of, open_table, strata_of

if TYPE_CHECKING:
    import polars as pl

    from shoal.masking.release import Release

__all__ = ["Comparison", "Trial", "compare", "compare_sizes"]

# A method is tried at other k for a report only if a run of it took no longer, on a table of no more records.
SIZES_SECONDS = 5.0
SIZES_RECORDS = 50_000


@dataclass(frozen=True)
class Trial:
    """One method at one k.

    Parameters
    ----------
    method, k
        What was tried.
    loss
        Information loss 100·SSE/SST of what is released.
    linked
        The share of records whose nearest original is their own (`shoal.assessment.risk.linkage`).
    chance
        The share that blind choice within groups would link.
    groups
        The number of groups of identical records.
    seconds
        The time of the partition.
    anonymous
        Whether whole records are k-anonymous.
    pareto
        Whether no other k-anonymous trial loses and risks less.
    """

    method: str
    k: int
    loss: float
    linked: float
    chance: float
    groups: int
    seconds: float
    anonymous: bool
    pareto: bool = False

    @property
    def risk(self) -> float:
        """The greater of linked and chance.

        A poor partition moves records so far that linkage fails more often than chance; who finds the right group in
        another way is as well off as chance says all the same.
        """
        return max(self.linked, self.chance)


@dataclass(frozen=True)
class Comparison:
    """What methods and k cost on one table.

    Parameters
    ----------
    trials
        All that ran, in order of k, then loss.
    left_out
        The methods that did not run, and why.
    records, columns
        The table: its number of records, the masked columns.
    parameters
        Everything that decided the result, as plain values.
    """

    trials: tuple[Trial, ...]
    left_out: Mapping[str, str]
    records: int
    columns: list[Name]
    parameters: Mapping[str, Any] = field(repr=False)

    @property
    def front(self) -> list[Trial]:
        """The trials that nothing beats in both loss and `Trial.risk`, from the most useful to the safest."""
        return sorted((trial for trial in self.trials if trial.pareto), key=lambda trial: trial.loss)

    @property
    def choice(self) -> Trial:
        """The trial of the front that is nearest to no loss and no risk, both measured by the front's own range."""
        front = self.front or list(self.trials)
        losses, risks = [trial.loss for trial in front], [trial.risk for trial in front]

        def distance(trial: Trial) -> float:
            x = (trial.loss - min(losses)) / ((max(losses) - min(losses)) or 1.0)
            y = (trial.risk - min(risks)) / ((max(risks) - min(risks)) or 1.0)
            return x * x + y * y

        return min(front, key=distance)

    @property
    def table(self) -> pl.DataFrame:
        """The trials as a polars frame."""
        import polars as pl

        return pl.DataFrame([vars(trial) for trial in self.trials])

    def cells(self) -> list[list[str]]:
        """Return the table as text, the head first."""
        rows = [["method", "k", "loss %", "linked %", "chance %", "groups", "seconds", "k-anonymous", "mark"]]
        for t in self.trials:
            mark = ("balanced" if t == self.choice else "Pareto") if t.pareto else ""
            figures = [f"{t.loss:.4f}", f"{100 * t.linked:.2f}", f"{100 * t.chance:.2f}", f"{t.groups}"]
            rows.append([t.method, str(t.k), *figures, f"{t.seconds:.3f}", "yes" if t.anonymous else "NO", mark])
        return rows

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison as one self-contained HTML page."""
        return write_report("pages:comparison_page", path, self)

    def __str__(self) -> str:
        lines = [aligned(self.cells())]
        lines += [f"left out          {method}: {why}" for method, why in self.left_out.items()]
        chosen = self.choice
        lines.append(
            f"Pareto            nothing else loses less and risks less; balanced: {chosen.method}, k = {chosen.k}"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        head, *rows = self.cells()
        absent = "".join(f"<p>left out: {escape(method)}: {escape(why)}</p>" for method, why in self.left_out.items())
        return html_table(rows, head) + absent


def compare(
    data: Any,
    k: Sequence[int] | int = (3, 5, 10),
    *,
    methods: Sequence[str | Callable[..., Any]] | str | Callable[..., Any] = "all",
    columns: Sequence[Name] | Name | None = None,
    kinds: Mapping[Name, Any] | None = None,
    by: Sequence[Name] | Name | None = None,
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = None,
    missing: str = "error",
    missing_codes: Mapping[Name, Any] | None = None,
    seed: int | None = 0,
    time_limit: float = 10.0,
    thousands: str | None = None,
    progress: bool = False,
) -> Comparison:
    """Try methods at several k on one table, and say which combinations nothing beats.

    Parameters
    ----------
    data
        A table, an array or the path of a file, as `shoal.mask` takes it.
    k
        One or more group sizes to try.
    methods
        Names listed by `shoal.methods`, or functions as `shoal.partition` takes them; or ``"all"`` that are listed.
    columns, kinds, by, weights, missing, missing_codes, seed, thousands
        As `shoal.mask` takes them.
    time_limit
        The seconds that one run may take, all strata together. A method that would take longer on this table and
        machine, or does, is left out, and named; one that has a result whenever it is stopped (it has an option
        ``time_limit``) is stopped then.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Comparison
        Loss, risk, groups and time of each run; it prints itself.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = compare(X, k=[3, 6], methods=["mdav", "centroid"])
    >>> [(trial.method, trial.k) for trial in found.front][-1][1]
    6
    """
    sizes = sorted({k} if isinstance(k, (int, np.integer)) else set(k))
    if not sizes:
        raise InputError("Parameter 'k' must name at least one group size, got none; for example k=[3, 5, 10].")
    request = MaskRequest(
        k=sizes[0],
        columns=columns,
        kinds=kinds,
        by=by,
        weights=weights,
        missing=missing,
        missing_codes=missing_codes,
    )
    if not time_limit > 0:
        raise InputError(f"Parameter 'time_limit' must be more than 0 seconds, got {time_limit!r}.")
    wanted = METHODS if methods == "all" else [methods] if isinstance(methods, str) or callable(methods) else methods
    entries = [find(method) for method in wanted]
    by_names = as_names(by)
    read = partial(open_data, data, numbers=as_names(columns), thousands=thousands)
    opened = watch(lambda _: read(), None, title="read", show=progress)
    for size in sizes:
        check_k(size, opened.rows)
    table, numbers, cell = read_numbers(opened, request)
    names, Z = list(numbers.names), numbers.coordinates
    cells = cells_of(Z, cell)
    strata = codes_of(strata_of(table, by_names), len(Z))

    fewest = min(len(rows) for rows, _ in cells)
    too_large = [size for size in sizes if size > fewest]
    sizes = [size for size in sizes if size <= fewest]
    chosen, left_out = _affordable(entries, numbers, cells, sizes, seed, time_limit)

    for size in too_large:
        left_out[f"k = {size}"] = f"a stratum, or records of it that miss the same columns, has {fewest} records only"

    def work(state: State) -> list[Trial]:
        trials: list[Trial] = []
        shared: dict[SharedWork, list[Mapping[str, Any]]] = {}
        for done, (entry, size) in enumerate(product(chosen, sizes), start=1):
            if state[STOP]:
                break
            options, given = _options(entry, time_limit), _shared_work(entry, Z, cells, shared)
            keeps = entry.time_option is not None
            start = time.perf_counter()
            with within(state, None if keeps else time_limit, len(Z)) as limited:
                labels = group_cells(Z, cells, entry, size, options, seed, limited, given).labels
            seconds = time.perf_counter() - start
            if keeps or not limited[STOP]:
                trials.append(_measured(numbers, cells, strata, entry, size, labels, seconds))
            else:
                left_out[entry.name] = f"a run (k = {size}) was not done after {time_limit:g} s"
            state[DONE] = done * len(Z)
        return trials

    trials = watch(work, len(chosen) * len(sizes) * len(Z), title="compare", show=progress) if chosen else []
    if not trials:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise InputError(f"Parameter 'methods' names none that can run here: {reasons}.")
    return Comparison(
        trials=pareto(trials),
        left_out=left_out,
        records=len(Z),
        columns=names,
        parameters={
            "k": [int(size) for size in sizes],
            "methods": [entry.name for entry in entries],
            "columns": names,
            "kinds": request.plain_kinds(),
            "by": by_names,
            "weights": weights if isinstance(weights, (str, int)) or weights is None else "given as a vector",
            "missing": missing,
            "missing_codes": missing_codes,
            "seed": seed,
            "time_limit": time_limit,
        },
    )


def compare_sizes(release: Release, original: Any) -> Comparison | None:
    """Put the method of a release, with its options, at other k beside it: what a report draws as a map.

    Parameters
    ----------
    release
        What `shoal.mask` returned.
    original
        The table that was masked, or its path.

    Returns
    -------
    Comparison or None
        None where it would take longer than the reader of a report waits, where the table is not held in memory, has
        units or keeps diversity or closeness, and for a function of the user, which is not called behind the user's
        back.
    """
    asked, entry = release.parameters, METHODS.get(release.parameters["method"])
    slow = release.records > SIZES_RECORDS or release.timings["partition"] > SIZES_SECONDS
    more = any(asked[name] is not None for name in ("unit", "diversity", "closeness"))
    if entry is None or slow or more or not release.labels.size:
        return None
    numbers, _ = read_original(release, original)
    strata = codes_of(strata_of(open_table(release.data), asked["by"]), len(numbers.X))
    Z = numbers.embedding.compared(numbers.coordinates)
    zero = numbers.X[:, [release.columns.index(name) for name in asked["zeros"]]] == 0
    cells = cells_of(Z, identical_records([*np.isnan(numbers.X).T, *zero.T], strata))
    measured = partial(_measured, numbers, cells, strata, entry, aggregate=asked["aggregate"])
    trials = [measured(release.k, release.labels, release.timings["partition"])]
    for k in sorted({2, 3, 5, 10, 15, 2 * release.k} - {release.k}):
        if k <= min(len(rows) for rows, _ in cells):
            start = time.perf_counter()
            labels = group_cells(Z, cells, entry, k, asked["options"], asked["seed"], fresh_state()).labels
            if asked["refine"]:
                how = {"steps": asked["refine"], "seed": asked["seed"], "state": fresh_state()}
                labels = refined(numbers.X, labels, cells, k, numbers.embedding, numbers.scale, **how)
            trials.append(measured(k, labels, time.perf_counter() - start))
    return Comparison(pareto(trials), {}, len(Z), release.columns, {**asked, "k": sorted(t.k for t in trials)})


def _measured(
    numbers: Numbers,
    cells: list[tuple[Ints, Ints]],
    strata: Ints,
    entry: Method,
    k: int,
    labels: Ints,
    seconds: float,
    aggregate: str = "mean",
) -> Trial:
    X, Z, embedding = numbers.X, numbers.coordinates, numbers.embedding
    stored = Rounding((FLOAT,) * X.shape[1])
    released = released_values(X, Z, labels, aggregate, None, embedding.codings, stored, strata)[0]
    if entry.whole_records:
        verify(released, k, strata)
    groups = identical_records(released, strata)
    found = linkage(X, released, groups, cells, embedding)
    return Trial(
        method=entry.name,
        k=k,
        loss=released_loss(Z, numbers.place(released))[0],
        linked=found.share,
        chance=found.chance,
        groups=len(group_sizes(groups)),
        seconds=seconds,
        anonymous=entry.whole_records or X.shape[1] == 1,
    )


def pareto(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Mark the k-anonymous trials that no other one beats, and put all in order of k, then loss.

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
            if other.anonymous
        )

    marked = [replace(trial, pareto=trial.anonymous and not beaten(trial)) for trial in trials]
    return tuple(sorted(marked, key=lambda trial: (trial.k, trial.loss)))


def _affordable(
    entries: Sequence[Method],
    numbers: Numbers,
    cells: list[tuple[Ints, Ints]],
    sizes: Sequence[int],
    seed: int | None,
    time_limit: float,
) -> tuple[list[Method], dict[str, str]]:
    """Part the methods that can run here in time from those that cannot, with the reason."""
    Z, columns = numbers.coordinates, len(numbers.names)
    blocks = [Z[np.ix_(rows, present)] for rows, present in cells if len(present)]
    without_order = list(compress(numbers.names, numbers.embedding.without_order))
    chosen, left_out = [], {}
    for entry in entries:
        if entry.univariate and columns > 1:
            left_out[entry.name] = f"it groups one column, the table has {columns}"
            continue
        if without_order and (entry.univariate or not entry.whole_records):
            left_out[entry.name] = f"it sorts the values of a column, but those of {without_order[0]!r} have no order"
            continue
        options = entry.read_options({})
        if entry.time_option is not None:
            # It keeps the limit but for what it does in any case, which is nothing to speak of on small tables.
            options[entry.time_option] = 0.0
        seconds = 0.0
        if blocks and not (entry.time_option is not None and (entry.anytime or max(map(len, blocks)) <= PROBE)):
            seconds = predicted_seconds(entry, blocks, sizes[0], options, seed=seed)
        if seconds > time_limit:
            left_out[entry.name] = (
                f"a run would take about {seconds:,.0f} s on {len(Z):,} records, more than {time_limit:g} s"
            )
        else:
            chosen.append(entry)
    return chosen, left_out


def _options(entry: Method, time_limit: float) -> dict[str, Any]:
    """Return the method's options, with a time limit where it has one."""
    return entry.read_options({} if entry.time_option is None else {entry.time_option: time_limit})


def _shared_work(
    entry: Method, Z: Floats, cells: list[tuple[Ints, Ints]], done: dict[SharedWork, list[Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    """Return for each cell the options that hold work which many runs share, done at the first that asks for it."""
    shared = entry.shared
    if shared is None:
        return []
    if shared not in done:
        work = shared.load()
        done[shared] = [
            {shared.option: work(np.ascontiguousarray(Z[np.ix_(rows, present)]))} if len(present) else {}
            for rows, present in cells
        ]
    return done[shared]
