"""Manifests: a run is repeated to the byte or leaves nothing; a manifest decides parameters, never places."""

import json
from shutil import copytree

import polars as pl
import pytest
from typer.testing import CliRunner

from shoal.cli import app
from shoal.demo import firms
from shoal.tables.files import write_file

runner = CliRunner()
pytestmark = pytest.mark.usefixtures("one_template")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A masked table with its manifest."""
    inside = tmp_path_factory.mktemp("made")
    write_file(firms(60), inside / "in.csv")
    done = shoal(
        "mask", inside / "in.csv", "-k", 5, "-c", "sales", "-c", "wages", "-m", "v-mdav", "-O", "gamma=0.2",
        "-o", inside / "out.csv", "--manifest", inside / "run.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return inside


@pytest.fixture
def folder(made, tmp_path):
    """A masked table with its manifest, in a folder that has a neighbour."""
    (tmp_path / "outside").mkdir()
    return copytree(made, tmp_path / "inside")


def shoal(*arguments):
    done = runner.invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def change(folder, place, value):
    """Change a key of the manifest; its place is written with dots."""
    content = json.loads((folder / "run.json").read_text())
    *above, last = place.split(".")
    part = content
    for name in above:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    (folder / "run.json").write_text(json.dumps(content))


def refused(folder, *words, arguments=()):
    """Repeat the manifest; it must be refused with these words, and no file may change anywhere."""
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    done = shoal("mask", "--from-manifest", folder / "run.json", *arguments)
    assert done.exit_code == 1
    for word in words:
        assert word in done.output
    assert "Traceback" not in done.output
    assert {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()} == before


def test_a_table_that_differs_leaves_the_older_file(folder):
    (folder / "out.csv").write_text("older")
    change(folder, "output.sha256", "0" * 64)
    extras = ["--labels", folder / "l.csv", "--report", folder / "r.html", "--manifest", folder / "m.json"]
    refused(folder, "differs from the recorded one", "nothing was written")
    refused(folder, "differs from the recorded one", arguments=extras)
    assert (folder / "out.csv").read_text() == "older"
    refused(folder, "differs from the recorded one", arguments=["-o", folder / "new.csv"])
    assert not (folder / "new.csv").exists()


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_a_repeated_run_writes_all_requested_files(folder, engine):
    shoal(
        "mask", folder / "in.csv", "-k", 5, "-c", "sales", "--engine", engine, "-o", folder / "first.csv",
        "--labels", folder / "labels.csv", "--manifest", folder / "run.json",
    )  # fmt: skip
    before = (folder / "first.csv").read_bytes()
    (folder / "first.csv").unlink()
    done = shoal(
        "mask", "--from-manifest", folder / "run.json", "--labels", folder / "l.csv", "--report", folder / "r.html",
        "--manifest", folder / "m.json", "-v",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "same bytes" in done.output
    assert "seconds" in done.output
    assert (folder / "first.csv").read_bytes() == before
    assert (folder / "l.csv").read_bytes() == (folder / "labels.csv").read_bytes()
    assert "shoal mask in.csv" in (folder / "r.html").read_text(encoding="utf-8")
    again, first = (json.loads((folder / name).read_text()) for name in ("m.json", "run.json"))
    assert all(again[part] == first[part] for part in ("input", "output", "parameters"))


@pytest.mark.parametrize(
    "name", ["{outside}/out.csv", "../outside/out.csv", "../inside/out.csv", "link/out.csv", "a\0b"]
)
@pytest.mark.parametrize("what", ["input", "output"])
def test_paths_outside_the_folder_must_be_passed(folder, what, name):
    outside = folder.parent / "outside"
    (folder / "link").symlink_to(outside)
    write_file(firms(60), outside / "out.csv")
    change(folder, f"{what}.path", name.format(outside=outside))
    way = "IN" if what == "input" else "-o"
    refused(folder, f"names the {what}", "is outside its folder", f"Put {way} on the command line")
    place = [folder / "in.csv"] if what == "input" else ["-o", outside / "new.csv"]
    done = shoal("mask", *place, "--from-manifest", folder / "run.json")
    assert done.exit_code == 0, done.output
    if what == "output":
        assert (outside / "new.csv").read_bytes() == (folder / "out.csv").read_bytes()


def test_an_output_that_is_a_link_out_of_the_folder_is_refused(folder):
    (folder / "out.csv").unlink()
    (folder / "out.csv").symlink_to(folder.parent / "outside" / "victim.csv")
    refused(folder, "is outside its folder")


def test_files_behind_a_link_are_not_read_through_a_folder(folder):
    parts = folder / "parts"
    parts.mkdir()
    write_file(firms(60), folder.parent / "outside" / "part.csv")
    (parts / "part.csv").symlink_to(folder.parent / "outside" / "part.csv")
    for named in (parts, folder / "parts" / "*.csv"):
        done = shoal("mask", named, "-k", 5, "-c", "sales", "-o", folder / "out.csv", "--manifest", folder / "run.json")
        assert done.exit_code == 0, done.output
        refused(folder, "names the input", "is outside its folder")
        assert shoal("mask", named, "--from-manifest", folder / "run.json").exit_code == 0


def test_a_given_table_must_be_the_recorded_one(folder):
    write_file(firms(60, seed=3), folder / "other.csv")
    refused(folder, "is not the recorded one", arguments=[folder / "other.csv"])
    refused(folder, "which does not exist", arguments=[folder / "gone.csv"])
    refused(folder, "is not the recorded one", arguments=[folder])


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        *(("parameters." + name, "x", f"'parameters.{name}'") for name in (
            "output", "labels", "data", "progress", "scheduler", "template", "kk",
        )),
        ("parameters.options.output", "x.csv", "no option 'output'"),
        ("parameters.options.labels", "x.csv", "no option 'labels'"),
        ("parameters.options.scheduler", "tcp://x", "no option 'scheduler'"),
        ("parameters.options.gamma", [1], "-O gamma of method 'v-mdav' must be of type float, got [1]"),
        ("parameters.options.gamma", "much", "-O gamma of method 'v-mdav' must be of type float, got 'much'"),
        ("parameters.options", [], "'parameters.options'"),
        ("parameters.k", "5", "'parameters.k' must be a whole number, got '5'"),
        ("parameters.k", True, "'parameters.k'"),
        ("parameters.k", 5.5, "'parameters.k'"),
        ("parameters.columns", "sales", "'parameters.columns'"),
        ("parameters.columns", ["sales", 1], "'parameters.columns' must be a list of names"),
        ("parameters.by", {}, "'parameters.by'"),
        ("parameters.method", 3, "'parameters.method'"),
        ("parameters.method", "mdva", "Did you mean"),
        ("parameters.missing", [], "'parameters.missing'"),
        ("parameters.missing", "maybe", "--missing must be one of"),
        ("parameters.rest", 1, "'parameters.rest'"),
        ("parameters.rest", "all", "--rest must be one of"),
        ("parameters.decimals", "most", "--decimals must be one of"),
        ("parameters.max_left_out", [], "'parameters.max_left_out'"),
        ("parameters.max_left_out", "much", "--max-left-out must be"),
        ("parameters.block", 0.5, "'parameters.block'"),
        ("parameters.memory", [], "'parameters.memory'"),
        *(("parameters.kinds", {"sector": kind}, "'parameters.kinds.sector' is not a kind of column, got") for kind in (
            5, None, True, {}, [["a"], ["b"]], [{}], {"ways": "in.csv", "release": "mode"},
            {"ways": {"a": 5}, "release": "mode"}, {"ways": {"a": [["b"]]}, "release": "mode"},
            {"ways": {"a": ["b"]}, "release": []}, {"ways": {"a": ["b"]}},
        )),
        ("parameters.kinds", {"sector": ["a", "a"]}, "Kind Ordinal must have at least 2 different levels"),
        ("parameters.kinds", [], "'parameters.kinds'"),
        ("parameters.refine", 10**30, "--refine must be below 2^31"),
        ("parameters.delimiter", 7, "'parameters.delimiter'"),
        ("parameters", [], "'parameters'"),
        ("input", "in.csv", "'input'"),
        ("input.path", 7, "'input.path'"),
        ("input.files", [], "'input.files'"),
        ("output.sha256", 7, "'output.sha256'"),
        *((name, None, f"'{name}' is missing") for name in (
            "shoal", "versions", "input", "output", "parameters", "input.path", "input.sha256", "output.path",
            "output.sha256", "parameters.k", "parameters.columns", "parameters.method", "parameters.options",
        )),
    ],
)  # fmt: skip
def test_what_is_not_a_manifest_is_refused_by_the_key(folder, place, value, word):
    change(folder, place, value)
    refused(folder, word)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '"x"', "[" * 100_000, "\udcff"])
def test_files_without_a_json_object_are_refused(folder, text):
    (folder / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(folder, "is not a manifest of shoal")


def test_an_option_that_only_an_object_can_be_is_refused(folder):
    content = json.loads((folder / "run.json").read_text())
    content["parameters"] |= {"method": "mst", "options": {"tree": {"a": 1}}}
    (folder / "run.json").write_text(json.dumps(content))
    refused(folder, "'parameters.options.tree'")


def test_a_cluster_is_never_taken_from_a_manifest(folder, monkeypatch):
    change(folder, "parameters.engine", "dask")
    refused(folder, "engine 'dask'", "Set --scheduler")
    asked = []

    def stop(_, request):
        asked.append((request.engine, request.scheduler))
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.masking.mask.mask_request", stop)
    # The workers of a cluster write a data set, which cannot be CSV.
    for arguments in (["--engine", "dask"], ["--scheduler", "tcp://here:1"], ["--engine", "memory"]):
        shoal("mask", "--from-manifest", folder / "run.json", "-o", folder / "again.parquet", *arguments)
    assert asked == [("dask", None), ("dask", "tcp://here:1"), ("memory", None)]


@pytest.mark.parametrize("arguments", [["--master", "yarn"], ["--engine", "spark"]])
def test_spark_runs_cannot_be_repeated_to_the_byte(folder, arguments):
    refused(folder, "byte for byte with engine 'spark'", "--engine local", arguments=arguments)


def test_a_scheduler_requires_dask(folder):
    refused(folder, "--scheduler requires engine 'dask'", arguments=["--scheduler", "tcp://here:1"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["-k", 5], ["-c", "sales"], ["-m", "mdav"], ["-O", "gamma=1"], ["--time", 1], ["--bound"], ["--by", "region"],
        ["--weights", "weight"], ["--missing", "error"], ["--integers", "float"], ["--aggregate", "mean"],
        ["--block", 0], ["--no-block"], ["--split", "all"], ["--memory", "2GB"], ["--processes", 1], ["--seed", 0],
        ["--delimiter", ","], ["--encoding", "utf-8"], ["--decimal", "."], ["--thousands", ","],
        ["--block-by", "sales"], ["--rest", "drop"], ["--decimals", "fit"], ["--max-left-out", "5%"],
        ["--roles", "roles.toml"],
    ],
)  # fmt: skip
def test_parameters_of_the_manifest_cannot_be_passed_as_well(folder, arguments):
    refused(folder, f"{arguments[0]} cannot be combined with --from-manifest", arguments=arguments)


def test_every_parameter_of_a_run_can_be_repeated():
    """The recorded request of a release has the parameters of a manifest, and all of them are keywords of mask."""
    import inspect

    from shoal import mask
    from shoal.masking.manifest import PARAMETERS

    release = mask(firms(20), 3, columns=["sales"])
    keywords = set(inspect.signature(mask).parameters)
    assert set(release.parameters) <= set(PARAMETERS)
    assert set(PARAMETERS) <= keywords
    assert keywords - set(PARAMETERS) == {"data", "roles", "output", "labels", "scheduler", "master", "progress"}


@pytest.mark.parametrize(
    ("method", "options", "way"),
    [
        ("search", {"time_limit": 0.1}, "Use steps instead of a time limit"),
        ("search", {"bound": False}, "Use steps instead of a time limit"),
        ("decomposition", {"subsets": 2}, "Use another method"),
    ],
)
def test_runs_ended_by_a_time_limit_cannot_be_repeated(folder, method, options, way):
    change(folder, "parameters.method", method)
    change(folder, "parameters.options", options)
    refused(folder, f"method {method!r} had a time limit", way)


def test_a_manifest_of_an_earlier_version_is_repeated(folder):
    """Newer parameters have their defaults, and all parameters of version 0.2 keep their values."""
    shoal(
        "mask", folder / "in.csv", "-k", 5, "-c", "sales", "--rest", "keep", "--decimals", "all", "--integers", "float",
        "--small", "error", "-o", folder / "out.csv", "--manifest", folder / "run.json",
    )  # fmt: skip
    assert len(pl.read_csv(folder / "out.csv").columns) > 1
    content = json.loads((folder / "run.json").read_text())
    added = "kinds identifiers keep distance importance shuffle small thousands refine zeros sums missing_codes"
    added += " rest decimals max_left_out scale"
    for name in added.split():
        del content["parameters"][name]
    (folder / "run.json").write_text(json.dumps(content))
    assert "same bytes" in shoal("mask", "--from-manifest", folder / "run.json").output


def test_steps_are_repeated_to_the_byte(folder):
    done = shoal(
        "mask", folder / "in.csv", "-k", 5, "-c", "sales", "-c", "wages", "-m", "search", "-O", "steps=500",
        "-o", folder / "out.csv", "--manifest", folder / "run.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "same bytes" in shoal("mask", "--from-manifest", folder / "run.json").output


@pytest.mark.parametrize("aggregate", ["median", "medoid"])
def test_every_aggregate_is_repeated(tmp_path, aggregate):
    pl.DataFrame({"x": [1.0, 2, 4, 11, 12, 14], "y": [1, 2, 3, 4, 5, 6]}).write_csv(tmp_path / "in.csv")
    places = ("-o", tmp_path / "out.csv", "--manifest", tmp_path / "run.json")
    shoal("mask", tmp_path / "in.csv", "-k", 3, "--aggregate", aggregate, *places)
    again = shoal("mask", "--from-manifest", tmp_path / "run.json", "-o", tmp_path / "again.csv")
    assert "same bytes" in again.output
