"""SPSS, Stata and SAS files through pyreadstat (the ``stat`` extra), labels and formats kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import FileError

__all__ = ["READERS", "WRITERS", "StatFile", "read_stat", "write_stat"]

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
WRITERS = {".sav": "write_sav", ".zsav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}


@dataclass(frozen=True)
class StatFile:
    """A statistical package's file as read: the frame and its labels."""

    frame: pl.DataFrame
    metadata: Any


def _pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise FileError("SPSS, Stata and SAS files need the extra 'stat': pip install 'shoal[stat]'.") from None
    return pyreadstat


def read_stat(path: Path) -> StatFile:
    """Read the file; missing values of the package become missing cells."""
    library = _pyreadstat()
    try:
        frame, metadata = getattr(library, READERS[path.suffix.lower()])(path, output_format="polars")
    except (library.ReadstatError, library.PyreadstatError) as error:
        raise FileError(f"File {path} cannot be read as {path.suffix}: {error}.") from None
    return StatFile(frame, metadata)


def write_stat(frame: pl.DataFrame, path: Path, like: StatFile | None = None) -> None:
    """Write the frame with the labels of the file it came from, as far as the format has them."""
    library = _pyreadstat()
    suffix = path.suffix.lower()
    keywords: dict[str, Any] = {}
    if like is not None:
        keywords["column_labels"] = like.metadata.column_names_to_labels
        keywords["file_label"] = like.metadata.file_label or ""
        if suffix != ".xpt":
            keywords["variable_value_labels"] = like.metadata.variable_value_labels
    if suffix in (".sav", ".zsav"):
        keywords["compress"] = suffix == ".zsav"
        if like is not None:
            keywords["variable_measure"] = like.metadata.variable_measure
    getattr(library, WRITERS[suffix])(frame, path, **keywords)
