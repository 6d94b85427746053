"""What a promise of t-closeness or l-diversity costs: our search beside the algorithms of Soria-Comas et al. (2015).

Run ``python benchmarks/closeness.py``; it takes some minutes. Files are read from the folder that ``SHOAL_DATA`` names
(default ``../shared/data``). Losses are information losses in percent, of groups that all keep the rule; of
closeness-first as its formula leaves them, with the greatest t that was reached. The bound is a loss below which no
groups that are close enough can get. Times are CPU seconds of one core.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

import numpy as np
import polars as pl

import shoal
from shoal.core.measures import sse, standardise
from shoal.core.progress import fresh_state
from shoal.core.types import Floats, Ints
from shoal.masking.numbers import read_numbers
from shoal.masking.request import EFFORTS, MaskRequest
from shoal.models.closeness_bound import closeness_bound
from shoal.models.closeness_first import closeness_first
from shoal.models.k_first import k_first
from shoal.models.model import ConfidentialColumn, Model
from shoal.models.model_registry import broken, make_rules, reached_by
from shoal.models.promises.closeness import Closeness
from shoal.models.promises.diversity import Diversity
from shoal.models.rule_enforcement import Search, keep_rules, repair
from shoal.models.rules import Rules
from shoal.tables.frames import open_table

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
    table = pl.read_csv(DATA / "census.csv")
    Z = standardise(table.select("TAXINC", "POTHVAL").to_numpy().astype(np.float64))
    base = shoal.partition(Z, k, method="mdav")
    print(f"\ncensus, keys TAXINC and POTHVAL, k = {k}: loss % (CPU s)\n")
    print("| confidential | t | closeness-first (its greatest t) | k-first | ours | effort best | bound |")
    print("|---|---|---|---|---|---|---|")
    for name in ("FEDTAX", "FICA"):
        column = confidential(table[name])
        for t in (0.05, 0.13, 0.25):
            rules = make_rules([column], [(0, Closeness(t))], len(Z))
            one, seconds_one = timed(closeness_first, Z, column.codes, k, t, state=fresh_state())
            two, seconds_two = timed(k_first, Z, k, rules, state=fresh_state())
            ours, seconds = timed(kept, Z, k, rules, base)
            best, seconds_best = timed(kept, Z, k, rules, base, EFFORTS["best"] / EFFORTS["good"])
            bound, seconds_bound = timed(closeness_bound, Z, rules)
            largest = float(reached_by(rules, 0, one)[1].max())
            print(
                f"| {name} | {t} | {loss(Z, one):.2f} ({largest:.4f}; {seconds_one:.2f}) "
                f"| {loss(Z, two):.2f} ({seconds_two:.2f}) | {loss(Z, ours):.2f} ({seconds:.2f}) "
                f"| {loss(Z, best):.2f} ({seconds_best:.2f}) "
                f"| {100 * bound / float(np.square(Z).sum()):.2f} ({seconds_bound:.2f}) |"
            )


def others(problems: int = 5) -> None:
    """Problems that nothing was chosen by: five and eight keys, then keys, columns, k and t that are drawn."""
    rng = np.random.default_rng(2026)
    asked = [("census", FIVE, "FEDTAX", 2, 0.13), ("census", EIGHT, "FICA", 2, 0.13)]
    while len(asked) < problems:
        name = str(rng.choice(["census", "tarragona"]))
        columns = rng.permutation(pl.read_csv(DATA / f"{name}.csv", n_rows=1).columns).tolist()
        k, t = int(rng.choice([2, 3, 5])), float(rng.choice([0.05, 0.1, 0.15, 0.2, 0.3]))
        asked.append((name, columns[1 : 1 + int(rng.integers(2, 7))], columns[0], k, t))
    best = EFFORTS["best"] / EFFORTS["good"]
    print("\nother keys and columns: loss % (CPU s) of two seeds\n")
    print("| table | keys | confidential | k | t | merged | closeness-first | ours | effort best | bound |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, keys, about, k, t in asked:
        table = pl.read_csv(DATA / f"{name}.csv")
        Z = standardise(table.select(keys).to_numpy().astype(np.float64))
        base, column = shoal.partition(Z, k, method="mdav"), confidential(table[about])
        rules = make_rules([column], [(0, Closeness(t))], len(Z))
        first = repair(Z, closeness_first(Z, column.codes, k, t, state=fresh_state()), rules)
        runs = {(steps, seed): timed(kept, Z, k, rules, base, steps, seed) for steps in (1.0, best) for seed in (0, 1)}
        told = [
            ", ".join(f"{loss(Z, runs[steps, seed][0]):.2f} ({runs[steps, seed][1]:.1f})" for seed in (0, 1))
            for steps in (1.0, best)
        ]
        bound = 100 * closeness_bound(Z, rules) / float(np.square(Z).sum())
        print(
            f"| {name} | {len(keys)} | {about} | {k} | {t} | {loss(Z, repair(Z, base, rules)):.2f} "
            f"| {loss(Z, first):.2f} | {' | '.join(told)} | {bound:.2f} |"
        )


def adult(rows: int, k: int = 5) -> None:
    table = pl.read_csv(DATA / "adult.csv").head(rows)
    levels = sorted(table["education-num"].unique())
    request = MaskRequest(k=k, columns=KEYS, kinds={"education-num": shoal.Ordinal(levels)})
    Z = read_numbers(open_table(table), request)[1].coordinates
    column = confidential(table["occupation"])
    base, seconds = timed(shoal.partition, Z, k, method="mdav" if rows <= 5000 else "path")
    print(
        f"\nadult, {rows:,} records, {len(KEYS)} keys, k = {k}; without a model {loss(Z, base):.2f} ({seconds:.2f})\n"
    )
    print("| occupation | groups that break it | merged | ours (CPU s) |\n|---|---|---|---|")
    models: list[Model] = [Diversity(5), Diversity(4, "entropy"), Diversity(4, "recursive"), Closeness(0.3)]
    for model in models:
        rules = make_rules([column], [(0, model)], len(Z))
        share = broken(rules, np.arange(len(Z)), base).mean()
        ours, seconds = timed(kept, Z, k, rules, base)
        merged = loss(Z, repair(Z, base, rules))
        told = f"{model.parameter} {model.text} | {100 * share:.1f} % | {merged:.2f}"
        print(f"| {told} | {loss(Z, ours):.2f} ({seconds:.2f}) |")


def timed(work: Callable[..., T], *given: Any, **named: Any) -> tuple[T, float]:
    """Return what a function returns, and its CPU seconds; its first run compiles, and is done again."""
    if work not in COMPILED:
        work(*given, **named)
        COMPILED.add(work)
    start = process_time()
    return work(*given, **named), process_time() - start


def panel(persons: int = 5_000, k: int = 5) -> None:
    """Four records a person: what counting persons costs, merged and searched."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(persons), 4)
    records = rng.normal(size=(persons, 4))[person] + 0.25 * rng.normal(size=(len(person), 4))
    table = pl.DataFrame(records, schema=list("abcd")).with_columns(person=pl.Series(person))
    Z = standardise(records)
    base = shoal.partition(Z, k, method="mdav")
    counts = np.full(persons, 4)
    rules = make_rules([ConfidentialColumn(person, counts, ordered=False)], [(0, Diversity(k))], len(Z))
    print(f"\npanel, {len(Z):,} records of {persons:,} persons, k = {k}; shoal.mask, loss % (CPU s)\n")
    print(f"MDAV's groups, merged until they hold k persons: {loss(Z, repair(Z, base, rules)):.2f}\n")
    print("| effort | k records | k persons | times the CPU s |\n|---|---|---|---|")
    asked = {"k": k, "columns": list("abcd"), "keep": ["person"]}
    for effort in ("fast", "good"):
        (free, one), (lost, two) = (masked(table, **asked, **more, effort=effort) for more in ({}, {"unit": "person"}))
        print(f"| {effort} | {free:.2f} ({one:.2f}) | {lost:.2f} ({two:.2f}) | {two / one:.2f} |")


def masked(table: pl.DataFrame, **asked: Any) -> tuple[float, float]:
    shoal.mask(table, **asked)  # compiles
    start = process_time()
    return shoal.mask(table, **asked).loss, process_time() - start


if __name__ == "__main__":
    panel()
    census()
    others()
    adult(5_000)
    adult(30_162)
