"""The page: seconds to the first page, from choosing a role to the new count, and to open 1.4 million records.

python benchmarks/page.py     needs Chromium, ``shoal[app]`` and Playwright, and adult.csv of the reference data
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

import polars as pl
from playwright.sync_api import sync_playwright

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
ROWS = 1_400_000
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
    with tempfile.TemporaryDirectory() as folder:
        adult, large = Path(folder) / "adult.csv", Path(folder) / "large.csv"
        people = pl.read_csv(DATA / "adult.csv").select(KEYS)
        people.write_csv(adult)
        pl.concat([people] * (ROWS // len(people) + 1))[:ROWS].write_csv(large)
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            rows = measure(browser, Path(folder), adult, large)
            browser.close()
    for name, seconds, limit in rows:
        print(f"{name:<56} {seconds:6.2f} s   (at most {limit} s)")


def measure(browser: object, folder: Path, adult: Path, large: Path) -> list[tuple[str, float, float]]:
    rows = []
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.set_default_timeout(120_000)
    started = time.perf_counter()
    command = [sys.executable, "-m", "shoal", "app", "--no-browser", str(adult)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    page.goto(re.search(r"http\S+", server.stdout.readline())[0])
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
    rows.append(("from choosing a role to the new count, 30,162 × 9", sorted(times)[2], 0.3))
    page.get_by_role("button", name="1 Table").click()
    page.get_by_label("Path of the file").fill(str(large))
    started = time.perf_counter()
    page.get_by_label("Path of the file").press("Enter")
    page.locator("[data-test=state]", has_text=f"{ROWS:,} records").wait_for()
    rows.append((f"opening {ROWS:,} records, {large.stat().st_size / 1e6:.0f} MB", time.perf_counter() - started, 10.0))
    server.terminate()
    server.wait()
    return rows


if __name__ == "__main__":
    main()
