"""SPSS, Stata and SAS files through pyreadstat (the ``stat`` extra), labels and formats kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.errors import FileError
from shoal.core.types import Ints

__all__ = ["READERS", "WRITERS", "StatFile", "read_stat", "write_stat"]

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
    """A statistical package's file as read.

    Parameters
    ----------
    frame
        The table; every value that the package takes for missing is a missing cell.
    raw
        The same with the user-missing values of SPSS as they are stored.
    tagged
        Columns of Stata with tagged missing values (.a to .z), as they are stored.
    metadata
        Labels, formats, definitions of missing values.
    suffix
        The ending of the file's name.
    """

    frame: pl.DataFrame
    raw: pl.DataFrame
    tagged: Mapping[str, pl.Series]
    metadata: Any
    suffix: str

    def restored(self, frame: pl.DataFrame, changed: Collection[str], rows: Ints | None) -> pl.DataFrame:
        """Return a released frame with all but the changed columns as they are stored."""
        raw = self.raw if rows is None else self.raw[rows]
        return frame.with_columns(raw.select(name for name in raw.columns if name not in changed))


def _pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise FileError("SPSS, Stata and SAS files need the extra 'stat': pip install 'shoal[stat]'.") from None
    return pyreadstat


def read_stat(path: Path) -> StatFile:
    """Read the file; missing values of the package become missing cells."""
    library = _pyreadstat()
    suffix = path.suffix.lower()
    read = getattr(library, READERS[suffix])
    try:
        if suffix == ".xpt":
            frame, metadata = read(path, output_format="polars")
            return StatFile(frame, frame, {}, metadata, suffix)
        raw, metadata = read(path, output_format="polars", user_missing=True)
        coded = metadata.missing_ranges or metadata.missing_user_values
        frame = read(path, output_format="polars")[0] if coded else raw
    except (library.ReadstatError, library.PyreadstatError) as error:
        raise FileError(f"File {path} cannot be read as {path.suffix}: {error}.") from None
    tagged = {name: raw[name] for name in metadata.missing_user_values}
    return StatFile(frame, raw.with_columns(frame[name] for name in tagged), tagged, metadata, suffix)


def write_stat(
    frame: pl.DataFrame,
    path: Path,
    like: StatFile | None = None,
    changed: Collection[str] = (),
    strata: Collection[str] = (),
    rows: Ints | None = None,
) -> None:
    """Write the frame with the labels of the file it came from, as far as the format has them.

    What describes values of the original, value labels and missing codes, stays with columns that are not `changed`.
    Missing cells of the strata are all alike.
    """
    library = _pyreadstat()
    suffix = path.suffix.lower()
    keywords: dict[str, Any] = {}
    if like is not None:
        known = like.metadata

        def kept(described: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in described.items() if name not in changed}

        keywords["column_labels"] = known.column_names_to_labels
        keywords["file_label"] = known.file_label or ""
        if suffix != ".xpt":
            keywords["variable_value_labels"] = kept(known.variable_value_labels)
        if suffix in SPSS and like.suffix in SPSS:
            keywords["missing_ranges"] = kept(known.missing_ranges)
            keywords["variable_measure"] = known.variable_measure
            keywords["variable_format"] = kept(known.original_variable_types)
        if suffix == like.suffix == ".dta":
            keywords["missing_user_values"] = kept(known.missing_user_values)
            keywords["variable_format"] = kept(known.original_variable_types)
            tags = [series for name, series in kept(like.tagged).items() if name not in strata]
            tagged = [series if rows is None else series[rows] for series in tags]
            frame = frame.with_columns(_integers_of_stata(frame, known.readstat_variable_types)).with_columns(tagged)
    if suffix in SPSS:
        keywords["compress"] = suffix == ".zsav"
    getattr(library, WRITERS[suffix])(frame, path, **keywords)


def _integers_of_stata(frame: pl.DataFrame, types: Mapping[str, str]) -> list[pl.Series]:
    """Return the integer columns in the type that Stata has for them: wider ones would be written as doubles."""
    return [s.cast(pl.Int32) for s in frame if s.dtype == pl.Int64 and types.get(s.name, "").startswith("int")]
