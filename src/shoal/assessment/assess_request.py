"""Parameters of an assessment; each parameter is described only here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.assessment.measure_registry import ALL, MEASURES, check_measures
from shoal.core.checks import as_names
from shoal.core.messages import parameter
from shoal.core.parameters import COLUMNS, ESSENTIALS, Request, described, described_by, shared
from shoal.masking.request import MaskRequest
from shoal.tables.reading import ReadingOptions

if TYPE_CHECKING:
    from shoal.core.types import Ints
    from shoal.tables.columns import Codes, Name

__all__ = ["AssessRequest"]


def _users(name: str) -> str:
    """Return the names of the measures that use a parameter."""
    return " or ".join(f"``{measure}``" for measure in MEASURES if name in MEASURES[measure].uses)


@dataclass(frozen=True)
class OriginalOptions(ReadingOptions):
    """The reading options of the original; a masked table always has a header and one sheet."""

    skip_rows: int | None = shared(ReadingOptions, "skip_rows", help="Lines to skip above the header of the original.")
    no_header: bool | None = shared(
        ReadingOptions,
        "no_header",
        help="First line of the original is a record. Columns are then called column_1, column_2, ….",
    )
    sheet: str | None = shared(
        ReadingOptions, "sheet", help="Sheet of the original, an Excel file (default: the first)."
    )


@dataclass(frozen=True, kw_only=True)
class AssessRequest(Request):
    """A request to assess a masked table; its construction fails if a parameter is invalid.

    Examples
    --------
    >>> AssessRequest(columns="sales", measures="eigenvalues").names
    ['sales']
    """

    columns: Sequence[Name] | Name | None = shared(
        MaskRequest,
        "columns",
        help=f"Masked columns. By default the numeric columns that differ, and those in {parameter('kinds')}.",
    )
    roles: str | os.PathLike[str] | Mapping[Name, Any] | None = shared(MaskRequest, "roles")
    kinds: Mapping[Name, Any] | None = shared(MaskRequest, "kinds")
    missing_codes: Mapping[Name, Any] | None = shared(
        MaskRequest, "missing_codes", help="Codes for missing values in masked columns. They are numbers or texts."
    )
    k: int | None = shared(MaskRequest, "k", help="Promised k, to compare with the recount.")
    by: Sequence[Name] | Name | None = shared(
        MaskRequest,
        "by",
        help="""Columns that an intruder knows, such as the strata. They are released unchanged or with small strata
        joined.""",
    )
    confidential: Sequence[Name] | Name | None = shared(
        MaskRequest, "confidential", help="Sensitive columns, released unchanged. Outsiders do not know them."
    )
    model: Sequence[str] | str | None = described(
        None,
        """Regressions to fit before and after, such as ``profit ~ sales + wages``. Columns of text are categories.""",
        "--model",
        panel=ESSENTIALS,
        typed=list,
        metavar="FORMULA",
    )
    tables: Sequence[Sequence[Name] | Name] = described(
        (),
        """Frequency tables to count before and after, such as region,sex. Each has one column or several crossed
        columns. Columns of many numbers are counted in ten classes.""",
        "--table",
        panel=ESSENTIALS,
        python='For example ``[("region", "sex"), "sector"]``.',
        typed=list,
        metavar="COLUMN,…",
    )
    measures: Sequence[str] | str | None = described(
        None,
        f"""Slower measures: ``{ALL}``, {", ".join(MEASURES)}. They are taken on request only:
        {"; ".join(f"``{name}`` ({measure.help})" for name, measure in MEASURES.items())}.""",
        "--measure",
        panel=ESSENTIALS,
        typed=list,
        metavar="NAME",
    )
    keys: Sequence[Name] | Name | None = described(
        None,
        f"""Columns that an outsider may know. They may be masked or not, and {_users("keys")} use them; by default
        the masked columns and those in {parameter("by")}.""",
        "--key",
        panel=COLUMNS,
        typed=list,
    )
    weights: Name | None = described(
        None,
        f"""Weight column: number of people per record. It is used for {_users("weights")}. Outsiders do not know
        it.""",
        "--weights",
        panel=COLUMNS,
        metavar="COLUMN",
    )
    unit: Name | None = shared(
        MaskRequest,
        "unit",
        help=f"""Unit column (person, household, firm). Units whose combined records are unique are counted.
        Outsiders are assumed not to know this column. It is also used for {_users("unit")}.""",
    )
    kept: Sequence[int] | Ints | None = described(
        None,
        """Labels file of the masking. It is needed if the masking suppressed or shuffled records.""",
        "--labels",
        panel=COLUMNS,
        metavar="FILE",
        python="In Python the row numbers of the original that the masked table holds (`Release.kept`).",
    )
    shuffled: bool | None = described(
        None,
        f"""Masked records are in an unknown order. If {parameter("kept")} does not show the order, only measures that
        need no pairs of records are taken. By default an order that seems random is refused.""",
        "--shuffled/--no-shuffled",
        panel=COLUMNS,
        typed=bool,
    )
    seed: int = shared(MaskRequest, "seed", help="Random seed of the samples that large tables are measured by.")
    reading: OriginalOptions = described_by(OriginalOptions)

    def __post_init__(self) -> None:
        check_measures(as_names(self.measures))
        if self.roles is not None:
            from shoal.roles.requested_roles import apply_roles

            apply_roles(self)

    @property
    def names(self) -> list[Name]:
        """The columns that the request names as masked."""
        return as_names(self.columns)

    @property
    def codes(self) -> Codes:
        """The codes for missing values, keyed by column."""
        from shoal.tables.columns import read_codes

        return read_codes(self.missing_codes)
