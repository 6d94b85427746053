"""Measure the page: seconds to load it, to update the count after a change of role, and to open 1.4 million records.

python benchmarks/page.py           needs Chromium, ``shoal[app]`` and Playwright, and adult.csv of the reference data
python benchmarks/page.py --large   a CSV file of 1.1 GB instead: opened, masked and written; it takes minutes
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from playwright.sync_api import sync_playwright
from results import table

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
ROWS = 1_400_000
LARGE = 4_900_000
KEYS = (
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "race",
    "sex",
    "hours-per-week",
    "native-country",
)


def main() -> None:
    if "--large" in sys.argv:
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            mask_large(browser, Path(folder))
            browser.close()
        return
    with tempfile.TemporaryDirectory() as folder:
        adult, large = Path(folder) / "adult.csv", Path(folder) / "large.csv"
        people = pl.read_csv(DATA / "adult.csv").select(KEYS)
        people.write_csv(adult)
        pl.concat([people] * (ROWS // len(people) + 1))[:ROWS].write_csv(large)
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            rows = measure(browser, Path(folder), adult, large)
            browser.close()
    with table("page", "Seconds until the page answers", "event | time, s {:.2f} | limit, s {:g}") as add:
        for row in rows:
            add(*row)


def measure(browser: object, folder: Path, adult: Path, large: Path) -> list[tuple[str, float, float]]:
    rows = []
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.set_default_timeout(120_000)
    started = time.perf_counter()
    server, address = serve(folder, adult)
    page.goto(address)
    page.locator("h1").wait_for()
    rows.append(("first page after shoal app", time.perf_counter() - started, 4.0))
    page.get_by_text("First records").wait_for()
    rows.append(("the table of 30,162 × 9 is open", time.perf_counter() - started, 6.0))
    page.get_by_role("button", name="2 Roles").click()
    counts, times = page.locator("[data-test=counts]"), []
    counts.wait_for()
    for role in ("other", "key", "other", "key", "other"):
        before, started = counts.inner_text(), time.perf_counter()
        page.get_by_label("Role of age").select_option(role)
        page.wait_for_function("(old) => document.querySelector('[data-test=counts]').innerText !== old", arg=before)
        times.append(time.perf_counter() - started)
    rows.append(("from setting a role to the new count, 30,162 × 9", sorted(times)[2], 0.3))
    page.get_by_role("button", name="1 Table").click()
    page.get_by_label("Path of the file").fill(str(large))
    started = time.perf_counter()
    page.get_by_label("Path of the file").press("Enter")
    page.locator("[data-test=state]", has_text=f"{ROWS:,} records").wait_for()
    rows.append((f"opening {ROWS:,} records, {large.stat().st_size / 1e6:.0f} MB", time.perf_counter() - started, 10.0))
    server.terminate()
    server.wait()
    return rows


def serve(folder: Path, *tables: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server of the page; return it and its address."""
    command = [sys.executable, "-m", "shoal", "app", "--no-browser", *map(str, tables)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    return server, re.search(r"http\S+", server.stdout.readline())[0]


def mask_large(browser: object, folder: Path) -> None:
    """Open, mask and write a file of over 1 GB: 4.9 million records, 4 of 12 numeric columns masked, 8 strata."""
    rng, large = np.random.default_rng(0), folder / "large.csv"
    columns = {f"x{i}": rng.lognormal(5, 1, LARGE) for i in range(12)}
    pl.DataFrame({"region": rng.integers(1, 9, LARGE), **columns}).write_csv(large)
    server, address = serve(folder)
    page = browser.new_page()
    page.set_default_timeout(3_600_000)
    page.goto(address)

    rows = []

    def note(event: str, started: float) -> None:
        rows.append((event, time.perf_counter() - started, memory(server.pid)))

    started = time.perf_counter()
    page.get_by_label("Path of the file").fill(str(large))
    page.get_by_label("Path of the file").press("Enter")
    page.get_by_text("its first part is shown").wait_for()
    note(f"opening {large.stat().st_size / 1e9:.2f} GB", started)
    page.get_by_role("button", name="2 Roles").click()
    for i in range(4, 12):
        page.get_by_label(f"Role of x{i}", exact=True).select_option("other")
    page.get_by_role("button", name="3 Protect").click()
    started, most = time.perf_counter(), 0.0
    page.get_by_role("button", name="Mask", exact=True).click()
    while not page.locator("[data-test=version-1]").count():
        most = max(most, memory(server.pid))
        page.wait_for_timeout(300)
    note(f"masking, at most {most:.2f} GB in all processes", started)
    page.get_by_role("button", name="5 Release").click()
    page.get_by_text("What you should know").wait_for()
    for box in page.locator("section", has_text="What you should know").get_by_role("checkbox").all():
        box.click()
    started = time.perf_counter()
    page.get_by_role("button", name="Write the files").click()
    page.locator("[data-test=written]").wait_for()
    note("writing", started)
    with table("large", "A file beyond 1 GB", "event | time, s {:.1f} | memory afterwards, GB {:.2f}") as add:
        for row in rows:
            add(*row)
    server.terminate()
    server.wait()


def memory(server: int) -> float:
    """Return the memory of a process and its descendants in GB."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,rss"], capture_output=True, text=True, check=True).stdout
    rows = [[int(cell) for cell in line.split()] for line in listed.splitlines()[1:]]
    family = {server}
    while new := {pid for pid, parent, _ in rows if parent in family} - family:
        family |= new
    return sum(size for pid, _, size in rows if pid in family) / 1e6


if __name__ == "__main__":
    main()
