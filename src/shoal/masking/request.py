"""All that can be asked of a masking, in one place: every parameter, its default, its rule and its help.

`shoal.mask`, the command line, the estimator and manifests make a `MaskRequest` and nobody else lists the parameters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import Field, dataclass
from functools import cached_property
from numbers import Number
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from shoal.algorithms.registry import ALL_METHODS, AUTO, EFFORTS, Method, choose, find, options_for
from shoal.core.checks import as_names, check_choice, check_size, plain_array, read_share
from shoal.core.errors import InputError, closest
from shoal.core.messages import listed, parameter, setting
from shoal.core.parameters import (
    COLUMNS,
    ESSENTIALS,
    LARGE,
    METHOD,
    MISSING_VALUES,
    OUTPUT,
    described,
    described_by,
    parameters_of,
)
from shoal.core.parameters import CSV as CSV_FILES
from shoal.core.parameters import PROMISES as PROTECTION
from shoal.masking.request_rules import check_method, check_promises, check_together
from shoal.promises.promise_registry import PROMISES, plain_promise, read_promise

if TYPE_CHECKING:
    import numpy as np

    from shoal.promises.promise import GroupPromise
    from shoal.tables.columns import Codes, Name

__all__ = [
    "AGGREGATES",
    "CSV",
    "EFFORTS",
    "ENGINES",
    "LAYOUT",
    "SPLITS",
    "MaskRequest",
    "file_options",
    "not_recorded",
    "parameters",
]

AGGREGATES = ("mean", "median", "medoid")
SPLITS = ("all", "one", "univariate", "sorted")
ENGINES = ("memory", "local", "dask", "spark")
CSV = ("delimiter", "encoding", "decimal", "thousands")
LAYOUT = ("skip_rows", "no_header", "sheet")  # of a file that is not a plain table, such as one of Excel
# The parameters that name columns, or list rules: one may stand alone; a request holds lists.
LISTS = ("columns", "distance", "by", "identifiers", "keep", "confidential", "zeros", "sums", "block_by")


class _RequestType(type):
    """Makes a request from parameters, among them those of promises by their own names."""

    def __call__(cls, *positional: Any, **values: Any) -> Any:
        promises = dict(values.pop("promises", {}))
        promises |= {name: values.pop(name) for name in PROMISES if name in values}
        promises = {name: promise for name, promise in promises.items() if promise is not None}
        return super().__call__(*positional, promises=promises, **values)


@dataclass(frozen=True)
class MaskRequest(metaclass=_RequestType):
    """A request to mask a table; refused when it is made if a parameter breaks its rule.

    Examples
    --------
    >>> MaskRequest(k=5, columns=["sales"], by="region").k
    5
    """

    k: int = described(
        None, "The least number of records in a group, at least 2.", "-k",
        panel=ESSENTIALS, label="Group size k", typed=int, stored=(int,),
    )  # fmt: skip
    columns: Sequence[Name] | Name | None = described(
        None,
        f"""The columns to mask. Other columns are left out ({parameter("rest")}). By default every column gets the role
        that ``shoal inspect`` proposes.""",
        "-c",
        "--column",
        panel=ESSENTIALS,
        label="Keys",
        typed=list,
        stored=(list,),
    )
    method: str | Callable[..., Any] | Method = described(
        AUTO,
        f"""``{AUTO}`` finds the optimum for one column; for several it improves MDAV as long as {parameter("effort")}
        allows. All methods: {", ".join(ALL_METHODS)}.""",
        "-m",
        "--method",
        panel=ESSENTIALS,
        label="Method",
        python="Also a function ``f(X, k)`` that returns the group of each record. `shoal.methods` describes them all.",
        stored=(str,),
    )
    kinds: Mapping[Name, Any] | None = described(
        None,
        "Columns that hold no numbers, or numbers that are codes: categories, ordered categories, hierarchies, dates.",
        panel=COLUMNS,
        label="Kinds",
        python="""A mapping to ``shoal.Nominal()``, ``shoal.Ordinal([…])``, ``shoal.Hierarchy("zip.csv")`` or, for text
        that holds dates or times, ``shoal.Date()`` or ``shoal.Date("%d.%m.%Y")``; of a latitude and a longitude
        together ``shoal.Place()``. By default text and Booleans are nominal, ordered categories ordinal.""",
        stored=(dict, NoneType),
    )
    distance: Sequence[Name] | Name | None = described(
        None,
        """The columns that decide which records are similar; all masked columns if not given. All masked columns are
        replaced.""",
        "--distance",
        panel=COLUMNS,
        label="Compared columns",
        typed=list,
        stored=(list, NoneType),
    )
    importance: Mapping[Name, float] | None = described(
        None,
        "How much columns count when records are compared; 1 by default.",
        "--importance",
        panel=COLUMNS,
        label="Importance",
        python='For example ``{"age": 2.0}``.',
        typed=list,
        metavar="COLUMN=NUMBER",
        stored=(dict, NoneType),
    )
    by: Sequence[Name] | Name | None = described(
        None,
        "Columns that split the table into strata: groups never cross them.",
        "--by",
        panel=ESSENTIALS,
        label="Strata",
        typed=list,
        stored=(list,),
    )
    identifiers: Sequence[Name] | Name | None = described(
        None,
        "Columns that identify a person or a firm; they are dropped from the release.",
        "--drop",
        panel=COLUMNS,
        label="Identifiers",
        typed=list,
        stored=(list, NoneType),
    )
    keep: Sequence[Name] | Name | None = described(
        None,
        "Columns to release unchanged although an outsider may know them; identifiers among them are released too.",
        "--keep",
        panel=COLUMNS,
        label="Kept columns",
        typed=list,
        stored=(list, NoneType),
    )
    roles: str | os.PathLike[str] | Mapping[Name, Any] | None = described(
        None,
        "File of the role, kind and missing codes of every column, as written by ``shoal inspect IN -o ROLES``.",
        "--roles",
        panel=ESSENTIALS,
        label="Roles file",
        python="Also a mapping of columns to roles.",
        typed=Path,
        stored=(),
    )
    rest: str = described(
        "drop",
        "Columns without a role: ``drop`` leaves them out, ``keep`` releases them unchanged, ``error`` refuses them.",
        "--rest",
        panel=COLUMNS,
        label="Other columns",
        stored=(str,),
        choices={
            "drop": "leave them out",
            "keep": "release them unchanged",
            "error": "refuse them",
        },
    )
    unit: Name | None = described(
        None,
        "Unit column (person, household, firm). k then counts distinct units per group.",
        "--unit",
        panel=COLUMNS,
        label="Unit",
    )
    confidential: Sequence[Name] | Name | None = described(
        None,
        """Sensitive columns, released unchanged: their diversity per group and their closeness to the table are
        measured in the release. A missing value counts as a value.""",
        "--confidential",
        panel=PROTECTION,
        label="Sensitive columns",
        typed=list,
        stored=(list, NoneType),
    )
    promises: Mapping[str, Any] = described_by(PROMISES)
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = described(
        None,
        """Column of record weights: a group's value is then the weighted mean, so that weighted totals are kept.
        k still counts records.""",
        "--weights",
        panel=COLUMNS,
        label="Weight",
        python="Also a vector.",
    )
    missing: str = described(
        "group",
        """Treatment of records with missing values in masked columns: ``error`` refuses them, ``group`` masks them
        with records missing the same columns, ``drop`` leaves them out of the release.""",
        "--missing",
        panel=MISSING_VALUES,
        label="Records with missing values",
        stored=(str,),
        choices={
            "error": "refuse them",
            "group": "group them with records missing the same columns",
            "drop": "leave them out",
        },
    )
    missing_codes: Mapping[Name, Any] | None = described(
        None,
        f"""Numbers or texts that mean missing in masked columns: {parameter("missing")} applies to their cells. Other
        columns keep them.""",
        "--missing-code",
        panel=MISSING_VALUES,
        label="Codes for missing",
        python='For example ``{"income": [-9, 99]}``.',
        typed=list,
        metavar="COLUMN=CODE,…",
        stored=(dict, NoneType),
    )
    small: str = described(
        "merge",
        f"""Treatment of fewer than k records in a stratum, or missing, or zero in ({parameter("zeros")}), the same
        columns: ``error`` refuses and lists them, ``suppress`` leaves them out of the release, ``merge`` joins strata
        to the nearest, which then read "a or b" (or the common ancestor, if the column has a hierarchy), and rare
        patterns of missing values to others, whose records then miss what either misses.""",
        "--small",
        panel=MISSING_VALUES,
        label="Strata and patterns below k",
        stored=(str, NoneType),
        choices={
            "error": "refuse them",
            "suppress": "leave their records out",
            "merge": "join them to others",
        },
    )
    max_left_out: str | float = described(
        "5%",
        """The largest share of records that may be left out, and of cells that may be made missing, such as ``20%``;
        more is refused.""",
        "--max-left-out",
        panel=MISSING_VALUES,
        label="Most records left out",
        python="Also a number from 0 to 1.",
        stored=(str, float, int),
    )
    zeros: Sequence[Name] | Name | None = described(
        None,
        """Masked columns of numbers whose zeros are kept: a record that is zero stays zero, and is grouped with records
        that are zero in the same of these columns.""",
        "--keep-zeros",
        panel=COLUMNS,
        label="Columns whose zeros are kept",
        typed=list,
        stored=(list, NoneType),
    )
    sums: Sequence[str] | str | None = described(
        None,
        """Rules such as ``total = wages + capital`` that hold for masked columns, in the table and in the release; also
        with minus. Put names with blanks or signs in backticks or quotes.""",
        "--sum",
        panel=COLUMNS,
        label="Sums that are kept",
        typed=list,
        stored=(list, NoneType),
    )
    integers: str = described(
        "round",
        """Means of columns of whole numbers: ``float`` may get decimals, ``round`` stays whole, ``totals`` stays whole
        and keeps the total of each column, in every stratum and block.""",
        "--integers",
        panel=OUTPUT,
        label="Columns of whole numbers",
        stored=(str,),
        choices={
            "float": "may get decimals",
            "round": "stay whole",
            "totals": "stay whole, totals are kept",
        },
    )
    decimals: str = described(
        "fit",
        """Decimals of other means: ``fit`` allows at most one more than the column has, ``all`` keeps all digits.
        Columns of sums that are kept have all digits.""",
        "--decimals",
        panel=OUTPUT,
        label="Decimals",
        stored=(str,),
        choices={
            "fit": "at most one more than the column has",
            "all": "all digits",
        },
    )
    aggregate: str = described(
        "mean",
        "The value released for a group: ``mean``, ``median`` or ``medoid`` (a real record's values).",
        "--aggregate",
        panel=METHOD,
        label="Value of a group",
        stored=(str,),
        choices=AGGREGATES,
    )
    refine: int | None = described(
        0,
        """Refinement steps per record: a last pass moves records between groups to lower the released loss, by the
        mode or median of categories instead of the mean. 50 steps take a few seconds for 30,000 records.""",
        "--refine",
        panel=METHOD,
        label="Refinement steps per record",
        typed=int,
        stored=(int, NoneType),
    )
    block: int | None = described(
        None,
        """Mask the table in blocks of about this many records at most; 0 for none. By default methods that take
        several columns mask tables with more than 100,000 records in a stratum in blocks of 10,000.""",
        "--block",
        panel=LARGE,
        label="Block size",
        typed=int,
        stored=(int, NoneType),
    )
    split: str | None = described(
        None,
        f"""How blocks are cut: ``all`` columns at once (a 2^d-tree), ``one`` at a time, ``univariate`` (equal intervals
        of one column) or ``sorted`` (in the order of one column, as many records as {parameter("block")} says). By
        default ``one``, but ``all`` for up to 5 columns if the method is not a search; shoal tries both on a sample and
        keeps the better.""",
        "--split",
        panel=LARGE,
        label="Cut of blocks",
        choices=SPLITS,
    )
    block_by: Sequence[Name] | Name | None = described(
        None,
        f"""The masked columns of numbers that blocks are cut along; all by default, the first where
        {parameter("split")} uses one column. With ``all`` and ``one``, records that are alike in them are cut along the
        other columns.""",
        "--block-by",
        panel=LARGE,
        label="Columns that blocks are cut along",
        typed=list,
        stored=(list, NoneType),
    )
    engine: str | None = described(
        None,
        f"""``memory``, or ``local`` for a table that stays on disk: CSV or Parquet, as a file, a folder or a glob, to
        the file in {parameter("output")}, by processes of this machine. Chosen by the size of the file by default. On a
        cluster ``dask`` masks CSV or Parquet files, and ``spark`` Parquet files, to a Parquet data set, which is a
        folder; both may be at addresses (``s3://…``).""",
        "--engine",
        panel=LARGE,
        label="Engine",
        choices=ENGINES,
    )
    memory: str | int | None = described(
        None,
        """The memory for engine ``local``, all its processes together, such as ``2GB``; half of the free memory by
        default. The calling process is one of them, with what it held before. The summary shows the peaks.""",
        "--memory",
        panel=LARGE,
        label="Memory",
        stored=(str, int, NoneType),
    )
    processes: int | None = described(
        None,
        "The number of worker processes of engine ``local``; one per processor by default.",
        "--processes",
        panel=LARGE,
        label="Processes",
        typed=int,
        stored=(int, NoneType),
    )
    scheduler: str | None = described(
        None,
        "The address of the cluster for engine ``dask``; the current client, or this process, by default.",
        "--scheduler",
        panel=LARGE,
        label="Scheduler",
        stored=(),
    )
    master: str | None = described(
        None,
        """Where engine ``spark`` runs, such as ``yarn`` or ``local-cluster[2,1,1024]``; the active session, or the one
        in Spark's settings, by default.""",
        "--master",
        panel=LARGE,
        label="Master",
        stored=(),
    )
    shuffle: bool | int | None = described(
        False,
        "Release the records in random order, by the randomness of the operating system.",
        "--shuffle",
        panel=OUTPUT,
        label="Release in random order",
        python="A number makes the order repeatable.",
        typed=bool,
        stored=(bool, int, NoneType),
    )
    effort: str | None = described(
        None,
        f"""Search effort of method ``{AUTO}``, and of every method with {parameter("diversity")},
        {parameter("closeness")} or {parameter("unit")}: ``fast``, ``good`` (default) or ``best``, which takes at least
        five times as long.""",
        "--effort",
        panel=METHOD,
        label="Search effort",
        choices=tuple(EFFORTS),
    )
    seed: int | None = described(
        0, "Random seed.", "--seed", panel=METHOD, label="Random seed", typed=int, stored=(int, NoneType)
    )
    output: str | os.PathLike[str] | None = described(
        None,
        "Write the masked table to this file, as a whole or not at all.",
        "-o",
        "--output",
        panel=ESSENTIALS,
        label="Released file",
        typed=Path,
        stored=(),
    )
    labels: str | os.PathLike[str] | None = described(
        None,
        f"""Write the row number of each released record in the original table, its group and the size of the group to
        this file. Whoever has it can undo {parameter("shuffle")}.""",
        "--labels",
        panel=OUTPUT,
        label="Labels file",
        typed=Path,
        stored=(),
    )
    delimiter: str | None = described(
        None, "The delimiter of a CSV file, or ``tab``; detected by default.", "--delimiter",
        panel=CSV_FILES, label="Delimiter",
    )  # fmt: skip
    encoding: str | None = described(
        None, "The encoding of a CSV file; detected by default.", "--encoding", panel=CSV_FILES, label="Encoding"
    )
    decimal: str | None = described(
        None, "The decimal sign of a CSV file; detected by default.", "--decimal",
        panel=CSV_FILES, label="Decimal sign",
    )  # fmt: skip
    thousands: str | None = described(
        None,
        "The thousands separator of a CSV file, such as the point in 90.000,50; none by default.",
        "--thousands",
        panel=CSV_FILES,
        label="Thousands separator",
    )
    skip_rows: int | None = described(
        0,
        "Lines above the header of a CSV file or an Excel sheet, such as titles, that are skipped.",
        "--skip-rows",
        panel=CSV_FILES,
        label="Lines above the header",
        typed=int,
        stored=(int, NoneType),
    )
    no_header: bool | None = described(
        False,
        "The first line of a CSV file or an Excel sheet is a record: columns are called column_1, column_2, ….",
        "--no-header",
        panel=CSV_FILES,
        label="No header",
        typed=bool,
        stored=(bool, NoneType),
    )
    sheet: str | None = described(
        None, "The sheet of an Excel file; the first by default.", "--sheet", panel=CSV_FILES, label="Sheet"
    )
    escape_formulas: bool | None = described(
        False,
        """Put an apostrophe before cells of text and column names in a CSV file that a spreadsheet would run as
        formulas: those that begin with =, +, - or @ and are not numbers.""",
        "--escape-formulas",
        panel=CSV_FILES,
        label="Escape formulas",
        typed=bool,
        stored=(bool, NoneType),
    )
    progress: bool = described(False, "Show a progress bar on a terminal.", stored=())
    options: Mapping[str, Any] = described({}, "Options of the method.", panel=METHOD, stored=(dict,))

    def __post_init__(self) -> None:
        check_size(self.k)
        self._take_roles()
        for name in LISTS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_names(getattr(self, name)))
        if self.kinds is not None:
            from shoal.kinds.kind_registry import read_kinds

            if not isinstance(self.kinds, Mapping):
                raise InputError(
                    f"{parameter('kinds')} must map names of columns to their kinds, such as "
                    f"{{'job': shoal.Nominal()}}, got {self.kinds!r}."
                )
            object.__setattr__(self, "kinds", read_kinds(self.kinds))
        if self.missing_codes is not None:
            from shoal.tables.columns import read_codes

            object.__setattr__(self, "missing_codes", read_codes(self.missing_codes))
        self.entry.read_options(self.options)
        for item in parameters():
            value, choices = getattr(self, item.name), tuple(item.metadata["choices"])
            if choices and value not in choices and not (value is None and item.default is None):
                check_choice(item.name, value, choices)
        read_share("max_left_out", self.max_left_out)
        check_together(self)
        if self.columns is not None:  # else sensitive columns may yet be proposed
            check_promises(self)
        for name in self.promises.keys() - PROMISES.keys():
            raise InputError(f"Promise {name!r} is not registered.{closest(name, PROMISES)}")
        promises = {name: read_promise(name, self.promises[name]) for name in PROMISES if name in self.promises}
        object.__setattr__(self, "promises", promises)

    def _take_roles(self) -> None:
        """Set the parameters that give every column its role, if there are roles; refuse those that are set besides."""
        if self.roles is None:
            return
        from shoal.roles.column_roles import Roles, as_parameters
        from shoal.roles.roles_file import read_roles

        if isinstance(self.roles, Roles):
            return
        columns = read_roles(self.roles)
        parameters = as_parameters(columns)
        for name in parameters:
            if getattr(self, name) is not None:
                raise InputError(
                    f"{parameter(name)} cannot be combined with {parameter('roles')}, which gives every column its "
                    "role. Change the roles instead."
                )
        if not parameters["columns"]:
            raise InputError(f"{parameter('roles')} has no column with role 'key', so nothing is masked. Add one.")
        for role in ("unit", "weight"):
            several = [column for column, entry in columns.items() if entry.role == role]
            if len(several) > 1:
                raise InputError(f"{parameter('roles')} has several columns with role {role!r}: {listed(several)}.")
        vars(self).update(parameters, roles=Roles(columns))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the value of the parameter of a promise; None if it is not promised."""
            if name not in PROMISES:
                raise AttributeError(f"MaskRequest has no parameter {name!r}.")
            return self.promises.get(name)

    @staticmethod
    def parameters() -> tuple[Field[Any], ...]:
        """Return the description of every parameter, in order, with those of all promises."""
        return parameters_of(MaskRequest)

    def models(self) -> list[tuple[int, GroupPromise]]:
        """Return what is promised of confidential columns, each promise with the place of its column."""
        names, placed = list(self.confidential or ()), list[tuple[int, Any]]()
        for promise_name, promise in self.promises.items():
            if not isinstance(promise, Mapping):
                placed += [(place, promise) for place in range(len(names))]
                continue
            for name in promise:
                if name not in names:
                    raise InputError(
                        f"{parameter(promise_name)} names column {name!r}, which is not confidential."
                        f"{closest(name, names)} Name it in {parameter('confidential')} too."
                    )
            placed += [(names.index(name), one) for name, one in promise.items()]
        return placed

    def searches(self, entry: Method) -> bool:
        """Whether it takes an effort to find what is asked for: by the method, or after it to keep a promise."""
        return self.unit is not None or bool(self.promises) or entry.takes("effort")

    def settled(self, columns: Sequence[Name], nominal: Sequence[Name] = ()) -> MaskRequest:
        """Return the request with the method that compares these columns, and all its options.

        `nominal` are those whose values have no order: each value is a column to a method.
        """
        entry = choose(self.method, len(columns) + len(nominal))
        check_method(self, entry, columns, nominal)
        options = options_for(entry, self.method, self.options)
        if entry.takes("effort") and self.effort is not None:
            options = {**options, "effort": self.effort}
        effort = self.effort if self.searches(entry) else None  # the optimum takes none
        settled = copy(self)  # its parameters have been checked
        vars(settled).update(method=entry, entry=entry, options=entry.read_options(options), effort=effort)
        return settled

    @cached_property
    def entry(self) -> Method:
        """The method; once the request is settled, the one that runs."""
        return find(self.method)

    @property
    def title(self) -> str:
        """The name of the method."""
        return self.entry.name

    @property
    def own(self) -> bool:
        """Whether the method is a user's function."""
        return self.entry.by_user

    def notes(self) -> list[str]:
        """Return what a reader of the release must know about the request."""
        notes = []
        if self.own:
            notes.append(f"method {self.title} is a function of the user: shoal alone cannot repeat this run")
        if self.refine:
            step = setting("refine", self.refine)
            notes.append(f"records were moved between groups to lower the released loss ({step})")
        return notes

    def plain_kinds(self) -> dict[Name, Any] | None:
        """Return the kinds as plain values."""
        return None if self.kinds is None else {name: kind.plain() for name, kind in self.kinds.items()}

    @property
    def writes_csv(self) -> bool:
        """Whether a CSV file is written."""
        from shoal.tables.files import is_csv

        return self.output is not None and is_csv(self.output)

    @property
    def shuffled(self) -> bool:
        """Whether the records are put in random order; 0 is a seed."""
        return self.shuffle is not None and self.shuffle is not False

    @property
    def accepted_share(self) -> float:
        """The share of records that may be left out, and of cells that may be made missing."""
        return read_share("max_left_out", self.max_left_out)

    @property
    def steps(self) -> float:
        """How many steps a search for groups that keep promises takes, relative to what is usual."""
        return EFFORTS[self.effort or "good"] / EFFORTS["good"]

    @property
    def whole(self) -> bool:
        """Whether columns of whole numbers are rounded."""
        return self.integers != "float"

    @property
    def weight_vector(self) -> np.ndarray[Any, Any] | None:
        """The weights, if they were given as numbers and not as a column's name."""
        import numpy as np

        is_vector = self.weights is not None and not isinstance(self.weights, (str, int))
        if not is_vector:
            return None
        masked = isinstance(self.weights, np.ma.MaskedArray)
        return np.asarray(plain_array(self.weights) if masked else self.weights, dtype=np.float64)

    @property
    def numbers(self) -> list[Name]:
        """The columns that are named to be masked, and the column of weights."""
        return [*(self.columns or ()), *([self.weights] if isinstance(self.weights, str) else [])]

    @property
    def codes(self) -> Codes:
        """The codes for missing, by column."""
        return self.missing_codes or {}

    @property
    def csv(self) -> dict[str, Any]:
        """How a file is read that does not say so itself: CSV or Excel."""
        return file_options(vars(self))

    def recorded(self, columns: Sequence[Name], **engine: Any) -> dict[str, Any]:
        """Return all that decided a result, as plain values: what a release says that it was asked for."""
        return {
            **{item.name: getattr(self, item.name) for item in parameters() if item.metadata["stored"]},
            "k": int(self.k),
            "columns": list(columns),
            "method": self.entry.name,
            "options": {name: _recorded(value) for name, value in self.options.items()},
            "kinds": self.plain_kinds(),
            **{name: getattr(self, name) or [] for name in ("by", "identifiers", "keep", "zeros", "sums")},
            **dict.fromkeys(PROMISES),
            **{name: plain_promise(promise) for name, promise in self.promises.items()},
            "importance": None if self.importance is None else dict(self.importance),
            "missing_codes": {name: list(codes) for name, codes in self.codes.items()} or None,
            "weights": _recorded(self.weights, "a vector"),
            "block": None if self.block is None else int(self.block),
            **engine,
        }


def file_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that say how a CSV or Excel file is read, from those of a run."""
    names = CSV if values.get("sheet") is None else (*CSV, "sheet")
    return {name: values[name] for name in (*names, *LAYOUT[:2])}


OBJECT = "given as "  # an object that no command and no manifest holds: labels, a spanning tree, what a function takes


def _recorded(value: object, name: str | None = None) -> object:
    return value if isinstance(value, (str, Number, NoneType)) else f"{OBJECT}{name or type(value).__name__}"


def not_recorded(recorded: Mapping[str, Any]) -> list[str]:
    """Return the parameters and options whose values were objects that `MaskRequest.recorded` only names."""
    values = {**recorded["options"], "weights": recorded.get("weights")}
    return [name for name, value in values.items() if isinstance(value, str) and value.startswith(OBJECT)]


def parameters() -> tuple[Field[Any], ...]:
    """Return the description of every parameter, in order."""
    return MaskRequest.parameters()
