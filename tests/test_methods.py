"""Every method of the registry: against its slow reference and the papers' figures, and properties of any input."""

import importlib
import json
import os
import pickle
import re
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest
import slow
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import shoal
from shoal.algorithms.registry import METHODS, Option, find
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, group_sizes, information_loss, sse
from shoal.core.progress import STOP, fresh_state
from shoal.demo import firms
from shoal.engines import process_pool
from shoal.masking.manifest import read_manifest, write_manifest
from shoal.tables.files import write_file

SLOW = {"mdav": slow.mdav, "diameter": slow.diameter, "centroid": slow.centroid, "k-ward": slow.k_ward}
RECORDWISE = [name for name, method in METHODS.items() if method.whole_records]


def quick(name):
    """Limit the effort of a method that has a budget."""
    options = {option.name for option in METHODS[name].options}
    return {"steps": 500} if "steps" in options else {}


@st.composite
def tables(draw):
    """Small tables: smooth numbers, or few integers so that ties and duplicates abound, near 0 or near 1e9."""
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    cells = draw(st.sampled_from([st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)]))
    shift = draw(st.sampled_from([0.0, 1e9]))
    return draw(arrays(np.float64, (n, d), elements=cells)) + shift, draw(st.integers(2, n))


class Stopping:
    """State of a kernel that requests a stop at a given check and counts the checks."""

    def __init__(self, at):
        self.at, self.looks = at, 0

    def __getitem__(self, place):
        assert place == STOP
        self.looks += 1
        return int(self.looks >= self.at)


@pytest.mark.parametrize("at", [39, 45])
def test_k_ward_checks_for_a_stop_at_every_record(at, monkeypatch):
    module = importlib.import_module("shoal.algorithms.k_ward")
    for name, kernel in list(vars(module).items()):
        if hasattr(kernel, "py_func"):
            monkeypatch.setattr(module, name, kernel.py_func)
    state = Stopping(at)
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert not module._divide(X, 3, state).any()
    # The search for the two most distant of 40 records, and that for the best partners, take n² steps each.
    assert at <= state.looks <= at + 2


def test_k_ward_stops_in_the_middle_of_its_first_search():
    """Compiled, too: a loop that writes nothing may be compiled to read the state only once."""
    k_ward = importlib.import_module("shoal.algorithms.k_ward").k_ward
    X = np.random.default_rng(0).normal(size=(60_000, 2))
    k_ward(X[:20], 3, state=fresh_state())
    state, seconds = fresh_state(), []

    def run():
        k_ward(X, 3, state=state)
        seconds.append(time.thread_time())

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)
    state[STOP] = 1
    thread.join()
    assert seconds[0] < 1.0, "the search takes 2 s of one core if it is not stopped"


@pytest.mark.parametrize("name", SLOW)
@given(case=tables())
@settings(max_examples=60, deadline=None)
def test_fixed_size_methods_follow_their_papers(name, case):
    X, k = case
    X = np.round(X) - np.round(X).mean().round()  # sums of integers are exact, so ties are true ties
    assert np.array_equal(shoal.partition(X, k, name), canonical_labels(SLOW[name](X, k)))


@given(case=tables(), gamma=st.sampled_from([0.0, 0.5, 1.0, 1.5]))
@settings(max_examples=60, deadline=None)
def test_v_mdav_follows_its_paper(case, gamma):
    X, k = case
    X = np.round(X) - np.round(X).mean().round()
    assert np.array_equal(shoal.partition(X, k, "v-mdav", gamma=gamma), canonical_labels(slow.v_mdav(X, k, gamma)))


@pytest.mark.parametrize("name", SLOW)
def test_slow_references_agree_on_longer_smooth_tables(name):
    X = np.random.default_rng(8).normal(size=(120, 3))
    for k in (2, 5, 11):
        assert np.array_equal(shoal.partition(X, k, name), canonical_labels(SLOW[name](X, k)))


@pytest.mark.parametrize("name", ["diameter", "centroid"])
def test_records_left_over_join_groups_that_have_moved(name):
    """Many records remain next to few groups, so that one joins a group that another has moved before."""
    moved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(5, 9))
        X = rng.normal(size=(3 * k - 1 if name == "centroid" else 5 * k - 1, 2))
        labels = shoal.partition(X, k, name)
        assert np.array_equal(labels, canonical_labels(SLOW[name](X, k)))
        moved += group_sizes(labels).max() > k + 1
    assert moved > 20


@pytest.mark.parametrize("name", RECORDWISE)
@given(case=tables())
@settings(max_examples=25, deadline=None)
def test_any_table_is_partitioned(name, case):
    X, k = case
    method = METHODS[name]
    if method.univariate:
        X = np.ascontiguousarray(X[:, :1])
    labels = shoal.partition(X, k, name, seed=3, **quick(name))
    sizes = group_sizes(labels)
    assert labels.shape == (len(X),)
    assert sizes.sum() == len(X)
    assert sizes.min() >= k
    if method.below_2k:
        assert sizes.max() < 2 * k
    assert np.array_equal(labels, canonical_labels(labels))
    assert np.array_equal(labels, shoal.partition(X, k, name, seed=3, **quick(name)))


@pytest.mark.parametrize("name", RECORDWISE)
def test_extremes_of_n_and_k(name):
    column = METHODS[name].univariate
    for X in (np.zeros((7, 2)), np.arange(14.0).reshape(7, 2), np.eye(7)):
        data = np.ascontiguousarray(X[:, :1]) if column else X
        assert shoal.partition(data, 7, name, **quick(name)).tolist() == [0] * 7
        assert group_sizes(shoal.partition(data, 4, name, **quick(name))).tolist() == [7]


def test_individual_ranking_groups_every_column():
    X = np.random.default_rng(1).normal(size=(50, 3))
    for ranking in ("univariate", "fixed"):
        labels = shoal.partition(X, 4, "individual-ranking", ranking=ranking)
        assert labels.shape == X.shape
        for j in range(3):
            assert np.array_equal(labels[:, j], shoal.partition(X[:, j], 4, ranking))


def test_v_mdav_keeps_the_best_gamma():
    from shoal.algorithms.v_mdav import GAMMAS

    X = np.random.default_rng(2).normal(size=(200, 2))
    losses = [sse(X, shoal.partition(X, 3, "v-mdav", gamma=gamma)) for gamma in GAMMAS]
    assert sse(X, shoal.partition(X, 3, "v-mdav")) == min(losses)


MDAV = {
    "tarragona": (16.93259, 22.46186, 33.19288),
    "census": (5.69219, 9.08844, 14.15593),
    "eia": (0.48294, 1.66668, 3.83967),
}


@pytest.mark.parametrize("data", MDAV)
def test_mdav_figures(reference, data):
    Z = reference(data)
    losses = [information_loss(Z, shoal.partition(Z, k, "mdav")) for k in (3, 5, 10)]
    assert np.round(losses, 5).tolist() == list(MDAV[data])


TABLE_5 = {
    ("tarragona", "diameter"): (15.60, 22.67, 36.99),
    ("tarragona", "centroid"): (15.62, 22.61, 37.10),
    ("census", "diameter"): (5.42, 8.81, 14.55),
    ("census", "centroid"): (5.35, 8.69, 14.34),
}


@pytest.mark.parametrize(("data", "name"), TABLE_5)
def test_seed_003_table_5(reference, data, name):
    Z = reference(data)
    losses = [information_loss(Z, shoal.partition(Z, k, name)) for k in (3, 5, 10)]
    assert np.round(losses, 2).tolist() == list(TABLE_5[data, name])


def test_seed_001_v_mdav_figures(reference):
    tarragona, census = reference("tarragona"), reference("census")
    assert round(information_loss(tarragona, shoal.partition(tarragona, 3, "v-mdav")), 2) == 15.85
    losses = [information_loss(census, shoal.partition(census, k, "v-mdav")) for k in (3, 5, 10)]
    assert np.round(losses, 2).tolist() == [5.66, 8.98, 14.04]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"method": "mdva"}, "Did you mean 'mdav'"),
        ({"method": "v-mdav", "gama": 1}, "Did you mean 'gamma'"),
        ({"method": "v-mdav", "gamma": -1}, "'gamma' of method 'v-mdav' must be at least 0, got -1"),
        ({"method": "v-mdav", "gamma": "much"}, "must be of type float, got 'much'"),
        ({"method": "individual-ranking", "ranking": "best"}, "must be one of univariate, fixed, got 'best'"),
        ({"method": "centroid", "gamma": 1}, "it has none"),
        ({"method": "univariate"}, "groups one column, got 2"),
        ({"k": 1}, "'k' must be at least 2, got 1"),
        ({"k": 9}, "k=9, but the table has 8 records"),
        ({"k": 2.5}, "'k' must be a whole number of at least 2, got 2.5"),
        ({"X": [["a", "b"]]}, "must be an array of numbers"),
        ({"X": [[1.0, np.nan], [1, 2]]}, "got nan in record 0, column 1"),
        ({"X": np.zeros((3, 0))}, "at least one column"),
    ],
)
def test_partition_refuses_by_name(call, words):
    arguments = {"X": np.arange(16.0).reshape(8, 2), "k": 2} | call
    with pytest.raises(InputError) as caught:
        shoal.partition(arguments.pop("X"), arguments.pop("k"), **arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["mdav", "v-mdav", "diameter", "centroid", "mst-d", "two-swap", "search"])
def test_numbers_whose_squares_are_not_finite(name):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    options = {"steps": 50} if name == "search" else {}
    great = shoal.partition(np.ldexp(X, 1023), 3, name, seed=0, **options)
    assert np.array_equal(great, shoal.partition(X, 3, name, seed=0, **options))


def test_an_option_may_be_an_array():
    option = Option("start", object, None, "labels to start from")
    labels = np.array([0, 1, 0])
    assert option.read(labels, "any") is labels
    assert option.read(None, "any") is None


def test_registry_is_complete():
    for method in shoal.methods():
        named = [method.time_option, method.steps_option, method.shared and method.shared.option]
        assert {name for name in named if name} <= {option.name for option in method.options}
        assert method.shared is None or callable(method.shared.load())
        assert method.growth == (2 if "n²" in method.cost else 1)  # the words and the number agree
        assert callable(method.load())
        assert method.summary
        assert method.paper
        assert method.cost.startswith("O(")
        assert all(option.help for option in method.options)
    assert all(name in repr(shoal.methods()) for name in METHODS)


def in_order(X, k):
    """Group the records as they come."""
    return np.minimum(np.arange(len(X)) // k, len(X) // k - 1)


def along(X, k, column=0, *, seed=None):
    """Group the records along a column."""
    labels = np.empty(len(X), dtype=np.int32)
    labels[np.argsort(X[:, column], kind="stable")] = in_order(X, k)
    return labels


def test_a_function_is_a_method():
    X = np.random.default_rng(0).normal(size=(50, 2))
    seen = []

    def kept(Z, k):
        seen.append((Z.dtype, Z.flags.c_contiguous, Z.shape, k))
        labels = -7 * along(Z, k)
        Z[:] = 0  # its own to spoil
        return labels.tolist()

    before = X.copy()
    labels = shoal.partition(np.asfortranarray(X, dtype=np.float64), 5, method=kept)
    assert np.array_equal(X, before)
    assert labels.dtype == np.int64
    assert np.array_equal(labels, canonical_labels(along(X, 5)))
    assert seen == [(np.float64, True, (50, 2), 5)]

    masker = shoal.Microaggregator(k=5, method=along, options={"column": 1}, standardize=False)
    assert np.array_equal(masker.fit_predict(X), canonical_labels(along(X, 5, 1)))
    assert group_sizes(masker.fit(X).labels_).min() >= 5
    trials = shoal.compare(X, 5, methods=[along, "mdav"]).trials
    assert {trial.method for trial in trials} == {"test_methods.along", "mdav"}
    assert shoal.compare(X, 5, methods=along).parameters["methods"] == ["test_methods.along"]


def test_a_function_gets_the_options_that_it_has():
    X = np.random.default_rng(0).normal(size=(50, 2))
    given = []

    def noted(X, k, gamma, *, order=None, seed=None, **rest):
        given.append((gamma, order, seed, rest))
        return in_order(X, k)

    shoal.partition(X, 5, noted, gamma=2, seed=3)
    shoal.partition(X, 5, noted, gamma="much", order=[1])
    assert given == [(2, None, 3, {}), ("much", [1], None, {})]
    shoal.partition(X, 5, lambda *both: in_order(*both), seed=3)
    with pytest.raises(InputError, match=r"noted' has no option 'gama'; its options are gamma, order.* Did you mean"):
        shoal.partition(X, 5, noted, gama=2)
    with pytest.raises(InputError, match=r"Option 'gamma' of method '.*noted' is required"):
        shoal.mask(X, 5, method=noted)
    with pytest.raises(InputError, match=r"must be a function of the records and k, f\(X, k\), but '.*<lambda>' has"):
        shoal.partition(X, 5, lambda X: X)
    for method in (5, ["mdav"], None):
        with pytest.raises(InputError, match="'method' must be a function or one of auto, univariate"):
            shoal.partition(X, 5, method)


def fails(X, k):
    return X[len(X)]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda *_: None, "must return one label for each of the 20 records, an array of shape (20,), got None"),
        (lambda X, k: in_order(X, k)[1:], "got a ndarray of shape (19,)"),
        (lambda X, k: in_order(X, k)[:, None], "got a ndarray of shape (20, 1)"),
        (lambda *_: [[1], [2, 3]], "must return one label for each of the 20 records, got a list"),
        (lambda X, k: in_order(X, k) * 1.0, "must return integer labels, got labels of type float64"),
        (lambda X, k: in_order(X, k) == 0, "must return integer labels, got labels of type bool"),
        (lambda *_: ["a"] * 20, "must return integer labels, got labels of type <U1"),
        (lambda *_: [2**70] * 20, "must return integer labels, got labels of type object"),
        (lambda *_: np.arange(20) // 3, "groups of at least k=4 records, got 7 smaller groups; group 6 has 2."),
        (fails, "failed: IndexError: index 20 is out of bounds"),
    ],
)
def test_what_a_function_returns_is_checked(returned, words, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    table = pl.DataFrame(X, schema=["x", "y"])
    for run in (
        lambda: shoal.partition(X, 4, returned),
        lambda: shoal.mask(table, 4, columns=["x", "y"], method=returned, output=tmp_path / "out.csv"),
        lambda: shoal.Microaggregator(k=4, method=returned).fit(X),
    ):
        with pytest.raises(InputError) as caught:
            run()
        assert words in str(caught.value)
        assert f"Method 'test_methods.{returned.__name__}'" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"by": "region"},
        {"missing": "group", "columns": ["sales", "research"]},
        {"weights": "weight"},
        {"block": 100},
        {"block": 100, "by": "region", "aggregate": "median", "integers": "round"},
    ],
)
def test_a_function_masks_whatever_the_table(keywords):
    """The function is MDAV under another name, so the result is known."""
    table, keywords = firms(400), {"columns": ["sales", "wages"], **keywords}
    calls = []

    def another(X, k):
        assert not calls, "called twice at a time"
        calls.append(len(X))
        time.sleep(0.001)
        labels = shoal.partition(X, k, "mdav")
        calls.clear()
        return labels

    release = shoal.mask(table, 5, method=another, **keywords)
    expected = shoal.mask(table, 5, method="mdav", **keywords)
    assert release.data.equals(expected.data)
    assert release.loss == expected.loss


def test_a_function_is_named_and_cannot_be_repeated(tmp_path):
    def mdav(X, k, start=SLOW):
        return in_order(X, k)

    write_file(firms(60), tmp_path / "in.csv")
    files = {"source": tmp_path / "in.csv", "output": tmp_path / "out.csv"}
    release = shoal.mask(files["source"], 5, columns=["sales", "wages"], method=mdav, output=files["output"])
    assert "method            test_methods.mdav\n" in str(release)
    assert "shoal alone cannot repeat this run" in str(release)
    write_manifest(release, tmp_path / "run.json", **files)
    content = json.loads((tmp_path / "run.json").read_text())
    assert content["parameters"]["method"] == "test_methods.mdav"
    assert content["parameters"]["options"] == {"start": "given as dict"}
    assert any("test_methods.mdav is a user's function" in note for note in content["result"]["notes"])
    with pytest.raises(InputError, match=r"cannot be repeated by shoal alone: its method 'test_methods.mdav'"):
        read_manifest(tmp_path / "run.json")
    page = release.report(tmp_path / "report.html", original=files["source"], output=files["output"])
    page = page.read_text(encoding="utf-8")
    assert "test_methods.mdav" in page
    assert "shoal alone cannot repeat this run" in page
    assert "shoal mask in.csv" not in page


OWN = """
import numpy as np
import shoal


class Scaled:
    def __call__(self, X, k, factor=1.0):
        return shoal.partition(X * factor, k, "mdav")


def small(X, k):
    return [i // 2 for i in range(len(X))]


def another(X, k):
    if len(np.unique(X, axis=0)) < len(X):
        raise ValueError("called with records that are not the user's")
    return Scaled()(X, k)
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A user module that worker processes can also import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "users_methods.py").write_text(OWN)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.delitem(sys.modules, "users_methods", raising=False)
    # Workers that are forks of a process that other tests have started would not know the folder.
    monkeypatch.setattr("shoal.masking.mask.start_template", process_pool.start_template)
    return importlib.import_module("users_methods")


def test_a_function_in_other_processes(own_module, tmp_path, monkeypatch):
    firms(400).write_parquet(tmp_path / "in.parquet")
    where = {"columns": ["sales", "wages"], "block": 100, "output": tmp_path / "out.parquet"}

    def masked(method, **more):
        return shoal.mask(tmp_path / "in.parquet", 5, method=method, engine="local", processes=1, **where, **more)

    expected = shoal.mask(firms(400), 5, method="mdav", columns=["sales", "wages"], block=100).data
    release = masked(own_module.another)
    assert "users_methods.another" in str(release)
    assert "shoal alone cannot repeat this run" in str(release)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(expected)
    masked(own_module.Scaled(), factor=2.0)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(expected)

    (tmp_path / "out.parquet").unlink()
    lock = threading.Lock()
    for method, more, words in (
        (own_module.small, {}, "'users_methods.small' must return groups of at least k=5 records, got "),
        (own_module.Scaled(), {"factor": lock}, "Options of method 'users_methods.Scaled' cannot be sent"),
        (lambda X, k: lock and in_order(X, k), {}, "'test_methods.<lambda>' cannot be sent to other processes"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            masked(method, **more)
    # A module of this process only, like a function of a script without cloudpickle.
    monkeypatch.setattr("shoal.algorithms.user_function._pickler", lambda: pickle)
    own_module.another.__module__ = "not_there"
    monkeypatch.setitem(sys.modules, "not_there", own_module)
    with pytest.raises(InputError, match=r"'not_there.another' cannot be called in another process: No module named"):
        masked(own_module.another)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "modules"]


def test_a_function_of_a_script_is_sent_if_cloudpickle_is_there():
    pytest.importorskip("cloudpickle", reason="comes with the extra shoal[dask]")
    offset = 3
    entry = find(lambda X, k: in_order(X, k) + offset)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(entry))))
    X = np.arange(20.0).reshape(10, 2)
    assert again.name == entry.name
    assert again.run(X, 5).labels.tolist() == [0] * 5 + [1] * 5


def test_a_function_on_dask(own_module):
    dd = pytest.importorskip("dask.dataframe", reason="the extra shoal[dask] is not installed")
    table = firms(400).select("sales", "wages").to_pandas()
    asked = {"columns": ["sales", "wages"], "block": 100}
    expected = shoal.mask(table, 5, method="mdav", **asked)
    release = shoal.mask(dd.from_pandas(table, npartitions=2), 5, method=own_module.another, **asked)
    assert release.data.compute().equals(expected.data)
    with pytest.raises(InputError, match=r"'users_methods.small' must return groups of at least k=5 records"):
        shoal.mask(dd.from_pandas(table, npartitions=2), 5, method=own_module.small, **asked)
