"""The page in a real browser: all steps with clicks and keys, Stop, reload, tabs, refusals, accessibility."""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import pytest
from conftest import ROOT, command

import shoal
from shoal.app.table_file import OpenedFile, identified
from shoal.demo import firms

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no chromium here: the page is not tested in a browser", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("nicegui")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
LONG = 60_000
playwright.expect.set_options(timeout=LONG)


class Server:
    """A server of the page, as a process."""

    def __init__(self, home, *arguments, program=("-m", "shoal", "app", "--no-browser")):
        self.state = home / "state"
        self.process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env={**os.environ, "XDG_STATE_HOME": str(self.state), "HOME": str(home)},
        )
        self.address = re.search(r"http\S+", self.process.stdout.readline())[0]

    def sessions(self):
        return list((self.state / "shoal").glob("session-*"))

    def connections(self):
        """Return the connections that browsers have open."""
        psutil = pytest.importorskip("psutil")  # Dask brings it
        return [one for one in psutil.Process(self.process.pid).net_connections("tcp") if one.raddr]

    def end(self, sign=None):
        if sign is not None:
            self.process.send_signal(sign)
        code = self.process.wait(LONG / 1000)
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("page")
    firms().write_csv(home / "firms.csv")
    (home / "broken.csv").write_text("a,b\n1,2\n3,4,5\n")
    return home


@pytest.fixture(scope="module")
def server(home):
    server = Server(home, home / "firms.csv")
    yield server
    assert server.end(signal.SIGINT) == 0
    assert not server.sessions()


@pytest.fixture(scope="module")
def context(server):
    """A browser that has used the token; one page stays open, as the server ends with its last page."""
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = browser.new_context(viewport={"width": 1280, "height": 720})
        context.set_default_timeout(LONG)
        context.new_page().goto(server.address)
        yield context
        browser.close()


@pytest.fixture
def page(context, server):
    """A new tab that must show no errors and contact no other server."""
    page, told, asked = context.new_page(), [], set()
    page.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
    page.goto(root(server))
    page.get_by_text("First records").wait_for()
    yield page
    page.close()
    assert not told
    assert asked <= {"127.0.0.1", None, ""}


def eventually(condition):
    """Wait for a condition that the page does not show, such as a file on the disk."""
    deadline = time.monotonic() + LONG / 1000
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def root(server):
    return server.address.partition("?")[0]


def go(page, step):
    page.get_by_role("navigation").get_by_role("button", name=step).click()
    page.get_by_role("heading", name=step, level=1).wait_for()


def start(page, **choices):
    """Mask with some choices of the step Protect, without waiting."""
    if not page.get_by_role("heading", name="Protect", level=1).is_visible():
        go(page, "Protect")
    if "method" in choices:
        page.get_by_label("Method", exact=True).select_option(choices["method"])
        page.get_by_text(re.compile("Time limit")).wait_for() if choices["method"] == "search" else None
    if "k" in choices:
        page.get_by_label("Group size k", exact=True).fill(str(choices["k"]))
        page.get_by_label("Group size k", exact=True).press("Tab")
        page.locator(f"[data-test=preview][data-k='{choices['k']}']", has_text="sample of").wait_for()
    page.get_by_role("button", name="Mask", exact=True).click()
    begun = page.locator("[data-test=job]").or_(page.get_by_role("heading", name="Compare", level=1)).first
    try:
        begun.wait_for(timeout=10_000)
    except playwright.TimeoutError:
        # A click while the page is rebuilt is lost: a user who sees nothing running clicks again.
        page.get_by_role("button", name="Mask", exact=True).click()


def drag(page, level, target):
    """Drag a level of an ordered category down to the position of another with the mouse."""
    rows = page.get_by_role("dialog").locator(".s-list > *")
    ready = "[...document.querySelectorAll('.s-list')].some(e => Object.keys(e).some(k => k.startsWith('Sortable')))"
    page.wait_for_function(ready)  # the code that makes the list draggable is loaded on first use
    rows.filter(has_text=level).locator("span").hover()  # once the dialog has stopped moving
    page.mouse.down()
    end = rows.filter(has_text=target).bounding_box()
    for turn in range(50):  # other levels make room one by one as the mouse moves
        page.mouse.move(end["x"] + 30, end["y"] + (0.7 + turn % 2 / 5) * end["height"], steps=4)
        if level in rows.filter(has_text=re.compile(f"{target}|{level}")).last.inner_text():
            break
        page.wait_for_timeout(50)
    page.mouse.up()


def move_by_arrows(page, level):
    """Move the last level up by a click, up once more by the keyboard, which stays at it, and down again."""
    rows = page.get_by_role("dialog").locator(".s-list > *")
    up = page.get_by_role("button", name=f"Move {level} up the list")
    up.click()
    up.press("Enter")
    playwright.expect(rows.nth(rows.count() - 3)).to_contain_text(level)
    playwright.expect(up).to_be_focused()
    page.get_by_role("button", name=f"Move {level} down the list").click()


def cancel(page):
    """Close the dialog, and wait until it has disappeared before the next one opens."""
    page.get_by_role("button", name="Cancel").click()
    playwright.expect(page.get_by_role("dialog")).to_have_count(0)


def tick_all(page):
    """Read all warnings: each is its own box."""
    boxes = page.locator("section", has_text="What you should know").get_by_role("checkbox")
    boxes.first.wait_for()
    for place in range(boxes.count()):
        boxes.nth(place).click()
        playwright.expect(boxes.nth(place)).to_be_checked()


def repeat(page):
    """Run the command that the page shows."""
    told = page.locator("[data-test=command]").inner_text()
    assert command(*shlex.split(told)[1:]).returncode == 0
    return told


def test_all_steps_on_the_demo_table(page, home):
    go(page, "Roles")
    counts = page.locator("[data-test=counts]")
    before = counts.inner_text()
    page.get_by_label("Role of sector").select_option("other")
    for name in ("sales", "wages", "assets", "profit", "research"):
        page.get_by_label(f"Role of {name}").select_option("other")
    playwright.expect(counts).not_to_have_text(before, use_inner_text=True)
    unique = firms().group_by("region", "employees").len()["len"].eq(1).sum()
    playwright.expect(counts).to_contain_text(f"{unique:,}")
    start(page, k=4)
    page.locator("[data-test=version-1]").wait_for()
    start(page, k=8)
    page.locator("[data-test=version-2]").wait_for()
    point = page.get_by_role("img", name="Map of versions").locator("text", has_text=re.compile("^1$")).last
    point.hover()
    playwright.expect(page.get_by_role("img", name="Map of versions")).to_contain_text("Version 1: univariate, k = 4")
    point.click()
    page.get_by_role("button", name="Release version 1").click()
    playwright.expect(page.locator("[data-test=verified]")).to_contain_text("shared by at least 4 records")
    write = page.get_by_role("button", name="Write the files")
    playwright.expect(write).to_be_disabled()
    tick_all(page)
    page.get_by_label("Name of the masked file").fill("given.csv")
    page.get_by_label("Name of the masked file").press("Tab")
    write.click()
    playwright.expect(page.locator("[data-test=written]")).to_contain_text("given-manifest.json")
    given = (home / "given.csv").read_bytes()
    (home / "given.csv").unlink()
    told = shlex.split(page.locator("[data-test=command]").inner_text())
    subprocess.run([sys.executable, "-m", *told], capture_output=True, check=True)  # as a user would
    assert (home / "given.csv").read_bytes() == given
    (home / "given.csv").unlink()
    exec(page.locator("[data-test=python]").inner_text(), {})
    assert (home / "given.csv").read_bytes() == given
    assert "same bytes" in command("mask", "--from-manifest", "given-manifest.json", cwd=home).stdout
    for words in ("Masking report", "The ring marks univariate at k = 4."):  # on the map, as from the command line
        assert words in (home / "given-report.html").read_text()
        playwright.expect(page.frame_locator("iframe").locator("body")).to_contain_text(words)


def test_unprotected_columns_come_first(page, home):
    """On the card of a version before any figure, and at the head of the checklist."""
    same = ["flu", "none", "none", "none"] * 25
    pl.DataFrame({"sales": [*range(1, 100), 10**6], "illness": sorted(same)}).write_csv(home / "patients.csv")
    page.get_by_label("Path of the file").fill(str(home / "patients.csv"))
    page.get_by_label("Path of the file").press("Enter")
    page.locator("[data-test=state]", has_text="100 records").wait_for()
    go(page, "Roles")
    for name, role in (("sales", "key"), ("illness", "confidential")):
        page.get_by_label(f"Role of {name}").select_option(role)
    start(page, k=5, method="mdav")
    card = page.locator("[data-test=version-1]")
    playwright.expect(card.locator("h3 + [data-test=verdict]")).to_contain_text("STOP: ")
    warnings = card.locator("[data-test=verdict] + [data-test=warning]")
    playwright.expect(warnings).to_contain_text("disclosed: illness in ")
    stop = warnings.inner_text()
    card.get_by_role("button", name="Release version 1").click()
    playwright.expect(
        page.locator("section", has_text="What is protected").locator("[data-test=verdict]")
    ).to_contain_text("STOP: do not release this table")
    labels = page.locator(".s-check label")
    playwright.expect(labels.first).to_have_text(stop)
    playwright.expect(labels.filter(has_text="(p %-rule): sales in 1 of 20 groups.")).to_have_count(1)


def test_all_steps_on_adult_from_its_path(page, home):
    source = next((p for p in (ROOT.parent / "shared" / "data", *_named_data()) if (p / "adult.csv").exists()), None)
    if source is None:
        pytest.skip("adult.csv is not here")
    shutil.copy(source / "adult.csv", home / "adult.csv")
    page.get_by_label("Path of the file").fill(str(home / "adult.csv"))
    page.get_by_label("Path of the file").press("Enter")
    page.locator("[data-test=state]", has_text="30,162 records").wait_for()
    go(page, "Roles")
    for row in page.get_by_label(re.compile("^Role of ")).all():
        name = row.get_attribute("aria-label").removeprefix("Role of ")
        row.select_option("key" if name in ("age", "sex") else "confidential" if name == "Salary" else "identifier")
    playwright.expect(page.locator("[data-test=counts]")).to_contain_text("over 2 keys")
    start(page, k=7, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    playwright.expect(page.locator("[data-test=version-1]")).to_contain_text("Values in every group")
    go(page, "Release")
    tick_all(page)
    page.get_by_role("button", name="Write the files").click()
    page.locator("[data-test=written]").wait_for()
    given = (home / "adult-masked.csv").read_bytes()
    (home / "adult-masked.csv").unlink()
    repeat(page)
    assert (home / "adult-masked.csv").read_bytes() == given


def open_table(page, path, records):
    go(page, "Table")
    page.get_by_label("Path of the file").fill(str(path))
    page.get_by_label("Path of the file").press("Enter")
    playwright.expect(page.locator("[data-test=state]")).to_contain_text(f"{path.name}: {records:,} records")


def set_k(page, k):
    go(page, "Protect")
    page.get_by_label("Group size k", exact=True).fill(str(k))
    page.get_by_label("Group size k", exact=True).press("Tab")
    page.locator(f"[data-test=preview][data-k='{k}']").wait_for()


def test_only_columns_shown_in_the_form_are_released(page, home):
    people = firms(200).with_columns(name=pl.format("Person {}", pl.int_range(200)))
    people.write_csv(home / "people.csv")
    open_table(page, home / "people.csv", 200)
    go(page, "Roles")
    page.get_by_label("Role of name").select_option("other")
    start(page, k=2, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    go(page, "Release")
    tick_all(page)
    write, outdated = page.get_by_role("button", name="Write the files"), page.locator("[data-test=outdated]")
    playwright.expect(write).to_be_enabled()
    go(page, "Roles")
    page.get_by_label("Role of name").select_option("identifier")
    set_k(page, 10)
    go(page, "Release")
    playwright.expect(outdated).to_contain_text("Role of name: Identifier: left out (was Released unchanged)")
    playwright.expect(outdated).to_contain_text("Group size k: 10 (was 2)")
    playwright.expect(write).to_have_count(0)
    page.get_by_role("button", name="Restore the settings of version 1").click()
    playwright.expect(write).to_be_disabled()  # what was ticked before the change does not count
    go(page, "Protect")
    playwright.expect(page.get_by_label("Group size k", exact=True)).to_have_value("2")
    go(page, "Roles")
    page.get_by_label("Role of name").select_option("identifier")
    set_k(page, 10)
    go(page, "Release")
    page.get_by_role("button", name="Run again with the current settings").click()
    page.locator("[data-test=version-2]").wait_for()
    page.get_by_role("button", name="Choose version 1").click()  # on purpose: the form follows
    go(page, "Protect")
    playwright.expect(page.get_by_label("Group size k", exact=True)).to_have_value("2")
    go(page, "Compare")
    page.get_by_role("button", name="Choose version 2").click()
    page.get_by_role("button", name="Release version 2").click()
    tick_all(page)
    write.click()
    page.locator("[data-test=written]").wait_for()
    released = pl.read_csv(home / "people-masked.csv")
    assert "name" not in released.columns
    assert released.group_by("employees", "sales").len()["len"].min() >= 10


def test_a_table_that_changed_on_disk_is_not_released_before_it_is_read_again(page, home):
    firms(200).write_csv(home / "moving.csv")
    open_table(page, home / "moving.csv", 200)
    start(page, k=3, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    go(page, "Release")
    tick_all(page)
    write = page.get_by_role("button", name="Write the files")
    playwright.expect(write).to_be_enabled()
    firms(210).write_csv(home / "moving.csv")
    write.click()  # of an older page
    playwright.expect(page.locator("[data-test=outdated]")).to_contain_text("File moving.csv on disk")
    assert not (home / "moving-masked.csv").exists()
    go(page, "Protect")
    page.get_by_role("button", name="Mask", exact=True).click()
    playwright.expect(page.get_by_role("alert")).to_have_count(2)  # the refusal, and the remedy
    playwright.expect(page.get_by_role("alert").first).to_contain_text("changed on disk since it was opened")
    page.get_by_role("button", name="Read it again").click()
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("moving.csv: 210 records")
    playwright.expect(page.get_by_role("alert")).to_have_count(0)
    go(page, "Protect")
    playwright.expect(page.get_by_label("Group size k", exact=True)).to_have_value("3")  # the settings stay
    go(page, "Release")
    playwright.expect(page.get_by_text("There is no version yet.")).to_be_visible()


def test_replace_overwrites_the_named_files_and_the_form_keeps_its_values(page, home):
    folder = home / "releases"
    folder.mkdir()
    firms(200).write_csv(folder / "small.csv")
    for name in ("small-masked.csv", "chosen.csv", "other.shoal"):
        (folder / name).write_text("precious")
    open_table(page, folder / "small.csv", 200)
    start(page, k=3, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    go(page, "Release")
    tick_all(page)
    write, name = page.get_by_role("button", name="Write the files"), page.get_by_label("Name of the masked file")
    name.fill("chosen.txt")
    page.get_by_label("Report: a page to read").click()
    write.click()
    playwright.expect(page.get_by_role("alert")).to_contain_text("must end in .csv")  # a failure
    playwright.expect(name).to_have_value("chosen.txt")
    name.fill("chosen.csv")
    page.get_by_role("button", name="Light or dark").click()  # the theme
    go(page, "Compare")  # a step
    go(page, "Release")
    playwright.expect(name).to_have_value("chosen.csv")
    playwright.expect(page.get_by_label("Report: a page to read")).not_to_be_checked()
    write.click()
    existing = page.get_by_role("dialog").locator("[data-test=existing]")
    playwright.expect(existing).to_have_text(str(folder / "chosen.csv"))
    cancel(page)
    assert (folder / "chosen.csv").read_text() == "precious"
    write.click()
    page.get_by_role("button", name="Replace", exact=True).click()
    page.locator("[data-test=written]").wait_for()
    playwright.expect(name).to_have_value("chosen.csv")  # after a write
    assert "region" in (folder / "chosen.csv").read_text()
    assert (folder / "small-masked.csv").read_text() == "precious"
    name.fill("small-masked.csv")
    write.click()  # consent to replace one file is not consent to replace another
    playwright.expect(existing).to_have_text(str(folder / "small-masked.csv"))
    cancel(page)
    assert (folder / "small-masked.csv").read_text() == "precious"
    go(page, "Compare")
    page.get_by_label("File", exact=True).fill(str(folder / "other.shoal"))
    page.get_by_role("button", name="Save", exact=True).click()
    playwright.expect(existing).to_have_text(str(folder / "other.shoal"))
    cancel(page)
    assert (folder / "other.shoal").read_text() == "precious"
    page.get_by_role("button", name="Light or dark").click()
    playwright.expect(page.get_by_label("File", exact=True)).to_have_value(str(folder / "other.shoal"))


def _named_data():
    return [Path(os.environ["SHOAL_DATA"])] if "SHOAL_DATA" in os.environ else []


def test_stop_keeps_the_best_groups_and_a_reload_keeps_the_work(page, context, server):
    go(page, "Protect")
    page.get_by_label("Method", exact=True).select_option("search")
    page.get_by_label("Time limit", exact=True).fill("600")  # Stop ends the search, however slow the machine is
    page.get_by_label("Time limit", exact=True).press("Tab")
    start(page)
    page.locator("[data-test=job]", has_text="left").wait_for()
    page.reload()
    page.locator("[data-test=job]", has_text="left").wait_for()
    other = context.new_page()  # which is unaware of this
    other.goto(root(server))
    other.get_by_text("First records").wait_for()
    playwright.expect(other.locator("[data-test=job]")).to_have_count(0)
    other.close()
    page.get_by_role("button", name="Stop").click()
    card = page.locator("[data-test=version-1]")
    playwright.expect(card).to_contain_text("stopped early")
    page.get_by_role("button", name="Release version 1").click()
    playwright.expect(page.get_by_text("A second run may give different values")).to_be_visible()


def test_all_steps_work_by_keyboard(page):
    def tab_to(name):
        for _ in range(60):
            page.keyboard.press("Tab")
            told = "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"
            if page.evaluate(told) == name:
                return
        pytest.fail(f"Tab does not reach {name}")

    tab_to("2 Roles")
    page.keyboard.press("Enter")
    page.locator("[data-test=counts]").wait_for()
    tab_to("Role of sector")
    page.keyboard.type("Rel")
    page.keyboard.press("Tab")
    playwright.expect(page.locator("[data-test=counts]")).to_contain_text("over 7 keys and strata")
    page.keyboard.press("Home")
    tab_to("3 Protect")
    page.keyboard.press("Space")
    page.get_by_role("heading", name="Protect", level=1).wait_for()
    tab_to("Mask")
    page.keyboard.press("Enter")
    page.locator("[data-test=version-1]").wait_for()


def test_a_damaged_file_is_refused_with_the_message_of_the_command_line(page, home):
    with pytest.raises(shoal.ShoalError) as refusal:
        shoal.inspect(home / "broken.csv")
    page.get_by_label("Path of the file").fill(f' "{home / "broken.csv"}" ')  # as some file managers copy it
    page.get_by_role("button", name="Open", exact=True).first.click()
    alert = page.get_by_role("alert")
    playwright.expect(alert).to_contain_text(str(refusal.value)[:60])
    page.get_by_role("button", name="Close this message").click()
    playwright.expect(alert).to_have_count(0)
    page.locator("input[type=file]").set_input_files(home / "broken.csv")
    playwright.expect(alert).to_contain_text("broken.csv")
    page.locator("input[type=file]").set_input_files(home / "firms.csv")
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("3,000 records")


def test_levels_are_put_in_order_and_the_work_is_saved_without_values(page, home):
    go(page, "Roles")
    for name in ("region", "sector"):
        page.get_by_label(f"Role of {name}").select_option("key")
    page.get_by_label("Kind of region", exact=True).select_option("ordinal")
    drag(page, "Centre", "North")
    move_by_arrows(page, "West")
    page.get_by_role("button", name="Use this order").click()
    page.get_by_role("button", name="Edit the kind of region").wait_for()
    sectors = {"Food": "eaten", "Textiles": "worn"}
    rows = [f"{name},{sectors.get(name, 'other')},all\n" for name in firms()["sector"].unique()]
    (home / "sectors.csv").write_text("".join(rows))
    page.get_by_label("Kind of sector", exact=True).select_option("hierarchy")
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(home / "sectors.csv")
    page.get_by_role("button", name="Edit the kind of sector").click()
    playwright.expect(page.get_by_label("Group of Food")).to_have_value("eaten")
    for sector, group in (("Food", "goods"), ("Textiles", "goods")):
        page.get_by_label(f"Group of {sector}").fill(group)
        page.get_by_label(f"Group of {sector}").press("Tab")
    page.get_by_role("button", name="Use these groups").click()
    playwright.expect(page.get_by_role("dialog")).to_have_count(0)
    start(page, k=6, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    page.get_by_label("File", exact=True).fill(str(home / "saved.shoal"))
    page.get_by_role("button", name="Save", exact=True).click()
    playwright.expect(page.locator("[data-test=saved]")).to_contain_text("saved.shoal")
    saved = (home / "saved.shoal").read_text()
    assert not re.search("West|Islands|Chemistry|Textiles", saved)
    assert json.loads(saved)["settings"]["kinds"]["region"] == [{"place": p} for p in (1, 2, 3, 0, 5, 4)]
    go(page, "Release")
    tick_all(page)
    page.get_by_label("Report: a page to read").click()  # not wanted this time
    page.get_by_role("button", name="Write the files").click()
    page.locator("[data-test=written]").wait_for()
    assert not (home / "firms-masked-report.html").exists()
    given = (home / "firms-masked.csv").read_bytes()
    (home / "firms-masked.csv").unlink()
    assert "--hierarchy sector=" in repeat(page)
    assert (home / "firms-masked.csv").read_bytes() == given
    page.reload()
    go(page, "Table")
    page.get_by_role("button", name="Open saved work").click()
    page.get_by_role("button", name="Open saved.shoal").click()
    go(page, "Compare")
    page.get_by_role("button", name="Run version 1 again").click()
    page.get_by_role("button", name="Release version 1").wait_for()
    go(page, "Roles")
    page.get_by_role("button", name="Edit the kind of region").click()
    playwright.expect(page.get_by_role("dialog")).to_contain_text(re.compile("North.*West.*South", re.DOTALL))
    cancel(page)


def test_roles_are_saved_to_a_file_and_read_from_one(page, home):
    """The file masks on the command line as the page does; one that does not fit the table is refused next to it."""
    firms(200).write_csv(home / "few.csv")
    open_table(page, home / "few.csv", 200)
    go(page, "Roles")
    page.get_by_label("Role of sector").select_option("confidential")
    page.get_by_label("Role of assets").select_option("identifier")
    page.get_by_role("button", name="Save the roles").click()
    playwright.expect(page.locator("[data-test=roles-saved]")).to_contain_text(f"Saved: {home / 'few.roles.toml'}")
    repeated = shlex.split(page.locator("[data-test=roles-command]").inner_text())
    roles = home / "few.roles.toml"
    assert repeated[:-1] == ["shoal", "mask", str(home / "few.csv"), "-k", "5", "--roles", str(roles), "-o"]
    done = command(*repeated[1:])
    assert done.returncode == 0, done.stderr
    page.get_by_role("button", name="Save the roles").click()
    page.get_by_role("dialog").locator("[data-test=existing]", has_text="few.roles.toml").wait_for()
    cancel(page)

    wrong = home / "wrong.toml"
    wrong.write_text(roles.read_text().replace('"assets"', '"asset"'))
    error = page.locator("[data-test=roles-error]")
    page.locator("input[type=file]").set_input_files(wrong)
    playwright.expect(error).to_contain_text("Roles file has column 'asset', which the table does not have.")
    playwright.expect(page.get_by_label("Role of assets")).to_have_value("identifier")
    page.get_by_label("Role of assets").select_option("key")
    page.get_by_label("Role of sector").select_option("key")
    page.locator("input[type=file]").set_input_files(roles)
    playwright.expect(page.get_by_label("Role of assets")).to_have_value("identifier")
    playwright.expect(page.get_by_label("Role of sector")).to_have_value("confidential")
    page.get_by_label("Role of sector").select_option("key")
    page.get_by_label("Path of a roles file").fill(str(roles))
    page.get_by_role("button", name="Use this file").click()
    playwright.expect(page.get_by_label("Role of sector")).to_have_value("confidential")
    start(page, k=5)
    page.locator("[data-test=version-1]").wait_for()
    go(page, "Release")
    tick_all(page)
    page.get_by_label("Name of the masked file").fill("few-by-page.csv")
    page.get_by_label("Name of the masked file").press("Tab")
    page.get_by_role("button", name="Write the files").click()
    playwright.expect(page.locator("[data-test=written]")).to_contain_text("few-by-page.csv")
    assert (home / "few-by-page.csv").read_bytes() == Path(repeated[-1]).read_bytes()


def test_a_dropped_table_gets_a_manifest_and_its_work_can_be_saved(page, home):
    (home / "kept").mkdir()
    firms(200).write_csv(home / "kept" / "dragged.csv")
    page.locator("input[type=file]").set_input_files(home / "kept" / "dragged.csv")
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("200 records")
    start(page, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    page.get_by_label("File", exact=True).fill(str(home / "dragged.shoal"))
    page.get_by_role("button", name="Save", exact=True).click()
    playwright.expect(page.locator("[data-test=saved]")).to_contain_text("dragged.shoal")
    go(page, "Release")
    tick_all(page)
    page.get_by_label("Folder").fill(str(home / "kept"))
    page.get_by_label("Folder").press("Tab")
    page.get_by_role("button", name="Write the files").click()
    page.locator("[data-test=written]").wait_for()
    manifest = json.loads((home / "kept" / "dragged-masked-manifest.json").read_text())
    assert manifest["input"]["path"] == "dragged.csv"
    told = command("mask", "--from-manifest", "dragged-masked-manifest.json", cwd=home / "kept").stdout
    assert "same bytes" in told
    saved = (home / "dragged.shoal").read_text()
    assert json.loads(saved)["table"] == "dragged.csv"
    page.get_by_role("navigation").get_by_role("button", name="Table").click()
    page.get_by_role("button", name="Open firms.csv").click()
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("3,000 records")
    open_work(page, "dragged.shoal")  # its table differs from the open one
    playwright.expect(page.get_by_role("alert")).to_contain_text("drag in dragged.csv")
    page.get_by_role(
        "button", name="Go back to dragged.csv and its versions"
    ).click()  # nothing is lost by a wrong click
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("Version 1: mdav, k = 5")
    open_work(page, "dragged.shoal")
    go(page, "Compare")
    page.get_by_role("button", name="Run version 1 again").wait_for()


def open_work(page, name):
    go(page, "Table")
    page.get_by_role("button", name="Open saved work").click()
    page.get_by_role("button", name=f"Open {name}").click()


def test_files_of_other_programs_are_masked(page, home):
    table = firms(200).drop("research")
    table.write_excel(home / "excel.xlsx")
    table.write_parquet(home / "arrow.parquet")
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(table.to_pandas(), home / "spss.sav")
    pyreadstat.write_dta(table.to_pandas(), home / "stata.dta")
    for name in ("excel.xlsx", "spss.sav", "stata.dta", "arrow.parquet"):
        page.get_by_label("Path of the file").fill(str(home / name))
        page.get_by_label("Path of the file").press("Enter")
        playwright.expect(page.locator("[data-test=state]")).to_contain_text(f"{name}: 200 records, 8 columns")
        start(page, method="mdav")
        page.get_by_role("button", name="Release version 1").click()
        tick_all(page)
        page.get_by_role("button", name="Write the files").click()
        page.locator("[data-test=written]").wait_for()
        given = home / name.replace(".", "-masked.")
        released = shoal.inspect(given)
        assert released.view.alike(["region", "employees", "sales"]).get(1, 0) == 0
        assert released.view.column("weight").to_list() == table["weight"].to_list()
        before = given.read_bytes()
        given.unlink()
        exec(page.locator("[data-test=python]").inner_text(), {})
        assert given.read_bytes() == before
        go(page, "Table")


def test_values_can_be_hidden(page):
    page.get_by_label("Show values of the table").click()
    playwright.expect(page.get_by_text("Values are hidden. Counts are still shown.")).to_be_visible()
    playwright.expect(page.get_by_role("cell")).to_have_count(0)
    go(page, "Roles")
    page.get_by_label("Kind of sector", exact=True).select_option("ordinal")
    playwright.expect(page.get_by_role("alert")).to_contain_text("Values are hidden")
    page.get_by_label("Kind of sector", exact=True).select_option("hierarchy")
    playwright.expect(page.get_by_role("dialog")).to_contain_text("Values are hidden")
    assert "Food" not in page.content()
    cancel(page)


def test_a_preview_follows_the_slider_while_it_moves(page):
    go(page, "Protect")
    preview = page.locator("[data-test=preview]")
    playwright.expect(preview).to_contain_text("A sample of")
    slider, before = page.get_by_label("Group size k, slider"), preview.inner_text()
    number = page.get_by_label("Group size k", exact=True)
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 12, box["y"] + box["height"] / 2)
    page.mouse.down()
    for share in (0.3, 0.6):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        k = slider.input_value()  # a preview for the previous k may still arrive
        playwright.expect(preview).to_have_attribute("data-k", k)
        playwright.expect(preview).not_to_have_text(before)
        playwright.expect(number).to_have_value(k)
        before = preview.inner_text()
    page.mouse.up()
    page.get_by_label("Value of a group").select_option("medoid")  # so does any other choice
    playwright.expect(preview).not_to_have_text(before)


DARK = "document.body.classList.contains('body--dark')"


def test_every_step_is_accessible_light_and_dark(page):
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    start(page, k=5)
    page.locator("[data-test=version-1]").wait_for()
    for _ in range(2):
        for step in ("Table", "Roles", "Protect", "Compare", "Release"):
            go(page, step)
            found = axe.run(page).response["violations"]
            serious = [
                (rule["id"], node["html"][:160])
                for rule in found
                if rule["impact"] in ("serious", "critical")
                for node in rule["nodes"]
            ]
            assert not serious, step
            for size in ({"width": 640, "height": 360}, {"width": 1280, "height": 720}):  # at 200 % zoom, and without
                page.set_viewport_size(size)
                page.wait_for_function(
                    "document.documentElement.scrollWidth <= innerWidth"
                )  # once charts have followed
        dark = page.evaluate(DARK)
        page.get_by_role("button", name="Light or dark").click()
        page.wait_for_function(f"{DARK} !== {json.dumps(dark)}")
        page.wait_for_function("!document.getAnimations().some(a => a.playState === 'running')")  # of colours


SCRIPT = "<img src=x onerror=window.hit=1>"  # no script must run
ELEMENT = "<u class=hit>{b}</u>"  # nor an element be made


def assert_unharmed(page):
    """No markup of the table, of a file's name or of saved work has become a part of the page, or of its report."""
    for frame in page.frames:
        assert frame.evaluate("window.hit === undefined && !document.querySelector('.hit, img[src=x]')"), frame.url


def hover_until(page, chart, words=""):
    """Move the mouse over all marks of a chart, so that every tooltip is shown, until words have been seen."""
    chart.scroll_into_view_if_needed()
    seen = ""

    def hover():
        nonlocal seen
        box = chart.bounding_box()
        for mark in chart.locator("svg path[fill]:not([fill=none]), svg text").all():
            place = mark.bounding_box()
            if place and place["width"] < box["width"] / 2:
                page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
                page.wait_for_timeout(20)
                seen += "".join(chart.text_content().replace("\u2060", "").split())
        return "".join(words.split()) in seen

    eventually(hover)
    assert_unharmed(page)


COLUMNS = {name: f"{name} {SCRIPT}{ELEMENT}" for name in ("employees", "sales", "wages", "sector", "region")}


def harmful(folder, records):
    """Write a table with markup in its name, in those of its columns and in its values."""
    folder.mkdir(exist_ok=True)
    cells = firms(records).select(*COLUMNS).rename(COLUMNS)
    cells = cells.with_columns(pl.col(COLUMNS["sector"], COLUMNS["region"]) + f" {SCRIPT}{ELEMENT}")
    cells.write_csv(folder / f"{records} {SCRIPT}.csv")
    return folder / f"{records} {SCRIPT}.csv"


def test_markup_in_names_values_and_files_stays_text(page, home):
    folder = home / ELEMENT.replace("/", "")
    page.locator("input[type=file]").set_input_files(harmful(folder, 200))
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("200 records")
    table = harmful(folder, 300)
    open_table(page, table, 300)
    assert_unharmed(page)
    page.get_by_role("button", name="Browse").click()
    page.get_by_role("button", name=f"Open {table.name}").first.wait_for()
    assert_unharmed(page)
    cancel(page)
    go(page, "Roles")
    for name in COLUMNS.values():
        page.get_by_label(f"Role of {name}", exact=True).select_option("key")
    for kind in ("ordinal", "hierarchy"):
        page.get_by_label(f"Kind of {COLUMNS['sector']}", exact=True).select_option(kind)
        page.get_by_role("dialog").get_by_text(f"Food {SCRIPT}").wait_for()
        assert_unharmed(page)
        cancel(page)
        # The form is shown again with the kind that the column still has.
        playwright.expect(page.get_by_label(f"Kind of {COLUMNS['sector']}", exact=True)).not_to_have_value(kind)
    page.get_by_label(f"Role of {COLUMNS['region']}", exact=True).select_option("confidential")
    page.get_by_label(f"Importance of {COLUMNS['sales']}", exact=True).fill(SCRIPT)
    page.get_by_label(f"Importance of {COLUMNS['sales']}", exact=True).press("Tab")
    playwright.expect(page.get_by_role("alert")).to_contain_text(SCRIPT)
    assert_unharmed(page)
    start(page, k=4, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    hover_until(page, page.get_by_role("img", name="Map of versions"))
    pair = f"{COLUMNS['employees']} and {COLUMNS['sales']}"  # shown as is
    hover_until(page, page.get_by_role("img", name="Correlations before and after"), pair)
    for name, words in (("sales", "before"), ("sector", SCRIPT)):
        page.get_by_label("Column", exact=True).select_option(COLUMNS[name])
        hover_until(page, page.get_by_role("img", name=f"Distribution of {COLUMNS[name]}"), words)
    go(page, "Release")
    tick_all(page)
    page.get_by_role("button", name="Write the files").click()
    page.locator("[data-test=written]").wait_for()
    page.frame_locator("iframe").get_by_text("Masking report").first.wait_for()
    assert_unharmed(page)


def test_markup_in_saved_work_stays_text(page, home):
    folder = home / ELEMENT.replace("/", "")
    open_table(page, harmful(folder, 250), 250)
    start(page, k=4, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    page.get_by_label("File", exact=True).fill(str(folder / f"{SCRIPT}.shoal"))
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator("[data-test=saved]").wait_for()
    content = json.loads((folder / f"{SCRIPT}.shoal").read_text())
    content["tries"][0]["figures"] |= {"method": f"{SCRIPT}{ELEMENT}", "verified": SCRIPT}
    content["settings"]["asked"] |= {"method": SCRIPT, "small": ELEMENT, "sums": [SCRIPT], "diversity": ELEMENT}
    (folder / f"{SCRIPT}.shoal").write_text(json.dumps(content))
    open_work(page, f"{SCRIPT}.shoal")
    playwright.expect(page.locator("[data-test=state]")).to_contain_text(f"Version 1: {SCRIPT}")
    for step in ("Table", "Roles", "Protect", "Release", "Compare"):
        go(page, step)
        assert_unharmed(page)
    playwright.expect(page.locator("[data-test=version-1]")).to_contain_text(SCRIPT)
    hover_until(page, page.get_by_role("img", name="Map of versions"), f"{SCRIPT}{ELEMENT}")
    for name, value in (("k", "2 :title=window.hit=1"), (SCRIPT, 1), ("options", SCRIPT)):
        changed = content | {"settings": content["settings"] | {"asked": {"k": 3, name: value}}}
        (folder / f"{SCRIPT}.shoal").write_text(json.dumps(changed))
        open_work(page, f"{SCRIPT}.shoal")
        playwright.expect(page.get_by_role("alert")).to_contain_text("does not fit")
        go(page, "Protect")
        page.locator("[data-test=preview]", has_text="sample of").wait_for()
        assert_unharmed(page)
        page.get_by_role("button", name="Close this message").click()
        playwright.expect(page.get_by_role("alert")).to_have_count(0)


def test_only_requests_with_the_token_of_the_page_are_answered(server, context):
    where = urlsplit(server.address)

    def ask(path="/", method="GET", **headers):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        connection.close()
        return answer.status

    cookie = "; ".join(f"{c['name']}={c['value']}" for c in context.cookies())
    here = f"http://{where.hostname}:{where.port}"
    socket = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    socket["Sec_WebSocket_Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    wire = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert ask(cookie=cookie) == 200
    assert ask() == 403
    assert ask("/?token=wrong") == 403
    assert ask(f"/?{where.query}") == 403  # the token works once
    assert ask(cookie=cookie, host=f"localhost:{where.port}") == 403
    assert ask(cookie=cookie, host="evil.example") == 403
    assert ask(cookie=cookie, origin="http://evil.example") == 403
    assert ask("/closed", "POST", cookie=cookie, origin="http://evil.example") == 403
    assert ask(wire, cookie=cookie, origin=here, **socket) == 101
    assert ask(wire, cookie=cookie, origin="http://evil.example", **socket) == 403
    assert ask(wire, origin=here, **socket) == 403
    assert ask("/report/nobody/1", cookie=cookie) == 404
    assert ask("/_nicegui/upload", "POST", cookie=cookie, content_length="2000020000") == 413
    assert ask("/_nicegui/upload", "POST", cookie=cookie, transfer_encoding="chunked") == 413
    assert {oct(path.stat().st_mode & 0o777) for path in (server.state / "shoal", *server.sessions())} == {"0o700"}


def test_closing_the_page_ends_the_server_after_a_while(context, tmp_path):
    program = "from functools import partial; from shoal.app.server import serve; "
    program += "serve(None, browser=False, wait=2, tell=partial(print, flush=True))"
    server = Server(tmp_path, program=["-c", program])
    page = context.new_page()
    page.goto(server.address)
    page.get_by_role("heading", name="Table", level=1).wait_for()
    page.goto("about:blank")
    assert server.end() == 0
    assert not server.sessions()
    page.close()


def test_work_survives_its_page(context, tmp_path):
    firms(200).write_csv(tmp_path / "firms.csv")
    server = Server(tmp_path, tmp_path / "firms.csv")
    page = context.new_page()
    page.goto(server.address)
    page.get_by_text("First records").wait_for()
    questions = []
    page.on("dialog", lambda dialog: (questions.append(dialog.type), dialog.accept()))
    go(page, "Roles")
    counts = page.locator("[data-test=counts]")
    before = counts.inner_text()
    page.get_by_label("Role of sales").select_option("identifier")
    playwright.expect(counts).not_to_have_text(before, use_inner_text=True)
    page.goto("about:blank")  # nothing would be lost, so no question appears
    page.go_back()
    go(page, "Roles")
    playwright.expect(page.get_by_label("Role of sales")).to_have_value("identifier")
    start(page, k=3, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    page.wait_for_function("window.unsaved")
    assert not questions
    page.goto("about:blank")
    assert questions == ["beforeunload"]
    page.close()
    eventually(lambda: not server.connections())  # until then a new page is another tab
    page = context.new_page()
    page.goto(root(server))  # another tab continues the work, as no other page is open
    go(page, "Release")
    page.get_by_role("button", name="Write the files").wait_for()
    page.close()
    assert server.end(signal.SIGINT) == 0


def test_settings_survive_a_killed_server_and_originals_do_not(context, tmp_path):
    firms(200).write_csv(tmp_path / "firms.csv")
    server = Server(tmp_path, tmp_path / "firms.csv")
    page = context.new_page()
    page.goto(server.address)
    page.get_by_text("First records").wait_for()
    go(page, "Roles")
    page.get_by_label("Role of sales").select_option("identifier")
    firms(210).write_csv(tmp_path / "firms.csv")
    start(page, k=3, method="mdav")
    page.get_by_role("button", name="Read it again").click()
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("210 records")
    start(page)
    page.locator("[data-test=version-1]").wait_for()
    go(page, "Table")
    page.locator("input[type=file]").set_input_files(tmp_path / "firms.csv")
    # The uploaded table is open; before, only the table as it was before "Read it again" is listed, without a version.
    page.get_by_text("firms.csv: one version").wait_for()
    (session,) = server.sessions()
    eventually(lambda: list(session.rglob("firms.csv")) and list(session.rglob("labels.csv")))
    table = tmp_path / "firms.csv"
    settings = server.state / "shoal" / f"settings-{identified(OpenedFile(table, str(table))).key}.json"
    eventually(lambda: settings.exists() and json.loads(settings.read_text())["settings"]["asked"]["k"] == 3)
    assert json.loads(settings.read_text())["settings"]["roles"]["sales"] == "identifier"
    server.end(signal.SIGKILL)
    page.close()
    left = server.sessions()
    again = Server(tmp_path, tmp_path / "firms.csv")
    assert not any(folder.exists() for folder in left)
    page = context.new_page()
    page.goto(again.address)
    playwright.expect(page.locator("[data-test=restored]")).to_contain_text("your last session")
    go(page, "Protect")
    playwright.expect(page.get_by_label("Group size k", exact=True)).to_have_value("3")
    go(page, "Roles")
    playwright.expect(page.get_by_label("Role of sales")).to_have_value("identifier")
    page.get_by_role("button", name="Use the proposed settings").click()
    playwright.expect(page.get_by_label("Role of sales")).to_have_value("key")
    page.close()
    assert again.end(signal.SIGINT) == 0
    kept = (again.state / "shoal").glob("settings-*.json")
    assert {oct(path.stat().st_mode & 0o777) for path in kept} == {"0o600"}


def test_a_file_that_cannot_be_read_as_is_is_read_with_options(page, home):
    """Title lines, a missing header and sheets; the command of the release has the same options."""
    titled = home / "titled.csv"
    records = "".join(f"{20 + i % 40},{1000 + 7 * i}\n" for i in range(60))
    titled.write_text(f"Wages of 2020\n\nage,pay\n{records}")
    go(page, "Table")
    page.get_by_label("Path of the file").fill(str(titled))
    page.get_by_label("Path of the file").press("Enter")
    playwright.expect(page.get_by_role("alert")).to_contain_text("Lines above the header: 2")
    card = page.locator("section", has_text="Read titled.csv with other options")
    card.get_by_label("Lines above the header").fill("two")
    card.get_by_role("button", name="Read titled.csv again").click()
    playwright.expect(page.get_by_role("alert")).to_contain_text("must be a number of lines, 0 or more, got 'two'")
    card.get_by_label("Lines above the header").fill("2")
    card.get_by_role("button", name="Read titled.csv again").click()
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("titled.csv: 60 records, 2 columns")
    playwright.expect(card).to_have_count(0)
    start(page, k=4, method="mdav")
    page.locator("[data-test=version-1]").wait_for()
    go(page, "Release")
    playwright.expect(page.locator("[data-test=command]")).to_contain_text("--skip-rows 2")

    (home / "bare.csv").write_text(records)
    go(page, "Table")
    page.get_by_label("Path of the file").fill(str(home / "bare.csv"))
    page.get_by_label("Path of the file").press("Enter")
    card = page.locator("section", has_text="Read bare.csv with other options")
    card.get_by_role("checkbox").click()
    card.get_by_role("button", name="Read bare.csv again").click()
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("bare.csv: 60 records, 2 columns")
    playwright.expect(page.locator("section", has_text="First records")).to_contain_text("column_2")


def test_the_sheet_of_an_excel_file_is_chosen(page, home):
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra shoal[excel] is not installed")
    with xlsxwriter.Workbook(home / "book.xlsx") as book:
        for name, records in (("Adults", 40), ("Children", 30)):
            sheet = book.add_worksheet(name)
            for place, row in enumerate([["age", "pay"], *([i % 9, 7 * i] for i in range(records))]):
                sheet.write_row(place, 0, row)
    open_table(page, home / "book.xlsx", 40)
    playwright.expect(page.get_by_label("Sheet", exact=True)).to_have_value("Adults")
    page.get_by_label("Sheet", exact=True).select_option("Children")
    page.get_by_role("button", name="Read book.xlsx again").click()
    playwright.expect(page.locator("[data-test=state]")).to_contain_text("book.xlsx: 30 records")
    playwright.expect(page.get_by_label("Sheet", exact=True)).to_have_value("Children")
