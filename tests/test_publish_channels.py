"""Only the release depends on the data: separate private files, messages independent of values, a stop on NaN."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_publish_cli import invoke

import shoal
from shoal.core.errors import FileError, InputError, PrivateExplorationWarning, VerificationError
from shoal.privacy.exploration import explore
from shoal.privacy.noise import noisy_means
from shoal.privacy.publication import PRIVATE
from shoal.privacy.publication_methods import PUBLICATION_METHODS
from shoal.privacy.worst_case import worst_case_sse

BOUNDS = {"x": (0.0, 100.0)}


def column(n=60, seed=0):
    return pl.DataFrame({"x": np.random.default_rng(seed).uniform(0, 100, n), "secret column": np.arange(n)})


# Two files each


def test_public_files_are_the_same_for_neighbours_except_for_the_release(tmp_path, monkeypatch):
    """Figures computed from the data would differ: one record is far outside, another column has another name."""
    monkeypatch.chdir(tmp_path)
    public, private = [], []
    one, two = column(), column(seed=5).with_columns(x=pl.when(pl.int_range(60) == 3).then(1e9).otherwise("x"))
    for table in (one, two.rename({"secret column": "other secret"})):
        table.write_csv("in.csv")
        files = [
            "--manifest",
            "M.json",
            "--private-manifest",
            "P.json",
            "--report",
            "R.html",
            "--private-report",
            "S.html",
        ]
        command = ["publish", "in.csv", "-e", "1", "-b", "x=0:100", "-o", "out.csv", "--seed", "1", *files]
        assert invoke(*command)[0] == 0
        manifest = json.loads(Path("M.json").read_text(encoding="utf-8"))
        del manifest["created"], manifest["output"], manifest["columns"]["x"]["estimates"]  # these are the release
        page = Path("R.html").read_text(encoding="utf-8")
        public.append((manifest, page.partition("The released values")[0].partition("<body")[2]))
        private.append(
            (json.loads(Path("P.json").read_text(encoding="utf-8")), Path("S.html").read_text(encoding="utf-8"))
        )
        for text in (Path("M.json").read_text(encoding="utf-8"), page):
            assert "secret" not in text
    assert public[0] == public[1]
    assert private[0][0]["columns"] != private[1][0]["columns"]
    assert "other secret" in private[1][1]
    assert "Not for release" in private[1][1]


def test_what_is_private_is_marked():
    release = shoal.publish(column(), 1.0, bounds=BOUNDS)
    assert all(hasattr(release, name) for name in PRIVATE)
    assert f"private: {', '.join(PRIVATE)}" in repr(release)
    for name in ("clipped", "expected_sse", "labels", "sizes"):
        assert str(getattr(release, name)) not in repr(release)
    names = [name for name, _ in release.rows()]
    assert all(name.startswith("private: ") for name in names[names.index("NOT FOR RELEASE") + 1 :])
    assert [name for name, _ in release.public_rows()] == names[: names.index("NOT FOR RELEASE")]
    assert "private: x" in release._repr_html_()
    told = " ".join(value for _, value in release.public_rows())
    for secret in ("groups of", "values outside", "expected SSE", "secret column"):
        assert secret not in told
        assert secret in str(release)


# Words


def refusal(table, **options):
    with pytest.raises(InputError) as caught:
        shoal.publish(table, 1.0, **({"bounds": BOUNDS} | options))
    return str(caught.value)


def test_refusals_do_not_depend_on_which_values_are_wrong():
    said = set()
    for bad in ([(3, None)], [(7, None), (8, None)], [(5, math.nan)], [(1, math.inf)]):
        values = np.arange(60.0).tolist()
        for record, cell in bad:
            values[record] = cell
        said.add(refusal(pl.DataFrame({"x": values})))
    assert len(said) == 1
    said = {refusal(pl.DataFrame({"x": ["1", *bad, "3"]})) for bad in (["one"], ["two", "2.5"], ["123-45-6789"])}
    assert len(said) == 1
    options = {"bounds": {}, "categories": {"x": ["1", "2"]}}
    said = {refusal(pl.DataFrame({"x": [1.0, bad]}), **options) for bad in (2.5, 77.25)}
    assert len(said) == 1


def test_a_line_that_cannot_be_read_is_not_shown(tmp_path):
    (tmp_path / "in.csv").write_text("x,y\n1,2\n3,4,secret\n")
    with pytest.raises(FileError, match=r"Expected 2 columns, got 3\. Set another delimiter") as caught:
        shoal.publish(tmp_path / "in.csv", 1.0, bounds=BOUNDS)
    assert "secret" not in str(caught.value)


def test_warnings_do_not_depend_on_values():
    said = []
    for seed in (0, 5):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = column(seed=seed)
            shoal.publish(table, 11.0, bounds={"x": (0, 100)}, method="optimal", keep="secret column", seed=3)
            explore(table, bounds=BOUNDS, private=True, methods="none")
        said.append([str(w.message) for w in caught])
    assert said[0] == said[1]
    assert len(said[0]) == 5


# NaN


def test_a_nan_stops_the_release(monkeypatch, tmp_path):
    values = np.array([1.0, math.nan])
    with pytest.raises(VerificationError, match="non-finite"):
        noisy_means(values, np.arange(2), np.ones(2), lower=0, upper=9, epsilon=1.0)
    with np.errstate(divide="ignore"), pytest.raises(VerificationError, match="non-finite"):
        noisy_means(values[:1], np.zeros(1, dtype=int), np.zeros(1), lower=0, upper=9, epsilon=1.0)
    monkeypatch.setattr("shoal.privacy.noisy_release.noisy_means", lambda *_, **__: np.full(60, math.nan))
    with pytest.raises(VerificationError, match="Nothing was released"):
        shoal.publish(column(), 1.0, bounds=BOUNDS, method="none", output=tmp_path / "o.csv")
    assert not list(tmp_path.iterdir())


# Exploring


def test_exploring_is_public_by_default():
    one, two = (explore(column(seed=seed), bounds=BOUNDS, k=[5, 20]) for seed in (0, 5))
    assert one == two
    assert str(one) == str(two)
    assert "in the worst case, from public figures alone" in str(one)
    assert {point.method for point in one.points} == set(PUBLICATION_METHODS)
    (point,) = explore(column(), bounds=BOUNDS, k=5, epsilon=2.0, methods="insensitive-ir").points
    assert point.sse == worst_case_sse(60, 5, 2.0, 100.0)


@pytest.mark.parametrize("method", [*PUBLICATION_METHODS, "univariate", "fixed", "individual-ranking", "mst", "auto"])
def test_no_table_has_a_greater_error_than_the_public_one(method):
    tables = [pl.DataFrame({"x": cells, "y": cells[::-1]}) for cells in (np.arange(60.0), np.repeat([0.0, 100.0], 30))]
    tables.append(pl.DataFrame({"x": [0.0] * 57 + [100.0] * 3, "y": [100.0] * 2 + [0.0] * 58}))
    # The remainder for k = 7, 23 and 35 joins one group, here with half of its records at each end.
    tables += [pl.DataFrame({"x": [0.0] * (60 - ones) + [100.0] * ones}) for ones in (5, 18, 30)]
    sizes, epsilons = [5, 7, 20, 23, 35], [0.5, 3.0, 20.0]
    for table in tables:
        bounds = dict.fromkeys(table.columns, (0, 100))
        worst = explore(table, bounds=bounds, k=sizes, epsilon=epsilons, methods=method).points
        with pytest.warns(PrivateExplorationWarning):
            found = explore(table, bounds=bounds, k=sizes, epsilon=epsilons, methods=method, private=True).points
        assert all(exact.sse <= most.sse * (1 + 1e-12) for exact, most in zip(found, worst, strict=True))


def test_the_command_explores_in_private_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    column().write_csv("in.csv")
    command = ["publish", "in.csv", "-b", "x=0:100", "--explore", "-m", "none,optimal", "-e", "1"]
    code, shown, _, warned = invoke(*command)
    assert (code, warned) == (0, set())
    assert "worst case" in shown
    code, shown, _, warned = invoke(*command, "--private")
    assert (code, warned) == (0, {"PrivateExplorationWarning"})
    assert "for the data holder, not for release" in shown


# Metadata planted in every format is searched for in test_publish_metadata.py; here the two that pandas adds.


def test_types_that_follow_values_do_not_show(tmp_path):
    # A CSV column of whole numbers is read as integers, one with a fraction is not: the release looks the same.
    said = set()
    for cells in ("1\n2\n3\n", "1\n2.5\n3\n"):
        (tmp_path / "in.csv").write_text("x\n" + cells)
        release = shoal.publish(tmp_path / "in.csv", 1.0, bounds=BOUNDS, output=tmp_path / "out.parquet")
        said.add((str(release.data.schema), str(pl.read_parquet(tmp_path / "out.parquet").schema)))
    assert len(said) == 1
    frames = [pd.DataFrame({"x": pd.array(cells, dtype="Int64")}) for cells in ([1, 2], [50, 99])]
    assert len({str(shoal.publish(frame, 1.0, bounds=BOUNDS).data.dtypes) for frame in frames}) == 1
