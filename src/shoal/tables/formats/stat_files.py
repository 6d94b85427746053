"""Reading and writing of SPSS, Stata and SAS files through pyreadstat (the ``stat`` extra), with labels and formats."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from shoal.core.errors import FileError
from shoal.core.types import Ints
from shoal.tables.columns import Name, NewColumn, as_number, cells_of, named_cells, only_columns, with_cells
from shoal.tables.formats.arrow_files import naming_file
from shoal.tables.formats.frame_columns import as_doubles, as_polars
from shoal.tables.formats.frames import FrameStore, open_table
from shoal.tables.table import Strata, Table, TableColumn

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["READERS", "WRITERS", "read_stat", "read_stored", "write_stat"]

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
SPSS = (".sav", ".zsav")
# Per ending: the pattern of the time of writing, a fixed time of the same length, and the number of occurrences.
_SPSS_TIME = (rb"(?s)\A(.{92}).{17}", rb"\g<1>01 Jan 0000:00:00", 1)
TIMES = {
    ".sav": _SPSS_TIME,
    ".zsav": _SPSS_TIME,
    ".dta": (rb"(<timestamp>\x11).{17}", rb"\g<1>01 Jan 2000 00:00", 1),
    ".xpt": (rb"\d\d[A-Z]{3}\d\d(:\d\d){3}", b"01JAN00:00:00:00", 4),
}
HEAD = 2000  # bytes at the start of a file, which contain the time of writing
# Formats of Stata and SPSS that show numbers as dates or times.
OF_TIMES = re.compile(r"%-?[td]|(A|E|S|J)?DATE|D?TIME|MTIME|YMDHMS|QYR|MOYR|WKYR|WKDAY|MONTH")
WRITERS = {".sav": "write_sav", ".zsav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}


class Changed(NamedTuple):
    """The change that masking made to a column."""

    category: bool  # True if its values are among those of the original
    code: str | None  # the code of missing cells, if any

    def labels(self, labels: Mapping[Any, str], released: pl.Series) -> dict[Any, str]:
        """Return the labels of released categories and of the code; labels of numbers could reveal original values."""
        absent = None if self.code is None else as_number(self.code)
        released_values = {self.code, absent} | (set(released.unique()) if self.category else set())
        return {value: label for value, label in labels.items() if value in released_values}

    def missing_ranges(self, ranges: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return a list of the code if the source file defines it as missing, else an empty list."""
        code = None if self.code is None else self.code if isinstance(ranges[0]["lo"], str) else as_number(self.code)
        return [code] if code is not None and any(part["lo"] <= code <= part["hi"] for part in ranges) else []


class StatColumn(TableColumn):
    """A column of an SPSS, Stata or SAS file."""

    store: StatStore

    @property
    def written(self) -> pl.Series:
        """The cells as the file stores them."""
        return cells_of(self.store.native, self.name)

    @property
    def spelled(self) -> pl.Series:
        """The cells including the codes that the file defines as missing, unless the column is masked."""
        return self.meaning if self.name in self.store.changed else cells_of(self.store.raw, self.name)

    @property
    def scale(self) -> str | None:
        """The scale of a column whose values all have labels, "ordinal" or "nominal"; None for other columns."""
        metadata = self.store.metadata
        labels = metadata.variable_value_labels.get(self.name)
        if not labels or not set(self.meaning.drop_nulls().unique().to_list()) <= set(labels):
            return None
        return "ordinal" if metadata.variable_measure.get(self.name) == "ordinal" else "nominal"


class StatStore(FrameStore):
    """The table of an SPSS, Stata or SAS file; columns that are not masked keep their stored cells."""

    column = StatColumn

    def __init__(
        self,
        frame: nw.DataFrame[Any],  # a polars frame with null for all missing values
        raw: pl.DataFrame,  # the table with the stored user-missing values of SPSS
        tagged: Mapping[str, pl.Series],  # stored columns of Stata with tagged missing values (.a to .z)
        metadata: Any,  # labels, formats, definitions of missing values
        suffix: str,  # the ending of the file's name
        changed: Mapping[str, Changed] | None = None,  # masked columns
        strata: frozenset[str] = frozenset(),  # stratum columns, which have one kind of missing cell
    ) -> None:
        super().__init__(frame)
        self.raw, self.tagged, self.metadata, self.suffix = raw, tagged, metadata, suffix
        self.changed, self.strata = changed or {}, strata
        # Once some columns are masked, all other columns except strata have their stored user-missing values.
        stored = [name for name in self.names if name not in {*self.changed, *strata}] if changed else []
        self.native = with_cells(self.native, {name: cells_of(raw, name) for name in stored})

    def _but(self, frame: nw.DataFrame[Any], **changed: Any) -> StatStore:
        same = ("raw", "tagged", "metadata", "suffix", "changed", "strata")
        return StatStore(frame, **({name: getattr(self, name) for name in same} | changed))

    def in_own_dialect(self, delimiter: str, numeric: Sequence[Name]) -> FrameStore:
        """Return the store without labels."""
        return FrameStore(self.frame)

    def take(self, rows: Ints) -> StatStore:
        """Return the store with only the records at positions `rows`."""
        tagged = {name: series[rows] for name, series in self.tagged.items()}
        return self._but(super().take(rows).frame, raw=self.raw[rows], tagged=tagged)

    def only(self, names: Sequence[Name]) -> StatStore:
        """Return the store with only the columns `names`."""
        tagged = {name: series for name, series in self.tagged.items() if name in names}
        changed = {name: how for name, how in self.changed.items() if name in names}
        raw = only_columns(self.raw, names)
        return self._but(super().only(names).frame, raw=raw, tagged=tagged, changed=changed)

    def released(self, new: Mapping[Name, NewColumn], strata: Strata) -> StatStore:
        """Return the store with new values in some columns and one kind of missing value in the strata."""
        changed = {name: Changed(column.categories is not None, column.code) for name, column in new.items()}
        frame = super().released(new, strata).frame
        return self._but(frame, changed={**self.changed, **changed}, strata=self.strata | {*strata})

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> StatStore:
        """Return the store with some columns replaced by text without labels."""
        changed = dict.fromkeys(texts, Changed(category=False, code=None))
        return self._but(super().relabelled(texts).frame, changed={**self.changed, **changed})


def _pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise FileError("SPSS, Stata and SAS files need the extra 'stat': pip install 'shoal[stat]'.") from None
    return pyreadstat


def read_stat(path: Path) -> Table:
    """Read an SPSS, Stata or SAS file; the missing values that it defines become missing cells."""
    return Table(_read(path, trusted=False))


def read_stored(path: Path) -> Table:
    """Return the stored cells of a file that this process wrote."""
    return open_table(_read(path, trusted=True).raw)


def _read(path: Path, *, trusted: bool) -> StatStore:
    import narwhals as nw

    library = _pyreadstat()
    suffix = path.suffix.lower()
    read = getattr(library, READERS[suffix])
    if suffix in SPSS and not trusted:
        _check_dictionary(path)
    with naming_file(path):
        if suffix == ".xpt":
            raw, metadata = read(path, output_format="polars")
            return StatStore(nw.from_native(raw, eager_only=True), raw, {}, metadata, suffix)
        raw, metadata = read(path, output_format="polars", user_missing=True)
        coded = metadata.missing_ranges or metadata.missing_user_values
        frame = read(path, output_format="polars")[0] if coded else raw
        tagged = {name: cells_of(raw, name) for name in metadata.missing_user_values}
        raw = with_cells(raw, {name: cells_of(frame, name) for name in tagged})
    return StatStore(nw.from_native(frame, eager_only=True), raw, tagged, metadata, suffix)


def _check_dictionary(path: Path) -> None:
    """Refuse an SPSS file whose dictionary crashes the reader; another process reads the dictionary first."""
    reading = "import sys, pyreadstat; pyreadstat.read_sav(sys.argv[1], metadataonly=True, output_format='dict')"
    command, null = [sys.executable, "-P", "-c", reading, os.fspath(path)], subprocess.DEVNULL
    code = 0
    with suppress(OSError):  # if no process can be started, the file is read unchecked
        run = subprocess.run(command, stdin=null, stdout=null, stderr=null, check=False)  # noqa: S603  (this Python)
        code = run.returncode
    if code < 0 or code > 255:  # a POSIX signal or a Windows exception
        raise FileError(
            f"File {path} cannot be read as {path.suffix}: its description of the columns is damaged. Restore a copy "
            "or export it again."
        )


def write_stat(table: Table, path: Path) -> None:
    """Write a table with the labels of its source file, as far as the format supports them.

    Value labels and missing codes describe original values. They stay in unchanged columns. In changed columns, only
    the labels of released categories and of codes for missing values stay.
    """
    library = _pyreadstat()
    suffix = path.suffix.lower()
    frame = as_doubles(as_polars(table.native), f"A {suffix} file")
    keywords: dict[str, Any] = {}
    file = table.store
    if isinstance(file, StatStore):
        metadata = file.metadata

        def kept(described: Mapping[str, Any]) -> dict[str, Any]:
            return {n: value for n, value in described.items() if n in frame.columns and n not in file.changed}

        labels, ranges = kept(metadata.variable_value_labels), kept(metadata.missing_ranges)
        for name, how in file.changed.items():
            labels[name] = how.labels(metadata.variable_value_labels.get(name, {}), cells_of(frame, name))
            ranges[name] = how.missing_ranges(metadata.missing_ranges[name]) if name in metadata.missing_ranges else []
        formats = {
            name: written
            for name, written in metadata.original_variable_types.items()
            if written  # SAS may have none
            and name in frame.columns
            and (name not in file.changed or _shows(written, cells_of(frame, name), file.changed[name]))
        }

        keywords["column_labels"] = {
            n: label for n, label in metadata.column_names_to_labels.items() if n in frame.columns
        }
        keywords["file_label"] = metadata.file_label or ""
        if suffix != ".xpt":
            keywords["variable_value_labels"] = {name: entry for name, entry in labels.items() if entry}
        if suffix in SPSS and file.suffix in SPSS:
            keywords["missing_ranges"] = {name: entry for name, entry in ranges.items() if entry}
            keywords["variable_measure"] = {n: m for n, m in metadata.variable_measure.items() if n in frame.columns}
            keywords["variable_format"] = formats
        if suffix == file.suffix == ".dta":
            keywords["missing_user_values"] = kept(metadata.missing_user_values)
            keywords["variable_format"] = formats
            tags = {name: cells for name, cells in kept(file.tagged).items() if name not in file.strata}
            frame = with_cells(frame, _integers_of_stata(frame, metadata.readstat_variable_types) | tags)
    if suffix in SPSS:
        keywords["compress"] = suffix == ".zsav"
    try:
        getattr(library, WRITERS[suffix])(frame, path, **keywords)
    except (library.ReadstatError, library.PyreadstatError) as error:
        if str(error) == "Unable to write data":  # the system refused to write; the table is valid
            raise OSError("the disk may be full") from None
        raise FileError(
            f"A {suffix} file cannot store this table: {error}. Rename or drop the column, or write Parquet or CSV."
        ) from None
    _set_time(path)


def _set_time(path: Path) -> None:
    """Replace the time of writing in a file with a fixed time, so that equal tables give equal files."""
    pattern, fixed, times = TIMES[path.suffix.lower()]
    with path.open("r+b") as file:
        head = re.sub(pattern, fixed, file.read(HEAD), count=times)
        file.seek(0)
        file.write(head)


def _shows(written: str, cells: pl.Series, how: Changed) -> bool:
    """Return whether a format shows the masked values; F3.0 and %8.0f hide decimals, A2 cuts text, %tc shows times.

    Examples
    --------
    >>> numbers, changed = pl.Series([58.4]), Changed(category=False, code=None)
    >>> [_shows(written, numbers, changed) for written in ("F3.0", "F5.1", "%8.0f", "%9.0g")]
    [False, True, False, True]
    >>> [_shows(written, pl.Series([58]), changed) for written in ("TIME8", "%tcHH:MM", "F3.0")]
    [False, False, True]
    """
    if how.category or cells.dtype.is_temporal():
        return True
    if OF_TIMES.match(written):
        return False
    decimals = written.endswith("g") or re.search(r"\.[1-9]", written) is not None
    return cells.dtype.is_numeric() and (decimals or bool((cells.drop_nulls() % 1 == 0).all()))


def _integers_of_stata(frame: pl.DataFrame, types: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return the integer columns as Stata's integers; wider integers would be written as doubles."""
    return {
        name: cells.cast(pl.Int32)
        for name, cells in named_cells(frame)
        if cells.dtype == pl.Int64 and types.get(name, "").startswith("int")
    }
