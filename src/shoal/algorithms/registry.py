"""The registry of methods: the one list that the library, the command line, the docs and the tests read.

Modules are imported on first use, so that looking at the list costs nothing. A user's own function is a method too,
though it is on no list: `find` makes an entry of it (`shoal.algorithms.user_function`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from shoal.algorithms.method import EFFORTS, SEARCH_SECONDS, Growth, Method, Option, Outcome, SharedWork
from shoal.core.errors import InputError, closest
from shoal.core.messages import option, parameter

__all__ = [
    "ALL_METHODS",
    "AUTO",
    "CONFIDENTIAL_METHODS",
    "EFFORTS",
    "METHODS",
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

AUTO = "auto"  # the method if none is named; for one column the optimum

_MST = Method(
    name="mst",
    summary="M: cut the minimum spanning tree, longest edges first",
    paper="Laszlo and Mukherjee 2005",
    cost="O(d n log n) in low dimensions, else O(d n²)",
    function="mst:mst",
    below_2k=False,
    options=(
        Option("tree", object, None, "the shoal.spanning_tree of the records, to use one for several k"),
        Option("spanning", str, "auto", "how the tree is built", choices=("auto", "boruvka", "prim")),
        Option(
            "metric",
            str,
            "euclidean",
            "how far records are apart, for the tree; or a function of two records",
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
        cost="O(d n²/k), as mdav, and O(d n min(k, 10)²) for each step a record",
        function="auto:auto",
        options=(
            Option(
                "effort",
                str,
                None,
                "how long is searched: 5, 20 or 100 annealing steps a record, and set partitioning with best; good if "
                "not given",
                choices=tuple(EFFORTS),
            ),
            Option("bound", bool, False, "prove how far from the optimum the result can be"),
            Option("threads", int, None, "threads for tables beyond 10000 records; all cores if not given", minimum=1),
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
        summary="each column on its own; NOT k-anonymous for whole records",
        paper="Defays and Nanopoulos 1993",
        cost="O(d n log n)",
        growth=Growth.LINEAR,
        function="individual_ranking:individual_ranking",
        options=(Option("ranking", str, "univariate", "how a column is grouped", choices=("univariate", "fixed")),),
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
                "threads for 50,000 records of 6 columns and more; all cores if not given",
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
        options=(Option("gamma", float, None, "gain factor γ; the best of a small grid if not given", minimum=0.0),),
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
        summary="Ward's clustering, which never joins two groups of k or more",
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
        cost="O(n log n + k n d) an axis",
        growth=Growth.LINEAR,
        function="projection:projection",
        options=(
            Option(
                "order",
                str,
                "best",
                "the axis: first principal component, sum of z-scores, a column, or the best of all",
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
                "the path: a travelling salesman's, nearest point next, maximum distance, or the best of them",
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
                "the method to start from, or labels; best: the better of mdav and v-mdav",
                choices=("best", "mdav", "v-mdav", "diameter", "centroid"),
                also="labels, one for each record",
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
        cost="O(d n²), and up to subset_limit for each subset, time_limit in all",
        function="shoal.algorithms.optimize.decomposition:decomposition",
        below_2k=False,
        options=(
            Option(
                "subsets",
                int,
                10,
                "most subsets, raised to n/2500 above 5000 records; fewer lose less and take longer",
                minimum=1,
            ),
            Option("first_swap", bool, True, "improve the start by swaps before it is divided (Step 3)"),
            Option("subset_limit", float, 60.0, "seconds for each subset", minimum=0.0),
            Option("time_limit", float, None, "seconds for the whole run; not limited if not given", minimum=0.0),
        ),
        time_option="time_limit",
    ),
    Method(
        name="search",
        summary="the least loss there is within a time limit; with a proven bound on request",
        paper="shoal",
        cost="O(n (d + k)) memory, O(n²) with bound up to 2000 records; the time that is given",
        function="shoal.algorithms.optimize.search:search",
        options=(
            Option("time_limit", float, None, "seconds to search; 60 if no steps are given either", minimum=0.0),
            Option("steps", int, None, "steps to search: with a seed, always the same result", minimum=0),
            Option("start", object, None, "the group of each record to start from; MDAV's groups if not given"),
            Option("bound", bool, False, "prove how far from the optimum the result can be"),
            Option("threads", int, None, "threads for tables beyond 5000 records; all cores if not given", minimum=1),
        ),
        random=True,
        anytime=True,
        time_option="time_limit",
        steps_option="steps",
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}
# Methods of t-closeness: they group by confidential columns too.
CONFIDENTIAL_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="closeness-first",
            summary="t-closeness: MDAV's groups take a record of every stretch of the confidential column",
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
    """Return the method of that name, or that a user's function is; or say which ones there are.

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
    """Return the method that masks so many columns: if none was named, for one the optimum.

    Examples
    --------
    >>> choose("auto", 1).name, choose("auto", 2).name, choose("mst", 1).name
    ('univariate', 'auto', 'mst')
    """
    return find("univariate" if method == AUTO and columns == 1 else method)


def options_for(
    entry: Method, method: str | Callable[..., Any] | Method, options: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the options of the method that was chosen: where `AUTO` takes the optimum, there is nothing to decide.

    Examples
    --------
    >>> options_for(choose("auto", 1), "auto", {"effort": "best"})
    {}
    """
    if entry.name == AUTO or method != AUTO:
        return options
    if find(AUTO).read_options(options).get("bound"):
        raise InputError(
            f"{option('bound')} of method 'auto' requires several columns: the groups of one column are the optimum. "
            "Leave it out."
        )
    return {}


def methods() -> Listing:
    """Return the registry, one row per method, as a table that prints itself.

    Examples
    --------
    >>> methods().names[:3]
    ['auto', 'univariate', 'fixed']
    """
    return Listing(ALL_METHODS.values())


class Listing(tuple[Method, ...]):
    """The methods, in order; prints as a table."""

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The names, as `mask` and `partition` take them."""
        return [method.name for method in self]

    def __repr__(self) -> str:
        rows = [("method", "group sizes", "cost", "summary")]
        rows += [(m.name, m.sizes, m.cost, m.summary) for m in self]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
        )
