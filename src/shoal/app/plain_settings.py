"""Settings as plain values for a file: places in a column instead of its values, which say nothing without the table.

Where settings name values of the table (the order of levels, a hierarchy, codes for missing), the file holds their
place among the sorted values of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import shoal
from shoal.app.work import ROLES, Settings, Work

__all__ = ["from_plain", "to_plain"]


def to_plain(work: Work, settings: Settings) -> dict[str, Any]:
    """Return settings as plain values, with places instead of values of the table."""
    plain = asdict(settings)
    for name in {*settings.kinds, *settings.codes}:
        places = {value: place for place, value in enumerate(work.values_of(name))}
        # A code may be written otherwise than the cells that it stands for.
        places |= {str(value): place for value, place in list(places.items())}

        def hide(value: Any, places: Mapping[Any, int] = places) -> Any:
            return {"place": places[value]} if value in places else value

        _replace(plain, name, hide)
    return plain


def from_plain(work: Work, plain: dict[str, Any]) -> Settings:
    """Return settings with the values of the table in their places.

    Raises
    ------
    ValueError
        If they are not settings of this table.
    """
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
    """Return whether settings are for the columns of the table and hold only what the form can show."""
    columns, request = work.settings.roles.keys(), settings.asked
    return (
        settings.roles.keys() == columns
        and set(settings.roles.values()) <= ROLES.keys()
        and {*settings.kinds, *settings.importance, *settings.codes} <= columns
        and request.keys() <= {item.name for item in shoal.MaskRequest.parameters()}
        and isinstance(request["k"], int)
        and isinstance(request.get("options", {}), dict)
        and bool(settings.parameters())
    )


def _replace(plain: dict[str, Any], name: Any, change: Callable[[Any], Any]) -> None:
    """Change every value that settings name of a column; a hierarchy is written as a list of ways."""
    kind = plain["kinds"].get(name)
    if isinstance(kind, list):
        plain["kinds"][name] = [change(level) for level in kind]
    elif isinstance(kind, dict) and "ways" in kind:
        ways = kind["ways"]
        if isinstance(ways, dict):
            ways = [[change(value), *map(change, above)] for value, above in ways.items()]
        else:
            ways = {change(value): [change(step) for step in above] for value, *above in ways}
        plain["kinds"][name] = {"ways": ways, "release": kind["release"]}
    if name in plain["codes"]:
        plain["codes"][name] = [change(code) for code in plain["codes"][name]]
