"""The report: its content, values it must never show, and its display in a real browser."""

import json
import pickle
import re
import shutil
import subprocess
import warnings
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from conftest import command
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.comparison.around import compare_around
from shoal.core.display import for_people
from shoal.core.errors import FileError, InputError
from shoal.core.measures import standardise
from shoal.demo import firms
from shoal.report.figures import short
from shoal.report.pages import release_page
from shoal.report.protection import protected_bins, protected_values

CHROMIUM = next(
    (path for name in ("chromium", "google-chrome", "chromium-browser") if (path := shutil.which(name))), None
)
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's release and its report."""
    table = firms(2500)
    columns = ["employees", "sales", "wages", "assets", "profit", "research"]
    release = shoal.mask(table, 5, columns=columns, by="region", weights="weight", rest="keep")
    page = release.report(
        tmp_path_factory.mktemp("report") / "report.html", original=table, comparison=compare_around(release, table)
    )
    return table, release, page


class Elements(HTMLParser):
    """Collect the elements of a page, its text and whether tags close."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in {"style", "title"}:
            self.words.append(data)


def test_page_is_complete(demo):
    _, release, path = demo
    page = Elements(path.read_text(encoding="utf-8"))
    assert page.open == []
    text = re.sub(r"\s+", " ", " ".join(page.words))
    for words in (
        f"{100 - release.loss:.1f} %",
        "What does it not protect?",
        "Groups",
        "Columns before and after",
        "Loss per column",
        "Relations between columns",
        "what it does not mean",
        "Risk and utility",
        "Records that moved farthest",
        "how to repeat it",
        '"method": "auto"',
        '"numpy"',
        "by=['region']",
    ):
        assert words in text, words


def test_every_figure_has_a_text_alternative(demo):
    text = demo[2].read_text(encoding="utf-8")
    drawings = [attributes for tag, attributes in Elements(text).found if tag == "svg"]
    assert len(drawings) == 6 + 4
    for attributes in drawings:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"]) > 30
    assert text.count("<title>") == len(drawings) + 1
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names)), "identifiers of two figures clash"


def test_page_needs_nothing_else(demo):
    text = demo[2].read_text(encoding="utf-8")
    addresses = set(re.findall(r"(?:https?:)?//[\w./-]+", text))
    assert {address for address in addresses if "www.w3.org" not in address} == set()
    for tag, attributes in Elements(text).found:
        assert tag not in {"script", "img", "iframe", "object", "embed"}
        assert not attributes.get("href", "#").startswith("http")
    assert "@import" not in text


# --- no original value ---------------------------------------------------------------------------------------------


def numbers_of(text):
    return np.array([float(match.replace(",", "")) for match in NUMBER.findall(text) if match.replace(",", "") != "."])


def leaks(text, originals):
    """Return the originals that a page holds, to six digits."""
    numbers = np.unique(numbers_of(text))
    place = np.searchsorted(numbers, originals)
    near = [numbers[np.clip(place + shift, 0, len(numbers) - 1)] for shift in (-1, 0)]
    return originals[np.any([np.abs(n - originals) <= 1e-6 * np.abs(originals) for n in near], axis=0)]


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("columns", [1, 3])
def test_no_original_value_is_in_the_page(tmp_path, k, columns):
    rng = np.random.default_rng(columns)
    # All values differ, and none could equal a count, a coordinate or a share by chance.
    X = np.exp(rng.normal(9, 1.0, (400, columns))) + 2000 + rng.random((400, columns))
    release = shoal.mask(X, k)
    text = release.report(tmp_path / "page.html", original=X).read_text(encoding="utf-8")
    text += shoal.assess(X, release.data).report(tmp_path / "assessment.html").read_text(encoding="utf-8")
    originals = X[~np.isin(X, release.data)]
    assert len(originals) == X.size
    assert leaks(text, originals).size == 0
    numbers = set(numbers_of(text).tolist())
    for column in X.T:
        for extreme in (column.min(), column.max()):
            for digits in (3, 4, 5, 6):
                assert float(f"{extreme:.{digits}g}") not in numbers
    assert leaks(text + f"{X[7, 0]:.3f}", originals).size == 1, "the check itself must find a value"


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=80),
    st.integers(2, 6),
)
@settings(max_examples=80, deadline=None)
def test_bins_hold_k_records_and_start_from_released_values(values, k):
    x = np.sort(np.array(values))
    labels = np.minimum(np.arange(len(x)) // k, max(len(x) // k - 1, 0))
    y = (np.bincount(labels, x) / np.bincount(labels))[labels]
    bins = protected_bins(x, y, k)
    if bins is None:
        return
    assert bins.before.sum() == bins.after.sum() == len(x)
    assert min(bins.before.min(), bins.after.min()) >= k
    assert len(bins.edges) == len(bins.before) - 1
    assert (np.diff(bins.edges) > 0).all()
    slack = 1e-9 * max(1.0, np.abs(y).max())
    assert bins.edges[0] >= y.min() - slack
    assert bins.edges[-1] <= y.max() + slack


def test_edges_do_not_depend_on_the_originals():
    """Originals may only tip a count over k: edges are taken from those that the released values give."""
    rng = np.random.default_rng(2)
    x = rng.lognormal(size=600)
    y = shoal.mask(x, 5).data
    first = protected_bins(x, y, 5)
    x[np.argmax(x)] *= 1e6
    x[np.argmin(x)] = -1e9
    second = protected_bins(x, y, 5)
    np.testing.assert_array_equal(first.edges, second.edges)


def test_a_release_without_original_names_unmeasured_figures(demo, tmp_path):
    table, release, _ = demo
    stored = pickle.dumps(release)
    assert table["sales"].to_numpy()[:50].tobytes() not in stored
    text = pickle.loads(stored).report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "was not measured, because the original was not available" in text
    assert release.verified in text
    assert "moved farthest" not in text


@pytest.mark.parametrize("change", ["order", "values", "records", "missing"])
def test_another_table_is_refused_as_original(demo, tmp_path, change):
    table, release, _ = demo
    other = {
        "order": table[::-1],
        "values": table.with_columns(sales=pl.col("sales").sqrt()),
        "records": table[:-1],
        "missing": table.with_columns(profit=pl.when(pl.col("profit") > 0).then(pl.col("profit"))),
    }[change]
    with pytest.raises(InputError, match="'original' is not the table this release was made from"):
        release.report(tmp_path / "page.html", original=other)
    assert not (tmp_path / "page.html").exists()


# --- all kinds of tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "keywords"),
    [
        (pl.DataFrame({"x": np.arange(20.0)}), {}),
        (pl.DataFrame({"x": np.full(20, 7.0), "y": np.arange(20.0)}), {}),
        (pl.DataFrame({"x": np.full(20, 7.0)}), {"columns": ["x"]}),
        (pl.DataFrame({"x": [1.0, 2.0, 3.0]}), {}),
        (pl.DataFrame({"$x_1$ <b>&": np.arange(30.0) ** 3, "列": np.arange(30.0)[::-1] % 7}), {}),
        (pl.DataFrame({"x": [None, None, None, *map(float, range(17))]}), {"missing": "group"}),
        (pl.DataFrame({"x": [None, *map(float, range(17))]}), {"missing": "drop", "max_left_out": "10%"}),
        (pl.DataFrame({"x": 1e9 + np.arange(40) / 1e3, "y": -np.exp(np.arange(40.0) / 3)}), {"integers": "round"}),
        (pl.DataFrame({f"column {i}": np.random.default_rng(i).normal(size=50) for i in range(30)}), {}),
        (np.random.default_rng(0).normal(size=(40, 2)), {"aggregate": "medoid"}),
        (np.random.default_rng(0).normal(size=(40, 2)), {"weights": np.arange(1.0, 41.0)}),
    ],
)
def test_ordinary_and_odd_tables(tmp_path, table, keywords):
    path = shoal.mask(table, 3, **keywords).report(tmp_path / "page.html", original=table)
    page = Elements(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert "nan" not in " ".join(page.words).replace("dominant", "").lower().split()


def column_rows(page):
    """Return the rows of the table of means and standard deviations, by column, and the text before it."""
    table = next(section for section in page.sections if section.title == "Columns before and after").tables[0]
    return {name: cells for name, *cells in table.rows}, table.note


def in_percent(cell):
    return float(cell.removesuffix(" %").replace("−", "-"))


@pytest.mark.parametrize("way", ["column", "vector", "file", "shuffled vector"])
def test_means_in_the_report_of_a_weighted_release_are_weighted(tmp_path, way):
    """The weighted mean of a column stays what it was; the plain mean does not, and is not shown."""
    table = firms(400)
    rng = np.random.default_rng(0)
    table = table.with_columns(weight=pl.Series(np.exp(rng.normal(size=len(table)))))
    asked = {"columns": ["sales", "research"], "missing": "drop", "weights": "weight", "max_left_out": "10%"}
    original = table
    if "vector" in way:
        asked["weights"] = table["weight"].to_numpy()
    if way == "file":
        original = tmp_path / "firms.csv"
        table.write_csv(original)
    if way == "shuffled vector":
        asked["shuffle"] = 1
    release = shoal.mask(original, 5, **asked)
    rows, note = column_rows(release_page(release, original=original))
    kept = table[release.kept.tolist()]
    w = kept["weight"].to_numpy()
    for name, (mean, change, sd, sd_change, *_) in rows.items():
        x, y = kept[name].to_numpy(), pl.DataFrame(release.data)[name].to_numpy()
        assert abs(y.mean() / x.mean() - 1) > 0.005, "the plain mean tells nothing of a weighted release"
        assert mean == for_people(np.average(x, weights=w))
        assert in_percent(change) == 0
        spreads = [np.sqrt(np.cov(v, aweights=w, ddof=0) * len(v) / (len(v) - 1)) for v in (x, y)]
        assert sd == for_people(spreads[0])
        assert in_percent(sd_change) == pytest.approx(100 * (spreads[1] / spreads[0] - 1), abs=0.006)
    assert "both weighted" in note
    plain = shoal.mask(table, 5, columns=["sales"])
    rows, note = column_rows(release_page(plain, original=table))
    assert rows["sales"][0] == for_people(table["sales"].mean())
    assert "weight" not in note


def test_a_weighted_report_needs_the_table_with_its_weights():
    table = firms(300)
    release = shoal.mask(table, 5, columns=["sales"], weights="weight")
    with pytest.raises(InputError, match="is not the table this release was made from"):
        release_page(release, original=table.drop("weight"))


def test_a_weighted_deviation_of_one_group_is_not_shown():
    """One heavy group makes up the weighted variance within groups, though hardly any of the loss."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.uniform(size=600), "w": 1.0})
    labels = shoal.mask(table, 3, columns=["x"]).labels
    group = np.flatnonzero(labels == labels[0]).tolist()
    heavy = table.with_columns(w=pl.Series(np.where(np.isin(np.arange(600), group), 1e6, 1.0)))
    for frame, hidden in ((table, False), (heavy, True)):
        release = shoal.mask(frame, 3, columns=["x"], weights="w")
        assert np.array_equal(release.labels, labels)
        mean, _, sd, change, *_ = column_rows(release_page(release, original=frame))[0]["x"]
        assert mean != "–"
        assert ((sd, change) == ("–", "–")) is hidden


def test_a_release_that_is_not_k_anonymous_is_marked(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.NotKAnonymousWarning)
        release = shoal.mask(X, 3, method="individual-ranking")
    for original in (X, None):
        text = release.report(tmp_path / "page.html", original=original).read_text(encoding="utf-8")
        assert "NOT k-anonymous for whole records" in text
        assert "<strong>none</strong>" in text
        assert "moved farthest" not in text


@pytest.mark.parametrize("measured", [True, False])
def test_one_column_that_is_grouped_alone_is_k_anonymous(tmp_path, measured):
    X = np.random.default_rng(0).normal(size=(60, 1))
    release = shoal.mask(X, 3, method="individual-ranking")
    page = release.report(tmp_path / "r.html", original=X if measured else None).read_text(encoding="utf-8")
    assert release.anonymous
    assert "NOT k-anonymous" not in page
    assert "≥ 3" in page


def test_an_assessment_has_a_page(tmp_path):
    table = firms(300)
    masked = shoal.mask(table, 3, columns=["sales", "wages"], rest="keep").data
    table.write_csv(tmp_path / "in.csv")
    masked.write_csv(tmp_path / "out.csv")
    done = command("assess", "in.csv", "out.csv", "-k", 5, "--confidential", "sector", "--model", "profit ~ sales",
                   "--report", "page.html", cwd=tmp_path)  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1].split()) == (1, ["report", "page.html"])
    page = Elements(text := (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.open == []
    for words in (
        "≥ 3",
        "sensitive: sector",
        "within 95\u00a0%",
        "in groups of fewer than the promised 5",
    ):
        assert words in text
    assert command("assess", "in.csv", "out.csv", "--report", "page.txt", cwd=tmp_path).returncode == 1


def test_a_comparison_makes_the_map(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    compared = shoal.compare(X, [3, 6], methods=["mdav", "centroid", "individual-ranking"])
    release = shoal.mask(X, 3)
    text = release.report(tmp_path / "page.html", original=X, comparison=compared).read_text(encoding="utf-8")
    assert "centroid k=6" in text
    assert "Not drawn: individual-ranking" in text


def test_commands_in_the_page_repeat_the_run(tmp_path):
    table = firms(300)
    table.write_csv(tmp_path / "firms.csv")
    asked = [
        "mask", "firms.csv", "-k", "4", "-c", "sales", "-c", "wages", "-m", "v-mdav", "-O", "gamma=0.2", "--by",
        "region", "--aggregate", "median", "-o", "out.csv", "--report", "page.html",
    ]  # fmt: skip

    done = command(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["report", "page.html"]
    first = (tmp_path / "out.csv").read_bytes()
    text = " ".join(Elements((tmp_path / "page.html").read_text(encoding="utf-8")).words)
    line = re.search(r"shoal (mask firms\.csv.*out\.csv)", text)[1]
    (tmp_path / "out.csv").unlink()
    assert command(*line.split(), cwd=tmp_path).returncode == 0
    assert (tmp_path / "out.csv").read_bytes() == first


def test_an_option_that_is_an_object_is_no_obstacle(tmp_path):
    """A spanning tree built before may be an option: it has no place in a command or a manifest."""
    X = standardise(np.random.default_rng(0).normal(size=(40, 2)))
    release = shoal.mask(X, 3, method="mst", tree=shoal.spanning_tree(X))
    text = release.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "given as SpanningTree" in text
    assert "tree=" not in text
    assert not release.repeatable


def test_targets_are_checked_before_work(tmp_path):
    firms(50).write_csv(tmp_path / "firms.csv")
    base = ["mask", "firms.csv", "-k", "3", "-c", "sales", "-o", "out.csv", "--report"]
    for target, words in (("page.txt", "must end in .html"), ("nowhere/page.html", "does not exist")):
        done = command(*base, target, cwd=tmp_path)
        assert done.returncode == 1
        assert words in done.stderr
        assert not (tmp_path / "out.csv").exists()
    release = shoal.mask(np.arange(9.0), 3)
    with pytest.raises(FileError, match="does not exist"):
        release.report(tmp_path / "nowhere" / "page.html")


def test_numbers_are_written_for_people(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"turnover": 79_216.4 + 20_000 * rng.random(300), "share": rng.random(300) / 1000})
    text = shoal.mask(table, 5).report(tmp_path / "page.html", original=table).read_text(encoding="utf-8")
    shown = re.sub(r"<(style|svg|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
    mean = round(table["turnover"].mean() / 10) * 10
    assert f"{mean:,}" in shown
    assert not re.findall(r"\d[eE][+-−]?\d", shown)


def test_ticks_are_short():
    assert [short(v) for v in (0, 1500, 2e6, -4e9, 0.25)] == ["0", "1.5k", "2M", "−4G", "0.25"]


# --- a real browser ------------------------------------------------------------------------------------------------


def opened(page, folder):
    """Open a page in the browser; return its log, a picture and the addresses that the page asked for."""
    log, picture = folder / "net.json", folder / "page.png"
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
            f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", f"--log-net-log={log}",
            "--window-size=1000,4000", f"--screenshot={picture}", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    # Requests that the browser makes by itself have no origin.
    asked = re.findall(r'"initiator":"(?!not an origin")[^\n]*"url":"([^"]+)"', log.read_text(encoding="utf-8"))
    return done.stderr, picture, [url for url in asked if not url.startswith(("file:", "data:"))]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome here to open the report in")
def test_browser_shows_it_without_errors_or_requests(demo, tmp_path):
    from matplotlib.image import imread

    log, picture, asked = opened(demo[2], tmp_path)
    assert "CONSOLE" not in log
    assert asked == []
    ink = imread(picture)[..., :3].mean(axis=2) < 0.9
    assert 0.02 < ink.mean() < 0.5, "the page is blank or black"
    bad = tmp_path / "bad.html"
    bad.write_text('<!doctype html><img src="http://example.invalid/a.png"><script>undefined.x</script>', "utf-8")
    log, _, asked = opened(bad, tmp_path)
    assert "CONSOLE" in log, "the check itself must see an error"
    assert asked == ["http://example.invalid/a.png"], "and a request"


def test_manifest_in_the_page_is_json(demo):
    text = demo[2].read_text(encoding="utf-8")
    block = re.findall(r"<pre>(\{.*?\})</pre>", text, flags=re.DOTALL)[0]
    from html import unescape

    assert json.loads(unescape(block))["parameters"]["k"] == 5


# --- categories ----------------------------------------------------------------------------------------------------


def test_a_page_of_categories_names_no_rare_one(tmp_path):
    rng = np.random.default_rng(0)
    jobs = [*rng.choice(["clerk", "nurse", "smith"], 296), "astronaut", "hangman", "hangman", "pope"]
    table = pl.DataFrame({"job": jobs, "age": rng.integers(18, 80, 300), "sex": rng.choice(["f", "m"], 300)})
    asked = {"columns": ["job", "age", "sex"]}
    release = shoal.mask(table, 5, **asked, method="mdav")
    text = release.report(tmp_path / "page.html", original=table).read_text(encoding="utf-8")
    text += shoal.assess(table, release.data, **asked).report(tmp_path / "two.html").read_text(encoding="utf-8")
    page = Elements((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.open == []
    for word in ("astronaut", "hangman", "pope"):
        assert word not in text
    for words in ("Shares of the values of job", "clerk", "others", "Cramér", "would be right for", "total variation"):
        assert words in text
    linked = shoal.assess(table, release.data, **asked).risk.linkage.share
    assert f"{100 * linked:.1f}\u00a0%" in text


def test_a_page_of_categories_alone(tmp_path):
    table = pl.DataFrame({"job": ["a", "b", "c"] * 20, "sex": ["f", "m"] * 30})
    release = shoal.mask(table, 4, columns=["job", "sex"])
    page = release.report(tmp_path / "page.html", original=table).read_text(encoding="utf-8")
    assert "replaced by the most frequent value (nominal) of its group" in page
    with pytest.raises(InputError, match="'original' is not the table this release was made from"):
        release.report(tmp_path / "page.html", original=table.with_columns(job=pl.lit("d")))
    with pytest.raises(InputError, match="'original' is not the table this release was made from"):
        release.report(tmp_path / "page.html", original=table[::-1])


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=80), st.integers(2, 6))
@settings(max_examples=100, deadline=None)
def test_counts_of_categories_are_of_k_records_or_none(pairs, k):
    x, y = np.array(pairs, dtype=np.float64).T
    found = protected_values(x, y, list("abcdefghi"), k)
    for name, *counts in found or []:
        assert all(count == 0 or count >= k for count in counts)
        assert name == "others" or counts[1] >= k
    if found is not None:
        assert sum(before for _, before, _ in found) == sum(after for *_, after in found) == len(x)


def test_codes_with_zeros_before_them_stay_as_they_are(tmp_path):
    (tmp_path / "in.csv").write_text("zip,x\n" + "".join(f"0{i % 3}1,{i}\n" for i in range(30)))
    release = shoal.mask(tmp_path / "in.csv", 3, columns=["zip", "x"], kinds={"zip": shoal.Nominal()})
    assert set(release.data["zip"]) <= {"001", "011", "021"}
    release.report(tmp_path / "page.html", original=tmp_path / "in.csv")


def people():
    i = pl.col("i")
    columns = {"person": i // 2, "town": i % 2, "x": i * 37 % 101, "y": i * 13 % 47}
    return pl.DataFrame({"i": range(60)}).select(name=pl.format("n{}", i), **columns)


def told(tmp_path, table, **asked):
    release = shoal.mask(table, 3, columns=["x", "y"], **{"rest": "keep", **asked})
    return release, plain(release.report(tmp_path / "page.html", original=table).read_text(encoding="utf-8"))


def plain(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_the_page_describes_other_changes(tmp_path):
    _, page = told(tmp_path, people(), keep=["name"])
    assert "Nothing else in the table was changed." in page
    assert "these lines reproduce the masked table" in page
    _, page = told(tmp_path, people(), identifiers=["name", "person"])
    assert "name and person were left out. Nothing else in the table was changed." in page
    _, page = told(tmp_path, people(), rest="drop")
    assert "name, person and town were left out. Nothing else in the table was changed." in page
    release, page = told(tmp_path, people(), unit="person", shuffle=True, identifiers=["name"])
    assert "Nothing else in the table" not in page
    assert "these lines reproduce the masked table" not in page
    assert release.left == ("town",)
    assert "≥ 3 different units (person) share each combination" in page


def test_the_page_shows_groups_that_share_sensitive_values(tmp_path):
    illness = pl.Series(["flu", "cold", "gout"] * 20).cast(pl.Enum(["flu", "gout", "cold"]))
    table = people().with_columns(illness=illness, since=pl.Series(range(60)))
    release, page = told(
        tmp_path, table, identifiers=["name", "person"], confidential=["illness", "since"], keep=["since"]
    )
    for name, found in release.reached.items():
        figures = f"l = {found['diversity']:.0f} (by entropy {found['entropy']:.2f}), t = {found['closeness']:.3f}"
        shared = r"all records share one value in \d+ of \d+ groups"
        assert re.search(rf"sensitive: {name} {shared}, .*?{re.escape(figures)}", page)
    same = "There are groups whose records all have the same town: placing a person in such a group reveals it."
    assert same not in page
    _, page = told(
        tmp_path, table.with_columns(town=pl.lit("York")), keep=["name", "person", "since"], confidential="town"
    )
    assert same in page


def test_a_loss_above_100_percent_is_explained(tmp_path):
    table = pl.DataFrame({"x": list("aabcdefghij") * 2})
    release = shoal.mask(table, 11, columns=["x"], method="mdav")
    assert release.loss > 100
    page = plain(release.report(tmp_path / "page.html", original=table).read_text(encoding="utf-8"))
    assert "0.0 % of the information (the variance between records) is kept" in page
    assert "That is more than 100 % because" in page


def test_losses_of_cells_made_missing_are_shown_with_their_column(tmp_path):
    i = pl.col("i")
    x = pl.when(i % 160 < 20).then(None).otherwise(i * 37 % 401)
    table = pl.DataFrame({"i": range(320)}).select(town=i % 40, x=x, y=i * 13 % 397)
    release, page = told(tmp_path, table, missing="group", by="town", small="merge")
    assert release.blanked
    worst = max(release.column_loss, key=release.column_loss.get)
    assert f"The column {worst} loses most ({release.column_loss[worst]:.1f} %)" in page
