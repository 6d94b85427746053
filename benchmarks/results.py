"""Record the figures of benchmarks, and write the page of current figures, RESULTS.md, from the records.

A benchmark prints each of its tables through `table`. With ``--record``, a complete table also replaces its previous
record in ``results/SCRIPT.json``, which contains command, date, machine, columns with units, and rows. Titles, the
load, ``notes`` (a sentence or two, without history) and ``shown`` are edited by hand; ``shown`` selects the rows on the
page by values of columns, or is false for a table that is not on it.

Run: python benchmarks/results.py [--check]     writes RESULTS.md; with --check it fails if the page is not current
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "results"
PAGE = HERE / "RESULTS.md"
INTRODUCTION = """# Results

The current figures of the benchmarks. Do not edit this page: run a benchmark with `--record`, then
`python benchmarks/results.py`. All rows of all tables are in `benchmarks/results/`. Above a table are its date, machine
and command, unless they are those of the table before. Times of different machines and loads cannot be compared; ratios
within one table can. A goal that is not reached is marked **Missed**.
"""
COLUMN = re.compile(r"(?P<name>.*?)(?:, (?P<unit>[^{,]*?))?(?: (?P<format>\S*\{.*))?")

RECORDING = "--record" in sys.argv[1:]
if RECORDING:  # no script needs to handle the flag
    sys.argv.remove("--record")


def machine() -> str:
    """Return the processor, its cores and the version of Python."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    for line in information.read_text().splitlines() if information.exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def read_head(head: str) -> list[dict[str, str]]:
    """Return the columns of a head such as ``n {:,} | shoal, s {:.2f}``: names, units and formats of cells."""
    columns = []
    for text in head.split(" | "):
        parts = COLUMN.fullmatch(text)
        assert parts is not None
        columns.append({name: value for name, value in parts.groupdict().items() if value})
    return columns


def text_of(cell: Any, column: dict[str, str]) -> str:
    """Return the text of a cell: empty for None, text unchanged, a list of numbers through one format."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    return column.get("format", "{}").format(*(cell if isinstance(cell, (list, tuple)) else [cell]))


def line_of(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def head_of(columns: list[dict[str, str]]) -> str:
    """Return the first two lines of a Markdown table."""
    names = [", ".join([column["name"], *filter(None, [column.get("unit")])]) for column in columns]
    return f"{line_of(names)}\n|{'---|' * len(columns)}"


@contextmanager
def table(key: str, title: str, head: str) -> Iterator[Callable[..., None]]:
    """Print a table while its rows are measured, and record it under its key once it is complete.

    Yields a function that accepts the cells of a row: numbers, texts, None, or lists of numbers for a format with
    several fields.
    """
    columns, rows = read_head(head), list[list[Any]]()
    print(f"\n{title}\n\n{head_of(columns)}", flush=True)

    def add(*cells: Any) -> None:
        row = [plain(cell) for cell in cells]
        rows.append(row)
        print(line_of([text_of(cell, column) for cell, column in zip(row, columns, strict=True)]), flush=True)

    yield add
    if RECORDING:
        record(Path(sys.argv[0]).name, key, {"title": title, **circumstances(), "columns": columns, "rows": rows})


def circumstances() -> dict[str, str]:
    """Return the command, the date, the machine and its load."""
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    load = f"load average {os.getloadavg()[0]:.1f}"
    return {"command": command, "date": str(date.today()), "machine": machine(), "load": load}  # noqa: DTZ011


def plain(cell: Any) -> Any:
    """Return a cell with NumPy types converted to Python's."""
    if isinstance(cell, (list, tuple)):
        return [plain(part) for part in cell]
    return cell.item() if hasattr(cell, "item") else cell


def record(script: str, key: str, measured: dict[str, Any]) -> None:
    """Replace a table in the records of a script, keeping its notes."""
    path = RECORDS / Path(script).with_suffix(".json")
    records = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"script": f"benchmarks/{script}"}
    tables = records.setdefault("tables", {})
    by_hand = {name: value for name, value in tables.get(key, {}).items() if name in ("notes", "shown")}
    tables[key] = measured | {"notes": []} | by_hand
    path.write_text(dump(records) + "\n", encoding="utf-8")
    if tables[key]["notes"]:
        print(f"(recorded; check the notes of {key!r} in {path.name})")


def dump(value: Any, indent: int = 0, width: int = 120) -> str:
    """Return JSON with one row per line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or indent + len(line) <= width:
        return line
    space = "\n" + " " * (indent + 2)
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {dump(part, indent + 2)}" for name, part in value.items()]
    else:
        items = [dump(part, indent + 2) for part in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}{space}{f',{space}'.join(items)}\n{' ' * indent}{closed}"


def page() -> str:
    """Return the page of current figures."""
    parts = [INTRODUCTION]
    for path in sorted(RECORDS.glob("*.json")):
        records = json.loads(path.read_text(encoding="utf-8"))
        hidden = [key for key, measured in records["tables"].items() if measured.get("shown") is False]
        elsewhere = f"Only in `results/{path.name}`: {', '.join(hidden)}." if hidden else ""
        parts.append(f"## {records.get('title', path.stem)}\n")
        about = " ".join(filter(None, [records.get("about"), elsewhere]))
        parts += [f"{about}\n"] if about else []
        before: list[str] = []
        for key, measured in records["tables"].items():
            if key not in hidden:
                facts = [measured["date"], measured["machine"], measured.get("load"), f"`{measured['command']}`"]
                facts = list(filter(None, facts))
                where = facts[-1:] if facts[:-1] == before[:-1] else facts
                parts.append(section(measured, "" if facts == before else " · ".join(where)))
                before = facts
    return "\n".join(parts)


def section(measured: dict[str, Any], where: str) -> str:
    """Return the rows of a table shown on the page, with its circumstances and notes."""
    columns, rows = measured["columns"], measured["rows"]
    for name, values in (measured.get("shown") or {}).items():
        place = [column["name"] for column in columns].index(name)
        rows = [row for row in rows if row[place] in values]
    part = f" ({len(rows)} of {len(measured['rows'])} rows)" if len(rows) < len(measured["rows"]) else ""
    lines = [f"### {measured['title']}{part}\n", *([f"{where}\n"] if where else []), head_of(columns)]
    for row in rows:
        lines += [line_of([text_of(cell, column) for cell, column in zip(row, columns, strict=True)])]
    notes = measured.get("notes", [])
    return "\n".join([*lines, "", *(f"- {note}" for note in notes), *([""] if notes else [])])


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit("benchmarks/RESULTS.md is not current. Write it again: python benchmarks/results.py")
