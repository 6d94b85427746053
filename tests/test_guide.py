"""Every command and every block of Python in the guide runs, in order, on the demo data."""

import re
import shlex

import pytest
from conftest import ROOT
from typer.testing import CliRunner

from shoal import demo
from shoal.cli import app
from shoal.demo import firms

GUIDE = ROOT / "docs" / "guide.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="not run from a checkout")
def test_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "firms", lambda: firms(800))  # what the commands do with it does not hang on its size
    blocks = re.findall(r"```(sh|python)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 8
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, GUIDE.name, "exec"), {})
            continue
        for line in text.splitlines():
            program, *words = shlex.split(line)
            assert program == "shoal"
            # Methods that search take all the time they are given, for every k.
            done = CliRunner().invoke(app, [*words, *(["--time-limit", "1"] if words[0] == "compare" else [])])
            assert done.exit_code == 0, (line, done.output)
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"masked.csv", "labels.csv", "manifest.json", "report.html", "comparison.html", "again.html"} <= names
    assert (tmp_path / "demo" / "again.csv").read_bytes() == (tmp_path / "demo" / "masked.csv").read_bytes()
