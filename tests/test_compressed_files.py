"""Compressed CSV files, in and out."""

import gzip

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from conftest import command

import shoal
from shoal.core.errors import FileError, InputError

RAW = b"id;v;note\n1;1,5;a\n2;2,5;\n3;9,5;b\n4;8,5;c\n"
ENDINGS = (".csv.gz", ".csv.zst", ".tsv.gz", ".txt.zst", ".CSV.GZ")


def packed(raw, ending):
    return gzip.compress(raw) if ending.lower().endswith(".gz") else pa.compress(raw, codec="zstd", asbytes=True)


def unpacked(path):
    raw = path.read_bytes()
    if path.suffix.lower() == ".gz":
        return gzip.decompress(raw)
    return pa.input_stream(pa.py_buffer(raw), compression="zstd").read()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_compressed_file_is_masked_like_the_file_within(tmp_path, ending):
    source, target, plain = tmp_path / f"in{ending}", tmp_path / f"out{ending}", tmp_path / "in.csv"
    source.write_bytes(packed(RAW, ending))
    plain.write_bytes(RAW)
    asked = {"columns": ["v"], "rest": "keep", "keep": ["id"], "missing": "error"}
    release = shoal.mask(source, 2, output=target, **asked)
    assert release.verified
    shoal.mask(plain, 2, output=tmp_path / "out.csv", **asked)
    assert unpacked(target) == (tmp_path / "out.csv").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([source.name, target.name, plain.name, "out.csv"])


@pytest.mark.parametrize("ending", ENDINGS[:2])
def test_the_same_table_makes_the_same_compressed_file(tmp_path, ending):
    (tmp_path / "in.csv").write_bytes(RAW)
    paths = [tmp_path / f"{name}{ending}" for name in ("one", "two")]
    for path in paths:
        shoal.mask(tmp_path / "in.csv", 2, columns=["v"], output=path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("ending", ENDINGS[:2])
@pytest.mark.parametrize("damage", [lambda raw: raw[:-3], lambda raw: raw[:12], lambda raw: b"x" * len(raw)])
def test_a_damaged_compressed_file_is_one_error(tmp_path, ending, damage):
    path = tmp_path / f"in{ending}"
    path.write_bytes(damage(packed(RAW * 50, ending)))
    with pytest.raises(FileError, match=rf"in{ending} cannot be read as {ending}: .*restore a copy"):
        shoal.mask(path, 2, columns=["v"], output=tmp_path / "out.csv")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_engines_that_read_in_parts_refuse_a_compressed_file(tmp_path, engine):
    path = tmp_path / "in.csv.gz"
    path.write_bytes(packed(RAW, ".gz"))
    with pytest.raises(InputError, match=r"in\.csv\.gz is compressed .*Decompress it.*engine='memory'"):
        shoal.mask(path, 2, columns=["v"], output=tmp_path / "out.parquet", engine=engine)


def test_an_unknown_ending_under_the_compression_is_named(tmp_path):
    (tmp_path / "in.xml.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"got '\.xml\.gz'"):
        shoal.mask(tmp_path / "in.xml.gz", 2)


def test_every_command_reads_compressed_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"age": rng.integers(20, 80, 60), "pay": rng.normal(3000, 500, 60).round(1)})
    frame.write_csv("in.csv")
    for ending in (".csv.gz", ".csv.zst"):
        (tmp_path / f"in{ending}").write_bytes(packed((tmp_path / "in.csv").read_bytes(), ending))
        shown = command("inspect", f"in{ending}", "-k", 3)
        assert shown.returncode == 0
        assert f"in-masked{ending}" in shown.stdout
        done = command("mask", f"in{ending}", "-k", 3, "-c", "age,pay", "-o", f"out{ending}", "--manifest", "m.json")
        assert done.returncode == 0, done.stderr
        assert command("mask", "--from-manifest", "m.json").returncode == 0
        assert command("assess", "in.csv", f"out{ending}", "-c", "age", "-c", "pay").returncode == 0


def test_columns_are_matched_by_pattern_in_files_of_every_format(tmp_path):
    path = tmp_path / "in.csv.gz"
    path.write_bytes(packed(RAW, ".gz"))
    assert list(shoal.mask(path, 2, columns="v*").columns) == ["v"]
