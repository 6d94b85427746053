"""One pipeline: whatever the engine, the same values, groups, notes, losses and refusals."""

import os
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import FIGURES

import shoal
from shoal.algorithms.registry import METHODS
from shoal.core.errors import InputError

# Spark takes seconds for a case, whatever its size: `make contract-on-spark` runs all of them, test_spark.py some.
ENGINES = tuple(os.environ.get("SHOAL_ENGINES", "local dask").split())
OPTIONS = {"search": {"steps": 200}, "decomposition": {"subset_limit": 5.0}}
METHODS_OF_RECORDS = [method.name for method in METHODS.values() if method.whole_records]
pytestmark = pytest.mark.usefixtures("one_template", *({"spark"} & {*ENGINES}))
if "spark" in ENGINES:
    from test_spark import spark  # noqa: F401  (a fixture: the session)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"record {i}" for i in range(160)],
            "a": rng.lognormal(size=160).round(3),
            "b": rng.normal(size=160).astype(np.float32),
            "count": rng.integers(0, 50, 160),
            "few": np.random.default_rng(1).integers(-1, 3, 160),
            "weight": rng.uniform(1, 3, 160),
            "region": np.tile(["north", "south"], 80),
        }
    )
    frame.loc[frame.index % 8 < 2, "a"] = np.nan
    frame["both"] = frame["count"] + frame["few"]
    frame["sum"] = frame["a"] + frame["b"]
    net = rng.lognormal(size=160)
    frame["net"], frame["gross"] = net.round(3), (frame["a"] + net).round(3)
    frame["off"] = frame["net"] + 0.002 * (frame.index == 107)
    frame["coded"] = frame["count"].where(frame.index % 8 < 5, -9)
    return frame


def with_others(asked):
    """Return a request whose release also has the columns without a role, the name and the unit among them."""
    asked = {"k": 3, "columns": ["a", "b"], "block": 40, "missing": "group", "max_left_out": 1, **asked}
    if asked["columns"] is None or "rest" in asked:
        return asked
    taken = [asked["columns"], asked.get("identifiers"), asked.get("by"), asked.get("confidential")]
    names = {name for value in taken if value for name in ([value] if isinstance(value, str) else value)}
    keep = [name for name in ("name", asked.get("unit")) if name and name not in names]
    return {"rest": "keep", "keep": keep, **asked}


def run(engine, table, folder, **asked):
    """Mask on an engine; return the release and the table as written, by values."""
    asked = with_others(asked)
    if engine == "dask":
        dd = pytest.importorskip("dask.dataframe")
        release = shoal.mask(dd.from_pandas(table, npartitions=3), **asked)
        return release, pl.from_pandas(release.data.compute())
    table.to_parquet(folder / "in.parquet", row_group_size=50, index=False)
    out = folder / f"{engine}.parquet"
    release = shoal.mask(folder / "in.parquet", engine=engine, output=out, **asked)
    return release, pl.read_parquet(sorted(out.glob("*.parquet")) if out.is_dir() else out)


def assert_same(engine, table, folder, **asked):
    release, expected = run("memory", table, folder, **asked)
    other, found = run(engine, table, folder, **asked)
    for name in expected.columns:
        left, right = (frame[name].fill_nan(None) if frame[name].dtype.is_float() else frame[name]
                       for frame in (expected, found))  # fmt: skip
        assert left.to_list() == right.to_list(), name
    assert other.loss == pytest.approx(release.loss, rel=1e-12)
    assert other.column_loss == pytest.approx(release.column_loss, rel=1e-12)
    assert other.scale_loss == pytest.approx(release.scale_loss, rel=1e-12)
    assert other.size_histogram == release.size_histogram
    for attribute in (*FIGURES, "bound", "dropped", "left_out", "blanked"):
        assert getattr(other, attribute) == getattr(release, attribute), attribute
    assert {
        key: value for key, value in other.parameters.items() if key in ("k", "method", "options", "by", "seed")
    } == {key: value for key, value in release.parameters.items() if key in ("k", "method", "options", "by", "seed")}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS_OF_RECORDS)
def test_every_method_is_the_same_on_every_engine(table, tmp_path, engine, method):
    columns = ["b"] if METHODS[method].univariate else ["a", "b"]
    assert_same(engine, table, tmp_path, method=method, columns=columns, **OPTIONS.get(method, {}))


@pytest.mark.parametrize("engine", ENGINES)
def test_places_are_the_same_on_every_engine(table, tmp_path, engine):
    rng = np.random.default_rng(2)
    table = table.assign(lat=rng.normal(-17, 1, 160).round(4), lon=(rng.normal(0, 1, 160).round(4) % 360) - 180)
    asked = {"columns": ["lat", "lon", "count"], "kinds": {("lat", "lon"): shoal.Place()}, "integers": "round"}
    assert_same(engine, table, tmp_path, **asked)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "asked",
    [
        {"by": "region"},
        {"missing": "drop", "by": "region"},
        {"weights": "weight"},
        {"columns": ["a", "count"], "integers": "round"},
        {"columns": ["count", "b"], "integers": "float"},
        {"columns": ["a", "count"], "scale": "log"},
        {"columns": ["a", "b", "few"], "scale": {"a": "rank", "few": "log"}, "by": "region", "aggregate": "median"},
        {"columns": ["few", "b", "count"], "scale": "rank", "split": "all", "block": 60, "block_by": ["count", "b"]},
        {"columns": ["a", "coded", "region"], "scale": "rank", "small": "merge", "by": "count", "k": 4},
        {"columns": ["a", "coded"], "scale": "log", "missing_codes": {"coded": -9}, "weights": "weight"},
        {"scale": "rank", "confidential": "count", "closeness": 0.3, "block": 80, "missing": "drop"},
        {"aggregate": "median", "by": "region"},
        {"aggregate": "medoid", "weights": None},
        {"split": "one"},
        {"split": "univariate", "block": 60},
        {"split": "sorted", "block": 60, "block_by": "b", "by": "region"},
        {"columns": ["a", "b", "count"], "split": "all", "block": 60, "block_by": ["count", "b"]},
        {"columns": None, "by": "region"},
        {"columns": ["a", "region"]},
        {"columns": ["b", "region", "count"], "kinds": {"count": "nominal"}, "aggregate": "medoid"},
        {"columns": ["region"]},
        {"columns": ["b", "region", "count"], "kinds": {"count": "nominal"}, "refine": 20},
        {"columns": ["a", "region"], "refine": 20},
        {"by": "count", "small": "suppress"},
        {"by": ["region", "count"], "missing": "drop", "small": "suppress", "weights": "weight"},
        {"unit": "count"},
        {"unit": "count", "by": "region", "missing": "drop", "method": "path"},
        {"unit": "region", "k": 2, "block": 240},
        {"unit": "count", "by": "region", "small": "suppress", "k": 4, "block": 60},
        {"by": "count", "small": "merge"},
        {"by": "count", "small": "merge", "columns": ["a", "coded"], "integers": "totals", "k": 4},
        {"by": "count", "small": "merge", "columns": ["a", "b", "sum"], "sums": "sum = a + b", "k": 6},
        {"by": ["region", "count"], "small": "merge", "weights": "weight", "k": 4},
        {
            "by": ["region", "count"],
            "columns": ["a", "coded", "few"],
            "kinds": {"few": shoal.Nominal()},
            "missing": "drop",
            "small": "merge",
        },
        {"columns": ["a", "coded"], "by": "count", "small": "merge", "missing_codes": {"coded": -9}},
        {"columns": ["coded", "b"], "missing_codes": {"coded": ["-9", 99]}},
        {"columns": ["coded", "a"], "missing_codes": {"coded": -9}, "by": "region", "integers": "round"},
        {"columns": ["coded", "b"], "missing_codes": {"coded": -9}, "kinds": {"coded": "nominal"}},
        {"columns": ["region", "b"], "missing_codes": {"region": "south"}},
        {"confidential": ["count", "region"]},
        {"confidential": "region", "by": "count", "small": "merge"},
        {"confidential": ["count", "region"], "diversity": {"region": 2}, "closeness": {"count": 0.3}, "block": 80},
        {"confidential": "count", "diversity": "entropy:3", "by": "region", "missing": "drop", "block": 80},
        {"confidential": "region", "diversity": 2, "unit": "count", "k": 3, "block": 160},
        {"confidential": "count", "closeness": 0.3, "method": "k-first", "block": 80},
        {"confidential": "count", "closeness": 0.3, "method": "closeness-first", "block": 80},
        {"identifiers": "name"},
        {"columns": ["count", "few", "both"], "sums": "both = count + few", "integers": "round", "by": "region"},
        {"columns": ["count", "few", "both"], "sums": "both = count + few", "integers": "totals", "by": "region"},
        {"columns": ["a", "count", "region"], "integers": "totals"},
        {"columns": ["few", "count"], "integers": "totals", "zeros": "few", "small": "suppress", "block": 60},
        {"columns": ["a", "b", "sum"], "sums": "sum = a + b", "weights": "weight"},
        {"columns": ["b", "few"], "zeros": "few", "integers": "round", "by": "region"},
        {"columns": ["a", "few"], "zeros": ["a", "few"], "small": "suppress", "weights": "weight"},
        {"identifiers": "name", "keep": ["weight"], "by": "region"},
        {"rest": "drop", "by": "region"},
        {"rest": "drop", "keep": ["name", "coded"], "weights": "weight"},
        {
            "rest": "error",
            "columns": ["a"],
            "keep": ["name", "few"],
            "by": "region",
            "weights": "weight",
            "confidential": ["count", "both"],
            "identifiers": ["b", "sum", "coded", "net", "gross", "off"],
        },
        {"columns": ["a", "count"], "integers": "float", "decimals": "all"},
        {"columns": ["a", "b", "count", "sum"], "integers": "float", "decimals": "fit"},
        {"columns": ["a", "b", "sum"], "sums": "sum = a + b", "decimals": "fit"},
        {"columns": ["gross", "a", "net"], "sums": "gross = a + net"},
        {"columns": ["a", "coded", "few"], "missing_codes": {"coded": -9, "few": -1}, "small": "merge", "k": 12},
        {"columns": ["a", "coded"], "by": ["count"], "missing_codes": {"coded": -9}, "small": "merge", "k": 5},
    ],
    ids=str,
)
def test_every_policy_is_the_same_on_every_engine(table, tmp_path, engine, asked):
    assert_same(engine, table, tmp_path, **asked)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "asked",
    [
        {"k": 1},
        {"k": 200},
        {"k": 30, "by": "region"},
        {"missing": "error"},
        {"k": 40, "missing": "group", "by": "region", "block": None},
        {"columns": ["aa"]},
        {"columns": []},
        {"columns": ["a", "a"]},
        {"columns": ["region"], "method": "univariate"},
        {"columns": ["name"], "identifiers": "name"},
        {"columns": ["region"], "kinds": {"region": ["north", "east"]}},
        {"identifiers": "names"},
        {"unit": "persons"},
        {"unit": "a"},
        {"unit": "region"},
        {"unit": "count", "method": "individual-ranking", "block": None},
        {"confidential": "a"},
        {"confidential": "regio"},
        {"confidential": "region", "diversity": 3},
        {"confidential": "region", "closeness": 0.01},
        {"confidential": "region", "diversity": "many"},
        {"confidential": "count", "diversity": {"region": 2}},
        {"confidential": "count", "method": "individual-ranking", "block": None},
        {"diversity": 3},
        {"method": "k-first"},
        {"columns": ["a"], "by": ["a"]},
        {"by": "regio"},
        {"weights": "wait"},
        {"weights": "weight", "aggregate": "median"},
        {"method": "univariate"},
        {"method": "mdav", "gamma": 1},
        {"method": "mdavv"},
        {"block": 5},
        {"split": "some"},
        {"small": "often"},
        {"small": "merge", "by": "count", "columns": ["b", "few"], "zeros": "few"},
        {"by": "count", "k": 6},
        {"columns": ["count", "a"], "zeros": "count", "k": 8},
        {"zeros": "few"},
        {"scale": "logarithm"},
        {"scale": {"count": "log"}},
        {"columns": ["a", "region"], "scale": {"region": "rank"}},
        {"columns": ["region"], "scale": "rank"},
        {"scale": "rank", "refine": 5},
        {"columns": ["count", "few", "both"], "sums": "count = both + few"},
        {"columns": ["gross", "a", "off"], "sums": "gross = a + off"},
        {"columns": ["count", "few"], "sums": "both = count + few"},
        {"columns": ["count", "few", "both"], "sums": "both = count + few", "aggregate": "medoid"},
        {"zeros": "region", "columns": ["a", "region"]},
        {"integers": "keep"},
        {"integers": "totals", "weights": "weight"},
        {"integers": "totals", "aggregate": "median"},
        {"columns": ["few", "count", "both"], "sums": "both = count + few", "integers": "totals", "zeros": "both"},
        {"missing_codes": {"count": -9}},
        {"missing_codes": {"a": "?"}},
        {"columns": ["coded"], "missing_codes": {"coded": -9}, "missing": "error"},
        {"rest": "keep"},
        {"rest": "error"},
        {"rest": "keep", "columns": None},
        {"rest": "some"},
        {"rest": "keep", "keep": "name", "unit": "count"},
        {"decimals": "some"},
        {"missing": "drop", "max_left_out": "24%"},
        {
            "by": "count",
            "small": "merge",
            "columns": ["a", "coded"],
            "missing_codes": {"coded": -9},
            "k": 5,
            "max_left_out": 0.01,
        },
    ],
    ids=str,
)
def test_every_refusal_has_the_same_message_on_every_engine(table, tmp_path, engine, asked):
    asked = {"small": "error", **asked}
    with pytest.raises(InputError) as memory:
        run("memory", table, tmp_path, **asked)
    with pytest.raises(InputError, match=f"^{re.escape(str(memory.value))}$"):
        run(engine, table, tmp_path, **asked)


def test_mask_and_its_request_have_the_same_parameters():
    """mask() lists the parameters once more, for readers and editors: names and defaults are those of the request."""
    import inspect

    from shoal.masking.request import parameters

    listed = inspect.signature(shoal.mask).parameters
    known = {item.name: item.default for item in parameters() if item.name != "options"}
    assert [name for name in listed if name not in ("data", "options")] == list(known)
    for name, default in known.items():
        if name != "k":
            assert listed[name].default == default, name
