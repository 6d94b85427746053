"""Recognisers of columns: hand-worked cells, and no refusal of any column."""

import datetime as dt
import string

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import shoal
from shoal.kinds.column import Cells, Column
from shoal.kinds.kind_registry import kind_of_cells
from shoal.roles.recognition import (
    is_code,
    is_of_person,
    is_stratum,
    is_weight,
    missing_codes,
    repeats_like_unit,
)
from shoal.roles.word_lists import read_words
from shoal.tables.identifiers import looks_like_identifier

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "klmnp"]  # a hundred short words
MONEY = np.random.default_rng(0).lognormal(9, 1, 60).round().astype(int)  # whole, of several lengths, all different


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        ("contact", ["a@b.org", "c.d@e.com"], "e-mail"),
        ("x", ["a@b.org"] * 9 + ["none"], "e-mail"),
        ("x", ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"], "IBAN"),
        ("x", ["550e8400-e29b-41d4-a716-446655440000"], "universal"),
        ("x", ["192.168.0.1", "10.0.0.255"], "Internet"),
        ("x", ["078-05-1120", "219-09-9999"], "digits"),
        ("x", ["+41 44 668 18 00", "(030) 1234567"], "digits"),
        ("x", [4_000_000_000 + 7919 * i for i in range(30)], "digits"),
        ("x", range(100, 130), "nearly consecutive"),
        ("x", [float(i) for i in range(30)], "nearly consecutive"),
        ("x", range(10**17 - 15, 10**17 + 15), "nearly consecutive"),
        ("x", [*range(29), 35], "nearly consecutive"),
        ("x", WORDS[:30], "all values are different"),
        ("x", [*WORDS[:30], WORDS[0]], "almost all"),
        ("notes", ["the patient said that " + " ".join(WORDS[i : i + 8]) for i in range(12)], "free text"),
        ("name", ["Ann", "Bob", "Cid"], "a name"),
        ("fake_last_name", WORDS[:27] * 9, "a name"),
        ("firstName", WORDS[:12] * 2, "a name"),
        ("Surname", WORDS[:12] * 2, "a name"),
        ("e-mail", WORDS[:12] * 2, "an e-mail"),
        ("Home Phone No", WORDS[:12] * 2, "a telephone"),
        ("account_nr", MONEY, "an account"),
        ("SSN", MONEY, "an official number"),
        ("street", WORDS[:12] * 2, "an address"),
        ("subject_id", [*MONEY, *MONEY[:9]], "an ID"),
        ("patientID", MONEY, "an ID"),
        ("id_person", MONEY, "an ID"),
        ("UTILNAME", [word + end for word in WORDS for end in "xy"] * 8, "200 different"),
    ],
)
def test_identifiers_are_recognised_with_the_reason(name, cells, said):
    assert said in looks_like_identifier(name, pl.Series(list(cells)))


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("expend", MONEY),  # measurements may all be different
        ("x", np.linspace(0, 1, 100)),
        ("longitude", np.linspace(0, 1, 100)),
        ("PAID.UP.CAPITAL", MONEY),
        ("covid", MONEY),
        ("account_balance", MONEY),
        ("phone", ["yes", "no"] * 20),
        ("test_id", ["covid"] * 30 + ["other"]),
        ("country_name", WORDS[:40] * 20),
        ("employee_num", [3, 7, 12] * 10),
        ("x", [f"2024-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]),
        ("x", [19800101 + 100 * (i % 12) + 10_000 * (i // 12) for i in range(48)]),
        ("x", [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(30)]),
        ("x", ["a@b.org"] * 8 + ["none"] * 2),
        ("x", [*range(29), 36]),  # too far apart for a numbering
        ("x", [*range(28), 5, 34]),  # one of them appears twice
        ("x", [*range(29), 28]),
        ("x", [True, False]),
        ("x", WORDS[:5]),  # five words in five records may differ by chance
        ("x", [None, None]),
        ("x", []),
        ("id", [0.5 + i for i in range(30)]),
    ],
)
def test_measurements_categories_and_dates_are_not_identifiers(name, cells):
    assert looks_like_identifier(name, pl.Series(list(cells))) is None


def test_a_column_of_numbers_is_recognised_like_a_series():
    assert "nearly consecutive" in looks_like_identifier("x", Column("x", np.arange(30.0)))
    assert looks_like_identifier("x", Column("x", np.array([0.5, np.nan, np.inf]))) is None


def test_the_reason_quotes_no_cell():
    cells = pl.Series([f"{word}@example.org" for word in WORDS])
    assert not any(word in looks_like_identifier("x", cells) for word in WORDS)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1.5, None], "float"),
        ([1, 2], "integer"),
        ([1.0, np.nan], "integer"),
        ([True], "boolean"),
        (["true", "False"], "boolean"),
        (["x", "2024-01-01"], "nominal"),
        (["2024-02-29", "2024-03-01T12:30:00Z"], "date"),
        (["31.12.1999", "1/2/99"], "date"),
        (["3 Feb 2020"], "date"),
        ([20240229, 19991231], "date"),
        ([185231, 191111], "integer"),
        (["12:30", "9:05:59.5"], "time"),
        (["P3DT4H", "2 days, 3:04"], "duration"),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], "date"),
        ([dt.time(12)], "time"),
        ([dt.timedelta(1)], "duration"),
        (["Paris"], "nominal"),
        ([[1], [2]], "nominal"),
        ([b"x"], "nominal"),
    ],
)
def test_kinds(cells, kind):
    assert kind_of_cells(Cells.of(pl.Series(cells, strict=False))) == kind


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        ([0, 17, 40, 90, 999, 999, 999], {999: 3}),
        ([0, 17, 40, 90, 999, 999], {}),  # twice may be chance
        ([0, 17, 40, 90, 99, 99, 99], {}),  # not far from the rest
        ([1, 5, 3, -9, -9, -9, -99, -99, -99, -99], {-99: 4, -9: 3}),
        ([-20, 5, 3, -9, -9, -9], {}),  # among values below zero
        ([0.5, 2.5, 99, 99, 99], {99: 3}),
        ([99, 99, 99], {}),
        (["99", "99", "99", "1", "2"], {}),
    ],
)
def test_codes_for_missing_are_outliers_that_repeat(cells, codes):
    assert missing_codes(Cells.of(pl.Series(cells))) == codes


def test_codes_are_few_repeated_values():
    assert is_code("roof", Cells.of(pl.Series([2, 4, 5, 6, 9] * 5)))
    assert not is_code("roof", Cells.of(pl.Series([2, 4, 5, 6, 9] * 4)))
    assert not is_code("household size", Cells.of(pl.Series([2, 4, 5, 6, 9] * 5)))
    assert not is_code("x", Cells.of(pl.Series(list(range(11)) * 9)))
    assert is_code("MONTH", Cells.of(pl.Series(list(range(1, 13)) * 9)))
    assert not is_code("birth_year", Cells.of(pl.Series(list(range(1950, 1990)) * 9)))
    assert not is_code("share", Cells.of(pl.Series([0.5, 1.0] * 9)))


def test_weights_are_named_so_and_positive():
    numbers = Cells.of(pl.Series([10.0, 12.5]))
    assert all(is_weight(name, numbers) for name in ("weight", "fnlwgt", "AFNLWGT", "household_weights", "wt"))
    assert not any(is_weight(name, numbers) for name in ("birth_weight", "weight_kg", "weighting_scheme_x", "height"))
    assert not is_weight("weight", Cells.of(pl.Series([10, 0])))
    assert not is_weight("weight", Cells.of(pl.Series(["heavy"])))
    assert is_of_person("height_cm")


@pytest.mark.parametrize(
    ("name", "cells", "weight"),
    [
        ("sampling_weight", [61.5, 80.0], True),  # the name is unambiguous
        ("pweight", [61.5, 80.0], True),
        ("Final Weight", [61.5, 80.0], True),
        ("hhwt", [3.5, 4.5], True),
        ("weight_2", [0.7, 1.9, 12.0], True),
        ("weight", [61.5, 80.0], False),  # kilograms
        ("weight", [3.1, 4.2, 2.9], False),  # newborns
        ("weight", [3100, 4200, 2900], False),  # in grams
        ("wt", [150, 210, 185], False),  # pounds
        ("weight", [120.5, 9000.0, 1.5], True),
        ("birthweight", [120.5, 9000.0], False),
        ("BirthWt", [120.5, 9000.0], False),
        ("bwt", [120.5, 9000.0], False),
        ("mothers_weight", [120.5, 9000.0], False),
        ("weight_lbs", [120.5, 9000.0], False),
        ("carcass weight", [120.5, 9000.0], False),
    ],
)
def test_body_weights_are_not_survey_weights(name, cells, weight):
    assert is_weight(name, Cells.of(pl.Series(cells, strict=False))) is weight


@pytest.mark.parametrize("other", ["age", "Sex", "height_cm", "gestation", "birth_year", "patient"])
def test_a_bare_weight_in_a_table_of_persons_is_not_a_survey_weight(other):
    numbers = Cells.of(pl.Series([120.5, 9000.0, 1.5]))
    assert is_of_person(other)
    assert not is_weight("weight", numbers, persons=True)
    assert is_weight("survey_weight", numbers, persons=True)


def test_units_are_ids_with_a_few_records_each():
    assert repeats_like_unit("ori_hid", Cells.of(pl.Series(list(range(30)) * 4)))
    assert repeats_like_unit("order_id", Cells.of(pl.Series(list(range(200)) * 4)))
    assert not repeats_like_unit("order_id", Cells.of(pl.Series(list(range(30)) * 4)))  # perhaps a classification
    assert not repeats_like_unit("hid", Cells.of(pl.Series(list(range(30)) * 60)))
    assert not repeats_like_unit("hid", Cells.of(pl.Series(range(30))))
    assert not repeats_like_unit("age", Cells.of(pl.Series(list(range(30)) * 4)))


def test_names_of_strata_and_of_sensitive_columns():
    assert is_stratum("Region")
    assert is_stratum("survey_region")
    assert not is_stratum("religion")
    names = ["religion", "ct_result", "Diagnosis 1", "operating_result"]
    assert list(read_words().sensitive_topics(names)) == names[:3]


CELLS = st.one_of(
    st.lists(st.none() | st.text(max_size=60)),
    st.lists(st.none() | st.text(alphabet=string.digits + "+-./: @TPZ", max_size=25)),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.none() | st.floats()),
    st.lists(st.none() | st.booleans()),
    st.lists(st.none() | st.dates()),
    st.lists(st.none() | st.decimals(-(10**6), 10**6, places=2)),
    st.lists(st.binary(max_size=5)),
    st.lists(st.lists(st.integers(0, 9))),
)
NAMES = st.one_of(st.text(), st.integers(), st.sampled_from(["id", "name", "weight", "phone_number", "age", "hid"]))


@settings(max_examples=300, deadline=None)
@given(name=NAMES, cells=CELLS, times=st.sampled_from([1, 30]))
def test_recognisers_never_refuse_a_column(name, cells, times):
    column = Cells.of(pl.Series(cells * times, strict=False))
    assert kind_of_cells(column) in ("float", "integer", "boolean", "nominal", "date", "time", "duration")
    reason = looks_like_identifier(name, column)
    assert reason is None or reason
    missing_codes(column)
    for says in (is_code, is_weight, repeats_like_unit):
        assert says(name, column) in (True, False)
    assert list(read_words().sensitive_topics([name])) in ([], [name])
    for says in (is_of_person, is_stratum):
        assert says(name) in (True, False)


def test_a_numbering_is_recognised_in_any_division_of_a_table(tmp_path, monkeypatch):
    """Every second record is in one part, the others in another: neither part alone is a numbering."""
    monkeypatch.setattr("shoal.engines.local.RECORDS", 100)
    numbers = [*range(0, 200, 2), *range(1, 200, 2)]
    table = pl.DataFrame({"n": numbers, "x": [float(i % 7) for i in range(200)]})
    table.write_parquet(tmp_path / "in.parquet", row_group_size=100)
    seen = []
    for how in ({}, {"engine": "local", "processes": 1}):
        release = shoal.mask(
            tmp_path / "in.parquet", 5, columns=["x"], keep=["n"], output=tmp_path / "out.parquet", **how
        )
        seen.append([reason for reason in release.identifying.values() if "a numbering of the records" in reason])
    assert len(seen[0]) == 1
    assert seen[0] == seen[1]
