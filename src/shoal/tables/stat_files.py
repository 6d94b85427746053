"""SPSS, Stata and SAS files through pyreadstat (the ``stat`` extra), labels and formats kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.errors import FileError
from shoal.core.types import Ints
from shoal.tables.columns import Name, NewColumn, Spelling
from shoal.tables.frames import FrameTable, Table, as_polars

__all__ = ["READERS", "WRITERS", "StatTable", "read_stat", "write_stat"]

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
SPSS = (".sav", ".zsav")
WRITERS = {".sav": "write_sav", ".zsav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}


@dataclass(frozen=True)
class StatFile:
    """What a statistical package's file holds beside the cells that are masked.

    Parameters
    ----------
    raw
        The table with the user-missing values of SPSS as they are stored.
    tagged
        Columns of Stata with tagged missing values (.a to .z), as they are stored.
    metadata
        Labels, formats, definitions of missing values.
    suffix
        The ending of the file's name.
    """

    raw: pl.DataFrame
    tagged: Mapping[str, pl.Series]
    metadata: Any
    suffix: str


class StatTable(FrameTable):
    """A statistical package's file: every value that the package takes for missing is a missing cell.

    Columns that are not touched are written as they are stored.
    """

    def __init__(
        self, frame: pl.DataFrame, file: StatFile, changed: Collection[str] = (), strata: Collection[str] = ()
    ) -> None:
        import narwhals as nw

        super().__init__(nw.from_native(frame, eager_only=True))
        self.file, self.changed, self.strata = file, frozenset(changed), frozenset(strata)

    @property
    def native(self) -> pl.DataFrame:
        """The table with user-missing values as they are stored, but for columns that are masked or strata."""
        frame: pl.DataFrame = self._frame.to_native()
        if not self.changed:
            return frame
        stored = [name for name in frame.columns if name not in {*self.changed, *self.strata}]
        return frame.with_columns(self.file.raw.select(stored))

    def scale(self, name: Name) -> str | None:
        """Return the scale of a column all of whose values have labels, "ordinal" if the package says so."""
        labels = self.file.metadata.variable_value_labels.get(name)
        if not labels or not set(self._frame.get_column(name).drop_nulls().unique().to_list()) <= set(labels):
            return None
        return "ordinal" if self.file.metadata.variable_measure.get(name) == "ordinal" else "nominal"

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as they are stored."""
        return pl.DataFrame([self.native[name].alias(str(i)) for i, name in enumerate(names)])

    def take(self, rows: Ints) -> StatTable:
        """Return some of the records."""
        tagged = {name: series[rows] for name, series in self.file.tagged.items()}
        file = replace(self.file, raw=self.file.raw[rows], tagged=tagged)
        return StatTable(self._frame.to_native()[rows], file, self.changed, self.strata)

    def without(self, names: Sequence[Name]) -> StatTable:
        """Return the table without some of the columns."""
        tagged = {name: series for name, series in self.file.tagged.items() if name not in names}
        file = replace(self.file, raw=self.file.raw.drop(list(names)), tagged=tagged)
        return StatTable(self._frame.to_native().drop(list(names)), file, self.changed - set(names), self.strata)

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> StatTable:
        """Return the table with new values in some columns; all that is missing in the strata is alike."""
        frame = super().released(new, strata).native
        return StatTable(frame, self.file, {*self.changed, *new}, {*self.strata, *(strata or {})})


def _pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise FileError("SPSS, Stata and SAS files need the extra 'stat': pip install 'shoal[stat]'.") from None
    return pyreadstat


def read_stat(path: Path) -> StatTable:
    """Read the file; missing values of the package become missing cells."""
    library = _pyreadstat()
    suffix = path.suffix.lower()
    read = getattr(library, READERS[suffix])
    try:
        if suffix == ".xpt":
            frame, metadata = read(path, output_format="polars")
            return StatTable(frame, StatFile(frame, {}, metadata, suffix))
        raw, metadata = read(path, output_format="polars", user_missing=True)
        coded = metadata.missing_ranges or metadata.missing_user_values
        frame = read(path, output_format="polars")[0] if coded else raw
    except (library.ReadstatError, library.PyreadstatError) as error:
        raise FileError(f"File {path} cannot be read as {path.suffix}: {error}.") from None
    tagged = {name: raw[name] for name in metadata.missing_user_values}
    raw = raw.with_columns(frame[name] for name in tagged)
    return StatTable(frame, StatFile(raw, tagged, metadata, suffix))


def write_stat(table: Table, path: Path) -> None:
    """Write a table with the labels of the file it came from, as far as the format has them.

    What describes values of the original, value labels and missing codes, stays with columns that were not changed.
    """
    library = _pyreadstat()
    suffix = path.suffix.lower()
    frame = as_polars(table.native)
    keywords: dict[str, Any] = {}
    if isinstance(table, StatTable):
        known = table.file.metadata

        def kept(described: Mapping[str, Any]) -> dict[str, Any]:
            return {n: value for n, value in described.items() if n in frame.columns and n not in table.changed}

        keywords["column_labels"] = {
            n: label for n, label in known.column_names_to_labels.items() if n in frame.columns
        }
        keywords["file_label"] = known.file_label or ""
        if suffix != ".xpt":
            keywords["variable_value_labels"] = kept(known.variable_value_labels)
        if suffix in SPSS and table.file.suffix in SPSS:
            keywords["missing_ranges"] = kept(known.missing_ranges)
            keywords["variable_measure"] = {n: m for n, m in known.variable_measure.items() if n in frame.columns}
            keywords["variable_format"] = kept(known.original_variable_types)
        if suffix == table.file.suffix == ".dta":
            keywords["missing_user_values"] = kept(known.missing_user_values)
            keywords["variable_format"] = kept(known.original_variable_types)
            tags = [series for name, series in kept(table.file.tagged).items() if name not in table.strata]
            frame = frame.with_columns(_integers_of_stata(frame, known.readstat_variable_types)).with_columns(tags)
    if suffix in SPSS:
        keywords["compress"] = suffix == ".zsav"
    getattr(library, WRITERS[suffix])(frame, path, **keywords)


def _integers_of_stata(frame: pl.DataFrame, types: Mapping[str, str]) -> list[pl.Series]:
    """Return the integer columns in the type that Stata has for them: wider ones would be written as doubles."""
    return [s.cast(pl.Int32) for s in frame if s.dtype == pl.Int64 and types.get(s.name, "").startswith("int")]
