"""Intruders with the masked table and its report solve for the values of a group, and learn only their mean."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.comparison.around import compare_around
from shoal.promises.dominance import Limit, may_be_published, published_loss
from shoal.report.pages import release_page
from shoal.report.withheld_figures import as_published, lost_share

MEAN = 1000.0


EXACT = {"integers": "float", "decimals": "all"}  # means as they are


def lonely(deviation):
    """58 zeros, and two values whose mean is known."""
    return pl.DataFrame({"x": [0.0] * 58 + [MEAN - deviation, MEAN + deviation]})


def among_pairs(deviation):
    """Return a column of equal pairs except for one, and a column with different pairs and the same loss."""
    x = np.array([*np.repeat(100.0 * np.arange(29), 2), 9e3 - deviation, 9e3 + deviation])
    means = np.arange(30.0) * 7 % 30
    left = 0.005 - 2 * deviation**2 / np.square(x - x.mean()).sum()
    other = np.sqrt(left / (1 - left) * np.square(means - means.mean()).mean())
    return pl.DataFrame({"x": x, "other": np.repeat(means, 2) + np.tile([-other, other], 30)})


def page_of(table, **more):
    """Return the text of a page without the seconds of the run."""
    release = shoal.mask(table, 2, columns=table.columns, method="mdav", **EXACT)
    return release, repr(release_page(replace(release, timings={}), original=table, **more))


def losses_in(page):
    """Return the losses of the JSON in a page."""
    block = re.search(r'\{\\n  "shoal".*?\\n\}', page)[0]
    return json.loads(unescape(block.replace("\\n", "\n").replace("\\'", "'")))["result"]


@pytest.mark.parametrize("table", [lonely, among_pairs])
def test_the_page_is_consistent_with_any_spread_of_a_group(table):
    """The attacker tries deviations: the masked table is the same for all of them, and so is the page."""
    releases, pages = zip(*(page_of(table(deviation)) for deviation in (40.0, 80.0, 160.0)), strict=True)
    assert all(np.allclose(release.data, releases[0].data, rtol=1e-12, atol=1e-12) for release in releases)
    assert len({round(release.column_loss["x"], 3) for release in releases}) == 3, "its loss would tell them apart"
    created = [re.sub(r'"created": "[^"]*"', "", page) for page in pages]
    assert created[0] == created[1] == created[2]


def test_a_report_without_the_original_shows_no_more():
    pages = [release_page(replace(shoal.mask(lonely(d), 2, columns="x", **EXACT), timings={})) for d in (40.0, 80.0)]
    first, second = (re.sub(r'"created": "[^"]*"', "", repr(page)) for page in pages)
    assert first == second
    assert "under 5 %" in first


def test_the_exact_loss_discloses_both_values():
    """The attack that the page would allow if it showed the exact loss."""
    release = shoal.mask(lonely(40.0), 2, columns="x", **EXACT)
    mean, loss = release.data["x"].max(), release.loss / 100
    # SSE = 2 d², SST = 2 d² + (2 − 4/60) mean²
    found = np.sqrt(loss * (2 - 4 / 60) * mean**2 / (2 - 2 * loss))
    assert mean + found == pytest.approx(1040.0, abs=1e-6)


def test_figures_of_many_groups_have_three_digits():
    table = pl.DataFrame({"x": np.random.default_rng(0).random(400), "y": np.random.default_rng(1).random(400)})
    release, page = page_of(table, comparison=compare_around(shoal.mask(table, 2, columns=["x", "y"]), table))
    assert 4 * release.group_loss < release.loss
    result = losses_in(page)
    assert result["loss"] == float(f"{release.loss:.3g}")
    assert result["column_loss"]["x"] == float(f"{release.column_loss['x']:.3g}")
    assert "Risk and utility" in page


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.usefixtures("one_template")
def test_the_largest_group_is_known_on_every_engine(tmp_path, engine):
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=90), "y": rng.normal(size=90)}).write_parquet(tmp_path / "in.parquet")
    asked = {"columns": ["x", "y"], "block": 30, "output": tmp_path / "out.parquet"}
    release = shoal.mask(tmp_path / "in.parquet", 4, engine=engine, **asked)
    X, Y = (pl.read_parquet(tmp_path / f"{name}.parquet").to_numpy() for name in ("in", "out"))
    squares = np.square(X - Y) / np.square(X - X.mean(axis=0)).sum(axis=0)
    groups = np.unique(Y, axis=0, return_inverse=True)[1].reshape(-1)
    each = np.column_stack([np.bincount(groups, column) for column in squares.T])
    each = each[np.bincount(groups) < 5]
    assert len(each)
    assert list(release.column_group_loss.values()) == pytest.approx((100 * each.max(axis=0)).tolist(), rel=1e-9)
    assert release.group_loss == pytest.approx(50 * each.sum(axis=1).max(), rel=1e-9)


def test_the_rule():
    assert may_be_published(4.0, 1.0)
    assert not may_be_published(4.0, 1.1)
    assert not may_be_published(0.0, 0.0)
    assert [lost_share(published_loss(x, precise=False)) for x in (0.0, 4.9, 5.0, 99.0, 101.0)] == [
        "under 5 %", "under 5 %", "5 to 50 %", "50 to 100 %", "more than 100 %"
    ]  # fmt: skip


def test_nothing_is_reported_of_a_category_dominated_by_one_group():
    """The share of changed cells would disclose the cells of that group."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60), "c": rng.choice(["a", "b"], 60)})
    release = shoal.mask(table, 3, columns=["x", "y", "c"], kinds={"c": shoal.Nominal()}, method="mdav")
    found = shoal.assess(table, release.data, columns=["x", "y", "c"], kinds={"c": shoal.Nominal()})
    open_, hidden = ({**release.column_loss, "c": loss} for loss in (13.5, Limit(50.0)))
    told, withheld = (as_published(found, losses).utility for losses in (open_, hidden))
    places = {column.name: place for place, column in enumerate(found.utility.columns)}
    c, x = places["c"], places["x"]
    assert (told.columns[c].changed, told.columns[c].loss) == (found.utility.columns[c].changed, 13.5)
    assert np.isnan([withheld.columns[c].changed, withheld.columns[c].variation]).all()
    assert withheld.columns[c].loss == 50.0
    assert withheld.columns[x].mean == found.utility.columns[x].mean
    assert not np.isnan(told.association[0][x, c])
    assert np.isnan(withheld.association[0]).all()
    np.testing.assert_array_equal(withheld.association[1], found.utility.association[1])  # the masked table has it
    np.testing.assert_array_equal(withheld.correlation[0], found.utility.correlation[0])  # of x and y
    assert told.propensity is not None
    assert withheld.propensity is None
