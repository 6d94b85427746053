"""Runs of ``shoal mask`` that may lack memory: released and recounted, refused in one line, or ended by a library.

Libraries such as polars, LLVM and OpenBLAS end the process when they get no memory. shoal cannot prevent that, but no
run may hang, print a traceback or change an output that it does not replace. ``python -m fuzz.memory FIRST COUNT`` (in
``tests/``, on Linux only) runs cases and prints defects with the number of their case.
"""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from shoal.tables.outputs import MARK

from .columns import some
from .recount import BrokenError, check_groups, read_cells

__all__ = ["DEFECTS", "run_limited"]

SECONDS = 300  # for a case, kernels to compile included
DEFECTS = ("hung", "raw", "unclear", "broken", "left behind")
OLD = "an output of before"
# `ulimit -f` keeps messages of libraries that repeat them without end from filling the disk.
LIMITED = 'ulimit -c 0; ulimit -f 100000; ulimit -v "$0"; exec "$@"'
REFUSAL = "shoal: Memory ran out; nothing was released. "
# Exit codes of libraries that lack memory; 127 is the C library's, without memory for the data of a thread.
ABORTED = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGTRAP, 127)


def _draw(rng, folder):
    """Write a table and possibly an older output; return its arguments, columns and k."""
    n, width = int(some(rng, [20, 300, 3_000, 20_000, 60_000])), int(rng.integers(1, 7))
    columns = {f"x{j}": rng.normal(size=n).round(3) for j in range(width)}
    source = folder / f"in{some(rng, ['.csv', '.parquet'])}"
    table = pl.DataFrame({**columns, "word": [f"w{code}" for code in rng.integers(0, 7, n)]})
    table.write_csv(source) if source.suffix == ".csv" else table.write_parquet(source)
    output, k = folder / f"out{some(rng, ['.csv', '.parquet', '.xlsx'])}", int(some(rng, [2, 3, 5]))
    if rng.random() < 0.5:
        output.write_text(OLD)
    engine = some(rng, ["memory", "memory", "local"]) if output.suffix != ".xlsx" else "memory"
    method = some(rng, ["auto", "mdav", "mst-d", "projection"])
    arguments = [source.name, "-k", str(k), "-m", method, "--engine", engine, "--rest", "keep", "-o", output.name]
    arguments += ["--effort", "fast"] if method == "auto" else []
    return [*arguments, *(word for name in columns for word in ("-c", name))], table, output, k


def run_limited(number):
    """Return the class of a case and its message."""
    rng = np.random.default_rng((2029, number))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments, table, output, k = _draw(rng, folder)
        before = _contents(folder)
        limit, backtrace = int(rng.uniform(0.8e6, 3e6)), some(rng, ["0", "1"])
        command = ["sh", "-c", LIMITED, str(limit), sys.executable, "-m", "shoal", "mask", *arguments]
        # The same number of threads on every machine, as each reserves address space.
        threads = {f"{library}_THREADS": "2" for library in ("POLARS_MAX", "OPENBLAS_NUM", "OMP_NUM", "NUMBA_NUM")}
        with tempfile.TemporaryFile() as messages:
            try:
                code = subprocess.run(
                    command, cwd=folder, env={**os.environ, **threads, "RUST_BACKTRACE": backtrace},
                    stdout=subprocess.DEVNULL, stderr=messages, timeout=SECONDS, check=False,
                ).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                code = None
            messages.seek(0)
            text = messages.read().decode(errors="replace")
        case = f"{limit} KB, backtrace {backtrace}: shoal mask {' '.join(arguments)}"
        kind, why = _judge(code, text, folder, before, output) or _recount(table, output, k)
        if kind == "released":
            why = f"{len(text)} {text[-150:]}"
        return kind, f"{case}: {why}"


def _contents(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def _judge(code, text, folder, before, output):
    """Return the class and the reason of a run that released nothing; None for a run with a release."""
    what = f"exit code {code}, {text[:300]!r} … {text[-1000:]!r}"
    if code is None:
        return "hung", what
    if "traceback" in text.lower() or "stack backtrace:" in text:
        return "raw", what
    after = _contents(folder)
    if code == 0:
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        return None if changed == {Path(output.name)} else ("left behind", str(changed))
    if code in ABORTED:
        # The unfinished file stays until the next run removes it.
        after = {path: content for path, content in after.items() if not _is_leftover(folder / path.parts[0])}
    if after != before:
        return "left behind", f"{[*map(str, after)]}, {what}"
    if code in ABORTED or (code == 1 and "OpenBLAS error" in text):
        return "ended", what
    lines = [line for line in text.splitlines() if line.startswith("shoal: ")]
    clear = code == 1 and len(lines) == 1 and lines[0].startswith(REFUSAL)
    return ("refused" if clear else "unclear"), what


def _is_leftover(path):
    """Return whether a file is a leftover that the next run removes and only its owner can read."""
    return path.name.startswith(".") and MARK in path.name and not stat.S_IMODE(path.stat().st_mode) & 0o077


def _recount(table, output, k):
    """Return whether a release has the records of a table in groups of k, and the column that was not masked."""
    names, cells = read_cells(output, {})
    columns = dict(zip(names, cells, strict=True))
    words = columns.pop("word")
    try:
        check_groups(k, list(columns.values()), range(table.height))
    except BrokenError as error:
        return "broken", str(error)
    if words != table["word"].to_list() or list(columns) != table.columns[:-1]:
        return "broken", "the columns are not those of the table"
    return "released", ""


def main(arguments):
    """Run cases; return 1 if there was a defect."""
    if not sys.platform.startswith("linux"):
        print("skipped: only Linux limits the addresses of a process")  # noqa: T201
        return 0
    total: Counter[str] = Counter()
    for number in range(int(arguments[0]), int(arguments[0]) + int(arguments[1])):
        kind, said = run_limited(number)
        total[kind] += 1
        if kind in DEFECTS:
            print(f"{kind} {number}: {said}", flush=True)  # noqa: T201
    print(dict(total))  # noqa: T201
    return int(any(total[kind] for kind in DEFECTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
