"""What a released file must hold: counted with polars from the file alone, not with the recount of shoal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

__all__ = ["Count", "Expected", "Run", "count_again", "figure", "read", "wrong_figures"]

SIGNS = 7  # of a cell that is the same as another column's by more than chance


@dataclass(frozen=True)
class Run:
    """A command line, the exit code that it should have, what it had, and what it printed."""

    line: str
    expected: int
    code: int
    output: str
    errors: str

    @property
    def text(self) -> str:
        """All that was printed: the summary is on standard error if the table is on standard output."""
        return self.output + self.errors


@dataclass(frozen=True)
class Expected:
    """What people who know the table expect of its release.

    Parameters
    ----------
    file
        The released file.
    k
        The least number of records, or of units, that share a combination.
    unchanged
        Sensitive columns and weights, which may be released unchanged and which outsiders do not know.
    secret
        Columns that must be left out, and whose values must not occur in others.
    unit
        The column of the original whose different values k counts.
    totals
        Columns whose totals are kept to within one group.
    sums
        A column and the ones that it is the sum of.
    kept
        The least share of the records that is released.
    """

    file: str = "out.csv"
    k: int = 5
    unchanged: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    unit: str | None = None
    totals: tuple[str, ...] = ()
    sums: tuple[str, tuple[str, ...]] | None = None
    kept: float = 0.95


class Count(NamedTuple):
    """The least number of records (or units) that share a combination, and the number of records that are unique."""

    least: int
    unique: int


def read(path: Path) -> pl.DataFrame:
    """Read a released table with other libraries than shoal does, where there are any."""
    if path.is_dir():
        return pl.read_parquet(path / "*.parquet")
    if path.suffix in (".sav", ".dta"):
        import pyreadstat

        frame, _ = (pyreadstat.read_dta if path.suffix == ".dta" else pyreadstat.read_sav)(path)
        return pl.from_pandas(frame)
    if path.suffix == ".csv":
        text = path.read_text(encoding="utf-8")
        german = ";" in text.partition("\n")[0]
        return pl.read_csv(
            text.encode(), infer_schema_length=None, separator=";" if german else ",", decimal_comma=german
        )
    return {".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson, ".xlsx": pl.read_excel}[path.suffix](path)


def figure(text: str, name: str, pattern: str = r"(.*)") -> str | None:
    """Return what a line of a summary says, or the part of it that the pattern has in brackets."""
    line = re.search(rf"^{name} +{pattern}", text, re.MULTILINE)
    return None if line is None else line[1]


def count_again(original: pl.DataFrame, released: pl.DataFrame, expected: Expected, stays: list[str]) -> Count:
    """Count the records that share their values in all columns but those that stay and that outsiders do not know."""
    keys = [name for name in released.columns if name not in stays]
    sizes = released.group_by(keys).len()["len"]
    least = int(sizes.min() or 0)
    if expected.unit is not None:
        units = released.with_columns(original[expected.unit].alias("its unit")).group_by(keys)
        least = int(units.agg(pl.col("its unit").n_unique())["its unit"].min() or 0)
    return Count(least, int((sizes == 1).sum()))


def wrong_figures(original: pl.DataFrame, released: pl.DataFrame, expected: Expected, text: str) -> Iterator[str]:
    """Yield what is wrong with a released table and its summary."""
    stays = [name for name in (figure(text, "unchanged columns") or "").split(", ") if name in released.columns]
    yield from (f"{name} is unchanged" for name in stays if name not in expected.unchanged)
    yield from (f"{name} is no column of the original" for name in released.columns if name not in original.columns)
    yield from (f"{name} is released" for name in expected.secret if name in released.columns)
    yield from _cells(original, released, expected.secret)
    count = count_again(original, released, expected, stays)
    if count.least < expected.k:
        yield f"{count.least} share a combination"
    alone = figure(text, "singled out", r"([\d,]+)")
    if alone is None or int(alone.replace(",", "")) != count.unique:
        yield f"{count.unique} are singled out, {alone} are reported"
    if count.unique and figure(text, "verdict", r"(\w+)") != "STOP":
        yield "records are singled out, and the verdict is not STOP"
    records = figure(text, "records", r"([\d,]+)")
    if records is None or int(records.replace(",", "")) != released.height:
        yield f"{released.height} records are released, {records} are reported"
    if released.height < expected.kept * original.height:
        yield f"only {released.height} of {original.height} records are released"
    yield from _sums(original, released, expected)


def _cells(original: pl.DataFrame, released: pl.DataFrame, secret: tuple[str, ...]) -> Iterator[str]:
    """Yield the secret columns of text some of whose cells occur anywhere in the released table."""
    cells = set().union(*(set(column.cast(pl.String).drop_nulls().unique()) for column in released))
    for name in (name for name in secret if original[name].dtype == pl.String):
        values = {value for value in original[name].drop_nulls().unique() if len(value) >= SIGNS}
        if values & cells:
            yield f"{len(values & cells)} values of {name} are released"


def _sums(original: pl.DataFrame, released: pl.DataFrame, expected: Expected) -> Iterator[str]:
    for name in expected.totals:
        off = abs(released[name].sum() - original[name].sum())
        if off >= 2 * expected.k:
            yield f"the total of {name} is off by {off:,}"
    if expected.sums is not None:
        total, parts = expected.sums
        off = (released[total] - released.select(parts).sum_horizontal(ignore_nulls=False)).abs().max()
        if off is None or float(str(off)) > 1e-6 * float(released[total].abs().max()):  # type: ignore[arg-type]
            yield f"{total} is not the sum of its parts: off by {off}"
