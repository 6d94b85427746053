"""The site: every public name is in the reference, and the examples run."""

import importlib.util
import inspect
import re
import runpy
import shlex
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
from conftest import ROOT, reference_path
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.core.parameters import help_of
from shoal.masking.request import parameters

DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("not run from a checkout", allow_module_level=True)


def load(name, folder=DOCS):
    """Import a program that is not part of the package."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


reference = load("reference_pages")
examples = load("render_examples")
modules = load("module_page")
NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]


def documented(names=shoal.__all__, folder=DOCS / "reference"):
    """Return the public names without a place in the reference, and those with two."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    told = re.findall(r"^::: shoal\.(\w+)$", pages, re.MULTILINE)
    return sorted(set(names) - set(told)), sorted({name for name in told if told.count(name) > 1 or name not in names})


def test_every_public_name_has_its_place_in_the_reference():
    assert documented() == ([], [])


def test_a_name_without_a_page_is_detected(tmp_path):
    (tmp_path / "page.md").write_text("::: shoal.mask\n\n::: shoal.mask\n")
    assert documented(["mask", "publish"], tmp_path) == (["publish"], ["mask"])


def undescribed(function):
    """Return the parameters of a function that its docstring does not describe."""
    section = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2].split("\n\n")[0]
    told = re.findall(r"[\w*]+", " ".join(line for line in section.splitlines() if not line.startswith(" ")))
    return [name for name in inspect.signature(function).parameters if name not in {part.strip("*") for part in told}]


@pytest.mark.parametrize("name", [name for name in shoal.__all__ if inspect.isfunction(getattr(shoal, name))])
def test_every_parameter_of_a_public_function_is_described(name):
    assert undescribed(getattr(shoal, name)) == []


def test_a_parameter_without_a_description_is_detected():
    def function(a, b):
        """Do it.

        Parameters
        ----------
        a
            The first.
        """

    assert undescribed(function) == ["b"]


def test_every_parameter_of_a_masking_is_on_its_page():
    page = reference.parameter_page()
    for item in parameters():
        assert f"| `{item.name}` |" in page
        assert reference.cell(help_of(item, lambda other: f"`{other.name}`")) in page
        for flag in item.metadata["flags"]:
            assert f"`{flag}`" in page


def test_every_command_and_option_is_on_its_page_with_an_example():
    page, commands = reference.command_page(), reference.commands()
    assert set(commands) == {"inspect", "mask", "publish", "assess", "compare", "methods", "demo", "app"}
    sections = dict(re.findall(r"^## shoal \w+ \{#(\w+)\}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    for name, command in commands.items():
        shown = re.findall(r"^\s*Example: (.*)$", command.help, re.MULTILINE)
        assert shown, f"shoal {name} --help shows no example"
        for example in shown:
            assert f"\n{example}\n" in sections[name]
            assert shlex.split(example)[:2] == ["shoal", name]
            command.make_context(name, shlex.split(example)[2:])  # only parsed: the files are the reader's
        for flag in (flag for part in command.params if part.param_type_name == "option" for flag in part.opts):
            assert f"`{flag}`" in sections[name]


def test_every_method_is_explained_and_drawn():
    page, listed = (DOCS / "explanations" / "methods.md").read_text(encoding="utf-8"), reference.method_page()
    for method in shoal.methods():
        assert f"### `{method.name}`" in page
        assert (DOCS / "pictures" / f"method-{method.name}.svg").exists()
        section = listed.partition(f"\n## {method.name}\n")[2].split("\n## ")[0]
        assert all(f"`{option.name}`" in section for option in method.options)


def test_every_module_is_on_the_page_of_modules():
    page, source = modules.module_page(), ROOT / "src" / "shoal"
    for path in source.rglob("*.py"):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "__main__"):
            assert f"`{name}`" in page
    assert re.search(r"^\| \d+ \| `core` \| \S.* \|  \|$", page, re.MULTILINE), "core imports nothing"


def test_the_page_of_modules_shows_layers_purposes_and_imports(tmp_path):
    layers = '[[tool.importlinter.contracts]]\nlayers = ["shoal.upper : shoal.alone", "shoal.core"]\n'
    (tmp_path / "pyproject.toml").write_text(layers)
    sources = {
        "upper/__init__.py": '"""The upper | package."""\ndef work():\n    import shoal.core\n',
        "upper/part.py": '"""One part.\n\nMore."""\nif TYPE_CHECKING:\n    import shoal.alone\nwork = 1\n',
        "alone.py": '"""A module."""\nimport numpy\n',
        "core/__init__.py": '"""The core."""\n',
    }
    for name, text in sources.items():
        path = tmp_path / "src" / "shoal" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    page = modules.module_page(tmp_path)
    assert "| 1 | `upper` | The upper \\| package. | `core` |\n| 1 | `alone` | A module. |  |\n| 2 | `core`" in page
    assert page.endswith("## upper\n\n- `upper.part`: One part.\n")


def test_every_page_and_example_is_in_the_menu():
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert [page for page in pages if f" {page}\n" not in NAV] == []
    programs = {path.stem for path in (ROOT / "examples").glob("*.py") if not path.stem.startswith("_")}
    assert programs == set(examples.ORDER)
    assert all(f"examples/{stem}.md" in NAV for stem in programs)


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "examples/README.md"]
)
def test_links_between_files_have_targets(name):
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (ROOT / name).parent.joinpath(link).exists()] == []


def test_the_contributor_guide_is_short_and_the_files_it_names_exist():
    guide = ROOT / "CONTRIBUTING.md"
    assert guide.stat().st_size <= 8192
    pages = [guide, *(page for page in (DOCS / "dev").rglob("*.md") if page.name != "promise.md")]
    for page in pages:
        named = re.findall(r"`((?:\w+/)*\w+\.(?:py|toml|yml|md|cff)|(?:\w+/)+)`", page.read_text(encoding="utf-8"))
        assert named or page.parent.name == "decisions"
        for path in named:
            there = any((folder / path).exists() for folder in (ROOT, ROOT / "src" / "shoal"))
            assert there or "NAME" in path, f"{page.name} names {path}"


def test_every_decision_is_listed():
    folder = DOCS / "dev" / "decisions"
    listed = (folder / "index.md").read_text(encoding="utf-8")
    names = [path.name for path in sorted(folder.glob("0*.md"))]
    assert re.findall(r"\((0.*?)\)", listed) == names
    for number, name in enumerate(names, 1):
        text = (folder / name).read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. ")
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]


def test_the_readme_describes_shoal_within_two_screens():
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Read on")[0]
    assert len(text.splitlines()) <= 100
    assert len(re.findall(r"^!\[", text, re.MULTILINE)) == 2


def test_the_oldest_versions_are_those_of_the_project():
    floors = load("floors", ROOT / "tests").floors
    text = """[project]
dependencies = ["numpy>=1.26", "typer>=0.15,<0.29"]
[project.optional-dependencies]
dask = ["dask[dataframe,distributed]>=2024.12"]
dev = ["pytest>=8.0", "shoal[dask]"]
"""
    assert floors(text) == ["numpy==1.26", "typer==0.15", "dask==2024.12", "pytest==8.0"]
    assert len(floors((ROOT / "pyproject.toml").read_text())) > 15


def test_cells_of_an_example():
    text = "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 1\n\nprint(x)\n"
    assert examples.read_cells(text) == [
        examples.Cell("# Title\n\nWords.", markdown=True),
        examples.Cell("x = 1\n\nprint(x)", markdown=False),
    ]


@pytest.mark.parametrize("stem", examples.ORDER)
def test_example_runs_without_the_reference_tables(stem, monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    monkeypatch.delitem(sys.modules, "_tables", raising=False)
    made = examples.render(ROOT / "examples" / f"{stem}.py")
    page = made[f"{stem}.md"]
    assert any(Path(name).suffix == ".png" and content.startswith(b"\x89PNG") for name, content in made.items())
    assert all(f"({name})" in page for name in made if name.endswith(".png"))
    assert ("a generated table of" in page) == ("reference(" in page)


def run_example(stem, monkeypatch):
    """Run an example on its reference table; return its names."""
    reference_path({"noise": "census", "blocks": "eia"}[stem])  # skips if it is not available
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.delitem(sys.modules, "_tables", raising=False)
    with warnings.catch_warnings():
        return runpy.run_path(str(ROOT / "examples" / f"{stem}.py"))


def test_the_curves_of_noise_are_those_of_the_paper(monkeypatch):
    names = run_example("noise", monkeypatch)
    place = names["sizes"].index
    means = {name: [mean for mean, _ in curve] for name, curve in names["curves"].items()}
    # The means of 1,500 tables in benchmarks/RESULTS.md, truncated to the domain.
    assert means["MDAV_DP"][place(10)] == pytest.approx(1.722e12, rel=0.1)
    assert means["MDAV_IR_DP"][place(140)] == pytest.approx(6.178e10, rel=0.1)
    assert names["without"]["MDAV"][place(140)] == pytest.approx(7.737e10, rel=1e-3)
    assert names["without"]["MDAV_IR"][place(300)] == pytest.approx(6.886e10, rel=1e-3)
    assert means["OPT_DP"][0] < min(means["MDAV_DP"] + means["MDAV_IR_DP"])
    assert names["without"]["MDAV_IR"][0] < means["OPT_DP"][0]


def test_blocks_reproduce_the_paper(monkeypatch, capsys):
    names = run_example("blocks", monkeypatch)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if re.match(r" *\d+ +[35] ", line)]
    assert len(rows) == 4
    for _, _, column, paper_column, tree, paper_tree, _ in rows:
        assert float(column) == pytest.approx(float(paper_column), rel=0.025)
        assert float(tree) == pytest.approx(float(paper_tree), rel=0.04)
    intervals, tree, one = names["ratios"].values()
    assert all(a > b >= c for a, b, c in zip(intervals, tree, one, strict=True))


def test_the_version_that_is_cited_is_this_one():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {shoal.__version__}\n" in cited
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] in cited


@pytest.mark.parametrize(("typed", "offered"), [("shoal ma", "mask"), ("shoal mask --clos", "--closeness")])
def test_shells_complete_commands_and_options(typed, offered):
    asked = {"_SHOAL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    assert CliRunner().invoke(app, env=asked, prog_name="shoal").output.split() == [offered]
