"""Every command and every block of Python on the pages of docs/ and in the README runs, in order, on the demo table."""

import re
import shlex

import numpy as np
import pytest
from conftest import ROOT, command
from sklearn.isotonic import IsotonicRegression

import shoal
from shoal import demo
from shoal.demo import firms

DOCS = ROOT / "docs"
# tests/test_persons.py runs the first on its tables, tests/test_models.py the second in a copy of the package; the
# others: below
OWN_TEST = {"persons.md", "promise.md", "steward.md", "repeat.md"}
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if path.name not in OWN_TEST)
SET_UP = ("make", "pip")  # programs that set up a machine
NOT_RUN = ("text", "r")  # an R block states why it is not run
SERVERS = ("app",)  # commands that end when the reader ends them: tests/test_app.py


def small_firms(n=800, seed=20):
    """A smaller demo table: the commands do not depend on its size."""
    return firms(min(n, 800), seed)


def commands_of(language, text):
    """Return the commands of a block; in a console their output is left out."""
    lines = text.replace("\\\n", " ").splitlines()
    lines = [line[2:] for line in lines if line.startswith("$ ")] if language == "console" else lines
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def run(path):
    """Run all blocks of a page, and return how many."""
    blocks = re.findall(
        r"(<!-- not run:.*-->\n)?^```(\w*)\n(.*?)^```$", path.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    for marked, language, text in blocks:
        if language in NOT_RUN:
            assert marked or language != "r", f"{path}: a block of R says why it is not run"
        elif language == "python":
            exec(compile(text, path.name, "exec"), {"__name__": path.name})
        else:
            assert language in {"sh", "console"}, f"{path}: a block of {language!r}"
            for program, *words in commands_of(language, text):
                if program in SET_UP or (program == "shoal" and words[0] in SERVERS):
                    continue
                assert program == "shoal", (path, program)
                # Methods that search take all the time they are given, for every k.
                done = command(*words, *(["--time", "0.3"] if words[0] == "compare" else []))
                assert done.returncode == 0, (path, words, done.stderr)
    return len(blocks)


def printed(path):
    """Run the commands of a page that mask; return what they print, and the lines that the page says they print."""
    output, lines = [], []
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        if language == "text":
            lines += [line for line in text.splitlines() if line.strip(" …")]
        elif language == "sh":
            output += [
                command(*words).stdout
                for program, *words in commands_of(language, text)
                if program == "shoal" and words[0] in ("demo", "mask")
            ]
    return "".join(output).splitlines(), lines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with the demo table in which a page runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "firms", small_firms)
    monkeypatch.setattr("shoal.comparison.around.MOST_RECORDS", 0)  # maps of reports have their own tests
    (tmp_path / "demo").mkdir()
    for path in ("firms.csv", "demo/firms.csv"):
        small_firms().write_csv(tmp_path / path)
    return tmp_path


@pytest.mark.skipif(not PAGES, reason="not run from a checkout")
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, folder):
    run(DOCS / page)


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="not run from a checkout")
def test_readme_runs(folder):
    assert run(ROOT / "README.md") >= 3
    assert (folder / "firms-report.html").exists()


@pytest.mark.skipif(not PAGES, reason="not run from a checkout")
@pytest.mark.parametrize("page", ["README.md", "docs/start.md", "docs/tutorials/steward.md"])
def test_pages_show_what_their_commands_print(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shoal.comparison.around.MOST_RECORDS", 0)  # maps of reports have their own tests
    (tmp_path / "demo").mkdir()
    for path in ("firms.csv", "demo/firms.csv"):
        firms().write_csv(tmp_path / path)
    output, lines = printed(ROOT / page)
    assert lines
    for line in lines:
        assert any(other == line or ("…" in line and other.startswith(line.split("…")[0])) for other in output), line


@pytest.mark.skipif(not PAGES, reason="not run from a checkout")
def test_the_order_of_records_discloses_as_much_as_the_page_on_protection_states():
    page = " ".join((DOCS / "explanations" / "protection.md").read_text("utf-8").split())
    before, after = re.search(r"a firm's sales falls from ([\d.]+) to ([\d.]+) %", page).groups()
    table = firms().sort("sales")
    sales = table["sales"].to_numpy()
    masked = shoal.mask(table, 5, columns=["employees", "sales", "wages", "assets"]).data["sales"].to_numpy()
    smooth = IsotonicRegression().fit_transform(np.arange(len(masked)), masked)
    for values, figure in ((masked, before), (smooth, after)):
        assert 100 * np.median(abs(values - sales) / sales) == pytest.approx(float(figure), abs=0.1)


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="not run from a checkout")
def test_the_readme_shows_how_to_try_and_how_to_test():
    section = (ROOT / "README.md").read_text("utf-8").split("\n## Try it\n")[1].split("\n## ")[0]
    assert {"make demo", "make test"} <= {" ".join(line.split()[:2]) for line in section.splitlines()}


@pytest.mark.skipif(not PAGES, reason="not run from a checkout")
def test_the_steward_has_the_files_for_the_board_and_can_repeat_the_run(folder):
    assert run(DOCS / "tutorials" / "steward.md") >= 6
    names = {path.name for path in (folder / "demo").iterdir()}
    assert {"masked.csv", "labels.csv", "manifest.json", "report.html", "comparison.html"} <= names
    run(DOCS / "how-to" / "repeat.md")
    assert (folder / "demo" / "again.csv").read_bytes() == (folder / "demo" / "masked.csv").read_bytes()
