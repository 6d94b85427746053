"""The role of every column: masked, stratum, weight, unit, sensitive, unchanged or left out.

A column with two roles is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shoal.core.errors import InputError
from shoal.core.messages import agreeing, listed, parameter, setting
from shoal.engines.records import Layout, Schema
from shoal.kinds.date import Date
from shoal.kinds.kind import Kind
from shoal.kinds.nominal import Nominal
from shoal.kinds.number import Number
from shoal.kinds.ordinal import Ordinal
from shoal.kinds.time_scale import Scale
from shoal.masking.confidential import Chosen
from shoal.masking.request import MaskRequest
from shoal.masking.sums import Rule, in_order, read_rule
from shoal.tables.columns import Codes, Name
from shoal.tables.table import check_name, choose_columns, stored_indexes

__all__ = ["Columns", "check_identifiers", "check_modes", "choose_masked", "identifiers_of", "settle"]

NUMBER = Number()


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a masking by role, with their kinds and options."""

    masked: tuple[Name, ...]
    by: tuple[Name, ...]
    weights: Name | None
    unit: Name | None
    kinds: tuple[Kind, ...]  # per masked column
    given: frozenset[Name]  # columns whose kind the user set
    released: tuple[Name, ...]  # all columns of the release, in order
    importance: tuple[float, ...] | None  # per masked column; None if all are equally important
    codes: Codes  # codes for missing values, per masked column
    scales: Mapping[Name, Scale] = field(default_factory=dict)  # time unit of each column of dates, times or durations
    zeros: tuple[Name, ...] = ()  # masked columns whose zeros are kept
    rules: tuple[Rule, ...] = ()  # sum rules, in order
    rounding: tuple[float, ...] = ()  # per rule: tolerance between its total and the sum
    totals: bool = False  # True: columns of whole numbers keep their totals
    confidential: tuple[Chosen, ...] = ()
    block_by: tuple[Name, ...] = ()  # masked columns along which blocks are cut; empty for all
    typed: tuple[Name, ...] = ()  # text columns that are released as numbers if all their cells are numbers

    @cached_property
    def kind_of(self) -> dict[Name, Kind]:
        """The kind of each masked column."""
        return dict(zip(self.masked, self.kinds, strict=True))

    @cached_property
    def outsider(self) -> tuple[Name, ...]:
        """The released columns that an outsider can know: all except the sensitive, weight and unit columns."""
        unknown = {self.weights, self.unit, *(column.name for column in self.confidential)} - {*self.masked, *self.by}
        return tuple(name for name in self.released if name not in unknown)

    def compared(self, names: Sequence[Name]) -> list[Name]:
        """Return the columns in `names` by which records are compared."""
        counts = dict(zip(self.masked, self.importance or (1.0,) * len(self.masked), strict=True))
        return [name for name in names if counts[name] > 0]

    def layout(self, types: Mapping[Name, Any]) -> Layout:
        """Return the layout of the released table; `types` maps columns to the type that all parts share."""
        return Layout(
            list(self.released),
            # Categories are released in the type of their original column.
            [name for name in self.released if name not in self.masked or name in self.categories],
            [name for name, kind in self.kind_of.items() if kind.numeric],
            types,
        )

    @property
    def nominal(self) -> list[Name]:
        """The masked columns whose values have no order."""
        return [name for name, kind in self.kind_of.items() if not kind.ordered]

    @property
    def modes(self) -> list[Name]:
        """The masked columns in which each group releases its mode, except those whose kind the user set."""
        kinds = self.kind_of.items()
        return [name for name, kind in kinds if kind.released_cells and not kind.ordered and name not in self.given]

    @property
    def with_own_cells(self) -> tuple[Name, ...]:
        """The columns released with original cells: unmasked columns and categories."""
        kinds = self.kind_of
        return tuple(name for name in self.released if name not in kinds or kinds[name].released_cells)

    @property
    def scaled(self) -> dict[Name, Kind]:
        """The masked columns, such as dates, that are counted in one unit in all parts."""
        return {name: kind for name, kind in self.kind_of.items() if kind.scaled}

    @property
    def scales_of_comparison(self) -> dict[Name, str]:
        """The comparison scale of each masked column that is not compared on its own scale."""
        return {name: kind.compared_on for name, kind in self.kind_of.items() if kind.compared_on != "linear"}

    @property
    def words(self) -> dict[Name, str]:
        """The name of the kind of each masked column that does not hold plain numbers."""
        named = {name: kind.word for name, kind in self.kind_of.items() if not kind.additive}
        return named | {name: scale.word for name, scale in self.scales.items()}

    @property
    def categories(self) -> frozenset[Name]:
        """The masked non-numeric columns."""
        return frozenset(name for name, kind in self.kind_of.items() if not kind.numeric)

    @property
    def zero_places(self) -> list[int]:
        """The indices of the columns whose zeros are kept."""
        return [self.masked.index(name) for name in self.zeros]

    def read(self) -> list[Name]:
        """Return all columns that the masking must read."""
        apart = [name for name in (self.weights, self.unit) if name is not None]
        confidential = (column.name for column in self.confidential)
        return list(dict.fromkeys([*self.masked, *self.by, *apart, *confidential, *self.typed]))


def choose_masked(request: MaskRequest, schema: Schema) -> Columns:
    """Return the columns of a request by role."""
    names, by = list(schema.names), list(request.by or ())
    weights = request.weights if isinstance(request.weights, (str, int)) else None
    for name in by:
        check_name(name, names, "by")
    if weights is not None:
        check_name(weights, names, "weights")
    if request.unit is not None:
        check_name(request.unit, names, "unit")
    kinds, dropped = dict(request.kinds or {}), list(request.identifiers or ())
    numbers = [name for name in names if name in schema.numeric or kinds.get(name, NUMBER).scaled]
    requested = request.columns
    unmasked = [*(request.keep or ()), *(request.confidential or ())]
    reserved = [*by, weights, request.unit, *dropped, *unmasked]
    masked = choose_columns(names, numbers, requested, apart=reserved)
    for name in masked:
        if name in by:
            raise InputError(
                f"{parameter('columns')} and {parameter('by')} both name column {name!r}. A masked column cannot be a "
                "stratum; name it in one of them."
            )
    if request.unit is not None and request.unit in (*masked, *by, weights):
        raise InputError(
            f"{parameter('unit')} names column {request.unit!r}, which is masked, a stratum or the weight. Use another "
            "column."
        )
    _check_roles(request, schema, masked, [*by, weights])
    _check_whole(request, masked, kinds)
    left_out = _left_out(request, names, [*masked, *by, weights, *unmasked])
    return Columns(
        masked=tuple(masked),
        by=tuple(by),
        weights=weights,
        unit=request.unit,
        kinds=_on_scales(request, masked, schema),
        given=frozenset(kinds),
        released=tuple(name for name in names if name not in left_out),
        importance=_importance(request, masked),
        codes=request.codes,
        zeros=_numbers_among(request, "zeros", masked, schema),
        rules=_rules(request, masked, schema),
        totals=request.integers == "totals",
        confidential=_confidential(request, names, [*masked, *by, weights, request.unit, *dropped], schema),
        block_by=_numbers_among(request, "block_by", masked, schema),
    )


def _left_out(request: MaskRequest, names: Sequence[Name], released: Sequence[Name | None]) -> list[Name]:
    """Return the columns to leave out: identifiers and, by default, columns without a role."""
    dropped, roleless = list(request.identifiers or ()), list[Name]()
    indexes = stored_indexes(names)
    for name in names:
        if name in released or name in dropped:
            continue
        if name in indexes and name != request.unit:
            dropped.append(name)
        else:
            roleless.append(name)
    if request.rest == "keep":
        return dropped
    refused = [name for name in roleless if name != request.unit]
    if request.rest == "error" and refused:
        raise InputError(
            f"{agreeing(len(refused), 'Column')} {listed(refused)} {agreeing(len(refused), 'has', 'have')} no role. "
            f"Name each in {parameter('columns')}, {parameter('by')}, {parameter('confidential')}, "
            f"{parameter('keep')} or {parameter('identifiers')}, or use {setting('rest', 'drop')} to leave them out."
        )
    return [*dropped, *roleless]


def identifiers_of(request: MaskRequest, columns: Columns, reasons: Mapping[Name, str]) -> dict[Name, str]:
    """Return the released columns that look like identifiers, including a unit column that is not renumbered."""
    others = {name: reason for name, reason in reasons.items() if name not in (request.unit, columns.weights)}
    if request.unit not in columns.released or request.shuffled:
        return others
    return {request.unit: "it is the unit column with its original values", **others}


def check_identifiers(request: MaskRequest, columns: Columns, reasons: Mapping[Name, str]) -> None:
    """Refuse a release with a column that looks like an identifier, unless the user keeps that column."""
    for name, reason in identifiers_of(request, columns, reasons).items():
        if name not in (request.keep or ()):
            raise InputError(
                f"Column {name!r} looks like an identifier: {reason}. Use {setting('identifiers', [name])} to leave it "
                f"out, or {setting('keep', [name])} to release it on purpose. Nothing was released."
            )


def check_modes(reasons: Mapping[Name, str]) -> None:
    """Refuse to mask an identifier-like column, because the mode of a group would be the identifier of a member."""
    for name, reason in reasons.items():
        raise InputError(
            f"Column {name!r} looks like an identifier: {reason}. Masking it would release some of its values. Use "
            f"{setting('identifiers', [name])} to leave it out, or set its kind in {parameter('kinds')}: a hierarchy "
            "for wider classes, or nominal to mask it anyway."
        )


def settle(request: MaskRequest, columns: Columns) -> MaskRequest:
    """Return the request with the method for these columns and with all options of that method."""
    settled = request.settled(columns.compared(columns.masked), columns.compared(columns.nominal))
    for kind in columns.kinds if not settled.entry.whole_records else ():
        if kind.columns:
            raise InputError(
                f"Method {settled.entry.name!r} groups every column on its own, but columns {listed(kind.columns)} "
                "form one value. Use a method that groups whole records."
            )
    return settled


def _on_scales(request: MaskRequest, masked: list[Name], schema: Schema) -> tuple[Kind, ...]:
    """Return the kinds of the masked columns with their scales; refuse a scale for a column without numbers."""
    kinds = {name: _kind_of(name, request.kinds or {}, schema) for name in masked}
    scales = request.scale
    if isinstance(scales, str):
        scales = {name: scales for name, kind in kinds.items() if kind.on_scale(scales) is not None}
        if not scales:
            raise InputError(
                f"{setting('scale', request.scale)} requires columns of numbers, but none is masked. Leave it out."
            )
    for name in _numbers_among(request, "scale", masked, schema) if isinstance(request.scale, Mapping) else ():
        if kinds[name].on_scale("linear") is None:
            raise InputError(
                f"{parameter('scale')} names column {name!r}, whose kind {kinds[name].word} has no other scale. Leave "
                "it out."
            )
    return tuple(kind.on_scale((scales or {}).get(name, "linear")) or kind for name, kind in kinds.items())


def _check_whole(request: MaskRequest, masked: Sequence[Name], kinds: Mapping[Name, Kind]) -> None:
    """Refuse columns that form one value together, unless all of them are masked with the same kind."""
    for name in masked:
        columns = kinds[name].columns if name in kinds else ()
        if outside := [partner for partner in columns if partner not in masked or kinds.get(partner) != kinds[name]]:
            raise InputError(
                f"Column {name!r} forms one value with column {outside[0]!r}, which is not masked or has another kind. "
                f"Name it in 'columns' too, and set the kind of both: {{{columns!r}: …}}."
            )


def _confidential(
    request: MaskRequest, names: Sequence[Name], taken_names: Sequence[Name], schema: Schema
) -> tuple[Chosen, ...]:
    """Return the sensitive columns; refuse a column with another role."""
    user_kinds, sensitive = request.kinds or {}, list[Chosen]()
    for name in request.confidential or ():
        check_name(name, names, "confidential")
        if name in taken_names or name in [column.name for column in sensitive]:
            raise InputError(
                f"{parameter('confidential')} names column {name!r}, which is masked, a stratum, the weight, the unit, "
                "left out, or named twice. A sensitive column is released unchanged: name it once."
            )
        levels = schema.levels.get(name, ())
        sensitive.append(Chosen(name, user_kinds.get(name, Ordinal(levels) if len(levels) > 1 else NUMBER)))
    if request.confidential is not None and not sensitive:
        raise InputError(f"{parameter('confidential')} must name at least one column, got none.")
    return tuple(sensitive)


def _rules(request: MaskRequest, masked: list[Name], schema: Schema) -> tuple[Rule, ...]:
    """Return the sum rules; refuse a rule with a column that is not masked or holds no numbers."""
    if not request.sums:
        return ()
    spelled = {str(name): name for name in schema.names}  # the columns of an array are named 0, 1, …
    rules = [read_rule(text) for text in request.sums]
    for rule in rules:
        for name in rule.columns:
            check_name(name, list(spelled), "sums")
        outside = [name for name in rule.columns if spelled[name] not in masked]
        if outside:
            all_of_them = len(outside) == len(rule.columns)
            remedy = f"Name it in {parameter('columns')} too"
            if all_of_them:
                remedy = "Leave the rule out: unchanged columns keep it"
            raise InputError(
                f"{parameter('sums')} contains {rule.text!r}, but column {outside[0]!r} is not "
                f"masked{', nor is any other column of the rule' if all_of_them else ''}. {remedy}."
            )
        for name in rule.columns:
            kind = _kind_of(spelled[name], request.kinds or {}, schema)
            if not kind.additive:
                raise InputError(
                    f"{parameter('sums')} contains {rule.text!r}, but column {name!r} holds {kind.holds}. Leave the "
                    "rule out."
                )
    return in_order([rule.renamed(spelled) for rule in rules])


def _numbers_among(request: MaskRequest, role: str, masked: list[Name], schema: Schema) -> tuple[Name, ...]:
    """Return the columns named in a parameter; refuse a column that is not masked or holds no numbers."""
    names = list(getattr(request, role) or ())
    for name in names:
        check_name(name, list(schema.names), role)
        if name not in masked:
            raise InputError(
                f"{parameter(role)} names column {name!r}, which is not masked. Name it in {parameter('columns')} too."
            )
        kind = _kind_of(name, request.kinds or {}, schema)
        if not kind.additive:
            raise InputError(
                f"{parameter(role)} must name columns of numbers, but column {name!r} holds {kind.holds}. Leave it out."
            )
        if names.count(name) > 1:
            raise InputError(f"{parameter(role)} names column {name!r} twice. Name it once.")
    return tuple(names)


def _importance(request: MaskRequest, masked: list[Name]) -> tuple[float, ...] | None:
    """Return the importance of each masked column; None if all are equally important."""
    if request.distance is None and request.importance is None:
        return None
    importance, decide = dict(request.importance or {}), masked if request.distance is None else request.distance
    for role, names in (("distance", decide), ("importance", list(importance))):
        for name in names:
            if name not in masked:
                raise InputError(
                    f"{parameter(role)} names column {name!r}, which is not masked. Masked columns: {listed(masked)}. "
                    f"Name it in {parameter('columns')} too."
                )
    if not decide:
        raise InputError(f"{parameter('distance')} must name at least one masked column, got none.")
    return tuple(float(importance.get(name, 1.0)) if name in decide else 0.0 for name in masked)


def _check_roles(request: MaskRequest, schema: Schema, masked: list[Name], unmasked: list[Name]) -> None:
    """Refuse columns with two roles, and codes for missing values or kinds for columns that are not masked."""
    names = list(schema.names)
    dropped, keep = request.identifiers or (), request.keep or ()
    for role, columns in (("identifiers", dropped), ("keep", keep)):
        for name in columns:
            check_name(name, names, role)
            if name in (*masked, *unmasked):
                raise InputError(
                    f"{parameter(role)} names column {name!r}, which is masked, a stratum or the weight. Name it once."
                )
    if repeated := [name for name in dropped if name in keep]:
        raise InputError(
            f"{parameter('identifiers')} and {parameter('keep')} both name column {repeated[0]!r}. Name it in one of "
            "them."
        )
    for name in request.codes:
        check_name(name, names, "missing_codes")
        if name not in masked:
            raise InputError(
                f"{parameter('missing_codes')} names column {name!r}, which is not masked: its codes are kept "
                "unchanged. Leave it out, or mask the column."
            )
        if name in schema.timed:
            raise InputError(
                f"{parameter('missing_codes')} names column {name!r}, which has a type of dates, times or durations: "
                "it cannot hold codes. Make such cells missing instead."
            )
    for name in request.kinds or {}:
        check_name(name, names, "kinds")
        of_stratum = name in (request.by or ()) and request.small == "merge" and (request.kinds or {})[name].joins
        if name not in (*masked, *(request.confidential or ())) and not of_stratum:
            raise InputError(
                f"{parameter('kinds')} names column {name!r}, which is not masked. Name it in {parameter('columns')} "
                f"too. (A stratum may have a hierarchy if small strata are joined: {setting('small', 'merge')}.)"
            )


def _kind_of(name: Name, user_kinds: Mapping[Name, Kind], schema: Schema) -> Kind:
    """Return the kind of a column."""
    if name in schema.timed:
        if user_kinds.get(name, Date()) != Date():
            raise InputError(
                f"Column {name!r} already has a type of dates, times or durations; its kind must be shoal.Date() "
                f"without a format, got {user_kinds[name]!r}. Leave it out of {parameter('kinds')}."
            )
        return Date()
    if name in user_kinds:
        return user_kinds[name]
    if name in schema.numeric:
        return NUMBER
    levels = schema.levels.get(name, ())
    return Ordinal(levels) if len(levels) > 1 else Nominal()
