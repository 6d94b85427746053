"""The master problem: choose groups so that every record is in exactly one, at the least SSE. Solved by HiGHS.

    min Σ c_G x_G   subject to   Σ_{G ∋ i} x_G = 1 for every record i,
                                 Σ_{|G ∩ R| ≥ 2} x_G ≤ 1 for every cut R,   x ≥ 0 (or binary).

Nothing here is trusted by the proof: the duals are checked by `shoal.optimize.bounds` in its own arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.optimize.columns import Columns, Cuts, cut_pairs
from shoal.types import Floats, Ints

__all__ = ["Master"]


class Master:
    """The linear relaxation over the columns added so far.

    ``method="simplex"`` starts each solve from the last; ``"ipm"`` from scratch, which is faster where the groups are
    large and the relaxation therefore degenerate.
    """

    def __init__(self, n: int, columns: Columns, *, upper: float, method: str) -> None:
        import highspy

        self.n = n
        self.triples: Ints = np.empty((0, 3), dtype=np.int64)
        self.columns = Columns(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
        self.solver = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        self.solver.setOptionValue("solver", method)
        # Duals from the interior move groups more evenly than those of a corner.
        self.solver.setOptionValue("run_crossover", "off")
        self.solver.setOptionValue("ipm_optimality_tolerance", 1e-6)
        # Every right-hand side is 1 and costs are SSEs: the objective in units of the incumbent is well scaled.
        self.unit = upper or 1.0
        one, none = np.ones(n), np.empty(0)
        empty = np.empty(0, dtype=np.int32)
        self.solver.addRows(n, one, one, 0, empty, empty, none)
        self.add(columns)

    def add(self, columns: Columns) -> None:
        """Add columns."""
        if not len(columns):
            return
        column, cut = cut_pairs(columns, self.n, self.triples)
        rows = np.concatenate([columns.member, cut + self.n])
        owner = np.concatenate([np.repeat(np.arange(len(columns)), columns.sizes), column])
        order = np.argsort(owner, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(columns)))[:-1]])
        count = len(columns)
        self.solver.addCols(
            count,
            columns.cost / self.unit,
            np.zeros(count),
            np.full(count, np.inf),
            len(rows),
            starts.astype(np.int32),
            rows[order].astype(np.int32),
            np.ones(len(rows)),
        )
        self.columns = self.columns.join(columns)

    def cut(self, triples: Ints) -> None:
        """Add subset-row cuts."""
        column, cut = cut_pairs(self.columns, self.n, triples)
        order = np.argsort(cut, kind="stable")
        counts = np.bincount(cut, minlength=len(triples))
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.solver.addRows(
            len(triples),
            np.full(len(triples), -np.inf),
            np.ones(len(triples)),
            len(column),
            starts.astype(np.int32),
            column[order].astype(np.int32),
            np.ones(len(column)),
        )
        self.triples = np.vstack([self.triples, triples])

    def drop_cuts(self, idle: Ints) -> None:
        """Remove cuts by number."""
        self.solver.deleteRows(len(idle), (idle + self.n).astype(np.int32))
        self.triples = np.delete(self.triples, idle, axis=0)

    def solve(self, seconds: float = np.inf) -> tuple[float, Floats, Cuts, Floats] | None:
        """Return the value, the duals π, the cuts with their prices, and the primal solution; None out of time."""
        import highspy

        # The solver counts the seconds of all its runs together.
        self.solver.setOptionValue("time_limit", min(self.solver.getRunTime() + max(seconds, 0.1), 1e30))
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        answer: Any = self.solver.getSolution()
        duals = np.array(answer.row_dual) * self.unit
        cuts = Cuts(self.triples, np.maximum(-duals[self.n :], 0.0))
        value = float(self.solver.getInfo().objective_function_value) * self.unit
        return value, duals[: self.n], cuts, np.array(answer.col_value)
