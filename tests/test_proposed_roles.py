"""Proposed roles: masking without named columns, overrides by the user, and columns that never leave."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError
from shoal.masking import proposed_roles
from shoal.masking.proposed_roles import PROPOSED

pytestmark = pytest.mark.usefixtures("one_template")


@pytest.fixture
def people():
    """Return a table whose columns have all roles by their names and cells."""
    rng = np.random.default_rng(0)
    n = 200
    return pl.DataFrame(
        {
            "last_name": [f"Miller {i}" for i in range(n)],
            "age": rng.integers(20, 80, n),
            "visits": rng.normal(3000, 500, n).round(),
            "job": rng.choice(["cook", "nurse", "clerk"], n),
            "region": rng.choice(["north", "south"], n),
            "religion": rng.choice(["a", "b", "none of them"], n),
            "survey_weight": rng.uniform(1, 2, n).round(3),
            "constant": ["x"] * n,
        }
    )


def roles_of(release):
    """Return what a release did with its columns, by parameter."""
    names = ("columns", "by", "confidential", "weights", "unit", "keep", "identifiers")
    return {name: release.parameters[name] or None for name in names}


def test_every_column_has_a_role_and_what_is_left_out_a_reason(people):
    release = shoal.mask(people, 3)
    assert roles_of(release) == {
        "columns": ["age", "visits", "job"],
        "by": ["region"],
        "confidential": ["religion"],
        "weights": "survey_weight",
        "unit": None,
        "keep": None,
        "identifiers": ["last_name", "constant"],
    }
    assert release.dropped == {
        "last_name": "the column name suggests a name",
        "constant": "the same value in all records",
    }
    assert release.data.columns == ["age", "visits", "job", "region", "religion", "survey_weight"]
    assert release.notes[0] == PROPOSED
    assert PROPOSED in str(release)
    assert release.data.group_by("age", "visits", "job", "region").len()["len"].min() >= 3
    named = shoal.mask(people, 3, **{name: value for name, value in roles_of(release).items() if value})
    assert named.data.equals(release.data)
    assert PROPOSED not in named.notes


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"by": "job"}, {"by": ["job"], "columns": ["age", "visits", "region"]}),
        ({"by": ["job", "region"]}, {"by": ["job", "region"], "columns": ["age", "visits"]}),
        ({"confidential": "job"}, {"confidential": ["job"], "columns": ["age", "visits"],
                                   "identifiers": ["last_name", "religion", "constant"]}),
        ({"weights": "visits"}, {"weights": "visits", "columns": ["age", "job"],
                                 "identifiers": ["last_name", "survey_weight", "constant"]}),
        ({"keep": "religion"}, {"keep": ["religion"], "confidential": None}),
        ({"keep": ["last_name"]}, {"keep": ["last_name"], "identifiers": ["constant"]}),
        ({"keep": "age"}, {"keep": ["age"], "columns": ["visits", "job"]}),
        ({"identifiers": "age"}, {"columns": ["visits", "job"], "identifiers": ["last_name", "age", "constant"]}),
        ({"identifiers": ["region", "religion"]}, {"by": None, "confidential": None,
                                                    "identifiers": ["last_name", "region", "religion", "constant"]}),
        ({"unit": "last_name"}, {"unit": "last_name", "identifiers": ["constant"]}),
        ({"kinds": {"religion": "nominal"}, "confidential": "job"},
         {"columns": ["age", "visits", "religion"], "confidential": ["job"], "identifiers": ["last_name", "constant"]}),
        ({"importance": {"survey_weight": 2.0}},
         {"weights": None, "columns": ["age", "visits", "job", "survey_weight"]}),
        ({"zeros": "survey_weight"}, {"weights": None, "columns": ["age", "visits", "job", "survey_weight"]}),
    ],
)  # fmt: skip
def test_columns_named_by_the_user_override_proposals(people, named, expected):
    proposed = roles_of(shoal.mask(people, 3, method="mdav"))
    release = shoal.mask(people, 3, method="mdav", **named)
    assert roles_of(release) == {**proposed, **expected}
    left_out = {*expected.get("identifiers", proposed["identifiers"]), expected.get("unit")} - {None}
    assert set(people.columns) - set(release.data.columns) == left_out


def test_kinds_and_codes_of_the_user_are_used(people):
    table = people.with_columns(visits=pl.when(pl.int_range(200) % 10 == 0).then(-8).otherwise("visits"))
    kinds = {"age": shoal.Nominal(), "job": shoal.Ordinal(["cook", "clerk", "nurse"])}
    release = shoal.mask(table, 3, kinds=kinds, missing_codes={"visits": [-8]}, max_left_out=1, method="mdav")
    assert release.kinds["age"].startswith("nominal")
    assert release.kinds["job"].startswith("ordinal")
    assert release.parameters["missing_codes"]["visits"] == [-8]
    codes = release.data.filter(table["visits"] == -8)["visits"]
    assert len(codes) == 20
    assert set(codes) == {-8}  # the code stays: it is not averaged with visitss
    assert release.data.filter(table["visits"] != -8)["visits"].min() > 1000


def test_a_vector_of_weights_takes_the_place_of_a_proposed_column(people):
    release = shoal.mask(people, 3, weights=np.ones(200), method="mdav")
    assert "survey_weight" not in release.data.columns
    assert set(release.dropped) == {"last_name", "survey_weight", "constant"}


@pytest.mark.parametrize("parameter", ["by", "confidential", "keep", "identifiers", "weights", "unit"])
def test_a_name_that_no_column_has_is_refused(people, parameter):
    with pytest.raises(InputError, match=f"'{parameter}' names column 'regoin', which the table does not have"):
        shoal.mask(people, 3, **{parameter: "regoin"})


@pytest.mark.parametrize("rest", ["keep", "error"])
def test_other_columns_require_named_ones(people, rest):
    with pytest.raises(InputError, match=f"rest='{rest}' requires 'columns'"):
        shoal.mask(people, 3, rest=rest)


def test_promises_hold_for_proposed_sensitive_columns(people):
    release = shoal.mask(people, 3, diversity=2)
    assert release.parameters["confidential"] == ["religion"]
    groups = release.data.group_by([name for name in release.data.columns if name in (*release.columns, "region")])
    assert groups.agg(pl.col("religion").n_unique())["religion"].min() >= 2
    for table, named in ((people.drop("religion"), {}), (people, {"columns": ["age"]}), (np.eye(9), {})):
        with pytest.raises(InputError, match=r"'diversity' requires sensitive columns\. Name them in 'confidential'"):
            shoal.mask(table, 3, diversity=2, **named)


def test_an_array_has_no_names_to_judge_by():
    X = np.random.default_rng(0).normal(size=(60, 3)).round(2)
    release = shoal.mask(X, 3, seed=0)
    assert release.columns == [0, 1, 2]
    assert release.data.tolist() == shoal.mask(X, 3, columns=[0, 1, 2], seed=0).data.tolist()


def test_a_table_without_any_key_is_refused_with_the_reasons():
    table = pl.DataFrame({"name": [f"Miller {i}" for i in range(40)], "row": range(40)})
    with pytest.raises(InputError, match=r"No column can be masked: name .drop: the column name suggests a name., row"):
        shoal.mask(table, 3)


# --- the same on every engine ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")  # Dask and its libraries warn about themselves
def test_all_engines_propose_the_same(people, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    people.write_csv(tmp_path / "in.csv")
    people.write_parquet(tmp_path / "in.parquet", row_group_size=50)
    memory = shoal.mask(people, 3, method="mdav")
    releases = [
        shoal.mask(
            tmp_path / f"in{end}", 3, method="mdav", engine=engine, output=tmp_path / f"{engine}{end[1:]}.parquet"
        )
        for end in (".csv", ".parquet")
        for engine in ("memory", "local", "dask")
    ]
    releases.append(shoal.mask(dd.from_pandas(people.to_pandas(), npartitions=3), 3, method="mdav"))
    for release in releases:
        assert roles_of(release) == roles_of(memory)
        assert release.dropped == memory.dropped
        assert release.notes[0] == PROPOSED
        assert release.loss == pytest.approx(memory.loss)


@pytest.mark.parametrize("end", [".csv", ".parquet"])
def test_a_file_larger_than_the_sample_has_the_same_columns(people, tmp_path, monkeypatch, end):
    """The roles of a large table are judged by its first records; it is masked as a whole."""
    table = pl.concat([people.with_columns(pl.col("last_name") + f" {part}") for part in range(20)])
    path = tmp_path / f"in{end}"
    table.write_csv(path) if end == ".csv" else table.write_parquet(path, row_group_size=500)
    expected = shoal.mask(table, 3, method="mdav", block=100)
    monkeypatch.setattr(proposed_roles, "JUDGED", 300)
    asked = {"method": "mdav", "block": 100}
    for engine in ("memory", "local", "dask"):
        release = shoal.mask(path, 3, engine=engine, output=tmp_path / f"{engine}.parquet", **asked)
        assert roles_of(release) == roles_of(expected)
        assert release.records == len(table)
        assert release.loss == pytest.approx(expected.loss)


# --- files with errors -----------------------------------------------------------------------------------------------

ODD_CELLS = [
    ("n/a?", "record 150 holds 'n/a?'", "add its value to 'missing_codes' if that means missing"),
    ("12x", "record 150 holds '12x'", "Correct the cell or remove its line"),
    ("Total", "record 150 holds 'Total'", "remove its line"),
    ("$ 5", r"record 150 holds '$ 5'", "Remove the currency"),
]


@pytest.mark.parametrize("various", [True, False])
@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize(("cell", "record", "remedy"), ODD_CELLS)
def test_an_odd_cell_in_a_column_of_numbers_is_refused_with_the_record(
    people, tmp_path, engine, cell, record, remedy, various
):
    """Such a column is masked neither as categories nor left out as an identifier whose values all differ."""
    pay = [str(1000 + 7 * i if various else 1000.5 + i % 30) for i in range(200)]
    pay[149] = cell
    people.with_columns(pay=pl.Series(pay)).write_csv(tmp_path / "in.csv")
    asked = {"engine": engine, "output": tmp_path / "out.csv", "method": "mdav"}
    with pytest.raises(InputError) as refused:
        shoal.mask(tmp_path / "in.csv", 3, **asked)
    assert f"Column 'pay' contains numbers, but {record}" in str(refused.value)
    assert remedy in str(refused.value)
    assert not (tmp_path / "out.csv").exists()
    for ways, columns in (
        ({"missing_codes": {"pay": [cell]}}, ["age", "visits", "job", "pay"]),
        ({"kinds": {"pay": shoal.Nominal()}}, ["age", "visits", "job", "pay"]),
        ({"identifiers": ["pay"]}, ["age", "visits", "job"]),
        ({"keep": ["pay"]}, ["age", "visits", "job"]),
    ):
        release = shoal.mask(tmp_path / "in.csv", 3, **asked, **ways)
        assert release.columns == columns
        assert release.kinds.get("pay", "number").startswith("nominal") == ("kinds" in ways)


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_thousands_signs_are_refused_until_they_are_named(people, tmp_path, engine):
    pay = [f"{1 + i % 40}.{100 + i % 7}" for i in range(199)] + ["1.234.567"]
    people.with_columns(pay=pl.Series(pay)).write_csv(tmp_path / "in.csv", separator=";")
    asked = {"engine": engine, "output": tmp_path / "out.csv", "method": "mdav", "delimiter": ";"}
    with pytest.raises(
        InputError, match=r"Column 'pay' contains numbers, but record 200 holds '1\.234\.567'.*thousands='\.'"
    ):
        shoal.mask(tmp_path / "in.csv", 3, **asked)
    table = people.select("age", "job").with_columns(pay=pl.Series(pay))
    table.write_csv(tmp_path / "in.csv", separator=";")
    assert shoal.mask(tmp_path / "in.csv", 3, **asked, thousands=".").columns == ["age", "job", "pay"]


def test_few_values_among_numbers_are_a_code():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"age": rng.integers(20, 80, 90), "class": rng.choice(["1", "2", "3", "crew"], 90)})
    release = shoal.mask(table, 3)
    assert release.columns == ["age", "class"]
    assert release.kinds["class"].startswith("nominal")


def test_an_identifier_by_its_name_is_no_column_of_numbers():
    numbers = [str(1000 + 7 * i) for i in range(39)]
    table = pl.DataFrame({"age": [20 + i * i % 37 for i in range(40)], "person_id": [*numbers, "none"]})
    assert list(shoal.mask(table, 3).dropped) == ["person_id"]


# --- columns that never leave ----------------------------------------------------------------------------------------

NUMBERS = st.integers(10**6, 10**9)
CELLS = (  # few or many values, of each type
    st.integers(0, 9),
    st.sampled_from(["red", "green"]),
    NUMBERS,
    NUMBERS.map(lambda number: f"s{number}"),
    NUMBERS.map(str),
    NUMBERS.map(lambda number: number / 1024),
)
COLUMN_NAMES = ["age", "id", "name", "note", "x", "diagnosis", "region", "weight", "zip", "date", "Größe"]


@st.composite
def tables(draw):
    """Draw the columns of a table."""
    n = draw(st.integers(12, 40))
    names = draw(st.lists(st.sampled_from(COLUMN_NAMES), min_size=1, max_size=4, unique=True))
    return {name: draw(st.sampled_from(CELLS).flatmap(lambda cells: st.lists(cells, min_size=n, max_size=n)))
            for name in names}  # fmt: skip


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    named=tables(),
    secret=st.lists(st.integers(10**12, 10**15), min_size=40, max_size=40, unique=True),
    secret_name=st.sampled_from(["visits", "phone", "remark", "surname", "q7", "diagnosis code", "persnr"]),
    as_text=st.booleans(),
    ending=st.sampled_from([".csv", ".parquet", ".xlsx", ".dta"]),
    given_as=st.sampled_from(["polars", "pandas", "file"]),
    parameters=st.fixed_dictionaries(
        {},
        optional={
            "shuffle": st.just(1),
            "integers": st.sampled_from(["round", "float", "totals"]),
            "decimals": st.sampled_from(["fit", "all"]),
            "missing": st.sampled_from(["group", "drop", "error"]),
            "small": st.sampled_from(["merge", "suppress", "error"]),
            "rest": st.just("drop"),
        },
    ),
    other_role=st.sampled_from([None, "by", "confidential", "keep"]),
)  # fmt: skip
def test_no_value_of_an_unnamed_column_leaves(
    tmp_path_factory, named, secret, secret_name, as_text, ending, given_as, parameters, other_role
):
    """Whatever the table: what nobody named is not in the file, nor in its name, labels, metadata or summary."""
    folder = tmp_path_factory.mktemp("leaves")
    n = len(next(iter(named.values())))
    secrets = [f"z{number}" if as_text else number for number in secret[:n]]
    table = pl.DataFrame({**{name.replace("Größe", "size"): cells for name, cells in named.items()}})
    names = table.columns
    table = table.with_columns(pl.Series(secret_name, secrets))
    data = {"polars": lambda: table, "pandas": table.to_pandas, "file": lambda: _as_file(table, folder)}[given_as]()
    roles = {"columns": names[:1]} | ({other_role: names[1:]} if other_role and names[1:] else {})
    output = folder / f"out{ending}"
    try:
        release = shoal.mask(data, 2, **roles, **parameters, method="mdav", output=output, labels=folder / "labels.csv")
    except shoal.ShoalError:
        assert not output.exists()
        return
    expected = [name for name in table.columns if name in {column for role in roles.values() for column in role}]
    written = _read(output)
    assert written.columns == expected
    unnamed = [name for name in table.columns if name not in expected]
    assert set(unnamed) <= set(release.dropped)
    for path in (output, folder / "labels.csv"):
        raw = path.read_bytes()
        cells = " ".join(str(cell) for row in _read(path).rows() for cell in row)
        for value in secrets:
            digits = str(value).strip("z")
            assert digits.encode() not in raw
            assert digits not in cells
    assert not any(str(value).strip("z") in str(release) for value in secrets)


def _as_file(table, folder):
    table.write_csv(folder / "in.csv")
    return folder / "in.csv"


def _read(path: Path) -> pl.DataFrame:
    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema=False)
    if path.suffix == ".xlsx":
        return pl.read_excel(path)
    if path.suffix == ".dta":
        return pl.from_pandas(pd.read_stata(path))
    return pl.read_parquet(path)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(tables(), st.sampled_from([2, 3, 5]))  # fmt: skip
def test_what_is_proposed_releases_no_column_unchanged_but_sensitive_ones_and_weights(tmp_path_factory, drawn, k):
    folder = tmp_path_factory.mktemp("proposed")
    table = pl.DataFrame(drawn)
    try:
        release = shoal.mask(table, k, method="mdav", max_left_out=1, output=folder / "out.parquet")
    except shoal.ShoalError:
        assert not (folder / "out.parquet").exists()
        return
    written = pl.read_parquet(folder / "out.parquet")
    proposed = roles_of(release)
    unchanged = {*(proposed["confidential"] or ()), *([proposed["weights"]] if proposed["weights"] else ())}
    known = [*release.columns, *(proposed["by"] or ())]
    assert set(written.columns) == {*known, *unchanged}
    assert {*known, *unchanged, *release.dropped} | {proposed["unit"]} - {None} >= set(table.columns)
    if len(written):
        assert written.group_by(known).len()["len"].min() >= k


# Promises of proposed sensitive columns


def patients(**columns):
    rng = np.random.default_rng(3)
    return pl.DataFrame({"age": rng.integers(20, 80, 200), "height": rng.integers(150, 200, 200), **columns})


def test_the_verdict_names_a_remedy_that_works(tmp_path):
    table = patients(diagnosis=["flu"] * 150 + ["gout"] * 50)
    free = shoal.mask(table, 5, method="mdav")
    (reason,) = [reason for reason in free.verdict.reasons if (reason.level, reason.name) == ("stop", "sensitive")]
    assert "use diversity=2" in reason.sentence
    kept = shoal.mask(table, 5, method="mdav", diversity=2)
    assert kept.homogeneous["diagnosis"].groups == 0
    assert kept.data.group_by("age", "height").agg(pl.col("diagnosis").n_unique())["diagnosis"].min() == 2
    table.write_csv(tmp_path / "in.csv")
    done = command("mask", "in.csv", "-k", 5, "-m", "mdav", "-o", "out.csv", cwd=tmp_path)
    assert "; use --diversity 2 for two values in every group, or leave columns out with --drop" in done.stdout
    done = command("mask", "in.csv", "-k", 5, "-m", "mdav", "-o", "out.csv", "--diversity", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "thereby disclosed" not in done.stdout


def test_a_promise_is_refused_where_no_sensitive_column_is_proposed():
    with pytest.raises(shoal.InputError, match="'diversity' requires sensitive columns"):
        shoal.mask(patients(), 5, diversity=2)
    with pytest.raises(shoal.InputError, match="'diversity' requires sensitive columns"):
        shoal.mask(patients().to_numpy(), 5, diversity=2)
