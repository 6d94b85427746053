"""The state of a tab: the table, what is asked, and what came out. One dataclass of requests and results."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shoal
from shoal.app.jobs import Job
from shoal.app.words import LABELS

__all__ = ["ROLES", "Files", "Settings", "Source", "Try", "Work", "stamp_of"]

Name = Any

# What a column is for: the words, and the parameter of a masking whose help explains it.
ROLES: dict[str, tuple[str, str]] = {
    "key": ("Key: masked", "columns"),
    "stratum": ("Stratum: groups stay within", "by"),
    "confidential": ("Confidential: kept, measured", "confidential"),
    "identifier": ("Identifier: left out", "identifiers"),
    "unit": ("Unit: whose record it is", "unit"),
    "unit left out": ("Unit, itself left out", "identifiers"),
    "weight": ("Weight", "weights"),
    "other": ("Left as it is", ""),
}
LISTS = {"key": "columns", "stratum": "by", "confidential": "confidential", "identifier": "identifiers"}
BY_ROLE = {*LISTS.values(), "unit", "weights"}  # the parameters that follow from roles alone


@dataclass(frozen=True)
class Source:
    """The table that is masked.

    Parameters
    ----------
    path
        Where it is.
    name
        What it is called; the path has another name if it was dragged in.
    part
        Whether it is too large to be shown and counted as a whole.
    csv
        How a CSV file is written, where the user said so.
    stamp
        The size and the modification time of the file when it was opened.
    key
        What its settings are kept under: the same for the same file at the same place.
    """

    path: Path
    name: str
    part: bool = False
    csv: Mapping[str, Any] = field(default_factory=dict)
    stamp: tuple[int, int] | None = None
    key: str = ""

    @property
    def dragged(self) -> bool:
        """Whether it was dragged in, and its place is not known."""
        return str(self.path) != self.name

    @property
    def title(self) -> str:
        """The name of the file."""
        return Path(self.name).name

    @property
    def changed(self) -> bool:
        """Whether the file on disk is no longer the one that was opened."""
        return self.stamp is not None and self.stamp != stamp_of(self.path)


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Return the size and the modification time of a file; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


@dataclass
class Settings:
    """What is asked of a masking, as it is chosen on the page.

    Parameters
    ----------
    roles, kinds, importance
        By column: what it is for, what it holds where that must be said, and how much it counts.
    codes
        The codes for missing of columns.
    asked
        All other parameters of `shoal.MaskRequest`.
    """

    roles: dict[Name, str] = field(default_factory=dict)
    kinds: dict[Name, Any] = field(default_factory=dict)
    importance: dict[Name, float] = field(default_factory=dict)
    codes: dict[Name, list[Any]] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def proposed(cls, found: shoal.Inspection) -> Settings:
        """Return what an inspection proposes."""
        asked = dict(found.asked)
        roles = dict(found.roles)
        roles |= dict.fromkeys(asked["identifiers"] or [], "identifier")  # also keys that cannot be masked
        if asked["unit"] is not None:
            roles[asked["unit"]] = "unit left out" if asked["unit"] in (asked["identifiers"] or []) else "unit"
        return cls(
            roles,
            dict(asked["kinds"] or {}),
            {},
            dict(asked["missing_codes"] or {}),
            {name: asked[name] for name in ("k", "missing", "small", "zeros") if asked[name] is not None},
        )

    def named(self, *roles: str) -> list[Name]:
        """Return the columns of some roles."""
        return [name for name, role in self.roles.items() if role in roles]

    def parameters(self) -> dict[str, Any]:
        """Return what `shoal.mask` is asked for."""
        keys = self.named("key")
        lists = {parameter: self.named(role) or None for role, parameter in LISTS.items()}
        units, weights = self.named("unit", "unit left out"), self.named("weight")
        left_out = [*(lists["identifiers"] or []), *self.named("unit left out")]
        described = {*keys, *self.named("confidential"), *self.named("stratum")}
        return {
            **{name: value for name, value in self.asked.items() if name != "options"},
            **lists,
            **self.asked.get("options", {}),
            "identifiers": left_out or None,
            "unit": units[0] if units else None,
            "weights": weights[0] if weights else None,
            "kinds": {name: kind for name, kind in self.kinds.items() if name in described} or None,
            "importance": {n: w for n, w in self.importance.items() if n in keys and w != 1} or None,
            "missing_codes": {n: codes for n, codes in self.codes.items() if n in keys and codes} or None,
            "zeros": [name for name in self.asked.get("zeros") or [] if name in keys] or None,
        }

    def request(self) -> shoal.MaskRequest:
        """Return the request, or refuse what does not go together."""
        for role, several in (("unit", self.named("unit", "unit left out")), ("weight", self.named("weight"))):
            if len(several) > 1:
                raise shoal.InputError(
                    f"Role {role!r} can be given to one column, got {', '.join(map(str, several))}. Choose one of them."
                )
        if not self.named("key"):
            raise shoal.InputError("No column is a key: there is nothing to mask. Choose the keys in the step Roles.")
        given = self.parameters()
        options = self.asked.get("options", {})
        return shoal.MaskRequest(**{n: v for n, v in given.items() if n not in options}, options=options)

    def changes_since(self, before: Settings) -> list[str]:
        """List what these settings request differently; empty if both mask a table alike."""
        now, then = self.parameters(), before.parameters()
        roles = [name for name, role in self.roles.items() if role != before.roles.get(name)]
        changes = [f"Role of {name}: {_role(self, name)} (was {_role(before, name)})" for name in roles]
        names = [name for name in {**then, **now} if now.get(name) != then.get(name)]
        if not names:
            return []
        return changes + [_change(name, now, then) for name in names if not (roles and name in BY_ROLE)]

    def copy(self) -> Settings:
        """Return the same, to be kept."""
        return deepcopy(self)


def _role(settings: Settings, name: Name) -> str:
    return ROLES.get(settings.roles.get(name, ""), ("none", ""))[0]


def _change(name: str, now: Mapping[str, Any], then: Mapping[str, Any]) -> str:
    """Name a parameter that changed, with its values where they are plain."""
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    values = [now.get(name), then.get(name)]
    if any(isinstance(value, (list, tuple, dict)) for value in values):
        return label
    shown = ["default" if value is None else str(value) for value in values]
    return f"{label}: {shown[0]} (was {shown[1]})"


@dataclass
class Try:
    """One masking: what was asked, and what came out.

    Parameters
    ----------
    number
        Tries are numbered from 1.
    settings
        What was asked.
    figures
        What is shown on its card, as plain values.
    release, assessment
        The results; None for a try of work that was opened again, until it is run anew.
    comparison
        The same method at other k, for the map of the report; None until it is made, and where it would take long.
    folder
        Where its masked table and labels are until they are released.
    stopped
        Whether it was stopped, and is the best that had been found by then.
    """

    number: int
    settings: Settings
    figures: dict[str, Any] = field(default_factory=dict)
    release: shoal.Release | None = field(default=None, repr=False)
    assessment: Any = field(default=None, repr=False)
    comparison: Any = field(default=None, repr=False)
    folder: Path | None = None
    stopped: bool = False

    @property
    def title(self) -> str:
        """A few words that tell it from others."""
        return f"Try {self.number}: {self.figures['method']}, k = {self.figures['k']}"

    def file(self, source: Source) -> Path:
        """Where its masked table is."""
        return Path(str(self.folder)) / f"{Path(source.title).stem}-masked{_ending(source)}"

    @property
    def labels(self) -> Path:
        """Where its labels are."""
        return Path(str(self.folder)) / "labels.csv"

    @property
    def repeatable(self) -> bool:
        """Whether the command gives the same bytes."""
        return self.release is not None and self.release.repeatable and not self.stopped


@dataclass
class Files:
    """The form of the step Release, as the user filled it in.

    Parameters
    ----------
    folder, name
        Where the masked file goes.
    wanted
        Which of the other files are written.
    """

    folder: str
    name: str
    wanted: dict[str, bool]


@dataclass
class Work:
    """All that a tab knows.

    Parameters
    ----------
    source, inspection
        The table and what was found out about it.
    settings
        What is asked now.
    tries
        All maskings so far.
    chosen, beside
        The numbers of the try that is looked at and released, and of the one that is put beside it.
    job
        What runs in the background.
    step
        The step that is open.
    dark, values
        Whether the page is dark, and whether it shows values of the table.
    ticked
        The warnings that were read, by try.
    files
        The form of the step Release; None until it is first shown.
    saved, save_as
        Where it was saved last, and the place that is typed for the next time.
    unsaved
        Whether there are tries that were neither saved nor released.
    kept
        The settings that the state folder holds, or that were proposed.
    restored
        Whether the settings are those of an earlier session, and the user is to be told so.
    error
        What went wrong last, to be shown.
    """

    source: Source | None = None
    inspection: shoal.Inspection | None = None
    settings: Settings = field(default_factory=Settings)
    tries: list[Try] = field(default_factory=list)
    chosen: int | None = None
    beside: int | None = None
    job: Job | None = None
    step: str = "table"
    dark: bool | None = None
    values: bool = True
    ticked: dict[int, set[str]] = field(default_factory=dict)
    files: Files | None = None
    saved: str = ""
    save_as: str = ""
    unsaved: bool = False
    kept: Settings | None = None
    restored: bool = False
    error: str = ""

    def begun(self, source: Source, inspection: shoal.Inspection) -> Work:
        """Return new work with another table; what the user wants to see stays as it is."""
        settings = Settings.proposed(inspection)
        kept = settings.copy()
        return Work(source, inspection, settings, step=self.step, dark=self.dark, values=self.values, kept=kept)

    @property
    def begun_with(self) -> bool:
        """Whether anything was tried or chosen, that is more than an inspection proposes."""
        return bool(self.tries) or (self.inspection is not None and self.settings != Settings.proposed(self.inspection))

    @property
    def busy(self) -> bool:
        """Whether something runs."""
        return self.job is not None and self.job.running

    def trial(self, number: int | None) -> Try | None:
        """Return the try of that number."""
        return next((one for one in self.tries if one.number == number), None)

    @property
    def current(self) -> Try | None:
        """The try that is looked at and released."""
        return self.trial(self.chosen)

    def choose(self, one: Try) -> None:
        """Choose a try. The form takes its settings, unless it holds settings that no try has kept yet."""
        if self.chosen != one.number:
            self.beside, self.chosen = self.chosen, one.number
        if not all(self.settings.changes_since(other.settings) for other in self.tries):
            self.settings = one.settings.copy()

    def take_back(self, one: Try) -> None:
        """Choose a try and put its settings into the form, whatever the form holds."""
        self.settings, self.chosen = one.settings.copy(), one.number

    def values_of(self, name: Name) -> list[Any]:
        """Return the values of a column in order; those of a CSV file as they are written."""
        view = self.inspection.view if self.inspection is not None else None
        if view is None:
            return []
        values = view.column(name).drop_nulls().unique().sort().to_list()
        return [str(value) for value in values] if view.format else values

    def uniques(self) -> tuple[dict[int, int], int]:
        """Count how many combinations of the keys and strata are shared by how many records; and all records."""
        view = self.inspection.view if self.inspection is not None else None
        if view is None:
            return {}, 0
        return view.alike(self.settings.named("key", "stratum")), view.records


def _ending(source: Source) -> str:
    """Return the ending of the masked file: that of the table, where it can be written."""
    ending = Path(source.name).suffix.lower()
    return ".csv" if ending in ("", ".sas7bdat") else ending
