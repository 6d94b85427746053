"""Compare the speed of methods with other programs: one thread each, ratios of the shortest CPU time of several runs.

Peers are np.argsort and microagg1d for one column, and for MDAV the plain compiled loop of the tests, a tuned loop
(`tuned_loop.py`), and sdcMicro if it is installed.

Run: python benchmarks/speed.py [univariate|mdav|large|others|pipeline|start …]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from results import table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from shoal.algorithms.registry import METHODS
from shoal.core.measures import sse
from shoal.core.types import Floats


def seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """Return the shortest CPU time of several runs after a first one, which compiles."""
    work()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def run(name: str, X: Floats, k: int, **options: object) -> Callable[[], object]:
    method = METHODS[name]
    chosen = method.read_options(options)
    return lambda: method.run(X, k, chosen)


def univariate() -> None:
    try:
        from microagg1d import univariate_microaggregation as peer
    except ImportError:
        peer = None
        print("(microagg1d is omitted: it is not installed)")
    head = "n {:,} | k | np.argsort, s {:.3f} | shoal, s {:.3f} | shoal / argsort {:.2f} | microagg1d, s {:.3f} | "
    head += "microagg1d / argsort {:.2f} | SSE of microagg1d / SSE of shoal {:.6f}"
    with table("univariate", "One column, unsorted uniform values: CPU seconds", head) as add:
        for n in (10**6, 10**7):
            column = np.random.default_rng(0).random(n)
            X = column[:, None]
            repeat = 7 if n < 10**7 else 3
            sort = seconds(lambda column=column: np.argsort(column), repeat)  # type: ignore[misc]
            for k in (3, 10, 100):
                ours = seconds(run("univariate", X, k), repeat)
                cells: list[float | None] = [None, None, None]
                if peer is not None:
                    theirs = seconds(lambda column=column, k=k: peer(column.copy(), k), min(repeat, 3))  # type: ignore[misc]
                    labels = METHODS["univariate"].run(X, k).labels
                    ratio = sse(X, np.asarray(peer(column.copy(), k), dtype=np.int64)) / sse(X, labels)
                    cells = [theirs, theirs / sort, ratio]
                add(n, k, sort, ours, ours / sort, *cells)


def mdav() -> None:
    import plain
    import tuned_loop

    if not has_sdcmicro():
        print("(sdcMicro is omitted: R or the package is not installed)")
    head = "n {:,} | d | shoal, s {:.2f} | plain loop, s {:.2f} | tuned loop, s {:.2f} | sdcMicro, s {:.2f} | "
    head += "plain / shoal {:.1f} | tuned / shoal {:.1f} | sdcMicro / shoal {:.1f}"
    with table("mdav", "MDAV, normal columns, k = 5: CPU seconds on one thread; all give the same labels", head) as add:
        for n, d in ((100_000, 2), (100_000, 5), (100_000, 10), (1_000_000, 2)):
            X = np.random.default_rng(0).normal(size=(n, d))
            ours = seconds(run("mdav", X, 5, threads=1), 3 if n < 10**6 else 1)
            theirs: list[float | None] = [None, None, None]
            if n < 10**6:
                labels = METHODS["mdav"].run(X, 5).labels
                for i, loop in enumerate((plain.mdav, tuned_loop.mdav)):
                    loop(X[:100], 5)
                    start = time.process_time()
                    if not np.array_equal(loop(X, 5), labels):
                        raise SystemExit(f"{loop} and shoal group the records in different ways")
                    theirs[i] = time.process_time() - start
                theirs[2] = sdcmicro(X) if has_sdcmicro() else None
            add(n, d, ours, *theirs, *(None if t is None else t / ours for t in theirs))


def large() -> None:
    sizes = ((100_000, 10, 5), (100_000, 20, 3), (1_000_000, 2, 1), (1_000_000, 5, 1), (1_000_000, 10, 1))
    title = "MDAV without blocks, normal columns, k = 5: elapsed seconds, by turns, least of each"
    with table("threads", title, "n {:,} | d | one thread, s {:.2f} | two threads, s {:.2f} | ratio {:.2f}") as add:
        for n, d, repeat in sizes:
            X = np.random.default_rng(0).normal(size=(n, d))
            times: dict[int, list[float]] = {1: [], 2: []}
            for threads in times:
                run("mdav", X[:50_000], 5, threads=threads)()
            for _ in range(repeat):
                for threads, measured in times.items():
                    start = time.perf_counter()
                    run("mdav", X, 5, threads=threads)()
                    measured.append(time.perf_counter() - start)
            one, two = min(times[1]), min(times[2])
            add(n, d, one, two, one / two)


def has_sdcmicro() -> bool:
    probe = ["Rscript", "-e", "quit(status = !requireNamespace('sdcMicro', quietly = TRUE))"]
    return (
        shutil.which("Rscript") is not None and not subprocess.run(probe, check=False, capture_output=True).returncode
    )


def sdcmicro(X: Floats) -> float:
    """Time sdcMicro's MDAV."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "x.csv", X, delimiter=",")
        code = (
            f"x <- read.csv('{folder}/x.csv', header = FALSE); "
            "t <- system.time(sdcMicro::microaggregation(x, aggr = 5, method = 'mdav')); cat(t[1] + t[2])"
        )
        return float(subprocess.run(["Rscript", "-e", code], check=True, capture_output=True, text=True).stdout)


def others() -> None:
    title = "V-MDAV (γ = 0.5), D and C, normal columns, k = 5: CPU seconds on one thread"
    with table("others", title, "n {:,} | d | v-mdav, s {:.2f} | diameter, s {:.2f} | centroid, s {:.2f}") as add:
        for n, d in ((100_000, 2), (100_000, 5), (100_000, 10)):
            X = np.random.default_rng(0).normal(size=(n, d))
            times = []
            for name, options in (("v-mdav", {"gamma": 0.5}), ("diameter", {}), ("centroid", {})):
                run(name, X[:100], 5, **options)()
                start = time.process_time()
                run(name, X, 5, **options)()
                times.append(time.process_time() - start)
            add(n, d, *times)


def pipeline() -> None:
    import polars as pl

    import shoal

    title = "mask() of 1,000,000 records with 10 columns, Parquet to Parquet, two threads: elapsed seconds of each step"
    with tempfile.TemporaryDirectory() as folder, table("steps", title, "method | step | time, s {:.2f}") as add:
        source, small, target = (Path(folder) / name for name in ("in.parquet", "small.parquet", "out.parquet"))
        X = np.random.default_rng(0).normal(size=(10**6, 10))
        frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(10)})
        frame.write_parquet(source)
        frame.head(1000).write_parquet(small)
        for method in ("mdav", "individual-ranking"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Libraries and kernels are loaded before timing.
                shoal.mask(small, 5, method=method, output=target, block=100 if method == "mdav" else None)
                release = min(
                    (shoal.mask(source, 5, method=method, output=target) for _ in range(3)),
                    key=lambda release: sum(release.timings.values()),
                )
            for step, seconds in release.timings.items():
                add(method, step, seconds)


def start() -> None:
    """Compare the start of the command line with the import of its three libraries, in turns."""
    title = (
        "Start of the command line, best of 9: elapsed and CPU seconds of a process, and their ratios to the imports"
    )
    head = "program | time, s {:.2f} | ratio {:.2f} | CPU time, s {:.2f} | CPU ratio {:.2f}"
    with tempfile.TemporaryDirectory() as name, table("start", title, head) as add:
        source, folder = Path(name) / "in.csv", Path(name)
        np.savetxt(
            source, np.random.default_rng(0).normal(size=(1000, 5)), delimiter=",", header="a,b,c,d,e", comments=""
        )
        # With bytecode, as in an installed package.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONPYCACHEPREFIX": name}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        columns = [word for name in "abcde" for word in ("-c", name)]
        mask = ["-m", "shoal", "mask", str(source), "-k", "5", *columns, "-o", str(folder / "out.csv")]
        imports = "import numpy, numba, polars"
        programs = {imports: ["-c", imports], "shoal --help": ["-m", "shoal", "--help"], "shoal mask": mask}
        for arguments in programs.values():  # the first run writes bytecode and kernels
            run_time(arguments, environment)
        runs = [[run_time(arguments, environment) for arguments in programs.values()] for _ in range(9)]
        best = np.min(runs, axis=0)
        for program, (wall, cpu) in zip(programs, best, strict=True):
            add(program, wall, wall / best[0, 0], cpu, cpu / best[0, 1])
        wall, cpu = run_time(mask, {**environment, "NUMBA_CACHE_DIR": str(folder / "cache")})
        add("shoal mask, with an empty kernel cache", wall, wall / best[0, 0], cpu, cpu / best[0, 1])


def run_time(arguments: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a Python program; return its elapsed and CPU seconds."""
    before, begin = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - begin, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


PARTS = {"univariate": univariate, "mdav": mdav, "large": large, "others": others, "pipeline": pipeline, "start": start}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
