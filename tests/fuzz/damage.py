"""Damaged files of every format: read as a table, or refused by name; no other exception, and no crash.

``python -m fuzz.damage FIRST COUNT`` (in ``tests/``) runs cases in processes of their own, since a damaged file may end
the process that reads it, and prints what is a defect with the number of its case.
"""

import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from shoal.tables.files import write_file

from .columns import some

__all__ = ["DAMAGES", "FORMS", "draw_damaged", "form_of", "run_damaged", "run_in_processes"]

SECONDS = 120  # for a case, kernels to compile included
# Formats, and the engines that read them; .arrow is not compressed, so that damage reaches the cells, and every other
# one holds its text as views, as polars writes it.
FORMS = [
    (".csv", "memory"), (".csv", "local"), (".parquet", "memory"), (".parquet", "local"), (".parquet", "dask"),
    (".feather", "memory"), (".arrow", "memory"), (".xlsx", "memory"), (".sav", "memory"), (".zsav", "memory"),
    (".dta", "memory"), (".xpt", "memory"), (".csv.gz", "memory"), (".csv.zst", "memory"),
    (".jsonl", "memory"),
]  # fmt: skip
FIRST = 12  # formats whose cases keep their numbers; every fifth case has a later format
DEFECTS = ("died", "hung", "raw", "unclear", "left behind")


def _truncate(rng, raw):
    return raw[: int(rng.integers(len(raw)))]


def _flip(rng, raw):
    cells = np.frombuffer(raw, dtype=np.uint8).copy()
    for place in rng.integers(len(raw), size=some(rng, [1, 3, 20])):
        cells[place] ^= 1 << int(rng.integers(8))
    return cells.tobytes()


def _clear(rng, raw):
    first, length = int(rng.integers(len(raw))), int(some(rng, [4, 64, 1000]))
    return raw[:first] + bytes(len(raw[first : first + length])) + raw[first + length :]


def _swap(rng, raw):
    length = int(some(rng, [8, 64, 512]))
    one, other = sorted(int(place) for place in rng.integers(max(1, len(raw) - length), size=2))
    other = max(other, one + length)
    return raw[:one] + raw[other : other + length] + raw[one + length : other] + raw[one : one + length] + raw[other + length :]  # fmt: skip # noqa: E501


def _overwrite(rng, raw):
    first, length = int(rng.integers(len(raw))), int(some(rng, [1, 4, 16]))
    return raw[:first] + rng.bytes(length) + raw[first + length :]


DAMAGES = (_truncate, _flip, _clear, _swap, _overwrite)


def _write(path, rng, *, views):
    """Write a table of numbers, text, dates, categories and missing cells."""
    n = int(some(rng, [20, 60, 200]))
    words = [None if i % 7 == 0 else f"wörd {i % 5}" for i in range(n)]
    days = pl.Series([18_000 + i for i in range(n)], dtype=pl.Int32).cast(pl.Date)
    table = pl.DataFrame({"x": rng.normal(size=n), "n": rng.integers(0, 99, n), "word": words, "day": days})
    ending = path.suffix
    if ".csv" in path.suffixes or ending == ".jsonl":
        write_file(table, path)
    elif ending == ".xlsx":
        table.write_excel(path)
    elif ending in (".parquet", ".feather", ".arrow"):
        rich = table.with_columns(kind=pl.col("word").cast(pl.Categorical)).to_arrow()
        if ending == ".arrow" and views:
            table.write_ipc(path)
        elif ending == ".parquet":
            pq.write_table(rich, path, row_group_size=30, compression=some(rng, ["snappy", "none"]))
        else:
            pa.feather.write_feather(rich, path, compression="uncompressed" if ending == ".arrow" else "lz4")
    else:
        import pyreadstat

        write = {".sav": "write_sav", ".zsav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}[ending]
        labels = {"variable_value_labels": {"n": {1: "öne", 2: "two"}}} if ending != ".xpt" else {}
        packed = {"compress": True} if ending == ".zsav" else {}
        getattr(pyreadstat, write)(table, path, column_labels={"x": "Größe"}, **labels, **packed)


def draw_damaged(number, folder):
    """Write the damaged file of a number to a folder; return its path, the engine and the damage."""
    rng = np.random.default_rng((2027, number))
    ending, engine = FORMS[form_of(number)]
    path = Path(folder) / f"in{ending}"
    _write(path, rng, views=number // FIRST % 2 == 1)
    how = some(rng, DAMAGES)
    path.write_bytes(how(rng, path.read_bytes()))
    return path, engine, how.__name__.strip("_")


def form_of(number):
    """Return the place of a case in `FORMS`."""
    return FIRST + number // 5 % (len(FORMS) - FIRST) if number % 5 == 0 else number % FIRST


def run_damaged(number):
    """Return the class of a case and its message."""
    import dask

    import shoal

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore")
        path, engine, how = draw_damaged(number, folder)
        output = path.with_name("out.parquet")
        case = f"{path.name} {how} {engine}"
        asked = {} if engine == "memory" else {"engine": engine}
        asked |= {"processes": 1} if engine == "local" else {}
        try:
            shoal.mask(path, 3, columns=["x"], missing="group", output=output, seed=0, **asked)
        except shoal.ShoalError as error:
            said = str(error)
            if [file.name for file in Path(folder).iterdir()] != [path.name]:
                return "left behind", f"{case}: {said}"
            names_it = not isinstance(error, shoal.FileError) or path.name in said
            clear = names_it and "\n" not in said and said.endswith((".", "?"))
            return ("refused" if clear else "unclear"), f"{case}: {said}"
        except BaseException:  # noqa: BLE001 - panics of Rust too: every other exception is a defect
            return "raw", f"{case}: {traceback.format_exc(limit=-5)}"
    return "released", case


def run_in_processes(first, count):
    """Yield number, class and message of cases; if the process dies, another one continues with the next case."""
    place = first
    while place < first + count:
        command = [sys.executable, "-m", "fuzz.damage", "--here", str(place), str(first + count - place)]
        limit = SECONDS + 2 * count
        try:
            done = subprocess.run(
                command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=limit, check=False
            )
            out, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as error:
            out, code = (error.stdout or b"").decode(), None
        for line in out.split("\0")[:-1]:
            number, kind, said = line.split("\t", 2)
            place = int(number) + 1
            yield int(number), kind, said
        if code != 0:
            yield place, "hung" if code is None else "died", f"exit code {code}"
            place += 1


def main(arguments):
    """Run cases; return 1 if there was a defect."""
    if arguments[0] == "--here":
        from templates import open_template, sharing

        with open_template() as template, sharing(template):
            for number in range(int(arguments[1]), int(arguments[1]) + int(arguments[2])):
                kind, said = run_damaged(number)
                said = said.replace("\0", "\\0")  # ends a case
                print(f"{number}\t{kind}\t{said}", end="\0", flush=True)  # noqa: T201
        return 0
    total: Counter[str] = Counter()
    for number, kind, said in run_in_processes(int(arguments[0]), int(arguments[1])):
        total[kind] += 1
        if kind in DEFECTS:
            print(f"{kind} {number}: {said}", flush=True)  # noqa: T201
    print(dict(total))  # noqa: T201
    return int(any(total[kind] for kind in DEFECTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
