"""The parameters of a masking, each with its default, its check and its help text.

`shoal.mask`, the command line, the estimator and manifests all build a `MaskRequest`. Only this module declares its
parameters.
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
from shoal.core.messages import parameter, setting
from shoal.core.parameters import (
    COLUMNS,
    ESSENTIALS,
    LARGE,
    METHOD,
    MISSING_VALUES,
    OUTPUT,
    Request,
    described,
    described_by,
    parameters_of,
)
from shoal.core.parameters import CSV as CSV_FILES
from shoal.core.parameters import PROMISES as PROTECTION
from shoal.masking.request_rules import check_method, check_promises, check_together
from shoal.promises.promise_registry import PROMISES, plain_promise, read_promise
from shoal.tables.reading import ReadingOptions

if TYPE_CHECKING:
    import numpy as np

    from shoal.promises.promise import GroupPromise
    from shoal.tables.columns import Codes, Name

__all__ = [
    "AGGREGATES",
    "EFFORTS",
    "ENGINES",
    "SPLITS",
    "MaskRequest",
    "not_recorded",
    "parameters",
]

AGGREGATES = ("mean", "median", "medoid")
SPLITS = ("all", "one", "univariate", "sorted")
ENGINES = ("memory", "local", "dask", "spark")
NAMING = ("columns", "by", "identifiers", "keep", "confidential", "distance", "zeros", "block_by")
SIGNS = frozenset(",*?[")  # characters that mark a list or a pattern of column names
# Parameters that hold a list of columns or rules. A user may pass a single name or rule; a request holds a list.
LISTS = (*NAMING, "sums")


@dataclass(frozen=True)
class MaskRequest(Request):
    """A request to mask a table. The constructor refuses invalid parameters.

    Examples
    --------
    >>> MaskRequest(k=5, columns=["sales"], by="region").k
    5
    """

    k: int = described(
        None, "Smallest group size, at least 2.", "-k",
        panel=ESSENTIALS, label="Group size k", typed=int, stored=(int,),
    )  # fmt: skip
    columns: Sequence[Name] | Name | None = described(
        None,
        f"""Columns to mask. Other columns are left out ({parameter("rest")}). By default every column gets the role
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
        f"""Method that forms the groups. ``{AUTO}`` finds the optimum for one column; for several columns it improves
        the groups of MDAV for as long as {parameter("effort")} allows. All methods: {", ".join(ALL_METHODS)}.""",
        "-m",
        "--method",
        metavar="NAME",
        panel=ESSENTIALS,
        label="Method",
        python="Also a function ``f(X, k)`` that returns the group of each record. `shoal.methods` describes all.",
        stored=(str,),
    )
    kinds: Mapping[Name, Any] | None = described(
        None,
        "Kinds of columns that are not plain numbers: categories, ordered categories, hierarchies, dates, places.",
        panel=COLUMNS,
        label="Kinds",
        python="""A mapping of columns to ``shoal.Nominal()``, ``shoal.Ordinal([…])``, ``shoal.Hierarchy("zip.csv")``,
        for dates or times stored as text ``shoal.Date()`` or ``shoal.Date("%d.%m.%Y")``, or for a pair of latitude and
        longitude ``shoal.Place()``. By default text and Booleans are nominal, and ordered categories are ordinal.""",
        stored=(dict, NoneType),
    )
    distance: Sequence[Name] | Name | None = described(
        None,
        "Columns that measure similarity (default: all masked). All masked columns are replaced.",
        "--distance",
        panel=COLUMNS,
        label="Compared columns",
        typed=list,
        stored=(list, NoneType),
    )
    importance: Mapping[Name, float] | None = described(
        None,
        "Importance of columns in similarity (default: 1).",
        "--importance",
        panel=COLUMNS,
        label="Importance",
        python='For example ``{"age": 2.0}``.',
        typed=list,
        metavar="COLUMN=NUMBER",
        stored=(dict, NoneType),
    )
    scale: Mapping[Name, str] | str | None = described(
        None,
        """Scale for comparing numbers: linear (default), log, rank. ``log`` suits values that span powers of ten, also
        with zeros and negative numbers. One scale applies to all masked columns of numbers, or set one per column.
        Released values and the loss stay in the units of the column.""",
        "--scale",
        panel=COLUMNS,
        label="Scale",
        python='For example ``"log"`` or ``{"sales": "log"}``.',
        typed=list,
        metavar="[COLUMN=]SCALE",
        stored=(dict, str, NoneType),
    )
    by: Sequence[Name] | Name | None = described(
        None,
        "Columns that define strata; groups never cross strata.",
        "--by",
        panel=ESSENTIALS,
        label="Strata",
        typed=list,
        stored=(list,),
    )
    identifiers: Sequence[Name] | Name | None = described(
        None,
        "Columns to leave out, such as identifiers.",
        "--drop",
        panel=COLUMNS,
        label="Identifiers",
        typed=list,
        stored=(list, NoneType),
    )
    keep: Sequence[Name] | Name | None = described(
        None,
        "Columns to release unchanged, without protection. Identifiers among them are released too.",
        "--keep",
        panel=COLUMNS,
        label="Kept columns",
        typed=list,
        stored=(list, NoneType),
    )
    roles: str | os.PathLike[str] | Mapping[Name, Any] | None = described(
        None,
        """Roles file, as written by ``shoal inspect IN -o ROLES``. It holds the role, kind and missing codes of every
        column.""",
        "--roles",
        panel=ESSENTIALS,
        label="Roles file",
        python="Also a mapping of columns to roles.",
        typed=Path,
        stored=(),
    )
    rest: str = described(
        "drop",
        """Columns without a role. ``drop`` leaves them out, ``keep`` releases them
        unchanged, ``error`` refuses the table.""",
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
        "Unit column (person, household, firm); k counts units.",
        "--unit",
        panel=COLUMNS,
        metavar="COLUMN",
        label="Unit",
    )
    confidential: Sequence[Name] | Name | None = described(
        None,
        """Sensitive columns, released unchanged. Their diversity per group and their closeness to the table are
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
        """Weight column; groups release weighted means. Weighted totals are then kept. k still counts records.""",
        "--weights",
        panel=COLUMNS,
        metavar="COLUMN",
        label="Weight",
        python="Also a vector.",
    )
    missing: str = described(
        "group",
        """Records with missing values. ``group`` masks them with records that have
        the same columns missing, ``drop`` suppresses them, ``error`` refuses the table.""",
        "--missing",
        panel=MISSING_VALUES,
        label="Records with missing values",
        stored=(str,),
        choices={
            "group": "group them with records missing the same columns",
            "drop": "suppress them",
            "error": "refuse the table",
        },
    )
    missing_codes: Mapping[Name, Any] | None = described(
        None,
        "Codes for missing values. Such cells of masked columns count as missing. Other columns keep them.",
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
        f"""Strata and patterns below k. These are fewer than k records of a stratum, also those with the same missing
        columns or the same kept zeros ({parameter("zeros")}). ``merge`` joins a stratum to the nearest one, released as
        "a or b" (or as the common ancestor in a hierarchy), and makes values of similar records missing for a rare
        pattern. ``suppress`` suppresses the records, ``error`` refuses the table and lists them.""",
        "--small",
        panel=MISSING_VALUES,
        label="Strata and patterns below k",
        stored=(str, NoneType),
        choices={
            "merge": "join them to others",
            "suppress": "suppress their records",
            "error": "refuse the table",
        },
    )
    max_left_out: str | float = described(
        "5%",
        """Largest share of suppressed records. The same limit applies to the share of cells made missing. A table that
        needs more is refused.""",
        "--max-left-out",
        panel=MISSING_VALUES,
        metavar="SHARE",
        label="Largest share suppressed",
        python="Also a number from 0 to 1.",
        stored=(str, float, int),
    )
    zeros: Sequence[Name] | Name | None = described(
        None,
        """Masked columns whose zeros are kept. A zero remains zero, and its record is grouped with records that are
        zero in the same of these columns.""",
        "--keep-zeros",
        panel=COLUMNS,
        label="Columns whose zeros are kept",
        typed=list,
        stored=(list, NoneType),
    )
    sums: Sequence[str] | str | None = described(
        None,
        """Sum rule to keep, such as ``total = wages + capital``. It must hold in the table; plus and minus are allowed.
        Put names with spaces or signs in backticks or quotes.""",
        "--sum",
        panel=COLUMNS,
        metavar="RULE",
        label="Sums that are kept",
        typed=list,
        stored=(list, NoneType),
    )
    integers: str = described(
        "round",
        """Means of whole numbers. ``round`` keeps them whole, ``float`` allows
        decimals, ``totals`` keeps them whole and also keeps the total of each column in every stratum and block.""",
        "--integers",
        panel=OUTPUT,
        label="Columns of whole numbers",
        stored=(str,),
        choices={
            "round": "keep them whole",
            "float": "allow decimals",
            "totals": "keep them whole, and keep totals",
        },
    )
    decimals: str = described(
        "fit",
        """Decimals of other means. ``fit`` allows at most one decimal more than the column has;
        ``all`` keeps all digits, as do columns of sum rules.""",
        "--decimals",
        panel=OUTPUT,
        label="Decimals",
        stored=(str,),
        choices={
            "fit": "at most one more than in the column",
            "all": "all digits",
        },
    )
    aggregate: str = described(
        "mean",
        "Value of a group. A medoid has the values of a real record.",
        "--aggregate",
        panel=METHOD,
        label="Value of a group",
        stored=(str,),
        choices=AGGREGATES,
    )
    refine: int | None = described(
        0,
        """Refinement steps per record. A last pass moves records between groups to reduce the loss of the released
        values, such as modes and medians. 50 steps take a few seconds for 30,000 records.""",
        "--refine",
        panel=METHOD,
        label="Refinement steps per record",
        typed=int,
        stored=(int, NoneType),
    )
    block: int | None = described(
        None,
        """Largest block, in records; 0 for no blocks. By default, methods for several columns use blocks of about
        10,000 records for tables with more than 100,000 records in a stratum.""",
        "--block",
        panel=LARGE,
        label="Block size",
        typed=int,
        stored=(int, NoneType),
    )
    split: str | None = described(
        None,
        f"""Cut of blocks. ``all`` splits all columns at once (a
        2^d-tree), ``one`` a column at a time; ``univariate`` uses equal intervals of one column, ``sorted`` its order,
        with as many records per block as {parameter("block")}. By default ``one``; with fast methods and up to 5
        columns, shoal tries ``one`` and ``all`` on a sample and keeps the better.""",
        "--split",
        panel=LARGE,
        label="Cut of blocks",
        choices=SPLITS,
    )
    block_by: Sequence[Name] | Name | None = described(
        None,
        f"""Columns along which blocks are cut. By default all masked columns of numbers, or the first one if
        {parameter("split")} uses one column. With ``all`` and ``one``, records that are equal in these columns are cut
        along the others.""",
        "--block-by",
        panel=LARGE,
        label="Columns that blocks are cut along",
        typed=list,
        stored=(list, NoneType),
    )
    engine: str | None = described(
        None,
        f"""Where the table is masked. By default, the size of the file decides between
        ``memory`` and ``local``. ``local`` masks a table on disk with processes of this machine: CSV or Parquet, as a
        file, a folder or a glob, to the file in {parameter("output")}. ``dask`` masks CSV or Parquet files on a
        cluster, ``spark`` Parquet files, to a Parquet data set (a folder); both accept addresses (``s3://…``).""",
        "--engine",
        panel=LARGE,
        label="Engine",
        choices=ENGINES,
    )
    memory: str | int | None = described(
        None,
        """Memory limit of engine ``local``, such as ``2GB``. It covers all processes, including the calling one and the
        memory it already holds. Default: half of the free memory. The summary shows the peaks.""",
        "--memory",
        panel=LARGE,
        metavar="SIZE",
        label="Memory",
        stored=(str, int, NoneType),
    )
    processes: int | None = described(
        None,
        "Worker processes of engine ``local``. Default: one per processor.",
        "--processes",
        panel=LARGE,
        label="Processes",
        typed=int,
        stored=(int, NoneType),
    )
    scheduler: str | None = described(
        None,
        "Address of the Dask cluster. Default: the current client, or this process.",
        "--scheduler",
        panel=LARGE,
        metavar="ADDRESS",
        label="Scheduler",
        stored=(),
    )
    master: str | None = described(
        None,
        """Spark master, such as ``yarn``. Another example is ``local-cluster[2,1,1024]``. Default: the active session,
        or the master in Spark's settings.""",
        "--master",
        metavar="MASTER",
        panel=LARGE,
        label="Master",
        stored=(),
    )
    shuffle: bool | int | None = described(
        False,
        "Release records in random order. The randomness comes from the operating system.",
        "--shuffle",
        panel=OUTPUT,
        label="Release in random order",
        python="A number makes the order repeatable.",
        typed=bool,
        stored=(bool, int, NoneType),
    )
    effort: str | None = described(
        None,
        f"""Search effort (default: good). It applies to method ``{AUTO}``, and to every
        method with {parameter("diversity")}, {parameter("closeness")} or {parameter("unit")}. ``best`` takes at least
        five times as long as ``good``.""",
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
        "File for the masked table. It is written completely or not at all.",
        "-o",
        "--output",
        panel=ESSENTIALS,
        label="Released file",
        typed=Path,
        stored=(),
    )
    labels: str | os.PathLike[str] | None = described(
        None,
        f"""File for the group of each record. It holds the row number of each released record in the original, its
        group and the size of the group, and undoes {parameter("shuffle")}: do not release it.""",
        "--labels",
        panel=OUTPUT,
        label="Labels file",
        typed=Path,
        stored=(),
    )
    reading: ReadingOptions = described_by(ReadingOptions)
    escape_formulas: bool | None = described(
        False,
        """Put an apostrophe before possible formulas in a CSV file. These are cells of text and column names that begin
        with =, +, - or @ and are not numbers; a spreadsheet would run them.""",
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
        self._apply_roles()
        for name in LISTS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_names(getattr(self, name)))
        if self.kinds is not None:
            from shoal.kinds.kind_registry import read_kinds

            if not isinstance(self.kinds, Mapping):
                raise InputError(
                    f"{parameter('kinds')} must map column names to kinds, such as "
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
        if self.columns is not None:  # otherwise sensitive columns may still be proposed
            check_promises(self)
        for name in self.promises.keys() - PROMISES.keys():
            raise InputError(f"Promise {name!r} is not registered.{closest(name, PROMISES)}")
        promises = {name: read_promise(name, self.promises[name]) for name in PROMISES if name in self.promises}
        object.__setattr__(self, "promises", promises)

    def _apply_roles(self) -> None:
        if self.roles is not None:
            from shoal.roles.requested_roles import apply_roles

            apply_roles(self)

    @staticmethod
    def parameters() -> tuple[Field[Any], ...]:
        """Return the declarations of all parameters in order, including the parameters of promises."""
        return parameters_of(MaskRequest)

    def models(self) -> list[tuple[int, GroupPromise]]:
        """Return the promises on sensitive columns, each with the index of its column."""
        names, placed = list(self.confidential or ()), list[tuple[int, Any]]()
        for promise_name, promise in self.promises.items():
            if not isinstance(promise, Mapping):
                placed += [(place, promise) for place in range(len(names))]
                continue
            for name in promise:
                if name not in names:
                    raise InputError(
                        f"{parameter(promise_name)} names column {name!r}, which is not a sensitive column."
                        f"{closest(name, names)} Name it in {parameter('confidential')} too."
                    )
            placed += [(names.index(name), one) for name, one in promise.items()]
        return placed

    def searches(self, entry: Method) -> bool:
        """Return True if the effort matters, for the method itself or for the search that promises or units require."""
        return self.unit is not None or bool(self.promises) or entry.takes("effort")

    def settled(self, columns: Sequence[Name], nominal: Sequence[Name] = ()) -> MaskRequest:
        """Return the request with the method for these compared columns and with all options of that method.

        `nominal` holds the compared columns whose values have no order. A method treats each of their values as a
        separate column.
        """
        entry = choose(self.method, len(columns) + len(nominal))
        check_method(self, entry, columns, nominal)
        options = options_for(entry, self.method, self.options)
        if entry.takes("effort") and self.effort is not None:
            options = {**options, "effort": self.effort}
        effort = self.effort if self.searches(entry) else None  # the effort does not apply to exact methods
        settled = copy(self)  # the parameters have been checked already
        vars(settled).update(method=entry, entry=entry, options=entry.read_options(options), effort=effort)
        return settled

    @cached_property
    def entry(self) -> Method:
        """The requested method; in a settled request, the method that runs."""
        return find(self.method)

    @property
    def title(self) -> str:
        """The name of the method."""
        return self.entry.name

    @property
    def own(self) -> bool:
        """True if the method is a user's function."""
        return self.entry.by_user

    def notes(self) -> list[str]:
        """Return notes on the request for readers of the release."""
        notes = []
        if self.own:
            notes.append(f"method {self.title} is a user's function: shoal alone cannot repeat this run")
        if self.refine:
            step = setting("refine", self.refine)
            notes.append(f"the groups were refined to lower the released loss ({step})")
        return notes

    def plain_kinds(self) -> dict[Name, Any] | None:
        """Return the kinds as plain values."""
        return None if self.kinds is None else {name: kind.plain() for name, kind in self.kinds.items()}

    @cached_property
    def writes_csv(self) -> bool:
        """True if the output is a CSV file."""
        from shoal.tables.files import is_csv

        return self.output is not None and is_csv(self.output)

    @cached_property
    def shuffled(self) -> bool:
        """True if the records are released in random order; a `shuffle` of 0 is a seed."""
        return self.shuffle is not None and self.shuffle is not False

    @cached_property
    def accepted_share(self) -> float:
        """The largest share of suppressed records, and of cells made missing."""
        return read_share("max_left_out", self.max_left_out)

    @property
    def steps(self) -> float:
        """The search effort for promises, as a multiple of the default."""
        return EFFORTS[self.effort or "good"] / EFFORTS["good"]

    @property
    def rescales(self) -> bool:
        """True if any column is compared on a scale other than its own."""
        scales = self.scale.values() if isinstance(self.scale, Mapping) else (self.scale or "linear",)
        return any(scale != "linear" for scale in scales)

    @cached_property
    def whole(self) -> bool:
        """True if the released values of whole-number columns are rounded."""
        return self.integers != "float"

    @property
    def weight_vector(self) -> np.ndarray[Any, Any] | None:
        """The weights if they are a vector instead of a column name; else None."""
        import numpy as np

        is_vector = self.weights is not None and not isinstance(self.weights, (str, int))
        if not is_vector:
            return None
        masked = isinstance(self.weights, np.ma.MaskedArray)
        return np.asarray(plain_array(self.weights) if masked else self.weights, dtype=np.float64)

    @cached_property
    def numbers(self) -> list[Name]:
        """The named columns to mask, and the weight column."""
        return [*(self.columns or ()), *([self.weights] if isinstance(self.weights, str) else [])]

    @property
    def takes_names(self) -> bool:
        """True if the request needs the column names of the table, for name patterns or for a roles file."""
        names = [name for role in NAMING for name in getattr(self, role) or ()]
        return self.roles is not None or any(isinstance(name, str) and not SIGNS.isdisjoint(name) for name in names)

    @cached_property
    def codes(self) -> Codes:
        """The codes for missing values per column."""
        return self.missing_codes or {}

    def recorded(self, columns: Sequence[Name], **engine: Any) -> dict[str, Any]:
        """Return all parameters that determine the result, as plain values for the release and its manifest."""
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
            "scale": dict(self.scale) if isinstance(self.scale, Mapping) else self.scale,
            "missing_codes": {name: list(codes) for name, codes in self.codes.items()} or None,
            "weights": _recorded(self.weights, "a vector"),
            "block": None if self.block is None else int(self.block),
            **engine,
        }

    def command(self, source: str, output: str, roles: str | None = None) -> str:
        """Return the command line of the request; a roles file `roles` replaces the options for column roles.

        Examples
        --------
        >>> MaskRequest(k=5, columns=["sales"], by="region", seed=7).command("in.csv", "out.csv", "roles.toml")
        'shoal mask in.csv -k 5 --roles roles.toml --seed 7 -o out.csv'
        """
        from shoal.masking.manifest import as_command
        from shoal.roles.column_roles import as_parameters

        recorded = self.recorded(self.columns or ())
        return as_command(
            recorded if roles is None else {**recorded, **as_parameters({}), "roles": roles}, source, output
        )


OBJECT = "given as "  # prefix for objects that a command or a manifest cannot hold, such as a spanning tree


def _recorded(value: object, name: str | None = None) -> object:
    return value if isinstance(value, (str, Number, NoneType)) else f"{OBJECT}{name or type(value).__name__}"


def not_recorded(recorded: Mapping[str, Any]) -> list[str]:
    """Return the parameters and options whose values are objects; `MaskRequest.recorded` holds only their type."""
    values = {**recorded["options"], "weights": recorded.get("weights")}
    return [name for name, value in values.items() if isinstance(value, str) and value.startswith(OBJECT)]


def parameters() -> tuple[Field[Any], ...]:
    """Return the declarations of all parameters in order."""
    return MaskRequest.parameters()
