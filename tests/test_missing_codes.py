"""Codes for missing values: -9, 99 or "?" in a masked column are missing cells with one spelling in the release."""

import shlex

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.errors import InputError

INCOME = [10, 20, -9, 33, 99, 42, -9, 45]


def table(**columns):
    return pl.DataFrame({"income": INCOME, "left": INCOME, **columns})


def masked(data, codes=(-9, 99), column="income", **asked):
    asked = {"missing": "group", "rest": "keep", "max_left_out": 1, **asked}
    return shoal.mask(data, 2, columns=[column], missing_codes={column: codes}, **asked)


# Numbers


@pytest.mark.parametrize(
    "native", [pl.DataFrame, lambda frame: frame.to_pandas(), lambda frame: frame.to_arrow()], ids=["pl", "pd", "pa"]
)
@pytest.mark.parametrize("kind", [pl.Int8, pl.Int64, pl.Float32, pl.Float64])
def test_codes_are_missing_cells_by_hand(native, kind):
    data = table().with_columns(pl.col("income").cast(kind))
    release = masked(native(data))
    found = pl.DataFrame(release.data) if isinstance(release.data, (pd.DataFrame, pa.Table)) else release.data
    assert found["income"].to_list() == [15, 15, -9, 40, -9, 40, -9, 40]
    assert found["left"].to_list() == INCOME
    empty = data.with_columns(pl.col("income").cast(float).replace([-9.0, 99.0], [None, None]))
    plain = shoal.mask(empty, 2, columns=["income"], missing="group")
    assert release.loss == plain.loss
    assert found["income"].cast(float).to_list() == plain.data["income"].fill_null(-9.0).to_list()
    assert "cells of income with -9 or 99 were read as missing; all its missing cells are released as -9" in str(
        release
    )


def test_one_code_stays_and_replaces_empty_cells():
    data = table().with_columns(pl.col("income").replace(-9, 99))
    assert masked(data, [-9, 99]).data["income"].to_list()[2::2] == [99, 99, 99]
    assert "missing code -9 never occurs in income" in masked(data, [-9, 99]).notes
    data = table().with_columns(pl.col("income").replace(-9, None))
    assert masked(data, 99).data["income"].to_list()[2::2] == [99, 99, 99]


def test_integers_stay_whole():
    release = masked(table(), integers="round")
    assert release.data["income"].dtype == pl.Int64
    assert release.data["income"].to_list()[2::2] == [-9, -9, -9]


@pytest.mark.parametrize("integers", ["float", "round"])
def test_arrays(integers):
    array = np.column_stack([INCOME, INCOME])
    release = masked(array, column=0, integers=integers)
    assert release.data[2::2, 0].tolist() == [-9, -9, -9]
    assert release.data[:, 1].tolist() == INCOME
    assert release.data.dtype == (np.float64 if integers == "float" else np.int64)


def test_drop_and_error():
    assert masked(table(), missing="drop").data["left"].to_list() == [10, 20, 33, 42, 45]
    with pytest.raises(InputError, match=r"Column 'income' has 3 missing values"):
        masked(table(), missing="error")


def test_a_code_that_is_the_mean_of_a_group_leaves_missing_cells_empty():
    data = pl.DataFrame({"x": [98, 100, 99, 99, 5, 7]})
    release = masked(data, [99], "x")
    assert release.data["x"].to_list() == [99.0, 99.0, None, None, 6.0, 6.0]
    assert "missing cells of x are empty: 99 is also the value of a group" in release.notes
    whole = masked(data.to_numpy(), [99], 0, integers="round").data
    assert np.array_equal(whole[:, 0], [99, 99, np.nan, np.nan, 6, 6], equal_nan=True)


# Categories


@pytest.mark.parametrize("kind", ["nominal", ["low", "mid", "high"], {"low": ["all"], "mid": ["all"], "high": ["all"]}])
@pytest.mark.parametrize("native", [lambda f: f, lambda f: f.to_pandas(), lambda f: f.to_arrow()])
def test_categories(kind, native):
    words = ["low", "low", "?", "mid", "mid", "unknown", "high", "high", "low"]
    release = masked(native(pl.DataFrame({"level": words})), ["?", "unknown"], "level", kinds={"level": kind})
    assert pl.DataFrame(release.data)["level"].to_list()[2:6:3] == ["?", "?"]
    assert "unknown" not in pl.DataFrame(release.data)["level"].to_list()


@pytest.mark.parametrize("kind", [pl.Int16, pl.Float64])
def test_numbers_that_are_categories(kind):
    data = pl.DataFrame({"sex": pl.Series([1, 1, 9, 2, 2, 8, 1], dtype=kind)})
    release = masked(data, [9, 8], "sex", kinds={"sex": "nominal"})
    assert release.data["sex"].to_list() == [1, 1, 9, 2, 2, 9, 1]
    assert release.data["sex"].dtype == kind


def test_ordered_types_keep_their_type():
    words = ["low", "low", "?", "high", "high", "?"]
    data = pl.DataFrame({"level": pl.Series(words, dtype=pl.Enum(["?", "low", "high"]))})
    release = masked(data, "?", "level")
    assert release.data["level"].to_list() == words
    assert isinstance(release.data["level"].dtype, pl.Enum)


# Files


@pytest.mark.parametrize("source", ["polars", "pandas", "pyarrow", "csv"])
def test_codes_that_are_numbers_do_not_make_categories_look_like_numbers(tmp_path, source):
    people = pl.DataFrame({"job": ["clerk", "-9", "clerk", "-8", "clerk", "-9"] * 2})
    people.write_csv(tmp_path / "people.csv")
    sources = {"polars": people, "pandas": people.to_pandas(), "pyarrow": people.to_arrow()}
    release = masked(sources.get(source, tmp_path / "people.csv"), (-9, -8), "job")
    assert release.kinds == {"job": "nominal"}
    assert pl.DataFrame(release.data)["job"].to_list() == ["clerk", "-9"] * 6


def test_text_of_csv_files_is_matched_as_a_number_and_written_in_one_way(tmp_path):
    cells = ["10", "20", "-9.0", "30", "99", "40", "-9", "50", "", "NA"]
    pl.DataFrame({"income": cells, "left": cells}).write_csv(tmp_path / "in.csv")
    out = tmp_path / "out.csv"
    masked(tmp_path / "in.csv", ["-9", 99], output=out)
    written = pl.read_csv(out, infer_schema=False)
    assert written["income"].to_list()[2:10:2] == ["-9"] * 4
    assert written["income"].to_list()[9] == "-9"
    assert written["left"].fill_null("").to_list() == cells


def test_decimal_commas(tmp_path):
    (tmp_path / "in.csv").write_text("x;y\n1,5;a\n2,5;a\n-9,0;a\n-9;a\n4,5;a\n5,5;a\n")
    masked(tmp_path / "in.csv", [-9], "x", output=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "x;y\n2,0;a\n2,0;a\n-9;a\n-9;a\n5,0;a\n5,0;a\n"


@pytest.mark.filterwarnings("default")  # Dask and its libraries warn about themselves
@pytest.mark.parametrize("engine", ["memory", "local", "dask"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("words", [True, False])
def test_words_among_numbers_on_every_engine(tmp_path, engine, ending, words, one_template):
    if engine == "dask" and (ending == "csv" or not pytest.importorskip("dask.dataframe")):
        pytest.skip("writes Parquet")
    cells = [str(i) for i in range(40)]
    cells[3:40:7] = (["?", "na"] if words else ["-9", "-9.0"]) * 3
    pl.DataFrame({"x": cells, "n": np.arange(40)}).write_csv(tmp_path / "in.csv")
    out = tmp_path / f"out.{ending}"
    release = shoal.mask(
        tmp_path / "in.csv", 3, columns=["x"], missing="group", output=out, engine=engine, keep=["n"], block=20,
        missing_codes={"x": ["?", "na", -9]},
    )  # fmt: skip
    written = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    holes = written["x"].gather_every(7, 3).to_list()
    # Parquet cannot store a word among numbers.
    expected = (None if ending == "parquet" else "?") if words else -9
    assert [float(cell) if ending == "csv" and not words else cell for cell in holes] == [expected] * 6
    assert written["x"].cast(pl.String).value_counts()["count"].min() >= 3
    assert release.parameters["missing_codes"] == {"x": ["?", "na", -9]}


@pytest.mark.parametrize("suffix", ["sav", "dta"])
def test_statistical_packages_round_trip(tmp_path, suffix):
    """Cell by cell, with formats, labels and definitions of all columns that are not masked."""
    library = pytest.importorskip("pyreadstat")
    rng, n = np.random.default_rng(0), 30
    frame = pl.DataFrame(
        {
            "income": rng.normal(50, 9, n).round(2),
            "sex": pl.Series(np.tile([1, 2, 9], 10), dtype=pl.Int8),
            "answer": pl.Series(np.tile([1, 2, -9, -8, 3], 6), dtype=pl.Int16),
            "share": np.where(np.arange(n) % 7 == 0, 99.0, np.arange(n) / 2),
            "word": np.tile(["a", "bb", "zz"], 10),
            "count": pl.Series(np.arange(n), dtype=pl.Int32),
        }
    )
    labels = {
        "sex": {1: "man", 2: "woman", 9: "refused"},
        "answer": {-9: "refused", 1: "yes"},
        "income": {50.5: "ACME"},
    }
    told = {"column_labels": {"sex": "Sex of"}, "variable_value_labels": labels}
    if suffix == "sav":
        told |= {
            "missing_ranges": {"answer": [-9, -8], "share": [{"lo": 90, "hi": 99}], "word": ["zz"], "sex": [9]},
            "variable_measure": {"sex": "nominal", "answer": "ordinal"},
            "variable_format": {"count": "F5.0", "share": "F6.1", "answer": "F2.0", "sex": "F1.0"},
        }
    write, read = getattr(library, f"write_{suffix}"), getattr(library, f"read_{suffix}")
    if suffix == "dta":
        del labels["income"]  # Stata labels whole numbers only
    write(frame, tmp_path / f"in.{suffix}", **told)
    release = shoal.mask(
        tmp_path / f"in.{suffix}", 3, columns=["income", "sex"], kinds={"sex": "nominal"}, keep=["count"], rest="keep",
        missing="group", missing_codes={"sex": 9}, output=tmp_path / f"out.{suffix}",
    )  # fmt: skip
    before, known = read(tmp_path / f"in.{suffix}", user_missing=True, output_format="polars")
    after, kept = read(tmp_path / f"out.{suffix}", user_missing=True, output_format="polars")
    described = (
        "variable_value_labels", "missing_ranges", "missing_user_values", "original_variable_types",
        "variable_measure", "readstat_variable_types", "column_names_to_labels", "variable_display_width",
    )  # fmt: skip
    for name in ("answer", "share", "word", "count"):
        assert after[name].equals(before[name])
        assert after[name].dtype == before[name].dtype
        for what in described:
            assert getattr(kept, what).get(name) == getattr(known, what).get(name), (name, what)
    # A masked category keeps the labels of its released values, and the code for missing its definition.
    assert kept.variable_value_labels["sex"] == {1: "man", 2: "woman", 9: "refused"}
    assert kept.missing_ranges.get("sex") == known.missing_ranges.get("sex")
    assert kept.readstat_variable_types["sex"] == known.readstat_variable_types["sex"]
    assert after["sex"].to_list()[2::3] == [9] * 10
    assert "income" not in kept.variable_value_labels
    assert release.records == n


def test_only_released_categories_keep_their_labels(tmp_path):
    library = pytest.importorskip("pyreadstat")
    frame = pl.DataFrame({"job": [1.0] * 5 + [2.0] * 5 + [3.0]})
    library.write_sav(frame, tmp_path / "in.sav", variable_value_labels={"job": {1: "cook", 2: "smith", 3: "king"}})
    shoal.mask(tmp_path / "in.sav", 3, columns=["job"], kinds={"job": "nominal"}, output=tmp_path / "out.sav")
    assert library.read_sav(tmp_path / "out.sav")[1].variable_value_labels == {"job": {1: "cook", 2: "smith"}}
    assert b"king" not in (tmp_path / "out.sav").read_bytes()


def test_fractions_are_no_codes_of_categories():
    with pytest.raises(InputError, match=r"Column 'x' must contain whole numbers to be codes, but record 2 holds 1\.5"):
        shoal.mask(pl.DataFrame({"x": [1.0, 1.5, 2.0]}), 2, columns=["x"], kinds={"x": "nominal"})


# Refusals


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ({"left": [-9]}, "names column 'left', which is not masked: its codes are kept unchanged"),
        ({"incom": [-9]}, "names column 'incom', which the table does not have"),
        ({"income": []}, "must list finite numbers or texts for column 'income'"),
        ({"income": [None]}, "must list finite numbers or texts for column 'income', got None"),
        ({"income": float("nan")}, "got nan"),
        ({"income": [True]}, "got True"),
        ({"income": "?"}, r"names '\?' for column 'income', which holds numbers"),
        ([-9], "must map columns to codes"),
    ],
)
def test_refusals(codes, message):
    with pytest.raises(InputError, match=message):
        shoal.mask(table(), 2, columns=["income"], missing="group", missing_codes=codes)


# Command line, manifest, comparison, report


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(1)
    ages = rng.integers(18, 80, 60)
    ages[::6] = -9
    ages[1::12] = 999
    jobs = np.tile(["cook", "smith", "?", "clerk"], 15)
    sizes = [str(size) for size in rng.normal(170, 9, 60).round(1)]
    sizes[5:60:8] = ["NA", "?"] * 3 + ["NA"]
    pl.DataFrame({"age": ages, "job": jobs, "size": sizes}).write_csv(tmp_path / "people.csv")
    return tmp_path


def test_the_command_and_its_manifest(people):
    done = command(
        "mask", "people.csv", "-k", 3, "-c", "age", "-c", "job", "--missing", "group", "--missing-code", "age=-9,999",
        "--missing-code", "job=?", "--small", "suppress", "-o", "out.csv", "--manifest", "run.json",
        "--report", "r.html", cwd=people,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cells of age with -9 or 999 were read as missing" in done.stdout
    again = command("mask", "--from-manifest", "run.json", "-o", "again.csv", cwd=people)
    assert "same bytes" in again.stdout, again.stderr
    assert (people / "again.csv").read_bytes() == (people / "out.csv").read_bytes()
    text = (people / "out.csv").read_text()
    assert "999" not in text
    assert "--missing-code age=-9,999" in (people / "r.html").read_text()
    bad = command("mask", "people.csv", "-k", 3, "-c", "age", "--missing-code", "age", "-o", "o.csv", cwd=people)
    assert "--missing-code must be COLUMN=CODE" in bad.stderr


def test_a_report_knows_a_code_that_is_the_mean_of_a_group(tmp_path):
    data = pl.DataFrame({"x": [98, 100, 99, 99, 5, 7, 30, 34], "y": np.arange(8.0)})
    release = shoal.mask(data, 2, columns=["x", "y"], missing="group", missing_codes={"x": 99})
    release.report(tmp_path / "r.html", original=data)
    assert (tmp_path / "r.html").exists()


def test_a_report_measures_against_the_original(people, tmp_path):
    release = shoal.mask(people / "people.csv", 3, columns=["age"], missing="group", missing_codes={"age": [-9, 999]})
    release.report(tmp_path / "r.html", original=people / "people.csv")
    assert (tmp_path / "r.html").exists()


def test_a_comparison_takes_codes_too(people):
    done = command(
        "compare", "people.csv", "-k", 3, "-c", "age", "-m", "mdav", "--missing", "group", "--missing-code",
        "age=-9,999", cwd=people,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    release = shoal.mask(
        people / "people.csv", 3, columns=["age"], method="mdav", missing="group", missing_codes={"age": [-9, 999]}
    )
    assert f"{release.loss:.4f}" in done.stdout


def test_inspect_names_codes_in_reason_and_command(people):
    found = shoal.inspect(people / "people.csv", k=3)
    reasons = {column.name: column.reason for column in found.columns}
    assert "-9 (10 times), 999 (5 times) far from the rest: codes for missing values?" in reasons["age"]
    assert "? (15 times): codes for missing values?" in reasons["job"]
    assert "? (3 times), NA (4 times): codes for missing values?" in reasons["size"]
    assert found.kinds["size"] == "float"
    _, *words = shlex.split(found.command)
    for pair in ("age=-9,999", "job=?", "size=?,NA"):
        assert words[words.index(pair) - 1] == "--missing-code"
    assert "missing" not in found.asked  # the default groups them
    assert "--missing" not in words
    assert command(*words, cwd=people).returncode == 0


def test_inspect_proposes_a_call_that_runs():
    data = pl.DataFrame({"age": [-9] * 5 + list(range(30, 60)), "job": ["NA"] * 5 + ["cook", "smith"] * 15})
    found = shoal.inspect(data, k=5)
    assert "missing_codes={'age': [-9], 'job': ['NA']}" in found.command
    namespace = {"data": data}
    exec(found.command.replace("shoal.mask(", "release = shoal.mask("), namespace)
    assert namespace["release"].data["age"].to_list()[:5] == [-9] * 5


# Properties


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cells=st.lists(st.sampled_from([-9, 99, None, 1, 2, 3, 7, 20]), min_size=8, max_size=40),
    kind=st.sampled_from([pl.Int32, pl.Float32, pl.Float64]),
    nominal=st.booleans(),
    k=st.integers(2, 3),
    small=st.sampled_from(["error", "merge"]),
)
def test_missing_cells_have_one_spelling_and_groups_have_k(cells, kind, nominal, k, small):
    data = pl.DataFrame({"x": pl.Series(cells, dtype=kind), "left": cells, "y": np.arange(len(cells)) / 7})
    kinds = {"x": "nominal"} if nominal and kind == pl.Int32 else None
    try:
        asked = {"missing": "group", "missing_codes": {"x": [-9, 99]}, "keep": ["left"], "max_left_out": 1}
        release = shoal.mask(data, k, columns=["x", "y"], kinds=kinds, small=small, **asked)
    except InputError as refused:
        assert small == "error"
        assert "'k'" in str(refused) or "miss" in str(refused)  # noqa: PT017
        return
    found = release.data
    assert found["left"].to_list() == cells
    assert found.group_by("x", "y").len()["len"].min() >= k
    holes = [cell in (-9, 99, None) for cell in cells]
    assert found["x"].filter(pl.Series(holes)).n_unique() <= 1


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Int32])
def test_a_column_of_categories_that_holds_codes_for_missing_alone(dtype):
    table = pl.DataFrame({"a": [0] * 6, "b": range(6)}, schema_overrides={"a": dtype})
    release = shoal.mask(
        table, 3, columns=["a", "b"], kinds={"a": "nominal"}, missing="group", missing_codes={"a": [0]}
    )
    assert release.data["a"].to_list() == [0] * 6
    assert release.data["a"].dtype == dtype


@pytest.mark.parametrize("kind", ["date", "nominal", None])
def test_bytes_are_refused_beside_codes_too(kind):
    table = pl.DataFrame({"a": [b"\xff\xfe", b"a", b"b"] * 4})
    with pytest.raises(InputError, match="Column 'a'"):
        shoal.mask(
            table, 2, columns=["a"], missing="group", missing_codes={"a": [1]}, kinds={"a": kind} if kind else None
        )
