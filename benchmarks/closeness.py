"""Measure the cost of t-closeness, l-diversity and units: shoal's search against Soria-Comas et al. (2015).

Run: python benchmarks/closeness.py; it takes some minutes. Files are read from the folder in SHOAL_DATA (default:
../shared/data). Losses are information losses in percent. All groups keep the promise, except those of closeness-first,
which are shown unrepaired with their largest t. The bound holds for all groups that keep t, of any size. Times are CPU
seconds of one core.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

import numpy as np
import polars as pl
from results import table

import shoal
from shoal.algorithms.registry import EFFORTS
from shoal.assessment.coded_records import CodedRecords
from shoal.core.measures import sse, standardise
from shoal.core.progress import fresh_state
from shoal.core.types import Floats, Ints
from shoal.masking.memory import MemoryRecords
from shoal.masking.pipeline import prepare
from shoal.masking.request import MaskRequest
from shoal.promises.closeness import Closeness
from shoal.promises.closeness_bound import closeness_bound
from shoal.promises.closeness_first import closeness_first
from shoal.promises.diversity import Diversity
from shoal.promises.k_first import k_first
from shoal.promises.promise import ConfidentialColumn, GroupPromise, Rules
from shoal.promises.rule_enforcement import Search, keep_rules, repair
from shoal.promises.rules import broken, make_rules, reached_by
from shoal.tables.formats.frames import open_table

T = TypeVar("T")
DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
KEYS = ["age", "hours-per-week", "education-num", "marital-status", "race", "sex"]
FIVE = ["AFNLWGT", "PTOTVAL", "STATETAX", "INTVAL", "ERNVAL"]
COMPILED: set[Callable[..., Any]] = set()
EIGHT = ["AFNLWGT", "AGI", "EMCONTRB", "PTOTVAL", "TAXINC", "POTHVAL", "INTVAL", "WSALVAL"]


def loss(Z: Floats, labels: Ints) -> float:
    return 100 * sse(Z, labels) / float(np.square(Z).sum())


def confidential(values: pl.Series) -> ConfidentialColumn:
    _, codes, counts = np.unique(values.to_numpy(), return_inverse=True, return_counts=True)
    return ConfidentialColumn(codes.astype(np.int64), counts, ordered=values.dtype.is_numeric())


def kept(Z: Floats, k: int, rules: Rules, base: Ints, steps: float = 1.0, seed: int = 0) -> Ints:
    cells = [(np.arange(len(Z)), np.arange(Z.shape[1]))]
    labels = keep_rules(Z, base, cells, k, rules, Search(seed, steps, fresh_state()))
    assert not broken(rules, np.arange(len(Z)), labels).any()
    return labels


def census(k: int = 2) -> None:
    frame = pl.read_csv(DATA / "census.csv")
    Z = standardise(frame.select("TAXINC", "POTHVAL").to_numpy().astype(np.float64))
    base = shoal.partition(Z, k, method="mdav")
    title = f"Census, keys TAXINC and POTHVAL, k = {k}: loss % (CPU s)"
    head = "sensitive column | t | closeness-first {:.2f} ({:.2f}) | its largest t {:.4f} | " + " | ".join(
        f"{name} {{:.2f}} ({{:.2f}})" for name in ("k-first", "shoal", "shoal with effort best", "bound")
    )
    with table("census", title, head) as add:
        for name in ("FEDTAX", "FICA"):
            column = confidential(frame[name])
            for t in (0.05, 0.13, 0.25):
                rules = make_rules([column], [(0, Closeness(t))], len(Z))
                first, seconds = timed(closeness_first, Z, column.codes, k, t, state=fresh_state())
                runs = [
                    timed(k_first, Z, k, rules, state=fresh_state()),
                    timed(kept, Z, k, rules, base),
                    timed(kept, Z, k, rules, base, EFFORTS["best"] / EFFORTS["good"]),
                ]
                bound, seconds_bound = timed(closeness_bound, Z, rules)
                cells = [[loss(Z, labels), cpu] for labels, cpu in runs]
                largest = float(reached_by(rules, 0, first)[1].max())
                proven = [100 * bound / float(np.square(Z).sum()), seconds_bound]
                add(name, t, [loss(Z, first), seconds], largest, *cells, proven)


def others(problems: int = 5) -> None:
    """Compare problems that influenced no design: five and eight keys, then random keys, columns, k and t."""
    rng = np.random.default_rng(2026)
    asked = [("census", FIVE, "FEDTAX", 2, 0.13), ("census", EIGHT, "FICA", 2, 0.13)]
    while len(asked) < problems:
        name = str(rng.choice(["census", "tarragona"]))
        columns = rng.permutation(pl.read_csv(DATA / f"{name}.csv", n_rows=1).columns).tolist()
        k, t = int(rng.choice([2, 3, 5])), float(rng.choice([0.05, 0.1, 0.15, 0.2, 0.3]))
        asked.append((name, columns[1 : 1 + int(rng.integers(2, 7))], columns[0], k, t))
    best = EFFORTS["best"] / EFFORTS["good"]
    pair = "{:.2f} ({:.1f}), {:.2f} ({:.1f})"
    head = "data | keys | sensitive column | k | t | merged {:.2f} | closeness-first, merged {:.2f} | "
    head += f"shoal {pair} | shoal with effort best {pair} | bound {{:.2f}}"
    with table("others", "Other keys and columns: loss % (CPU s) of seeds 0 and 1", head) as add:
        for name, keys, about, k, t in asked:
            frame = pl.read_csv(DATA / f"{name}.csv")
            Z = standardise(frame.select(keys).to_numpy().astype(np.float64))
            base, column = shoal.partition(Z, k, method="mdav"), confidential(frame[about])
            rules = make_rules([column], [(0, Closeness(t))], len(Z))
            first = repair(Z, closeness_first(Z, column.codes, k, t, state=fresh_state()), rules)
            cells = []
            for steps in (1.0, best):
                runs = [timed(kept, Z, k, rules, base, steps, seed) for seed in (0, 1)]
                cells.append([figure for labels, cpu in runs for figure in (loss(Z, labels), cpu)])
            bound = 100 * closeness_bound(Z, rules) / float(np.square(Z).sum())
            add(name, len(keys), about, k, t, loss(Z, repair(Z, base, rules)), loss(Z, first), *cells, bound)


def adult(rows: int, k: int = 5) -> None:
    frame = pl.read_csv(DATA / "adult.csv").head(rows)
    levels = sorted(frame["education-num"].unique())
    request = MaskRequest(k=k, columns=KEYS, kinds={"education-num": shoal.Ordinal(levels)})
    records = MemoryRecords(open_table(frame))
    Z = CodedRecords.of(records, prepare(records, request)).coordinates
    column = confidential(frame["occupation"])
    base, seconds = timed(shoal.partition, Z, k, method="mdav" if rows <= 5000 else "path")
    title = f"Adult, {rows:,} records, {len(KEYS)} keys, k = {k}: loss % (CPU s)"
    head = "promise about occupation | groups that break it, % {:.1f} | merged {:.2f} | shoal {:.2f} ({:.2f})"
    models: list[GroupPromise] = [Diversity(5), Diversity(4, "entropy"), Diversity(4, "recursive"), Closeness(0.3)]
    with table(f"adult-{rows}", title, head) as add:
        add("none", None, None, [loss(Z, base), seconds])
        for model in models:
            rules = make_rules([column], [(0, model)], len(Z))
            share = broken(rules, np.arange(len(Z)), base).mean()
            labels, seconds = timed(kept, Z, k, rules, base)
            merged = loss(Z, repair(Z, base, rules))
            add(f"{model.parameter} {model.text}", 100 * share, merged, [loss(Z, labels), seconds])


def timed(work: Callable[..., T], *given: Any, **named: Any) -> tuple[T, float]:
    """Return the result of a function and its CPU seconds; the first run compiles and is repeated."""
    if work not in COMPILED:
        work(*given, **named)
        COMPILED.add(work)
    start = process_time()
    return work(*given, **named), process_time() - start


def panel(persons: int = 5_000, k: int = 5) -> None:
    """Measure the cost of counting persons instead of records, with four records per person."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(persons), 4)
    records = rng.normal(size=(persons, 4))[person] + 0.25 * rng.normal(size=(len(person), 4))
    frame = pl.DataFrame(records, schema=list("abcd")).with_columns(person=pl.Series(person))
    asked = {"k": k, "columns": list("abcd"), "keep": ["person"]}
    title = f"Panel, {len(records):,} records of {persons:,} persons, k = {k}: loss % (CPU s)"
    with table(
        "panel", title, "effort | k records {:.2f} ({:.2f}) | k persons {:.2f} ({:.2f}) | ratio of CPU s {:.2f}"
    ) as add:
        for effort in ("fast", "good"):
            records_only, units = (masked(frame, **asked, **unit, effort=effort) for unit in ({}, {"unit": "person"}))
            add(effort, records_only, units, units[1] / records_only[1])


def masked(frame: pl.DataFrame, **asked: Any) -> tuple[float, float]:
    shoal.mask(frame, **asked)  # compiles
    start = process_time()
    return shoal.mask(frame, **asked).loss, process_time() - start


if __name__ == "__main__":
    panel()
    census()
    others()
    adult(5_000)
    adult(30_162)
