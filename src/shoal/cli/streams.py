"""CSV from standard input and to standard output, for the path ``-``."""

from __future__ import annotations

import errno
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.terminal import speaking_to_stderr
from shoal.core.errors import FileError, InputError

if TYPE_CHECKING:
    from shoal.tables.files import StandardInput, TableFile

__all__ = ["STREAM", "check_streams", "path_or_address", "read_stdin", "written_to_stdout"]

STREAM = "-"  # path of standard input or output
CLUSTERS = ("dask", "spark")


def path_or_address(text: str) -> Path | TableFile:
    """Return the path in an argument or, if the argument is a database address, the table of that database."""
    if "://" not in text:
        return Path(text)
    from shoal.tables.files import named_source

    source = named_source(text)
    return Path(text) if source is text else source


def check_streams(source: Path | TableFile | None, values: Mapping[str, Any], **files: Path | None) -> None:
    """Refuse options that standard input or output does not support; the options in `files` need tables on disk."""
    reads, writes = str(source) == STREAM, str(values["output"]) == STREAM
    for name, path in files.items():
        if path is not None and (reads or writes):
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} cannot be combined with -: it needs the tables as files. Use files instead of -.")
    if reads and (values["engine"] not in (None, "memory") or values["memory"] is not None):
        raise InputError("Standard input (-) is masked in memory. Leave out --engine and --memory, or use a file.")
    if writes and values["engine"] in CLUSTERS:
        raise InputError(
            f"Engine {values['engine']!r} cannot write to standard output (-). Use a Parquet data set as --output."
        )


def read_stdin() -> StandardInput:
    """Read the table from standard input."""
    from shoal.tables.files import StandardInput

    return StandardInput(sys.stdin.buffer.read())


@contextmanager
def written_to_stdout() -> Iterator[Path]:
    """Yield the path of a CSV file that is copied to standard output on success; print everything else to stderr."""
    with speaking_to_stderr(), tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        path = Path(folder) / "stdout.csv"
        yield path
        try:
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader has closed the pipe
                raise
            raise FileError(f"Standard output cannot be written: {error.strerror}.") from None
