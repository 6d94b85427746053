"""Compare worker processes: shoal's, a forkserver with preload (concurrent.futures), and loky.

Each figure is the median of separate programs, run in turns: seconds and CPU seconds until two workers have completed a
first task with kernels; memory of a worker at that time, and of all processes except the caller (PSS: a page shared by
n processes counts 1/n in each); seconds from killing a worker until the caller notices, and until another worker has
done its task, for which other executors must be recreated; and a whole masking from Parquet to Parquet. The last column
shows if a program without `if __name__ == "__main__"` can use the workers.

The others get the best conditions: the environment of shoal's workers, and kernels loaded before the forkserver forks.

Run: python benchmarks/workers.py [--runs 5] [--records 1e6]     (loky is omitted if it is not installed)
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import islice
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
KINDS = ("ours", "forkserver", "loky")
SCRIPT = "import workers\nwith workers.pool({kind!r}) as found:\n    print(*found.map(abs, [(-2,)]))\n"


class Executed:
    """Adapter that gives an executor the interface of shoal's workers."""

    def __init__(self, kind: str, processes: int) -> None:
        self.processes, self._executor = processes, executor(kind, processes)

    def map(self, function: Callable[..., Any], tasks: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """Yield results in the order of the tasks."""
        waiting = iter(tasks)
        running = deque(self._executor.submit(function, *task) for task in islice(waiting, 2 * self.processes))
        while running:
            value = running.popleft().result()
            running.extend(self._executor.submit(function, *task) for task in islice(waiting, 1))
            yield value

    def prepare(self, function: Callable[..., bool], task: Sequence[Any]) -> None:
        """Run a task in every process, as far as an executor allows."""
        list(self.map(function, [task] * self.processes))

    def peaks(self) -> list[int]:
        """Return nothing; the benchmark does not use it."""
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()


def executor(kind: str, processes: int) -> Executor:
    if kind == "loky":
        from loky import ProcessPoolExecutor as Loky

        return Loky(processes)
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["preloaded"])
    return ProcessPoolExecutor(processes, mp_context=context)


def pool(kind: str) -> Any:
    """Return two workers of a kind; shoal's run the same preparation as in the engine."""
    if kind != "ours":
        return Executed(kind, 2)
    from shoal.core.progress import fresh_state
    from shoal.engines.process_pool import Workers

    workers = Workers(2, fresh_state())
    workers.prepare(load_kernels, ())
    return workers


# Tasks of workers


def load_kernels() -> bool:
    from shoal.masking.request import MaskRequest
    from shoal.masking.warm_up import warm_up

    return warm_up(MaskRequest(k=3, columns=list("abcd")).settled(list("abcd")), 4)


def first(_: int) -> int:
    load_kernels()
    time.sleep(0.1)  # makes the other worker take the other task
    return os.getpid()


def die_once(mark: Path) -> None:
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        time.sleep(600)


# Separate programs


def start(kind: str, _: str) -> None:
    """Start workers; print the seconds, CPU seconds and memory of the start as JSON."""
    began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + _start_ticks()
    workers = pool(kind)
    pids = set(workers.map(first, [(0,), (1,)]))
    seconds = time.time() - began
    if len(pids) != 2:
        raise SystemExit(f"{kind}: {len(pids)} workers answered")
    below = _descendants(os.getpid())
    figures = {
        "start": seconds,
        "cpu": sum(_cpu(pid) for pid in (os.getpid(), *below)),
        "worker": statistics.mean(_pss(pid) for pid in pids),
        "all": sum(_pss(pid) for pid in below),
    }
    print(json.dumps(figures))
    workers.__exit__(None, None, None)


def death(kind: str, folder: str) -> None:
    """Kill a busy worker; print the seconds until the caller notices and until the task is done as JSON."""
    import threading

    mark, killed = Path(folder) / f"mark-{os.getpid()}", []

    def kill() -> None:
        while not (mark.exists() and mark.read_text()):
            time.sleep(0.001)
        killed.append(time.perf_counter())
        os.kill(int(mark.read_text()), signal.SIGKILL)

    workers = pool(kind)
    list(workers.map(first, [(0,), (1,)]))
    threading.Thread(target=kill).start()
    noticed = None
    try:
        list(workers.map(die_once, [(mark,)]))
    except RuntimeError:  # a broken pool
        noticed = time.perf_counter()
        with pool(kind) as another:
            list(another.map(die_once, [(mark,)]))
    done = time.perf_counter()
    print(json.dumps({"noticed": (noticed or done) - killed[0], "again": done - killed[0]}))
    workers.__exit__(None, None, None)


def mask(kind: str, folder: str) -> None:
    import shoal
    from shoal.engines import process_pool as ours

    if kind != "ours":
        from shoal.engines import local

        ours.FORKS = False  # no template
        local.Workers = lambda processes, *_: Executed(kind, processes)  # type: ignore[assignment,misc]
    keywords: dict[str, Any] = {"block": 10_000, "engine": "local", "processes": 2, "memory": "1500MB"}
    began = time.perf_counter()
    release = shoal.mask(Path(folder) / "in.parquet", 3, output=Path(folder) / "out.parquet", **keywords)
    print(json.dumps({"mask": time.perf_counter() - began, "loss": release.loss}))


def _start_ticks() -> float:
    """Return the start time of this process in seconds since the machine started."""
    fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3


def _descendants(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    found = [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    return [*found, *(other for child in found for other in _descendants(child))]


# The table


def run(command: Sequence[str], folder: Path) -> dict[str, Any] | None:
    """Run a program; return its JSON output, None if it failed."""
    from shoal.engines.process_pool import ENVIRONMENT

    paths = os.pathsep.join([str(HERE), str(folder), *sys.path[1:]])
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": paths},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    said = json.loads(done.stdout.splitlines()[-1])
    return said if isinstance(said, dict) else {}


def main() -> None:
    from large import generate
    from results import table  # takes --record from the command line

    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=float, default=1e6)
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if kind != "loky" or importlib.util.find_spec("loky")]
    if "loky" not in kinds:
        print("loky is omitted: it is not installed (pip install loky)")
    figures: dict[str, dict[str, list[float]]] = {kind: {} for kind in kinds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(int(given.records), folder / "in.parquet")
        (folder / "preloaded.py").write_text("import pyarrow.parquet\nimport workers\nworkers.load_kernels()\n")
        for turn in range(given.runs + 1):
            for kind in kinds:
                for program in ("start", "death", "mask"):
                    said = run(["-c", f"import workers; workers.{program}({kind!r}, {name!r})"], folder)
                    if said is None:
                        raise SystemExit(f"{kind}: {program} failed")
                    if turn:  # the first turn fills caches
                        for what, value in said.items():
                            figures[kind].setdefault(f"{program} {what}", []).append(value)
        bare = {}
        for kind in kinds:
            (folder / "bare.py").write_text(SCRIPT.format(kind=kind))
            bare[kind] = run([str(folder / "bare.py")], folder) is not None
    head = "workers | start, s {:.2f} | CPU time, s {:.2f} | per worker, MB {:.0f} | all processes, MB {:.0f} | "
    head += f"death noticed, s {{:.2f}} | task done again, s {{:.2f}} | {given.records:,.0f} × 4, s {{:.2f}} | "
    head += "needs no guard"
    measured = ("start start", "start cpu", "start worker", "start all", "death noticed", "death again", "mask mask")
    with table("workers", f"Two workers, medians of {given.runs} runs", head) as add:
        for kind, values in figures.items():
            add(kind, *(statistics.median(values[name]) for name in measured), "yes" if bare[kind] else "no")


if __name__ == "__main__":
    main()
