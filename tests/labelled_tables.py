"""Tables of labelled_roles.txt, generated from their descriptions, with the correct roles.

Run: python tests/labelled_tables.py [TABLE]     prints the wrong roles of the tables tuned on
"""
# ruff: noqa: ARG005, T201  (generators of cells share one signature)

import string
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.kinds.kind_registry import CATEGORIES
from shoal.roles.proposal import Proposal, propose
from shoal.tables.formats.frames import open_table

LABELS = Path(__file__).parent / "labelled_roles.txt"
PARTS = ("tuned on", "held out", "set A", "set B")
SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]


@dataclass
class Labelled:
    """Description of a table: the type of cells and the correct role of each column."""

    name: str
    part: str
    records: int
    cells: dict[str, str]
    labels: dict[str, str]

    def frame(self) -> pl.DataFrame:
        """Return the table with synthetic cells."""
        rng = np.random.default_rng(sum(map(ord, self.name)))
        columns: dict[str, list[Any]] = {}
        later = [name for name, cells in self.cells.items() if cells.startswith(("of ", "periods "))]
        for name in [*(name for name in self.cells if name not in later), *later]:
            kind, _, rest = self.cells[name].partition(" ")
            rest, _, missing = rest.partition("missing ")
            if kind in ("of", "periods"):
                source, _, function = rest.strip().rpartition(" ")
                columns[name] = FUNCTIONS[function.rstrip("0123456789")](columns[source], function)
            else:
                columns[name] = CELLS[kind](self.records, rest.strip(), rng)
            if missing:
                columns[name] = blank(columns[name], float(missing), rng)
        return pl.DataFrame({name: pl.Series(columns[name], strict=False) for name in self.cells})


@dataclass
class Judgement:
    """A column with its correct and its proposed role."""

    table: str
    part: str
    column: str
    label: str
    role: str
    kind: str
    right: bool


def labelled_tables() -> list[Labelled]:
    """Read the descriptions."""
    tables = list[Labelled]()
    for line in LABELS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, _, comment = line[1:].partition("]")
            part = next((part for part in PARTS if comment.endswith(f"; {part}")), "tuned on")
            tables.append(Labelled(name, part, 0, {}, {}))
        elif line.startswith("records "):
            tables[-1].records = int(line.split()[1])
        elif " | " in line:
            name, cells, label = line.split(" | ")
            tables[-1].cells[name], tables[-1].labels[name] = cells, label
    return tables


def judge(table: Labelled, proposal: Proposal) -> Iterator[Judgement]:
    """Compare the proposed roles of a table with its labels."""
    roles = {
        column.name: "identifier" if column.role == "key" and column.name in proposal.dropped else column.role
        for column in proposal.columns
    }
    labels = {name: label.partition(",")[0] for name, label in table.labels.items()}
    for name, label in table.labels.items():  # either of two equivalent columns may be left out
        twin = label.removeprefix("derived or ")
        if twin != label and roles[twin] == "derived":
            roles[name], roles[twin] = roles[twin], roles[name]
    for column in proposal.columns:
        label, role = labels[column.name], roles[column.name]
        accepted = {"key": ("key", "stratum")}.get(label, (label.partition(" ")[0],))
        right = role in accepted or (label == "unit" and proposal.parameters["unit"] == column.name)
        yield Judgement(table.name, table.part, column.name, table.labels[column.name], role, column.kind, right)


def judge_all(k: int = 3) -> list[Judgement]:
    """Judge the proposals for all tables."""
    return [j for table in labelled_tables() for j in judge(table, propose(open_table(table.frame()), k))]


# Cells by their character


def blank(cells: list[Any], share: float, rng: np.random.Generator) -> list[Any]:
    return [None if hidden else cell for cell, hidden in zip(cells, rng.random(len(cells)) < share, strict=True)]


def falling(n: int, values: list[Any], rng: np.random.Generator) -> list[Any]:
    """Draw values, the first of them most often."""
    shares = 1 / np.arange(1, len(values) + 1)
    return [values[i] for i in rng.choice(len(values), n, p=shares / shares.sum())]


def literal(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def listed(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    return falling(n, [literal(value) for value in text.split(",")], rng)


def skewed(low: float, middle: float, high: float, size: int, rng: np.random.Generator) -> np.ndarray:
    u = rng.random(size)
    return np.where(u < 0.5, low + (middle - low) * 2 * u, middle + (high - middle) * (2 * u - 1) ** 3)


def numbers(n: int, low: float, high: float, distinct: int, middle: float, zeros: float, digits: int, rng: Any) -> Any:
    """Draw skewed numbers, with as many distinct values as described."""
    values = np.unique(np.round(np.r_[low, high, skewed(low, middle, high, 20 * max(distinct, 50), rng)], digits))
    if not digits and distinct >= 0.9 * (high - low + 1):
        values = np.arange(low, high + 1)
    if len(values) > distinct:
        values = np.sort(rng.choice(values, distinct, replace=False))
    if len(values) >= n:
        cells = rng.permutation(values)[:n]
    else:
        distance = np.abs(np.arange(len(values)) - np.searchsorted(values, middle))
        shares = np.exp(-3 * distance / len(values))
        cells = rng.choice(values, n, p=shares / shares.sum())
    if zeros > 0.02:
        cells = np.where(rng.random(n) < zeros, 0, cells)
    return cells


def whole(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    low, high, distinct, middle, zeros = map(float, text.split())
    return [int(cell) for cell in numbers(n, low, high, int(distinct), middle, zeros, 0, rng)]


def real(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    low, high, digits, distinct, middle, zeros = map(float, text.split())
    return numbers(n, low, high, int(distinct), middle, zeros, int(digits), rng).tolist()


def word(length: int, rng: np.random.Generator) -> str:
    return "".join(rng.choice(SYLLABLES, max(1, round(length / 2))))[: max(2, length)]


def different(n: int, distinct: int, make: Any, rng: np.random.Generator) -> list[Any]:
    """Draw from a number of distinct texts, each at least once if there are enough records."""
    texts = dict.fromkeys(make() for _ in range(3 * distinct + 20))
    chosen = list(texts)[:distinct]
    return rng.permutation([*chosen[:n], *falling(max(0, n - len(chosen)), chosen, rng)]).tolist()


def words(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    distinct, length = map(int, text.split())
    return different(n, distinct, lambda: word(length + int(rng.integers(-1, 2)), rng), rng)


def signs(alphabet: str) -> Any:
    def make(n: int, text: str, rng: np.random.Generator) -> list[Any]:
        length, distinct = map(int, text.split())
        return different(n, distinct, lambda: "".join(rng.choice(list(alphabet), length)), rng)

    return make


def units(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    times, low, high = map(float, text.split())
    count = round(n / times)
    ids = np.sort(rng.choice(np.arange(low, max(high, low + count) + 1), count, replace=False)).astype(int)
    return np.sort(np.r_[ids, rng.choice(ids, n - count)]).tolist()


def days(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    first, last = (np.datetime64(day) for day in text.split())
    return [str(first + int(day)) for day in rng.integers(0, (last - first).astype(int), n)]


def moments(n: int, text: str, rng: np.random.Generator) -> list[Any]:
    return [f"{day} {rng.integers(24):02}:{rng.integers(60):02}:{rng.integers(60):02}" for day in days(n, text, rng)]


def classified(parts: str) -> Any:
    """Generate hierarchical codes: L is a letter, other characters are digits or themselves; some end early."""

    def make(n: int, text: str, rng: np.random.Generator) -> list[Any]:
        def code() -> str:
            letters, digits = list("ABCEFIJKMN"), list(string.digits[:7])
            full = "".join(str(rng.choice({"L": letters, "9": digits}.get(sign, [sign]))) for sign in parts)
            return full if rng.random() < 0.8 else full.partition(".")[0]

        return different(n, int(text), code, rng)

    return make


CELLS: dict[str, Any] = {
    "values": listed,
    "flag": lambda n, text, rng: (rng.random(n) < float(text)).astype(int).tolist(),
    "whole": whole,
    "real": real,
    "rows": lambda n, text, rng: list(range(1, n + 1)),
    "units": units,
    "words": words,
    "digits": signs("1234567890"),
    "codes": signs(string.ascii_uppercase + string.digits),
    "postcodes": lambda n, text, rng: different(
        n, int(text), lambda: f"{rng.integers(1000, 1400)} {''.join(rng.choice(list('ABC'), 2))}", rng
    ),
    "dates": days,
    "moments": moments,
    "icd": classified("L99.9"),
    "nace": classified("99.99"),
    "phones": lambda n, text, rng: [f"+44 20 {rng.integers(1000, 9999)} {rng.integers(1000, 9999)}" for _ in range(n)],
    "urls": lambda n, text, rng: [f"https://{word(9, rng)}.example" for _ in range(n)],
    "text": lambda n, text, rng: [" ".join(word(6, rng) for _ in range(12)) for _ in range(n)],
}


# Functions of other columns


def each(function: Any) -> Any:
    return lambda cells, text: [None if cell is None else function(cell) for cell in cells]


def threshold(cells: list[Any], share: float) -> list[Any]:
    ordered = sorted(cell for cell in cells if cell is not None)
    return [None if cell is None else int(cell > ordered[int(share * (len(ordered) - 1))]) for cell in cells]


def classes(cells: list[Any], text: str) -> list[Any]:
    """Cut numbers into classes of about equal size."""
    ordered, number = sorted(cell for cell in cells if cell is not None), int(text.strip(string.ascii_letters))
    ends = [ordered[len(ordered) * i // number] for i in range(1, number)]
    return [None if cell is None else sum(cell >= end for end in ends) for cell in cells]


def recoded(cells: list[Any], text: str) -> list[Any]:
    rng = np.random.default_rng(0)
    names = dict.fromkeys(cell for cell in cells if cell is not None)
    texts = dict.fromkeys(word(12, rng) for _ in range(3 * len(names)))
    return [dict(zip(names, texts, strict=False)).get(cell) for cell in cells]


def parts(cells: list[Any], text: str) -> list[Any]:
    names = sorted({cell for cell in cells if cell is not None})
    of_name = {name: f"part {place * 6 // len(names)}" for place, name in enumerate(names)}
    return [of_name.get(cell) for cell in cells]


def periods(cells: list[Any], text: str) -> list[Any]:
    """Number the records of each unit."""
    first, seen = int(text), dict[Any, int]()
    numbered = []
    for cell in cells:
        seen[cell] = seen.get(cell, first - 1) + 1
        numbered.append(seen[cell])
    return numbered


FUNCTIONS: dict[str, Any] = {
    "log": each(lambda cell: round(float(np.log(cell)), 6) if cell > 0 else None),
    "square": each(lambda cell: cell * cell),
    "times": each(lambda cell: cell * 0.0625),
    "shift": each(lambda cell: cell + 14),
    "absent": lambda cells, text: ["no" if cell is None else "yes" for cell in cells],
    "is": lambda cells, text: [int(str(cell) == text.removeprefix("is")) for cell in cells],
    "positive": each(lambda cell: int(cell > 0)),
    "high": lambda cells, text: threshold(cells, 0.85),
    "low": lambda cells, text: threshold(cells, 0.3),
    "cut": classes,
    "recode": recoded,
    "part": parts,
    "": periods,
}


def main() -> None:
    """Print the wrong roles and the shares of correct ones."""
    judgements = judge_all()
    for j in judgements:
        if not j.right and j.part in ("tuned on", "set A") and (len(sys.argv) < 2 or sys.argv[1] in j.table):
            print(f"{j.table:36} {j.column:28} {j.label:22} proposed {j.role} ({j.kind})")
    for part in PARTS:
        of_part = [j for j in judgements if j.part == part]
        right = sum(j.right for j in of_part)
        print(f"{part}: {right} of {len(of_part)}, {100 * right / len(of_part):.1f} %")
        for label in ("key", "confidential", "identifier", "unit", "weight", "derived", "other"):
            some = [j for j in of_part if j.label.startswith(label)]
            print(f"    {label:14} {sum(j.right for j in some):4} of {len(some)}")
        codes = [j for j in of_part if j.label == "key, code"]
        print(f"    codes          {sum(j.kind in CATEGORIES for j in codes):4} of {len(codes)} not averaged")
        keys = [j for j in of_part if j.label == "key"]
        quantities = [j for j in keys if j.kind in CATEGORIES]
        print(f"    keys as categories {len(quantities)} of {len(keys)}")


if __name__ == "__main__":
    main()
