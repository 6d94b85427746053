"""inspect(): roles, kinds and reasons on the reference tables and on small ones, and the command that follows."""

import shlex
import subprocess
import sys
from html import escape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command, reference_path

import shoal
from shoal import inspect
from shoal.demo import firms
from shoal.tables.files import write_file
from shoal.tables.formats.frames import open_table

NUMBERS = {"float", "integer"}


def people(n=60):
    """Return a table with a column of nearly every role."""
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "patient_id": rng.permutation(n) * 37 + 1000,
            "mail": [f"p{i}@example.org" for i in range(n)],
            "region": ["north", "south"] * (n // 2),
            "hid": np.arange(n) // 3,
            "age": rng.integers(18, 90, n),
            "height": rng.normal(170, 8, n),
            "sex": rng.integers(1, 3, n),
            "born": pl.Series(rng.integers(0, 9000, n)).cast(pl.Date),
            "diagnosis": rng.choice(["a", "b", "c"], n),
            "visits": [-9, -9, -9, *rng.integers(0, 40, n - 3)],
            "fine": [0.0] * (n - 2) + [2.5, 100.0],
            "country": ["XX"] * n,
            "empty": [None] * n,
        }
    )


ROLES = {
    "patient_id": "identifier",
    "mail": "identifier",
    "region": "key",
    "hid": "unit",
    "age": "key",
    "height": "key",
    "sex": "key",
    "born": "key",
    "diagnosis": "confidential",
    "visits": "key",
    "fine": "key",
    "country": "other",
    "empty": "other",
}


# The reference tables


def test_adult():
    found = inspect(reference_path("adult"))
    keys = set(found.named("key"))
    assert {"age", "sex", "race", "marital-status", "education", "native-country", "workclass", "occupation"} <= keys
    assert found.roles["fnlwgt"] == "weight"
    assert not found.named("identifier")
    assert {found.kinds[name] for name in ("age", "education-num", "hours-per-week")} == {"integer"}
    assert {found.kinds[name] for name in ("sex", "race", "native-country")} == {"nominal"}
    reasons = {column.name: column.reason for column in found.columns}
    assert "99999 (148 times)" in reasons["capital-gain"]
    assert "95.3 % are zero" in reasons["capital-loss"]


def test_covid_testing():
    found = inspect(reference_path("covid_testing"))
    assert found.named("identifier") == ["subject_id", "fake_first_name", "fake_last_name"]
    assert found.named("confidential") == ["result", "ct_result"]
    assert {"age", "gender", "clinic_name"} <= set(found.named("key"))


def test_an_id_that_repeats_is_dropped_and_counted():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"patient_id": 1000 + rng.permutation(500).repeat(1 + (np.arange(500) % 4 == 0)), "age": 30})
    table = table.with_columns(age=pl.Series(rng.integers(20, 90, len(table))))
    found = shoal.inspect(table, k=3)
    assert found.roles["patient_id"] == "identifier"
    assert "unit='patient_id'" in found.command
    assert "identifiers=['patient_id']" in found.command
    exec(found.command, {"data": table})


def test_testdata():
    found = inspect(reference_path("testdata"))
    codes = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex", "hhcivil")
    assert {found.kinds[name] for name in codes} == {"nominal"}
    assert {found.kinds[name] for name in ("age", "expend", "income", "savings")} <= NUMBERS
    assert found.roles["ori_hid"] == "unit"
    assert found.named("weight") == ["sampling_weight", "household_weights"]
    assert "--weights sampling_weight" in found.command
    for name in (*codes, "age"):
        assert f"-c {name} " in found.command
    assert found.named("confidential") == ["expend", "income", "savings"]
    for name in ("expend", "income", "savings"):
        assert f"--confidential {name} " in found.command
    assert all(f"--nominal {name} " in found.command for name in codes)


@pytest.mark.parametrize(
    ("name", "identifiers"), [("census", []), ("tarragona", []), ("california", []), ("eia", ["UTILNAME"])]
)
def test_no_measurement_is_mistaken_for_an_identifier(name, identifiers):
    found = inspect(reference_path(name))
    assert found.named("identifier") == identifiers
    assert not found.named("other") or found.named("other") == ["YEAR"]


# What is found


@pytest.mark.parametrize("native", [pl.DataFrame, lambda frame: frame.to_pandas(), lambda frame: frame.to_arrow()])
def test_roles_in_every_kind_of_table(native):
    assert inspect(native(people())).roles == ROLES


def test_roles_of_a_csv_file(tmp_path):
    people().write_csv(tmp_path / "people.csv", separator=";")
    found = inspect(tmp_path / "people.csv", delimiter=";")
    assert found.roles == ROLES
    assert found.kinds["born"] == "date"


def test_counts_and_missing_cells():
    frame = pl.DataFrame({"a": [1.5, 2.5, None, float("nan"), 2.5], "b": ["x", None, " ", "y", "y"]})
    a, b = inspect(frame, k=2).columns
    assert (a.distinct, a.missing) == (2, 2)
    assert (b.distinct, b.missing) == (2, 2)


def test_unique_records_are_counted_over_the_keys_and_over_the_strata_too():
    sizes = [1.5, 1.5, 2.5] + [3.5] * 27 + [1.5, 2.5, 7.5] + [3.5] * 27
    found = inspect(pl.DataFrame({"region": ["n"] * 30 + ["s"] * 30, "size": sizes}), k=3)
    assert found.roles == {"region": "stratum", "size": "key"}
    assert (found.uniques, found.uniques_in_strata) == (1, 4)


def test_strata_have_room_for_ten_groups_together():
    frame = pl.DataFrame({"region": ["n"] * 60 + ["s"] * 60, "sector": ["a", "b"] * 60, "x": np.arange(120) / 7})
    assert inspect(frame, k=3).named("stratum") == ["region", "sector"]
    assert inspect(frame, k=4).named("stratum") == ["region"]
    assert inspect(frame, k=7).named("stratum") == []


def test_a_weight_beside_a_height_is_of_a_body():
    frame = pl.DataFrame({"weight": [7.5, 18.5, 26.5], "size": [1.5, 2.5, 3.5]})
    assert inspect(frame, k=2).roles["weight"] == "weight"
    assert inspect(frame.rename({"size": "height"}), k=2).roles["weight"] == "key"


def test_ordered_categories_are_ordinal():
    words = ["low", "high", "low"]
    ordered = pd.DataFrame({"a": pd.Categorical(words, ["low", "high"], ordered=True), "b": pd.Categorical(words)})
    enum = pl.DataFrame({"a": pl.Series(words, dtype=pl.Enum(["low", "high"])), "b": words})
    for table in (ordered, pa.Table.from_pandas(ordered), enum):
        assert inspect(table, k=2).kinds == {"a": "ordinal", "b": "nominal"}


def test_labels_of_a_statistical_package_make_a_category(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pl.DataFrame(
        {"grade": [1.0, 2.0, 3.0, 1.0], "town": [11.0, 12.0, 11.0, 12.0], "age": [30.0, 41.0, 52.0, 9.0]}
    )
    pyreadstat.write_sav(
        frame,
        tmp_path / "a.sav",
        variable_value_labels={"grade": {1: "low", 2: "mid", 3: "high"}, "town": {11: "A", 12: "B"}, "age": {99: "?"}},
        variable_measure={"grade": "ordinal", "town": "nominal", "age": "scale"},
    )
    assert inspect(tmp_path / "a.sav", k=2).kinds == {"grade": "ordinal", "town": "nominal", "age": "integer"}


def test_odd_tables():
    assert inspect(np.arange(12.0).reshape(6, 2) / 7, k=2).roles == {0: "key", 1: "key"}
    assert inspect(pl.DataFrame({"a": []}), k=2).roles == {"a": "other"}
    assert inspect(pl.DataFrame(), k=2).columns == ()
    nested = pl.DataFrame({"a": [[1], [2], [1]], "b": [{"c": 1}, None, {"c": 2}], "d": [b"x", b"y", b"x"]})
    assert set(inspect(nested, k=2).kinds.values()) == {"nominal"}
    mixed = pd.DataFrame({"a": [1, "x", None], ("b", 1): [1.5, 2.5, 3.5]})
    assert inspect(mixed, k=2).kinds["a"] == "nominal"


@pytest.mark.parametrize("kind", [pl.Int8, pl.Int64, pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_numbers_of_every_type(kind):
    visits = pl.Series([*range(30), None, None, None, -9, -9, -9]).cast(kind)
    found = inspect(pl.DataFrame({"visits": visits, "age": np.arange(36) / 7}), k=3)
    assert found.kinds["visits"] == "integer"
    assert found.columns[0].missing == 3
    assert "-9 (3 times)" in found.columns[0].reason
    assert "missing_codes={'visits': [-9]}" in found.command


# What is printed


def test_it_prints_columns_reasons_and_command_but_no_identifier():
    frame = people()
    found = inspect(frame)
    page = found._repr_html_()
    for column in found.columns:
        assert column.reason in str(found)
        assert escape(column.reason) in page
    assert "left out           5: patient_id, mail, hid, country, empty" in str(found)
    assert "-9 (3 times)" in str(found)
    assert "96.7 % are zero" in str(found)
    assert found.command in str(found)
    for text in (str(found), page, repr(found)):
        assert not any(cell in text for cell in frame["mail"])
        assert not any(str(cell) in text for cell in frame["patient_id"])


def test_without_a_key_that_can_be_masked_there_is_no_command():
    found = inspect(pl.DataFrame({"town": ["a"] * 18}), k=2)
    assert found.command == ""
    assert "nothing: no key can be masked" in str(found)


def test_the_call_for_a_table_runs():
    data = people()
    found = inspect(data)
    namespace = {"data": data}
    exec(found.command.replace("shoal.mask(", "release = shoal.mask("), namespace)
    assert [name for name in namespace["release"].columns if name not in namespace["release"].kinds] == [
        "age",
        "height",
        "visits",
        "fine",
    ]
    assert set(namespace["release"].data.columns) == set(data.columns) - {
        *found.named("identifier"),
        "hid",
        "country",
        "empty",
    }


@pytest.mark.parametrize("few", [5, 2])
def test_the_command_for_a_file_runs(tmp_path, few):
    frame = (
        firms(200)
        .with_columns(pl.Series("research", [None] * few + [1.5] * (200 - few)), region=pl.lit("a"))
        .drop("sector")
    )
    write_file(frame, tmp_path / "some firms.csv")
    done = command("inspect", "some firms.csv", "-k", 5, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = done.stdout.strip().splitlines()[-1]
    program, *words = shlex.split(line)
    assert program == "shoal"
    assert command(*words, cwd=tmp_path).returncode == 0
    assert (tmp_path / "some firms-masked.csv").exists()


def test_refusals(tmp_path):
    with pytest.raises(shoal.InputError, match="'k' must be at least 2"):
        inspect(people(), k=1)
    with pytest.raises(shoal.InputError, match="'delimiter' requires a CSV file"):
        inspect(people(), delimiter=";")
    assert "does not exist" in command("inspect", "none.csv", cwd=tmp_path).stderr


def test_column_types_declare_categories(tmp_path):
    assert open_table(np.zeros((2, 1))).scale(0) is None
    assert open_table(pl.DataFrame({"a": ["x"]})).scale("a") is None
    assert open_table(pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Categorical)})).scale("a") == "nominal"


@pytest.mark.parametrize("as_file", [True, False])
def test_codes_with_zeros_before_them_are_masked_as_categories(tmp_path, as_file):
    table = pl.DataFrame({"c": [i * 37 % 101 / 10 for i in range(60)], "plz": ["01067", "01069", "10115"] * 20})
    table.write_csv(tmp_path / "in.csv")
    found = inspect(tmp_path / "in.csv" if as_file else table, k=3)
    assert found.kinds["plz"] == "nominal"
    if as_file:
        assert command(*shlex.split(found.command)[1:], cwd=tmp_path).returncode == 0
        released = pl.read_csv(tmp_path / "in-masked.csv", schema_overrides={"plz": pl.String})["plz"]
    else:
        space = {"data": table}
        exec(found.command.replace("shoal.mask(", "release = shoal.mask("), space)
        released = space["release"].data["plz"]
    assert set(released) <= set(table["plz"])


def test_codes_that_begin_with_p_are_not_durations():
    table = pl.DataFrame({"icd": ["P07", "P21", "P22"] * 20, "age": list(range(60))})
    assert inspect(table, k=3).kinds["icd"] == "nominal"
    assert shoal.mask(table, 3, columns=["icd", "age"]).kinds == {"icd": "nominal"}


@pytest.mark.parametrize(
    ("cells", "sign"),
    [
        ("{a}.{b},50", "."),
        ("{a},{b}.50", ","),
        ("{a} {b}", " "),
        ("{a}'{b},5", "'"),
        ("{a}.{b}", None),  # probably one and a half
        ("{a}-{b}", None),
    ],
)
def test_a_sign_between_thousands_is_found(tmp_path, cells, sign):
    rows = [cells.format(a=10 + i, b=100 + 7 * i % 900) for i in range(30)]
    lines = [f'"{cell}";{i % 7 + 1}' for i, cell in enumerate(rows)]
    (tmp_path / "in.csv").write_text("\n".join(["pay;age", *lines]))
    found = shoal.inspect(tmp_path / "in.csv", 3)
    assert found.roles["pay"] == ("identifier" if cells == "{a}-{b}" else "key")
    assert ("--thousands" in found.command) == (sign is not None)
    if sign is not None:
        assert found.kinds["pay"] in ("float", "integer")
        done = command(*shlex.split(found.command)[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "2: pay, age" in done.stdout


def test_a_sign_between_thousands_costs_no_other_number(tmp_path):
    lines = [f"1.{100 + i}.200;{i}.5" for i in range(20)]
    (tmp_path / "in.csv").write_text("\n".join(["version;share", *lines]))
    found = shoal.inspect(tmp_path / "in.csv", 3)
    assert found.kinds == {"version": "nominal", "share": "float"}
    assert "--thousands" not in found.command
    assert shoal.inspect(tmp_path / "in.csv", 3, decimal=",").kinds["version"] == "integer"


# What cannot be masked


def hard_columns(n, rng):
    """Return columns of persons that masking cannot use unchanged, or that were mistaken for something else."""
    days = [pl.date(1950 + i % 60, 1 + i % 12, 1 + i % 28) for i in range(n)]
    days = pl.select(pl.concat_list(days)).to_series()[0]
    written = [day.strftime("%d.%m.%Y" if i % 2 else "%Y-%m-%d") for i, day in enumerate(days)]
    streets = [f"{word} {'road' if rng.random() < 0.5 else 'lane'} {i % 1100}" for i, word in enumerate(["oak"] * n)]
    household = [str(100 + i // 3) for i in range(n)]
    return {
        "place": streets,  # more than 1,000 values, some of them twice
        "born": written,
        "household_id": [*household[:-1], None],
        "visit_no": [f"{8 + i % 12}h{i % 60:02}" if i % 9 else "?" for i in range(n)],
        "birth_weight": rng.normal(3400, 500, n).round(),
        "birthweight": rng.normal(3.4, 0.5, n).clip(0.6).round(2),
        "bwt": rng.normal(3400, 500, n).clip(600).round(),
        "weight": rng.normal(78, 12, n).clip(30).round(1),
        "weight_kg": rng.normal(78, 12, n).clip(30).round(1),
        "wt": rng.normal(170, 30, n).clip(60).round(),
        "lasts": [f"{i % 50} days" for i in range(n)],
        "seen": [f"{i % 24}:{i % 60:02}" if i % 2 else f"{1 + i % 12}:{i % 60:02} pm" for i in range(n)],
    }


def check_keys_are_protected(found, released, k):
    """Check that every key is a stratum, dropped, or among masked columns whose combinations occur k times."""
    masked, strata = found.asked["columns"], found.asked["by"] or []
    for column in found.columns:
        if column.role in ("key", "unit") and column.name in released.columns:
            assert column.name in (*masked, found.asked["unit"])
    assert not {*found.named("identifier"), *(found.asked["identifiers"] or [])} & set(released.columns)
    assert released.group_by([*masked, *strata]).len()["len"].min() >= k


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("as_file", [True, False])
def test_the_proposal_releases_no_key_unmasked(tmp_path, seed, as_file):
    rng = np.random.default_rng(seed)
    hard = hard_columns(1500, rng)
    chosen = rng.permutation(list(hard))[: 4 + seed]
    table = pl.DataFrame({"age": rng.integers(18, 90, 1500), **{name: hard[name] for name in chosen}})
    table.write_csv(tmp_path / "in.csv")
    found = inspect(tmp_path / "in.csv" if as_file else table, k=3)
    assert not found.named("weight")
    if as_file:
        done = command(*shlex.split(found.command)[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        released = pl.read_csv(tmp_path / "in-masked.csv", infer_schema=False)
    else:
        space = {"data": table}
        exec(found.command.replace("shoal.mask(", "release = shoal.mask("), space)
        released = space["release"].data
    check_keys_are_protected(found, released, 3)
    for name in {"place", "born", "household_id", "lasts", "seen"} & {*chosen}:
        assert name not in released.columns
    for name in {"birth_weight", "birthweight", "bwt", "weight", "weight_kg", "wt"} & {*chosen}:
        assert name in found.asked["columns"]


def test_the_printed_command_drops_what_it_cannot_mask(tmp_path):
    table = pl.DataFrame({"age": np.arange(1500) % 70 + 18, **hard_columns(1500, np.random.default_rng(0))})
    table.write_csv(tmp_path / "in.csv")
    line = command("inspect", "in.csv", "-k", 4, cwd=tmp_path).stdout.strip().splitlines()[-1]
    words = [sys.executable, "-m", *shlex.split(line)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--drop born" in line
    check_keys_are_protected(inspect(tmp_path / "in.csv", 4), pl.read_csv(tmp_path / "in-masked.csv"), 4)


@pytest.mark.parametrize("name", ["adult", "covid_testing", "testdata", "eia", "census", "tarragona", "california"])
def test_the_proposal_for_a_reference_table_names_every_key(name):
    found = inspect(reference_path(name))
    held = {*found.asked["columns"], *(found.asked["by"] or []), *(found.asked["identifiers"] or [])}
    assert {*found.named("key")} <= held


def test_dropped_columns_are_reported_with_reason_and_remedy():
    n = 1500
    table = pl.DataFrame({"age": np.arange(n) % 70, **hard_columns(n, np.random.default_rng(0))})
    found = inspect(table, k=3)
    reasons = {column.name: column.reason for column in found.columns}
    assert "dropped: more than 1,000 values cannot be masked; merge them into fewer" in reasons["place"]
    assert "several formats; dropped: it cannot be masked; write all cells in one format" in reasons["born"]
    assert "dropped: some records have no unit; add the missing units" in reasons["household_id"]
    assert "born" in next(value for name, value in found.rows() if name == "left out")


def test_types_that_masking_cannot_read_are_dropped():
    table = pl.DataFrame(
        {"age": [20, 31, 42, 53] * 5, "tags": [["a"], ["b"], ["a"], ["b"]] * 5, "raw": [b"x", b"y"] * 10}
    )
    found = inspect(table, k=3)
    assert {*found.named("key")} == {"age", "tags", "raw"}
    assert found.asked["identifiers"] == ["tags", "raw"]
    exec(found.command, {"data": table})


def test_one_unit_is_counted_and_all_are_dropped():
    table = pl.DataFrame(
        {"hid": np.arange(600) // 4, "pid": np.arange(600) // 2, "age": np.random.default_rng(0).integers(18, 90, 600)}
    )
    found = inspect(table, k=3)
    assert found.named("unit") == ["hid", "pid"]
    assert (found.asked["unit"], found.asked["identifiers"]) == ("hid", ["hid", "pid"])
    assert "dropped: it identifies the units" in found.columns[0].reason
    assert "dropped: another unit is used" in found.columns[1].reason


def test_the_whole_table_overrules_a_sample():
    n = 3000
    town = [f"t{i // 2}" if i % 2 else "t0" for i in range(n)]
    flag = ["x"] * n
    flag[1] = "y"
    table = pl.DataFrame({"age": np.arange(n) % 70, "town": town, "flag": flag})
    found = inspect(table, k=3, most=100)
    assert found.roles["flag"] == "other"
    assert found.asked["identifiers"] == ["town", "flag"]


@pytest.mark.parametrize("sign", ["_", "a", "_a", "A", " ", "id_", "_name", "weight"])
def test_a_very_long_name_is_inspected(sign):
    name = sign * (1_000_000 // len(sign))
    found = inspect(pl.DataFrame({name: [f"w{i}" for i in range(30)] * 2, "x": np.arange(60) / 7}), k=3)
    assert name in found.command


def test_one_weight_is_used_and_the_others_are_dropped():
    rng = np.random.default_rng(0)
    weights = {name: rng.lognormal(5, 1, 200) for name in ("design_weight", "hh_weight", "rep_weight_1")}
    found = shoal.inspect(pl.DataFrame({"age": rng.integers(18, 90, 200), **weights}))
    assert found.asked["weights"] == "design_weight"
    assert found.asked["identifiers"] == ["hh_weight", "rep_weight_1"]
    assert "identifiers=['hh_weight', 'rep_weight_1']" in found.command
    assert all("another weight is used" in c.reason for c in found.columns if c.name in found.asked["identifiers"])


@pytest.mark.parametrize("name", ["final_weight", "base_weight", "pweight", "person_weight"])
def test_a_weight_of_persons_that_may_be_of_their_bodies_is_masked(name):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"age": rng.integers(18, 90, 200), name: rng.normal(75, 12, 200).round(1)})
    assert shoal.inspect(table).roles[name] == "key"


def test_an_index_that_pandas_stored_is_dropped(tmp_path):
    path = tmp_path / "in.parquet"
    pd.DataFrame({"x": np.arange(40.0) % 9}, index=[3 * i for i in range(40)]).to_parquet(path)
    found = shoal.inspect(path)
    assert found.asked["identifiers"] == ["__index_level_0__"]
    assert found.asked["columns"] == ["x"]
