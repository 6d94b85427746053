"""All that can be asked of a masking, in one place: every parameter, its default, its rule and its help.

`shoal.mask`, the command line, the estimator and manifests make a `MaskRequest` and nobody else lists the parameters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from numbers import Number
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from shoal.algorithms.registry import ALL_METHODS, AUTO, EFFORTS, Method, choose, find, options_for
from shoal.core.checks import as_names, check_choice, check_size, plain_array
from shoal.core.errors import InputError, closest
from shoal.masking.request_rules import check_method, check_together
from shoal.models.column_models import PROMISES, plain_promise, read_promise

if TYPE_CHECKING:
    import numpy as np

    from shoal.models.model import Model
    from shoal.tables.codes import Codes
    from shoal.tables.columns import Name

__all__ = [
    "AGGREGATES",
    "CSV",
    "EFFORTS",
    "ENGINES",
    "INTEGERS",
    "MISSING",
    "SPLITS",
    "MaskRequest",
    "not_recorded",
    "parameters",
]

MISSING = ("error", "group", "drop")
SMALL = ("error", "suppress", "merge")
INTEGERS = ("float", "round", "totals")
AGGREGATES = ("mean", "median", "medoid")
SPLITS = ("all", "one", "univariate", "sorted")
ENGINES = ("memory", "local", "dask", "spark")
CSV = ("delimiter", "encoding", "decimal", "thousands")
TEXT = (str, NoneType)


def _ask(default: Any, text: str, *flags: str, stored: tuple[type, ...] = TEXT, choices: Sequence[str] = ()) -> Any:
    """Describe a parameter.

    Parameters
    ----------
    default, text, flags
        Its default, its help and its flags on the command line.
    stored
        The types that it may have in a manifest; none for what a manifest does not decide.
    choices
        The words that it may be.
    """
    told = {"help": " ".join(text.split()), "flags": flags, "stored": stored, "choices": choices}
    return field(default=default, metadata=told)


@dataclass(frozen=True)
class MaskRequest:
    """What is asked of a masking; refused when it is made if a parameter breaks its rule.

    Examples
    --------
    >>> MaskRequest(k=5, columns=["sales"], by="region").k
    5
    """

    k: int = _ask(None, "The least number of records in a group, at least 2.", "-k", stored=(int,))
    columns: Sequence[Name] | Name | None = _ask(
        None,
        "The columns to mask; all numeric ones but those in `by` and `weights` if not given.",
        "-c",
        "--column",
        stored=(list,),
    )
    method: str | Callable[..., Any] | Method = _ask(
        AUTO,
        f"""``{AUTO}`` takes the optimum for one column, and for several MDAV, which it improves as long as `effort`
        says. All of them, told by `shoal.methods`: {", ".join(ALL_METHODS)}.
        In Python also a function ``f(X, k)`` that returns the group of each record.""",
        "-m",
        "--method",
        stored=(str,),
    )
    kinds: Mapping[Name, Any] | None = _ask(
        None,
        """What columns hold that are no numbers, or numbers that are codes: ``shoal.Nominal()``,
        ``shoal.Ordinal([…])``, ``shoal.Hierarchy("zip.csv")``; of text that is dates or times ``shoal.Date()``, or
        ``shoal.Date("%d.%m.%Y")``; of a latitude and a longitude together ``shoal.Place()``. If not given, text and
        Booleans are nominal, ordered categories ordinal.""",
        stored=(dict, NoneType),
    )
    distance: Sequence[Name] | Name | None = _ask(
        None,
        "The columns that decide which records are alike; all that are masked if not given. All of them are replaced.",
        "--distance",
        stored=(list, NoneType),
    )
    importance: Mapping[Name, float] | None = _ask(
        None,
        'How much columns count when records are compared, such as ``{"age": 2.0}``; 1 where not given.',
        stored=(dict, NoneType),
    )
    by: Sequence[Name] | Name | None = _ask(
        None, "Columns that split the table into strata: groups never cross them.", "--by", stored=(list,)
    )
    identifiers: Sequence[Name] | Name | None = _ask(
        None, "Columns that name somebody: they are not in the release.", "--drop", stored=(list, NoneType)
    )
    keep: Sequence[Name] | Name | None = _ask(
        None,
        "Columns that look like identifiers and stay in the release all the same: no warning is given of them.",
        "--keep",
        stored=(list, NoneType),
    )
    unit: Name | None = _ask(
        None,
        """The column that says whose records they are, such as a person or a household: k then counts different
        units, so that no group holds the records of fewer.""",
        "--unit",
    )
    confidential: Sequence[Name] | Name | None = _ask(
        None,
        """Columns that are released as they are and that nobody should learn of anybody: how diverse they are in every
        group, and how close to the table, is measured in the release. A missing value counts as one of its own.""",
        "--confidential",
        stored=(list, NoneType),
    )
    diversity: Any = _ask(
        None,
        """l-diversity of the `confidential` columns: at least so many different values in every group. Also
        ``entropy:3`` (an entropy of log 3), ``recursive:3:2`` (l, then c); in Python ``shoal.Diversity(3, "entropy")``.
        For each column on its own a mapping, or ``COLUMN=3,COLUMN=entropy:2``.""",
        "--diversity",
        stored=(str, dict, NoneType),
    )
    closeness: Any = _ask(
        None,
        """t-closeness of the `confidential` columns: the values of every group are distributed as in the whole released
        table, up to an earth mover's distance of this much, from 0 to 1; in ranks for numbers, dates and ordinal
        columns, the total variation for others. For each column on its own a mapping, or ``COLUMN=0.2,COLUMN=0.3``.""",
        "--closeness",
        stored=(str, dict, NoneType),
    )
    weights: Name | Sequence[float] | np.ndarray[Any, Any] | None = _ask(
        None,
        """Weights of the records, as a column's name or (in Python) a vector: the group's value is then the weighted
        mean, so that weighted totals are kept. k counts records all the same.""",
        "--weights",
    )
    missing: str = _ask(
        "error",
        """What to do with records that miss a value in a masked column: ``error`` refuses them, ``group`` masks them
        among records that miss the same columns, ``drop`` leaves them out of the release.""",
        "--missing",
        stored=(str,),
        choices=MISSING,
    )
    missing_codes: Mapping[Name, Any] | None = _ask(
        None,
        """Numbers or texts that stand for missing in masked columns, such as ``{"income": [-9, 99]}``: `missing`
        applies to their cells. In other columns they stay as they are.""",
        stored=(dict, NoneType),
    )
    small: str = _ask(
        "error",
        """What to do with strata, and within them with records that miss, or are zero in (`zeros`), the same columns,
        if they are fewer than k: ``error`` refuses and lists them, ``suppress`` leaves their records out of the
        release, ``merge`` joins strata to the nearest, which then read "a or b" (or the common ancestor, if the
        column has a hierarchy), and rare patterns of missing columns to others, whose records then miss what either
        misses.""",
        "--small",
        stored=(str, NoneType),
        choices=SMALL,
    )
    zeros: Sequence[Name] | Name | None = _ask(
        None,
        """Masked columns of numbers whose zeros are kept: a record that is zero stays zero, and is grouped with records
        that are zero in the same of these columns.""",
        "--keep-zeros",
        stored=(list, NoneType),
    )
    sums: Sequence[str] | str | None = _ask(
        None,
        """Rules such as ``total = wages + capital`` that masked columns obey, and do in the release; also with minus.
        Names with blanks or signs stand in backticks or quotes.""",
        "--sum",
        stored=(list, NoneType),
    )
    integers: str = _ask(
        "float",
        """``float`` releases means of columns of whole numbers as they are, ``round`` keeps them whole, ``totals`` too
        and rounds up or down so that the total of each column is kept, in every stratum and block.""",
        "--integers",
        stored=(str,),
        choices=INTEGERS,
    )
    aggregate: str = _ask(
        "mean",
        "The value that stands for a group: ``mean``, ``median`` or ``medoid`` (a real record's values).",
        "--aggregate",
        stored=(str,),
        choices=AGGREGATES,
    )
    refine: int | None = _ask(
        0,
        """Steps a record of a last pass that moves records between groups to lower the loss of what is released, the
        mode or median of categories instead of the mean: 50 take a few seconds for 30,000 records.""",
        "--refine",
        stored=(int, NoneType),
    )
    block: int | None = _ask(
        None,
        """Mask the table in blocks of about this many records at most; 0 for none. If not given, tables with more than
        100,000 records in a stratum are masked in blocks of 10,000 by methods that take several columns.""",
        "--block",
        stored=(int, NoneType),
    )
    split: str | None = _ask(
        None,
        """How blocks are cut: ``all`` columns at once (a 2^d-tree), ``one`` at a time, ``univariate`` (equal intervals
        of one column) or ``sorted`` (in the order of one column, every `block` records). If not given, ``one``,
        but ``all`` for up to 5 columns if the method is not a search, or the other of them if a sample of the records
        loses less by it.""",
        "--split",
        choices=SPLITS,
    )
    block_by: Sequence[Name] | Name | None = _ask(
        None,
        """The masked columns of numbers that blocks are cut along; all if not given, the first where `split` takes one
        column. With ``all`` and ``one``, records that are alike in them are cut along the other columns.""",
        "--block-by",
        stored=(list, NoneType),
    )
    engine: str | None = _ask(
        None,
        """``memory``, or ``local`` for a table that stays on disk: CSV or Parquet, as a file, a folder or a glob, to
        the file `output`, by processes of this machine. Chosen by the size of the file if not given. On a cluster
        ``dask`` masks CSV or Parquet files, and ``spark`` Parquet files, to a Parquet data set, which is a folder; both
        may be at addresses (``s3://…``).""",
        "--engine",
        choices=ENGINES,
    )
    memory: str | int | None = _ask(
        None,
        """The memory that engine ``local`` may take, all its processes together, such as ``2GB``; half of what is free
        if not given. The calling process is one of them, with what it held before. The summary tells the peaks.""",
        "--memory",
        stored=(str, int, NoneType),
    )
    processes: int | None = _ask(
        None,
        "How many worker processes engine ``local`` has; one a processor if not given.",
        "--processes",
        stored=(int, NoneType),
    )
    scheduler: str | None = _ask(
        None,
        "The address of the cluster for engine ``dask``; the current client, or this process, if not given.",
        "--scheduler",
        stored=(),
    )
    master: str | None = _ask(
        None,
        """Where engine ``spark`` runs, such as ``yarn`` or ``local-cluster[2,1,1024]``; the active session, or one that
        Spark's own settings decide, if not given.""",
        "--master",
        stored=(),
    )
    shuffle: bool | int | None = _ask(
        False,
        """Release the records in random order, by the randomness of the operating system; in Python a number makes the
        order repeatable.""",
        "--shuffle",
        stored=(bool, int, NoneType),
    )
    effort: str | None = _ask(
        None,
        f"""How long groups are searched for by method ``{AUTO}``, and by any method to keep `diversity`, `closeness` or
        k units: ``fast``, ``good`` (if not given) or ``best``, which takes at least five times as long.""",
        "--effort",
        choices=tuple(EFFORTS),
    )
    seed: int | None = _ask(0, "Decides the result of a random method.", "--seed", stored=(int, NoneType))
    output: str | os.PathLike[str] | None = _ask(
        None, "Write the masked table to this file, as a whole or not at all.", "-o", "--output", stored=()
    )
    labels: str | os.PathLike[str] | None = _ask(
        None,
        """Write the row number of each released record in the given table, its group and the size of the group to this
        file. Whoever has it can undo `shuffle`.""",
        "--labels",
        stored=(),
    )
    delimiter: str | None = _ask(
        None, "The delimiter of a CSV file, or ``tab``; found out if not given.", "--delimiter"
    )
    encoding: str | None = _ask(None, "The encoding of a CSV file; found out if not given.", "--encoding")
    decimal: str | None = _ask(None, "The decimal sign of a CSV file; found out if not given.", "--decimal")
    thousands: str | None = _ask(
        None, "The sign between thousands in a CSV file, as the point in 90.000,50; none if not given.", "--thousands"
    )
    escape_formulas: bool | None = _ask(
        False,
        """Put an apostrophe before cells of text and column names in a CSV file that a spreadsheet would run as
        formulas: those that begin with =, +, - or @ and are not numbers.""",
        "--escape-formulas",
        stored=(bool, NoneType),
    )
    progress: bool = _ask(False, "Show a progress bar on a terminal.", stored=())
    options: Mapping[str, Any] = field(
        default_factory=dict,
        metadata={"help": "Options of the method.", "flags": (), "stored": (dict,), "choices": ()},
    )

    def __post_init__(self) -> None:
        check_size(self.k)
        if self.kinds is not None:
            from shoal.kinds.registry import read_kinds

            if not isinstance(self.kinds, Mapping):
                raise InputError(
                    "Parameter 'kinds' must map names of columns to their kinds, such as {'job': shoal.Nominal()}, got "
                    f"{self.kinds!r}."
                )

            object.__setattr__(self, "kinds", read_kinds(self.kinds))
        if self.missing_codes is not None:
            from shoal.tables.codes import read_codes

            object.__setattr__(self, "missing_codes", read_codes(self.missing_codes))
        find(self.method).read_options(self.options)
        for item in parameters():
            value = getattr(self, item.name)
            if item.metadata["choices"] and not (value is None and item.default is None):
                check_choice(item.name, value, item.metadata["choices"])
        check_together(self)
        self._read_models()

    def _read_models(self) -> None:
        """Make models of what was given: of all confidential columns, or a mapping of some."""
        for name in PROMISES:
            given = getattr(self, name)
            if given is None:
                continue
            if self.confidential is None:
                raise InputError(
                    f"Parameter {name!r} is a promise about confidential columns, but 'confidential' names none. Name "
                    "them in 'confidential'."
                )
            object.__setattr__(self, name, read_promise(name, given))

    def models(self) -> list[tuple[int, Model]]:
        """Return what is promised of confidential columns, each promise with the place of its column."""
        names, found = as_names(self.confidential), list[tuple[int, Any]]()
        for parameter in PROMISES:
            given = getattr(self, parameter)
            if isinstance(given, Mapping):
                for name in given:
                    if name not in names:
                        raise InputError(
                            f"Parameter {parameter!r} names column {name!r}, which is not confidential."
                            f"{closest(name, names)} Name it in 'confidential' too."
                        )
                found += [(names.index(name), model) for name, model in given.items()]
            elif given is not None:
                found += [(place, given) for place in range(len(names))]
        return found

    def searches(self, entry: Method) -> bool:
        """Whether it takes an effort to find what is asked for: by the method, or after it to keep a promise."""
        promised = self.unit is not None or any(getattr(self, name) is not None for name in PROMISES)
        return promised or entry.takes("effort")

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
        return replace(self, method=entry, options=entry.read_options(options), effort=effort)

    @cached_property
    def entry(self) -> Method:
        """The method, once the request is settled."""
        return find(self.method)

    @property
    def title(self) -> str:
        """The name of the method."""
        return find(self.method).name

    @property
    def own(self) -> bool:
        """Whether the method is a user's function."""
        return find(self.method).by_user

    def notes(self) -> list[str]:
        """Return what a reader of the release must know about the request."""
        told = f"method {self.title} is a function of the user: shoal alone cannot repeat this run"
        moved = f"records were moved between groups to lower the loss of what is released (refine={self.refine})"
        return [*([told] if self.own else []), *([moved] if self.refine else [])]

    def plain_kinds(self) -> dict[Name, Any] | None:
        """Return the kinds as plain values."""
        return None if self.kinds is None else {name: kind.plain() for name, kind in self.kinds.items()}

    @property
    def writes_csv(self) -> bool:
        """Whether a CSV file is written."""
        from shoal.tables.files import CSV as ENDINGS

        return self.output is not None and Path(self.output).suffix.lower() in ENDINGS

    @property
    def shuffled(self) -> bool:
        """Whether the records are put in random order; 0 is a seed."""
        return self.shuffle is not None and self.shuffle is not False

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

        given = self.weights is not None and not isinstance(self.weights, (str, int))
        if not given:
            return None
        masked = isinstance(self.weights, np.ma.MaskedArray)
        return np.asarray(plain_array(self.weights) if masked else self.weights, dtype=np.float64)

    @property
    def numbers(self) -> list[Name]:
        """The columns that are named to be masked, and the column of weights."""
        return [*as_names(self.columns), *([self.weights] if isinstance(self.weights, str) else [])]

    @property
    def codes(self) -> Codes:
        """The codes for missing, by column."""
        return self.missing_codes or {}

    @property
    def csv(self) -> dict[str, str | None]:
        """How a CSV file is written."""
        return {name: getattr(self, name) for name in CSV}

    def recorded(self, columns: Sequence[Name], **engine: Any) -> dict[str, Any]:
        """Return all that decided a result, as plain values: what a release says that it was asked for."""
        return {
            **{item.name: getattr(self, item.name) for item in parameters() if item.metadata["stored"]},
            "k": int(self.k),
            "columns": list(columns),
            "method": self.entry.name,
            "options": {name: _recorded(value) for name, value in self.options.items()},
            "kinds": self.plain_kinds(),
            **{name: as_names(getattr(self, name)) for name in ("by", "identifiers", "keep", "zeros", "sums")},
            "confidential": None if self.confidential is None else as_names(self.confidential),
            **{name: plain_promise(getattr(self, name)) for name in PROMISES},
            "distance": None if self.distance is None else as_names(self.distance),
            "importance": None if self.importance is None else dict(self.importance),
            "missing_codes": {name: list(codes) for name, codes in self.codes.items()} or None,
            "weights": _recorded(self.weights, "a vector"),
            "block": None if self.block is None else int(self.block),
            "block_by": None if self.block_by is None else as_names(self.block_by),
            **engine,
        }


GIVEN = "given as "  # an object that no command and no manifest holds: labels, a spanning tree, what a function takes


def _recorded(value: object, name: str | None = None) -> object:
    return value if isinstance(value, (str, Number, NoneType)) else f"{GIVEN}{name or type(value).__name__}"


def not_recorded(asked: Mapping[str, Any]) -> list[str]:
    """Return the parameters and options whose values were objects that `MaskRequest.recorded` only names."""
    told = {**asked["options"], "weights": asked.get("weights")}
    return [name for name, value in told.items() if isinstance(value, str) and value.startswith(GIVEN)]


def parameters() -> tuple[Field[Any], ...]:
    """Return the description of every parameter, in order."""
    return fields(MaskRequest)
