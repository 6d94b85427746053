"""Tables from databases: query results, read through ADBC drivers (the extras ``sql`` and ``duckdb``).

ADBC returns Arrow tables, which keep the types. Apache Arrow maintains the drivers for SQLite and PostgreSQL; DuckDB
has its own driver. Connections are read-only or never commit. No message shows a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import polars as pl

from shoal.core.errors import FileError, InputError, ShoalError
from shoal.core.messages import parameter, setting
from shoal.core.progress import cancelled_by
from shoal.tables.table import check_names

__all__ = ["DATABASES", "PASSWORD", "Database", "check_no_database", "is_database", "read_database", "without_password"]

PASSWORD = "SHOAL_DATABASE_PASSWORD"  # noqa: S105  (the name of an environment variable)
HIDDEN = "***"  # replaces a password in messages; in an address, it means the password from the environment
ADDRESS = re.compile(r"([a-z][a-z0-9]*)(:/+)(.*)", re.IGNORECASE | re.DOTALL)
TABLE = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")  # the name of a table rather than a query
OPTION = re.compile(
    r"([?&;][\w.-]*(?:password|passwd|pwd|secret|token|key|credential)=)([^&;]*)", re.IGNORECASE | re.DOTALL
)
# SQLite has no column types. The driver infers types from the first batch, which must therefore hold all values.
WHOLE = {"adbc.sqlite.query.batch_rows": str(2**31 - 2)}
ECHO = re.compile(r"\n\s*(?:Query was|query|LINE \d+):.*|\. SQLSTATE.*", re.DOTALL)  # text that drivers add to an error
UNENCODED = re.compile(r"[/?#@\s]")
FILES = ("sqlite", "duckdb")  # databases in a file
LONGEST = 300  # characters of an error or a query in a message, at most
DIGITS = 38  # digits of a decimal, at most
UUID = (r"(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5")


@dataclass(frozen=True)
class Database:
    """A database system: its connection function and its protection against writing."""

    connect: Callable[[str], Any]
    begin: str = ""  # a statement to run before the query
    options: Callable[[], dict[str, str]] = dict  # options of a query
    only_select: bool = False


def is_database(data: object) -> bool:
    """Return whether a table is the address of a database."""
    if not isinstance(data, (str, os.PathLike)):
        return False
    address = ADDRESS.fullmatch(os.fspath(data))
    return address is not None and address[1].lower() in DATABASES


def check_no_database(data: object, reader: str) -> None:
    """Refuse a database address as the input of a reader that does not support databases."""
    if is_database(data):
        raise InputError(
            f"{reader} does not read databases, got {without_password(os.fspath(data))}. "  # type: ignore[call-overload]
            "Export the table to a Parquet file first."
        )


def without_password(address: str) -> str:
    """Return an address with *** in place of its password, which may contain any characters.

    Examples
    --------
    >>> without_password("postgresql://ann:a b@c/d@host/db?sslmode=require&sslpassword=x")
    'postgresql://ann:***@host/db?sslmode=require&sslpassword=***'
    """
    scheme, slashes, rest = re.split(r"(:/+)", address, maxsplit=1)
    user, at, place = rest.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:{HIDDEN}"
    return OPTION.sub(rf"\1{HIDDEN}", f"{scheme}{slashes}{user}{at}{place}")


def read_database(address: str, query: str | None) -> pl.DataFrame:
    """Return the result of a query, or the table that the query names; nothing is written to the database."""
    if "://" not in address:
        raise InputError(f"Database {without_password(address)} must be text, not a Path, which changes its slashes.")
    database = DATABASES[address.partition(":")[0].lower()]
    statement = _statement(address, query, database)
    with _naming(address):
        connectable = _with_password(address)
        with database.connect(connectable) as connection, connection.cursor() as cursor:
            if database.begin:
                cursor.execute(database.begin)
            cursor.adbc_statement.set_options(**database.options())
            with cancelled_by(cursor.adbc_cancel):
                cursor.execute(statement)
                answer = cursor.fetch_arrow_table()
        check_names(answer.column_names)
        return pl.DataFrame([_series(field, answer.column(field.name)) for field in answer.schema])


def _statement(address: str, query: str | None, database: Database) -> str:
    """Return the SQL statement for a query; a table name becomes a SELECT of the whole table."""
    if query is None or not query.strip():
        raise InputError(
            f"{parameter('query')} is required: database {without_password(address)} may have several tables. Name "
            f"one, such as {setting('query', 'people')}, or write a query."
        )
    statement = query.strip().rstrip("; \n")
    if TABLE.fullmatch(statement):
        return f"SELECT * FROM {statement}"  # noqa: S608  (a name of letters, digits and points)
    if database.only_select and not statement.lower().startswith(("select", "with")):
        raise InputError(f"{parameter('query')} must begin with SELECT or WITH, got {statement[:LONGEST]!r}.")
    return statement


# Addresses


def _with_password(address: str) -> str:
    """Return the address with *** replaced by the password in the environment."""
    user = address.partition("://")[2].rpartition("@")[0]
    if UNENCODED.search(user.partition(":")[2]) and address.partition(":")[0].lower() not in FILES:
        raise InputError(
            f"Database {without_password(address)} has a password with characters that must be encoded. Write %40 "
            f"for @, %2F for / and %3F for ?, or write {HIDDEN} and set the environment variable {PASSWORD}."
        )
    if HIDDEN not in address:
        return address
    password = os.environ.get(PASSWORD)
    if password is None:
        raise InputError(
            f"Database {without_password(address)} requires a password. Set it in the environment variable {PASSWORD}."
        )
    return address.replace(HIDDEN, quote(password, safe=""))


def _passwords(address: str) -> list[str]:
    """Return the passwords in an address, as written, decoded and encoded."""
    user = address.partition("://")[2].rpartition("@")[0]
    written = [user.partition(":")[2], *(match[2] for match in OPTION.finditer(address)), os.environ.get(PASSWORD, "")]
    return [secret for text in written if text.strip("*") for secret in (text, unquote(text), quote(text, safe=""))]


def _file(address: str) -> Path:
    """Return the file in a database address; three slashes begin a relative path, four an absolute path."""
    path = Path(address.partition("://")[2].removeprefix("/"))
    if not path.is_file():
        raise FileError(f"Database file {path} does not exist. Check the path.")
    if not os.access(path, os.R_OK):
        raise FileError(f"Database file {path} cannot be read: permission denied.")
    return path.resolve()


@contextmanager
def _naming(address: str) -> Iterator[None]:
    """Turn a driver error into a one-line `FileError` with the database address, without the password."""
    try:
        yield
    except (ShoalError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  (drivers have their own errors)
        reason = " ".join(ECHO.sub("", str(error)).split())
        for secret in _passwords(address):
            reason = reason.replace(secret, HIDDEN)
        raise FileError(
            f"Database {without_password(address)} cannot be read: {reason[:LONGEST].rstrip('. ')}. Check the address "
            f"and {parameter('query')}."
        ) from None


# Drivers


def _library(name: str, product: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise FileError(f"{product} needs the extra {extra!r}: pip install 'shoal[{extra}]'.") from None


def _connect_sqlite(address: str) -> Any:
    driver = _library("adbc_driver_sqlite.dbapi", "SQLite", "sql")
    return driver.connect(f"{_file(address).as_uri()}?mode=ro")


def _connect_postgresql(address: str) -> Any:
    return _library("adbc_driver_postgresql.dbapi", "PostgreSQL", "sql").connect(address)


def _connect_duckdb(address: str) -> Any:
    driver, manager = (
        _library(name, "DuckDB", "duckdb") for name in ("adbc_driver_duckdb", "adbc_driver_manager.dbapi")
    )
    # By default, DuckDB would download an extension to read the file of another database system.
    options = {"path": str(_file(address)), "access_mode": "READ_ONLY", "autoinstall_known_extensions": "false"}
    return manager.connect(driver=driver.driver_path(), entrypoint="duckdb_adbc_init", db_kwargs=options)


def _connect_installed(address: str) -> Any:
    """Connect through the driver that the user has installed for the address's scheme."""
    scheme = address.partition(":")[0].lower()
    manager = _library("adbc_driver_manager.dbapi", f"A database at {scheme}://", "sql")
    name = INSTALLED[scheme]
    try:
        return manager.connect(driver=name, db_kwargs={"uri": address})
    except manager.Error as error:
        if "Could not load" not in str(error):
            raise
    raise FileError(
        f"Database {without_password(address)} requires the ADBC driver {name!r}, which is not installed. Install it "
        f"(dbc install {name}), or export the table to a Parquet file."
    )


INSTALLED = {"mysql": "mysql", "mssql": "mssql", "sqlserver": "mssql"}
DATABASES = {
    "sqlite": Database(_connect_sqlite, options=lambda: WHOLE),
    "postgresql": Database(_connect_postgresql, begin="SET TRANSACTION READ ONLY"),
    "postgres": Database(_connect_postgresql, begin="SET TRANSACTION READ ONLY"),
    "duckdb": Database(_connect_duckdb),
    **dict.fromkeys(INSTALLED, Database(_connect_installed, only_select=True)),
}


# Types


def _series(field: Any, cells: Any) -> pl.Series:
    """Return a column of the result in a type that shoal reads."""
    import pyarrow as pa

    metadata = field.metadata or {}
    stored_type = metadata.get(b"POSTGRESQL:type", metadata.get(b"ADBC:postgresql:typname", b"")).decode()
    if stored_type == "money" or str(field.type) == "month_day_nano_interval":
        raise InputError(
            f"Column {field.name!r} of the database is of type {stored_type or 'interval'!r}, which shoal does not "
            f"read. Cast it in {parameter('query')}, such as to numeric or text, or leave it out."
        )
    if isinstance(field.type, pa.BaseExtensionType):
        cells = pa.chunked_array([chunk.storage for chunk in cells.chunks], field.type.storage_type)
    series = pl.Series(field.name, cells)
    if stored_type == "uuid" and series.dtype == pl.Binary:
        return series.bin.encode("hex").str.replace(*UUID)
    return _decimals(series) if stored_type == "numeric" else series


def _decimals(text: pl.Series) -> pl.Series:
    """Return text as decimals, or as floats if a number has too many digits or is not finite."""
    lengths = text.str.split(".").list.get(1, null_on_oob=True).str.len_chars()
    try:
        return text.cast(pl.Decimal(DIGITS, min(int(lengths.drop_nulls().to_numpy().max(initial=0)), DIGITS)))
    except pl.exceptions.InvalidOperationError:
        return text.cast(pl.Float64)
