"""The work of a tab: its table, the settings of the form, and the masked versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shoal
from shoal.app.jobs import Job
from shoal.app.settings import Settings
from shoal.app.table_file import OpenedFile
from shoal.app.versions import Version

__all__ = ["ReleaseForm", "Work"]

NO_TABLE = OpenedFile(Path(), "")


@dataclass
class ReleaseForm:
    """The user's entries in the form of the Release step."""

    folder: str
    name: str  # of the masked file
    selected: dict[str, bool]  # True for every other file that is to be written


@dataclass
class Work:
    """The table, settings and versions of a tab. A table is open once it has been inspected."""

    table: OpenedFile = NO_TABLE
    inspection: shoal.Inspection | None = None
    settings: Settings = field(default_factory=Settings)
    versions: list[Version] = field(default_factory=list)
    chosen: int | None = None  # the number of the version to release
    compared: int | None = None  # the number of the version shown next to the chosen version
    job: Job | None = None
    step: str = "table"
    dark: bool | None = None
    values: bool = True  # show values of the table
    confirmed: dict[int, set[str]] = field(default_factory=dict)  # warnings, by version
    form: ReleaseForm | None = None  # None until the step Release is shown
    saved: str = ""  # path of the last save
    save_as: str = ""  # path entered for the next save
    unsaved: bool = False  # True if there are versions that were neither saved nor released
    stored: Settings | None = None  # the settings in the state folder, or the proposed ones
    restored: bool = False  # True while the page reports that the settings are from an earlier session
    error: str = ""

    def with_table(self, table: OpenedFile, inspection: shoal.Inspection) -> Work:
        """Return new work with another table and the same view settings."""
        settings = Settings.proposed(inspection)
        view = {"step": self.step, "dark": self.dark, "values": self.values}
        return Work(table, inspection, settings, stored=settings.copy(), **view)  # type: ignore[arg-type]

    @property
    def touched(self) -> bool:
        """True if there is a version, or if settings differ from the proposed ones."""
        return bool(self.versions) or (
            self.inspection is not None and self.settings != Settings.proposed(self.inspection)
        )

    @property
    def busy(self) -> bool:
        """True while a job runs."""
        return self.job is not None and self.job.running

    @property
    def view(self) -> Any:
        """The view of the table; None if no table is open."""
        return self.inspection.view if self.inspection is not None else None

    @property
    def columns(self) -> list[Any]:
        """The inspected columns."""
        return list(self.inspection.columns) if self.inspection is not None else []

    def version(self, number: int | None) -> Version | None:
        """Return the version with a number; None if there is none."""
        return next((version for version in self.versions if version.number == number), None)

    @property
    def current(self) -> Version | None:
        """The chosen version; None if there is none."""
        return self.version(self.chosen)

    def choose(self, version: Version) -> None:
        """Choose a version and show its settings in the form, unless that would lose settings that no version has."""
        if self.chosen != version.number:
            self.compared, self.chosen = self.chosen, version.number
        if not all(self.settings.changes_since(other.settings) for other in self.versions):
            self.settings = version.settings.copy()

    def restore(self, version: Version) -> None:
        """Choose a version and copy its settings to the form."""
        self.settings, self.chosen = version.settings.copy(), version.number

    def values_of(self, name: Any) -> list[Any]:
        """Return the sorted values of a column, as text if the file is CSV."""
        if self.view is None:
            return []
        values = self.view.column(name).drop_nulls().unique().sort().to_list()
        return [str(value) for value in values] if self.view.format else values

    def combination_sizes(self) -> tuple[dict[int, int], int]:
        """Return the number of combinations of keys and strata per size in records, and the number of all records."""
        if self.view is None:
            return {}, 0
        return self.view.alike(self.settings.named("key", "stratum")), self.view.records
