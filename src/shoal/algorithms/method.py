"""Methods: an entry of the registry, its options and its outcome.

A method is a function ``f(X, k, *, state, **options)`` in a file of its own: records in, labels out. It gets a
C-contiguous float64 array ``(n, d)`` with ``n >= k``, trusts it, counts finished records in ``state`` and
returns early when asked to (`shoal.core.progress`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Literal

from shoal.core.errors import InputError, closest
from shoal.core.messages import option
from shoal.core.progress import fresh_state

if TYPE_CHECKING:
    from shoal.core.types import Floats, Ints, State

__all__ = ["EFFORTS", "REQUIRED", "SEARCH_SECONDS", "Growth", "Method", "Option", "Outcome", "SharedWork"]

REQUIRED = Parameter.empty  # the default of an option that must be given

SEARCH_SECONDS = 60.0  # how long an anytime method searches if nothing is said


EFFORTS = {"fast": 5, "good": 20, "best": 100}  # how long is searched: steps a record


class Growth(IntEnum):
    """The power of n in the time of a method, in the worst case; a logarithm counts as nothing."""

    LINEAR = 1
    QUADRATIC = 2
    CUBIC = 3


@dataclass(frozen=True)
class Option:
    """A keyword of a method: what it may be and what it means."""

    name: str
    type: type
    default: object
    help: str
    choices: tuple[object, ...] = ()
    minimum: float | None = None
    also: str = ""  # what it may be besides, in words: an object, which the method itself checks

    @property
    def scalar(self) -> bool:
        """Return whether a value can be typed on the command line."""
        return self.type in (int, float, bool, str)

    def read(self, value: object, method: str) -> Any:
        """Return the value as the method wants it, or refuse it by name.

        Examples
        --------
        >>> Option("gamma", float, None, "gain factor", minimum=0).read("0.2", "v-mdav")
        0.2
        """
        if value is REQUIRED:
            raise InputError(f"{option(self.name)} of method {method!r} is required: it has no default.")
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
    """The outcome of a method."""

    labels: Ints  # the group of each record; ``(n, d)`` for a method that groups every column on its own
    bound: float | None = None  # a proven lower bound on the SSE of any partition of the given records, or None
    status: Literal["optimal", "bounded", "heuristic"] = "heuristic"
    # Choices the method made that a reader of the summary wants to know.
    facts: Mapping[str, object] = field(default_factory=dict)
    certificate: Any = None  # what an independent check of the bound needs, or None


@dataclass(frozen=True)
class SharedWork:
    """Work on the records that does not depend on k, so that several runs can share it."""

    option: str  # the option that takes the result
    function: str  # what does the work, given the records: ``"module:function"`` as in `Method`

    def load(self) -> Callable[..., Any]:
        """Import the function that does the work."""
        return _load(self.function)


@dataclass(frozen=True)
class Method:
    """An entry of the registry."""

    name: str  # what users type
    # One line each: what it does, where it comes from, what it costs in n, d and k.
    summary: str
    paper: str
    cost: str
    # ``"module:function"`` below `shoal.algorithms` (or a full dotted path), or a user's function itself.
    function: str | Callable[..., Any]
    # ``"fixed"`` when groups have k records but for a remainder, else ``"variable"``.
    sizes: Literal["fixed", "variable"] = "variable"
    univariate: bool = False  # whether it groups one column only
    below_2k: bool = True  # whether every group has fewer than 2k records
    options: tuple[Option, ...] = ()  # its keywords
    random: bool = False  # whether it takes a ``seed``
    whole_records: bool = True  # whether its groups are of whole records; if not, masking is not k-anonymous
    # Whether it publishes what it has reached and has a result at any time: Ctrl-C ends it with the best so far.
    anytime: bool = False
    growth: Growth = Growth.QUADRATIC  # how its time grows with n
    # The options that say how many seconds a run may take, and how many steps. A method with
    # a time option looks at the clock, and its result depends on the machine, unless it is given steps.
    time_option: str | None = None
    steps_option: str | None = None
    shared: SharedWork | None = None  # the work that runs with other k can share
    confidential: bool = False  # whether it groups by confidential columns too: only a masking has them

    @property
    def by_user(self) -> bool:
        """Return whether the method is a user's function."""
        return callable(self.function)

    def takes(self, option: str) -> bool:
        """Return whether the method has an option of that name."""
        return any(candidate.name == option for candidate in self.options)

    def load(self) -> Callable[..., Any]:
        """Import the function that does the work."""
        return self.function if callable(self.function) else _load(self.function)

    def seconds(self, options: Mapping[str, Any]) -> float | None:
        """Return the seconds that a run may take, or None if they are not limited or not this method's to keep."""
        if self.time_option is None:
            return None
        limit: float | None = options.get(self.time_option)
        if limit is None and self.anytime and self.steps(options) is None:
            return SEARCH_SECONDS
        return limit

    def steps(self, options: Mapping[str, Any]) -> int | None:
        """Return the steps that a run may take, or None if they are not limited."""
        return None if self.steps_option is None else options.get(self.steps_option)

    def repeatable(self, options: Mapping[str, Any]) -> bool:
        """Return whether shoal can repeat a run with these options (and the same seed) to the byte on any machine.

        Examples
        --------
        >>> from shoal.algorithms.registry import find
        >>> search = find("search")
        >>> search.repeatable({"time_limit": 60.0, "steps": None}), search.repeatable({"steps": 1000})
        (False, True)
        """
        return not self.by_user and (self.time_option is None or self.steps(options) is not None)

    def read_options(self, options: Mapping[str, object]) -> dict[str, Any]:
        """Check the given options and add the defaults of the others."""
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
        """Group the records; ``options`` must have been read by `read_options`."""
        if self.confidential:
            raise InputError(
                f"Method {self.name!r} also groups by a confidential column, which only shoal.mask knows. Use "
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
