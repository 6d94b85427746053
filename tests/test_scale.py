"""Scales of comparison: records are grouped by logarithms or ranks, released and measured in their own units."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import command
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

import shoal
from shoal.app.settings import Settings
from shoal.core.errors import InputError
from shoal.core.measures import information_loss, standardise
from shoal.kinds import comparison_scale
from shoal.kinds.comparison_scale import CODINGS, RankCoding, count_values, merge_counts
from shoal.kinds.kind_registry import SCALES

COLUMNS = ["sales", "staff"]
EXACT = {"decimals": "all", "integers": "float"}
FLOATS = st.one_of(
    st.floats(-1e150, 1e150, allow_nan=False), st.integers(-3, 3).map(float), st.floats(1e9, 1e9 + 5), st.just(np.nan)
)


def firms(n=300, seed=0):
    """Return log-normal firms; some have no staff, and profits of both signs."""
    rng = np.random.default_rng(seed)
    staff = np.floor(rng.lognormal(1, 2, n))
    return pl.DataFrame(
        {
            "sales": rng.lognormal(3, 2, n).round(2),
            "staff": staff,
            "profit": (rng.normal(size=n) * rng.lognormal(3, 2, n)).round(2),
            "region": rng.choice(["n", "s"], n),
            "grade": rng.integers(0, 4, n),
        }
    )


def slow_log(x):
    """Compare by asinh of x in units of the least size that at least 1 % of the non-zero values do not exceed."""
    sizes = sorted(abs(value) for value in x if not np.isnan(value) and value != 0)
    unit = next((size for i, size in enumerate(sizes, start=1) if i >= 0.01 * len(sizes)), 1.0)
    return np.arcsinh(np.asarray(x) / unit)


def slow_rank(x):
    ranks = np.full(len(x), np.nan)
    present = ~np.isnan(x)
    ranks[present] = (rankdata(x[present]) - 0.5) / present.sum()
    return ranks


SLOW = {"log": slow_log, "rank": slow_rank}


def coding_of(scale, *parts):
    return CODINGS[scale].coding(merge_counts([CODINGS[scale].observe(part) for part in parts]))


# Scales


def test_every_scale_has_words_and_a_coding():
    assert list(SCALES) == ["linear", *CODINGS]


@pytest.mark.parametrize("scale", CODINGS)
@pytest.mark.parametrize("column", ["sales", "staff", "profit"])
@pytest.mark.parametrize("n", [2, 5, 99, 100, 101, 300])
def test_scales_agree_with_slow_ones(scale, column, n):
    x = firms(n)[column].to_numpy().copy()
    x[::7] = np.nan
    assert coding_of(scale, x[: n // 3], x[n // 3 :]).rescale(x) == pytest.approx(SLOW[scale](x), nan_ok=True)


def test_logarithms_are_signed_and_count_zeros():
    coding = coding_of("log", np.array([0.0, 1.0, 10.0, 1000.0, -1000.0]))
    places = coding.rescale(np.array([0.0, 10.0, 1000.0, 1e5, -1000.0]))
    assert places[0] == 0
    assert places[4] == -places[2]
    assert np.diff(places[1:4]) == pytest.approx(np.log(100), rel=2e-3)


@given(values=st.lists(FLOATS, max_size=60), cuts=st.lists(st.integers(0, 60), max_size=3), most=st.integers(1, 9))
@settings(deadline=None)
def test_counts_do_not_depend_on_parts(values, cuts, most):
    x = np.array(values, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison_scale, "MOST", most)
        whole = count_values(x)
        parts = merge_counts([count_values(part) for part in np.split(x, sorted(min(cut, len(x)) for cut in cuts))])
        ranks = RankCoding.of(whole).rescale(np.sort(x[~np.isnan(x)]))
    assert [part.tolist() for part in whole[1:]] == [part.tolist() for part in parts[1:]]
    assert whole.bits == parts.bits
    present = np.sort(x[~np.isnan(x)])
    assert whole.counts.sum() == len(present)
    assert len(whole.counts) <= max(most, 2)  # one for each sign at least
    assert (whole.low <= whole.high).all()
    assert (np.diff(ranks) >= -1e-15).all()  # interpolation rounds
    if len(present):
        # No value is farther from its rank than the records of its interval.
        off = np.abs(ranks - slow_rank(present))
        assert off.max() <= whole.counts.max() / len(present) + 1e-12


def test_intervals_are_as_fine_as_they_may_be():
    x = np.random.default_rng(0).lognormal(0, 3, 3 * comparison_scale.MOST)
    counts = count_values(x)
    assert comparison_scale.MOST / 2 < len(counts.counts) <= comparison_scale.MOST
    exact, found = slow_rank(x), RankCoding.of(counts).rescale(x)
    assert np.abs(exact - found).max() < 1e-3


# Masking


@pytest.mark.parametrize("scale", CODINGS)
@pytest.mark.parametrize(
    "asked",
    [
        {"method": "mdav"},
        {"method": "v-mdav", "by": "region"},
        {"method": "projection"},
        {"method": "individual-ranking"},
        {"aggregate": "median"},
        {"block": 60},
        {"block": 60, "split": "one", "by": "region"},
        {"confidential": "grade", "diversity": 2},
        {"distance": ["sales"], "method": "mdav"},
        {"importance": {"sales": 3.0}, "method": "mdav"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::shoal.NotKAnonymousWarning")
def test_groups_are_those_of_the_scaled_table(scale, asked):
    frame = firms()
    scaled = frame.with_columns(pl.Series(name, SLOW[scale](frame[name].to_numpy())) for name in COLUMNS)
    release = shoal.mask(frame, 4, columns=COLUMNS, scale=scale, **EXACT, **asked)
    expected = shoal.mask(scaled, 4, columns=COLUMNS, **EXACT, **asked)
    assert np.array_equal(release.labels, expected.labels)
    for j, name in enumerate(COLUMNS):
        groups = release.labels if release.labels.ndim == 1 else release.labels[:, j]
        how = asked.get("aggregate", "mean")
        values = pd.Series(frame[name].to_numpy()).groupby(groups).transform(how).to_numpy()
        assert release.data[name].to_numpy() == pytest.approx(values)
    assert release.bound is None
    assert release.status == "heuristic"


@pytest.mark.parametrize("scale", CODINGS)
def test_the_loss_keeps_its_meaning_and_the_other_has_a_name(scale):
    frame = firms()
    release = shoal.mask(frame, 4, columns=COLUMNS, scale={"sales": scale}, **EXACT, method="mdav")
    numbers = frame.select(COLUMNS).to_numpy()
    assert release.loss == pytest.approx(information_loss(standardise(numbers), release.labels))
    x = numbers[:, 0]
    coding = coding_of(scale, x)
    before, after = coding.rescale(x), coding.rescale(release.data["sales"].to_numpy())
    expected = 100 * np.square(after - before).sum() / np.square(before - before.mean()).sum()
    assert release.scale_loss == {"sales": pytest.approx(expected)}
    assert f"sales {expected:.5f} %" in str(release)
    assert f"sales ({scale})" in str(release)
    assert not release.published().scale_loss
    assert release.data["sales"].sum() == pytest.approx(frame["sales"].sum())


@pytest.mark.parametrize(
    ("scale", "change"), [("log", lambda x: 1000 * x), ("rank", lambda x: np.sqrt(x) - 7), ("log", lambda x: -x)]
)
def test_units_of_measurement_change_no_group(scale, change):
    x = firms()["sales"].to_numpy()
    labels = [
        shoal.mask(np.column_stack([column, np.arange(300.0)]), 3, scale=scale, method="mdav").labels
        for column in (x, change(x))
    ]
    assert np.array_equal(*labels)


def test_quantiles_of_heavy_tails_move_less():
    frame, shares = firms(2000), (0.1, 0.25, 0.5, 0.75, 0.9)
    moved = {}
    for scale in ("linear", "log", "rank"):
        data = shoal.mask(frame, 10, columns=["sales", "staff", "profit"], scale=scale, method="mdav").data
        moved[scale] = max(abs(data["sales"].quantile(share) / frame["sales"].quantile(share) - 1) for share in shares)
    assert moved["log"] < moved["linear"] / 2
    assert moved["rank"] < moved["linear"]


@pytest.mark.parametrize("scale", CODINGS)
@pytest.mark.parametrize(
    "column",
    [
        np.zeros(40),
        np.full(40, -7.5),
        np.full(40, np.nan),
        np.r_[np.zeros(36), 1.0, 2.0, -3.0, 1e149],
        np.r_[np.full(20, 5e-324), np.full(20, 1e149)],
        np.r_[np.full(13, np.nan), np.arange(27.0)],
        -np.arange(40.0),
    ],
    ids=["zeros", "constant", "missing", "heavy", "tiny and huge", "gaps", "negative"],
)
@pytest.mark.parametrize("block", [None, 20])
def test_odd_columns(scale, column, block):
    frame = pl.DataFrame({"x": column, "y": np.arange(40.0) % 9})
    release = shoal.mask(frame, 4, columns=["x", "y"], scale=scale, block=block, method="mdav", **EXACT)
    assert release.records == 40
    assert np.isfinite([release.loss, *release.scale_loss.values()]).all()
    assert np.array_equal(np.isnan(release.data["x"].to_numpy()), np.isnan(column))


@pytest.mark.parametrize("scale", CODINGS)
def test_a_large_offset_costs_no_groups(scale):
    """Far from zero a logarithm is nearly linear, so the groups are those of the unscaled column."""
    near = np.arange(60.0) % 20
    near += np.where(near < 10, 0, 100)
    release = shoal.mask((near + 1e9)[:, None], 3, scale=scale)
    assert release.loss == pytest.approx(0, abs=1e-9)
    assert np.array_equal(release.data[:, 0], near + 1e9)


def test_records_that_are_left_out_or_blanked_count_on_the_scale():
    frame = firms().with_columns(sales=pl.when(pl.int_range(300) < 3).then(None).otherwise("sales"))
    asked = {"columns": COLUMNS, "scale": "log", "method": "mdav", "k": 4, "max_left_out": 1}
    full = shoal.mask(frame, **{**asked, "k": 3}).scale_loss["sales"]
    dropped = shoal.mask(frame.with_columns(sales=pl.when(pl.int_range(300) < 100).then(None).otherwise("sales")),
                         **asked, missing="drop")  # fmt: skip
    assert dropped.scale_loss["sales"] > 100 / 3 > full
    merged = shoal.mask(frame, **asked)
    assert merged.blanked
    assert np.isfinite(merged.scale_loss["sales"])


def test_closeness_still_has_a_true_bound():
    frame = firms().with_columns(grade=pl.col("sales"))
    release = shoal.mask(frame, 4, columns=COLUMNS, scale="rank", confidential="grade", closeness=0.25)
    assert release.bound is not None
    assert 0 < release.bound <= release.loss
    assert release.status == "bounded"


def test_linear_is_the_default():
    frame = firms()
    plain, linear = (shoal.mask(frame, 4, columns=COLUMNS, scale=scale) for scale in (None, {"sales": "linear"}))
    assert plain.data.equals(linear.data)
    assert linear.scale_loss == {}
    assert "scale" not in str(linear)


# Refusals


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"scale": "logs"},
            "'scale' must be one of 'linear', 'log', 'rank', got 'logs'. Did you mean 'log'?",
        ),
        ({"scale": {"sales": 2}}, "must be one of 'linear', 'log', 'rank' for column 'sales', got 2."),
        ({"scale": ["log"]}, "must be one of 'linear', 'log', 'rank', got ['log']."),
        ({"scale": {"sales": None}}, "for column 'sales', got None."),
        ({"scale": {"profit": "log"}}, "'scale' names column 'profit', which is not masked."),
        (
            {"scale": {"sale": "log"}},
            "names column 'sale', which the table does not have. Did you mean 'sales'",
        ),
        (
            {"columns": ["sales", "region"], "scale": {"region": "log"}},
            "'scale' must name columns of numbers, but column 'region' holds categories. Leave it out.",
        ),
        (
            {"columns": ["sales", "grade"], "kinds": {"grade": "nominal"}, "scale": {"grade": "rank"}},
            "column 'grade' holds categories",
        ),
        ({"columns": "region", "scale": "log"}, "scale='log' requires columns of numbers, but none is masked."),
        ({"scale": "log", "method": "search", "bound": True}, "'bound' cannot be combined with 'scale'"),
        ({"scale": "log", "refine": 3}, "'refine' lowers the loss in the units of the columns"),
    ],
    ids=str,
)
def test_refused_by_name(asked, message):
    with pytest.raises(InputError) as refusal:
        shoal.mask(firms(), 3, **{"columns": COLUMNS, **asked})
    assert message in str(refusal.value)


# Command line, manifest, roles, comparison, page


def test_the_command_line_and_the_manifest(tmp_path):
    firms().write_csv(tmp_path / "in.csv")
    common = ("mask", "in.csv", "-k", 4, "-c", "sales,staff", "-m", "mdav")
    done = command(*common, "--scale", "sales=log", "--scale", "staff=rank", "-o", "out.csv", "--manifest", "run.json",
                   cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sales (log), staff (rank)" in done.stdout
    scales = json.loads((tmp_path / "run.json").read_text())["parameters"]["scale"]
    assert scales == {"sales": "log", "staff": "rank"}
    again = command("mask", "--from-manifest", "run.json", cwd=tmp_path)
    assert "same bytes" in again.stdout
    both = [
        command(*common, *words, "-o", f"{i}.csv", cwd=tmp_path)
        for i, words in enumerate((["--scale", "log"], ["--scale", "sales=log", "--scale", "staff=log"]))
    ]
    assert all(run.returncode == 0 for run in both)
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    refused = command(*common, "--scale", "log", "--scale", "staff=rank", "-o", "x.csv", cwd=tmp_path)
    assert refused.returncode != 0
    assert "--scale must be SCALE once, or COLUMN=SCALE" in refused.stderr


def test_a_release_says_how_to_repeat_it():
    release = shoal.mask(firms(), 4, columns=COLUMNS, scale={"sales": "log"})
    assert "--scale sales=log" in release.command("in.csv", "out.csv")
    assert "scale={'sales': 'log'}" in release.call("in.csv", "out.csv")
    assert "--scale rank" in shoal.mask(firms(), 4, columns=COLUMNS, scale="rank").command("in.csv", "out.csv")


def test_roles_hold_scales(tmp_path):
    frame = firms()
    roles = {"sales": {"role": "key", "scale": "log"}, "staff": "key", "profit": "drop", "region": "drop",
             "grade": "drop"}  # fmt: skip
    by_roles = shoal.mask(frame, 4, roles=roles)
    assert by_roles.parameters["scale"] == {"sales": "log"}
    assert by_roles.data.equals(shoal.mask(frame, 4, columns=COLUMNS, scale={"sales": "log"}).data)
    with pytest.raises(InputError, match="scale 'logs' for column 'sales' with role 'key'"):
        shoal.mask(frame, 4, roles={**roles, "sales": {"role": "key", "scale": "logs"}})
    with pytest.raises(InputError, match="only keys have a scale"):
        shoal.mask(frame, 4, roles={**roles, "profit": {"role": "drop", "scale": "log"}})
    with pytest.raises(InputError, match="'scale' cannot be combined with 'roles'"):
        shoal.mask(frame, 4, roles=roles, scale="rank")
    plain = {**roles, "sales": "key"}
    assert shoal.mask(frame, 4, roles=plain, scale="rank").parameters["scale"] == "rank"


def test_compare_takes_a_scale():
    frame = firms()
    found = shoal.compare(frame, k=[4], methods=["mdav", "mst"], columns=COLUMNS, scale="log")
    for trial in found.trials:
        release = shoal.mask(frame, 4, columns=COLUMNS, scale="log", method=trial.method)
        assert trial.loss == pytest.approx(release.loss), trial.method
    assert found.parameters["scale"] == "log"


def test_the_page_holds_scales_of_keys():
    settings = Settings(roles={"sales": "key", "staff": "key", "profit": "other"}, asked={"k": 3})
    settings.scales = {"sales": "log", "staff": "rank", "profit": "log"}
    settings.kinds = {"staff": "nominal"}
    assert settings.request().scale == {"sales": "log"}
