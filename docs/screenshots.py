"""Take the screenshots of the page for the README and the docs: ``python docs/screenshots.py``. Needs Chromium."""
# ruff: noqa: S603

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from shoal.demo import firms

HERE = Path(__file__).resolve().parent
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def walk(page: Page) -> None:
    """Go through the steps with the demo table, and take screenshots of two of them."""
    page.get_by_text("First records").wait_for()
    page.get_by_role("button", name="2 Roles").click()
    page.locator("[data-test=counts]").wait_for()
    page.get_by_text("over 8 keys and strata").wait_for()
    page.screenshot(path=HERE / "page-roles.png")
    for number, k in enumerate((3, 5, 10), start=1):
        page.get_by_role("button", name="3 Protect").click()
        entry = page.get_by_label("Group size k", exact=True)
        entry.fill(str(k))
        entry.press("Tab")
        page.locator(f"[data-test=preview][data-k='{k}']").wait_for()
        page.get_by_role("button", name="Mask", exact=True).click()
        page.locator(f"[data-test=version-{number}]").wait_for()
    page.wait_for_timeout(1000)
    page.screenshot(path=HERE / "page-compare.png")


def main() -> None:
    """Start a server with the demo table and a browser."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        table = Path(folder) / "firms.csv"
        firms().write_csv(table)
        command = [sys.executable, "-m", "shoal", "app", "--no-browser", str(table)]
        environment = {**os.environ, "XDG_STATE_HOME": folder}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        line = server.stdout.readline() if server.stdout is not None else ""
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(120_000)
        page.goto(re.findall(r"http\S+", line)[0])
        walk(page)
        browser.close()
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
