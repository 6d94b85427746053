"""The master problem: the linear relaxation of set partitioning over the known groups.

    min Σ c_G x_G   subject to   Σ_{G ∋ i} x_G = 1 for every record i,
                                 Σ_G ⌊p(G∩R)/q⌋ x_G ≤ ⌊p(R)/q⌋ for every cut R,   x ≥ 0.

HiGHS restarts the simplex method from the last solution, so a few hundred additional columns or cuts take little time.
Far from the optimum, column generation needs many rounds of pricing. A first-order method therefore supplies the first
columns (`optimize.column_generation`).

The proof does not rely on this module: `optimize.lower_bounds` checks the duals with its own arithmetic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, Decision, cut_entries
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.core.types import Floats, Ints

__all__ = ["Master", "RelaxationSolution", "matrix"]

# The HiGHS option values for the dual and the primal simplex method.
_DUAL, _PRIMAL = 1, 4


class RelaxationSolution(NamedTuple):
    """A solution of the relaxation, within the solver's tolerances."""

    value: float  # the objective value
    # The multiplier of each record, and the cuts with their prices.
    duals: Floats
    cuts: Cuts
    x: Floats  # the value of each column


def matrix(columns: GroupColumns, n: int, cuts: Cuts) -> tuple[Ints, Ints, Floats]:
    """Return the constraint matrix in column format: column starts, row numbers (records, then cuts) and entries.

    Examples
    --------
    >>> column = GroupColumns.of(np.zeros((3, 1)), [np.array([0, 2])])
    >>> [part.tolist() for part in matrix(column, 3, Cuts.of([((0, 1, 2), (1, 1, 1), 2)]))]
    [[0, 3], [0, 2, 3], [1.0, 1.0, 1.0]]
    """
    column, cut, times = cut_entries(columns, n, cuts)
    owner = np.concatenate([np.repeat(np.arange(len(columns)), columns.sizes), column])
    order = np.argsort(owner, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(columns)))])
    row = np.concatenate([columns.member, cut + n])[order]
    entry = np.concatenate([np.ones(len(columns.member)), times])[order]
    return start, row, entry


class Master:
    """The linear relaxation over the current columns and cuts, solved by HiGHS from the previous basis."""

    def __init__(
        self, n: int, columns: GroupColumns, cuts: Cuts, over: Callable[[], bool], *, unit: float, deadline: float
    ) -> None:
        import highspy

        self.n, self.columns, self.cuts, self.over = n, columns, cuts, over
        self.deadline = deadline
        self.solver = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        self.solver.setOptionValue("solver", "simplex")
        # All right-hand sides are about 1, but costs are SSEs: dividing them by `unit` scales the objective well.
        self.unit = unit or 1.0
        none = np.empty(0, dtype=np.int64)
        self.solver.addRows(n, np.ones(n), np.ones(n), 0, none.astype(np.int32), none.astype(np.int32), np.empty(0))
        # The HiGHS numbers of the columns, and of the additional columns that break decisions (two per decision).
        self.place, self.breaking, self.broken = none, none, False
        self._add_rows(cuts, none, none, none)
        self._add_columns(columns)

    def add(self, columns: GroupColumns) -> None:
        """Add columns to the problem."""
        self.columns = self.columns.join(columns)
        self._add_columns(columns)
        # The solution stays primal feasible with new columns, so the primal simplex method can continue.
        self.solver.setOptionValue("simplex_strategy", _PRIMAL)

    def cut(self, cuts: Cuts) -> None:
        """Add cuts to the problem."""
        self.cuts = self.cuts.join(cuts)
        self._add_rows(cuts, *cut_entries(self.columns, self.n, cuts))
        self.solver.setOptionValue("simplex_strategy", _DUAL)

    def drop(self, idle: Ints) -> None:
        """Remove the cuts with the given numbers."""
        if len(idle):
            basis = self.solver.getBasis()
            columns, rows = basis.col_status, basis.row_status
            remaining = np.setdiff1d(np.arange(len(self.cuts)), idle)
            self.solver.deleteRows(len(idle), (idle + self.n).astype(np.int32))
            self.cuts = self.cuts.take(remaining)
            self._resume(columns, rows[: self.n] + [rows[self.n + c] for c in remaining])

    def keep(self, which: Ints) -> GroupColumns:
        """Keep only the columns `which`, in that order, and return the removed columns."""
        dropped = np.setdiff1d(np.arange(len(self.columns)), which)
        removed = self.columns.take(dropped)
        if len(dropped):
            basis = self.solver.getBasis()
            before, rows = basis.col_status, basis.row_status
            staying = np.ones(self.solver.getNumCol(), dtype=np.int64)
            staying[self.place[dropped]] = 0
            self.solver.deleteCols(len(dropped), self.place[dropped].astype(np.int32))
            number = np.cumsum(staying) - 1
            self.columns, self.place = self.columns.take(which), number[self.place[which]]
            self.breaking = number[self.breaking]
            self._resume([before[c] for c in np.flatnonzero(staying)], rows)
        return removed

    def _resume(self, columns: list[Any], rows: list[Any]) -> None:
        """Restore the remaining basis, which HiGHS discards when a column or an active row is deleted."""
        import highspy

        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status = columns, rows
        # The remaining basis may have too few columns and rows; HiGHS completes an `alien` basis.
        basis.valid = basis.alien = True
        self.solver.setBasis(basis)

    def decide(self, decisions: Sequence[Decision], penalty: float) -> None:
        """Replace the current decisions about pairs of records.

        Each decision may be broken at a price of `penalty`. A solution therefore always exists, and the multipliers of
        decisions do not exceed the penalty. A lower penalty changes the duals less; if it is too low, `solve` sets
        `broken`.
        """
        self.drop(np.flatnonzero(self.cuts.decided >= 0))
        rows = Cuts.deciding(decisions)
        while len(self.breaking) < 2 * len(rows):
            self.breaking = np.append(self.breaking, self.solver.getNumCol())
            self.solver.addCol(0.0, 0.0, np.inf, 0, np.empty(0, dtype=np.int32), np.empty(0))
        for column in self.breaking.tolist():
            self.solver.changeColCost(column, penalty / self.unit)
        self.cut(rows)
        for at in range(2 * len(rows)):
            row = self.n + len(self.cuts) - len(rows) + at // 2
            self.solver.changeCoeff(row, int(self.breaking[at]), 1.0 - 2.0 * (at % 2))

    def trial(self, decision: Decision, steps: int) -> float:
        """Return the objective after one trial decision and at most `steps` simplex iterations; undo the decision."""
        basis = self.solver.getBasis()
        self.cut(Cuts.deciding([decision]))
        self.solver.setOptionValue("simplex_iteration_limit", steps)
        self.solver.run()
        value = float(self.solver.getInfo().objective_function_value) * self.unit
        self.solver.setOptionValue("simplex_iteration_limit", 2**31 - 1)
        self.drop(np.array([len(self.cuts) - 1]))
        self.solver.setBasis(basis)
        return value

    def solve(self) -> RelaxationSolution | None:
        """Solve the problem within HiGHS's tolerances; return None if stopped or if HiGHS finds no optimum."""
        import highspy

        # The time limit of HiGHS covers the total time of all its runs.
        seconds = max(self.deadline - time.monotonic(), 0.1)
        self.solver.setOptionValue("time_limit", min(self.solver.getRunTime() + seconds, 1e30))
        self.solver.run()
        if self.solver.getModelStatus() == highspy.HighsModelStatus.kUnknown:
            # HiGHS lost the basis: solve again from scratch.
            self.solver.clearSolver()
            self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal or self.over():
            return None
        answer: Any = self.solver.getSolution()
        duals = np.array(answer.row_dual) * self.unit
        value = float(self.solver.getInfo().objective_function_value) * self.unit
        self.broken = bool(np.array(answer.col_value)[self.breaking].sum() > 1e-6)
        prices = np.where(self.cuts.decided < 0, np.maximum(-duals[self.n :], 0.0), -duals[self.n :])
        return RelaxationSolution(
            value, duals[: self.n], self.cuts.priced(prices), np.array(answer.col_value)[self.place]
        )

    def _add_columns(self, columns: GroupColumns) -> None:
        count = len(columns)
        if count:
            start, row, entry = matrix(columns, self.n, self.cuts)
            self.place = np.append(self.place, self.solver.getNumCol() + np.arange(count))
            self.solver.addCols(
                count,
                columns.cost / self.unit,
                np.zeros(count),
                np.full(count, np.inf),
                len(row),
                start[:-1].astype(np.int32),
                row.astype(np.int32),
                entry,
            )

    def _add_rows(self, cuts: Cuts, column: Ints, cut: Ints, times: Ints) -> None:
        count = len(cuts)
        if count:
            order = np.argsort(cut, kind="stable")
            start = np.concatenate([[0], np.cumsum(np.bincount(cut, minlength=count))[:-1]])
            self.solver.addRows(
                count,
                np.where(cuts.decided < 0, -np.inf, cuts.decided),
                cuts.right_sides.astype(np.float64),
                len(column),
                start.astype(np.int32),
                self.place[column[order]].astype(np.int32),
                times[order].astype(np.float64),
            )
