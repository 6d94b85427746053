"""Cases of the fuzzer, generated from their numbers: a table, its form, and the parameters of its masking."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.feather
import pyarrow.parquet as pq

from shoal.algorithms.registry import CONFIDENTIAL_METHODS, METHODS

from .columns import draw_column, draw_names, some

__all__ = ["Case", "draw_case", "give"]

FRAMES = ("polars", "polars", "pandas", "pandas", "nullable", "pyarrow", "pyarrow", "numpy", "dask")
FILES = (".csv", ".parquet", ".feather", ".xlsx", ".sav", ".dta")
NUMBERS = ("floats", "money", "few", "zeros", "integers", "float32", "big_integers", "persons", "huge", "not_finite")
STEPS = {"search": {"steps": 100}, "decomposition": {"subset_limit": 1.0}}


@dataclass(frozen=True)
class Case:
    """A table and the parameters of its masking."""

    number: int
    table: pa.Table
    kinds: dict[str, str]
    form: str
    asked: dict[str, Any]
    dialect: dict[str, Any] = field(default_factory=dict)
    output: str | None = None

    def __str__(self):
        columns = ", ".join(f"{name!r}: {kind}" for name, kind in self.kinds.items())
        return (f"case {self.number}: {self.table.num_rows} records ({columns}) as {self.form}, {self.asked}, "
                f"to {self.output}, {self.dialect}")  # fmt: skip


def draw_case(number):
    """Return the case with this number; the same on every machine."""
    rng = np.random.default_rng((2026, number))
    n = int(some(rng, [0, 2, 5, 12, 20, 30, 30, 30, 40, 60, 60, 60, 90, 90, 150, 150]))
    form = some(rng, FRAMES) if rng.random() < 0.5 else some(rng, [".csv", ".csv", ".parquet", *FILES])
    names = draw_names(rng, int(rng.integers(1, 7)), plain=form in (".sav", ".dta"))
    drawn = [draw_column(rng, n) for _ in names]
    table = pa.table([cells for _, cells in drawn], names=names)
    kinds = {name: kind for name, (kind, _) in zip(names, drawn, strict=True)}
    asked = _draw_asked(rng, kinds, form)
    if n and form != "numpy" and rng.random() < 0.05:
        parts = [rng.integers(-5, 90, n) for _ in range(2)]
        for name, cells in zip(("wages", "capital", "total"), (*parts, sum(parts)), strict=True):
            table, kinds[name] = table.append_column(name, pa.array(cells)), "integers"
        asked |= {"columns": ["total", "wages", "capital"], "sums": "total = wages + capital"}
    output = None
    if rng.random() < 0.8 if form.startswith(".") else rng.random() < 0.3:
        output = form if form.startswith(".") and rng.random() < 0.7 else some(rng, FILES)
    if form in (".csv", ".parquet") and output in (".csv", ".parquet") and rng.random() < 0.3:
        asked |= (
            {"engine": "dask"} if output == ".parquet" and rng.random() < 0.5 else {"engine": "local", "processes": 1}
        )
    dialect = _draw_dialect(rng) if form == ".csv" else {}
    return Case(number, table, kinds, form, asked, dialect, output)


def _draw_dialect(rng):
    """Return a random dialect of a CSV file."""
    return {
        "delimiter": some(rng, [",", ",", ";", "\t", "|"]),
        "missing": some(rng, ["", "", "NA", ".", "null"]),
        "end": some(rng, ["\n", "\n", "\r\n", "\r"]),
        "encoding": some(rng, ["utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16"]),
        "quoting": some(rng, [csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "decimal": some(rng, [".", ".", ","]),
        "blank": bool(rng.random() < 0.1),
    }


def _draw_asked(rng, kinds, form):
    """Return the parameters of a masking: mostly sensible ones, a few together, sometimes nonsense."""
    asked: dict[str, Any] = {"k": some(rng, [2, 2, 3, 3, 4, 5, 8])}
    names = [str(name) for name in rng.permutation(list(kinds))]
    numbers = [name for name in names if kinds[name] in NUMBERS]
    if form == "numpy":  # columns of an array are numbered and numeric
        names = numbers = [*range(len(numbers))]
    masked = (numbers if rng.random() < 0.6 else names)[: int(rng.integers(1, 4))] or names or ["nobody"]
    if rng.random() < 0.8:  # else roles are proposed
        asked["columns"] = masked
        if rng.random() < 0.4:
            asked["rest"] = some(rng, ["keep", "keep", "keep", "error", "drop"])
    if rng.random() < 0.6:
        asked["method"] = some(rng, [*METHODS])
    if rng.random() < 0.7:
        asked["missing"] = some(rng, ["group", "group", "drop", "error"])
    if rng.random() < 0.6:
        asked["max_left_out"] = some(rng, [1, "100%", 0.3, "20%", 0])
    policies = _policies(rng, [name for name in names if name not in masked] or masked, masked)
    for draw in rng.permutation(np.array(policies, dtype=object))[: int(rng.integers(0, 4))]:
        asked |= draw()
    if rng.random() < 0.04:
        asked |= some(rng, NONSENSE)
    if rng.random() < 0.06:
        roles = {name: some(rng, ROLES) for name in kinds}
        asked = {name: value for name, value in asked.items() if name not in NAMED_BY_ROLES} | {"roles": roles}
    return asked | STEPS.get(asked.get("method"), {})


ROLES = (
    "key",
    "key",
    "key",
    "stratum",
    "sensitive",
    "weight",
    "unit",
    "keep",
    "drop",
    {"role": "key", "kind": "nominal"},
)
NAMED_BY_ROLES = ("columns", "by", "confidential", "weights", "unit", "keep", "identifiers", "kinds", "missing_codes")
NONSENSE = [
    {"k": 0}, {"k": 1}, {"k": -3}, {"k": 10**9}, {"k": 2.5}, {"k": "3"}, {"k": True}, {"k": None}, {"method": "mdavv"},
    {"method": ""}, {"columns": []}, {"columns": ["nobody"]}, {"columns": [None]}, {"by": "nobody"}, {"block": -1},
    {"block": 3}, {"split": "some"}, {"engine": "nonsense"}, {"memory": "much"}, {"processes": -7}, {"seed": -1},
    {"seed": "now"}, {"gamma": 1}, {"missing": None}, {"refine": -1}, {"effort": "much"}, {"weights": [1.0, 2.0]},
    {"importance": {"a": -1}}, {"kinds": {"a": "strange"}}, {"sums": "a = = b"}, {"delimiter": ";;"}, {"encoding": "x"},
    {"scheduler": "tcp://localhost:1"}, {"closeness": -1}, {"diversity": "many", "confidential": "a"},
    {"rest": "all"}, {"max_left_out": "much"}, {"max_left_out": -1}, {"decimals": 2}, {"roles": {}},
    {"roles": {"a": 5}}, {"roles": {"a": "kee"}}, {"roles": {"a": {"role": "key", "knd": "nominal"}}},
    {"roles": "nowhere.toml"}, {"scale": "logs"}, {"scale": {"a": None}}, {"scale": 2},
]  # fmt: skip


def _policies(rng, others, masked):
    """Return functions that draw the parameters other than columns and method."""
    choices = {
        "by": others,
        "small": ["suppress", "merge", "error"],
        "weights": others,
        "integers": ["round", "totals", "float"],
        "decimals": ["all"],
        "aggregate": ["median", "medoid"],
        "refine": [5],
        "block": [0, 12, 30],
        "split": ["all", "one", "univariate", "sorted"],
        "block_by": masked,
        "unit": others,
        "confidential": others,
        "zeros": masked,
        "distance": masked,
        "identifiers": others,
        "keep": others,
        "shuffle": [7, True],
        "importance": [{name: 2.0} for name in masked],
        "scale": ["log", "rank", *({name: "log"} for name in masked)],
        "kinds": [{name: kind} for name in masked for kind in ("nominal", "nominal", "date")],
        "missing_codes": [{name: codes} for name in masked for codes in ([0], [1, 99], ["NA"], [-9])],
        "escape_formulas": [True],
        "sums": [f"`{name}` = `{others[0]}`" for name in masked],
    }

    def promise():
        asked = some(rng, [{"diversity": 2}, {"diversity": "entropy:2"}, {"diversity": "recursive:2:3"},
                            {"closeness": 0.1}, {"closeness": 0.4}, {"closeness": 0.4, "diversity": 2}])  # fmt: skip
        method = {"method": some(rng, [*CONFIDENTIAL_METHODS])} if "closeness" in asked and rng.random() < 0.3 else {}
        return {"confidential": some(rng, others), **asked, **method}

    def drawing(name):
        return lambda: {name: some(rng, choices[name])}

    return [promise, *(drawing(name) for name in choices)]


def give(case, folder):
    """Return the table of a case in its form: a frame, or the path of a file in a folder."""
    frame = {
        "polars": lambda: pl.from_arrow(case.table),
        "pandas": lambda: case.table.to_pandas(),
        "nullable": lambda: case.table.to_pandas(types_mapper=pd.ArrowDtype),
        "pyarrow": lambda: case.table,
        "numpy": lambda: _as_array(case.table),
        "dask": lambda: _as_partitions(case.table),
    }.get(case.form)
    if frame is not None:
        return frame()
    path = Path(folder) / f"in{case.form}"
    if case.form == ".csv":
        path.write_bytes(_as_text(case.table, case.dialect))
    elif case.form == ".parquet":
        pq.write_table(case.table, path, row_group_size=20)
    elif case.form == ".feather":
        pyarrow.feather.write_feather(case.table, path)
    elif case.form == ".xlsx":
        pl.from_arrow(case.table).write_excel(path)
    else:
        import pyreadstat

        write = pyreadstat.write_sav if case.form == ".sav" else pyreadstat.write_dta
        write(case.table.to_pandas(), path)
    return path


def _as_array(table):
    columns = [c for c in table.columns if pa.types.is_integer(c.type) or pa.types.is_floating(c.type)]
    return np.column_stack([c.to_numpy() for c in columns]) if columns else np.empty((table.num_rows, 0))


def _as_partitions(table):
    import dask.dataframe as dd

    return dd.from_pandas(table.to_pandas(), npartitions=3)


def _as_text(table, dialect):
    """Return a table as a CSV file in a dialect."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=dialect["delimiter"], quoting=dialect["quoting"], lineterminator=dialect["end"])
    writer.writerow(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow([_cell(value, dialect) for value in row])
        if dialect["blank"]:
            out.write(dialect["end"])
    return out.getvalue().encode(dialect["encoding"], "replace")


def _cell(value, dialect):
    if value is None:
        return dialect["missing"]
    return str(value).replace(".", dialect["decimal"]) if isinstance(value, float) else str(value)
