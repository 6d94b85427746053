# ruff: noqa: DTZ001
"""Dates, times of day and durations: compared as numbers, released in their own type, format and resolution."""

import datetime as dt
import json
import pickle
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import shoal
from shoal.core.errors import InputError
from shoal.kinds.date import find_format
from shoal.kinds.kind_registry import read_kind
from shoal.kinds.time_scale import make_scale, span_of

pytestmark = [
    pytest.mark.usefixtures("one_template"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # Dask's own call of pandas
]
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # no shrinking: engines take their time
ENGINES = ("memory", "local", "dask")
DAY, MINUTE = dt.timedelta(days=1), dt.timedelta(minutes=1)
NEW_YEAR = dt.datetime(2024, 1, 1)


def cells_of(column):
    """Return the cells of a column of any library, None where they are missing."""
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return [None if pd.isna(cell) else cell for cell in cells]


# --- hand-worked cases ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", ["mean", "median", "medoid"])
@pytest.mark.parametrize(
    ("cells", "mean", "median", "medoid"),
    [
        # 1, 2 and 9 January: the mean is the 4th, the median the 2nd, and the 2nd is nearest to the mean.
        (
            [dt.date(2024, 1, day) for day in (1, 2, 9)],
            dt.date(2024, 1, 4),
            dt.date(2024, 1, 2),
            dt.date(2024, 1, 2),
        ),
        # Midnights stay midnights: 1, 2 and 5 January lie 2⅔ days around the 3rd, 16 hours.
        (
            [NEW_YEAR, NEW_YEAR + DAY, NEW_YEAR + 4 * DAY],
            NEW_YEAR + 2 * DAY,
            NEW_YEAR + DAY,
            NEW_YEAR + DAY,
        ),
        # Cells such as 10:00, 10:01 and 10:06 have whole minutes.
        (
            [NEW_YEAR + minutes * MINUTE for minutes in (600, 601, 606)],
            NEW_YEAR + 602 * MINUTE,
            NEW_YEAR + 601 * MINUTE,
            NEW_YEAR + 601 * MINUTE,
        ),
        ([dt.time(8), dt.time(9), dt.time(13)], dt.time(10), dt.time(9), dt.time(9)),
        ([1 * DAY, 2 * DAY, 9 * DAY], 4 * DAY, 2 * DAY, 2 * DAY),
        (
            [dt.timedelta(seconds=s) for s in (-1, 0, 3)],
            dt.timedelta(seconds=1),
            dt.timedelta(0),
            dt.timedelta(0),
        ),
    ],
    ids=["dates", "midnights", "minutes", "times", "days", "seconds"],
)
def test_the_value_of_a_group(cells, mean, median, medoid, aggregate):
    table = pl.DataFrame({"when": cells})
    release = shoal.mask(table, 3, columns=["when"], aggregate=aggregate)
    assert release.data["when"].to_list() == [{"mean": mean, "median": median, "medoid": medoid}[aggregate]] * 3
    assert release.data.schema == table.schema


def test_weights_move_the_date():
    table = pl.DataFrame({"when": [dt.date(2024, 1, 1), dt.date(2024, 1, 11)], "weight": [9.0, 1.0]})
    release = shoal.mask(table, 2, columns=["when"], weights="weight")
    assert release.data["when"].to_list() == [dt.date(2024, 1, 2)] * 2


def test_dates_count_as_much_as_numbers():
    """Age and date have unit variance, so that records pair by the date where ages say nothing."""
    days = [dt.date(2024, 1, 1), dt.date(2024, 9, 1), dt.date(2024, 1, 3), dt.date(2024, 9, 3)]
    table = pl.DataFrame({"age": [30, 31, 30, 31], "visit": days})
    release = shoal.mask(table, 2, columns=["age", "visit"], method="mdav")
    assert release.labels.tolist() == [0, 1, 0, 1]
    assert release.data["visit"].to_list() == [dt.date(2024, month, 2) for month in (1, 9, 1, 9)]
    assert release.kinds == {"visit": "date"}
    assert "column visit is released in whole days" in release.notes
    assert not any("integer" in note and "visit" in note for note in release.notes)


NATIVE = {
    "polars date": pl.Series([dt.date(2024, 1, day) for day in (1, 3, 21, 23)]),
    **{
        f"polars {unit} {zone}": pl.Series([NEW_YEAR + day * DAY for day in (0, 2, 20, 22)])
        .dt.cast_time_unit(unit)
        .dt.replace_time_zone(zone)
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin", "America/New_York")
    },
    "polars time": pl.Series([dt.time(1, 2, 3, 4), dt.time(1, 3), dt.time(22), dt.time(23)]),
    **{
        f"polars duration {unit}": pl.Series([h * DAY for h in (1, 2, 30, 31)]).cast(pl.Duration(unit))
        for unit in ("ms", "us", "ns")
    },
    **{
        f"pandas {unit} {zone}": pd.Series(pd.date_range("2024-01-01", periods=4, unit=unit, tz=zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin", "+02:00")
    },
    **{
        f"pandas timedelta {unit}": pd.Series(pd.to_timedelta([1, 2, 30, 31], unit="h")).astype(f"m8[{unit}]")
        for unit in ("s", "ns")
    },
    "pandas date objects": pd.Series([dt.date(2024, 1, day) for day in (1, 3, 21, 23)], dtype=object),
    "pandas time objects": pd.Series([dt.time(hour) for hour in (1, 3, 21, 23)], dtype=object),
    "pandas arrow date": pd.Series([dt.date(2024, 1, day) for day in (1, 3, 21, 23)], dtype=pd.ArrowDtype(pa.date32())),
    "pandas arrow time": pd.Series([dt.time(hour) for hour in (1, 3, 21, 23)], dtype=pd.ArrowDtype(pa.time64("us"))),
    **{
        f"arrow {kind}": pa.chunked_array(
            [
                pa.array([1, 3, 21, 23], pa.int32()).cast(kind)
                if "32" in str(kind)
                else pa.array(np.array([1, 3, 21, 23]) * 86_400_000, pa.int64()).cast(kind)
            ]
        )
        for kind in (
            pa.date32(),
            pa.date64(),
            pa.time32("s"),
            pa.time64("ns"),
            pa.timestamp("s"),
            pa.timestamp("ns"),
            pa.timestamp("ms", "Asia/Kolkata"),
            pa.timestamp("us", "+02:00"),
            pa.duration("s"),
            pa.duration("us"),
        )
        if str(kind) != "time64[ns]"
    },
}


@pytest.mark.parametrize("library", NATIVE)
def test_every_type_is_released_as_it_was_given(library):
    column, first = NATIVE[library], library.split()[0]
    others = [0.1 + 0.2, 1e300, -0.0, 7.0]
    if first == "polars":
        table = pl.DataFrame({"when": column, "other": others})
    elif first == "pandas":
        table = pd.DataFrame({"when": column, "other": others}).set_axis(list("wxyz"))
    else:
        table = pa.table({"when": column, "other": pa.array(others)})
    release = shoal.mask(table, 2, columns=["when"], rest="keep")
    before, after = table["when"], release.data["when"]
    assert getattr(after, "dtype", None) == getattr(before, "dtype", None)
    assert getattr(after, "type", None) == getattr(before, "type", None)
    cells = cells_of(after)
    assert cells[0] == cells[1] != cells[2] == cells[3]
    lows, highs = zip(*(sorted(cells_of(before)[i : i + 2]) for i in (0, 0, 2, 2)), strict=True)
    assert all(low <= cell <= high for low, cell, high in zip(lows, cells, highs, strict=True))
    assert cells_of(release.data["other"]) == others
    if first == "pandas":
        assert release.data.index.equals(pd.RangeIndex(4))


def test_nanoseconds_are_exact():
    """Of timestamps beyond 2^53 the medoid is a real one, and equal ones stay what they are."""
    start = 1_700_000_000_123_456_789
    counts = [start, start + 1, start + 2, start + 1_000, start + 1_000, start + 1_000]
    table = pl.DataFrame({"when": pl.Series(counts).cast(pl.Datetime("ns"))})
    for aggregate in ("mean", "medoid", "median"):
        release = shoal.mask(table, 3, columns=["when"], aggregate=aggregate)
        assert release.data["when"].to_physical().to_list() == [start + 1] * 3 + [start + 1_000] * 3


def test_dates_beyond_float_precision_are_noted():
    """Nanoseconds over years are more than 2^53: they are released in microseconds, and a note says so."""
    counts = [1, 2_000, 10**18 + 1, 10**18 + 2_000]
    table = pl.DataFrame({"when": pl.Series(counts).cast(pl.Datetime("ns"))})
    release = shoal.mask(table, 2, columns=["when"], aggregate="medoid")
    assert release.data["when"].to_physical().to_list() == [0, 0, 10**18, 10**18]
    assert any("whole microseconds: its time span is too long" in note for note in release.notes)


def test_the_ends_of_a_type():
    ends = [-(2**63) + 1, -(2**63) + 1, 2**63 - 1, 2**63 - 1]
    table = pl.DataFrame({"lasts": pl.Series(ends, dtype=pl.Int64).cast(pl.Duration("ns"))})
    released = shoal.mask(table, 2, columns=["lasts"]).data["lasts"].to_physical().to_list()
    assert released[0] == released[1] < -(10**18) < 10**18 < released[2] == released[3]
    far = pl.DataFrame({"day": [dt.date(1, 1, 1)] * 2 + [dt.date(9999, 12, 31)] * 2})
    assert_frame_equal(shoal.mask(far, 2, columns=["day"]).data, far)


def test_midnights_of_a_time_zone():
    """Midnights of Berlin stay midnights over the change of the clocks; a day without a midnight begins later."""
    days = pl.Series([dt.datetime(2024, 3, 30), dt.datetime(2024, 4, 1)]).dt.replace_time_zone("Europe/Berlin")
    release = shoal.mask(pl.DataFrame({"day": days}), 2, columns=["day"])
    assert release.data["day"].dt.replace_time_zone(None).to_list() == [dt.datetime(2024, 3, 31)] * 2
    brazil = pl.Series([dt.datetime(2018, 11, 3), dt.datetime(2018, 11, 5)]).dt.replace_time_zone("America/Sao_Paulo")
    release = shoal.mask(pl.DataFrame({"day": brazil}), 2, columns=["day"])
    assert release.data["day"].dt.replace_time_zone(None).to_list() == [dt.datetime(2018, 11, 4, 1)] * 2


def test_the_repeated_hour_is_distinguished():
    """Moments, not clocks, are compared: a medoid in the second 02:30 of October stays in it."""
    moments = pl.Series([dt.datetime(2024, 10, 27, 1, 30)] * 2, dtype=pl.Datetime("us", "UTC"))
    table = pl.DataFrame({"when": moments.dt.convert_time_zone("Europe/Berlin")})
    assert_frame_equal(shoal.mask(table, 2, columns=["when"], aggregate="medoid").data, table)


def test_parts_share_origin_and_step():
    parts = [
        pl.Series([NEW_YEAR, None]),
        pl.Series([None, None], dtype=pl.Datetime("us")),
        pl.Series([NEW_YEAR - MINUTE]),
    ]
    scale = make_scale("when", [span_of(part, part.dtype) for part in parts])
    assert [scale.numbers(part).tolist() for part in parts[::2]] == [[1.0, pytest.approx(np.nan, nan_ok=True)], [0.0]]
    assert scale.cells(np.array([1.0, np.nan, 0.4])).to_list() == [NEW_YEAR, None, NEW_YEAR - MINUTE]
    assert pickle.loads(pickle.dumps(scale)) == scale


# --- any table, any engine -----------------------------------------------------------------------------------------

TYPES = {
    "date": (st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), pl.Date),
    "datetime": (st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), pl.Datetime("us")),
    "zoned": (st.datetimes(dt.datetime(1980, 1, 1), dt.datetime(2030, 1, 1)), pl.Datetime("ms", "Europe/Berlin")),
    "time": (st.times(), pl.Time),
    "duration": (st.timedeltas(dt.timedelta(-1000), dt.timedelta(1000)), pl.Duration("us")),
}


@st.composite
def tables(draw):
    """Draw a table with a column of each of some types, numbers and what is not masked."""
    rows = draw(st.integers(6, 30))
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3, unique=True))
    columns = []
    for name in names:
        cells, kind = TYPES[name]
        drawn = draw(st.lists(cells, min_size=rows, max_size=rows))
        columns.append(pl.Series(name, drawn).cast(kind if name != "zoned" else pl.Datetime("ms")))
        if name == "zoned":
            columns[-1] = columns[-1].dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    rng = np.random.default_rng(rows)
    return pl.DataFrame(
        [*columns, pl.Series("x", rng.normal(size=rows)), pl.Series("left", rng.integers(0, 2**62, rows))]
    )


def shared(table, names, k):
    return table.group_by(names).len()["len"].min() >= k


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tables(),
    st.integers(2, 3),
    st.sampled_from(["polars", "pandas", "pyarrow"]),
    st.sampled_from(["mdav", "path", "individual-ranking"]),
    st.sampled_from(["mean", "median", "medoid"]),
)
@pytest.mark.filterwarnings("ignore::shoal.NotKAnonymousWarning")
def test_any_table_in_any_library(table, k, library, method, aggregate):
    native = {"polars": pl.DataFrame.clone, "pandas": pl.DataFrame.to_pandas, "pyarrow": pl.DataFrame.to_arrow}[
        library
    ](table)
    masked = [name for name in table.columns if name != "left"]
    release = shoal.mask(native, k, columns=masked, method=method, aggregate=aggregate, keep=["left"])
    data = release.data
    assert type(data) is type(native)
    before, after = (list(frame.dtypes) if library == "pandas" else frame.schema for frame in (native, data))
    assert after == before
    data = pl.DataFrame(data) if library == "pyarrow" else pl.from_pandas(data) if library == "pandas" else data
    assert data["left"].to_list() == table["left"].to_list()
    assert (
        all(shared(data, [name], k) for name in masked) if method == "individual-ranking" else shared(data, masked, k)
    )
    for name in masked[:-1]:
        new, old = (series.cast(table[name].dtype).to_physical() for series in (data[name], table[name]))
        assert old.min() <= new.min() <= new.max() <= old.max()


@settings(deadline=None, max_examples=6, phases=QUICK, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), k=st.integers(2, 3))
def test_any_table_on_any_engine(tmp_path_factory, table, k):
    pytest.importorskip("dask.dataframe")
    folder = tmp_path_factory.mktemp("engines")
    # pandas, which Dask consists of, has no times of day of its own and cuts nanoseconds off; polars draws none.
    table.write_parquet(folder / "in.parquet", row_group_size=5)
    masked = [name for name in table.columns if name != "left"]
    found = {}
    for engine in ENGINES:
        out = folder / f"{engine}.parquet"
        release = shoal.mask(
            folder / "in.parquet", k, columns=masked, engine=engine, block=12, output=out, keep=["left"]
        )
        found[engine] = pl.read_parquet(out), release.notes, release.kinds, release.size_histogram
    for engine in ENGINES[1:]:
        assert_frame_equal(found[engine][0], found["memory"][0], check_dtypes=engine == "local")
        assert found[engine][1:] == found["memory"][1:]
    assert found["local"][0].schema == table.schema
    assert found["local"][0]["left"].equals(table["left"])
    assert shared(found["local"][0], masked, k)


DATES = {
    "born": [dt.date(1950 + i % 60, 1 + i % 12, 1 + i % 28) for i in range(120)],
    "seen": [NEW_YEAR + i * 37 * MINUTE for i in range(120)],
    "opens": [dt.time(6 + i % 12, 5 * (i % 12)) for i in range(120)],
    "lasts": [dt.timedelta(seconds=i * i) for i in range(120)],
    "region": ["north", "south"] * 60,
    "weight": [1.0 + i % 3 for i in range(120)],
    "x": [float(i % 7) for i in range(120)],
}


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": ["born", "x"], "by": "region"},
        {"columns": ["seen", "opens", "lasts"], "weights": "weight"},
        {"columns": ["born", "seen"], "aggregate": "median", "missing": "drop"},
        {"columns": ["lasts", "x"], "aggregate": "medoid", "missing": "group"},
        {"columns": ["seen"], "method": "univariate"},
        {"columns": ["born", "region"], "importance": {"born": 2.0}, "missing": "group"},
        {"columns": ["born", "weight", "x"], "kinds": {"born": shoal.Date()}, "missing": "group"},
    ],
    ids=str,
)
def test_every_policy_is_the_same_on_every_engine(tmp_path, asked):
    pytest.importorskip("dask.dataframe")
    table = pl.DataFrame(DATES)
    if asked.get("missing"):
        holes = pl.int_range(pl.len()) % 10 < 2
        table = table.with_columns(pl.when(~holes).then(pl.col("born", "lasts")))
        table = pl.concat([table.filter(holes), table.filter(~holes)])  # the first parts have no date at all
    table.write_parquet(tmp_path / "in.parquet", row_group_size=20)
    found = {}
    for engine in ENGINES:
        out = tmp_path / f"{engine}.parquet"
        others = {"block": 40, "rest": "keep", "max_left_out": 1}
        release = shoal.mask(tmp_path / "in.parquet", 4, engine=engine, output=out, **others, **asked)
        found[engine] = pl.read_parquet(out), release
    for engine in ENGINES[1:]:
        assert_frame_equal(found[engine][0], found["memory"][0], check_dtypes=engine == "local")
        for attribute in ("kinds", "notes", "size_histogram", "uniques", "verified"):
            assert getattr(found[engine][1], attribute) == getattr(found["memory"][1], attribute)
        assert found[engine][1].loss == pytest.approx(found["memory"][1].loss, rel=1e-12)
    data, release = found["local"]
    assert {name: kind for name, kind in data.schema.items() if name not in ("x", "weight")} == {
        name: kind for name, kind in table.schema.items() if name not in ("x", "weight")
    }
    assert shared(data, release.columns, 4)
    left = [name for name in table.columns if name not in release.columns]
    assert_frame_equal(
        data.select(left),
        table.drop_nulls(release.columns).select(left) if "drop" in asked.values() else table.select(left),
    )


def test_a_dask_frame_may_hold_dates_as_objects():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"born": pd.Series(DATES["born"], dtype=object), "seen": DATES["seen"]})
    with pytest.importorskip("dask").config.set({"dataframe.convert-string": False}):
        release = shoal.mask(dd.from_pandas(frame, npartitions=3), 4, columns=["born", "seen"], block=40)
    expected = shoal.mask(frame, 4, columns=["born", "seen"], block=40)
    pd.testing.assert_frame_equal(release.data.compute(), expected.data)
    assert release.kinds == expected.kinds == {"born": "date", "seen": "date"}


def test_dates_are_masked_unless_others_are_named():
    table = pl.DataFrame(DATES)
    kinds = {"born": "date", "seen": "date", "opens": "time", "lasts": "duration"}
    for asked in ({}, {"kinds": {"seen": shoal.Date()}}):
        release = shoal.mask(table, 4, **asked)
        assert kinds.items() <= release.kinds.items()
        assert shared(release.data, [*release.columns, *release.parameters["by"]], 4)
    assert shoal.mask(table, 4, columns=["weight", "x"]).data.columns == ["weight", "x"]


# --- files ---------------------------------------------------------------------------------------------------------


def write_csv(path, **columns):
    pl.DataFrame(columns).write_csv(path)
    return path


CSV = {
    "iso": (None, ["2024-01-31", "2024-02-02", "2024-06-01", "2024-06-03"], "2024-02-01", "2024-06-02"),
    "minutes": (
        None,
        ["2024-01-31T10:00", "2024-01-31T10:02", "2024-06-01T10:00", "2024-06-01T10:02"],
        "2024-01-31T10:01",
        "2024-06-01T10:01",
    ),
    "blank": (
        None,
        ["2024-01-31 10:00:00", "2024-01-31 10:00:02", "2024-06-01 10:00:00", "2024-06-01 10:00:02"],
        "2024-01-31 10:00:01",
        "2024-06-01 10:00:01",
    ),
    "milliseconds": (
        None,
        [
            "2024-01-31T10:00:00.000Z",
            "2024-01-31T10:00:00.002Z",
            "2024-06-01T10:00:00.000Z",
            "2024-06-01T10:00:00.002Z",
        ],
        "2024-01-31T10:00:00.001Z",
        "2024-06-01T10:00:00.001Z",
    ),
    "some with a time": (
        None,
        ["2024-01-31", "2024-01-31T00:02", "2024-06-01", "2024-06-01T00:02"],
        "2024-01-31T00:01",
        "2024-06-01T00:01",
    ),
    "german": ("%d.%m.%Y", ["31.01.2024", "2.2.2024", "01.06.2024", "03.06.2024"], "01.02.2024", "02.06.2024"),
    "digits": ("%Y%m%d", ["20240131", "20240202", "20240601", "20240603"], "20240201", "20240602"),
    "clock": ("%H:%M", ["08:00", "08:02", "22:00", "22:02"], "08:01", "22:01"),
    "american": (
        "%m/%d/%y %I:%M %p",
        ["01/31/24 10:00 PM", "01/31/24 10:02 PM", "06/01/24 01:00 AM", "06/01/24 01:02 AM"],
        "01/31/24 10:01 PM",
        "06/01/24 01:01 AM",
    ),
    "months": ("%d %b %Y", ["30 Jan 2024", "01 Feb 2024", "1 Jun 2024", "03 Jun 2024"], "31 Jan 2024", "02 Jun 2024"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CSV)
def test_text_is_released_in_its_format(tmp_path, case, engine):
    if engine == "dask":
        pytest.importorskip("dask.dataframe")
    format_, cells, first, second = CSV[case]
    source = write_csv(tmp_path / "in.csv", visit=cells, other=["007", "1.50", "NA", ""])
    out = tmp_path / ("out.parquet" if engine == "dask" else "out.csv")
    asked = {"columns": ["visit"], "kinds": {"visit": shoal.Date(format_)}, "keep": "other"}
    release = shoal.mask(source, 2, engine=engine, output=out, block=10, **asked)
    written = pl.read_parquet(out) if engine == "dask" else pl.read_csv(out, infer_schema=False)
    assert written["visit"].to_list() == [first, first, second, second]
    assert [cell or "" for cell in written["other"]] == ["007", "1.50", "NA", ""]
    assert release.kinds == {"visit": "time" if case == "clock" else "date"}
    assert find_format(pl.Series(cells)) == (format_ or "")


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_missing_dates_have_one_spelling(tmp_path, engine):
    cells = ["2024-01-31", "NA", "2024-02-02", "", "2024-01-01", "NA"]
    source = write_csv(tmp_path / "in.csv", visit=cells, x=range(6))
    out = tmp_path / "out.csv"
    asked = {"columns": ["visit"], "kinds": {"visit": "date"}, "missing": "group", "keep": "x"}
    shoal.mask(source, 3, engine=engine, output=out, block=10, **asked)
    assert out.read_text().splitlines()[1:] == ["2024-01-22,0", ",1", "2024-01-22,2", ",3", "2024-01-22,4", ",5"]


@pytest.mark.parametrize("engine", ["memory", "local", "frame"])
def test_codes_for_missing_stay_among_dates_that_are_text(tmp_path, engine):
    cells = ["2024-01-31", "9999-12-31", "2024-02-02", "9999-12-31", "2024-01-01", "9999-12-31"]
    asked = {
        "columns": ["visit"],
        "kinds": {"visit": "date"},
        "missing": "group",
        "missing_codes": {"visit": "9999-12-31"},
    }
    source, out = write_csv(tmp_path / "in.csv", visit=cells, x=range(6)), tmp_path / "out.csv"
    if engine == "frame":
        found = shoal.mask(pl.read_csv(source), 3, **asked).data["visit"].to_list()
    else:
        shoal.mask(source, 3, engine=engine, output=out, block=10, **asked)
        found = pl.read_csv(out)["visit"].to_list()
    assert found == ["2024-01-22", "9999-12-31"] * 3
    with pytest.raises(InputError, match=r"'missing_codes' names column 'day'.*which has a type of dates"):
        shoal.mask(pl.DataFrame({"day": DATES["born"]}), 3, columns=["day"], missing_codes={"day": "9999-12-31"})


def test_rare_patterns_of_missing_dates_are_joined():
    days = [None, *DATES["born"][1:]]
    release = shoal.mask(
        pl.DataFrame({"day": days, "x": DATES["x"]}), 4, columns=["day", "x"], missing="group", small="merge"
    )
    assert release.data["day"].dtype == pl.Date
    assert release.data["day"].null_count() >= 4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("cells", "asked", "words"),
    [
        (
            ["2024-01-31", "2024-02-30"],
            {"kinds": {"visit": shoal.Date()}},
            r"Column 'visit'.*ISO.*record 2 holds '2024-02-30'",
        ),
        (
            ["31.01.2024", "30.02.2024"],
            {"kinds": {"visit": shoal.Date("%d.%m.%Y")}},
            r"record 2 holds '30.02.2024'.*Correct",
        ),
        (
            ["31.01.2024", "1.2.2024"],
            {"kinds": {"visit": shoal.Date()}},
            r"record 1 holds.*Set their format with kinds={'visit': shoal.Date\('%d.%m.%Y'\)}",
        ),
        (["2024-01-31", "2024-02-01"], {}, r"looks like dates.*Set their format with kinds={'visit': shoal.Date\(\)}"),
        (["31.01.2024", "30.02.2023"], {}, r"looks like dates.*a format that fits all"),
        (["31/01/2024", "29/02/2024"], {}, r"looks like dates.*shoal.Date\('%d/%m/%Y'\)"),
        (["10:30", "11:45"], {}, r"looks like times.*shoal.Date\('%H:%M'\)"),
        (["2 days", "3 days"], {}, r"looks like durations.*numbers"),
        (["2024-01-31T10:00Z", "2024-01-31T10:00"], {"kinds": {"visit": "date"}}, "must end in Z in all cells"),
        (
            ["2024-01-31T10:00+02:00", "2024-01-31T10:00"],
            {"kinds": {"visit": "date"}},
            "record 1 holds '2024-01-31T10:00.02:00'",
        ),
        (
            ["2024-01-31", "2024-02-01"],
            {"kinds": {"visit": shoal.Date("%d.%m.%Y")}},
            r"Set their format with kinds={'visit': shoal.Date\(\)}",
        ),
    ],
)
def test_text_that_is_not_a_date_is_refused(tmp_path, cells, asked, words, engine):
    if engine == "dask":
        pytest.importorskip("dask.dataframe")
    source = write_csv(tmp_path / "in.csv", visit=cells * 3, x=range(6))
    out = tmp_path / ("out.parquet" if engine == "dask" else "out.csv")
    with pytest.raises(InputError, match=words):
        shoal.mask(source, 2, columns=["visit", "x"], engine=engine, output=out, **asked)
    assert not out.exists()


@pytest.mark.parametrize(
    "format_", ["", "%Y", "%m.%Y", "%d.%m", "%I:%M", "%Y-%m-%d %z", "soon", "%q", 7, "%A", "%H:%S"]
)
def test_a_format_must_describe_whole_dates_or_times(format_):
    if format_ == "":
        assert find_format(pl.Series(["", "x"])) is None
        return
    with pytest.raises(InputError, match="Kind Date must have a format of whole dates"):
        shoal.Date(format_)


@pytest.mark.parametrize(
    ("column", "kinds", "words"),
    [
        (pl.Series([1, 2, 3]), {"a": shoal.Date()}, "must contain dates, times, durations or text.*Int64"),
        (pl.Series([1.5, 2, 3]), {"a": shoal.Date("%Y%m%d")}, "must contain dates, times, durations or text.*Float64"),
        (pl.Series([1, 2, 3]), {"a": shoal.Date("%Y%m%d")}, "record 1 holds '1'"),
        (pl.Series([NEW_YEAR] * 3), {"a": shoal.Date("%Y-%m-%d")}, "without a format"),
        (pl.Series([NEW_YEAR] * 3), {"a": shoal.Nominal()}, "already has a type.*got Nominal"),
        (pl.Series(["2024-01-01"] * 3), None, "looks like dates"),
    ],
)
def test_dates_out_of_range_are_refused_by_name(column, kinds, words):
    with pytest.raises(InputError, match=words):
        shoal.mask(pl.DataFrame({"a": column}), 2, columns=["a"], kinds=kinds)


def test_zeros_and_sums_are_those_of_numbers():
    table = pl.DataFrame(DATES)
    for asked in ({"zeros": ["born"]}, {"sums": ["lasts = x + weight"]}):
        with pytest.raises(InputError, match="holds dates or times"):
            shoal.mask(table, 4, columns=["born", "lasts", "x", "weight"], **asked)
    whole = pl.DataFrame({"day": DATES["born"], "n": range(120)})
    release = shoal.mask(whole, 4, columns=["day", "n"], integers="totals", refine=5)
    assert release.data["n"].sum() == whole["n"].sum()
    assert release.data["day"].dtype == pl.Date


def test_types_that_are_no_dates_are_refused_by_name():
    periods = pd.DataFrame({"a": pd.period_range("2024-01", periods=4, freq="M")})
    with pytest.raises(InputError, match=r"'a'.*period\[M\].*to_timestamp"):
        shoal.mask(periods, 2, columns=["a"])
    odd = pd.DataFrame({"a": pd.date_range("2024-01-01", periods=4, tz="+05:30")})
    with pytest.raises(InputError, match=r"must have a named time zone.*UTC\+05:30"):
        shoal.mask(odd, 2, columns=["a"])
    spans = pa.table({"a": pa.array([pa.MonthDayNano([1, 2, 3])] * 4)})
    with pytest.raises(InputError, match="month_day_nano_interval"):
        shoal.mask(spans, 2, columns=["a"])
    with pytest.raises(InputError, match="arrays contain numbers"):
        shoal.mask(np.arange(4.0), 2, columns=[0], kinds={0: shoal.Date()})


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_whole_numbers_that_are_dates_are_read_by_a_format(library):
    table = pl.DataFrame({"day": [20240131, 20240202, 20240601, 20240603]})
    native = {"polars": table, "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[library]
    release = shoal.mask(native, 2, columns=["day"], kinds={"day": shoal.Date("%Y%m%d")})
    assert cells_of(release.data["day"]) == [20240201] * 2 + [20240602] * 2
    assert type(release.data) is type(native)


def test_text_that_is_called_nominal_is_a_category():
    table = pl.DataFrame({"wave": ["2024-01", "2024-02"] * 3, "day": ["2024-01-01", "2024-02-01"] * 3})
    release = shoal.mask(table, 3, columns=["day", "wave"], kinds={"day": shoal.Nominal()})
    assert release.kinds == {"day": "nominal", "wave": "nominal"}


@pytest.mark.parametrize("ending", ["sav", "dta", "xlsx"])
def test_files_of_statistical_packages_and_sheets(tmp_path, ending):
    pytest.importorskip("pyreadstat" if ending != "xlsx" else "fastexcel")
    days = [dt.date(2024, 1, day) for day in (1, 3, 21, 23)]
    seen = [dt.datetime(2024, 1, day, 10, 30) for day in (1, 3, 21, 23)]
    table = pl.DataFrame({"day": days, "seen": pl.Series(seen).cast(pl.Datetime("ms")), "x": [1.5, 2.5, 3.5, 4.5]})
    source, out = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    if ending == "xlsx":
        table.write_excel(source)
    else:
        import pyreadstat

        getattr(pyreadstat, f"write_{ending}")(table, source)
    release = shoal.mask(source, 2, columns=["day", "seen"], keep="x", output=out)
    assert release.kinds == {"day": "date", "seen": "date"}
    from shoal.tables.files import read_table

    before, after = (read_table(path).native for path in (source, out))
    assert after.schema == before.schema
    assert [str(day)[:10] for day in after["day"]] == ["2024-01-02"] * 2 + ["2024-01-22"] * 2
    assert [str(moment)[:16] for moment in after["seen"]] == ["2024-01-02 10:30"] * 2 + ["2024-01-22 10:30"] * 2
    assert after["x"].to_list() == table["x"].to_list()


def test_a_frame_of_dates_is_written_as_text_and_counted(tmp_path):
    table = pl.DataFrame(DATES)
    release = shoal.mask(table, 4, columns=["born", "seen", "opens", "lasts"], output=tmp_path / "out.csv")
    assert len(pl.read_csv(tmp_path / "out.csv")) == 120
    assert release.verified.startswith("every combination of born, seen, opens, lasts")


def test_the_recount_detects_a_unique_date(monkeypatch, tmp_path):
    """The recount reads the written cells: with one date changed, nothing is released."""
    from shoal.core.errors import VerificationError
    from shoal.kinds.time_scale import Scale

    plain = Scale.cells

    def changed(scale, numbers):
        cells = plain(scale, numbers)
        return pl.concat([cells[:-1], cells[-1:].dt.offset_by("1d")]) if scale.format is None else cells.set(0, "x")

    monkeypatch.setattr(Scale, "cells", changed)
    with pytest.raises(VerificationError):
        shoal.mask(pl.DataFrame({"day": DATES["born"]}), 4, columns=["day"])


# --- the command line, manifests, inspect and pages ----------------------------------------------------------------


@pytest.fixture
def visits(tmp_path):
    rng = np.random.default_rng(1)
    days = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(0, 900, 90)]
    return write_csv(
        tmp_path / "visits.csv",
        age=rng.integers(18, 90, 90),
        visit=[f"{day:%d.%m.%Y}" for day in days],
        start=[
            f"{int(hour):02}:{int(minute):02}"
            for hour, minute in zip(rng.integers(8, 18, 90), rng.integers(0, 60, 90), strict=True)
        ],
        seen=[f"{day.isoformat()}T08:30" if i % 9 else "NA" for i, day in enumerate(days)],
        cost=rng.lognormal(size=90).round(4),
    )


def test_dates_on_the_command_line(visits, tmp_path):
    arguments = [
        "mask",
        visits,
        "-k",
        3,
        "-c",
        "age",
        "--date",
        "visit=%d.%m.%Y",
        "-c",
        "visit",
        "--date",
        "start=%H:%M",
        "-c",
        "start",
        "--integers",
        "float",
        "-o",
        tmp_path / "out.csv",
        "--manifest",
        tmp_path / "run.json",
        "--report",
        tmp_path / "page.html",
    ]
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "visit (date), start (time)" in done.stdout
    assert "integer columns now hold decimals (age)" in done.stdout
    kinds = json.loads((tmp_path / "run.json").read_text())["parameters"]["kinds"]
    assert kinds == {"visit": "date %d.%m.%Y", "start": "date %H:%M"}
    out = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert shared(out, ["age", "visit", "start"], 3)
    assert out["visit"].str.strptime(pl.Date, "%d.%m.%Y").null_count() == 0
    (tmp_path / "out.csv").rename(tmp_path / "first.csv")
    again = command("mask", "--from-manifest", tmp_path / "run.json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
    page = (tmp_path / "page.html").read_text()
    assert "--date visit=%d.%m.%Y" in page or "--date &#x27;visit=%d.%m.%Y&#x27;" in page
    assert "Column visit is counted in days from its first value, and changes are relative to that count" in page


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--date", "visit"], "--date visit=%d.%m.%Y"),
        (["--date", "visit=%m"], "Kind Date must have"),
        (["--date", "visit=%d.%m.%Y", "--date", "visit"], "name each column once"),
        ([], "--date visit=%d.%m.%Y"),
    ],
)
def test_the_command_line_names_the_remedy(visits, tmp_path, flags, words):
    done = command("mask", visits, "-k", 3, "-c", "visit", *flags, "-o", tmp_path / "out.csv")
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())


def test_the_command_of_inspect_works_as_printed(visits, tmp_path):
    found = shoal.inspect(visits, 3)
    assert [found.kinds[name] for name in ("visit", "start", "seen")] == ["date", "time", "date"]
    assert "--date visit=%d.%m.%Y --date start=%H:%M --date seen" in found.command
    done = command(*shlex.split(found.command)[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"visit", "start", "seen", "age", "cost"} <= set(pl.read_csv(tmp_path / "visits-masked.csv").columns)


def test_inspect_describes_dates(tmp_path):
    days = [dt.date(2020, 1 + i % 9, 1 + i % 9) for i in range(60)]
    rng = np.random.default_rng(0)  # no column is a copy of another, which would be dropped
    table = pl.DataFrame(
        {
            "typed": days,
            "either": [f"{day:%m/%d/%Y}" for day in rng.permutation(days)],
            "digits": [int(f"{day:%Y%m%d}") for day in rng.permutation(days)],
            "several": [f"{day:%d.%m.%Y}" if i % 2 else f"{day:%Y/%m/%d}" for i, day in enumerate(days)],
        }
    )
    found = shoal.inspect(table, 3)
    told = {column.name: column.reason for column in found.columns}
    assert set(found.kinds.values()) == {"date"}
    assert "day and month may be swapped" in told["either"]
    assert "written in several formats" in told["several"]
    assert "columns=['typed', 'either', 'digits']" in found.command
    assert "kinds={'either': 'date %d/%m/%Y', 'digits': 'date %Y%m%d'}" in found.command
    source = tmp_path / "in.csv"
    table.select("digits").write_csv(source)
    assert "--date digits=%Y%m%d" in shoal.inspect(source, 3).command


@pytest.mark.parametrize("kind", [shoal.Date(), shoal.Date("%d.%m.%Y"), shoal.Date("%H:%M")])
def test_kinds_are_stored_as_plain_values(kind):
    assert read_kind("visit", kind.plain()) == kind
    assert pickle.loads(pickle.dumps(kind)) == kind


def test_pages_and_assessment_take_tables_with_dates(tmp_path):
    table = pl.DataFrame(DATES)
    release = shoal.mask(table, 4, columns=["born", "x"])
    page = release.report(tmp_path / "page.html", original=table).read_text()
    assert "Column born is counted in days from its first value, and changes are relative to that count" in page
    assert "linked correctly" in page
    found = shoal.assess(table, release.data, k=4, columns=["x", "born"])
    assert found.utility.loss == pytest.approx(release.loss)
    assert "column born is counted in days from its first value" in str(found)
    assert shoal.compare(table, [4], columns=["x", "born"], methods=["mdav"]).trials
