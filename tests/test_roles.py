"""Proposed roles: the labelled tables, functions of other columns, codes and their classes, units, word lists."""

import shlex

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from conftest import command, reference_path
from hypothesis import given, settings
from labelled_tables import PARTS, judge_all, labelled_tables

import shoal
from shoal.kinds.kind_registry import CATEGORIES
from shoal.roles.code_trees import prefix_hierarchy
from shoal.roles.functions import find_functions
from shoal.roles.proposal import propose
from shoal.roles.word_lists import read_words
from shoal.tables.formats.frames import open_table

GOAL = 0.85  # of all roles
FRESH = "set B"  # whose errors are reported and not mended


# The labelled tables


@pytest.fixture(scope="module")
def judgements():
    return judge_all()


def test_the_labelled_set_is_large_and_a_third_of_it_is_held_out():
    tables = labelled_tables()
    columns = [(table.part in ("held out", "set B"), name) for table in tables for name in table.labels]
    assert len(tables) >= 25
    assert len(columns) >= 400
    assert 3 * sum(held_out for held_out, _ in columns) >= len(columns)


@pytest.mark.parametrize("part", PARTS)
def test_most_roles_are_right(judgements, part):
    right = [j.right for j in judgements if j.part == part]
    assert np.mean(right) >= GOAL


def test_all_identifiers_and_units_are_recognised(judgements):
    assert not [(j.table, j.column) for j in judgements if j.label in ("identifier", "unit") and not j.right]


def test_functions_of_other_columns_are_recognised(judgements):
    derived = [j for j in judgements if j.label.startswith("derived") and j.part != FRESH]
    assert not [(j.table, j.column) for j in derived if not j.right]


def test_codes_are_not_averaged(judgements):
    codes = [j for j in judgements if j.label == "key, code" and j.part != FRESH]
    assert np.mean([j.kind in CATEGORIES for j in codes]) >= 0.95


@pytest.mark.parametrize("table", labelled_tables(), ids=lambda table: table.name)
def test_every_column_has_a_role_in_the_parameters_and_none_stays_raw(table):
    frame = table.frame()
    proposal = propose(open_table(frame), 3)
    parameters = proposal.parameters
    lists = [parameters[name] or [] for name in ("columns", "by", "confidential", "identifiers")]
    named = [name for names in lists for name in names] + [parameters["weights"]] * (parameters["weights"] is not None)
    assert sorted(named) == sorted(frame.columns)
    assert list(proposal.dropped) == (parameters["identifiers"] or [])
    assert all(proposal.dropped.values())
    assert "keep" not in parameters
    assert parameters["unit"] is None or parameters["unit"] in parameters["identifiers"]


# Functions of other columns


def roles_of(**columns):
    return propose(open_table(pl.DataFrame(columns)), 3)


def test_the_plainer_of_equivalent_columns_stays():
    rng = np.random.default_rng(0)
    number = rng.integers(1, 9, 300)
    words = np.array(["none", "some", "half", "most", "all", "new", "old", "other", "x"])[number]
    proposal = roles_of(number=number, education=words, age=rng.integers(18, 80, 300))
    assert proposal.dropped == {"number": "equivalent to education, so it reveals education"}


def test_classes_of_a_key_are_dropped():
    age = np.random.default_rng(0).integers(18, 80, 300)
    proposal = roles_of(age=age, decade=age // 10, sex=age % 2)
    assert {name: why.split(",")[0] for name, why in proposal.dropped.items()} == {
        "decade": "a function of age",
        "sex": "a function of age",
    }


def test_numbers_that_all_differ_are_compared_by_their_order():
    pay = np.random.default_rng(0).lognormal(9, 1, 200)
    assert find_functions({"pay": pl.Series(pay), "log": pl.Series(np.log(pay))}).twins == {
        "pay": ("log",),
        "log": ("pay",),
    }


def test_a_column_in_which_all_values_differ_determines_nothing():
    rng = np.random.default_rng(0)
    columns = {"pay": rng.normal(size=200), "sex": rng.integers(0, 2, 200), "rare": np.arange(200) == 7}
    functions = find_functions({name: pl.Series(cells) for name, cells in columns.items()})
    assert functions == ({}, {})


def test_columns_that_miss_the_same_records_are_not_functions_of_each_other():
    rng = np.random.default_rng(0)
    absent = rng.random(400) < 0.5
    columns = {name: pl.Series(rng.normal(size=400)).round(3).set(pl.Series(absent), None) for name in "abc"}
    columns["answered"] = pl.Series(~absent)
    assert not find_functions(dict(list(columns.items())[:3])).sources
    assert find_functions(columns).sources == {"answered": ("a", "b", "c")}


def test_what_a_sample_suggests_is_checked_in_all_records():
    code = np.arange(60_000) % 50
    group = code // 10
    group[59_998] = 9  # not among the records of the sample
    assert find_functions({"code": pl.Series(code), "group": pl.Series(group)}).sources == {}


def test_a_sensitive_column_that_follows_from_a_key_is_dropped():
    rng = np.random.default_rng(0)
    cigarettes = rng.integers(0, 30, 400)
    proposal = roles_of(age=rng.integers(18, 80, 400), daily=cigarettes, smoker=(cigarettes > 0).astype(int))
    assert proposal.dropped == {"smoker": "a function of daily, so it reveals part of daily"}


def test_columns_of_every_type_are_compared():
    days = pl.Series([*range(5)] * 30).cast(pl.Date)
    words = pl.Series(list("abcde") * 30)
    columns = {
        "day": days,
        "moment": days.cast(pl.Datetime),
        "since": pl.Series([*range(5)] * 30).cast(pl.Duration),
        "hour": pl.Series([*range(5)] * 30).cast(pl.Time),
        "category": words.cast(pl.Categorical),
        "level": words.cast(pl.Enum(list("abcde"))),
        "amount": pl.Series([*range(5)] * 30).cast(pl.Decimal(10, 2)),
        "small": pl.Series([*range(5)] * 30).cast(pl.UInt8),
        "first": words == "a",
        "empty": pl.Series([None] * 150),
    }
    functions = find_functions(columns)
    assert functions.twins["day"] == ("moment", "since", "hour", "category", "level", "amount", "small")
    assert functions.sources == {"first": ("day", *functions.twins["day"])}


COLUMN = st.one_of(
    st.lists(st.integers(0, 3) | st.none(), min_size=40, max_size=40),
    st.lists(st.sampled_from("abc") | st.none(), min_size=40, max_size=40),
    st.lists(st.floats(0, 1, width=16), min_size=40, max_size=40),
)


@settings(max_examples=100, deadline=None)
@given(columns=st.lists(COLUMN, min_size=2, max_size=4), source=st.integers(0, 3))
def test_functions_hold_in_all_records(columns, source):
    columns = [*columns, [repr(cell)[:3] for cell in columns[source % len(columns)]]]
    table = {str(place): pl.Series(cells, strict=False) for place, cells in enumerate(columns)}
    functions = find_functions(table)
    for name, sources in [*functions.sources.items(), *functions.twins.items()]:
        for other in sources:
            pairs = set(zip(table[other].to_list(), table[name].to_list(), strict=True))
            assert len(pairs) == table[other].n_unique()


# Codes


def test_codes_with_gaps_are_not_averaged():
    rng = np.random.default_rng(0)
    codes, amounts = np.array([100, 200, 651, 652, 660, 700, 801, 802, 803, 804, 805, 806]), np.arange(100, 900, 50)
    proposal = roles_of(origin=rng.choice(codes, 400), rent=rng.choice(amounts, 400))
    assert {column.name: column.kind for column in proposal.columns} == {"origin": "nominal", "rent": "integer"}


@pytest.mark.parametrize("name", ["occupation", "NACE", "isco08", "zip", "Code postal", "fips", "icd10", "plz", "sic"])
def test_codes_are_known_by_name(name):
    codes = np.random.default_rng(0).choice(np.arange(1000, 1300, 7), 400)
    proposal = propose(open_table(pl.DataFrame({name: codes})), 3)
    assert proposal.columns[0].kind == "nominal"


def test_codes_whose_first_signs_name_classes_get_a_hierarchy(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 80, 600),
            "zip": rng.choice([place + street for place in (1200, 2300, 2400, 3100) for street in range(20)], 600),
            "naf": rng.choice([f"{place}{part}" for place in (10, 12, 47) for part in ("", ".1", ".2", ".3")], 600),
        }
    )
    frame.write_csv(tmp_path / "in.csv")
    found = shoal.inspect(tmp_path / "in.csv", 5)
    assert found.asked["kinds"]["zip"] == {"ways": [3, 2], "release": "ancestor"}
    assert "--hierarchy zip=3,2 " in found.command
    assert found.asked["kinds"]["naf"] == {"ways": [2], "release": "ancestor"}
    done = command(*shlex.split(found.command)[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    released = pl.read_csv(tmp_path / "in-masked.csv", infer_schema=False)
    classes = {"12", "23", "24", "31"}
    assert classes & set(released["zip"])
    assert set(released["zip"]) <= {"*", *classes, *(str(code)[:end] for code in frame["zip"] for end in (3, 4))}
    assert set(released["naf"]) <= {"*", *frame["naf"]}


def test_few_codes_and_codes_without_classes_get_none():
    assert prefix_hierarchy(["I10", "I11", "J45"]) is None
    assert prefix_hierarchy([f"{letter}1" for letter in "abcdefghijklmn"]) is None


# Units


def test_the_unit_of_a_panel_is_known_by_its_periods():
    rng = np.random.default_rng(0)
    firm = np.repeat(rng.permutation(500)[:60], 6)
    proposal = roles_of(nr=firm, year=np.tile(np.arange(2000, 2006), 60), sales=rng.lognormal(9, 1, 360))
    assert proposal.parameters["unit"] == "nr"
    assert "nr" in proposal.dropped


def test_a_category_is_no_unit_of_a_panel():
    rng = np.random.default_rng(0)
    proposal = roles_of(job=rng.integers(0, 60, 360), year=rng.integers(2000, 2006, 360), pay=rng.normal(size=360))
    assert proposal.parameters["unit"] is None


# Words


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("Diagnose", "health or treatment"),
        ("Krankheit", "health or treatment"),
        ("maladie_chronique", "health or treatment"),
        ("Enfermedad", "health or treatment"),
        ("malattia", "health or treatment"),
        ("Ziekte", "health or treatment"),
        ("malalties", "health or treatment"),
        ("choroba", "health or treatment"),
        ("Nettoeinkommen", "income, wealth or debt"),
        ("dívida", None),
        ("Vermögen", "income, wealth or debt"),
        ("lwage", "income, wealth or debt"),
        ("Religión", "religion or belief"),
        ("Gewerkschaftsmitglied", "union membership"),
        ("voted_2020", "politics or opinion"),
        ("convictions", "crime or the police"),
        ("orientation_sexuelle", "sexual life"),
        ("Hospital County", None),
        ("Krankenkasse", None),
        ("research", None),
        ("province", None),
        ("ethnicity", None),
    ],
)
def test_sensitive_names_of_several_languages(name, topic):
    assert read_words().sensitive_topics([name, "age"]).get(name) == topic


def test_unclear_columns_of_a_health_table_are_sensitive():
    clinical = ["fever", "cough", "tumor_size", "xq2"]
    topics = read_words().sensitive_topics(["age", "region", "education", *clinical])
    assert topics["xq2"] == "health or treatment, as other columns do"
    assert list(topics) == clinical
    unclear = [f"xq{place}" for place in range(30)]
    assert list(read_words().sensitive_topics([*unclear, *clinical[:3]])) == clinical[:3]


def test_the_logarithm_of_a_sensitive_amount_is_sensitive():
    names = ["income", "lincome", "ln_income", "logincome", "log_income"]
    assert list(read_words().sensitive_topics(["lage", *names])) == names


def test_amounts_of_firms_are_keys_and_those_of_persons_are_sensitive():
    amounts = {"debt": [1.5, 2.5, 3.5] * 20, "wage": [2.5, 3.5, 4.5, 5.5] * 15}
    sizes = {"turnover": [7, 8, 9, 10, 11] * 12, "employees": [1, 2, 3, 4, 5, 6, 7] * 8 + [1, 2, 3, 4]}
    assert set(roles_of(**sizes, **amounts).parameters["columns"]) == {*sizes, *amounts}
    assert roles_of(age=[7, 8, 9, 10, 11] * 12, **amounts).parameters["confidential"] == [*amounts]


def test_sensitive_cells_are_known_under_any_name():
    rng = np.random.default_rng(0)
    proposal = roles_of(
        age=rng.integers(18, 80, 200),
        v1=rng.choice(["katholisch", "evangelisch", "muslimisch", "keine"], 200),
        v2=rng.choice(["I10", "J45.9", "E11", "M54.5", "F32.1"], 200),
        v3=rng.choice(["positive", "negative"], 200),
        v4=rng.choice(["red", "green", "blue"], 200),
    )
    assert proposal.parameters["confidential"] == ["v1", "v2", "v3"]


def test_without_another_key_sensitive_amounts_are_masked():
    proposal = roles_of(income=[1.5, 2.5, 3.5, 4.5] * 20, debt=[2.5, 3.5, 4.5] * 26 + [1.5, 1.5])
    assert proposal.parameters["columns"] == ["income", "debt"]
    assert proposal.parameters["confidential"] is None


def test_a_file_adds_words_and_topics(tmp_path):
    (tmp_path / "words.toml").write_text(
        '[confidential.blood]\nreason = "blood"\nnames = "rhesus"\n\n[confidential.health]\nnames = "kropf*"\n'
    )
    frame = pl.DataFrame({"age": [20, 30, 40] * 20, "rhesus": ["p", "n"] * 30, "Kropfband": [1.5, 2, 3, 4, 5] * 12})
    frame.write_csv(tmp_path / "in.csv")
    assert shoal.inspect(frame, 3).named("confidential") == []
    found = shoal.inspect(frame, 3, words=tmp_path / "words.toml")
    assert found.named("confidential") == ["rhesus", "Kropfband"]
    assert "sensitive: the name suggests blood" in found.columns[1].reason
    done = command("inspect", "in.csv", "-k", 3, "--words", "words.toml", cwd=tmp_path)
    assert "--confidential rhesus --confidential Kropfband" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[confidential.x]\nname = 'a'", "'confidential.x.name'"),
        ("confidential = 3", "'confidential'"),
        ("[codes]\nnames = 7", "'codes.names'"),
        ("[codes", "is not TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_word_list_of_another_form_is_refused(tmp_path, text, words):
    path = tmp_path / "words.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(shoal.ShoalError, match=words.replace(".", r"\.")):
        shoal.inspect(pl.DataFrame({"a": [1, 2, 3]}), 2, words=path)


# The reference tables, from the proposal to the release


@pytest.mark.parametrize("name", ["covid_testing", "testdata"])
def test_the_proposed_command_singles_out_nobody(tmp_path, name):
    found = shoal.inspect(reference_path(name), 5)
    words = shlex.split(found.command)[1:]
    words[words.index("-o") + 1] = "out.csv"
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_nobody_is_singled_out(found, pl.read_csv(tmp_path / "out.csv", infer_schema=False))


def test_the_proposed_call_singles_out_nobody_in_adult():
    found = shoal.inspect(reference_path("adult"), 5)
    request = {name: value for name, value in found.asked.items() if name != "options"}
    release = shoal.mask(reference_path("adult"), method="mdav", **request)
    check_nobody_is_singled_out(found, release.data)


def check_nobody_is_singled_out(found, released):
    """Check that at least k records are alike in all columns but the sensitive ones and the weight."""
    request = found.asked
    hidden = {*(request["confidential"] or []), request["weights"]}
    known = [name for name in released.columns if name not in hidden]
    assert set(known) == {*request["columns"], *(request["by"] or [])}
    assert released.group_by(known).len()["len"].min() >= request["k"]


def test_a_masked_identifier_is_refused_because_modes_are_cells_of_members():
    names = [f"{first} {last}" for first in ("Ann", "Bob", "Cy", "Dee", "Eve", "Flo") for last in "ABCDEFGHIJ"]
    sales = np.random.default_rng(0).normal(size=60)
    table = pl.DataFrame({"company": names, "sales": sales, "name": names[::-1], "colour": ["red", "blue"] * 30})
    for column in ("company", "name"):
        with pytest.raises(
            shoal.InputError, match=rf"'{column}' looks like an .*identifiers=\['{column}'\].*hierarchy.*nominal"
        ):
            shoal.mask(table, 3, columns=["sales", column])
        levels = shoal.Hierarchy({name: [name[:1], "*"] for name in names})
        release = shoal.mask(table, 3, columns=["sales", column], kinds={column: levels})
        assert not set(names) & set(release.data[column])
    assert shoal.mask(table, 3, columns=["sales", "colour"]).verified
