"""Columns that are not numeric: hand-worked groups and losses, all methods, all engines, unchanged columns."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command, reference_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.registry import METHODS
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, sse
from shoal.kinds.category import group_medians, group_modes
from shoal.kinds.hierarchy import Hierarchy
from shoal.kinds.kind import PLAIN, Embedding
from shoal.kinds.nominal import Nominal
from shoal.kinds.ordinal import Ordinal

KEYS = ["age", "hours-per-week", "education-num", "marital-status", "occupation", "race", "sex", "native-country"]
TOWNS = {
    "Bath": ["South", "all"],
    "Bristol": ["South", "all"],
    "York": ["North", "all"],
    "Leeds": ["North", "all"],
}


def smallest(table, names):
    """Count the records of each released combination."""
    return pl.DataFrame(table).group_by(names).len()["len"].min()


# --- by hand -------------------------------------------------------------------------------------------------------


def test_two_values_lie_at_twice_the_weight():
    counts = np.array([5, 3, 2])
    gini = 1 - (0.25 + 0.09 + 0.04)
    places = Nominal().coding("x", ["a", "b", "c"], counts).coordinates
    for i in range(3):
        for j in range(i):
            assert np.isclose(np.square(places[i] - places[j]).sum(), 2 / gini)
    records = np.repeat(places, counts, axis=0)
    assert np.allclose(records.mean(axis=0), 0)
    assert np.isclose(np.square(records).sum() / 10, 1)


def test_the_sum_of_squares_of_a_group_is_that_of_its_counts():
    """w·(s − Σh²/s) for a group of s records with value counts h."""
    counts = np.array([4, 4, 2])
    coding = Nominal().coding("x", ["a", "b", "c"], counts)
    group = np.array([0, 0, 0, 1, 2])
    weight = 1 / (1 - np.square(counts / 10).sum())
    found = sse(coding.coordinates[group], np.zeros(5, dtype=np.int64))
    assert np.isclose(found, weight * (5 - (9 + 1 + 1) / 5))


def test_ordinal_values_are_standardised_mid_ranks():
    coding = Ordinal(["low", "mid", "high"]).coding("x", ["low", "mid", "high"], np.array([2, 4, 2]))
    ranks = np.array([1.5, 4.5, 7.5])
    all_ranks = np.repeat(ranks, [2, 4, 2])
    assert np.allclose(coding.coordinates[:, 0], (ranks - all_ranks.mean()) / all_ranks.std())


def test_a_hierarchy_brings_siblings_nearer():
    coding = Hierarchy(TOWNS).coding("town", list(TOWNS), np.ones(4, dtype=np.int64))
    places = coding.coordinates

    def distance(a, b):
        return np.square(places[a] - places[b]).sum()

    assert np.isclose(distance(0, 1), 2 / 0.75)
    assert np.isclose(distance(0, 2), 2 / 0.75 + 2 / 0.5)
    (south,) = (code for code, value in enumerate(coding.values) if value == "South")
    assert np.isclose(distance(0, south), 1 / 0.75)  # the level of towns has no more information
    assert np.isclose(distance(2, south), 1 / 0.75 + 2 / 0.5)


CODES = ["I10", "I10.1", "I10.9", "I11.0", "J45", "J45.0"]


def test_first_signs_of_codes_are_their_classes():
    listed = Hierarchy({code: [code[:3], code[0], "*"] for code in CODES})
    counts = np.arange(1, 7)
    by_signs, by_hand = Hierarchy([3, 1]).coding("icd", CODES, counts), listed.coding("icd", CODES, counts)
    assert by_signs.names == by_hand.names
    assert np.allclose(by_signs.coordinates, by_hand.coordinates)


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("as_file", [True, False])
def test_a_group_releases_the_first_signs_that_its_codes_share(tmp_path, numbers, as_file):
    codes = [101, 102, 103, 201, 202, 251] if numbers else CODES
    expected = ["10"] * 3 + ["2"] * 3 if numbers else ["I10"] * 3 + ["*"] * 3
    table = pl.DataFrame({"code": codes, "part": [1.0] * 3 + [9.0] * 3})
    if as_file:
        table.write_csv(tmp_path / "in.csv")
        words = ["-c", "code", "-c", "part", "--hierarchy", "code=2,1" if numbers else "code=3,1", "-o", "out.csv"]
        done = command("mask", "in.csv", "-k", 3, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        released = pl.read_csv(tmp_path / "out.csv", infer_schema=False)["code"].to_list()
    else:
        kind = Hierarchy([2, 1] if numbers else [3, 1])
        released = shoal.mask(table, 3, columns=["code", "part"], kinds={"code": kind}).data["code"].to_list()
    assert released == expected


def test_numbers_of_fewer_digits_have_lost_zeros():
    towns = Hierarchy([2]).coding("zip", [2139, 2140, 10115], np.ones(3, dtype=np.int64))
    assert towns.names[3:] == ("02", "10", "*")


def test_strata_of_codes_are_joined_to_their_class():
    table = pl.DataFrame({"zip": ["1201"] * 2 + ["1202"] * 3 + ["9000"] * 4, "x": [float(i) for i in range(9)]})
    release = shoal.mask(table, 4, columns=["x"], by="zip", small="merge", kinds={"zip": Hierarchy([2])})
    assert set(release.data["zip"]) == {"12", "9000"}


@pytest.mark.parametrize("lengths", [[], [0], [1, 3], [3, 3], [2.5], ["3"], [-1]])
def test_numbers_of_signs_fall(lengths):
    with pytest.raises(InputError, match="from the longest to the shortest"):
        Hierarchy(lengths)


def test_classes_by_first_signs_are_recorded_and_repeated(tmp_path):
    pl.DataFrame({"icd": CODES * 3, "x": [float(i) for i in range(18)]}).write_csv(tmp_path / "in.csv")
    words = ["-c", "icd", "-c", "x", "--hierarchy", "icd=3,1", "-o", "out.csv", "--manifest", "run.json"]
    assert command("mask", "in.csv", "-k", 3, *words, cwd=tmp_path).returncode == 0
    recorded = json.loads((tmp_path / "run.json").read_text())["parameters"]["kinds"]
    assert recorded == {"icd": {"ways": [3, 1], "release": "ancestor"}}
    first = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "out.csv").unlink()
    done = command("mask", "--from-manifest", "run.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.csv").read_bytes() == first


@pytest.mark.parametrize(
    ("how", "expected"),
    [(group_modes, [1, 0, 0, np.nan]), (group_medians, [1, 0, 2, np.nan])],
)
def test_values_of_groups_by_aggregate(how, expected):
    codes = np.array([1.0, 2, 1, 0, 3, 2, 0, np.nan, np.nan])
    labels = np.array([0, 0, 0, 1, 2, 2, 2, 3, 3])
    # Of the third group (3, 2, 0) all are as frequent: the lowest; its median is 2.
    np.testing.assert_array_equal(how(codes, labels), expected)


def test_the_nearest_common_ancestor():
    table = pl.DataFrame({"town": ["Bath", "Bristol", "York", "Leeds", "York", "York"], "x": [0.0, 0, 9, 9, 5, 5]})
    release = shoal.mask(table, 2, columns=["town", "x"], kinds={"town": Hierarchy(TOWNS)})
    assert release.data["town"].to_list() == ["South", "South", "North", "North", "York", "York"]
    mode = shoal.mask(table, 2, columns=["town", "x"], kinds={"town": Hierarchy(TOWNS, "mode")})
    assert set(mode.data["town"]) <= set(TOWNS)


def test_the_loss_is_that_of_what_is_released():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"sex": rng.choice(["f", "m"], 60), "job": rng.choice(list("abcde"), 60)})
    release = shoal.mask(table, 4, columns=["sex", "job"])
    for name in ("sex", "job"):
        counts = table[name].value_counts()["count"].to_numpy() / 60
        changed = (table[name] != release.data[name]).mean()
        assert np.isclose(release.column_loss[name], 100 * changed * 2 / (1 - np.square(counts).sum()))
    assert np.isclose(release.loss, np.mean(list(release.column_loss.values())))
    assert release.partition_loss < release.loss
    assert release.kinds == {"sex": "nominal", "job": "nominal"}
    assert "sex (nominal)" in str(release)


# --- kinds stay ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_types_stay(library):
    rng = np.random.default_rng(1)
    levels = ["none", "some", "much"]
    plain = {
        "text": rng.choice(["a", "b", "c"], 50).tolist(),
        "flag": rng.choice([True, False], 50).tolist(),
        "code": rng.integers(1, 4, 50).tolist(),
        "level": rng.choice(levels, 50).tolist(),
        "x": rng.normal(size=50).tolist(),
        "left": list(range(50)),
    }
    if library == "polars":
        table = pl.DataFrame(plain).with_columns(pl.col("level").cast(pl.Enum(levels)))
    elif library == "pandas":
        table = pd.DataFrame(plain, index=range(100, 150))
        table["level"] = pd.Categorical(table["level"], categories=levels, ordered=True)
    else:
        table = pa.table(plain)
    kinds = {"code": Nominal()} | ({"level": Ordinal(levels)} if library == "pyarrow" else {})
    release = shoal.mask(table, 3, columns=["text", "flag", "code", "level", "x"], kinds=kinds, keep="left")
    assert release.kinds == {"text": "nominal", "flag": "nominal", "code": "nominal", "level": "ordinal"}
    before, after = (pl.DataFrame(t.to_pandas() if library == "pyarrow" else t) for t in (table, release.data))
    assert {n: str(d).split("(")[0] for n, d in after.schema.items()} == {
        n: str(d).split("(")[0] for n, d in before.schema.items()
    }
    assert after["left"].to_list() == plain["left"]
    for name in ("text", "flag", "code", "level"):
        assert set(after[name].to_list()) <= set(plain[name])
    if library == "pandas":
        assert release.data["level"].dtype.ordered
        assert release.data.index.equals(pd.RangeIndex(len(table)))
    assert smallest(after.drop("left"), ["text", "flag", "code", "level", "x"]) >= 3


def test_an_ordered_category_of_pyarrow_is_ordinal():
    levels = ["none", "some", "much"]
    codes = pa.array(np.random.default_rng(0).integers(0, 3, 40).astype(np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=True)
    release = shoal.mask(pa.table({"level": column, "one": pa.array(["a"] * 40)}), 4, columns=["level"])
    assert release.kinds == {"level": "ordinal"}
    assert shoal.inspect(pa.table({"level": column})).kinds == {"level": "ordinal"}
    alone = pl.DataFrame({"level": pl.Series(["a"] * 9, dtype=pl.Enum(["a"])), "x": np.arange(9.0)})
    assert shoal.mask(alone, 3, columns=["level", "x"]).kinds == {"level": "nominal"}


def test_codes_in_an_array():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(1, 5, 40), rng.normal(size=40).round(2)])
    release = shoal.mask(X, 4, columns=[0, 1], kinds={0: Nominal()})
    assert set(release.data[:, 0]) <= {1.0, 2.0, 3.0, 4.0}
    assert np.unique(release.data, axis=0, return_counts=True)[1].min() >= 4


def test_missing_categories_keep_to_themselves(tmp_path):
    table = pl.DataFrame({"job": ["a", "NA", "b", "", "a", "b", "NA", "a"] * 3, "x": np.arange(24.0)})
    table.write_csv(tmp_path / "in.csv")
    release = shoal.mask(tmp_path / "in.csv", 3, columns=["job", "x"], missing="group", output=tmp_path / "out.csv")
    written = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert set(written["job"].filter(table["job"].is_in(["NA", ""]))) == {None}
    assert release.kinds == {"job": "nominal"}
    assert smallest(written, ["job", "x"]) >= 3


# --- every method, every engine ------------------------------------------------------------------------------------


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(["clerk", "nurse", "smith", "cook", None], n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "school": rng.choice(["none", "primary", "secondary"], n),
            "region": rng.choice(["north", "south"], n),
        }
    )


ASKED = {
    "columns": ["age", "sex", "job", "school"],
    "kinds": {"school": Ordinal(["none", "primary", "secondary"])},
    "missing": "group",
    "identifiers": ["name"],
    "keep": ["id"],
    "rest": "keep",
}


@pytest.mark.parametrize("method", [m.name for m in METHODS.values() if m.whole_records and not m.univariate])
def test_every_method_groups_categories(method):
    table = people(120)
    options = {"search": {"steps": 200}, "decomposition": {"time_limit": 1.0}}.get(method, {})
    release = shoal.mask(table, 5, method=method, **ASKED, **options)
    assert smallest(release.data, ASKED["columns"]) >= 5
    assert release.data.columns == ["id", "age", "sex", "job", "school", "region"]
    assert release.left == ("id", "region")
    assert release.data["id"].to_list() == table["id"].to_list()
    assert release.data["job"].is_null().to_list() == table["job"].is_null().to_list()


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own call of pandas
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("by", [None, "region"])
def test_every_engine_releases_the_same(tmp_path, ending, by, one_template):
    table = people(900)
    source = tmp_path / f"in.{ending}"
    table.write_csv(source) if ending == "csv" else table.write_parquet(source, row_group_size=200)
    releases = {}
    for engine in ("memory", "local", "dask"):
        output = tmp_path / f"{engine}.{'parquet' if engine == 'dask' else ending}"
        releases[engine] = shoal.mask(source, 4, **ASKED, by=by, block=150, engine=engine, output=output)
        found = pl.read_csv(output) if output.suffix == ".csv" else pl.read_parquet(output)
        assert smallest(found, [*ASKED["columns"], *([by] if by else [])]) >= 4
        assert "name" not in found.columns
        releases[engine, "table"] = found
    for engine in ("local", "dask"):
        assert np.isclose(releases[engine].loss, releases["memory"].loss, rtol=1e-12)
        assert np.isclose(releases[engine].partition_loss, releases["memory"].partition_loss, rtol=1e-12)
        assert releases[engine].uniques == releases["memory"].uniques
        for name in releases["memory", "table"].columns:
            texts = [releases[e, "table"][name].cast(pl.String).to_list() for e in ("memory", engine)]
            if name == "age":
                texts = [[float(text) for text in column] for column in texts]
            assert texts[0] == texts[1], name


@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_table_of_mixed_kinds(data):
    n = data.draw(st.integers(6, 40))
    k = data.draw(st.integers(2, 6))
    values = {
        "x": st.floats(-1e6, 1e6),
        "n": st.sampled_from(["a", "b", "ccc", "Ä", "1"]),
        "o": st.sampled_from(["low", "mid", "high"]),
        "t": st.sampled_from(["Bath", "York", "Leeds"]),
        "b": st.booleans(),
    }
    names = data.draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=4, unique=True))
    table = pl.DataFrame({name: data.draw(st.lists(values[name], min_size=n, max_size=n)) for name in [*names]})
    table = table.with_columns(left=pl.int_range(n))
    known = {"o": Ordinal(["low", "mid", "high"]), "t": Hierarchy(TOWNS)}
    method = data.draw(st.sampled_from(["auto", "mdav", "path", "mst-d", "v-mdav"]))
    kinds = {name: kind for name, kind in known.items() if name in names}
    release = shoal.mask(table, k, columns=names, kinds=kinds, method=method, keep="left")
    assert smallest(release.data, names) >= k
    assert release.data["left"].to_list() == list(range(n))
    assert release.partition_loss <= release.loss + 1e-9
    assert release.loss >= 0


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"columns": ["sex"], "method": "univariate"}, "have no order"),
        ({"columns": ["sex", "age"], "method": "individual-ranking"}, "have no order"),
        ({"columns": ["school"], "kinds": {"school": Ordinal(["none", "primary"])}}, "'secondary', which its kind"),
        ({"columns": ["age"], "kinds": {"sex": Nominal()}}, "which is not masked"),
        ({"columns": ["age"], "kinds": {"sexx": Nominal()}}, "Did you mean 'sex'"),
        ({"columns": ["age"], "kinds": {"age": 7}}, "must use shoal.Nominal"),
        ({"columns": ["name"]}, "Column 'name' has 1,200 different values"),
        ({"columns": ["age"], "identifiers": ["nam"]}, "Did you mean 'name'"),
        ({"columns": ["age"], "identifiers": ["age"]}, "Name it once"),
        ({"columns": ["age"], "identifiers": ["name"], "keep": ["name"]}, "in one of them"),
    ],
)
def test_refusals(asked, words):
    with pytest.raises(InputError, match=words):
        shoal.mask(people(1200), 3, **asked)


def test_a_column_of_too_many_categories_is_refused():
    table = pl.DataFrame({"job": [f"job {n}" for n in range(1200)] * 2})
    with pytest.raises(InputError, match="has 1,200 different values"):
        shoal.mask(table, 3, columns=["job"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Ordinal(["a"]), "at least 2 different levels"),
        (lambda: Ordinal(["a", "b", "a"]), "'a' twice"),
        (lambda: Hierarchy({"a": ["x"], "b": ["x", "y"]}), "the same number of ancestors"),
        (lambda: Hierarchy({"a": ["x"], "b": ["y"]}), "one root"),
        (lambda: Hierarchy({"a": ["x", "all"], "b": ["x", "none"]}), "one root|below"),
        (lambda: Hierarchy({"a": ["x"]}, release="median"), "'ancestor' or 'mode'"),
        (lambda: Ordinal(5), "Kind Ordinal must have lists of values, got 5"),
        (lambda: Ordinal([["a"], ["b"]]), r"Kind Ordinal must have lists of single values, but one holds \['a'\]"),
        (lambda: Hierarchy({"a": "xy"}), "Kind Hierarchy must have lists of values, got 'xy'"),
        (lambda: Hierarchy({"a": [["x"]]}), "lists of single values"),
        (lambda: shoal.MaskRequest(k=3, kinds=["a"]), "'kinds' must map column names to kinds"),
    ],
)
def test_kinds_are_checked_when_they_are_made(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_number_among_text_is_no_category(tmp_path):
    """A typing error in a column of numbers must not make a category of each number."""
    (tmp_path / "in.csv").write_text("x\n" + "\n".join(map(str, [*range(10)] * 2)) + "\n1O\n")
    with pytest.raises(InputError, match="record 21 holds '1O'"):
        shoal.mask(tmp_path / "in.csv", 3, columns=["x"], output=tmp_path / "out.csv")
    release = shoal.mask(tmp_path / "in.csv", 3, columns=["x"], kinds={"x": Nominal()}, output=tmp_path / "out.csv")
    assert release.kinds == {"x": "nominal"}


# --- the command line ----------------------------------------------------------------------------------------------


def test_kinds_on_the_command_line(tmp_path):
    people(200).write_csv(tmp_path / "in.csv")
    (tmp_path / "regions.csv").write_text("north;land\nsouth;land\n")
    done = command(
        "mask", "in.csv", "-k", 4, "-c", "age", "-c", "sex", "-c", "school", "-c", "region", "--nominal", "age",
        "--ordinal", "school=none,primary,secondary", "--hierarchy", "region=regions.csv", "--drop", "name",
        "-o", "out.csv", "--manifest", "run.json", "--report", "r.html", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "age (nominal), sex (nominal), school (ordinal), region (hierarchy)" in done.stdout
    first = (tmp_path / "out.csv").read_bytes()
    assert b"person" not in first
    assert json.loads((tmp_path / "run.json").read_text())["parameters"]["kinds"]["school"][0] == "none"
    again = command("mask", "--from-manifest", "run.json", cwd=tmp_path)
    assert "same bytes" in again.stdout, again.stderr
    page = (tmp_path / "r.html").read_text()
    assert "would be right for" in page
    assert "Risk and utility" in page
    assert (
        "the most frequent value (nominal), the median (ordinal) or the common ancestor (hierarchy) of its group"
        in page
    )
    wrong = command("mask", "in.csv", "-k", 4, "-c", "sex", "--ordinal", "sex", "-o", "o.csv", cwd=tmp_path)
    assert "--ordinal must read COLUMN=" in wrong.stderr


def test_adult(tmp_path):
    """No record is unique over the eight keys that an outsider knows, and the loss is that of the reference."""
    table = pl.read_csv(reference_path("adult"))
    kinds = {"education-num": Ordinal(sorted(table["education-num"].unique()))}
    release = shoal.mask(table, 5, columns=KEYS, kinds=kinds, method="path")
    assert smallest(release.data, KEYS) >= 5
    assert release.partition_loss < 4.6
    assert release.loss < 5.9


def test_coordinates_of_numbers_are_those_of_before():
    X = np.random.default_rng(0).normal(size=(30, 3))
    from shoal.core.measures import scaling

    np.testing.assert_array_equal(Embedding((PLAIN,) * 3).apply(X, scaling(X)), scaling(X).apply(X))


# --- identifiers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_an_identifier_is_released_only_if_it_is_kept(tmp_path, engine, one_template):
    table, out = people(300).rename({"name": "last_name"}), tmp_path / "out.parquet"
    table.write_parquet(tmp_path / "in.parquet")
    asked = {"columns": ["age"], "engine": engine, "output": out, "block": 100}
    with pytest.raises(InputError, match=r"'last_name' looks like an identifier.* Nothing was released"):
        shoal.mask(tmp_path / "in.parquet", 3, **asked, rest="keep", keep="id")
    with pytest.raises(InputError, match=r"'id' looks like an identifier"):  # the other identifier is refused too
        shoal.mask(tmp_path / "in.parquet", 3, **asked, rest="keep", keep="last_name")
    assert not out.exists()
    release = shoal.mask(tmp_path / "in.parquet", 3, **asked, keep=["last_name", "id"])
    assert pl.read_parquet(out).select("id", "last_name").equals(table.select("id", "last_name"))
    assert release.left == ("id", "last_name")
    shoal.mask(tmp_path / "in.parquet", 3, **asked, rest="keep", identifiers=["last_name", "id"])
    assert pl.read_parquet(out).columns == ["age", "sex", "job", "school", "region"]
    dropped = shoal.mask(tmp_path / "in.parquet", 3, **asked)
    assert pl.read_parquet(out).columns == ["age"]
    assert sorted(dropped.dropped) == ["id", "job", "last_name", "region", "school", "sex"]


def test_from_inspection_to_a_release(tmp_path, monkeypatch):
    """As a steward works: inspect, run the proposed command, and count over the keys in the file."""
    monkeypatch.setattr("shoal.comparison.around.MOST_RECORDS", 0)  # maps of reports have their own tests
    source = reference_path("covid_testing")
    (tmp_path / "covid.csv").write_bytes(source.read_bytes())
    done = command("inspect", "covid.csv", cwd=tmp_path)
    proposed = next(line for line in done.stdout.splitlines() if line.startswith("shoal mask"))
    words = proposed.split()
    assert words[words.index("--drop") : words.index("--drop") + 2] == ["--drop", "subject_id"]
    assert command(*words[1:], "--report", "r.html", cwd=tmp_path).returncode == 0
    released = pl.read_csv(tmp_path / "covid-masked.csv")
    keys = [words[i + 1] for i, word in enumerate(words) if word == "-c"]
    assert {"age", "gender", "payor_group"} <= set(keys)
    assert not {"subject_id", "fake_first_name", "fake_last_name"} & set(released.columns)
    assert smallest(released, keys) >= 5
    assert (
        "result, ct_result" in (tmp_path / "r.html").read_text()
        or "result and ct_result" in (tmp_path / "r.html").read_text()
    )


# --- who is alike, and in which order ------------------------------------------------------------------------------


def test_distance_decides_which_records_are_similar():
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "sex": rng.choice(["f", "m"], 60)})
    release = shoal.mask(table, 4, columns=["a", "b", "sex"], distance="a")
    assert release.parameters["method"] == "univariate"  # one column decides: the optimum is known
    np.testing.assert_array_equal(release.labels, shoal.mask(table, 4, columns=["a"]).labels)
    assert smallest(release.data, ["a", "b", "sex"]) >= 4
    several = shoal.mask(table, 4, columns=["a", "b", "sex"], distance=["b", "a"])
    np.testing.assert_array_equal(several.labels, shoal.mask(table, 4, columns=["a", "b"]).labels)


def test_importance_is_a_scale():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    release = shoal.mask(X, 4, importance={0: 9.0})
    np.testing.assert_array_equal(release.labels, shoal.partition(X * [3.0, 1.0], 4))
    assert release.column_loss[0] < shoal.mask(X, 4).column_loss[0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"distance": ["c"]}, "'distance' names column 'c'"),
        ({"distance": []}, "at least one masked column"),
        ({"importance": {"c": 1.0}}, "'importance' names column 'c'"),
        ({"importance": {"a": 0}}, "positive number for column 'a', got 0"),
        ({"importance": {"a": 2.0}, "method": "individual-ranking"}, "cannot be combined with it"),
        ({"importance": {"a": 2.0}, "method": "search", "bound": True}, "'bound' cannot be combined with"),
    ],
)
def test_comparisons_that_are_refused(asked, words):
    table = pl.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)[::-1]})
    with pytest.raises(InputError, match=words):
        shoal.mask(table, 3, columns=["a", "b"], **asked)


def test_shuffled_records_are_the_same_in_another_order(tmp_path):
    table = people(100)
    plain = shoal.mask(table, 4, columns=["age", "sex"], keep="id")
    outputs = {"output": tmp_path / "out.csv", "labels": tmp_path / "labels.csv"}
    release = shoal.mask(table, 4, columns=["age", "sex"], keep="id", shuffle=7, **outputs)
    assert release.kept.tolist() != list(range(100))
    labels = pl.read_csv(tmp_path / "labels.csv")
    assert (labels["record"] - 1).to_list() == release.kept.tolist()
    np.testing.assert_array_equal(canonical_labels(labels["group"].to_numpy()), canonical_labels(release.labels))
    assert release.data["id"].to_list() == release.kept.tolist()
    assert release.data.sort("id").equals(plain.data)
    np.testing.assert_array_equal(release.labels, plain.labels[release.kept])
    assert pl.read_csv(tmp_path / "out.csv")["id"].to_list() == release.kept.tolist()
    again = shoal.mask(table, 4, columns=["age", "sex"], keep="id", shuffle=7)
    assert again.data.equals(release.data)
    orders = [shoal.mask(table, 4, columns=["age"], shuffle=True).kept.tolist() for _ in range(2)]
    assert orders[0] != orders[1]
    assert "the records are in random order" in str(release)
    pages = [r.report(tmp_path / "r.html").read_text() for r in (plain, release)]
    assert ["in the order of the original" in page for page in pages] == [True, False]


def test_shuffling_on_the_command_line_is_not_repeated(tmp_path):
    people(60).write_csv(tmp_path / "in.csv")
    done = command(
        "mask", "in.csv", "-k", 3, "-c", "age", "-c", "sex", "--importance", "age=2", "--distance", "age", "--shuffle",
        "-o", "out.csv", "--manifest", "run.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "random order" in command("mask", "--from-manifest", "run.json", cwd=tmp_path).stderr
    local = command(
        "mask", "in.csv", "-k", 3, "-c", "age", "--shuffle", "--engine", "local", "-o", "o.csv", cwd=tmp_path
    )
    assert "--shuffle needs the whole table in memory" in local.stderr


# --- small strata --------------------------------------------------------------------------------------------------


def towns():
    sizes = {"big": 20, "mid": 9, "few": 3, "one": 1}
    return pl.DataFrame(
        {"town": [town for town, n in sizes.items() for _ in range(n)], "x": np.arange(33.0) ** 2, "n": np.arange(33)}
    )


def test_all_small_strata_are_listed():
    with pytest.raises(InputError, match="town='few' has 3 records, the stratum town='one' has 1 record") as told:
        shoal.mask(towns(), 4, columns=["x"], by="town", small="error")
    assert "small='suppress'" in str(told.value)


def test_small_strata_are_left_out():
    asked = {"columns": ["x"], "by": "town", "keep": "n"}
    release = shoal.mask(towns(), 4, small="suppress", max_left_out=1, **asked)
    assert release.data["town"].unique().sort().to_list() == ["big", "mid"]
    assert release.kept.tolist() == list(range(29)) == release.data["n"].to_list()
    assert "4 records of strata or patterns with fewer than k were suppressed" in str(release)
    same = shoal.mask(towns()[:29], 4, **asked)
    assert release.data.equals(same.data)
    assert release.loss == pytest.approx((29 * same.loss + 4 * 100) / 33)  # four records have lost everything
    with pytest.raises(InputError, match=r"4 of 33 records \(12.2%\) would be suppressed"):
        shoal.mask(towns(), 4, small="suppress", **asked)


def test_rare_patterns_of_missing_values_are_left_out():
    table = towns()[:32].with_columns(
        pl.when(pl.col("n") % 11 == 0).then(None).otherwise("x").alias("x"), y=pl.col("n").cast(pl.Float64)
    )
    with pytest.raises(InputError, match="only 2 records of the stratum town='big' have missing values in exactly: x"):
        shoal.mask(table, 3, columns=["x", "y"], by="town", missing="group", small="error")
    asked = {"missing": "group", "small": "suppress", "max_left_out": 1}
    release = shoal.mask(table, 3, columns=["x", "y"], by="town", **asked)
    assert release.data["x"].null_count() == 0
    assert smallest(release.data, ["town", "x", "y"]) >= 3


def test_a_comparison_leaves_out_what_a_stratum_cannot_keep():
    found = shoal.compare(towns()[:29], [3, 10], columns=["x"], by="town", small="error", methods=["mdav"])
    assert [trial.k for trial in found.trials] == [3]
    assert "k = 10: a stratum" in str(found)


# --- types -----------------------------------------------------------------------------------------------------------


def sorted_categories():
    """Records in the order of their categories: a part of the table holds one value, groups hold several."""
    rng = np.random.default_rng(0)
    place = np.sort(rng.integers(0, 3, 200))
    table = pd.DataFrame({"x": rng.normal(size=200).round(1)})
    table["order"] = pd.Categorical.from_codes(place, ["low", "mid", "high"], ordered=True)
    table["letter"] = pd.Categorical(np.array(list("abc"))[place])
    table["code"], table["flag"] = (place * 7).astype("int8"), place > 0
    table["town"] = np.array(["Bath", "York", "Leeds"])[place]
    table["place"] = pd.Categorical(table["town"])
    return table


FEW = Hierarchy({0: ["few", "all"], 7: ["few", "all"], 14: ["many", "all"]})


@pytest.mark.parametrize(
    "kinds",
    [
        {"code": Nominal(), "town": Hierarchy(TOWNS), "place": Hierarchy(TOWNS)},
        {"code": FEW, "town": Hierarchy(TOWNS, "mode")},
        {"code": Hierarchy(FEW.ways, "mode"), "letter": ["c", "b", "a"]},
    ],
    ids=["nominal", "ancestor", "mode"],
)
def test_categories_have_one_type_in_all_parts_and_engines(tmp_path, kinds):
    pq = pytest.importorskip("pyarrow.parquet")
    table, columns = sorted_categories(), ["x", "order", "letter", "code", "flag", "town", "place"]
    table.to_parquet(tmp_path / "in.parquet", row_group_size=40)
    asked = {"columns": columns, "kinds": kinds, "distance": ["x"], "block": 50}
    released = []
    for engine in ("memory", "local"):
        out = tmp_path / f"{engine}.parquet"
        release = shoal.mask(tmp_path / "in.parquet", 5, engine=engine, output=out, **asked)
        assert release.kinds["order"] == "ordinal"
        released.append(pq.read_table(out))
    assert released[0].schema.equals(released[1].schema)
    assert released[0].to_pylist() == released[1].to_pylist()
    given = pq.read_schema(tmp_path / "in.parquet")
    for name in ("order", "letter", "flag", "place"):
        assert released[0].schema.field(name).type == given.field(name).type
    assert released[0].schema.field("code").type == (pa.string() if kinds["code"] is FEW else pa.int8())
    dd = pytest.importorskip("dask.dataframe")
    there = shoal.mask(dd.from_pandas(table, npartitions=4), 5, **asked)
    assert there.kinds["order"] == "ordinal"
    assert (
        there.data.compute().astype(str).to_numpy().tolist() == released[0].to_pandas().astype(str).to_numpy().tolist()
    )
