"""Independent recount of releases, without the code of shoal."""

import csv
import io
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from shoal.algorithms.registry import find as find_method

__all__ = ["BrokenError", "check_groups", "check_release", "read_cells"]

EXACT = (".parquet", ".feather")


class BrokenError(Exception):
    """A release breaks one of its promises."""


def read_cells(data, dialect):
    """Return the names of the columns of a table or a file, and the cells of each, as hashable values."""
    if isinstance(data, (str, Path)):
        path = Path(data)
        if path.suffix == ".csv":
            return _read_text(path, dialect)
        data = {
            ".parquet": pq.read_table,
            ".feather": pyarrow.feather.read_table,
            ".xlsx": pl.read_excel,
            ".sav": lambda p: _stat(p, "read_sav"),
            ".dta": lambda p: _stat(p, "read_dta"),
        }[path.suffix](path)
    if hasattr(data, "compute"):  # a Dask DataFrame
        data = data.compute()
    if isinstance(data, np.ndarray):
        return list(range(data.shape[1])), [[_value(v) for v in data[:, j].tolist()] for j in range(data.shape[1])]
    if isinstance(data, pa.Table):
        return data.column_names, [[_value(v) for v in column.to_pylist()] for column in data.columns]
    if isinstance(data, pl.DataFrame):
        return data.columns, [[_value(v) for v in column.to_list()] for column in data.get_columns()]
    return list(data.columns), [[_value(v) for v in data.iloc[:, j].tolist()] for j in range(data.shape[1])]


def _stat(path, reader):
    import pyreadstat

    return getattr(pyreadstat, reader)(str(path))[0]


def _read_text(path, dialect):
    raw = path.read_bytes()
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else dialect.get("encoding", "utf-8"))
    lines = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=dialect.get("delimiter", ",")))
    # A blank line is not a record; in a table with a single column, an empty record is quoted.
    head, *rows = [line for line in lines if line]
    return head, [[row[j] for row in rows] for j in range(len(head))]


def _value(value):
    """Return a cell as a hashable value: NaN equals NaN but not None."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def check_release(case, release, data):
    """Raise `BrokenError` if the release breaks k, lacks records or changes columns that were not to be masked."""
    names, cells = read_cells(data, case.dialect if case.form == ".csv" else {})
    if isinstance(data, np.ndarray):  # columns are named by their position in the input array
        dropped = release.parameters["identifiers"] or []
        names = [name for name in range(len(names) + len(dropped)) if name not in dropped]
    columns = dict(zip(names, cells, strict=True))
    k, by = release.k, release.parameters["by"]
    text = isinstance(data, (str, Path))  # names of an array are numbers, those of its file text
    find = {str(name): name for name in columns} if text else {name: name for name in columns}
    masked = [columns[find[str(name) if text else name]] for name in release.columns]
    strata = [columns[find[str(name) if text else name]] for name in by]
    _check_names(case, release, [*map(str, columns)])
    rows = len(cells[0]) if cells else 0
    if rows != release.records:
        raise BrokenError(f"{rows} records were written, the release says {release.records}")
    unit = release.parameters.get("unit")
    whose = range(rows)
    if unit is not None and unit in columns:
        whose = columns[unit]
    elif unit is not None:
        if isinstance(unit, int) or len(release.kept) != rows:
            return  # units are not in the file and cannot be looked up
        given = case.table.column(unit).to_pylist()
        whose = [given[row] for row in release.kept]
    together = [masked] if find_method(release.parameters["method"]).whole_records else [[column] for column in masked]
    for part in together:
        check_groups(k, [*part, *strata], whose)
    for name in release.left:
        _check_left(case, name, columns, release)
    _check_left_out(case, release, rows)
    if not math.isfinite(release.loss):
        raise BrokenError(f"the loss is {release.loss}")


def _check_names(case, release, names):
    """Raise `BrokenError` if a column is released that was neither masked nor named."""
    asked = case.asked
    roles = asked.get("roles") or {}
    kept = {*_listed(asked.get("keep")), *(name for name, role in roles.items() if role == "keep")}
    if not {*_listed(release.parameters["keep"])} <= kept:
        raise BrokenError(f"{release.parameters['keep']} was kept, but only {kept} was named")
    unmasked = {*kept, *(name for role in ("confidential", "weights") for name in _listed(release.parameters[role]))}
    named = {*map(str, (*release.columns, *release.parameters["by"], *unmasked))}
    if release.parameters["rest"] != "keep":
        for name in names:
            if name not in named:
                raise BrokenError(f"column {name!r} is released, but was not named")
    for name in _listed(asked.get("columns")):
        if name not in release.columns:
            raise BrokenError(f"column {name!r} was to be masked")
    for name, role in roles.items():
        if role in ("drop", "unit") and str(name) in names:
            raise BrokenError(f"column {name!r} is released, but its role is {role!r}")


def _check_left_out(case, release, rows):
    """Raise `BrokenError` if more records are suppressed than the release reports or the request allows."""
    if case.form in (".csv", ".xlsx"):  # where a blank line is not a record
        return
    given = case.table.num_rows
    if given - rows != release.left_out:
        raise BrokenError(f"{given - rows} records are left out, the release says {release.left_out}")
    accepted = str(release.parameters["max_left_out"])
    share = float(accepted.rstrip("%")) / (100 if accepted.endswith("%") else 1)
    if given - rows > share * given + 1e-9:
        raise BrokenError(f"{given - rows} of {given} records are left out, more than {accepted}")


def _listed(names):
    """Return a list of names from one name, several or None."""
    if names is None or isinstance(names, np.ndarray):
        return []
    return [names] if isinstance(names, (str, int)) else list(names)


def check_groups(k, columns, whose):
    """Raise `BrokenError` if a combination of cells belongs to fewer than k different units."""
    members = defaultdict(set)
    for row, cells in enumerate(zip(*columns, strict=True)):
        members[cells].add(whose[row])
    least = min((len(found) for found in members.values()), default=k)
    if least < k:
        raise BrokenError(f"a combination of released values is shared by {least} instead of {k}")


def _check_left(case, name, columns, release):
    """Compare an unchanged column with the original, for forms that preserve values."""
    kept = case.form in ("polars", "pyarrow") if case.output is None else case.form == case.output in EXACT
    if not kept or not len(release.kept) or Counter(case.table.column_names)[name] != 1:
        return
    given = pl.from_arrow(case.table.select([name])) if case.form == "polars" else case.table
    values = read_cells(given.select([name]), {})[1][0]
    if columns[name] != [values[row] for row in release.kept]:
        raise BrokenError(f"column {name!r} was not to be masked and has changed")
