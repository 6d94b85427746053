"""Parameters of a differentially private publication; each parameter is described only here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.parameters import COLUMNS, ESSENTIALS, METHOD, PROMISES, Request, described, described_by, shared
from shoal.masking.request import MaskRequest
from shoal.privacy.publication_methods import DEFAULT, PUBLICATION_METHODS, PublicationMethod, find_publication_method
from shoal.tables.reading import ReadingOptions

if TYPE_CHECKING:
    from shoal.privacy.budgets import Budget
    from shoal.privacy.domains import BoundsGiven
    from shoal.tables.columns import Name

__all__ = ["PublishRequest"]

NAMED_METHODS = ", ".join(f"``{name}``" for name in PUBLICATION_METHODS)


@dataclass(frozen=True, kw_only=True)
class PublishRequest(Request):
    """A request to publish a table with differential privacy; its construction fails if a parameter is invalid.

    Examples
    --------
    >>> PublishRequest(epsilon=1.0, bounds={"sales": (0, 1e6)}).method
    'insensitive-ir'
    """

    epsilon: float = described(
        MISSING,
        "Privacy budget of this release, per record or unit. A unit counts with all of its records.",
        "-e",
        "--epsilon",
        panel=ESSENTIALS,
        python="Values above 10 emit a `LargeBudgetWarning`.",
        metavar="NUMBER",
    )
    delta: float | None = described(
        None,
        """Delta of method ``marginals``, such as 1e-9. It is the δ of (ε, δ)-differential privacy, the amount added to
        a probability in addition to the factor e^ε, and should be well below 1/n.""",
        "--delta",
        panel=PROMISES,
        typed=float,
    )
    bounds: BoundsGiven = described(
        MISSING,
        """Domain of each column, from public knowledge. Values outside are clipped and counted. ``data`` uses 1.5
        times the maximum in the data: for experiments only.""",
        "-b",
        "--bounds",
        panel=ESSENTIALS,
        python="A mapping ``{column: (lower, upper)}``; ``data`` emits a `DataBoundsWarning`.",
        typed=list,
        metavar="COLUMN=LOW:HIGH",
    )
    columns: Sequence[Name] | Name | None = shared(
        MaskRequest,
        "columns",
        help="Columns to publish. By default those with bounds or categories. All others are left out.",
    )
    method: str = described(
        DEFAULT,
        f"""Method of publication. It is one of {NAMED_METHODS}, ``marginals`` (with {parameter("delta")}), ``given``
        (with {parameter("groups")}), or a name listed by shoal methods. ``insensitive-ir`` groups neighbours of each
        column separately, in rows without order; ``insensitive`` does so for one column, and groups whole records in a
        fixed order, with much more noise, for several; ``none`` adds noise to every value; ``marginals`` draws whole
        records from a model of noisy counts. All others follow Definition 3.""",
        "-m",
        "--method",
        metavar="NAME",
        panel=ESSENTIALS,
    )
    k: int | None = described(
        None,
        """Records per group; the least number for ``optimal``. By default ``insensitive-ir`` computes it from the
        number of records and epsilon (Proposition 8 of the paper).""",
        "-k",
        panel=ESSENTIALS,
        metavar="NUMBER",
    )
    groups: Any = described(
        None,
        "Column of the groups, for method ``given``.",
        "--groups",
        metavar="COLUMN",
        panel=METHOD,
        python="Or an array with one group number per record.",
    )
    categories: Mapping[Name, Sequence[Any]] | None = described(
        None,
        """Column of categories, with all possible values. Take them from public knowledge. Columns of categories or
        truth values are published by randomised response (``marginals``: with all columns). Other and missing cells
        count as the last category.""",
        "--categories",
        panel=COLUMNS,
        python='A mapping such as ``{"sex": ["f", "m"], "smokes": [False, True]}``.',
        typed=list,
        metavar="COLUMN=A,B,…",
    )
    integer_columns: Sequence[Name] | Name | None = described(
        None,
        "Columns to release as integers. Their bounds must be integers.",
        "--integer-column",
        panel=COLUMNS,
        typed=list,
    )
    truncate: bool = described(
        True,
        """Truncate values to the domain. Otherwise released values may be outside, but their mean is not biased towards
        the middle.""",
        "--truncate/--no-truncate",
        panel=METHOD,
        typed=bool,
    )
    monotone: bool = described(
        True,
        """Sort the noisy group means. The means of sorted groups (``insensitive-ir``, and ``insensitive`` for one
        column) are put in ascending order, which lowers their error and costs no budget.""",
        "--monotone/--no-monotone",
        panel=METHOD,
        typed=bool,
    )
    budget: Budget = described(
        "even",
        """Division of epsilon among columns. ``even`` gives equal shares (jointly grouped columns share theirs in
        proportion to the width of their domains), ``sensitivity`` shares in proportion to the width, which leaves a
        column in small units almost nothing. Or list shares that sum to epsilon, such as sales=0.25,wages=0.75.""",
        "--budget",
        panel=PROMISES,
        python="Or a mapping of columns to shares.",
        metavar="even|sensitivity|SHARES",
    )
    sets: Sequence[Sequence[Name]] | None = described(
        None,
        """Columns grouped together, for method ``mdav``. Each set of columns is grouped separately, and sets are
        disjoint (Algorithm 2); by default all columns are grouped together (Algorithm 1).""",
        "--set",
        panel=METHOD,
        typed=list,
        metavar="COLUMN,COLUMN",
    )
    keep: Sequence[Name] | Name | None = shared(
        MaskRequest,
        "keep",
        help="Columns to release unchanged, WITHOUT any protection.",
        python="This emits an `UnprotectedColumnWarning`.",
    )
    unit: Name | None = shared(
        MaskRequest,
        "unit",
        help=f"""Unit column (person, household, firm). Epsilon then covers all records of a unit, at most
        {parameter("contributions")}. A table with larger units is refused. The column is not released. Without
        it, a person with m records is protected by m times epsilon only.""",
    )
    contributions: int | None = described(
        None,
        f"Largest number of records per unit. It applies to {parameter('unit')} and comes from public knowledge.",
        "--contributions",
        panel=COLUMNS,
        typed=int,
    )
    ledger: str | os.PathLike[str] | None = described(
        None,
        """Ledger of the spent budgets of a data set (JSON). A budget is recorded before anything is released, and
        refused when the total would be exceeded.""",
        "--ledger",
        panel=PROMISES,
        typed=Path,
    )
    dataset: str | None = described(None, "Name of the ledger's data set.", "--dataset", panel=PROMISES, metavar="NAME")
    total_budget: float | None = described(
        None, "Total budget of the data set, for a new ledger.", "--total-budget", panel=PROMISES, typed=float
    )
    total_delta: float | None = described(
        None, "Total delta of the data set, for a new ledger. It is for releases with delta.", "--total-delta",
        panel=PROMISES, typed=float,
    )  # fmt: skip
    new_ledger: bool = described(
        False,
        "Create the ledger. Use it only for the data set's first release.",
        "--new-ledger",
        panel=PROMISES,
        typed=bool,
    )
    seed: int | None = described(
        None,
        "Random seed; such a table must not be released. It makes noise reproducible, for experiments.",
        "--seed",
        panel=METHOD,
        python="It emits a `SeededNoiseWarning`.",
        typed=int,
    )
    output: str | os.PathLike[str] | None = shared(
        MaskRequest, "output", help="File for the released table. It is written completely or not at all."
    )
    reading: ReadingOptions = described_by(ReadingOptions)

    def __post_init__(self) -> None:
        from shoal.privacy.budgets import check_epsilon

        find_publication_method(self.method)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.ledger is None:
            for name in ("total_budget", "total_delta", "dataset", "new_ledger"):
                if getattr(self, name) not in (None, False):
                    raise InputError(
                        f"{parameter(name)} requires a ledger. Name the ledger's file in {parameter('ledger')}."
                    )
        elif not isinstance(self.dataset, str) or not self.dataset.strip():
            raise InputError(
                f"{parameter('ledger')} requires {parameter('dataset')}, the name of the data set whose budget the "
                f"ledger records, got {self.dataset!r}. The name protects against using another data set's ledger."
            )

    @property
    def entry(self) -> PublicationMethod:
        """The entry of the method in the list of publication methods."""
        return find_publication_method(self.method)
