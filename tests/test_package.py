"""The package as users get it: public names, documentation, the wheel."""

import inspect
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

import shoal

IN_CHECKOUT = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout")


@pytest.mark.parametrize("name", [name for name in shoal.__all__ if not name.endswith(("Error", "Warning"))])
def test_every_public_name_has_an_example_or_describes_its_fields(name):
    text = inspect.getdoc(getattr(shoal, name))
    assert ">>>" in text or "Parameters" in text


def test_public_names_are_found_and_others_are_not():
    assert set(shoal.__all__) <= set(dir(shoal))
    assert all(getattr(shoal, name) is not None for name in shoal.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shoal.nothing


def test_importing_shoal_is_light():
    code = "import sys, shoal; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"numba", "numpy", "polars", "sklearn"}


@IN_CHECKOUT
def test_the_version_is_defined_once():
    project = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in project
    assert f"## {shoal.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@IN_CHECKOUT
def test_the_wheel_is_reproducible_and_works_outside_the_checkout(tmp_path):
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    assert next(tmp_path.glob("*.tar.gz")).stat().st_size < 2_000_000
    again = tmp_path / "again"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(again)],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    for path in again.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), f"{path.name} differs from build to build"
    names = zipfile.ZipFile(wheel).namelist()
    assert "shoal/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests", "benchmarks")) or "__pycache__" in name for name in names)
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    masked = "shoal.mask(__import__('numpy').arange(8.0), 4, integers='float')"
    code = f"import shoal; print(shoal.__file__); print({masked}.loss)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(target)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    path, loss = done.stdout.split()
    assert Path(path).is_relative_to(target)
    assert float(loss) == pytest.approx(100 * 10 / 42)
