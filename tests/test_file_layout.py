"""Files with titles above the header, without a header, or with several sheets."""

import inspect

import polars as pl
import pytest
from conftest import command

import shoal
from shoal.assessment.assess_request import AssessRequest
from shoal.comparison.compare_request import CompareRequest
from shoal.core.errors import FileError, InputError
from shoal.core.parameters import parameters_of, with_parameters_of
from shoal.masking.request import MaskRequest
from shoal.privacy.publish_request import PublishRequest
from shoal.tables.files import read_table
from shoal.tables.reading import ReadingOptions

NAMES = "name;age;pay"
RECORDS = [f"p{i};{20 + i};{1000 + 7 * i}" for i in range(30)]
TITLES = ["Firms of 2020", "", "Source: register; as of May"]
ASKED = {"columns": ["age", "pay"], "rest": "drop"}


def lines(path, *parts):
    path.write_text("".join(f"{line}\n" for part in parts for line in part))
    return path


def sheet(path, *parts):
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra shoal[excel] is not installed")
    with xlsxwriter.Workbook(path) as book:
        page = book.add_worksheet()
        for place, line in enumerate(line for part in parts for line in part):
            page.write_row(place, 0, [int(cell) if cell.isdigit() else cell for cell in line.split(";") if cell])
    return path


WRITERS = pytest.mark.parametrize(("write", "ending"), [(lines, ".csv"), (sheet, ".xlsx")])


@WRITERS
def test_lines_above_the_header_are_skipped(tmp_path, write, ending):
    plain, titled = tmp_path / f"plain{ending}", tmp_path / f"titled{ending}"
    write(plain, [NAMES], RECORDS)
    write(titled, TITLES, [NAMES], RECORDS)
    table = read_table(titled, reading=ReadingOptions(skip_rows=3))
    assert table.names == ["name", "age", "pay"]
    assert table.keys(table.names).equals(read_table(plain).keys(table.names))
    release = shoal.mask(titled, 5, skip_rows=3, output=tmp_path / f"out{ending}", **ASKED)
    assert release.loss == shoal.mask(plain, 5, **ASKED).loss
    assert read_table(tmp_path / f"out{ending}").names == ["age", "pay"]


@WRITERS
@pytest.mark.parametrize("titles", [[], TITLES])
def test_a_file_without_a_header_has_numbered_columns(tmp_path, write, ending, titles):
    path = write(tmp_path / f"in{ending}", titles, RECORDS)
    out = tmp_path / "out.csv"
    shoal.mask(path, 5, columns=["column_2"], keep=["column_1"], no_header=True, skip_rows=len(titles), output=out)
    released = read_table(out)
    assert released.names == ["column_1", "column_2"]
    assert released.rows == 30
    assert released.keys(["column_1"]).to_series().to_list() == [f"p{i}" for i in range(30)]


@pytest.mark.parametrize(
    ("titles", "line"),
    [(["Firms of 2020"], 2), (TITLES, 4), (["Firms of 2020;;"], 2), (["Firms", ""], 3), (["Firms, banks, shops"], 2)],
)
def test_titles_are_refused_with_the_line_of_the_header_and_the_remedy(tmp_path, titles, line):
    lines(tmp_path / "in.csv", titles, [NAMES], RECORDS)
    with pytest.raises(FileError, match=rf"header in line {line}, below .*skip_rows={line - 1}, or remove"):
        shoal.mask(tmp_path / "in.csv", 5, **ASKED)
    done = command("mask", "in.csv", "-k", 5, "-c", "age", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert f"Use --skip-rows {line - 1}, " in done.stderr
    done = command("mask", "in.csv", "-k", 5, "-c", "age", "-o", "out.csv", "--skip-rows", line - 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "content",
    [
        "note\nhello, you\nthere\n",
        "a;b;c\n1;2;3\n4;5;6\n",
        "a\n1\n2\n",
        ";a\n0;x\n1;y\n",
        '"a\nb";c\nx;y\nz;w\n',
        "name;city\nAnn;Rome\nBob;Oslo\n",
    ],
)
def test_tables_are_not_mistaken_for_titles(tmp_path, content):
    (tmp_path / "in.csv").write_text(content)
    try:
        read_table(tmp_path / "in.csv")
    except FileError as error:
        assert "skip_rows" not in str(error)  # noqa: PT017


def test_the_remedy_of_a_file_without_a_header_runs(tmp_path):
    lines(tmp_path / "in.csv", ["Firms"], RECORDS)
    done = command("mask", "in.csv", "-k", 5, "-o", "out.csv", "--skip-rows", 1, cwd=tmp_path)
    assert "in line 2, column 2 looks like the cells below it. " in done.stderr
    assert "use --no-header to call them column_1" in done.stderr
    options = ["--skip-rows", 1, "--no-header"]
    done = command("mask", "in.csv", "-k", 5, "-c", "column_2", "-o", "out.csv", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_command_takes_the_layout(tmp_path):
    lines(tmp_path / "in.csv", TITLES, RECORDS)
    layout = ["--skip-rows", 3, "--no-header"]
    shown = command("inspect", "in.csv", *layout, cwd=tmp_path)
    assert "--skip-rows 3 --no-header" in shown.stdout
    keys = ["-c", "column_2", "-c", "column_3"]
    run = ["-k", 5, *keys, "-o", "out.csv", "--manifest", "run.json", "--report", "run.html"]
    done = command("mask", "in.csv", *run, *layout, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert command("mask", "--from-manifest", "run.json", cwd=tmp_path).returncode == 0
    done = command("assess", "in.csv", "out.csv", *keys, "-k", 5, *layout, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command("compare", "in.csv", "-k", 5, *keys, "-m", "mdav", *layout, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("engine", ["local", "dask"])
@pytest.mark.parametrize("layout", [{"skip_rows": 1}, {"no_header": True}])
def test_engines_that_read_in_parts_refuse_a_layout(tmp_path, engine, layout):
    lines(tmp_path / "in.csv", [NAMES], RECORDS)
    with pytest.raises(InputError, match=f"{next(iter(layout))}=.* requires engine='memory'"):
        shoal.mask(tmp_path / "in.csv", 5, engine=engine, output=tmp_path / "out.parquet", **ASKED, **layout)


@pytest.mark.parametrize(
    ("layout", "error", "words"),
    [
        ({"skip_rows": 31}, FileError, "has no records below skip_rows=31"),
        ({"skip_rows": -1}, InputError, "'skip_rows' must be a number of lines, 0 or more, got -1"),
        ({"skip_rows": "2"}, InputError, "'skip_rows' must be a number of lines, 0 or more, got '2'"),
    ],
)
def test_impossible_layouts_are_refused(tmp_path, layout, error, words):
    lines(tmp_path / "in.csv", [NAMES], RECORDS)
    with pytest.raises(error, match=words):
        shoal.mask(tmp_path / "in.csv", 5, **ASKED, **layout)


def test_a_frame_has_no_layout():
    with pytest.raises(InputError, match="'skip_rows' requires a CSV or Excel file, got 1"):
        shoal.mask(pl.DataFrame({"age": [1, 2]}), 2, columns=["age"], skip_rows=1)


@pytest.fixture
def workbook(tmp_path):
    """Return the path of a workbook of two sheets, whose numbers differ."""
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra shoal[excel] is not installed")
    path = tmp_path / "in.xlsx"
    with xlsxwriter.Workbook(path) as book:
        for place, name in enumerate(["Adults", "Children"]):
            page = book.add_worksheet(name)
            page.write_row(0, 0, ["age", "pay"])
            for row in range(30):
                page.write_row(row + 1, 0, [20 * (1 - place) + row, 1000 * (1 - place) + 7 * row])
    return path


def test_the_sheet_that_is_named_is_read(tmp_path, workbook):
    assert read_table(workbook).keys(["age"]).to_series()[0] == 20
    assert read_table(workbook, reading=ReadingOptions(sheet="Adults")).keys(["age"]).to_series()[0] == 20
    assert read_table(workbook, reading=ReadingOptions(sheet="Children")).keys(["age"]).to_series()[0] == 0
    release = shoal.mask(workbook, 5, sheet="Children", output=tmp_path / "out.csv", **ASKED)
    assert read_table(tmp_path / "out.csv").keys(["age"]).to_series().max() < 30
    assert not any("sheets" in note for note in release.notes)
    assert shoal.inspect(workbook, sheet="Children").asked["sheet"] == "Children"
    release.report(tmp_path / "out.html", original=workbook)  # refuses another table


def test_a_wrong_sheet_is_refused_with_the_names_of_all(workbook):
    with pytest.raises(
        InputError, match=r"no sheet 'Child'. Did you mean 'Children'\? Its sheets are .*Adults.*Children"
    ):
        shoal.mask(workbook, 5, sheet="Child", **ASKED)


def test_a_note_reports_other_sheets(tmp_path, workbook):
    assert any("has 2 sheets" in note and "'sheet'" in note for note in shoal.mask(workbook, 5, **ASKED).notes)
    done = command("mask", workbook, "-k", 5, "-c", "age", "-c", "pay", "-o", tmp_path / "out.csv")
    assert "the file has 2 sheets, and only the first was read; --sheet names another" in done.stdout


def test_every_command_takes_a_sheet(tmp_path, workbook):
    sheet, keys = ["--sheet", "Children"], ["-c", "age", "-c", "pay"]
    assert "--sheet Children" in command("inspect", workbook, *sheet).stdout
    run = ["-k", 5, *keys, "-o", "out.csv", "--manifest", "run.json", "--report", "run.html"]
    done = command("mask", "in.xlsx", *run, *sheet, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert command("mask", "--from-manifest", "run.json", cwd=tmp_path).returncode == 0
    done = command("assess", "in.xlsx", "out.csv", *keys, "-k", 5, *sheet, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command("compare", "in.xlsx", "-k", 5, *keys, "-m", "mdav", *sheet, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_csv_file_has_no_sheets(tmp_path):
    lines(tmp_path / "in.csv", [NAMES], RECORDS)
    with pytest.raises(InputError, match="'sheet' requires an Excel file, got 'One'"):
        shoal.mask(tmp_path / "in.csv", 5, sheet="One", **ASKED)


BOUNDS = {"age": (0, 100), "pay": (0, 5000)}


@pytest.mark.filterwarnings("ignore::shoal.core.errors.SeededNoiseWarning")
@WRITERS
@pytest.mark.parametrize("titles", [[], TITLES])
def test_a_publication_reads_what_is_below_titles(tmp_path, write, ending, titles):
    plain, titled = write(tmp_path / f"a{ending}", [NAMES], RECORDS), write(tmp_path / f"b{ending}", titles, RECORDS)
    expected = shoal.publish(plain, 1.0, bounds=BOUNDS, seed=0).data
    bounds = {"column_2": BOUNDS["age"], "column_3": BOUNDS["pay"]}
    layout = {"skip_rows": len(titles), "no_header": True}
    published = shoal.publish(titled, 1.0, bounds=bounds, seed=0, **layout).data
    assert published.rows() == expected.rows()
    flags = ["--skip-rows", len(titles), "--no-header", "-b", "column_2=0:100", "-b", "column_3=0:5000"]
    done = command("publish", titled, "-e", 1, *flags, "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    assert read_table(tmp_path / "out.csv").names == ["column_2", "column_3"]
    done = command("publish", titled, *flags, "--explore")
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore::shoal.core.errors.SeededNoiseWarning")
def test_a_publication_takes_a_sheet_of_an_excel_file_and_refuses_one_of_another(tmp_path, workbook):
    by_default = shoal.publish(workbook, 1.0, bounds=BOUNDS, seed=0).data
    first, second = (
        shoal.publish(workbook, 1.0, bounds=BOUNDS, seed=0, sheet=name).data for name in ("Adults", "Children")
    )
    assert by_default.equals(first)
    assert not first.equals(second)
    lines(tmp_path / "in.csv", [NAMES], RECORDS)
    for function, parameters in ((shoal.publish, {"epsilon": 1.0, "bounds": BOUNDS}), (shoal.compare, {"k": 5})):
        with pytest.raises(InputError, match="'sheet' requires an Excel file, got 'One'"):
            function(tmp_path / "in.csv", sheet="One", **parameters)


def test_all_commands_have_the_same_options_of_files():
    names = list(ReadingOptions().plain())
    for request in (MaskRequest, CompareRequest, AssessRequest, PublishRequest):
        items = {item.name: item for item in parameters_of(request)}
        assert [name for name in items if name in names] == names
        assert {name: items[name].metadata["flags"] for name in names} == {
            name: (f"--{name.replace('_', '-')}",) for name in names
        }
        signature = inspect.signature(with_parameters_of(request)(lambda data, **parameters: (data, parameters)))
        assert set(names) <= set(signature.parameters)
    assert set(names) <= set(inspect.signature(shoal.inspect).parameters)
