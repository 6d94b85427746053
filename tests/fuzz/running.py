"""Runner of cases: each is released and recounted, refused with a message, or a defect.

``python -m fuzz.running FIRST COUNT`` (in ``tests/``) runs cases in batches, each in a process of its own with a time
limit, and prints a summary by class; what is a defect is printed with the number of its case.
"""

import re
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import dask
from templates import open_template, sharing

import shoal
from shoal.core.errors import ShoalError, VerificationError

from .cases import draw_case, give
from .recount import BrokenError, check_release

__all__ = ["LateError", "run_case", "run_cases"]

SECONDS = 300  # for a case, kernels to compile included
BATCH = 2000  # cases per process: loading all kernels takes longer than a thousand cases


class LateError(Exception):
    """A case took too long."""


def run_case(number):
    """Return the class of a case and its message."""
    case = draw_case(number)
    # Dask in this thread: clusters are tested elsewhere, and starting one takes longer than everything else here.
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        dask.config.set(scheduler="synchronous"),
    ):
        try:
            given = give(case, folder)
        except Exception as error:  # noqa: BLE001 - what the libraries cannot make is no case
            return "not made", f"{type(error).__name__}: {error}"
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", shoal.core.errors.PrivacyWarning)
        warnings.simplefilter("ignore", shoal.FormulaWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="dask")  # it speaks to itself
        return _mask(case, given, Path(folder))


def _mask(case, given, folder):
    asked = dict(case.asked)
    if case.output is not None:
        asked["output"] = folder / f"out{case.output}"
    before = sorted(path.name for path in folder.iterdir())
    try:
        release = shoal.mask(given, **asked)
        check_release(case, release, asked.get("output", release.data))
        str(release)
    except (LateError, VerificationError, BrokenError) as error:
        kind = {LateError: "late", VerificationError: "not verified", BrokenError: "broken"}[type(error)]
        return kind, f"{error}\n{case}"
    except ShoalError as error:
        left = sorted(path.name for path in folder.iterdir())
        if left != before:
            return "left behind", f"{left}\n{error}\n{case}"
        return ("refused", str(error)) if _says_enough(str(error)) else ("unclear", f"{error}\n{case}")
    except Exception:  # noqa: BLE001 - every other exception is a defect, and is told as one
        return "raw", f"{traceback.format_exc(limit=-4)}{case}"
    return "released", ""


def _says_enough(message):
    """Return whether a refusal is a sentence that names a parameter or a column."""
    return message.endswith((".", "?", ".)")) and bool(re.search(r"'[^']*'|\bk\b|\d|File|column", message))


def run_cases(first, count):
    """Run cases in this process; yield the number, class and message of each."""

    def late(*_):
        raise LateError

    before = signal.signal(signal.SIGALRM, late)
    try:
        for number in range(first, first + count):
            signal.alarm(SECONDS)
            try:
                found = run_case(number)
            except LateError:
                found = "late", str(draw_case(number))
            finally:
                signal.alarm(0)
            yield number, *found
    finally:
        signal.signal(signal.SIGALRM, before)


DEFECTS = ("late", "hung", "died", "not verified", "left behind", "unclear", "broken", "raw")


def _batch(first, count):
    """Run cases in a separate process; return the counts of classes and the messages to print."""
    command = [sys.executable, "-m", "fuzz.running", "--here", str(first), str(count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 4 + count, check=False)
    except subprocess.TimeoutExpired as error:
        return Counter(hung=1), [f"hung {first} … {first + count}", (error.stdout or b"").decode()[-2000:]]
    lines = done.stdout.split("\0")
    found = Counter(line.split("\t")[0] for line in lines if "\t" in line)
    told = [line for line in lines if line.split("\t")[0] in DEFECTS]
    if done.returncode:
        found["died"] += 1
        told.append(f"died\t{first} … {first + count}: {done.stderr[-2000:]}")
    return found, told


def main(arguments):
    """Run the cases requested on the command line; return 1 if there was a defect."""
    if arguments[0] == "--here":
        with open_template() as template, sharing(template):
            for number, kind, said in run_cases(int(arguments[1]), int(arguments[2])):
                print(f"{kind}\t{number}\t{said}", end="\0", flush=True)  # noqa: T201
        return 0
    first, count = int(arguments[0]), int(arguments[1])
    total: Counter[str] = Counter()
    for start in range(first, first + count, BATCH):
        found, told = _batch(start, min(BATCH, first + count - start))
        total += found
        for line in told:
            print(line, flush=True)  # noqa: T201
        print(f"{start + BATCH - first:,}: {dict(total)}", flush=True)  # noqa: T201
    return int(any(total[kind] for kind in DEFECTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
