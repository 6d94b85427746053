"""Confidential columns: released as they are, and what every group promises of their values.

The values of a column are numbered through the whole table, in their order; a missing cell is a value of its own, the
lowest. Numbers, dates, Booleans and ordinal columns have an order; text and nominal columns have none. The distribution
that closeness compares a group with is that of all records that are released, whatever their stratum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from shoal.algorithms.registry import AUTO, EFFORTS, Method
from shoal.core.errors import InputError, VerificationError
from shoal.core.measures import number_through
from shoal.core.messages import parameter, setting
from shoal.core.phrases import agreeing, count
from shoal.core.threads import spread
from shoal.core.types import Floats, Ints, State
from shoal.core.unicode_forms import composed_cells
from shoal.kinds.date import in_order
from shoal.kinds.kind import Kind
from shoal.kinds.nominal import Nominal
from shoal.models.model import ConfidentialColumn, Model
from shoal.models.model_registry import make_rules, reached_by
from shoal.models.promises.closeness import Closeness
from shoal.models.promises.diversity import Diversity
from shoal.tables.columns import Name

if TYPE_CHECKING:
    from shoal.kernels.words import Words
    from shoal.masking.group import BucketRecords
    from shoal.masking.request import MaskRequest
    from shoal.models.rule_enforcement import Search
    from shoal.models.rules import Rules
    from shoal.tables.table import Table

__all__ = [
    "Chosen",
    "Promise",
    "Values",
    "count_homogeneous",
    "half_time",
    "keep_promise",
    "least_error",
    "number_values",
    "read_values",
    "told",
    "worst",
]  # fmt: skip

DIGITS = 12  # of distances and entropies
# What is told of every confidential column, whatever is asked.
MEASURES: dict[str, Model] = {
    "diversity": Diversity(2),
    "entropy": Diversity(2, "entropy"),
    "closeness": Closeness(0.0),
}


class Chosen(NamedTuple):
    """A confidential column."""

    name: Name
    kind: Kind  # of a number also where the cells are found to be dates or Booleans
    ordered: bool | None = None  # None: as its cells are found to be


class Values(NamedTuple):
    """The values of a confidential column in a part of the table, by code."""

    cells: pl.Series  # a missing one first
    counts: Ints
    ordered: bool


class Promise(NamedTuple):
    """The confidential columns of a table, and what every group must be like in them."""

    columns: tuple[Chosen, ...] = ()
    counts: tuple[Ints, ...] = ()  # of each value, in the whole table
    models: tuple[tuple[int, Model], ...] = ()  # each with the place of its column

    def rules(self, codes: Ints, models: Sequence[tuple[int, Model]], units: Words | None = None, k: int = 0) -> Rules:
        """Return rules for the records of these codes, and with units that of k different ones."""
        columns = [
            ConfidentialColumn(np.ascontiguousarray(codes[:, place]), counts, bool(column.ordered))
            for place, (column, counts) in enumerate(zip(self.columns, self.counts, strict=True))
        ]
        if units is not None:
            different, number = np.unique(units, return_inverse=True)
            columns.append(ConfidentialColumn(number.astype(np.int64), np.ones(len(different), dtype=np.int64), False))
            models = [*models, (len(columns) - 1, Diversity(k))]
        return make_rules(columns, models, len(codes))


def read_values(table: Table, columns: Sequence[Chosen], first: int) -> tuple[Ints, tuple[Values, ...]]:
    """Return the code of each record in each confidential column of a part, and the values by code."""
    codes, values = np.empty((table.rows, len(columns)), dtype=np.int64), []
    for place, (name, kind, known) in enumerate(columns):
        cells, ordered = kind.compared(table, name, first)
        if known and kind.numeric and cells.dtype == pl.String:
            cells = in_order(cells)  # read again from a file of text, where durations stand in another order
        frame = pl.DataFrame({"cell": cells})
        found = frame.group_by("cell").len().sort("cell", nulls_last=False)
        codes[:, place] = _places(frame, found)
        counts = found["len"].to_numpy().astype(np.int64)
        values.append(Values(found["cell"], counts, ordered if known is None else known))
    return codes, tuple(values)


def _places(cells: pl.DataFrame, among: pl.DataFrame) -> Ints:
    """Return the row of each cell among different ones."""
    numbered = among.select("cell").with_row_index("place")
    found = cells.join(numbered, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return found["place"].to_numpy().astype(np.int64)


def number_values(
    columns: Sequence[Chosen], parts: Sequence[Sequence[Values]], models: Sequence[tuple[int, Model]]
) -> tuple[Promise, list[tuple[Ints, ...]]]:
    """Number the values of confidential columns through all parts; return the promise, and by part the numbers."""
    chosen, counts = list[Chosen](), list[Ints]()
    numbers: list[list[Ints]] = [[] for _ in parts]
    for place, (name, kind, _) in enumerate(columns):
        found = [part[place] for part in parts]
        table, ordered = _merged(name, found)
        ranking = kind.ranking(name, table["cell"])
        table = table if ranking is None else table[ranking]
        for own, values in zip(numbers, found, strict=True):
            own.append(_places(_as(table["cell"].dtype, values), table))
        # What has no order is text, also where it is written to a file and looks like numbers.
        chosen.append(Chosen(name, Nominal() if kind.numeric and not ordered else kind, ordered))
        counts.append(table["len"].to_numpy().astype(np.int64))
    promise = Promise(tuple(chosen), tuple(counts), tuple(models))
    _check_values(promise)
    return promise, [tuple(own) for own in numbers]


def _merged(name: Name, parts: Sequence[Values]) -> tuple[pl.DataFrame, bool]:
    """Return the values of all parts with their counts, sorted; and whether they have an order."""
    known = [values for values in parts if values.cells.null_count() < len(values.cells)] or parts[:1]
    types = {values.cells.dtype for values in known}
    if len(types) > 1 and pl.String in types:
        raise InputError(
            f"Column {name!r} is confidential and holds numbers in one part of the table and text in another. Use "
            f"{setting('kinds', {name: 'Nominal()'})}, or correct it."
        )
    dtype = types.pop() if len(types) == 1 else pl.Float64()
    table = pl.concat([_as(dtype, values) for values in parts])
    table = table.group_by("cell").agg(pl.col("len").sum()).sort("cell", nulls_last=False)
    return table, known[0].ordered


def _as(dtype: pl.DataType, values: Values) -> pl.DataFrame:
    """Return the values of a part in the type and form that they have in the whole table; a part may miss them all."""
    empty = values.cells.null_count() == len(values.cells)
    cells = pl.Series([None] * len(values.cells), dtype=dtype) if empty else values.cells.cast(dtype)
    return pl.DataFrame({"cell": composed_cells(cells), "len": values.counts})


def _check_values(promise: Promise) -> None:
    """Refuse to promise more different values than there are."""
    for place, model in promise.models:
        different = len(promise.counts[place])
        if model.values > different:
            raise InputError(
                f"{parameter(model.parameter)} must not exceed the {count(different, 'different value')} of column "
                f"{promise.columns[place].name!r}, got {model.text}."
            )


def keep_promise(
    records: BucketRecords,
    labels: Ints,
    promise: Promise,
    request: MaskRequest,
    *,
    block: bool,
    state: State,
    threads: int,
) -> Ints:
    """Return groups that keep the promise; refuse it where not even all records of a cell do.

    Parameters
    ----------
    records, labels
        The records, and their groups.
    promise, request
        What is promised, and what was asked.
    block
        Whether cells are blocks.
    state, threads
        See `shoal.core.progress`; and how many threads work on cells.
    """
    from shoal.models.rule_enforcement import Search, keep_rules, repair, rules_of

    Z, cells = records.compared, records.cells
    rules = promise.rules(records.codes, promise.models, records.units, request.k)
    _check_cells(rules, [rows for rows, _ in cells], promise, block=block)
    if not request.entry.confidential:
        search = Search(request.seed, request.steps, state)
        if request.entry.name == AUTO or (request.entry.anytime and not block):
            search = _search_by(request, search, len(Z))
        return keep_rules(Z, labels, cells, request.k, rules, search, threads=threads)

    def published(cell: tuple[Ints, Ints]) -> Ints:
        rows, present = cell
        members, cell_rules = np.ascontiguousarray(Z[np.ix_(rows, present)]), rules_of(rules, rows)
        return repair(members, _published(members, cell_rules, promise, request, state), cell_rules)

    return number_through(len(Z), (rows for rows, _ in cells), spread(published, cells, threads))


def _check_cells(rules: Rules, cells: Sequence[Ints], promise: Promise, *, block: bool) -> None:
    """Refuse what not even all records of a cell keep: no groups of them would, as none is better than all together."""
    cell = np.empty(sum(map(len, cells)), dtype=np.int64)
    for number, rows in enumerate(cells):
        cell[rows] = number
    for rule, (place, model) in enumerate(promise.models):
        lacks, found = reached_by(rules, rule, cell)
        if (lacks > 0).any():
            worst = model.worst(found)
            records = len(cells[int(np.flatnonzero(found == worst)[0])])
            raise _impossible(promise.columns[place].name, model, records, worst, len(cells), block)


def half_time(entry: Method, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a method with half of the seconds that it may take, if they are limited."""
    seconds = entry.seconds(options)
    return options if seconds is None or entry.time_option is None else {**options, entry.time_option: seconds / 2}


def _search_by(request: MaskRequest, search: Search, n: int) -> Search:
    """Return a search for n records that takes the steps or the time of a method that searches."""
    entry, options = request.entry, half_time(request.entry, request.options)

    def improve(records: Floats) -> Ints:
        return entry.run(records, request.k, options, seed=request.seed, state=search.state).labels

    if request.options.get("bound"):  # the method has searched already
        seconds = entry.seconds(options)
    else:
        search, seconds = search._replace(improve=improve), entry.seconds(request.options)
    steps = entry.steps(options)
    # Steps of a record are as many as those of `effort`.
    return search._replace(steps=search.steps if steps is None else steps / n / EFFORTS["good"], seconds=seconds)


def _published(records: Floats, rules: Rules, promise: Promise, request: MaskRequest, state: State) -> Ints:
    """Group the records of a cell by an algorithm of Soria-Comas et al."""
    from shoal.models.closeness_first import closeness_first
    from shoal.models.k_first import k_first

    if request.entry.name == "k-first":
        return k_first(records, request.k, rules, state=state)
    # The first column that closeness is asked of.
    first = next(rule for rule, (_, model) in enumerate(promise.models) if isinstance(model, Closeness))
    return closeness_first(records, rules.codes[first], request.k, float(rules.bounds[first]), state=state)


def least_error(Z: Floats, codes: Ints, promise: Promise) -> float:
    """Return a lower bound on the SSE of all groups of the whole table that keep closeness; 0 if nothing is proven."""
    if not any(isinstance(model, Closeness) for _, model in promise.models):
        return 0.0
    from shoal.models.closeness_bound import closeness_bound

    return closeness_bound(Z, promise.rules(codes, promise.models))


def _impossible(name: Name, model: Model, records: int, found: float, cells: int, block: bool) -> InputError:
    what, less = "of a stratum that miss the same columns", model.possible(found)
    way = f"Join small strata, or ask for less: {less} can be kept."
    if block:
        what, way = "of a block", "Use a larger block, or 0 for none, join small strata, or ask for less."
    elif cells == 1:
        what, way = "of the table", f"Ask for less: {less} can be kept."
    return InputError(
        f"{parameter(model.parameter)} requires {model.says} in column {name!r}, but all {records} records {what} "
        f"together have {model.reached_text(found)}, so that not all groups of them can keep it. {way}"
    )


def worst(codes: Ints, groups: Ints, promise: Promise) -> list[float]:
    """Return the worst that groups reach: of every measure in every column, then of every model; check the models."""
    measures = _measured(promise)
    rules = promise.rules(codes, measures)
    reached = []
    for rule, (place, model) in enumerate(measures):
        lacks, found = reached_by(rules, rule, groups)
        reached.append(model.worst(found))
        few = int((lacks > 0).sum())
        if rule >= len(measures) - len(promise.models) and few:
            raise VerificationError(
                f"{few} of {count(len(lacks), 'group')} of identical records {agreeing(few, 'lacks', 'lack')} "
                f"{model.says} in column {promise.columns[place].name!r}; the worst has "
                f"{model.reached_text(reached[-1])}. Nothing was released."
            )
    return reached


def count_homogeneous(codes: Ints, groups: Ints) -> list[int]:
    """Count per column the groups whose records all have one value.

    Examples
    --------
    >>> count_homogeneous(np.array([[0, 5], [0, 6], [1, 7], [2, 7]]), np.array([0, 0, 1, 1]))
    [1, 1]
    """
    one = np.empty((int(groups.max(initial=-1)) + 1, codes.shape[1]), dtype=codes.dtype)
    one[groups] = codes  # of each group, any of its records
    varied = np.zeros(one.shape, dtype=np.bool_)
    for place, differ in enumerate((codes != one[groups]).T):
        varied[groups[differ], place] = True
    return [int(count) for count in np.count_nonzero(~varied, axis=0)]


def _measured(promise: Promise) -> list[tuple[int, Model]]:
    return [*((place, model) for place in range(len(promise.columns)) for model in MEASURES.values()), *promise.models]


def told(promise: Promise, reached: Sequence[Sequence[float]]) -> dict[Name, dict[str, float]]:
    """Return what all groups together reach in every confidential column, from the `worst` of several tables."""
    found: dict[Name, dict[str, float]] = {}
    for (place, model), *values in zip(_measured(promise), *reached, strict=True):
        # As exact as it is computed, see `shoal.models.rules.ROUNDING`; a distance of −0 is 0.
        value = round(model.worst(np.array(values)), DIGITS) + 0.0
        found.setdefault(promise.columns[place].name, {})[model.measured] = model.number(value)
    return found
