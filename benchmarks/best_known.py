"""Best known information losses and proven lower bounds for the reference tables, as Markdown.

For each table and k: `search` for some seconds with several seeds (mean and best), then once with the proof, whose
cases are those of branching. The CPU seconds show how much of the clock's seconds the process got.
"""

import argparse
import time

from _reference import header, load

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
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--proof", type=float, default=600.0, help="seconds for search and proof; 0 leaves it out")
    parser.add_argument("--only", default="", help="such as census:3,tarragona:10")
    arguments = parser.parse_args()
    chosen = [tuple(part.split(":")) for part in arguments.only.split(",") if part]
    cases = [(name, int(k)) for name, k in chosen] or list(PUBLISHED)
    print(header(), end="\n\n")
    columns = "table | published | mean | best | CPU s | with proof | bound | gap % | status | cases | s | CPU s"
    print(f"| {columns} | verified |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    warm = load(cases[0][0])[:60]
    find_groups(warm, 3, "search", steps=100, seed=0, bound=True)
    for name, k in cases:
        X = load(name)
        cells = [f"{name} k={k}", f"{PUBLISHED.get((name, k), float('nan')):.2f}"]
        losses = []
        cpu = time.process_time()
        for seed in range(arguments.seeds):
            labels = shoal.partition(X, k, "search", time_limit=arguments.seconds, seed=seed, threads=1)
            losses.append(information_loss(X, labels))
        if losses:
            cpu = (time.process_time() - cpu) / len(losses)
            cells += [f"{sum(losses) / len(losses):.4f}", f"{min(losses):.4f}", f"{cpu:.1f}"]
        else:
            cells += ["", "", ""]
        if arguments.proof:
            began, cpu = time.monotonic(), time.process_time()
            outcome = find_groups(X, k, "search", time_limit=arguments.proof, seed=0, bound=True, threads=1)
            seconds, cpu = time.monotonic() - began, time.process_time() - cpu
            loss, bound = information_loss(X, outcome.labels), 100 * (outcome.bound or 0.0) / sst(X)
            check = shoal.verify_bound(X, k, outcome.certificate)
            cells += [f"{loss:.5f}", f"{bound:.5f}", f"{100 * (loss - bound) / loss:.3f}", outcome.status]
            cells += [f"{outcome.facts.get('cases', 1)}", f"{seconds:.0f}", f"{cpu:.0f}"]
            cells += [f"{check.loss:.5f}" if check else f"no: {check.reason}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
