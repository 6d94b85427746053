"""Sessions, error messages and output folders of Spark."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.core import errors
from shoal.core.errors import FileError, InputError, ShoalError
from shoal.core.messages import parameter, setting
from shoal.tables.outputs import MARK, folder_beside, moved_together

__all__ = ["Output", "address", "executor_python", "open_session", "spark_refusals"]

PYTHON = "PYSPARK_PYTHON"  # the environment variable for the executors' Python
_OURS = re.compile(r"shoal\.core\.errors\.(\w+): ([^\n]*)")


def address(path: str | os.PathLike[str]) -> str:
    """Convert a path to a Hadoop address; a path without a scheme is a file on this machine.

    Examples
    --------
    >>> address("s3a://bucket/in.parquet"), address("/data/*.parquet")
    ('s3a://bucket/in.parquet', 'file:///data/*.parquet')
    """
    text = os.fspath(path)
    scheme = re.match(r"([A-Za-z][\w+.-]+):/+", text)
    if scheme is None:
        return f"file://{os.path.abspath(text)}"  # noqa: PTH100  (links are not resolved)
    # pathlib, which the command line uses for paths, shortens two slashes to one.
    return f"{scheme[1]}://{'/' if scheme[1] == 'file' else ''}{text[scheme.end() :]}"


@contextmanager
def open_session(master: str | None) -> Iterator[Any]:
    """Yield the active Spark session, or a new session that ends with the block."""
    try:
        library = import_module("pyspark.sql")
    except ImportError:
        raise InputError(f"{setting('engine', 'spark')} requires PySpark: pip install 'shoal[spark]'.") from None
    active = library.SparkSession.getActiveSession()
    if active is not None:
        used = active.conf.get("spark.master", None)
        if master is not None and master != used:
            raise InputError(
                f"{parameter('master')} is {master!r}, but a Spark session is active at {used!r}. Stop that session "
                f"first, or omit {parameter('master')}."
            )
        yield active
        return
    session = _start(library.SparkSession.builder.appName("shoal"), master)
    try:
        yield session
    finally:
        session.stop()


def _start(builder: Any, master: str | None) -> Any:
    """Start a session; its workers on this machine use this Python interpreter."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin").is_dir()):
        raise InputError(
            f"{setting('engine', 'spark')} requires Java 17 or later: apt-get install openjdk-17-jre-headless, or set "
            "JAVA_HOME to its folder."
        )
    settings = {"spark.ui.showConsoleProgress": "false"}
    if master is not None:
        builder = builder.master(master)
    if master is None or master.startswith("local"):
        package = str(Path(__file__).parents[2])
        path = os.environ.get("PYTHONPATH")
        settings["spark.executorEnv.PYTHONPATH"] = package if path is None else f"{package}{os.pathsep}{path}"
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _same_python():
            session = builder.getOrCreate()
    except Exception as error:  # Java may raise anything
        lines = str(error).strip().splitlines() or [""]
        raise InputError(
            f"{parameter('master')} must be a master at which Spark can start, got {master!r} ({lines[0]}). Spark "
            "needs Java 17 or later."
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _same_python() -> Iterator[None]:
    """Make Spark start its workers with this Python interpreter, unless the user has set another.

    Also restore the Ctrl-C handler, because Spark's handler would cancel its jobs and lose the interrupt.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_named = PYTHON in os.environ
    os.environ.setdefault(PYTHON, sys.executable)
    try:
        yield
    finally:
        if not is_named:
            del os.environ[PYTHON]
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def executor_python(session: Any) -> Iterator[None]:
    """Make local executors of a user's session use this Python interpreter, unless the user has set another."""
    context: Any = None
    with suppress(Exception):  # Spark Connect sessions have no context
        context = session.sparkContext
    is_named = PYTHON in os.environ or context is None or context.getConf().contains("spark.pyspark.python")
    if is_named or context.pythonExec != "python3" or not context.master.startswith("local"):
        yield
        return
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = "python3"


@contextmanager
def spark_refusals(problem: str) -> Iterator[None]:
    """Convert Spark errors to refusals, and restore a refusal that a task raised."""
    import_module("pyspark.sql")
    failures = (import_module("pyspark.errors").PySparkException, import_module("py4j.protocol").Py4JError)
    try:
        yield
    except ShoalError:
        raise
    except failures as error:
        text = str(error)
        if refused := _OURS.search(text):
            raise getattr(errors, refused[1], ShoalError)(refused[2]) from None
        if lacking := re.search(r"No module named '([\w.]+)'", text):
            raise InputError(
                f"{setting('engine', 'spark')} requires {lacking[1]}, which the Python of the executors does not have. "
                "Install shoal there too, or set another Python in PYSPARK_PYTHON."
            ) from None
        lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
        # Spark prints the trace of a task first and the error at the end.
        errors_shown = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b", line)]
        raise InputError(f"{problem} ({(errors_shown or lines)[-1 if errors_shown else 0][:300]}).") from error


class Output:
    """An output data set that the executors write next to its target. It is moved into place after verification.

    A private output is a folder that only its owner may open, if the file system has permissions.
    """

    def __init__(self, session: Any, target: str, *, private: bool = False) -> None:
        jvm = session._jvm  # noqa: SLF001  (the way to Hadoop's file systems)
        self._path = jvm.org.apache.hadoop.fs.Path
        self._mode = jvm.org.apache.hadoop.fs.permission.FsPermission("700") if private else None
        self._target = self._path(target)
        self._system = self._target.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001
        self._stack = ExitStack()

    @contextmanager
    def written(self) -> Iterator[str]:
        """Yield a temporary path; it is moved with the other files of the run, or removed if anything fails."""
        parent, name = self._target.getParent(), self._target.getName()
        if not self._system.exists(parent):
            raise FileError(f"Output {self._target} cannot be written: folder {parent} does not exist. Make it first.")
        with moved_together() as outputs:
            folder = f"{parent}/.{name}{MARK}{uuid.uuid4().hex[:8]}"
            if self._system.getScheme() == "file":  # marked as in use, so that other runs do not remove it
                folder = f"file://{self._stack.enter_context(folder_beside(Path(self._target.toUri().getPath())))}"
            else:
                self._stack.callback(self._delete, self._path(folder))
            self._temporary = self._path(f"{folder}/data")
            outputs.add(Path(str(self._target)), self._place, self._stack.close)
            yield str(self._temporary)

    def _place(self) -> None:
        """Move the output into place; the old output stays until then."""
        if self._mode is not None:
            self._system.setPermission(self._temporary, self._mode)
        previous = self._path(self._temporary.getParent(), "old")
        replaces = self._system.exists(self._target)
        if replaces and not self._system.rename(self._target, previous):
            raise FileError(f"Output {self._target} cannot be replaced. Remove it first.")
        if not self._system.rename(self._temporary, self._target):
            if replaces:
                self._system.rename(previous, self._target)
            raise FileError(f"Output {self._target} cannot be written: it cannot be moved into place.")

    def _delete(self, path: Any) -> None:
        with suppress(Exception):  # the file system may be gone, together with the output
            self._system.delete(path, True)
