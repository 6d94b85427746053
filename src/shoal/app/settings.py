"""Settings of the form, and their plain values for a file.

The order of levels, hierarchies and codes for missing values name values of the table. A file contains the positions of
these values among the sorted values of the column instead. The positions mean nothing without the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import shoal
from shoal.app.texts import LABELS

if TYPE_CHECKING:
    from shoal.app.work import Work

__all__ = ["ROLES", "Settings", "from_plain", "to_plain"]

Name = Any

# The label of each column role, and the parameter whose help text explains the role.
ROLES: dict[str, tuple[str, str]] = {
    "key": ("Key: masked", "columns"),
    "stratum": ("Stratum", "by"),
    "confidential": ("Sensitive: unchanged", "confidential"),
    "identifier": ("Identifier: left out", "identifiers"),
    "unit": ("Unit: unchanged", "unit"),
    "unit left out": ("Unit: left out", "unit"),
    "weight": ("Weight", "weights"),
    "other": ("Released unchanged", "keep"),
}
LISTS = {
    "key": "columns",
    "stratum": "by",
    "confidential": "confidential",
    "identifier": "identifiers",
    "other": "keep",
}
BY_ROLE = {*LISTS.values(), "unit", "weights"}  # parameters that depend on the roles alone


@dataclass
class Settings:
    """The settings of the form: roles, kinds, importance, scales and codes by column, and all other parameters."""

    roles: dict[Name, str] = field(default_factory=dict)
    kinds: dict[Name, Any] = field(default_factory=dict)
    importance: dict[Name, float] = field(default_factory=dict)
    codes: dict[Name, list[Any]] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)  # as `Inspection.asked`
    scales: dict[Name, str] = field(default_factory=dict)

    @classmethod
    def proposed(cls, inspection: shoal.Inspection) -> Settings:
        """Return the settings that an inspection proposes."""
        request = dict(inspection.asked)
        identifiers = request["identifiers"] or []
        roles = dict(inspection.roles) | dict.fromkeys(identifiers, "identifier")  # includes keys that cannot be masked
        if request["unit"] is not None:
            roles[request["unit"]] = "unit left out" if request["unit"] in identifiers else "unit"
        return cls(
            roles,
            dict(request["kinds"] or {}),
            {},
            dict(request["missing_codes"] or {}),
            {name: request[name] for name in ("k", "small", "zeros") if request[name] is not None},
        )

    def with_roles(self, roles: shoal.Roles, proposed: Mapping[str, Any]) -> Settings:
        """Return settings with the roles of a file, without parameters proposed for the previous roles."""
        request: Any = shoal.MaskRequest(k=self.asked["k"], roles=roles)
        page_roles = {name: role for role, parameter in LISTS.items() for name in getattr(request, parameter) or ()}
        page_roles |= {request.unit: "unit left out", request.weights: "weight"}
        return Settings(
            {name: page_roles[name] for name in self.roles},
            request.plain_kinds() or {},
            {},
            {name: list(codes) for name, codes in request.codes.items()},
            {
                name: value
                for name, value in self.asked.items()
                if name not in ("small", "zeros") or value != proposed.get(name)
            },
        )

    def named(self, *roles: str) -> list[Name]:
        """Return the columns with one of these roles."""
        return [name for name, role in self.roles.items() if role in roles]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `shoal.mask`."""
        keys = self.named("key")
        lists = {parameter: self.named(role) or None for role, parameter in LISTS.items()}
        units, weights = self.named("unit", "unit left out"), self.named("weight")
        identifiers = [*(lists["identifiers"] or []), *self.named("unit left out")]
        described = {*keys, *self.named("confidential"), *self.named("stratum")}
        return {
            **{name: value for name, value in self.asked.items() if name != "options"},
            **lists,
            **self.asked.get("options", {}),
            "identifiers": identifiers or None,
            "keep": [*(lists["keep"] or []), *self.named("unit")] or None,
            "unit": units[0] if units else None,
            "weights": weights[0] if weights else None,
            "kinds": {name: kind for name, kind in self.kinds.items() if name in described} or None,
            "importance": {n: w for n, w in self.importance.items() if n in keys and w != 1} or None,
            "scale": {n: scale for n, scale in self.scales.items() if n in keys and n not in self.kinds} or None,
            "missing_codes": {n: codes for n, codes in self.codes.items() if n in keys and codes} or None,
            "zeros": [name for name in self.asked.get("zeros") or [] if name in keys] or None,
        }

    def request(self, **others: Any) -> shoal.MaskRequest:
        """Return the request with additional parameters; refuse settings that cannot be combined."""
        for role, columns in (("unit", self.named("unit", "unit left out")), ("weight", self.named("weight"))):
            if len(columns) > 1:
                raise shoal.InputError(
                    f"Role {role!r} can have only one column, got {', '.join(map(str, columns))}. Choose one of them."
                )
        if not self.named("key"):
            raise shoal.InputError(
                "No column is a key, so there is nothing to mask. Choose the keys in the Roles step."
            )
        options = self.asked.get("options", {})
        parameters = {name: value for name, value in self.parameters().items() if name not in options}
        return shoal.MaskRequest(**parameters, options=options, **others)

    def changes_since(self, before: Settings) -> list[str]:
        """List the differences from earlier settings; empty if both give the same masking."""
        new, old = self.parameters(), before.parameters()
        names = [name for name in {**old, **new} if new.get(name) != old.get(name)]
        if not names:
            return []
        roles = [name for name, role in self.roles.items() if role != before.roles.get(name)]
        changes = [f"Role of {name}: {_role(self, name)} (was {_role(before, name)})" for name in roles]
        return changes + [_change(name, new, old) for name in names if not (roles and name in BY_ROLE)]

    def copy(self) -> Settings:
        """Return a deep copy."""
        return deepcopy(self)


def _role(settings: Settings, name: Name) -> str:
    return ROLES.get(settings.roles.get(name, ""), ("none", ""))[0]


def _change(name: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> str:
    """Return the label of a changed parameter, with both values unless one is a list or mapping."""
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    values = [new.get(name), old.get(name)]
    if any(isinstance(value, (list, tuple, dict)) for value in values):
        return label
    texts = ["default" if value is None else str(value) for value in values]
    return f"{label}: {texts[0]} (was {texts[1]})"


def to_plain(work: Work, settings: Settings) -> dict[str, Any]:
    """Return settings as plain values, with positions instead of values of the table."""
    plain = asdict(settings)
    for name in {*settings.kinds, *settings.codes}:
        places = {value: place for place, value in enumerate(work.values_of(name))}
        # A code may be spelled differently in the settings and in the cells.
        places |= {str(value): place for value, place in list(places.items())}

        def hide(value: Any, places: Mapping[Any, int] = places) -> Any:
            return {"place": places[value]} if value in places else value

        _replace(plain, name, hide)
    return plain


def from_plain(work: Work, plain: dict[str, Any]) -> Settings:
    """Return settings with values of the table instead of positions; raise ValueError if they do not fit the table."""
    try:
        for name in {*plain["kinds"], *plain["codes"]}:
            values = work.values_of(name)

            def show(value: Any, values: list[Any] = values) -> Any:
                return values[value["place"]] if isinstance(value, dict) else value

            _replace(plain, name, show)
        settings = Settings(**plain)
        fits = _fits(work, settings)
    except (AttributeError, LookupError, TypeError, shoal.ShoalError) as error:
        raise ValueError(str(error)) from None
    if not fits:
        raise ValueError("settings of another table")
    return settings


def _fits(work: Work, settings: Settings) -> bool:
    """Return whether settings match the columns of the table and contain only entries of the form."""
    columns, request = work.settings.roles.keys(), settings.asked
    return (
        settings.roles.keys() == columns
        and set(settings.roles.values()) <= ROLES.keys()
        and {*settings.kinds, *settings.importance, *settings.scales, *settings.codes} <= columns
        and request.keys() <= {item.name for item in shoal.MaskRequest.parameters()}
        and isinstance(request["k"], int)
        and isinstance(request.get("options", {}), dict)
        and bool(settings.parameters())
    )


def _replace(plain: dict[str, Any], name: Any, change: Callable[[Any], Any]) -> None:
    """Change every value of a column in plain settings; convert a hierarchy between mapping and list."""
    kind = plain["kinds"].get(name)
    if isinstance(kind, list):
        plain["kinds"][name] = [change(level) for level in kind]
    elif isinstance(kind, dict) and "ways" in kind and not _are_lengths(kind["ways"]):
        ways = kind["ways"]
        if isinstance(ways, dict):
            ways = [[change(value), *map(change, above)] for value, above in ways.items()]
        else:
            ways = {change(value): [change(step) for step in above] for value, *above in ways}
        plain["kinds"][name] = {"ways": ways, "release": kind["release"]}
    if name in plain["codes"]:
        plain["codes"][name] = [change(code) for code in plain["codes"][name]]


def _are_lengths(ways: Any) -> bool:
    """Return whether a hierarchy consists of code lengths, which name no value of the table."""
    return isinstance(ways, list) and all(isinstance(length, int) for length in ways)
