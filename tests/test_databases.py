"""Tables of databases: SQLite, DuckDB and a PostgreSQL server of this machine."""

import json
import logging
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from conftest import command

import shoal
from shoal.core.errors import FileError, InputError
from shoal.tables.databases import PASSWORD, is_database, read_database, without_password
from shoal.tables.files import read_table

sqlite_driver = pytest.importorskip("adbc_driver_sqlite", reason="the extra shoal[sql] is not installed")
postgresql_driver = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra shoal[sql] is not installed")

SECRET = "s3cret/p@ss:w"  # characters that usually end a part of an address
ENCODED = "s3cret%2Fp%40ss%3Aw"
ROLES = {"columns": ["age", "pay", "cost", "job"], "by": "region", "rest": "drop"}
ASSESSED = ["--by", "region", "--nominal", "job"]
OPTIONS = ["-c", "age,pay,cost,job", "--by", "region", "--rest", "drop"]


def records(count=240):
    """Return the records of a table with missing values, and decimals that are whole at first."""
    draw = random.Random(3)
    return [
        {
            "id": i,
            "age": None if i % 9 == 0 else draw.randint(18, 90),
            "pay": draw.randint(4000, 36000) / 4,
            "cost": Decimal(draw.randint(100, 99900)) / 100 if i > 150 else Decimal(draw.randint(1, 999)),
            "job": draw.choice(["nurse", "cook", "driver"]),
            "born": date(1950 + i % 40, 1 + i % 12, 1 + i % 28),
            "region": "ab"[i % 2],
            "year": 2023 + i // 120,
        }
        for i in range(count)
    ]


FRAME = pl.DataFrame(records(), schema_overrides={"cost": pl.Decimal(10, 2)})


@pytest.fixture
def people(tmp_path):
    """Return the address of an SQLite database with the table of `records`."""
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as database:
        types = "id INTEGER, age INTEGER, pay REAL, cost DECIMAL(10, 2), job TEXT, born DATE, region TEXT, year INTEGER"
        database.execute(f"CREATE TABLE people ({types})")
        rows = [tuple(float(v) if isinstance(v, Decimal) else v for v in record.values()) for record in records()]
        rows = [tuple(v.isoformat() if isinstance(v, date) else v for v in row) for row in rows]
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    database.close()
    return f"sqlite:///{path}"


def execute(address, statement):
    with sqlite3.connect(address.removeprefix("sqlite:///")) as database:
        database.execute(statement)
    database.close()


def test_values_of_sqlite_are_read_as_they_are(people):
    frame = read_database(people, "people")
    assert frame.schema == {
        "id": pl.Int64, "age": pl.Int64, "pay": pl.Float64, "cost": pl.Float64, "job": pl.String, "born": pl.String,
        "region": pl.String, "year": pl.Int64,
    }  # fmt: skip
    for name in ("id", "age", "pay", "job", "region", "year"):
        assert frame[name].to_list() == FRAME[name].to_list()
    assert frame["cost"].to_list() == FRAME["cost"].cast(pl.Float64).to_list()
    assert frame["born"].str.to_date().to_list() == FRAME["born"].to_list()


def test_types_of_sqlite_follow_from_all_values_not_the_first(people):
    execute(people, "CREATE TABLE late (amount NUMERIC, code INTEGER)")
    numbers = ", ".join(f"({i}, {i})" for i in range(3000))
    execute(people, f"INSERT INTO late VALUES {numbers}, (0.5, 'n/a'), (NULL, NULL)")
    late = read_database(people, "late")
    assert late["amount"].to_list()[-3:] == [2999.0, 0.5, None]
    assert late["code"].to_list()[-3:] == ["2999", "n/a", None]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx", ".jsonl"])
def test_a_release_is_that_of_the_same_table_in_a_file(people, tmp_path, ending):
    if ending == ".xlsx":
        pytest.importorskip("xlsxwriter", reason="the extra shoal[excel] is not installed")
    done = command("mask", people, "--query", "people", "-k", 5, *OPTIONS, "-o", tmp_path / f"sql{ending}")
    assert done.returncode == 0, done.stderr
    FRAME.with_columns(pl.col("cost").cast(pl.Float64)).write_parquet(tmp_path / "in.parquet")
    shoal.mask(tmp_path / "in.parquet", 5, output=tmp_path / f"file{ending}", **ROLES)
    released, expected = (read_table(tmp_path / f"{name}{ending}") for name in ("sql", "file"))
    assert released.names == expected.names == ["age", "pay", "cost", "job", "region"]
    assert released.keys(released.names).equals(expected.keys(expected.names))


def test_a_query_selects_records_and_columns(people):
    query = "SELECT age, pay, region FROM people WHERE year = 2024;"
    release = shoal.mask(people, 5, columns=["age", "pay"], by="region", query=query)
    expected = shoal.mask(
        FRAME.filter(year=2024).select("age", "pay", "region"), 5, columns=["age", "pay"], by="region"
    )
    assert release.data.equals(expected.data)
    assert release.parameters["query"] == query
    assert release.loss == expected.loss


def test_proposed_roles_and_the_proposed_command_work(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command("inspect", people, "--query", "people", "-o", "people.roles.toml")
    line = next(line for line in done.stdout.splitlines() if line.startswith("shoal mask "))
    assert "--query people" in line
    again = command(*line.split()[1:])
    assert again.returncode == 0, again.stderr
    assert pl.read_parquet("masked.parquet").columns == ["age", "pay", "cost", "job", "born", "region", "year"]
    by_roles = command("mask", people, "--query", "people", "-k", 5, "--roles", "people.roles.toml", "-o", "roles.csv")
    assert by_roles.returncode == 0, by_roles.stderr


def test_compare_and_assess_read_databases(people, tmp_path):
    compared = command("compare", people, "--query", "people", "-k", 5, "-m", "mdav", *OPTIONS[:4])
    assert "mdav" in compared.stdout, compared.stderr
    shoal.mask(people, 5, query="people", output=tmp_path / "out.csv", **ROLES)
    assessed = command("assess", people, tmp_path / "out.csv", "--query", "people", "-k", 5, *ASSESSED)
    assert assessed.returncode == 0, assessed.stderr
    in_python = shoal.assess(people, FRAME.with_columns(pay=pl.lit(4000.0)), query="people", columns="pay")
    assert in_python.risk.anonymity.k == len(FRAME)


def test_absolute_paths_have_four_slashes_and_relative_ones_three(people, monkeypatch):
    path = Path(people.removeprefix("sqlite:///"))
    monkeypatch.chdir(path.parent)
    for address in ("sqlite:///people.db", f"sqlite:///{path}", "SQLite:///people.db"):
        assert len(read_database(address, "people")) == len(FRAME)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("absent", "no such table: absent"),
        ("SELEC 1", "syntax error"),
        ("SELECT 1 AS a, 2 AS a", "'a' appears more than once"),
        ("DELETE FROM people", "readonly"),
        ("DROP TABLE people", "readonly"),
        (" ", "parameter 'query' is required"),
        (None, "parameter 'query' is required"),
    ],
)
def test_a_query_without_a_result_is_refused_in_one_line(people, query, reason):
    with pytest.raises((FileError, InputError), match=f"(?i){reason}") as refused:
        shoal.mask(people, 5, query=query)
    assert "\n" not in str(refused.value)
    assert len(read_database(people, "people")) == len(FRAME)


def test_options_that_databases_do_not_support_are_refused_by_name(people, tmp_path):
    out = tmp_path / "out.parquet"
    for setting in ({"engine": "local"}, {"memory": "1GB"}, {"engine": "dask"}, {"engine": "spark"}):
        with pytest.raises(InputError, match=rf"{next(iter(setting))}=.*export a larger table to a Parquet file"):
            shoal.mask(people, 5, query="people", output=out, **setting)
    for setting in ({"delimiter": ";"}, {"skip_rows": 2}, {"sheet": "people"}):
        with pytest.raises(InputError, match=rf"'{next(iter(setting))}' requires"):
            shoal.mask(people, 5, query="people", **setting)
    (tmp_path / "in.csv").write_text("age\n" + "1\n2\n" * 9)
    for data in (tmp_path / "in.csv", FRAME):
        with pytest.raises(InputError, match="'query' requires the address of a database"):
            shoal.mask(data, 5, query="people")
    with pytest.raises(InputError, match="'query' requires the address of a database"):
        shoal.assess(tmp_path / "in.csv", tmp_path / "in.csv", query="people")
    with pytest.raises(InputError, match="must be text, not a Path"):
        shoal.mask(Path(people), 5, query="people")
    with pytest.raises(InputError, match="is a database, but shoal writes only files"):
        shoal.mask(FRAME, 5, output=people)
    with pytest.raises(FileError, match=r"file absent\.db does not exist"):
        shoal.mask("sqlite:///absent.db", 5, query="people")
    assert not Path("absent.db").exists()
    (tmp_path / "text.db").write_text("age,pay\n1,2\n")
    with pytest.raises(FileError, match=r"text\.db cannot be read: .*not a database"):
        shoal.mask(f"sqlite:///{tmp_path}/text.db", 5, query="people")


@pytest.mark.parametrize("arguments", [("app",), ("publish", "--epsilon", 1, "--bounds", "age=0:9", "-o", "out.csv")])
def test_commands_that_read_files_only_refuse_databases(arguments):
    done = command(arguments[0], f"postgresql://ann:{SECRET}@127.0.0.1:1/register", *arguments[1:])
    assert done.returncode == 1
    assert "Export the table" in done.stderr
    assert SECRET not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("address", "library", "extra"),
    [
        ("sqlite:///people.db", "adbc_driver_sqlite.dbapi", "sql"),
        ("postgresql://ann@127.0.0.1/register", "adbc_driver_postgresql.dbapi", "sql"),
        ("duckdb:///people.duckdb", "adbc_driver_duckdb", "duckdb"),
        ("mysql://ann@127.0.0.1/register", "adbc_driver_manager.dbapi", "sql"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(address, library, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(FileError, match=rf"needs the extra '{extra}': pip install 'shoal\[{extra}\]'"):
        shoal.mask(address, 5, query="SELECT * FROM people")


def test_a_missing_driver_is_named():
    with pytest.raises(FileError, match=r"requires the ADBC driver 'mssql'.*dbc install mssql") as refused:
        shoal.mask(f"sqlserver://ann:{ENCODED}@127.0.0.1/register", 5, query="people")
    assert "ann:***@" in str(refused.value)


def test_an_installed_driver_is_used_and_its_errors_show_no_password(people, tmp_path, monkeypatch):
    # SQLite's driver instead of MySQL's: it takes the address as the name of a file, and its error shows that.
    library = next(Path(sqlite_driver.__file__).parent.glob("libadbc_driver_sqlite*"))
    (tmp_path / "mysql.toml").write_text(f'name = "stand-in"\nversion = "1"\n[Driver]\nshared = {str(library)!r}\n')
    monkeypatch.setenv("ADBC_DRIVER_PATH", str(tmp_path))
    with pytest.raises(FileError, match=r"Database mysql://ann:\*\*\*@127.* cannot be read: .*mysql://ann") as refused:
        shoal.mask(f"mysql://ann:{ENCODED}@127.0.0.1/register", 5, query="people")
    assert not password_in(str(refused.value))
    with pytest.raises(InputError, match="must begin with SELECT or WITH"):
        shoal.mask("mysql://ann@127.0.0.1/register", 5, query="DELETE FROM people")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://ann:a b\"c'd@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://ann:a/b?c=d@e@host/db", "postgresql://ann:***@host/db"),
        ("postgresql:/ann:secret@host/db", "postgresql:/ann:***@host/db"),
        ("postgresql://host/db?user=ann&password=a b&x=1", "postgresql://host/db?user=ann&password=***&x=1"),
        ("sqlserver://host;database=d;PWD=a", "sqlserver://host;database=d;PWD=***"),
        ("sqlite:////data/people.db", "sqlite:////data/people.db"),
    ],
)
def test_addresses_are_shown_without_passwords(address, shown):
    assert without_password(address) == shown
    assert is_database(address)
    assert not any(map(is_database, ("s3://ann:b@host/x.parquet", "sqlite.csv", "C:/people.csv", FRAME, None, "-")))


# Manifests


def test_a_run_is_repeated_from_its_manifest_if_the_database_is_named(people, tmp_path):
    manifest, query = tmp_path / "run.json", "SELECT * FROM people ORDER BY id"
    run = ["-k", 5, *OPTIONS, "-o", tmp_path / "out.csv", "--manifest", manifest]
    assert command("mask", people, "--query", query, *run).returncode == 0
    recorded = json.loads(manifest.read_text())
    assert recorded["input"]["path"] == people
    assert recorded["parameters"]["query"] == query
    repeat = ["--from-manifest", manifest, "-o", tmp_path / "again.csv"]
    for named in ([], [people], ["--query", query]):
        refused = command("mask", *named, *repeat)
        assert refused.returncode == 1
        assert f"such as {people} --query '{query}'" in refused.stderr
    done = command("mask", people, "--query", query, *repeat)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    execute(people, "UPDATE people SET pay = pay + 1 WHERE id = 7")
    changed = command("mask", people, "--query", query, *repeat)
    assert changed.returncode == 1
    assert "does not return the recorded table" in changed.stderr


def test_a_manifest_is_written_in_python(people, tmp_path):
    release = shoal.mask(people, 5, query="people", output=tmp_path / "out.csv", **ROLES)
    release.manifest(tmp_path / "run.json", source=people, output=tmp_path / "out.csv")
    done = command(
        "mask", people, "--query", "people", "--from-manifest", tmp_path / "run.json", "-o", tmp_path / "again.csv"
    )
    assert done.returncode == 0, done.stderr


def test_a_report_shows_neither_the_database_nor_the_query(people, tmp_path):
    query = "SELECT * FROM people WHERE job <> 'spy'"
    release = shoal.mask(people, 5, query=query, output=tmp_path / "out.csv", **ROLES)
    page = release.report(tmp_path / "report.html", original=people, output=tmp_path / "out.csv").read_text()
    assert "kept" in page
    assert not any(text in page for text in ("spy", "people.db", "sqlite"))


# DuckDB


def test_a_table_of_duckdb_is_masked_like_the_same_frame(tmp_path):
    duckdb = pytest.importorskip("adbc_driver_duckdb.dbapi", reason="the extra shoal[duckdb] is not installed")
    path = tmp_path / "people.duckdb"
    FRAME.write_parquet(tmp_path / "people.parquet")
    with duckdb.connect(str(path)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE people AS SELECT * FROM '{tmp_path / 'people.parquet'}'")
        cursor.execute("CREATE TABLE spans AS SELECT INTERVAL 1 DAY AS span")
        connection.commit()
    release = shoal.mask(f"duckdb:///{path}", 5, query="people", **ROLES)
    expected = shoal.mask(FRAME, 5, **ROLES)
    assert release.data.equals(expected.data)
    assert release.data.schema == expected.data.schema
    with pytest.raises(FileError, match="read-only"):
        read_database(f"duckdb:///{path}", "DELETE FROM people")
    with pytest.raises(InputError, match="Column 'span' of the database is of type 'interval'"):
        read_database(f"duckdb:///{path}", "spans")


# PostgreSQL


@pytest.fixture(scope="module")
def server():
    """Start a PostgreSQL server of this machine; return the address of its database without user and password."""
    programs = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), None]
    initdb = next((path for folder in programs if (path := shutil.which("initdb", path=folder))), None)
    if initdb is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # PostgreSQL does not run as root
    folder = Path(tempfile.mkdtemp(prefix="shoal-"))  # the path of a socket is short
    if user:
        shutil.chown(folder, "postgres")

    def run(program, *arguments):
        words = [*user, Path(initdb).with_name(program), "-D", folder / "data", *arguments]
        subprocess.run(list(map(str, words)), cwd=folder, stdout=subprocess.DEVNULL, check=True)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "password").write_text(SECRET)
    run("initdb", "-U", "ann", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync", "-E", "UTF8")
    settings = f"-F -p {port} -k {folder} -c listen_addresses=127.0.0.1 -c shared_buffers=1MB"
    run("pg_ctl", "-w", "-o", settings, "-l", folder / "log", "start")
    try:
        yield f"127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def register(server):
    """Return the address of a PostgreSQL database with a table of every type."""
    address = f"postgresql://ann:{ENCODED}@{server}"
    with postgresql_driver.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE people (id int, age smallint, pay double precision, cost numeric(10, 2), job varchar(9), "
            "born date, region char(1), year bigint)"
        )
        for record in records():
            values = ["NULL" if value is None else f"'{value}'" for value in record.values()]
            cursor.execute(f"INSERT INTO people VALUES ({', '.join(values)})")
        cursor.execute(
            "CREATE TABLE types AS SELECT 12.30::numeric AS exact, 'NaN'::numeric AS open, true AS yes, "
            "'2024-05-01 10:00'::timestamp AS seen, '10:30'::time AS at, '{\"a\": 1}'::jsonb AS note, "
            "ARRAY[1, 2] AS parts, '0b6b0a2e-7a39-4c0c-9a9e-0d0f6b8f1b11'::uuid AS key, 1.5::real AS short, "
            "NULL::numeric AS none"
        )
        connection.commit()
    return address


def test_types_of_postgresql_survive(register):
    frame = read_database(register, "public.people")
    assert frame.equals(FRAME.with_columns(pl.col("id").cast(pl.Int32), pl.col("age").cast(pl.Int16)))
    assert frame.schema["cost"] == pl.Decimal(38, 2)
    assert frame.schema["born"] == pl.Date
    row = read_database(register, "types").row(0, named=True)
    assert (row["exact"], row["yes"], row["seen"], row["short"]) == (
        Decimal("12.30"), True, datetime(2024, 5, 1, 10), 1.5,  # noqa: DTZ001
    )  # fmt: skip
    assert str(row["open"]) == "nan"
    assert row["none"] is None
    assert row["key"] == "0b6b0a2e-7a39-4c0c-9a9e-0d0f6b8f1b11"
    assert json.loads(row["note"]) == {"a": 1}
    assert row["parts"] == [1, 2]
    assert row["at"].isoformat() == "10:30:00"
    for cast in ("'1 day'::interval", "12.5::money"):
        with pytest.raises(InputError, match=r"Column 'x' of the database is of type '(interval|money)'"):
            read_database(register, f"SELECT {cast} AS x")


def test_a_release_from_postgresql_is_that_of_the_same_frame(register):
    release, expected = shoal.mask(register, 5, query="people", **ROLES), shoal.mask(FRAME, 5, **ROLES)
    assert release.loss == expected.loss
    assert release.data.equals(expected.data.cast({"age": pl.Int16}))


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM people",
        "DROP TABLE people",
        "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
        "SELECT 1; DELETE FROM people",
        "COMMIT",
    ],
)
def test_postgresql_is_only_read(register, query):
    with pytest.raises(FileError, match="cannot be read"):
        read_database(register, query)
    assert len(read_database(register, "people")) == len(FRAME)


def password_in(text):
    """Return whether a text shows the password, plain or encoded."""
    return SECRET in text or ENCODED in text


@pytest.mark.parametrize("written", [ENCODED, "***"])
def test_no_file_and_no_output_shows_the_password(server, register, tmp_path, written, monkeypatch, caplog):
    monkeypatch.setenv(PASSWORD, SECRET)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    address = f"postgresql://ann:{written}@{server}"
    run = ["-k", 5, *OPTIONS, "-o", "out.csv", "--labels", "labels.csv", "--report", "report.html"]
    outputs = [
        command("mask", address, "--query", "people", *run, "--manifest", "run.json", "-v"),
        command("mask", address, "--query", "people", "--from-manifest", "run.json", "-o", "again.csv"),
        command("inspect", address, "--query", "people", "-o", "people.roles.toml"),
        command("compare", address, "--query", "people", "-k", 5, "-m", "mdav", "--report", "comparison.html"),
        command("assess", address, "out.csv", "--query", "people", *ASSESSED, "--report", "assessment.html"),
    ]
    for done in outputs:
        assert done.returncode == 0, done.stderr
        assert not password_in(done.stdout + done.stderr)
    assert f"shoal mask 'postgresql://ann:***@{server}'" in outputs[2].stdout
    assert json.loads(Path("run.json").read_text())["input"]["path"] == f"postgresql://ann:***@{server}"
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [
        "again.csv", "assessment.html", "comparison.html", "labels.csv", "out.csv", "people.roles.toml", "report.html",
        "run.json",
    ]  # fmt: skip
    assert not any(password_in(Path(name).read_text()) for name in files)
    assert not password_in(caplog.text)


def test_an_interrupt_cancels_the_query(register, tmp_path):
    if os.name != "posix":
        pytest.skip("signals are sent on POSIX systems only")
    words = ["mask", register, "--query", "SELECT pg_sleep(3600)", "-k", "5", "-o", str(tmp_path / "out.csv")]
    process = subprocess.Popen([sys.executable, "-m", "shoal", *words], stderr=subprocess.PIPE, text=True)
    running = "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(3600%'"
    while read_database(register, running)["n"].item() < 2 and process.poll() is None:  # one is this query
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=60)[1]
    assert process.returncode == 130, message
    assert message == "shoal: interrupted; nothing was released\n"
    assert read_database(register, running)["n"].item() == 1


def test_progress_shows_no_password(register, tmp_path):
    if os.name != "posix":
        pytest.skip("a terminal is made by POSIX systems only")
    import pty

    controller, terminal = pty.openpty()
    code = "import sys; from shoal.cli import main; main()"
    words = ["mask", register, "--query", "people", "-k", "5", *OPTIONS, "-o", str(tmp_path / "out.csv")]
    done = subprocess.run([sys.executable, "-c", code, *words], stdout=terminal, stderr=terminal, check=False)
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(controller, 65536):
            shown += part
    except OSError:  # the end, on Linux
        pass
    os.close(controller)
    assert done.returncode == 0
    assert b"k = 5" in shown
    assert not password_in(shown.decode())


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("ann:{wrong}@{server}", "password authentication failed"),
        ("ann:{right}@{server}x", "database .* does not exist"),
        ("ann:{right}@127.0.0.1:1/postgres", "Connection refused"),
        ("{server}?user=ann&password={right}&oops=1", "oops"),
    ],
)
def test_errors_of_postgresql_are_one_line_without_the_password(server, place, reason):
    address = "postgresql://" + place.format(wrong=f"{ENCODED}x", right=ENCODED, server=server)
    with pytest.raises(FileError, match=f"Database postgresql://.* cannot be read: .*{reason}") as refused:
        shoal.mask(address, 5, query="people")
    assert not password_in(str(refused.value))
    assert "\n" not in str(refused.value)
    done = command("mask", address, "--query", "people", "-k", 5, "-o", "out.csv")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert not password_in(done.stderr)


def test_a_password_that_breaks_the_address_is_refused_before_a_driver_sees_it():
    with pytest.raises(InputError, match=r"ann:\*\*\*@127.* must be encoded.*%40 for @") as refused:
        shoal.mask(f"postgresql://ann:{SECRET}@127.0.0.1/register", 5, query="people")
    assert SECRET[:6] not in str(refused.value)


def test_refusal_names_environment_variable_of_hidden_password(server, monkeypatch):
    monkeypatch.delenv(PASSWORD, raising=False)
    with pytest.raises(InputError, match=f"Set it in the environment variable {PASSWORD}"):
        shoal.mask(f"postgresql://ann:***@{server}", 5, query="people")
