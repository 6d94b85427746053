"""Measure the information loss and the proven lower bounds of `search` on the reference tables.

The first table shows `search` for some seconds with several seeds, the second a run with a proof. CPU seconds show how
much of the elapsed time the process received.
"""

import argparse
import time

from _reference import load
from results import table

import shoal
from shoal.algorithms.partition import find_groups
from shoal.core.measures import information_loss, sst

PUBLISHED = {
    ("tarragona", 3): 14.46,
    ("tarragona", 5): 20.16,
    ("tarragona", 10): 30.55,
    ("census", 3): 4.67,
    ("census", 5): 7.36,
    ("census", 10): 12.32,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="runs without a bound; 0 omits them")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--proof", type=float, default=600.0, help="seconds for a run with a proof; 0 omits it")
    parser.add_argument("--only", default="", help="such as census:3,tarragona:10")
    arguments = parser.parse_args()
    chosen = [tuple(part.split(":")) for part in arguments.only.split(",") if part]
    cases = [(name, int(k)) for name, k in chosen] or list(PUBLISHED)
    warm = load(cases[0][0])[:60]
    find_groups(warm, 3, "search", steps=100, seed=0, bound=True)
    if arguments.seeds:
        search(cases, arguments.seeds, arguments.seconds)
    if arguments.proof:
        prove(cases, arguments.proof)


def search(cases: list[tuple[str, int]], seeds: int, limit: float) -> None:
    """Print the losses of several seeds next to the best published ones."""
    title = f"`search` for {limit:g} s without a bound, {seeds} seeds"
    head = "table | k | published, % {:.2f} | mean, % {:.4f} | best, % {:.4f} | CPU time per run, s {:.1f}"
    with table("search", title, head) as add:
        for name, k in cases:
            X, cpu = load(name), time.process_time()
            labels = [shoal.partition(X, k, "search", time_limit=limit, seed=s, threads=1) for s in range(seeds)]
            cpu = (time.process_time() - cpu) / seeds
            losses = [information_loss(X, each) for each in labels]
            add(name, k, PUBLISHED.get((name, k)), sum(losses) / seeds, min(losses), cpu)


def prove(cases: list[tuple[str, int]], limit: float) -> None:
    """Print loss, bound and gap of one run with a proof, and the bound verified from its certificate."""
    title = f"`search` with `bound=True` for at most {limit:g} s, seed 0"
    head = "table | k | loss, % {:.5f} | bound, % {:.5f} | gap, % {:.3f} | status | cases | time, s {:.0f} "
    with table("proof", title, f"{head}| CPU time, s {{:.0f}} | bound verified again, % {{:.5f}}") as add:
        for name, k in cases:
            X, began, cpu = load(name), time.monotonic(), time.process_time()
            outcome = find_groups(X, k, "search", time_limit=limit, seed=0, bound=True, threads=1)
            seconds, cpu = time.monotonic() - began, time.process_time() - cpu
            loss, bound = information_loss(X, outcome.labels), 100 * (outcome.bound or 0.0) / sst(X)
            check = shoal.verify_bound(X, k, outcome.certificate)
            verified = check.loss if check else f"no: {check.reason}"
            cases_solved = outcome.facts.get("cases", 1)
            gap = 100 * (loss - bound) / loss
            add(name, k, loss, bound, gap, outcome.status, cases_solved, seconds, cpu, verified)


if __name__ == "__main__":
    main()
