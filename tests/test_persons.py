"""The examples of docs/persons.md, from the inspection to the report: what the page promises is true of the files."""

import re
import shlex
import shutil
from collections import Counter

import polars as pl
import pytest
from conftest import ROOT, reference_path
from typer.testing import CliRunner

from shoal.cli import app

PAGE = ROOT / "docs" / "persons.md"
ADULT = ["age", "workclass", "education-num", "marital-status", "occupation", "race", "sex", "native-country"]
HOUSEHOLD = ["urbrur", "roof", "walls", "water", "electcon", "sex", "age", "hhcivil"]
COVID = [
    "gender", "pan_day", "test_id", "clinic_name", "demo_group", "age", "drive_thru_ind", "orderset", "payor_group",
    "patient_class",
]  # fmt: skip


def run(name, folder, monkeypatch):
    """Run the commands of a section; return the table before and after, and the words of the page."""
    shutil.copy(reference_path(name), folder / f"{name}.csv")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        "shoal.comparison.around.MOST_RECORDS", 0
    )  # maps of the report take longest and are tested elsewhere
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {name}:")[1].split("\n## ")[0]
    lines = [line for text in re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL) for line in text.splitlines()]
    assert len(lines) >= 2
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "shoal"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (line, done.output)
    before, after = (pl.read_csv(f"{path}.csv", infer_schema_length=None) for path in (name, f"{name}-masked"))
    return before, after, re.sub(r"<[^>]*>", " ", (folder / f"{name}.html").read_text(encoding="utf-8"))


def stated(pattern):
    """Return the number that the page gives, line breaks aside."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    return int(re.search(pattern, page)[1].replace(",", ""))


@pytest.mark.skipif(not PAGE.exists(), reason="not run from a checkout")
class TestPersons:
    def test_adult(self, tmp_path, monkeypatch):
        before, after, page = run("adult", tmp_path, monkeypatch)
        assert (before.group_by(ADULT).len()["len"] == 1).sum() == 14_021
        assert after.group_by(ADULT).len()["len"].min() >= 5
        assert after.columns == [name for name in before.columns if name in (*ADULT, "Salary")]
        assert after["Salary"].equals(before["Salary"])
        assert "By what an outsider can know (the masked columns), 0 of 30,162 records can be singled out" in page
        alike = after.group_by(ADULT).agg(pl.col("Salary").n_unique() == 1)["Salary"].mean()
        assert 100 * alike == pytest.approx(stated(r"In about (\d+) % of the groups all persons"), abs=5)

    def test_households(self, tmp_path, monkeypatch):
        before, after, page = run("testdata", tmp_path, monkeypatch)
        counted = after.group_by(HOUSEHOLD).agg(pl.col("ori_hid").n_unique().alias("households"))
        assert counted["households"].min() >= 5
        assert sorted(after["ori_hid"].unique()) == list(range(1, 1001))
        sizes = [frame.group_by("ori_hid").len()["len"].sort() for frame in (before, after)]
        assert sizes[0].equals(sizes[1])
        assert not after["income"].equals(before["income"])  # the records are in random order
        assert sorted(after["income"]) == sorted(before["income"])
        assert "links the records of each ori_hid" in page
        assert after.columns == [name for name in before.columns if name not in ("relat", "household_weights")]
        units = after.group_by("ori_hid").agg(pl.struct(HOUSEHOLD).sort()).get_column(HOUSEHOLD[0]).to_list()
        alone = sum(count == 1 for count in Counter(map(repr, units)).values())
        assert stated(r"Most of the ([\d,]+) households") == len(units) < 2 * alone

    def test_covid(self, tmp_path, monkeypatch):
        before, after, page = run("covid_testing", tmp_path, monkeypatch)
        kept = before[(pl.read_csv("covid_testing-labels.csv")["record"] - 1).to_list()]
        assert len(before) - len(after) == 10
        counted = after.with_columns(kept["subject_id"]).group_by(COVID).agg(pl.col("subject_id").n_unique().alias("n"))
        assert counted["n"].min() >= 5
        text = (tmp_path / "covid_testing-masked.csv").read_text(encoding="utf-8")
        assert not {"fake_first_name", "fake_last_name", "subject_id"} & set(after.columns)
        assert not any(name in text for name in before["fake_last_name"].unique())
        assert after["result"].equals(kept["result"])
        assert all(name in page for name in ("result", "ct_result", "10 records"))
        groups = after.group_by(COVID).agg(pl.len(), pl.col("result").unique().alias("results"))
        alike = groups.filter(pl.col("results").list.len() == 1)
        share = stated(r"About (\d+) % of the records are in groups that share one result")
        assert 100 * alike["len"].sum() / len(after) == pytest.approx(share, abs=5)
        negative, positive = (
            alike.filter(pl.col("results").list.contains(value)) for value in ("negative", "positive")
        )
        assert 0 < len(positive) < 0.01 * len(negative)
