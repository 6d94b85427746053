"""Lists and patterns of columns: on the command line, for folders, and in `assess`."""

import polars as pl
import pytest
from conftest import command

import shoal
from shoal.core.errors import InputError
from shoal.demo import firms

pytestmark = pytest.mark.usefixtures("one_template")


@pytest.mark.parametrize("limits", [(), ("--memory", "2GB")])
def test_lists_name_columns_of_a_folder(tmp_path, monkeypatch, limits):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    for i in range(2):
        firms(100, seed=i).write_parquet(f"parts/{i}.parquet")
    done = command("mask", "parts", "-k", 5, "-c", "sales,wag*", "--by", "region", "-o", "out.parquet", *limits)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet("out.parquet").columns == ["region", "sales", "wages"]


def test_lists_leave_the_checks_of_a_file_as_they_are(tmp_path, monkeypatch):
    """Lists on the command line opened the file without the check for a missing header."""
    monkeypatch.chdir(tmp_path)
    firms(100).select("employees", "sales", "assets").write_csv("in.csv", include_header=False)
    names = (tmp_path / "in.csv").read_text().partition("\n")[0].split(",")
    for columns in (["-c", ",".join(names[:2])], ["-c", names[0], "-c", names[1]]):
        done = command("mask", "in.csv", "-k", 5, *columns, "-o", "out.csv")
        assert done.returncode == 1
        assert "seems to have no header line" in done.stderr
        assert not (tmp_path / "out.csv").exists()


def test_assess_takes_lists_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = firms(200)
    table.write_csv("in.csv")
    release = shoal.mask(table, 5, columns=["sales", "wages"], by=["region"], keep=["sector"], confidential="profit")
    release.data.write_csv("out.csv")
    named = command(
        "assess", "in.csv", "out.csv", "-k", 5, "-c", "sales,wages", "--by", "reg*", "--confidential", "prof?t"
    )
    assert named.returncode == 0, named.stderr
    assert "every combination of sales, wages within region is shared by at least 5 records" in named.stdout
    lists = {"columns": "sales,wages", "by": "region", "confidential": "profit", "measures": "special-uniques"}
    risk = shoal.assess(table, release.data, **lists, keys="region,sector").risk
    assert (
        risk.special_uniques
        == shoal.assess(table, release.data, **lists, keys=["region", "sector"]).risk.special_uniques
    )
    with pytest.raises(InputError, match="'by' names 'q_\\*', which matches no column"):
        shoal.assess(table, release.data, by="q_*")
