"""The roles file: written by inspect, edited by people, read by mask; what it lacks or misspells is refused by name."""

import json
import subprocess
import sys
import tomllib

import numpy as np
import polars as pl
import pytest
from conftest import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import FileError, InputError
from shoal.demo import firms
from shoal.masking.request import MaskRequest
from shoal.roles.column_roles import PARAMETERS, ColumnRole
from shoal.roles.roles_file import read_roles, write_roles

DEL = "\x7f"
NAMES = [
    'a "quoted" name',
    "it's",
    "a.b",
    "[a]",
    "two\nlines",
    "back\\slash",
    "Größe",
    "日本",
    f"x{DEL}y",
    "tab\there",
    "=",
]


@pytest.fixture
def people():
    """Return a table with a column of every role and many kinds."""
    rng = np.random.default_rng(0)
    n = 120
    return pl.DataFrame(
        {
            "name": [f"Miller {i}" for i in range(n)],
            "age": rng.integers(20, 80, n),
            "income": rng.normal(3000, 500, n).round(),
            "job": rng.choice(["cook", "nurse", "clerk"], n),
            "school": rng.choice(["none", "primary", "secondary"], n),
            "region": rng.choice(["north", "south"], n),
            "illness": rng.choice(["flu", "cold", "none of them"], n),
            "weight": rng.uniform(1, 2, n).round(3),
            "note": rng.choice(["x", "y"], n),
        }
    ).with_columns(income=pl.when(pl.int_range(n) % 20 == 0).then(-9).otherwise("income"))


ROLES = {
    "name": "drop",
    "age": "key",
    "income": {"role": "key", "missing": [-9]},
    "job": {"role": "key", "kind": "nominal"},
    "school": {"role": "key", "kind": ["none", "primary", "secondary"]},
    "region": "stratum",
    "illness": "sensitive",
    "weight": "weight",
    "note": "keep",
}
NAMED = {
    "columns": ["age", "income", "job", "school"],
    "kinds": {"job": shoal.Nominal(), "school": shoal.Ordinal(["none", "primary", "secondary"])},
    "missing_codes": {"income": [-9]},
    "by": ["region"],
    "confidential": ["illness"],
    "weights": "weight",
    "keep": ["note"],
    "identifiers": ["name"],
}


def entry(name, **values):
    """Return an entry of a roles file; JSON quotes as TOML does, except for DEL."""
    quoted = json.dumps(name, ensure_ascii=False).replace(DEL, "\\u007f")
    return f"[columns.{quoted}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def as_file(path, roles):
    entries = {name: role if isinstance(role, dict) else {"role": role} for name, role in roles.items()}
    path.write_text("\n".join(entry(name, **values) for name, values in entries.items()), encoding="utf-8")
    return path


# --- the same release ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["mapping", "file", "text"])
def test_roles_release_what_the_same_columns_named_one_by_one_do(people, tmp_path, form):
    expected = shoal.mask(people, 3, **NAMED, seed=0)
    path = as_file(tmp_path / "people.toml", ROLES)
    roles = {"mapping": ROLES, "file": path, "text": str(path)}[form]
    release = shoal.mask(people, 3, roles=roles, seed=0)
    assert release.data.equals(expected.data)
    assert release.data.columns == [name for name in people.columns if name != "name"]
    assert (release.loss, release.kinds, release.reached) == (expected.loss, expected.kinds, expected.reached)
    assert release.parameters == expected.parameters


@pytest.mark.usefixtures("one_template")
def test_roles_release_the_same_on_every_engine(people, tmp_path):
    people.write_parquet(tmp_path / "in.parquet")
    for engine in ("memory", "local", "dask"):
        asked = {"engine": engine, "method": "mdav", "output": tmp_path / f"{engine}.parquet"}
        shoal.mask(tmp_path / "in.parquet", 3, roles=ROLES, **asked)
    memory = pl.read_parquet(tmp_path / "memory.parquet")
    assert pl.read_parquet(tmp_path / "local.parquet").equals(memory)
    assert pl.read_parquet(tmp_path / "dask.parquet" / "*.parquet").equals(memory)


def test_a_unit_of_a_roles_file_is_counted_and_left_out(people):
    table = people.with_columns(person=pl.int_range(len(people)) // 2)
    roles = {**ROLES, "person": "unit", "region": "drop"}
    named = {**NAMED, "unit": "person", "identifiers": ["name", "region"], "by": None}
    release = shoal.mask(table, 3, roles=roles, seed=0)
    assert release.parameters["unit"] == "person"
    assert "person" not in release.data.columns
    assert release.data.equals(shoal.mask(table, 3, **named, seed=0).data)


def test_a_hierarchy_is_found_next_to_the_roles_file(people, tmp_path, monkeypatch):
    folder = tmp_path / "metadata" / "ways"
    folder.mkdir(parents=True)
    (folder / "job.csv").write_text("cook,service,any\nnurse,service,any\nclerk,office,any\n")
    expected = shoal.mask(people, 3, columns=["age", "job"], kinds={"job": shoal.Hierarchy(folder / "job.csv")}, seed=0)
    others = dict.fromkeys(set(people.columns) - {"age", "job"}, "drop")
    roles = {"age": "key", "job": {"role": "key", "hierarchy": "ways/job.csv"}, **others}
    path = as_file(tmp_path / "metadata" / "roles.toml", roles)
    monkeypatch.chdir("/")
    release = shoal.mask(people, 3, roles=path, seed=0)
    assert release.kinds["job"].startswith("hierarchy")
    assert release.data.equals(expected.data)
    with pytest.raises(FileError, match=r"job\.csv"):
        shoal.mask(people, 3, roles=roles)  # a mapping has no folder


def test_a_place_is_written_and_read(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"latitude": rng.uniform(40, 50, 60).round(4), "longitude": rng.uniform(0, 9, 60).round(4)})
    inspection = shoal.inspect(table, 5)
    path = inspection.save(tmp_path / "roles.toml")
    roles = read_roles(path)
    assert set(roles) == {"latitude", "longitude"}
    release = shoal.mask(table, 5, roles=path, seed=0)
    assert release.kinds.keys() == {"latitude", "longitude"}
    place = {("latitude", "longitude"): shoal.Place()}
    assert release.data.equals(shoal.mask(table, 5, columns=table.columns, kinds=place, seed=0).data)


def test_a_date_keeps_its_format(tmp_path):
    days = [f"{1 + i % 28:02}.{1 + i % 12:02}.{1950 + i % 50}" for i in range(60)]
    path = as_file(tmp_path / "roles.toml", {"born": {"role": "key", "kind": "date %d.%m.%Y"}})
    release = shoal.mask(pl.DataFrame({"born": days}), 3, roles=path, seed=0)
    expected = shoal.mask(
        pl.DataFrame({"born": days}), 3, columns="born", kinds={"born": shoal.Date("%d.%m.%Y")}, seed=0
    )
    assert release.data.equals(expected.data)


def test_number_names_a_column_that_is_one(people):
    with_number = {**ROLES, "age": {"role": "key", "kind": "number"}}
    assert shoal.mask(people, 3, roles=with_number, seed=0).data.equals(shoal.mask(people, 3, roles=ROLES, seed=0).data)


# --- from inspect to mask --------------------------------------------------------------------------------------------


def spawned(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "shoal", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_inspect_edit_mask(tmp_path):
    """As users do: in separate processes, with an editor in between."""
    firms(120).with_columns(last_name=pl.Series([f"Miller{i}" for i in range(120)])).write_csv(tmp_path / "firms.csv")
    done = spawned("inspect", "firms.csv", "-k", 3, "-o", "firms.roles.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["roles", "file", "firms.roles.toml"]
    path = tmp_path / "firms.roles.toml"
    written = path.read_text(encoding="utf-8")
    assert written.startswith("# The role of every column of firms.csv.")
    columns = tomllib.loads(written)["columns"]
    names = pl.read_csv(tmp_path / "firms.csv").columns
    assert list(columns) == names
    assert columns["last_name"]["role"] == "drop"
    proposed = spawned("mask", "firms.csv", "--roles", path.name, "-k", 3, "-m", "mdav", "-o", "a.csv", cwd=tmp_path)
    assert proposed.returncode == 0, proposed.stderr
    plain = spawned("mask", "firms.csv", "-k", 3, "-m", "mdav", "-o", "b.csv", cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    head, _, entry_of_profit = written.partition('[columns."profit"]')
    comment, _, after = entry_of_profit.partition("\n")
    assert comment.strip().startswith("# ")
    path.write_text(f'{head}[columns."profit"]\n{after.replace("key", "drop", 1)}', encoding="utf-8")
    edited = spawned("mask", "firms.csv", "--roles", path.name, "-k", 3, "-m", "mdav", "-o", "c.csv", cwd=tmp_path)
    assert edited.returncode == 0, edited.stderr
    assert pl.read_csv(tmp_path / "c.csv").columns == [name for name in names if name not in ("profit", "last_name")]


@pytest.mark.parametrize("target", ["roles.csv", "no/such/roles.toml"])
def test_inspect_writes_roles_to_a_toml_file_only(tmp_path, target):
    firms(40).write_csv(tmp_path / "in.csv")
    done = command("inspect", "in.csv", "-o", target, cwd=tmp_path)
    assert done.returncode == 1
    assert target.rpartition("/")[2] in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_roles_saved_by_inspect_mask_like_the_proposal(people, tmp_path):
    path = shoal.inspect(people, 3).save(tmp_path / "people.toml", "people")
    assert path == tmp_path / "people.toml"
    release, plain = shoal.mask(people, 3, roles=path, seed=0), shoal.mask(people, 3, seed=0)
    assert release.data.equals(plain.data)
    assert set(release.dropped) == set(plain.dropped) == {"name"}


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_with_any_character_are_written_and_read(tmp_path):
    roles = {name: ColumnRole("key", reason=f"because\n{name}\x1b[2J") for name in NAMES}
    write_roles(roles, tmp_path / "roles.toml", "in\x1b.csv\nrole = 5")
    text = (tmp_path / "roles.toml").read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert DEL not in text
    assert {name: column.role for name, column in read_roles(tmp_path / "roles.toml").items()} == dict.fromkeys(
        NAMES, "key"
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # to load all letters takes seconds
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.tuples(
            st.sampled_from([*PARAMETERS]),
            st.lists(st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False),
                               st.text(st.characters(codec="utf-8"), max_size=5)), max_size=3),
            st.sampled_from([None, "nominal", "date", ["low", "hígh", 'a "b"\n\x7f']]),
            st.text(st.characters(codec="utf-8"), max_size=20),
        ),
        min_size=1,
        max_size=5,
    )
)  # fmt: skip
def test_written_roles_can_be_read(tmp_path_factory, drawn):
    roles = {
        name: ColumnRole(role, kind, tuple(codes) if role == "key" else (), reason)
        for name, (role, codes, kind, reason) in drawn.items()
    }
    path = tmp_path_factory.getbasetemp() / "drawn.toml"
    write_roles(roles, path, "a table")
    read = read_roles(path)
    assert {name: (column.role, column.kind, column.missing_codes) for name, column in read.items()} == {
        name: (column.role, column.kind, column.missing_codes) for name, column in roles.items()
    }


def test_columns_of_odd_names_are_masked_by_a_file_of_their_roles(tmp_path):
    table = pl.DataFrame({name: [float(i * (j + 2) % 17) for i in range(40)] for j, name in enumerate(NAMES)})
    path = as_file(tmp_path / "roles.toml", {name: "key" if j % 2 else "drop" for j, name in enumerate(NAMES)})
    release = shoal.mask(table, 3, roles=path)
    assert release.data.columns == NAMES[1::2]
    inspected = shoal.inspect(table, 3).save(tmp_path / "inspected.toml")
    assert list(read_roles(inspected)) == NAMES


def test_columns_of_an_array_are_numbers():
    X = np.random.default_rng(0).normal(size=(30, 3))
    release = shoal.mask(X, 3, roles={0: "key", 1: "key", 2: "drop"}, seed=0)
    assert np.array_equal(release.data, shoal.mask(X, 3, columns=[0, 1], identifiers=[2], seed=0).data)


# --- refusals --------------------------------------------------------------------------------------------------------


def refused(roles, *, words, error=InputError, **others):
    with pytest.raises(error, match=words):
        MaskRequest(k=3, roles=roles, **others)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (
            {"a": "kee"},
            r"'roles' has role 'kee' for column 'a'\. Did you mean 'keep' or 'key'\? Use one of key, stratum",
        ),
        ({"a": {"role": 5}}, "'roles' has role 5 for column 'a'"),
        ({"a": {"role": ["key"]}}, r"'roles' has role \['key'\] for column 'a'"),
        ({"a": 5}, "'roles' must give a role for column 'a', one of key, stratum, sensitive"),
        ({"a": {}}, "'roles' must give a role for column 'a'"),
        ({"a": {"kind": "nominal"}}, "'roles' must give a role for column 'a'"),
        ({"a": {"role": "key", "knd": "nominal"}}, "unknown entry 'knd' for column 'a'. Did you mean 'kind'"),
        ({"a": {"role": "key", "order": ["x"]}}, "Use role, kind, hierarchy, missing"),
        ({"a": {"role": "key", "kind": "strange"}}, "strange"),
        ({"a": {"role": "key", "kind": ["x"]}}, "at least 2 different levels"),
        ({"a": {"role": "key", "kind": 7}}, "7"),
        (
            {"a": "drop", "b": "keep"},
            "'roles' has no column with role 'key', so nothing is masked. Set this role for a column",
        ),
        ({}, "'roles' has no column with role 'key'"),
        ({"a": "key", "b": "unit", "c": "unit"}, "several columns with role 'unit': b, c"),
        ({"a": "key", "b": "weight", "c": "weight"}, "several columns with role 'weight': b, c"),
    ],
)
def test_invalid_roles_are_refused(tmp_path, roles, words):
    refused(roles, words=words)
    if roles and 5 not in roles.values():
        refused(as_file(tmp_path / "roles.toml", roles), words=words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("role = ", "is not valid TOML: .* Correct it"),
        ("[columns.a]\nrole = 'key'\n[columns.a]\nrole = 'key'", "is not valid TOML"),
        ("", r'has no columns. Add an entry such as \[columns."age"\] for each'),
        ("columns = 5", "has no columns"),
        ("[columns]", "has no columns"),
        ("[column.a]\nrole = 'key'", "has no columns"),
    ],
)
def test_files_without_roles_are_refused(tmp_path, text, words):
    (tmp_path / "roles.toml").write_text(text)
    refused(tmp_path / "roles.toml", words=rf"Roles file .*roles\.toml {words}", error=FileError)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    refused(
        tmp_path / "none.toml",
        words=r"none\.toml' cannot be read: No such file or directory\. Check the path and its permissions",
        error=FileError,
    )
    refused(tmp_path, words="cannot be read: Is a directory", error=FileError)
    (tmp_path / "latin.toml").write_bytes("[columns.'Größe']\nrole = 'key'".encode("latin-1"))
    refused(tmp_path / "latin.toml", words=r"latin\.toml is not valid TOML", error=FileError)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", ["a"]),
        ("by", "a"),
        ("unit", "a"),
        ("confidential", ["a"]),
        ("weights", "a"),
        ("weights", [1.0, 2.0]),
        ("keep", ["a"]),
        ("identifiers", ["a"]),
        ("kinds", {"a": "nominal"}),
        ("missing_codes", {"a": [-9]}),
    ],
)
def test_parameters_in_a_roles_file_cannot_be_passed_as_well(name, value):
    words = f"'{name}' cannot be combined with 'roles', which gives every column its role. Change the roles instead"
    refused({"a": "key", "b": "drop"}, words=words, **{name: value})


@pytest.mark.usefixtures("one_template")
@pytest.mark.parametrize("engine", ["memory", "local"])
def test_columns_that_the_table_or_the_roles_lack_are_refused_by_name(people, tmp_path, engine):
    people.write_csv(tmp_path / "in.csv")
    asked = {"engine": engine, "output": tmp_path / "out.csv"}
    for role in PARAMETERS:
        if role != "weight":  # there is one
            with pytest.raises(shoal.ShoalError, match=r"has (no )?column 'agee'.*Did you mean 'age'"):
                shoal.mask(tmp_path / "in.csv", 3, roles={**ROLES, "agee": role}, **asked)
    for name in people.columns:
        lacking = {other: role for other, role in ROLES.items() if other != name}
        with pytest.raises(InputError, match=f"'roles' has no entry for column '{name}' of the table. Add one"):
            shoal.mask(tmp_path / "in.csv", 3, roles=lacking, **asked)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_the_command_line_names_its_flag(people, tmp_path):
    people.write_csv(tmp_path / "in.csv")
    as_file(tmp_path / "roles.toml", {**ROLES, "agee": "drop"})
    arguments = ["mask", "in.csv", "-k", 3, "--roles", "roles.toml", "-o", "out.csv"]
    assert "--roles has column 'agee'" in command(*arguments, cwd=tmp_path).stderr
    assert "--by cannot be combined with --roles" in command(*arguments, "--by", "region", cwd=tmp_path).stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_manifest_of_roles_repeats_the_run_without_the_file(people, tmp_path):
    """It names the columns of every role itself."""
    people.write_csv(tmp_path / "in.csv")
    path = as_file(tmp_path / "roles.toml", ROLES)
    arguments = ["-k", 3, "--roles", "roles.toml", "-m", "mdav", "-o", "out.csv", "--manifest", "run.json"]
    done = command("mask", "in.csv", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path.unlink()
    again = command("mask", "--from-manifest", tmp_path / "run.json")
    assert again.returncode == 0, again.stderr
    assert "same bytes" in again.stdout


def test_a_comparison_takes_roles(people, tmp_path):
    path = as_file(tmp_path / "roles.toml", ROLES)
    named = {name: value for name, value in NAMED.items() if name not in ("identifiers", "keep")}
    found = [shoal.compare(people, k=[3, 5], methods="mdav", **asked) for asked in ({"roles": path}, named)]
    assert [trial.loss for trial in found[0].trials] == [trial.loss for trial in found[1].trials]


def test_reading_does_not_change_the_mapping():
    roles = {"a": {"role": "key", "missing": -9}}
    assert read_roles(roles)["a"] == ColumnRole("key", None, (-9,))
    assert roles == {"a": {"role": "key", "missing": -9}}
    assert read_roles({"a": ColumnRole("keep")}) == {"a": ColumnRole("keep")}


def test_codes_of_columns_that_are_not_masked_are_refused():
    with pytest.raises(shoal.InputError, match="missing codes for column 'job', whose role is 'sensitive'"):
        read_roles({"age": "key", "job": {"role": "sensitive", "missing": ["?"]}})


def test_an_unknown_key_is_refused_by_name_before_the_file_is_read(tmp_path):
    pl.DataFrame({"age": range(30)}).write_csv(tmp_path / "in.csv")
    with pytest.raises(shoal.InputError, match="'roles' has column 'agee', which the table does not have"):
        shoal.mask(tmp_path / "in.csv", 3, roles={"agee": "key"})


# --- assess ----------------------------------------------------------------------------------------------------------


ASSESSED = {name: value for name, value in NAMED.items() if name not in ("identifiers", "keep")}


def test_an_assessment_takes_roles(people, tmp_path):
    """They mean the same as columns named one by one, including codes for missing values and kinds."""
    masked = shoal.mask(people, 3, roles=ROLES, seed=0).data
    measures = {"k": 3, "measures": "population-risk"}  # uses weights
    expected = shoal.assess(people, masked, **ASSESSED, **measures)
    for roles in (ROLES, as_file(tmp_path / "roles.toml", ROLES)):
        assert str(shoal.assess(people, masked, roles=roles, **measures)) == str(expected)
    assert {column.name for column in expected.utility.columns} == {"age", "income", "job", "school"}
    assert [attribute.name for attribute in expected.risk.attributes] == ["sensitive: illness"]


def test_the_unit_of_a_roles_file_is_assessed(people):
    table = people.with_columns(person=pl.int_range(len(people)) // 2)
    masked = shoal.mask(table, 3, roles={**ROLES, "person": "unit"}, seed=0, max_left_out=1).data
    masked = masked.with_columns(table["person"])  # the steward's copy ties the records of a person together
    units = shoal.assess(table, masked, roles={**ROLES, "person": "unit"}).risk.units
    assert (units.of, units.column) == (60, "person")


def test_inspect_mask_and_assess_use_the_same_file(people, tmp_path):
    people.write_csv(tmp_path / "in.csv")
    for arguments in (
        ("inspect", "in.csv", "-k", 3, "-o", "roles.toml"),
        ("mask", "in.csv", "-k", 3, "--roles", "roles.toml", "-m", "mdav", "-o", "out.csv"),
        ("assess", "in.csv", "out.csv", "-k", 3, "--roles", "roles.toml"),
    ):
        done = command(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    names = [name for name, column in read_roles(tmp_path / "roles.toml").items() if column.role == "key"]
    assert f"every combination of {', '.join(names)} within region is shared by at least" in " ".join(
        done.stdout.split()
    )
    arguments = ["assess", "in.csv", "out.csv", "--roles", "roles.toml", "--by", "region"]
    assert "--by cannot be combined with --roles" in command(*arguments, cwd=tmp_path).stderr


@pytest.mark.parametrize("name", ASSESSED)
def test_parameters_in_a_roles_file_cannot_be_passed_to_assess(people, name):
    with pytest.raises(InputError, match=f"'{name}' cannot be combined with 'roles'"):
        shoal.assess(people, people, roles=ROLES, **{name: ASSESSED[name]})


def test_columns_that_an_assessment_lacks_are_refused_by_name(people):
    masked = shoal.mask(people, 3, roles=ROLES, seed=0).data
    with pytest.raises(InputError, match=r"'roles' has column 'agee', which the table does not have.*'age'"):
        shoal.assess(people, masked, roles={**ROLES, "agee": "drop"})
    for name in people.columns:
        roles = {other: role for other, role in ROLES.items() if other != name}
        with pytest.raises(InputError, match=f"'roles' has no entry for column '{name}' of the table"):
            shoal.assess(people, masked, roles=roles)
    for name, role in {"age": "key", "region": "stratum", "illness": "sensitive"}.items():
        with pytest.raises(InputError, match=f"'masked' has no column '{name}', whose role is '{role}' in 'roles'"):
            shoal.assess(people, masked.drop(name), roles=ROLES)
    shoal.assess(people, masked.drop("weight", "note"), roles=ROLES)


def test_an_assessment_names_columns_that_the_roles_leave_out(people):
    masked = shoal.mask(people, 3, roles=ROLES, seed=0).data
    note = "the masked table holds columns whose role is drop: name"
    assert note not in shoal.assess(people, masked, roles=ROLES).notes
    assert note in shoal.assess(people, masked.with_columns(people["name"]), roles=ROLES).notes


def test_patterns_name_columns_of_an_assessment_and_next_to_roles(people):
    table = people.rename({"age": "n_age", "income": "n_income"})
    roles = {name if name not in ("age", "income") else f"n_{name}": role for name, role in ROLES.items()}
    release = shoal.mask(table, 3, roles=roles, distance="n_*", seed=0)
    assert release.data.equals(shoal.mask(table, 3, roles=roles, distance=["n_age", "n_income"], seed=0).data)
    masked, codes = release.data.drop("job", "school"), {"n_income": -9}
    by_pattern = shoal.assess(table, masked, columns="n_*", by="reg*", missing_codes=codes)
    named = shoal.assess(table, masked, columns=["n_age", "n_income"], by="region", missing_codes=codes)
    assert str(by_pattern) == str(named)


# --- as an object ----------------------------------------------------------------------------------------------------


def test_the_hierarchy_of_a_stratum_names_joined_strata_and_nothing_else(people, tmp_path):
    """As for a hierarchy in the parameter kinds; without joined strata it has no use."""
    table = people.with_columns(region=pl.when(pl.int_range(len(people)) < 2).then(pl.lit("west")).otherwise("region"))
    ways = {"north": ["coast", "all"], "south": ["inland", "all"], "west": ["coast", "all"]}
    (tmp_path / "ways.csv").write_text("".join(f"{name},{','.join(above)}\n" for name, above in ways.items()))
    roles = {**ROLES, "region": {"role": "stratum", "hierarchy": "ways.csv"}}
    path = as_file(tmp_path / "roles.toml", roles)
    kinds = {**NAMED["kinds"], "region": shoal.Hierarchy(ways)}
    joined = shoal.mask(table, 3, roles=path, seed=0).data
    assert joined.equals(shoal.mask(table, 3, **{**NAMED, "kinds": kinds}, seed=0).data)
    assert "all" in joined["region"]  # the ancestor of those that were joined
    kept = shoal.mask(table, 3, roles=path, small="suppress", seed=0).data
    assert kept.equals(shoal.mask(table, 3, **NAMED, small="suppress", seed=0).data)
    assessed = shoal.assess(table, joined, roles=path)
    assert str(assessed) == str(shoal.assess(table, joined, **{**ASSESSED, "kinds": kinds}))


def test_roles_as_an_object_mask_as_their_file_does(people, tmp_path):
    roles = shoal.Roles.read(ROLES, people.columns)
    expected = shoal.mask(people, 3, **NAMED, seed=0).data
    assert shoal.mask(people, 3, roles=roles, seed=0).data.equals(expected)
    assert shoal.mask(people, 3, **roles.parameters(), seed=0).data.equals(expected)
    assert shoal.Roles.read(roles.save(tmp_path / "roles.toml")) == roles
    with pytest.raises(InputError, match="'roles' has no entry for column 'other' of the table"):
        shoal.Roles.read(ROLES, [*people.columns, "other"])


def test_roles_follow_from_the_parameters_of_a_masking(people):
    proposed = shoal.inspect(people, 3).column_roles
    roles = shoal.Roles.of({**NAMED, "kinds": {"school": ["none", "primary", "secondary"]}}, proposed)
    assert {name: role.role for name, role in roles.items()} == {
        name: role if isinstance(role, str) else role["role"] for name, role in ROLES.items()
    }
    assert (roles["school"].kind, roles["income"].missing_codes) == (["none", "primary", "secondary"], (-9,))
    assert roles["age"].reason == proposed["age"].reason
    assert roles["note"].reason == "as chosen"
    with pytest.raises(InputError, match="leaves the unit column out, but 'keep' names 'age'"):
        shoal.Roles.of({"columns": ["income"], "unit": "age", "keep": ["age"]}, proposed)


def test_a_command_names_the_roles_file_in_place_of_columns():
    request = MaskRequest(k=3, **NAMED, missing="drop")
    assert request.command("in.csv", "out.csv", "my roles.toml") == (
        "shoal mask in.csv -k 3 --roles 'my roles.toml' --missing drop -o out.csv"
    )
    assert "--by region" in request.command("in.csv", "out.csv")
