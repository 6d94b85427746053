"""Columns are selected by their exact names, although polars takes names such as ^.*$ as patterns."""

import csv
import io
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import FileError, VerificationError
from shoal.masking import steps
from shoal.tables.columns import cells_of, check_released, only_columns, with_cells
from shoal.tables.files import FORMATS
from shoal.tables.table import Table

pytestmark = [
    pytest.mark.usefixtures("one_template"),
    pytest.mark.filterwarnings("ignore::shoal.core.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::shoal.core.errors.FormulaWarning"),
]

ROWS = 24
# Patterns that match other columns, themselves, nothing, or that are no patterns at all.
NAMES = [
    "^.*$",
    "^s.*$",
    "*",
    "^secret$",
    "secret",
    "^a|b$",
    "^($",
    '"',
    "a.b",
    "a",
    " ",
    "absent",
    "^$",
    "[s]",
    "0",
    "",
]
ROLES = ("masked", "category", "identifier", "stratum", "unit", "weight", "confidential", "left", "note", "moment")
RUN = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def content(names):
    """Return a table with a column per role, under the given names, and the name of each role."""
    rng, name = np.random.default_rng(1), dict(zip(ROLES, names, strict=False))
    columns = {
        name["masked"]: rng.normal(size=ROWS).round(3).tolist(),
        name["identifier"]: [f"person {i}" for i in range(ROWS)],
        name["category"]: ["x", "x", "y", "z"] * (ROWS // 4),
        name["stratum"]: ["north", "south"] * (ROWS // 2),
        name["unit"]: [f"u{i % 12}" for i in range(ROWS)],
        name["weight"]: [1.0, 2.0] * (ROWS // 2),
        name["confidential"]: ["p", "q", "r"] * (ROWS // 3),
        name["left"]: [float(i * i) for i in range(ROWS)],
        name["note"]: [f"note {i % 5}" for i in range(ROWS)],
        name["moment"]: [f"2024-01-{1 + i % 28:02d}" for i in range(ROWS)],
    }
    return columns, name


def request(name):
    return {
        "columns": [name["masked"], name["category"], name["moment"]],
        "kinds": {name["category"]: shoal.Nominal(), name["moment"]: shoal.Date()},
        "identifiers": [name["identifier"]],
        "by": [name["stratum"]],
        "unit": name["unit"],
        "keep": [name["unit"]],
        "rest": "keep",
        "weights": name["weight"],
        "confidential": [name["confidential"]],
        "diversity": 2,
        "method": "mdav",
    }


def check_release(released, columns, name):
    """Check columns in their order, cells that are not masked, and that masked ones are shared."""
    assert list(released) == [column for column in columns if column != name["identifier"]]
    masked = [name[role] for role in ("masked", "category", "moment")]
    for column, cells in released.items():
        if column not in masked:
            assert cells == columns[column], column
    assert released[name["masked"]] != columns[name["masked"]]
    shared = [released[column] for column in [*masked, name["stratum"]]]
    assert min(Counter(zip(*shared, strict=True)).values()) >= 3


def as_dict(frame):
    """Return the columns of a table of any library."""
    if isinstance(frame, pa.Table):
        return dict(zip(frame.column_names, (column.to_pylist() for column in frame.columns), strict=True))
    if isinstance(frame, pd.DataFrame):
        return {name: frame[name].tolist() for name in frame.columns}
    return frame.to_dict(as_series=False)


def read_csv_columns(path):
    header, *lines = csv.reader(io.StringIO(path.read_text()))
    return {name: list(cells) for name, cells in zip(header, zip(*lines, strict=True), strict=True)}


def as_numbers(released, columns):
    """Return the cells of a CSV file as the table that was written had them."""
    numeric = [name for name, cells in columns.items() if isinstance(cells[0], float)]
    return {name: list(map(float, cells)) if name in numeric else cells for name, cells in released.items()}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@given(names=st.permutations(NAMES))
@example(names=NAMES)
@RUN
def test_mask_releases_exactly_the_planned_columns_of_any_name(library, names):
    columns, name = content(names)
    release = shoal.mask(library(columns), 3, **request(name))
    check_release(as_dict(release.data), columns, name)


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_of_any_column_names(tmp_path, engine, suffix):
    for turn in range(0, len(NAMES), 4):
        columns, name = content([*NAMES[turn:], *NAMES[:turn]])
        table, out = pl.DataFrame(columns), tmp_path / f"out{suffix}"
        path = tmp_path / f"in{suffix}"
        table.write_csv(path) if suffix == ".csv" else table.write_parquet(path)
        shoal.mask(path, 3, **request(name), engine=engine, output=out)
        found = as_numbers(read_csv_columns(out), columns) if suffix == ".csv" else as_dict(pq.read_table(out))
        check_release(found, columns, name)


def test_feather_files_of_any_column_names(tmp_path):
    columns, name = content(NAMES)
    pyarrow.feather.write_feather(pa.table(columns), tmp_path / "in.feather")
    shoal.mask(tmp_path / "in.feather", 3, **request(name), output=tmp_path / "out.feather")
    check_release(as_dict(pyarrow.feather.read_table(tmp_path / "out.feather")), columns, name)


def test_partitions_of_any_column_names():
    dd = pytest.importorskip("dask.dataframe", reason="the extra shoal[dask] is not installed")
    columns, name = content(NAMES)
    frame = dd.from_pandas(pd.DataFrame(columns), npartitions=3)
    check_release(as_dict(shoal.mask(frame, 3, **request(name)).data.compute()), columns, name)


@pytest.mark.parametrize("name", ["^.*$", "*", "^($"])
def test_excel_files_with_patterns_for_names_are_refused(tmp_path, name):
    table = pl.DataFrame({name: np.arange(6.0), "secret": list("abcdef")})
    table.write_excel(tmp_path / "in.xlsx")
    with pytest.raises(FileError, match=re.escape(f"has column {name!r}")):
        shoal.mask(tmp_path / "in.xlsx", 3, columns=[name], output=tmp_path / "out.csv")
    with pytest.raises(FileError, match=re.escape(f"has column {name!r}")):
        shoal.mask(table, 3, columns=[name], output=tmp_path / "out.xlsx")
    with pytest.raises(FileError, match=re.escape(f"has column {name!r}")):
        shoal.publish(table, 1.0, bounds={name: (0, 9)}, output=tmp_path / "out.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["in.xlsx"]


@pytest.mark.parametrize("name", NAMES)
def test_missing_cells_in_columns_of_any_name(name):
    cells = [1.0, None, 2.0, float("nan"), 3.0, None, 4.0, None]
    for library in (pl.DataFrame, pd.DataFrame):
        table = library({name: cells, "secretive": range(8)})
        release = shoal.mask(table, 2, columns=[name], missing="group", keep="secretive")
        assert list(release.data.columns) == [name, "secretive"]
        assert release.data["secretive"].to_list() == list(range(8))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("method", ["none", "insensitive-ir", "marginals"])
@given(names=st.permutations(NAMES))
@example(names=NAMES)
@settings(RUN, max_examples=15)
def test_publish_releases_exactly_the_planned_columns_of_any_name(library, method, names):
    columns, name = content(names)
    release = shoal.publish(
        library(columns),
        1.0,
        bounds={name["masked"]: (-4, 4)},
        categories={name["category"]: ["x", "y", "z"]},
        unit=name["unit"],
        contributions=2,
        method=method,
        **({"delta": 1e-6} if method == "marginals" else {}),
        **({"keep": name["note"]} if method == "none" else {}),
    )
    kept = [name["note"]] if method == "none" else []
    planned = [name["masked"], name["category"], *kept]
    released = as_dict(release.data)
    assert list(released) == [column for column in columns if column in planned]
    assert all(released[column] == columns[column] for column in kept)
    assert not set(released[name["masked"]]) & set(columns[name["masked"]])
    assert set(release.dropped) == set(columns) - set(planned)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_publish_writes_exactly_the_planned_columns_of_any_name(tmp_path, suffix):
    columns, name = content(NAMES)
    pl.DataFrame(columns).write_csv(tmp_path / "in.csv")
    out = tmp_path / f"out{suffix}"
    shoal.publish(tmp_path / "in.csv", 1.0, bounds={name["masked"]: (-4, 4)}, method="none", output=out)
    read = {
        ".csv": lambda: pl.read_csv(out),
        ".parquet": lambda: pl.read_parquet(out),
        ".xlsx": lambda: pl.read_excel(out),
    }
    assert read[suffix]().columns == [name["masked"]]


# As they were found


def test_a_pattern_does_not_publish_another_column():
    table = pl.DataFrame({"^.*$": [0.1, 0.2, 0.3], "secret": [7.0, 8.0, 9.0]})
    release = shoal.publish(table, 1.0, bounds={"^.*$": (0, 1)}, method="none")
    assert release.data.columns == ["^.*$"]
    assert release.dropped == ("secret",)


def test_an_identifier_whose_name_is_a_pattern_is_dropped():
    table = pl.DataFrame({"^s.*$": list("abcdef"), "sales": np.arange(6.0), "size": np.arange(6.0)})
    release = shoal.mask(table, 3, columns=["sales"], identifiers=["^s.*$"], keep=["size"])
    assert release.data.columns == ["sales", "size"]


def run(folder, *words):
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_patterns_on_the_command_line(tmp_path):
    lines = ["^.*$,^s.*$,secret", *(f"0.{i % 9},name {i},{i}" for i in range(12))]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    run(tmp_path, "publish", "in.csv", "-e", "1", "--bounds", "^.*$=0:1", "-m", "none", "-o", "published.csv")
    assert (tmp_path / "published.csv").read_text().splitlines()[0] == "^.*$"
    run(tmp_path, "mask", "in.csv", "-k", "3", "-c", "^.*$", "--drop", "^s.*$", "--keep", "secret", "-o", "masked.csv")
    found = read_csv_columns(tmp_path / "masked.csv")
    assert list(found) == ["^.*$", "secret"]
    assert found["secret"] == [str(i) for i in range(12)]
    assert "^s.*$" in run(tmp_path, "inspect", "in.csv")
    run(tmp_path, "assess", "in.csv", "masked.csv", "-c", "^.*$")


# The last check


def leaking(self, _):
    """Return the table with a column that must not leave."""
    return self


def test_mask_releases_nothing_if_a_column_was_not_planned(tmp_path, monkeypatch):
    table = pl.DataFrame({"name": list("abcdef"), "sales": np.arange(6.0)})
    monkeypatch.setattr(Table, "without", leaking)
    with pytest.raises(VerificationError, match=r"Column 'name' is in the release.*Nothing was released"):
        shoal.mask(table, 3, columns=["sales"], identifiers=["name"], output=tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_mask_releases_nothing_if_a_written_column_was_not_planned(tmp_path, monkeypatch):
    table = pl.DataFrame({"name": list("abcdef"), "sales": np.arange(6.0)})
    monkeypatch.setattr(Table, "without", leaking)
    monkeypatch.setattr(steps, "check_released", lambda *_: None)
    with pytest.raises(VerificationError, match=r"Column 'name' is in the release"):
        shoal.mask(table, 3, columns=["sales"], identifiers=["name"], output=tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_publish_releases_nothing_if_a_column_was_not_planned(tmp_path, monkeypatch):
    table = pl.DataFrame({"name": list("abcdef"), "sales": np.arange(6.0)})
    asked = {"bounds": {"sales": (0, 9)}, "ledger": tmp_path / "l.json", "dataset": "firms", "total_budget": 1.0}
    monkeypatch.setattr(Table, "only", leaking)
    with pytest.raises(VerificationError, match=r"Column 'name' is in the release.*Nothing was released"):
        shoal.publish(table, 1.0, **asked, new_ledger=True, output=tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())  # nor is anything spent


def test_publish_releases_nothing_if_a_written_column_was_not_planned(tmp_path, monkeypatch):
    table = pl.DataFrame({"name": list("abcdef"), "sales": np.arange(6.0)})
    wrong = replace(FORMATS[".csv"], write=lambda _, path: path.write_text("sales,other\n1,2\n"))
    monkeypatch.setitem(FORMATS, ".csv", wrong)
    with pytest.raises(VerificationError, match=r"Column 'other' is in the release"):
        shoal.publish(table, 1.0, bounds={"sales": (0, 9)}, output=tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


# The helpers


@given(names=st.lists(st.sampled_from(NAMES), min_size=1, unique=True), data=st.data())
@RUN
def test_helpers_do_not_take_names_as_patterns(names, data):
    frame = pl.DataFrame({name: [str(place), None] for place, name in enumerate(names)})
    some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    assert only_columns(frame, some).to_dict(as_series=False) == {
        name: frame.to_dict()[name].to_list() for name in some
    }
    for name in some:
        assert cells_of(frame, name).str.strip_chars().to_list() == [str(names.index(name)), None]
    new = with_cells(frame, {name: pl.Series([name, "!"]) for name in [*some, "new"]})
    assert new.columns == [*names, "new"]
    assert new.rows()[1] == tuple("!" if name in [*some, "new"] else None for name in new.columns)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "Column 'b' is not in the release"),
        (["a", "b", "c"], "Column 'c' is in"),
        (["b", "a"], "not in the planned order"),
    ],
)
def test_released_columns_are_the_planned_ones(names, message):
    check_released(["a", "b"], ["a", "b"])
    with pytest.raises(VerificationError, match=message):
        check_released(names, ["a", "b"])


def test_inspect_assess_and_compare_find_columns_of_any_name(tmp_path):
    for turn in range(0, len(NAMES), 4):
        columns, name = content([*NAMES[turn:], *NAMES[:turn]])
        table = pl.DataFrame(columns)
        table.write_csv(tmp_path / "in.csv")
        asked = {"columns": [name["masked"], name["category"]], "kinds": {name["category"]: shoal.Nominal()}}
        for data in (table, table.to_pandas(), tmp_path / "in.csv"):
            assert [column.name for column in shoal.inspect(data).columns] == list(columns)
            masked = shoal.mask(data, 3, **asked, by=[name["stratum"]])
            found = shoal.assess(data, masked.data, **asked)
            assert [column.name for column in found.utility.columns] == asked["columns"]
            masked.report(tmp_path / "report.html", original=data)
        compared = shoal.compare(table, [3], methods=["mdav"], columns=[name["masked"]])
        assert len(compared.trials) == 1
