"""Places: metres on the sphere, centroids, displacements, and the same on every engine and front end."""

import json
import re

import numpy as np
import polars as pl
import pytest
from conftest import command

import shoal
from shoal.core.errors import InputError
from shoal.kinds.kind_registry import KINDS, read_kind, read_kinds
from shoal.kinds.place import RADIUS, Place, distances, frame_at, unit_vectors

KIND = {("lat", "lon"): Place()}
FIGURES = re.compile(r"by (?:at most )?([\d.,]+) (k?)m")


def towns(n=200, lat=51.0, lon=-1.0, spread=0.3, seed=0):
    """Places around one, longitudes within ±180, and an age."""
    rng = np.random.default_rng(seed)
    east = lon + rng.normal(0, spread / np.cos(np.radians(lat)), n)
    return pl.DataFrame(
        {
            "lat": np.clip(rng.normal(lat, spread, n), -90, 90).round(5),
            "lon": ((east + 180) % 360 - 180).round(5),
            "age": rng.integers(18, 90, n),
        }
    )


def great_circle(here, there):
    """The haversine formula, one pair at a time."""
    (lat, lon), (other_lat, other_lon) = (np.radians(place) for place in (here, there))
    half = np.sin((lat - other_lat) / 2) ** 2 + np.cos(lat) * np.cos(other_lat) * np.sin((lon - other_lon) / 2) ** 2
    return 2 * RADIUS * np.arcsin(np.sqrt(half))


def test_distances_are_those_over_ground():
    rng = np.random.default_rng(1)
    here, there = (np.column_stack([rng.uniform(-90, 90, 50), rng.uniform(-180, 180, 50)]) for _ in range(2))
    expected = [great_circle(*pair) for pair in zip(here, there, strict=True)]
    np.testing.assert_allclose(distances(here, there), expected, rtol=1e-7)


@pytest.mark.parametrize("mean", [[0.3, 0.2, 0.4], [0, 0, 1.0], [0, 0, -0.5], [0, 0, 0], [-1, 1e-9, 0]])
def test_axes_are_at_right_angles(mean):
    axes = frame_at(np.array(mean, dtype=float))
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize(("lat", "lon"), [(0, 0), (51, -1), (-18, 180), (89.9, 30), (-75, -179.9)])
def test_coordinates_are_distances_in_one_unit_wherever_places_lie(lat, lon):
    table = towns(60, lat, lon, 0.05)
    X = table.select("lat", "lon").to_numpy()
    place, names = Place("lat", "lon"), ("lat", "lon")
    codings = [place.fit(name, names, [place.observe(X, j, names, [])])[0] for j, name in enumerate(names)]
    Z = np.hstack([coding.place(X, j, X) for j, coding in enumerate(codings)])
    assert Z.shape == (60, 3)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-5)
    assert np.square(Z).sum() == pytest.approx(2 * 60, rel=1e-5)  # two columns of numbers
    metres = np.array([great_circle(X[0], other) for other in X])
    np.testing.assert_allclose(np.linalg.norm(Z - Z[0], axis=1) * codings[0].spread * RADIUS, metres, rtol=1e-4)


def test_the_scale_is_the_same_however_the_table_is_divided():
    X, names, place = towns(1000).select("lat", "lon").to_numpy(), ("lat", "lon"), Place("lat", "lon")
    whole = place.fit("lat", names, [place.observe(X, 0, names, [])])[0]
    parts = [place.observe(part, 0, names, []) for part in np.array_split(X[::-1], 7)]
    divided = place.fit("lat", names, parts)[0]
    assert whole.spread == divided.spread
    assert np.array_equal(whole.mean, divided.mean)
    assert whole.spread == pytest.approx(np.sqrt(unit_vectors(X).var(axis=0).sum() / 2), rel=1e-6)


def test_groups_and_their_centroids_cross_the_antimeridian():
    table = pl.DataFrame({"lat": [10.0, 10, 10, 10, -40, -40], "lon": [179.9, -179.9, 179.8, -179.8, 5, 5.2]})
    release = shoal.mask(table, 2, columns=["lat", "lon"], kinds=KIND, method="mdav")
    lon, lat = release.data["lon"].to_numpy(), release.data["lat"].to_numpy()
    assert np.abs(lon[:4]).min() > 179.7
    np.testing.assert_allclose(lon[4:], 5.1)
    np.testing.assert_allclose(lat, [10, 10, 10, 10, -40, -40], atol=0.001)
    assert release.labels[4] == release.labels[5]
    assert release.loss < 1


def test_groups_cross_a_pole():
    table = pl.DataFrame({"lat": [89.99, 89.99, 60.0, 60.0], "lon": [0.0, 180.0, 10.0, 10.0]})
    release = shoal.mask(table, 2, columns=["lat", "lon"], kinds=KIND)
    assert release.data["lat"].to_list() == [90.0, 90.0, 60.0, 60.0]


def test_the_centroid_is_weighted():
    table = pl.DataFrame({"lat": [0.0, 0.0], "lon": [0.0, 4.0], "w": [3.0, 1.0]})
    release = shoal.mask(table, 2, columns=["lat", "lon"], kinds=KIND, weights="w")
    assert release.data["lon"].to_list() == pytest.approx([1.0, 1.0], abs=1e-3)


def test_a_medoid_is_a_place_of_the_table():
    table = towns(30)
    release = shoal.mask(table, 3, columns=["lat", "lon"], kinds=KIND, aggregate="medoid")
    places = set(table.select("lat", "lon").iter_rows())
    assert set(release.data.select("lat", "lon").iter_rows()) <= places


def test_the_loss_is_that_of_metres():
    table = towns(90, lat=60)
    release = shoal.mask(table, 3, columns=["lat", "lon"], kinds=KIND, method="mdav")
    before, after = (unit_vectors(data.select("lat", "lon").to_numpy()) for data in (table, release.data))
    expected = np.square(before - after).sum() / np.square(before - before.mean(axis=0)).sum()
    assert release.loss == pytest.approx(100 * expected, rel=1e-4)


def test_a_release_reports_displacements(tmp_path):
    table = towns(400, lon=179.9)
    release = shoal.mask(table, 4, columns=["lat", "lon", "age"], kinds=KIND, method="mdav")
    pairs = zip(*(data.select("lat", "lon").iter_rows() for data in (table, release.data)), strict=True)
    metres = [great_circle(*pair) for pair in pairs]
    (note,) = (note for note in release.notes if "displaced" in note)
    figures = [float(figure.replace(",", "")) * (1000 if unit else 1) for figure, unit in FIGURES.findall(note)]
    assert figures == pytest.approx([np.median(metres), np.quantile(metres, 0.95)], rel=0.1)
    assert note in dict.fromkeys(value for _, value in release.rows())
    page = release.report(tmp_path / "r.html", original=table).read_text()
    assert note.replace(" %", "\u00a0%") in page
    assert release.kinds == {"lat": "place", "lon": "place"}


def test_displacements_of_few_records_are_not_reported():
    release = shoal.mask(towns(9), 3, columns=["lat", "lon"], kinds=KIND)
    assert any("too few" in note for note in release.notes)


def test_assessment_handles_the_antimeridian():
    table = towns(200, lon=180)
    release = shoal.mask(table, 3, columns=["lat", "lon"], kinds=KIND, method="mdav")
    found = shoal.assess(table, release.data, kinds=KIND)
    assert found.utility.loss == pytest.approx(release.loss, rel=1e-6)
    lon = next(column for column in found.utility.columns if column.name == "lon")
    assert abs(lon.mean.before) == pytest.approx(180, abs=0.2)
    assert lon.sd.before < 1
    assert lon.rank_correlation > 0.8


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("asked", [{"block": 60}, {"block": 60, "weights": "age"}, {"missing": "group", "block": 60}])
@pytest.mark.usefixtures("one_template")
def test_the_local_engine_does_the_same(tmp_path, suffix, asked):
    table = towns(240, lon=180)
    if "missing" in asked:
        table = table.with_columns(pl.when(pl.int_range(pl.len()) % 6 > 0).then(pl.col("lat", "lon")))
    source = tmp_path / f"in.{suffix}"
    table.write_csv(source) if suffix == "csv" else table.write_parquet(source, row_group_size=50)
    read = pl.read_csv if suffix == "csv" else pl.read_parquet
    releases, written = [], []
    for engine in ("memory", "local"):
        out = tmp_path / f"{engine}.parquet"
        releases.append(shoal.mask(source, 3, columns=["lat", "lon"], kinds=KIND, engine=engine, output=out, **asked))
        written.append(pl.read_parquet(sorted(out.glob("*.parquet")) if out.is_dir() else out))
    assert len(read(source)) == 240
    assert written[0].select("lat", "lon").rows() == written[1].select("lat", "lon").rows()
    assert releases[0].notes == releases[1].notes
    assert releases[0].loss == pytest.approx(releases[1].loss, rel=1e-12)


def test_command_line_manifest_and_command(tmp_path):
    towns(60).write_csv(tmp_path / "in.csv")
    words = ["in.csv", "-k", 3, "-c", "lat", "-c", "lon", "-o", "out.csv", "--manifest", "m.json"]
    run = command("mask", *words, "--place", "lat,lon", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "displaced by" in run.stdout
    parameters = json.loads((tmp_path / "m.json").read_text())["parameters"]
    assert parameters["kinds"]["lon"] == {"latitude": "lat", "longitude": "lon"}
    first = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "out.csv").unlink()
    again = command("mask", "--from-manifest", "m.json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out.csv").read_bytes() == first
    assert "--place" in command("mask", "--help", cwd=tmp_path).stdout
    release = shoal.mask(tmp_path / "in.csv", 3, columns=["lat", "lon"], kinds=KIND)
    assert release.command("in.csv", "out.csv").count("--place lat,lon") == 1


def test_inspect_recognises_latitudes_and_longitudes():
    found = shoal.inspect(towns(60), 3)
    assert found.asked["kinds"]["lat"] == found.asked["kinds"]["lon"] == {"latitude": "lat", "longitude": "lon"}
    far = towns(60).with_columns(lat=pl.col("lat") * 10)
    assert not shoal.inspect(far, 3).asked["kinds"]


def test_kinds_are_stored_as_plain_values():
    kinds = read_kinds(KIND)
    assert kinds == {"lat": Place("lat", "lon"), "lon": Place("lat", "lon")}
    assert read_kind("lat", kinds["lat"].plain()) == kinds["lat"]
    assert read_kinds({name: kind.plain() for name, kind in kinds.items()}) == kinds
    assert [word for word, entry in KINDS.items() if entry.load().is_plain(kinds["lat"].plain())] == ["place"]


@pytest.mark.parametrize(
    ("change", "asked", "message"),
    [
        ({}, {"kinds": {"lat": Place()}}, "must name a column of latitudes"),
        ({}, {"kinds": {("lat", "lat"): Place()}}, "must name a column of latitudes"),
        ({}, {"columns": ["lat", "age"]}, "'lon', which is not masked"),
        ({}, {"kinds": {"lat": Place("lat", "lon")}}, "'lon', which is not masked or has another kind"),
        ({}, {"method": "individual-ranking"}, "form one value"),
        ({}, {"sums": "lat = lon + age", "columns": ["lat", "lon", "age"]}, "holds places"),
        ({"lat": pl.col("lat") + 50}, {}, "latitudes within ±90 degrees"),
        ({"lon": pl.col("lon") + 400}, {}, "longitudes within ±180 degrees"),
        ({"lon": pl.when(pl.col("age") > 20).then(pl.col("lon"))}, {"missing": "group"}, "only one of them"),
    ],
)
def test_refusals(change, asked, message):
    with pytest.raises(InputError, match=message):
        shoal.mask(towns(60).with_columns(**change), 3, **{"columns": ["lat", "lon"], "kinds": KIND, **asked})


def test_refinement_lowers_the_loss_in_metres():
    table = towns(120)
    asked = {"columns": ["lat", "lon", "age"], "kinds": KIND, "method": "mdav", "seed": 1}
    assert shoal.mask(table, 4, refine=20, **asked).loss <= shoal.mask(table, 4, **asked).loss


@pytest.mark.parametrize("coordinate", [0.0, 51.5])
def test_one_place_loses_nothing(coordinate):
    table = pl.DataFrame({"lat": [coordinate] * 6, "lon": [-0.1234567] * 6, "age": [1, 2, 3, 40, 50, 60]})
    release = shoal.mask(table, 3, columns=["lat", "lon", "age"], kinds=KIND)
    assert release.data["lat"].to_list() == [coordinate] * 6
    assert release.data["lon"].to_list() == [-0.1234567] * 6
    assert release.column_loss["lat"] == pytest.approx(0, abs=1e-6)
