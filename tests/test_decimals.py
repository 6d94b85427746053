"""decimals="fit": released values have at most one decimal more than their column; decimals="all" keeps all digits."""

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.kinds.column import decimals_of
from shoal.masking.aggregate import to_15_digits

FLOAT = {"integers": "float", "method": "mdav"}


def decimals(values):
    """Return the most decimals that numbers have as they are written."""
    texts = [str(value) for value in np.asarray(values).ravel() if not np.isnan(value)]
    return max(0, *(-Decimal(text).normalize().as_tuple().exponent for text in texts))


def digits(values):
    """Return the most digits that numbers have as they are written."""
    return max(len(Decimal(str(value)).normalize().as_tuple().digits) for value in np.asarray(values).ravel())


@st.composite
def columns(draw):
    """Draw columns of numbers with 0 to 6 decimals, some of them near 1e9."""
    n = draw(st.integers(6, 30))
    width = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    places = [draw(st.integers(0, 6)) for _ in range(width)]
    offsets = [draw(st.sampled_from([0.0, -5.0, 1e9])) for _ in range(width)]
    pairs = zip(places, offsets, strict=True)
    return np.column_stack([(rng.normal(scale=100, size=n) + offset).round(place) for place, offset in pairs])


@settings(max_examples=150, deadline=None)
@given(columns(), st.sampled_from(["mean", "median", "medoid"]), st.integers(2, 3))
def test_released_values_have_at_most_one_decimal_more_than_their_column(X, aggregate, k):
    fitted, exact = (shoal.mask(X, k, aggregate=aggregate, decimals=d, **FLOAT).data for d in ("fit", "all"))
    for before, after, all_digits in zip(X.T, fitted.T, exact.T, strict=True):
        place = decimals(before)
        assert decimals(after) <= place + (aggregate != "medoid")
        # Half a unit of the last place, and the rounding of floats.
        assert np.abs(after - all_digits).max() <= 0.51 * 10.0 ** -(place + 1) + 4 * np.spacing(np.abs(before).max())


def test_by_hand():
    frame = pl.DataFrame({"x": [3509.7, 1.25, 2.0], "whole": [1, 2, 2]})
    asked = {"columns": ["x", "whole"], "method": "mdav"}
    assert shoal.mask(frame, 3, **asked).data.rows() == [(1170.983, 2)] * 3
    assert shoal.mask(frame, 3, integers="float", **asked).data.rows() == [(1170.983, 1.7)] * 3
    exact = shoal.mask(frame, 3, integers="float", decimals="all", **asked).data
    assert exact.rows() == [(1170.98333333333, 1.66666666666667)] * 3


def test_rounding_counts_in_the_loss():
    X = np.array([[0.1], [0.2], [0.2], [0.3], [0.3], [0.4]])
    fitted, exact = (shoal.mask(X, 3, decimals=decimals, **FLOAT) for decimals in ("fit", "all"))
    assert fitted.data.ravel().tolist() == [0.17] * 3 + [0.33] * 3
    lost = np.square(X - fitted.data).sum() / np.square(X - X.mean()).sum()
    assert fitted.loss == pytest.approx(100 * lost)
    assert fitted.loss > exact.loss


@pytest.mark.parametrize(("size", "place"), [(8e8, 7), (1e9, 6), (5e11, 4)])
def test_large_numbers_get_no_digits_that_a_float_does_not_hold(size, place):
    X = (size * np.random.default_rng(0).uniform(0.9, 1.1, (300, 1))).round(place)
    fitted, exact = (shoal.mask(X, 3, decimals=decimals, **FLOAT).data for decimals in ("fit", "all"))
    assert digits(fitted) <= digits(exact) == 15


def test_columns_with_all_digits_keep_them():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=60), rng.normal(size=60).round(11), rng.normal(size=60).round(10)])
    fitted, exact = (shoal.mask(X, 3, decimals=decimals, **FLOAT).data for decimals in ("fit", "all"))
    assert np.array_equal(fitted[:, :2], exact[:, :2])
    assert decimals(fitted[:, 2]) == 11 < decimals(exact[:, 2])


def test_single_floats_have_the_decimals_that_they_show():
    x = np.array([0.1, 0.25, 0.3, 1.75, 2.5, 3.1], dtype=np.float32)
    released = shoal.mask(pl.DataFrame({"x": x}), 3, columns="x", **FLOAT).data["x"]
    assert released.dtype == pl.Float32
    assert [str(value) for value in released.to_numpy()] == ["0.217"] * 3 + ["2.45"] * 3


def test_zeros_that_are_kept_are_the_only_zeros():
    frame = pl.DataFrame({"x": [0.0, 0.0, 0.1, 0.1, -0.1, -0.1, 0.1], "y": np.arange(7.0)})
    release = shoal.mask(frame, 2, columns=["x", "y"], zeros="x", distance="y", **FLOAT)
    assert (release.data["x"] == 0).to_list() == [True] * 2 + [False] * 5
    assert decimals(release.data["x"].to_numpy()) <= 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6)), min_size=6, max_size=40))
def test_columns_of_sums_have_all_digits_and_others_do_not(pairs):
    a, b = np.array(pairs, dtype=float).T / 100
    frame = pl.DataFrame({"a": a, "b": b, "t": a + b, "c": a})
    release = shoal.mask(frame, 3, columns=frame.columns, sums="t = a + b", **FLOAT).data
    assert (release["t"] == release["a"] + release["b"]).all()
    assert decimals(release["c"].to_numpy()) <= 3
    exact = shoal.mask(frame, 3, columns=frame.columns, sums="t = a + b", decimals="all", **FLOAT).data
    assert release.select("a", "b", "t").equals(exact.select("a", "b", "t"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.usefixtures("one_template")
def test_engines_release_the_same_decimals(tmp_path, suffix):
    """Parts of a column have fewer decimals, larger numbers, or no number at all."""
    rng, n = np.random.default_rng(2), 240
    frame = pl.DataFrame(
        {
            "more": np.where(np.arange(n) < 200, rng.normal(size=n).round(1), rng.normal(size=n).round(4)),
            "large": np.where(np.arange(n) < 50, 1e12 + np.arange(n), rng.normal(size=n).round(8)),
            "none": [None if i < 60 else round(float(rng.normal()), 2) for i in range(n)],
            "all": np.where(np.arange(n) < 200, rng.normal(size=n).round(1), rng.normal(size=n)),
        }
    )
    source = tmp_path / f"in.{suffix}"
    frame.write_csv(source) if suffix == "csv" else frame.write_parquet(source, row_group_size=50)
    released = []
    for engine in ("memory", "local"):
        out = tmp_path / f"{engine}.parquet"
        shoal.mask(source, 4, columns=frame.columns, engine=engine, output=out, block=60, **FLOAT)
        released.append(pl.read_parquet(out))
    assert released[0].equals(released[1])
    assert decimals(released[0]["more"].to_numpy()) == 5
    assert decimals(released[0]["none"].drop_nulls().to_numpy()) == 3
    assert decimals(released[0]["all"].to_numpy()) > 10


@given(st.lists(st.tuples(st.integers(-(10**7), 10**7), st.integers(0, 10)), min_size=1, max_size=20), st.data())
def test_parts_of_a_column_agree_on_its_decimals(numbers, data):
    """The fast count is that of the text, and that of a column is the most of its parts."""
    values = np.array([number / 10**place for number, place in numbers])
    assert decimals_of(values) == decimals(values)
    cut = data.draw(st.integers(1, len(values)))
    assert max(decimals_of(part) or 0 for part in (values[:cut], values[cut:])) == decimals_of(values)
    assert to_15_digits(values).tolist() == values.tolist()
