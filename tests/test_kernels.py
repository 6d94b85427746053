"""Compiled kernels: one decorator, and a cache that never runs old code."""

import ast
import builtins
import os
import shutil
import subprocess
import sys

import numba
import numpy as np
import pytest
from conftest import ROOT
from numba import config

from shoal.core import kernel_cache
from shoal.core.compiler import kernel, uncounted_options

IN_CHECKOUT = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout")
SOURCES = kernel_cache.sources(kernel_cache.PACKAGE)
ALL = {
    path.relative_to(kernel_cache.PACKAGE).as_posix(): path.read_bytes() for path in kernel_cache.PACKAGE.rglob("*.py")
}
USE_A_KERNEL = (
    "import numpy as np; from shoal.core.measures import squared_errors; squared_errors(np.eye(2), np.eye(2))"
)


def run(code, package, **environment):
    """Run code with the package of a folder in a separate process; return its output."""
    environment = {"PYTHONPATH": str(package.parent), "PATH": "", "HOME": os.devnull, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    """Return a copy of the package without compiled files."""
    return shutil.copytree(kernel_cache.PACKAGE, tmp_path / "shoal", ignore=shutil.ignore_patterns("__pycache__"))


def build_wheel(folder, changes=()):
    """Build a wheel of this checkout, with some text of its files replaced."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in changes:
        path = folder / "src" / "shoal" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(folder)]
    subprocess.run(build, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def install(wheel, prefix):
    """Install a wheel over an older one and return the package's folder; all files have the same times."""
    options = ["--quiet", "--no-deps", "--no-index", "--ignore-installed", "--prefix", str(prefix)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, capture_output=True)
    package = next(prefix.rglob("shoal/__init__.py")).parent
    for path in package.rglob("*.py"):
        os.utime(path, (10**9, 10**9))
    return package


@IN_CHECKOUT
def test_an_upgrade_runs_the_new_kernels(tmp_path):
    """The kernel that is called, `prim`, is the same in both versions; one that it calls in another file is not."""
    squares, absolute = "            out[i] += delta * delta\n", "            out[i] += abs(delta)\n"
    use = "import shoal; print(*shoal.spanning_tree([[0.0, 0.0], [3.0, 4.0]], 'prim').lengths)"
    old = build_wheel(tmp_path / "old")
    new = build_wheel(tmp_path / "new", [("kernels/distances.py", squares, absolute)])
    package = install(old, tmp_path / "site")
    assert run(use, package) == "5.0"
    assert install(new, tmp_path / "site") == package
    assert float(run(use, package)) == pytest.approx(np.sqrt(7))


def test_kernels_are_taken_from_the_cache(package):
    count = "; from shoal.core.measures import add_squared_errors as used; print(*used.stats.cache_hits.values())"
    assert run(USE_A_KERNEL + count, package) == ""
    assert run(USE_A_KERNEL + count, package) == "1"
    assert [path.name for path in (package / "__pycache__").glob("kernels-*")] == [kernel_cache.name_folder(package)]
    assert all(path.is_relative_to(package / "__pycache__") for path in package.rglob("*.nb[ic]"))


def test_the_folder_is_named_after_every_source_and_library(package, monkeypatch):
    names = {kernel_cache.name_folder(package)}
    for name in SOURCES:
        path = package / name
        content = path.read_bytes()
        path.write_bytes(content + b"#")
        names.add(kernel_cache.name_folder(package))
        path.write_bytes(content)
    assert len(names) == 1 + len(SOURCES)
    assert kernel_cache.name_folder(package) in names
    for library in (kernel_cache.numba, kernel_cache.llvmlite, kernel_cache.np):
        with monkeypatch.context() as patch:
            patch.setattr(library, "__version__", "0.0")
            names.add(kernel_cache.name_folder(package))
    assert len(names) == 1 + len(SOURCES) + 3


def test_files_without_kernels_leave_the_folder_alone(package):
    name = kernel_cache.name_folder(package)
    (package / "cli" / "demo.py").write_text("")
    (package / "cli" / ".#demo.py").symlink_to("nowhere")
    assert kernel_cache.name_folder(package) == name


def test_without_sources_there_is_no_folder(tmp_path, monkeypatch):
    assert kernel_cache.name_folder(tmp_path) is None
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path)
    assert kernel_cache.cache_folder.__wrapped__() is None


class TestPlaces:
    """Location of the cache folder. Even root cannot write into a file in place of a folder."""

    def test_a_package_that_cannot_be_written_to(self, package, tmp_path):
        (package / "__pycache__").touch()
        run(USE_A_KERNEL, package, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="not/absolute")
        run(USE_A_KERNEL, package, XDG_CACHE_HOME=str(tmp_path / "caches"))
        for place in ("home/.cache", "caches"):
            assert list((tmp_path / place).glob(f"shoal-*/{kernel_cache.name_folder(package)}/*/*.nbc"))

    def test_nothing_can_be_written_to(self, package):
        (package / "__pycache__").touch()
        run(USE_A_KERNEL, package)
        assert not list(package.rglob("*.nb[ic]"))

    def test_the_user_names_a_place(self, package, tmp_path):
        run(USE_A_KERNEL, package, NUMBA_CACHE_DIR=str(tmp_path / "mine"))
        assert list((tmp_path / "mine").glob(f"shoal-*/{kernel_cache.name_folder(package)}/*/*.nbc"))
        assert not list(package.rglob("*.nb[ic]"))

    @pytest.mark.skipif(not hasattr(numba.config, "CACHE_LOCATOR_CLASSES"), reason="an older numba")
    def test_the_user_sets_another_folder_for_numba(self, package):
        run(USE_A_KERNEL, package, NUMBA_CACHE_LOCATOR_CLASSES="InTreeCacheLocator")
        assert not list(package.rglob("*.nb[ic]"))


def test_folders_of_other_sources_are_removed_once_quiet(tmp_path):
    """A process may be writing to one that changed lately; other libraries are those of another environment."""
    old, busy, environment = (tmp_path / name for name in ("kernels-a-1", "kernels-a-2", "kernels-b-3"))
    for folder in (old, busy, environment):
        (folder / "algorithms").mkdir(parents=True)
        (folder / "algorithms" / "compiled.nbc").touch()
        os.utime(folder, (0, 0))
    for folder in (old, environment):
        os.utime(folder / "algorithms", (0, 0))
    new = kernel_cache.make_folder(tmp_path, "kernels-a-3")
    assert set(tmp_path.iterdir()) == {busy, environment, new}


def test_options_reach_numba():
    def infinite(x):
        return x / 0.0

    assert kernel(error_model="numpy")(infinite)(1.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        kernel(infinite)(1.0)
    options = kernel(inline=True, counted=False, inner=True, fastmath={"nnan"})(infinite).targetoptions
    assert options["inline"] == "always"
    assert options["fastmath"] == {"nnan"}
    assert options["nogil"]
    assert options["no_cfunc_wrapper"]
    assert options["no_cpython_wrapper"]


def test_kernels_of_other_packages_have_no_cache_of_shoal():
    """Their sources do not count here, so they have no cache of ours; and numba's settings are as they were."""
    from shoal.core.measures import add_squared_errors

    before = config.CACHE_DIR
    assert kernel(lambda x: x).stats.cache_path is None
    assert add_squared_errors.stats.cache_path is not None
    assert before == config.CACHE_DIR == os.environ.get("NUMBA_CACHE_DIR", "")


def test_a_numba_without_the_private_option(monkeypatch):
    """It raises KeyError for an option that it does not know, when a kernel is compiled."""
    from numba.core.registry import cpu_target

    def refuse(flags, options):
        raise KeyError(*options)

    assert uncounted_options.__wrapped__() == {"_nrt": False}
    monkeypatch.setattr(cpu_target.options, "parse_as_flags", refuse)
    assert uncounted_options.__wrapped__() == {}


def test_a_cached_kernel_is_loaded_without_what_compiling_needs(package):
    code = f"import sys; {USE_A_KERNEL}; print('numba.cpython.mathimpl' in sys.modules)"
    assert [run(code, package), run(code, package)] == ["True", "False"]


def test_a_numba_without_the_private_cache_loads_kernels_in_its_own_way(package):
    code = f"from numba.core import runtime; del runtime.rtsys; {USE_A_KERNEL.partition(';')[2]}; print('done')"
    assert [run(f"import numpy as np, numba; {code}", package) for _ in range(2)] == ["done", "done"]


def test_kernels_of_others_multiply_matrices_although_ours_leave_scipy_out(package):
    code = (
        f"import sys; {USE_A_KERNEL}; print('scipy.linalg' in sys.modules)\n"
        "from numba import njit\n"
        "print(njit(lambda a, b: np.dot(a, b))(np.eye(2), np.full((2, 2), 3.0)).tolist())\n"
        "print(njit(lambda a: np.linalg.det(a))(2 * np.eye(2)))"
    )
    assert run(code, package).splitlines() == ["False", "[[3.0, 3.0], [3.0, 3.0]]", "4.0"]


def decorated(tree):
    """Yield the kernels of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            getattr(getattr(mark, "func", mark), "id", "") == "kernel" for mark in node.decorator_list
        ):
            yield node


@pytest.mark.parametrize("name", sorted(ALL))
def test_only_the_decorator_compiles(name):
    """Files with kernels are sources, and no other way to compile is used."""
    tree = ast.parse(ALL[name])
    if list(decorated(tree)):
        assert name in SOURCES
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba") and "compiler" not in name:
            assert not {alias.name for alias in node.names} - {"types", "install_recorder", "install_timer"}
        if isinstance(node, ast.Import) and "kernel_cache" not in name and "compiler" not in name:
            assert not any(alias.name.startswith("numba") for alias in node.names)


def names_in(*parts):
    return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - kernel_cache.LISTS))
def test_all_names_used_by_kernels_are_in_source_files(name):
    """Kernels, and constants and types in the same files, use only names of source files.

    A class is such a type if a kernel names it, or a class that one does: others may be made of anything.
    """
    tree = ast.parse(SOURCES[name])
    origin = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal")
        for alias in node.names
    }
    assert "shoal" not in origin.values(), "a name of shoal itself may come from anywhere"
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not any(name.startswith("shoal") for name in plain), "names are imported one by one"
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    beside = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    used = names_in(*decorated(tree), *beside)
    while named := used & set(classes):
        used |= names_in(*(classes.pop(name) for name in named))
    used -= set(dir(builtins))
    files = {origin[word].removeprefix("shoal.").replace(".", "/") + ".py" for word in used & set(origin)}
    assert files <= set(SOURCES)
