"""The registry of methods, the single list that the library, the command line, the docs and the tests read.

A method is a function ``f(X, k, *, state, **options)`` that returns labels; each method has its own file. It receives a
C-contiguous float64 array ``(n, d)`` with ``n >= k`` and does not validate it. It counts finished records in ``state``
and returns early on request (`shoal.core.progress`). Modules are imported on first use, which keeps reading the list
cheap. User functions are not listed; `find` creates entries for them (`shoal.algorithms.user_function`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from importlib import import_module
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Literal

from shoal.core.errors import InputError, closest
from shoal.core.messages import option, parameter
from shoal.core.progress import fresh_state

if TYPE_CHECKING:
    from shoal.core.types import Floats, Ints, State

__all__ = [
    "ALL_METHODS",
    "AUTO",
    "CONFIDENTIAL_METHODS",
    "EFFORTS",
    "METHODS",
    "REQUIRED",
    "SEARCH_SECONDS",
    "Growth",
    "Listing",
    "Method",
    "Option",
    "Outcome",
    "SharedWork",
    "choose",
    "find",
    "methods",
    "options_for",
]

REQUIRED = Parameter.empty  # the default of a required option

SEARCH_SECONDS = 60.0  # the default time limit of an anytime method
AUTO = "auto"  # the default method; the optimum for one column
EFFORTS = {"fast": 5, "good": 20, "best": 100}  # annealing steps per record


class Growth(IntEnum):
    """The worst-case power of n in the run time of a method, ignoring logarithms."""

    LINEAR = 1
    QUADRATIC = 2
    CUBIC = 3


@dataclass(frozen=True)
class Option:
    """A keyword option of a method: its name, type, default, limits and help text."""

    name: str
    type: type
    default: object
    help: str
    choices: tuple[object, ...] = ()
    minimum: float | None = None
    also: str = ""  # description of another kind of accepted object, which the method checks

    @property
    def scalar(self) -> bool:
        """Return True if the option can be set on the command line."""
        return self.type in (int, float, bool, str)

    def read(self, value: object, method: str) -> Any:
        """Check a value, convert it to the option's type and return it.

        Examples
        --------
        >>> Option("gamma", float, None, "gain factor", minimum=0).read("0.2", "v-mdav")
        0.2
        """
        if value is REQUIRED:
            raise InputError(f"{option(self.name)} of method {method!r} is required.")
        if value is None or value is self.default:
            return value
        if self.also and not isinstance(value, str):
            return value
        if self.scalar:
            value = self._scalar(value, method)
        if self.choices and value not in self.choices:
            also = f", or {self.also}" if self.also else ""
            raise self._error(method, f"one of {', '.join(map(str, self.choices))}{also}", value)
        if self.minimum is not None and not value >= self.minimum:  # type: ignore[operator]
            raise self._error(method, f"at least {self.minimum:g}", value)
        return value

    def _scalar(self, value: object, method: str) -> object:
        if self.type is bool and not isinstance(value, bool):
            words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
            if str(value).lower() not in words:
                raise self._error(method, "true or false", value)
            return words[str(value).lower()]
        try:
            return self.type(value)
        except (TypeError, ValueError, OverflowError):
            raise self._error(method, f"of type {self.type.__name__}", value) from None

    def _error(self, method: str, rule: str, value: object) -> InputError:
        return InputError(f"{option(self.name)} of method {method!r} must be {rule}, got {value!r}.")


@dataclass(frozen=True)
class Outcome:
    """The result of a method: the labels, a lower bound if one was proven, and facts for the summary."""

    labels: Ints  # the group of each record; ``(n, d)`` for a method that groups columns separately
    bound: float | None = None  # a proven lower bound on the SSE of any partition of these records
    status: Literal["optimal", "bounded", "heuristic"] = "heuristic"
    # Settings and choices of the method, for the summary.
    facts: Mapping[str, object] = field(default_factory=dict)
    certificate: Any = None  # input for an independent check of the bound


@dataclass(frozen=True)
class SharedWork:
    """Preparation of the records that does not depend on k, so several runs can share it."""

    option: str  # the option that receives the result
    function: str  # computes the result from the records; ``"module:function"`` as in `Method`

    def load(self) -> Callable[..., Any]:
        """Import the function that computes the shared result."""
        return _load(self.function)


@dataclass(frozen=True)
class Method:
    """A registered method: its name, function, options and properties."""

    name: str  # as users type it
    # One line each: action, origin, cost in n, d and k.
    summary: str
    paper: str
    cost: str
    # ``"module:function"`` below `shoal.algorithms` (or a full dotted path), or a user's function.
    function: str | Callable[..., Any]
    # ``"fixed"`` if groups have k records, apart from a remainder, else ``"variable"``.
    sizes: Literal["fixed", "variable"] = "variable"
    univariate: bool = False  # true if it groups one column only
    below_2k: bool = True  # true if every group has fewer than 2k records
    options: tuple[Option, ...] = ()  # keywords of the function
    random: bool = False  # true if it accepts a ``seed``
    whole_records: bool = True  # false if it groups columns separately, which is not k-anonymous
    # True if a run has a result at any time; Ctrl-C then ends the run with the best partition found so far.
    anytime: bool = False
    growth: Growth = Growth.QUADRATIC  # growth of the run time with n
    # The names of the options that limit the seconds and the steps of a run. A method with a time option checks the
    # clock, so its result depends on the machine unless the number of steps is limited.
    time_option: str | None = None
    steps_option: str | None = None
    shared: SharedWork | None = None  # work that runs with different k can share
    confidential: bool = False  # true if it also groups by sensitive columns, which only `mask` provides

    @property
    def by_user(self) -> bool:
        """Return True if the method is a user's function."""
        return callable(self.function)

    def takes(self, option: str) -> bool:
        """Return True if the method has an option of this name."""
        return any(candidate.name == option for candidate in self.options)

    def load(self) -> Callable[..., Any]:
        """Import the method's function."""
        return self.function if callable(self.function) else _load(self.function)

    def seconds(self, options: Mapping[str, Any]) -> float | None:
        """Return the time limit of a run in seconds, or None if the method enforces no limit."""
        if self.time_option is None:
            return None
        limit: float | None = options.get(self.time_option)
        if limit is None and self.anytime and self.steps(options) is None:
            return SEARCH_SECONDS
        return limit

    def steps(self, options: Mapping[str, Any]) -> int | None:
        """Return the maximum number of steps of a run, or None if there is no limit."""
        return None if self.steps_option is None else options.get(self.steps_option)

    def repeatable(self, options: Mapping[str, Any]) -> bool:
        """Return True if runs with these options and the same seed are identical, byte for byte, on any machine.

        Examples
        --------
        >>> search = find("search")
        >>> search.repeatable({"time_limit": 60.0, "steps": None}), search.repeatable({"steps": 1000})
        (False, True)
        """
        return not self.by_user and (self.time_option is None or self.steps(options) is not None)

    def read_options(self, options: Mapping[str, object]) -> dict[str, Any]:
        """Validate the given options and add defaults for the others."""
        available = {option.name: option for option in self.options}
        for name in options:
            if name not in available:
                has = f"its options are {', '.join(available)}" if available else "it has none"
                raise InputError(f"Method {self.name!r} has no option {name!r}; {has}.{closest(name, available)}")
        return {name: option.read(options.get(name, option.default), self.name) for name, option in available.items()}

    def run(
        self,
        X: Floats,
        k: int,
        options: Mapping[str, object] | None = None,
        *,
        seed: int | None = None,
        state: State | None = None,
    ) -> Outcome:
        """Group the records; ``options`` must come from `read_options`."""
        if self.confidential:
            raise InputError(
                f"Method {self.name!r} also groups by a sensitive column, which only shoal.mask provides. Use "
                "shoal.mask, or another method."
            )
        keywords = dict(options or {})
        if self.random:
            keywords["seed"] = seed
        result = self.load()(X, k, state=fresh_state() if state is None else state, **keywords)
        return result if isinstance(result, Outcome) else Outcome(result)


def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(
        import_module(module if "." in module else f"shoal.algorithms.{module}"), name
    )
    return function


# The methods

_MST = Method(
    name="mst",
    summary="M: cut the minimum spanning tree, longest edges first",
    paper="Laszlo and Mukherjee 2005",
    cost="O(d n log n) in low dimensions, else O(d n²)",
    function="mst:mst",
    below_2k=False,
    options=(
        Option("tree", object, None, "the shoal.spanning_tree of the records, to reuse it for several k"),
        Option("spanning", str, "auto", "algorithm for the tree", choices=("auto", "boruvka", "prim")),
        Option(
            "metric",
            str,
            "euclidean",
            "distance between records in the tree; or a function of two records",
            choices=("euclidean", "manhattan"),
            also="a function of two records",
        ),
    ),
    shared=SharedWork("tree", "spanning_tree:spanning_tree"),
)

_ENTRIES = (
    Method(
        name=AUTO,
        summary="the default: the optimum for one column; MDAV improved by annealing for several",
        paper="shoal",
        cost="O(d n²/k), as mdav, and O(d n min(k, 10)²) for each step per record",
        function="auto:auto",
        options=(
            Option(
                "effort",
                str,
                None,
                "search effort: 5, 20 or 100 annealing steps per record, plus set partitioning with best "
                "(default: good)",
                choices=tuple(EFFORTS),
            ),
            Option("bound", bool, False, "prove a lower bound on the loss"),
            Option("threads", int, None, "threads for tables beyond 10000 records (default: all cores)", minimum=1),
        ),
        random=True,
    ),
    Method(
        name="univariate",
        summary="the optimum for one column: shortest path over the sorted values",
        paper="Hansen and Mukherjee 2003",
        cost="O(n log n)",
        growth=Growth.LINEAR,
        function="univariate:univariate",
        univariate=True,
    ),
    Method(
        name="fixed",
        summary="one column: k neighbours in sorted order, the remainder in the middle group",
        paper="Defays and Nanopoulos 1993",
        cost="O(n log n)",
        growth=Growth.LINEAR,
        function="fixed:fixed",
        sizes="fixed",
        univariate=True,
    ),
    Method(
        name="individual-ranking",
        summary="each column separately; NOT k-anonymous for whole records",
        paper="Defays and Nanopoulos 1993",
        cost="O(d n log n)",
        growth=Growth.LINEAR,
        function="individual_ranking:individual_ranking",
        options=(Option("ranking", str, "univariate", "method for each column", choices=("univariate", "fixed")),),
        whole_records=False,
    ),
    Method(
        name="mdav",
        summary="groups of k around the two extremes, from the outside in",
        paper="Domingo-Ferrer and Torra 2005",
        cost="O(d n²/k)",
        function="mdav:mdav",
        sizes="fixed",
        options=(
            Option(
                "threads",
                int,
                None,
                "threads for at least 50,000 records and 6 columns (default: all cores)",
                minimum=1,
            ),
        ),
    ),
    Method(
        name="v-mdav",
        summary="MDAV whose groups grow to 2k−1 where a neighbour is close",
        paper="Solanas and Martínez-Ballesté 2006",
        cost="O(d n²/k) for each γ",
        function="v_mdav:v_mdav",
        below_2k=False,
        options=(Option("gamma", float, None, "gain factor γ (default: the best of a small grid)", minimum=0.0),),
    ),
    Method(
        name="diameter",
        summary="D: two groups grow from the two most distant records, nearest to their centroid first",
        paper="Laszlo and Mukherjee 2005",
        cost="O(d n²) typically",
        function="diameter:diameter",
        sizes="fixed",
    ),
    Method(
        name="centroid",
        summary="C: a group grows from the record farthest from the centroid, nearest to its own centroid first",
        paper="Laszlo and Mukherjee 2005",
        cost="O(d n²)",
        function="centroid:centroid",
        sizes="fixed",
    ),
    Method(
        name="k-ward",
        summary="Ward's clustering that never joins two groups of k or more",
        paper="Domingo-Ferrer and Mateo-Sanz 2002",
        cost="O(d n²) typically",
        function="k_ward:k_ward",
    ),
    _MST,
    replace(_MST, name="mst-d", summary="M, then groups of 2k or more split by D", function="mst:mst_d", below_2k=True),
    replace(_MST, name="mst-c", summary="M, then groups of 2k or more split by C", function="mst:mst_c", below_2k=True),
    Method(
        name="projection",
        summary="order along an axis, then the optimum for that order",
        paper="Hansen and Mukherjee 2003",
        cost="O(n log n + k n d) per axis",
        growth=Growth.LINEAR,
        function="projection:projection",
        options=(
            Option(
                "order",
                str,
                "best",
                "the axis: first principal component, sum of z-scores, a column, or the best of these",
                choices=("best", "component", "scores", "column"),
            ),
            Option("column", int, 0, "the column of order='column', counted from 0", minimum=0),
        ),
    ),
    Method(
        name="path",
        summary="order along a short path through space, then the optimum for that order",
        paper="Domingo-Ferrer et al. 2006, Maya-López et al. 2021",
        cost="O(n log n + k n d) for the tour, at worst O(d n²) for other orders",
        function="path:path",
        options=(
            Option(
                "order",
                str,
                "tour",
                "the path: a travelling salesman's, nearest point next, maximum distance, or the best of these",
                choices=("tour", "nearest", "maximum", "best"),
            ),
        ),
    ),
    Method(
        name="two-swap",
        summary="swap records between the groups of another method while that lowers the loss",
        paper="Castro, Gentile and Spagnolo-Arrizabalaga 2022",
        cost="O(d n² + d n k · swaps)",
        function="two_swap:two_swap",
        below_2k=False,
        options=(
            Option(
                "start",
                str,
                "best",
                "the initial method, or labels; best: the better of mdav and v-mdav",
                choices=("best", "mdav", "v-mdav", "diameter", "centroid"),
                also="one label per record",
            ),
            Option(
                "variant",
                str,
                "steepest",
                "steepest: the best of all swaps; fast: the best near each record",
                choices=("steepest", "fast"),
            ),
        ),
    ),
    Method(
        name="decomposition",
        summary="two-swap, then column generation in subsets, then two-swap",
        paper="Castro, Gentile and Spagnolo-Arrizabalaga 2022",
        cost="O(d n²), and up to subset_limit for each subset, time_limit in total",
        function="shoal.algorithms.optimize.decomposition:decomposition",
        below_2k=False,
        options=(
            Option(
                "subsets",
                int,
                10,
                "maximum number of subsets, at least n/2500 above 5000 records; fewer lose less and take longer",
                minimum=1,
            ),
            Option("first_swap", bool, True, "improve the initial groups by swaps before dividing them (Step 3)"),
            Option("subset_limit", float, 60.0, "seconds per subset", minimum=0.0),
            Option("time_limit", float, None, "seconds for the whole run (default: no limit)", minimum=0.0),
        ),
        time_option="time_limit",
    ),
    Method(
        name="search",
        summary="the least loss found within a time limit; with a proven bound on request",
        paper="shoal",
        cost="O(n (d + k)) memory, O(n²) with bound up to 2000 records; time up to the limit",
        function="shoal.algorithms.optimize.search:search",
        options=(
            Option("time_limit", float, None, "seconds to search (default: 60 unless steps are set)", minimum=0.0),
            Option("steps", int, None, "steps to search; reproducible with a seed", minimum=0),
            Option("start", object, None, "initial group of each record (default: MDAV's groups)"),
            Option("bound", bool, False, "prove a lower bound on the loss"),
            Option("threads", int, None, "threads for tables beyond 5000 records (default: all cores)", minimum=1),
        ),
        random=True,
        anytime=True,
        time_option="time_limit",
        steps_option="steps",
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}
# Methods for t-closeness, which also group by sensitive columns.
CONFIDENTIAL_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="closeness-first",
            summary="t-closeness: MDAV's groups take a record from every stretch of the sensitive column",
            paper="Soria-Comas, Domingo-Ferrer, Sánchez and Martínez 2015",
            cost="O(d n²/k′)",
            function="shoal.promises.closeness_first:closeness_first",
            confidential=True,
        ),
        Method(
            name="k-first",
            summary="t-closeness: MDAV's groups swap records until they are within t",
            paper="Soria-Comas, Domingo-Ferrer, Sánchez and Martínez 2015",
            cost="O(n² (d/k + k log k))",
            function="shoal.promises.k_first:k_first",
            below_2k=False,
            confidential=True,
        ),
    )
}
ALL_METHODS = METHODS | CONFIDENTIAL_METHODS


def find(method: str | Callable[..., Any] | Method) -> Method:
    """Return the method with this name, or an entry for a user's function; reject unknown names.

    Examples
    --------
    >>> find("mdav").sizes
    'fixed'
    """
    if isinstance(method, Method):
        return method
    if callable(method):
        from shoal.algorithms.user_function import user_method

        return user_method(method)
    if not isinstance(method, str) or method not in ALL_METHODS:
        raise InputError(
            f"{parameter('method')} must be a function or one of {', '.join(ALL_METHODS)}, got "
            f"{method!r}.{closest(method, ALL_METHODS)}"
        )
    return ALL_METHODS[method]


def choose(method: str | Callable[..., Any] | Method, columns: int) -> Method:
    """Return the requested method; for one column, replace `AUTO` by the optimal method ``"univariate"``.

    Examples
    --------
    >>> choose("auto", 1).name, choose("auto", 2).name, choose("mst", 1).name
    ('univariate', 'auto', 'mst')
    """
    return find("univariate" if method == AUTO and columns == 1 else method)


def options_for(
    entry: Method, method: str | Callable[..., Any] | Method, options: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the options to pass to the method; drop them if `AUTO` was replaced for one column.

    Examples
    --------
    >>> options_for(choose("auto", 1), "auto", {"effort": "best"})
    {}
    """
    if entry.name == AUTO or method != AUTO:
        return options
    if find(AUTO).read_options(options).get("bound"):
        raise InputError(
            f"{option('bound')} of method 'auto' requires several columns: the groups of one column are always "
            "optimal. Omit it."
        )
    return {}


def methods() -> Listing:
    """Return all methods as a listing that prints as a table, one row per method.

    Examples
    --------
    >>> methods().names[:3]
    ['auto', 'univariate', 'fixed']
    """
    return Listing(ALL_METHODS.values())


class Listing(tuple[Method, ...]):
    """A tuple of methods that prints as a table."""

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The names of the methods."""
        return [method.name for method in self]

    def __repr__(self) -> str:
        rows = [("method", "group sizes", "cost", "summary")]
        rows += [(m.name, m.sizes, m.cost, m.summary) for m in self]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
        )
